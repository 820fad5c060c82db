// A world: one model, its motion, the solvers that move it. This is what a session runs and the
// only door through which the server reaches the physics. One thread at a time (the session's
// actor); nothing here blocks or does I/O. Every call that changes something is all-or-nothing.
#pragma once

#include <stdatomic.h>

#include "solvers/base/arena.h"
#include "solvers/base/buffer.h"
#include "solvers/model/model.h"
#include "solvers/model/solver.h"

typedef struct rw_world rw_world;

typedef struct rw_world_config {
    rw_alloc* alloc;            // the session's quota; borrowed
    rw_parallel* parallel;      // may be NULL: serial
    const atomic_bool* cancel;  // may be NULL; polled inside a step
} rw_world_config;

// ---- Life ----

// Makes an empty world with the scene defaults. RESOURCE_EXHAUSTED.
rw_status rw_world_create(const rw_world_config* config, rw_world** world, rw_error* error);
void rw_world_destroy(rw_world* world);

// Makes a world from a whole scene. Errors carry the path within the scene ("rods[3].density").
rw_status rw_world_create_from_scene(const rw_world_config* config, const rw_scene* scene,
                                     rw_world** world, rw_error* error);

// The description of the world as it would be loaded: as created, with Create*, Remove* and Set* of
// parameters applied; motion is not part of it (snapshots are). Views are valid until the next
// change. `scene` arrays are built in `arena`.
rw_status rw_world_describe(const rw_world* world, rw_arena* arena, rw_scene* scene,
                            rw_error* error);

// ---- Objects ----

rw_status rw_world_create_body(rw_world* world, const rw_body_desc* desc, rw_id* id, rw_error* e);
rw_status rw_world_create_joint(rw_world* world, const rw_joint_desc* desc, rw_id* id, rw_error* e);
rw_status rw_world_create_coupling(rw_world* world, const rw_coupling_desc* desc, rw_id* id,
                                   rw_error* error);
rw_status rw_world_create_rod(rw_world* world, const rw_rod_desc* desc, rw_id* id, rw_error* error);
rw_status rw_world_create_attachment(rw_world* world, const rw_attachment_desc* desc, rw_id* id,
                                     rw_error* error);
rw_status rw_world_create_force(rw_world* world, const rw_force_desc* desc, rw_id* id, rw_error* e);
rw_status rw_world_create_input(rw_world* world, const rw_input_desc* desc, rw_id* id, rw_error* e);

// Removes an object. Without `cascade`, FAILED_PRECONDITION names the dependents; with it they go
// too.
rw_status rw_world_remove(rw_world* world, rw_kind kind, int32_t index, bool cascade,
                          rw_error* error);

// Index of an object by id (0 = by name). NOT_FOUND names what was asked for.
rw_status rw_world_find(const rw_world* world, rw_kind kind, rw_id id, const char* name,
                        int32_t* index, rw_error* error);

// The model, for reading: counts, names, records.
const rw_model* rw_world_model(const rw_world* world);
// The last good state, for reading.
const rw_state* rw_world_state(const rw_world* world);

// ---- Set* : visible to the next query; errors carry the field's path ----

typedef struct rw_body_set {
    bool has_position, has_rotation, has_linear_velocity, has_angular_velocity;
    bool has_mass, has_inertia, has_center_of_mass, has_friction, has_restitution;
    double position[3], rotation[4], linear_velocity[3], angular_velocity[3];
    double mass, inertia[6], center_of_mass[3], friction, restitution;
} rw_body_set;

typedef struct rw_joint_set {
    rw_doubles coordinate, rate; // count 0: unchanged
    const rw_motor_desc* motor;  // NULL: unchanged
    rw_doubles motor_target;     // count 0: unchanged; the control loop's call
    bool has_damping, has_compliance, has_lower_limit, has_upper_limit;
    double damping, compliance, lower_limit, upper_limit;
} rw_joint_set;

typedef struct rw_rod_set {
    bool has_density, has_young_modulus, has_poisson_ratio, has_damping, has_mass_damping, has_drag;
    bool has_friction, has_rest_length, has_stiffness;
    double density, young_modulus, poisson_ratio, damping, mass_damping, drag;
    double friction, rest_length;
    double stiffness[6]; // ea ga1 ga2 ei1 ei2 gj
    // Borrowed views; count 0: unchanged. The graph's only for graph rods, of unchanged length.
    rw_doubles rest_curvature; // (3) or (elements x 3)
    rw_doubles segment_stiffness, segment_rest_lengths, bend_stiffness, bend_rest_rotations;
    rw_doubles node_positions, node_velocities; // (n x 3): the motion, not a parameter
} rw_rod_set;

typedef struct rw_attachment_set {
    bool has_position, has_rotation; // the held frame, in the body's frame or the world
    double position[3], rotation[4];
} rw_attachment_set;

typedef struct rw_force_set {
    bool has_force, has_torque;                       // load
    bool has_stiffness, has_damping, has_rest_length; // spring-damper
    bool has_linear, has_quadratic, has_angular;      // drag
    double force[3], torque[3], stiffness, damping, rest_length, linear, quadratic, angular;
} rw_force_set;

typedef struct rw_world_set {
    bool has_gravity, has_wind, has_time_step, has_substeps, has_solver;
    double gravity[3], wind[3], time_step;
    uint32_t substeps;
    rw_solver_options solver; // tolerances and iterations may change; the solver kinds may not
} rw_world_set;

rw_status rw_world_set_body(rw_world* world, int32_t body, const rw_body_set* set, rw_error* error);
rw_status rw_world_set_joint(rw_world* world, int32_t joint, const rw_joint_set* set, rw_error* e);
rw_status rw_world_set_rod(rw_world* world, int32_t rod, const rw_rod_set* set, rw_error* error);
rw_status rw_world_set_attachment(rw_world* world, int32_t attachment,
                                  const rw_attachment_set* set, rw_error* error);
rw_status rw_world_set_force(rw_world* world, int32_t force, const rw_force_set* set, rw_error* e);
rw_status rw_world_set_options(rw_world* world, const rw_world_set* set, rw_error* error);

// Adds a wrench to a body or rod point for `wrench->steps_left` steps (-1: until changed; 0: does
// nothing). Several add up. rw_world_clear_wrenches removes the lasting ones on the same target (all wrenches of all
// targets when body and rod are -1).
rw_status rw_world_apply_wrench(rw_world* world, const rw_applied_wrench* wrench, rw_error* error);
// What rw_world_apply_wrench would say about the numbers, changing nothing.
rw_status rw_world_check_wrench(const rw_applied_wrench* wrench, rw_error* error);
void rw_world_clear_wrenches(rw_world* world, int32_t body, int32_t rod);

// ---- Stepping ----

// Advances by one `time_step`. FAULTED keeps the last good state and is answered for ever after
// (until Restore); CANCELLED leaves the state as it was.
rw_status rw_world_step(rw_world* world, rw_error* error);

double rw_world_time(const rw_world* world);
int64_t rw_world_step_count(const rw_world* world);
// Counts topology changes, Restore and Fork: a new epoch begins a new key frame.
uint64_t rw_world_epoch(const rw_world* world);
// Begins a new epoch, not below `at_least`: the session continues its own count over a Restore.
void rw_world_begin_epoch(rw_world* world, uint64_t at_least);
bool rw_world_is_faulted(const rw_world* world);
const rw_fault* rw_world_fault(const rw_world* world);
// True when the next step has to prepare first (slow: not for the loop thread).
bool rw_world_needs_prepare(const rw_world* world);
// Prepares now, so that the following step allocates nothing.
rw_status rw_world_prepare(rw_world* world, rw_error* error);

// ---- Signals (the table is in signal.c) ----

typedef struct rw_signal {
    char name[2 * RW_NAME_CAPACITY + 32];
    const char* unit;  // "m", "rad/s", ...
    const char* frame; // "world", "body", "material", "joint", ""
    int32_t kind;      // which reader
    int32_t object;    // index of the object
    int32_t part;      // node or element
    double s;          // at/S
    int32_t offset;    // in the packed output
    int32_t width;     // doubles
} rw_signal;

typedef struct rw_signal_set {
    rw_signal* items;
    int32_t count;
    int32_t width;           // sum of the widths
    uint64_t topology_revision; // valid only for this one
} rw_signal_set;

// Resolves globs ("joint/*/coordinate"; `*` matches one part) in order; each glob must match at
// least one signal (NOT_FOUND, path `signals[i]`). A glob's matches come in creation order.
// The set is allocated from the world's account; free with rw_world_release_signals.
rw_status rw_world_resolve_signals(rw_world* world, const char* const* globs, size_t glob_count,
                                   rw_signal_set* set, rw_error* error);
void rw_world_release_signals(rw_world* world, rw_signal_set* set);

// Writes set->width doubles. FAILED_PRECONDITION when the topology changed since.
rw_status rw_world_read_signals(rw_world* world, const rw_signal_set* set, double* values,
                                rw_error* error);

typedef struct rw_world_energy {
    double kinetic, gravity, elastic, total; // [J]
} rw_world_energy;

// Both prepare a changed world first.
rw_status rw_world_get_energy(rw_world* world, rw_world_energy* energy, rw_error* error);
rw_status rw_world_get_momentum(rw_world* world, double linear[3], double angular[3],
                                rw_error* error);

// The hash of the whole state: the model's values, the motion, the solvers' private state, time,
// step and id counters, in creation order, without caches.
rw_status rw_world_hash(rw_world* world, uint64_t* value, rw_error* error);

// Frame of a rod's node, node-to-world, for streams.
void rw_world_node_rotation(const rw_world* world, int32_t rod, int32_t node, double rotation[4]);

// ---- Snapshots ----

// Appends everything that later steps depend on: portable, versioned, checksummed bytes.
rw_status rw_world_snapshot(rw_world* world, rw_buffer* bytes, rw_error* error);

// Makes a world from snapshot bytes; it continues bit for bit. DATA_LOSS when they are damaged or of
// another version.
rw_status rw_world_create_from_snapshot(const rw_world_config* config, const void* bytes,
                                        size_t count, rw_world** world, rw_error* error);
