// The views through which messages hold what has no fixed size: arrays of numbers, bytes, and lists
// of messages or strings. Decoding copies nothing: a view points into the bytes that were decoded
// and is valid as long as they are. Encoding reads from where the view points. Any thread; a view
// has no state but itself.
//
//   decoding  array.data ------------> | key len | 8 bytes | 8 bytes | ... |      any alignment
//             list.first ------------> | key len | element | key len | element |  list.end
//   encoding  list.items -> array of structs, strings or encoded elements; or list.fill, one by one
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pb.h>

#include "solvers/base/arena.h"

// Bytes, or the text of a string element (not NUL-terminated).
typedef struct rw_wire_bytes {
    const uint8_t* data;
    size_t size;
} rw_wire_bytes;

// Little-endian numbers, 8 bytes each (double, fixed64) or 4 (fixed32) as the field is declared.
// `data` has ANY alignment: read it with the functions below.
typedef struct rw_wire_array {
    const uint8_t* data;
    uint32_t count;
} rw_wire_array;

// Writes element `index` into the struct `item` (zeroed). False ends the encoding with an error.
typedef bool (*rw_wire_fill)(void* context, uint32_t index, void* item);

// A repeated message or string. Decoded lists are walked with a cursor. To encode one, give `count`
// and exactly one of: `items` (structs `stride` bytes apart), `strings` (NUL-terminated), `encoded`
// (elements already encoded, without key and length), `fill` (with `stride`, the struct's size); or
// leave a decoded list as it is and its bytes are copied.
typedef struct rw_wire_list {
    uint32_t count;
    uint32_t stride;     // bytes of one item
    const uint8_t* first; // decoded: payload of the first element
    const uint8_t* end;   // decoded: behind the last element
    uint32_t first_size;
    uint32_t tag;
    const void* items;
    const char* const* strings;
    const rw_wire_bytes* encoded;
    rw_wire_fill fill;
    void* context;
} rw_wire_list;

// ---- Reading arrays ----

// Copies all numbers to `out` (count of them).
void rw_wire_copy_f64(rw_wire_array array, double* out);

// Number `index` < count.
double rw_wire_f64(rw_wire_array array, uint32_t index);
uint64_t rw_wire_u64(rw_wire_array array, uint32_t index);
uint32_t rw_wire_u32(rw_wire_array array, uint32_t index);

// The numbers where they lie when they are aligned, else copied into `arena`. NULL when the arena is
// exhausted; a valid pointer for an empty array.
const double* rw_wire_view_f64(rw_wire_array array, rw_arena* arena);
const uint32_t* rw_wire_view_u32(rw_wire_array array, rw_arena* arena);

// ---- Walking a decoded list ----

typedef struct rw_wire_cursor {
    const uint8_t* at;  // payload of the next element
    const uint8_t* end; // of the list
    uint32_t size;      // of the next element
    uint32_t tag;
    uint32_t left;  // elements not yet given
    uint32_t index; // of the next element
} rw_wire_cursor;

rw_wire_cursor rw_wire_begin(const rw_wire_list* list);

// Gives the next element's bytes; false behind the last one. `cursor->index` is then one more than
// the element's index.
bool rw_wire_next(rw_wire_cursor* cursor, rw_wire_bytes* element);

// Gives the next element decoded into `message`, a struct of `size` bytes of the type `fields`
// describes, e.g. rw_wire_next_message(&cursor, rw_pb_Body_fields, &body, sizeof body). False behind
// the last one. The bytes were checked with the message that holds the list.
bool rw_wire_next_message(rw_wire_cursor* cursor, const pb_msgdesc_t* fields, void* message,
                          size_t size);

// Copies a string element with its NUL into `text`, cut at `capacity` - 1 bytes.
void rw_wire_copy_text(rw_wire_bytes element, char* text, size_t capacity);

// ---- Making views to encode ----

// The memory is borrowed until the encoding is done.
rw_wire_array rw_wire_from_f64(const double* values, size_t count);
rw_wire_array rw_wire_from_u64(const uint64_t* values, size_t count);
rw_wire_array rw_wire_from_u32(const uint32_t* values, size_t count);
rw_wire_list rw_wire_from_strings(const char* const* strings, size_t count);
rw_wire_list rw_wire_from_encoded(const rw_wire_bytes* elements, size_t count);
rw_wire_list rw_wire_from_fill(rw_wire_fill fill, void* context, size_t item_bytes, size_t count);

// An array of structs: RW_WIRE_FROM_ITEMS(bodies, body_count).
#define RW_WIRE_FROM_ITEMS(items_, count_)                                                         \
    ((rw_wire_list){.count = (uint32_t)(count_), .stride = sizeof *(items_), .items = (items_)})

// nanopb's field callback for all of the above. Not called by hand.
bool rw_wire_field(pb_istream_t* in, pb_ostream_t* out, const pb_field_t* field);
