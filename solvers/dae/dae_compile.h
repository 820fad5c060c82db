// Compiles a model into the DAE solver's system: which bodies move, the joints' constants, the graph
// of the KKT system and its regularisation. One thread at a time.
#pragma once

#include "solvers/dae/dae_system.h"

// Fills a system whose model, angle, body_count and arena are set. RESOURCE_EXHAUSTED leaves it for
// rw_dae_system_destroy.
rw_status rw_dae_compile_system(rw_dae_system* system, rw_alloc* alloc);

// Reads what may change without a change of topology: masses, compliances, stabilisation, which joints
// have motors, limits or damping. Allocates nothing.
void rw_dae_compile_parameters(rw_dae_system* system);
