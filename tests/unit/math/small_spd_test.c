#include "solvers/math/small_spd.h"
#include "solvers/math/quat.h"
#include "tests/support/rw_test.h"

static uint64_t seed = 1234567891011u;
static double uniform(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-52 - 1.0;
}

// A = B B' + small I of order n.
static void random_spd(int n, double* a) {
    double b[RW_SMALL_SPD_MAX * RW_SMALL_SPD_MAX];
    for (int i = 0; i < n * n; i++)
        b[i] = uniform();
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = i == j ? 0.05 : 0.0;
            for (int k = 0; k < n; k++)
                s += b[i * n + k] * b[j * n + k];
            a[i * n + j] = s;
        }
}

static void solves_every_size_with_a_small_residual(void** state) {
    (void)state;
    for (int n = 1; n <= RW_SMALL_SPD_MAX; n++)
        for (int repeat = 0; repeat < 20; repeat++) {
            double a[144], f[144], x[12], b[12], many[36];
            random_spd(n, a);
            memcpy(f, a, sizeof a);
            for (int i = 0; i < n; i++)
                x[i] = b[i] = many[3 * i] = many[3 * i + 1] = many[3 * i + 2] = uniform();
            assert_int_equal(rw_small_spd_factor(n, f, 1e-14), 0);
            rw_small_spd_solve(n, f, x);
            rw_small_spd_solve_many(n, f, many, 3);
            for (int i = 0; i < n; i++) {
                double r = -b[i], size = fabs(b[i]);
                for (int k = 0; k < n; k++) {
                    r += a[i * n + k] * x[k];
                    size += fabs(a[i * n + k] * x[k]);
                }
                rw_assert_near(r, 0.0, 1e-14 * size);
                assert_true(many[3 * i + 2] == x[i]);
            }
        }
}

static void a_dependent_row_is_guarded_and_solved_as_zero(void** state) {
    (void)state;
    double a[9] = {2, 0, 0, 2, 2, 0, 1, 1, 3}, b[3] = {4, 4, 5};
    assert_int_equal(rw_small_spd_factor(3, a, 1e-12), 1);
    rw_small_spd_solve(3, a, b);
    rw_assert_near(b[0], 1.4, 1e-15);
    assert_true(b[1] == 0.0);
    rw_assert_near(b[2], 1.2, 1e-15);
}

static void indefinite_and_nan_pivots_are_reported(void** state) {
    (void)state;
    double a[4] = {1, 0, 2, 1};
    assert_int_equal(rw_small_spd_factor(2, a, 0.0), 1);
    double b[4] = {NAN, 0, 1, 1};
    assert_int_equal(rw_small_spd_factor(2, b, 0.0), 1);
    double zero[9] = {0}, x[3] = {1, 2, 3};
    assert_int_equal(rw_small_spd_factor(3, zero, 0.0), 3);
    rw_small_spd_solve(3, zero, x);
    assert_true(x[0] == 0.0 && x[1] == 0.0 && x[2] == 0.0);
}

static void solve3_agrees_with_the_inverse(void** state) {
    (void)state;
    double a[9];
    random_spd(3, a);
    rw_mat3 m;
    memcpy(&m, a, sizeof a);
    rw_vec3 b = {1, -2, 3}, x, y;
    assert_int_equal(rw_small_spd_solve3(&m, b, &x), 0);
    rw_mat3 inverse = rw_mat3_inverse(m);
    y = rw_mat3_apply(&inverse, b);
    rw_assert_near(x.x, y.x, 1e-12);
    rw_assert_near(x.y, y.y, 1e-12);
    rw_assert_near(x.z, y.z, 1e-12);
}

static void eigenvectors_rebuild_the_tensor_in_a_right_handed_frame(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 100; repeat++) {
        double a[9], w[3];
        random_spd(3, a);
        if (repeat % 10 == 0) // equal values and diagonal matrices are the awkward ones
            memcpy(a, (double[9]){2, 0, 0, 0, repeat % 20 ? 2.0 : 1.0, 0, 0, 0, 2}, sizeof a);
        rw_mat3 m, v;
        memcpy(&m, a, sizeof a);
        rw_small_spd_eigen3(&m, w, &v);
        assert_true(w[0] <= w[1] && w[1] <= w[2]);
        rw_assert_near(rw_mat3_det(&v), 1.0, 1e-14);
        rw_mat3 back = rw_mat3_mul(v, rw_mat3_mul(rw_mat3_diagonal(w[0], w[1], w[2]),
                                                  rw_mat3_transpose(v)));
        for (int i = 0; i < 9; i++)
            rw_assert_near(back.m[i / 3][i % 3], a[i], 1e-14);
    }
}

static void between_takes_one_direction_to_the_other_even_when_opposite(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 200; repeat++) {
        rw_vec3 a = {uniform(), uniform(), uniform()}, b = {uniform(), uniform(), uniform()};
        if (repeat % 4 == 0)
            b = rw_vec3_add_scaled(rw_vec3_scale(a, -2.0), pow(10.0, -repeat / 10.0), b);
        if (repeat % 4 == 1)
            b = rw_vec3_scale(a, repeat % 8 == 1 ? -3.0 : 3.0);
        rw_quat q = rw_quat_between(a, b);
        rw_vec3 c = rw_quat_rotate(q, rw_vec3_normalize(a)), d = rw_vec3_normalize(b);
        rw_assert_near(rw_vec3_norm(rw_vec3_sub(c, d)), 0.0, 2e-14);
        // the smallest one: its axis is perpendicular to both
        rw_assert_near(rw_vec3_dot(rw_quat_vector(q), d), 0.0, 2e-14);
    }
}

static void matrix_and_quaternion_convert_into_each_other(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 200; repeat++) {
        rw_quat q = {uniform(), uniform(), uniform(), uniform()};
        if (repeat % 5 == 0)
            q = (rw_quat){repeat * 1e-9, repeat % 3 == 0, repeat % 3 == 1, repeat % 3 == 2};
        q = rw_quat_normalize(q);
        if (q.w < 0.0)
            q = rw_quat_neg(q);
        rw_mat3 m = rw_quat_to_mat3(q);
        rw_quat p = rw_quat_from_mat3(&m);
        rw_assert_near(rw_quat_norm(rw_quat_sub(p, q)), 0.0, 1e-15);
        rw_vec3 v = {uniform(), uniform(), uniform()};
        rw_vec3 a = rw_quat_rotate(q, v), b = rw_mat3_apply(&m, v);
        rw_assert_near(rw_vec3_norm(rw_vec3_sub(a, b)), 0.0, 2e-15);
        rw_vec3 back = rw_quat_inverse_rotate(q, a), z = rw_quat_axis_z(q);
        rw_assert_near(rw_vec3_norm(rw_vec3_sub(back, v)), 0.0, 4e-15);
        rw_assert_near(rw_vec3_norm(rw_vec3_sub(z, rw_mat3_column(&m, 2))), 0.0, 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves_every_size_with_a_small_residual),
        cmocka_unit_test(a_dependent_row_is_guarded_and_solved_as_zero),
        cmocka_unit_test(indefinite_and_nan_pivots_are_reported),
        cmocka_unit_test(solve3_agrees_with_the_inverse),
        cmocka_unit_test(eigenvectors_rebuild_the_tensor_in_a_right_handed_frame),
        cmocka_unit_test(between_takes_one_direction_to_the_other_even_when_opposite),
        cmocka_unit_test(matrix_and_quaternion_convert_into_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
