#include "solvers/math/block_banded.h"

#include <math.h>

int64_t rw_block_banded_factor(int64_t rows, int half_band, double* a) {
    const int width = half_band + 1;
    for (int64_t i = 0; i < rows; i++) {
        double* row = &a[i * width + half_band - i]; // row[j] is entry (i, j)
        int64_t first = i > half_band ? i - half_band : 0;
        // row[j] becomes L_ij D_j, from left to right: the dot product of two finished rows.
        for (int64_t j = first; j < i; j++) {
            const double* other = &a[j * width + half_band - j];
            int64_t start = j > half_band ? j - half_band : 0;
            start = start > first ? start : first;
            double sum = row[j];
            for (int64_t k = start; k < j; k++) {
                sum -= row[k] * other[k];
            }
            row[j] = sum;
        }
        double pivot = row[i];
        for (int64_t j = first; j < i; j++) {
            double scaled = row[j] * a[j * width + half_band];
            pivot -= row[j] * scaled;
            row[j] = scaled;
        }
        if (!(pivot > 0) || !isfinite(pivot)) {
            return i + 1;
        }
        row[i] = 1 / pivot;
    }
    return 0;
}

void rw_block_banded_solve(int64_t rows, int half_band, const double* factor, double* b) {
    const int width = half_band + 1;
    for (int64_t i = 0; i < rows; i++) {
        const double* row = &factor[i * width + half_band - i];
        int64_t first = i > half_band ? i - half_band : 0;
        double sum = b[i];
        for (int64_t k = first; k < i; k++) {
            sum -= row[k] * b[k];
        }
        b[i] = sum;
    }
    for (int64_t i = 0; i < rows; i++) {
        b[i] *= factor[i * width + half_band];
    }
    for (int64_t i = rows - 1; i >= 0; i--) {
        const double* row = &factor[i * width + half_band - i];
        int64_t first = i > half_band ? i - half_band : 0;
        double value = b[i];
        for (int64_t k = first; k < i; k++) {
            b[k] -= row[k] * value;
        }
    }
}
