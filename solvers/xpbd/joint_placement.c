#include "solvers/xpbd/joint_placement.h"

#include <string.h>

#include "solvers/math/so3.h"

static rw_joint_pose pose_of(const rw_state* state, int32_t body) {
    if (body < 0) {
        return (rw_joint_pose){.rotation = rw_mat3_identity()};
    }
    rw_quat q = rw_quat_load(&state->body_rotation[4 * body]);
    return (rw_joint_pose){
        .position = rw_vec3_load(&state->body_position[3 * body]),
        .rotation = rw_quat_to_mat3(q),
        .velocity = rw_vec3_load(&state->body_linear_velocity[3 * body]),
        .angular = rw_quat_rotate(q, rw_vec3_load(&state->body_angular_velocity[3 * body])),
    };
}

// Marks what hangs on `child` without passing `joint`.
static rw_status mark_subtree(const rw_model* model, int32_t joint, uint8_t* marks,
                              rw_error* error) {
    const rw_joint* moved = &model->joints.items[joint];
    if (moved->child < 0) {
        RW_FAIL(error, FAILED_PRECONDITION, "joint",
                "the child of '%s' is the world, which does not move: exchange parent and child",
                moved->desc.name);
    }
    memset(marks, 0, (size_t)model->bodies.count);
    marks[moved->child] = 1;
    bool has_grown = true;
    while (has_grown) {
        has_grown = false;
        for (int32_t i = 0; i < model->joints.count; i++) {
            const rw_joint* one = &model->joints.items[i];
            if (i == joint) {
                continue;
            }
            bool parent_in = one->parent >= 0 && marks[one->parent] != 0;
            bool child_in = one->child >= 0 && marks[one->child] != 0;
            if (parent_in == child_in) {
                continue;
            }
            int32_t other = parent_in ? one->child : one->parent;
            if (other < 0) {
                RW_FAIL(error, FAILED_PRECONDITION, "joint",
                        "'%s' closes a loop through '%s' and the world", moved->desc.name,
                        one->desc.name);
            }
            marks[other] = 1;
            has_grown = true;
        }
    }
    if (moved->parent >= 0 && marks[moved->parent] != 0) {
        RW_FAIL(error, FAILED_PRECONDITION, "joint", "'%s' closes a loop", moved->desc.name);
    }
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (marks[i] != 0 && model->bodies.kind[i] != RW_BODY_DYNAMIC) {
            RW_FAIL(error, FAILED_PRECONDITION, "joint",
                    "'%s' would have to move body '%s', which no joint moves", moved->desc.name,
                    model->bodies.items[i].desc.name);
        }
    }
    return RW_STATUS_OK;
}

static rw_quat turn_z(double angle) {
    return rw_so3_exp(rw_vec3_make(0, 0, angle));
}

// The child's joint frame in the parent's for these coordinates.
static void relative_pose(rw_joint_type type, const double* q, rw_vec3* offset, rw_quat* turn) {
    *offset = rw_vec3_zero();
    *turn = rw_quat_identity();
    switch (type) {
    case RW_JOINT_REVOLUTE:
        *turn = turn_z(q[0]);
        break;
    case RW_JOINT_PRISMATIC:
        offset->z = q[0];
        break;
    case RW_JOINT_CYLINDRICAL:
        offset->z = q[0];
        *turn = turn_z(q[1]);
        break;
    case RW_JOINT_PLANAR:
        *offset = rw_vec3_make(q[0], q[1], 0);
        *turn = turn_z(q[2]);
        break;
    case RW_JOINT_UNIVERSAL:
        *turn = rw_quat_mul(turn_z(q[0]), rw_so3_exp(rw_vec3_make(q[1], 0, 0)));
        break;
    case RW_JOINT_SPHERICAL:
        *turn = rw_quat_normalize(rw_quat_load(q));
        break;
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        break;
    }
}

// Turns and shifts every marked body: x <- pivot + turn (x - from).
static void move_marked(const rw_model* model, const uint8_t* marks, rw_vec3 from, rw_vec3 pivot,
                        rw_quat turn, rw_state* state) {
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (marks[i] == 0) {
            continue;
        }
        double* x = &state->body_position[3 * i];
        double* v = &state->body_linear_velocity[3 * i];
        double* q = &state->body_rotation[4 * i];
        rw_vec3 arm = rw_quat_rotate(turn, rw_vec3_sub(rw_vec3_load(x), from));
        rw_vec3_store(x, rw_vec3_add(pivot, arm));
        rw_vec3_store(v, rw_quat_rotate(turn, rw_vec3_load(v)));
        rw_quat_store(q, rw_quat_normalize(rw_quat_mul(turn, rw_quat_load(q))));
    }
}

static void place(const rw_model* model, const rw_joint_geometry* geometry,
                  const double* coordinate, const uint8_t* marks, rw_state* state) {
    rw_joint_pose parent = pose_of(state, geometry->parent);
    rw_joint_pose child = pose_of(state, geometry->child);
    rw_joint_frames frames;
    rw_joint_geometry_frames_at(geometry, &parent, &child, &frames);
    rw_vec3 offset;
    rw_quat turn;
    relative_pose(geometry->type, coordinate, &offset, &turn);

    rw_vec3 parent_origin = rw_vec3_add(parent.position, frames.parent_arm);
    rw_vec3 child_origin = rw_vec3_add(child.position, frames.child_arm);
    rw_vec3 target = rw_vec3_add(parent_origin, rw_mat3_apply(&frames.parent_axes, offset));
    rw_quat wanted = rw_quat_mul(rw_quat_from_mat3(&frames.parent_axes), turn);
    rw_quat change =
        rw_quat_normalize(rw_quat_mul(wanted, rw_quat_conj(rw_quat_from_mat3(&frames.child_axes))));
    move_marked(model, marks, child_origin, target, change, state);
}

// Adds the rigid motion that changes the joint's rates to what is wanted.
static void spin(const rw_model* model, const rw_joint_geometry* geometry, const double* rate,
                 const uint8_t* marks, rw_state* state) {
    rw_joint_pose parent = pose_of(state, geometry->parent);
    rw_joint_pose child = pose_of(state, geometry->child);
    rw_joint_frames frames;
    rw_joint_geometry_frames_at(geometry, &parent, &child, &frames);
    rw_joint_row rows[RW_JOINT_MAX_RATES];
    rw_joint_geometry_rates(geometry, &frames, rows);
    double lack[RW_JOINT_MAX_RATES];
    for (int i = 0; i < geometry->rate_count; i++) {
        lack[i] = rate[i] - rw_joint_geometry_row_rate(&rows[i], &parent, &child);
    }
    rw_vec3 px = rw_mat3_column(&frames.parent_axes, 0),
            py = rw_mat3_column(&frames.parent_axes, 1);
    rw_vec3 pz = rw_mat3_column(&frames.parent_axes, 2), cx = rw_mat3_column(&frames.child_axes, 0);
    rw_vec3 linear = rw_vec3_zero(), angular = rw_vec3_zero();
    switch (geometry->type) {
    case RW_JOINT_REVOLUTE:
        angular = rw_vec3_scale(pz, lack[0]);
        break;
    case RW_JOINT_PRISMATIC:
        linear = rw_vec3_scale(pz, lack[0]);
        break;
    case RW_JOINT_CYLINDRICAL:
        linear = rw_vec3_scale(pz, lack[0]);
        angular = rw_vec3_scale(pz, lack[1]);
        break;
    case RW_JOINT_PLANAR:
        linear = rw_vec3_add_scaled(rw_vec3_scale(px, lack[0]), lack[1], py);
        angular = rw_vec3_scale(pz, lack[2]);
        break;
    case RW_JOINT_UNIVERSAL:
        angular = rw_vec3_add_scaled(rw_vec3_scale(pz, lack[0]), lack[1], cx);
        break;
    case RW_JOINT_SPHERICAL:
        angular = rw_mat3_apply(&frames.child_axes, rw_vec3_load(lack));
        break;
    case RW_JOINT_FIXED:
    case RW_JOINT_DISTANCE:
    case RW_JOINT_TYPE_COUNT:
        break;
    }
    rw_vec3 origin = rw_vec3_add(child.position, frames.child_arm);
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (marks[i] == 0) {
            continue;
        }
        rw_vec3 arm = rw_vec3_sub(rw_vec3_load(&state->body_position[3 * i]), origin);
        double* v = &state->body_linear_velocity[3 * i];
        double* w = &state->body_angular_velocity[3 * i];
        rw_quat q = rw_quat_load(&state->body_rotation[4 * i]);
        rw_vec3_store(
            v, rw_vec3_add(rw_vec3_load(v), rw_vec3_add(linear, rw_vec3_cross(angular, arm))));
        rw_vec3_store(w, rw_vec3_add(rw_vec3_load(w), rw_quat_inverse_rotate(q, angular)));
    }
}

rw_status rw_joint_placement_set(const rw_model* model, const rw_joint_geometry* geometry,
                                 int32_t joint, const double* coordinate, const double* rate,
                                 uint8_t* marks, rw_state* state, rw_error* error) {
    RW_TRY(mark_subtree(model, joint, marks, error));
    if (coordinate != NULL) {
        place(model, geometry, coordinate, marks, state);
    }
    if (rate != NULL) {
        spin(model, geometry, rate, marks, state);
    }
    return RW_STATUS_OK;
}
