// A connection: bytes in, frames to the router; answers and state frames out. Loop thread.
//
//   in:   read -> [pending] -> header -> small frame: router
//                                    \-> large frame: pieces, read in place -> router
//         stalled while: 1,024 open requests, 1 MiB of unsent replies, a message being unpacked
//   out:  replies (never dropped, in order) before state frames (droppable); what the socket does
//         not take at once is in flight until libuv has written it
//
//   OPEN --framing error, hello time-out--> LINGER (says why, reads on and throws away) --> CLOSED
//   OPEN --peer closes, write fails, drain--> CLOSED
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "proto/frame.h"
#include "server/net/reactor.h"
#include "server/stream/subscribers.h"

enum { RW_CONNECTION_MAX_UNSENT = 1 << 20 }; // reply bytes; beyond it nothing is read

// A chunk of replies too large to copy, or what was before one.
typedef struct rw_connection_chunk {
    struct rw_connection_chunk* next;
    rw_buffer bytes;
} rw_connection_chunk;

// A state frame that waits.
typedef struct rw_connection_frame {
    struct rw_connection_frame* next;
    rw_stream_frame* frame;
    rw_subscriber* subscriber; // NULL: it left while the frame was in flight
} rw_connection_frame;

struct rw_connection {
    union {
        uv_tcp_t tcp;
        uv_pipe_t pipe;
        uv_stream_t stream;
        uv_handle_t handle;
    } socket;
    rw_reactor* reactor;
    rw_client* client; // NULL once lost
    rw_connection* previous;
    rw_connection* next;
    rw_connection* dirty_next;
    rw_connection* resumed_next;
    bool is_dirty, is_resumed, is_reading, is_stalled, is_lingering, is_closing, is_shut;
    uint64_t seen_turn; // the last in which it was read from
    int64_t opened_ns;
    int64_t linger_until_ns;

    // In
    rw_buffer pending;  // received, not parsed
    size_t pending_at;
    rw_frame_header large; // of the frame whose pieces are being read; 0 bytes = none
    rw_task_piece* pieces;
    rw_task_piece* last_piece;
    size_t large_left;

    // Out
    rw_buffer out; // replies behind the chunks
    rw_connection_chunk* chunks;
    rw_connection_chunk* last_chunk;
    size_t unsent_bytes; // replies queued and in flight
    rw_connection_frame* frames;
    rw_connection_frame* last_frame;
    size_t frame_bytes;
    uv_write_t write;
    uv_shutdown_t shutdown;
    bool is_writing;
    rw_buffer flight_bytes;             // in flight: replies ...
    rw_connection_frame* flight_frame;  // ... or a state frame
};

// Takes a new connection from a listening socket. Refuses when there are too many. False when there
// is no memory even for that: the caller must take it off the socket, or nothing more comes.
bool rw_connection_accept(rw_reactor* reactor, uv_stream_t* listener, bool is_tcp);

// Parses on after a stall.
void rw_connection_resume(rw_connection* connection);

// Writes what is queued.
void rw_connection_flush(rw_connection* connection);

// Hello time-outs and the end of lingering.
void rw_connection_tick(rw_connection* connection, int64_t now_ns);

// Sends the end behind all replies and reads on until the peer closes too (the server stops).
void rw_connection_end(rw_connection* connection);

// Closes now; what is unsent is lost.
void rw_connection_close(rw_connection* connection);

// True when nothing waits to be written.
bool rw_connection_is_flushed(const rw_connection* connection);
