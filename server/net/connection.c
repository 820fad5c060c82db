#include "server/net/connection.h"

#include <string.h>

#include "proto/message.h"
#include "server/dispatch/router.h"
#include "server/log.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

enum {
    PIECE_BYTES = 256 * 1024,
    KEEP_BYTES = 256 * 1024, // buffers above this are given back when they are empty
    CHUNK_BYTES = 64 * 1024, // replies from here on are not copied
    MAX_VECTORS = 32,
    FLUSH_BYTES = 256 * 1024, // of replies made within one read: do not wait for the end of turn
};

#define LINGER_NS 1000000000

static void start_reading(rw_connection* connection);
static void parse_pending(rw_connection* connection);

static rw_alloc* account(const rw_connection* connection) {
    return &connection->reactor->host->alloc;
}

static rw_metrics* metrics(const rw_connection* connection) {
    return &connection->reactor->host->metrics;
}

// ---- Closing ----

static void free_pieces(rw_connection* connection) {
    while (connection->pieces != NULL) {
        rw_task_piece* piece = connection->pieces;
        connection->pieces = piece->next;
        rw_alloc_free(account(connection), piece);
    }
    connection->last_piece = NULL;
}

static void free_frame(rw_connection* connection, rw_connection_frame* one, bool was_sent) {
    connection->frame_bytes -= one->frame->size_bytes;
    if (one->subscriber != NULL) {
        rw_subscribers_done(one->subscriber, one->frame, was_sent);
    }
    rw_publisher_drop_frame(one->frame);
    rw_alloc_free(account(connection), one);
}

static void closed(uv_handle_t* handle) {
    rw_connection* connection = handle->data;
    rw_reactor* reactor = connection->reactor;
    rw_alloc* alloc = account(connection);
    free_pieces(connection);
    rw_buffer_finish(&connection->pending);
    rw_buffer_finish(&connection->out);
    rw_buffer_finish(&connection->flight_bytes);
    while (connection->chunks != NULL) {
        rw_connection_chunk* chunk = connection->chunks;
        connection->chunks = chunk->next;
        rw_buffer_finish(&chunk->bytes);
        rw_alloc_free(alloc, chunk);
    }
    if (connection->flight_frame != NULL) {
        free_frame(connection, connection->flight_frame, false);
    }
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        reactor->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    rw_quota_give(&reactor->host->connections);
    rw_metrics_add(&reactor->host->metrics, RW_METRICS_connections, -1);
    rw_alloc_free(alloc, connection);
}

// Takes it out of a list of the reactor, so that nobody looks at it again.
static void unlink_from(rw_connection** list, rw_connection* connection, bool is_dirty_list) {
    while (*list != NULL && *list != connection) {
        list = is_dirty_list ? &(*list)->dirty_next : &(*list)->resumed_next;
    }
    if (*list == connection) {
        *list = is_dirty_list ? connection->dirty_next : connection->resumed_next;
    }
}

void rw_connection_close(rw_connection* connection) {
    if (connection->is_closing) {
        return;
    }
    connection->is_closing = true;
    if (connection->is_dirty) {
        unlink_from(&connection->reactor->dirty, connection, true);
    }
    if (connection->is_resumed) {
        unlink_from(&connection->reactor->resumed, connection, false);
    }
    if (connection->client != NULL) {
        RW_LOG(DEBUG, "disconnected", RW_LOG_FIELD_NUMBER("connection", connection->client->id));
        rw_client_lose(connection->client); // ends its subscriptions, which forget their frames
        connection->client = NULL;
    }
    while (connection->frames != NULL) { // of subscribers that are gone
        rw_connection_frame* one = connection->frames;
        connection->frames = one->next;
        one->subscriber = NULL;
        free_frame(connection, one, false);
    }
    if (connection->flight_frame != NULL) {
        connection->flight_frame->subscriber = NULL;
    }
    uv_close(&connection->socket.handle, closed);
}

static void shut_down(uv_shutdown_t* request, int status) {
    (void)status;
    rw_connection* connection = request->data;
    connection->is_shut = true;
}

// Says why and stops listening to the peer; what it still sends is read and thrown away for a
// moment, so that the reason reaches it instead of a reset.
static void linger(rw_connection* connection, const char* reason) {
    rw_pb_Event event = rw_pb_Event_init_zero;
    event.which_kind = rw_pb_Event_protocol_error_tag;
    strncpy(event.kind.protocol_error.reason, reason,
            sizeof event.kind.protocol_error.reason - 1);
    size_t start = connection->out.size_bytes;
    if (rw_buffer_append(&connection->out, NULL, RW_FRAME_HEADER_BYTES) != RW_STATUS_OK ||
        rw_message_append_event(&connection->out, &event) != RW_STATUS_OK ||
        rw_frame_close(&connection->out, start, RW_FRAME_EVENT, NULL, 0) != RW_STATUS_OK) {
        connection->out.size_bytes = start;
    }
    connection->unsent_bytes += connection->out.size_bytes - start;
    connection->is_lingering = true;
    connection->linger_until_ns = rw_clock_now_ns() + LINGER_NS;
    connection->large_left = 0;
    free_pieces(connection);
    rw_buffer_finish(&connection->pending);
    connection->pending_at = 0;
    connection->is_stalled = false;
    start_reading(connection);
    rw_reactor_mark_dirty(connection->reactor, connection);
}

void rw_connection_end(rw_connection* connection) {
    if (connection->is_closing || connection->is_lingering) {
        return;
    }
    connection->is_lingering = true;
    connection->linger_until_ns = rw_clock_now_ns() + LINGER_NS;
    connection->is_stalled = false;
    start_reading(connection);
    rw_connection_flush(connection);
}

static void framing_error(rw_connection* connection, const char* reason) {
    rw_metrics_add(metrics(connection), RW_METRICS_framing_errors_total, 1);
    RW_LOG(WARN, "framing_error", RW_LOG_FIELD_NUMBER("connection", connection->client->id),
           RW_LOG_FIELD_TEXT("reason", reason));
    linger(connection, reason);
}

// ---- In ----

static bool is_full(const rw_connection* connection) {
    return connection->unsent_bytes > RW_CONNECTION_MAX_UNSENT ||
           rw_router_is_full(connection->client);
}

static bool add_piece(rw_connection* connection) {
    size_t capacity = connection->large_left < PIECE_BYTES ? connection->large_left : PIECE_BYTES;
    rw_task_piece* piece = rw_alloc_get(account(connection), sizeof *piece + capacity);
    if (piece == NULL) {
        return false;
    }
    piece->capacity_bytes = capacity;
    if (connection->last_piece != NULL) {
        connection->last_piece->next = piece;
    } else {
        connection->pieces = piece;
    }
    connection->last_piece = piece;
    return true;
}

static void accept_large(rw_connection* connection) {
    rw_router_message message = {.size_bytes = connection->large.payload_bytes,
                                 .pieces = connection->pieces,
                                 .is_compressed =
                                     (connection->large.flags & RW_FRAME_ZSTD) != 0};
    connection->pieces = connection->last_piece = NULL;
    connection->large.payload_bytes = 0;
    rw_router_accept(connection->client, &message);
}

// Puts bytes into the pieces; returns how many were taken. Memory that runs out ends the connection:
// there is no place to keep what the peer goes on sending.
static size_t fill_pieces(rw_connection* connection, const uint8_t* bytes, size_t size) {
    size_t taken = 0;
    while (taken < size && connection->large_left > 0) {
        rw_task_piece* piece = connection->last_piece;
        if (piece == NULL || piece->size_bytes == piece->capacity_bytes) {
            if (!add_piece(connection)) {
                framing_error(connection, "out of memory for a large message");
                return size;
            }
            piece = connection->last_piece;
        }
        size_t room = piece->capacity_bytes - piece->size_bytes;
        size_t part = size - taken < room ? size - taken : room;
        memcpy(piece->bytes + piece->size_bytes, bytes + taken, part);
        piece->size_bytes += part;
        connection->large_left -= part;
        taken += part;
    }
    if (connection->large_left == 0 && connection->large.payload_bytes != 0) {
        accept_large(connection);
    }
    return taken;
}

// Works off whole frames; returns the bytes used. Stops when there is no more room for requests.
static size_t parse(rw_connection* connection, const uint8_t* bytes, size_t size) {
    size_t at = 0;
    const rw_config* config = connection->reactor->host->config;
    while (size - at >= RW_FRAME_HEADER_BYTES && !connection->is_lingering &&
           !connection->is_closing && !is_full(connection)) {
        rw_frame_header header;
        rw_error error;
        // Who has not said Hello has no reason for long messages.
        uint32_t limit = connection->client->said_hello ? (uint32_t)config->max_message_bytes
                                                        : RW_HOST_LOOP_MESSAGE_BYTES;
        if (rw_frame_parse_header(bytes + at, limit, &header, &error) != RW_STATUS_OK) {
            framing_error(connection, error.text);
            return size;
        }
        if (header.kind != RW_FRAME_REQUEST) {
            framing_error(connection, "a client sends frames of kind request only");
            return size;
        }
        const uint8_t* payload = bytes + at + RW_FRAME_HEADER_BYTES;
        size_t there = size - at - RW_FRAME_HEADER_BYTES;
        if (header.payload_bytes > RW_HOST_LOOP_MESSAGE_BYTES) {
            connection->large = header;
            connection->large_left = header.payload_bytes;
            at += RW_FRAME_HEADER_BYTES + fill_pieces(connection, payload, there);
            if (connection->large_left > 0) {
                break;
            }
            continue;
        }
        if (there < header.payload_bytes) {
            break;
        }
        rw_router_message message = {.bytes = payload,
                                     .size_bytes = header.payload_bytes,
                                     .is_compressed = (header.flags & RW_FRAME_ZSTD) != 0};
        rw_router_accept(connection->client, &message);
        at += RW_FRAME_HEADER_BYTES + header.payload_bytes;
        if (connection->out.size_bytes > FLUSH_BYTES && !connection->is_writing) {
            rw_connection_flush(connection);
        }
    }
    return connection->is_lingering ? size : at;
}

static void stall(rw_connection* connection) {
    connection->is_stalled = true;
    if (connection->is_reading) {
        uv_read_stop(&connection->socket.stream);
        connection->is_reading = false;
    }
}

static void keep_pending(rw_connection* connection, const uint8_t* bytes, size_t size) {
    if (size > 0 && rw_buffer_append(&connection->pending, bytes, size) != RW_STATUS_OK) {
        framing_error(connection, "out of memory");
    }
}

static void parse_pending(rw_connection* connection) {
    rw_buffer* pending = &connection->pending;
    connection->pending_at += parse(connection, pending->data + connection->pending_at,
                                    pending->size_bytes - connection->pending_at);
    if (connection->is_lingering || connection->is_closing) {
        return;
    }
    if (connection->pending_at == pending->size_bytes) {
        connection->pending_at = pending->size_bytes = 0;
        if (pending->capacity_bytes > KEEP_BYTES) {
            rw_buffer_finish(pending);
        }
    } else if (connection->pending_at > 0 && !is_full(connection)) {
        // An incomplete frame is left: to the front with it, so that the buffer does not creep.
        memmove(pending->data, pending->data + connection->pending_at,
                pending->size_bytes - connection->pending_at);
        pending->size_bytes -= connection->pending_at;
        connection->pending_at = 0;
    }
}

static void allocate(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
    (void)suggested;
    rw_connection* connection = handle->data;
    // The rest of a large frame goes where it will stay.
    if (connection->large_left > 0 && !connection->is_lingering) {
        rw_task_piece* piece = connection->last_piece;
        if ((piece != NULL && piece->size_bytes < piece->capacity_bytes) ||
            add_piece(connection)) {
            piece = connection->last_piece;
            *buffer = uv_buf_init((char*)piece->bytes + piece->size_bytes,
                                  (unsigned)(piece->capacity_bytes - piece->size_bytes));
            return;
        }
    }
    *buffer = uv_buf_init((char*)connection->reactor->read_buffer,
                          sizeof connection->reactor->read_buffer);
}

static void take_bytes(rw_connection* connection, const uint8_t* bytes, size_t size) {
    if (connection->large_left > 0 && connection->last_piece != NULL &&
        bytes == connection->last_piece->bytes + connection->last_piece->size_bytes) {
        connection->last_piece->size_bytes += size;
        connection->large_left -= size;
        if (connection->large_left == 0) {
            accept_large(connection);
        }
    } else if (connection->large_left > 0) { // no memory for a piece when it was allocated
        fill_pieces(connection, bytes, size);
    } else if (connection->pending.size_bytes == 0) {
        size_t used = parse(connection, bytes, size);
        if (!connection->is_lingering) {
            keep_pending(connection, bytes + used, size - used);
        }
    } else {
        keep_pending(connection, bytes, size);
        if (!connection->is_lingering) {
            parse_pending(connection);
        }
    }
}

static void received(uv_stream_t* stream, ssize_t size, const uv_buf_t* buffer) {
    rw_connection* connection = stream->data;
    rw_reactor* reactor = connection->reactor;
    if (size < 0) {
        rw_connection_close(connection);
        return;
    }
    if (size == 0 || connection->is_lingering) {
        return;
    }
    if (connection->seen_turn != reactor->turn) {
        connection->seen_turn = reactor->turn;
        reactor->host->active_connections++;
    }
    rw_metrics_add(metrics(connection), RW_METRICS_received_bytes_total, size);
    take_bytes(connection, (const uint8_t*)buffer->base, (size_t)size);
    if (!connection->is_lingering && !connection->is_closing && is_full(connection)) {
        stall(connection);
    }
}

static void start_reading(rw_connection* connection) {
    if (!connection->is_reading && !connection->is_closing) {
        connection->is_reading =
            uv_read_start(&connection->socket.stream, allocate, received) == 0;
    }
}

void rw_connection_resume(rw_connection* connection) {
    if (connection->is_closing || connection->is_lingering || is_full(connection)) {
        return;
    }
    connection->is_stalled = false;
    if (connection->pending.size_bytes > connection->pending_at) {
        parse_pending(connection);
    }
    if (connection->is_closing || connection->is_lingering) {
        return;
    }
    if (is_full(connection)) {
        stall(connection);
    } else {
        start_reading(connection);
    }
}

// ---- Out: queueing ----

static void send_bytes(void* self, const void* bytes, size_t size) {
    rw_connection* connection = self;
    if (connection->is_closing || connection->is_lingering) {
        return;
    }
    if (rw_buffer_append(&connection->out, bytes, size) != RW_STATUS_OK) {
        // A reply that is lost breaks every promise; a closed connection is honest.
        RW_LOG(ERROR, "out_of_memory", RW_LOG_FIELD_TEXT("for", "a reply"));
        linger(connection, "out of memory");
        return;
    }
    connection->unsent_bytes += size;
    rw_reactor_mark_dirty(connection->reactor, connection);
}

static bool add_chunk(rw_connection* connection, rw_buffer* bytes) {
    rw_connection_chunk* chunk = rw_alloc_get(account(connection), sizeof *chunk);
    if (chunk == NULL) {
        return false;
    }
    chunk->bytes = *bytes;
    rw_buffer_init(bytes, bytes->alloc);
    if (connection->last_chunk != NULL) {
        connection->last_chunk->next = chunk;
    } else {
        connection->chunks = chunk;
    }
    connection->last_chunk = chunk;
    return true;
}

static void send_buffer(void* self, rw_buffer* bytes) {
    rw_connection* connection = self;
    size_t size = bytes->size_bytes;
    if (size >= CHUNK_BYTES && bytes->alloc == account(connection) && !connection->is_closing &&
        !connection->is_lingering &&
        (connection->out.size_bytes == 0 || add_chunk(connection, &connection->out)) &&
        add_chunk(connection, bytes)) {
        connection->unsent_bytes += size;
        rw_reactor_mark_dirty(connection->reactor, connection);
        return;
    }
    send_bytes(connection, bytes->data, size);
    bytes->size_bytes = 0;
}

// ---- Out: state frames ----

static void unlink_frame(rw_connection* connection, rw_connection_frame** link) {
    rw_connection_frame* one = *link;
    *link = one->next;
    if (connection->last_frame == one) {
        connection->last_frame = NULL;
        for (rw_connection_frame* f = connection->frames; f != NULL; f = f->next) {
            connection->last_frame = f;
        }
    }
}

static bool has_newer_key(const rw_connection_frame* one) {
    for (const rw_connection_frame* later = one->next; later != NULL; later = later->next) {
        if (later->subscriber == one->subscriber && later->frame->is_key) {
            return true;
        }
    }
    return false;
}

// Drops the oldest frame that may go: any but a key that nothing newer replaces, and none of a
// recorder. False when there is none.
static bool drop_oldest(rw_connection* connection) {
    for (rw_connection_frame** link = &connection->frames; *link != NULL; link = &(*link)->next) {
        rw_connection_frame* one = *link;
        if (one->subscriber->back_pressure || (one->frame->is_key && !has_newer_key(one))) {
            continue;
        }
        const rw_subscriber* reader = one->subscriber;
        bool is_key = one->frame->is_key;
        unlink_frame(connection, link);
        free_frame(connection, one, false);
        // Without its key a frame is worthless: what was predicted from this one goes with it.
        while (is_key && *link != NULL &&
               !((*link)->subscriber == reader && (*link)->frame->is_key)) {
            one = *link;
            if (one->subscriber == reader) {
                unlink_frame(connection, link);
                free_frame(connection, one, false);
            } else {
                link = &one->next;
            }
        }
        return true;
    }
    return false;
}

static void send_frame(void* self, rw_stream_frame* frame, rw_subscriber* subscriber) {
    rw_connection* connection = self;
    rw_connection_frame* one =
        connection->is_closing || connection->is_lingering
            ? NULL
            : rw_alloc_get(account(connection), sizeof *one);
    if (one == NULL) {
        rw_subscribers_done(subscriber, frame, false);
        return;
    }
    one->frame = frame;
    one->subscriber = subscriber;
    frame->refs++;
    if (connection->last_frame != NULL) {
        connection->last_frame->next = one;
    } else {
        connection->frames = one;
    }
    connection->last_frame = one;
    connection->frame_bytes += frame->size_bytes;
    while (connection->frame_bytes > RW_SUBSCRIBERS_QUEUE_BYTES && drop_oldest(connection)) {
    }
    rw_reactor_mark_dirty(connection->reactor, connection);
}

static void forget_frames(void* self, const rw_subscriber* subscriber) {
    rw_connection* connection = self;
    rw_connection_frame** link = &connection->frames;
    while (*link != NULL) {
        rw_connection_frame* one = *link;
        if (one->subscriber == subscriber) {
            unlink_frame(connection, link);
            one->subscriber = NULL;
            free_frame(connection, one, false);
        } else {
            link = &one->next;
        }
    }
    if (connection->flight_frame != NULL && connection->flight_frame->subscriber == subscriber) {
        connection->flight_frame->subscriber = NULL;
    }
}

static void resume(void* self) {
    rw_connection* connection = self;
    if (connection->is_stalled && !is_full(connection)) {
        rw_reactor_mark_resumed(connection->reactor, connection);
    }
}

static const rw_client_link LINK = {.send = send_bytes,
                                    .send_buffer = send_buffer,
                                    .send_frame = send_frame,
                                    .forget_frames = forget_frames,
                                    .resume = resume};

// ---- Out: writing ----

static void written(uv_write_t* request, int status) {
    rw_connection* connection = request->data;
    connection->is_writing = false;
    if (connection->is_closing) {
        return;
    }
    if (connection->flight_frame != NULL) {
        rw_connection_frame* one = connection->flight_frame;
        connection->flight_frame = NULL;
        free_frame(connection, one, status == 0);
    } else {
        connection->unsent_bytes -= connection->flight_bytes.size_bytes;
        connection->flight_bytes.size_bytes = 0;
        if (connection->flight_bytes.capacity_bytes > KEEP_BYTES) {
            rw_buffer_finish(&connection->flight_bytes);
        }
    }
    if (status != 0) {
        rw_connection_close(connection);
        return;
    }
    rw_connection_flush(connection);
    if (!connection->is_closing) {
        resume(connection);
    }
}

// Leaves the rest of a piece to libuv until the socket takes it. The piece must stay where it is:
// flight_bytes or flight_frame hold it.
static void write_rest(rw_connection* connection, const void* bytes, size_t size) {
    uv_buf_t vector = uv_buf_init((char*)(uintptr_t)bytes, (unsigned)size);
    connection->write.data = connection;
    connection->is_writing = true;
    rw_metrics_add(metrics(connection), RW_METRICS_sent_bytes_total, (int64_t)size);
    if (uv_write(&connection->write, &connection->socket.stream, &vector, 1, written) != 0) {
        connection->is_writing = false;
        rw_connection_close(connection);
    }
}

// What is to be written next, in order: chunks, replies, state frames.
static unsigned collect(const rw_connection* connection, uv_buf_t vectors[MAX_VECTORS],
                        size_t* total) {
    unsigned count = 0;
    *total = 0;
    for (const rw_connection_chunk* chunk = connection->chunks;
         chunk != NULL && count < MAX_VECTORS - 1; chunk = chunk->next) {
        vectors[count++] =
            uv_buf_init((char*)chunk->bytes.data, (unsigned)chunk->bytes.size_bytes);
        *total += chunk->bytes.size_bytes;
        if (chunk->next != NULL && count == MAX_VECTORS - 1) {
            return count; // the rest must wait its turn
        }
    }
    if (connection->out.size_bytes > 0) {
        vectors[count++] =
            uv_buf_init((char*)connection->out.data, (unsigned)connection->out.size_bytes);
        *total += connection->out.size_bytes;
    }
    for (const rw_connection_frame* one = connection->frames; one != NULL && count < MAX_VECTORS;
         one = one->next) {
        vectors[count++] =
            uv_buf_init((char*)one->frame->bytes, (unsigned)one->frame->size_bytes);
        *total += one->frame->size_bytes;
    }
    return count;
}

// Takes `size` written bytes off the queues. When the socket took less than it was offered, the
// first piece that was not written wholly goes in flight.
static void consume(rw_connection* connection, size_t size, bool took_all) {
    while (connection->chunks != NULL && !(took_all && size == 0)) {
        rw_connection_chunk* chunk = connection->chunks;
        size_t whole = chunk->bytes.size_bytes;
        connection->chunks = chunk->next;
        if (connection->chunks == NULL) {
            connection->last_chunk = NULL;
        }
        rw_buffer bytes = chunk->bytes;
        rw_alloc_free(account(connection), chunk);
        if (size >= whole) {
            size -= whole;
            connection->unsent_bytes -= whole;
            rw_buffer_finish(&bytes);
            continue;
        }
        rw_buffer_finish(&connection->flight_bytes);
        connection->flight_bytes = bytes;
        write_rest(connection, bytes.data + size, whole - size);
        return;
    }
    if (connection->out.size_bytes > 0 && !(took_all && size == 0)) {
        size_t whole = connection->out.size_bytes;
        if (size < whole) {
            rw_buffer empty = connection->flight_bytes;
            connection->flight_bytes = connection->out;
            connection->out = empty;
            connection->out.size_bytes = 0;
            write_rest(connection, connection->flight_bytes.data + size, whole - size);
            return;
        }
        size -= whole;
        connection->unsent_bytes -= whole;
        connection->out.size_bytes = 0;
        if (connection->out.capacity_bytes > KEEP_BYTES) {
            rw_buffer_finish(&connection->out);
        }
    }
    while (connection->frames != NULL && !(took_all && size == 0)) {
        rw_connection_frame* one = connection->frames;
        size_t whole = one->frame->size_bytes;
        connection->frames = one->next;
        if (connection->frames == NULL) {
            connection->last_frame = NULL;
        }
        one->next = NULL;
        if (size >= whole) {
            size -= whole;
            free_frame(connection, one, true);
            continue;
        }
        connection->flight_frame = one;
        write_rest(connection, one->frame->bytes + size, whole - size);
        return;
    }
}

void rw_connection_flush(rw_connection* connection) {
    while (!connection->is_writing && !connection->is_closing) {
        uv_buf_t vectors[MAX_VECTORS];
        size_t total;
        unsigned count = collect(connection, vectors, &total);
        if (count == 0) {
            break;
        }
        int size = uv_try_write(&connection->socket.stream, vectors, count);
        if (size < 0 && size != UV_EAGAIN) {
            rw_connection_close(connection);
            return;
        }
        size_t wrote = size > 0 ? (size_t)size : 0;
        rw_metrics_add(metrics(connection), RW_METRICS_sent_bytes_total, (int64_t)wrote);
        consume(connection, wrote, wrote == total);
    }
    if (connection->is_lingering && !connection->is_writing && !connection->is_closing &&
        !connection->is_shut && rw_connection_is_flushed(connection)) {
        connection->is_shut = true;
        connection->shutdown.data = connection;
        if (uv_shutdown(&connection->shutdown, &connection->socket.stream, shut_down) != 0) {
            rw_connection_close(connection);
        }
    }
    if (!connection->is_closing) {
        resume(connection);
    }
}

bool rw_connection_is_flushed(const rw_connection* connection) {
    return !connection->is_writing && connection->chunks == NULL &&
           connection->out.size_bytes == 0;
}

// ---- Life ----

static void refused(uv_handle_t* handle) {
    rw_connection* connection = handle->data;
    rw_alloc_free(account(connection), connection);
}

bool rw_connection_accept(rw_reactor* reactor, uv_stream_t* listener, bool is_tcp) {
    rw_host* host = reactor->host;
    rw_connection* connection = rw_alloc_get(&host->alloc, sizeof *connection);
    if (connection == NULL) {
        return false;
    }
    connection->reactor = reactor;
    if (is_tcp) {
        uv_tcp_init(&reactor->loop, &connection->socket.tcp);
    } else {
        uv_pipe_init(&reactor->loop, &connection->socket.pipe, 0);
    }
    connection->socket.handle.data = connection;
    rw_error error = {0};
    if (uv_accept(listener, &connection->socket.stream) != 0 || host->is_draining ||
        rw_quota_take(&host->connections, &error) != RW_STATUS_OK) {
        rw_metrics_add(&host->metrics, RW_METRICS_connections_refused_total, 1);
        RW_LOG(WARN, "connection_refused", RW_LOG_FIELD_TEXT("reason", error.text));
        uv_close(&connection->socket.handle, refused);
        return true;
    }
    connection->client = rw_client_create(host, &LINK, connection);
    if (connection->client == NULL) {
        rw_quota_give(&host->connections);
        uv_close(&connection->socket.handle, refused);
        return true;
    }
    if (is_tcp) {
        uv_tcp_nodelay(&connection->socket.tcp, 1);
        uv_tcp_keepalive(&connection->socket.tcp, 1, 60); // a peer that vanished is noticed
    }
    rw_buffer_init(&connection->pending, &host->alloc);
    rw_buffer_init(&connection->out, &host->alloc);
    rw_buffer_init(&connection->flight_bytes, &host->alloc);
    connection->opened_ns = rw_clock_now_ns();
    connection->next = reactor->connections;
    if (connection->next != NULL) {
        connection->next->previous = connection;
    }
    reactor->connections = connection;
    rw_metrics_add(&host->metrics, RW_METRICS_connections, 1);
    rw_metrics_add(&host->metrics, RW_METRICS_connections_total, 1);
    RW_LOG(DEBUG, "connected", RW_LOG_FIELD_NUMBER("connection", connection->client->id));
    start_reading(connection);
    return true;
}

void rw_connection_tick(rw_connection* connection, int64_t now_ns) {
    if (connection->is_closing) {
        return;
    }
    if (connection->is_lingering) {
        if (now_ns >= connection->linger_until_ns) {
            rw_connection_close(connection);
        }
        return;
    }
    double waited_s = (double)(now_ns - connection->opened_ns) * 1e-9;
    if (!connection->client->said_hello &&
        waited_s > connection->reactor->host->config->hello_timeout_s) {
        linger(connection, "no Hello within the time limit");
    }
}
