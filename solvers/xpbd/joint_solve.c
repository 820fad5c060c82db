// The joints' system at the trial: rows, active set, reactions, and its solution with the bodies.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/so3.h"
#include "solvers/math/trig.h"
#include "solvers/xpbd/joint_system_private.h"

#define ACTIVE_SET_ROUNDS 6
#define REDUNDANCY 1e-10 // regularisation of loops against the diagonal of J A^-1 J'
#define REFINEMENTS 2

// ---- Rows at the trial -------------------------------------------------------------------------

// Adds scale * row to the constraint's Jacobian, on the nodes of the row's two bodies.
static void put_row(rw_joint_system* self, const rw_joint_constraint* one, int32_t local,
                    const rw_joint_row* row, const rw_joint_geometry* joint, double scale) {
    for (int side = 0; side < 2; side++) {
        int32_t body = side == 0 ? joint->parent : joint->child;
        int32_t node = body < 0 ? -1 : self->body_node[body];
        for (int32_t k = 0; k < one->slot_count && node >= 0; k++) {
            if (self->slot_node[one->slot_first + k] != node) {
                continue;
            }
            double* jacobian = rw_kkt_jacobian(self->kkt, one->slot_first + k) + 6 * local;
            const double* values = side == 0 ? row->parent : row->child;
            for (int i = 0; i < 6; i++) {
                jacobian[i] += scale * values[i];
            }
        }
    }
}

// A row without effect: its multiplier comes out as 0.
static void put_nothing(rw_joint_system* self, int32_t index, int32_t local) {
    const rw_joint_constraint* one = &self->constraints[index];
    for (int32_t k = 0; k < one->slot_count; k++) {
        memset(rw_kkt_jacobian(self->kkt, one->slot_first + k) + 6 * local, 0, 6 * sizeof(double));
    }
    rw_kkt_epsilon(self->kkt, index)[local] = 1;
    self->right_row[one->row_first + local] = 0;
}

// Rows of a joint's rates lie together.
static const rw_joint_row* rate_row(const rw_joint_system* self, int32_t joint, int32_t rate) {
    return &self->rate_rows[self->model->joints.items[joint].rate_first + rate];
}

// How far the coordinates are from a reference, per rate: differences, and for SPHERICAL the
// rotation vector from it in the child's joint frame.
static void coordinate_difference(rw_joint_type type, const double* values, const double* from,
                                  int32_t rate_count, double* difference) {
    if (type == RW_JOINT_SPHERICAL) {
        rw_vec3_store(difference,
                      rw_so3_log(rw_quat_conj_mul(rw_quat_load(from), rw_quat_load(values))));
        return;
    }
    for (int32_t i = 0; i < rate_count; i++) {
        difference[i] = values[i] - from[i];
    }
}

static void put_structure(rw_joint_system* self, int32_t index) {
    const rw_joint_constraint* one = &self->constraints[index];
    const rw_joint_geometry* joint = &self->joints[one->joint];
    const rw_joint_frames* frames = &self->frames[one->joint];
    rw_joint_row rows[RW_JOINT_MAX_ROWS];
    double error[RW_JOINT_MAX_ROWS];
    rw_joint_geometry_error(joint, frames, error);
    rw_joint_geometry_jacobian(joint, frames, rows);
    double compliance = self->model->joints.items[one->joint].desc.compliance;
    for (int32_t r = 0; r < one->row_count; r++) {
        put_row(self, one, r, &rows[r], joint, 1);
        rw_kkt_epsilon(self->kkt, index)[r] = compliance;
        self->right_row[one->row_first + r] = -error[r];
    }
}

// Motor and damping rows: an effort law implicit in the coordinate (joint_system.h).
static void put_law(rw_joint_system* self, const rw_step* step, int32_t index,
                    const double* trial) {
    const rw_joint_constraint* one = &self->constraints[index];
    const rw_joint* record = &self->model->joints.items[one->joint];
    const rw_motor_desc* motor = &record->desc.motor;
    const double* start = &self->start[record->coordinate_first];
    const double* target = &step->drive_to->joint_target[record->coordinate_first];
    double moved[RW_JOINT_MAX_RATES], off[RW_JOINT_MAX_RATES] = {0};
    coordinate_difference(record->desc.type, trial, start, one->row_count, moved);
    bool is_motor = one->role == RW_JOINT_ROLE_MOTOR;
    double stiffness = is_motor && motor->mode == RW_MOTOR_POSITION ? motor->stiffness : 0;
    double damping = (is_motor ? motor->damping : record->desc.damping) / self->h;
    if (stiffness > 0) {
        coordinate_difference(record->desc.type, trial, target, one->row_count, off);
    }
    for (int32_t r = 0; r < one->row_count; r++) {
        int32_t row = one->row_first + r;
        if (stiffness + damping == 0 || self->row_state[row] == RW_JOINT_ROW_SATURATED) {
            put_nothing(self, index, r);
            continue;
        }
        double shift = is_motor && motor->mode == RW_MOTOR_VELOCITY ? self->h * target[r] : 0;
        put_row(self, one, r, rate_row(self, one->joint, r), &self->joints[one->joint], 1);
        rw_kkt_epsilon(self->kkt, index)[r] = 1 / (stiffness + damping);
        self->right_row[row] =
            -(stiffness * off[r] + damping * (moved[r] - shift)) / (stiffness + damping);
    }
}

// A one-sided coordinate: value, bounds and the row of its rate.
typedef struct limit {
    double value, lower, upper;
    rw_joint_row row;
} limit;

// Angle between the two z axes; the axis of its rate is undefined at 0 and pi (numerics, seed 000
// notes 2 and 8): there any axis across z serves.
static limit swing_limit(const rw_joint_frames* frames, double most) {
    rw_vec3 a = rw_mat3_column(&frames->parent_axes, 2);
    rw_vec3 b = rw_mat3_column(&frames->child_axes, 2);
    rw_vec3 cross = rw_vec3_cross(a, b);
    rw_vec3 n = rw_vec3_normalize_or(cross, rw_mat3_column(&frames->parent_axes, 0));
    limit one = {.value = rw_trig_atan2(rw_vec3_norm(cross), rw_vec3_dot(a, b)),
                 .lower = -(double)INFINITY,
                 .upper = most};
    one.row = (rw_joint_row){{0, 0, 0, -n.x, -n.y, -n.z}, {0, 0, 0, n.x, n.y, n.z}};
    return one;
}

// Twist 2 atan2(qz, qw) of the child in the parent; its rate in the child's joint axes is
// w_z + ((qw qx + qz qy) w_y + (qz qx - qw qy) w_x) / (qw^2 + qz^2).
static limit twist_limit(const rw_joint_frames* frames, const rw_joint_desc* desc) {
    rw_mat3 relative = rw_mat3_transpose_mul(frames->parent_axes, frames->child_axes);
    rw_quat q = rw_quat_from_mat3(&relative);
    double across = q.w * q.w + q.z * q.z;
    double scale = across > 1e-12 ? 1 / across : 0;
    rw_vec3 local = {scale * (q.z * q.x - q.w * q.y), scale * (q.w * q.x + q.z * q.y), 1};
    rw_vec3 n = rw_mat3_apply(&frames->child_axes, local);
    limit one = {.value = 2 * rw_trig_atan2(q.z, q.w),
                 .lower = desc->has_twist_lower_limit ? desc->twist_lower_limit : -(double)INFINITY,
                 .upper = desc->has_twist_upper_limit ? desc->twist_upper_limit : (double)INFINITY};
    one.row = (rw_joint_row){{0, 0, 0, -n.x, -n.y, -n.z}, {0, 0, 0, n.x, n.y, n.z}};
    return one;
}

static limit limit_of(const rw_joint_system* self, const rw_joint_constraint* one, int32_t local,
                      const double* trial) {
    const rw_joint_desc* desc = &self->model->joints.items[one->joint].desc;
    const rw_joint_frames* frames = &self->frames[one->joint];
    if (desc->type != RW_JOINT_SPHERICAL) {
        return (limit){trial[0], desc->has_lower_limit ? desc->lower_limit : -(double)INFINITY,
                       desc->has_upper_limit ? desc->upper_limit : (double)INFINITY,
                       *rate_row(self, one->joint, 0)};
    }
    bool is_swing = desc->has_swing_limit && local == 0;
    return is_swing ? swing_limit(frames, desc->swing_limit) : twist_limit(frames, desc);
}

static void put_limits(rw_joint_system* self, int32_t index, const double* trial) {
    const rw_joint_constraint* one = &self->constraints[index];
    for (int32_t r = 0; r < one->row_count; r++) {
        int32_t row = one->row_first + r;
        if (self->row_state[row] == RW_JOINT_ROW_OFF) {
            put_nothing(self, index, r);
            continue;
        }
        // `saturation` holds the bound that is hit.
        limit bound = limit_of(self, one, r, trial);
        put_row(self, one, r, &bound.row, &self->joints[one->joint], 1);
        rw_kkt_epsilon(self->kkt, index)[r] = 0;
        self->right_row[row] = self->saturation[row] - bound.value;
    }
}

static void put_coupling(rw_joint_system* self, int32_t index, const double* trial) {
    const rw_joint_constraint* one = &self->constraints[index];
    const rw_joint_coupling* coupling = &self->model->couplings.items[one->joint];
    const rw_coupling_desc* desc = &coupling->desc;
    const rw_joint* a = &self->model->joints.items[coupling->joint_a];
    const rw_joint* b = &self->model->joints.items[coupling->joint_b];
    put_row(self, one, 0, rate_row(self, coupling->joint_a, (int32_t)desc->coordinate_a),
            &self->joints[coupling->joint_a], 1);
    put_row(self, one, 0, rate_row(self, coupling->joint_b, (int32_t)desc->coordinate_b),
            &self->joints[coupling->joint_b], -desc->ratio);
    rw_kkt_epsilon(self->kkt, index)[0] = desc->compliance;
    double qa = trial[a->coordinate_first + (int32_t)desc->coordinate_a];
    double qb = trial[b->coordinate_first + (int32_t)desc->coordinate_b];
    self->right_row[one->row_first] = -(qa - desc->ratio * qb - desc->offset);
}

// ---- One solve ---------------------------------------------------------------------------------

// Frames, rate rows and coordinates of every joint at the trial; coordinates into `coordinate`.
static void evaluate_joints(rw_joint_system* self, const rw_state* to) {
    for (int32_t i = 0; i < self->model->joints.count; i++) {
        const rw_joint* record = &self->model->joints.items[i];
        self->frames[i] = rw_joint_system_private_frames_at(&self->joints[i], to);
        if (record->rate_count > 0) {
            rw_joint_geometry_rates(&self->joints[i], &self->frames[i],
                                    &self->rate_rows[record->rate_first]);
        }
        rw_joint_system_private_coordinates_at(self, to, i, &self->start[record->coordinate_first],
                                               &self->coordinate[record->coordinate_first]);
    }
}

static void fill_rows(rw_joint_system* self, const rw_step* step) {
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        for (int32_t s = 0; s < one->slot_count; s++) {
            memset(rw_kkt_jacobian(self->kkt, one->slot_first + s), 0,
                   (size_t)one->row_count * 6 * sizeof(double));
        }
        const double* trial =
            one->role == RW_JOINT_ROLE_COUPLING
                ? self->coordinate
                : &self->coordinate[self->model->joints.items[one->joint].coordinate_first];
        switch (one->role) {
        case RW_JOINT_ROLE_STRUCTURE:
            put_structure(self, k);
            break;
        case RW_JOINT_ROLE_MOTOR:
        case RW_JOINT_ROLE_DAMPING:
            put_law(self, step, k, trial);
            break;
        case RW_JOINT_ROLE_LIMIT:
            put_limits(self, k, trial);
            break;
        case RW_JOINT_ROLE_COUPLING:
            put_coupling(self, k, trial);
            break;
        }
    }
}

// A small epsilon on the rows of loops, the same for the rows of a point and for those of an axis,
// so that its metric does not depend on world axes (numerics, seed 002 note 2). False: no loops.
static bool regularise(rw_joint_system* self) {
    bool any = false;
    memset(self->regularisation, 0, (size_t)self->row_count * sizeof(double));
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        bool is_rigid = one->role == RW_JOINT_ROLE_STRUCTURE || one->role == RW_JOINT_ROLE_COUPLING;
        if (!is_rigid || !rw_kkt_in_loop(self->kkt, k)) {
            continue;
        }
        int32_t split =
            one->role == RW_JOINT_ROLE_STRUCTURE ? self->joints[one->joint].translation_count : 0;
        double sums[2] = {0};
        for (int32_t s = 0; s < one->slot_count; s++) {
            const double* mass = rw_kkt_mass(self->kkt, self->slot_node[one->slot_first + s]);
            const double* jacobian = rw_kkt_jacobian(self->kkt, one->slot_first + s);
            for (int32_t r = 0; r < one->row_count; r++) {
                for (int i = 0; i < 6; i++) {
                    double value = jacobian[6 * r + i];
                    sums[r >= split] += value * value / mass[7 * i];
                }
            }
        }
        for (int32_t r = 0; r < one->row_count; r++) {
            int32_t part = r >= split;
            int32_t count = part == 0 ? split : one->row_count - split;
            double extra = REDUNDANCY * sums[part] / count;
            self->regularisation[one->row_first + r] = extra;
            rw_kkt_epsilon(self->kkt, k)[r] += extra;
        }
        any = true;
    }
    return any;
}

// Adds an effort on a rate's row to the bodies' balance.
static void add_effort(rw_joint_system* self, int32_t joint, const rw_joint_row* row,
                       double effort) {
    const rw_joint_geometry* resolved = &self->joints[joint];
    for (int side = 0; side < 2; side++) {
        int32_t body = side == 0 ? resolved->parent : resolved->child;
        int32_t node = body < 0 ? -1 : self->body_node[body];
        const double* values = side == 0 ? row->parent : row->child;
        for (int i = 0; i < 6 && node >= 0; i++) {
            self->right_body[6 * node + i] += values[i] * effort;
        }
    }
}

static double clip(const rw_motor_desc* motor, double effort) {
    if (!motor->has_max_effort || fabs(effort) <= motor->max_effort) {
        return effort;
    }
    return effort < 0 ? -motor->max_effort : motor->max_effort;
}

// Efforts that do not depend on the solution: EFFORT motors and saturated ones.
static void add_given_efforts(rw_joint_system* self, const rw_step* step) {
    for (int32_t i = 0; i < self->model->joints.count; i++) {
        const rw_joint* record = &self->model->joints.items[i];
        const rw_motor_desc* motor = &record->desc.motor;
        for (int32_t r = 0; r < record->rate_count && motor->mode == RW_MOTOR_EFFORT; r++) {
            double effort = clip(motor, step->drive_to->joint_target[record->coordinate_first + r]);
            self->effort[record->rate_first + r] = effort;
            add_effort(self, i, rate_row(self, i, r), effort);
        }
    }
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        for (int32_t r = 0; r < one->row_count && one->role == RW_JOINT_ROLE_MOTOR; r++) {
            if (self->row_state[one->row_first + r] == RW_JOINT_ROW_SATURATED) {
                add_effort(self, one->joint, rate_row(self, one->joint, r),
                           self->saturation[one->row_first + r]);
            }
        }
    }
}

// J d of one row by the solution.
static double row_increment(const rw_joint_system* self, const rw_joint_geometry* joint,
                            const rw_joint_row* row) {
    double sum = 0;
    for (int side = 0; side < 2; side++) {
        int32_t body = side == 0 ? joint->parent : joint->child;
        int32_t node = body < 0 ? -1 : self->body_node[body];
        const double* values = side == 0 ? row->parent : row->child;
        for (int i = 0; i < 6 && node >= 0; i++) {
            sum += values[i] * self->right_body[6 * node + i];
        }
    }
    return sum;
}

// Switches limits and saturation by what the solution says. True when something switched.
static bool update_active_set(rw_joint_system* self) {
    bool changed = false;
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        if (one->role != RW_JOINT_ROLE_LIMIT && one->role != RW_JOINT_ROLE_MOTOR) {
            continue;
        }
        const rw_joint* record = &self->model->joints.items[one->joint];
        const double* trial = &self->coordinate[record->coordinate_first];
        for (int32_t r = 0; r < one->row_count; r++) {
            int32_t row = one->row_first + r;
            double effort = -self->multiplier[row];
            if (one->role == RW_JOINT_ROLE_MOTOR) {
                double clipped = clip(&record->desc.motor, effort);
                if (self->row_state[row] != RW_JOINT_ROW_SATURATED && clipped != effort) {
                    self->row_state[row] = RW_JOINT_ROW_SATURATED;
                    self->saturation[row] = clipped;
                    changed = true;
                }
                continue;
            }
            limit bound = limit_of(self, one, r, trial);
            if (self->row_state[row] == RW_JOINT_ROW_ON) {
                bool is_lower = self->saturation[row] == bound.lower;
                bool pulls = is_lower ? effort < 0 : effort > 0;
                if (pulls && bound.lower != bound.upper) {
                    self->row_state[row] = RW_JOINT_ROW_OFF;
                    changed = true;
                }
                continue;
            }
            double next = bound.value + row_increment(self, &self->joints[one->joint], &bound.row);
            if (next < bound.lower || next > bound.upper) {
                self->row_state[row] = RW_JOINT_ROW_ON;
                self->saturation[row] = next < bound.lower ? bound.lower : bound.upper;
                changed = true;
            }
        }
    }
    return changed;
}

// Wrench of every joint on its child at the joint frame's origin, and the motors' efforts.
static void store_reactions(rw_joint_system* self) {
    const rw_model* model = self->model;
    memset(self->reaction, 0, (size_t)model->joints.count * 6 * sizeof(double));
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        bool is_coupling = one->role == RW_JOINT_ROLE_COUPLING;
        rw_joint_row rows[RW_JOINT_MAX_ROWS];
        if (one->role == RW_JOINT_ROLE_STRUCTURE) {
            rw_joint_geometry_jacobian(&self->joints[one->joint], &self->frames[one->joint], rows);
        }
        for (int32_t r = 0; r < one->row_count; r++) {
            int32_t row = one->row_first + r;
            double effort = -self->multiplier[row];
            if (is_coupling) {
                const rw_joint_coupling* coupling = &model->couplings.items[one->joint];
                const int32_t joints[2] = {coupling->joint_a, coupling->joint_b};
                const uint32_t rates[2] = {coupling->desc.coordinate_a,
                                           coupling->desc.coordinate_b};
                const double scales[2] = {effort, -coupling->desc.ratio * effort};
                for (int side = 0; side < 2; side++) {
                    const rw_joint_row* rate = rate_row(self, joints[side], (int32_t)rates[side]);
                    for (int i = 0; i < 6; i++) {
                        self->reaction[6 * joints[side] + i] += scales[side] * rate->child[i];
                    }
                }
                continue;
            }
            const rw_joint* record = &model->joints.items[one->joint];
            const rw_joint_row* acting = &rows[r];
            limit bound;
            if (one->role == RW_JOINT_ROLE_LIMIT) {
                bound = limit_of(self, one, r, &self->coordinate[record->coordinate_first]);
                acting = &bound.row;
            } else if (one->role != RW_JOINT_ROLE_STRUCTURE) {
                acting = rate_row(self, one->joint, r);
            }
            if (one->role == RW_JOINT_ROLE_MOTOR) {
                effort =
                    self->row_state[row] == RW_JOINT_ROW_SATURATED ? self->saturation[row] : effort;
                self->effort[record->rate_first + r] = effort;
            }
            for (int i = 0; i < 6; i++) {
                self->reaction[6 * one->joint + i] += effort * acting->child[i];
            }
        }
    }
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* record = &model->joints.items[i];
        double* wrench = &self->reaction[6 * i];
        for (int32_t r = 0; r < record->rate_count; r++) {
            if (record->desc.motor.mode == RW_MOTOR_EFFORT) {
                double effort = self->effort[record->rate_first + r];
                for (int k = 0; k < 6; k++) {
                    wrench[k] += effort * rate_row(self, i, r)->child[k];
                }
            } else if (record->desc.motor.mode == RW_MOTOR_NONE) {
                self->effort[record->rate_first + r] = 0;
            }
        }
        rw_vec3 moved = rw_vec3_cross(self->frames[i].child_arm, rw_vec3_load(wrench));
        rw_vec3_store(wrench + 3, rw_vec3_sub(rw_vec3_load(wrench + 3), moved));
    }
}

// ---- Couplings between bodies ------------------------------------------------------------------

// out = (couplings) in, in node order.
static void couple(rw_joint_system* self, const rw_joint_system_coupling* coupling,
                   const double* in, double* out) {
    size_t bytes = (size_t)self->model->bodies.count * 6 * sizeof(double);
    memset(self->body_in, 0, bytes);
    memset(self->body_out, 0, bytes);
    for (int32_t n = 0; n < self->node_count; n++) {
        memcpy(&self->body_in[6 * self->node_body[n]], &in[6 * n], 6 * sizeof(double));
    }
    coupling->add(coupling->context, self->body_in, self->body_out);
    for (int32_t n = 0; n < self->node_count; n++) {
        memcpy(&out[6 * n], &self->body_out[6 * self->node_body[n]], 6 * sizeof(double));
    }
}

// reaction = J' multipliers, in node order.
static void apply_transposed(rw_joint_system* self, const double* multiplier, double* reaction) {
    memset(reaction, 0, (size_t)self->node_count * 6 * sizeof(double));
    for (int32_t k = 0; k < self->constraint_count; k++) {
        const rw_joint_constraint* one = &self->constraints[k];
        for (int32_t s = 0; s < one->slot_count; s++) {
            double* at = &reaction[6 * self->slot_node[one->slot_first + s]];
            const double* jacobian = rw_kkt_jacobian(self->kkt, one->slot_first + s);
            for (int32_t r = 0; r < one->row_count; r++) {
                for (int i = 0; i < 6; i++) {
                    at[i] += jacobian[6 * r + i] * multiplier[one->row_first + r];
                }
            }
        }
    }
}

static double dot(const double* a, const double* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

// solved, rows = K^-1 (residual, 0).
static void precondition(rw_joint_system* self, const rw_step* step) {
    size_t nodes = (size_t)self->node_count * 6;
    memcpy(self->cg_solved, self->cg_residual, nodes * sizeof(double));
    memset(self->cg_row_solved, 0, (size_t)self->row_count * sizeof(double));
    rw_kkt_solve(self->kkt, self->cg_solved, self->cg_row_solved, step->parallel);
}

// Conjugate gradients on A + C + J' E^-1 J from the solution without the couplings C, which fulfils
// the joint rows; the factored K stands for A + J' E^-1 J, so J' mu tells what J' E^-1 J p is.
static void solve_couplings(rw_joint_system* self, const rw_step* step,
                            const rw_joint_system_coupling* coupling) {
    int64_t nodes = 6 * (int64_t)self->node_count, rows = self->row_count;
    couple(self, coupling, self->right_body, self->cg_residual);
    for (int64_t i = 0; i < nodes; i++) {
        self->cg_residual[i] = -self->cg_residual[i];
    }
    precondition(self, step);
    memcpy(self->cg_direction, self->cg_solved, (size_t)nodes * sizeof(double));
    memcpy(self->cg_row_direction, self->cg_row_solved, (size_t)rows * sizeof(double));
    double rho = dot(self->cg_residual, self->cg_solved, nodes), first = rho;
    int32_t most = 4 + 2 * coupling->rank < 400 ? 4 + 2 * coupling->rank : 400;
    for (int32_t k = 0; k < most && rho > 1e-26 * first && rho > 0; k++) {
        // product = (A + C) p + J' mu_p
        double* product = self->cg_solved;
        couple(self, coupling, self->cg_direction, product);
        apply_transposed(self, self->cg_row_direction, self->cg_reaction);
        for (int32_t n = 0; n < self->node_count; n++) {
            const double* mass = rw_kkt_mass(self->kkt, n);
            for (int r = 0; r < 6; r++) {
                double sum = self->cg_reaction[6 * n + r];
                for (int c = 0; c < 6; c++) {
                    sum += mass[6 * r + c] * self->cg_direction[6 * n + c];
                }
                product[6 * n + r] += sum;
            }
        }
        double curvature = dot(self->cg_direction, product, nodes);
        if (!(curvature > 0)) {
            break;
        }
        double alpha = rho / curvature;
        for (int64_t i = 0; i < nodes; i++) {
            self->right_body[i] += alpha * self->cg_direction[i];
            self->cg_residual[i] -= alpha * product[i];
        }
        for (int64_t i = 0; i < rows; i++) {
            self->multiplier[i] += alpha * self->cg_row_direction[i];
        }
        precondition(self, step);
        double next = dot(self->cg_residual, self->cg_solved, nodes), beta = next / rho;
        for (int64_t i = 0; i < nodes; i++) {
            self->cg_direction[i] = self->cg_solved[i] + beta * self->cg_direction[i];
        }
        for (int64_t i = 0; i < rows; i++) {
            self->cg_row_direction[i] = self->cg_row_solved[i] + beta * self->cg_row_direction[i];
        }
        rho = next;
    }
}

rw_status rw_joint_system_solve(rw_joint_system* self, const rw_step* step, const double* block,
                                rw_joint_system_coupling coupling, double* right) {
    evaluate_joints(self, step->to);
    memset(self->row_state, RW_JOINT_ROW_OFF, (size_t)self->row_count);
    for (int round = 0; round < ACTIVE_SET_ROUNDS; round++) {
        for (int32_t n = 0; n < self->node_count; n++) {
            int32_t body = self->node_body[n];
            memcpy(rw_kkt_mass(self->kkt, n), &block[36 * body], 36 * sizeof(double));
            memcpy(&self->right_body[6 * n], &right[6 * body], 6 * sizeof(double));
        }
        fill_rows(self, step);
        bool is_regularised = regularise(self);
        add_given_efforts(self, step);
        rw_kkt_pivots pivots = rw_kkt_factor(self->kkt, self->regularisation, step->parallel);
        if (pivots.guarded > 0) {
            step->fault->raised = true;
            snprintf(step->fault->object, sizeof step->fault->object, "joints");
            snprintf(step->fault->stage, sizeof step->fault->stage, "xpbd joint solve");
            snprintf(step->fault->text, sizeof step->fault->text,
                     "%d pivots of the joint system are not definite", pivots.guarded);
            return RW_STATUS_FAULTED;
        }
        memcpy(self->multiplier, self->right_row, (size_t)self->row_count * sizeof(double));
        rw_kkt_solve_refined(self->kkt, self->right_body, self->multiplier,
                             is_regularised ? self->regularisation : NULL, REFINEMENTS,
                             step->parallel);
        if (coupling.rank > 0) {
            solve_couplings(self, step, &coupling);
        }
        if (!update_active_set(self)) {
            break;
        }
    }
    store_reactions(self);
    for (int32_t n = 0; n < self->node_count; n++) {
        memcpy(&right[6 * self->node_body[n]], &self->right_body[6 * n], 6 * sizeof(double));
    }
    return RW_STATUS_OK;
}
