#include "solvers/base/id_pool.h"

#include "solvers/base/check.h"

#define SLOT_BITS 24
#define SLOT_MAXIMUM ((1 << SLOT_BITS) - 1)

void rw_id_pool_init(rw_id_pool* pool, rw_alloc* alloc) {
    *pool = (rw_id_pool){.alloc = alloc, .first_free = -1};
}

void rw_id_pool_finish(rw_id_pool* pool) {
    rw_alloc_free(pool->alloc, pool->slots);
    rw_id_pool_init(pool, pool->alloc);
}

rw_status rw_id_pool_reserve(rw_id_pool* pool, int32_t count) {
    int64_t needed = (int64_t)pool->live_count + count;
    if (needed > SLOT_MAXIMUM) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    if (needed <= pool->slot_capacity) {
        return RW_STATUS_OK;
    }
    int64_t capacity = (int64_t)pool->slot_capacity * 2;
    capacity = capacity < needed ? needed : capacity;
    capacity = capacity < 16 ? 16 : capacity;
    capacity = capacity > SLOT_MAXIMUM ? SLOT_MAXIMUM : capacity;
    rw_id_slot* slots =
        rw_alloc_resize(pool->alloc, pool->slots, (size_t)capacity * sizeof *slots);
    if (slots == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    pool->slots = slots;
    pool->slot_capacity = (int32_t)capacity;
    return RW_STATUS_OK;
}

rw_id rw_id_pool_add(rw_id_pool* pool, int32_t index) {
    int32_t slot = pool->first_free;
    if (slot >= 0) {
        pool->first_free = pool->slots[slot].next_free;
    } else {
        if (rw_id_pool_reserve(pool, 1) != RW_STATUS_OK) {
            return RW_ID_NONE;
        }
        slot = pool->slot_count++;
        pool->slots[slot].generation = 1;
    }
    pool->slots[slot].index = index;
    pool->slots[slot].next_free = -1;
    pool->live_count++;
    return pool->slots[slot].generation << SLOT_BITS | (rw_id)(slot + 1);
}

static rw_id_slot* slot_of(const rw_id_pool* pool, rw_id id) {
    int32_t slot = (int32_t)(id & SLOT_MAXIMUM) - 1;
    if (slot < 0 || slot >= pool->slot_count) {
        return NULL;
    }
    rw_id_slot* entry = &pool->slots[slot];
    return entry->index >= 0 && entry->generation == id >> SLOT_BITS ? entry : NULL;
}

void rw_id_pool_take_back(rw_id_pool* pool, rw_id id) {
    rw_id_slot* slot = slot_of(pool, id);
    RW_CHECK(slot != NULL);
    int32_t number = (int32_t)(slot - pool->slots);
    slot->index = -1;
    pool->live_count--;
    if (number == pool->slot_count - 1 && slot->generation == 1) {
        pool->slot_count--;
    } else {
        slot->next_free = pool->first_free;
        pool->first_free = number;
    }
}

void rw_id_pool_remove(rw_id_pool* pool, rw_id id) {
    rw_id_slot* slot = slot_of(pool, id);
    RW_CHECK(slot != NULL);
    slot->index = -1;
    slot->generation++;
    slot->next_free = pool->first_free;
    pool->first_free = (int32_t)(slot - pool->slots);
    pool->live_count--;
}

int32_t rw_id_pool_find(const rw_id_pool* pool, rw_id id) {
    const rw_id_slot* slot = slot_of(pool, id);
    return slot != NULL ? slot->index : -1;
}

void rw_id_pool_move(rw_id_pool* pool, rw_id id, int32_t index) {
    rw_id_slot* slot = slot_of(pool, id);
    RW_CHECK(slot != NULL);
    slot->index = index;
}
