#include "solvers/model/forces.h"

#include <math.h>
#include <string.h>

#include "solvers/math/quat.h"
#include "solvers/math/vec3.h"

// ---- Points ----

// Centre of mass to the point, world axes.
static rw_vec3 arm_of(const rw_model* model, const rw_state* state, int32_t body,
                      const double* position) {
    rw_vec3 local = rw_vec3_sub(rw_vec3_load(position),
                                rw_vec3_load(model->bodies.center_of_mass + 3 * body));
    return rw_quat_rotate(rw_quat_load(state->body_rotation + 4 * body), local);
}

static rw_vec3 world_spin(const rw_state* state, int32_t body) {
    return rw_quat_rotate(rw_quat_load(state->body_rotation + 4 * body),
                          rw_vec3_load(state->body_angular_velocity + 3 * body));
}

static int32_t node_row(const rw_model* model, int32_t rod, int32_t node) {
    return model->rods.items[rod].node_first + node;
}

static void locate(const rw_model* model, const rw_state* state, const rw_point* point,
                   rw_vec3* position, rw_vec3* velocity, rw_vec3* arm) {
    *arm = rw_vec3_zero();
    if (point->body >= 0) {
        *arm = arm_of(model, state, point->body, point->position);
        *position = rw_vec3_add(rw_vec3_load(state->body_position + 3 * point->body), *arm);
        *velocity = rw_vec3_add(rw_vec3_load(state->body_linear_velocity + 3 * point->body),
                                rw_vec3_cross(world_spin(state, point->body), *arm));
    } else if (point->rod >= 0) {
        int32_t row = node_row(model, point->rod, point->node);
        *position = rw_vec3_load(state->node_position + 3 * row);
        *velocity = rw_vec3_load(state->node_velocity + 3 * row);
    } else {
        *position = rw_vec3_load(point->position);
        *velocity = rw_vec3_zero();
    }
}

void rw_forces_point(const rw_model* model, const rw_state* state, const rw_point* point,
                     double position[3], double velocity[3]) {
    rw_vec3 x, v, arm;
    locate(model, state, point, &x, &v, &arm);
    if (position != NULL) {
        rw_vec3_store(position, x);
    }
    if (velocity != NULL) {
        rw_vec3_store(velocity, v);
    }
}

// ---- Springs ----

// s n n' + across (1 - n n'), as xx yy zz xy xz yz.
static void axial_tensor(double along, double across, rw_vec3 n, double out[6]) {
    double d = along - across;
    out[0] = across + d * n.x * n.x;
    out[1] = across + d * n.y * n.y;
    out[2] = across + d * n.z * n.z;
    out[3] = d * n.x * n.y;
    out[4] = d * n.x * n.z;
    out[5] = d * n.y * n.z;
}

void rw_forces_spring(const rw_model* model, const rw_state* state, int32_t force,
                      rw_spring* spring) {
    const rw_force* record = &model->forces.items[force];
    double k = record->desc.spring_damper.stiffness, c = record->desc.spring_damper.damping;
    rw_vec3 xa, xb, va, vb, arm_a, arm_b;
    locate(model, state, &record->a, &xa, &va, &arm_a);
    locate(model, state, &record->b, &xb, &vb, &arm_b);
    rw_vec3 between = rw_vec3_sub(xb, xa);
    double length = rw_vec3_norm(between);
    // Coinciding points have no line: the force of a spring with a rest length is undefined there
    // and taken as 0; without one it is 0.
    rw_vec3 n = rw_vec3_normalize(between);
    double rest = record->rest_length >= 0 ? record->rest_length : length;
    double stretch = length - rest;

    spring->a = record->a;
    spring->b = record->b;
    rw_vec3_store(spring->point_a, xa);
    rw_vec3_store(spring->point_b, xb);
    rw_vec3_store(spring->arm_a, arm_a);
    rw_vec3_store(spring->arm_b, arm_b);
    rw_vec3_store(spring->direction, n);
    spring->length = length;
    spring->rate = rw_vec3_dot(n, rw_vec3_sub(vb, va));
    spring->elastic_force = k * stretch;
    spring->tension = k * stretch + c * spring->rate;
    spring->energy = 0.5 * k * stretch * stretch;
    double across = rest == 0 ? k : length > 0 && stretch > 0 ? k * stretch / length : 0;
    axial_tensor(length > 0 ? k : across, across, n, spring->stiffness);
    axial_tensor(c, 0, n, spring->damping);
}

double rw_forces_spring_energy(const rw_model* model, const rw_state* state) {
    double sum = 0;
    for (int32_t i = 0; i < model->forces.count; i++) {
        if (model->forces.items[i].desc.kind == RW_FORCE_SPRING_DAMPER) {
            rw_spring spring;
            rw_forces_spring(model, state, i, &spring);
            sum += spring.energy;
        }
    }
    return sum;
}

// ---- Summing ----

static void add3(double* to, int32_t row, rw_vec3 value) {
    if (to != NULL) {
        rw_vec3_store(to + 3 * row, rw_vec3_add(rw_vec3_load(to + 3 * row), value));
    }
}

// A force and a moment at a point given by its arm from the centre of mass.
static void push_body(const rw_forces_output* output, int32_t body, rw_vec3 arm, rw_vec3 force,
                      rw_vec3 torque) {
    add3(output->body_force, body, force);
    add3(output->body_torque, body, rw_vec3_add(torque, rw_vec3_cross(arm, force)));
}

static void push_node(const rw_forces_output* output, int32_t row, rw_vec3 force, rw_vec3 torque) {
    add3(output->node_force, row, force);
    add3(output->node_torque, row, torque);
}

static void add_spring(const rw_model* model, const rw_state* state, int32_t i,
                       const rw_forces_output* output) {
    rw_spring spring;
    rw_forces_spring(model, state, i, &spring);
    rw_vec3 pull = rw_vec3_scale(rw_vec3_load(spring.direction), spring.tension);
    const rw_point* ends[2] = {&spring.a, &spring.b};
    const double* arms[2] = {spring.arm_a, spring.arm_b};
    for (int e = 0; e < 2; e++) {
        rw_vec3 force = e == 0 ? pull : rw_vec3_neg(pull);
        if (ends[e]->body >= 0) {
            push_body(output, ends[e]->body, rw_vec3_load(arms[e]), force, rw_vec3_zero());
        } else if (ends[e]->rod >= 0) {
            push_node(output, node_row(model, ends[e]->rod, ends[e]->node), force, rw_vec3_zero());
        }
    }
}

// A force and torque given in the world or in the frame of what it acts on.
static void add_wrench(const rw_model* model, const rw_state* state, rw_forces_frames frames,
                       const rw_point* at, rw_load_frame frame, rw_vec3 force, rw_vec3 torque,
                       const rw_forces_output* output) {
    if (at->body < 0 && output->node_force == NULL && output->node_torque == NULL) {
        return; // on a rod, and the caller asks for bodies: needs no frames either
    }
    if (frame == RW_LOAD_BODY) {
        double q[4];
        if (at->body >= 0) {
            memcpy(q, state->body_rotation + 4 * at->body, sizeof q);
        } else {
            frames.node_rotation(frames.self, state, at->rod, at->node, q);
        }
        force = rw_quat_rotate(rw_quat_load(q), force);
        torque = rw_quat_rotate(rw_quat_load(q), torque);
    }
    if (at->body >= 0) {
        push_body(output, at->body, arm_of(model, state, at->body, at->position), force, torque);
    } else {
        push_node(output, node_row(model, at->rod, at->node), force, torque);
    }
}

// Force -(c1 + c2 |v|) v at the centre of mass, v against the wind; torque -c3 omega.
static void add_drag(const rw_drive* drive, const rw_state* state, const rw_force* force,
                     const rw_forces_output* output) {
    int32_t body = force->a.body;
    rw_vec3 v = rw_vec3_sub(rw_vec3_load(state->body_linear_velocity + 3 * body),
                            rw_vec3_load(drive->wind));
    double factor = force->desc.drag.linear + force->desc.drag.quadratic * rw_vec3_norm(v);
    push_body(output, body, rw_vec3_zero(), rw_vec3_scale(v, -factor),
              rw_vec3_scale(world_spin(state, body), -force->desc.drag.angular));
}

static void clear(double* values, int32_t rows) {
    if (values != NULL && rows > 0) {
        memset(values, 0, (size_t)rows * 3 * sizeof *values);
    }
}

void rw_forces_evaluate(const rw_model* model, const rw_drive* drive, const rw_state* state,
                        rw_forces_frames frames, unsigned which, const rw_forces_output* output) {
    clear(output->body_force, model->bodies.count);
    clear(output->body_torque, model->bodies.count);
    clear(output->node_force, model->rods.node_count);
    clear(output->node_torque, model->rods.node_count);
    for (int32_t i = 0; i < model->forces.count; i++) {
        const rw_force* force = &model->forces.items[i];
        if (force->desc.kind == RW_FORCE_SPRING_DAMPER) {
            if ((which & RW_FORCES_SPRINGS) != 0) {
                add_spring(model, state, i, output);
            }
        } else if (force->desc.kind == RW_FORCE_DRAG) {
            if ((which & RW_FORCES_DRAG) != 0) {
                add_drag(drive, state, force, output);
            }
        } else if ((which & RW_FORCES_LOADS) != 0) {
            const double* added = drive->force_value + 6 * i;
            rw_vec3 f = rw_vec3_add(rw_vec3_load(force->desc.load.force), rw_vec3_load(added));
            rw_vec3 t = rw_vec3_add(rw_vec3_load(force->desc.load.torque), rw_vec3_load(added + 3));
            add_wrench(model, state, frames, &force->a, force->desc.load.frame, f, t, output);
        }
    }
    for (int32_t i = 0; i < model->applied.count && (which & RW_FORCES_LOADS) != 0; i++) {
        const rw_applied_wrench* wrench = &model->applied.items[i];
        rw_point at = {.body = wrench->body, .rod = wrench->rod, .node = wrench->node};
        memcpy(at.position, wrench->point, sizeof at.position);
        add_wrench(model, state, frames, &at, wrench->frame, rw_vec3_load(wrench->force),
                   rw_vec3_load(wrench->torque), output);
    }
}
