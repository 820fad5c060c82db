#include "solvers/math/so3.h"

#include "solvers/math/trig.h"

// Above this |theta|^2 (|theta| = 3.3) the closed forms take over; they lose nothing there.
#define SERIES_LIMIT_SQ 10.89
#define SERIES_TERMS 15
#define HALF_TERMS 12

// Power series in t^2. Signs alternate and no partial sum exceeds a few times the result up to
// the limit, so Horner's rule is good to rounding.
static const double sinc_series[SERIES_TERMS] = {
    0x1.0000000000000p+0,   -0x1.5555555555555p-3, 0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13,
    0x1.71de3a556c734p-19,  -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41,
    0x1.952c77030ad4ap-49,  -0x1.2f49b46814157p-57, 0x1.71b8ef6dcf572p-66, -0x1.761b41316381ap-75,
    0x1.3f3ccdd165fa9p-84,  -0x1.d1ab1c2dccea3p-94, 0x1.259f98b4358adp-103};
static const double alpha_series[SERIES_TERMS] = {
    0x1.0000000000000p-1,   -0x1.5555555555555p-5, 0x1.6c16c16c16c17p-10, -0x1.a01a01a01a01ap-16,
    0x1.27e4fb7789f5cp-22,  -0x1.1eed8eff8d898p-29, 0x1.93974a8c07c9dp-37, -0x1.ae7f3e733b81fp-45,
    0x1.6827863b97d97p-53,  -0x1.e542ba4020225p-62, 0x1.0ce396db7f853p-70, -0x1.f2cf01972f578p-80,
    0x1.88e85fc6a4e5ap-89,  -0x1.0a18a2635085dp-98, 0x1.3932c5047d60ep-108};
static const double beta_series[SERIES_TERMS] = {
    0x1.5555555555555p-3,   -0x1.1111111111111p-7, 0x1.a01a01a01a01ap-13, -0x1.71de3a556c734p-19,
    0x1.ae64567f544e4p-26,  -0x1.6124613a86d09p-33, 0x1.ae7f3e733b81fp-41, -0x1.952c77030ad4ap-49,
    0x1.2f49b46814157p-57,  -0x1.71b8ef6dcf572p-66, 0x1.761b41316381ap-75, -0x1.3f3ccdd165fa9p-84,
    0x1.d1ab1c2dccea3p-94,  -0x1.259f98b4358adp-103, 0x1.434d2e783f5bcp-113};
static const double alpha_prime_series[SERIES_TERMS] = {
    -0x1.5555555555555p-4,  0x1.6c16c16c16c17p-8,  -0x1.3813813813814p-13, 0x1.27e4fb7789f5cp-19,
    -0x1.66a8f2bf70ebep-26, 0x1.2eb177e905d76p-33, -0x1.78af56a4d411bp-41, 0x1.6827863b97d97p-49,
    -0x1.10f588c412135p-57, 0x1.501c7c925f667p-66, -0x1.56ee5117f08c2p-75, 0x1.26ae47d4fbac3p-84,
    -0x1.b06807e162d97p-94, 0x1.120c6c63edb4dp-103, -0x1.2f185b90bb660p-113};
static const double beta_prime_series[SERIES_TERMS] = {
    -0x1.1111111111111p-6,  0x1.a01a01a01a01ap-11, -0x1.1566abc011567p-16, 0x1.ae64567f544e4p-23,
    -0x1.b96d79892884cp-30, 0x1.42df6ed66ca17p-37, -0x1.6286e822a97a1p-45, 0x1.2f49b46814157p-53,
    -0x1.9ff00d5b89420p-62, 0x1.d3a2117dbc620p-71, -0x1.b6f39affec388p-80, 0x1.5d40552259afap-89,
    -0x1.dd235824d701ap-99, 0x1.1ae388a937705p-108, -0x1.25e912f8f3c7dp-118};
// cos h and (sin h - h cos h)/h^3 in h^2, for h = |theta|/2 <= 1.65.
static const double cos_series[HALF_TERMS] = {
    0x1.0000000000000p+0,  -0x1.0000000000000p-1,  0x1.5555555555555p-5,  -0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37,
    0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53, 0x1.e542ba4020225p-62, -0x1.0ce396db7f853p-70};
static const double cotangent_series[11] = {
    0x1.5555555555555p-2,  -0x1.1111111111111p-5,  0x1.3813813813814p-10, -0x1.71de3a556c734p-16,
    0x1.0cfeb60f94b0ep-22, -0x1.08db48ebe51c7p-29, 0x1.78af56a4d411bp-37, -0x1.952c77030ad4ap-45,
    0x1.5532eaf516982p-53, -0x1.ce272b49432cep-62, 0x1.0132bcd1f4692p-70};

static inline double horner(const double* c, int n, double z) {
    double s = c[n - 1];
    for (int k = n - 2; k >= 0; k--)
        s = c[k] + z * s;
    return s;
}

// Terms that the series needs at z: the count follows z, so small angles cost little.
static inline int terms_for(double z) { return z < 1e-3 ? 5 : z < 0.25 ? 8 : SERIES_TERMS; }

rw_so3_coefficients rw_so3_evaluate(double t_sq) {
    if (t_sq <= SERIES_LIMIT_SQ) {
        // Five Horner chains side by side: each waits for itself only.
        int n = terms_for(t_sq);
        rw_so3_coefficients k = {sinc_series[n - 1], alpha_series[n - 1], beta_series[n - 1],
                                 alpha_prime_series[n - 1], beta_prime_series[n - 1]};
        for (int i = n - 2; i >= 0; i--) {
            k.sinc = sinc_series[i] + t_sq * k.sinc;
            k.alpha = alpha_series[i] + t_sq * k.alpha;
            k.beta = beta_series[i] + t_sq * k.beta;
            k.alpha_prime = alpha_prime_series[i] + t_sq * k.alpha_prime;
            k.beta_prime = beta_prime_series[i] + t_sq * k.beta_prime;
        }
        return k;
    }
    double t = sqrt(t_sq), s, c, half_s, half_c;
    rw_trig_sincos(t, &s, &c);
    rw_trig_sincos(0.5 * t, &half_s, &half_c);
    double alpha = 2.0 * half_s * half_s / t_sq;
    double beta = (t - s) / (t_sq * t);
    return (rw_so3_coefficients){s / t, alpha, beta, (s / t - 2.0 * alpha) / t_sq,
                                 (alpha - 3.0 * beta) / t_sq};
}

// sin(h)/h and cos(h) for h = |theta|/2.
static void half_angle(double t_sq, double* sinc, double* cosine) {
    double h_sq = 0.25 * t_sq;
    if (t_sq <= SERIES_LIMIT_SQ) {
        int n = h_sq < 1e-3 ? 6 : HALF_TERMS;
        *sinc = horner(sinc_series, n, h_sq);
        *cosine = horner(cos_series, n, h_sq);
        return;
    }
    double h = sqrt(h_sq), s;
    rw_trig_sincos(h, &s, cosine);
    *sinc = s / h;
}

// Written as N/(4 S) with N = (sin h - h cos h)/h^3, S = sin h/h, h = t/2: neither cancels.
double rw_so3_gamma_inverse_coefficient(double t_sq) {
    double h_sq = 0.25 * t_sq, n, s;
    if (t_sq <= SERIES_LIMIT_SQ) {
        // Both chains side by side; small angles need few terms.
        int terms = h_sq < 2.5e-4 ? 5 : h_sq < 0.0625 ? 7 : 11;
        n = cotangent_series[terms - 1];
        s = terms == 11 ? sinc_series[10] + h_sq * sinc_series[11] : sinc_series[terms - 1];
        for (int k = terms - 2; k >= 0; k--) {
            n = cotangent_series[k] + h_sq * n;
            s = sinc_series[k] + h_sq * s;
        }
    } else {
        double h = sqrt(h_sq), c;
        rw_trig_sincos(h, &s, &c);
        n = (s - h * c) / (h_sq * h);
        s /= h;
        if (fabs(s) < 1.6e-9) // the pole at 2 pi
            s = copysign(1.6e-9, s);
    }
    return n / (4.0 * s);
}

rw_quat rw_so3_exp(rw_vec3 theta) {
    double s, c;
    half_angle(rw_vec3_norm_sq(theta), &s, &c);
    s *= 0.5;
    return rw_quat_normalize((rw_quat){c, s * theta.x, s * theta.y, s * theta.z});
}

static rw_mat3 exp_from(const rw_so3_coefficients* of, rw_vec3 theta) {
    rw_so3_coefficients k = *of;
    double x = theta.x, y = theta.y, z = theta.z, a = k.alpha;
    double sx = k.sinc * x, sy = k.sinc * y, sz = k.sinc * z;
    return (rw_mat3){{{1.0 - a * (y * y + z * z), a * x * y - sz, a * x * z + sy},
                      {a * x * y + sz, 1.0 - a * (x * x + z * z), a * y * z - sx},
                      {a * x * z - sy, a * y * z + sx, 1.0 - a * (x * x + y * y)}}};
}

rw_mat3 rw_so3_exp_mat3(rw_vec3 theta) {
    rw_so3_coefficients k = rw_so3_evaluate(rw_vec3_norm_sq(theta));
    return exp_from(&k, theta);
}

// The sign that makes equal rotations equal: w >= 0, and at w = 0 a positive first component.
static rw_quat upper_half(rw_quat q) {
    double lead = q.w != 0.0 ? q.w : q.x != 0.0 ? q.x : q.y != 0.0 ? q.y : q.z;
    return lead < 0.0 ? rw_quat_neg(q) : q;
}

rw_vec3 rw_so3_log(rw_quat q) {
    q = upper_half(q);
    rw_vec3 v = rw_quat_vector(q);
    double n_sq = rw_vec3_norm_sq(v);
    if (n_sq < 0x1p-60 * q.w * q.w) // 2 atan(n/w)/n = 2/w to rounding; |v|^2 may underflow
        return rw_vec3_scale(v, 2.0 / q.w);
    double n = sqrt(n_sq);
    return rw_vec3_scale(v, 2.0 * rw_trig_atan2(n, q.w) / n);
}

rw_vec3 rw_so3_log_mat3(const rw_mat3* r) { return rw_so3_log(rw_quat_from_mat3(r)); }

rw_quat rw_so3_boxplus(rw_quat q, rw_vec3 theta) {
    return rw_quat_normalize(rw_quat_mul(q, rw_so3_exp(theta)));
}

rw_mat3 rw_so3_boxplus_mat3(const rw_mat3* r, rw_vec3 theta) {
    return rw_mat3_mul(*r, rw_so3_exp_mat3(theta));
}

rw_vec3 rw_so3_boxminus(rw_quat q1, rw_quat q2) { return rw_so3_log(rw_quat_conj_mul(q2, q1)); }

rw_vec3 rw_so3_boxminus_mat3(const rw_mat3* r1, const rw_mat3* r2) {
    rw_mat3 r = rw_mat3_transpose_mul(*r2, *r1);
    return rw_so3_log_mat3(&r);
}

// I + first hat(theta) + second hat(theta)^2.
static rw_mat3 polynomial(rw_vec3 t, double first, double second) {
    double xy = second * t.x * t.y, xz = second * t.x * t.z, yz = second * t.y * t.z;
    double xx = t.x * t.x, yy = t.y * t.y, zz = t.z * t.z;
    double fx = first * t.x, fy = first * t.y, fz = first * t.z;
    return (rw_mat3){{{1.0 - second * (yy + zz), xy - fz, xz + fy},
                      {xy + fz, 1.0 - second * (xx + zz), yz - fx},
                      {xz - fy, yz + fx, 1.0 - second * (xx + yy)}}};
}

rw_mat3 rw_so3_gamma(rw_vec3 theta) {
    rw_so3_coefficients k = rw_so3_evaluate(rw_vec3_norm_sq(theta));
    return polynomial(theta, -k.alpha, k.beta);
}

rw_mat3 rw_so3_gamma_inverse(rw_vec3 theta) {
    return polynomial(theta, 0.5, rw_so3_gamma_inverse_coefficient(rw_vec3_norm_sq(theta)));
}

rw_vec3 rw_so3_gamma_apply(rw_vec3 theta, rw_vec3 v) {
    rw_so3_coefficients k = rw_so3_evaluate(rw_vec3_norm_sq(theta));
    rw_vec3 tv = rw_vec3_cross(theta, v);
    return rw_vec3_add_scaled(rw_vec3_add_scaled(v, -k.alpha, tv), k.beta,
                              rw_vec3_cross(theta, tv));
}

rw_vec3 rw_so3_gamma_inverse_apply(rw_vec3 theta, rw_vec3 v) {
    double c = rw_so3_gamma_inverse_coefficient(rw_vec3_norm_sq(theta));
    rw_vec3 tv = rw_vec3_cross(theta, v);
    return rw_vec3_add_scaled(rw_vec3_add_scaled(v, 0.5, tv), c, rw_vec3_cross(theta, tv));
}

// With p = theta x v and q = theta x p = theta (theta.v) - v |theta|^2:
// D = alpha hat(v) - (alpha'/t) p theta' + beta ((theta.v) I + theta v' - 2 v theta')
//     + (beta'/t) q theta'.
static rw_mat3 derivative_from(const rw_so3_coefficients* of, rw_vec3 theta, rw_vec3 v) {
    rw_so3_coefficients k = *of;
    rw_vec3 p = rw_vec3_cross(theta, v), q = rw_vec3_cross(theta, p);
    rw_vec3 left = rw_vec3_scale(p, -k.alpha_prime);
    left = rw_vec3_add_scaled(left, k.beta_prime, q);
    left = rw_vec3_add_scaled(left, -2.0 * k.beta, v);
    double dot = k.beta * rw_vec3_dot(theta, v);
    const double t[3] = {theta.x, theta.y, theta.z}, w[3] = {v.x, v.y, v.z};
    const double l[3] = {left.x, left.y, left.z};
    rw_mat3 d = {{{dot, -k.alpha * v.z, k.alpha * v.y},
                  {k.alpha * v.z, dot, -k.alpha * v.x},
                  {-k.alpha * v.y, k.alpha * v.x, dot}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            d.m[i][j] += k.beta * t[i] * w[j] + l[i] * t[j];
    return d;
}

rw_mat3 rw_so3_gamma_derivative(rw_vec3 theta, rw_vec3 v) {
    rw_so3_coefficients k = rw_so3_evaluate(rw_vec3_norm_sq(theta));
    return derivative_from(&k, theta, v);
}

void rw_so3_expand(rw_vec3 theta, rw_vec3 v, rw_so3_expansion* out) {
    rw_so3_coefficients k = rw_so3_evaluate(rw_vec3_norm_sq(theta));
    out->rotation = exp_from(&k, theta);
    out->gamma = polynomial(theta, -k.alpha, k.beta);
    out->derivative = derivative_from(&k, theta, v);
}

rw_mat3 rw_so3_d_rotate(const rw_mat3* r, rw_vec3 p) {
    return rw_mat3_mul(*r, rw_mat3_hat(rw_vec3_neg(p)));
}

rw_mat3 rw_so3_d_inverse_rotate(const rw_mat3* r, rw_vec3 p) {
    return rw_mat3_hat(rw_mat3_apply_transpose(r, p));
}

rw_mat3 rw_so3_d_inverse(const rw_mat3* r) { return rw_mat3_scale(*r, -1.0); }

rw_mat3 rw_so3_d_compose_first(const rw_mat3* r2) { return rw_mat3_transpose(*r2); }

rw_mat3 rw_so3_d_boxminus_first(rw_vec3 t) { return rw_so3_gamma_inverse(t); }

rw_mat3 rw_so3_d_boxminus_second(rw_vec3 t) {
    return rw_mat3_scale(rw_mat3_transpose(rw_so3_gamma_inverse(t)), -1.0);
}
