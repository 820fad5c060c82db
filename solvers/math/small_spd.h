// Direct solves of small dense symmetric systems, 1 to 12 unknowns: the blocks of joints and nodes.
// LDL' without pivoting, for positive definite matrices, in a fixed order of operations. Pure
// functions on caller-owned arrays; any thread may call them.
#pragma once

#include "solvers/math/mat3.h"
#include "solvers/math/vec3.h"

#define RW_SMALL_SPD_MAX 12

// Factors the symmetric matrix `a` (n x n, row major, only the lower triangle is read) in place:
// below the diagonal the unit lower factor L, on it 1/D. The upper triangle is left alone.
//
// A pivot that is not above `relative_floor` times its own original diagonal entry (or not
// positive, or not a number) is guarded: its 1/D becomes 0 and its column of L is cleared, so that
// the unknown is solved as 0 and decoupled from the rest. Returns the number of guarded pivots, 0
// for a proper positive definite matrix. n must be in [1, RW_SMALL_SPD_MAX].
int rw_small_spd_factor(int n, double* a, double relative_floor);

// Solves in place, b <- A^-1 b, with the factor of rw_small_spd_factor; b has n entries.
void rw_small_spd_solve(int n, const double* factor, double* b);

// Solves for `columns` right-hand sides, b row major (n x columns).
void rw_small_spd_solve_many(int n, const double* factor, double* b, int columns);

// Solves the 3x3 system a x = b by LDL' with floor 0; returns the number of guarded pivots.
int rw_small_spd_solve3(const rw_mat3* a, rw_vec3 b, rw_vec3* x);

// Writes the eigenvalues, ascending, and unit eigenvectors (columns, a right-handed frame) of a
// symmetric 3x3 matrix, by Jacobi rotations: a = V diag(values) V'. For principal axes of inertia.
void rw_small_spd_eigen3(const rw_mat3* a, double values[3], rw_mat3* vectors);
