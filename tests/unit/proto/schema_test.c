#include "tests/support/rw_test.h"

#include <pb_common.h>

#include "proto/envelope.h"
#include "proto/message.h"
#include "proto/schema.h"

static const rw_schema_message* const all_messages[] = {
#define ROW(name) RW_SCHEMA(rw_pb_##name),
    RW_SCHEMA_MESSAGES(ROW)
#undef ROW
};
enum { MESSAGE_COUNT = sizeof all_messages / sizeof all_messages[0] };

static void status_codes_have_the_same_pinned_numbers_as_the_schema(void** state) {
    (void)state;
#define SAME(name, number)                                                                         \
    assert_int_equal(rw_pb_Status_Code_##name, number);                                            \
    assert_int_equal(RW_STATUS_##name, number);
    RW_STATUS_LIST(SAME)
#undef SAME
    int count = 0;
#define COUNT(name, number) count++;
    RW_STATUS_LIST(COUNT)
#undef COUNT
    assert_int_equal(count, _rw_pb_Status_Code_ARRAYSIZE); // none is missing in status.h
    static const char* const names[] = {
        "OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION",
        "OUT_OF_RANGE", "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED",
        "DEADLINE_EXCEEDED", "CANCELLED", "FAULTED", "UNAVAILABLE", "DATA_LOSS", "UNIMPLEMENTED",
        "INTERNAL"};
    for (int i = 0; i < count; i++) {
        assert_string_equal(rw_status_name((rw_status)i), names[i]);
    }
}

static void the_tables_say_what_nanopb_says(void** state) {
    (void)state;
    for (size_t m = 0; m < MESSAGE_COUNT; m++) {
        const rw_schema_message* message = all_messages[m];
        assert_int_equal(message->field_count, message->descriptor->field_count);
        assert_true(message->field_count <= RW_SCHEMA_FIELD_LIMIT);
        for (uint32_t i = 0; i < message->field_count; i++) {
            const rw_schema_field* field = &message->fields[i];
            assert_true(i == 0 || message->fields[i - 1].tag < field->tag);
            assert_ptr_equal(rw_schema_find(message, field->tag), field);
            pb_field_iter_t iter;
            pb_field_iter_begin(&iter, message->descriptor, NULL);
            assert_true(pb_field_iter_find(&iter, field->tag));
            assert_int_equal(PB_ATYPE(iter.type) == PB_ATYPE_CALLBACK, field->is_view);
            assert_int_equal(PB_LTYPE_IS_SUBMSG(iter.type), field->kind == RW_SCHEMA_MESSAGE);
            assert_int_equal(PB_LTYPE(iter.type) == PB_LTYPE_STRING, field->kind == RW_SCHEMA_STRING);
            if (field->kind == RW_SCHEMA_MESSAGE) {
                assert_ptr_equal(iter.submsg_desc, field->sub->descriptor);
            }
            if (field->shape == RW_SCHEMA_REPEATED && !field->is_view) {
                assert_int_equal(iter.array_size, field->max);
            }
        }
        assert_null(rw_schema_find(message, 0));
        assert_null(rw_schema_find(message, 60000));
    }
}

static void every_field_of_any_size_has_a_maximum(void** state) {
    (void)state;
    for (size_t m = 0; m < MESSAGE_COUNT; m++) {
        for (uint32_t i = 0; i < all_messages[m]->field_count; i++) {
            const rw_schema_field* field = &all_messages[m]->fields[i];
            if (field->shape == RW_SCHEMA_REPEATED || field->kind == RW_SCHEMA_STRING ||
                field->kind == RW_SCHEMA_BYTES) {
                assert_true(field->max >= 1 && field->max <= 1u << 30);
            }
        }
    }
}

static void messages_that_are_decoded_in_place_stay_small(void** state) {
    (void)state;
    // One of these lies on the stack of whoever decodes, and is cleared each time.
    assert_true(sizeof(rw_pb_Request) <= 4096);
    assert_true(sizeof(rw_pb_Response) <= 4096);
    assert_true(sizeof(rw_pb_Body) <= 2048);
    assert_true(sizeof(rw_pb_Rod) <= 4096);
}

static void envelopes_have_the_form_their_code_relies_on(void** state) {
    (void)state;
    assert_true(rw_envelope_is_one(RW_SCHEMA(rw_pb_Request)));
    assert_true(rw_envelope_is_one(RW_SCHEMA(rw_pb_Response)));
    assert_true(rw_envelope_is_one(RW_SCHEMA(rw_pb_Event)));
    assert_true(rw_envelope_is_one(RW_SCHEMA(rw_pb_StateFrame)));
    assert_false(rw_envelope_is_one(RW_SCHEMA(rw_pb_Scene)));
    assert_false(rw_envelope_is_one(RW_SCHEMA(rw_pb_Restore)));
}

static bool give_number(void* context, uint32_t index, void* item) {
    (void)context;
    ((rw_pb_SessionInfo*)item)->id = index;
    return true;
}

static void envelopes_are_encoded_as_nanopb_encodes_them(void** state) {
    (void)state;
    double values[3000] = {1, 2, 3};
    rw_pb_Response responses[6] = {
        {.request_id = 0},
        {.request_id = UINT64_MAX, .status = rw_pb_Status_Code_FAULTED, .message = "m\xc3\xa9",
         .path = "p", .steps_done = 300},
        {.request_id = 1, .has_step = true, .step = 0, .has_time = true, .time = 0},
        {.request_id = 2, .which_result = rw_pb_Response_pause_tag},
        {.request_id = 3, .has_time = true, .time = 2.5, .which_result = rw_pb_Response_advance_tag,
         .result.advance.values = rw_wire_from_f64(values, 3000), .result.advance.rows = 2},
        {.request_id = 4, .which_result = rw_pb_Response_list_sessions_tag,
         .result.list_sessions.sessions =
             rw_wire_from_fill(give_number, NULL, sizeof(rw_pb_SessionInfo), 40)}};
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    for (size_t i = 0; i < 6; i++) {
        rw_buffer ours, theirs;
        rw_buffer_init(&ours, &alloc);
        rw_buffer_init(&theirs, &alloc);
        const rw_schema_message* schema = RW_SCHEMA(rw_pb_Response);
        assert_int_equal(rw_envelope_append(&ours, schema, &responses[i]), RW_STATUS_OK);
        assert_int_equal(rw_envelope_append_plain(&theirs, schema, &responses[i]), RW_STATUS_OK);
        assert_int_equal(ours.size_bytes, theirs.size_bytes);
        if (ours.size_bytes > 0) {
            assert_memory_equal(ours.data, theirs.data, ours.size_bytes);
        }
        rw_pb_Response one, two; // and decoded alike
        memset(&one, 0, sizeof one);
        memset(&two, 0, sizeof two);
        assert_true(rw_envelope_decode(schema, ours.data, ours.size_bytes, &one));
        assert_true(rw_envelope_decode_plain(schema, ours.data, ours.size_bytes, &two));
        assert_memory_equal(&one, &two, sizeof one);
        rw_buffer_finish(&ours);
        rw_buffer_finish(&theirs);
    }
    rw_alloc_finish(&alloc);
}

static void commands_have_names(void** state) {
    (void)state;
    assert_string_equal(rw_message_command_name(rw_pb_Request_load_scene_tag), "load_scene");
    assert_string_equal(rw_message_command_name(rw_pb_Request_request_id_tag), "");
    assert_string_equal(rw_message_command_name(9999), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_codes_have_the_same_pinned_numbers_as_the_schema),
        cmocka_unit_test(the_tables_say_what_nanopb_says),
        cmocka_unit_test(every_field_of_any_size_has_a_maximum),
        cmocka_unit_test(messages_that_are_decoded_in_place_stay_small),
        cmocka_unit_test(envelopes_have_the_form_their_code_relies_on),
        cmocka_unit_test(envelopes_are_encoded_as_nanopb_encodes_them),
        cmocka_unit_test(commands_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
