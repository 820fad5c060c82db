// 3x3 matrices of doubles, row major (`m[row][column]`), passed by value: rotation matrices,
// inertia tensors, Jacobian blocks. Pure inline functions without state; any thread may call them.
#pragma once

#include "solvers/math/vec3.h"

typedef struct rw_mat3 {
    double m[3][3];
} rw_mat3;

static inline rw_mat3 rw_mat3_zero(void) { return (rw_mat3){{{0.0}}}; }

static inline rw_mat3 rw_mat3_diagonal(double a, double b, double c) {
    return (rw_mat3){{{a, 0.0, 0.0}, {0.0, b, 0.0}, {0.0, 0.0, c}}};
}

static inline rw_mat3 rw_mat3_identity(void) { return rw_mat3_diagonal(1.0, 1.0, 1.0); }

// Builds the symmetric tensor from its entries in the protocol's order: xx, yy, zz, xy, xz, yz.
static inline rw_mat3 rw_mat3_symmetric(const double e[6]) {
    return (rw_mat3){{{e[0], e[3], e[4]}, {e[3], e[1], e[5]}, {e[4], e[5], e[2]}}};
}

static inline rw_mat3 rw_mat3_from_columns(rw_vec3 a, rw_vec3 b, rw_vec3 c) {
    return (rw_mat3){{{a.x, b.x, c.x}, {a.y, b.y, c.y}, {a.z, b.z, c.z}}};
}

static inline rw_vec3 rw_mat3_column(const rw_mat3* a, int k) {
    return (rw_vec3){a->m[0][k], a->m[1][k], a->m[2][k]};
}

static inline rw_vec3 rw_mat3_row(const rw_mat3* a, int k) {
    return (rw_vec3){a->m[k][0], a->m[k][1], a->m[k][2]};
}

// The hat map (seed 000, eq. 2): hat(a) b = a x b.
static inline rw_mat3 rw_mat3_hat(rw_vec3 a) {
    return (rw_mat3){{{0.0, -a.z, a.y}, {a.z, 0.0, -a.x}, {-a.y, a.x, 0.0}}};
}

// The vee map (seed 000, eq. 3) of the antisymmetric part of `a`.
static inline rw_vec3 rw_mat3_vee(const rw_mat3* a) {
    return (rw_vec3){0.5 * (a->m[2][1] - a->m[1][2]), 0.5 * (a->m[0][2] - a->m[2][0]),
                     0.5 * (a->m[1][0] - a->m[0][1])};
}

// Returns a b'.
static inline rw_mat3 rw_mat3_outer(rw_vec3 a, rw_vec3 b) {
    return (rw_mat3){{{a.x * b.x, a.x * b.y, a.x * b.z},
                      {a.y * b.x, a.y * b.y, a.y * b.z},
                      {a.z * b.x, a.z * b.y, a.z * b.z}}};
}

static inline rw_mat3 rw_mat3_add(rw_mat3 a, rw_mat3 b) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            a.m[i][j] += b.m[i][j];
    return a;
}

static inline rw_mat3 rw_mat3_sub(rw_mat3 a, rw_mat3 b) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            a.m[i][j] -= b.m[i][j];
    return a;
}

static inline rw_mat3 rw_mat3_scale(rw_mat3 a, double s) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            a.m[i][j] *= s;
    return a;
}

static inline rw_mat3 rw_mat3_transpose(rw_mat3 a) {
    return (rw_mat3){{{a.m[0][0], a.m[1][0], a.m[2][0]},
                      {a.m[0][1], a.m[1][1], a.m[2][1]},
                      {a.m[0][2], a.m[1][2], a.m[2][2]}}};
}

// Returns a b.
static inline rw_mat3 rw_mat3_mul(rw_mat3 a, rw_mat3 b) {
    rw_mat3 c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c.m[i][j] = a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j] + a.m[i][2] * b.m[2][j];
    return c;
}

// Returns a' b.
static inline rw_mat3 rw_mat3_transpose_mul(rw_mat3 a, rw_mat3 b) {
    rw_mat3 c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c.m[i][j] = a.m[0][i] * b.m[0][j] + a.m[1][i] * b.m[1][j] + a.m[2][i] * b.m[2][j];
    return c;
}

// Returns a b'.
static inline rw_mat3 rw_mat3_mul_transpose(rw_mat3 a, rw_mat3 b) {
    rw_mat3 c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c.m[i][j] = a.m[i][0] * b.m[j][0] + a.m[i][1] * b.m[j][1] + a.m[i][2] * b.m[j][2];
    return c;
}

// Returns a v.
static inline rw_vec3 rw_mat3_apply(const rw_mat3* a, rw_vec3 v) {
    return (rw_vec3){a->m[0][0] * v.x + a->m[0][1] * v.y + a->m[0][2] * v.z,
                     a->m[1][0] * v.x + a->m[1][1] * v.y + a->m[1][2] * v.z,
                     a->m[2][0] * v.x + a->m[2][1] * v.y + a->m[2][2] * v.z};
}

// Returns a' v.
static inline rw_vec3 rw_mat3_apply_transpose(const rw_mat3* a, rw_vec3 v) {
    return (rw_vec3){a->m[0][0] * v.x + a->m[1][0] * v.y + a->m[2][0] * v.z,
                     a->m[0][1] * v.x + a->m[1][1] * v.y + a->m[2][1] * v.z,
                     a->m[0][2] * v.x + a->m[1][2] * v.y + a->m[2][2] * v.z};
}

static inline double rw_mat3_trace(const rw_mat3* a) {
    return a->m[0][0] + a->m[1][1] + a->m[2][2];
}

static inline double rw_mat3_det(const rw_mat3* a) {
    return rw_vec3_dot(rw_mat3_row(a, 0), rw_vec3_cross(rw_mat3_row(a, 1), rw_mat3_row(a, 2)));
}

// Returns the inverse by cofactors; the caller knows that `a` is regular (a singular matrix gives
// infinities or NaN). For inertia tensors and other well conditioned blocks.
static inline rw_mat3 rw_mat3_inverse(rw_mat3 a) {
    rw_vec3 r0 = rw_mat3_row(&a, 0), r1 = rw_mat3_row(&a, 1), r2 = rw_mat3_row(&a, 2);
    rw_vec3 c0 = rw_vec3_cross(r1, r2), c1 = rw_vec3_cross(r2, r0), c2 = rw_vec3_cross(r0, r1);
    double s = 1.0 / rw_vec3_dot(r0, c0);
    return rw_mat3_from_columns(rw_vec3_scale(c0, s), rw_vec3_scale(c1, s), rw_vec3_scale(c2, s));
}

// Returns the largest absolute entry.
static inline double rw_mat3_max_abs(const rw_mat3* a) {
    double x = 0.0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            x = fabs(a->m[i][j]) > x ? fabs(a->m[i][j]) : x;
    return x;
}
