#include "solvers/scr/colouring.h"
#include "tests/support/rw_test.h"

// Neighbour lists of `count` items from pairs; both ways.
static void adjacency(int32_t count, const int32_t (*pairs)[2], int32_t pair_count, int32_t* first,
                      int32_t* neighbour) {
    memset(first, 0, ((size_t)count + 1) * sizeof *first);
    for (int32_t k = 0; k < pair_count; k++)
        for (int end = 0; end < 2; end++)
            first[pairs[k][end] + 1]++;
    for (int32_t i = 0; i < count; i++)
        first[i + 1] += first[i];
    int32_t at[64];
    memcpy(at, first, (size_t)count * sizeof *at);
    for (int32_t k = 0; k < pair_count; k++)
        for (int end = 0; end < 2; end++)
            neighbour[at[pairs[k][end]]++] = pairs[k][1 - end];
}

static int32_t colour_pairs(int32_t count, const int32_t (*pairs)[2], int32_t pair_count,
                            int32_t* colour) {
    int32_t first[65], neighbour[256], stamp[66];
    adjacency(count, pairs, pair_count, first, neighbour);
    int32_t colours = rw_colouring_greedy(count, first, neighbour, colour, stamp);
    for (int32_t k = 0; k < pair_count; k++)
        if (pairs[k][0] != pairs[k][1])
            assert_int_not_equal(colour[pairs[k][0]], colour[pairs[k][1]]);
    for (int32_t i = 0; i < count; i++)
        assert_in_range(colour[i], 0, colours - 1);
    return colours;
}

static void chain_takes_two_colours_in_turn(void** unused) {
    (void)unused;
    int32_t pairs[9][2], colour[10];
    for (int32_t k = 0; k < 9; k++) {
        pairs[k][0] = k;
        pairs[k][1] = k + 1;
    }
    assert_int_equal(colour_pairs(10, (const int32_t(*)[2])pairs, 9, colour), 2);
    for (int32_t i = 0; i < 10; i++)
        assert_int_equal(colour[i], i % 2);
}

static void star_ring_and_clique_are_proper(void** unused) {
    (void)unused;
    int32_t colour[64];
    int32_t star[40][2], ring[7][2], clique[10][2], n = 0;
    for (int32_t k = 0; k < 40; k++) {
        star[k][0] = 40;
        star[k][1] = k;
    }
    assert_int_equal(colour_pairs(41, (const int32_t(*)[2])star, 40, colour), 2);
    for (int32_t k = 0; k < 7; k++) {
        ring[k][0] = k;
        ring[k][1] = (k + 1) % 7;
    }
    assert_int_equal(colour_pairs(7, (const int32_t(*)[2])ring, 7, colour), 3);
    for (int32_t i = 0; i < 5; i++) {
        for (int32_t j = 0; j < i; j++) {
            clique[n][0] = i;
            clique[n++][1] = j;
        }
    }
    assert_int_equal(colour_pairs(5, (const int32_t(*)[2])clique, 10, colour), 5);
}

static void repeats_and_loops_are_ignored(void** unused) {
    (void)unused;
    const int32_t pairs[][2] = {{0, 1}, {1, 0}, {0, 1}, {2, 2}, {1, 2}};
    int32_t colour[3];
    assert_int_equal(colour_pairs(3, pairs, 5, colour), 2);
}

static void a_component_is_coloured_as_if_alone(void** unused) {
    (void)unused;
    const int32_t alone[][2] = {{0, 1}, {1, 2}, {2, 0}, {2, 3}};
    const int32_t among[][2] = {{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 4}, {6, 7}, {8, 9}};
    int32_t one[4], two[10];
    colour_pairs(4, alone, 4, one);
    colour_pairs(10, among, 8, two);
    assert_memory_equal(one, two + 4, sizeof one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_takes_two_colours_in_turn),
        cmocka_unit_test(star_ring_and_clique_are_proper),
        cmocka_unit_test(repeats_and_loops_are_ignored),
        cmocka_unit_test(a_component_is_coloured_as_if_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
