// The closed-form orientation of one segment (Stable Cosserat Rods, SIGGRAPH 2025, section 4; seed
// 001 note 3): the unit quaternion q that minimises
//
//     -u . (q e3 q*)/2 - <b, q>
//
// where u = 2 k_s/l dx pulls the tangent and b sums the bend elements' pulls. With the symmetric map
// L q = v q e3, v = -u, stationarity is L q + b = lambda q and q = (L b + lambda b)/(lambda^2 - V^2),
// V = |u|. L has the eigenvalues +V (quaternions whose tangent points along u) and -V (against u), so
// b splits into b+ and b- and the solution into
//
//     q = b+ / (lambda - V) + b- / (lambda + V)
//
// The largest root lambda is the global minimum. With P = |b+|, M = |b-| and t = |q-|/|q+|, the
// tangent of half the angle between q's tangent and u, the quartic for lambda becomes
//
//     2 V t / sqrt(1 + t^2) + P t = M
//
// which is increasing and concave: Newton's method from t = M/(2V + P) rises monotonically to the
// root, quadratically, without history. The paper's gamma is (lambda - V)/|b| = P sqrt(1 + t^2)/|b|;
// its fixed point is warm-started through gamma and contracts by up to 1/2 per round.
//
// Pure inline functions without state; any thread may call them.
#pragma once

#include <math.h>
#include <stdbool.h>

#include "solvers/math/quat.h"

enum { RW_ORIENTATION_NEWTON_MAX = 64 };

// Returns b+ = (b + L b/V)/2 for the unit direction n = u/V; b- is what is left.
static inline rw_quat rw_orientation_along(rw_vec3 n, rw_quat b) {
    // p = n b as quaternions, then L b / V = -p e3 = -(-p.z, p.y, -p.x, p.w).
    double pw = -(n.x * b.x + n.y * b.y + n.z * b.z);
    double px = n.x * b.w + n.y * b.z - n.z * b.y;
    double py = n.y * b.w + n.z * b.x - n.x * b.z;
    double pz = n.z * b.w + n.x * b.y - n.y * b.x;
    return (rw_quat){0.5 * (b.w + pz), 0.5 * (b.x - py), 0.5 * (b.y + px), 0.5 * (b.z - pw)};
}

// Returns the current frame turned by the smallest rotation that takes its tangent to n: its part
// along n, normalised. A tangent exactly against n is turned about d1.
static inline rw_quat rw_orientation_turn(rw_vec3 n, rw_quat current) {
    rw_quat along = rw_orientation_along(n, current);
    double size = rw_quat_norm(along);
    if (size <= 1e-15)
        return rw_quat_mul(current, (rw_quat){0.0, 1.0, 0.0, 0.0});
    return rw_quat_scale(along, 1.0 / size);
}

// Returns 1/sqrt(1 + t2); for small t2 by the series, to rounding, without a root or a division.
static inline double rw_orientation_cosine(double t2) {
    if (t2 < 1e-4)
        return 1.0 - t2 * (0.5 - t2 * (0.375 - t2 * (0.3125 - t2 * 0.2734375)));
    return 1.0 / sqrt(1.0 + t2);
}

// Solves 2 V t / sqrt(1 + t^2) + P t = M for t >= 0; V > 0, P > 0, M >= 0.
static inline double rw_orientation_root(double v, double p, double m) {
    double t = m / (2.0 * v + p);
    for (int round = 0; round < RW_ORIENTATION_NEWTON_MAX; round++) {
        double c = rw_orientation_cosine(t * t);
        double step = (m - t * (2.0 * v * c + p)) / (2.0 * v * c * c * c + p);
        t += step;
        // What is left after a step is below 1.5 step^2 of t (of step^2/t beyond 1). NaN ends, too.
        if (!(step > 2e-9 * (t > 1.0 ? t : 1.0)))
            break;
    }
    return t;
}

// Returns the orientation: exact, or with the paper's lambda = V + |b|, normalised. Defined always:
//   u = 0               q = b/|b|
//   b = 0, or b+ = 0    the + part is free: it is the current frame's, turned smallest
//   u = 0 and b = 0     the current frame
// `current` is a unit quaternion. Not-a-numbers come out as such.
static inline rw_quat rw_orientation_solve(rw_vec3 u, rw_quat b, rw_quat current, bool exact) {
    double v = rw_vec3_norm(u);
    if (v <= 1e-290) {
        double size = rw_quat_norm(b);
        return size <= 1e-290 ? current : rw_quat_scale(b, 1.0 / size);
    }
    rw_vec3 n = rw_vec3_scale(u, 1.0 / v);
    rw_quat plus = rw_orientation_along(n, b);
    rw_quat minus = rw_quat_sub(b, plus);
    double p2 = rw_quat_norm_sq(plus), m2 = rw_quat_norm_sq(minus);
    if (p2 <= 1e-30 * m2) { // below rounding of b: b+ has no direction

        rw_quat free_part = rw_orientation_turn(n, current);
        double s = sqrt(m2) / (2.0 * v); // |q-|
        if (s >= 1.0)
            return rw_quat_scale(minus, 1.0 / sqrt(m2));
        rw_quat q = rw_quat_scale(free_part, sqrt(1.0 - s * s));
        return rw_quat_add(q, rw_quat_scale(minus, 1.0 / (2.0 * v)));
    }
    double p = sqrt(p2);
    if (!exact) {
        double size = sqrt(p2 + m2);
        double w = size / (2.0 * v + size);
        rw_quat q = rw_quat_add(plus, rw_quat_scale(minus, w));
        return rw_quat_scale(q, 1.0 / rw_quat_norm(q));
    }
    double m = sqrt(m2);
    double t = rw_orientation_root(v, p, m);
    double c = rw_orientation_cosine(t * t);
    // q = c (b+/P + t b-/M), and t/M = 1/(2 V c + P) at the root, which needs no division by M.
    double r = p / (2.0 * v * c + p);
    rw_quat q = rw_quat_add(plus, rw_quat_scale(minus, r));
    return rw_quat_scale(q, c / p);
}
