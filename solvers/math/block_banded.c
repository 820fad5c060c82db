#include "solvers/math/block_banded.h"

#include <math.h>
#include <stddef.h>

#include "solvers/base/check.h"
#include "solvers/math/simd.h"

// y[i] -= factor x[i]
RW_SIMD_KERNEL void take_off(double* restrict y, double factor, const double* restrict x,
                             int64_t count) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        *(rw_simd_four*)&y[i] -= factor * *(const rw_simd_four*)&x[i];
    }
    for (; i < count; i++) {
        y[i] -= factor * x[i];
    }
}

// The last row that column k reaches.
static int64_t last_row(int64_t rows, int half_band, int stride, int64_t k) {
    int64_t last = k / stride * stride + half_band;
    return last < rows ? last : rows - 1;
}

// Right-looking: column k is finished, then taken off the rows below, row by row.
RW_SIMD_KERNEL int64_t factor_kernel(int64_t rows, int half_band, int stride, double* restrict a,
                                     double* restrict b) {
    const int width = half_band + 1;
    double column[RW_BLOCK_BANDED_MAXIMUM], scaled[RW_BLOCK_BANDED_MAXIMUM];
    for (int64_t k = 0; k < rows; k++) {
        double pivot = a[k * width + half_band];
        if (!(pivot > 0) || !isfinite(pivot)) {
            return k + 1;
        }
        double inverse = 1 / pivot;
        a[k * width + half_band] = inverse;
        int count = (int)(last_row(rows, half_band, stride, k) - k);
        // Entry (k + 1 + i, k); one row on is width - 1 doubles on.
        double* entry = &a[(k + 1) * width + half_band - 1];
        for (int i = 0; i < count; i++) {
            column[i] = entry[(int64_t)i * (width - 1)];
        }
        for (int i = 0; i < count; i++) {
            scaled[i] = column[i] * inverse;
        }
        for (int i = 0; i < count; i++) {
            double factor = scaled[i];
            entry[(int64_t)i * (width - 1)] = factor;
            take_off(&a[(k + 1 + i) * width + half_band - i], factor, column, i + 1);
        }
        if (b != NULL) {
            take_off(&b[k + 1], b[k], scaled, count);
        }
    }
    return 0;
}

RW_SIMD_KERNEL void finish_kernel(int64_t rows, int half_band, int stride,
                                  const double* restrict factor, double* restrict b) {
    const int width = half_band + 1;
    for (int64_t i = 0; i < rows; i++) {
        b[i] *= factor[i * width + half_band];
    }
    for (int64_t i = rows - 1; i > 0; i--) {
        // Row i reaches back to the first row of the first block that holds it.
        int64_t first = i > half_band ? (i - half_band + stride - 1) / stride * stride : 0;
        const double* row = &factor[i * width + half_band - i];
        take_off(&b[first], b[i], &row[first], i - first);
    }
}

static int64_t factor_plain(int64_t rows, int half_band, int stride, double* a, double* b) {
    return factor_kernel(rows, half_band, stride, a, b);
}

RW_SIMD_AVX2 static int64_t factor_avx2(int64_t rows, int half_band, int stride, double* a,
                                        double* b) {
    return factor_kernel(rows, half_band, stride, a, b);
}

static void finish_plain(int64_t rows, int half_band, int stride, const double* factor, double* b) {
    finish_kernel(rows, half_band, stride, factor, b);
}

RW_SIMD_AVX2 static void finish_avx2(int64_t rows, int half_band, int stride, const double* factor,
                                     double* b) {
    finish_kernel(rows, half_band, stride, factor, b);
}

int64_t rw_block_banded_factor(int64_t rows, int half_band, int stride, double* a, double* b) {
    RW_ASSERT(half_band < RW_BLOCK_BANDED_MAXIMUM && stride >= 1);
    return rw_simd_has_avx2() ? factor_avx2(rows, half_band, stride, a, b)
                              : factor_plain(rows, half_band, stride, a, b);
}

void rw_block_banded_finish(int64_t rows, int half_band, int stride, const double* factor,
                            double* b) {
    if (rw_simd_has_avx2()) {
        finish_avx2(rows, half_band, stride, factor, b);
    } else {
        finish_plain(rows, half_band, stride, factor, b);
    }
}

void rw_block_banded_solve(int64_t rows, int half_band, int stride, const double* factor,
                           double* b) {
    const int width = half_band + 1;
    for (int64_t i = 0; i < rows; i++) {
        const double* row = &factor[i * width + half_band - i];
        int64_t first = i > half_band ? (i - half_band + stride - 1) / stride * stride : 0;
        double sum = b[i];
        for (int64_t k = first; k < i; k++) {
            sum -= row[k] * b[k];
        }
        b[i] = sum;
    }
    rw_block_banded_finish(rows, half_band, stride, factor, b);
}
