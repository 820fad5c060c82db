// What the files of the model share: model.c, model_private.c, model_add.c, model_replace.c,
// model_removal.c. Nobody else includes it. One thread at a time, as model.h.
#pragma once

#include "solvers/model/mass_properties.h"
#include "solvers/model/model.h"

#define RW_MODEL_PRIVATE_CAPACITY_MIN 8
#define RW_MODEL_PRIVATE_COUNT_MAX ((1 << 24) - 1) // ids have 24 bits for the slot

// One kind of object as another: every record begins with its id and its description with its
// name, so that ids and names need one code for all kinds.
typedef struct rw_model_private_records {
    int32_t* count;
    int32_t* capacity;
    char** items;
    size_t stride;
    size_t name_offset;
} rw_model_private_records;

rw_model_private_records rw_model_private_table(rw_model* model, rw_kind kind);
char* rw_model_private_record(rw_model_private_records table, int32_t index);

// Frees what hangs on one record.
void rw_model_private_release(rw_model* model, rw_kind kind, int32_t index);

// Makes the array whose pointer lies at `slot` hold `capacity` rows.
rw_status rw_model_private_grow(rw_alloc* alloc, void* slot, size_t row_bytes, int64_t capacity);

rw_status rw_model_private_out_of_memory(rw_error* error, rw_kind kind);

// Lays the rods' rows out again, one behind the other.
void rw_model_private_lay_out_rods(rw_model* model);

// Copies a description without arrays; rotations become unit.
void rw_model_private_copy_plain(rw_kind kind, void* to, const void* from);

// Mass properties of a valid description, as given or of its shapes; and into the bodies' arrays.
rw_status rw_model_private_derive_mass(rw_model* model, const rw_body_desc* desc,
                                       rw_mass_properties* mass, rw_error* error);
void rw_model_private_store_mass(rw_bodies* bodies, int32_t i, rw_body_kind kind,
                                 const rw_mass_properties* mass);

// A reference by name, `field` its path; "" gives -1 (the world, or none). NOT_FOUND.
rw_status rw_model_private_refer(const rw_model* model, rw_kind kind, const char* name,
                                 const char* field, int32_t* index, rw_error* error);

// The node of rod `rod` that `node` or `s` means; `field` is the path of a node out of range.
rw_status rw_model_private_resolve_node(const rw_model* model, int32_t rod, bool has_node,
                                        uint32_t node, double s, const char* field,
                                        int32_t* resolved, rw_error* error);

// A record of a valid description with its points resolved; no id yet.
rw_status rw_model_private_resolve_force(const rw_model* model, const rw_force_desc* desc,
                                         rw_force* force, rw_error* error);
// The name of a force's law as a path has it.
const char* rw_model_private_force_member(rw_force_kind kind);
