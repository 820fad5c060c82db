#include "tests/support/rw_test.h"

#include <pb_common.h>

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
        cmocka_unit_test(commands_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
