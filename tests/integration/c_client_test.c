// The C client and its example programs against a real daemon. ROPEWALK_DAEMON, ROPEWALK_EXAMPLES:
// where meson built them.
#include "tests/support/rw_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/c/ropewalk.h"
#include "solvers/base/clock.h"

static char folder[] = "/tmp/rw_c_client_XXXXXX";
static char address[128];
static pid_t daemon_pid;

static int start_daemon(void** state) {
    (void)state;
    const char* program = getenv("ROPEWALK_DAEMON");
    if (program == NULL || mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(address, sizeof address, "unix:%s/socket", folder);
    daemon_pid = fork();
    if (daemon_pid == 0) {
        setenv("ROPEWALK_TOKEN", "open sesame", 1);
        execl(program, program, "--listen", "", "--unix", address + 5, "--log-level", "error",
              (char*)NULL);
        _exit(127);
    }
    setenv("ROPEWALK_TOKEN", "open sesame", 1); // the client's default
    for (int i = 0; i < 500; i++) {
        rw_link* link;
        if (rw_link_connect(&(rw_link_config){.address = address}, &link, NULL) == RW_STATUS_OK) {
            rw_link_close(link);
            return 0;
        }
        usleep(20000);
    }
    return -1;
}

static int stop_daemon(void** state) {
    (void)state;
    int status = 0;
    kill(daemon_pid, SIGTERM);
    waitpid(daemon_pid, &status, 0);
    unlink(address + 5);
    rmdir(folder);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        rw_error error = {0};                                                                      \
        if ((call) != RW_STATUS_OK)                                                                \
            fail_msg("%s: %s %s: %s", #call, rw_status_name(error.status), error.path, error.text); \
    } while (0)

typedef struct fixture {
    rw_link* link;
    rw_remote session;
} fixture;

// One ball of 2 kg under gravity, and a force that inputs may set.
static int set_up(void** state) {
    fixture* f = calloc(1, sizeof *f);
    *state = f;
    OK(rw_link_connect(&(rw_link_config){.address = address}, &f->link, &error));
    OK(rw_remote_create(f->link, NULL, &f->session, &error));
    rw_pb_Body ball = {.name = "ball", .mass = 2, .inertia_count = 6, .inertia = {1, 1, 1},
                       .position_count = 3, .position = {1, 2, 3}, .linear_velocity_count = 3,
                       .linear_velocity = {0.5, 0, 0}};
    rw_pb_Force push = {.name = "push", .which_law = rw_pb_Force_load_tag, .law.load.body = "ball"};
    rw_pb_Scene scene = {.name = "a ball", .bodies = RW_WIRE_FROM_ITEMS(&ball, 1),
                         .forces = RW_WIRE_FROM_ITEMS(&push, 1)};
    OK(rw_remote_load_scene(&f->session, &scene, &error));
    return 0;
}

static int tear_down(void** state) {
    fixture* f = *state;
    OK(rw_remote_close(&f->session, &error));
    rw_link_close(f->link);
    free(f);
    return 0;
}

static void read_signals(fixture* f, const char* const* signals, size_t signal_count,
                         double* values, size_t count) {
    size_t got;
    OK(rw_remote_read(&f->session, signals, signal_count, values, count, &got, &error));
    assert_int_equal(got, count);
}

static void a_wrong_token_is_unauthenticated(void** state) {
    (void)state;
    rw_error fault;
    rw_link* link;
    rw_link_config config = {.address = address, .token = "wrong"};
    assert_int_equal(rw_link_connect(&config, &link, &fault), RW_STATUS_UNAUTHENTICATED);
    assert_null(link);
}

static void a_ball_falls_as_bodies_do(void** state) {
    fixture* f = *state;
    static const char* const signals[] = {"body/ball/position", "world/time"};
    double values[4];
    OK(rw_remote_step(&f->session, 1000, &error));
    assert_int_equal(f->session.step, 1000);
    rw_assert_near(f->session.time, 1, 1e-12);
    read_signals(f, signals, 2, values, 4);
    rw_assert_near(values[0], 1.5, 1e-9);
    rw_assert_near(values[1], 2, 1e-12);
    rw_assert_near(values[2], 3 - 9.81 / 2, 1e-9);
    rw_assert_near(values[3], 1, 1e-12);
}

static void the_control_loops_call_pushes_the_ball(void** state) {
    fixture* f = *state;
    static const char* const targets[] = {"force/push"};
    static const char* const signals[] = {"body/ball/linear_velocity", "world/step"};
    uint64_t actuate, observe;
    uint32_t input_width, output_width;
    OK(rw_remote_actuate(&f->session, targets, 1, &actuate, &input_width, &error));
    OK(rw_remote_observe(&f->session, signals, 2, &observe, &output_width, &error));
    assert_int_equal(input_width, 6);
    assert_int_equal(output_width, 4);
    double input[6] = {0, 8, 2 * 9.81, 0, 0, 0}, output[4] = {0}; // 4 m/s^2 sideways, weight held
    for (int i = 1; i <= 250; i++) {
        OK(rw_remote_advance(&f->session, actuate, input, 6, 1, observe, output, 4, &error));
        assert_true(output[3] == i);
    }
    rw_assert_near(output[0], 0.5, 1e-12);
    rw_assert_near(output[1], 1, 1e-9);
    rw_assert_near(output[2], 0, 1e-9);
}

static void errors_name_the_field_as_the_client_wrote_it(void** state) {
    fixture* f = *state;
    rw_pb_Rod rods[4] = {0};
    for (int i = 0; i < 4; i++) {
        rods[i] = (rw_pb_Rod){.which_geometry = rw_pb_Rod_straight_tag, .elements = 3, .density = 1,
                              .young_modulus = i == 3 ? -1 : 1e6};
        rods[i].geometry.straight.start_count = rods[i].geometry.straight.end_count = 3;
        rods[i].geometry.straight.end[0] = 1;
        rods[i].has_section = true;
        static const double radius[] = {0.01};
        rods[i].section.radius = rw_wire_from_f64(radius, 1);
        snprintf(rods[i].name, sizeof rods[i].name, "rod%d", i);
    }
    rw_pb_Scene scene = {.has_solver = true, .rods = RW_WIRE_FROM_ITEMS(rods, 4)};
    scene.solver.has_rods = true;
    scene.solver.rods = rw_pb_RodSolver_Method_SCR;
    rw_error fault;
    assert_int_equal(rw_remote_load_scene(&f->session, &scene, &fault), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(fault.path, "rods[3].young_modulus");
    static const char* const signals[] = {"body/ball/position"};
    double position[3];
    read_signals(f, signals, 1, position, 3); // the old world is still there
    assert_true(position[2] == 3);
}

static void frames_hold_the_bits_of_the_signals(void** state) {
    fixture* f = *state;
    rw_watch* watch;
    uint64_t subscription;
    OK(rw_watch_create(f->link, &watch, &error));
    OK(rw_remote_subscribe(&f->session, &(rw_remote_stream){.every_s = 0.01}, watch, &subscription,
                           &error));
    static const char* const signals[] = {"body/ball/position"};
    uint64_t last_step = 0;
    for (int i = 0; i < 20; i++) {
        OK(rw_remote_step(&f->session, 10, &error));
        double position[3];
        read_signals(f, signals, 1, position, 3);
        rw_watch_frame frame;
        do { // the frame of this moment (one of the moment of subscribing may come first)
            OK(rw_watch_next(watch, 10, &frame, &error));
        } while (frame.step < f->session.step);
        assert_true(frame.step == f->session.step && frame.step > last_step);
        last_step = frame.step;
        assert_int_equal(frame.entry_count, 1);
        assert_string_equal(frame.entries[0].name, "ball");
        assert_memory_equal(frame.positions, position, sizeof position);
        assert_non_null(frame.rotations);
    }
    OK(rw_remote_unsubscribe(&f->session, subscription, &error));
    rw_watch_destroy(watch);
}

// Sessions count their groups each for itself: both streams are group 1.
static void one_watch_keeps_the_streams_of_two_sessions_apart(void** state) {
    fixture* f = *state;
    rw_remote other;
    OK(rw_remote_create(f->link, NULL, &other, &error));
    rw_pb_Body bodies[2] = {{.name = "left", .mass = 1, .inertia_count = 6, .inertia = {1, 1, 1}},
                            {.name = "right", .mass = 1, .inertia_count = 6, .inertia = {1, 1, 1}}};
    rw_pb_Scene scene = {.name = "two", .bodies = RW_WIRE_FROM_ITEMS(bodies, 2)};
    OK(rw_remote_load_scene(&other, &scene, &error));
    rw_watch* watch;
    uint64_t subscription;
    OK(rw_watch_create(f->link, &watch, &error));
    rw_remote_stream stream = {.every_s = 0.001};
    OK(rw_remote_subscribe(&f->session, &stream, watch, &subscription, &error));
    OK(rw_remote_subscribe(&other, &stream, watch, &subscription, &error));
    for (int i = 0; i < 10; i++) {
        OK(rw_remote_step(&f->session, 1, &error));
        OK(rw_remote_step(&other, 1, &error));
    }
    uint64_t mine = 0, others = 0;
    while (mine < 10 || others < 10) {
        rw_watch_frame frame;
        OK(rw_watch_next(watch, 10, &frame, &error));
        if (frame.session == other.session) {
            others = frame.step;
            assert_int_equal(frame.element_count, 2);
            assert_string_equal(frame.entries[1].name, "right");
        } else {
            mine = frame.step;
            assert_int_equal(frame.element_count, 1);
            assert_string_equal(frame.entries[0].name, "ball");
        }
    }
    rw_watch_destroy(watch);
    OK(rw_remote_close(&other, &error));
}

static void a_restored_session_goes_on_bit_for_bit(void** state) {
    fixture* f = *state;
    static const char* const signals[] = {"world/hash", "body/ball/position"};
    double first[4], second[4];
    rw_buffer bytes;
    rw_buffer_init(&bytes, rw_link_memory(f->link));
    OK(rw_remote_step(&f->session, 123, &error));
    OK(rw_remote_snapshot(&f->session, &bytes, &error));
    OK(rw_remote_step(&f->session, 77, &error));
    read_signals(f, signals, 2, first, 4);
    OK(rw_remote_restore(&f->session, bytes.data, bytes.size_bytes, &error));
    assert_int_equal(f->session.step, 123);
    OK(rw_remote_step(&f->session, 77, &error));
    read_signals(f, signals, 2, second, 4);
    assert_memory_equal(first, second, sizeof first);
    bytes.data[bytes.size_bytes / 2] ^= 1; // damaged: refused, and nothing changes
    rw_error fault;
    assert_int_equal(rw_remote_restore(&f->session, bytes.data, bytes.size_bytes, &fault),
                     RW_STATUS_DATA_LOSS);
    read_signals(f, signals, 2, second, 4);
    assert_memory_equal(first, second, sizeof first);
    rw_buffer_finish(&bytes);
}

static void ten_thousand_pings_in_flight_come_back_in_order(void** state) {
    fixture* f = *state;
    enum { COUNT = 10000 };
    uint64_t first = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        rw_pb_Request ping = {.which_command = rw_pb_Request_ping_tag, .command.ping.payload = i};
        OK(rw_link_send(f->link, &ping, &error));
        first = i == 0 ? ping.request_id : first;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        rw_link_message message;
        OK(rw_link_receive(f->link, -1, &message, &error));
        assert_int_equal(message.kind, RW_LINK_RESPONSE);
        assert_int_equal(message.as.response.status, rw_pb_Status_Code_OK);
        assert_int_equal(message.as.response.request_id, first + i);
        assert_int_equal(message.as.response.result.ping.payload, i);
    }
}

static void a_rod_above_the_message_limit_goes_by_upload(void** state) {
    fixture* f = *state;
    enum { CHAIN = 20, CHAINS = 40000, NODES = CHAIN * CHAINS, SEGMENTS = (CHAIN - 1) * CHAINS };
    size_t size = NODES * 3 * sizeof(double); // 19.2 MB
    double* positions = malloc(size);
    uint32_t* segments = malloc(SEGMENTS * 2 * sizeof *segments);
    for (uint32_t i = 0, s = 0; i < NODES; i++) {
        positions[3 * i] = i / CHAIN % 200;
        positions[3 * i + 1] = i / CHAIN / 200;
        positions[3 * i + 2] = -0.05 * (i % CHAIN);
        if (i % CHAIN != 0) {
            segments[s++] = i - 1;
            segments[s++] = i;
        }
    }
    rw_pb_BlobField field = {.field = "positions"};
    OK(rw_link_upload(f->link, positions, size, &field.blob, &error));
    static const double radius[] = {0.01};
    rw_pb_Rod hair = {.name = "hair", .which_geometry = rw_pb_Rod_graph_tag, .density = 1000,
                      .young_modulus = 1e5, .has_section = true,
                      .section.radius = rw_wire_from_f64(radius, 1)};
    hair.geometry.graph.segments = rw_wire_from_u32(segments, SEGMENTS * 2);
    hair.geometry.graph.blobs = RW_WIRE_FROM_ITEMS(&field, 1);
    rw_pb_Scene scene = {.has_solver = true, .rods = RW_WIRE_FROM_ITEMS(&hair, 1)};
    scene.solver.has_rods = true;
    scene.solver.rods = rw_pb_RodSolver_Method_SCR;
    OK(rw_remote_load_scene(&f->session, &scene, &error));
    static const char* const signals[] = {"rod/hair/node/799999/position"};
    double position[3];
    read_signals(f, signals, 1, position, 3);
    assert_memory_equal(position, positions + 3 * (NODES - 1), sizeof position);
    free(positions);
    free(segments);
}

static int run_example(const char* command) {
    char line[512];
    snprintf(line, sizeof line, "%s/%s > /dev/null", getenv("ROPEWALK_EXAMPLES"), command);
    for (char* at = line; (at = strstr(at, "ADDRESS")) != NULL;) {
        char rest[512];
        snprintf(rest, sizeof rest, "%s", at + 7);
        snprintf(at, sizeof line - (size_t)(at - line), "%s%s", address, rest);
    }
    return WEXITSTATUS(system(line));
}

static void the_example_programs_run(void** state) {
    (void)state;
    assert_int_equal(run_example("control_loop ADDRESS 5"), 0); // holds the ball at its height
    assert_int_equal(run_example("stream_reader ADDRESS - 30"), 0);
    assert_int_equal(run_example("stream_reader ADDRESS nobody 1 2> /dev/null"), 1);
    assert_int_equal(run_example("stream_reader unix:/nonexistent 2> /dev/null"), 1);
    assert_int_equal(run_example("control_loop ADDRESS nonsense 2> /dev/null"), 2);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_token_is_unauthenticated),
        CASE(a_ball_falls_as_bodies_do),
        CASE(the_control_loops_call_pushes_the_ball),
        CASE(errors_name_the_field_as_the_client_wrote_it),
        CASE(one_watch_keeps_the_streams_of_two_sessions_apart),
        CASE(frames_hold_the_bits_of_the_signals),
        CASE(a_restored_session_goes_on_bit_for_bit),
        CASE(ten_thousand_pings_in_flight_come_back_in_order),
        CASE(a_rod_above_the_message_limit_goes_by_upload),
        cmocka_unit_test(the_example_programs_run),
    };
    return cmocka_run_group_tests(tests, start_daemon, stop_daemon);
}
