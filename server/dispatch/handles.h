// Handles of Observe and Actuate: prepared lists of signals to read and of inputs to write. They lie
// in a session, belong to the client that asked for them, and die with its attachment or with the
// topology they were made for. The session's actor makes and
// uses them; the loop thread may ask for widths.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/run.pb.h"
#include "solvers/base/id_pool.h"
#include "solvers/world/world.h"

typedef struct rw_handles rw_handles;

typedef enum rw_handles_input {
    RW_HANDLES_GRAVITY,
    RW_HANDLES_WIND,
    RW_HANDLES_JOINT,
    RW_HANDLES_ATTACHMENT,
    RW_HANDLES_BODY,
    RW_HANDLES_FORCE,
    RW_HANDLES_WRENCH,
} rw_handles_input;

// One target of Actuate in the row of inputs.
typedef struct rw_handles_entry {
    rw_handles_input input;
    int32_t object; // index of the kind
    int32_t offset;
    int32_t width;
} rw_handles_entry;

typedef struct rw_handle {
    uint64_t id;
    uint64_t owner; // client id
    bool is_actuate;
    uint64_t topology_revision;
    int32_t width;
    rw_signal_set signals;     // observe
    rw_handles_entry* entries; // actuate
    int32_t entry_count, entry_capacity;
} rw_handle;

// Makes an empty set. NULL when memory is exhausted.
rw_handles* rw_handles_create(rw_alloc* alloc);
void rw_handles_destroy(rw_handles* handles);

// Drops all handles (the world is replaced). `world` may be gone already.
void rw_handles_clear(rw_handles* handles);

// Resolves signal globs for the client `owner`. Errors carry `signals[i]`.
rw_status rw_handles_observe(rw_handles* handles, rw_world* world, uint64_t owner,
                             const char* const* globs, size_t count, rw_handle** handle,
                             rw_error* error);

// Resolves targets and globs of inputs. Errors carry `targets[i]`.
rw_status rw_handles_actuate(rw_handles* handles, rw_world* world, uint64_t owner,
                             const char* const* globs, size_t count, rw_handle** handle,
                             rw_error* error);

// A living handle of the kind asked for. NOT_FOUND names `path`, also when the topology changed.
rw_status rw_handles_find(rw_handles* handles, const rw_world* world, uint64_t id, bool is_actuate,
                          const char* path, rw_handle** handle, rw_error* error);

// Frees a handle of `owner`. NOT_FOUND for those of others.
rw_status rw_handles_release(rw_handles* handles, uint64_t id, uint64_t owner, rw_error* error);

// Frees all handles of a client that leaves.
void rw_handles_release_all(rw_handles* handles, uint64_t owner);

// Checks a row of inputs (magnitudes, unit quaternions, what a motor takes) without changing anything.
// Errors carry `inputs[i]`, counted from `first`.
rw_status rw_handles_check(const rw_handle* handle, const rw_world* world, const double* row,
                           size_t first, rw_error* error);

// Writes a checked row into the world; wrenches act for `steps` steps. Allocates nothing once warm.
rw_status rw_handles_apply(const rw_handle* handle, rw_world* world, const double* row,
                           int64_t steps, rw_error* error);

// The values in force now (wrenches: 0).
void rw_handles_read(const rw_handle* handle, rw_world* world, double* row);

// Name, unit and frame of an entry, for the layout table.
void rw_handles_describe(const rw_handle* handle, rw_world* world, int32_t entry,
                         rw_pb_LayoutEntry* out);

// Width of a handle's row, -1 when there is none. Any thread.
int32_t rw_handles_width(rw_handles* handles, uint64_t id);
