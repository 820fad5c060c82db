#include "solvers/dae/dae_rods.h"

#include <math.h>
#include <string.h>

#define SWEEPS_MAX 200
#define TOLERANCE 1e-9

rw_status rw_dae_rods_init(rw_dae_rods* self, rw_dae_system* system, rw_arena* arena,
                           double* wrench) {
    *self = (rw_dae_rods){.system = system, .wrench = wrench};
    if (system->model->rods.count == 0)
        return RW_STATUS_OK;
    size_t dynamic = (size_t)system->dynamic_count;
    self->before = rw_arena_array(arena, 6 * (size_t)system->body_count + 1, sizeof(double));
    self->added = rw_arena_array(arena, 36 * dynamic + 1, sizeof(double));
    self->work = rw_arena_array(arena, 6 * dynamic + 1, sizeof(double));
    if (!self->before || !self->added || !self->work)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    system->constant_wrench = wrench;
    return RW_STATUS_OK;
}

void rw_dae_rods_begin(rw_dae_rods* self) {
    self->sweeps = 0;
    if (self->before)
        memcpy(self->before, self->wrench,
               6 * (size_t)self->system->body_count * sizeof *self->wrench);
}

static double carried(rw_integrator method) {
    switch (method) {
    case RW_INTEGRATOR_EULER:
        return 0.0;
    case RW_INTEGRATOR_SYMPLECTIC_EULER:
        return 1.0;
    case RW_INTEGRATOR_RK4:
    case RW_INTEGRATOR_RK45:
    case RW_INTEGRATOR_BDF:
        break;
    }
    return 0.5;
}

rw_status rw_dae_rods_update(rw_dae_rods* self, rw_dae_integrate* integrate, rw_step* step,
                             bool* done) {
    rw_dae_system* s = self->system;
    *done = true;
    if (!self->before || !step->responses)
        return RW_STATUS_OK;
    double c = carried(s->model->solver.dae.integrator) * step->h * step->h, worst = 0.0;
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int32_t b = s->body_of[d];
        const rw_body_response* r = &step->responses[b];
        double* added = self->added + 36 * (int64_t)d;
        double *w = self->wrench + 6 * (int64_t)b, *g = s->body + 6 * (int64_t)d;
        memset(added, 0, 36 * sizeof *added);
        memset(g, 0, 6 * sizeof *g);
        if (!r->active) {
            memset(w, 0, 6 * sizeof *w); // the last rod was taken off
            continue;
        }
        double size = 1e-12;
        for (int i = 0, e = 0; i < 6; i++) {
            double f = i < 3 ? r->force[i] : r->torque[i - 3];
            for (int j = 0; j <= i; j++, e++)
                added[6 * i + j] = added[6 * j + i] = c * r->stiffness[e];
            size += fabs(f);
            g[i] = f - w[i];
        }
        for (int i = 0; i < 6; i++)
            worst = fmax(worst, fabs(g[i]) / size);
    }
    if (worst <= TOLERANCE)
        return RW_STATUS_OK;
    if (++self->sweeps > SWEEPS_MAX)
        return RW_STATUS_OK; // as near as it gets; the rods' residual tells
    *done = false;
    memcpy(self->work, s->body, 6 * (size_t)s->dynamic_count * sizeof *self->work);
    rw_dae_system_load(s, integrate->y);
    s->added_mass = self->added;
    s->is_factored = false;
    rw_status status = rw_dae_system_factor(s);
    s->added_mass = NULL;
    s->is_factored = false;
    RW_TRY(status);
    memset(s->row, 0, (size_t)s->row_count * sizeof *s->row);
    rw_kkt_solve(s->kkt, s->body, s->row, s->parallel);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int32_t b = s->body_of[d];
        const double *a = s->body + 6 * (int64_t)d, *added = self->added + 36 * (int64_t)d;
        double *w = self->wrench + 6 * (int64_t)b, *g = self->work + 6 * (int64_t)d;
        if (!step->responses[b].active)
            continue;
        for (int i = 0; i < 6; i++) {
            double sum = g[i];
            for (int j = 0; j < 6; j++)
                sum -= added[6 * i + j] * a[j];
            w[i] += sum;
        }
    }
    return RW_STATUS_OK;
}
