// The joint library of the rigid solvers: position error, Jacobian and acceleration right-hand side of
// every joint type, and the joint's own coordinates. From "Mathematical Foundations" (seed 002),
// Shabana's hybrid Newton-Euler form, with its errata; here the Jacobian acts on (world velocity of
// the centre of mass, WORLD angular velocity), which spares two rotations per row. Pure functions;
// any thread.
//
// Subscript i is the parent (body 1), j the child (body 2). P = r + s is a joint frame's origin, s
// from the centre of mass; d = P_j - P_i. The frames' axes are (a, b, v) = (x, y, z). Rows, in order:
//
//   FIXED        d (3)            v_i.a_j  v_i.b_j  a_i.b_j
//   REVOLUTE     d (3)            v_i.a_j  v_i.b_j
//   PRISMATIC    d.a_i  d.b_i     v_i.a_j  v_i.b_j  a_i.b_j
//   CYLINDRICAL  d.a_i  d.b_i     v_i.a_j  v_i.b_j
//   PLANAR       d.v_i            v_i.a_j  v_i.b_j
//   UNIVERSAL    d (3)            v_i.a_j
//   SPHERICAL    d (3)
//   DISTANCE     |d| - L
//
// The "dot-1" rows (right) lose rank at 90 degrees of misalignment and vanish again at 180: assembly
// is checked with rw_joint_geometry_violation, which measures angles and sees the difference.
#pragma once

#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/model/scene.h"

#define RW_JOINT_MAX_ROWS 6
#define RW_JOINT_MAX_RATES 3

// The pose and velocity of a body as the joints need them, all in world axes.
typedef struct rw_joint_pose {
    rw_vec3 position;     // centre of mass [m]
    rw_mat3 rotation;     // body-to-world
    rw_vec3 velocity;     // of the centre of mass [m/s]
    rw_vec3 angular;      // angular velocity [rad/s]
} rw_joint_pose;

// A joint, resolved: what does not change during motion.
typedef struct rw_joint_geometry {
    rw_joint_type type;
    int32_t row_count;         // constraint rows
    int32_t translation_count; // the first rows; the rest are rotational
    int32_t rate_count;        // free coordinates (SPHERICAL 3, DISTANCE 0)
    int32_t parent, child;     // body index; parent -1 is the world
    rw_vec3 parent_anchor, child_anchor; // from the centre of mass, body axes [m]
    rw_mat3 parent_frame, child_frame;   // joint frame to body axes
    double distance;                     // DISTANCE [m]
} rw_joint_geometry;

// The joint frames in world axes: everything below starts from these.
typedef struct rw_joint_frames {
    rw_mat3 parent_axes, child_axes; // columns a, b, v
    rw_vec3 parent_arm, child_arm;   // centre of mass to the frame's origin: s_i, s_j
    rw_vec3 gap;                     // d
} rw_joint_frames;

// One scalar row: J_i (velocity, angular velocity of the parent) + J_j (of the child).
typedef struct rw_joint_row {
    double parent[6], child[6];
} rw_joint_row;

// Fills in the counts and frames of a joint of `desc` between bodies whose centres of mass lie at
// `parent_center`, `child_center` in their frames (zero for the world). `distance` of a DISTANCE
// joint without one is left to the caller.
void rw_joint_geometry_init(rw_joint_geometry* joint, const rw_joint_desc* desc, int32_t parent,
                       int32_t child, rw_vec3 parent_center, rw_vec3 child_center);

void rw_joint_geometry_frames_at(const rw_joint_geometry* joint, const rw_joint_pose* parent,
                            const rw_joint_pose* child, rw_joint_frames* frames);

// Writes the position errors Phi (row_count) [m, rad].
void rw_joint_geometry_error(const rw_joint_geometry* joint, const rw_joint_frames* frames, double* phi);

// Writes the Jacobian rows (row_count): dPhi/dt = J_i (v_i, w_i) + J_j (v_j, w_j).
void rw_joint_geometry_jacobian(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                           rw_joint_row* rows);

// Writes gamma (row_count): the constraint on accelerations reads J_i (a_i, dw_i/dt) + J_j (...) =
// gamma. Holds for any motion, also off the constraint.
void rw_joint_geometry_gamma(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                        const rw_joint_pose* parent, const rw_joint_pose* child, double* gamma);

// Writes the coordinates (rw_validate_coordinate_count of them): angles in (-pi, pi], for SPHERICAL
// the unit quaternion with w >= 0. The child's pose relative to the parent, positive about or along
// +z (UNIVERSAL: child in parent is Rz(first) Rx(second)).
void rw_joint_geometry_coordinate(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                             double* values);

// Which coordinates are angles, as a bit mask (SPHERICAL 0).
unsigned rw_joint_geometry_angle_mask(rw_joint_type type);

// Writes the rows that give the rates of the coordinates from velocities (rate_count rows). For
// SPHERICAL: the child's angular velocity relative to the parent in the child's joint frame. The
// same rows transposed turn an effort into a wrench on the child and its opposite on the parent.
void rw_joint_geometry_rates(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                        rw_joint_row* rows);

// Writes the part of the coordinates' accelerations that velocities cause: d(rate)/dt = row
// (accelerations) + bias (rate_count).
void rw_joint_geometry_rate_bias(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                            const rw_joint_pose* parent, const rw_joint_pose* child, double* bias);

// Writes the largest translational [m] and rotational [rad] error. Rotational errors are true
// angles, up to pi, so that a joint assembled back to front shows.
void rw_joint_geometry_violation(const rw_joint_geometry* joint, const rw_joint_frames* frames,
                            double violation[2]);

// J_i (v_i, w_i) + J_j (v_j, w_j).
double rw_joint_geometry_row_rate(const rw_joint_row* row, const rw_joint_pose* parent,
                             const rw_joint_pose* child);
