#include "solvers/scr/orientation.h"
#include "tests/support/rw_test.h"

// A fixed sequence of numbers in [-1, 1].
static uint64_t seed = 1;

static double next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1.0;
}

static rw_vec3 some_vector(double size) {
    return rw_vec3_make(size * next(), size * next(), size * next());
}

static rw_quat some_quat(double size) {
    return rw_quat_make(size * next(), size * next(), size * next(), size * next());
}

// What the closed form minimises: -u . (q e3 q*)/2 - <b, q>.
static double energy(rw_vec3 u, rw_quat b, rw_quat q) {
    return -0.5 * rw_vec3_dot(u, rw_quat_axis_z(q)) - rw_quat_dot(b, q);
}

// L q + b, L q = v q e3 with v = -u.
static rw_quat pull(rw_vec3 u, rw_quat b, rw_quat q) {
    rw_quat v = rw_quat_imaginary(rw_vec3_neg(u)), e = {0, 0, 0, 1};
    return rw_quat_add(rw_quat_mul(rw_quat_mul(v, q), e), b);
}

// Size ratios |b|/|u| from 1e-6 to 1e6.
static void draw(int k, rw_vec3* u, rw_quat* b) {
    *u = some_vector(1.0);
    *b = some_quat(pow(10.0, k % 13 - 6));
}

static void exact_is_unit_and_stationary(void** unused) {
    (void)unused;
    for (int k = 0; k < 20000; k++) {
        rw_vec3 u;
        rw_quat b;
        draw(k, &u, &b);
        rw_quat q = rw_orientation_solve(u, b, rw_quat_identity(), true);
        rw_assert_near(rw_quat_norm(q), 1.0, 4e-15);
        rw_quat p = pull(u, b, q);
        double lambda = rw_quat_dot(p, q);
        rw_quat left = rw_quat_sub(p, rw_quat_scale(q, lambda));
        rw_assert_near(rw_quat_norm(left), 0.0, 1e-14 * (rw_vec3_norm(u) + rw_quat_norm(b)));
        assert_true(lambda > rw_vec3_norm(u));
    }
}

// Twenty random starts, each climbed down by the stable fixed point q <- normalised (shift + L) q + b.
static void exact_is_the_global_minimum(void** unused) {
    (void)unused;
    for (int k = 0; k < 300; k++) {
        rw_vec3 u;
        rw_quat b;
        draw(k % 5 + 4, &u, &b);
        double best = energy(u, b, rw_orientation_solve(u, b, rw_quat_identity(), true));
        for (int start = 0; start < 20; start++) {
            rw_quat q = rw_quat_normalize(some_quat(1.0));
            for (int n = 0; n < 200; n++) {
                rw_quat p = rw_quat_add(pull(u, b, q), rw_quat_scale(q, rw_vec3_norm(u)));
                q = rw_quat_normalize(p);
            }
            assert_true(energy(u, b, q) >= best - 1e-12 * (rw_vec3_norm(u) + rw_quat_norm(b)));
        }
    }
}

// The paper's iteration lambda <- sqrt(|v b e + lambda b| + |v|^2) has the same root.
static void exact_agrees_with_the_papers_fixed_point(void** unused) {
    (void)unused;
    for (int k = 0; k < 2000; k++) {
        rw_vec3 u;
        rw_quat b, zero = {0};
        draw(k, &u, &b);
        double v = rw_vec3_norm(u), lambda = v + rw_quat_norm(b);
        rw_quat lb = pull(u, zero, b);
        for (int n = 0; n < 400; n++)
            lambda = sqrt(rw_quat_norm(rw_quat_add(lb, rw_quat_scale(b, lambda))) + v * v);
        rw_quat q = rw_orientation_solve(u, b, rw_quat_identity(), true);
        rw_quat p = pull(u, b, q);
        rw_assert_near(rw_quat_dot(p, q), lambda, 1e-12 * lambda);
        double gamma = (lambda - v) / rw_quat_norm(b);
        assert_true(gamma > 0.0 && gamma <= 1.0 + 1e-12);
    }
}

static void approximate_is_unit_and_near_exact_for_small_strain(void** unused) {
    (void)unused;
    for (int k = 0; k < 2000; k++) {
        // Bends ask for `aim`, the segment points nearly along its tangent.
        rw_quat aim = rw_quat_normalize(some_quat(1.0));
        double small = 1e-3;
        rw_vec3 u = rw_vec3_add(rw_quat_axis_z(aim), some_vector(small));
        rw_quat b = rw_quat_scale(aim, pow(10.0, k % 5 - 2));
        rw_quat exact = rw_orientation_solve(u, b, aim, true);
        rw_quat rough = rw_orientation_solve(u, b, aim, false);
        rw_assert_near(rw_quat_norm(rough), 1.0, 4e-15);
        rw_assert_near(rw_quat_norm(rw_quat_sub(exact, rough)), 0.0, small * small);
        // Without strain they are the same.
        u = rw_quat_axis_z(aim);
        exact = rw_orientation_solve(u, b, aim, true);
        rough = rw_orientation_solve(u, b, aim, false);
        rw_assert_near(rw_quat_norm(rw_quat_sub(exact, aim)), 0.0, 1e-15);
        rw_assert_near(rw_quat_norm(rw_quat_sub(rough, aim)), 0.0, 1e-15);
    }
}

static void without_bends_the_frame_turns_smallest(void** unused) {
    (void)unused;
    rw_quat zero = {0};
    for (int k = 0; k < 1000; k++) {
        rw_quat current = rw_quat_normalize(some_quat(1.0));
        rw_vec3 u = some_vector(3.0);
        rw_quat q = rw_orientation_solve(u, zero, current, true);
        rw_quat turn = rw_quat_between(rw_quat_axis_z(current), u);
        rw_quat expected = rw_quat_mul(turn, current);
        rw_assert_near(fabs(rw_quat_dot(q, expected)), 1.0, 1e-14);
        rw_vec3 n = rw_vec3_normalize(u);
        rw_assert_near(rw_vec3_norm(rw_vec3_sub(rw_quat_axis_z(q), n)), 0.0, 1e-14);
    }
}

static void degenerate_cases_are_defined(void** unused) {
    (void)unused;
    rw_quat zero = {0}, current = {0.5, 0.5, -0.5, 0.5};
    rw_vec3 none = {0}, up = {0, 0, 2.0}, down = {0, 0, -2.0};
    // Nothing pulls: the frame stays.
    rw_quat q = rw_orientation_solve(none, zero, current, true);
    assert_memory_equal(&q, &current, sizeof q);
    // No stretch: along b.
    rw_quat b = {0, 3.0, 0, 4.0};
    q = rw_orientation_solve(none, b, current, true);
    rw_assert_near(q.x, 0.6, 2e-16);
    rw_assert_near(q.z, 0.8, 2e-16);
    // Tangent exactly against the pull, no bends: half a turn about d1.
    q = rw_orientation_solve(down, zero, rw_quat_identity(), true);
    rw_assert_near(rw_quat_axis_z(q).z, -1.0, 1e-15);
    // b asks for the opposite of u exactly, b+ = 0: weak b loses, strong b wins.
    for (double size = 0.1; size <= 100.0; size *= 10.0) {
        for (int exact = 0; exact < 2; exact++) {
            b = (rw_quat){0, size, 0, 0}; // half a turn about x
            q = rw_orientation_solve(up, b, rw_quat_identity(), exact);
            rw_assert_near(rw_quat_norm(q), 1.0, 1e-15);
            rw_quat p = pull(up, b, q);
            rw_quat left = rw_quat_sub(p, rw_quat_scale(q, rw_quat_dot(p, q)));
            rw_assert_near(rw_quat_norm(left), 0.0, 1e-14 * size + 1e-14);
            if (size >= 10.0)
                rw_assert_near(fabs(q.x), 1.0, 1e-14);
        }
    }
    // Just beside it: still unit, still a minimum.
    for (double off = 1e-18; off < 1e-2; off *= 10.0) {
        b = (rw_quat){off, 1.0, 0, 0};
        q = rw_orientation_solve(up, b, rw_quat_identity(), true);
        rw_assert_near(rw_quat_norm(q), 1.0, 4e-15);
        rw_quat p = pull(up, b, q);
        rw_quat left = rw_quat_sub(p, rw_quat_scale(q, rw_quat_dot(p, q)));
        rw_assert_near(rw_quat_norm(left), 0.0, 2e-14);
    }
}

static void far_sizes_do_not_break_it(void** unused) {
    (void)unused;
    for (int k = 0; k < 4000; k++) {
        double size = pow(10.0, k % 240 - 120);
        rw_vec3 u = some_vector(size);
        rw_quat b = some_quat(pow(10.0, (k / 7) % 240 - 120));
        rw_quat q = rw_orientation_solve(u, b, rw_quat_identity(), true);
        rw_assert_near(rw_quat_norm(q), 1.0, 1e-14);
    }
}

static void not_a_number_comes_out(void** unused) {
    (void)unused;
    rw_quat b = {1, 0, 0, 0}, bad = {NAN, 0, 0, 0};
    for (int exact = 0; exact < 2; exact++) {
        rw_quat q = rw_orientation_solve(rw_vec3_make(NAN, 0, 1), b, b, exact);
        assert_false(rw_quat_is_finite(q));
        q = rw_orientation_solve(rw_vec3_make(0, 0, 1), bad, b, exact);
        assert_false(rw_quat_is_finite(q));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_unit_and_stationary),
        cmocka_unit_test(exact_is_the_global_minimum),
        cmocka_unit_test(exact_agrees_with_the_papers_fixed_point),
        cmocka_unit_test(approximate_is_unit_and_near_exact_for_small_strain),
        cmocka_unit_test(without_bends_the_frame_turns_smallest),
        cmocka_unit_test(degenerate_cases_are_defined),
        cmocka_unit_test(far_sizes_do_not_break_it),
        cmocka_unit_test(not_a_number_comes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
