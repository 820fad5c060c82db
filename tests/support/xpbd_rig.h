// Scenes for the tests of the xpbd solver: descriptions are added one by one, then made into a world
// that is stepped and read through its signals. Test code only.
#pragma once

#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/world/world.h"

enum { XPBD_RIG_MOST = 48 };

typedef struct xpbd_rig {
    rw_alloc account;
    rw_scene scene;
    rw_body_desc bodies[XPBD_RIG_MOST];
    rw_joint_desc joints[XPBD_RIG_MOST];
    rw_coupling_desc couplings[4];
    rw_rod_desc rods[XPBD_RIG_MOST];
    rw_attachment_desc attachments[XPBD_RIG_MOST];
    rw_force_desc forces[XPBD_RIG_MOST];
    rw_input_desc inputs[8];
    double radius[XPBD_RIG_MOST]; // of the rods
    double ramp_time[8][2], ramp_value[8][12];
    rw_world* world;
    rw_error error;
} xpbd_rig;

// A rig is large: it lives on the heap.
static inline xpbd_rig* xpbd_rig_open(double time_step, uint32_t iterations) {
    xpbd_rig* rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rw_alloc_init(&rig->account, 0);
    rw_scene_init(&rig->scene);
    rig->scene.time_step = time_step;
    rig->scene.solver.rigid = RW_SOLVER_XPBD;
    rig->scene.solver.rods = RW_SOLVER_XPBD;
    rig->scene.solver.xpbd.iterations = iterations;
    memset(rig->scene.gravity, 0, sizeof rig->scene.gravity);
    rig->scene.bodies = rig->bodies;
    rig->scene.joints = rig->joints;
    rig->scene.couplings = rig->couplings;
    rig->scene.rods = rig->rods;
    rig->scene.attachments = rig->attachments;
    rig->scene.forces = rig->forces;
    rig->scene.inputs = rig->inputs;
    return rig;
}

static inline void xpbd_rig_close(xpbd_rig* rig) {
    rw_world_destroy(rig->world);
    rw_alloc_finish(&rig->account);
    free(rig);
}

#define XPBD_RIG_NAME(desc, text) snprintf((desc)->name, sizeof(desc)->name, "%s", text)

static inline void xpbd_rig_gravity(xpbd_rig* rig, double x, double y, double z) {
    rig->scene.gravity[0] = x;
    rig->scene.gravity[1] = y;
    rig->scene.gravity[2] = z;
}

// ---- Adding -------------------------------------------------------------------------------------

static inline rw_body_desc* xpbd_rig_body(xpbd_rig* rig, const char* name, double mass,
                                          rw_vec3 inertia, rw_vec3 position) {
    rw_body_desc* body = &rig->bodies[rig->scene.body_count++];
    rw_scene_init_body(body);
    XPBD_RIG_NAME(body, name);
    body->mass = mass;
    body->has_mass = body->has_inertia = true;
    rw_vec3_store(body->inertia, inertia);
    rw_vec3_store(body->position, position);
    return body;
}

static inline const rw_body_desc* xpbd_rig_find_body(const xpbd_rig* rig, const char* name) {
    for (size_t i = 0; i < rig->scene.body_count; i++) {
        if (strcmp(rig->bodies[i].name, name) == 0) {
            return &rig->bodies[i];
        }
    }
    return NULL;
}

// A world frame in the frame of a body as it is described ("" is the world).
static inline rw_frame xpbd_rig_local(const xpbd_rig* rig, const char* body, rw_vec3 at,
                                      rw_quat axes) {
    rw_frame frame = RW_FRAME_IDENTITY;
    const rw_body_desc* found = xpbd_rig_find_body(rig, body);
    if (found != NULL) {
        rw_quat q = rw_quat_load(found->rotation);
        at = rw_quat_inverse_rotate(q, rw_vec3_sub(at, rw_vec3_load(found->position)));
        axes = rw_quat_conj_mul(q, axes);
    }
    rw_vec3_store(frame.position, at);
    rw_quat_store(frame.rotation, rw_quat_normalize(axes));
    return frame;
}

// A joint whose frames meet at the world point `at` with the world axes `axes`.
static inline rw_joint_desc* xpbd_rig_joint(xpbd_rig* rig, const char* name, rw_joint_type type,
                                            const char* parent, const char* child, rw_vec3 at,
                                            rw_quat axes) {
    rw_joint_desc* joint = &rig->joints[rig->scene.joint_count++];
    rw_scene_init_joint(joint);
    XPBD_RIG_NAME(joint, name);
    snprintf(joint->parent, sizeof joint->parent, "%s", parent);
    snprintf(joint->child, sizeof joint->child, "%s", child);
    joint->type = type;
    joint->parent_frame = xpbd_rig_local(rig, parent, at, axes);
    joint->child_frame = xpbd_rig_local(rig, child, at, axes);
    return joint;
}

// The rotation that takes z to a direction.
static inline rw_quat xpbd_rig_z_to(double x, double y, double z) {
    return rw_quat_between(rw_vec3_make(0, 0, 1),
                           rw_vec3_normalize_or(rw_vec3_make(x, y, z), rw_vec3_make(0, 0, 1)));
}

// A straight circular rod with density 0 to be filled in by the caller: nothing has a default here.
static inline rw_rod_desc* xpbd_rig_rod(xpbd_rig* rig, const char* name, uint32_t order,
                                        uint32_t elements, rw_vec3 start, rw_vec3 end,
                                        double radius, double density, double young,
                                        double poisson) {
    size_t index = rig->scene.rod_count++;
    rw_rod_desc* rod = &rig->rods[index];
    rw_scene_init_rod(rod);
    XPBD_RIG_NAME(rod, name);
    rod->geometry = RW_ROD_STRAIGHT;
    rod->order = order;
    rod->elements = elements;
    if (order == 0) {
        rod->method = RW_ROD_RIGID_CHAIN;
        rod->order = 1;
    }
    rw_vec3_store(rod->straight.start, start);
    rw_vec3_store(rod->straight.end, end);
    rig->radius[index] = radius;
    rod->section = RW_SECTION_CIRCLE;
    rod->section_radius = (rw_doubles){&rig->radius[index], 1};
    rod->density = density;
    rod->young_modulus = young;
    rod->poisson_ratio = poisson;
    rod->has_young_modulus = rod->has_poisson_ratio = true;
    return rod;
}

// Holds the node nearest to `s` of a rod to a body ("": the world) where it is.
static inline rw_attachment_desc* xpbd_rig_attach(xpbd_rig* rig, const char* name,
                                                  rw_attachment_kind kind, const char* rod,
                                                  double s, const char* body) {
    rw_attachment_desc* attachment = &rig->attachments[rig->scene.attachment_count++];
    rw_scene_init_attachment(attachment);
    XPBD_RIG_NAME(attachment, name);
    snprintf(attachment->rod, sizeof attachment->rod, "%s", rod);
    snprintf(attachment->body, sizeof attachment->body, "%s", body);
    attachment->kind = kind;
    attachment->s = s;
    attachment->has_s = true;
    return attachment;
}

// A dead force and moment at the node nearest to `s` of a rod.
static inline rw_force_desc* xpbd_rig_load(xpbd_rig* rig, const char* name, const char* rod,
                                           double s, rw_vec3 force, rw_vec3 torque) {
    rw_force_desc* load = &rig->forces[rig->scene.force_count++];
    rw_scene_init_force(load);
    XPBD_RIG_NAME(load, name);
    load->kind = RW_FORCE_LOAD;
    snprintf(load->load.at.rod, sizeof load->load.at.rod, "%s", rod);
    load->load.at.s = s;
    load->load.at.has_s = true;
    rw_vec3_store(load->load.force, force);
    rw_vec3_store(load->load.torque, torque);
    return load;
}

// ---- Running ------------------------------------------------------------------------------------

static inline rw_status xpbd_rig_try_start(xpbd_rig* rig) {
    rw_world_config config = {.alloc = &rig->account};
    return rw_world_create_from_scene(&config, &rig->scene, &rig->world, &rig->error);
}

static inline void xpbd_rig_start(xpbd_rig* rig) {
    if (xpbd_rig_try_start(rig) != RW_STATUS_OK) {
        fail_msg("%s: %s", rig->error.path, rig->error.text);
    }
}

static inline void xpbd_rig_run(xpbd_rig* rig, int64_t steps) {
    for (int64_t i = 0; i < steps; i++) {
        if (rw_world_step(rig->world, &rig->error) != RW_STATUS_OK) {
            fail_msg("%s", rig->error.text);
        }
    }
}

static inline void xpbd_rig_run_for(xpbd_rig* rig, double time_s) {
    xpbd_rig_run(rig, (int64_t)(time_s / rig->scene.time_step + 0.5));
}

// A signal of up to 12 doubles.
static inline void xpbd_rig_read(xpbd_rig* rig, const char* signal, double* values) {
    rw_signal_set set;
    const char* const globs[] = {signal};
    if (rw_world_resolve_signals(rig->world, globs, 1, &set, &rig->error) != RW_STATUS_OK ||
        rw_world_read_signals(rig->world, &set, values, &rig->error) != RW_STATUS_OK) {
        fail_msg("%s: %s", signal, rig->error.text);
    }
    rw_world_release_signals(rig->world, &set);
}

static inline rw_vec3 xpbd_rig_vector(xpbd_rig* rig, const char* signal) {
    double values[12];
    xpbd_rig_read(rig, signal, values);
    return rw_vec3_load(values);
}

static inline double xpbd_rig_scalar(xpbd_rig* rig, const char* signal) {
    double values[12];
    xpbd_rig_read(rig, signal, values);
    return values[0];
}

static inline double xpbd_rig_energy(xpbd_rig* rig) {
    rw_world_energy energy;
    if (rw_world_get_energy(rig->world, &energy, &rig->error) != RW_STATUS_OK) {
        fail_msg("%s", rig->error.text);
    }
    return energy.total;
}

// Position of a rod's node.
static inline rw_vec3 xpbd_rig_node(const xpbd_rig* rig, int32_t rod, int32_t node) {
    int64_t row = rw_world_model(rig->world)->rods.items[rod].node_first + node;
    return rw_vec3_load(&rw_world_state(rig->world)->node_position[3 * row]);
}

static inline rw_vec3 xpbd_rig_tip(const xpbd_rig* rig, int32_t rod) {
    return xpbd_rig_node(rig, rod, rw_world_model(rig->world)->rods.items[rod].node_count - 1);
}

// An input that takes the target linearly from zero to `value` (width doubles) in `time_s`.
static inline void xpbd_rig_ramp(xpbd_rig* rig, const char* target, double time_s,
                                 const double* value, size_t width) {
    size_t index = rig->scene.input_count++;
    rw_input_desc* input = &rig->inputs[index];
    rw_scene_init_input(input);
    snprintf(input->name, sizeof input->name, "input%zu", index);
    snprintf(input->target, sizeof input->target, "%s", target);
    input->kind = RW_INPUT_PIECEWISE_LINEAR;
    rig->ramp_time[index][1] = time_s;
    memcpy(&rig->ramp_value[index][width], value, width * sizeof *value);
    input->time = (rw_doubles){rig->ramp_time[index], 2};
    input->value = (rw_doubles){rig->ramp_value[index], 2 * width};
}

// Steps until no node of any rod moves by more than `speed` [m/s], nor turns by
// more than as many rad/s; fails after `most` steps.
static inline int64_t xpbd_rig_settle(xpbd_rig* rig, double speed, int64_t most) {

    for (int64_t i = 1; i <= most; i++) {
        xpbd_rig_run(rig, 1);
        const rw_state* state = rw_world_state(rig->world);
        double fastest = 0;
        for (int32_t n = 0; n < 3 * rw_world_model(rig->world)->rods.node_count; n++) {
            fastest = fmax(fastest, fabs(state->node_velocity[n]));
            fastest = fmax(fastest, fabs(state->frame_angular_velocity[n]));
        }
        if (fastest < speed) {
            return i;
        }
    }
    fail_msg("it still moves after %lld steps", (long long)most);
    return most;
}
