// The explicit integrators of the DAE solver: Euler, symplectic Euler, classical Runge-Kutta, and
// Dormand-Prince 5(4) with step control. Each advances y (dae_system.h) over one step of the world
// and lands exactly on its end. The Eulers are linearly implicit in the stiff parts (dae_stiff.h): they
// stay stable with any spring, damper, motor gain or compliance. After every (inner) step the quaternions are normalised and, when
// asked for, positions and velocities are projected onto the joints. One thread at a time; nothing
// is allocated after rw_dae_integrate_init.
#pragma once

#include <stdatomic.h>

#include "solvers/dae/dae_stiff.h"
#include "solvers/dae/dae_system.h"

#define RW_DAE_STAGES 7

typedef struct rw_dae_integrate {
    rw_dae_system* system; // borrowed
    int64_t size;          // of y
    double* y;             // at the end of the last step
    double* stage;         // argument of a stage
    double* slope[RW_DAE_STAGES];
    rw_dae_stiff stiff;    // for the Eulers; made when is_implicit
    bool is_implicit;      // the method is an Euler and there are stiff parts
    double* inner_step;    // RK45: the next inner step [s], 0 at first; borrowed, part of the state
    bool project;
    double relative_tolerance, absolute_tolerance;
} rw_dae_integrate;

// Allocates from `arena`; reads stabilisation and tolerances from the system's model.
rw_status rw_dae_integrate_init(rw_dae_integrate* self, rw_dae_system* system, rw_alloc* alloc,
                                rw_arena* arena, double* inner_step);
void rw_dae_integrate_release(rw_dae_integrate* self);

// Reads stabilisation and tolerances again.
void rw_dae_integrate_parameters(rw_dae_integrate* self);

// Advances self->y from step->time_s by step->h with `method` (not BDF). CANCELLED, or FAULTED with
// step->fault filled.
rw_status rw_dae_integrate_step(rw_dae_integrate* self, rw_integrator method, rw_step* step);

// What follows an inner step of length h: normalise, project, continue the joint angles. Leaves y
// loaded.
rw_status rw_dae_integrate_finish(rw_dae_integrate* self, double* y, double h);

// The bound on position errors that projection works to: 1e-14, relative to the scene's extent, near
// rounding. Next to a singular position an error e of a row lets the mechanism off by sqrt(e).
double rw_dae_integrate_tolerance(const rw_dae_integrate* self, const double* y);

// Fills the fault with the first body whose numbers are not finite, or with `text`.
rw_status rw_dae_integrate_fault(const rw_dae_integrate* self, rw_step* step, const double* y,
                                 const char* stage, const char* text);
