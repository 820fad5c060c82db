// The rotation group as a Lie group: exponential, logarithm, boxplus, boxminus and the Jacobians
// that joints and rods are made of (seed 000 = "Orientation in Extended Position-Based Dynamics",
// section 3 and appendices D, E, G). Right perturbations, body frame, throughout:
// R boxplus t = R exp(hat t), R1 boxminus R2 = log(R2' R1). Rotation vectors are in radians.
//
// Every coefficient is evaluated by a power series without cancellation up to |theta| = 3.3 and in
// closed form beyond, so results are good to rounding from the smallest angle to pi.
//
// At pi the logarithm jumps: rotations by pi about u and -u are the same. There (w = 0 exactly)
// the axis whose first nonzero component is positive is returned, so equal rotations give equal
// results; within rounding of pi the sign follows the argument. Pure functions; any thread.
#pragma once

#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/math/vec3.h"

// The coefficients of Gamma and of its derivative (seed 000, appendix G), t = |theta|:
typedef struct rw_so3_coefficients {
    double sinc;        // sin t / t
    double alpha;       // (1 - cos t)/t^2
    double beta;        // (t - sin t)/t^3
    double alpha_prime; // d alpha/dt / t (divided by t: finite at 0, and what is needed)
    double beta_prime;  // d beta/dt / t
} rw_so3_coefficients;

// Evaluates the coefficients at t = sqrt(t_sq), t_sq >= 0.
rw_so3_coefficients rw_so3_evaluate(double t_sq);

// Returns the coefficient of hat(theta)^2 in Gamma^-1 (eq. 27): 1/t^2 - (1 + cos t)/(2 t sin t),
// 1/12 at 0. It has a pole at t = 2 pi: within 1e-8 of it the value is held finite (about 1.6e7),
// beyond 2 pi it is the formula's. Arguments from a logarithm never exceed pi.
double rw_so3_gamma_inverse_coefficient(double t_sq);

// exp: rotation vector -> unit quaternion (eq. 31, 32) or matrix (eq. 6). Any |theta|.
rw_quat rw_so3_exp(rw_vec3 theta);
rw_mat3 rw_so3_exp_mat3(rw_vec3 theta);

// log: unit quaternion or rotation matrix -> rotation vector, |theta| <= pi. The quaternion's length
// may deviate from 1; +q and -q give the same vector.
rw_vec3 rw_so3_log(rw_quat q);
rw_vec3 rw_so3_log_mat3(const rw_mat3* r);

// q boxplus theta = q exp(theta), normalised (eq. 9, 33).
rw_quat rw_so3_boxplus(rw_quat q, rw_vec3 theta);
rw_mat3 rw_so3_boxplus_mat3(const rw_mat3* r, rw_vec3 theta);

// q1 boxminus q2 = log(q2* q1) (eq. 10, 33).
rw_vec3 rw_so3_boxminus(rw_quat q1, rw_quat q2);
rw_vec3 rw_so3_boxminus_mat3(const rw_mat3* r1, const rw_mat3* r2);

// The right Jacobian of exp (eq. 25): exp(theta + d) = exp(theta) boxplus Gamma(theta) d + O(d^2).
rw_mat3 rw_so3_gamma(rw_vec3 theta);

// Its inverse, the right Jacobian of log (eq. 27); see rw_so3_gamma_inverse_coefficient near 2 pi.
rw_mat3 rw_so3_gamma_inverse(rw_vec3 theta);

// Gamma(theta) v and Gamma^-1(theta) v without forming the matrices.
rw_vec3 rw_so3_gamma_apply(rw_vec3 theta, rw_vec3 v);
rw_vec3 rw_so3_gamma_inverse_apply(rw_vec3 theta, rw_vec3 v);

// The contraction of the derivative of Gamma (appendix G): the matrix D with
// D_ac = sum_b d Gamma_ab/d theta_c v_b, so that d(Gamma(theta) v) = D d theta for fixed v.
rw_mat3 rw_so3_gamma_derivative(rw_vec3 theta, rw_vec3 v);

// Everything that an interpolated rotation needs at theta, from one evaluation of the coefficients:
// exp(theta), Gamma(theta) and the contraction of its derivative with v.
typedef struct rw_so3_expansion {
    rw_mat3 rotation, gamma, derivative;
} rw_so3_expansion;
void rw_so3_expand(rw_vec3 theta, rw_vec3 v, rw_so3_expansion* out);

// Jacobian blocks of section 3.4. Rotation arguments are matrices; perturbations are body frame.
// D_R (R p) = -R hat(p) (eq. 20).
rw_mat3 rw_so3_d_rotate(const rw_mat3* r, rw_vec3 p);
// D_R (R' p) = hat(R' p): eq. 20 and 21 chained, (-R' hat(p)) (-R).
rw_mat3 rw_so3_d_inverse_rotate(const rw_mat3* r, rw_vec3 p);
// D_R (R') = -R (eq. 21).
rw_mat3 rw_so3_d_inverse(const rw_mat3* r);
// D_R1 (R1 R2) = R2' (eq. 22); D_R2 (R1 R2) is the identity (eq. 23).
rw_mat3 rw_so3_d_compose_first(const rw_mat3* r2);
// D_R1 (R1 boxminus R2) = Gamma^-1(t) and D_R2 = -Gamma^-1(t)' (eq. 28), t = R1 boxminus R2.
rw_mat3 rw_so3_d_boxminus_first(rw_vec3 t);
rw_mat3 rw_so3_d_boxminus_second(rw_vec3 t);
