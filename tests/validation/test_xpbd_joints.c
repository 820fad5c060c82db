// Mechanisms on the xpbd solver against closed forms and high-precision references. Backward Euler is
// of first order: each motion runs at h and h/2, must halve its error, and the extrapolated value
// 2 y(h/2) - y(h) must meet the reference to the square of the error.
// A01: IFToMM Library of Computational Benchmark Problems. A07: Goldstein, Classical Mechanics, 5.7.
// A10: Lagrangian, integrated with 28 digits. A18: 3-RPS robot (Lee and Shah 1988), minimal
// coordinates. A19: elementary mechanics.
#include "tests/support/xpbd_rig.h"

#define DEG (M_PI / 180)

// A scene made at a step, and what is read from it at the end.
typedef xpbd_rig* (*scene_maker)(double h, const void* parameters);
typedef void (*scene_reader)(xpbd_rig* rig, double* values);

typedef struct extrapolation {
    double coarse[16], fine[16], value[16];
} extrapolation;

static extrapolation run_twice(scene_maker make, scene_reader read, const void* parameters,
                               double h, double time_s, int count) {
    extrapolation all;
    for (int k = 0; k < 2; k++) {
        double step = k == 0 ? h : h / 2;
        xpbd_rig* rig = make(step, parameters);
        xpbd_rig_run_for(rig, time_s);
        read(rig, k == 0 ? all.coarse : all.fine);
        xpbd_rig_close(rig);
    }
    for (int i = 0; i < count; i++) {
        all.value[i] = 2 * all.fine[i] - all.coarse[i];
    }
    return all;
}

// The extrapolated values meet `expected`; the errors halve where they can be told.
static void check(const extrapolation* all, const double* expected, int count, double tolerance,
                  const char* what) {
    for (int i = 0; i < count; i++) {
        double coarse = all->coarse[i] - expected[i], fine = all->fine[i] - expected[i];
        if (!(fabs(all->value[i] - expected[i]) <= tolerance)) {
            fail_msg("%s, value %d: %.9g and %.9g, extrapolated %.9g, expected %.9g", what, i,
                     all->coarse[i], all->fine[i], all->value[i], expected[i]);
        }
        if (fabs(coarse) > 20 * tolerance) {
            rw_assert_near(coarse / fine, 2, 0.3);
        }
    }
}

// ---- A01 ----------------------------------------------------------------------------------------

static xpbd_rig* make_simple_pendulum(double h, const void* parameters) {
    (void)parameters;
    xpbd_rig* rig = xpbd_rig_open(h, 3);
    xpbd_rig_gravity(rig, 0, -9.81, 0);
    xpbd_rig_body(rig, "bob", 1, rw_vec3_make(0.1, 0.1, 0.1), rw_vec3_make(-1, 0, 0));
    rw_joint_desc* pin = xpbd_rig_joint(rig, "pin", RW_JOINT_DISTANCE, "", "bob",
                                        rw_vec3_make(-1, 0, 0), rw_quat_identity());
    memset(pin->parent_frame.position, 0, sizeof pin->parent_frame.position);
    xpbd_rig_start(rig);
    return rig;
}

static void read_simple_pendulum(xpbd_rig* rig, double* values) {
    rw_vec3 p = xpbd_rig_vector(rig, "body/bob/position");
    rw_vec3 v = xpbd_rig_vector(rig, "body/bob/linear_velocity");
    rw_vec3 pull = xpbd_rig_vector(rig, "joint/pin/reaction_force");
    const double all[5] = {p.x, p.y, v.x, v.y, -rw_vec3_dot(pull, p)};
    memcpy(values, all, sizeof all);
}

static void simple_pendulum_follows_the_elliptic_functions_at_first_order(void** state) {
    (void)state;
    static const double expected[2][5] = {
        {0.9862917511318753, -0.16501085312554112, 0.2969055159163157, 1.7746436411126554,
         4.8562694074846755},
        {-0.7935661953433218, -0.6084839304437913, -2.102437874436125, 2.7419353930105093,
         17.90768207296078}};
    for (int t = 1; t <= 2; t++) {
        extrapolation all = run_twice(make_simple_pendulum, read_simple_pendulum, NULL, 2e-4, t, 5);
        check(&all, expected[t - 1], 4, 2e-4, "A01");
        rw_assert_near(all.value[4], expected[t - 1][4], 2e-3);
        // The rod keeps its length to rounding.
        rw_assert_near(hypot(all.fine[0], all.fine[1]), 1, 1e-9);
    }
}

// ---- A10 ----------------------------------------------------------------------------------------

typedef struct chain_case {
    int links;
    bool uniform;
    double expected[6]; // angles, rates at 1 s
} chain_case;

static xpbd_rig* make_chain(double h, const void* parameters) {
    const chain_case* one = parameters;
    xpbd_rig* rig = xpbd_rig_open(h, 3);
    xpbd_rig_gravity(rig, 0, -9.81, 0);
    char last[16] = "";
    for (int k = 0; k < one->links; k++) {
        char name[16], joint[16];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(joint, sizeof joint, "j%d", k);
        double inertia = one->uniform ? 1.0 / 12 : 1e-9;
        rw_body_desc* body =
            xpbd_rig_body(rig, name, 1, rw_vec3_make(inertia, one->uniform ? 1e-3 : 1e-9, inertia),
                          rw_vec3_make(k + (one->uniform ? 0.5 : 1), 0, 0));
        rw_quat_store(body->rotation, rw_so3_exp(rw_vec3_make(0, 0, M_PI / 2)));
        xpbd_rig_joint(rig, joint, RW_JOINT_REVOLUTE, last, name, rw_vec3_make(k, 0, 0),
                       rw_quat_identity());
        memcpy(last, name, sizeof last);
    }
    xpbd_rig_start(rig);
    return rig;
}

static void read_chain(xpbd_rig* rig, double* values) {
    int links = rw_world_model(rig->world)->bodies.count;
    for (int k = 0; k < links; k++) {
        char signal[40];
        double q[4];
        snprintf(signal, sizeof signal, "body/l%d/rotation", k);
        xpbd_rig_read(rig, signal, q);
        values[k] = 2 * atan2(q[3], q[0]);
        snprintf(signal, sizeof signal, "body/l%d/angular_velocity", k);
        values[links + k] = xpbd_rig_vector(rig, signal).z;
    }
}

static void double_and_triple_pendulums_follow_their_references_at_first_order(void** state) {
    (void)state;
    static const chain_case cases[] = {
        {2,
         false,
         {-0.62508769980639063, -1.03458508568001234, -3.92227957288797662, -1.30309924869633124}},
        {2,
         true,
         {-1.20771623819063799, -0.814391023091296351, -3.40651753297195777,
          -0.516045472105208917}},
        {3,
         true,
         {-0.235346902273893257, -0.77715285647052732, -0.909372065598692634, -3.52039796365041315,
          -3.24244822385042685, -0.398446618834098337}},
        {3,
         false,
         {-0.142093105095420335, -0.163982530773226019, -0.860192450997519648, -1.85504816094465957,
          -3.42774695230723483, -4.14271042601940723}},
    };
    for (size_t k = 0; k < RW_COUNT_OF(cases); k++) {
        extrapolation all =
            run_twice(make_chain, read_chain, &cases[k], 1e-4, 1, 2 * cases[k].links);
        check(&all, cases[k].expected, 2 * cases[k].links, 1e-3, "A10");
    }
}

// ---- A07 ----------------------------------------------------------------------------------------

typedef struct top_case {
    double degrees, w3, precession;
} top_case;

static xpbd_rig* make_top(double h, const void* parameters) {
    const top_case* one = parameters;
    const double i1 = 0.02, i3 = 0.01, m = 1, l = 0.1;
    xpbd_rig* rig = xpbd_rig_open(h, 4);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    rw_quat q = rw_so3_exp(rw_vec3_make(0, one->degrees * DEG, 0));
    rw_vec3 axis = rw_quat_axis_z(q);
    double across = i1 - m * l * l;
    rw_body_desc* body =
        xpbd_rig_body(rig, "top", m, rw_vec3_make(across, across, i3), rw_vec3_scale(axis, l));
    rw_quat_store(body->rotation, q);
    rw_vec3 w = rw_vec3_add_scaled(rw_vec3_make(0, 0, one->precession),
                                   one->w3 - one->precession * axis.z, axis);
    rw_vec3_store(body->angular_velocity, rw_quat_inverse_rotate(q, w));
    rw_vec3_store(body->linear_velocity, rw_vec3_cross(w, rw_vec3_scale(axis, l)));
    xpbd_rig_joint(rig, "tip", RW_JOINT_SPHERICAL, "", "top", rw_vec3_zero(), rw_quat_identity());
    xpbd_rig_start(rig);
    return rig;
}

static void read_top(xpbd_rig* rig, double* values) {
    rw_vec3 p = rw_vec3_scale(xpbd_rig_vector(rig, "body/top/position"), 10);
    rw_vec3_store(values, p);
}

static void heavy_top_precesses_steadily(void** state) {
    (void)state;
    static const top_case cases[] = {
        {20, 40, 2.828358920980845}, {60, 40, 2.624730217921794}, {90, 80, 1.22625}};
    for (size_t k = 0; k < RW_COUNT_OF(cases); k++) {
        extrapolation all = run_twice(make_top, read_top, &cases[k], 1e-4, 1, 3);
        double tilt = cases[k].degrees * DEG, turn = cases[k].precession;
        const double expected[3] = {sin(tilt) * cos(turn), sin(tilt) * sin(turn), cos(tilt)};
        check(&all, expected, 3, 2e-3, "A07");
    }
}

// ---- A18 ----------------------------------------------------------------------------------------

// The 3-RPS robot: legs of two bodies (revolute foot, prismatic, ball) under a platform. With
// `stiffness` NULL the legs have position motors instead of springs.
static void build_3rps(xpbd_rig* rig, const double* stiffness) {
    const double base = 0.3, top_radius = 0.2, rest = 0.5299019513592785;
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    xpbd_rig_body(rig, "platform", 3, rw_vec3_make(0.03, 0.03, 0.06), rw_vec3_make(0, 0, 0.5));
    for (int k = 0; k < 3; k++) {
        rw_quat turn = rw_so3_exp(rw_vec3_make(0, 0, 120 * DEG * k));
        rw_vec3 foot = rw_quat_rotate(turn, rw_vec3_make(base, 0, 0));
        rw_vec3 ball = rw_quat_rotate(turn, rw_vec3_make(top_radius, 0, 0.5));
        rw_vec3 along = rw_vec3_normalize(rw_vec3_sub(ball, foot));
        rw_vec3 y = rw_quat_rotate(turn, rw_vec3_make(0, 1, 0));
        rw_mat3 axes = rw_mat3_from_columns(rw_vec3_cross(y, along), y, along);
        rw_quat q = rw_quat_from_mat3(&axes);
        char lower[12], upper[12], name[12];
        snprintf(lower, sizeof lower, "lower%d", k);
        snprintf(upper, sizeof upper, "upper%d", k);
        rw_body_desc* body = xpbd_rig_body(rig, lower, 1, rw_vec3_make(0.0075, 0.0075, 0.0001),
                                           rw_vec3_add_scaled(foot, 0.15, along));
        rw_quat_store(body->rotation, q);
        body = xpbd_rig_body(rig, upper, 0.5, rw_vec3_make(0.00375, 0.00375, 5e-05),
                             rw_vec3_add_scaled(ball, -0.15, along));
        rw_quat_store(body->rotation, q);
        snprintf(name, sizeof name, "foot%d", k);
        xpbd_rig_joint(rig, name, RW_JOINT_REVOLUTE, "", lower, foot,
                       rw_quat_between(rw_vec3_make(0, 0, 1), y));
        snprintf(name, sizeof name, "leg%d", k);
        rw_joint_desc* leg = xpbd_rig_joint(rig, name, RW_JOINT_PRISMATIC, lower, upper, foot, q);
        snprintf(name, sizeof name, "ball%d", k);
        xpbd_rig_joint(rig, name, RW_JOINT_SPHERICAL, upper, "platform", ball, rw_quat_identity());
        if (stiffness == NULL) {
            leg->motor.mode = RW_MOTOR_POSITION;
            leg->motor.target_count = 1;
            leg->motor.stiffness = 1e6;
            leg->motor.damping = 1e3;
            continue;
        }
        rw_force_desc* spring = &rig->forces[rig->scene.force_count++];
        rw_scene_init_force(spring);
        snprintf(spring->name, sizeof spring->name, "spring%d", k);
        spring->kind = RW_FORCE_SPRING_DAMPER;
        rw_vec3_store(spring->spring_damper.a.position, foot);
        snprintf(spring->spring_damper.b.body, sizeof spring->spring_damper.b.body, "%s", upper);
        spring->spring_damper.b.position[2] = 0.15;
        spring->spring_damper.stiffness = stiffness[k];
        spring->spring_damper.rest_length = rest;
        spring->spring_damper.has_rest_length = true;
    }
}

static xpbd_rig* make_3rps(double h, const void* parameters) {
    xpbd_rig* rig = xpbd_rig_open(h, 3);
    build_3rps(rig, parameters);
    xpbd_rig_start(rig);
    return rig;
}

static void read_platform(xpbd_rig* rig, double* values) {
    double q[4];
    rw_vec3_store(values, xpbd_rig_vector(rig, "body/platform/position"));
    xpbd_rig_read(rig, "body/platform/rotation", q);
    memcpy(values + 3, q, 3 * sizeof *q);
}

static void passive_3rps_robot_follows_its_reference_at_first_order(void** state) {
    (void)state;
    static const double stiffness[3] = {2000, 2200, 1800};
    static const double expected[6] = {2.3033077662123127e-06, -9.530565955227873e-07,
                                       0.523911678686249,      0.9999937682354718,
                                       -0.003462660036217375,  -0.0006880957021275131};
    extrapolation all = run_twice(make_3rps, read_platform, stiffness, 2e-4, 0.1, 6);
    check(&all, expected, 6, 3e-5, "A18");
    // The identities of the mechanism hold whatever the step: p_y = -r u_y, p_x = r/2 (u_x - v_y).
    xpbd_rig* rig = make_3rps(2e-3, stiffness);
    xpbd_rig_run_for(rig, 10);
    double q[4];
    xpbd_rig_read(rig, "body/platform/rotation", q);
    rw_mat3 r = rw_quat_to_mat3(rw_quat_load(q));
    rw_vec3 p = xpbd_rig_vector(rig, "body/platform/position");
    rw_assert_near(r.m[1][0], r.m[0][1], 1e-9);
    rw_assert_near(p.y, -0.2 * r.m[1][0], 1e-9);
    rw_assert_near(p.x, 0.1 * (r.m[0][0] - r.m[1][1]), 1e-9);
    xpbd_rig_close(rig);
}

static void driven_3rps_robot_shares_the_weight_over_its_legs(void** state) {
    (void)state;
    // Inverse statics: level, at rest, each leg's motor carries along the leg what gravity puts on
    // it; the vertical sum of all foot forces is the weight.
    xpbd_rig* rig = xpbd_rig_open(1e-3, 3);
    build_3rps(rig, NULL);
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 10);
    double effort[3], weight = 0;
    for (int k = 0; k < 3; k++) {
        char signal[40];
        snprintf(signal, sizeof signal, "joint/leg%d/effort", k);
        effort[k] = xpbd_rig_scalar(rig, signal);
        snprintf(signal, sizeof signal, "joint/foot%d/reaction_force", k);
        weight += xpbd_rig_vector(rig, signal).z;
    }
    rw_assert_near(weight, 9.81 * 7.5, 1e-6);
    rw_assert_near(effort[1], effort[0], 1e-6);
    rw_assert_near(effort[2], effort[0], 1e-6);
    // Moment about the foot of one leg with its third of the platform: the ball carries the
    // platform's third W/3 and a horizontal force H so that the leg does not fall; along the leg
    // the motor carries what the upper part and the ball press.
    double third = 9.81, s = 0.5 / 0.5099019513592785, c = 0.1 / 0.5099019513592785;
    double length = 0.5099019513592785;
    // About the foot, inwards: vertical arms are 0.1 (ball), 0.15 c, 0.1 - 0.15 c; H acts at 0.5.
    double h = (third * 0.1 + 9.81 * 1 * 0.15 * c + 9.81 * 0.5 * (0.1 - 0.15 * c)) / 0.5;
    double along = third * s + 9.81 * 0.5 * s + h * c;
    (void)length;
    rw_assert_near(effort[0], along, 1e-4 * along);
    xpbd_rig_close(rig);
}

// ---- A19: one body on each joint ----------------------------------------------------------------

static void compound_pendulum_has_its_pivot_force(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-5, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    xpbd_rig_body(rig, "rod", 2, rw_vec3_make(1e-4, 1.0 / 6, 1.0 / 6), rw_vec3_make(0.5, 0, 0));
    xpbd_rig_joint(rig, "pin", RW_JOINT_REVOLUTE, "", "rod", rw_vec3_zero(),
                   xpbd_rig_z_to(0, 1, 0));
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 1);
    rw_assert_near(xpbd_rig_vector(rig, "joint/pin/reaction_force").z, 4.905, 1e-5);
    double fastest = 0, force = 0;
    for (int i = 0; i < 600; i++) {
        xpbd_rig_run(rig, 100);
        fastest = fmax(fastest, fabs(xpbd_rig_scalar(rig, "joint/pin/rate")));
        force = fmax(force, rw_vec3_norm(xpbd_rig_vector(rig, "joint/pin/reaction_force")));
    }
    rw_assert_near(fastest, 5.424942396007538, 1e-3);
    rw_assert_near(force, 49.05, 1e-2);
    xpbd_rig_close(rig);
}

static void sliders_fall_along_their_inclines(void** state) {
    (void)state;
    const double g = 9.81, h = 1e-3;
    rw_vec3 down = {0.8660254037844387, 0, -0.5}, normal = {0.5, 0, 0.8660254037844387};
    for (int type = 0; type < 3; type++) {
        static const rw_joint_type types[3] = {RW_JOINT_PRISMATIC, RW_JOINT_CYLINDRICAL,
                                               RW_JOINT_PLANAR};
        xpbd_rig* rig = xpbd_rig_open(h, 2);
        xpbd_rig_gravity(rig, 0, 0, -g);
        rw_body_desc* body =
            xpbd_rig_body(rig, "block", 1.5, rw_vec3_make(0.02, 0.02, 0.02), rw_vec3_make(0, 0, 1));
        rw_vec3 axis = type == 2 ? normal : down;
        if (type > 0) {
            rw_vec3_store(body->angular_velocity, rw_vec3_scale(axis, 7));
        }
        xpbd_rig_joint(rig, "track", types[type], "", "block", rw_vec3_make(0, 0, 1),
                       xpbd_rig_z_to(axis.x, axis.y, axis.z));
        xpbd_rig_start(rig);
        xpbd_rig_run_for(rig, 1);
        rw_vec3 moved =
            rw_vec3_sub(xpbd_rig_vector(rig, "body/block/position"), rw_vec3_make(0, 0, 1));
        // Backward Euler: g sin 30 (t^2 + h t)/2.
        double travel = 0.25 * g * (1 + h), values[3];
        rw_assert_near(rw_vec3_dot(moved, down), travel, 1e-9);
        xpbd_rig_read(rig, "joint/track/coordinate", values);
        if (type < 2) {
            rw_assert_near(values[0], travel, 1e-9);
        }
        if (type > 0) {
            // The Cayley map falls behind by (h w)^2/12 of the angle; turns are counted.
            rw_assert_near(values[type], 7, 1e-4);
        }
        rw_vec3 force = xpbd_rig_vector(rig, "joint/track/reaction_force");
        rw_assert_near(rw_vec3_dot(force, normal), 1.5 * g * 0.8660254037844386, 1e-6);
        xpbd_rig_close(rig);
    }
}

static void fixed_joint_carries_weight_and_moment(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 1);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    xpbd_rig_body(rig, "load", 1, rw_vec3_make(0.01, 0.01, 0.01), rw_vec3_make(0.7, 0, 0));
    xpbd_rig_joint(rig, "weld", RW_JOINT_FIXED, "", "load", rw_vec3_zero(), rw_quat_identity());
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 100);
    rw_vec3 force = xpbd_rig_vector(rig, "joint/weld/reaction_force");
    rw_vec3 torque = xpbd_rig_vector(rig, "joint/weld/reaction_torque");
    rw_assert_near(force.z, 9.81, 1e-9);
    rw_assert_near(torque.y, -6.867, 1e-9);
    rw_assert_near(xpbd_rig_vector(rig, "body/load/position").z, 0, 1e-13);
    xpbd_rig_close(rig);
}

// ---- Loads, limits, motors, couplings -----------------------------------------------------------

static void light_chain_carries_a_thousandfold_load_with_one_iteration(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 1);
    xpbd_rig_gravity(rig, 2, 0, -9.81);
    char last[16] = "";
    for (int k = 0; k < 10; k++) {
        char name[16], joint[16];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(joint, sizeof joint, "j%d", k);
        xpbd_rig_body(rig, name, 0.1, rw_vec3_make(1e-4, 1e-4, 1e-5),
                      rw_vec3_make(0, 0, -0.1 * k - 0.05));
        xpbd_rig_joint(rig, joint, RW_JOINT_SPHERICAL, last, name, rw_vec3_make(0, 0, -0.1 * k),
                       rw_quat_identity());
        memcpy(last, name, sizeof last);
    }
    xpbd_rig_body(rig, "load", 100, rw_vec3_make(1, 1, 1), rw_vec3_make(0, 0, -1.2));
    xpbd_rig_joint(rig, "hook", RW_JOINT_SPHERICAL, last, "load", rw_vec3_make(0, 0, -1),
                   rw_quat_identity());
    xpbd_rig_start(rig);
    double worst = 0;
    for (int i = 0; i < 3000; i++) {
        xpbd_rig_run(rig, 1);
        for (int k = 0; k <= 10; k++) {
            char signal[40];
            snprintf(signal, sizeof signal, k < 10 ? "joint/j%d/violation" : "joint/hook/violation",
                     k);
            worst = fmax(worst, xpbd_rig_scalar(rig, signal));
        }
    }
    print_message("10 links of 0.1 kg under 100 kg: gaps up to %.1e m\n", worst);
    assert_true(worst < 1e-3);
    xpbd_rig_close(rig);
}

// A bar of 1 kg and 1 m on a revolute joint about y at its end, level.
static rw_joint_desc* add_bar(xpbd_rig* rig) {
    xpbd_rig_body(rig, "bar", 1, rw_vec3_make(1e-3, 1.0 / 12, 1.0 / 12), rw_vec3_make(0.5, 0, 0));
    return xpbd_rig_joint(rig, "pivot", RW_JOINT_REVOLUTE, "", "bar", rw_vec3_zero(),
                          xpbd_rig_z_to(0, 1, 0));
}

static void revolute_limit_stops_the_bar_and_carries_it(void** state) {
    (void)state;
    // Turning down is positive about +y. The limit lies 2.5 turns on: angles are counted.
    static const double limits[] = {0.4, 5 * M_PI};
    for (int k = 0; k < 2; k++) {
        xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
        if (k == 0) {
            xpbd_rig_gravity(rig, 0, 0, -9.81);
        }
        rw_joint_desc* pivot = add_bar(rig);
        pivot->has_upper_limit = true;
        pivot->upper_limit = limits[k];
        if (k == 1) {
            rig->bodies[0].angular_velocity[1] = 9;
            rw_vec3_store(rig->bodies[0].linear_velocity, rw_vec3_make(0, 0, -4.5));
        }
        xpbd_rig_start(rig);
        double most = 0;
        for (int i = 0; i < 3000; i++) {
            xpbd_rig_run(rig, 1);
            most = fmax(most, xpbd_rig_scalar(rig, "joint/pivot/coordinate"));
        }
        rw_assert_near(most, limits[k], 1e-5);
        if (k == 0) {
            rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/coordinate"), 0.4, 1e-9);
            // The stop's moment about the axis holds the weight.
            rw_vec3 torque = xpbd_rig_vector(rig, "joint/pivot/reaction_torque");
            rw_assert_near(torque.y, -9.81 * 0.5 * cos(0.4), 1e-6);
        }
        xpbd_rig_close(rig);
    }
}

static void ball_joint_keeps_to_its_swing_and_twist(void** state) {
    (void)state;
    for (int twist = 0; twist < 2; twist++) {
        xpbd_rig* rig = xpbd_rig_open(1e-3, 3);
        rw_body_desc* body =
            xpbd_rig_body(rig, "body", 1, rw_vec3_make(0.1, 0.1, 0.1), rw_vec3_zero());
        rw_vec3_store(body->angular_velocity,
                      twist ? rw_vec3_make(0, 0, 3) : rw_vec3_make(3, 1, 0));
        rw_joint_desc* ball = xpbd_rig_joint(rig, "ball", RW_JOINT_SPHERICAL, "", "body",
                                             rw_vec3_zero(), rw_quat_identity());
        ball->has_swing_limit = ball->has_twist_lower_limit = ball->has_twist_upper_limit = true;
        ball->swing_limit = 0.6;
        ball->twist_lower_limit = -0.2;
        ball->twist_upper_limit = 0.7;
        xpbd_rig_start(rig);
        double most = 0;
        for (int i = 0; i < 400; i++) {
            double q[4];
            xpbd_rig_run(rig, 1);
            xpbd_rig_read(rig, "body/body/rotation", q);
            most =
                fmax(most, twist ? 2 * atan2(q[3], q[0]) : acos(rw_quat_axis_z(rw_quat_load(q)).z));
        }
        rw_assert_near(most, twist ? 0.7 : 0.6, 1e-5);
        xpbd_rig_close(rig);
    }
}

static void motors_reach_their_targets_within_their_effort(void** state) {
    (void)state;
    // POSITION with gravity: stiffness (target - q) = -torque of the weight.
    xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    rw_joint_desc* pivot = add_bar(rig);
    pivot->motor.mode = RW_MOTOR_POSITION;
    pivot->motor.target[0] = -0.5;
    pivot->motor.target_count = 1;
    pivot->motor.stiffness = 200;
    pivot->motor.damping = 20;
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 5);
    double q = xpbd_rig_scalar(rig, "joint/pivot/coordinate");
    double effort = xpbd_rig_scalar(rig, "joint/pivot/effort");
    rw_assert_near(effort, 200 * (-0.5 - q), 1e-6);
    rw_assert_near(effort, -9.81 * 0.5 * cos(q), 1e-6);
    xpbd_rig_close(rig);

    // VELOCITY: damping (target - rate); EFFORT: as it is; both cut at 2 N m. I = 1/3.
    static const struct {
        rw_motor_mode mode;
        double target, damping, expected;
    } cases[] = {{RW_MOTOR_EFFORT, 0.8, 0, 0.8},
                 {RW_MOTOR_EFFORT, -5, 0, -2},
                 {RW_MOTOR_VELOCITY, 3, 0.5, 1.5},
                 {RW_MOTOR_VELOCITY, 30, 0.5, 2}};
    for (size_t k = 0; k < RW_COUNT_OF(cases); k++) {
        rig = xpbd_rig_open(1e-4, 2);
        pivot = add_bar(rig);
        pivot->motor.mode = cases[k].mode;
        pivot->motor.target[0] = cases[k].target;
        pivot->motor.target_count = 1;
        pivot->motor.damping = cases[k].damping;
        pivot->motor.max_effort = 2;
        pivot->motor.has_max_effort = true;
        xpbd_rig_start(rig);
        xpbd_rig_run(rig, 1);
        double rate = xpbd_rig_scalar(rig, "joint/pivot/rate");
        rw_assert_near(rate, cases[k].expected * 3 * 1e-4, 2e-7);
        rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/effort"), cases[k].expected, 1e-3);
        xpbd_rig_close(rig);
    }
}

static void coupled_joints_turn_in_their_ratio_and_share_the_load(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
    xpbd_rig_body(rig, "a", 1, rw_vec3_make(0.1, 0.1, 0.2), rw_vec3_zero());
    xpbd_rig_body(rig, "b", 1, rw_vec3_make(0.1, 0.1, 0.05), rw_vec3_make(1, 0, 0));
    rw_joint_desc* ja =
        xpbd_rig_joint(rig, "ja", RW_JOINT_REVOLUTE, "", "a", rw_vec3_zero(), rw_quat_identity());
    ja->motor.mode = RW_MOTOR_EFFORT;
    ja->motor.target[0] = 0.7;
    ja->motor.target_count = 1;
    xpbd_rig_joint(rig, "jb", RW_JOINT_REVOLUTE, "", "b", rw_vec3_make(1, 0, 0),
                   rw_quat_identity());
    rw_coupling_desc* gear = &rig->couplings[rig->scene.coupling_count++];
    rw_scene_init_coupling(gear);
    XPBD_RIG_NAME(gear, "gear");
    snprintf(gear->joint_a, sizeof gear->joint_a, "jb");
    snprintf(gear->joint_b, sizeof gear->joint_b, "ja");
    gear->ratio = -3;
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 3);
    double inertia = 0.2 + 9 * 0.05, angle = 0.5 * 0.7 / inertia * 9;
    double qa = xpbd_rig_scalar(rig, "joint/ja/coordinate");
    double qb = xpbd_rig_scalar(rig, "joint/jb/coordinate");
    assert_true(angle > M_PI);
    rw_assert_near(qa, angle, 2e-3); // first order: a h t/2
    rw_assert_near(qb, -3 * qa, 1e-9);
    rw_assert_near(xpbd_rig_vector(rig, "joint/jb/reaction_torque").z, -3 * 0.7 / inertia * 0.05,
                   1e-5); // the Cayley map: (h w)^2/12 of the rate
    rw_assert_near(xpbd_rig_vector(rig, "joint/ja/reaction_torque").z, 0.7 / inertia * 0.2, 1e-5);
    xpbd_rig_close(rig);
}

static void the_world_may_be_the_child_of_a_joint(void** state) {
    (void)state;
    // The same pendulum both ways round: the same motion, coordinates of opposite sign.
    double angle[2];
    rw_vec3 place[2];
    for (int turned = 0; turned < 2; turned++) {
        xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        xpbd_rig_body(rig, "bar", 1, rw_vec3_make(1e-3, 1.0 / 12, 1.0 / 12),
                      rw_vec3_make(0.5, 0, 0));
        rig->bodies[0].has_center_of_mass = true;
        rig->bodies[0].center_of_mass[0] = 0.1;
        xpbd_rig_joint(rig, "pivot", RW_JOINT_REVOLUTE, turned ? "bar" : "", turned ? "" : "bar",
                       rw_vec3_zero(), xpbd_rig_z_to(0, 1, 0));
        xpbd_rig_start(rig);
        xpbd_rig_run(rig, 300);
        angle[turned] = xpbd_rig_scalar(rig, "joint/pivot/coordinate");
        place[turned] = xpbd_rig_vector(rig, "body/bar/position");
        const double wanted[1] = {0.3};
        rw_joint_set set = {.coordinate = {wanted, 1}};
        rw_status status = rw_world_set_joint(rig->world, 0, &set, &rig->error);
        assert_int_equal(status, turned ? RW_STATUS_FAILED_PRECONDITION : RW_STATUS_OK);
        xpbd_rig_close(rig);
    }
    assert_true(fabs(angle[0]) > 0.2);
    rw_assert_near(angle[1], -angle[0], 1e-12);
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(place[1], place[0])), 0, 1e-12);
}

static void setting_a_joint_moves_what_hangs_on_it(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
    add_bar(rig);
    xpbd_rig_body(rig, "second", 1, rw_vec3_make(1e-3, 1.0 / 12, 1.0 / 12),
                  rw_vec3_make(1.5, 0, 0));
    xpbd_rig_joint(rig, "elbow", RW_JOINT_REVOLUTE, "bar", "second", rw_vec3_make(1, 0, 0),
                   xpbd_rig_z_to(0, 1, 0));
    xpbd_rig_start(rig);
    const double coordinate[1] = {M_PI / 2 + 2 * M_PI}, rate[1] = {3};
    rw_joint_set set = {.coordinate = {coordinate, 1}, .rate = {rate, 1}};
    if (rw_world_set_joint(rig->world, 0, &set, &rig->error) != RW_STATUS_OK) {
        fail_msg("%s", rig->error.text);
    }
    // A quarter turn down, with one turn counted; the second bar hangs on, and turns along.
    rw_vec3 tip = xpbd_rig_vector(rig, "body/second/position");
    rw_assert_near(tip.x, 0, 1e-12);
    rw_assert_near(tip.z, -1.5, 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/coordinate"), coordinate[0], 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/rate"), 3, 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/elbow/coordinate"), 0, 1e-12);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/elbow/rate"), 0, 1e-12);
    rw_vec3 velocity = xpbd_rig_vector(rig, "body/second/linear_velocity");
    rw_assert_near(velocity.x, -4.5, 1e-12);
    xpbd_rig_run(rig, 10);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/coordinate"), coordinate[0] + 0.03, 1e-4);
    xpbd_rig_close(rig);
}

static void compliant_joint_gives_way_by_its_compliance(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-2, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    xpbd_rig_body(rig, "load", 2, rw_vec3_make(0.1, 0.1, 0.1), rw_vec3_zero());
    rw_joint_desc* weld =
        xpbd_rig_joint(rig, "weld", RW_JOINT_FIXED, "", "load", rw_vec3_zero(), rw_quat_identity());
    weld->compliance = 1e-3;
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 4000);
    rw_assert_near(xpbd_rig_vector(rig, "body/load/position").z, -2 * 9.81 * 1e-3, 1e-8);
    xpbd_rig_close(rig);
}

static void joint_damping_brakes_at_its_rate(void** state) {
    (void)state;
    // I w' = -d w: backward Euler gives (1 + h d/I)^-n.
    xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
    rw_joint_desc* pivot = add_bar(rig);
    pivot->damping = 0.2;
    rig->bodies[0].angular_velocity[1] = 2;
    rw_vec3_store(rig->bodies[0].linear_velocity, rw_vec3_make(0, 0, -1));
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 1);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/pivot/rate"), 2 * pow(1 + 0.6e-3, -1000), 2e-3);
    xpbd_rig_close(rig);
}

// ---- Long runs ----------------------------------------------------------------------------------

static void triple_pendulum_runs_a_hundred_seconds(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(2e-3, 1);
    xpbd_rig_gravity(rig, 0, -9.81, 0);
    char last[16] = "";
    rw_vec3 top = rw_vec3_zero();
    rw_vec3 along = rw_vec3_make(sin(80 * DEG), -cos(80 * DEG), 0);
    for (int k = 0; k < 3; k++) {
        char name[16], joint[16];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(joint, sizeof joint, "j%d", k);
        rw_body_desc* body = xpbd_rig_body(rig, name, 1, rw_vec3_make(1.0 / 12, 1e-3, 1.0 / 12),
                                           rw_vec3_add_scaled(top, 0.5, along));
        rw_quat_store(body->rotation, rw_so3_exp(rw_vec3_make(0, 0, 80 * DEG)));
        xpbd_rig_joint(rig, joint, RW_JOINT_REVOLUTE, last, name, top, rw_quat_identity());
        top = rw_vec3_add(top, along);
        memcpy(last, name, sizeof last);
    }
    xpbd_rig_start(rig);
    double energy = xpbd_rig_energy(rig), gap = 0;
    for (int i = 0; i < 500; i++) {
        xpbd_rig_run(rig, 100);
        for (int k = 0; k < 3; k++) {
            char signal[40];
            double violation[2];
            snprintf(signal, sizeof signal, "joint/j%d/violation", k);
            xpbd_rig_read(rig, signal, violation);
            gap = fmax(gap, fmax(violation[0], violation[1]));
        }
        assert_true(xpbd_rig_energy(rig) < energy + 0.05);
    }
    print_message("triple pendulum, 100 s at 2 ms, one iteration: violation up to %.1e\n", gap);
    assert_true(gap < 1e-3);
    xpbd_rig_close(rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_pendulum_follows_the_elliptic_functions_at_first_order),
        cmocka_unit_test(double_and_triple_pendulums_follow_their_references_at_first_order),
        cmocka_unit_test(heavy_top_precesses_steadily),
        cmocka_unit_test(passive_3rps_robot_follows_its_reference_at_first_order),
        cmocka_unit_test(driven_3rps_robot_shares_the_weight_over_its_legs),
        cmocka_unit_test(compound_pendulum_has_its_pivot_force),
        cmocka_unit_test(sliders_fall_along_their_inclines),
        cmocka_unit_test(fixed_joint_carries_weight_and_moment),
        cmocka_unit_test(light_chain_carries_a_thousandfold_load_with_one_iteration),
        cmocka_unit_test(revolute_limit_stops_the_bar_and_carries_it),
        cmocka_unit_test(ball_joint_keeps_to_its_swing_and_twist),
        cmocka_unit_test(motors_reach_their_targets_within_their_effort),
        cmocka_unit_test(coupled_joints_turn_in_their_ratio_and_share_the_load),
        cmocka_unit_test(the_world_may_be_the_child_of_a_joint),
        cmocka_unit_test(setting_a_joint_moves_what_hangs_on_it),
        cmocka_unit_test(compliant_joint_gives_way_by_its_compliance),
        cmocka_unit_test(joint_damping_brakes_at_its_rate),
        cmocka_unit_test(triple_pendulum_runs_a_hundred_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
