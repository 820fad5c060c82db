// Protobuf's variable-length numbers and the skipping of fields, for code that walks encoded bytes
// without decoding them. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RW_VARINT_WIRE_VARINT = 0,
    RW_VARINT_WIRE_64 = 1,
    RW_VARINT_WIRE_BLOCK = 2, // length, then bytes
    RW_VARINT_WIRE_32 = 5,
};

// Reads a number of at most 10 bytes at `*at` and moves on. False when it is cut or too long.
static inline bool rw_varint_read(const uint8_t** at, const uint8_t* end, uint64_t* value) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (*at == end) {
            return false;
        }
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        result |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *value = result;
            return true;
        }
    }
    return false;
}

// Moves `*at` behind the value of a field whose key is `key`; `*size` is its payload's size (length
// prefix excluded), so that the payload is [*at - *size, *at). False when it is cut or a wire type
// that this protocol does not use.
static inline bool rw_varint_skip(const uint8_t** at, const uint8_t* end, uint64_t key,
                                  uint64_t* size) {
    const uint8_t* start = *at;
    uint64_t value;
    switch ((int)(key & 7)) {
    case RW_VARINT_WIRE_VARINT:
        if (!rw_varint_read(at, end, &value)) {
            return false;
        }
        *size = (uint64_t)(*at - start);
        return true;
    case RW_VARINT_WIRE_64: *size = 8; break;
    case RW_VARINT_WIRE_32: *size = 4; break;
    case RW_VARINT_WIRE_BLOCK:
        if (!rw_varint_read(at, end, size)) {
            return false;
        }
        break;
    default: return false;
    }
    if (*size > (uint64_t)(end - *at)) {
        return false;
    }
    *at += *size;
    return true;
}

// Writes `value` in as few bytes as it needs (at most 10) and returns their number.
static inline size_t rw_varint_write(uint8_t* out, uint64_t value) {
    size_t count = 0;
    while (value > 0x7f) {
        out[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[count++] = (uint8_t)value;
    return count;
}
