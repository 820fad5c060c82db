// Rigid bodies of the XPBD solver under loads, springs, drag, joints and the reactions of rods: the
// implicit midpoint rule with the Cayley map for free ones, backward Euler for those that joints or
// rods hold. One thread at a time: the one that runs the world.
//
// Per body, with theta = 1/2 (free) or 1 (held):
//
//   v' = v + h (g + F_s / m)              x' = x + h (theta v' + (1 - theta) v)
//   J (w' - w) = h (J wg) x wg + h (I - (h wm)^/2) R' tau_s        wg = (w + w')/2
//   wm = theta w' + (1 - theta) w         q' = q cayley(h wm)
//
// Forces F_s, torques tau_s are those of the stage, from + theta (to - from). Without torque energy
// and world angular momentum are exact to rounding (numerics, seed 000 note 7); the factor
// (I - (h wm)^/2) makes the world impulse of a torque exactly h tau_s. The map costs (h w)^2 / 12 of
// the angle.
#pragma once

#include "solvers/model/solver.h"

typedef struct rw_free_bodies rw_free_bodies;

// Makes the integrator for `model` (borrowed). RESOURCE_EXHAUSTED.
rw_status rw_free_bodies_create(rw_model* model, rw_alloc* alloc, rw_free_bodies** bodies,
                                rw_error* error);
void rw_free_bodies_destroy(rw_free_bodies* bodies);

// Allocates for the model's present bodies and joints and sorts its forces by how they are treated.
rw_status rw_free_bodies_prepare(rw_free_bodies* bodies, const rw_state* state, rw_error* error);

// Moves static and kinematic bodies and writes a first trial of the others, with forces as at
// `from`.
rw_status rw_free_bodies_begin(rw_free_bodies* bodies, rw_step* step);

// Improves the trial: one Newton step on all bodies together, springs and rod responses with their
// tangents, solved by conjugate gradients (a few iterations: the rank of the springs). `done` when
// the correction is below rounding, after the scene's iterations with joints, or at once when
// nothing depends on the trial. FAULTED when it does not converge.
rw_status rw_free_bodies_sweep(rw_free_bodies* bodies, rw_step* step, bool* done);

// Ends the substep: joint coordinates.
rw_status rw_free_bodies_end(rw_free_bodies* bodies, rw_step* step);

// The joints, for their signals. Owned by the bodies.
struct rw_joint_system* rw_free_bodies_joints(rw_free_bodies* bodies);
