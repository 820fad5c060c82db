#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/model/hull.h"
#include "solvers/model/mass_properties.h"

static rw_alloc alloc;

static int begin(void** state) {
    (void)state;
    rw_alloc_init(&alloc, 0);
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_alloc_finish(&alloc);
    return 0;
}

static rw_shape_desc shape_of(rw_shape_kind kind) {
    return (rw_shape_desc){.kind = kind, .frame = RW_FRAME_IDENTITY};
}

static rw_mass_properties of(const rw_shape_desc* shapes, size_t count, double density) {
    rw_mass_properties mass;
    rw_error error = {0};
    if (rw_mass_properties_of_shapes(shapes, count, density, &alloc, &mass, &error) !=
        RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    return mass;
}

static void check(const rw_mass_properties* mass, double m, double xx, double yy, double zz,
                  double tolerance) {
    rw_assert_near(mass->mass, m, tolerance * m);
    rw_assert_near(mass->inertia[0], xx, tolerance * xx);
    rw_assert_near(mass->inertia[1], yy, tolerance * yy);
    rw_assert_near(mass->inertia[2], zz, tolerance * zz);
    for (int i = 3; i < 6; i++) {
        rw_assert_near(mass->inertia[i], 0, tolerance * zz + 1e-15);
    }
}

static void primitives_have_their_textbook_values(void** state) {
    (void)state;
    double r = 0.3, h = 0.7, rho = 2.5;
    rw_shape_desc sphere = shape_of(RW_SHAPE_SPHERE);
    sphere.radius = r;
    rw_mass_properties mass = of(&sphere, 1, rho);
    double m = rho * 4 / 3 * M_PI * r * r * r;
    check(&mass, m, 0.4 * m * r * r, 0.4 * m * r * r, 0.4 * m * r * r, 1e-14);

    rw_shape_desc box = shape_of(RW_SHAPE_BOX);
    memcpy(box.half_extents, (double[]){0.1, 0.2, 0.3}, sizeof box.half_extents);
    mass = of(&box, 1, rho);
    m = rho * 8 * 0.006;
    check(&mass, m, m / 3 * 0.13, m / 3 * 0.10, m / 3 * 0.05, 1e-14);

    rw_shape_desc cylinder = shape_of(RW_SHAPE_CYLINDER);
    cylinder.radius = r;
    cylinder.half_length = h;
    mass = of(&cylinder, 1, rho);
    m = rho * M_PI * r * r * 2 * h;
    double across = m * (3 * r * r + 4 * h * h) / 12;
    check(&mass, m, across, across, m * r * r / 2, 1e-14);

    // Capsule: cylinder plus two half spheres (I about the own centroid 83/320 m r^2, moved out).
    rw_shape_desc capsule = shape_of(RW_SHAPE_CAPSULE);
    capsule.radius = r;
    capsule.half_length = h;
    mass = of(&capsule, 1, rho);
    double half = rho * 2.0 / 3 * M_PI * r * r * r, out = h + 3.0 / 8 * r;
    double caps = 2 * (83.0 / 320 * half * r * r + half * out * out);
    check(&mass, m + 2 * half, across + caps, across + caps, m * r * r / 2 + 0.8 * half * r * r,
          1e-13);
}

static void two_halves_of_a_box_are_the_whole_box(void** state) {
    (void)state;
    rw_shape_desc halves[2] = {shape_of(RW_SHAPE_BOX), shape_of(RW_SHAPE_BOX)};
    for (int i = 0; i < 2; i++) {
        memcpy(halves[i].half_extents, (double[]){0.5, 0.2, 0.3}, sizeof halves[i].half_extents);
        halves[i].frame.position[0] = i == 0 ? 1.5 : 2.5;
    }
    rw_mass_properties mass = of(halves, 2, 3);
    double m = 3 * 8 * 1.0 * 0.2 * 0.3;
    check(&mass, m, m / 3 * (0.04 + 0.09), m / 3 * (1 + 0.09), m / 3 * (1 + 0.04), 1e-13);
    rw_assert_near(mass.center_of_mass[0], 2, 1e-14);
}

static void shapes_may_have_their_own_density(void** state) {
    (void)state;
    rw_shape_desc balls[2] = {shape_of(RW_SHAPE_SPHERE), shape_of(RW_SHAPE_SPHERE)};
    for (int i = 0; i < 2; i++) {
        balls[i].radius = 0.1;
        balls[i].frame.position[1] = i;
    }
    balls[1].density = 3000;
    rw_mass_properties mass = of(balls, 2, 1000);
    double m = 4.0 / 3 * M_PI * 1e-3 * 1000;
    rw_assert_near(mass.mass, 4 * m, 1e-12);
    rw_assert_near(mass.center_of_mass[1], 0.75, 1e-14);
    double own = 4 * 0.4 * m * 0.01;
    check(&mass, 4 * m, own + m * 0.5625 + 3 * m * 0.0625, own, own + m * 0.5625 + 3 * m * 0.0625,
          1e-13);
    // Without a density of the body a shape without its own weighs nothing.
    mass = of(balls, 2, 0);
    rw_assert_near(mass.mass, 3 * m, 1e-12);
    rw_assert_near(mass.center_of_mass[1], 1, 1e-14);
}

static void a_turned_shape_turns_its_tensor(void** state) {
    (void)state;
    rw_shape_desc box = shape_of(RW_SHAPE_BOX);
    memcpy(box.half_extents, (double[]){0.1, 0.2, 0.3}, sizeof box.half_extents);
    rw_mass_properties plain = of(&box, 1, 1);
    rw_quat q = rw_so3_exp((rw_vec3){0.3, -0.7, 1.1});
    rw_quat_store(box.frame.rotation, q);
    memcpy(box.frame.position, (double[]){1, 2, 3}, sizeof box.frame.position);
    rw_mass_properties turned = of(&box, 1, 1);
    rw_mat3 r = rw_quat_to_mat3(q), j = rw_mat3_symmetric(plain.inertia);
    j = rw_mat3_mul_transpose(rw_mat3_mul(r, j), r);
    rw_mat3 actual = rw_mat3_symmetric(turned.inertia);
    for (int i = 0; i < 9; i++) {
        rw_assert_near(actual.m[i / 3][i % 3], j.m[i / 3][i % 3], 1e-15);
    }
    for (int i = 0; i < 3; i++) {
        rw_assert_near(turned.center_of_mass[i], i + 1, 1e-14);
    }
}

static const double cube_points[] = {-1, -2, -3, 1, -2, -3, -1, 2, -3, 1, 2, -3,
                                     -1, -2, 3,  1, -2, 3,  -1, 2, 3,  1, 2, 3};

static void hull_and_mesh_of_a_box_are_the_box(void** state) {
    (void)state;
    double points[24];
    for (int i = 0; i < 24; i++) {
        points[i] = cube_points[i] * 0.1;
    }
    rw_shape_desc hull = shape_of(RW_SHAPE_HULL);
    hull.vertices = (rw_doubles){points, 24};
    rw_mass_properties mass = of(&hull, 1, 1000);
    double m = 1000 * 8 * 0.006;
    check(&mass, m, m / 3 * 0.13, m / 3 * 0.10, m / 3 * 0.05, 1e-13);
    rw_hull faces;
    assert_int_equal(rw_hull_build(&faces, &alloc, points, 8, NULL), RW_STATUS_OK);
    assert_int_equal(faces.triangle_count, 12);
    rw_shape_desc mesh = shape_of(RW_SHAPE_MESH);
    mesh.vertices = hull.vertices;
    mesh.triangles = (rw_uints){faces.triangles, 36};
    mass = of(&mesh, 1, 1000);
    check(&mass, m, m / 3 * 0.13, m / 3 * 0.10, m / 3 * 0.05, 1e-13);
    rw_hull_finish(&faces);
}

static void a_mesh_must_be_closed_however_its_holes_lie(void** state) {
    (void)state;
    rw_hull faces;
    assert_int_equal(rw_hull_build(&faces, &alloc, cube_points, 8, NULL), RW_STATUS_OK);
    // A tube: the box without its two faces across z, whose areas cancel.
    uint32_t tube[36];
    size_t count = 0;
    for (int32_t t = 0; t < faces.triangle_count; t++) {
        const uint32_t* corner = &faces.triangles[3 * t];
        double z = cube_points[3 * corner[0] + 2];
        if (cube_points[3 * corner[1] + 2] != z || cube_points[3 * corner[2] + 2] != z) {
            memcpy(&tube[count], corner, 3 * sizeof *corner);
            count += 3;
        }
    }
    assert_int_equal(count, 24);
    rw_shape_desc mesh = shape_of(RW_SHAPE_MESH);
    mesh.vertices = (rw_doubles){cube_points, 24};
    mesh.triangles = (rw_uints){tube, count};
    rw_mass_properties mass;
    rw_error error = {0};
    assert_int_equal(rw_mass_properties_of_shapes(&mesh, 1, 1000, &alloc, &mass, &error),
                     RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "shapes[0].mesh.triangles");

    // Every face with corners of its own is the same box.
    double corners[108];
    uint32_t own[36];
    for (uint32_t i = 0; i < 36; i++) {
        memcpy(&corners[3 * i], &cube_points[3 * faces.triangles[i]], 3 * sizeof(double));
        own[i] = i;
    }
    mesh.vertices = (rw_doubles){corners, 108};
    mesh.triangles = (rw_uints){own, 36};
    mass = of(&mesh, 1, 1);
    rw_assert_near(mass.mass, 48, 1e-12);
    rw_hull_finish(&faces);
}

// Closed, convex, and no point outside.
static void check_hull(const double* points, int32_t count, double tolerance) {
    rw_hull hull;
    rw_error error = {0};
    if (rw_hull_build(&hull, &alloc, points, count, &error) != RW_STATUS_OK) {
        fail_msg("%s", error.text);
    }
    int32_t n = hull.triangle_count;
    // Euler: every edge once in each direction.
    for (int32_t e = 0; e < 3 * n; e++) {
        uint32_t from = hull.triangles[e], to = hull.triangles[e / 3 * 3 + (e + 1) % 3];
        int back = 0;
        for (int32_t f = 0; f < 3 * n && n < 3000; f++) {
            back += hull.triangles[f] == to && hull.triangles[f / 3 * 3 + (f + 1) % 3] == from;
        }
        if (n < 3000) {
            assert_int_equal(back, 1);
        }
    }
    double worst = 0;
    for (int32_t t = 0; t < n; t++) {
        rw_vec3 a = rw_vec3_load(points + 3 * hull.triangles[3 * t]);
        rw_vec3 b = rw_vec3_load(points + 3 * hull.triangles[3 * t + 1]);
        rw_vec3 c = rw_vec3_load(points + 3 * hull.triangles[3 * t + 2]);
        rw_vec3 normal =
            rw_vec3_normalize(rw_vec3_cross(rw_vec3_sub(b, a), rw_vec3_sub(c, a)));
        for (int32_t i = 0; i < count; i += n < 3000 ? 1 : 97) {
            double d = rw_vec3_dot(normal, rw_vec3_sub(rw_vec3_load(points + 3 * i), a));
            worst = d > worst ? d : worst;
        }
    }
    rw_assert_near(worst, 0, tolerance);
    rw_hull_finish(&hull);
}

static double* random_points(int32_t count, bool on_sphere) {
    double* points = test_malloc((size_t)count * 3 * sizeof *points);
    uint64_t random = 7;
    for (int32_t i = 0; i < count; i++) {
        rw_vec3 v;
        double* at = &v.x;
        for (int k = 0; k < 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at[k] = (double)(random >> 11) * 0x1p-52 - 1;
        }
        rw_vec3_store(points + 3 * i, on_sphere ? rw_vec3_normalize(v) : v);
    }
    return points;
}

static void hulls_of_random_points_are_closed_and_hold_all(void** state) {
    (void)state;
    const int32_t counts[] = {4, 5, 20, 300, 1000};
    for (size_t i = 0; i < RW_COUNT_OF(counts); i++) {
        for (int on_sphere = 0; on_sphere < 2; on_sphere++) {
            double* points = random_points(counts[i], on_sphere != 0);
            check_hull(points, counts[i], 1e-9);
            test_free(points);
        }
    }
}

static void a_large_hull_is_quick_and_right(void** state) {
    (void)state;
    double* points = random_points(65535, true);
    rw_shape_desc hull = shape_of(RW_SHAPE_HULL);
    hull.vertices = (rw_doubles){points, 65535 * 3};
    rw_mass_properties mass = of(&hull, 1, 1);
    // The polyhedron of n points on the unit sphere misses about c/n of the volume.
    rw_assert_near(mass.mass, 4.0 / 3 * M_PI, 1e-3);
    assert_true(mass.mass < 4.0 / 3 * M_PI);
    test_free(points);
}

static void grids_with_many_points_in_a_plane_are_taken(void** state) {
    (void)state;
    static double points[7 * 7 * 7 * 3];
    int32_t count = 0;
    for (int i = 0; i < 343; i++) {
        points[3 * count] = 0.1 * (i % 7);
        points[3 * count + 1] = 0.1 * (i / 7 % 7);
        points[3 * count + 2] = 0.1 * (i / 49);
        count++;
    }
    check_hull(points, count, 1e-9);
    rw_shape_desc hull = shape_of(RW_SHAPE_HULL);
    hull.vertices = (rw_doubles){points, 343 * 3};
    rw_mass_properties mass = of(&hull, 1, 1);
    rw_assert_near(mass.mass, 0.216, 1e-9);
    // All points twice, and turned out of the axes.
    static double turned[2 * 343 * 3];
    rw_quat q = rw_so3_exp((rw_vec3){0.4, 0.5, -0.6});
    for (int i = 0; i < 2 * 343; i++) {
        rw_vec3_store(turned + 3 * i, rw_quat_rotate(q, rw_vec3_load(points + 3 * (i % 343))));
    }
    check_hull(turned, 2 * 343, 1e-9);
    hull.vertices = (rw_doubles){turned, 2 * 343 * 3};
    mass = of(&hull, 1, 1);
    rw_assert_near(mass.mass, 0.216, 1e-9);
}

static void flat_point_sets_are_refused(void** state) {
    (void)state;
    rw_hull hull;
    rw_error error;
    const double flat[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0.5, 0.2, 0};
    assert_int_equal(rw_hull_build(&hull, &alloc, flat, 5, &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "vertices");
    const double line[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    assert_int_equal(rw_hull_build(&hull, &alloc, line, 4, &error), RW_STATUS_INVALID_ARGUMENT);
    const double same[12] = {0};
    assert_int_equal(rw_hull_build(&hull, &alloc, same, 4, &error), RW_STATUS_INVALID_ARGUMENT);
}

static void a_hull_survives_every_failing_allocation(void** state) {
    (void)state;
    double* points = random_points(200, true);
    for (int64_t n = 1;; n++) {
        rw_hull hull;
        rw_alloc_fail_after(n);
        rw_status status = rw_hull_build(&hull, &alloc, points, 200, NULL);
        rw_alloc_fail_after(0);
        if (status == RW_STATUS_OK) {
            rw_hull_finish(&hull);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
    }
    test_free(points);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primitives_have_their_textbook_values),
        cmocka_unit_test(two_halves_of_a_box_are_the_whole_box),
        cmocka_unit_test(shapes_may_have_their_own_density),
        cmocka_unit_test(a_turned_shape_turns_its_tensor),
        cmocka_unit_test(hull_and_mesh_of_a_box_are_the_box),
        cmocka_unit_test(a_mesh_must_be_closed_however_its_holes_lie),
        cmocka_unit_test(hulls_of_random_points_are_closed_and_hold_all),
        cmocka_unit_test(a_large_hull_is_quick_and_right),
        cmocka_unit_test(grids_with_many_points_in_a_plane_are_taken),
        cmocka_unit_test(flat_point_sets_are_refused),
        cmocka_unit_test(a_hull_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
