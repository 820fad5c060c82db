// The order of elimination of a KKT graph (kkt.h): along a spanning forest from the world, leaf to
// root. One thread at a time; nothing is kept.
#pragma once

#include "solvers/base/arena.h"
#include "solvers/math/kkt.h"

typedef struct rw_kkt_order {
    // Nodes in order of elimination: body b is node b, constraint k is body_count + k.
    int32_t* nodes;
    bool* in_loop; // per constraint: its component has a cycle
    int32_t loop_count; // constraints that are not edges of the forest
} rw_kkt_order;

// Finds the order; arrays come from `arena`. RESOURCE_EXHAUSTED.
rw_status rw_kkt_order_find(const rw_kkt_graph* graph, rw_arena* arena, rw_kkt_order* order);
