// Generational ids: a slot that is used again gets another generation, so a stale id is never
// taken for a new object. One thread at a time (each world has its own pools).
//
//   id = generation (40 bits) << 24 | slot + 1 (24 bits); 0 is no id
#pragma once

#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"

typedef uint64_t rw_id;

#define RW_ID_NONE ((rw_id)0)

typedef struct rw_id_slot {
    uint64_t generation; // of the object in the slot, or of the next one when free
    int32_t index;       // where the object lies now; -1 when free
    int32_t next_free;   // next free slot; -1 at the end
} rw_id_slot;

typedef struct rw_id_pool {
    rw_alloc* alloc; // borrowed
    rw_id_slot* slots;
    int32_t slot_count;    // slots ever used
    int32_t slot_capacity; // slots allocated
    int32_t first_free;    // most recently freed; -1 when none
    int32_t live_count;
} rw_id_pool;

void rw_id_pool_init(rw_id_pool* pool, rw_alloc* alloc);
void rw_id_pool_finish(rw_id_pool* pool);

// Makes sure that the next `count` rw_id_pool_add calls succeed.
rw_status rw_id_pool_reserve(rw_id_pool* pool, int32_t count);

// Gives a new id to the object that lies at `index`. RW_ID_NONE when memory is exhausted or
// 2^24 - 1 objects live.
rw_id rw_id_pool_add(rw_id_pool* pool, int32_t index);

// Takes back the id that rw_id_pool_add gave last, as if it had never been given.
void rw_id_pool_take_back(rw_id_pool* pool, rw_id id);

// Frees a live id; it answers -1 for ever after.
void rw_id_pool_remove(rw_id_pool* pool, rw_id id);

// Where the object lies, or -1 when the id is stale or was never given.
int32_t rw_id_pool_find(const rw_id_pool* pool, rw_id id);

// Says that a live id's object now lies at `index`.
void rw_id_pool_move(rw_id_pool* pool, rw_id id, int32_t index);
