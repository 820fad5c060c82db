// Builds what scr_data.h describes from the model. The thread that runs the world.
#pragma once

#include "solvers/scr/scr_data.h"

// Rebuilds all derived arrays and carries the private state over by id.
rw_status rw_scr_prepare_all(rw_scr* scr, rw_error* error);
void rw_scr_prepare_finish(rw_scr* scr);
rw_field_list rw_scr_prepare_fields(void);
