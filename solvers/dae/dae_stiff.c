#include "solvers/dae/dae_stiff.h"

#include <math.h>
#include <string.h>

#include "solvers/dae/dae_effort.h"

// A node beyond the joints and couplings: the rates of a joint, or the length of a spring.
struct rw_dae_stiff_node {
    int32_t joint, force; // one of them is -1
    int32_t constraint;
    int32_t slots[2]; // parent and child, or a and b; -1 for an end that does not move
    double stiffness[3], damping[3];
};

static void* array(rw_arena* arena, int64_t count, size_t item) {
    return rw_arena_array(arena, (size_t)count + 1, item);
}

static int32_t spring_end(const rw_dae_system* s, const rw_point* point) {
    return point->body >= 0 ? s->dynamic_of[point->body] : -1;
}

static bool is_stiff_joint(const rw_dae_system* s, int32_t k) {
    return s->joint_constraint[k] >= 0 && s->joints[k].rate_count; // motors may come at any time
}

static bool is_moving_spring(const rw_dae_system* s, int32_t k) {
    const rw_force* f = &s->model->forces.items[k];
    return f->desc.kind == RW_FORCE_SPRING_DAMPER &&
           (spring_end(s, &f->a) >= 0 || spring_end(s, &f->b) >= 0);
}

static void add_node(rw_kkt_graph* g, int32_t* first, int32_t* bodies, int8_t* rows, bool* on_world,
                     int row_count, const int32_t ends[2], rw_dae_stiff_node* node) {
    int32_t k = g->constraint_count++, at = first[k];
    node->constraint = k;
    for (int e = 0; e < 2; e++) {
        node->slots[e] = -1;
        if (ends[e] < 0) {
            on_world[k] = true;
        } else if (e == 1 && ends[0] == ends[1]) {
            node->slots[e] = node->slots[0]; // both ends on one body
        } else {
            node->slots[e] = at;
            bodies[at++] = ends[e];
        }
    }
    rows[k] = (int8_t)row_count;
    first[k + 1] = at;
}

static rw_status build(rw_dae_stiff* self, rw_alloc* alloc, rw_arena* arena) {
    rw_dae_system* s = self->system;
    const rw_kkt_graph* base = &s->graph;
    int64_t extra = (int64_t)s->joint_count + s->model->forces.count;
    int64_t most = base->constraint_count + extra;
    int32_t* first = array(arena, most + 1, sizeof *first);
    int32_t* bodies = array(arena, base->first[base->constraint_count] + 2 * extra, sizeof *bodies);
    int8_t* rows = array(arena, most, sizeof *rows);
    bool *on_world = array(arena, most, sizeof *on_world);
    bool *is_joint = array(arena, most, sizeof *is_joint);
    self->nodes = array(arena, extra, sizeof *self->nodes);
    if (!first || !bodies || !rows || !on_world || !is_joint || !self->nodes)
        return RW_STATUS_RESOURCE_EXHAUSTED;
    size_t n = (size_t)base->constraint_count;
    memcpy(first, base->first, (n + 1) * sizeof *first);
    memcpy(bodies, base->bodies, (size_t)base->first[n] * sizeof *bodies);
    memcpy(rows, base->rows, n * sizeof *rows);
    memcpy(on_world, base->on_world, n * sizeof *on_world);
    memcpy(is_joint, base->is_joint, n * sizeof *is_joint);
    rw_kkt_graph graph = {base->body_count, base->constraint_count, first, bodies, rows, on_world,
                          is_joint};
    for (int32_t k = 0; k < s->joint_count; k++) {
        if (!is_stiff_joint(s, k))
            continue;
        rw_dae_stiff_node* node = &self->nodes[self->node_count++];
        node->joint = k;
        node->force = -1;
        const rw_joint_geometry* j = &s->joints[k];
        const int32_t ends[2] = {j->parent < 0 ? -1 : s->dynamic_of[j->parent],
                                 s->dynamic_of[j->child]};
        add_node(&graph, first, bodies, rows, on_world, j->rate_count, ends, node);
    }
    for (int32_t k = 0; k < s->model->forces.count; k++) {
        if (!is_moving_spring(s, k))
            continue;
        rw_dae_stiff_node* node = &self->nodes[self->node_count++];
        node->joint = -1;
        node->force = k;
        const rw_force* f = &s->model->forces.items[k];
        const int32_t ends[2] = {spring_end(s, &f->a), spring_end(s, &f->b)};
        add_node(&graph, first, bodies, rows, on_world, 1, ends, node);
    }
    RW_TRY(rw_kkt_create(alloc, &graph, &self->kkt));
    self->regularisation = array(arena, rw_kkt_row_count(self->kkt), sizeof(double));
    self->body = array(arena, 6 * (int64_t)s->dynamic_count, sizeof(double));
    self->row = array(arena, rw_kkt_row_count(self->kkt), sizeof(double));
    return self->regularisation && self->body && self->row ? RW_STATUS_OK
                                                           : RW_STATUS_RESOURCE_EXHAUSTED;
}

bool rw_dae_stiff_any(const rw_dae_stiff* self) {
    const rw_dae_system* s = self->system;
    bool any = s->has_soft;
    for (int32_t i = 0; i < self->node_count && !any; i++) {
        int32_t k = self->nodes[i].joint;
        const rw_joint_desc* d = k < 0 ? NULL : &s->model->joints.items[k].desc;
        any = !d || rw_dae_effort_has(d);
    }
    return any;
}

rw_status rw_dae_stiff_init(rw_dae_stiff* self, rw_dae_system* system, rw_alloc* alloc,
                            rw_arena* arena) {
    *self = (rw_dae_stiff){.system = system};
    return build(self, alloc, arena);
}

void rw_dae_stiff_finish(rw_dae_stiff* self) {
    rw_kkt_destroy(self->kkt);
    self->kkt = NULL;
}

// Adds a row's two ends into the node's slots (which may be one).
static void put_row(rw_dae_stiff* self, const rw_dae_stiff_node* node, int32_t r,
                    const rw_joint_row* row) {
    for (int e = 0; e < 2; e++)
        if (node->slots[e] >= 0)
            memset(rw_kkt_jacobian(self->kkt, node->slots[e]) + 6 * r, 0, 6 * sizeof(double));
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < 6 && node->slots[e] >= 0; i++)
            rw_kkt_jacobian(self->kkt, node->slots[e])[6 * r + i] +=
                (e ? row->child : row->parent)[i];
}

static void load_node(rw_dae_stiff* self, rw_dae_stiff_node* node, double c) {
    rw_dae_system* s = self->system;
    double* epsilon = rw_kkt_epsilon(self->kkt, node->constraint);
    static const rw_joint_row none;
    int32_t count = node->joint >= 0 ? s->joints[node->joint].rate_count : 1;
    for (int32_t i = 0; i < count; i++) {
        rw_joint_row row = none;
        node->stiffness[i] = node->damping[i] = 0.0;
        if (node->joint >= 0 && !rw_dae_effort_has(&s->model->joints.items[node->joint].desc)) {
            // free at present
        } else if (node->joint >= 0) {
            int32_t r = s->model->joints.items[node->joint].rate_first + i;
            node->stiffness[i] = s->stiffness[r];
            node->damping[i] = s->damping[r];
            row = s->rates[3 * (int64_t)node->joint + i];
        } else {
            rw_spring spring;
            rw_forces_spring(s->model, &s->scratch, node->force, &spring);
            node->stiffness[i] = s->model->forces.items[node->force].desc.spring_damper.stiffness;
            node->damping[i] = s->model->forces.items[node->force].desc.spring_damper.damping;
            rw_vec3 n = rw_vec3_load(spring.direction);
            rw_vec3_store(row.parent, rw_vec3_neg(n));
            rw_vec3_store(row.parent + 3, rw_vec3_cross(n, rw_vec3_load(spring.arm_a)));
            rw_vec3_store(row.child, n);
            rw_vec3_store(row.child + 3, rw_vec3_cross(rw_vec3_load(spring.arm_b), n));
        }
        double give = c * node->damping[i] + c * c * node->stiffness[i];
        put_row(self, node, i, give > 0.0 ? &row : &none);
        epsilon[i] = give > 0.0 ? 1.0 / give : 1.0;
    }
}

rw_status rw_dae_stiff_factor(rw_dae_stiff* self, double c) {
    rw_dae_system* s = self->system;
    for (int32_t d = 0; d < s->dynamic_count; d++)
        memcpy(rw_kkt_mass(self->kkt, d), rw_kkt_mass(s->kkt, d), 36 * sizeof(double));
    for (int32_t k = 0; k < s->joint_count; k++) {
        int32_t n = s->joint_constraint[k];
        if (n < 0)
            continue;
        double compliance = s->model->joints.items[k].desc.compliance;
        const rw_joint_row* rows = s->rows + 6 * (int64_t)k;
        double* epsilon = rw_kkt_epsilon(self->kkt, n);
        const double* given = rw_kkt_epsilon(s->kkt, n);
        for (int32_t i = 0; i < s->joints[k].row_count; i++) {
            epsilon[i] = compliance > 0.0 ? compliance / (c * c) : given[i];
            for (int e = 0; e < 2; e++)
                if (s->joint_slot[k][e] >= 0)
                    memcpy(rw_kkt_jacobian(self->kkt, s->joint_slot[k][e]) + 6 * i,
                           e ? rows[i].child : rows[i].parent, 6 * sizeof(double));
        }
    }
    for (int32_t k = 0; k < s->coupling_count; k++) {
        int32_t n = s->coupling_constraint[k];
        if (n < 0)
            continue;
        double compliance = s->model->couplings.items[k].desc.compliance;
        rw_dae_system_coupling_rows(s, k, self->kkt);
        *rw_kkt_epsilon(self->kkt, n) =
            compliance > 0.0 ? compliance / (c * c) : *rw_kkt_epsilon(s->kkt, n);
    }
    for (int32_t i = 0; i < self->node_count; i++)
        load_node(self, &self->nodes[i], c);
    rw_kkt_pivots pivots = rw_kkt_factor(self->kkt, NULL, s->parallel);
    return pivots.guarded ? RW_STATUS_FAULTED : RW_STATUS_OK;
}

// J x of one constraint's rows, x a vector of (world) body motions.
static void apply_rows(const rw_dae_stiff* self, const int32_t* slots, const int32_t* bodies,
                       int slot_count, int rows, const double* x, double* out) {
    for (int r = 0; r < rows; r++)
        out[r] = 0.0;
    for (int e = 0; e < slot_count; e++) {
        if (slots[e] < 0 || (e && slots[e] == slots[e - 1]))
            continue;
        const double* j = rw_kkt_jacobian(self->kkt, slots[e]);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < 6; i++)
                out[r] += j[6 * r + i] * x[6 * bodies[e] + i];
    }
}

// The right-hand side g of all rows: hard rows must take the velocity residual u as it is; a row of
// stiffness k answers the position residual p with -k p, which is epsilon c k p here.
static void right_rows(rw_dae_stiff* self, double c, const double* u, const double* p) {
    rw_dae_system* s = self->system;
    for (int32_t k = 0; k < s->joint_count; k++) {
        int32_t n = s->joint_constraint[k];
        if (n < 0)
            continue;
        const rw_joint_geometry* j = &s->joints[k];
        const int32_t bodies[2] = {j->parent < 0 ? -1 : s->dynamic_of[j->parent],
                                   s->dynamic_of[j->child]};
        double* out = self->row + rw_kkt_row_first(self->kkt, n);
        bool soft = s->model->joints.items[k].desc.compliance > 0.0;
        apply_rows(self, s->joint_slot[k], bodies, 2, j->row_count, soft ? p : u, out);
        for (int32_t i = 0; i < j->row_count && soft; i++)
            out[i] *= -1.0 / c; // epsilon c k = 1/c
    }
    for (int32_t k = 0; k < s->coupling_count; k++) {
        int32_t n = s->coupling_constraint[k];
        if (n < 0)
            continue;
        const rw_joint_coupling* from = &s->model->couplings.items[k];
        const rw_joint_geometry *a = &s->joints[from->joint_a], *b = &s->joints[from->joint_b];
        const int32_t ends[4] = {a->parent, a->child, b->parent, b->child};
        bool soft = from->desc.compliance > 0.0;
        double sum = 0.0;
        for (int e = 0; e < 4; e++) { // a shared body has one slot with the sum of its ends
            int32_t slot = s->coupling_slot[k][e];
            bool seen = false;
            for (int t = 0; t < e; t++)
                seen |= s->coupling_slot[k][t] == slot;
            if (slot < 0 || seen)
                continue;
            const double* x = (soft ? p : u) + 6 * s->dynamic_of[ends[e]];
            for (int i = 0; i < 6; i++)
                sum += rw_kkt_jacobian(self->kkt, slot)[i] * x[i];
        }
        self->row[rw_kkt_row_first(self->kkt, n)] = soft ? -sum / c : sum;
    }
    for (int32_t i = 0; i < self->node_count; i++) {
        const rw_dae_stiff_node* node = &self->nodes[i];
        int32_t bodies[2], rows = 1;
        if (node->joint >= 0) {
            const rw_joint_geometry* j = &s->joints[node->joint];
            bodies[0] = j->parent < 0 ? -1 : s->dynamic_of[j->parent];
            bodies[1] = s->dynamic_of[j->child];
            rows = j->rate_count;
        } else {
            bodies[0] = spring_end(s, &s->model->forces.items[node->force].a);
            bodies[1] = spring_end(s, &s->model->forces.items[node->force].b);
        }
        double* out = self->row + rw_kkt_row_first(self->kkt, node->constraint);
        const double* epsilon = rw_kkt_epsilon(self->kkt, node->constraint);
        apply_rows(self, node->slots, bodies, 2, rows, p, out);
        for (int32_t r = 0; r < rows; r++)
            out[r] *= -epsilon[r] * c * node->stiffness[r];
    }
}

// With residuals R_p of positions (as displacement and world rotation vector) and R_u of velocities:
//   (M + c D + c^2 K) du + J' mu = M R_u - c K R_p,   dp = R_p + c du.
void rw_dae_stiff_solve(rw_dae_stiff* self, double c, const double* y, const double* residual,
                        double* dy) {
    rw_dae_system* s = self->system;
    double *u = self->body, *p = s->probe_body;
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        const double *r = residual + RW_DAE_WIDTH * (int64_t)d, *x = y + RW_DAE_WIDTH * (int64_t)d;
        const rw_mat3* a = &s->pose[s->body_of[d]].rotation;
        rw_quat q = rw_quat_load(x + 3);
        rw_quat turn = rw_quat_conj_mul(q, rw_quat_load(r + 3)); // half the body rotation
        memcpy(u + 6 * (int64_t)d, r + 7, 3 * sizeof *u);
        rw_vec3_store(u + 6 * (int64_t)d + 3, rw_mat3_apply(a, rw_vec3_load(r + 10)));
        memcpy(p + 6 * (int64_t)d, r, 3 * sizeof *p);
        rw_vec3_store(p + 6 * (int64_t)d + 3,
                      rw_mat3_apply(a, rw_vec3_scale(rw_quat_vector(turn), 2.0)));
    }
    right_rows(self, c, u, p);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        const double* m = rw_kkt_mass(self->kkt, d);
        double x[6], *b = u + 6 * (int64_t)d;
        memcpy(x, b, sizeof x);
        for (int i = 0; i < 6; i++) {
            b[i] = 0.0;
            for (int k = 0; k < 6; k++)
                b[i] += m[6 * i + k] * x[k];
        }
    }
    rw_kkt_solve(self->kkt, self->body, self->row, s->parallel);
    for (int32_t d = 0; d < s->dynamic_count; d++) {
        const double *r = residual + RW_DAE_WIDTH * (int64_t)d, *x = y + RW_DAE_WIDTH * (int64_t)d;
        double* out = dy + RW_DAE_WIDTH * (int64_t)d;
        const double* b = self->body + 6 * (int64_t)d;
        rw_vec3 omega = rw_vec3_load(x + 10);
        rw_vec3 dw = rw_mat3_apply_transpose(&s->pose[s->body_of[d]].rotation, rw_vec3_load(b + 3));
        memcpy(out + 7, b, 3 * sizeof *out);
        rw_vec3_store(out + 10, dw);
        for (int i = 0; i < 3; i++)
            out[i] = r[i] + c * b[i];
        // (1 - c/2 omega) dq = R_q + c/2 q dw, in quaternions with omega on the right: its inverse is
        // (1 + c/2 omega)/(1 + c^2 |omega|^2/4).
        rw_quat right = rw_quat_add(
            rw_quat_load(r + 3),
            rw_quat_scale(rw_quat_mul(rw_quat_load(x + 3), rw_quat_imaginary(dw)), 0.5 * c));
        rw_quat half = {1.0, 0.5 * c * omega.x, 0.5 * c * omega.y, 0.5 * c * omega.z};
        rw_quat_store(out + 3, rw_quat_scale(rw_quat_mul(right, half),
                                             1.0 / rw_quat_norm_sq(half)));
    }
}
