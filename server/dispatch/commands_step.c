// Time: Step, Advance, Run, Pause, and the handles that Advance reads and writes through.
#include <math.h>
#include <string.h>

#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "server/session/host.h"
#include "solvers/base/clock.h"

// The clock is looked at after so many steps that together cost about this.
#define LOOK_NS 20000

// ---- The loop of steps ----

// Called before each step with how many were done; may change inputs.
typedef rw_status (*before_step)(rw_command* command, void* context, uint32_t done);
// Called after each step.
typedef rw_status (*after_step)(rw_command* command, void* context, uint32_t done);

static rw_status say_stopped(rw_command* command, rw_status status) {
    const rw_task* task = command->task;
    if (status == RW_STATUS_CANCELLED || status == RW_STATUS_DEADLINE_EXCEEDED) {
        rw_status_fail(command->error, status, "", "after %u of %u steps", task->steps_done,
                       task->steps_wanted);
    }
    return status;
}

// Steps until all are done or the slice is over (verdict AGAIN). Between steps it looks for
// cancellation, deadline and readers that the session must wait for.
static rw_status run_steps(rw_command* command, before_step before, after_step after,
                           void* context) {
    rw_session* session = command->session;
    rw_task* task = command->task;
    int64_t looked_ns = 0;
    while (task->steps_done < task->steps_wanted) {
        rw_status status = rw_session_check_task(task);
        if (status != RW_STATUS_OK) {
            return say_stopped(command, status);
        }
        if (atomic_load_explicit(&session->holds, memory_order_acquire) > 0) {
            command->verdict = RW_DISPATCH_PARK;
            return RW_STATUS_OK;
        }
        if (before != NULL) {
            RW_TRY(before(command, context, task->steps_done));
        }
        status = rw_session_step(session, task, command->error);
        if (status != RW_STATUS_OK) {
            return say_stopped(command, status);
        }
        task->steps_done++;
        if (after != NULL) {
            RW_TRY(after(command, context, task->steps_done));
        }
        if (task->steps_done == task->steps_wanted) {
            break;
        }
        // Looking at the clock costs 25 ns: not after each of many tiny steps.
        looked_ns += atomic_load_explicit(&session->step_cost_ns, memory_order_relaxed) + 1;
        if (looked_ns >= LOOK_NS) {
            looked_ns = 0;
            if (rw_clock_now_ns() >= command->slice_end_ns) {
                command->verdict = RW_DISPATCH_AGAIN;
                return RW_STATUS_OK;
            }
        }
    }
    return RW_STATUS_OK;
}

static rw_hot_message_done done_of(const rw_command* command) {
    return (rw_hot_message_done){.request_id = command->task->request_id,
                                 .steps_done = command->task->steps_done,
                                 .step = (uint64_t)rw_world_step_count(command->world),
                                 .time = rw_world_time(command->world)};
}

// ---- Step ----

// Steps from now to the step nearest to `until`.
static rw_status steps_until(rw_command* command, double until, uint32_t* steps) {
    double now = rw_world_time(command->world);
    double time_step = rw_world_model(command->world)->time_step;
    if (!isfinite(until)) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "until", "must be finite, got %g", until);
    }
    double count = floor((until - now) / time_step + 0.5);
    if (count < 0) {
        RW_FAIL(command->error, OUT_OF_RANGE, "until", "%g s is before now, %g s", until, now);
    }
    if (count > UINT32_MAX) {
        RW_FAIL(command->error, OUT_OF_RANGE, "until", "%g s is more than %u steps away", until,
                UINT32_MAX);
    }
    *steps = (uint32_t)count;
    return RW_STATUS_OK;
}

rw_status rw_commands_step_run_step(rw_command* command, const rw_hot_message_step* step) {
    rw_task* task = command->task;
    if (!task->is_started) {
        if (step->has_until) {
            RW_TRY(steps_until(command, step->until, &task->steps_wanted));
        } else if (step->count == 0) {
            RW_FAIL(command->error, INVALID_ARGUMENT, "count", "must be >= 1");
        } else {
            task->steps_wanted = step->count;
        }
    }
    RW_TRY(run_steps(command, NULL, NULL, NULL));
    if (command->verdict != RW_DISPATCH_DONE) {
        return RW_STATUS_OK;
    }
    rw_hot_message_done done = done_of(command);
    task->reply.size_bytes = 0;
    if (rw_hot_message_append_step(&task->reply, &done, (double)task->wall_ns * 1e-9) !=
        RW_STATUS_OK) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
    }
    command->is_answered = true;
    return RW_STATUS_OK;
}

rw_status rw_commands_step_step(rw_command* command) {
    const rw_pb_Step* step = &command->request->command.step;
    rw_hot_message_step plain = {.count = 1};
    if (step->which_amount == rw_pb_Step_count_tag) {
        plain.count = step->amount.count;
    } else if (step->which_amount == rw_pb_Step_until_tag) {
        plain.has_until = true;
        plain.until = step->amount.until;
    }
    return rw_commands_step_run_step(command, &plain);
}

// ---- Advance ----

typedef struct advance_run {
    const rw_hot_message_advance* advance;
    const rw_handle* actuate; // NULL: none
    const rw_handle* observe; // NULL: none
    bool row_per_step;
    double* row; // one row of inputs, aligned
} advance_run;

static rw_status find_handles(rw_command* command, advance_run* run) {
    rw_handle* handle;
    const rw_hot_message_advance* advance = run->advance;
    rw_handles* handles = command->session->handles;
    if (advance->actuate != 0) {
        RW_TRY(rw_handles_find(handles, command->world, advance->actuate, true, "actuate", &handle,
                               command->error));
        run->actuate = handle;
    }
    if (advance->observe != 0) {
        RW_TRY(rw_handles_find(handles, command->world, advance->observe, false, "observe",
                               &handle, command->error));
        run->observe = handle;
    }
    return RW_STATUS_OK;
}

static void load_row(const advance_run* run, uint64_t row) {
    size_t bytes = (size_t)run->actuate->width * sizeof(double);
    memcpy(run->row, run->advance->inputs.data + row * bytes, bytes);
}

// Checks all rows before anything changes: all or nothing.
static rw_status check_inputs(rw_command* command, advance_run* run) {
    const rw_hot_message_advance* advance = run->advance;
    if (run->actuate == NULL) {
        if (advance->inputs.count > 0) {
            RW_FAIL(command->error, INVALID_ARGUMENT, "inputs", "no handle of Actuate is given");
        }
        return RW_STATUS_OK;
    }
    uint64_t width = (uint64_t)run->actuate->width;
    uint64_t count = advance->inputs.count;
    if (count != width && count != width * advance->steps) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "inputs",
                "must hold %llu numbers (or %llu, a row per step), got %llu",
                (unsigned long long)width, (unsigned long long)(width * advance->steps),
                (unsigned long long)count);
    }
    run->row_per_step = count != width;
    run->row = rw_arena_array(command->arena, width, sizeof(double));
    if (run->row == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    uint64_t rows = run->row_per_step ? advance->steps : 1;
    for (uint64_t i = 0; !command->task->is_started && i < rows; i++) {
        load_row(run, i);
        RW_TRY(rw_handles_check(run->actuate, command->world, run->row, i * width,
                                command->error));
    }
    return RW_STATUS_OK;
}

static rw_status before_advance_step(rw_command* command, void* context, uint32_t done) {
    advance_run* run = context;
    if (run->actuate == NULL || (done > 0 && !run->row_per_step)) {
        return RW_STATUS_OK;
    }
    load_row(run, run->row_per_step ? done : 0);
    int64_t steps = run->row_per_step ? 1 : run->advance->steps;
    return rw_handles_apply(run->actuate, command->world, run->row, steps, command->error);
}

static rw_status add_row(rw_command* command, const advance_run* run) {
    rw_buffer* values = &command->task->values;
    size_t bytes = (size_t)run->observe->width * sizeof(double);
    if (rw_buffer_reserve(values, bytes) != RW_STATUS_OK) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
    }
    double* row = (double*)(void*)(values->data + values->size_bytes);
    RW_TRY(rw_world_read_signals(command->world, &run->observe->signals, row, command->error));
    values->size_bytes += bytes;
    return RW_STATUS_OK;
}

static rw_status after_advance_step(rw_command* command, void* context, uint32_t done) {
    const advance_run* run = context;
    uint32_t every = run->advance->every;
    bool is_row = every != 0 ? done % every == 0 : done == run->advance->steps;
    return run->observe != NULL && is_row ? add_row(command, run) : RW_STATUS_OK;
}

// The rows are gathered in the server's memory before they are sent: not more of them than may wait
// for a connection anyway.
static rw_status check_rows(rw_command* command, const advance_run* run) {
    uint64_t most = (uint64_t)command->host->config->max_upload_bytes;
    uint64_t rows = run->advance->every != 0 ? run->advance->steps / run->advance->every : 1;
    if (run->observe != NULL && run->observe->width > 0 &&
        rows > most / ((uint64_t)run->observe->width * sizeof(double))) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "every",
                "%llu rows of %d numbers exceed limits.max_upload_bytes, %llu",
                (unsigned long long)rows, (int)run->observe->width, (unsigned long long)most);
    }
    return RW_STATUS_OK;
}

rw_status rw_commands_step_run_advance(rw_command* command, const rw_hot_message_advance* advance) {
    rw_task* task = command->task;
    advance_run run = {.advance = advance};
    RW_TRY(find_handles(command, &run));
    RW_TRY(check_inputs(command, &run));
    RW_TRY(check_rows(command, &run));
    if (!task->is_started) {
        task->steps_wanted = advance->steps;
        if (advance->steps == 0) { // sets and reads only
            RW_TRY(before_advance_step(command, &run, 0));
            if (run.observe != NULL) {
                RW_TRY(add_row(command, &run));
            }
        }
    }
    RW_TRY(run_steps(command, before_advance_step, after_advance_step, &run));
    if (command->verdict != RW_DISPATCH_DONE) {
        return RW_STATUS_OK;
    }
    size_t count = task->values.size_bytes / sizeof(double);
    uint32_t rows =
        run.observe != NULL && run.observe->width > 0
            ? (uint32_t)(count / (size_t)run.observe->width)
            : 0;
    if (task->parent_context != NULL) { // an entry of BatchAdvance: its rows are gathered there
        command->is_answered = true;
        return RW_STATUS_OK;
    }
    size_t limit = (size_t)command->host->config->max_message_bytes;
    if (task->values.size_bytes + 128 > limit) { // the general way knows of large answers
        command->response->which_result = rw_pb_Response_advance_tag;
        command->response->result.advance.values =
            rw_wire_from_f64((const double*)(const void*)task->values.data, count);
        command->response->result.advance.rows = rows;
        return RW_STATUS_OK;
    }
    rw_hot_message_done done = done_of(command);
    task->reply.size_bytes = 0;
    if (rw_hot_message_append_advance(&task->reply, &done,
                                      (const double*)(const void*)task->values.data, count,
                                      rows) != RW_STATUS_OK) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
    }
    command->is_answered = true;
    return RW_STATUS_OK;
}

rw_status rw_commands_step_advance(rw_command* command) {
    const rw_pb_Advance* advance = &command->request->command.advance;
    rw_hot_message_advance plain = {.actuate = advance->actuate,
                                    .inputs = advance->inputs,
                                    .steps = advance->has_steps ? advance->steps : 1,
                                    .observe = advance->observe,
                                    .every = advance->every};
    return rw_commands_step_run_advance(command, &plain);
}

// ---- Run, Pause ----

rw_status rw_commands_step_run(rw_command* command) {
    const rw_pb_Run* run = &command->request->command.run;
    rw_session* session = command->session;
    double ratio = run->has_ratio ? run->ratio : 1;
    int64_t until_step = -1;
    if (!(ratio > 0) || (isfinite(ratio) && ratio > 1e9)) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "ratio",
                "must be > 0 and at most 1e9, or infinite, got %g", ratio);
    }
    if (run->has_until) {
        uint32_t steps;
        RW_TRY(steps_until(command, run->until, &steps));
        until_step = rw_world_step_count(command->world) + steps;
    }
    // While RUNNING: another ratio or end.
    rw_pacing_start(&session->pacing, ratio, until_step, rw_clock_now_ns());
    rw_session_set_state(session, rw_pb_SessionState_Kind_RUNNING, "Run");
    if (session->state != rw_pb_SessionState_Kind_RUNNING) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    return RW_STATUS_OK;
}

rw_status rw_commands_step_pause(rw_command* command) {
    rw_session* session = command->session;
    command->response->which_result = rw_pb_Response_pause_tag;
    command->response->result.pause.lost_steps = session->pacing.lost_steps;
    if (session->state == rw_pb_SessionState_Kind_RUNNING) {
        session->pacing.is_on = false;
        rw_session_set_state(session, rw_pb_SessionState_Kind_READY, "Pause");
    }
    return RW_STATUS_OK;
}

// ---- Observe, Actuate, Release ----

// Copies the strings of a list into the arena, NUL-terminated.
rw_status rw_commands_step_globs(rw_command* command, const rw_wire_list* list, const char* path,
                                 const char*** globs) {
    if (list->count == 0) {
        RW_FAIL(command->error, INVALID_ARGUMENT, path, "must not be empty");
    }
    *globs = rw_arena_array(command->arena, list->count, sizeof(char*));
    rw_wire_cursor cursor = rw_wire_begin(list);
    rw_wire_bytes text;
    for (uint32_t i = 0; *globs != NULL && rw_wire_next(&cursor, &text); i++) {
        char* copy = rw_arena_get(command->arena, text.size + 1);
        if (copy == NULL) {
            *globs = NULL;
            break;
        }
        rw_wire_copy_text(text, copy, text.size + 1);
        (*globs)[i] = copy;
    }
    if (*globs == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    return RW_STATUS_OK;
}

static bool fill_signal(void* context, uint32_t index, void* item) {
    const rw_handle* handle = context;
    const rw_signal* signal = &handle->signals.items[index];
    rw_pb_LayoutEntry* entry = item;
    strncpy(entry->signal, signal->name, sizeof entry->signal - 1);
    entry->offset = (uint32_t)signal->offset;
    entry->width = (uint32_t)signal->width;
    strncpy(entry->unit, signal->unit, sizeof entry->unit - 1);
    strncpy(entry->frame, signal->frame, sizeof entry->frame - 1);
    return true;
}

static rw_status new_row(rw_command* command, const rw_handle* handle, double** row) {
    *row = rw_arena_array(command->arena, (size_t)handle->width + 1, sizeof(double));
    if (*row == NULL) {
        rw_handles_release(command->session->handles, handle->id, handle->owner, NULL);
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    return RW_STATUS_OK;
}

rw_status rw_commands_step_observe(rw_command* command) {
    const char** globs;
    const rw_wire_list* signals = &command->request->command.observe.signals;
    RW_TRY(rw_commands_step_globs(command, signals, "signals", &globs));
    rw_handle* handle;
    RW_TRY(rw_handles_observe(command->session->handles, command->world, command->client->id, globs,
                              signals->count, &handle, command->error));
    double* row;
    RW_TRY(new_row(command, handle, &row));
    rw_status status =
        rw_world_read_signals(command->world, &handle->signals, row, command->error);
    if (status != RW_STATUS_OK) {
        rw_handles_release(command->session->handles, handle->id, handle->owner, NULL);
        return status;
    }
    rw_pb_ObserveResult* result = &command->response->result.observe;
    command->response->which_result = rw_pb_Response_observe_tag;
    result->handle = handle->id;
    result->width = (uint32_t)handle->width;
    result->layout = rw_wire_from_fill(fill_signal, handle, sizeof(rw_pb_LayoutEntry),
                                       (size_t)handle->signals.count);
    result->values = rw_wire_from_f64(row, (size_t)handle->width);
    return RW_STATUS_OK;
}

typedef struct input_list {
    const rw_handle* handle;
    rw_world* world;
} input_list;

static bool fill_input(void* context, uint32_t index, void* item) {
    const input_list* list = context;
    rw_handles_describe(list->handle, list->world, (int32_t)index, item);
    return true;
}

rw_status rw_commands_step_actuate(rw_command* command) {
    const char** globs;
    const rw_wire_list* targets = &command->request->command.actuate.targets;
    RW_TRY(rw_commands_step_globs(command, targets, "targets", &globs));
    input_list* list = rw_arena_get(command->arena, sizeof *list);
    if (list == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    rw_handle* handle;
    RW_TRY(rw_handles_actuate(command->session->handles, command->world, command->client->id, globs,
                              targets->count, &handle, command->error));
    double* row;
    RW_TRY(new_row(command, handle, &row));
    rw_handles_read(handle, command->world, row);
    *list = (input_list){.handle = handle, .world = command->world};
    rw_pb_ActuateResult* result = &command->response->result.actuate;
    command->response->which_result = rw_pb_Response_actuate_tag;
    result->handle = handle->id;
    result->width = (uint32_t)handle->width;
    result->layout = rw_wire_from_fill(fill_input, list, sizeof(rw_pb_LayoutEntry),
                                       (size_t)handle->entry_count);
    result->values = rw_wire_from_f64(row, (size_t)handle->width);
    return RW_STATUS_OK;
}

rw_status rw_commands_step_release(rw_command* command) {
    return rw_handles_release(command->session->handles,
                              command->request->command.release.handle, command->client->id,
                              command->error);
}
