// What a real daemon does with bytes: good, odd, broken and hostile ones.
#include "tests/support/rw_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zstd.h>

#include "tests/support/rw_daemon.h"

static rw_daemon daemon_;

static int set_up(void** state) {
    (void)state;
    static const char* const FLAGS[] = {"--hello-timeout-s", "0.3", "--max-message", "1M", NULL};
    rw_daemon_start(&daemon_, FLAGS);
    return 0;
}

static int tear_down(void** state) {
    (void)state;
    return rw_daemon_stop(&daemon_, 10) == 0 ? 0 : 1;
}

static rw_pb_Request ping_request(uint64_t payload) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.which_command = rw_pb_Request_ping_tag;
    request.command.ping.payload = payload;
    return request;
}

static void assert_ping(rw_daemon_client* client) {
    rw_pb_Request request = ping_request(42);
    rw_pb_Response response;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.which_result, rw_pb_Response_ping_tag);
    assert_int_equal(response.result.ping.payload, 42);
}

// A protocol error event with this word in its reason, then the end.
static void assert_refused(rw_daemon_client* client, const char* word) {
    rw_pb_Event event;
    assert_true(rw_daemon_wait_event(client, rw_pb_Event_protocol_error_tag, &event, 5));
    if (strstr(event.kind.protocol_error.reason, word) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", word, event.kind.protocol_error.reason);
    }
    assert_true(rw_daemon_is_closed(client, 5));
}

// ---- Hello ----

static rw_pb_Status_Code hello(rw_daemon_client* client, uint32_t major, uint32_t minor,
                               rw_pb_Response* response) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.which_command = rw_pb_Request_hello_tag;
    request.command.hello.major = major;
    request.command.hello.minor = minor;
    return rw_daemon_call(client, &request, response);
}

static void hello_tells_version_limits_and_features(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_connect(&daemon_, &client);
    assert_int_equal(hello(&client, 1, 0, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.which_result, rw_pb_Response_hello_tag);
    const rw_pb_HelloResult* result = &response.result.hello;
    assert_int_equal(result->major, 1);
    assert_string_equal(result->server_version, RW_VERSION);
    assert_int_equal(result->limits.max_message, 1 << 20);
    assert_int_equal(result->limits.max_open_requests, 1024);
    assert_int_not_equal(result->connection_id, 0);
    rw_daemon_disconnect(&client);
}

static void wrong_major_is_refused_with_both_versions_and_the_link_stays(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_connect(&daemon_, &client);
    uint32_t wrong[] = {0, 2};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hello(&client, wrong[i], 7, &response),
                         rw_pb_Status_Code_FAILED_PRECONDITION);
        char theirs[16];
        snprintf(theirs, sizeof theirs, "%u.7", wrong[i]);
        assert_non_null(strstr(response.message, theirs));
        assert_non_null(strstr(response.message, "1.0"));
    }
    assert_int_equal(hello(&client, 1, 99, &response), rw_pb_Status_Code_OK); // newer minor
    assert_ping(&client);
    rw_daemon_disconnect(&client);
}

static void nothing_is_served_before_hello(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_connect(&daemon_, &client);
    rw_pb_Request request = ping_request(1);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_UNAUTHENTICATED);
    rw_daemon_disconnect(&client);
}

static void token_is_asked_for(void** state) {
    (void)state;
    rw_daemon guarded;
    setenv("ROPEWALK_TOKEN", "sesame", 1);
    rw_daemon_start(&guarded, NULL);
    unsetenv("ROPEWALK_TOKEN");
    static const char* const TOKENS[] = {"", "sesamE", "sesame2", "sesam", "sesame"};
    rw_daemon_client client;
    rw_daemon_connect(&guarded, &client);
    for (int i = 0; i < 5; i++) {
        rw_pb_Request request = rw_pb_Request_init_zero;
        rw_pb_Response response;
        request.which_command = rw_pb_Request_hello_tag;
        request.command.hello.major = 1;
        strcpy(request.command.hello.token, TOKENS[i]);
        rw_pb_Status_Code status = rw_daemon_call(&client, &request, &response);
        assert_int_equal(status, i == 4 ? rw_pb_Status_Code_OK
                                        : rw_pb_Status_Code_UNAUTHENTICATED);
    }
    assert_ping(&client);
    rw_daemon_disconnect(&client);
    assert_int_equal(rw_daemon_stop(&guarded, 10), 0);
}

static void silent_peer_is_told_and_closed(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_connect(&daemon_, &client);
    assert_refused(&client, "Hello");
    rw_daemon_disconnect(&client);
}

static void peer_that_said_hello_may_be_silent(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    usleep(700000); // more than twice the time limit of Hello
    assert_ping(&client);
    rw_daemon_disconnect(&client);
}

// ---- Framing errors ----

static void assert_header_refused(const uint8_t header[8], const char* word) {
    rw_daemon_client client, other;
    rw_daemon_greet(&daemon_, &other);
    rw_daemon_greet(&daemon_, &client);
    assert_true(rw_daemon_send_bytes(&client, header, 8));
    assert_refused(&client, word);
    rw_daemon_disconnect(&client);
    assert_ping(&other); // nobody else notices
    rw_daemon_disconnect(&other);
}

static void length_zero_is_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){0, 0, 0, 0, 1, 0, 0, 0}, "length");
}

static void length_of_all_ones_is_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){255, 255, 255, 255, 1, 0, 0, 0}, "length");
}

static void length_over_the_limit_is_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){1, 0, 16, 0, 1, 0, 0, 0}, "length");
}

static void unknown_kind_is_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){4, 0, 0, 0, 9, 0, 0, 0}, "kind");
}

static void reserved_bits_are_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){4, 0, 0, 0, 1, 0, 1, 0}, "reserved");
    assert_header_refused((const uint8_t[]){4, 0, 0, 0, 1, 128, 0, 0}, "flag");
}

static void a_response_from_a_client_is_a_framing_error(void** state) {
    (void)state;
    assert_header_refused((const uint8_t[]){4, 0, 0, 0, 2, 0, 0, 0}, "request");
}

static void long_frame_before_hello_is_a_framing_error(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_connect(&daemon_, &client);
    uint8_t header[8] = {0, 0, 2, 0, 1, 0, 0, 0}; // 128 KiB: fine after Hello
    rw_daemon_send_bytes(&client, header, 8);
    assert_refused(&client, "length");
    rw_daemon_disconnect(&client);
}

static void event_arrives_although_the_peer_goes_on_sending(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    static uint8_t rubbish[256 * 1024];
    memset(rubbish, 0xff, sizeof rubbish);
    rw_daemon_send_bytes(&client, rubbish, sizeof rubbish);
    assert_refused(&client, "");
    rw_daemon_disconnect(&client);
}

// ---- Odd ways to send good frames ----

static void one_byte_at_a_time_is_understood(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    rw_pb_Request request = ping_request(5);
    client.out.size_bytes = 0;
    uint64_t id = rw_daemon_append(&client, &client.out, &request);
    for (size_t i = 0; i < client.out.size_bytes; i++) {
        rw_daemon_send_bytes(&client, client.out.data + i, 1);
        usleep(500);
    }
    rw_pb_Response response;
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.result.ping.payload, 5);
    rw_daemon_disconnect(&client);
}

static void ten_thousand_messages_in_one_write_are_answered_in_order(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    rw_buffer all;
    rw_buffer_init(&all, &client.alloc);
    uint64_t first = client.next_id;
    for (int i = 0; i < 10000; i++) {
        rw_pb_Request request = ping_request((uint64_t)i);
        rw_daemon_append(&client, &all, &request);
    }
    assert_true(rw_daemon_send_bytes(&client, all.data, all.size_bytes));
    for (int i = 0; i < 10000; i++) {
        rw_pb_Response response;
        rw_daemon_wait(&client, first + (uint64_t)i, &response);
        assert_int_equal(response.result.ping.payload, i);
    }
    rw_buffer_finish(&all);
    rw_daemon_disconnect(&client);
}

static void ten_thousand_steps_in_one_write_are_answered_in_order(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "pipeline");
    rw_daemon_load_bodies(&client, session, 3);
    rw_buffer all;
    rw_buffer_init(&all, &client.alloc);
    uint64_t first = client.next_id;
    for (int i = 0; i < 10000; i++) { // ten times what may be open at once
        rw_pb_Request request = rw_pb_Request_init_zero;
        request.session = session;
        request.which_command = rw_pb_Request_step_tag;
        rw_daemon_append(&client, &all, &request);
    }
    assert_true(rw_daemon_send_bytes(&client, all.data, all.size_bytes));
    for (int i = 0; i < 10000; i++) {
        rw_pb_Response response;
        rw_daemon_wait(&client, first + (uint64_t)i, &response);
        assert_int_equal(response.status, rw_pb_Status_Code_OK);
        assert_int_equal(response.step, i + 1);
    }
    rw_buffer_finish(&all);
    rw_daemon_disconnect(&client);
}

static void client_killed_in_the_middle_of_a_message_harms_nobody(void** state) {
    (void)state;
    rw_daemon_client other;
    rw_daemon_greet(&daemon_, &other);
    uint64_t session = rw_daemon_create_session(&other, "bystander");
    rw_daemon_load_bodies(&other, session, 2);
    rw_daemon_step(&other, session, 10);
    uint64_t hash = rw_daemon_hash(&other, session);
    for (int i = 0; i < 20; i++) {
        rw_daemon_client client;
        rw_daemon_greet(&daemon_, &client);
        rw_pb_Request request = ping_request(7);
        client.out.size_bytes = 0;
        rw_daemon_append(&client, &client.out, &request);
        if (i % 2 == 0) { // in the middle of a large one
            uint8_t header[8] = {0, 0, 8, 0, 1, 0, 0, 0};
            static uint8_t part[100000];
            rw_daemon_send_bytes(&client, header, 8);
            rw_daemon_send_bytes(&client, part, sizeof part);
        } else {
            rw_daemon_send_bytes(&client, client.out.data, client.out.size_bytes / 2);
        }
        struct linger reset = {.l_onoff = 1}; // as when the process dies: a reset
        setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        rw_daemon_disconnect(&client);
    }
    assert_int_equal(rw_daemon_hash(&other, session), hash);
    assert_ping(&other);
    rw_daemon_disconnect(&other);
}

static void large_message_in_small_pieces_is_understood(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "large");
    rw_daemon_load_bodies(&client, session, 2000); // some 300 KB: pieces, unpacked on a worker
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_step_tag;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    rw_daemon_disconnect(&client);
}

// ---- Compression ----

// Sends a request as one zstd frame.
static uint64_t send_compressed(rw_daemon_client* client, rw_pb_Request* request) {
    client->out.size_bytes = 0;
    uint64_t id = rw_daemon_append(client, &client->out, request);
    static uint8_t packed[1 << 20];
    size_t size = ZSTD_compress(packed + 8, sizeof packed - 8,
                                client->out.data + RW_FRAME_HEADER_BYTES,
                                client->out.size_bytes - RW_FRAME_HEADER_BYTES, 1);
    rw_frame_write_header(packed, (rw_frame_header){.payload_bytes = (uint32_t)size,
                                                    .kind = RW_FRAME_REQUEST,
                                                    .flags = RW_FRAME_ZSTD});
    rw_daemon_send_bytes(client, packed, size + 8);
    return id;
}

static void compressed_requests_are_understood_in_order(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "packed");
    rw_daemon_load_bodies(&client, session, 2);
    uint64_t ids[20];
    for (int i = 0; i < 20; i++) { // packed and plain in turn
        rw_pb_Request request = rw_pb_Request_init_zero;
        request.session = session;
        request.which_command = rw_pb_Request_step_tag;
        ids[i] = i % 2 == 0 ? send_compressed(&client, &request) : rw_daemon_send(&client, &request);
    }
    for (int i = 0; i < 20; i++) {
        rw_daemon_wait(&client, ids[i], &response);
        assert_int_equal(response.status, rw_pb_Status_Code_OK);
        assert_int_equal(response.step, i + 1);
    }
    rw_daemon_disconnect(&client);
}

static void what_unpacks_to_too_much_or_to_rubbish_is_refused(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    // Two megabytes of zeros in some hundred bytes.
    static uint8_t zeros[2 << 20];
    uint8_t packed[4096];
    size_t size = ZSTD_compress(packed + 8, sizeof packed - 8, zeros, sizeof zeros, 1);
    rw_frame_header header = {
        .payload_bytes = (uint32_t)size, .kind = RW_FRAME_REQUEST, .flags = RW_FRAME_ZSTD};
    rw_frame_write_header(packed, header);
    rw_daemon_send_bytes(&client, packed, size + 8);
    rw_daemon_wait(&client, 0, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_INVALID_ARGUMENT);

    memset(packed + 8, 0xa5, 100);
    header.payload_bytes = 100;
    rw_frame_write_header(packed, header);
    rw_daemon_send_bytes(&client, packed, 108);
    rw_daemon_wait(&client, 0, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_ping(&client); // framed but bad: the link stays
    rw_daemon_disconnect(&client);
}

// ---- Framed but bad messages ----

static rw_pb_Status_Code send_payload(rw_daemon_client* client, const void* payload, size_t size,
                                      uint64_t id, rw_pb_Response* response) {
    uint8_t frame[512];
    rw_frame_write_header(frame, (rw_frame_header){.payload_bytes = (uint32_t)size,
                                                   .kind = RW_FRAME_REQUEST});
    memcpy(frame + 8, payload, size);
    rw_daemon_send_bytes(client, frame, size + 8);
    rw_daemon_wait(client, id, response);
    return response->status;
}

static void unknown_fields_are_ignored(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    // id 9; field 900 (varint 1); ping {payload 3, field 15 "x"}
    uint8_t payload[] = {0x08, 9, 0xa0, 0x38, 1, 0x5a, 5, 0x08, 3, 0x7a, 1, 'x'};
    assert_int_equal(send_payload(&client, payload, sizeof payload, 9, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(response.result.ping.payload, 3);
    rw_daemon_disconnect(&client);
}

static void unknown_command_answers_unimplemented(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint8_t payload[] = {0x08, 9, 0x9a, 0x06, 0}; // id 9, field 99: {}
    assert_int_equal(send_payload(&client, payload, sizeof payload, 9, &response),
                     rw_pb_Status_Code_UNIMPLEMENTED);
    assert_ping(&client);
    rw_daemon_disconnect(&client);
}

static void damaged_message_answers_invalid_argument_and_the_link_stays(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint8_t lying[] = {0x08, 9, 0x5a, 100, 1}; // a ping of 100 bytes in 1
    assert_int_equal(send_payload(&client, lying, sizeof lying, 9, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    uint8_t no_id[] = {0x5a, 0};
    assert_int_equal(send_payload(&client, no_id, sizeof no_id, 0, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "request_id");
    assert_ping(&client);
    rw_daemon_disconnect(&client);
}

static void id_of_an_open_request_is_refused(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "twice");
    rw_daemon_load_bodies(&client, session, 2);
    rw_pb_Request step = rw_pb_Request_init_zero;
    step.session = session;
    step.which_command = rw_pb_Request_step_tag;
    step.command.step.which_amount = rw_pb_Step_count_tag;
    step.command.step.amount.count = 4000000000u;
    uint64_t id = rw_daemon_send(&client, &step);
    rw_pb_Request again = ping_request(1);
    again.request_id = id;
    rw_daemon_send(&client, &again);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "request_id");
    rw_daemon_disconnect(&client);
}

static void requests_without_a_session_say_so(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.which_command = rw_pb_Request_step_tag;
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    request.session = 12345;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    rw_daemon_disconnect(&client);
}

// ---- Flow control ----

typedef struct writer {
    rw_daemon_client* client;
    rw_buffer bytes;
} writer;

static void* write_all(void* argument) {
    writer* self = argument;
    rw_daemon_send_bytes(self->client, self->bytes.data, self->bytes.size_bytes);
    return NULL;
}

static void who_does_not_read_stops_being_read(void** state) {
    (void)state;
    enum { COUNT = 10000 };
    rw_daemon_client client, other;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    uint64_t session = rw_daemon_create_session(&client, "deaf");
    rw_daemon_load_bodies(&client, session, 100);
    // Every answer has some 40 KB: 400 MB, of which at most 1,024 answers may wait in the daemon.
    rw_pb_Request request = rw_pb_Request_init_zero;
    const char* all = "body/*/*";
    request.session = session;
    request.which_command = rw_pb_Request_query_tag;
    request.command.query.which_question = rw_pb_Query_signals_tag;
    request.command.query.question.signals.signals = rw_wire_from_strings(&all, 1);
    writer many = {.client = &client};
    rw_buffer_init(&many.bytes, &client.alloc);
    uint64_t first = client.next_id;
    for (int i = 0; i < COUNT; i++) {
        request.request_id = 0;
        rw_daemon_append(&client, &many.bytes, &request);
    }
    size_t before = rw_daemon_resident_bytes(&daemon_);
    pthread_t thread;
    pthread_create(&thread, NULL, write_all, &many);
    usleep(1500000);
    assert_ping(&other);
    size_t after = rw_daemon_resident_bytes(&daemon_);
    if (after > before + (160u << 20)) {
        fail_msg("the daemon grew by %zu bytes for a deaf client", after - before);
    }
    size_t answered = 0;
    for (int i = 0; i < COUNT; i++) { // nothing is lost, nothing out of order
        rw_pb_Response response;
        rw_daemon_wait(&client, first + (uint64_t)i, &response);
        assert_int_equal(response.status, rw_pb_Status_Code_OK);
        answered += response.result.query.answer.signals.values.count * sizeof(double);
    }
    assert_true(answered > (size_t)100 << 20);
    pthread_join(thread, NULL);
    rw_buffer_finish(&many.bytes);
    rw_daemon_disconnect(&client);
    rw_daemon_disconnect(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_tells_version_limits_and_features),
        cmocka_unit_test(wrong_major_is_refused_with_both_versions_and_the_link_stays),
        cmocka_unit_test(nothing_is_served_before_hello),
        cmocka_unit_test(token_is_asked_for),
        cmocka_unit_test(silent_peer_is_told_and_closed),
        cmocka_unit_test(peer_that_said_hello_may_be_silent),
        cmocka_unit_test(length_zero_is_a_framing_error),
        cmocka_unit_test(length_of_all_ones_is_a_framing_error),
        cmocka_unit_test(length_over_the_limit_is_a_framing_error),
        cmocka_unit_test(unknown_kind_is_a_framing_error),
        cmocka_unit_test(reserved_bits_are_a_framing_error),
        cmocka_unit_test(a_response_from_a_client_is_a_framing_error),
        cmocka_unit_test(long_frame_before_hello_is_a_framing_error),
        cmocka_unit_test(event_arrives_although_the_peer_goes_on_sending),
        cmocka_unit_test(one_byte_at_a_time_is_understood),
        cmocka_unit_test(ten_thousand_messages_in_one_write_are_answered_in_order),
        cmocka_unit_test(ten_thousand_steps_in_one_write_are_answered_in_order),
        cmocka_unit_test(client_killed_in_the_middle_of_a_message_harms_nobody),
        cmocka_unit_test(large_message_in_small_pieces_is_understood),
        cmocka_unit_test(compressed_requests_are_understood_in_order),
        cmocka_unit_test(what_unpacks_to_too_much_or_to_rubbish_is_refused),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(unknown_command_answers_unimplemented),
        cmocka_unit_test(damaged_message_answers_invalid_argument_and_the_link_stays),
        cmocka_unit_test(id_of_an_open_request_is_refused),
        cmocka_unit_test(requests_without_a_session_say_so),
        cmocka_unit_test(who_does_not_read_stops_being_read),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
