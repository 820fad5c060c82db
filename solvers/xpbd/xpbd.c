#include "solvers/xpbd/xpbd.h"

#include <string.h>

#include "solvers/xpbd/fe_rods.h"
#include "solvers/xpbd/free_bodies.h"
#include "solvers/xpbd/joint_system.h"

// One role each: `bodies` or `rods`, the other NULL.
typedef struct xpbd {
    rw_alloc* alloc; // borrowed
    rw_free_bodies* bodies;
    rw_fe_rods* rods;
} xpbd;

static rw_status create(rw_model* model, rw_alloc* alloc, unsigned roles, void** self,
                        rw_error* error) {
    xpbd* made = rw_alloc_get(alloc, sizeof *made);
    if (made == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the xpbd solver");
    }
    made->alloc = alloc;
    rw_status status = (roles & RW_ROLE_RIGID) != 0
                           ? rw_free_bodies_create(model, alloc, &made->bodies, error)
                           : rw_fe_rods_create(model, alloc, &made->rods, error);
    if (status != RW_STATUS_OK) {
        rw_alloc_free(alloc, made);
        return status;
    }
    *self = made;
    return RW_STATUS_OK;
}

static void destroy(void* self) {
    xpbd* solver = self;
    if (solver != NULL) {
        rw_free_bodies_destroy(solver->bodies);
        rw_fe_rods_destroy(solver->rods);
        rw_alloc_free(solver->alloc, solver);
    }
}

static rw_status admit_joint(void* self, const rw_joint_desc* desc, rw_error* error) {
    (void)self;
    (void)desc;
    (void)error;
    return RW_STATUS_OK; // every type
}

static rw_status admit_rod(void* self, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error) {
    return rw_fe_rods_admit(((xpbd*)self)->rods, desc, frame_count, element_count, error);
}

static rw_status admit_attachment(void* self, const rw_attachment_desc* desc, rw_error* error) {
    (void)self;
    if (desc->kind == RW_ATTACH_PIN_SEGMENT) {
        RW_FAIL(error, UNIMPLEMENTED, "kind", "PIN_SEGMENT is for the SCR solver: use CLAMP");
    }
    return RW_STATUS_OK;
}

static void init_frames(void* self, const rw_rod* rod, const double* node_positions,
                        const double* node_rotations, double* frames) {
    (void)self;
    (void)node_positions;
    memcpy(frames, node_rotations, (size_t)rod->node_count * 4 * sizeof *frames);
}

static rw_status prepare(void* self, const rw_state* state, rw_error* error) {
    xpbd* solver = self;
    return solver->bodies != NULL ? rw_free_bodies_prepare(solver->bodies, state, error)
                                  : rw_fe_rods_prepare(solver->rods, error);
}

static void state_changed(void* self) {
    xpbd* solver = self;
    if (solver->bodies != NULL) {
        rw_joint_system_forget(rw_free_bodies_joints(solver->bodies));
    }
}

static rw_solver_fields fields(void* self) {
    xpbd* solver = self;
    return solver->rods != NULL ? rw_fe_rods_fields(solver->rods)
                                : rw_joint_system_fields(rw_free_bodies_joints(solver->bodies));
}

static rw_status begin(void* self, rw_step* step) {
    xpbd* solver = self;
    return solver->bodies != NULL ? rw_free_bodies_begin(solver->bodies, step)
                                  : rw_fe_rods_begin(solver->rods, step);
}

static rw_status sweep(void* self, rw_step* step, bool* done) {
    xpbd* solver = self;
    return solver->bodies != NULL ? rw_free_bodies_sweep(solver->bodies, step, done)
                                  : rw_fe_rods_sweep(solver->rods, step, done);
}

static rw_status respond(void* self, rw_step* step) {
    return rw_fe_rods_respond(((xpbd*)self)->rods, step);
}

static int32_t pair_capacity(void* self) {
    return rw_fe_rods_pair_count(((xpbd*)self)->rods);
}

static rw_status end(void* self, rw_step* step) {
    xpbd* solver = self;
    return solver->rods != NULL ? rw_fe_rods_end(solver->rods, step)
                                : rw_free_bodies_end(solver->bodies, step);
}

static void energy(void* self, const rw_state* state, rw_energy* sum) {
    xpbd* solver = self;
    *sum = (rw_energy){0};
    if (solver->rods != NULL) {
        rw_fe_rods_energy(solver->rods, state, sum);
    }
}

static void attachment_wrench(void* self, int32_t attachment, double wrench[6]) {
    rw_fe_rods_attachment_wrench(((xpbd*)self)->rods, attachment, wrench);
}

static void element_wrench(void* self, const rw_state* state, int32_t rod, int32_t element,
                           double wrench[6]) {
    rw_fe_rods_element_wrench(((xpbd*)self)->rods, state, rod, element, wrench);
}

static void rod_at(void* self, const rw_state* state, int32_t rod, double s, double position[3],
                   double rotation[4]) {
    rw_fe_rods_at(((xpbd*)self)->rods, state, rod, s, position, rotation);
}

static void node_rotation(void* self, const rw_state* state, int32_t rod, int32_t node,
                          double rotation[4]) {
    const xpbd* solver = self;
    int64_t first = rw_fe_rods_frame_first(solver->rods, rod);
    memcpy(rotation, &state->frame_rotation[4 * (first + node)], 4 * sizeof *rotation);
}

static double rod_energy(void* self, const rw_state* state, int32_t rod) {
    return rw_fe_rods_elastic_energy(((xpbd*)self)->rods, state, rod);
}

static double rod_length(void* self, const rw_state* state, int32_t rod) {
    return rw_fe_rods_length(((xpbd*)self)->rods, state, rod);
}

static double rod_max_strain(void* self, const rw_state* state, int32_t rod) {
    return rw_fe_rods_max_strain(((xpbd*)self)->rods, state, rod);
}

static double rod_residual(void* self, int32_t rod) {
    return rw_fe_rods_residual(((xpbd*)self)->rods, rod);
}

static double node_mass(void* self, int32_t node) {
    return rw_fe_rods_node_mass(((xpbd*)self)->rods, node);
}

static void rod_angular_momentum(void* self, const rw_state* state, int32_t rod,
                                 double momentum[3]) {
    rw_fe_rods_angular_momentum(((xpbd*)self)->rods, state, rod, momentum);
}

static rw_joint_system* joints_of(void* self) {
    return rw_free_bodies_joints(((xpbd*)self)->bodies);
}

static void joint_coordinate(void* self, const rw_state* state, int32_t joint, double* values) {
    rw_joint_system_coordinate(joints_of(self), state, joint, values);
}

static void joint_rate(void* self, const rw_state* state, int32_t joint, double* values) {
    rw_joint_system_rate(joints_of(self), state, joint, values);
}

static void joint_effort(void* self, int32_t joint, double* values) {
    rw_joint_system_effort(joints_of(self), joint, values);
}

static void joint_reaction(void* self, int32_t joint, double wrench[6]) {
    rw_joint_system_reaction(joints_of(self), joint, wrench);
}

static void joint_violation(void* self, const rw_state* state, int32_t joint, double violation[2]) {
    rw_joint_system_violation(joints_of(self), state, joint, violation);
}

static rw_status set_joint(void* self, rw_state* state, int32_t joint, const double* coordinate,
                           const double* rate, rw_error* error) {
    return rw_joint_system_set(joints_of(self), state, joint, coordinate, rate, error);
}

void rw_xpbd_set_full_quadrature(void* self, bool full) {
    rw_fe_rods_set_full_quadrature(((xpbd*)self)->rods, full);
}

const rw_solver_vtable* rw_xpbd_vtable(void) {
    static const rw_solver_vtable vtable = {
        .name = "xpbd",
        .roles = RW_ROLE_RIGID | RW_ROLE_RODS,
        .create = create,
        .destroy = destroy,
        .admit_joint = admit_joint,
        .admit_rod = admit_rod,
        .admit_attachment = admit_attachment,
        .init_frames = init_frames,
        .prepare = prepare,
        .state_changed = state_changed,
        .fields = fields,
        .begin = begin,
        .sweep = sweep,
        .respond = respond,
        .pair_capacity = pair_capacity,
        .end = end,
        .energy = energy,
        .joint_coordinate = joint_coordinate,
        .joint_rate = joint_rate,
        .joint_effort = joint_effort,
        .joint_reaction = joint_reaction,
        .joint_violation = joint_violation,
        .set_joint = set_joint,
        .attachment_wrench = attachment_wrench,
        .element_wrench = element_wrench,
        .rod_at = rod_at,
        .node_rotation = node_rotation,
        .rod_energy = rod_energy,
        .rod_length = rod_length,
        .rod_max_strain = rod_max_strain,
        .rod_residual = rod_residual,
        .node_mass = node_mass,
        .rod_angular_momentum = rod_angular_momentum,
    };
    return &vtable;
}
