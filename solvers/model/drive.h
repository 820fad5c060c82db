// The drive: what `inputs` and the current settings say at one time: gravity, wind, targets.
// A world keeps two (start and end of a substep); solvers with inner stages evaluate their own.
// One thread at a time; evaluation allocates nothing.
#pragma once

#include "solvers/base/alloc.h"
#include "solvers/model/model.h"

typedef struct rw_drive {
    double time_s;
    double gravity[3]; // [m/s^2]
    double wind[3];    // [m/s]
    double* joint_target;      // motor target with inputs (joint coordinates)
    double* joint_target_rate; // its time derivative (joint coordinates)
    double* joint_target_acceleration;
    rw_frame* attachment_target;     // in the body's frame or the world (attachments)
    double* attachment_velocity;     // of that frame: linear, angular, in the same axes (x 6)
    double* body_offset;       // displacement, rotation vector on the scene's pose (bodies x 6)
    double* body_offset_rate;  // (bodies x 6)
    uint8_t* body_is_driven;   // (bodies)
    double* force_value;       // force, torque added to a load (forces x 6)
} rw_drive;

// Allocates the arrays for the model's present topology. Call again after a change.
rw_status rw_drive_prepare(rw_drive* drive, const rw_model* model);
void rw_drive_finish(rw_drive* drive, rw_alloc* alloc);

// Fills `slope` of a cubic input whose width and description are set: the client's slopes, or those
// of the natural spline. Solves a tridiagonal system per column in place; allocates nothing beyond
// the room that the model gave (rw_drive_slope_bytes).
void rw_drive_fit_input(rw_input* input);

// Bytes that a cubic input of `count` times and `width` needs behind `slope`; 0 for other kinds.
size_t rw_drive_slope_bytes(rw_input_kind kind, size_t count, int32_t width);

// The input's value and its first and second time derivatives at a time, `width` each; the
// derivatives may be NULL. At a kink or at a held end the derivative is that from the right.
void rw_drive_evaluate_input(const rw_input* input, double time_s, double* value, double* rate,
                             double* acceleration);

// Fills the drive for `time_s`.
void rw_drive_evaluate(rw_drive* drive, const rw_model* model, double time_s);
