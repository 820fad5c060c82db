#include "solvers/scr/scr_block.h"

#include "solvers/math/small_spd.h"
#include "solvers/scr/scr_sweep.h"

// Longest step of a node, in its own rest length: the Newton step knows nothing of large turns.
static const double longest = 0.1;

// Stiffness of a segment's frame against turning about an axis across it.
static double turn_stiffness(const rw_scr* scr, int32_t s, int32_t node, rw_vec3 p, rw_vec3 dx,
                             rw_quat b, rw_quat q) {
    double bend = rw_quat_dot(b, q), factor = scr->rods[scr->segment_rod[s]].stretch_factor;
    for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
        int32_t n = scr->link_bend[k] / 2;
        if (scr->bend_node[n] == node)
            bend += factor * scr->bend_stiffness[n]; // with damping, as in b
    }
    return rw_vec3_dot(p, dx) + 0.25 * bend;
}

// Adds one segment to the Newton system (h, f) of its node. `arm` is the other end minus the node.
static void add_segment(const rw_scr* scr, const double* rotation, int32_t code, rw_vec3 arm,
                        rw_mat3* h, rw_vec3* f) {
    int32_t s = code >> 1;
    bool is_tail = (code & 1) != 0;
    double sign = is_tail ? -1.0 : 1.0, kappa = scr->kappa[s], across = kappa;
    rw_vec3 p = rw_scr_data_vec3(scr->pull, s);
    *f = rw_vec3_add(*f, rw_vec3_add_scaled(rw_vec3_scale(arm, kappa), sign, p));
    double p2 = rw_vec3_norm_sq(p);
    if ((scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) == 0) {
        rw_vec3 dx = rw_vec3_scale(arm, -sign);
        rw_quat q = rw_scr_data_quat(rotation, s);
        double scale;
        rw_quat b = rw_scr_sweep_pull(scr, rotation, s, &scale);
        int32_t node = is_tail ? scr->tail[s] : scr->head[s];
        double turn = turn_stiffness(scr, s, node, p, dx, b, q);
        if (turn > 0.0) {
            // The torque that is left turns the frame, which pulls the node.
            rw_vec3 r = rw_vec3_scale(rw_quat_vector(rw_quat_mul(b, rw_quat_conj(q))), 0.5);
            r = rw_vec3_add(r, rw_vec3_cross(p, dx));
            *f = rw_vec3_add_scaled(*f, sign / turn, rw_vec3_cross(r, p));
            across = kappa - p2 / turn;
            across = across > 0.0 ? across : 0.0; // compression would soften it further
        }
    }
    double along = p2 > 0.0 ? (kappa - across) / p2 : 0.0;
    rw_mat3 outer = rw_mat3_scale(rw_mat3_outer(p, p), along);
    *h = rw_mat3_add(*h, rw_mat3_add(outer, rw_mat3_diagonal(across, across, across)));
}

void rw_scr_block_sweep(const rw_scr* scr, double* position, double* rotation, const int32_t* order,
                        int32_t count, double omega, bool exact, bool damped) {
    for (int32_t n = 0; n < count; n++) {
        int32_t i = order[n], first = scr->incident_first[i], end = scr->incident_first[i + 1];
        rw_vec3 x = rw_scr_data_vec3(position, i), step;
        double a = scr->inertia[i];
        rw_vec3 f = rw_vec3_scale(rw_vec3_sub(rw_scr_data_vec3(scr->goal, i), x), a);
        rw_mat3 h = rw_mat3_diagonal(a, a, a);
        for (int32_t k = first; k < end; k++) {
            rw_vec3 other = rw_scr_data_vec3(position, scr->incident_other[k]);
            add_segment(scr, rotation, scr->incident_code[k], rw_vec3_sub(other, x), &h, &f);
        }
        if (rw_small_spd_solve3(&h, f, &step) != 0)
            step = f; // not a number (A > 0): it must come out, not be guarded away
        double size = omega * rw_vec3_norm(step), most = longest * scr->length[i];
        step = rw_vec3_scale(step, size > most ? omega * most / size : omega);
        rw_vec3_store(position + 3 * (int64_t)i, rw_vec3_add(x, step));
        for (int32_t k = first; k < end; k++) {
            int32_t s = scr->incident_code[k] >> 1;
            if ((scr->segment_flags[s] & RW_SCR_SEGMENT_HELD) == 0)
                rw_scr_sweep_orientations(scr, position, rotation, &s, 1, 1.0, exact, damped);
        }
    }
}
