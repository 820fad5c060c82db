// Signals of scr rods, as the solver interface wants them: energies, wrenches, places along a rod.
// The thread that runs the world, between steps.
#pragma once

#include "solvers/scr/scr_data.h"

void rw_scr_signal_energy(void* self, const rw_state* state, rw_energy* energy);
void rw_scr_signal_attachment_wrench(void* self, int32_t attachment, double wrench[6]);
void rw_scr_signal_element_wrench(void* self, const rw_state* state, int32_t rod, int32_t element,
                                  double wrench[6]);
void rw_scr_signal_rod_at(void* self, const rw_state* state, int32_t rod, double s,
                          double position[3], double rotation[4]);
void rw_scr_signal_node_rotation(void* self, const rw_state* state, int32_t rod, int32_t node,
                                 double rotation[4]);
double rw_scr_signal_rod_energy(void* self, const rw_state* state, int32_t rod);
double rw_scr_signal_rod_length(void* self, const rw_state* state, int32_t rod);
double rw_scr_signal_rod_max_strain(void* self, const rw_state* state, int32_t rod);
double rw_scr_signal_rod_residual(void* self, int32_t rod);
double rw_scr_signal_node_mass(void* self, int32_t node);
