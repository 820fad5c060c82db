// The stiff part of a mechanism, made implicit: the KKT system
//
//     (M + c D + c^2 K) du + J' mu = b,   J du = g
//
// where D and K are the damping and stiffness of springs, motors, active limits, joint damping and
// compliant joints along their own rows. Each of them is one more constraint node with compliance
// 1/(c d + c^2 k), so the matrix stays sparse and quasi-definite. BDF solves its Newton steps with
// it. One thread at a time; nothing is allocated after rw_dae_stiff_init.
#pragma once

#include "solvers/dae/dae_system.h"

typedef struct rw_dae_stiff_node rw_dae_stiff_node;

typedef struct rw_dae_stiff {
    rw_dae_system* system; // borrowed
    rw_kkt* kkt;           // owned
    int32_t node_count;
    rw_dae_stiff_node* nodes;
    double* regularisation;
    double *body, *row; // right-hand sides and solutions
} rw_dae_stiff;

rw_status rw_dae_stiff_init(rw_dae_stiff* self, rw_dae_system* system, rw_alloc* alloc,
                            rw_arena* arena);
void rw_dae_stiff_finish(rw_dae_stiff* self);

// True when the model has stiff parts at present: springs, motors with gains, limits, damping, soft
// joints.
bool rw_dae_stiff_any(const rw_dae_stiff* self);

// Factors the matrix of `c` [s] at the loaded state, whose accelerations were solved (so that the
// system's rows, rates and efforts are those of this state).
rw_status rw_dae_stiff_factor(rw_dae_stiff* self, double c);

// One approximate Newton correction of y - c f(y) = ...: given the residual (D x 13), writes dy.
void rw_dae_stiff_solve(rw_dae_stiff* self, double c, const double* y, const double* residual,
                        double* dy);
