// The counted allocator. Every allocation of the house is charged to an rw_alloc with a limit: a
// session's quota. Any thread; the counters are atomic so that the loop may read them while a
// worker allocates.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rw_alloc {
    _Atomic size_t used_bytes;   // charged now
    _Atomic size_t peak_bytes;   // highest `used_bytes` so far
    _Atomic uint64_t call_count; // successful allocations so far; a warmed-up step adds none
    size_t limit_bytes;          // 0 = no limit
} rw_alloc;

// Starts an account with nothing charged. `limit_bytes` 0 means no limit.
void rw_alloc_init(rw_alloc* alloc, size_t limit_bytes);

// Asserts that everything was given back.
void rw_alloc_finish(rw_alloc* alloc);

// Returns `bytes` zeroed bytes aligned to 64, charged to `alloc`, or NULL when the limit or the
// machine is exhausted. `bytes` 0 returns a valid unique pointer. Free with rw_alloc_free.
void* rw_alloc_get(rw_alloc* alloc, size_t bytes);

// As rw_alloc_get for `count` items of `item_bytes`; NULL when the product overflows.
void* rw_alloc_array(rw_alloc* alloc, size_t count, size_t item_bytes);

// Returns a block of `bytes` with the old contents (as much as fits, the rest zeroed) and frees the
// old one; NULL leaves the old block as it was. `pointer` may be NULL.
void* rw_alloc_resize(rw_alloc* alloc, void* pointer, size_t bytes);

// Gives a block back. NULL is accepted.
void rw_alloc_free(rw_alloc* alloc, void* pointer);

// The size asked for when the block was allocated.
size_t rw_alloc_size(const void* pointer);

// Test hook: the `countdown`-th allocation from now of the whole process fails (1 = the next);
// 0 switches the hook off. Not for production code.
void rw_alloc_fail_after(int64_t countdown);
