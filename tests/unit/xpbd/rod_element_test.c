// Strains of a rod element and their gradients: against finite differences, rigid motions, closed
// forms (seed 000, sections 6.2, 6.3 and appendix G).
#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/xpbd/rod_element.h"

enum { NODES = RW_ROD_ELEMENT_NODES };

typedef struct element {
    int order; // 0: the joint of a rigid chain
    double length;
    double position[3 * NODES], rotation[4 * NODES];
} element;

// A small generator of its own, so that the cases are the same everywhere.
static double draw(uint64_t* seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 * 2 - 1;
}

// Node count of the element.
static int count_of(const element* e) {
    return e->order == 0 ? 2 : e->order + 1;
}

// An element of random shape whose nodes turn by up to `angle` against the first.
static element random_element(int order, double angle, uint64_t* seed) {
    element e = {.order = order, .length = 0.3 + 0.2 * draw(seed)};
    rw_quat first = rw_so3_exp(rw_vec3_make(3 * draw(seed), 3 * draw(seed), 3 * draw(seed)));
    for (int j = 0; j < count_of(&e); j++) {
        for (int i = 0; i < 3; i++) {
            e.position[3 * j + i] = draw(seed);
        }
        rw_vec3 axis = rw_vec3_make(draw(seed), draw(seed), draw(seed));
        rw_vec3 turn = rw_vec3_scale(axis, j == 0 ? 0 : angle / rw_vec3_norm(axis));
        rw_quat_store(&e.rotation[4 * j], rw_so3_boxplus(first, turn));
    }
    return e;
}

static void evaluate(const element* e, int point, int full, rw_rod_element_strain* strain,
                     rw_rod_element_gradient* gradient) {
    rw_rod_element_frame frame;
    rw_rod_element_make_frame(count_of(e), e->position, e->rotation, &frame);
    if (e->order == 0) {
        rw_rod_element_evaluate_chain(&frame, e->length, strain, gradient);
        return;
    }
    rw_rod_element_rule rule = rw_rod_element_make_rule(e->order, full);
    rw_rod_element_evaluate(&frame, &rule.at[point], e->length, strain, gradient);
}

// The element with node j moved by `step` along increment component k (0-2 position, 3-5 turn).
static element moved(const element* e, int j, int k, double step) {
    element next = *e;
    if (k < 3) {
        next.position[3 * j + k] += step;
        return next;
    }
    double turn[3] = {0};
    turn[k - 3] = step;
    rw_quat q = rw_quat_load(&e->rotation[4 * j]);
    rw_quat_store(&next.rotation[4 * j], rw_so3_boxplus(q, rw_vec3_load(turn)));
    return next;
}

static void strain_of(const element* e, int point, int full, double out[6]) {
    rw_rod_element_strain strain;
    evaluate(e, point, full, &strain, NULL);
    rw_vec3_store(out, strain.v);
    rw_vec3_store(out + 3, strain.u);
}

// Largest difference between the analytic gradient and central differences of fourth order.
static double gradient_error(const element* e, int point, int full) {
    const double h = 2e-3;
    rw_rod_element_strain strain;
    rw_rod_element_gradient gradient;
    evaluate(e, point, full, &strain, &gradient);
    double worst = 0;
    for (int j = 0; j < count_of(e); j++) {
        for (int k = 0; k < 6; k++) {
            double analytic[6], near[2][6], far[2][6];
            for (int r = 0; r < 6; r++) {
                analytic[r] = gradient.row[r][6 * j + k];
            }
            for (int side = 0; side < 2; side++) {
                double sign = side == 0 ? 1 : -1;
                element a = moved(e, j, k, sign * h), b = moved(e, j, k, 2 * sign * h);
                strain_of(&a, point, full, near[side]);
                strain_of(&b, point, full, far[side]);
            }
            for (int r = 0; r < 6; r++) {
                double numeric =
                    (8 * (near[0][r] - near[1][r]) - (far[0][r] - far[1][r])) / (12 * h);
                worst = fmax(worst, fabs(numeric - analytic[r]));
            }
        }
    }
    return worst;
}

static void gradients_match_finite_differences(void** state) {
    (void)state;
    static const double angles[] = {0, 1e-9, 1e-4, 0.02, 0.3, 1, 2, 2.8};
    uint64_t seed = 1;
    for (int order = 0; order <= 3; order++) {
        for (size_t a = 0; a < RW_COUNT_OF(angles); a++) {
            for (int trial = 0; trial < 10; trial++) {
                element e = random_element(order, angles[a], &seed);
                int points = order == 0 ? 1 : order + trial % 2;
                for (int point = 0; point < points; point++) {
                    double error = gradient_error(&e, point, trial % 2);
                    // The difference's own error grows with the curvature of the logarithm.
                    double size = angles[a] > 1.5 ? 2e-6 : 2e-8;
                    if (!(error < size / e.length)) {
                        fail_msg("order %d, angle %g, point %d: %g", order, angles[a], point,
                                 error);
                    }
                }
            }
        }
    }
}

static void strains_do_not_change_under_a_rigid_motion(void** state) {
    (void)state;
    uint64_t seed = 7;
    for (int order = 0; order <= 3; order++) {
        for (int trial = 0; trial < 50; trial++) {
            element e = random_element(order, 1.5, &seed), other = e;
            rw_quat turn =
                rw_so3_exp(rw_vec3_make(3 * draw(&seed), 3 * draw(&seed), 3 * draw(&seed)));
            rw_vec3 shift = rw_vec3_make(draw(&seed), draw(&seed), draw(&seed));
            for (int j = 0; j < count_of(&e); j++) {
                rw_vec3 x = rw_quat_rotate(turn, rw_vec3_load(&e.position[3 * j]));
                rw_vec3_store(&other.position[3 * j], rw_vec3_add(x, shift));
                rw_quat_store(&other.rotation[4 * j],
                              rw_quat_mul(turn, rw_quat_load(&e.rotation[4 * j])));
            }
            for (int point = 0; point < (order == 0 ? 1 : order); point++) {
                double a[6], b[6];
                strain_of(&e, point, 0, a);
                strain_of(&other, point, 0, b);
                for (int r = 0; r < 6; r++) {
                    rw_assert_near(b[r], a[r], 4e-14 / e.length);
                }
            }
        }
    }
}

// An arc of a circle or a screw: constant u, and v = e3 in the limit of small elements.
static element helix_element(int order, double length, rw_vec3 u) {
    element e = {.order = order, .length = length};
    for (int j = 0; j <= order; j++) {
        double s = length * j / order;
        // x' = R e3 with R = exp(s u^): x = integral of exp(s u^) e3, here by fine midpoints.
        rw_vec3 x = rw_vec3_zero();
        int steps = 4000;
        for (int i = 0; i < steps; i++) {
            rw_quat q = rw_so3_exp(rw_vec3_scale(u, s * (i + 0.5) / steps));
            rw_vec3 d3 = rw_quat_rotate(q, rw_vec3_make(0, 0, 1));
            x = rw_vec3_add_scaled(x, s / steps, d3);
        }
        rw_vec3_store(&e.position[3 * j], x);
        rw_quat_store(&e.rotation[4 * j], rw_so3_exp(rw_vec3_scale(u, s)));
    }
    return e;
}

static void constant_curvature_and_twist_are_exact_at_every_order(void** state) {
    (void)state;
    const rw_vec3 u = {0.7, -1.1, 0.4};
    for (int order = 1; order <= 3; order++) {
        double off[2];
        for (int fine = 0; fine < 2; fine++) {
            element e = helix_element(order, fine ? 0.1 : 0.2, u);
            off[fine] = 0;
            for (int point = 0; point < order; point++) {
                double strain[6];
                strain_of(&e, point, 0, strain);
                rw_assert_near(strain[3], u.x, 1e-12);
                rw_assert_near(strain[4], u.y, 1e-12);
                rw_assert_near(strain[5], u.z, 1e-12);
                for (int r = 0; r < 3; r++) {
                    off[fine] = fmax(off[fine], fabs(strain[r] - (r == 2)));
                }
            }
        }
        // Gauss points are where a Lagrange tangent is one order better, but for the cubic's on
        // equally spaced nodes: its best places are 1/2 and 1/2 +- 0.373, not +- 0.387.
        double rate = log2(off[0] / off[1]);
        if (!(rate > (order < 3 ? order + 0.8 : 2.8))) {
            fail_msg("order %d: v is off by %g and %g, rate %g", order, off[0], off[1], rate);
        }
    }
}

static void quadrature_integrates_polynomials_of_its_degree(void** state) {
    (void)state;
    for (int order = 1; order <= 3; order++) {
        for (int full = 0; full <= 1; full++) {
            rw_rod_element_rule rule = rw_rod_element_make_rule(order, full);
            assert_int_equal(rule.point_count, order + full);
            for (int power = 0; power <= 2 * rule.point_count - 1; power++) {
                double sum = 0;
                for (int k = 0; k < rule.point_count; k++) {
                    double xi = 0, ones = 0, slopes = 0;
                    for (int j = 0; j <= order; j++) {
                        xi += rule.at[k].value[j] * j / order;
                        ones += rule.at[k].value[j];
                        slopes += rule.at[k].slope[j];
                    }
                    rw_assert_near(ones, 1, 1e-15);
                    rw_assert_near(slopes, 0, 2e-14);
                    sum += rule.at[k].weight * pow(xi, power);
                }
                rw_assert_near(sum, 1.0 / (power + 1), 2e-15);
            }
        }
    }
}

static void frame_reports_the_largest_turn(void** state) {
    (void)state;
    uint64_t seed = 3;
    element e = random_element(2, 2.5, &seed);
    rw_rod_element_frame frame;
    rw_rod_element_make_frame(3, e.position, e.rotation, &frame);
    rw_assert_near(frame.angle_max, 2.5, 1e-14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(strains_do_not_change_under_a_rigid_motion),
        cmocka_unit_test(constant_curvature_and_twist_are_exact_at_every_order),
        cmocka_unit_test(quadrature_integrates_polynomials_of_its_degree),
        cmocka_unit_test(frame_reports_the_largest_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
