// Memory does not grow with what came and went (bench_soak runs the same ten thousand times).
#include "tests/support/rw_test.h"

#include "tests/support/rw_cycles.h"

static void lives_of_sessions_leave_nothing_behind(void** state) {
    (void)state;
    rw_daemon daemon;
    rw_daemon_client client;
    rw_daemon_start(&daemon, NULL);
    rw_daemon_greet(&daemon, &client);
    uint64_t hash = rw_cycles_run(&client);
    size_t early = 0;
    for (int i = 1; i <= 300; i++) {
        assert_int_equal(rw_cycles_run(&client), hash);
        if (i == 60) {
            early = rw_daemon_resident_bytes(&daemon);
        }
    }
    size_t late = rw_daemon_resident_bytes(&daemon);
    // A leak of a session's 400 KB would show as 100 MB here; the allocator's own play is allowed.
    if (late > early + (2u << 20)) {
        fail_msg("%zu bytes after 60 cycles, %zu after 300", early, late);
    }
    rw_daemon_disconnect(&client);
    assert_int_equal(rw_daemon_stop(&daemon, 10), 0);
}

static void connections_leave_nothing_behind(void** state) {
    (void)state;
    rw_daemon daemon;
    rw_daemon_client client;
    rw_daemon_start(&daemon, NULL);
    size_t early = 0;
    for (int i = 0; i < 1000; i++) {
        rw_daemon_greet(&daemon, &client);
        rw_pb_Request request = rw_pb_Request_init_zero;
        rw_pb_Response response;
        request.which_command = rw_pb_Request_begin_upload_tag;
        request.command.begin_upload.bytes = 100000; // left open: it dies with the connection
        assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
        rw_daemon_disconnect(&client);
        if (i == 200) {
            early = rw_daemon_resident_bytes(&daemon);
        }
    }
    size_t late = rw_daemon_resident_bytes(&daemon);
    if (late > early + (2u << 20)) {
        fail_msg("%zu bytes after 200 connections, %zu after 1000", early, late);
    }
    assert_int_equal(rw_daemon_stop(&daemon, 10), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_of_sessions_leave_nothing_behind),
        cmocka_unit_test(connections_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
