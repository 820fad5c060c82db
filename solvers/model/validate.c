#include "solvers/model/validate.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/small_spd.h"
#include "solvers/math/vec3.h"

#define PI 3.14159265358979323846
#define FIELD_CAPACITY 96
#define ITEM_CAPACITY (FIELD_CAPACITY + 24) // a field and "[index]"

// "a.b" of two path parts; `outer` may be empty.
#define JOIN(buffer, outer, inner)                                                                 \
    snprintf((buffer), FIELD_CAPACITY, "%s%s%s", (outer), (outer)[0] != '\0' ? "." : "", (inner))

// ---- Scalars ----

static rw_status number(double value, const char* field, rw_error* error) {
    if (!isfinite(value)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be finite, got %g", value);
    }
    if (fabs(value) > RW_MAGNITUDE_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be at most %g in magnitude, got %g",
                RW_MAGNITUDE_MAX, value);
    }
    return RW_STATUS_OK;
}

static rw_status positive(double value, const char* field, rw_error* error) {
    RW_TRY(number(value, field, error));
    // Squares and reciprocals must stay normal numbers.
    if (!(value > 0)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be > 0, got %g", value);
    }
    if (value < 1 / RW_MAGNITUDE_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be >= %g, got %g", 1 / RW_MAGNITUDE_MAX,
                value);
    }
    return RW_STATUS_OK;
}

static rw_status not_negative(double value, const char* field, rw_error* error) {
    RW_TRY(number(value, field, error));
    if (!(value >= 0)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be >= 0, got %g", value);
    }
    return RW_STATUS_OK;
}

static rw_status fraction(double value, const char* field, rw_error* error) {
    RW_TRY(number(value, field, error));
    if (value < 0 || value > 1) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [0, 1], got %g", value);
    }
    return RW_STATUS_OK;
}

static rw_status one_of(unsigned value, unsigned count, const char* field, rw_error* error) {
    if (value >= count) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "has no value %u", value);
    }
    return RW_STATUS_OK;
}

static rw_status integer(uint32_t value, uint32_t low, uint32_t high, const char* field,
                         rw_error* error) {
    if (value < low || value > high) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [%u, %u], got %u", low, high, value);
    }
    return RW_STATUS_OK;
}

// ---- Arrays ----

rw_status rw_validate_numbers(const double* values, size_t count, const char* field,
                              rw_error* error) {
    for (size_t i = 0; i < count; i++) {
        // One comparison catches NaN too.
        if (!(fabs(values[i]) <= RW_MAGNITUDE_MAX)) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return number(values[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

static rw_status positives(rw_doubles values, const char* field, rw_error* error) {
    for (size_t i = 0; i < values.count; i++) {
        if (!(values.data[i] >= 1 / RW_MAGNITUDE_MAX && values.data[i] <= RW_MAGNITUDE_MAX)) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return positive(values.data[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

static rw_status not_negatives(rw_doubles values, const char* field, rw_error* error) {
    for (size_t i = 0; i < values.count; i++) {
        if (!(values.data[i] >= 0 && values.data[i] <= RW_MAGNITUDE_MAX)) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return not_negative(values.data[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

// Exactly `count` numbers.
static rw_status length_is(size_t count, size_t expected, const char* field, rw_error* error) {
    if (count != expected) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold %zu numbers, got %zu", expected, count);
    }
    return RW_STATUS_OK;
}

static rw_status rows_of(size_t count, size_t width, const char* field, rw_error* error) {
    if (count % width != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be n x %zu numbers, got %zu", width, count);
    }
    return RW_STATUS_OK;
}

static rw_status no_array(size_t count, const char* field, const char* why, rw_error* error) {
    if (count != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "%s", why);
    }
    return RW_STATUS_OK;
}

// A direction: three numbers, not all zero.
static rw_status direction(const double* values, const char* field, rw_error* error) {
    RW_TRY(rw_validate_numbers(values, 3, field, error));
    double norm = rw_vec3_norm(rw_vec3_load(values));
    if (!(norm >= 1e-100)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must not be the zero vector");
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

static rw_status rotations(rw_doubles values, const char* field, rw_error* error) {
    for (size_t row = 0; row < values.count / 4; row++) {
        if (rw_validate_rotation(values.data + 4 * row, "", NULL) != RW_STATUS_OK) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, 4 * row);
            return rw_validate_rotation(values.data + 4 * row, path, error);
        }
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
    char path[FIELD_CAPACITY];
    JOIN(path, field, "position");
    RW_TRY(rw_validate_numbers(value->position, 3, path, error));
    JOIN(path, field, "rotation");
    return rw_validate_rotation(value->rotation, path, error);
}

// ---- Names ----

static bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == ':' || c == '-';
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
    RW_TRY(one_of(solver->dae.integrator, 5, "solver.dae.integrator", error));
    RW_TRY(one_of(solver->dae.stabilization, 3, "solver.dae.stabilization", error));
    const struct {
        double value;
        const char* field;
    } tolerances[] = {{solver->dae.relative_tolerance, "solver.dae.relative_tolerance"},
                      {solver->dae.absolute_tolerance, "solver.dae.absolute_tolerance"}};
    for (size_t i = 0; i < RW_COUNT_OF(tolerances); i++) {
        RW_TRY(positive(tolerances[i].value, tolerances[i].field, error));
        if (tolerances[i].value >= 1) {
            RW_FAIL(error, INVALID_ARGUMENT, tolerances[i].field, "must be < 1, got %g",
                    tolerances[i].value);
        }
    }
    double h = scene->time_step / scene->substeps;
    if (solver->dae.has_baumgarte_alpha) {
        RW_TRY(not_negative(solver->dae.baumgarte_alpha, "solver.dae.baumgarte_alpha", error));
        if (solver->dae.baumgarte_alpha * h > 1) {
            RW_FAIL(error, INVALID_ARGUMENT, "solver.dae.baumgarte_alpha",
                    "times the step of %g s must be <= 1, got %g", h,
                    solver->dae.baumgarte_alpha * h);
        }
    }
    if (solver->dae.has_baumgarte_beta) {
        RW_TRY(not_negative(solver->dae.baumgarte_beta, "solver.dae.baumgarte_beta", error));
    }
    return RW_STATUS_OK;
}

static rw_status residual(double value, const char* field, rw_error* error) {
    RW_TRY(number(value, field, error));
    if (value < 0 || value >= 1) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [0, 1), got %g", value);
    }
    return RW_STATUS_OK;
}

static rw_status validate_contact(const rw_solver_options* solver, rw_error* error) {
    RW_TRY(not_negative(solver->contact.compliance, "solver.contact.compliance", error));
    RW_TRY(positive(solver->contact.stiffness, "solver.contact.stiffness", error));
    RW_TRY(not_negative(solver->contact.damping, "solver.contact.damping", error));
    RW_TRY(positive(solver->contact.slip_velocity, "solver.contact.slip_velocity", error));
    return not_negative(solver->contact.margin, "solver.contact.margin", error);
}

rw_status rw_validate_options(const rw_scene* scene, rw_error* error) {
    if (memchr(scene->name, '\0', sizeof scene->name) == NULL) {
        RW_FAIL(error, INVALID_ARGUMENT, "name", "must be at most 255 bytes");
    }
    RW_TRY(rw_validate_numbers(scene->gravity, 3, "gravity", error));
    RW_TRY(rw_validate_numbers(scene->wind, 3, "wind", error));
    RW_TRY(positive(scene->time_step, "time_step", error));
    if (scene->time_step < RW_TIME_STEP_MIN || scene->time_step > RW_TIME_STEP_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, "time_step", "must lie in [%g, %g] s, got %g",
                RW_TIME_STEP_MIN, RW_TIME_STEP_MAX, scene->time_step);
    }
    RW_TRY(integer(scene->substeps, 1, RW_SUBSTEPS_MAX, "substeps", error));
    const rw_solver_options* solver = &scene->solver;
    if (solver->rigid != RW_SOLVER_XPBD && solver->rigid != RW_SOLVER_DAE) {
        RW_FAIL(error, INVALID_ARGUMENT, "solver.rigid", "must be XPBD or DAE");
    }
    if (solver->rods != RW_SOLVER_XPBD && solver->rods != RW_SOLVER_SCR) {
        RW_FAIL(error, INVALID_ARGUMENT, "solver.rods", "must be XPBD or SCR");
    }
    RW_TRY(one_of(solver->device, 3, "solver.device", error));
    if (solver->device == RW_DEVICE_GPU) {
        RW_FAIL(error, UNAVAILABLE, "solver.device", "this server has no GPU");
    }
    RW_TRY(integer(solver->xpbd.iterations, 1, 10000, "solver.xpbd.iterations", error));
    RW_TRY(residual(solver->xpbd.residual_tolerance, "solver.xpbd.residual_tolerance", error));
    RW_TRY(validate_dae(scene, error));
    RW_TRY(integer(solver->scr.iterations, 1, 1000000, "solver.scr.iterations", error));
    RW_TRY(residual(solver->scr.residual_tolerance, "solver.scr.residual_tolerance", error));
    RW_TRY(one_of(solver->scr.lambda, 2, "solver.scr.lambda", error));
    RW_TRY(one_of(solver->scr.order, 2, "solver.scr.order", error));
    return validate_contact(solver, error);
}

// ---- Bodies ----

static rw_status surface(double friction, double restitution, uint32_t group, rw_error* error) {
    RW_TRY(not_negative(friction, "friction", error));
    RW_TRY(fraction(restitution, "restitution", error));
    return integer(group, 0, 31, "collision_group", error);
}

rw_status rw_validate_inertia(const double inertia[6], const char* field, rw_error* error) {
    RW_TRY(rw_validate_numbers(inertia, 6, field, error));
    rw_mat3 tensor = rw_mat3_symmetric(inertia);
    rw_mat3 vectors;
    double moments[3];
    rw_small_spd_eigen3(&tensor, moments, &vectors);
    if (!(moments[0] > 1e-12 * moments[2]) || !(moments[0] >= 1 / RW_MAGNITUDE_MAX)) {
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
    RW_TRY(rows_of(shape->vertices.count, 3, field, error));
    size_t rows = shape->vertices.count / 3;
    if (rows < (is_hull ? 4 : 3) || rows > (is_hull ? 65535u : UINT32_MAX)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold at least %d rows of 3%s, got %zu",
                is_hull ? 4 : 3, is_hull ? " and at most 65535" : "", rows);
    }
    RW_TRY(rw_validate_numbers(shape->vertices.data, shape->vertices.count, field, error));
    if (is_hull) {
        return RW_STATUS_OK;
    }
    RW_TRY(rows_of(shape->triangles.count, 3, "mesh.triangles", error));
    if (shape->triangles.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "mesh.triangles", "must hold at least one row of 3");
    }
    for (size_t i = 0; i < shape->triangles.count; i++) {
        if (shape->triangles.data[i] >= rows) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "mesh.triangles[%zu]", i);
            RW_FAIL(error, OUT_OF_RANGE, path, "must be < %zu, got %u", rows,
                    shape->triangles.data[i]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status validate_shape(const rw_shape_desc* shape, rw_body_kind body, rw_error* error) {
    RW_TRY(one_of(shape->kind, 7, "geometry", error));
    RW_TRY(frame(&shape->frame, "", error));
    RW_TRY(not_negative(shape->density, "density", error));
    const char* name = shape_names[shape->kind];
    char path[FIELD_CAPACITY];
    switch (shape->kind) {
    case RW_SHAPE_SPHERE:
        return positive(shape->radius, "sphere.radius", error);
    case RW_SHAPE_CAPSULE:
    case RW_SHAPE_CYLINDER:
        JOIN(path, name, "radius");
        RW_TRY(positive(shape->radius, path, error));
        JOIN(path, name, "half_length");
        return shape->kind == RW_SHAPE_CAPSULE ? not_negative(shape->half_length, path, error)
                                               : positive(shape->half_length, path, error);
    case RW_SHAPE_BOX:
        return positives((rw_doubles){shape->half_extents, 3}, "box.half_extents", error);
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
        RW_TRY(positive(desc->density, "density", error));
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
        RW_TRY(positive(desc->mass, "mass", error));
        return rw_validate_inertia(desc->inertia, "inertia", error);
    }
    // Kinematic and static bodies need no mass; what is given must still make sense.
    RW_TRY(not_negative(desc->mass, "mass", error));
    return desc->has_inertia ? rw_validate_inertia(desc->inertia, "inertia", error)
                             : RW_STATUS_OK;
}

rw_status rw_validate_body(const rw_body_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(one_of(desc->kind, 3, "kind", error));
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
                RW_FAIL(error, INVALID_ARGUMENT, "linear_velocity", "must be 0: a STATIC body stays");
            }
            if (desc->angular_velocity[i] != 0) {
                RW_FAIL(error, INVALID_ARGUMENT, "angular_velocity", "must be 0: a STATIC body stays");
            }
        }
    }
    for (size_t i = 0; i < desc->shape_count; i++) {
        rw_status status = validate_shape(&desc->shapes[i], desc->kind, error);
        if (status != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "shapes[%zu]", i) : status;
        }
    }
    return surface(desc->friction, desc->restitution, desc->collision_group, error);
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
    RW_TRY(one_of(motor->mode, 4, "mode", error));
    int32_t rates = rw_validate_rate_count(type);
    if (motor->mode != RW_MOTOR_NONE && rates == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "mode", "this type of joint has no coordinate to drive");
    }
    bool of_position = motor->mode == RW_MOTOR_POSITION || motor->mode == RW_MOTOR_NONE;
    size_t expected =
        (size_t)(of_position ? rw_validate_coordinate_count(type) : rates);
    if (motor->target_count != 0 && motor->target_count != expected) {
        RW_FAIL(error, INVALID_ARGUMENT, "target", "must hold %zu numbers, got %zu", expected,
                motor->target_count);
    }
    RW_TRY(rw_validate_numbers(motor->target, motor->target_count, "target", error));
    if (type == RW_JOINT_SPHERICAL && motor->target_count == 4) {
        RW_TRY(rw_validate_rotation(motor->target, "target", error));
    }
    RW_TRY(not_negative(motor->stiffness, "stiffness", error));
    RW_TRY(not_negative(motor->damping, "damping", error));
    return motor->has_max_effort ? not_negative(motor->max_effort, "max_effort", error)
                                 : RW_STATUS_OK;
}

// A limit that only some types have.
static rw_status limit(bool given, double value, bool allowed, const char* field,
                       const char* who, rw_error* error) {
    if (!given) {
        return RW_STATUS_OK;
    }
    RW_TRY(number(value, field, error));
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
    RW_TRY(one_of(desc->type, RW_JOINT_TYPE_COUNT, "type", error));
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
        RW_TRY(not_negative(desc->distance, "distance", error));
        if (desc->type != RW_JOINT_DISTANCE) {
            RW_FAIL(error, INVALID_ARGUMENT, "distance", "only DISTANCE joints have it");
        }
    }
    rw_status status = rw_validate_motor(desc->type, &desc->motor, error);
    if (status != RW_STATUS_OK) {
        return error != NULL ? rw_status_prefix(error, "motor") : status;
    }
    RW_TRY(not_negative(desc->compliance, "compliance", error));
    return not_negative(desc->damping, "damping", error);
}

rw_status rw_validate_coupling(const rw_coupling_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_validate_name(desc->joint_a, "joint_a", error));
    RW_TRY(rw_validate_name(desc->joint_b, "joint_b", error));
    if (strcmp(desc->joint_a, desc->joint_b) == 0 && desc->coordinate_a == desc->coordinate_b) {
        RW_FAIL(error, INVALID_ARGUMENT, "joint_b", "must be another coordinate than joint_a's");
    }
    RW_TRY(number(desc->ratio, "ratio", error));
    if (desc->ratio == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "ratio", "must not be 0");
    }
    RW_TRY(number(desc->offset, "offset", error));
    return not_negative(desc->compliance, "compliance", error);
}

// ---- Rods ----

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

// d1 must not lie along the tangent.
static rw_status normal_across(const double* normal, rw_vec3 tangent, const char* field,
                               rw_error* error) {
    RW_TRY(direction(normal, field, error));
    rw_vec3 n = rw_vec3_normalize(rw_vec3_load(normal));
    if (rw_vec3_norm(rw_vec3_cross(n, rw_vec3_normalize(tangent))) < 1e-6) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must not be parallel to the rod");
    }
    return RW_STATUS_OK;
}

static rw_vec3 chord(const double* positions, size_t from, size_t to) {
    return rw_vec3_sub(rw_vec3_load(positions + 3 * to), rw_vec3_load(positions + 3 * from));
}

// Two points that are to be joined must lie apart.
static bool apart(const double* positions, size_t from, size_t to) {
    return rw_vec3_norm(chord(positions, from, to)) >= 1e-12;
}

static rw_status validate_straight(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_numbers(desc->straight.start, 3, "straight.start", error));
    RW_TRY(rw_validate_numbers(desc->straight.end, 3, "straight.end", error));
    rw_vec3 along = rw_vec3_sub(rw_vec3_load(desc->straight.end),
                                rw_vec3_load(desc->straight.start));
    if (!(rw_vec3_norm(along) >= 1e-12)) {
        RW_FAIL(error, INVALID_ARGUMENT, "straight.end", "must not be the start");
    }
    return desc->straight.has_normal
               ? normal_across(desc->straight.normal, along, "straight.normal", error)
               : RW_STATUS_OK;
}

static rw_status validate_helix(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_numbers(desc->helix.center, 3, "helix.center", error));
    RW_TRY(direction(desc->helix.axis, "helix.axis", error));
    RW_TRY(positive(desc->helix.radius, "helix.radius", error));
    RW_TRY(number(desc->helix.pitch, "helix.pitch", error));
    RW_TRY(number(desc->helix.turns, "helix.turns", error));
    if (desc->helix.turns == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "helix.turns", "must not be 0");
    }
    return desc->helix.has_normal
               ? normal_across(desc->helix.normal, rw_vec3_load(desc->helix.axis), "helix.normal",
                               error)
               : RW_STATUS_OK;
}

static rw_status validate_polyline(const rw_rod_desc* desc, rw_error* error) {
    rw_doubles positions = desc->polyline.positions;
    RW_TRY(rows_of(positions.count, 3, "polyline.positions", error));
    size_t nodes = positions.count / 3;
    if (nodes < 2 || (nodes - 1) % desc->order != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "polyline.positions",
                "must hold elements * order + 1 nodes (order %u), got %zu", desc->order, nodes);
    }
    RW_TRY(rw_validate_numbers(positions.data, positions.count, "polyline.positions", error));
    if (desc->elements != 0 && desc->elements != (nodes - 1) / desc->order) {
        RW_FAIL(error, INVALID_ARGUMENT, "elements", "must be %zu for %zu nodes, got %u",
                (nodes - 1) / desc->order, nodes, desc->elements);
    }
    for (size_t i = 1; i < nodes; i++) {
        if (!apart(positions.data, i - 1, i)) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "polyline.positions[%zu]", 3 * i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "node %zu lies on the node before it", i);
        }
    }
    if (desc->polyline.rotations.count != 0) {
        RW_TRY(length_is(desc->polyline.rotations.count, 4 * nodes, "polyline.rotations", error));
        RW_TRY(rotations(desc->polyline.rotations, "polyline.rotations", error));
    }
    if (desc->polyline.has_normal) {
        RW_TRY(no_array(desc->polyline.rotations.count, "polyline.normal",
                        "must not be given beside rotations", error));
        return normal_across(desc->polyline.normal, chord(positions.data, 0, 1),
                             "polyline.normal", error);
    }
    return RW_STATUS_OK;
}

static rw_status index_below(rw_uints values, size_t i, size_t limit_value, const char* field,
                             rw_error* error) {
    if (values.data[i] >= limit_value) {
        char path[ITEM_CAPACITY];
        snprintf(path, sizeof path, "%s[%zu]", field, i);
        RW_FAIL(error, OUT_OF_RANGE, path, "must be < %zu, got %u", limit_value, values.data[i]);
    }
    return RW_STATUS_OK;
}

static rw_status validate_segments(const rw_rod_desc* desc, rw_error* error) {
    rw_uints segments = desc->graph.segments;
    size_t vertices = desc->graph.positions.count / 3;
    RW_TRY(rows_of(segments.count, 2, "graph.segments", error));
    if (segments.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "graph.segments", "must hold at least one row of 2");
    }
    for (size_t i = 0; i < segments.count; i += 2) {
        RW_TRY(index_below(segments, i, vertices, "graph.segments", error));
        RW_TRY(index_below(segments, i + 1, vertices, "graph.segments", error));
        if (segments.data[i] == segments.data[i + 1] ||
            !apart(desc->graph.positions.data, segments.data[i], segments.data[i + 1])) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "graph.segments[%zu]", i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "joins vertices %u and %u at the same place",
                    segments.data[i], segments.data[i + 1]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status validate_bends(const rw_rod_desc* desc, rw_error* error) {
    rw_uints bends = desc->graph.bends;
    const uint32_t* ends = desc->graph.segments.data;
    size_t segments = desc->graph.segments.count / 2;
    RW_TRY(rows_of(bends.count, 2, "graph.bends", error));
    for (size_t i = 0; i < bends.count; i += 2) {
        RW_TRY(index_below(bends, i, segments, "graph.bends", error));
        RW_TRY(index_below(bends, i + 1, segments, "graph.bends", error));
        const uint32_t* a = ends + 2 * (size_t)bends.data[i];
        const uint32_t* b = ends + 2 * (size_t)bends.data[i + 1];
        bool meet = a[0] == b[0] || a[0] == b[1] || a[1] == b[0] || a[1] == b[1];
        if (bends.data[i] == bends.data[i + 1] || !meet) {
            char path[ITEM_CAPACITY];
            snprintf(path, sizeof path, "graph.bends[%zu]", i);
            RW_FAIL(error, INVALID_ARGUMENT, path, "segments %u and %u share no vertex",
                    bends.data[i], bends.data[i + 1]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status empty_or(size_t count, size_t expected, const char* field, rw_error* error) {
    return count == 0 ? RW_STATUS_OK : length_is(count, expected, field, error);
}

static rw_status validate_graph(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rows_of(desc->graph.positions.count, 3, "graph.positions", error));
    size_t vertices = desc->graph.positions.count / 3;
    if (vertices < 2) {
        RW_FAIL(error, INVALID_ARGUMENT, "graph.positions", "must hold at least 2 rows of 3, got %zu",
                vertices);
    }
    RW_TRY(rw_validate_numbers(desc->graph.positions.data, desc->graph.positions.count,
                               "graph.positions", error));
    RW_TRY(validate_segments(desc, error));
    RW_TRY(validate_bends(desc, error));
    size_t segments = desc->graph.segments.count / 2, bends = desc->graph.bends.count / 2;
    RW_TRY(empty_or(desc->graph.vertex_masses.count, vertices, "graph.vertex_masses", error));
    RW_TRY(positives(desc->graph.vertex_masses, "graph.vertex_masses", error));
    RW_TRY(empty_or(desc->graph.segment_stiffness.count, segments, "graph.segment_stiffness",
                    error));
    RW_TRY(positives(desc->graph.segment_stiffness, "graph.segment_stiffness", error));
    RW_TRY(empty_or(desc->graph.segment_rest_lengths.count, segments,
                    "graph.segment_rest_lengths", error));
    RW_TRY(positives(desc->graph.segment_rest_lengths, "graph.segment_rest_lengths", error));
    RW_TRY(empty_or(desc->graph.segment_rotations.count, 4 * segments, "graph.segment_rotations",
                    error));
    RW_TRY(rotations(desc->graph.segment_rotations, "graph.segment_rotations", error));
    if (bends == 0) {
        const char* why = "needs bends";
        RW_TRY(no_array(desc->graph.bend_stiffness.count, "graph.bend_stiffness", why, error));
        RW_TRY(no_array(desc->graph.bend_rest_rotations.count, "graph.bend_rest_rotations", why,
                        error));
    }
    RW_TRY(empty_or(desc->graph.bend_stiffness.count, bends, "graph.bend_stiffness", error));
    RW_TRY(not_negatives(desc->graph.bend_stiffness, "graph.bend_stiffness", error));
    RW_TRY(empty_or(desc->graph.bend_rest_rotations.count, 4 * bends, "graph.bend_rest_rotations",
                    error));
    RW_TRY(rotations(desc->graph.bend_rest_rotations, "graph.bend_rest_rotations", error));
    if (desc->elements != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "elements", "a graph has segments: leave it out");
    }
    if (desc->order != 1 || desc->method != RW_ROD_ELEMENTS) {
        RW_FAIL(error, INVALID_ARGUMENT, desc->order != 1 ? "order" : "method",
                "a graph has segments of order 1");
    }
    return RW_STATUS_OK;
}

static rw_status validate_section(const rw_rod_desc* desc, size_t elements, bool needed,
                                  rw_error* error) {
    RW_TRY(one_of(desc->section, 3, "section", error));
    switch (desc->section) {
    case RW_SECTION_CIRCLE: {
        size_t count = desc->section_radius.count;
        if (count == 0 && needed) {
            RW_FAIL(error, INVALID_ARGUMENT, "section",
                    "must be given: radius, or width and height, or area, i1, i2 and j");
        }
        bool tapers = desc->geometry != RW_ROD_GRAPH;
        if (count > 1 && (!tapers || count != elements + 1)) {
            if (!tapers) {
                RW_FAIL(error, INVALID_ARGUMENT, "section.radius",
                        "must hold 1 number for a graph, got %zu", count);
            }
            RW_FAIL(error, INVALID_ARGUMENT, "section.radius",
                    "must hold 1 or elements + 1 = %zu numbers, got %zu", elements + 1, count);
        }
        return count == 1 ? positive(desc->section_radius.data[0], "section.radius", error)
                          : positives(desc->section_radius, "section.radius", error);
    }
    case RW_SECTION_RECTANGLE:
        RW_TRY(positive(desc->section_width, "section.width", error));
        return positive(desc->section_height, "section.height", error);
    case RW_SECTION_GENERAL:
        RW_TRY(positive(desc->section_area, "section.area", error));
        RW_TRY(positive(desc->section_i1, "section.i1", error));
        RW_TRY(positive(desc->section_i2, "section.i2", error));
        return positive(desc->section_j, "section.j", error);
    }
    return RW_STATUS_OK;
}

static rw_status validate_material(const rw_rod_desc* desc, bool stiffness_needed,
                                   bool density_needed, rw_error* error) {
    RW_TRY(density_needed ? positive(desc->density, "density", error)
                          : not_negative(desc->density, "density", error));
    if (desc->has_stiffness) {
        RW_TRY(positive(desc->stiffness.ea, "stiffness.ea", error));
        RW_TRY(positive(desc->stiffness.ga1, "stiffness.ga1", error));
        RW_TRY(positive(desc->stiffness.ga2, "stiffness.ga2", error));
        RW_TRY(positive(desc->stiffness.ei1, "stiffness.ei1", error));
        RW_TRY(positive(desc->stiffness.ei2, "stiffness.ei2", error));
        RW_TRY(positive(desc->stiffness.gj, "stiffness.gj", error));
        stiffness_needed = false;
    }
    if (stiffness_needed || desc->has_young_modulus) {
        RW_TRY(positive(desc->young_modulus, "young_modulus", error));
    }
    if (desc->has_poisson_ratio) {
        RW_TRY(number(desc->poisson_ratio, "poisson_ratio", error));
        if (!(desc->poisson_ratio > -1 && desc->poisson_ratio <= 0.5)) {
            RW_FAIL(error, INVALID_ARGUMENT, "poisson_ratio", "must lie in (-1, 0.5], got %g",
                    desc->poisson_ratio);
        }
    }
    if (desc->has_shear_modulus) {
        RW_TRY(positive(desc->shear_modulus, "shear_modulus", error));
        if (desc->has_poisson_ratio) {
            RW_FAIL(error, INVALID_ARGUMENT, "shear_modulus",
                    "must not be given beside poisson_ratio");
        }
    }
    RW_TRY(number(desc->shear_factor, "shear_factor", error));
    if (!(desc->shear_factor > 0 && desc->shear_factor <= 1)) {
        RW_FAIL(error, INVALID_ARGUMENT, "shear_factor", "must lie in (0, 1], got %g",
                desc->shear_factor);
    }
    RW_TRY(not_negative(desc->damping, "damping", error));
    RW_TRY(not_negative(desc->mass_damping, "mass_damping", error));
    RW_TRY(not_negative(desc->drag, "drag", error));
    return not_negative(desc->quadratic_drag, "quadratic_drag", error);
}

static rw_status validate_rest(const rw_rod_desc* desc, size_t elements, rw_error* error) {
    RW_TRY(one_of(desc->rest, 4, "rest", error));
    rw_doubles curvature = desc->rest_curvature;
    if (desc->geometry == RW_ROD_GRAPH) {
        RW_TRY(no_array(curvature.count, "rest_curvature",
                        "a graph takes graph.bend_rest_rotations", error));
        if (desc->has_rest_length) {
            RW_FAIL(error, INVALID_ARGUMENT, "rest_length",
                    "a graph takes graph.segment_rest_lengths");
        }
        if (desc->rest == RW_REST_GIVEN) {
            RW_FAIL(error, INVALID_ARGUMENT, "rest", "a graph takes graph.bend_rest_rotations");
        }
        return RW_STATUS_OK;
    }
    if (curvature.count != 0 && curvature.count != 3 && curvature.count != 3 * elements) {
        RW_FAIL(error, INVALID_ARGUMENT, "rest_curvature",
                "must hold 3 or elements x 3 = %zu numbers, got %zu", 3 * elements,
                curvature.count);
    }
    if (desc->rest == RW_REST_GIVEN && curvature.count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "rest_curvature", "must be given with rest GIVEN");
    }
    RW_TRY(rw_validate_numbers(curvature.data, curvature.count, "rest_curvature", error));
    return desc->has_rest_length ? positive(desc->rest_length, "rest_length", error)
                                 : RW_STATUS_OK;
}

static rw_status validate_velocity(rw_doubles velocity, int64_t nodes, const char* field,
                                   rw_error* error) {
    if (velocity.count != 0 && velocity.count != 3 && velocity.count != 3 * (size_t)nodes) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold 3 or nodes x 3 = %zu numbers, got %zu",
                3 * (size_t)nodes, velocity.count);
    }
    return rw_validate_numbers(velocity.data, velocity.count, field, error);
}

static rw_status validate_geometry(const rw_rod_desc* desc, rw_error* error) {
    switch (desc->geometry) {
    case RW_ROD_STRAIGHT:
        RW_TRY(integer(desc->elements, 1, RW_ROD_ELEMENTS_MAX, "elements", error));
        return validate_straight(desc, error);
    case RW_ROD_HELIX:
        RW_TRY(integer(desc->elements, 1, RW_ROD_ELEMENTS_MAX, "elements", error));
        return validate_helix(desc, error);
    case RW_ROD_POLYLINE:
        return validate_polyline(desc, error);
    case RW_ROD_GRAPH:
        return validate_graph(desc, error);
    }
    return RW_STATUS_OK;
}

rw_status rw_validate_rod(const rw_rod_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(one_of(desc->geometry, 4, "geometry", error));
    RW_TRY(one_of(desc->method, 2, "method", error));
    RW_TRY(integer(desc->order, 1, 3, "order", error));
    if (desc->method == RW_ROD_RIGID_CHAIN && desc->order != 1) {
        RW_FAIL(error, INVALID_ARGUMENT, "order", "must be 1 for a RIGID_CHAIN, got %u",
                desc->order);
    }
    RW_TRY(validate_geometry(desc, error));
    size_t elements = desc->geometry == RW_ROD_POLYLINE
                          ? (desc->polyline.positions.count / 3 - 1) / desc->order
                          : desc->elements;
    // A graph may bring its own masses and stiffnesses.
    bool is_graph = desc->geometry == RW_ROD_GRAPH;
    bool density_needed = !is_graph || desc->graph.vertex_masses.count == 0;
    bool stiffness_needed = !is_graph || desc->graph.segment_stiffness.count == 0 ||
                            desc->graph.bend_stiffness.count == 0;
    if (is_graph && desc->graph.segments.count == 2 && desc->graph.segment_stiffness.count != 0) {
        stiffness_needed = false; // one segment has nothing to bend against
    }
    RW_TRY(validate_section(desc, elements,
                            density_needed || (stiffness_needed && !desc->has_stiffness), error));
    RW_TRY(validate_material(desc, stiffness_needed, density_needed, error));
    RW_TRY(validate_rest(desc, elements, error));
    int64_t nodes = rw_validate_node_count(desc);
    RW_TRY(validate_velocity(desc->linear_velocity, nodes, "linear_velocity", error));
    RW_TRY(validate_velocity(desc->angular_velocity, nodes, "angular_velocity", error));
    RW_TRY(not_negative(desc->contact_radius, "contact_radius", error));
    return surface(desc->friction, desc->restitution, desc->collision_group, error);
}

// ---- Attachments, forces, inputs ----

// A node by `s` or by `node`, not both.
static rw_status place(bool has_s, double s, bool has_node, const char* outer, rw_error* error) {
    char path[FIELD_CAPACITY];
    JOIN(path, outer, "s");
    if (has_s && has_node) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be given beside node");
    }
    return fraction(s, path, error);
}

rw_status rw_validate_attachment(const rw_attachment_desc* desc, rw_error* error) {
    RW_TRY(rw_validate_name(desc->name, "name", error));
    RW_TRY(rw_validate_name(desc->rod, "rod", error));
    RW_TRY(one_of(desc->kind, 3, "kind", error));
    RW_TRY(place(desc->has_s, desc->s, desc->has_node, "", error));
    RW_TRY(name_or_empty(desc->body, "body", error));
    RW_TRY(rw_validate_numbers(desc->position, 3, "position", error));
    if (desc->has_rotation) {
        RW_TRY(rw_validate_rotation(desc->rotation, "rotation", error));
        if (desc->kind == RW_ATTACH_PIN) {
            RW_FAIL(error, INVALID_ARGUMENT, "rotation", "a PIN holds no rotation");
        }
    }
    return not_negative(desc->compliance, "compliance", error);
}

static rw_status validate_point(const rw_point_desc* point, const char* outer, rw_error* error) {
    char path[FIELD_CAPACITY];
    JOIN(path, outer, "body");
    RW_TRY(name_or_empty(point->body, path, error));
    JOIN(path, outer, "rod");
    RW_TRY(name_or_empty(point->rod, path, error));
    if (point->body[0] != '\0' && point->rod[0] != '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must not be given beside body");
    }
    JOIN(path, outer, "position");
    RW_TRY(rw_validate_numbers(point->position, 3, path, error));
    bool has_position = point->position[0] != 0 || point->position[1] != 0 || point->position[2] != 0;
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
    RW_TRY(not_negative(desc->spring_damper.stiffness, "spring_damper.stiffness", error));
    RW_TRY(not_negative(desc->spring_damper.damping, "spring_damper.damping", error));
    return desc->spring_damper.has_rest_length
               ? not_negative(desc->spring_damper.rest_length, "spring_damper.rest_length", error)
               : RW_STATUS_OK;
}

static rw_status validate_load(const rw_force_desc* desc, rw_error* error) {
    RW_TRY(validate_point(&desc->load.at, "load", error));
    if (desc->load.at.body[0] == '\0' && desc->load.at.rod[0] == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "load.body", "a load acts on a body or a rod: name one");
    }
    RW_TRY(rw_validate_numbers(desc->load.force, 3, "load.force", error));
    RW_TRY(rw_validate_numbers(desc->load.torque, 3, "load.torque", error));
    return one_of(desc->load.frame, 2, "load.frame", error);
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
        RW_TRY(not_negative(desc->drag.linear, "drag.linear", error));
        RW_TRY(not_negative(desc->drag.quadratic, "drag.quadratic", error));
        return not_negative(desc->drag.angular, "drag.angular", error);
    }
    RW_FAIL(error, INVALID_ARGUMENT, "law", "must be spring_damper, load or drag");
}

static rw_status validate_samples(const rw_input_desc* desc, const char* outer, size_t at_least,
                                  rw_error* error) {
    char path[FIELD_CAPACITY];
    JOIN(path, outer, "time");
    if (desc->time.count < at_least) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must hold at least %zu times, got %zu", at_least,
                desc->time.count);
    }
    RW_TRY(rw_validate_numbers(desc->time.data, desc->time.count, path, error));
    for (size_t i = 1; i < desc->time.count; i++) {
        if (!(desc->time.data[i] > desc->time.data[i - 1])) {
            char item[ITEM_CAPACITY];
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
    return rows_of(desc->value.count, desc->time.count, path, error);
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
            RW_TRY(length_is(desc->slope.count, desc->value.count, "cubic.slope", error));
        }
        return rw_validate_numbers(desc->slope.data, desc->slope.count, "cubic.slope", error);
    case RW_INPUT_SINE:
        RW_TRY(rw_validate_numbers(desc->amplitude.data, desc->amplitude.count, "sine.amplitude",
                                   error));
        RW_TRY(not_negative(desc->frequency, "sine.frequency", error));
        RW_TRY(number(desc->phase, "sine.phase", error));
        if (desc->offset.count != 0) {
            RW_TRY(length_is(desc->offset.count, desc->amplitude.count, "sine.offset", error));
        }
        return rw_validate_numbers(desc->offset.data, desc->offset.count, "sine.offset", error);
    }
    RW_FAIL(error, INVALID_ARGUMENT, "function", "must be piecewise_linear, cubic or sine");
}
