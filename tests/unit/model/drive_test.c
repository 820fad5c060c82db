#include "tests/support/rw_test.h"

#include "solvers/math/so3.h"
#include "solvers/model/drive.h"
#include "tests/support/full_scene.h"

static full_scene scene;
static rw_alloc alloc;
static rw_model model;
static rw_drive drive;

static int begin(void** state) {
    (void)state;
    full_scene_init(&scene);
    rw_alloc_init(&alloc, 0);
    rw_model_init(&model, &alloc);
    memset(&drive, 0, sizeof drive);
    return rw_model_load(&model, &scene.scene, NULL) == RW_STATUS_OK &&
                   rw_drive_prepare(&drive, &model) == RW_STATUS_OK
               ? 0
               : -1;
}

static int end(void** state) {
    (void)state;
    rw_drive_finish(&drive, &alloc);
    rw_model_finish(&model);
    rw_alloc_finish(&alloc);
    return 0;
}

// An input that stands alone: width from the arrays.
static rw_input* add(rw_input_kind kind, const double* time, size_t n, const double* value,
                     const double* slope, const char* target, size_t width) {
    static int number;
    rw_input_desc desc;
    rw_scene_init_input(&desc);
    snprintf(desc.name, sizeof desc.name, "test%d", number++);
    snprintf(desc.target, sizeof desc.target, "%s", target);
    desc.kind = kind;
    desc.time = (rw_doubles){time, n};
    desc.value = (rw_doubles){value, n * width};
    desc.slope = (rw_doubles){slope, slope != NULL ? n * width : 0};
    rw_error error;
    if (rw_model_add_input(&model, &desc, NULL, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    return &model.inputs.items[model.inputs.count - 1];
}

static void piecewise_linear_is_exact_at_knots_and_held_outside(void** state) {
    (void)state;
    const double time[] = {0.1, 0.3, 1.7};
    const double value[] = {1, 2, 3, -4, 5.5, 6, 0.1, 0.7, 1e3};
    const rw_input* input = add(RW_INPUT_PIECEWISE_LINEAR, time, 3, value, NULL, "wind", 3);
    double v[3], r[3], a[3];
    for (int i = 0; i < 3; i++) {
        rw_drive_evaluate_input(input, time[i], v, r, a);
        assert_memory_equal(v, value + 3 * i, sizeof v);
    }
    rw_drive_evaluate_input(input, 0, v, r, a);
    assert_memory_equal(v, value, sizeof v);
    rw_assert_near(r[0], 0, 0);
    rw_drive_evaluate_input(input, 99, v, r, a);
    assert_memory_equal(v, value + 6, sizeof v);
    rw_assert_near(r[2], 0, 0);
    rw_drive_evaluate_input(input, 1.0, v, r, a);
    rw_assert_near(v[0], -4 + 0.5 * 4.1, 1e-14);
    rw_assert_near(r[0], 4.1 / 1.4, 1e-14);
    rw_assert_near(a[0], 0, 0);
    rw_drive_evaluate_input(input, 0.3, v, r, a); // the derivative from the right at a kink
    rw_assert_near(r[0], 4.1 / 1.4, 1e-14);
}

// Central differences of values and rates, away from knots.
static void check_derivatives(const rw_input* input, double t) {
    double h = 1e-5, v[2][6], r[3][6], a[6], unused[6];
    rw_drive_evaluate_input(input, t, unused, r[2], a);
    rw_drive_evaluate_input(input, t - h, v[0], r[0], NULL);
    rw_drive_evaluate_input(input, t + h, v[1], r[1], NULL);
    for (int k = 0; k < input->width; k++) {
        rw_assert_near(r[2][k], (v[1][k] - v[0][k]) / (2 * h), 1e-7 * (1 + fabs(r[2][k])));
        rw_assert_near(a[k], (r[1][k] - r[0][k]) / (2 * h), 1e-7 * (1 + fabs(a[k])));
    }
}

static void the_natural_spline_is_twice_differentiable_and_bends_nowhere_at_its_ends(void** state) {
    (void)state;
    const double time[] = {0, 0.5, 0.8, 2, 2.5};
    const double value[] = {0, 1, 5, 1, 3, 2, 2, -1, 0, -4, 0, 1, 1, 1, 1};
    const rw_input* input = add(RW_INPUT_CUBIC, time, 5, value, NULL, "wind", 3);
    double v[3], r0[3], r1[3], a0[3], a1[3];
    for (int i = 0; i < 5; i++) {
        rw_drive_evaluate_input(input, time[i], v, NULL, NULL);
        assert_memory_equal(v, value + 3 * i, sizeof v);
    }
    for (int i = 1; i < 4; i++) { // C2 across knots
        rw_drive_evaluate_input(input, time[i] - 1e-9, v, r0, a0);
        rw_drive_evaluate_input(input, time[i] + 1e-9, v, r1, a1);
        for (int k = 0; k < 3; k++) {
            rw_assert_near(r0[k], r1[k], 1e-6);
            rw_assert_near(a0[k], a1[k], 1e-5);
        }
    }
    rw_drive_evaluate_input(input, 0, v, r0, a0);
    rw_drive_evaluate_input(input, 2.5 - 1e-12, v, r1, a1);
    for (int k = 0; k < 3; k++) {
        rw_assert_near(a0[k], 0, 1e-12);
        rw_assert_near(a1[k], 0, 1e-9);
    }
    check_derivatives(input, 0.3);
    check_derivatives(input, 1.3);
}

static void two_samples_of_a_cubic_are_a_line(void** state) {
    (void)state;
    const double time[] = {1, 3}, value[] = {0, 0, 0, 4, 2, 6};
    const rw_input* input = add(RW_INPUT_CUBIC, time, 2, value, NULL, "wind", 3);
    double v[3], r[3], a[3];
    rw_drive_evaluate_input(input, 1.5, v, r, a);
    rw_assert_near(v[0], 1, 1e-14);
    rw_assert_near(r[2], 3, 1e-14);
    rw_assert_near(a[1], 0, 1e-13);
}

static void given_slopes_are_met(void** state) {
    (void)state;
    const double time[] = {0, 2}, value[] = {1, 0, 0, 3, 0, 0}, slope[] = {5, 0, 0, -7, 0, 0};
    const rw_input* input = add(RW_INPUT_CUBIC, time, 2, value, slope, "wind", 3);
    double v[3], r[3];
    rw_drive_evaluate_input(input, 0, v, r, NULL);
    rw_assert_near(r[0], 5, 0);
    rw_drive_evaluate_input(input, 2 - 1e-12, v, r, NULL);
    rw_assert_near(r[0], -7, 1e-9);
    rw_assert_near(v[0], 3, 1e-10);
    check_derivatives(input, 0.7);
}

static void a_sine_keeps_its_phase_at_large_times(void** state) {
    (void)state;
    const rw_input* input = &model.inputs.items[2]; // move: 1 Hz, phase 0.25
    double v[6], w[6];
    rw_drive_evaluate_input(input, 0.125, v, NULL, NULL);
    rw_assert_near(v[2], 0.1 * sin(2 * M_PI * 0.125 + 0.25), 1e-16);
    rw_assert_near(v[0], 0.1, 0);
    rw_drive_evaluate_input(input, 1048576.125, w, NULL, NULL);
    assert_memory_equal(v, w, 3 * sizeof *v);
    check_derivatives(input, 0.3);
}

static void values_are_added_to_what_the_scene_gives(void** state) {
    (void)state;
    rw_drive_evaluate(&drive, &model, 0.5);
    rw_assert_near(drive.wind[0], 1 + 5, 1e-15);
    rw_assert_near(drive.wind[1], 2, 0);
    double v[3];
    rw_drive_evaluate_input(&model.inputs.items[1], 0.5, v, NULL, NULL);
    rw_assert_near(drive.gravity[1], 0.5 + v[1], 1e-15);
    double target[1];
    rw_drive_evaluate_input(&model.inputs.items[4], 0.5, target, NULL, NULL);
    rw_assert_near(drive.joint_target[0], 0.3 + target[0], 1e-15);
    rw_assert_near(drive.joint_target[5], -7, 0); // slide: effort, not driven
    // spherical without input: the given quaternion
    rw_assert_near(drive.joint_target[1], 0.6, 1e-15);
    rw_assert_near(drive.joint_target[3], 0.8, 1e-15);
    rw_assert_near(drive.attachment_target[0].position[0], 0.1 + 0.1, 1e-15);
    assert_true(drive.body_is_driven[2]);
    assert_false(drive.body_is_driven[0]);
    rw_assert_near(drive.body_offset[6 * 2], 0.25, 1e-15);
    rw_assert_near(drive.body_offset[6 * 2 + 5], 0.375, 1e-15);
    rw_assert_near(drive.body_offset_rate[6 * 2 + 5], 0.75, 1e-15);
    double pull = sin(2 * M_PI * 2 * 0.5);
    rw_assert_near(drive.force_value[6 * 1], pull, 1e-15);
    rw_assert_near(drive.force_value[6 * 1 + 1], 0, 0);
    rw_assert_near(drive.force_value[6 * 2], 0, 0);
    // two inputs on one target add up
    const double time[] = {0}, value[] = {10, 20, 30};
    add(RW_INPUT_PIECEWISE_LINEAR, time, 1, value, NULL, "wind", 3);
    assert_int_equal(rw_drive_prepare(&drive, &model), RW_STATUS_OK);
    rw_drive_evaluate(&drive, &model, 0.5);
    rw_assert_near(drive.wind[0], 16, 1e-15);
}

static void attachment_velocity_is_the_motion_of_its_target(void** state) {
    (void)state;
    const double time[] = {0, 1, 2};
    const double value[] = {0, 0, 0, 0, 0, 0, 1, 2, 3, 0.5, -0.9, 1.3, 0, 1, 0, 1, 1, -1};
    add(RW_INPUT_CUBIC, time, 3, value, NULL, "attachment/grip", 6);
    assert_int_equal(rw_drive_prepare(&drive, &model), RW_STATUS_OK);
    double h = 1e-6, t = 0.6, velocity[6];
    rw_drive_evaluate(&drive, &model, t);
    memcpy(velocity, drive.attachment_velocity, sizeof velocity);
    rw_drive_evaluate(&drive, &model, t - h);
    rw_frame before = drive.attachment_target[0];
    rw_drive_evaluate(&drive, &model, t + h);
    rw_frame after = drive.attachment_target[0];
    // R' = exp(w dt) R: w in the axes of the body.
    rw_quat q0 = rw_quat_load(before.rotation), q1 = rw_quat_load(after.rotation);
    rw_vec3 w = rw_vec3_scale(rw_so3_log(rw_quat_mul(q1, rw_quat_conj(q0))), 1 / (2 * h));
    double w_[3];
    rw_vec3_store(w_, w);
    for (int k = 0; k < 3; k++) {
        rw_assert_near(velocity[k], (after.position[k] - before.position[k]) / (2 * h), 1e-8);
        rw_assert_near(velocity[3 + k], w_[k], 1e-8);
    }
    assert_true(fabs(w.x) + fabs(w.y) + fabs(w.z) > 0.5);
}

static void a_spherical_target_turns_with_its_rate_and_acceleration(void** state) {
    (void)state;
    const double time[] = {0, 1, 2};
    const double value[] = {0, 0, 0, 0.5, -0.9, 1.3, 1, 1, -1};
    add(RW_INPUT_CUBIC, time, 3, value, NULL, "joint/wrist", 3);
    assert_int_equal(rw_drive_prepare(&drive, &model), RW_STATUS_OK);
    int32_t first = model.joints.items[1].coordinate_first;
    double h = 1e-5, t = 0.7, rate[3], acceleration[3], rate0[3], rate1[3];
    rw_drive_evaluate(&drive, &model, t);
    memcpy(rate, drive.joint_target_rate + first, sizeof rate);
    memcpy(acceleration, drive.joint_target_acceleration + first, sizeof acceleration);
    rw_drive_evaluate(&drive, &model, t - h);
    rw_quat q0 = rw_quat_load(drive.joint_target + first);
    memcpy(rate0, drive.joint_target_rate + first, sizeof rate0);
    rw_drive_evaluate(&drive, &model, t + h);
    rw_quat q1 = rw_quat_load(drive.joint_target + first);
    memcpy(rate1, drive.joint_target_rate + first, sizeof rate1);
    double w[3]; // in the target's own axes
    rw_vec3_store(w, rw_vec3_scale(rw_so3_boxminus(q1, q0), 1 / (2 * h)));
    for (int k = 0; k < 3; k++) {
        rw_assert_near(rate[k], w[k], 1e-8);
        rw_assert_near(acceleration[k], (rate1[k] - rate0[k]) / (2 * h), 1e-7);
    }
}

static void evaluating_allocates_nothing(void** state) {
    (void)state;
    uint64_t calls = alloc.call_count;
    for (int i = 0; i < 10; i++) {
        rw_drive_evaluate(&drive, &model, 0.1 * i);
    }
    assert_int_equal(rw_drive_prepare(&drive, &model), RW_STATUS_OK);
    assert_int_equal(alloc.call_count, calls);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(piecewise_linear_is_exact_at_knots_and_held_outside,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            the_natural_spline_is_twice_differentiable_and_bends_nowhere_at_its_ends, begin, end),
        cmocka_unit_test_setup_teardown(two_samples_of_a_cubic_are_a_line, begin, end),
        cmocka_unit_test_setup_teardown(given_slopes_are_met, begin, end),
        cmocka_unit_test_setup_teardown(a_sine_keeps_its_phase_at_large_times, begin, end),
        cmocka_unit_test_setup_teardown(values_are_added_to_what_the_scene_gives, begin, end),
        cmocka_unit_test_setup_teardown(attachment_velocity_is_the_motion_of_its_target, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_spherical_target_turns_with_its_rate_and_acceleration,
                                        begin, end),
        cmocka_unit_test_setup_teardown(evaluating_allocates_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
