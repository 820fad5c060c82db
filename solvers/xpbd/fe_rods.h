// Cosserat rods as Lagrange finite elements of order 1-3 or as a chain of rigid bodies, one backward
// Euler step by Newton's method with a direct banded solve per rod (seed 000, sections 6 and 8.2, in
// its primal form: eliminating the multipliers of compliant constraints gives this matrix). The
// thread that runs the world; rods are shared out with parallel_for.
//
// Per rod and iteration, in the increments (dp, dtheta) of every node:
//
//   [ M/h^2 + sum_k w_k l B_k' K (1 + b/h) B_k + string stiffness of tension ] d = -residual
//
//   residual = M/h^2 (x - prediction) + sum_k w_k l B_k' [K (e - e*) + b K (e - e_start)/h] + drags
//
// with the strains e = (v, u) of rod_element.h, rest strains e* at every Gauss point (numerics, seed
// 000 note 14) and Kelvin-Voigt time b. The last term is the positive part of the geometric
// stiffness (note 19). World-held nodes are prescribed; nodes held by a dynamic body are prescribed
// at the body's trial pose, and `respond` gives the body the condensed wrench and stiffness of the
// whole rod, so that one pass of rods and bodies is the monolithic solve.
#pragma once

#include "solvers/model/solver.h"

typedef struct rw_fe_rods rw_fe_rods;

// Makes the rods of `model` (borrowed). RESOURCE_EXHAUSTED.
rw_status rw_fe_rods_create(rw_model* model, rw_alloc* alloc, rw_fe_rods** rods, rw_error* error);
void rw_fe_rods_destroy(rw_fe_rods* rods);

// One Gauss point more per element (shear locks; for studies), from the next prepare on.
void rw_fe_rods_set_full_quadrature(rw_fe_rods* rods, bool full);

// Refuses what is not served (graphs) and elements that turn by more than 0.9 pi, as created or at
// rest (INVALID_ARGUMENT, "elements"); tells the layout: one frame per node. RESOURCE_EXHAUSTED.
rw_status rw_fe_rods_admit(const rw_fe_rods* rods, const rw_rod_desc* desc, int32_t* frame_count,
                           int32_t* element_count, rw_error* error);

// Rebuilds elements, masses and rest strains. RESOURCE_EXHAUSTED.
rw_status rw_fe_rods_prepare(rw_fe_rods* rods, rw_error* error);

// The phases of solver.h.
rw_status rw_fe_rods_begin(rw_fe_rods* rods, rw_step* step);
rw_status rw_fe_rods_sweep(rw_fe_rods* rods, rw_step* step, bool* done);
rw_status rw_fe_rods_respond(rw_fe_rods* rods, rw_step* step);
rw_status rw_fe_rods_end(rw_fe_rods* rods, rw_step* step);
// Pairs of bodies that respond may write.
int32_t rw_fe_rods_pair_count(const rw_fe_rods* rods);

// Readers of solver.h; frames are the nodes' own.
void rw_fe_rods_energy(const rw_fe_rods* rods, const rw_state* state, rw_energy* energy);
void rw_fe_rods_attachment_wrench(const rw_fe_rods* rods, int32_t attachment, double wrench[6]);
void rw_fe_rods_element_wrench(const rw_fe_rods* rods, const rw_state* state, int32_t rod,
                               int32_t element, double wrench[6]);
void rw_fe_rods_at(const rw_fe_rods* rods, const rw_state* state, int32_t rod, double s,
                   double position[3], double rotation[4]);
double rw_fe_rods_elastic_energy(const rw_fe_rods* rods, const rw_state* state, int32_t rod);
double rw_fe_rods_length(const rw_fe_rods* rods, const rw_state* state, int32_t rod);
double rw_fe_rods_max_strain(const rw_fe_rods* rods, const rw_state* state, int32_t rod);
double rw_fe_rods_residual(const rw_fe_rods* rods, int32_t rod);
int64_t rw_fe_rods_frame_first(const rw_fe_rods* rods, int32_t rod); // row of its first frame
double rw_fe_rods_node_mass(const rw_fe_rods* rods, int32_t node);
void rw_fe_rods_angular_momentum(const rw_fe_rods* rods, const rw_state* state, int32_t rod,
                                 double momentum[3]);
// The private state: attachment wrenches of the last step.
rw_solver_fields rw_fe_rods_fields(rw_fe_rods* rods);
