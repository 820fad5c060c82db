// Field lists: one table per state struct that drives allocation, growth, copy, hash and snapshot,
// so that adding a field is one line. A state struct is a plain struct of `double*`; row r of a
// field of width w lies at pointer[r * w .. r * w + w - 1]. Counters are stored as doubles, exact.
// One thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/buffer.h"
#include "solvers/base/hash.h"
#include "solvers/base/status.h"

enum { RW_FIELD_HASHED = 1 }; // part of the state hash (caches are not)

typedef struct rw_field {
    const char* name;
    uint32_t width;  // doubles per row
    uint32_t domain; // which row count holds
    uint32_t flags;
    size_t offset; // of the double* in the state struct
} rw_field;

typedef struct rw_field_list {
    const rw_field* fields;
    uint32_t count;
} rw_field_list;

// One line of a list: RW_FIELD_ENTRY(rw_state, body_position, 3, RW_DOMAIN_BODY, RW_FIELD_HASHED)
#define RW_FIELD_ENTRY(type, member, width_, domain_, flags_)                                      \
    {.name = #member, .width = (width_), .domain = (domain_), .flags = (flags_),                   \
     .offset = offsetof(type, member)}

// Makes room for `capacity` rows in every field of `domain`, keeping `rows` rows; new rows are
// zero. RESOURCE_EXHAUSTED leaves the state usable as it was.
rw_status rw_field_reserve(rw_field_list list, rw_alloc* alloc, void* state, uint32_t domain,
                           int64_t rows, int64_t capacity);

// Frees every field.
void rw_field_release(rw_field_list list, rw_alloc* alloc, void* state);

// Removes rows [first, first + count) of `domain`, moving the later ones down.
void rw_field_erase(rw_field_list list, void* state, uint32_t domain, int64_t rows, int64_t first,
                    int64_t count);

// Copies all rows; `counts[domain]` rows each.
void rw_field_copy(rw_field_list list, void* to, const void* from, const int64_t* counts);

// Feeds the hashed fields, in list order.
void rw_field_hash(rw_field_list list, const void* state, const int64_t* counts, rw_hash* hash);

// Appends name, width, row count and values of every field.
rw_status rw_field_write(rw_field_list list, const void* state, const int64_t* counts,
                         rw_buffer* buffer);

// Reads what rw_field_write wrote into an allocated state of the same counts; `*at` moves on.
// DATA_LOSS when the bytes do not fit the list.
rw_status rw_field_read(rw_field_list list, void* state, const int64_t* counts,
                        const unsigned char** at, const unsigned char* end, rw_error* error);

// True when every value is finite; else names the field and row.
int rw_field_is_finite(rw_field_list list, const void* state, const int64_t* counts,
                       const char** field, int64_t* row);
