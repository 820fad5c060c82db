// From the model to the sweeps' layout: rods' graphs, stiffnesses and rest rotations, attachments,
// components, colours, chunks, pieces, batches, and the private state carried over by id.
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/model/rods.h"
#include "solvers/scr/colouring.h"
#include "solvers/scr/scr_prepare.h"

rw_field_list rw_scr_prepare_fields(void) {
    static const rw_field fields[] = {
#define RW_SCR_ROW(member, width, domain, flags)                                                   \
    RW_FIELD_ENTRY(rw_scr_memory, member, width, RW_SCR_DOMAIN_##domain, flags),
        RW_SCR_FIELDS(RW_SCR_ROW)
#undef RW_SCR_ROW
    };
    return (rw_field_list){fields, RW_COUNT_OF(fields)};
}

// Takes `count` items from the arena; at least one, so that a pointer is never NULL by emptiness.
#define TAKE(scr, pointer, count)                                                                  \
    do {                                                                                           \
        (pointer) = rw_arena_array(&(scr)->arena, (size_t)(count) + 1, sizeof *(pointer));         \
        if ((pointer) == NULL)                                                                     \
            return RW_STATUS_RESOURCE_EXHAUSTED;                                                   \
    } while (0)

// ---- Rods: graph, masses, stiffnesses ----

// A relative rotation with the rotation vector v added to its own.
static rw_quat add_curvature(rw_quat q, rw_vec3 v) {
    if (rw_vec3_norm_sq(v) == 0.0)
        return q;
    return rw_so3_exp(rw_vec3_add(rw_so3_log(q), v));
}

static rw_vec3 segment_curvature(const rw_rod_desc* desc, int32_t segment) {
    double k[3];
    int32_t order = desc->geometry == RW_ROD_GRAPH || desc->order == 0 ? 1 : (int32_t)desc->order;
    rw_rods_rest_curvature(desc, segment / order, k);
    return rw_vec3_load(k);
}

static rw_status take_rod_arrays(rw_scr* scr) {
    int32_t nodes = scr->node_count, segments = scr->segment_count, bends = scr->bend_count;
    TAKE(scr, scr->node_rod, nodes);
    TAKE(scr, scr->node_held, nodes);
    TAKE(scr, scr->mass, nodes);
    TAKE(scr, scr->length, nodes);
    TAKE(scr, scr->stiffness_sum, nodes);
    TAKE(scr, scr->viscosity, nodes);
    TAKE(scr, scr->incident_first, nodes + 1);
    TAKE(scr, scr->incident_other, 2 * (int64_t)segments);
    TAKE(scr, scr->incident_code, 2 * (int64_t)segments);
    TAKE(scr, scr->inertia, nodes);
    TAKE(scr, scr->inverse_diagonal, nodes);
    TAKE(scr, scr->goal, 3 * (int64_t)nodes);
    TAKE(scr, scr->segment_rod, segments);
    TAKE(scr, scr->tail, segments);
    TAKE(scr, scr->head, segments);
    TAKE(scr, scr->segment_flags, segments);
    TAKE(scr, scr->rest_length, segments);
    TAKE(scr, scr->stretch, segments);
    TAKE(scr, scr->kappa, segments);
    TAKE(scr, scr->pull, 3 * (int64_t)segments);
    TAKE(scr, scr->torque, 3 * (int64_t)segments);
    TAKE(scr, scr->clamp_of, segments);
    TAKE(scr, scr->tail_rest, 4 * (int64_t)segments);
    TAKE(scr, scr->head_rest, 4 * (int64_t)segments);
    TAKE(scr, scr->link_first, segments + 1);
    TAKE(scr, scr->link_other, 2 * (int64_t)bends);
    TAKE(scr, scr->link_bend, 2 * (int64_t)bends);
    TAKE(scr, scr->link_target, 8 * (int64_t)bends);
    TAKE(scr, scr->bend, 2 * (int64_t)bends);
    TAKE(scr, scr->bend_node, bends);
    TAKE(scr, scr->bend_stiffness, bends);
    TAKE(scr, scr->bend_rest, 4 * (int64_t)bends);
    return RW_STATUS_OK;
}

// Damping needs two more arrays; most worlds have none.
static rw_status take_damping_arrays(rw_scr* scr) {
    bool damped = false;
    for (int32_t r = 0; r < scr->rod_count; r++)
        damped = damped || scr->rods[r].damped;
    scr->axis_scale = NULL;
    scr->axis_turn = NULL;
    if (!damped)
        return RW_STATUS_OK;
    TAKE(scr, scr->axis_scale, scr->segment_count);
    TAKE(scr, scr->axis_turn, 4 * (int64_t)scr->segment_count);
    return RW_STATUS_OK;
}

// The node that two segments share; of two, the tail of the first.
static int32_t shared_node(const int32_t* a, const int32_t* b) {
    if (a[0] == b[0] || a[0] == b[1])
        return a[0];
    return a[1];
}

// Fraction of the elements at a segment's end or middle; 0 for graphs, whose section is uniform.
static double place(const rw_rod_desc* desc, const rw_rods_counts* counts, double segment) {
    return desc->geometry == RW_ROD_GRAPH ? 0.0 : segment / counts->segment_count;
}

static void fill_segments(rw_scr* scr, const rw_scr_rod* rod, const rw_rod_desc* desc,
                          const rw_rods_geometry* g) {
    bool graph = desc->geometry == RW_ROD_GRAPH;
    for (int32_t i = 0; i < rod->segment_count; i++) {
        int32_t s = rod->segment_first + i;
        int32_t a = g->segment[2 * i], b = g->segment[2 * i + 1];
        double l = g->rest_length[i];
        scr->segment_rod[s] = (int32_t)(rod - scr->rods);
        scr->tail[s] = rod->node_first + a;
        scr->head[s] = rod->node_first + b;
        scr->rest_length[s] = l;
        if (graph && desc->graph.segment_stiffness.count > 0)
            scr->stretch[s] = desc->graph.segment_stiffness.data[i] / l;
        else
            scr->stretch[s] = rw_rods_section_at(desc, place(desc, &g->counts, i + 0.5)).ea;
        scr->stiffness_sum[scr->tail[s]] += scr->stretch[s] / l;
        scr->stiffness_sum[scr->head[s]] += scr->stretch[s] / l;
        rw_quat q = rw_rods_segment_frame(desc, i, g->rest_position, g->rest_rotation);
        rw_quat t = rw_quat_load(g->rest_rotation + 4 * (int64_t)a);
        rw_quat h = rw_quat_load(g->rest_rotation + 4 * (int64_t)b);
        rw_vec3 half = rw_vec3_scale(segment_curvature(desc, i), 0.5 * l);
        rw_quat_store(scr->tail_rest + 4 * (int64_t)s, add_curvature(rw_quat_conj_mul(t, q), half));
        rw_quat_store(scr->head_rest + 4 * (int64_t)s,
                      add_curvature(rw_quat_conj_mul(h, q), rw_vec3_neg(half)));
        scr->clamp_of[s] = -1;
    }
}

static void fill_bends(rw_scr* scr, const rw_scr_rod* rod, const rw_rod_desc* desc,
                       const rw_rods_geometry* g, int32_t bend_first) {
    bool graph = desc->geometry == RW_ROD_GRAPH;
    for (int32_t k = 0; k < g->counts.bend_count; k++) {
        int32_t n = bend_first + k, a = g->bend[2 * k], b = g->bend[2 * k + 1];
        scr->bend[2 * n] = rod->segment_first + a;
        scr->bend[2 * n + 1] = rod->segment_first + b;
        scr->bend_node[n] =
            rod->node_first + shared_node(g->segment + 2 * (size_t)a, g->segment + 2 * (size_t)b);
        double l = 0.5 * (g->rest_length[a] + g->rest_length[b]);
        if (graph && desc->graph.bend_stiffness.count > 0)
            scr->bend_stiffness[n] = desc->graph.bend_stiffness.data[k];
        else
            scr->bend_stiffness[n] =
                4.0 * rw_rods_section_at(desc, place(desc, &g->counts, b)).ei1 / l;
        rw_quat rest;
        if (graph && desc->graph.bend_rest_rotations.count > 0) {
            rest = rw_quat_normalize(rw_quat_load(desc->graph.bend_rest_rotations.data + 4 * k));
        } else if (graph && desc->rest == RW_REST_STRAIGHT) {
            rest = rw_quat_identity();
        } else {
            rw_quat p = rw_rods_segment_frame(desc, a, g->rest_position, g->rest_rotation);
            rw_quat q = rw_rods_segment_frame(desc, b, g->rest_position, g->rest_rotation);
            rest = rw_quat_conj_mul(p, q);
        }
        rw_vec3 turn =
            rw_vec3_add(rw_vec3_scale(segment_curvature(desc, a), 0.5 * g->rest_length[a]),
                        rw_vec3_scale(segment_curvature(desc, b), 0.5 * g->rest_length[b]));
        rw_quat_store(scr->bend_rest + 4 * (int64_t)n, add_curvature(rest, turn));
    }
}

static rw_status fill_rods(rw_scr* scr, rw_error* error) {
    rw_arena scratch;
    rw_arena_init(&scratch, scr->alloc);
    int32_t bend_first = 0;
    for (int32_t r = 0; r < scr->rod_count; r++) {
        const rw_rod* source = &scr->model->rods.items[r];
        const rw_rod_desc* desc = &source->desc;
        rw_scr_rod* rod = &scr->rods[r];
        rw_rods_geometry g;
        rw_arena_reset(&scratch);
        rw_status status = rw_rods_build(desc, &scratch, &g, error);
        double* arc = rw_arena_array(&scr->arena, (size_t)source->frame_count + 1, sizeof *arc);
        if (status == RW_STATUS_OK && arc == NULL)
            status = RW_STATUS_RESOURCE_EXHAUSTED;
        if (status != RW_STATUS_OK) {
            rw_arena_finish(&scratch);
            rw_status_prefix(error, "rods[%d]", (int)r);
            return status;
        }
        RW_CHECK(g.counts.node_count == source->node_count &&
                 g.counts.segment_count == source->frame_count);
        memcpy(arc, g.rest_arc, ((size_t)g.counts.segment_count + 1) * sizeof *arc);
        rod->arc = arc;
        for (int32_t i = 0; i < rod->node_count; i++) {
            scr->node_rod[rod->node_first + i] = r;
            scr->mass[rod->node_first + i] = g.node_mass[i];
            scr->length[rod->node_first + i] = g.node_length[i];
        }
        fill_segments(scr, rod, desc, &g);
        fill_bends(scr, rod, desc, &g, bend_first);
        bend_first += g.counts.bend_count;
    }
    scr->bend_count = bend_first; // a graph's own bends may be fewer than were counted
    rw_arena_finish(&scratch);
    return RW_STATUS_OK;
}

static void count_rods(rw_scr* scr) {
    const rw_model* model = scr->model;
    scr->node_count = model->rods.node_count;
    scr->segment_count = model->rods.frame_count;
    scr->bend_count = 0;
    for (int32_t r = 0; r < scr->rod_count; r++) {
        const rw_rod* source = &model->rods.items[r];
        scr->rods[r] = (rw_scr_rod){.node_first = source->node_first,
                                    .node_count = source->node_count,
                                    .segment_first = source->frame_first,
                                    .segment_count = source->frame_count,
                                    .damping = source->desc.damping,
                                    .mass_damping = source->desc.mass_damping,
                                    .drag = source->desc.drag,
                                    .quadratic_drag = source->desc.quadratic_drag};
        scr->rods[r].damped =
            source->desc.damping > 0.0 && scr->damping_kind == RW_SCR_DAMPING_KELVIN_VOIGT;
        scr->bend_count += rw_rods_count(&source->desc).bend_count;
    }
}

// ---- Adjacency ----

static void fill_incidents(rw_scr* scr) {
    int32_t* first = scr->incident_first;
    for (int32_t s = 0; s < scr->segment_count; s++) {
        first[scr->tail[s] + 1]++;
        first[scr->head[s] + 1]++;
    }
    for (int32_t i = 0; i < scr->node_count; i++)
        first[i + 1] += first[i];
    // Filling moves first[i] to its end; it is moved back after.
    for (int32_t s = 0; s < scr->segment_count; s++) {
        int32_t a = first[scr->tail[s]]++;
        scr->incident_other[a] = scr->head[s];
        scr->incident_code[a] = 2 * s + 1;
        int32_t b = first[scr->head[s]]++;
        scr->incident_other[b] = scr->tail[s];
        scr->incident_code[b] = 2 * s;
    }
    for (int32_t i = scr->node_count; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

static void fill_links(rw_scr* scr) {
    int32_t* first = scr->link_first;
    for (int32_t k = 0; k < 2 * scr->bend_count; k++)
        first[scr->bend[k] + 1]++;
    for (int32_t s = 0; s < scr->segment_count; s++)
        first[s + 1] += first[s];
    for (int32_t n = 0; n < scr->bend_count; n++) {
        for (int32_t end = 0; end < 2; end++) {
            int32_t k = first[scr->bend[2 * n + end]]++;
            scr->link_other[k] = scr->bend[2 * n + 1 - end];
            scr->link_bend[k] = 2 * n + end;
        }
    }
    for (int32_t s = scr->segment_count; s > 0; s--)
        first[s] = first[s - 1];
    first[0] = 0;
}

// ---- Attachments ----

// Stiffness of the half element between a clamp and segment `s` at `node`: 8 EI/l, or twice the
// stiffest bend that a graph gives the segment, at that node first.
static double half_stiffness(const rw_scr* scr, int32_t s, int32_t node) {
    const rw_rod_desc* desc = &scr->model->rods.items[scr->segment_rod[s]].desc;
    const rw_scr_rod* rod = &scr->rods[scr->segment_rod[s]];
    if (desc->geometry != RW_ROD_GRAPH || desc->graph.bend_stiffness.count == 0) {
        double u = 0.0;
        if (desc->geometry != RW_ROD_GRAPH)
            u = (double)(node - rod->node_first) / rod->segment_count;
        return 8.0 * rw_rods_section_at(desc, u).ei1 / scr->rest_length[s];
    }
    double here = 0.0, elsewhere = 0.0;
    for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
        int32_t n = scr->link_bend[k] / 2;
        double* best = scr->bend_node[n] == node ? &here : &elsewhere;
        if (scr->bend_stiffness[n] > *best)
            *best = scr->bend_stiffness[n];
    }
    return 2.0 * (here > 0.0 ? here : elsewhere);
}

static rw_quat end_rest(const rw_scr* scr, int32_t s, int32_t node) {
    return rw_scr_data_quat(scr->tail[s] == node ? scr->tail_rest : scr->head_rest, s);
}

static void place_attachment(rw_scr* scr, int32_t index) {
    const rw_attachment* source = &scr->model->attachments.items[index];
    rw_scr_attachment* attachment = &scr->attachments[index];
    const rw_scr_rod* rod = &scr->rods[source->rod];
    int32_t node = rod->node_first + source->node;
    *attachment = (rw_scr_attachment){.rod = source->rod,
                                      .node = node,
                                      .body = source->body,
                                      .held_segment = -1,
                                      .segment_in_node = rw_quat_identity(),
                                      .clamp_first = scr->clamp_count};
    attachment->dynamic =
        source->body >= 0 && scr->model->bodies.kind[source->body] == RW_BODY_DYNAMIC;
    if (attachment->dynamic) {
        scr->rods[source->rod].coupled = true;
        scr->body_coupled[source->body] = 1;
    }
    attachment->holds_node = !scr->node_held[node];
    scr->node_held[node] = 1;
    int32_t first = scr->incident_first[node], end = scr->incident_first[node + 1];
    if (source->desc.kind == RW_ATTACH_PIN_SEGMENT && first < end) {
        int32_t s = scr->incident_code[first] / 2;
        if ((scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) == 0) {
            scr->segment_flags[s] |= RW_SCR_SEGMENT_HELD;
            attachment->held_segment = s;
            // A given rotation is the segment's own; a resolved one is the node's frame.
            if (!source->desc.has_rotation)
                attachment->segment_in_node = end_rest(scr, s, node);
        }
    }
    if (source->desc.kind != RW_ATTACH_CLAMP)
        return;
    for (int32_t k = first; k < end; k++) {
        int32_t s = scr->incident_code[k] / 2;
        scr->clamps[scr->clamp_count] = (rw_scr_clamp){.attachment = index,
                                                       .segment = s,
                                                       .next = scr->clamp_of[s],
                                                       .stiffness = half_stiffness(scr, s, node),
                                                       .rest = end_rest(scr, s, node)};
        scr->clamp_of[s] = scr->clamp_count++;
        scr->segment_flags[s] |= RW_SCR_SEGMENT_CLAMPED;
        attachment->clamp_count++;
    }
}

// Between segments that a clamp holds by halves, the bend across its node carries nothing.
static void cut_bends(rw_scr* scr) {
    for (int32_t n = 0; n < scr->bend_count; n++) {
        int32_t node = scr->bend_node[n];
        for (int32_t k = scr->clamp_of[scr->bend[2 * n]]; k >= 0; k = scr->clamps[k].next)
            if (scr->attachments[scr->clamps[k].attachment].node == node)
                scr->bend_stiffness[n] = 0.0;
    }
}

static rw_status fill_attachments(rw_scr* scr) {
    const rw_attachments* source = &scr->model->attachments;
    scr->attachment_count = source->count;
    int64_t clamps = 0;
    for (int32_t i = 0; i < source->count; i++) {
        int32_t node = scr->rods[source->items[i].rod].node_first + source->items[i].node;
        clamps += scr->incident_first[node + 1] - scr->incident_first[node];
    }
    TAKE(scr, scr->attachments, source->count);
    TAKE(scr, scr->clamps, clamps);
    TAKE(scr, scr->body_coupled, scr->model->bodies.count);
    scr->clamp_count = 0;
    for (int32_t i = 0; i < source->count; i++)
        place_attachment(scr, i);
    cut_bends(scr);
    return RW_STATUS_OK;
}

// EI/(EA l^2) = (r/2l)^2 of a round rod, on the mean of the rod's bends.
static void find_slender(rw_scr* scr) {
    double* bend = scr->goal; // free until the step: sums per rod, at most one per node
    for (int32_t r = 0; r < scr->rod_count; r++)
        bend[2 * r] = bend[2 * r + 1] = 0.0;
    for (int32_t n = 0; n < scr->bend_count; n++) {
        int32_t a = scr->bend[2 * n], b = scr->bend[2 * n + 1], r = scr->segment_rod[a];
        bend[2 * r] += 0.25 * scr->bend_stiffness[n];
        bend[2 * r + 1] +=
            0.5 * (scr->stretch[a] * scr->rest_length[a] + scr->stretch[b] * scr->rest_length[b]);
    }
    for (int32_t r = 0; r < scr->rod_count; r++)
        scr->rods[r].slender = bend[2 * r + 1] > 0.0 && bend[2 * r] < bend[2 * r + 1] / 64.0;
}

// Without damping a link's target is k_b q_r, or its conjugate seen from the bend's first segment.
static void fill_targets(rw_scr* scr) {
    for (int32_t k = 0; k < scr->link_first[scr->segment_count]; k++) {
        int32_t n = scr->link_bend[k] / 2;
        rw_quat rest = rw_scr_data_quat(scr->bend_rest, n);
        if (scr->link_bend[k] % 2 == 0)
            rest = rw_quat_conj(rest);
        rw_quat_store(scr->link_target + 4 * (int64_t)k,
                      rw_quat_scale(rest, scr->bend_stiffness[n]));
    }
    for (int32_t k = 0; k < scr->clamp_count; k++)
        scr->clamps[k].target = rw_quat_scale(scr->clamps[k].rest, scr->clamps[k].stiffness);
}

// The authors' vertex damping, as a coefficient per vertex.
static void fill_viscosity(rw_scr* scr) {
    for (int32_t s = 0; s < scr->segment_count; s++) {
        double rate = scr->rods[scr->segment_rod[s]].damping;
        double c = 0.0;
        if (scr->damping_kind == RW_SCR_DAMPING_REFERENCE)
            c = rate * scr->stretch[s] / scr->rest_length[s];
        else if (scr->damping_kind == RW_SCR_DAMPING_REFERENCE_UNIFORM)
            c = rate / scr->rest_length[s];
        scr->viscosity[scr->tail[s]] += c;
        scr->viscosity[scr->head[s]] += c;
    }
}

// ---- Components, chunks, order ----

static int32_t root_of(int32_t* parent, int32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

// Writes the chunk of every node: components in order of their lowest node, gathered until a chunk
// has enough. A component's root is its lowest node.
static int32_t assign_chunks(rw_scr* scr, int32_t* parent, int32_t* size, int32_t* chunk_of) {
    for (int32_t i = 0; i < scr->node_count; i++) {
        parent[i] = i;
        size[i] = 0;
    }
    for (int32_t s = 0; s < scr->segment_count; s++) {
        int32_t a = root_of(parent, scr->tail[s]), b = root_of(parent, scr->head[s]);
        if (a < b)
            parent[b] = a;
        else
            parent[a] = b;
    }
    for (int32_t i = 0; i < scr->node_count; i++)
        size[root_of(parent, i)]++;
    int32_t count = 0, filled = 0, rod = -1;
    for (int32_t i = 0; i < scr->node_count; i++) {
        int32_t root = root_of(parent, i);
        if (root == i) {
            if (scr->node_rod[i] != rod || filled >= RW_SCR_CHUNK_NODES ||
                (filled > 0 && filled + size[i] > 2 * RW_SCR_CHUNK_NODES)) {
                rod = scr->node_rod[i];
                filled = 0;
                count++;
            }
            chunk_of[i] = count - 1;
            filled += size[i];
        } else {
            chunk_of[i] = chunk_of[root];
        }
    }
    return count;
}

// Sorts items [0, count) by (chunk, key, index), all keys below `key_count`; stable counting sorts.
static void sort_items(int32_t count, const int32_t* chunk, int32_t chunk_count, const int32_t* key,
                       int32_t key_count, int32_t* start, int32_t* scratch, int32_t* order) {
    memset(start, 0, ((size_t)key_count + 1) * sizeof *start);
    for (int32_t i = 0; i < count; i++)
        start[key[i] + 1]++;
    for (int32_t k = 0; k < key_count; k++)
        start[k + 1] += start[k];
    for (int32_t i = 0; i < count; i++)
        scratch[start[key[i]]++] = i;
    memset(start, 0, ((size_t)chunk_count + 1) * sizeof *start);
    for (int32_t i = 0; i < count; i++)
        start[chunk[i] + 1]++;
    for (int32_t k = 0; k < chunk_count; k++)
        start[k + 1] += start[k];
    for (int32_t k = 0; k < count; k++)
        order[start[chunk[scratch[k]]]++] = scratch[k];
}

typedef struct rw_scr_ordering {
    int32_t* node_chunk;
    int32_t* node_key; // colour; held ones last
    int32_t node_keys;
    int32_t* segment_chunk;
    int32_t* segment_key;
    int32_t segment_keys;
} rw_scr_ordering;

// Colours by the rod's whole graph; in INDEX order all free items have one key.
static rw_status fill_keys(rw_scr* scr, rw_arena* scratch, rw_scr_ordering* o) {
    int32_t nodes = scr->node_count, segments = scr->segment_count;
    int32_t widest = 0;
    for (int32_t i = 0; i < nodes; i++) {
        int32_t degree = scr->incident_first[i + 1] - scr->incident_first[i];
        widest = degree > widest ? degree : widest;
    }
    for (int32_t i = 0; i < segments; i++) {
        int32_t degree = scr->link_first[i + 1] - scr->link_first[i];
        widest = degree > widest ? degree : widest;
    }
    int32_t* stamp = rw_arena_array(scratch, (size_t)widest + 2, sizeof *stamp);
    if (stamp == NULL)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    o->node_keys = o->segment_keys = 1;
    if (scr->model->solver.scr.order == RW_SCR_ORDER_COLOURED) {
        o->node_keys = rw_colouring_greedy(nodes, scr->incident_first, scr->incident_other,
                                           o->node_key, stamp);
        o->segment_keys =
            rw_colouring_greedy(segments, scr->link_first, scr->link_other, o->segment_key, stamp);
    }
    for (int32_t i = 0; i < nodes; i++)
        o->node_key[i] = scr->node_held[i] ? o->node_keys : o->node_key[i];
    for (int32_t s = 0; s < segments; s++) {
        bool held = (scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) != 0;
        o->segment_key[s] = held ? o->segment_keys : o->segment_key[s];
        o->segment_chunk[s] = o->node_chunk[scr->tail[s]];
    }
    o->node_keys++;
    o->segment_keys++;
    return RW_STATUS_OK;
}

// Notes where the colours of a large chunk begin; the last row is where the free ones end.
static int32_t note_colours(int32_t* row, const int32_t* order, const int32_t* key, int32_t first,
                            int32_t free_end) {
    int32_t count = 0;
    for (int32_t k = first; k < free_end; k++)
        if (k == first || key[order[k]] != key[order[k - 1]])
            row[count++] = k;
    row[count] = free_end;
    return count;
}

static rw_status fill_chunks(rw_scr* scr, const rw_scr_ordering* o) {
    TAKE(scr, scr->chunks, scr->chunk_count);
    int64_t colour_rows = 0;
    int32_t n = 0, s = 0;
    for (int32_t c = 0; c < scr->chunk_count; c++) {
        rw_scr_chunk* chunk = &scr->chunks[c];
        chunk->node_first = chunk->node_free_end = n;
        while (n < scr->node_count && o->node_chunk[scr->node_order[n]] == c)
            chunk->node_free_end += !scr->node_held[scr->node_order[n++]];
        chunk->node_end = n;
        chunk->segment_first = chunk->segment_free_end = s;
        while (s < scr->segment_count && o->segment_chunk[scr->segment_order[s]] == c) {
            bool held = (scr->segment_flags[scr->segment_order[s++]] & RW_SCR_SEGMENT_HELD) != 0;
            chunk->segment_free_end += !held;
        }
        chunk->segment_end = s;
        chunk->rod = scr->node_rod[scr->node_order[chunk->node_first]];
        rw_scr_rod* rod = &scr->rods[chunk->rod];
        if (rod->chunk_count++ == 0)
            rod->chunk_first = c;
        chunk->large = chunk->node_end - chunk->node_first > RW_SCR_LARGE_NODES &&
                       scr->model->solver.scr.order == RW_SCR_ORDER_COLOURED;
        if (chunk->large)
            colour_rows += o->node_keys + o->segment_keys + 2;
    }
    TAKE(scr, scr->colour_start, colour_rows);
    int32_t row = 0;
    for (int32_t c = 0; c < scr->chunk_count; c++) {
        rw_scr_chunk* chunk = &scr->chunks[c];
        if (!chunk->large)
            continue;
        chunk->node_colour_first = row;
        chunk->node_colour_count =
            note_colours(scr->colour_start + row, scr->node_order, o->node_key, chunk->node_first,
                         chunk->node_free_end);
        row += chunk->node_colour_count + 1;
        chunk->segment_colour_first = row;
        chunk->segment_colour_count =
            note_colours(scr->colour_start + row, scr->segment_order, o->segment_key,
                         chunk->segment_first, chunk->segment_free_end);
        row += chunk->segment_colour_count + 1;
    }
    return RW_STATUS_OK;
}

static int32_t piece_count_of(const rw_scr_chunk* chunk) {
    int32_t nodes = chunk->node_end - chunk->node_first;
    int32_t segments = chunk->segment_end - chunk->segment_first;
    int32_t most = nodes > segments ? nodes : segments;
    return (most + RW_SCR_PIECE_ITEMS - 1) / RW_SCR_PIECE_ITEMS;
}

static int32_t cut(int32_t first, int32_t end, int32_t k, int32_t count) {
    return first + (int32_t)((int64_t)(end - first) * k / count);
}

static rw_status fill_pieces(rw_scr* scr) {
    scr->piece_count = 0;
    for (int32_t c = 0; c < scr->chunk_count; c++)
        scr->piece_count += piece_count_of(&scr->chunks[c]);
    TAKE(scr, scr->pieces, scr->piece_count);
    TAKE(scr, scr->sums, scr->piece_count);
    TAKE(scr, scr->batches, scr->chunk_count);
    int32_t piece = 0, filled = 0;
    scr->batch_count = 0;
    for (int32_t c = 0; c < scr->chunk_count; c++) {
        rw_scr_chunk* chunk = &scr->chunks[c];
        int32_t count = piece_count_of(chunk);
        chunk->piece_first = piece;
        chunk->piece_count = count;
        for (int32_t k = 0; k < count; k++)
            scr->pieces[piece++] = (rw_scr_piece){
                .chunk = c,
                .node_first = cut(chunk->node_first, chunk->node_end, k, count),
                .node_end = cut(chunk->node_first, chunk->node_end, k + 1, count),
                .segment_first = cut(chunk->segment_first, chunk->segment_end, k, count),
                .segment_end = cut(chunk->segment_first, chunk->segment_end, k + 1, count)};
        if (filled == 0 || filled >= RW_SCR_PIECE_ITEMS) {
            scr->batches[scr->batch_count++] = (rw_scr_batch){c, c};
            filled = 0;
        }
        scr->batches[scr->batch_count - 1].chunk_end = c + 1;
        filled += chunk->node_end - chunk->node_first;
    }
    return RW_STATUS_OK;
}

static rw_status fill_order(rw_scr* scr, rw_arena* scratch) {
    size_t nodes = (size_t)scr->node_count + 2, segments = (size_t)scr->segment_count + 2;
    rw_scr_ordering o = {0};
    o.node_chunk = rw_arena_array(scratch, nodes, sizeof(int32_t));
    o.node_key = rw_arena_array(scratch, nodes, sizeof(int32_t));
    o.segment_chunk = rw_arena_array(scratch, segments, sizeof(int32_t));
    o.segment_key = rw_arena_array(scratch, segments, sizeof(int32_t));
    size_t most = nodes > segments ? nodes : segments;
    int32_t* a = rw_arena_array(scratch, most, sizeof(int32_t));
    int32_t* b = rw_arena_array(scratch, most, sizeof(int32_t));
    if (o.node_chunk == NULL || o.node_key == NULL || o.segment_chunk == NULL ||
        o.segment_key == NULL || a == NULL || b == NULL)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    TAKE(scr, scr->node_order, scr->node_count);
    TAKE(scr, scr->segment_order, scr->segment_count);
    scr->chunk_count = assign_chunks(scr, a, b, o.node_chunk);
    RW_TRY(fill_keys(scr, scratch, &o));
    sort_items(scr->node_count, o.node_chunk, scr->chunk_count, o.node_key, o.node_keys, a, b,
               scr->node_order);
    sort_items(scr->segment_count, o.segment_chunk, scr->chunk_count, o.segment_key, o.segment_keys,
               a, b, scr->segment_order);
    RW_TRY(fill_chunks(scr, &o));
    return fill_pieces(scr);
}

// ---- Private state ----

static int32_t find_id(const rw_id* ids, int32_t count, rw_id id, int32_t guess) {
    // Objects keep their order, and removals only move them down: search downwards from the guess.
    for (int32_t k = guess < count ? guess : count - 1; k >= 0; k--)
        if (ids[k] == id)
            return k;
    for (int32_t k = guess; k < count; k++)
        if (ids[k] == id)
            return k;
    return -1;
}

static void carry_nodes(const rw_scr* scr, rw_scr_memory* fresh) {
    // Old first rows by walking the old layout beside the new one.
    int32_t old = 0, old_first = 0;
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rw_id id = scr->model->rods.items[r].id;
        int32_t k = old, first = old_first;
        while (k < scr->rod_id_count && scr->rod_ids[k] != id)
            first += scr->rod_nodes[k++];
        if (k == scr->rod_id_count || scr->rod_nodes[k] != scr->rods[r].node_count)
            continue; // new
        memcpy(fresh->node_acceleration + 3 * (int64_t)scr->rods[r].node_first,
               scr->memory.node_acceleration + 3 * (int64_t)first,
               (size_t)scr->rods[r].node_count * 3 * sizeof(double));
        fresh->rod_residual[r] = scr->memory.rod_residual[k];
        old = k + 1;
        old_first = first + scr->rod_nodes[k];
    }
}

static void carry_attachments(const rw_scr* scr, rw_scr_memory* fresh) {
    for (int32_t i = 0; i < scr->attachment_count; i++) {
        const rw_attachment* source = &scr->model->attachments.items[i];
        double* target = fresh->attachment_target + 7 * (int64_t)i;
        int32_t old = find_id(scr->attachment_ids, scr->attachment_id_count, source->id, i);
        if (old >= 0) {
            memcpy(fresh->attachment_wrench + 6 * (int64_t)i,
                   scr->memory.attachment_wrench + 6 * (int64_t)old, 6 * sizeof(double));
            memcpy(target, scr->memory.attachment_target + 7 * (int64_t)old, 7 * sizeof(double));
        } else {
            memcpy(target, source->target.position, 3 * sizeof(double));
            memcpy(target + 3, source->target.rotation, 4 * sizeof(double));
        }
    }
}

static rw_status carry_memory(rw_scr* scr) {
    int64_t counts[RW_SCR_DOMAIN_COUNT] = {scr->node_count, scr->rod_count, scr->attachment_count};
    rw_field_list list = rw_scr_prepare_fields();
    rw_scr_memory fresh = {0};
    rw_id* rod_ids = rw_alloc_array(scr->alloc, (size_t)scr->rod_count + 1, sizeof *rod_ids);
    int32_t* rod_nodes = rw_alloc_array(scr->alloc, (size_t)scr->rod_count + 1, sizeof *rod_nodes);
    rw_id* ids = rw_alloc_array(scr->alloc, (size_t)scr->attachment_count + 1, sizeof *ids);
    rw_status status = rod_ids != NULL && rod_nodes != NULL && ids != NULL
                           ? RW_STATUS_OK
                           : RW_STATUS_RESOURCE_EXHAUSTED;
    for (uint32_t domain = 0; domain < RW_SCR_DOMAIN_COUNT && status == RW_STATUS_OK; domain++)
        status = rw_field_reserve(list, scr->alloc, &fresh, domain, 0, counts[domain] + 1);
    if (status != RW_STATUS_OK) {
        rw_field_release(list, scr->alloc, &fresh);
        rw_alloc_free(scr->alloc, rod_ids);
        rw_alloc_free(scr->alloc, rod_nodes);
        rw_alloc_free(scr->alloc, ids);
        return status;
    }
    carry_nodes(scr, &fresh);
    carry_attachments(scr, &fresh);
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rod_ids[r] = scr->model->rods.items[r].id;
        rod_nodes[r] = scr->rods[r].node_count;
    }
    for (int32_t i = 0; i < scr->attachment_count; i++)
        ids[i] = scr->model->attachments.items[i].id;
    rw_field_release(list, scr->alloc, &scr->memory);
    rw_alloc_free(scr->alloc, scr->rod_ids);
    rw_alloc_free(scr->alloc, scr->rod_nodes);
    rw_alloc_free(scr->alloc, scr->attachment_ids);
    scr->memory = fresh;
    memcpy(scr->memory_counts, counts, sizeof counts);
    scr->rod_ids = rod_ids;
    scr->rod_nodes = rod_nodes;
    scr->rod_id_count = scr->rod_count;
    scr->attachment_ids = ids;
    scr->attachment_id_count = scr->attachment_count;
    return RW_STATUS_OK;
}

static rw_status prepare(rw_scr* scr, rw_arena* scratch, rw_error* error) {
    scr->rod_count = scr->model->rods.count;
    TAKE(scr, scr->rods, scr->rod_count);
    count_rods(scr);
    RW_TRY(take_rod_arrays(scr));
    RW_TRY(take_damping_arrays(scr));
    RW_TRY(fill_rods(scr, error));
    fill_incidents(scr);
    fill_links(scr);
    RW_TRY(fill_attachments(scr));
    find_slender(scr);
    fill_targets(scr);
    fill_viscosity(scr);
    RW_TRY(fill_order(scr, scratch));
    return carry_memory(scr);
}

rw_status rw_scr_prepare_all(rw_scr* scr, rw_error* error) {
    rw_arena scratch;
    rw_arena_init(&scratch, scr->alloc);
    rw_arena_reset(&scr->arena);
    scr->prepared = false;
    rw_status status = prepare(scr, &scratch, error);
    rw_arena_finish(&scratch);
    if (status == RW_STATUS_RESOURCE_EXHAUSTED)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the rod solver");
    scr->prepared = status == RW_STATUS_OK;
    return status;
}

void rw_scr_prepare_finish(rw_scr* scr) {
    rw_field_release(rw_scr_prepare_fields(), scr->alloc, &scr->memory);
    rw_alloc_free(scr->alloc, scr->rod_ids);
    rw_alloc_free(scr->alloc, scr->rod_nodes);
    rw_alloc_free(scr->alloc, scr->attachment_ids);
    rw_arena_finish(&scr->arena);
}
