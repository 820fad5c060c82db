// Large things in and out of a real daemon: uploads in pieces, answers over max_message.
#include "tests/support/rw_test.h"

#include "solvers/base/hash.h"
#include "tests/support/rw_daemon.h"

static rw_daemon daemon_;

static int set_up(void** state) {
    (void)state;
    static const char* const FLAGS[] = {"--max-message", "256K", "--max-upload", "8M", NULL};
    rw_daemon_start(&daemon_, FLAGS);
    return 0;
}

static int tear_down(void** state) {
    (void)state;
    return rw_daemon_stop(&daemon_, 10) == 0 ? 0 : 1;
}

static rw_pb_Request for_session(uint64_t session, pb_size_t command) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.session = session;
    request.which_command = command;
    return request;
}

static rw_pb_Status_Code begin_upload(rw_daemon_client* client, uint64_t size, uint32_t crc,
                                      uint64_t* blob) {
    rw_pb_Request request = for_session(0, rw_pb_Request_begin_upload_tag);
    rw_pb_Response response;
    request.command.begin_upload.bytes = size;
    request.command.begin_upload.crc = crc;
    rw_pb_Status_Code status = rw_daemon_call(client, &request, &response);
    *blob = response.result.begin_upload.blob;
    return status;
}

static rw_pb_Request chunk_request(uint64_t blob, const uint8_t* bytes, size_t offset,
                                   size_t size) {
    rw_pb_Request request = for_session(0, rw_pb_Request_upload_chunk_tag);
    request.command.upload_chunk.blob = blob;
    request.command.upload_chunk.offset = offset;
    request.command.upload_chunk.data = (rw_wire_bytes){bytes + offset, size};
    return request;
}

// A snapshot of 3,000 bodies, some 500 KB: fetched in pieces since it exceeds max_message.
static uint8_t* fetch_snapshot(rw_daemon_client* client, uint64_t session, size_t* size) {
    rw_pb_Request request = for_session(session, rw_pb_Request_snapshot_tag);
    rw_pb_Response response;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.which_result, rw_pb_Response_large_tag);
    rw_pb_LargeResult large = response.result.large;
    uint8_t* bytes = test_malloc(large.bytes);
    for (uint64_t at = 0; at < large.bytes;) {
        request = for_session(0, rw_pb_Request_download_chunk_tag);
        request.command.download_chunk.blob = large.blob;
        request.command.download_chunk.offset = at;
        request.command.download_chunk.bytes = 100000;
        assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
        rw_wire_bytes part = response.result.download_chunk.data;
        assert_true(part.size > 0 && part.size <= 100000);
        memcpy(bytes + at, part.data, part.size);
        at += part.size;
    }
    assert_int_equal(rw_hash_crc32(0, bytes, large.bytes), large.crc);
    // Its last byte was sent: it is gone.
    request = for_session(0, rw_pb_Request_release_blob_tag);
    request.command.release_blob.blob = large.blob;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    rw_error error;
    assert_int_equal(rw_message_decode_response(bytes, large.bytes, &client->arena, &response,
                                                &error),
                     RW_STATUS_OK);
    assert_int_equal(response.which_result, rw_pb_Response_snapshot_tag);
    *size = response.result.snapshot.data.size;
    uint8_t* snapshot = test_malloc(*size);
    memcpy(snapshot, response.result.snapshot.data.data, *size);
    test_free(bytes);
    return snapshot;
}

static void snapshot_goes_out_in_pieces_and_comes_back_as_a_blob(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "out");
    rw_daemon_load_bodies(&client, session, 1000);
    rw_daemon_step(&client, session, 3);
    uint64_t hash = rw_daemon_hash(&client, session);
    size_t size;
    uint8_t* bytes = fetch_snapshot(&client, session, &size);
    uint64_t blob;
    assert_int_equal(begin_upload(&client, size, rw_hash_crc32(0, bytes, size), &blob),
                     rw_pb_Status_Code_OK);
    // Pipelined, from the back to the front, large pieces and small ones; Restore right behind.
    rw_buffer all;
    rw_buffer_init(&all, &client.alloc);
    uint64_t first = client.next_id;
    int pieces = 0;
    for (size_t end = size; end > 0; pieces++) {
        size_t part = pieces % 2 == 0 ? 120000 : 777;
        part = part < end ? part : end;
        rw_pb_Request request = chunk_request(blob, bytes, end - part, part);
        rw_daemon_append(&client, &all, &request);
        end -= part;
    }
    uint64_t other = rw_daemon_create_session(&client, "in");
    rw_pb_Request request = for_session(other, rw_pb_Request_restore_tag);
    request.command.restore.which_source = rw_pb_Restore_blob_tag;
    request.command.restore.source.blob = blob;
    uint64_t last = rw_daemon_append(&client, &all, &request);
    rw_daemon_send_bytes(&client, all.data, all.size_bytes);
    for (int i = 0; i < pieces; i++) {
        rw_daemon_wait(&client, first + (uint64_t)i, &response);
        assert_int_equal(response.status, rw_pb_Status_Code_OK);
        assert_int_equal(response.result.upload_chunk.complete, i == pieces - 1);
    }
    rw_daemon_wait(&client, last, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 3);
    assert_int_equal(rw_daemon_hash(&client, other), hash);
    rw_buffer_finish(&all);
    test_free(bytes);
    rw_daemon_disconnect(&client);
}

static void wrong_checksum_drops_the_blob(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint8_t bytes[1000];
    memset(bytes, 7, sizeof bytes);
    uint64_t blob;
    assert_int_equal(begin_upload(&client, 1000, rw_hash_crc32(0, bytes, 1000) ^ 1, &blob),
                     rw_pb_Status_Code_OK);
    rw_pb_Request request = chunk_request(blob, bytes, 0, 1000);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_DATA_LOSS);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    rw_daemon_disconnect(&client);
}

static void pieces_must_lie_inside_and_apart(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint8_t bytes[2000] = {0};
    uint64_t blob;
    begin_upload(&client, 1000, 0, &blob);
    rw_pb_Request request = chunk_request(blob, bytes, 500, 501);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    request.command.upload_chunk.offset = UINT64_MAX;
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    request = chunk_request(blob, bytes, 100, 100);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    request = chunk_request(blob, bytes, 150, 100);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    request = chunk_request(blob, bytes, 0, 101);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    request = chunk_request(blob, bytes, 200, 100);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.upload_chunk.received, 200);
    rw_daemon_disconnect(&client);
}

static void uploads_have_a_limit_and_belong_to_their_connection(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    uint64_t a, b;
    assert_int_equal(begin_upload(&client, 0, 0, &a), rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_int_equal(begin_upload(&client, UINT64_MAX, 0, &a),
                     rw_pb_Status_Code_RESOURCE_EXHAUSTED);
    assert_int_equal(begin_upload(&client, 6 << 20, 0, &a), rw_pb_Status_Code_OK);
    assert_int_equal(begin_upload(&client, 6 << 20, 0, &b), rw_pb_Status_Code_RESOURCE_EXHAUSTED);
    assert_int_equal(begin_upload(&other, 6 << 20, 0, &b), rw_pb_Status_Code_OK);
    uint8_t byte = 0;
    rw_pb_Request request = chunk_request(a + 1000, &byte, 0, 1);
    assert_int_equal(rw_daemon_call(&other, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    request = for_session(0, rw_pb_Request_release_blob_tag);
    request.command.release_blob.blob = a;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(begin_upload(&client, 6 << 20, 0, &a), rw_pb_Status_Code_OK);
    rw_daemon_disconnect(&client);
    rw_daemon_disconnect(&other);
}

static void a_blob_with_missing_pieces_is_not_used(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "partial");
    uint64_t blob;
    begin_upload(&client, 1000, 0, &blob);
    rw_pb_Request request = for_session(session, rw_pb_Request_restore_tag);
    request.command.restore.which_source = rw_pb_Restore_blob_tag;
    request.command.restore.source.blob = blob;
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_FAILED_PRECONDITION);
    rw_daemon_disconnect(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot_goes_out_in_pieces_and_comes_back_as_a_blob),
        cmocka_unit_test(wrong_checksum_drops_the_blob),
        cmocka_unit_test(pieces_must_lie_inside_and_apart),
        cmocka_unit_test(uploads_have_a_limit_and_belong_to_their_connection),
        cmocka_unit_test(a_blob_with_missing_pieces_is_not_used),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
