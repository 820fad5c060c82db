#include "solvers/dae/dae_integrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/dae/dae_effort.h"
#include "solvers/math/so3.h"

#define PROJECTION_ROUNDS 8
#define INNER_STEPS_MAX 1000000
// Below this fraction of the world's step an inner step makes no progress.
#define INNER_STEP_FLOOR 1e-9

static bool is_euler(rw_integrator method) {
    return method == RW_INTEGRATOR_EULER || method == RW_INTEGRATOR_SYMPLECTIC_EULER;
}

rw_status rw_dae_integrate_init(rw_dae_integrate* self, rw_dae_system* system, rw_alloc* alloc,
                                rw_arena* arena, double* inner_step) {
    *self = (rw_dae_integrate){.system = system, .inner_step = inner_step};
    self->size = RW_DAE_WIDTH * (int64_t)system->dynamic_count;
    rw_dae_integrate_parameters(self);
    size_t bytes = ((size_t)self->size + 1) * sizeof(double);
    self->y = rw_arena_get(arena, bytes);
    self->stage = rw_arena_get(arena, bytes);
    bool ok = self->y && self->stage;
    for (int i = 0; i < RW_DAE_STAGES && ok; i++)
        ok = (self->slope[i] = rw_arena_get(arena, bytes)) != NULL;
    if (!ok)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    if (!is_euler(system->model->solver.dae.integrator))
        return RW_STATUS_OK;
    RW_TRY(rw_dae_stiff_init(&self->stiff, system, alloc, arena));
    rw_dae_integrate_parameters(self);
    return RW_STATUS_OK;
}

void rw_dae_integrate_release(rw_dae_integrate* self) { rw_dae_stiff_finish(&self->stiff); }

void rw_dae_integrate_parameters(rw_dae_integrate* self) {
    const rw_solver_options* options = &self->system->model->solver;
    self->project = options->dae.stabilization == RW_STABILIZATION_PROJECTION;
    self->relative_tolerance = options->dae.relative_tolerance;
    self->absolute_tolerance = options->dae.absolute_tolerance;
    self->is_implicit = self->stiff.kkt && rw_dae_stiff_any(&self->stiff);
}

rw_status rw_dae_integrate_fault(const rw_dae_integrate* self, rw_step* step, const double* y,
                                 const char* stage, const char* text) {
    const rw_dae_system* s = self->system;
    rw_fault* fault = step->fault;
    if (!fault)
        return RW_STATUS_FAULTED;
    fault->raised = true;
    snprintf(fault->object, sizeof fault->object, "world");
    snprintf(fault->stage, sizeof fault->stage, "%s", stage);
    snprintf(fault->text, sizeof fault->text, "%s", text);
    for (int64_t i = 0; i < self->size; i++)
        if (!isfinite(y[i])) {
            int32_t b = s->body_of[i / RW_DAE_WIDTH];
            snprintf(fault->object, sizeof fault->object, "body/%s",
                     s->model->bodies.items[b].desc.name);
            snprintf(fault->text, sizeof fault->text, "the motion is no longer finite");
            break;
        }
    return RW_STATUS_FAULTED;
}

double rw_dae_integrate_tolerance(const rw_dae_integrate* self, const double* y) {
    double extent = 1.0;
    for (int64_t i = 0; i < self->size; i += RW_DAE_WIDTH)
        extent = fmax(extent, rw_vec3_max_abs(rw_vec3_load(y + i)));
    return 1e-14 * extent;
}

// Continues the reference angles of all joints at the loaded state, h after the last time.
static void continue_angles(rw_dae_system* s, double h) {
    for (int32_t k = 0; k < s->joint_count; k++) {
        const rw_joint_geometry* joint = &s->joints[k];
        unsigned mask = rw_joint_geometry_angle_mask(joint->type);
        if (!mask)
            continue;
        double *angle = s->angle + 3 * (int64_t)k, values[4];
        const rw_joint_pose* parent = &s->pose[joint->parent < 0 ? s->body_count : joint->parent];
        const rw_joint_pose* child = &s->pose[joint->child];
        double shift[3] = {0};
        rw_vec3 spin = rw_vec3_sub(child->angular, parent->angular);
        if (h * h * rw_vec3_norm_sq(spin) > 1.0) { // more than a radian per step: predict
            rw_joint_row rows[3];
            rw_joint_geometry_rates(joint, &s->frames[k], rows);
            for (int32_t i = 0; i < joint->rate_count; i++)
                shift[i] = h * rw_joint_geometry_row_rate(&rows[i], parent, child);
        }
        rw_joint_geometry_coordinate(joint, &s->frames[k], values);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1u)
                angle[i] = rw_dae_effort_unwrap(values[i], angle[i] + shift[i]);
    }
}

static void normalize(double* y, int64_t size) {
    for (int64_t i = 0; i < size; i += RW_DAE_WIDTH)
        rw_quat_store(y + i + 3, rw_quat_normalize(rw_quat_load(y + i + 3)));
}

rw_status rw_dae_integrate_finish(rw_dae_integrate* self, double* y, double h) {
    rw_dae_system* s = self->system;
    normalize(y, self->size);
    if (self->project && s->row_count) {
        double tolerance = rw_dae_integrate_tolerance(self, y), worst;
        RW_TRY(rw_dae_system_project(s, y, tolerance, PROJECTION_ROUNDS, true, &worst));
        if (!(worst <= 1e4 * tolerance))
            return RW_STATUS_FAULTED;
        RW_TRY(rw_dae_system_project_velocity(s, y));
    }
    rw_dae_system_load(s, y);
    continue_angles(s, h);
    return RW_STATUS_OK;
}

// slope <- f(t, y).
static rw_status evaluate(rw_dae_integrate* self, rw_step* step, double t, const double* y,
                          double* slope) {
    if (step->cancel && atomic_load_explicit(step->cancel, memory_order_relaxed))
        return RW_STATUS_CANCELLED;
    rw_dae_system_set_time(self->system, step->from, step->time_s, t);
    return rw_dae_system_derivative(self->system, y, slope);
}

// stage <- y + h sum(a_i slope_i).
static void combine(rw_dae_integrate* self, double* out, const double* y, double h, const double* a,
                    int count) {
    for (int64_t i = 0; i < self->size; i++) {
        double sum = 0.0;
        for (int k = 0; k < count; k++)
            sum += a[k] * self->slope[k][i];
        out[i] = y[i] + h * sum;
    }
}

static rw_status euler(rw_dae_integrate* self, rw_step* step, bool symplectic) {
    double *y = self->y, *f = self->slope[0], h = step->h;
    RW_TRY(evaluate(self, step, step->time_s, y, f));
    if (self->is_implicit) {
        // (M + h D + h^2 K) du + J' mu = h M a - h^2 K u: accelerations of the stiff parts at the end.
        double *residual = self->slope[1], *change = self->slope[2];
        // Explicit Euler moves on with the old velocity first: it looks one step further.
        for (int64_t i = 0; i < self->size; i++)
            residual[i] = (!symplectic && i % RW_DAE_WIDTH < 7 ? 2.0 : 1.0) * h * f[i];
        if (rw_dae_stiff_factor(&self->stiff, h) != RW_STATUS_OK)
            return RW_STATUS_FAULTED;
        rw_dae_stiff_solve(&self->stiff, h, y, residual, change);
        for (int64_t i = 0; i < self->size; i += RW_DAE_WIDTH)
            for (int k = 7; k < RW_DAE_WIDTH; k++)
                f[i + k] = change[i + k] / h;
    }
    if (!symplectic) {
        for (int64_t i = 0; i < self->size; i++)
            y[i] += h * f[i];
    } else {
        for (int64_t i = 0; i < self->size; i += RW_DAE_WIDTH) {
            for (int k = 7; k < RW_DAE_WIDTH; k++)
                y[i + k] += h * f[i + k];
            for (int k = 0; k < 3; k++)
                y[i + k] += h * y[i + 7 + k];
            rw_vec3 turn = rw_vec3_scale(rw_vec3_load(y + i + 10), h);
            rw_quat_store(y + i + 3, rw_so3_boxplus(rw_quat_load(y + i + 3), turn));
        }
    }
    rw_dae_system_set_time(self->system, step->from, step->time_s, step->time_s + h);
    return rw_dae_integrate_finish(self, y, h);
}

static rw_status runge_kutta(rw_dae_integrate* self, rw_step* step) {
    double *y = self->y, h = step->h, t = step->time_s;
    double** k = self->slope;
    RW_TRY(evaluate(self, step, t, y, k[0]));
    combine(self, self->stage, y, 0.5 * h, (double[]){1.0}, 1);
    RW_TRY(evaluate(self, step, t + 0.5 * h, self->stage, k[1]));
    combine(self, self->stage, y, 0.5 * h, (double[]){0.0, 1.0}, 2);
    RW_TRY(evaluate(self, step, t + 0.5 * h, self->stage, k[2]));
    combine(self, self->stage, y, h, (double[]){0.0, 0.0, 1.0}, 3);
    RW_TRY(evaluate(self, step, t + h, self->stage, k[3]));
    for (int64_t i = 0; i < self->size; i++)
        y[i] += h / 6.0 * (k[0][i] + 2.0 * (k[1][i] + k[2][i]) + k[3][i]);
    return rw_dae_integrate_finish(self, y, h);
}

// Dormand and Prince, J. Comput. Appl. Math. 6 (1980) 19-26: 5th order, the 4th-order difference.
static const double dp_node[7] = {0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0};
static const double dp_weight[7][6] = {
    {0},
    {1.0 / 5.0},
    {3.0 / 40.0, 9.0 / 40.0},
    {44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0},
    {19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0},
    {9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0},
    {35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0},
};
static const double dp_error[7] = {71.0 / 57600.0,     0.0,           -71.0 / 16695.0, 71.0 / 1920.0,
                                   -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0};

// Root mean square of the error estimate over its scale; more than 1 refuses the step.
static double error_norm(const rw_dae_integrate* self, const double* y, const double* next,
                         double h) {
    double sum = 0.0;
    for (int64_t i = 0; i < self->size; i++) {
        double e = 0.0;
        for (int k = 0; k < 7; k++)
            e += dp_error[k] * self->slope[k][i];
        double scale = self->absolute_tolerance +
                       self->relative_tolerance * fmax(fabs(y[i]), fabs(next[i]));
        e *= h / scale;
        sum += e * e;
    }
    return self->size ? sqrt(sum / (double)self->size) : 0.0;
}

// x^(-1/5) for step control, by Newton steps from a power of two: no libm, same bits anywhere.
static double inverse_fifth_root(double x) {
    int e;
    frexp(x, &e); // x = m 2^e, 1/2 <= m < 1
    double r = ldexp(1.0, -(int)floor((double)e / 5.0 + 0.5));
    for (int i = 0; i < 6; i++) {
        double r2 = r * r;
        r *= 1.2 - 0.2 * x * r2 * r2 * r;
    }
    return r;
}

static rw_status dormand_prince(rw_dae_integrate* self, rw_step* step) {
    double *y = self->y, done = 0.0, end = step->h;
    double h = *self->inner_step;
    if (!(h > 0.0))
        h = 0.1 * end;
    for (int count = 0; done < end; count++) {
        if (count > INNER_STEPS_MAX || h < INNER_STEP_FLOOR * end)
            return rw_dae_integrate_fault(self, step, y, "dae rk45",
                                          "the tolerance asks for steps that are too small");
        double rest = end - done;
        bool last = h >= rest * (1.0 - 1e-10);
        double used = last ? rest : h > 0.5 * rest ? 0.5 * rest : h; // no tiny last step
        double t = step->time_s + done;
        for (int k = 0; k < 7; k++) {
            if (k)
                combine(self, self->stage, y, used, dp_weight[k], k);
            RW_TRY(evaluate(self, step, t + dp_node[k] * used, k ? self->stage : y,
                            self->slope[k]));
        }
        double error = error_norm(self, y, self->stage, used);
        if (!isfinite(error)) {
            if (used < 1e-6 * end)
                return rw_dae_integrate_fault(self, step, self->stage, "dae rk45",
                                              "the motion is no longer finite");
            h = 0.1 * used;
            continue;
        }
        double factor = error > 0.0 ? 0.9 * inverse_fifth_root(error) : 5.0;
        factor = fmin(fmax(factor, 0.2), 5.0);
        if (error > 1.0) {
            h = used * fmin(factor, 1.0);
            continue;
        }
        memcpy(y, self->stage, (size_t)self->size * sizeof *y);
        done = last ? end : done + used;
        rw_dae_system_set_time(self->system, step->from, step->time_s, step->time_s + done);
        RW_TRY(rw_dae_integrate_finish(self, y, used));
        // A step cut short by the end says nothing against the longer one.
        h = used < h ? fmax(h, used * factor) : used * factor;
    }
    *self->inner_step = h;
    return RW_STATUS_OK;
}

rw_status rw_dae_integrate_step(rw_dae_integrate* self, rw_integrator method, rw_step* step) {
    rw_status status = RW_STATUS_INTERNAL;
    switch (method) {
    case RW_INTEGRATOR_EULER:
        status = euler(self, step, false);
        break;
    case RW_INTEGRATOR_SYMPLECTIC_EULER:
        status = euler(self, step, true);
        break;
    case RW_INTEGRATOR_RK4:
        status = runge_kutta(self, step);
        break;
    case RW_INTEGRATOR_RK45:
        status = dormand_prince(self, step);
        break;
    case RW_INTEGRATOR_BDF:
        break;
    }
    bool finite = true;
    for (int64_t i = 0; i < self->size && status == RW_STATUS_OK; i++)
        finite = finite && isfinite(self->y[i]);
    if (!finite || (status == RW_STATUS_FAULTED && step->fault && !step->fault->raised))
        return rw_dae_integrate_fault(self, step, self->y, "dae step",
                                      "the joints can no longer be met");
    return status;
}
