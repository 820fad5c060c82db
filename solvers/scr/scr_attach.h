// Attachments of scr rods: held frames, wrenches, and the response of what hangs on a dynamic body.
// The thread that runs the world.
#pragma once

#include "solvers/scr/scr_data.h"

// Resolves the held frame of an attachment at a state: where the node belongs and the frame.
void rw_scr_attach_frame(const rw_scr* scr, const rw_state* state, int32_t attachment,
                         const double target[7], rw_vec3* position, rw_quat* frame);
// Writes held nodes, held segments and clamp pulls at the start of the sweeps, with dynamic bodies
// where they were at the start of the step. A sweep that ends unconverged keeps a part of its start:
// from there, not from where the bodies would coast to, energy cannot rise (seed 001 note 11). The
// first response is carried over to the trial pose.
void rw_scr_attach_place(rw_scr* scr, rw_step* step);
// Renews those on dynamic bodies from the trial `step->to`.
void rw_scr_attach_follow(rw_scr* scr, rw_step* step);
// Prepares clamp targets of this step (damping).
void rw_scr_attach_begin(rw_scr* scr, rw_step* step);
// Wrench of the attachment on the rod at the trial state, world; with the stiffness of its response.
void rw_scr_attach_wrench(const rw_scr* scr, const rw_step* step, int32_t attachment,
                          rw_vec3* force, rw_vec3* torque);
// Adds the attachments' reactions and stiffness to the bodies' responses.
void rw_scr_attach_respond(rw_scr* scr, rw_step* step);
