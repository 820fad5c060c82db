// Questions about a mechanism in its joint rates: mass matrix, Jacobian of a body point, inverse and
// forward dynamics. They use a spanning tree of the joints from the world (breadth first, in order
// of creation; DISTANCE joints close loops, they never carry one); floating mechanisms hang on their
// first body, which is held. One thread at a time; scratch memory comes from the caller's arena.
//
// With loops, rates of the tree are not independent: inverse dynamics returns the efforts that make
// the motion without help from the loop joints, so forward(inverse(a)) = a for every a that the
// loops allow.
#pragma once

#include "solvers/dae/dae_system.h"

typedef struct rw_dae_query {
    rw_dae_system* system; // borrowed; loaded and solved at the state in question
    int32_t rate_count;    // rates of the tree
    int32_t* rates;        // index among all joint rates of the model (rate_count)
    int32_t edge_count;
    int32_t* edges;        // tree joints, from the roots to the leaves
    bool* turned;          // the edge's outer body is the joint's parent (edges)
    int32_t* edge_rate;    // first tree rate of the edge (edges)
    double* solve;         // 6 x 6 of the edge: rows of the outer body, joint rows then rate rows
    double* inner;         // the same rows of the inner body (edges x 36)
    double* motion;        // work (bodies x 6)
    double* wrench;        // work (bodies x 6)
} rw_dae_query;

// Finds the tree and its matrices at the loaded state of `system`, whose accelerations were solved.
// FAILED_PRECONDITION when a joint is in a singular position; RESOURCE_EXHAUSTED.
rw_status rw_dae_query_begin(rw_dae_query* query, rw_dae_system* system, rw_arena* arena,
                             rw_error* error);

// Writes the mass matrix in tree rates (rate_count x rate_count).
void rw_dae_query_mass_matrix(rw_dae_query* query, double* rows);

// Writes the Jacobian of a point of a body (body frame's axes from its origin) with respect to the
// tree rates (6 x rate_count): world velocity of the point, world angular velocity.
void rw_dae_query_jacobian(rw_dae_query* query, int32_t body, rw_vec3 point, double* rows);

// Writes the efforts (rate_count), added to the motors' present ones, that give the tree rates these
// accelerations.
void rw_dae_query_inverse_dynamics(rw_dae_query* query, const double* accelerations,
                                   double* efforts);

// Writes the accelerations of the tree rates under these efforts, added to the motors'.
rw_status rw_dae_query_forward_dynamics(rw_dae_query* query, const double* efforts,
                                        double* accelerations);
