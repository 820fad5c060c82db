#include "solvers/base/hash.h"

#include <pthread.h>
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

// ---- CRC, eight bytes at a time (Kounavis and Berry 2005, "slicing by eight") ----

static uint32_t crc32_table[8][256];
static uint32_t crc32c_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void make_table(uint32_t reflected_polynomial, uint32_t table[8][256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ ((value & 1) != 0 ? reflected_polynomial : 0u);
        }
        table[0][i] = value;
    }
    for (int slice = 1; slice < 8; slice++) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t before = table[slice - 1][i];
            table[slice][i] = (before >> 8) ^ table[0][before & 0xff];
        }
    }
}

static void make_crc_tables(void) {
    make_table(0xedb88320u, crc32_table);
    make_table(0x82f63b78u, crc32c_table);
}

static uint32_t crc_of(const uint32_t table[8][256], uint32_t crc, const void* data,
                       size_t bytes) {
    const unsigned char* at = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4); // little-endian, as every x86-64 machine is
        memcpy(&high, at + 4, 4);
        low ^= crc;
        crc = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^ table[5][(low >> 16) & 0xff] ^
              table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][(high >> 8) & 0xff] ^
              table[1][(high >> 16) & 0xff] ^ table[0][high >> 24];
    }
    for (; bytes > 0; bytes--, at++) {
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}

uint32_t rw_hash_crc32(uint32_t crc, const void* data, size_t bytes) {
    pthread_once(&crc_once, make_crc_tables);
    return crc_of((const uint32_t(*)[256])crc32_table, crc, data, bytes);
}

uint32_t rw_hash_crc32c(uint32_t crc, const void* data, size_t bytes) {
    pthread_once(&crc_once, make_crc_tables);
    return crc_of((const uint32_t(*)[256])crc32c_table, crc, data, bytes);
}
