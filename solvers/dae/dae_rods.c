#include "solvers/dae/dae_rods.h"

#include <math.h>
#include <string.h>

#define SWEEPS_MAX 200
#define TOLERANCE 1e-9
#define GRADIENTS_MAX 200
#define GRADIENTS_TOLERANCE 1e-13

rw_status rw_dae_rods_init(rw_dae_rods* self, rw_dae_system* system, rw_arena* arena,
                           double* wrench) {
    *self = (rw_dae_rods){.system = system, .wrench = wrench};
    if (system->model->rods.count == 0)
        return RW_STATUS_OK;
    size_t dynamic = (size_t)system->dynamic_count;
    self->seen = rw_arena_array(arena, 6 * (size_t)system->body_count + 1, sizeof(double));
    self->added = rw_arena_array(arena, 36 * dynamic + 1, sizeof(double));
    self->work = rw_arena_array(arena, 6 * dynamic + 1, sizeof(double));
    self->x = rw_arena_array(arena, 24 * dynamic + 1, sizeof(double));
    if (!self->seen || !self->added || !self->work || !self->x)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    self->r = self->x + 6 * dynamic;
    self->p = self->r + 6 * dynamic;
    self->q = self->p + 6 * dynamic;
    system->constant_wrench = wrench;
    return RW_STATUS_OK;
}

void rw_dae_rods_begin(rw_dae_rods* self) { self->sweeps = 0; }

// Compares the responses with those of the last call of this step, and notes them.
static bool are_fresh(rw_dae_rods* self, const rw_step* step) {
    bool fresh = self->sweeps == 0;
    for (int32_t b = 0; b < self->system->body_count; b++) {
        const rw_body_response* r = &step->responses[b];
        double* seen = self->seen + 6 * (int64_t)b;
        if (!r->active)
            continue;
        fresh = fresh || memcmp(seen, r->force, sizeof r->force) != 0 ||
                memcmp(seen + 3, r->torque, sizeof r->torque) != 0;
        memcpy(seen, r->force, sizeof r->force);
        memcpy(seen + 3, r->torque, sizeof r->torque);
    }
    return fresh;
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

// y += c K x, without (`only_pairs`) or with the bodies' own blocks.
static void add_stiffness(const rw_dae_rods* self, const rw_step* step, double c, const double* x,
                          double* y, bool only_pairs) {
    const rw_dae_system* s = self->system;
    for (int32_t d = 0; d < s->dynamic_count && !only_pairs; d++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++)
                y[6 * d + i] += self->added[36 * (int64_t)d + 6 * i + j] * x[6 * d + j];
    for (int32_t k = 0; k < step->pair_count; k++) {
        const rw_body_pair* pair = &step->pairs[k];
        int32_t a = s->dynamic_of[pair->a], b = s->dynamic_of[pair->b];
        for (int i = 0; i < 6 && a >= 0 && b >= 0; i++)
            for (int j = 0; j < 6; j++) {
                double v = c * pair->stiffness[6 * i + j];
                y[6 * a + i] += v * x[6 * b + j];
                y[6 * b + j] += v * x[6 * a + i];
            }
    }
}

// x <- P r, the motion under r that the joints allow, without the pairs.
static void precondition(rw_dae_rods* self, const double* r) {
    rw_dae_system* s = self->system;
    memcpy(s->body, r, 6 * (size_t)s->dynamic_count * sizeof *r);
    memset(s->row, 0, (size_t)s->row_count * sizeof *s->row);
    rw_kkt_solve(s->kkt, s->body, s->row, s->parallel);
}

static double dot(const double* a, const double* b, int32_t count) {
    double sum = 0.0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

// Solves (M + c K) x + J' mu = work, J x = 0. The matrix without pairs is factored.
static void solve_coupled(rw_dae_rods* self, const rw_step* step, double c) {
    rw_dae_system* s = self->system;
    int32_t size = 6 * s->dynamic_count;
    size_t bytes = (size_t)size * sizeof(double);
    precondition(self, self->work);
    if (step->pair_count == 0) {
        memcpy(self->x, s->body, bytes);
        return;
    }
    memset(self->x, 0, bytes);
    memcpy(self->r, self->work, bytes);
    memcpy(self->p, s->body, bytes);
    double rz = dot(self->r, s->body, size), first = rz;
    for (int n = 0; n < GRADIENTS_MAX && rz > GRADIENTS_TOLERANCE * GRADIENTS_TOLERANCE * first;
         n++) {
        memset(self->q, 0, bytes);
        for (int32_t d = 0; d < s->dynamic_count; d++) {
            const double* m = rw_kkt_mass(s->kkt, d); // with the bodies' own stiffness in it
            for (int i = 0; i < 6; i++)
                for (int j = 0; j < 6; j++)
                    self->q[6 * d + i] += m[6 * i + j] * self->p[6 * d + j];
        }
        add_stiffness(self, step, c, self->p, self->q, true);
        double curvature = dot(self->p, self->q, size);
        if (!(curvature > 0.0))
            break; // rounding: as near as it gets
        double alpha = rz / curvature;
        for (int32_t i = 0; i < size; i++) {
            self->x[i] += alpha * self->p[i];
            self->r[i] -= alpha * self->q[i];
        }
        precondition(self, self->r);
        double next = dot(self->r, s->body, size), beta = next / rz;
        rz = next;
        for (int32_t i = 0; i < size; i++)
            self->p[i] = s->body[i] + beta * self->p[i];
    }
}

rw_status rw_dae_rods_update(rw_dae_rods* self, rw_dae_integrate* integrate, rw_step* step,
                             bool* done) {
    rw_dae_system* s = self->system;
    *done = true;
    if (!self->seen || !step->responses || !are_fresh(self, step))
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
    solve_coupled(self, step, c);
    // W <- F - c K x: what the rods exert where the bodies are going.
    memset(self->q, 0, 6 * (size_t)s->dynamic_count * sizeof *self->q);
    add_stiffness(self, step, c, self->x, self->q, false);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int64_t b = s->body_of[d];
        for (int i = 0; i < 6 && step->responses[b].active; i++)
            self->wrench[6 * b + i] += self->work[6 * d + i] - self->q[6 * d + i];
    }
    return RW_STATUS_OK;
}
