// Commands made of commands: Batch (any requests, one after the other) and BatchAdvance (the same
// Advance for many sessions at once). Both live on the loop thread and send tasks of their own:
//
//   Batch:        next -> route -> [session] -> child_done -> next ... -> answer
//   BatchAdvance: route N -> [N sessions on all workers] -> entry_done x N -> answer
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "server/dispatch/router.h"
#include "server/session/host.h"

enum { MAX_BATCH = 4096, MAX_SESSIONS = 65536 };

// ---- Batch ----

typedef struct batch {
    rw_host* host;
    rw_task* task; // the Batch itself
    rw_arena arena;
    rw_pb_Request request;
    rw_wire_cursor cursor;
    rw_buffer responses; // encoded, one after the other
    rw_wire_bytes* elements; // sizes while gathering; pointers at the end
    uint32_t count, done;
    rw_task* child; // the one that runs
    bool is_driving; // `drive` is on the stack: it sees that a child is done
    bool is_stopped;
} batch;

static void free_batch(batch* job) {
    job->task->context = NULL;
    rw_alloc_free(&job->host->alloc, job->elements);
    rw_buffer_finish(&job->responses);
    rw_arena_finish(&job->arena);
    rw_alloc_free(&job->host->alloc, job);
}

static void answer_batch(batch* job) {
    rw_task* task = job->task;
    rw_host* host = job->host;
    const uint8_t* at = job->responses.data;
    for (uint32_t i = 0; i < job->done; i++) {
        job->elements[i].data = at;
        at += job->elements[i].size;
    }
    rw_pb_Response response = rw_pb_Response_init_zero;
    response.request_id = task->request_id;
    response.which_result = rw_pb_Response_batch_tag;
    response.result.batch.responses = rw_wire_from_encoded(job->elements, job->done);
    rw_dispatch_reply(host, task, &response);
    free_batch(job);
    task->finish(task);
}

static bool keep_response(batch* job, const void* bytes, size_t size) {
    if (rw_buffer_append(&job->responses, bytes, size) != RW_STATUS_OK) {
        return false;
    }
    job->elements[job->done++].size = size;
    return true;
}

// Answers an element that is not run.
static void skip_element(batch* job, uint64_t request_id, rw_status status, const char* text) {
    rw_error error = {0};
    rw_pb_Response response;
    rw_status_fail(&error, status, "", "%s", text);
    rw_message_fail(&response, request_id, &error);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &job->host->alloc);
    if (rw_message_append_response(&bytes, &response) != RW_STATUS_OK ||
        !keep_response(job, bytes.data, bytes.size_bytes)) {
        job->elements[job->done++].size = 0; // an empty Response: no memory to say more
    }
    rw_buffer_finish(&bytes);
}

static void child_done(rw_task* child);

// Sends the next element on its way. False when it was answered at once.
static bool send_element(batch* job, rw_wire_bytes element) {
    rw_message_peek peek;
    rw_message_peek_request(element.data, element.size, &peek);
    if (job->is_stopped || atomic_load(&job->task->cancelled)) {
        skip_element(job, peek.request_id, RW_STATUS_CANCELLED, "not begun");
        return false;
    }
    if (peek.command_tag == rw_pb_Request_batch_tag) {
        skip_element(job, peek.request_id, RW_STATUS_INVALID_ARGUMENT, "a Batch in a Batch");
        job->is_stopped = job->request.command.batch.stop_on_error;
        return false;
    }
    rw_task* child = rw_host_take_task(job->host, job->task->client, NULL);
    if (child == NULL) {
        skip_element(job, peek.request_id, RW_STATUS_RESOURCE_EXHAUSTED, "out of memory");
        job->is_stopped = job->request.command.batch.stop_on_error;
        return false;
    }
    child->request_id = peek.request_id;
    child->session_id = peek.session;
    child->command_tag = peek.command_tag;
    child->arrived_ns = job->task->arrived_ns;
    int64_t own_ns = peek.deadline_ms != 0
                         ? child->arrived_ns + (int64_t)peek.deadline_ms * 1000000
                         : INT64_MAX;
    int64_t batch_ns = job->task->deadline_ns != 0 ? job->task->deadline_ns : INT64_MAX;
    int64_t earlier_ns = own_ns < batch_ns ? own_ns : batch_ns;
    child->deadline_ns = earlier_ns != INT64_MAX ? earlier_ns : 0;
    child->bytes = element.data;
    child->size_bytes = element.size;
    child->finish = rw_router_finish;
    child->parent = child_done;
    child->parent_context = job;
    job->child = child;
    rw_router_route(child->client, child);
    return job->child != NULL;
}

static void drive(batch* job) {
    job->is_driving = true;
    rw_wire_bytes element;
    while (rw_wire_next(&job->cursor, &element)) {
        if (send_element(job, element)) {
            job->is_driving = false;
            return; // child_done goes on
        }
    }
    answer_batch(job);
}

static void child_done(rw_task* child) {
    batch* job = child->parent_context;
    job->child = NULL;
    if (child->status != RW_STATUS_OK && job->request.command.batch.stop_on_error) {
        job->is_stopped = true;
    }
    if (child->reply.size_bytes < RW_FRAME_HEADER_BYTES ||
        !keep_response(job, child->reply.data + RW_FRAME_HEADER_BYTES,
                       child->reply.size_bytes - RW_FRAME_HEADER_BYTES)) {
        skip_element(job, child->request_id, RW_STATUS_RESOURCE_EXHAUSTED,
                     "done, but no memory for the answer");
    }
    rw_host_give_task(job->host, child);
    if (!job->is_driving) {
        drive(job);
    }
}

rw_status rw_commands_batch_run(rw_command* command) {
    rw_host* host = command->host;
    uint32_t count = command->request->command.batch.requests.count;
    if (count > MAX_BATCH) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "requests", "at most %d, got %u", MAX_BATCH,
                count);
    }
    batch* job = rw_alloc_get(&host->alloc, sizeof *job);
    rw_wire_bytes* elements =
        rw_alloc_array(&host->alloc, (size_t)count + 1, sizeof(rw_wire_bytes));
    if (job == NULL || elements == NULL) {
        rw_alloc_free(&host->alloc, job);
        rw_alloc_free(&host->alloc, elements);
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    job->host = host;
    job->task = command->task;
    job->elements = elements;
    job->count = count;
    rw_buffer_init(&job->responses, &host->alloc);
    rw_arena_init(&job->arena, &host->alloc);
    // Decoded once more: these views must outlive the handler.
    rw_status status =
        rw_message_decode_request(command->task->bytes, command->task->size_bytes, &job->arena,
                                  &job->request, command->error);
    command->task->context = job;
    if (status != RW_STATUS_OK) {
        free_batch(job);
        return status;
    }
    job->cursor = rw_wire_begin(&job->request.command.batch.requests);
    command->is_deferred = true;
    drive(job);
    return RW_STATUS_OK;
}

// ---- BatchAdvance ----

typedef struct batch_entry {
    rw_hot_message_advance advance;
    rw_task* task; // while it runs
    int32_t width; // of its row of values
    double* row;   // NULL: not there (failed)
    int64_t step;
    rw_pb_BatchAdvanceResult_EntryError* error; // NULL: went well
} batch_entry;

typedef struct batch_advance {
    rw_host* host;
    rw_task* task;
    rw_arena arena; // everything below
    rw_pb_Request request;
    uint32_t count;
    uint32_t waiting;
    bool no_memory;
    batch_entry entries[];
} batch_advance;

static void free_batch_advance(batch_advance* job) {
    job->task->context = NULL;
    rw_arena_finish(&job->arena);
    rw_alloc_free(&job->host->alloc, job);
}

static void fail_entry(batch_advance* job, uint32_t index, const rw_pb_Response* response) {
    rw_pb_BatchAdvanceResult_EntryError* error = rw_arena_get(&job->arena, sizeof *error);
    if (error == NULL) {
        job->no_memory = true;
        return;
    }
    error->index = index;
    error->status = response->status;
    error->steps_done = response->steps_done;
    memcpy(error->message, response->message, sizeof error->message);
    error->message[sizeof error->message - 1] = '\0';
    memcpy(error->path, response->path, sizeof error->path);
    error->path[sizeof error->path - 1] = '\0';
    job->entries[index].error = error;
}

static void refuse_entry(batch_advance* job, uint32_t index, rw_status status, const char* path,
                         const char* text) {
    rw_error error = {0};
    rw_pb_Response response;
    rw_status_fail(&error, status, path, "%s", text);
    rw_message_fail(&response, 0, &error);
    fail_entry(job, index, &response);
}

static rw_status gather(batch_advance* job, rw_pb_BatchAdvanceResult* result, rw_error* error) {
    size_t width = 0, errors = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        width += (size_t)job->entries[i].width;
        errors += job->entries[i].error != NULL ? 1 : 0;
    }
    double* values = rw_arena_array(&job->arena, width + 1, sizeof(double));
    uint64_t* steps = rw_arena_array(&job->arena, (size_t)job->count + 1, sizeof(uint64_t));
    rw_pb_BatchAdvanceResult_EntryError* list =
        rw_arena_array(&job->arena, errors + 1, sizeof *list);
    if (job->no_memory || values == NULL || steps == NULL || list == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "done, but no memory for the answer");
    }
    size_t at = 0, error_at = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        const batch_entry* entry = &job->entries[i];
        for (int32_t k = 0; k < entry->width; k++) {
            values[at++] = entry->row != NULL ? entry->row[k] : (double)NAN;
        }
        steps[i] = (uint64_t)entry->step;
        if (entry->error != NULL) {
            list[error_at++] = *entry->error;
        }
    }
    result->values = rw_wire_from_f64(values, width);
    result->steps = rw_wire_from_u64(steps, job->count);
    result->errors = RW_WIRE_FROM_ITEMS(list, errors);
    return RW_STATUS_OK;
}

static void answer_batch_advance(batch_advance* job) {
    rw_task* task = job->task;
    rw_error error = {0};
    rw_pb_Response response = rw_pb_Response_init_zero;
    response.request_id = task->request_id;
    response.which_result = rw_pb_Response_batch_advance_tag;
    if (gather(job, &response.result.batch_advance, &error) == RW_STATUS_OK) {
        rw_dispatch_reply(job->host, task, &response);
    } else {
        rw_dispatch_reply_error(job->host, task, &error);
    }
    free_batch_advance(job);
    task->finish(task);
}

static void entry_done(rw_task* task) {
    batch_advance* job = task->parent_context;
    batch_entry* entry = &job->entries[task->parent_index];
    entry->task = NULL;
    entry->step = atomic_load_explicit(&task->session->at_step, memory_order_relaxed);
    size_t bytes = (size_t)entry->width * sizeof(double);
    if (task->status != RW_STATUS_OK) {
        rw_pb_Response response;
        rw_error unused;
        if (rw_message_decode_response(task->reply.data + RW_FRAME_HEADER_BYTES,
                                       task->reply.size_bytes - RW_FRAME_HEADER_BYTES,
                                       &job->arena, &response, &unused) != RW_STATUS_OK) {
            rw_error error = {0}; // what can be said without its words
            rw_status_fail(&error, (rw_status)task->status, "", "no memory for the reason");
            rw_message_fail(&response, 0, &error);
            response.steps_done = task->steps_done;
        }
        fail_entry(job, (uint32_t)task->parent_index, &response);
    } else if (task->values.size_bytes == bytes && bytes > 0) {
        entry->row = rw_arena_get(&job->arena, bytes);
        if (entry->row != NULL) {
            memcpy(entry->row, task->values.data, bytes);
        } else {
            job->no_memory = true;
        }
    }
    rw_host_give_task(job->host, task);
    if (--job->waiting == 0) {
        answer_batch_advance(job);
    }
}

// The session of an entry, or NULL when it was refused.
static rw_session* entry_session(batch_advance* job, uint32_t index, uint64_t id) {
    rw_session* session = rw_session_table_find(&job->host->sessions, id);
    if (session == NULL) {
        refuse_entry(job, index, RW_STATUS_NOT_FOUND, "sessions", "no such session");
        return NULL;
    }
    const rw_client_attachment* attachment =
        rw_client_find_attachment(job->task->client, session);
    if (attachment == NULL || !attachment->is_control) {
        refuse_entry(job, index, RW_STATUS_PERMISSION_DENIED, "sessions",
                     "not attached with CONTROL");
        return NULL;
    }
    return session;
}

// Sends one entry; `*input_at` moves on by its row.
static rw_status send_entry(batch_advance* job, uint32_t index, uint32_t* input_at,
                            rw_error* error) {
    const rw_pb_BatchAdvance* asked = &job->request.command.batch_advance;
    batch_entry* entry = &job->entries[index];
    rw_session* session = entry_session(job, index, rw_wire_u64(asked->sessions, index));
    if (session == NULL) {
        return RW_STATUS_OK;
    }
    entry->advance.steps = asked->has_steps ? asked->steps : 1;
    entry->advance.actuate = asked->actuate.count > 0 ? rw_wire_u64(asked->actuate, index) : 0;
    entry->advance.observe = asked->observe.count > 0 ? rw_wire_u64(asked->observe, index) : 0;
    if (entry->advance.actuate != 0) {
        int32_t width = rw_handles_width(session->handles, entry->advance.actuate);
        if (width < 0 || (uint32_t)width > asked->inputs.count - *input_at) {
            rw_status_fail(error, width < 0 ? RW_STATUS_NOT_FOUND : RW_STATUS_INVALID_ARGUMENT, "",
                           width < 0 ? "no handle of Actuate" : "too few inputs from here");
            return rw_status_prefix(error, width < 0 ? "actuate[%u]" : "inputs[%u]",
                                    width < 0 ? index : *input_at);
        }
        entry->advance.inputs = (rw_wire_array){
            .data = asked->inputs.data + (size_t)*input_at * 8, .count = (uint32_t)width};
        *input_at += (uint32_t)width;
    }
    int32_t width = entry->advance.observe != 0
                        ? rw_handles_width(session->handles, entry->advance.observe)
                        : 0;
    entry->width = width > 0 ? width : 0;
    entry->task = rw_host_take_task(job->host, job->task->client, session);
    if (entry->task == NULL) {
        refuse_entry(job, index, RW_STATUS_RESOURCE_EXHAUSTED, "", "out of memory");
    }
    return RW_STATUS_OK;
}

static int compare_ids(const void* a, const void* b) {
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
    return x < y ? -1 : x > y;
}

// A session twice would make its second row depend on the first.
static rw_status check_each_once(batch_advance* job, rw_error* error) {
    const rw_wire_array sessions = job->request.command.batch_advance.sessions;
    uint64_t* ids = rw_arena_array(&job->arena, job->count, sizeof *ids);
    if (ids == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    for (uint32_t i = 0; i < job->count; i++) {
        ids[i] = rw_wire_u64(sessions, i);
    }
    qsort(ids, job->count, sizeof *ids, compare_ids);
    for (uint32_t i = 1; i < job->count; i++) {
        if (ids[i] == ids[i - 1]) {
            RW_FAIL(error, INVALID_ARGUMENT, "sessions", "must hold each id once, got %llu twice",
                    (unsigned long long)ids[i]);
        }
    }
    return RW_STATUS_OK;
}

static rw_status make_entries(batch_advance* job, rw_error* error) {
    const rw_pb_BatchAdvance* asked = &job->request.command.batch_advance;
    RW_TRY(check_each_once(job, error));
    if (asked->actuate.count != 0 && asked->actuate.count != job->count) {
        RW_FAIL(error, INVALID_ARGUMENT, "actuate", "must hold %u handles or none, got %u",
                job->count, asked->actuate.count);
    }
    if (asked->observe.count != 0 && asked->observe.count != job->count) {
        RW_FAIL(error, INVALID_ARGUMENT, "observe", "must hold %u handles or none, got %u",
                job->count, asked->observe.count);
    }
    uint32_t input_at = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        RW_TRY(send_entry(job, i, &input_at, error));
    }
    if (input_at != asked->inputs.count) {
        RW_FAIL(error, INVALID_ARGUMENT, "inputs", "%u numbers are more than the handles' %u",
                asked->inputs.count, input_at);
    }
    return RW_STATUS_OK;
}

static void start_entries(batch_advance* job) {
    job->waiting = 1; // this function
    for (uint32_t i = 0; i < job->count; i++) {
        rw_task* task = job->entries[i].task;
        if (task == NULL) {
            continue;
        }
        task->command_tag = rw_pb_Request_advance_tag;
        task->advance = &job->entries[i].advance;
        task->deadline_ns = job->task->deadline_ns;
        task->finish = rw_router_finish;
        task->parent = entry_done;
        task->parent_context = job;
        task->parent_index = (int32_t)i;
        job->waiting++;
        rw_host_submit(job->host, task);
    }
    if (--job->waiting == 0) {
        answer_batch_advance(job);
    }
}

rw_status rw_commands_batch_advance(rw_command* command) {
    rw_host* host = command->host;
    uint32_t count = command->request->command.batch_advance.sessions.count;
    if (count == 0 || count > MAX_SESSIONS) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "sessions", "must hold 1 to %d ids, got %u",
                MAX_SESSIONS, count);
    }
    batch_advance* job = rw_alloc_get(&host->alloc, sizeof *job + count * sizeof(batch_entry));
    if (job == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    job->host = host;
    job->task = command->task;
    job->count = count;
    rw_arena_init(&job->arena, &host->alloc);
    command->task->context = job;
    rw_status status =
        rw_message_decode_request(command->task->bytes, command->task->size_bytes, &job->arena,
                                  &job->request, command->error);
    if (status == RW_STATUS_OK) {
        status = make_entries(job, command->error);
    }
    if (status != RW_STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            if (job->entries[i].task != NULL) {
                rw_host_give_task(host, job->entries[i].task);
            }
        }
        free_batch_advance(job);
        return status;
    }
    command->is_deferred = true;
    start_entries(job);
    return RW_STATUS_OK;
}

// ---- Cancel ----

void rw_commands_batch_cancel(rw_task* task) {
    if (task->context == NULL) {
        return;
    }
    if (task->command_tag == rw_pb_Request_batch_tag) {
        batch* job = task->context;
        if (job->child != NULL) {
            rw_session_cancel(job->child);
        }
    } else if (task->command_tag == rw_pb_Request_batch_advance_tag) {
        batch_advance* job = task->context;
        for (uint32_t i = 0; i < job->count; i++) {
            if (job->entries[i].task != NULL) {
                rw_session_cancel(job->entries[i].task);
            }
        }
    }
}
