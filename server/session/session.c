#include "server/session/session.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "server/dispatch/dispatch.h"
#include "server/dispatch/handles.h"
#include "server/log.h"
#include "server/session/host.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

// New measurements count an eighth: slow enough for outliers, fast enough for a scene that grows.
static int64_t blend(int64_t mean, int64_t sample) {
    return mean == 0 ? sample : mean + (sample - mean) / 8;
}

static rw_actor_verdict run_slice(rw_actor* actor) {
    return rw_session_run((rw_session*)actor, rw_clock_now_ns() + RW_HOST_SLICE_NS);
}

// ---- Life ----

rw_session* rw_session_create(rw_host* host, const char* name, rw_id id) {
    rw_session* session = rw_alloc_get(&host->alloc, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    rw_worker_pool_init_actor(&session->actor, run_slice);
    rw_mailbox_init(&session->mailbox);
    session->host = host;
    session->id = id;
    memcpy(session->name, name, strlen(name) + 1);
    session->refs = 1;
    session->ttl_detached_s = 60;
    rw_alloc_init(&session->alloc, (size_t)host->config->session_memory_bytes);
    rw_arena_init(&session->scratch, &session->alloc);
    session->parallel.pool = host->pool;
    session->state = rw_pb_SessionState_Kind_READY;
    session->next_snapshot = 1;
    session->handles = rw_handles_create(&session->alloc);
    if (session->handles == NULL) {
        rw_alloc_free(&host->alloc, session);
        return NULL;
    }
    pthread_mutex_init(&session->fault_lock, NULL);
    atomic_init(&session->is_cold, true);
    return session;
}

void rw_session_shut(rw_session* session) {
    session->is_gone = true;
    session->state = rw_pb_SessionState_Kind_CLOSED;
    session->pacing.is_on = false;
    rw_publisher_destroy(session->publisher);
    session->publisher = NULL;
    rw_handles_clear(session->handles);
    for (int32_t i = 0; i < session->snapshot_count; i++) {
        rw_buffer_finish(&session->snapshots[i].bytes);
    }
    rw_alloc_free(&session->alloc, session->snapshots);
    session->snapshots = NULL;
    session->snapshot_count = 0;
    rw_world_destroy(session->world);
    session->world = NULL;
    rw_arena_finish(&session->scratch);
    rw_session_publish(session);
}

void rw_session_destroy(rw_session* session) {
    if (session == NULL) {
        return;
    }
    RW_ASSERT(session->world == NULL && session->current == NULL && session->refs == 0);
    rw_handles_destroy(session->handles);
    rw_arena_finish(&session->scratch);
    rw_alloc_finish(&session->alloc);
    pthread_mutex_destroy(&session->fault_lock);
    rw_alloc_free(&session->host->alloc, session);
}

void rw_session_hold(rw_session* session) {
    session->refs++;
}

void rw_session_drop(rw_session* session) {
    if (session == NULL || --session->refs > 0) {
        return;
    }
    // The last worker may still be on its way out of the actor; the tick frees it then.
    session->paced_next = session->host->dying;
    session->host->dying = session;
}

// ---- Running ----

// What happens after a task: its answer goes back through the loop's inbox, in order.
static void finish_task(rw_session* session, rw_task* task) {
    rw_host_post(session->host, &task->note);
}

static rw_actor_verdict run_task(rw_session* session, int64_t slice_end_ns) {
    rw_task* task = session->current;
    rw_dispatch_verdict verdict = rw_dispatch_run(session, task, slice_end_ns);
    rw_arena_reset(&session->scratch); // each slice reads its message anew
    switch (verdict) {
    case RW_DISPATCH_AGAIN: return RW_ACTOR_MORE;
    case RW_DISPATCH_PARK: return RW_ACTOR_PARKED;
    case RW_DISPATCH_DONE: break;
    }
    session->current = NULL;
    rw_session_publish(session);
    finish_task(session, task);
    if (session->publisher != NULL) {
        rw_publisher_send_pending(session->publisher, !rw_mailbox_is_empty(&session->mailbox));
    }
    return RW_ACTOR_IDLE;
}

// Does the steps that the clock asks for. True when there may be more to do at once.
static bool run_paced(rw_session* session, int64_t slice_end_ns) {
    int64_t now_ns = rw_clock_now_ns();
    int64_t at_step = rw_world_step_count(session->world);
    double time_step = rw_world_model(session->world)->time_step;
    uint64_t lost_before = session->pacing.lost_steps;
    int64_t due = rw_pacing_due(&session->pacing, time_step, at_step, now_ns);
    if (session->pacing.lost_steps != lost_before) {
        rw_metrics_add(&session->host->metrics, RW_METRICS_lost_steps_total,
                       (int64_t)(session->pacing.lost_steps - lost_before));
    }
    rw_error error;
    bool held = false;
    for (int64_t i = 0; i < due; i++) {
        held = atomic_load_explicit(&session->holds, memory_order_acquire) > 0;
        if (held) {
            break; // a recorder is behind: it wakes us
        }
        rw_status status = rw_session_step(session, NULL, &error);
        if (status != RW_STATUS_OK) {
            if (status != RW_STATUS_FAULTED) {
                // An edit that can't be prepared, or no memory: every further step would answer the
                // same. Whoever controls the session is told, and may mend it and Run again.
                session->pacing.is_on = false;
                rw_session_set_state(session, rw_pb_SessionState_Kind_READY, error.text);
            }
            break;
        }
        rw_pacing_stepped(&session->pacing);
        if (!rw_mailbox_is_empty(&session->mailbox) || rw_clock_now_ns() > slice_end_ns) {
            break;
        }
    }
    if (session->state == rw_pb_SessionState_Kind_RUNNING && session->pacing.until_step >= 0 &&
        rw_world_step_count(session->world) >= session->pacing.until_step) {
        session->pacing.is_on = false;
        rw_session_set_state(session, rw_pb_SessionState_Kind_READY, "until reached");
    }
    rw_session_publish(session);
    return session->state == rw_pb_SessionState_Kind_RUNNING && due > 0 && !held;
}

rw_actor_verdict rw_session_run(rw_session* session, int64_t slice_end_ns) {
    for (;;) {
        if (session->current == NULL) {
            session->current = (rw_task*)rw_mailbox_pop(&session->mailbox);
        }
        if (session->current != NULL) {
            rw_actor_verdict verdict = run_task(session, slice_end_ns);
            if (verdict != RW_ACTOR_IDLE) {
                return verdict;
            }
        } else if (session->state == rw_pb_SessionState_Kind_RUNNING) {
            if (!run_paced(session, slice_end_ns)) {
                return RW_ACTOR_IDLE;
            }
        } else {
            return RW_ACTOR_IDLE;
        }
        if (rw_clock_now_ns() >= slice_end_ns) {
            return RW_ACTOR_MORE;
        }
    }
}

// ---- Cancellation ----
//
// Canceller (any thread)           Runner
//   task.cancelled = true            running = task
//   running == task?                 cancel = false
//     cancel = true                  task.cancelled?
//
// Sequentially consistent on both sides: either the canceller sees the task running after the flag
// was cleared, or the runner sees the task cancelled. A `cancel` raised for an earlier task may be
// seen by a later one: it looks at its own reasons, finds none, clears the flag and goes on.

void rw_session_cancel(rw_task* task) {
    atomic_store(&task->cancelled, true);
    rw_session* session = task->session;
    if (session != NULL && atomic_load(&session->running) == task) {
        atomic_store(&session->cancel, true);
    }
}

void rw_session_begin_task(rw_session* session, rw_task* task) {
    atomic_store(&session->running, task);
    atomic_store(&session->cancel, false);
    if (task->deadline_ns != 0) {
        rw_watchdog_enter(session->host->watchdog, &task->watch, &session->cancel,
                          task->deadline_ns);
    }
}

void rw_session_end_task(rw_session* session, rw_task* task) {
    rw_watchdog_leave(session->host->watchdog, &task->watch);
    atomic_store(&session->running, NULL);
}

rw_status rw_session_check_task(const rw_task* task) {
    if (atomic_load(&task->cancelled)) {
        return RW_STATUS_CANCELLED;
    }
    if (task->deadline_ns != 0 && rw_clock_now_ns() >= task->deadline_ns) {
        return RW_STATUS_DEADLINE_EXCEEDED;
    }
    return RW_STATUS_OK;
}

// ---- Steps ----

static void note_fault(rw_session* session) {
    const rw_fault* fault = rw_world_fault(session->world);
    pthread_mutex_lock(&session->fault_lock);
    session->fault = (rw_pb_Fault){.step = (uint64_t)rw_world_step_count(session->world) + 1};
    if (fault != NULL) {
        snprintf(session->fault.object, sizeof session->fault.object, "%s", fault->object);
        snprintf(session->fault.stage, sizeof session->fault.stage, "%s", fault->stage);
        snprintf(session->fault.reason, sizeof session->fault.reason, "%s", fault->text);
    }
    pthread_mutex_unlock(&session->fault_lock);
    session->pacing.is_on = false;
    rw_metrics_add(&session->host->metrics, RW_METRICS_sessions_faulted_total, 1);
    RW_LOG(WARN, "session_faulted", RW_LOG_FIELD_TEXT("name", session->name),
           RW_LOG_FIELD_NUMBER("step", session->fault.step),
           RW_LOG_FIELD_TEXT("object", session->fault.object),
           RW_LOG_FIELD_TEXT("stage", session->fault.stage),
           RW_LOG_FIELD_TEXT("reason", session->fault.reason));
    rw_session_set_state(session, rw_pb_SessionState_Kind_FAULTED, session->fault.reason);
}

rw_status rw_session_step(rw_session* session, rw_task* task, rw_error* error) {
    bool was_cold = rw_world_needs_prepare(session->world);
    int64_t begin_ns = rw_clock_now_ns();
    rw_status status;
    for (;;) {
        status = rw_world_step(session->world, error);
        if (status != RW_STATUS_CANCELLED) {
            break;
        }
        rw_status reason = task != NULL ? rw_session_check_task(task) : RW_STATUS_OK;
        if (reason != RW_STATUS_OK) {
            return reason;
        }
        atomic_store(&session->cancel, false); // meant for an earlier task
    }
    int64_t end_ns = rw_clock_now_ns();
    if (status == RW_STATUS_FAULTED) {
        note_fault(session);
    }
    if (status != RW_STATUS_OK) {
        return status;
    }
    rw_metrics_add(&session->host->metrics, RW_METRICS_steps_total, 1);
    rw_metrics_add(&session->host->metrics, RW_METRICS_step_ns_total, end_ns - begin_ns);
    int64_t done_ns = end_ns;
    if (session->publisher != NULL && rw_publisher_group_count(session->publisher) > 0) {
        rw_publisher_after_step(session->publisher);
        done_ns = rw_clock_now_ns(); // what is expected of a step includes its frames
    }
    if (!was_cold) {
        int64_t mean = atomic_load_explicit(&session->step_cost_ns, memory_order_relaxed);
        atomic_store_explicit(&session->step_cost_ns, blend(mean, done_ns - begin_ns),
                              memory_order_relaxed);
    }
    if (task != NULL) {
        task->wall_ns += end_ns - begin_ns;
    }
    return RW_STATUS_OK;
}

void rw_session_world_changed(rw_session* session) {
    uint64_t epoch = rw_world_epoch(session->world);
    if (epoch != session->seen_epoch) {
        session->seen_epoch = epoch;
        if (session->publisher != NULL) {
            rw_publisher_new_epoch(session->publisher);
        }
    }
}

void rw_session_replace_world(rw_session* session, rw_world* world) {
    rw_handles_clear(session->handles);
    rw_world_destroy(session->world);
    session->world = world;
    session->seen_epoch = UINT64_MAX; // another world, whatever it counts
    atomic_store_explicit(&session->step_cost_ns, 0, memory_order_relaxed);
    if (session->state == rw_pb_SessionState_Kind_FAULTED && !rw_world_is_faulted(world)) {
        rw_session_set_state(session, rw_pb_SessionState_Kind_READY, "world replaced");
    }
    rw_session_world_changed(session);
}

rw_world_config rw_session_world_config(rw_session* session) {
    return (rw_world_config){
        .alloc = &session->alloc, .parallel = &session->parallel, .cancel = &session->cancel};
}

// ---- What others see ----

void rw_session_publish(rw_session* session) {
    rw_world* world = session->world;
    if (world != NULL) {
        double time = rw_world_time(world);
        double time_step = rw_world_model(world)->time_step;
        uint64_t bits;
        memcpy(&bits, &time, sizeof bits);
        atomic_store_explicit(&session->time_bits, bits, memory_order_relaxed);
        memcpy(&bits, &time_step, sizeof bits);
        atomic_store_explicit(&session->time_step_bits, bits, memory_order_relaxed);
        atomic_store_explicit(&session->at_step, rw_world_step_count(world), memory_order_relaxed);
        atomic_store_explicit(&session->at_epoch, (uint32_t)rw_world_epoch(world),
                              memory_order_relaxed);
        atomic_store_explicit(&session->is_cold, rw_world_needs_prepare(world),
                              memory_order_relaxed);
    }
    atomic_store_explicit(&session->at_state, (int)session->state, memory_order_relaxed);
    atomic_store_explicit(&session->lost_steps, session->pacing.lost_steps, memory_order_relaxed);
}

static double to_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double rw_session_time_step(const rw_session* session) {
    return to_double(atomic_load_explicit(&session->time_step_bits, memory_order_relaxed));
}

double rw_session_time(const rw_session* session) {
    return to_double(atomic_load_explicit(&session->time_bits, memory_order_relaxed));
}

void rw_session_describe(rw_session* session, rw_pb_SessionInfo* info) {
    memset(info, 0, sizeof *info);
    info->id = session->id;
    memcpy(info->name, session->name, sizeof session->name);
    info->state = (rw_pb_SessionState_Kind)atomic_load_explicit(&session->at_state,
                                                                memory_order_relaxed);
    info->step = (uint64_t)atomic_load_explicit(&session->at_step, memory_order_relaxed);
    info->time = rw_session_time(session);
    info->epoch = atomic_load_explicit(&session->at_epoch, memory_order_relaxed);
    info->clients = (uint32_t)session->client_count;
    info->controllers = (uint32_t)session->controller_count;
    info->time_step = rw_session_time_step(session);
    info->memory_bytes = atomic_load_explicit(&session->alloc.used_bytes, memory_order_relaxed);
    if (info->state == rw_pb_SessionState_Kind_FAULTED) {
        info->has_fault = true;
        pthread_mutex_lock(&session->fault_lock);
        info->fault = session->fault;
        pthread_mutex_unlock(&session->fault_lock);
    }
}

// ---- State ----

// A change of state, for the loop thread to tell.
typedef struct state_note {
    rw_note note;
    rw_session* session;
    rw_pb_Event event;
} state_note;

// Makes the loop call a session that runs by the clock, or no more. The state is the present one, not
// that of the note: a note may have stood in for several.
static void renew_paced(rw_session* session) {
    rw_host* host = session->host;
    bool paced = !session->is_closing &&
                 atomic_load_explicit(&session->at_state, memory_order_relaxed) ==
                     rw_pb_SessionState_Kind_RUNNING;
    if (paced && !session->is_paced) {
        session->is_paced = true;
        session->paced_next = host->paced;
        host->paced = session;
    } else if (!paced && session->is_paced) {
        rw_session** link = &host->paced;
        while (*link != session) {
            link = &(*link)->paced_next;
        }
        *link = session->paced_next;
        session->is_paced = false;
    }
}

static void tell_state(rw_note* note) {
    state_note* self = (state_note*)note;
    rw_session* session = self->session;
    rw_host* host = session->host;
    renew_paced(session);
    rw_host_tell(host, session, &self->event);
    rw_alloc_free(&host->alloc, self);
}

static void tell_present_state(rw_note* note) {
    rw_session* session =
        (rw_session*)(void*)((unsigned char*)note - offsetof(rw_session, state_note));
    // Before the state is read: a change that this read misses sends the note again.
    atomic_exchange(&session->is_state_noted, false);
    renew_paced(session);
    rw_pb_SessionInfo info;
    rw_session_describe(session, &info);
    rw_pb_Event event = rw_pb_Event_init_zero;
    event.which_kind = rw_pb_Event_session_changed_tag;
    rw_pb_Event_SessionChanged* changed = &event.kind.session_changed;
    changed->session = session->id;
    changed->state = info.state;
    changed->step = info.step;
    changed->lost_steps = atomic_load_explicit(&session->lost_steps, memory_order_relaxed);
    changed->has_fault = info.has_fault;
    changed->fault = info.fault;
    snprintf(changed->reason, sizeof changed->reason, "%s", info.fault.reason);
    rw_host_tell(session->host, session, &event);
}

void rw_session_set_state(rw_session* session, rw_pb_SessionState_Kind state, const char* reason) {
    session->state = state;
    rw_session_publish(session);
    state_note* note = rw_alloc_get(&session->host->alloc, sizeof *note);
    if (note == NULL) {
        if (!atomic_exchange(&session->is_state_noted, true)) {
            session->state_note.deliver = tell_present_state;
            rw_host_post(session->host, &session->state_note);
        }
        return;
    }
    note->note.deliver = tell_state;
    note->session = session; // the session outlives it: the closing task comes after
    note->event.which_kind = rw_pb_Event_session_changed_tag;
    rw_pb_Event_SessionChanged* changed = &note->event.kind.session_changed;
    changed->session = session->id;
    changed->state = state;
    changed->step = session->world != NULL ? (uint64_t)rw_world_step_count(session->world) : 0;
    changed->lost_steps = session->pacing.lost_steps;
    snprintf(changed->reason, sizeof changed->reason, "%s", reason);
    if (state == rw_pb_SessionState_Kind_FAULTED) {
        changed->has_fault = true;
        changed->fault = session->fault;
    }
    rw_host_post(session->host, &note->note);
}
