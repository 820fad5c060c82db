// Attachments: the frames that bodies and the world hold, what they do to nodes and segments, the
// wrench they exert and its stiffness for a dynamic body's own block of the sweep.
#include <string.h>

#include "solvers/math/so3.h"
#include "solvers/scr/scr_attach.h"
#include "solvers/scr/scr_sweep.h"

void rw_scr_attach_frame(const rw_scr* scr, const rw_state* state, int32_t attachment,
                         const double target[7], rw_vec3* position, rw_quat* frame) {
    int32_t body = scr->attachments[attachment].body;
    rw_vec3 p = rw_vec3_load(target);
    rw_quat q = rw_quat_load(target + 3);
    if (body >= 0) {
        // The state keeps the centre of mass; the target is given in the body's frame.
        rw_quat turn = rw_scr_data_quat(state->body_rotation, body);
        rw_vec3 center = rw_scr_data_vec3(scr->model->bodies.center_of_mass, body);
        p = rw_vec3_add(rw_scr_data_vec3(state->body_position, body),
                        rw_quat_rotate(turn, rw_vec3_sub(p, center)));
        q = rw_quat_mul(turn, q);
    }
    *position = p;
    *frame = rw_quat_normalize(q);
}

// Kelvin-Voigt at a half element: its relative rotation at the start of the step joins the rest.
static void begin_clamps(rw_scr* scr, rw_step* step, int32_t index, const double held[7]) {
    rw_scr_attachment* a = &scr->attachments[index];
    const rw_scr_rod* rod = &scr->rods[a->rod];
    if (!rod->damped)
        return;
    rw_vec3 position;
    rw_quat frame;
    rw_scr_attach_frame(scr, step->from, index, held, &position, &frame);
    for (int32_t k = a->clamp_first; k < a->clamp_first + a->clamp_count; k++) {
        rw_scr_clamp* clamp = &scr->clamps[k];
        rw_quat p =
            rw_quat_conj_mul(frame, rw_scr_data_quat(step->from->frame_rotation, clamp->segment));
        double rate = rod->stretch_factor - 1.0;
        rate = rw_quat_dot(p, clamp->rest) < 0.0 ? -rate : rate;
        rw_quat sum = rw_quat_add(clamp->rest, rw_quat_scale(p, rate));
        clamp->target = rw_quat_scale(sum, clamp->stiffness);
    }
}

void rw_scr_attach_begin(rw_scr* scr, rw_step* step) {
    for (int32_t i = 0; i < scr->attachment_count; i++) {
        double* held = scr->memory.attachment_target + 7 * (int64_t)i;
        begin_clamps(scr, step, i, held); // with the target at the start of the step
        const rw_frame* target = step->drive_to != NULL && step->drive_to->attachment_target != NULL
                                     ? &step->drive_to->attachment_target[i]
                                     : &scr->model->attachments.items[i].target;
        memcpy(held, target->position, 3 * sizeof(double));
        memcpy(held + 3, target->rotation, 4 * sizeof(double));
    }
}

// `bodies` is the state whose body poses hold.
static void update(rw_scr* scr, rw_step* step, const rw_state* bodies, int32_t index) {
    rw_scr_attachment* a = &scr->attachments[index];
    rw_vec3 position;
    rw_scr_attach_frame(scr, bodies, index, scr->memory.attachment_target + 7 * (int64_t)index,
                        &position, &a->frame);
    if (a->holds_node)
        rw_vec3_store(step->to->node_position + 3 * (int64_t)a->node, position);
    if (a->body >= 0)
        a->arm = rw_vec3_sub(rw_scr_data_vec3(step->to->node_position, a->node),
                             rw_scr_data_vec3(bodies->body_position, a->body));
    if (a->held_segment >= 0) {
        int64_t s = a->held_segment;
        rw_quat q = rw_quat_normalize(rw_quat_mul(a->frame, a->segment_in_node));
        if (rw_quat_dot(q, rw_scr_data_quat(step->from->frame_rotation, s)) < 0.0)
            q = rw_quat_neg(q);
        rw_quat_store(step->to->frame_rotation + 4 * s, q);
        rw_scr_sweep_store_pull(scr, (int32_t)s, q);
    }
    for (int32_t k = a->clamp_first; k < a->clamp_first + a->clamp_count; k++)
        scr->clamps[k].pull = rw_quat_mul(a->frame, scr->clamps[k].target);
}

void rw_scr_attach_place(rw_scr* scr, rw_step* step) {
    for (int32_t i = 0; i < scr->attachment_count; i++)
        update(scr, step, scr->attachments[i].dynamic ? step->from : step->to, i);
}

void rw_scr_attach_follow(rw_scr* scr, rw_step* step) {
    for (int32_t i = 0; i < scr->attachment_count; i++)
        if (scr->attachments[i].dynamic)
            update(scr, step, step->to, i);
}

// Torque on a frame q whose energy falls along b: half the imaginary part of b q*.
static rw_vec3 torque_of(rw_quat b, rw_quat q) {
    return rw_vec3_scale(rw_quat_vector(rw_quat_mul(b, rw_quat_conj(q))), 0.5);
}

static rw_vec3 segment_vector(const rw_scr* scr, const rw_state* state, int32_t s) {
    return rw_vec3_sub(rw_scr_data_vec3(state->node_position, scr->head[s]),
                       rw_scr_data_vec3(state->node_position, scr->tail[s]));
}

void rw_scr_attach_wrench(const rw_scr* scr, const rw_step* step, int32_t attachment,
                          rw_vec3* force, rw_vec3* torque) {
    const rw_scr_attachment* a = &scr->attachments[attachment];
    *force = *torque = rw_vec3_zero();
    if (a->holds_node) {
        rw_vec3 rest = rw_scr_sweep_node_force(scr, step->to->node_position, a->node);
        *force = rw_vec3_neg(rest);
    }
    for (int32_t k = a->clamp_first; k < a->clamp_first + a->clamp_count; k++) {
        const rw_scr_clamp* clamp = &scr->clamps[k];
        rw_quat q = rw_scr_data_quat(step->to->frame_rotation, clamp->segment);
        rw_vec3 part = torque_of(clamp->pull, q);
        part = rw_quat_dot(clamp->pull, q) < 0.0 ? rw_vec3_neg(part) : part;
        *torque = rw_vec3_add(*torque, part);
    }
    if (a->held_segment >= 0) {
        int32_t s = a->held_segment;
        rw_quat q = rw_scr_data_quat(step->to->frame_rotation, s);
        double scale;
        rw_quat b = rw_scr_sweep_pull(scr, step->to->frame_rotation, s, &scale);
        rw_vec3 stretch =
            rw_vec3_cross(rw_scr_data_vec3(scr->pull, s), segment_vector(scr, step->to, s));
        *torque = rw_vec3_sub(*torque, rw_vec3_add(torque_of(b, q), stretch));
    }
}

// Adds k J'J for the translation stiffness k of a point at `arm`: J = (1, -[arm]).
static void add_point(double* lower, double k, rw_vec3 arm) {
    // Lower triangle by rows: (0,0) (1,0) (1,1) (2,0) ... row i starts at i (i + 1)/2.
    double a[3] = {arm.x, arm.y, arm.z};
    for (int i = 0; i < 3; i++)
        lower[i * (i + 1) / 2 + i] += k;
    // Rotation-translation block: [arm] (since (-[arm])' = [arm]), rows theta, columns x.
    lower[6 + 1] += -k * a[2];
    lower[6 + 2] += k * a[1];
    lower[10 + 0] += k * a[2];
    lower[10 + 2] += -k * a[0];
    lower[15 + 0] += -k * a[1];
    lower[15 + 1] += k * a[0];
    // Rotation block: |arm|^2 - arm arm'.
    double square = rw_vec3_norm_sq(arm);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++)
            lower[(i + 3) * (i + 4) / 2 + j + 3] += k * ((i == j ? square : 0.0) - a[i] * a[j]);
}

static void add_rotation(double* lower, double k) {
    for (int i = 3; i < 6; i++)
        lower[i * (i + 1) / 2 + i] += k;
}

// Positive semi-definite (Gauss-Newton) stiffness of what hangs on one attachment, the rest of the
// rod held: inertia and segments at the node, half elements, and a held segment's own terms.
static void add_stiffness(const rw_scr* scr, const rw_step* step, int32_t index, double* lower) {
    const rw_scr_attachment* a = &scr->attachments[index];
    const double* rotation = step->to->frame_rotation;
    if (a->holds_node) {
        add_point(lower, scr->inertia[a->node], a->arm);
        for (int32_t k = scr->incident_first[a->node]; k < scr->incident_first[a->node + 1]; k++) {
            int32_t s = scr->incident_code[k] / 2;
            // Held at both ends, two blocks may move at once: twice the stiffness bounds it.
            double twice = scr->node_held[scr->incident_other[k]] ? 2.0 : 1.0;
            rw_vec3 arm = a->arm;
            if (s == a->held_segment) {
                // d(dx/l - d3) = +-(dx - [arm] dtheta)/l + [d3] dtheta: as if the point were the
                // rod's other end, carried rigidly.
                rw_vec3 d3 = rw_quat_axis_z(rw_scr_data_quat(rotation, s));
                double sign = (scr->incident_code[k] & 1) != 0 ? 1.0 : -1.0;
                arm = rw_vec3_add_scaled(arm, sign * scr->rest_length[s], d3);
            }
            add_point(lower, twice * scr->kappa[s], arm);
        }
    }
    for (int32_t k = a->clamp_first; k < a->clamp_first + a->clamp_count; k++) {
        const rw_scr_clamp* clamp = &scr->clamps[k];
        double w = rw_quat_dot(clamp->pull, rw_scr_data_quat(rotation, clamp->segment));
        add_rotation(lower, 0.25 * (w < 0.0 ? -w : w));
    }
    if (a->held_segment >= 0) {
        int32_t s = a->held_segment;
        double scale;
        rw_quat b = rw_scr_sweep_pull(scr, rotation, s, &scale);
        double w = rw_quat_dot(b, rw_scr_data_quat(rotation, s));
        add_rotation(lower, 0.25 * (w < 0.0 ? 0.0 : w));
    }
}

// Carries a response from the pose at the start of the step, at which the nodes were held, to the
// trial: force - stiffness * increment. A Newton step on the body from there ends where one from the
// start would.
static void carry(const rw_step* step, int32_t body, rw_body_response* response) {
    rw_vec3 dx = rw_vec3_sub(rw_scr_data_vec3(step->to->body_position, body),
                             rw_scr_data_vec3(step->from->body_position, body));
    rw_quat turn = rw_quat_mul(rw_scr_data_quat(step->to->body_rotation, body),
                               rw_quat_conj(rw_scr_data_quat(step->from->body_rotation, body)));
    rw_vec3 theta = rw_so3_log(turn);
    double d[6] = {dx.x, dx.y, dx.z, theta.x, theta.y, theta.z}, change[6] = {0};
    for (int i = 0, k = 0; i < 6; i++) {
        for (int j = 0; j <= i; j++, k++) {
            change[i] += response->stiffness[k] * d[j];
            if (j < i)
                change[j] += response->stiffness[k] * d[i];
        }
    }
    for (int k = 0; k < 3; k++) {
        response->force[k] -= change[k];
        response->torque[k] -= change[k + 3];
    }
}

void rw_scr_attach_respond(rw_scr* scr, rw_step* step) {
    for (int32_t i = 0; i < scr->attachment_count; i++)
        if (scr->attachments[i].dynamic)
            step->responses[scr->attachments[i].body] = (rw_body_response){.active = true};
    for (int32_t i = 0; i < scr->attachment_count; i++) {
        const rw_scr_attachment* a = &scr->attachments[i];
        if (!a->dynamic)
            continue;
        rw_body_response* response = &step->responses[a->body];
        rw_vec3 force, torque;
        rw_scr_attach_wrench(scr, step, i, &force, &torque);
        torque = rw_vec3_add(torque, rw_vec3_cross(a->arm, force));
        double on_body[6] = {-force.x, -force.y, -force.z, -torque.x, -torque.y, -torque.z};
        for (int k = 0; k < 3; k++) {
            response->force[k] += on_body[k];
            response->torque[k] += on_body[k + 3];
        }
        add_stiffness(scr, step, i, response->stiffness);
    }
    if (scr->sweeps > 1)
        return;
    // Once per body, whatever number of attachments it has.
    for (int32_t b = 0; b < scr->model->bodies.count; b++)
        if (scr->body_coupled[b])
            carry(step, b, &step->responses[b]);
}
