#include "solvers/base/arena.h"

#include <stdint.h>
#include <string.h>

#define PIECE_ALIGNMENT 16
#define FIRST_BLOCK_BYTES ((size_t)4096)

struct rw_arena_block {
    rw_arena_block* older;
    size_t capacity_bytes; // behind the header
    size_t used_bytes;
    size_t padding;
};

_Static_assert(sizeof(rw_arena_block) % PIECE_ALIGNMENT == 0, "pieces follow the header");

void rw_arena_init(rw_arena* arena, rw_alloc* alloc) {
    *arena = (rw_arena){.alloc = alloc};
}

static void free_from(rw_arena* arena, rw_arena_block* block) {
    while (block != NULL) {
        rw_arena_block* older = block->older;
        rw_alloc_free(arena->alloc, block);
        block = older;
    }
}

void rw_arena_finish(rw_arena* arena) {
    free_from(arena, arena->block);
    arena->block = NULL;
    arena->used_bytes = 0;
}

void rw_arena_reset(rw_arena* arena) {
    // Blocks grow but near the quota, so the newest is mostly the largest, not always.
    rw_arena_block* kept = NULL;
    for (rw_arena_block* block = arena->block; block != NULL;) {
        rw_arena_block* older = block->older;
        bool is_larger = kept == NULL || block->capacity_bytes > kept->capacity_bytes;
        rw_alloc_free(arena->alloc, is_larger ? kept : block);
        kept = is_larger ? block : kept;
        block = older;
    }
    if (kept != NULL) {
        kept->older = NULL;
        kept->used_bytes = 0;
    }
    arena->block = kept;
    arena->used_bytes = 0;
}

static rw_arena_block* add_block(rw_arena* arena, size_t bytes) {
    size_t capacity = arena->block != NULL ? arena->block->capacity_bytes * 2 : FIRST_BLOCK_BYTES;
    if (capacity < bytes) {
        capacity = bytes;
    }
    rw_arena_block* block = rw_alloc_get(arena->alloc, sizeof *block + capacity);
    if (block == NULL && capacity > bytes) {
        capacity = bytes; // near the quota: take only what is needed
        block = rw_alloc_get(arena->alloc, sizeof *block + capacity);
    }
    if (block != NULL) {
        block->older = arena->block;
        block->capacity_bytes = capacity;
        arena->block = block;
    }
    return block;
}

void* rw_arena_get(rw_arena* arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4) {
        return NULL;
    }
    bytes = (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
    rw_arena_block* block = arena->block;
    if (block == NULL || block->capacity_bytes - block->used_bytes < bytes) {
        block = add_block(arena, bytes);
        if (block == NULL) {
            return NULL;
        }
    }
    void* piece = (char*)(block + 1) + block->used_bytes;
    block->used_bytes += bytes;
    arena->used_bytes += bytes;
    if (arena->used_bytes > arena->peak_bytes) {
        arena->peak_bytes = arena->used_bytes;
    }
    return memset(piece, 0, bytes);
}

void* rw_arena_array(rw_arena* arena, size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
        return NULL;
    }
    return rw_arena_get(arena, bytes);
}
