// What an operator sees of a real daemon: sockets, health, metrics, start-up errors.
#include "tests/support/rw_test.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/rw_daemon.h"

// Asks for a path; the answer's status code, its body in `body`.
static int http_get(const rw_daemon* daemon, const char* path, char* body, size_t capacity) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)daemon->http_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr*)&address, sizeof address), 0);
    char request[256];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)size, 0), size);
    size_t got = 0;
    for (ssize_t part; got < capacity - 1 &&
                       (part = recv(fd, body + got, capacity - 1 - got, 0)) > 0;) {
        got += (size_t)part;
    }
    body[got] = '\0';
    close(fd);
    int code = 0;
    assert_int_equal(sscanf(body, "HTTP/1.%*d %d", &code), 1);
    return code;
}

static void health_readiness_and_metrics_are_served(void** state) {
    (void)state;
    static const char* const FLAGS[] = {"--http", "127.0.0.1:0", NULL};
    static char body[65536];
    rw_daemon daemon;
    rw_daemon_client client;
#ifndef RW_HAVE_WEB
    skip(); // without libwebsockets the daemon refuses --http
#endif
    rw_daemon_start(&daemon, FLAGS);
    rw_daemon_greet(&daemon, &client);
    uint64_t session = rw_daemon_create_session(&client, "watched");
    rw_daemon_load_bodies(&client, session, 2);
    rw_daemon_step(&client, session, 123);
    assert_int_equal(http_get(&daemon, "/healthz", body, sizeof body), 200);
    assert_int_equal(http_get(&daemon, "/readyz", body, sizeof body), 200);
    assert_int_equal(http_get(&daemon, "/nothing", body, sizeof body), 404);
    assert_int_equal(http_get(&daemon, "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "\nropewalk_steps_total 123\n"));
    assert_non_null(strstr(body, "\nropewalk_sessions 1\n"));
    assert_non_null(strstr(body, "# TYPE ropewalk_connections gauge\n"));
    // Still alive but no longer ready while it drains.
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.session = session;
    request.which_command = rw_pb_Request_step_tag;
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = 4000000000u;
    uint64_t id = rw_daemon_send(&client, &request);
    usleep(20000);
    kill(daemon.pid, SIGTERM);
    rw_pb_Event event;
    assert_true(rw_daemon_wait_event(&client, rw_pb_Event_draining_tag, &event, 5));
    assert_int_equal(http_get(&daemon, "/healthz", body, sizeof body), 200);
    assert_int_equal(http_get(&daemon, "/readyz", body, sizeof body), 503);
    rw_pb_Request cancel = rw_pb_Request_init_zero;
    rw_pb_Response response;
    cancel.which_command = rw_pb_Request_cancel_tag;
    cancel.command.cancel.request_id = id;
    assert_int_equal(rw_daemon_call(&client, &cancel, &response), rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    rw_daemon_disconnect(&client);
    assert_int_equal(rw_daemon_stop(&daemon, 5), 0);
}

static void a_unix_socket_serves_and_is_private(void** state) {
    (void)state;
    char folder[] = "/tmp/ropewalk-unix-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    const char* const flags[] = {"--unix", address.sun_path, NULL};
    rw_daemon daemon;
    for (int i = 0; i < 2; i++) {
        if (i == 1) { // a stale socket of a dead daemon is replaced
            int stale = socket(AF_UNIX, SOCK_STREAM, 0);
            assert_int_equal(bind(stale, (struct sockaddr*)&address, sizeof address), 0);
            close(stale);
        }
        rw_daemon_start(&daemon, flags);
        struct stat facts;
        assert_int_equal(stat(address.sun_path, &facts), 0);
        assert_int_equal(facts.st_mode & 0077, 0);
        rw_daemon_client client;
        rw_daemon_connect(&daemon, &client);
        close(client.fd);
        client.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(client.fd, (struct sockaddr*)&address, sizeof address), 0);
        rw_pb_Request request = rw_pb_Request_init_zero;
        rw_pb_Response response;
        request.which_command = rw_pb_Request_hello_tag;
        request.command.hello.major = 1;
        assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
        uint64_t session = rw_daemon_create_session(&client, "local");
        rw_daemon_load_bodies(&client, session, 2);
        rw_daemon_step(&client, session, 3);
        rw_daemon_disconnect(&client);
        assert_int_equal(rw_daemon_stop(&daemon, 5), 0);
        assert_int_not_equal(stat(address.sun_path, &facts), 0); // taken away at the end
    }
    rmdir(folder);
}

// Runs the daemon to its end with these flags; the exit code.
static int run(const char* a, const char* b) {
    pid_t pid = fork();
    if (pid == 0) {
        int ignored = freopen("/dev/null", "w", stderr) == NULL ||
                      freopen("/dev/null", "w", stdout) == NULL;
        (void)ignored;
        alarm(10);
        const char* path = getenv("ROPEWALK_DAEMON");
        path = path != NULL ? path : RW_DAEMON_PATH;
        execl(path, path, "--listen", "127.0.0.1:0", a, b, (char*)NULL);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void start_up_errors_have_exit_codes(void** state) {
    (void)state;
    assert_int_equal(run("--help", NULL), 0);
    assert_int_equal(run("--version", NULL), 0);
    assert_int_equal(run("--nonsense", NULL), 2);
    assert_int_equal(run("--workers", "many"), 2);
    assert_int_equal(run("--listen", "0.0.0.0:0"), 2); // no token
    assert_int_equal(run("--token-file", "/nonexistent/token"), 2);
    assert_int_equal(run("--unix", "/nonexistent/folder/socket"), 1);
    assert_int_equal(run("--listen", "203.0.113.1:0") == 0, 0);
}

static void a_port_that_is_taken_is_told(void** state) {
    (void)state;
    rw_daemon daemon;
    rw_daemon_start(&daemon, NULL);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", daemon.port);
    assert_int_equal(run("--listen", address), 1);
    assert_int_equal(rw_daemon_stop(&daemon, 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(health_readiness_and_metrics_are_served),
        cmocka_unit_test(a_unix_socket_serves_and_is_private),
        cmocka_unit_test(start_up_errors_have_exit_codes),
        cmocka_unit_test(a_port_that_is_taken_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
