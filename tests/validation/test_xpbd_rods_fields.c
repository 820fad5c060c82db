// What each field of a rod's description does on the xpbd solver, against closed forms: damping, drag,
// rest length, rest curvature, taper, substeps.
#include "tests/support/xpbd_rig.h"

static void kelvin_voigt_time_damps_a_mode_by_half_its_frequency(void** state) {
    (void)state;
    // Axial quarter wave, omega = pi/2 sqrt(E/rho): the damping ratio is b omega/2; backward Euler adds
    // h omega/2.
    enum { NODES = 25, STEPS = 3200 };
    const double omega = M_PI / 2 * sqrt(5e6 / 1000), b = 2e-4, h = 2 * M_PI / omega / STEPS;
    static double velocity[3 * NODES];
    for (int i = 0; i < NODES; i++) {
        velocity[3 * i] = 1e-3 * sin(M_PI / 2 * i / (NODES - 1));
    }
    xpbd_rig* rig = xpbd_rig_open(h, 1);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 2, 12, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.05,
                                    1000, 5e6, 0.3);
    rod->linear_velocity = (rw_doubles){velocity, 3 * NODES};
    rod->damping = b;
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_start(rig);
    double largest[2] = {0};
    for (int i = 0; i < 2 * STEPS; i++) {
        xpbd_rig_run(rig, 1);
        largest[i / STEPS] = fmax(largest[i / STEPS], fabs(xpbd_rig_tip(rig, 0).x - 1));
    }
    rw_assert_near(largest[1] / largest[0], exp(-M_PI * (b + h) * omega), 5e-5);
    xpbd_rig_close(rig);
}

static void drags_limit_a_fall_to_their_speeds(void** state) {
    (void)state;
    for (int quadratic = 0; quadratic < 2; quadratic++) {
        xpbd_rig* rig = xpbd_rig_open(1e-2, 1);
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        rig->scene.wind[1] = 3;
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        0.01, 1000, 1e8, 0.3);
        rod->drag = quadratic ? 0 : 2;
        rod->quadratic_drag = quadratic ? 0.5 : 0;
        xpbd_rig_start(rig);
        xpbd_rig_run(rig, 4000);
        double weight = 1000 * M_PI * 1e-4 * 9.81; // per length
        rw_vec3 v = xpbd_rig_vector(rig, "rod/rod/node/3/velocity");
        rw_assert_near(v.z, quadratic ? -sqrt(weight / 0.5) : -weight / 2, 1e-6);
        rw_assert_near(v.y, 3, 1e-6); // with the wind
        xpbd_rig_close(rig);
    }
}

static void a_shorter_rest_length_is_a_tension(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-2, 2);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.01,
                                    1000, 1e6, 0.3);
    rod->has_rest_length = true;
    rod->rest_length = 0.8;
    xpbd_rig_attach(rig, "left", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_attach(rig, "right", RW_ATTACH_CLAMP, "rod", 1, "");
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 10);
    double expected = 1e6 * M_PI * 1e-4 * (1 / 0.8 - 1);
    rw_assert_near(xpbd_rig_vector(rig, "attachment/right/force").x, expected, 1e-9 * expected);
    rw_assert_near(xpbd_rig_vector(rig, "rod/rod/element/1/force").z, expected, 1e-9 * expected);
    rw_assert_near(xpbd_rig_scalar(rig, "rod/rod/max_strain"), 0.25, 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "rod/rod/length"), 1, 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "rod/rod/energy"), 0.5 * expected * 0.25 * 0.8, 1e-9);
    xpbd_rig_close(rig);
}

static void a_rest_curvature_curls_the_rod_into_an_arc(void** state) {
    (void)state;
    // Curvature 2 over a length of 1: the chord is sin(1).
    static const double curvature[3] = {2, 0, 0};
    xpbd_rig* rig = xpbd_rig_open(2e-2, 3);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 8, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.01,
                                    100, 1e7, 0.3);
    rod->rest = RW_REST_GIVEN;
    rod->rest_curvature = (rw_doubles){curvature, 3};
    rod->mass_damping = 8;
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_start(rig);
    xpbd_rig_settle(rig, 1e-9, 10000);
    rw_assert_near(rw_vec3_norm(xpbd_rig_tip(rig, 0)), sin(1), 1e-6);
    rw_assert_near(xpbd_rig_scalar(rig, "rod/rod/energy"), 0, 1e-10);
    xpbd_rig_close(rig);
}

static void a_tapered_rod_stretches_as_its_section_does(void** state) {
    (void)state;
    // Radius linear from a to b: the extension is F L/(E pi a b).
    static const double radii[5] = {0.02, 0.0175, 0.015, 0.0125, 0.01};
    xpbd_rig* rig = xpbd_rig_open(1e-2, 2);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.01,
                                    1, 1e6, 0.3);
    rod->section_radius = (rw_doubles){radii, 5};
    rod->mass_damping = 30;
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_make(0.01, 0, 0), rw_vec3_zero());
    xpbd_rig_start(rig);
    xpbd_rig_settle(rig, 1e-13, 4000);
    double expected = 0.01 / (1e6 * M_PI * 0.02 * 0.01);
    rw_assert_near(xpbd_rig_tip(rig, 0).x - 1, expected, 2e-5 * expected);
    xpbd_rig_close(rig);
}

static void substeps_are_smaller_steps_bit_for_bit(void** state) {
    (void)state;
    rw_vec3 tip[2];
    for (int whole = 0; whole < 2; whole++) {
        // 2^-8 and 2^-10 s: the times agree to the last bit.
        xpbd_rig* rig = xpbd_rig_open(whole ? 0x1p-10 : 0x1p-8, 2);
        rig->scene.substeps = whole ? 1 : 4;
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 2, 6, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        0.03, 1000, 5e6, 0.3);
        rod->damping = 1e-3;
        xpbd_rig_body(rig, "load", 0.3, rw_vec3_make(1e-3, 1e-3, 1e-3), rw_vec3_make(1, 0, 0));
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_attach(rig, "hook", RW_ATTACH_CLAMP, "rod", 1, "load");
        xpbd_rig_start(rig);
        xpbd_rig_run(rig, whole ? 400 : 100);
        tip[whole] = xpbd_rig_tip(rig, 0);
        xpbd_rig_close(rig);
    }
    assert_memory_equal(&tip[0], &tip[1], sizeof tip[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kelvin_voigt_time_damps_a_mode_by_half_its_frequency),
        cmocka_unit_test(drags_limit_a_fall_to_their_speeds),
        cmocka_unit_test(a_shorter_rest_length_is_a_tension),
        cmocka_unit_test(a_rest_curvature_curls_the_rod_into_an_arc),
        cmocka_unit_test(a_tapered_rod_stretches_as_its_section_does),
        cmocka_unit_test(substeps_are_smaller_steps_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
