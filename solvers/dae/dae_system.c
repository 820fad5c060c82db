#include "solvers/dae/dae_system.h"

#include <math.h>
#include <string.h>

#include "solvers/dae/dae_compile.h"
#include "solvers/dae/dae_effort.h"
#include "solvers/math/so3.h"
#include "solvers/model/forces.h"

// Rounds that remove the bias of the regularisation (dae_compile.c).
#define REFINEMENTS 2
#define DRIVE_DIFFERENCE_S 1e-5

// The pose of a body of any kind in `state`.
static rw_joint_pose pose_in(const rw_state* state, int32_t b) {
    rw_quat q = rw_quat_normalize(rw_quat_load(state->body_rotation + 4 * b));
    rw_joint_pose pose = {.position = rw_vec3_load(state->body_position + 3 * b),
                        .rotation = rw_quat_to_mat3(q),
                        .velocity = rw_vec3_load(state->body_linear_velocity + 3 * b)};
    pose.angular =
        rw_mat3_apply(&pose.rotation, rw_vec3_load(state->body_angular_velocity + 3 * b));
    return pose;
}

rw_joint_pose rw_dae_system_pose(const rw_state* state, int32_t body) {
    return body < 0 ? (rw_joint_pose){.rotation = rw_mat3_identity()} : pose_in(state, body);
}

void rw_dae_system_take_distances(rw_dae_system* s) {
    for (int32_t k = 0; k < s->joint_count; k++)
        if (s->joints[k].type == RW_JOINT_DISTANCE && !s->model->joints.items[k].desc.has_distance)
            s->joints[k].distance = s->angle[3 * (int64_t)k];
}

void rw_dae_system_joint_frames(const rw_dae_system* s, const rw_state* state, int32_t joint,
                                rw_joint_pose pose[2], rw_joint_frames* frames) {
    const rw_joint_geometry* j = &s->joints[joint];
    pose[0] = rw_dae_system_pose(state, j->parent);
    pose[1] = rw_dae_system_pose(state, j->child == s->body_count ? -1 : j->child);
    rw_joint_geometry_frames_at(j, &pose[0], &pose[1], frames);
}

static rw_vec3 center_of(const rw_model* model, int32_t body) {
    return body < 0 ? rw_vec3_zero() : rw_vec3_load(model->bodies.center_of_mass + 3 * body);
}

rw_status rw_dae_system_create(const rw_model* model, rw_alloc* alloc, double* angle,
                               rw_dae_system** system, rw_error* error) {
    *system = NULL;
    rw_dae_system* s = rw_alloc_get(alloc, sizeof *s);
    if (!s)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the mechanism");
    s->model = model;
    s->angle = angle;
    s->body_count = model->bodies.count;
    rw_arena_init(&s->arena, alloc);
    if (rw_dae_compile_system(s, alloc) != RW_STATUS_OK) {
        rw_dae_system_destroy(s, alloc);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the mechanism");
    }
    *system = s;
    return RW_STATUS_OK;
}

void rw_dae_system_destroy(rw_dae_system* s, rw_alloc* alloc) {
    if (!s)
        return;
    rw_kkt_destroy(s->kkt);
    rw_drive_finish(&s->drive, alloc);
    rw_arena_finish(&s->arena);
    rw_alloc_free(alloc, s);
}

// ---- Loops over bodies and joints ----------------------------------------------------------------

// Large mechanisms share these loops among threads, in blocks cut by the data. Every index writes its
// own results only, so they do not depend on who does what.
#define SHARED_FROM 1024
#define SHARED_BLOCK 64

typedef struct shared_loop {
    rw_dae_system* system;
    void (*visit)(rw_dae_system* system, int32_t index, const void* context);
    const void* context;
    int32_t count;
} shared_loop;

static void visit_block(void* context, int32_t block) {
    const shared_loop* loop = context;
    int32_t end = (block + 1) * SHARED_BLOCK;
    for (int32_t i = block * SHARED_BLOCK; i < (end < loop->count ? end : loop->count); i++)
        loop->visit(loop->system, i, loop->context);
}

static void for_all(rw_dae_system* s, int32_t count,
                    void (*visit)(rw_dae_system*, int32_t, const void*), const void* context) {
    if (count < SHARED_FROM || !s->parallel) {
        for (int32_t i = 0; i < count; i++)
            visit(s, i, context);
        return;
    }
    shared_loop loop = {s, visit, context, count};
    rw_parallel_for(s->parallel, (count + SHARED_BLOCK - 1) / SHARED_BLOCK, visit_block, &loop);
}

// ---- Loading a state -----------------------------------------------------------------------------

void rw_dae_system_gather(const rw_dae_system* s, const rw_state* state, double* y) {
    for (int32_t d = 0; d < s->dynamic_count; d++, y += RW_DAE_WIDTH) {
        int32_t b = s->body_of[d];
        memcpy(y, state->body_position + 3 * b, 3 * sizeof *y);
        memcpy(y + 3, state->body_rotation + 4 * b, 4 * sizeof *y);
        memcpy(y + 7, state->body_linear_velocity + 3 * b, 3 * sizeof *y);
        memcpy(y + 10, state->body_angular_velocity + 3 * b, 3 * sizeof *y);
    }
}

void rw_dae_system_scatter(const rw_dae_system* s, const double* y, rw_state* state) {
    for (int32_t d = 0; d < s->dynamic_count; d++, y += RW_DAE_WIDTH) {
        int32_t b = s->body_of[d];
        memcpy(state->body_position + 3 * b, y, 3 * sizeof *y);
        memcpy(state->body_rotation + 4 * b, y + 3, 4 * sizeof *y);
        memcpy(state->body_linear_velocity + 3 * b, y + 7, 3 * sizeof *y);
        memcpy(state->body_angular_velocity + 3 * b, y + 10, 3 * sizeof *y);
    }
}

// The motion of a driven body's frame at the drive's time: the scene's pose, displaced and turned
// by exp(v), both in world axes, so that its world angular velocity is Gamma(-v) dv/dt.
static void driven_frame(const rw_drive* drive, const rw_body_desc* desc, int32_t b, rw_vec3* origin,
                         rw_quat* rotation, rw_vec3* velocity, rw_vec3* omega) {
    rw_vec3 shift = rw_vec3_load(drive->body_offset + 6 * b);
    rw_vec3 turn = rw_vec3_load(drive->body_offset + 6 * b + 3);
    *origin = rw_vec3_add(rw_vec3_load(desc->position), shift);
    *rotation = rw_quat_normalize(rw_quat_mul(rw_so3_exp(turn), rw_quat_load(desc->rotation)));
    *velocity = rw_vec3_load(drive->body_offset_rate + 6 * b);
    *omega = rw_quat_inverse_rotate(
        *rotation, rw_so3_gamma_apply(rw_vec3_neg(turn),
                                      rw_vec3_load(drive->body_offset_rate + 6 * b + 3)));
}

static void set_kinematic(rw_dae_system* s, const rw_state* from, double dt, int32_t b) {
    rw_joint_pose* pose = &s->pose[b];
    rw_vec3 center = center_of(s->model, b), origin, velocity, omega;
    rw_vec3 acceleration = rw_vec3_zero(), spin = rw_vec3_zero(); // of the origin; of omega, world
    rw_quat rotation;
    if (s->drive.body_is_driven && s->drive.body_is_driven[b]) {
        const rw_body_desc* desc = &s->model->bodies.items[b].desc;
        rw_vec3 o[2], v[2], w[2];
        rw_quat q[2];
        for (int i = 0; i < 2; i++) { // accelerations by differences of the input's rates
            rw_drive_evaluate(&s->drive, s->model,
                              s->time_s + (i ? DRIVE_DIFFERENCE_S : -DRIVE_DIFFERENCE_S));
            driven_frame(&s->drive, desc, b, &o[i], &q[i], &v[i], &w[i]);
        }
        rw_drive_evaluate(&s->drive, s->model, s->time_s);
        driven_frame(&s->drive, desc, b, &origin, &rotation, &velocity, &omega);
        acceleration = rw_vec3_scale(rw_vec3_sub(v[1], v[0]), 0.5 / DRIVE_DIFFERENCE_S);
        spin = rw_quat_rotate(
            rotation, rw_vec3_scale(rw_vec3_sub(w[1], w[0]), 0.5 / DRIVE_DIFFERENCE_S));
    } else {
        rw_joint_pose start = pose_in(from, b);
        rw_vec3 arm = rw_mat3_apply(&start.rotation, center);
        omega = rw_vec3_load(from->body_angular_velocity + 3 * b);
        velocity = rw_vec3_sub(start.velocity, rw_vec3_cross(start.angular, arm));
        origin = rw_vec3_add_scaled(rw_vec3_sub(start.position, arm), dt, velocity);
        rotation = rw_so3_boxplus(rw_quat_load(from->body_rotation + 4 * b),
                                  rw_vec3_scale(omega, dt));
    }
    pose->rotation = rw_quat_to_mat3(rotation);
    pose->angular = rw_mat3_apply(&pose->rotation, omega);
    rw_vec3 arm = rw_mat3_apply(&pose->rotation, center), turn = rw_vec3_cross(pose->angular, arm);
    pose->position = rw_vec3_add(origin, arm);
    pose->velocity = rw_vec3_add(velocity, turn);
    rw_vec3 a = rw_vec3_add(acceleration, rw_vec3_cross(pose->angular, turn));
    rw_vec3_store(s->known + 6 * b, rw_vec3_add(a, rw_vec3_cross(spin, arm)));
    rw_vec3_store(s->known + 6 * b + 3, spin);
    rw_quat_store(s->scratch.body_rotation + 4 * b, rotation);
    rw_vec3_store(s->scratch.body_angular_velocity + 3 * b, omega);
}

void rw_dae_system_set_time(rw_dae_system* s, const rw_state* from, double from_time_s,
                            double time_s) {
    s->time_s = time_s;
    if (!s->drive_is_current || s->model->inputs.count > 0)
        rw_drive_evaluate(&s->drive, s->model, time_s);
    s->drive.time_s = time_s;
    bool first = !s->drive_is_current;
    s->drive_is_current = true;
    if (!first && !s->has_kinematic)
        return;
    for (int32_t b = 0; b < s->body_count; b++) {
        if (s->dynamic_of[b] >= 0)
            continue;
        if (s->model->bodies.kind[b] == RW_BODY_KINEMATIC) {
            set_kinematic(s, from, time_s - from_time_s, b);
        } else if (first) {
            s->pose[b] = pose_in(from, b);
            s->pose[b].velocity = s->pose[b].angular = rw_vec3_zero();
            memcpy(s->scratch.body_rotation + 4 * b, from->body_rotation + 4 * b,
                   4 * sizeof(double));
        } else {
            continue;
        }
        rw_vec3_store(s->scratch.body_position + 3 * b, s->pose[b].position);
        rw_vec3_store(s->scratch.body_linear_velocity + 3 * b, s->pose[b].velocity);
    }
}

static void load_body(rw_dae_system* s, int32_t d, const void* context) {
    const double* y = (const double*)context + RW_DAE_WIDTH * (int64_t)d;
    rw_joint_pose* pose = &s->pose[s->body_of[d]];
    pose->position = rw_vec3_load(y);
    pose->rotation = rw_quat_to_mat3(rw_quat_normalize(rw_quat_load(y + 3)));
    pose->velocity = rw_vec3_load(y + 7);
    pose->angular = rw_mat3_apply(&pose->rotation, rw_vec3_load(y + 10));
}

static void load_joint(rw_dae_system* s, int32_t k, const void* context) {
    (void)context;
    const rw_joint_geometry* j = &s->joints[k];
    rw_joint_geometry_frames_at(j, &s->pose[j->parent < 0 ? s->body_count : j->parent],
                                &s->pose[j->child], &s->frames[k]);
}

void rw_dae_system_load(rw_dae_system* s, const double* y) {
    for_all(s, s->dynamic_count, load_body, y);
    if (s->has_forces || s->model->applied.count > 0) {
        rw_dae_system_scatter(s, y, &s->scratch);
        for (int32_t d = 0; d < s->dynamic_count; d++) { // stages are off the unit sphere
            double* q = s->scratch.body_rotation + 4 * s->body_of[d];
            rw_quat_store(q, rw_quat_normalize(rw_quat_load(q)));
        }
    }
    for_all(s, s->joint_count, load_joint, NULL);
}

// ---- The matrix ----------------------------------------------------------------------------------

static const rw_joint_pose* parent_pose(const rw_dae_system* s, const rw_joint_geometry* j) {
    return &s->pose[j->parent < 0 ? s->body_count : j->parent];
}

static void write_mass(rw_dae_system* s, int32_t d, const void* context) {
    (void)context;
    const rw_bodies* bodies = &s->model->bodies;
    int32_t b = s->body_of[d];
    // R J R', six entries: symmetric to the bit, as the factorisation wants it.
    const double* j = bodies->inertia + 6 * (int64_t)b;
    const rw_mat3* r = &s->pose[b].rotation;
    rw_mat3 inertia;
    for (int i = 0; i < 3; i++) {
        double x = r->m[i][0] * j[0] + r->m[i][1] * j[3] + r->m[i][2] * j[4];
        double y = r->m[i][0] * j[3] + r->m[i][1] * j[1] + r->m[i][2] * j[5];
        double z = r->m[i][0] * j[4] + r->m[i][1] * j[5] + r->m[i][2] * j[2];
        for (int k = 0; k <= i; k++)
            inertia.m[i][k] = inertia.m[k][i] = x * r->m[k][0] + y * r->m[k][1] + z * r->m[k][2];
    }
    s->inertia[d] = inertia;
    double* m = rw_kkt_mass(s->kkt, d);
    memset(m, 0, 36 * sizeof *m);
    for (int i = 0; i < 3; i++) {
        m[7 * i] = bodies->mass[b];
        for (int k = 0; k < 3; k++)
            m[6 * (3 + i) + 3 + k] = inertia.m[i][k];
    }
    if (s->added_mass)
        for (int i = 0; i < 36; i++)
            m[i] += s->added_mass[36 * (int64_t)d + i];
}

static void write_joint(rw_dae_system* s, int32_t k, const void* context) {
    (void)context;
    const rw_joint_geometry* joint = &s->joints[k];
    rw_joint_row* rows = s->rows + 6 * (int64_t)k;
    rw_joint_geometry_jacobian(joint, &s->frames[k], rows);
    if (joint->rate_count && s->has_efforts)
        rw_joint_geometry_rates(joint, &s->frames[k], s->rates + 3 * (int64_t)k);
    int32_t c = s->joint_constraint[k];
    if (c < 0)
        return;
    bool soft = s->model->joints.items[k].desc.compliance > 0.0;
    double* epsilon = rw_kkt_epsilon(s->kkt, c);
    const double* regularisation = s->regularisation + rw_kkt_row_first(s->kkt, c);
    for (int32_t i = 0; i < joint->row_count; i++)
        epsilon[i] = soft ? 1.0 : regularisation[i]; // soft: a force, not a row
    for (int end = 0; end < 2; end++) {
        if (s->joint_slot[k][end] < 0)
            continue;
        double* block = rw_kkt_jacobian(s->kkt, s->joint_slot[k][end]);
        for (int32_t i = 0; i < joint->row_count; i++)
            if (soft)
                memset(block + 6 * i, 0, 6 * sizeof *block);
            else
                memcpy(block + 6 * i, end ? rows[i].child : rows[i].parent, 6 * sizeof *block);
    }
}

// The two ends of coupling k, q_a - ratio q_b - offset = 0: end 0 is a, end 1 is b.
static int32_t coupled_joint(const rw_dae_system* s, int32_t k, int end) {
    const rw_joint_coupling* c = &s->model->couplings.items[k];
    return end ? c->joint_b : c->joint_a;
}
static uint32_t coupled_coordinate(const rw_dae_system* s, int32_t k, int end) {
    const rw_coupling_desc* d = &s->model->couplings.items[k].desc;
    return end ? d->coordinate_b : d->coordinate_a;
}
static double coupled_factor(const rw_dae_system* s, int32_t k, int end) {
    return end ? -s->model->couplings.items[k].desc.ratio : 1.0;
}
static const rw_joint_row* coupled_row(const rw_dae_system* s, int32_t k, int end) {
    return &s->rates[3 * (int64_t)coupled_joint(s, k, end) + coupled_coordinate(s, k, end)];
}

void rw_dae_system_coupling_rows(const rw_dae_system* s, int32_t k, rw_kkt* kkt) {
    const rw_joint_row *a = coupled_row(s, k, 0), *b = coupled_row(s, k, 1);
    const double* ends[4] = {a->parent, a->child, b->parent, b->child};
    const int32_t* slots = s->coupling_slot[k];
    for (int e = 0; e < 4; e++)
        if (slots[e] >= 0)
            memset(rw_kkt_jacobian(kkt, slots[e]), 0, 6 * sizeof(double));
    for (int e = 0; e < 4; e++) // ends may be the same body
        for (int i = 0; i < 6 && slots[e] >= 0; i++)
            rw_kkt_jacobian(kkt, slots[e])[i] += coupled_factor(s, k, e / 2) * ends[e][i];
}

static void write_coupling(rw_dae_system* s, int32_t k) {
    if (s->coupling_constraint[k] < 0)
        return;
    const rw_joint_coupling* from = &s->model->couplings.items[k];
    bool soft = from->desc.compliance > 0.0;
    if (!soft) // soft: a force, not a row
        rw_dae_system_coupling_rows(s, k, s->kkt);
    for (int e = 0; e < 4 && soft; e++)
        if (s->coupling_slot[k][e] >= 0)
            memset(rw_kkt_jacobian(s->kkt, s->coupling_slot[k][e]), 0, 6 * sizeof(double));
    int32_t c = s->coupling_constraint[k];
    rw_kkt_epsilon(s->kkt, c)[0] =
        soft ? 1.0 : s->regularisation[rw_kkt_row_first(s->kkt, c)];
}

// Compares the loaded pose with that of the factor, and notes it.
static bool pose_is_factored(rw_dae_system* s) {
    bool same = s->is_factored;
    double* noted = s->factored_pose;
    for (int32_t b = 0; b < s->body_count; b++) {
        if (s->model->bodies.kind[b] == RW_BODY_STATIC)
            continue;
        const rw_joint_pose* pose = &s->pose[b];
        if (same && !memcmp(noted, &pose->position, 3 * sizeof *noted) &&
            !memcmp(noted + 3, &pose->rotation, 9 * sizeof *noted)) {
            noted += 12;
            continue;
        }
        same = false;
        memcpy(noted, &pose->position, 3 * sizeof *noted);
        memcpy(noted + 3, &pose->rotation, 9 * sizeof *noted);
        noted += 12;
    }
    return same;
}

rw_status rw_dae_system_factor(rw_dae_system* s) {
    if (pose_is_factored(s))
        return RW_STATUS_OK;
    for_all(s, s->dynamic_count, write_mass, NULL);
    for_all(s, s->joint_count, write_joint, NULL);
    for (int32_t k = 0; k < s->coupling_count; k++)
        write_coupling(s, k);
    s->pivots = rw_kkt_factor(s->kkt, s->has_regularisation ? s->regularisation : NULL,
                              s->parallel);
    s->is_factored = s->pivots.guarded == 0;
    return s->is_factored ? RW_STATUS_OK : RW_STATUS_FAULTED;
}

// ---- Evaluation ----------------------------------------------------------------------------------

void rw_dae_system_add_effort(rw_dae_system* s, int32_t joint, const rw_joint_row* row,
                              double effort) {
    const rw_joint_geometry* j = &s->joints[joint];
    int32_t d = j->parent < 0 ? -1 : s->dynamic_of[j->parent];
    if (d >= 0)
        for (int i = 0; i < 6; i++)
            s->body[6 * (int64_t)d + i] += row->parent[i] * effort;
    d = s->dynamic_of[j->child];
    if (d >= 0)
        for (int i = 0; i < 6; i++)
            s->body[6 * (int64_t)d + i] += row->child[i] * effort;
}

double rw_dae_system_mobility(rw_dae_system* s, int32_t joint, const rw_joint_row* row) {
    const rw_joint_geometry* j = &s->joints[joint];
    double* keep = s->body;
    s->body = s->probe_body;
    memset(s->body, 0, 6 * (size_t)s->dynamic_count * sizeof *s->body);
    memset(s->probe_row, 0, (size_t)s->row_count * sizeof *s->probe_row);
    rw_dae_system_add_effort(s, joint, row, 1.0);
    rw_kkt_solve(s->kkt, s->body, s->probe_row, s->parallel);
    double sum = 0.0;
    int32_t parent = j->parent < 0 ? -1 : s->dynamic_of[j->parent], child = s->dynamic_of[j->child];
    for (int i = 0; i < 6; i++) {
        if (parent >= 0)
            sum += row->parent[i] * s->body[6 * (int64_t)parent + i];
        if (child >= 0)
            sum += row->child[i] * s->body[6 * (int64_t)child + i];
    }
    s->body = keep;
    return sum;
}

static void apply_forces(rw_dae_system* s) {
    const rw_model* model = s->model;
    bool any = s->has_forces || model->applied.count > 0;
    if (any) {
        rw_forces_output out = {.body_force = s->force, .body_torque = s->torque};
        rw_forces_evaluate(model, &s->drive, &s->scratch, s->node_frames, RW_FORCES_ALL, &out);
    }
    rw_vec3 gravity = rw_vec3_load(s->drive.gravity);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int32_t b = s->body_of[d];
        const rw_joint_pose* pose = &s->pose[b];
        rw_vec3 f = rw_vec3_scale(gravity, model->bodies.mass[b]);
        rw_vec3 momentum = rw_mat3_apply(&s->inertia[d], pose->angular);
        rw_vec3 t = rw_vec3_cross(momentum, pose->angular); // -(w x J w)
        if (any) {
            f = rw_vec3_add(f, rw_vec3_load(s->force + 3 * b));
            t = rw_vec3_add(t, rw_vec3_load(s->torque + 3 * b));
        }
        if (s->constant_wrench) {
            f = rw_vec3_add(f, rw_vec3_load(s->constant_wrench + 6 * (int64_t)b));
            t = rw_vec3_add(t, rw_vec3_load(s->constant_wrench + 6 * (int64_t)b + 3));
        }
        rw_vec3_store(s->body + 6 * (int64_t)d, f);
        rw_vec3_store(s->body + 6 * (int64_t)d + 3, t);
    }
}

// Row times the known accelerations of driven bodies.
static double driven_part(const rw_dae_system* s, const rw_joint_geometry* joint, const rw_joint_row* row) {
    double sum = 0.0;
    if (joint->parent >= 0 && s->dynamic_of[joint->parent] < 0)
        for (int i = 0; i < 6; i++)
            sum += row->parent[i] * s->known[6 * (int64_t)joint->parent + i];
    if (s->dynamic_of[joint->child] < 0)
        for (int i = 0; i < 6; i++)
            sum += row->child[i] * s->known[6 * (int64_t)joint->child + i];
    return sum;
}

static void joint_right_side(rw_dae_system* s, int32_t k, const void* context) {
    (void)context;
    const rw_joint_geometry* joint = &s->joints[k];
    if (s->joint_constraint[k] < 0)
        return;
    double* gamma = s->row + rw_kkt_row_first(s->kkt, s->joint_constraint[k]);
    const rw_joint_pose *parent = parent_pose(s, joint), *child = &s->pose[joint->child];
    const rw_joint_row* rows = s->rows + 6 * (int64_t)k;
    double compliance = s->model->joints.items[k].desc.compliance;
    if (compliance > 0.0) {
        double phi[6];
        rw_joint_geometry_error(joint, &s->frames[k], phi);
        for (int32_t i = 0; i < joint->row_count; i++) {
            rw_dae_system_add_effort(s, k, &rows[i], -phi[i] / compliance);
            gamma[i] = 0.0;
        }
        return;
    }
    rw_joint_geometry_gamma(joint, &s->frames[k], parent, child, gamma);
    if (s->has_kinematic)
        for (int32_t i = 0; i < joint->row_count; i++)
            gamma[i] -= driven_part(s, joint, &rows[i]);
    if (s->stabilization_alpha > 0.0 || s->stabilization_beta > 0.0) {
        double phi[6], a = 2.0 * s->stabilization_alpha;
        double b = s->stabilization_beta * s->stabilization_beta;
        rw_joint_geometry_error(joint, &s->frames[k], phi);
        for (int32_t i = 0; i < joint->row_count; i++)
            gamma[i] -= a * rw_joint_geometry_row_rate(&rows[i], parent, child) + b * phi[i];
    }
}

// Error and rate of a coupling row.
static double coupling_error(const rw_dae_system* s, int32_t k) {
    double sum = -s->model->couplings.items[k].desc.offset, values[4];
    for (int e = 0; e < 2; e++) {
        rw_dae_effort_coordinate(s, coupled_joint(s, k, e), values);
        sum += coupled_factor(s, k, e) * values[coupled_coordinate(s, k, e)];
    }
    return sum;
}

static double coupling_rate(const rw_dae_system* s, int32_t k, bool accelerations) {
    double sum = 0.0;
    for (int e = 0; e < 2; e++) {
        int32_t j = coupled_joint(s, k, e);
        const rw_joint_geometry* joint = &s->joints[j];
        const rw_joint_pose *parent = parent_pose(s, joint), *child = &s->pose[joint->child];
        double bias[3], value;
        if (accelerations) {
            rw_joint_geometry_rate_bias(joint, &s->frames[j], parent, child, bias);
            value = bias[coupled_coordinate(s, k, e)] + driven_part(s, joint, coupled_row(s, k, e));
        } else {
            value = rw_joint_geometry_row_rate(coupled_row(s, k, e), parent, child);
        }
        sum += coupled_factor(s, k, e) * value;
    }
    return sum;
}

static void coupling_right_side(rw_dae_system* s, int32_t k) {
    if (s->coupling_constraint[k] < 0)
        return;
    double* gamma = s->row + rw_kkt_row_first(s->kkt, s->coupling_constraint[k]);
    double compliance = s->model->couplings.items[k].desc.compliance;
    if (compliance > 0.0) {
        double pull = -coupling_error(s, k) / compliance;
        for (int e = 0; e < 2; e++)
            rw_dae_system_add_effort(s, coupled_joint(s, k, e), coupled_row(s, k, e),
                                     pull * coupled_factor(s, k, e));
        *gamma = 0.0;
        return;
    }
    *gamma = -coupling_rate(s, k, true);
    if (s->stabilization_alpha > 0.0 || s->stabilization_beta > 0.0)
        *gamma -= 2.0 * s->stabilization_alpha * coupling_rate(s, k, false) +
                  s->stabilization_beta * s->stabilization_beta * coupling_error(s, k);
}

// The multipliers of soft joints are their spring forces.
static void note_soft_multipliers(rw_dae_system* s) {
    for (int32_t k = 0; k < s->joint_count; k++) {
        double compliance = s->model->joints.items[k].desc.compliance;
        if (!(compliance > 0.0) || s->joint_constraint[k] < 0)
            continue;
        double* lambda = s->row + rw_kkt_row_first(s->kkt, s->joint_constraint[k]);
        rw_joint_geometry_error(&s->joints[k], &s->frames[k], lambda);
        for (int32_t i = 0; i < s->joints[k].row_count; i++)
            lambda[i] /= compliance;
    }
    for (int32_t k = 0; k < s->coupling_count; k++) {
        double compliance = s->model->couplings.items[k].desc.compliance;
        if (compliance > 0.0 && s->coupling_constraint[k] >= 0)
            s->row[rw_kkt_row_first(s->kkt, s->coupling_constraint[k])] =
                coupling_error(s, k) / compliance;
    }
}

void rw_dae_system_applied(rw_dae_system* s) {
    apply_forces(s);
    if (s->has_efforts)
        rw_dae_effort_add(s);
}

rw_status rw_dae_system_accelerate(rw_dae_system* s) {
    RW_TRY(rw_dae_system_factor(s));
    rw_dae_system_applied(s);
    for (int32_t k = 0; k < s->joint_count && s->has_extra_effort; k++) {
        rw_joint_row rows[3];
        rw_joint_geometry_rates(&s->joints[k], &s->frames[k], rows);
        for (int32_t i = 0; i < s->joints[k].rate_count; i++)
            rw_dae_system_add_effort(
                s, k, &rows[i], s->extra_effort[s->model->joints.items[k].rate_first + i]);
    }
    if (!s->has_soft)
        for_all(s, s->joint_count, joint_right_side, NULL);
    for (int32_t k = 0; k < s->joint_count && s->has_soft; k++)
        joint_right_side(s, k, NULL); // soft joints push their bodies: in order
    for (int32_t k = 0; k < s->coupling_count; k++)
        coupling_right_side(s, k);
    rw_kkt_solve_refined(s->kkt, s->body, s->row, s->has_regularisation ? s->regularisation : NULL,
                         REFINEMENTS, s->parallel);
    if (s->has_soft)
        note_soft_multipliers(s);
    return RW_STATUS_OK;
}

rw_status rw_dae_system_derivative(rw_dae_system* s, const double* y, double* dydt) {
    rw_dae_system_load(s, y);
    RW_TRY(rw_dae_system_accelerate(s));
    for (int32_t d = 0; d < s->dynamic_count; d++, y += RW_DAE_WIDTH, dydt += RW_DAE_WIDTH) {
        const double* a = s->body + 6 * (int64_t)d;
        memcpy(dydt, y + 7, 3 * sizeof *y);
        rw_quat_store(dydt + 3, rw_quat_rate(rw_quat_load(y + 3), rw_vec3_load(y + 10)));
        memcpy(dydt + 7, a, 3 * sizeof *a);
        rw_vec3_store(dydt + 10, rw_mat3_apply_transpose(&s->pose[s->body_of[d]].rotation,
                                                         rw_vec3_load(a + 3)));
    }
    return RW_STATUS_OK;
}

// ---- Projection ----------------------------------------------------------------------------------

double rw_dae_system_errors(const rw_dae_system* s, double* phi) {
    double worst = 0.0;
    for (int32_t k = 0; k < s->joint_count; k++) {
        double values[6];
        if (s->joint_constraint[k] < 0)
            continue;
        int32_t first = rw_kkt_row_first(s->kkt, s->joint_constraint[k]);
        bool soft = s->model->joints.items[k].desc.compliance > 0.0;
        rw_joint_geometry_error(&s->joints[k], &s->frames[k], values);
        for (int32_t i = 0; i < s->joints[k].row_count; i++) {
            double v = soft ? 0.0 : values[i];
            worst = fmax(worst, fabs(v));
            if (phi)
                phi[first + i] = v;
        }
    }
    for (int32_t k = 0; k < s->coupling_count; k++) {
        if (s->coupling_constraint[k] < 0)
            continue;
        bool soft = s->model->couplings.items[k].desc.compliance > 0.0;
        double v = soft ? 0.0 : coupling_error(s, k);
        worst = fmax(worst, fabs(v));
        if (phi)
            phi[rw_kkt_row_first(s->kkt, s->coupling_constraint[k])] = v;
    }
    return worst;
}

double rw_dae_system_error(const rw_dae_system* s) { return rw_dae_system_errors(s, NULL); }

void rw_dae_system_move(const rw_dae_system* s, double* y) {
    for (int32_t d = 0; d < s->dynamic_count; d++, y += RW_DAE_WIDTH) {
        const double* x = s->body + 6 * (int64_t)d;
        rw_vec3_store(y, rw_vec3_add(rw_vec3_load(y), rw_vec3_load(x)));
        rw_quat turned = rw_quat_mul(rw_quat_cayley(rw_vec3_load(x + 3)), rw_quat_load(y + 3));
        rw_quat_store(y + 3, rw_quat_normalize(turned));
    }
}

static void solve_rows(rw_dae_system* s, double sign) {
    memset(s->body, 0, 6 * (size_t)s->dynamic_count * sizeof *s->body);
    for (int32_t i = 0; i < s->row_count; i++)
        s->row[i] *= sign;
    rw_kkt_solve(s->kkt, s->body, s->row, s->parallel);
}

rw_status rw_dae_system_project(rw_dae_system* s, double* y, double tolerance, int rounds,
                                bool reuse, double* worst) {
    rw_dae_system_load(s, y);
    double error = rw_dae_system_errors(s, s->row);
    for (int round = 0; round < rounds && error > tolerance; round++) {
        bool stale = reuse && s->is_factored;
        if (!stale)
            RW_TRY(rw_dae_system_factor(s));
        solve_rows(s, -1.0);
        // A long way to go is gone in steps that no row of cosines overshoots.
        double longest = 0.0;
        for (int64_t i = 0; i < s->dynamic_count; i++)
            longest = fmax(longest, rw_vec3_max_abs(rw_vec3_load(s->body + 6 * i + 3)));
        if (longest > 0.5)
            for (int64_t i = 0; i < 6 * (int64_t)s->dynamic_count; i++)
                s->body[i] *= 0.5 / longest;
        rw_dae_system_move(s, y);
        rw_dae_system_load(s, y);
        double next = rw_dae_system_errors(s, s->row);
        bool slow = next > 0.5 * error; // (next to a singular position Newton's steps give 1/4)
        if (slow && !stale && next < 1e3 * tolerance) {
            error = next; // rounding: no better to get
            break;
        }
        reuse = reuse && next < 0.01 * error;
        error = next;
    }
    if (worst)
        *worst = error;
    return RW_STATUS_OK;
}

void rw_dae_system_row_rates(const rw_dae_system* s, double* rates) {
    for (int32_t k = 0; k < s->joint_count; k++) {
        const rw_joint_geometry* joint = &s->joints[k];
        if (s->joint_constraint[k] < 0)
            continue;
        double* rate = rates + rw_kkt_row_first(s->kkt, s->joint_constraint[k]);
        bool soft = s->model->joints.items[k].desc.compliance > 0.0;
        for (int32_t i = 0; i < joint->row_count; i++)
            rate[i] = soft ? 0.0
                           : rw_joint_geometry_row_rate(&s->rows[6 * (int64_t)k + i],
                                                   parent_pose(s, joint), &s->pose[joint->child]);
    }
    for (int32_t k = 0; k < s->coupling_count; k++)
        if (s->coupling_constraint[k] >= 0)
            rates[rw_kkt_row_first(s->kkt, s->coupling_constraint[k])] =
                s->model->couplings.items[k].desc.compliance > 0.0 ? 0.0
                                                                   : coupling_rate(s, k, false);
}

void rw_dae_system_push(const rw_dae_system* s, double* y) {
    for (int32_t d = 0; d < s->dynamic_count; d++, y += RW_DAE_WIDTH) {
        const double* x = s->body + 6 * (int64_t)d;
        rw_vec3 turn = rw_mat3_apply_transpose(&s->pose[s->body_of[d]].rotation,
                                               rw_vec3_load(x + 3));
        rw_vec3_store(y + 7, rw_vec3_add(rw_vec3_load(y + 7), rw_vec3_load(x)));
        rw_vec3_store(y + 10, rw_vec3_add(rw_vec3_load(y + 10), turn));
    }
}

rw_status rw_dae_system_project_velocity(rw_dae_system* s, double* y) {
    rw_dae_system_load(s, y);
    RW_TRY(rw_dae_system_factor(s));
    rw_dae_system_row_rates(s, s->row);
    solve_rows(s, -1.0);
    rw_dae_system_push(s, y);
    return RW_STATUS_OK;
}

// ---- Answers -------------------------------------------------------------------------------------

void rw_dae_system_reaction(const rw_dae_system* s, int32_t k, double wrench[6]) {
    const rw_joint_geometry* joint = &s->joints[k];
    double w[6] = {0};
    if (s->joint_constraint[k] >= 0) {
        const double* lambda = s->row + rw_kkt_row_first(s->kkt, s->joint_constraint[k]);
        for (int32_t i = 0; i < joint->row_count; i++)
            for (int c = 0; c < 6; c++)
                w[c] -= s->rows[6 * (int64_t)k + i].child[c] * lambda[i];
    }
    if (s->has_efforts) {
        int32_t first = s->model->joints.items[k].rate_first;
        for (int32_t i = 0; i < joint->rate_count; i++)
            for (int c = 0; c < 6; c++)
                w[c] += s->rates[3 * (int64_t)k + i].child[c] *
                        (s->effort[first + i] + s->stop[first + i]);
        for (int32_t m = 0; m < s->coupling_count; m++) {
            if (s->coupling_constraint[m] < 0)
                continue;
            double lambda = s->row[rw_kkt_row_first(s->kkt, s->coupling_constraint[m])];
            for (int e = 0; e < 2; e++)
                for (int q = 0; q < 6 && coupled_joint(s, m, e) == k; q++)
                    w[q] -= coupled_factor(s, m, e) * lambda * coupled_row(s, m, e)->child[q];
        }
    }
    // From the centre of mass to the joint frame's origin.
    rw_vec3 force = rw_vec3_load(w), torque = rw_vec3_load(w + 3);
    torque = rw_vec3_sub(torque, rw_vec3_cross(s->frames[k].child_arm, force));
    rw_vec3_store(wrench, force);
    rw_vec3_store(wrench + 3, torque);
}
