// One finite element of a Cosserat rod: strains and their gradients at a Gauss point, for Lagrange
// elements of order 1, 2, 3 and for the joint of a rigid chain. Pure functions; any thread.
//
// Positions are interpolated by Lagrange polynomials, rotations by their rotation vectors relative
// to the element's first node (seed 000, eq. 98-104; Jelenic and Crisfield 1999), so strains do not
// change under a rigid motion of the whole. Increments are (dp, dtheta): world position, rotation
// vector in the node's own frame (R <- R exp(dtheta^)).
#pragma once

#include "solvers/math/mat3.h"
#include "solvers/math/quat.h"
#include "solvers/math/vec3.h"

#define RW_ROD_ELEMENT_NODES 4                       // of order 3
#define RW_ROD_ELEMENT_ANGLE_MAX 2.82743338823081391 // 0.9 pi: beyond it the logarithm may wrap

// Values of the basis at one Gauss point of the reference element [0, 1].
typedef struct rw_rod_element_basis {
    double value[RW_ROD_ELEMENT_NODES];
    double slope[RW_ROD_ELEMENT_NODES]; // d/dxi
    double weight;
} rw_rod_element_basis;

typedef struct rw_rod_element_rule {
    int order;
    int node_count;  // order + 1
    int point_count; // order: uniformly reduced quadrature; order + 1: full
    rw_rod_element_basis at[RW_ROD_ELEMENT_NODES];
} rw_rod_element_rule;

// The quadrature rule of an element of `order`; `full` takes one point more (for the locking study).
rw_rod_element_rule rw_rod_element_make_rule(int order, int full);

// Strain measures at a point (eq. 101, 103): v = R' p' (shear along d1, d2, stretch along d3) and
// u = Gamma(theta) theta' (Darboux vector), with the point's rotation.
typedef struct rw_rod_element_strain {
    rw_vec3 v, u;
    rw_mat3 rotation; // R(s)
} rw_rod_element_strain;

// Gradient of the strains v1 v2 v3 u1 u2 u3 by the increments of the nodes: column 6 j + k, k = 0-2
// position, 3-5 rotation of node j. Rows are longer than the columns, for vectors.
#define RW_ROD_ELEMENT_STRIDE 28
typedef struct rw_rod_element_gradient {
    double row[6][RW_ROD_ELEMENT_STRIDE];
} rw_rod_element_gradient;

// A 3x3 matrix with rows of four, for vectors.
typedef struct rw_rod_element_block {
    double row[3][4];
} rw_rod_element_block;

// What all points of an element share: relative rotation vectors and their inverse Jacobians.
typedef struct rw_rod_element_frame {
    int node_count;
    rw_quat first;
    rw_mat3 first_axes;                                    // R_1
    rw_vec3 theta[RW_ROD_ELEMENT_NODES];                   // log(R_1' R_j); theta[0] = 0
    rw_rod_element_block inverse[RW_ROD_ELEMENT_NODES];    // Gamma^-1(theta_j)
    rw_rod_element_block transposed[RW_ROD_ELEMENT_NODES]; // its transpose
    rw_vec3 position[RW_ROD_ELEMENT_NODES];
    double angle_max; // largest |theta_j| [rad]
} rw_rod_element_frame;

// Reads the nodes' positions (node_count x 3) and rotations (node_count x 4).
void rw_rod_element_make_frame(int node_count, const double* positions, const double* rotations,
                               rw_rod_element_frame* frame);

// Strain at a Gauss point of an element of rest length `length` [m]; `gradient` may be NULL.
void rw_rod_element_evaluate(const rw_rod_element_frame* frame, const rw_rod_element_basis* basis,
                             double length, rw_rod_element_strain* strain,
                             rw_rod_element_gradient* gradient);

// The same for the joint between two rigid bodies of a chain (eq. 89, 90): v averages the two
// rotation matrices, and `strain->rotation` is their mean.
void rw_rod_element_evaluate_chain(const rw_rod_element_frame* frame, double length,
                                   rw_rod_element_strain* strain,
                                   rw_rod_element_gradient* gradient);
