// The border: checks a message's bytes against the schema before they are decoded, so that every
// error names the field, and puts arrays that came in pieces together, so that views (wire.h) can
// be views. Bytes in, verdict out: no state; any thread.
//
// Refused: truncated or lying lengths, wrong wire types, numbers too large for their field, strings
// that are too long, not UTF-8 or hold a NUL, more elements than the maximum, unknown values of
// enums, two members of one choice, a message field given twice, nesting deeper than the schema
// needs. Unknown fields are skipped.
#pragma once

#include <stdbool.h>

#include "proto/schema.h"
#include "solvers/base/arena.h"
#include "solvers/base/status.h"

// Checks `size` bytes as a message of this schema. The error's path begins at the message, without
// the names that every path of a request would share (command, scene; see message.h). `*in_pieces`
// tells that an array of a view is unpacked or comes in several pieces: join it before decoding.
rw_status rw_border_check(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                          bool* in_pieces, rw_error* error);

// Rewrites checked bytes so that each array of a view is one packed piece; unknown fields are
// dropped. The result lies in `arena`; RESOURCE_EXHAUSTED when it is full.
rw_status rw_border_join(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                         rw_arena* arena, const uint8_t** joined, size_t* joined_size,
                         rw_error* error);

// Whether the text is UTF-8 without surrogates and overlong forms. NUL counts as valid here.
bool rw_border_is_utf8(const uint8_t* text, size_t size);
