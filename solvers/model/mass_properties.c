#include "solvers/model/mass_properties.h"

#include <math.h>
#include <string.h>

#include "solvers/base/hash.h"
#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/model/hull.h"

#define PI 3.14159265358979323846

// Of one shape in its own frame: volume, centre, and the second moment about the frame's origin as
// integral of x x' over the volume (so that sums and shifts are plain).
typedef struct moments {
    double volume;
    rw_vec3 first;  // integral of x
    rw_mat3 second; // integral of x x'
} moments;

static moments of_axes(double volume, double xx, double yy, double zz) {
    return (moments){.volume = volume, .second = rw_mat3_diagonal(xx, yy, zz)};
}

static moments of_sphere(double r) {
    double volume = 4.0 / 3.0 * PI * r * r * r;
    double e = volume * r * r / 5;
    return of_axes(volume, e, e, e);
}

static moments of_box(const double* half) {
    double volume = 8 * half[0] * half[1] * half[2];
    return of_axes(volume, volume * half[0] * half[0] / 3, volume * half[1] * half[1] / 3,
                   volume * half[2] * half[2] / 3);
}

static moments of_cylinder(double r, double half_length) {
    double volume = 2 * PI * r * r * half_length;
    double across = volume * r * r / 4;
    return of_axes(volume, across, across, volume * half_length * half_length / 3);
}

// A cylinder and two half spheres, whose centroids lie 3r/8 beyond their flat faces.
static moments of_capsule(double r, double half_length) {
    moments cylinder = of_cylinder(r, half_length), sphere = of_sphere(r);
    double along = sphere.volume * (r * r / 5 + half_length * half_length +
                                    2 * half_length * 3 * r / 8);
    double across = sphere.second.m[0][0] + cylinder.second.m[0][0];
    return of_axes(cylinder.volume + sphere.volume, across, across,
                   cylinder.second.m[2][2] + along);
}

// The tetrahedron (o, a, b, c) with signed volume, moments about o = the reference point:
// integral of x x' = volume/20 (sum of p p' over the corners + s s'), s = a + b + c, p(o) = 0.
static void add_tetrahedron(moments* sum, rw_vec3 a, rw_vec3 b, rw_vec3 c) {
    double volume = rw_vec3_dot(a, rw_vec3_cross(b, c)) / 6;
    rw_vec3 s = rw_vec3_add(rw_vec3_add(a, b), c);
    sum->volume += volume;
    sum->first = rw_vec3_add_scaled(sum->first, volume / 4, s);
    rw_mat3 second = rw_mat3_add(rw_mat3_add(rw_mat3_outer(a, a), rw_mat3_outer(b, b)),
                                 rw_mat3_add(rw_mat3_outer(c, c), rw_mat3_outer(s, s)));
    sum->second = rw_mat3_add(sum->second, rw_mat3_scale(second, volume / 20));
}

// Moves the reference point of moments by -shift: x = x0 + shift.
static moments shifted(moments m, rw_vec3 shift) {
    moments out = m;
    out.first = rw_vec3_add_scaled(m.first, m.volume, shift);
    rw_mat3 mixed = rw_mat3_outer(m.first, shift);
    out.second = rw_mat3_add(out.second, rw_mat3_add(mixed, rw_mat3_transpose(mixed)));
    out.second = rw_mat3_add(out.second, rw_mat3_scale(rw_mat3_outer(shift, shift), m.volume));
    return out;
}

static moments of_triangles(const double* vertices, const uint32_t* triangles, size_t count) {
    // Relative to the first vertex, so that a mesh far from its origin keeps its digits.
    rw_vec3 origin = rw_vec3_load(vertices + 3 * (size_t)triangles[0]);
    moments sum = {0};
    for (size_t i = 0; i < count; i++) {
        rw_vec3 corner[3];
        for (int k = 0; k < 3; k++) {
            corner[k] =
                rw_vec3_sub(rw_vec3_load(vertices + 3 * (size_t)triangles[3 * i + k]), origin);
        }
        add_tetrahedron(&sum, corner[0], corner[1], corner[2]);
    }
    return shifted(sum, origin);
}

// A key of a corner's place, so that a vertex that is given once per face counts as one.
static uint64_t corner_key(const double* vertices, uint32_t index) {
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_doubles(&hash, vertices + 3 * (size_t)index, 3);
    return rw_hash_value(&hash);
}

static uint64_t edge_key(uint64_t tail, uint64_t head) {
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_word(&hash, tail);
    rw_hash_word(&hash, head);
    return rw_hash_value(&hash);
}

// A closed surface has every directed edge as often in one direction as in the other. The two
// multisets are compared by the sums of their keys, which takes no memory.
static bool is_closed(const double* vertices, const uint32_t* triangles, size_t count) {
    uint64_t forth = 0, back = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t key[3];
        for (int k = 0; k < 3; k++) {
            key[k] = corner_key(vertices, triangles[3 * i + (size_t)k]);
        }
        for (int k = 0; k < 3; k++) {
            forth += edge_key(key[k], key[(k + 1) % 3]);
            back += edge_key(key[(k + 1) % 3], key[k]);
        }
    }
    return forth == back;
}

static rw_status of_shape(const rw_shape_desc* shape, rw_alloc* alloc, moments* m,
                          rw_error* error) {
    *m = (moments){0};
    switch (shape->kind) {
    case RW_SHAPE_SPHERE:
        *m = of_sphere(shape->radius);
        break;
    case RW_SHAPE_CAPSULE:
        *m = of_capsule(shape->radius, shape->half_length);
        break;
    case RW_SHAPE_BOX:
        *m = of_box(shape->half_extents);
        break;
    case RW_SHAPE_CYLINDER:
        *m = of_cylinder(shape->radius, shape->half_length);
        break;
    case RW_SHAPE_PLANE:
        break;
    case RW_SHAPE_HULL: {
        rw_hull hull;
        rw_status status = rw_hull_build(&hull, alloc, shape->vertices.data,
                                         (int32_t)(shape->vertices.count / 3), error);
        if (status != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "hull") : status;
        }
        *m = of_triangles(shape->vertices.data, hull.triangles, (size_t)hull.triangle_count);
        rw_hull_finish(&hull);
        break;
    }
    case RW_SHAPE_MESH: {
        size_t count = shape->triangles.count / 3;
        if (!is_closed(shape->vertices.data, shape->triangles.data, count)) {
            RW_FAIL(error, INVALID_ARGUMENT, "mesh.triangles", "must be closed for a density");
        }
        *m = of_triangles(shape->vertices.data, shape->triangles.data, count);
        if (!(m->volume > 0)) {
            RW_FAIL(error, INVALID_ARGUMENT, "mesh.triangles",
                    "must be counter-clockwise from outside for a density, volume is %g",
                    m->volume);
        }
        break;
    }
    }
    return RW_STATUS_OK;
}

rw_status rw_mass_properties_of_shapes(const rw_shape_desc* shapes, size_t count, double density,
                                       rw_alloc* alloc, rw_mass_properties* properties,
                                       rw_error* error) {
    moments total = {0};
    for (size_t i = 0; i < count; i++) {
        moments m;
        rw_status status = of_shape(&shapes[i], alloc, &m, error);
        if (status != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "shapes[%zu]", i) : status;
        }
        // Into the body's frame: turn, then shift.
        rw_mat3 r = rw_quat_to_mat3(rw_quat_normalize(rw_quat_load(shapes[i].frame.rotation)));
        m.first = rw_mat3_apply(&r, m.first);
        m.second = rw_mat3_mul_transpose(rw_mat3_mul(r, m.second), r);
        m = shifted(m, rw_vec3_load(shapes[i].frame.position));
        // From here on `volume` is mass.
        double rho = shapes[i].density > 0 ? shapes[i].density : density;
        total.volume += rho * m.volume;
        total.first = rw_vec3_add_scaled(total.first, rho, m.first);
        total.second = rw_mat3_add(total.second, rw_mat3_scale(m.second, rho));
    }
    if (!(total.volume > 0)) {
        RW_FAIL(error, INVALID_ARGUMENT, "shapes", "have no volume, so density gives no mass");
    }
    rw_vec3 center = rw_vec3_scale(total.first, 1 / total.volume);
    moments about = shifted(total, rw_vec3_neg(center));
    rw_mat3* s = &about.second;
    properties->mass = total.volume;
    rw_vec3_store(properties->center_of_mass, center);
    double inertia[6] = {s->m[1][1] + s->m[2][2], s->m[0][0] + s->m[2][2], s->m[0][0] + s->m[1][1],
                         -s->m[0][1],             -s->m[0][2],             -s->m[1][2]};
    for (int i = 0; i < 6; i++) {
        properties->inertia[i] = inertia[i];
    }
    return RW_STATUS_OK;
}
