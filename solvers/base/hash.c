#include "solvers/base/hash.h"

#include <string.h>

// A multiply-xorshift step per word (the finaliser of SplitMix64; Steele, Lea and Flood 2014).
static uint64_t mix(uint64_t word) {
    word ^= word >> 30;
    word *= 0xbf58476d1ce4e5b9u;
    word ^= word >> 27;
    word *= 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

void rw_hash_init(rw_hash* hash) {
    hash->state = 0x9e3779b97f4a7c15u;
    hash->count = 0;
}

void rw_hash_word(rw_hash* hash, uint64_t word) {
    hash->state = mix((hash->state + 0x9e3779b97f4a7c15u) ^ mix(word));
    hash->count++;
}

void rw_hash_doubles(rw_hash* hash, const double* values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double value = values[i] == 0 ? 0 : values[i];
        uint64_t word = 0x7ff8000000000000u;
        if (value == value) {
            memcpy(&word, &value, sizeof word);
        }
        rw_hash_word(hash, word);
    }
}

void rw_hash_bytes(rw_hash* hash, const void* data, size_t bytes) {
    const unsigned char* at = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        rw_hash_word(hash, word);
    }
    rw_hash_word(hash, bytes);
}

uint64_t rw_hash_value(const rw_hash* hash) {
    return mix(hash->state ^ hash->count);
}

// Slicing-free table of the reflected polynomial 0x82f63b78, built at compile time by recursion.
#define CRC_BIT(c) (((c) >> 1) ^ (((c) & 1u) != 0 ? 0x82f63b78u : 0u))
#define CRC_BYTE(c) CRC_BIT(CRC_BIT(CRC_BIT(CRC_BIT((uint32_t)(c)))))
// Nibble tables keep the macro small: two look-ups per byte.
static const uint32_t crc_nibble[16] = {
    CRC_BYTE(0), CRC_BYTE(1), CRC_BYTE(2),  CRC_BYTE(3),  CRC_BYTE(4),  CRC_BYTE(5),
    CRC_BYTE(6), CRC_BYTE(7), CRC_BYTE(8),  CRC_BYTE(9),  CRC_BYTE(10), CRC_BYTE(11),
    CRC_BYTE(12), CRC_BYTE(13), CRC_BYTE(14), CRC_BYTE(15)};

uint32_t rw_hash_crc32c(uint32_t crc, const void* data, size_t bytes) {
    const unsigned char* at = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ crc_nibble[crc & 15];
        crc = crc >> 4 ^ crc_nibble[crc & 15];
    }
    return ~crc;
}
