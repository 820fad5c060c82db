// The XPBD solver behind the solver interface: rigid bodies (and, when they land, joints and
// finite-element rods). The thread that runs the world.
#pragma once

#include "solvers/model/solver.h"

// The solver's functions; static.
const rw_solver_vtable* rw_xpbd_vtable(void);
