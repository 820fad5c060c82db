// Dispatch: from a request to the function that serves it. A table says of each command where it
// runs and what it needs; the families of commands are in commands_*.c.
//
//   AT_ONCE, LOOP   on the loop thread, as soon as it is read (at most microseconds)
//   CLIENT          on the client's own actor: blobs, and messages that must be unpacked
//   SESSION         in the session's mailbox, in order; on a worker or inline
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/command.pb.h"
#include "server/session/session.h"
#include "server/session/task.h"
#include "solvers/base/status.h"

typedef enum rw_dispatch_verdict {
    RW_DISPATCH_DONE,  // the reply is in the task
    RW_DISPATCH_AGAIN, // the slice is over; run again
    RW_DISPATCH_PARK,  // waits for a reader; run again when unparked
} rw_dispatch_verdict;

typedef enum rw_dispatch_place {
    RW_DISPATCH_AT_ONCE, // even while the server drains or nobody said Hello... see flags
    RW_DISPATCH_LOOP,
    RW_DISPATCH_CLIENT,
    RW_DISPATCH_SESSION,
} rw_dispatch_place;

enum {
    RW_DISPATCH_CONTROL = 1,       // needs CONTROL
    RW_DISPATCH_STILL = 2,         // FAILED_PRECONDITION while RUNNING
    RW_DISPATCH_WHEN_FAULTED = 4,  // works when FAULTED
    RW_DISPATCH_HEAVY = 8,         // never on the loop thread
    RW_DISPATCH_WHEN_DRAINING = 16, // is served while the server drains
    RW_DISPATCH_EDIT = 32,         // an edit: while RUNNING, Response.step is the next step
};

// A command being served.
typedef struct rw_command {
    rw_host* host;
    rw_client* client;   // who asked
    rw_session* session; // NULL outside SESSION
    rw_world* world;     // the session's
    rw_task* task;
    const rw_pb_Request* request; // decoded; views into the task's bytes
    rw_pb_Response* response;     // zeroed; the handler fills the result
    rw_arena* arena;              // until the answer is encoded
    rw_error* error;
    int64_t slice_end_ns;
    rw_dispatch_verdict verdict; // DONE unless the handler says otherwise
    bool is_answered;            // the handler wrote the reply by itself
    bool is_deferred;            // the handler sent the task on its way; others answer
} rw_command;

typedef rw_status (*rw_dispatch_handler)(rw_command* command);

typedef struct rw_dispatch_entry {
    rw_dispatch_place place;
    unsigned flags;
    rw_dispatch_handler handler; // NULL: UNIMPLEMENTED
} rw_dispatch_entry;

// The table's row of a command; NULL for an unknown tag.
const rw_dispatch_entry* rw_dispatch_find(uint32_t command_tag);

// Serves one slice of a session's task. Whoever owns the session's actor.
rw_dispatch_verdict rw_dispatch_run(rw_session* session, rw_task* task, int64_t slice_end_ns);

// Unpacks a client's message and, when its command belongs there, serves it. On the client's actor.
void rw_dispatch_run_on_client(rw_client* client, rw_task* task);

// Serves a LOOP or AT_ONCE command whose bytes are in the task: the reply is in the task, unless
// `*is_deferred`: then the handler sent the task on its way. Loop thread.
void rw_dispatch_run_on_loop(rw_client* client, rw_task* task, bool* is_deferred);

// What the task will probably cost; -1 when it is not for the loop thread. Loop thread.
int64_t rw_dispatch_expected_ns(rw_session* session, rw_task* task);

// Raises the cancellation of a task and of all that it is made of. Loop thread.
void rw_dispatch_cancel(rw_task* task);

// What CreateSession.on_control_lost asks for. ACTOR.
void rw_dispatch_control_lost(rw_session* session, rw_pb_CreateSession_OnControlLost action);

// Puts an answer into the task's reply, as a whole frame (or a LargeResult when it exceeds
// max_message). Any thread that owns the task.
void rw_dispatch_reply(rw_host* host, rw_task* task, const rw_pb_Response* response);

// Puts a failure into the task's reply.
void rw_dispatch_reply_error(rw_host* host, rw_task* task, const rw_error* error);

// The same with what is known of the session: steps done, step, time.
void rw_dispatch_reply_session_error(rw_session* session, rw_task* task, const rw_error* error);

// Joins the pieces of a large message and decompresses it, so that `bytes` is whole. Any thread that
// owns the task; not the loop thread for large ones.
rw_status rw_dispatch_unpack(rw_host* host, rw_task* task, rw_error* error);
