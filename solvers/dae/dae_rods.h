// Rods on dae bodies: the rigid half of the coupling in solvers/model/solver.h. The rods' wrench W on
// a body is constant over the step, in world axes, and implicit: it is the one that the rods exert
// where the body ends up. With F and K of the rods at the trial pose, and the constrained inverse
// mass A, the correction of W solves
//
//     (M + c h^2 K) da + J' lambda = F - W,   W <- F - c h^2 K da,
//
// after which the step is integrated again from its start. K couples the two bodies of a rod as well
// (step->pairs); the system is then solved by conjugate gradients, preconditioned with the factored
// system that leaves those couplings out, which keeps every iterate on the joints. c is how far a constant acceleration
// carries a body in the step: 1/2, or 1 for symplectic Euler; 0 for explicit Euler, whose end
// position does not feel it (then the coupling is explicit and needs K h^2/m < 4). One thread at a
// time.
#pragma once

#include "solvers/dae/dae_integrate.h"

typedef struct rw_dae_rods {
    rw_dae_system* system; // borrowed
    double* wrench;        // W (bodies x 6), part of the state
    double* seen;          // force and torque of the responses of the last call (bodies x 6)
    double* added;         // c h^2 K (dynamic x 36)
    double* work;          // residual F - W (dynamic x 6)
    double *x, *r, *p, *q; // conjugate gradients (dynamic x 6)
    int sweeps;            // of this step
    bool any;              // rods were attached in the last sweep
} rw_dae_rods;

rw_status rw_dae_rods_init(rw_dae_rods* self, rw_dae_system* system, rw_arena* arena,
                           double* wrench);

// At the start of a step.
void rw_dae_rods_begin(rw_dae_rods* self);

// Reads step->responses and corrects W; `done` when it agrees with the rods, or when the responses
// are those of the last call: the rods have had their iterations. FAULTED when the matrix can't be
// factored.
rw_status rw_dae_rods_update(rw_dae_rods* self, rw_dae_integrate* integrate, rw_step* step,
                             bool* done);
