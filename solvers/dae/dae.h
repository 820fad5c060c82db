// The DAE solver: bodies and joints to engineering accuracy, in the RIGID role of the solver
// interface (solvers/model/solver.h). Reading order: solvers/model/joint_geometry (the joints' equations), kkt (the
// linear algebra), dae_system (a mechanism evaluated), dae_integrate and dae_bdf (time), this file
// (the interface). One thread at a time.
#pragma once

#include "solvers/dae/dae_query.h"
#include "solvers/model/solver.h"

// The solver's functions; `self` is made by create.
const rw_solver_vtable* rw_dae_vtable(void);

// Starts questions about the mechanism (dae_query.h) at a state. The query borrows the solver until
// its next call and takes its memory from `arena`.
rw_status rw_dae_ask(void* self, const rw_state* state, double time_s, rw_arena* arena,
                     rw_dae_query* query, rw_error* error);

// How many constraint rows are redundant at the last factorisation: with more than 0, reactions are
// not unique, and those of least sum(regularisation x lambda^2) are given.
int32_t rw_dae_redundant_rows(const void* self);
