// The border: every field of a description is checked here, once, before it enters a model. Nothing
// behind it checks again. Errors answer INVALID_ARGUMENT (or OUT_OF_RANGE for an index beyond an
// array) with the field's path relative to the description ("graph.segments[7]") and a text such as
// "must be > 0, got -1". References to other objects are checked by model.h, which knows them.
// Pure functions of their arguments: any thread. Rods have their own file, validate_rod.c.
#pragma once

#include "solvers/base/status.h"
#include "solvers/model/scene.h"

// Ranges that a client meets (also in the protocol's documentation).
#define RW_TIME_STEP_MIN 1e-9 // [s]
#define RW_TIME_STEP_MAX 1.0
#define RW_SUBSTEPS_MAX 1000u
#define RW_SHAPES_MAX 256u // of one body
#define RW_ROD_ELEMENTS_MAX 1000000u
#define RW_ROTATION_TOLERANCE 1e-3 // how far a quaternion's norm may lie from 1

// The scene-wide part: gravity, wind, time_step, substeps, solver (baumgarte against the step).
rw_status rw_validate_options(const rw_scene* scene, rw_error* error);

rw_status rw_validate_body(const rw_body_desc* desc, rw_error* error);
rw_status rw_validate_joint(const rw_joint_desc* desc, rw_error* error);
rw_status rw_validate_coupling(const rw_coupling_desc* desc, rw_error* error);
rw_status rw_validate_rod(const rw_rod_desc* desc, rw_error* error);
rw_status rw_validate_attachment(const rw_attachment_desc* desc, rw_error* error);
rw_status rw_validate_force(const rw_force_desc* desc, rw_error* error);
rw_status rw_validate_input(const rw_input_desc* desc, rw_error* error);

// A motor of a joint of `type`; paths relative to the motor ("target").
rw_status rw_validate_motor(rw_joint_type type, const rw_motor_desc* motor, rw_error* error);

// A name: 1 to 63 characters of [A-Za-z0-9_.:-]. `field` is its path.
rw_status rw_validate_name(const char* name, const char* field, rw_error* error);

// Numbers: all finite and within RW_BOUNDS_MAGNITUDE_MAX; path "field" or "field[i]".
rw_status rw_validate_numbers(const double* values, size_t count, const char* field,
                              rw_error* error);

// A unit quaternion within RW_ROTATION_TOLERANCE.
rw_status rw_validate_rotation(const double rotation[4], const char* field, rw_error* error);

// What bodies and rods bring into contact.
rw_status rw_validate_surface(double friction, double restitution, uint32_t group,
                              rw_error* error);

// True when a body's mass comes from its shapes: it or one of them has a density.
bool rw_validate_has_density(const rw_body_desc* desc);

// Makes a quaternion that passed rw_validate_rotation unit to rounding. One that is already is left
// alone, so that what GetScene answers loads to the same bits.
void rw_validate_normalize(double rotation[4]);

// Positive definite and within the triangle inequality of the principal moments (with a relative
// slack of 1e-9).
rw_status rw_validate_inertia(const double inertia[6], const char* field, rw_error* error);

// Coordinates (with SPHERICAL's quaternion) and rates of a joint type.
int32_t rw_validate_coordinate_count(rw_joint_type type);
int32_t rw_validate_rate_count(rw_joint_type type);

// Nodes of a rod: elements * order + 1, rigid chain elements + 1, polyline and graph their rows.
int64_t rw_validate_node_count(const rw_rod_desc* desc);
