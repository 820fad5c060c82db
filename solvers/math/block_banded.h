// Symmetric positive definite banded systems: the LDL' factor and solve of a rod's matrix. Rows are
// stored one after the other: entry (i, j), i - half_band <= j <= i, lies at
// a[i * (half_band + 1) + half_band - (i - j)], so that the diagonal is the last of its row and a
// row's entries run with j. Pure functions on caller-owned arrays; any thread.
//
// The matrix is a sum of dense blocks of half_band + 1 rows that start at multiples of `stride`, as
// the elements of a rod make it (stride 6 p, half_band 6 p + 5); entries outside of them are 0. A
// block's own rows need no more than the block: a cubic rod costs half of what its band would. A
// stride of 1 is a plain band.
//
// The same bits on every processor: vectors run over independent entries, no sum is reordered.
#pragma once

#include <stdint.h>

#define RW_BLOCK_BANDED_MAXIMUM 64 // half_band is less

// Factors in place: below the diagonal L, on it 1/D. With `b` (rows; or NULL) solves L y = b in place
// on the way. Returns 0, or 1 + the row of the first pivot that is not positive and finite (factor
// and `b` are then useless).
int64_t rw_block_banded_factor(int64_t rows, int half_band, int stride, double* a, double* b);

// Ends the solution of a right-hand side that went through the factor: L' x = y / D, in place.
void rw_block_banded_finish(int64_t rows, int half_band, int stride, const double* factor,
                            double* b);

// Solves in place for one right-hand side (rows).
void rw_block_banded_solve(int64_t rows, int half_band, int stride, const double* factor,
                           double* b);
