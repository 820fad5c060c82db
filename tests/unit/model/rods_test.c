#include "solvers/model/rods.h"
#include "tests/support/rw_test.h"

static const double pi = 3.14159265358979323846;
static const double radius = 0.01;

static rw_alloc account;
static rw_arena arena;

static int set_up(void** unused) {
    (void)unused;
    rw_alloc_init(&account, 0);
    rw_arena_init(&arena, &account);
    return 0;
}

static int tear_down(void** unused) {
    (void)unused;
    rw_arena_finish(&arena);
    rw_alloc_finish(&account);
    return 0;
}

static rw_rod_desc some_rod(rw_rod_geometry geometry) {
    rw_rod_desc desc;
    rw_scene_init_rod(&desc);
    desc.geometry = geometry;
    desc.elements = 10;
    desc.straight.end[0] = 2.0;
    desc.helix.radius = 0.5;
    desc.helix.pitch = 0.2;
    desc.helix.turns = 1.5;
    desc.section_radius = (rw_doubles){&radius, 1};
    desc.density = 1000.0;
    desc.young_modulus = 1e9;
    return desc;
}

static rw_rods_geometry build(const rw_rod_desc* desc) {
    rw_rods_geometry g;
    rw_error error;
    if (rw_rods_build(desc, &arena, &g, &error) != RW_STATUS_OK)
        fail_msg("%s: %s", error.path, error.text);
    return g;
}

static void assert_refused(const rw_rod_desc* desc, const char* path) {
    rw_rods_geometry g;
    rw_error error = {0};
    assert_int_equal(rw_rods_build(desc, &arena, &g, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, path);
}

static rw_vec3 node(const rw_rods_geometry* g, int32_t i) {
    return rw_vec3_load(g->position + 3 * i);
}

static rw_quat frame(const rw_rods_geometry* g, int32_t i) {
    return rw_quat_load(g->rotation + 4 * i);
}

static void assert_vector(rw_vec3 a, rw_vec3 b, double tolerance) {
    rw_assert_near(rw_vec3_norm(rw_vec3_sub(a, b)), 0.0, tolerance);
}

static void straight_rod_has_its_ends_and_frame(void** unused) {
    (void)unused;
    rw_rod_desc desc = some_rod(RW_ROD_STRAIGHT);
    desc.order = 2;
    desc.straight.start[2] = 0.1;
    desc.straight.end[2] = 0.1;
    rw_rods_geometry g = build(&desc);
    assert_int_equal(g.counts.node_count, 21);
    assert_int_equal(g.counts.element_count, 10);
    assert_int_equal(g.counts.bend_count, 19);
    assert_true(g.position[60] == 2.0 && g.position[62] == 0.1);
    for (int32_t i = 0; i <= 20; i++) {
        assert_vector(rw_quat_axis_z(frame(&g, i)), rw_vec3_make(1, 0, 0), 1e-15);
        // Smallest rotation of world z onto x turns about y: d2 stays.
        assert_vector(rw_quat_rotate(frame(&g, i), rw_vec3_make(0, 1, 0)), rw_vec3_make(0, 1, 0),
                      1e-15);
    }
    rw_assert_near(g.rest_arc[20], 2.0, 1e-15);
    double mass = 0.0;
    for (int32_t i = 0; i <= 20; i++)
        mass += g.node_mass[i];
    rw_assert_near(mass, 1000.0 * pi * radius * radius * 2.0, 1e-12);
    rw_assert_near(g.node_mass[0], 0.5 * g.node_mass[1], 1e-16);
    desc.straight.has_normal = true;
    desc.straight.normal[1] = 3.0;
    desc.straight.normal[0] = 1.0;
    g = build(&desc);
    assert_vector(rw_quat_rotate(frame(&g, 7), rw_vec3_make(1, 0, 0)), rw_vec3_make(0, 1, 0),
                  1e-15);
    desc.straight.normal[1] = 0.0;
    assert_refused(&desc, "straight.normal");
    desc = some_rod(RW_ROD_STRAIGHT);
    desc.straight.end[0] = 0.0;
    assert_refused(&desc, "straight.end");
}

static void helix_has_its_radius_pitch_and_tangent(void** unused) {
    (void)unused;
    for (int hand = -1; hand <= 1; hand += 2) {
        rw_rod_desc desc = some_rod(RW_ROD_HELIX);
        desc.helix.turns = 1.5 * hand;
        desc.helix.center[0] = 3.0;
        desc.elements = 60;
        rw_rods_geometry g = build(&desc);
        assert_vector(node(&g, 0), rw_vec3_make(3.5, 0, 0), 1e-15);
        assert_vector(node(&g, 60), rw_vec3_make(2.5, 0, 0.3), 1e-14);
        assert_vector(node(&g, 10), rw_vec3_make(3.0, hand * 0.5, 0.05), 1e-14);
        for (int32_t i = 0; i <= 60; i++) {
            rw_vec3 p = node(&g, i), out = rw_vec3_make((p.x - 3.0) / 0.5, p.y / 0.5, 0.0);
            rw_assert_near(rw_vec3_norm(out), 1.0, 1e-14);
            assert_vector(rw_quat_rotate(frame(&g, i), rw_vec3_make(1, 0, 0)), out, 1e-14);
            double slope = 0.2 / (2.0 * pi * 0.5);
            rw_vec3 tangent = rw_vec3_make(-hand * out.y, hand * out.x, slope);
            assert_vector(rw_quat_axis_z(frame(&g, i)), rw_vec3_normalize(tangent), 1e-14);
        }
    }
    rw_rod_desc desc = some_rod(RW_ROD_HELIX);
    desc.helix.radius = 0.0;
    assert_refused(&desc, "helix.radius");
    desc = some_rod(RW_ROD_HELIX);
    desc.helix.turns = 0.0;
    assert_refused(&desc, "helix.turns");
    desc = some_rod(RW_ROD_HELIX);
    desc.helix.has_normal = true;
    desc.helix.normal[2] = 1.0;
    assert_refused(&desc, "helix.normal");
}

static void polyline_carries_its_frame_along(void** unused) {
    (void)unused;
    // Three sides of a square in the plane z = 0: the frame turns about z, d1 keeps its height.
    static const double points[] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0};
    rw_rod_desc desc = some_rod(RW_ROD_POLYLINE);
    desc.elements = 0;
    desc.polyline.positions = (rw_doubles){points, 12};
    desc.polyline.has_normal = true;
    desc.polyline.normal[2] = 1.0;
    rw_rods_geometry g = build(&desc);
    assert_int_equal(g.counts.node_count, 4);
    assert_int_equal(g.counts.element_count, 3);
    for (int32_t i = 0; i < 4; i++)
        assert_vector(rw_quat_rotate(frame(&g, i), rw_vec3_make(1, 0, 0)), rw_vec3_make(0, 0, 1),
                      1e-15);
    double half = sqrt(0.5);
    assert_vector(rw_quat_axis_z(frame(&g, 0)), rw_vec3_make(1, 0, 0), 1e-15);
    assert_vector(rw_quat_axis_z(frame(&g, 1)), rw_vec3_make(half, half, 0), 1e-15);
    assert_vector(rw_quat_axis_z(frame(&g, 3)), rw_vec3_make(-1, 0, 0), 1e-15);
    for (int32_t s = 0; s < 3; s++) {
        rw_quat q = rw_rods_segment_frame(&desc, s, g.position, g.rotation);
        rw_vec3 d = rw_vec3_sub(node(&g, s + 1), node(&g, s));
        assert_vector(rw_quat_axis_z(q), rw_vec3_normalize(d), 1e-15);
    }
    static const double twice[] = {0, 0, 0, 1, 0, 0, 1, 0, 0};
    desc.polyline.positions = (rw_doubles){twice, 9};
    assert_refused(&desc, "polyline.positions[6]");
    static const double folded[] = {0, 0, 0, 1, 0, 0, 0.5, 0, 0};
    desc.polyline.positions = (rw_doubles){folded, 9};
    assert_refused(&desc, "polyline.positions[3]");
}

static void rest_shape_is_straight_as_created_or_scaled(void** unused) {
    (void)unused;
    rw_rod_desc desc = some_rod(RW_ROD_HELIX);
    rw_rods_geometry g = build(&desc);
    assert_memory_equal(g.rest_position, g.position, 33 * sizeof(double));
    desc.rest = RW_REST_STRAIGHT;
    g = build(&desc);
    for (int32_t i = 1; i <= 10; i++) {
        assert_memory_equal(g.rest_rotation + 4 * i, g.rotation, 4 * sizeof(double));
        rw_vec3 d = rw_vec3_sub(rw_vec3_load(g.rest_position + 3 * i), node(&g, 0));
        rw_assert_near(rw_vec3_norm(d), g.rest_arc[i], 1e-14);
    }
    desc = some_rod(RW_ROD_STRAIGHT);
    desc.has_rest_length = true;
    desc.rest_length = 1.5;
    g = build(&desc);
    rw_assert_near(g.rest_arc[10], 1.5, 1e-15);
    rw_assert_near(g.rest_length[3], 0.15, 1e-15);
    rw_assert_near(g.rest_position[30], 1.5, 1e-15);
    double mass = 0.0;
    for (int32_t i = 0; i <= 10; i++)
        mass += g.node_mass[i];
    rw_assert_near(mass, 1000.0 * pi * radius * radius * 1.5, 1e-13);
}

static void graph_takes_what_is_given_and_makes_the_rest(void** unused) {
    (void)unused;
    // A Y: 0-1-2 with a branch 1-3, and a piece apart 4-5-6.
    static const double points[] = {0, 0, 0, 0, 0, 1, 0, 0, 2, 1, 0, 2, 5, 0, 0, 6, 0, 0, 7, 1, 0};
    static const uint32_t segments[] = {0, 1, 1, 2, 1, 3, 4, 5, 5, 6};
    rw_rod_desc desc = some_rod(RW_ROD_GRAPH);
    desc.graph.positions = (rw_doubles){points, 21};
    desc.graph.segments = (rw_uints){segments, 10};
    rw_rods_geometry g = build(&desc);
    // Only vertex 5 joins exactly two segments.
    assert_int_equal(g.counts.bend_count, 1);
    assert_int_equal(g.bend[0], 3);
    assert_int_equal(g.bend[1], 4);
    for (int32_t s = 0; s < 5; s++) {
        rw_quat q = rw_rods_segment_frame(&desc, s, g.position, g.rotation);
        rw_vec3 d = rw_vec3_sub(node(&g, g.segment[2 * s + 1]), node(&g, g.segment[2 * s]));
        assert_vector(rw_quat_axis_z(q), rw_vec3_normalize(d), 1e-15);
        // A node has the frame of its first segment.
        if (s == 0 || s == 3)
            rw_assert_near(fabs(rw_quat_dot(q, frame(&g, g.segment[2 * s]))), 1.0, 1e-15);
    }
    double line = 1000.0 * pi * radius * radius;
    rw_assert_near(g.node_mass[1], line * 0.5 * (1.0 + 1.0 + sqrt(2.0)), 1e-12);
    static const uint32_t bends[] = {0, 1, 0, 2};
    desc.graph.bends = (rw_uints){bends, 4};
    g = build(&desc);
    assert_int_equal(g.counts.bend_count, 2);
    static const uint32_t apart[] = {0, 1, 0, 3};
    desc.graph.bends = (rw_uints){apart, 4};
    assert_refused(&desc, "graph.bends[2]");
    desc.graph.bends.count = 0;
    static const uint32_t loop[] = {0, 1, 2, 2};
    desc.graph.segments = (rw_uints){loop, 4};
    assert_refused(&desc, "graph.segments[2]");
    static const uint32_t bare[] = {0, 1, 1, 2};
    desc.graph.segments = (rw_uints){bare, 4};
    assert_refused(&desc, "graph.vertex_masses[3]");
}

static void sections_have_their_constants(void** unused) {
    (void)unused;
    rw_rod_desc desc = some_rod(RW_ROD_STRAIGHT);
    desc.poisson_ratio = 0.25;
    rw_rods_section s = rw_rods_section_at(&desc, 0.3);
    rw_assert_near(s.area, pi * 1e-4, 1e-18);
    rw_assert_near(s.i1, 0.25 * pi * 1e-8, 1e-22);
    rw_assert_near(s.gj, 0.4e9 * 0.5 * pi * 1e-8, 1e-12);
    rw_assert_near(s.ga1, 0.4e9 * s.area, 1e-6);
    desc.shear_factor = 0.9;
    rw_assert_near(rw_rods_section_at(&desc, 0.0).ga2, 0.36e9 * s.area, 1e-6);
    static const double taper[] = {0.01, 0.02, 0.04};
    desc.elements = 2;
    desc.section_radius = (rw_doubles){taper, 3};
    rw_assert_near(rw_rods_section_at(&desc, 0.25).area, pi * 0.015 * 0.015, 1e-17);
    rw_assert_near(rw_rods_section_at(&desc, 1.0).area, pi * 0.04 * 0.04, 1e-17);
    // Mass of two frustums.
    rw_rods_geometry g = build(&desc);
    double volume = pi / 3.0 * (1e-4 + 2e-4 + 4e-4) + pi / 3.0 * (4e-4 + 8e-4 + 16e-4);
    rw_assert_near(g.node_mass[0] + g.node_mass[1] + g.node_mass[2], 1000.0 * volume, 1e-12);
    desc.section = RW_SECTION_RECTANGLE;
    desc.section_width = 0.2;
    desc.section_height = 0.1;
    s = rw_rods_section_at(&desc, 0.0);
    rw_assert_near(s.i1, 0.2 * 1e-3 / 12.0, 1e-18); // about d1, the width's direction
    rw_assert_near(s.i2, 0.1 * 8e-3 / 12.0, 1e-18);
    desc.has_stiffness = true;
    desc.stiffness.ei2 = 7.0;
    assert_true(rw_rods_section_at(&desc, 0.0).ei2 == 7.0);
}

// Timoshenko and Goodier's table (section 109) of J/(a b^3), and more digits of the same series.
static void rectangle_torsion_is_saint_venants(void** unused) {
    (void)unused;
    rw_assert_near(rw_rods_rectangle_torsion(1.0, 1.0), 0.1405770149551555, 1e-12);
    rw_assert_near(rw_rods_rectangle_torsion(2.0, 1.0) / 2.0, 0.22868167711957244, 1e-12);
    rw_assert_near(rw_rods_rectangle_torsion(1.0, 10.0) / 10.0, 0.312, 1e-3);
    rw_assert_near(rw_rods_rectangle_torsion(1000.0, 1.0) / 1000.0, 1.0 / 3.0 - 0.21e-3, 1e-6);
    rw_assert_near(rw_rods_rectangle_torsion(3.0, 2.0), rw_rods_rectangle_torsion(2.0, 3.0), 1e-14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(straight_rod_has_its_ends_and_frame),
        cmocka_unit_test(helix_has_its_radius_pitch_and_tangent),
        cmocka_unit_test(polyline_carries_its_frame_along),
        cmocka_unit_test(rest_shape_is_straight_as_created_or_scaled),
        cmocka_unit_test(graph_takes_what_is_given_and_makes_the_rest),
        cmocka_unit_test(sections_have_their_constants),
        cmocka_unit_test(rectangle_torsion_is_saint_venants),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
