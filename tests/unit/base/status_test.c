#include "tests/support/rw_test.h"

#include "solvers/base/status.h"

static rw_status fail_with(rw_error* error, const char* path) {
    RW_FAIL(error, OUT_OF_RANGE, path, "must be < %d, got %u", 3, 7u);
}

static rw_status forward(rw_error* error) {
    RW_TRY(fail_with(error, "node"));
    fail_msg("went on after a failure");
    return RW_STATUS_OK;
}

static void failure_fills_status_path_and_text(void** state) {
    (void)state;
    rw_error error;
    assert_int_equal(forward(&error), RW_STATUS_OUT_OF_RANGE);
    assert_int_equal(error.status, RW_STATUS_OUT_OF_RANGE);
    assert_string_equal(error.path, "node");
    assert_string_equal(error.text, "must be < 3, got 7");
    assert_int_equal(fail_with(NULL, "node"), RW_STATUS_OUT_OF_RANGE);
    assert_int_equal(fail_with(&error, NULL), RW_STATUS_OUT_OF_RANGE);
    assert_string_equal(error.path, "");
    // A path is no format.
    assert_int_equal(fail_with(&error, "100%s%n"), RW_STATUS_OUT_OF_RANGE);
    assert_string_equal(error.path, "100%s%n");
}

static void prefixes_join_with_a_dot_but_before_an_index(void** state) {
    (void)state;
    rw_error error;
    fail_with(&error, "young_modulus");
    assert_int_equal(rw_status_prefix(&error, "rods[%d]", 3), RW_STATUS_OUT_OF_RANGE);
    assert_string_equal(error.path, "rods[3].young_modulus");
    fail_with(&error, "[2]");
    rw_status_prefix(&error, "sessions");
    assert_string_equal(error.path, "sessions[2]");
    fail_with(&error, "");
    rw_status_prefix(&error, "rods[%d]", 0);
    assert_string_equal(error.path, "rods[0]");
}

static void long_paths_and_texts_are_cut_not_overrun(void** state) {
    (void)state;
    char text[600];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    rw_error error;
    fail_with(&error, text);
    assert_int_equal(strlen(error.path), sizeof error.path - 1);
    rw_status_prefix(&error, "%s", text);
    assert_int_equal(strlen(error.path), sizeof error.path - 1);
    rw_status_fail(&error, RW_STATUS_INTERNAL, "", "%s", text);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

static void every_status_has_its_name(void** state) {
    (void)state;
    assert_string_equal(rw_status_name(RW_STATUS_OK), "OK");
    assert_string_equal(rw_status_name(RW_STATUS_INTERNAL), "INTERNAL");
    assert_string_equal(rw_status_name((rw_status)99), "UNKNOWN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_fills_status_path_and_text),
        cmocka_unit_test(prefixes_join_with_a_dot_but_before_an_index),
        cmocka_unit_test(long_paths_and_texts_are_cut_not_overrun),
        cmocka_unit_test(every_status_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
