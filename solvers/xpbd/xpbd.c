#include "solvers/xpbd/xpbd.h"

#include <string.h>

#include "solvers/xpbd/free_bodies.h"

typedef struct xpbd {
    rw_alloc* alloc; // borrowed
    unsigned roles;
    rw_free_bodies* bodies; // NULL without the rigid role
} xpbd;

static rw_status create(rw_model* model, rw_alloc* alloc, unsigned roles, void** self,
                        rw_error* error) {
    xpbd* made = rw_alloc_get(alloc, sizeof *made);
    if (made == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the xpbd solver");
    }
    made->alloc = alloc;
    made->roles = roles;
    if ((roles & RW_ROLE_RIGID) != 0) {
        rw_status status = rw_free_bodies_create(model, alloc, &made->bodies, error);
        if (status != RW_STATUS_OK) {
            rw_alloc_free(alloc, made);
            return status;
        }
    }
    *self = made;
    return RW_STATUS_OK;
}

static void destroy(void* self) {
    xpbd* solver = self;
    if (solver != NULL) {
        rw_free_bodies_destroy(solver->bodies);
        rw_alloc_free(solver->alloc, solver);
    }
}

static rw_status admit_joint(void* self, const rw_joint_desc* desc, rw_error* error) {
    (void)self;
    (void)desc;
    RW_FAIL(error, UNIMPLEMENTED, "type", "joints are not served by the XPBD solver yet");
}

static rw_status admit_rod(void* self, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error) {
    (void)self;
    (void)desc;
    *frame_count = *element_count = 0;
    RW_FAIL(error, UNIMPLEMENTED, "",
            "rods are not served by the XPBD solver yet: choose solver.rods SCR");
}

static rw_status prepare(void* self, const rw_state* state, rw_error* error) {
    (void)state;
    xpbd* solver = self;
    return solver->bodies != NULL ? rw_free_bodies_prepare(solver->bodies, error) : RW_STATUS_OK;
}

static void state_changed(void* self) { (void)self; }

static rw_solver_fields fields(void* self) {
    (void)self;
    return (rw_solver_fields){0};
}

static rw_status begin(void* self, rw_step* step) {
    xpbd* solver = self;
    return solver->bodies != NULL ? rw_free_bodies_begin(solver->bodies, step) : RW_STATUS_OK;
}

static rw_status sweep(void* self, rw_step* step, bool* done) {
    xpbd* solver = self;
    *done = true;
    return solver->bodies != NULL ? rw_free_bodies_sweep(solver->bodies, step, done)
                                  : RW_STATUS_OK;
}

static rw_status end(void* self, rw_step* step) {
    (void)self;
    (void)step;
    return RW_STATUS_OK;
}

static void energy(void* self, const rw_state* state, rw_energy* sum) {
    (void)self;
    (void)state;
    *sum = (rw_energy){0};
}

const rw_solver_vtable* rw_xpbd_vtable(void) {
    static const rw_solver_vtable vtable = {
        .name = "xpbd",
        .roles = RW_ROLE_RIGID | RW_ROLE_RODS,
        .create = create,
        .destroy = destroy,
        .admit_joint = admit_joint,
        .admit_rod = admit_rod,
        .prepare = prepare,
        .state_changed = state_changed,
        .fields = fields,
        .begin = begin,
        .sweep = sweep,
        .end = end,
        .energy = energy,
    };
    return &vtable;
}
