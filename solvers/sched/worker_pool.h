// The worker pool: threads that run actors (sessions) fairly and lend each other hands in
// parallel_for. An actor is run by at most one thread at a time, so what it owns needs no locks.
// Every function may be called from any thread unless it says otherwise; the run callbacks are
// called on a worker thread (or by whoever claimed the actor).
//
//   An actor's life, with the function behind each arrow (finish = the verdict of `run`):
//
//            notify              worker takes it           finish IDLE, no mail
//     IDLE ----------> QUEUED --------------------> RUNNING ------------------> IDLE
//      |                 ^  ^                        |   |
//      | claim           |  +---- finish MORE, or ---+   | finish PARKED, not woken
//      +--> RUNNING      |        mail since begin       v
//           (caller)     +------------------------- PARKED      notify: stays parked
//                                 unpark
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"
#include "solvers/sched/parallel_for.h"

typedef enum rw_actor_verdict {
    RW_ACTOR_IDLE,   // nothing more to do until notified
    RW_ACTOR_MORE,   // the slice is over, there is more: back to the end of the queue
    RW_ACTOR_PARKED, // waits for something outside; only unpark wakes it
} rw_actor_verdict;

typedef struct rw_actor {
    struct rw_actor* next; // in the run queue; guarded by the pool's lock
    atomic_uint state;     // bits of worker_pool.c
    rw_actor_verdict (*run)(struct rw_actor* actor); // one slice
} rw_actor;

// Starts `worker_count` threads (0: cores - 1, at least 1) with SCHED_BATCH, so that a thread that
// waits for sockets wakes over them. NULL when memory or threads are exhausted.
rw_worker_pool* rw_worker_pool_create(rw_alloc* alloc, int32_t worker_count);

// Runs what is queued to its end, then joins the threads. No actor may be notified any more by
// others. NULL is accepted.
void rw_worker_pool_destroy(rw_worker_pool* pool);

int32_t rw_worker_pool_count(const rw_worker_pool* pool);

// True on a thread of this pool.
bool rw_worker_pool_is_here(const rw_worker_pool* pool);

// Actors that wait for a worker now. For metrics.
int32_t rw_worker_pool_queue_length(rw_worker_pool* pool);

// Sum of the time that workers spent in actors and helping, ns. For metrics.
uint64_t rw_worker_pool_busy_ns(const rw_worker_pool* pool);

void rw_worker_pool_init_actor(rw_actor* actor, rw_actor_verdict (*run)(rw_actor* actor));

// Says that the actor has something to do. Calls coalesce: its run looks at everything there is.
void rw_worker_pool_notify(rw_worker_pool* pool, rw_actor* actor);

// Wakes a parked actor; one that is about to park does not.
void rw_worker_pool_unpark(rw_worker_pool* pool, rw_actor* actor);

// Takes an idle actor so that the caller may run it on its own thread. False when it is queued,
// running or parked. Must be followed by rw_worker_pool_finish on the same thread.
bool rw_worker_pool_claim(rw_actor* actor);

// Ends what claim began, with the verdict of the run.
void rw_worker_pool_finish(rw_worker_pool* pool, rw_actor* actor, rw_actor_verdict verdict);

// True when the actor is neither queued nor running nor parked, as of now.
bool rw_worker_pool_is_idle(const rw_actor* actor);

// What rw_parallel_for calls (parallel_for.h documents it).
void rw_worker_pool_run_blocks(rw_worker_pool* pool, int32_t block_count,
                               void (*function)(void* context, int32_t block), void* context);
