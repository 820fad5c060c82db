// State frames as arrays of doubles. A watch decodes the frames of all subscriptions of one link.
// Blocking; the link's thread.
#pragma once

#include "clients/c/link.h"
#include "proto/state_decoder.h"

typedef struct rw_watch rw_watch;

// Where an object's elements lie in a frame.
typedef struct rw_watch_entry {
    rw_pb_ObjectRef_Kind kind; // BODY or ROD
    char name[64];
    uint64_t id;
    uint32_t first; // element
    uint32_t count; // elements: 1 for a body, the streamed nodes of a rod
    uint32_t stride; // rod nodes between elements
} rw_watch_entry;

// One instant. Arrays are the watch's until its next call; those not subscribed to are NULL.
typedef struct rw_watch_frame {
    uint64_t group; // SubscribeResult.group: which stream
    uint64_t session;
    uint64_t epoch;
    uint64_t step;
    double time; // simulated [s]
    uint64_t sequence;
    bool is_key;
    uint32_t element_count;
    const double* positions;          // (elements x 3) [m], world
    const double* rotations;          // (elements x 4) w, x, y, z
    const double* linear_velocities;  // (elements x 3) [m/s], world
    const double* angular_velocities; // (elements x 3) [rad/s], body or node axes
    const rw_watch_entry* entries;    // what the elements are; none before a layout was seen
    uint32_t entry_count;
    size_t payload_bytes; // as received
} rw_watch_frame;

// Makes a watch on the link's frames; the link must outlive it. RESOURCE_EXHAUSTED.
rw_status rw_watch_create(rw_link* link, rw_watch** watch, rw_error* error);
void rw_watch_destroy(rw_watch* watch);

// Gives the next frame that can be decoded, waiting at most `timeout_s` in all (negative = the
// link's own time): DEADLINE_EXCEEDED when none came. Frames whose key was missed are passed over.
// Answers and other events that arrive meanwhile are dropped; a session that closed is CANCELLED, a
// faulted one FAULTED.
rw_status rw_watch_next(rw_watch* watch, double timeout_s, rw_watch_frame* frame, rw_error* error);

// Decodes a frame that the caller received itself. FAILED_PRECONDITION: its key frame was missed.
rw_status rw_watch_decode(rw_watch* watch, const rw_pb_StateFrame* state, rw_watch_frame* frame,
                          rw_error* error);

// Takes the layout that the answer of a session to Subscribe holds; frames tell theirs only when it changes.
rw_status rw_watch_expect(rw_watch* watch, uint64_t session, const rw_pb_SubscribeResult* result,
                          rw_error* error);
