#include "solvers/xpbd/fe_rods.h"

#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/rods.h"
#include "solvers/xpbd/fe_rods_private.h"

// Nodes per parallel block: cut by the data, so that results do not depend on the workers.
#define BLOCK_NODES 256

// ---- Life --------------------------------------------------------------------------------------

rw_status rw_fe_rods_create(rw_model* model, rw_alloc* alloc, rw_fe_rods** rods, rw_error* error) {
    rw_fe_rods* self = rw_alloc_get(alloc, sizeof *self);
    if (self == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the rod solver");
    }
    self->model = model;
    self->alloc = alloc;
    rw_arena_init(&self->arena, alloc);
    *rods = self;
    return RW_STATUS_OK;
}

void rw_fe_rods_destroy(rw_fe_rods* self) {
    if (self != NULL) {
        rw_arena_finish(&self->arena);
        rw_alloc_free(self->alloc, self->attachment_wrench);
        rw_alloc_free(self->alloc, self);
    }
}

void rw_fe_rods_set_full_quadrature(rw_fe_rods* self, bool full) {
    self->full_quadrature = full;
}

// An element whose end turns by more than RW_ROD_ELEMENT_ANGLE_MAX against its first node makes the
// logarithm wrap (numerics, seed 000 note 15).
static rw_status check_turning(const double* positions, const double* rotations, int order,
                               int32_t element_count, rw_error* error) {
    for (int32_t e = 0; e < element_count; e++) {
        rw_rod_element_frame frame;
        int64_t first = (int64_t)e * order;
        rw_rod_element_make_frame(order + 1, &positions[3 * first], &rotations[4 * first], &frame);
        if (frame.angle_max > RW_ROD_ELEMENT_ANGLE_MAX) {
            RW_FAIL(error, INVALID_ARGUMENT, "elements",
                    "element %d turns by %.3g rad, more than 0.9 pi: use more elements", e,
                    frame.angle_max);
        }
    }
    return RW_STATUS_OK;
}

// The frames of nodes that are whole turns apart look alike: what an element of a helix turns by
// follows from the helix itself.
static rw_status check_helix_turning(const rw_rod_desc* desc, int32_t element_count,
                                     rw_error* error) {
    double full = 6.28318530717958647692, around = full * desc->helix.radius;
    double slant = sqrt(around * around + desc->helix.pitch * desc->helix.pitch);
    double turn = full * fabs(desc->helix.turns) * around / slant / element_count;
    if (turn > RW_ROD_ELEMENT_ANGLE_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, "elements",
                "an element turns by %.3g rad, more than 0.9 pi: use more elements", turn);
    }
    return RW_STATUS_OK;
}

rw_status rw_fe_rods_admit(const rw_fe_rods* self, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error) {
    if (desc->geometry == RW_ROD_GRAPH) {
        RW_FAIL(error, UNIMPLEMENTED, "graph",
                "graphs are served by the SCR rod solver: choose solver.rods SCR");
    }
    rw_rods_counts counts = rw_rods_count(desc);
    if (desc->geometry == RW_ROD_HELIX) {
        RW_TRY(check_helix_turning(desc, counts.element_count, error));
    }
    rw_arena scratch;
    rw_arena_init(&scratch, self->alloc);
    rw_rods_geometry geometry;
    rw_status status = rw_rods_build(desc, &scratch, &geometry, error);
    int order = desc->method == RW_ROD_RIGID_CHAIN ? 1 : (int)desc->order;
    if (status == RW_STATUS_OK) {
        status =
            check_turning(geometry.position, geometry.rotation, order, counts.element_count, error);
    }
    if (status == RW_STATUS_OK) {
        status = check_turning(geometry.rest_position, geometry.rest_rotation, order,
                               counts.element_count, error);
    }
    rw_arena_finish(&scratch);
    RW_TRY(status);
    *frame_count = counts.node_count;
    *element_count = counts.element_count;
    return RW_STATUS_OK;
}

// ---- Prepare -----------------------------------------------------------------------------------

// Row-sum lumping (seed 000, section 6.3.6): the share of each node in its element.
static double lumped_share(int order, int node) {
    static const double shares[3][4] = {
        {0.5, 0.5}, {1.0 / 6, 2.0 / 3, 1.0 / 6}, {0.125, 0.375, 0.375, 0.125}};
    return shares[order - 1][node];
}

// Mass and inertia of an element's nodes.
static void add_masses(rw_fe_rods* self, const rw_fe_rod* rod, const rw_rod_desc* desc,
                       int32_t element, double length) {
    int order = rod->rule.order;
    for (int j = 0; j <= order; j++) {
        int64_t node = rod->node_first + element * order + j;
        double u = (element + j / (double)order) / rod->element_count;
        rw_rods_section section = rw_rods_section_at(desc, u);
        double share = lumped_share(order, j) * length;
        double mass = share * section.mass;
        // Rotary inertia of the section; a rigid half segment has its own length as well, about the
        // node at its end (numerics, seed 000 note 6).
        double slender = rod->is_chain ? mass * share * share / 3 : 0;
        double per_area = section.area > 0 ? mass / section.area : 0;
        self->share[node] += share;
        self->mass[node] += mass;
        self->inertia[3 * node] += per_area * section.i1 + slender;
        self->inertia[3 * node + 1] += per_area * section.i2 + slender;
        self->inertia[3 * node + 2] += per_area * (section.i1 + section.i2);
    }
}

void rw_fe_rods_private_frame(const rw_fe_rod* rod, const rw_state* state, int32_t element,
                              rw_rod_element_frame* frame) {
    int64_t first = rod->node_first + (int64_t)element * rod->rule.order;
    rw_rod_element_make_frame(rod->rule.node_count, &state->node_position[3 * first],
                              &state->frame_rotation[4 * first], frame);
}

void rw_fe_rods_private_strain(const rw_fe_rods* self, const rw_fe_rod* rod,
                               const rw_rod_element_frame* frame, int32_t element, int32_t point,
                               rw_rod_element_strain* strain, rw_rod_element_gradient* gradient) {
    double length =
        self->points[rod->point_first + (int64_t)element * rod->rule.point_count + point].length;
    if (rod->is_chain) {
        rw_rod_element_evaluate_chain(frame, length, strain, gradient);
    } else {
        rw_rod_element_evaluate(frame, &rod->rule.at[point], length, strain, gradient);
    }
}

static double element_length(const rw_fe_rod* rod, const rw_rod_element_frame* frame) {
    double length = 0;
    for (int k = 0; k < rod->rule.point_count; k++) {
        rw_vec3 slope = rw_vec3_zero();
        for (int j = 0; j < rod->rule.node_count; j++) {
            slope = rw_vec3_add_scaled(slope, rod->rule.at[k].slope[j], frame->position[j]);
        }
        length += rod->rule.at[k].weight * rw_vec3_norm(slope);
    }
    return length;
}

// ds/dxi over the element's length at a Gauss point, from the nodes' places along the rest shape: 1
// where they are equally spaced.
static double metric_at(const rw_fe_rod* rod, const double* arc, int point) {
    double slope = 0;
    for (int j = 0; j < rod->rule.node_count; j++) {
        slope += rod->rule.at[point].slope[j] * (arc[j] - arc[0]);
    }
    return slope / (arc[rod->rule.order] - arc[0]);
}

void rw_fe_rods_private_store_strain(const rw_rod_element_strain* strain, double out[6]) {
    rw_vec3_store(out, strain->v);
    rw_vec3_store(out + 3, strain->u);
}

// Rest strains, stiffness and masses of one rod, from its rest shape.
static rw_status build_rod(rw_fe_rods* self, int32_t index, rw_arena* scratch, rw_error* error) {
    rw_fe_rod* rod = &self->rods[index];
    const rw_rod_desc* desc = &self->model->rods.items[index].desc;
    rw_rods_geometry geometry;
    RW_TRY(rw_rods_build(desc, scratch, &geometry, error));
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        int64_t first = (int64_t)e * rod->rule.order;
        rw_rod_element_make_frame(rod->rule.node_count, &geometry.rest_position[3 * first],
                                  &geometry.rest_rotation[4 * first], &frame);
        double length = element_length(rod, &frame);
        self->lengths[rod->length_first + e] = length;
        double curvature[3];
        rw_rods_rest_curvature(desc, e, curvature);
        for (int k = 0; k < rod->rule.point_count; k++) {
            rw_fe_point* point =
                &self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k];
            double xi = 0;
            for (int j = 0; j < rod->rule.node_count; j++) {
                xi += rod->rule.at[k].value[j] * j / rod->rule.order;
            }
            rw_rods_section s = rw_rods_section_at(desc, (e + xi) / rod->element_count);
            const double stiffness[6] = {s.ga1, s.ga2, s.ea, s.ei1, s.ei2, s.gj};
            memcpy(point->stiffness, stiffness, sizeof stiffness);
            point->length = length * metric_at(rod, &geometry.rest_arc[first], k);
            point->weight = rod->rule.at[k].weight * point->length;
            rw_rod_element_strain strain;
            rw_fe_rods_private_strain(self, rod, &frame, e, k, &strain, NULL);
            rw_fe_rods_private_store_strain(&strain, point->rest);
            for (int i = 0; i < 3; i++) {
                point->rest[3 + i] += curvature[i];
            }
        }
        add_masses(self, rod, desc, e, length);
    }
    return RW_STATUS_OK;
}

// Counts and offsets of every rod.
typedef struct layout {
    int64_t points, elements, band, columns;
} layout;

// Sorts the attachments by rod and node: counting first, then filling, then a sort within the rod.
static void fill_holds(rw_fe_rods* self, layout* sizes) {
    const rw_model* model = self->model;
    self->hold_count = model->attachments.count;
    for (int32_t i = 0; i < model->attachments.count; i++) {
        self->rods[model->attachments.items[i].rod].hold_count++;
    }
    int32_t next = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        self->rods[r].hold_first = next;
        next += self->rods[r].hold_count;
        self->rods[r].hold_count = 0;
    }
    for (int32_t i = 0; i < model->attachments.count; i++) {
        const rw_attachment* attachment = &model->attachments.items[i];
        rw_fe_rod* rod = &self->rods[attachment->rod];
        bool is_dynamic =
            attachment->body >= 0 && model->bodies.kind[attachment->body] == RW_BODY_DYNAMIC;
        rw_fe_hold hold = {.attachment = i,
                           .node = attachment->node,
                           .body = is_dynamic ? attachment->body : -1,
                           .rows = RW_FE_HELD_POSITION};
        if (attachment->desc.kind == RW_ATTACH_CLAMP) {
            hold.rows |= RW_FE_HELD_ROTATION;
        }
        if (attachment->desc.compliance > 0) {
            hold.stiffness = 1 / attachment->desc.compliance;
        }
        if (is_dynamic) {
            hold.column_first = sizes->columns;
            sizes->columns += 2 * 6 * 6 * (int64_t)rod->node_count;
        }
        rw_fe_hold* holds = &self->holds[rod->hold_first];
        int32_t at = rod->hold_count++;
        for (; at > 0 && holds[at - 1].node > hold.node; at--) {
            holds[at] = holds[at - 1];
        }
        holds[at] = hold;
    }
}

static void fill_layout(rw_fe_rods* self, layout* sizes) {
    for (int32_t r = 0; r < self->rod_count; r++) {
        const rw_rod* record = &self->model->rods.items[r];
        rw_fe_rod* rod = &self->rods[r];
        rod->is_chain = record->desc.method == RW_ROD_RIGID_CHAIN;
        rod->rule = rw_rod_element_make_rule(rod->is_chain ? 1 : (int)record->desc.order,
                                             self->full_quadrature && !rod->is_chain);
        rod->element_count = record->element_count;
        rod->node_first = record->node_first;
        rod->node_count = record->node_count;
        rod->half_band = 6 * rod->rule.node_count - 1;
        rod->point_first = sizes->points;
        rod->length_first = sizes->elements;
        rod->band_first = sizes->band;
        rod->damping = record->desc.damping;
        rod->mass_damping = record->desc.mass_damping;
        rod->drag = record->desc.drag;
        rod->quadratic_drag = record->desc.quadratic_drag;
        sizes->points += (int64_t)rod->element_count * rod->rule.point_count;
        sizes->elements += rod->element_count;
        sizes->band += 6 * (int64_t)rod->node_count * (rod->half_band + 1);
    }
}

static void fill_blocks(rw_fe_rods* self) {
    int32_t nodes = 0;
    self->block_count = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        if (nodes == 0) {
            self->block_first[self->block_count++] = r;
        }
        nodes += self->rods[r].node_count;
        if (nodes >= BLOCK_NODES) {
            nodes = 0;
        }
    }
    self->block_first[self->block_count] = self->rod_count;
}

// Arena pieces of all arrays whose sizes are known.
static bool allocate(rw_fe_rods* self, const layout* sizes) {
    int64_t nodes = self->model->rods.node_count;
    const struct {
        double** array;
        int64_t count;
    } arrays[] = {
        {&self->lengths, sizes->elements}, {&self->mass, nodes},
        {&self->inertia, 3 * nodes},       {&self->share, nodes},
        {&self->prediction, 3 * nodes},    {&self->turn, 4 * nodes},
        {&self->right, 6 * nodes},         {&self->band, sizes->band},
        {&self->columns, sizes->columns},
    };
    for (size_t i = 0; i < RW_COUNT_OF(arrays); i++) {
        *arrays[i].array = rw_arena_array(&self->arena, (size_t)arrays[i].count, sizeof(double));
        if (*arrays[i].array == NULL) {
            return false;
        }
    }
    self->points = rw_arena_array(&self->arena, (size_t)sizes->points, sizeof *self->points);
    self->block_first =
        rw_arena_array(&self->arena, (size_t)self->rod_count + 1, sizeof *self->block_first);
    return self->points != NULL && self->block_first != NULL;
}

// Wrenches of attachments that stayed keep their values only when none came or went: they are of
// the last step, and the next step writes them anew.
static bool resize_wrenches(rw_fe_rods* self) {
    int64_t count = self->model->attachments.count;
    if (self->attachment_wrench != NULL && self->field_counts[0] == count) {
        return true;
    }
    double* wrenches = rw_alloc_array(self->alloc, (size_t)count, 6 * sizeof *wrenches);
    if (wrenches == NULL) {
        return false;
    }
    rw_alloc_free(self->alloc, self->attachment_wrench);
    self->attachment_wrench = wrenches;
    self->field_counts[0] = count;
    return true;
}

rw_status rw_fe_rods_prepare(rw_fe_rods* self, rw_error* error) {
    rw_arena_reset(&self->arena);
    const rw_model* model = self->model;
    layout sizes = {0};
    self->rod_count = model->rods.count;
    self->rods = rw_arena_array(&self->arena, (size_t)model->rods.count, sizeof *self->rods);
    self->holds =
        rw_arena_array(&self->arena, (size_t)model->attachments.count, sizeof *self->holds);
    if (self->rods == NULL || self->holds == NULL || !resize_wrenches(self)) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %d rods", model->rods.count);
    }
    fill_layout(self, &sizes);
    fill_holds(self, &sizes);
    if (!allocate(self, &sizes)) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the matrices of %d rods",
                model->rods.count);
    }
    fill_blocks(self);
    rw_arena scratch;
    rw_arena_init(&scratch, self->alloc);
    rw_status status = RW_STATUS_OK;
    for (int32_t r = 0; r < self->rod_count && status == RW_STATUS_OK; r++) {
        rw_arena_reset(&scratch);
        status = build_rod(self, r, &scratch, error);
        if (status != RW_STATUS_OK && error != NULL) {
            rw_status_prefix(error, "rods[%d]", r);
        }
    }
    rw_arena_finish(&scratch);
    return status;
}

rw_solver_fields rw_fe_rods_fields(rw_fe_rods* self) {
    static const rw_field fields[] = {
        RW_FIELD_ENTRY(rw_fe_rods, attachment_wrench, 6, 0, 0),
    };
    return (rw_solver_fields){{fields, RW_COUNT_OF(fields)}, self, self->field_counts};
}

// ---- Parallel passes over rods -----------------------------------------------------------------

typedef struct pass_context {
    rw_fe_rods* self;
    rw_fe_rods_private_pass pass;
} pass_context;

static void run_block(void* context, int32_t block) {
    const pass_context* pass = context;
    rw_fe_rods* self = pass->self;
    for (int32_t r = self->block_first[block]; r < self->block_first[block + 1]; r++) {
        self->rods[r].status = RW_STATUS_OK;
        pass->pass(self, &self->rods[r]);
    }
}

// Runs the pass on every rod; the first rod in order that failed decides.
rw_status rw_fe_rods_private_for_all(rw_fe_rods* self, rw_step* step, const char* stage,
                                     rw_fe_rods_private_pass pass) {
    pass_context context = {self, pass};
    self->step = step;
    rw_parallel_for(step->parallel, self->block_count, run_block, &context);
    for (int32_t r = 0; r < self->rod_count; r++) {
        const rw_fe_rod* rod = &self->rods[r];
        if (rod->status == RW_STATUS_OK) {
            continue;
        }
        step->fault->raised = true;
        snprintf(step->fault->object, sizeof step->fault->object, "rod/%s",
                 self->model->rods.items[r].desc.name);
        snprintf(step->fault->stage, sizeof step->fault->stage, "%s", stage);
        snprintf(step->fault->text, sizeof step->fault->text, "%s", rod->fault);
        return rod->status;
    }
    return RW_STATUS_OK;
}
