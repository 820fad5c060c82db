// The dae solver: cost of a right-hand side (forces, joints, factorisation, accelerations) on
// chains, stars, binary trees and rows of four-bars, its growth with size, and whole steps of a
// 7-joint arm. One JSON object per line; the baseline of a large mechanism is the small one's cost
// per body in the same run, of a step the four right-hand sides that RK4 takes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "solvers/base/check.h"
#include "solvers/dae/dae_system.h"
#include "solvers/math/quat.h"
#include "solvers/world/world.h"

enum { CHAIN, STAR, BINARY, FOUR_BARS, SHAPES };
static const char* const shape_names[SHAPES] = {"chain", "star", "binary", "nfourbar"};

// Time of this thread alone [ns]: the figures are those of one core, whatever else runs.
static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void* take(size_t count, size_t size) {
    void* p = calloc(count + 1, size);
    RW_CHECK(p != NULL);
    return p;
}

// Bodies are bars of length 1; everything is assembled as it is placed.
typedef struct mechanism {
    rw_body_desc* bodies;
    rw_joint_desc* joints;
    int body_count, joint_count;
} mechanism;

static void put_body(mechanism* m, rw_vec3 position, rw_quat rotation) {
    rw_body_desc* b = &m->bodies[m->body_count];
    rw_scene_init_body(b);
    snprintf(b->name, sizeof b->name, "b%d", m->body_count++);
    b->mass = 1.0;
    b->inertia[0] = 0.01;
    b->inertia[1] = b->inertia[2] = 1.0 / 12;
    b->has_mass = b->has_inertia = true;
    rw_vec3_store(b->position, position);
    rw_quat_store(b->rotation, rotation);
}

// A revolute joint about the world's z at a world point; parent -1 is the world.
static void put_joint(mechanism* m, int parent, int child, rw_vec3 at) {
    rw_joint_desc* j = &m->joints[m->joint_count];
    rw_scene_init_joint(j);
    snprintf(j->name, sizeof j->name, "j%d", m->joint_count++);
    j->type = RW_JOINT_REVOLUTE;
    for (int end = 0; end < 2; end++) {
        int b = end ? child : parent;
        rw_frame* f = end ? &j->child_frame : &j->parent_frame;
        rw_vec3_store(f->position, at);
        if (b < 0)
            continue;
        memcpy(end ? j->child : j->parent, m->bodies[b].name, sizeof j->child);
        rw_quat q = rw_quat_load(m->bodies[b].rotation);
        rw_vec3 d = rw_vec3_sub(at, rw_vec3_load(m->bodies[b].position));
        rw_vec3_store(f->position, rw_quat_inverse_rotate(q, d));
        rw_quat_store(f->rotation, rw_quat_conj(q));
    }
}

static mechanism build(int shape, int n) {
    mechanism m = {take((size_t)(2 * n + 2), sizeof(rw_body_desc)),
                   take((size_t)(3 * n + 3), sizeof(rw_joint_desc)), 0, 0};
    rw_quat id = rw_quat_identity(), up = {0.7071067811865476, 0, 0, 0.7071067811865476};
    if (shape == FOUR_BARS) { // n bodies: about n/2 loops
        int loops = (n - 1) / 2;
        for (int k = 0; k <= loops; k++) {
            put_body(&m, (rw_vec3){k, 0.5, 0}, up);
            put_joint(&m, -1, k, (rw_vec3){k, 0, 0});
        }
        for (int k = 0; k < loops; k++) {
            put_body(&m, (rw_vec3){k + 0.5, 1, 0}, id);
            put_joint(&m, k, loops + 1 + k, (rw_vec3){k, 1, 0});
            put_joint(&m, k + 1, loops + 1 + k, (rw_vec3){k + 1, 1, 0});
        }
        return m;
    }
    for (int k = 0; k < n; k++) {
        int parent = shape == CHAIN ? k - 1 : shape == STAR ? (k ? 0 : -1) : (k ? (k - 1) / 2 : -1);
        rw_vec3 at = rw_vec3_zero();
        if (parent >= 0)
            at = rw_vec3_add(rw_vec3_load(m.bodies[parent].position), (rw_vec3){0.5, 0, 0});
        put_body(&m, rw_vec3_add(at, (rw_vec3){0.5, 0, 0}), id);
        put_joint(&m, parent, k, at);
    }
    return m;
}

static void report(const char* name, double value, const char* unit, double baseline) {
    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"baseline\": %.6g, \"ratio\": %.4g}\n",
           name, value, unit, baseline, baseline > 0.0 ? value / baseline : 0.0);
    fflush(stdout);
}

// Least time of one right-hand side [ns].
static double right_hand_side(int shape, int n, int* bodies) {
    mechanism m = build(shape, n);
    rw_alloc alloc;
    rw_model model;
    rw_error error;
    rw_scene scene;
    rw_id id;
    rw_alloc_init(&alloc, 0);
    rw_model_init(&model, &alloc);
    rw_scene_init(&scene);
    scene.solver.rigid = RW_SOLVER_DAE;
    RW_CHECK(rw_model_set_options(&model, &scene, &error) == RW_STATUS_OK);
    for (int k = 0; k < m.body_count; k++)
        RW_CHECK(rw_model_add_body(&model, &m.bodies[k], &id, &error) == RW_STATUS_OK);
    for (int k = 0; k < m.joint_count; k++)
        RW_CHECK(rw_model_add_joint(&model, &m.joints[k], &id, &error) == RW_STATUS_OK);
    rw_state state = {0};
    RW_CHECK(rw_field_reserve(rw_state_fields(), &alloc, &state, RW_DOMAIN_BODY, 0,
                              m.body_count) == RW_STATUS_OK);
    for (int k = 0; k < m.body_count; k++) {
        memcpy(state.body_position + 3 * k, m.bodies[k].position, 3 * sizeof(double));
        memcpy(state.body_rotation + 4 * k, m.bodies[k].rotation, 4 * sizeof(double));
    }
    double* angle = take((size_t)m.joint_count * 3, sizeof *angle);
    rw_dae_system* system;
    RW_CHECK(rw_dae_system_create(&model, &alloc, angle, &system, &error) == RW_STATUS_OK);
    size_t size = (size_t)system->dynamic_count * RW_DAE_WIDTH;
    double *y = take(size, sizeof *y), *slope = take(size, sizeof *slope);
    rw_dae_system_gather(system, &state, y);
    rw_dae_system_set_time(system, &state, 0.0, 0.0);
    int repeats = 200000 / m.body_count + 3;
    int64_t best = INT64_MAX;
    for (int round = 0; round < 7; round++) {
        int64_t start = now_ns();
        for (int k = 0; k < repeats; k++) {
            y[0] = 1e-9 * k; // another pose each time: the factor is not reused
            RW_CHECK(rw_dae_system_derivative(system, y, slope) == RW_STATUS_OK);
        }
        int64_t t = now_ns() - start;
        best = t < best ? t : best;
    }
    *bodies = m.body_count;
    free(y);
    free(slope);
    rw_dae_system_destroy(system, &alloc);
    free(angle);
    rw_field_release(rw_state_fields(), &alloc, &state);
    rw_model_finish(&model);
    rw_alloc_finish(&alloc);
    free(m.bodies);
    free(m.joints);
    return (double)best / repeats;
}

// Steps of 1 ms per second of one core, for a hanging arm of 7 joints.
static double arm_steps(rw_integrator integrator, rw_stabilization stabilization, uint64_t* hash) {
    mechanism m = build(CHAIN, 7);
    rw_alloc alloc;
    rw_error error;
    rw_scene scene;
    rw_world* world;
    rw_alloc_init(&alloc, 0);
    rw_scene_init(&scene);
    scene.gravity[1] = -9.81;
    scene.gravity[2] = 0;
    scene.solver.rigid = RW_SOLVER_DAE;
    scene.solver.dae.integrator = integrator;
    scene.solver.dae.stabilization = stabilization;
    scene.bodies = m.bodies;
    scene.body_count = 7;
    scene.joints = m.joints;
    scene.joint_count = 7;
    rw_world_config config = {.alloc = &alloc};
    RW_CHECK(rw_world_create_from_scene(&config, &scene, &world, &error) == RW_STATUS_OK);
    int64_t best = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        int64_t start = now_ns();
        for (int k = 0; k < 2000; k++)
            RW_CHECK(rw_world_step(world, &error) == RW_STATUS_OK);
        int64_t t = now_ns() - start;
        best = t < best ? t : best;
    }
    RW_CHECK(rw_world_hash(world, hash, &error) == RW_STATUS_OK);
    rw_world_destroy(world);
    rw_alloc_finish(&alloc);
    free(m.bodies);
    free(m.joints);
    return 2000e9 / (double)best;
}

int main(void) {
    static const int sizes[] = {10, 100, 1000, 10000};
    for (int shape = 0; shape < SHAPES; shape++) {
        double each[4], slope = 0.0, lengths[4];
        for (int k = 0; k < 4; k++) {
            char name[64];
            int bodies;
            double t = right_hand_side(shape, sizes[k], &bodies);
            each[k] = t;
            lengths[k] = bodies;
            snprintf(name, sizeof name, "dae/%s/%d", shape_names[shape], sizes[k]);
            report(name, t * 1e-3, "us per right-hand side", each[0] * 1e-3 * bodies / lengths[0]);
        }
        slope = log(each[3] / each[0]) / log(lengths[3] / lengths[0]);
        char name[64];
        snprintf(name, sizeof name, "dae/%s/slope", shape_names[shape]);
        report(name, slope, "of log cost against log size", 1.0);
    }
    int bodies;
    double rhs = right_hand_side(CHAIN, 7, &bodies);
    const struct {
        const char* name;
        rw_integrator integrator;
        rw_stabilization stabilization;
        int stages;
    } runs[] = {{"dae/arm7/symplectic_euler", RW_INTEGRATOR_SYMPLECTIC_EULER,
                 RW_STABILIZATION_BAUMGARTE, 1},
                {"dae/arm7/symplectic_euler_projected", RW_INTEGRATOR_SYMPLECTIC_EULER,
                 RW_STABILIZATION_PROJECTION, 1},
                {"dae/arm7/rk4_projected", RW_INTEGRATOR_RK4, RW_STABILIZATION_PROJECTION, 4}};
    for (int k = 0; k < 3; k++) {
        uint64_t hash;
        double steps = arm_steps(runs[k].integrator, runs[k].stabilization, &hash);
        report(runs[k].name, steps, "steps/s", 1e9 / (runs[k].stages * rhs));
        fprintf(stderr, "%s: world hash %016llx\n", runs[k].name, (unsigned long long)hash);
    }
    return 0;
}
