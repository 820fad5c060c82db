// Setting joint coordinates and rates from outside: the child's whole subtree is moved as one rigid
// piece, so the mechanism stays assembled. The thread that runs the world.
#pragma once

#include "solvers/model/joint_geometry.h"
#include "solvers/model/model.h"
#include "solvers/model/state.h"

// Moves every body that hangs on the child of `joint` (without passing the joint) so that the joint
// has `coordinate` and `rate` (either may be NULL: unchanged). `marks` is a scratch array of one
// byte per body. FAILED_PRECONDITION when the joint closes a loop, or when a body that would have
// to move is not dynamic: then no single piece can be moved.
rw_status rw_joint_placement_set(const rw_model* model, const rw_joint_geometry* geometry,
                                 int32_t joint, const double* coordinate, const double* rate,
                                 uint8_t* marks, rw_state* state, rw_error* error);
