#include "server/session/host.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "server/dispatch/dispatch.h"
#include "server/log.h"
#include "server/stream/subscribers.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

// Free tasks keep their buffers, so that warmed-up commands allocate nothing: up to this size each
// and together.
enum { KEEP_BYTES = 65536, KEEP_TASKS = 2048, KEEP_ALL_BYTES = 4 << 20 };

static _Thread_local bool is_loop_thread;

// ---- Life ----

rw_status rw_host_start(rw_host* host, const rw_config* config, rw_error* error) {
    memset(host, 0, sizeof *host);
    is_loop_thread = true;
    host->config = config;
    rw_alloc_init(&host->alloc, 0);
    rw_metrics_init(&host->metrics);
    rw_mailbox_init(&host->inbox);
    rw_session_table_init(&host->sessions, host, config->max_sessions);
    rw_quota_init(&host->connections, "connections", config->max_connections);
    rw_id_pool_init(&host->client_ids, &host->alloc);
    // Signals are the loop thread's: the others are started with all of them blocked.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    host->watchdog = rw_watchdog_create(&host->alloc);
    host->pool = rw_worker_pool_create(&host->alloc, (int32_t)config->workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (host->watchdog == NULL || host->pool == NULL) {
        rw_worker_pool_destroy(host->pool);
        rw_watchdog_destroy(host->watchdog);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no threads to be had");
    }
    return RW_STATUS_OK;
}

static void free_dying(rw_host* host) {
    rw_subscribers_tell_left(host);
    rw_session** link = &host->dying;
    while (*link != NULL) {
        rw_session* session = *link;
        if (rw_worker_pool_is_idle(&session->actor) && session->refs == 0) {
            *link = session->paced_next;
            rw_session_destroy(session);
        } else {
            link = &session->paced_next;
        }
    }
    rw_client** client_link = &host->dying_clients;
    while (*client_link != NULL) {
        rw_client* client = *client_link;
        bool is_idle = rw_worker_pool_is_idle(&client->actor);
        if (is_idle && client->blobs != NULL) {
            // Giving hundreds of megabytes back takes a while: a worker's work.
            rw_worker_pool_notify(host->pool, &client->actor);
            client_link = (rw_client**)(void*)&client->connection;
        } else if (is_idle) {
            *client_link = client->connection;
            rw_alloc_free(&host->alloc, client->open);
            rw_alloc_free(&host->alloc, client->attachments);
            rw_alloc_free(&host->alloc, client);
        } else {
            client_link = (rw_client**)(void*)&client->connection;
        }
    }
}

static void free_task(rw_host* host, rw_task* task) {
    rw_buffer_finish(&task->request);
    rw_buffer_finish(&task->values);
    rw_buffer_finish(&task->reply);
    rw_alloc_free(&host->alloc, task);
}

void rw_host_stop(rw_host* host) {
    RW_ASSERT(host->client_count == 0);
    host->is_draining = true;
    rw_host_cancel_all(host);
    while (host->sessions.count > 0 || host->open_tasks > 0 || host->dying != NULL ||
           host->dying_clients != NULL || host->leaving != NULL) {
        for (int32_t i = 0; i < host->sessions.count; i++) {
            rw_host_close_session(host, host->sessions.items[i], "server stopped");
        }
        rw_host_deliver(host);
        rw_host_end_turn(host);
        free_dying(host);
        struct timespec moment = {.tv_nsec = 200000};
        nanosleep(&moment, NULL);
    }
    rw_publisher_finish_thread();
    rw_worker_pool_destroy(host->pool);
    rw_watchdog_destroy(host->watchdog);
    rw_session_table_finish(&host->sessions);
    rw_id_pool_finish(&host->client_ids);
    rw_alloc_free(&host->alloc, host->clients);
    while (host->free_tasks != NULL) {
        rw_task* task = host->free_tasks;
        host->free_tasks = (rw_task*)task->note.item.next;
        free_task(host, task);
    }
    rw_alloc_finish(&host->alloc);
}

// ---- Tasks ----

static void deliver_task(rw_note* note) {
    rw_task* task = (rw_task*)note;
    task->finish(task);
}

rw_task* rw_host_take_task(rw_host* host, rw_client* client, rw_session* session) {
    rw_task* task = host->free_tasks;
    if (task != NULL) {
        host->free_tasks = (rw_task*)task->note.item.next;
        host->free_count--;
    } else {
        task = rw_alloc_get(&host->alloc, sizeof *task);
        if (task == NULL) {
            return NULL;
        }
        rw_buffer_init(&task->request, &host->alloc);
        rw_buffer_init(&task->values, &host->alloc);
        rw_buffer_init(&task->reply, &host->alloc);
        // Room to say that memory is exhausted, taken while there is some.
        if (rw_buffer_reserve(&task->reply, 1024) != RW_STATUS_OK) {
            rw_alloc_free(&host->alloc, task);
            return NULL;
        }
    }
    host->free_bytes -= task->kept_bytes;
    rw_buffer request = task->request, values = task->values, reply = task->reply;
    request.size_bytes = values.size_bytes = reply.size_bytes = 0;
    memset(task, 0, sizeof *task);
    task->request = request;
    task->values = values;
    task->reply = reply;
    task->note.deliver = deliver_task;
    task->finish = rw_host_answer;
    task->client = client;
    task->session = session;
    if (client != NULL) {
        rw_client_hold(client);
    }
    if (session != NULL) {
        rw_session_hold(session);
    }
    host->open_tasks++;
    return task;
}

static void trim(rw_buffer* buffer) {
    if (buffer->capacity_bytes > KEEP_BYTES) {
        rw_buffer_finish(buffer);
    }
}

void rw_host_give_task(rw_host* host, rw_task* task) {
    host->open_tasks--;
    while (task->pieces != NULL) {
        rw_task_piece* piece = task->pieces;
        task->pieces = piece->next;
        rw_alloc_free(&host->alloc, piece);
    }
    rw_client_drop(task->client);
    rw_session_drop(task->session);
    trim(&task->request);
    trim(&task->values);
    trim(&task->reply);
    task->kept_bytes = task->request.capacity_bytes + task->values.capacity_bytes +
                       task->reply.capacity_bytes;
    if (host->free_bytes + task->kept_bytes > KEEP_ALL_BYTES && task->kept_bytes > 4096) {
        free_task(host, task);
        return;
    }
    if (host->free_count >= KEEP_TASKS || task->reply.capacity_bytes < 1024) {
        free_task(host, task);
        return;
    }
    task->note.item.next = (rw_mailbox_item*)host->free_tasks;
    host->free_tasks = task;
    host->free_count++;
    host->free_bytes += task->kept_bytes;
}

void rw_host_answer(rw_task* task) {
    rw_client* client = task->client;
    rw_host* host = client->host;
    if (task->status != RW_STATUS_OK) {
        rw_metrics_add(&host->metrics, RW_METRICS_requests_failed_total, 1);
        if (task->status == RW_STATUS_CANCELLED || task->status == RW_STATUS_DEADLINE_EXCEEDED) {
            rw_metrics_add(&host->metrics, RW_METRICS_requests_cancelled_total, 1);
        }
    }
    if (client->link != NULL && task->reply.size_bytes > 0) {
        client->link->send_buffer(client->connection, &task->reply);
    }
    rw_client_close(client, task);
    rw_host_give_task(host, task);
}

// ---- Submitting ----

void rw_host_submit(rw_host* host, rw_task* task) {
    task->note.item.next = NULL;
    if (host->ready_last != NULL) {
        host->ready_last->note.item.next = &task->note.item;
    } else {
        host->ready_first = task;
    }
    host->ready_last = task;
}

static void send_to_worker(rw_host* host, rw_task* task) {
    rw_session* session = task->session;
    rw_metrics_add(&host->metrics, RW_METRICS_requests_worker_total, 1);
    rw_mailbox_push(&session->mailbox, &task->note.item);
    rw_worker_pool_notify(host->pool, &session->actor);
}

// Whether the task may run on the loop thread, and then takes the session. What is measured decides
// only where and when it runs.
static bool take_inline(rw_host* host, rw_task* task) {
    rw_session* session = task->session;
    if (host->active_connections > 1 || host->inline_ns >= RW_HOST_INLINE_TURN_NS) {
        return false;
    }
    int64_t expected_ns = rw_dispatch_expected_ns(session, task);
    if (expected_ns < 0 || expected_ns >= RW_HOST_INLINE_EXPECTED_NS ||
        host->inline_ns + expected_ns > RW_HOST_INLINE_TURN_NS) {
        return false;
    }
    // A pipeline may bring many: after a while look whether someone else has come meanwhile.
    if (host->inline_ns >= RW_HOST_INLINE_EXPECTED_NS && host->others_ready != NULL &&
        host->others_ready(host->context)) {
        host->active_connections = 2; // for the rest of this turn
        return false;
    }
    return rw_worker_pool_claim(&session->actor);
}

static void run_inline(rw_host* host, rw_task* task, int64_t begin_ns) {
    rw_session* session = task->session;
    rw_host_deliver(host); // what the session sent before must not be overtaken
    task->is_inline = true;
    rw_metrics_add(&host->metrics, RW_METRICS_requests_inline_total, 1);
    rw_mailbox_push(&session->mailbox, &task->note.item);
    rw_actor_verdict verdict = rw_session_run(session, begin_ns + RW_HOST_INLINE_TURN_NS);
    rw_worker_pool_finish(host->pool, &session->actor, verdict);
    host->inline_ns += rw_clock_now_ns() - begin_ns;
    rw_host_deliver(host);
}

void rw_host_end_turn(rw_host* host) {
    while (host->ready_first != NULL) {
        rw_task* task = host->ready_first;
        host->ready_first = (rw_task*)task->note.item.next;
        if (host->ready_first == NULL) {
            host->ready_last = NULL;
        }
        if (take_inline(host, task)) {
            run_inline(host, task, rw_clock_now_ns());
        } else {
            send_to_worker(host, task);
        }
    }
    host->inline_ns = 0;
    host->active_connections = 0;
    if (host->dying != NULL || host->dying_clients != NULL || host->leaving != NULL) {
        free_dying(host);
    }
}

static void finish_order(rw_task* task) {
    rw_host_give_task(task->session->host, task);
}

bool rw_host_order(rw_host* host, rw_session* session,
                   void (*work)(rw_session* session, rw_task* task), uint64_t argument,
                   void (*finish)(rw_task* task)) {
    rw_task* task = rw_host_take_task(host, NULL, session);
    if (task == NULL) {
        return false;
    }
    task->work = work;
    task->argument = argument;
    task->finish = finish != NULL ? finish : finish_order;
    rw_mailbox_push(&session->mailbox, &task->note.item);
    rw_worker_pool_notify(host->pool, &session->actor);
    return true;
}

void rw_host_submit_to_client(rw_host* host, rw_task* task) {
    RW_ASSERT(!task->client->is_fenced);
    task->client->is_fenced = true;
    rw_mailbox_push(&task->client->mailbox, &task->note.item);
    rw_worker_pool_notify(host->pool, &task->client->actor);
}

// ---- Inbox ----

void rw_host_post(rw_host* host, rw_note* note) {
    bool first = rw_mailbox_push(&host->inbox, &note->item);
    // On the loop thread the inbox is looked into before it sleeps.
    if (first && !is_loop_thread && host->ring != NULL) {
        host->ring(host->context);
    }
}

void rw_host_deliver(rw_host* host) {
    rw_mailbox_item* item;
    while ((item = rw_mailbox_pop(&host->inbox)) != NULL) {
        rw_note* note = (rw_note*)item;
        note->deliver(note);
    }
}

// ---- Sessions ----

static void shut(rw_session* session, rw_task* task) {
    (void)task;
    rw_session_shut(session);
}

void rw_host_session_closed(rw_host* host, rw_session* session, const char* reason) {
    rw_pb_Event event = rw_pb_Event_init_zero;
    event.which_kind = rw_pb_Event_session_changed_tag;
    event.kind.session_changed.session = session->id;
    event.kind.session_changed.state = rw_pb_SessionState_Kind_CLOSED;
    event.kind.session_changed.step =
        (uint64_t)atomic_load_explicit(&session->at_step, memory_order_relaxed);
    strncpy(event.kind.session_changed.reason, reason,
            sizeof event.kind.session_changed.reason - 1);
    rw_host_tell(host, session, &event);

    session->is_closing = true;
    rw_subscribers_remove_session(session);
    if (session->is_paced) {
        rw_session** link = &host->paced;
        while (*link != session) {
            link = &(*link)->paced_next;
        }
        *link = session->paced_next;
        session->is_paced = false;
    }
    for (int32_t i = host->client_count - 1; i >= 0; i--) {
        rw_client_detach(host->clients[i], session);
    }
    RW_LOG(INFO, "session_closed", RW_LOG_FIELD_TEXT("name", session->name),
           RW_LOG_FIELD_NUMBER("id", session->id), RW_LOG_FIELD_TEXT("reason", reason));
    rw_session_table_remove(&host->sessions, session);
}

static void finish_shut(rw_task* task) {
    rw_session* session = task->session;
    rw_host_session_closed(session->host, session, task->context);
    rw_host_give_task(session->host, task);
}

void rw_host_close_session(rw_host* host, rw_session* session, const char* reason) {
    if (session->is_closing && session->closing_reason == NULL) {
        return;
    }
    session->is_closing = true;
    session->closing_reason = reason;
    rw_task* task = rw_host_take_task(host, NULL, session);
    if (task == NULL) {
        return; // the tick tries again
    }
    session->closing_reason = NULL;
    task->work = shut;
    task->context = (void*)(uintptr_t)reason;
    task->finish = finish_shut;
    rw_mailbox_push(&session->mailbox, &task->note.item);
    // A session that waits for a reader must wake to close.
    atomic_store_explicit(&session->holds, 0, memory_order_release);
    rw_worker_pool_unpark(host->pool, &session->actor);
}

static void lose_control(rw_session* session, rw_task* task) {
    rw_dispatch_control_lost(session, (rw_pb_CreateSession_OnControlLost)task->argument);
}

static void order_control_lost(rw_host* host, rw_session* session) {
    session->is_control_lost = !rw_host_order(host, session, lose_control,
                                              (uint64_t)session->on_control_lost, NULL);
}

void rw_host_detached(rw_host* host, rw_session* session, bool was_control) {
    if (session->is_closing) {
        return;
    }
    if (was_control && session->controller_count == 0 &&
        session->on_control_lost != rw_pb_CreateSession_OnControlLost_HOLD) {
        order_control_lost(host, session); // or the tick does
    }
    if (session->client_count == 0) {
        session->detached_at_ns = rw_clock_now_ns();
        if (session->ttl_detached_s == 0) {
            rw_host_close_session(host, session, "last client left");
        }
    }
}

void rw_host_tell(rw_host* host, rw_session* session, const rw_pb_Event* event) {
    rw_buffer frame;
    rw_buffer_init(&frame, &host->alloc);
    if (rw_buffer_append(&frame, NULL, RW_FRAME_HEADER_BYTES) == RW_STATUS_OK &&
        rw_message_append_event(&frame, event) == RW_STATUS_OK &&
        rw_frame_close(&frame, 0, RW_FRAME_EVENT, NULL, 0) == RW_STATUS_OK) {
        for (int32_t i = 0; i < host->client_count; i++) {
            rw_client* client = host->clients[i];
            if (session == NULL || rw_client_find_attachment(client, session) != NULL) {
                rw_client_send(client, frame.data, frame.size_bytes);
            }
        }
    }
    rw_buffer_finish(&frame);
}

rw_client* rw_host_find_client(const rw_host* host, uint64_t id) {
    int32_t index = rw_id_pool_find(&host->client_ids, id);
    return index >= 0 ? host->clients[index] : NULL;
}

// ---- Time ----

static void end_lives(rw_host* host, int64_t now_ns) {
    for (int32_t i = 0; i < host->sessions.count; i++) {
        rw_session* session = host->sessions.items[i];
        if (session->is_closing) {
            if (session->closing_reason != NULL) {
                rw_host_close_session(host, session, session->closing_reason);
            }
        } else if (session->client_count == 0 && session->ttl_detached_s >= 0 &&
                   (double)(now_ns - session->detached_at_ns) * 1e-9 >=
                       session->ttl_detached_s) {
            rw_host_close_session(host, session, "ttl");
        }
        if (session->is_control_lost) {
            if (session->is_closing || session->controller_count > 0) {
                session->is_control_lost = false;
            } else {
                order_control_lost(host, session);
            }
        }
        // One that waits for a reader looks at its deadline now and then.
        if (atomic_load_explicit(&session->holds, memory_order_relaxed) > 0) {
            rw_worker_pool_unpark(host->pool, &session->actor);
        }
    }
}

static void pause_for_drain(rw_session* session, rw_task* task) {
    (void)task;
    if (session->state == rw_pb_SessionState_Kind_RUNNING) {
        session->pacing.is_on = false;
        rw_session_set_state(session, rw_pb_SessionState_Kind_READY, "server drains");
    }
}

static void finish_pause(rw_task* task) {
    task->session->is_pause_ordered = false;
    rw_host_give_task(task->session->host, task);
}

// Again at each tick: a Run may have been in a queue when the drain began, or memory short.
static void pause_paced(rw_host* host) {
    for (rw_session* session = host->paced; session != NULL; session = session->paced_next) {
        if (!session->is_pause_ordered) {
            session->is_pause_ordered =
                rw_host_order(host, session, pause_for_drain, 0, finish_pause);
        }
    }
}

void rw_host_tick(rw_host* host, int64_t now_ns) {
    end_lives(host, now_ns);
    if (host->is_draining) {
        pause_paced(host);
    }
    if (host->dying != NULL || host->dying_clients != NULL || host->leaving != NULL) {
        free_dying(host);
    }
    rw_host_deliver(host);
}

bool rw_host_has_paced(const rw_host* host) {
    return host->paced != NULL;
}

void rw_host_pace(rw_host* host) {
    for (rw_session* session = host->paced; session != NULL; session = session->paced_next) {
        rw_worker_pool_notify(host->pool, &session->actor);
    }
}

void rw_host_measure(rw_host* host) {
    size_t bytes = 0, blobs = 0;
    for (int32_t i = 0; i < host->sessions.count; i++) {
        bytes += atomic_load_explicit(&host->sessions.items[i]->alloc.used_bytes,
                                      memory_order_relaxed);
    }
    for (int32_t i = 0; i < host->client_count; i++) {
        blobs += rw_blob_store_bytes(host->clients[i]->blobs);
    }
    rw_metrics* metrics = &host->metrics;
    rw_metrics_set(metrics, RW_METRICS_session_memory_bytes, (int64_t)bytes);
    rw_metrics_set(metrics, RW_METRICS_upload_bytes, (int64_t)blobs);
    rw_metrics_set(metrics, RW_METRICS_server_memory_bytes,
                   (int64_t)atomic_load_explicit(&host->alloc.used_bytes, memory_order_relaxed));
    rw_metrics_set(metrics, RW_METRICS_worker_busy_ns_total,
                   (int64_t)rw_worker_pool_busy_ns(host->pool));
    rw_metrics_set(metrics, RW_METRICS_worker_queue, rw_worker_pool_queue_length(host->pool));
}

// ---- Draining ----

void rw_host_drain(rw_host* host) {
    if (host->is_draining) {
        return;
    }
    host->is_draining = true;
    rw_pb_Event event = rw_pb_Event_init_zero;
    event.which_kind = rw_pb_Event_draining_tag;
    event.kind.draining.deadline_s = host->config->drain_s;
    rw_host_tell(host, NULL, &event);
    pause_paced(host);
}

void rw_host_cancel_all(rw_host* host) {
    for (int32_t i = 0; i < host->client_count; i++) {
        rw_client* client = host->clients[i];
        for (uint32_t k = 0; k < client->open_capacity; k++) {
            if (client->open[k] != NULL) {
                rw_dispatch_cancel(client->open[k]);
            }
        }
    }
    for (int32_t i = 0; i < host->sessions.count; i++) {
        // What runs is not freed under us: tasks are given back on this thread. Most are in a client's
        // table; here are those whose client is lost and those without one.
        rw_task* running = atomic_load(&host->sessions.items[i]->running);
        if (running != NULL) {
            rw_dispatch_cancel(running);
        }
    }
}

bool rw_host_is_quiet(const rw_host* host) {
    return host->open_tasks == 0 && host->ready_first == NULL && host->paced == NULL;
}
