// Backward differentiation for stiff mechanisms: our own, so that the whole history is part of the
// state and a restored run takes the same steps. Orders 1 to 5, quasi-constant step, the NDF variant
// and error control of Shampine & Reichelt, "The MATLAB ODE Suite", SIAM J. Sci. Comput. 18 (1997)
// 1-22, on the index-1 form: y = (r, q, v, omega) with the multipliers eliminated by the KKT solve.
// After each inner step quaternions are normalised and positions and velocities projected.
//
// Newton's matrix holds the stiff parts only (dae_stiff.h); the rest converges by itself at the
// steps that accuracy asks for. A step of the world is cut into equal inner steps, so that they land
// on its end. The method starts again at order 1 when the state or an input was changed from outside
// between two steps; inputs that are functions of time, and those that are held, do not.
//
// One thread at a time; nothing is allocated after rw_dae_bdf_init.
#pragma once

#include "solvers/dae/dae_integrate.h"
#include "solvers/dae/dae_stiff.h"

#define RW_DAE_BDF_ORDER_MAX 5
#define RW_DAE_BDF_ROWS (RW_DAE_BDF_ORDER_MAX + 3)
#define RW_DAE_BDF_HISTORY (RW_DAE_WIDTH * RW_DAE_BDF_ROWS)
#define RW_DAE_BDF_CONTROL 8

typedef struct rw_dae_bdf {
    rw_dae_integrate* integrate; // borrowed
    rw_dae_stiff stiff;
    bool is_ready;   // the arrays below exist: only when the model asks for BDF
    double* history; // backward differences: body d, order k at [(d * ROWS + k) * 13]; state
    double* control; // order, step, equal steps so far, valid, input signature (2), end time; state
    double *history_before, *control_before;
    double *predicted, *psi, *difference, *slope, *residual, *correction, *scale;
} rw_dae_bdf;

rw_status rw_dae_bdf_init(rw_dae_bdf* self, rw_dae_integrate* integrate, rw_alloc* alloc,
                          rw_arena* arena, double* history, double* control);
void rw_dae_bdf_finish(rw_dae_bdf* self);

// Notes the history at the start of a step, and goes back to it: a step may be taken again with
// other rod wrenches.
void rw_dae_bdf_keep(rw_dae_bdf* self);
void rw_dae_bdf_again(rw_dae_bdf* self);

// Advances integrate->y over the step. CANCELLED, or FAULTED with step->fault filled.
rw_status rw_dae_bdf_step(rw_dae_bdf* self, rw_step* step);
