// Scenes as messages and back: from descriptions to bytes, from bytes to descriptions, and what the
// border says of messages that don't fit.
#include "tests/support/rw_test.h"

#include "proto/message.h"
#include "server/dispatch/scene_from_message.h"
#include "server/dispatch/scene_to_message.h"
#include "solvers/model/desc_fields.h"
#include "solvers/model/model.h"
#include "tests/support/full_scene.h"

static full_scene scene;
static rw_alloc alloc;
static rw_arena arena;
static rw_model model;
static rw_buffer bytes, again;

static int begin(void** state) {
    (void)state;
    full_scene_init(&scene);
    rw_alloc_init(&alloc, 0);
    rw_arena_init(&arena, &alloc);
    rw_model_init(&model, &alloc);
    rw_buffer_init(&bytes, &alloc);
    rw_buffer_init(&again, &alloc);
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_buffer_finish(&bytes);
    rw_buffer_finish(&again);
    rw_model_finish(&model);
    rw_arena_finish(&arena);
    rw_alloc_finish(&alloc);
    return 0;
}

#define EXPECT_OK(expression)                                                                      \
    do {                                                                                           \
        rw_status expect_status_ = (expression);                                                   \
        if (expect_status_ != RW_STATUS_OK)                                                        \
            fail_msg("%s at \"%s\": %s", rw_status_name(expect_status_), error.path, error.text);  \
    } while (0)

static void encode(const rw_scene* from, const rw_model* ids, rw_buffer* to) {
    rw_error error = {0};
    rw_pb_Scene message;
    to->size_bytes = 0;
    EXPECT_OK(rw_scene_to_message(from, ids, &arena, &message, &error));
    EXPECT_OK(rw_message_append_scene(to, &message));
}

static void decode(const rw_buffer* from, rw_scene* to) {
    rw_error error = {0};
    static rw_pb_Scene message;
    EXPECT_OK(rw_message_decode_scene(from->data, from->size_bytes, &arena, &message, &error));
    EXPECT_OK(rw_scene_from_message(&message, NULL, &arena, to, &error));
}

// Compares two descriptions field by field, arrays by their contents.
static void expect_same(rw_desc_fields list, const void* a, const void* b, const char* what) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_desc_field* field = &list.fields[i];
        const char* at = (const char*)a + field->offset;
        const char* bt = (const char*)b + field->offset;
        bool same = true;
        switch (field->type) {
        case RW_DESC_TEXT: same = strcmp(at, bt) == 0; break;
        case RW_DESC_BOOL: same = *(const bool*)at == *(const bool*)bt; break;
        case RW_DESC_ENUM:
        case RW_DESC_U32: same = memcmp(at, bt, sizeof(uint32_t)) == 0; break;
        case RW_DESC_F64:
        case RW_DESC_ROTATION: same = memcmp(at, bt, field->count * sizeof(double)) == 0; break;
        case RW_DESC_SIZE: same = memcmp(at, bt, sizeof(size_t)) == 0; break;
        case RW_DESC_DOUBLES:
        case RW_DESC_ROTATIONS:
        case RW_DESC_UINTS: {
            size_t item = field->type == RW_DESC_UINTS ? sizeof(uint32_t) : sizeof(double);
            rw_doubles va, vb; // both kinds of view are a pointer and a count
            memcpy(&va, at, sizeof va);
            memcpy(&vb, bt, sizeof vb);
            same = va.count == vb.count &&
                   (va.count == 0 || memcmp(va.data, vb.data, va.count * item) == 0);
            break;
        }
        }
        if (!same) {
            fail_msg("%s: %s differs", what, field->name);
        }
    }
}

static void expect_same_scene(const rw_scene* a, const rw_scene* b) {
    expect_same(rw_desc_fields_of_options(), a, b, "options");
    assert_int_equal(a->body_count, b->body_count);
    for (size_t i = 0; i < a->body_count; i++) {
        expect_same(rw_desc_fields_of(RW_KIND_BODY), &a->bodies[i], &b->bodies[i],
                    a->bodies[i].name);
        for (size_t k = 0; k < a->bodies[i].shape_count; k++) {
            expect_same(rw_desc_fields_of_shape(), &a->bodies[i].shapes[k],
                        &b->bodies[i].shapes[k], "shape");
        }
    }
#define EXPECT_SAME_LIST(plural, member_count, KIND)                                               \
    assert_int_equal(a->member_count, b->member_count);                                            \
    for (size_t i = 0; i < a->member_count; i++)                                                   \
    expect_same(rw_desc_fields_of(KIND), &a->plural[i], &b->plural[i], a->plural[i].name)
    EXPECT_SAME_LIST(joints, joint_count, RW_KIND_JOINT);
    EXPECT_SAME_LIST(couplings, coupling_count, RW_KIND_COUPLING);
    EXPECT_SAME_LIST(rods, rod_count, RW_KIND_ROD);
    EXPECT_SAME_LIST(attachments, attachment_count, RW_KIND_ATTACHMENT);
    EXPECT_SAME_LIST(forces, force_count, RW_KIND_FORCE);
    EXPECT_SAME_LIST(inputs, input_count, RW_KIND_INPUT);
}

static void every_field_survives_the_way_to_bytes_and_back(void** state) {
    (void)state;
    encode(&scene.scene, NULL, &bytes);
    rw_scene back;
    decode(&bytes, &back);
    expect_same_scene(&scene.scene, &back);
}

static void load_describe_and_encode_gives_the_same_bytes(void** state) {
    (void)state;
    rw_error error = {0};
    encode(&scene.scene, NULL, &bytes);
    rw_scene loaded, described;
    decode(&bytes, &loaded);
    EXPECT_OK(rw_model_load(&model, &loaded, &error));
    EXPECT_OK(rw_model_describe(&model, &arena, &described, &error));
    encode(&described, NULL, &again);
    assert_int_equal(bytes.size_bytes, again.size_bytes);
    assert_memory_equal(bytes.data, again.data, bytes.size_bytes);
}

static void ids_are_filled_in(void** state) {
    (void)state;
    rw_error error = {0};
    EXPECT_OK(rw_model_load(&model, &scene.scene, &error));
    encode(&scene.scene, &model, &bytes);
    rw_pb_Scene message;
    EXPECT_OK(rw_message_decode_scene(bytes.data, bytes.size_bytes, &arena, &message, &error));
    rw_wire_cursor cursor = rw_wire_begin(&message.forces);
    rw_pb_Force force;
    int32_t count = 0;
    while (rw_wire_next_message(&cursor, rw_pb_Force_fields, &force, sizeof force)) {
        assert_true(force.id == rw_model_id(&model, RW_KIND_FORCE, count));
        count++;
    }
    assert_int_equal(count, 4);
}

static void an_empty_message_is_the_default_scene(void** state) {
    (void)state;
    rw_error error = {0};
    rw_pb_Scene message = {0};
    rw_scene from, defaults;
    rw_scene_init(&defaults);
    EXPECT_OK(rw_scene_from_message(&message, NULL, &arena, &from, &error));
    expect_same_scene(&defaults, &from);
    // ... and is loaded the same once it was written out in full.
    encode(&defaults, NULL, &bytes);
    decode(&bytes, &from);
    expect_same_scene(&defaults, &from);
    // Zero gravity is said, not left out.
    message.gravity_count = 3;
    EXPECT_OK(rw_scene_from_message(&message, NULL, &arena, &from, &error));
    rw_assert_near(from.gravity[2], 0, 0);
}

static void absent_fields_of_objects_take_their_defaults(void** state) {
    (void)state;
    rw_error error = {0};
    rw_pb_Body body = {.name = "b"};
    rw_body_desc body_desc, body_default;
    rw_scene_init_body(&body_default);
    snprintf(body_default.name, sizeof body_default.name, "b");
    EXPECT_OK(rw_scene_from_message_body(&body, NULL, &arena, &body_desc, &error));
    expect_same(rw_desc_fields_of(RW_KIND_BODY), &body_default, &body_desc, "body");
    rw_pb_Joint joint = {.name = "j"};
    rw_joint_desc joint_desc, joint_default;
    rw_scene_init_joint(&joint_default);
    snprintf(joint_default.name, sizeof joint_default.name, "j");
    EXPECT_OK(rw_scene_from_message_joint(&joint, &joint_desc, &error));
    expect_same(rw_desc_fields_of(RW_KIND_JOINT), &joint_default, &joint_desc, "joint");
    rw_pb_Rod rod = {.name = "r", .which_geometry = rw_pb_Rod_straight_tag};
    rw_rod_desc rod_desc, rod_default;
    rw_scene_init_rod(&rod_default);
    snprintf(rod_default.name, sizeof rod_default.name, "r");
    EXPECT_OK(rw_scene_from_message_rod(&rod, NULL, &arena, &rod_desc, &error));
    expect_same(rw_desc_fields_of(RW_KIND_ROD), &rod_default, &rod_desc, "rod");
}

static void solver_settings_may_be_given_one_by_one(void** state) {
    (void)state;
    rw_error error = {0};
    rw_solver_options options = scene.scene.solver;
    rw_pb_Solver message = {.has_scr = true,
                            .scr = {.has_residual_tolerance = true, .residual_tolerance = 0},
                            .has_dae = true,
                            .dae = {.has_integrator = true,
                                    .integrator = rw_pb_Solver_Dae_Integrator_RK4}};
    EXPECT_OK(rw_scene_from_message_solver(&message, &options, &error));
    rw_solver_options expected = scene.scene.solver;
    expected.scr.residual_tolerance = 0;
    expected.dae.integrator = RW_INTEGRATOR_RK4;
    rw_scene a, b;
    rw_scene_init(&a);
    rw_scene_init(&b);
    a.solver = expected;
    b.solver = options;
    expect_same(rw_desc_fields_of_options(), &a, &b, "options");
}

// ---- Messages that don't fit ----

static void expect_fault(rw_status status, const rw_error* error, rw_status expected,
                         const char* path) {
    if (status != expected || strcmp(error->path, path) != 0) {
        fail_msg("%s at \"%s\" (%s), expected %s at \"%s\"", rw_status_name(status), error->path,
                 error->text, rw_status_name(expected), path);
    }
}

static rw_status refuse(const rw_pb_Scene* message, rw_error* error) {
    static rw_pb_Scene decoded;
    bytes.size_bytes = 0;
    assert_int_equal(rw_message_append_scene(&bytes, message), RW_STATUS_OK);
    rw_status status =
        rw_message_decode_scene(bytes.data, bytes.size_bytes, &arena, &decoded, error);
    rw_scene from;
    return status != RW_STATUS_OK ? status
                                  : rw_scene_from_message(&decoded, NULL, &arena, &from, error);
}

static void arrays_of_another_shape_are_refused_with_their_path(void** state) {
    (void)state;
    rw_error error = {0};
    rw_pb_Scene message = {.gravity_count = 2};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT, "gravity");
    assert_string_equal(error.text, "must hold 3 numbers, got 2");
    rw_pb_Body bodies[2] = {{.name = "a"}, {.name = "b", .inertia_count = 3}};
    message = (rw_pb_Scene){.bodies = RW_WIRE_FROM_ITEMS(bodies, 2)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "bodies[1].inertia");
    bodies[1] = (rw_pb_Body){.name = "b", .rotation_count = 3};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "bodies[1].rotation");
    rw_pb_Joint joint = {.name = "j", .has_child_frame = true, .child_frame.position_count = 1};
    message = (rw_pb_Scene){.joints = RW_WIRE_FROM_ITEMS(&joint, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "joints[0].child_frame.position");
    rw_pb_Shape shape = {.which_geometry = rw_pb_Shape_box_tag,
                         .geometry.box.half_extents_count = 2};
    bodies[1] = (rw_pb_Body){.name = "b", .shapes = RW_WIRE_FROM_ITEMS(&shape, 1)};
    message = (rw_pb_Scene){.bodies = RW_WIRE_FROM_ITEMS(bodies, 2)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "bodies[1].shapes[0].box.half_extents");
    rw_pb_Force force = {.name = "f",
                         .which_law = rw_pb_Force_spring_damper_tag,
                         .law.spring_damper = {.has_b = true, .b.position_count = 1}};
    message = (rw_pb_Scene){.forces = RW_WIRE_FROM_ITEMS(&force, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "forces[0].spring_damper.b.position");
}

static void choices_must_be_made(void** state) {
    (void)state;
    rw_error error = {0};
    rw_pb_Rod rod = {.name = "r"};
    rw_pb_Scene message = {.rods = RW_WIRE_FROM_ITEMS(&rod, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT, "rods[0].geometry");
    rw_pb_Force force = {.name = "f"};
    message = (rw_pb_Scene){.forces = RW_WIRE_FROM_ITEMS(&force, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT, "forces[0].law");
    rw_pb_Input input = {.name = "i", .target = "wind"};
    message = (rw_pb_Scene){.inputs = RW_WIRE_FROM_ITEMS(&input, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "inputs[0].function");
    rw_pb_Shape shape = {0};
    rw_pb_Body body = {.name = "b", .shapes = RW_WIRE_FROM_ITEMS(&shape, 1)};
    message = (rw_pb_Scene){.bodies = RW_WIRE_FROM_ITEMS(&body, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT,
                 "bodies[0].shapes[0].geometry");
    const double radius = 1;
    rod = (rw_pb_Rod){.name = "r",
                      .which_geometry = rw_pb_Rod_straight_tag,
                      .has_section = true,
                      .section = {.radius = rw_wire_from_f64(&radius, 1), .width = 1}};
    message = (rw_pb_Scene){.rods = RW_WIRE_FROM_ITEMS(&rod, 1)};
    expect_fault(refuse(&message, &error), &error, RW_STATUS_INVALID_ARGUMENT, "rods[0].section");
}

// ---- Blobs ----

static unsigned char blob_bytes[200];

static rw_status find_blob(void* context, uint64_t blob, const void** data, uint64_t* size,
                           rw_error* error) {
    assert_ptr_equal(context, blob_bytes);
    if (blob != 7) {
        RW_FAIL(error, NOT_FOUND, "", "no blob %llu", (unsigned long long)blob);
    }
    *data = blob_bytes;
    *size = sizeof blob_bytes;
    return RW_STATUS_OK;
}

static const rw_scene_from_message_blobs blobs = {find_blob, blob_bytes};

static rw_status take_graph(rw_pb_BlobField* fields, size_t count, rw_rod_desc* desc,
                            rw_error* error) {
    static const double mass = 3;
    rw_pb_Rod rod = {.name = "r",
                     .which_geometry = rw_pb_Rod_graph_tag,
                     .geometry.graph = {.vertex_masses = rw_wire_from_f64(&mass, 1),
                                        .blobs = RW_WIRE_FROM_ITEMS(fields, count)}};
    rw_pb_Scene message = {.rods = RW_WIRE_FROM_ITEMS(&rod, 1)};
    static rw_pb_Scene decoded;
    bytes.size_bytes = 0;
    assert_int_equal(rw_message_append_scene(&bytes, &message), RW_STATUS_OK);
    *error = (rw_error){0};
    RW_TRY(rw_message_decode_scene(bytes.data, bytes.size_bytes, &arena, &decoded, error));
    rw_scene from;
    rw_status status = rw_scene_from_message(&decoded, &blobs, &arena, &from, error);
    if (status == RW_STATUS_OK) {
        *desc = from.rods[0];
    }
    return status;
}

static void uploads_stand_for_arrays(void** state) {
    (void)state;
    rw_error error;
    rw_rod_desc desc;
    double numbers[25];
    for (int i = 0; i < 25; i++) {
        numbers[i] = i + 0.5;
    }
    memcpy(blob_bytes, numbers, sizeof numbers);
    const uint32_t indices[4] = {1, 2, 3, 4};
    memcpy(blob_bytes + 100, indices, sizeof indices);
    rw_pb_BlobField fields[] = {
        {.field = "positions", .blob = 7, .count = 12},
        {.field = "segments", .blob = 7, .offset = 100, .count = 4},
        {.field = "bend_stiffness", .blob = 7, .offset = 120}, // to the end
        {.field = "segment_stiffness", .blob = 7, .offset = 4, .count = 3}, // not aligned
    };
    rw_status status = take_graph(fields, 4, &desc, &error);
    if (status != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    assert_int_equal(desc.graph.positions.count, 12);
    rw_assert_near(desc.graph.positions.data[11], 11.5, 0);
    assert_int_equal(desc.graph.segments.count, 4);
    assert_int_equal(desc.graph.segments.data[3], 4);
    assert_int_equal(desc.graph.bend_stiffness.count, 10);
    assert_memory_equal(desc.graph.segment_stiffness.data, blob_bytes + 4, 24);
    assert_true((uintptr_t)desc.graph.segment_stiffness.data % sizeof(double) == 0);
    rw_assert_near(desc.graph.vertex_masses.data[0], 3, 0);
}

static void uploads_that_do_not_fit_are_refused(void** state) {
    (void)state;
    rw_error error;
    rw_rod_desc desc;
    const struct {
        rw_pb_BlobField field;
        rw_status status;
        const char* path;
    } rows[] = {
        {{.field = "colour", .blob = 7}, RW_STATUS_INVALID_ARGUMENT,
         "rods[0].graph.blobs[0].field"},
        {{.field = "vertex_masses", .blob = 7}, RW_STATUS_INVALID_ARGUMENT,
         "rods[0].graph.blobs[0].field"},
        {{.field = "positions", .blob = 8}, RW_STATUS_NOT_FOUND, "rods[0].graph.blobs[0].blob"},
        {{.field = "positions", .blob = 7, .offset = 2}, RW_STATUS_OUT_OF_RANGE,
         "rods[0].graph.blobs[0].offset"},
        {{.field = "positions", .blob = 7, .offset = 204}, RW_STATUS_OUT_OF_RANGE,
         "rods[0].graph.blobs[0].offset"},
        {{.field = "positions", .blob = 7, .offset = 4}, RW_STATUS_INVALID_ARGUMENT,
         "rods[0].graph.blobs[0].count"},
        {{.field = "positions", .blob = 7, .count = 26}, RW_STATUS_OUT_OF_RANGE,
         "rods[0].graph.blobs[0].count"},
        {{.field = "segments", .blob = 7, .count = UINT64_MAX}, RW_STATUS_OUT_OF_RANGE,
         "rods[0].graph.blobs[0].count"},
    };
    for (size_t i = 0; i < RW_COUNT_OF(rows); i++) {
        rw_pb_BlobField field = rows[i].field;
        expect_fault(take_graph(&field, 1, &desc, &error), &error, rows[i].status, rows[i].path);
    }
}

static void conversion_survives_every_failing_allocation(void** state) {
    (void)state;
    encode(&scene.scene, NULL, &bytes);
    for (int64_t n = 1; n <= 40; n++) {
        rw_arena small;
        rw_arena_init(&small, &alloc);
        rw_pb_Scene message;
        rw_scene from;
        rw_error error = {0};
        rw_alloc_fail_after(n);
        rw_status status =
            rw_message_decode_scene(bytes.data, bytes.size_bytes, &small, &message, &error);
        if (status == RW_STATUS_OK) {
            status = rw_scene_from_message(&message, NULL, &small, &from, &error);
        }
        rw_alloc_fail_after(0);
        if (status != RW_STATUS_OK && status != RW_STATUS_RESOURCE_EXHAUSTED) {
            fail_msg("%s: %s", error.path, error.text);
        }
        rw_arena_finish(&small);
    }
    // An account that is too small for the scene.
    rw_alloc tiny;
    rw_alloc_init(&tiny, 6000);
    rw_arena narrow;
    rw_arena_init(&narrow, &tiny);
    rw_pb_Scene message;
    rw_scene from;
    rw_error error = {0};
    EXPECT_OK(rw_message_decode_scene(bytes.data, bytes.size_bytes, &narrow, &message, &error));
    assert_int_equal(rw_scene_from_message(&message, NULL, &narrow, &from, &error),
                     RW_STATUS_RESOURCE_EXHAUSTED);
    rw_arena_finish(&narrow);
    rw_alloc_finish(&tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_field_survives_the_way_to_bytes_and_back, begin,
                                        end),
        cmocka_unit_test_setup_teardown(load_describe_and_encode_gives_the_same_bytes, begin, end),
        cmocka_unit_test_setup_teardown(ids_are_filled_in, begin, end),
        cmocka_unit_test_setup_teardown(an_empty_message_is_the_default_scene, begin, end),
        cmocka_unit_test_setup_teardown(absent_fields_of_objects_take_their_defaults, begin, end),
        cmocka_unit_test_setup_teardown(solver_settings_may_be_given_one_by_one, begin, end),
        cmocka_unit_test_setup_teardown(arrays_of_another_shape_are_refused_with_their_path, begin,
                                        end),
        cmocka_unit_test_setup_teardown(choices_must_be_made, begin, end),
        cmocka_unit_test_setup_teardown(uploads_stand_for_arrays, begin, end),
        cmocka_unit_test_setup_teardown(uploads_that_do_not_fit_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(conversion_survives_every_failing_allocation, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
