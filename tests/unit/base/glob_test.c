#include "tests/support/rw_test.h"

#include "solvers/base/glob.h"

// The definition, one way after the other.
static bool naive(const char* glob, const char* text, char separator) {
    if (*glob == '\0') {
        return *text == '\0';
    }
    if (*glob == '*') {
        return naive(glob + 1, text, separator) ||
               (*text != '\0' && (separator == '\0' || *text != separator) &&
                naive(glob, text + 1, separator));
    }
    return *text == *glob && naive(glob + 1, text + 1, separator);
}

static void star_stands_for_any_run(void** state) {
    (void)state;
    assert_true(rw_glob_matches("", 0, "", '\0'));
    assert_true(rw_glob_matches("*", 1, "", '\0'));
    assert_true(rw_glob_matches("arm*", 4, "arm", '\0'));
    assert_true(rw_glob_matches("*a*b", 4, "xaayb", '\0'));
    assert_false(rw_glob_matches("*a*b", 4, "xaayb.", '\0'));
    assert_false(rw_glob_matches("arm", 3, "arms", '\0'));
    assert_true(rw_glob_matches("arm/wrench", 3, "arm", '\0')); // the first three bytes
}

static void star_does_not_go_over_the_separator(void** state) {
    (void)state;
    assert_true(rw_glob_matches("body/*", 6, "body/a", '/'));
    assert_false(rw_glob_matches("body/*", 6, "body/a/b", '/'));
    assert_true(rw_glob_matches("body/*", 6, "body/a/b", '\0'));
    assert_false(rw_glob_matches("*", 1, "body/a", '/'));
}

// Short globs over {a, /, *} against short texts over {a, b, /}.
static void every_short_glob_agrees_with_the_definition(void** state) {
    (void)state;
    static const char in_glob[] = "a/*", in_text[] = "ab/";
    for (int g = 0; g < 729; g++) {
        char glob[7] = "";
        for (int rest = g, i = 0; i < 6; i++, rest /= 3) {
            glob[i] = in_glob[rest % 3];
        }
        glob[g % 7] = '\0';
        for (int t = 0; t < 243; t++) {
            char text[6] = "";
            for (int rest = t, i = 0; i < 5; i++, rest /= 3) {
                text[i] = in_text[rest % 3];
            }
            text[t % 6] = '\0';
            for (int k = 0; k < 2; k++) {
                char separator = k == 0 ? '\0' : '/';
                bool expected = naive(glob, text, separator);
                if (rw_glob_matches(glob, strlen(glob), text, separator) != expected) {
                    fail_msg("\"%s\" on \"%s\", separator %d", glob, text, separator);
                }
            }
        }
    }
}

static void a_hostile_glob_takes_no_exponential_time(void** state) {
    (void)state;
    char glob[201], text[201];
    for (int i = 0; i < 100; i++) {
        glob[2 * i] = '*';
        glob[2 * i + 1] = 'a';
        text[2 * i] = text[2 * i + 1] = 'a';
    }
    glob[199] = 'b'; // the last letter is missing in the text
    glob[200] = text[200] = '\0';
    assert_false(rw_glob_matches(glob, 200, text, '\0'));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(star_stands_for_any_run),
        cmocka_unit_test(star_does_not_go_over_the_separator),
        cmocka_unit_test(every_short_glob_agrees_with_the_definition),
        cmocka_unit_test(a_hostile_glob_takes_no_exponential_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
