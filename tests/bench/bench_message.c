// What messages cost: decoding (the border's check included) and encoding of Ping and of an Advance
// of seven doubles in and fourteen out, beside memcpy of the same bytes; and decoding a scene of
// 100,000 bodies. Times are the best of many runs.
#include <stdio.h>
#include <string.h>

#include "proto/message.h"
#include "solvers/base/clock.h"

enum { RUNS = 30, ROUNDS = 20000 };

typedef struct bench {
    rw_arena arena;
    rw_buffer bytes; // the message
    rw_buffer out;
    rw_pb_Request request;
    rw_pb_Response response;
    rw_pb_Request decoded_request;
    rw_pb_Response decoded_response;
    rw_error error;
} bench;

static void decode_request(bench* b) {
    rw_message_decode_request(b->bytes.data, b->bytes.size_bytes, &b->arena, &b->decoded_request,
                              &b->error);
}

static void decode_response(bench* b) {
    rw_message_decode_response(b->bytes.data, b->bytes.size_bytes, &b->arena, &b->decoded_response,
                               &b->error);
}

static void encode_request(bench* b) {
    b->out.size_bytes = 0;
    rw_message_append_request(&b->out, &b->request);
}

static void encode_response(bench* b) {
    b->out.size_bytes = 0;
    rw_message_append_response(&b->out, &b->response);
}

static void copy_bytes(bench* b) {
    b->out.size_bytes = 0;
    rw_buffer_append(&b->out, b->bytes.data, b->bytes.size_bytes);
}

// Nanoseconds per call.
static double measure(bench* b, void (*work)(bench*), int rounds, int runs) {
    double best = 1e300;
    for (int run = 0; run < runs; run++) {
        int64_t start = rw_clock_now_ns();
        for (int i = 0; i < rounds; i++) {
            work(b);
        }
        double each = (double)(rw_clock_now_ns() - start) / rounds;
        best = each < best ? each : best;
    }
    return best;
}

static void report(const char* name, double value, double baseline) {
    printf("{\"name\": \"message/%s\", \"value\": %.4g, \"unit\": \"ns\", \"baseline\": %.4g, "
           "\"ratio\": %.4g}\n",
           name, value, baseline, value / baseline);
}

static void run_command(bench* b, const char* name) {
    char text[64];
    b->bytes.size_bytes = 0;
    rw_message_append_request(&b->bytes, &b->request);
    double copy = measure(b, copy_bytes, ROUNDS, RUNS);
    snprintf(text, sizeof text, "%s/decode_request", name);
    report(text, measure(b, decode_request, ROUNDS, RUNS), copy);
    snprintf(text, sizeof text, "%s/encode_request", name);
    report(text, measure(b, encode_request, ROUNDS, RUNS), copy);
    b->bytes.size_bytes = 0;
    rw_message_append_response(&b->bytes, &b->response);
    copy = measure(b, copy_bytes, ROUNDS, RUNS);
    snprintf(text, sizeof text, "%s/encode_response", name);
    report(text, measure(b, encode_response, ROUNDS, RUNS), copy);
    snprintf(text, sizeof text, "%s/decode_response", name);
    report(text, measure(b, decode_response, ROUNDS, RUNS), copy);
}

static bool fill_body(void* context, uint32_t index, void* item) {
    (void)context;
    rw_pb_Body* body = item;
    snprintf(body->name, sizeof body->name, "body%u", index);
    body->mass = 1;
    body->inertia_count = 6;
    body->inertia[0] = body->inertia[1] = body->inertia[2] = 0.1;
    body->position_count = 3;
    body->rotation_count = 4;
    body->rotation[0] = 1;
    return true;
}

static void decode_scene(bench* b) {
    decode_request(b);
    rw_wire_cursor cursor = rw_wire_begin(&b->decoded_request.command.load_scene.scene.bodies);
    rw_pb_Body body;
    while (rw_wire_next_message(&cursor, rw_pb_Body_fields, &body, sizeof body)) {
    }
}

int main(void) {
    static bench b;
    rw_alloc alloc;
    double values[14] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
    rw_alloc_init(&alloc, 0);
    rw_arena_init(&b.arena, &alloc);
    rw_buffer_init(&b.bytes, &alloc);
    rw_buffer_init(&b.out, &alloc);

    b.request = (rw_pb_Request){.request_id = 1000000, .which_command = rw_pb_Request_ping_tag,
                                .command.ping.payload = 1};
    b.response = (rw_pb_Response){.request_id = 1000000, .which_result = rw_pb_Response_ping_tag,
                                  .result.ping = {1, 123456789}};
    run_command(&b, "ping");

    b.request = (rw_pb_Request){.request_id = 1000000, .session = 1,
                                .which_command = rw_pb_Request_advance_tag,
                                .command.advance = {.actuate = 1, .observe = 2,
                                                    .inputs = rw_wire_from_f64(values, 7)}};
    b.response = (rw_pb_Response){.request_id = 1000000, .has_step = true, .step = 5,
                                  .has_time = true, .time = 0.005,
                                  .which_result = rw_pb_Response_advance_tag,
                                  .result.advance = {rw_wire_from_f64(values, 14), 1}};
    run_command(&b, "advance7");

    b.request = (rw_pb_Request){.request_id = 1, .which_command = rw_pb_Request_load_scene_tag};
    b.request.command.load_scene.has_scene = true;
    b.request.command.load_scene.scene.bodies =
        rw_wire_from_fill(fill_body, NULL, sizeof(rw_pb_Body), 100000);
    b.bytes.size_bytes = 0;
    rw_message_append_request(&b.bytes, &b.request);
    double copy = measure(&b, copy_bytes, 1, 10);
    report("scene_100k_bodies/decode", measure(&b, decode_scene, 1, 10), copy);
    return b.error.status != RW_STATUS_OK;
}
