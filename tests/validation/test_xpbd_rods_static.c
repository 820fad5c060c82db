// Shapes of xpbd rods at rest against closed forms and published values. Each test names its source;
// motion is damped until it is at rest, so time step and iterations must not matter.
#include "tests/support/xpbd_rig.h"

// Damps quickly without changing what is at rest.
static void damp(rw_rod_desc* rod, double rate) {
    rod->mass_damping = rate;
}

// ---- Small deflections: Euler-Bernoulli and Timoshenko (Gere and Timoshenko; Cowper 1966) -------

typedef struct small_case {
    rw_vec3 force, torque;
    double expected; // displacement or rotation of the tip
    int component;   // 0-2: tip displacement, 3-5: tip rotation vector
    double tolerance;
} small_case;

static void cantilever_deflects_as_timoshenko_says(void** state) {
    (void)state;
    const double young = 5e6, radius = 0.05, nu = 0.3;
    const double area = M_PI * radius * radius, inertia = M_PI * pow(radius, 4) / 4;
    const double g = young / (2 * (1 + nu)), factor = 6 * (1 + nu) / (7 + 6 * nu);
    // Loads are small enough for the linear theory to hold to about 1e-9.
    const small_case cases[] = {
        {{0, 1e-3, 0}, {0}, 1e-3 / (3 * young * inertia) + 1e-3 / (factor * g * area), 1, 1e-7},
        {{0, 1e-3, 0}, {0}, 1e-3 / (2 * young * inertia), 5, 1e-7},
        {{1e-3, 0, 0}, {0}, 1e-3 / (young * area), 0, 1e-6},
        {{0}, {1e-3, 0, 0}, 1e-3 / (g * 2 * inertia), 3, 1e-7},
        {{0}, {0, 0, 1e-3}, 1e-3 / (2 * young * inertia), 1, 1e-7},
    };
    for (uint32_t order = 1; order <= 3; order++) {
        for (size_t k = 0; k < RW_COUNT_OF(cases); k++) {
            xpbd_rig* rig = xpbd_rig_open(0.02, 2);
            // One linear element with one point is exact in the mean only: its tip deflection has
            // the error 1/(4 n^2) of a piecewise constant curvature.
            uint32_t elements = order == 1 ? 40 : 1;
            rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", order, elements, rw_vec3_zero(),
                                            rw_vec3_make(1, 0, 0), radius, 1000, young, nu);
            rod->shear_factor = factor;
            damp(rod, 40);
            xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
            xpbd_rig_load(rig, "load", "rod", 1, cases[k].force, cases[k].torque);
            xpbd_rig_start(rig);
            double start[4], end[4], turn[6];
            xpbd_rig_read(rig, "rod/rod/at/1/rotation", start);
            xpbd_rig_settle(rig, 1e-13, 4000);
            xpbd_rig_read(rig, "rod/rod/at/1/rotation", end);
            rw_vec3_store(turn, rw_vec3_sub(xpbd_rig_tip(rig, 0), rw_vec3_make(1, 0, 0)));
            rw_vec3_store(turn + 3, rw_so3_log(rw_quat_mul(rw_quat_load(end),
                                                           rw_quat_conj(rw_quat_load(start)))));
            double tolerance = order == 1 && cases[k].component == 1 && cases[k].force.y > 0
                                   ? 0.26 / (40 * 40)
                                   : cases[k].tolerance;
            rw_assert_near(turn[cases[k].component], cases[k].expected,
                           tolerance * cases[k].expected);
            xpbd_rig_close(rig);
        }
    }
}

// ---- Elastica under a tip load (Bisshopp and Drucker 1945; Mattiasson 1981) ---------------------

static void elastica_under_a_tip_load_follows_the_elliptic_integrals(void** state) {
    (void)state;
    static const struct {
        double alpha, w, u, theta;
    } table[] = {{1, 0.30172077379981355, 0.05643323628337688, 0.461351949711879},
                 {5, 0.7137915236119128, 0.38762836072442985, 1.215368117611681},
                 {10, 0.8106090248802964, 0.5549955977537513, 1.4302855388038576}};
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        xpbd_rig* rig = xpbd_rig_open(0.02, 3);
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 10, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        0.01, 1000, 1e6, 0.3);
        // Close to inextensible and unshearable: EA = GA = 1e7 EI/L^2.
        rod->has_stiffness = true;
        rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 1;
        rod->stiffness.ea = rod->stiffness.ga1 = rod->stiffness.ga2 = 1e7;
        damp(rod, 10);
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_make(0, -table[k].alpha, 0), rw_vec3_zero());
        xpbd_rig_start(rig);
        xpbd_rig_settle(rig, 1e-9, 4000);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        rw_assert_near(-tip.y, table[k].w, 2e-6);
        rw_assert_near(1 - tip.x, table[k].u, 2e-6);
        double q[4];
        xpbd_rig_read(rig, "rod/rod/at/1/rotation", q);
        rw_vec3 tangent = rw_quat_rotate(rw_quat_load(q), rw_vec3_make(0, 0, 1));
        rw_assert_near(atan2(-tangent.y, tangent.x), table[k].theta, 5e-6);
        xpbd_rig_close(rig);
    }
}

// ---- Heavy elastica (Wang 1986; Belendez, Neipp, Belendez 2003) ---------------------------------

static void elastica_under_its_own_weight_follows_the_shooting_solution(void** state) {
    (void)state;
    static const struct {
        double k, w, u;
    } table[] = {{1, 0.12347140198335162, 0.008753604653364166},
                 {10, 0.7001997155143105, 0.3436462387613981},
                 {50, 0.9079171234772762, 0.7549955}};
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        xpbd_rig* rig = xpbd_rig_open(0.02, 3);
        xpbd_rig_gravity(rig, 0, -9.81, 0);
        const double radius = 0.01, density = table[k].k / (9.81 * M_PI * radius * radius);
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 20, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        radius, density, 1e6, 0.3);
        rod->has_stiffness = true;
        rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 1;
        rod->stiffness.ea = rod->stiffness.ga1 = rod->stiffness.ga2 = 1e7;
        damp(rod, 10);
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_start(rig);
        xpbd_rig_settle(rig, 1e-8, 6000);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        rw_assert_near(-tip.y, table[k].w, 2e-5);
        rw_assert_near(1 - tip.x, table[k].u, 2e-5);
        xpbd_rig_close(rig);
    }
}

// ---- Roll-up by an end moment (closed form; Ibrahimbegovic 1995) --------------------------------

static void end_moment_rolls_the_rod_into_circles(void** state) {
    (void)state;
    static const struct {
        double turns;
        double tip_x, tip_y;
    } table[] = {{0.25, 6.366197723675814, 6.366197723675813},
                 {0.5, 0, 6.366197723675814},
                 {1, 0, 0},
                 {2, 0, 0}};
    for (uint32_t order = 2; order <= 3; order++) {
        for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
            xpbd_rig* rig = xpbd_rig_open(0.05, 3);
            rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", order, 12, rw_vec3_zero(),
                                            rw_vec3_make(10, 0, 0), 0.5, 1, 1200, 0);
            rod->has_stiffness = true;
            // A moment about a fixed axis makes an isotropic rod flutter out of the plane (it is not
            // conservative); bending out of the plane and twist are held by their stiffness here.
            rod->straight.has_normal = true;
            rw_vec3_store(rod->straight.normal, rw_vec3_make(0, 0, 1));
            rod->stiffness.ei1 = 100;
            rod->stiffness.ei2 = rod->stiffness.gj = 1e6;
            rod->stiffness.ea = 1200;
            rod->stiffness.ga1 = rod->stiffness.ga2 = 600;
            damp(rod, 1);
            xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
            // The moment grows: a full turn within one step is no motion.
            double moment = table[k].turns * 2 * M_PI * 100 / 10;
            xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_zero(), rw_vec3_zero());
            const double wrench[6] = {0, 0, 0, 0, 0, moment};
            xpbd_rig_ramp(rig, "force/load", 20, wrench, 6);
            xpbd_rig_start(rig);
            xpbd_rig_run_for(rig, 20);
            xpbd_rig_settle(rig, 1e-7, 8000);
            rw_vec3 tip = xpbd_rig_tip(rig, 0);
            // 12 elements of up to one radian: quadratic shapes are not arcs.
            double tolerance = order == 2 ? 4e-3 : 2e-4;
            rw_assert_near(tip.x, table[k].tip_x, tolerance);
            rw_assert_near(tip.y, table[k].tip_y, tolerance);
            rw_assert_near(tip.z, 0, 1e-7);
            xpbd_rig_close(rig);
        }
    }
}

// ---- Curved beam out of its plane (Bathe and Bolourchi, in the version of BeamDyn and Kynema) ---

static void curved_cantilever_matches_beamdyn(void** state) {
    (void)state;
    enum { ELEMENTS = 24, ORDER = 3, NODES = ELEMENTS * ORDER + 1 };
    const double a = 0.055050720263742435, b = -0.006636390885821638;
    static double positions[3 * NODES], rotations[4 * NODES];
    for (int i = 0; i < NODES; i++) {
        double x = 70.7107 * i / (NODES - 1);
        positions[3 * i] = x;
        positions[3 * i + 1] = a * x + b * x * x;
        positions[3 * i + 2] = 0;
        rw_quat q = rw_quat_mul(rw_so3_exp(rw_vec3_make(0, 0, atan(a + 2 * b * x))),
                                rw_so3_exp(rw_vec3_make(0, M_PI / 2, 0)));
        rw_quat_store(&rotations[4 * i], q);
    }
    xpbd_rig* rig = xpbd_rig_open(1, 4);
    rw_rod_desc* rod =
        xpbd_rig_rod(rig, "rod", ORDER, 0, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.5, 0.3, 1e7, 0);
    rod->geometry = RW_ROD_POLYLINE;
    rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
    rod->polyline.rotations = (rw_doubles){rotations, 4 * NODES};
    rod->has_stiffness = true;
    rod->stiffness.ea = 1e7;
    rod->stiffness.ga1 = rod->stiffness.ga2 = 4166670;
    rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 833300;
    damp(rod, 1);
    xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
    xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_make(0, 0, 600), rw_vec3_zero());
    xpbd_rig_start(rig);
    rw_vec3 start = xpbd_rig_tip(rig, 0);
    xpbd_rig_settle(rig, 1e-7, 6000);
    rw_vec3 moved = rw_vec3_sub(xpbd_rig_tip(rig, 0), start);
    rw_assert_near(moved.x, -23.6459716009048, 2e-5);
    rw_assert_near(moved.y, 13.7208006040058, 2e-5);
    rw_assert_near(moved.z, 53.5776450626989, 2e-5);
    xpbd_rig_close(rig);
}

// ---- Thick beams with shear (Nachbagauer et al. 2011, 2013) --------------------------------------

static void thick_cantilever_matches_nachbagauer(void** state) {
    (void)state;
    static const struct {
        double force, ux, uy, theta, tolerance;
    } table[] = {
        {62500, 1.8884916275219155e-07, 0.0008099032539769428, 0.0005797100700099401, 1e-13},
        {6.25e7, 0.15097114423912883, 0.7105685978530603, 0.5201731660114772, 1e-9}};
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        xpbd_rig* rig = xpbd_rig_open(0.02, 4);
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 8, rw_vec3_zero(), rw_vec3_make(2, 0, 0),
                                        0.1, 7850, 2.07e11, 0.3);
        rod->section = RW_SECTION_RECTANGLE;
        rod->section_width = 0.1; // along d1
        rod->section_height = 0.5;
        rod->has_stiffness = true;
        rod->stiffness.ea = 2.07e11 * 0.05;
        rod->stiffness.ga1 = rod->stiffness.ga2 = 2.07e11 / 2.6 * 0.05 * 0.8496732026143791;
        rod->stiffness.ei1 = 2.07e11 * 0.1 * 0.125 / 12;
        // The reference is planar; the real beam, bent about its strong axis, would buckle sideways.
        rod->stiffness.ei2 = rod->stiffness.gj = 1e11;
        damp(rod, 100);
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        // The force bends about d1: along d2, wherever that is.
        xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_zero(), rw_vec3_zero());
        rod->straight.has_normal = true;
        rw_vec3_store(rod->straight.normal, rw_vec3_make(0, 0, 1));
        const double wrench[6] = {0, -table[k].force};
        xpbd_rig_ramp(rig, "force/load", 1, wrench, 6);
        xpbd_rig_start(rig);
        xpbd_rig_run_for(rig, 1);
        xpbd_rig_settle(rig, 1e-12, 4000);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        rw_assert_near(2 - tip.x, table[k].ux, table[k].tolerance * 10);
        rw_assert_near(-tip.y, table[k].uy, table[k].tolerance * 100);
        xpbd_rig_close(rig);
    }
}

// ---- The helix of Love (Love, Mathematical Theory of Elasticity, sections 270, 271) -------------

// A straight rod is bent and twisted into a helix of radius R and pitch angle by an axial wrench:
// created as that helix, with a straight rest shape, and held at both ends, it must stay there.
static void axial_wrench_keeps_a_rod_in_a_helix(void** state) {
    (void)state;
    static const struct {
        double radius, alpha_deg, twist, force, moment;
    } table[] = {{1, 30, 0.433012701892219, -0.1125, 0.8010734985006056},
                 {1, 30, 0.9, 0.17059600438419645, 0.9645190528383288},
                 {0.5, 60, 2, 0.5339745962155613, 1.462435565298214}};
    enum { ELEMENTS = 30, NODES = 3 * ELEMENTS + 1 };
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        const double radius = table[k].radius, alpha = table[k].alpha_deg * M_PI / 180;
        const double kappa = cos(alpha) * cos(alpha) / radius;
        const double tau = sin(alpha) * cos(alpha) / radius;
        const double length = 2 * M_PI * radius / cos(alpha); // one turn
        static double positions[3 * NODES], rotations[4 * NODES];
        for (int i = 0; i < NODES; i++) {
            double s = length * i / (NODES - 1), phi = s * cos(alpha) / radius;
            rw_vec3 t = {-cos(alpha) * sin(phi), cos(alpha) * cos(phi), sin(alpha)};
            rw_vec3 n = {-cos(phi), -sin(phi), 0}; // principal normal
            rw_vec3 x = {radius * cos(phi), radius * sin(phi), s * sin(alpha)};
            rw_vec3_store(&positions[3 * i], x);
            // The material frame turns about t by u3 - tau against the Frenet frame.
            rw_mat3 frenet = rw_mat3_from_columns(n, rw_vec3_cross(t, n), t);
            rw_quat q = rw_quat_mul(rw_quat_from_mat3(&frenet),
                                    rw_so3_exp(rw_vec3_make(0, 0, (table[k].twist - tau) * s)));
            rw_quat_store(&rotations[4 * i], rw_quat_normalize(q));
        }
        xpbd_rig* rig = xpbd_rig_open(0.1, 3);
        rw_rod_desc* rod =
            xpbd_rig_rod(rig, "rod", 3, 0, rw_vec3_zero(), rw_vec3_make(1, 0, 0), 0.05, 100, 1, 0);
        rod->geometry = RW_ROD_POLYLINE;
        rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
        rod->polyline.rotations = (rw_doubles){rotations, 4 * NODES};
        rod->rest = RW_REST_STRAIGHT;
        rod->has_rest_length = true;
        rod->rest_length = length;
        rod->has_stiffness = true;
        rod->stiffness.ei1 = rod->stiffness.ei2 = 1;
        rod->stiffness.gj = 0.7;
        rod->stiffness.ea = rod->stiffness.ga1 = rod->stiffness.ga2 = 1e6;
        damp(rod, 5);
        xpbd_rig_attach(rig, "foot", RW_ATTACH_CLAMP, "rod", 0, "");
        xpbd_rig_attach(rig, "head", RW_ATTACH_CLAMP, "rod", 1, "");
        xpbd_rig_start(rig);
        xpbd_rig_settle(rig, 1e-8, 4000);
        // The head's wrench about the axis of the helix.
        rw_vec3 force = xpbd_rig_vector(rig, "attachment/head/force");
        rw_vec3 moment = xpbd_rig_vector(rig, "attachment/head/torque");
        rw_vec3 arm = xpbd_rig_tip(rig, 0);
        rw_vec3 about = rw_vec3_add(moment, rw_vec3_cross(arm, force));
        rw_assert_near(force.z, table[k].force, 2e-4);
        rw_assert_near(about.z, table[k].moment, 2e-4);
        rw_assert_near(force.x, 0, 2e-4);
        rw_assert_near(force.y, 0, 2e-4);
        (void)kappa;
        for (int i = 0; i < NODES; i++) {
            rw_vec3 x = xpbd_rig_node(rig, 0, i);
            rw_assert_near(hypot(x.x, x.y), radius, 1e-4 * radius);
        }
        xpbd_rig_close(rig);
    }
}

// ---- Catenary (Irvine, Cable Structures) ---------------------------------------------------------

static void hanging_cable_is_a_catenary(void** state) {
    (void)state;
    // L = 1, span 0.8, w = 10 N/m, EA = 500 N: elastic; EA = 1e7: not.
    static const struct {
        double ea, sag, horizontal, tolerance;
    } table[] = {{500, 0.27198060528427737, 3.291149713510915, 2e-5},
                 {1e7, 0.26543750913982367, 3.3820187908534943, 2e-5}};
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        xpbd_rig* rig = xpbd_rig_open(0.01, 3);
        xpbd_rig_gravity(rig, 0, 0, -10);
        const double radius = 0.01, density = 1 / (M_PI * radius * radius);
        // Straight and compressed to the span; it sags by a small sideways start.
        enum { NODES = 121 };
        static double positions[3 * NODES];
        for (int i = 0; i < NODES; i++) {
            double s = i / (NODES - 1.0);
            positions[3 * i] = 0.8 * s;
            positions[3 * i + 1] = 0;
            positions[3 * i + 2] = -1.06 * s * (1 - s);
        }
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 2, 0, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        radius, density, 1, 0);
        rod->geometry = RW_ROD_POLYLINE;
        rod->polyline.positions = (rw_doubles){positions, 3 * NODES};
        rod->rest = RW_REST_STRAIGHT;
        rod->has_rest_length = true;
        rod->rest_length = 1;
        rod->has_stiffness = true;
        rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 1e-5;
        rod->stiffness.ea = table[k].ea;
        rod->stiffness.ga1 = rod->stiffness.ga2 = table[k].ea;
        damp(rod, 5);
        xpbd_rig_attach(rig, "left", RW_ATTACH_PIN, "rod", 0, "");
        xpbd_rig_attach(rig, "right", RW_ATTACH_PIN, "rod", 1, "");
        xpbd_rig_start(rig);
        xpbd_rig_settle(rig, 1e-7, 6000);
        rw_assert_near(-xpbd_rig_node(rig, 0, NODES / 2).z, table[k].sag, table[k].tolerance);
        rw_vec3 force = xpbd_rig_vector(rig, "attachment/right/force");
        rw_assert_near(force.x, table[k].horizontal, 2e-3);
        rw_assert_near(force.z, 5, 1e-3);
        xpbd_rig_close(rig);
    }
}

// ---- Euler buckling and the elastica behind it (Timoshenko and Gere) ----------------------------

static void cantilever_column_buckles_at_the_euler_load(void** state) {
    (void)state;
    static const struct {
        double ratio, x, y; // load over the critical one; tip over the length
    } table[] = {{0.99, 1, 0},
                 {1.0636632663994143, 0.8812035117260149, 0.4222403401211881},
                 {1.5183887932923932, 0.3489893004148341, 0.7915394965369192},
                 {2.5422583695592635, -0.10692323755357096, 0.7503883660896806}};
    for (size_t k = 0; k < RW_COUNT_OF(table); k++) {
        xpbd_rig* rig = xpbd_rig_open(0.05, 3);
        rw_rod_desc* rod = xpbd_rig_rod(rig, "rod", 3, 12, rw_vec3_zero(), rw_vec3_make(1, 0, 0),
                                        0.01, 300, 1e6, 0.3);
        rod->has_stiffness = true;
        rod->stiffness.ei1 = rod->stiffness.ei2 = rod->stiffness.gj = 1;
        rod->stiffness.ea = rod->stiffness.ga1 = rod->stiffness.ga2 = 1e7;
        // A push aside at the start decides the direction.
        enum { NODES = 37 };
        static double velocity[3 * NODES];
        for (int i = 0; i < NODES; i++) {
            velocity[3 * i + 1] = 0.1 * i / NODES;
        }
        rod->linear_velocity = (rw_doubles){velocity, 3 * NODES};
        damp(rod, 2);
        xpbd_rig_attach(rig, "clamp", RW_ATTACH_CLAMP, "rod", 0, "");
        double load = table[k].ratio * 2.4674011002723395;
        xpbd_rig_load(rig, "load", "rod", 1, rw_vec3_make(-load, 0, 0), rw_vec3_zero());
        xpbd_rig_start(rig);
        xpbd_rig_settle(rig, 1e-9, 20000);
        rw_vec3 tip = xpbd_rig_tip(rig, 0);
        rw_assert_near(tip.x, table[k].x, 1e-5);
        rw_assert_near(fabs(tip.y), table[k].y, 1e-5);
        xpbd_rig_close(rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cantilever_deflects_as_timoshenko_says),
        cmocka_unit_test(elastica_under_a_tip_load_follows_the_elliptic_integrals),
        cmocka_unit_test(elastica_under_its_own_weight_follows_the_shooting_solution),
        cmocka_unit_test(end_moment_rolls_the_rod_into_circles),
        cmocka_unit_test(curved_cantilever_matches_beamdyn),
        cmocka_unit_test(thick_cantilever_matches_nachbagauer),
        cmocka_unit_test(axial_wrench_keeps_a_rod_in_a_helix),
        cmocka_unit_test(hanging_cable_is_a_catenary),
        cmocka_unit_test(cantilever_column_buckles_at_the_euler_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
