// Greedy colouring: items of one colour have no neighbour among themselves, so that a sweep may
// update them in any order, or at once, with the same result. A function of the graph alone. Any
// thread.
#pragma once

#include <stdint.h>

// Colours `count` items in index order with the lowest colour that no earlier neighbour has.
// Neighbours of item i are neighbour[first[i] .. first[i + 1]), both ways, in any order; repeats and
// the item itself are allowed. Writes `colour` (count) and returns the number of colours. `stamp` is
// scratch of (largest neighbour count + 2) numbers.
int32_t rw_colouring_greedy(int32_t count, const int32_t* first, const int32_t* neighbour,
                            int32_t* colour, int32_t* stamp);
