// Forces against what they derive from: the spring's energy, virtual work, closed forms.
#include "tests/support/rw_test.h"

#include "solvers/math/so3.h"
#include "solvers/model/forces.h"
#include "tests/support/full_scene.h"

enum { NODES = 5 + 37 + 5 + 4 };

static full_scene scene;
static rw_alloc alloc;
static rw_model model;
static rw_drive drive;
static rw_state motion;
static double body_position[12], body_rotation[16], body_velocity[12], body_spin[12];
static double node_position[3 * NODES], node_velocity[3 * NODES];
static double body_force[12], body_torque[12], node_force[3 * NODES], node_torque[3 * NODES];
static const rw_forces_output output = {body_force, body_torque, node_force, node_torque};

static void node_rotation(void* self, const rw_state* state, int32_t rod, int32_t node,
                          double rotation[4]) {
    (void)self;
    (void)state;
    rw_quat_store(rotation, rw_so3_exp((rw_vec3){0.1 * rod, 0.2, 0.3 * node}));
}

static const rw_forces_frames frames = {NULL, node_rotation};

static double noise(uint64_t* seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-52 - 1;
}

static int begin(void** state) {
    (void)state;
    full_scene_init(&scene);
    // A spring between a body and a rod's node, one between two bodies, one of zero length.
    rw_force_desc* between = &scene.forces[2];
    rw_scene_init_force(between);
    FULL_NAME(between->name, "between");
    FULL_NAME(between->spring_damper.a.body, "ball");
    FULL_SET(between->spring_damper.a.position, -0.3, 0.1, 0.2);
    FULL_NAME(between->spring_damper.b.rod, "cable");
    between->spring_damper.b.node = 2;
    between->spring_damper.b.has_node = true;
    between->spring_damper.stiffness = 40;
    between->spring_damper.damping = 3;
    between->spring_damper.has_rest_length = true;
    between->spring_damper.rest_length = 0.2;
    rw_alloc_init(&alloc, 0);
    rw_model_init(&model, &alloc);
    memset(&drive, 0, sizeof drive);
    rw_error error = {0};
    if (rw_model_load(&model, &scene.scene, &error) != RW_STATUS_OK ||
        rw_drive_prepare(&drive, &model) != RW_STATUS_OK) {
        print_error("%s: %s\n", error.path, error.text);
        return -1;
    }
    rw_drive_evaluate(&drive, &model, 0.3);
    motion = (rw_state){.body_position = body_position,
                        .body_rotation = body_rotation,
                        .body_linear_velocity = body_velocity,
                        .body_angular_velocity = body_spin,
                        .node_position = node_position,
                        .node_velocity = node_velocity};
    uint64_t seed = 3;
    for (int i = 0; i < 12; i++) {
        body_position[i] = noise(&seed);
        body_velocity[i] = noise(&seed);
        body_spin[i] = noise(&seed);
    }
    for (int i = 0; i < 4; i++) {
        rw_vec3 turn = {noise(&seed), noise(&seed), noise(&seed)};
        rw_quat_store(body_rotation + 4 * i, rw_so3_exp(rw_vec3_scale(turn, 2)));
    }
    for (int i = 0; i < 3 * NODES; i++) {
        node_position[i] = noise(&seed);
        node_velocity[i] = noise(&seed);
    }
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_drive_finish(&drive, &alloc);
    rw_model_finish(&model);
    rw_alloc_finish(&alloc);
    return 0;
}

static void turn_body(int body, int axis, double angle) {
    rw_vec3 v = {axis == 0 ? angle : 0, axis == 1 ? angle : 0, axis == 2 ? angle : 0};
    rw_quat q = rw_quat_load(body_rotation + 4 * body); // about a world axis
    rw_quat_store(body_rotation + 4 * body, rw_quat_mul(rw_so3_exp(v), q));
}

static void rest(void) {
    memset(body_velocity, 0, sizeof body_velocity);
    memset(body_spin, 0, sizeof body_spin);
    memset(node_velocity, 0, sizeof node_velocity);
}

static void spring_forces_are_minus_the_gradient_of_their_energy(void** state) {
    (void)state;
    rest();
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_SPRINGS, &output);
    double h = 1e-6, up, down;
    for (int i = 0; i < 12; i++) {
        double at = body_position[i];
        body_position[i] = at + h;
        up = rw_forces_spring_energy(&model, &motion);
        body_position[i] = at - h;
        down = rw_forces_spring_energy(&model, &motion);
        body_position[i] = at;
        rw_assert_near(body_force[i], -(up - down) / (2 * h), 1e-6);
        turn_body(i / 3, i % 3, h);
        up = rw_forces_spring_energy(&model, &motion);
        turn_body(i / 3, i % 3, -2 * h);
        down = rw_forces_spring_energy(&model, &motion);
        turn_body(i / 3, i % 3, h);
        rw_assert_near(body_torque[i], -(up - down) / (2 * h), 1e-6);
    }
    double largest = 0;
    for (int i = 0; i < 15; i++) {
        double at = node_position[i];
        node_position[i] = at + h;
        up = rw_forces_spring_energy(&model, &motion);
        node_position[i] = at - h;
        down = rw_forces_spring_energy(&model, &motion);
        node_position[i] = at;
        rw_assert_near(node_force[i], -(up - down) / (2 * h), 1e-6);
        largest = fmax(largest, fabs(node_force[i]));
    }
    assert_true(largest > 1);
}

static void spring_dampers_take_the_power_c_rate_squared(void** state) {
    (void)state;
    // Power of all forces = -d(elastic)/dt - sum c rate^2.
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_SPRINGS, &output);
    double power = 0;
    for (int b = 0; b < 4; b++) {
        rw_vec3 spin = rw_quat_rotate(rw_quat_load(body_rotation + 4 * b),
                                      rw_vec3_load(body_spin + 3 * b));
        power += rw_vec3_dot(rw_vec3_load(body_force + 3 * b), rw_vec3_load(body_velocity + 3 * b));
        power += rw_vec3_dot(rw_vec3_load(body_torque + 3 * b), spin);
    }
    for (int i = 0; i < 3 * NODES; i++) {
        power += node_force[i] * node_velocity[i];
    }
    double expected = 0;
    const int springs[] = {0, 2};
    for (int i = 0; i < 2; i++) {
        rw_spring spring;
        rw_forces_spring(&model, &motion, springs[i], &spring);
        expected -= spring.elastic_force * spring.rate;
        double c = model.forces.items[springs[i]].desc.spring_damper.damping;
        expected -= c * spring.rate * spring.rate;
        assert_true(fabs(spring.rate) > 0.01);
    }
    rw_assert_near(power, expected, 1e-11);
}

static void the_stiffness_is_the_derivative_of_the_pull(void** state) {
    (void)state;
    rest();
    // The spring to the rod is stretched, so the positive part is all of it.
    rw_spring spring, moved;
    rw_forces_spring(&model, &motion, 2, &spring);
    assert_true(spring.length > 0.2);
    static const int packed[3][3] = {{0, 3, 4}, {3, 1, 5}, {4, 5, 2}};
    double h = 1e-6;
    for (int j = 0; j < 3; j++) {
        double pull[2][3];
        for (int s = 0; s < 2; s++) {
            node_position[3 * 2 + j] += s == 0 ? h : -2 * h;
            rw_forces_spring(&model, &motion, 2, &moved);
            for (int i = 0; i < 3; i++) {
                pull[s][i] = -moved.tension * moved.direction[i]; // on b
            }
        }
        node_position[3 * 2 + j] += h;
        for (int i = 0; i < 3; i++) {
            rw_assert_near(spring.stiffness[packed[i][j]], -(pull[0][i] - pull[1][i]) / (2 * h),
                           1e-6);
        }
    }
}

static void a_compressed_spring_has_no_negative_stiffness(void** state) {
    (void)state;
    model.forces.items[2].rest_length = 100;
    rw_spring spring;
    rw_forces_spring(&model, &motion, 2, &spring);
    assert_true(spring.elastic_force < 0);
    rw_vec3 n = rw_vec3_load(spring.direction);
    rw_mat3 k = rw_mat3_symmetric(spring.stiffness);
    rw_assert_near(rw_vec3_dot(n, rw_mat3_apply(&k, n)), 40, 1e-12);
    rw_vec3 across = rw_mat3_apply(&k, rw_vec3_perpendicular(n));
    rw_assert_near(rw_vec3_norm(across), 0, 1e-12);
}

static void coinciding_points_pull_nowhere_and_stay_finite(void** state) {
    (void)state;
    rw_point a;
    double x[3];
    a = model.forces.items[2].a;
    rw_forces_point(&model, &motion, &a, x, NULL);
    memcpy(node_position + 6, x, sizeof x);
    rw_spring spring;
    for (int i = 0; i < 2; i++) {
        model.forces.items[2].rest_length = i == 0 ? 0 : 0.2;
        rw_forces_spring(&model, &motion, 2, &spring);
        rw_assert_near(spring.length, 0, 0);
        rw_assert_near(spring.direction[0], 0, 0);
        rw_assert_near(spring.stiffness[0], i == 0 ? 40 : 0, 0); // k I without a rest length
        rw_assert_near(spring.stiffness[3], 0, 0);
    }
}

static void velocity_of_a_point_is_the_derivative_of_its_position(void** state) {
    (void)state;
    rw_point point = {.body = 0, .rod = -1, .node = -1, .position = {0.3, -0.2, 0.5}};
    double v[3], x0[3], x1[3], h = 1e-6;
    rw_forces_point(&model, &motion, &point, NULL, v);
    for (int s = 0; s < 2; s++) {
        double step = s == 0 ? -h : 2 * h;
        for (int k = 0; k < 3; k++) {
            body_position[k] += step * body_velocity[k];
        }
        rw_vec3 turn = rw_vec3_scale(rw_vec3_load(body_spin), step);
        rw_quat_store(body_rotation, rw_so3_boxplus(rw_quat_load(body_rotation), turn));
        rw_forces_point(&model, &motion, &point, s == 0 ? x0 : x1, NULL);
    }
    for (int k = 0; k < 3; k++) {
        rw_assert_near(v[k], (x1[k] - x0[k]) / (2 * h), 1e-8);
    }
}

static void loads_follow_their_frame(void** state) {
    (void)state;
    memset(drive.force_value, 0, 4 * 6 * sizeof(double));
    rw_force* load = &model.forces.items[1]; // on the cable's end
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_LOADS, &output);
    rw_assert_near(node_force[3 * 4 + 2], -0.1, 0);
    rw_assert_near(node_torque[3 * 4], 0.01, 0);
    load->desc.load.frame = RW_LOAD_BODY;
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_LOADS, &output);
    double q[4];
    node_rotation(NULL, &motion, 0, 4, q);
    rw_vec3 f = rw_quat_rotate(rw_quat_load(q), (rw_vec3){0, 0, -0.1});
    rw_assert_near(node_force[3 * 4], f.x, 1e-16);
    rw_assert_near(node_force[3 * 4 + 1], f.y, 1e-16);
    assert_true(fabs(f.x) > 1e-3);
    // On a body: torque of the offset from the centre of mass; the input's value is added.
    load->a = (rw_point){.body = 0, .rod = -1, .node = -1, .position = {0.1, 0.2, 0.3}};
    drive.force_value[6] = 2;
    drive.force_value[6 + 4] = 3;
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_LOADS, &output);
    rw_quat r = rw_quat_load(body_rotation);
    rw_vec3 force = rw_quat_rotate(r, (rw_vec3){2, 0, -0.1});
    rw_vec3 arm = rw_quat_rotate(r, (rw_vec3){0.1 - 0.01, 0.2 - 0.02, 0.3 - 0.03});
    rw_vec3 torque = rw_vec3_add(rw_quat_rotate(r, (rw_vec3){0.01, 3, 0}),
                                 rw_vec3_cross(arm, force));
    rw_assert_near(body_force[1], force.y, 1e-15);
    rw_assert_near(body_torque[0], torque.x, 1e-15);
    rw_assert_near(body_torque[1], torque.y, 1e-15);
    rw_assert_near(body_torque[2], torque.z, 1e-15);
}

static void drag_works_against_the_wind(void** state) {
    (void)state;
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_DRAG, &output);
    rw_vec3 v = rw_vec3_sub(rw_vec3_load(body_velocity + 3), rw_vec3_load(drive.wind));
    rw_vec3 f = rw_vec3_scale(v, -(0.1 + 0.2 * rw_vec3_norm(v)));
    rw_assert_near(body_force[3], f.x, 1e-14);
    rw_assert_near(body_force[5], f.z, 1e-14);
    rw_vec3 spin = rw_quat_rotate(rw_quat_load(body_rotation + 4), rw_vec3_load(body_spin + 3));
    rw_assert_near(body_torque[4], -0.3 * spin.y, 1e-15);
    for (int i = 0; i < 3; i++) {
        rw_assert_near(body_force[i], 0, 0);
    }
    memcpy(body_velocity + 3, drive.wind, sizeof drive.wind);
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_DRAG, &output);
    rw_assert_near(body_force[4], 0, 0); // drifting with the wind
}

static void applied_wrenches_add_up(void** state) {
    (void)state;
    memset(drive.force_value, 0, 4 * 6 * sizeof(double));
    model.forces.items[1].desc.load.force[2] = 0;
    model.forces.items[1].desc.load.torque[0] = 0;
    rw_applied_wrench wrench = {.body = 1,
                                .rod = -1,
                                .node = -1,
                                .force = {1, 2, 3},
                                .torque = {4, 5, 6},
                                .steps_left = 1};
    memcpy(wrench.point, model.bodies.center_of_mass + 3, sizeof wrench.point);
    rw_applied_wrench on_node = {.body = -1, .rod = 2, .node = 1, .force = {7, 0, 0}, .steps_left = 1};
    rw_model_add_wrench(&model, &wrench);
    rw_model_add_wrench(&model, &wrench);
    rw_model_add_wrench(&model, &on_node);
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_ALL & ~RW_FORCES_SPRINGS & ~RW_FORCES_DRAG,
                       &output);
    rw_assert_near(body_force[3 + 1], 4, 0);
    rw_assert_near(body_torque[3 + 2], 12, 1e-15);
    rw_assert_near(node_force[3 * (5 + 37 + 1)], 7, 0);
}

static void outputs_that_nobody_wants_may_be_left_out(void** state) {
    (void)state;
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_ALL, &output);
    double kept[12];
    memcpy(kept, body_torque, sizeof kept);
    memset(body_torque, 0xff, sizeof body_torque);
    const rw_forces_output part = {.body_torque = body_torque};
    rw_forces_evaluate(&model, &drive, &motion, frames, RW_FORCES_ALL, &part);
    assert_memory_equal(kept, body_torque, sizeof kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spring_forces_are_minus_the_gradient_of_their_energy,
                                        begin, end),
        cmocka_unit_test_setup_teardown(spring_dampers_take_the_power_c_rate_squared, begin, end),
        cmocka_unit_test_setup_teardown(the_stiffness_is_the_derivative_of_the_pull, begin, end),
        cmocka_unit_test_setup_teardown(a_compressed_spring_has_no_negative_stiffness, begin, end),
        cmocka_unit_test_setup_teardown(coinciding_points_pull_nowhere_and_stay_finite, begin,
                                        end),
        cmocka_unit_test_setup_teardown(velocity_of_a_point_is_the_derivative_of_its_position,
                                        begin, end),
        cmocka_unit_test_setup_teardown(loads_follow_their_frame, begin, end),
        cmocka_unit_test_setup_teardown(drag_works_against_the_wind, begin, end),
        cmocka_unit_test_setup_teardown(applied_wrenches_add_up, begin, end),
        cmocka_unit_test_setup_teardown(outputs_that_nobody_wants_may_be_left_out, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
