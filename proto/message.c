#include "proto/message.h"

#include <string.h>

#include "proto/border.h"
#include "proto/envelope.h"
#include "proto/schema.h"
#include "proto/varint.h"

// ---- Decoding ----

void rw_message_peek_request(const void* bytes, size_t size, rw_message_peek* peek) {
    *peek = (rw_message_peek){0};
    const uint8_t* at = bytes;
    const uint8_t* end = at + size;
    while (at < end) {
        uint64_t key, field_size, value;
        if (!rw_varint_read(&at, end, &key)) {
            return;
        }
        const uint8_t* payload = at;
        // A command's own length may lie or be cut: which command it is is known all the same.
        const rw_schema_field* field = rw_schema_find(RW_SCHEMA(rw_pb_Request), key >> 3);
        if (field != NULL && field->shape == RW_SCHEMA_ONEOF) {
            peek->command_tag = field->tag;
        }
        if (!rw_varint_skip(&at, end, key, &field_size)) {
            return;
        }
        if (key == (rw_pb_Request_session_tag << 3 | RW_VARINT_WIRE_64)) {
            memcpy(&peek->session, payload, sizeof peek->session);
        } else if (key == (rw_pb_Request_request_id_tag << 3 | RW_VARINT_WIRE_VARINT) &&
                   rw_varint_read(&payload, at, &value)) {
            peek->request_id = value;
        } else if (key == (rw_pb_Request_deadline_ms_tag << 3 | RW_VARINT_WIRE_VARINT) &&
                   rw_varint_read(&payload, at, &value)) {
            peek->deadline_ms = (uint32_t)value;
        }
    }
}

typedef bool (*decode_function)(const rw_schema_message*, const uint8_t*, size_t, void*);

static rw_status decode(const rw_schema_message* schema, decode_function how, const void* bytes,
                        size_t size, rw_arena* arena, void* message, rw_error* error) {
    memset(message, 0, schema->struct_bytes); // nanopb leaves callback fields as they are
    const uint8_t* at = bytes;
    bool in_pieces;
    RW_TRY(rw_border_check(schema, at, size, &in_pieces, error));
    if (in_pieces) {
        RW_TRY(rw_border_join(schema, at, size, arena, &at, &size, error));
    }
    if (!how(schema, at, size, message)) {
        // The border lets nothing through that nanopb refuses; should it, the client still hears.
        memset(message, 0, schema->struct_bytes);
        RW_FAIL(error, INVALID_ARGUMENT, "", "the bytes are no message (nanopb)");
    }
    return RW_STATUS_OK;
}

rw_status rw_message_decode_request(const void* bytes, size_t size, rw_arena* arena,
                                    rw_pb_Request* request, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Request), rw_envelope_decode, bytes, size, arena, request, error);
}

rw_status rw_message_decode_response(const void* bytes, size_t size, rw_arena* arena,
                                     rw_pb_Response* response, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Response), rw_envelope_decode, bytes, size, arena, response, error);
}

rw_status rw_message_decode_event(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Event* event, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Event), rw_envelope_decode, bytes, size, arena, event, error);
}

rw_status rw_message_decode_state(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_StateFrame* frame, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_StateFrame), rw_envelope_decode, bytes, size, arena, frame, error);
}

rw_status rw_message_decode_scene(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Scene* scene, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Scene), rw_envelope_decode_plain, bytes, size, arena, scene, error);
}

// ---- Encoding ----

rw_status rw_message_append_request(rw_buffer* out, const rw_pb_Request* request) {
    return rw_envelope_append(out, RW_SCHEMA(rw_pb_Request), request);
}

rw_status rw_message_append_response(rw_buffer* out, const rw_pb_Response* response) {
    return rw_envelope_append(out, RW_SCHEMA(rw_pb_Response), response);
}

rw_status rw_message_append_event(rw_buffer* out, const rw_pb_Event* event) {
    return rw_envelope_append(out, RW_SCHEMA(rw_pb_Event), event);
}

rw_status rw_message_append_state(rw_buffer* out, const rw_pb_StateFrame* frame) {
    return rw_envelope_append(out, RW_SCHEMA(rw_pb_StateFrame), frame);
}

rw_status rw_message_append_scene(rw_buffer* out, const rw_pb_Scene* scene) {
    return rw_envelope_append_plain(out, RW_SCHEMA(rw_pb_Scene), scene);
}

// Copies a text for a string field: one line of valid UTF-8 whatever a client's names held and wherever
// they were cut. What is not becomes '?'.
static void copy_line(char* to, size_t capacity, const char* from) {
    const uint8_t* at = (const uint8_t*)from;
    size_t size = 0;
    while (*at != '\0') {
        size_t length = 1;
        bool is_good = *at >= 0x20 && *at < 0x7f;
        // A sequence never reaches over the end: NUL is no part of one.
        for (size_t n = 2; n <= 4 && !is_good && *at >= 0x80 && at[n - 1] != '\0'; n++) {
            if (rw_border_is_utf8(at, n)) {
                is_good = true;
                length = n;
            }
        }
        if (size + length >= capacity) {
            break;
        }
        if (is_good) {
            memcpy(to + size, at, length);
        } else {
            to[size] = '?';
        }
        size += length;
        at += length;
    }
    to[size] = '\0';
}

void rw_message_fail(rw_pb_Response* response, uint64_t request_id, const rw_error* error) {
    memset(response, 0, sizeof *response);
    response->request_id = request_id;
    response->status = (rw_pb_Status_Code)error->status;
    if (error->status != RW_STATUS_OK) {
        copy_line(response->message, sizeof response->message, error->text);
        copy_line(response->path, sizeof response->path, error->path);
    }
}

const char* rw_message_command_name(uint32_t command_tag) {
    const rw_schema_field* field = rw_schema_find(RW_SCHEMA(rw_pb_Request), command_tag);
    return field != NULL && field->shape == RW_SCHEMA_ONEOF ? field->name : "";
}
