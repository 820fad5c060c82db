#include "solvers/xpbd/rod_element.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/simd.h"
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
    const double g4a = sqrt(3.0 / 7 - 2.0 / 7 * sqrt(1.2)),
                 g4b = sqrt(3.0 / 7 + 2.0 / 7 * sqrt(1.2));
    const double w4a = (18 + sqrt(30.0)) / 36, w4b = (18 - sqrt(30.0)) / 36;
    const double points[4][4] = {{0}, {-g2, g2}, {-g3, 0, g3}, {-g4b, -g4a, g4a, g4b}};
    const double weights[4][4] = {{2}, {1, 1}, {5.0 / 9, 8.0 / 9, 5.0 / 9}, {w4b, w4a, w4a, w4b}};

    rw_rod_element_rule rule = {.order = order, .node_count = order + 1};
    rule.point_count = full ? order + 1 : order;
    for (int k = 0; k < rule.point_count; k++) {
        fill_basis(rule.node_count, 0.5 + 0.5 * points[rule.point_count - 1][k], &rule.at[k]);
        rule.at[k].weight = 0.5 * weights[rule.point_count - 1][k];
    }
    return rule;
}

// ---- Strains -----------------------------------------------------------------------------------

typedef rw_rod_element_block block;

RW_SIMD_KERNEL void store_block(const rw_mat3* a, block* out) {
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            out->row[r][c] = a->m[r][c];
        }
        out->row[r][3] = 0;
    }
}

// out = a b; the last of each row is of no meaning.
RW_SIMD_KERNEL void multiply(const block* a, const block* b, block* out) {
    const rw_simd_four b0 = *(const rw_simd_four*)b->row[0];
    const rw_simd_four b1 = *(const rw_simd_four*)b->row[1];
    const rw_simd_four b2 = *(const rw_simd_four*)b->row[2];
    for (int r = 0; r < 3; r++) {
        *(rw_simd_four*)out->row[r] = a->row[r][0] * b0 + a->row[r][1] * b1 + a->row[r][2] * b2;
    }
}

void rw_rod_element_make_frame(int node_count, const double* positions, const double* rotations,
                               rw_rod_element_frame* frame) {
    frame->node_count = node_count;
    frame->first = rw_quat_load(rotations);
    frame->first_axes = rw_quat_to_mat3(frame->first);
    frame->theta[0] = rw_vec3_zero();
    double most_sq = 0;
    for (int j = 0; j < node_count; j++) {
        frame->position[j] = rw_vec3_load(positions + 3 * j);
    }
    for (int j = 1; j < node_count; j++) {
        frame->theta[j] =
            rw_so3_log(rw_quat_conj_mul(frame->first, rw_quat_load(rotations + 4 * j)));
        rw_mat3 inverse = rw_so3_gamma_inverse(frame->theta[j]);
        rw_mat3 transposed = rw_mat3_transpose(inverse);
        store_block(&inverse, &frame->inverse[j]);
        store_block(&transposed, &frame->transposed[j]);
        double angle_sq = rw_vec3_norm_sq(frame->theta[j]);
        most_sq = angle_sq > most_sq || angle_sq != angle_sq ? angle_sq : most_sq;
    }
    frame->angle_max = sqrt(most_sq);
}

// Gradients by the rotations (appendix G): theta and theta' are linear in the theta_j, whose
// derivatives are Gamma^-1(theta_j) by R_j and -Gamma^-1(theta_j)' by R_1.
RW_SIMD_KERNEL void fill_gradient(const rw_rod_element_frame* frame,
                                  const rw_rod_element_basis* basis, double length,
                                  const rw_rod_element_strain* strain, const rw_so3_expansion* at,
                                  rw_rod_element_gradient* gradient) {
    rw_mat3 v_hat = rw_mat3_hat(strain->v);
    rw_mat3 v_gamma = rw_mat3_mul(v_hat, at->gamma);
    rw_mat3 direct = rw_mat3_mul_transpose(v_hat, at->rotation); // R_1 turns the point itself
    rw_mat3 along = rw_mat3_transpose(strain->rotation);
    block gamma, bend, vg, turn, v_first, u_first = {{{0}}};
    store_block(&at->gamma, &gamma);
    store_block(&at->derivative, &bend);
    store_block(&v_gamma, &vg);
    store_block(&direct, &v_first);
    store_block(&along, &turn);
    const rw_simd_four zero = {0, 0, 0, 0};
    // Position columns run over into the rotation's, which are written after them.
    for (int j = 0; j < frame->node_count; j++) {
        double slope = basis->slope[j] / length, value = basis->value[j];
        block u_left, v_right, u_right, v_back, u_back;
        for (int r = 0; r < 3; r++) {
            *(rw_simd_four*)&gradient->row[r][6 * j] = slope * *(const rw_simd_four*)turn.row[r];
            *(rw_simd_four*)&gradient->row[r + 3][6 * j] = zero;
        }
        if (j == 0) {
            continue; // its rotation is the sum over the others
        }
        for (int r = 0; r < 3; r++) {
            *(rw_simd_four*)u_left.row[r] = value * *(const rw_simd_four*)bend.row[r] +
                                            slope * *(const rw_simd_four*)gamma.row[r];
        }
        multiply(&vg, &frame->inverse[j], &v_right);
        multiply(&u_left, &frame->inverse[j], &u_right);
        multiply(&vg, &frame->transposed[j], &v_back);
        multiply(&u_left, &frame->transposed[j], &u_back);
        for (int r = 0; r < 3; r++) {
            *(rw_simd_four*)&gradient->row[r][6 * j + 3] =
                value * *(const rw_simd_four*)v_right.row[r];
            *(rw_simd_four*)&gradient->row[r + 3][6 * j + 3] = *(const rw_simd_four*)u_right.row[r];
            *(rw_simd_four*)v_first.row[r] -= value * *(const rw_simd_four*)v_back.row[r];
            *(rw_simd_four*)u_first.row[r] -= *(const rw_simd_four*)u_back.row[r];
        }
    }
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            gradient->row[r][3 + c] = v_first.row[r][c];
            gradient->row[r + 3][3 + c] = u_first.row[r][c];
        }
    }
    // What is beyond the columns is read by vectors: no infinities there.
    for (int r = 0; r < 6; r++) {
        for (int c = 6 * frame->node_count; c < RW_ROD_ELEMENT_STRIDE; c++) {
            gradient->row[r][c] = 0;
        }
    }
}

RW_SIMD_KERNEL void evaluate(const rw_rod_element_frame* frame, const rw_rod_element_basis* basis,
                             double length, rw_rod_element_strain* strain,
                             rw_rod_element_gradient* gradient) {
    rw_vec3 theta = rw_vec3_zero(), theta_slope = rw_vec3_zero(), tangent = rw_vec3_zero();
    for (int j = 0; j < frame->node_count; j++) {
        double slope = basis->slope[j] / length;
        theta = rw_vec3_add_scaled(theta, basis->value[j], frame->theta[j]);
        theta_slope = rw_vec3_add_scaled(theta_slope, slope, frame->theta[j]);
        tangent = rw_vec3_add_scaled(tangent, slope, frame->position[j]);
    }
    rw_so3_expansion at;
    rw_so3_expand(theta, theta_slope, &at);
    strain->rotation = rw_mat3_mul(frame->first_axes, at.rotation);
    strain->v = rw_mat3_apply_transpose(&strain->rotation, tangent);
    strain->u = rw_mat3_apply(&at.gamma, theta_slope);
    if (gradient != NULL) {
        fill_gradient(frame, basis, length, strain, &at, gradient);
    }
}

static void evaluate_plain(const rw_rod_element_frame* frame, const rw_rod_element_basis* basis,
                           double length, rw_rod_element_strain* strain,
                           rw_rod_element_gradient* gradient) {
    evaluate(frame, basis, length, strain, gradient);
}

RW_SIMD_AVX2 static void evaluate_avx2(const rw_rod_element_frame* frame,
                                       const rw_rod_element_basis* basis, double length,
                                       rw_rod_element_strain* strain,
                                       rw_rod_element_gradient* gradient) {
    evaluate(frame, basis, length, strain, gradient);
}

void rw_rod_element_evaluate(const rw_rod_element_frame* frame, const rw_rod_element_basis* basis,
                             double length, rw_rod_element_strain* strain,
                             rw_rod_element_gradient* gradient) {
    if (rw_simd_has_avx2()) {
        evaluate_avx2(frame, basis, length, strain, gradient);
    } else {
        evaluate_plain(frame, basis, length, strain, gradient);
    }
}

static void put_block(const rw_mat3* a, double scale, rw_rod_element_gradient* gradient, int row,
                      int column) {
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            gradient->row[row + r][column + c] = scale * a->m[r][c];
        }
    }
}

void rw_rod_element_evaluate_chain(const rw_rod_element_frame* frame, double length,
                                   rw_rod_element_strain* strain,
                                   rw_rod_element_gradient* gradient) {
    rw_mat3 turn = rw_so3_exp_mat3(frame->theta[1]);
    rw_mat3 r1 = frame->first_axes, r2 = rw_mat3_mul(r1, turn);
    rw_vec3 tangent =
        rw_vec3_scale(rw_vec3_sub(frame->position[1], frame->position[0]), 1 / length);
    rw_vec3 v1 = rw_mat3_apply_transpose(&r1, tangent), v2 = rw_mat3_apply_transpose(&r2, tangent);
    strain->rotation = rw_mat3_scale(rw_mat3_add(r1, r2), 0.5);
    strain->v = rw_vec3_scale(rw_vec3_add(v1, v2), 0.5);
    strain->u = rw_vec3_scale(frame->theta[1], 1 / length);
    if (gradient == NULL) {
        return;
    }
    memset(gradient, 0, sizeof *gradient);
    rw_mat3 along = rw_mat3_transpose(strain->rotation);
    rw_mat3 hat1 = rw_mat3_hat(v1), hat2 = rw_mat3_hat(v2);
    rw_mat3 inverse = rw_so3_gamma_inverse(frame->theta[1]);
    rw_mat3 back = rw_mat3_transpose(inverse);
    put_block(&along, -1 / length, gradient, 0, 0);
    put_block(&along, 1 / length, gradient, 0, 6);
    put_block(&hat1, 0.5, gradient, 0, 3);
    put_block(&hat2, 0.5, gradient, 0, 9);
    put_block(&back, -1 / length, gradient, 3, 3);
    put_block(&inverse, 1 / length, gradient, 3, 9);
}
