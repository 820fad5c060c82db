#include "solvers/dae/dae_effort.h"

#include <math.h>

#include "solvers/math/so3.h"
#include "solvers/math/trig.h"

#define TWO_PI 6.283185307179586
#define STOP_DAMPING_RATIO 2.2

static bool has_limit(const rw_joint_desc* d) {
    return d->has_lower_limit || d->has_upper_limit || d->has_swing_limit ||
           d->has_twist_lower_limit || d->has_twist_upper_limit;
}

bool rw_dae_effort_has(const rw_joint_desc* d) {
    return d->motor.mode != RW_MOTOR_NONE || d->damping > 0.0 || has_limit(d);
}

bool rw_dae_effort_any(const rw_model* model) {
    for (int32_t k = 0; k < model->joints.count; k++)
        if (rw_dae_effort_has(&model->joints.items[k].desc))
            return true;
    return false;
}

double rw_dae_effort_unwrap(double raw, double reference) {
    return raw + TWO_PI * floor((reference - raw) / TWO_PI + 0.5);
}

void rw_dae_effort_coordinate(const rw_dae_system* s, int32_t joint, double* values) {
    const rw_joint_geometry* j = &s->joints[joint];
    rw_joint_geometry_coordinate(j, &s->frames[joint], values);
    unsigned mask = rw_joint_geometry_angle_mask(j->type);
    for (int i = 0; mask; i++, mask >>= 1)
        if (mask & 1u)
            values[i] = rw_dae_effort_unwrap(values[i], s->angle[3 * (int64_t)joint + i]);
}

static double clip(double effort, const rw_motor_desc* motor) {
    if (!motor->has_max_effort)
        return effort;
    return fmin(fmax(effort, -motor->max_effort), motor->max_effort);
}

// The motor's effort per rate from coordinates and rates.
static void motor_efforts(rw_dae_system* s, int32_t joint, const double* coordinate,
                          const double* rate, double* effort) {
    const rw_joint* from = &s->model->joints.items[joint];
    const rw_motor_desc* motor = &from->desc.motor;
    const double* target = s->drive.joint_target + from->coordinate_first;
    int32_t count = s->joints[joint].rate_count;
    bool ball = s->joints[joint].type == RW_JOINT_SPHERICAL;
    double gap[4] = {0};
    if (motor->mode == RW_MOTOR_POSITION && ball) {
        rw_quat goal = rw_quat_normalize(rw_quat_load(target));
        rw_vec3_store(gap, rw_so3_boxminus(goal, rw_quat_load(coordinate)));
    } else if (motor->mode == RW_MOTOR_POSITION) {
        for (int32_t i = 0; i < count; i++)
            gap[i] = target[i] - coordinate[i];
    }
    for (int32_t i = 0; i < count; i++) {
        double e = 0.0;
        switch (motor->mode) {
        case RW_MOTOR_POSITION:
            e = motor->stiffness * gap[i] - motor->damping * rate[i];
            break;
        case RW_MOTOR_VELOCITY:
            e = motor->damping * (target[i] - rate[i]);
            break;
        case RW_MOTOR_EFFORT:
            e = target[i];
            break;
        case RW_MOTOR_NONE:
            break;
        }
        effort[i] = clip(e, motor);
        bool free = effort[i] == e; // a clipped motor has no stiffness
        int32_t r = from->rate_first + i;
        if (free && motor->mode == RW_MOTOR_POSITION)
            s->stiffness[r] += motor->stiffness;
        if (free && (motor->mode == RW_MOTOR_POSITION || motor->mode == RW_MOTOR_VELOCITY))
            s->damping[r] += motor->damping;
    }
}

// The stop's push along `row` when the coordinate is `depth` beyond its limit and goes deeper at
// `speed`; `sign` +1 pushes the coordinate up.
static double stop_effort(rw_dae_system* s, int32_t joint, const rw_joint_row* row, double depth,
                          double speed, double sign) {
    if (!(depth > 0.0))
        return 0.0;
    double mobility = rw_dae_system_mobility(s, joint, row);
    if (!(mobility > 0.0))
        return 0.0;
    double w = s->stop_frequency;
    const rw_joint* from = &s->model->joints.items[joint];
    for (int32_t i = 0; i < from->rate_count; i++) { // of a ball: along all three, more than enough
        s->stiffness[from->rate_first + i] += w * w / mobility;
        s->damping[from->rate_first + i] += 2.0 * STOP_DAMPING_RATIO * w / mobility;
    }
    double push = (w * w * depth + 2.0 * STOP_DAMPING_RATIO * w * speed) / mobility;
    return push > 0.0 ? sign * push : 0.0;
}

static double scalar_stop(rw_dae_system* s, int32_t joint, const rw_joint_row* row, bool has_lower,
                          double lower, bool has_upper, double upper, double value, double rate) {
    if (has_lower && value < lower)
        return stop_effort(s, joint, row, lower - value, -rate, 1.0);
    if (has_upper && value > upper)
        return stop_effort(s, joint, row, value - upper, rate, -1.0);
    return 0.0;
}

// Swing and twist limits of a ball joint (the angle between the z axes; 2 atan2(qz, qw) about z).
// `stop` receives torques along the child's joint axes. Both are singular at a swing of pi, swing
// also at 0, where it can't be beyond a limit.
static void ball_stops(rw_dae_system* s, int32_t joint, const double* q, const double* rate,
                       double* stop) {
    const rw_joint_desc* d = &s->model->joints.items[joint].desc;
    const rw_joint_frames* f = &s->frames[joint];
    rw_vec3 omega = rw_vec3_load(rate), g = rw_vec3_zero();
    if (d->has_swing_limit) {
        // z of the parent in the child's axes; swing grows about z_parent x z_child.
        rw_vec3 zi = rw_mat3_column(&f->parent_axes, 2);
        rw_vec3 z = rw_mat3_apply_transpose(&f->child_axes, zi);
        rw_vec3 axis = {z.y, -z.x, 0.0};
        double sine = rw_vec3_norm(axis), swing = rw_trig_atan2(sine, z.z);
        if (swing > d->swing_limit && sine > 1e-9) {
            g = rw_vec3_scale(axis, 1.0 / sine);
            rw_joint_row row = {{0}, {0}};
            rw_vec3 world = rw_mat3_apply(&f->child_axes, g);
            rw_vec3_store(row.child + 3, world);
            rw_vec3_store(row.parent + 3, rw_vec3_neg(world));
            double e = stop_effort(s, joint, &row, swing - d->swing_limit, rw_vec3_dot(g, omega),
                                   -1.0);
            rw_vec3_store(stop, rw_vec3_add_scaled(rw_vec3_load(stop), e, g));
        }
    }
    double size = q[0] * q[0] + q[3] * q[3];
    if ((d->has_twist_lower_limit || d->has_twist_upper_limit) && size > 1e-12) {
        double twist = 2.0 * rw_trig_atan2(q[3], q[0]);
        g = (rw_vec3){(q[3] * q[1] - q[0] * q[2]) / size, (q[0] * q[1] + q[3] * q[2]) / size, 1.0};
        rw_joint_row row = {{0}, {0}};
        rw_vec3 world = rw_mat3_apply(&f->child_axes, g);
        rw_vec3_store(row.child + 3, world);
        rw_vec3_store(row.parent + 3, rw_vec3_neg(world));
        double e = scalar_stop(s, joint, &row, d->has_twist_lower_limit, d->twist_lower_limit,
                               d->has_twist_upper_limit, d->twist_upper_limit, twist,
                               rw_vec3_dot(g, omega));
        rw_vec3_store(stop, rw_vec3_add_scaled(rw_vec3_load(stop), e, g));
    }
}

void rw_dae_effort_add(rw_dae_system* s) {
    for (int32_t k = 0; k < s->joint_count; k++) {
        const rw_joint* from = &s->model->joints.items[k];
        const rw_joint_desc* d = &from->desc;
        const rw_joint_geometry* joint = &s->joints[k];
        if (!joint->rate_count || !rw_dae_effort_has(d))
            continue;
        const rw_joint_row* rows = s->rates + 3 * (int64_t)k;
        const rw_joint_pose* parent = &s->pose[joint->parent < 0 ? s->body_count : joint->parent];
        const rw_joint_pose* child = &s->pose[joint->child];
        double coordinate[4], rate[3];
        double *effort = s->effort + from->rate_first, *stop = s->stop + from->rate_first;
        rw_dae_effort_coordinate(s, k, coordinate);
        for (int32_t i = 0; i < joint->rate_count; i++) {
            rate[i] = rw_joint_geometry_row_rate(&rows[i], parent, child);
            stop[i] = -d->damping * rate[i];
            s->stiffness[from->rate_first + i] = 0.0;
            s->damping[from->rate_first + i] = d->damping;
        }
        motor_efforts(s, k, coordinate, rate, effort);
        if (joint->type == RW_JOINT_SPHERICAL)
            ball_stops(s, k, coordinate, rate, stop);
        else if (joint->rate_count == 1)
            stop[0] += scalar_stop(s, k, &rows[0], d->has_lower_limit, d->lower_limit,
                                   d->has_upper_limit, d->upper_limit, coordinate[0], rate[0]);
        for (int32_t i = 0; i < joint->rate_count; i++)
            rw_dae_system_add_effort(s, k, &rows[i], effort[i] + stop[i]);
    }
}
