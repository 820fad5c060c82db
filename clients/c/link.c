#include "clients/c/link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/frame.h"
#include "solvers/base/clock.h"
#include "solvers/base/hash.h"

enum {
    RW_LINK_MAJOR = 1,
    RW_LINK_MINOR = 0,
    RW_LINK_READ_BYTES = 64 * 1024,
    RW_LINK_QUEUE_BYTES = 1024 * 1024, // more waiting output makes `send` wait
};

// A payload that arrived while another answer was awaited.
typedef struct inbox_entry {
    struct inbox_entry* next;
    rw_frame_kind kind;
    size_t size;
    uint8_t bytes[];
} inbox_entry;

struct rw_link {
    int socket;
    rw_alloc alloc;
    rw_frame_reader reader;
    rw_buffer outgoing;
    size_t outgoing_at; // bytes of it that were sent
    rw_buffer scratch;  // decompressed payload of the message given last
    rw_buffer large;    // a response fetched in chunks
    rw_arena arena;     // arrays that came in pieces, of the message given last
    ZSTD_DCtx* unpacker;
    ZSTD_CCtx* packer;
    size_t compress_above;
    int64_t timeout_ns; // negative: none
    int64_t spin_ns;
    uint64_t last_request_id;
    inbox_entry* inbox;
    inbox_entry** inbox_end;
    inbox_entry* given; // the entry that the message given last points into
    size_t inbox_state_bytes;
    size_t inbox_limit;
    uint64_t dropped;
    rw_pb_Response response;
    rw_pb_HelloResult hello;
    bool is_lost;
    rw_error lost; // why
};

// ---- Failing ----

// The connection is of no use any more: this error is the answer to every later call.
static rw_status lose(rw_link* link, rw_error* error, rw_status status, const char* text) {
    link->is_lost = true;
    rw_status_fail(&link->lost, status, "", "%s", text);
    if (error != NULL) {
        *error = link->lost;
    }
    return status;
}

static rw_status lose_errno(rw_link* link, rw_error* error, const char* what) {
    char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    return lose(link, error, RW_STATUS_UNAVAILABLE, text);
}

static rw_status check_alive(rw_link* link, rw_error* error) {
    if (link->is_lost && error != NULL) {
        *error = link->lost;
    }
    return link->is_lost ? link->lost.status : RW_STATUS_OK;
}

// ---- The socket ----

static int64_t deadline_after(int64_t timeout_ns) {
    return timeout_ns < 0 ? INT64_MAX : rw_clock_now_ns() + timeout_ns;
}

static rw_status write_some(rw_link* link, rw_error* error) {
    rw_buffer* out = &link->outgoing;
    while (link->outgoing_at < out->size_bytes) {
        ssize_t sent = send(link->socket, out->data + link->outgoing_at,
                            out->size_bytes - link->outgoing_at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return RW_STATUS_OK;
        }
        if (sent < 0) {
            return lose_errno(link, error, "cannot write to the server");
        }
        link->outgoing_at += (size_t)sent;
    }
    out->size_bytes = link->outgoing_at = 0;
    return RW_STATUS_OK;
}

// Reads what is there; `*count` = 0 when nothing is.
static rw_status read_some(rw_link* link, size_t* count, rw_error* error) {
    *count = 0;
    size_t space;
    uint8_t* room = rw_frame_reader_space(&link->reader, RW_LINK_READ_BYTES, &space);
    if (room == NULL) {
        return lose(link, error, RW_STATUS_RESOURCE_EXHAUSTED, "no memory to receive");
    }
    ssize_t got;
    do {
        got = recv(link->socket, room, space, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return lose(link, error, RW_STATUS_UNAVAILABLE, "the server closed the connection");
    }
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        return lose_errno(link, error, "cannot read from the server");
    }
    if (got > 0) {
        *count = (size_t)got;
        rw_frame_reader_received(&link->reader, (size_t)got);
    }
    return RW_STATUS_OK;
}

// Moves bytes in either direction until some were read, the queue of output is down to `queue`
// bytes (SIZE_MAX: whatever), or the time is over (DEADLINE_EXCEEDED).
static rw_status exchange(rw_link* link, size_t queue, int64_t deadline_ns, rw_error* error) {
    int64_t spin_end = link->spin_ns > 0 ? rw_clock_now_ns() + link->spin_ns : 0;
    for (;;) {
        RW_TRY(write_some(link, error));
        bool is_writing = link->outgoing_at < link->outgoing.size_bytes;
        if (link->outgoing.size_bytes - link->outgoing_at <= queue && queue != SIZE_MAX) {
            return RW_STATUS_OK;
        }
        if (spin_end != 0 && rw_clock_now_ns() < spin_end) {
            size_t count;
            RW_TRY(read_some(link, &count, error));
            if (count > 0) {
                return RW_STATUS_OK;
            }
            continue;
        }
        int wait_ms = -1;
        if (deadline_ns != INT64_MAX) {
            int64_t left = deadline_ns - rw_clock_now_ns();
            wait_ms = left <= 0 ? 0 : left / 1000000 >= 1000000 ? 1000000 : (int)(left / 1000000 + 1);
        }
        struct pollfd poller = {.fd = link->socket,
                                .events = (short)(POLLIN | (is_writing ? POLLOUT : 0))};
        int ready = poll(&poller, 1, wait_ms);
        if (ready < 0 && errno != EINTR) {
            return lose_errno(link, error, "cannot wait for the server");
        }
        if (ready > 0 && (poller.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            size_t count;
            RW_TRY(read_some(link, &count, error));
            if (count > 0) {
                return RW_STATUS_OK;
            }
        }
        if (ready == 0 && rw_clock_now_ns() >= deadline_ns) {
            RW_FAIL(error, DEADLINE_EXCEEDED, "", "nothing came from the server in time");
        }
    }
}

// ---- The inbox ----

static void inbox_remove_oldest_state(rw_link* link) {
    for (inbox_entry** place = &link->inbox; *place != NULL; place = &(*place)->next) {
        inbox_entry* entry = *place;
        if (entry->kind == RW_FRAME_STATE) {
            *place = entry->next;
            if (entry->next == NULL) {
                link->inbox_end = place;
            }
            link->inbox_state_bytes -= entry->size;
            link->dropped++;
            rw_alloc_free(&link->alloc, entry);
            return;
        }
    }
}

// Keeps a payload (as sent: still compressed) for rw_link_receive.
static rw_status inbox_add(rw_link* link, const rw_frame_view* frame, const uint8_t* bytes,
                           size_t size, rw_error* error) {
    inbox_entry* entry = rw_alloc_get(&link->alloc, sizeof *entry + size);
    if (entry == NULL) {
        return lose(link, error, RW_STATUS_RESOURCE_EXHAUSTED, "no memory to keep what arrived");
    }
    *entry = (inbox_entry){.kind = frame->header.kind, .size = size};
    memcpy(entry->bytes, bytes, size);
    *link->inbox_end = entry;
    link->inbox_end = &entry->next;
    if (entry->kind == RW_FRAME_STATE) {
        link->inbox_state_bytes += size;
        while (link->inbox_state_bytes > link->inbox_limit) {
            inbox_remove_oldest_state(link);
        }
    }
    return RW_STATUS_OK;
}

static inbox_entry* inbox_take(rw_link* link) {
    inbox_entry* entry = link->inbox;
    if (entry != NULL) {
        link->inbox = entry->next;
        if (entry->next == NULL) {
            link->inbox_end = &link->inbox;
        }
        link->inbox_state_bytes -= entry->kind == RW_FRAME_STATE ? entry->size : 0;
    }
    return entry;
}

// What the last call gave out is not needed any more.
static void forget_given(rw_link* link) {
    rw_alloc_free(&link->alloc, link->given);
    link->given = NULL;
    rw_arena_reset(&link->arena);
    if (link->large.capacity_bytes > 0) {
        rw_buffer_finish(&link->large);
    }
}

// ---- Frames to messages ----

// Gives the next whole frame's message bytes, reading from the socket as needed.
static rw_status next_payload(rw_link* link, int64_t deadline_ns, rw_frame_view* frame,
                              const uint8_t** bytes, size_t* size, rw_error* error) {
    for (;;) {
        switch (rw_frame_read(&link->reader, frame)) {
        case RW_FRAME_READY: {
            rw_error fault;
            if (rw_frame_payload(frame, link->unpacker, link->reader.max_message,
                                 &link->scratch, bytes, size, &fault) != RW_STATUS_OK) {
                return lose(link, error, RW_STATUS_DATA_LOSS, fault.text);
            }
            return RW_STATUS_OK;
        }
        case RW_FRAME_BROKEN:
            return lose(link, error, RW_STATUS_DATA_LOSS, link->reader.error.text);
        case RW_FRAME_MORE: RW_TRY(exchange(link, SIZE_MAX, deadline_ns, error)); break;
        }
    }
}

static rw_status decode(rw_link* link, rw_frame_kind kind, const uint8_t* bytes, size_t size,
                        rw_link_message* message, rw_error* error) {
    rw_error fault = {0};
    rw_status status = RW_STATUS_INVALID_ARGUMENT;
    switch (kind) {
    case RW_FRAME_RESPONSE:
        message->kind = RW_LINK_RESPONSE;
        status = rw_message_decode_response(bytes, size, &link->arena, &message->as.response,
                                            &fault);
        break;
    case RW_FRAME_EVENT:
        message->kind = RW_LINK_EVENT;
        status = rw_message_decode_event(bytes, size, &link->arena, &message->as.event, &fault);
        if (status == RW_STATUS_OK &&
            message->as.event.which_kind == rw_pb_Event_protocol_error_tag) {
            return lose(link, error, RW_STATUS_INTERNAL,
                        message->as.event.kind.protocol_error.reason);
        }
        break;
    case RW_FRAME_STATE:
        message->kind = RW_LINK_STATE;
        status = rw_message_decode_state(bytes, size, &link->arena, &message->as.state, &fault);
        break;
    case RW_FRAME_REQUEST:
        return lose(link, error, RW_STATUS_DATA_LOSS, "the server sent a request");
    }
    if (status != RW_STATUS_OK) {
        char text[sizeof fault.path + sizeof fault.text + 2];
        snprintf(text, sizeof text, "%s%s%s", fault.path, fault.path[0] != '\0' ? ": " : "", fault.text);
        return lose(link, error, RW_STATUS_DATA_LOSS, text);
    }
    return RW_STATUS_OK;
}

// Reads the request_id of an encoded Response, which begins like a Request.
static uint64_t response_id(const uint8_t* bytes, size_t size) {
    _Static_assert(rw_pb_Response_request_id_tag == rw_pb_Request_request_id_tag, "peeked alike");
    rw_message_peek peek;
    rw_message_peek_request(bytes, size, &peek);
    return peek.request_id;
}

// ---- Requests ----

static rw_status queue_request(rw_link* link, rw_pb_Request* request, rw_error* error) {
    RW_TRY(check_alive(link, error));
    request->request_id = ++link->last_request_id;
    size_t start = link->outgoing.size_bytes;
    rw_status status = rw_buffer_append(&link->outgoing, NULL, RW_FRAME_HEADER_BYTES);
    if (status == RW_STATUS_OK) {
        status = rw_message_append_request(&link->outgoing, request);
    }
    uint32_t max = link->reader.max_message;
    if (status == RW_STATUS_OK &&
        link->outgoing.size_bytes - start - RW_FRAME_HEADER_BYTES > max) {
        link->outgoing.size_bytes = start;
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the request exceeds the server's limit of %u bytes: "
                "upload its large arrays", max);
    }
    if (status == RW_STATUS_OK) {
        status = rw_frame_close(&link->outgoing, start, RW_FRAME_REQUEST, link->packer,
                                link->compress_above);
    }
    if (status != RW_STATUS_OK) {
        link->outgoing.size_bytes = start;
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to encode the request");
    }
    return RW_STATUS_OK;
}

// Waits for the answer to one request; everything else goes to the inbox.
static rw_status await(rw_link* link, uint64_t request_id, rw_error* error) {
    int64_t deadline = deadline_after(link->timeout_ns);
    for (;;) {
        rw_frame_view frame;
        const uint8_t* bytes;
        size_t size;
        rw_status status = next_payload(link, deadline, &frame, &bytes, &size, error);
        if (status == RW_STATUS_DEADLINE_EXCEEDED) {
            // The answer may still come and would be taken for another's.
            return lose(link, error, status, "no answer in time");
        }
        RW_TRY(status);
        rw_link_message message;
        if (frame.header.kind == RW_FRAME_RESPONSE && response_id(bytes, size) == request_id) {
            RW_TRY(decode(link, RW_FRAME_RESPONSE, bytes, size, &message, error));
            link->response = message.as.response;
            return RW_STATUS_OK;
        }
        if (frame.header.kind == RW_FRAME_EVENT) { // a farewell must not wait in the inbox
            RW_TRY(decode(link, RW_FRAME_EVENT, bytes, size, &message, error));
        }
        RW_TRY(inbox_add(link, &frame, bytes, size, error));
    }
}

static rw_status call_once(rw_link* link, rw_pb_Request* request, rw_error* error) {
    RW_TRY(queue_request(link, request, error));
    RW_TRY(await(link, request->request_id, error));
    const rw_pb_Response* response = &link->response;
    if (response->status != rw_pb_Status_Code_OK) {
        return rw_status_fail(error, (rw_status)response->status, response->path, "%s",
                              response->message);
    }
    return RW_STATUS_OK;
}

// Fetches the response that a LargeResult stands for.
static rw_status fetch_large(rw_link* link, rw_error* error) {
    const rw_pb_LargeResult large = link->response.result.large;
    rw_buffer whole;
    rw_buffer_init(&whole, &link->alloc);
    rw_status status = rw_buffer_reserve(&whole, large.bytes);
    if (status != RW_STATUS_OK) {
        rw_status_fail(error, status, "", "no memory for an answer of %llu bytes",
                       (unsigned long long)large.bytes);
    }
    while (status == RW_STATUS_OK && whole.size_bytes < large.bytes) {
        rw_pb_Request request = {.which_command = rw_pb_Request_download_chunk_tag};
        request.command.download_chunk.blob = large.blob;
        request.command.download_chunk.offset = whole.size_bytes;
        status = call_once(link, &request, error);
        if (status != RW_STATUS_OK) {
            break;
        }
        rw_wire_bytes data = link->response.result.download_chunk.data;
        if (link->response.which_result != rw_pb_Response_download_chunk_tag || data.size == 0 ||
            data.size > large.bytes - whole.size_bytes) {
            status = lose(link, error, RW_STATUS_DATA_LOSS, "a download does not fit its size");
            break;
        }
        status = rw_buffer_append(&whole, data.data, data.size);
    }
    if (status == RW_STATUS_OK && rw_hash_crc32(0, whole.data, whole.size_bytes) != large.crc) {
        status = rw_status_fail(error, RW_STATUS_DATA_LOSS, "", "a download is damaged");
    }
    rw_link_message message;
    if (status == RW_STATUS_OK) {
        status = decode(link, RW_FRAME_RESPONSE, whole.data, whole.size_bytes, &message, error);
    }
    if (status != RW_STATUS_OK) {
        rw_buffer_finish(&whole);
        return status;
    }
    link->response = message.as.response;
    link->large = whole;
    return RW_STATUS_OK;
}

rw_status rw_link_call(rw_link* link, rw_pb_Request* request, const rw_pb_Response** response,
                         rw_error* error) {
    forget_given(link);
    RW_TRY(call_once(link, request, error));
    if (link->response.which_result == rw_pb_Response_large_tag) {
        RW_TRY(fetch_large(link, error));
    }
    if (response != NULL) {
        *response = &link->response;
    }
    return RW_STATUS_OK;
}

rw_status rw_link_upload(rw_link* link, const void* data, size_t size, uint64_t* blob,
                           rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_begin_upload_tag};
    request.command.begin_upload.bytes = size;
    request.command.begin_upload.crc = rw_hash_crc32(0, data, size);
    const rw_pb_Response* response;
    RW_TRY(rw_link_call(link, &request, &response, error));
    uint64_t id = response->result.begin_upload.blob;
    size_t chunk = response->result.begin_upload.max_chunk;
    if (response->which_result != rw_pb_Response_begin_upload_tag || chunk == 0) {
        RW_FAIL(error, INTERNAL, "", "the server did not begin the upload");
    }
    for (size_t at = 0; at < size; at += chunk) {
        request = (rw_pb_Request){.which_command = rw_pb_Request_upload_chunk_tag};
        request.command.upload_chunk.blob = id;
        request.command.upload_chunk.offset = at;
        request.command.upload_chunk.data =
            (rw_wire_bytes){(const uint8_t*)data + at, size - at < chunk ? size - at : chunk};
        RW_TRY(rw_link_call(link, &request, NULL, error));
    }
    *blob = id;
    return RW_STATUS_OK;
}

// ---- Pipelining ----

rw_status rw_link_send(rw_link* link, rw_pb_Request* request, rw_error* error) {
    RW_TRY(queue_request(link, request, error));
    RW_TRY(write_some(link, error));
    int64_t deadline = deadline_after(link->timeout_ns);
    while (link->outgoing.size_bytes - link->outgoing_at > RW_LINK_QUEUE_BYTES) {
        // The server may have stopped reading until its answers are read: they go to the inbox.
        RW_TRY(exchange(link, RW_LINK_QUEUE_BYTES, deadline, error));
        rw_frame_view frame;
        while (rw_frame_read(&link->reader, &frame) == RW_FRAME_READY) {
            const uint8_t* bytes;
            size_t size;
            rw_error fault;
            if (rw_frame_payload(&frame, link->unpacker, link->reader.max_message,
                                 &link->scratch, &bytes, &size, &fault) != RW_STATUS_OK) {
                return lose(link, error, RW_STATUS_DATA_LOSS, fault.text);
            }
            RW_TRY(inbox_add(link, &frame, bytes, size, error));
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_link_receive(rw_link* link, double timeout_s, rw_link_message* message,
                            rw_error* error) {
    forget_given(link);
    link->given = inbox_take(link);
    if (link->given != NULL) {
        return decode(link, link->given->kind, link->given->bytes, link->given->size, message,
                      error);
    }
    RW_TRY(check_alive(link, error));
    int64_t timeout_ns = timeout_s < 0 ? link->timeout_ns : (int64_t)(timeout_s * 1e9);
    rw_frame_view frame;
    const uint8_t* bytes;
    size_t size;
    RW_TRY(next_payload(link, deadline_after(timeout_ns), &frame, &bytes, &size, error));
    return decode(link, frame.header.kind, bytes, size, message, error);
}

uint64_t rw_link_dropped(const rw_link* link) { return link->dropped; }

// ---- Connecting ----

static int connect_unix(const char* path, rw_error* error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, "address", "the path is too long");
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) {
        rw_status_fail(error, RW_STATUS_UNAVAILABLE, "address", "%s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

// Splits "HOST:PORT" or "[IPV6]:PORT".
static bool split_address(const char* address, char* host, size_t capacity, const char** port) {
    const char* colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0') {
        return false;
    }
    const char* start = address;
    const char* end = colon;
    if (*start == '[' && end > start && end[-1] == ']') {
        start++;
        end--;
    }
    if ((size_t)(end - start) >= capacity) {
        return false;
    }
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    *port = colon + 1;
    return true;
}

// Connects without blocking longer than `timeout_ns`.
static bool connect_in_time(int fd, const struct addrinfo* target, int64_t timeout_ns) {
    struct timeval limit = {.tv_sec = timeout_ns < 0 ? 0 : timeout_ns / 1000000000,
                            .tv_usec = timeout_ns < 0 ? 0 : timeout_ns % 1000000000 / 1000};
    // Linux applies the send timeout to connect as well.
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return connect(fd, target->ai_addr, target->ai_addrlen) == 0;
}

static int connect_tcp(const char* address, int64_t timeout_ns, rw_error* error) {
    char host[256];
    const char* port;
    if (!split_address(address, host, sizeof host, &port)) {
        rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, "address", "\"%s\" is not HOST:PORT",
                       address);
        return -1;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo* targets;
    int fault = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &targets);
    if (fault != 0) {
        rw_status_fail(error, RW_STATUS_UNAVAILABLE, "address", "%s: %s", address,
                       gai_strerror(fault));
        return -1;
    }
    int fd = -1;
    int reason = 0;
    for (const struct addrinfo* target = targets; target != NULL && fd < 0; target = target->ai_next) {
        fd = socket(target->ai_family, target->ai_socktype | SOCK_CLOEXEC, target->ai_protocol);
        if (fd >= 0 && !connect_in_time(fd, target, timeout_ns)) {
            reason = errno;
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(targets);
    if (fd < 0) {
        rw_status_fail(error, RW_STATUS_UNAVAILABLE, "address", "%s: %s", address,
                       strerror(reason == EINPROGRESS ? ETIMEDOUT : reason));
        return -1;
    }
    int on = 1; // a request of a control loop must not wait for company
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static rw_status say_hello(rw_link* link, const rw_link_config* config, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_hello_tag};
    rw_pb_Hello* hello = &request.command.hello;
    const char* token = config->token != NULL ? config->token : getenv("ROPEWALK_TOKEN");
    const char* name = config->client_name != NULL ? config->client_name : "c";
    hello->major = RW_LINK_MAJOR;
    hello->minor = RW_LINK_MINOR;
    snprintf(hello->client_name, sizeof hello->client_name, "%s", name);
    if (token != NULL) {
        if (strlen(token) >= sizeof hello->token) {
            RW_FAIL(error, INVALID_ARGUMENT, "token", "has more than %zu bytes",
                    sizeof hello->token - 1);
        }
        snprintf(hello->token, sizeof hello->token, "%s", token);
    }
    const rw_pb_Response* response;
    RW_TRY(rw_link_call(link, &request, &response, error));
    if (response->which_result != rw_pb_Response_hello_tag) {
        RW_FAIL(error, INTERNAL, "", "the server did not answer Hello");
    }
    link->hello = response->result.hello;
    uint64_t max = link->hello.limits.max_message;
    if (max > 0 && max <= UINT32_MAX) {
        link->reader.max_message = (uint32_t)max;
    }
    return RW_STATUS_OK;
}

rw_status rw_link_connect(const rw_link_config* config, rw_link** result, rw_error* error) {
    *result = NULL;
    const char* address = config->address != NULL ? config->address : "127.0.0.1:7171";
    double timeout_s = config->timeout_s == 0 ? 30 : config->timeout_s;
    int64_t timeout_ns = timeout_s < 0 ? -1 : (int64_t)(timeout_s * 1e9);
    int fd = strncmp(address, "unix:", 5) == 0 ? connect_unix(address + 5, error)
                                               : connect_tcp(address, timeout_ns, error);
    if (fd < 0) {
        return error != NULL ? error->status : RW_STATUS_UNAVAILABLE;
    }
    rw_link* link = calloc(1, sizeof *link);
    if (link == NULL) {
        close(fd);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a link");
    }
    link->socket = fd;
    rw_alloc_init(&link->alloc, 0);
    rw_arena_init(&link->arena, &link->alloc);
    rw_buffer_init(&link->outgoing, &link->alloc);
    rw_buffer_init(&link->scratch, &link->alloc);
    rw_buffer_init(&link->large, &link->alloc);
    rw_frame_reader_init(&link->reader, &link->alloc, RW_FRAME_DEFAULT_MAX_MESSAGE);
    link->inbox_end = &link->inbox;
    link->inbox_limit = config->inbox_bytes > 0 ? config->inbox_bytes : 64u << 20;
    link->timeout_ns = timeout_ns;
    link->spin_ns = (int64_t)(config->spin_s * 1e9);
    link->unpacker = ZSTD_createDCtx();
    link->compress_above = config->compress_above;
    link->packer = config->compress_above > 0 ? ZSTD_createCCtx() : NULL;
    bool has_zstd =
        link->unpacker != NULL && (link->packer != NULL || config->compress_above == 0);
    rw_status status = has_zstd ? say_hello(link, config, error)
                                : rw_status_fail(error, RW_STATUS_RESOURCE_EXHAUSTED, "",
                                                 "no memory for zstd's contexts");
    if (status != RW_STATUS_OK) {
        rw_link_close(link);
        return status;
    }
    *result = link;
    return RW_STATUS_OK;
}

void rw_link_close(rw_link* link) {
    if (link == NULL) {
        return;
    }
    close(link->socket);
    forget_given(link);
    for (inbox_entry* entry; (entry = inbox_take(link)) != NULL;) {
        rw_alloc_free(&link->alloc, entry);
    }
    rw_frame_reader_finish(&link->reader);
    rw_buffer_finish(&link->outgoing);
    rw_buffer_finish(&link->scratch);
    rw_arena_finish(&link->arena);
    ZSTD_freeDCtx(link->unpacker);
    ZSTD_freeCCtx(link->packer);
    rw_alloc_finish(&link->alloc);
    free(link);
}

const rw_pb_HelloResult* rw_link_hello(const rw_link* link) { return &link->hello; }

rw_alloc* rw_link_memory(rw_link* link) { return &link->alloc; }
