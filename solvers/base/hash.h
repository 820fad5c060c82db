// The state hash: a 64-bit streaming hash whose value depends on the values alone, not on padding,
// the sign of zero or the machine. Any thread; a state is its owner's.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct rw_hash {
    uint64_t state;
    uint64_t count; // words taken so far
} rw_hash;

void rw_hash_init(rw_hash* hash);

// Takes `count` doubles; -0 counts as 0, every NaN as one NaN.
void rw_hash_doubles(rw_hash* hash, const double* values, size_t count);

// Takes one integer.
void rw_hash_word(rw_hash* hash, uint64_t word);

// Takes bytes (names) with their length.
void rw_hash_bytes(rw_hash* hash, const void* data, size_t bytes);

// The hash of all that was taken.
uint64_t rw_hash_value(const rw_hash* hash);

// CRC-32 of IEEE 802.3 (zlib's crc32), continued from `crc` (0 at the start): what the protocol
// promises for uploads and downloads.
uint32_t rw_hash_crc32(uint32_t crc, const void* data, size_t bytes);

// CRC-32C (Castagnoli), likewise: the checksum of snapshots.
uint32_t rw_hash_crc32c(uint32_t crc, const void* data, size_t bytes);
