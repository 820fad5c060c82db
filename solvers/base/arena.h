// A bump arena: many small pieces with one lifetime, freed together. One thread at a time; the
// blocks are charged to the rw_alloc handed over at init.
#pragma once

#include <stddef.h>

#include "solvers/base/alloc.h"

typedef struct rw_arena_block rw_arena_block;

typedef struct rw_arena {
    rw_alloc* alloc;       // borrowed
    rw_arena_block* block; // newest block; older ones hang behind it
    size_t used_bytes;     // handed out since init or reset
    size_t peak_bytes;     // highest `used_bytes`
} rw_arena;

// Starts an empty arena; nothing is allocated yet.
void rw_arena_init(rw_arena* arena, rw_alloc* alloc);

// Frees every block.
void rw_arena_finish(rw_arena* arena);

// Forgets all pieces but keeps the largest block, so that a warmed-up user allocates no more.
void rw_arena_reset(rw_arena* arena);

// Returns `bytes` zeroed bytes aligned to 16, or NULL when the account is exhausted.
void* rw_arena_get(rw_arena* arena, size_t bytes);

// As rw_arena_get for `count` items; NULL when the product overflows.
void* rw_arena_array(rw_arena* arena, size_t count, size_t item_bytes);
