// A session: one world with its clients, as an actor. Commands wait in an ordered mailbox; at most
// one thread runs the session at any time, so what belongs to the actor needs no locks. Long work
// is cut into slices, so that busy sessions share the workers fairly.
//
//            Run                         step fails
//     READY ------> RUNNING        READY, RUNNING ------> FAULTED
//     READY <------ RUNNING        READY <--------------- FAULTED      CloseSession: -> CLOSED
//            Pause, until, control lost         Restore, LoadScene
//
// Fields say to whom they belong: LOOP (the loop thread), ACTOR (whoever runs the session), PUBLISHED
// (written by the actor, read by anyone).
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/session.pb.h"
#include "server/session/client.h"
#include "server/session/mailbox.h"
#include "server/session/task.h"
#include "server/stream/pacing.h"
#include "server/stream/publisher.h"
#include "solvers/base/arena.h"
#include "solvers/sched/worker_pool.h"
#include "solvers/world/world.h"

// Where a command's numbers come from or go to (dispatch/handles.h).
typedef struct rw_handles rw_handles;

typedef struct rw_session_snapshot {
    uint64_t id;
    rw_buffer bytes;
} rw_session_snapshot;

enum { RW_SESSION_COST_COUNT = 128 }; // command tags whose cost is measured

struct rw_session {
    rw_actor actor; // first
    rw_mailbox mailbox;
    rw_host* host;
    rw_id id;
    char name[64];

    // ---- LOOP ----
    int32_t refs; // the table's and each task's and note's
    int32_t client_count, controller_count;
    rw_client* exclusive; // borrowed: the only controller, by its wish
    double ttl_detached_s;
    rw_pb_CreateSession_OnControlLost on_control_lost;
    int64_t detached_at_ns; // when the last client left; 0 = has clients
    bool is_closing;        // its last task is on the way
    const char* closing_reason; // why, while that task could not be sent yet; NULL = sent
    bool is_listed;         // in the table
    rw_session* paced_next; // sessions that run by the clock
    bool is_paced;
    bool is_pause_ordered; // a drain's pause is on the way
    bool is_control_lost;  // what on_control_lost says could not be sent yet
    rw_subscriber* subscribers;
    int32_t session_index; // in the table, in creation order

    // ---- ACTOR ----
    rw_alloc alloc; // the session's account; its counters may be read by anyone
    rw_arena scratch; // of one command
    rw_parallel parallel;
    rw_world* world; // NULL before creation and after closing
    rw_task* current;
    rw_pb_SessionState_Kind state;
    rw_pacing pacing;
    rw_publisher* publisher;
    rw_handles* handles; // the loop thread may ask it for widths
    rw_session_snapshot* snapshots;
    int32_t snapshot_count;
    uint64_t next_snapshot;
    uint64_t next_subscription;
    uint64_t seen_epoch; // of the world, when the publisher last looked
    bool is_gone;        // closed: what is left in the mailbox answers NOT_FOUND

    // ---- PUBLISHED: relaxed, each value by itself ----
    _Atomic int64_t at_step;
    _Atomic uint64_t time_bits;      // double
    _Atomic uint64_t time_step_bits; // double
    _Atomic uint32_t at_epoch;
    _Atomic int at_state;
    _Atomic uint64_t lost_steps;
    _Atomic int64_t step_cost_ns;  // moving mean; 0 = not measured
    _Atomic bool is_cold;          // the next step has to prepare: not for the loop thread
    _Atomic uint32_t command_cost_ns[RW_SESSION_COST_COUNT]; // moving means; 0 = not measured
    pthread_mutex_t fault_lock; // guards `fault`
    rw_pb_Fault fault;

    // ---- Across threads ----
    atomic_bool cancel;         // polled inside steps
    _Atomic(rw_task*) running;  // whose cancellation raises `cancel`
    atomic_int holds;           // readers that the session must wait for
    rw_note state_note;         // stands in for a note of the state that there was no memory for
    atomic_bool is_state_noted; // `state_note` is on its way
};

// Makes a session without a world. NULL when memory is exhausted. Loop thread.
rw_session* rw_session_create(rw_host* host, const char* name, rw_id id);

// Ends the world and all that hangs on it; what is left in the mailbox will answer NOT_FOUND. Whoever
// owns the actor.
void rw_session_shut(rw_session* session);

// Frees a session that no thread runs and nobody refers to. Loop thread.
void rw_session_destroy(rw_session* session);

// Runs until there is nothing to do or `slice_end_ns` has passed. Whoever owns the actor.
rw_actor_verdict rw_session_run(rw_session* session, int64_t slice_end_ns);

// ---- Within commands (ACTOR) ----

// Starts and ends the cancellation scope of a task: afterwards a raised `cancel` means this task.
void rw_session_begin_task(rw_session* session, rw_task* task);
void rw_session_end_task(rw_session* session, rw_task* task);

// Why the task should stop now: OK (go on), CANCELLED or DEADLINE_EXCEEDED.
rw_status rw_session_check_task(const rw_task* task);

// One step with everything that belongs to it: cost, counters, publisher, fault. OK, FAULTED, or
// CANCELLED / DEADLINE_EXCEEDED with the state as it was.
rw_status rw_session_step(rw_session* session, rw_task* task, rw_error* error);

// The world changed in topology or as a whole: tells the publisher and everyone who looks.
void rw_session_world_changed(rw_session* session);

// Replaces the world; takes `world` over.
void rw_session_replace_world(rw_session* session, rw_world* world);

// Changes the state and tells the clients. Without memory they hear of the state that the session is
// in by the time they are told, and not of the reason.
void rw_session_set_state(rw_session* session, rw_pb_SessionState_Kind state, const char* reason);

// Renews what is published.
void rw_session_publish(rw_session* session);

// What a world of this session is made with.
rw_world_config rw_session_world_config(rw_session* session);

// ---- Any thread ----

// Raises a task's cancellation wherever it is.
void rw_session_cancel(rw_task* task);

// Fills what can be seen from outside; the client counts are the loop thread's.
void rw_session_describe(rw_session* session, rw_pb_SessionInfo* info);

double rw_session_time_step(const rw_session* session);
double rw_session_time(const rw_session* session);

// ---- Loop thread ----

void rw_session_hold(rw_session* session);
void rw_session_drop(rw_session* session);
