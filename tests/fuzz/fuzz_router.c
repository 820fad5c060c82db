// Fuzzes the whole server behind the sockets: frames of requests go through the router into a real
// session on a real worker. The input is a list of payloads, each behind its length (u16). Whatever
// they are, each gets its answer, nothing hangs, and everything is given back.
//
// The bytes 11 01 00 00 01 00 00 00 00 (session 0x1000001) stand for the input's own session.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "server/dispatch/router.h"
#include "server/session/host.h"
#include "server/stream/subscribers.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// ---- A connection that only counts ----

typedef struct sink {
    int64_t responses;
    uint64_t session;
} sink;

static void count_frames(sink* self, const uint8_t* at, size_t left) {
    while (left > 0) {
        uint32_t payload;
        RW_CHECK(left >= RW_FRAME_HEADER_BYTES);
        memcpy(&payload, at, 4);
        RW_CHECK(payload > 0 && left - RW_FRAME_HEADER_BYTES >= payload);
        if (at[4] == RW_FRAME_RESPONSE) {
            self->responses++;
            // What the server says is a message that the border accepts.
            rw_alloc alloc;
            rw_arena arena;
            rw_pb_Response response;
            rw_error error;
            rw_alloc_init(&alloc, 0);
            rw_arena_init(&arena, &alloc);
            RW_CHECK(rw_message_decode_response(at + RW_FRAME_HEADER_BYTES, payload, &arena,
                                                &response, &error) == RW_STATUS_OK);
            if (response.which_result == rw_pb_Response_session_tag && self->session == 0) {
                self->session = response.result.session.id;
            }
            rw_arena_finish(&arena);
            rw_alloc_finish(&alloc);
        }
        at += RW_FRAME_HEADER_BYTES + payload;
        left -= RW_FRAME_HEADER_BYTES + payload;
    }
}

static void on_send(void* self, const void* bytes, size_t size) { count_frames(self, bytes, size); }

static void on_send_buffer(void* self, rw_buffer* bytes) {
    count_frames(self, bytes->data, bytes->size_bytes);
    bytes->size_bytes = 0;
}

static void on_send_frame(void* self, rw_stream_frame* frame, rw_subscriber* subscriber) {
    (void)self;
    rw_subscribers_done(subscriber, frame, true);
}

static void on_forget_frames(void* self, const rw_subscriber* subscriber) {
    (void)self;
    (void)subscriber;
}

static void on_resume(void* self) { (void)self; }

static const rw_client_link LINK = {.send = on_send,
                                    .send_buffer = on_send_buffer,
                                    .send_frame = on_send_frame,
                                    .forget_frames = on_forget_frames,
                                    .resume = on_resume};

// ---- The server ----

static rw_host host;

static void start(void) {
    static rw_config config;
    static bool is_started;
    rw_config_action action;
    rw_error error;
    char* argv[] = {(char*)(uintptr_t)"ropewalkd", (char*)(uintptr_t)"--session-memory",
                    (char*)(uintptr_t)"16M"};
    char* environment[] = {NULL};
    if (is_started) {
        return;
    }
    is_started = true;
    RW_CHECK(rw_config_read(&config, 3, argv, environment, &action, &error) == RW_STATUS_OK);
    config.workers = 1;
    config.max_sessions = 64;
    config.max_upload_bytes = 1 << 20;
    rw_log_set_up(RW_LOG_ERROR, RW_LOG_LOGFMT);
    RW_CHECK(rw_host_start(&host, &config, &error) == RW_STATUS_OK);
}

static void turn(void) {
    struct timespec moment = {.tv_nsec = 20000};
    rw_host_end_turn(&host);
    rw_host_deliver(&host);
    nanosleep(&moment, NULL);
}

// Until everything was answered. What takes long is cancelled, so a hang is a fault.
static void settle(rw_client* client) {
    int64_t begin_ns = rw_clock_now_ns();
    rw_host_end_turn(&host);
    rw_host_deliver(&host);
    while (client->open_count > 0 || client->is_fenced || host.ready_first != NULL) {
        turn();
        int64_t waited_ns = rw_clock_now_ns() - begin_ns;
        if (waited_ns > 3000000) {
            rw_host_cancel_all(&host);
        }
        RW_CHECK(waited_ns < 20000000000);
    }
}

static void accept(rw_client* client, uint8_t* payload, size_t size, uint64_t session) {
    static const uint8_t OWN[] = {0x11, 1, 0, 0, 1, 0, 0, 0, 0};
    uint8_t* own = memmem(payload, size, OWN, sizeof OWN);
    if (own != NULL) {
        memcpy(own + 1, &session, sizeof session);
    }
    if (rw_router_is_full(client)) {
        settle(client);
    }
    rw_router_message message = {.bytes = payload, .size_bytes = size};
    rw_router_accept(client, &message);
}

static void open_session(rw_client* client, sink* self) {
    static const uint8_t CREATE[] = {0x08, 1, 0xa2, 0x01, 0}; // id 1, CreateSession {}
    uint8_t bytes[sizeof CREATE];
    memcpy(bytes, CREATE, sizeof CREATE);
    accept(client, bytes, sizeof bytes, 0);
    settle(client);
    RW_CHECK(self->session != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    start();
    sink self = {0};
    rw_client* client = rw_client_create(&host, &LINK, &self);
    RW_CHECK(client != NULL);
    client->said_hello = true;
    open_session(client, &self);
    int64_t sent = 1;
    while (size > 2) {
        size_t length = (size_t)(data[0] | data[1] << 8);
        data += 2;
        size -= 2;
        length = length < size ? length : size;
        if (length == 0) {
            continue;
        }
        uint8_t* payload = malloc(length); // a read past its end is then seen
        memcpy(payload, data, length);
        accept(client, payload, length, self.session);
        free(payload);
        sent++;
        data += length;
        size -= length;
    }
    settle(client);
    RW_CHECK(self.responses == sent);
    rw_client_lose(client);
    while (host.sessions.count > 0 || host.open_tasks > 0) {
        for (int32_t i = 0; i < host.sessions.count; i++) {
            rw_host_close_session(&host, host.sessions.items[i], "end of input");
        }
        turn();
    }
    rw_host_tick(&host, rw_clock_now_ns());
    return 0;
}
