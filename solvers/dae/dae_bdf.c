#include "solvers/dae/dae_bdf.h"

rw_status rw_dae_bdf_init(rw_dae_bdf* self, rw_dae_integrate* integrate, rw_arena* arena,
                          double* history, double* control) {
    (void)arena;
    *self = (rw_dae_bdf){integrate, history, control};
    return RW_STATUS_OK;
}
void rw_dae_bdf_keep(rw_dae_bdf* self) { (void)self; }
void rw_dae_bdf_again(rw_dae_bdf* self) { (void)self; }
rw_status rw_dae_bdf_step(rw_dae_bdf* self, rw_step* step) {
    (void)self;
    (void)step;
    return RW_STATUS_UNIMPLEMENTED;
}
