// Mass matrix, Jacobian, inverse and forward dynamics on random trees and closed loops.
#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/world/world_dynamics.h"
#include "tests/support/dae_rig.h"

static uint64_t seed = 998244353998244353u;
static double uniform(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-52 - 1.0;
}
static rw_vec3 random_vec3(void) { return (rw_vec3){uniform(), uniform(), uniform()}; }
static rw_quat random_quat(void) {
    return rw_quat_normalize((rw_quat){uniform(), uniform(), uniform(), uniform()});
}

// A random tree of `n` bodies, every joint type in turn; some joints have their parent outside.
static void random_tree(dae_rig* rig, int n, bool closed) {
    static const rw_joint_type types[] = {RW_JOINT_REVOLUTE,    RW_JOINT_SPHERICAL,
                                          RW_JOINT_PRISMATIC,   RW_JOINT_UNIVERSAL,
                                          RW_JOINT_CYLINDRICAL, RW_JOINT_PLANAR,
                                          RW_JOINT_FIXED};
    dae_rig_open(rig, RW_INTEGRATOR_RK4, 1e-3);
    char name[16], other[16], joint[16];
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "b%d", k);
        rw_body_desc b = dae_rig_body(name, 1.0 + 0.5 * uniform(), (rw_vec3){0.1, 0.12, 0.15},
                                      rw_vec3_scale(random_vec3(), 2.0), random_quat());
        rw_vec3_store(b.center_of_mass, rw_vec3_scale(random_vec3(), 0.2));
        b.has_center_of_mass = true;
        dae_rig_add_body(rig, &b);
        int parent = (int)floor((uniform() + 1.0) / 2.0 * (k + 1)) - 1;
        snprintf(other, sizeof other, "%s", "");
        if (parent >= 0)
            snprintf(other, sizeof other, "b%d", parent);
        snprintf(joint, sizeof joint, "j%d", k);
        bool turned = parent >= 0 && k % 3 == 2;
        rw_joint_desc d = dae_rig_joint(rig, joint, types[k % 7], turned ? name : other,
                                        turned ? other : name, random_vec3(), random_quat());
        d.damping = k % 4 == 1 ? 0.3 : 0.0;
        dae_rig_add_joint(rig, &d);
    }
    if (closed) { // the last body to the world, by a ball
        rw_joint_desc d = dae_rig_joint(rig, "closing", RW_JOINT_SPHERICAL, "", name, random_vec3(),
                                        random_quat());
        dae_rig_add_joint(rig, &d);
    }
    dae_rig_start(rig);
    // Velocities that the joints allow: set at random, then projected by the assembly.
    for (int b = 0; b < rig->model.bodies.count; b++) {
        rw_vec3_store(rig->from.body_linear_velocity + 3 * b, random_vec3());
        rw_vec3_store(rig->from.body_angular_velocity + 3 * b, random_vec3());
    }
    assert_int_equal(rig->solver.vtable->assemble(rig->solver.self, &rig->from, &rig->error),
                     RW_STATUS_OK);
}

static void forward_dynamics_of_inverse_dynamics_gives_the_accelerations(void** state) {
    (void)state;
    int compared = 0;
    for (int repeat = 0; repeat < 40; repeat++) {
        bool closed = repeat % 2;
        dae_rig rig;
        random_tree(&rig, 3 + repeat % 9, closed);
        rw_arena arena;
        rw_arena_init(&arena, &rig.alloc);
        rw_dae_query q;
        assert_int_equal(rw_dae_ask(rig.solver.self, &rig.from, 0.0, &arena, &q, &rig.error),
                         RW_STATUS_OK);
        double a[64], tau[64], back[64];
        for (int i = 0; i < q.rate_count; i++)
            a[i] = uniform() * 3.0;
        if (closed) { // only what the loop allows: the motion under some efforts
            for (int i = 0; i < q.rate_count; i++)
                tau[i] = uniform() * 3.0;
            assert_int_equal(rw_dae_query_forward_dynamics(&q, tau, a), RW_STATUS_OK);
        }
        // A random loop may be closed so that some row is redundant here and nowhere else: then no
        // acceleration meets it exactly.
        bool allowed = rw_dae_redundant_rows(rig.solver.self) == 0;
        compared += allowed;
        rw_dae_query_inverse_dynamics(&q, a, tau);
        assert_int_equal(rw_dae_query_forward_dynamics(&q, tau, back), RW_STATUS_OK);
        for (int i = 0; i < q.rate_count && allowed; i++)
            rw_assert_near(back[i], a[i], 1e-8);
        rw_arena_finish(&arena);
        dae_rig_close(&rig);
    }
    print_message("%d of 40 compared\n", compared);
    assert_true(compared >= 25);
}

static void mass_matrix_is_symmetric_and_is_inverse_dynamics_difference(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 10; repeat++) {
        dae_rig rig;
        random_tree(&rig, 6, false);
        rw_arena arena;
        rw_arena_init(&arena, &rig.alloc);
        rw_dae_query q;
        assert_int_equal(rw_dae_ask(rig.solver.self, &rig.from, 0.0, &arena, &q, &rig.error),
                         RW_STATUS_OK);
        int n = q.rate_count;
        double m[32 * 32], a[32] = {0}, base[32], tau[32];
        assert_true(n <= 32);
        rw_dae_query_mass_matrix(&q, m);
        rw_dae_query_inverse_dynamics(&q, a, base);
        for (int i = 0; i < n; i++) {
            a[i] = 1.0;
            rw_dae_query_inverse_dynamics(&q, a, tau);
            a[i] = 0.0;
            for (int k = 0; k < n; k++) {
                rw_assert_near(tau[k] - base[k], m[i * n + k], 1e-11);
                rw_assert_near(m[i * n + k], m[k * n + i], 1e-12);
            }
        }
        // Kinetic energy: v' M v / 2 with the joints' rates.
        double rates[32], energy = 0.0;
        for (int32_t k = 0; k < rig.model.joints.count; k++)
            rig.solver.vtable->joint_rate(rig.solver.self, &rig.from, k,
                                          rates + rig.model.joints.items[k].rate_first);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                energy += 0.5 * rates[q.rates[i]] * rates[q.rates[k]] * m[i * n + k];
        rw_vec3_store(rig.model.gravity, rw_vec3_zero());
        rw_assert_near(energy, dae_rig_energy(&rig), 1e-11);
        rw_arena_finish(&arena);
        dae_rig_close(&rig);
    }
}

static void jacobian_gives_a_points_velocity_from_the_rates(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 10; repeat++) {
        dae_rig rig;
        random_tree(&rig, 7, false);
        rw_arena arena;
        rw_arena_init(&arena, &rig.alloc);
        rw_dae_query q;
        assert_int_equal(rw_dae_ask(rig.solver.self, &rig.from, 0.0, &arena, &q, &rig.error),
                         RW_STATUS_OK);
        double rows[6 * 32], rates[32];
        rw_vec3 point = random_vec3();
        for (int32_t k = 0; k < rig.model.joints.count; k++)
            rig.solver.vtable->joint_rate(rig.solver.self, &rig.from, k,
                                          rates + rig.model.joints.items[k].rate_first);
        for (int32_t b = 0; b < 7; b++) {
            rw_dae_query_jacobian(&q, b, point, rows);
            rw_quat turn = rw_quat_load(rig.from.body_rotation + 4 * b);
            rw_vec3 c = rw_vec3_load(rig.model.bodies.center_of_mass + 3 * b);
            rw_vec3 w = rw_quat_rotate(turn, rw_vec3_load(rig.from.body_angular_velocity + 3 * b));
            rw_vec3 v = rw_vec3_add(
                rw_vec3_load(rig.from.body_linear_velocity + 3 * b),
                rw_vec3_cross(w, rw_quat_rotate(turn, rw_vec3_sub(point, c))));
            const double expected[6] = {v.x, v.y, v.z, w.x, w.y, w.z};
            for (int i = 0; i < 6; i++) {
                double sum = 0.0;
                for (int k = 0; k < q.rate_count; k++)
                    sum += rows[i * q.rate_count + k] * rates[q.rates[k]];
                rw_assert_near(sum, expected[i], 1e-12);
            }
        }
        rw_arena_finish(&arena);
        dae_rig_close(&rig);
    }
}

// A world of either rigid solver answers alike: a bar on a motor, in closed form.
static void a_world_answers_for_either_rigid_solver(void** state) {
    (void)state;
    for (int dae = 0; dae < 2; dae++) {
        rw_alloc alloc;
        rw_error error;
        rw_alloc_init(&alloc, 0);
        rw_world_config config = {.alloc = &alloc};
        rw_world* world;
        rw_scene scene;
        rw_scene_init(&scene);
        scene.solver.rigid = dae ? RW_SOLVER_DAE : RW_SOLVER_XPBD;
        rw_body_desc bar = dae_rig_body("bar", 2, (rw_vec3){0.01, 0.2, 0.2}, (rw_vec3){0.5, 0, 0},
                                        rw_quat_identity());
        rw_joint_desc joint;
        rw_scene_init_joint(&joint);
        snprintf(joint.name, sizeof joint.name, "hinge");
        snprintf(joint.child, sizeof joint.child, "bar");
        joint.type = RW_JOINT_REVOLUTE;
        rw_quat_store(joint.parent_frame.rotation, dae_rig_z_to(0, -1, 0));
        rw_quat_store(joint.child_frame.rotation, dae_rig_z_to(0, -1, 0));
        joint.child_frame.position[0] = -0.5;
        scene.bodies = &bar;
        scene.body_count = 1;
        scene.joints = &joint;
        scene.joint_count = 1;
        assert_int_equal(rw_world_create_from_scene(&config, &scene, &world, &error), RW_STATUS_OK);
        rw_arena arena;
        rw_arena_init(&arena, &alloc);
        rw_world_dynamics_answer answer;
        rw_world_dynamics_question question = {.kind = RW_WORLD_DYNAMICS_MASS_MATRIX};
        assert_int_equal(rw_world_dynamics_ask(world, &question, &arena, &answer, &error),
                         RW_STATUS_OK);
        double inertia = 0.2 + 2 * 0.25;
        assert_int_equal(answer.rate_count, 1);
        assert_string_equal(answer.joints[0], "hinge");
        rw_assert_near(answer.values[0], inertia, 1e-14);
        question.kind = RW_WORLD_DYNAMICS_FORWARD;
        assert_int_equal(rw_world_dynamics_ask(world, &question, &arena, &answer, &error),
                         RW_STATUS_OK);
        rw_assert_near(answer.values[0], -2 * 9.81 * 0.5 / inertia, 1e-12);
        double two = 2.0;
        question.kind = RW_WORLD_DYNAMICS_INVERSE;
        question.input = (rw_doubles){&two, 1};
        assert_int_equal(rw_world_dynamics_ask(world, &question, &arena, &answer, &error),
                         RW_STATUS_OK);
        rw_assert_near(answer.values[0], 2 * inertia + 2 * 9.81 * 0.5, 1e-12);
        double three[3] = {0};
        question.input = (rw_doubles){three, 3};
        assert_int_equal(rw_world_dynamics_ask(world, &question, &arena, &answer, &error),
                         RW_STATUS_INVALID_ARGUMENT);
        question = (rw_world_dynamics_question){.kind = RW_WORLD_DYNAMICS_JACOBIAN,
                                                .point = {0.5, 0, 0}};
        assert_int_equal(rw_world_dynamics_ask(world, &question, &arena, &answer, &error),
                         RW_STATUS_OK);
        const double expected[6] = {0, 0, 1, 0, -1, 0};
        for (int i = 0; i < 6; i++)
            rw_assert_near(answer.values[i], expected[i], 1e-14);
        rw_arena_finish(&arena);
        rw_world_destroy(world);
        rw_alloc_finish(&alloc);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_dynamics_of_inverse_dynamics_gives_the_accelerations),
        cmocka_unit_test(mass_matrix_is_symmetric_and_is_inverse_dynamics_difference),
        cmocka_unit_test(a_world_answers_for_either_rigid_solver),
        cmocka_unit_test(jacobian_gives_a_points_velocity_from_the_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
