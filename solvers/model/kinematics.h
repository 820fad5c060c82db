// Bodies that no force moves: STATIC ones stay, KINEMATIC ones follow their input or, without one,
// their given velocities. Rigid solvers call this at the start of a substep; the thread that runs
// the world.
#pragma once

#include "solvers/model/drive.h"
#include "solvers/model/state.h"

// Writes pose and velocity of every STATIC and KINEMATIC body into `to`, `h` seconds after `from`.
// A driven body takes the scene's pose plus the drive's offset (displacement, rotation vector in
// world axes); an undriven one keeps its velocities, its rotation advanced by exp(h omega).
void rw_kinematics_advance(const rw_model* model, const rw_drive* drive_to, const rw_state* from,
                           rw_state* to, double h);

// Puts every driven KINEMATIC body of `state` where the drive says, with its velocity: the start of a
// scene whose inputs are not zero at its beginning.
void rw_kinematics_follow(const rw_model* model, const rw_drive* drive, rw_state* state);

// Conversions between the protocol's body frame origin and the state's centre of mass.
// Writes the state's rows of body `index` from the description's pose and velocities.
void rw_kinematics_place(const rw_model* model, int32_t index, const double position[3],
                         const double rotation[4], const double linear_velocity[3],
                         const double angular_velocity[3], rw_state* state);
// Position of a point given in the body's frame, world axes.
void rw_kinematics_point(const rw_model* model, const rw_state* state, int32_t index,
                         const double point[3], double position[3]);
// Velocity of that point, world axes.
void rw_kinematics_point_velocity(const rw_model* model, const rw_state* state, int32_t index,
                                  const double point[3], double velocity[3]);
