// The C client against a server that plays a script: what a daemon does well, and what it should
// never do. (tests/integration has the real one.)
#include "tests/support/rw_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clients/c/ropewalk.h"
#include "proto/frame.h"
#include "proto/state_encoder.h"

// ---- The server ----

typedef struct peer {
    int listener;
    char address[128];
    pthread_t thread;
    int socket;
    rw_alloc alloc;
    rw_frame_reader reader;
    rw_buffer out;
    ZSTD_DCtx* unpacker;
    rw_buffer scratch;
    rw_arena arena;
    rw_pb_Request request;
    void (*play)(struct peer*);
    uint64_t seen; // for the tests
} peer;

// Waits for the next request; false when the client has gone.
static bool peer_receive(peer* p) {
    rw_frame_view frame;
    rw_frame_event event;
    while ((event = rw_frame_read(&p->reader, &frame)) == RW_FRAME_MORE) {
        size_t space;
        uint8_t* room = rw_frame_reader_space(&p->reader, 65536, &space);
        ssize_t got = recv(p->socket, room, space, 0);
        if (got <= 0) {
            return false;
        }
        rw_frame_reader_received(&p->reader, (size_t)got);
    }
    const uint8_t* bytes;
    size_t size;
    rw_error error;
    rw_arena_reset(&p->arena);
    return event == RW_FRAME_READY && frame.header.kind == RW_FRAME_REQUEST &&
           rw_frame_payload(&frame, p->unpacker, 1 << 24, &p->scratch, &bytes, &size, &error) ==
               RW_STATUS_OK &&
           rw_message_decode_request(bytes, size, &p->arena, &p->request, &error) == RW_STATUS_OK;
}

static void peer_flush(peer* p) {
    for (size_t at = 0; at < p->out.size_bytes;) {
        ssize_t sent = send(p->socket, p->out.data + at, p->out.size_bytes - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            break;
        }
        at += (size_t)sent;
    }
    p->out.size_bytes = 0;
}

static void peer_answer(peer* p, rw_pb_Response response) {
    size_t start = p->out.size_bytes;
    response.request_id = response.request_id != 0 ? response.request_id : p->request.request_id;
    rw_buffer_append(&p->out, NULL, RW_FRAME_HEADER_BYTES);
    rw_message_append_response(&p->out, &response);
    rw_frame_close(&p->out, start, RW_FRAME_RESPONSE, NULL, 0);
}

static void peer_event(peer* p, rw_pb_Event event) {
    size_t start = p->out.size_bytes;
    rw_buffer_append(&p->out, NULL, RW_FRAME_HEADER_BYTES);
    rw_message_append_event(&p->out, &event);
    rw_frame_close(&p->out, start, RW_FRAME_EVENT, NULL, 0);
}

static void peer_state(peer* p, rw_pb_StateFrame state) {
    size_t start = p->out.size_bytes;
    rw_buffer_append(&p->out, NULL, RW_FRAME_HEADER_BYTES);
    rw_message_append_state(&p->out, &state);
    rw_frame_close(&p->out, start, RW_FRAME_STATE, NULL, 0);
}

static void peer_answer_hello(peer* p) {
    rw_pb_Response hello = {.which_result = rw_pb_Response_hello_tag,
                            .result.hello = {.major = 1, .server_version = "0.1.0",
                                             .has_limits = true, .limits.max_message = 1 << 20}};
    peer_answer(p, hello);
    peer_flush(p);
}

static void* peer_main(void* argument) {
    peer* p = argument;
    p->socket = accept(p->listener, NULL, NULL);
    if (p->socket >= 0 && peer_receive(p)) {
        p->play(p);
    }
    peer_flush(p);
    close(p->socket);
    return NULL;
}

static void peer_start(peer* p, void (*play)(peer*)) {
    *p = (peer){.play = play, .socket = -1};
    rw_alloc_init(&p->alloc, 0);
    rw_frame_reader_init(&p->reader, &p->alloc, 1 << 24);
    rw_buffer_init(&p->out, &p->alloc);
    rw_buffer_init(&p->scratch, &p->alloc);
    rw_arena_init(&p->arena, &p->alloc);
    p->unpacker = ZSTD_createDCtx();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/rw_link_XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    snprintf(p->address, sizeof p->address, "unix:%s", address.sun_path);
    p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr*)&address, sizeof address), 0);
    assert_int_equal(listen(p->listener, 1), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, peer_main, p), 0);
}

static void peer_stop(peer* p) {
    pthread_join(p->thread, NULL);
    close(p->listener);
    unlink(p->address + 5);
    *strrchr(p->address, '/') = '\0';
    rmdir(p->address + 5);
    rw_frame_reader_finish(&p->reader);
    rw_buffer_finish(&p->out);
    rw_buffer_finish(&p->scratch);
    rw_arena_finish(&p->arena);
    ZSTD_freeDCtx(p->unpacker);
    rw_alloc_finish(&p->alloc);
}

static rw_link* connect_to(peer* p) {
    rw_error error = {0};
    rw_link* link;
    rw_link_config config = {.address = p->address, .token = "secret", .timeout_s = 20};
    if (rw_link_connect(&config, &link, &error) != RW_STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return link;
}

// ---- Hello ----

static void play_hello(peer* p) {
    p->seen = strcmp(p->request.command.hello.token, "secret") == 0 &&
              p->request.command.hello.major == 1;
    peer_answer_hello(p);
}

static void hello_carries_the_token_and_brings_the_limits(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_hello);
    rw_link* link = connect_to(&p);
    assert_string_equal(rw_link_hello(link)->server_version, "0.1.0");
    assert_int_equal(rw_link_hello(link)->limits.max_message, 1 << 20);
    rw_link_close(link);
    peer_stop(&p);
    assert_int_equal(p.seen, 1);
}

static void play_refusal(peer* p) {
    rw_error error = {.status = RW_STATUS_FAILED_PRECONDITION, .path = "major",
                      .text = "this server speaks 2.0, the client 1.0"};
    rw_pb_Response response;
    rw_message_fail(&response, p->request.request_id, &error);
    peer_answer(p, response);
}

static void a_refused_hello_is_the_error_of_connect(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_refusal);
    rw_error error;
    rw_link* link;
    rw_link_config config = {.address = p.address};
    assert_int_equal(rw_link_connect(&config, &link, &error), RW_STATUS_FAILED_PRECONDITION);
    assert_null(link);
    assert_string_equal(error.path, "major");
    assert_non_null(strstr(error.text, "speaks 2.0"));
    peer_stop(&p);
}

static void addresses_that_lead_nowhere_are_told(void** state) {
    (void)state;
    static const struct {
        const char* address;
        rw_status status;
    } cases[] = {{"unix:/nonexistent/socket", RW_STATUS_UNAVAILABLE},
                 {"127.0.0.1:1", RW_STATUS_UNAVAILABLE},
                 {"[::1]:1", RW_STATUS_UNAVAILABLE},
                 {"no port here", RW_STATUS_INVALID_ARGUMENT},
                 {"host:", RW_STATUS_INVALID_ARGUMENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rw_error error;
        rw_link* link;
        rw_link_config config = {.address = cases[i].address};
        assert_int_equal(rw_link_connect(&config, &link, &error), cases[i].status);
        assert_string_equal(error.path, "address");
        assert_null(link);
    }
}

// ---- Calls ----

static void play_advance(peer* p) {
    peer_answer_hello(p);
    while (peer_receive(p)) {
        rw_wire_array inputs = p->request.command.advance.inputs;
        double outputs[2] = {0, (double)p->request.session};
        for (uint32_t i = 0; i < inputs.count; i++) {
            outputs[0] += rw_wire_f64(inputs, i);
        }
        rw_pb_Event news = {.which_kind = rw_pb_Event_draining_tag};
        peer_event(p, news); // comes between: must not be taken for the answer
        rw_pb_Response response = {.has_step = true, .step = ++p->seen, .has_time = true,
                                   .time = (double)p->seen * 0.001};
        response.which_result = rw_pb_Response_advance_tag;
        response.result.advance.values = rw_wire_from_f64(outputs, 2);
        peer_answer(p, response);
        peer_flush(p);
    }
}

static void advance_takes_doubles_and_brings_doubles(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_advance);
    rw_link* link = connect_to(&p);
    rw_remote remote = {.link = link, .session = 77};
    rw_error error;
    double inputs[3] = {1, 2, 3.5}, outputs[2];
    for (uint64_t step = 1; step <= 50; step++) {
        inputs[0] = (double)step;
        assert_int_equal(rw_remote_advance(&remote, 1, inputs, 3, 1, 2, outputs, 2, &error),
                         RW_STATUS_OK);
        assert_true(outputs[0] == (double)step + 5.5 && outputs[1] == 77);
        assert_int_equal(remote.step, step);
    }
    assert_int_equal(rw_remote_advance(&remote, 1, inputs, 3, 1, 2, outputs, 1, &error),
                     RW_STATUS_OUT_OF_RANGE);
    rw_link_message message; // the events were kept
    for (int i = 0; i < 51; i++) {
        assert_int_equal(rw_link_receive(link, 0, &message, &error), RW_STATUS_OK);
        assert_int_equal(message.kind, RW_LINK_EVENT);
    }
    assert_int_equal(rw_link_receive(link, 0.01, &message, &error), RW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(rw_remote_advance(&remote, 1, inputs, 3, 1, 2, outputs, 2, &error), // unharmed
                     RW_STATUS_OK);
    rw_link_close(link);
    peer_stop(&p);
}

static void play_failure(peer* p) {
    peer_answer_hello(p);
    while (peer_receive(p)) {
        rw_error error = {.status = RW_STATUS_NOT_FOUND, .path = "session", .text = "no such session"};
        rw_pb_Response response;
        rw_message_fail(&response, p->request.request_id, &error);
        peer_answer(p, response);
        peer_flush(p);
    }
}

static void an_answer_that_is_not_ok_is_the_calls_error(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_failure);
    rw_link* link = connect_to(&p);
    rw_remote remote;
    rw_error error;
    assert_int_equal(rw_remote_attach(link, "arm", true, &remote, &error), RW_STATUS_NOT_FOUND);
    assert_string_equal(error.path, "session");
    assert_string_equal(error.text, "no such session");
    rw_link_close(link);
    peer_stop(&p);
}

static void play_gone(peer* p) {
    peer_answer_hello(p);
    peer_receive(p);
    rw_buffer_append(&p->out, "\x20\0\0\0\x02\0\0\0half", 12);
}

static void a_lost_connection_is_unavailable_and_stays_so(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_gone);
    rw_link* link = connect_to(&p);
    rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag};
    rw_error error;
    for (int i = 0; i < 3; i++) {
        error = (rw_error){0};
        assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_UNAVAILABLE);
        assert_true(error.text[0] != '\0');
    }
    rw_link_close(link);
    peer_stop(&p);
}

static void play_silence(peer* p) {
    peer_answer_hello(p);
    while (peer_receive(p)) {
    }
}

static void silence_ends_a_call_in_time(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_silence);
    rw_link_config config = {.address = p.address, .timeout_s = 0.05, .spin_s = 0.001};
    rw_link* link;
    rw_error error;
    assert_int_equal(rw_link_connect(&config, &link, &error), RW_STATUS_OK);
    rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag};
    assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_DEADLINE_EXCEEDED);
    assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_DEADLINE_EXCEEDED);
    rw_link_close(link);
    peer_stop(&p);
}

static void play_nonsense(peer* p) {
    peer_answer_hello(p);
    peer_receive(p);
    rw_buffer_append(&p->out, "\x01\0\0\0\x09\0\0\0x", 9);
    peer_flush(p);
    peer_receive(p);
}

static void a_server_that_breaks_the_framing_is_data_loss(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_nonsense);
    rw_link* link = connect_to(&p);
    rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag};
    rw_error error;
    assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_DATA_LOSS);
    assert_non_null(strstr(error.text, "unknown frame kind 9"));
    rw_link_close(link);
    peer_stop(&p);
}

static void play_farewell(peer* p) {
    peer_answer_hello(p);
    peer_receive(p);
    rw_pb_Event event = {.which_kind = rw_pb_Event_protocol_error_tag,
                         .kind.protocol_error.reason = "frame length is zero"};
    peer_event(p, event);
}

static void a_protocol_error_event_is_told_to_the_caller(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_farewell);
    rw_link* link = connect_to(&p);
    rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag};
    rw_error error;
    assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_INTERNAL);
    assert_string_equal(error.text, "frame length is zero");
    rw_link_close(link);
    peer_stop(&p);
}

static void a_request_above_the_servers_limit_is_refused_at_home(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_silence);
    rw_link* link = connect_to(&p);
    enum { COUNT = 200000 };
    double* values = calloc(COUNT, sizeof *values);
    rw_pb_Request request = {.which_command = rw_pb_Request_advance_tag,
                             .command.advance.inputs = rw_wire_from_f64(values, COUNT)};
    rw_error error;
    assert_int_equal(rw_link_call(link, &request, NULL, &error), RW_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "upload"));
    free(values);
    rw_link_close(link);
    peer_stop(&p);
}

// ---- Pipelining ----

// Like a daemon under flow control: does not read while an answer can't be written.
static void play_pipeline(peer* p) {
    static const double values[512];
    int small = 4096;
    setsockopt(p->socket, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    setsockopt(p->socket, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    peer_answer_hello(p);
    while (peer_receive(p)) {
        rw_pb_Response response = {.which_result = rw_pb_Response_advance_tag};
        response.result.advance.values = rw_wire_from_f64(values, 512);
        peer_answer(p, response);
        peer_flush(p); // blocks until the client reads
        p->seen++;
    }
}

static void a_long_pipeline_never_stands_still(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_pipeline);
    rw_link* link = connect_to(&p);
    enum { COUNT = 3000 };
    static const double inputs[128];
    rw_error error;
    uint64_t first = 0;
    for (int i = 0; i < COUNT; i++) { // 3 MB out against 12 MB in, all before the first receive
        rw_pb_Request request = {.which_command = rw_pb_Request_advance_tag,
                                 .command.advance.inputs = rw_wire_from_f64(inputs, 128)};
        assert_int_equal(rw_link_send(link, &request, &error), RW_STATUS_OK);
        first = i == 0 ? request.request_id : first;
    }
    for (int i = 0; i < COUNT; i++) {
        rw_link_message message;
        assert_int_equal(rw_link_receive(link, -1, &message, &error), RW_STATUS_OK);
        assert_int_equal(message.kind, RW_LINK_RESPONSE);
        assert_int_equal(message.as.response.request_id, first + (uint64_t)i);
        assert_int_equal(message.as.response.result.advance.values.count, 512);
    }
    rw_link_close(link);
    peer_stop(&p);
    assert_int_equal(p.seen, COUNT);
}

// ---- Large data ----

static uint32_t crc32_bitwise(const uint8_t* data, size_t size) { // the textbook's
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static void play_large(peer* p) {
    peer_answer_hello(p);
    enum { COUNT = 50000, CHUNK = 30000 };
    double* values = malloc(COUNT * sizeof *values);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    rw_buffer whole;
    rw_buffer_init(&whole, &p->alloc);
    while (peer_receive(p)) {
        rw_pb_Response response = {.request_id = p->request.request_id};
        if (p->request.which_command == rw_pb_Request_advance_tag) {
            response.which_result = rw_pb_Response_advance_tag;
            response.result.advance.values = rw_wire_from_f64(values, COUNT);
            whole.size_bytes = 0;
            rw_message_append_response(&whole, &response);
            response = (rw_pb_Response){.which_result = rw_pb_Response_large_tag};
            response.result.large = (rw_pb_LargeResult){
                .blob = 5, .bytes = whole.size_bytes, .max_chunk = CHUNK,
                .crc = crc32_bitwise(whole.data, whole.size_bytes) ^ (p->seen == 1 ? 1 : 0)};
        } else if (p->request.which_command == rw_pb_Request_download_chunk_tag) {
            size_t at = p->request.command.download_chunk.offset, left = whole.size_bytes - at;
            response.which_result = rw_pb_Response_download_chunk_tag;
            response.result.download_chunk.data =
                (rw_wire_bytes){whole.data + at, left < CHUNK ? left : CHUNK};
            p->seen += at == 0;
        }
        peer_answer(p, response);
        peer_flush(p);
    }
    rw_buffer_finish(&whole);
    free(values);
}

static void a_large_answer_is_fetched_in_chunks_and_checked(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_large);
    rw_link* link = connect_to(&p);
    rw_pb_Request request = {.which_command = rw_pb_Request_advance_tag};
    const rw_pb_Response* response;
    rw_error error;
    assert_int_equal(rw_link_call(link, &request, &response, &error), RW_STATUS_OK);
    assert_int_equal(response->which_result, rw_pb_Response_advance_tag);
    assert_int_equal(response->result.advance.values.count, 50000);
    for (uint32_t i = 0; i < 50000; i++) {
        assert_true(rw_wire_f64(response->result.advance.values, i) == i);
    }
    assert_int_equal(rw_link_call(link, &request, &response, &error), RW_STATUS_DATA_LOSS);
    rw_link_close(link);
    peer_stop(&p);
}

static void play_upload(peer* p) {
    peer_answer_hello(p);
    rw_buffer got;
    rw_buffer_init(&got, &p->alloc);
    uint32_t promised = 0;
    while (peer_receive(p)) {
        rw_pb_Response response = {.which_result = rw_pb_Response_upload_chunk_tag};
        if (p->request.which_command == rw_pb_Request_begin_upload_tag) {
            promised = p->request.command.begin_upload.crc;
            response.which_result = rw_pb_Response_begin_upload_tag;
            response.result.begin_upload = (rw_pb_BeginUploadResult){.blob = 9, .max_chunk = 1000};
        } else {
            rw_wire_bytes data = p->request.command.upload_chunk.data;
            if (p->request.command.upload_chunk.offset == got.size_bytes && data.size <= 1000) {
                rw_buffer_append(&got, data.data, data.size);
            }
        }
        peer_answer(p, response);
        peer_flush(p);
    }
    p->seen = got.size_bytes == 12345 && crc32_bitwise(got.data, got.size_bytes) == promised;
    rw_buffer_finish(&got);
}

static void an_upload_goes_in_chunks_with_its_checksum(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_upload);
    rw_link* link = connect_to(&p);
    uint8_t data[12345];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    uint64_t blob = 0;
    rw_error error;
    assert_int_equal(rw_link_upload(link, data, sizeof data, &blob, &error), RW_STATUS_OK);
    assert_int_equal(blob, 9);
    rw_link_close(link);
    peer_stop(&p);
    assert_int_equal(p.seen, 1);
}

// ---- Streams ----

enum { NODES = 21, FRAMES = 30 };

static void play_stream(peer* p) {
    peer_answer_hello(p);
    if (!peer_receive(p) || p->request.which_command != rw_pb_Request_subscribe_tag) {
        return;
    }
    rw_pb_Layout_Entry entry = {.kind = rw_pb_ObjectRef_Kind_ROD, .name = "cable", .id = 4,
                                .count = NODES, .stride = 1};
    rw_pb_Response response = {.which_result = rw_pb_Response_subscribe_tag};
    response.result.subscribe.subscription = 3;
    response.result.subscribe.group = 8;
    response.result.subscribe.has_layout = true;
    response.result.subscribe.layout.entries = RW_WIRE_FROM_ITEMS(&entry, 1);
    peer_answer(p, response);

    int32_t chain_start = 0;
    rw_state_encoder_track track = {.field = RW_STATE_CODEC_POSITION, .count = NODES,
                                    .chain_count = 1, .chain_starts = &chain_start};
    rw_state_encoder_options options = {.mode = RW_STATE_CODEC_LOSSLESS, .key_interval = 10,
                                        .fixed_keys = true};
    rw_state_encoder* encoder = NULL;
    rw_state_codec_workspace workspace;
    rw_error error;
    rw_state_codec_init_workspace(&workspace, &p->alloc);
    rw_state_encoder_create(&track, 1, &options, &p->alloc, &encoder, &error);
    double positions[NODES * 3];
    for (int i = 0; i < FRAMES; i++) {
        for (int k = 0; k < NODES * 3; k++) {
            positions[k] = k * 0.01 + i * 0.125;
        }
        rw_state_encoder_input input = {.data = positions};
        rw_state_encoder_frame frame;
        rw_state_encoder_stamp stamp = {.epoch = 1, .step = (uint64_t)i, .time = i * 0.001};
        rw_state_encoder_encode(encoder, &workspace, &stamp, &input, &frame, &error);
        if (i % 3 == 1 || i == 0) { // some are lost on the way, the first key among them
            continue;
        }
        rw_pb_StateFrame state = {.group = 8, .session = 2, .epoch = 1, .step = (uint64_t)i,
                                  .time = i * 0.001, .sequence = frame.sequence,
                                  .key_sequence = frame.key_sequence,
                                  .payload = {frame.data, frame.size_bytes}};
        peer_state(p, state);
    }
    rw_pb_Event closed = {.which_kind = rw_pb_Event_session_changed_tag};
    closed.kind.session_changed.state = rw_pb_SessionState_Kind_CLOSED;
    peer_event(p, closed);
    peer_flush(p);
    rw_state_encoder_destroy(encoder);
    rw_state_codec_finish_workspace(&workspace);
    peer_receive(p);
}

static void state_frames_arrive_as_arrays_whatever_was_lost(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_stream);
    rw_link* link = connect_to(&p);
    rw_remote remote = {.link = link, .session = 2};
    rw_watch* watch;
    rw_error error;
    uint64_t subscription;
    assert_int_equal(rw_watch_create(link, &watch, &error), RW_STATUS_OK);
    assert_int_equal(rw_remote_subscribe(&remote, &(rw_remote_stream){0}, watch, &subscription, &error),
                     RW_STATUS_OK);
    assert_int_equal(subscription, 3);
    // Keys are frames 0, 10, 20; frame 0 and every i % 3 == 1 are lost, so 10 is too: what follows 20
    // remains.
    for (int i = 20; i < FRAMES; i++) {
        if (i % 3 == 1) {
            continue;
        }
        rw_watch_frame frame;
        assert_int_equal(rw_watch_next(watch, 10, &frame, &error), RW_STATUS_OK);
        assert_int_equal(frame.step, i);
        assert_int_equal(frame.is_key, i == 20);
        assert_int_equal(frame.element_count, NODES);
        assert_null(frame.rotations);
        assert_int_equal(frame.entry_count, 1);
        assert_string_equal(frame.entries[0].name, "cable");
        for (int k = 0; k < NODES * 3; k++) {
            assert_true(frame.positions[k] == k * 0.01 + i * 0.125);
        }
    }
    rw_watch_frame frame;
    assert_int_equal(rw_watch_next(watch, 10, &frame, &error), RW_STATUS_CANCELLED);
    rw_watch_destroy(watch);
    rw_link_close(link);
    peer_stop(&p);
}

static void play_flood(peer* p) {
    peer_answer_hello(p);
    peer_receive(p);
    static uint8_t payload[10000];
    for (uint64_t i = 0; i < 100; i++) {
        rw_pb_StateFrame state = {.group = 1, .sequence = i, .payload = {payload, sizeof payload}};
        peer_state(p, state);
    }
    rw_pb_Response response = {.which_result = rw_pb_Response_ping_tag};
    peer_answer(p, response);
    peer_flush(p);
    peer_receive(p);
}

static void frames_nobody_fetches_take_bounded_memory(void** state) {
    (void)state;
    peer p;
    peer_start(&p, play_flood);
    rw_link_config config = {.address = p.address, .inbox_bytes = 105000};
    rw_link* link;
    rw_error error;
    assert_int_equal(rw_link_connect(&config, &link, &error), RW_STATUS_OK);
    rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag};
    assert_int_equal(rw_link_call(link, &ping, NULL, &error), RW_STATUS_OK);
    assert_int_equal(rw_link_dropped(link), 90);
    rw_link_message message;
    for (uint64_t i = 90; i < 100; i++) { // the newest remain, in order
        assert_int_equal(rw_link_receive(link, 0, &message, &error), RW_STATUS_OK);
        assert_int_equal(message.as.state.sequence, i);
    }
    rw_link_close(link);
    peer_stop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_carries_the_token_and_brings_the_limits),
        cmocka_unit_test(a_refused_hello_is_the_error_of_connect),
        cmocka_unit_test(addresses_that_lead_nowhere_are_told),
        cmocka_unit_test(advance_takes_doubles_and_brings_doubles),
        cmocka_unit_test(an_answer_that_is_not_ok_is_the_calls_error),
        cmocka_unit_test(a_lost_connection_is_unavailable_and_stays_so),
        cmocka_unit_test(silence_ends_a_call_in_time),
        cmocka_unit_test(a_server_that_breaks_the_framing_is_data_loss),
        cmocka_unit_test(a_protocol_error_event_is_told_to_the_caller),
        cmocka_unit_test(a_request_above_the_servers_limit_is_refused_at_home),
        cmocka_unit_test(a_long_pipeline_never_stands_still),
        cmocka_unit_test(a_large_answer_is_fetched_in_chunks_and_checked),
        cmocka_unit_test(an_upload_goes_in_chunks_with_its_checksum),
        cmocka_unit_test(state_frames_arrive_as_arrays_whatever_was_lost),
        cmocka_unit_test(frames_nobody_fetches_take_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
