#include "tests/support/rw_test.h"

#include "solvers/base/clock.h"
#include "solvers/model/model.h"
#include "tests/support/full_scene.h"

static full_scene scene;
static rw_alloc alloc;
static rw_model model;

static int begin(void** state) {
    (void)state;
    full_scene_init(&scene);
    rw_alloc_init(&alloc, 0);
    rw_model_init(&model, &alloc);
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_model_finish(&model);
    rw_alloc_finish(&alloc); // checks that nothing is left
    return 0;
}

static void load(void) {
    rw_error error = {0};
    if (rw_model_load(&model, &scene.scene, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
}

static int32_t index_of(rw_kind kind, const char* name) {
    int32_t index;
    rw_model_find(&model, kind, RW_ID_NONE, name, &index, NULL);
    return index;
}

// Ids, names, references and layouts agree with each other.
static void check_consistency(void) {
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        rw_kind kind = (rw_kind)k;
        assert_int_equal(model.ids[k].live_count, rw_model_count(&model, kind));
        assert_int_equal(model.names[k].count, rw_model_count(&model, kind));
        for (int32_t i = 0; i < rw_model_count(&model, kind); i++) {
            assert_int_equal(rw_id_pool_find(&model.ids[k], rw_model_id(&model, kind, i)), i);
            assert_int_equal(index_of(kind, rw_model_name(&model, kind, i)), i);
        }
    }
    for (int32_t i = 0; i < model.joints.count; i++) {
        const rw_joint* joint = &model.joints.items[i];
        assert_int_equal(joint->parent, index_of(RW_KIND_BODY, joint->desc.parent));
        assert_int_equal(joint->child, index_of(RW_KIND_BODY, joint->desc.child));
    }
    for (int32_t i = 0; i < model.couplings.count; i++) {
        const rw_joint_coupling* coupling = &model.couplings.items[i];
        assert_int_equal(coupling->joint_a, index_of(RW_KIND_JOINT, coupling->desc.joint_a));
        assert_int_equal(coupling->joint_b, index_of(RW_KIND_JOINT, coupling->desc.joint_b));
    }
    for (int32_t i = 0; i < model.attachments.count; i++) {
        const rw_attachment* attachment = &model.attachments.items[i];
        assert_int_equal(attachment->rod, index_of(RW_KIND_ROD, attachment->desc.rod));
        assert_int_equal(attachment->body, index_of(RW_KIND_BODY, attachment->desc.body));
    }
    int32_t nodes = 0, frames = 0;
    for (int32_t i = 0; i < model.rods.count; i++) {
        assert_int_equal(model.rods.items[i].node_first, nodes);
        assert_int_equal(model.rods.items[i].frame_first, frames);
        nodes += model.rods.items[i].node_count;
        frames += model.rods.items[i].frame_count;
    }
    assert_int_equal(model.rods.node_count, nodes);
    assert_int_equal(model.rods.frame_count, frames);
}

static void references_and_derived_values_are_resolved(void** state) {
    (void)state;
    load();
    check_consistency();
    assert_int_equal(model.joints.items[0].parent, -1);
    assert_int_equal(model.joints.items[1].child, index_of(RW_KIND_BODY, "ball"));
    assert_int_equal(model.joints.coordinate_count, 1 + 4 + 1 + 0);
    assert_int_equal(model.joints.rate_count, 1 + 3 + 1 + 0);
    assert_int_equal(model.joints.items[2].coordinate_first, 5);
    assert_int_equal(model.rods.items[0].node_count, 5);
    assert_int_equal(model.rods.items[1].node_count, 37);
    assert_int_equal(model.rods.items[2].node_first, 42);
    assert_int_equal(model.attachments.items[0].node, 0);
    assert_int_equal(model.attachments.items[1].node, 3); // s = 0.75 of a bent line
    assert_int_equal(model.attachments.items[2].node, 3);
    assert_int_equal(model.forces.items[1].a.node, 4);
    assert_int_equal(model.forces.items[3].a.body, index_of(RW_KIND_BODY, "ball"));
    assert_int_equal(model.inputs.items[3].width, 6);
    assert_int_equal(model.inputs.items[4].width, 1);
    assert_non_null(model.inputs.items[4].slope);
    // mass: given, from shapes, none for kinematic and static bodies
    rw_assert_near(model.bodies.mass[0], 1, 0);
    double volume = 4.0 / 3 * M_PI * 1e-3 + 8 * 0.006 + 1.0 / 6;
    rw_assert_near(model.bodies.mass[1], 700 * volume + 800 * M_PI * 0.04, 1e-10);
    rw_assert_near(model.bodies.inverse_mass[2], 0, 0);
    // inverse inertia is the inverse
    const double* a = model.bodies.inertia;
    const double* b = model.bodies.inverse_inertia;
    rw_assert_near(a[0] * b[0] + a[3] * b[3] + a[4] * b[4], 1, 1e-13);
    rw_assert_near(a[0] * b[3] + a[3] * b[1] + a[4] * b[5], 0, 1e-13);
    rw_assert_near(a[4] * b[4] + a[5] * b[5] + a[2] * b[2], 1, 1e-13);
}

static void a_place_along_a_rod_is_the_nearest_node_the_lower_of_two(void** state) {
    (void)state;
    load();
    assert_int_equal(rw_model_node_at(&model, 0, 0), 0); // cable: five nodes
    assert_int_equal(rw_model_node_at(&model, 0, 1), 4);
    assert_int_equal(rw_model_node_at(&model, 0, 0.36), 1);
    assert_int_equal(rw_model_node_at(&model, 0, 0.375), 1);
    assert_int_equal(rw_model_node_at(&model, 0, 0.39), 2);
    assert_int_equal(rw_model_node_at(&model, 2, 0), 0); // line: unequal segments
    assert_int_equal(rw_model_node_at(&model, 2, 1), model.rods.items[2].node_count - 1);
    assert_int_equal(rw_model_node_at(&model, 3, 0.5), -1); // net: a graph
}

static void the_model_owns_copies_of_all_arrays(void** state) {
    (void)state;
    load();
    double expected = scene.cable_radius[2];
    memset(&scene, 0xff, sizeof scene);
    rw_assert_near(model.rods.items[0].desc.section_radius.data[2], expected, 0);
    rw_assert_near(model.bodies.items[1].desc.shapes[1].half_extents[1], 0.2, 0);
    assert_int_equal(model.rods.items[3].desc.graph.segments.data[5], 3);
    rw_assert_near(model.inputs.items[0].desc.value.data[3], 10, 0);
}

static void describe_and_load_again_gives_the_same_description(void** state) {
    (void)state;
    load();
    rw_arena arena;
    rw_arena_init(&arena, &alloc);
    rw_scene described;
    assert_int_equal(rw_model_describe(&model, &arena, &described, NULL), RW_STATUS_OK);
    rw_model again;
    rw_model_init(&again, &alloc);
    assert_int_equal(rw_model_load(&again, &described, NULL), RW_STATUS_OK);
    rw_scene twice;
    assert_int_equal(rw_model_describe(&again, &arena, &twice, NULL), RW_STATUS_OK);
    assert_int_equal(twice.rod_count, described.rod_count);
    assert_memory_equal(&twice.solver, &described.solver, sizeof twice.solver);
    assert_memory_equal(twice.joints, described.joints,
                        twice.joint_count * sizeof *twice.joints);
    assert_memory_equal(twice.attachments, described.attachments,
                        twice.attachment_count * sizeof *twice.attachments);
    assert_memory_equal(twice.rods[2].polyline.rotations.data,
                        described.rods[2].polyline.rotations.data, 20 * sizeof(double));
    rw_model_finish(&again);
    rw_arena_finish(&arena);
}

static void a_stale_id_is_not_found_for_ever(void** state) {
    (void)state;
    load();
    int32_t gust = index_of(RW_KIND_INPUT, "gust");
    rw_id id = rw_model_id(&model, RW_KIND_INPUT, gust);
    rw_removal removal;
    assert_int_equal(rw_model_removal_plan(&model, RW_KIND_INPUT, gust, false, &removal, NULL),
                     RW_STATUS_OK);
    rw_model_removal_apply(&model, &removal);
    rw_model_removal_finish(&removal);
    rw_id fresh;
    assert_int_equal(rw_model_add_input(&model, &scene.inputs[0], &fresh, NULL), RW_STATUS_OK);
    assert_true(fresh != id);
    int32_t index;
    rw_error error;
    assert_int_equal(rw_model_find(&model, RW_KIND_INPUT, id, NULL, &index, &error),
                     RW_STATUS_NOT_FOUND);
    assert_string_equal(error.path, "id");
    assert_int_equal(rw_model_find(&model, RW_KIND_INPUT, fresh, NULL, &index, NULL), RW_STATUS_OK);
    assert_int_equal(index, model.inputs.count - 1);
}

static void removing_what_is_used_names_the_dependents(void** state) {
    (void)state;
    load();
    rw_removal removal;
    rw_error error;
    uint64_t revision = model.topology_revision;
    assert_int_equal(rw_model_removal_plan(&model, RW_KIND_BODY, index_of(RW_KIND_BODY, "link"),
                                           false, &removal, &error),
                     RW_STATUS_FAILED_PRECONDITION);
    rw_model_removal_finish(&removal);
    assert_non_null(strstr(error.text, "joint/shoulder"));
    assert_non_null(strstr(error.text, "joint/wrist"));
    assert_non_null(strstr(error.text, "attachment/grip"));
    assert_non_null(strstr(error.text, "force/spring"));
    assert_int_equal(model.topology_revision, revision);
    check_consistency();
}

static void cascade_takes_all_dependents_and_renews_indices(void** state) {
    (void)state;
    load();
    rw_applied_wrench on_link = {.body = 0, .rod = -1, .node = -1, .steps_left = 5};
    rw_applied_wrench on_ball = {.body = 1, .rod = -1, .node = -1, .steps_left = 5};
    assert_int_equal(rw_model_add_wrench(&model, &on_link), RW_STATUS_OK);
    assert_int_equal(rw_model_add_wrench(&model, &on_ball), RW_STATUS_OK);
    rw_removal removal;
    assert_int_equal(rw_model_removal_plan(&model, RW_KIND_BODY, 0, true, &removal, NULL),
                     RW_STATUS_OK);
    assert_int_equal(removal.removed_count[RW_KIND_BODY], 1);
    assert_int_equal(removal.removed_count[RW_KIND_JOINT], 2);      // shoulder, wrist
    assert_int_equal(removal.removed_count[RW_KIND_COUPLING], 1);   // gear
    assert_int_equal(removal.removed_count[RW_KIND_ATTACHMENT], 1); // grip
    assert_int_equal(removal.removed_count[RW_KIND_FORCE], 1);      // spring
    assert_int_equal(removal.removed_count[RW_KIND_INPUT], 2);      // move, drive
    assert_null(removal.new_index[RW_KIND_ROD]);
    assert_int_equal(removal.new_index[RW_KIND_BODY][0], -1);
    assert_int_equal(removal.new_index[RW_KIND_BODY][3], 2);
    double ball_mass = model.bodies.mass[1];
    rw_model_removal_apply(&model, &removal);
    rw_model_removal_finish(&removal);
    check_consistency();
    assert_int_equal(model.bodies.count, 3);
    rw_assert_near(model.bodies.mass[0], ball_mass, 0);
    assert_int_equal(model.joints.count, 2);
    assert_string_equal(model.joints.items[0].desc.name, "slide");
    assert_int_equal(model.joints.items[0].coordinate_first, 0);
    assert_int_equal(model.joints.coordinate_count, 1);
    assert_int_equal(model.inputs.items[index_of(RW_KIND_INPUT, "turn")].index,
                     index_of(RW_KIND_BODY, "mover"));
    assert_int_equal(model.inputs.items[index_of(RW_KIND_INPUT, "pull")].index,
                     index_of(RW_KIND_FORCE, "tip_load"));
    assert_int_equal(model.applied.count, 1);
    assert_int_equal(model.applied.items[0].body, 0);
}

static void removing_a_rod_moves_the_rows_of_the_others(void** state) {
    (void)state;
    load();
    for (int32_t i = 0; i < model.rods.count; i++) {
        rw_model_set_rod_layout(&model, i, model.rods.items[i].node_count - 1, 1);
    }
    rw_removal removal;
    assert_int_equal(rw_model_removal_plan(&model, RW_KIND_ROD, 1, false, &removal, NULL),
                     RW_STATUS_OK);
    rw_model_removal_apply(&model, &removal);
    rw_model_removal_finish(&removal);
    check_consistency();
    assert_int_equal(model.rods.items[1].node_first, 5);
    assert_int_equal(model.rods.items[1].frame_first, 4);
    assert_int_equal(model.rods.node_count, 5 + 5 + 4);
    assert_int_equal(model.rods.frame_count, 4 + 4 + 3);
}

static void a_name_is_free_again_after_removal(void** state) {
    (void)state;
    load();
    for (int round = 0; round < 3; round++) {
        rw_removal removal;
        assert_int_equal(rw_model_removal_plan(&model, RW_KIND_FORCE,
                                               index_of(RW_KIND_FORCE, "air"), true, &removal,
                                               NULL),
                         RW_STATUS_OK);
        rw_model_removal_apply(&model, &removal);
        rw_model_removal_finish(&removal);
        assert_int_equal(rw_model_add_force(&model, &scene.forces[3], NULL, NULL), RW_STATUS_OK);
        check_consistency();
    }
}

static void remove_last_leaves_no_trace(void** state) {
    (void)state;
    load();
    rw_scene_init_body(&scene.bodies[0]);
    snprintf(scene.bodies[0].name, RW_NAME_CAPACITY, "extra");
    scene.bodies[0].kind = RW_BODY_STATIC;
    rw_id first, second;
    assert_int_equal(rw_model_add_body(&model, &scene.bodies[0], &first, NULL), RW_STATUS_OK);
    rw_model_remove_last(&model, RW_KIND_BODY);
    check_consistency();
    assert_int_equal(rw_model_add_body(&model, &scene.bodies[0], &second, NULL), RW_STATUS_OK);
    assert_true(first == second);
}

static void replacing_parameters_keeps_id_and_refuses_what_is_fixed(void** state) {
    (void)state;
    load();
    rw_id id = rw_model_id(&model, RW_KIND_ROD, 0);
    rw_rod_desc desc = model.rods.items[0].desc;
    desc.young_modulus = 7e6;
    uint64_t calls = alloc.call_count;
    assert_int_equal(rw_model_replace_rod(&model, 0, &desc, NULL), RW_STATUS_OK);
    assert_int_equal(alloc.call_count, calls); // same arrays: nothing copied
    rw_assert_near(model.rods.items[0].desc.young_modulus, 7e6, 0);
    double curvature[3] = {1, 2, 3};
    desc.rest_curvature = (rw_doubles){curvature, 3};
    assert_int_equal(rw_model_replace_rod(&model, 0, &desc, NULL), RW_STATUS_OK);
    curvature[1] = 0;
    rw_assert_near(model.rods.items[0].desc.rest_curvature.data[1], 2, 0);
    assert_true(rw_model_id(&model, RW_KIND_ROD, 0) == id);

    rw_error error;
    desc = model.rods.items[0].desc;
    desc.elements = 5;
    assert_int_equal(rw_model_replace_rod(&model, 0, &desc, &error), RW_STATUS_FAILED_PRECONDITION);
    assert_string_equal(error.path, "elements");
    rw_body_desc body = model.bodies.items[0].desc;
    body.mass = -1;
    assert_int_equal(rw_model_replace_body(&model, 0, &body, &error), RW_STATUS_INVALID_ARGUMENT);
    rw_assert_near(model.bodies.mass[0], 1, 0);
    body.mass = 4;
    assert_int_equal(rw_model_replace_body(&model, 0, &body, &error), RW_STATUS_OK);
    rw_assert_near(model.bodies.inverse_mass[0], 0.25, 0);
    rw_force_desc force = model.forces.items[0].desc;
    snprintf(force.spring_damper.a.body, RW_NAME_CAPACITY, "ball");
    assert_int_equal(rw_model_replace_force(&model, 0, &force, &error),
                     RW_STATUS_FAILED_PRECONDITION);
}

static void graphs_with_a_lone_vertex_need_masses(void** state) {
    (void)state;
    rw_rod_desc desc = scene.rods[3];
    desc.graph.segments.count = 4; // vertex 3 is left alone
    desc.graph.bends.count = 2;
    desc.graph.segment_stiffness.count = desc.graph.segment_rest_lengths.count = 2;
    desc.graph.segment_rotations.count = 8;
    desc.graph.bend_stiffness.count = 1;
    desc.graph.bend_rest_rotations.count = 4;
    assert_int_equal(rw_model_add_rod(&model, &desc, NULL, NULL), RW_STATUS_OK);
    snprintf(desc.name, RW_NAME_CAPACITY, "other");
    desc.graph.vertex_masses.count = 0;
    desc.density = 1000;
    double radius = 0.01;
    desc.section_radius = (rw_doubles){&radius, 1};
    rw_error error;
    assert_int_equal(rw_model_add_rod(&model, &desc, NULL, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "graph.vertex_masses");
}

static void wrenches_expire_after_their_steps(void** state) {
    (void)state;
    rw_applied_wrench once = {.body = 0, .rod = -1, .steps_left = 1};
    rw_applied_wrench always = {.body = -1, .rod = 0, .steps_left = -1};
    for (int i = 0; i < 20; i++) {
        once.steps_left = i + 1;
        assert_int_equal(rw_model_add_wrench(&model, &once), RW_STATUS_OK);
    }
    assert_int_equal(rw_model_add_wrench(&model, &always), RW_STATUS_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(model.applied.count, 21 - i);
        rw_model_expire_wrenches(&model);
    }
    assert_int_equal(model.applied.count, 1);
    rw_model_clear_wrenches(&model, 0, -1);
    assert_int_equal(model.applied.count, 1);
    rw_model_clear_wrenches(&model, -1, 0);
    assert_int_equal(model.applied.count, 0);
}

static void add_anything(rw_kind kind, rw_status* status) {
    switch (kind) {
    case RW_KIND_BODY: *status = rw_model_add_body(&model, &scene.bodies[1], NULL, NULL); break;
    case RW_KIND_JOINT: *status = rw_model_add_joint(&model, &scene.joints[0], NULL, NULL); break;
    case RW_KIND_COUPLING:
        *status = rw_model_add_coupling(&model, &scene.couplings[0], NULL, NULL);
        break;
    case RW_KIND_ROD: *status = rw_model_add_rod(&model, &scene.rods[3], NULL, NULL); break;
    case RW_KIND_ATTACHMENT:
        *status = rw_model_add_attachment(&model, &scene.attachments[0], NULL, NULL);
        break;
    case RW_KIND_FORCE: *status = rw_model_add_force(&model, &scene.forces[0], NULL, NULL); break;
    case RW_KIND_INPUT: *status = rw_model_add_input(&model, &scene.inputs[4], NULL, NULL); break;
    case RW_KIND_COUNT: break;
    }
}

static void every_creation_is_all_or_nothing_when_any_allocation_fails(void** state) {
    (void)state;
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        rw_kind kind = (rw_kind)k;
        int failures = 0;
        for (int64_t n = 1;; n++) {
            end(NULL);
            begin(NULL);
            load();
            // The object under test goes first, so that adding it is the thing that is tried; the
            // tables are full, so that everything has to grow.
            rw_removal removal;
            static const char* const names[] = {"ball", "shoulder", "gear", "net",
                                                "grip", "spring",   "drive"};
            rw_model_removal_plan(&model, kind, index_of(kind, names[k]), true, &removal, NULL);
            rw_model_removal_apply(&model, &removal);
            rw_model_removal_finish(&removal);
            for (int32_t i = 0; kind == RW_KIND_BODY && model.bodies.count < model.bodies.capacity;
                 i++) {
                rw_body_desc filler;
                rw_scene_init_body(&filler);
                filler.kind = RW_BODY_STATIC;
                snprintf(filler.name, sizeof filler.name, "filler%d", i);
                assert_int_equal(rw_model_add_body(&model, &filler, NULL, NULL), RW_STATUS_OK);
            }
            int32_t count = rw_model_count(&model, kind);
            rw_status status = RW_STATUS_OK;
            rw_alloc_fail_after(n);
            add_anything(kind, &status);
            rw_alloc_fail_after(0);
            check_consistency();
            if (status == RW_STATUS_OK) {
                assert_int_equal(rw_model_count(&model, kind), count + 1);
                break;
            }
            failures++;
            assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
            assert_int_equal(rw_model_count(&model, kind), count);
            assert_int_equal(index_of(kind, names[k]), -1);
            add_anything(kind, &status);
            assert_int_equal(status, RW_STATUS_OK);
        }
        if (kind == RW_KIND_BODY) {
            assert_true(failures >= 8); // seven arrays, the record's block
        }
    }
}

static void loading_survives_every_failing_allocation(void** state) {
    (void)state;
    for (int64_t n = 1;; n++) {
        end(NULL); // nothing may have leaked
        begin(NULL);
        rw_alloc_fail_after(n);
        rw_status status = rw_model_load(&model, &scene.scene, NULL);
        rw_alloc_fail_after(0);
        if (status == RW_STATUS_OK) {
            assert_true(n > 20);
            return;
        }
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
    }
}

static void planning_a_removal_survives_every_failing_allocation(void** state) {
    (void)state;
    load();
    for (int64_t n = 1;; n++) {
        rw_removal removal;
        rw_alloc_fail_after(n);
        rw_status status = rw_model_removal_plan(&model, RW_KIND_BODY, 0, true, &removal, NULL);
        rw_alloc_fail_after(0);
        rw_model_removal_finish(&removal);
        check_consistency();
        if (status == RW_STATUS_OK) {
            assert_true(n > 5);
            return;
        }
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
    }
}

static void a_hundred_thousand_creations_are_linear(void** state) {
    (void)state;
    rw_body_desc desc;
    rw_scene_init_body(&desc);
    desc.mass = 1;
    desc.inertia[0] = desc.inertia[1] = desc.inertia[2] = 1;
    uint64_t calls = alloc.call_count;
    int64_t start_ns = rw_clock_now_ns();
    for (int i = 0; i < 100000; i++) {
        snprintf(desc.name, sizeof desc.name, "body%d", i);
        assert_int_equal(rw_model_add_body(&model, &desc, NULL, NULL), RW_STATUS_OK);
    }
    print_message("%.0f ns per body\n", (double)(rw_clock_now_ns() - start_ns) / 1e5);
    assert_true(alloc.call_count - calls < 300); // doubling, not one by one
    int32_t index = index_of(RW_KIND_BODY, "body77777");
    assert_int_equal(index, 77777);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(references_and_derived_values_are_resolved, begin, end),
        cmocka_unit_test_setup_teardown(a_place_along_a_rod_is_the_nearest_node_the_lower_of_two,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_model_owns_copies_of_all_arrays, begin, end),
        cmocka_unit_test_setup_teardown(describe_and_load_again_gives_the_same_description, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_stale_id_is_not_found_for_ever, begin, end),
        cmocka_unit_test_setup_teardown(removing_what_is_used_names_the_dependents, begin, end),
        cmocka_unit_test_setup_teardown(cascade_takes_all_dependents_and_renews_indices, begin,
                                        end),
        cmocka_unit_test_setup_teardown(removing_a_rod_moves_the_rows_of_the_others, begin, end),
        cmocka_unit_test_setup_teardown(a_name_is_free_again_after_removal, begin, end),
        cmocka_unit_test_setup_teardown(remove_last_leaves_no_trace, begin, end),
        cmocka_unit_test_setup_teardown(replacing_parameters_keeps_id_and_refuses_what_is_fixed,
                                        begin, end),
        cmocka_unit_test_setup_teardown(graphs_with_a_lone_vertex_need_masses, begin, end),
        cmocka_unit_test_setup_teardown(wrenches_expire_after_their_steps, begin, end),
        cmocka_unit_test_setup_teardown(
            every_creation_is_all_or_nothing_when_any_allocation_fails, begin, end),
        cmocka_unit_test_setup_teardown(loading_survives_every_failing_allocation, begin, end),
        cmocka_unit_test_setup_teardown(planning_a_removal_survives_every_failing_allocation,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_hundred_thousand_creations_are_linear, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
