// From decoded messages to the descriptions that the model takes. Shapes of arrays and choices are
// checked here; values are checked by the model. Big arrays are not copied where they lie aligned in
// the message; what must be copied goes into the arena. The message's bytes, the blobs and the arena
// must outlive the description. Any thread; an arena is one thread's.
//
// Error paths are relative to what is converted: `rods[3].polyline.positions` of a scene,
// `polyline.positions` of a rod.
#pragma once

#include "proto/message.h"
#include "proto/ropewalk/v1/scene.pb.h"
#include "solvers/base/arena.h"
#include "solvers/base/status.h"
#include "solvers/model/scene.h"

// Where BlobFields find their bytes. `find` gives those of a complete upload, which must stay until
// the description was used: NOT_FOUND or FAILED_PRECONDITION otherwise.
typedef struct rw_scene_from_message_blobs {
    rw_status (*find)(void* context, uint64_t blob, const void** bytes, uint64_t* size,
                      rw_error* error);
    void* context;
} rw_scene_from_message_blobs;

// Converts a whole scene; its arrays lie in `arena`. `blobs` may be NULL: then none can be named.
// INVALID_ARGUMENT, RESOURCE_EXHAUSTED (arena), and what blobs->find answers.
rw_status rw_scene_from_message(const rw_pb_Scene* message,
                                const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                rw_scene* scene, rw_error* error);

// Converts one object, for Create*.
rw_status rw_scene_from_message_body(const rw_pb_Body* message,
                                     const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                     rw_body_desc* desc, rw_error* error);
rw_status rw_scene_from_message_joint(const rw_pb_Joint* message, rw_joint_desc* desc,
                                      rw_error* error);
rw_status rw_scene_from_message_coupling(const rw_pb_Coupling* message, rw_coupling_desc* desc,
                                         rw_error* error);
rw_status rw_scene_from_message_rod(const rw_pb_Rod* message,
                                    const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                    rw_rod_desc* desc, rw_error* error);
rw_status rw_scene_from_message_attachment(const rw_pb_Attachment* message,
                                           rw_attachment_desc* desc, rw_error* error);
rw_status rw_scene_from_message_force(const rw_pb_Force* message, rw_force_desc* desc,
                                      rw_error* error);
rw_status rw_scene_from_message_input(const rw_pb_Input* message, rw_arena* arena,
                                      rw_input_desc* desc, rw_error* error);

// Converts a motor, for SetMotor.
rw_status rw_scene_from_message_motor(const rw_pb_Motor* message, rw_motor_desc* desc,
                                      rw_error* error);

// Puts the settings that the message gives over `options`; what is absent stays (SetSolver), but for
// choices and flags, whose absence is their default.
rw_status rw_scene_from_message_solver(const rw_pb_Solver* message, rw_solver_options* options,
                                       rw_error* error);
