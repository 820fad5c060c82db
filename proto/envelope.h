// The outermost message, decoded and encoded without nanopb: its search through the sixty commands of
// a Request (and, encoding, its visit to each of them) costs more than all the rest of a Ping. What
// is inside goes through nanopb. Any thread.
#pragma once

#include <stdbool.h>

#include "proto/schema.h"
#include "solvers/base/buffer.h"

// Whether a message may be an envelope: nothing repeated, and the members of its one choice, all
// messages, come last.
bool rw_envelope_is_one(const rw_schema_message* schema);

// Decodes checked bytes into a zeroed struct. False only when nanopb refuses an inner message.
bool rw_envelope_decode(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                        void* message);

// Decodes any checked message by nanopb alone.
bool rw_envelope_decode_plain(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                              void* message);

// Appends the encoded message. RESOURCE_EXHAUSTED or INTERNAL (an rw_wire_fill gave up) leave `out`
// as it was.
rw_status rw_envelope_append(rw_buffer* out, const rw_schema_message* schema, const void* message);

// Appends any message by nanopb alone; the same failures.
rw_status rw_envelope_append_plain(rw_buffer* out, const rw_schema_message* schema,
                                   const void* message);
