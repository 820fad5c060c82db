// The rods of the xpbd solver from inside a world: bits that do not depend on the processor, snapshots,
// damping and mass, what is refused.
#include "tests/support/xpbd_rig.h"

#include "solvers/math/simd.h"

// Rods of every order, bent and attached to a body.
static xpbd_rig* make_mixed(void) {
    xpbd_rig* rig = xpbd_rig_open(2e-3, 2);
    xpbd_rig_gravity(rig, 0, 1, -9.81);
    xpbd_rig_body(rig, "load", 0.5, rw_vec3_make(1e-3, 2e-3, 3e-3), rw_vec3_make(1, 0, 0));
    for (uint32_t order = 0; order <= 3; order++) {
        char name[16], clamp[16], hook[16];
        snprintf(name, sizeof name, "rod%u", order);
        snprintf(clamp, sizeof clamp, "clamp%u", order);
        snprintf(hook, sizeof hook, "hook%u", order);
        rw_rod_desc* rod = xpbd_rig_rod(rig, name, order, 5, rw_vec3_make(0, 0.1 * order, 0.05),
                                        rw_vec3_make(1, 0, 0), 0.01, 1200, 1e7, 0.4);
        rod->damping = order == 2 ? 0.01 : 0;
        rod->mass_damping = order == 3 ? 0.5 : 0;
        rod->drag = 0.02;
        xpbd_rig_attach(rig, clamp, RW_ATTACH_CLAMP, name, 0, "");
        xpbd_rig_attach(rig, hook, order == 1 ? RW_ATTACH_PIN : RW_ATTACH_CLAMP, name, 1, "load");
    }
    // And a joint on the body.
    rw_joint_desc* hinge = xpbd_rig_joint(rig, "hinge", RW_JOINT_UNIVERSAL, "", "load",
                                          rw_vec3_make(1, 0, 0.5), rw_quat_identity());
    hinge->compliance = 1e-6;
    hinge->damping = 0.01;
    xpbd_rig_start(rig);
    return rig;
}

static uint64_t hash_of(xpbd_rig* rig) {
    uint64_t value;
    if (rw_world_hash(rig->world, &value, &rig->error) != RW_STATUS_OK) {
        fail_msg("%s", rig->error.text);
    }
    return value;
}

static void bits_are_the_same_on_every_processor(void** state) {
    (void)state;
    uint64_t hashes[2];
    for (int plain = 0; plain < 2; plain++) {
        rw_simd_force_plain(plain != 0);
        xpbd_rig* rig = make_mixed();
        xpbd_rig_run(rig, 200);
        hashes[plain] = hash_of(rig);
        xpbd_rig_close(rig);
    }
    rw_simd_force_plain(false);
    assert_true(hashes[0] == hashes[1]);
}

static void a_restored_world_continues_bit_for_bit(void** state) {
    (void)state;
    xpbd_rig* rig = make_mixed();
    xpbd_rig_run(rig, 50);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &rig->account);
    if (rw_world_snapshot(rig->world, &bytes, &rig->error) != RW_STATUS_OK) {
        fail_msg("%s", rig->error.text);
    }
    rw_world* other = NULL;
    rw_world_config config = {.alloc = &rig->account};
    if (rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &other, &rig->error) !=
        RW_STATUS_OK) {
        fail_msg("%s", rig->error.text);
    }
    rw_buffer_finish(&bytes);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rw_world_step(other, &rig->error), RW_STATUS_OK);
    }
    xpbd_rig_run(rig, 50);
    uint64_t value;
    assert_int_equal(rw_world_hash(other, &value, &rig->error), RW_STATUS_OK);
    assert_true(value == hash_of(rig));
    rw_world_destroy(other);
    xpbd_rig_close(rig);
}

static void a_warmed_up_step_allocates_nothing(void** state) {
    (void)state;
    xpbd_rig* rig = make_mixed();
    xpbd_rig_run(rig, 2);
    uint64_t before = rig->account.call_count;
    xpbd_rig_run(rig, 20);
    assert_true(rig->account.call_count == before);
    xpbd_rig_close(rig);
}

static void nodes_weigh_what_the_rod_weighs(void** state) {
    (void)state;
    for (uint32_t order = 0; order <= 3; order++) {
        xpbd_rig* rig = xpbd_rig_open(1e-3, 1);
        const double radii[5] = {0.01, 0.012, 0.014, 0.016, 0.018};
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", order, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        0.01, 1000, 1e6, 0.3);
        if (order == 3) {
            rod->section_radius = (rw_doubles){radii, 5};
        }
        const double velocity[3] = {0, 0, 2};
        rod->linear_velocity = (rw_doubles){velocity, 3};
        xpbd_rig_start(rig);
        double linear[3], angular[3], mass = 1000 * M_PI * 1e-4;
        assert_int_equal(rw_world_get_momentum(rig->world, linear, angular, &rig->error), 0);
        if (order == 3) {
            // A cone: pi/3 (a^2 + a b + b^2) of the length.
            mass = 1000 * M_PI / 3 * (1e-4 + 1.8e-4 + 3.24e-4);
        }
        // Lumping takes the section at the nodes: exact for quadratic areas with Simpson's weights
        // or better; a half-half lump of a cylinder is exact too.
        rw_assert_near(linear[2], 2 * mass, 1e-12 * mass);
        xpbd_rig_close(rig);
    }
}

static void what_the_rods_cannot_do_is_refused_with_its_path(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 1);
    rw_rod_desc* rod = xpbd_rig_rod(rig, "ring", 3, 2, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.01,
                                    1000, 1e6, 0.3);
    rod->geometry = RW_ROD_HELIX;
    rod->helix.radius = 0.1;
    rod->helix.pitch = 0.05;
    rod->helix.turns = 1;
    // Half a turn per element: the logarithm would wrap.
    assert_int_equal(xpbd_rig_try_start(rig), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(rig->error.path, "rods[0].elements");
    xpbd_rig_close(rig);
}

static void a_node_is_held_rigidly_once(void** state) {
    (void)state;
    for (int soft = 0; soft < 2; soft++) {
        xpbd_rig* rig = xpbd_rig_open(1e-3, 3);
        xpbd_rig_gravity(rig, 0, 0, -9.81);
        xpbd_rig_rod(rig, "rod", 1, 4, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.03, 1000, 5e6, 0.3);
        xpbd_rig_body(rig, "b", 1, rw_vec3_make(1e-2, 1e-2, 1e-2), rw_vec3_make(1, 0, 0));
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_attach(rig, "pin", RW_ATTACH_PIN, "rod", 1, "")->compliance = soft ? 1e-6 : 0;
        xpbd_rig_attach(rig, "hook", RW_ATTACH_CLAMP, "rod", 1, "b");
        rw_status status = xpbd_rig_try_start(rig);
        if (!soft) {
            assert_int_equal(status, RW_STATUS_INVALID_ARGUMENT);
            assert_string_equal(rig->error.path, "attachments[2].s");
            assert_non_null(strstr(rig->error.text, "'pin'"));
        } else {
            // The pin carries body and rod, through the node that the body holds.
            assert_int_equal(status, RW_STATUS_OK);
            xpbd_rig_run(rig, 2000);
            rw_assert_near(xpbd_rig_vector(rig, "body/b/position").z, 0, 1e-3);
            double pin = xpbd_rig_vector(rig, "attachment/pin/force").z;
            double hook = xpbd_rig_vector(rig, "attachment/hook/force").z;
            assert_true(pin > 9.81);
            assert_true(hook < 0 && hook > -20);
        }
        xpbd_rig_close(rig);
    }
}

static void an_element_that_turns_too_far_faults_the_session_by_name(void** state) {
    (void)state;
    xpbd_rig* rig = xpbd_rig_open(1e-3, 2);
    xpbd_rig_rod(rig, "rod", 1, 2, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.01, 1000, 1e6, 0.3);
    xpbd_rig_attach(rig, "left", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_attach(rig, "right", RW_ATTACH_CLAMP, "rod", 1, "");
    const double motion[6] = {-0.5, 0, 0, 12, 0, 0};
    xpbd_rig_ramp(rig, "attachment/right", 1, motion, 6);
    xpbd_rig_start(rig);
    rw_status status = RW_STATUS_OK;
    for (int i = 0; i < 1000 && status == RW_STATUS_OK; i++) {
        status = rw_world_step(rig->world, &rig->error);
    }
    assert_int_equal(status, RW_STATUS_FAULTED);
    assert_non_null(strstr(rig->error.text, "rod/rod"));
    xpbd_rig_close(rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_the_same_on_every_processor),
        cmocka_unit_test(a_restored_world_continues_bit_for_bit),
        cmocka_unit_test(a_warmed_up_step_allocates_nothing),
        cmocka_unit_test(nodes_weigh_what_the_rod_weighs),
        cmocka_unit_test(what_the_rods_cannot_do_is_refused_with_its_path),
        cmocka_unit_test(a_node_is_held_rigidly_once),
        cmocka_unit_test(an_element_that_turns_too_far_faults_the_session_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
