// Validation of rods: geometry, section, material, rest shape.
#include <math.h>
#include <stdio.h>

#include "solvers/math/vec3.h"
#include "solvers/model/bounds.h"
#include "solvers/model/validate.h"

// A direction: three numbers, not all zero.
static rw_status direction(const double* values, const char* field, rw_error* error) {
    RW_TRY(rw_validate_numbers(values, 3, field, error));
    double norm = rw_vec3_norm(rw_vec3_load(values));
    if (!(norm >= 1e-100)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must not be the zero vector");
    }
    return RW_STATUS_OK;
}

static rw_status rotations(rw_doubles values, const char* field, rw_error* error) {
    for (size_t row = 0; row < values.count / 4; row++) {
        if (rw_validate_rotation(values.data + 4 * row, "", NULL) != RW_STATUS_OK) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, 4 * row);
            return rw_validate_rotation(values.data + 4 * row, path, error);
        }
    }
    return RW_STATUS_OK;
}

// d1 must not lie along the tangent.
static rw_status normal_across(const double* normal, rw_vec3 tangent, const char* field,
                               rw_error* error) {
    RW_TRY(direction(normal, field, error));
    rw_vec3 n = rw_vec3_normalize(rw_vec3_load(normal));
    if (rw_vec3_norm(rw_vec3_cross(n, rw_vec3_normalize(tangent))) < 1e-6) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must not be parallel to the rod");
    }
    return RW_STATUS_OK;
}

static rw_vec3 chord(const double* positions, size_t from, size_t to) {
    return rw_vec3_sub(rw_vec3_load(positions + 3 * to), rw_vec3_load(positions + 3 * from));
}

// Two points that are to be joined must lie apart.
static bool apart(const double* positions, size_t from, size_t to) {
    return rw_vec3_norm(chord(positions, from, to)) >= 1e-12;
}

static rw_status validate_straight(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_numbers(desc->straight.start, 3, "straight.start", error));
    RW_TRY(rw_validate_numbers(desc->straight.end, 3, "straight.end", error));
    rw_vec3 along =
        rw_vec3_sub(rw_vec3_load(desc->straight.end), rw_vec3_load(desc->straight.start));
    if (!(rw_vec3_norm(along) >= 1e-12)) {
        RW_FAIL(error, INVALID_ARGUMENT, "straight.end", "must not be the start");
    }
    return desc->straight.has_normal
               ? normal_across(desc->straight.normal, along, "straight.normal", error)
               : RW_STATUS_OK;
}

static rw_status validate_helix(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_numbers(desc->helix.center, 3, "helix.center", error));
    RW_TRY(direction(desc->helix.axis, "helix.axis", error));
    RW_TRY(rw_bounds_positive(desc->helix.radius, "helix.radius", error));
    RW_TRY(rw_bounds_finite(desc->helix.pitch, "helix.pitch", error));
    RW_TRY(rw_bounds_finite(desc->helix.turns, "helix.turns", error));
    if (desc->helix.turns == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "helix.turns", "must not be 0");
    }
    return desc->helix.has_normal
               ? normal_across(desc->helix.normal, rw_vec3_load(desc->helix.axis), "helix.normal",
                               error)
               : RW_STATUS_OK;
}

static rw_status validate_polyline(const rw_rod_desc* desc, rw_error* error) {
    rw_doubles positions = desc->polyline.positions;
    RW_TRY(rw_bounds_rows(positions.count, 3, "polyline.positions", error));
    size_t nodes = positions.count / 3;
    if (nodes < 2 || (nodes - 1) % desc->order != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "polyline.positions",
                "must hold elements * order + 1 nodes (order %u), got %zu", desc->order, nodes);
    }
    RW_TRY(rw_validate_numbers(positions.data, positions.count, "polyline.positions", error));
    if (desc->elements != 0 && desc->elements != (nodes - 1) / desc->order) {
        RW_FAIL(error, INVALID_ARGUMENT, "elements", "must be %zu for %zu nodes, got %u",
                (nodes - 1) / desc->order, nodes, desc->elements);
    }
    for (size_t i = 1; i < nodes; i++) {
        if (!apart(positions.data, i - 1, i)) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "polyline.positions[%zu]", 3 * i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "node %zu lies on the node before it", i);
        }
    }
    if (desc->polyline.rotations.count != 0) {
        RW_TRY(rw_bounds_length(desc->polyline.rotations.count, 4 * nodes, "polyline.rotations",
                                error));
        RW_TRY(rotations(desc->polyline.rotations, "polyline.rotations", error));
    }
    if (desc->polyline.has_normal) {
        RW_TRY(rw_bounds_absent(desc->polyline.rotations.count, "polyline.normal",
                                "must not be given beside rotations", error));
        return normal_across(desc->polyline.normal, chord(positions.data, 0, 1), "polyline.normal",
                             error);
    }
    return RW_STATUS_OK;
}

static rw_status index_below(rw_uints values, size_t i, size_t limit_value, const char* field,
                             rw_error* error) {
    if (values.data[i] >= limit_value) {
        char path[RW_BOUNDS_ITEM_CAPACITY];
        snprintf(path, sizeof path, "%s[%zu]", field, i);
        RW_FAIL(error, OUT_OF_RANGE, path, "must be < %zu, got %u", limit_value, values.data[i]);
    }
    return RW_STATUS_OK;
}

static rw_status validate_segments(const rw_rod_desc* desc, rw_error* error) {
    rw_uints segments = desc->graph.segments;
    size_t vertices = desc->graph.positions.count / 3;
    RW_TRY(rw_bounds_rows(segments.count, 2, "graph.segments", error));
    if (segments.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "graph.segments", "must hold at least one row of 2");
    }
    for (size_t i = 0; i < segments.count; i += 2) {
        RW_TRY(index_below(segments, i, vertices, "graph.segments", error));
        RW_TRY(index_below(segments, i + 1, vertices, "graph.segments", error));
        if (segments.data[i] == segments.data[i + 1] ||
            !apart(desc->graph.positions.data, segments.data[i], segments.data[i + 1])) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "graph.segments[%zu]", i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "joins vertices %u and %u at the same place",
                    segments.data[i], segments.data[i + 1]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status validate_bends(const rw_rod_desc* desc, rw_error* error) {
    rw_uints bends = desc->graph.bends;
    const uint32_t* ends = desc->graph.segments.data;
    size_t segments = desc->graph.segments.count / 2;
    RW_TRY(rw_bounds_rows(bends.count, 2, "graph.bends", error));
    for (size_t i = 0; i < bends.count; i += 2) {
        RW_TRY(index_below(bends, i, segments, "graph.bends", error));
        RW_TRY(index_below(bends, i + 1, segments, "graph.bends", error));
        const uint32_t* a = ends + 2 * (size_t)bends.data[i];
        const uint32_t* b = ends + 2 * (size_t)bends.data[i + 1];
        bool meet = a[0] == b[0] || a[0] == b[1] || a[1] == b[0] || a[1] == b[1];
        if (bends.data[i] == bends.data[i + 1] || !meet) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "graph.bends[%zu]", i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "segments %u and %u share no vertex",
                    bends.data[i], bends.data[i + 1]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status empty_or(size_t count, size_t expected, const char* field, rw_error* error) {
    return count == 0 ? RW_STATUS_OK : rw_bounds_length(count, expected, field, error);
}

static rw_status validate_graph(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_bounds_rows(desc->graph.positions.count, 3, "graph.positions", error));
    size_t vertices = desc->graph.positions.count / 3;
    if (vertices < 2) {
        RW_FAIL(error, INVALID_ARGUMENT, "graph.positions",
                "must hold at least 2 rows of 3, got %zu", vertices);
    }
    RW_TRY(rw_validate_numbers(desc->graph.positions.data, desc->graph.positions.count,
                               "graph.positions", error));
    RW_TRY(validate_segments(desc, error));
    RW_TRY(validate_bends(desc, error));
    size_t segments = desc->graph.segments.count / 2, bends = desc->graph.bends.count / 2;
    RW_TRY(empty_or(desc->graph.vertex_masses.count, vertices, "graph.vertex_masses", error));
    RW_TRY(rw_bounds_positives(desc->graph.vertex_masses, "graph.vertex_masses", error));
    RW_TRY(
        empty_or(desc->graph.segment_stiffness.count, segments, "graph.segment_stiffness", error));
    RW_TRY(rw_bounds_positives(desc->graph.segment_stiffness, "graph.segment_stiffness", error));
    RW_TRY(empty_or(desc->graph.segment_rest_lengths.count, segments, "graph.segment_rest_lengths",
                    error));
    RW_TRY(
        rw_bounds_positives(desc->graph.segment_rest_lengths, "graph.segment_rest_lengths", error));
    RW_TRY(empty_or(desc->graph.segment_rotations.count, 4 * segments, "graph.segment_rotations",
                    error));
    RW_TRY(rotations(desc->graph.segment_rotations, "graph.segment_rotations", error));
    if (bends == 0) {
        const char* why = "needs bends";
        RW_TRY(
            rw_bounds_absent(desc->graph.bend_stiffness.count, "graph.bend_stiffness", why, error));
        RW_TRY(rw_bounds_absent(desc->graph.bend_rest_rotations.count, "graph.bend_rest_rotations",
                                why, error));
    }
    RW_TRY(empty_or(desc->graph.bend_stiffness.count, bends, "graph.bend_stiffness", error));
    RW_TRY(rw_bounds_not_negatives(desc->graph.bend_stiffness, "graph.bend_stiffness", error));
    RW_TRY(empty_or(desc->graph.bend_rest_rotations.count, 4 * bends, "graph.bend_rest_rotations",
                    error));
    RW_TRY(rotations(desc->graph.bend_rest_rotations, "graph.bend_rest_rotations", error));
    if (desc->elements != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "elements", "a graph has segments: leave it out");
    }
    if (desc->order != 1 || desc->method != RW_ROD_ELEMENTS) {
        RW_FAIL(error, INVALID_ARGUMENT, desc->order != 1 ? "order" : "method",
                "a graph has segments of order 1");
    }
    return RW_STATUS_OK;
}

static rw_status validate_section(const rw_rod_desc* desc, size_t elements, bool needed,
                                  rw_error* error) {
    RW_TRY(rw_bounds_choice(desc->section, 3, "section", error));
    switch (desc->section) {
    case RW_SECTION_CIRCLE: {
        size_t count = desc->section_radius.count;
        if (count == 0 && needed) {
            RW_FAIL(error, INVALID_ARGUMENT, "section",
                    "must be given: radius, or width and height, or area, i1, i2 and j");
        }
        bool tapers = desc->geometry != RW_ROD_GRAPH;
        if (count > 1 && (!tapers || count != elements + 1)) {
            if (!tapers) {
                RW_FAIL(error, INVALID_ARGUMENT, "section.radius",
                        "must hold 1 number for a graph, got %zu", count);
            }
            RW_FAIL(error, INVALID_ARGUMENT, "section.radius",
                    "must hold 1 or elements + 1 = %zu numbers, got %zu", elements + 1, count);
        }
        return count == 1
                   ? rw_bounds_positive(desc->section_radius.data[0], "section.radius", error)
                   : rw_bounds_positives(desc->section_radius, "section.radius", error);
    }
    case RW_SECTION_RECTANGLE:
        RW_TRY(rw_bounds_positive(desc->section_width, "section.width", error));
        return rw_bounds_positive(desc->section_height, "section.height", error);
    case RW_SECTION_GENERAL:
        RW_TRY(rw_bounds_positive(desc->section_area, "section.area", error));
        RW_TRY(rw_bounds_positive(desc->section_i1, "section.i1", error));
        RW_TRY(rw_bounds_positive(desc->section_i2, "section.i2", error));
        return rw_bounds_positive(desc->section_j, "section.j", error);
    }
    return RW_STATUS_OK;
}

static rw_status validate_material(const rw_rod_desc* desc, bool stiffness_needed,
                                   bool density_needed, rw_error* error) {
    RW_TRY(density_needed ? rw_bounds_positive(desc->density, "density", error)
                          : rw_bounds_not_negative(desc->density, "density", error));
    if (desc->has_stiffness) {
        RW_TRY(rw_bounds_positive(desc->stiffness.ea, "stiffness.ea", error));
        RW_TRY(rw_bounds_positive(desc->stiffness.ga1, "stiffness.ga1", error));
        RW_TRY(rw_bounds_positive(desc->stiffness.ga2, "stiffness.ga2", error));
        RW_TRY(rw_bounds_positive(desc->stiffness.ei1, "stiffness.ei1", error));
        RW_TRY(rw_bounds_positive(desc->stiffness.ei2, "stiffness.ei2", error));
        RW_TRY(rw_bounds_positive(desc->stiffness.gj, "stiffness.gj", error));
        stiffness_needed = false;
    }
    if (stiffness_needed || desc->has_young_modulus) {
        RW_TRY(rw_bounds_positive(desc->young_modulus, "young_modulus", error));
    }
    if (desc->has_poisson_ratio) {
        RW_TRY(rw_bounds_finite(desc->poisson_ratio, "poisson_ratio", error));
        if (!(desc->poisson_ratio > -1 && desc->poisson_ratio <= 0.5)) {
            RW_FAIL(error, INVALID_ARGUMENT, "poisson_ratio", "must lie in (-1, 0.5], got %g",
                    desc->poisson_ratio);
        }
    }
    if (desc->has_shear_modulus) {
        RW_TRY(rw_bounds_positive(desc->shear_modulus, "shear_modulus", error));
        if (desc->has_poisson_ratio) {
            RW_FAIL(error, INVALID_ARGUMENT, "shear_modulus",
                    "must not be given beside poisson_ratio");
        }
    }
    RW_TRY(rw_bounds_finite(desc->shear_factor, "shear_factor", error));
    if (!(desc->shear_factor > 0 && desc->shear_factor <= 1)) {
        RW_FAIL(error, INVALID_ARGUMENT, "shear_factor", "must lie in (0, 1], got %g",
                desc->shear_factor);
    }
    RW_TRY(rw_bounds_not_negative(desc->damping, "damping", error));
    RW_TRY(rw_bounds_not_negative(desc->mass_damping, "mass_damping", error));
    RW_TRY(rw_bounds_not_negative(desc->drag, "drag", error));
    return rw_bounds_not_negative(desc->quadratic_drag, "quadratic_drag", error);
}

static rw_status validate_rest(const rw_rod_desc* desc, size_t elements, rw_error* error) {
    RW_TRY(rw_bounds_choice(desc->rest, 4, "rest", error));
    rw_doubles curvature = desc->rest_curvature;
    if (desc->geometry == RW_ROD_GRAPH) {
        RW_TRY(rw_bounds_absent(curvature.count, "rest_curvature",
                                "a graph takes graph.bend_rest_rotations", error));
        if (desc->has_rest_length) {
            RW_FAIL(error, INVALID_ARGUMENT, "rest_length",
                    "a graph takes graph.segment_rest_lengths");
        }
        if (desc->rest == RW_REST_GIVEN) {
            RW_FAIL(error, INVALID_ARGUMENT, "rest", "a graph takes graph.bend_rest_rotations");
        }
        return RW_STATUS_OK;
    }
    if (curvature.count != 0 && curvature.count != 3 && curvature.count != 3 * elements) {
        RW_FAIL(error, INVALID_ARGUMENT, "rest_curvature",
                "must hold 3 or elements x 3 = %zu numbers, got %zu", 3 * elements,
                curvature.count);
    }
    if (desc->rest == RW_REST_GIVEN && curvature.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "rest_curvature", "must be given with rest GIVEN");
    }
    RW_TRY(rw_validate_numbers(curvature.data, curvature.count, "rest_curvature", error));
    return desc->has_rest_length ? rw_bounds_positive(desc->rest_length, "rest_length", error)
                                 : RW_STATUS_OK;
}

static rw_status validate_velocity(rw_doubles velocity, int64_t nodes, const char* field,
                                   rw_error* error) {
    if (velocity.count != 0 && velocity.count != 3 && velocity.count != 3 * (size_t)nodes) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold 3 or nodes x 3 = %zu numbers, got %zu",
                3 * (size_t)nodes, velocity.count);
    }
    return rw_validate_numbers(velocity.data, velocity.count, field, error);
}

static rw_status validate_geometry(const rw_rod_desc* desc, rw_error* error) {
    switch (desc->geometry) {
    case RW_ROD_STRAIGHT:
        RW_TRY(rw_bounds_integer(desc->elements, 1, RW_ROD_ELEMENTS_MAX, "elements", error));
        return validate_straight(desc, error);
    case RW_ROD_HELIX:
        RW_TRY(rw_bounds_integer(desc->elements, 1, RW_ROD_ELEMENTS_MAX, "elements", error));
        return validate_helix(desc, error);
    case RW_ROD_POLYLINE:
        return validate_polyline(desc, error);
    case RW_ROD_GRAPH:
        return validate_graph(desc, error);
    }
    return RW_STATUS_OK;
}

rw_status rw_validate_rod(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_bounds_choice(desc->geometry, 4, "geometry", error));
    RW_TRY(rw_bounds_choice(desc->method, 2, "method", error));
    RW_TRY(rw_bounds_integer(desc->order, 1, 3, "order", error));
    if (desc->method == RW_ROD_RIGID_CHAIN && desc->order != 1) {
        RW_FAIL(error, INVALID_ARGUMENT, "order", "must be 1 for a RIGID_CHAIN, got %u",
                desc->order);
    }
    RW_TRY(validate_geometry(desc, error));
    size_t elements = desc->geometry == RW_ROD_POLYLINE
                          ? (desc->polyline.positions.count / 3 - 1) / desc->order
                          : desc->elements;
    // A graph may bring its own masses and stiffnesses.
    bool is_graph = desc->geometry == RW_ROD_GRAPH;
    bool density_needed = !is_graph || desc->graph.vertex_masses.count == 0;
    bool stiffness_needed = !is_graph || desc->graph.segment_stiffness.count == 0 ||
                            desc->graph.bend_stiffness.count == 0;
    if (is_graph && desc->graph.segments.count == 2 && desc->graph.segment_stiffness.count != 0) {
        stiffness_needed = false; // one segment has nothing to bend against
    }
    RW_TRY(validate_section(desc, elements,
                            density_needed || (stiffness_needed && !desc->has_stiffness), error));
    RW_TRY(validate_material(desc, stiffness_needed, density_needed, error));
    RW_TRY(validate_rest(desc, elements, error));
    int64_t nodes = rw_validate_node_count(desc);
    RW_TRY(validate_velocity(desc->linear_velocity, nodes, "linear_velocity", error));
    RW_TRY(validate_velocity(desc->angular_velocity, nodes, "angular_velocity", error));
    RW_TRY(rw_bounds_not_negative(desc->contact_radius, "contact_radius", error));
    return rw_validate_surface(desc->friction, desc->restitution, desc->collision_group, error);
}
