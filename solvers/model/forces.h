// The forces of a world: loads, spring-dampers, drag, applied wrenches, evaluated at a state. No
// gravity, and no rod drag: those belong to the solvers. One thread at a time; allocates nothing.
#pragma once

#include <stdbool.h>

#include "solvers/model/drive.h"
#include "solvers/model/model.h"
#include "solvers/model/state.h"

// How rod nodes turn: a rod solver's node_rotation, for follower loads. `node_rotation` may be NULL
// when no load on a rod is in its BODY frame, or when only bodies are asked for.
typedef struct rw_forces_frames {
    void* self;
    void (*node_rotation)(void* self, const rw_state* state, int32_t rod, int32_t node,
                          double rotation[4]);
} rw_forces_frames;

// Where results go; any pointer may be NULL. All are overwritten.
typedef struct rw_forces_output {
    double* body_force;  // world [N] (bodies x 3)
    double* body_torque; // about the centre of mass, world [N m] (bodies x 3)
    double* node_force;  // world [N] (nodes x 3)
    double* node_torque; // world [N m] (nodes x 3)
} rw_forces_output;

// Which forces to sum.
enum {
    RW_FORCES_LOADS = 1, // loads and applied wrenches
    RW_FORCES_SPRINGS = 2,
    RW_FORCES_DRAG = 4,
    RW_FORCES_ALL = 7,
};

// Sums the forces at `state` with the drive's load values and wind. Solvers that treat springs
// implicitly leave RW_FORCES_SPRINGS out and use rw_forces_spring.
void rw_forces_evaluate(const rw_model* model, const rw_drive* drive, const rw_state* state,
                        rw_forces_frames frames, unsigned which, const rw_forces_output* output);

// One spring-damper at a state, with what an implicit solver needs.
//
//   force on a = +tension * direction, on b = -tension * direction
//   tension    = k (length - rest_length) + c rate
//   d(force on a)/d(a - b) is approximated by -stiffness, which is positive semi-definite:
//   k n n' + max(0, k (length - rest_length) / length) (1 - n n')
typedef struct rw_spring {
    rw_point a, b;
    double point_a[3], point_b[3]; // world [m]
    double arm_a[3], arm_b[3];     // centre of mass to point, world [m]; 0 off bodies
    double direction[3];           // a to b, unit; 0 when the points coincide
    double length;                 // [m]
    double rate;                   // d length/dt [m/s]
    double tension;                // [N], damping included
    double elastic_force;          // [N], damping left out
    double energy;                 // [J]
    double stiffness[6];           // xx yy zz xy xz yz [N/m]
    double damping[6];             // c n n', same layout [N s/m]
} rw_spring;

// Evaluates force `force`, which must be a spring-damper; -1 as rest length counts as `length`.
void rw_forces_spring(const rw_model* model, const rw_state* state, int32_t force,
                      rw_spring* spring);

// Sum of the springs' elastic energy [J].
double rw_forces_spring_energy(const rw_model* model, const rw_state* state);

// World position and velocity of a point of a body, rod or the world; either may be NULL.
void rw_forces_point(const rw_model* model, const rw_state* state, const rw_point* point,
                     double position[3], double velocity[3]);
