// The reactor: the libuv loop with everything that hangs on it, and the order of work within one
// turn. Loop thread.
//
//   prepare: deliver the inbox, flush          (what timers did)
//   poll:    sockets are read, frames parsed; Hello, Ping, ... are answered on the spot
//   check:   short work inline, the rest to workers; stalled connections parse on; flush: one write
//            per connection
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "server/session/host.h"

typedef struct rw_connection rw_connection;
typedef struct rw_listener rw_listener;
typedef struct rw_http rw_http;

typedef struct rw_reactor {
    uv_loop_t loop;
    rw_host* host;
    uv_async_t bell; // workers ring it
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t tick; // lives, time-outs
    uv_timer_t pace; // runs by the clock
    uv_signal_t terminate, interrupt;
    rw_listener* listeners;
    rw_http* http;
    rw_connection* connections; // all
    rw_connection* dirty;       // have something to write
    rw_connection* resumed;     // may parse on
    uint64_t turn;              // counts loop turns
    int64_t turn_begin_ns;
    bool is_draining;
    int64_t drain_until_ns;
    unsigned char read_buffer[65536]; // shared: a read is worked off before the next
} rw_reactor;

// Prepares loop, timers and signals. The host must be started.
rw_status rw_reactor_init(rw_reactor* reactor, rw_host* host, rw_error* error);

// Runs until it was asked to drain and all is done.
void rw_reactor_run(rw_reactor* reactor);

// Ends HTTP, listeners and connections. After rw_reactor_run; then the host may be stopped, whose
// threads may ring the bell to their end.
void rw_reactor_disconnect(rw_reactor* reactor);

// Closes the loop. After rw_host_stop.
void rw_reactor_finish(rw_reactor* reactor);

// As SIGTERM does.
void rw_reactor_drain(rw_reactor* reactor);

// Notes that a connection has something to write, or may parse on.
void rw_reactor_mark_dirty(rw_reactor* reactor, rw_connection* connection);
void rw_reactor_mark_resumed(rw_reactor* reactor, rw_connection* connection);
