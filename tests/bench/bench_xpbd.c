// Cost of the xpbd solver on one core: rods of 1000 elements per element and iteration, assembly
// included, beside the time that their band factor alone takes; the triple pendulum and the 3-RPS
// robot per substep. Prints the state hash, too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "solvers/math/block_banded.h"
#include "solvers/math/so3.h"
#include "solvers/world/world.h"

enum { ELEMENTS = 1000, ROUNDS = 9 };

// Time of the processor: others on the machine do not count.
static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const rw_error* error) {
    fprintf(stderr, "%s: %s\n", error->path, error->text);
    exit(1);
}

static int compare(const void* a, const void* b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Seconds per step: the median of rounds of `steps` after a warm-up.
static double step_time(rw_world* world, int steps) {
    double rounds[ROUNDS];
    rw_error error;
    for (int r = -1; r < ROUNDS; r++) {
        double start = now_s();
        for (int i = 0; i < steps; i++) {
            if (rw_world_step(world, &error) != RW_STATUS_OK) {
                fail(&error);
            }
        }
        if (r >= 0) {
            rounds[r] = (now_s() - start) / steps;
        }
    }
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    return rounds[ROUNDS / 2];
}

static void report(const char* name, double value, const char* unit, double baseline,
                   rw_world* world) {
    uint64_t hash = 0;
    rw_error error;
    if (rw_world_hash(world, &hash, &error) != RW_STATUS_OK) {
        fail(&error);
    }
    printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"baseline\": %.4g, \"ratio\": "
           "%.3g, \"hash\": \"%016llx\"}\n",
           name, value, unit, baseline, baseline > 0 ? value / baseline : 0,
           (unsigned long long)hash);
}

// ---- Rods ---------------------------------------------------------------------------------------

// The factor and solve of a band of the rod's size, per element [s].
static double factor_time(int order) {
    int64_t rows = 6 * ((int64_t)ELEMENTS * order + 1);
    int half_band = 6 * (order + 1) - 1, width = half_band + 1;
    double* band = calloc((size_t)(rows * width), sizeof *band);
    double* right = calloc((size_t)rows, sizeof *right);
    if (band == NULL || right == NULL) {
        exit(1);
    }
    double rounds[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        for (int64_t i = 0; i < rows * width; i++) {
            band[i] = i % width == half_band ? 40 : 1.0 / (double)(1 + i % 7);
        }
        double start = now_s();
        if (rw_block_banded_factor(rows, half_band, 6 * order, band, right) != 0) {
            exit(1);
        }
        rw_block_banded_finish(rows, half_band, 6 * order, band, right);
        rounds[r] = (now_s() - start) / ELEMENTS;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    free(band);
    free(right);
    return rounds[ROUNDS / 2];
}

static void bench_rod(rw_alloc* account, const char* name, int order) {
    const double radius = 0.02;
    rw_scene scene;
    rw_scene_init(&scene);
    rw_rod_desc rod;
    rw_scene_init_rod(&rod);
    snprintf(rod.name, sizeof rod.name, "rod");
    rod.geometry = RW_ROD_STRAIGHT;
    rod.order = (uint32_t)order;
    rod.elements = ELEMENTS;
    rod.straight.end[0] = 20;
    rod.section = RW_SECTION_CIRCLE;
    rod.section_radius = (rw_doubles){&radius, 1};
    rod.density = 1000;
    rod.young_modulus = 1e7;
    rod.has_young_modulus = true;
    rw_attachment_desc clamp;
    rw_scene_init_attachment(&clamp);
    snprintf(clamp.name, sizeof clamp.name, "clamp");
    snprintf(clamp.rod, sizeof clamp.rod, "rod");
    clamp.kind = RW_ATTACH_CLAMP;
    clamp.has_s = true;
    scene.rods = &rod;
    scene.rod_count = 1;
    scene.attachments = &clamp;
    scene.attachment_count = 1;
    scene.solver.xpbd.iterations = 4;
    rw_world_config config = {.alloc = account};
    rw_world* world = NULL;
    rw_error error;
    if (rw_world_create_from_scene(&config, &scene, &world, &error) != RW_STATUS_OK) {
        fail(&error);
    }
    double seconds = step_time(world, 5) / (4 * ELEMENTS);
    report(name, seconds * 1e6, "us per element and iteration", factor_time(order) * 1e6, world);
    rw_world_destroy(world);
}

// ---- Joints -------------------------------------------------------------------------------------

static void bench_triple(rw_alloc* account) {
    rw_scene scene;
    rw_scene_init(&scene);
    rw_body_desc bodies[3];
    rw_joint_desc joints[3];
    const double angle = 80 * 3.14159265358979323846 / 180;
    rw_quat turn = rw_so3_exp(rw_vec3_make(0, angle, 0));
    rw_vec3 along = rw_quat_rotate(turn, rw_vec3_make(0, 0, -1)), top = rw_vec3_zero();
    for (int k = 0; k < 3; k++) {
        rw_scene_init_body(&bodies[k]);
        snprintf(bodies[k].name, sizeof bodies[k].name, "l%d", k);
        bodies[k].mass = 1;
        bodies[k].has_mass = bodies[k].has_inertia = true;
        bodies[k].inertia[0] = bodies[k].inertia[1] = 1.0 / 12;
        bodies[k].inertia[2] = 1e-3;
        rw_vec3_store(bodies[k].position, rw_vec3_add_scaled(top, 0.5, along));
        rw_quat_store(bodies[k].rotation, turn);
        rw_scene_init_joint(&joints[k]);
        snprintf(joints[k].name, sizeof joints[k].name, "j%d", k);
        joints[k].type = RW_JOINT_REVOLUTE;
        rw_quat axis = rw_quat_between(rw_vec3_make(0, 0, 1), rw_vec3_make(0, 1, 0));
        rw_quat_store(joints[k].parent_frame.rotation, k == 0 ? rw_quat_mul(turn, axis) : axis);
        rw_quat_store(joints[k].child_frame.rotation, axis);
        if (k > 0) {
            snprintf(joints[k].parent, sizeof joints[k].parent, "l%d", k - 1);
            joints[k].parent_frame.position[2] = -0.5;
        }
        snprintf(joints[k].child, sizeof joints[k].child, "l%d", k);
        joints[k].child_frame.position[2] = 0.5;
        top = rw_vec3_add(top, along);
    }
    scene.bodies = bodies;
    scene.body_count = 3;
    scene.joints = joints;
    scene.joint_count = 3;
    rw_world_config config = {.alloc = account};
    rw_world* world = NULL;
    rw_error error;
    if (rw_world_create_from_scene(&config, &scene, &world, &error) != RW_STATUS_OK) {
        fail(&error);
    }
    report("xpbd/joints/triple", step_time(world, 2000) * 1e6, "us per substep", 0, world);
    rw_world_destroy(world);
}

// An argument chooses the figures whose name contains it.
int main(int argc, char** argv) {
    static const char* const rods[] = {"xpbd/rod/linear", "xpbd/rod/quadratic", "xpbd/rod/cubic"};
    const char* wanted = argc > 1 ? argv[1] : "";
    rw_alloc account;
    rw_alloc_init(&account, 0);
    for (int order = 1; order <= 3; order++) {
        if (strstr(rods[order - 1], wanted) != NULL) {
            bench_rod(&account, rods[order - 1], order);
        }
    }
    if (strstr("xpbd/joints/triple", wanted) != NULL) {
        bench_triple(&account);
    }
    rw_alloc_finish(&account);
    return 0;
}
