#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/xpbd/joint_placement.h"
#include "solvers/xpbd/joint_system_private.h"

#define PI 3.14159265358979323846

// ---- Life --------------------------------------------------------------------------------------

rw_status rw_joint_system_create(rw_model* model, rw_alloc* alloc, rw_joint_system** system,
                                 rw_error* error) {
    rw_joint_system* self = rw_alloc_get(alloc, sizeof *self);
    if (self == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the joints");
    }
    self->model = model;
    self->alloc = alloc;
    rw_arena_init(&self->arena, alloc);
    *system = self;
    return RW_STATUS_OK;
}

static void release_private(rw_joint_system* self) {
    rw_alloc_free(self->alloc, self->coordinate);
    rw_alloc_free(self->alloc, self->reaction);
    rw_alloc_free(self->alloc, self->effort);
    rw_alloc_free(self->alloc, self->distance);
    rw_alloc_free(self->alloc, self->joint_ids);
    rw_alloc_free(self->alloc, self->joint_sizes);
    self->coordinate = self->reaction = self->effort = self->distance = NULL;
    self->joint_ids = NULL;
    self->joint_sizes = NULL;
    memset(self->field_counts, 0, sizeof self->field_counts);
}

void rw_joint_system_destroy(rw_joint_system* self) {
    if (self != NULL) {
        rw_kkt_destroy(self->kkt);
        release_private(self);
        rw_arena_finish(&self->arena);
        rw_alloc_free(self->alloc, self);
    }
}

// ---- Poses, frames, coordinates ----------------------------------------------------------------

static rw_joint_pose pose_of(const rw_state* state, int32_t body) {
    if (body < 0) {
        return (rw_joint_pose){.rotation = rw_mat3_identity()};
    }
    rw_joint_pose pose;
    rw_quat q = rw_quat_load(&state->body_rotation[4 * body]);
    pose.position = rw_vec3_load(&state->body_position[3 * body]);
    pose.rotation = rw_quat_to_mat3(q);
    pose.velocity = rw_vec3_load(&state->body_linear_velocity[3 * body]);
    pose.angular = rw_quat_rotate(q, rw_vec3_load(&state->body_angular_velocity[3 * body]));
    return pose;
}

rw_joint_frames rw_joint_system_private_frames_at(const rw_joint_geometry* joint,
                                                  const rw_state* state) {
    rw_joint_pose parent = pose_of(state, joint->parent), child = pose_of(state, joint->child);
    rw_joint_frames frames;
    rw_joint_geometry_frames_at(joint, &parent, &child, &frames);
    return frames;
}

// Coordinates at a state; angles on the branch nearest to `near`.
void rw_joint_system_private_coordinates_at(const rw_joint_system* self, const rw_state* state,
                                            int32_t index, const double* near, double* values) {
    const rw_joint* record = &self->model->joints.items[index];
    rw_joint_frames frames = rw_joint_system_private_frames_at(&self->joints[index], state);
    rw_joint_geometry_coordinate(&self->joints[index], &frames, values);
    unsigned angles = rw_joint_geometry_angle_mask(record->desc.type);
    for (int32_t i = 0; i < record->coordinate_count; i++) {
        if ((angles >> i & 1) != 0) {
            values[i] += 2 * PI * rint((near[i] - values[i]) / (2 * PI));
        }
    }
}

static void fill_joints(rw_joint_system* self) {
    const rw_model* model = self->model;
    static const double origin[3];
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* record = &model->joints.items[i];
        const double* parent =
            record->parent >= 0 ? &model->bodies.center_of_mass[3 * record->parent] : origin;
        const double* child =
            record->child >= 0 ? &model->bodies.center_of_mass[3 * record->child] : origin;
        rw_joint_geometry_init(&self->joints[i], &record->desc, record->parent, record->child,
                               rw_vec3_load(parent), rw_vec3_load(child));
    }
}

// ---- Prepare -----------------------------------------------------------------------------------

static bool has_scalar_limit(const rw_joint_desc* desc) {
    return desc->has_lower_limit || desc->has_upper_limit;
}

static int32_t limit_row_count(const rw_joint_desc* desc) {
    if (desc->type == RW_JOINT_SPHERICAL) {
        return (desc->has_swing_limit ? 1 : 0) +
               (desc->has_twist_lower_limit || desc->has_twist_upper_limit ? 1 : 0);
    }
    return has_scalar_limit(desc) ? 1 : 0;
}

// Writes the constraints of the graph; with NULL arrays only counts.
typedef struct graph_writer {
    rw_joint_system* self;
    rw_joint_constraint* constraints;
    int32_t* first;
    int32_t* bodies;
    int8_t* rows;
    bool* on_world;
    bool* is_joint;
    int32_t count, slot_count, row_count;
} graph_writer;

static void write_constraint(graph_writer* w, rw_joint_role role, int32_t joint, int32_t rows,
                             const int32_t* bodies, int32_t body_count) {
    if (rows == 0) {
        return;
    }
    int32_t nodes[4], node_count = 0;
    bool on_world = false;
    for (int32_t i = 0; i < body_count; i++) {
        int32_t node = bodies[i] < 0 ? -1 : w->self->body_node[bodies[i]];
        bool is_new = node >= 0;
        for (int32_t k = 0; k < node_count; k++) {
            is_new = is_new && nodes[k] != node;
        }
        if (is_new) {
            nodes[node_count++] = node;
        }
        on_world |= node < 0;
    }
    if (node_count == 0) {
        return; // between bodies that no force moves
    }
    if (w->constraints != NULL) {
        w->constraints[w->count] =
            (rw_joint_constraint){role, joint, rows, w->slot_count, node_count, w->row_count};
        w->first[w->count] = w->slot_count;
        w->rows[w->count] = (int8_t)rows;
        w->on_world[w->count] = on_world;
        w->is_joint[w->count] = role == RW_JOINT_ROLE_STRUCTURE;
        memcpy(&w->bodies[w->slot_count], nodes, (size_t)node_count * sizeof *nodes);
    }
    w->count++;
    w->slot_count += node_count;
    w->row_count += rows;
}

static void write_graph(graph_writer* w) {
    const rw_model* model = w->self->model;
    w->count = w->slot_count = w->row_count = 0;
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* record = &model->joints.items[i];
        const rw_joint_desc* desc = &record->desc;
        const int32_t pair[2] = {record->parent, record->child};
        bool has_motor =
            desc->motor.mode == RW_MOTOR_POSITION || desc->motor.mode == RW_MOTOR_VELOCITY;
        write_constraint(w, RW_JOINT_ROLE_STRUCTURE, i, w->self->joints[i].row_count, pair, 2);
        write_constraint(w, RW_JOINT_ROLE_MOTOR, i, has_motor ? record->rate_count : 0, pair, 2);
        write_constraint(w, RW_JOINT_ROLE_DAMPING, i, desc->damping > 0 ? record->rate_count : 0,
                         pair, 2);
        write_constraint(w, RW_JOINT_ROLE_LIMIT, i, limit_row_count(desc), pair, 2);
    }
    for (int32_t i = 0; i < model->couplings.count; i++) {
        const rw_joint_coupling* coupling = &model->couplings.items[i];
        const rw_joint* a = &model->joints.items[coupling->joint_a];
        const rw_joint* b = &model->joints.items[coupling->joint_b];
        const int32_t four[4] = {a->parent, a->child, b->parent, b->child};
        write_constraint(w, RW_JOINT_ROLE_COUPLING, i, 1, four, 4);
    }
}

static bool allocate_graph(rw_joint_system* self, graph_writer* w) {
    size_t count = (size_t)w->count;
    rw_arena* arena = &self->arena;
    w->constraints = rw_arena_array(arena, count, sizeof *w->constraints);
    w->first = rw_arena_array(arena, count + 1, sizeof *w->first);
    w->bodies = rw_arena_array(arena, (size_t)w->slot_count, sizeof *w->bodies);
    w->rows = rw_arena_array(arena, count, sizeof *w->rows);
    w->on_world = rw_arena_array(arena, count, sizeof *w->on_world);
    w->is_joint = rw_arena_array(arena, count, sizeof *w->is_joint);
    size_t rows = (size_t)w->row_count;
    self->multiplier = rw_arena_array(arena, rows, sizeof *self->multiplier);
    self->regularisation = rw_arena_array(arena, rows, sizeof *self->regularisation);
    self->row_state = rw_arena_array(arena, rows, sizeof *self->row_state);
    self->saturation = rw_arena_array(arena, rows, sizeof *self->saturation);
    self->right_row = rw_arena_array(arena, rows, sizeof *self->right_row);
    size_t nodes = (size_t)self->node_count * 6, bodies = (size_t)self->model->bodies.count * 6;
    const struct {
        double** array;
        size_t count;
    } work[] = {
        {&self->right_body, nodes},   {&self->cg_direction, nodes}, {&self->cg_residual, nodes},
        {&self->cg_solved, nodes},    {&self->cg_reaction, nodes},  {&self->cg_row_direction, rows},
        {&self->cg_row_solved, rows}, {&self->body_in, bodies},     {&self->body_out, bodies},
    };
    for (size_t i = 0; i < RW_COUNT_OF(work); i++) {
        *work[i].array = rw_arena_array(arena, work[i].count, sizeof(double));
        if (*work[i].array == NULL) {
            return false;
        }
    }
    return w->constraints != NULL && w->first != NULL && w->bodies != NULL && w->rows != NULL &&
           w->on_world != NULL && w->is_joint != NULL && self->multiplier != NULL &&
           self->regularisation != NULL && self->row_state != NULL && self->saturation != NULL &&
           self->right_row != NULL;
}

// A DISTANCE joint's length: as given, or as the bodies are.
static double distance_at(const rw_joint_system* self, const rw_state* state, int32_t index) {
    const rw_joint_desc* desc = &self->model->joints.items[index].desc;
    if (desc->type != RW_JOINT_DISTANCE || desc->has_distance) {
        return desc->distance;
    }
    return rw_vec3_norm(rw_joint_system_private_frames_at(&self->joints[index], state).gap);
}

// Coordinates, reactions and efforts of joints that stayed move to their new places.
static rw_status carry_private(rw_joint_system* self, const rw_state* state, rw_error* error) {
    const rw_model* model = self->model;
    rw_joint_system next = {.model = self->model, .alloc = self->alloc};
    next.coordinate =
        rw_alloc_array(self->alloc, (size_t)model->joints.coordinate_count, sizeof(double));
    next.effort = rw_alloc_array(self->alloc, (size_t)model->joints.rate_count, sizeof(double));
    next.reaction = rw_alloc_array(self->alloc, (size_t)model->joints.count, 6 * sizeof(double));
    next.distance = rw_alloc_array(self->alloc, (size_t)model->joints.count, sizeof *next.distance);
    next.joint_ids =
        rw_alloc_array(self->alloc, (size_t)model->joints.count, sizeof *next.joint_ids);
    next.joint_sizes =
        rw_alloc_array(self->alloc, (size_t)model->joints.count, 2 * sizeof(int32_t));
    if (next.coordinate == NULL || next.effort == NULL || next.reaction == NULL ||
        next.distance == NULL || next.joint_ids == NULL || next.joint_sizes == NULL) {
        release_private(&next);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %d joints", model->joints.count);
    }
    int64_t old = 0, old_coordinate = 0, old_rate = 0;
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* record = &model->joints.items[i];
        next.joint_ids[i] = record->id;
        next.joint_sizes[2 * i] = record->coordinate_count;
        next.joint_sizes[2 * i + 1] = record->rate_count;
        static const double zero[4];
        rw_joint_system_private_coordinates_at(self, state, i, zero,
                                               &next.coordinate[record->coordinate_first]);
        next.distance[i] = distance_at(self, state, i);
        // Creation order is kept, so what stayed comes in the same order.
        int64_t at = old, at_coordinate = old_coordinate, at_rate = old_rate;
        while (at < self->field_counts[0] && self->joint_ids[at] != record->id) {
            at++;
        }
        if (at >= self->field_counts[0]) {
            continue;
        }
        for (int64_t k = old; k < at; k++) {
            at_coordinate += self->joint_sizes[2 * k];
            at_rate += self->joint_sizes[2 * k + 1];
        }
        memcpy(&next.coordinate[record->coordinate_first], &self->coordinate[at_coordinate],
               (size_t)record->coordinate_count * sizeof(double));
        memcpy(&next.effort[record->rate_first], &self->effort[at_rate],
               (size_t)record->rate_count * sizeof(double));
        memcpy(&next.reaction[6 * i], &self->reaction[6 * at], 6 * sizeof(double));
        if (!record->desc.has_distance) {
            next.distance[i] = self->distance[at];
        }
        old = at + 1;
        old_coordinate = at_coordinate + record->coordinate_count;
        old_rate = at_rate + record->rate_count;
    }
    release_private(self);
    self->coordinate = next.coordinate;
    self->effort = next.effort;
    self->distance = next.distance;
    self->reaction = next.reaction;
    self->joint_ids = next.joint_ids;
    self->joint_sizes = next.joint_sizes;
    self->field_counts[0] = model->joints.count;
    self->field_counts[1] = model->joints.coordinate_count;
    self->field_counts[2] = model->joints.rate_count;
    return RW_STATUS_OK;
}

rw_status rw_joint_system_prepare(rw_joint_system* self, const rw_state* state, rw_error* error) {
    const rw_model* model = self->model;
    rw_arena* arena = &self->arena;
    self->is_followed = false;
    rw_arena_reset(arena);
    rw_kkt_destroy(self->kkt);
    self->kkt = NULL;
    size_t joints = (size_t)model->joints.count, bodies = (size_t)model->bodies.count;
    self->joints = rw_arena_array(arena, joints, sizeof *self->joints);
    self->frames = rw_arena_array(arena, joints, sizeof *self->frames);
    self->body_node = rw_arena_array(arena, bodies, sizeof *self->body_node);
    self->node_body = rw_arena_array(arena, bodies, sizeof *self->node_body);
    self->holds = rw_arena_array(arena, bodies, sizeof *self->holds);
    self->marks = rw_arena_array(arena, bodies, sizeof *self->marks);
    self->rate_rows =
        rw_arena_array(arena, (size_t)model->joints.rate_count, sizeof *self->rate_rows);
    self->start =
        rw_arena_array(arena, (size_t)model->joints.coordinate_count, sizeof *self->start);
    if (self->joints == NULL || self->frames == NULL || self->body_node == NULL ||
        self->node_body == NULL || self->holds == NULL || self->marks == NULL ||
        self->rate_rows == NULL || self->start == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %d joints", model->joints.count);
    }
    self->node_count = 0;
    for (int32_t i = 0; i < model->bodies.count; i++) {
        bool is_dynamic = model->bodies.kind[i] == RW_BODY_DYNAMIC;
        self->body_node[i] = is_dynamic ? self->node_count : -1;
        if (is_dynamic) {
            self->node_body[self->node_count++] = i;
        }
    }
    for (int32_t i = 0; i < model->joints.count; i++) {
        const rw_joint* record = &model->joints.items[i];
        if (record->child >= 0) {
            self->holds[record->child] = true;
        }
        if (record->parent >= 0) {
            self->holds[record->parent] = true;
        }
    }
    fill_joints(self);
    graph_writer writer = {.self = self};
    write_graph(&writer);
    if (!allocate_graph(self, &writer)) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for %d joints", model->joints.count);
    }
    write_graph(&writer);
    writer.first[writer.count] = writer.slot_count;
    self->constraints = writer.constraints;
    self->slot_node = writer.bodies;
    self->constraint_count = writer.count;
    self->row_count = writer.row_count;
    RW_TRY(carry_private(self, state, error));
    if (model->joints.count == 0) {
        return RW_STATUS_OK;
    }
    const rw_kkt_graph graph = {self->node_count, writer.count,    writer.first,   writer.bodies,
                                writer.rows,      writer.on_world, writer.is_joint};
    if (rw_kkt_create(self->alloc, &graph, &self->kkt) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to factor %d joints",
                model->joints.count);
    }
    return RW_STATUS_OK;
}

bool rw_joint_system_is_active(const rw_joint_system* self) {
    return self->kkt != NULL;
}

bool rw_joint_system_holds(const rw_joint_system* self, int32_t body) {
    return self->holds[body];
}

void rw_joint_system_follow(rw_joint_system* self, const rw_state* state) {
    for (int32_t i = 0; i < self->field_counts[0]; i++) {
        double* values = &self->coordinate[self->model->joints.items[i].coordinate_first];
        double near[4];
        memcpy(near, values, (size_t)self->joint_sizes[2 * i] * sizeof *near);
        rw_joint_system_private_coordinates_at(self, state, i, near, values);
    }
}

// The lengths are private state: a snapshot's come after prepare.
static void take_distances(rw_joint_system* self) {
    for (int32_t i = 0; i < self->field_counts[0]; i++) {
        self->joints[i].distance = self->distance[i];
    }
}

void rw_joint_system_begin(rw_joint_system* self, const rw_step* step) {
    take_distances(self);
    self->h = step->h;
    if (!self->is_followed) {
        rw_joint_system_follow(self, step->from);
    }
    self->is_followed = false;
    if (self->field_counts[1] > 0) {
        memcpy(self->start, self->coordinate, (size_t)self->field_counts[1] * sizeof(double));
    }
}

void rw_joint_system_forget(rw_joint_system* self) {
    self->is_followed = false;
}

void rw_joint_system_end(rw_joint_system* self, const rw_step* step) {
    rw_joint_system_follow(self, step->to);
    self->is_followed = true;
}

// ---- Signals -----------------------------------------------------------------------------------

void rw_joint_system_coordinate(rw_joint_system* self, const rw_state* state, int32_t joint,
                                double* values) {
    // From the state, which a Set* may have changed; the stored ones tell the turn.
    const rw_joint* record = &self->model->joints.items[joint];
    rw_joint_system_private_coordinates_at(self, state, joint,
                                           &self->coordinate[record->coordinate_first], values);
}

void rw_joint_system_rate(rw_joint_system* self, const rw_state* state, int32_t joint,
                          double* values) {
    const rw_joint* record = &self->model->joints.items[joint];
    const rw_joint_geometry* resolved = &self->joints[joint];
    rw_joint_frames frames = rw_joint_system_private_frames_at(resolved, state);
    rw_joint_row rows[RW_JOINT_MAX_RATES];
    if (record->rate_count == 0) {
        return;
    }
    rw_joint_geometry_rates(resolved, &frames, rows);
    rw_joint_pose parent = pose_of(state, resolved->parent),
                  child = pose_of(state, resolved->child);
    for (int32_t r = 0; r < record->rate_count; r++) {
        values[r] = rw_joint_geometry_row_rate(&rows[r], &parent, &child);
    }
}

void rw_joint_system_effort(const rw_joint_system* self, int32_t joint, double* values) {
    const rw_joint* record = &self->model->joints.items[joint];
    memcpy(values, &self->effort[record->rate_first], (size_t)record->rate_count * sizeof *values);
}

void rw_joint_system_reaction(const rw_joint_system* self, int32_t joint, double wrench[6]) {
    memcpy(wrench, &self->reaction[6 * joint], 6 * sizeof *wrench);
}

void rw_joint_system_violation(rw_joint_system* self, const rw_state* state, int32_t joint,
                               double violation[2]) {
    take_distances(self);
    rw_joint_frames frames = rw_joint_system_private_frames_at(&self->joints[joint], state);
    rw_joint_geometry_violation(&self->joints[joint], &frames, violation);
}

rw_status rw_joint_system_set(rw_joint_system* self, rw_state* state, int32_t joint,
                              const double* coordinate, const double* rate, rw_error* error) {
    const rw_joint* record = &self->model->joints.items[joint];
    RW_TRY(rw_joint_placement_set(self->model, &self->joints[joint], joint, coordinate, rate,
                                  self->marks, state, error));
    if (coordinate != NULL) {
        memcpy(&self->coordinate[record->coordinate_first], coordinate,
               (size_t)record->coordinate_count * sizeof *coordinate);
    }
    return RW_STATUS_OK;
}

rw_solver_fields rw_joint_system_fields(rw_joint_system* self) {
    static const rw_field fields[] = {
        RW_FIELD_ENTRY(rw_joint_system, reaction, 6, 0, 0),
        RW_FIELD_ENTRY(rw_joint_system, coordinate, 1, 1, RW_FIELD_HASHED),
        RW_FIELD_ENTRY(rw_joint_system, effort, 1, 2, 0),
        RW_FIELD_ENTRY(rw_joint_system, distance, 1, 0, RW_FIELD_HASHED),
    };
    return (rw_solver_fields){{fields, RW_COUNT_OF(fields)}, self, self->field_counts};
}
