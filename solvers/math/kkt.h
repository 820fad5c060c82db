// The linear algebra of bodies and joints: the regularised KKT system
//
//     [ M    J' ] [ a      ]   [ Q     ]
//     [ J   -E  ] [ lambda ] = [ gamma ]
//
// over a graph of bodies (6 unknowns each, M symmetric positive definite) and constraints (1 to 6
// rows each, on any number of bodies), factored as L D L' in blocks. E >= 0 is diagonal: the
// Tikhonov term of seed 002, or a true compliance. The matrix is quasi-definite, so no pivoting is
// needed and the order of elimination is free; it is found once per topology:
//
//   along a spanning tree from the world, leaf to root: a body, then the tree joint that holds it
//   (a joint after its child); every other constraint ("loop") as soon as all tree joints of its
//   cycle are gone. A tree of any degree then has no fill: O(n) work and memory. Loops add their
//   fill. (Pivoting a joint whose body another joint holds already would divide by E.)
//
// Everything is gathered, never scattered, in index order: results do not depend on how the nodes
// of one level are shared among threads. One thread at a time; rw_kkt_factor and rw_kkt_solve use
// the given parallel_for for large systems. Nothing is allocated after rw_kkt_create.
#pragma once

#include <stdbool.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"
#include "solvers/sched/parallel_for.h"

typedef struct rw_kkt rw_kkt;

// The graph. Constraint k has rows[k] rows on bodies[first[k]] .. bodies[first[k + 1] - 1] (distinct
// indices in [0, body_count)). A constraint that also reaches the world (a fixed or driven body) has
// on_world set. `is_joint`: may serve as an edge of the spanning tree (then it has one body and the
// world, or two bodies).
typedef struct rw_kkt_graph {
    int32_t body_count, constraint_count;
    const int32_t* first;  // (constraint_count + 1)
    const int32_t* bodies; // (first[constraint_count])
    const int8_t* rows;    // (constraint_count), 1 to 6
    const bool* on_world;  // (constraint_count)
    const bool* is_joint;  // (constraint_count)
} rw_kkt_graph;

// Finds the order and the fill. The graph is copied. RESOURCE_EXHAUSTED.
rw_status rw_kkt_create(rw_alloc* alloc, const rw_kkt_graph* graph, rw_kkt** kkt);
void rw_kkt_destroy(rw_kkt* kkt);

// Where the caller writes the matrix before rw_kkt_factor.
double* rw_kkt_mass(rw_kkt* kkt, int32_t body);      // 6 x 6, symmetric, all of it
double* rw_kkt_jacobian(rw_kkt* kkt, int32_t slot);  // rows x 6, row major; slot as in `bodies`
double* rw_kkt_epsilon(rw_kkt* kkt, int32_t constraint); // rows

// Sum of rows; constraint k's multipliers start at rw_kkt_row_first(kkt, k).
int32_t rw_kkt_row_count(const rw_kkt* kkt);
int32_t rw_kkt_row_first(const rw_kkt* kkt, int32_t constraint);

// True when the constraint's connected component has a cycle (through the world too), so that its
// rows may be redundant and want a regularisation.
bool rw_kkt_in_loop(const rw_kkt* kkt, int32_t constraint);

// Doubles that the factor takes, and the off-diagonal blocks among them: a measure of the fill.
int64_t rw_kkt_block_count(const rw_kkt* kkt);

typedef struct rw_kkt_pivots {
    int32_t guarded;   // pivots that were not positive enough: the matrix is not what it should be
    int32_t redundant; // constraint rows whose pivot is their regularisation alone
} rw_kkt_pivots;

// Factors what was written. `regularisation` tells per constraint row which part of epsilon is
// there for redundancy only: a pivot below 1e4 of it counts as redundant.
rw_kkt_pivots rw_kkt_factor(rw_kkt* kkt, const double* regularisation, rw_parallel* parallel);

// Solves in place: body (6 per body) Q -> a, row gamma -> lambda, with the factor.
void rw_kkt_solve(rw_kkt* kkt, double* body, double* row, rw_parallel* parallel);

// Solves and removes the bias of `regularisation` (may be NULL: none) by `rounds` refinements:
// the residual of the system with epsilon - regularisation is solved again and added. For
// consistent redundant rows the multipliers tend to those of least sum(regularisation lambda^2).
void rw_kkt_solve_refined(rw_kkt* kkt, double* body, double* row, const double* regularisation,
                          int rounds, rw_parallel* parallel);
