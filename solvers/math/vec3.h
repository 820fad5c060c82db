// Vectors of three doubles, passed by value: the algebra that positions, velocities, forces and
// rotation vectors share. Pure inline functions without state; any thread may call them.
#pragma once

#include <math.h>

typedef struct rw_vec3 {
    double x, y, z;
} rw_vec3;

static inline rw_vec3 rw_vec3_make(double x, double y, double z) { return (rw_vec3){x, y, z}; }

static inline rw_vec3 rw_vec3_zero(void) { return (rw_vec3){0.0, 0.0, 0.0}; }

// Reads three consecutive doubles; `p` is borrowed.
static inline rw_vec3 rw_vec3_load(const double* p) { return (rw_vec3){p[0], p[1], p[2]}; }

// Writes three consecutive doubles at `p`.
static inline void rw_vec3_store(double* p, rw_vec3 a) {
    p[0] = a.x;
    p[1] = a.y;
    p[2] = a.z;
}

static inline rw_vec3 rw_vec3_add(rw_vec3 a, rw_vec3 b) {
    return (rw_vec3){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline rw_vec3 rw_vec3_sub(rw_vec3 a, rw_vec3 b) {
    return (rw_vec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline rw_vec3 rw_vec3_neg(rw_vec3 a) { return (rw_vec3){-a.x, -a.y, -a.z}; }

static inline rw_vec3 rw_vec3_scale(rw_vec3 a, double s) {
    return (rw_vec3){a.x * s, a.y * s, a.z * s};
}

// Returns a + s b (two roundings per component, never fused).
static inline rw_vec3 rw_vec3_add_scaled(rw_vec3 a, double s, rw_vec3 b) {
    return (rw_vec3){a.x + s * b.x, a.y + s * b.y, a.z + s * b.z};
}

// Multiplies component by component.
static inline rw_vec3 rw_vec3_mul(rw_vec3 a, rw_vec3 b) {
    return (rw_vec3){a.x * b.x, a.y * b.y, a.z * b.z};
}

static inline double rw_vec3_dot(rw_vec3 a, rw_vec3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline rw_vec3 rw_vec3_cross(rw_vec3 a, rw_vec3 b) {
    return (rw_vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline double rw_vec3_norm_sq(rw_vec3 a) { return a.x * a.x + a.y * a.y + a.z * a.z; }

static inline double rw_vec3_norm(rw_vec3 a) { return sqrt(rw_vec3_norm_sq(a)); }

// Returns the largest absolute component.
static inline double rw_vec3_max_abs(rw_vec3 a) {
    double x = fabs(a.x), y = fabs(a.y), z = fabs(a.z);
    double m = x > y ? x : y;
    return m > z ? m : z;
}

// Returns a/|a|, or `fallback` where |a|^2 is zero, subnormal or not a number.
static inline rw_vec3 rw_vec3_normalize_or(rw_vec3 a, rw_vec3 fallback) {
    double n2 = rw_vec3_norm_sq(a);
    if (!(n2 >= 0x1p-1000))
        return fallback;
    return rw_vec3_scale(a, 1.0 / sqrt(n2));
}

// Returns a/|a|; the zero vector stays zero.
static inline rw_vec3 rw_vec3_normalize(rw_vec3 a) {
    return rw_vec3_normalize_or(a, rw_vec3_zero());
}

// Returns a unit vector perpendicular to `a` (zero for zero): the cross product with the axis of
// a's smallest component, so that the result is well conditioned and a function of `a` alone.
static inline rw_vec3 rw_vec3_perpendicular(rw_vec3 a) {
    double x = fabs(a.x), y = fabs(a.y), z = fabs(a.z);
    rw_vec3 axis = (x <= y && x <= z) ? (rw_vec3){1.0, 0.0, 0.0}
                   : (y <= z)         ? (rw_vec3){0.0, 1.0, 0.0}
                                      : (rw_vec3){0.0, 0.0, 1.0};
    return rw_vec3_normalize(rw_vec3_cross(a, axis));
}

static inline int rw_vec3_is_finite(rw_vec3 a) {
    return isfinite(a.x) && isfinite(a.y) && isfinite(a.z);
}
