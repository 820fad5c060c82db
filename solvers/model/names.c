#include "solvers/model/names.h"

#include <string.h>

#include "solvers/base/check.h"
#include "solvers/base/hash.h"

#define CAPACITY_MIN 16

void rw_names_init(rw_name_table* table, rw_alloc* alloc,
                   const char* (*name_of)(const void* context, rw_id id), const void* context) {
    *table = (rw_name_table){.alloc = alloc, .name_of = name_of, .context = context};
}

void rw_names_finish(rw_name_table* table) {
    rw_alloc_free(table->alloc, table->slots);
    table->slots = NULL;
    table->capacity = 0;
    table->count = 0;
}

static uint64_t hash_of(const char* name) {
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_bytes(&hash, name, strlen(name));
    return rw_hash_value(&hash);
}

static int32_t home_of(const rw_name_table* table, uint64_t hash) {
    return (int32_t)(hash & (uint64_t)(table->capacity - 1));
}

static int32_t next_of(const rw_name_table* table, int32_t slot) {
    return (slot + 1) & (table->capacity - 1);
}

static void put(rw_name_table* table, rw_name_slot entry) {
    int32_t slot = home_of(table, entry.hash);
    while (table->slots[slot].id != RW_ID_NONE) {
        slot = next_of(table, slot);
    }
    table->slots[slot] = entry;
}

rw_status rw_names_reserve(rw_name_table* table, int32_t count) {
    // At most two thirds full, so that probes stay short.
    int64_t needed = ((int64_t)table->count + count) * 3 / 2 + 1;
    if (needed <= table->capacity) {
        return RW_STATUS_OK;
    }
    int64_t capacity = CAPACITY_MIN;
    while (capacity < needed) {
        capacity *= 2;
    }
    if (capacity > INT32_MAX) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_name_slot* slots = rw_alloc_array(table->alloc, (size_t)capacity, sizeof *slots);
    if (slots == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_name_slot* old = table->slots;
    int32_t old_capacity = table->capacity;
    table->slots = slots;
    table->capacity = (int32_t)capacity;
    for (int32_t i = 0; i < old_capacity; i++) {
        if (old[i].id != RW_ID_NONE) {
            put(table, old[i]);
        }
    }
    rw_alloc_free(table->alloc, old);
    return RW_STATUS_OK;
}

void rw_names_add(rw_name_table* table, const char* name, rw_id id) {
    RW_ASSERT(table->count + 1 < table->capacity);
    put(table, (rw_name_slot){.hash = hash_of(name), .id = id});
    table->count++;
}

static int32_t slot_of(const rw_name_table* table, const char* name) {
    if (table->count == 0) {
        return -1;
    }
    uint64_t hash = hash_of(name);
    for (int32_t slot = home_of(table, hash); table->slots[slot].id != RW_ID_NONE;
         slot = next_of(table, slot)) {
        if (table->slots[slot].hash == hash &&
            strcmp(table->name_of(table->context, table->slots[slot].id), name) == 0) {
            return slot;
        }
    }
    return -1;
}

rw_id rw_names_find(const rw_name_table* table, const char* name) {
    int32_t slot = slot_of(table, name);
    return slot >= 0 ? table->slots[slot].id : RW_ID_NONE;
}

void rw_names_remove(rw_name_table* table, const char* name) {
    int32_t hole = slot_of(table, name);
    RW_CHECK(hole >= 0);
    // Closes the gap: a later entry moves into the hole unless it would then lie before its home.
    for (int32_t slot = next_of(table, hole); table->slots[slot].id != RW_ID_NONE;
         slot = next_of(table, slot)) {
        int32_t mask = table->capacity - 1;
        int32_t home = home_of(table, table->slots[slot].hash);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            table->slots[hole] = table->slots[slot];
            hole = slot;
        }
    }
    table->slots[hole].id = RW_ID_NONE;
    table->count--;
}
