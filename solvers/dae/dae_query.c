#include "solvers/dae/dae_query.h"

#include <math.h>
#include <string.h>

static const rw_joint_pose* pose_of(const rw_dae_system* s, int32_t body) {
    return &s->pose[body < 0 ? s->body_count : body];
}

static bool moves(const rw_dae_system* s, int32_t body) {
    return body >= 0 && s->dynamic_of[body] >= 0;
}

// Breadth first over the joints: edges in the order in which they are reached.
static void find_tree(rw_dae_query* q, bool* reached) {
    const rw_dae_system* s = q->system;
    int32_t next_root = 0;
    for (;;) {
        bool grew = true;
        while (grew) {
            grew = false;
            for (int32_t k = 0; k < s->joint_count; k++) {
                const rw_joint_geometry* j = &s->joints[k];
                if (j->row_count + j->rate_count != 6)
                    continue;
                bool has_parent = !moves(s, j->parent) || reached[j->parent];
                bool has_child = !moves(s, j->child) || reached[j->child];
                if (has_parent == has_child)
                    continue;
                q->edges[q->edge_count] = k;
                q->turned[q->edge_count] = has_child;
                q->edge_rate[q->edge_count] = q->rate_count;
                q->edge_count++;
                for (int32_t i = 0; i < j->rate_count; i++)
                    q->rates[q->rate_count++] = s->model->joints.items[k].rate_first + i;
                reached[has_child ? j->parent : j->child] = grew = true;
            }
        }
        while (next_root < s->body_count && (!moves(s, next_root) || reached[next_root]))
            next_root++;
        if (next_root == s->body_count)
            return;
        reached[next_root] = true; // a floating mechanism's first body is held
    }
}

// LU with partial pivoting of a 6 x 6 matrix, row major; the permutation goes behind it.
static bool factor6(double* a, int8_t* order) {
    for (int i = 0; i < 6; i++)
        order[i] = (int8_t)i;
    for (int c = 0; c < 6; c++) {
        int p = c;
        for (int i = c + 1; i < 6; i++)
            if (fabs(a[6 * i + c]) > fabs(a[6 * p + c]))
                p = i;
        if (!(fabs(a[6 * p + c]) > 1e-12))
            return false;
        for (int j = 0; j < 6 && p != c; j++) {
            double t = a[6 * c + j];
            a[6 * c + j] = a[6 * p + j];
            a[6 * p + j] = t;
        }
        int8_t t = order[c];
        order[c] = order[p];
        order[p] = t;
        for (int i = c + 1; i < 6; i++) {
            double f = a[6 * i + c] /= a[6 * c + c];
            for (int j = c + 1; j < 6; j++)
                a[6 * i + j] -= f * a[6 * c + j];
        }
    }
    return true;
}

static void solve6(const double* a, const int8_t* order, const double* b, double* x) {
    for (int i = 0; i < 6; i++) {
        x[i] = b[order[i]];
        for (int j = 0; j < i; j++)
            x[i] -= a[6 * i + j] * x[j];
    }
    for (int i = 5; i >= 0; i--) {
        for (int j = i + 1; j < 6; j++)
            x[i] -= a[6 * i + j] * x[j];
        x[i] /= a[6 * i + i];
    }
}

// Solves a' x = b.
static void solve6_transpose(const double* a, const int8_t* order, const double* b, double* x) {
    double y[6];
    for (int i = 0; i < 6; i++) {
        y[i] = b[i];
        for (int j = 0; j < i; j++)
            y[i] -= a[6 * j + i] * y[j];
        y[i] /= a[6 * i + i];
    }
    for (int i = 5; i >= 0; i--)
        for (int j = i + 1; j < 6; j++)
            y[i] -= a[6 * j + i] * y[j];
    for (int i = 0; i < 6; i++)
        x[order[i]] = y[i];
}

#define EDGE_DOUBLES 37 // the factored 36, and 6 bytes of permutation

static int8_t* order_of(const rw_dae_query* q, int32_t e) {
    return (int8_t*)(q->solve + EDGE_DOUBLES * (int64_t)e + 36);
}

static int32_t outer_body(const rw_dae_query* q, int32_t e) {
    const rw_joint_geometry* j = &q->system->joints[q->edges[e]];
    return q->turned[e] ? j->parent : j->child;
}

static int32_t inner_body(const rw_dae_query* q, int32_t e) {
    const rw_joint_geometry* j = &q->system->joints[q->edges[e]];
    return q->turned[e] ? j->child : j->parent;
}

rw_status rw_dae_query_begin(rw_dae_query* q, rw_dae_system* s, rw_arena* arena, rw_error* error) {
    *q = (rw_dae_query){.system = s};
    size_t joints = (size_t)s->joint_count + 1, bodies = (size_t)s->body_count + 1;
    q->rates = rw_arena_array(arena, (size_t)s->model->joints.rate_count + 1, sizeof *q->rates);
    q->edges = rw_arena_array(arena, joints, sizeof *q->edges);
    q->turned = rw_arena_array(arena, joints, sizeof *q->turned);
    q->edge_rate = rw_arena_array(arena, joints, sizeof *q->edge_rate);
    q->solve = rw_arena_array(arena, EDGE_DOUBLES * joints, sizeof(double));
    q->inner = rw_arena_array(arena, 36 * joints, sizeof(double));
    q->motion = rw_arena_array(arena, 6 * bodies, sizeof(double));
    q->wrench = rw_arena_array(arena, 6 * bodies, sizeof(double));
    bool* reached = rw_arena_array(arena, bodies, sizeof *reached);
    if (!q->rates || !q->edges || !q->turned || !q->edge_rate || !q->solve || !q->inner ||
        !q->motion || !q->wrench || !reached)
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the query");
    find_tree(q, reached);
    for (int32_t e = 0; e < q->edge_count; e++) {
        const rw_joint_geometry* j = &s->joints[q->edges[e]];
        rw_joint_row rows[6];
        rw_joint_geometry_jacobian(j, &s->frames[q->edges[e]], rows);
        rw_joint_geometry_rates(j, &s->frames[q->edges[e]], rows + j->row_count);
        double* solve = q->solve + EDGE_DOUBLES * (int64_t)e;
        double* inner = q->inner + 36 * (int64_t)e;
        for (int i = 0; i < 6; i++) {
            memcpy(solve + 6 * i, q->turned[e] ? rows[i].parent : rows[i].child,
                   6 * sizeof *solve);
            memcpy(inner + 6 * i, q->turned[e] ? rows[i].child : rows[i].parent,
                   6 * sizeof *inner);
        }
        if (!factor6(solve, order_of(q, e)))
            RW_FAIL(error, FAILED_PRECONDITION, "", "joint \"%s\" is in a singular position",
                    s->model->joints.items[q->edges[e]].desc.name);
    }
    return RW_STATUS_OK;
}

// Motions (velocities or accelerations, 6 per body) from the roots outwards: `rows` holds what the
// edge's joint rows and rate rows must give (edges x 6).
static void spread(rw_dae_query* q, int32_t e, const double* right) {
    double b[6];
    int32_t inner = inner_body(q, e);
    memcpy(b, right, sizeof b);
    if (moves(q->system, inner))
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 6; k++)
                b[i] -= q->inner[36 * (int64_t)e + 6 * i + k] * q->motion[6 * (int64_t)inner + k];
    solve6(q->solve + EDGE_DOUBLES * (int64_t)e, order_of(q, e), b,
           q->motion + 6 * (int64_t)outer_body(q, e));
}

// Body velocities for a unit of one tree rate, all others 0.
static void unit_motion(rw_dae_query* q, int32_t rate) {
    memset(q->motion, 0, 6 * (size_t)q->system->body_count * sizeof *q->motion);
    for (int32_t e = 0; e < q->edge_count; e++) {
        const rw_joint_geometry* j = &q->system->joints[q->edges[e]];
        double right[6] = {0};
        int32_t i = rate - q->edge_rate[e];
        if (i >= 0 && i < j->rate_count)
            right[j->row_count + i] = 1.0;
        spread(q, e, right);
    }
}

// Multiplies the wrench array of moving bodies: wrench <- M motion.
static void apply_mass(rw_dae_query* q) {
    const rw_dae_system* s = q->system;
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        int64_t b = s->body_of[d];
        rw_vec3 v = rw_vec3_load(q->motion + 6 * b), w = rw_vec3_load(q->motion + 6 * b + 3);
        rw_vec3_store(q->wrench + 6 * b, rw_vec3_scale(v, s->model->bodies.mass[b]));
        rw_vec3_store(q->wrench + 6 * b + 3, rw_mat3_apply(&s->inertia[d], w));
    }
}

// From the leaves inwards: the wrench on each outer body is carried by its edge, whose rate rows
// give the efforts, and passed on to the inner body.
static void collect(rw_dae_query* q, double* efforts) {
    for (int32_t e = q->edge_count - 1; e >= 0; e--) {
        const rw_joint_geometry* j = &q->system->joints[q->edges[e]];
        int32_t outer = outer_body(q, e), inner = inner_body(q, e);
        double x[6];
        solve6_transpose(q->solve + EDGE_DOUBLES * (int64_t)e, order_of(q, e),
                         q->wrench + 6 * (int64_t)outer, x);
        for (int32_t i = 0; i < j->rate_count; i++)
            efforts[q->edge_rate[e] + i] = x[j->row_count + i];
        if (!moves(q->system, inner))
            continue;
        for (int k = 0; k < 6; k++)
            for (int i = 0; i < 6; i++) // the edge pushes the inner body back: it must bear that too
                q->wrench[6 * (int64_t)inner + k] -= q->inner[36 * (int64_t)e + 6 * i + k] * x[i];
    }
}

void rw_dae_query_mass_matrix(rw_dae_query* q, double* rows) {
    for (int32_t r = 0; r < q->rate_count; r++) {
        unit_motion(q, r);
        apply_mass(q);
        collect(q, rows + (int64_t)r * q->rate_count);
    }
}

void rw_dae_query_jacobian(rw_dae_query* q, int32_t body, rw_vec3 point, double* rows) {
    const rw_dae_system* s = q->system;
    rw_vec3 center = rw_vec3_load(s->model->bodies.center_of_mass + 3 * body);
    rw_vec3 arm = rw_mat3_apply(&s->pose[body].rotation, rw_vec3_sub(point, center));
    for (int32_t r = 0; r < q->rate_count; r++) {
        unit_motion(q, r);
        rw_vec3 w = rw_vec3_load(q->motion + 6 * (int64_t)body + 3);
        rw_vec3 v = rw_vec3_add(rw_vec3_load(q->motion + 6 * (int64_t)body), rw_vec3_cross(w, arm));
        const double column[6] = {v.x, v.y, v.z, w.x, w.y, w.z};
        for (int i = 0; i < 6; i++)
            rows[(int64_t)i * q->rate_count + r] = column[i];
    }
}

// The right-hand side of an edge for accelerations: gamma of the joint rows less what driven bodies
// do, and the wanted rates' accelerations less their velocity part.
static void acceleration_right(const rw_dae_query* q, int32_t e, const double* wanted,
                               double* right) {
    const rw_dae_system* s = q->system;
    int32_t k = q->edges[e], inner = inner_body(q, e);
    const rw_joint_geometry* j = &s->joints[k];
    double bias[3];
    rw_joint_geometry_gamma(j, &s->frames[k], pose_of(s, j->parent), pose_of(s, j->child), right);
    rw_joint_geometry_rate_bias(j, &s->frames[k], pose_of(s, j->parent), pose_of(s, j->child),
                                bias);
    for (int32_t i = 0; i < j->rate_count; i++)
        right[j->row_count + i] = wanted[q->edge_rate[e] + i] - bias[i];
    if (inner >= 0 && !moves(s, inner))
        for (int i = 0; i < 6; i++)
            for (int c = 0; c < 6; c++)
                right[i] -= q->inner[36 * (int64_t)e + 6 * i + c] * s->known[6 * (int64_t)inner + c];
}

void rw_dae_query_inverse_dynamics(rw_dae_query* q, const double* accelerations, double* efforts) {
    rw_dae_system* s = q->system;
    memset(q->motion, 0, 6 * (size_t)s->body_count * sizeof *q->motion);
    for (int32_t e = 0; e < q->edge_count; e++) {
        double right[6];
        acceleration_right(q, e, accelerations, right);
        spread(q, e, right);
    }
    apply_mass(q);
    rw_dae_system_applied(s);
    for (int32_t d = 0; d < s->dynamic_count; d++)
        for (int i = 0; i < 6; i++)
            q->wrench[6 * (int64_t)s->body_of[d] + i] -= s->body[6 * (int64_t)d + i];
    collect(q, efforts);
}

rw_status rw_dae_query_forward_dynamics(rw_dae_query* q, const double* efforts,
                                        double* accelerations) {
    rw_dae_system* s = q->system;
    for (int32_t e = 0; e < q->edge_count; e++)
        for (int32_t i = 0; i < s->joints[q->edges[e]].rate_count; i++)
            s->extra_effort[s->model->joints.items[q->edges[e]].rate_first + i] =
                efforts[q->edge_rate[e] + i];
    s->has_extra_effort = true;
    rw_status status = rw_dae_system_accelerate(s);
    s->has_extra_effort = false;
    RW_TRY(status);
    for (int32_t e = 0; e < q->edge_count; e++) {
        int32_t k = q->edges[e];
        const rw_joint_geometry* j = &s->joints[k];
        rw_joint_row rows[3];
        double bias[3];
        rw_joint_geometry_rates(j, &s->frames[k], rows);
        rw_joint_geometry_rate_bias(j, &s->frames[k], pose_of(s, j->parent), pose_of(s, j->child),
                                    bias);
        for (int32_t i = 0; i < j->rate_count; i++) {
            double sum = bias[i];
            for (int end = 0; end < 2; end++) {
                int32_t b = end ? j->child : j->parent;
                const double* row = end ? rows[i].child : rows[i].parent;
                const double* a = moves(s, b) ? s->body + 6 * (int64_t)s->dynamic_of[b]
                                  : b >= 0    ? s->known + 6 * (int64_t)b
                                              : NULL;
                for (int c = 0; c < 6 && a; c++)
                    sum += row[c] * a[c];
            }
            accelerations[q->edge_rate[e] + i] = sum;
        }
    }
    return RW_STATUS_OK;
}
