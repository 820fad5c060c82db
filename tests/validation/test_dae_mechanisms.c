// Closed loops and tops on the dae solver, against reference values.
// A02 N-four-bar, A05 stiff flyball governor: IFToMM Library of Computational Benchmark Problems
// (parameters of RehabEngGroup/MBSbenchmarksInOpenSim); references by reduction to minimal
// coordinates. A07, A08: Goldstein, Classical Mechanics, sec. 5.7. A12: kinematics in closed form.
// A18: 3-RPS robot, Lee & Shah 1988.
#include "tests/support/rw_test.h"

#include "tests/support/dae_rig.h"

#define DEG 0.017453292519943295
#define PI 3.141592653589793

// ---- A02 ----

static rw_body_desc bar(const char* name, rw_vec3 middle, rw_quat turn, rw_quat scene,
                        rw_vec3 velocity, double omega) {
    // A uniform rod along x of length 1 in its own axes.
    rw_body_desc d = dae_rig_body(name, 1.0, (rw_vec3){1e-3, 1.0 / 12, 1.0 / 12},
                                  rw_quat_rotate(scene, middle),
                                  rw_quat_normalize(rw_quat_mul(scene, turn)));
    rw_vec3_store(d.linear_velocity, rw_quat_rotate(scene, velocity));
    d.angular_velocity[2] = omega;
    return d;
}

// N loops of vertical cranks and level couplers; `scene` turns everything, gravity too.
static void four_bars(dae_rig* rig, int n, rw_quat scene, double h, rw_stabilization stabilization) {
    dae_rig_open(rig, RW_INTEGRATOR_RK4, h);
    rig->model.solver.dae.stabilization = stabilization;
    rw_vec3_store(rig->model.gravity, rw_quat_rotate(scene, (rw_vec3){0, -9.81, 0}));
    rw_quat upright = rw_so3_exp((rw_vec3){0, 0, PI / 2});
    char name[24], other[24], joint[24];
    for (int k = 0; k <= n; k++) {
        snprintf(name, sizeof name, "crank%d", k);
        rw_body_desc d = bar(name, (rw_vec3){k, 0.5, 0}, upright, scene, (rw_vec3){0.5, 0, 0}, -1);
        dae_rig_add_body(rig, &d);
    }
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "coupler%d", k);
        rw_body_desc d = bar(name, (rw_vec3){k + 0.5, 1, 0}, rw_quat_identity(), scene,
                             (rw_vec3){1, 0, 0}, 0);
        dae_rig_add_body(rig, &d);
    }
    for (int k = 0; k <= n; k++) {
        snprintf(name, sizeof name, "crank%d", k);
        snprintf(joint, sizeof joint, "pivot%d", k);
        rw_joint_desc d = dae_rig_joint(rig, joint, RW_JOINT_REVOLUTE, "", name,
                                        rw_quat_rotate(scene, (rw_vec3){k, 0, 0}), scene);
        dae_rig_add_joint(rig, &d);
    }
    for (int k = 0; k < 2 * n; k++) {
        snprintf(name, sizeof name, "crank%d", k / 2 + k % 2);
        snprintf(other, sizeof other, "coupler%d", k / 2);
        snprintf(joint, sizeof joint, "pin%d", k);
        rw_joint_desc d =
            dae_rig_joint(rig, joint, RW_JOINT_REVOLUTE, name, other,
                          rw_quat_rotate(scene, (rw_vec3){k / 2 + k % 2, 1, 0}), scene);
        dae_rig_add_joint(rig, &d);
    }
    dae_rig_start(rig);
}

// The top of the first crank and its velocity, in the scene's own axes.
static void b0(const dae_rig* rig, rw_quat scene, rw_vec3* p, rw_vec3* v) {
    rw_quat q = dae_rig_rotation(rig, "crank0");
    rw_vec3 arm = rw_quat_rotate(q, (rw_vec3){0.5, 0, 0});
    rw_vec3 w = rw_quat_rotate(q, dae_rig_omega(rig, "crank0"));
    *p = rw_quat_inverse_rotate(scene, rw_vec3_add(dae_rig_position(rig, "crank0"), arm));
    *v = rw_quat_inverse_rotate(
        scene, rw_vec3_add(dae_rig_velocity(rig, "crank0"), rw_vec3_cross(w, arm)));
}

static void n_four_bar_passes_its_singular_positions(void** state) {
    (void)state;
    const struct {
        int n;
        double tolerance, x, y, vx, vy; // at 10 s
    } cases[] = {{2, 2e-8, 0.32845811153942484, 0.9445185381790846, 1.4230514702039565,
                  -0.49486885545776},
                 {10, 2e-7, 0.20435356098828825, 0.9788971458286138, 1.1866800237517958,
                  -0.24773010079835647},
                 {40, 1e-5, 0.1805122266855612, 0.9835727405825258, 1.148441277467265,
                  -0.21077006677762075}};
    for (int c = 0; c < 3; c++) {
        dae_rig rig;
        four_bars(&rig, cases[c].n, rw_quat_identity(), 1e-3, RW_STABILIZATION_PROJECTION);
        double energy = dae_rig_energy(&rig), drift = 0.0, gap = 0.0, violation[2];
        for (int k = 1; k <= 100; k++) {
            dae_rig_run(&rig, 0.1 * k);
            drift = fmax(drift, fabs(dae_rig_energy(&rig) - energy));
            dae_rig_violation(&rig, violation);
            gap = fmax(gap, violation[0]);
        }
        assert_int_equal(rw_dae_redundant_rows(rig.solver.self), 3 * cases[c].n);
        rw_vec3 p, v;
        b0(&rig, rw_quat_identity(), &p, &v);
        print_message("A02, N = %d: off by %.1e %.1e, energy by %.1e J, gap %.1e m\n", cases[c].n,
                      hypot(p.x - cases[c].x, p.y - cases[c].y),
                      hypot(v.x - cases[c].vx, v.y - cases[c].vy), drift, gap);
        rw_assert_near(p.x, cases[c].x, cases[c].tolerance);
        rw_assert_near(p.y, cases[c].y, cases[c].tolerance);
        rw_assert_near(v.x, cases[c].vx, 10 * cases[c].tolerance);
        rw_assert_near(gap, 0.0, 1e-10);
        dae_rig_close(&rig);
    }
}

static void a_rotated_loop_gives_the_rotated_motion(void** state) {
    (void)state;
    rw_quat turn = rw_quat_normalize((rw_quat){0.4, -0.3, 0.7, 0.5});
    dae_rig a, b;
    four_bars(&a, 2, rw_quat_identity(), 1e-3, RW_STABILIZATION_PROJECTION);
    four_bars(&b, 2, turn, 1e-3, RW_STABILIZATION_PROJECTION);
    double worst = 0.0;
    for (int k = 1; k <= 100; k++) {
        dae_rig_run(&a, 0.1 * k);
        dae_rig_run(&b, 0.1 * k);
        for (int i = 0; i < a.model.bodies.count; i++) {
            rw_vec3 p = rw_vec3_load(a.from.body_position + 3 * i);
            rw_vec3 q = rw_vec3_load(b.from.body_position + 3 * i);
            worst = fmax(worst, rw_vec3_norm(rw_vec3_sub(rw_quat_rotate(turn, p), q)));
        }
    }
    print_message("rotated loop: off by %.2e m in 10 s\n", worst);
    rw_assert_near(worst, 0.0, 1e-9);
    dae_rig_close(&a);
    dae_rig_close(&b);
}

// A crank-rocker (0.3, 0.8, 0.7 on 1.0) that turns over under gravity without singular positions.
static void crank_rocker(dae_rig* rig, rw_stabilization stabilization) {
    dae_rig_open(rig, RW_INTEGRATOR_RK4, 1e-3);
    rig->model.solver.dae.stabilization = stabilization;
    rw_vec3_store(rig->model.gravity, (rw_vec3){0, -9.81, 0});
    const double crank = 0.3, coupler = 0.8, rocker = 0.7;
    rw_vec3 a = {0, crank, 0}, ground = {1, 0, 0};
    // Where circles about a and the ground pivot meet.
    rw_vec3 d = rw_vec3_sub(ground, a);
    double n = rw_vec3_norm(d), x = (coupler * coupler - rocker * rocker + n * n) / (2 * n);
    double y = sqrt(coupler * coupler - x * x);
    rw_vec3 u = rw_vec3_scale(d, 1 / n), w = {-u.y, u.x, 0};
    rw_vec3 b = rw_vec3_add_scaled(rw_vec3_add_scaled(a, x, u), y, w);
    const rw_vec3 ends[3][2] = {{{0, 0, 0}, a}, {a, b}, {ground, b}};
    const char* names[3] = {"crank", "coupler", "rocker"};
    for (int k = 0; k < 3; k++) {
        rw_vec3 along = rw_vec3_sub(ends[k][1], ends[k][0]);
        double l = rw_vec3_norm(along), m = 2.0 * l;
        rw_body_desc body =
            dae_rig_body(names[k], m, (rw_vec3){1e-3, m * l * l / 12, m * l * l / 12},
                         rw_vec3_add_scaled(ends[k][0], 0.5, along),
                         rw_so3_exp((rw_vec3){0, 0, atan2(along.y, along.x)}));
        dae_rig_add_body(rig, &body);
    }
    const struct {
        const char *name, *parent, *child;
        rw_vec3 at;
    } pins[4] = {{"o", "", "crank", {0, 0, 0}}, {"a", "crank", "coupler", a},
                 {"b", "coupler", "rocker", b}, {"g", "", "rocker", ground}};
    for (int k = 0; k < 4; k++) {
        rw_joint_desc j = dae_rig_joint(rig, pins[k].name, RW_JOINT_REVOLUTE, pins[k].parent,
                                        pins[k].child, pins[k].at, rw_quat_identity());
        dae_rig_add_joint(rig, &j);
    }
    dae_rig_start(rig);
}

static void baumgarte_keeps_the_gap_small_and_projection_closes_it(void** state) {
    (void)state;
    const double bound[3] = {1e-3, 1e-6, 1e-10};
    const rw_stabilization kinds[3] = {RW_STABILIZATION_NONE, RW_STABILIZATION_BAUMGARTE,
                                       RW_STABILIZATION_PROJECTION};
    for (int k = 0; k < 3; k++) {
        dae_rig rig;
        crank_rocker(&rig, kinds[k]);
        assert_int_equal(rig.solver.vtable->prepare(rig.solver.self, &rig.from, &rig.error),
                         RW_STATUS_OK);
        double gap = 0.0, violation[2], energy = dae_rig_energy(&rig), drift = 0.0;
        for (int t = 1; t <= 1000; t++) {
            dae_rig_run(&rig, 0.1 * t); // 100 s
            dae_rig_violation(&rig, violation);
            gap = fmax(gap, violation[0]);
            drift = fmax(drift, fabs(dae_rig_energy(&rig) - energy));
        }
        print_message("stabilisation %d: gap %.2e m, energy off by %.2e J in 100 s\n",
                      (int)kinds[k], gap, drift);
        rw_assert_near(gap, 0.0, bound[k]);
        dae_rig_close(&rig);
    }
}

// ---- A05 ----

static void governor(rw_integrator integrator, double h, double tolerance) {
    dae_rig rig;
    dae_rig_open(&rig, integrator, h);
    const double a0 = 60 * DEG, w0 = 2 * PI; // 30 degrees below the horizon
    rw_vec3 spin = {0, 0, w0};
    rw_vec3 bar_inertia = {0.3 * (1 + 1e-4) / 12, 0.3 * (1 + 1e-4) / 12, 0.3 * 2e-4 / 12};
    rw_body_desc shaft = dae_rig_body("shaft", 0.3, bar_inertia, (rw_vec3){0, 0, 0.5},
                                      rw_quat_identity());
    rw_vec3_store(shaft.angular_velocity, spin);
    dae_rig_add_body(&rig, &shaft);
    rw_body_desc slider = dae_rig_body("slider", 3.0, (rw_vec3){5e-3, 5e-3, 5e-3},
                                       (rw_vec3){0, 0, 0.5}, rw_quat_identity());
    rw_vec3_store(slider.angular_velocity, spin);
    dae_rig_add_body(&rig, &slider);
    rw_joint_desc d = dae_rig_joint(&rig, "bearing", RW_JOINT_REVOLUTE, "", "shaft",
                                    rw_vec3_zero(), rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    d = dae_rig_joint(&rig, "guide", RW_JOINT_PRISMATIC, "shaft", "slider", (rw_vec3){0, 0, 0.5},
                      rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    for (int k = 0; k < 2; k++) {
        double s = k ? -1 : 1;
        char rod[8], ball[8], joint[8], weld[8], spring[8];
        snprintf(rod, sizeof rod, "rod%d", k);
        snprintf(ball, sizeof ball, "ball%d", k);
        snprintf(joint, sizeof joint, "hinge%d", k);
        snprintf(weld, sizeof weld, "weld%d", k);
        snprintf(spring, sizeof spring, "spring%d", k);
        rw_vec3 hinge = {0.05 * s, 0, 1}, along = {s * sin(a0), 0, -cos(a0)};
        // Hangs along -z of the rod's own axes.
        rw_quat q = rw_so3_exp((rw_vec3){0, -s * a0, 0});
        rw_vec3 middle = rw_vec3_add_scaled(hinge, 0.5, along), end = rw_vec3_add(hinge, along);
        rw_body_desc b = dae_rig_body(rod, 0.3, bar_inertia, middle, q);
        rw_vec3_store(b.linear_velocity, rw_vec3_cross(spin, middle));
        rw_vec3_store(b.angular_velocity, rw_quat_inverse_rotate(q, spin));
        dae_rig_add_body(&rig, &b);
        b = dae_rig_body(ball, 5.0, (rw_vec3){1e-7, 1e-7, 1e-7}, end, q);
        rw_vec3_store(b.linear_velocity, rw_vec3_cross(spin, end));
        rw_vec3_store(b.angular_velocity, rw_quat_inverse_rotate(q, spin));
        dae_rig_add_body(&rig, &b);
        d = dae_rig_joint(&rig, joint, RW_JOINT_REVOLUTE, "shaft", rod, hinge,
                          dae_rig_z_to(0, 1, 0));
        dae_rig_add_joint(&rig, &d);
        d = dae_rig_joint(&rig, weld, RW_JOINT_FIXED, rod, ball, end, q);
        dae_rig_add_joint(&rig, &d);
        rw_force_desc f;
        rw_id id;
        rw_scene_init_force(&f);
        snprintf(f.name, sizeof f.name, "%s", spring);
        f.kind = RW_FORCE_SPRING_DAMPER;
        snprintf(f.spring_damper.a.body, sizeof f.spring_damper.a.body, "slider");
        f.spring_damper.a.position[0] = 0.05 * s;
        snprintf(f.spring_damper.b.body, sizeof f.spring_damper.b.body, "%s", rod);
        f.spring_damper.stiffness = 8e5;
        f.spring_damper.damping = 4e4;
        f.spring_damper.rest_length = 0.5;
        f.spring_damper.has_rest_length = true;
        assert_int_equal(rw_model_add_force(&rig.model, &f, &id, &rig.error), RW_STATUS_OK);
    }
    dae_rig_start(&rig);
    const double expected[] = {0.5, 0.743249424786348, 0.501420922379564, 0.7406845959686871,
                               0.505909294296699};
    for (int k = 0; k < 5; k++) {
        dae_rig_run(&rig, 0.5 * k);
        double off = dae_rig_position(&rig, "slider").z - expected[k];
        print_message("A05, integrator %d, t = %.1f: off by %.1e m\n", (int)integrator, 0.5 * k, off);
        rw_assert_near(off, 0.0, tolerance);
    }
    dae_rig_close(&rig);
}

static void stiff_governor_follows_the_reduced_equations(void** state) {
    (void)state;
    governor(RW_INTEGRATOR_RK4, 1e-4, 1e-6); // h omega of its damper limits this one
    governor(RW_INTEGRATOR_BDF, 1e-2, 2e-6); // and not this one
}

// ---- A07, A08 ----

// A symmetric top on a ball joint at the origin: I1 about the fixed point, figure axis z.
static void top(dae_rig* rig, double theta, double w3, double precession, double h) {
    dae_rig_open(rig, RW_INTEGRATOR_RK4, h);
    const double i1 = 0.02, i3 = 0.01, m = 1.0, l = 0.1;
    rw_quat q = rw_so3_exp((rw_vec3){0, theta, 0});
    rw_vec3 axis = rw_quat_axis_z(q);
    rw_body_desc d = dae_rig_body("top", m, (rw_vec3){i1 - m * l * l, i1 - m * l * l, i3},
                                  rw_vec3_scale(axis, l), q);
    // omega = precession about z, and spin about the axis so that omega.axis = w3
    rw_vec3 w = rw_vec3_add_scaled((rw_vec3){0, 0, precession}, w3 - precession * axis.z, axis);
    rw_vec3_store(d.angular_velocity, rw_quat_inverse_rotate(q, w));
    rw_vec3_store(d.linear_velocity, rw_vec3_cross(w, rw_vec3_scale(axis, l)));
    dae_rig_add_body(rig, &d);
    rw_joint_desc j = dae_rig_joint(rig, "tip", RW_JOINT_SPHERICAL, "", "top", rw_vec3_zero(),
                                    rw_quat_identity());
    dae_rig_add_joint(rig, &j);
    dae_rig_start(rig);
}

static void heavy_tops_precess_steadily(void** state) {
    (void)state;
    const double cases[][3] = {{20, 40, 2.828358920980845}, {20, 80, 41.30334098365358},
                               {45, 80, 1.2540506644625873}, {60, 40, 2.624730217921794},
                               {90, 40, 2.4525},             {120, 80, 1.2080089303038284}};
    for (int c = 0; c < 6; c++) {
        dae_rig rig;
        double theta = cases[c][0] * DEG, rate = cases[c][2];
        top(&rig, theta, cases[c][1], rate, 2e-4);
        for (int k = 1; k <= 10; k++) {
            dae_rig_run(&rig, 0.1 * k);
            rw_vec3 p = rw_vec3_normalize(dae_rig_position(&rig, "top"));
            rw_assert_near(p.z, cos(theta), 1e-8);
            rw_assert_near(remainder(atan2(p.y, p.x) - rate * 0.1 * k, 2 * PI), 0.0, 1e-7);
        }
        dae_rig_close(&rig);
    }
}

static void released_gyroscope_nods_to_its_turning_point(void** state) {
    (void)state;
    dae_rig rig;
    top(&rig, PI / 2, 100.0, 0.0, 1e-4);
    double lowest = 0.0;
    for (int k = 1; k <= 10000; k++) {
        dae_rig_run(&rig, 1e-4 * k);
        lowest = fmin(lowest, dae_rig_position(&rig, "top").z / 0.1);
    }
    rw_assert_near(lowest, -0.03917976448319974, 1e-7);
    rw_vec3 p = dae_rig_position(&rig, "top");
    rw_assert_near(atan2(p.y, p.x), 0.9842882569298248, 1e-8);
    dae_rig_close(&rig);
}

// ---- A09 ----

static void free_asymmetric_top_returns_after_its_period(void** state) {
    (void)state;
    // Landau & Lifshitz, Mechanics, sec. 37: period of omega and attitude after it.
    const double period = 9.244135111235508;
    const rw_integrator integrators[] = {RW_INTEGRATOR_RK4, RW_INTEGRATOR_RK45, RW_INTEGRATOR_BDF};
    for (int k = 0; k < 3; k++) {
        dae_rig rig;
        dae_rig_open(&rig, integrators[k], period / 5000);
        rig.model.gravity[2] = 0;
        rw_body_desc top = dae_rig_body("top", 1, (rw_vec3){1, 2, 3}, rw_vec3_zero(),
                                        rw_quat_identity());
        rw_vec3_store(top.angular_velocity, (rw_vec3){1, 0.3, 0.8});
        dae_rig_add_body(&rig, &top);
        dae_rig_start(&rig);
        dae_rig_run(&rig, period);
        rw_quat q = dae_rig_rotation(&rig, "top");
        rw_vec3 w = dae_rig_omega(&rig, "top");
        const double got[7] = {w.x, w.y, w.z, q.w, q.x, q.y, q.z};
        const double expected[7] = {1, 0.3, 0.8, 0.1144539119177799, -0.37230309290159014,
                                    -0.22338185574095598, -0.8935274229638136};
        double sign = q.w < 0 ? -1 : 1, tolerance = k == 2 ? 2e-6 : 1e-9;
        for (int i = 0; i < 7; i++)
            rw_assert_near(i < 3 ? got[i] : sign * got[i], expected[i], tolerance);
        dae_rig_close(&rig);
    }
}

// ---- A12 ----

static void slider_crank_moves_as_its_closed_form(void** state) {
    (void)state;
    // Crank 0.1, rod 0.35, angle from the inner dead line, crank turned at 10 rad/s by a driven body.
    const double r = 0.1, l = 0.35, w = 10.0;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    rw_body_desc crank = dae_rig_body("crank", 1, (rw_vec3){1, 1, 1}, rw_vec3_zero(),
                                      rw_quat_identity());
    crank.kind = RW_BODY_KINEMATIC;
    crank.angular_velocity[2] = w;
    dae_rig_add_body(&rig, &crank);
    rw_body_desc rod = dae_rig_body("rod", 0.5, (rw_vec3){1e-3, 5e-3, 5e-3},
                                    (rw_vec3){r + 0.5 * l, 0, 0}, rw_quat_identity());
    rod.linear_velocity[1] = w * r * 0.5;
    rod.angular_velocity[2] = -w * r / l;
    dae_rig_add_body(&rig, &rod);
    rw_body_desc block = dae_rig_body("block", 0.3, (rw_vec3){1e-3, 1e-3, 1e-3},
                                      (rw_vec3){r + l, 0, 0}, rw_quat_identity());
    dae_rig_add_body(&rig, &block);
    rw_joint_desc d = dae_rig_joint(&rig, "pin", RW_JOINT_REVOLUTE, "crank", "rod",
                                    (rw_vec3){r, 0, 0}, rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    d = dae_rig_joint(&rig, "wrist", RW_JOINT_REVOLUTE, "rod", "block", (rw_vec3){r + l, 0, 0},
                      rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    d = dae_rig_joint(&rig, "track", RW_JOINT_PRISMATIC, "", "block", rw_vec3_zero(),
                      dae_rig_z_to(1, 0, 0));
    rw_vec3_store(d.child_frame.position, rw_vec3_zero()); // coordinate = distance from the crank
    dae_rig_add_joint(&rig, &d);
    dae_rig_start(&rig);
    for (int k = 0; k <= 40; k++) {
        double t = 0.025 * k, th = w * t, s = sqrt(l * l - r * r * sin(th) * sin(th));
        dae_rig_run(&rig, t);
        rw_assert_near(dae_rig_coordinate(&rig, "track", 0), r * cos(th) + s, 1e-10);
        rw_assert_near(dae_rig_rate(&rig, "track", 0),
                       -w * (r * sin(th) + r * r * sin(th) * cos(th) / s), 1e-9);
        rw_assert_near(dae_rig_coordinate(&rig, "pin", 0), -asin(r * sin(th) / l) - th, 1e-9);
    }
    dae_rig_close(&rig);
}

// ---- A18 ----

static void passive_3rps_robot_follows_its_reference(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 5e-4);
    const double base = 0.3, top_radius = 0.2, rest = 0.5299019513592785;
    const double stiffness[3] = {2000, 2200, 1800};
    rw_body_desc b = dae_rig_body("platform", 3, (rw_vec3){0.03, 0.03, 0.06},
                                  (rw_vec3){0, 0, 0.5}, rw_quat_identity());
    dae_rig_add_body(&rig, &b);
    for (int k = 0; k < 3; k++) {
        double az = 120 * DEG * k;
        rw_quat turn = rw_so3_exp((rw_vec3){0, 0, az});
        rw_vec3 foot = rw_quat_rotate(turn, (rw_vec3){base, 0, 0});
        rw_vec3 ball = rw_quat_rotate(turn, (rw_vec3){top_radius, 0, 0.5});
        rw_vec3 along = rw_vec3_normalize(rw_vec3_sub(ball, foot));
        // Leg frame: z along the leg, y tangential.
        rw_vec3 y = rw_quat_rotate(turn, (rw_vec3){0, 1, 0});
        rw_mat3 axes = rw_mat3_from_columns(rw_vec3_cross(y, along), y, along);
        rw_quat q = rw_quat_from_mat3(&axes);
        char lower[12], upper[12], name[12];
        snprintf(lower, sizeof lower, "lower%d", k);
        snprintf(upper, sizeof upper, "upper%d", k);
        b = dae_rig_body(lower, 1.0, (rw_vec3){0.0075, 0.0075, 0.0001},
                         rw_vec3_add_scaled(foot, 0.15, along), q);
        dae_rig_add_body(&rig, &b);
        b = dae_rig_body(upper, 0.5, (rw_vec3){0.00375, 0.00375, 5e-05},
                         rw_vec3_add_scaled(ball, -0.15, along), q);
        dae_rig_add_body(&rig, &b);
        snprintf(name, sizeof name, "foot%d", k);
        rw_joint_desc d = dae_rig_joint(&rig, name, RW_JOINT_REVOLUTE, "", lower, foot,
                                        rw_quat_between((rw_vec3){0, 0, 1}, y));
        dae_rig_add_joint(&rig, &d);
        snprintf(name, sizeof name, "leg%d", k);
        d = dae_rig_joint(&rig, name, RW_JOINT_PRISMATIC, lower, upper, foot, q);
        dae_rig_add_joint(&rig, &d);
        snprintf(name, sizeof name, "ball%d", k);
        d = dae_rig_joint(&rig, name, RW_JOINT_SPHERICAL, upper, "platform", ball,
                          rw_quat_identity());
        dae_rig_add_joint(&rig, &d);
        rw_force_desc f;
        rw_id id;
        rw_scene_init_force(&f);
        snprintf(f.name, sizeof f.name, "spring%d", k);
        f.kind = RW_FORCE_SPRING_DAMPER;
        rw_vec3_store(f.spring_damper.a.position, foot);
        snprintf(f.spring_damper.b.body, sizeof f.spring_damper.b.body, "%s", upper);
        f.spring_damper.b.position[2] = 0.15;
        f.spring_damper.stiffness = stiffness[k];
        f.spring_damper.rest_length = rest;
        f.spring_damper.has_rest_length = true;
        assert_int_equal(rw_model_add_force(&rig.model, &f, &id, &rig.error), RW_STATUS_OK);
    }
    dae_rig_start(&rig);
    const struct {
        double t, p[3], q[4];
    } expected[] = {
        {0.1, {2.3033077662123127e-06, -9.530565955227873e-07, 0.523911678686249},
         {0.9999937682354718, -0.003462660036217375, -0.0006880957021275131, 0}},
        {0.5, {6.075964971713062e-05, 1.668114892740659e-05, 0.5076457333820935},
         {0.9998424678358396, 0.017590306428879862, -0.0023707871427422677, 0}},
        {1.0, {1.0767439893903112e-05, 1.5614772470506697e-06, 0.5195070773926288},
         {0.999972799449337, -0.007356546775682988, 0.0005306420575572518, 0}}};
    for (int k = 0; k < 3; k++) {
        dae_rig_run(&rig, expected[k].t);
        rw_vec3 p = dae_rig_position(&rig, "platform");
        rw_quat q = dae_rig_rotation(&rig, "platform");
        const double got[7] = {p.x, p.y, p.z, q.w, q.x, q.y, q.z};
        for (int i = 0; i < 7; i++)
            rw_assert_near(got[i], i < 3 ? expected[k].p[i] : expected[k].q[i - 3], 1e-8);
    }
    // No redundant rows: 6 legs' bodies + platform, 42 unknowns, 3 x (5 + 5 + 3) rows.
    assert_int_equal(rw_dae_redundant_rows(rig.solver.self), 0);
    dae_rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n_four_bar_passes_its_singular_positions),
        cmocka_unit_test(a_rotated_loop_gives_the_rotated_motion),
        cmocka_unit_test(baumgarte_keeps_the_gap_small_and_projection_closes_it),
        cmocka_unit_test(stiff_governor_follows_the_reduced_equations),
        cmocka_unit_test(heavy_tops_precess_steadily),
        cmocka_unit_test(released_gyroscope_nods_to_its_turning_point),
        cmocka_unit_test(free_asymmetric_top_returns_after_its_period),
        cmocka_unit_test(slider_crank_moves_as_its_closed_form),
        cmocka_unit_test(passive_3rps_robot_follows_its_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
