// The convex hull of points in space, as triangles: for the mass of hull shapes and for collision.
// Incremental: each point outside is kept at a face that it sees, the furthest is taken next
// (quickhull; Barber, Dobkin, Huhdanpaa, ACM TOMS 22, 1996), so n log n as a rule. Deterministic.
// One thread at a time.
#pragma once

#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"

typedef struct rw_hull {
    rw_alloc* alloc; // borrowed
    uint32_t* triangles; // indices of the given points, counter-clockwise from outside (count x 3)
    int32_t triangle_count;
} rw_hull;

// Builds the hull of `count` points (count x 3, borrowed during the call). Points within rounding
// (1e-10 of the extent) of a face count as inside. INVALID_ARGUMENT, path "vertices", when all
// points lie in one plane; RESOURCE_EXHAUSTED. Finish in case of OK only.
rw_status rw_hull_build(rw_hull* hull, rw_alloc* alloc, const double* points, int32_t count,
                        rw_error* error);
void rw_hull_finish(rw_hull* hull);
