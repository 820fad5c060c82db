// The matrix and the force balance of a rod at its trial: inertia and drags of nodes, strains of
// elements.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/math/simd.h"
#include "solvers/xpbd/fe_rods_private.h"

#define STRIDE RW_ROD_ELEMENT_STRIDE

// ---- Nodes -------------------------------------------------------------------------------------

// The rotation vector of node i from a reference rotation, to the accuracy of its square.
static rw_vec3 small_turn(const double* reference, const double* rotation) {
    rw_quat d = rw_quat_conj_mul(rw_quat_load(reference), rw_quat_load(rotation));
    return rw_vec3_scale(rw_quat_vector(d), d.w < 0 ? -2 : 2);
}

// Drag coefficient of a node [kg/s], the quadratic part at the speed of the start.
static double node_drag(const rw_fe_rods* self, const rw_fe_rod* rod, int64_t i) {
    double coefficient = rod->drag;
    if (rod->quadratic_drag > 0) {
        rw_vec3 v = rw_vec3_sub(rw_vec3_load(&self->step->from->node_velocity[3 * i]),
                                rw_vec3_load(self->step->drive_to->wind));
        coefficient += rod->quadratic_drag * rw_vec3_norm(v);
    }
    return coefficient * self->share[i];
}

// Inertia, mass damping and drag of a node: minus the residual, and the diagonal of the matrix.
void rw_fe_rods_private_node_terms(const rw_fe_rods* self, const rw_fe_rod* rod, int64_t i,
                                   double right[6], double diagonal[6]) {
    const rw_step* step = self->step;
    double h = step->h, c = rod->mass_damping;
    double mass = self->mass[i], drag = node_drag(self, rod, i);
    rw_vec3 x = rw_vec3_load(&step->to->node_position[3 * i]);
    rw_vec3 v =
        rw_vec3_scale(rw_vec3_sub(x, rw_vec3_load(&step->from->node_position[3 * i])), 1 / h);
    rw_vec3 off = rw_vec3_sub(x, rw_vec3_load(&self->prediction[3 * i]));
    rw_vec3 wind = rw_vec3_sub(v, rw_vec3_load(step->drive_to->wind));
    rw_vec3 f = rw_vec3_scale(off, -mass / (h * h));
    f = rw_vec3_add_scaled(f, -mass * c, v);
    f = rw_vec3_add_scaled(f, -drag, wind);
    rw_vec3_store(right, f);

    rw_vec3 turn = small_turn(&self->turn[4 * i], &step->to->frame_rotation[4 * i]);
    rw_vec3 moved =
        small_turn(&step->from->frame_rotation[4 * i], &step->to->frame_rotation[4 * i]);
    rw_vec3 t = rw_vec3_add_scaled(rw_vec3_scale(turn, -1 / (h * h)), -c / h, moved);
    rw_vec3 inertia = rw_vec3_load(&self->inertia[3 * i]);
    // Moments enter here, not in the prediction: h^2 torque / inertia of a light node may be many
    // turns, which no rotation can tell.
    rw_quat q = rw_quat_load(&step->to->frame_rotation[4 * i]);
    rw_vec3 torque = rw_quat_inverse_rotate(q, rw_vec3_load(&step->node_torque[3 * i]));
    rw_vec3_store(right + 3, rw_vec3_add(rw_vec3_mul(inertia, t), torque));
    for (int k = 0; k < 3; k++) {
        diagonal[k] = mass * (1 / (h * h) + c / h) + drag / h;
        diagonal[k + 3] = self->inertia[3 * i + k] * (1 / (h * h) + c / h);
    }
}

// ---- Elements ----------------------------------------------------------------------------------

// Stresses (times weight) of a point, K (e - e*) + b K (e - e_start)/h, and the factors of its
// tangent, K (1 + b/h) times weight.
typedef struct point_law {
    double stress[6], tangent[6];
} point_law;

static point_law apply_law(const rw_fe_rod* rod, const rw_fe_point* point,
                           const rw_rod_element_strain* strain, double h) {
    double e[6];
    rw_fe_rods_private_store_strain(strain, e);
    point_law law;
    double rate = rod->damping / h;
    for (int i = 0; i < 6; i++) {
        double k = point->stiffness[i] * point->weight;
        law.stress[i] = k * (e[i] - point->rest[i]);
        if (rate > 0) {
            law.stress[i] += k * rate * (e[i] - point->start[i]);
        }
        law.tangent[i] = k * (1 + rate);
    }
    return law;
}

// Force on each node of an element, and the lower triangle of its stiffness.
typedef struct element_sum {
    double force[STRIDE];
    double stiffness[6 * RW_ROD_ELEMENT_NODES][STRIDE];
} element_sum;

// force -= B' stress
RW_SIMD_KERNEL void add_force(const rw_rod_element_gradient* b, const point_law* law, int columns,
                              double* force) {
    for (int j = 0; j < columns; j += 4) {
        rw_simd_four sum = *(const rw_simd_four*)&force[j];
        for (int r = 0; r < 6; r++) {
            sum -= law->stress[r] * *(const rw_simd_four*)&b->row[r][j];
        }
        *(rw_simd_four*)&force[j] = sum;
    }
}

// The string stiffness of tension: it resists what turns the tangent (numerics, seed 000 note 19).
// Entry (6 i + r, 6 j + c) is slope_i slope_j across[r][c].
typedef struct string_law {
    bool is_tense;
    rw_mat3 across;
    double slope[3][STRIDE]; // of node j at column 6 j + c of row c, 0 elsewhere
} string_law;

RW_SIMD_KERNEL void make_string(const rw_rod_element_strain* strain,
                                const rw_rod_element_basis* basis, double length,
                                const point_law* law, int node_count, string_law* string) {
    double tension = rw_vec3_dot(rw_vec3_load(law->stress), strain->v);
    string->is_tense = tension > 0;
    if (!string->is_tense) {
        return;
    }
    double stretch_sq = rw_vec3_norm_sq(strain->v), scale = tension / stretch_sq;
    rw_vec3 tangent = rw_mat3_apply(&strain->rotation, strain->v);
    const double t[3] = {tangent.x, tangent.y, tangent.z};
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            string->across.m[r][c] = (r == c ? scale : 0) - scale / stretch_sq * t[r] * t[c];
        }
        for (int j = 0; j < STRIDE; j += 4) {
            *(rw_simd_four*)&string->slope[r][j] = (rw_simd_four){0, 0, 0, 0};
        }
        for (int j = 0; j < node_count; j++) {
            string->slope[r][6 * j + r] = basis->slope[j] / length;
        }
    }
}

// out[0 .. last] += the sum of `factors` times the rows of b, in their order; up to three doubles
// more, which nobody reads.
RW_SIMD_KERNEL void add_three(double* out, int last, double f0, double f1, double f2,
                              const double (*rows)[STRIDE]) {
    for (int j = 0; j <= last; j += 4) {
        *(rw_simd_four*)&out[j] += f0 * *(const rw_simd_four*)&rows[0][j] +
                                   f1 * *(const rw_simd_four*)&rows[1][j] +
                                   f2 * *(const rw_simd_four*)&rows[2][j];
    }
}

// stiffness += B' K B and the string's, row by row up to the diagonal. Position columns have no
// curvature rows.
RW_SIMD_KERNEL void add_stiffness(const rw_rod_element_gradient* b, const point_law* law,
                                  const string_law* string, int columns, element_sum* sum) {
    for (int node = 0; node < columns; node += 6) {
        for (int k = 0; k < 6; k++) {
            int i = node + k;
            add_three(sum->stiffness[i], i, law->tangent[0] * b->row[0][i],
                      law->tangent[1] * b->row[1][i], law->tangent[2] * b->row[2][i], b->row);
            if (k >= 3) {
                add_three(sum->stiffness[i], i, law->tangent[3] * b->row[3][i],
                          law->tangent[4] * b->row[4][i], law->tangent[5] * b->row[5][i],
                          b->row + 3);
            } else if (string->is_tense) {
                double slope = string->slope[0][node];
                const double* across = string->across.m[k];
                add_three(sum->stiffness[i], i, slope * across[0], slope * across[1],
                          slope * across[2], string->slope);
            }
        }
    }
}

// Adds the element's sums to the rod's right-hand side and band, whose rows run with the columns.
RW_SIMD_KERNEL void add_element(const element_sum* sum, int columns, int half_band, double* band,
                                double* right) {
    for (int i = 0; i < columns; i++) {
        double* row = &band[(int64_t)i * (half_band + 1) + half_band - i];
        const double* from = sum->stiffness[i];
        int j = 0;
        for (; j + 4 <= i + 1; j += 4) {
            *(rw_simd_four*)&row[j] += *(const rw_simd_four*)&from[j];
        }
        for (; j <= i; j++) {
            row[j] += from[j];
        }
        right[i] += sum->force[i];
    }
}

RW_SIMD_KERNEL void sum_element(const rw_fe_rods* self, rw_fe_rod* rod, int32_t e,
                                const rw_rod_element_frame* frame, element_sum* sum) {
    int nodes = rod->rule.node_count, columns = 6 * nodes;
    const rw_simd_four zero = {0, 0, 0, 0};
    for (int j = 0; j < columns; j += 4) {
        *(rw_simd_four*)&sum->force[j] = zero;
    }
    for (int i = 0; i < columns; i++) {
        for (int j = 0; j <= i; j += 4) {
            *(rw_simd_four*)&sum->stiffness[i][j] = zero;
        }
    }
    for (int k = 0; k < rod->rule.point_count; k++) {
        const rw_fe_point* point =
            &self->points[rod->point_first + (int64_t)e * rod->rule.point_count + k];
        rw_rod_element_strain strain;
        rw_rod_element_gradient gradient;
        rw_fe_rods_private_strain(self, rod, frame, e, k, &strain, &gradient);
        point_law law = apply_law(rod, point, &strain, self->step->h);
        double size = rw_vec3_norm(rw_vec3_load(law.stress)) +
                      rw_vec3_norm(rw_vec3_load(law.stress + 3)) / point->length;
        rod->stress = fmax(rod->stress, size / point->weight);
        add_force(&gradient, &law, columns, sum->force);
        string_law string;
        make_string(&strain, &rod->rule.at[k], point->length, &law, nodes, &string);
        add_stiffness(&gradient, &law, &string, columns, sum);
    }
}

RW_SIMD_KERNEL void assemble_elements(rw_fe_rods* self, rw_fe_rod* rod) {
    element_sum sum;
    for (int32_t e = 0; e < rod->element_count; e++) {
        rw_rod_element_frame frame;
        rw_fe_rods_private_frame(rod, self->step->to, e, &frame);
        if (!(frame.angle_max <= RW_ROD_ELEMENT_ANGLE_MAX)) {
            rw_fe_rods_private_fault(
                rod, "an element turns by more than 0.9 pi [rad]:", frame.angle_max);
            return;
        }
        int64_t row = 6 * (int64_t)e * rod->rule.order;
        sum_element(self, rod, e, &frame, &sum);
        add_element(&sum, 6 * rod->rule.node_count, rod->half_band,
                    &self->band[rod->band_first + row * (rod->half_band + 1)],
                    &self->right[6 * (int64_t)rod->node_first + row]);
    }
}

static void assemble_plain(rw_fe_rods* self, rw_fe_rod* rod) {
    assemble_elements(self, rod);
}

RW_SIMD_AVX2 static void assemble_avx2(rw_fe_rods* self, rw_fe_rod* rod) {
    assemble_elements(self, rod);
}

void rw_fe_rods_private_fault(rw_fe_rod* rod, const char* what, double value) {
    rod->status = RW_STATUS_FAULTED;
    snprintf(rod->fault, sizeof rod->fault, "%s %g", what, value);
}

void rw_fe_rods_private_assemble(rw_fe_rods* self, rw_fe_rod* rod) {
    double* band = &self->band[rod->band_first];
    double* right = &self->right[6 * (int64_t)rod->node_first];
    int width = rod->half_band + 1;
    memset(band, 0, (size_t)(6 * (int64_t)rod->node_count * width) * sizeof *band);
    rod->stress = 0;
    for (int32_t n = 0; n < rod->node_count; n++) {
        double diagonal[6];
        rw_fe_rods_private_node_terms(self, rod, rod->node_first + n, &right[6 * n], diagonal);
        for (int k = 0; k < 6; k++) {
            band[(6 * (int64_t)n + k) * width + rod->half_band] = diagonal[k];
        }
    }
    if (rw_simd_has_avx2()) {
        assemble_avx2(self, rod);
    } else {
        assemble_plain(self, rod);
    }
}

void rw_fe_rods_private_element_force(const rw_fe_rods* self, const rw_fe_rod* rod, int32_t element,
                                      double* force) {
    rw_rod_element_frame frame;
    rw_fe_rods_private_frame(rod, self->step->to, element, &frame);
    memset(force, 0, STRIDE * sizeof *force);
    for (int k = 0; k < rod->rule.point_count; k++) {
        rw_rod_element_strain strain;
        rw_rod_element_gradient gradient;
        rw_fe_rods_private_strain(self, rod, &frame, element, k, &strain, &gradient);
        point_law law = apply_law(
            rod, &self->points[rod->point_first + (int64_t)element * rod->rule.point_count + k],
            &strain, self->step->h);
        add_force(&gradient, &law, 6 * rod->rule.node_count, force);
    }
}
