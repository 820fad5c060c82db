#include "clients/c/remote.h"

#include <stdio.h>
#include <string.h>

#include "clients/c/watch.h"

rw_status rw_remote_call(rw_remote* remote, rw_pb_Request* request, const rw_pb_Response** response,
                         rw_error* error) {
    const rw_pb_Response* answer;
    request->session = remote->session;
    RW_TRY(rw_link_call(remote->link, request, &answer, error));
    if (answer->has_step) {
        remote->step = answer->step;
    }
    if (answer->has_time) {
        remote->time = answer->time;
    }
    if (response != NULL) {
        *response = answer;
    }
    return RW_STATUS_OK;
}

// The answer must carry this result; a server that says OK without it is broken.
static rw_status call_for(rw_remote* remote, rw_pb_Request* request, pb_size_t result,
                          const rw_pb_Response** response, rw_error* error) {
    RW_TRY(rw_remote_call(remote, request, response, error));
    if ((*response)->which_result != result) {
        RW_FAIL(error, INTERNAL, "", "the server answered %s without a result",
                rw_message_command_name(request->which_command));
    }
    return RW_STATUS_OK;
}

static rw_status copy_name(char* target, size_t capacity, const char* name, rw_error* error) {
    if (name != NULL && strlen(name) >= capacity) {
        RW_FAIL(error, INVALID_ARGUMENT, "name", "has more than %zu bytes", capacity - 1);
    }
    snprintf(target, capacity, "%s", name != NULL ? name : "");
    return RW_STATUS_OK;
}

// ---- Life ----

static rw_status open_session(rw_link* link, rw_pb_Request* request, rw_remote* remote,
                              rw_error* error) {
    *remote = (rw_remote){.link = link};
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, request, rw_pb_Response_session_tag, &response, error));
    remote->session = response->result.session.id;
    remote->step = response->result.session.step;
    remote->time = response->result.session.time;
    return RW_STATUS_OK;
}

rw_status rw_remote_create(rw_link* link, const char* name, rw_remote* remote,
                           rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_create_session_tag};
    rw_pb_CreateSession* create = &request.command.create_session;
    RW_TRY(copy_name(create->name, sizeof create->name, name, error));
    create->has_ttl_detached_s = true; // 0: ends with its last client
    return open_session(link, &request, remote, error);
}

rw_status rw_remote_attach(rw_link* link, const char* name, bool is_control, rw_remote* remote,
                           rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_attach_session_tag};
    rw_pb_AttachSession* attach = &request.command.attach_session;
    RW_TRY(copy_name(attach->name, sizeof attach->name, name, error));
    attach->role = is_control ? rw_pb_Role_Kind_CONTROL : rw_pb_Role_Kind_OBSERVE;
    return open_session(link, &request, remote, error);
}

rw_status rw_remote_close(rw_remote* remote, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_close_session_tag};
    return rw_remote_call(remote, &request, NULL, error);
}

rw_status rw_remote_detach(rw_remote* remote, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_detach_session_tag};
    return rw_remote_call(remote, &request, NULL, error);
}

// ---- World and time ----

rw_status rw_remote_load_scene(rw_remote* remote, const rw_pb_Scene* scene, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_load_scene_tag};
    request.command.load_scene.has_scene = true;
    request.command.load_scene.scene = *scene;
    return rw_remote_call(remote, &request, NULL, error);
}

rw_status rw_remote_load(rw_remote* remote, const void* scene, size_t size, rw_error* error) {
    rw_arena arena;
    rw_arena_init(&arena, rw_link_memory(remote->link));
    rw_pb_Scene decoded;
    rw_status status = rw_message_decode_scene(scene, size, &arena, &decoded, error);
    if (status == RW_STATUS_OK) {
        status = rw_remote_load_scene(remote, &decoded, error); // its lists are sent on as they are
    }
    rw_arena_finish(&arena);
    return status;
}

rw_status rw_remote_step(rw_remote* remote, uint32_t count, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_step_tag};
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = count;
    return rw_remote_call(remote, &request, NULL, error);
}

rw_status rw_remote_run(rw_remote* remote, double ratio, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_run_tag};
    request.command.run.has_ratio = true;
    request.command.run.ratio = ratio;
    return rw_remote_call(remote, &request, NULL, error);
}

rw_status rw_remote_pause(rw_remote* remote, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_pause_tag};
    return rw_remote_call(remote, &request, NULL, error);
}

// ---- Signals and inputs ----

rw_status rw_remote_observe(rw_remote* remote, const char* const* signals, size_t signal_count,
                            uint64_t* handle, uint32_t* width, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_observe_tag};
    request.command.observe.signals = rw_wire_from_strings(signals, signal_count);
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_observe_tag, &response, error));
    *handle = response->result.observe.handle;
    *width = response->result.observe.width;
    return RW_STATUS_OK;
}

rw_status rw_remote_actuate(rw_remote* remote, const char* const* targets, size_t target_count,
                            uint64_t* handle, uint32_t* width, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_actuate_tag};
    request.command.actuate.targets = rw_wire_from_strings(targets, target_count);
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_actuate_tag, &response, error));
    *handle = response->result.actuate.handle;
    *width = response->result.actuate.width;
    return RW_STATUS_OK;
}

rw_status rw_remote_advance(rw_remote* remote, uint64_t actuate, const double* inputs,
                            size_t input_count, uint32_t steps, uint64_t observe, double* outputs,
                            size_t output_count, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_advance_tag};
    rw_pb_Advance* advance = &request.command.advance;
    advance->actuate = actuate;
    advance->inputs = rw_wire_from_f64(inputs, input_count);
    advance->has_steps = true;
    advance->steps = steps;
    advance->observe = observe;
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_advance_tag, &response, error));
    rw_wire_array values = response->result.advance.values;
    if (values.count != output_count) {
        RW_FAIL(error, OUT_OF_RANGE, "outputs", "the answer has %u doubles, not %zu", values.count,
                output_count);
    }
    rw_wire_copy_f64(values, outputs);
    return RW_STATUS_OK;
}

rw_status rw_remote_read(rw_remote* remote, const char* const* signals, size_t signal_count,
                         double* values, size_t capacity, size_t* count, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_query_tag};
    rw_pb_Query* query = &request.command.query;
    query->which_question = rw_pb_Query_signals_tag;
    query->question.signals.signals = rw_wire_from_strings(signals, signal_count);
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_query_tag, &response, error));
    rw_wire_array answer = response->result.query.answer.signals.values;
    if (response->result.query.which_answer != rw_pb_QueryResult_signals_tag ||
        answer.count > capacity) {
        RW_FAIL(error, OUT_OF_RANGE, "values", "the answer has more than %zu doubles", capacity);
    }
    rw_wire_copy_f64(answer, values);
    *count = answer.count;
    return RW_STATUS_OK;
}

// ---- Streams ----

rw_status rw_remote_subscribe(rw_remote* remote, const rw_remote_stream* stream, rw_watch* watch,
                              uint64_t* subscription, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_subscribe_tag};
    rw_pb_Subscribe* subscribe = &request.command.subscribe;
    subscribe->objects = rw_wire_from_strings(stream->objects, stream->object_count);
    subscribe->node_stride = stream->node_stride;
    if (stream->every_s > 0) {
        subscribe->which_rate = rw_pb_Subscribe_every_s_tag;
        subscribe->rate.every_s = stream->every_s;
    }
    subscribe->mode = stream->is_quantized ? rw_pb_Stream_Mode_QUANTIZED : rw_pb_Stream_Mode_LOSSLESS;
    subscribe->has_position_bound = stream->position_bound > 0;
    subscribe->position_bound = stream->position_bound;
    subscribe->has_rotation_bound = stream->rotation_bound > 0;
    subscribe->rotation_bound = stream->rotation_bound;
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_subscribe_tag, &response, error));
    *subscription = response->result.subscribe.subscription;
    return watch != NULL
               ? rw_watch_expect(watch, remote->session, &response->result.subscribe, error)
               : RW_STATUS_OK;
}

rw_status rw_remote_unsubscribe(rw_remote* remote, uint64_t subscription, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_unsubscribe_tag};
    request.command.unsubscribe.subscription = subscription;
    return rw_remote_call(remote, &request, NULL, error);
}

// ---- Snapshots ----

rw_status rw_remote_snapshot(rw_remote* remote, rw_buffer* bytes, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_snapshot_tag};
    const rw_pb_Response* response;
    RW_TRY(call_for(remote, &request, rw_pb_Response_snapshot_tag, &response, error));
    rw_wire_bytes data = response->result.snapshot.data;
    if (rw_buffer_append(bytes, data.data, data.size) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a snapshot of %zu bytes", data.size);
    }
    return RW_STATUS_OK;
}

// Above about half a message a snapshot is uploaded first.
rw_status rw_remote_restore(rw_remote* remote, const void* bytes, size_t size, rw_error* error) {
    rw_pb_Request request = {.which_command = rw_pb_Request_restore_tag};
    rw_pb_Restore* restore = &request.command.restore;
    if (size > rw_link_hello(remote->link)->limits.max_message / 2) {
        restore->which_source = rw_pb_Restore_blob_tag;
        RW_TRY(rw_link_upload(remote->link, bytes, size, &restore->source.blob, error));
    } else {
        restore->which_source = rw_pb_Restore_data_tag;
        restore->source.data = (rw_wire_bytes){bytes, size};
    }
    return rw_remote_call(remote, &request, NULL, error);
}
