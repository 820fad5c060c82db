#include "solvers/scr/scr.h"

#include <math.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/rods.h"
#include "solvers/scr/scr_attach.h"
#include "solvers/scr/scr_prepare.h"
#include "solvers/scr/scr_signal.h"
#include "solvers/scr/scr_sweep.h"

static rw_status create(rw_model* model, rw_alloc* alloc, unsigned roles, void** self,
                        rw_error* error) {
    RW_ASSERT(roles == RW_ROLE_RODS);
    rw_scr* scr = rw_alloc_get(alloc, sizeof *scr);
    if (scr == NULL)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the rod solver");
    scr->model = model;
    scr->alloc = alloc;
    rw_arena_init(&scr->arena, alloc);
    *self = scr;
    return RW_STATUS_OK;
}

static void destroy(void* self) {
    rw_scr* scr = self;
    if (scr == NULL)
        return;
    rw_scr_prepare_finish(scr);
    rw_alloc_free(scr->alloc, scr);
}

static rw_status admit_joint(void* self, const rw_joint_desc* desc, rw_error* error) {
    (void)self;
    (void)desc;
    RW_FAIL(error, UNIMPLEMENTED, "type", "the scr solver moves rods, not joints");
}

static bool equal(double a, double b) {
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static rw_status admit_rod(void* self, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error) {
    (void)self;
    if (desc->method == RW_ROD_RIGID_CHAIN)
        RW_FAIL(error, UNIMPLEMENTED, "method", "the scr solver takes elements, not rigid chains");
    bool graph = desc->geometry == RW_ROD_GRAPH;
    bool needs_section =
        !graph || desc->graph.segment_stiffness.count == 0 || desc->graph.bend_stiffness.count == 0;
    // A radius tapers, but a circle is isotropic everywhere: one place tells.
    rw_rods_section section = rw_rods_section_at(desc, 0.0);
    if (needs_section && !equal(section.ei1, section.ei2))
        RW_FAIL(error, UNIMPLEMENTED, "stiffness",
                "the scr solver needs ei1 = ei2, got %g and %g (a circle or a square has it)",
                section.ei1, section.ei2);
    if (needs_section && desc->has_stiffness &&
        (!equal(section.ga1, section.ea) || !equal(section.ga2, section.ea) ||
         !equal(section.gj, section.ei1)))
        RW_FAIL(error, UNIMPLEMENTED, "stiffness",
                "the scr solver needs ga1 = ga2 = ea and gj = ei1");
    rw_rods_counts counts = rw_rods_count(desc);
    *frame_count = counts.segment_count;
    *element_count = counts.segment_count;
    return RW_STATUS_OK;
}

static rw_status admit_attachment(void* self, const rw_attachment_desc* desc, rw_error* error) {
    (void)self;
    if (desc->compliance > 0.0)
        RW_FAIL(error, UNIMPLEMENTED, "compliance", "the scr solver holds rigidly: must be 0");
    return RW_STATUS_OK;
}

static void init_frames(void* self, const rw_rod* rod, const double* node_positions,
                        const double* node_rotations, double* frames) {
    (void)self;
    for (int32_t i = 0; i < rod->frame_count; i++)
        rw_quat_store(frames + 4 * (int64_t)i,
                      rw_rods_segment_frame(&rod->desc, i, node_positions, node_rotations));
}

static rw_status prepare(void* self, const rw_state* state, rw_error* error) {
    (void)state;
    return rw_scr_prepare_all(self, error);
}

// Nothing that survives a step describes the state but the private fields, which are state.
static void state_changed(void* self) {
    (void)self;
}

static rw_solver_fields fields(void* self) {
    rw_scr* scr = self;
    return (rw_solver_fields){rw_scr_prepare_fields(), &scr->memory, scr->memory_counts};
}

static rw_status begin(void* self, rw_step* step) {
    rw_scr* scr = self;
    RW_ASSERT(scr->prepared);
    return rw_scr_sweep_begin(scr, step);
}

static rw_status sweep(void* self, rw_step* step, bool* done) {
    return rw_scr_sweep_run(self, step, done);
}

static rw_status respond(void* self, rw_step* step) {
    rw_scr_attach_respond(self, step);
    return RW_STATUS_OK;
}

static rw_status end(void* self, rw_step* step) {
    return rw_scr_sweep_end(self, step);
}

void rw_scr_set_damping(void* self, rw_scr_damping damping) {
    rw_scr* scr = self;
    scr->damping_kind = damping;
    scr->prepared = false;
}

const rw_solver_vtable* rw_scr_vtable(void) {
    static const rw_solver_vtable vtable = {
        .name = "scr",
        .roles = RW_ROLE_RODS,
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
        .end = end,
        .energy = rw_scr_signal_energy,
        .attachment_wrench = rw_scr_signal_attachment_wrench,
        .element_wrench = rw_scr_signal_element_wrench,
        .rod_at = rw_scr_signal_rod_at,
        .node_rotation = rw_scr_signal_node_rotation,
        .rod_energy = rw_scr_signal_rod_energy,
        .rod_length = rw_scr_signal_rod_length,
        .rod_max_strain = rw_scr_signal_rod_max_strain,
        .rod_residual = rw_scr_signal_rod_residual,
        .node_mass = rw_scr_signal_node_mass,
    };
    return &vtable;
}
