#include "tests/support/rw_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "server/config.h"

static rw_status read_with(rw_config* config, const char* const* flags, const char* const* variables,
                           rw_error* error) {
    char* argv[16] = {(char*)(uintptr_t)"ropewalkd"};
    char* environment[16] = {NULL};
    int argc = 1;
    for (; flags != NULL && flags[argc - 1] != NULL; argc++) {
        argv[argc] = (char*)(uintptr_t)flags[argc - 1];
    }
    for (int i = 0; variables != NULL && variables[i] != NULL; i++) {
        environment[i] = (char*)(uintptr_t)variables[i];
    }
    rw_config_action action;
    return rw_config_read(config, argc, argv, environment, &action, error);
}

#define FLAGS(...) ((const char* const[]){__VA_ARGS__, NULL})

static void defaults_listen_on_loopback_only(void** state) {
    (void)state;
    rw_config config;
    rw_error error;
    assert_int_equal(read_with(&config, NULL, NULL, &error), RW_STATUS_OK);
    assert_string_equal(config.listen, "127.0.0.1:7171");
    assert_string_equal(config.http, "");
    assert_int_equal(config.max_message_bytes, 16 << 20);
    assert_int_equal(config.workers, 0);
    assert_false(config.insecure);
}

static void flags_win_over_environment_over_file(void** state) {
    (void)state;
    char path[] = "/tmp/ropewalk-config-XXXXXX";
    int fd = mkstemp(path);
    static const char TEXT[] = "# a comment\n\nworkers = 2\n drain-s=5 # more\nmax-message = 1M\n";
    assert_int_equal(write(fd, TEXT, sizeof TEXT - 1), sizeof TEXT - 1);
    close(fd);
    rw_config config;
    rw_error error;
    assert_int_equal(read_with(&config, FLAGS("--config", path, "--workers=7"),
                               FLAGS("ROPEWALK_WORKERS=3", "ROPEWALK_DRAIN_S=6"), &error),
                     RW_STATUS_OK);
    assert_int_equal(config.workers, 7);
    rw_assert_near(config.drain_s, 6, 0);
    assert_int_equal(config.max_message_bytes, 1 << 20);
    unlink(path);
}

static void a_line_of_the_file_that_is_wrong_is_named(void** state) {
    (void)state;
    char path[] = "/tmp/ropewalk-config-XXXXXX";
    int fd = mkstemp(path);
    static const char TEXT[] = "workers = 2\nwrkers = 3\n";
    assert_int_equal(write(fd, TEXT, sizeof TEXT - 1), sizeof TEXT - 1);
    close(fd);
    rw_config config;
    rw_error error;
    assert_int_equal(read_with(&config, FLAGS("--config", path), NULL, &error),
                     RW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(error.path, ":2"));
    assert_non_null(strstr(error.text, "wrkers"));
    unlink(path);
}

static void bad_values_are_refused_with_their_option(void** state) {
    (void)state;
    static const struct {
        const char* flag;
        const char* value;
    } BAD[] = {{"--workers", "x"},          {"--workers", "-1"},      {"--workers", "1.5"},
               {"--max-message", "1T"},     {"--max-message", "10"},  {"--drain-s", "nan"},
               {"--hello-timeout-s", "0"},  {"--log-level", "loud"},  {"--log-format", "xml"},
               {"--gpu", "fast"},           {"--listen", "localhost"}, {"--listen", "127.0.0.1:99999"},
               {"--insecure=maybe", NULL},  {"--nothing", "1"},       {"--workers", NULL}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        rw_config config;
        rw_error error = {0};
        const char* const flags[] = {BAD[i].flag, BAD[i].value, NULL};
        if (read_with(&config, flags, NULL, &error) != RW_STATUS_INVALID_ARGUMENT) {
            fail_msg("%s %s was accepted", BAD[i].flag, BAD[i].value);
        }
        assert_true(strlen(error.path) > 0);
    }
}

static void addresses_beyond_loopback_need_a_token_or_insecure(void** state) {
    (void)state;
    rw_config config;
    rw_error error;
    static const char* const OPEN[] = {"0.0.0.0:1", ":1", "192.168.1.2:1", "[::]:1", "example.org:1",
                                       "127.0.0.1.example.org:1"};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(read_with(&config, FLAGS("--listen", OPEN[i]), NULL, &error),
                         RW_STATUS_INVALID_ARGUMENT);
        assert_int_equal(read_with(&config, FLAGS("--http", OPEN[i]), NULL, &error),
                         RW_STATUS_INVALID_ARGUMENT);
        assert_int_equal(read_with(&config, FLAGS("--listen", OPEN[i], "--insecure"), NULL, &error),
                         RW_STATUS_OK);
        assert_int_equal(read_with(&config, FLAGS("--listen", OPEN[i]),
                                   FLAGS("ROPEWALK_TOKEN=secret"), &error),
                         RW_STATUS_OK);
    }
    static const char* const CLOSED[] = {"127.0.0.1:1", "127.3.4.5:1", "localhost:1", "[::1]:1"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(read_with(&config, FLAGS("--listen", CLOSED[i]), NULL, &error),
                         RW_STATUS_OK);
    }
}

static void the_token_is_the_first_line_of_its_file(void** state) {
    (void)state;
    char path[] = "/tmp/ropewalk-token-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "  open sesame \nrest\n", 20), 20);
    close(fd);
    rw_config config;
    rw_error error;
    assert_int_equal(read_with(&config, FLAGS("--token-file", path), NULL, &error), RW_STATUS_OK);
    assert_true(rw_config_token_matches(&config, "open sesame"));
    assert_false(rw_config_token_matches(&config, ""));
    assert_false(rw_config_token_matches(&config, "open sesam"));
    assert_false(rw_config_token_matches(&config, "open sesame "));
    char longer[600];
    memset(longer, 'x', sizeof longer);
    longer[599] = '\0';
    assert_false(rw_config_token_matches(&config, longer));
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(read_with(&config, FLAGS("--token-file", path), NULL, &error),
                     RW_STATUS_INVALID_ARGUMENT); // an empty token would let everyone in
    unlink(path);
    assert_int_equal(read_with(&config, FLAGS("--token-file", path), NULL, &error),
                     RW_STATUS_INVALID_ARGUMENT);
}

static void a_token_that_is_too_long_is_refused_not_cut(void** state) {
    (void)state;
    char path[] = "/tmp/ropewalk-token-XXXXXX";
    int fd = mkstemp(path);
    char text[3000];
    memset(text, 'x', sizeof text);
    static const size_t sizes[] = {255, 256, 300, 1023, 3000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(pwrite(fd, text, sizes[i], 0), (int)sizes[i]);
        rw_config config;
        rw_error error;
        rw_status status = read_with(&config, FLAGS("--token-file", path), NULL, &error);
        assert_int_equal(status, sizes[i] <= 255 ? RW_STATUS_OK : RW_STATUS_INVALID_ARGUMENT);
    }
    close(fd);
    unlink(path);
}

static void help_names_every_option(void** state) {
    (void)state;
    char text[8192];
    rw_config_help(text, sizeof text);
    static const char* const NAMES[] = {"--config", "--listen", "--unix", "--http", "--port-file",
                                        "--token-file", "--insecure", "--workers", "--gpu",
                                        "--max-message", "--drain-s", "--log-format", "ROPEWALK_TOKEN"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        assert_non_null(strstr(text, NAMES[i]));
    }
    assert_true(strlen(text) < sizeof text - 100);
}

static void log_lines_cannot_be_forged(void** state) {
    (void)state;
    char line[1024];
    const rw_log_field fields[] = {RW_LOG_FIELD_TEXT("client", "a\"b\nlevel=error event=fake\\"),
                                   RW_LOG_FIELD_NUMBER("n", -3), RW_LOG_FIELD_REAL("x", 0.5),
                                   {.type = RW_LOG_END}};
    rw_log_print(line, sizeof line, RW_LOG_LOGFMT, RW_LOG_INFO, "hello", fields);
    assert_non_null(strstr(line, "level=info event=hello client=\"a\\\"b\\u000alevel=error "
                                 "event=fake\\\\\" n=-3 x=0.5\n"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    rw_log_print(line, sizeof line, RW_LOG_JSON, RW_LOG_WARN, "hello", fields);
    assert_non_null(strstr(line, ",\"level\":\"warn\",\"event\":\"hello\",\"client\":\"a\\\"b"));
    assert_string_equal(line + strlen(line) - 2, "}\n");
}

static void long_log_lines_are_cut_not_overrun(void** state) {
    (void)state;
    char text[3000], line[256];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const rw_log_field fields[] = {RW_LOG_FIELD_TEXT("a", text), RW_LOG_FIELD_TEXT("b", text),
                                   {.type = RW_LOG_END}};
    int size = rw_log_print(line, sizeof line, RW_LOG_JSON, RW_LOG_INFO, "long", fields);
    assert_true(size < (int)sizeof line);
    assert_string_equal(line + size - 2, "}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_listen_on_loopback_only),
        cmocka_unit_test(flags_win_over_environment_over_file),
        cmocka_unit_test(a_line_of_the_file_that_is_wrong_is_named),
        cmocka_unit_test(bad_values_are_refused_with_their_option),
        cmocka_unit_test(addresses_beyond_loopback_need_a_token_or_insecure),
        cmocka_unit_test(the_token_is_the_first_line_of_its_file),
        cmocka_unit_test(a_token_that_is_too_long_is_refused_not_cut),
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(log_lines_cannot_be_forged),
        cmocka_unit_test(long_log_lines_are_cut_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
