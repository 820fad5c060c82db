#include "solvers/base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "solvers/base/check.h"

// Before each block lies its header, padded so that the block keeps its alignment.
#define BLOCK_ALIGNMENT 64
// From here on the system's pages are taken as they come, zero and untouched: gigabytes that somebody
// announces cost nothing before they are there.
#define LARGE_BYTES ((size_t)1 << 20)

typedef struct block_header {
    size_t bytes;
    void* start; // what free takes
} block_header;

_Static_assert(sizeof(block_header) <= BLOCK_ALIGNMENT, "the header must fit its padding");

// Relaxed everywhere: the counters order nothing, they only count.
static _Atomic int64_t fail_countdown;

static bool must_fail(void) {
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0) {
        return false;
    }
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

static block_header* header_of(void* pointer) {
    return (block_header*)(void*)((char*)pointer - BLOCK_ALIGNMENT);
}

void rw_alloc_init(rw_alloc* alloc, size_t limit_bytes) {
    atomic_init(&alloc->used_bytes, 0);
    atomic_init(&alloc->peak_bytes, 0);
    atomic_init(&alloc->call_count, 0);
    alloc->limit_bytes = limit_bytes;
}

void rw_alloc_finish(rw_alloc* alloc) {
    RW_CHECK(atomic_load_explicit(&alloc->used_bytes, memory_order_relaxed) == 0);
}

// Zeroed memory for a header and `rounded` bytes, aligned; NULL when there is none.
static block_header* get_block(size_t rounded) {
    if (rounded < LARGE_BYTES) {
        block_header* header = aligned_alloc(BLOCK_ALIGNMENT, BLOCK_ALIGNMENT + rounded);
        if (header != NULL) {
            memset(header, 0, BLOCK_ALIGNMENT + rounded);
            header->start = header;
        }
        return header;
    }
    char* start = calloc(1, 2 * BLOCK_ALIGNMENT + rounded);
    if (start == NULL) {
        return NULL;
    }
    size_t gap = (BLOCK_ALIGNMENT - (uintptr_t)start % BLOCK_ALIGNMENT) % BLOCK_ALIGNMENT;
    block_header* header = (block_header*)(void*)(start + gap);
    header->start = start;
    return header;
}

void* rw_alloc_get(rw_alloc* alloc, size_t bytes) {
    if (must_fail() || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    size_t before = atomic_fetch_add_explicit(&alloc->used_bytes, bytes, memory_order_relaxed);
    if (alloc->limit_bytes != 0 &&
        (before > alloc->limit_bytes || bytes > alloc->limit_bytes - before)) {
        atomic_fetch_sub_explicit(&alloc->used_bytes, bytes, memory_order_relaxed);
        return NULL;
    }
    size_t rounded = (bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    block_header* header = get_block(rounded);
    if (header == NULL) {
        atomic_fetch_sub_explicit(&alloc->used_bytes, bytes, memory_order_relaxed);
        return NULL;
    }
    header->bytes = bytes;

    size_t used = before + bytes;
    size_t peak = atomic_load_explicit(&alloc->peak_bytes, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak_explicit(
                              &alloc->peak_bytes, &peak, used, memory_order_relaxed,
                              memory_order_relaxed)) {
    }
    atomic_fetch_add_explicit(&alloc->call_count, 1, memory_order_relaxed);
    return (char*)header + BLOCK_ALIGNMENT;
}

void* rw_alloc_array(rw_alloc* alloc, size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
        return NULL;
    }
    return rw_alloc_get(alloc, bytes);
}

void* rw_alloc_resize(rw_alloc* alloc, void* pointer, size_t bytes) {
    void* block = rw_alloc_get(alloc, bytes);
    if (block == NULL || pointer == NULL) {
        return block;
    }
    size_t old_bytes = rw_alloc_size(pointer);
    memcpy(block, pointer, old_bytes < bytes ? old_bytes : bytes);
    rw_alloc_free(alloc, pointer);
    return block;
}

void rw_alloc_free(rw_alloc* alloc, void* pointer) {
    if (pointer == NULL) {
        return;
    }
    block_header* header = header_of(pointer);
    size_t before =
        atomic_fetch_sub_explicit(&alloc->used_bytes, header->bytes, memory_order_relaxed);
    RW_ASSERT(before >= header->bytes);
    (void)before;
    free(header->start);
}

size_t rw_alloc_size(const void* pointer) {
    return ((const block_header*)(const void*)((const char*)pointer - BLOCK_ALIGNMENT))->bytes;
}

void rw_alloc_fail_after(int64_t countdown) {
    atomic_store_explicit(&fail_countdown, countdown, memory_order_relaxed);
}
