// Stable Cosserat Rods (SIGGRAPH 2025): the rods role behind the solver interface. Positions by
// vertex descent, orientations quasi-statically in closed form, in Gauss-Seidel sweeps over any
// graph of segments. Only the thread that runs the world may call it; a step spreads its blocks with
// the world's parallel_for.
//
// What it takes of a description, and what not:
//   - isotropic: shear = stretch (GA = EA), twist = bend (GJ = EI). EA and EI come from the section
//     and Young's modulus or from `stiffness`, whose other ratios are refused.
//   - a rod of E elements of order p is E p linear segments.
//   - rotary inertia is neglected: orientations are always in equilibrium, there is no torsional
//     vibration, and frames have no angular velocity.
//   - `damping` is Kelvin-Voigt on stretch, shear, bend and twist, objective (a rigid motion is not
//     damped), and does not change any equilibrium.
//   - with `residual_tolerance` a rod is swept until its residual is that small, faster than by plain
//     sweeps (docs/numerics.md, [S] 12), but at most `iterations` times: give it room.
//   - the bend energy k_b (1 - cos(theta/2)), k_b = 4 EI/l, softens with the angle theta per element:
//     the moment is 1 % below linear at 0.5 rad.
#pragma once

#include "solvers/model/solver.h"

// The interface to the world.
const rw_solver_vtable* rw_scr_vtable(void);

// How the authors' implementation damps, to follow their data: each vertex's own displacement is
// damped with (damping/h) k_s/l^2 per adjacent segment (UNIFORM: damping/(h l)), and the velocity is
// scaled with 1 - drag h at the end of a step. It damps rigid motion; not for use.
typedef enum rw_scr_damping {
    RW_SCR_DAMPING_KELVIN_VOIGT,
    RW_SCR_DAMPING_REFERENCE,
    RW_SCR_DAMPING_REFERENCE_UNIFORM,
} rw_scr_damping;

// Chooses it for all rods of a solver made by the vtable's create; part of no scene or snapshot.
void rw_scr_set_damping(void* self, rw_scr_damping damping);
