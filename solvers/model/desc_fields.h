// Tables of every description's fields: one line per field drives the deep copy, the snapshot's
// bytes and the normalisation of rotations, so that adding a field is one line here beside its
// member in scene.h. Constant data and pure functions; any thread.
#pragma once

#include <stdbool.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"
#include "solvers/model/scene.h"

typedef enum rw_desc_type {
    RW_DESC_TEXT,      // char[count], NUL inside
    RW_DESC_BOOL,      // bool
    RW_DESC_ENUM,      // an enum of values 0 to count - 1
    RW_DESC_U32,       // uint32_t
    RW_DESC_F64,       // double[count]
    RW_DESC_ROTATION,  // double[4], unit
    RW_DESC_DOUBLES,   // rw_doubles
    RW_DESC_ROTATIONS, // rw_doubles, rows of unit quaternions
    RW_DESC_UINTS,     // rw_uints
    RW_DESC_SIZE,      // size_t, at most count
} rw_desc_type;

typedef struct rw_desc_field {
    const char* name; // as the member is called
    rw_desc_type type;
    uint32_t count;
    size_t offset;
} rw_desc_field;

typedef struct rw_desc_fields {
    const rw_desc_field* fields;
    uint32_t count;
    size_t struct_bytes;
} rw_desc_fields;

// The fields of rw_body_desc (without its shapes), rw_joint_desc, ...
rw_desc_fields rw_desc_fields_of(rw_kind kind);
// The fields of rw_shape_desc.
rw_desc_fields rw_desc_fields_of_shape(void);
// The scene-wide fields of rw_scene: name, gravity, wind, time_step, substeps, solver.
rw_desc_fields rw_desc_fields_of_options(void);

// Copies a valid description of `kind` with all its arrays, makes rotations unit, and gives the
// block that holds the arrays in `owned` (NULL when there are none; free with rw_alloc_free).
// `extra_bytes` more lie at `*extra` inside the block. RESOURCE_EXHAUSTED.
rw_status rw_desc_fields_copy(rw_kind kind, void* to, const void* from, rw_alloc* alloc,
                              size_t extra_bytes, void** owned, void** extra);

// True when two descriptions of `kind` view the very same arrays.
bool rw_desc_fields_share_arrays(rw_kind kind, const void* a, const void* b);
