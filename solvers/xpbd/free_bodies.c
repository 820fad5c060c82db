#include "solvers/xpbd/free_bodies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/math/small_spd.h"
#include "solvers/math/vec3.h"
#include "solvers/model/forces.h"
#include "solvers/model/kinematics.h"
#include "solvers/xpbd/joint_system.h"

#define SWEEPS_MAXIMUM 100
#define NEWTON_STEPS 4
#define SETTLED 4e-16 // relative size of a correction that no longer matters

// A spring between two places of which at least one is a dynamic body.
typedef struct spring_link {
    int32_t force;
    int32_t a, b;        // dynamic body at either end, or -1
    bool is_lagged;      // touches a rod: evaluated at the start of the substep, as the rod sees it
    double stiffness[6]; // of the present stage, with damping; xx yy zz xy xz yz
    double arm_a[3], arm_b[3];
} spring_link;

struct rw_free_bodies {
    rw_model* model; // borrowed
    rw_alloc* alloc; // borrowed
    int32_t capacity;
    spring_link* links;
    int32_t link_count, link_capacity;
    rw_joint_system* joints;
    bool has_stage_forces; // loads or drag on bodies
    int32_t sweep_count;   // of the present substep

    // Per body.
    double* turn;   // h wm, body frame at the start [rad] (n x 3)
    double* theta;  // 1/2 or 1 (n)
    double* mean;   // velocity of the stage [m/s] (n x 3)
    double* force;  // of the stage, without gravity, world [N] (n x 3)
    double* torque; // of the stage about the centre of mass, world [N m] (n x 3)
    rw_state stage; // body rows own; node rows borrowed from `from`
    // Newton system in (dx, dtheta) of the end pose, world axes (n x 6, blocks n x 36).
    double* block;
    double* factor; // LDL' of the blocks
    double* residual;
    double* correction;
    double* direction;
    double* product;
    double* preconditioned;
};

// ---- Life --------------------------------------------------------------------------------------

rw_status rw_free_bodies_create(rw_model* model, rw_alloc* alloc, rw_free_bodies** bodies,
                                rw_error* error) {
    rw_free_bodies* self = rw_alloc_get(alloc, sizeof *self);
    if (self == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the body integrator");
    }
    self->model = model;
    self->alloc = alloc;
    rw_status status = rw_joint_system_create(model, alloc, &self->joints, error);
    if (status != RW_STATUS_OK) {
        rw_alloc_free(alloc, self);
        return status;
    }
    *bodies = self;
    return RW_STATUS_OK;
}

rw_joint_system* rw_free_bodies_joints(rw_free_bodies* self) {
    return self->joints;
}

// Every array, with its width, for allocation and release alike.
typedef struct array_slot {
    double** array;
    size_t width;
} array_slot;

#define ARRAY_COUNT 16

static void list_arrays(rw_free_bodies* self, array_slot slots[ARRAY_COUNT]) {
    const array_slot list[ARRAY_COUNT] = {
        {&self->turn, 3},
        {&self->theta, 1},
        {&self->mean, 3},
        {&self->force, 3},
        {&self->torque, 3},
        {&self->stage.body_position, 3},
        {&self->stage.body_rotation, 4},
        {&self->stage.body_linear_velocity, 3},
        {&self->stage.body_angular_velocity, 3},
        {&self->block, 36},
        {&self->factor, 36},
        {&self->residual, 6},
        {&self->correction, 6},
        {&self->direction, 6},
        {&self->product, 6},
        {&self->preconditioned, 6},
    };
    memcpy(slots, list, sizeof list);
}

void rw_free_bodies_destroy(rw_free_bodies* self) {
    if (self == NULL) {
        return;
    }
    array_slot slots[ARRAY_COUNT];
    list_arrays(self, slots);
    for (int i = 0; i < ARRAY_COUNT; i++) {
        rw_alloc_free(self->alloc, *slots[i].array);
    }
    rw_alloc_free(self->alloc, self->links);
    rw_joint_system_destroy(self->joints);
    rw_alloc_free(self->alloc, self);
}

static bool is_dynamic(const rw_model* model, int32_t body) {
    return body >= 0 && model->bodies.kind[body] == RW_BODY_DYNAMIC;
}

// Which forces depend on where the bodies are: they have to be evaluated at the stage.
static void sort_forces(rw_free_bodies* self) {
    const rw_model* model = self->model;
    self->link_count = 0;
    self->has_stage_forces = false;
    for (int32_t i = 0; i < model->forces.count; i++) {
        const rw_force* force = &model->forces.items[i];
        if (force->desc.kind != RW_FORCE_SPRING_DAMPER) {
            self->has_stage_forces |= is_dynamic(model, force->a.body);
            continue;
        }
        spring_link link = {.force = i, .a = -1, .b = -1};
        link.a = is_dynamic(model, force->a.body) ? force->a.body : -1;
        link.b = is_dynamic(model, force->b.body) ? force->b.body : -1;
        link.is_lagged = force->a.rod >= 0 || force->b.rod >= 0;
        if (link.a >= 0 || link.b >= 0) {
            self->links[self->link_count++] = link;
        }
    }
}

rw_status rw_free_bodies_prepare(rw_free_bodies* self, const rw_state* state, rw_error* error) {
    const rw_model* model = self->model;
    if (model->bodies.count > self->capacity) {
        array_slot slots[ARRAY_COUNT];
        list_arrays(self, slots);
        for (int i = 0; i < ARRAY_COUNT; i++) {
            double* grown = rw_alloc_array(self->alloc, (size_t)model->bodies.capacity,
                                           slots[i].width * sizeof(double));
            if (grown == NULL) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to integrate %d bodies",
                        model->bodies.count);
            }
            rw_alloc_free(self->alloc, *slots[i].array);
            *slots[i].array = grown;
        }
        self->capacity = model->bodies.capacity;
    }
    if (model->forces.count > self->link_capacity) {
        spring_link* links =
            rw_alloc_array(self->alloc, (size_t)model->forces.capacity, sizeof *links);
        if (links == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %d forces", model->forces.count);
        }
        rw_alloc_free(self->alloc, self->links);
        self->links = links;
        self->link_capacity = model->forces.capacity;
    }
    sort_forces(self);
    return rw_joint_system_prepare(self->joints, state, error);
}

// ---- One body ----------------------------------------------------------------------------------

typedef struct body_constants {
    rw_mat3 inertia; // body axes
    rw_vec3 omega;   // at the start, body frame
    double theta, h;
} body_constants;

// The end's angular velocity for u = h (theta w' + (1 - theta) w).
static rw_vec3 end_omega(const body_constants* c, rw_vec3 u) {
    rw_vec3 stage = rw_vec3_scale(u, 1 / c->h);
    return rw_vec3_scale(rw_vec3_sub(stage, rw_vec3_scale(c->omega, 1 - c->theta)), 1 / c->theta);
}

static rw_vec3 mean_omega(const body_constants* c, rw_vec3 u) {
    return rw_vec3_scale(rw_vec3_add(c->omega, end_omega(c, u)), 0.5);
}

// J (w' - w) - h (J wg) x wg - h (I - u^/2) torque, with wg = (w + w')/2, torque in the body frame.
static rw_vec3 rotation_residual(const body_constants* c, rw_vec3 u, rw_vec3 torque) {
    rw_vec3 change = rw_mat3_apply(&c->inertia, rw_vec3_sub(end_omega(c, u), c->omega));
    rw_vec3 mean = mean_omega(c, u);
    rw_vec3 gyroscopic = rw_vec3_cross(rw_mat3_apply(&c->inertia, mean), mean);
    rw_vec3 impulse = rw_vec3_sub(torque, rw_vec3_scale(rw_vec3_cross(u, torque), 0.5));
    return rw_vec3_sub(change, rw_vec3_scale(rw_vec3_add(gyroscopic, impulse), c->h));
}

// Solves the rotation equation for u = h wm at a constant torque, by Newton from `u`. Steps end when
// one was so small that the next is below rounding.
static rw_vec3 solve_rotation(const body_constants* c, rw_vec3 u, rw_vec3 torque) {
    double moved = INFINITY;
    for (int i = 0; i < NEWTON_STEPS && moved > 1e-10; i++) {
        rw_vec3 mean = mean_omega(c, u);
        rw_mat3 spin = rw_mat3_hat(mean);
        rw_mat3 momentum = rw_mat3_hat(rw_mat3_apply(&c->inertia, mean));
        rw_mat3 twist = rw_mat3_hat(torque);
        // d/du: J/(theta h) - ((J wg)^ - wg^ J) / (2 theta) - h/2 torque^
        rw_mat3 slope = rw_mat3_sub(rw_mat3_mul(spin, c->inertia), momentum);
        slope = rw_mat3_scale(slope, 0.5 / c->theta);
        slope = rw_mat3_add(slope, rw_mat3_scale(c->inertia, 1 / (c->theta * c->h)));
        slope = rw_mat3_sub(slope, rw_mat3_scale(twist, c->h / 2));
        rw_mat3 inverse = rw_mat3_inverse(slope);
        rw_vec3 step = rw_mat3_apply(&inverse, rotation_residual(c, u, torque));
        u = rw_vec3_sub(u, step);
        moved = rw_vec3_max_abs(step);
    }
    return u;
}

static body_constants constants_of(const rw_free_bodies* self, const rw_step* step, int32_t i) {
    return (body_constants){
        .inertia = rw_mat3_symmetric(&self->model->bodies.inertia[6 * i]),
        .omega = rw_vec3_load(&step->from->body_angular_velocity[3 * i]),
        .theta = self->theta[i],
        .h = step->h,
    };
}

// Writes the end pose's rotation and angular velocity from u.
static void store_rotation(rw_free_bodies* self, rw_step* step, int32_t i, rw_vec3 u) {
    body_constants c = constants_of(self, step, i);
    rw_quat q = rw_quat_load(&step->from->body_rotation[4 * i]);
    rw_vec3_store(&self->turn[3 * i], u);
    rw_quat_store(&step->to->body_rotation[4 * i],
                  rw_quat_normalize(rw_quat_mul(q, rw_quat_cayley(u))));
    rw_vec3_store(&step->to->body_angular_velocity[3 * i], end_omega(&c, u));
}

// Writes the end position that the end velocity leads to. Velocities are the unknowns, so that they
// do not inherit the rounding of a difference of positions.
static void store_position(rw_free_bodies* self, rw_step* step, int32_t i) {
    double theta = self->theta[i];
    rw_vec3 start = rw_vec3_load(&step->from->body_linear_velocity[3 * i]);
    rw_vec3 end = rw_vec3_load(&step->to->body_linear_velocity[3 * i]);
    rw_vec3 mean = rw_vec3_add(rw_vec3_scale(start, 1 - theta), rw_vec3_scale(end, theta));
    rw_vec3_store(&self->mean[3 * i], mean);
    rw_vec3_store(
        &step->to->body_position[3 * i],
        rw_vec3_add_scaled(rw_vec3_load(&step->from->body_position[3 * i]), step->h, mean));
}

static rw_vec3 stage_gravity(const rw_step* step, double theta) {
    rw_vec3 start = rw_vec3_load(step->drive_from->gravity);
    rw_vec3 end = rw_vec3_load(step->drive_to->gravity);
    return rw_vec3_add(rw_vec3_scale(start, 1 - theta), rw_vec3_scale(end, theta));
}

rw_status rw_free_bodies_begin(rw_free_bodies* self, rw_step* step) {
    const rw_model* model = self->model;
    self->sweep_count = 0;
    rw_kinematics_advance(model, step->drive_to, step->from, step->to, step->h);
    rw_joint_system_begin(self->joints, step);
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (!is_dynamic(model, i)) {
            self->theta[i] = 0.5;
            continue;
        }
        bool is_held = step->responses[i].active || rw_joint_system_holds(self->joints, i);
        self->theta[i] = is_held ? 1 : 0.5;
        // What is held starts where it would coast to: at rest that is the equilibrium itself.
        double h = step->h;
        rw_vec3 v = rw_vec3_load(&step->from->body_linear_velocity[3 * i]);
        rw_vec3 acceleration = rw_vec3_zero(), torque = rw_vec3_zero();
        if (!is_held) {
            acceleration = rw_vec3_add_scaled(stage_gravity(step, self->theta[i]),
                                              model->bodies.inverse_mass[i],
                                              rw_vec3_load(&step->body_force[3 * i]));
            torque = rw_quat_inverse_rotate(rw_quat_load(&step->from->body_rotation[4 * i]),
                                            rw_vec3_load(&step->body_torque[3 * i]));
        }
        rw_vec3_store(&step->to->body_linear_velocity[3 * i],
                      rw_vec3_add_scaled(v, h, acceleration));
        store_position(self, step, i);
        body_constants c = constants_of(self, step, i);
        store_rotation(self, step, i, solve_rotation(&c, rw_vec3_scale(c.omega, h), torque));
    }
    return RW_STATUS_OK;
}

// ---- All bodies together -----------------------------------------------------------------------

// Pose and velocity of every body at the stage.
static void fill_stage(rw_free_bodies* self, const rw_step* step) {
    const rw_state* from = step->from;
    rw_state* stage = &self->stage;
    for (int32_t i = 0; i < self->model->bodies.count; i++) {
        double theta = self->theta[i];
        rw_vec3 x = rw_vec3_load(&from->body_position[3 * i]);
        rw_vec3 x_end = rw_vec3_load(&step->to->body_position[3 * i]);
        rw_quat q = rw_quat_load(&from->body_rotation[4 * i]);
        rw_quat q_end = rw_quat_load(&step->to->body_rotation[4 * i]);
        bool is_driven = !is_dynamic(self->model, i);
        q_end = rw_quat_dot(q, q_end) < 0 ? rw_quat_neg(q_end) : q_end;
        rw_vec3_store(&stage->body_position[3 * i],
                      rw_vec3_add_scaled(x, theta, rw_vec3_sub(x_end, x)));
        rw_vec3_store(&stage->body_linear_velocity[3 * i],
                      is_driven ? rw_vec3_load(&step->to->body_linear_velocity[3 * i])
                                : rw_vec3_load(&self->mean[3 * i]));
        rw_quat_store(&stage->body_rotation[4 * i],
                      theta == 1 ? q_end : rw_quat_normalize(rw_quat_add(q, q_end)));
        rw_vec3_store(&stage->body_angular_velocity[3 * i],
                      is_driven ? rw_vec3_load(&step->to->body_angular_velocity[3 * i])
                                : rw_vec3_scale(rw_vec3_load(&self->turn[3 * i]), 1 / step->h));
    }
    stage->node_position = from->node_position;
    stage->node_velocity = from->node_velocity;
    stage->frame_rotation = from->frame_rotation;
    stage->frame_angular_velocity = from->frame_angular_velocity;
}

static void add_wrench(double* force, double* torque, int32_t body, rw_vec3 arm, rw_vec3 f) {
    if (body >= 0) {
        double* sum = &force[3 * body];
        rw_vec3_store(sum, rw_vec3_add(rw_vec3_load(sum), f));
        double* moment = &torque[3 * body];
        rw_vec3_store(moment, rw_vec3_add(rw_vec3_load(moment), rw_vec3_cross(arm, f)));
    }
}

// Forces and torques of the stage; the springs' tangents.
static void evaluate_stage(rw_free_bodies* self, const rw_step* step) {
    const rw_forces_output output = {.body_force = self->force, .body_torque = self->torque};
    rw_forces_evaluate(self->model, step->drive_to, &self->stage, (rw_forces_frames){0},
                       RW_FORCES_LOADS | RW_FORCES_DRAG, &output);
    for (int32_t k = 0; k < self->link_count; k++) {
        spring_link* link = &self->links[k];
        rw_spring spring;
        rw_forces_spring(self->model, link->is_lagged ? step->from : &self->stage, link->force,
                         &spring);
        rw_vec3 pull = rw_vec3_scale(rw_vec3_load(spring.direction), spring.tension);
        rw_vec3 arm_a = rw_vec3_load(spring.arm_a), arm_b = rw_vec3_load(spring.arm_b);
        add_wrench(self->force, self->torque, link->a, arm_a, pull);
        add_wrench(self->force, self->torque, link->b, arm_b, rw_vec3_neg(pull));
        memcpy(link->arm_a, spring.arm_a, sizeof link->arm_a);
        memcpy(link->arm_b, spring.arm_b, sizeof link->arm_b);
        // Per metre of the stage's displacement, which at theta = 1/2 is half the end's and goes
        // with twice its rate.
        double theta = link->a >= 0 ? self->theta[link->a] : self->theta[link->b];
        for (int i = 0; i < 6; i++) {
            link->stiffness[i] =
                link->is_lagged ? 0 : spring.stiffness[i] + spring.damping[i] / (theta * step->h);
        }
    }
}

// Adds weight * [I, -arm^]' K [I, -arm^] to the 6x6 block.
static void add_point_stiffness(double* block, const double stiffness[6], const double arm[3],
                                double weight) {
    rw_mat3 k = rw_mat3_scale(rw_mat3_symmetric(stiffness), weight);
    rw_mat3 hat = rw_mat3_hat(rw_vec3_load(arm));
    rw_mat3 k_hat = rw_mat3_mul(k, hat);                         // -(upper right)
    rw_mat3 corner = rw_mat3_mul(rw_mat3_transpose(hat), k_hat); // hat' K hat
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            block[6 * r + c] += k.m[r][c];
            block[6 * r + c + 3] -= k_hat.m[r][c];
            block[6 * (c + 3) + r] -= k_hat.m[r][c];
            block[6 * (r + 3) + c + 3] += corner.m[r][c];
        }
    }
}

// Residual theta * (force balance) and block of one body; world axes, per end displacement.
static void assemble_body(rw_free_bodies* self, const rw_step* step, int32_t i) {
    const rw_bodies* bodies = &self->model->bodies;
    const rw_body_response* response = &step->responses[i];
    double h = step->h, theta = self->theta[i], mass = bodies->mass[i];
    rw_quat q = rw_quat_load(&step->from->body_rotation[4 * i]);
    rw_vec3 force = rw_vec3_load(&self->force[3 * i]);
    rw_vec3 torque = rw_vec3_load(&self->torque[3 * i]);
    if (response->active) {
        force = rw_vec3_add(force, rw_vec3_load(response->force));
        torque = rw_vec3_add(torque, rw_vec3_load(response->torque));
    }
    force = rw_vec3_add_scaled(force, mass, stage_gravity(step, theta));
    rw_vec3 change = rw_vec3_sub(rw_vec3_load(&step->to->body_linear_velocity[3 * i]),
                                 rw_vec3_load(&step->from->body_linear_velocity[3 * i]));
    rw_vec3 lack = rw_vec3_sub(force, rw_vec3_scale(change, mass / h));
    rw_vec3_store(&self->residual[6 * i], rw_vec3_scale(lack, theta));

    body_constants c = constants_of(self, step, i);
    rw_vec3 spin_lack =
        rotation_residual(&c, rw_vec3_load(&self->turn[3 * i]), rw_quat_inverse_rotate(q, torque));
    rw_vec3_store(&self->residual[6 * i + 3],
                  rw_vec3_scale(rw_quat_rotate(q, spin_lack), -theta / h));

    double* block = &self->block[36 * i];
    memset(block, 0, 36 * sizeof *block);
    rw_mat3 turn = rw_quat_to_mat3(q);
    rw_mat3 inertia = rw_mat3_mul_transpose(rw_mat3_mul(turn, c.inertia), turn);
    for (int r = 0; r < 3; r++) {
        block[7 * r] = mass / (h * h);
        for (int k = 0; k < 3; k++) {
            block[6 * (r + 3) + k + 3] = inertia.m[r][k] / (h * h);
        }
    }
    if (response->active) {
        const double* entry = response->stiffness;
        for (int r = 0; r < 6; r++) {
            for (int k = 0; k <= r; k++, entry++) {
                block[6 * r + k] += theta * *entry;
                if (k != r) {
                    block[6 * k + r] += theta * *entry;
                }
            }
        }
    }
}

// Displacement of a link's end point by a body's increment.
static rw_vec3 point_of(const double* increment, const double arm[3]) {
    return rw_vec3_add(rw_vec3_load(increment),
                       rw_vec3_cross(rw_vec3_load(increment + 3), rw_vec3_load(arm)));
}

static void add_point_force(double* product, const double arm[3], rw_vec3 f) {
    rw_vec3_store(product, rw_vec3_add(rw_vec3_load(product), f));
    rw_vec3_store(product + 3,
                  rw_vec3_add(rw_vec3_load(product + 3), rw_vec3_cross(rw_vec3_load(arm), f)));
}

// out += weight * stiffness * in, 6x6 by 6; transposed where asked.
static void add_product(double* out, const double* stiffness, const double* in, double weight,
                        bool transposed) {
    for (int r = 0; r < 6; r++) {
        for (int k = 0; k < 6; k++) {
            out[r] += weight * stiffness[transposed ? 6 * k + r : 6 * r + k] * in[k];
        }
    }
}

// Couplings of different bodies, by rods and by springs, times `in`, added to `out`.
typedef struct coupling_context {
    const rw_free_bodies* self;
    const rw_step* step;
} coupling_context;

static void add_couplings(void* context, const double* in, double* out) {
    const rw_free_bodies* self = ((const coupling_context*)context)->self;
    const rw_step* step = ((const coupling_context*)context)->step;
    for (int32_t k = 0; k < step->pair_count; k++) {
        const rw_body_pair* pair = &step->pairs[k];
        double theta = self->theta[pair->a]; // both are 1: rods hang on them
        add_product(&out[6 * pair->a], pair->stiffness, &in[6 * pair->b], theta, false);
        add_product(&out[6 * pair->b], pair->stiffness, &in[6 * pair->a], theta, true);
    }
    for (int32_t k = 0; k < self->link_count; k++) {
        const spring_link* link = &self->links[k];
        if (link->a < 0 || link->b < 0 || link->is_lagged) {
            continue;
        }
        double weight = -self->theta[link->a] * self->theta[link->b];
        rw_mat3 stiffness = rw_mat3_scale(rw_mat3_symmetric(link->stiffness), weight);
        rw_vec3 at_a = point_of(&in[6 * link->a], link->arm_a);
        rw_vec3 at_b = point_of(&in[6 * link->b], link->arm_b);
        add_point_force(&out[6 * link->a], link->arm_a, rw_mat3_apply(&stiffness, at_b));
        add_point_force(&out[6 * link->b], link->arm_b, rw_mat3_apply(&stiffness, at_a));
    }
}

// A bound on the rank of the couplings.
static int32_t coupling_rank(const rw_free_bodies* self, const rw_step* step) {
    int32_t rank = 6 * step->pair_count;
    for (int32_t k = 0; k < self->link_count; k++) {
        const spring_link* link = &self->links[k];
        rank += link->a >= 0 && link->b >= 0 && !link->is_lagged ? 3 : 0;
    }
    return rank;
}

// product = A direction: the bodies' blocks (springs' own parts included), then the couplings.
static void multiply(const rw_free_bodies* self, const rw_step* step) {
    int32_t count = self->model->bodies.count;
    for (int32_t i = 0; i < count; i++) {
        const double* block = &self->block[36 * i];
        const double* x = &self->direction[6 * i];
        for (int r = 0; r < 6; r++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += block[6 * r + k] * x[k];
            }
            self->product[6 * i + r] = sum;
        }
    }
    coupling_context context = {self, step};
    add_couplings(&context, self->direction, self->product);
}

static double dot(const double* a, const double* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void precondition(const rw_free_bodies* self) {
    for (int32_t i = 0; i < self->model->bodies.count; i++) {
        double* out = &self->preconditioned[6 * i];
        memcpy(out, &self->residual[6 * i], 6 * sizeof *out);
        if (is_dynamic(self->model, i)) {
            rw_small_spd_solve(6, &self->factor[36 * i], out);
        }
    }
}

// Conjugate gradients with the bodies' blocks as preconditioner: exact after one iteration without
// springs between bodies, after at most three per spring with them.
static void solve(rw_free_bodies* self, const rw_step* step) {
    int64_t count = 6 * (int64_t)self->model->bodies.count;
    int64_t limit = 4 + (int64_t)coupling_rank(self, step);
    limit = limit > 1000 ? 1000 : limit;
    memset(self->correction, 0, (size_t)count * sizeof(double));
    precondition(self);
    memcpy(self->direction, self->preconditioned, (size_t)count * sizeof(double));
    double rho = dot(self->residual, self->preconditioned, count), first = rho;
    for (int64_t k = 0; k < limit && rho > 1e-28 * first && rho > 0; k++) {
        multiply(self, step);
        double curvature = dot(self->direction, self->product, count);
        if (!(curvature > 0)) {
            break;
        }
        double alpha = rho / curvature;
        for (int64_t i = 0; i < count; i++) {
            self->correction[i] += alpha * self->direction[i];
            self->residual[i] -= alpha * self->product[i];
        }
        precondition(self);
        double next = dot(self->residual, self->preconditioned, count);
        for (int64_t i = 0; i < count; i++) {
            self->direction[i] = self->preconditioned[i] + next / rho * self->direction[i];
        }
        rho = next;
    }
}

// Applies the correction; returns its largest size relative to the motion of the step and the
// place in the world.
static double apply(rw_free_bodies* self, rw_step* step) {
    double largest = 0;
    for (int32_t i = 0; i < self->model->bodies.count; i++) {
        if (!is_dynamic(self->model, i)) {
            continue;
        }
        const double* correction = &self->correction[6 * i];
        rw_vec3 moved = rw_vec3_load(correction);
        rw_vec3 x = rw_vec3_load(&step->to->body_position[3 * i]);
        double* velocity = &step->to->body_linear_velocity[3 * i];
        rw_vec3_store(velocity, rw_vec3_add_scaled(rw_vec3_load(velocity),
                                                   1 / (self->theta[i] * step->h), moved));
        store_position(self, step, i);

        // The world increment dtheta of the end pose as an increment of u: to the body frame, then
        // the inverse of the Cayley map's right derivative.
        rw_quat q_end = rw_quat_load(&step->to->body_rotation[4 * i]);
        rw_vec3 turn = rw_quat_inverse_rotate(q_end, rw_vec3_load(correction + 3));
        rw_vec3 u = rw_vec3_load(&self->turn[3 * i]);
        rw_vec3 du = rw_vec3_add(turn, rw_vec3_scale(rw_vec3_cross(u, turn), 0.5));
        du = rw_vec3_add_scaled(du, 0.25 * rw_vec3_dot(u, turn), u);
        store_rotation(self, step, i, rw_vec3_add(u, du));

        double linear = rw_vec3_max_abs(moved) / (1 + rw_vec3_max_abs(x));
        double angular = rw_vec3_max_abs(turn);
        largest = linear > largest ? linear : largest;
        largest = angular > largest ? angular : largest;
        if (!isfinite(linear) || !isfinite(angular)) {
            return INFINITY;
        }
    }
    return largest;
}

rw_status rw_free_bodies_sweep(rw_free_bodies* self, rw_step* step, bool* done) {
    const rw_model* model = self->model;
    bool has_response = false;
    for (int32_t i = 0; i < model->bodies.count; i++) {
        has_response |= step->responses[i].active;
    }
    bool has_stage_forces = self->has_stage_forces || model->applied.count > 0;
    bool has_joints = rw_joint_system_is_active(self->joints);
    if (!has_response && !has_stage_forces && self->link_count == 0 && !has_joints) {
        *done = true;
        return RW_STATUS_OK;
    }
    fill_stage(self, step);
    evaluate_stage(self, step);
    memset(self->block, 0, (size_t)model->bodies.count * 36 * sizeof(double));
    memset(self->residual, 0, (size_t)model->bodies.count * 6 * sizeof(double));
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (is_dynamic(model, i)) {
            assemble_body(self, step, i);
        }
    }
    for (int32_t k = 0; k < self->link_count; k++) {
        const spring_link* link = &self->links[k];
        if (link->a >= 0) {
            add_point_stiffness(&self->block[36 * link->a], link->stiffness, link->arm_a,
                                self->theta[link->a] * self->theta[link->a]);
        }
        if (link->b >= 0) {
            add_point_stiffness(&self->block[36 * link->b], link->stiffness, link->arm_b,
                                self->theta[link->b] * self->theta[link->b]);
        }
    }
    if (has_joints) {
        coupling_context context = {self, step};
        rw_joint_system_coupling coupling = {add_couplings, &context, coupling_rank(self, step)};
        memcpy(self->correction, self->residual, (size_t)model->bodies.count * 6 * sizeof(double));
        RW_TRY(rw_joint_system_solve(self->joints, step, self->block, coupling, self->correction));
    } else {
        memcpy(self->factor, self->block, (size_t)model->bodies.count * 36 * sizeof(double));
        for (int32_t i = 0; i < model->bodies.count; i++) {
            if (is_dynamic(model, i)) {
                rw_small_spd_factor(6, &self->factor[36 * i], 0);
            }
        }
        solve(self, step);
    }
    double size = apply(self, step);
    self->sweep_count++;

    // With rods one Newton step per sweep: they move in turn, and say when it is enough. With joints
    // as many as the scene asks for.
    *done = size <= SETTLED || (self->sweep_count >= 12 && size <= 1e-13);
    *done = *done || (has_joints ? self->sweep_count >= (int32_t)model->solver.xpbd.iterations
                                 : has_response);
    if (!isfinite(size) || (self->sweep_count >= SWEEPS_MAXIMUM && !has_joints && !*done)) {
        step->fault->raised = true;
        snprintf(step->fault->object, sizeof step->fault->object, "bodies");
        snprintf(step->fault->stage, sizeof step->fault->stage, "implicit midpoint");
        snprintf(step->fault->text, sizeof step->fault->text,
                 "does not converge: a correction of %g after %d iterations", size,
                 self->sweep_count);
        return RW_STATUS_FAULTED;
    }
    return RW_STATUS_OK;
}

rw_status rw_free_bodies_end(rw_free_bodies* self, rw_step* step) {
    rw_joint_system_end(self->joints, step);
    return RW_STATUS_OK;
}
