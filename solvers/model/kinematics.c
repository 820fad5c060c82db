#include "solvers/model/kinematics.h"

#include <string.h>

#include "solvers/math/quat.h"
#include "solvers/math/so3.h"
#include "solvers/math/vec3.h"

static rw_vec3 center_of(const rw_model* model, int32_t index) {
    return rw_vec3_load(&model->bodies.center_of_mass[3 * index]);
}

void rw_kinematics_place(const rw_model* model, int32_t index, const double position[3],
                         const double rotation[4], const double linear_velocity[3],
                         const double angular_velocity[3], rw_state* state) {
    rw_quat q = rw_quat_load(rotation);
    rw_vec3 arm = rw_quat_rotate(q, center_of(model, index));
    rw_vec3 spin = rw_quat_rotate(q, rw_vec3_load(angular_velocity));
    rw_vec3_store(&state->body_position[3 * index], rw_vec3_add(rw_vec3_load(position), arm));
    rw_quat_store(&state->body_rotation[4 * index], q);
    rw_vec3_store(&state->body_linear_velocity[3 * index],
                  rw_vec3_add(rw_vec3_load(linear_velocity), rw_vec3_cross(spin, arm)));
    memcpy(&state->body_angular_velocity[3 * index], angular_velocity, 3 * sizeof(double));
}

void rw_kinematics_point(const rw_model* model, const rw_state* state, int32_t index,
                         const double point[3], double position[3]) {
    rw_quat q = rw_quat_load(&state->body_rotation[4 * index]);
    rw_vec3 arm =
        rw_quat_rotate(q, rw_vec3_sub(rw_vec3_load(point), center_of(model, index)));
    rw_vec3_store(position, rw_vec3_add(rw_vec3_load(&state->body_position[3 * index]), arm));
}

void rw_kinematics_point_velocity(const rw_model* model, const rw_state* state, int32_t index,
                                  const double point[3], double velocity[3]) {
    rw_quat q = rw_quat_load(&state->body_rotation[4 * index]);
    rw_vec3 arm =
        rw_quat_rotate(q, rw_vec3_sub(rw_vec3_load(point), center_of(model, index)));
    rw_vec3 spin = rw_quat_rotate(q, rw_vec3_load(&state->body_angular_velocity[3 * index]));
    rw_vec3_store(velocity, rw_vec3_add(rw_vec3_load(&state->body_linear_velocity[3 * index]),
                                        rw_vec3_cross(spin, arm)));
}

// The scene's pose plus displacement and rotation vector; velocities from their rates.
static void place_driven(const rw_model* model, const rw_drive* drive, int32_t index,
                         rw_state* to) {
    const rw_body_desc* desc = &model->bodies.items[index].desc;
    const double* offset = &drive->body_offset[6 * index];
    const double* rate = &drive->body_offset_rate[6 * index];
    rw_vec3 turn = rw_vec3_load(offset + 3);
    rw_vec3 turn_rate = rw_vec3_load(rate + 3);

    rw_quat delta = rw_so3_exp(turn);
    rw_quat q = rw_quat_normalize(rw_quat_mul(delta, rw_quat_load(desc->rotation)));
    rw_vec3 origin = rw_vec3_add(rw_vec3_load(desc->position), rw_vec3_load(offset));

    // d/dt exp(v) = exp(v) (Gamma(v) v')^ with the right Jacobian Gamma; to world axes by exp(v).
    rw_mat3 right_jacobian = rw_so3_gamma(turn);
    rw_vec3 spin = rw_quat_rotate(delta, rw_mat3_apply(&right_jacobian, turn_rate));
    double position[3], rotation[4], omega[3];
    rw_vec3_store(position, origin);
    rw_quat_store(rotation, q);
    rw_vec3_store(omega, rw_quat_inverse_rotate(q, spin));
    rw_kinematics_place(model, index, position, rotation, rate, omega, to);
}

static bool is_driven(const rw_model* model, const rw_drive* drive, int32_t index) {
    return model->bodies.kind[index] == RW_BODY_KINEMATIC && drive->body_is_driven[index] != 0;
}

void rw_kinematics_follow(const rw_model* model, const rw_drive* drive, rw_state* state) {
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (is_driven(model, drive, i)) {
            place_driven(model, drive, i, state);
        }
    }
}

void rw_kinematics_advance(const rw_model* model, const rw_drive* drive_to, const rw_state* from,
                           rw_state* to, double h) {
    for (int32_t i = 0; i < model->bodies.count; i++) {
        uint8_t kind = model->bodies.kind[i];
        if (kind == RW_BODY_DYNAMIC) {
            continue;
        }
        if (is_driven(model, drive_to, i)) {
            place_driven(model, drive_to, i, to);
            continue;
        }
        rw_vec3 velocity = rw_vec3_load(&from->body_linear_velocity[3 * i]);
        rw_vec3 omega = rw_vec3_load(&from->body_angular_velocity[3 * i]);
        rw_vec3 position = rw_vec3_load(&from->body_position[3 * i]);
        rw_quat q = rw_quat_load(&from->body_rotation[4 * i]);
        if (kind == RW_BODY_KINEMATIC) {
            // The ORIGIN moves uniformly; the centre of mass goes round it.
            rw_vec3 center = center_of(model, i);
            rw_vec3 arm = rw_quat_rotate(q, center);
            rw_vec3 spin = rw_quat_rotate(q, omega);
            rw_vec3 origin_velocity = rw_vec3_sub(velocity, rw_vec3_cross(spin, arm));
            rw_vec3 origin = rw_vec3_add_scaled(rw_vec3_sub(position, arm), h, origin_velocity);
            q = rw_quat_normalize(rw_quat_mul(q, rw_so3_exp(rw_vec3_scale(omega, h))));
            arm = rw_quat_rotate(q, center);
            spin = rw_quat_rotate(q, omega);
            position = rw_vec3_add(origin, arm);
            velocity = rw_vec3_add(origin_velocity, rw_vec3_cross(spin, arm));
        }
        rw_vec3_store(&to->body_position[3 * i], position);
        rw_quat_store(&to->body_rotation[4 * i], q);
        rw_vec3_store(&to->body_linear_velocity[3 * i], velocity);
        rw_vec3_store(&to->body_angular_velocity[3 * i], omega);
    }
}
