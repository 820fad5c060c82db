// A mechanism as the DAE solver sees it: the model's bodies and joints compiled into a KKT system,
// evaluated at any time and state. The integrators ask it for accelerations, projections and
// reactions; they know nothing of joints. Method: "Mathematical Foundations" (seed 002) with its
// errata; the system is factored as in kkt.h. One thread at a time. Nothing is allocated after
// rw_dae_system_create.
//
// The motion of the D dynamic bodies is one vector y, 13 numbers per body: centre of mass (3, world
// [m]), rotation (4, body-to-world), velocity (3, world [m/s]), angular velocity (3, BODY [rad/s]).
// Static bodies and the world do not move; kinematic bodies are functions of time.
#pragma once

#include "solvers/base/arena.h"
#include "solvers/model/joint_geometry.h"
#include "solvers/math/kkt.h"
#include "solvers/model/forces.h"
#include "solvers/model/solver.h"

#define RW_DAE_WIDTH 13

typedef struct rw_dae_system rw_dae_system;

struct rw_dae_system {
    const rw_model* model; // borrowed
    rw_arena arena;
    int32_t body_count, dynamic_count, joint_count, coupling_count;
    int32_t* dynamic_of; // body (or body_count, the world) -> place among the dynamic ones, -1
    int32_t* body_of;    // the inverse
    rw_joint_geometry* joints;
    int32_t* joint_constraint;    // constraint of the joint, -1 when no end can move
    int32_t (*joint_slot)[2];     // slots of parent and child, -1 for an end that cannot move
    int32_t* coupling_constraint;
    int32_t (*coupling_slot)[4];  // slots of a's parent, child, b's parent, child; -1
    rw_kkt* kkt;
    rw_kkt_graph graph; // that it was made from
    int32_t row_count;
    double* regularisation; // per row; 0 in trees
    bool has_regularisation, has_kinematic, has_forces;
    bool has_efforts; // motors, limits, damping or couplings: joint rates are needed
    bool has_soft;    // joints with compliance
    rw_kkt_pivots pivots; // of the last factorisation

    // Stop of limits: natural frequency [rad/s], from the step (dae_effort.h).
    double stop_frequency;
    double stabilization_alpha, stabilization_beta; // Baumgarte [1/s]; 0 unless in force

    // At the loaded state:
    double time_s;
    rw_joint_pose* pose;  // (bodies + 1); the last is the world
    double* known;      // accelerations of bodies that are driven (bodies + 1 x 6), 0 elsewhere
    rw_mat3* inertia;   // about the centre of mass, world axes (dynamic)
    rw_joint_frames* frames; // (joints)
    rw_joint_row* rows;            // (joints x 6)
    rw_joint_row* rates;           // (joints x 3), where a joint has efforts or couplings
    double *force, *torque;      // applied, world, no gravity (bodies x 3)
    double *body, *row;          // right-hand sides, then accelerations and multipliers
    double *probe_body, *probe_row; // work of rw_dae_system_mobility
    double* effort;              // motor, per rate (all joint rates)
    double* stop;                // limits and damping, per rate
    double *stiffness, *damping; // -d effort/d coordinate, -d effort/d rate, per rate
    double* extra_effort;        // of forward dynamics, per rate
    bool has_extra_effort;
    double* angle;               // reference of continuous angles (joints x 3); caller-owned values
    rw_drive drive;              // inputs at time_s
    rw_state scratch;            // body arrays in the model's order, for rw_forces_evaluate

    bool drive_is_current;
    rw_forces_frames node_frames;  // of the rod solver, for follower loads on rods

    // Set by the coupling with rods; NULL when no rod hangs on a body.
    const double* added_mass;      // c h^2 K of the rods (dynamic x 36)
    const double* constant_wrench; // of the rods during the step, world (bodies x 6)

    // What the factor belongs to, so that an evaluation at the same pose need not repeat it.
    double* factored_pose; // position and rotation matrix (moving bodies x 12)
    bool is_factored;
    rw_parallel* parallel;
};

// Compiles the model. `angle` holds 3 continuous angles per joint and outlives the system; of a
// DISTANCE joint that was given no distance it holds that at creation, first. RESOURCE_EXHAUSTED.
rw_status rw_dae_system_create(const rw_model* model, rw_alloc* alloc, double* angle,
                               rw_dae_system** system, rw_error* error);
// Reads the distances of DISTANCE joints that were given none from `angle`: after it was written.
void rw_dae_system_take_distances(rw_dae_system* system);

void rw_dae_system_destroy(rw_dae_system* system, rw_alloc* alloc);

// Gathers and scatters y; kinematic and static bodies are left alone by the latter.
void rw_dae_system_gather(const rw_dae_system* system, const rw_state* state, double* y);
void rw_dae_system_scatter(const rw_dae_system* system, const double* y, rw_state* state);

// Notes the poses of bodies that no force moves, at time `time_s`, as they were at `from_time_s` in
// `from`. Kinematic bodies keep their velocity, or follow their input.
void rw_dae_system_set_time(rw_dae_system* system, const rw_state* from, double from_time_s,
                            double time_s);

// Loads y: poses, frames. Then rw_dae_system_factor makes the matrix of that pose.
void rw_dae_system_load(rw_dae_system* system, const double* y);
rw_status rw_dae_system_factor(rw_dae_system* system);

// Evaluates forces and solves at the loaded state: accelerations (world axes) in system->body,
// multipliers in system->row. FAULTED when the matrix cannot be factored.
rw_status rw_dae_system_accelerate(rw_dae_system* system);

// Writes all applied wrenches of the loaded, factored state into system->body: gravity, forces,
// gyroscopic torques, motors, limits, damping; no reactions.
void rw_dae_system_applied(rw_dae_system* system);

// Loads y and writes dy/dt (D x 13).
rw_status rw_dae_system_derivative(rw_dae_system* system, const double* y, double* dydt);

// Adds effort x row' to the right-hand sides of the joint's two bodies.
void rw_dae_system_add_effort(rw_dae_system* system, int32_t joint, const rw_joint_row* row,
                              double effort);

// Writes a coupling's Jacobian into a KKT system whose slots are this one's.
void rw_dae_system_coupling_rows(const rw_dae_system* system, int32_t coupling, rw_kkt* kkt);

// The inverse of the effective mass along a joint's row: row A row', A the constrained inverse mass.
double rw_dae_system_mobility(rw_dae_system* system, int32_t joint, const rw_joint_row* row);

// Moves the positions in y onto the constraints by Newton steps in the metric of mass, until no row
// is off by more than `tolerance`, at most `rounds` steps. With `reuse` the first steps use the
// factor at hand. `worst` (may be NULL) receives what is left. y stays loaded.
rw_status rw_dae_system_project(rw_dae_system* system, double* y, double tolerance, int rounds,
                                bool reuse, double* worst);

// Moves the velocities in y onto the constraints, in the metric of mass.
rw_status rw_dae_system_project_velocity(rw_dae_system* system, double* y);

// Writes the position errors of all rows at the loaded state (may be NULL); returns the largest.
double rw_dae_system_errors(const rw_dae_system* system, double* phi);

// Writes the rates of all rows at the loaded, factored state.
void rw_dae_system_row_rates(const rw_dae_system* system, double* rates);

// Moves positions in y by the increments in system->body (world axes); the Cayley map turns.
void rw_dae_system_move(const rw_dae_system* system, double* y);

// Adds the velocity increments in system->body (world axes) to y.
void rw_dae_system_push(const rw_dae_system* system, double* y);

// The largest position error of any row at the loaded state.
double rw_dae_system_error(const rw_dae_system* system);

// The pose of a body of any kind in a state; -1 is the world.
rw_joint_pose rw_dae_system_pose(const rw_state* state, int32_t body);

// The frames of a joint in a state, and the poses of its parent and child.
void rw_dae_system_joint_frames(const rw_dae_system* system, const rw_state* state, int32_t joint,
                                rw_joint_pose pose[2], rw_joint_frames* frames);

// Wrench of the parent on the child at the child's frame, world axes, from the last solve.
void rw_dae_system_reaction(const rw_dae_system* system, int32_t joint, double wrench[6]);
