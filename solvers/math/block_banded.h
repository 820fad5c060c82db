// Symmetric positive definite banded systems: the LDL' factor and solve of a rod's matrix. Rows are
// stored one after the other: entry (i, j), i - half_band <= j <= i, lies at
// a[i * (half_band + 1) + half_band - (i - j)], so that the diagonal is the last of its row and a
// row's entries run with j. Pure functions on caller-owned arrays; any thread.
#pragma once

#include <stdint.h>

// Factors in place: below the diagonal L, on it 1/D. Returns 0, or 1 + the row of the first pivot
// that is not positive and finite (the factor is then useless).
int64_t rw_block_banded_factor(int64_t rows, int half_band, double* a);

// Solves in place for one right-hand side (rows).
void rw_block_banded_solve(int64_t rows, int half_band, const double* factor, double* b);
