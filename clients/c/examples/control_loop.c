// A 1 kHz control loop over the network: a ball on a spring is pushed by a controller that holds it
// at a height. Each millisecond one request sets the force, steps, and brings the ball's state
// back; at the end the latencies of these round trips are printed.
//
//   control_loop [HOST:PORT | unix:PATH] [seconds]
//
// Exit code 0 when the ball is where it was wanted, 1 on an error, 2 on wrong usage.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clients/c/ropewalk.h"
#include "solvers/base/clock.h"

static const double time_step = 0.001;   // [s]
static const double wanted_height = 1.2; // [m]

static rw_status load_ball(rw_remote* session, rw_error* error) {
    rw_pb_Body ball = {.name = "ball", .mass = 1, .inertia_count = 6, .inertia = {0.004, 0.004, 0.004},
                       .position_count = 3, .position = {0, 0, 1}};
    rw_pb_Force forces[2] = {
        {.name = "spring", .which_law = rw_pb_Force_spring_damper_tag},
        {.name = "push", .which_law = rw_pb_Force_load_tag},
    };
    rw_pb_Force_SpringDamper* spring = &forces[0].law.spring_damper;
    spring->has_a = spring->has_b = true;
    strcpy(spring->a.body, "ball");
    spring->b.position_count = 3;
    spring->b.position[2] = 2; // hangs from here
    spring->stiffness = 50;
    spring->damping = 1;
    spring->has_rest_length = true;
    spring->rest_length = 0.8;
    strcpy(forces[1].law.load.body, "ball");
    rw_pb_Scene scene = {.name = "ball on a spring", .has_time_step = true, .time_step = time_step,
                         .bodies = RW_WIRE_FROM_ITEMS(&ball, 1),
                         .forces = RW_WIRE_FROM_ITEMS(forces, 2)};
    return rw_remote_load_scene(session, &scene, error);
}

static int compare_times(const void* a, const void* b) {
    int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
    return (left > right) - (left < right);
}

static void print_latencies(int64_t* times, int count) {
    qsort(times, (size_t)count, sizeof *times, compare_times);
    static const struct {
        const char* name;
        double part;
    } rows[] = {{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};
    printf("round trip over %d steps:\n", count);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int at = (int)(rows[i].part * (count - 1));
        printf("  %-6s %8.1f us\n", rows[i].name, (double)times[at] * 1e-3);
    }
}

static void sleep_until(int64_t moment_ns) {
    struct timespec when = {moment_ns / 1000000000, moment_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

// Runs the loop; on success `*height` is the ball's last one.
static rw_status control(rw_remote* session, int count, int64_t* times, int* late, double* height,
                         rw_error* error) {
    static const char* const targets[] = {"force/push"};
    static const char* const signals[] = {"body/ball/position", "body/ball/linear_velocity"};
    uint64_t actuate, observe;
    uint32_t input_width, output_width;
    RW_TRY(rw_remote_actuate(session, targets, 1, &actuate, &input_width, error));
    RW_TRY(rw_remote_observe(session, signals, 2, &observe, &output_width, error));
    double input[6] = {0}, state[6] = {0, 0, 1}, integral = 0;
    if (input_width != 6 || output_width != 6) {
        RW_FAIL(error, INTERNAL, "", "unexpected widths %u and %u", input_width, output_width);
    }
    int64_t next = rw_clock_now_ns();
    for (int i = 0; i < count; i++) {
        // A PID controller on the height.
        double fault = wanted_height - state[2];
        integral += fault * time_step;
        input[2] = 200 * fault + 150 * integral - 30 * state[5];
        int64_t start = rw_clock_now_ns();
        RW_TRY(rw_remote_advance(session, actuate, input, 6, 1, observe, state, 6, error));
        int64_t end = rw_clock_now_ns();
        times[i] = end - start;
        next += (int64_t)(time_step * 1e9);
        *late += end > next;
        sleep_until(next);
    }
    *height = state[2];
    return RW_STATUS_OK;
}

int main(int argc, char** argv) {
    double seconds = argc > 2 ? atof(argv[2]) : 5;
    if (argc > 3 || !(seconds > 0 && seconds < 3600)) {
        fprintf(stderr, "usage: control_loop [HOST:PORT | unix:PATH] [seconds]\n");
        return 2;
    }
    rw_error error = {0};
    rw_link* link = NULL;
    rw_remote session;
    rw_link_config config = {.address = argc > 1 ? argv[1] : NULL, .client_name = "control_loop"};
    int count = (int)(seconds / time_step), late = 0;
    int64_t* times = calloc((size_t)count + 1, sizeof *times);
    double height = 0;
    rw_status status = times == NULL ? RW_STATUS_RESOURCE_EXHAUSTED
                                     : rw_link_connect(&config, &link, &error);
    if (status == RW_STATUS_OK) {
        status = rw_remote_create(link, NULL, &session, &error);
    }
    if (status == RW_STATUS_OK) {
        status = load_ball(&session, &error);
    }
    if (status == RW_STATUS_OK) {
        status = control(&session, count, times, &late, &height, &error);
    }
    bool is_held = fabs(height - wanted_height) < 0.01;
    if (status == RW_STATUS_OK) {
        print_latencies(times, count);
        printf("late steps: %d of %d\n", late, count);
        printf("height %.4f m, wanted %.4f m\n", height, wanted_height);
    } else {
        fprintf(stderr, "%s: %s%s%s\n", rw_status_name(status), error.path,
                error.path[0] != '\0' ? ": " : "", error.text);
    }
    rw_link_close(link);
    free(times);
    return status == RW_STATUS_OK && (is_held || seconds < 4) ? 0 : 1;
}
