#include "solvers/model/validate.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/small_spd.h"
#include "solvers/model/bounds.h"

#define PI 3.14159265358979323846

// "a.b" of two path parts; `outer` may be empty.
#define JOIN(buffer, outer, inner)                                                                 \
    snprintf((buffer), RW_BOUNDS_FIELD_CAPACITY, "%s%s%s", (outer), (outer)[0] != '\0' ? "." : "", \
             (inner))

// ---- Arrays ----

rw_status rw_validate_numbers(const double* values, size_t count, const char* field,
                              rw_error* error) {
    for (size_t i = 0; i < count; i++) {
        // One comparison catches NaN too.
        if (!(fabs(values[i]) <= RW_BOUNDS_MAGNITUDE_MAX)) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return rw_bounds_finite(values[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_validate_rotation(const double rotation[4], const char* field, rw_error* error) {
    RW_TRY(rw_validate_numbers(rotation, 4, field, error));
    double norm = sqrt(rotation[0] * rotation[0] + rotation[1] * rotation[1] +
                       rotation[2] * rotation[2] + rotation[3] * rotation[3]);
    if (!(fabs(norm - 1) <= RW_ROTATION_TOLERANCE)) {
        RW_FAIL(error, INVALID_ARGUMENT, field,
                "must be a unit quaternion [w, x, y, z], got one of norm %g", norm);
    }
    return RW_STATUS_OK;
}

void rw_validate_normalize(double q[4]) {
    double norm_sq = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!(fabs(norm_sq - 1) > 16 * 0x1p-53) || norm_sq == 0) {
        return;
    }
    double norm = sqrt(norm_sq);
    for (int i = 0; i < 4; i++) {
        q[i] /= norm;
    }
}

static rw_status frame(const rw_frame* value, const char* field, rw_error* error) {
    char path[RW_BOUNDS_FIELD_CAPACITY];
    JOIN(path, field, "position");
    RW_TRY(rw_validate_numbers(value->position, 3, path, error));
    JOIN(path, field, "rotation");
    return rw_validate_rotation(value->rotation, path, error);
}

// ---- Names ----

static bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-';
}

rw_status rw_validate_name(const char* name, const char* field, rw_error* error) {
    size_t length = strnlen(name, RW_NAME_CAPACITY);
    bool valid = length > 0 && length < RW_NAME_CAPACITY;
    for (size_t i = 0; valid && i < length; i++) {
        valid = is_name_character(name[i]);
    }
    if (!valid) {
        RW_FAIL(error, INVALID_ARGUMENT, field,
                "must be 1 to 63 characters of A-Z a-z 0-9 _ . : -, got \"%.*s\"", 63, name);
    }
    return RW_STATUS_OK;
}

static rw_status name_or_empty(const char* name, const char* field, rw_error* error) {
    return name[0] == '\0' ? RW_STATUS_OK : rw_validate_name(name, field, error);
}

// ---- Scene-wide options ----

static rw_status validate_dae(const rw_scene* scene, rw_error* error) {
    const rw_solver_options* solver = &scene->solver;
    RW_TRY(rw_bounds_choice(solver->dae.integrator, 5, "solver.dae.integrator", error));
    RW_TRY(rw_bounds_choice(solver->dae.stabilization, 3, "solver.dae.stabilization", error));
    const struct {
        double value;
        const char* field;
    } tolerances[] = {{solver->dae.relative_tolerance, "solver.dae.relative_tolerance"},
                      {solver->dae.absolute_tolerance, "solver.dae.absolute_tolerance"}};
    for (size_t i = 0; i < RW_COUNT_OF(tolerances); i++) {
        RW_TRY(rw_bounds_positive(tolerances[i].value, tolerances[i].field, error));
        if (tolerances[i].value >= 1) {
            RW_FAIL(error, INVALID_ARGUMENT, tolerances[i].field, "must be < 1, got %g",
                    tolerances[i].value);
        }
    }
    double h = scene->time_step / scene->substeps;
    if (solver->dae.has_baumgarte_alpha) {
        RW_TRY(rw_bounds_not_negative(solver->dae.baumgarte_alpha, "solver.dae.baumgarte_alpha",
                                      error));
        if (solver->dae.baumgarte_alpha * h > 1) {
            RW_FAIL(error, INVALID_ARGUMENT, "solver.dae.baumgarte_alpha",
                    "times the step of %g s must be <= 1, got %g", h,
                    solver->dae.baumgarte_alpha * h);
        }
    }
    if (solver->dae.has_baumgarte_beta) {
        RW_TRY(
            rw_bounds_not_negative(solver->dae.baumgarte_beta, "solver.dae.baumgarte_beta", error));
    }
    return RW_STATUS_OK;
}

static rw_status residual(double value, const char* field, rw_error* error) {
    RW_TRY(rw_bounds_finite(value, field, error));
    if (value < 0 || value >= 1) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [0, 1), got %g", value);
    }
    return RW_STATUS_OK;
}

static rw_status validate_contact(const rw_solver_options* solver, rw_error* error) {
    RW_TRY(rw_bounds_not_negative(solver->contact.compliance, "solver.contact.compliance", error));
    RW_TRY(rw_bounds_positive(solver->contact.stiffness, "solver.contact.stiffness", error));
    RW_TRY(rw_bounds_not_negative(solver->contact.damping, "solver.contact.damping", error));
    RW_TRY(
        rw_bounds_positive(solver->contact.slip_velocity, "solver.contact.slip_velocity", error));
    return rw_bounds_not_negative(solver->contact.margin, "solver.contact.margin", error);
}

rw_status rw_validate_options(const rw_scene* scene, rw_error* error) {
    if (memchr(scene->name, '\0', sizeof scene->name) == NULL) {
        RW_FAIL(error, INVALID_ARGUMENT, "name", "must be at most 255 bytes");
    }
    RW_TRY(rw_validate_numbers(scene->gravity, 3, "gravity", error));
    RW_TRY(rw_validate_numbers(scene->wind, 3, "wind", error));
    RW_TRY(rw_bounds_positive(scene->time_step, "time_step", error));
    if (scene->time_step < RW_TIME_STEP_MIN || scene->time_step > RW_TIME_STEP_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, "time_step", "must lie in [%g, %g] s, got %g",
                RW_TIME_STEP_MIN, RW_TIME_STEP_MAX, scene->time_step);
    }
    RW_TRY(rw_bounds_integer(scene->substeps, 1, RW_SUBSTEPS_MAX, "substeps", error));
    const rw_solver_options* solver = &scene->solver;
    if (solver->rigid != RW_SOLVER_XPBD && solver->rigid != RW_SOLVER_DAE) {
        RW_FAIL(error, INVALID_ARGUMENT, "solver.rigid", "must be XPBD or DAE");
    }
    if (solver->rods != RW_SOLVER_XPBD && solver->rods != RW_SOLVER_SCR) {
        RW_FAIL(error, INVALID_ARGUMENT, "solver.rods", "must be XPBD or SCR");
    }
    RW_TRY(rw_bounds_choice(solver->device, 3, "solver.device", error));
    if (solver->device == RW_DEVICE_GPU) {
        RW_FAIL(error, UNAVAILABLE, "solver.device", "this server has no GPU");
    }
    RW_TRY(rw_bounds_integer(solver->xpbd.iterations, 1, 10000, "solver.xpbd.iterations", error));
    RW_TRY(residual(solver->xpbd.residual_tolerance, "solver.xpbd.residual_tolerance", error));
    RW_TRY(validate_dae(scene, error));
    RW_TRY(rw_bounds_integer(solver->scr.iterations, 1, 1000000, "solver.scr.iterations", error));
    RW_TRY(residual(solver->scr.residual_tolerance, "solver.scr.residual_tolerance", error));
    RW_TRY(rw_bounds_choice(solver->scr.lambda, 2, "solver.scr.lambda", error));
    RW_TRY(rw_bounds_choice(solver->scr.order, 2, "solver.scr.order", error));
    return validate_contact(solver, error);
}

// ---- Bodies ----

rw_status rw_validate_surface(double friction, double restitution, uint32_t group,
                              rw_error* error) {
    RW_TRY(rw_bounds_not_negative(friction, "friction", error));
    RW_TRY(rw_bounds_fraction(restitution, "restitution", error));
    return rw_bounds_integer(group, 0, 31, "collision_group", error);
}

rw_status rw_validate_inertia(const double inertia[6], const char* field, rw_error* error) {
    RW_TRY(rw_validate_numbers(inertia, 6, field, error));
    rw_mat3 tensor = rw_mat3_symmetric(inertia);
    rw_mat3 vectors;
    double moments[3];
    rw_small_spd_eigen3(&tensor, moments, &vectors);
    if (!(moments[0] > 1e-12 * moments[2]) || !(moments[0] >= 1 / RW_BOUNDS_MAGNITUDE_MAX)) {
        RW_FAIL(error, INVALID_ARGUMENT, field,
                "must be positive definite, got principal moments %g, %g, %g", moments[0],
                moments[1], moments[2]);
    }
    if (moments[0] + moments[1] < moments[2] * (1 - 1e-9)) {
        RW_FAIL(error, INVALID_ARGUMENT, field,
                "breaks the triangle inequality: principal moments %g + %g < %g", moments[0],
                moments[1], moments[2]);
    }
    return RW_STATUS_OK;
}

static const char* const shape_names[] = {"sphere", "capsule", "box", "cylinder",
                                          "plane",  "hull",    "mesh"};

static rw_status validate_vertices(const rw_shape_desc* shape, rw_error* error) {
    bool is_hull = shape->kind == RW_SHAPE_HULL;
    const char* field = is_hull ? "hull.vertices" : "mesh.vertices";
    RW_TRY(rw_bounds_rows(shape->vertices.count, 3, field, error));
    size_t rows = shape->vertices.count / 3;
    if (rows < (is_hull ? 4 : 3) || rows > (is_hull ? 65535u : UINT32_MAX)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold at least %d rows of 3%s, got %zu",
                is_hull ? 4 : 3, is_hull ? " and at most 65535" : "", rows);
    }
    RW_TRY(rw_validate_numbers(shape->vertices.data, shape->vertices.count, field, error));
    if (is_hull) {
        return RW_STATUS_OK;
    }
    RW_TRY(rw_bounds_rows(shape->triangles.count, 3, "mesh.triangles", error));
    if (shape->triangles.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "mesh.triangles", "must hold at least one row of 3");
    }
    for (size_t i = 0; i < shape->triangles.count; i++) {
        if (shape->triangles.data[i] >= rows) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "mesh.triangles[%zu]", i);
            RW_FAIL(error, OUT_OF_RANGE, path, "must be < %zu, got %u", rows,
                    shape->triangles.data[i]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status validate_shape(const rw_shape_desc* shape, rw_body_kind body, rw_error* error) {
    RW_TRY(rw_bounds_choice(shape->kind, 7, "geometry", error));
    RW_TRY(frame(&shape->frame, "", error));
    RW_TRY(rw_bounds_not_negative(shape->density, "density", error));
    const char* name = shape_names[shape->kind];
    char path[RW_BOUNDS_FIELD_CAPACITY];
    switch (shape->kind) {
    case RW_SHAPE_SPHERE:
        return rw_bounds_positive(shape->radius, "sphere.radius", error);
    case RW_SHAPE_CAPSULE:
    case RW_SHAPE_CYLINDER:
        JOIN(path, name, "radius");
        RW_TRY(rw_bounds_positive(shape->radius, path, error));
        JOIN(path, name, "half_length");
        return shape->kind == RW_SHAPE_CAPSULE
                   ? rw_bounds_not_negative(shape->half_length, path, error)
                   : rw_bounds_positive(shape->half_length, path, error);
    case RW_SHAPE_BOX:
        return rw_bounds_positives((rw_doubles){shape->half_extents, 3}, "box.half_extents", error);
    case RW_SHAPE_PLANE:
        if (body == RW_BODY_DYNAMIC) {
            RW_FAIL(error, INVALID_ARGUMENT, "plane", "only STATIC and KINEMATIC bodies have one");
        }
        return RW_STATUS_OK;
    case RW_SHAPE_HULL:
    case RW_SHAPE_MESH:
        return validate_vertices(shape, error);
    }
    return RW_STATUS_OK;
}

bool rw_validate_has_density(const rw_body_desc* desc) {
    bool has_density = desc->has_density;
    for (size_t i = 0; i < desc->shape_count; i++) {
        has_density = has_density || desc->shapes[i].density != 0;
    }
    return has_density;
}

static rw_status validate_mass(const rw_body_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_numbers(desc->center_of_mass, 3, "center_of_mass", error));
    if (desc->has_density) {
        RW_TRY(rw_bounds_positive(desc->density, "density", error));
    }
    if (rw_validate_has_density(desc)) {
        if (desc->has_mass || desc->has_inertia || desc->has_center_of_mass) {
            RW_FAIL(error, INVALID_ARGUMENT, "density",
                    "excludes mass, inertia and center_of_mass: shapes give them");
        }
        if (desc->shape_count == 0) {
            RW_FAIL(error, INVALID_ARGUMENT, "density", "needs shapes");
        }
        return RW_STATUS_OK;
    }
    if (desc->kind == RW_BODY_DYNAMIC) {
        RW_TRY(rw_bounds_positive(desc->mass, "mass", error));
        return rw_validate_inertia(desc->inertia, "inertia", error);
    }
    // Kinematic and static bodies need no mass; what is given must still make sense.
    RW_TRY(rw_bounds_not_negative(desc->mass, "mass", error));
    return desc->has_inertia ? rw_validate_inertia(desc->inertia, "inertia", error) : RW_STATUS_OK;
}

rw_status rw_validate_body(const rw_body_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_bounds_choice(desc->kind, 3, "kind", error));
    if (desc->shape_count > RW_SHAPES_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, "shapes", "must be at most %u, got %zu", RW_SHAPES_MAX,
                desc->shape_count);
    }
    RW_TRY(validate_mass(desc, error));
    RW_TRY(rw_validate_numbers(desc->position, 3, "position", error));
    RW_TRY(rw_validate_rotation(desc->rotation, "rotation", error));
    RW_TRY(rw_validate_numbers(desc->linear_velocity, 3, "linear_velocity", error));
    RW_TRY(rw_validate_numbers(desc->angular_velocity, 3, "angular_velocity", error));
    if (desc->kind == RW_BODY_STATIC) {
        for (int i = 0; i < 3; i++) {
            if (desc->linear_velocity[i] != 0) {
                RW_FAIL(error, INVALID_ARGUMENT, "linear_velocity",
                        "must be 0: a STATIC body stays");
            }
            if (desc->angular_velocity[i] != 0) {
                RW_FAIL(error, INVALID_ARGUMENT, "angular_velocity",
                        "must be 0: a STATIC body stays");
            }
        }
    }
    for (size_t i = 0; i < desc->shape_count; i++) {
        rw_status status = validate_shape(&desc->shapes[i], desc->kind, error);
        if (status != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "shapes[%zu]", i) : status;
        }
    }
    return rw_validate_surface(desc->friction, desc->restitution, desc->collision_group, error);
}

// ---- Joints ----

int32_t rw_validate_coordinate_count(rw_joint_type type) {
    static const int32_t counts[RW_JOINT_TYPE_COUNT] = {
        [RW_JOINT_REVOLUTE] = 1, [RW_JOINT_PRISMATIC] = 1, [RW_JOINT_CYLINDRICAL] = 2,
        [RW_JOINT_PLANAR] = 3,   [RW_JOINT_UNIVERSAL] = 2, [RW_JOINT_SPHERICAL] = 4,
    };
    return counts[type];
}

int32_t rw_validate_rate_count(rw_joint_type type) {
    return type == RW_JOINT_SPHERICAL ? 3 : rw_validate_coordinate_count(type);
}

rw_status rw_validate_motor(rw_joint_type type, const rw_motor_desc* motor, rw_error* error) {
    RW_TRY(rw_bounds_choice(motor->mode, 4, "mode", error));
    int32_t rates = rw_validate_rate_count(type);
    if (motor->mode != RW_MOTOR_NONE && rates == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "mode", "this type of joint has no coordinate to drive");
    }
    bool of_position = motor->mode == RW_MOTOR_POSITION || motor->mode == RW_MOTOR_NONE;
    size_t expected = (size_t)(of_position ? rw_validate_coordinate_count(type) : rates);
    if (motor->target_count != 0 && motor->target_count != expected) {
        RW_FAIL(error, INVALID_ARGUMENT, "target", "must hold %zu numbers, got %zu", expected,
                motor->target_count);
    }
    RW_TRY(rw_validate_numbers(motor->target, motor->target_count, "target", error));
    if (type == RW_JOINT_SPHERICAL && motor->target_count == 4) {
        RW_TRY(rw_validate_rotation(motor->target, "target", error));
    }
    RW_TRY(rw_bounds_not_negative(motor->stiffness, "stiffness", error));
    RW_TRY(rw_bounds_not_negative(motor->damping, "damping", error));
    return motor->has_max_effort ? rw_bounds_not_negative(motor->max_effort, "max_effort", error)
                                 : RW_STATUS_OK;
}

// A limit that only some types have.
static rw_status limit(bool given, double value, bool allowed, const char* field, const char* who,
                       rw_error* error) {
    if (!given) {
        return RW_STATUS_OK;
    }
    RW_TRY(rw_bounds_finite(value, field, error));
    if (!allowed) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "only %s joints have it", who);
    }
    return RW_STATUS_OK;
}

static rw_status ordered(bool both, double low, double high, const char* field, rw_error* error) {
    if (both && low > high) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be >= the lower limit %g, got %g", low, high);
    }
    return RW_STATUS_OK;
}

static rw_status validate_limits(const rw_joint_desc* desc, rw_error* error) {
    bool scalar = rw_validate_coordinate_count(desc->type) == 1;
    bool spherical = desc->type == RW_JOINT_SPHERICAL;
    const char* scalars = "REVOLUTE and PRISMATIC";
    RW_TRY(limit(desc->has_lower_limit, desc->lower_limit, scalar, "lower_limit", scalars, error));
    RW_TRY(limit(desc->has_upper_limit, desc->upper_limit, scalar, "upper_limit", scalars, error));
    RW_TRY(ordered(desc->has_lower_limit && desc->has_upper_limit, desc->lower_limit,
                   desc->upper_limit, "upper_limit", error));
    RW_TRY(limit(desc->has_swing_limit, desc->swing_limit, spherical, "swing_limit", "SPHERICAL",
                 error));
    if (desc->has_swing_limit && !(desc->swing_limit > 0 && desc->swing_limit < PI)) {
        RW_FAIL(error, INVALID_ARGUMENT, "swing_limit", "must lie in (0, pi), got %g",
                desc->swing_limit);
    }
    RW_TRY(limit(desc->has_twist_lower_limit, desc->twist_lower_limit, spherical,
                 "twist_lower_limit", "SPHERICAL", error));
    RW_TRY(limit(desc->has_twist_upper_limit, desc->twist_upper_limit, spherical,
                 "twist_upper_limit", "SPHERICAL", error));
    return ordered(desc->has_twist_lower_limit && desc->has_twist_upper_limit,
                   desc->twist_lower_limit, desc->twist_upper_limit, "twist_upper_limit", error);
}

rw_status rw_validate_joint(const rw_joint_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_bounds_choice(desc->type, RW_JOINT_TYPE_COUNT, "type", error));
    RW_TRY(name_or_empty(desc->parent, "parent", error));
    RW_TRY(name_or_empty(desc->child, "child", error));
    if (strcmp(desc->parent, desc->child) == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "child", "must not be the parent, got \"%s\" twice",
                desc->child);
    }
    RW_TRY(frame(&desc->parent_frame, "parent_frame", error));
    RW_TRY(frame(&desc->child_frame, "child_frame", error));
    RW_TRY(validate_limits(desc, error));
    if (desc->has_distance) {
        RW_TRY(rw_bounds_not_negative(desc->distance, "distance", error));
        if (desc->type != RW_JOINT_DISTANCE) {
            RW_FAIL(error, INVALID_ARGUMENT, "distance", "only DISTANCE joints have it");
        }
    }
    rw_status status = rw_validate_motor(desc->type, &desc->motor, error);
    if (status != RW_STATUS_OK) {
        return error != NULL ? rw_status_prefix(error, "motor") : status;
    }
    RW_TRY(rw_bounds_not_negative(desc->compliance, "compliance", error));
    return rw_bounds_not_negative(desc->damping, "damping", error);
}

rw_status rw_validate_coupling(const rw_coupling_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_validate_name(desc->joint_a, "joint_a", error));
    RW_TRY(rw_validate_name(desc->joint_b, "joint_b", error));
    if (strcmp(desc->joint_a, desc->joint_b) == 0 && desc->coordinate_a == desc->coordinate_b) {
        RW_FAIL(error, INVALID_ARGUMENT, "joint_b", "must be another coordinate than joint_a's");
    }
    RW_TRY(rw_bounds_finite(desc->ratio, "ratio", error));
    if (desc->ratio == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "ratio", "must not be 0");
    }
    RW_TRY(rw_bounds_finite(desc->offset, "offset", error));
    return rw_bounds_not_negative(desc->compliance, "compliance", error);
}

int64_t rw_validate_node_count(const rw_rod_desc* desc) {
    switch (desc->geometry) {
    case RW_ROD_POLYLINE:
        return (int64_t)(desc->polyline.positions.count / 3);
    case RW_ROD_GRAPH:
        return (int64_t)(desc->graph.positions.count / 3);
    case RW_ROD_STRAIGHT:
    case RW_ROD_HELIX:
        break;
    }
    return (int64_t)desc->elements * (desc->method == RW_ROD_RIGID_CHAIN ? 1 : desc->order) + 1;
}

// ---- Attachments, forces, inputs ----

// A node by `s` or by `node`, not both.
static rw_status place(bool has_s, double s, bool has_node, const char* outer, rw_error* error) {
    char path[RW_BOUNDS_FIELD_CAPACITY];
    JOIN(path, outer, "s");
    if (has_s && has_node) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be given beside node");
    }
    return rw_bounds_fraction(s, path, error);
}

rw_status rw_validate_attachment(const rw_attachment_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_validate_name(desc->rod, "rod", error));
    RW_TRY(rw_bounds_choice(desc->kind, 3, "kind", error));
    RW_TRY(place(desc->has_s, desc->s, desc->has_node, "", error));
    RW_TRY(name_or_empty(desc->body, "body", error));
    RW_TRY(rw_validate_numbers(desc->position, 3, "position", error));
    if (desc->has_rotation) {
        RW_TRY(rw_validate_rotation(desc->rotation, "rotation", error));
        if (desc->kind == RW_ATTACH_PIN) {
            RW_FAIL(error, INVALID_ARGUMENT, "rotation", "a PIN holds no rotation");
        }
    }
    return rw_bounds_not_negative(desc->compliance, "compliance", error);
}

static rw_status validate_point(const rw_point_desc* point, const char* outer, rw_error* error) {
    char path[RW_BOUNDS_FIELD_CAPACITY];
    JOIN(path, outer, "body");
    RW_TRY(name_or_empty(point->body, path, error));
    JOIN(path, outer, "rod");
    RW_TRY(name_or_empty(point->rod, path, error));
    if (point->body[0] != '\0' && point->rod[0] != '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be given beside body");
    }
    JOIN(path, outer, "position");
    RW_TRY(rw_validate_numbers(point->position, 3, path, error));
    bool has_position =
        point->position[0] != 0 || point->position[1] != 0 || point->position[2] != 0;
    if (point->rod[0] != '\0' && has_position) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be given beside rod: use s or node");
    }
    if (point->rod[0] == '\0' && (point->has_s || point->has_node)) {
        JOIN(path, outer, point->has_s ? "s" : "node");
        RW_FAIL(error, INVALID_ARGUMENT, path, "needs a rod");
    }
    return place(point->has_s, point->s, point->has_node, outer, error);
}

static rw_status validate_spring(const rw_force_desc* desc, rw_error* error) {
    RW_TRY(validate_point(&desc->spring_damper.a, "spring_damper.a", error));
    RW_TRY(validate_point(&desc->spring_damper.b, "spring_damper.b", error));
    const rw_point_desc* ends[2] = {&desc->spring_damper.a, &desc->spring_damper.b};
    if (ends[0]->body[0] == '\0' && ends[0]->rod[0] == '\0' && ends[1]->body[0] == '\0' &&
        ends[1]->rod[0] == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "spring_damper.a",
                "a spring holds a body or a rod at one end at least: name one");
    }
    RW_TRY(rw_bounds_not_negative(desc->spring_damper.stiffness, "spring_damper.stiffness", error));
    RW_TRY(rw_bounds_not_negative(desc->spring_damper.damping, "spring_damper.damping", error));
    return desc->spring_damper.has_rest_length
               ? rw_bounds_not_negative(desc->spring_damper.rest_length,
                                        "spring_damper.rest_length", error)
               : RW_STATUS_OK;
}

static rw_status validate_load(const rw_force_desc* desc, rw_error* error) {
    RW_TRY(validate_point(&desc->load.at, "load", error));
    if (desc->load.at.body[0] == '\0' && desc->load.at.rod[0] == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "load.body", "a load acts on a body or a rod: name one");
    }
    RW_TRY(rw_validate_numbers(desc->load.force, 3, "load.force", error));
    RW_TRY(rw_validate_numbers(desc->load.torque, 3, "load.torque", error));
    return rw_bounds_choice(desc->load.frame, 2, "load.frame", error);
}

rw_status rw_validate_force(const rw_force_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    switch (desc->kind) {
    case RW_FORCE_SPRING_DAMPER:
        return validate_spring(desc, error);
    case RW_FORCE_LOAD:
        return validate_load(desc, error);
    case RW_FORCE_DRAG:
        RW_TRY(rw_validate_name(desc->drag.at.body, "drag.body", error));
        RW_TRY(rw_bounds_not_negative(desc->drag.linear, "drag.linear", error));
        RW_TRY(rw_bounds_not_negative(desc->drag.quadratic, "drag.quadratic", error));
        return rw_bounds_not_negative(desc->drag.angular, "drag.angular", error);
    }
    RW_FAIL(error, INVALID_ARGUMENT, "law", "must be spring_damper, load or drag");
}

static rw_status validate_samples(const rw_input_desc* desc, const char* outer, size_t at_least,
                                  rw_error* error) {
    char path[RW_BOUNDS_FIELD_CAPACITY];
    JOIN(path, outer, "time");
    if (desc->time.count < at_least) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must hold at least %zu times, got %zu", at_least,
                desc->time.count);
    }
    RW_TRY(rw_validate_numbers(desc->time.data, desc->time.count, path, error));
    for (size_t i = 1; i < desc->time.count; i++) {
        if (!(desc->time.data[i] > desc->time.data[i - 1])) {
            char item[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(item, sizeof item, "%s[%zu]", path, i);
            RW_FAIL(error, INVALID_ARGUMENT, item, "must be later than %g, got %g",
                    desc->time.data[i - 1], desc->time.data[i]);
        }
    }
    JOIN(path, outer, "value");
    RW_TRY(rw_validate_numbers(desc->value.data, desc->value.count, path, error));
    if (desc->value.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must hold numbers");
    }
    return rw_bounds_rows(desc->value.count, desc->time.count, path, error);
}

rw_status rw_validate_input(const rw_input_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    if (memchr(desc->target, '\0', sizeof desc->target) == NULL || desc->target[0] == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "target", "must name what is driven");
    }
    switch (desc->kind) {
    case RW_INPUT_PIECEWISE_LINEAR:
        return validate_samples(desc, "piecewise_linear", 1, error);
    case RW_INPUT_CUBIC:
        RW_TRY(validate_samples(desc, "cubic", 2, error));
        if (desc->slope.count != 0) {
            RW_TRY(rw_bounds_length(desc->slope.count, desc->value.count, "cubic.slope", error));
        }
        return rw_validate_numbers(desc->slope.data, desc->slope.count, "cubic.slope", error);
    case RW_INPUT_SINE:
        RW_TRY(rw_validate_numbers(desc->amplitude.data, desc->amplitude.count, "sine.amplitude",
                                   error));
        RW_TRY(rw_bounds_not_negative(desc->frequency, "sine.frequency", error));
        RW_TRY(rw_bounds_finite(desc->phase, "sine.phase", error));
        if (desc->offset.count != 0) {
            RW_TRY(
                rw_bounds_length(desc->offset.count, desc->amplitude.count, "sine.offset", error));
        }
        return rw_validate_numbers(desc->offset.data, desc->offset.count, "sine.offset", error);
    }
    RW_FAIL(error, INVALID_ARGUMENT, "function", "must be piecewise_linear, cubic or sine");
}
