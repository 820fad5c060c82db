#include "solvers/model/drive.h"

#include <math.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/quat.h"
#include "solvers/math/so3.h"
#include "solvers/math/trig.h"

#define TWO_PI 6.283185307179586476925287
#define WIDTH_MAX 6

// ---- One input ----

size_t rw_drive_slope_bytes(rw_input_kind kind, size_t count, int32_t width) {
    // The slopes, and one column for the elimination.
    return kind == RW_INPUT_CUBIC ? count * ((size_t)width + 1) * sizeof(double) : 0;
}

// The natural spline in terms of its slopes m: with h_i = t_{i+1} - t_i, d_i the chord slopes,
//   2 m_0 + m_1 = 3 d_0
//   h_i m_{i-1} + 2 (h_{i-1} + h_i) m_i + h_{i-1} m_{i+1} = 3 (h_i d_{i-1} + h_{i-1} d_i)
//   m_{n-2} + 2 m_{n-1} = 3 d_{n-2}
// solved by elimination without pivoting (the matrix is diagonally dominant).
static void fit_natural(const double* t, const double* y, int64_t n, int64_t width, double* m,
                        double* upper) {
    for (int64_t k = 0; k < width; k++) {
        for (int64_t i = 0; i < n; i++) {
            double h0 = i > 0 ? t[i] - t[i - 1] : 0;
            double h1 = i < n - 1 ? t[i + 1] - t[i] : 0;
            double d0 = i > 0 ? (y[i * width + k] - y[(i - 1) * width + k]) / h0 : 0;
            double d1 = i < n - 1 ? (y[(i + 1) * width + k] - y[i * width + k]) / h1 : 0;
            double below = i == 0 ? 0 : i == n - 1 ? 1 : h1;
            double above = i == 0 ? 1 : i == n - 1 ? 0 : h0;
            double diagonal = i == 0 || i == n - 1 ? 2 : 2 * (h0 + h1);
            double right = i == 0 ? 3 * d1 : i == n - 1 ? 3 * d0 : 3 * (h1 * d0 + h0 * d1);
            double pivot = i > 0 ? diagonal - below * upper[i - 1] : diagonal;
            upper[i] = above / pivot;
            m[i * width + k] = (right - (i > 0 ? below * m[(i - 1) * width + k] : 0)) / pivot;
        }
        for (int64_t i = n - 2; i >= 0; i--) {
            m[i * width + k] -= upper[i] * m[(i + 1) * width + k];
        }
    }
}

void rw_drive_fit_input(rw_input* input) {
    const rw_input_desc* desc = &input->desc;
    if (desc->kind != RW_INPUT_CUBIC) {
        return;
    }
    size_t n = desc->time.count, width = (size_t)input->width;
    if (desc->slope.count > 0) {
        memcpy(input->slope, desc->slope.data, n * width * sizeof(double));
    } else {
        fit_natural(desc->time.data, desc->value.data, (int64_t)n, (int64_t)width, input->slope,
                    input->slope + n * width);
    }
}

// The last sample that is not later than `t`; -1 before the first.
static int64_t sample_before(rw_doubles time, double t) {
    int64_t low = -1, high = (int64_t)time.count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (time.data[middle] <= t) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static void evaluate_sine(const rw_input* input, double t, double* value, double* rate,
                          double* acceleration) {
    const rw_input_desc* desc = &input->desc;
    // Whole turns go first, so that large times keep their precision.
    double turns = desc->frequency * t;
    turns -= floor(turns);
    double sine, cosine;
    rw_trig_sincos(TWO_PI * turns + desc->phase, &sine, &cosine);
    double omega = TWO_PI * desc->frequency;
    for (int32_t k = 0; k < input->width; k++) {
        double amplitude = desc->amplitude.data[k];
        double offset = desc->offset.count > 0 ? desc->offset.data[k] : 0;
        value[k] = offset + amplitude * sine;
        if (rate != NULL) {
            rate[k] = amplitude * omega * cosine;
        }
        if (acceleration != NULL) {
            acceleration[k] = -amplitude * omega * omega * sine;
        }
    }
}

void rw_drive_evaluate_input(const rw_input* input, double t, double* value, double* rate,
                             double* acceleration) {
    const rw_input_desc* desc = &input->desc;
    if (desc->kind == RW_INPUT_SINE) {
        evaluate_sine(input, t, value, rate, acceleration);
        return;
    }
    int64_t n = (int64_t)desc->time.count, width = input->width;
    int64_t i = sample_before(desc->time, t);
    bool held = i < 0 || i >= n - 1;
    int64_t row = i < 0 ? 0 : held ? n - 1 : i;
    const double* y0 = desc->value.data + row * width;
    for (int64_t k = 0; k < width; k++) {
        double v = y0[k], r = 0, a = 0;
        if (!held) {
            double h = desc->time.data[i + 1] - desc->time.data[i];
            double x = t - desc->time.data[i];
            double chord = (y0[width + k] - v) / h;
            if (desc->kind == RW_INPUT_PIECEWISE_LINEAR) {
                r = chord;
                v += x * chord;
            } else {
                double m0 = input->slope[i * width + k], m1 = input->slope[(i + 1) * width + k];
                double c2 = (3 * chord - 2 * m0 - m1) / h;
                double c3 = (m0 + m1 - 2 * chord) / (h * h);
                v += x * (m0 + x * (c2 + x * c3));
                r = m0 + x * (2 * c2 + x * 3 * c3);
                a = 2 * c2 + 6 * c3 * x;
            }
        }
        value[k] = v;
        if (rate != NULL) {
            rate[k] = r;
        }
        if (acceleration != NULL) {
            acceleration[k] = a;
        }
    }
}

// ---- The drive ----

static rw_status fit(rw_alloc* alloc, void* slot, size_t count, size_t item_bytes) {
    void* old;
    memcpy(&old, slot, sizeof old);
    if (old != NULL && rw_alloc_size(old) >= count * item_bytes) {
        return RW_STATUS_OK;
    }
    void* fresh = rw_alloc_array(alloc, count, item_bytes);
    if (fresh == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_alloc_free(alloc, old);
    memcpy(slot, &fresh, sizeof fresh);
    return RW_STATUS_OK;
}

rw_status rw_drive_prepare(rw_drive* drive, const rw_model* model) {
    rw_alloc* alloc = model->alloc;
    size_t coordinates = (size_t)model->joints.coordinate_count;
    size_t attachments = (size_t)model->attachments.count;
    size_t bodies = (size_t)model->bodies.count;
    RW_TRY(fit(alloc, &drive->joint_target, coordinates, sizeof(double)));
    RW_TRY(fit(alloc, &drive->joint_target_rate, coordinates, sizeof(double)));
    RW_TRY(fit(alloc, &drive->joint_target_acceleration, coordinates, sizeof(double)));
    RW_TRY(fit(alloc, &drive->attachment_target, attachments, sizeof(rw_frame)));
    RW_TRY(fit(alloc, &drive->attachment_velocity, attachments, 6 * sizeof(double)));
    RW_TRY(fit(alloc, &drive->body_offset, bodies, 6 * sizeof(double)));
    RW_TRY(fit(alloc, &drive->body_offset_rate, bodies, 6 * sizeof(double)));
    RW_TRY(fit(alloc, &drive->body_is_driven, bodies, sizeof(uint8_t)));
    return fit(alloc, &drive->force_value, (size_t)model->forces.count, 6 * sizeof(double));
}

void rw_drive_finish(rw_drive* drive, rw_alloc* alloc) {
    rw_alloc_free(alloc, drive->joint_target);
    rw_alloc_free(alloc, drive->joint_target_rate);
    rw_alloc_free(alloc, drive->joint_target_acceleration);
    rw_alloc_free(alloc, drive->attachment_target);
    rw_alloc_free(alloc, drive->attachment_velocity);
    rw_alloc_free(alloc, drive->body_offset);
    rw_alloc_free(alloc, drive->body_offset_rate);
    rw_alloc_free(alloc, drive->body_is_driven);
    rw_alloc_free(alloc, drive->force_value);
    memset(drive, 0, sizeof *drive);
}

static void clear(double* values, int32_t count) {
    if (count > 0) {
        memset(values, 0, (size_t)count * sizeof *values);
    }
}

// Zero everywhere; inputs are summed on it before the scene's values come in.
static void begin(rw_drive* drive, const rw_model* model, double time_s) {
    drive->time_s = time_s;
    memcpy(drive->gravity, model->gravity, sizeof drive->gravity);
    memcpy(drive->wind, model->wind, sizeof drive->wind);
    clear(drive->joint_target, model->joints.coordinate_count);
    clear(drive->joint_target_rate, model->joints.coordinate_count);
    clear(drive->joint_target_acceleration, model->joints.coordinate_count);
    clear(drive->attachment_velocity, 6 * model->attachments.count);
    clear(drive->body_offset, 6 * model->bodies.count);
    clear(drive->body_offset_rate, 6 * model->bodies.count);
    clear(drive->force_value, 6 * model->forces.count);
    for (int32_t i = 0; i < model->bodies.count; i++) {
        drive->body_is_driven[i] = 0;
    }
    for (int32_t i = 0; i < model->attachments.count; i++) {
        // The sum of the inputs' six numbers lies here until finish_attachments.
        drive->attachment_target[i] = (rw_frame){0};
    }
}

static void add(double* to, const double* values, int32_t count) {
    for (int32_t k = 0; k < count; k++) {
        to[k] += values[k];
    }
}

static void add_input(rw_drive* drive, const rw_model* model, const rw_input* input) {
    double value[WIDTH_MAX] = {0}, rate[WIDTH_MAX] = {0}, acceleration[WIDTH_MAX] = {0};
    rw_drive_evaluate_input(input, drive->time_s, value, rate, acceleration);
    int32_t index = input->index, width = input->width;
    switch (input->target) {
    case RW_TARGET_WIND:
        add(drive->wind, value, 3);
        break;
    case RW_TARGET_GRAVITY:
        add(drive->gravity, value, 3);
        break;
    case RW_TARGET_JOINT: {
        int32_t first = model->joints.items[index].coordinate_first;
        add(drive->joint_target + first, value, width);
        add(drive->joint_target_rate + first, rate, width);
        add(drive->joint_target_acceleration + first, acceleration, width);
        break;
    }
    case RW_TARGET_ATTACHMENT:
        add(drive->attachment_target[index].position, value, 3);
        add(drive->attachment_target[index].rotation, value + 3, width - 3);
        add(drive->attachment_velocity + 6 * index, rate, width);
        break;
    case RW_TARGET_BODY:
        add(drive->body_offset + 6 * index, value, width);
        add(drive->body_offset_rate + 6 * index, rate, width);
        drive->body_is_driven[index] = 1;
        break;
    case RW_TARGET_FORCE:
        add(drive->force_value + 6 * index, value, width);
        break;
    }
}

// A spherical position target: the motor's quaternion turned by the inputs' rotation vector v, in
// the child's axes: q = q0 exp(v), omega = Gamma(v) v', omega' = Gamma(v) v'' + dGamma(v)[v'] v'.
static void finish_spherical(const rw_motor_desc* motor, double* target, double* rate,
                             double* acceleration) {
    rw_quat base = motor->target_count == 4 ? rw_quat_load(motor->target) : rw_quat_identity();
    rw_vec3 v = rw_vec3_load(target), v1 = rw_vec3_load(rate), v2 = rw_vec3_load(acceleration);
    rw_mat3 derivative = rw_so3_gamma_derivative(v, v1);
    rw_quat_store(target, rw_so3_boxplus(base, v));
    rw_vec3_store(rate, rw_so3_gamma_apply(v, v1));
    rw_vec3_store(acceleration,
                  rw_vec3_add(rw_so3_gamma_apply(v, v2), rw_mat3_apply(&derivative, v1)));
}

static void finish_joints(rw_drive* drive, const rw_model* model) {
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* joint = &model->joints.items[i];
        const rw_motor_desc* motor = &joint->desc.motor;
        int32_t first = joint->coordinate_first;
        bool of_position = motor->mode == RW_MOTOR_POSITION || motor->mode == RW_MOTOR_NONE;
        if (joint->desc.type == RW_JOINT_SPHERICAL && of_position) {
            finish_spherical(motor, drive->joint_target + first, drive->joint_target_rate + first,
                             drive->joint_target_acceleration + first);
        } else {
            add(drive->joint_target + first, motor->target, (int32_t)motor->target_count);
        }
    }
}

// The held frame moves by the displacement d and turns by the rotation vector v, both in the axes of
// the body (or the world): p = p0 + d, R = exp(v) R0, so its angular velocity there is Gamma(-v) v'.
static void finish_attachments(rw_drive* drive, const rw_model* model) {
    for (int32_t i = 0; i < model->attachments.count; i++) {
        const rw_frame* held = &model->attachments.items[i].target;
        rw_frame* target = &drive->attachment_target[i];
        add(target->position, held->position, 3);
        rw_vec3 v = rw_vec3_load(target->rotation);
        if (rw_vec3_norm_sq(v) == 0) {
            memcpy(target->rotation, held->rotation, sizeof target->rotation);
        } else {
            rw_quat q = rw_quat_mul(rw_so3_exp(v), rw_quat_load(held->rotation));
            rw_quat_store(target->rotation, rw_quat_normalize(q));
        }
        double* angular = drive->attachment_velocity + 6 * i + 3;
        rw_vec3_store(angular, rw_so3_gamma_apply(rw_vec3_neg(v), rw_vec3_load(angular)));
    }
}

void rw_drive_evaluate(rw_drive* drive, const rw_model* model, double time_s) {
    begin(drive, model, time_s);
    for (int32_t i = 0; i < model->inputs.count; i++) {
        add_input(drive, model, &model->inputs.items[i]);
    }
    finish_joints(drive, model);
    finish_attachments(drive, model);
}
