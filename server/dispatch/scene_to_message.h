// From descriptions to messages: the answer to GetScene. Objects are written one by one while the
// message is encoded, so that a large scene never exists twice. Optional fields are written where they
// differ from their default; loading what was written gives the same scene. Any thread.
#pragma once

#include "proto/ropewalk/v1/scene.pb.h"
#include "solvers/base/arena.h"
#include "solvers/base/status.h"
#include "solvers/model/model.h"
#include "solvers/model/scene.h"

// Makes `message` a view of `scene`. `model` gives the ids and may be NULL: then there are none.
// Scene, model and arena must stay until the message is encoded. RESOURCE_EXHAUSTED.
rw_status rw_scene_to_message(const rw_scene* scene, const rw_model* model, rw_arena* arena,
                              rw_pb_Scene* message, rw_error* error);

// Writes one object; the message views the description's arrays.
void rw_scene_to_message_body(const rw_body_desc* desc, rw_pb_Body* message);
void rw_scene_to_message_joint(const rw_joint_desc* desc, rw_pb_Joint* message);
void rw_scene_to_message_coupling(const rw_coupling_desc* desc, rw_pb_Coupling* message);
void rw_scene_to_message_rod(const rw_rod_desc* desc, rw_pb_Rod* message);
void rw_scene_to_message_attachment(const rw_attachment_desc* desc, rw_pb_Attachment* message);
void rw_scene_to_message_force(const rw_force_desc* desc, rw_pb_Force* message);
void rw_scene_to_message_input(const rw_input_desc* desc, rw_pb_Input* message);
void rw_scene_to_message_solver(const rw_solver_options* options, rw_pb_Solver* message);
