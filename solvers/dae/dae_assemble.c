#include "solvers/dae/dae_assemble.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/dae/dae_effort.h"
#include "solvers/math/small_spd.h"
#include "solvers/math/so3.h"

#define ROUNDS 200
// An angle that projection can't turn back to: dot-1 rows have a second root at half a turn.
#define ANGLE_TOLERANCE 1e-6

static const rw_joint_pose* pose_of(const rw_dae_system* s, int32_t body) {
    return &s->pose[body < 0 ? s->body_count : body];
}

static rw_status check_assembly(const rw_dae_system* s, double tolerance, rw_error* error) {
    int32_t worst_joint = -1;
    double worst = 0.0, gap[2] = {0};
    for (int32_t k = 0; k < s->joint_count; k++) {
        double violation[2];
        if (s->model->joints.items[k].desc.compliance > 0.0)
            continue;
        rw_joint_geometry_violation(&s->joints[k], &s->frames[k], violation);
        double size = fmax(violation[0] / (100.0 * tolerance), violation[1] / ANGLE_TOLERANCE);
        if (size > 1.0 && !(size <= worst)) {
            worst = size;
            worst_joint = k;
            gap[0] = violation[0];
            gap[1] = violation[1];
        }
    }
    if (worst_joint < 0)
        return RW_STATUS_OK;
    char path[32];
    snprintf(path, sizeof path, "joints[%d]", (int)worst_joint);
    RW_FAIL(error, INVALID_ARGUMENT, path,
            "joint \"%s\" can't be assembled: its frames stay %.3g m and %.3g rad apart",
            s->model->joints.items[worst_joint].desc.name, gap[0], gap[1]);
}

rw_status rw_dae_assemble_project(rw_dae_system* s, double* y, double tolerance, rw_error* error) {
    rw_dae_system_load(s, y);
    if (rw_dae_system_error(s) > tolerance &&
        rw_dae_system_project(s, y, tolerance, ROUNDS, false, NULL) != RW_STATUS_OK) {
        RW_TRY(check_assembly(s, tolerance, error));
        RW_FAIL(error, INVALID_ARGUMENT, "joints", "can't be assembled from here");
    }
    RW_TRY(check_assembly(s, tolerance, error));
    // Velocities: only when some row is off by more than rounding, so that bits are kept.
    double speed = 1.0, off = 0.0;
    for (int32_t b = 0; b < s->body_count; b++)
        speed = fmax(speed, fmax(rw_vec3_max_abs(s->pose[b].velocity),
                                 rw_vec3_max_abs(s->pose[b].angular)));
    if (rw_dae_system_factor(s) != RW_STATUS_OK)
        RW_FAIL(error, INVALID_ARGUMENT, "joints", "their matrix can't be factored here");
    for (int32_t k = 0; k < s->joint_count; k++)
        for (int32_t i = 0; i < s->joints[k].row_count; i++)
            off = fmax(off, fabs(rw_joint_geometry_row_rate(&s->rows[6 * (int64_t)k + i],
                                                       pose_of(s, s->joints[k].parent),
                                                       pose_of(s, s->joints[k].child))));
    if (off > 1e-12 * speed || s->coupling_count)
        (void)rw_dae_system_project_velocity(s, y);
    rw_dae_system_load(s, y);
    return RW_STATUS_OK;
}

// ---- Setting a joint -----------------------------------------------------------------------------

// Marks the dynamic bodies that hang on the joint's child away from the joint. Returns false when
// they also hang on its parent, the world, or a driven body: a loop.
static bool mark_branch(const rw_dae_system* s, int32_t joint, bool* marked) {
    const rw_joint_geometry* held = &s->joints[joint];
    if (s->dynamic_of[held->child] < 0)
        return false;
    marked[held->child] = true;
    bool grew = true, open = true;
    while (grew) {
        grew = false;
        for (int32_t k = 0; k < s->joint_count; k++) {
            int32_t a = s->joints[k].parent, b = s->joints[k].child;
            bool has_a = a >= 0 && marked[a], has_b = marked[b];
            if (k == joint || has_a == has_b)
                continue;
            int32_t other = has_a ? b : a;
            if (other < 0 || s->dynamic_of[other] < 0 || other == held->parent) {
                open = false;
                continue;
            }
            marked[other] = grew = true;
        }
    }
    return open;
}

// Desired pose of the child's joint frame relative to the parent's.
static void joint_transform(const rw_joint_geometry* joint, const double* c, rw_vec3* shift,
                            rw_quat* turn) {
    *shift = rw_vec3_zero();
    *turn = rw_quat_identity();
    switch (joint->type) {
    case RW_JOINT_REVOLUTE:
        *turn = rw_so3_exp((rw_vec3){0, 0, c[0]});
        break;
    case RW_JOINT_PRISMATIC:
        shift->z = c[0];
        break;
    case RW_JOINT_CYLINDRICAL:
        shift->z = c[0];
        *turn = rw_so3_exp((rw_vec3){0, 0, c[1]});
        break;
    case RW_JOINT_PLANAR:
        *shift = (rw_vec3){c[0], c[1], 0};
        *turn = rw_so3_exp((rw_vec3){0, 0, c[2]});
        break;
    case RW_JOINT_UNIVERSAL:
        *turn = rw_quat_mul(rw_so3_exp((rw_vec3){0, 0, c[0]}), rw_so3_exp((rw_vec3){c[1], 0, 0}));
        break;
    case RW_JOINT_SPHERICAL:
        *turn = rw_quat_normalize(rw_quat_load(c));
        break;
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        break;
    }
}

// Moves the marked bodies as one, so that the joint's coordinates become `c`. Velocities turn along.
static void move_branch(rw_dae_system* s, double* y, int32_t joint, const double* c,
                        const bool* marked) {
    const rw_joint_geometry* j = &s->joints[joint];
    const rw_joint_frames* f = &s->frames[joint];
    rw_vec3 shift;
    rw_quat turn;
    joint_transform(j, c, &shift, &turn);
    // Rotation that takes the child's joint frame where it belongs, about its origin.
    rw_mat3 goal = rw_mat3_mul(f->parent_axes, rw_quat_to_mat3(turn));
    rw_mat3 delta = rw_mat3_mul_transpose(goal, f->child_axes);
    rw_quat q = rw_quat_from_mat3(&delta);
    const rw_joint_pose *parent = pose_of(s, j->parent), *child = pose_of(s, j->child);
    rw_vec3 pivot = rw_vec3_add(child->position, f->child_arm);
    rw_vec3 target = rw_vec3_add(rw_vec3_add(parent->position, f->parent_arm),
                                 rw_mat3_apply(&f->parent_axes, shift));
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        double* x = y + RW_DAE_WIDTH * (int64_t)d;
        if (!marked[s->body_of[d]])
            continue;
        rw_vec3 arm = rw_quat_rotate(q, rw_vec3_sub(rw_vec3_load(x), pivot));
        rw_vec3_store(x, rw_vec3_add(target, arm));
        rw_quat_store(x + 3, rw_quat_normalize(rw_quat_mul(q, rw_quat_load(x + 3))));
        rw_vec3_store(x + 7, rw_quat_rotate(q, rw_vec3_load(x + 7)));
    }
}

// Adds to the marked bodies the twist that gives the joint its rates.
static void spin_branch(rw_dae_system* s, double* y, int32_t joint, const double* rate,
                        const bool* marked) {
    const rw_joint_geometry* j = &s->joints[joint];
    const rw_joint_frames* f = &s->frames[joint];
    const rw_joint_pose *parent = pose_of(s, j->parent), *child = pose_of(s, j->child);
    rw_joint_row rows[3];
    rw_joint_geometry_rates(j, f, rows);
    // Twist of the child relative to the parent that has these rates and no others: for the types
    // here, forces rows are translations along n, torque rows turns about n.
    rw_vec3 slide = rw_vec3_zero(), spin = rw_vec3_zero();
    for (int32_t i = 0; i < j->rate_count; i++) {
        rw_vec3 n = rw_vec3_load(rows[i].child), w = rw_vec3_load(rows[i].child + 3);
        if (rw_vec3_norm_sq(n) > 0.5)
            slide = rw_vec3_add_scaled(slide, rate[i], n);
        else
            spin = rw_vec3_add_scaled(spin, rate[i], w);
    }
    // The child's frame origin moves with the parent's material point, plus the slide.
    rw_vec3 pivot = rw_vec3_add(child->position, f->child_arm);
    rw_vec3 omega = rw_vec3_add(parent->angular, spin);
    rw_vec3 at = rw_vec3_add(
        rw_vec3_add(parent->velocity,
                    rw_vec3_cross(parent->angular, rw_vec3_sub(pivot, parent->position))),
        slide);
    rw_vec3 change = rw_vec3_sub(omega, child->angular);
    rw_vec3 now = rw_vec3_add(child->velocity, rw_vec3_cross(child->angular, f->child_arm));
    rw_vec3 push = rw_vec3_sub(at, now);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int32_t b = s->body_of[d];
        double* x = y + RW_DAE_WIDTH * (int64_t)d;
        if (!marked[b])
            continue;
        rw_vec3 arm = rw_vec3_sub(s->pose[b].position, pivot);
        rw_vec3 v = rw_vec3_add(push, rw_vec3_cross(change, arm));
        rw_vec3_store(x + 7, rw_vec3_add(rw_vec3_load(x + 7), v));
        rw_vec3 w = rw_mat3_apply_transpose(&s->pose[b].rotation, change);
        rw_vec3_store(x + 10, rw_vec3_add(rw_vec3_load(x + 10), w));
    }
}

// What is left to the wanted coordinates, along the rate rows.
static double coordinate_gap(const rw_dae_system* s, int32_t joint, const double* wanted,
                             double* gap) {
    double now[4], worst = 0.0;
    rw_dae_effort_coordinate(s, joint, now);
    if (s->joints[joint].type == RW_JOINT_SPHERICAL) {
        rw_quat goal = rw_quat_normalize(rw_quat_load(wanted));
        rw_vec3_store(gap, rw_so3_boxminus(goal, rw_quat_load(now)));
    }
    unsigned mask = rw_joint_geometry_angle_mask(s->joints[joint].type);
    for (int32_t i = 0; i < s->joints[joint].rate_count; i++) {
        if (s->joints[joint].type != RW_JOINT_SPHERICAL)
            gap[i] = wanted[i] - (mask >> i & 1u ? rw_dae_effort_unwrap(now[i], wanted[i]) : now[i]);
        worst = fmax(worst, fabs(gap[i]));
    }
    return worst;
}

// Solves the KKT system with rows at `rhs_scale` x what is in s->row, and adds what makes the joint's
// rate rows change by `gap`: the smallest motion that does both. The result is in s->body.
static bool solve_held(rw_dae_system* s, int32_t joint, const double* gap, double* work,
                       double* work_row) {
    const rw_joint_geometry* j = &s->joints[joint];
    int32_t n = j->rate_count, size = 6 * s->dynamic_count;
    rw_joint_row rows[3];
    rw_joint_geometry_rates(j, &s->frames[joint], rows);
    double a[9], b[3];
    memset(s->body, 0, (size_t)size * sizeof *s->body);
    rw_kkt_solve(s->kkt, s->body, s->row, s->parallel);
    memcpy(work, s->body, (size_t)size * sizeof *work);
    for (int32_t i = 0; i < n; i++) {
        memset(s->body, 0, (size_t)size * sizeof *s->body);
        memset(work_row, 0, (size_t)s->row_count * sizeof *work_row);
        rw_dae_system_add_effort(s, joint, &rows[i], 1.0);
        rw_kkt_solve(s->kkt, s->body, work_row, s->parallel);
        memcpy(work + (size_t)size * (size_t)(i + 1), s->body, (size_t)size * sizeof *work);
    }
    int32_t parent = j->parent < 0 ? -1 : s->dynamic_of[j->parent], child = s->dynamic_of[j->child];
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k <= n; k++) {
            const double* x = work + (size_t)size * (size_t)k;
            double sum = 0.0;
            for (int c = 0; c < 6; c++) {
                sum += parent >= 0 ? rows[i].parent[c] * x[6 * parent + c] : 0.0;
                sum += child >= 0 ? rows[i].child[c] * x[6 * child + c] : 0.0;
            }
            if (k == 0)
                b[i] = gap[i] - sum;
            else
                a[i * n + k - 1] = sum;
        }
    if (rw_small_spd_factor(n, a, 1e-12) != 0)
        return false;
    rw_small_spd_solve(n, a, b);
    memcpy(s->body, work, (size_t)size * sizeof *work);
    for (int32_t i = 0; i < n; i++)
        for (int32_t q = 0; q < size; q++)
            s->body[q] += b[i] * work[(size_t)size * (size_t)(i + 1) + (size_t)q];
    return true;
}

static rw_status set_in_loop(rw_dae_system* s, double* y, int32_t joint, const double* coordinate,
                             double tolerance, double* work, double* work_row, rw_error* error) {
    for (int round = 0; round < ROUNDS; round++) {
        double gap[3];
        rw_dae_system_load(s, y);
        double left = coordinate_gap(s, joint, coordinate, gap);
        double off = rw_dae_system_errors(s, s->row);
        if (left <= tolerance && off <= tolerance)
            return check_assembly(s, tolerance, error);
        if (rw_dae_system_factor(s) != RW_STATUS_OK)
            break;
        for (int32_t i = 0; i < s->row_count; i++)
            s->row[i] = -s->row[i];
        // Long ways go in parts, so that the mechanism stays on its branch.
        double part = left > 0.1 ? 0.1 / left : 1.0;
        for (int i = 0; i < 3; i++)
            gap[i] *= part;
        if (!solve_held(s, joint, gap, work, work_row))
            break;
        rw_dae_system_move(s, y);
    }
    RW_FAIL(error, FAILED_PRECONDITION, "coordinate",
            "the mechanism can't be assembled with joint \"%s\" there",
            s->model->joints.items[joint].desc.name);
}

rw_status rw_dae_assemble_set_joint(rw_dae_system* s, double* y, int32_t joint,
                                    const double* coordinate, const double* rate, double tolerance,
                                    rw_arena* scratch, rw_error* error) {
    int32_t count = s->joints[joint].rate_count;
    bool* marked = rw_arena_array(scratch, (size_t)s->body_count + 1, sizeof *marked);
    double* work = rw_arena_array(scratch, 24 * (size_t)s->dynamic_count + 1, sizeof *work);
    double* work_row = rw_arena_array(scratch, (size_t)s->row_count + 1, sizeof *work_row);
    if (!marked || !work || !work_row)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to set the joint");
    bool open = mark_branch(s, joint, marked);
    rw_dae_system_load(s, y);
    if (coordinate && count) {
        if (open)
            move_branch(s, y, joint, coordinate, marked);
        else
            RW_TRY(set_in_loop(s, y, joint, coordinate, tolerance, work, work_row, error));
        rw_dae_system_load(s, y);
        unsigned mask = rw_joint_geometry_angle_mask(s->joints[joint].type);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1u)
                s->angle[3 * (int64_t)joint + i] = coordinate[i];
    }
    if (rate && count && open) {
        spin_branch(s, y, joint, rate, marked);
    } else if (rate && count) {
        double gap[3];
        if (rw_dae_system_factor(s) != RW_STATUS_OK)
            RW_FAIL(error, FAILED_PRECONDITION, "rate", "the joints' matrix can't be factored here");
        rw_joint_row rows[3];
        rw_joint_geometry_rates(&s->joints[joint], &s->frames[joint], rows);
        for (int32_t i = 0; i < count; i++)
            gap[i] = rate[i] - rw_joint_geometry_row_rate(&rows[i], pose_of(s, s->joints[joint].parent),
                                                     pose_of(s, s->joints[joint].child));
        rw_dae_system_row_rates(s, s->row);
        for (int32_t i = 0; i < s->row_count; i++)
            s->row[i] = -s->row[i];
        if (!solve_held(s, joint, gap, work, work_row))
            RW_FAIL(error, FAILED_PRECONDITION, "rate", "joint \"%s\" can't move from here",
                    s->model->joints.items[joint].desc.name);
        rw_dae_system_push(s, y);
    }
    rw_dae_system_load(s, y);
    return RW_STATUS_OK;
}
