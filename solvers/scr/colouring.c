#include "solvers/scr/colouring.h"

#include <string.h>

int32_t rw_colouring_greedy(int32_t count, const int32_t* first, const int32_t* neighbour,
                            int32_t* colour, int32_t* stamp) {
    int32_t colours = 0, widest = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t degree = first[i + 1] - first[i];
        widest = degree > widest ? degree : widest;
    }
    memset(stamp, 0xff, ((size_t)widest + 2) * sizeof *stamp);
    for (int32_t i = 0; i < count; i++) {
        int32_t degree = first[i + 1] - first[i];
        for (int32_t k = first[i]; k < first[i + 1]; k++) {
            int32_t j = neighbour[k];
            // A colour above the degree can't be the lowest free one's obstacle.
            if (j < i && colour[j] <= degree)
                stamp[colour[j]] = i;
        }
        int32_t lowest = 0;
        while (stamp[lowest] == i)
            lowest++;
        colour[i] = lowest;
        colours = lowest + 1 > colours ? lowest + 1 : colours;
    }
    return colours;
}
