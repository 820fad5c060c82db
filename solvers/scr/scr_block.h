// Vertex blocks for slender elements: the vertex update that converges where elements are long
// against their thickness and scr's own alternation does not. Called from a sweep on any thread of
// the world's parallel_for; each call touches the nodes it is given and their segments.
#pragma once

#include "solvers/scr/scr_data.h"

// Moves `count` free nodes, each together with the frames of its segments, towards the minimum with
// all else held, omega times the Newton step.
//
// With positions and frames updated in turn, a node can hardly move across a segment whose frame
// holds it, nor the frame turn while the nodes hold it: such sweeps converge with (r/l)^2. Here the
// frames are eliminated: with p = k_s/l d3, a segment's frame answers a torque with the stiffness
// h = p . dx + <b, q>/4 (a bend at the node counts twice: it turns both its segments against each
// other), and leaves the node k_s/l^2 - |p|^2/h across and k_s/l^2 along the segment. A cable of 5
// GPa, 2 mm thick, 20 elements over 1 m, at 1 ms: 280 sweeps to 1e-6 where alternation fails at
// 100,000.
void rw_scr_block_sweep(const rw_scr* scr, double* position, double* rotation, const int32_t* order,
                        int32_t count, double omega, bool exact, bool damped);
