// The XPBD solver behind the solver interface: rigid bodies, joints and finite-element rods. The
// thread that runs the world.
#pragma once

#include "solvers/model/solver.h"

// The solver's functions; static.
const rw_solver_vtable* rw_xpbd_vtable(void);

// Integrates rods with one Gauss point more per element, for the study of locking: `self` is what
// `create` made for the RODS role. Takes effect at the next prepare.
void rw_xpbd_set_full_quadrature(void* self, bool full);
