#include "proto/envelope.h"

#include <string.h>

#include <pb_decode.h>
#include <pb_encode.h>

#include "proto/varint.h"
#include "proto/wire.h"

bool rw_envelope_is_one(const rw_schema_message* schema) {
    uint32_t choice = 0;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const rw_schema_field* field = &schema->fields[i];
        bool is_member = field->shape == RW_SCHEMA_ONEOF;
        if (field->shape == RW_SCHEMA_REPEATED || (choice != 0 && field->choice != choice) ||
            (is_member && field->kind != RW_SCHEMA_MESSAGE)) {
            return false;
        }
        choice = field->choice;
    }
    return true;
}

// ---- Decoding ----

static bool decode_value(const rw_schema_field* field, const uint8_t* payload, size_t size,
                         void* member) {
    uint64_t number = 0;
    switch ((rw_schema_kind)field->kind) {
    case RW_SCHEMA_DOUBLE:
    case RW_SCHEMA_FIXED64:
    case RW_SCHEMA_FIXED32: memcpy(member, payload, size); return true;
    case RW_SCHEMA_UINT64:
        rw_varint_read(&payload, payload + size, &number);
        memcpy(member, &number, sizeof number);
        return true;
    case RW_SCHEMA_UINT32:
    case RW_SCHEMA_UENUM:
        rw_varint_read(&payload, payload + size, &number);
        memcpy(member, &number, sizeof(uint32_t)); // little-endian, checked to fit
        return true;
    case RW_SCHEMA_BOOL:
        rw_varint_read(&payload, payload + size, &number);
        *(bool*)member = number != 0;
        return true;
    case RW_SCHEMA_STRING:
        memcpy(member, payload, size);
        ((char*)member)[size] = '\0';
        return true;
    case RW_SCHEMA_BYTES: *(rw_wire_bytes*)member = (rw_wire_bytes){payload, size}; return true;
    case RW_SCHEMA_MESSAGE: return rw_envelope_decode_plain(field->sub, payload, size, member);
    }
    return false;
}

bool rw_envelope_decode(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                        void* message) {
    const uint8_t* at = bytes;
    const uint8_t* end = bytes + size;
    char* base = message;
    while (at < end) {
        uint64_t key, payload_size;
        if (!rw_varint_read(&at, end, &key) || !rw_varint_skip(&at, end, key, &payload_size)) {
            return false; // not in checked bytes
        }
        const rw_schema_field* field = rw_schema_find(schema, key >> 3);
        if (field == NULL) {
            continue;
        }
        if (field->shape == RW_SCHEMA_ONEOF) {
            *(pb_size_t*)(void*)(base + field->choice - 1) = field->tag;
        } else if (field->shape == RW_SCHEMA_OPTIONAL) {
            *(bool*)(base + field->has_offset) = true;
        }
        if (!decode_value(field, at - payload_size, (size_t)payload_size, base + field->offset)) {
            return false;
        }
    }
    return true;
}

bool rw_envelope_decode_plain(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                              void* message) {
    pb_istream_t stream = pb_istream_from_buffer(bytes, size);
    return pb_decode_ex(&stream, schema->descriptor, message, PB_DECODE_NOINIT);
}

// ---- Encoding ----

rw_status rw_envelope_append_plain(rw_buffer* out, const rw_schema_message* schema,
                                   const void* message) {
    RW_TRY(rw_buffer_reserve(out, 64));
    pb_ostream_t stream = pb_ostream_from_buffer(out->data + out->size_bytes,
                                                 out->capacity_bytes - out->size_bytes);
    if (!pb_encode(&stream, schema->descriptor, message)) {
        // Mostly it did not fit: now the size is worth computing.
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

static rw_status append_key(rw_buffer* out, uint32_t tag, unsigned wire_type, uint64_t length) {
    RW_TRY(rw_buffer_reserve(out, 20));
    uint8_t* at = out->data + out->size_bytes;
    size_t used = rw_varint_write(at, (uint64_t)tag << 3 | wire_type);
    if (wire_type == RW_VARINT_WIRE_BLOCK || wire_type == RW_VARINT_WIRE_VARINT) {
        used += rw_varint_write(at + used, length); // a number is written like a length
    }
    out->size_bytes += used;
    return RW_STATUS_OK;
}

// The message is written behind one byte for its length; a longer length moves it.
static rw_status append_message(rw_buffer* out, const rw_schema_field* field, const void* member) {
    RW_TRY(append_key(out, field->tag, RW_VARINT_WIRE_BLOCK, 0));
    size_t start = out->size_bytes;
    RW_TRY(rw_envelope_append_plain(out, field->sub, member));
    size_t size = out->size_bytes - start;
    uint8_t length[10];
    size_t length_size = rw_varint_write(length, size);
    if (length_size > 1) {
        RW_TRY(rw_buffer_reserve(out, length_size - 1));
        memmove(out->data + start + length_size - 1, out->data + start, size);
        out->size_bytes += length_size - 1;
    }
    memcpy(out->data + start - 1, length, length_size);
    return RW_STATUS_OK;
}

static rw_status append_value(rw_buffer* out, const rw_schema_field* field, const void* member) {
    bool is_always = field->shape == RW_SCHEMA_OPTIONAL; // its presence was checked
    uint64_t number = 0;
    switch ((rw_schema_kind)field->kind) {
    case RW_SCHEMA_DOUBLE:
    case RW_SCHEMA_FIXED64:
        memcpy(&number, member, 8);
        if (number == 0 && !is_always) {
            return RW_STATUS_OK;
        }
        RW_TRY(append_key(out, field->tag, RW_VARINT_WIRE_64, 0));
        return rw_buffer_append(out, member, 8);
    case RW_SCHEMA_FIXED32:
        memcpy(&number, member, 4);
        if (number == 0 && !is_always) {
            return RW_STATUS_OK;
        }
        RW_TRY(append_key(out, field->tag, RW_VARINT_WIRE_32, 0));
        return rw_buffer_append(out, member, 4);
    case RW_SCHEMA_UINT64: memcpy(&number, member, 8); break;
    case RW_SCHEMA_UINT32:
    case RW_SCHEMA_UENUM: memcpy(&number, member, 4); break;
    case RW_SCHEMA_BOOL: number = *(const bool*)member; break;
    case RW_SCHEMA_STRING: {
        size_t size = strnlen(member, field->max);
        if (size == 0 && !is_always) {
            return RW_STATUS_OK;
        }
        RW_TRY(append_key(out, field->tag, RW_VARINT_WIRE_BLOCK, size));
        return rw_buffer_append(out, member, size);
    }
    case RW_SCHEMA_BYTES: {
        const rw_wire_bytes* bytes = member;
        if (bytes->size == 0 && !is_always) {
            return RW_STATUS_OK;
        }
        RW_TRY(append_key(out, field->tag, RW_VARINT_WIRE_BLOCK, bytes->size));
        return rw_buffer_append(out, bytes->data, bytes->size);
    }
    case RW_SCHEMA_MESSAGE: return append_message(out, field, member);
    }
    return number == 0 && !is_always ? RW_STATUS_OK
                                     : append_key(out, field->tag, RW_VARINT_WIRE_VARINT, number);
}

static rw_status append_fields(rw_buffer* out, const rw_schema_message* schema,
                               const void* message) {
    const char* base = message;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const rw_schema_field* field = &schema->fields[i];
        if (field->shape == RW_SCHEMA_ONEOF) {
            // The members of the choice come last in every envelope (a test checks it).
            uint32_t tag = *(const pb_size_t*)(const void*)(base + field->choice - 1);
            field = rw_schema_find(schema, tag);
            return field == NULL ? RW_STATUS_OK : append_value(out, field, base + field->offset);
        }
        if (field->shape != RW_SCHEMA_OPTIONAL || *(const bool*)(base + field->has_offset)) {
            RW_TRY(append_value(out, field, base + field->offset));
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_envelope_append(rw_buffer* out, const rw_schema_message* schema, const void* message) {
    size_t start = out->size_bytes;
    rw_status status = rw_buffer_reserve(out, 512);
    if (status == RW_STATUS_OK) {
        status = append_fields(out, schema, message);
    }
    if (status != RW_STATUS_OK) {
        out->size_bytes = start;
    }
    return status;
}
