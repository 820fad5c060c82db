// Dynamics of a world's joints in joint rates: mass matrix, Jacobian of a body point, inverse and
// forward dynamics, for either rigid solver. Works on a mechanism compiled for the question, so it
// changes nothing; not for the loop thread when the mechanism is large. The thread that runs the
// world.
#pragma once

#include "solvers/base/arena.h"
#include "solvers/world/world.h"

typedef enum rw_world_dynamics_kind {
    RW_WORLD_DYNAMICS_MASS_MATRIX, // rates x rates
    RW_WORLD_DYNAMICS_JACOBIAN,    // 6 x rates: world velocity of the point, world angular velocity
    RW_WORLD_DYNAMICS_INVERSE,     // rates: efforts, added to the motors'
    RW_WORLD_DYNAMICS_FORWARD,     // rates: accelerations
} rw_world_dynamics_kind;

typedef struct rw_world_dynamics_question {
    rw_world_dynamics_kind kind;
    int32_t body;     // JACOBIAN
    double point[3];  // JACOBIAN: in the body's frame [m]
    rw_doubles input; // INVERSE: accelerations, FORWARD: efforts; empty: zeros
} rw_world_dynamics_question;

typedef struct rw_world_dynamics_answer {
    const char** joints; // one per rate: "NAME", or "NAME.I" where a joint has several
    size_t rate_count;
    double* values;
    size_t value_count;
} rw_world_dynamics_answer;

// Answers at the present state, with the rates of a spanning tree of the joints (dae_query.h). The
// answer lies in `arena`. INVALID_ARGUMENT when the input has not rate_count values;
// FAILED_PRECONDITION in a singular position; RESOURCE_EXHAUSTED.
rw_status rw_world_dynamics_ask(rw_world* world, const rw_world_dynamics_question* question,
                                rw_arena* arena, rw_world_dynamics_answer* answer, rw_error* error);
