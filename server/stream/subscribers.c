#include "server/stream/subscribers.h"

#include "server/session/host.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

rw_subscriber* rw_subscribers_make(rw_session* session) {
    rw_subscriber* subscriber = rw_alloc_get(&session->host->alloc, sizeof *subscriber);
    if (subscriber != NULL) {
        subscriber->session = session;
    }
    return subscriber;
}

rw_status rw_subscribers_add(rw_subscriber* subscriber, rw_client* client, uint64_t group,
                             uint64_t subscription, const rw_pb_Subscribe* request) {
    rw_session* session = subscriber->session;
    if (client->link == NULL || session->is_closing) {
        return RW_STATUS_NOT_FOUND;
    }
    subscriber->client = client;
    subscriber->id = subscription;
    subscriber->group = group;
    subscriber->back_pressure = request->back_pressure;
    subscriber->budget = (double)request->byte_budget;
    subscriber->credit = subscriber->budget;
    subscriber->credited_ns = rw_clock_now_ns();
    subscriber->next_of_session = session->subscribers;
    session->subscribers = subscriber;
    subscriber->next_of_client = client->subscribers;
    client->subscribers = subscriber;
    return RW_STATUS_OK;
}

// ---- Holding the session ----

static void hold(rw_subscriber* subscriber) {
    if (subscriber->back_pressure && !subscriber->is_holding &&
        subscriber->queued_bytes > RW_SUBSCRIBERS_HOLD_BYTES) {
        subscriber->is_holding = true;
        // Release, as with the change back: the runner that sees it needs no data with it.
        atomic_fetch_add_explicit(&subscriber->session->holds, 1, memory_order_release);
    }
}

static void release(rw_subscriber* subscriber) {
    if (!subscriber->is_holding) {
        return;
    }
    subscriber->is_holding = false;
    rw_session* session = subscriber->session;
    // A session that closes has set the count to 0 already.
    if (atomic_load_explicit(&session->holds, memory_order_relaxed) > 0 &&
        atomic_fetch_sub_explicit(&session->holds, 1, memory_order_acq_rel) == 1) {
        rw_worker_pool_unpark(session->host->pool, &session->actor);
    }
}

// ---- Ends ----

static void leave_group(rw_session* session, rw_task* task) {
    if (session->publisher != NULL) {
        rw_publisher_leave(session->publisher, task->argument);
    }
}

// Frees it once the session is told, or has no need to know.
static bool tell_left(rw_subscriber* subscriber) {
    rw_session* session = subscriber->session;
    if (!session->is_closing &&
        !rw_host_order(session->host, session, leave_group, subscriber->group, NULL)) {
        return false;
    }
    rw_alloc_free(&session->host->alloc, subscriber);
    return true;
}

void rw_subscribers_give_up(rw_subscriber* subscriber, uint64_t group) {
    rw_session* session = subscriber->session;
    subscriber->group = group;
    if (!tell_left(subscriber)) {
        rw_session_hold(session);
        subscriber->next_of_session = session->host->leaving;
        session->host->leaving = subscriber;
    }
}

void rw_subscribers_tell_left(rw_host* host) {
    rw_subscriber** link = &host->leaving;
    while (*link != NULL) {
        rw_subscriber* one = *link;
        rw_subscriber* next = one->next_of_session;
        rw_session* session = one->session;
        if (!tell_left(one)) {
            return; // no memory yet
        }
        *link = next;
        rw_session_drop(session);
    }
}

// Takes a reader out of both lists and frees it.
static void end(rw_subscriber* subscriber) {
    rw_session* session = subscriber->session;
    rw_client* client = subscriber->client;
    rw_subscriber** link = &session->subscribers;
    while (*link != subscriber) {
        link = &(*link)->next_of_session;
    }
    *link = subscriber->next_of_session;
    link = &client->subscribers;
    while (*link != subscriber) {
        link = &(*link)->next_of_client;
    }
    *link = subscriber->next_of_client;
    if (client->link != NULL) {
        client->link->forget_frames(client->connection, subscriber);
    }
    release(subscriber);
    rw_subscribers_give_up(subscriber, subscriber->group);
}

rw_status rw_subscribers_remove(rw_client* client, uint64_t subscription, uint64_t* sent,
                                uint64_t* dropped, rw_error* error) {
    for (rw_subscriber* one = client->subscribers; one != NULL; one = one->next_of_client) {
        if (one->id == subscription) {
            *sent = one->sent;
            *dropped = one->dropped;
            end(one);
            return RW_STATUS_OK;
        }
    }
    RW_FAIL(error, NOT_FOUND, "subscription", "no subscription %llu",
            (unsigned long long)subscription);
}

void rw_subscribers_remove_client(rw_client* client, const rw_session* session) {
    rw_subscriber* one = client->subscribers;
    while (one != NULL) {
        rw_subscriber* next = one->next_of_client;
        if (session == NULL || one->session == session) {
            end(one);
        }
        one = next;
    }
}

void rw_subscribers_remove_session(rw_session* session) {
    while (session->subscribers != NULL) {
        end(session->subscribers);
    }
}

// ---- Frames ----

// Whether the budget lets a frame pass. A key may be larger than a second's budget, so it passes
// on credit when there are no debts; what follows pays for it.
static bool spend(rw_subscriber* subscriber, const rw_stream_frame* frame) {
    if (subscriber->budget <= 0) {
        return true;
    }
    int64_t now_ns = rw_clock_now_ns();
    double earned = subscriber->budget * 1e-9 * (double)(now_ns - subscriber->credited_ns);
    subscriber->credited_ns = now_ns;
    subscriber->credit += earned;
    if (subscriber->credit > subscriber->budget) { // at most a second's worth
        subscriber->credit = subscriber->budget;
    }
    if (subscriber->credit < (frame->is_key ? 0.0 : (double)frame->size_bytes)) {
        return false;
    }
    subscriber->credit -= (double)frame->size_bytes;
    return true;
}

static void drop(rw_subscriber* subscriber) {
    subscriber->dropped++;
    rw_metrics_add(&subscriber->session->host->metrics, RW_METRICS_frames_dropped_total, 1);
}

void rw_subscribers_deliver(rw_stream_frame* frame) {
    frame->refs = 1;
    rw_subscriber* next;
    for (rw_subscriber* one = frame->session->subscribers; one != NULL; one = next) {
        next = one->next_of_session;
        if (one->group != frame->group || one->client->link == NULL) {
            continue;
        }
        if (!frame->is_key && !one->has_key) {
            if (one->had_key) { // else it is older than the newcomer
                drop(one);
            }
            continue;
        }
        if (!spend(one, frame)) {
            one->has_key = one->has_key && !frame->is_key;
            drop(one);
            continue;
        }
        if (frame->is_key) {
            one->has_key = true;
            one->had_key = true;
            one->last_key = frame->sequence;
        }
        one->queued_bytes += frame->size_bytes;
        one->client->link->send_frame(one->client->connection, frame, one);
        hold(one);
    }
    rw_publisher_drop_frame(frame);
}

void rw_subscribers_done(rw_subscriber* subscriber, const rw_stream_frame* frame, bool was_sent) {
    RW_ASSERT(subscriber->queued_bytes >= frame->size_bytes);
    subscriber->queued_bytes -= frame->size_bytes;
    if (was_sent) {
        rw_metrics* metrics = &subscriber->session->host->metrics;
        subscriber->sent++;
        rw_metrics_add(metrics, RW_METRICS_frames_sent_total, 1);
        rw_metrics_add(metrics, RW_METRICS_frame_bytes_total, (int64_t)frame->size_bytes);
    } else {
        if (frame->is_key && subscriber->had_key &&
            frame->sequence == subscriber->last_key) {
            subscriber->has_key = false;
        }
        drop(subscriber);
    }
    if (subscriber->queued_bytes < RW_SUBSCRIBERS_HOLD_BYTES / 2) {
        release(subscriber);
    }
}
