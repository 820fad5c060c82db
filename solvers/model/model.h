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

#include "solvers/base/arena.h"
#include "solvers/base/id_pool.h"
#include "solvers/model/names.h"
#include "solvers/model/scene.h"

// ---- Bodies: derived constants are arrays, for the solvers' loops ----

typedef struct rw_body {
    rw_id id;
    rw_body_desc desc;
    void* owned; // the block that holds the description's arrays; NULL when it has none
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
    int32_t joint_a, joint_b;
} rw_joint_coupling;

typedef struct rw_joint_couplings {
    int32_t count, capacity;
    rw_joint_coupling* items;
} rw_joint_couplings;

// ---- Rods ----

typedef struct rw_rod {
    rw_id id;
    rw_rod_desc desc;
    void* owned; // the block that holds the description's arrays
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
    int32_t rod, node; // node counted within the rod
    int32_t body;      // -1: the world
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
    void* owned;   // the block that holds the description's arrays and `slope`
    double* slope; // cubic: derivative at each time (n x width); else NULL
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
    rw_name_table names[RW_KIND_COUNT];
    uint64_t topology_revision;
    uint64_t parameter_revision;
} rw_model;

// ---- Life ----

// Starts an empty model with the scene's defaults. Allocates nothing.
void rw_model_init(rw_model* model, rw_alloc* alloc);

// Frees everything.
void rw_model_finish(rw_model* model);

// Validates and takes the scene-wide part (name, gravity, wind, time_step, substeps, solver).
rw_status rw_model_set_options(rw_model* model, const rw_scene* scene, rw_error* error);

// Makes room for `count` more objects of a kind, so that many creations grow once.
rw_status rw_model_reserve(rw_model* model, rw_kind kind, int32_t count);

// Takes a whole scene into an empty model: options, then every object in order. Errors carry the
// path within the scene ("rods[3].density"). On failure finish the model: it holds a part.
rw_status rw_model_load(rw_model* model, const rw_scene* scene, rw_error* error);

// Writes the model as a scene; arrays are built in `arena`, names and views borrow the model.
rw_status rw_model_describe(const rw_model* model, rw_arena* arena, rw_scene* scene,
                            rw_error* error);

// ---- Objects ----
//
// Each validates the description (paths relative to it: "young_modulus"), resolves its references,
// copies it with its arrays, gives an id and appends a record. All or nothing, also when memory
// ends. What depends on motion or on the solver is left to the world:
//   rods         frame_count, element_count: rw_model_set_rod_layout
//   attachments  `target`, where position or rotation were left out
//   forces       `rest_length` of a spring that left it out (-1 until then)

rw_status rw_model_add_body(rw_model* model, const rw_body_desc* desc, rw_id* id, rw_error* error);
rw_status rw_model_add_joint(rw_model* model, const rw_joint_desc* desc, rw_id* id,
                             rw_error* error);
rw_status rw_model_add_coupling(rw_model* model, const rw_coupling_desc* desc, rw_id* id,
                                rw_error* error);
rw_status rw_model_add_rod(rw_model* model, const rw_rod_desc* desc, rw_id* id, rw_error* error);
rw_status rw_model_add_attachment(rw_model* model, const rw_attachment_desc* desc, rw_id* id,
                                  rw_error* error);
rw_status rw_model_add_force(rw_model* model, const rw_force_desc* desc, rw_id* id,
                             rw_error* error);
rw_status rw_model_add_input(rw_model* model, const rw_input_desc* desc, rw_id* id,
                             rw_error* error);

// Takes back the newest object of a kind: the way out when something after rw_model_add_* failed.
void rw_model_remove_last(rw_model* model, rw_kind kind);

// Says how many frames and elements the solver gives the rod (the newest one, or all rods in order
// after a change of solver): sets frame_first of it and the sums.
void rw_model_set_rod_layout(rw_model* model, int32_t rod, int32_t frame_count,
                             int32_t element_count);

// Replaces an object's description: the Set* of parameters. Name, references, kinds, geometry and
// array lengths that fix rows must stay (FAILED_PRECONDITION); values are validated as at creation.
// All or nothing.
rw_status rw_model_replace_body(rw_model* model, int32_t index, const rw_body_desc* desc,
                                rw_error* error);
rw_status rw_model_replace_joint(rw_model* model, int32_t index, const rw_joint_desc* desc,
                                 rw_error* error);
rw_status rw_model_replace_rod(rw_model* model, int32_t index, const rw_rod_desc* desc,
                               rw_error* error);
rw_status rw_model_replace_force(rw_model* model, int32_t index, const rw_force_desc* desc,
                                 rw_error* error);

// ---- Looking up ----

// Index of an object by id, or by name when `id` is RW_ID_NONE. NOT_FOUND names what was asked for.
rw_status rw_model_find(const rw_model* model, rw_kind kind, rw_id id, const char* name,
                        int32_t* index, rw_error* error);
int32_t rw_model_count(const rw_model* model, rw_kind kind);
const char* rw_model_name(const rw_model* model, rw_kind kind, int32_t index);
rw_id rw_model_id(const rw_model* model, rw_kind kind, int32_t index);
const char* rw_model_kind_name(rw_kind kind); // "body", "joint", ...

// The node of a rod nearest to the fraction `s` in [0, 1] of its length, the lower one of two equally
// near; -1 for a graph, which has no length. Attachments, forces and wrenches mean it by `s`.
int32_t rw_model_node_at(const rw_model* model, int32_t rod, double s);

// ---- Removing: plan first (may fail), then apply (can't) ----

typedef struct rw_removal {
    rw_alloc* alloc; // borrowed
    // Old index -> new index, -1 for what goes; NULL for a kind in which nothing goes.
    int32_t* new_index[RW_KIND_COUNT];
    int32_t removed_count[RW_KIND_COUNT];
} rw_removal;

// Finds everything that must go with the object: joints of bodies, couplings of joints, attachments
// of rods and bodies, forces and inputs on any of them. Without `cascade` an object with dependents
// answers FAILED_PRECONDITION and names them. Finish the plan in either case. To apply it to the
// rows of a state, walk new_index from the end and erase rows of -1, before rw_model_removal_apply.
rw_status rw_model_removal_plan(const rw_model* model, rw_kind kind, int32_t index, bool cascade,
                                rw_removal* removal, rw_error* error);
// Removes what was planned, moves the others down and renews ids, names and references.
void rw_model_removal_apply(rw_model* model, const rw_removal* removal);
void rw_model_removal_finish(rw_removal* removal);

// ---- Applied wrenches ----

// Adds one (indices are the caller's, checked). RESOURCE_EXHAUSTED.
rw_status rw_model_add_wrench(rw_model* model, const rw_applied_wrench* wrench);
// Forgets those on the same target; all of them when body and rod are -1.
void rw_model_clear_wrenches(rw_model* model, int32_t body, int32_t rod);
// Counts a finished step: wrenches whose time is over go.
void rw_model_expire_wrenches(rw_model* model);
