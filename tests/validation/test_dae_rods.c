// Rods on dae bodies: a steel cable, which explicit coupling can't bear with bodies under 0.66 kg at
// steps of 1 ms, holds 50 g; both rod solvers, every integrator but explicit Euler.
#include "tests/support/rw_test.h"

#include "solvers/world/world.h"
#include "tests/support/dae_rig.h"

typedef struct cable_case {
    rw_solver_kind rods;
    rw_integrator integrator;
    bool sliding; // the upper body slides freely: everything falls
} cable_case;

static rw_world* hang(rw_alloc* alloc, cable_case c) {
    rw_scene scene;
    rw_scene_init(&scene);
    scene.solver.rigid = RW_SOLVER_DAE;
    scene.solver.rods = c.rods;
    scene.solver.dae.integrator = c.integrator;
    scene.solver.scr.iterations = 100;
    rw_rod_desc rod;
    rw_scene_init_rod(&rod);
    snprintf(rod.name, sizeof rod.name, "cable");
    rod.geometry = RW_ROD_STRAIGHT;
    rod.straight.start[2] = 1;
    rod.elements = 8;
    rod.order = 1;
    double radius = 0.002;
    rod.section = RW_SECTION_CIRCLE;
    rod.section_radius = (rw_doubles){&radius, 1};
    rod.density = 7800;
    rod.young_modulus = 2e11;
    rod.poisson_ratio = 0.3;
    rod.has_young_modulus = rod.has_poisson_ratio = true;
    rw_attachment_desc at[2];
    rw_body_desc bodies[2];
    for (int k = 0; k < 2; k++) {
        rw_scene_init_attachment(&at[k]);
        snprintf(at[k].name, sizeof at[k].name, "%s", k ? "grip" : "top");
        snprintf(at[k].rod, sizeof at[k].rod, "cable");
        snprintf(at[k].body, sizeof at[k].body, "%s", k ? "load" : "hook");
        at[k].kind = RW_ATTACH_PIN;
        at[k].s = k;
        at[k].has_s = at[k].has_position = true;
        at[k].position[2] = k ? 0.05 : -0.05;
        bodies[k] = dae_rig_body(at[k].body, 0.05, (rw_vec3){1e-4, 1e-4, 1e-4},
                                 (rw_vec3){0, 0, k ? -0.05 : 1.05}, rw_quat_identity());
    }
    rw_joint_desc joint;
    rw_scene_init_joint(&joint);
    snprintf(joint.name, sizeof joint.name, "ceiling");
    snprintf(joint.child, sizeof joint.child, "hook");
    joint.type = c.sliding ? RW_JOINT_PRISMATIC : RW_JOINT_SPHERICAL;
    joint.parent_frame.position[2] = 1.1;
    joint.child_frame.position[2] = 0.05;
    scene.rods = &rod;
    scene.rod_count = 1;
    scene.attachments = at;
    scene.attachment_count = 2;
    scene.bodies = bodies;
    scene.body_count = 2;
    scene.joints = &joint;
    scene.joint_count = 1;
    rw_world_config config = {.alloc = alloc};
    rw_world* world;
    rw_error error;
    if (rw_world_create_from_scene(&config, &scene, &world, &error) != RW_STATUS_OK)
        fail_msg("%s: %s", error.path, error.text);
    return world;
}

// Runs 0.3 s and reads height and speed of the load, the cable's pull on it, the ceiling's reaction.
static void run(cable_case c, double out[4]) {
    rw_alloc alloc;
    rw_error error;
    rw_alloc_init(&alloc, 0);
    rw_world* world = hang(&alloc, c);
    const char* globs[] = {"body/load/com_position", "body/load/linear_velocity",
                           "attachment/grip/force", "joint/ceiling/reaction_force"};
    rw_signal_set set;
    assert_int_equal(rw_world_resolve_signals(world, globs, 4, &set, &error), RW_STATUS_OK);
    for (int k = 0; k < 300; k++)
        if (rw_world_step(world, &error) != RW_STATUS_OK)
            fail_msg("integrator %d: %s", (int)c.integrator, error.text);
    double values[12];
    assert_int_equal(rw_world_read_signals(world, &set, values, &error), RW_STATUS_OK);
    for (int k = 0; k < 4; k++)
        out[k] = values[3 * k + 2];
    rw_world_release_signals(world, &set);
    rw_world_destroy(world);
    rw_alloc_finish(&alloc);
}

static const rw_integrator integrators[] = {RW_INTEGRATOR_SYMPLECTIC_EULER, RW_INTEGRATOR_RK4,
                                            RW_INTEGRATOR_RK45, RW_INTEGRATOR_BDF};

static void a_light_load_hangs_still_on_a_steel_cable(void** state) {
    (void)state;
    const double g = 9.81, cable = 7800 * 3.141592653589793 * 4e-6;
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 4; k++) {
            double v[4];
            run((cable_case){r ? RW_SOLVER_SCR : RW_SOLVER_XPBD, integrators[k], false}, v);
            rw_assert_near(v[0], -0.05, 2e-6); // stretched by half a micrometre
            rw_assert_near(v[1], 0.0, 1e-4);
            rw_assert_near(v[2], -0.05 * g, 2e-3);              // the load pulls the cable down
            rw_assert_near(v[3], (0.1 + cable) * g, 5e-3); // all the weight
        }
}

static void a_free_pair_on_a_cable_falls_as_one(void** state) {
    (void)state;
    // The stiff mode couples both bodies through the rod (its pair term); the common mode is free.
    for (int k = 0; k < 4; k++) {
        double v[4];
        run((cable_case){RW_SOLVER_XPBD, integrators[k], true}, v);
        rw_assert_near(v[1], -9.81 * 0.3, 5e-3);
        rw_assert_near(v[0], -0.05 - 0.5 * 9.81 * 0.09, 2e-3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_light_load_hangs_still_on_a_steel_cable),
        cmocka_unit_test(a_free_pair_on_a_cable_falls_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
