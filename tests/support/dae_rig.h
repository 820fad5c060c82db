// A mechanism on the dae solver without a world: builds a model from descriptions, steps it through
// the solver interface and reads its signals. Test code only.
#pragma once

#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "solvers/dae/dae.h"
#include "solvers/math/quat.h"
#include "solvers/math/so3.h"
#include "solvers/math/trig.h"

typedef struct dae_rig {
    rw_alloc alloc;
    rw_model model;
    rw_state from, to;
    rw_solver solver;
    rw_error error;
    rw_fault fault;
    double time_s;
    int64_t step;
} dae_rig;

static inline void dae_rig_open(dae_rig* rig, rw_integrator integrator, double time_step) {
    memset(rig, 0, sizeof *rig);
    rw_alloc_init(&rig->alloc, 0);
    rw_model_init(&rig->model, &rig->alloc);
    rw_scene scene;
    rw_scene_init(&scene);
    scene.time_step = time_step;
    scene.gravity[2] = -9.81;
    scene.solver.rigid = RW_SOLVER_DAE;
    scene.solver.dae.integrator = integrator;
    scene.solver.dae.stabilization = RW_STABILIZATION_PROJECTION;
    assert_int_equal(rw_model_set_options(&rig->model, &scene, &rig->error), RW_STATUS_OK);
}

static inline rw_body_desc dae_rig_body(const char* name, double mass, rw_vec3 inertia,
                                        rw_vec3 position, rw_quat rotation) {
    rw_body_desc d;
    rw_scene_init_body(&d);
    snprintf(d.name, sizeof d.name, "%s", name);
    d.mass = mass;
    d.inertia[0] = inertia.x;
    d.inertia[1] = inertia.y;
    d.inertia[2] = inertia.z;
    d.has_mass = d.has_inertia = true;
    rw_vec3_store(d.position, position);
    rw_quat_store(d.rotation, rotation);
    return d;
}

static inline void dae_rig_add_body(dae_rig* rig, const rw_body_desc* desc) {
    rw_id id;
    rw_status status = rw_model_add_body(&rig->model, desc, &id, &rig->error);
    if (status != RW_STATUS_OK)
        fail_msg("%s: %s", rig->error.path, rig->error.text);
}

// A joint at a world point with world axes of the joint frame, between bodies as they are placed.
static inline rw_joint_desc dae_rig_joint(const dae_rig* rig, const char* name, rw_joint_type type,
                                          const char* parent, const char* child, rw_vec3 at,
                                          rw_quat axes) {
    rw_joint_desc d;
    rw_scene_init_joint(&d);
    snprintf(d.name, sizeof d.name, "%s", name);
    snprintf(d.parent, sizeof d.parent, "%s", parent);
    snprintf(d.child, sizeof d.child, "%s", child);
    d.type = type;
    for (int end = 0; end < 2; end++) {
        const char* body = end ? child : parent;
        rw_frame* frame = end ? &d.child_frame : &d.parent_frame;
        rw_vec3 p = rw_vec3_zero();
        rw_quat q = rw_quat_identity();
        for (int32_t b = 0; b < rig->model.bodies.count; b++)
            if (!strcmp(rig->model.bodies.items[b].desc.name, body)) {
                p = rw_vec3_load(rig->model.bodies.items[b].desc.position);
                q = rw_quat_load(rig->model.bodies.items[b].desc.rotation);
            }
        rw_vec3_store(frame->position, rw_quat_inverse_rotate(q, rw_vec3_sub(at, p)));
        rw_quat_store(frame->rotation, rw_quat_normalize(rw_quat_conj_mul(q, axes)));
    }
    return d;
}

static inline void dae_rig_add_joint(dae_rig* rig, const rw_joint_desc* desc) {
    rw_id id;
    rw_status status = rw_model_add_joint(&rig->model, desc, &id, &rig->error);
    if (status != RW_STATUS_OK)
        fail_msg("%s: %s", rig->error.path, rig->error.text);
}

// Rotation that takes z to `axis`.
static inline rw_quat dae_rig_z_to(double x, double y, double z) {
    return rw_quat_between((rw_vec3){0, 0, 1}, (rw_vec3){x, y, z});
}

static inline void dae_rig_place(dae_rig* rig, rw_state* state) {
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        const rw_body_desc* d = &rig->model.bodies.items[b].desc;
        rw_quat q = rw_quat_load(d->rotation);
        rw_vec3 w = rw_vec3_load(d->angular_velocity);
        rw_vec3 c = rw_vec3_load(rig->model.bodies.center_of_mass + 3 * b);
        rw_vec3 arm = rw_quat_rotate(q, c), turn = rw_quat_rotate(q, rw_vec3_cross(w, c));
        rw_vec3_store(state->body_position + 3 * b,
                      rw_vec3_add(rw_vec3_load(d->position), arm));
        rw_quat_store(state->body_rotation + 4 * b, q);
        rw_vec3_store(state->body_linear_velocity + 3 * b,
                      rw_vec3_add(rw_vec3_load(d->linear_velocity), turn));
        rw_vec3_store(state->body_angular_velocity + 3 * b, w);
    }
}

static inline rw_status dae_rig_try_start(dae_rig* rig) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(rw_field_reserve(rw_state_fields(), &rig->alloc, i ? &rig->to : &rig->from,
                                          RW_DOMAIN_BODY, 0, rig->model.bodies.count + 1),
                         RW_STATUS_OK);
    dae_rig_place(rig, &rig->from);
    dae_rig_place(rig, &rig->to);
    rig->solver.vtable = rw_dae_vtable();
    const rw_solver_vtable* v = rig->solver.vtable;
    RW_TRY(v->create(&rig->model, &rig->alloc, RW_ROLE_RIGID, &rig->solver.self, &rig->error));
    RW_TRY(v->prepare(rig->solver.self, &rig->from, &rig->error));
    return v->assemble(rig->solver.self, &rig->from, &rig->error);
}

static inline void dae_rig_start(dae_rig* rig) {
    rw_status status = dae_rig_try_start(rig);
    if (status != RW_STATUS_OK)
        fail_msg("%s: %s", rig->error.path, rig->error.text);
}

static inline void dae_rig_close(dae_rig* rig) {
    if (rig->solver.self)
        rig->solver.vtable->destroy(rig->solver.self);
    rw_field_release(rw_state_fields(), &rig->alloc, &rig->from);
    rw_field_release(rw_state_fields(), &rig->alloc, &rig->to);
    rw_model_finish(&rig->model);
    rw_alloc_finish(&rig->alloc);
}

static inline rw_status dae_rig_try_step(dae_rig* rig) {
    rw_step step = {.model = &rig->model,
                    .from = &rig->from,
                    .to = &rig->to,
                    .time_s = rig->time_s,
                    .h = rig->model.time_step,
                    .fault = &rig->fault};
    rw_drive drive = {0};
    assert_int_equal(rw_drive_prepare(&drive, &rig->model), RW_STATUS_OK);
    rw_drive_evaluate(&drive, &rig->model, rig->time_s + step.h);
    step.drive_to = &drive;
    const rw_solver_vtable* v = rig->solver.vtable;
    int64_t counts[RW_DOMAIN_COUNT] = {[RW_DOMAIN_BODY] = rig->model.bodies.count};
    rw_field_copy(rw_state_fields(), &rig->to, &rig->from, counts);
    rw_status status = v->begin(rig->solver.self, &step);
    for (bool done = false; !done && status == RW_STATUS_OK;)
        status = v->sweep(rig->solver.self, &step, &done);
    rw_drive_finish(&drive, &rig->alloc);
    RW_TRY(status);
    RW_TRY(v->end(rig->solver.self, &step));
    rw_state swap = rig->from;
    rig->from = rig->to;
    rig->to = swap;
    rig->step++;
    rig->time_s = (double)rig->step * rig->model.time_step;
    return RW_STATUS_OK;
}

static inline void dae_rig_run(dae_rig* rig, double until) {
    int64_t steps = (int64_t)floor(until / rig->model.time_step + 0.5);
    while (rig->step < steps)
        if (dae_rig_try_step(rig) != RW_STATUS_OK)
            fail_msg("step %d: %s, %s: %s", (int)rig->step, rig->fault.object, rig->fault.stage,
                     rig->fault.text);
}

static inline int32_t dae_rig_find(const dae_rig* rig, rw_kind kind, const char* name) {
    int32_t index;
    rw_error error;
    assert_int_equal(rw_model_find(&rig->model, kind, RW_ID_NONE, name, &index, &error),
                     RW_STATUS_OK);
    return index;
}

static inline double dae_rig_coordinate(dae_rig* rig, const char* joint, int k) {
    double values[4];
    rig->solver.vtable->joint_coordinate(rig->solver.self, &rig->from,
                                         dae_rig_find(rig, RW_KIND_JOINT, joint), values);
    return values[k];
}

static inline double dae_rig_rate(dae_rig* rig, const char* joint, int k) {
    double values[3];
    rig->solver.vtable->joint_rate(rig->solver.self, &rig->from,
                                   dae_rig_find(rig, RW_KIND_JOINT, joint), values);
    return values[k];
}

static inline void dae_rig_reaction(dae_rig* rig, const char* joint, double wrench[6]) {
    assert_int_equal(rig->solver.vtable->evaluate(rig->solver.self, &rig->from, rig->time_s),
                     RW_STATUS_OK);
    rig->solver.vtable->joint_reaction(rig->solver.self, dae_rig_find(rig, RW_KIND_JOINT, joint),
                                       wrench);
}

// Largest violation of any joint: translational in [0], rotational in [1].
static inline void dae_rig_violation(dae_rig* rig, double worst[2]) {
    worst[0] = worst[1] = 0.0;
    for (int32_t k = 0; k < rig->model.joints.count; k++) {
        double v[2];
        rig->solver.vtable->joint_violation(rig->solver.self, &rig->from, k, v);
        worst[0] = fmax(worst[0], v[0]);
        worst[1] = fmax(worst[1], v[1]);
    }
}

static inline rw_vec3 dae_rig_position(const dae_rig* rig, const char* body) {
    return rw_vec3_load(rig->from.body_position + 3 * dae_rig_find(rig, RW_KIND_BODY, body));
}
static inline rw_quat dae_rig_rotation(const dae_rig* rig, const char* body) {
    return rw_quat_load(rig->from.body_rotation + 4 * dae_rig_find(rig, RW_KIND_BODY, body));
}
static inline rw_vec3 dae_rig_velocity(const dae_rig* rig, const char* body) {
    return rw_vec3_load(rig->from.body_linear_velocity + 3 * dae_rig_find(rig, RW_KIND_BODY, body));
}
static inline rw_vec3 dae_rig_omega(const dae_rig* rig, const char* body) {
    return rw_vec3_load(rig->from.body_angular_velocity +
                        3 * dae_rig_find(rig, RW_KIND_BODY, body));
}

// Kinetic energy and that of gravity.
static inline double dae_rig_energy(dae_rig* rig) {
    rw_energy energy;
    rig->solver.vtable->energy(rig->solver.self, &rig->from, &energy);
    double sum = energy.elastic;
    for (int32_t b = 0; b < rig->model.bodies.count; b++) {
        rw_mat3 inertia = rw_mat3_symmetric(rig->model.bodies.inertia + 6 * b);
        rw_vec3 v = rw_vec3_load(rig->from.body_linear_velocity + 3 * b);
        rw_vec3 w = rw_vec3_load(rig->from.body_angular_velocity + 3 * b);
        sum += 0.5 * (rig->model.bodies.mass[b] * rw_vec3_norm_sq(v) +
                      rw_vec3_dot(w, rw_mat3_apply(&inertia, w)));
        for (int k = 0; k < 3; k++)
            sum -= rig->model.bodies.mass[b] * rig->model.gravity[k] *
                   rig->from.body_position[3 * b + k];
    }
    return sum;
}
