// The readers of state frames, on the loop thread: which connection gets which group's frames, what
// slow readers and byte budgets lose, and which readers a session must wait for.
//
// A frame may be lost for a reader as long as it has the key frame that later frames refer to. A slow
// reader's keys are dropped only for newer keys, and then with what was predicted from them; a key
// that the byte budget does not allow takes the frames up to the next key with it. Replies are
// never touched.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/stream/publisher.h"

typedef struct rw_host rw_host;

// Bytes that wait for one connection before frames are dropped, and for one recorder before its
// session waits.
enum { RW_SUBSCRIBERS_QUEUE_BYTES = 4 << 20, RW_SUBSCRIBERS_HOLD_BYTES = 1 << 20 };

typedef struct rw_subscriber {
    struct rw_subscriber* next_of_session;
    struct rw_subscriber* next_of_client;
    rw_session* session;
    rw_client* client;
    uint64_t id; // subscription
    uint64_t group;
    bool back_pressure; // never drops; the session waits
    bool is_holding;    // counted in session->holds
    bool has_key;       // the key that later frames refer to was queued
    bool had_key;       // one was queued at some time
    uint64_t last_key;  // its sequence; with had_key
    uint64_t sent, dropped;
    size_t queued_bytes; // wait in the connection
    double budget;       // bytes per second; 0 = none
    double credit;       // bytes that may be sent now
    int64_t credited_ns; // when the credit was renewed last
} rw_subscriber;

// A reader that reads nothing yet, made before its session joins the group, so that nothing can fail
// once it did. NULL when memory is exhausted. Any thread.
rw_subscriber* rw_subscribers_make(rw_session* session);

// Makes it a reader of a group, or NOT_FOUND: the client or the session is gone.
rw_status rw_subscribers_add(rw_subscriber* subscriber, rw_client* client, uint64_t group,
                             uint64_t subscription, const rw_pb_Subscribe* request);

// Tells the session that one reader of a group is gone, and frees it. For one that was made but not
// added; `group` is the one it joined.
void rw_subscribers_give_up(rw_subscriber* subscriber, uint64_t group);

// Tells sessions once more what there was no memory to tell.
void rw_subscribers_tell_left(rw_host* host);

// Ends a subscription of a client: takes the counts and tells the session. NOT_FOUND.
rw_status rw_subscribers_remove(rw_client* client, uint64_t subscription, uint64_t* sent,
                                uint64_t* dropped, rw_error* error);

// Ends all of a client's, or those of one session (NULL: of all).
void rw_subscribers_remove_client(rw_client* client, const rw_session* session);

// Ends all subscriptions of a session that closes.
void rw_subscribers_remove_session(rw_session* session);

// Hands a frame to its readers. Called by the frame's note.
void rw_subscribers_deliver(rw_stream_frame* frame);

// The connection says that a frame of this reader was sent or dropped.
void rw_subscribers_done(rw_subscriber* subscriber, const rw_stream_frame* frame, bool was_sent);
