// The publisher: encodes state frames of a session. Subscriptions that ask for the same (objects,
// fields, stride, mode, bounds, rate) form a GROUP; a group's frame is encoded once and the same
// bytes go to every reader. Belongs to the session's actor: the thread that runs it. Frames travel
// to the loop thread as notes, where subscribers.h hands them to connections.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/stream.pb.h"
#include "server/session/task.h"
#include "solvers/base/status.h"

typedef struct rw_publisher rw_publisher;

// A frame on its way: bytes as they go over the wire, header included. References are the loop
// thread's.
typedef struct rw_stream_frame {
    rw_note note; // first
    rw_session* session;
    uint64_t group;
    int32_t refs;
    bool is_key;
    uint64_t sequence;
    rw_alloc* alloc;
    size_t size_bytes;
    unsigned char bytes[];
} rw_stream_frame;

// Makes a publisher without groups. NULL when the session's memory is exhausted.
rw_publisher* rw_publisher_create(rw_session* session);
void rw_publisher_destroy(rw_publisher* publisher);

// Joins or makes the group that `request` asks for. Its first frame for the newcomer, a key frame of
// the present state, goes out with rw_publisher_send_pending, behind the answer. Fills `result` (its
// layout lies in the publisher until the next call). Errors carry the field's path.
rw_status rw_publisher_subscribe(rw_publisher* publisher, const rw_pb_Subscribe* request,
                                 uint64_t subscription, rw_pb_SubscribeResult* result,
                                 rw_error* error);

// Sends what newcomers wait for, after the answer to their Subscribe was posted; and the key frames of
// a new epoch, unless the session `has_more` commands to do first.
void rw_publisher_send_pending(rw_publisher* publisher, bool has_more);

// One subscriber of a group less; the last one ends it.
void rw_publisher_leave(rw_publisher* publisher, uint64_t group);

// After each step: encodes the groups that are due.
void rw_publisher_after_step(rw_publisher* publisher);

// After a change of topology, Restore or Fork: groups look at the new world before their next frame,
// which is a key frame with the new layout.
void rw_publisher_new_epoch(rw_publisher* publisher);

int32_t rw_publisher_group_count(const rw_publisher* publisher);

// Frees what this thread keeps for encoding; threads that end do so by themselves.
void rw_publisher_finish_thread(void);

// Gives a reference to a frame back. Loop thread.
void rw_publisher_drop_frame(rw_stream_frame* frame);
