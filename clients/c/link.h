// A connection to a Ropewalk daemon. Blocking; one thread at a time. While it writes it reads, so
// that a long pipeline of requests never stands still against the server's flow control.
//
//   send ----> [outgoing] ----> socket ----> [reader] ----> answer of the call that waits
//                                                |
//                                                +--------> [inbox] -> receive
//                                       (answers to others, events, state frames)
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"
#include "solvers/base/alloc.h"
#include "solvers/base/status.h"

typedef struct rw_link rw_link;

typedef struct rw_link_config {
    const char* address;     // "HOST:PORT", "[IPV6]:PORT" or "unix:PATH"; NULL = "127.0.0.1:7171"
    const char* token;       // NULL = the environment's ROPEWALK_TOKEN, or none
    const char* client_name; // for the server's log; NULL = "c"
    double timeout_s;        // of connecting and of each wait; 0 = 30, negative = none
    double spin_s;           // time to wait busily before sleeping: lower latency for CPU time
    size_t inbox_bytes;      // state frames kept while nobody receives; 0 = 64 MiB; the oldest go
    size_t compress_above;   // requests of this size and more are compressed; 0 = never
} rw_link_config;

// Connects and says Hello. UNAVAILABLE when nobody listens, UNAUTHENTICATED for a wrong token,
// FAILED_PRECONDITION for another protocol version. `*link` is NULL on failure.
rw_status rw_link_connect(const rw_link_config* config, rw_link** link, rw_error* error);

// Closes the connection and frees everything; NULL is accepted.
void rw_link_close(rw_link* link);

// What the server said at Hello: version, features, limits.
const rw_pb_HelloResult* rw_link_hello(const rw_link* link);

// The account that this link's memory is charged to.
rw_alloc* rw_link_memory(rw_link* link);

// ---- One request, one answer ----

// Sends a request (its request_id is set here) and waits for its answer. Anything else that arrives
// meanwhile is kept for rw_link_receive. An answer other than OK is this call's status and error.
// An answer above the message limit is fetched in chunks. `*response` (may be NULL) is valid, views
// included, until the next call on this link. When time runs out (DEADLINE_EXCEEDED) or the
// connection is lost (UNAVAILABLE), the link can only be closed.
rw_status rw_link_call(rw_link* link, rw_pb_Request* request,
                         const rw_pb_Response** response, rw_error* error);

// Uploads bytes for a command to refer to as `*blob`.
rw_status rw_link_upload(rw_link* link, const void* data, size_t size, uint64_t* blob,
                           rw_error* error);

// ---- Pipelining ----

// Queues a request (its request_id is set and returned in it) and writes what the socket takes; when
// more than 1 MiB waits, it writes and reads until less does.
rw_status rw_link_send(rw_link* link, rw_pb_Request* request, rw_error* error);

typedef enum rw_link_kind {
    RW_LINK_RESPONSE,
    RW_LINK_EVENT,
    RW_LINK_STATE,
} rw_link_kind;

typedef struct rw_link_message {
    rw_link_kind kind;
    union {
        rw_pb_Response response; // of the request with response.request_id; its status is its own
        rw_pb_Event event;
        rw_pb_StateFrame state;
    } as;
} rw_link_message;

// Gives the next answer, event or state frame in the order of arrival, waiting at most `timeout_s`
// (negative = the configured time). DEADLINE_EXCEEDED when nothing came: harmless here. The message
// is valid until the next call on this link.
rw_status rw_link_receive(rw_link* link, double timeout_s, rw_link_message* message,
                            rw_error* error);

// State frames that were dropped because the inbox was full.
uint64_t rw_link_dropped(const rw_link* link);
