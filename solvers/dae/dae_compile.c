#include "solvers/dae/dae_compile.h"

#include <math.h>
#include <string.h>

#include "solvers/dae/dae_effort.h"

// The Tikhonov term, as a fraction of the mean diagonal of C = J M^-1 J' of a joint: of its point
// rows, and of its rotational rows, so that the metric of redundant reactions does not depend on
// axes. Two refinements take its bias away down to (1e-8 / s)^3 for a row of relative size s, while
// rounding reaches 1e-16 / 1e-8 of the reactions.
#define REGULARISATION 1e-8
#define STOP_FREQUENCY_TIMES_STEP 0.2

typedef struct graph_builder {
    int32_t* first;
    int32_t* bodies;
    int8_t* rows;
    bool *on_world, *is_joint;
    int32_t count;
} graph_builder;

static void* array(rw_dae_system* s, int64_t count, size_t item) {
    return rw_arena_array(&s->arena, (size_t)count + 1, item);
}

static rw_vec3 center_of(const rw_model* model, int32_t body) {
    return body < 0 ? rw_vec3_zero() : rw_vec3_load(model->bodies.center_of_mass + 3 * body);
}

static rw_status compile_bodies(rw_dae_system* s) {
    const rw_bodies* bodies = &s->model->bodies;
    int32_t n = s->body_count;
    s->dynamic_of = array(s, n + 1, sizeof *s->dynamic_of);
    s->body_of = array(s, n, sizeof *s->body_of);
    if (!s->dynamic_of || !s->body_of)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    s->dynamic_of[n] = -1; // the world
    for (int32_t b = 0; b < n; b++) {
        s->dynamic_of[b] = -1;
        s->has_kinematic |= bodies->kind[b] == RW_BODY_KINEMATIC;
        if (bodies->kind[b] == RW_BODY_DYNAMIC) {
            s->dynamic_of[b] = s->dynamic_count;
            s->body_of[s->dynamic_count++] = b;
        }
    }
    int64_t d = s->dynamic_count;
    s->pose = array(s, n + 1, sizeof *s->pose);
    s->known = array(s, 6 * ((int64_t)n + 1), sizeof(double));
    s->inertia = array(s, d, sizeof *s->inertia);
    s->force = array(s, 3 * (int64_t)n, sizeof(double));
    s->torque = array(s, 3 * (int64_t)n, sizeof(double));
    s->body = array(s, 6 * d, sizeof(double));
    s->factored_pose = array(s, 12 * (int64_t)n, sizeof(double));
    s->scratch.body_position = array(s, 3 * (int64_t)n, sizeof(double));
    s->scratch.body_rotation = array(s, 4 * (int64_t)n, sizeof(double));
    s->scratch.body_linear_velocity = array(s, 3 * (int64_t)n, sizeof(double));
    s->scratch.body_angular_velocity = array(s, 3 * (int64_t)n, sizeof(double));
    if (!s->pose || !s->known || !s->inertia || !s->force || !s->torque || !s->body ||
        !s->factored_pose || !s->scratch.body_position || !s->scratch.body_rotation ||
        !s->scratch.body_linear_velocity || !s->scratch.body_angular_velocity)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    s->pose[n].rotation = rw_mat3_identity();
    return RW_STATUS_OK;
}

// The dynamic bodies among `ends`, each once; a slot per end (-1: fixed or driven).
static void add_constraint(rw_dae_system* s, graph_builder* g, int rows, bool is_joint,
                           const int32_t* ends, int32_t end_count, int32_t* slots) {
    int32_t k = g->count, at = g->first[k], start = at;
    for (int32_t i = 0; i < end_count; i++) {
        int32_t d = ends[i] < 0 ? -1 : s->dynamic_of[ends[i]];
        slots[i] = -1;
        if (d < 0) {
            g->on_world[k] = true;
            continue;
        }
        for (int32_t t = start; t < at; t++)
            if (g->bodies[t] == d)
                slots[i] = t;
        if (slots[i] < 0) {
            slots[i] = at;
            g->bodies[at++] = d;
        }
    }
    g->rows[k] = (int8_t)rows;
    g->is_joint[k] = is_joint;
    g->first[k + 1] = at;
    g->count++;
}

static rw_status compile_joints(rw_dae_system* s, graph_builder* g) {
    const rw_joints* joints = &s->model->joints;
    int64_t n = joints->count;
    s->joint_count = joints->count;
    s->joints = array(s, n, sizeof *s->joints);
    s->joint_constraint = array(s, n, sizeof *s->joint_constraint);
    s->joint_slot = array(s, n, sizeof *s->joint_slot);
    s->frames = array(s, n, sizeof *s->frames);
    s->rows = array(s, 6 * n, sizeof *s->rows);
    s->rates = array(s, 3 * n, sizeof *s->rates);
    s->effort = array(s, joints->rate_count, sizeof(double));
    s->stop = array(s, joints->rate_count, sizeof(double));
    s->stiffness = array(s, joints->rate_count, sizeof(double));
    s->damping = array(s, joints->rate_count, sizeof(double));
    s->extra_effort = array(s, joints->rate_count, sizeof(double));
    if (!s->joints || !s->joint_constraint || !s->joint_slot || !s->frames || !s->rows ||
        !s->rates || !s->effort || !s->stop || !s->stiffness || !s->damping ||
        !s->extra_effort)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t k = 0; k < n; k++) {
        const rw_joint* from = &joints->items[k];
        rw_joint_geometry* joint = &s->joints[k];
        rw_joint_geometry_init(joint, &from->desc, from->parent, from->child,
                          center_of(s->model, from->parent), center_of(s->model, from->child));
        if (joint->child < 0)
            joint->child = s->body_count; // the world, as one more body that stands still
        int32_t ends[2] = {joint->parent, joint->child};
        s->joint_constraint[k] = -1;
        bool moves = s->dynamic_of[joint->child] >= 0 ||
                     (joint->parent >= 0 && s->dynamic_of[joint->parent] >= 0);
        s->joint_slot[k][0] = s->joint_slot[k][1] = -1;
        if (!moves)
            continue;
        s->joint_constraint[k] = g->count;
        add_constraint(s, g, joint->row_count, true, ends, 2, s->joint_slot[k]);
    }
    return RW_STATUS_OK;
}

static rw_status compile_couplings(rw_dae_system* s, graph_builder* g) {
    const rw_joint_couplings* couplings = &s->model->couplings;
    s->coupling_count = couplings->count;
    s->coupling_constraint = array(s, couplings->count, sizeof *s->coupling_constraint);
    s->coupling_slot = array(s, couplings->count, sizeof *s->coupling_slot);
    if (!s->coupling_constraint || !s->coupling_slot)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t k = 0; k < couplings->count; k++) {
        const rw_joint_geometry* a = &s->joints[couplings->items[k].joint_a];
        const rw_joint_geometry* b = &s->joints[couplings->items[k].joint_b];
        int32_t ends[4] = {a->parent, a->child, b->parent, b->child};
        s->coupling_constraint[k] = g->count;
        add_constraint(s, g, 1, false, ends, 4, s->coupling_slot[k]);
        if (g->first[g->count] == g->first[g->count - 1]) {
            g->count--; // no end can move
            g->on_world[g->count] = false;
            s->coupling_constraint[k] = -1;
        }
    }
    return RW_STATUS_OK;
}

// Mean over the three axes of the inverse mass that a point or rotational row meets at one body.
static void row_admittance(const rw_dae_system* s, int32_t body, rw_vec3 anchor, double* point,
                           double* turn) {
    if (body < 0 || s->dynamic_of[body] < 0)
        return;
    const rw_bodies* bodies = &s->model->bodies;
    rw_mat3 inverse = rw_mat3_symmetric(bodies->inverse_inertia + 6 * body);
    rw_mat3 u = rw_mat3_hat(anchor);
    rw_mat3 lever = rw_mat3_mul_transpose(rw_mat3_mul(u, inverse), u);
    *point += bodies->inverse_mass[body] + rw_mat3_trace(&lever) / 3.0;
    *turn += rw_mat3_trace(&inverse) / 3.0;
}

// Only constraints in loops get a regularisation: a tree is exact without.
static void set_regularisation(rw_dae_system* s) {
    for (int32_t k = 0; k < s->joint_count; k++) {
        int32_t c = s->joint_constraint[k];
        if (c < 0 || !rw_kkt_in_loop(s->kkt, c))
            continue;
        const rw_joint_geometry* joint = &s->joints[k];
        double point = 0.0, turn = 0.0;
        row_admittance(s, joint->parent, joint->parent_anchor, &point, &turn);
        row_admittance(s, joint->child, joint->child_anchor, &point, &turn);
        double* r = s->regularisation + rw_kkt_row_first(s->kkt, c);
        for (int32_t i = 0; i < joint->row_count; i++)
            r[i] = REGULARISATION * (i < joint->translation_count ? point : turn);
        s->has_regularisation = true;
    }
    for (int32_t k = 0; k < s->coupling_count; k++) {
        int32_t c = s->coupling_constraint[k];
        if (c < 0)
            continue;
        double turn = 0.0, point = 0.0;
        const rw_joint_coupling* from = &s->model->couplings.items[k];
        const rw_joint_geometry* ends[2] = {&s->joints[from->joint_a], &s->joints[from->joint_b]};
        for (int i = 0; i < 2; i++) {
            row_admittance(s, ends[i]->parent, ends[i]->parent_anchor, &point, &turn);
            row_admittance(s, ends[i]->child, ends[i]->child_anchor, &point, &turn);
        }
        s->regularisation[rw_kkt_row_first(s->kkt, c)] = REGULARISATION * fmin(turn, point);
        s->has_regularisation = true;
    }
}

void rw_dae_compile_parameters(rw_dae_system* s) {
    const rw_model* model = s->model;
    s->has_regularisation = false;
    set_regularisation(s);
    double step = model->time_step / (model->substeps ? model->substeps : 1);
    s->stop_frequency = STOP_FREQUENCY_TIMES_STEP / step;
    s->stabilization_alpha = s->stabilization_beta = 0.0;
    if (model->solver.dae.stabilization == RW_STABILIZATION_BAUMGARTE) {
        const double critical = 0.1 / step;
        s->stabilization_alpha = model->solver.dae.has_baumgarte_alpha
                                     ? model->solver.dae.baumgarte_alpha
                                     : critical;
        s->stabilization_beta = model->solver.dae.has_baumgarte_beta
                                    ? model->solver.dae.baumgarte_beta
                                    : critical;
    }
    s->has_forces = model->forces.count > 0;
    s->has_efforts = rw_dae_effort_any(model) || model->couplings.count > 0;
    s->has_soft = false;
    for (int32_t k = 0; k < model->joints.count; k++)
        s->has_soft |= model->joints.items[k].desc.compliance > 0.0;
    for (int32_t k = 0; k < model->couplings.count; k++)
        s->has_soft |= model->couplings.items[k].desc.compliance > 0.0;
    s->is_factored = false;
}

rw_status rw_dae_compile_system(rw_dae_system* s, rw_alloc* alloc) {
    const rw_model* model = s->model;
    int64_t most = (int64_t)model->joints.count + model->couplings.count + 1;
    RW_TRY(compile_bodies(s));
    graph_builder g = {.first = array(s, most, sizeof *g.first),
                       .bodies = array(s, 4 * most, sizeof *g.bodies),
                       .rows = array(s, most, sizeof *g.rows),
                       .on_world = array(s, most, sizeof *g.on_world),
                       .is_joint = array(s, most, sizeof *g.is_joint)};
    if (!g.first || !g.bodies || !g.rows || !g.on_world || !g.is_joint)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    RW_TRY(compile_joints(s, &g));
    RW_TRY(compile_couplings(s, &g));
    s->graph = (rw_kkt_graph){s->dynamic_count, g.count, g.first, g.bodies, g.rows, g.on_world,
                              g.is_joint};
    RW_TRY(rw_kkt_create(alloc, &s->graph, &s->kkt));
    s->row_count = rw_kkt_row_count(s->kkt);
    s->regularisation = array(s, s->row_count, sizeof(double));
    s->row = array(s, s->row_count, sizeof(double));
    s->probe_body = array(s, 6 * (int64_t)s->dynamic_count, sizeof(double));
    s->probe_row = array(s, s->row_count, sizeof(double));
    if (!s->regularisation || !s->row || !s->probe_body || !s->probe_row)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    rw_dae_compile_parameters(s);
    return rw_drive_prepare(&s->drive, model);
}
