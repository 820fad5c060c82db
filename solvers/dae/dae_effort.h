// Motors, limits and viscous damping of joints: what acts along the free coordinates. One thread at
// a time; called by the system at its loaded state.
//
// A limit is a compliant, inelastic stop: a one-sided spring-damper on the coordinate whose stiffness
// and damping follow from the mechanism's own effective mass m along it,
//
//   effort = max(0, m w^2 p + 2 z m w dp/dt),  p = penetration, z = 2.2, w = 0.2/h,
//
// so that it rebounds with 4 % of the impact speed at any mass and needs no tuning. It yields: an
// impact at speed u goes in by about 0.2 u/w = u h, a load that would accelerate the coordinate
// by a rests at a/w^2 = 25 a h^2 (0.25 mm under gravity at 1 ms).
#pragma once

#include "solvers/dae/dae_system.h"

// Writes the coordinate with its angles continued from the joint's reference (rate_count values, or
// the quaternion).
void rw_dae_effort_coordinate(const rw_dae_system* system, int32_t joint, double* values);

// Continues a raw angle: the one nearest to `reference` among raw + 2 pi k.
double rw_dae_effort_unwrap(double raw, double reference);

// Adds the efforts of all joints to the right-hand side `system->body`, and notes them in
// system->effort and system->stop, their derivatives in system->stiffness and system->damping. The matrix must be factored: stops solve with it.
void rw_dae_effort_add(rw_dae_system* system);

// True when the joint has a motor, a limit or damping.
bool rw_dae_effort_has(const rw_joint_desc* desc);

// True when any joint has a motor, a limit or damping.
bool rw_dae_effort_any(const rw_model* model);
