#include "server/dispatch/dispatch.h"

#include <string.h>

#include <zstd.h>

#include "proto/frame.h"
#include "proto/hot_message.h"
#include "proto/message.h"
#include "server/dispatch/commands.h"
#include "server/log.h"
#include "server/session/host.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

#define AT_ONCE RW_DISPATCH_AT_ONCE
#define LOOP RW_DISPATCH_LOOP
#define CLIENT RW_DISPATCH_CLIENT
#define SESSION RW_DISPATCH_SESSION
#define ROW(tag, place, flags, handler) [rw_pb_Request_##tag##_tag] = {place, flags, handler}

enum {
    ASK = RW_DISPATCH_WHEN_FAULTED,
    EDIT = RW_DISPATCH_CONTROL | RW_DISPATCH_EDIT,
    BUILD = RW_DISPATCH_CONTROL | RW_DISPATCH_HEAVY,
    MOVE = RW_DISPATCH_CONTROL | RW_DISPATCH_STILL,
    ALWAYS = RW_DISPATCH_WHEN_FAULTED | RW_DISPATCH_WHEN_DRAINING,
};

static const rw_dispatch_entry ENTRIES[] = {
    ROW(hello, AT_ONCE, ALWAYS, rw_commands_link_hello),
    ROW(ping, AT_ONCE, ALWAYS, rw_commands_link_ping),
    ROW(cancel, AT_ONCE, ALWAYS, rw_commands_link_cancel),
    ROW(stats, AT_ONCE, ALWAYS, rw_commands_link_stats),
    ROW(batch, LOOP, 0, rw_commands_batch_run),
    ROW(begin_upload, CLIENT, 0, rw_commands_link_begin_upload),
    ROW(upload_chunk, CLIENT, 0, rw_commands_link_upload_chunk),
    ROW(download_chunk, CLIENT, ALWAYS, rw_commands_link_download_chunk),
    ROW(release_blob, CLIENT, ALWAYS, rw_commands_link_release_blob),

    ROW(create_session, LOOP, 0, rw_commands_session_create),
    ROW(attach_session, LOOP, 0, rw_commands_session_attach),
    ROW(detach_session, LOOP, ALWAYS, rw_commands_session_detach),
    ROW(close_session, SESSION, RW_DISPATCH_CONTROL | ALWAYS | RW_DISPATCH_HEAVY,
        rw_commands_session_close),
    ROW(list_sessions, LOOP, ALWAYS, rw_commands_session_list),

    ROW(load_scene, SESSION, BUILD | RW_DISPATCH_STILL | RW_DISPATCH_WHEN_FAULTED,
        rw_commands_scene_load),
    ROW(get_scene, SESSION, ASK | RW_DISPATCH_HEAVY, rw_commands_scene_get),
    ROW(create_body, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_joint, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_coupling, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_rod, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_attachment, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_force, SESSION, BUILD, rw_commands_scene_create),
    ROW(create_input, SESSION, BUILD, rw_commands_scene_create),
    ROW(remove_body, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_joint, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_coupling, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_rod, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_attachment, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_force, SESSION, BUILD, rw_commands_scene_remove),
    ROW(remove_input, SESSION, BUILD, rw_commands_scene_remove),

    ROW(set_pose, SESSION, EDIT, rw_commands_set_pose),
    ROW(set_velocity, SESSION, EDIT, rw_commands_set_velocity),
    ROW(set_joint_state, SESSION, EDIT, rw_commands_set_joint_state),
    ROW(set_motor, SESSION, EDIT, rw_commands_set_motor),
    ROW(set_attachment_target, SESSION, EDIT, rw_commands_set_attachment_target),
    ROW(set_gravity, SESSION, EDIT, rw_commands_set_gravity),
    ROW(set_wind, SESSION, EDIT, rw_commands_set_wind),
    ROW(set_time_step, SESSION, EDIT, rw_commands_set_time_step),
    ROW(set_solver, SESSION, EDIT, rw_commands_scene_set_solver),
    ROW(set_body_properties, SESSION, EDIT, rw_commands_set_body_properties),
    ROW(set_joint_properties, SESSION, EDIT, rw_commands_set_joint_properties),
    ROW(set_rod_properties, SESSION, EDIT | RW_DISPATCH_HEAVY, rw_commands_set_rod_properties),
    ROW(set_force, SESSION, EDIT, rw_commands_set_force),
    ROW(apply_wrench, SESSION, EDIT, rw_commands_set_apply_wrench),

    ROW(step, SESSION, MOVE, rw_commands_step_step),
    ROW(run, SESSION, RW_DISPATCH_CONTROL, rw_commands_step_run),
    ROW(pause, SESSION, RW_DISPATCH_CONTROL | RW_DISPATCH_WHEN_DRAINING, rw_commands_step_pause),
    ROW(observe, SESSION, ASK, rw_commands_step_observe),
    ROW(actuate, SESSION, RW_DISPATCH_CONTROL, rw_commands_step_actuate),
    ROW(release, SESSION, ASK, rw_commands_step_release),
    ROW(advance, SESSION, MOVE, rw_commands_step_advance),
    ROW(batch_advance, LOOP, 0, rw_commands_batch_advance),
    ROW(rollout, SESSION, RW_DISPATCH_HEAVY, NULL),

    ROW(query, SESSION, ASK, rw_commands_query_query),
    ROW(subscribe, SESSION, ASK | RW_DISPATCH_HEAVY, rw_commands_stream_subscribe),
    ROW(unsubscribe, LOOP, ALWAYS, rw_commands_stream_unsubscribe),

    ROW(snapshot, SESSION, ASK | RW_DISPATCH_HEAVY | RW_DISPATCH_WHEN_DRAINING,
        rw_commands_snapshot_take),
    ROW(restore, SESSION, MOVE | RW_DISPATCH_HEAVY | RW_DISPATCH_WHEN_FAULTED,
        rw_commands_snapshot_restore),
    ROW(drop_snapshot, SESSION, RW_DISPATCH_CONTROL | RW_DISPATCH_WHEN_FAULTED,
        rw_commands_snapshot_drop),
    ROW(fork, SESSION, ASK | RW_DISPATCH_HEAVY, rw_commands_snapshot_fork),
};

_Static_assert(RW_COUNT_OF(ENTRIES) <= RW_SESSION_COST_COUNT, "each command's cost has a place");

const rw_dispatch_entry* rw_dispatch_find(uint32_t command_tag) {
    // Tags between the rows are zero: place AT_ONCE without flags or handler.
    if (command_tag >= RW_COUNT_OF(ENTRIES)) {
        return NULL;
    }
    const rw_dispatch_entry* entry = &ENTRIES[command_tag];
    return entry->handler != NULL || entry->flags != 0 ? entry : NULL;
}

// ---- Replies ----

static rw_status encode(rw_task* task, const rw_pb_Response* response) {
    task->reply.size_bytes = 0;
    RW_TRY(rw_buffer_append(&task->reply, NULL, RW_FRAME_HEADER_BYTES));
    RW_TRY(rw_message_append_response(&task->reply, response));
    return rw_frame_close(&task->reply, 0, RW_FRAME_RESPONSE, NULL, 0);
}

void rw_dispatch_reply_error(rw_host* host, rw_task* task, const rw_error* error) {
    (void)host;
    rw_pb_Response response;
    rw_message_fail(&response, task->request_id, error);
    response.steps_done = task->steps_done;
    task->status = (int)error->status;
    rw_status status = encode(task, &response); // a task keeps room for this
    RW_CHECK(status == RW_STATUS_OK);
}

void rw_dispatch_reply_session_error(rw_session* session, rw_task* task, const rw_error* error) {
    rw_pb_Response response;
    rw_message_fail(&response, task->request_id, error);
    response.steps_done = task->steps_done;
    if (session->world != NULL) {
        response.has_step = response.has_time = true;
        response.step = (uint64_t)rw_world_step_count(session->world);
        response.time = rw_world_time(session->world);
    }
    task->status = (int)error->status;
    rw_status status = encode(task, &response);
    RW_CHECK(status == RW_STATUS_OK);
}

// Keeps the encoded response as a blob and answers where it is.
static rw_status reply_large(rw_host* host, rw_task* task, const rw_pb_Response* response,
                             rw_error* error) {
    rw_pb_Response large = {.request_id = response->request_id,
                            .steps_done = response->steps_done,
                            .has_step = response->has_step,
                            .step = response->step,
                            .has_time = response->has_time,
                            .time = response->time,
                            .which_result = rw_pb_Response_large_tag};
    rw_pb_LargeResult* result = &large.result.large;
    size_t size = task->reply.size_bytes - RW_FRAME_HEADER_BYTES;
    RW_TRY(rw_blob_store_keep(task->client->blobs, task->reply.data + RW_FRAME_HEADER_BYTES, size,
                              &result->blob, &result->crc, error));
    result->bytes = size;
    result->max_chunk = (uint64_t)host->config->max_message_bytes / 2;
    // The large buffer is given back only for one that will do; else it does itself.
    rw_buffer small;
    rw_buffer_init(&small, task->reply.alloc);
    if (rw_buffer_reserve(&small, 1024) == RW_STATUS_OK) {
        rw_buffer_finish(&task->reply);
        task->reply = small;
    }
    return encode(task, &large);
}

void rw_dispatch_reply(rw_host* host, rw_task* task, const rw_pb_Response* response) {
    rw_error error = {0};
    rw_status status = encode(task, response);
    if (status == RW_STATUS_OK &&
        task->reply.size_bytes - RW_FRAME_HEADER_BYTES > (size_t)host->config->max_message_bytes) {
        error.status = RW_STATUS_OK;
        status = reply_large(host, task, response, &error);
    }
    if (status != RW_STATUS_OK) {
        if (error.status == RW_STATUS_OK) {
            rw_status_fail(&error, status, "", "no memory for the answer");
        }
        rw_dispatch_reply_error(host, task, &error);
        return;
    }
    task->status = (int)response->status;
}

// ---- Unpacking ----

static rw_status join_pieces(rw_task* task) {
    size_t total = 0;
    for (rw_task_piece* piece = task->pieces; piece != NULL; piece = piece->next) {
        total += piece->size_bytes;
    }
    task->request.size_bytes = 0;
    RW_TRY(rw_buffer_reserve(&task->request, total));
    while (task->pieces != NULL) {
        rw_task_piece* piece = task->pieces;
        rw_buffer_append(&task->request, piece->bytes, piece->size_bytes); // the room is there
        task->pieces = piece->next;
        rw_alloc_free(task->request.alloc, piece);
    }
    task->bytes = task->request.data;
    task->size_bytes = total;
    return RW_STATUS_OK;
}

rw_status rw_dispatch_unpack(rw_host* host, rw_task* task, rw_error* error) {
    if (task->pieces != NULL && join_pieces(task) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the message");
    }
    if (!task->is_compressed) {
        return RW_STATUS_OK;
    }
    task->is_compressed = false;
    rw_frame_view view = {.header = {.payload_bytes = (uint32_t)task->size_bytes,
                                     .kind = RW_FRAME_REQUEST,
                                     .flags = RW_FRAME_ZSTD},
                          .payload = task->bytes};
    ZSTD_DCtx* context = ZSTD_createDCtx();
    if (context == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the message");
    }
    rw_buffer plain;
    rw_buffer_init(&plain, &host->alloc);
    const uint8_t* bytes;
    size_t size;
    rw_status status = rw_frame_payload(&view, context, (uint32_t)host->config->max_message_bytes,
                                        &plain, &bytes, &size, error);
    ZSTD_freeDCtx(context);
    if (status != RW_STATUS_OK) {
        rw_buffer_finish(&plain);
        return status;
    }
    rw_buffer_finish(&task->request);
    task->request = plain;
    task->bytes = bytes;
    task->size_bytes = size;
    return RW_STATUS_OK;
}

// ---- Off the session ----

// Decodes and calls the handler; the reply is then in the task.
static void serve_outside(rw_client* client, rw_task* task, rw_command* command) {
    rw_host* host = client->host;
    rw_pb_Request request;
    rw_pb_Response response = rw_pb_Response_init_zero;
    rw_error error = {0};
    rw_arena arena;
    rw_arena_init(&arena, &host->alloc);
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    response.request_id = task->request_id;
    *command = (rw_command){.host = host,
                            .client = client,
                            .task = task,
                            .request = &request,
                            .response = &response,
                            .arena = &arena,
                            .error = &error};
    rw_status status =
        rw_message_decode_request(task->bytes, task->size_bytes, &arena, &request, &error);
    if (status == RW_STATUS_OK) {
        status = entry->handler != NULL
                     ? entry->handler(command)
                     : rw_status_fail(&error, RW_STATUS_UNIMPLEMENTED, "",
                                      "this build does not serve it");
    }
    if (status != RW_STATUS_OK) {
        error.status = status;
        rw_dispatch_reply_error(host, task, &error);
    } else if (!command->is_answered && !command->is_deferred) {
        rw_dispatch_reply(host, task, &response);
    }
    rw_arena_finish(&arena);
}

void rw_dispatch_run_on_loop(rw_client* client, rw_task* task, bool* is_deferred) {
    rw_command command;
    serve_outside(client, task, &command);
    *is_deferred = command.is_deferred;
}

void rw_dispatch_run_on_client(rw_client* client, rw_task* task) {
    rw_error error = {0};
    if (rw_dispatch_unpack(client->host, task, &error) != RW_STATUS_OK) {
        rw_dispatch_reply_error(client->host, task, &error);
        return;
    }
    // A command that belongs elsewhere goes on from here in task->finish.
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    if (entry != NULL && entry->place == RW_DISPATCH_CLIENT) {
        rw_command command;
        serve_outside(client, task, &command);
    }
}

// ---- In the session ----

static rw_status check_session(const rw_command* command, unsigned flags) {
    rw_session* session = command->session;
    rw_error* error = command->error;
    if (session->world == NULL) {
        RW_FAIL(error, NOT_FOUND, "session", "the session is closed");
    }
    if ((flags & RW_DISPATCH_STILL) != 0 && session->state == rw_pb_SessionState_Kind_RUNNING) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "the session is RUNNING: Pause it first");
    }
    if ((flags & RW_DISPATCH_WHEN_FAULTED) == 0 &&
        session->state == rw_pb_SessionState_Kind_FAULTED) {
        RW_FAIL(error, FAULTED, "", "faulted at step %llu, %s, %s: %s; Restore or LoadScene first",
                (unsigned long long)session->fault.step, session->fault.object,
                session->fault.stage, session->fault.reason);
    }
    return RW_STATUS_OK;
}

static rw_status check_expected_step(const rw_command* command, bool is_given, uint64_t expected) {
    int64_t actual = rw_world_step_count(command->world);
    if (is_given && !command->task->is_started && expected != (uint64_t)actual) {
        RW_FAIL(command->error, FAILED_PRECONDITION, "expected_step",
                "the session is at step %lld, not %llu", (long long)actual,
                (unsigned long long)expected);
    }
    return RW_STATUS_OK;
}

static rw_status run_general(rw_command* command, const rw_dispatch_entry* entry) {
    rw_task* task = command->task;
    rw_pb_Request* request = rw_arena_get(command->arena, sizeof *request);
    if (request == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    command->request = request;
    RW_TRY(rw_message_decode_request(task->bytes, task->size_bytes, command->arena, request,
                                     command->error));
    RW_TRY(check_expected_step(command, request->has_expected_step, request->expected_step));
    if (entry->handler == NULL) {
        RW_FAIL(command->error, UNIMPLEMENTED, "", "this build does not serve %s",
                rw_message_command_name(task->command_tag));
    }
    return entry->handler(command);
}

// Advance and Step as they nearly always look. False: the general way it is.
static bool run_hot(rw_command* command, rw_status* status) {
    rw_task* task = command->task;
    rw_hot_message_envelope envelope;
    rw_hot_message_advance advance;
    rw_hot_message_step step;
    if (task->advance != NULL) {
        *status = rw_commands_step_run_advance(command, task->advance);
        return true;
    }
    bool is_advance = task->command_tag == rw_pb_Request_advance_tag;
    if ((!is_advance && task->command_tag != rw_pb_Request_step_tag) ||
        !rw_hot_message_read_envelope(task->bytes, task->size_bytes, &envelope) ||
        !(is_advance
              ? rw_hot_message_read_advance(envelope.command, envelope.command_size, &advance)
              : rw_hot_message_read_step(envelope.command, envelope.command_size, &step))) {
        return false;
    }
    *status = check_expected_step(command, envelope.has_expected_step, envelope.expected_step);
    if (*status == RW_STATUS_OK) {
        *status = is_advance ? rw_commands_step_run_advance(command, &advance)
                             : rw_commands_step_run_step(command, &step);
    }
    return true;
}

// A command's moving mean, an eighth for the new one.
static void note_cost(rw_session* session, uint32_t tag, int64_t cost_ns) {
    _Atomic uint32_t* slot = &session->command_cost_ns[tag];
    int64_t mean = atomic_load_explicit(slot, memory_order_relaxed);
    int64_t next = mean == 0 ? cost_ns : mean + (cost_ns - mean) / 8;
    next = next < 1 ? 1 : next > UINT32_MAX ? UINT32_MAX : next;
    atomic_store_explicit(slot, (uint32_t)next, memory_order_relaxed);
}

static void finish_response(rw_command* command, unsigned flags) {
    rw_session* session = command->session;
    rw_pb_Response* response = command->response;
    response->steps_done = command->task->steps_done;
    if (session->world != NULL) {
        bool next = (flags & RW_DISPATCH_EDIT) != 0 &&
                    session->state == rw_pb_SessionState_Kind_RUNNING;
        response->has_step = response->has_time = true;
        response->step = (uint64_t)rw_world_step_count(session->world) + (next ? 1 : 0);
        response->time = rw_world_time(session->world);
    }
    rw_dispatch_reply(command->host, command->task, response);
}

static rw_dispatch_verdict run_command(rw_session* session, rw_task* task, int64_t slice_end_ns) {
    rw_error error = {0};
    rw_pb_Response response;
    memset(&response, 0, sizeof response);
    response.request_id = task->request_id;
    rw_command command = {.host = session->host,
                          .client = task->client,
                          .session = session,
                          .world = session->world,
                          .task = task,
                          .response = &response,
                          .arena = &session->scratch,
                          .error = &error,
                          .slice_end_ns = slice_end_ns};
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    rw_status status = task->is_started ? RW_STATUS_OK : rw_session_check_task(task);
    if (status != RW_STATUS_OK) {
        rw_status_fail(&error, status, "", "before it began");
    } else {
        status = rw_dispatch_unpack(session->host, task, &error);
    }
    if (status == RW_STATUS_OK) {
        status = check_session(&command, entry->flags);
    }
    if (status == RW_STATUS_OK && !run_hot(&command, &status)) {
        status = run_general(&command, entry);
    }
    if (status == RW_STATUS_OK && command.verdict != RW_DISPATCH_DONE) {
        return command.verdict;
    }
    if (session->world != NULL) {
        rw_session_world_changed(session);
    }
    if (status != RW_STATUS_OK) {
        error.status = status;
        rw_dispatch_reply_session_error(session, task, &error);
    } else if (!command.is_answered) {
        finish_response(&command, entry->flags);
    }
    return RW_DISPATCH_DONE;
}

rw_dispatch_verdict rw_dispatch_run(rw_session* session, rw_task* task, int64_t slice_end_ns) {
    if (task->work != NULL) { // the house's own
        task->work(session, task);
        return RW_DISPATCH_DONE;
    }
    int64_t begin_ns = rw_clock_now_ns();
    rw_session_begin_task(session, task);
    rw_dispatch_verdict verdict = run_command(session, task, slice_end_ns);
    rw_session_end_task(session, task);
    if (verdict == RW_DISPATCH_DONE && !task->is_started) {
        note_cost(session, task->command_tag, rw_clock_now_ns() - begin_ns);
    }
    task->is_started = true;
    return verdict;
}

// ---- Costs ----

// Steps that a Step or Advance asks for; -1 when that is not plain to see.
static int64_t asked_steps(const rw_task* task) {
    rw_hot_message_envelope envelope;
    if (task->advance != NULL) {
        return task->advance->steps;
    }
    if (task->pieces != NULL || task->is_compressed ||
        !rw_hot_message_read_envelope(task->bytes, task->size_bytes, &envelope)) {
        return -1;
    }
    rw_hot_message_advance advance;
    rw_hot_message_step step;
    if (task->command_tag == rw_pb_Request_advance_tag) {
        return rw_hot_message_read_advance(envelope.command, envelope.command_size, &advance)
                   ? (int64_t)advance.steps
                   : -1;
    }
    return rw_hot_message_read_step(envelope.command, envelope.command_size, &step) &&
                   !step.has_until
               ? (int64_t)step.count
               : -1;
}

// Whether a Query plainly asks one short question whose cost is like that of the ones before it:
// those of dynamics grow with the mechanism and share the command's tag.
static bool asks_little(const rw_task* task) {
    rw_hot_message_envelope envelope;
    if (!rw_hot_message_read_envelope(task->bytes, task->size_bytes, &envelope) ||
        envelope.command_size < 2) {
        return false;
    }
    // One field of at most 127 bytes: its key and its size are a byte each.
    const uint8_t* command = envelope.command;
    if (command[1] >= 0x80 || envelope.command_size != 2 + (size_t)command[1]) {
        return false;
    }
    return command[0] == (rw_pb_Query_signals_tag << 3 | 2) ||
           command[0] == (rw_pb_Query_energy_tag << 3 | 2) ||
           command[0] == (rw_pb_Query_hash_tag << 3 | 2);
}

int64_t rw_dispatch_expected_ns(rw_session* session, rw_task* task) {
    const rw_dispatch_entry* entry = rw_dispatch_find(task->command_tag);
    if (entry == NULL || (entry->flags & RW_DISPATCH_HEAVY) != 0 || task->pieces != NULL || task->is_compressed ||
        atomic_load_explicit(&session->at_state, memory_order_relaxed) ==
            rw_pb_SessionState_Kind_RUNNING) {
        return -1;
    }
    if (task->command_tag == rw_pb_Request_query_tag && !asks_little(task)) {
        return -1;
    }
    int64_t cost =
        atomic_load_explicit(&session->command_cost_ns[task->command_tag], memory_order_relaxed);
    if (task->command_tag != rw_pb_Request_step_tag &&
        task->command_tag != rw_pb_Request_advance_tag) {
        return cost > 0 ? cost : -1;
    }
    int64_t step_cost = atomic_load_explicit(&session->step_cost_ns, memory_order_relaxed);
    int64_t steps = asked_steps(task);
    if (step_cost == 0 || steps < 0 ||
        atomic_load_explicit(&session->is_cold, memory_order_relaxed)) {
        return -1;
    }
    return steps > RW_HOST_INLINE_EXPECTED_NS ? RW_HOST_INLINE_EXPECTED_NS
                                              : steps * step_cost + 2000;
}

// ---- Cancel ----

void rw_dispatch_cancel(rw_task* task) {
    rw_session_cancel(task);
    rw_session* session = task->session;
    if (session != NULL && atomic_load_explicit(&session->holds, memory_order_relaxed) > 0) {
        // It may be parked, waiting for a reader: it must wake to notice.
        rw_worker_pool_unpark(session->host->pool, &session->actor);
    }
    rw_commands_batch_cancel(task);
}

// ---- Control lost ----

// Each of them was valid before, and zero is: only a lack of memory can stand in the way, and then the
// rest is done all the same.
static void note_not_zeroed(rw_session* session, rw_status status, const rw_error* error) {
    if (status != RW_STATUS_OK) {
        RW_LOG(WARN, "input_not_zeroed", RW_LOG_FIELD_TEXT("name", session->name),
               RW_LOG_FIELD_TEXT("reason", error->text));
    }
}

static void zero_inputs(rw_session* session) {
    rw_world* world = session->world;
    const rw_model* model = rw_world_model(world);
    rw_error error = {0};
    rw_motor_desc none = {.mode = RW_MOTOR_NONE};
    rw_joint_set motor_off = {.motor = &none};
    for (int32_t i = 0; i < model->joints.count; i++) {
        if (model->joints.items[i].desc.motor.mode != RW_MOTOR_NONE) {
            note_not_zeroed(session, rw_world_set_joint(world, i, &motor_off, &error), &error);
        }
    }
    rw_force_set no_load = {.has_force = true, .has_torque = true};
    for (int32_t i = 0; i < model->forces.count; i++) {
        if (model->forces.items[i].desc.kind == RW_FORCE_LOAD) {
            note_not_zeroed(session, rw_world_set_force(world, i, &no_load, &error), &error);
        }
    }
    rw_body_set at_rest = {.has_linear_velocity = true, .has_angular_velocity = true};
    for (int32_t i = 0; i < model->bodies.count; i++) {
        if (model->bodies.items[i].desc.kind == RW_BODY_KINEMATIC) {
            note_not_zeroed(session, rw_world_set_body(world, i, &at_rest, &error), &error);
        }
    }
    rw_world_clear_wrenches(world, -1, -1);
}

void rw_dispatch_control_lost(rw_session* session, rw_pb_CreateSession_OnControlLost action) {
    if (session->world == NULL || session->state != rw_pb_SessionState_Kind_RUNNING) {
        return;
    }
    if (action == rw_pb_CreateSession_OnControlLost_PAUSE) {
        session->pacing.is_on = false;
        rw_session_set_state(session, rw_pb_SessionState_Kind_READY, "control lost");
    } else if (action == rw_pb_CreateSession_OnControlLost_ZERO_INPUT) {
        zero_inputs(session);
    }
}
