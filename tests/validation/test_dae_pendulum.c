// Pendulums and single-joint checks against closed forms and high-precision trajectories.
// A01 simple pendulum: IFToMM Library of Computational Benchmark Problems, closed form by Jacobi
// elliptic functions. A10 double and triple pendulum: Lagrangian, integrated with 20 digits.
#include "tests/support/rw_test.h"

#include "tests/support/dae_rig.h"

#define DEG 0.017453292519943295

// Gravity along -y; a point mass at a distance of 1 from the origin, started at (-1, 0).
static void simple_pendulum(dae_rig* rig, rw_integrator integrator, double h) {
    dae_rig_open(rig, integrator, h);
    rw_vec3_store(rig->model.gravity, (rw_vec3){0, -9.81, 0});
    rw_body_desc bob = dae_rig_body("bob", 1.0, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){-1, 0, 0},
                                    rw_quat_identity());
    dae_rig_add_body(rig, &bob);
    rw_joint_desc pin = dae_rig_joint(rig, "pin", RW_JOINT_DISTANCE, "", "bob",
                                      (rw_vec3){-1, 0, 0}, rw_quat_identity());
    memset(pin.parent_frame.position, 0, sizeof pin.parent_frame.position);
    dae_rig_add_joint(rig, &pin);
    dae_rig_start(rig);
}

static const double a01[11][5] = {
    // t = 0 .. 10: x, y, vx, vy, tension
    {-1.0, 0.0, 0.0, 0.0, 0.0},
    {0.9862917511318753, -0.16501085312554112, 0.2969055159163157, 1.7746436411126554,
     4.8562694074846755},
    {-0.7935661953433218, -0.6084839304437913, -2.102437874436125, 2.7419353930105093,
     17.90768207296078},
    {0.17665178992283853, -0.9842734097378926, 4.325368674538742, 0.7762925533434012,
     28.96716644858618},
    {0.5775636282486311, -0.8163456714678391, -3.267086574570772, -2.311460012299245,
     24.025053111298504},
    {-0.9423054350437572, -0.3347543384140009, 0.8579042568859503, -2.4149286543704895,
     9.851820179524047},
    {0.9994975399393528, -0.031696492789927186, -0.024995758323387653, -0.7882007362367852,
     0.9328277828075571},
    {-0.9986187791754798, -0.052540782998298535, -0.05334507284273842, 1.013905550645631,
     1.546275243639926},
    {0.9198579831077387, -0.39225156585151205, 1.0881694534505042, 2.5518352146218017,
     11.54396358301},
    {-0.49837370905755973, -0.8669623095153622, -3.5756074003064917, 2.0554396686755028,
     25.514700769037113},
    {-0.2750874625761158, -0.9614192050991254, 4.175598100951731, -1.1947490545604709,
     28.29456720606726},
};

static void follow_a01(rw_integrator integrator, double h, double tolerance) {
    dae_rig rig;
    simple_pendulum(&rig, integrator, h);
    double worst = 0.0;
    for (int t = 0; t <= 10; t++) {
        dae_rig_run(&rig, t);
        rw_vec3 p = dae_rig_position(&rig, "bob"), v = dae_rig_velocity(&rig, "bob");
        double got[4] = {p.x, p.y, v.x, v.y}, wrench[6];
        for (int i = 0; i < 4; i++) {
            rw_assert_near(got[i], a01[t][i], tolerance * (i < 2 ? 1 : 5));
            worst = fmax(worst, fabs(got[i] - a01[t][i]));
        }
        // The string pulls the bob towards the origin with the tension.
        dae_rig_reaction(&rig, "pin", wrench);
        rw_assert_near(-rw_vec3_dot(rw_vec3_load(wrench), p), a01[t][4], 10 * tolerance);
        rw_assert_near(dae_rig_energy(&rig), 0.0, 10 * tolerance);
    }
    double violation[2];
    dae_rig_violation(&rig, violation);
    rw_assert_near(violation[0], 0.0, 1e-12);
    print_message("A01, h = %g: worst %.2e\n", h, worst);
    dae_rig_close(&rig);
}

static void simple_pendulum_follows_the_elliptic_functions(void** state) {
    (void)state;
    follow_a01(RW_INTEGRATOR_RK4, 1e-3, 2e-10);
    follow_a01(RW_INTEGRATOR_RK45, 1e-2, 2e-6);
    follow_a01(RW_INTEGRATOR_BDF, 1e-2, 2e-5);
}

static double pendulum_error(rw_integrator integrator, double h, double rtol) {
    dae_rig rig;
    simple_pendulum(&rig, integrator, h);
    rig.model.solver.dae.relative_tolerance = rtol;
    rig.model.solver.dae.absolute_tolerance = rtol;
    assert_int_equal(rig.solver.vtable->prepare(rig.solver.self, &rig.from, &rig.error),
                     RW_STATUS_OK);
    dae_rig_run(&rig, 2.0);
    rw_vec3 p = dae_rig_position(&rig, "bob");
    double e = hypot(p.x - a01[2][0], p.y - a01[2][1]);
    dae_rig_close(&rig);
    return e;
}

static void orders_of_the_integrators_are_as_named(void** state) {
    (void)state;
    const struct {
        rw_integrator integrator;
        double order, h;
    } cases[] = {{RW_INTEGRATOR_EULER, 1, 2e-4},
                 {RW_INTEGRATOR_SYMPLECTIC_EULER, 1, 2e-4},
                 {RW_INTEGRATOR_RK4, 4, 1e-2}};
    for (int k = 0; k < 3; k++) {
        double coarse = pendulum_error(cases[k].integrator, cases[k].h, 1e-8);
        double fine = pendulum_error(cases[k].integrator, cases[k].h / 2, 1e-8);
        double order = log2(coarse / fine);
        print_message("integrator %d: errors %.3e %.3e, order %.3f\n", (int)cases[k].integrator,
                      coarse, fine, order);
        rw_assert_near(order, cases[k].order, 0.15 * cases[k].order);
    }
}

static void errors_of_rk45_and_bdf_follow_the_tolerance(void** state) {
    (void)state;
    for (int bdf = 0; bdf < 2; bdf++) {
        double last = 1.0;
        for (int k = 4; k <= 10; k += 2) {
            double e = pendulum_error(bdf ? RW_INTEGRATOR_BDF : RW_INTEGRATOR_RK45, 0.1,
                                      pow(10, -k));
            print_message("%s, tolerance 1e-%d: error %.2e\n", bdf ? "bdf" : "rk45", k, e);
            assert_true(e < (bdf ? 1000 : 100) * pow(10, -k) && e < last);
            last = e;
        }
    }
}

// ---- A10 ----

// Links hang in the x-y plane, angles from -y; `uniform` rods or point masses at the ends.
static void chain(dae_rig* rig, int links, bool uniform, const double* degrees, double h) {
    dae_rig_open(rig, RW_INTEGRATOR_RK4, h);
    rw_vec3_store(rig->model.gravity, (rw_vec3){0, -9.81, 0});
    rw_vec3 top = {0, 0, 0};
    char last[8] = "";
    for (int k = 0; k < links; k++) {
        char name[8], joint[8];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(joint, sizeof joint, "j%d", k);
        double a = degrees[k] * DEG, s = uniform ? 0.5 : 1.0;
        rw_vec3 along = {rw_trig_sin(a), -rw_trig_cos(a), 0};
        double inertia = uniform ? 1.0 / 12.0 : 1e-12;
        rw_body_desc body =
            dae_rig_body(name, 1.0, (rw_vec3){inertia, uniform ? 1e-3 : 1e-12, inertia},
                         rw_vec3_add_scaled(top, s, along), rw_so3_exp((rw_vec3){0, 0, a}));
        dae_rig_add_body(rig, &body);
        rw_joint_desc d = dae_rig_joint(rig, joint, RW_JOINT_REVOLUTE, last, name, top,
                                        rw_quat_identity());
        dae_rig_add_joint(rig, &d);
        top = rw_vec3_add(top, along);
        memcpy(last, name, sizeof last);
    }
    dae_rig_start(rig);
}

static void check_chain(int links, bool uniform, const double* degrees, const double* expected,
                        int seconds, double h, double tolerance) {
    dae_rig rig;
    chain(&rig, links, uniform, degrees, h);
    for (int t = 1; t <= seconds; t++) {
        dae_rig_run(&rig, t);
        for (int k = 0; k < links; k++) {
            char name[8];
            snprintf(name, sizeof name, "l%d", k);
            rw_quat q = dae_rig_rotation(&rig, name);
            const double* e = expected + 2 * links * (t - 1);
            double angle = 2.0 * atan2(q.z, q.w);
            double off = remainder(angle - e[k], 2 * 3.141592653589793);
            rw_assert_near(off, 0.0, tolerance);
            rw_assert_near(dae_rig_omega(&rig, name).z, e[links + k], 10 * tolerance);
        }
    }
    dae_rig_close(&rig);
}

static void double_and_triple_pendulums_follow_high_precision_trajectories(void** state) {
    (void)state;
    static const double two_points[] = {
        -0.62508769980639063, -1.03458508568001234, -3.92227957288797662, -1.30309924869633124,
        -0.482971534251754377, -1.32404871230236255, 3.06528819207340132, 2.94927154757161898,
        1.78579552207741668, 1.11810746120515544, 0.327980619514456124, -0.504455103945311941,
        -0.475242114903626118, -1.24045007331109595, -1.9039260540290051, -4.61776021466461338};
    static const double two_rods[] = {
        -1.20771623819063799, -0.814391023091296351, -3.40651753297195777, -0.516045472105208917,
        -0.082758306820570847, 0.407362074911907234, -0.961145444545998473, 11.8989550530452953,
        1.02508601228872915, 0.495734647626975378, -4.59335710547498023, 1.18432088061422994};
    static const double three_rods[] = {
        -0.235346902273893257, -0.77715285647052732, -0.909372065598692634, -3.52039796365041315,
        -3.24244822385042685, -0.398446618834098337,
        -0.51849853707901688, -1.47395871300233829, -2.66934601637355762, 1.22795590453671652,
        4.16577410551994144, -3.56949805994279512};
    static const double three_points[] = {
        -0.142093105095420335, -0.163982530773226019, -0.860192450997519648, -1.85504816094465957,
        -3.42774695230723483, -4.14271042601940723};
    const double right[3] = {90, 90, 90};
    check_chain(2, false, right, two_points, 3, 5e-4, 2e-8);
    check_chain(2, true, right, two_rods, 3, 5e-4, 2e-8);
    check_chain(3, true, right, three_rods, 2, 5e-4, 2e-8);
    check_chain(3, false, right, three_points, 1, 5e-4, 2e-8);
}

// ---- A19: one body on each joint ----

static void compound_pendulum_has_its_period_and_pivot_force(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    rw_body_desc rod = dae_rig_body("rod", 2.0, (rw_vec3){1e-4, 1.0 / 6, 1.0 / 6},
                                    (rw_vec3){0.5, 0, 0}, rw_quat_identity());
    dae_rig_add_body(&rig, &rod);
    rw_joint_desc pin = dae_rig_joint(&rig, "pin", RW_JOINT_REVOLUTE, "", "rod", rw_vec3_zero(),
                                      dae_rig_z_to(0, 1, 0));
    dae_rig_add_joint(&rig, &pin);
    dae_rig_start(&rig);
    double wrench[6];
    dae_rig_reaction(&rig, "pin", wrench); // released level: a quarter of the weight
    rw_assert_near(wrench[2], 4.905, 1e-12);
    rw_assert_near(wrench[0], 0.0, 1e-12);
    // Fastest at the bottom: a quarter of the period.
    double best = 0.0;
    for (int k = 0; k < 600; k++) {
        dae_rig_run(&rig, 1e-3 * k);
        best = fmax(best, fabs(dae_rig_rate(&rig, "pin", 0)));
    }
    rw_assert_near(best, 5.424942396007538, 1e-5);
    dae_rig_run(&rig, 1.933);
    // At t = 1.933 the period 1.93333485 is not quite over: angle to first order in the square.
    double left = 1.9333348543732458 - 1.933, acceleration = 0.5 * 9.81 / (1.0 / 3.0);
    rw_assert_near(dae_rig_coordinate(&rig, "pin", 0), 0.5 * acceleration * left * left, 1e-8);
    dae_rig_close(&rig);
}

static void sliders_fall_along_their_inclines(void** state) {
    (void)state;
    const double g = 9.81;
    // An incline of 30 degrees: the axis points down it.
    rw_vec3 down = {0.8660254037844387, 0, -0.5}, normal = {0.5, 0, 0.8660254037844387};
    for (int type = 0; type < 3; type++) {
        dae_rig rig;
        dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
        rw_body_desc body = dae_rig_body("block", 1.5, (rw_vec3){0.01, 0.02, 0.03},
                                         (rw_vec3){0, 0, 1}, rw_quat_identity());
        rw_quat axes = type == 2 ? dae_rig_z_to(normal.x, normal.y, normal.z)
                                 : dae_rig_z_to(down.x, down.y, down.z);
        rw_vec3 spin_axis = type == 2 ? normal : down;
        if (type)
            rw_vec3_store(body.angular_velocity, rw_vec3_scale(spin_axis, 7.0));
        // A spin about the incline's axis keeps its direction only for a body symmetric about it.
        for (int i = 0; i < 3; i++)
            body.inertia[i] = type ? 0.02 : body.inertia[i];
        dae_rig_add_body(&rig, &body);
        const rw_joint_type types[3] = {RW_JOINT_PRISMATIC, RW_JOINT_CYLINDRICAL, RW_JOINT_PLANAR};
        rw_joint_desc d = dae_rig_joint(&rig, "track", types[type], "", "block",
                                        (rw_vec3){0, 0, 1}, axes);
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        dae_rig_run(&rig, 1.0);
        rw_vec3 moved = rw_vec3_sub(dae_rig_position(&rig, "block"), (rw_vec3){0, 0, 1});
        rw_assert_near(rw_vec3_dot(moved, down), 0.5 * g * 0.5, 1e-11);
        if (type < 2)
            rw_assert_near(dae_rig_coordinate(&rig, "track", 0), 0.5 * g * 0.5, 1e-11);
        if (type == 1) {
            rw_assert_near(dae_rig_coordinate(&rig, "track", 1), 7.0, 1e-9); // more than pi
            rw_assert_near(dae_rig_rate(&rig, "track", 1), 7.0, 1e-10);
        }
        if (type == 2)
            rw_assert_near(dae_rig_coordinate(&rig, "track", 2), 7.0, 1e-9);
        double wrench[6];
        dae_rig_reaction(&rig, "track", wrench);
        rw_assert_near(rw_vec3_dot(rw_vec3_load(wrench), normal), 1.5 * g * 0.8660254037844386,
                       1e-9);
        dae_rig_close(&rig);
    }
}

static void conical_rod_turns_steadily_on_a_ball_joint(void** state) {
    (void)state;
    // A slender rod at 40 degrees from the vertical: omega^2 = 3 g/(2 L cos).
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    double a = 40 * DEG, omega = 4.382815107043015;
    rw_quat q = rw_so3_exp((rw_vec3){0, -a, 0}); // rod along -z of the body, tilted to +x
    rw_vec3 along = rw_quat_rotate(q, (rw_vec3){0, 0, -1});
    rw_body_desc rod = dae_rig_body("rod", 1.0, (rw_vec3){1.0 / 12, 1.0 / 12, 1e-6},
                                    rw_vec3_scale(along, 0.5), q);
    rw_vec3 w = {0, 0, omega};
    rw_vec3_store(rod.angular_velocity, rw_quat_inverse_rotate(q, w));
    rw_vec3_store(rod.linear_velocity, rw_vec3_cross(w, rw_vec3_scale(along, 0.5)));
    dae_rig_add_body(&rig, &rod);
    rw_joint_desc d = dae_rig_joint(&rig, "ball", RW_JOINT_SPHERICAL, "", "rod", rw_vec3_zero(),
                                    rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    dae_rig_start(&rig);
    for (int k = 1; k <= 20; k++) {
        dae_rig_run(&rig, 0.1 * k);
        rw_vec3 p = dae_rig_position(&rig, "rod");
        rw_assert_near(p.z, -0.5 * cos(a), 5e-6); // the tiny axial inertia shifts it this much
        rw_assert_near(remainder(atan2(p.y, p.x) - omega * 0.1 * k, 2 * 3.141592653589793), 0.0,
                       2e-5);
    }
    dae_rig_close(&rig);
}

static void fixed_joint_carries_weight_and_moment(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    rw_body_desc body = dae_rig_body("load", 1.0, (rw_vec3){0.01, 0.01, 0.01},
                                     (rw_vec3){0.7, 0, 0}, rw_quat_identity());
    dae_rig_add_body(&rig, &body);
    rw_joint_desc d = dae_rig_joint(&rig, "weld", RW_JOINT_FIXED, "", "load", rw_vec3_zero(),
                                    rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    dae_rig_start(&rig);
    for (int k = 0; k < 2; k++) {
        double w[6];
        dae_rig_reaction(&rig, "weld", w);
        const double expected[6] = {0, 0, 9.81, 0, -6.867, 0};
        for (int i = 0; i < 6; i++)
            rw_assert_near(w[i], expected[i], 1e-12);
        dae_rig_run(&rig, 1.0);
        rw_vec3 p = dae_rig_position(&rig, "load");
        rw_assert_near(p.x, 0.7, 1e-14);
        rw_assert_near(p.z, 0.0, 1e-13);
    }
    dae_rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_pendulum_follows_the_elliptic_functions),
        cmocka_unit_test(orders_of_the_integrators_are_as_named),
        cmocka_unit_test(errors_of_rk45_and_bdf_follow_the_tolerance),
        cmocka_unit_test(double_and_triple_pendulums_follow_high_precision_trajectories),
        cmocka_unit_test(compound_pendulum_has_its_period_and_pivot_force),
        cmocka_unit_test(sliders_fall_along_their_inclines),
        cmocka_unit_test(conical_rod_turns_steadily_on_a_ball_joint),
        cmocka_unit_test(fixed_joint_carries_weight_and_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
