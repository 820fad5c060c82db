// The pipeline of a step. Reads top to bottom: prepare when something changed, then per substep
// drive, forces, the solvers' phases (solver.h), a check that all is finite; then the good state
// is switched.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/forces.h"
#include "solvers/world/world_private.h"

// A velocity or coordinate beyond this is taken for an explosion [SI].
#define EXPLODED 1e15

// A backstop against a pair of solvers that never agree; both have limits of their own.
#define SWEEPS_MAXIMUM 10000000

// ---- Deep checks of validate builds ---------------------------------------------------------------

#ifdef RW_VALIDATE_BUILD
// Every rotation of a state is unit: the solvers normalise, so a drift is a fault of theirs.
static bool rotations_are_unit(const rw_world* world, const rw_state* state) {
    const double* const rotations[2] = {state->body_rotation, state->frame_rotation};
    const int64_t counts[2] = {world->counts[RW_DOMAIN_BODY], world->counts[RW_DOMAIN_FRAME]};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < counts[k]; i++) {
            const double* q = &rotations[k][4 * i];
            double norm_sq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
            if (!(fabs(norm_sq - 1) < 1e-9)) {
                return false;
            }
        }
    }
    return true;
}

// Every id leads to the object that bears it.
static bool ids_lead_home(const rw_model* model) {
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        for (int32_t i = 0; i < rw_model_count(model, (rw_kind)kind); i++) {
            if (rw_id_pool_find(&model->ids[kind], rw_model_id(model, (rw_kind)kind, i)) != i) {
                return false;
            }
        }
    }
    return true;
}
#endif

// ---- Prepare -----------------------------------------------------------------------------------

bool rw_world_needs_prepare(const rw_world* world) {
    return world->prepared_topology != world->model.topology_revision ||
           world->prepared_parameters != world->model.parameter_revision ||
           world->prepared_substeps != world->model.substeps;
}

static rw_status grow(rw_world* world, void* array_pointer, int64_t count, size_t item_bytes,
                      rw_error* error) {
    void** array = array_pointer;
    if (*array != NULL && rw_alloc_size(*array) >= (size_t)count * item_bytes) {
        return RW_STATUS_OK;
    }
    void* grown = rw_alloc_array(world->alloc, (size_t)count, item_bytes);
    if (grown == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to step %lld rows", (long long)count);
    }
    rw_alloc_free(world->alloc, *array);
    *array = grown;
    return RW_STATUS_OK;
}

// The solvers' private state as bytes; reserved here so that a warmed-up step allocates nothing.
static rw_status save_private(rw_world* world) {
    const rw_solver* solvers[2] = {&world->solvers.rigid, &world->solvers.rods};
    for (int i = 0; i < 2; i++) {
        rw_solver_fields fields = solvers[i]->vtable->fields(solvers[i]->self);
        world->undo[i].size_bytes = 0;
        RW_TRY(rw_field_write(fields.list, fields.state, fields.counts, &world->undo[i]));
    }
    return RW_STATUS_OK;
}

static void restore_private(rw_world* world) {
    const rw_solver* solvers[2] = {&world->solvers.rigid, &world->solvers.rods};
    for (int i = 0; i < 2; i++) {
        rw_solver_fields fields = solvers[i]->vtable->fields(solvers[i]->self);
        const unsigned char* at = world->undo[i].data;
        rw_status status =
            at == NULL ? RW_STATUS_OK
                       : rw_field_read(fields.list, fields.state, fields.counts, &at,
                                       at + world->undo[i].size_bytes, NULL);
        RW_CHECK(status == RW_STATUS_OK);
    }
}

static rw_status prepare_arrays(rw_world* world, rw_error* error) {
    int64_t bodies = world->capacity[RW_DOMAIN_BODY], nodes = world->capacity[RW_DOMAIN_NODE];
    RW_TRY(grow(world, &world->body_force, bodies, 3 * sizeof(double), error));
    RW_TRY(grow(world, &world->body_torque, bodies, 3 * sizeof(double), error));
    RW_TRY(grow(world, &world->node_force, nodes, 3 * sizeof(double), error));
    RW_TRY(grow(world, &world->node_torque, nodes, 3 * sizeof(double), error));
    RW_TRY(grow(world, &world->responses, bodies, sizeof *world->responses, error));
    for (int i = 0; i < 2; i++) {
        if (rw_drive_prepare(&world->drive[i], &world->model) != RW_STATUS_OK) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the inputs");
        }
    }
    if (world->model.substeps > 1) {
        for (int domain = 0; domain < RW_DOMAIN_COUNT; domain++) {
            // State 2 keeps no rows between steps.
            if (rw_field_reserve(rw_state_fields(), world->alloc, &world->state[2],
                                 (uint32_t)domain, 0, world->capacity[domain]) != RW_STATUS_OK) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "substeps", "no memory for a third state");
            }
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_world_prepare(rw_world* world, rw_error* error) {
    if (!rw_world_needs_prepare(world)) {
        return RW_STATUS_OK;
    }
    RW_TRY(prepare_arrays(world, error));
    const rw_world_solvers* solvers = &world->solvers;
    const rw_state* state = &world->state[world->good];
    RW_TRY(solvers->rigid.vtable->prepare(solvers->rigid.self, state, error));
    RW_TRY(solvers->rods.vtable->prepare(solvers->rods.self, state, error));
    if (solvers->rods.vtable->pair_capacity != NULL) {
        world->pair_capacity = solvers->rods.vtable->pair_capacity(solvers->rods.self);
        RW_TRY(grow(world, &world->pairs, world->pair_capacity, sizeof *world->pairs, error));
    }
    if (save_private(world) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to undo a step");
    }
    world->rods_are_prepared = true;
    world->prepared_topology = world->model.topology_revision;
    world->prepared_parameters = world->model.parameter_revision;
    world->prepared_substeps = world->model.substeps;
    RW_VALIDATE(ids_lead_home(&world->model));
    return RW_STATUS_OK;
}

rw_status rw_world_private_assemble(rw_world* world, rw_error* error) {
    const rw_solver* rigid = &world->solvers.rigid;
    if (world->needs_assembly && rigid->vtable->assemble != NULL) {
        RW_TRY(rigid->vtable->assemble(rigid->self, &world->state[world->good], error));
    }
    world->needs_assembly = false;
    return RW_STATUS_OK;
}

const rw_drive* rw_world_private_present_drive(rw_world* world) {
    if (!rw_world_needs_prepare(world)) {
        rw_drive_evaluate(&world->drive[0], &world->model, rw_world_time(world));
    } else {
        memcpy(world->drive[0].gravity, world->model.gravity, sizeof world->model.gravity);
        memcpy(world->drive[0].wind, world->model.wind, sizeof world->model.wind);
    }
    return &world->drive[0];
}

// ---- One substep -------------------------------------------------------------------------------

// Marks the dynamic bodies that rods hang on. True when there is one.
static bool mark_attached(rw_world* world) {
    const rw_model* model = &world->model;
    memset(world->responses, 0, (size_t)model->bodies.count * sizeof *world->responses);
    bool any = false;
    for (int32_t i = 0; i < model->attachments.count; i++) {
        int32_t body = model->attachments.items[i].body;
        if (body >= 0 && model->bodies.kind[body] == RW_BODY_DYNAMIC) {
            world->responses[body].active = true;
            any = true;
        }
    }
    return any;
}

static rw_status sweep_until_done(rw_world* world, rw_step* step, bool is_coupled) {
    const rw_solver* rigid = &world->solvers.rigid;
    const rw_solver* rods = &world->solvers.rods;
    bool rods_done = world->model.rods.count == 0;
    bool rigid_done = false;
    for (int sweep = 0; sweep < SWEEPS_MAXIMUM; sweep++) {
        if (!rods_done) {
            RW_TRY(rods->vtable->sweep(rods->self, step, &rods_done));
            if (is_coupled) {
                RW_TRY(rods->vtable->respond(rods->self, step));
            }
        }
        if (!rigid_done || is_coupled) {
            RW_TRY(rigid->vtable->sweep(rigid->self, step, &rigid_done));
        }
        if (rods_done && rigid_done) {
            return RW_STATUS_OK;
        }
    }
    step->fault->raised = true;
    snprintf(step->fault->object, sizeof step->fault->object, "world");
    snprintf(step->fault->stage, sizeof step->fault->stage, "coupling");
    snprintf(step->fault->text, sizeof step->fault->text, "rods and bodies never agree");
    return RW_STATUS_FAULTED;
}

// Names the object behind a row of a state field.
static void name_object(const rw_world* world, const char* field, int64_t row, char* text,
                        size_t capacity) {
    const rw_model* model = &world->model;
    if (strncmp(field, "body", 4) == 0) {
        snprintf(text, capacity, "body/%s", model->bodies.items[row].desc.name);
        return;
    }
    bool is_node = strncmp(field, "node", 4) == 0;
    for (int32_t i = 0; i < model->rods.count; i++) {
        const rw_rod* rod = &model->rods.items[i];
        int64_t first = is_node ? rod->node_first : rod->frame_first;
        int64_t count = is_node ? rod->node_count : rod->frame_count;
        if (row >= first && row < first + count) {
            snprintf(text, capacity, "rod/%s/%s/%lld", rod->desc.name,
                     is_node ? "node" : "segment", (long long)(row - first));
            return;
        }
    }
}

// FAULTED when a value is not finite or beyond all measure.
static rw_status check_motion(const rw_world* world, const rw_state* state, rw_fault* fault) {
    rw_field_list list = rw_state_fields();
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        const double* values =
            *(double* const*)(const void*)((const char*)state + field->offset);
        int64_t count = world->counts[field->domain] * field->width;
        bool is_bad = false;
        for (int64_t k = 0; k < count; k++) {
            is_bad |= !(fabs(values[k]) < EXPLODED); // true for NaN as well
        }
        for (int64_t k = 0; is_bad && k < count; k++) {
            if (!(fabs(values[k]) < EXPLODED)) {
                fault->raised = true;
                name_object(world, field->name, k / field->width, fault->object,
                            sizeof fault->object);
                snprintf(fault->stage, sizeof fault->stage, "end of step");
                snprintf(fault->text, sizeof fault->text, "%s is %g", field->name, values[k]);
                return RW_STATUS_FAULTED;
            }
        }
    }
    return RW_STATUS_OK;
}

static rw_status run_substep(rw_world* world, rw_step* step) {
    const rw_world_solvers* solvers = &world->solvers;
    const rw_solver_vtable* rigid = solvers->rigid.vtable;
    const rw_solver_vtable* rods = solvers->rods.vtable;
    rw_drive_evaluate(&world->drive[0], &world->model, step->time_s);
    rw_drive_evaluate(&world->drive[1], &world->model, step->time_s + step->h);

    const rw_forces_output sums = {world->body_force, world->body_torque, world->node_force,
                                   world->node_torque};
    const rw_forces_frames frames = {solvers->rods.self, rods->node_rotation};
    rw_forces_evaluate(&world->model, &world->drive[1], step->from, frames, RW_FORCES_ALL, &sums);

    bool is_coupled = mark_attached(world);
    RW_TRY(rigid->begin(solvers->rigid.self, step));
    RW_TRY(rods->begin(solvers->rods.self, step));
    RW_TRY(sweep_until_done(world, step, is_coupled));
    RW_TRY(rigid->end(solvers->rigid.self, step));
    RW_TRY(rods->end(solvers->rods.self, step));
    RW_TRY(check_motion(world, step->to, step->fault));
    RW_VALIDATE(rotations_are_unit(world, step->to));
    return RW_STATUS_OK;
}

// ---- One step ----------------------------------------------------------------------------------

static rw_status fail_faulted(const rw_world* world, rw_error* error) {
    const rw_fault* fault = &world->fault;
    // The step that failed is the one after those that were done.
    RW_FAIL(error, FAULTED, "", "step %lld, %s, %s: %s", (long long)world->step + 1, fault->object,
            fault->stage, fault->text);
}

rw_status rw_world_step(rw_world* world, rw_error* error) {
    if (world->fault.raised) {
        return fail_faulted(world, error);
    }
    RW_TRY(rw_world_prepare(world, error));
    RW_TRY(rw_world_private_assemble(world, error));
    if (save_private(world) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to undo a step");
    }

    static const atomic_bool never;
    rw_fault fault = {0};
    uint32_t substeps = world->model.substeps;
    double h = world->model.time_step / substeps, start = rw_world_time(world);
    int from = world->good, other[2] = {(world->good + 1) % 3, (world->good + 2) % 3};
    if (substeps == 1) {
        // Two states take turns: the third need not exist.
        other[0] = world->good == 0 ? 1 : 0;
    }
    rw_status status = RW_STATUS_OK;
    for (uint32_t k = 0; k < substeps && status == RW_STATUS_OK; k++) {
        int to = other[k % 2];
        rw_step step = {
            .model = &world->model,
            .from = &world->state[from],
            .to = &world->state[to],
            .time_s = start + k * h,
            .h = h,
            .drive_from = &world->drive[0],
            .drive_to = &world->drive[1],
            .body_force = world->body_force,
            .body_torque = world->body_torque,
            .node_force = world->node_force,
            .node_torque = world->node_torque,
            .responses = world->responses,
            .pairs = world->pairs,
            .pair_capacity = world->pair_capacity,
            .parallel = world->parallel,
            .cancel = world->cancel != NULL ? world->cancel : &never,
            .fault = &fault,
        };
        status = run_substep(world, &step);
        from = to;
    }
    if (status != RW_STATUS_OK) {
        restore_private(world);
        if (status == RW_STATUS_FAULTED) {
            world->fault = fault;
            world->fault.raised = true;
            return fail_faulted(world, error);
        }
        return rw_status_fail(error, status, "", "step %lld was %s and undone",
                              (long long)world->step + 1,
                              status == RW_STATUS_CANCELLED ? "cancelled" : "not finished");
    }
    world->good = from;
    world->step++;
    rw_model_expire_wrenches(&world->model);
    return RW_STATUS_OK;
}
