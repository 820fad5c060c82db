#include "tests/support/rw_daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EARLY_COUNT = 64, WAIT_S = 60 };

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, "\n");                                                                     \
        abort();                                                                                   \
    } while (0)

double rw_daemon_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// ---- The daemon ----

static const char* program(void) {
    const char* path = getenv("ROPEWALK_DAEMON");
    return path != NULL ? path : RW_DAEMON_PATH;
}

static bool read_ports(rw_daemon* daemon) {
    char path[96];
    snprintf(path, sizeof path, "%s/ports", daemon->folder);
    FILE* file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    char word[16];
    int port;
    while (fscanf(file, "%15s %d", word, &port) == 2) {
        if (strcmp(word, "tcp") == 0) {
            daemon->port = port;
        } else {
            daemon->http_port = port;
        }
    }
    fclose(file);
    return true;
}

void rw_daemon_start(rw_daemon* daemon, const char* const* flags) {
    memset(daemon, 0, sizeof *daemon);
    snprintf(daemon->folder, sizeof daemon->folder, "/tmp/ropewalk-test-XXXXXX");
    if (mkdtemp(daemon->folder) == NULL) {
        FAIL("mkdtemp: %s", strerror(errno));
    }
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/log", daemon->folder);
    char ports[96];
    snprintf(ports, sizeof ports, "%s/ports", daemon->folder);
    const char* arguments[40] = {program(), "--listen", "127.0.0.1:0", "--port-file", ports};
    int count = 5;
    for (; flags != NULL && *flags != NULL; flags++) {
        arguments[count++] = *flags;
    }
    daemon->pid = fork();
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that dies takes its daemon along
        int log = open(daemon->log_path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execv(arguments[0], (char* const*)(uintptr_t)arguments);
        _exit(127);
    }
    for (int i = 0; i < 1000; i++) {
        if (read_ports(daemon)) {
            return;
        }
        if (waitpid(daemon->pid, NULL, WNOHANG) != 0) {
            FAIL("%s did not start; see %s", program(), daemon->log_path);
        }
        usleep(10000);
    }
    FAIL("%s does not listen", program());
}

static void remove_folder(const rw_daemon* daemon) {
    static const char* const NAMES[] = {"log", "ports", "socket", "token", "config"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", daemon->folder, NAMES[i]);
        unlink(path);
    }
    rmdir(daemon->folder);
}

int rw_daemon_stop(rw_daemon* daemon, double limit_s) {
    kill(daemon->pid, SIGTERM);
    double end = rw_daemon_now_s() + limit_s;
    int status = 0;
    while (waitpid(daemon->pid, &status, WNOHANG) == 0) {
        if (rw_daemon_now_s() > end) {
            kill(daemon->pid, SIGKILL);
            waitpid(daemon->pid, &status, 0);
            remove_folder(daemon);
            return -1;
        }
        usleep(2000);
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != 0) { // the log says why
        char command[160];
        snprintf(command, sizeof command, "tail -n 20 %s >&2", daemon->log_path);
        int ignored = system(command);
        (void)ignored;
    }
    remove_folder(daemon);
    return code;
}

size_t rw_daemon_resident_bytes(const rw_daemon* daemon) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)daemon;
    return 0;
#else
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)daemon->pid);
    FILE* file = fopen(path, "r");
    unsigned long pages = 0, resident = 0;
    if (file == NULL || fscanf(file, "%lu %lu", &pages, &resident) != 2) {
        FAIL("%s can't be read", path);
    }
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
#endif
}

// ---- Connections ----

void rw_daemon_connect(const rw_daemon* daemon, rw_daemon_client* client) {
    memset(client, 0, sizeof *client);
    client->next_id = 1;
    rw_alloc_init(&client->alloc, 0);
    rw_arena_init(&client->arena, &client->alloc);
    rw_buffer_init(&client->received, &client->alloc);
    rw_buffer_init(&client->out, &client->alloc);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)daemon->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(client->fd, (struct sockaddr*)&address, sizeof address) != 0) {
        FAIL("connect: %s", strerror(errno));
    }
    int yes = 1;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void rw_daemon_greet(const rw_daemon* daemon, rw_daemon_client* client) {
    rw_daemon_connect(daemon, client);
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.which_command = rw_pb_Request_hello_tag;
    request.command.hello.major = 1;
    strcpy(request.command.hello.client_name, "test");
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("Hello: %s", response.message);
    }
    client->connection_id = response.result.hello.connection_id;
}

void rw_daemon_disconnect(rw_daemon_client* client) {
    close(client->fd);
    for (int i = 0; i < EARLY_COUNT; i++) {
        if (client->early[i].data != NULL) {
            rw_buffer_finish(&client->early[i]);
        }
    }
    rw_arena_finish(&client->arena);
    rw_buffer_finish(&client->received);
    rw_buffer_finish(&client->out);
    rw_alloc_finish(&client->alloc);
}

bool rw_daemon_send_bytes(rw_daemon_client* client, const void* bytes, size_t size) {
    const char* at = bytes;
    while (size > 0) {
        ssize_t sent = send(client->fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return false;
        }
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

uint64_t rw_daemon_append(rw_daemon_client* client, rw_buffer* out, rw_pb_Request* request) {
    if (request->request_id == 0) {
        request->request_id = client->next_id++;
    }
    size_t start = out->size_bytes;
    if (rw_buffer_append(out, NULL, RW_FRAME_HEADER_BYTES) != RW_STATUS_OK ||
        rw_message_append_request(out, request) != RW_STATUS_OK ||
        rw_frame_close(out, start, RW_FRAME_REQUEST, NULL, 0) != RW_STATUS_OK) {
        FAIL("a request can't be encoded");
    }
    return request->request_id;
}

uint64_t rw_daemon_send(rw_daemon_client* client, rw_pb_Request* request) {
    client->out.size_bytes = 0;
    uint64_t id = rw_daemon_append(client, &client->out, request);
    rw_daemon_send_bytes(client, client->out.data, client->out.size_bytes);
    return id;
}

// A whole frame at the front of what was received?
static bool take_frame(rw_daemon_client* client, rw_daemon_frame* frame) {
    size_t there = client->received.size_bytes - client->at;
    if (there < RW_FRAME_HEADER_BYTES) {
        return false;
    }
    const uint8_t* at = client->received.data + client->at;
    rw_frame_header header;
    rw_error error;
    if (rw_frame_parse_header(at, UINT32_MAX / 2, &header, &error) != RW_STATUS_OK) {
        FAIL("the daemon sent a bad frame: %s", error.text);
    }
    if (there - RW_FRAME_HEADER_BYTES < header.payload_bytes) {
        return false;
    }
    *frame = (rw_daemon_frame){
        .kind = header.kind, .payload = at + RW_FRAME_HEADER_BYTES, .size = header.payload_bytes};
    client->at += RW_FRAME_HEADER_BYTES + header.payload_bytes;
    return true;
}

bool rw_daemon_receive(rw_daemon_client* client, rw_daemon_frame* frame, double limit_s,
                       bool* closed) {
    double end = rw_daemon_now_s() + limit_s;
    bool unused;
    closed = closed != NULL ? closed : &unused;
    *closed = false;
    while (!take_frame(client, frame)) {
        if (client->at > 0) {
            memmove(client->received.data, client->received.data + client->at,
                    client->received.size_bytes - client->at);
            client->received.size_bytes -= client->at;
            client->at = 0;
        }
        double left_s = end - rw_daemon_now_s();
        struct pollfd waiting = {.fd = client->fd, .events = POLLIN};
        if (left_s <= 0 || poll(&waiting, 1, (int)(left_s * 1000) + 1) <= 0) {
            return false;
        }
        if (rw_buffer_reserve(&client->received, 65536) != RW_STATUS_OK) {
            FAIL("out of memory");
        }
        ssize_t got = recv(client->fd, client->received.data + client->received.size_bytes, 65536,
                           0);
        if (got <= 0) {
            *closed = true;
            return false;
        }
        client->received.size_bytes += (size_t)got;
    }
    return true;
}

static void decode(rw_daemon_client* client, const void* bytes, size_t size,
                   rw_pb_Response* response) {
    rw_error error;
    rw_arena_reset(&client->arena);
    if (rw_message_decode_response(bytes, size, &client->arena, response, &error) !=
        RW_STATUS_OK) {
        FAIL("the daemon sent a bad response: %s: %s", error.path, error.text);
    }
}

static void keep_early(rw_daemon_client* client, const void* bytes, size_t size) {
    for (int i = 0; i < EARLY_COUNT; i++) {
        rw_buffer* place = &client->early[i];
        if (place->size_bytes == 0) {
            place->alloc = &client->alloc;
            rw_buffer_append(place, bytes, size);
            return;
        }
    }
}

// Its bytes stay until the next early response takes the place.
static bool find_early(rw_daemon_client* client, uint64_t id, rw_pb_Response* response) {
    for (int i = 0; i < EARLY_COUNT; i++) {
        rw_buffer* place = &client->early[i];
        if (place->size_bytes > 0) {
            decode(client, place->data, place->size_bytes, response);
            if (response->request_id == id) {
                place->size_bytes = 0;
                return true;
            }
        }
    }
    return false;
}

void rw_daemon_wait(rw_daemon_client* client, uint64_t id, rw_pb_Response* response) {
    if (find_early(client, id, response)) {
        return;
    }
    double end = rw_daemon_now_s() + WAIT_S;
    rw_daemon_frame frame;
    bool closed = false;
    while (rw_daemon_receive(client, &frame, end - rw_daemon_now_s(), &closed)) {
        if (frame.kind != RW_FRAME_RESPONSE) {
            continue;
        }
        decode(client, frame.payload, frame.size, response);
        if (response->request_id == id) {
            return;
        }
        keep_early(client, frame.payload, frame.size);
    }
    FAIL("no response to request %llu: %s", (unsigned long long)id,
         closed ? "closed" : "timed out");
}

rw_pb_Status_Code rw_daemon_call(rw_daemon_client* client, rw_pb_Request* request,
                                 rw_pb_Response* response) {
    request->request_id = 0;
    rw_daemon_wait(client, rw_daemon_send(client, request), response);
    return response->status;
}

bool rw_daemon_wait_event(rw_daemon_client* client, pb_size_t kind, rw_pb_Event* event,
                          double limit_s) {
    double end = rw_daemon_now_s() + limit_s;
    rw_daemon_frame frame;
    rw_error error;
    while (rw_daemon_receive(client, &frame, end - rw_daemon_now_s(), NULL)) {
        if (frame.kind == RW_FRAME_EVENT) {
            rw_arena_reset(&client->arena);
            if (rw_message_decode_event(frame.payload, frame.size, &client->arena, event,
                                        &error) != RW_STATUS_OK) {
                FAIL("the daemon sent a bad event: %s", error.text);
            }
            if (event->which_kind == kind) {
                return true;
            }
        }
    }
    return false;
}

bool rw_daemon_wait_state(rw_daemon_client* client, rw_pb_StateFrame* state, double limit_s) {
    double end = rw_daemon_now_s() + limit_s;
    rw_daemon_frame frame;
    rw_error error;
    while (rw_daemon_receive(client, &frame, end - rw_daemon_now_s(), NULL)) {
        if (frame.kind == RW_FRAME_STATE) {
            rw_arena_reset(&client->arena);
            if (rw_message_decode_state(frame.payload, frame.size, &client->arena, state,
                                        &error) != RW_STATUS_OK) {
                FAIL("the daemon sent a bad state frame: %s", error.text);
            }
            return true;
        }
    }
    return false;
}

bool rw_daemon_is_closed(rw_daemon_client* client, double limit_s) {
    double end = rw_daemon_now_s() + limit_s;
    rw_daemon_frame frame;
    bool closed = false;
    while (!closed && rw_daemon_now_s() < end) {
        rw_daemon_receive(client, &frame, end - rw_daemon_now_s(), &closed);
    }
    return closed;
}

// ---- Usual requests ----

uint64_t rw_daemon_create_session(rw_daemon_client* client, const char* name) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.which_command = rw_pb_Request_create_session_tag;
    strcpy(request.command.create_session.name, name);
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("CreateSession: %s", response.message);
    }
    return response.result.session.id;
}

static bool fill_body(void* context, uint32_t index, void* item) {
    (void)context;
    rw_pb_Body* body = item;
    snprintf(body->name, sizeof body->name, "b%u", index);
    body->mass = 1 + 0.1 * index;
    body->inertia_count = 6;
    body->inertia[0] = 0.1;
    body->inertia[1] = 0.17;
    body->inertia[2] = 0.22;
    body->position_count = body->angular_velocity_count = body->linear_velocity_count = 3;
    body->position[0] = index;
    body->linear_velocity[1] = 0.5;
    body->angular_velocity[0] = 1;
    body->angular_velocity[1] = 2 + 0.01 * index;
    body->angular_velocity[2] = -0.7;
    return true;
}

void rw_daemon_load_bodies(rw_daemon_client* client, uint64_t session, int count) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_load_scene_tag;
    request.command.load_scene.has_scene = true;
    request.command.load_scene.scene.bodies =
        rw_wire_from_fill(fill_body, NULL, sizeof(rw_pb_Body), (size_t)count);
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("LoadScene: %s: %s", response.path, response.message);
    }
}

void rw_daemon_step(rw_daemon_client* client, uint64_t session, uint32_t count) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_step_tag;
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = count;
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("Step: %s", response.message);
    }
}

uint64_t rw_daemon_hash(rw_daemon_client* client, uint64_t session) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_query_tag;
    request.command.query.which_question = rw_pb_Query_hash_tag;
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("Query hash: %s", response.message);
    }
    return response.result.query.answer.hash.hash;
}

uint64_t rw_daemon_observe(rw_daemon_client* client, uint64_t session, const char* glob,
                           uint32_t* width) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    request.session = session;
    request.which_command = rw_pb_Request_observe_tag;
    request.command.observe.signals = rw_wire_from_strings(&glob, 1);
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        FAIL("Observe: %s", response.message);
    }
    *width = response.result.observe.width;
    return response.result.observe.handle;
}
