// One substep of scr: the minimum of the incremental potential
//
//     sum_i A_i/2 |x_i - goal_i|^2 + sum_s k_s/2 (|G_s|^2 + d/h |G_s - G_s0|^2)
//           + sum_b k_b/2 (|p_b - q_r|^2 + d/h |p_b - p_b0|^2),
//     G = R'dx/l - e3,  p = q_a* q_b
//
// by Gauss-Seidel sweeps: all positions with frames held (a quadratic with a scalar Hessian: one
// multiplication each), then all frames with positions held (orientation.h). Velocities are dx/h
// (backward Euler). The Kelvin-Voigt terms d/h (d = damping time, index 0 = start of the step) have
// the form of the elastic ones: with c = R0'dx0/l they replace e3 by e3 + d/h c and q_r by
// q_r + d/h p0, and multiply k_s by 1 + d/h where it stands beside dx. They vanish at rest, damp no
// rigid motion, and change no equilibrium.
//
//   A_i    = m/h^2 + (m mass_damping + drag + authors' viscosity)/h
//   goal_i = x0 + (m v0/h + m g + f + drag w)/A
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "solvers/scr/orientation.h"
#include "solvers/scr/scr_attach.h"
#include "solvers/scr/scr_block.h"
#include "solvers/scr/scr_sweep.h"

// ---- Kernels ----

// Moves `count` free nodes to the minimum with all else held, and past it by omega - 1.
static void sweep_positions(const rw_scr* scr, double* position, const int32_t* order,
                            int32_t count, double omega) {
    const int32_t *first = scr->incident_first, *other = scr->incident_other;
    const int32_t* code = scr->incident_code;
    const double *kappa = scr->kappa, *pull = scr->pull, *goal = scr->goal;
    const double *inertia = scr->inertia, *inverse = scr->inverse_diagonal;
    for (int32_t n = 0; n < count; n++) {
        int64_t i = order[n];
        double x = position[3 * i], y = position[3 * i + 1], z = position[3 * i + 2];
        double a = inertia[i];
        double fx = a * (goal[3 * i] - x), fy = a * (goal[3 * i + 1] - y);
        double fz = a * (goal[3 * i + 2] - z);
        for (int32_t k = first[i]; k < first[i + 1]; k++) {
            int64_t j = other[k], s = code[k] >> 1;
            double sign = (code[k] & 1) != 0 ? -1.0 : 1.0;
            double w = kappa[s];
            fx += w * (position[3 * j] - x) + sign * pull[3 * s];
            fy += w * (position[3 * j + 1] - y) + sign * pull[3 * s + 1];
            fz += w * (position[3 * j + 2] - z) + sign * pull[3 * s + 2];
        }
        double r = omega * inverse[i];
        position[3 * i] = x + r * fx;
        position[3 * i + 1] = y + r * fy;
        position[3 * i + 2] = z + r * fz;
    }
}

// Adds `c` with the sign that makes it pull towards q.
static inline rw_quat add_towards(rw_quat b, rw_quat c, rw_quat q) {
    return rw_quat_dot(c, q) < 0.0 ? rw_quat_sub(b, c) : rw_quat_add(b, c);
}

// What is rare: half elements of clamps, and loads' torques (seed 001 note 8), lagged by a sweep.
static rw_quat add_extras(const rw_scr* scr, int32_t s, rw_quat q, rw_quat b) {
    for (int32_t k = scr->clamp_of[s]; k >= 0; k = scr->clamps[k].next)
        b = add_towards(b, scr->clamps[k].pull, q);
    if ((scr->segment_flags[s] & RW_SCR_SEGMENT_TORQUE) != 0) {
        rw_quat tau = rw_quat_imaginary(rw_scr_data_vec3(scr->torque, s));
        b = rw_quat_add(b, rw_quat_scale(rw_quat_mul(tau, q), 2.0));
    }
    return b;
}

// Goes from q to the minimum `best` and past it by omega - 1, on the sphere.
static rw_quat relax(rw_quat q, rw_quat best, double omega) {
    if (rw_quat_dot(q, best) < 0.0)
        q = rw_quat_neg(q);
    rw_quat moved = rw_quat_add(q, rw_quat_scale(rw_quat_sub(best, q), omega));
    return rw_quat_scale(moved, 1.0 / rw_quat_norm(moved));
}

void rw_scr_sweep_orientations(const rw_scr* scr, const double* position, double* rotation,
                               const int32_t* order, int32_t count, double omega, bool exact,
                               bool damped) {
    const int32_t *first = scr->link_first, *other = scr->link_other;
    for (int32_t n = 0; n < count; n++) {
        int32_t s = order[n];
        rw_quat q = rw_scr_data_quat(rotation, s), b = {0};
        for (int32_t k = first[s]; k < first[s + 1]; k++) {
            rw_quat c = rw_quat_mul(rw_scr_data_quat(rotation, other[k]),
                                    rw_scr_data_quat(scr->link_target, k));
            b = add_towards(b, c, q);
        }
        if (scr->segment_flags[s] != 0)
            b = add_extras(scr, s, q, b);
        rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(position, scr->head[s]),
                                 rw_scr_data_vec3(position, scr->tail[s]));
        double stretch = scr->stretch[s];
        rw_quat turn = rw_quat_identity();
        if (damped) {
            // In the frame turned by axis_turn the damped tangent is e3 again, longer.
            turn = rw_scr_data_quat(scr->axis_turn, s);
            stretch *= scr->axis_scale[s];
            b = rw_quat_mul(b, turn);
            q = rw_quat_mul(q, turn);
        }
        rw_quat best = rw_orientation_solve(rw_vec3_scale(dx, 2.0 * stretch), b, q, exact);
        q = omega == 1.0 ? best : relax(q, best, omega);
        rw_vec3_store(scr->pull + 3 * (int64_t)s, rw_vec3_scale(rw_quat_axis_z(q), stretch));
        if (damped)
            q = rw_quat_mul(q, rw_quat_conj(turn));
        rw_quat_store(rotation + 4 * (int64_t)s, q);
    }
}

void rw_scr_sweep_store_pull(rw_scr* scr, int32_t s, rw_quat q) {
    double stretch = scr->stretch[s];
    if (scr->rods[scr->segment_rod[s]].damped) {
        q = rw_quat_mul(q, rw_scr_data_quat(scr->axis_turn, s));
        stretch *= scr->axis_scale[s];
    }
    rw_vec3_store(scr->pull + 3 * (int64_t)s, rw_vec3_scale(rw_quat_axis_z(q), stretch));
}

rw_quat rw_scr_sweep_pull(const rw_scr* scr, const double* rotation, int32_t s,
                          double* moment_scale) {
    rw_quat q = rw_scr_data_quat(rotation, s), b = {0};
    double scale = 0.0;
    for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
        rw_quat c = rw_quat_mul(rw_scr_data_quat(rotation, scr->link_other[k]),
                                rw_scr_data_quat(scr->link_target, k));
        rw_quat along = rw_quat_scale(q, rw_quat_dot(c, q));
        scale += rw_quat_norm(rw_quat_sub(c, along));
        b = add_towards(b, c, q);
    }
    for (int32_t k = scr->clamp_of[s]; k >= 0; k = scr->clamps[k].next) {
        rw_quat c = scr->clamps[k].pull;
        rw_quat along = rw_quat_scale(q, rw_quat_dot(c, q));
        scale += rw_quat_norm(rw_quat_sub(c, along));
    }
    if ((scr->segment_flags[s] & RW_SCR_SEGMENT_TORQUE) != 0)
        scale += 2.0 * rw_vec3_norm(rw_scr_data_vec3(scr->torque, s));
    if (scr->segment_flags[s] != 0)
        b = add_extras(scr, s, q, b);
    *moment_scale = 0.5 * scale;
    return b;
}

rw_vec3 rw_scr_sweep_node_force(const rw_scr* scr, const double* position, int32_t i) {
    rw_vec3 x = rw_scr_data_vec3(position, i);
    rw_vec3 f = rw_vec3_scale(rw_vec3_sub(rw_scr_data_vec3(scr->goal, i), x), scr->inertia[i]);
    for (int32_t k = scr->incident_first[i]; k < scr->incident_first[i + 1]; k++) {
        int32_t s = scr->incident_code[k] >> 1;
        double sign = (scr->incident_code[k] & 1) != 0 ? -1.0 : 1.0;
        rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(position, scr->incident_other[k]), x);
        rw_vec3 part = rw_vec3_scale(dx, scr->kappa[s]);
        part = rw_vec3_add_scaled(part, sign, rw_scr_data_vec3(scr->pull, s));
        f = rw_vec3_add(f, part);
    }
    return f;
}

// ---- Begin ----

// Kelvin-Voigt of one segment: e3 + d/h R0'dx0/l as a length and a turn of e3.
static void begin_axis(rw_scr* scr, const rw_step* step, int32_t s, double rate) {
    rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(step->from->node_position, scr->head[s]),
                             rw_scr_data_vec3(step->from->node_position, scr->tail[s]));
    rw_quat q = rw_scr_data_quat(step->from->frame_rotation, s);
    rw_vec3 c = rw_quat_inverse_rotate(q, rw_vec3_scale(dx, rate / scr->rest_length[s]));
    rw_vec3 axis = {c.x, c.y, c.z + 1.0};
    scr->axis_scale[s] = rw_vec3_norm(axis);
    rw_quat_store(scr->axis_turn + 4 * (int64_t)s,
                  rw_quat_between(rw_vec3_make(0.0, 0.0, 1.0), axis));
}

static void begin_links(rw_scr* scr, const rw_step* step, int32_t s, double rate) {
    rw_quat q = rw_scr_data_quat(step->from->frame_rotation, s);
    for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
        int32_t n = scr->link_bend[k] / 2;
        rw_quat other = rw_scr_data_quat(step->from->frame_rotation, scr->link_other[k]);
        rw_quat rest = rw_scr_data_quat(scr->bend_rest, n);
        if (scr->link_bend[k] % 2 == 0)
            rest = rw_quat_conj(rest);
        rw_quat p = rw_quat_conj_mul(other, q);
        double w = rw_quat_dot(p, rest) < 0.0 ? -rate : rate;
        rw_quat sum = rw_quat_add(rest, rw_quat_scale(p, w));
        rw_quat_store(scr->link_target + 4 * (int64_t)k,
                      rw_quat_scale(sum, scr->bend_stiffness[n]));
    }
}

static void begin_segments(rw_scr* scr, rw_step* step, const rw_scr_piece* piece) {
    const rw_scr_rod* rod = &scr->rods[scr->chunks[piece->chunk].rod];
    double rate = rod->stretch_factor - 1.0;
    for (int32_t k = piece->segment_first; k < piece->segment_end; k++) {
        int32_t s = scr->segment_order[k];
        scr->kappa[s] = scr->stretch[s] / scr->rest_length[s] * rod->stretch_factor;
        if (rod->damped) {
            begin_axis(scr, step, s, rate);
            begin_links(scr, step, s, rate);
        }
        if ((scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) != 0)
            continue; // written from its attachment
        rw_quat q = rw_scr_data_quat(step->from->frame_rotation, s);
        rw_quat_store(step->to->frame_rotation + 4 * (int64_t)s, q);
        rw_scr_sweep_store_pull(scr, s, q);
    }
}

// Inertia, goal and first guess of one node. The guess is the authors': the displacement h v + h^2 c
// g, where c in [0, 1] is the part of gravity that the last step's acceleration had.
static void begin_node(rw_scr* scr, rw_step* step, const rw_scr_rod* rod, int32_t i) {
    double h = step->h, m = scr->mass[i];
    rw_vec3 gravity = rw_vec3_load(step->drive_to->gravity);
    rw_vec3 wind = rw_vec3_load(step->drive_to->wind);
    rw_vec3 x = rw_scr_data_vec3(step->from->node_position, i);
    rw_vec3 v = rw_scr_data_vec3(step->from->node_velocity, i);
    rw_vec3 load = rw_scr_data_vec3(step->node_force, i);
    double drag = 0.0;
    if (scr->damping_kind == RW_SCR_DAMPING_KELVIN_VOIGT)
        drag =
            (rod->drag + rod->quadratic_drag * rw_vec3_norm(rw_vec3_sub(v, wind))) * scr->length[i];
    double inertia = m / (h * h) + (m * rod->mass_damping + drag + scr->viscosity[i]) / h;
    rw_vec3 sum = rw_vec3_scale(v, m / h);
    sum = rw_vec3_add(rw_vec3_add_scaled(sum, m, gravity), load);
    sum = rw_vec3_add_scaled(sum, drag, wind);
    scr->inertia[i] = inertia;
    scr->inverse_diagonal[i] = 1.0 / (inertia + scr->stiffness_sum[i] * rod->stretch_factor);
    rw_vec3_store(scr->goal + 3 * (int64_t)i, rw_vec3_add_scaled(x, 1.0 / inertia, sum));
    if (scr->node_held[i])
        return; // placed by its attachment
    double g2 = rw_vec3_norm_sq(gravity), c = 0.0;
    if (g2 > 0.0)
        c = rw_vec3_dot(rw_scr_data_vec3(scr->memory.node_acceleration, i), gravity) / g2;
    c = c < 0.0 ? 0.0 : c > 1.0 ? 1.0 : c;
    rw_vec3 guess = rw_vec3_add_scaled(rw_vec3_add_scaled(x, h, v), h * h * c, gravity);
    rw_vec3_store(step->to->node_position + 3 * (int64_t)i, guess);
}

static void begin_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    rw_step* step = scr->step;
    const rw_scr_piece* piece = &scr->pieces[index];
    const rw_scr_rod* rod = &scr->rods[scr->chunks[piece->chunk].rod];
    begin_segments(scr, step, piece);
    for (int32_t k = piece->node_first; k < piece->node_end; k++)
        begin_node(scr, step, rod, scr->node_order[k]);
}

// What depends on positions of the incremental potential, frames as at the start.
static double node_objective(const rw_scr* scr, const double* position, int32_t i) {
    rw_vec3 d = rw_vec3_sub(rw_scr_data_vec3(position, i), rw_scr_data_vec3(scr->goal, i));
    return 0.5 * scr->inertia[i] * rw_vec3_norm_sq(d);
}

static double segment_objective(const rw_scr* scr, rw_vec3 a, rw_vec3 b, int32_t s) {
    rw_vec3 dx = rw_vec3_sub(b, a);
    return 0.5 * scr->kappa[s] * rw_vec3_norm_sq(dx) -
           rw_vec3_dot(dx, rw_scr_data_vec3(scr->pull, s));
}

static void compare_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    const double* guess = scr->step->to->node_position;
    const double* last = scr->step->from->node_position;
    const rw_scr_piece* piece = &scr->pieces[index];
    double sum_guess = 0.0, sum_last = 0.0;
    for (int32_t k = piece->node_first; k < piece->node_end; k++) {
        int32_t i = scr->node_order[k];
        if (scr->node_held[i])
            continue;
        sum_guess += node_objective(scr, guess, i);
        sum_last += node_objective(scr, last, i);
    }
    for (int32_t k = piece->segment_first; k < piece->segment_end; k++) {
        int32_t s = scr->segment_order[k], a = scr->tail[s], b = scr->head[s];
        rw_vec3 ga = rw_scr_data_vec3(guess, a), gb = rw_scr_data_vec3(guess, b);
        rw_vec3 la = scr->node_held[a] ? ga : rw_scr_data_vec3(last, a);
        rw_vec3 lb = scr->node_held[b] ? gb : rw_scr_data_vec3(last, b);
        sum_guess += segment_objective(scr, ga, gb, s);
        sum_last += segment_objective(scr, la, lb, s);
    }
    scr->sums[index].objective_guess = sum_guess;
    scr->sums[index].objective_last = sum_last;
}

// Chunks whose guess is worse than staying go back to the last positions (seed 001 note 11).
static void choose_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    const rw_scr_chunk* chunk = &scr->chunks[scr->pieces[index].chunk];
    double guess = 0.0, last = 0.0;
    for (int32_t k = 0; k < chunk->piece_count; k++) {
        guess += scr->sums[chunk->piece_first + k].objective_guess;
        last += scr->sums[chunk->piece_first + k].objective_last;
    }
    if (!(last < guess))
        return;
    for (int32_t k = scr->pieces[index].node_first; k < scr->pieces[index].node_end; k++) {
        int64_t i = scr->node_order[k];
        if (!scr->node_held[i])
            memcpy(scr->step->to->node_position + 3 * i, scr->step->from->node_position + 3 * i,
                   3 * sizeof(double));
    }
}

// A torque on a node is shared equally by the segments that meet there.
static void begin_torques(rw_scr* scr, const rw_step* step) {
    if (scr->node_torques) {
        memset(scr->torque, 0, (size_t)scr->segment_count * 3 * sizeof(double));
        for (int32_t s = 0; s < scr->segment_count; s++)
            scr->segment_flags[s] &= (uint8_t)~RW_SCR_SEGMENT_TORQUE;
        scr->node_torques = false;
    }
    for (int32_t i = 0; i < scr->node_count; i++) {
        rw_vec3 torque = rw_scr_data_vec3(step->node_torque, i);
        if (torque.x == 0.0 && torque.y == 0.0 && torque.z == 0.0)
            continue;
        int32_t first = scr->incident_first[i], end = scr->incident_first[i + 1];
        for (int32_t k = first; k < end; k++) {
            int32_t s = scr->incident_code[k] >> 1;
            rw_vec3 sum =
                rw_vec3_add_scaled(rw_scr_data_vec3(scr->torque, s), 1.0 / (end - first), torque);
            rw_vec3_store(scr->torque + 3 * (int64_t)s, sum);
            scr->segment_flags[s] |= RW_SCR_SEGMENT_TORQUE;
            scr->node_torques = true;
        }
    }
}

rw_status rw_scr_sweep_begin(rw_scr* scr, rw_step* step) {
    scr->step = step;
    scr->sweeps = 0;
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rw_scr_rod* rod = &scr->rods[r];
        rod->stretch_factor = rod->damped ? 1.0 + rod->damping / step->h : 1.0;
        rod->done = rod->run = 0;
        // Blocks cost four times as much; only who asks for convergence needs them.
        rod->blocks = rod->slender && scr->model->solver.scr.residual_tolerance > 0.0;
        rod->converged = false;
        rod->residual = 0.0;
        rod->gap = 1.0;
        rod->window_start = 0;
        rod->window_residual = 0.0;
    }
    begin_torques(scr, step);
    rw_scr_attach_begin(scr, step);
    rw_parallel_for(step->parallel, scr->piece_count, begin_piece, scr);
    rw_scr_attach_place(scr, step);
    if (scr->model->solver.scr.initial_guess_adaptive) {
        rw_parallel_for(step->parallel, scr->piece_count, compare_piece, scr);
        rw_parallel_for(step->parallel, scr->piece_count, choose_piece, scr);
    }
    return RW_STATUS_OK;
}

// ---- Residual ----

// What the energy balance of the step needs of one node (settle).
static void balance_node(const rw_scr* scr, rw_scr_sums* sums, int32_t i, rw_vec3 force) {
    rw_vec3 v = rw_scr_data_vec3(scr->step->to->node_velocity, i);
    rw_vec3 dv = rw_vec3_sub(v, rw_scr_data_vec3(scr->step->from->node_velocity, i));
    double m = scr->mass[i];
    sums->force = rw_vec3_add(sums->force, force);
    sums->force_work += scr->step->h * rw_vec3_dot(force, v);
    sums->mass += m;
    sums->momentum = rw_vec3_add_scaled(sums->momentum, m, v);
    sums->kinetic += m * rw_vec3_norm_sq(v);
    sums->change += m * rw_vec3_norm_sq(dv);
}

// Force on free nodes and torque on free segments, against the size of their terms. What rounding of
// the positions alone makes is not counted: `floor`.
static void measure_nodes(const rw_scr* scr, const rw_scr_piece* piece, rw_scr_sums* sums) {
    const double* position = scr->step->to->node_position;
    for (int32_t n = piece->node_first; n < piece->node_end; n++) {
        int32_t i = scr->node_order[n];
        rw_vec3 x = rw_scr_data_vec3(position, i);
        if (!rw_vec3_is_finite(x) && sums->bad_position < 0)
            sums->bad_position = i;
        if (scr->node_held[i]) {
            rw_vec3 v = rw_scr_data_vec3(scr->step->to->node_velocity, i);
            sums->held_velocity = rw_vec3_add(sums->held_velocity, v);
            sums->held_count++;
            continue;
        }
        rw_vec3 f = rw_vec3_scale(rw_vec3_sub(rw_scr_data_vec3(scr->goal, i), x), scr->inertia[i]);
        double scale = rw_vec3_norm(f);
        for (int32_t k = scr->incident_first[i]; k < scr->incident_first[i + 1]; k++) {
            int32_t s = scr->incident_code[k] >> 1;
            double sign = (scr->incident_code[k] & 1) != 0 ? -1.0 : 1.0;
            rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(position, scr->incident_other[k]), x);
            rw_vec3 part = rw_vec3_scale(dx, scr->kappa[s]);
            part = rw_vec3_add_scaled(part, sign, rw_scr_data_vec3(scr->pull, s));
            scale += rw_vec3_norm(part);
            f = rw_vec3_add(f, part);
        }
        if (scr->ending)
            balance_node(scr, sums, i, f);
        double floor = 2e-16 * rw_vec3_max_abs(x) / scr->inverse_diagonal[i];
        sums->force_square += rw_vec3_norm_sq(f);
        sums->force_scale += scale * scale;
        sums->force_floor += floor * floor;
    }
}

static void measure_segments(const rw_scr* scr, const rw_scr_piece* piece, rw_scr_sums* sums) {
    const rw_state* to = scr->step->to;
    for (int32_t n = piece->segment_first; n < piece->segment_end; n++) {
        int32_t s = scr->segment_order[n];
        rw_quat q = rw_scr_data_quat(to->frame_rotation, s);
        if (!rw_quat_is_finite(q) && sums->bad_rotation < 0)
            sums->bad_rotation = s;
        if ((scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) != 0)
            continue;
        double scale;
        rw_quat b = rw_scr_sweep_pull(scr, to->frame_rotation, s, &scale);
        rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(to->node_position, scr->head[s]),
                                 rw_scr_data_vec3(to->node_position, scr->tail[s]));
        rw_vec3 pull = rw_scr_data_vec3(scr->pull, s);
        rw_vec3 stretch = rw_vec3_cross(pull, dx);
        rw_vec3 torque = rw_vec3_scale(rw_quat_vector(rw_quat_mul(b, rw_quat_conj(q))), 0.5);
        torque = rw_vec3_add(torque, stretch);
        // A moment is worth a force at the other end of the segment and the other way round: what
        // balances without forces, or without moments, is measured against what there is.
        double l = scr->rest_length[s];
        double force = rw_vec3_norm(rw_vec3_sub(rw_vec3_scale(dx, scr->kappa[s]), pull));
        sums->force_scale += scale * scale / (l * l);
        sums->torque_scale += force * force * l * l;
        // The ends are rounded at their coordinates' size, not at the segment's.
        double size = rw_vec3_max_abs(rw_scr_data_vec3(to->node_position, scr->head[s]));
        double floor = 2e-16 * (rw_vec3_norm(pull) * (size + l) + rw_quat_norm(b));
        sums->torque_square += rw_vec3_norm_sq(torque);
        sums->torque_scale += scale * scale;
        sums->torque_floor += floor * floor;
    }
}

static void measure_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    rw_scr_sums* sums = &scr->sums[index];
    *sums = (rw_scr_sums){.bad_position = -1, .bad_rotation = -1};
    rw_scr_rod* rod = &scr->rods[scr->chunks[scr->pieces[index].chunk].rod];
    if (rod->run == 0)
        return;
    measure_nodes(scr, &scr->pieces[index], sums);
    measure_segments(scr, &scr->pieces[index], sums);
}

static double relative(double square, double scale, double floor) {
    if (square <= floor)
        return 0.0;
    // A residual of not-a-number stays one: it must not pass for converged.
    return scale > 0.0 ? sqrt(square / scale) : sqrt(square);
}

// Residual of every rod that ran in this round from its pieces, summed in their order.
static void measure_rods(rw_scr* scr) {
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rw_scr_rod* rod = &scr->rods[r];
        if (rod->run == 0)
            continue;
        rw_scr_sums total = {0};
        for (int32_t c = rod->chunk_first; c < rod->chunk_first + rod->chunk_count; c++) {
            const rw_scr_chunk* chunk = &scr->chunks[c];
            for (int32_t k = 0; k < chunk->piece_count; k++) {
                const rw_scr_sums* part = &scr->sums[chunk->piece_first + k];
                total.force_square += part->force_square;
                total.force_scale += part->force_scale;
                total.force_floor += part->force_floor;
                total.torque_square += part->torque_square;
                total.torque_scale += part->torque_scale;
                total.torque_floor += part->torque_floor;
            }
        }
        double force = relative(total.force_square, total.force_scale, total.force_floor);
        double torque = relative(total.torque_square, total.torque_scale, total.torque_floor);
        rod->residual = force > torque ? force : torque;
    }
}

// Over-relaxation, only where a tolerance asks for convergence. Every update lowers the potential
// for omega < 2 (positions are quadratic, and a frame's energy is nearly symmetric about its
// minimum). No mode falls faster than by omega - 1 per sweep, and the slowest only near the best
// omega, where n sweeps per factor of e become about sqrt(n). So 2 - omega is halved as long as a
// window of 16/(2 - omega) sweeps, in which the best omega gains exp(-16), gains less than a factor
// of two: the window outlasts the fast modes, whose rate would deceive. Overshooting costs little.
static void accelerate(rw_scr_rod* rod) {
    if (rod->window_residual > 0.0) {
        if (rod->done - rod->window_start < (int32_t)(16.0 / rod->gap))
            return;
        if (rod->residual > 0.5 * rod->window_residual && rod->gap > 0x1p-8)
            rod->gap *= 0.5;
    }
    rod->window_start = rod->done;
    rod->window_residual = rod->residual;
}

static void measure(rw_scr* scr, double tolerance) {
    rw_parallel_for(scr->step->parallel, scr->piece_count, measure_piece, scr);
    measure_rods(scr);
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rw_scr_rod* rod = &scr->rods[r];
        if (rod->run == 0)
            continue;
        rod->converged = rod->residual <= tolerance;
        accelerate(rod);
    }
}

// ---- Sweeps ----

static bool cancelled(const rw_scr* scr) {
    // Relaxed: the flag carries no data, and it does not matter which iteration sees it.
    return scr->step->cancel != NULL &&
           atomic_load_explicit(scr->step->cancel, memory_order_relaxed);
}

static bool spreads(const rw_scr* scr, const rw_scr_chunk* chunk) {
    return chunk->large && !scr->rods[chunk->rod].blocks && scr->step->parallel != NULL &&
           scr->step->parallel->pool != NULL;
}

static void sweep_batch(void* context, int32_t index) {
    rw_scr* scr = context;
    const rw_scr_batch* batch = &scr->batches[index];
    bool exact = scr->model->solver.scr.lambda == RW_LAMBDA_EXACT;
    rw_state* to = scr->step->to;
    for (int32_t c = batch->chunk_first; c < batch->chunk_end; c++) {
        const rw_scr_chunk* chunk = &scr->chunks[c];
        const rw_scr_rod* rod = &scr->rods[chunk->rod];
        if (spreads(scr, chunk))
            continue;
        int32_t nodes = chunk->node_free_end - chunk->node_first;
        int32_t segments = chunk->segment_free_end - chunk->segment_first;
        const int32_t* node_order = scr->node_order + chunk->node_first;
        const int32_t* segment_order = scr->segment_order + chunk->segment_first;
        double omega = 2.0 - rod->gap;
        for (int32_t k = 0; k < rod->run && !cancelled(scr); k++) {
            if (rod->blocks) {
                rw_scr_block_sweep(scr, to->node_position, to->frame_rotation, node_order, nodes,
                                   omega, exact, rod->damped);
            } else {
                sweep_positions(scr, to->node_position, node_order, nodes, omega);
                rw_scr_sweep_orientations(scr, to->node_position, to->frame_rotation, segment_order,
                                          segments, omega, exact, rod->damped);
            }
        }
    }
}

typedef struct rw_scr_colour_job {
    rw_scr* scr;
    int32_t first, end; // of the order
    double omega;
    bool exact, damped;
} rw_scr_colour_job;

static void colour_positions(void* context, int32_t block) {
    const rw_scr_colour_job* job = context;
    int32_t first = job->first + block * RW_SCR_COLOUR_BLOCK;
    int32_t count = job->end - first < RW_SCR_COLOUR_BLOCK ? job->end - first : RW_SCR_COLOUR_BLOCK;
    sweep_positions(job->scr, job->scr->step->to->node_position, job->scr->node_order + first,
                    count, job->omega);
}

static void colour_orientations(void* context, int32_t block) {
    const rw_scr_colour_job* job = context;
    int32_t first = job->first + block * RW_SCR_COLOUR_BLOCK;
    int32_t count = job->end - first < RW_SCR_COLOUR_BLOCK ? job->end - first : RW_SCR_COLOUR_BLOCK;
    rw_scr_sweep_orientations(job->scr, job->scr->step->to->node_position,
                              job->scr->step->to->frame_rotation, job->scr->segment_order + first,
                              count, job->omega, job->exact, job->damped);
}

static void run_colours(rw_scr* scr, const int32_t* start, int32_t count, rw_scr_colour_job job,
                        void (*function)(void*, int32_t)) {
    for (int32_t c = 0; c < count; c++) {
        job.first = start[c];
        job.end = start[c + 1];
        int32_t blocks = (job.end - job.first + RW_SCR_COLOUR_BLOCK - 1) / RW_SCR_COLOUR_BLOCK;
        rw_parallel_for(scr->step->parallel, blocks, function, &job);
    }
}

// Large components: the blocks of one colour at once, colour after colour. Same bits as in a batch.
static void sweep_large(rw_scr* scr) {
    for (int32_t c = 0; c < scr->chunk_count; c++) {
        const rw_scr_chunk* chunk = &scr->chunks[c];
        const rw_scr_rod* rod = &scr->rods[chunk->rod];
        if (!chunk->large || !spreads(scr, chunk))
            continue;
        rw_scr_colour_job job = {.scr = scr,
                                 .omega = 2.0 - rod->gap,
                                 .exact = scr->model->solver.scr.lambda == RW_LAMBDA_EXACT,
                                 .damped = rod->damped};
        for (int32_t k = 0; k < rod->run && !cancelled(scr); k++) {
            run_colours(scr, scr->colour_start + chunk->node_colour_first, chunk->node_colour_count,
                        job, colour_positions);
            run_colours(scr, scr->colour_start + chunk->segment_colour_first,
                        chunk->segment_colour_count, job, colour_orientations);
        }
    }
}

static void sweep_round(rw_scr* scr) {
    rw_parallel_for(scr->step->parallel, scr->batch_count, sweep_batch, scr);
    sweep_large(scr);
    for (int32_t r = 0; r < scr->rod_count; r++)
        scr->rods[r].done += scr->rods[r].run;
}

// With a tolerance the residual is looked at after 1, 2, 4, 8, 16, 24, ... iterations.
static int32_t until_check(int32_t done) {
    return done == 0 ? 1 : done < 8 ? done : 8;
}

static int32_t next_run(const rw_scr* scr, const rw_scr_rod* rod) {
    int32_t most = (int32_t)scr->model->solver.scr.iterations;
    if (rod->converged || rod->done >= most)
        return 0;
    int32_t run = scr->model->solver.scr.residual_tolerance > 0.0 ? until_check(rod->done) : most;
    return run < most - rod->done ? run : most - rod->done;
}

// Rods that no dynamic body waits for do all their iterations at once.
static rw_status run_alone(rw_scr* scr, double tolerance) {
    for (;;) {
        bool any = false;
        for (int32_t r = 0; r < scr->rod_count; r++) {
            rw_scr_rod* rod = &scr->rods[r];
            rod->run = rod->coupled ? 0 : next_run(scr, rod);
            any = any || rod->run > 0;
        }
        if (!any)
            return RW_STATUS_OK;
        sweep_round(scr);
        if (cancelled(scr))
            return RW_STATUS_CANCELLED;
        if (tolerance > 0.0)
            measure(scr, tolerance);
    }
}

// Rods on dynamic bodies: one iteration per call, with the bodies at their trial pose.
static rw_status run_coupled(rw_scr* scr, double tolerance, bool* done) {
    bool any = false, look = false;
    for (int32_t r = 0; r < scr->rod_count; r++) {
        rw_scr_rod* rod = &scr->rods[r];
        // A rod that is done goes on while others or the bodies are not: its bodies still move.
        rod->run = rod->coupled ? 1 : 0;
        any = any || rod->coupled;
        int32_t n = rod->done + 1;
        look = look || (rod->coupled && (n == 1 || n == 2 || n == 4 || n % 8 == 0));
    }
    if (!any)
        return RW_STATUS_OK;
    if (scr->sweeps > 1)
        rw_scr_attach_follow(scr, scr->step);
    sweep_round(scr);
    if (cancelled(scr))
        return RW_STATUS_CANCELLED;
    if (tolerance > 0.0 && look)
        measure(scr, tolerance);
    for (int32_t r = 0; r < scr->rod_count; r++)
        if (scr->rods[r].coupled && next_run(scr, &scr->rods[r]) > 0)
            *done = false;
    return RW_STATUS_OK;
}

rw_status rw_scr_sweep_run(rw_scr* scr, rw_step* step, bool* done) {
    double tolerance = scr->model->solver.scr.residual_tolerance;
    scr->step = step;
    *done = true;
    if (scr->sweeps++ == 0)
        RW_TRY(run_alone(scr, tolerance));
    return run_coupled(scr, tolerance, done);
}

// ---- End ----

static void end_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    const rw_step* step = scr->step;
    const rw_scr_piece* piece = &scr->pieces[index];
    const rw_scr_rod* rod = &scr->rods[scr->chunks[piece->chunk].rod];
    double keep = 1.0;
    if (scr->damping_kind != RW_SCR_DAMPING_KELVIN_VOIGT)
        keep = 1.0 - rod->drag * step->h; // the authors' drag
    for (int32_t k = piece->node_first; k < piece->node_end; k++) {
        int64_t i = scr->node_order[k];
        rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(step->to->node_position, i),
                                 rw_scr_data_vec3(step->from->node_position, i));
        rw_vec3_store(step->to->node_velocity + 3 * i, rw_vec3_scale(dx, keep / step->h));
    }
    for (int32_t k = piece->segment_first; k < piece->segment_end; k++)
        memset(step->to->frame_angular_velocity + 3 * (int64_t)scr->segment_order[k], 0,
               3 * sizeof(double));
    measure_piece(context, index);
    // A velocity overflows before its position does.
    rw_scr_sums* sums = &scr->sums[index];
    for (int32_t k = piece->node_first; k < piece->node_end && sums->bad_position < 0; k++)
        if (!rw_vec3_is_finite(rw_scr_data_vec3(step->to->node_velocity, scr->node_order[k])))
            sums->bad_position = scr->node_order[k];
}

// Sweeps that end early leave a force f on each node, as if a force -f had acted, and from a start
// that coasts on this force can drive the motion: 16 sweeps of a cantilever of 20 segments (5 MPa, 2
// cm thick, 1 ms) would let its swing grow by 28 % in two periods. Backward Euler itself loses m
// dv^2/2, so the step's energy rises by at most S = -sum f . dx - sum m dv^2/2 over the work of loads
// and holders (in the frame of the held nodes' mean velocity, or of the centre of mass). Where S > 0,
// it is taken back from the velocities.
static void settle(rw_scr* scr, rw_scr_chunk* chunk) {
    rw_scr_sums total = {0};
    for (int32_t k = 0; k < chunk->piece_count; k++) {
        const rw_scr_sums* part = &scr->sums[chunk->piece_first + k];
        total.force = rw_vec3_add(total.force, part->force);
        total.force_work += part->force_work;
        total.mass += part->mass;
        total.momentum = rw_vec3_add(total.momentum, part->momentum);
        total.kinetic += part->kinetic;
        total.change += part->change;
        total.held_velocity = rw_vec3_add(total.held_velocity, part->held_velocity);
        total.held_count += part->held_count;
    }
    rw_vec3 v = rw_vec3_zero();
    if (total.held_count > 0)
        v = rw_vec3_scale(total.held_velocity, 1.0 / total.held_count);
    else if (total.mass > 0.0)
        v = rw_vec3_scale(total.momentum, 1.0 / total.mass);
    double kinetic = 0.5 * total.kinetic - rw_vec3_dot(v, total.momentum) +
                     0.5 * total.mass * rw_vec3_norm_sq(v);
    double created = scr->step->h * rw_vec3_dot(total.force, v) - total.force_work;
    double excess = created - 0.5 * total.change;
    chunk->reference = v;
    chunk->keep = 1.0;
    if (excess > 1e-12 * kinetic)
        chunk->keep = excess < kinetic ? sqrt(1.0 - excess / kinetic) : 0.0;
}

static void settle_piece(void* context, int32_t index) {
    rw_scr* scr = context;
    const rw_step* step = scr->step;
    const rw_scr_piece* piece = &scr->pieces[index];
    const rw_scr_chunk* chunk = &scr->chunks[piece->chunk];
    for (int32_t k = piece->node_first; k < piece->node_end; k++) {
        int64_t i = scr->node_order[k];
        rw_vec3 v = rw_scr_data_vec3(step->to->node_velocity, i);
        if (chunk->keep < 1.0 && !scr->node_held[i]) {
            rw_vec3 relative = rw_vec3_sub(v, chunk->reference);
            v = rw_vec3_add_scaled(chunk->reference, chunk->keep, relative);
            rw_vec3_store(step->to->node_velocity + 3 * i, v);
        }
        rw_vec3 dv = rw_vec3_sub(v, rw_scr_data_vec3(step->from->node_velocity, i));
        rw_vec3_store(scr->memory.node_acceleration + 3 * i, rw_vec3_scale(dv, 1.0 / step->h));
    }
}

static rw_status raise_fault(const rw_scr* scr, const rw_scr_rod* rod, int32_t row, bool position) {
    rw_fault* fault = scr->step->fault;
    const rw_rod* source = &scr->model->rods.items[rod - scr->rods];
    if (fault == NULL)
        return RW_STATUS_FAULTED;
    fault->raised = true;
    snprintf(fault->object, sizeof fault->object, "rod/%s", source->desc.name);
    snprintf(fault->stage, sizeof fault->stage, "scr %s sweep",
             position ? "position" : "orientation");
    snprintf(fault->text, sizeof fault->text, "%s %d is not finite", position ? "node" : "segment",
             (int)(row - (position ? rod->node_first : rod->segment_first)));
    return RW_STATUS_FAULTED;
}

static rw_status check_finite(const rw_scr* scr) {
    for (int32_t k = 0; k < scr->piece_count; k++) {
        const rw_scr_sums* sums = &scr->sums[k];
        const rw_scr_rod* rod = &scr->rods[scr->chunks[scr->pieces[k].chunk].rod];
        if (sums->bad_position >= 0)
            return raise_fault(scr, rod, sums->bad_position, true);
        if (sums->bad_rotation >= 0)
            return raise_fault(scr, rod, sums->bad_rotation, false);
    }
    return RW_STATUS_OK;
}

rw_status rw_scr_sweep_end(rw_scr* scr, rw_step* step) {
    scr->step = step;
    rw_scr_attach_follow(scr, step);
    for (int32_t r = 0; r < scr->rod_count; r++)
        scr->rods[r].run = 1; // measured once more
    scr->ending = true;
    rw_parallel_for(step->parallel, scr->piece_count, end_piece, scr);
    scr->ending = false;
    RW_TRY(check_finite(scr));
    for (int32_t c = 0; c < scr->chunk_count; c++) {
        scr->chunks[c].keep = 1.0;
        if (scr->model->solver.scr.initial_guess_adaptive)
            settle(scr, &scr->chunks[c]);
    }
    rw_parallel_for(step->parallel, scr->piece_count, settle_piece, scr);
    measure_rods(scr);
    for (int32_t r = 0; r < scr->rod_count; r++)
        scr->memory.rod_residual[r] = scr->rods[r].residual;
    for (int32_t i = 0; i < scr->attachment_count; i++) {
        rw_vec3 force, torque;
        rw_scr_attach_wrench(scr, step, i, &force, &torque);
        rw_vec3_store(scr->memory.attachment_wrench + 6 * (int64_t)i, force);
        rw_vec3_store(scr->memory.attachment_wrench + 6 * (int64_t)i + 3, torque);
    }
    return RW_STATUS_OK;
}
