// The world: objects, Set*, signals, snapshots, hash, faults, allocation failures.
#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/world/world.h"
#include "tests/support/rw_world_scenes.h"

static rw_alloc account;

static int setup(void** state) {
    (void)state;
    rw_alloc_init(&account, 0);
    return 0;
}

static int teardown(void** state) {
    (void)state;
    rw_alloc_finish(&account); // nothing leaks
    return 0;
}

typedef void (*scene_maker)(rw_world_scenes* out);

static rw_world* load(scene_maker maker) {
    rw_world_scenes scenes;
    maker(&scenes);
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    if (rw_world_create_from_scene(&config, &scenes.scene, &world, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    return world;
}

static void run(rw_world* world, int steps) {
    rw_error error;
    for (int i = 0; i < steps; i++) {
        if (rw_world_step(world, &error) != RW_STATUS_OK) {
            fail_msg("step %d: %s", i, error.text);
        }
    }
}

static uint64_t hash_of(rw_world* world) {
    uint64_t hash = 0;
    assert_int_equal(rw_world_hash(world, &hash, NULL), RW_STATUS_OK);
    return hash;
}

static const scene_maker makers[] = {rw_world_scenes_bodies, rw_world_scenes_mixed};

static void same_scene_gives_the_same_hash_at_every_step(void** state) {
    (void)state;
    for (size_t m = 0; m < RW_COUNT_OF(makers); m++) {
        rw_world* a = load(makers[m]);
        rw_world* b = load(makers[m]);
        uint64_t last = 0;
        for (int i = 0; i < 50; i++) {
            assert_true(hash_of(a) == hash_of(b));
            assert_true(hash_of(a) != last); // it is not a constant
            last = hash_of(a);
            run(a, 1);
            run(b, 1);
        }
        rw_world_destroy(a);
        rw_world_destroy(b);
    }
}

static void restored_world_continues_bit_for_bit(void** state) {
    (void)state;
    for (size_t m = 0; m < RW_COUNT_OF(makers); m++) {
        rw_world* world = load(makers[m]);
        run(world, 40);
        rw_buffer bytes;
        rw_buffer_init(&bytes, &account);
        rw_error error;
        assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
        rw_world_config config = {.alloc = &account};
        rw_world* copy = NULL;
        if (rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy, &error) !=
            RW_STATUS_OK) {
            fail_msg("%s", error.text);
        }
        for (int i = 0; i < 40; i++) {
            assert_true(hash_of(world) == hash_of(copy));
            run(world, 1);
            run(copy, 1);
        }
        assert_int_equal(rw_world_step_count(copy), 80);
        assert_true(rw_world_time(copy) == rw_world_time(world));
        rw_world_destroy(copy);
        rw_buffer_finish(&bytes);
        rw_world_destroy(world);
    }
}

static void damaged_snapshot_is_refused(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    run(world, 3);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &account);
    rw_error error;
    assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
    rw_world_config config = {.alloc = &account};
    rw_world* copy = NULL;
    for (size_t i = 0; i < bytes.size_bytes; i += 37) {
        bytes.data[i] ^= 0x40;
        assert_int_equal(
            rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy, &error),
            RW_STATUS_DATA_LOSS);
        bytes.data[i] ^= 0x40;
        assert_int_equal(rw_world_create_from_snapshot(&config, bytes.data, i, &copy, &error),
                         RW_STATUS_DATA_LOSS);
    }
    rw_buffer_finish(&bytes);
    rw_world_destroy(world);
}

static void snapshot_of_what_the_solver_does_not_hold_is_refused(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    run(world, 3);
    // As in bytes from a stranger, with a right checksum.
    assert_true(rw_world_model(world)->attachments.count > 0);
    rw_world_model(world)->attachments.items[0].desc.compliance = 1e-3;
    rw_buffer bytes;
    rw_buffer_init(&bytes, &account);
    rw_error error;
    assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
    rw_world_config config = {.alloc = &account};
    rw_world* copy = NULL;
    assert_int_equal(rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy,
                                                   &error),
                     RW_STATUS_UNIMPLEMENTED);
    assert_string_equal(error.path, "compliance");
    rw_buffer_finish(&bytes);
    rw_world_destroy(world);
}

static void warmed_up_step_allocates_nothing(void** state) {
    (void)state;
    for (size_t m = 0; m < RW_COUNT_OF(makers); m++) {
        rw_world* world = load(makers[m]);
        run(world, 2);
        uint64_t calls = account.call_count;
        run(world, 100);
        assert_int_equal(account.call_count, calls);
        rw_world_destroy(world);
    }
}

// Loads, steps, edits and snapshots a world; false when memory ended somewhere, which must leave
// nothing behind.
static bool whole_life(void) {
    rw_world_scenes scenes;
    rw_world_scenes_mixed(&scenes);
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    rw_buffer bytes;
    rw_buffer_init(&bytes, &account);
    bool ok = rw_world_create_from_scene(&config, &scenes.scene, &world, &error) == RW_STATUS_OK;
    rw_body_desc extra = scenes.bodies[0];
    snprintf(extra.name, sizeof extra.name, "extra");
    rw_id id;
    ok = ok && rw_world_create_body(world, &extra, &id, &error) == RW_STATUS_OK;
    ok = ok && rw_world_step(world, &error) == RW_STATUS_OK;
    ok = ok && rw_world_remove(world, RW_KIND_BODY, 4, true, &error) == RW_STATUS_OK;
    ok = ok && rw_world_step(world, &error) == RW_STATUS_OK;
    ok = ok && rw_world_snapshot(world, &bytes, &error) == RW_STATUS_OK;
    rw_world* copy = NULL;
    ok = ok && rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &copy,
                                             &error) == RW_STATUS_OK;
    if (!ok) {
        assert_int_equal(error.status, RW_STATUS_RESOURCE_EXHAUSTED);
    }
    rw_world_destroy(copy);
    rw_world_destroy(world);
    rw_buffer_finish(&bytes);
    return ok;
}

static void failing_the_nth_allocation_leaks_nothing_for_every_n(void** state) {
    (void)state;
    assert_true(whole_life());
    bool passed = false;
    int n = 1;
    for (; n < 100000 && !passed; n++) {
        rw_alloc_fail_after(n);
        passed = whole_life();
        rw_alloc_fail_after(0);
        assert_int_equal(account.used_bytes, 0);
    }
    print_message("%d allocations, each failed once\n", n - 1);
    assert_true(passed);
    assert_true(n > 50);
}

static void removing_a_body_keeps_the_others_and_names_dependents(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    run(world, 5);
    rw_error error;
    int32_t index;
    assert_int_equal(rw_world_find(world, RW_KIND_BODY, 0, "body4", &index, &error), RW_STATUS_OK);
    assert_int_equal(rw_world_remove(world, RW_KIND_BODY, index, false, &error),
                     RW_STATUS_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "left"));
    rw_id stale = rw_world_model(world)->bodies.items[index].id;
    double before[3];
    memcpy(before, &rw_world_state(world)->body_position[3 * 5], sizeof before);
    assert_int_equal(rw_world_remove(world, RW_KIND_BODY, index, true, &error), RW_STATUS_OK);
    assert_int_equal(rw_world_find(world, RW_KIND_BODY, stale, "", &index, &error),
                     RW_STATUS_NOT_FOUND);
    assert_int_equal(rw_world_find(world, RW_KIND_BODY, 0, "body5", &index, &error), RW_STATUS_OK);
    assert_int_equal(index, 4);
    assert_memory_equal(before, &rw_world_state(world)->body_position[3 * 4], sizeof before);
    run(world, 20);
    rw_world_destroy(world);
}

static void removing_a_rod_keeps_the_others_moving_as_without_it(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    rw_error error;
    int32_t index;
    run(world, 5);
    assert_int_equal(rw_world_find(world, RW_KIND_ROD, 0, "rope", &index, &error), RW_STATUS_OK);
    const rw_rod* helix = &rw_world_model(world)->rods.items[2];
    double before[3];
    memcpy(before, &rw_world_state(world)->node_position[3 * (helix->node_first + 7)],
           sizeof before);
    assert_int_equal(rw_world_remove(world, RW_KIND_ROD, index, true, &error), RW_STATUS_OK);
    helix = &rw_world_model(world)->rods.items[1];
    assert_string_equal(helix->desc.name, "helix");
    assert_memory_equal(before,
                        &rw_world_state(world)->node_position[3 * (helix->node_first + 7)],
                        sizeof before);
    run(world, 20);

    rw_world* whole = load(rw_world_scenes_mixed);
    run(whole, 25);
    const rw_rod* twin = &rw_world_model(whole)->rods.items[2];
    helix = &rw_world_model(world)->rods.items[1];
    assert_memory_equal(&rw_world_state(whole)->node_position[3 * twin->node_first],
                        &rw_world_state(world)->node_position[3 * helix->node_first],
                        (size_t)helix->node_count * 3 * sizeof(double));
    rw_world_destroy(whole);
    rw_world_destroy(world);
}

static void second_attachment_on_a_node_is_refused(void** state) {
    (void)state;
    rw_world_scenes scenes;
    rw_world_scenes_mixed(&scenes);
    rw_world* world = load(rw_world_scenes_mixed);
    rw_error error;
    rw_id id;
    rw_attachment_desc second = scenes.attachments[1];
    snprintf(second.name, sizeof second.name, "second");
    second.kind = RW_ATTACH_PIN;
    second.body[0] = '\0';
    uint64_t before = hash_of(world);
    assert_int_equal(rw_world_create_attachment(world, &second, &id, &error),
                     RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "s");
    assert_non_null(strstr(error.text, "left"));
    assert_true(hash_of(world) == before);
    // The node is free again once the first has gone, also after the rows have moved.
    int32_t index;
    assert_int_equal(rw_world_find(world, RW_KIND_ATTACHMENT, 0, "left", &index, &error),
                     RW_STATUS_OK);
    assert_int_equal(rw_world_remove(world, RW_KIND_ATTACHMENT, index, false, &error),
                     RW_STATUS_OK);
    assert_int_equal(rw_world_create_attachment(world, &second, &id, &error), RW_STATUS_OK);
    run(world, 5);
    rw_world_destroy(world);
}

// Three bodies, two joints created one by one; `asks` reads the world between them.
static uint64_t hash_of_a_chain_built_by_hand(bool asks) {
    rw_body_desc bodies[3];
    rw_scene scene;
    rw_scene_init(&scene);
    scene.solver.rigid = RW_SOLVER_DAE;
    for (int i = 0; i < 3; i++) {
        rw_scene_init_body(&bodies[i]);
        snprintf(bodies[i].name, sizeof bodies[i].name, "b%d", i);
        bodies[i].mass = 1 + i;
        bodies[i].inertia[0] = 1;
        bodies[i].inertia[1] = 2;
        bodies[i].inertia[2] = 1.5;
        bodies[i].has_mass = bodies[i].has_inertia = true;
        bodies[i].position[0] = i;
        bodies[i].position[1] = 0.03 * i; // a gap that assembly closes
    }
    scene.bodies = bodies;
    scene.body_count = 3;
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    assert_int_equal(rw_world_create_from_scene(&config, &scene, &world, &error), RW_STATUS_OK);
    for (int i = 0; i < 2; i++) {
        rw_joint_desc joint;
        rw_scene_init_joint(&joint);
        snprintf(joint.name, sizeof joint.name, "j%d", i);
        joint.type = RW_JOINT_SPHERICAL;
        snprintf(joint.child, sizeof joint.child, "b%d", i);
        snprintf(joint.parent, sizeof joint.parent, "b%d", i + 1);
        joint.parent_frame.position[0] = -0.9;
        rw_id id;
        assert_int_equal(rw_world_create_joint(world, &joint, &id, &error), RW_STATUS_OK);
        rw_world_energy energy;
        if (asks) {
            assert_int_equal(rw_world_get_energy(world, &energy, &error), RW_STATUS_OK);
            hash_of(world);
        }
    }
    run(world, 5);
    uint64_t hash = hash_of(world);
    rw_world_destroy(world);
    return hash;
}

static void asking_between_two_new_joints_changes_nothing(void** state) {
    (void)state;
    assert_true(hash_of_a_chain_built_by_hand(true) == hash_of_a_chain_built_by_hand(false));
}

// ---- Signals -----------------------------------------------------------------------------------

static rw_status resolve(rw_world* world, const char* glob, rw_signal_set* set, rw_error* error) {
    const char* const globs[] = {glob};
    return rw_world_resolve_signals(world, globs, 1, set, error);
}

static void globs_match_one_part_and_come_in_creation_order(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    rw_signal_set set;
    rw_error error;
    assert_int_equal(resolve(world, "body/*/position", &set, &error), RW_STATUS_OK);
    assert_int_equal(set.count, 8);
    assert_int_equal(set.width, 24);
    assert_string_equal(set.items[3].name, "body/body3/position");
    assert_int_equal(set.items[3].offset, 9);
    rw_world_release_signals(world, &set);
    assert_int_equal(resolve(world, "rod/rope/node/*/position", &set, &error), RW_STATUS_OK);
    assert_int_equal(set.count, 11);
    rw_world_release_signals(world, &set);
    assert_int_equal(resolve(world, "rod/*/node/10/velocity", &set, &error), RW_STATUS_OK);
    assert_int_equal(set.count, 3);
    rw_world_release_signals(world, &set);
    assert_int_equal(resolve(world, "rod/cantilever/at/0.25/rotation", &set, &error),
                     RW_STATUS_OK);
    assert_int_equal(set.width, 4);
    assert_string_equal(set.items[0].name, "rod/cantilever/at/0.25/rotation");
    rw_world_release_signals(world, &set);
    assert_int_equal(resolve(world, "*/*/energy", &set, &error), RW_STATUS_OK);
    assert_int_equal(set.count, 3); // the rods'
    rw_world_release_signals(world, &set);
    static const char* const none[] = {"",          "body",       "body/nobody/position",
                                       "body/*",    "world/tide", "rod/rope/node/11/position",
                                       "rod/rope/at/1.5/position", "body//position",
                                       "rod/rope/node/-1/position", "rod/rope/node/1x/position"};
    for (size_t i = 0; i < RW_COUNT_OF(none); i++) {
        assert_int_equal(resolve(world, none[i], &set, &error), RW_STATUS_NOT_FOUND);
        assert_string_equal(error.path, "signals[0]");
    }
    rw_world_destroy(world);
}

static void every_signal_reads_finite_values(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    run(world, 20);
    static const char* const globs[] = {"world/*",          "world/*/*",      "body/*/*",
                                        "rod/*/node/*/*",   "rod/*/energy",   "rod/*/length",
                                        "rod/*/max_strain", "rod/*/residual", "rod/*/element/*/*",
                                        "rod/*/at/0.5/*",   "attachment/*/*"};
    rw_signal_set set;
    rw_error error;
    if (rw_world_resolve_signals(world, globs, RW_COUNT_OF(globs), &set, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    double* values = test_malloc((size_t)set.width * sizeof *values);
    assert_int_equal(rw_world_read_signals(world, &set, values, &error), RW_STATUS_OK);
    for (int32_t i = 0; i < set.count; i++) {
        assert_true(set.items[i].unit[0] != '\0'); // "1" for pure numbers
        for (int32_t k = 0; k < set.items[i].width; k++) {
            if (!isfinite(values[set.items[i].offset + k])) {
                fail_msg("%s is not finite", set.items[i].name);
            }
        }
    }
    test_free(values);
    rw_world_release_signals(world, &set);
    rw_world_destroy(world);
}

static void signals_resolved_before_a_topology_change_are_refused(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_bodies);
    rw_signal_set set;
    rw_error error;
    assert_int_equal(resolve(world, "body/*/position", &set, &error), RW_STATUS_OK);
    assert_int_equal(rw_world_remove(world, RW_KIND_FORCE, 0, false, &error), RW_STATUS_OK);
    double values[24];
    assert_int_equal(rw_world_read_signals(world, &set, values, &error),
                     RW_STATUS_FAILED_PRECONDITION);
    rw_world_release_signals(world, &set);
    rw_world_destroy(world);
}

// ---- Set*, wrenches, faults --------------------------------------------------------------------

static void set_is_visible_before_any_step_and_parts_left_out_stay(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_bodies);
    rw_error error;
    rw_body_set set = {.has_position = true, .position = {7, 8, 9}};
    assert_int_equal(rw_world_set_body(world, 1, &set, &error), RW_STATUS_OK);
    rw_signal_set signals;
    const char* const globs[] = {"body/body1/position", "body/body1/linear_velocity",
                                 "body/body1/angular_velocity"};
    assert_int_equal(rw_world_resolve_signals(world, globs, 3, &signals, &error), RW_STATUS_OK);
    double values[9];
    assert_int_equal(rw_world_read_signals(world, &signals, values, &error), RW_STATUS_OK);
    const double expected[9] = {7, 8, 9, 0, 0, 0.5, 0, 2, 0};
    for (int i = 0; i < 9; i++) {
        rw_assert_near(values[i], expected[i], 1e-14);
    }
    rw_world_release_signals(world, &signals);
    rw_body_set bad = {.has_rotation = true, .rotation = {0, 0, 0, 0}};
    uint64_t before = hash_of(world);
    assert_int_equal(rw_world_set_body(world, 1, &bad, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "rotation");
    rw_body_set half_bad = {.has_position = true, .has_mass = true, .mass = -1};
    assert_int_equal(rw_world_set_body(world, 1, &half_bad, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_true(hash_of(world) == before); // all or nothing
    rw_world_destroy(world);
}

static void half_good_set_of_a_joint_changes_nothing(void** state) {
    (void)state;
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    assert_int_equal(rw_world_create(&config, &world, &error), RW_STATUS_OK);
    rw_body_desc body;
    rw_scene_init_body(&body);
    strcpy(body.name, "door");
    body.has_mass = body.has_inertia = true;
    body.mass = body.inertia[0] = body.inertia[1] = body.inertia[2] = 1;
    rw_joint_desc joint;
    rw_scene_init_joint(&joint);
    strcpy(joint.name, "hinge");
    strcpy(joint.child, "door");
    joint.type = RW_JOINT_REVOLUTE;
    joint.motor = (rw_motor_desc){.mode = RW_MOTOR_POSITION, .stiffness = 1};
    rw_id id;
    assert_int_equal(rw_world_create_body(world, &body, &id, &error), RW_STATUS_OK);
    assert_int_equal(rw_world_create_joint(world, &joint, &id, &error), RW_STATUS_OK);
    uint64_t before = hash_of(world);
    static const double target[2] = {0.5, 0.5};
    rw_joint_set set = {.motor_target = {target, 1}, .has_damping = true, .damping = -1};
    assert_int_equal(rw_world_set_joint(world, 0, &set, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "damping");
    assert_true(hash_of(world) == before);
    set = (rw_joint_set){.motor_target = {target, 1}, .coordinate = {target, 2}};
    assert_int_equal(rw_world_set_joint(world, 0, &set, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "coordinate");
    assert_true(hash_of(world) == before);
    set.coordinate.count = 1;
    assert_int_equal(rw_world_set_joint(world, 0, &set, &error), RW_STATUS_OK);
    assert_true(hash_of(world) != before);
    rw_world_destroy(world);
}

static void another_solver_without_memory_changes_nothing(void** state) {
    (void)state;
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    assert_int_equal(rw_world_create(&config, &world, &error), RW_STATUS_OK);
    uint64_t before = hash_of(world);
    rw_world_set set = {.has_gravity = true, .gravity = {1, 2, 3}, .has_solver = true,
                        .solver = rw_world_model(world)->solver};
    set.solver.rigid = RW_SOLVER_DAE;
    set.solver.rods = RW_SOLVER_SCR;
    int failures = 0;
    for (;; failures++) {
        rw_alloc_fail_after(failures + 1);
        rw_status status = rw_world_set_options(world, &set, &error);
        rw_alloc_fail_after(0);
        if (status == RW_STATUS_OK) {
            break;
        }
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
        assert_true(hash_of(world) == before);
    }
    assert_true(failures > 0);
    run(world, 1);
    assert_true(hash_of(world) != before);
    rw_world_destroy(world);
}

static void changing_the_time_step_keeps_time_continuous(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_bodies);
    rw_error error;
    run(world, 1000);
    rw_assert_near(rw_world_time(world), 1.0, 0);
    rw_world_set set = {.has_time_step = true, .time_step = 0.002};
    assert_int_equal(rw_world_set_options(world, &set, &error), RW_STATUS_OK);
    rw_assert_near(rw_world_time(world), 1.0, 0);
    run(world, 500);
    rw_assert_near(rw_world_time(world), 2.0, 0);
    rw_world_destroy(world);
}

static void applied_wrench_lasts_its_steps_and_several_add_up(void** state) {
    (void)state;
    rw_world_scenes scenes;
    rw_world_scenes_bodies(&scenes);
    scenes.scene.body_count = 1;
    scenes.scene.force_count = 0;
    memset(scenes.scene.gravity, 0, sizeof scenes.scene.gravity);
    memset(scenes.bodies[0].angular_velocity, 0, sizeof scenes.bodies[0].angular_velocity);
    rw_world_config config = {.alloc = &account};
    rw_world* world = NULL;
    rw_error error;
    assert_int_equal(rw_world_create_from_scene(&config, &scenes.scene, &world, &error),
                     RW_STATUS_OK);
    rw_applied_wrench wrench = {.body = 0, .rod = -1, .node = -1, .force = {2, 0, 0},
                                .steps_left = 10};
    assert_int_equal(rw_world_apply_wrench(world, &wrench, &error), RW_STATUS_OK);
    assert_int_equal(rw_world_apply_wrench(world, &wrench, &error), RW_STATUS_OK);
    run(world, 50);
    double v = rw_world_state(world)->body_linear_velocity[0];
    rw_assert_near(v, 2 * 2 * 0.010 / scenes.bodies[0].mass, 1e-12);
    wrench.steps_left = -1;
    assert_int_equal(rw_world_apply_wrench(world, &wrench, &error), RW_STATUS_OK);
    run(world, 100);
    rw_world_clear_wrenches(world, 0, -1);
    run(world, 100);
    rw_assert_near(rw_world_state(world)->body_linear_velocity[0],
                   v + 2 * 0.1 / scenes.bodies[0].mass, 1e-12);
    // What acts for no step at all leaves nothing behind, not even in a snapshot.
    v = rw_world_state(world)->body_linear_velocity[0];
    wrench.steps_left = 0;
    assert_int_equal(rw_world_apply_wrench(world, &wrench, &error), RW_STATUS_OK);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &account);
    assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
    rw_world* twin = NULL;
    assert_int_equal(rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &twin,
                                                   &error),
                     RW_STATUS_OK);
    rw_buffer_finish(&bytes);
    rw_world_destroy(twin);
    run(world, 1);
    rw_assert_near(rw_world_state(world)->body_linear_velocity[0], v, 1e-12);
    rw_world_destroy(world);
}

// A world with such a rod would refuse every later command: its solver cannot be prepared.
static void rod_whose_elements_turn_too_far_is_refused_when_created(void** state) {
    (void)state;
    rw_world_scenes scenes;
    rw_world_scenes_mixed(&scenes);
    rw_world* world = load(rw_world_scenes_bodies);
    uint64_t before = hash_of(world);
    rw_rod_desc helix = scenes.rods[2];
    helix.elements = 4;
    // About half a turn, a whole one (whose ends look alike) and seven per element.
    static const double turns[] = {1.98, 3.96, 28};
    for (size_t i = 0; i < RW_COUNT_OF(turns); i++) {
        helix.helix.turns = turns[i];
        rw_error error;
        rw_id id;
        assert_int_equal(rw_world_create_rod(world, &helix, &id, &error),
                         RW_STATUS_INVALID_ARGUMENT);
        assert_string_equal(error.path, "elements");
    }
    run(world, 1);
    rw_world* other = load(rw_world_scenes_bodies);
    assert_true(hash_of(other) == before);
    run(other, 1);
    assert_true(hash_of(other) == hash_of(world));
    rw_world_destroy(other);
    rw_world_destroy(world);
}

static void exploding_body_faults_and_the_last_good_state_is_kept(void** state) {
    (void)state;
    rw_world* world = load(rw_world_scenes_mixed);
    rw_error error;
    run(world, 10);
    rw_body_set set = {.has_linear_velocity = true, .linear_velocity = {1e20, 0, 0}};
    assert_int_equal(rw_world_set_body(world, 5, &set, &error), RW_STATUS_OK);
    uint64_t before = hash_of(world);
    assert_int_equal(rw_world_step(world, &error), RW_STATUS_FAULTED);
    assert_non_null(strstr(error.text, "step 11"));
    assert_true(rw_world_is_faulted(world));
    assert_int_equal(rw_world_step(world, &error), RW_STATUS_FAULTED);
    assert_int_equal(rw_world_step_count(world), 10);
    assert_true(hash_of(world) == before);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &account);
    assert_int_equal(rw_world_snapshot(world, &bytes, &error), RW_STATUS_OK);
    rw_buffer_finish(&bytes);
    rw_world_destroy(world);
}

static void cancelled_step_leaves_the_world_as_it_was(void** state) {
    (void)state;
    static atomic_bool cancel;
    rw_world_scenes scenes;
    rw_world_scenes_mixed(&scenes);
    rw_world_config config = {.alloc = &account, .cancel = &cancel};
    rw_world* world = NULL;
    rw_error error;
    assert_int_equal(rw_world_create_from_scene(&config, &scenes.scene, &world, &error),
                     RW_STATUS_OK);
    run(world, 10);
    uint64_t before = hash_of(world);
    atomic_store(&cancel, true);
    assert_int_equal(rw_world_step(world, &error), RW_STATUS_CANCELLED);
    assert_true(hash_of(world) == before);
    atomic_store(&cancel, false);
    rw_world* twin = load(rw_world_scenes_mixed);
    run(twin, 30);
    run(world, 20);
    assert_true(hash_of(world) == hash_of(twin));
    rw_world_destroy(twin);
    rw_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_scene_gives_the_same_hash_at_every_step),
        cmocka_unit_test(restored_world_continues_bit_for_bit),
        cmocka_unit_test(damaged_snapshot_is_refused),
        cmocka_unit_test(snapshot_of_what_the_solver_does_not_hold_is_refused),
        cmocka_unit_test(warmed_up_step_allocates_nothing),
        cmocka_unit_test(failing_the_nth_allocation_leaks_nothing_for_every_n),
        cmocka_unit_test(removing_a_body_keeps_the_others_and_names_dependents),
        cmocka_unit_test(removing_a_rod_keeps_the_others_moving_as_without_it),
        cmocka_unit_test(second_attachment_on_a_node_is_refused),
        cmocka_unit_test(asking_between_two_new_joints_changes_nothing),
        cmocka_unit_test(globs_match_one_part_and_come_in_creation_order),
        cmocka_unit_test(every_signal_reads_finite_values),
        cmocka_unit_test(signals_resolved_before_a_topology_change_are_refused),
        cmocka_unit_test(set_is_visible_before_any_step_and_parts_left_out_stay),
        cmocka_unit_test(half_good_set_of_a_joint_changes_nothing),
        cmocka_unit_test(another_solver_without_memory_changes_nothing),
        cmocka_unit_test(changing_the_time_step_keeps_time_continuous),
        cmocka_unit_test(applied_wrench_lasts_its_steps_and_several_add_up),
        cmocka_unit_test(rod_whose_elements_turn_too_far_is_refused_when_created),
        cmocka_unit_test(exploding_body_faults_and_the_last_good_state_is_kept),
        cmocka_unit_test(cancelled_step_leaves_the_world_as_it_was),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
