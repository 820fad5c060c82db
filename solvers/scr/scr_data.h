// What the scr solver derives from the model, in the layout of its sweeps, and its private state.
// Inside solvers/scr only; one thread at a time but for the blocks of a parallel_for, each of which
// writes its own nodes and segments.
//
//   rod        a description's graph; its nodes and segments are rows of the world's NODE and FRAME
//              domains, in creation order
//   chunk      whole connected components of one rod: no sweep crosses its border, so a chunk does
//              all its iterations on its own, in cache
//   piece      a range of one chunk's items, the unit of passes without order
//   batch      consecutive small chunks, the unit of work of a parallel sweep
//
// Within a chunk, `node_order` and `segment_order` list the free items in sweeping order (by colour,
// then index; or by index), then the held ones.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "solvers/base/arena.h"
#include "solvers/math/quat.h"
#include "solvers/model/solver.h"
#include "solvers/scr/scr.h"

enum {
    RW_SCR_CHUNK_NODES = 1024, // components are gathered up to this many nodes
    RW_SCR_PIECE_ITEMS = 2048,
    RW_SCR_LARGE_NODES = 16384, // a component beyond it is swept colour by colour, in parallel
    RW_SCR_COLOUR_BLOCK = 1024,
};

// Private state, domains and fields.
typedef enum rw_scr_domain {
    RW_SCR_DOMAIN_NODE,
    RW_SCR_DOMAIN_ROD,
    RW_SCR_DOMAIN_ATTACHMENT,
    RW_SCR_DOMAIN_COUNT,
} rw_scr_domain;

// member, width, domain, flags
#define RW_SCR_FIELDS(F)                                                                           \
    F(node_acceleration, 3, NODE, RW_FIELD_HASHED) /* of the last step, for the guess [m/s^2] */   \
    F(rod_residual, 1, ROD, 0)                     /* relative, of the last step */                \
    F(attachment_wrench, 6, ATTACHMENT, 0)         /* on the rod, world [N, N m] */                \
    F(attachment_target, 7, ATTACHMENT, 0)         /* held frame in the body or world */

typedef struct rw_scr_memory {
#define RW_SCR_MEMBER(member, width, domain, flags) double* member;
    RW_SCR_FIELDS(RW_SCR_MEMBER)
#undef RW_SCR_MEMBER
} rw_scr_memory;

typedef struct rw_scr_rod {
    int32_t node_first, node_count;
    int32_t segment_first, segment_count;
    int32_t chunk_first, chunk_count;
    double damping;              // Kelvin-Voigt time, or the authors' [s]
    double mass_damping;         // [1/s]
    double drag, quadratic_drag; // per length
    bool coupled;                // hangs on a dynamic body
    bool damped;                 // Kelvin-Voigt terms are in force
    bool slender;                // elements longer than about 4 radii: see scr_block.h
    bool blocks;                 // swept by vertex blocks in this step
    double stretch_factor;       // 1 + damping/h of this step
    const double* arc;           // rest length before each segment (segments + 1) [m]
    // The present step:
    int32_t done; // iterations so far
    int32_t run;  // iterations in the present round, 0 = none
    bool converged;
    double residual;
    double gap;           // 2 - omega, over-relaxation; 1 = none
    int32_t window_start; // `done`, `residual` at the start of the present window
    double window_residual;
} rw_scr_rod;

typedef struct rw_scr_chunk {
    int32_t rod;
    int32_t node_first, node_free_end, node_end;          // of node_order
    int32_t segment_first, segment_free_end, segment_end; // of segment_order
    int32_t piece_first, piece_count;
    bool large;
    double keep;       // factor on velocities at the end of this step, about `reference`
    rw_vec3 reference; // [m/s]
    int32_t node_colour_first, node_colour_count;       // large: rows of colour_start
    int32_t segment_colour_first, segment_colour_count; // each with an end row
} rw_scr_chunk;

typedef struct rw_scr_piece {
    int32_t chunk;
    int32_t node_first, node_end;       // of node_order
    int32_t segment_first, segment_end; // of segment_order
} rw_scr_piece;

// Sums over one piece, reduced in piece order.
typedef struct rw_scr_sums {
    double objective_guess, objective_last;
    double force_square, force_scale, force_floor; // squares of residual, of terms, of rounding
    double torque_square, torque_scale, torque_floor;
    int32_t bad_position, bad_rotation; // node, segment that is not finite; -1
    // For the energy that an unconverged step would create (sweep's settle):
    rw_vec3 force;     // sum of what is left on free nodes [N]
    double force_work; // and over their displacements [J]
    double mass;       // of free nodes; with velocity, its square, and that of its change
    rw_vec3 momentum;
    double kinetic, change; // sums of m v^2 and m dv^2
    rw_vec3 held_velocity;  // sum over held nodes
    int32_t held_count;
} rw_scr_sums;

typedef struct rw_scr_batch {
    int32_t chunk_first, chunk_end;
} rw_scr_batch;

typedef struct rw_scr_attachment {
    int32_t rod, node;       // node: row of the NODE domain
    int32_t body;            // -1: the world
    bool dynamic;            // the body is
    bool holds_node;         // false: an earlier attachment holds it already
    int32_t held_segment;    // PIN_SEGMENT: its segment; -1
    rw_quat segment_in_node; // PIN_SEGMENT: the segment's frame in the held frame
    int32_t clamp_first, clamp_count;
    rw_quat frame; // held frame, world, of this step
    rw_vec3 arm;   // centre of mass to node, world (dynamic)
} rw_scr_attachment;

// Half-length bend element between a clamp's frame and an adjacent segment (numerics, seed 001
// note 7): energy k (1 - |<frame rest, q>|), k = 8 EI/l.
typedef struct rw_scr_clamp {
    int32_t attachment, segment;
    int32_t next;     // next clamp on the same segment; -1
    double stiffness; // [N m]
    rw_quat rest;     // the segment's frame in the held frame at rest
    rw_quat target;   // stiffness (rest + damping/h relative rotation at the start of the step)
    rw_quat pull;     // frame times target, world: its b without the sign
} rw_scr_clamp;

enum { RW_SCR_SEGMENT_HELD = 1, RW_SCR_SEGMENT_CLAMPED = 2, RW_SCR_SEGMENT_TORQUE = 4 };

typedef struct rw_scr {
    rw_model* model; // borrowed
    rw_alloc* alloc; // borrowed
    rw_arena arena;  // holds every array below; renewed by prepare
    rw_scr_damping damping_kind;
    bool prepared;

    int32_t node_count, segment_count, bend_count, rod_count, chunk_count, piece_count, batch_count;
    int32_t attachment_count, clamp_count;
    rw_scr_rod* rods;
    rw_scr_chunk* chunks;
    rw_scr_piece* pieces;
    rw_scr_sums* sums; // (pieces)
    rw_scr_batch* batches;
    rw_scr_attachment* attachments;
    rw_scr_clamp* clamps;
    uint8_t* body_coupled;  // a dynamic body with an attachment (bodies)
    int32_t* node_order;    // (nodes)
    int32_t* segment_order; // (segments)
    int32_t* colour_start;  // borders of colours within large chunks

    // Nodes
    int32_t* node_rod;        // (nodes)
    uint8_t* node_held;       // (nodes)
    double* mass;             // [kg]
    double* length;           // rest length that belongs to the node [m]
    double* stiffness_sum;    // sum of k_s/l^2 of the adjacent segments [N/m]
    double* viscosity;        // the authors' damping: force on a vertex per its velocity [N s/m]
    int32_t* incident_first;  // (nodes + 1) adjacent segments, as rows of the next two
    int32_t* incident_other;  // the node at the other end
    int32_t* incident_code;   // 2 segment + (1 when this node is its tail)
    double* inertia;          // of this step: A, see sweep [N/m] (nodes)
    double* inverse_diagonal; // 1/(A + sum of k_s/l^2 with damping) (nodes)
    double* goal;             // where inertia and loads would take the node [m] (nodes x 3)

    // Segments
    int32_t* segment_rod; // (segments)
    int32_t* tail;        // node rows
    int32_t* head;
    uint8_t* segment_flags; // RW_SCR_SEGMENT_*
    double* rest_length;    // l [m]
    double* stretch;        // k_s / l [N]: EA for a physical rod
    double* kappa;          // k_s / l^2, with damping, of this step [N/m]
    double* pull;           // k_s / l times the (damped) material tangent, world [N] (segments x 3)
    double* axis_scale;     // damping: length of e3 + damping/h strain-aligned tangent
    double* axis_turn;      // damping: rotation of e3 onto that direction (segments x 4)
    double* torque;         // load on the segment, world [N m] (segments x 3)
    int32_t* clamp_of;      // first clamp on the segment; -1
    double* tail_rest;      // the segment's frame in its tail node's frame at rest (segments x 4)
    double* head_rest;      // in its head node's frame
    int32_t* link_first;    // (segments + 1) bends at the segment, as rows of the next three
    int32_t* link_other;    // the other segment
    int32_t* link_bend;     // 2 bend + (1 when this segment is the bend's second)
    double* link_target;    // k_b (q_r + damping/h p), or its conjugate for the first (links x 4)

    // Bends
    int32_t* bend;          // the two segments (bends x 2)
    int32_t* bend_node;     // where they meet
    double* bend_stiffness; // k_b [N m]; 0 where a clamp stands between
    double* bend_rest;      // q_r (bends x 4)

    // Private state and the layout it was made for.
    rw_scr_memory memory;
    int64_t memory_counts[RW_SCR_DOMAIN_COUNT];
    rw_id* rod_ids;
    int32_t* rod_nodes; // node counts
    int32_t rod_id_count;
    rw_id* attachment_ids;
    int32_t attachment_id_count;

    // The present step.
    rw_step* step;
    int32_t sweeps;    // calls of sweep
    bool ending;       // sums are taken for the last time
    double kv_rate;    // scratch
    bool node_torques; // some segment has a torque
} rw_scr;

static inline rw_quat rw_scr_data_quat(const double* rows, int64_t i) {
    return rw_quat_load(rows + 4 * i);
}

static inline rw_vec3 rw_scr_data_vec3(const double* rows, int64_t i) {
    return rw_vec3_load(rows + 3 * i);
}
