#include "solvers/xpbd/rod_element.h"

#include <math.h>
#include <stddef.h>

#include "solvers/base/check.h"
#include "solvers/math/so3.h"

// ---- Basis -------------------------------------------------------------------------------------

// Lagrange polynomials over equally spaced nodes of [0, 1] and their derivatives.
static void fill_basis(int node_count, double xi, rw_rod_element_basis* basis) {
    for (int j = 0; j < node_count; j++) {
        double value = 1, slope = 0;
        for (int k = 0; k < node_count; k++) {
            if (k == j) {
                continue;
            }
            double scale = (node_count - 1.0) / (j - k);
            double factor = (xi - k / (node_count - 1.0)) * scale;
            slope = slope * factor + value * scale;
            value *= factor;
        }
        basis->value[j] = value;
        basis->slope[j] = slope;
    }
}

rw_rod_element_rule rw_rod_element_make_rule(int order, int full) {
    RW_ASSERT(order >= 1 && order <= 3);
    // Gauss points on [-1, 1] (Abramowitz and Stegun, table 25.4); numerics, seed 000 note 1.
    const double g2 = sqrt(1.0 / 3), g3 = sqrt(0.6);
    const double g4a = sqrt(3.0 / 7 - 2.0 / 7 * sqrt(1.2)), g4b = sqrt(3.0 / 7 + 2.0 / 7 * sqrt(1.2));
    const double w4a = (18 + sqrt(30.0)) / 36, w4b = (18 - sqrt(30.0)) / 36;
    const double points[4][4] = {{0}, {-g2, g2}, {-g3, 0, g3}, {-g4b, -g4a, g4a, g4b}};
    const double weights[4][4] = {
        {2}, {1, 1}, {5.0 / 9, 8.0 / 9, 5.0 / 9}, {w4b, w4a, w4a, w4b}};

    rw_rod_element_rule rule = {.order = order, .node_count = order + 1};
    rule.point_count = full ? order + 1 : order;
    for (int k = 0; k < rule.point_count; k++) {
        fill_basis(rule.node_count, 0.5 + 0.5 * points[rule.point_count - 1][k], &rule.at[k]);
        rule.at[k].weight = 0.5 * weights[rule.point_count - 1][k];
    }
    return rule;
}

// ---- Strains -----------------------------------------------------------------------------------

void rw_rod_element_make_frame(int node_count, const double* positions, const double* rotations,
                               rw_rod_element_frame* frame) {
    frame->node_count = node_count;
    frame->first = rw_quat_load(rotations);
    frame->theta[0] = rw_vec3_zero();
    frame->angle_max = 0;
    for (int j = 0; j < node_count; j++) {
        frame->position[j] = rw_vec3_load(positions + 3 * j);
    }
    for (int j = 1; j < node_count; j++) {
        frame->theta[j] =
            rw_so3_log(rw_quat_conj_mul(frame->first, rw_quat_load(rotations + 4 * j)));
        frame->inverse[j] = rw_so3_gamma_inverse(frame->theta[j]);
        double angle = rw_vec3_norm(frame->theta[j]);
        frame->angle_max = angle > frame->angle_max ? angle : frame->angle_max;
    }
}

// Gradients by the rotations (appendix G): theta and theta' are linear in the theta_j, whose
// derivatives are Gamma^-1(theta_j) by R_j and -Gamma^-1(theta_j)' by R_1.
static void fill_rotation_gradients(const rw_rod_element_frame* frame,
                                    const rw_rod_element_basis* basis, double length,
                                    rw_vec3 theta, rw_vec3 theta_slope, rw_vec3 v,
                                    const rw_mat3* gamma, rw_rod_element_gradient* gradient) {
    rw_mat3 v_hat = rw_mat3_hat(v);
    rw_mat3 v_gamma = rw_mat3_mul(v_hat, *gamma);
    rw_mat3 bend = rw_so3_gamma_derivative(theta, theta_slope);
    rw_mat3 vr_first = rw_mat3_zero(), ur_first = rw_mat3_zero();
    for (int j = 1; j < frame->node_count; j++) {
        double value = basis->value[j], slope = basis->slope[j] / length;
        rw_mat3 u_left = rw_mat3_add(rw_mat3_scale(bend, value), rw_mat3_scale(*gamma, slope));
        rw_mat3 v_left = rw_mat3_scale(v_gamma, value);
        gradient->vr[j] = rw_mat3_mul(v_left, frame->inverse[j]);
        gradient->ur[j] = rw_mat3_mul(u_left, frame->inverse[j]);
        vr_first = rw_mat3_sub(vr_first, rw_mat3_mul_transpose(v_left, frame->inverse[j]));
        ur_first = rw_mat3_sub(ur_first, rw_mat3_mul_transpose(u_left, frame->inverse[j]));
    }
    // R_1 also turns the point directly: Exp(theta)'.
    rw_mat3 turn = rw_so3_exp_mat3(theta);
    gradient->vr[0] = rw_mat3_add(vr_first, rw_mat3_mul_transpose(v_hat, turn));
    gradient->ur[0] = ur_first;
}

void rw_rod_element_evaluate(const rw_rod_element_frame* frame, const rw_rod_element_basis* basis,
                             double length, rw_rod_element_strain* strain,
                             rw_rod_element_gradient* gradient) {
    rw_vec3 theta = rw_vec3_zero(), theta_slope = rw_vec3_zero(), tangent = rw_vec3_zero();
    for (int j = 0; j < frame->node_count; j++) {
        double slope = basis->slope[j] / length;
        theta = rw_vec3_add_scaled(theta, basis->value[j], frame->theta[j]);
        theta_slope = rw_vec3_add_scaled(theta_slope, slope, frame->theta[j]);
        tangent = rw_vec3_add_scaled(tangent, slope, frame->position[j]);
    }
    rw_mat3 gamma = rw_so3_gamma(theta);
    strain->rotation = rw_quat_to_mat3(rw_quat_mul(frame->first, rw_so3_exp(theta)));
    strain->v = rw_mat3_apply_transpose(&strain->rotation, tangent);
    strain->u = rw_mat3_apply(&gamma, theta_slope);
    if (gradient == NULL) {
        return;
    }
    for (int j = 0; j < frame->node_count; j++) {
        gradient->vp[j] = basis->slope[j] / length;
    }
    fill_rotation_gradients(frame, basis, length, theta, theta_slope, strain->v, &gamma, gradient);
}

void rw_rod_element_evaluate_chain(const rw_rod_element_frame* frame, double length,
                                   rw_rod_element_strain* strain,
                                   rw_rod_element_gradient* gradient) {
    rw_mat3 r1 = rw_quat_to_mat3(frame->first);
    rw_mat3 turn = rw_so3_exp_mat3(frame->theta[1]);
    rw_mat3 r2 = rw_mat3_mul(r1, turn);
    rw_vec3 tangent =
        rw_vec3_scale(rw_vec3_sub(frame->position[1], frame->position[0]), 1 / length);
    rw_vec3 v1 = rw_mat3_apply_transpose(&r1, tangent), v2 = rw_mat3_apply_transpose(&r2, tangent);
    strain->rotation = rw_mat3_scale(rw_mat3_add(r1, r2), 0.5);
    strain->v = rw_vec3_scale(rw_vec3_add(v1, v2), 0.5);
    strain->u = rw_vec3_scale(frame->theta[1], 1 / length);
    if (gradient == NULL) {
        return;
    }
    gradient->vp[0] = -1 / length;
    gradient->vp[1] = 1 / length;
    gradient->vr[0] = rw_mat3_scale(rw_mat3_hat(v1), 0.5);
    gradient->vr[1] = rw_mat3_scale(rw_mat3_hat(v2), 0.5);
    gradient->ur[0] = rw_mat3_scale(rw_mat3_transpose(frame->inverse[1]), -1 / length);
    gradient->ur[1] = rw_mat3_scale(frame->inverse[1], 1 / length);
}
