// A small stand for the scr solver alone: a model and states built by hand, the world's stepping
// loop, and dynamic bodies moved by a Newton block of their own. Test code only.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/math/small_spd.h"
#include "solvers/math/so3.h"
#include "solvers/model/rods.h"
#include "solvers/scr/scr.h"
#include "tests/support/rw_test.h"

enum { SCR_RIG_RODS = 32, SCR_RIG_ATTACHMENTS = 64, SCR_RIG_BODIES = 4 };

typedef struct scr_rig {
    rw_alloc alloc;
    rw_model model;
    rw_rod rods[SCR_RIG_RODS];
    rw_attachment attachments[SCR_RIG_ATTACHMENTS];
    uint8_t body_kind[SCR_RIG_BODIES];
    double body_mass[SCR_RIG_BODIES];
    double body_inertia[SCR_RIG_BODIES]; // spherical
    double body_center[3 * SCR_RIG_BODIES];
    rw_state state[2]; // state[0] is the good one
    int64_t counts[RW_DOMAIN_COUNT];
    rw_frame targets[SCR_RIG_ATTACHMENTS];
    rw_drive drive;
    double *node_force, *node_torque;
    rw_body_response responses[SCR_RIG_BODIES];
    rw_parallel* parallel;
    atomic_bool cancel;
    rw_fault fault;
    rw_error error;
    const rw_solver_vtable* v;
    void* self;
    double time;
    int64_t step;
    int32_t sweeps; // of the last step
} scr_rig;

static inline void scr_rig_init(scr_rig* rig) {
    memset(rig, 0, sizeof *rig);
    rw_alloc_init(&rig->alloc, 0);
    rw_scene scene;
    rw_scene_init(&scene);
    rig->model.alloc = &rig->alloc;
    rig->model.solver = scene.solver;
    rig->model.solver.rods = RW_SOLVER_SCR;
    rig->model.rods.items = rig->rods;
    rig->model.attachments.items = rig->attachments;
    rig->model.bodies.kind = rig->body_kind;
    rig->model.bodies.mass = rig->body_mass;
    rig->model.bodies.center_of_mass = rig->body_center;
    rig->v = rw_scr_vtable();
    rig->drive.attachment_target = rig->targets;
    assert_int_equal(rig->v->create(&rig->model, &rig->alloc, RW_ROLE_RODS, &rig->self, NULL), 0);
}

static inline void scr_rig_grow(scr_rig* rig, rw_domain domain, int64_t more) {
    for (int k = 0; k < 2; k++)
        assert_int_equal(rw_field_reserve(rw_state_fields(), &rig->alloc, &rig->state[k], domain,
                                          rig->counts[domain], rig->counts[domain] + more),
                         0);
    rig->counts[domain] += more;
}

// Adds a rod; the description's arrays must outlive the rig. Returns its index.
static inline int32_t scr_rig_add_rod(scr_rig* rig, const rw_rod_desc* desc) {
    int32_t frames = 0, elements = 0, index = rig->model.rods.count;
    rw_status status = rig->v->admit_rod(rig->self, desc, &frames, &elements, &rig->error);
    assert_int_equal(status, 0);
    rw_rods_counts counts = rw_rods_count(desc);
    rw_rod* rod = &rig->rods[index];
    *rod = (rw_rod){.id = (rw_id)index + 1,
                    .desc = *desc,
                    .node_first = rig->model.rods.node_count,
                    .node_count = counts.node_count,
                    .frame_first = rig->model.rods.frame_count,
                    .frame_count = frames,
                    .element_count = elements};
    scr_rig_grow(rig, RW_DOMAIN_NODE, counts.node_count);
    scr_rig_grow(rig, RW_DOMAIN_FRAME, frames);
    double* rotations = calloc((size_t)counts.node_count, 4 * sizeof(double));
    double* positions = rig->state[0].node_position + 3 * (size_t)rod->node_first;
    status = rw_rods_create_geometry(desc, positions, rotations, &rig->error);
    if (status != RW_STATUS_OK)
        fail_msg("%s: %s", rig->error.path, rig->error.text);
    rig->v->init_frames(rig->self, rod, positions, rotations,
                        rig->state[0].frame_rotation + 4 * (size_t)rod->frame_first);
    free(rotations);
    rig->model.rods.count++;
    rig->model.rods.node_count += counts.node_count;
    rig->model.rods.frame_count += frames;
    free(rig->node_force);
    free(rig->node_torque);
    rig->node_force = calloc((size_t)rig->model.rods.node_count, 3 * sizeof(double));
    rig->node_torque = calloc((size_t)rig->model.rods.node_count, 3 * sizeof(double));
    return index;
}

// Adds a dynamic body with spherical inertia, or a static or kinematic one.
static inline int32_t scr_rig_add_body(scr_rig* rig, rw_body_kind kind, double mass, double inertia,
                                       rw_vec3 position) {
    int32_t index = rig->model.bodies.count++;
    rig->body_kind[index] = (uint8_t)kind;
    rig->body_mass[index] = mass;
    rig->body_inertia[index] = inertia;
    scr_rig_grow(rig, RW_DOMAIN_BODY, 1);
    rw_vec3_store(rig->state[0].body_position + 3 * (size_t)index, position);
    rig->state[0].body_rotation[4 * index] = 1.0;
    return index;
}

static inline void scr_rig_prepare(scr_rig* rig) {
    rw_status status = rig->v->prepare(rig->self, &rig->state[0], &rig->error);
    if (status != RW_STATUS_OK)
        fail_msg("prepare: %s: %s", rig->error.path, rig->error.text);
}

// Attaches a node where it is, to a body or (-1) the world; `rotation` may be NULL: as it is.
static inline int32_t scr_rig_attach(scr_rig* rig, rw_attachment_kind kind, int32_t rod,
                                     int32_t node, int32_t body, const double* rotation) {
    scr_rig_prepare(rig);
    int32_t index = rig->model.attachments.count;
    rw_attachment* a = &rig->attachments[index];
    *a = (rw_attachment){.id = (rw_id)index + 1, .rod = rod, .node = node, .body = body};
    a->desc.kind = kind;
    a->desc.has_rotation = rotation != NULL;
    const rw_state* state = &rig->state[0];
    rw_vec3 x = rw_vec3_load(state->node_position + 3 * (size_t)(rig->rods[rod].node_first + node));
    double q[4];
    rig->v->node_rotation(rig->self, state, rod, node, q);
    if (rotation != NULL)
        memcpy(q, rotation, sizeof q);
    if (body >= 0) {
        rw_quat turn = rw_quat_load(state->body_rotation + 4 * body);
        x = rw_quat_inverse_rotate(turn,
                                   rw_vec3_sub(x, rw_vec3_load(state->body_position + 3 * body)));
        x = rw_vec3_add(x, rw_vec3_load(rig->body_center + 3 * body));
        rw_quat_store(q, rw_quat_conj_mul(turn, rw_quat_load(q)));
    }
    rw_vec3_store(a->target.position, x);
    memcpy(a->target.rotation, q, sizeof q);
    rig->targets[index] = a->target;
    rig->model.attachments.count++;
    scr_rig_prepare(rig);
    return index;
}

static inline void scr_rig_predict_bodies(scr_rig* rig, rw_step* step, double* goal) {
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        rw_vec3 x = rw_vec3_load(step->from->body_position + 3 * b);
        rw_vec3 v = rw_vec3_load(step->from->body_linear_velocity + 3 * b);
        rw_vec3 w = rw_vec3_load(step->from->body_angular_velocity + 3 * b);
        rw_quat q = rw_quat_load(step->from->body_rotation + 4 * b);
        if (rig->body_kind[b] == RW_BODY_DYNAMIC)
            v = rw_vec3_add_scaled(v, step->h, rw_vec3_load(rig->drive.gravity));
        rw_vec3 y = rw_vec3_add_scaled(x, step->h, v);
        rw_vec3_store(step->to->body_position + 3 * b, y);
        rw_vec3_store(goal + 3 * b, y);
        rw_quat_store(step->to->body_rotation + 4 * b,
                      rw_so3_boxplus(q, rw_vec3_scale(w, step->h)));
    }
}

// One Newton block per body: (M/h^2 + K) d = M/h^2 (goal - x) + f, spherical inertia.
static inline void scr_rig_move_bodies(scr_rig* rig, rw_step* step, const double* goal) {
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        if (rig->body_kind[b] != RW_BODY_DYNAMIC)
            continue;
        double h2 = step->h * step->h, mass = rig->body_mass[b], inertia = rig->body_inertia[b];
        rw_quat q0 = rw_quat_load(step->from->body_rotation + 4 * b);
        rw_vec3 w = rw_vec3_load(step->from->body_angular_velocity + 3 * b);
        rw_quat goal_q = rw_so3_boxplus(q0, rw_vec3_scale(w, step->h));
        rw_quat q = rw_quat_load(step->to->body_rotation + 4 * b);
        rw_vec3 turn = rw_so3_log(rw_quat_mul(goal_q, rw_quat_conj(q)));
        double t[3] = {turn.x, turn.y, turn.z}, full[36] = {0}, rhs[6];
        for (int i = 0, k = 0; i < 6; i++)
            for (int j = 0; j <= i; j++, k++)
                full[6 * i + j] =
                    rig->responses[b].stiffness[k] + (i == j ? (i < 3 ? mass : inertia) / h2 : 0.0);
        for (int i = 0; i < 3; i++) {
            rhs[i] = mass / h2 * (goal[3 * b + i] - step->to->body_position[3 * b + i]) +
                     rig->responses[b].force[i];
            rhs[i + 3] = inertia / h2 * t[i] + rig->responses[b].torque[i];
        }
        assert_int_equal(rw_small_spd_factor(6, full, 0.0), 0);
        rw_small_spd_solve(6, full, rhs);
        for (int i = 0; i < 3; i++)
            step->to->body_position[3 * b + i] += rhs[i];
        rw_quat d = rw_so3_exp(rw_vec3_load(rhs + 3));
        rw_quat_store(step->to->body_rotation + 4 * b, rw_quat_normalize(rw_quat_mul(d, q)));
    }
}

static inline void scr_rig_end_bodies(scr_rig* rig, rw_step* step) {
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        rw_vec3 x = rw_vec3_load(step->from->body_position + 3 * b);
        rw_vec3 y = rw_vec3_load(step->to->body_position + 3 * b);
        rw_quat p = rw_quat_load(step->from->body_rotation + 4 * b);
        rw_quat q = rw_quat_load(step->to->body_rotation + 4 * b);
        rw_vec3_store(step->to->body_linear_velocity + 3 * b,
                      rw_vec3_scale(rw_vec3_sub(y, x), 1.0 / step->h));
        rw_vec3_store(step->to->body_angular_velocity + 3 * b,
                      rw_vec3_scale(rw_so3_log(rw_quat_conj_mul(p, q)), 1.0 / step->h));
    }
}

// Advances by h; the world's loop. Returns what the solver said.
static inline rw_status scr_rig_try_step(scr_rig* rig, double h) {
    double goal[3 * SCR_RIG_BODIES] = {0};
    rw_step step = {.model = &rig->model,
                    .from = &rig->state[0],
                    .to = &rig->state[1],
                    .time_s = rig->time,
                    .h = h,
                    .drive_from = &rig->drive,
                    .drive_to = &rig->drive,
                    .node_force = rig->node_force,
                    .node_torque = rig->node_torque,
                    .responses = rig->responses,
                    .parallel = rig->parallel,
                    .cancel = &rig->cancel,
                    .fault = &rig->fault};
    bool bodies = false;
    for (int32_t b = 0; b < rig->model.bodies.count; b++)
        bodies = bodies || rig->body_kind[b] == RW_BODY_DYNAMIC;
    scr_rig_predict_bodies(rig, &step, goal);
    RW_TRY(rig->v->begin(rig->self, &step));
    bool done = false;
    rig->sweeps = 0;
    while (!done) {
        RW_TRY(rig->v->sweep(rig->self, &step, &done));
        rig->sweeps++;
        if (bodies) {
            RW_TRY(rig->v->respond(rig->self, &step));
            scr_rig_move_bodies(rig, &step, goal);
        }
    }
    scr_rig_end_bodies(rig, &step);
    RW_TRY(rig->v->end(rig->self, &step));
    rw_state good = rig->state[0];
    rig->state[0] = rig->state[1];
    rig->state[1] = good;
    rig->time += h;
    rig->step++;
    return RW_STATUS_OK;
}

static inline void scr_rig_step(scr_rig* rig, double h) {
    rw_status status = scr_rig_try_step(rig, h);
    if (status != RW_STATUS_OK)
        fail_msg("step: %s %s: %s", rig->fault.object, rig->fault.stage, rig->fault.text);
}

static inline rw_vec3 scr_rig_node(const scr_rig* rig, int32_t rod, int32_t node) {
    int64_t row = rig->rods[rod].node_first + node;
    return rw_vec3_load(rig->state[0].node_position + 3 * row);
}

static inline rw_quat scr_rig_segment(const scr_rig* rig, int32_t rod, int32_t segment) {
    int64_t row = rig->rods[rod].frame_first + segment;
    return rw_quat_load(rig->state[0].frame_rotation + 4 * row);
}

// The nodes' kinetic energy, which the world counts.
static inline double scr_rig_kinetic(const scr_rig* rig) {
    double sum = 0.0;
    for (int32_t i = 0; i < rig->model.rods.node_count; i++)
        sum += 0.5 * rig->v->node_mass(rig->self, i) *
               rw_vec3_norm_sq(rw_vec3_load(rig->state[0].node_velocity + 3 * (size_t)i));
    return sum;
}

// Kinetic, elastic and gravity energy of the rods and bodies.
static inline double scr_rig_energy(const scr_rig* rig) {
    rw_energy part;
    rig->v->energy(rig->self, &rig->state[0], &part);
    double sum = part.kinetic + part.elastic + scr_rig_kinetic(rig);
    rw_vec3 g = rw_vec3_load(rig->drive.gravity);
    for (int32_t i = 0; i < rig->model.rods.node_count; i++)
        sum -= rig->v->node_mass(rig->self, i) *
               rw_vec3_dot(g, rw_vec3_load(rig->state[0].node_position + 3 * (size_t)i));
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        rw_vec3 v = rw_vec3_load(rig->state[0].body_linear_velocity + 3 * b);
        rw_vec3 w = rw_vec3_load(rig->state[0].body_angular_velocity + 3 * b);
        rw_vec3 x = rw_vec3_load(rig->state[0].body_position + 3 * b);
        sum += 0.5 * rig->body_mass[b] * rw_vec3_norm_sq(v) -
               rig->body_mass[b] * rw_vec3_dot(g, x) +
               0.5 * rig->body_inertia[b] * rw_vec3_norm_sq(w);
    }
    return sum;
}

static inline void scr_rig_finish(scr_rig* rig) {
    for (int k = 0; k < 2; k++)
        rw_field_release(rw_state_fields(), &rig->alloc, &rig->state[k]);
    rig->v->destroy(rig->self);
    free(rig->node_force);
    free(rig->node_torque);
    rw_alloc_finish(&rig->alloc);
}
