// The model: everything a client created, resolved and validated, as the solvers read it. It holds
// no motion (state.h does). One thread at a time: the one that runs the world.
//
// Objects of a kind lie in arrays in creation order; removing one moves the later ones down and
// renews every index that refers to them. Ids and names lead to indices. Each record owns a deep
// copy of its description, kept up to date by the Set* calls, so that GetScene and snapshots are
// written from it.
//
// Two revisions tell a solver what to redo: `topology` (objects came or went) and `parameters`
// (a value in a record changed).
#pragma once

#include "solvers/base/id_pool.h"
#include "solvers/model/scene.h"

typedef struct rw_name_table rw_name_table; // name -> index (names.h)

// ---- Bodies: derived constants are arrays, for the solvers' loops ----

typedef struct rw_body {
    rw_id id;
    rw_body_desc desc;
} rw_body;

typedef struct rw_bodies {
    int32_t count, capacity;
    rw_body* items;
    uint8_t* kind;           // rw_body_kind (count)
    double* mass;            // [kg] (count); 0 for kinematic and static
    double* inverse_mass;    // [1/kg] (count); 0 for kinematic and static
    double* inertia;         // about the centre of mass, body axes, xx yy zz xy xz yz (count x 6)
    double* inverse_inertia; // its inverse, same layout (count x 6); 0 for kinematic and static
    double* center_of_mass;  // in the body's frame [m] (count x 3)
} rw_bodies;

// ---- Joints ----

typedef struct rw_joint {
    rw_id id;
    rw_joint_desc desc;    // desc.motor is what is in force now
    int32_t parent, child; // body index; parent -1 is the world
    int32_t coordinate_first, coordinate_count; // in the array of all joint coordinates
    int32_t rate_first, rate_count;
} rw_joint;

typedef struct rw_joints {
    int32_t count, capacity;
    rw_joint* items;
    int32_t coordinate_count, rate_count; // sums
} rw_joints;

typedef struct rw_joint_coupling {
    rw_id id;
    rw_coupling_desc desc;
    int32_t first_joint, second_joint;
} rw_joint_coupling;

typedef struct rw_joint_couplings {
    int32_t count, capacity;
    rw_joint_coupling* items;
} rw_joint_couplings;

// ---- Rods ----

typedef struct rw_rod {
    rw_id id;
    rw_rod_desc desc;
    int32_t node_first, node_count;   // rows of the NODE domain
    int32_t frame_first, frame_count; // rows of the FRAME domain
    int32_t element_count; // what element/I counts: elements (xpbd), segments (scr)
} rw_rod;

typedef struct rw_rods {
    int32_t count, capacity;
    rw_rod* items;
    int32_t node_count, frame_count; // sums
} rw_rods;

// ---- Attachments ----

typedef struct rw_attachment {
    rw_id id;
    rw_attachment_desc desc;
    int32_t rod, node;             // node counted within the rod
    int32_t body;                  // -1: the world
    int32_t other_rod, other_node; // -1: none
    rw_frame target; // held frame in the body's frame (or world), resolved at creation; Set* moves it
} rw_attachment;

typedef struct rw_attachments {
    int32_t count, capacity;
    rw_attachment* items;
} rw_attachments;

// ---- Forces ----

typedef struct rw_point {
    int32_t body, rod, node; // -1: not on one; all -1: a point of the world
    double position[3];      // in the body's frame, or world [m]
} rw_point;

typedef struct rw_force {
    rw_id id;
    rw_force_desc desc;
    rw_point a, b;      // load and drag use a alone
    double rest_length; // spring: resolved at creation
} rw_force;

typedef struct rw_forces {
    int32_t count, capacity;
    rw_force* items;
} rw_forces;

// ---- Inputs ----

typedef enum rw_input_target {
    RW_TARGET_WIND,
    RW_TARGET_GRAVITY,
    RW_TARGET_JOINT,
    RW_TARGET_ATTACHMENT,
    RW_TARGET_BODY,
    RW_TARGET_FORCE,
} rw_input_target;

typedef struct rw_input {
    rw_id id;
    rw_input_desc desc;
    rw_input_target target;
    int32_t index; // of the joint, attachment, body or force; -1
    int32_t width; // values per time
    double* slope; // cubic: derivative at each time (n x width), owned; else NULL
} rw_input;

typedef struct rw_inputs {
    int32_t count, capacity;
    rw_input* items;
} rw_inputs;

// ---- Wrenches applied by ApplyWrench ----

typedef struct rw_applied_wrench {
    int32_t body, rod, node; // -1: not on one
    double point[3];         // in the body's frame [m]
    double force[3], torque[3];
    rw_load_frame frame;
    int64_t steps_left; // -1: until changed
} rw_applied_wrench;

typedef struct rw_applied {
    int32_t count, capacity;
    rw_applied_wrench* items;
} rw_applied;

typedef struct rw_model {
    rw_alloc* alloc; // borrowed
    char name[256];
    double gravity[3]; // [m/s^2], without inputs
    double wind[3];    // [m/s], without inputs
    double time_step;  // [s]
    uint32_t substeps;
    rw_solver_options solver;

    rw_bodies bodies;
    rw_joints joints;
    rw_joint_couplings couplings;
    rw_rods rods;
    rw_attachments attachments;
    rw_forces forces;
    rw_inputs inputs;
    rw_applied applied;

    rw_id_pool ids[RW_KIND_COUNT];
    rw_name_table* names[RW_KIND_COUNT];
    uint64_t topology_revision;
    uint64_t parameter_revision;
} rw_model;
