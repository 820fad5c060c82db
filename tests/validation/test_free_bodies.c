// Free rigid bodies against closed forms. References: case A09 (torque-free asymmetric top; Landau and
// Lifshitz, Mechanics, section 37; values by quadrature of the elliptic solution), elementary
// mechanics elsewhere.
#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/world/world.h"

static rw_alloc account;

static int setup(void** state) {
    (void)state;
    rw_alloc_init(&account, 0);
    return 0;
}

static int teardown(void** state) {
    (void)state;
    rw_alloc_finish(&account);
    return 0;
}

static rw_body_desc make_body(const char* name, double mass, double ixx, double iyy, double izz) {
    rw_body_desc body;
    rw_scene_init_body(&body);
    snprintf(body.name, sizeof body.name, "%s", name);
    body.mass = mass;
    body.has_mass = body.has_inertia = true;
    body.inertia[0] = ixx;
    body.inertia[1] = iyy;
    body.inertia[2] = izz;
    return body;
}

static rw_world* load(const rw_scene* scene) {
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    if (rw_world_create_from_scene(&config, scene, &world, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    return world;
}

static void run(rw_world* world, int64_t steps) {
    rw_error error;
    for (int64_t i = 0; i < steps; i++) {
        if (rw_world_step(world, &error) != RW_STATUS_OK) {
            fail_msg("%s", error.text);
        }
    }
}

static void read(rw_world* world, const char* signal, double* values) {
    rw_error error;
    rw_signal_set set;
    const char* const globs[] = {signal};
    if (rw_world_resolve_signals(world, globs, 1, &set, &error) != RW_STATUS_OK ||
        rw_world_read_signals(world, &set, values, &error) != RW_STATUS_OK) {
        fail_msg("%s", error.text);
    }
    rw_world_release_signals(world, &set);
}

// ---- Case A09 ----------------------------------------------------------------------------------

typedef struct top_case {
    double inertia[3], omega[3], time_s;
    double omega_end[3], q_end[4];
} top_case;

// cases/A09_torque_free_asymmetric.json: "0.1 T", "0.25 T" and "0.5 T" of four tops.
static const top_case tops[] = {
    {{1, 2, 3}, {0, 1, 0.01}, 3.7702071587374597,
     {-0.07527900574404833, 0.9971625099722649, 0.044597939809713424},
     {-0.30899864200967303, -0.009873915657029293, 0.9499564573081484, 0.04477805538796887}},
    {{1, 2, 3}, {1, 0.3, 0.8}, 0.9244135111235507,
     {0.5927524397257045, 0.8594443235016855, 0.6509878275361637},
     {0.8356624385112299, 0.34034623821720567, 0.2609654779098884, 0.3431176858340671}},
    {{1, 2, 3}, {1, 0.3, 0.8}, 4.622067555617754,
     {-0.9999999999999974, -0.2999999999999994, 0.7999999999999994},
     {-0.6714092242393662, 0.167852306059845, -0.27975384343306914, 0.665411935601632}},
    {{1, 2, 3}, {0.01, 2, 0}, 5.789012802152262,
     {2.0000249998437405, 1.2975731600306517e-14, -1.1547005383792441},
     {0.6232737991526927, 0.37101740503473934, -0.33582376051614093, 0.6009145183167527}},
    {{0.0007416666666666668, 0.001704166666666667, 0.0023708333333333337},
     {0, 6.283185307179586, 0.05}, 0.6103390405890277,
     {-0.3732473453808966, 6.271383592256223, 0.25577460438934185},
     {-0.3396352674813649, -0.004415973926478616, 0.9398484236014948, 0.036239824929596}},
};

// Largest error of omega (relative to its size) and of the quaternion (up to sign) at the end.
static double top_error(const top_case* top, int64_t steps) {
    rw_body_desc body = make_body("top", 1, top->inertia[0], top->inertia[1], top->inertia[2]);
    memcpy(body.angular_velocity, top->omega, sizeof top->omega);
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.time_step = top->time_s / (double)steps;
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    run(world, steps);
    double omega[3], q[4], size = 0, error = 0, dot = 0;
    read(world, "body/top/angular_velocity", omega);
    read(world, "body/top/rotation", q);
    rw_world_destroy(world);
    for (int i = 0; i < 3; i++) {
        size = fmax(size, fabs(top->omega[i]));
    }
    for (int i = 0; i < 3; i++) {
        error = fmax(error, fabs(omega[i] - top->omega_end[i]) / size);
    }
    for (int i = 0; i < 4; i++) {
        dot += q[i] * top->q_end[i];
    }
    for (int i = 0; i < 4; i++) {
        error = fmax(error, fabs(q[i] - (dot < 0 ? -1 : 1) * top->q_end[i]));
    }
    return error;
}

static void asymmetric_top_follows_the_elliptic_solution_with_second_order(void** state) {
    (void)state;
    for (size_t i = 0; i < RW_COUNT_OF(tops); i++) {
        double coarse = top_error(&tops[i], 10000), fine = top_error(&tops[i], 20000);
        print_message("A09 top %zu: error %.2e at T/10000, %.2e at T/20000, order %.3f\n", i,
                      coarse, fine, log2(coarse / fine));
        assert_true(fine < 1e-6);
        rw_assert_near(log2(coarse / fine), 2, 0.05);
    }
}

static void symmetric_top_precesses_at_its_closed_form_rate(void** state) {
    (void)state;
    // Body-frame precession: omega_x + i omega_y turns at (I3 - I1)/I1 omega_3.
    const double i1 = 0.02, i3 = 0.031, spin = 12, wobble = 1.5, time_s = 2;
    rw_body_desc body = make_body("top", 1, i1, i1, i3);
    body.angular_velocity[0] = wobble;
    body.angular_velocity[2] = spin;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.time_step = 1e-4;
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    run(world, (int64_t)(time_s / scene.time_step + 0.5));
    double omega[3];
    read(world, "body/top/angular_velocity", omega);
    double angle = (i3 - i1) / i1 * spin * time_s;
    rw_assert_near(omega[0], wobble * cos(angle), 2e-5);
    rw_assert_near(omega[1], wobble * sin(angle), 2e-5);
    rw_assert_near(omega[2], spin, 1e-11);
    rw_world_destroy(world);
}

static void tumbling_body_keeps_energy_and_world_momentum_over_a_million_steps(void** state) {
    (void)state;
    rw_body_desc body = make_body("rock", 2, 0.3, 0.5, 0.7);
    body.inertia[3] = 0.05;
    body.inertia[4] = -0.04;
    body.inertia[5] = 0.03;
    const double omega[3] = {1.1, 2.3, -0.7}, velocity[3] = {0.3, -0.2, 0.1};
    memcpy(body.angular_velocity, omega, sizeof omega);
    memcpy(body.linear_velocity, velocity, sizeof velocity);
    body.center_of_mass[0] = 0.1;
    body.has_center_of_mass = true;
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    double energy[2], linear[2][3], angular[2][3];
    rw_world_energy sum;
    assert_int_equal(rw_world_get_energy(world, &sum, NULL), RW_STATUS_OK);
    energy[0] = sum.total;
    assert_int_equal(rw_world_get_momentum(world, linear[0], angular[0], NULL), RW_STATUS_OK);
    uint64_t calls = account.call_count;
    run(world, 1000000);
    assert_int_equal(account.call_count, calls); // no allocation in a warmed-up step
    assert_int_equal(rw_world_get_energy(world, &sum, NULL), RW_STATUS_OK);
    energy[1] = sum.total;
    assert_int_equal(rw_world_get_momentum(world, linear[1], angular[1], NULL), RW_STATUS_OK);
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        worst = fmax(worst, fabs(angular[1][i] - angular[0][i]));
        rw_assert_near(linear[1][i], linear[0][i], 1e-12);
    }
    print_message("1e6 steps: energy drift %.2e, angular momentum drift %.2e\n",
                  fabs(energy[1] / energy[0] - 1), worst);
    rw_assert_near(energy[1] / energy[0], 1, 1e-9);
    assert_true(worst < 1e-9);
    rw_world_destroy(world);
}

// ---- Forces ------------------------------------------------------------------------------------

static void falling_body_follows_the_parabola_to_rounding(void** state) {
    (void)state;
    rw_body_desc body = make_body("stone", 3, 1, 1, 1);
    body.linear_velocity[0] = 2;
    body.linear_velocity[2] = 5;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    run(world, 2000);
    double x[3];
    read(world, "body/stone/position", x);
    rw_assert_near(x[0], 4, 1e-12);
    rw_assert_near(x[2], 5 * 2 - 0.5 * 9.81 * 4, 1e-11);
    rw_world_destroy(world);
}

// A mass on a spring along z, at the time of a full period.
static double oscillator_error(double h, double* energy_error) {
    const double k = 100, m = 1, pi = 3.14159265358979323846;
    rw_body_desc body = make_body("bob", m, 0.1, 0.1, 0.1);
    body.position[2] = -1.2;
    rw_force_desc spring;
    rw_scene_init_force(&spring);
    snprintf(spring.name, sizeof spring.name, "spring");
    spring.kind = RW_FORCE_SPRING_DAMPER;
    snprintf(spring.spring_damper.a.body, sizeof spring.spring_damper.a.body, "bob");
    spring.spring_damper.stiffness = k;
    spring.spring_damper.rest_length = 1;
    spring.spring_damper.has_rest_length = true;
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.time_step = h;
    scene.bodies = &body;
    scene.body_count = 1;
    scene.forces = &spring;
    scene.force_count = 1;
    rw_world* world = load(&scene);
    double period = 2 * pi * sqrt(m / k);
    int64_t steps = (int64_t)(10 * period / h + 0.5);
    run(world, steps);
    double x[3];
    read(world, "body/bob/position", x);
    rw_world_energy sum;
    assert_int_equal(rw_world_get_energy(world, &sum, NULL), RW_STATUS_OK);
    *energy_error = fabs(sum.total / (0.5 * k * 0.04) - 1);
    double expected = -1 - 0.2 * cos(sqrt(k / m) * (double)steps * h);
    rw_world_destroy(world);
    return fabs(x[2] - expected);
}

static void mass_on_a_spring_is_second_order_and_keeps_its_energy(void** state) {
    (void)state;
    double energy[2], coarse = oscillator_error(2e-3, &energy[0]),
                      fine = oscillator_error(1e-3, &energy[1]);
    print_message("spring: error %.2e at 2 ms, %.2e at 1 ms; energy %.2e\n", coarse, fine,
                  energy[1]);
    assert_true(fine < 2e-3 * 0.2);
    assert_true(energy[1] < 1e-11); // the midpoint rule keeps quadratic invariants
    assert_true(coarse / fine > 3);
}

static void two_bodies_on_a_stiff_damped_spring_keep_their_momenta_and_stay_finite(void** state) {
    (void)state;
    rw_body_desc bodies[2] = {make_body("a", 1, 0.1, 0.2, 0.25), make_body("b", 0.01, 1e-4, 2e-4, 2.5e-4)};
    bodies[1].position[0] = 1;
    bodies[0].angular_velocity[1] = 3;
    bodies[1].linear_velocity[1] = 2;
    rw_force_desc spring;
    rw_scene_init_force(&spring);
    snprintf(spring.name, sizeof spring.name, "spring");
    spring.kind = RW_FORCE_SPRING_DAMPER;
    snprintf(spring.spring_damper.a.body, sizeof spring.spring_damper.a.body, "a");
    snprintf(spring.spring_damper.b.body, sizeof spring.spring_damper.b.body, "b");
    spring.spring_damper.a.position[1] = 0.2;
    spring.spring_damper.b.position[2] = 0.1;
    spring.spring_damper.stiffness = 1e7; // h omega = 31 for the light body
    spring.spring_damper.damping = 10;
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.bodies = bodies;
    scene.body_count = 2;
    scene.forces = &spring;
    scene.force_count = 1;
    rw_world* world = load(&scene);
    double before[2][3], after[2][3];
    assert_int_equal(rw_world_get_momentum(world, before[0], before[1], NULL), RW_STATUS_OK);
    rw_world_energy start, end;
    assert_int_equal(rw_world_get_energy(world, &start, NULL), RW_STATUS_OK);
    run(world, 5000);
    assert_int_equal(rw_world_get_momentum(world, after[0], after[1], NULL), RW_STATUS_OK);
    assert_int_equal(rw_world_get_energy(world, &end, NULL), RW_STATUS_OK);
    for (int i = 0; i < 3; i++) {
        rw_assert_near(after[0][i], before[0][i], 1e-10);
        rw_assert_near(after[1][i], before[1][i], 1e-10);
    }
    print_message("stiff pair: energy %.6g -> %.6g\n", start.total, end.total);
    assert_true(end.total <= start.total * (1 + 1e-9));
    rw_world_destroy(world);
}

static void follower_force_drives_a_body_round_a_circle(void** state) {
    (void)state;
    // Force F along the body's x through the centre of mass, spin w about z, speed v = F/(m w)
    // along -y at the start: the velocity turns with the body, the path is a circle of radius v/w.
    const double w = 2, force = 3, mass = 1.5, radius = force / (mass * w * w);
    rw_body_desc body = make_body("boat", mass, 1, 1, 1);
    body.angular_velocity[2] = w;
    body.linear_velocity[1] = -force / (mass * w);
    rw_force_desc thrust;
    rw_scene_init_force(&thrust);
    snprintf(thrust.name, sizeof thrust.name, "thrust");
    thrust.kind = RW_FORCE_LOAD;
    snprintf(thrust.load.at.body, sizeof thrust.load.at.body, "boat");
    thrust.load.force[0] = force;
    thrust.load.frame = RW_LOAD_BODY;
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.bodies = &body;
    scene.body_count = 1;
    scene.forces = &thrust;
    scene.force_count = 1;
    rw_world* world = load(&scene);
    // The centre lies at (R, 0); the body starts at the origin.
    double x[3];
    for (int k = 0; k < 10; k++) {
        run(world, 300);
        read(world, "body/boat/position", x);
        rw_assert_near(hypot(x[0] - radius, x[1]), radius, 2e-6);
    }
    double angle = w * 3.0;
    rw_assert_near(x[0], radius * (1 - cos(angle)), 2e-5);
    rw_assert_near(x[1], -radius * sin(angle), 2e-5);
    rw_world_destroy(world);
}

static void fixed_moment_changes_world_angular_momentum_at_its_rate(void** state) {
    (void)state;
    rw_body_desc body = make_body("rock", 1, 0.2, 0.4, 0.5);
    body.angular_velocity[0] = 5;
    body.angular_velocity[1] = 1;
    rw_force_desc moment;
    rw_scene_init_force(&moment);
    snprintf(moment.name, sizeof moment.name, "moment");
    moment.kind = RW_FORCE_LOAD;
    snprintf(moment.load.at.body, sizeof moment.load.at.body, "rock");
    moment.load.torque[0] = 0.3;
    moment.load.torque[2] = -0.7;
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.bodies = &body;
    scene.body_count = 1;
    scene.forces = &moment;
    scene.force_count = 1;
    rw_world* world = load(&scene);
    double linear[3], before[3], after[3];
    assert_int_equal(rw_world_get_momentum(world, linear, before, NULL), RW_STATUS_OK);
    run(world, 2000);
    assert_int_equal(rw_world_get_momentum(world, linear, after, NULL), RW_STATUS_OK);
    rw_assert_near(after[0] - before[0], 0.6, 1e-11);
    rw_assert_near(after[1] - before[1], 0, 1e-11);
    rw_assert_near(after[2] - before[2], -1.4, 1e-11);
    rw_world_destroy(world);
}

static void body_in_wind_reaches_its_terminal_velocity(void** state) {
    (void)state;
    const double c1 = 0.4, c2 = 0.2, mass = 0.5;
    rw_body_desc body = make_body("leaf", mass, 0.01, 0.01, 0.01);
    rw_force_desc drag;
    rw_scene_init_force(&drag);
    snprintf(drag.name, sizeof drag.name, "drag");
    drag.kind = RW_FORCE_DRAG;
    snprintf(drag.drag.at.body, sizeof drag.drag.at.body, "leaf");
    drag.drag.linear = c1;
    drag.drag.quadratic = c2;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.wind[0] = 4;
    scene.bodies = &body;
    scene.body_count = 1;
    scene.forces = &drag;
    scene.force_count = 1;
    rw_world* world = load(&scene);
    run(world, 30000);
    double v[3];
    read(world, "body/leaf/linear_velocity", v);
    double fall = (-c1 + sqrt(c1 * c1 + 4 * c2 * mass * 9.81)) / (2 * c2);
    rw_assert_near(v[0], 4, 1e-9);
    rw_assert_near(v[2], -fall, 1e-9);
    rw_world_destroy(world);
}

static void substeps_refine_the_motion_and_land_on_the_same_times(void** state) {
    (void)state;
    top_case top = tops[1];
    double coarse = top_error(&top, 1000);
    rw_body_desc body = make_body("top", 1, 1, 2, 3);
    memcpy(body.angular_velocity, top.omega, sizeof top.omega);
    rw_scene scene;
    rw_scene_init(&scene);
    memset(scene.gravity, 0, sizeof scene.gravity);
    scene.time_step = top.time_s / 1000;
    scene.substeps = 5;
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    run(world, 1000);
    double omega[3], error = 0;
    read(world, "body/top/angular_velocity", omega);
    for (int i = 0; i < 3; i++) {
        error = fmax(error, fabs(omega[i] - top.omega_end[i]));
    }
    rw_assert_near(rw_world_time(world), top.time_s, 1e-12);
    assert_true(error < coarse / 15);
    rw_world_destroy(world);
}

static void kinematic_body_turns_about_its_origin_exactly(void** state) {
    (void)state;
    rw_body_desc body = make_body("arm", 0, 0, 0, 0);
    body.has_mass = body.has_inertia = false;
    body.kind = RW_BODY_KINEMATIC;
    body.angular_velocity[2] = 1.5;
    body.linear_velocity[0] = 0.25;
    body.center_of_mass[0] = 0.4;
    body.has_center_of_mass = true;
    rw_scene scene;
    rw_scene_init(&scene);
    scene.time_step = 0.01;
    scene.bodies = &body;
    scene.body_count = 1;
    rw_world* world = load(&scene);
    run(world, 400);
    double x[3], q[4];
    read(world, "body/arm/position", x);
    read(world, "body/arm/rotation", q);
    rw_assert_near(x[0], 1, 1e-12);
    rw_assert_near(x[1], 0, 1e-12);
    rw_assert_near(fabs(q[0]), fabs(cos(3)), 1e-12);
    rw_assert_near(fabs(q[3]), fabs(sin(3)), 1e-12);
    rw_world_destroy(world);
}

static void driven_body_starts_where_its_input_says(void** state) {
    (void)state;
    rw_body_desc body = make_body("table", 0, 0, 0, 0);
    body.has_mass = body.has_inertia = false;
    body.kind = RW_BODY_KINEMATIC;
    body.position[0] = 1;
    rw_input_desc input;
    rw_scene_init_input(&input);
    snprintf(input.name, sizeof input.name, "slide");
    snprintf(input.target, sizeof input.target, "body/table");
    input.kind = RW_INPUT_PIECEWISE_LINEAR;
    static const double time[2] = {0, 1}, value[6] = {0.25, 0, 0, 0.75, 0, 0};
    input.time = (rw_doubles){time, 2};
    input.value = (rw_doubles){value, 6};
    rw_scene scene;
    rw_scene_init(&scene);
    scene.bodies = &body;
    scene.body_count = 1;
    scene.inputs = &input;
    scene.input_count = 1;
    rw_world* world = load(&scene);
    double x[3], v[3];
    read(world, "body/table/position", x);
    read(world, "body/table/linear_velocity", v);
    rw_assert_near(x[0], 1.25, 1e-15);
    rw_assert_near(v[0], 0.5, 1e-12);
    run(world, 500);
    read(world, "body/table/position", x);
    rw_assert_near(x[0], 1.5, 1e-12);
    rw_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asymmetric_top_follows_the_elliptic_solution_with_second_order),
        cmocka_unit_test(symmetric_top_precesses_at_its_closed_form_rate),
        cmocka_unit_test(tumbling_body_keeps_energy_and_world_momentum_over_a_million_steps),
        cmocka_unit_test(falling_body_follows_the_parabola_to_rounding),
        cmocka_unit_test(mass_on_a_spring_is_second_order_and_keeps_its_energy),
        cmocka_unit_test(two_bodies_on_a_stiff_damped_spring_keep_their_momenta_and_stay_finite),
        cmocka_unit_test(follower_force_drives_a_body_round_a_circle),
        cmocka_unit_test(fixed_moment_changes_world_angular_momentum_at_its_rate),
        cmocka_unit_test(body_in_wind_reaches_its_terminal_velocity),
        cmocka_unit_test(substeps_refine_the_motion_and_land_on_the_same_times),
        cmocka_unit_test(driven_body_starts_where_its_input_says),
        cmocka_unit_test(kinematic_body_turns_about_its_origin_exactly),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
