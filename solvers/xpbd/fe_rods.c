#include "solvers/xpbd/fe_rods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/block_banded.h"
#include "solvers/math/so3.h"
#include "solvers/model/rods.h"
#include "solvers/xpbd/fe_rods_private.h"

// Nodes per parallel block: cut by the data, so that results do not depend on the workers.
#define BLOCK_NODES 256

// ---- Life --------------------------------------------------------------------------------------

rw_status rw_fe_rods_create(rw_model* model, rw_alloc* alloc, rw_fe_rods** rods,
                            rw_error* error) {
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

void rw_fe_rods_set_full_quadrature(rw_fe_rods* self, bool full) { self->full_quadrature = full; }

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
        status = check_turning(geometry.position, geometry.rotation, order, counts.element_count,
                               error);
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

static void store_strain(const rw_rod_element_strain* strain, double out[6]) {
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
            store_strain(&strain, point->rest);
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
        *arrays[i].array =
            rw_arena_array(&self->arena, (size_t)arrays[i].count, sizeof(double));
        if (*arrays[i].array == NULL) {
            return false;
        }
    }
    self->points =
        rw_arena_array(&self->arena, (size_t)sizes->points, sizeof *self->points);
    self->block_first = rw_arena_array(&self->arena, (size_t)self->rod_count + 1,
                                       sizeof *self->block_first);
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

typedef void (*rod_pass)(rw_fe_rods* self, rw_fe_rod* rod);

typedef struct pass_context {
    rw_fe_rods* self;
    rod_pass pass;
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
static rw_status for_all_rods(rw_fe_rods* self, rw_step* step, const char* stage, rod_pass pass) {
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

// ---- Begin: inertial prediction ----------------------------------------------------------------

static void predict_node(rw_fe_rods* self, const rw_step* step, int64_t i, rw_vec3 gravity) {
    const rw_state* from = step->from;
    double h = step->h, mass = self->mass[i];
    rw_vec3 v = rw_vec3_load(&from->node_velocity[3 * i]);
    v = rw_vec3_add_scaled(v, h, gravity);
    v = rw_vec3_add_scaled(v, h / mass, rw_vec3_load(&step->node_force[3 * i]));
    rw_vec3_store(&self->prediction[3 * i],
                  rw_vec3_add_scaled(rw_vec3_load(&from->node_position[3 * i]), h, v));

    rw_vec3 w = rw_vec3_load(&from->frame_angular_velocity[3 * i]);
    rw_vec3 inertia = rw_vec3_load(&self->inertia[3 * i]);
    rw_quat q = rw_quat_load(&from->frame_rotation[4 * i]);
    rw_vec3 torque = rw_vec3_cross(rw_vec3_mul(inertia, w), w);
    w = rw_vec3_add(w, rw_vec3_make(h * torque.x / inertia.x, h * torque.y / inertia.y,
                                    h * torque.z / inertia.z));
    rw_quat_store(&self->turn[4 * i],
                  rw_quat_normalize(rw_quat_mul(q, rw_quat_cayley(rw_vec3_scale(w, h)))));
}

static void begin_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    const rw_step* step = self->step;
    const rw_state* from = step->from;
    rw_state* to = step->to;
    rw_vec3 gravity = rw_vec3_load(step->drive_to->gravity);
    double h = step->h;
    // The iteration starts where the nodes would coast to, without forces: at rest that is the
    // equilibrium itself, whatever the number of iterations. (Starting from the prediction, one
    // iteration has to undo h^2 f/m at a light node that carries a load: at 30 N on a rubber rod
    // it settles at 1.7 times the true deflection.)
    for (int32_t n = 0; n < rod->node_count; n++) {
        int64_t i = rod->node_first + n;
        predict_node(self, step, i, gravity);
        rw_vec3 x = rw_vec3_load(&from->node_position[3 * i]);
        rw_vec3 v = rw_vec3_load(&from->node_velocity[3 * i]);
        rw_vec3_store(&to->node_position[3 * i], rw_vec3_add_scaled(x, h, v));
        rw_quat q = rw_quat_load(&from->frame_rotation[4 * i]);
        rw_vec3 w = rw_vec3_load(&from->frame_angular_velocity[3 * i]);
        rw_quat_store(&to->frame_rotation[4 * i],
                      rw_quat_normalize(rw_quat_mul(q, rw_quat_cayley(rw_vec3_scale(w, h)))));
    }
    // Held rows start where they were; the first iteration moves them with the rest.
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        int64_t i = rod->node_first + hold->node;
        memcpy(&to->node_position[3 * i], &from->node_position[3 * i], 3 * sizeof(double));
        if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
            memcpy(&to->frame_rotation[4 * i], &from->frame_rotation[4 * i], 4 * sizeof(double));
        }
    }
    for (int32_t e = 0; e < rod->element_count && rod->damping > 0; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, from, e, &frame);
        for (int k = 0; k < rod->rule.point_count; k++) {
            rw_rod_element_strain strain;
            rw_fe_rods_private_strain(self, rod, &frame, e, k, &strain, NULL);
            store_strain(&strain,
                         self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k]
                             .start);
        }
    }
}

rw_status rw_fe_rods_begin(rw_fe_rods* self, rw_step* step) {
    self->iteration = 0;
    return for_all_rods(self, step, "xpbd rod prediction", begin_rod);
}

// ---- Assembly ----------------------------------------------------------------------------------

// The rotation vector of node i from a reference rotation, to the accuracy of its square.
static rw_vec3 small_turn(const double* reference, const double* rotation) {
    rw_quat d = rw_quat_conj_mul(rw_quat_load(reference), rw_quat_load(rotation));
    return rw_vec3_scale(rw_quat_vector(d), d.w < 0 ? -2 : 2);
}

// Drag coefficient of a node [kg/s], the quadratic part at the speed of the start.
static double node_drag(const rw_fe_rods* self, const rw_fe_rod* rod, int64_t i) {
    double coefficient = rod->drag;
    if (rod->quadratic_drag > 0) {
        rw_vec3 v = rw_vec3_sub(rw_vec3_load(&self->step->from->node_velocity[3 * i]),
                                rw_vec3_load(self->step->drive_to->wind));
        coefficient += rod->quadratic_drag * rw_vec3_norm(v);
    }
    return coefficient * self->share[i];
}

// Inertia, mass damping and drag of a node: minus the residual, and the diagonal of the matrix.
static void node_terms(const rw_fe_rods* self, const rw_fe_rod* rod, int64_t i, double right[6],
                       double diagonal[6]) {
    const rw_step* step = self->step;
    double h = step->h, c = rod->mass_damping;
    double mass = self->mass[i], drag = node_drag(self, rod, i);
    rw_vec3 x = rw_vec3_load(&step->to->node_position[3 * i]);
    rw_vec3 v = rw_vec3_scale(
        rw_vec3_sub(x, rw_vec3_load(&step->from->node_position[3 * i])), 1 / h);
    rw_vec3 off = rw_vec3_sub(x, rw_vec3_load(&self->prediction[3 * i]));
    rw_vec3 wind = rw_vec3_sub(v, rw_vec3_load(step->drive_to->wind));
    rw_vec3 f = rw_vec3_scale(off, -mass / (h * h));
    f = rw_vec3_add_scaled(f, -mass * c, v);
    f = rw_vec3_add_scaled(f, -drag, wind);
    rw_vec3_store(right, f);

    rw_vec3 turn = small_turn(&self->turn[4 * i], &step->to->frame_rotation[4 * i]);
    rw_vec3 moved =
        small_turn(&step->from->frame_rotation[4 * i], &step->to->frame_rotation[4 * i]);
    rw_vec3 t = rw_vec3_add_scaled(rw_vec3_scale(turn, -1 / (h * h)), -c / h, moved);
    rw_vec3 inertia = rw_vec3_load(&self->inertia[3 * i]);
    // Moments enter here, not in the prediction: h^2 torque / inertia of a light node may be many
    // turns, which no rotation can tell.
    rw_quat q = rw_quat_load(&step->to->frame_rotation[4 * i]);
    rw_vec3 torque = rw_quat_inverse_rotate(q, rw_vec3_load(&step->node_torque[3 * i]));
    rw_vec3_store(right + 3, rw_vec3_add(rw_vec3_mul(inertia, t), torque));
    for (int k = 0; k < 3; k++) {
        diagonal[k] = mass * (1 / (h * h) + c / h) + drag / h;
        diagonal[k + 3] = self->inertia[3 * i + k] * (1 / (h * h) + c / h);
    }
}

// Adds a 3x3 block at (row, column) of the band; only the lower triangle of the whole is kept.
static void add_block(const rw_fe_rod* rod, double* band, int64_t row, int64_t column,
                      const rw_mat3* block) {
    int width = rod->half_band + 1;
    for (int r = 0; r < 3; r++) {
        double* at = &band[(row + r) * width + rod->half_band - (row + r)];
        int last = row == column ? r : 2;
        for (int c = 0; c <= last; c++) {
            at[column + c] += block->m[r][c];
        }
    }
}

static rw_mat3 scale_rows(const double factor[3], rw_mat3 a) {
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            a.m[r][c] *= factor[r];
        }
    }
    return a;
}

// Stresses (times weight) of a point and the factors of its tangent.
typedef struct point_law {
    rw_vec3 force, moment; // K (e - e*) + b K (e - e_start)/h, times weight
    double tangent[6];     // K (1 + b/h) times weight
} point_law;

static point_law apply_law(const rw_fe_rod* rod, const rw_fe_point* point,
                           const rw_rod_element_strain* strain, double h) {
    double e[6], stress[6];
    store_strain(strain, e);
    point_law law;
    double rate = rod->damping / h;
    for (int i = 0; i < 6; i++) {
        double k = point->stiffness[i] * point->weight;
        stress[i] = k * (e[i] - point->rest[i]);
        if (rate > 0) {
            stress[i] += k * rate * (e[i] - point->start[i]);
        }
        law.tangent[i] = k * (1 + rate);
    }
    law.force = rw_vec3_load(stress);
    law.moment = rw_vec3_load(stress + 3);
    return law;
}

// Force on each node of the element: minus B' stress.
static void add_element_force(double* right, int node_count, const rw_rod_element_strain* strain,
                              const rw_rod_element_gradient* gradient, const point_law* law) {
    rw_vec3 world = rw_mat3_apply(&strain->rotation, law->force);
    for (int j = 0; j < node_count; j++) {
        double* at = right + 6 * j;
        rw_vec3_store(at, rw_vec3_add_scaled(rw_vec3_load(at), -gradient->vp[j], world));
        rw_vec3 t = rw_vec3_add(rw_mat3_apply_transpose(&gradient->vr[j], law->force),
                                rw_mat3_apply_transpose(&gradient->ur[j], law->moment));
        rw_vec3_store(at + 3, rw_vec3_sub(rw_vec3_load(at + 3), t));
    }
}

// Adds B' K B and the string stiffness of tension.
static void add_element_stiffness(const rw_fe_rod* rod, double* band, int64_t row,
                                  const rw_rod_element_strain* strain,
                                  const rw_rod_element_gradient* gradient, const point_law* law) {
    const rw_mat3* turn = &strain->rotation;
    // World stretch and shear stiffness; tension resists what turns the tangent.
    rw_mat3 along =
        rw_mat3_mul(*turn, scale_rows(law->tangent, rw_mat3_transpose(*turn)));
    double stretch_sq = rw_vec3_norm_sq(strain->v);
    double tension = rw_vec3_dot(law->force, strain->v);
    if (tension > 0) {
        rw_vec3 tangent = rw_mat3_apply(turn, strain->v);
        double scale = tension / stretch_sq;
        rw_mat3 across = rw_mat3_scale(rw_mat3_outer(tangent, tangent), -scale / stretch_sq);
        across = rw_mat3_add(across, rw_mat3_diagonal(scale, scale, scale));
        along = rw_mat3_add(along, across);
    }
    int count = rod->rule.node_count;
    rw_mat3 kv[RW_ROD_ELEMENT_NODES], ku[RW_ROD_ELEMENT_NODES], world[RW_ROD_ELEMENT_NODES];
    for (int j = 0; j < count; j++) {
        kv[j] = scale_rows(law->tangent, gradient->vr[j]);
        ku[j] = scale_rows(law->tangent + 3, gradient->ur[j]);
        world[j] = rw_mat3_mul(*turn, kv[j]);
    }
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            rw_mat3 pp = rw_mat3_scale(along, gradient->vp[i] * gradient->vp[j]);
            rw_mat3 rp = rw_mat3_scale(rw_mat3_transpose(world[i]), gradient->vp[j]);
            rw_mat3 rr = rw_mat3_add(rw_mat3_transpose_mul(gradient->vr[i], kv[j]),
                                     rw_mat3_transpose_mul(gradient->ur[i], ku[j]));
            add_block(rod, band, row + 6 * i, row + 6 * j, &pp);
            add_block(rod, band, row + 6 * i + 3, row + 6 * j, &rp);
            add_block(rod, band, row + 6 * i + 3, row + 6 * j + 3, &rr);
            if (j < i) {
                rw_mat3 pr = rw_mat3_scale(world[j], gradient->vp[i]);
                add_block(rod, band, row + 6 * i, row + 6 * j + 3, &pr);
            }
        }
    }
}

static void fault_rod(rw_fe_rod* rod, const char* what, double value) {
    rod->status = RW_STATUS_FAULTED;
    snprintf(rod->fault, sizeof rod->fault, "%s %g", what, value);
}

// Fills the matrix and minus the residual at the trial.
static void assemble(rw_fe_rods* self, rw_fe_rod* rod) {
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int width = rod->half_band + 1;
    memset(band, 0, (size_t)(6 * (int64_t)rod->node_count * width) * sizeof *band);
    rod->stress = 0;
    for (int32_t n = 0; n < rod->node_count; n++) {
        double diagonal[6];
        node_terms(self, rod, rod->node_first + n, &right[6 * n], diagonal);
        for (int k = 0; k < 6; k++) {
            band[(6 * (int64_t)n + k) * width + rod->half_band] += diagonal[k];
        }
    }
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, self->step->to, e, &frame);
        if (!(frame.angle_max <= RW_ROD_ELEMENT_ANGLE_MAX)) {
            fault_rod(rod, "an element turns by more than 0.9 pi [rad]:", frame.angle_max);
            return;
        }
        int64_t row = 6 * (int64_t)e * rod->rule.order;
        for (int k = 0; k < rod->rule.point_count; k++) {
            rw_rod_element_strain strain;
            rw_rod_element_gradient gradient;
            rw_fe_rods_private_strain(self, rod, &frame, e, k, &strain, &gradient);
            const rw_fe_point* point =
                &self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k];
            point_law law = apply_law(rod, point, &strain, self->step->h);
            double length = self->lengths[rod->length_first + e];
            double size = rw_vec3_norm(law.force) + rw_vec3_norm(law.moment) / length;
            rod->stress = fmax(rod->stress, size / point->weight);
            add_element_force(right + row, rod->rule.node_count, &strain, &gradient, &law);
            add_element_stiffness(rod, band, row, &strain, &gradient, &law);
        }
    }
}

// ---- Holds -------------------------------------------------------------------------------------

// Where a hold wants its node: the attachment's frame on its body (trial pose) or in the world.
static void hold_target(const rw_fe_rods* self, const rw_fe_hold* hold, rw_vec3* position,
                        rw_quat* rotation) {
    const rw_step* step = self->step;
    int32_t body = self->model->attachments.items[hold->attachment].body;
    const rw_frame* frame = &step->drive_to->attachment_target[hold->attachment];
    *position = rw_vec3_load(frame->position);
    *rotation = rw_quat_load(frame->rotation);
    if (body >= 0) {
        rw_quat q = rw_quat_load(&step->to->body_rotation[4 * body]);
        rw_vec3 center = rw_vec3_load(&self->model->bodies.center_of_mass[3 * body]);
        *position = rw_vec3_add(rw_vec3_load(&step->to->body_position[3 * body]),
                                rw_quat_rotate(q, rw_vec3_sub(*position, center)));
        *rotation = rw_quat_mul(q, *rotation);
    }
}

// The increment that takes the node to its target.
static void hold_increment(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold,
                           double increment[6]) {
    const rw_state* to = self->step->to;
    int64_t i = rod->node_first + hold->node;
    rw_vec3 position;
    rw_quat rotation;
    hold_target(self, hold, &position, &rotation);
    rw_vec3_store(increment, rw_vec3_sub(position, rw_vec3_load(&to->node_position[3 * i])));
    rw_vec3 turn = rw_vec3_zero();
    if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
        turn = rw_so3_boxminus(rotation, rw_quat_load(&to->frame_rotation[4 * i]));
    }
    rw_vec3_store(increment + 3, turn);
}

static double band_entry(const rw_fe_rod* rod, const double* band, int64_t i, int64_t j) {
    if (i < j) {
        int64_t swap = i;
        i = j;
        j = swap;
    }
    return i - j > rod->half_band ? 0 : band[i * (rod->half_band + 1) + rod->half_band - (i - j)];
}

static bool is_held_row(const rw_fe_hold* hold, int k) {
    return k < 3 || (hold->rows & RW_FE_HELD_ROTATION) != 0;
}

// Keeps the columns of a node that a dynamic body holds, for `respond`.
static void save_columns(rw_fe_rods* self, const rw_fe_rod* rod, rw_fe_hold* hold) {
    const double* band = &self->band[rod->band_first];
    int64_t rows = 6 * (int64_t)rod->node_count, at = 6 * (int64_t)hold->node;
    double* columns = &self->columns[hold->column_first];
    for (int c = 0; c < 6; c++) {
        memset(&columns[c * rows], 0, (size_t)rows * sizeof *columns);
        for (int64_t i = at - rod->half_band; i <= at + 5 + rod->half_band; i++) {
            if (i >= 0 && i < rows && is_held_row(hold, c)) {
                columns[c * rows + i] = band_entry(rod, band, i, at + c);
            }
        }
    }
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            hold->own[6 * r + c] = band_entry(rod, band, at + r, at + c);
        }
        hold->residual[r] = -self->right[6 * ((int64_t)rod->node_first + hold->node) + r];
    }
}

// Replaces a held row and column by the identity and moves its known increment to the right.
static void eliminate(rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold) {
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int64_t rows = 6 * (int64_t)rod->node_count;
    int width = rod->half_band + 1;
    for (int k = 0; k < 6; k++) {
        if (!is_held_row(hold, k)) {
            continue;
        }
        int64_t c = 6 * (int64_t)hold->node + k;
        int64_t first = c > rod->half_band ? c - rod->half_band : 0;
        int64_t last = c + rod->half_band < rows - 1 ? c + rod->half_band : rows - 1;
        for (int64_t i = first; i <= last; i++) {
            double* entry = i >= c ? &band[i * width + rod->half_band - (i - c)]
                                   : &band[c * width + rod->half_band - (c - i)];
            if (i != c) {
                right[i] -= *entry * hold->increment[k];
            }
            *entry = i == c ? 1 : 0;
        }
    }
}

// A second pass over held rows: their solution is the increment itself.
static void prescribe(rw_fe_rods* self, const rw_fe_rod* rod) {
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        double* right = &self->right[6 * ((int64_t)rod->node_first + hold->node)];
        for (int r = 0; r < 6; r++) {
            if (is_held_row(hold, r)) {
                right[r] = hold->increment[r];
            }
        }
    }
}

// ---- Sweep -------------------------------------------------------------------------------------

static double norm_of(const double* values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
    }
    return sqrt(sum);
}

static void move_node(rw_state* to, int64_t i, const double increment[6]) {
    double* position = &to->node_position[3 * i];
    rw_vec3_store(position, rw_vec3_add(rw_vec3_load(position), rw_vec3_load(increment)));
    double* rotation = &to->frame_rotation[4 * i];
    rw_quat_store(rotation,
                  rw_so3_boxplus(rw_quat_load(rotation), rw_vec3_load(increment + 3)));
}

// Relative size of the residual of the free rows: against the forces that it is the balance of.
static double relative_residual(const rw_fe_rods* self, const rw_fe_rod* rod) {
    int64_t rows = 6 * (int64_t)rod->node_count;
    const double* right = &self->right[6 * (int64_t)rod->node_first];
    double held = 0, all = norm_of(right, rows);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        for (int r = 0; r < 6; r++) {
            if (is_held_row(hold, r)) {
                double value = right[6 * (int64_t)hold->node + r];
                held += value * value;
            }
        }
    }
    double free_sq = all * all - held;
    double size = free_sq > 0 ? sqrt(free_sq) : 0;
    double reference = rod->stress + sqrt(held);
    return reference > 0 ? size / reference : 0;
}

static void sweep_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    double tolerance = self->model->solver.xpbd.residual_tolerance;
    assemble(self, rod);
    if (rod->status != RW_STATUS_OK) {
        return;
    }
    rod->residual = relative_residual(self, rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        hold_increment(self, rod, hold, hold->increment);
        if (hold->body >= 0) {
            save_columns(self, rod, hold);
        }
    }
    // Without moving: the residual says that the trial is good enough already. A body may still move.
    bool is_still = self->iteration > 0 && tolerance > 0 && rod->residual <= tolerance;
    for (int32_t k = 0; k < rod->hold_count; k++) {
        eliminate(self, rod, &self->holds[rod->hold_first + k]);
        is_still = is_still && self->holds[rod->hold_first + k].body < 0;
    }
    if (is_still) {
        return;
    }
    prescribe(self, rod);
    int64_t rows = 6 * (int64_t)rod->node_count;
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int64_t bad = rw_block_banded_factor(rows, rod->half_band, band);
    if (bad != 0) {
        fault_rod(rod, "the matrix is not positive definite at row", (double)(bad - 1));
        return;
    }
    rw_block_banded_solve(rows, rod->half_band, band, right);
    for (int32_t n = 0; n < rod->node_count; n++) {
        move_node(self->step->to, rod->node_first + n, &right[6 * n]);
    }
}

rw_status rw_fe_rods_sweep(rw_fe_rods* self, rw_step* step, bool* done) {
    if (atomic_load_explicit(step->cancel, memory_order_relaxed)) {
        return RW_STATUS_CANCELLED;
    }
    RW_TRY(for_all_rods(self, step, "xpbd rod solve", sweep_rod));
    self->iteration++;
    const double tolerance = self->model->solver.xpbd.residual_tolerance;
    bool is_settled = tolerance > 0 && self->iteration > 1;
    for (int32_t r = 0; r < self->rod_count; r++) {
        is_settled = is_settled && self->rods[r].residual <= tolerance;
    }
    *done = is_settled || self->iteration >= (int32_t)self->model->solver.xpbd.iterations;
    return RW_STATUS_OK;
}

// ---- Bodies ------------------------------------------------------------------------------------

static int64_t rows_of(const rw_fe_rod* rod) { return 6 * (int64_t)rod->node_count; }

// W = A_ff^-1 A_fc for the columns of a node that a dynamic body holds. Held rows of A_fc are zero.
static void condense(rw_fe_rods* self, rw_fe_rod* rod) {
    int64_t rows = rows_of(rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        if (hold->body < 0) {
            continue;
        }
        const double* coupling = &self->columns[hold->column_first];
        double* solved = &self->columns[hold->column_first + 6 * rows];
        memcpy(solved, coupling, (size_t)(6 * rows) * sizeof *solved);
        for (int32_t m = 0; m < rod->hold_count; m++) {
            const rw_fe_hold* other = &self->holds[rod->hold_first + m];
            for (int c = 0; c < 6; c++) {
                for (int r = 0; r < 6; r++) {
                    if (is_held_row(other, r)) {
                        solved[c * rows + 6 * (int64_t)other->node + r] = 0;
                    }
                }
            }
        }
        for (int c = 0; c < 6; c++) {
            if (is_held_row(hold, c)) {
                rw_block_banded_solve(rows, rod->half_band, &self->band[rod->band_first],
                                      solved + c * rows);
            }
        }
    }
}

// Rows of A_fc' times the free increments: what they add to the held node's residual.
static double free_product(const rw_fe_rods* self, const rw_fe_rod* rod, const double* column,
                           const double* values) {
    double sum = 0;
    int32_t next = 0;
    for (int32_t n = 0; n < rod->node_count; n++) {
        unsigned held = 0;
        while (next < rod->hold_count && self->holds[rod->hold_first + next].node <= n) {
            if (self->holds[rod->hold_first + next].node == n) {
                held |= self->holds[rod->hold_first + next].rows;
            }
            next++;
        }
        for (int r = 0; r < 6; r++) {
            bool is_held = (held & (r < 3 ? RW_FE_HELD_POSITION : RW_FE_HELD_ROTATION)) != 0;
            if (!is_held) {
                sum += column[6 * n + r] * values[6 * n + r];
            }
        }
    }
    return sum;
}

// Map from a body's increment (world, at its centre of mass) to the node's: dp = dx + dtheta x arm,
// node-frame turn = R' dtheta.
typedef struct rigid_map {
    rw_vec3 arm;
    rw_mat3 turn; // node frame to world
} rigid_map;

static rigid_map map_of(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold) {
    const rw_state* to = self->step->to;
    int64_t i = rod->node_first + hold->node;
    return (rigid_map){
        rw_vec3_sub(rw_vec3_load(&to->node_position[3 * i]),
                    rw_vec3_load(&to->body_position[3 * hold->body])),
        rw_quat_to_mat3(rw_quat_load(&to->frame_rotation[4 * i])),
    };
}

// T as a 6x6 matrix (rows: node, columns: body).
static void fill_map(const rigid_map* map, double t[36]) {
    memset(t, 0, 36 * sizeof *t);
    rw_mat3 hat = rw_mat3_hat(map->arm);
    for (int r = 0; r < 3; r++) {
        t[7 * r] = 1;
        for (int c = 0; c < 3; c++) {
            t[6 * r + 3 + c] = -hat.m[r][c];
            t[6 * (r + 3) + 3 + c] = map->turn.m[c][r];
        }
    }
}

// out = a' m b, all 6x6.
static void congruence(const double a[36], const double m[36], const double b[36],
                       double out[36]) {
    double half[36];
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += m[6 * r + k] * b[6 * k + c];
            }
            half[6 * r + c] = sum;
        }
    }
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += a[6 * k + r] * half[6 * k + c];
            }
            out[6 * r + c] = sum;
        }
    }
}

// Condensed block of two holds of one rod: A_ab - A_fa' W_b over the free rows.
static void condensed_block(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* a,
                            const rw_fe_hold* b, double out[36]) {
    int64_t rows = rows_of(rod);
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double value = 0;
            if (is_held_row(a, r) && is_held_row(b, c)) {
                const double* column = &self->columns[a->column_first + r * rows];
                const double* solved =
                    &self->columns[b->column_first + 6 * rows + c * rows];
                value = a == b ? a->own[6 * r + c] : column[6 * (int64_t)b->node + c];
                value -= free_product(self, rod, column, solved);
            }
            out[6 * r + c] = value;
        }
    }
}

// Residual of a held node after the sweep, linearised: r + A_cc d_c + A_cf d_f.
static void held_residual(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold,
                          double out[6]) {
    int64_t rows = rows_of(rod);
    const double* moved = &self->right[6 * (int64_t)rod->node_first];
    for (int r = 0; r < 6; r++) {
        out[r] = 0;
        if (!is_held_row(hold, r)) {
            continue;
        }
        const double* column = &self->columns[hold->column_first + r * rows];
        out[r] = hold->residual[r] + free_product(self, rod, column, moved);
        for (int32_t k = 0; k < rod->hold_count; k++) {
            const rw_fe_hold* other = &self->holds[rod->hold_first + k];
            for (int c = 0; c < 6; c++) {
                if (is_held_row(other, c)) {
                    double entry = other == hold ? hold->own[6 * r + c]
                                                 : column[6 * (int64_t)other->node + c];
                    out[r] += entry * other->increment[c];
                }
            }
        }
    }
}

static void add_response(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold,
                         rw_body_response* response) {
    double t[36], block[36], mapped[36], residual[6];
    rigid_map map = map_of(self, rod, hold);
    fill_map(&map, t);
    held_residual(self, rod, hold, residual);
    rw_vec3 force = rw_vec3_neg(rw_vec3_load(residual));
    rw_vec3 moment = rw_vec3_neg(rw_mat3_apply(&map.turn, rw_vec3_load(residual + 3)));
    rw_vec3_store(response->force, rw_vec3_add(rw_vec3_load(response->force), force));
    rw_vec3_store(response->torque,
                  rw_vec3_add(rw_vec3_load(response->torque),
                              rw_vec3_add(moment, rw_vec3_cross(map.arm, force))));
    condensed_block(self, rod, hold, hold, block);
    congruence(t, block, t, mapped);
    double* entry = response->stiffness;
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c <= r; c++) {
            *entry++ += 0.5 * (mapped[6 * r + c] + mapped[6 * c + r]);
        }
    }
}

// Condensed coupling of two bodies on one rod. Two holds on one body add to its own stiffness.
static void add_pair(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* a,
                     const rw_fe_hold* b, rw_step* step) {
    double ta[36], tb[36], block[36], mapped[36];
    rigid_map map_a = map_of(self, rod, a), map_b = map_of(self, rod, b);
    fill_map(&map_a, ta);
    fill_map(&map_b, tb);
    condensed_block(self, rod, a, b, block);
    congruence(ta, block, tb, mapped);
    if (a->body == b->body) {
        double* entry = step->responses[a->body].stiffness;
        for (int r = 0; r < 6; r++) {
            for (int c = 0; c <= r; c++) {
                *entry++ += mapped[6 * r + c] + mapped[6 * c + r];
            }
        }
        return;
    }
    RW_ASSERT(step->pair_count < step->pair_capacity);
    rw_body_pair* pair = &step->pairs[step->pair_count++];
    pair->a = a->body;
    pair->b = b->body;
    memcpy(pair->stiffness, mapped, sizeof mapped);
}

rw_status rw_fe_rods_respond(rw_fe_rods* self, rw_step* step) {
    RW_TRY(for_all_rods(self, step, "xpbd rod response", condense));
    for (int32_t i = 0; i < self->model->bodies.count; i++) {
        bool active = step->responses[i].active;
        step->responses[i] = (rw_body_response){.active = active};
    }
    step->pair_count = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        const rw_fe_rod* rod = &self->rods[r];
        for (int32_t k = 0; k < rod->hold_count; k++) {
            const rw_fe_hold* a = &self->holds[rod->hold_first + k];
            if (a->body < 0) {
                continue;
            }
            add_response(self, rod, a, &step->responses[a->body]);
            for (int32_t m = k + 1; m < rod->hold_count; m++) {
                const rw_fe_hold* b = &self->holds[rod->hold_first + m];
                if (b->body >= 0) {
                    add_pair(self, rod, a, b, step);
                }
            }
        }
    }
    return RW_STATUS_OK;
}

int32_t rw_fe_rods_pair_count(const rw_fe_rods* self) {
    int64_t count = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        int64_t holds = self->rods[r].hold_count;
        count += holds * (holds - 1) / 2;
    }
    return (int32_t)count;
}

// ---- End ---------------------------------------------------------------------------------------

// Moves the free nodes with the bodies' last move, by the columns already solved.
static void follow_bodies(rw_fe_rods* self, rw_fe_rod* rod) {
    int64_t rows = rows_of(rod);
    double* right = &self->right[6 * (int64_t)rod->node_first];
    bool any = false;
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        hold_increment(self, rod, hold, hold->increment);
        any |= hold->body >= 0;
    }
    if (!any) {
        return;
    }
    memset(right, 0, (size_t)rows * sizeof *right);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        for (int c = 0; c < 6 && hold->body >= 0; c++) {
            const double* solved = &self->columns[hold->column_first + 6 * rows + c * rows];
            for (int64_t i = 0; i < rows && is_held_row(hold, c); i++) {
                right[i] -= solved[i] * hold->increment[c];
            }
        }
    }
    prescribe(self, rod);
    for (int32_t n = 0; n < rod->node_count; n++) {
        move_node(self->step->to, rod->node_first + n, &right[6 * n]);
    }
}

static void finish_velocities(rw_fe_rods* self, const rw_fe_rod* rod) {
    const rw_state* from = self->step->from;
    rw_state* to = self->step->to;
    double h = self->step->h;
    for (int32_t n = 0; n < rod->node_count; n++) {
        int64_t i = rod->node_first + n;
        rw_vec3 moved = rw_vec3_sub(rw_vec3_load(&to->node_position[3 * i]),
                                    rw_vec3_load(&from->node_position[3 * i]));
        rw_vec3_store(&to->node_velocity[3 * i], rw_vec3_scale(moved, 1 / h));
        // The inverse of the Cayley map that the prediction uses; beyond 2 rad a step the logarithm.
        rw_quat d = rw_quat_conj_mul(rw_quat_load(&from->frame_rotation[4 * i]),
                                     rw_quat_load(&to->frame_rotation[4 * i]));
        rw_vec3 turn = fabs(d.w) > 0.54 ? rw_vec3_scale(rw_quat_vector(d), 2 / d.w)
                                        : rw_so3_log(d);
        rw_vec3_store(&to->frame_angular_velocity[3 * i], rw_vec3_scale(turn, 1 / h));
    }
}

// The wrench that holds a node: its residual at the final state, with the node's own inertia,
// weight and loads.
static void finish_wrench(rw_fe_rods* self, rw_fe_rod* rod, const rw_fe_hold* hold) {
    double right[6 * RW_ROD_ELEMENT_NODES], diagonal[6], sum[6];
    int64_t i = rod->node_first + hold->node;
    node_terms(self, rod, i, sum, diagonal);
    int order = rod->rule.order;
    for (int32_t e = (hold->node - 1) / order; e <= hold->node / order; e++) {
        int local = hold->node - e * order;
        if (e < 0 || e >= rod->element_count || local < 0 || local > order) {
            continue;
        }
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, self->step->to, e, &frame);
        memset(right, 0, sizeof right);
        for (int k = 0; k < rod->rule.point_count; k++) {
            rw_rod_element_strain strain;
            rw_rod_element_gradient gradient;
            rw_fe_rods_private_strain(self, rod, &frame, e, k, &strain, &gradient);
            point_law law = apply_law(
                rod, &self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k],
                &strain, self->step->h);
            add_element_force(right, rod->rule.node_count, &strain, &gradient, &law);
        }
        for (int k = 0; k < 6; k++) {
            sum[k] += right[6 * local + k];
        }
    }
    // `sum` is minus the residual, i.e. what is missing for balance; the hold supplies its opposite.
    double* wrench = &self->attachment_wrench[6 * hold->attachment];
    rw_quat q = rw_quat_load(&self->step->to->frame_rotation[4 * i]);
    rw_vec3 moment = rw_vec3_zero();
    if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
        moment = rw_quat_rotate(q, rw_vec3_neg(rw_vec3_load(sum + 3)));
    }
    rw_vec3_store(wrench, rw_vec3_neg(rw_vec3_load(sum)));
    rw_vec3_store(wrench + 3, moment);
}

static void end_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    follow_bodies(self, rod);
    finish_velocities(self, rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        finish_wrench(self, rod, &self->holds[rod->hold_first + k]);
    }
}

rw_status rw_fe_rods_end(rw_fe_rods* self, rw_step* step) {
    return for_all_rods(self, step, "xpbd rod end", end_rod);
}
