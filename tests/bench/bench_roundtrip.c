// Round trips of a real daemon beside a raw libuv echo of the same sizes, in one run: Ping, Advance
// of one step of 7 bodies, pipelined Pings. The echo is a process of its own, as the daemon is, and
// does what any libuv server must: read, write what came (in the size of the answer), nothing else.
//
// Samples of daemon and echo alternate, so that a busy moment of the machine hits both; and both are
// placed alike, or the scheduler's choice would decide: on an idle virtual machine a wake-up on another
// core costs more than everything that is measured here. First all on one core, then (names end in
// /two_cores) the servers on one core and the client on another.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#include "tests/support/rw_daemon.h"

enum { BODIES = 7, SAMPLES = 20000, WARM_UP = 2000, BURST = 256 };

// ---- The echo ----

typedef struct echo_head { // what a client asks of the echo: answer so many bytes to so many
    uint32_t request_bytes, answer_bytes;
} echo_head;

typedef struct echo_client {
    uv_tcp_t socket;
    echo_head head;
    size_t head_size, pending;
} echo_client;

static char echo_buffer[1 << 20];
static char echo_answer[1 << 21];

static void echo_allocate(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(echo_buffer, 65536);
}

static void echo_closed(uv_handle_t* handle) { free(handle); }

static void echo_written(uv_write_t* request, int status) {
    (void)status;
    free(request);
}

static void echo_received(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
    echo_client* client = (echo_client*)stream;
    if (size < 0) {
        uv_close((uv_handle_t*)stream, echo_closed);
        return;
    }
    const char* at = buffer->base;
    size_t left = (size_t)size;
    while (left > 0 && client->head_size < sizeof client->head) {
        ((char*)&client->head)[client->head_size++] = *at++;
        left--;
    }
    if (client->head_size < sizeof client->head) {
        return;
    }
    client->pending += left;
    size_t answers = client->pending / client->head.request_bytes;
    client->pending %= client->head.request_bytes;
    size_t bytes = answers * client->head.answer_bytes;
    while (bytes > 0) { // one write per read, as any echo does
        size_t part = bytes < sizeof echo_answer ? bytes : sizeof echo_answer;
        uv_buf_t vector = uv_buf_init(echo_answer, (unsigned)part);
        int wrote = uv_try_write(stream, &vector, 1);
        if (wrote < 0 || (size_t)wrote < part) {
            size_t done = wrote > 0 ? (size_t)wrote : 0;
            vector = uv_buf_init(echo_answer, (unsigned)(part - done));
            uv_write(malloc(sizeof(uv_write_t)), stream, &vector, 1, echo_written);
        }
        bytes -= part;
    }
}

static void echo_connected(uv_stream_t* listener, int status) {
    (void)status;
    echo_client* client = calloc(1, sizeof *client);
    uv_tcp_init(listener->loop, &client->socket);
    uv_accept(listener, (uv_stream_t*)&client->socket);
    uv_tcp_nodelay(&client->socket, 1);
    uv_read_start((uv_stream_t*)&client->socket, echo_allocate, echo_received);
}

// Starts the echo in a process of its own; returns its port.
static int start_echo(pid_t* pid) {
    int ports[2];
    if (pipe(ports) != 0) {
        abort();
    }
    *pid = fork();
    if (*pid == 0) {
        uv_tcp_t listener;
        struct sockaddr_in address;
        int size = sizeof address;
        uv_tcp_init(uv_default_loop(), &listener);
        uv_ip4_addr("127.0.0.1", 0, &address);
        uv_tcp_bind(&listener, (struct sockaddr*)&address, 0);
        uv_listen((uv_stream_t*)&listener, 16, echo_connected);
        uv_tcp_getsockname(&listener, (struct sockaddr*)&address, &size);
        int port = ntohs(address.sin_port);
        ssize_t ignored = write(ports[1], &port, sizeof port);
        (void)ignored;
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
        _exit(0);
    }
    int port = 0;
    if (read(ports[0], &port, sizeof port) != sizeof port) {
        abort();
    }
    close(ports[0]);
    close(ports[1]);
    return port;
}

// ---- Sockets ----

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        abort();
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

static int connect_echo(int port, size_t request_bytes, size_t answer_bytes) {
    int fd = connect_to(port);
    echo_head head = {(uint32_t)request_bytes, (uint32_t)answer_bytes};
    if (send(fd, &head, sizeof head, 0) != sizeof head) {
        abort();
    }
    return fd;
}

static void receive_all(int fd, size_t size) {
    static char bytes[1 << 20];
    while (size > 0) {
        ssize_t got = recv(fd, bytes, size < sizeof bytes ? size : sizeof bytes, 0);
        if (got <= 0) {
            abort();
        }
        size -= (size_t)got;
    }
}

static double round_trip(int fd, const void* request, size_t size, size_t answer) {
    double begin = rw_daemon_now_s();
    if (send(fd, request, size, 0) != (ssize_t)size) {
        abort();
    }
    receive_all(fd, answer);
    return rw_daemon_now_s() - begin;
}

// ---- Figures ----

static int compare(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double quantile(double* sorted, size_t count, double at) {
    return sorted[(size_t)(at * (double)(count - 1))];
}

static const char* placement = ""; // ends the names

static void print(const char* name, double value, const char* unit, double baseline,
                  double ratio) {
    printf("{\"name\": \"%s%s\", \"value\": %.4g, \"unit\": \"%s\", \"baseline\": %.4g, "
           "\"ratio\": %.4g}\n",
           name, placement, value, unit, baseline, ratio);
    fflush(stdout);
}

typedef struct pair {
    double* daemon;
    double* echo;
} pair;

static pair sample(int fd, int echo_fd, const void* request, size_t size, size_t answer) {
    pair times = {malloc(SAMPLES * sizeof(double)), malloc(SAMPLES * sizeof(double))};
    for (int i = -WARM_UP; i < SAMPLES; i++) {
        double daemon = round_trip(fd, request, size, answer);
        double echo = round_trip(echo_fd, request, size, answer);
        if (i >= 0) {
            times.daemon[i] = daemon;
            times.echo[i] = echo;
        }
    }
    qsort(times.daemon, SAMPLES, sizeof(double), compare);
    qsort(times.echo, SAMPLES, sizeof(double), compare);
    return times;
}

static void release(pair times) {
    free(times.daemon);
    free(times.echo);
}

// The size of the answer to a request that was encoded once and is sent again and again.
static size_t answer_size(rw_daemon_client* client, const rw_buffer* request) {
    rw_daemon_frame frame;
    rw_daemon_send_bytes(client, request->data, request->size_bytes);
    if (!rw_daemon_receive(client, &frame, 10, NULL) || frame.kind != RW_FRAME_RESPONSE) {
        abort();
    }
    return RW_FRAME_HEADER_BYTES + frame.size;
}

static void bench_ping(rw_daemon_client* client, int echo_port) {
    rw_buffer request;
    rw_buffer_init(&request, &client->alloc);
    rw_pb_Request ping = rw_pb_Request_init_zero;
    ping.which_command = rw_pb_Request_ping_tag;
    ping.command.ping.payload = 0x123456789abcdef;
    ping.request_id = 1000;
    rw_daemon_append(client, &request, &ping);
    size_t answer = answer_size(client, &request);
    int echo_fd = connect_echo(echo_port, request.size_bytes, answer);
    pair times = sample(client->fd, echo_fd, request.data, request.size_bytes, answer);
    double p50 = quantile(times.daemon, SAMPLES, 0.5), echo_p50 = quantile(times.echo, SAMPLES, 0.5);
    double p99 = quantile(times.daemon, SAMPLES, 0.99),
           echo_p99 = quantile(times.echo, SAMPLES, 0.99);
    print("roundtrip/ping/p50", p50 * 1e6, "us", echo_p50 * 1e6, p50 / echo_p50);
    print("roundtrip/ping/p99", p99 * 1e6, "us", echo_p99 * 1e6, p99 / echo_p99);
    release(times);
    close(echo_fd);
    rw_buffer_finish(&request);
}

// One step alone, as the daemon measures it; the median, as of the round trips.
static double step_cost_s(rw_daemon_client* client, uint64_t session) {
    enum { COUNT = 2001 };
    static double costs[COUNT];
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_step_tag;
    for (int i = 0; i < COUNT; i++) {
        if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
            abort();
        }
        costs[i] = response.result.step_result.wall_s;
    }
    qsort(costs, COUNT, sizeof(double), compare);
    return quantile(costs, COUNT, 0.5);
}

static void bench_advance(rw_daemon_client* client, int echo_port) {
    uint64_t session = rw_daemon_create_session(client, "bench");
    rw_daemon_load_bodies(client, session, BODIES);
    rw_daemon_step(client, session, 100);
    uint32_t width;
    uint64_t observe = rw_daemon_observe(client, session, "body/*/position", &width);
    const char* target = "body/*/wrench";
    rw_pb_Request actuate = rw_pb_Request_init_zero;
    rw_pb_Response response;
    actuate.session = session;
    actuate.which_command = rw_pb_Request_actuate_tag;
    actuate.command.actuate.targets = rw_wire_from_strings(&target, 1);
    if (rw_daemon_call(client, &actuate, &response) != rw_pb_Status_Code_OK) {
        abort();
    }
    double inputs[6 * BODIES] = {0};
    rw_pb_Request advance = rw_pb_Request_init_zero;
    advance.session = session;
    advance.request_id = 1 << 20;
    advance.which_command = rw_pb_Request_advance_tag;
    advance.command.advance.actuate = response.result.actuate.handle;
    advance.command.advance.inputs = rw_wire_from_f64(inputs, 6 * BODIES);
    advance.command.advance.observe = observe;
    rw_buffer request;
    rw_buffer_init(&request, &client->alloc);
    rw_daemon_append(client, &request, &advance);
    size_t answer = answer_size(client, &request);
    int echo_fd = connect_echo(echo_port, request.size_bytes, answer);
    pair times = sample(client->fd, echo_fd, request.data, request.size_bytes, answer);
    double physics = step_cost_s(client, session);
    double p50 = quantile(times.daemon, SAMPLES, 0.5), echo_p50 = quantile(times.echo, SAMPLES, 0.5);
    double p99 = quantile(times.daemon, SAMPLES, 0.99),
           echo_p99 = quantile(times.echo, SAMPLES, 0.99);
    // The ratio is that of the round trip without the physics, which the echo has none of.
    print("roundtrip/advance7/p50", p50 * 1e6, "us", (echo_p50 + physics) * 1e6,
          (p50 - physics) / echo_p50);
    print("roundtrip/advance7/p99", p99 * 1e6, "us", (echo_p99 + physics) * 1e6, p99 / p50);
    print("roundtrip/advance7/physics", physics * 1e6, "us", physics * 1e6, 1);
    fprintf(stderr, "world hash after the benchmark: %016llx\n",
            (unsigned long long)rw_daemon_hash(client, session));
    release(times);
    close(echo_fd);
    rw_buffer_finish(&request);
}

// Bursts of frames, the next sent before the last is answered; frames per second.
static double pipelined(int fd, const char* burst, size_t burst_bytes, size_t answer_bytes,
                        int bursts) {
    double begin = rw_daemon_now_s();
    for (int i = 0; i < bursts + 2; i++) {
        if (i < bursts && send(fd, burst, burst_bytes, 0) != (ssize_t)burst_bytes) {
            abort();
        }
        if (i >= 2) { // two bursts are always on their way
            receive_all(fd, answer_bytes * BURST);
        }
    }
    return (double)bursts * BURST / (rw_daemon_now_s() - begin);
}

static void bench_pipeline(rw_daemon_client* client, int echo_port) {
    rw_buffer burst;
    rw_buffer_init(&burst, &client->alloc);
    size_t answer = 0;
    for (int i = 0; i < BURST; i++) {
        rw_pb_Request ping = rw_pb_Request_init_zero;
        ping.which_command = rw_pb_Request_ping_tag;
        ping.command.ping.payload = 77;
        ping.request_id = 2000 + (uint64_t)i; // two bytes each: all answers are alike
        rw_daemon_append(client, &burst, &ping);
        if (i == 0) {
            answer = answer_size(client, &burst);
        }
    }
    int echo_fd = connect_echo(echo_port, burst.size_bytes / BURST, answer);
    double best = 0, echo_best = 0;
    for (int i = 0; i < 7; i++) {
        double one = pipelined(client->fd, (const char*)burst.data, burst.size_bytes, answer, 1500);
        double echo = pipelined(echo_fd, (const char*)burst.data, burst.size_bytes, answer, 1500);
        best = one > best ? one : best;
        echo_best = echo > echo_best ? echo : echo_best;
    }
    print("throughput/pipelined", best, "1/s", echo_best, best / echo_best);
    close(echo_fd);
    rw_buffer_finish(&burst);
}

// Puts this process, and what it starts, on one core.
static void place_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set); // best effort: without it the scheduler places
}

// Echo and daemon on `server_core`, the client on `client_core`. False when the daemon ended badly.
static bool run(int server_core, int client_core) {
    pid_t echo;
    rw_daemon daemon;
    rw_daemon_client client;
    place_on(server_core);
    int echo_port = start_echo(&echo);
    rw_daemon_start(&daemon, NULL);
    place_on(client_core);
    rw_daemon_greet(&daemon, &client);
    bench_ping(&client, echo_port);
    bench_advance(&client, echo_port);
    bench_pipeline(&client, echo_port);
    rw_daemon_disconnect(&client);
    kill(echo, SIGKILL);
    waitpid(echo, NULL, 0);
    return rw_daemon_stop(&daemon, 10) == 0;
}

int main(void) {
    cpu_set_t allowed;
    int first = -1, last = -1;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed)) {
            first = first < 0 ? core : first;
            last = core;
        }
    }
    bool ok = run(last, last);
    if (first != last) {
        placement = "/two_cores";
        ok = run(last, first) && ok;
    }
    return ok ? 0 : 1;
}
