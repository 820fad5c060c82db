// Static rods against closed forms: the orders of convergence that half-length clamp elements give,
// large bending, own weight, axial extension. A static answer is one step with a long time step,
// whose inertia is negligible, swept until the residual is.
#include "tests/support/scr_rig.h"

static const double pi = 3.14159265358979323846;

static rw_rod_desc horizontal(double length, const double* radius, uint32_t elements) {
    rw_rod_desc desc;
    rw_scene_init_rod(&desc);
    desc.geometry = RW_ROD_STRAIGHT;
    desc.elements = elements;
    desc.straight.end[0] = length;
    desc.section_radius = (rw_doubles){radius, 1};
    desc.density = 1000.0;
    desc.young_modulus = 5e6;
    return desc;
}

static void solve_static(scr_rig* rig, double tolerance) {
    rig->model.solver.scr.iterations = 4000000;
    rig->model.solver.scr.residual_tolerance = tolerance;
    scr_rig_step(rig, 1e7);
    double residual = rig->v->rod_residual(rig->self, 0);
    if (!(residual <= tolerance))
        fail_msg("residual %g", residual);
}

// Errors at N = 10, 20, 40: the order from each pair.
static void assert_second_order(const char* what, const double error[3]) {
    double first = log2(fabs(error[0] / error[1])), second = log2(fabs(error[1] / error[2]));
    print_message("%s: errors %+.3e %+.3e %+.3e, orders %.3f %.3f\n", what, error[0], error[1],
                  error[2], first, second);
    rw_assert_near(first, 2.0, 0.15);
    rw_assert_near(second, 2.0, 0.1);
}

// The cantilever benchmark (Gere and Timoshenko; Timoshenko beam with this method's GA = EA): E =
// 5 MPa, diameter 0.1 m, length 1 m, 0.1 N at the tip.
static void tip_load_converges_with_order_two(void** unused) {
    (void)unused;
    static const double radius = 0.05;
    double ei = 5e6 * pi * 0.25 * pow(radius, 4), ea = 5e6 * pi * radius * radius, load = 0.1;
    double exact = load / (3.0 * ei) + load / ea, error[3];
    rw_assert_near(load / (3.0 * ei), 0.0013581221810508401, 1e-15);
    for (int k = 0; k < 3; k++) {
        scr_rig rig;
        scr_rig_init(&rig);
        rw_rod_desc desc = horizontal(1.0, &radius, 10u << k);
        int32_t last = (int32_t)desc.elements;
        scr_rig_add_rod(&rig, &desc);
        scr_rig_attach(&rig, RW_ATTACH_CLAMP, 0, 0, -1, NULL);
        rig.node_force[3 * last + 2] = -load;
        solve_static(&rig, 1e-10);
        error[k] = -scr_rig_node(&rig, 0, last).z / exact - 1.0;
        double wrench[6];
        rig.v->attachment_wrench(rig.self, 0, wrench);
        rw_assert_near(wrench[2], load, 1e-8 * load);
        double arm = scr_rig_node(&rig, 0, last).x;
        rw_assert_near(wrench[4], -load * arm, 1e-8 * load);
        scr_rig_finish(&rig);
    }
    assert_second_order("tip load", error);
    assert_true(fabs(error[1]) < 0.0013); // numerics page: +0.13 % at N = 20
}

// The roll-up benchmark (Ibrahimbegovic 1995): length 10, EI = 100; M = pi EI/L makes half a circle,
// 2 pi EI/L a whole one.
static void end_moment_rolls_up_with_order_two(void** unused) {
    (void)unused;
    for (int halves = 1; halves <= 2; halves++) {
        double error[3], length = 10.0, ei = 100.0, moment = halves * pi * ei / length;
        for (int k = 0; k < 3; k++) {
            scr_rig rig;
            scr_rig_init(&rig);
            rw_rod_desc desc = horizontal(length, NULL, (uint32_t)halves * (10u << k));
            desc.section = RW_SECTION_RECTANGLE;
            desc.section_width = desc.section_height = 1.0;
            desc.section_radius.count = 0;
            desc.young_modulus = 1200.0;
            int32_t last = (int32_t)desc.elements;
            scr_rig_add_rod(&rig, &desc);
            scr_rig_attach(&rig, RW_ATTACH_CLAMP, 0, 0, -1, NULL);
            // In parts, so that no element is asked to turn by more than it can bear at once.
            for (int part = 1; part <= 8; part++) {
                rig.node_torque[3 * last + 1] = -moment * part / 8.0;
                solve_static(&rig, 1e-11);
            }
            rw_vec3 tip = scr_rig_node(&rig, 0, last);
            double exact_z = halves == 1 ? 2.0 * length / pi : 0.0;
            double l = length / last, discrete_x = 0.0, discrete_z = 0.0;
            double angle = 2.0 * asin(moment * l / (4.0 * ei));
            for (int32_t i = 0; i < last; i++) { // the discrete rod's own closed form
                discrete_x += l * cos(angle);
                discrete_z += l * sin(angle);
                angle += 2.0 * asin(moment * l / (2.0 * ei));
            }
            rw_assert_near(tip.x, discrete_x, 1e-6);
            rw_assert_near(tip.z, discrete_z, 1e-6);
            error[k] = hypot(tip.x, tip.z - exact_z) / length;
            double wrench[6];
            rig.v->attachment_wrench(rig.self, 0, wrench);
            rw_assert_near(wrench[4], moment, 1e-6 * moment);
            rig.v->element_wrench(rig.self, &rig.state[0], 0, last / 2, wrench);
            rw_assert_near(wrench[4], -moment, 1e-6 * moment);
            scr_rig_finish(&rig);
        }
        assert_second_order(halves == 1 ? "half circle" : "whole circle", error);
    }
}

static double tip_drop(double radius, uint32_t elements, double load_ratio) {
    double area = pi * radius * radius, ei = 5e6 * pi * 0.25 * pow(radius, 4);
    scr_rig rig;
    scr_rig_init(&rig);
    rw_rod_desc desc = horizontal(1.0, &radius, elements);
    scr_rig_add_rod(&rig, &desc);
    scr_rig_attach(&rig, RW_ATTACH_CLAMP, 0, 0, -1, NULL);
    rig.drive.gravity[2] = -load_ratio * ei / (1000.0 * area);
    solve_static(&rig, 1e-8);
    double wrench[6], weight = 1000.0 * area * -rig.drive.gravity[2];
    rig.v->attachment_wrench(rig.self, 0, wrench);
    rw_assert_near(wrench[2], weight, 1e-6 * weight);
    double drop = -scr_rig_node(&rig, 0, (int32_t)elements).z;
    scr_rig_finish(&rig);
    return drop;
}

// Heavy elastica, w L^3/EI = 5 (Wang 1986): the tip drop of the rod without stretch and shear, whose
// part goes with the square of the radius and is taken out with a second, thicker rod.
static void own_weight_converges_with_order_two(void** unused) {
    (void)unused;
    double error[3];
    for (int k = 0; k < 3; k++) {
        double thin = tip_drop(0.01, 10u << k, 5.0), thick = tip_drop(0.02, 10u << k, 5.0);
        rw_assert_near(thick - thin, 1.9e-4, 1e-5);
        error[k] = thin - (thick - thin) / 3.0 - 0.49590504462239177;
    }
    assert_second_order("own weight", error);
    assert_true(fabs(error[2]) < 4e-4);
}

// A hanging rod: w L^2/(2 EA) + F L/EA, to rounding at any number of elements, since lumped weights
// give each element the force at its middle.
static void hanging_rod_extends_by_the_closed_form(void** unused) {
    (void)unused;
    static const double radius = 0.05;
    double area = pi * radius * radius, ea = 5e6 * area, load = 3.0;
    for (uint32_t elements = 1; elements <= 16; elements *= 4) {
        scr_rig rig;
        scr_rig_init(&rig);
        rw_rod_desc desc = horizontal(1.0, &radius, elements);
        desc.straight.end[0] = 0.0;
        desc.straight.end[2] = -1.0;
        scr_rig_add_rod(&rig, &desc);
        scr_rig_attach(&rig, RW_ATTACH_CLAMP, 0, 0, -1, NULL);
        rig.drive.gravity[2] = -9.81;
        rig.node_force[3 * elements + 2] = -load;
        solve_static(&rig, 1e-12);
        double exact = load / ea + 1000.0 * area * 9.81 / (2.0 * ea);
        double tip = scr_rig_node(&rig, 0, (int32_t)elements).z;
        rw_assert_near(-tip - 1.0, exact, 1e-10 * exact + 1e-13);
        double wrench[6];
        rig.v->element_wrench(rig.self, &rig.state[0], 0, 0, wrench);
        double above = load + 1000.0 * area * 9.81 * (1.0 - 0.5 / elements);
        rw_assert_near(wrench[2], above, 1e-8 * above);
        rig.v->attachment_wrench(rig.self, 0, wrench);
        double all = load + 1000.0 * area * 9.81;
        rw_assert_near(wrench[2], all, 1e-8 * all);
        rw_assert_near(rig.v->rod_length(rig.self, &rig.state[0], 0), 1.0 + exact, 1e-12);
        scr_rig_finish(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tip_load_converges_with_order_two),
        cmocka_unit_test(end_moment_rolls_up_with_order_two),
        cmocka_unit_test(own_weight_converges_with_order_two),
        cmocka_unit_test(hanging_rod_extends_by_the_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
