#include "proto/message.h"

#include <stdio.h>
#include <string.h>

#include <pb_decode.h>
#include <pb_encode.h>

#include "proto/border.h"
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

static rw_status decode(const rw_schema_message* schema, const void* bytes, size_t size,
                        rw_arena* arena, void* message, rw_error* error) {
    memset(message, 0, schema->struct_bytes); // nanopb leaves callback fields as they are
    const uint8_t* at = bytes;
    bool in_pieces;
    RW_TRY(rw_border_check(schema, at, size, &in_pieces, error));
    if (in_pieces) {
        RW_TRY(rw_border_join(schema, at, size, arena, &at, &size, error));
    }
    pb_istream_t stream = pb_istream_from_buffer(at, size);
    if (!pb_decode(&stream, schema->descriptor, message)) {
        // The border lets nothing through that nanopb refuses; should it, the client still hears.
        memset(message, 0, schema->struct_bytes);
        RW_FAIL(error, INVALID_ARGUMENT, "", "the bytes are no message (nanopb: %s)", PB_GET_ERROR(&stream));
    }
    return RW_STATUS_OK;
}

rw_status rw_message_decode_request(const void* bytes, size_t size, rw_arena* arena,
                                    rw_pb_Request* request, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Request), bytes, size, arena, request, error);
}

rw_status rw_message_decode_response(const void* bytes, size_t size, rw_arena* arena,
                                     rw_pb_Response* response, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Response), bytes, size, arena, response, error);
}

rw_status rw_message_decode_event(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Event* event, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Event), bytes, size, arena, event, error);
}

rw_status rw_message_decode_state(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_StateFrame* frame, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_StateFrame), bytes, size, arena, frame, error);
}

rw_status rw_message_decode_scene(const void* bytes, size_t size, rw_arena* arena,
                                  rw_pb_Scene* scene, rw_error* error) {
    return decode(RW_SCHEMA(rw_pb_Scene), bytes, size, arena, scene, error);
}

// ---- Encoding ----

// Small messages, which are most, are written in one go into the room that is there; when it does
// not suffice the size is computed and the second go fits.
static rw_status append(rw_buffer* out, const rw_schema_message* schema, const void* message) {
    RW_TRY(rw_buffer_reserve(out, 512));
    pb_ostream_t stream = pb_ostream_from_buffer(out->data + out->size_bytes,
                                                 out->capacity_bytes - out->size_bytes);
    if (!pb_encode(&stream, schema->descriptor, message)) {
        size_t size;
        if (!pb_get_encoded_size(&size, schema->descriptor, message)) {
            return RW_STATUS_INTERNAL;
        }
        RW_TRY(rw_buffer_reserve(out, size));
        stream = pb_ostream_from_buffer(out->data + out->size_bytes,
                                        out->capacity_bytes - out->size_bytes);
        if (!pb_encode(&stream, schema->descriptor, message)) {
            return RW_STATUS_INTERNAL;
        }
    }
    out->size_bytes += stream.bytes_written;
    return RW_STATUS_OK;
}

rw_status rw_message_append_request(rw_buffer* out, const rw_pb_Request* request) {
    return append(out, RW_SCHEMA(rw_pb_Request), request);
}

rw_status rw_message_append_response(rw_buffer* out, const rw_pb_Response* response) {
    return append(out, RW_SCHEMA(rw_pb_Response), response);
}

rw_status rw_message_append_event(rw_buffer* out, const rw_pb_Event* event) {
    return append(out, RW_SCHEMA(rw_pb_Event), event);
}

rw_status rw_message_append_state(rw_buffer* out, const rw_pb_StateFrame* frame) {
    return append(out, RW_SCHEMA(rw_pb_StateFrame), frame);
}

rw_status rw_message_append_scene(rw_buffer* out, const rw_pb_Scene* scene) {
    return append(out, RW_SCHEMA(rw_pb_Scene), scene);
}

void rw_message_fail(rw_pb_Response* response, uint64_t request_id, const rw_error* error) {
    memset(response, 0, sizeof *response);
    response->request_id = request_id;
    response->status = (rw_pb_Status_Code)error->status;
    if (error->status != RW_STATUS_OK) {
        snprintf(response->message, sizeof response->message, "%s", error->text);
        snprintf(response->path, sizeof response->path, "%s", error->path);
    }
}

const char* rw_message_command_name(uint32_t command_tag) {
    const rw_schema_field* field = rw_schema_find(RW_SCHEMA(rw_pb_Request), command_tag);
    return field != NULL && field->shape == RW_SCHEMA_ONEOF ? field->name : "";
}
