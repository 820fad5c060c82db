#include "server/session/client.h"

#include <string.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "server/dispatch/dispatch.h"
#include "server/dispatch/handles.h"
#include "server/session/host.h"
#include "server/stream/subscribers.h"
#include "solvers/base/check.h"

static rw_actor_verdict run_unpacking(rw_actor* actor) {
    rw_client* client = (rw_client*)actor;
    rw_task* task = (rw_task*)rw_mailbox_pop(&client->mailbox);
    if (task == NULL) {
        // Acquire pairs with the release below: nobody touches the blobs after it.
        if (atomic_load_explicit(&client->is_ending, memory_order_acquire)) {
            rw_blob_store_drop(client->blobs);
            client->blobs = NULL;
        }
        return RW_ACTOR_IDLE;
    }
    rw_dispatch_run_on_client(client, task);
    rw_host_post(client->host, &task->note);
    return RW_ACTOR_MORE;
}

static rw_status reserve_clients(rw_host* host) {
    if (host->client_count < host->client_capacity) {
        return RW_STATUS_OK;
    }
    int32_t capacity = host->client_capacity > 0 ? 2 * host->client_capacity : 16;
    rw_client** clients =
        rw_alloc_resize(&host->alloc, host->clients, (size_t)capacity * sizeof(rw_client*));
    if (clients == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    host->clients = clients;
    host->client_capacity = capacity;
    return RW_STATUS_OK;
}

rw_client* rw_client_create(rw_host* host, const rw_client_link* link, void* connection) {
    if (reserve_clients(host) != RW_STATUS_OK) {
        return NULL;
    }
    rw_client* client = rw_alloc_get(&host->alloc, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    rw_worker_pool_init_actor(&client->actor, run_unpacking);
    rw_mailbox_init(&client->mailbox);
    client->host = host;
    client->refs = 1;
    client->link = link;
    client->connection = connection;
    client->blobs = rw_blob_store_create(&host->alloc, (uint64_t)host->config->max_upload_bytes);
    client->id = rw_id_pool_add(&host->client_ids, host->client_count);
    if (client->blobs == NULL || client->id == RW_ID_NONE) {
        rw_blob_store_drop(client->blobs);
        if (client->id != RW_ID_NONE) {
            rw_id_pool_remove(&host->client_ids, client->id);
        }
        rw_alloc_free(&host->alloc, client);
        return NULL;
    }
    host->clients[host->client_count++] = client;
    return client;
}

void rw_client_hold(rw_client* client) {
    client->refs++;
}

void rw_client_drop(rw_client* client) {
    if (client == NULL || --client->refs > 0) {
        return;
    }
    RW_ASSERT(client->link == NULL && client->open_count == 0);
    // Release: what was done with the client is over. Nobody sends it anything any more.
    atomic_store_explicit(&client->is_ending, true, memory_order_release);
    client->connection = client->host->dying_clients;
    client->host->dying_clients = client;
}

static void forget(rw_client* client) {
    rw_host* host = client->host;
    int32_t index = rw_id_pool_find(&host->client_ids, client->id);
    RW_ASSERT(index >= 0 && host->clients[index] == client);
    rw_id_pool_remove(&host->client_ids, client->id);
    host->client_count--;
    if (index < host->client_count) {
        host->clients[index] = host->clients[host->client_count];
        rw_id_pool_move(&host->client_ids, host->clients[index]->id, index);
    }
}

void rw_client_lose(rw_client* client) {
    client->link = NULL;
    client->connection = NULL;
    forget(client);
    for (uint32_t i = 0; i < client->open_capacity; i++) {
        if (client->open[i] != NULL) {
            rw_dispatch_cancel(client->open[i]);
        }
    }
    rw_subscribers_remove_client(client, NULL);
    while (client->attachment_count > 0) {
        rw_client_detach(client, client->attachments[client->attachment_count - 1].session);
    }
    rw_client_drop(client);
}

// ---- Open requests: open addressing, no tombstones ----

static uint32_t slot_of(const rw_client* client, uint64_t request_id) {
    return (uint32_t)((request_id * 0x9e3779b97f4a7c15u) >> 32) & (client->open_capacity - 1);
}

static rw_status grow_open(rw_client* client) {
    uint32_t capacity = client->open_capacity > 0 ? 2 * client->open_capacity : 16;
    rw_task** open = rw_alloc_array(&client->host->alloc, capacity, sizeof(rw_task*));
    if (open == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_task** old = client->open;
    uint32_t old_capacity = client->open_capacity;
    client->open = open;
    client->open_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL) {
            uint32_t at = slot_of(client, old[i]->request_id);
            while (open[at] != NULL) {
                at = (at + 1) & (capacity - 1);
            }
            open[at] = old[i];
        }
    }
    rw_alloc_free(&client->host->alloc, old);
    return RW_STATUS_OK;
}

rw_task* rw_client_find_open(const rw_client* client, uint64_t request_id) {
    if (client->open_count == 0) {
        return NULL;
    }
    uint32_t at = slot_of(client, request_id);
    while (client->open[at] != NULL && client->open[at]->request_id != request_id) {
        at = (at + 1) & (client->open_capacity - 1);
    }
    return client->open[at];
}

rw_status rw_client_open(rw_client* client, rw_task* task) {
    if (rw_client_find_open(client, task->request_id) != NULL) {
        return RW_STATUS_ALREADY_EXISTS;
    }
    if ((client->open_count + 1) * 2 > client->open_capacity) {
        RW_TRY(grow_open(client));
    }
    uint32_t at = slot_of(client, task->request_id);
    while (client->open[at] != NULL) {
        at = (at + 1) & (client->open_capacity - 1);
    }
    client->open[at] = task;
    client->open_count++;
    client->open_bytes += task->size_bytes;
    task->is_open = true;
    rw_metrics_add(&client->host->metrics, RW_METRICS_requests_open, 1);
    return RW_STATUS_OK;
}

void rw_client_close(rw_client* client, rw_task* task) {
    if (!task->is_open) {
        return;
    }
    uint32_t mask = client->open_capacity - 1;
    uint32_t hole = slot_of(client, task->request_id);
    while (client->open[hole] != task) {
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; client->open[at] != NULL; at = (at + 1) & mask) {
        uint32_t home = slot_of(client, client->open[at]->request_id);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            client->open[hole] = client->open[at];
            hole = at;
        }
    }
    client->open[hole] = NULL;
    client->open_count--;
    client->open_bytes -= task->size_bytes;
    task->is_open = false;
    rw_metrics_add(&client->host->metrics, RW_METRICS_requests_open, -1);
    if (client->link != NULL) {
        client->link->resume(client->connection);
    }
}

// ---- Attachments ----

rw_client_attachment* rw_client_find_attachment(rw_client* client, const rw_session* session) {
    int32_t at = client->attachment_hint;
    for (int32_t i = 0; i < client->attachment_count; i++, at++) {
        if (at >= client->attachment_count) {
            at = 0;
        }
        if (client->attachments[at].session == session) {
            client->attachment_hint = at;
            return &client->attachments[at];
        }
    }
    return NULL;
}

rw_status rw_client_attach(rw_client* client, rw_session* session, bool is_control) {
    rw_client_attachment* there = rw_client_find_attachment(client, session);
    if (there != NULL) {
        session->controller_count += (int)is_control - (int)there->is_control;
        there->is_control = is_control;
        return RW_STATUS_OK;
    }
    if (client->attachment_count == client->attachment_capacity) {
        int32_t capacity = client->attachment_capacity > 0 ? 2 * client->attachment_capacity : 4;
        rw_client_attachment* items =
            rw_alloc_resize(&client->host->alloc, client->attachments,
                            (size_t)capacity * sizeof(rw_client_attachment));
        if (items == NULL) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
        client->attachments = items;
        client->attachment_capacity = capacity;
    }
    client->attachments[client->attachment_count++] =
        (rw_client_attachment){.session = session, .is_control = is_control};
    session->client_count++;
    session->controller_count += is_control ? 1 : 0;
    session->detached_at_ns = 0;
    rw_session_hold(session);
    return RW_STATUS_OK;
}

static void release_handles(rw_session* session, rw_task* task) {
    rw_handles_release_all(session->handles, task->argument);
}

void rw_client_detach(rw_client* client, rw_session* session) {
    rw_client_attachment* there = rw_client_find_attachment(client, session);
    if (there == NULL) {
        return;
    }
    bool was_control = there->is_control;
    int32_t index = (int32_t)(there - client->attachments);
    memmove(there, there + 1,
            (size_t)(client->attachment_count - index - 1) * sizeof(rw_client_attachment));
    client->attachment_count--;
    rw_subscribers_remove_client(client, session);
    if (session->exclusive == client) {
        session->exclusive = NULL;
    }
    session->client_count--;
    session->controller_count -= was_control ? 1 : 0;
    if (!session->is_closing) {
        rw_host_order(client->host, session, release_handles, client->id, NULL);
    }
    rw_host_detached(client->host, session, was_control);
    rw_session_drop(session);
}

// ---- Answers ----

void rw_client_send(rw_client* client, const void* bytes, size_t size) {
    if (client->link != NULL) {
        client->link->send(client->connection, bytes, size);
    }
}

void rw_client_refuse(rw_client* client, uint64_t request_id, const rw_error* error) {
    rw_pb_Response response = rw_pb_Response_init_zero;
    rw_message_fail(&response, request_id, error);
    rw_buffer frame;
    rw_buffer_init(&frame, &client->host->alloc);
    rw_metrics_add(&client->host->metrics, RW_METRICS_requests_failed_total, 1);
    if (rw_buffer_append(&frame, NULL, RW_FRAME_HEADER_BYTES) == RW_STATUS_OK &&
        rw_message_append_response(&frame, &response) == RW_STATUS_OK &&
        rw_frame_close(&frame, 0, RW_FRAME_RESPONSE, NULL, 0) == RW_STATUS_OK) {
        rw_client_send(client, frame.data, frame.size_bytes);
    }
    rw_buffer_finish(&frame);
}
