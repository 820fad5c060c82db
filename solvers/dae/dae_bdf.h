// Backward differentiation formulas of order 1 to 5 for stiff mechanisms, our own so that the whole
// history is part of the state. One thread at a time.
#pragma once

#include "solvers/dae/dae_integrate.h"

#define RW_DAE_BDF_ORDER_MAX 5
#define RW_DAE_BDF_HISTORY (RW_DAE_WIDTH * (RW_DAE_BDF_ORDER_MAX + 3))
#define RW_DAE_BDF_CONTROL 8

typedef struct rw_dae_bdf {
    rw_dae_integrate* integrate; // borrowed
    double* history;
    double* control;
} rw_dae_bdf;

rw_status rw_dae_bdf_init(rw_dae_bdf* self, rw_dae_integrate* integrate, rw_arena* arena,
                          double* history, double* control);
void rw_dae_bdf_keep(rw_dae_bdf* self);
void rw_dae_bdf_again(rw_dae_bdf* self);
rw_status rw_dae_bdf_step(rw_dae_bdf* self, rw_step* step);
