// The energies that a world reports count everything once, whichever solver moves the rods.
#include "tests/support/rw_test.h"

#include "solvers/world/world.h"

static const double LENGTH = 0.8, RADIUS = 0.01, DENSITY = 1200, GRAVITY = 9.81;

// A free, unstressed rod of 10 elements along x at height 2, all nodes at `velocity`.
static rw_world* make_flying_rod(rw_alloc* account, rw_solver_kind rods, const double velocity[3]) {
    rw_rod_desc rod;
    rw_scene_init_rod(&rod);
    snprintf(rod.name, sizeof rod.name, "rod");
    rod.geometry = RW_ROD_STRAIGHT;
    rod.elements = 10;
    const double start[3] = {0, 0, 2}, end[3] = {LENGTH, 0, 2};
    memcpy(rod.straight.start, start, sizeof start);
    memcpy(rod.straight.end, end, sizeof end);
    rod.section = RW_SECTION_CIRCLE;
    rod.section_radius = (rw_doubles){&RADIUS, 1};
    rod.density = DENSITY;
    rod.young_modulus = 1e6;
    rod.has_young_modulus = true;
    rod.linear_velocity = (rw_doubles){velocity, 3};
    rw_scene scene;
    rw_scene_init(&scene);
    scene.solver.rods = rods;
    scene.rods = &rod;
    scene.rod_count = 1;
    rw_world_config config = {.alloc = account};
    rw_world* world = NULL;
    rw_error error;
    if (rw_world_create_from_scene(&config, &scene, &world, &error) != RW_STATUS_OK)
        fail_msg("%s: %s", error.path, error.text);
    return world;
}

static void check_flying_rod(rw_solver_kind rods) {
    rw_alloc account;
    rw_alloc_init(&account, 0);
    const double velocity[3] = {1, -2, 2};
    rw_world* world = make_flying_rod(&account, rods, velocity);
    double mass = DENSITY * M_PI * RADIUS * RADIUS * LENGTH;
    double kinetic = 0.5 * mass * 9, gravity = mass * GRAVITY * 2;
    rw_world_energy energy;
    assert_int_equal(rw_world_get_energy(world, &energy, NULL), RW_STATUS_OK);
    rw_assert_near(energy.kinetic, kinetic, 1e-12 * kinetic);
    rw_assert_near(energy.gravity, gravity, 1e-12 * gravity);
    rw_assert_near(energy.elastic, 0, 1e-12);
    rw_assert_near(energy.total, kinetic + gravity, 1e-12 * gravity);

    // In flight what gravity gives, the motion gets: no solver may count either twice.
    for (int i = 0; i < 200; i++) {
        rw_error error;
        if (rw_world_step(world, &error) != RW_STATUS_OK)
            fail_msg("%s", error.text);
    }
    assert_int_equal(rw_world_get_energy(world, &energy, NULL), RW_STATUS_OK);
    // A free fall of first order is off by m g^2 t h / 2 at most; see numerics.
    double first_order = mass * GRAVITY * GRAVITY * 0.2 * 0.001;
    rw_assert_near(energy.total, kinetic + gravity, first_order);
    assert_true(fabs(energy.gravity - gravity) > 10 * first_order);
    rw_world_destroy(world);
    rw_alloc_finish(&account);
}

static void scr_rods_in_flight_have_the_energy_of_their_mass(void** state) {
    (void)state;
    check_flying_rod(RW_SOLVER_SCR);
}

static void xpbd_rods_in_flight_have_the_energy_of_their_mass(void** state) {
    (void)state;
    check_flying_rod(RW_SOLVER_XPBD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scr_rods_in_flight_have_the_energy_of_their_mass),
        cmocka_unit_test(xpbd_rods_in_flight_have_the_energy_of_their_mass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
