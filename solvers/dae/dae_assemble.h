// Putting a mechanism together: initial assembly, and setting a joint's coordinates and rates so
// that everything stays assembled. One thread at a time.
#pragma once

#include "solvers/dae/dae_system.h"

// Moves y (loaded afterwards) onto the joints. INVALID_ARGUMENT names the joint with the largest gap
// (path joints[k]) when no position nearby meets them all. A y that meets them to `tolerance` keeps its bits.
rw_status rw_dae_assemble_project(rw_dae_system* system, double* y, double tolerance,
                                  rw_error* error);

// Sets coordinates (and / or rates; NULL: unchanged) of a joint. What hangs on the child, away from
// the parent, moves with it as one body. Where the joint is part of a loop, the loop is closed again
// with the coordinate held, by the smallest motion in the metric of mass. FAILED_PRECONDITION when
// it can't be.
rw_status rw_dae_assemble_set_joint(rw_dae_system* system, double* y, int32_t joint,
                                    const double* coordinate, const double* rate, double tolerance,
                                    rw_arena* scratch, rw_error* error);
