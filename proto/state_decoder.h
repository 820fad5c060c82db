// State frames (state_codec.h) -> arrays of doubles, one decoder per stream. Made for bytes from
// anywhere: whatever they are, the answer is a frame or an error, and memory stays under the limit.
// A decoder belongs to one thread at a time. Once the layout is known, a decode allocates nothing.
#pragma once

#include "proto/state_codec.h"

typedef struct rw_state_decoder rw_state_decoder;

// One track of a decoded frame; the arrays are the decoder's until its next call.
typedef struct rw_state_decoder_track {
    rw_state_codec_field field;
    int32_t count;               // elements
    int32_t components;          // 3 or 4
    int32_t chain_count;         // as the encoder was told; lonely elements are chains of one
    const int32_t* chain_starts; // first element of each chain, and `count` at the end
    const double* data;          // count x components
} rw_state_decoder_track;

typedef struct rw_state_decoder_frame {
    rw_state_codec_header header;
    rw_state_decoder_track tracks[RW_STATE_CODEC_MAX_TRACKS]; // header.track_count of them
} rw_state_decoder_frame;

// Makes a decoder that accepts at most `max_elements` elements in all tracks together (0 = 2^24).
// It holds up to 100 bytes per element, charged to `alloc` (borrowed). RESOURCE_EXHAUSTED.
rw_status rw_state_decoder_create(size_t max_elements, rw_alloc* alloc, rw_state_decoder** out,
                                  rw_error* error);

// Frees a decoder; NULL is accepted.
void rw_state_decoder_destroy(rw_state_decoder* decoder);

// Decodes one frame. FAILED_PRECONDITION: its key frame was not seen (or failed); wait for a key.
// DATA_LOSS: the bytes are no frame. RESOURCE_EXHAUSTED: more than the limit. After a failed delta
// frame later ones still decode; after a failed key frame a new one is needed.
rw_status rw_state_decoder_decode(rw_state_decoder* decoder, rw_state_codec_workspace* workspace,
                                  const void* data, size_t size_bytes,
                                  rw_state_decoder_frame* frame, rw_error* error);
