// A client: what the server knows of one connection above bytes: who it is, which requests are
// open, which sessions it is attached to and how, its blobs. Loop thread only, but for the blob
// store, which workers use too. The connection lends it a link for answers; after the connection is
// gone the client lives on until its last task is back.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/session/blob_store.h"
#include "server/session/task.h"
#include "solvers/base/id_pool.h"
#include "solvers/base/status.h"
#include "solvers/sched/worker_pool.h"

typedef struct rw_host rw_host;
typedef struct rw_stream_frame rw_stream_frame;
typedef struct rw_subscriber rw_subscriber;

// What a connection can do for its client.
typedef struct rw_client_link {
    // Queues whole frames behind what is queued already; they are written when the loop turn ends.
    void (*send)(void* connection, const void* bytes, size_t size);
    // As send, but takes the buffer's memory over when that is cheaper; leaves the buffer empty.
    void (*send_buffer)(void* connection, rw_buffer* bytes);
    // Queues a state frame, which may be dropped; holds a reference to it.
    void (*send_frame)(void* connection, rw_stream_frame* frame, rw_subscriber* subscriber);
    // Drops frames of a subscription that wait, without a word.
    void (*forget_frames)(void* connection, const rw_subscriber* subscriber);
    // Open requests became fewer or a fence ended: go on parsing (later in this turn).
    void (*resume)(void* connection);
} rw_client_link;

typedef struct rw_client_attachment {
    rw_session* session;
    bool is_control;
} rw_client_attachment;

struct rw_client {
    rw_actor actor; // first: for blobs and messages that must be unpacked on a worker
    rw_mailbox mailbox;
    rw_host* host;
    uint64_t id;    // connection id, generational
    int32_t refs;   // the connection's and each task's
    const rw_client_link* link; // NULL when the connection is gone
    void* connection;
    bool said_hello;
    atomic_bool is_ending; // nothing refers to it: its actor frees the blobs, then it is freed
    bool is_fenced; // a task of the client's own actor is out: nothing more is parsed
    char name[64];

    rw_task** open; // open requests, hashed by request_id (open addressing)
    uint32_t open_capacity; // power of two or 0
    uint32_t open_count;
    uint64_t open_bytes; // of their messages

    rw_client_attachment* attachments; // in order of attaching
    int32_t attachment_count, attachment_capacity;
    int32_t attachment_hint; // where the last look-up ended: most clients go round or stay

    rw_blob_store* blobs;
    rw_subscriber* subscribers; // by next_of_client
};

// Makes a client with one reference (the connection's). NULL when memory is exhausted.
rw_client* rw_client_create(rw_host* host, const rw_client_link* link, void* connection);

// The connection is gone: cancels what is open, leaves all sessions, ends the subscriptions, gives
// the connection's reference back.
void rw_client_lose(rw_client* client);

void rw_client_hold(rw_client* client);
void rw_client_drop(rw_client* client);

// ---- Open requests ----

// Notes an open request. ALREADY_EXISTS when its id is open; RESOURCE_EXHAUSTED.
rw_status rw_client_open(rw_client* client, rw_task* task);
void rw_client_close(rw_client* client, rw_task* task);
rw_task* rw_client_find_open(const rw_client* client, uint64_t request_id);

// ---- Attachments ----

// The attachment to a session, or NULL.
rw_client_attachment* rw_client_find_attachment(rw_client* client, const rw_session* session);
rw_status rw_client_attach(rw_client* client, rw_session* session, bool is_control);
void rw_client_detach(rw_client* client, rw_session* session);

// ---- Answers ----

// Answers without a task: for what is refused before it gets one.
void rw_client_refuse(rw_client* client, uint64_t request_id, const rw_error* error);

// Sends bytes or a buffer; does nothing when the connection is gone.
void rw_client_send(rw_client* client, const void* bytes, size_t size);
