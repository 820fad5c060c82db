#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "proto/state_lanes.h"

#define COUNT 5000

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// Chains of random lengths 1 .. `most` over `count` elements.
static void cut_chains(rw_state_lanes_chains* chains, int32_t* starts, int32_t count, int most) {
    chains->starts = starts;
    chains->count = 0;
    int32_t at = 0;
    while (at < count) {
        starts[chains->count++] = at;
        at += 1 + (int32_t)(random_bits() % (unsigned)most);
    }
    starts[chains->count] = count;
}

static void differences_of_any_integers_are_undone_by_running_sums(void** state) {
    (void)state;
    static uint32_t in32[COUNT], out32[COUNT];
    static uint64_t in64[COUNT], out64[COUNT];
    static int32_t starts[COUNT + 1];
    rw_state_lanes_chains chains;
    for (int round = 0; round < 200; round++) {
        int32_t count = (int32_t)(random_bits() % COUNT);
        cut_chains(&chains, starts, count, round % 2 == 0 ? 3 : 400);
        for (int32_t i = 0; i < count; i++) {
            in64[i] = random_bits() >> (random_bits() % 64);
            in32[i] = (uint32_t)(round % 3 == 0 ? random_bits() : in64[i]);
        }
        for (int order = 0; order <= 2; order++) {
            rw_state_lanes_difference32(in32, &chains, order, out32);
            rw_state_lanes_integrate32(out32, &chains, order);
            assert_memory_equal(in32, out32, (size_t)count * sizeof *in32);
            rw_state_lanes_difference64(in64, &chains, order, out64);
            rw_state_lanes_integrate64(out64, &chains, order);
            assert_memory_equal(in64, out64, (size_t)count * sizeof *in64);
        }
    }
}

static void second_differences_start_anew_at_every_chain(void** state) {
    (void)state;
    int32_t starts[] = {0, 4, 5};
    rw_state_lanes_chains chains = {starts, 2};
    uint32_t values[] = {10, 13, 17, 20, 5}, out[5];
    rw_state_lanes_difference32(values, &chains, 2, out);
    uint32_t expected[] = {20, 6, 2, 1, 10}; // zigzag of 10, 3, 1, -1, 5
    assert_memory_equal(out, expected, sizeof expected);
}

static void planes_of_the_least_width_hold_every_value(void** state) {
    (void)state;
    static uint64_t in[COUNT], out[COUNT];
    static unsigned char planes[COUNT * 8];
    for (int width = 0; width <= 8; width++) {
        uint64_t bits = 0;
        for (int i = 0; i < COUNT; i++) {
            in[i] = width == 0 ? 0 : random_bits() >> (64 - 8 * width);
            bits |= in[i];
            out[i] = 0;
        }
        assert_int_equal(rw_state_lanes_width(bits), width);
        rw_state_lanes_split64(in, COUNT, width, planes);
        for (int p = 0; p < width; p++) {
            rw_state_lanes_merge64(out, COUNT, p, planes + (size_t)p * COUNT);
        }
        assert_memory_equal(in, out, sizeof in);
    }
}

static void the_order_follows_the_shape_of_the_data(void** state) {
    (void)state;
    static uint32_t values[COUNT];
    int32_t starts[] = {0, COUNT};
    rw_state_lanes_chains chains = {starts, 1};
    for (int i = 0; i < COUNT; i++) {
        values[i] = (uint32_t)(random_bits() % 201) - 100;
    }
    assert_int_equal(rw_state_lanes_choose_order32(values, &chains, 1), 0);
    for (int i = 1; i < COUNT; i++) { // a random walk
        values[i] = values[i - 1] + (uint32_t)(random_bits() % 21) - 10;
    }
    assert_int_equal(rw_state_lanes_choose_order32(values, &chains, 1), 1);
    for (int i = 0; i < COUNT; i++) { // a parabola
        values[i] = (uint32_t)(i * i);
    }
    assert_int_equal(rw_state_lanes_choose_order32(values, &chains, 1), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_of_any_integers_are_undone_by_running_sums),
        cmocka_unit_test(second_differences_start_anew_at_every_chain),
        cmocka_unit_test(planes_of_the_least_width_hold_every_value),
        cmocka_unit_test(the_order_follows_the_shape_of_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
