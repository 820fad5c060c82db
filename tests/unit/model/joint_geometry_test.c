#include "solvers/model/joint_geometry.h"
#include "solvers/math/so3.h"
#include "solvers/math/trig.h"
#include "tests/support/rw_test.h"

static uint64_t seed = 314159265358979u;
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

static rw_joint_geometry random_joint(rw_joint_type type) {
    rw_joint_desc desc = {.type = type, .distance = 0.7};
    rw_vec3_store(desc.parent_frame.position, random_vec3());
    rw_vec3_store(desc.child_frame.position, random_vec3());
    rw_quat_store(desc.parent_frame.rotation, random_quat());
    rw_quat_store(desc.child_frame.rotation, random_quat());
    rw_joint_geometry joint;
    rw_joint_geometry_init(&joint, &desc, 0, 1, random_vec3(), random_vec3());
    return joint;
}

// A body in free smooth motion: position polynomial, rotation exp of a polynomial.
typedef struct path {
    rw_vec3 p[3], t[3];
} path;
static path random_path(void) {
    return (path){{random_vec3(), random_vec3(), random_vec3()},
                  {random_vec3(), random_vec3(), random_vec3()}};
}
static rw_vec3 polynomial(const rw_vec3* c, double t) {
    return rw_vec3_add_scaled(rw_vec3_add_scaled(c[0], t, c[1]), t * t, c[2]);
}

typedef struct rigid {
    rw_vec3 p;
    rw_quat q;
} rigid;
static rigid path_at(const path* c, double t) {
    return (rigid){polynomial(c->p, t), rw_so3_exp(polynomial(c->t, t))};
}
static rigid compose(rigid a, rigid b) {
    return (rigid){rw_vec3_add(a.p, rw_quat_rotate(a.q, b.p)), rw_quat_mul(a.q, b.q)};
}
static rigid invert(rigid a) {
    return (rigid){rw_vec3_neg(rw_quat_inverse_rotate(a.q, a.p)), rw_quat_conj(a.q)};
}

// Pose and velocity at t from central differences of a motion; also accelerations.
typedef rigid (*motion)(const void* context, double t);
static const double step = 2e-4;
static void sample(motion m, const void* context, double t, rw_joint_pose* pose, rw_vec3* acceleration,
                   rw_vec3* angular_acceleration) {
    rigid a = m(context, t - step), b = m(context, t), c = m(context, t + step);
    pose->position = b.p;
    pose->rotation = rw_quat_to_mat3(b.q);
    pose->velocity = rw_vec3_scale(rw_vec3_sub(c.p, a.p), 0.5 / step);
    // World increments: boxminus with the arguments conjugated is log(q_new q_old*).
    rw_vec3 w1 = rw_so3_log(rw_quat_mul(b.q, rw_quat_conj(a.q)));
    rw_vec3 w2 = rw_so3_log(rw_quat_mul(c.q, rw_quat_conj(b.q)));
    pose->angular = rw_vec3_scale(rw_vec3_add(w1, w2), 0.5 / step);
    *angular_acceleration = rw_vec3_scale(rw_vec3_sub(w2, w1), 1.0 / (step * step));
    *acceleration = rw_vec3_scale(rw_vec3_sub(rw_vec3_add(a.p, c.p), rw_vec3_scale(b.p, 2.0)),
                                  1.0 / (step * step));
}

static rigid follow_path(const void* context, double t) { return path_at(context, t); }

static double row_apply(const rw_joint_row* row, rw_vec3 a, rw_vec3 wa, rw_vec3 b, rw_vec3 wb) {
    rw_joint_pose p = {.velocity = a, .angular = wa}, c = {.velocity = b, .angular = wb};
    return rw_joint_geometry_row_rate(row, &p, &c);
}

static void error_at(const rw_joint_geometry* joint, motion m, const path* paths, double t, double* phi) {
    rigid a = m(&paths[0], t), b = m(&paths[1], t);
    rw_joint_pose p = {.position = a.p, .rotation = rw_quat_to_mat3(a.q)};
    rw_joint_pose c = {.position = b.p, .rotation = rw_quat_to_mat3(b.q)};
    rw_joint_frames f;
    rw_joint_geometry_frames_at(joint, &p, &c, &f);
    rw_joint_geometry_error(joint, &f, phi);
}

static void jacobian_and_gamma_are_derivatives_of_the_error_for_any_motion(void** state) {
    (void)state;
    for (int type = 0; type < RW_JOINT_TYPE_COUNT; type++)
        for (int repeat = 0; repeat < 20; repeat++) {
            rw_joint_geometry joint = random_joint((rw_joint_type)type);
            path paths[2] = {random_path(), random_path()};
            rw_joint_pose pose[2];
            rw_vec3 a[2], w[2];
            for (int k = 0; k < 2; k++)
                sample(follow_path, &paths[k], 0.3, &pose[k], &a[k], &w[k]);
            rw_joint_frames f;
            rw_joint_geometry_frames_at(&joint, &pose[0], &pose[1], &f);
            rw_joint_row rows[6];
            double gamma[6], before[6], now[6], after[6];
            rw_joint_geometry_jacobian(&joint, &f, rows);
            rw_joint_geometry_gamma(&joint, &f, &pose[0], &pose[1], gamma);
            error_at(&joint, follow_path, paths, 0.3 - step, before);
            error_at(&joint, follow_path, paths, 0.3, now);
            error_at(&joint, follow_path, paths, 0.3 + step, after);
            for (int k = 0; k < joint.row_count; k++) {
                double rate = rw_joint_geometry_row_rate(&rows[k], &pose[0], &pose[1]);
                rw_assert_near(rate, (after[k] - before[k]) / (2 * step), 3e-6);
                double second = (after[k] - 2 * now[k] + before[k]) / (step * step);
                rw_assert_near(row_apply(&rows[k], a[0], w[0], a[1], w[1]) - gamma[k], second,
                               3e-4);
            }
        }
}

// A child that moves on its parent as the joint allows, with given coordinates in time.
typedef struct jointed {
    const rw_joint_geometry* joint;
    path parent;
    double c[4][3]; // coordinates as polynomials; SPHERICAL: rotation vector
} jointed;

static double coordinate_at(const jointed* j, int k, double t) {
    return j->c[k][0] + t * (j->c[k][1] + t * j->c[k][2]);
}

static rigid joint_transform(const jointed* j, double t) {
    double x = coordinate_at(j, 0, t), y = coordinate_at(j, 1, t), z = coordinate_at(j, 2, t);
    rigid r = {rw_vec3_zero(), rw_quat_identity()};
    switch (j->joint->type) {
    case RW_JOINT_REVOLUTE:
        r.q = rw_so3_exp((rw_vec3){0, 0, x});
        break;
    case RW_JOINT_PRISMATIC:
        r.p.z = x;
        break;
    case RW_JOINT_CYLINDRICAL:
        r.p.z = x;
        r.q = rw_so3_exp((rw_vec3){0, 0, y});
        break;
    case RW_JOINT_PLANAR:
        r.p = (rw_vec3){x, y, 0};
        r.q = rw_so3_exp((rw_vec3){0, 0, z});
        break;
    case RW_JOINT_UNIVERSAL:
        r.q = rw_quat_mul(rw_so3_exp((rw_vec3){0, 0, x}), rw_so3_exp((rw_vec3){y, 0, 0}));
        break;
    case RW_JOINT_SPHERICAL:
        r.q = rw_so3_exp((rw_vec3){x, y, z});
        break;
    case RW_JOINT_DISTANCE:
        r.p = rw_vec3_scale(rw_quat_rotate(rw_so3_exp((rw_vec3){x, y, 0}), (rw_vec3){0, 0, 1}),
                            j->joint->distance);
        r.q = rw_so3_exp((rw_vec3){z, x, y});
        break;
    case RW_JOINT_FIXED:
    case RW_JOINT_TYPE_COUNT:
        break;
    }
    return r;
}

static rigid follow_parent(const void* context, double t) {
    return path_at(&((const jointed*)context)->parent, t);
}
static rigid frame_of(rw_vec3 anchor, rw_mat3 m) { return (rigid){anchor, rw_quat_from_mat3(&m)}; }
static rigid follow_child(const void* context, double t) {
    const jointed* j = context;
    rigid at = compose(path_at(&j->parent, t),
                       frame_of(j->joint->parent_anchor, j->joint->parent_frame));
    at = compose(at, joint_transform(j, t));
    return compose(at, invert(frame_of(j->joint->child_anchor, j->joint->child_frame)));
}

static void allowed_motion_meets_every_row_and_gives_back_its_coordinates(void** state) {
    (void)state;
    for (int type = 0; type < RW_JOINT_TYPE_COUNT; type++)
        for (int repeat = 0; repeat < 20; repeat++) {
            rw_joint_geometry joint = random_joint((rw_joint_type)type);
            jointed j = {.joint = &joint, .parent = random_path()};
            for (int k = 0; k < 12; k++)
                j.c[k / 3][k % 3] = uniform() * (k % 3 == 0 ? 2.0 : 1.0);
            rw_joint_pose pose[2];
            rw_vec3 a[2], w[2];
            sample(follow_parent, &j, 0.2, &pose[0], &a[0], &w[0]);
            sample(follow_child, &j, 0.2, &pose[1], &a[1], &w[1]);
            rw_joint_frames f;
            rw_joint_geometry_frames_at(&joint, &pose[0], &pose[1], &f);
            rw_joint_row rows[6];
            double phi[6], gamma[6], violation[2];
            rw_joint_geometry_error(&joint, &f, phi);
            rw_joint_geometry_jacobian(&joint, &f, rows);
            rw_joint_geometry_gamma(&joint, &f, &pose[0], &pose[1], gamma);
            for (int k = 0; k < joint.row_count; k++) {
                rw_assert_near(phi[k], 0.0, 1e-14);
                rw_assert_near(rw_joint_geometry_row_rate(&rows[k], &pose[0], &pose[1]), 0.0, 2e-6);
                rw_assert_near(row_apply(&rows[k], a[0], w[0], a[1], w[1]), gamma[k], 2e-5);
            }
            rw_joint_geometry_violation(&joint, &f, violation);
            rw_assert_near(violation[0], 0.0, 1e-14);
            rw_assert_near(violation[1], 0.0, 1e-14);

            double c[4], bias[3];
            rw_joint_row rates[3];
            rw_joint_geometry_coordinate(&joint, &f, c);
            rw_joint_geometry_rates(&joint, &f, rates);
            rw_joint_geometry_rate_bias(&joint, &f, &pose[0], &pose[1], bias);
            if (type == RW_JOINT_SPHERICAL) {
                rw_quat q = joint_transform(&j, 0.2).q, before, after;
                before = joint_transform(&j, 0.2 - step).q;
                after = joint_transform(&j, 0.2 + step).q;
                q = q.w < 0 ? rw_quat_neg(q) : q;
                rw_assert_near(rw_quat_norm(rw_quat_sub(q, rw_quat_load(c))), 0.0, 1e-14);
                rw_vec3 one = rw_so3_boxminus(q, before), two = rw_so3_boxminus(after, q);
                double first[3], second[3];
                rw_vec3_store(first, rw_vec3_scale(rw_vec3_add(one, two), 0.5 / step));
                rw_vec3_store(second,
                              rw_vec3_scale(rw_vec3_sub(two, one), 1.0 / (step * step)));
                for (int k = 0; k < 3; k++) {
                    rw_assert_near(rw_joint_geometry_row_rate(&rates[k], &pose[0], &pose[1]), first[k],
                                   3e-6);
                    rw_assert_near(row_apply(&rates[k], a[0], w[0], a[1], w[1]) + bias[k],
                                   second[k], 1e-4);
                }
                continue;
            }
            for (int k = 0; k < joint.rate_count; k++) {
                rw_assert_near(c[k], coordinate_at(&j, k, 0.2), 1e-14);
                double rate = j.c[k][1] + 0.4 * j.c[k][2];
                rw_assert_near(rw_joint_geometry_row_rate(&rates[k], &pose[0], &pose[1]), rate, 2e-6);
                rw_assert_near(row_apply(&rates[k], a[0], w[0], a[1], w[1]) + bias[k],
                               2.0 * j.c[k][2], 2e-5);
            }
        }
}

static void a_joint_assembled_back_to_front_shows_its_true_angle(void** state) {
    (void)state;
    const double pi = 3.141592653589793;
    const rw_joint_type types[] = {RW_JOINT_FIXED, RW_JOINT_REVOLUTE, RW_JOINT_PRISMATIC,
                                   RW_JOINT_CYLINDRICAL, RW_JOINT_PLANAR};
    for (int k = 0; k < 5; k++) {
        rw_joint_desc desc = {.type = types[k], .parent_frame = RW_FRAME_IDENTITY,
                              .child_frame = RW_FRAME_IDENTITY};
        rw_joint_geometry joint;
        rw_joint_geometry_init(&joint, &desc, -1, 0, rw_vec3_zero(), rw_vec3_zero());
        rw_joint_pose world = {.rotation = rw_mat3_identity()}, body = world;
        body.rotation = rw_mat3_diagonal(1, -1, -1); // half a turn about x: the rows all vanish
        rw_joint_frames f;
        rw_joint_geometry_frames_at(&joint, &world, &body, &f);
        double phi[6], violation[2];
        rw_joint_geometry_error(&joint, &f, phi);
        for (int r = 0; r < joint.row_count; r++)
            rw_assert_near(phi[r], 0.0, 1e-15);
        rw_joint_geometry_violation(&joint, &f, violation);
        rw_assert_near(violation[1], pi, 1e-15);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jacobian_and_gamma_are_derivatives_of_the_error_for_any_motion),
        cmocka_unit_test(allowed_motion_meets_every_row_and_gives_back_its_coordinates),
        cmocka_unit_test(a_joint_assembled_back_to_front_shows_its_true_angle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
