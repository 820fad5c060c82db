// A model as portable, versioned bytes: the part of a snapshot that says what exists. Driven by one
// table of fields per description, so that adding a field is one line. Holds more than a scene:
// ids and their counters, resolved targets and rest lengths, rod layouts, applied wrenches.
// Little-endian; doubles bit for bit. One thread at a time.
#pragma once

#include "solvers/base/buffer.h"
#include "solvers/base/hash.h"
#include "solvers/model/model.h"

// Appends the model. RESOURCE_EXHAUSTED.
rw_status rw_scene_codec_write(const rw_model* model, rw_buffer* buffer);

// Feeds everything that rw_scene_codec_write would write, but values instead of bytes: the hash does
// not depend on how they are laid out, nor on the sign of a zero. Allocates nothing.
void rw_scene_codec_hash(const rw_model* model, rw_hash* hash);

// Reads what was written into an empty, initialised model; `*at` moves on. Bytes may be hostile:
// whatever they hold is validated as a client's scene is, and answers DATA_LOSS. On failure finish
// the model: it holds a part.
rw_status rw_scene_codec_read(rw_model* model, const unsigned char** at, const unsigned char* end,
                              rw_error* error);
