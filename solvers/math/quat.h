// Quaternions (w, x, y, z) of doubles, by value. Unit quaternions stand for rotations, body to
// world: `rotate(q, v)` takes body coordinates to world coordinates. Also the general (not unit)
// algebra that the rod solver needs. Pure inline functions without state; any thread may call them.
#pragma once

#include "solvers/math/mat3.h"
#include "solvers/math/vec3.h"

typedef struct rw_quat {
    double w, x, y, z;
} rw_quat;

static inline rw_quat rw_quat_make(double w, double x, double y, double z) {
    return (rw_quat){w, x, y, z};
}

static inline rw_quat rw_quat_identity(void) { return (rw_quat){1.0, 0.0, 0.0, 0.0}; }

// Reads four consecutive doubles w, x, y, z; `p` is borrowed.
static inline rw_quat rw_quat_load(const double* p) { return (rw_quat){p[0], p[1], p[2], p[3]}; }

static inline void rw_quat_store(double* p, rw_quat q) {
    p[0] = q.w;
    p[1] = q.x;
    p[2] = q.y;
    p[3] = q.z;
}

// The imaginary quaternion (0, v).
static inline rw_quat rw_quat_imaginary(rw_vec3 v) { return (rw_quat){0.0, v.x, v.y, v.z}; }

// The vector (imaginary) part.
static inline rw_vec3 rw_quat_vector(rw_quat q) { return (rw_vec3){q.x, q.y, q.z}; }

static inline rw_quat rw_quat_conj(rw_quat q) { return (rw_quat){q.w, -q.x, -q.y, -q.z}; }

static inline rw_quat rw_quat_neg(rw_quat q) { return (rw_quat){-q.w, -q.x, -q.y, -q.z}; }

static inline rw_quat rw_quat_add(rw_quat a, rw_quat b) {
    return (rw_quat){a.w + b.w, a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline rw_quat rw_quat_sub(rw_quat a, rw_quat b) {
    return (rw_quat){a.w - b.w, a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline rw_quat rw_quat_scale(rw_quat a, double s) {
    return (rw_quat){a.w * s, a.x * s, a.y * s, a.z * s};
}

static inline double rw_quat_dot(rw_quat a, rw_quat b) {
    return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline double rw_quat_norm_sq(rw_quat q) { return rw_quat_dot(q, q); }

static inline double rw_quat_norm(rw_quat q) { return sqrt(rw_quat_norm_sq(q)); }

// The Hamilton product a b: as rotations, first b, then a.
static inline rw_quat rw_quat_mul(rw_quat a, rw_quat b) {
    return (rw_quat){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
                     a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                     a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                     a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

// Returns a* b, the rotation of b relative to a in a's frame.
static inline rw_quat rw_quat_conj_mul(rw_quat a, rw_quat b) {
    return rw_quat_mul(rw_quat_conj(a), b);
}

// Returns q/|q|, or the identity where |q|^2 is zero, subnormal or not a number.
static inline rw_quat rw_quat_normalize(rw_quat q) {
    double n2 = rw_quat_norm_sq(q);
    if (!(n2 >= 0x1p-1000))
        return rw_quat_identity();
    return rw_quat_scale(q, 1.0 / sqrt(n2));
}

// Rotates v by the unit quaternion q (body to world): q v q*.
static inline rw_vec3 rw_quat_rotate(rw_quat q, rw_vec3 v) {
    rw_vec3 u = {q.x, q.y, q.z};
    rw_vec3 t = rw_vec3_cross(u, v);
    t = rw_vec3_add(t, t);
    rw_vec3 r = rw_vec3_add_scaled(v, q.w, t);
    return rw_vec3_add(r, rw_vec3_cross(u, t));
}

// Rotates v by the inverse of the unit quaternion q (world to body): q* v q.
static inline rw_vec3 rw_quat_inverse_rotate(rw_quat q, rw_vec3 v) {
    return rw_quat_rotate(rw_quat_conj(q), v);
}

// Returns the third column of the rotation matrix: q e3 q*, a rod's tangent, a joint's axis.
static inline rw_vec3 rw_quat_axis_z(rw_quat q) {
    return (rw_vec3){2.0 * (q.x * q.z + q.w * q.y), 2.0 * (q.y * q.z - q.w * q.x),
                     1.0 - 2.0 * (q.x * q.x + q.y * q.y)};
}

// Returns the rotation matrix of the unit quaternion q, body to world.
static inline rw_mat3 rw_quat_to_mat3(rw_quat q) {
    double xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
    double xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
    double wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
    return (rw_mat3){{{1.0 - 2.0 * (yy + zz), 2.0 * (xy - wz), 2.0 * (xz + wy)},
                      {2.0 * (xy + wz), 1.0 - 2.0 * (xx + zz), 2.0 * (yz - wx)},
                      {2.0 * (xz - wy), 2.0 * (yz + wx), 1.0 - 2.0 * (xx + yy)}}};
}

// Returns the unit quaternion of the rotation matrix r, with w >= 0. Divides by the largest of the
// four components (Shepperd's method), so it is accurate at every angle; small deviations of r from
// orthogonality are normalised away.
static inline rw_quat rw_quat_from_mat3(const rw_mat3* r) {
    double a = r->m[0][0], b = r->m[1][1], c = r->m[2][2];
    double zy = r->m[2][1], yz = r->m[1][2], xz = r->m[0][2], zx = r->m[2][0];
    double yx = r->m[1][0], xy = r->m[0][1];
    rw_quat q;
    if (a + b + c >= a && a + b + c >= b && a + b + c >= c)
        q = (rw_quat){1.0 + a + b + c, zy - yz, xz - zx, yx - xy};
    else if (a >= b && a >= c)
        q = (rw_quat){zy - yz, 1.0 + a - b - c, xy + yx, xz + zx};
    else if (b >= c)
        q = (rw_quat){xz - zx, xy + yx, 1.0 - a + b - c, yz + zy};
    else
        q = (rw_quat){yx - xy, xz + zx, yz + zy, 1.0 - a - b + c};
    return rw_quat_normalize(q.w < 0.0 ? rw_quat_neg(q) : q);
}

// The Cayley map: returns (1, v/2)/|(1, v/2)|, the rotation about v by 2 atan(|v|/2). With v = h w
// it is the orientation update of the implicit midpoint rule that keeps the world angular momentum
// to rounding (numerics page, seed 000 note 7); it falls short of exp by |v|^2/12 relative.
static inline rw_quat rw_quat_cayley(rw_vec3 v) {
    return rw_quat_normalize((rw_quat){1.0, 0.5 * v.x, 0.5 * v.y, 0.5 * v.z});
}

// Returns dq/dt = q (0, omega)/2 for the body-frame angular velocity omega [rad/s].
static inline rw_quat rw_quat_rate(rw_quat q, rw_vec3 omega) {
    return rw_quat_scale(rw_quat_mul(q, rw_quat_imaginary(omega)), 0.5);
}

// Returns the smallest rotation that takes the direction of `from` to that of `to`. Accurate up to
// antiparallel vectors: there (angle within 1e-14 of pi) the axis is rw_vec3_perpendicular(from).
// Zero vectors give the identity.
static inline rw_quat rw_quat_between(rw_vec3 from, rw_vec3 to) {
    rw_vec3 a = rw_vec3_normalize(from), b = rw_vec3_normalize(to);
    if (rw_vec3_norm_sq(a) == 0.0 || rw_vec3_norm_sq(b) == 0.0)
        return rw_quat_identity();
    rw_vec3 h = rw_vec3_add(a, b); // |h|^2/2 = 1 + cos, a x h = a x b, both without cancellation
    double w = 0.5 * rw_vec3_norm_sq(h);
    if (w < 1e-28) {
        rw_vec3 p = rw_vec3_perpendicular(a);
        return rw_quat_imaginary(p);
    }
    rw_vec3 v = rw_vec3_cross(a, h);
    return rw_quat_normalize((rw_quat){w, v.x, v.y, v.z});
}

static inline int rw_quat_is_finite(rw_quat q) {
    return isfinite(q.w) && isfinite(q.x) && isfinite(q.y) && isfinite(q.z);
}
