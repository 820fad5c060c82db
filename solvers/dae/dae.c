#include "solvers/dae/dae.h"

#include <math.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/dae/dae_assemble.h"
#include "solvers/dae/dae_bdf.h"
#include "solvers/dae/dae_compile.h"
#include "solvers/dae/dae_effort.h"
#include "solvers/dae/dae_integrate.h"
#include "solvers/dae/dae_rods.h"
#include "solvers/dae/dae_system.h"
#include "solvers/model/kinematics.h"

// What later steps depend on beyond the motion. Everything else is derived.
typedef enum memory_domain {
    DOMAIN_JOINT,
    DOMAIN_BODY,
    DOMAIN_DYNAMIC,
    DOMAIN_ONE,
    DOMAIN_COUNT
} memory_domain;

// member, width, domain
#define MEMORY_FIELDS(F)                                                                           \
    F(angle, 3, JOINT)         /* continuous angles [rad]; a DISTANCE joint's distance [m] */      \
    F(rod_wrench, 6, BODY)     /* of the rods during the last step, world [N, N m] */              \
    F(inner_step, 1, ONE)      /* RK45: next inner step [s] */                                     \
    F(bdf_history, RW_DAE_BDF_HISTORY, DYNAMIC) /* backward differences of y */                    \
    F(bdf_control, RW_DAE_BDF_CONTROL, ONE)     /* order, step and what it was made for */

typedef struct memory {
#define MEMORY_MEMBER(member, width, domain) double* member;
    MEMORY_FIELDS(MEMORY_MEMBER)
#undef MEMORY_MEMBER
} memory;

static const rw_field memory_fields[] = {
#define MEMORY_ENTRY(member, width, domain)                                                        \
    RW_FIELD_ENTRY(memory, member, width, DOMAIN_##domain, RW_FIELD_HASHED),
    MEMORY_FIELDS(MEMORY_ENTRY)
#undef MEMORY_ENTRY
};
static const rw_field_list memory_list = {memory_fields, RW_COUNT_OF(memory_fields)};

typedef struct dae {
    rw_model* model; // borrowed
    rw_alloc* alloc; // borrowed
    memory memory;
    int64_t counts[DOMAIN_COUNT];
    rw_id* joint_ids; // which joints the angles belong to (counts[DOMAIN_JOINT])
    rw_id* body_ids;  // which bodies the wrenches belong to
    rw_dae_system* system;
    uint64_t topology; // the model's revision that the system was compiled from
    rw_integrator integrator; // that the arrays were made for
    rw_arena arena; // of the integrators and below; renewed by prepare
    rw_dae_integrate integrate;
    rw_dae_bdf bdf;
    rw_dae_rods rods;
    double *angle_before, *inner_before; // memory at the start of the step: sweeps start again
    double* signal_y; // the state that signals were evaluated for
    double signal_time_s;
    bool has_signals;
} dae;

static rw_status create(rw_model* model, rw_alloc* alloc, unsigned roles, void** self,
                        rw_error* error) {
    *self = NULL;
    if (roles != RW_ROLE_RIGID)
        RW_FAIL(error, INVALID_ARGUMENT, "solver.rods", "dae moves rigid bodies only");
    dae* s = rw_alloc_get(alloc, sizeof *s);
    if (!s)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the dae solver");
    s->model = model;
    s->alloc = alloc;
    rw_arena_init(&s->arena, alloc);
    *self = s;
    return RW_STATUS_OK;
}

static void destroy(void* self) {
    dae* s = self;
    if (!s)
        return;
    rw_dae_bdf_finish(&s->bdf);
    rw_dae_integrate_release(&s->integrate);
    rw_dae_system_destroy(s->system, s->alloc);
    rw_field_release(memory_list, s->alloc, &s->memory);
    rw_alloc_free(s->alloc, s->joint_ids);
    rw_alloc_free(s->alloc, s->body_ids);
    rw_arena_finish(&s->arena);
    rw_alloc_free(s->alloc, s);
}

static rw_status admit_joint(void* self, const rw_joint_desc* desc, rw_error* error) {
    (void)self;
    if (desc->type == RW_JOINT_DISTANCE && desc->has_distance && !(desc->distance > 0.0))
        RW_FAIL(error, INVALID_ARGUMENT, "distance", "must be > 0: use SPHERICAL for 0");
    return RW_STATUS_OK;
}

// ---- Preparation ---------------------------------------------------------------------------------

// Rows of `width` doubles, in the new order, from those of the same ids in the old order; zero for
// new ids. Takes the old block's place.
static rw_status carry_over(dae* s, double** rows, size_t width, rw_id** ids, int64_t old_count,
                            const rw_id* new_ids, int64_t count, bool* is_new) {
    double* fresh = rw_alloc_array(s->alloc, (size_t)count * width + 1, sizeof *fresh);
    rw_id* fresh_ids = rw_alloc_array(s->alloc, (size_t)count + 1, sizeof *fresh_ids);
    if (!fresh || !fresh_ids) {
        rw_alloc_free(s->alloc, fresh);
        rw_alloc_free(s->alloc, fresh_ids);
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    int64_t at = 0; // order of creation never changes, so one pass finds every survivor
    for (int64_t i = 0; i < count; i++) {
        fresh_ids[i] = new_ids[i];
        int64_t t = at;
        while (t < old_count && (*ids)[t] != new_ids[i])
            t++;
        if (is_new)
            is_new[i] = t == old_count;
        if (t == old_count)
            continue;
        memcpy(fresh + (size_t)i * width, *rows + (size_t)t * width, width * sizeof *fresh);
        at = t + 1;
    }
    rw_alloc_free(s->alloc, *rows);
    rw_alloc_free(s->alloc, *ids);
    *rows = fresh;
    *ids = fresh_ids;
    return RW_STATUS_OK;
}

static rw_status renew_memory(dae* s, rw_arena* scratch, bool** joint_is_new) {
    const rw_model* model = s->model;
    int64_t joints = model->joints.count, bodies = model->bodies.count, dynamic = 0;
    rw_id* ids = rw_arena_array(scratch, (size_t)(joints > bodies ? joints : bodies) + 1,
                                sizeof *ids);
    *joint_is_new = rw_arena_array(scratch, (size_t)joints + 1, sizeof **joint_is_new);
    if (!ids || !*joint_is_new)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int64_t k = 0; k < joints; k++)
        ids[k] = model->joints.items[k].id;
    RW_TRY(carry_over(s, &s->memory.angle, 3, &s->joint_ids, s->counts[DOMAIN_JOINT], ids, joints,
                      *joint_is_new));
    s->counts[DOMAIN_JOINT] = joints;
    for (int64_t b = 0; b < bodies; b++) {
        ids[b] = model->bodies.items[b].id;
        dynamic += model->bodies.kind[b] == RW_BODY_DYNAMIC;
    }
    RW_TRY(carry_over(s, &s->memory.rod_wrench, 6, &s->body_ids, s->counts[DOMAIN_BODY], ids,
                      bodies, NULL));
    s->counts[DOMAIN_BODY] = bodies;
    bool needs_history = model->solver.dae.integrator == RW_INTEGRATOR_BDF;
    int64_t history = needs_history ? dynamic : 0;
    if (!s->memory.inner_step || history != s->counts[DOMAIN_DYNAMIC]) {
        // Another set of unknowns: the history of the old one means nothing.
        RW_TRY(rw_field_reserve(memory_list, s->alloc, &s->memory, DOMAIN_DYNAMIC, 0, history + 1));
        RW_TRY(rw_field_reserve(memory_list, s->alloc, &s->memory, DOMAIN_ONE, 0, 1));
        s->counts[DOMAIN_DYNAMIC] = history;
        s->counts[DOMAIN_ONE] = 1;
        s->memory.inner_step[0] = 0.0;
        memset(s->memory.bdf_control, 0, RW_DAE_BDF_CONTROL * sizeof(double));
    }
    return RW_STATUS_OK;
}

static rw_status rebuild(dae* s, const rw_state* state, rw_arena* scratch, rw_error* error) {
    bool* joint_is_new;
    RW_TRY(renew_memory(s, scratch, &joint_is_new));
    rw_dae_bdf_finish(&s->bdf);
    rw_dae_integrate_release(&s->integrate);
    rw_dae_system_destroy(s->system, s->alloc);
    s->system = NULL;
    rw_arena_finish(&s->arena);
    rw_arena_init(&s->arena, s->alloc);
    RW_TRY(rw_dae_system_create(s->model, s->alloc, s->memory.angle, &s->system, error));
    RW_TRY(rw_dae_integrate_init(&s->integrate, s->system, s->alloc, &s->arena,
                                 s->memory.inner_step));
    RW_TRY(rw_dae_bdf_init(&s->bdf, &s->integrate, s->alloc, &s->arena, s->memory.bdf_history,
                           s->memory.bdf_control));
    RW_TRY(rw_dae_rods_init(&s->rods, s->system, &s->arena, s->memory.rod_wrench));
    size_t size = (size_t)s->integrate.size + 1;
    s->angle_before = rw_arena_array(&s->arena, 3 * (size_t)s->counts[DOMAIN_JOINT] + 1,
                                     sizeof(double));
    s->inner_before = rw_arena_array(&s->arena, 1, sizeof(double));
    s->signal_y = rw_arena_array(&s->arena, size, sizeof(double));
    if (!s->angle_before || !s->inner_before || !s->signal_y)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    for (int32_t k = 0; k < s->system->joint_count; k++) {
        if (!joint_is_new[k])
            continue;
        rw_joint_pose pose[2];
        rw_joint_frames frames;
        double values[4] = {0};
        unsigned mask = rw_joint_geometry_angle_mask(s->system->joints[k].type);
        rw_dae_system_joint_frames(s->system, state, k, pose, &frames);
        rw_joint_geometry_coordinate(&s->system->joints[k], &frames, values);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1u)
                s->memory.angle[3 * (size_t)k + (size_t)i] = values[i];
        if (s->system->joints[k].type != RW_JOINT_DISTANCE ||
            s->model->joints.items[k].desc.has_distance)
            continue;
        s->memory.angle[3 * (size_t)k] = rw_vec3_norm(frames.gap);
        if (!(s->memory.angle[3 * (size_t)k] > 0.0))
            RW_FAIL(error, INVALID_ARGUMENT, "joints",
                    "the ends of joint \"%s\" coincide: use SPHERICAL for a distance of 0",
                    s->model->joints.items[k].desc.name);
    }
    rw_dae_system_take_distances(s->system);
    s->has_signals = false;
    s->topology = s->model->topology_revision;
    s->integrator = s->model->solver.dae.integrator;
    return RW_STATUS_OK;
}

static rw_status prepare(void* self, const rw_state* state, rw_error* error) {
    dae* s = self;
    if (s->system && s->topology == s->model->topology_revision &&
        s->integrator == s->model->solver.dae.integrator) {
        rw_dae_compile_parameters(s->system);
        rw_dae_integrate_parameters(&s->integrate);
        s->has_signals = false;
        return RW_STATUS_OK;
    }
    rw_arena scratch;
    rw_arena_init(&scratch, s->alloc);
    rw_status status = rebuild(s, state, &scratch, error);
    rw_arena_finish(&scratch);
    if (status == RW_STATUS_RESOURCE_EXHAUSTED && error && error->status == RW_STATUS_OK)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the mechanism");
    return status;
}

static double tolerance_at(const dae* s, const double* y) {
    return rw_dae_integrate_tolerance(&s->integrate, y);
}

// Gathers `state`, with kinematic and static bodies where it says they are.
static double* load_state(dae* s, const rw_state* state) {
    double* y = s->integrate.stage;
    s->system->drive_is_current = false;
    s->has_signals = false;
    rw_dae_system_gather(s->system, state, y);
    rw_dae_system_set_time(s->system, state, 0.0, 0.0);
    for (int32_t b = 0; b < s->system->body_count; b++)
        if (s->system->dynamic_of[b] < 0)
            s->system->pose[b] = rw_dae_system_pose(state, b);
    return y;
}

static rw_status assemble(void* self, rw_state* state, rw_error* error) {
    dae* s = self;
    double* y = load_state(s, state);
    RW_TRY(rw_dae_assemble_project(s->system, y, tolerance_at(s, y), error));
    rw_dae_system_scatter(s->system, y, state);
    return RW_STATUS_OK;
}

static void state_changed(void* self) {
    dae* s = self;
    s->has_signals = false;
    if (!s->system)
        return;
    s->system->is_factored = false;
    rw_dae_system_take_distances(s->system);
}

static rw_solver_fields fields(void* self) {
    dae* s = self;
    return (rw_solver_fields){memory_list, &s->memory, s->counts};
}

// ---- A step --------------------------------------------------------------------------------------

// One pass over the step, with the rods' wrenches as they stand.
static rw_status integrate(dae* s, rw_step* step) {
    rw_dae_system_gather(s->system, step->from, s->integrate.y);
    s->system->drive_is_current = false;
    s->system->scratch.node_position = step->from->node_position;
    s->system->scratch.node_velocity = step->from->node_velocity;
    s->system->scratch.frame_rotation = step->from->frame_rotation;
    s->system->scratch.frame_angular_velocity = step->from->frame_angular_velocity;
    s->system->parallel = step->parallel;
    rw_integrator method = s->model->solver.dae.integrator;
    rw_status status = method == RW_INTEGRATOR_BDF
                           ? rw_dae_bdf_step(&s->bdf, step)
                           : rw_dae_integrate_step(&s->integrate, method, step);
    RW_TRY(status);
    rw_kinematics_advance(s->model, step->drive_to, step->from, step->to, step->h);
    rw_dae_system_scatter(s->system, s->integrate.y, step->to);
    return RW_STATUS_OK;
}

static rw_status begin(void* self, rw_step* step) {
    dae* s = self;
    s->has_signals = false;
    rw_dae_system_take_distances(s->system); // a snapshot may have been read
    memcpy(s->angle_before, s->memory.angle,
           3 * (size_t)s->counts[DOMAIN_JOINT] * sizeof *s->angle_before);
    *s->inner_before = *s->memory.inner_step;
    rw_dae_bdf_keep(&s->bdf);
    rw_dae_rods_begin(&s->rods);
    return integrate(s, step);
}

static rw_status sweep(void* self, rw_step* step, bool* done) {
    dae* s = self;
    RW_TRY(rw_dae_rods_update(&s->rods, &s->integrate, step, done));
    if (*done)
        return RW_STATUS_OK;
    memcpy(s->memory.angle, s->angle_before,
           3 * (size_t)s->counts[DOMAIN_JOINT] * sizeof *s->angle_before);
    *s->memory.inner_step = *s->inner_before;
    rw_dae_bdf_again(&s->bdf);
    return integrate(s, step);
}

static rw_status end(void* self, rw_step* step) {
    (void)self;
    (void)step;
    return RW_STATUS_OK;
}

// ---- Signals -------------------------------------------------------------------------------------

// The world counts the bodies' kinetic energy; compliant joints store the rest.
static void energy(void* self, const rw_state* state, rw_energy* energy) {
    dae* s = self;
    *energy = (rw_energy){0};
    if (!s->system)
        return;
    for (int32_t k = 0; k < s->system->joint_count; k++) {
        double compliance = s->model->joints.items[k].desc.compliance, phi[6];
        if (!(compliance > 0.0))
            continue;
        rw_joint_pose pose[2];
        rw_joint_frames frames;
        rw_dae_system_joint_frames(s->system, state, k, pose, &frames);
        rw_joint_geometry_error(&s->system->joints[k], &frames, phi);
        for (int32_t i = 0; i < s->system->joints[k].row_count; i++)
            energy->elastic += 0.5 * phi[i] * phi[i] / compliance;
    }
}

static rw_status evaluate(void* self, const rw_state* state, double time_s) {
    dae* s = self;
    double* y = s->integrate.slope[0];
    rw_dae_system_take_distances(s->system);
    rw_dae_system_gather(s->system, state, y);
    size_t bytes = (size_t)s->integrate.size * sizeof *y;
    if (s->has_signals && s->signal_time_s == time_s && !memcmp(y, s->signal_y, bytes))
        return RW_STATUS_OK;
    memcpy(s->signal_y, y, bytes);
    s->system->drive_is_current = false;
    s->system->scratch.node_position = state->node_position;
    s->system->scratch.node_velocity = state->node_velocity;
    s->system->scratch.frame_rotation = state->frame_rotation;
    s->system->scratch.frame_angular_velocity = state->frame_angular_velocity;
    rw_dae_system_set_time(s->system, state, time_s, time_s);
    rw_dae_system_load(s->system, y);
    RW_TRY(rw_dae_system_accelerate(s->system));
    s->signal_time_s = time_s;
    s->has_signals = true;
    return RW_STATUS_OK;
}

static void joint_coordinate(void* self, const rw_state* state, int32_t joint, double* values) {
    dae* s = self;
    rw_joint_pose pose[2];
    rw_joint_frames frames;
    const rw_joint_geometry* j = &s->system->joints[joint];
    rw_dae_system_joint_frames(s->system, state, joint, pose, &frames);
    rw_joint_geometry_coordinate(j, &frames, values);
    unsigned mask = rw_joint_geometry_angle_mask(j->type);
    for (int i = 0; i < 3; i++)
        if (mask >> i & 1u)
            values[i] = rw_dae_effort_unwrap(values[i],
                                             s->memory.angle[3 * (size_t)joint + (size_t)i]);
}

static void joint_rate(void* self, const rw_state* state, int32_t joint, double* values) {
    dae* s = self;
    rw_joint_pose pose[2];
    rw_joint_frames frames;
    rw_joint_row rows[3];
    const rw_joint_geometry* j = &s->system->joints[joint];
    rw_dae_system_joint_frames(s->system, state, joint, pose, &frames);
    rw_joint_geometry_rates(j, &frames, rows);
    for (int32_t i = 0; i < j->rate_count; i++)
        values[i] = rw_joint_geometry_row_rate(&rows[i], &pose[0], &pose[1]);
}

static void joint_effort(void* self, int32_t joint, double* values) {
    dae* s = self;
    const rw_joint* j = &s->model->joints.items[joint];
    for (int32_t i = 0; i < j->rate_count; i++)
        values[i] = s->has_signals ? s->system->effort[j->rate_first + i] : 0.0;
}

static void joint_reaction(void* self, int32_t joint, double wrench[6]) {
    dae* s = self;
    if (s->has_signals)
        rw_dae_system_reaction(s->system, joint, wrench);
    else
        memset(wrench, 0, 6 * sizeof *wrench);
}

static void joint_violation(void* self, const rw_state* state, int32_t joint,
                            double violation[2]) {
    dae* s = self;
    rw_dae_system_take_distances(s->system);
    rw_joint_pose pose[2];
    rw_joint_frames frames;
    rw_dae_system_joint_frames(s->system, state, joint, pose, &frames);
    rw_joint_geometry_violation(&s->system->joints[joint], &frames, violation);
}

static rw_status set_joint(void* self, rw_state* state, int32_t joint, const double* coordinate,
                           const double* rate, rw_error* error) {
    dae* s = self;
    double* y = load_state(s, state);
    rw_arena scratch;
    rw_arena_init(&scratch, s->alloc);
    rw_status status = rw_dae_assemble_set_joint(s->system, y, joint, coordinate, rate,
                                                 tolerance_at(s, y), &scratch, error);
    rw_arena_finish(&scratch);
    RW_TRY(status);
    rw_dae_system_scatter(s->system, y, state);
    // Other joints of the loop moved too: their angles follow.
    for (int32_t k = 0; k < s->system->joint_count; k++) {
        double values[4];
        unsigned mask = rw_joint_geometry_angle_mask(s->system->joints[k].type);
        joint_coordinate(self, state, k, values);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1u)
                s->memory.angle[3 * (size_t)k + (size_t)i] = values[i];
    }
    return RW_STATUS_OK;
}

rw_status rw_dae_ask(void* self, const rw_state* state, double time_s, rw_arena* arena,
                     rw_dae_query* query, rw_error* error) {
    dae* s = self;
    s->has_signals = false;
    if (evaluate(self, state, time_s) != RW_STATUS_OK)
        RW_FAIL(error, FAILED_PRECONDITION, "", "the joints' matrix can't be factored here");
    s->has_signals = false; // the questions overwrite what the signals read
    return rw_dae_query_begin(query, s->system, arena, error);
}

int32_t rw_dae_redundant_rows(const void* self) {
    const dae* s = self;
    return s->system ? s->system->pivots.redundant : 0;
}

const rw_solver_vtable* rw_dae_vtable(void) {
    static const rw_solver_vtable vtable = {
        .name = "dae",
        .roles = RW_ROLE_RIGID,
        .create = create,
        .destroy = destroy,
        .admit_joint = admit_joint,
        .prepare = prepare,
        .assemble = assemble,
        .evaluate = evaluate,
        .state_changed = state_changed,
        .fields = fields,
        .begin = begin,
        .sweep = sweep,
        .end = end,
        .energy = energy,
        .joint_coordinate = joint_coordinate,
        .joint_rate = joint_rate,
        .joint_effort = joint_effort,
        .joint_reaction = joint_reaction,
        .joint_violation = joint_violation,
        .set_joint = set_joint,
    };
    return &vtable;
}
