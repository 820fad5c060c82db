// What clients see of a rod: energies, wrenches, places along it.
#include <math.h>
#include <string.h>

#include "solvers/math/so3.h"
#include "solvers/scr/scr_attach.h"
#include "solvers/scr/scr_signal.h"

static rw_vec3 segment_vector(const rw_scr* scr, const rw_state* state, int32_t s) {
    return rw_vec3_sub(rw_scr_data_vec3(state->node_position, scr->head[s]),
                       rw_scr_data_vec3(state->node_position, scr->tail[s]));
}

// dx/l - d3, world.
static rw_vec3 segment_strain(const rw_scr* scr, const rw_state* state, int32_t s) {
    rw_vec3 d3 = rw_quat_axis_z(rw_scr_data_quat(state->frame_rotation, s));
    rw_vec3 dx = segment_vector(scr, state, s);
    return rw_vec3_sub(rw_vec3_scale(dx, 1.0 / scr->rest_length[s]), d3);
}

// k/2 |p - phi q|^2 for unit quaternions; from the difference, which does not cancel near rest.
static double bend_energy(double k, rw_quat p, rw_quat q) {
    rw_quat d = rw_quat_dot(p, q) < 0.0 ? rw_quat_add(p, q) : rw_quat_sub(p, q);
    return 0.5 * k * rw_quat_norm_sq(d);
}

static rw_quat held_frame(const rw_scr* scr, const rw_state* state, int32_t attachment) {
    rw_vec3 position;
    rw_quat frame;
    rw_scr_attach_frame(scr, state, attachment,
                        scr->memory.attachment_target + 7 * (int64_t)attachment, &position, &frame);
    return frame;
}

double rw_scr_signal_rod_energy(void* self, const rw_state* state, int32_t rod_index) {
    const rw_scr* scr = self;
    const rw_scr_rod* rod = &scr->rods[rod_index];
    double sum = 0.0;
    for (int32_t s = rod->segment_first; s < rod->segment_first + rod->segment_count; s++) {
        rw_vec3 strain = segment_strain(scr, state, s);
        sum += 0.5 * scr->stretch[s] * scr->rest_length[s] * rw_vec3_norm_sq(strain);
        rw_quat q = rw_scr_data_quat(state->frame_rotation, s);
        for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
            int32_t n = scr->link_bend[k] / 2;
            if (scr->link_bend[k] % 2 == 0)
                continue; // counted from the bend's second segment
            rw_quat a = rw_scr_data_quat(state->frame_rotation, scr->link_other[k]);
            sum += bend_energy(scr->bend_stiffness[n], rw_quat_conj_mul(a, q),
                               rw_scr_data_quat(scr->bend_rest, n));
        }
        for (int32_t k = scr->clamp_of[s]; k >= 0; k = scr->clamps[k].next) {
            rw_quat frame = held_frame(scr, state, scr->clamps[k].attachment);
            sum += bend_energy(scr->clamps[k].stiffness, rw_quat_conj_mul(frame, q),
                               scr->clamps[k].rest);
        }
    }
    return sum;
}

void rw_scr_signal_energy(void* self, const rw_state* state, rw_energy* energy) {
    const rw_scr* scr = self;
    // Translation is counted by the world from node_mass; orientations have no inertia here.
    *energy = (rw_energy){0};
    for (int32_t r = 0; r < scr->rod_count; r++)
        energy->elastic += rw_scr_signal_rod_energy(self, state, r);
}

void rw_scr_signal_attachment_wrench(void* self, int32_t attachment, double wrench[6]) {
    const rw_scr* scr = self;
    memcpy(wrench, scr->memory.attachment_wrench + 6 * (int64_t)attachment, 6 * sizeof(double));
}

// Torque on frame q from an element of energy k/2 |frame* q - phi rest|^2, world.
static rw_vec3 bend_torque(double k, rw_quat frame, rw_quat rest, rw_quat q) {
    rw_quat b = rw_quat_mul(frame, rest);
    rw_vec3 torque = rw_quat_vector(rw_quat_mul(b, rw_quat_conj(q)));
    return rw_vec3_scale(torque, rw_quat_dot(b, q) < 0.0 ? -0.5 * k : 0.5 * k);
}

// Sum of the torques that bends and clamps at `node` exert on segment `s`; false when there is none.
static bool end_torque(const rw_scr* scr, const rw_state* state, int32_t s, int32_t node,
                       rw_vec3* sum) {
    rw_quat q = rw_scr_data_quat(state->frame_rotation, s);
    bool any = false;
    *sum = rw_vec3_zero();
    for (int32_t k = scr->link_first[s]; k < scr->link_first[s + 1]; k++) {
        int32_t n = scr->link_bend[k] / 2;
        if (scr->bend_node[n] != node || scr->bend_stiffness[n] == 0.0)
            continue;
        rw_quat rest = rw_scr_data_quat(scr->bend_rest, n);
        if (scr->link_bend[k] % 2 == 0)
            rest = rw_quat_conj(rest);
        rw_quat other = rw_scr_data_quat(state->frame_rotation, scr->link_other[k]);
        *sum = rw_vec3_add(*sum, bend_torque(scr->bend_stiffness[n], other, rest, q));
        any = true;
    }
    for (int32_t k = scr->clamp_of[s]; k >= 0; k = scr->clamps[k].next) {
        const rw_scr_clamp* clamp = &scr->clamps[k];
        if (scr->attachments[clamp->attachment].node != node)
            continue;
        rw_quat frame = held_frame(scr, state, clamp->attachment);
        *sum = rw_vec3_add(*sum, bend_torque(clamp->stiffness, frame, clamp->rest, q));
        any = true;
    }
    return any;
}

// Internal force and moment at the middle of a segment, what the further part exerts on the nearer
// one, in the material frame. The moment is between those at the two ends; an end without bend or
// clamp follows from the equilibrium of the massless segment. Viscous parts are left out.
void rw_scr_signal_element_wrench(void* self, const rw_state* state, int32_t rod, int32_t element,
                                  double wrench[6]) {
    const rw_scr* scr = self;
    int32_t s = scr->rods[rod].segment_first + element;
    rw_quat q = rw_scr_data_quat(state->frame_rotation, s);
    rw_vec3 force = rw_vec3_scale(segment_strain(scr, state, s), scr->stretch[s]);
    rw_vec3 at_tail, at_head;
    bool has_tail = end_torque(scr, state, s, scr->tail[s], &at_tail);
    bool has_head = end_torque(scr, state, s, scr->head[s], &at_head);
    at_tail = rw_vec3_neg(at_tail); // what the tail's side exerts is minus the internal moment
    rw_vec3 change = rw_vec3_cross(force, segment_vector(scr, state, s)); // M' = F x r'
    rw_vec3 moment = rw_vec3_zero();
    if (has_tail && has_head)
        moment = rw_vec3_scale(rw_vec3_add(at_tail, at_head), 0.5);
    else if (has_tail)
        moment = rw_vec3_add_scaled(at_tail, 0.5, change);
    else if (has_head)
        moment = rw_vec3_add_scaled(at_head, -0.5, change);
    rw_vec3_store(wrench, rw_quat_inverse_rotate(q, force));
    rw_vec3_store(wrench + 3, rw_quat_inverse_rotate(q, moment));
}

void rw_scr_signal_rod_at(void* self, const rw_state* state, int32_t rod_index, double s,
                          double position[3], double rotation[4]) {
    const rw_scr* scr = self;
    const rw_scr_rod* rod = &scr->rods[rod_index];
    if (rod->segment_count == 0) {
        memcpy(position, state->node_position + 3 * (int64_t)rod->node_first, 3 * sizeof(double));
        rw_quat_store(rotation, rw_quat_identity());
        return;
    }
    double arc = s * rod->arc[rod->segment_count];
    int32_t low = 0, high = rod->segment_count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (rod->arc[middle] <= arc)
            low = middle;
        else
            high = middle;
    }
    int32_t segment = rod->segment_first + low;
    double t = (arc - rod->arc[low]) / scr->rest_length[segment];
    rw_vec3 a = rw_scr_data_vec3(state->node_position, scr->tail[segment]);
    rw_vec3 b = rw_scr_data_vec3(state->node_position, scr->head[segment]);
    rw_vec3_store(position, rw_vec3_add(rw_vec3_scale(a, 1.0 - t), rw_vec3_scale(b, t)));
    memcpy(rotation, state->frame_rotation + 4 * (int64_t)segment, 4 * sizeof(double));
}

// Half of what the bend beside an end segment turns beyond its rest, as a rotation vector in the
// segment's axes: what the end's own half would turn if the curvature went on. Zero without a bend.
static rw_vec3 end_excess(const rw_scr* scr, const rw_state* state, int32_t s) {
    if (scr->link_first[s] == scr->link_first[s + 1])
        return rw_vec3_zero();
    int32_t k = scr->link_first[s], n = scr->link_bend[k] / 2, t = scr->link_other[k];
    rw_quat q = rw_scr_data_quat(state->frame_rotation, s);
    rw_quat p = rw_quat_conj_mul(q, rw_scr_data_quat(state->frame_rotation, t));
    rw_quat rest = rw_scr_data_quat(scr->bend_rest, n);
    if (scr->link_bend[k] % 2 != 0)
        rest = rw_quat_conj(rest); // seen from the bend's second segment
    double share = scr->rest_length[s] / (scr->rest_length[s] + scr->rest_length[t]);
    return rw_vec3_scale(rw_so3_log(rw_quat_mul(p, rw_quat_conj(rest))), share);
}

// A clamped node has the held frame. Others lie between their segments' frames, each carried to the
// node by its half of the rest rotation; at an end the curvature goes on. A graph's node has the
// frame of its first segment.
void rw_scr_signal_node_rotation(void* self, const rw_state* state, int32_t rod, int32_t node,
                                 double rotation[4]) {
    const rw_scr* scr = self;
    int32_t i = scr->rods[rod].node_first + node;
    int32_t first = scr->incident_first[i], end = scr->incident_first[i + 1];
    bool graph = scr->model->rods.items[rod].desc.geometry == RW_ROD_GRAPH;
    rw_quat sum = {0};
    for (int32_t k = first; k < end; k++) {
        int32_t s = scr->incident_code[k] / 2;
        for (int32_t c = scr->clamp_of[s]; c >= 0; c = scr->clamps[c].next) {
            int32_t attachment = scr->clamps[c].attachment;
            if (scr->attachments[attachment].node == i) {
                rw_quat_store(rotation, held_frame(scr, state, attachment));
                return;
            }
        }
        if (graph && k > first)
            continue;
        bool tail = (scr->incident_code[k] & 1) != 0;
        rw_quat rest = rw_scr_data_quat(tail ? scr->tail_rest : scr->head_rest, s);
        rw_quat q = rw_scr_data_quat(state->frame_rotation, s);
        if (!graph && end - first == 1) // p points away from the end: the excess goes backwards
            q = rw_quat_mul(q, rw_so3_exp(rw_vec3_neg(end_excess(scr, state, s))));
        q = rw_quat_mul(q, rw_quat_conj(rest));
        sum = rw_quat_dot(sum, q) < 0.0 ? rw_quat_sub(sum, q) : rw_quat_add(sum, q);
    }
    rw_quat_store(rotation, rw_quat_normalize(sum));
}

double rw_scr_signal_rod_length(void* self, const rw_state* state, int32_t rod_index) {
    const rw_scr* scr = self;
    const rw_scr_rod* rod = &scr->rods[rod_index];
    double sum = 0.0;
    for (int32_t s = rod->segment_first; s < rod->segment_first + rod->segment_count; s++)
        sum += rw_vec3_norm(segment_vector(scr, state, s));
    return sum;
}

double rw_scr_signal_rod_max_strain(void* self, const rw_state* state, int32_t rod_index) {
    const rw_scr* scr = self;
    const rw_scr_rod* rod = &scr->rods[rod_index];
    double most = 0.0;
    for (int32_t s = rod->segment_first; s < rod->segment_first + rod->segment_count; s++) {
        double size = rw_vec3_norm(segment_strain(scr, state, s));
        most = size > most ? size : most;
    }
    return most;
}

double rw_scr_signal_rod_residual(void* self, int32_t rod) {
    const rw_scr* scr = self;
    return scr->memory.rod_residual[rod];
}

double rw_scr_signal_node_mass(void* self, int32_t node) {
    const rw_scr* scr = self;
    return scr->mass[node];
}
