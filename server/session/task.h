// A task: one request on its way from a client through a session (or the client's own actor) and
// back, or a piece of the house's own work. Made and freed on the loop thread; in between it belongs
// to whoever runs it. Notes are how workers tell the loop thread things; a task is one.
//
//   loop: rw_host_take_task, submit -> mailbox -> worker (or loop, inline): rw_dispatch_run
//        ^                                                   |
//        +---- rw_task.finish <---- inbox (rw_host_post) <---+
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/session/mailbox.h"
#include "server/session/watchdog.h"
#include "solvers/base/buffer.h"

typedef struct rw_client rw_client;
typedef struct rw_session rw_session;
typedef struct rw_task rw_task;

// Something for the loop thread: `deliver` is called there.
typedef struct rw_note {
    rw_mailbox_item item; // first
    void (*deliver)(struct rw_note* note);
} rw_note;

// A part of a message too large for one read: 256 KiB pieces in a list, so that receiving never
// copies or clears megabytes on the loop thread. The worker joins them.
typedef struct rw_task_piece {
    struct rw_task_piece* next;
    size_t size_bytes;
    size_t capacity_bytes;
    unsigned char bytes[];
} rw_task_piece;

struct rw_task {
    rw_note note;       // first; in mailboxes by its item
    rw_client* client;  // who asked; NULL for the house's own work
    rw_session* session; // where it runs; NULL: on the client's actor
    uint64_t request_id;
    uint64_t session_id;   // as asked
    uint32_t command_tag;  // rw_pb_Request_..._tag; 0 for the house's own work
    int64_t deadline_ns;   // rw_clock_now_ns; 0 = none
    int64_t arrived_ns;
    atomic_bool cancelled; // sequentially consistent with rw_session.running, see session.c
    bool is_open;          // in the client's table of open requests
    bool is_inline;        // runs on the loop thread
    bool has_control;      // the client had CONTROL of the session when the task was sent there
    bool is_compressed;    // `pieces` or `request` hold a zstd frame

    // The message. Either `bytes` (borrowed or in `request`), or pieces to be joined first.
    const unsigned char* bytes;
    size_t size_bytes;
    rw_buffer request;
    rw_task_piece* pieces;

    // House's own work: called in the session instead of a command.
    void (*work)(rw_session* session, rw_task* task);
    void* context;
    uint64_t argument;

    // Between slices.
    bool is_started;
    uint32_t steps_done;
    uint32_t steps_wanted;
    uint64_t outcome; // what the loop thread's half of a command needs to know (Subscribe: the group)
    int64_t wall_ns;    // spent in steps
    rw_buffer values;   // rows gathered so far
    rw_watchdog_entry watch;

    size_t kept_bytes; // of the buffers, while free

    // The answer: status for those who count, and whole frames ready to send.
    int status;
    rw_buffer reply;
    // Within a Batch or BatchAdvance: gets the task, with its reply, instead of the client.
    void (*parent)(rw_task* task);
    void* parent_context;
    int32_t parent_index;
    const struct rw_hot_message_advance* advance; // of an entry of BatchAdvance, in place of bytes
    // Called on the loop thread when done; must end in rw_host_give_task. Default: sends `reply`.
    void (*finish)(rw_task* task);
};
