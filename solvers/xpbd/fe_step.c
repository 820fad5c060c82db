// One substep of the rods: prediction, Newton steps with their direct solve, velocities and wrenches at
// the end.
#include <math.h>
#include <string.h>

#include "solvers/math/block_banded.h"
#include "solvers/math/so3.h"
#include "solvers/xpbd/fe_rods_private.h"

// ---- Begin: inertial prediction ----------------------------------------------------------------

static void predict_node(rw_fe_rods* self, const rw_step* step, int64_t i, rw_vec3 gravity) {
    const rw_state* from = step->from;
    double h = step->h, mass = self->mass[i];
    rw_vec3 v = rw_vec3_load(&from->node_velocity[3 * i]);
    v = rw_vec3_add_scaled(v, h, gravity);
    v = rw_vec3_add_scaled(v, h / mass, rw_vec3_load(&step->node_force[3 * i]));
    rw_vec3_store(&self->prediction[3 * i],
                  rw_vec3_add_scaled(rw_vec3_load(&from->node_position[3 * i]), h, v));

    rw_vec3 w = rw_vec3_load(&from->frame_angular_velocity[3 * i]);
    rw_vec3 inertia = rw_vec3_load(&self->inertia[3 * i]);
    rw_quat q = rw_quat_load(&from->frame_rotation[4 * i]);
    rw_vec3 torque = rw_vec3_cross(rw_vec3_mul(inertia, w), w);
    w = rw_vec3_add(w, rw_vec3_make(h * torque.x / inertia.x, h * torque.y / inertia.y,
                                    h * torque.z / inertia.z));
    rw_quat_store(&self->turn[4 * i],
                  rw_quat_normalize(rw_quat_mul(q, rw_quat_cayley(rw_vec3_scale(w, h)))));
}

static void begin_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    const rw_step* step = self->step;
    const rw_state* from = step->from;
    rw_state* to = step->to;
    rw_vec3 gravity = rw_vec3_load(step->drive_to->gravity);
    double h = step->h;
    // The iteration starts where the nodes would coast to, without forces: at rest that is the
    // equilibrium itself, whatever the number of iterations. (Starting from the prediction, one
    // iteration has to undo h^2 f/m at a light node that carries a load: at 30 N on a rubber rod
    // it settles at 1.7 times the true deflection.)
    for (int32_t n = 0; n < rod->node_count; n++) {
        int64_t i = rod->node_first + n;
        predict_node(self, step, i, gravity);
        rw_vec3 x = rw_vec3_load(&from->node_position[3 * i]);
        rw_vec3 v = rw_vec3_load(&from->node_velocity[3 * i]);
        rw_vec3_store(&to->node_position[3 * i], rw_vec3_add_scaled(x, h, v));
        rw_quat q = rw_quat_load(&from->frame_rotation[4 * i]);
        rw_vec3 w = rw_vec3_load(&from->frame_angular_velocity[3 * i]);
        rw_quat_store(&to->frame_rotation[4 * i],
                      rw_quat_normalize(rw_quat_mul(q, rw_quat_cayley(rw_vec3_scale(w, h)))));
    }
    // Held rows start where they were; the first iteration moves them with the rest.
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        int64_t i = rod->node_first + hold->node;
        if (hold->stiffness > 0) {
            continue;
        }
        memcpy(&to->node_position[3 * i], &from->node_position[3 * i], 3 * sizeof(double));
        if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
            memcpy(&to->frame_rotation[4 * i], &from->frame_rotation[4 * i], 4 * sizeof(double));
        }
    }
    for (int32_t e = 0; e < rod->element_count && rod->damping > 0; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, from, e, &frame);
        for (int k = 0; k < rod->rule.point_count; k++) {
            rw_rod_element_strain strain;
            rw_fe_rods_private_strain(self, rod, &frame, e, k, &strain, NULL);
            rw_fe_rods_private_store_strain(
                &strain,
                self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k].start);
        }
    }
}

rw_status rw_fe_rods_begin(rw_fe_rods* self, rw_step* step) {
    self->iteration = 0;
    return rw_fe_rods_private_for_all(self, step, "xpbd rod prediction", begin_rod);
}

// ---- Holds -------------------------------------------------------------------------------------

// Where a hold wants its node: the attachment's frame on its body (trial pose) or in the world.
static void hold_target(const rw_fe_rods* self, const rw_fe_hold* hold, rw_vec3* position,
                        rw_quat* rotation) {
    const rw_step* step = self->step;
    int32_t body = self->model->attachments.items[hold->attachment].body;
    const rw_frame* frame = &step->drive_to->attachment_target[hold->attachment];
    *position = rw_vec3_load(frame->position);
    *rotation = rw_quat_load(frame->rotation);
    if (body >= 0) {
        rw_quat q = rw_quat_load(&step->to->body_rotation[4 * body]);
        rw_vec3 center = rw_vec3_load(&self->model->bodies.center_of_mass[3 * body]);
        *position = rw_vec3_add(rw_vec3_load(&step->to->body_position[3 * body]),
                                rw_quat_rotate(q, rw_vec3_sub(*position, center)));
        *rotation = rw_quat_mul(q, *rotation);
    }
}

// The increment that takes the node to its target.
void rw_fe_rods_private_hold_increment(const rw_fe_rods* self, const rw_fe_rod* rod,
                                       const rw_fe_hold* hold, double increment[6]) {
    const rw_state* to = self->step->to;
    int64_t i = rod->node_first + hold->node;
    rw_vec3 position;
    rw_quat rotation;
    hold_target(self, hold, &position, &rotation);
    rw_vec3_store(increment, rw_vec3_sub(position, rw_vec3_load(&to->node_position[3 * i])));
    rw_vec3 turn = rw_vec3_zero();
    if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
        turn = rw_so3_boxminus(rotation, rw_quat_load(&to->frame_rotation[4 * i]));
    }
    rw_vec3_store(increment + 3, turn);
}

static double band_entry(const rw_fe_rod* rod, const double* band, int64_t i, int64_t j) {
    if (i < j) {
        int64_t swap = i;
        i = j;
        j = swap;
    }
    return i - j > rod->half_band ? 0 : band[i * (rod->half_band + 1) + rod->half_band - (i - j)];
}

void rw_fe_rods_private_target_move(const rw_fe_rods* self, const rw_fe_rod* rod,
                                    const rw_fe_hold* hold, double increment[6]) {
    rw_vec3 position;
    rw_quat rotation, before = rw_quat_load(hold->target + 3);
    hold_target(self, hold, &position, &rotation);
    rw_vec3_store(increment, rw_vec3_sub(position, rw_vec3_load(hold->target)));
    rw_vec3 turn = rw_so3_log(rw_quat_mul(rotation, rw_quat_conj(before)));
    int64_t i = rod->node_first + hold->node;
    rw_quat node = rw_quat_load(&self->step->to->frame_rotation[4 * i]);
    rw_vec3_store(increment + 3, rw_quat_inverse_rotate(node, turn));
}

bool rw_fe_rods_private_is_active_row(const rw_fe_hold* hold, int k) {
    return k < 3 || (hold->rows & RW_FE_HELD_ROTATION) != 0;
}

bool rw_fe_rods_private_is_held_row(const rw_fe_hold* hold, int k) {
    return hold->stiffness == 0 && rw_fe_rods_private_is_active_row(hold, k);
}

// A compliant attachment is a spring between the node and its target, which is one more node of its
// own: columns -k at the node, k on its diagonal.
static void add_compliant(rw_fe_rods* self, const rw_fe_rod* rod, rw_fe_hold* hold) {
    double* band = &self->band[rod->band_first];
    int64_t rows = 6 * (int64_t)rod->node_count, at = 6 * (int64_t)hold->node;
    double* right = &self->right[6 * (int64_t)rod->node_first + at];
    rw_vec3 position;
    rw_quat rotation;
    hold_target(self, hold, &position, &rotation);
    rw_vec3_store(hold->target, position);
    rw_quat_store(hold->target + 3, rotation);
    double* columns = &self->columns[hold->column_first];
    if (hold->body >= 0) {
        memset(columns, 0, (size_t)(6 * rows) * sizeof *columns);
        memset(hold->own, 0, sizeof hold->own);
    }
    for (int r = 0; r < 6; r++) {
        double k = rw_fe_rods_private_is_active_row(hold, r) ? hold->stiffness : 0;
        band[(at + r) * (rod->half_band + 1) + rod->half_band] += k;
        right[r] += k * hold->increment[r];
        hold->residual[r] = k * hold->increment[r];
        if (hold->body >= 0) {
            columns[r * rows + at + r] = -k;
            hold->own[7 * r] = k;
        }
    }
}

// Keeps the columns of a node that a dynamic body holds, for `respond`.
static void save_columns(rw_fe_rods* self, const rw_fe_rod* rod, rw_fe_hold* hold) {
    const double* band = &self->band[rod->band_first];
    int64_t rows = 6 * (int64_t)rod->node_count, at = 6 * (int64_t)hold->node;
    double* columns = &self->columns[hold->column_first];
    for (int c = 0; c < 6; c++) {
        memset(&columns[c * rows], 0, (size_t)rows * sizeof *columns);
        for (int64_t i = at - rod->half_band; i <= at + 5 + rod->half_band; i++) {
            if (i >= 0 && i < rows && rw_fe_rods_private_is_held_row(hold, c)) {
                columns[c * rows + i] = band_entry(rod, band, i, at + c);
            }
        }
    }
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            hold->own[6 * r + c] = band_entry(rod, band, at + r, at + c);
        }
        hold->residual[r] = -self->right[6 * ((int64_t)rod->node_first + hold->node) + r];
    }
}

// Replaces a held row and column by the identity and moves its known increment to the right.
static void eliminate(rw_fe_rods* self, const rw_fe_rod* rod, const rw_fe_hold* hold) {
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int64_t rows = 6 * (int64_t)rod->node_count;
    int width = rod->half_band + 1;
    for (int k = 0; k < 6; k++) {
        if (!rw_fe_rods_private_is_held_row(hold, k)) {
            continue;
        }
        int64_t c = 6 * (int64_t)hold->node + k;
        int64_t first = c > rod->half_band ? c - rod->half_band : 0;
        int64_t last = c + rod->half_band < rows - 1 ? c + rod->half_band : rows - 1;
        for (int64_t i = first; i <= last; i++) {
            double* entry = i >= c ? &band[i * width + rod->half_band - (i - c)]
                                   : &band[c * width + rod->half_band - (c - i)];
            if (i != c) {
                right[i] -= *entry * hold->increment[k];
            }
            *entry = i == c ? 1 : 0;
        }
    }
}

// A second pass over held rows: their solution is the increment itself.
void rw_fe_rods_private_prescribe(rw_fe_rods* self, const rw_fe_rod* rod) {
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        double* right = &self->right[6 * ((int64_t)rod->node_first + hold->node)];
        for (int r = 0; r < 6; r++) {
            if (rw_fe_rods_private_is_held_row(hold, r)) {
                right[r] = hold->increment[r];
            }
        }
    }
}

// ---- Sweep -------------------------------------------------------------------------------------

static double norm_of(const double* values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
    }
    return sqrt(sum);
}

void rw_fe_rods_private_move_node(rw_state* to, int64_t i, const double increment[6]) {
    double* position = &to->node_position[3 * i];
    rw_vec3_store(position, rw_vec3_add(rw_vec3_load(position), rw_vec3_load(increment)));
    double* rotation = &to->frame_rotation[4 * i];
    rw_quat_store(rotation, rw_so3_boxplus(rw_quat_load(rotation), rw_vec3_load(increment + 3)));
}

// Relative size of the residual of the free rows: against the forces that it is the balance of.
static double relative_residual(const rw_fe_rods* self, const rw_fe_rod* rod) {
    int64_t rows = 6 * (int64_t)rod->node_count;
    const double* right = &self->right[6 * (int64_t)rod->node_first];
    double held = 0, all = norm_of(right, rows);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        const rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        for (int r = 0; r < 6; r++) {
            if (rw_fe_rods_private_is_held_row(hold, r)) {
                double value = right[6 * (int64_t)hold->node + r];
                held += value * value;
            }
        }
    }
    double free_sq = all * all - held;
    double size = free_sq > 0 ? sqrt(free_sq) : 0;
    double reference = rod->stress + sqrt(held);
    return reference > 0 ? size / reference : 0;
}

static void sweep_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    double tolerance = self->model->solver.xpbd.residual_tolerance;
    rw_fe_rods_private_assemble(self, rod);
    if (rod->status != RW_STATUS_OK) {
        return;
    }
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        rw_fe_rods_private_hold_increment(self, rod, hold, hold->increment);
        if (hold->stiffness > 0) {
            add_compliant(self, rod, hold);
        }
    }
    rod->residual = relative_residual(self, rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        rw_fe_hold* hold = &self->holds[rod->hold_first + k];
        if (hold->body >= 0 && hold->stiffness == 0) {
            save_columns(self, rod, hold);
        }
    }
    // Without moving: the residual says that the trial is good enough already. A body may still move.
    bool is_still = self->iteration > 0 && tolerance > 0 && rod->residual <= tolerance;
    for (int32_t k = 0; k < rod->hold_count; k++) {
        eliminate(self, rod, &self->holds[rod->hold_first + k]);
        is_still = is_still && self->holds[rod->hold_first + k].body < 0;
    }
    if (is_still) {
        return;
    }
    rw_fe_rods_private_prescribe(self, rod);
    int64_t rows = 6 * (int64_t)rod->node_count;
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int64_t bad = rw_block_banded_factor(rows, rod->half_band, rod->half_band - 5, band, right);
    if (bad != 0) {
        rw_fe_rods_private_fault(rod, "the matrix is not positive definite at row",
                                 (double)(bad - 1));
        return;
    }
    rw_block_banded_finish(rows, rod->half_band, rod->half_band - 5, band, right);
    for (int32_t n = 0; n < rod->node_count; n++) {
        rw_fe_rods_private_move_node(self->step->to, rod->node_first + n, &right[6 * n]);
    }
}

rw_status rw_fe_rods_sweep(rw_fe_rods* self, rw_step* step, bool* done) {
    if (atomic_load_explicit(step->cancel, memory_order_relaxed)) {
        return RW_STATUS_CANCELLED;
    }
    RW_TRY(rw_fe_rods_private_for_all(self, step, "xpbd rod solve", sweep_rod));
    self->iteration++;
    const double tolerance = self->model->solver.xpbd.residual_tolerance;
    bool is_settled = tolerance > 0 && self->iteration > 1;
    for (int32_t r = 0; r < self->rod_count; r++) {
        is_settled = is_settled && self->rods[r].residual <= tolerance;
    }
    *done = is_settled || self->iteration >= (int32_t)self->model->solver.xpbd.iterations;
    return RW_STATUS_OK;
}

// ---- End ---------------------------------------------------------------------------------------

static void finish_velocities(rw_fe_rods* self, const rw_fe_rod* rod) {
    const rw_state* from = self->step->from;
    rw_state* to = self->step->to;
    double h = self->step->h;
    for (int32_t n = 0; n < rod->node_count; n++) {
        int64_t i = rod->node_first + n;
        rw_vec3 moved = rw_vec3_sub(rw_vec3_load(&to->node_position[3 * i]),
                                    rw_vec3_load(&from->node_position[3 * i]));
        rw_vec3_store(&to->node_velocity[3 * i], rw_vec3_scale(moved, 1 / h));
        // The inverse of the Cayley map that the prediction uses; beyond 2 rad a step the logarithm.
        rw_quat d = rw_quat_conj_mul(rw_quat_load(&from->frame_rotation[4 * i]),
                                     rw_quat_load(&to->frame_rotation[4 * i]));
        rw_vec3 turn = fabs(d.w) > 0.54 ? rw_vec3_scale(rw_quat_vector(d), 2 / d.w) : rw_so3_log(d);
        rw_vec3_store(&to->frame_angular_velocity[3 * i], rw_vec3_scale(turn, 1 / h));
    }
}

// The wrench that holds a node: its residual at the final state, with the node's own inertia,
// weight and loads.
static void finish_wrench(rw_fe_rods* self, rw_fe_rod* rod, const rw_fe_hold* hold) {
    double force[RW_ROD_ELEMENT_STRIDE], diagonal[6], sum[6];
    int64_t i = rod->node_first + hold->node;
    rw_fe_rods_private_node_terms(self, rod, i, sum, diagonal);
    int order = rod->rule.order;
    for (int32_t e = (hold->node - 1) / order; e <= hold->node / order; e++) {
        int local = hold->node - e * order;
        if (e < 0 || e >= rod->element_count || local < 0 || local > order) {
            continue;
        }
        rw_fe_rods_private_element_force(self, rod, e, force);
        for (int k = 0; k < 6; k++) {
            sum[k] += force[6 * local + k];
        }
    }
    for (int32_t m = 0; m < rod->hold_count; m++) {
        // A spring at the same node takes its share; a compliant attachment is that spring.
        const rw_fe_hold* other = &self->holds[rod->hold_first + m];
        double increment[6];
        if (other->stiffness == 0 || other->node != hold->node ||
            (hold->stiffness > 0 && other != hold)) {
            continue;
        }
        rw_fe_rods_private_hold_increment(self, rod, other, increment);
        for (int k = 0; k < 6; k++) {
            double pull =
                rw_fe_rods_private_is_active_row(other, k) ? other->stiffness * increment[k] : 0;
            sum[k] = other == hold ? -pull : sum[k] + pull;
        }
    }
    // `sum` is minus the residual, i.e. what is missing for balance; the hold supplies its opposite.
    double* wrench = &self->attachment_wrench[6 * hold->attachment];
    rw_quat q = rw_quat_load(&self->step->to->frame_rotation[4 * i]);
    rw_vec3 moment = rw_vec3_zero();
    if ((hold->rows & RW_FE_HELD_ROTATION) != 0) {
        moment = rw_quat_rotate(q, rw_vec3_neg(rw_vec3_load(sum + 3)));
    }
    rw_vec3_store(wrench, rw_vec3_neg(rw_vec3_load(sum)));
    rw_vec3_store(wrench + 3, moment);
}

static void end_rod(rw_fe_rods* self, rw_fe_rod* rod) {
    rw_fe_rods_private_follow_bodies(self, rod);
    finish_velocities(self, rod);
    for (int32_t k = 0; k < rod->hold_count; k++) {
        finish_wrench(self, rod, &self->holds[rod->hold_first + k]);
    }
}

rw_status rw_fe_rods_end(rw_fe_rods* self, rw_step* step) {
    return rw_fe_rods_private_for_all(self, step, "xpbd rod end", end_rod);
}
