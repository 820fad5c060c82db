// Names to ids: one table per kind of object. Open addressing with linear probing; a table's
// contents depend on the names alone, and nothing ever iterates over it, so it can't touch
// reproducibility. Names themselves stay in the records. One thread at a time.
#pragma once

#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/id_pool.h"
#include "solvers/base/status.h"

typedef struct rw_name_slot {
    uint64_t hash; // of the name
    rw_id id;      // RW_ID_NONE: empty
} rw_name_slot;

typedef struct rw_name_table {
    rw_alloc* alloc; // borrowed
    rw_name_slot* slots;
    int32_t capacity; // a power of two, or 0
    int32_t count;
    // The name of a live id: equal hashes are compared by it.
    const char* (*name_of)(const void* context, rw_id id);
    const void* context;
} rw_name_table;

// Starts an empty table; nothing is allocated yet.
void rw_names_init(rw_name_table* table, rw_alloc* alloc,
                   const char* (*name_of)(const void* context, rw_id id), const void* context);
void rw_names_finish(rw_name_table* table);

// Makes sure that the next `count` rw_names_add calls succeed. RESOURCE_EXHAUSTED.
rw_status rw_names_reserve(rw_name_table* table, int32_t count);

// Enters a name that is not in the table; room must have been reserved.
void rw_names_add(rw_name_table* table, const char* name, rw_id id);

// The id of a name, or RW_ID_NONE.
rw_id rw_names_find(const rw_name_table* table, const char* name);

// Takes out a name that is in the table.
void rw_names_remove(rw_name_table* table, const char* name);
