// Writes protobuf bytes by hand, so that tests can write what no encoder would. Test code only.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/varint.h"

typedef struct raw_message {
    uint8_t data[8192];
    size_t size;
} raw_message;

static inline void raw_message_bytes(raw_message* raw, const void* bytes, size_t size) {
    assert(raw->size + size <= sizeof raw->data);
    if (size > 0) {
        memcpy(raw->data + raw->size, bytes, size);
    }
    raw->size += size;
}

static inline void raw_message_varint(raw_message* raw, uint64_t value) {
    uint8_t bytes[10];
    raw_message_bytes(raw, bytes, rw_varint_write(bytes, value));
}

static inline void raw_message_key(raw_message* raw, uint32_t tag, unsigned wire_type) {
    raw_message_varint(raw, (uint64_t)tag << 3 | wire_type);
}

static inline void raw_message_number(raw_message* raw, uint32_t tag, uint64_t value) {
    raw_message_key(raw, tag, RW_VARINT_WIRE_VARINT);
    raw_message_varint(raw, value);
}

static inline void raw_message_double(raw_message* raw, uint32_t tag, double value) {
    raw_message_key(raw, tag, RW_VARINT_WIRE_64);
    raw_message_bytes(raw, &value, sizeof value);
}

static inline void raw_message_block(raw_message* raw, uint32_t tag, const void* bytes, size_t size) {
    raw_message_key(raw, tag, RW_VARINT_WIRE_BLOCK);
    raw_message_varint(raw, size);
    raw_message_bytes(raw, bytes, size);
}

static inline void raw_message_nested(raw_message* raw, uint32_t tag, const raw_message* inner) {
    raw_message_block(raw, tag, inner->data, inner->size);
}
