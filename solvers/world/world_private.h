// What a world is made of; for the files of solvers/world alone. Called by the thread that runs the
// world.
#pragma once

#include "solvers/world/world.h"

typedef struct rw_world_solvers {
    rw_solver rigid, rods;
} rw_world_solvers;

struct rw_world {
    rw_alloc* alloc;           // borrowed
    rw_parallel* parallel;     // borrowed, may be NULL
    const atomic_bool* cancel; // borrowed, may be NULL
    rw_model model;
    rw_world_solvers solvers;

    // Motion. `state[good]` is the last good state. A step of one substep goes from it into
    // another; more substeps use the third in turn, so that the good one is never written.
    rw_state state[3];
    int good;
    int64_t counts[RW_DOMAIN_COUNT];
    int64_t capacity[RW_DOMAIN_COUNT];

    // Private state of the solvers from before the running step (their own lists).
    rw_buffer undo[2];

    // time = time_base_s + (step - step_base) * time_step: exact for a constant step.
    int64_t step, step_base;
    double time_base_s;
    uint64_t epoch;

    rw_drive drive[2]; // start and end of the running substep
    double* body_force;
    double* body_torque;
    double* node_force;
    double* node_torque;
    rw_body_response* responses;
    rw_body_pair* pairs;
    int32_t pair_capacity;

    uint64_t prepared_topology, prepared_parameters;
    uint32_t prepared_substeps;
    bool rods_are_prepared; // the rod solver has seen all rods
    uint8_t* node_is_held;  // by a rigid attachment (nodes); valid while holds_are_known
    bool holds_are_known;
    bool needs_assembly;    // joints were created that the bodies may not meet yet
    rw_fault fault;
};

// An empty world without solvers, or NULL.
rw_world* rw_world_private_new(const rw_world_config* config, rw_error* error);

// Chooses and creates the solvers that the model's options name. On failure the world keeps those that
// it has.
rw_status rw_world_private_make_solvers(rw_world* world, rw_error* error);

// Makes room for `count` more rows of a domain in every state. RESOURCE_EXHAUSTED.
rw_status rw_world_private_reserve_rows(rw_world* world, rw_domain domain, int64_t count,
                                        rw_error* error);

// Projects the motion onto new joints. At load and at a step only: a query prepares too, and must not
// change what later steps do.
rw_status rw_world_private_assemble(rw_world* world, rw_error* error);

// The drive at the present time; prepares nothing (gravity and wind are always valid).
const rw_drive* rw_world_private_present_drive(rw_world* world);
