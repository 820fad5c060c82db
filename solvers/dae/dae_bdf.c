#include "solvers/dae/dae_bdf.h"

#include <math.h>
#include <string.h>

#include "solvers/base/hash.h"

#define NEWTON_MAX 8
#define STEP_FLOOR 1e-10 // of the world's step
#define INNER_STEPS_MAX 1000000

enum { ORDER, STEP, EQUAL, VALID, SIGNATURE_LOW, SIGNATURE_HIGH, END_TIME };

// Coefficients by order 0 .. 6: gamma_k = sum 1/j, alpha = (1 - kappa) gamma, the error constant
// kappa gamma + 1/(k + 1). kappa is that of the NDFs; 0 at order 5.
static const double kappa[6] = {0.0, -0.1850, -1.0 / 9.0, -0.0823, -0.0415, 0.0};
static const double gamma_of[7] = {0.0, 1.0, 1.5, 11.0 / 6.0, 25.0 / 12.0, 137.0 / 60.0,
                                   147.0 / 60.0};

static double alpha_of(int order) { return (1.0 - kappa[order]) * gamma_of[order]; }
static double error_constant(int order) {
    return (order <= 5 ? kappa[order] * gamma_of[order] : 0.0) + 1.0 / (order + 1);
}

rw_status rw_dae_bdf_init(rw_dae_bdf* self, rw_dae_integrate* integrate, rw_alloc* alloc,
                          rw_arena* arena, double* history, double* control) {
    *self = (rw_dae_bdf){.integrate = integrate, .history = history, .control = control};
    if (integrate->system->model->solver.dae.integrator != RW_INTEGRATOR_BDF)
        return RW_STATUS_OK;
    RW_TRY(rw_dae_stiff_init(&self->stiff, integrate->system, alloc, arena));
    size_t size = (size_t)integrate->size;
    double** vectors[] = {&self->predicted,  &self->psi,      &self->difference, &self->slope,
                          &self->residual, &self->correction, &self->scale};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (!(*vectors[i] = rw_arena_array(arena, size + 1, sizeof(double))))
            return RW_STATUS_RESOURCE_EXHAUSTED;
    self->history_before = rw_arena_array(arena, size * RW_DAE_BDF_ROWS + 1, sizeof(double));
    self->control_before = rw_arena_array(arena, RW_DAE_BDF_CONTROL, sizeof(double));
    self->is_ready = self->history_before && self->control_before;
    return self->is_ready ? RW_STATUS_OK : RW_STATUS_RESOURCE_EXHAUSTED;
}

void rw_dae_bdf_finish(rw_dae_bdf* self) { rw_dae_stiff_finish(&self->stiff); }

static void copy_history(const rw_dae_bdf* self, double* to, const double* from) {
    memcpy(to, from, (size_t)self->integrate->size * RW_DAE_BDF_ROWS * sizeof *to);
}

void rw_dae_bdf_keep(rw_dae_bdf* self) {
    if (!self->is_ready)
        return;
    copy_history(self, self->history_before, self->history);
    memcpy(self->control_before, self->control, RW_DAE_BDF_CONTROL * sizeof *self->control);
}

void rw_dae_bdf_again(rw_dae_bdf* self) {
    if (!self->is_ready)
        return;
    copy_history(self, self->history, self->history_before);
    memcpy(self->control, self->control_before, RW_DAE_BDF_CONTROL * sizeof *self->control);
}

// Difference k of all unknowns, as one strided vector: entry i of y.
static inline double* entry(const rw_dae_bdf* self, int k, int64_t i) {
    return self->history + ((i / RW_DAE_WIDTH) * RW_DAE_BDF_ROWS + k) * RW_DAE_WIDTH +
           i % RW_DAE_WIDTH;
}

static double norm(const rw_dae_bdf* self, const double* v, double factor) {
    double sum = 0.0;
    int64_t size = self->integrate->size;
    for (int64_t i = 0; i < size; i++) {
        double e = factor * v[i] / self->scale[i];
        sum += e * e;
    }
    return size ? sqrt(sum / (double)size) : 0.0;
}

static void set_scale(rw_dae_bdf* self, const double* y) {
    for (int64_t i = 0; i < self->integrate->size; i++)
        self->scale[i] = self->integrate->absolute_tolerance +
                         self->integrate->relative_tolerance * fabs(y[i]);
}

// x^(-1/k) without libm: Newton from below, r <- r (k + 1 - x r^k)/k, which converges monotonically.
static double inverse_root(double x, int k) {
    if (!(x > 1e-30))
        x = 1e-30;
    int e;
    frexp(x, &e);
    double r = ldexp(1.0, -(int)ceil((double)e / k));
    for (int i = 0; i < 14; i++) {
        double p = x;
        for (int j = 0; j < k; j++)
            p *= r;
        r *= (k + 1 - p) / k;
    }
    return r;
}

// Rescales the differences from step h to factor h (Shampine & Reichelt, sec. 2): D <- (R U)' D with
// R_ij = prod ((m - 1 - factor l)/m).
static void change_step(rw_dae_bdf* self, int order, double factor) {
    double r[6][6], u[6][6], ru[6][6];
    for (int pass = 0; pass < 2; pass++) {
        double f = pass ? 1.0 : factor, (*m)[6] = pass ? u : r;
        for (int j = 0; j <= order; j++) {
            m[0][j] = 1.0;
            for (int i = 1; i <= order; i++)
                m[i][j] = j == 0 ? 0.0 : m[i - 1][j] * ((i - 1 - f * j) / i);
        }
    }
    for (int i = 0; i <= order; i++)
        for (int j = 0; j <= order; j++) {
            ru[i][j] = 0.0;
            for (int k = 0; k <= order; k++)
                ru[i][j] += r[i][k] * u[k][j];
        }
    for (int64_t i = 0; i < self->integrate->size; i++) {
        double old[6];
        for (int k = 0; k <= order; k++)
            old[k] = *entry(self, k, i);
        for (int j = 0; j <= order; j++) {
            double sum = 0.0;
            for (int k = 0; k <= order; k++)
                sum += ru[k][j] * old[k];
            *entry(self, j, i) = sum;
        }
    }
    self->control[STEP] *= factor;
    self->control[EQUAL] = 0.0;
}

// What a client may change between steps, as 64 bits in two doubles.
static void sign_inputs(const rw_dae_bdf* self, double signature[2]) {
    const rw_model* model = self->integrate->system->model;
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_doubles(&hash, model->gravity, 3);
    rw_hash_doubles(&hash, model->wind, 3);
    for (int32_t k = 0; k < model->joints.count; k++) {
        const rw_joint_desc* d = &model->joints.items[k].desc;
        rw_hash_word(&hash, (uint64_t)d->motor.mode);
        rw_hash_doubles(&hash, d->motor.target, 4);
        rw_hash_doubles(&hash, &d->motor.stiffness, 1);
        rw_hash_doubles(&hash, &d->motor.damping, 1);
        rw_hash_doubles(&hash, &d->damping, 1);
        rw_hash_doubles(&hash, &d->compliance, 1);
    }
    for (int32_t k = 0; k < model->forces.count; k++) {
        const rw_force_desc* d = &model->forces.items[k].desc;
        rw_hash_doubles(&hash, &d->spring_damper.stiffness, 1);
        rw_hash_doubles(&hash, &d->spring_damper.damping, 1);
        rw_hash_doubles(&hash, &model->forces.items[k].rest_length, 1);
        rw_hash_doubles(&hash, d->load.force, 3);
        rw_hash_doubles(&hash, d->load.torque, 3);
    }
    for (int32_t k = 0; k < model->applied.count; k++) {
        const rw_applied_wrench* w = &model->applied.items[k];
        rw_hash_word(&hash, (uint64_t)w->body);
        rw_hash_doubles(&hash, w->point, 3);
        rw_hash_doubles(&hash, w->force, 3);
        rw_hash_doubles(&hash, w->torque, 3);
    }
    rw_hash_doubles(&hash, model->bodies.mass, (size_t)model->bodies.count);
    rw_hash_doubles(&hash, model->bodies.inertia, 6 * (size_t)model->bodies.count);
    uint64_t value = rw_hash_value(&hash);
    signature[0] = (double)(value & 0xffffffffu);
    signature[1] = (double)(value >> 32);
}

static rw_status evaluate(rw_dae_bdf* self, rw_step* step, double t, const double* y, double* f) {
    if (step->cancel && atomic_load_explicit(step->cancel, memory_order_relaxed))
        return RW_STATUS_CANCELLED;
    rw_dae_system* s = self->integrate->system;
    rw_dae_system_set_time(s, step->from, step->time_s, t);
    return rw_dae_system_derivative(s, y, f);
}

// Starts at order 1 unless the history belongs to this very state, time and input.
static rw_status start(rw_dae_bdf* self, rw_step* step) {
    const double* y = self->integrate->y;
    double signature[2];
    sign_inputs(self, signature);
    bool valid = self->control[VALID] == 1.0 && fabs(self->control[END_TIME] - step->time_s) <= 1e-6 * step->h &&
                 self->control[SIGNATURE_LOW] == signature[0] &&
                 self->control[SIGNATURE_HIGH] == signature[1];
    for (int64_t i = 0; i < self->integrate->size && valid; i++)
        valid = *entry(self, 0, i) == y[i];
    if (valid)
        return RW_STATUS_OK;
    RW_TRY(evaluate(self, step, step->time_s, y, self->slope));
    set_scale(self, y);
    double size = norm(self, y, 1.0), rate = norm(self, self->slope, 1.0);
    double h = rate > 0.0 ? 0.01 * fmax(size, 1.0) / rate : step->h;
    h = fmin(fmax(h, 1e-6 * step->h), step->h);
    for (int64_t i = 0; i < self->integrate->size; i++) {
        *entry(self, 0, i) = y[i];
        *entry(self, 1, i) = h * self->slope[i];
        for (int k = 2; k < RW_DAE_BDF_ROWS; k++)
            *entry(self, k, i) = 0.0;
    }
    memset(self->control, 0, RW_DAE_BDF_CONTROL * sizeof *self->control);
    self->control[ORDER] = 1.0;
    self->control[STEP] = h;
    self->control[VALID] = 1.0;
    self->control[SIGNATURE_LOW] = signature[0];
    self->control[SIGNATURE_HIGH] = signature[1];
    return RW_STATUS_OK;
}

// Solves for the step from the prediction; `difference` receives what the solution lies beyond it.
static rw_status newton(rw_dae_bdf* self, rw_step* step, double t, int order, int* iterations) {
    rw_dae_integrate* in = self->integrate;
    double* y = in->stage;
    int64_t size = in->size;
    double alpha = alpha_of(order), c = self->control[STEP] / alpha;
    for (int64_t i = 0; i < size; i++) {
        double sum = 0.0, weighted = 0.0;
        for (int k = 0; k <= order; k++)
            sum += *entry(self, k, i);
        for (int k = 1; k <= order; k++)
            weighted += gamma_of[k] * *entry(self, k, i);
        self->predicted[i] = y[i] = sum;
        self->psi[i] = weighted / alpha;
        self->difference[i] = 0.0;
    }
    set_scale(self, y);
    double tolerance = fmax(10.0 * 2.2e-16 / in->relative_tolerance,
                            fmin(0.03, sqrt(in->relative_tolerance)));
    double last = 0.0;
    for (int k = 0; k < NEWTON_MAX; k++) {
        rw_status status = evaluate(self, step, t, y, self->slope);
        if (status == RW_STATUS_CANCELLED)
            return status;
        if (status != RW_STATUS_OK)
            return RW_STATUS_FAULTED;
        if (k == 0 && rw_dae_stiff_factor(&self->stiff, c) != RW_STATUS_OK)
            return RW_STATUS_FAULTED;
        for (int64_t i = 0; i < size; i++)
            self->residual[i] = c * self->slope[i] - self->psi[i] - self->difference[i];
        rw_dae_stiff_solve(&self->stiff, c, y, self->residual, self->correction);
        double change = norm(self, self->correction, 1.0);
        if (!isfinite(change))
            return RW_STATUS_FAULTED;
        double rate = k ? change / last : 0.0;
        if (k && rate >= 0.9)
            return RW_STATUS_OUT_OF_RANGE; // does not converge at this step
        for (int64_t i = 0; i < size; i++) {
            y[i] += self->correction[i];
            self->difference[i] += self->correction[i];
        }
        if (change == 0.0 || (k && rate / (1.0 - rate) * change < tolerance) ||
            change < 1e-3 * tolerance) {
            *iterations = k + 1;
            return RW_STATUS_OK;
        }
        last = change;
    }
    return RW_STATUS_OUT_OF_RANGE;
}

// After an accepted step: the differences, and the order and step that promise the longest stride.
static void update(rw_dae_bdf* self, int iterations, double error, double longest) {
    int order = (int)self->control[ORDER];
    int64_t size = self->integrate->size;
    for (int64_t i = 0; i < size; i++) {
        double d = self->difference[i];
        *entry(self, order + 2, i) = d - *entry(self, order + 1, i);
        *entry(self, order + 1, i) = d;
        for (int k = order; k >= 0; k--)
            *entry(self, k, i) += *entry(self, k + 1, i);
    }
    self->control[EQUAL] += 1.0;
    if (self->control[EQUAL] < order + 1)
        return;
    double lower = 0.0, higher = 0.0;
    if (order > 1) {
        for (int64_t i = 0; i < size; i++)
            self->residual[i] = *entry(self, order, i);
        lower = norm(self, self->residual, error_constant(order - 1));
    }
    if (order < RW_DAE_BDF_ORDER_MAX) {
        for (int64_t i = 0; i < size; i++)
            self->residual[i] = *entry(self, order + 2, i);
        higher = norm(self, self->residual, error_constant(order + 1));
    }
    double best = inverse_root(error, order + 1);
    int next = order;
    if (order > 1 && inverse_root(lower, order) > best) {
        best = inverse_root(lower, order);
        next = order - 1;
    }
    if (order < RW_DAE_BDF_ORDER_MAX && inverse_root(higher, order + 2) > best) {
        best = inverse_root(higher, order + 2);
        next = order + 1;
    }
    self->control[ORDER] = next;
    double safety = 0.9 * (2.0 * NEWTON_MAX + 1) / (2.0 * NEWTON_MAX + iterations);
    double factor = fmin(5.0, safety * best);
    // Never beyond the world's step, and an even part of it: steps that stay equal let the order rise.
    double wanted = fmin(self->control[STEP] * factor, longest);
    factor = longest / ceil(longest / wanted * (1.0 - 1e-9)) / self->control[STEP];
    if (factor >= 1.2 || factor < 0.9)
        change_step(self, next, factor);
    else if (next != order)
        self->control[EQUAL] = 0.0;
}

rw_status rw_dae_bdf_step(rw_dae_bdf* self, rw_step* step) {
    rw_dae_integrate* in = self->integrate;
    double done = 0.0, end = step->h;
    RW_TRY(start(self, step));
    for (int count = 0; done < end; count++) {
        int order = (int)self->control[ORDER], iterations = 0;
        double rest = end - done, h = self->control[STEP];
        if (count > INNER_STEPS_MAX || h < STEP_FLOOR * end)
            return rw_dae_integrate_fault(in, step, in->y, "dae bdf",
                                          "the tolerance asks for steps that are too small");
        double parts = ceil(rest / h * (1.0 - 1e-9)); // equal steps up to the end
        double used = rest / fmax(parts, 1.0);
        if (fabs(used / h - 1.0) > 1e-9)
            change_step(self, order, used / h);
        self->control[STEP] = used;
        bool last = parts <= 1.0;
        double t = last ? step->time_s + end : step->time_s + done + used;
        rw_status status = newton(self, step, t, order, &iterations);
        if (status == RW_STATUS_CANCELLED)
            return status;
        if (status != RW_STATUS_OK) {
            change_step(self, order, 0.5);
            continue;
        }
        set_scale(self, in->stage);
        double error = norm(self, self->difference, error_constant(order));
        if (error > 1.0) {
            double safety = 0.9 * (2.0 * NEWTON_MAX + 1) / (2.0 * NEWTON_MAX + iterations);
            change_step(self, order, fmax(0.2, safety * inverse_root(error, order + 1)));
            continue;
        }
        update(self, iterations, error, end);
        // The projected state is the solution; the differences keep their own.
        memcpy(in->y, in->stage, (size_t)in->size * sizeof *in->y);
        status = rw_dae_integrate_finish(in, in->y, used);
        if (status != RW_STATUS_OK)
            return rw_dae_integrate_fault(in, step, in->y, "dae bdf",
                                          "the joints can no longer be met");
        for (int64_t i = 0; i < in->size; i++)
            *entry(self, 0, i) = in->y[i];
        done = last ? end : done + used;
    }
    self->control[END_TIME] = step->time_s + step->h;
    return RW_STATUS_OK;
}
