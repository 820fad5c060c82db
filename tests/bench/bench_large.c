// A scene of 1.5 million vertices: uploaded in chunks, loaded, stepped, streamed every tenth node,
// while another process pings on a connection of its own. The loop must not be held: the pings'
// slowest and 99.9th percentile stand beside those of an echo process that the same pinger asks in
// turn, so that what the machine itself does to a waking process shows in both.
//
// One JSON line per figure: {"name", "value", "unit", "baseline", "ratio"}.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/c/ropewalk.h"
#include "solvers/base/clock.h"
#include "tests/support/rw_daemon.h"

enum { STRANDS = 46875, STRAND = 32, NODES = STRANDS * STRAND, PINGS_MAX = 200000, STEPS = 4, PING_BYTES = 24 };
enum { SEGMENTS = STRANDS * (STRAND - 1), STRIDE = 10 };

// What the pinging process and this one share.
typedef struct ping_log {
    atomic_int phase; // 0: wait, 1: large scene, 2: stop
    atomic_int count;
    int64_t daemon_ns[PINGS_MAX], echo_ns[PINGS_MAX];
} ping_log;

static void fail(const char* what, const rw_error* error) {
    fprintf(stderr, "bench_large: %s: %s %s\n", what, error->path, error->text);
    exit(1);
}

static rw_link* connect_to(const rw_daemon* daemon) {
    static char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", daemon->port);
    rw_link* link;
    rw_error error;
    rw_link_config config = {.address = address, .client_name = "bench_large", .timeout_s = 600};
    if (rw_link_connect(&config, &link, &error) != RW_STATUS_OK) {
        fail("connect", &error);
    }
    return link;
}

// Answers each message of PING_BYTES with as many, for ever.
static void echo_for_ever(int fd) {
    char message[PING_BYTES];
    while (recv(fd, message, sizeof message, MSG_WAITALL) == sizeof message) {
        if (send(fd, message, sizeof message, 0) != sizeof message) {
            break;
        }
    }
    _exit(0);
}

// A TCP connection to a new echo process.
static int connect_echo(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr*)&address, &size) != 0) {
        perror("bench_large: echo");
        exit(1);
    }
    if (fork() == 0) {
        close(fd); // or it would never see the other end close
        int accepted = accept(listener, NULL, NULL);
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        echo_for_ever(accepted);
    }
    if (connect(fd, (struct sockaddr*)&address, size) != 0) {
        perror("bench_large: echo");
        exit(1);
    }
    close(listener);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int64_t ping_daemon(rw_link* link) {
    rw_error error;
    rw_pb_Request request = {.which_command = rw_pb_Request_ping_tag};
    const rw_pb_Response* response;
    int64_t start = rw_clock_now_ns();
    if (rw_link_call(link, &request, &response, &error) != RW_STATUS_OK) {
        fail("ping", &error);
    }
    return rw_clock_now_ns() - start;
}

static int64_t ping_echo(int fd) {
    char message[PING_BYTES] = {0};
    int64_t start = rw_clock_now_ns();
    if (send(fd, message, sizeof message, 0) != sizeof message ||
        recv(fd, message, sizeof message, MSG_WAITALL) != sizeof message) {
        perror("bench_large: echo");
        exit(1);
    }
    return rw_clock_now_ns() - start;
}

static void ping_until_told(const rw_daemon* daemon, ping_log* log) {
    rw_link* link = connect_to(daemon);
    int echo = connect_echo();
    int count = 0;
    while (atomic_load(&log->phase) < 2 && count < PINGS_MAX) {
        int64_t daemon_ns = ping_daemon(link);
        usleep(500);
        int64_t echo_ns = ping_echo(echo);
        usleep(500);
        if (atomic_load(&log->phase) == 1) {
            log->daemon_ns[count] = daemon_ns;
            log->echo_ns[count++] = echo_ns;
            atomic_store(&log->count, count);
        }
    }
    close(echo); // the echo process ends with it
    rw_link_close(link);
}

static int compare(const void* a, const void* b) {
    int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? -1 : x > y;
}

static double percentile_ms(int64_t* sorted, int count, double fraction) {
    int at = (int)(fraction * count);
    return count > 0 ? 1e-6 * (double)sorted[at < count ? at : count - 1] : 0;
}

static void print(const char* name, double value, const char* unit, double baseline) {
    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"baseline\": %.6g, \"ratio\": "
           "%.6g}\n",
           name, value, unit, baseline, baseline > 0 ? value / baseline : 0);
    fflush(stdout);
}

static double seconds_since(int64_t start_ns) { return 1e-9 * (double)(rw_clock_now_ns() - start_ns); }

static void fill_hair(double* positions, uint32_t* segments) {
    for (uint32_t i = 0, s = 0; i < NODES; i++) {
        uint32_t strand = i / STRAND;
        positions[3 * i] = 0.01 * (strand % 250);
        positions[3 * i + 1] = 0.01 * (strand / 250);
        positions[3 * i + 2] = -0.01 * (i % STRAND);
        if (i % STRAND != 0) {
            segments[s++] = i - 1;
            segments[s++] = i;
        }
    }
}

static void load_hair(rw_link* link, rw_remote* remote, double* positions, uint32_t* segments) {
    rw_error error;
    rw_pb_BlobField fields[2] = {{.field = "positions"}, {.field = "segments"}};
    size_t position_bytes = (size_t)NODES * 3 * sizeof *positions;
    size_t segment_bytes = (size_t)SEGMENTS * 2 * sizeof *segments;
    int64_t start = rw_clock_now_ns();
    if (rw_link_upload(link, positions, position_bytes, &fields[0].blob, &error) != RW_STATUS_OK ||
        rw_link_upload(link, segments, segment_bytes, &fields[1].blob, &error) != RW_STATUS_OK) {
        fail("upload", &error);
    }
    double upload_s = seconds_since(start);
    // Beside it: the same bytes copied once.
    char* copy = malloc(position_bytes + segment_bytes);
    memset(copy, 1, position_bytes + segment_bytes);
    start = rw_clock_now_ns();
    memcpy(copy, positions, position_bytes);
    memcpy(copy + position_bytes, segments, segment_bytes);
    __asm__ volatile("" : : "r"(copy) : "memory"); // the copy is really made
    print("large/upload", upload_s, "s", seconds_since(start));
    free(copy);

    static const double radius[] = {0.0005};
    rw_pb_Rod hair = {.name = "hair", .which_geometry = rw_pb_Rod_graph_tag, .density = 1000,
                      .young_modulus = 1e5, .has_section = true,
                      .section.radius = rw_wire_from_f64(radius, 1)};
    hair.geometry.graph.blobs = RW_WIRE_FROM_ITEMS(fields, 2);
    rw_pb_Scene scene = {.has_solver = true, .rods = RW_WIRE_FROM_ITEMS(&hair, 1)};
    static const double gravity[] = {5, 0, -8}; // from the side, so that the strands bend
    scene.gravity_count = 3;
    memcpy(scene.gravity, gravity, sizeof gravity);
    scene.solver.has_rods = true;
    scene.solver.rods = rw_pb_RodSolver_Method_SCR;
    scene.solver.has_scr = true;
    scene.solver.scr.has_iterations = true;
    scene.solver.scr.iterations = 4;
    start = rw_clock_now_ns();
    if (rw_remote_load_scene(remote, &scene, &error) != RW_STATUS_OK) {
        fail("load", &error);
    }
    print("large/load", seconds_since(start), "s", upload_s);
}

static void step_and_stream(rw_link* link, rw_remote* remote) {
    rw_error error;
    rw_watch* watch;
    uint64_t subscription;
    rw_remote_stream stream = {.every_s = 0.001, .node_stride = STRIDE, .is_quantized = true};
    if (rw_watch_create(link, &watch, &error) != RW_STATUS_OK ||
        rw_remote_subscribe(remote, &stream, watch, &subscription, &error) != RW_STATUS_OK) {
        fail("subscribe", &error);
    }
    double bytes = 0, step_s = 0;
    uint32_t elements = 0;
    for (int i = 0; i < STEPS; i++) {
        int64_t start = rw_clock_now_ns();
        if (rw_remote_step(remote, 1, &error) != RW_STATUS_OK) {
            fail("step", &error);
        }
        step_s += seconds_since(start) / STEPS;
        rw_watch_frame frame;
        do {
            if (rw_watch_next(watch, 60, &frame, &error) != RW_STATUS_OK) {
                fail("frame", &error);
            }
        } while (frame.step < (uint64_t)i + 1);
        bytes = (double)frame.payload_bytes;
        elements = frame.element_count;
    }
    print("large/step", step_s * 1e9 / (4.0 * SEGMENTS), "ns per segment-iteration", 0);
    print("large/stream/bytes_per_node", bytes / elements, "bytes", 28);
    rw_watch_destroy(watch);
}

int main(void) {
    rw_daemon daemon;
    static const char* const flags[] = {"--session-memory", "8GiB", NULL};
    rw_daemon_start(&daemon, flags);
    ping_log* log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (log == MAP_FAILED) {
        return 1;
    }
    pid_t pinger = fork();
    if (pinger == 0) {
        ping_until_told(&daemon, log);
        _exit(0);
    }
    sleep(1);

    double* positions = malloc((size_t)NODES * 3 * sizeof *positions);
    uint32_t* segments = malloc((size_t)SEGMENTS * 2 * sizeof *segments);
    fill_hair(positions, segments);
    rw_link* link = connect_to(&daemon);
    rw_remote remote;
    rw_error error;
    if (rw_remote_create(link, "large", &remote, &error) != RW_STATUS_OK) {
        fail("session", &error);
    }
    atomic_store(&log->phase, 1);
    load_hair(link, &remote, positions, segments);
    step_and_stream(link, &remote);
    atomic_store(&log->phase, 2);
    waitpid(pinger, NULL, 0);
    int count = atomic_load(&log->count);
    qsort(log->daemon_ns, (size_t)count, sizeof(int64_t), compare);
    qsort(log->echo_ns, (size_t)count, sizeof(int64_t), compare);
    print("large/ping/p50", percentile_ms(log->daemon_ns, count, 0.5), "ms",
          percentile_ms(log->echo_ns, count, 0.5));
    print("large/ping/p999", percentile_ms(log->daemon_ns, count, 0.999), "ms",
          percentile_ms(log->echo_ns, count, 0.999));
    print("large/ping/max", percentile_ms(log->daemon_ns, count, 1), "ms",
          percentile_ms(log->echo_ns, count, 1));
    rw_link_close(link);
    rw_daemon_stop(&daemon, 30);
    free(positions);
    free(segments);
    munmap(log, sizeof *log);
    return 0;
}
