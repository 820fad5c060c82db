// The handlers of all commands, by family; each is documented with its message in
// proto/ropewalk/v1. A handler checks, acts all-or-nothing and fills `command->response`; it runs on
// the thread that the table of dispatch.c says (loop thread, client's actor, session's actor).
#pragma once

#include "proto/hot_message.h"
#include "server/dispatch/dispatch.h"

// commands_link.c: the connection itself. Loop thread; blobs on the client's actor.
rw_status rw_commands_link_hello(rw_command* command);
rw_status rw_commands_link_ping(rw_command* command);
rw_status rw_commands_link_cancel(rw_command* command);
rw_status rw_commands_link_stats(rw_command* command);
rw_status rw_commands_link_begin_upload(rw_command* command);
rw_status rw_commands_link_upload_chunk(rw_command* command);
rw_status rw_commands_link_download_chunk(rw_command* command);
rw_status rw_commands_link_release_blob(rw_command* command);

// commands_session.c: lives of sessions.
rw_status rw_commands_session_create(rw_command* command); // loop
void rw_commands_session_finish_create(rw_task* task);
rw_status rw_commands_session_attach(rw_command* command); // loop
rw_status rw_commands_session_detach(rw_command* command); // loop
rw_status rw_commands_session_list(rw_command* command);   // loop
rw_status rw_commands_session_close(rw_command* command);  // session; answered after the table
// What CloseSession's task does on the loop thread afterwards.
void rw_commands_session_finish_close(rw_task* task);

// commands_batch.c: commands made of commands. Loop thread.
rw_status rw_commands_batch_run(rw_command* command);
rw_status rw_commands_batch_advance(rw_command* command);
// Passes a cancellation on to what the task is made of.
void rw_commands_batch_cancel(rw_task* task);

// commands_scene.c: whole scenes and objects. Session.
rw_status rw_commands_scene_load(rw_command* command);
rw_status rw_commands_scene_get(rw_command* command);
rw_status rw_commands_scene_create(rw_command* command); // all Create*
rw_status rw_commands_scene_remove(rw_command* command); // all Remove*

// commands_set.c: changes of values. Session.
rw_status rw_commands_set_pose(rw_command* command);
rw_status rw_commands_set_velocity(rw_command* command);
rw_status rw_commands_set_joint_state(rw_command* command);
rw_status rw_commands_set_motor(rw_command* command);
rw_status rw_commands_set_attachment_target(rw_command* command);
rw_status rw_commands_set_gravity(rw_command* command);
rw_status rw_commands_set_wind(rw_command* command);
rw_status rw_commands_set_time_step(rw_command* command);
rw_status rw_commands_scene_set_solver(rw_command* command);
rw_status rw_commands_set_body_properties(rw_command* command);
rw_status rw_commands_set_joint_properties(rw_command* command);
rw_status rw_commands_set_rod_properties(rw_command* command);
rw_status rw_commands_set_force(rw_command* command);
rw_status rw_commands_set_apply_wrench(rw_command* command);
// Index of the object that a Ref names; errors carry `path`.
rw_status rw_commands_set_find(rw_command* command, rw_kind kind, const rw_pb_Ref* reference,
                               bool is_given, const char* path, int32_t* index);

// commands_step.c: time. Session.
rw_status rw_commands_step_step(rw_command* command);
rw_status rw_commands_step_advance(rw_command* command);
// The two above as the hot path reads them.
rw_status rw_commands_step_run_step(rw_command* command, const rw_hot_message_step* step);
rw_status rw_commands_step_run_advance(rw_command* command, const rw_hot_message_advance* advance);
rw_status rw_commands_step_run(rw_command* command);
rw_status rw_commands_step_pause(rw_command* command);
rw_status rw_commands_step_observe(rw_command* command);
rw_status rw_commands_step_actuate(rw_command* command);
rw_status rw_commands_step_release(rw_command* command);
// Copies the strings of a list into the arena. INVALID_ARGUMENT at `path` when it is empty.
rw_status rw_commands_step_globs(rw_command* command, const rw_wire_list* list, const char* path,
                                 const char*** globs);

// commands_query.c: questions. Session.
rw_status rw_commands_query_query(rw_command* command);

// commands_stream.c: subscriptions.
rw_status rw_commands_stream_subscribe(rw_command* command);   // session, then loop
rw_status rw_commands_stream_unsubscribe(rw_command* command); // loop
void rw_commands_stream_finish_subscribe(rw_task* task);

// commands_snapshot.c: whole states. Session.
rw_status rw_commands_snapshot_take(rw_command* command);
rw_status rw_commands_snapshot_restore(rw_command* command);
rw_status rw_commands_snapshot_drop(rw_command* command);
rw_status rw_commands_snapshot_fork(rw_command* command);
// False while the children are being made: the task is answered later.
bool rw_commands_snapshot_finish_fork(rw_task* task);
