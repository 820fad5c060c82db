// The banded factor and solve against a dense oracle, and its answer to matrices that are not
// positive definite.
#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "solvers/base/check.h"
#include "solvers/math/block_banded.h"

static double draw(uint64_t* seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 * 2 - 1;
}

typedef struct system {
    int64_t rows;
    int half_band, stride;
    double* dense; // rows x rows
    double* band;
    double* right;
} system_of;

// Sum of small outer products along the diagonal, as elements make it, plus a little mass.
static system_of make_system(int64_t rows, int half_band, int stride, uint64_t* seed) {
    system_of s = {rows,
                   half_band,
                   stride,
                   calloc((size_t)(rows * rows), sizeof(double)),
                   calloc((size_t)(rows * (half_band + 1)), sizeof(double)),
                   calloc((size_t)rows, sizeof(double))};
    int width = half_band + 1;
    for (int64_t first = 0; first < rows; first += stride) {
        for (int times = 0; times < width; times++) {
            double* v = calloc((size_t)width, sizeof *v);
            for (int i = 0; i < width; i++) {
                v[i] = draw(seed);
            }
            for (int i = 0; i < width; i++) {
                for (int j = 0; j < width; j++) {
                    if (first + i < rows && first + j < rows) {
                        s.dense[(first + i) * rows + first + j] += v[i] * v[j];
                    }
                }
            }
            free(v);
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        s.dense[i * rows + i] += 0.01;
        s.right[i] = draw(seed);
        for (int64_t j = i > half_band ? i - half_band : 0; j <= i; j++) {
            s.band[i * width + half_band - (i - j)] = s.dense[i * rows + j];
        }
    }
    return s;
}

static void release(system_of* s) {
    free(s->dense);
    free(s->band);
    free(s->right);
}

static void solution_leaves_no_residual_of_the_dense_matrix(void** state) {
    (void)state;
    uint64_t seed = 11;
    static const struct {
        int64_t rows;
        int half_band, stride;
    } sizes[] = {{1, 0, 1},   {5, 0, 1},   {6, 5, 6},    {7, 3, 1},    {12, 11, 6},
                 {18, 11, 6}, {66, 11, 6}, {78, 17, 12}, {96, 23, 18}, {102, 11, 1},
                 {30, 29, 2}, {11, 17, 3}, {61, 17, 12}, {50, 23, 18}, {40, 63, 7}};
    for (size_t k = 0; k < RW_COUNT_OF(sizes); k++) {
        system_of s = make_system(sizes[k].rows, sizes[k].half_band, sizes[k].stride, &seed);
        double* x = malloc((size_t)s.rows * sizeof *x);
        memcpy(x, s.right, (size_t)s.rows * sizeof *x);
        // Once on the way through the factor, once with the factor: the same bits.
        double* other = malloc((size_t)s.rows * sizeof *other);
        memcpy(other, s.right, (size_t)s.rows * sizeof *other);
        assert_int_equal(rw_block_banded_factor(s.rows, s.half_band, s.stride, s.band, other), 0);
        rw_block_banded_finish(s.rows, s.half_band, s.stride, s.band, other);
        rw_block_banded_solve(s.rows, s.half_band, s.stride, s.band, x);
        assert_memory_equal(x, other, (size_t)s.rows * sizeof *x);
        free(other);
        for (int64_t i = 0; i < s.rows; i++) {
            double sum = 0, size = 0;
            for (int64_t j = 0; j < s.rows; j++) {
                sum += s.dense[i * s.rows + j] * x[j];
                size += fabs(s.dense[i * s.rows + j] * x[j]);
            }
            rw_assert_near(sum, s.right[i], 1e-14 * size);
        }
        free(x);
        release(&s);
    }
}

static void factor_multiplies_back_to_the_matrix(void** state) {
    (void)state;
    uint64_t seed = 5;
    system_of s = make_system(66, 17, 12, &seed);
    assert_int_equal(rw_block_banded_factor(s.rows, s.half_band, s.stride, s.band, NULL), 0);
    int width = s.half_band + 1;
    for (int64_t i = 0; i < s.rows; i++) {
        for (int64_t j = i > s.half_band ? i - s.half_band : 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = i > s.half_band ? i - s.half_band : 0; k <= j; k++) {
                double lik = k == i ? 1 : s.band[i * width + s.half_band - (i - k)];
                double ljk = k == j ? 1 : s.band[j * width + s.half_band - (j - k)];
                sum += lik * ljk / s.band[k * width + s.half_band];
            }
            rw_assert_near(sum, s.dense[i * s.rows + j], 2e-13);
        }
    }
    release(&s);
}

static void a_matrix_that_is_not_positive_definite_names_its_row(void** state) {
    (void)state;
    uint64_t seed = 9;
    for (int kind = 0; kind < 3; kind++) {
        system_of s = make_system(40, 11, 6, &seed);
        static const double bad[] = {-1, 0, NAN};
        double* pivot = &s.band[23 * 12 + 11];
        *pivot = bad[kind];
        // Rows before it are untouched; its own pivot is the value minus what is eliminated.
        assert_int_equal(rw_block_banded_factor(s.rows, s.half_band, s.stride, s.band, NULL), 24);
        release(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solution_leaves_no_residual_of_the_dense_matrix),
        cmocka_unit_test(factor_multiplies_back_to_the_matrix),
        cmocka_unit_test(a_matrix_that_is_not_positive_definite_names_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
