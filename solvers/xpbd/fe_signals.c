// What clients read of finite-element rods.
#include <math.h>
#include <string.h>

#include "solvers/math/so3.h"
#include "solvers/xpbd/fe_rods_private.h"

typedef struct point_value {
    double strain[6]; // e - e*
    const rw_fe_point* point;
    rw_rod_element_strain raw;
} point_value;

static point_value value_at(const rw_fe_rods* self, const rw_fe_rod* rod,
                            const rw_rod_element_frame* frame, int32_t element, int k) {
    point_value value;
    value.point = &self->points[rod->point_first + (int64_t)element * rod->rule.point_count + k];
    rw_fe_rods_private_strain(self, rod, frame, element, k, &value.raw, NULL);
    rw_vec3_store(value.strain, value.raw.v);
    rw_vec3_store(value.strain + 3, value.raw.u);
    for (int i = 0; i < 6; i++) {
        value.strain[i] -= value.point->rest[i];
    }
    return value;
}

double rw_fe_rods_elastic_energy(const rw_fe_rods* self, const rw_state* state, int32_t index) {
    const rw_fe_rod* rod = &self->rods[index];
    double sum = 0;
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, state, e, &frame);
        for (int k = 0; k < rod->rule.point_count; k++) {
            point_value value = value_at(self, rod, &frame, e, k);
            for (int i = 0; i < 6; i++) {
                sum += 0.5 * value.point->weight * value.point->stiffness[i] * value.strain[i] *
                       value.strain[i];
            }
        }
    }
    return sum;
}

void rw_fe_rods_energy(const rw_fe_rods* self, const rw_state* state, rw_energy* energy) {
    *energy = (rw_energy){0};
    for (int32_t r = 0; r < self->rod_count; r++) {
        energy->elastic += rw_fe_rods_elastic_energy(self, state, r);
    }
    // Translation is counted by the world from node_mass; here the nodes' spin.
    for (int64_t i = 0; i < 3 * (int64_t)self->model->rods.node_count; i++) {
        double w = state->frame_angular_velocity[i];
        energy->kinetic += 0.5 * self->inertia[i] * w * w;
    }
}

double rw_fe_rods_length(const rw_fe_rods* self, const rw_state* state, int32_t index) {
    const rw_fe_rod* rod = &self->rods[index];
    double sum = 0;
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, state, e, &frame);
        for (int k = 0; k < rod->rule.point_count; k++) {
            point_value value = value_at(self, rod, &frame, e, k);
            sum += value.point->weight * rw_vec3_norm(value.raw.v);
        }
    }
    return sum;
}

double rw_fe_rods_max_strain(const rw_fe_rods* self, const rw_state* state, int32_t index) {
    const rw_fe_rod* rod = &self->rods[index];
    double largest = 0;
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, state, e, &frame);
        for (int k = 0; k < rod->rule.point_count; k++) {
            point_value value = value_at(self, rod, &frame, e, k);
            double size = rw_vec3_norm(rw_vec3_load(value.strain));
            largest = size > largest ? size : largest;
        }
    }
    return largest;
}

double rw_fe_rods_residual(const rw_fe_rods* self, int32_t rod) {
    return self->rods[rod].residual;
}

int64_t rw_fe_rods_frame_first(const rw_fe_rods* self, int32_t rod) {
    return self->model->rods.items[rod].frame_first;
}

double rw_fe_rods_node_mass(const rw_fe_rods* self, int32_t node) {
    return self->mass[node];
}

void rw_fe_rods_attachment_wrench(const rw_fe_rods* self, int32_t attachment, double wrench[6]) {
    memcpy(wrench, &self->attachment_wrench[6 * attachment], 6 * sizeof *wrench);
}

// Mean over the element of the elastic force and moment, material frame.
void rw_fe_rods_element_wrench(const rw_fe_rods* self, const rw_state* state, int32_t index,
                               int32_t element, double wrench[6]) {
    const rw_fe_rod* rod = &self->rods[index];
    rw_rod_element_frame frame;
    rw_fe_rods_private_frame(rod, state, element, &frame);
    memset(wrench, 0, 6 * sizeof *wrench);
    double length = self->lengths[rod->length_first + element];
    for (int k = 0; k < rod->rule.point_count; k++) {
        point_value value = value_at(self, rod, &frame, element, k);
        for (int i = 0; i < 6; i++) {
            wrench[i] += value.point->weight / length * value.point->stiffness[i] * value.strain[i];
        }
    }
}

void rw_fe_rods_at(const rw_fe_rods* self, const rw_state* state, int32_t index, double s,
                   double position[3], double rotation[4]) {
    const rw_fe_rod* rod = &self->rods[index];
    const double* lengths = &self->lengths[rod->length_first];
    double total = 0, before = 0;
    for (int32_t e = 0; e < rod->element_count; e++) {
        total += lengths[e];
    }
    int32_t element = 0;
    while (element < rod->element_count - 1 && before + lengths[element] < s * total) {
        before += lengths[element++];
    }
    double xi = (s * total - before) / lengths[element];
    xi = xi < 0 ? 0 : xi > 1 ? 1 : xi;
    rw_rod_element_frame frame;
    rw_fe_rods_private_frame(rod, state, element, &frame);
    rw_vec3 at = rw_vec3_zero(), turn = rw_vec3_zero();
    int order = rod->rule.order;
    for (int j = 0; j <= order; j++) {
        double value = 1;
        for (int k = 0; k <= order; k++) {
            value *= k == j ? 1 : (xi * order - k) / (j - k);
        }
        at = rw_vec3_add_scaled(at, value, frame.position[j]);
        turn = rw_vec3_add_scaled(turn, value, frame.theta[j]);
    }
    rw_vec3_store(position, at);
    rw_quat_store(rotation, rw_so3_boxplus(frame.first, turn));
}

void rw_fe_rods_angular_momentum(const rw_fe_rods* self, const rw_state* state, int32_t index,
                                 double momentum[3]) {
    const rw_fe_rod* rod = &self->rods[index];
    rw_vec3 sum = rw_vec3_zero();
    for (int32_t n = 0; n < rod->node_count; n++) {
        int64_t i = rod->node_first + n;
        rw_vec3 spin = rw_vec3_mul(rw_vec3_load(&self->inertia[3 * i]),
                                   rw_vec3_load(&state->frame_angular_velocity[3 * i]));
        sum = rw_vec3_add(sum, rw_quat_rotate(rw_quat_load(&state->frame_rotation[4 * i]), spin));
    }
    rw_vec3_store(momentum, sum);
}
