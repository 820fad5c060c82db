#include "solvers/world/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/math/vec3.h"
#include "solvers/model/forces.h"
#include "solvers/model/kinematics.h"
#include "solvers/model/rods.h"
#include "solvers/model/validate.h"
#include "solvers/dae/dae.h"
#include "solvers/scr/scr.h"
#include "solvers/world/world_private.h"
#include "solvers/xpbd/xpbd.h"

// ---- Life --------------------------------------------------------------------------------------

static const rw_solver_vtable* vtable_of(rw_solver_kind kind) {
    switch (kind) {
    case RW_SOLVER_XPBD:
        return rw_xpbd_vtable();
    case RW_SOLVER_SCR:
        return rw_scr_vtable();
    case RW_SOLVER_DAE:
        return rw_dae_vtable();
    }
    return NULL;
}

static void destroy_solvers(rw_world_solvers* solvers) {
    if (solvers->rods.vtable != NULL) {
        solvers->rods.vtable->destroy(solvers->rods.self);
    }
    if (solvers->rigid.vtable != NULL) {
        solvers->rigid.vtable->destroy(solvers->rigid.self);
    }
    *solvers = (rw_world_solvers){0};
}

rw_status rw_world_private_make_solvers(rw_world* world, rw_error* error) {
    const rw_solver_options* options = &world->model.solver;
    const rw_solver_vtable* rigid = vtable_of(options->rigid);
    const rw_solver_vtable* rods = vtable_of(options->rods);
    if (rigid == NULL || (rigid->roles & RW_ROLE_RIGID) == 0) {
        RW_FAIL(error, UNIMPLEMENTED, "solver.rigid", "this solver is not served yet");
    }
    if (rods == NULL || (rods->roles & RW_ROLE_RODS) == 0) {
        RW_FAIL(error, UNIMPLEMENTED, "solver.rods", "this solver is not served yet");
    }
    rw_world_solvers made = {0};
    void* self;
    RW_TRY(rigid->create(&world->model, world->alloc, RW_ROLE_RIGID, &self, error));
    made.rigid = (rw_solver){rigid, self};
    rw_status status = rods->create(&world->model, world->alloc, RW_ROLE_RODS, &self, error);
    if (status != RW_STATUS_OK) {
        destroy_solvers(&made);
        return status;
    }
    made.rods = (rw_solver){rods, self};
    destroy_solvers(&world->solvers);
    world->solvers = made;
    return RW_STATUS_OK;
}

rw_world* rw_world_private_new(const rw_world_config* config, rw_error* error) {
    rw_world* world = rw_alloc_get(config->alloc, sizeof *world);
    if (world == NULL) {
        rw_status_fail(error, RW_STATUS_RESOURCE_EXHAUSTED, "", "no memory for a world");
        return NULL;
    }
    world->alloc = config->alloc;
    world->parallel = config->parallel;
    world->cancel = config->cancel;
    world->epoch = 1;
    world->prepared_topology = UINT64_MAX;
    rw_model_init(&world->model, world->alloc);
    for (int i = 0; i < 2; i++) {
        rw_buffer_init(&world->undo[i], world->alloc);
    }
    return world;
}

rw_status rw_world_create(const rw_world_config* config, rw_world** world, rw_error* error) {
    rw_world* made = rw_world_private_new(config, error);
    if (made == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_status status = rw_world_private_make_solvers(made, error);
    if (status != RW_STATUS_OK) {
        rw_world_destroy(made);
        return status;
    }
    *world = made;
    return RW_STATUS_OK;
}

void rw_world_destroy(rw_world* world) {
    if (world == NULL) {
        return;
    }
    destroy_solvers(&world->solvers);
    for (int i = 0; i < 3; i++) {
        rw_field_release(rw_state_fields(), world->alloc, &world->state[i]);
    }
    for (int i = 0; i < 2; i++) {
        rw_buffer_finish(&world->undo[i]);
        rw_drive_finish(&world->drive[i], world->alloc);
    }
    rw_alloc_free(world->alloc, world->node_is_held);
    rw_alloc_free(world->alloc, world->body_force);
    rw_alloc_free(world->alloc, world->body_torque);
    rw_alloc_free(world->alloc, world->node_force);
    rw_alloc_free(world->alloc, world->node_torque);
    rw_alloc_free(world->alloc, world->responses);
    rw_alloc_free(world->alloc, world->pairs);
    rw_model_finish(&world->model);
    rw_alloc_free(world->alloc, world);
}

// Creates every object of one kind of a scene, with the path of the culprit on failure.
#define CREATE_ALL(world, scene, list, count, create, error)                                       \
    for (size_t i_ = 0; i_ < (scene)->count; i_++) {                                               \
        rw_id id_;                                                                                 \
        rw_status status_ = create((world), &(scene)->list[i_], &id_, (error));                    \
        if (status_ != RW_STATUS_OK) {                                                             \
            if ((error) != NULL) {                                                                 \
                rw_status_prefix((error), #list "[%zu]", i_);                                      \
            }                                                                                      \
            return status_;                                                                        \
        }                                                                                          \
    }

static rw_status fill_from_scene(rw_world* world, const rw_scene* scene, rw_error* error) {
    rw_model* model = &world->model;
    RW_TRY(rw_model_set_options(model, scene, error));
    RW_TRY(rw_world_private_make_solvers(world, error));
    const size_t counts[RW_KIND_COUNT] = {
        [RW_KIND_BODY] = scene->body_count,          [RW_KIND_JOINT] = scene->joint_count,
        [RW_KIND_COUPLING] = scene->coupling_count,  [RW_KIND_ROD] = scene->rod_count,
        [RW_KIND_ATTACHMENT] = scene->attachment_count, [RW_KIND_FORCE] = scene->force_count,
        [RW_KIND_INPUT] = scene->input_count,
    };
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        if (counts[kind] > INT32_MAX / 4 ||
            rw_model_reserve(model, (rw_kind)kind, (int32_t)counts[kind]) != RW_STATUS_OK) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %zu objects of kind %s",
                    counts[kind], rw_model_kind_name((rw_kind)kind));
        }
    }
    CREATE_ALL(world, scene, bodies, body_count, rw_world_create_body, error);
    CREATE_ALL(world, scene, joints, joint_count, rw_world_create_joint, error);
    CREATE_ALL(world, scene, couplings, coupling_count, rw_world_create_coupling, error);
    CREATE_ALL(world, scene, rods, rod_count, rw_world_create_rod, error);
    CREATE_ALL(world, scene, attachments, attachment_count, rw_world_create_attachment, error);
    CREATE_ALL(world, scene, forces, force_count, rw_world_create_force, error);
    CREATE_ALL(world, scene, inputs, input_count, rw_world_create_input, error);
    world->epoch = 1;
    RW_TRY(rw_world_prepare(world, error));
    // The first row that a client reads is the motion at time 0, inputs included.
    rw_drive_evaluate(&world->drive[0], model, 0);
    rw_kinematics_follow(model, &world->drive[0], &world->state[world->good]);
    return rw_world_private_assemble(world, error);
}

rw_status rw_world_create_from_scene(const rw_world_config* config, const rw_scene* scene,
                                     rw_world** world, rw_error* error) {
    rw_world* made = rw_world_private_new(config, error);
    if (made == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_status status = fill_from_scene(made, scene, error);
    if (status != RW_STATUS_OK) {
        rw_world_destroy(made);
        return status;
    }
    *world = made;
    return RW_STATUS_OK;
}

rw_status rw_world_describe(const rw_world* world, rw_arena* arena, rw_scene* scene,
                            rw_error* error) {
    return rw_model_describe(&world->model, arena, scene, error);
}

// ---- Rows of the state -------------------------------------------------------------------------

rw_status rw_world_private_reserve_rows(rw_world* world, rw_domain domain, int64_t count,
                                        rw_error* error) {
    int64_t needed = world->counts[domain] + count;
    if (needed > INT32_MAX / 16) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "more than %d rows in a world", INT32_MAX / 16);
    }
    if (needed <= world->capacity[domain]) {
        return RW_STATUS_OK;
    }
    int64_t capacity = world->capacity[domain] * 3 / 2;
    capacity = capacity < needed ? needed : capacity;
    for (int i = 0; i < 3; i++) {
        if (i == 2 && world->model.substeps < 2) {
            continue; // the third is made when substeps ask for it
        }
        if (rw_field_reserve(rw_state_fields(), world->alloc, &world->state[i], domain,
                             world->counts[domain], capacity) != RW_STATUS_OK) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %lld rows of state",
                    (long long)needed);
        }
    }
    world->capacity[domain] = capacity;
    return RW_STATUS_OK;
}

static void topology_changed(rw_world* world) { world->epoch++; }

// ---- Create ------------------------------------------------------------------------------------

rw_status rw_world_create_body(rw_world* world, const rw_body_desc* desc, rw_id* id,
                               rw_error* error) {
    RW_TRY(rw_world_private_reserve_rows(world, RW_DOMAIN_BODY, 1, error));
    RW_TRY(rw_model_add_body(&world->model, desc, id, error));
    int32_t index = world->model.bodies.count - 1;
    const rw_body_desc* kept = &world->model.bodies.items[index].desc;
    rw_kinematics_place(&world->model, index, kept->position, kept->rotation,
                        kept->linear_velocity, kept->angular_velocity,
                        &world->state[world->good]);
    world->counts[RW_DOMAIN_BODY]++;
    topology_changed(world);
    return RW_STATUS_OK;
}

rw_status rw_world_create_joint(rw_world* world, const rw_joint_desc* desc, rw_id* id,
                                rw_error* error) {
    RW_TRY(rw_model_add_joint(&world->model, desc, id, error));
    const rw_solver* rigid = &world->solvers.rigid;
    rw_status status = rigid->vtable->admit_joint(rigid->self, desc, error);
    if (status != RW_STATUS_OK) {
        rw_model_remove_last(&world->model, RW_KIND_JOINT);
        return status;
    }
    world->needs_assembly = true;
    topology_changed(world);
    return RW_STATUS_OK;
}

rw_status rw_world_create_coupling(rw_world* world, const rw_coupling_desc* desc, rw_id* id,
                                   rw_error* error) {
    RW_TRY(rw_model_add_coupling(&world->model, desc, id, error));
    world->needs_assembly = true;
    topology_changed(world);
    return RW_STATUS_OK;
}

// Fills rows of three with one row for all, a row each, or zeros.
static void fill_rows(double* rows, int64_t count, rw_doubles values) {
    for (int64_t i = 0; i < 3 * count; i++) {
        rows[i] = values.count == 3 ? values.data[i % 3] : values.count > 0 ? values.data[i] : 0;
    }
}

// Rows and initial motion of the newest rod.
static rw_status place_rod(rw_world* world, rw_error* error) {
    rw_model* model = &world->model;
    int32_t index = model->rods.count - 1;
    rw_rod* rod = &model->rods.items[index];
    const rw_solver* solver = &world->solvers.rods;
    int32_t frame_count = 0, element_count = 0;
    RW_TRY(solver->vtable->admit_rod(solver->self, &rod->desc, &frame_count, &element_count,
                                     error));
    rw_model_set_rod_layout(model, index, frame_count, element_count);
    RW_TRY(rw_world_private_reserve_rows(world, RW_DOMAIN_NODE, rod->node_count, error));
    RW_TRY(rw_world_private_reserve_rows(world, RW_DOMAIN_FRAME, frame_count, error));

    rw_arena arena;
    rw_arena_init(&arena, world->alloc);
    rw_rods_geometry geometry;
    rw_status status = rw_rods_build(&rod->desc, &arena, &geometry, error);
    if (status == RW_STATUS_OK) {
        rw_state* state = &world->state[world->good];
        memcpy(&state->node_position[3 * (int64_t)rod->node_first], geometry.position,
               (size_t)rod->node_count * 3 * sizeof(double));
        fill_rows(&state->node_velocity[3 * (int64_t)rod->node_first], rod->node_count,
                  rod->desc.linear_velocity);
        // Frames at nodes spin as given; a solver with frames on segments has none that spin.
        bool has_spin = frame_count == rod->node_count;
        fill_rows(&state->frame_angular_velocity[3 * (int64_t)rod->frame_first], frame_count,
                  has_spin ? rod->desc.angular_velocity : (rw_doubles){0});
        solver->vtable->init_frames(solver->self, rod, geometry.position, geometry.rotation,
                                    &state->frame_rotation[4 * (int64_t)rod->frame_first]);
        world->counts[RW_DOMAIN_NODE] += rod->node_count;
        world->counts[RW_DOMAIN_FRAME] += frame_count;
    }
    rw_arena_finish(&arena);
    return status;
}

rw_status rw_world_create_rod(rw_world* world, const rw_rod_desc* desc, rw_id* id,
                              rw_error* error) {
    RW_TRY(rw_model_add_rod(&world->model, desc, id, error));
    rw_status status = place_rod(world, error);
    if (status != RW_STATUS_OK) {
        rw_model_remove_last(&world->model, RW_KIND_ROD);
        return status;
    }
    world->rods_are_prepared = false;
    topology_changed(world);
    return RW_STATUS_OK;
}

void rw_world_node_rotation(const rw_world* world, int32_t rod, int32_t node, double rotation[4]) {
    const rw_solver* solver = &world->solvers.rods;
    solver->vtable->node_rotation(solver->self, &world->state[world->good], rod, node, rotation);
}

// Position and frame of a rod node in the axes of a body (or the world).
static void node_frame_in_body(const rw_world* world, int32_t rod, int32_t node, int32_t body,
                               rw_frame* frame) {
    const rw_state* state = &world->state[world->good];
    const rw_solver* solver = &world->solvers.rods;
    int64_t row = world->model.rods.items[rod].node_first + node;
    rw_vec3 x = rw_vec3_load(&state->node_position[3 * row]);
    double rotation[4];
    solver->vtable->node_rotation(solver->self, state, rod, node, rotation);
    rw_quat q = rw_quat_load(rotation);
    if (body >= 0) {
        static const double origin[3];
        double at[3];
        rw_kinematics_point(&world->model, state, body, origin, at);
        rw_quat body_rotation = rw_quat_load(&state->body_rotation[4 * body]);
        x = rw_quat_inverse_rotate(body_rotation, rw_vec3_sub(x, rw_vec3_load(at)));
        q = rw_quat_normalize(rw_quat_conj_mul(body_rotation, q));
    }
    rw_vec3_store(frame->position, x);
    rw_quat_store(frame->rotation, q);
}

static rw_status resolve_attachment(rw_world* world, rw_error* error) {
    rw_model* model = &world->model;
    rw_attachment* attachment = &model->attachments.items[model->attachments.count - 1];
    const rw_solver* solver = &world->solvers.rods;
    if (solver->vtable->admit_attachment != NULL) {
        RW_TRY(solver->vtable->admit_attachment(solver->self, &attachment->desc, error));
    }
    rw_frame frame;
    node_frame_in_body(world, attachment->rod, attachment->node, attachment->body, &frame);
    if (!attachment->desc.has_position) {
        memcpy(attachment->target.position, frame.position, sizeof frame.position);
    }
    if (!attachment->desc.has_rotation) {
        memcpy(attachment->target.rotation, frame.rotation, sizeof frame.rotation);
    }
    return RW_STATUS_OK;
}

static void mark_held(const rw_model* model, const rw_attachment* attachment, uint8_t* held) {
    if (attachment->desc.compliance == 0) {
        held[model->rods.items[attachment->rod].node_first + attachment->node] = 1;
    }
}

// Two rigid attachments on one node would contradict each other, and one of them would silently win.
// Compliant ones are springs: any number may pull.
static rw_status refuse_held_node(rw_world* world, rw_error* error) {
    const rw_model* model = &world->model;
    const rw_attachment* items = model->attachments.items;
    int32_t newest = model->attachments.count - 1;
    size_t bytes = (size_t)world->capacity[RW_DOMAIN_NODE];
    if (!world->holds_are_known || rw_alloc_size(world->node_is_held) < bytes) {
        uint8_t* held = rw_alloc_get(world->alloc, bytes);
        if (held == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the attachments' nodes");
        }
        rw_alloc_free(world->alloc, world->node_is_held);
        world->node_is_held = held;
        for (int32_t i = 0; i < newest; i++) {
            mark_held(model, &items[i], held);
        }
        world->holds_are_known = true;
    }
    int32_t rod = items[newest].rod, node = items[newest].node;
    if (items[newest].desc.compliance > 0 || world->node_is_held[model->rods.items[rod].node_first + node] == 0) {
        return RW_STATUS_OK;
    }
    int32_t other = 0;
    while (items[other].rod != rod || items[other].node != node ||
           items[other].desc.compliance > 0) {
        other++;
    }
    RW_FAIL(error, INVALID_ARGUMENT, items[newest].desc.has_node ? "node" : "s",
            "'%s' holds node %d of the rod already: give one of the two a compliance, or connect "
            "the bodies by a joint",
            items[other].desc.name, node);
}

rw_status rw_world_create_attachment(rw_world* world, const rw_attachment_desc* desc, rw_id* id,
                                     rw_error* error) {
    // Where a node's frame is, the rod solver knows once it has seen the rods.
    if (!world->rods_are_prepared && world->model.rods.count > 0) {
        const rw_solver* solver = &world->solvers.rods;
        RW_TRY(solver->vtable->prepare(solver->self, &world->state[world->good], error));
        world->rods_are_prepared = true;
    }
    RW_TRY(rw_model_add_attachment(&world->model, desc, id, error));
    rw_status status = refuse_held_node(world, error);
    status = status == RW_STATUS_OK ? resolve_attachment(world, error) : status;
    if (status != RW_STATUS_OK) {
        rw_model_remove_last(&world->model, RW_KIND_ATTACHMENT);
        return status;
    }
    mark_held(&world->model,
              &world->model.attachments.items[world->model.attachments.count - 1],
              world->node_is_held);
    topology_changed(world);
    return RW_STATUS_OK;
}

rw_status rw_world_create_force(rw_world* world, const rw_force_desc* desc, rw_id* id,
                                rw_error* error) {
    RW_TRY(rw_model_add_force(&world->model, desc, id, error));
    int32_t index = world->model.forces.count - 1;
    rw_force* force = &world->model.forces.items[index];
    if (force->desc.kind == RW_FORCE_SPRING_DAMPER && !force->desc.spring_damper.has_rest_length) {
        rw_spring spring;
        rw_forces_spring(&world->model, &world->state[world->good], index, &spring);
        force->rest_length = spring.length;
    }
    topology_changed(world);
    return RW_STATUS_OK;
}

rw_status rw_world_create_input(rw_world* world, const rw_input_desc* desc, rw_id* id,
                                rw_error* error) {
    RW_TRY(rw_model_add_input(&world->model, desc, id, error));
    topology_changed(world);
    return RW_STATUS_OK;
}

// ---- Remove, find ------------------------------------------------------------------------------

static void erase_rows(rw_world* world, rw_domain domain, int64_t first, int64_t count) {
    rw_field_erase(rw_state_fields(), &world->state[world->good], domain, world->counts[domain],
                   first, count);
    world->counts[domain] -= count;
}

rw_status rw_world_remove(rw_world* world, rw_kind kind, int32_t index, bool cascade,
                          rw_error* error) {
    rw_removal plan;
    rw_status status =
        rw_model_removal_plan(&world->model, kind, index, cascade, &plan, error);
    if (status == RW_STATUS_OK) {
        const int32_t* bodies = plan.new_index[RW_KIND_BODY];
        for (int32_t i = world->model.bodies.count - 1; bodies != NULL && i >= 0; i--) {
            if (bodies[i] < 0) {
                erase_rows(world, RW_DOMAIN_BODY, i, 1);
            }
        }
        const int32_t* rods = plan.new_index[RW_KIND_ROD];
        for (int32_t i = world->model.rods.count - 1; rods != NULL && i >= 0; i--) {
            const rw_rod* rod = &world->model.rods.items[i];
            if (rods[i] < 0) {
                erase_rows(world, RW_DOMAIN_NODE, rod->node_first, rod->node_count);
                erase_rows(world, RW_DOMAIN_FRAME, rod->frame_first, rod->frame_count);
                world->rods_are_prepared = false;
            }
        }
        world->holds_are_known = false;
        rw_model_removal_apply(&world->model, &plan);
        topology_changed(world);
    }
    rw_model_removal_finish(&plan);
    return status;
}

rw_status rw_world_find(const rw_world* world, rw_kind kind, rw_id id, const char* name,
                        int32_t* index, rw_error* error) {
    return rw_model_find(&world->model, kind, id, name, index, error);
}

const rw_model* rw_world_model(const rw_world* world) { return &world->model; }

const rw_state* rw_world_state(const rw_world* world) { return &world->state[world->good]; }

double rw_world_time(const rw_world* world) {
    return world->time_base_s +
           (double)(world->step - world->step_base) * world->model.time_step;
}

int64_t rw_world_step_count(const rw_world* world) { return world->step; }

uint64_t rw_world_epoch(const rw_world* world) { return world->epoch; }

void rw_world_begin_epoch(rw_world* world, uint64_t at_least) {
    world->epoch = world->epoch + 1 > at_least ? world->epoch + 1 : at_least;
}

bool rw_world_is_faulted(const rw_world* world) { return world->fault.raised; }

const rw_fault* rw_world_fault(const rw_world* world) { return &world->fault; }

// ---- Energy and momentum -----------------------------------------------------------------------

rw_status rw_world_get_energy(rw_world* world, rw_world_energy* energy, rw_error* error) {
    RW_TRY(rw_world_prepare(world, error)); // the solvers know the masses of their nodes
    const rw_model* model = &world->model;
    const rw_state* state = &world->state[world->good];
    rw_vec3 gravity = rw_vec3_load(rw_world_private_present_drive(world)->gravity);
    *energy = (rw_world_energy){0};
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (model->bodies.kind[i] != RW_BODY_DYNAMIC) {
            continue;
        }
        double mass = model->bodies.mass[i];
        rw_vec3 v = rw_vec3_load(&state->body_linear_velocity[3 * i]);
        rw_vec3 w = rw_vec3_load(&state->body_angular_velocity[3 * i]);
        rw_mat3 inertia = rw_mat3_symmetric(&model->bodies.inertia[6 * i]);
        energy->kinetic += 0.5 * mass * rw_vec3_norm_sq(v) +
                           0.5 * rw_vec3_dot(w, rw_mat3_apply(&inertia, w));
        energy->gravity -=
            mass * rw_vec3_dot(gravity, rw_vec3_load(&state->body_position[3 * i]));
    }
    const rw_solver* rods = &world->solvers.rods;
    for (int32_t i = 0; i < model->rods.node_count; i++) {
        double mass = rods->vtable->node_mass(rods->self, i);
        energy->kinetic +=
            0.5 * mass * rw_vec3_norm_sq(rw_vec3_load(&state->node_velocity[3 * i]));
        energy->gravity -=
            mass * rw_vec3_dot(gravity, rw_vec3_load(&state->node_position[3 * i]));
    }
    rw_energy part;
    rods->vtable->energy(rods->self, state, &part);
    energy->kinetic += part.kinetic;
    energy->elastic += part.elastic;
    world->solvers.rigid.vtable->energy(world->solvers.rigid.self, state, &part);
    energy->kinetic += part.kinetic;
    energy->elastic += part.elastic;
    energy->elastic += rw_forces_spring_energy(model, state);
    energy->total = energy->kinetic + energy->gravity + energy->elastic;
    return RW_STATUS_OK;
}

rw_status rw_world_get_momentum(rw_world* world, double linear[3], double angular[3],
                                rw_error* error) {
    RW_TRY(rw_world_prepare(world, error));
    const rw_model* model = &world->model;
    const rw_state* state = &world->state[world->good];
    rw_vec3 p = rw_vec3_zero(), l = rw_vec3_zero();
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (model->bodies.kind[i] != RW_BODY_DYNAMIC) {
            continue;
        }
        rw_vec3 mv = rw_vec3_scale(rw_vec3_load(&state->body_linear_velocity[3 * i]),
                                   model->bodies.mass[i]);
        rw_mat3 inertia = rw_mat3_symmetric(&model->bodies.inertia[6 * i]);
        rw_vec3 spin =
            rw_mat3_apply(&inertia, rw_vec3_load(&state->body_angular_velocity[3 * i]));
        p = rw_vec3_add(p, mv);
        l = rw_vec3_add(l, rw_vec3_cross(rw_vec3_load(&state->body_position[3 * i]), mv));
        l = rw_vec3_add(l,
                        rw_quat_rotate(rw_quat_load(&state->body_rotation[4 * i]), spin));
    }
    const rw_solver* rods = &world->solvers.rods;
    for (int32_t i = 0; i < model->rods.node_count; i++) {
        rw_vec3 mv = rw_vec3_scale(rw_vec3_load(&state->node_velocity[3 * i]),
                                   rods->vtable->node_mass(rods->self, i));
        p = rw_vec3_add(p, mv);
        l = rw_vec3_add(l, rw_vec3_cross(rw_vec3_load(&state->node_position[3 * i]), mv));
    }
    for (int32_t i = 0; i < model->rods.count && rods->vtable->rod_angular_momentum != NULL; i++) {
        double spin[3];
        rods->vtable->rod_angular_momentum(rods->self, state, i, spin);
        l = rw_vec3_add(l, rw_vec3_load(spin));
    }
    rw_vec3_store(linear, p);
    rw_vec3_store(angular, l);
    return RW_STATUS_OK;
}
