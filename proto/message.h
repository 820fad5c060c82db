// Typed messages from and to bytes: what the border accepts and what it says when it does not.
// No state, no I/O; any thread.
//
// Decoding first checks the bytes against the schema (lengths, wire types, text, counts, choices,
// enum values), so that an error names the field as the client wrote it, then decodes them with
// nanopb. Decoded messages are VIEWS: the bytes must outlive them. What is large or of any number
// is an rw_wire_array, rw_wire_bytes or rw_wire_list (wire.h); elements of lists are decoded one by
// one when they are walked:
//
//   rw_pb_Request request;
//   RW_TRY(rw_message_decode_request(bytes, size, arena, &request, error));
//   rw_wire_cursor cursor = rw_wire_begin(&request.command.load_scene.scene.bodies);
//   rw_pb_Body body;
//   while (rw_wire_next_message(&cursor, rw_pb_Body_fields, &body, sizeof body)) { ... }
//
// Paths are relative to the command: `steps`, `rods[3].young_modulus` (LoadScene: to the scene),
// `density` (Create*: to the object); of the envelope, `deadline_ms`.
#pragma once

#include "proto/ropewalk/v1/command.pb.h"
#include "proto/wire.h"
#include "solvers/base/arena.h"
#include "solvers/base/buffer.h"
#include "solvers/base/status.h"

// ---- Decoding ----

// What routing needs, read without decoding. Works on damaged messages as far as they go, so that a
// refused request can still be answered under its id.
typedef struct rw_message_peek {
    uint64_t request_id;  // 0 when not found
    uint64_t session;     // 0 when not found
    uint32_t deadline_ms; // 0 when not found
    uint32_t command_tag; // rw_pb_Request_..._tag; 0 when none is known
} rw_message_peek;

void rw_message_peek_request(const void* bytes, size_t size, rw_message_peek* peek);

// Decodes a message of `size` bytes. `arena` is used only when the sender wrote an array in pieces
// (legal but rare): the message then points into it; RESOURCE_EXHAUSTED when it is full.
// INVALID_ARGUMENT with a path otherwise. On failure the message is all zero.
rw_status rw_message_decode_request(const void* bytes, size_t size, rw_arena* arena,
                                    rw_pb_Request* request, rw_error* error);
rw_status rw_message_decode_response(const void* bytes, size_t size, rw_arena* arena,
                                     rw_pb_Response* response, rw_error* error);
rw_status rw_message_decode_event(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Event* event, rw_error* error);
rw_status rw_message_decode_state(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_StateFrame* frame, rw_error* error);
// A scene by itself, e.g. from a file of bytes.
rw_status rw_message_decode_scene(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Scene* scene, rw_error* error);

// ---- Encoding ----

// Appends the encoded message to `out`. RESOURCE_EXHAUSTED (memory) or INTERNAL (an rw_wire_fill
// gave up) leave `out` as it was.
rw_status rw_message_append_request(rw_buffer* out, const rw_pb_Request* request);
rw_status rw_message_append_response(rw_buffer* out, const rw_pb_Response* response);
rw_status rw_message_append_event(rw_buffer* out, const rw_pb_Event* event);
rw_status rw_message_append_state(rw_buffer* out, const rw_pb_StateFrame* frame);
rw_status rw_message_append_scene(rw_buffer* out, const rw_pb_Scene* scene);

// Makes `response` the answer that says what went wrong (or OK); leaves its result empty.
void rw_message_fail(rw_pb_Response* response, uint64_t request_id, const rw_error* error);

// The command's name as the schema has it, e.g. "load_scene"; "" for an unknown tag.
const char* rw_message_command_name(uint32_t command_tag);
