// The xpbd solver beside the formulations that its paper compares with (seed "Orientation in Extended
// Position-Based Dynamics", sections 5.1 and 9.1): scalar constraints of the earlier literature and
// vector constraints, both solved one by one, written here as plainly as possible. And the individual
// (Gauss-Seidel) solution of a rod's system beside the direct one (section 8.2).
#include "tests/support/xpbd_rig.h"

#include "solvers/math/block_banded.h"
#include "solvers/math/small_spd.h"

// ---- Three particles that want to be in one place (section 5.1, figure 3) -----------------------

// One global update of two constraints |p1 - p2| = 0 and |p2 - p3| = 0 (scalar), unit masses: returns
// what is left of the distances.
static double scalar_update(rw_vec3 p[3]) {
    rw_vec3 a = rw_vec3_sub(p[0], p[1]), b = rw_vec3_sub(p[1], p[2]);
    double ca = rw_vec3_norm(a), cb = rw_vec3_norm(b);
    rw_vec3 na = rw_vec3_scale(a, 1 / ca), nb = rw_vec3_scale(b, 1 / cb);
    // Gradients: (na, -na, 0) and (0, nb, -nb); [2, -na.nb; -na.nb, 2] lambda = -C.
    double off = -rw_vec3_dot(na, nb), det = 4 - off * off;
    double la = (-ca * 2 + cb * off) / det, lb = (-cb * 2 + ca * off) / det;
    p[0] = rw_vec3_add_scaled(p[0], la, na);
    p[1] = rw_vec3_add_scaled(rw_vec3_add_scaled(p[1], -la, na), lb, nb);
    p[2] = rw_vec3_add_scaled(p[2], -lb, nb);
    return rw_vec3_norm(rw_vec3_sub(p[0], p[1])) + rw_vec3_norm(rw_vec3_sub(p[1], p[2]));
}

static void vector_constraints_join_three_particles_in_one_update_and_scalar_ones_do_not(void** s) {
    (void)s;
    rw_vec3 p[3] = {{0.6, -0.4, 0}, {-0.3, 0.5, 0}, {1.1, 0.7, 0}};
    const rw_vec3 mean = rw_vec3_scale(rw_vec3_add(p[0], rw_vec3_add(p[1], p[2])), 1.0 / 3);
    // The solver: three bodies on ball joints, started apart, one iteration without forces.
    xpbd_rig* rig = xpbd_rig_open(1e-2, 1);
    static const char* const names[] = {"p0", "p1", "p2"};
    for (int k = 0; k < 3; k++) {
        xpbd_rig_body(rig, names[k], 1, rw_vec3_make(1, 1, 1), p[k]);
    }
    for (int k = 0; k < 2; k++) {
        rw_joint_desc* joint = xpbd_rig_joint(rig, k == 0 ? "a" : "b", RW_JOINT_SPHERICAL, names[k],
                                              names[k + 1], p[k], rw_quat_identity());
        memset(joint->child_frame.position, 0, sizeof joint->child_frame.position);
        memset(joint->parent_frame.position, 0, sizeof joint->parent_frame.position);
    }
    xpbd_rig_start(rig);
    xpbd_rig_run(rig, 1);
    for (int k = 0; k < 3; k++) {
        char signal[32];
        snprintf(signal, sizeof signal, "body/%s/position", names[k]);
        rw_vec3 off = rw_vec3_sub(xpbd_rig_vector(rig, signal), mean);
        rw_assert_near(rw_vec3_norm(off), 0, 1e-12);
    }
    xpbd_rig_close(rig);
    assert_true(scalar_update(p) > 0.1);
}

// ---- The triple pendulum (section 9.1) ----------------------------------------------------------

enum { LINKS = 3 };
static const double link_inertia[3] = {1.0 / 12, 1.0 / 12, 1e-3};

typedef struct link {
    rw_vec3 x, v, w; // w in the body's axes
    rw_quat q;
} link;

typedef struct pendulum {
    link links[LINKS];
    double
        primal; // norm of M (x - x~) - grad C' lambda at the end of the last step, times 1/h^2 [N]
    double gap; // largest distance at a joint
} pendulum;

static pendulum start_pendulum(void) {
    pendulum p = {.gap = 0};
    rw_quat q = rw_so3_exp(rw_vec3_make(0, -80 * M_PI / 180, 0));
    for (int k = 0; k < LINKS; k++) {
        rw_vec3 middle = rw_quat_rotate(q, rw_vec3_make(0, 0, -0.5 - k));
        p.links[k] = (link){.x = middle, .q = q};
    }
    return p;
}

// Arms from the centres to joint j (between link j - 1 or the world, and link j), world axes, and the gap
// from the parent's point to the child's.
static rw_vec3 joint_gap(const link* links, int j, rw_vec3* parent_arm, rw_vec3* child_arm) {
    *child_arm = rw_quat_rotate(links[j].q, rw_vec3_make(0, 0, 0.5));
    rw_vec3 at = rw_vec3_zero();
    *parent_arm = rw_vec3_zero();
    if (j > 0) {
        *parent_arm = rw_quat_rotate(links[j - 1].q, rw_vec3_make(0, 0, -0.5));
        at = rw_vec3_add(links[j - 1].x, *parent_arm);
    }
    return rw_vec3_sub(rw_vec3_add(links[j].x, *child_arm), at);
}

static rw_vec3 inverse_inertia(const link* l, rw_vec3 world) {
    rw_vec3 local = rw_quat_inverse_rotate(l->q, world);
    return rw_quat_rotate(l->q, rw_vec3_make(local.x / link_inertia[0], local.y / link_inertia[1],
                                             local.z / link_inertia[2]));
}

// Applies the position impulse `f` (world, times h^2) at an arm.
static void push(link* l, rw_vec3 arm, rw_vec3 f) {
    rw_vec3 turn = inverse_inertia(l, rw_vec3_cross(arm, f));
    l->x = rw_vec3_add(l->x, f);
    l->q = rw_quat_normalize(rw_quat_mul(rw_so3_exp(turn), l->q));
}

// K of a link at an arm: 1/m I - arm^ I^-1 arm^.
static void add_response(const link* l, rw_vec3 arm, double k[9]) {
    for (int c = 0; c < 3; c++) {
        rw_vec3 e = {c == 0, c == 1, c == 2};
        rw_vec3 r = rw_vec3_cross(inverse_inertia(l, rw_vec3_cross(arm, e)), arm);
        k[c] += (c == 0) + r.x;
        k[3 + c] += (c == 1) + r.y;
        k[6 + c] += (c == 2) + r.z;
    }
}

// One step of backward Euler with `iterations` sweeps over the joints, one after the other.
static void step_pendulum(pendulum* p, double h, int iterations, bool scalar) {
    link start[LINKS], predicted[LINKS];
    rw_vec3 lambda[LINKS]; // vector, or in [0].. .x the scalar
    memcpy(start, p->links, sizeof start);
    for (int k = 0; k < LINKS; k++) {
        link* l = &p->links[k];
        l->v.z -= 9.81 * h;
        l->x = rw_vec3_add_scaled(l->x, h, l->v);
        l->q = rw_so3_boxplus(l->q, rw_vec3_scale(l->w, h));
        lambda[k] = rw_vec3_zero();
    }
    memcpy(predicted, p->links, sizeof predicted);
    for (int i = 0; i < iterations; i++) {
        for (int j = 0; j < LINKS; j++) {
            rw_vec3 pa, ca, gap = joint_gap(p->links, j, &pa, &ca), f;
            double k[9] = {0};
            add_response(&p->links[j], ca, k);
            if (j > 0) {
                add_response(&p->links[j - 1], pa, k);
            }
            if (scalar) {
                double c = rw_vec3_norm(gap);
                if (c < 1e-300) {
                    continue;
                }
                rw_vec3 n = rw_vec3_scale(gap, 1 / c);
                const double e[3] = {n.x, n.y, n.z};
                double w = 0;
                for (int r = 0; r < 3; r++) {
                    for (int q = 0; q < 3; q++) {
                        w += e[r] * k[3 * r + q] * e[q];
                    }
                }
                double step = -c / w;
                lambda[j].x += step;
                f = rw_vec3_scale(n, step);
            } else {
                double b[3] = {-gap.x, -gap.y, -gap.z};
                assert_int_equal(rw_small_spd_factor(3, k, 0), 0);
                rw_small_spd_solve(3, k, b);
                f = rw_vec3_load(b);
                lambda[j] = rw_vec3_add(lambda[j], f);
            }
            push(&p->links[j], ca, f);
            if (j > 0) {
                push(&p->links[j - 1], pa, rw_vec3_neg(f));
            }
        }
    }
    // Velocities, and the primal residual with the gradients at the end.
    rw_vec3 force[LINKS], torque[LINKS];
    p->gap = 0;
    for (int k = 0; k < LINKS; k++) {
        link* l = &p->links[k];
        l->v = rw_vec3_scale(rw_vec3_sub(l->x, start[k].x), 1 / h);
        l->w = rw_vec3_scale(rw_so3_boxminus(l->q, start[k].q), 1 / h);
        force[k] = rw_vec3_sub(l->x, predicted[k].x);
        rw_vec3 t = rw_so3_boxminus(l->q, predicted[k].q);
        torque[k] = rw_quat_rotate(l->q, rw_vec3_make(link_inertia[0] * t.x, link_inertia[1] * t.y,
                                                      link_inertia[2] * t.z));
    }
    for (int j = 0; j < LINKS; j++) {
        rw_vec3 pa, ca, gap = joint_gap(p->links, j, &pa, &ca), f = lambda[j];
        p->gap = fmax(p->gap, rw_vec3_norm(gap));
        if (scalar) {
            f = rw_vec3_scale(rw_vec3_normalize_or(gap, rw_vec3_make(0, 0, 1)), lambda[j].x);
        }
        force[j] = rw_vec3_sub(force[j], f);
        torque[j] = rw_vec3_sub(torque[j], rw_vec3_cross(ca, f));
        if (j > 0) {
            force[j - 1] = rw_vec3_add(force[j - 1], f);
            torque[j - 1] = rw_vec3_add(torque[j - 1], rw_vec3_cross(pa, f));
        }
    }
    double sum = 0;
    for (int k = 0; k < LINKS; k++) {
        sum += rw_vec3_norm_sq(force[k]) + rw_vec3_norm_sq(torque[k]);
    }
    p->primal = sqrt(sum) / (h * h);
}

// The same figures of the solver, from its signals: force and moment balance of every link.
static void read_solver(xpbd_rig* rig, const link* before, double h, link* now, double* primal,
                        double* gap) {
    rw_vec3 reaction[LINKS];
    double sum = 0;
    *gap = 0;
    for (int k = 0; k < LINKS; k++) {
        char signal[48];
        double q[4];
        snprintf(signal, sizeof signal, "body/l%d/position", k);
        now[k].x = xpbd_rig_vector(rig, signal);
        snprintf(signal, sizeof signal, "body/l%d/rotation", k);
        xpbd_rig_read(rig, signal, q);
        now[k].q = rw_quat_load(q);
        snprintf(signal, sizeof signal, "body/l%d/linear_velocity", k);
        now[k].v = xpbd_rig_vector(rig, signal);
        snprintf(signal, sizeof signal, "body/l%d/angular_velocity", k);
        now[k].w = xpbd_rig_vector(rig, signal);
        snprintf(signal, sizeof signal, "joint/j%d/reaction_force", k);
        reaction[k] = xpbd_rig_vector(rig, signal);
    }
    for (int k = 0; k < LINKS; k++) {
        rw_vec3 pa, ca;
        *gap = fmax(*gap, rw_vec3_norm(joint_gap(now, k, &pa, &ca)));
        rw_vec3 f = rw_vec3_scale(rw_vec3_sub(now[k].v, before[k].v), 1 / h);
        f.z += 9.81;
        f = rw_vec3_sub(f, reaction[k]);
        // Moments in the plane of the motion: no gyroscopic part.
        rw_vec3 t = rw_vec3_make(0, link_inertia[1] * (now[k].w.y - before[k].w.y) / h, 0);
        t = rw_vec3_sub(t, rw_vec3_cross(ca, reaction[k]));
        if (k + 1 < LINKS) {
            rw_vec3 next_pa, next_ca;
            joint_gap(now, k + 1, &next_pa, &next_ca);
            f = rw_vec3_add(f, reaction[k + 1]);
            t = rw_vec3_add(t, rw_vec3_cross(next_pa, reaction[k + 1]));
        }
        sum += rw_vec3_norm_sq(f) + rw_vec3_norm_sq(t);
    }
    *primal = sqrt(sum);
}

static void primal_residual_is_ten_thousand_times_below_the_scalar_formulation(void** state) {
    (void)state;
    const double h = 1e-3;
    pendulum oracle[2] = {start_pendulum(), start_pendulum()};
    double worst[3][2] = {{0}};
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 2; k++) {
            step_pendulum(&oracle[k], h, 10, k == 0);
            worst[k][0] = fmax(worst[k][0], oracle[k].primal);
            worst[k][1] = fmax(worst[k][1], oracle[k].gap);
        }
    }
    xpbd_rig* rig = xpbd_rig_open(h, 2);
    xpbd_rig_gravity(rig, 0, 0, -9.81);
    pendulum start = start_pendulum();
    for (int k = 0; k < LINKS; k++) {
        char name[16], parent[16], joint[16];
        snprintf(name, sizeof name, "l%d", k);
        snprintf(parent, sizeof parent, k == 0 ? "" : "l%d", k - 1);
        snprintf(joint, sizeof joint, "j%d", k);
        rw_body_desc* body =
            xpbd_rig_body(rig, name, 1, rw_vec3_load(link_inertia), start.links[k].x);
        rw_quat_store(body->rotation, start.links[k].q);
        rw_vec3 top = rw_quat_rotate(start.links[k].q, rw_vec3_make(0, 0, -k));
        xpbd_rig_joint(rig, joint, RW_JOINT_SPHERICAL, parent, name, top, rw_quat_identity());
    }
    xpbd_rig_start(rig);
    link before[LINKS], now[LINKS];
    memcpy(before, start.links, sizeof before);
    for (int i = 0; i < 1000; i++) {
        double primal, gap;
        xpbd_rig_run(rig, 1);
        read_solver(rig, before, h, now, &primal, &gap);
        worst[2][0] = fmax(worst[2][0], primal);
        worst[2][1] = fmax(worst[2][1], gap);
        memcpy(before, now, sizeof before);
    }
    static const char* const names[] = {"scalar, individual, 10 iterations",
                                        "vector, individual, 10 iterations", "block, 2 iterations"};
    for (int k = 0; k < 3; k++) {
        print_message("%s: primal residual up to %.1e N, gaps up to %.1e m\n", names[k],
                      worst[k][0], worst[k][1]);
    }
    assert_true(worst[2][0] < 1e-4 * worst[0][0]);
    assert_true(worst[2][0] < worst[1][0]);
    assert_true(worst[2][1] < 1e-4 * worst[0][1]);
    // All three are the same mechanics: after a second they are still near each other.
    rw_vec3 apart = rw_vec3_sub(now[2].x, oracle[1].links[2].x);
    assert_true(rw_vec3_norm(apart) < 0.1);
    xpbd_rig_close(rig);
}

// ---- A rod's linear system, block by block (section 8.2) ----------------------------------------

// Stiffness of a clamped chain of `count` bending springs (second differences), EI = 1, unit spacing.
static double tip_after(int sweeps, int count) {
    enum { MOST = 64 };
    double a[MOST * 3], x[MOST] = {0}, b[MOST] = {0};
    assert_true(count < MOST);
    double dense[MOST][MOST] = {{0}};
    // Rows (1, -2, 1) with x[-1] = x[-2] = 0: clamped.
    for (int i = 0; i < count; i++) {
        const double row[3] = {1, -2, 1};
        for (int r = 0; r < 3; r++) {
            for (int c = 0; c < 3; c++) {
                if (i - 2 + r >= 0 && i - 2 + c >= 0) {
                    dense[i - 2 + r][i - 2 + c] += row[r] * row[c];
                }
            }
        }
    }
    b[count - 1] = 1;
    for (int i = 0; i < count; i++) {
        for (int j = i - 2; j <= i; j++) {
            a[3 * i + 2 - (i - j)] = j >= 0 ? dense[i][j] : 0;
        }
    }
    if (sweeps == 0) {
        memcpy(x, b, sizeof x);
        assert_int_equal(rw_block_banded_factor(count, 2, 1, a, x), 0);
        rw_block_banded_finish(count, 2, 1, a, x);
    }
    for (int s = 0; s < sweeps; s++) {
        for (int i = 0; i < count; i++) {
            double sum = b[i];
            for (int j = 0; j < count; j++) {
                sum -= j == i ? 0 : dense[i][j] * x[j];
            }
            x[i] = sum / dense[i][i];
        }
    }
    return x[count - 1];
}

static void direct_solve_is_what_gauss_seidel_takes_thousands_of_sweeps_for(void** state) {
    (void)state;
    const int count = 15; // five cubic elements
    double direct = tip_after(0, count);
    // Closed form: sum of squares.
    rw_assert_near(direct, count * (count + 1) * (2 * count + 1) / 6.0, 1e-8);
    double one = tip_after(1, count), hundred = tip_after(100, count);
    double many = tip_after(200000, count);
    print_message("tip of 15 springs: direct %.6f, 1 sweep %.4f, 100 sweeps %.4f, 200000 %.6f\n",
                  direct, one, hundred, many);
    assert_true(one < 0.01 * direct);
    assert_true(hundred < 0.5 * direct);
    rw_assert_near(many, direct, 1e-6 * direct);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            vector_constraints_join_three_particles_in_one_update_and_scalar_ones_do_not),
        cmocka_unit_test(primal_residual_is_ten_thousand_times_below_the_scalar_formulation),
        cmocka_unit_test(direct_solve_is_what_gauss_seidel_takes_thousands_of_sweeps_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
