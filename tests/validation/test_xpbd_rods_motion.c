// Xpbd rods in motion: frequencies and whirling against closed forms, and what backward Euler owes:
// momentum, energy, stability of stiff rods under tension at any step, moving clamps, rods welded
// through bodies. Sources are named at each test.
#include "tests/support/xpbd_rig.h"

// ---- Natural frequencies (Blevins; case B11) ----------------------------------------------------

// Period from upward zero crossings of a record, linear between samples.
static double period_of(const double* record, int count, double h) {
    double first = 0, last = 0;
    int crossings = 0;
    for (int i = 1; i < count; i++) {
        if (record[i - 1] < 0 && record[i] >= 0) {
            double t = h * (i - 1 + record[i - 1] / (record[i - 1] - record[i]));
            first = crossings == 0 ? t : first;
            last = t;
            crossings++;
        }
    }
    assert_true(crossings > 2);
    return (last - first) / (crossings - 1);
}

// A clamped rubber rod of case B11 with a small start velocity in the shape of s^2 along `direction`
// (or as twist about the axis): the lowest frequency of what the tip does [rad/s].
typedef enum vibration { BENDING, AXIAL, TORSION } vibration;

static double lowest_frequency(vibration kind, uint32_t order, uint32_t elements, double h,
                               double time_s, double* decay) {
    enum { MOST = 400 };
    static double linear[3 * MOST], angular[3 * MOST], record[20000];
    xpbd_rig* rig = xpbd_rig_open(h, 1);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", order, elements, rw_vec3_zero(),
                                    rw_vec3_make(1, 0, 0), 0.05, 1000, 5e6, 0.3);
    rod->shear_factor = 6 * 1.3 / (7 + 6 * 0.3);
    int nodes = (int)(elements * (order == 0 ? 1 : order)) + 1;
    memset(linear, 0, sizeof linear);
    memset(angular, 0, sizeof angular);
    for (int i = 0; i < nodes; i++) {
        double s = i / (nodes - 1.0);
        if (kind == BENDING) {
            // The first mode of the clamped-free Euler-Bernoulli beam.
            const double b = 1.8751040687119611, c = (cosh(b) + cos(b)) / (sinh(b) + sin(b));
            linear[3 * i + 1] = 1e-3 * (cosh(b * s) - cos(b * s) - c * (sinh(b * s) - sin(b * s)));
        } else if (kind == AXIAL) {
            linear[3 * i] = 1e-3 * sin(M_PI / 2 * s);
        } else {
            angular[3 * i + 2] = 1e-2 * sin(M_PI / 2 * s);
        }
    }
    rod->linear_velocity = (rw_doubles){linear, 3 * (size_t)nodes};
    rod->angular_velocity = (rw_doubles){angular, 3 * (size_t)nodes};
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_start(rig);
    int count = (int)(time_s / h);
    double q0[4], q[4];
    xpbd_rig_read(rig, "rod/rod/at/1/rotation", q0);
    for (int i = 0; i < count; i++) {
        xpbd_rig_run(rig, 1);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        xpbd_rig_read(rig, "rod/rod/at/1/rotation", q);
        rw_vec3 turn = rw_so3_boxminus(rw_quat_load(q), rw_quat_load(q0));
        record[i] = kind == BENDING ? tip.y : kind == AXIAL ? tip.x - 1 : turn.z;
    }
    xpbd_rig_close(rig);
    // Largest size in the second period over that in the first.
    double period = period_of(record, count, h), largest[2] = {0};
    for (int i = 0; i < (int)(2 * period / h); i++) {
        double* one = &largest[i >= (int)(period / h)];
        *one = fmax(*one, fabs(record[i]));
    }
    *decay = largest[1] / largest[0];
    return 2 * M_PI / period;
}

static void natural_frequencies_are_timoshenkos_with_the_damping_of_backward_euler(void** state) {
    (void)state;
    // Case B11, the rubber rod.
    static const double expected[] = {6.1803475822341225, 111.07207345395915, 68.88397575567444};
    static const char* const names[] = {"bending", "axial", "torsion"};
    for (int kind = BENDING; kind <= TORSION; kind++) {
        double period = 2 * M_PI / expected[kind];
        double omega[2], decay;
        for (int fine = 0; fine < 2; fine++) {
            double h = period / (fine ? 1600 : 800);
            omega[fine] = lowest_frequency((vibration)kind, 2, 12, h, 3.6 * period, &decay);
        }
        print_message("B11 %s: %.5f, %.5f rad/s at 800 and 1600 steps per period; %.5f\n",
                      names[kind], omega[0], omega[1], expected[kind]);
        // Backward Euler shifts a frequency by (h omega)^2 / 3 relative.
        rw_assert_near(omega[1], expected[kind], 2e-5 * expected[kind]);
        // An oscillation at omega shrinks by exp(-pi h omega) per period: 1 - 2 pi^2/1600.
        print_message("  amplitude after a period: %.5f, backward Euler's %.5f\n", decay,
                      exp(-2 * M_PI * M_PI / 1600));
        rw_assert_near(decay, exp(-2 * M_PI * M_PI / 1600), 1e-3);
    }
}

// ---- A whirling chain (Kolodner 1955; case B17) -------------------------------------------------

static void hanging_rod_whirls_in_the_shape_of_a_heavy_string(void** state) {
    (void)state;
    // The string is created close to the first whirling shape at 1.2 times the critical speed and
    // held by a pivot; its tip keeps the radius and depth of the nonlinear solution.
    enum { NODES = 61 };
    static double positions[3 * NODES], velocity[3 * NODES];
    const double omega = 4.519280866105012, radius = 0.7286749311207523, depth = 0.6766056875497914;
    // The shape by shooting: in the rotating frame, tension T from the free end:
    // (T x')' = -w omega^2 x, (T z')' = -w g with x'^2 + z'^2 = 1: integrate from the tip.
    double x = radius, z = -depth, fx = 0, fz = 0; // force of the part below, per mass per length
    const int fine = 20000;
    rw_vec3 shape[NODES];
    for (int i = 0; i <= fine; i++) {
        if (i % (fine / (NODES - 1)) == 0) {
            shape[NODES - 1 - i / (fine / (NODES - 1))] = rw_vec3_make(x, 0, z);
        }
        double ds = 1.0 / fine;
        fx += omega * omega * x * ds;
        fz += -9.81 * ds;
        double size = hypot(fx, fz);
        x -= fx / size * ds;
        z -= fz / size * ds;
    }
    rw_assert_near(shape[0].x, 0, 1e-3);
    rw_assert_near(shape[0].z, 0, 1e-3);
    for (int i = 0; i < NODES; i++) {
        rw_vec3 p = rw_vec3_sub(shape[i], shape[0]);
        rw_vec3_store(&positions[3 * i], p);
        rw_vec3_store(&velocity[3 * i], rw_vec3_make(0, omega * p.x, 0));
    }
    xpbd_rig* rig = xpbd_rig_open(2e-4, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    rw_rod_desc* rod =
        xpbd_rig_rod(rig, "rod", 2, 0, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.002, 1000, 1e6, 0);
    rod->geometry = RW_ROD_POLYLINE;
    rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
    rod->rest = RW_REST_STRAIGHT;
    rod->has_rest_length = true;
    rod->rest_length = 1;
    rod->has_stiffness = true;
    rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 1e-7;
    rod->stiffness.ea = rod->stiffness.ga1 = rod->stiffness.ga2 = 1e4;
    rod->linear_velocity = (rw_doubles){velocity, 3 * NODES};
    xpbd_rig_attach(rig, "pivot", RW_ATTACH_PIN, "rod", 0, "");
    xpbd_rig_start(rig);
    double turned = 0, last = 0;
    for (int i = 0; i < 7000; i++) { // one turn
        xpbd_rig_run(rig, 1);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        double angle = atan2(tip.y, tip.x);
        double step = angle - last;
        turned += step < -M_PI ? step + 2 * M_PI : step;
        last = angle;
    }
    rw_vec3 tip = xpbd_rig_tip(rig, 0);
    print_message("whirling: tip at radius %.4f, depth %.4f; %.4f rad/s\n", hypot(tip.x, tip.y),
                  -tip.z, turned / 1.4);
    // Backward Euler takes h omega^2 / 2 of the swing per second.
    rw_assert_near(hypot(tip.x, tip.y), radius, 0.01);
    rw_assert_near(-tip.z, depth, 0.01);
    rw_assert_near(turned / 1.4, omega, 0.01 * omega);
    xpbd_rig_close(rig);
}

// ---- Stiff rods under tension -------------------------------------------------------------------

// Steps and returns the largest distance of any node from the line y = 0.
static double widest(xpbd_rig* rig, int32_t steps) {
    double most = 0;
    for (int32_t i = 0; i < steps; i++) {
        xpbd_rig_run(rig, 1);
        for (int32_t n = 0; n < rw_world_model(rig->world)->rods.node_count; n++) {
            most = fmax(most, fabs(rw_world_state(rig->world)->node_position[3 * n + 1]));
        }
    }
    return most;
}

static void plucked_suture_is_stable_at_any_step(void** state) {
    (void)state;
    // 10 cm, radius 0.2 mm, E = 750 MPa, ends clamped, plucked by 5 mm (a triangle of speed).
    static const double steps[] = {1e-3, 2e-3, 4e-3};
    static const uint32_t orders[] = {0, 1, 2, 3};
    for (int o = 0; o < 4; o++) {
        for (int k = 0; k < 3; k++) {
            enum { NODES = 25 };
            static double positions[3 * NODES];
            for (int i = 0; i < NODES; i++) {
                double s = i / (NODES - 1.0);
                positions[3 * i] = 0.1 * s;
                positions[3 * i + 1] = 0.005 * (s < 0.5 ? 2 * s : 2 - 2 * s);
                positions[3 * i + 2] = 0;
            }
            xpbd_rig* rig = xpbd_rig_open(steps[k], 1);
            rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", orders[o], 0, rw_vec3_zero(),
                                            rw_vec3_make(1, 0, 0), 2e-4, 1100, 7.5e8, 0.4);
            rod->geometry = RW_ROD_POLYLINE;
            rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
            rod->rest = RW_REST_STRAIGHT;
            rod->has_rest_length = true;
            rod->rest_length = 0.1;
            rw_attachment_desc* left = xpbd_rig_attach(rig, "left", RW_ATTACH_CLAMP, "rod", 0, "");
            rw_attachment_desc* right =
                xpbd_rig_attach(rig, "right", RW_ATTACH_CLAMP, "rod", 1, "");
            rw_quat axes = xpbd_rig_z_to(1, 0, 0);
            left->has_rotation = right->has_rotation = true;
            rw_quat_store(left->rotation, axes);
            rw_quat_store(right->rotation, axes);
            xpbd_rig_start(rig);
            double energy = xpbd_rig_energy(rig);
            double most = widest(rig, 20);
            assert_true(most < 0.0075);
            xpbd_rig_run(rig, 1000);
            assert_true(widest(rig, 100) < 0.001);
            assert_true(xpbd_rig_energy(rig) < energy);
            xpbd_rig_close(rig);
        }
    }
}

static void steel_cable_under_a_load_in_side_wind_is_stable(void** state) {
    (void)state;
    // 2 mm of radius, 2 m long, 100 kg at its end, wind of 20 m/s across; the load hangs straight in
    // the end: its tip goes aside by less than the wind's share of the tension.
    static const double steps[] = {1e-3, 2e-3, 4e-3};
    for (uint32_t order = 0; order <= 3; order++) {
        for (int k = 0; k < 3; k++) {
            xpbd_rig* rig = xpbd_rig_open(steps[k], 1);
            xpbd_rig_gravity(rig, 0, 0, -9.81);
            rig->scene.wind[1] = 20;
            rw_rod_desc* rod =
                xpbd_rig_rod(rig, "cable", order, order <= 1 ? 20 : 8, rw_vec3_zero(),
                             rw_vec3_make(0, 0, -2), 0.002, 7850, 2.1e11, 0.3);
            rod->quadratic_drag = 0.5 * 1.2 * 1.2 * 0.004;
            rod->damping = 1e-4;
            xpbd_rig_body(rig, "load", 100, rw_vec3_make(1, 1, 1), rw_vec3_make(0, 0, -2));
            xpbd_rig_attach(rig, "top", RW_ATTACH_CLAMP, "cable", 0, "");
            xpbd_rig_attach(rig, "bottom", RW_ATTACH_CLAMP, "cable", 1, "load");
            xpbd_rig_start(rig);
            assert_true(widest(rig, (int32_t)(2 / steps[k])) < 0.02);
            rw_vec3 load = xpbd_rig_vector(rig, "body/load/position");
            double sag = 981 * 2 / (2.1e11 * M_PI * 4e-6);
            rw_assert_near(load.z, -2 - sag, 2e-4);
            rw_vec3 force = xpbd_rig_vector(rig, "attachment/top/force");
            rw_assert_near(force.z, 981 + 9.81 * 7850 * M_PI * 4e-6 * 2, 25);
            xpbd_rig_close(rig);
        }
    }
}

// ---- Momentum and energy ------------------------------------------------------------------------

// A free bent rod that flies and turns: [0] linear and [1] angular momentum error relative to the
// start after one second; fails when the energy rises.
static void fly(uint32_t order, double h, uint32_t iterations, double error[2]) {
    xpbd_rig* rig = xpbd_rig_open(h, iterations);
    enum { NODES = 13 };
    static double positions[3 * NODES], velocity[3 * NODES];
    for (int i = 0; i < NODES; i++) {
        double s = i / (NODES - 1.0);
        rw_vec3_store(&positions[3 * i], rw_vec3_make(s, 0.3 * s * s, 0.1 * s * s * s));
        rw_vec3_store(&velocity[3 * i], rw_vec3_make(1, -2 * s, 3 * s - 1));
    }
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", order, 0, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                    0.02, 1000, 1e7, 0.3);
    rod->geometry = RW_ROD_POLYLINE;
    rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
    rod->rest = RW_REST_STRAIGHT;
    rod->linear_velocity = (rw_doubles){velocity, 3 * NODES};
    xpbd_rig_start(rig);
    double linear[2][3], angular[2][3];
    assert_int_equal(rw_world_get_momentum(rig->world, linear[0], angular[0], &rig->error), 0);
    double energy = xpbd_rig_energy(rig);
    for (int i = 0; i < (int)(1 / h + 0.5); i++) {
        xpbd_rig_run(rig, 1);
        double next = xpbd_rig_energy(rig);
        if (!(next <= energy * (1 + 1e-9))) {
            fail_msg("order %u, h %g, step %d: energy rises from %.12g to %.12g", order, h, i,
                     energy, next);
        }
        energy = next;
    }
    assert_int_equal(rw_world_get_momentum(rig->world, linear[1], angular[1], &rig->error), 0);
    for (int k = 0; k < 2; k++) {
        rw_vec3 start = rw_vec3_load(k == 0 ? linear[0] : angular[0]);
        rw_vec3 end = rw_vec3_load(k == 0 ? linear[1] : angular[1]);
        error[k] = rw_vec3_norm(rw_vec3_sub(end, start)) / rw_vec3_norm(start);
    }
    xpbd_rig_close(rig);
}

static void free_rod_keeps_linear_momentum_and_loses_angular_at_first_order(void** state) {
    (void)state;
    for (uint32_t order = 0; order <= 3; order++) {
        double error[3][2];
        static const double steps[3] = {4e-3, 2e-3, 1e-3};
        for (int k = 0; k < 3; k++) {
            fly(order, steps[k], 8, error[k]);
            // Positions carry rounding of 1e-16 / h into the velocities of every step.
            assert_true(error[k][0] < 1e-10);
        }
        print_message("order %u: angular momentum off by %.4f %.4f %.4f at 4, 2, 1 ms\n", order,
                      error[0][1], error[1][1], error[2][1]);
        double rate = log2(error[1][1] / error[2][1]);
        assert_true(rate > 0.7 && rate < 1.3);
    }
}

// ---- Frames -------------------------------------------------------------------------------------

// A cantilever with a side load, turned as a whole by `turn`: its tip, turned back.
static rw_vec3 turned_tip(rw_quat turn) {
    xpbd_rig* rig = xpbd_rig_open(2e-3, 2);
    rw_vec3 gravity = rw_quat_rotate(turn, rw_vec3_make(0, -9.81, 0));
    xpbd_rig_gravity(rig, gravity.x, gravity.y, gravity.z);
    rw_vec3 end = rw_quat_rotate(turn, rw_vec3_make(1, 0, 0));
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 2, 6, rw_vec3_zero(), end, 0.03, 1000, 5e6, 0.3);
    rod->section = RW_SECTION_RECTANGLE;
    rod->section_width = 0.02;
    rod->section_height = 0.05;
    rod->straight.has_normal = true;
    rw_vec3_store(rod->straight.normal, rw_quat_rotate(turn, rw_vec3_make(0, 0.6, 0.8)));
    xpbd_rig_body(rig, "weight", 0.2, rw_vec3_make(1e-3, 1e-3, 1e-3), end);
    rw_quat_store(rig->bodies[0].rotation, turn);
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_attach(rig, "load", RW_ATTACH_CLAMP, "rod", 1, "weight");
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 500);
    rw_vec3 tip = xpbd_rig_tip(rig, 0);
    xpbd_rig_close(rig);
    return rw_quat_inverse_rotate(turn, tip);
}

static void rotated_scene_gives_the_rotated_answer(void** state) {
    (void)state;
    rw_vec3 plain = turned_tip(rw_quat_identity());
    assert_true(fabs(plain.z) > 0.01); // a weak axis askew: it moves out of the plane
    rw_vec3 other = turned_tip(rw_so3_exp(rw_vec3_make(1.1, -0.7, 2.3)));
    rw_assert_near(other.x, plain.x, 1e-8);
    rw_assert_near(other.y, plain.y, 1e-8);
    rw_assert_near(other.z, plain.z, 1e-8);
}

// ---- Rods on bodies -----------------------------------------------------------------------------

static void welded_rods_carry_bending_and_twist_like_one(void** state) {
    (void)state;
    rw_vec3 tip[2];
    rw_vec3 twist[2];
    for (int split = 0; split < 2; split++) {
        xpbd_rig* rig = xpbd_rig_open(5e-3, 3);
        rw_vec3 a = rw_vec3_zero(), middle = rw_vec3_make(0.5, 0, 0), b = rw_vec3_make(1, 0, 0);
        rw_rod_desc* first = xpbd_rig_rod(rig, "first", 2, split ? 4 : 8, a, split ? middle : b,
                                          0.02, 1000, 5e6, 0.3);
        first->mass_damping = 5;
        const char* last = "first";
        if (split) {
            rw_rod_desc* second =
                xpbd_rig_rod(rig, "second", 2, 4, middle, b, 0.02, 1000, 5e6, 0.3);
            second->mass_damping = 5;
            xpbd_rig_body(rig, "weld", 1e-4, rw_vec3_make(1e-9, 1e-9, 1e-9), middle);
            xpbd_rig_attach(rig, "end", RW_ATTACH_CLAMP, "first", 1, "weld");
            xpbd_rig_attach(rig, "start", RW_ATTACH_CLAMP, "second", 0, "weld");
            last = "second";
        }
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "first", 0, "");
        xpbd_rig_load(rig, "load", last, 1, rw_vec3_make(0, 0.1, 0), rw_vec3_make(0.05, 0, 0));
        xpbd_rig_start(rig);
        double q0[4], q[4];
        const char* signal = split ? "rod/second/at/1/rotation" : "rod/first/at/1/rotation";
        xpbd_rig_read(rig, signal, q0);
        xpbd_rig_settle(rig, 1e-9, 6000);
        xpbd_rig_read(rig, signal, q);
        tip[split] = xpbd_rig_tip(rig, split);
        twist[split] = rw_so3_log(rw_quat_mul(rw_quat_load(q), rw_quat_conj(rw_quat_load(q0))));
        xpbd_rig_close(rig);
    }
    assert_true(twist[0].x > 0.05);
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(tip[1], tip[0])), 0, 1e-7);
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(twist[1], twist[0])), 0, 1e-7);
}

static void light_bodies_on_stiff_rods_are_stable(void** state) {
    (void)state;
    // Staggering would need 0.66 kg (numerics of rods on bodies): here 1 g, 1 kg, 100 kg.
    // One iteration loses energy to what is left of the cable's stretch, 10 do not gain any either.
    static const double masses[] = {1e-3, 1, 100};
    for (int k = 0; k < 6; k++) {
        uint32_t iterations = k < 3 ? 1 : 10;
        double mass = masses[k % 3], inertia = mass * 1e-4, most = 0;
        xpbd_rig* rig = xpbd_rig_open(1e-3, iterations);
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        xpbd_rig_rod(rig, "cable", 2, 8, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.002, 7850, 2.1e11,
                     0.3);
        xpbd_rig_body(rig, "link", mass, rw_vec3_make(inertia, inertia, inertia),
                      rw_vec3_make(1, 0, 0));
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "cable", 0, "");
        xpbd_rig_attach(rig, "link", RW_ATTACH_CLAMP, "cable", 1, "link");
        xpbd_rig_start(rig);
        double energy = xpbd_rig_energy(rig);
        for (int i = 0; i < 1000; i++) {
            xpbd_rig_run(rig, 1);
            double next = xpbd_rig_energy(rig);
            assert_true(iterations == 1 || next <= energy + 1e-9 * (1 + fabs(energy)));
            energy = next;
            most = fmax(most, rw_vec3_norm(xpbd_rig_vector(rig, "body/link/position")));
        }
        assert_true(energy < 0 || iterations == 1);
        assert_true(most < 1.02);
        // The node is where the body holds it.
        rw_vec3 gap = rw_vec3_sub(xpbd_rig_tip(rig, 0), xpbd_rig_vector(rig, "body/link/position"));
        rw_assert_near(rw_vec3_norm(gap), 0, 1e-12);
        xpbd_rig_close(rig);
    }
}

static void moving_clamp_drives_the_rod_and_tells_its_wrench(void** state) {
    (void)state;
    // A clamp turns one end of a straight rod by 1 rad about its axis and pulls the other by 1 mm:
    // torque GJ/L, tension EA/L.
    xpbd_rig* rig = xpbd_rig_open(5e-3, 2);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 3, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.02,
                                    1000, 5e6, 0.25);
    rod->mass_damping = 20;
    xpbd_rig_attach(rig, "left", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_attach(rig, "right", RW_ATTACH_CLAMP, "rod", 1, "");
    const double motion[6] = {1e-3, 0, 0, 1, 0, 0};
    xpbd_rig_ramp(rig, "attachment/right", 1, motion, 6);
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 1);
    xpbd_rig_settle(rig, 1e-11, 4000);
    const double area = M_PI * 4e-4, polar = M_PI * pow(0.02, 4) / 2, g = 5e6 / 2.5;
    rw_vec3 force = xpbd_rig_vector(rig, "attachment/right/force");
    rw_vec3 torque = xpbd_rig_vector(rig, "attachment/right/torque");
    rw_assert_near(force.x, 5e6 * area * 1e-3, 1e-6);
    rw_assert_near(fabs(torque.x), g * polar, 1e-6);
    // Action and reaction.
    rw_vec3 other = xpbd_rig_vector(rig, "attachment/left/force");
    rw_assert_near(other.x, -force.x, 1e-6);
    xpbd_rig_close(rig);
}

static void compliant_attachments_give_way_by_their_compliance(void** state) {
    (void)state;
    // A stiff rod on two compliant pins of the world, a weight on a compliant clamp in its middle.
    const double compliance = 1e-3, weight = 9.81 * 2;
    xpbd_rig* rig = xpbd_rig_open(5e-3, 3);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    rw_rod_desc* rod =
        xpbd_rig_rod(rig, "rod", 2, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.05, 1, 2e11, 0.3);
    rod->mass_damping = 10;
    xpbd_rig_body(rig, "weight", 2, rw_vec3_make(1e-2, 1e-2, 1e-2), rw_vec3_make(0.5, 0, 0));
    xpbd_rig_attach(rig, "left", RW_ATTACH_PIN, "rod", 0, "")->compliance = compliance;
    xpbd_rig_attach(rig, "right", RW_ATTACH_PIN, "rod", 1, "")->compliance = compliance;
    xpbd_rig_attach(rig, "hook", RW_ATTACH_CLAMP, "rod", 0.5, "weight")->compliance = compliance;
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 60);
    double half = 0.5 * (weight + 9.81 * M_PI * 0.0025);
    rw_assert_near(xpbd_rig_node(rig, 0, 0).z, -half * compliance, 1e-7);
    rw_assert_near(xpbd_rig_tip(rig, 0).z, -half * compliance, 1e-7);
    double middle = xpbd_rig_node(rig, 0, 4).z;
    rw_assert_near(xpbd_rig_vector(rig, "body/weight/position").z - middle, -weight * compliance,
                   1e-7);
    rw_assert_near(xpbd_rig_vector(rig, "attachment/hook/force").z, -weight, 1e-4);
    rw_assert_near(xpbd_rig_vector(rig, "attachment/left/force").z, half, 1e-4);
    xpbd_rig_close(rig);

    // Nearly rigid: the cantilever that carries a light body behaves like the rigid attachment.
    double depth[2];
    for (int soft = 0; soft < 2; soft++) {
        rig = xpbd_rig_open(2e-3, 2);
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        xpbd_rig_rod(rig, "rod", 2, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.02, 1000, 5e6, 0.3);
        xpbd_rig_body(rig, "link", 0.05, rw_vec3_make(1e-5, 1e-5, 1e-5), rw_vec3_make(1, 0, 0));
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "")->compliance = soft ? 1e-9 : 0;
        xpbd_rig_attach(rig, "hook", RW_ATTACH_CLAMP, "rod", 1, "link")->compliance =
            soft ? 1e-9 : 0;
        xpbd_rig_start(rig);
        xpbd_rig_run(rig, 300);
        depth[soft] = xpbd_rig_vector(rig, "body/link/position").z;
        xpbd_rig_close(rig);
    }
    assert_true(depth[0] < -0.05);
    rw_assert_near(depth[1], depth[0], 1e-5);
}

static void ring_closed_through_a_body_is_squeezed_like_a_ring(void** state) {
    (void)state;
    // A thin ring between two opposite forces P gives way by (pi/4 - 2/pi) P R^3/EI (Timoshenko,
    // Strength of Materials). Both ends are clamped to one light body, which a joint holds.
    const double radius = 0.5, wire = 0.004, young = 1e9, force = 1e-3;
    xpbd_rig* rig = xpbd_rig_open(5e-3, 3);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "ring", 3, 12, rw_vec3_zero(), rw_vec3_make(1, 0, 0), wire,
                                    20, young, 0.3);
    rod->geometry = RW_ROD_HELIX;
    rw_vec3_store(rod->helix.axis, rw_vec3_make(0, 0, 1));
    rod->helix.radius = radius;
    rod->helix.turns = 1;
    rod->mass_damping = 10;
    xpbd_rig_body(rig, "weld", 1e-3, rw_vec3_make(1e-7, 1e-7, 1e-7), rw_vec3_make(radius, 0, 0));
    xpbd_rig_joint(rig, "hold", RW_JOINT_FIXED, "", "weld", rw_vec3_make(radius, 0, 0),
                   rw_quat_identity());
    xpbd_rig_attach(rig, "start", RW_ATTACH_CLAMP, "ring", 0, "weld");
    xpbd_rig_attach(rig, "end", RW_ATTACH_CLAMP, "ring", 1, "weld");
    xpbd_rig_load(rig, "load", "ring", 0.5, rw_vec3_make(force, 0, 0), rw_vec3_zero());
    xpbd_rig_start(rig);
    double start = xpbd_rig_node(rig, 0, 18).x;
    xpbd_rig_settle(rig, 1e-10, 20000);
    double moved = xpbd_rig_node(rig, 0, 18).x - start;
    double expected =
        (M_PI / 4 - 2 / M_PI) * force * pow(radius, 3) / (young * M_PI * pow(wire, 4) / 4);
    rw_assert_near(moved, expected, 1e-3 * expected);
    // What the joint holds is the load.
    rw_assert_near(xpbd_rig_vector(rig, "joint/hold/reaction_force").x, -force, 1e-7);
    xpbd_rig_close(rig);
}

static void rod_joint_and_spring_share_a_load(void** state) {
    (void)state;
    // A weight on a vertical guide hangs on a rod and on a spring: m g / (EA/L + k).
    const double mass = 3, stiffness = 5000, area = M_PI * 0.01 * 0.01, young = 2e7;
    xpbd_rig* rig = xpbd_rig_open(2e-3, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    rw_rod_desc* rod =
        xpbd_rig_rod(rig, "rod", 2, 4, rw_vec3_zero(), rw_vec3_make(0, 0, -1), 0.01, 1, young, 0.3);
    rod->damping = 0.02;
    xpbd_rig_body(rig, "weight", mass, rw_vec3_make(0.01, 0.02, 0.03), rw_vec3_make(0, 0, -1.1));
    xpbd_rig_joint(rig, "guide", RW_JOINT_PRISMATIC, "", "weight", rw_vec3_make(0, 0, -1.1),
                   xpbd_rig_z_to(0, 0, 1));
    rw_force_desc* spring = &rig->forces[rig->scene.force_count++];
    rw_scene_init_force(spring);
    XPBD_RIG_NAME(spring, "spring");
    spring->kind = RW_FORCE_SPRING_DAMPER;
    spring->spring_damper.a.position[0] = 0.0;
    snprintf(spring->spring_damper.b.body, sizeof spring->spring_damper.b.body, "weight");
    spring->spring_damper.stiffness = stiffness;
    spring->spring_damper.damping = 50;
    xpbd_rig_attach(rig, "top", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_attach(rig, "hook", RW_ATTACH_CLAMP, "rod", 1, "weight");
    xpbd_rig_start(rig);
    xpbd_rig_run_for(rig, 10);
    double sag = mass * 9.81 / (young * area + stiffness);
    rw_assert_near(-1.1 - xpbd_rig_vector(rig, "body/weight/position").z, sag, 1e-4 * sag);
    rw_assert_near(xpbd_rig_scalar(rig, "joint/guide/coordinate"), -sag, 1e-4 * sag);
    rw_assert_near(xpbd_rig_vector(rig, "attachment/hook/force").z, -young * area * sag,
                   1e-3 * young * area * sag);
    xpbd_rig_close(rig);
}

static void two_pendulums_on_one_rod_lose_energy_only(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 10);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    for (int k = 0; k < 2; k++) {
        const char* name = k == 0 ? "left" : "right";
        rw_vec3 top = rw_vec3_make(k, 0, 0);
        xpbd_rig_body(rig, name, 1, rw_vec3_make(1.0 / 12, 1.0 / 12, 1e-3),
                      rw_vec3_add(top, rw_vec3_make(0, 0, -0.5)));
        xpbd_rig_joint(rig, k == 0 ? "a" : "b", RW_JOINT_SPHERICAL, "", name, top,
                       rw_quat_identity());
    }
    rig->bodies[0].linear_velocity[0] = 1;
    rig->bodies[0].angular_velocity[1] = -2;
    xpbd_rig_rod(rig, "rod", 3, 4, rw_vec3_make(0, 0, -0.9), rw_vec3_make(1, 0, -0.9), 0.01, 1200,
                 1e8, 0.3);
    xpbd_rig_attach(rig, "from", RW_ATTACH_CLAMP, "rod", 0, "left");
    xpbd_rig_attach(rig, "to", RW_ATTACH_PIN, "rod", 1, "right");
    xpbd_rig_start(rig);
    double energy = xpbd_rig_energy(rig);
    for (int i = 0; i < 1500; i++) {
        xpbd_rig_run(rig, 1);
        double next = xpbd_rig_energy(rig);
        if (!(next <= energy + 1e-9)) {
            fail_msg("step %d: energy rises by %g J", i, next - energy);
        }
        energy = next;
    }
    // They swing together: the stiff rod keeps its ends apart.
    rw_vec3 from = xpbd_rig_node(rig, 0, 0), to = xpbd_rig_tip(rig, 0);
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(to, from)), 1, 0.02);
    xpbd_rig_close(rig);
}

static void residual_tolerance_ends_the_iterations(void** state) {
    (void)state;
    // A cantilever falls: 100 iterations, and as many as a residual of 1e-8 takes.
    rw_vec3 tip[2];
    for (int k = 0; k < 2; k++) {
        xpbd_rig* rig = xpbd_rig_open(5e-3, 100);
        rig->scene.solver.xpbd.residual_tolerance = k == 0 ? 0 : 1e-8;
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        xpbd_rig_rod(rig, "rod", 2, 10, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.03, 1000, 5e6,
                     0.3);
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_start(rig);
        for (int i = 0; i < 60; i++) {
            xpbd_rig_run(rig, 1);
            assert_true(xpbd_rig_scalar(rig, "rod/rod/residual") <= 1e-8);
        }
        tip[k] = xpbd_rig_tip(rig, 0);
        xpbd_rig_close(rig);
    }
    assert_true(tip[0].z < -0.1);
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(tip[1], tip[0])), 0, 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_frequencies_are_timoshenkos_with_the_damping_of_backward_euler),
        cmocka_unit_test(hanging_rod_whirls_in_the_shape_of_a_heavy_string),
        cmocka_unit_test(plucked_suture_is_stable_at_any_step),
        cmocka_unit_test(steel_cable_under_a_load_in_side_wind_is_stable),
        cmocka_unit_test(free_rod_keeps_linear_momentum_and_loses_angular_at_first_order),
        cmocka_unit_test(rotated_scene_gives_the_rotated_answer),
        cmocka_unit_test(welded_rods_carry_bending_and_twist_like_one),
        cmocka_unit_test(light_bodies_on_stiff_rods_are_stable),
        cmocka_unit_test(moving_clamp_drives_the_rod_and_tells_its_wrench),
        cmocka_unit_test(compliant_attachments_give_way_by_their_compliance),
        cmocka_unit_test(ring_closed_through_a_body_is_squeezed_like_a_ring),
        cmocka_unit_test(rod_joint_and_spring_share_a_load),
        cmocka_unit_test(two_pendulums_on_one_rod_lose_energy_only),
        cmocka_unit_test(residual_tolerance_ends_the_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
