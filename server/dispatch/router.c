#include "server/dispatch/router.h"

#include <string.h>

#include "proto/hot_message.h"
#include "proto/message.h"
#include "server/dispatch/commands.h"
#include "server/session/host.h"
#include "solvers/base/clock.h"

enum { MAX_OPEN_REQUESTS = 1024 };

bool rw_router_is_full(const rw_client* client) {
    uint64_t most = 4 * (uint64_t)client->host->config->max_message_bytes;
    return client->is_fenced || client->open_count >= MAX_OPEN_REQUESTS ||
           (client->open_bytes >= most && client->open_count > 0);
}

static void finish_with(rw_task* task, rw_status status, const char* path, const char* text) {
    rw_error error = {0};
    rw_status_fail(&error, status, path, "%s", text);
    rw_dispatch_reply_error(task->client->host, task, &error);
    task->finish(task);
}

// ---- Sessions ----

// Finds the session of a SESSION command and checks what can be checked on the loop thread.
static rw_session* find_session(rw_client* client, rw_task* task,
                                const rw_dispatch_entry* entry, rw_error* error) {
    if (task->session_id == 0) {
        rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, "session", "this command needs one");
        return NULL;
    }
    rw_session* session = rw_session_table_find(&client->host->sessions, task->session_id);
    if (session == NULL) {
        rw_status_fail(error, RW_STATUS_NOT_FOUND, "session", "no session %llu",
                       (unsigned long long)task->session_id);
        return NULL;
    }
    const rw_client_attachment* attachment = rw_client_find_attachment(client, session);
    if (attachment == NULL) {
        rw_status_fail(error, RW_STATUS_PERMISSION_DENIED, "session",
                       "not attached to \"%s\": AttachSession first", session->name);
        return NULL;
    }
    if ((entry->flags & RW_DISPATCH_CONTROL) != 0 && !attachment->is_control) {
        rw_status_fail(error, RW_STATUS_PERMISSION_DENIED, "session",
                       "attached to \"%s\" as an observer", session->name);
        return NULL;
    }
    task->has_control = attachment->is_control;
    return session;
}

static void route_to_session(rw_client* client, rw_task* task, const rw_dispatch_entry* entry) {
    rw_error error = {0};
    rw_session* session = find_session(client, task, entry, &error);
    if (session == NULL) {
        rw_dispatch_reply_error(client->host, task, &error);
        task->finish(task);
        return;
    }
    // The answer's way back passes the loop thread's half of some commands. A Batch has its own end.
    task->session = session;
    rw_session_hold(session);
    if (task->command_tag == rw_pb_Request_subscribe_tag) {
        task->argument = ++client->host->next_subscription;
    }
    rw_host_submit(client->host, task);
}

// ---- Routing ----

void rw_router_finish(rw_task* task) {
    switch (task->command_tag) {
    case rw_pb_Request_close_session_tag: rw_commands_session_finish_close(task); break;
    case rw_pb_Request_create_session_tag: rw_commands_session_finish_create(task); break;
    case rw_pb_Request_subscribe_tag: rw_commands_stream_finish_subscribe(task); break;
    case rw_pb_Request_fork_tag:
        if (!rw_commands_snapshot_finish_fork(task)) {
            return; // its children are being made
        }
        break;
    default: break;
    }
    if (task->parent != NULL) {
        task->parent(task);
    } else {
        rw_host_answer(task);
    }
}

void rw_router_route(rw_client* client, rw_task* task) {
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    if (!client->said_hello && task->command_tag != rw_pb_Request_hello_tag) {
        finish_with(task, RW_STATUS_UNAUTHENTICATED, "", "say Hello first");
        return;
    }
    if (entry == NULL) {
        rw_pb_Request request;
        rw_error error = {0};
        rw_arena arena;
        rw_arena_init(&arena, &client->host->alloc);
        rw_status status = rw_message_decode_request(task->bytes, task->size_bytes, &arena,
                                                     &request, &error);
        rw_arena_finish(&arena);
        if (status != RW_STATUS_OK) {
            rw_dispatch_reply_error(client->host, task, &error);
            task->finish(task);
            return;
        }
        finish_with(task, RW_STATUS_UNIMPLEMENTED, "", "no command that this build knows");
        return;
    }
    if (client->host->is_draining && (entry->flags & RW_DISPATCH_WHEN_DRAINING) == 0) {
        finish_with(task, RW_STATUS_UNAVAILABLE, "", "the server drains");
        return;
    }
    bool is_deferred = false;
    switch (entry->place) {
    case RW_DISPATCH_AT_ONCE:
    case RW_DISPATCH_LOOP:
        rw_dispatch_run_on_loop(client, task, &is_deferred);
        if (!is_deferred) {
            task->finish(task);
        }
        break;
    case RW_DISPATCH_CLIENT:
        if (task->parent != NULL) {
            finish_with(task, RW_STATUS_INVALID_ARGUMENT, "", "uploads can't be part of a Batch");
            break;
        }
        rw_host_submit_to_client(client->host, task);
        break;
    case RW_DISPATCH_SESSION: route_to_session(client, task, entry); break;
    }
}

// ---- Accepting ----

// A task of the client's own actor is back: served there, or unpacked and now on its way.
static void finish_unpacked(rw_task* task) {
    rw_client* client = task->client;
    client->is_fenced = false;
    task->finish = rw_router_finish;
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    bool is_served = task->reply.size_bytes > 0 ||
                     (entry != NULL && entry->place == RW_DISPATCH_CLIENT);
    if (client->link != NULL) {
        client->link->resume(client->connection);
    }
    if (is_served) {
        rw_host_answer(task);
        return;
    }
    if (client->link == NULL) {
        // Gone meanwhile: nothing may be opened or attached for it, nobody would ever leave.
        finish_with(task, RW_STATUS_CANCELLED, "", "the connection is gone");
        return;
    }
    // Unpacked only now: its ids may not have been seen before.
    rw_message_peek peek;
    rw_message_peek_request(task->bytes, task->size_bytes, &peek);
    if (!task->is_open) {
        task->request_id = peek.request_id;
        if (peek.request_id == 0 || rw_client_open(client, task) != RW_STATUS_OK) {
            finish_with(task, RW_STATUS_INVALID_ARGUMENT, "request_id",
                        "must not be 0, nor that of an open request");
            return;
        }
    }
    task->session_id = peek.session;
    task->command_tag = peek.command_tag;
    entry = rw_dispatch_find(task->command_tag);
    if (entry != NULL && entry->place == RW_DISPATCH_CLIENT && client->said_hello) {
        // Compressed blobs: once more to the actor, now for the work itself.
        task->finish = finish_unpacked;
        rw_host_submit_to_client(client->host, task);
        return;
    }
    rw_router_route(client, task);
}

// Ping as it nearly always looks is answered without a task.
static bool answer_ping(rw_client* client, const rw_hot_message_envelope* envelope) {
    uint64_t payload;
    if (envelope->command_tag != rw_pb_Request_ping_tag || envelope->request_id == 0 ||
        !client->said_hello ||
        !rw_hot_message_read_ping(envelope->command, envelope->command_size, &payload) ||
        rw_client_find_open(client, envelope->request_id) != NULL) {
        return false;
    }
    uint8_t frame[RW_HOT_MESSAGE_PING_BYTES];
    size_t size = rw_hot_message_write_ping(frame, envelope->request_id, payload,
                                            (uint64_t)rw_clock_now_ns());
    rw_client_send(client, frame, size);
    return true;
}

static void refuse(rw_client* client, uint64_t request_id, rw_status status, const char* path,
                   const char* text) {
    rw_error error = {0};
    rw_status_fail(&error, status, path, "%s", text);
    rw_client_refuse(client, request_id, &error);
}

static void free_pieces(rw_host* host, rw_task_piece* piece) {
    while (piece != NULL) {
        rw_task_piece* next = piece->next;
        rw_alloc_free(&host->alloc, piece);
        piece = next;
    }
}

static void accept_peeked(rw_client* client, const rw_router_message* message,
                          const rw_message_peek* peek) {
    rw_host* host = client->host;
    rw_task* task = rw_host_take_task(host, client, NULL);
    if (task == NULL) {
        free_pieces(host, message->pieces);
        refuse(client, peek->request_id, RW_STATUS_RESOURCE_EXHAUSTED, "", "out of memory");
        return;
    }
    task->request_id = peek->request_id;
    task->session_id = peek->session;
    task->command_tag = peek->command_tag;
    task->finish = rw_router_finish;
    task->arrived_ns = rw_clock_now_ns();
    task->deadline_ns =
        peek->deadline_ms != 0 ? task->arrived_ns + (int64_t)peek->deadline_ms * 1000000 : 0;
    task->pieces = message->pieces;
    task->is_compressed = message->is_compressed;
    task->size_bytes = message->size_bytes;
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    bool is_whole = message->pieces == NULL && !message->is_compressed;
    bool to_session = entry != NULL && entry->place == RW_DISPATCH_SESSION && task->request_id != 0;
    bool to_client = !is_whole && (message->is_compressed || !to_session);

    if (message->pieces == NULL) {
        if (rw_buffer_append(&task->request, message->bytes, message->size_bytes) !=
            RW_STATUS_OK) {
            finish_with(task, RW_STATUS_RESOURCE_EXHAUSTED, "", "out of memory");
            return;
        }
        task->bytes = task->request.data;
    }
    // The ids of what must be unpacked may be unknown yet; they are looked at afterwards.
    if (!to_client || (task->request_id != 0 && !message->is_compressed)) {
        if (task->request_id == 0) {
            finish_with(task, RW_STATUS_INVALID_ARGUMENT, "request_id", "must not be 0");
            return;
        }
        rw_status status = rw_client_open(client, task);
        if (status != RW_STATUS_OK) {
            finish_with(task,
                        status == RW_STATUS_ALREADY_EXISTS ? RW_STATUS_INVALID_ARGUMENT : status,
                        "request_id",
                        status == RW_STATUS_ALREADY_EXISTS ? "is open already" : "out of memory");
            return;
        }
    }
    if (to_client && !client->said_hello) {
        // Nobody is unpacked for who has not said who he is.
        finish_with(task, RW_STATUS_UNAUTHENTICATED, "", "say Hello first");
        return;
    }
    if (to_client || (is_whole && entry != NULL && entry->place == RW_DISPATCH_CLIENT)) {
        task->finish = finish_unpacked;
    }
    if (to_client) {
        rw_host_submit_to_client(host, task);
    } else {
        rw_router_route(client, task);
    }
}

void rw_router_accept(rw_client* client, const rw_router_message* message) {
    rw_metrics_add(&client->host->metrics, RW_METRICS_requests_total, 1);
    rw_message_peek peek = {0};
    rw_hot_message_envelope envelope;
    if (message->is_compressed) {
        // Its ids are inside.
    } else if (message->pieces == NULL &&
               rw_hot_message_read_envelope(message->bytes, message->size_bytes, &envelope)) {
        if (answer_ping(client, &envelope)) {
            return;
        }
        peek = (rw_message_peek){.request_id = envelope.request_id,
                                 .session = envelope.session,
                                 .deadline_ms = envelope.deadline_ms,
                                 .command_tag = envelope.command_tag};
    } else if (message->pieces == NULL) {
        rw_message_peek_request(message->bytes, message->size_bytes, &peek);
    } else {
        // The front of a large message says where it goes, as every serialiser writes it.
        rw_message_peek_request(message->pieces->bytes, message->pieces->size_bytes, &peek);
    }
    accept_peeked(client, message, &peek);
}
