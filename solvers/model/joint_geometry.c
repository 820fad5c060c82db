#include "solvers/model/joint_geometry.h"

#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/math/trig.h"

// Rows and free rates per type; translations come first.
static const struct {
    int8_t translation, rotation, rates;
    uint8_t angles;
} type_table[RW_JOINT_TYPE_COUNT] = {
    [RW_JOINT_FIXED] = {3, 3, 0, 0},      [RW_JOINT_REVOLUTE] = {3, 2, 1, 1},
    [RW_JOINT_PRISMATIC] = {2, 3, 1, 0},  [RW_JOINT_CYLINDRICAL] = {2, 2, 2, 2},
    [RW_JOINT_PLANAR] = {1, 2, 3, 4},     [RW_JOINT_UNIVERSAL] = {3, 1, 2, 3},
    [RW_JOINT_SPHERICAL] = {3, 0, 3, 0},  [RW_JOINT_DISTANCE] = {1, 0, 0, 0},
};

void rw_joint_geometry_init(rw_joint_geometry* joint, const rw_joint_desc* desc, int32_t parent,
                       int32_t child, rw_vec3 parent_center, rw_vec3 child_center) {
    *joint = (rw_joint_geometry){.type = desc->type, .parent = parent, .child = child};
    joint->translation_count = type_table[desc->type].translation;
    joint->row_count = joint->translation_count + type_table[desc->type].rotation;
    joint->rate_count = type_table[desc->type].rates;
    joint->parent_anchor = rw_vec3_sub(rw_vec3_load(desc->parent_frame.position), parent_center);
    joint->child_anchor = rw_vec3_sub(rw_vec3_load(desc->child_frame.position), child_center);
    joint->parent_frame =
        rw_quat_to_mat3(rw_quat_normalize(rw_quat_load(desc->parent_frame.rotation)));
    joint->child_frame =
        rw_quat_to_mat3(rw_quat_normalize(rw_quat_load(desc->child_frame.rotation)));
    joint->distance = desc->distance;
}

unsigned rw_joint_geometry_angle_mask(rw_joint_type type) { return type_table[type].angles; }

void rw_joint_geometry_frames_at(const rw_joint_geometry* joint, const rw_joint_pose* parent,
                            const rw_joint_pose* child, rw_joint_frames* f) {
    f->parent_axes = rw_mat3_mul(parent->rotation, joint->parent_frame);
    f->child_axes = rw_mat3_mul(child->rotation, joint->child_frame);
    f->parent_arm = rw_mat3_apply(&parent->rotation, joint->parent_anchor);
    f->child_arm = rw_mat3_apply(&child->rotation, joint->child_anchor);
    f->gap = rw_vec3_sub(rw_vec3_add(child->position, f->child_arm),
                         rw_vec3_add(parent->position, f->parent_arm));
}

// The axes that the rotational rows multiply: v_i.a_j, v_i.b_j, a_i.b_j.
static const int8_t dot_parent[3] = {2, 2, 0}, dot_child[3] = {0, 1, 1};

// The parent axes onto which the sliding types project d: x and y, or the normal of PLANAR.
static int slide_axis(rw_joint_type type, int row) { return type == RW_JOINT_PLANAR ? 2 : row; }

static int is_point(const rw_joint_geometry* joint) { return joint->translation_count == 3; }

void rw_joint_geometry_error(const rw_joint_geometry* joint, const rw_joint_frames* f, double* phi) {
    if (is_point(joint)) {
        rw_vec3_store(phi, f->gap);
    } else if (joint->type == RW_JOINT_DISTANCE) {
        phi[0] = rw_vec3_norm(f->gap) - joint->distance;
    } else {
        for (int k = 0; k < joint->translation_count; k++)
            phi[k] = rw_vec3_dot(
                f->gap, rw_mat3_column(&f->parent_axes, slide_axis(joint->type, k)));
    }
    for (int k = joint->translation_count, r = 0; k < joint->row_count; k++, r++)
        phi[k] = rw_vec3_dot(rw_mat3_column(&f->parent_axes, dot_parent[r]),
                             rw_mat3_column(&f->child_axes, dot_child[r]));
}

// A row along the unit vector n: +n on the child at arm `child_arm`, -n on the parent at `arm`.
static inline void put_force_row(rw_joint_row* row, rw_vec3 n, rw_vec3 arm, rw_vec3 child_arm) {
    rw_vec3 p = rw_vec3_cross(n, arm), c = rw_vec3_cross(child_arm, n);
    *row = (rw_joint_row){{-n.x, -n.y, -n.z, p.x, p.y, p.z}, {n.x, n.y, n.z, c.x, c.y, c.z}};
}

// A row of pure rotation: +n on the child, -n on the parent.
static inline void put_torque_row(rw_joint_row* row, rw_vec3 n) {
    *row = (rw_joint_row){{0, 0, 0, -n.x, -n.y, -n.z}, {0, 0, 0, n.x, n.y, n.z}};
}

static inline rw_vec3 basis(int k) { return (rw_vec3){k == 0, k == 1, k == 2}; }

void rw_joint_geometry_jacobian(const rw_joint_geometry* joint, const rw_joint_frames* f,
                           rw_joint_row* rows) {
    if (is_point(joint)) {
        for (int k = 0; k < 3; k++)
            put_force_row(&rows[k], basis(k), f->parent_arm, f->child_arm);
    } else if (joint->type == RW_JOINT_DISTANCE) {
        rw_vec3 n = rw_vec3_normalize_or(f->gap, rw_mat3_column(&f->parent_axes, 2));
        put_force_row(&rows[0], n, f->parent_arm, f->child_arm);
    } else {
        // The direction turns with the parent: its arm reaches to the child's anchor.
        rw_vec3 arm = rw_vec3_add(f->parent_arm, f->gap);
        for (int k = 0; k < joint->translation_count; k++)
            put_force_row(&rows[k],
                          rw_mat3_column(&f->parent_axes, slide_axis(joint->type, k)), arm,
                          f->child_arm);
    }
    for (int k = joint->translation_count, r = 0; k < joint->row_count; k++, r++)
        put_torque_row(&rows[k],
                       rw_vec3_cross(rw_mat3_column(&f->child_axes, dot_child[r]),
                                     rw_mat3_column(&f->parent_axes, dot_parent[r])));
}

static inline rw_vec3 double_cross(rw_vec3 w, rw_vec3 a) {
    return rw_vec3_cross(w, rw_vec3_cross(w, a));
}

// d's velocity, and the part of its acceleration that velocities cause.
static void gap_motion(const rw_joint_frames* f, const rw_joint_pose* parent,
                       const rw_joint_pose* child, rw_vec3* rate, rw_vec3* centripetal) {
    rw_vec3 wp = rw_vec3_cross(parent->angular, f->parent_arm);
    rw_vec3 wc = rw_vec3_cross(child->angular, f->child_arm);
    *rate = rw_vec3_sub(rw_vec3_add(child->velocity, wc), rw_vec3_add(parent->velocity, wp));
    *centripetal = rw_vec3_sub(rw_vec3_cross(child->angular, wc),
                               rw_vec3_cross(parent->angular, wp));
}

// The velocity part of the second derivative of d.n for an axis n that turns with the parent.
static double slide_bias(rw_vec3 n, rw_vec3 w, rw_vec3 gap, rw_vec3 rate, rw_vec3 centripetal) {
    return rw_vec3_dot(centripetal, n) + 2.0 * rw_vec3_dot(rate, rw_vec3_cross(w, n)) +
           rw_vec3_dot(gap, double_cross(w, n));
}

void rw_joint_geometry_gamma(const rw_joint_geometry* joint, const rw_joint_frames* f,
                        const rw_joint_pose* parent, const rw_joint_pose* child, double* gamma) {
    rw_vec3 rate, centripetal, wi = parent->angular, wj = child->angular;
    gap_motion(f, parent, child, &rate, &centripetal);
    if (is_point(joint)) {
        rw_vec3_store(gamma, rw_vec3_neg(centripetal));
    } else if (joint->type == RW_JOINT_DISTANCE) {
        double length = rw_vec3_norm(f->gap);
        rw_vec3 n = rw_vec3_normalize_or(f->gap, rw_mat3_column(&f->parent_axes, 2));
        double along = rw_vec3_dot(n, rate);
        double across = rw_vec3_norm_sq(rate) - along * along;
        gamma[0] = -(rw_vec3_dot(n, centripetal) + (length > 0.0 ? across / length : 0.0));
    } else {
        for (int k = 0; k < joint->translation_count; k++)
            gamma[k] = -slide_bias(
                rw_mat3_column(&f->parent_axes, slide_axis(joint->type, k)), wi, f->gap, rate,
                centripetal);
    }
    for (int k = joint->translation_count, r = 0; k < joint->row_count; k++, r++) {
        rw_vec3 p = rw_mat3_column(&f->parent_axes, dot_parent[r]);
        rw_vec3 c = rw_mat3_column(&f->child_axes, dot_child[r]);
        rw_vec3 wp = rw_vec3_cross(wi, p), wc = rw_vec3_cross(wj, c);
        gamma[k] = -(rw_vec3_dot(rw_vec3_cross(wi, wp), c) + 2.0 * rw_vec3_dot(wp, wc) +
                     rw_vec3_dot(p, rw_vec3_cross(wj, wc)));
    }
}

// Angle of the child about the parent's z.
static double angle_about_z(const rw_joint_frames* f) {
    rw_vec3 x = rw_mat3_column(&f->child_axes, 0);
    return rw_trig_atan2(rw_vec3_dot(x, rw_mat3_column(&f->parent_axes, 1)),
                         rw_vec3_dot(x, rw_mat3_column(&f->parent_axes, 0)));
}

void rw_joint_geometry_coordinate(const rw_joint_geometry* joint, const rw_joint_frames* f,
                             double* values) {
    rw_vec3 z = rw_mat3_column(&f->parent_axes, 2);
    switch (joint->type) {
    case RW_JOINT_REVOLUTE:
        values[0] = angle_about_z(f);
        return;
    case RW_JOINT_PRISMATIC:
        values[0] = rw_vec3_dot(f->gap, z);
        return;
    case RW_JOINT_CYLINDRICAL:
        values[0] = rw_vec3_dot(f->gap, z);
        values[1] = angle_about_z(f);
        return;
    case RW_JOINT_PLANAR:
        values[0] = rw_vec3_dot(f->gap, rw_mat3_column(&f->parent_axes, 0));
        values[1] = rw_vec3_dot(f->gap, rw_mat3_column(&f->parent_axes, 1));
        values[2] = angle_about_z(f);
        return;
    case RW_JOINT_UNIVERSAL:
        values[0] = angle_about_z(f);
        values[1] = rw_trig_atan2(rw_vec3_dot(rw_mat3_column(&f->child_axes, 1), z),
                                  rw_vec3_dot(rw_mat3_column(&f->child_axes, 2), z));
        return;
    case RW_JOINT_SPHERICAL: {
        rw_mat3 r = rw_mat3_transpose_mul(f->parent_axes, f->child_axes);
        rw_quat_store(values, rw_quat_from_mat3(&r));
        return;
    }
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        return;
    }
}

void rw_joint_geometry_rates(const rw_joint_geometry* joint, const rw_joint_frames* f,
                        rw_joint_row* rows) {
    rw_vec3 z = rw_mat3_column(&f->parent_axes, 2);
    rw_vec3 arm = rw_vec3_add(f->parent_arm, f->gap);
    switch (joint->type) {
    case RW_JOINT_REVOLUTE:
        put_torque_row(&rows[0], z);
        return;
    case RW_JOINT_PRISMATIC:
        put_force_row(&rows[0], z, arm, f->child_arm);
        return;
    case RW_JOINT_CYLINDRICAL:
        put_force_row(&rows[0], z, arm, f->child_arm);
        put_torque_row(&rows[1], z);
        return;
    case RW_JOINT_PLANAR:
        put_force_row(&rows[0], rw_mat3_column(&f->parent_axes, 0), arm, f->child_arm);
        put_force_row(&rows[1], rw_mat3_column(&f->parent_axes, 1), arm, f->child_arm);
        put_torque_row(&rows[2], z);
        return;
    case RW_JOINT_UNIVERSAL:
        put_torque_row(&rows[0], z);
        put_torque_row(&rows[1], rw_mat3_column(&f->child_axes, 0));
        return;
    case RW_JOINT_SPHERICAL:
        for (int k = 0; k < 3; k++)
            put_torque_row(&rows[k], rw_mat3_column(&f->child_axes, k));
        return;
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        return;
    }
}

void rw_joint_geometry_rate_bias(const rw_joint_geometry* joint, const rw_joint_frames* f,
                            const rw_joint_pose* parent, const rw_joint_pose* child, double* bias) {
    rw_vec3 rate, centripetal, wi = parent->angular, wj = child->angular;
    rw_vec3 relative = rw_vec3_sub(wj, wi);
    gap_motion(f, parent, child, &rate, &centripetal);
    rw_vec3 x = rw_mat3_column(&f->parent_axes, 0), y = rw_mat3_column(&f->parent_axes, 1);
    rw_vec3 z = rw_mat3_column(&f->parent_axes, 2);
    double turn = rw_vec3_dot(relative, rw_vec3_cross(wi, z));
    double along = slide_bias(z, wi, f->gap, rate, centripetal);
    switch (joint->type) {
    case RW_JOINT_REVOLUTE:
        bias[0] = turn;
        return;
    case RW_JOINT_PRISMATIC:
        bias[0] = along;
        return;
    case RW_JOINT_CYLINDRICAL:
        bias[0] = along;
        bias[1] = turn;
        return;
    case RW_JOINT_PLANAR:
        bias[0] = slide_bias(x, wi, f->gap, rate, centripetal);
        bias[1] = slide_bias(y, wi, f->gap, rate, centripetal);
        bias[2] = turn;
        return;
    case RW_JOINT_UNIVERSAL:
        bias[0] = turn;
        bias[1] = rw_vec3_dot(relative, rw_vec3_cross(wj, rw_mat3_column(&f->child_axes, 0)));
        return;
    case RW_JOINT_SPHERICAL:
        for (int k = 0; k < 3; k++)
            bias[k] =
                rw_vec3_dot(relative, rw_vec3_cross(wj, rw_mat3_column(&f->child_axes, k)));
        return;
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        return;
    }
}

void rw_joint_geometry_violation(const rw_joint_geometry* joint, const rw_joint_frames* f,
                            double violation[2]) {
    double phi[RW_JOINT_MAX_ROWS];
    rw_joint_geometry_error(joint, f, phi);
    double squares = 0.0;
    for (int k = 0; k < joint->translation_count; k++)
        squares += phi[k] * phi[k];
    violation[0] = sqrt(squares);
    rw_vec3 vi = rw_mat3_column(&f->parent_axes, 2), vj = rw_mat3_column(&f->child_axes, 2);
    switch (joint->type) {
    case RW_JOINT_FIXED:
    case RW_JOINT_PRISMATIC: {
        rw_mat3 r = rw_mat3_transpose_mul(f->parent_axes, f->child_axes);
        violation[1] = rw_vec3_norm(rw_so3_log_mat3(&r));
        return;
    }
    case RW_JOINT_REVOLUTE:
    case RW_JOINT_CYLINDRICAL:
    case RW_JOINT_PLANAR:
        violation[1] =
            rw_trig_atan2(rw_vec3_norm(rw_vec3_cross(vi, vj)), rw_vec3_dot(vi, vj));
        return;
    case RW_JOINT_UNIVERSAL: {
        rw_vec3 aj = rw_mat3_column(&f->child_axes, 0);
        violation[1] = fabs(rw_trig_atan2(rw_vec3_dot(vi, aj),
                                          rw_vec3_norm(rw_vec3_cross(vi, aj))));
        return;
    }
    case RW_JOINT_SPHERICAL:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        violation[1] = 0.0;
        return;
    }
}

double rw_joint_geometry_row_rate(const rw_joint_row* row, const rw_joint_pose* parent,
                             const rw_joint_pose* child) {
    const double *p = row->parent, *c = row->child;
    return p[0] * parent->velocity.x + p[1] * parent->velocity.y + p[2] * parent->velocity.z +
           p[3] * parent->angular.x + p[4] * parent->angular.y + p[5] * parent->angular.z +
           c[0] * child->velocity.x + c[1] * child->velocity.y + c[2] * child->velocity.z +
           c[3] * child->angular.x + c[4] * child->angular.y + c[5] * child->angular.z;
}
