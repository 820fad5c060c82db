// The substep of scr: begin, sweeps, end, and what its gradient is made of. The thread that runs the
// world; inside, blocks go over the world's parallel_for.
#pragma once

#include "solvers/scr/scr_data.h"

rw_status rw_scr_sweep_begin(rw_scr* scr, rw_step* step);
rw_status rw_scr_sweep_run(rw_scr* scr, rw_step* step, bool* done);
rw_status rw_scr_sweep_end(rw_scr* scr, rw_step* step);
// The force of all but the holder on a node at the trial state (the negative gradient) [N].
rw_vec3 rw_scr_sweep_node_force(const rw_scr* scr, const double* position, int32_t node);
// Stores what a segment's frame pulls its ends with: k_s/l times the (damped) tangent.
void rw_scr_sweep_store_pull(rw_scr* scr, int32_t segment, rw_quat q);
// The pull of bends, clamps and loads on a segment's frame: b of orientation.h [N m].
rw_quat rw_scr_sweep_pull(const rw_scr* scr, const double* rotation, int32_t segment,
                          double* moment_scale);
// Turns `count` free segments to the minimum with all else held (past it by omega - 1), and renews
// their pull.
void rw_scr_sweep_orientations(const rw_scr* scr, const double* position, double* rotation,
                               const int32_t* order, int32_t count, double omega, bool exact,
                               bool damped);
