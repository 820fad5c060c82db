// What the joints of the XPBD solver are made of; for joint_system.c and joint_solve.c alone. The thread
// that runs the world.
#pragma once

#include "solvers/math/kkt.h"
#include "solvers/model/joint_geometry.h"
#include "solvers/xpbd/joint_system.h"

// Why a constraint stands in the system. Each is one constraint of the graph.
typedef enum rw_joint_role {
    RW_JOINT_ROLE_STRUCTURE, // the joint itself
    RW_JOINT_ROLE_MOTOR,     // one row per rate
    RW_JOINT_ROLE_DAMPING,   // one row per rate
    RW_JOINT_ROLE_LIMIT,     // scalar: one row; spherical: swing, twist
    RW_JOINT_ROLE_COUPLING,
} rw_joint_role;

typedef enum rw_joint_row_state {
    RW_JOINT_ROW_OFF,
    RW_JOINT_ROW_ON,
    RW_JOINT_ROW_SATURATED
} rw_joint_row_state;

typedef struct rw_joint_constraint {
    rw_joint_role role;
    int32_t joint; // or coupling
    int32_t row_count;
    int32_t slot_first, slot_count; // in `slot_node`
    int32_t row_first;              // in the system
} rw_joint_constraint;

struct rw_joint_system {
    rw_model* model; // borrowed
    rw_alloc* alloc; // borrowed
    rw_arena arena;  // everything of one topology
    rw_kkt* kkt;

    rw_joint_geometry* joints; // (joints)
    rw_joint_frames* frames;   // at the trial (joints)
    int32_t* body_node;        // body -> node of the graph, -1: world (bodies)
    int32_t* node_body;        // (dynamic bodies)
    int32_t node_count;
    bool* holds;    // (bodies)
    uint8_t* marks; // scratch of joint_placement (bodies)
    rw_joint_constraint* constraints;
    int32_t constraint_count;
    int32_t* slot_node; // nodes that each constraint acts on
    int32_t row_count;
    // Per row of the system.
    double* multiplier;
    double* regularisation;
    uint8_t* row_state;
    double* saturation; // effort of a saturated motor row
    double* right_body; // (nodes x 6)
    double* right_row;
    // Conjugate gradients: nodes x 6, rows, and bodies x 6.
    double *cg_direction, *cg_residual, *cg_solved, *cg_reaction;
    double *cg_row_direction, *cg_row_solved;
    double *body_in, *body_out;
    rw_joint_row* rate_rows; // of every joint rate (rates)

    // Per joint coordinate and rate: the private state, at the end of the last step.
    double* coordinate;   // with turns (coordinates)
    double* reaction;     // (joints x 6)
    double* effort;       // (rates)
    double* distance;     // of DISTANCE joints, as given or as at creation [m] (joints)
    rw_id* joint_ids;     // whose they are (joints)
    int32_t* joint_sizes; // coordinates and rates of each (joints x 2)
    int64_t field_counts[3];
    bool is_followed; // coordinates are those of the state that the next step starts from
    double* start;    // coordinates at the start of the substep (coordinates)
    double h;
};

// The joint's frames at a state.
rw_joint_frames rw_joint_system_private_frames_at(const rw_joint_geometry* joint,
                                                  const rw_state* state);
// Coordinates at a state; angles on the branch nearest to `near`.
void rw_joint_system_private_coordinates_at(const rw_joint_system* system, const rw_state* state,
                                            int32_t joint, const double* near, double* values);
