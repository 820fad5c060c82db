// The hand-written codecs write and read the same bytes as the general way.
#include "tests/support/rw_test.h"

#include "proto/frame.h"
#include "proto/hot_message.h"
#include "proto/message.h"

static rw_alloc alloc;

static void append_general(rw_buffer* out, const rw_pb_Response* response) {
    size_t start = out->size_bytes;
    assert_int_equal(rw_buffer_append(out, NULL, RW_FRAME_HEADER_BYTES), RW_STATUS_OK);
    assert_int_equal(rw_message_append_response(out, response), RW_STATUS_OK);
    assert_int_equal(rw_frame_close(out, start, RW_FRAME_RESPONSE, NULL, 0), RW_STATUS_OK);
}

static const uint64_t NUMBERS[] = {0, 1, 127, 128, 300, 1u << 20, UINT32_MAX, UINT64_MAX};
enum { NUMBER_COUNT = sizeof NUMBERS / sizeof NUMBERS[0] };

static void ping_answers_are_the_same_bytes(void** state) {
    (void)state;
    for (int i = 1; i < NUMBER_COUNT; i++) {
        for (int k = 0; k < NUMBER_COUNT; k++) {
            uint8_t hot[RW_HOT_MESSAGE_PING_BYTES];
            size_t size = rw_hot_message_write_ping(hot, NUMBERS[i], NUMBERS[k], NUMBERS[k] / 3);
            rw_pb_Response response = rw_pb_Response_init_zero;
            response.request_id = NUMBERS[i];
            response.which_result = rw_pb_Response_ping_tag;
            response.result.ping.payload = NUMBERS[k];
            response.result.ping.server_time_ns = NUMBERS[k] / 3;
            rw_buffer general;
            rw_buffer_init(&general, &alloc);
            append_general(&general, &response);
            assert_int_equal(size, general.size_bytes);
            assert_memory_equal(hot, general.data, size);
            rw_buffer_finish(&general);
        }
    }
}

static void advance_and_step_answers_are_the_same_bytes(void** state) {
    (void)state;
    double values[40];
    for (int i = 0; i < 40; i++) {
        values[i] = 1.0 / (i + 1);
    }
    for (int k = 0; k < NUMBER_COUNT; k++) {
        for (size_t count = 0; count <= 40; count += 20) {
            rw_hot_message_done done = {.request_id = NUMBERS[k] | 1,
                                        .steps_done = (uint32_t)NUMBERS[k],
                                        .step = NUMBERS[k],
                                        .time = 0.25 * k};
            rw_buffer hot, general;
            rw_buffer_init(&hot, &alloc);
            rw_buffer_init(&general, &alloc);
            assert_int_equal(rw_hot_message_append_advance(&hot, &done, values, count,
                                                           (uint32_t)(count / 20)),
                             RW_STATUS_OK);
            assert_int_equal(rw_hot_message_append_step(&hot, &done, 0.5 * k), RW_STATUS_OK);
            rw_pb_Response response = rw_pb_Response_init_zero;
            response.request_id = done.request_id;
            response.steps_done = done.steps_done;
            response.has_step = response.has_time = true;
            response.step = done.step;
            response.time = done.time;
            response.which_result = rw_pb_Response_advance_tag;
            response.result.advance.values = rw_wire_from_f64(values, count);
            response.result.advance.rows = (uint32_t)(count / 20);
            append_general(&general, &response);
            response.which_result = rw_pb_Response_step_result_tag;
            memset(&response.result, 0, sizeof response.result);
            response.result.step_result.wall_s = 0.5 * k;
            append_general(&general, &response);
            assert_int_equal(hot.size_bytes, general.size_bytes);
            assert_memory_equal(hot.data, general.data, hot.size_bytes);
            rw_buffer_finish(&hot);
            rw_buffer_finish(&general);
        }
    }
}

static void requests_are_read_as_the_general_way_reads_them(void** state) {
    (void)state;
    double inputs[7] = {1, 2, 3, 4, 5, 6, 7};
    for (int k = 1; k < NUMBER_COUNT; k++) {
        rw_pb_Request request = rw_pb_Request_init_zero;
        request.request_id = NUMBERS[k];
        request.session = NUMBERS[k] * 7;
        request.deadline_ms = (uint32_t)NUMBERS[k];
        request.has_expected_step = k % 2 == 0;
        request.expected_step = request.has_expected_step ? NUMBERS[k] : 0;
        request.which_command = rw_pb_Request_advance_tag;
        rw_pb_Advance* advance = &request.command.advance;
        advance->actuate = NUMBERS[k];
        advance->inputs = rw_wire_from_f64(inputs, k % 3 == 0 ? 0 : 7);
        advance->has_steps = k % 2 == 1;
        advance->steps = (uint32_t)k;
        advance->observe = NUMBERS[k] - 1;
        advance->every = (uint32_t)k / 2;
        rw_buffer bytes;
        rw_buffer_init(&bytes, &alloc);
        assert_int_equal(rw_message_append_request(&bytes, &request), RW_STATUS_OK);
        rw_hot_message_envelope envelope;
        rw_hot_message_advance hot;
        assert_true(rw_hot_message_read_envelope(bytes.data, bytes.size_bytes, &envelope));
        assert_int_equal(envelope.request_id, request.request_id);
        assert_int_equal(envelope.session, request.session);
        assert_int_equal(envelope.deadline_ms, request.deadline_ms);
        assert_int_equal(envelope.has_expected_step, request.has_expected_step);
        assert_int_equal(envelope.expected_step, request.expected_step);
        assert_int_equal(envelope.command_tag, rw_pb_Request_advance_tag);
        assert_true(rw_hot_message_read_advance(envelope.command, envelope.command_size, &hot));
        assert_int_equal(hot.actuate, advance->actuate);
        assert_int_equal(hot.observe, advance->observe);
        assert_int_equal(hot.every, advance->every);
        assert_int_equal(hot.steps, advance->has_steps ? advance->steps : 1);
        assert_int_equal(hot.inputs.count, advance->inputs.count);
        for (uint32_t i = 0; i < hot.inputs.count; i++) {
            rw_assert_near(rw_wire_f64(hot.inputs, i), inputs[i], 0);
        }
        // Cut anywhere it is either refused or reads within the bytes.
        for (size_t size = 0; size < bytes.size_bytes; size++) {
            if (rw_hot_message_read_envelope(bytes.data, size, &envelope)) {
                assert_true(envelope.command + envelope.command_size <= bytes.data + size);
            }
        }
        rw_buffer_finish(&bytes);
    }
}

static void what_is_not_plain_is_left_to_the_general_way(void** state) {
    (void)state;
    rw_hot_message_envelope envelope;
    rw_hot_message_advance advance;
    rw_hot_message_step step;
    uint64_t payload;
    static const uint8_t UNKNOWN[] = {0x08, 9, 0xa0, 0x38, 1, 0x5a, 0};
    assert_false(rw_hot_message_read_envelope(UNKNOWN, sizeof UNKNOWN, &envelope));
    static const uint8_t TWO_COMMANDS[] = {0x08, 9, 0x5a, 0, 0x5a, 0};
    assert_false(rw_hot_message_read_envelope(TWO_COMMANDS, sizeof TWO_COMMANDS, &envelope));
    static const uint8_t LYING[] = {0x08, 9, 0x5a, 100, 1};
    assert_false(rw_hot_message_read_envelope(LYING, sizeof LYING, &envelope));
    static const uint8_t UNPACKED[] = {0x11, 0, 0, 0, 0, 0, 0, 0, 0}; // inputs: one by one
    assert_false(rw_hot_message_read_advance(UNPACKED, sizeof UNPACKED, &advance));
    static const uint8_t PIECES[] = {0x12, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 8, 0, 0, 0, 0, 0, 0, 0, 0};
    assert_false(rw_hot_message_read_advance(PIECES, sizeof PIECES, &advance));
    static const uint8_t BOTH[] = {0x08, 1, 0x11, 0, 0, 0, 0, 0, 0, 0, 0};
    assert_false(rw_hot_message_read_step(BOTH, sizeof BOTH, &step));
    static const uint8_t TOO_LARGE[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0x7f};
    assert_false(rw_hot_message_read_step(TOO_LARGE, sizeof TOO_LARGE, &step));
    static const uint8_t MORE[] = {0x08, 1, 0x10, 1};
    assert_false(rw_hot_message_read_ping(MORE, sizeof MORE, &payload));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ping_answers_are_the_same_bytes),
        cmocka_unit_test(advance_and_step_answers_are_the_same_bytes),
        cmocka_unit_test(requests_are_read_as_the_general_way_reads_them),
        cmocka_unit_test(what_is_not_plain_is_left_to_the_general_way),
    };
    rw_alloc_init(&alloc, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rw_alloc_finish(&alloc);
    return failed;
}
