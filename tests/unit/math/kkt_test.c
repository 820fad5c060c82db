#include "solvers/math/kkt.h"

#include <stdlib.h>

#include "solvers/model/joint_geometry.h"
#include "solvers/math/so3.h"
#include "tests/support/rw_test.h"

#define MAX_BODIES 64
#define MAX_ROWS 400

static uint64_t seed = 271828182845904u;
static double uniform(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-52 - 1.0;
}

// A graph that is built edge by edge; body -1 is the world.
typedef struct builder {
    int32_t bodies, constraints, first[600], list[1200];
    int8_t rows[600];
    bool on_world[600], is_joint[600];
} builder;

static void add(builder* g, int rows, bool is_joint, int count, const int* bodies) {
    int32_t k = g->constraints++, at = g->first[k];
    for (int i = 0; i < count; i++) {
        if (bodies[i] < 0)
            g->on_world[k] = true;
        else
            g->list[at++] = bodies[i];
    }
    g->first[k + 1] = at;
    g->rows[k] = (int8_t)rows;
    g->is_joint[k] = is_joint;
}
static void edge(builder* g, int rows, int a, int b) { add(g, rows, true, 2, (int[]){a, b}); }

static rw_kkt* make(const builder* g, rw_alloc* alloc) {
    rw_alloc_init(alloc, 0);
    rw_kkt* kkt;
    rw_kkt_graph graph = {g->bodies, g->constraints, g->first, g->list, g->rows, g->on_world,
                          g->is_joint};
    assert_int_equal(rw_kkt_create(alloc, &graph, &kkt), RW_STATUS_OK);
    return kkt;
}

static void drop(rw_kkt* kkt, rw_alloc* alloc) {
    rw_kkt_destroy(kkt);
    rw_alloc_finish(alloc);
}

static void fill_random(rw_kkt* kkt, const builder* g, double epsilon) {
    for (int b = 0; b < g->bodies; b++) {
        double x[36], *m = rw_kkt_mass(kkt, b);
        for (int i = 0; i < 36; i++)
            x[i] = uniform();
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++) {
                m[6 * i + j] = i == j ? 0.5 : 0.0;
                for (int k = 0; k < 6; k++)
                    m[6 * i + j] += x[6 * i + k] * x[6 * j + k];
            }
    }
    for (int k = 0; k < g->constraints; k++) {
        for (int t = g->first[k]; t < g->first[k + 1]; t++)
            for (int i = 0; i < 6 * g->rows[k]; i++)
                rw_kkt_jacobian(kkt, t)[i] = uniform();
        for (int i = 0; i < g->rows[k]; i++)
            rw_kkt_epsilon(kkt, k)[i] = epsilon;
    }
}

// Dense Gaussian elimination with partial pivoting of the whole KKT matrix: the oracle.
static void dense_solve(rw_kkt* kkt, const builder* g, double* body, double* row) {
    int nb = 6 * g->bodies, m = rw_kkt_row_count(kkt), n = nb + m;
    double* a = calloc((size_t)n * (size_t)(n + 1), sizeof *a);
    int w = n + 1;
    for (int b = 0; b < g->bodies; b++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++)
                a[(6 * b + i) * w + 6 * b + j] = rw_kkt_mass(kkt, b)[6 * i + j];
    for (int k = 0; k < g->constraints; k++) {
        int r = nb + rw_kkt_row_first(kkt, k);
        for (int t = g->first[k]; t < g->first[k + 1]; t++)
            for (int i = 0; i < g->rows[k]; i++)
                for (int j = 0; j < 6; j++)
                    a[(r + i) * w + 6 * g->list[t] + j] = a[(6 * g->list[t] + j) * w + r + i] =
                        rw_kkt_jacobian(kkt, t)[6 * i + j];
        for (int i = 0; i < g->rows[k]; i++)
            a[(r + i) * w + r + i] = -rw_kkt_epsilon(kkt, k)[i];
    }
    for (int i = 0; i < n; i++)
        a[i * w + n] = i < nb ? body[i] : row[i - nb];
    for (int c = 0; c < n; c++) {
        int p = c;
        for (int i = c + 1; i < n; i++)
            if (fabs(a[i * w + c]) > fabs(a[p * w + c]))
                p = i;
        for (int j = 0; j < w; j++) {
            double t = a[c * w + j];
            a[c * w + j] = a[p * w + j];
            a[p * w + j] = t;
        }
        for (int i = c + 1; i < n; i++) {
            double f = a[i * w + c] / a[c * w + c];
            for (int j = c; j < w && f != 0.0; j++)
                a[i * w + j] -= f * a[c * w + j];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        double s = a[i * w + n];
        for (int j = i + 1; j < n; j++)
            s -= a[i * w + j] * a[j * w + n];
        a[i * w + n] = s / a[i * w + i];
    }
    for (int i = 0; i < n; i++)
        *(i < nb ? &body[i] : &row[i - nb]) = a[i * w + n];
    free(a);
}

static void compare_with_dense(builder* g, double epsilon, double tolerance) {
    rw_alloc alloc;
    rw_kkt* kkt = make(g, &alloc);
    fill_random(kkt, g, epsilon);
    double body[6 * MAX_BODIES], row[MAX_ROWS], body2[6 * MAX_BODIES], row2[MAX_ROWS];
    int m = rw_kkt_row_count(kkt);
    for (int i = 0; i < 6 * g->bodies; i++)
        body[i] = body2[i] = uniform();
    for (int i = 0; i < m; i++)
        row[i] = row2[i] = uniform();
    rw_kkt_pivots pivots = rw_kkt_factor(kkt, NULL, NULL);
    assert_int_equal(pivots.guarded, 0);
    rw_kkt_solve(kkt, body, row, NULL);
    dense_solve(kkt, g, body2, row2);
    double size = 0.0;
    for (int i = 0; i < m; i++)
        size = fmax(size, fabs(row2[i]));
    for (int i = 0; i < 6 * g->bodies; i++)
        rw_assert_near(body[i], body2[i], tolerance * fmax(1.0, size));
    for (int i = 0; i < m; i++)
        rw_assert_near(row[i], row2[i], tolerance * fmax(1.0, size));
    drop(kkt, &alloc);
}

static void random_trees_agree_with_dense_elimination(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 60; repeat++) {
        builder g = {.bodies = 1 + repeat % 20};
        for (int b = 0; b < g.bodies; b++) {
            int parent = (int)floor((uniform() + 1.0) / 2.0 * (b + 1)) - 1; // -1 .. b - 1
            int rows = 1 + (int)floor((uniform() + 1.0) * 2.5);
            if (repeat % 2) // the child may be either end
                edge(&g, rows, b, parent);
            else
                edge(&g, rows, parent, b);
        }
        compare_with_dense(&g, 0.0, 1e-8);
    }
}

static void random_graphs_with_loops_and_couplings_agree_with_dense_elimination(void** state) {
    (void)state;
    for (int repeat = 0; repeat < 80; repeat++) {
        builder g = {.bodies = 4 + repeat % 12};
        for (int b = 0; b < g.bodies; b++)
            if (repeat % 5 || b % 7) // some mechanisms float
                edge(&g, 1 + (b + repeat) % 3, b - 1 - (b > 2 && uniform() > 0.0), b);
        for (int k = 0; k < repeat % 6; k++) {
            int a = (int)((uniform() + 1) / 2 * g.bodies), b = (a + 1 + k) % g.bodies;
            if (a != b)
                edge(&g, 1, a, b);
        }
        if (repeat % 3 == 0)
            add(&g, 1, false, 4, (int[]){0, 1, 2, 3});
        if (repeat % 4 == 0)
            add(&g, 2, false, 2, (int[]){-1, g.bodies - 1});
        if (repeat % 7 == 0)
            add(&g, 3, false, 1, (int[]){1});
        compare_with_dense(&g, 0.01, 1e-9);
    }
}

static int64_t blocks_of(builder* g) {
    rw_alloc alloc;
    rw_kkt* kkt = make(g, &alloc);
    int64_t blocks = rw_kkt_block_count(kkt);
    drop(kkt, &alloc);
    return blocks;
}

static void trees_have_no_fill_whatever_their_degree(void** state) {
    (void)state;
    builder chain = {.bodies = 500}, star = {.bodies = 500}, binary = {.bodies = 500};
    for (int b = 0; b < 500; b++) {
        edge(&chain, 5, b - 1, b);
        edge(&star, 5, b ? 0 : -1, b);
        edge(&binary, 5, b ? (b - 1) / 2 : -1, b);
    }
    assert_int_equal(blocks_of(&chain), 999); // one block per body and one per joint off the world
    assert_int_equal(blocks_of(&star), 999);
    assert_int_equal(blocks_of(&binary), 999);
}

// N four-bars in a row: cranks 0 .. N on the ground, couplers N + 1 .. 2 N between them.
static void four_bars(builder* g, int n) {
    *g = (builder){.bodies = 2 * n + 1};
    for (int k = 0; k <= n; k++)
        edge(g, 5, -1, k);
    for (int k = 0; k < n; k++) {
        edge(g, 5, k, n + 1 + k);
        edge(g, 5, n + 1 + k, k + 1);
    }
}

static void fill_of_a_row_of_four_bars_grows_linearly(void** state) {
    (void)state;
    builder* g = malloc(sizeof *g);
    four_bars(g, 20);
    int64_t first = blocks_of(g);
    four_bars(g, 40);
    int64_t second = blocks_of(g);
    four_bars(g, 80);
    int64_t third = blocks_of(g);
    assert_int_equal(third - second, 2 * (second - first));
    free(g);
}

// ---- A planar four-bar in space: 3 redundant rows ----

static void four_bar_matrix(rw_kkt* kkt, const builder* g, rw_quat turn, double epsilon) {
    // crank A on the ground at 0, coupler, crank B on the ground at (1, 0); unit square, axes z
    rw_vec3 center[3] = {{0, 0.5, 0}, {1, 0.5, 0}, {0.5, 1, 0}};
    rw_joint_pose world = {.rotation = rw_mat3_identity()}, pose[3];
    for (int b = 0; b < 3; b++) {
        pose[b] = (rw_joint_pose){.position = rw_quat_rotate(turn, center[b]),
                                .rotation = rw_quat_to_mat3(turn)};
        double* m = rw_kkt_mass(kkt, b);
        memset(m, 0, 36 * sizeof *m);
        rw_mat3 inertia = rw_mat3_mul_transpose(
            rw_mat3_mul(pose[b].rotation, rw_mat3_diagonal(0.02, 0.05, 0.06)), pose[b].rotation);
        for (int i = 0; i < 3; i++) {
            m[7 * i] = 1.0 + b;
            for (int j = 0; j < 3; j++)
                m[6 * (3 + i) + 3 + j] = inertia.m[i][j];
        }
    }
    const struct {
        int a, b;
        rw_vec3 at;
    } pins[4] = {{-1, 0, {0, 0, 0}}, {-1, 1, {1, 0, 0}}, {0, 2, {0, 1, 0}}, {2, 1, {1, 1, 0}}};
    for (int k = 0; k < 4; k++) {
        rw_joint_desc desc = {.type = RW_JOINT_REVOLUTE, .parent_frame = RW_FRAME_IDENTITY,
                              .child_frame = RW_FRAME_IDENTITY};
        rw_vec3 a = pins[k].a < 0 ? rw_vec3_zero() : center[pins[k].a];
        rw_vec3_store(desc.parent_frame.position, rw_vec3_sub(pins[k].at, a));
        if (pins[k].a < 0) {
            rw_vec3_store(desc.parent_frame.position, rw_quat_rotate(turn, pins[k].at));
            rw_quat_store(desc.parent_frame.rotation, turn);
        }
        rw_vec3_store(desc.child_frame.position, rw_vec3_sub(pins[k].at, center[pins[k].b]));
        rw_joint_geometry joint;
        rw_joint_geometry_init(&joint, &desc, pins[k].a, pins[k].b, rw_vec3_zero(), rw_vec3_zero());
        const rw_joint_pose* pa = pins[k].a < 0 ? &world : &pose[pins[k].a];
        rw_joint_frames f;
        rw_joint_row rows[6];
        rw_joint_geometry_frames_at(&joint, pa, &pose[pins[k].b], &f);
        rw_joint_geometry_jacobian(&joint, &f, rows);
        int t = g->first[k];
        for (int i = 0; i < 5; i++) {
            if (pins[k].a >= 0)
                memcpy(rw_kkt_jacobian(kkt, t) + 6 * i, rows[i].parent, sizeof rows[i].parent);
            memcpy(rw_kkt_jacobian(kkt, t + (pins[k].a >= 0)) + 6 * i, rows[i].child,
                   sizeof rows[i].child);
            rw_kkt_epsilon(kkt, k)[i] = epsilon;
        }
    }
}

// Minimum-norm multipliers by the eigenvalues of C = J M^-1 J' (Jacobi), singular ones left out.
static void minimum_norm(rw_kkt* kkt, const builder* g, const double* q, const double* gamma,
                         double* lambda) {
    enum { N = 20 };
    double a[N][N] = {{0}}, v[N][N] = {{0}}, b[N], j[N][18] = {{0}}, mj[N][18];
    for (int k = 0; k < g->constraints; k++)
        for (int t = g->first[k]; t < g->first[k + 1]; t++)
            for (int i = 0; i < 5; i++)
                for (int c = 0; c < 6; c++)
                    j[5 * k + i][6 * g->list[t] + c] = rw_kkt_jacobian(kkt, t)[6 * i + c];
    for (int i = 0; i < N; i++)
        for (int body = 0; body < 3; body++) {
            double x[6];
            memcpy(x, &j[i][6 * body], sizeof x);
            const double* m = rw_kkt_mass(kkt, body);
            rw_mat3 inertia;
            for (int r = 0; r < 9; r++)
                inertia.m[r / 3][r % 3] = m[6 * (3 + r / 3) + 3 + r % 3];
            inertia = rw_mat3_inverse(inertia);
            rw_vec3 w = rw_mat3_apply(&inertia, rw_vec3_load(x + 3));
            for (int c = 0; c < 3; c++)
                mj[i][6 * body + c] = x[c] / m[0];
            rw_vec3_store(&mj[i][6 * body + 3], w);
        }
    for (int i = 0; i < N; i++) {
        b[i] = -gamma[i];
        v[i][i] = 1.0;
        for (int c = 0; c < 18; c++)
            b[i] += mj[i][c] * q[c];
        for (int k = 0; k < N; k++)
            for (int c = 0; c < 18; c++)
                a[i][k] += mj[i][c] * j[k][c];
    }
    for (int sweep = 0; sweep < 40; sweep++)
        for (int p = 0; p < N; p++)
            for (int r = p + 1; r < N; r++) {
                if (fabs(a[p][r]) < 1e-300)
                    continue;
                double th = (a[r][r] - a[p][p]) / (2 * a[p][r]);
                double t = (th < 0 ? -1 : 1) / (fabs(th) + sqrt(th * th + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < N; k++) {
                    double x = a[k][p], y = a[k][r];
                    a[k][p] = c * x - s * y;
                    a[k][r] = s * x + c * y;
                }
                for (int k = 0; k < N; k++) {
                    double x = a[p][k], y = a[r][k];
                    a[p][k] = c * x - s * y;
                    a[r][k] = s * x + c * y;
                    x = v[k][p], y = v[k][r];
                    v[k][p] = c * x - s * y;
                    v[k][r] = s * x + c * y;
                }
            }
    memset(lambda, 0, N * sizeof *lambda);
    int rank = 0;
    for (int e = 0; e < N; e++) {
        if (a[e][e] < 1e-9)
            continue;
        rank++;
        double s = 0.0;
        for (int i = 0; i < N; i++)
            s += v[i][e] * b[i];
        for (int i = 0; i < N; i++)
            lambda[i] += v[i][e] * s / a[e][e];
    }
    assert_int_equal(rank, 17);
}

static void a_redundant_four_bar_gets_its_minimum_norm_reactions_in_any_orientation(void** state) {
    (void)state;
    builder g = {.bodies = 3};
    edge(&g, 5, -1, 0);
    edge(&g, 5, -1, 1);
    edge(&g, 5, 0, 2);
    edge(&g, 5, 2, 1);
    for (int repeat = 0; repeat < 10; repeat++) {
        rw_alloc alloc;
        rw_kkt* kkt = make(&g, &alloc);
        rw_quat turn = repeat == 0 ? rw_quat_identity()
                                   : rw_quat_normalize((rw_quat){uniform(), uniform(), uniform(),
                                                                 uniform()});
        const double epsilon = 1e-7; // about 1e-8 of the mean diagonal of C
        four_bar_matrix(kkt, &g, turn, epsilon);
        double regularisation[20], body[18], row[20] = {0}, expected[20];
        for (int i = 0; i < 20; i++)
            regularisation[i] = epsilon;
        for (int b = 0; b < 3; b++) { // gravity along the mechanism's -y and a push out of plane
            rw_vec3 f = rw_quat_rotate(turn, (rw_vec3){0.3, -9.81 * (1 + b), 2.0});
            rw_vec3_store(body + 6 * b, f);
            rw_vec3_store(body + 6 * b + 3, rw_quat_rotate(turn, (rw_vec3){0.1, 0.2, 0.3}));
        }
        minimum_norm(kkt, &g, body, row, expected);
        rw_kkt_pivots pivots = rw_kkt_factor(kkt, regularisation, NULL);
        assert_int_equal(pivots.guarded, 0);
        assert_int_equal(pivots.redundant, 3);
        rw_kkt_solve_refined(kkt, body, row, regularisation, 2, NULL);
        for (int i = 0; i < 20; i++)
            rw_assert_near(row[i], expected[i], 1e-6);
        for (int k = 0; k < 4; k++)
            assert_true(rw_kkt_in_loop(kkt, k));
        drop(kkt, &alloc);
    }
}

static void a_tree_beside_a_loop_is_not_in_a_loop(void** state) {
    (void)state;
    builder g = {.bodies = 5};
    edge(&g, 5, -1, 0);
    edge(&g, 5, 0, 1);
    edge(&g, 5, 1, -1);
    edge(&g, 5, -1, 3);
    edge(&g, 5, 3, 4);
    rw_alloc alloc;
    rw_kkt* kkt = make(&g, &alloc);
    assert_true(rw_kkt_in_loop(kkt, 0) && rw_kkt_in_loop(kkt, 1) && rw_kkt_in_loop(kkt, 2));
    assert_true(!rw_kkt_in_loop(kkt, 3) && !rw_kkt_in_loop(kkt, 4));
    drop(kkt, &alloc);
}

static void running_out_of_memory_is_an_answer_at_every_quota(void** state) {
    (void)state;
    builder g = {.bodies = 3};
    edge(&g, 5, -1, 0);
    edge(&g, 5, -1, 1);
    edge(&g, 5, 0, 2);
    edge(&g, 5, 2, 1);
    rw_kkt_graph graph = {g.bodies, g.constraints, g.first, g.list, g.rows, g.on_world, g.is_joint};
    int refused = 0;
    for (size_t limit = 64;; limit += 64) {
        rw_alloc alloc;
        rw_alloc_init(&alloc, limit);
        rw_kkt* kkt;
        rw_status status = rw_kkt_create(&alloc, &graph, &kkt);
        if (status == RW_STATUS_OK) {
            drop(kkt, &alloc);
            break;
        }
        refused++;
        assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
        assert_null(kkt);
        rw_alloc_finish(&alloc);
    }
    assert_true(refused > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_agree_with_dense_elimination),
        cmocka_unit_test(random_graphs_with_loops_and_couplings_agree_with_dense_elimination),
        cmocka_unit_test(trees_have_no_fill_whatever_their_degree),
        cmocka_unit_test(fill_of_a_row_of_four_bars_grows_linearly),
        cmocka_unit_test(a_redundant_four_bar_gets_its_minimum_norm_reactions_in_any_orientation),
        cmocka_unit_test(a_tree_beside_a_loop_is_not_in_a_loop),
        cmocka_unit_test(running_out_of_memory_is_an_answer_at_every_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
