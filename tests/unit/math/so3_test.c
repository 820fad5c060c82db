#include "solvers/math/so3.h"
#include "solvers/math/trig.h"
#include "tests/support/rw_test.h"
#include "tests/unit/math/so3_table.inc"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EPS 0x1p-52

// A small reproducible generator: a fault must repeat.
static uint64_t seed = 88172645463325252u;
static double uniform(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-52 - 1.0;
}
static rw_vec3 random_vector(double length) {
    rw_vec3 v = {uniform(), uniform(), uniform()};
    return rw_vec3_scale(rw_vec3_normalize(v), length);
}
static rw_quat random_rotation(void) {
    return rw_quat_normalize((rw_quat){uniform(), uniform(), uniform(), uniform()});
}

static void assert_vec3_near(rw_vec3 a, rw_vec3 b, double tolerance) {
    rw_assert_near(a.x, b.x, tolerance);
    rw_assert_near(a.y, b.y, tolerance);
    rw_assert_near(a.z, b.z, tolerance);
}

static void assert_mat3_near(rw_mat3 a, rw_mat3 b, double tolerance) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            rw_assert_near(a.m[i][j], b.m[i][j], tolerance);
}

static void coefficients_are_good_to_rounding_at_every_angle(void** state) {
    (void)state;
    for (size_t i = 0; i < COUNT(coefficient_table); i++) {
        const double* r = coefficient_table[i];
        double t_sq = r[0] * r[0];
        rw_so3_coefficients k = rw_so3_evaluate(t_sq);
        // sinc and alpha have zeros (pi, 2 pi): t^2 is rounded, which moves them by its ulp.
        rw_assert_near(k.sinc, r[1], 4 * EPS);
        rw_assert_near(k.alpha, r[2], 6 * EPS * fmax(fabs(r[2]), 0.02));
        rw_assert_near(k.beta, r[3], 6 * EPS * fabs(r[3]));
        rw_assert_near(k.alpha_prime, r[4], 16 * EPS * fabs(r[4]));
        rw_assert_near(k.beta_prime, r[5], 16 * EPS * fabs(r[5]));
        double near_pole = r[0] > 6.1 && r[0] < 6.5 ? 2e4 : r[0] > 4.0 ? 64.0 : 8.0;
        rw_assert_near(rw_so3_gamma_inverse_coefficient(t_sq), r[6],
                       near_pole * EPS * fmax(fabs(r[6]), 0.01));
    }
    rw_so3_coefficients zero = rw_so3_evaluate(0.0);
    assert_true(zero.sinc == 1.0 && zero.alpha == 0.5 && zero.beta == 1.0 / 6.0);
    assert_true(rw_so3_gamma_inverse_coefficient(0.0) == 1.0 / 12.0);
}

static void the_pole_at_two_pi_stays_finite(void** state) {
    (void)state;
    double t = 2.0 * 3.141592653589793;
    for (int i = -4; i <= 4; i++) {
        double u = t + i * 1e-12;
        double c = rw_so3_gamma_inverse_coefficient(u * u);
        assert_true(isfinite(c) && fabs(c) < 2e7 && fabs(c) > 1e7);
    }
}

static void exponential_agrees_with_the_table(void** state) {
    (void)state;
    for (size_t i = 0; i < COUNT(exp_table); i++) {
        const double* r = exp_table[i];
        rw_vec3 theta = rw_vec3_load(r);
        rw_quat q = rw_so3_exp(theta);
        rw_mat3 m = rw_so3_exp_mat3(theta);
        double t = rw_vec3_norm(theta), scale = fmin(1.0, t);
        double tolerance = t > 4.0 ? 3 * EPS * t : 3 * EPS;
        rw_assert_near(q.w, r[3], tolerance);
        rw_assert_near(q.x, r[4], tolerance * scale);
        rw_assert_near(q.y, r[5], tolerance * scale);
        rw_assert_near(q.z, r[6], tolerance * scale);
        for (int k = 0; k < 9; k++)
            rw_assert_near(m.m[k / 3][k % 3], r[7 + k],
                           k % 4 == 0 ? 2 * tolerance : 2 * tolerance * scale);
    }
}

static void logarithm_inverts_the_exponential_from_tiny_angles_to_pi(void** state) {
    (void)state;
    const double angles[] = {1e-300, 1e-160, 1e-30, 1e-12, 1e-8, 1e-5, 1e-3, 0.01, 0.1, 1.0, 2.0,
                             3.0,    3.1,    3.14,  3.1415, 3.14159265, 3.1415926535};
    for (size_t i = 0; i < COUNT(angles); i++)
        for (int k = 0; k < 50; k++) {
            rw_vec3 t = random_vector(angles[i]);
            double tolerance = 8 * EPS * angles[i];
            assert_vec3_near(rw_so3_log(rw_so3_exp(t)), t, tolerance);
            assert_vec3_near(rw_so3_log(rw_quat_neg(rw_so3_exp(t))), t, tolerance);
            rw_mat3 m = rw_so3_exp_mat3(t);
            if (angles[i] > 1e-150) // the matrix holds sums with 1
                assert_vec3_near(rw_so3_log_mat3(&m), t, fmax(4 * tolerance, 1e-16 * angles[i]));
        }
}

static void logarithm_at_pi_returns_the_axis_with_positive_first_component(void** state) {
    (void)state;
    const double pi = 3.141592653589793;
    assert_vec3_near(rw_so3_log((rw_quat){0, 1, 0, 0}), (rw_vec3){pi, 0, 0}, 0);
    assert_vec3_near(rw_so3_log((rw_quat){0, -1, 0, 0}), (rw_vec3){pi, 0, 0}, 0);
    assert_vec3_near(rw_so3_log((rw_quat){-0.0, 0, -0.6, 0.8}), (rw_vec3){0, pi * 0.6, -pi * 0.8},
                     1e-15);
    rw_mat3 m = rw_mat3_diagonal(-1, 1, -1);
    assert_vec3_near(rw_so3_log_mat3(&m), (rw_vec3){0, pi, 0}, 0);
    assert_vec3_near(rw_so3_log(rw_quat_identity()), rw_vec3_zero(), 0);
    assert_vec3_near(rw_so3_log((rw_quat){-1, 0, 0, 0}), rw_vec3_zero(), 0);
}

static void boxplus_undoes_boxminus_for_quaternions_and_matrices(void** state) {
    (void)state;
    for (int k = 0; k < 200; k++) {
        rw_quat a = random_rotation(), b = random_rotation();
        rw_vec3 d = rw_so3_boxminus(a, b);
        rw_quat c = rw_so3_boxplus(b, d);
        if (rw_quat_dot(a, c) < 0.0)
            c = rw_quat_neg(c);
        rw_assert_near(rw_quat_norm(rw_quat_sub(a, c)), 0.0, 1e-15);
        // Section 3.5: the matrix path is the quaternion path.
        rw_mat3 ma = rw_quat_to_mat3(a), mb = rw_quat_to_mat3(b);
        rw_vec3 dm = rw_so3_boxminus_mat3(&ma, &mb);
        assert_vec3_near(dm, d, 1e-14);
        assert_mat3_near(rw_so3_boxplus_mat3(&mb, d), ma, 4e-15);
        assert_mat3_near(rw_quat_to_mat3(rw_so3_boxplus(a, d)), rw_so3_boxplus_mat3(&ma, d), 4e-15);
    }
}

static void gamma_and_its_inverse_are_inverse_and_keep_their_argument(void** state) {
    (void)state;
    for (int k = 0; k < 200; k++) {
        rw_vec3 t = random_vector(fabs(uniform()) * 3.14), v = random_vector(1.0);
        rw_mat3 g = rw_so3_gamma(t), gi = rw_so3_gamma_inverse(t);
        assert_mat3_near(rw_mat3_mul(g, gi), rw_mat3_identity(), 3e-15);
        // Equation 148, also for the transposes.
        assert_vec3_near(rw_mat3_apply(&g, t), t, 3e-15);
        assert_vec3_near(rw_mat3_apply(&gi, t), t, 3e-15);
        assert_vec3_near(rw_mat3_apply_transpose(&g, t), t, 3e-15);
        assert_vec3_near(rw_mat3_apply_transpose(&gi, t), t, 3e-15);
        assert_vec3_near(rw_so3_gamma_apply(t, v), rw_mat3_apply(&g, v), 1e-15);
        assert_vec3_near(rw_so3_gamma_inverse_apply(t, v), rw_mat3_apply(&gi, v), 2e-15);
    }
}

static void identity_147_relates_the_transpose_of_the_inverse_jacobian(void** state) {
    (void)state;
    for (int k = 0; k < 200; k++) {
        rw_quat q1 = random_rotation(), q2 = random_rotation();
        rw_mat3 r1 = rw_quat_to_mat3(q1), r2 = rw_quat_to_mat3(q2);
        rw_mat3 gi = rw_so3_gamma_inverse(rw_so3_boxminus(q1, q2));
        assert_mat3_near(rw_mat3_transpose(gi), rw_mat3_mul(gi, rw_mat3_transpose_mul(r1, r2)),
                         1e-14);
    }
}

static void identity_141_holds_to_second_order(void** state) {
    (void)state;
    rw_vec3 base = random_vector(1.0), dir = random_vector(1.0);
    double last = 0.0;
    for (int k = 0; k < 4; k++) {
        double h = 1e-2 * pow(0.5, k);
        rw_quat r2 = random_rotation(), r1 = rw_so3_boxplus(r2, rw_vec3_scale(base, h));
        rw_vec3 v = rw_vec3_scale(dir, h);
        rw_vec3 left = rw_so3_boxminus(r1, rw_so3_boxplus(r2, v));
        rw_vec3 right = rw_vec3_sub(rw_so3_boxminus(r1, r2), v);
        double error = rw_vec3_norm(rw_vec3_sub(left, right));
        if (k > 0)
            rw_assert_near(last / error, 4.0, 0.1);
        last = error;
    }
}

// Central differences along the axes of the derivatives that section 3.4 lists.
static rw_vec3 axis(int i) { return (rw_vec3){i == 0, i == 1, i == 2}; }

static void set_column(rw_mat3* m, int j, rw_vec3 plus, rw_vec3 minus, double h) {
    rw_vec3 c = rw_vec3_scale(rw_vec3_sub(plus, minus), 0.5 / h);
    m->m[0][j] = c.x;
    m->m[1][j] = c.y;
    m->m[2][j] = c.z;
}

static void jacobian_blocks_match_finite_differences(void** state) {
    (void)state;
    const double h = 1e-5, tolerance = 2e-9;
    for (int k = 0; k < 20; k++) {
        rw_quat q1 = random_rotation(), q2 = rw_so3_boxplus(q1, random_vector(2.0 * fabs(uniform())));
        rw_mat3 r1 = rw_quat_to_mat3(q1), r2 = rw_quat_to_mat3(q2);
        rw_vec3 p = random_vector(1.0), t = random_vector(3.0 * fabs(uniform()));
        rw_mat3 d[8];
        for (int j = 0; j < 3; j++) {
            rw_vec3 e = rw_vec3_scale(axis(j), h), f = rw_vec3_neg(e);
            rw_quat a = rw_so3_boxplus(q1, e), b = rw_so3_boxplus(q1, f);
            rw_quat c = rw_so3_boxplus(q2, e), g = rw_so3_boxplus(q2, f);
            set_column(&d[0], j, rw_quat_rotate(a, p), rw_quat_rotate(b, p), h);
            set_column(&d[1], j, rw_quat_inverse_rotate(a, p), rw_quat_inverse_rotate(b, p), h);
            rw_quat i1 = rw_quat_conj(q1), p12 = rw_quat_mul(q1, q2);
            set_column(&d[2], j, rw_so3_boxminus(rw_quat_conj(a), i1),
                       rw_so3_boxminus(rw_quat_conj(b), i1), h);
            set_column(&d[3], j, rw_so3_boxminus(rw_quat_mul(a, q2), p12),
                       rw_so3_boxminus(rw_quat_mul(b, q2), p12), h);
            set_column(&d[4], j, rw_so3_boxminus(a, q2), rw_so3_boxminus(b, q2), h);
            set_column(&d[5], j, rw_so3_boxminus(q1, c), rw_so3_boxminus(q1, g), h);
            rw_quat et = rw_so3_exp(t);
            set_column(&d[6], j, rw_so3_boxminus(rw_so3_exp(rw_vec3_add(t, e)), et),
                       rw_so3_boxminus(rw_so3_exp(rw_vec3_add(t, f)), et), h);
            set_column(&d[7], j, rw_so3_gamma_apply(rw_vec3_add(t, e), p),
                       rw_so3_gamma_apply(rw_vec3_add(t, f), p), h);
        }
        rw_vec3 difference = rw_so3_boxminus(q1, q2);
        assert_mat3_near(rw_so3_d_rotate(&r1, p), d[0], tolerance);
        assert_mat3_near(rw_so3_d_inverse_rotate(&r1, p), d[1], tolerance);
        assert_mat3_near(rw_so3_d_inverse(&r1), d[2], tolerance);
        assert_mat3_near(rw_so3_d_compose_first(&r2), d[3], tolerance);
        assert_mat3_near(rw_so3_d_boxminus_first(difference), d[4], tolerance);
        assert_mat3_near(rw_so3_d_boxminus_second(difference), d[5], tolerance);
        assert_mat3_near(rw_so3_gamma(t), d[6], tolerance);
        assert_mat3_near(rw_so3_gamma_derivative(t, p), d[7], tolerance);
    }
    // At zero the derivative of Gamma v is alpha hat(v) = hat(v)/2.
    rw_vec3 v = {0.3, -2.0, 0.7};
    assert_mat3_near(rw_so3_gamma_derivative(rw_vec3_zero(), v),
                     rw_mat3_scale(rw_mat3_hat(v), 0.5), 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_good_to_rounding_at_every_angle),
        cmocka_unit_test(the_pole_at_two_pi_stays_finite),
        cmocka_unit_test(exponential_agrees_with_the_table),
        cmocka_unit_test(logarithm_inverts_the_exponential_from_tiny_angles_to_pi),
        cmocka_unit_test(logarithm_at_pi_returns_the_axis_with_positive_first_component),
        cmocka_unit_test(boxplus_undoes_boxminus_for_quaternions_and_matrices),
        cmocka_unit_test(gamma_and_its_inverse_are_inverse_and_keep_their_argument),
        cmocka_unit_test(identity_147_relates_the_transpose_of_the_inverse_jacobian),
        cmocka_unit_test(identity_141_holds_to_second_order),
        cmocka_unit_test(jacobian_blocks_match_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
