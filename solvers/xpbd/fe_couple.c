// How rods and dynamic bodies share one solve: the rod's matrix condensed onto the bodies that hold its
// nodes, and the way back.
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/block_banded.h"
#include "solvers/xpbd/fe_rods_private.h"

static int64_t rows_of(const rw_fe_rod* rod) {
    return 6 * (int64_t)rod->node_count;
}

// W = A_ff^-1 A_fc for the columns of a node that a dynamic body holds. Held rows of A_fc are zero.
static void condense(rw_fe_rods* self, rw_fe_rod* rod) {
    int64_t rows = rows_of(rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        if (hold->body < 0) {
            continue;
        }
        const double* coupling = &self->columns[hold->column_first];
        double* solved = &self->columns[hold->column_first + 6 * rows];
        memcpy(solved, coupling, (size_t)(6 * rows) * sizeof *solved);
        for (int32_t m = 0; m < rod->hold_count; m++) {
            const rw_fe_hold* other = &self->holds[rod->hold_first + m];
            for (int c = 0; c < 6; c++) {
                for (int r = 0; r < 6; r++) {
                    if (rw_fe_rods_private_is_held_row(other, r)) {
                        solved[c * rows + 6 * (int64_t)other->node + r] = 0;
                    }
                }
            }
        }
        for (int c = 0; c < 6; c++) {
            if (rw_fe_rods_private_is_active_row(hold, c)) {
                rw_block_banded_solve(rows, rod->half_band, rod->half_band - 5,
                                      &self->band[rod->band_first], solved + c * rows);
            }
        }
    }
}

// Rows of A_fc' times the free increments: what they add to the held node's residual.
static double free_product(const rw_fe_rods* self, const rw_fe_rod* rod, const double* column,
                           const double* values) {
    double sum = 0;
    int32_t next = 0;
    for (int32_t n = 0; n < rod->node_count; n++) {
        unsigned held = 0;
        while (next < rod->hold_count && self->holds[rod->hold_first + next].node <= n) {
            if (self->holds[rod->hold_first + next].node == n &&
                self->holds[rod->hold_first + next].stiffness == 0) {
                held |= self->holds[rod->hold_first + next].rows;
            }
            next++;
        }
        for (int r = 0; r < 6; r++) {
            bool is_held = (held & (r < 3 ? RW_FE_HELD_POSITION : RW_FE_HELD_ROTATION)) != 0;
            if (!is_held) {
                sum += column[6 * n + r] * values[6 * n + r];
            }
        }
    }
    return sum;
}

// Map from a body's increment (world, at its centre of mass) to the node's: dp = dx + dtheta x arm,
// node-frame turn = R' dtheta.
typedef struct rigid_map {
    rw_vec3 arm;
    rw_mat3 turn; // node frame to world
} rigid_map;

static rigid_map map_of(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold) {
    const rw_state* to = self->step->to;
    int64_t i = rod->node_first + hold->node;
    const double* held = hold->stiffness > 0 ? hold->target : &to->node_position[3 * i];
    return (rigid_map){
        rw_vec3_sub(rw_vec3_load(held), rw_vec3_load(&to->body_position[3 * hold->body])),
        rw_quat_to_mat3(rw_quat_load(&to->frame_rotation[4 * i])),
    };
}

// T as a 6x6 matrix (rows: node, columns: body).
static void fill_map(const rigid_map* map, double t[36]) {
    memset(t, 0, 36 * sizeof *t);
    rw_mat3 hat = rw_mat3_hat(map->arm);
    for (int r = 0; r < 3; r++) {
        t[7 * r] = 1;
        for (int c = 0; c < 3; c++) {
            t[6 * r + 3 + c] = -hat.m[r][c];
            t[6 * (r + 3) + 3 + c] = map->turn.m[c][r];
        }
    }
}

// out = a' m b, all 6x6.
static void congruence(const double a[36], const double m[36], const double b[36], double out[36]) {
    double half[36];
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += m[6 * r + k] * b[6 * k + c];
            }
            half[6 * r + c] = sum;
        }
    }
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += a[6 * k + r] * half[6 * k + c];
            }
            out[6 * r + c] = sum;
        }
    }
}

// Condensed block of two holds of one rod: A_ab - A_fa' W_b over the free rows.
static void condensed_block(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* a,
                            const rw_fe_hold* b, double out[36]) {
    int64_t rows = rows_of(rod);
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double value = 0;
            if (rw_fe_rods_private_is_active_row(a, r) && rw_fe_rods_private_is_active_row(b, c)) {
                const double* column = &self->columns[a->column_first + r * rows];
                const double* solved = &self->columns[b->column_first + 6 * rows + c * rows];
                if (a == b) {
                    value = a->own[6 * r + c];
                } else if (b->stiffness == 0) {
                    value = column[6 * (int64_t)b->node + c];
                } else if (a->stiffness == 0) {
                    value = self->columns[b->column_first + c * rows + 6 * (int64_t)a->node + r];
                }
                value -= free_product(self, rod, column, solved);
            }
            out[6 * r + c] = value;
        }
    }
}

// Residual of a held node after the sweep, linearised: r + A_cc d_c + A_cf d_f.
static void held_residual(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold,
                          double out[6]) {
    int64_t rows = rows_of(rod);
    const double* moved = &self->right[6 * (int64_t)rod->node_first];
    for (int r = 0; r < 6; r++) {
        out[r] = 0;
        if (!rw_fe_rods_private_is_active_row(hold, r)) {
            continue;
        }
        const double* column = &self->columns[hold->column_first + r * rows];
        out[r] = hold->residual[r] + free_product(self, rod, column, moved);
        for (int32_t k = 0; k < rod->hold_count; k++) {
            const rw_fe_hold* other = &self->holds[rod->hold_first + k];
            for (int c = 0; c < 6; c++) {
                if (rw_fe_rods_private_is_held_row(other, c)) {
                    double entry =
                        other == hold ? hold->own[6 * r + c] : column[6 * (int64_t)other->node + c];
                    out[r] += entry * other->increment[c];
                }
            }
        }
    }
}

static void add_response(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold,
                         rw_body_response* response) {
    double t[36], block[36], mapped[36], residual[6];
    rigid_map map = map_of(self, rod, hold);
    fill_map(&map, t);
    held_residual(self, rod, hold, residual);
    rw_vec3 force = rw_vec3_neg(rw_vec3_load(residual));
    rw_vec3 moment = rw_vec3_neg(rw_mat3_apply(&map.turn, rw_vec3_load(residual + 3)));
    rw_vec3_store(response->force, rw_vec3_add(rw_vec3_load(response->force), force));
    rw_vec3_store(response->torque,
                  rw_vec3_add(rw_vec3_load(response->torque),
                              rw_vec3_add(moment, rw_vec3_cross(map.arm, force))));
    condensed_block(self, rod, hold, hold, block);
    congruence(t, block, t, mapped);
    double* entry = response->stiffness;
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c <= r; c++) {
            *entry++ += 0.5 * (mapped[6 * r + c] + mapped[6 * c + r]);
        }
    }
}

// Condensed coupling of two bodies on one rod. Two holds on one body add to its own stiffness.
static void add_pair(const rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* a,
                     const rw_fe_hold* b, rw_step* step) {
    double ta[36], tb[36], block[36], mapped[36];
    rigid_map map_a = map_of(self, rod, a), map_b = map_of(self, rod, b);
    fill_map(&map_a, ta);
    fill_map(&map_b, tb);
    condensed_block(self, rod, a, b, block);
    congruence(ta, block, tb, mapped);
    if (a->body == b->body) {
        double* entry = step->responses[a->body].stiffness;
        for (int r = 0; r < 6; r++) {
            for (int c = 0; c <= r; c++) {
                *entry++ += mapped[6 * r + c] + mapped[6 * c + r];
            }
        }
        return;
    }
    RW_ASSERT(step->pair_count < step->pair_capacity);
    rw_body_pair* pair = &step->pairs[step->pair_count++];
    pair->a = a->body;
    pair->b = b->body;
    memcpy(pair->stiffness, mapped, sizeof mapped);
}

rw_status rw_fe_rods_respond(rw_fe_rods* self, rw_step* step) {
    RW_TRY(rw_fe_rods_private_for_all(self, step, "xpbd rod response", condense));
    for (int32_t i = 0; i < self->model->bodies.count; i++) {
        bool active = step->responses[i].active;
        step->responses[i] = (rw_body_response){.active = active};
    }
    step->pair_count = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        const rw_fe_rod* rod = &self->rods[r];
        for (int32_t k = 0; k < rod->hold_count; k++) {
            const rw_fe_hold* a = &self->holds[rod->hold_first + k];
            if (a->body < 0) {
                continue;
            }
            add_response(self, rod, a, &step->responses[a->body]);
            for (int32_t m = k + 1; m < rod->hold_count; m++) {
                const rw_fe_hold* b = &self->holds[rod->hold_first + m];
                if (b->body >= 0) {
                    add_pair(self, rod, a, b, step);
                }
            }
        }
    }
    return RW_STATUS_OK;
}

int32_t rw_fe_rods_pair_count(const rw_fe_rods* self) {
    int64_t count = 0;
    for (int32_t r = 0; r < self->rod_count; r++) {
        int64_t holds = self->rods[r].hold_count;
        count += holds * (holds - 1) / 2;
    }
    return (int32_t)count;
}

// ---- The way back ------------------------------------------------------------------------------

// Moves the free nodes with the bodies' last move, by the columns already solved.
void rw_fe_rods_private_follow_bodies(rw_fe_rods* self, rw_fe_rod* rod) {
    int64_t rows = rows_of(rod);
    double* right = &self->right[6 * (int64_t)rod->node_first];
    bool any = false;
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        if (hold->stiffness > 0) {
            rw_fe_rods_private_target_move(self, rod, hold, hold->increment);
        } else {
            rw_fe_rods_private_hold_increment(self, rod, hold, hold->increment);
        }
        any |= hold->body >= 0;
    }
    if (!any) {
        return;
    }
    memset(right, 0, (size_t)rows * sizeof *right);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        for (int c = 0; c < 6 && hold->body >= 0; c++) {
            const double* solved = &self->columns[hold->column_first + 6 * rows + c * rows];
            for (int64_t i = 0; i < rows && rw_fe_rods_private_is_active_row(hold, c); i++) {
                right[i] -= solved[i] * hold->increment[c];
            }
        }
    }
    rw_fe_rods_private_prescribe(self, rod);
    for (int32_t n = 0; n < rod->node_count; n++) {
        rw_fe_rods_private_move_node(self->step->to, rod->node_first + n, &right[6 * n]);
    }
}
