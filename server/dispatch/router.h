// The router: takes whole frames from a connection and sends each request where it belongs. The one
// place that decides about Hello, ids, roles, draining. Loop thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/dispatch/dispatch.h"

// A request's payload as it came: either `bytes`, valid during the call, or `pieces`, which the
// router takes over.
typedef struct rw_router_message {
    const uint8_t* bytes;
    size_t size_bytes;
    rw_task_piece* pieces;
    bool is_compressed;
} rw_router_message;

// Takes one request of a client and answers it, now or later.
void rw_router_accept(rw_client* client, const rw_router_message* message);

// True while nothing more may be parsed for this client: too many open requests, too many bytes of
// them, or one that must be unpacked first.
bool rw_router_is_full(const rw_client* client);

// The end of every routed task: the loop thread's half of some commands, then the answer (or, within
// a Batch, `task->parent`).
void rw_router_finish(rw_task* task);

// Routes a task whose `bytes` are whole; for requests within a Batch too.
void rw_router_route(rw_client* client, rw_task* task);
