#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "proto/message.h"
#include "proto/schema.h"
#include "tests/unit/proto/raw_message.h"

// ---- A message with everything in it ----

typedef struct fixture {
    rw_alloc alloc;
    rw_arena arena;
    rw_buffer bytes;
    rw_error error;
} fixture;

static int set_up(void** state) {
    fixture* f = calloc(1, sizeof *f);
    rw_alloc_init(&f->alloc, 0);
    rw_arena_init(&f->arena, &f->alloc);
    rw_buffer_init(&f->bytes, &f->alloc);
    *state = f;
    return 0;
}

static int tear_down(void** state) {
    fixture* f = *state;
    rw_arena_finish(&f->arena);
    rw_buffer_finish(&f->bytes);
    rw_alloc_finish(&f->alloc);
    free(f);
    return 0;
}

static const double positions[] = {0, 0, 1, 0.5, 0, 1, 1, 0, 1};
static const uint32_t segments[] = {0, 1, 1, 2};

// Body 2 has the shapes handed over.
static bool fill_body(void* context, uint32_t index, void* item) {
    rw_pb_Body* body = item;
    if (index == 2) {
        body->shapes = *(const rw_wire_list*)context;
    }
    snprintf(body->name, sizeof body->name, "body%u", index);
    body->mass = 1.5 + index;
    body->position_count = 3;
    body->position[2] = index;
    return true;
}

static void append_scene_request(rw_buffer* bytes) {
    rw_pb_Shape shapes[2] = {
        {.which_geometry = rw_pb_Shape_sphere_tag, .geometry.sphere.radius = 0.25},
        {.which_geometry = rw_pb_Shape_mesh_tag,
         .geometry.mesh.vertices = rw_wire_from_f64(positions, 9),
         .geometry.mesh.triangles = rw_wire_from_u32(segments, 3)}};
    rw_pb_Joint joints[1] = {{.name = "shoulder", .child = "body0", .has_upper_limit = true,
                              .upper_limit = 2.5, .has_motor = true, .motor.target_count = 1,
                              .motor.target = {0.3}}};
    rw_pb_Rod rods[2] = {
        {.name = "cable", .which_geometry = rw_pb_Rod_graph_tag,
         .geometry.graph.positions = rw_wire_from_f64(positions, 9),
         .geometry.graph.segments = rw_wire_from_u32(segments, 4)},
        {.name = "straight", .which_geometry = rw_pb_Rod_straight_tag, .elements = 20}};
    rw_wire_list shape_list = RW_WIRE_FROM_ITEMS(shapes, 2);
    rw_pb_Request request = {.request_id = 7, .session = 0x0000000100000002,
                             .which_command = rw_pb_Request_load_scene_tag};
    request.command.load_scene.has_scene = true;
    rw_pb_Scene* scene = &request.command.load_scene.scene;
    snprintf(scene->name, sizeof scene->name, "a sc\xc3\xa8ne");
    scene->bodies = rw_wire_from_fill(fill_body, &shape_list, sizeof(rw_pb_Body), 3);
    scene->joints = RW_WIRE_FROM_ITEMS(joints, 1);
    scene->rods = RW_WIRE_FROM_ITEMS(rods, 2);
    assert_int_equal(rw_message_append_request(bytes, &request), RW_STATUS_OK);
}

static void a_scene_comes_back_as_it_was_sent(void** state) {
    fixture* f = *state;
    append_scene_request(&f->bytes);
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                               &request, &f->error), RW_STATUS_OK);
    assert_int_equal(request.request_id, 7);
    assert_int_equal(request.which_command, rw_pb_Request_load_scene_tag);
    const rw_pb_Scene* scene = &request.command.load_scene.scene;
    assert_string_equal(scene->name, "a sc\xc3\xa8ne");
    assert_int_equal(scene->bodies.count, 3);
    assert_int_equal(scene->forces.count, 0);

    rw_wire_cursor cursor = rw_wire_begin(&scene->bodies);
    rw_pb_Body body;
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        assert_true(rw_wire_next_message(&cursor, rw_pb_Body_fields, &body, sizeof body));
        snprintf(name, sizeof name, "body%u", i);
        assert_string_equal(body.name, name);
        assert_true(body.mass == 1.5 + i);
        assert_int_equal(body.position_count, 3);
        assert_int_equal(body.shapes.count, i == 2 ? 2 : 0);
    }
    rw_pb_Shape shape;
    rw_wire_cursor shapes = rw_wire_begin(&body.shapes);
    assert_true(rw_wire_next_message(&shapes, rw_pb_Shape_fields, &shape, sizeof shape));
    assert_true(shape.geometry.sphere.radius == 0.25);
    assert_true(rw_wire_next_message(&shapes, rw_pb_Shape_fields, &shape, sizeof shape));
    assert_int_equal(shape.which_geometry, rw_pb_Shape_mesh_tag);
    assert_int_equal(shape.geometry.mesh.triangles.count, 3);
    assert_int_equal(rw_wire_u32(shape.geometry.mesh.triangles, 2), 1);
    assert_false(rw_wire_next_message(&cursor, rw_pb_Body_fields, &body, sizeof body));

    cursor = rw_wire_begin(&scene->rods);
    rw_pb_Rod rod;
    assert_true(rw_wire_next_message(&cursor, rw_pb_Rod_fields, &rod, sizeof rod));
    assert_int_equal(rod.which_geometry, rw_pb_Rod_graph_tag);
    assert_int_equal(rod.geometry.graph.positions.count, 9);
    assert_int_equal(rod.geometry.graph.bends.count, 0);
    for (uint32_t i = 0; i < 9; i++) {
        assert_true(rw_wire_f64(rod.geometry.graph.positions, i) == positions[i]);
    }
    assert_int_equal(rw_wire_u32(rod.geometry.graph.segments, 3), 2);
    assert_true(rw_wire_next_message(&cursor, rw_pb_Rod_fields, &rod, sizeof rod));
    assert_int_equal(rod.elements, 20);
    assert_false(rw_wire_next_message(&cursor, rw_pb_Rod_fields, &rod, sizeof rod));
    assert_int_equal(f->arena.used_bytes, 0); // nothing was copied
}

static void a_decoded_list_can_be_sent_on_as_it_is(void** state) {
    fixture* f = *state;
    append_scene_request(&f->bytes);
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                               &request, &f->error), RW_STATUS_OK);
    rw_buffer again;
    rw_buffer_init(&again, &f->alloc);
    assert_int_equal(rw_message_append_request(&again, &request), RW_STATUS_OK);
    assert_int_equal(again.size_bytes, f->bytes.size_bytes);
    assert_memory_equal(again.data, f->bytes.data, again.size_bytes);
    rw_buffer_finish(&again);
}

// ---- Damage ----

static rw_status decode(fixture* f, const uint8_t* bytes, size_t size) {
    // A copy of the exact size, so that a sanitizer sees any byte read behind the end.
    uint8_t* exact = malloc(size > 0 ? size : 1);
    if (size > 0) {
        memcpy(exact, bytes, size);
    }
    rw_pb_Request request;
    rw_status status = rw_message_decode_request(exact, size, &f->arena, &request, &f->error);
    if (status == RW_STATUS_OK && request.which_command == rw_pb_Request_load_scene_tag) {
        rw_wire_cursor cursor = rw_wire_begin(&request.command.load_scene.scene.rods);
        rw_pb_Rod rod;
        while (rw_wire_next_message(&cursor, rw_pb_Rod_fields, &rod, sizeof rod)) {
        }
        assert_int_equal(cursor.index, request.command.load_scene.scene.rods.count);
    }
    free(exact);
    rw_arena_reset(&f->arena);
    return status;
}

static void every_truncation_of_a_command_is_refused(void** state) {
    fixture* f = *state;
    append_scene_request(&f->bytes);
    const uint8_t* bytes = f->bytes.data;
    assert_int_equal(decode(f, bytes, f->bytes.size_bytes), RW_STATUS_OK);
    size_t command = 2 + 9; // request_id and session come first
    for (size_t size = command + 1; size < f->bytes.size_bytes; size++) {
        assert_int_equal(decode(f, bytes, size), RW_STATUS_INVALID_ARGUMENT);
    }
}

static void no_byte_value_anywhere_breaks_the_decoder(void** state) {
    fixture* f = *state;
    append_scene_request(&f->bytes);
    for (size_t i = 0; i < f->bytes.size_bytes; i++) {
        uint8_t kept = f->bytes.data[i];
        for (int value = 0; value < 256; value++) {
            f->bytes.data[i] = (uint8_t)value;
            rw_status status = decode(f, f->bytes.data, f->bytes.size_bytes);
            assert_true(status == RW_STATUS_OK || status == RW_STATUS_INVALID_ARGUMENT);
        }
        f->bytes.data[i] = kept;
    }
}

static void random_bytes_are_refused_or_decoded(void** state) {
    fixture* f = *state;
    uint64_t random = 12345;
    uint8_t bytes[64];
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(random >> 56);
        }
        (void)decode(f, bytes, (size_t)(random >> 40) % sizeof bytes);
    }
}

static void a_lying_length_is_refused_before_anything_is_allocated(void** state) {
    fixture* f = *state;
    raw_message raw = {.size = 0};
    raw_message_key(&raw, rw_pb_Request_advance_tag, RW_VARINT_WIRE_BLOCK);
    raw_message_varint(&raw, 0x7fffffff);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_INVALID_ARGUMENT);

    raw_message inner = {.size = 0}; // the same inside a command of honest length
    raw_message_key(&inner, rw_pb_Advance_inputs_tag, RW_VARINT_WIRE_BLOCK);
    raw_message_varint(&inner, UINT64_MAX);
    raw.size = 0;
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &inner);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(f->error.path, "inputs[0]");
    assert_int_equal(f->alloc.used_bytes, 0);
}

// ---- Paths and texts of errors ----

static void expect_fault(fixture* f, const raw_message* raw, const char* path, const char* text) {
    assert_int_equal(decode(f, raw->data, raw->size), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(f->error.path, path);
    if (strstr(f->error.text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", f->error.text, text);
    }
}

// A LoadScene whose fourth rod has this name.
static raw_message scene_with_rod_name(const void* name, size_t size) {
    raw_message scene = {.size = 0}, load = {.size = 0}, raw = {.size = 0};
    for (int i = 0; i < 3; i++) {
        raw_message_block(&scene, rw_pb_Scene_rods_tag, NULL, 0);
    }
    raw_message rod = {.size = 0};
    raw_message_block(&rod, rw_pb_Rod_name_tag, name, size);
    raw_message_nested(&scene, rw_pb_Scene_rods_tag, &rod);
    raw_message_nested(&load, rw_pb_LoadScene_scene_tag, &scene);
    raw_message_number(&raw, rw_pb_Request_request_id_tag, 99);
    raw_message_nested(&raw, rw_pb_Request_load_scene_tag, &load);
    return raw;
}

static void bad_text_is_refused_with_its_path(void** state) {
    fixture* f = *state;
    static const char* const not_utf8[] = {"\xff", "a\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
                                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                           "\xe2\x82", "\xf0\x9f\x98", "ok\xc3"};
    for (size_t i = 0; i < sizeof not_utf8 / sizeof not_utf8[0]; i++) {
        raw_message raw = scene_with_rod_name(not_utf8[i], strlen(not_utf8[i]));
        expect_fault(f, &raw, "rods[3].name", "not UTF-8");
    }
    raw_message raw = scene_with_rod_name("ab\0cd", 5);
    expect_fault(f, &raw, "rods[3].name", "NUL");
    raw = scene_with_rod_name("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_OK);
}

static void a_string_may_be_as_long_as_its_maximum_and_no_longer(void** state) {
    fixture* f = *state;
    char name[64];
    memset(name, 'x', sizeof name);
    raw_message raw = scene_with_rod_name(name, 63);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_OK);
    raw = scene_with_rod_name(name, 64);
    expect_fault(f, &raw, "rods[3].name", "at most 63 bytes, got 64");
}

static raw_message set_gravity_of(size_t count) {
    double gravity[8] = {0};
    raw_message command = {.size = 0}, raw = {.size = 0};
    raw_message_block(&command, rw_pb_SetGravity_gravity_tag, gravity, count * sizeof(double));
    raw_message_nested(&raw, rw_pb_Request_set_gravity_tag, &command);
    return raw;
}

static void an_array_of_fixed_size_may_not_exceed_it(void** state) {
    fixture* f = *state;
    raw_message raw = set_gravity_of(3);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_OK);
    raw = set_gravity_of(4);
    expect_fault(f, &raw, "gravity[3]", "at most 3");

    raw_message command = {.size = 0}; // the same, unpacked
    for (int i = 0; i < 4; i++) {
        raw_message_double(&command, rw_pb_SetGravity_gravity_tag, 1);
    }
    raw.size = 0;
    raw_message_nested(&raw, rw_pb_Request_set_gravity_tag, &command);
    expect_fault(f, &raw, "gravity[3]", "at most 3");
}

static void an_array_of_broken_length_is_refused(void** state) {
    fixture* f = *state;
    raw_message command = {.size = 0}, raw = {.size = 0};
    raw_message_block(&command, rw_pb_Advance_inputs_tag, "123456789", 9);
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &command);
    expect_fault(f, &raw, "inputs[0]", "multiple of 8");
}

static void unknown_values_of_enums_are_refused_with_their_path(void** state) {
    fixture* f = *state;
    raw_message body = {.size = 0}, create = {.size = 0}, raw = {.size = 0};
    raw_message_number(&body, rw_pb_Body_kind_tag, _rw_pb_Body_Kind_MAX + 1);
    raw_message_nested(&create, rw_pb_CreateBody_body_tag, &body);
    raw_message_nested(&raw, rw_pb_Request_create_body_tag, &create);
    expect_fault(f, &raw, "kind", "unknown value 3");

    raw_message subscribe = {.size = 0};
    raw_message_block(&subscribe, rw_pb_Subscribe_fields_tag, "\x00\x09", 2);
    raw.size = 0;
    raw_message_nested(&raw, rw_pb_Request_subscribe_tag, &subscribe);
    expect_fault(f, &raw, "fields[1]", "unknown value 9");
}

static void numbers_that_do_not_fit_are_refused(void** state) {
    fixture* f = *state;
    raw_message raw = {.size = 0};
    raw_message_number(&raw, rw_pb_Request_deadline_ms_tag, UINT64_C(1) << 32);
    expect_fault(f, &raw, "deadline_ms", "32 bits");
    raw.size = 0;
    raw_message_key(&raw, rw_pb_Request_request_id_tag, RW_VARINT_WIRE_VARINT);
    raw_message_bytes(&raw, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_INVALID_ARGUMENT);
}

static void a_wrong_wire_type_is_refused_with_its_path(void** state) {
    fixture* f = *state;
    raw_message raw = {.size = 0};
    raw_message_number(&raw, rw_pb_Request_session_tag, 5); // is fixed64
    expect_fault(f, &raw, "session", "wire type 0 instead of 1");
    raw.size = 0;
    raw_message_number(&raw, rw_pb_Request_ping_tag, 5);
    expect_fault(f, &raw, "ping", "wire type");
    raw.size = 0;
    raw_message_key(&raw, rw_pb_Request_ping_tag, 3); // a group
    expect_fault(f, &raw, "ping", "");
}

static void two_members_of_one_choice_are_refused(void** state) {
    fixture* f = *state;
    raw_message raw = {.size = 0};
    raw_message_block(&raw, rw_pb_Request_ping_tag, NULL, 0);
    raw_message_block(&raw, rw_pb_Request_pause_tag, NULL, 0);
    expect_fault(f, &raw, "pause", "beside ping");
    raw.size = 0;
    raw_message_block(&raw, rw_pb_Request_ping_tag, NULL, 0);
    raw_message_block(&raw, rw_pb_Request_ping_tag, NULL, 0);
    expect_fault(f, &raw, "ping", "twice");
    raw_message attachment = {.size = 0}, create = {.size = 0};
    raw_message_double(&attachment, rw_pb_Attachment_s_tag, 0.5);
    raw_message_number(&attachment, rw_pb_Attachment_node_tag, 3);
    raw_message_nested(&create, rw_pb_CreateAttachment_attachment_tag, &attachment);
    raw.size = 0;
    raw_message_nested(&raw, rw_pb_Request_create_attachment_tag, &create);
    expect_fault(f, &raw, "node", "beside s");
}

static void nesting_without_end_is_refused(void** state) {
    fixture* f = *state;
    static raw_message levels[40];
    levels[0].size = 0;
    for (size_t i = 1; i < 40; i++) { // Request > Batch > Request > Batch ...
        levels[i].size = 0;
        raw_message_nested(&levels[i], i % 2 ? rw_pb_Batch_requests_tag : rw_pb_Request_batch_tag,
                           &levels[i - 1]);
    }
    assert_int_equal(decode(f, levels[4].data, levels[4].size), RW_STATUS_OK);
    assert_int_equal(decode(f, levels[38].data, levels[38].size), RW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(f->error.text, "nested too deeply"));
}

static void an_error_in_a_batch_says_which_request(void** state) {
    fixture* f = *state;
    raw_message bad = scene_with_rod_name("\xff", 1);
    raw_message batch = {.size = 0}, raw = {.size = 0};
    raw_message_block(&batch, rw_pb_Batch_requests_tag, NULL, 0);
    raw_message_nested(&batch, rw_pb_Batch_requests_tag, &bad);
    raw_message_nested(&raw, rw_pb_Request_batch_tag, &batch);
    expect_fault(f, &raw, "requests[1].rods[3].name", "UTF-8");
}

// ---- What other senders may write ----

static void unknown_fields_are_ignored_at_every_depth(void** state) {
    fixture* f = *state;
    raw_message advance = {.size = 0}, raw = {.size = 0};
    raw_message_number(&raw, 5000, 1);
    raw_message_block(&raw, 5001, "\xff\xfe", 2);
    raw_message_double(&advance, 5002, 2);
    raw_message_number(&advance, rw_pb_Advance_observe_tag, 11);
    raw_message_key(&advance, 5003, RW_VARINT_WIRE_32);
    raw_message_bytes(&advance, "1234", 4);
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &advance);
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(raw.data, raw.size, &f->arena, &request, &f->error),
                     RW_STATUS_OK);
    assert_int_equal(request.command.advance.observe, 11);
}

static void an_unknown_command_decodes_as_no_command(void** state) {
    fixture* f = *state;
    raw_message raw = {.size = 0};
    raw_message_number(&raw, rw_pb_Request_request_id_tag, 3);
    raw_message_block(&raw, 4000, NULL, 0);
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(raw.data, raw.size, &f->arena, &request, &f->error),
                     RW_STATUS_OK);
    assert_int_equal(request.request_id, 3);
    assert_int_equal(request.which_command, 0);
}

static void expect_inputs(fixture* f, const raw_message* raw, uint32_t count) {
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(raw->data, raw->size, &f->arena, &request,
                                               &f->error), RW_STATUS_OK);
    assert_int_equal(request.which_command, rw_pb_Request_advance_tag);
    assert_int_equal(request.command.advance.observe, 42);
    rw_wire_array inputs = request.command.advance.inputs;
    assert_int_equal(inputs.count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(rw_wire_f64(inputs, i) == i + 0.5);
    }
}

static void doubles_unpacked_or_in_pieces_are_put_together(void** state) {
    fixture* f = *state;
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = i + 0.5;
    }
    raw_message advance = {.size = 0}, raw = {.size = 0};
    for (int i = 0; i < 100; i++) { // unpacked, another field between
        raw_message_double(&advance, rw_pb_Advance_inputs_tag, values[i]);
        if (i == 50) {
            raw_message_number(&advance, rw_pb_Advance_observe_tag, 42);
        }
    }
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &advance);
    expect_inputs(f, &raw, 100);

    advance.size = raw.size = 0; // pieces, an empty one among them, and single ones
    raw_message_block(&advance, rw_pb_Advance_inputs_tag, values, 3 * sizeof(double));
    raw_message_block(&advance, rw_pb_Advance_inputs_tag, NULL, 0);
    raw_message_number(&advance, rw_pb_Advance_observe_tag, 42);
    raw_message_double(&advance, rw_pb_Advance_inputs_tag, values[3]);
    raw_message_block(&advance, rw_pb_Advance_inputs_tag, values + 4, 2 * sizeof(double));
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &advance);
    expect_inputs(f, &raw, 6);

    advance.size = raw.size = 0; // one alone, unpacked
    raw_message_double(&advance, rw_pb_Advance_inputs_tag, values[0]);
    raw_message_number(&advance, rw_pb_Advance_observe_tag, 42);
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &advance);
    expect_inputs(f, &raw, 1);
}

static void indices_unpacked_inside_a_list_are_put_together(void** state) {
    fixture* f = *state;
    raw_message graph = {.size = 0}, rod = {.size = 0}, scene = {.size = 0}, load = {.size = 0};
    for (uint32_t i = 0; i < 4; i++) {
        raw_message_key(&graph, rw_pb_Rod_Graph_segments_tag, RW_VARINT_WIRE_32);
        raw_message_bytes(&graph, &i, 4);
    }
    raw_message_nested(&rod, rw_pb_Rod_graph_tag, &graph);
    raw_message_nested(&scene, rw_pb_Scene_rods_tag, &rod);
    raw_message_block(&scene, rw_pb_Scene_bodies_tag, NULL, 0);
    raw_message_nested(&scene, rw_pb_Scene_rods_tag, &rod); // lists may be interleaved
    raw_message_nested(&load, rw_pb_LoadScene_scene_tag, &scene);
    raw_message raw = {.size = 0};
    raw_message_nested(&raw, rw_pb_Request_load_scene_tag, &load);
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(raw.data, raw.size, &f->arena, &request, &f->error),
                     RW_STATUS_OK);
    rw_wire_cursor cursor = rw_wire_begin(&request.command.load_scene.scene.rods);
    rw_pb_Rod decoded;
    int rods = 0;
    while (rw_wire_next_message(&cursor, rw_pb_Rod_fields, &decoded, sizeof decoded)) {
        rods++;
        assert_int_equal(decoded.geometry.graph.segments.count, 4);
        assert_int_equal(rw_wire_u32(decoded.geometry.graph.segments, 3), 3);
    }
    assert_int_equal(rods, 2);
    assert_int_equal(request.command.load_scene.scene.bodies.count, 1);
}

static void without_memory_to_join_pieces_the_sender_hears_so(void** state) {
    fixture* f = *state;
    raw_message advance = {.size = 0}, raw = {.size = 0};
    raw_message_double(&advance, rw_pb_Advance_inputs_tag, 1);
    raw_message_nested(&raw, rw_pb_Request_advance_tag, &advance);
    f->alloc.limit_bytes = 32;
    rw_pb_Request request;
    assert_int_equal(rw_message_decode_request(raw.data, raw.size, &f->arena, &request, &f->error),
                     RW_STATUS_RESOURCE_EXHAUSTED);
}

// ---- Peeking, answers ----

static void a_refused_request_can_still_be_answered(void** state) {
    fixture* f = *state;
    raw_message raw = scene_with_rod_name("\xff", 1);
    rw_message_peek peek;
    rw_message_peek_request(raw.data, raw.size, &peek);
    assert_int_equal(peek.request_id, 99);
    assert_int_equal(peek.command_tag, rw_pb_Request_load_scene_tag);
    rw_message_peek_request(raw.data, raw.size - 1, &peek); // cut
    assert_int_equal(peek.request_id, 99);
    assert_int_equal(peek.command_tag, rw_pb_Request_load_scene_tag);

    assert_int_equal(decode(f, raw.data, raw.size), RW_STATUS_INVALID_ARGUMENT);
    rw_pb_Response response, back;
    rw_message_fail(&response, peek.request_id, &f->error);
    assert_int_equal(rw_message_append_response(&f->bytes, &response), RW_STATUS_OK);
    assert_int_equal(rw_message_decode_response(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                                &back, &f->error), RW_STATUS_OK);
    assert_int_equal(back.request_id, 99);
    assert_int_equal(back.status, rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(back.path, "rods[3].name");
    assert_int_equal(back.which_result, 0);
}

// A strict client could not read an answer whose text is no UTF-8, such as a name cut inside a letter.
static void the_text_of_a_failure_is_one_line_of_utf8(void** state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"no body 'a\nb\x1b'", "no body 'a?b?'"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\xaa\xa2", "\xc3\xa4\xe2\x82\xac\xf0\x9f\xaa\xa2"},
        {"cut \xc3", "cut ?"},
        {"cut \xe2\x82.", "cut ??."},
        {"\xff\xc0\xaf", "???"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rw_error error;
        rw_pb_Response response;
        rw_status_fail(&error, RW_STATUS_NOT_FOUND, cases[i].text, "%s", cases[i].text);
        rw_message_fail(&response, 7, &error);
        assert_string_equal(response.message, cases[i].message);
        assert_string_equal(response.path, cases[i].message);
    }
}

static void a_batch_answer_is_made_of_encoded_answers(void** state) {
    fixture* f = *state;
    rw_buffer parts[2];
    rw_wire_bytes elements[2];
    for (int i = 0; i < 2; i++) {
        rw_buffer_init(&parts[i], &f->alloc);
        rw_pb_Response one = {.request_id = (uint64_t)i + 1, .which_result = rw_pb_Response_ping_tag,
                              .result.ping.payload = 50 + (uint64_t)i};
        assert_int_equal(rw_message_append_response(&parts[i], &one), RW_STATUS_OK);
        elements[i] = (rw_wire_bytes){parts[i].data, parts[i].size_bytes};
    }
    rw_pb_Response response = {.request_id = 9, .which_result = rw_pb_Response_batch_tag,
                               .result.batch.responses = rw_wire_from_encoded(elements, 2)};
    assert_int_equal(rw_message_append_response(&f->bytes, &response), RW_STATUS_OK);
    rw_pb_Response back, one;
    assert_int_equal(rw_message_decode_response(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                                &back, &f->error), RW_STATUS_OK);
    assert_int_equal(back.result.batch.responses.count, 2);
    rw_wire_cursor cursor = rw_wire_begin(&back.result.batch.responses);
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(rw_wire_next_message(&cursor, rw_pb_Response_fields, &one, sizeof one));
        assert_int_equal(one.result.ping.payload, 50 + i);
        rw_buffer_finish(&parts[i]);
    }
}

static bool give_up(void* context, uint32_t index, void* item) {
    (void)context, (void)item;
    return index < 2;
}

static void an_encoding_that_fails_leaves_the_buffer_as_it_was(void** state) {
    fixture* f = *state;
    assert_int_equal(rw_buffer_append(&f->bytes, "abc", 3), RW_STATUS_OK);
    rw_pb_Response response = {.which_result = rw_pb_Response_list_sessions_tag};
    response.result.list_sessions.sessions =
        rw_wire_from_fill(give_up, NULL, sizeof(rw_pb_SessionInfo), 5);
    assert_int_equal(rw_message_append_response(&f->bytes, &response), RW_STATUS_INTERNAL);
    assert_int_equal(f->bytes.size_bytes, 3);
}

static void strings_and_large_arrays_are_encoded_too(void** state) {
    fixture* f = *state;
    static const char* const globs[] = {"joint/*/coordinate", "", "world/time"};
    rw_pb_Request request = {.request_id = 1, .which_command = rw_pb_Request_observe_tag,
                             .command.observe.signals = rw_wire_from_strings(globs, 3)};
    assert_int_equal(rw_message_append_request(&f->bytes, &request), RW_STATUS_OK);
    rw_pb_Request back;
    assert_int_equal(rw_message_decode_request(f->bytes.data, f->bytes.size_bytes, &f->arena, &back,
                                               &f->error), RW_STATUS_OK);
    rw_wire_cursor cursor = rw_wire_begin(&back.command.observe.signals);
    rw_wire_bytes text;
    for (int i = 0; i < 3; i++) {
        char copy[32];
        assert_true(rw_wire_next(&cursor, &text));
        rw_wire_copy_text(text, copy, sizeof copy);
        assert_string_equal(copy, globs[i]);
    }
    assert_false(rw_wire_next(&cursor, &text));

    enum { COUNT = 200000 }; // far above what fits the first attempt
    double* values = malloc(COUNT * sizeof *values);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i * 0.25;
    }
    f->bytes.size_bytes = 0;
    rw_pb_Response response = {.which_result = rw_pb_Response_advance_tag,
                               .result.advance.values = rw_wire_from_f64(values, COUNT)};
    assert_int_equal(rw_message_append_response(&f->bytes, &response), RW_STATUS_OK);
    rw_pb_Response answer;
    assert_int_equal(rw_message_decode_response(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                                &answer, &f->error), RW_STATUS_OK);
    assert_int_equal(answer.result.advance.values.count, COUNT);
    const double* view = rw_wire_view_f64(answer.result.advance.values, &f->arena);
    assert_memory_equal(view, values, COUNT * sizeof *values);
    free(values);
}

static void bytes_may_be_the_choice(void** state) {
    fixture* f = *state;
    for (size_t size = 0; size < 4; size += 3) { // an empty choice is a choice
        rw_pb_Request request = {.which_command = rw_pb_Request_restore_tag};
        request.command.restore.which_source = rw_pb_Restore_data_tag;
        request.command.restore.source.data = (rw_wire_bytes){(const uint8_t*)"abc", size};
        f->bytes.size_bytes = 0;
        assert_int_equal(rw_message_append_request(&f->bytes, &request), RW_STATUS_OK);
        rw_pb_Request back;
        assert_int_equal(rw_message_decode_request(f->bytes.data, f->bytes.size_bytes, &f->arena,
                                                   &back, &f->error), RW_STATUS_OK);
        assert_int_equal(back.command.restore.which_source, rw_pb_Restore_data_tag);
        assert_int_equal(back.command.restore.source.data.size, size);
        assert_int_equal(memcmp(back.command.restore.source.data.data, "abc", size), 0);
    }
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_scene_comes_back_as_it_was_sent),
        CASE(a_decoded_list_can_be_sent_on_as_it_is),
        CASE(every_truncation_of_a_command_is_refused),
        CASE(no_byte_value_anywhere_breaks_the_decoder),
        CASE(random_bytes_are_refused_or_decoded),
        CASE(a_lying_length_is_refused_before_anything_is_allocated),
        CASE(bad_text_is_refused_with_its_path),
        CASE(a_string_may_be_as_long_as_its_maximum_and_no_longer),
        CASE(an_array_of_fixed_size_may_not_exceed_it),
        CASE(an_array_of_broken_length_is_refused),
        CASE(unknown_values_of_enums_are_refused_with_their_path),
        CASE(numbers_that_do_not_fit_are_refused),
        CASE(a_wrong_wire_type_is_refused_with_its_path),
        CASE(two_members_of_one_choice_are_refused),
        CASE(nesting_without_end_is_refused),
        CASE(an_error_in_a_batch_says_which_request),
        CASE(unknown_fields_are_ignored_at_every_depth),
        CASE(an_unknown_command_decodes_as_no_command),
        CASE(doubles_unpacked_or_in_pieces_are_put_together),
        CASE(indices_unpacked_inside_a_list_are_put_together),
        CASE(without_memory_to_join_pieces_the_sender_hears_so),
        CASE(a_refused_request_can_still_be_answered),
        CASE(the_text_of_a_failure_is_one_line_of_utf8),
        CASE(a_batch_answer_is_made_of_encoded_answers),
        CASE(an_encoding_that_fails_leaves_the_buffer_as_it_was),
        CASE(strings_and_large_arrays_are_encoded_too),
        CASE(bytes_may_be_the_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
