// Arrays of doubles -> state frames (state_codec.h), one encoder per group of equal subscriptions
// of a session: it holds the last key frame, and its frames are shared by all their readers.
// An encoder belongs to one thread at a time. A warmed-up encode allocates nothing.
#pragma once

#include "proto/state_codec.h"

typedef struct rw_state_encoder rw_state_encoder;

// One track of a selection.
typedef struct rw_state_encoder_track {
    rw_state_codec_field field;
    int32_t count;               // elements: bodies, rod nodes
    int32_t chain_count;         // 0: no element has a neighbour (bodies)
    const int32_t* chain_starts; // first element of each chain, rising from 0 (chain_count)
    double bound; // QUANTIZED: largest error, Euclidean [m, m/s, rad/s] or angle [rad]; > 0
} rw_state_encoder_track;

typedef struct rw_state_encoder_options {
    rw_state_codec_mode mode;
    // Most frames from one key frame to the next; 0 means 240. Unless `fixed_keys`, a key comes
    // earlier when the last delta was larger than the mean since the key: the interval of least bytes.
    int32_t key_interval;
    bool fixed_keys;
} rw_state_encoder_options;

// Where a track's numbers lie: element i at data + stride * (index == NULL ? i : index[i]). A
// node stride of a selection is a larger `stride` or an `index`.
typedef struct rw_state_encoder_input {
    const double* data;   // borrowed during the call
    int32_t stride;       // doubles; 0 = the field's number of components
    const int32_t* index; // borrowed; NULL = 0, 1, 2, ...
} rw_state_encoder_input;

typedef struct rw_state_encoder_stamp {
    uint32_t epoch; // a new one makes a key frame
    uint64_t step;
    double time; // [s]
    bool key;    // ask for a key frame
} rw_state_encoder_stamp;

// An encoded frame. The bytes lie in the workspace until its next use; copy them to keep them.
typedef struct rw_state_encoder_frame {
    const unsigned char* data;
    size_t size_bytes;
    uint64_t sequence;
    uint64_t key_sequence;
    bool is_key;
} rw_state_encoder_frame;

// Makes an encoder for the given tracks (copied). INVALID_ARGUMENT names `tracks[i].field` and the
// like; RESOURCE_EXHAUSTED when `alloc` (the session's account) has no room for the key frame:
// about 60 bytes per element with position and rotation.
rw_status rw_state_encoder_create(const rw_state_encoder_track* tracks, int32_t track_count,
                                  const rw_state_encoder_options* options, rw_alloc* alloc,
                                  rw_state_encoder** out, rw_error* error);

// Frees an encoder; NULL is accepted.
void rw_state_encoder_destroy(rw_state_encoder* encoder);

// The size that no frame of this encoder exceeds.
size_t rw_state_encoder_bound(const rw_state_encoder* encoder);

// Encodes the state that `inputs` (one per track) describe. QUANTIZED refuses NaN and infinity:
// INVALID_ARGUMENT naming `tracks[i][element]`. After any failure the sequence has not advanced
// and the next frame is a key frame.
rw_status rw_state_encoder_encode(rw_state_encoder* encoder, rw_state_codec_workspace* workspace,
                                  const rw_state_encoder_stamp* stamp,
                                  const rw_state_encoder_input* inputs,
                                  rw_state_encoder_frame* frame, rw_error* error);
