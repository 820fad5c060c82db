// The host: what all sessions and clients of one daemon share, and the loop thread's side of tasks.
// It knows no sockets: net/ rings its bell and calls it once per loop turn. Loop thread unless a
// function says otherwise.
//
//   connection parses --> rw_host_submit --> [ready] --rw_host_end_turn--> inline, or mailbox+worker
//   worker --> rw_host_post --> [inbox] + bell --> rw_host_deliver --> task.finish, frames, events
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/command.pb.h"
#include "server/config.h"
#include "server/metrics.h"
#include "server/session/client.h"
#include "server/session/quota.h"
#include "server/session/session_table.h"
#include "server/session/watchdog.h"
#include "solvers/sched/worker_pool.h"

// Short work runs on the loop thread within these bounds (design: threads).
#define RW_HOST_INLINE_EXPECTED_NS 50000
#define RW_HOST_INLINE_TURN_NS 200000
// A session gives its worker back after so long when others wait.
#define RW_HOST_SLICE_NS 2000000
// Messages above this are unpacked on a worker.
#define RW_HOST_LOOP_MESSAGE_BYTES 65536

struct rw_host {
    const rw_config* config;
    rw_alloc alloc; // the server's own account
    rw_metrics metrics;
    rw_worker_pool* pool;
    rw_watchdog* watchdog;
    rw_session_table sessions;
    rw_quota connections;

    rw_mailbox inbox;
    void (*ring)(void* context);        // any thread: makes the loop call rw_host_deliver soon
    bool (*others_ready)(void* context); // true when another socket waits now; may be NULL
    void* context;

    rw_task* free_tasks; // kept for reuse
    int32_t free_count;
    size_t free_bytes; // of their buffers
    rw_task* ready_first; // submitted in this turn, linked by note.item
    rw_task* ready_last;
    int32_t active_connections; // that were read from in this turn
    int64_t inline_ns;          // spent inline in this turn

    rw_client** clients; // by index of client_ids
    rw_id_pool client_ids;
    int32_t client_count, client_capacity;

    rw_session* paced;        // sessions that run by the clock
    rw_session* dying;        // unlisted, to be freed when their actor is idle; by paced_next
    rw_client* dying_clients; // likewise; by `connection`
    rw_subscriber* leaving;   // ended, but their session could not be told yet; by next_of_session
    int64_t open_tasks;
    uint64_t next_subscription;
    bool is_draining;
};

// Starts pool and watchdog. `config` is borrowed. INTERNAL or RESOURCE_EXHAUSTED.
rw_status rw_host_start(rw_host* host, const rw_config* config, rw_error* error);

// Joins all threads and frees everything; all clients must be lost. What still runs is cancelled.
void rw_host_stop(rw_host* host);

// ---- Tasks ----

// A cleared task; NULL when memory is exhausted. Holds `client` and `session` where given.
rw_task* rw_host_take_task(rw_host* host, rw_client* client, rw_session* session);
void rw_host_give_task(rw_host* host, rw_task* task);

// Gives a client's command to its session: inline at the end of this turn, or to a worker.
void rw_host_submit(rw_host* host, rw_task* task);

// Gives the house's own work to a session. `work` runs there, `finish` (or NULL) here afterwards.
// False when memory is exhausted.
bool rw_host_order(rw_host* host, rw_session* session,
                   void (*work)(rw_session* session, rw_task* task), uint64_t argument,
                   void (*finish)(rw_task* task));

// Gives a task to its client's own actor; nothing more is parsed for it until it is back.
void rw_host_submit_to_client(rw_host* host, rw_task* task);

// Answers with what the task's reply holds, and gives it back. The default `finish`.
void rw_host_answer(rw_task* task);

// Any thread: a note for the loop thread.
void rw_host_post(rw_host* host, rw_note* note);

// ---- The loop's calls ----

// Looks into the inbox. At each knock, and before anything is run inline.
void rw_host_deliver(rw_host* host);

// When all sockets of this turn have been read.
void rw_host_end_turn(rw_host* host);

// Every 20 ms or so: lives that ended, things to free.
void rw_host_tick(rw_host* host, int64_t now_ns);

// Every millisecond while rw_host_has_paced: wakes sessions that run by the clock.
void rw_host_pace(rw_host* host);
bool rw_host_has_paced(const rw_host* host);

// Renews the gauges that are measured when somebody looks.
void rw_host_measure(rw_host* host);

// No new work; paced sessions pause; all clients are told.
void rw_host_drain(rw_host* host);
// Cancels what still runs.
void rw_host_cancel_all(rw_host* host);
bool rw_host_is_quiet(const rw_host* host);

// ---- Sessions as seen from the loop ----

// Ends a session: when its queue is worked off it closes, tells everyone and leaves the table.
void rw_host_close_session(rw_host* host, rw_session* session, const char* reason);

// The session's actor has shut it: tells everyone, takes it out of the table.
void rw_host_session_closed(rw_host* host, rw_session* session, const char* reason);

// One client less: ttl, control lost.
void rw_host_detached(rw_host* host, rw_session* session, bool was_control);

// Sends an event to all clients of a session.
void rw_host_tell(rw_host* host, rw_session* session, const rw_pb_Event* event);

rw_client* rw_host_find_client(const rw_host* host, uint64_t id);
