// Attachments of scr rods: held frames, wrenches, and the response of what hangs on a dynamic body.
// The thread that runs the world.
#pragma once

#include "solvers/scr/scr_data.h"

// Resolves the held frame of an attachment at a state: where the node belongs and the frame.
void rw_scr_attach_frame(const rw_scr* scr, const rw_state* state, int32_t attachment,
                         const double target[7], rw_vec3* position, rw_quat* frame);
// Writes held nodes, held segments and clamp pulls of the trial `step->to`; with `moving_only` those
// on dynamic bodies alone.
void rw_scr_attach_update(rw_scr* scr, rw_step* step, bool moving_only);
// Prepares clamp targets of this step (damping).
void rw_scr_attach_begin(rw_scr* scr, rw_step* step);
// Wrench of the attachment on the rod at the trial state, world; with the stiffness of its response.
void rw_scr_attach_wrench(const rw_scr* scr, const rw_step* step, int32_t attachment,
                          rw_vec3* force, rw_vec3* torque);
// Adds the attachments' reactions and stiffness to the bodies' responses.
void rw_scr_attach_respond(rw_scr* scr, rw_step* step);
