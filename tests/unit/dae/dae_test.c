// The dae solver: assembly, coordinates, motors, limits, couplings, loads, faults, snapshots.
#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/dae/dae.h"
#include "solvers/dae/dae_system.h"
#include "solvers/sched/worker_pool.h"
#include "solvers/world/world.h"
#include "tests/support/dae_rig.h"

#define PI 3.141592653589793

// A bar of length 1 along x, pivoted at the origin about -y (positive angles lift it).
static void pivoted_bar(dae_rig* rig, rw_integrator integrator, double gravity) {
    dae_rig_open(rig, integrator, 1e-3);
    rig->model.gravity[2] = -gravity;
    rw_body_desc bar = dae_rig_body("bar", 1.2, (rw_vec3){0.01, 0.1, 0.1}, (rw_vec3){0.5, 0, 0},
                                    rw_quat_identity());
    dae_rig_add_body(rig, &bar);
}

static rw_joint_desc bar_pivot(const dae_rig* rig) {
    return dae_rig_joint(rig, "pivot", RW_JOINT_REVOLUTE, "", "bar", rw_vec3_zero(),
                         dae_rig_z_to(0, -1, 0));
}
static const double bar_inertia = 0.1 + 1.2 * 0.25; // about the pivot

static void position_motor_swings_as_a_damped_oscillator(void** state) {
    (void)state;
    dae_rig rig;
    pivoted_bar(&rig, RW_INTEGRATOR_RK4, 0);
    rw_joint_desc d = bar_pivot(&rig);
    d.motor.mode = RW_MOTOR_POSITION;
    d.motor.target[0] = 0.5;
    d.motor.target_count = 1;
    d.motor.stiffness = 40;
    d.motor.damping = 0.8;
    dae_rig_add_joint(&rig, &d);
    dae_rig_start(&rig);
    double w0 = sqrt(40 / bar_inertia), z = 0.8 / (2 * sqrt(40 * bar_inertia));
    double wd = w0 * sqrt(1 - z * z);
    for (int k = 1; k <= 10; k++) {
        double t = 0.1 * k, e = exp(-z * w0 * t);
        dae_rig_run(&rig, t);
        double x = 0.5 - 0.5 * e * (cos(wd * t) + z * w0 / wd * sin(wd * t));
        rw_assert_near(dae_rig_coordinate(&rig, "pivot", 0), x, 1e-9);
        double w[6], effort;
        dae_rig_reaction(&rig, "pivot", w);
        rig.solver.vtable->joint_effort(rig.solver.self, 0, &effort);
        rw_assert_near(effort, 40 * (0.5 - x) - 0.8 * dae_rig_rate(&rig, "pivot", 0), 1e-6);
        rw_assert_near(-w[4], effort, 1e-9); // about the axis the reaction is the motor's
    }
    dae_rig_close(&rig);
}

static void eulers_bear_any_gain_damper_and_compliance(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        dae_rig rig;
        pivoted_bar(&rig, k ? RW_INTEGRATOR_EULER : RW_INTEGRATOR_SYMPLECTIC_EULER, 9.81);
        rw_joint_desc d = bar_pivot(&rig);
        d.motor.mode = RW_MOTOR_POSITION; // h omega = 50: explicit, it explodes at once
        d.motor.target[0] = 0.002;
        d.motor.target_count = 1;
        d.motor.stiffness = 1e9;
        d.motor.damping = 1e4;
        dae_rig_add_joint(&rig, &d);
        rw_body_desc tip = dae_rig_body("tip", 0.1, (rw_vec3){1e-3, 1e-3, 1e-3}, (rw_vec3){1, 0, 0},
                                        rw_quat_identity());
        dae_rig_add_body(&rig, &tip);
        d = dae_rig_joint(&rig, "soft", RW_JOINT_FIXED, "bar", "tip", (rw_vec3){1, 0, 0},
                          rw_quat_identity());
        d.compliance = 1e-8;
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        dae_rig_run(&rig, 2.0);
        rw_assert_near(dae_rig_coordinate(&rig, "pivot", 0), 0.002, 1e-6);
        rw_assert_near(dae_rig_rate(&rig, "pivot", 0), 0.0, 1e-9);
        double violation[2], w[6];
        dae_rig_violation(&rig, violation);
        rw_assert_near(violation[0], 0.1 * 9.81 * 1e-8, 1e-11); // it gives way by its compliance
        dae_rig_reaction(&rig, "soft", w);
        rw_assert_near(w[2], 0.1 * 9.81, 1e-5);
        dae_rig_close(&rig);
    }
}

static void effort_and_velocity_motors_act_and_are_clipped(void** state) {
    (void)state;
    const struct {
        rw_motor_mode mode;
        double target, damping, expected; // angular acceleration at first
    } cases[] = {{RW_MOTOR_EFFORT, 0.8, 0, 0.8}, {RW_MOTOR_EFFORT, -5, 0, -2},
                 {RW_MOTOR_VELOCITY, 3, 0.5, 1.5}, {RW_MOTOR_VELOCITY, 30, 0.5, 2}};
    for (int k = 0; k < 4; k++) {
        dae_rig rig;
        pivoted_bar(&rig, RW_INTEGRATOR_RK4, 0);
        rw_joint_desc d = bar_pivot(&rig);
        d.motor.mode = cases[k].mode;
        d.motor.target[0] = cases[k].target;
        d.motor.target_count = 1;
        d.motor.damping = cases[k].damping;
        d.motor.max_effort = 2;
        d.motor.has_max_effort = true;
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        dae_rig_run(&rig, 1e-3);
        rw_assert_near(dae_rig_rate(&rig, "pivot", 0), cases[k].expected / bar_inertia * 1e-3,
                       5e-6);
        dae_rig_close(&rig);
    }
}

static void limits_stop_and_rebound_by_less_than_a_twentieth(void** state) {
    (void)state;
    dae_rig rig;
    pivoted_bar(&rig, RW_INTEGRATOR_RK4, 0);
    rw_joint_desc d = bar_pivot(&rig);
    d.has_lower_limit = d.has_upper_limit = true;
    d.lower_limit = -0.4;
    d.upper_limit = 0.3;
    dae_rig_add_joint(&rig, &d);
    rw_vec3_store(rig.model.bodies.items[0].desc.angular_velocity, (rw_vec3){0, -2.0, 0});
    rw_vec3_store(rig.model.bodies.items[0].desc.linear_velocity, (rw_vec3){0, 0, 1.0});
    dae_rig_start(&rig);
    double deepest = 0.0;
    for (int k = 1; k <= 200; k++) {
        dae_rig_run(&rig, 1e-3 * k);
        deepest = fmax(deepest, dae_rig_coordinate(&rig, "pivot", 0) - 0.3);
    }
    rw_assert_near(deepest, 2.0 * 1e-3, 5e-4); // as documented: u h
    double rate = dae_rig_rate(&rig, "pivot", 0);
    assert_true(rate < 0.0 && rate > -0.05 * 2.0);
    dae_rig_close(&rig);

    // Under gravity it comes to rest on the lower limit, a little inside, at any mass.
    for (int k = 0; k < 2; k++) {
        pivoted_bar(&rig, RW_INTEGRATOR_RK4, 9.81);
        d = bar_pivot(&rig);
        d.has_lower_limit = true;
        d.lower_limit = -0.4;
        if (k) {
            rig.model.bodies.mass[0] *= 1e4;
            rig.model.bodies.inverse_mass[0] *= 1e-4;
            for (int i = 0; i < 6; i++) {
                rig.model.bodies.inertia[i] *= 1e4;
                rig.model.bodies.inverse_inertia[i] *= 1e-4;
            }
        }
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        dae_rig_run(&rig, 3.0);
        double sag = 1.2 * 9.81 * 0.5 * cos(0.4) / bar_inertia * 25e-6;
        rw_assert_near(dae_rig_coordinate(&rig, "pivot", 0), -0.4 - sag, 1e-6);
        rw_assert_near(dae_rig_rate(&rig, "pivot", 0), 0.0, 1e-9);
        dae_rig_close(&rig);
    }
}

static void ball_joint_keeps_to_its_swing_and_twist(void** state) {
    (void)state;
    for (int twist = 0; twist < 2; twist++) {
        dae_rig rig;
        dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
        rig.model.gravity[2] = 0;
        rw_body_desc body = dae_rig_body("body", 1, (rw_vec3){0.1, 0.1, 0.1}, rw_vec3_zero(),
                                         rw_quat_identity());
        rw_vec3_store(body.angular_velocity, twist ? (rw_vec3){0, 0, 3} : (rw_vec3){3, 1, 0});
        dae_rig_add_body(&rig, &body);
        rw_joint_desc d = dae_rig_joint(&rig, "ball", RW_JOINT_SPHERICAL, "", "body",
                                        rw_vec3_zero(), rw_quat_identity());
        d.has_swing_limit = d.has_twist_lower_limit = d.has_twist_upper_limit = true;
        d.swing_limit = 0.6;
        d.twist_lower_limit = -0.2;
        d.twist_upper_limit = 0.7;
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        double most = 0.0;
        for (int k = 1; k <= 400; k++) {
            dae_rig_run(&rig, 1e-3 * k);
            rw_quat q = dae_rig_rotation(&rig, "body");
            most = fmax(most, twist ? 2 * atan2(q.z, q.w) : acos(rw_quat_axis_z(q).z));
        }
        assert_true(most > (twist ? 0.7 : 0.6) && most < (twist ? 0.7 : 0.6) + 0.005);
        assert_true(rw_vec3_norm(dae_rig_omega(&rig, "body")) < 0.16);
        dae_rig_close(&rig);
    }
}

static void coupled_joints_turn_in_their_ratio_and_share_the_load(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    rig.model.gravity[2] = 0;
    rw_body_desc a = dae_rig_body("a", 1, (rw_vec3){0.1, 0.1, 0.2}, rw_vec3_zero(),
                                  rw_quat_identity());
    rw_body_desc b = dae_rig_body("b", 1, (rw_vec3){0.1, 0.1, 0.05}, (rw_vec3){1, 0, 0},
                                  rw_quat_identity());
    dae_rig_add_body(&rig, &a);
    dae_rig_add_body(&rig, &b);
    rw_joint_desc d = dae_rig_joint(&rig, "ja", RW_JOINT_REVOLUTE, "", "a", rw_vec3_zero(),
                                    rw_quat_identity());
    d.motor.mode = RW_MOTOR_EFFORT;
    d.motor.target[0] = 0.7;
    d.motor.target_count = 1;
    dae_rig_add_joint(&rig, &d);
    d = dae_rig_joint(&rig, "jb", RW_JOINT_REVOLUTE, "", "b", (rw_vec3){1, 0, 0},
                      rw_quat_identity());
    dae_rig_add_joint(&rig, &d);
    rw_coupling_desc c;
    rw_id id;
    rw_scene_init_coupling(&c);
    snprintf(c.name, sizeof c.name, "gear");
    snprintf(c.joint_a, sizeof c.joint_a, "jb");
    snprintf(c.joint_b, sizeof c.joint_b, "ja");
    c.ratio = -3;
    assert_int_equal(rw_model_add_coupling(&rig.model, &c, &id, &rig.error), RW_STATUS_OK);
    dae_rig_start(&rig);
    double inertia = 0.2 + 9 * 0.05, w[6];
    dae_rig_run(&rig, 3.0); // more than a turn
    double angle = 0.5 * 0.7 / inertia * 9;
    assert_true(angle > PI);
    rw_assert_near(dae_rig_coordinate(&rig, "ja", 0), angle, 1e-9);
    rw_assert_near(dae_rig_coordinate(&rig, "jb", 0), -3 * angle, 1e-9);
    dae_rig_reaction(&rig, "jb", w);
    rw_assert_near(w[5], -3 * 0.7 / inertia * 0.05, 1e-10);
    dae_rig_reaction(&rig, "ja", w);
    rw_assert_near(w[5], 0.7 / inertia * 0.2, 1e-10); // motor less what the gear takes
    dae_rig_close(&rig);
}

static void a_mechanism_apart_is_assembled_or_refused_with_its_gap(void** state) {
    (void)state;
    for (int far = 0; far < 2; far++) {
        dae_rig rig;
        dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
        rw_body_desc a = dae_rig_body("a", 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){0.5, 0, 0},
                                      rw_quat_identity());
        rw_body_desc b = dae_rig_body("b", 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){1.6, 0.1, 0.1},
                                      rw_so3_exp((rw_vec3){0.05, 0.1, 0.2}));
        rw_vec3_store(b.angular_velocity, (rw_vec3){1, 2, 3});
        dae_rig_add_body(&rig, &a);
        dae_rig_add_body(&rig, &b);
        const char* ends[3][2] = {{"", "a"}, {"a", "b"}, {"b", ""}};
        const double at[3][2][3] = {{{0, 0, 0}, {-0.5, 0, 0}},
                                    {{0.5, 0, 0}, {-0.5, 0, 0}},
                                    {{0.5, 0, 0}, {far ? 3.0 : 1.5, 0, 0}}};
        for (int k = 0; k < 3; k++) {
            rw_joint_desc d;
            rw_scene_init_joint(&d);
            snprintf(d.name, sizeof d.name, "j%d", k);
            d.type = RW_JOINT_SPHERICAL;
            bool turned = k == 2; // the world is the parent
            snprintf(d.parent, sizeof d.parent, "%s", turned ? "" : ends[k][0]);
            snprintf(d.child, sizeof d.child, "%s", turned ? "b" : ends[k][1]);
            memcpy(d.parent_frame.position, at[k][turned], sizeof d.parent_frame.position);
            memcpy(d.child_frame.position, at[k][!turned], sizeof d.child_frame.position);
            dae_rig_add_joint(&rig, &d);
        }
        rw_status status = dae_rig_try_start(&rig);
        if (far) {
            assert_int_equal(status, RW_STATUS_INVALID_ARGUMENT);
            assert_non_null(strstr(rig.error.path, "joints["));
            assert_non_null(strstr(rig.error.text, "can't be assembled"));
        } else {
            assert_int_equal(status, RW_STATUS_OK);
            double violation[2];
            dae_rig_violation(&rig, violation);
            rw_assert_near(violation[0], 0.0, 1e-14);
            dae_rig_run(&rig, 0.5);
        }
        dae_rig_close(&rig);
    }
}

// A three-link arm, and a four-bar: setting coordinates keeps both assembled.
static void setting_a_joint_moves_what_hangs_on_it(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    char last[8] = "";
    for (int k = 0; k < 3; k++) {
        char name[8], joint[8];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(joint, sizeof joint, "j%d", k);
        rw_body_desc b = dae_rig_body(name, 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){k + 0.5, 0, 0},
                                      rw_quat_identity());
        dae_rig_add_body(&rig, &b);
        rw_joint_desc d = dae_rig_joint(&rig, joint, k == 1 ? RW_JOINT_UNIVERSAL : RW_JOINT_REVOLUTE,
                                        last, name, (rw_vec3){k, 0, 0},
                                        k == 2 ? dae_rig_z_to(0, 1, 0) : rw_quat_identity());
        dae_rig_add_joint(&rig, &d);
        memcpy(last, name, sizeof last);
    }
    dae_rig_start(&rig);
    const rw_solver_vtable* v = rig.solver.vtable;
    void* self = rig.solver.self;
    const double c0[1] = {7.0}, c1[2] = {0.3, -0.5}, r1[2] = {2.0, -1.0}, r2[1] = {4.0};
    assert_int_equal(v->set_joint(self, &rig.from, 0, c0, NULL, &rig.error), RW_STATUS_OK);
    assert_int_equal(v->set_joint(self, &rig.from, 1, c1, r1, &rig.error), RW_STATUS_OK);
    assert_int_equal(v->set_joint(self, &rig.from, 2, NULL, r2, &rig.error), RW_STATUS_OK);
    rw_assert_near(dae_rig_coordinate(&rig, "j0", 0), 7.0, 1e-14);
    rw_assert_near(dae_rig_coordinate(&rig, "j1", 0), 0.3, 1e-14);
    rw_assert_near(dae_rig_coordinate(&rig, "j1", 1), -0.5, 1e-14);
    rw_assert_near(dae_rig_coordinate(&rig, "j2", 0), 0.0, 1e-14);
    rw_assert_near(dae_rig_rate(&rig, "j0", 0), 0.0, 1e-14);
    rw_assert_near(dae_rig_rate(&rig, "j1", 0), 2.0, 1e-13);
    rw_assert_near(dae_rig_rate(&rig, "j1", 1), -1.0, 1e-13);
    rw_assert_near(dae_rig_rate(&rig, "j2", 0), 4.0, 1e-13);
    double violation[2];
    dae_rig_violation(&rig, violation);
    rw_assert_near(violation[0], 0.0, 1e-14);
    rw_assert_near(violation[1], 0.0, 1e-14);
    dae_rig_close(&rig);
}

static void setting_a_joint_of_a_loop_closes_the_loop_with_it_held(void** state) {
    (void)state;
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    rw_quat up = rw_so3_exp((rw_vec3){0, 0, PI / 2});
    rw_body_desc b = dae_rig_body("a", 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){0, 0.5, 0}, up);
    dae_rig_add_body(&rig, &b);
    b = dae_rig_body("b", 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){0.75, 1.25, 0},
                     rw_so3_exp((rw_vec3){0, 0, atan2(0.5, 1.5)}));
    dae_rig_add_body(&rig, &b);
    b = dae_rig_body("c", 1, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){1.5, 1.25, 0}, up);
    dae_rig_add_body(&rig, &b);
    const struct {
        const char *name, *parent, *child;
        rw_vec3 at;
    } pins[4] = {{"o", "", "a", {0, 0, 0}}, {"ab", "a", "b", {0, 1, 0}},
                 {"bc", "b", "c", {1.5, 1.5, 0}}, {"g", "", "c", {1.5, 1, 0}}};
    for (int k = 0; k < 4; k++) {
        rw_joint_desc d = dae_rig_joint(&rig, pins[k].name, RW_JOINT_REVOLUTE, pins[k].parent,
                                        pins[k].child, pins[k].at, rw_quat_identity());
        dae_rig_add_joint(&rig, &d);
    }
    dae_rig_start(&rig);
    const double c[1] = {0.4}, r[1] = {3.0};
    assert_int_equal(rig.solver.vtable->set_joint(rig.solver.self, &rig.from, 0, c, r, &rig.error),
                     RW_STATUS_OK);
    rw_assert_near(dae_rig_coordinate(&rig, "o", 0), 0.4, 1e-12);
    rw_assert_near(dae_rig_rate(&rig, "o", 0), 3.0, 1e-10);
    double violation[2], energy = dae_rig_energy(&rig);
    dae_rig_violation(&rig, violation);
    rw_assert_near(violation[0], 0.0, 1e-12);
    dae_rig_run(&rig, 0.1);
    rw_assert_near(dae_rig_energy(&rig), energy, 1e-8);
    const double impossible[1] = {2.5};
    assert_int_equal(
        rig.solver.vtable->set_joint(rig.solver.self, &rig.from, 0, impossible, NULL, &rig.error),
        RW_STATUS_FAILED_PRECONDITION);
    dae_rig_close(&rig);
}

static void a_driven_body_carries_what_hangs_on_it(void** state) {
    (void)state;
    // z = 0.1 sin(2 pi t), and a turn of 0.5 sin(2 pi t) about x: the load's reaction is m (a - g).
    const rw_integrator integrators[] = {RW_INTEGRATOR_RK4, RW_INTEGRATOR_RK45, RW_INTEGRATOR_BDF};
    for (int k = 0; k < 3; k++) {
        dae_rig rig;
        dae_rig_open(&rig, integrators[k], 1e-3);
        rw_body_desc platform = dae_rig_body("platform", 1, (rw_vec3){1, 1, 1}, rw_vec3_zero(),
                                             rw_quat_identity());
        platform.kind = RW_BODY_KINEMATIC;
        dae_rig_add_body(&rig, &platform);
        rw_body_desc load = dae_rig_body("load", 2, (rw_vec3){0.1, 0.1, 0.1}, (rw_vec3){0, 0.5, 0},
                                         rw_quat_identity());
        dae_rig_add_body(&rig, &load);
        rw_joint_desc d = dae_rig_joint(&rig, "weld", RW_JOINT_FIXED, "platform", "load",
                                        rw_vec3_zero(), rw_quat_identity());
        dae_rig_add_joint(&rig, &d);
        rw_input_desc input;
        rw_id id;
        const double amplitude[6] = {0, 0, 0.1, 0.5, 0, 0};
        rw_scene_init_input(&input);
        snprintf(input.name, sizeof input.name, "shake");
        snprintf(input.target, sizeof input.target, "body/platform");
        input.kind = RW_INPUT_SINE;
        input.amplitude = (rw_doubles){amplitude, 6};
        input.frequency = 1;
        assert_int_equal(rw_model_add_input(&rig.model, &input, &id, &rig.error), RW_STATUS_OK);
        dae_rig_start(&rig);
        // The scene starts at rest, the input does not: start on its velocities.
        const double w = 2 * PI;
        rw_vec3_store(rig.from.body_linear_velocity + 3, (rw_vec3){0, 0, 0.1 * w + 0.25 * w});
        rw_vec3_store(rig.from.body_angular_velocity + 3, (rw_vec3){0.5 * w, 0, 0});
        for (int i = 1; i <= 10; i++) {
            double t = 0.13 * i, s = sin(w * t), c = cos(w * t), wrench[6], violation[2];
            dae_rig_run(&rig, t);
            double a = 0.5 * s, rate = 0.5 * w * c, turn = -0.5 * w * w * s;
            rw_vec3 arm = {0, 0.5 * cos(a), 0.5 * sin(a)};
            rw_vec3 p = dae_rig_position(&rig, "load");
            rw_assert_near(p.y, arm.y, 1e-9);
            rw_assert_near(p.z, arm.z + 0.1 * s, 1e-9);
            dae_rig_violation(&rig, violation);
            rw_assert_near(violation[0], 0.0, 1e-13);
            dae_rig_reaction(&rig, "weld", wrench);
            rw_assert_near(wrench[1], 2 * (-turn * arm.z - rate * rate * arm.y), 1e-6);
            rw_assert_near(wrench[2],
                           2 * (9.81 - 0.1 * w * w * s + turn * arm.y - rate * rate * arm.z), 1e-6);
        }
        dae_rig_close(&rig);
    }
}

static void a_warmed_up_step_allocates_nothing(void** state) {
    (void)state;
    for (int integrator = 0; integrator < 5; integrator++) {
        dae_rig rig;
        pivoted_bar(&rig, (rw_integrator)integrator, 9.81);
        rw_joint_desc d = bar_pivot(&rig);
        dae_rig_add_joint(&rig, &d);
        dae_rig_start(&rig);
        dae_rig_run(&rig, 2e-3);
        rw_step step = {.model = &rig.model, .from = &rig.from, .to = &rig.to,
                        .time_s = rig.time_s, .h = 1e-3, .fault = &rig.fault};
        rw_drive drive = {0};
        assert_int_equal(rw_drive_prepare(&drive, &rig.model), RW_STATUS_OK);
        rw_drive_evaluate(&drive, &rig.model, rig.time_s);
        step.drive_to = &drive;
        uint64_t before = rig.alloc.call_count;
        bool done;
        const rw_solver_vtable* v = rig.solver.vtable;
        assert_int_equal(v->begin(rig.solver.self, &step), RW_STATUS_OK);
        assert_int_equal(v->sweep(rig.solver.self, &step, &done), RW_STATUS_OK);
        assert_int_equal(v->evaluate(rig.solver.self, &rig.to, rig.time_s), RW_STATUS_OK);
        assert_true(rig.alloc.call_count == before);
        rw_drive_finish(&drive, &rig.alloc);
        dae_rig_close(&rig);
    }
}

static void large_mechanisms_give_the_same_bits_for_any_worker_count(void** state) {
    (void)state;
    enum { N = 2047 };
    dae_rig rig;
    dae_rig_open(&rig, RW_INTEGRATOR_RK4, 1e-3);
    char names[2][16] = {"", ""};
    for (int k = 0; k < N; k++) { // a binary tree, wide enough for every shared loop
        rw_joint_desc d;
        rw_scene_init_joint(&d);
        snprintf(names[0], sizeof names[0], "b%d", k);
        snprintf(names[1], sizeof names[1], "b%d", (k - 1) / 2);
        rw_body_desc b = dae_rig_body(names[0], 1 + 0.1 * (k % 7), (rw_vec3){0.1, 0.2, 0.25},
                                      (rw_vec3){0.3 * k, 0.1 * (k % 5), 0},
                                      rw_so3_exp((rw_vec3){0.1 * (k % 3), 0.2, 0.01 * k}));
        b.angular_velocity[k % 3] = 0.5;
        dae_rig_add_body(&rig, &b);
        snprintf(d.name, sizeof d.name, "j%d", k);
        d.type = k % 2 ? RW_JOINT_REVOLUTE : RW_JOINT_SPHERICAL;
        memcpy(d.child, names[0], sizeof names[0]);
        if (k)
            memcpy(d.parent, names[1], sizeof names[1]);
        d.child_frame.position[0] = -0.1;
        d.damping = k % 11 == 3 ? 0.1 : 0.0;
        dae_rig_add_joint(&rig, &d);
    }
    assert_int_equal(
        rw_field_reserve(rw_state_fields(), &rig.alloc, &rig.from, RW_DOMAIN_BODY, 0, N),
        RW_STATUS_OK);
    dae_rig_place(&rig, &rig.from);
    double *angle = calloc(3 * N, sizeof *angle), *first = NULL;
    const int workers[] = {0, 1, 2, 3, 8};
    for (int w = 0; w < 5; w++) {
        rw_dae_system* system;
        assert_int_equal(rw_dae_system_create(&rig.model, &rig.alloc, angle, &system, &rig.error),
                         RW_STATUS_OK);
        rw_worker_pool* pool = workers[w] ? rw_worker_pool_create(&rig.alloc, workers[w]) : NULL;
        rw_parallel parallel = {pool};
        system->parallel = &parallel;
        double* y = calloc(N * RW_DAE_WIDTH, sizeof *y);
        double* slope = calloc(N * RW_DAE_WIDTH, sizeof *slope);
        rw_dae_system_gather(system, &rig.from, y);
        rw_dae_system_set_time(system, &rig.from, 0.0, 0.0);
        assert_int_equal(rw_dae_system_derivative(system, y, slope), RW_STATUS_OK);
        for (int i = 0; i < N * RW_DAE_WIDTH; i++)
            assert_true(isfinite(slope[i]));
        assert_true(slope[N * RW_DAE_WIDTH - 1] != 0.0);
        if (first)
            assert_memory_equal(slope, first, N * RW_DAE_WIDTH * sizeof *slope);
        else
            first = slope;
        if (slope != first)
            free(slope);
        free(y);
        rw_dae_system_destroy(system, &rig.alloc);
        if (pool)
            rw_worker_pool_destroy(pool);
    }
    free(first);
    free(angle);
    dae_rig_close(&rig);
}

// ---- In a world ----

static rw_world* make_world(rw_alloc* alloc, rw_integrator integrator) {
    rw_world_config config = {.alloc = alloc};
    rw_world* world;
    rw_error error;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.solver.rigid = RW_SOLVER_DAE;
    scene.solver.dae.integrator = integrator;
    rw_body_desc bodies[3];
    rw_joint_desc joints[4];
    for (int k = 0; k < 3; k++) {
        rw_vec3 p = {0.5 + k, 0.2 * k, 0};
        bodies[k] = dae_rig_body((const char*[]){"a", "b", "c"}[k], 1 + k,
                                 (rw_vec3){0.1, 0.12, 0.15}, p, rw_quat_identity());
        bodies[k].center_of_mass[1] = 0.05;
        bodies[k].has_center_of_mass = true;
    }
    for (int k = 0; k < 3; k++) {
        rw_scene_init_joint(&joints[k]);
        snprintf(joints[k].name, sizeof joints[k].name, "j%d", k);
        joints[k].type = (rw_joint_type[]){RW_JOINT_REVOLUTE, RW_JOINT_UNIVERSAL,
                                           RW_JOINT_SPHERICAL}[k];
        snprintf(joints[k].parent, sizeof joints[k].parent, "%s", (const char*[]){"", "a", "b"}[k]);
        memcpy(joints[k].child, bodies[k].name, sizeof joints[k].child);
        if (k)
            rw_vec3_store(joints[k].parent_frame.position, (rw_vec3){0.5, 0.1, 0});
        rw_vec3_store(joints[k].child_frame.position, (rw_vec3){-0.5, k ? -0.1 : 0, 0});
    }
    rw_quat_store(joints[0].parent_frame.rotation, dae_rig_z_to(0, 1, 0));
    rw_quat_store(joints[0].child_frame.rotation, dae_rig_z_to(0, 1, 0));
    joints[0].motor.mode = RW_MOTOR_POSITION;
    joints[0].motor.target[0] = 0.4;
    joints[0].motor.target_count = 1;
    joints[0].motor.stiffness = 30;
    joints[0].motor.damping = 2;
    joints[2].has_swing_limit = true;
    joints[2].swing_limit = 0.5;
    scene.bodies = bodies;
    scene.body_count = 3;
    scene.joints = joints;
    scene.joint_count = 3;
    if (rw_world_create_from_scene(&config, &scene, &world, &error) != RW_STATUS_OK)
        fail_msg("%s: %s", error.path, error.text);
    return world;
}

static void advance(rw_world* world, int steps) {
    rw_error error;
    for (int k = 0; k < steps; k++)
        if (rw_world_step(world, &error) != RW_STATUS_OK)
            fail_msg("%s", error.text);
}

static void a_restored_mechanism_continues_bit_for_bit(void** state) {
    (void)state;
    for (int integrator = 0; integrator < 5; integrator++) {
        rw_alloc alloc;
        rw_error error;
        rw_alloc_init(&alloc, 0);
        rw_world *world = make_world(&alloc, (rw_integrator)integrator), *copy;
        advance(world, 700);
        rw_buffer bytes;
        rw_buffer_init(&bytes, &alloc);
        assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
        rw_world_config config = {.alloc = &alloc};
        assert_int_equal(rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy,
                                                       &error),
                         RW_STATUS_OK);
        for (int k = 0; k < 100; k++) {
            uint64_t a, b;
            assert_int_equal(rw_world_hash(world, &a, &error), RW_STATUS_OK);
            assert_int_equal(rw_world_hash(copy, &b, &error), RW_STATUS_OK);
            assert_true(a == b);
            advance(world, 3);
            advance(copy, 3);
        }
        rw_buffer_finish(&bytes);
        rw_world_destroy(copy);
        rw_world_destroy(world);
        rw_alloc_finish(&alloc);
    }
}

static void the_integrator_can_change_between_steps(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_error error;
    rw_alloc_init(&alloc, 0);
    rw_world* world = make_world(&alloc, RW_INTEGRATOR_RK4);
    rw_world* steady = make_world(&alloc, RW_INTEGRATOR_RK4);
    const rw_integrator order[] = {RW_INTEGRATOR_BDF, RW_INTEGRATOR_RK45, RW_INTEGRATOR_RK4,
                                   RW_INTEGRATOR_BDF, RW_INTEGRATOR_RK4};
    for (int k = 0; k < 5; k++) {
        rw_world_set set = {.has_solver = true, .solver = rw_world_model(world)->solver};
        set.solver.dae.integrator = order[k];
        set.solver.dae.relative_tolerance = set.solver.dae.absolute_tolerance = 1e-10;
        assert_int_equal(rw_world_set_options(world, &set, &error), RW_STATUS_OK);
        advance(world, 40);
        advance(steady, 40);
        for (int i = 0; i < 9; i++) // the same motion, whoever integrates it
            rw_assert_near(rw_world_state(world)->body_position[i],
                           rw_world_state(steady)->body_position[i], 1e-7);
    }
    rw_world_destroy(world);
    rw_world_destroy(steady);
    rw_alloc_finish(&alloc);
}

static void a_distance_taken_at_creation_survives_a_snapshot(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_error error;
    rw_alloc_init(&alloc, 0);
    rw_world_config config = {.alloc = &alloc};
    rw_world *world, *copy;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.solver.rigid = RW_SOLVER_DAE;
    scene.solver.dae.stabilization = RW_STABILIZATION_NONE; // it drifts: the state's is another one
    rw_body_desc ball = dae_rig_body("ball", 1, (rw_vec3){1, 1, 1}, (rw_vec3){0.6, 0, 0.8},
                                     rw_quat_identity());
    rw_joint_desc joint;
    rw_scene_init_joint(&joint);
    snprintf(joint.name, sizeof joint.name, "string");
    snprintf(joint.child, sizeof joint.child, "ball");
    joint.type = RW_JOINT_DISTANCE;
    scene.bodies = &ball;
    scene.body_count = 1;
    scene.joints = &joint;
    scene.joint_count = 1;
    assert_int_equal(rw_world_create_from_scene(&config, &scene, &world, &error), RW_STATUS_OK);
    advance(world, 1000);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
    assert_int_equal(
        rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy, &error),
        RW_STATUS_OK);
    const char* globs[] = {"joint/string/violation", "joint/string/reaction_force"};
    double values[2][5];
    for (int k = 0; k < 2; k++) {
        rw_signal_set set;
        rw_world* w = k ? copy : world;
        assert_int_equal(rw_world_resolve_signals(w, globs, 2, &set, &error), RW_STATUS_OK);
        assert_int_equal(rw_world_read_signals(w, &set, values[k], &error), RW_STATUS_OK);
        rw_world_release_signals(w, &set);
    }
    assert_true(values[0][0] > 1e-14);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    rw_buffer_finish(&bytes);
    rw_world_destroy(copy);
    rw_world_destroy(world);
    rw_alloc_finish(&alloc);
}

static void signals_answer_for_the_first_state_and_reactions_carry_the_weight(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_error error;
    rw_alloc_init(&alloc, 0);
    rw_world* world = make_world(&alloc, RW_INTEGRATOR_RK4);
    const char* globs[] = {"joint/j0/reaction_force", "world/momentum/linear", "joint/*/violation",
                           "world/energy/total"};
    rw_signal_set set;
    assert_int_equal(rw_world_resolve_signals(world, globs, 4, &set, &error), RW_STATUS_OK);
    double first[16], second[16];
    assert_int_equal(set.width, 3 + 3 + 6 + 1);
    assert_int_equal(rw_world_read_signals(world, &set, first, &error), RW_STATUS_OK);
    assert_true(rw_vec3_norm(rw_vec3_load(first)) > 1.0); // it holds a part of the weight already
    // Newton: the change of momentum is weight plus the one reaction, by the trapezoidal rule.
    for (int k = 0; k < 50; k++) {
        advance(world, 1);
        assert_int_equal(rw_world_read_signals(world, &set, second, &error), RW_STATUS_OK);
        for (int i = 0; i < 3; i++) {
            double impulse = 0.5e-3 * (first[i] + second[i]) - (i == 2 ? 6 * 9.81e-3 : 0.0);
            rw_assert_near(second[3 + i] - first[3 + i], impulse, 2e-6); // of 0.06
        }
        for (int i = 6; i < 12; i++)
            rw_assert_near(second[i], 0.0, 1e-13);
        memcpy(first, second, sizeof first);
    }
    rw_world_release_signals(world, &set);
    rw_world_destroy(world);
    rw_alloc_finish(&alloc);
}

static void the_quota_is_an_answer_not_a_crash(void** state) {
    (void)state;
    int refused = 0;
    for (size_t limit = 20000;; limit += 1500) {
        rw_alloc alloc;
        rw_alloc_init(&alloc, limit);
        dae_rig rig;
        pivoted_bar(&rig, RW_INTEGRATOR_RK45, 9.81);
        rw_joint_desc d = bar_pivot(&rig);
        dae_rig_add_joint(&rig, &d);
        size_t used = atomic_load(&rig.alloc.used_bytes);
        rig.alloc.limit_bytes = used + 4000 + (size_t)refused * 1500;
        rw_status status = dae_rig_try_start(&rig);
        rig.alloc.limit_bytes = 0;
        dae_rig_close(&rig);
        if (status == RW_STATUS_OK)
            break;
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
        refused++;
    }
    assert_true(refused > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(position_motor_swings_as_a_damped_oscillator),
        cmocka_unit_test(eulers_bear_any_gain_damper_and_compliance),
        cmocka_unit_test(effort_and_velocity_motors_act_and_are_clipped),
        cmocka_unit_test(limits_stop_and_rebound_by_less_than_a_twentieth),
        cmocka_unit_test(ball_joint_keeps_to_its_swing_and_twist),
        cmocka_unit_test(coupled_joints_turn_in_their_ratio_and_share_the_load),
        cmocka_unit_test(a_mechanism_apart_is_assembled_or_refused_with_its_gap),
        cmocka_unit_test(setting_a_joint_moves_what_hangs_on_it),
        cmocka_unit_test(setting_a_joint_of_a_loop_closes_the_loop_with_it_held),
        cmocka_unit_test(a_driven_body_carries_what_hangs_on_it),
        cmocka_unit_test(a_warmed_up_step_allocates_nothing),
        cmocka_unit_test(large_mechanisms_give_the_same_bits_for_any_worker_count),
        cmocka_unit_test(a_restored_mechanism_continues_bit_for_bit),
        cmocka_unit_test(the_integrator_can_change_between_steps),
        cmocka_unit_test(a_distance_taken_at_creation_survives_a_snapshot),
        cmocka_unit_test(signals_answer_for_the_first_state_and_reactions_carry_the_weight),
        cmocka_unit_test(the_quota_is_an_answer_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
