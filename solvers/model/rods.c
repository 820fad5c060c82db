#include "solvers/model/rods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/quat.h"
#include "solvers/math/trig.h"
#include "solvers/math/vec3.h"

static const double pi = 3.14159265358979323846;

// Relative to the rod's size: shorter segments and closer neighbours count as coincident.
static const double coincident = 1e-12;

static int32_t chain_segment_count(const rw_rod_desc* desc, int32_t* element_count) {
    int32_t order = desc->method == RW_ROD_RIGID_CHAIN ? 1 : (int32_t)desc->order;
    int32_t segments = (int32_t)desc->elements * order;
    if (desc->geometry == RW_ROD_POLYLINE)
        segments = (int32_t)(desc->polyline.positions.count / 3) - 1;
    *element_count = segments / order;
    return segments;
}

// ---- Graphs: bends at every vertex where exactly two segments meet, unless given ----

// Counts them; writes them when `bend` is not NULL. `scratch` holds 3 numbers per vertex.
static int32_t consecutive_bends(const rw_rod_desc* desc, int32_t* scratch, int32_t* bend) {
    int32_t nodes = (int32_t)(desc->graph.positions.count / 3), count = 0;
    memset(scratch, 0, (size_t)nodes * 3 * sizeof *scratch);
    for (size_t k = 0; k < desc->graph.segments.count; k++) {
        int32_t* row = scratch + 3 * (size_t)desc->graph.segments.data[k];
        if (row[0] < 2)
            row[1 + row[0]] = (int32_t)(k / 2);
        row[0]++;
    }
    for (int32_t i = 0; i < nodes; i++) {
        const int32_t* row = scratch + 3 * (size_t)i;
        if (row[0] != 2 || row[1] == row[2])
            continue;
        if (bend != NULL) {
            bend[2 * count] = row[1];
            bend[2 * count + 1] = row[2];
        }
        count++;
    }
    return count;
}

// The same count without scratch memory would need a search; so it is bounded here and exact after
// the build: a vertex makes at most one bend.
rw_rods_counts rw_rods_count(const rw_rod_desc* desc) {
    rw_rods_counts counts = {0};
    if (desc->geometry == RW_ROD_GRAPH) {
        counts.node_count = (int32_t)(desc->graph.positions.count / 3);
        counts.segment_count = (int32_t)(desc->graph.segments.count / 2);
        counts.element_count = counts.segment_count;
        counts.bend_count = desc->graph.bends.count > 0 ? (int32_t)(desc->graph.bends.count / 2)
                                                        : counts.node_count;
        return counts;
    }
    counts.segment_count = chain_segment_count(desc, &counts.element_count);
    counts.node_count = counts.segment_count + 1;
    counts.bend_count = counts.segment_count - 1;
    return counts;
}

// ---- Sections ----

// exp(-x) for x >= 0 by halving the argument; good to about 1e-14 relative. Not the C library's,
// whose last bit changes with the processor.
static double exp_negative(double x) {
    if (x > 700.0)
        return 0.0;
    int halvings = 0;
    while (x > 0.125) {
        x *= 0.5;
        halvings++;
    }
    double sum = 1.0;
    for (int n = 12; n >= 1; n--)
        sum = 1.0 - x / n * sum;
    while (halvings-- > 0)
        sum *= sum;
    return sum;
}

double rw_rods_rectangle_torsion(double a, double b) {
    if (a < b) {
        double swap = a;
        a = b;
        b = swap;
    }
    // J = a b^3 (1/3 - 64/pi^5 b/a sum over odd n of tanh(n pi a/2b)/n^5); beyond n = 9 tanh is 1 to
    // 1e-12 and the rest of the sum is known: sum over odd n of 1/n^5 = 31/32 zeta(5).
    double sum = 31.0 / 32.0 * 1.0369277551433699263;
    for (int n = 1; n <= 9; n += 2) {
        double e = exp_negative(n * pi * a / b);
        double tanh_minus_one = -2.0 * e / (1.0 + e);
        sum += tanh_minus_one / ((double)n * n * n * n * n);
    }
    return a * b * b * b * (1.0 / 3.0 - 64.0 / (pi * pi * pi * pi * pi) * (b / a) * sum);
}

static double radius_at(const rw_rod_desc* desc, double u) {
    size_t count = desc->section_radius.count;
    const double* radius = desc->section_radius.data;
    if (count == 0)
        return 0.0;
    if (count == 1)
        return radius[0];
    double place = u * (double)(count - 1);
    if (!(place > 0.0))
        return radius[0];
    if (place >= (double)(count - 1))
        return radius[count - 1];
    size_t k = (size_t)place;
    double t = place - (double)k;
    return (1.0 - t) * radius[k] + t * radius[k + 1];
}

rw_rods_section rw_rods_section_at(const rw_rod_desc* desc, double u) {
    rw_rods_section s = {0};
    switch (desc->section) {
    case RW_SECTION_CIRCLE: {
        double r = radius_at(desc, u);
        s.area = pi * r * r;
        s.i1 = s.i2 = 0.25 * pi * r * r * r * r;
        s.j = 2.0 * s.i1;
        break;
    }
    case RW_SECTION_RECTANGLE: {
        double w = desc->section_width, h = desc->section_height;
        s.area = w * h;
        s.i1 = w * h * h * h / 12.0;
        s.i2 = h * w * w * w / 12.0;
        s.j = w > 0.0 && h > 0.0 ? rw_rods_rectangle_torsion(w, h) : 0.0;
        break;
    }
    case RW_SECTION_GENERAL:
        s.area = desc->section_area;
        s.i1 = desc->section_i1;
        s.i2 = desc->section_i2;
        s.j = desc->section_j > 0.0 ? desc->section_j : s.i1 + s.i2;
        break;
    }
    s.mass = desc->density * s.area;
    if (desc->has_stiffness) {
        s.ea = desc->stiffness.ea;
        s.ga1 = desc->stiffness.ga1;
        s.ga2 = desc->stiffness.ga2;
        s.ei1 = desc->stiffness.ei1;
        s.ei2 = desc->stiffness.ei2;
        s.gj = desc->stiffness.gj;
        return s;
    }
    double e = desc->young_modulus;
    double g =
        desc->has_shear_modulus ? desc->shear_modulus : e / (2.0 * (1.0 + desc->poisson_ratio));
    s.ea = e * s.area;
    s.ga1 = s.ga2 = desc->shear_factor * g * s.area;
    s.ei1 = e * s.i1;
    s.ei2 = e * s.i2;
    s.gj = g * s.j;
    return s;
}

void rw_rods_rest_curvature(const rw_rod_desc* desc, int32_t element, double curvature[3]) {
    size_t count = desc->rest_curvature.count;
    for (size_t k = 0; k < 3; k++)
        curvature[k] = count == 0   ? 0.0
                       : count == 3 ? desc->rest_curvature.data[k]
                                    : desc->rest_curvature.data[3 * (size_t)element + k];
}

// ---- Node frames ----

// The frame with d3 along `tangent` (unit) and d1 along `normal` made perpendicular.
static bool frame_from_normal(rw_vec3 tangent, rw_vec3 normal, rw_quat* frame) {
    double size = rw_vec3_norm(normal);
    rw_vec3 d1 = rw_vec3_add_scaled(normal, -rw_vec3_dot(normal, tangent), tangent);
    if (!(rw_vec3_norm(d1) > 1e-9 * size))
        return false;
    d1 = rw_vec3_normalize(d1);
    rw_mat3 columns = rw_mat3_from_columns(d1, rw_vec3_cross(tangent, d1), tangent);
    *frame = rw_quat_from_mat3(&columns);
    return true;
}

static rw_status first_frame(rw_vec3 tangent, bool has_normal, const double normal[3],
                             const char* path, rw_quat* frame, rw_error* error) {
    if (!has_normal)
        *frame = rw_quat_between(rw_vec3_make(0, 0, 1), tangent);
    else if (!frame_from_normal(tangent, rw_vec3_load(normal), frame))
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be zero or along the rod");
    return RW_STATUS_OK;
}

static rw_status create_straight(const rw_rod_desc* desc, double* position, double* rotation,
                                 rw_error* error) {
    rw_vec3 start = rw_vec3_load(desc->straight.start), end = rw_vec3_load(desc->straight.end);
    rw_vec3 along = rw_vec3_sub(end, start);
    double scale = rw_vec3_max_abs(start) + rw_vec3_max_abs(end);
    if (!(rw_vec3_norm(along) > coincident * scale))
        RW_FAIL(error, INVALID_ARGUMENT, "straight.end", "must not be the start");
    rw_quat frame;
    RW_TRY(first_frame(rw_vec3_normalize(along), desc->straight.has_normal, desc->straight.normal,
                       "straight.normal", &frame, error));
    int32_t segments = rw_rods_count(desc).segment_count;
    for (int32_t i = 0; i <= segments; i++) {
        // Both ends exactly as given, whichever way the rod is described.
        double u = (double)i / segments, w = (double)(segments - i) / segments;
        rw_vec3 p = rw_vec3_add(rw_vec3_scale(start, w), rw_vec3_scale(end, u));
        rw_vec3_store(position + 3 * (size_t)i, p);
        rw_quat_store(rotation + 4 * (size_t)i, frame);
    }
    return RW_STATUS_OK;
}

static rw_status create_helix(const rw_rod_desc* desc, double* position, double* rotation,
                              rw_error* error) {
    rw_vec3 axis = rw_vec3_load(desc->helix.axis), center = rw_vec3_load(desc->helix.center);
    if (!(rw_vec3_norm(axis) > 0.0))
        RW_FAIL(error, INVALID_ARGUMENT, "helix.axis", "must not be zero");
    axis = rw_vec3_normalize(axis);
    double radius = desc->helix.radius, pitch = desc->helix.pitch, turns = desc->helix.turns;
    if (!(radius > 0.0))
        RW_FAIL(error, INVALID_ARGUMENT, "helix.radius", "must be > 0, got %g", radius);
    if (turns == 0.0)
        RW_FAIL(error, INVALID_ARGUMENT, "helix.turns", "must not be 0");
    rw_quat turned;
    if (!desc->helix.has_normal)
        turned = rw_quat_between(rw_vec3_make(0, 0, 1), axis);
    else if (!frame_from_normal(axis, rw_vec3_load(desc->helix.normal), &turned))
        RW_FAIL(error, INVALID_ARGUMENT, "helix.normal", "must not be zero or along the axis");
    rw_vec3 e1 = rw_quat_rotate(turned, rw_vec3_make(1, 0, 0));
    rw_vec3 e2 = rw_quat_rotate(turned, rw_vec3_make(0, 1, 0));
    double sense = turns > 0.0 ? 1.0 : -1.0, total = 2.0 * pi * fabs(turns);
    int32_t segments = rw_rods_count(desc).segment_count;
    if (!(total < pi * segments) && pitch == 0.0)
        RW_FAIL(error, INVALID_ARGUMENT, "elements", "must be more than two per turn");
    for (int32_t i = 0; i <= segments; i++) {
        double angle = total * i / segments, s, c;
        rw_trig_sincos(sense * angle, &s, &c);
        rw_vec3 out = rw_vec3_add(rw_vec3_scale(e1, c), rw_vec3_scale(e2, s));
        rw_vec3 round = rw_vec3_add(rw_vec3_scale(e1, -s), rw_vec3_scale(e2, c));
        rw_vec3 p = rw_vec3_add_scaled(center, radius, out);
        p = rw_vec3_add_scaled(p, pitch * angle / (2.0 * pi), axis);
        rw_vec3 tangent = rw_vec3_normalize(rw_vec3_add(rw_vec3_scale(round, sense * radius),
                                                        rw_vec3_scale(axis, pitch / (2.0 * pi))));
        rw_mat3 columns = rw_mat3_from_columns(out, rw_vec3_cross(tangent, out), tangent);
        rw_quat q = rw_quat_from_mat3(&columns);
        // One sheet of the double cover along the rod.
        if (i > 0 && rw_quat_dot(q, rw_quat_load(rotation + 4 * (size_t)(i - 1))) < 0.0)
            q = rw_quat_neg(q);
        rw_vec3_store(position + 3 * (size_t)i, p);
        rw_quat_store(rotation + 4 * (size_t)i, q);
    }
    return RW_STATUS_OK;
}

static rw_vec3 node(const double* positions, int32_t i) {
    return rw_vec3_load(positions + 3 * (size_t)i);
}

// Direction of segment i (node i to i + 1).
static rw_vec3 chord(const double* positions, int32_t i) {
    return rw_vec3_normalize(rw_vec3_sub(node(positions, i + 1), node(positions, i)));
}

static rw_status create_polyline(const rw_rod_desc* desc, double* position, double* rotation,
                                 rw_error* error) {
    int32_t segments = rw_rods_count(desc).segment_count;
    memcpy(position, desc->polyline.positions.data, (size_t)(segments + 1) * 3 * sizeof(double));
    double scale = 0.0;
    for (int32_t i = 0; i <= segments; i++) {
        double size = rw_vec3_max_abs(node(position, i));
        scale = size > scale ? size : scale;
    }
    char path[64];
    for (int32_t i = 0; i < segments; i++) {
        rw_vec3 d = rw_vec3_sub(node(position, i + 1), node(position, i));
        if (!(rw_vec3_norm(d) > coincident * scale)) {
            snprintf(path, sizeof path, "polyline.positions[%d]", 3 * (i + 1));
            RW_FAIL(error, INVALID_ARGUMENT, path, "must not coincide with the node before it");
        }
        if (i > 0 && rw_vec3_dot(chord(position, i - 1), chord(position, i)) < -1.0 + 1e-12) {
            snprintf(path, sizeof path, "polyline.positions[%d]", 3 * i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "the rod must not fold back on itself");
        }
    }
    if (desc->polyline.rotations.count > 0) {
        for (int32_t i = 0; i <= segments; i++) {
            rw_quat q = rw_quat_load(desc->polyline.rotations.data + 4 * (size_t)i);
            rw_quat_store(rotation + 4 * (size_t)i, rw_quat_normalize(q));
        }
        return RW_STATUS_OK;
    }
    // Parallel transport along the node tangents.
    rw_vec3 tangent = chord(position, 0);
    rw_quat frame;
    RW_TRY(first_frame(tangent, desc->polyline.has_normal, desc->polyline.normal, "polyline.normal",
                       &frame, error));
    rw_quat_store(rotation, frame);
    for (int32_t i = 1; i <= segments; i++) {
        rw_vec3 next = chord(position, i - 1);
        if (i < segments)
            next = rw_vec3_normalize(rw_vec3_add(next, chord(position, i)));
        frame = rw_quat_normalize(rw_quat_mul(rw_quat_between(tangent, next), frame));
        rw_quat_store(rotation + 4 * (size_t)i, frame);
        tangent = next;
    }
    return RW_STATUS_OK;
}

// ---- Rest shape, lengths, masses ----

static void build_chain_rest(const rw_rod_desc* desc, rw_rods_geometry* g) {
    int32_t segments = g->counts.segment_count, nodes = g->counts.node_count;
    bool straight = desc->rest == RW_REST_STRAIGHT || desc->rest == RW_REST_GIVEN ||
                    (desc->rest == RW_REST_DEFAULT && desc->geometry == RW_ROD_STRAIGHT);
    double created = 0.0;
    for (int32_t i = 0; i < segments; i++) {
        g->segment[2 * i] = i;
        g->segment[2 * i + 1] = i + 1;
        g->rest_length[i] =
            rw_vec3_norm(rw_vec3_sub(node(g->position, i + 1), node(g->position, i)));
        created += g->rest_length[i];
        if (i > 0) {
            g->bend[2 * (i - 1)] = i - 1;
            g->bend[2 * (i - 1) + 1] = i;
        }
    }
    double factor = desc->has_rest_length ? desc->rest_length / created : 1.0;
    rw_vec3 origin = node(g->position, 0);
    if (straight) {
        // Along the first node's tangent, with its frame throughout.
        rw_quat frame = rw_quat_load(g->rotation);
        rw_vec3 along = rw_quat_axis_z(frame), p = origin;
        for (int32_t i = 0; i < nodes; i++) {
            rw_vec3_store(g->rest_position + 3 * (size_t)i, p);
            rw_quat_store(g->rest_rotation + 4 * (size_t)i, frame);
            if (i < segments)
                p = rw_vec3_add_scaled(p, factor * g->rest_length[i], along);
        }
    } else {
        for (int32_t i = 0; i < nodes; i++) {
            rw_vec3 d = rw_vec3_sub(node(g->position, i), origin);
            rw_vec3 p =
                factor == 1.0 ? node(g->position, i) : rw_vec3_add_scaled(origin, factor, d);
            rw_vec3_store(g->rest_position + 3 * (size_t)i, p);
        }
        memcpy(g->rest_rotation, g->rotation, (size_t)nodes * 4 * sizeof(double));
    }
    for (int32_t i = 0; i < segments; i++)
        g->rest_length[i] *= factor;
}

// Half of each segment's length and mass to either node. A tapered segment's mass is integrated
// with Simpson's rule, exact for a circle whose radius is linear in it.
static rw_status lump(const rw_rod_desc* desc, rw_rods_geometry* g, rw_error* error) {
    int32_t segments = g->counts.segment_count;
    bool graph = desc->geometry == RW_ROD_GRAPH, tapered = !graph && desc->section_radius.count > 1;
    double uniform = rw_rods_section_at(desc, 0.0).mass;
    double arc = 0.0;
    for (int32_t i = 0; i < segments; i++) {
        g->rest_arc[i] = arc;
        arc += g->rest_length[i];
        double per_length = uniform;
        if (tapered) {
            double a = rw_rods_section_at(desc, (double)i / segments).mass;
            double b = rw_rods_section_at(desc, (i + 0.5) / segments).mass;
            double c = rw_rods_section_at(desc, (i + 1.0) / segments).mass;
            per_length = (a + 4.0 * b + c) / 6.0;
        }
        for (int end = 0; end < 2; end++) {
            g->node_length[g->segment[2 * i + end]] += 0.5 * g->rest_length[i];
            g->node_mass[g->segment[2 * i + end]] += 0.5 * per_length * g->rest_length[i];
        }
    }
    g->rest_arc[segments] = arc;
    if (graph && desc->graph.vertex_masses.count > 0)
        memcpy(g->node_mass, desc->graph.vertex_masses.data,
               (size_t)g->counts.node_count * sizeof(double));
    // A node without mass could not be moved: a section or density is missing, or a vertex is bare.
    for (int32_t i = 0; i < g->counts.node_count; i++) {
        if (g->node_mass[i] > 0.0)
            continue;
        char path[64] = "density";
        if (graph)
            snprintf(path, sizeof path, "graph.vertex_masses[%d]", (int)i);
        RW_FAIL(error, INVALID_ARGUMENT, path, "node %d has no mass", (int)i);
    }
    return RW_STATUS_OK;
}

// ---- Graphs ----

// Positions and frames of a graph's nodes. Segment frames that were not given are carried along in
// segment order: each is the smallest rotation of the frame that an earlier segment left at its tail
// (else at its head, else the world's) onto its direction, and is left at its ends where they have
// none yet. So a segment's frame is always the smallest rotation of its TAIL NODE's frame, which is
// how rw_rods_segment_frame finds it again.
static rw_status create_graph(const rw_rod_desc* desc, double* position, double* rotation,
                              rw_error* error) {
    size_t segments = desc->graph.segments.count / 2, nodes = desc->graph.positions.count / 3;
    const uint32_t* ends = desc->graph.segments.data;
    const double* given = desc->graph.segment_rotations.data;
    memcpy(position, desc->graph.positions.data, nodes * 3 * sizeof(double));
    memset(rotation, 0, nodes * 4 * sizeof(double));
    char path[64];
    for (size_t i = 0; i < segments; i++) {
        double *tail = rotation + 4 * (size_t)ends[2 * i],
               *head = rotation + 4 * (size_t)ends[2 * i + 1];
        rw_vec3 p = rw_vec3_load(position + 3 * (size_t)ends[2 * i]);
        rw_vec3 q = rw_vec3_load(position + 3 * (size_t)ends[2 * i + 1]);
        rw_vec3 d = rw_vec3_sub(q, p);
        if (!(rw_vec3_norm(d) > coincident * (rw_vec3_max_abs(p) + rw_vec3_max_abs(q)))) {
            snprintf(path, sizeof path, "graph.segments[%zu]", 2 * i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "vertices %u and %u coincide",
                    (unsigned)ends[2 * i], (unsigned)ends[2 * i + 1]);
        }
        bool has_tail = rw_quat_norm_sq(rw_quat_load(tail)) > 0.0;
        bool has_head = rw_quat_norm_sq(rw_quat_load(head)) > 0.0;
        rw_quat frame = has_tail   ? rw_quat_load(tail)
                        : has_head ? rw_quat_load(head)
                                   : rw_quat_identity();
        frame = rw_quat_normalize(rw_quat_mul(rw_quat_between(rw_quat_axis_z(frame), d), frame));
        if (desc->graph.segment_rotations.count > 0)
            frame = rw_quat_normalize(rw_quat_load(given + 4 * i));
        if (!has_tail)
            rw_quat_store(tail, frame);
        if (!has_head)
            rw_quat_store(head, frame);
    }
    for (size_t i = 0; i < nodes; i++)
        if (!(rw_quat_norm_sq(rw_quat_load(rotation + 4 * i)) > 0.0))
            rw_quat_store(rotation + 4 * i, rw_quat_identity());
    return RW_STATUS_OK;
}

rw_quat rw_rods_segment_frame(const rw_rod_desc* desc, int32_t segment, const double* position,
                              const double* rotation) {
    int32_t tail = segment, head = segment + 1;
    if (desc->geometry == RW_ROD_GRAPH) {
        if (desc->graph.segment_rotations.count > 0)
            return rw_quat_normalize(
                rw_quat_load(desc->graph.segment_rotations.data + 4 * (size_t)segment));
        tail = (int32_t)desc->graph.segments.data[2 * segment];
        head = (int32_t)desc->graph.segments.data[2 * segment + 1];
    }
    rw_quat a = rw_quat_load(rotation + 4 * (size_t)tail);
    rw_quat frame = a;
    if (desc->geometry != RW_ROD_GRAPH) {
        // Halfway between the node frames.
        rw_quat b = rw_quat_load(rotation + 4 * (size_t)head);
        frame = rw_quat_add(a, rw_quat_dot(a, b) < 0.0 ? rw_quat_neg(b) : b);
        frame = rw_quat_normalize(frame);
    }
    rw_vec3 d = rw_vec3_sub(node(position, head), node(position, tail));
    return rw_quat_normalize(rw_quat_mul(rw_quat_between(rw_quat_axis_z(frame), d), frame));
}

static rw_status check_bends(const rw_rods_geometry* g, rw_error* error) {
    for (int32_t k = 0; k < g->counts.bend_count; k++) {
        int32_t a = g->bend[2 * k], b = g->bend[2 * k + 1];
        const int32_t *s = g->segment + 2 * (size_t)a, *t = g->segment + 2 * (size_t)b;
        bool share = s[0] == t[0] || s[0] == t[1] || s[1] == t[0] || s[1] == t[1];
        if (a != b && share)
            continue;
        char path[64];
        snprintf(path, sizeof path, "graph.bends[%d]", 2 * k);
        RW_FAIL(error, INVALID_ARGUMENT, path, "segments %d and %d share no vertex", (int)a,
                (int)b);
    }
    return RW_STATUS_OK;
}

static rw_status build_graph_rest(const rw_rod_desc* desc, rw_arena* arena, rw_rods_geometry* g,
                                  rw_error* error) {
    int32_t segments = g->counts.segment_count, nodes = g->counts.node_count;
    double created = 0.0;
    for (int32_t i = 0; i < segments; i++) {
        g->segment[2 * i] = (int32_t)desc->graph.segments.data[2 * i];
        g->segment[2 * i + 1] = (int32_t)desc->graph.segments.data[2 * i + 1];
        rw_vec3 d = rw_vec3_sub(node(g->position, g->segment[2 * i + 1]),
                                node(g->position, g->segment[2 * i]));
        bool given = desc->graph.segment_rest_lengths.count > 0;
        g->rest_length[i] = given ? desc->graph.segment_rest_lengths.data[i] : rw_vec3_norm(d);
        created += g->rest_length[i];
    }
    if (desc->has_rest_length)
        for (int32_t i = 0; i < segments; i++)
            g->rest_length[i] *= desc->rest_length / created;
    if (desc->graph.bends.count > 0) {
        for (int32_t k = 0; k < 2 * g->counts.bend_count; k++)
            g->bend[k] = (int32_t)desc->graph.bends.data[k];
    } else {
        int32_t* scratch = rw_arena_array(arena, 3 * (size_t)nodes + 1, sizeof *scratch);
        if (scratch == NULL)
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the rod's geometry");
        g->counts.bend_count = consecutive_bends(desc, scratch, g->bend);
    }
    RW_TRY(check_bends(g, error));
    memcpy(g->rest_position, g->position, (size_t)nodes * 3 * sizeof(double));
    memcpy(g->rest_rotation, g->rotation, (size_t)nodes * 4 * sizeof(double));
    return RW_STATUS_OK;
}

rw_status rw_rods_create_geometry(const rw_rod_desc* desc, double* position, double* rotation,
                                  rw_error* error) {
    switch (desc->geometry) {
    case RW_ROD_STRAIGHT:
        return create_straight(desc, position, rotation, error);
    case RW_ROD_HELIX:
        return create_helix(desc, position, rotation, error);
    case RW_ROD_POLYLINE:
        return create_polyline(desc, position, rotation, error);
    case RW_ROD_GRAPH:
        return create_graph(desc, position, rotation, error);
    }
    RW_FAIL(error, INVALID_ARGUMENT, "", "unknown geometry");
}

rw_status rw_rods_build(const rw_rod_desc* desc, rw_arena* arena, rw_rods_geometry* geometry,
                        rw_error* error) {
    rw_rods_geometry g = {.counts = rw_rods_count(desc)};
    size_t nodes = (size_t)g.counts.node_count, segments = (size_t)g.counts.segment_count;
    size_t bends = (size_t)g.counts.bend_count;
    bool graph = desc->geometry == RW_ROD_GRAPH;
    RW_ASSERT(graph || segments >= 1);
    g.position = rw_arena_array(arena, nodes * 3, sizeof(double));
    g.rotation = rw_arena_array(arena, nodes * 4, sizeof(double));
    g.rest_position = rw_arena_array(arena, nodes * 3, sizeof(double));
    g.rest_rotation = rw_arena_array(arena, nodes * 4, sizeof(double));
    g.rest_length = rw_arena_array(arena, segments, sizeof(double));
    g.rest_arc = rw_arena_array(arena, segments + 1, sizeof(double));
    g.node_mass = rw_arena_array(arena, nodes, sizeof(double));
    g.node_length = rw_arena_array(arena, nodes, sizeof(double));
    g.segment = rw_arena_array(arena, segments * 2, sizeof(int32_t));
    g.bend = rw_arena_array(arena, bends * 2 + 1, sizeof(int32_t));
    if (g.position == NULL || g.rotation == NULL || g.rest_position == NULL ||
        g.rest_rotation == NULL || g.rest_length == NULL || g.rest_arc == NULL ||
        g.node_mass == NULL || g.node_length == NULL || g.segment == NULL || g.bend == NULL)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the rod's geometry");

    RW_TRY(rw_rods_create_geometry(desc, g.position, g.rotation, error));
    if (graph)
        RW_TRY(build_graph_rest(desc, arena, &g, error));
    else
        build_chain_rest(desc, &g);
    RW_TRY(lump(desc, &g, error));
    *geometry = g;
    return RW_STATUS_OK;
}
