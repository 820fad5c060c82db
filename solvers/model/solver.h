// What a solver is to the world: prepare, step, energy, signals, fields, and the coupling of rods
// with bodies. The world (world/step.c) calls; solvers/{xpbd,dae,scr} implement. Everything runs on
// the thread that runs the world; a solver may use the pool's parallel_for.
//
// A solver plays the RIGID role (bodies and joints) or the RODS role; one that can do both (xpbd) is
// created once for each. Rigid and rod solvers combine freely. One substep of length h, from `from` into `to`:
//
//   rigid->begin, rods->begin        inertial prediction written into `to`: a trial
//   repeat until both say done:
//       rods->sweep                  rods, with the bodies held at their trial pose
//       rods->respond                wrench and stiffness of the rods on each attached body
//       rigid->sweep                 bodies and joints, given those responses -> a new trial pose
//   rigid->end, rods->end            velocities, reactions, histories; nodes held by a body are
//                                    placed by its final pose
//
// The world marks `responses[b].active` for every dynamic body that a rod is attached to, before
// begin. Rods that said done are not swept again in the substep; the rigid side is, as long as
// attached rods are.
//
// That is block descent in which an attached body is one more block of the rods' solve, so a light
// body on a stiff rod is stable at any step (numerics: rods attached to bodies). A rod solver that
// condenses its whole matrix onto the bodies (xpbd) makes one pass of the loop the monolithic solve.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "solvers/base/status.h"
#include "solvers/model/drive.h"
#include "solvers/model/model.h"
#include "solvers/model/state.h"
#include "solvers/sched/parallel_for.h"

enum { RW_ROLE_RIGID = 1, RW_ROLE_RODS = 2 };

// Why a step could not be finished. The session becomes FAULTED with it.
typedef struct rw_fault {
    bool raised;
    char object[2 * RW_NAME_CAPACITY]; // "rod/cable", "body/link"
    char stage[48];                    // "scr orientation sweep"
    char text[160];
} rw_fault;

// The wrench that all rods exert on a body at the trial pose, and its stiffness.
// Increments are (dx, dtheta): world translation of the centre of mass, world rotation vector
// (R <- exp(dtheta^) R).
typedef struct rw_body_response {
    double force[3];      // on the body, world [N]
    double torque[3];     // about the centre of mass, world [N m]
    double stiffness[21]; // -d(force, torque)/d(dx, dtheta), symmetric, lower triangle by rows
    bool active;          // false: no rod hangs on this body
} rw_body_response;

// The condensed coupling of two bodies through one rod: force on a = -stiffness * increment of b.
typedef struct rw_body_pair {
    int32_t a, b;
    double stiffness[36]; // rows: (force, torque) on a; columns: (dx, dtheta) of b
} rw_body_pair;

// One substep, as the world hands it to the solvers.
typedef struct rw_step {
    const rw_model* model;
    const rw_state* from; // at `time_s`; constant
    rw_state* to;         // at `time_s + h`; the trial
    double time_s;        // at the start of the substep
    double h;             // [s]
    const rw_drive* drive_from; // inputs at time_s
    const rw_drive* drive_to;   // inputs at time_s + h
    // Sums of loads, springs, drag, applied wrenches, without gravity, evaluated at `from` (drive:
    // end of the step). Solvers that need them at other states call rw_forces_evaluate.
    const double* body_force;  // world [N] (bodies x 3)
    const double* body_torque; // about the centre of mass, world [N m] (bodies x 3)
    const double* node_force;  // world [N] (nodes x 3)
    const double* node_torque; // world [N m] (nodes x 3)
    rw_body_response* responses; // (bodies); filled by rods->respond, read by rigid->sweep
    rw_body_pair* pairs;         // likewise
    int32_t pair_count, pair_capacity;
    rw_parallel* parallel;       // parallel_for of the calling thread
    const atomic_bool* cancel;   // poll per iteration or block; then return CANCELLED
    rw_fault* fault;             // fill and return FAULTED
} rw_step;

typedef struct rw_energy {
    double kinetic; // beyond translation of bodies' centres and nodes and spin of bodies, which the world counts [J]
    double elastic; // rods and springs that the solver owns [J]
} rw_energy;

// A private state struct of a solver, for snapshot, hash, restore.
typedef struct rw_solver_fields {
    rw_field_list list;
    void* state;           // the struct of double*
    const int64_t* counts; // rows per domain of the list
} rw_solver_fields;

typedef struct rw_solver_vtable {
    const char* name;
    unsigned roles;

    // Makes a solver for `model` (borrowed). `roles` says which it is to play.
    rw_status (*create)(rw_model* model, rw_alloc* alloc, unsigned roles, void** self,
                        rw_error* error);
    void (*destroy)(void* self);

    // Checks that the solver can honour the rod or joint; UNIMPLEMENTED or INVALID_ARGUMENT with a
    // field path inside the description ("stiffness"). Says how many frames and elements a rod has.
    rw_status (*admit_joint)(void* self, const rw_joint_desc* desc, rw_error* error);
    rw_status (*admit_rod)(void* self, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error);
    rw_status (*admit_attachment)(void* self, const rw_attachment_desc* desc, rw_error* error);

    // Writes the initial frames of a new rod from its node frames (node_count x 4).
    void (*init_frames)(void* self, const rw_rod* rod, const double* node_positions,
                        const double* node_rotations, double* frames);

    // Rebuilds everything derived after objects came, went or changed. Keeps the private state of
    // objects that stayed (by id). All allocation happens here.
    rw_status (*prepare)(void* self, const rw_state* state, rw_error* error);

    // Moves positions and velocities in `state` onto the joints, after objects were created.
    // INVALID_ARGUMENT names the joint and the gap that is left. May be NULL.
    rw_status (*assemble)(void* self, rw_state* state, rw_error* error);

    // Efforts and reactions at `state`, for joint_effort and joint_reaction; cheap when nothing
    // changed since the last call. Call it before those signals are read. May be NULL.
    rw_status (*evaluate)(void* self, const rw_state* state, double time_s);

    // The state was changed from outside (Set*, Restore): forget caches that describe the old one.
    void (*state_changed)(void* self);

    // The private state (multipliers, histories), of the last finished step; list.count 0 when there
    // is none. The world keeps a copy from before each step and writes it back into these arrays
    // when the step is undone.
    rw_solver_fields (*fields)(void* self);

    rw_status (*begin)(void* self, rw_step* step);
    rw_status (*sweep)(void* self, rw_step* step, bool* done);
    rw_status (*respond)(void* self, rw_step* step); // rods role
    int32_t (*pair_capacity)(void* self); // most pairs that respond writes; NULL: none
    rw_status (*end)(void* self, rw_step* step);

    void (*energy)(void* self, const rw_state* state, rw_energy* energy);

    // Signals of the last finished state; world axes unless said. node_rotation, rod_at and
    // node_mass need a prepared solver only as far as rods are concerned: the world prepares after
    // rods came or went, before it resolves an attachment.
    void (*attachment_wrench)(void* self, int32_t attachment, double wrench[6]); // on the rod
    void (*element_wrench)(void* self, const rw_state* state, int32_t rod, int32_t element,
                           double wrench[6]); // material frame
    void (*rod_at)(void* self, const rw_state* state, int32_t rod, double s, double position[3],
                   double rotation[4]);
    void (*node_rotation)(void* self, const rw_state* state, int32_t rod, int32_t node,
                          double rotation[4]);
    double (*rod_energy)(void* self, const rw_state* state, int32_t rod); // elastic [J]
    double (*rod_length)(void* self, const rw_state* state, int32_t rod);
    double (*rod_max_strain)(void* self, const rw_state* state, int32_t rod);
    double (*rod_residual)(void* self, int32_t rod);
    double (*node_mass)(void* self, int32_t node); // [kg], for momentum and gravity energy
    void (*rod_angular_momentum)(void* self, const rw_state* state, int32_t rod,
                                 double momentum[3]); // spin part beyond node masses; may be NULL
    void (*joint_coordinate)(void* self, const rw_state* state, int32_t joint, double* values);
    void (*joint_rate)(void* self, const rw_state* state, int32_t joint, double* values);
    void (*joint_effort)(void* self, int32_t joint, double* values);
    void (*joint_reaction)(void* self, int32_t joint, double wrench[6]); // parent on child, world
    void (*joint_violation)(void* self, const rw_state* state, int32_t joint, double violation[2]);
    rw_status (*set_joint)(void* self, rw_state* state, int32_t joint, const double* coordinate,
                           const double* rate, rw_error* error); // NULL: unchanged
} rw_solver_vtable;

typedef struct rw_solver {
    const rw_solver_vtable* vtable;
    void* self;
} rw_solver;
