// What the finite-element rods are made of; for the files fe_rods*.c alone. The thread that runs
// the world.
#pragma once

#include "solvers/xpbd/fe_rods.h"
#include "solvers/xpbd/rod_element.h"

enum { RW_FE_HELD_POSITION = 1, RW_FE_HELD_ROTATION = 2 };

// A Gauss point. Strains are ordered v1 v2 v3 u1 u2 u3.
typedef struct rw_fe_point {
    double rest[6];      // e*
    double stiffness[6]; // GA1 GA2 EA [N], EI1 EI2 GJ [N m^2]
    double length;       // metric ds/dxi: the element's length where nodes are equally spaced [m]
    double weight;       // quadrature weight times metric [m]
    double start[6];     // strain at the start of the substep (with damping)
} rw_fe_point;

typedef struct rw_fe_rod {
    rw_rod_element_rule rule;
    bool is_chain;
    int32_t element_count;
    int32_t node_first, node_count; // rows of the world's nodes (and frames)
    int64_t point_first;            // in `points`, rule.point_count per element
    int64_t length_first;           // in `lengths`, one per element
    int half_band;
    int64_t band_first; // in `band` [doubles]
    double damping, mass_damping, drag, quadratic_drag;
    int32_t hold_first, hold_count; // in `holds`, sorted by node
    double stress;                  // largest internal force of the last assembly [N]
    double residual;                // of the last iteration, relative to the forces in balance
    rw_status status;               // of the last parallel pass
    char fault[96];
} rw_fe_rod;

// A held node.
typedef struct rw_fe_hold {
    int32_t attachment, node; // node counted within the rod
    int32_t body;             // dynamic body, or -1: prescribed by the drive or a driven body
    unsigned rows;            // RW_FE_HELD_*
    double stiffness;         // of a compliant attachment [N/m, N m/rad]; 0: rigid, prescribed
    double target[7];         // position and rotation that the last sweep held it to (compliant)
    double increment[6];      // prescribed in this iteration
    // Of a dynamic body: coupling columns A_fc, condensed columns W = A_ff^-1 A_fc, S, residual.
    int64_t column_first;    // in `columns`: 6 columns of the rod's rows each for A_fc and W
    double own[36];          // A_cc
    double residual[6];      // r_c before the increment
    double end_increment[6]; // of the body's last move, for the correction at the end
} rw_fe_hold;

struct rw_fe_rods {
    rw_model* model; // borrowed
    rw_alloc* alloc; // borrowed
    bool full_quadrature;
    rw_arena arena; // everything below

    rw_fe_rod* rods;
    int32_t rod_count;
    rw_fe_point* points;
    double* lengths; // rest length of each element [m]
    rw_fe_hold* holds;
    int32_t hold_count;

    // Per node of the world.
    double* mass;         // [kg]
    double* inertia;      // about d1, d2, d3 [kg m^2] (x 3)
    double* share;        // rest length that belongs to the node [m]
    double* prediction;   // x~ [m] (x 3)
    double* turn;         // q~ (x 4)
    double* right;        // right-hand side, then the increment (x 6)
    double* band;         // the rods' matrices
    double* columns;      // of nodes held by dynamic bodies
    int32_t* block_first; // first rod of each parallel block, and the end
    int32_t block_count;

    double* attachment_wrench; // (attachments x 6), private state
    int64_t field_counts[1];

    int32_t iteration;
    rw_step* step; // of the running phase, for the parallel passes
};

// Frame and strains of one element.
void rw_fe_rods_private_frame(const rw_fe_rod* rod, const rw_state* state, int32_t element,
                              rw_rod_element_frame* frame);
void rw_fe_rods_private_strain(const rw_fe_rods* rods, const rw_fe_rod* rod,
                               const rw_rod_element_frame* frame, int32_t element, int32_t point,
                               rw_rod_element_strain* strain, rw_rod_element_gradient* gradient);

// ---- Passes over rods (fe_rods.c) ----

typedef void (*rw_fe_rods_private_pass)(rw_fe_rods* rods, rw_fe_rod* rod);

// Runs the pass on every rod in parallel; the first rod in order that failed decides.
rw_status rw_fe_rods_private_for_all(rw_fe_rods* rods, rw_step* step, const char* stage,
                                     rw_fe_rods_private_pass pass);
void rw_fe_rods_private_store_strain(const rw_rod_element_strain* strain, double out[6]);

// ---- The balance at the trial (fe_assemble.c) ----

// Inertia, weight, mass damping and drag of world node `node`: minus the residual, and the diagonal of
// the matrix.
void rw_fe_rods_private_node_terms(const rw_fe_rods* rods, const rw_fe_rod* rod, int64_t node,
                                   double right[6], double diagonal[6]);
// Fills the rod's matrix and right-hand side (minus the residual). Faults the rod where an element
// turns too far.
void rw_fe_rods_private_assemble(rw_fe_rods* rods, rw_fe_rod* rod);
// Elastic and damping forces of one element on its nodes (RW_ROD_ELEMENT_STRIDE doubles).
void rw_fe_rods_private_element_force(const rw_fe_rods* rods, const rw_fe_rod* rod, int32_t element,
                                      double* force);
void rw_fe_rods_private_fault(rw_fe_rod* rod, const char* what, double value);

// ---- Held nodes (fe_step.c) ----

// The increment that takes a held node to its target at the trial.
void rw_fe_rods_private_hold_increment(const rw_fe_rods* rods, const rw_fe_rod* rod,
                                       const rw_fe_hold* hold, double increment[6]);
// True when the attachment acts on the row; and when it prescribes it (a compliant one does not).
bool rw_fe_rods_private_is_active_row(const rw_fe_hold* hold, int row);
bool rw_fe_rods_private_is_held_row(const rw_fe_hold* hold, int row);
// How far the target of a compliant attachment has moved since the last sweep.
void rw_fe_rods_private_target_move(const rw_fe_rods* rods, const rw_fe_rod* rod,
                                    const rw_fe_hold* hold, double increment[6]);
// Writes the held rows' increments into the rod's solution.
void rw_fe_rods_private_prescribe(rw_fe_rods* rods, const rw_fe_rod* rod);
void rw_fe_rods_private_move_node(rw_state* to, int64_t node, const double increment[6]);

// ---- With bodies (fe_couple.c) ----

// Moves the free nodes with the bodies' last move, by the columns already solved.
void rw_fe_rods_private_follow_bodies(rw_fe_rods* rods, rw_fe_rod* rod);
