#include "tests/support/rw_test.h"

#include "proto/state_quantize.h"
#include "proto/state_rotation.h"

#define COUNT 1000

static uint64_t random_state = 12345;

static double uniform(double low, double high) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return low + (high - low) * (double)(random_state >> 11) * 0x1p-53;
}

static double rows[COUNT * 9], key[COUNT * 4];
static uint32_t fast[COUNT * 3], plain[COUNT * 3];
static int32_t shuffled[COUNT];

static void fill(double size) {
    for (int i = 0; i < COUNT; i++) {
        double length = 0.0, key_length = 0.0;
        for (int k = 0; k < 4; k++) {
            rows[i * 9 + k] = uniform(-1.0, 1.0);
            // Most stay near the key, some turn far from it.
            key[k * COUNT + i] =
                i % 10 == 0 ? uniform(-1.0, 1.0) : rows[i * 9 + k] + uniform(-1.0, 1.0) * 0.1;
            length += rows[i * 9 + k] * rows[i * 9 + k];
            key_length += key[k * COUNT + i] * key[k * COUNT + i];
        }
        for (int k = 0; k < 4; k++) {
            rows[i * 9 + k] /= sqrt(length);
            key[k * COUNT + i] /= sqrt(key_length);
        }
        for (int k = 4; k < 9; k++) {
            rows[i * 9 + k] = uniform(-size, size);
        }
        shuffled[i] = (i * 371 + 5) % COUNT;
    }
}

static void the_nearest_integer_is_that_of_rint(void** state) {
    (void)state;
    for (int i = 0; i < 100000; i++) {
        double value = uniform(-2147483000.0, 2147483000.0);
        value = i % 3 == 0 ? floor(value) + 0.5 : value; // ties
        assert_int_equal((int32_t)rw_state_quantize_nearest(value), lrint(value));
    }
}

static void vectors_become_the_integers_of_a_plain_loop(void** state) {
    (void)state;
    fill(1000.0);
    for (int32_t count = 0; count <= COUNT; count += 37) {
        for (int indexed = 0; indexed < 2; indexed++) {
            rw_state_quantize_source source = {rows + 4, indexed ? shuffled : NULL, 9, count};
            assert_true(rw_state_quantize_vectors(&source, 1e5, fast));
            assert_true(rw_state_quantize_vectors_plainly(&source, 1e5, plain));
            assert_memory_equal(fast, plain, sizeof(uint32_t) * 3 * (size_t)count);
            for (int32_t i = 0; i < count; i++) {
                const double* p = rows + 4 + (indexed ? shuffled[i] : i) * 9;
                for (int k = 0; k < 3; k++) {
                    assert_int_equal((int32_t)fast[k * count + i], lrint(p[k] * 1e5));
                }
            }
        }
    }
}

static void one_number_out_of_range_is_noticed_wherever_it_is(void** state) {
    (void)state;
    static const double odd[] = {1.1e9, -1.1e9, (double)NAN, (double)INFINITY, (double)-INFINITY,
                                 1e300};
    fill(1.0);
    rw_state_quantize_source source = {rows + 4, NULL, 9, 200};
    for (int i = 0; i < 200 * 3; i++) {
        double* place = rows + 4 + i / 3 * 9 + i % 3;
        double kept = *place;
        *place = odd[i % 6];
        assert_false(rw_state_quantize_vectors(&source, 1.0, fast));
        assert_false(rw_state_quantize_vectors_plainly(&source, 1.0, plain));
        *place = kept;
    }
    assert_true(rw_state_quantize_vectors(&source, 1.0, fast));
}

static void rotations_become_the_integers_of_a_plain_loop(void** state) {
    (void)state;
    fill(1.0);
    for (int32_t count = 1; count <= COUNT; count += 333) {
        static double dense[COUNT * 4];
        for (int32_t i = 0; i < count; i++) {
            for (int k = 0; k < 4; k++) {
                dense[k * count + i] = key[k * COUNT + i];
            }
        }
        rw_state_quantize_source source = {rows, NULL, 9, count};
        bool fast_far, plain_far, far = false;
        double still = 0.01, inverse = 3500.0;
        assert_true(rw_state_quantize_rotations(&source, dense, inverse, still, fast, &fast_far));
        assert_true(
            rw_state_quantize_rotations_plainly(&source, dense, inverse, still, plain, &plain_far));
        assert_memory_equal(fast, plain, sizeof(uint32_t) * 3 * (size_t)count);
        for (int32_t i = 0; i < count; i++) {
            double r[4],
                k[4] = {dense[i], dense[count + i], dense[2 * count + i], dense[3 * count + i]};
            rw_state_rotation_relative(rows + i * 9, k, r);
            double sine_square = r[1] * r[1] + r[2] * r[2] + r[3] * r[3];
            far = far || fabs(r[0]) < 0.5;
            for (int c = 0; c < 3; c++) {
                double expected = sine_square <= still ? 0.0 : r[c + 1] * copysign(inverse, r[0]);
                if (fabs(sine_square - still) > 1e-9) {
                    rw_assert_near((int32_t)fast[c * count + i], expected, 0.5 + 1e-6);
                }
            }
        }
        assert_int_equal(fast_far, far);
        assert_int_equal(plain_far, far);
    }
}

static void one_quaternion_that_is_not_unit_is_noticed_wherever_it_is(void** state) {
    (void)state;
    static const double odd[] = {2.0, (double)NAN, (double)INFINITY, 1.001};
    fill(1.0);
    rw_state_quantize_source source = {rows, NULL, 9, COUNT};
    bool far;
    for (int i = 0; i < COUNT; i++) {
        double kept[4];
        memcpy(kept, rows + i * 9, sizeof kept);
        for (int k = 0; k < 4; k++) {
            rows[i * 9 + k] *= odd[i % 4];
        }
        assert_false(rw_state_quantize_rotations(&source, key, 100.0, 0.0, fast, &far));
        assert_false(rw_state_quantize_rotations_plainly(&source, key, 100.0, 0.0, plain, &far));
        memcpy(rows + i * 9, kept, sizeof kept);
    }
    assert_true(rw_state_quantize_rotations(&source, key, 100.0, 0.0, fast, &far));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_integer_is_that_of_rint),
        cmocka_unit_test(vectors_become_the_integers_of_a_plain_loop),
        cmocka_unit_test(one_number_out_of_range_is_noticed_wherever_it_is),
        cmocka_unit_test(rotations_become_the_integers_of_a_plain_loop),
        cmocka_unit_test(one_quaternion_that_is_not_unit_is_noticed_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
