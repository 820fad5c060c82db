// Joints of the XPBD solver: vector constraints with total multipliers, solved together with the
// bodies' blocks by one sparse factorisation per iteration (kkt.h), so that a chain of any length
// and mass ratio is held by a single iteration. Limits and saturated motors are an active set.
// The thread that runs the world.
//
// One iteration at the trial pose solves for the bodies' increments d and the multipliers:
//
//   [ A   J' ] [ d      ]   [ force balance without joints ]
//   [ J  -E  ] [ lambda ] = [ -C                           ]
//
// A is M/h^2 with springs' and rods' stiffness; C is the joint's error, E its compliance. Motors
// and dampers are compliant rows in the same form, implicit in the coordinate q at the end of the
// step (q0 at its start): POSITION k (target - q) - d (q - q0)/h, VELOCITY d (target - (q - q0)/h).
// The force of a row on the bodies is -J' lambda.
#pragma once

#include "solvers/model/solver.h"

typedef struct rw_joint_system rw_joint_system;

rw_status rw_joint_system_create(rw_model* model, rw_alloc* alloc, rw_joint_system** system,
                                 rw_error* error);
void rw_joint_system_destroy(rw_joint_system* system);

// Rebuilds rows and the order of elimination. New joints take their coordinates from `state`; those
// that stayed keep their count of turns.
rw_status rw_joint_system_prepare(rw_joint_system* system, const rw_state* state, rw_error* error);

// True when there are joints or couplings.
bool rw_joint_system_is_active(const rw_joint_system* system);
// True when a joint acts on the body: it is then integrated by backward Euler.
bool rw_joint_system_holds(const rw_joint_system* system, int32_t body);

// Starts a substep: coordinates at `from`, active set as the last substep left it.
void rw_joint_system_begin(rw_joint_system* system, const rw_step* step);

// Couplings of A between different bodies (springs, rods): adds them times `x` to `y` (bodies x 6).
typedef struct rw_joint_system_coupling {
    void (*add)(void* context, const double* x, double* y);
    void* context;
    int32_t rank; // a bound on their rank: of iterations needed; 0: there are none
} rw_joint_system_coupling;

// Solves the system at the trial `to`. `block` (bodies x 36) is A's diagonal, symmetric; `right`
// (bodies x 6) is the force balance of the bodies and becomes their increment. Couplings are brought
// in by conjugate gradients with the factored system as preconditioner. FAULTED when the matrix is
// not quasi-definite.
rw_status rw_joint_system_solve(rw_joint_system* system, const rw_step* step, const double* block,
                                rw_joint_system_coupling coupling, double* right);

// Ends a substep: coordinates with their turns at `to`.
void rw_joint_system_end(rw_joint_system* system, const rw_step* step);

// Signals of solver.h.
void rw_joint_system_coordinate(rw_joint_system* system, const rw_state* state, int32_t joint,
                                double* values);
void rw_joint_system_rate(rw_joint_system* system, const rw_state* state, int32_t joint,
                          double* values);
void rw_joint_system_effort(const rw_joint_system* system, int32_t joint, double* values);
void rw_joint_system_reaction(const rw_joint_system* system, int32_t joint, double wrench[6]);
void rw_joint_system_violation(rw_joint_system* system, const rw_state* state, int32_t joint,
                               double violation[2]);

// Moves the child's subtree so that the joint has these values (joint_placement.h); turns as given.
rw_status rw_joint_system_set(rw_joint_system* system, rw_state* state, int32_t joint,
                              const double* coordinate, const double* rate, rw_error* error);

// The private state: coordinates with turns, reactions, efforts.
rw_solver_fields rw_joint_system_fields(rw_joint_system* system);
// The motion was changed from outside: the next step looks at the coordinates anew.
void rw_joint_system_forget(rw_joint_system* system);
// After the motion was changed from outside: the count of turns follows the nearest branch.
void rw_joint_system_follow(rw_joint_system* system, const rw_state* state);
