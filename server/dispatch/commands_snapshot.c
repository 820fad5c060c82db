// Whole states: Snapshot, Restore, DropSnapshot, Fork.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/message.h"
#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "server/session/host.h"
#include "solvers/base/clock.h"

enum { MAX_KEPT = 4096, MAX_FORKS = 4096 };

// ---- Snapshot ----

static rw_status keep(rw_command* command, rw_buffer* bytes, uint64_t* id) {
    rw_session* session = command->session;
    if (session->snapshot_count >= MAX_KEPT) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "keep", "the session keeps %d snapshots",
                MAX_KEPT);
    }
    rw_session_snapshot* snapshots =
        rw_alloc_resize(&session->alloc, session->snapshots,
                        (size_t)(session->snapshot_count + 1) * sizeof(rw_session_snapshot));
    if (snapshots == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    session->snapshots = snapshots;
    *id = session->next_snapshot++;
    snapshots[session->snapshot_count++] = (rw_session_snapshot){.id = *id, .bytes = *bytes};
    return RW_STATUS_OK;
}

rw_status rw_commands_snapshot_take(rw_command* command) {
    const rw_pb_Snapshot* snapshot = &command->request->command.snapshot;
    rw_pb_SnapshotResult* result = &command->response->result.snapshot;
    if (snapshot->keep && !command->task->has_control) {
        RW_FAIL(command->error, PERMISSION_DENIED, "keep", "needs CONTROL");
    }
    rw_buffer bytes;
    rw_buffer_init(&bytes, &command->session->alloc);
    rw_status status = rw_world_snapshot(command->world, &bytes, command->error);
    if (status != RW_STATUS_OK) {
        rw_buffer_finish(&bytes);
        return status;
    }
    command->response->which_result = rw_pb_Response_snapshot_tag;
    result->bytes = bytes.size_bytes;
    if (snapshot->keep) {
        status = keep(command, &bytes, &result->snapshot);
        if (status != RW_STATUS_OK) {
            rw_buffer_finish(&bytes);
        }
        return status;
    }
    result->data = (rw_wire_bytes){bytes.data, bytes.size_bytes};
    command->response->has_step = command->response->has_time = true;
    command->response->step = (uint64_t)rw_world_step_count(command->world);
    command->response->time = rw_world_time(command->world);
    rw_dispatch_reply(command->host, command->task, command->response);
    command->is_answered = true;
    rw_buffer_finish(&bytes);
    return RW_STATUS_OK;
}

static rw_status find_kept(rw_command* command, uint64_t id, int32_t* index) {
    for (int32_t i = 0; i < command->session->snapshot_count; i++) {
        if (command->session->snapshots[i].id == id) {
            *index = i;
            return RW_STATUS_OK;
        }
    }
    RW_FAIL(command->error, NOT_FOUND, "snapshot", "the session keeps no snapshot %llu",
            (unsigned long long)id);
}

rw_status rw_commands_snapshot_drop(rw_command* command) {
    rw_session* session = command->session;
    int32_t index = 0;
    RW_TRY(find_kept(command, command->request->command.drop_snapshot.snapshot, &index));
    rw_buffer_finish(&session->snapshots[index].bytes);
    session->snapshot_count--;
    memmove(&session->snapshots[index], &session->snapshots[index + 1],
            (size_t)(session->snapshot_count - index) * sizeof(rw_session_snapshot));
    return RW_STATUS_OK;
}

// ---- Restore ----

static rw_status restore(rw_command* command, const void* bytes, size_t size, const char* path) {
    rw_session* session = command->session;
    rw_world_config config = rw_session_world_config(session);
    rw_world* world;
    uint64_t epoch = rw_world_epoch(session->world);
    if (rw_world_create_from_snapshot(&config, bytes, size, &world, command->error) !=
        RW_STATUS_OK) {
        return rw_status_prefix(command->error, "%s", path);
    }
    rw_world_begin_epoch(world, epoch + 1);
    rw_session_replace_world(session, world);
    command->world = world;
    return RW_STATUS_OK;
}

rw_status rw_commands_snapshot_restore(rw_command* command) {
    const rw_pb_Restore* source = &command->request->command.restore;
    int32_t index = 0;
    switch (source->which_source) {
    case rw_pb_Restore_snapshot_tag: {
        RW_TRY(find_kept(command, source->source.snapshot, &index));
        const rw_buffer* bytes = &command->session->snapshots[index].bytes;
        return restore(command, bytes->data, bytes->size_bytes, "snapshot");
    }
    case rw_pb_Restore_data_tag:
        return restore(command, source->source.data.data, source->source.data.size, "data");
    case rw_pb_Restore_blob_tag: {
        rw_blob* blob;
        RW_TRY(rw_blob_store_find(command->client->blobs, source->source.blob, &blob,
                                  command->error));
        rw_status status = restore(command, blob->bytes, blob->size_bytes, "blob");
        rw_blob_store_release(command->client->blobs, blob);
        return status;
    }
    default: break;
    }
    RW_FAIL(command->error, INVALID_ARGUMENT, "source", "give snapshot, data or blob");
}

// ---- Fork ----
//
// The session takes the snapshot; the loop thread then makes the children, each of which restores
// itself as its first task; the last one to be ready lets the answer go.

typedef struct fork_job {
    rw_host* host;
    rw_task* task; // the Fork
    rw_buffer bytes;
    uint32_t count;
    uint32_t waiting; // children not ready yet
    rw_error error;   // of the first that failed
    rw_session* children[];
} fork_job;

rw_status rw_commands_snapshot_fork(rw_command* command) {
    const rw_pb_Fork* fork = &command->request->command.fork;
    uint32_t count = fork->has_count ? fork->count : fork->names.count > 0 ? fork->names.count : 1;
    if (count < 1 || count > MAX_FORKS) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "count", "must be in [1, %d], got %u", MAX_FORKS,
                count);
    }
    if (fork->names.count != 0 && fork->names.count != count) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "names", "must hold %u names or none, got %u",
                count, fork->names.count);
    }
    if (fork->has_ttl_detached_s && fork->ttl_detached_s != -1 &&
        !(fork->ttl_detached_s >= 0 && isfinite(fork->ttl_detached_s))) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "ttl_detached_s", "must be >= 0 or -1");
    }
    rw_alloc* alloc = &command->host->alloc;
    fork_job* job = rw_alloc_get(alloc, sizeof *job + count * sizeof(rw_session*));
    if (job == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    job->host = command->host;
    job->task = command->task;
    job->count = count;
    rw_buffer_init(&job->bytes, alloc);
    rw_status status = rw_world_snapshot(command->world, &job->bytes, command->error);
    if (status != RW_STATUS_OK) {
        rw_buffer_finish(&job->bytes);
        rw_alloc_free(alloc, job);
        return status;
    }
    command->task->context = job;
    return RW_STATUS_OK;
}

static void end_job(fork_job* job) {
    rw_task* task = job->task;
    rw_host* host = job->host;
    task->context = NULL;
    rw_buffer_finish(&job->bytes);
    rw_alloc_free(&host->alloc, job);
    if (task->parent != NULL) {
        task->parent(task);
    } else {
        rw_host_answer(task);
    }
}

static bool fill_child(void* context, uint32_t index, void* item) {
    const fork_job* job = context;
    rw_session_describe(job->children[index], item);
    return true;
}

// All children are ready or one could not be made: all or nothing.
static void answer_job(fork_job* job) {
    rw_task* task = job->task;
    if (job->error.status != RW_STATUS_OK) {
        for (uint32_t i = 0; i < job->count; i++) {
            if (job->children[i] != NULL && !job->children[i]->is_closing) {
                rw_host_close_session(job->host, job->children[i], "Fork failed");
            }
        }
        rw_dispatch_reply_error(job->host, task, &job->error);
    } else {
        rw_pb_Response response = rw_pb_Response_init_zero;
        response.request_id = task->request_id;
        response.which_result = rw_pb_Response_fork_tag;
        response.has_step = response.has_time = true;
        response.step = (uint64_t)atomic_load_explicit(&job->children[0]->at_step,
                                                       memory_order_relaxed);
        response.time = rw_session_time(job->children[0]);
        response.result.fork.sessions =
            rw_wire_from_fill(fill_child, job, sizeof(rw_pb_SessionInfo), job->count);
        rw_dispatch_reply(job->host, task, &response);
    }
    for (uint32_t i = 0; i < job->count; i++) {
        rw_session_drop(job->children[i]);
    }
    end_job(job);
}

static rw_status make_child_world(rw_session* session, const fork_job* job, rw_error* error) {
    rw_world_config config = rw_session_world_config(session);
    RW_TRY(rw_world_create_from_snapshot(&config, job->bytes.data, job->bytes.size_bytes,
                                         &session->world, error));
    rw_world_begin_epoch(session->world, 0);
    session->publisher = rw_publisher_create(session);
    if (session->publisher == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    session->seen_epoch = rw_world_epoch(session->world);
    return RW_STATUS_OK;
}

static void begin_child(rw_session* session, rw_task* task) {
    rw_error error = {0};
    task->status = (int)make_child_world(session, task->context, &error);
    if (task->status != RW_STATUS_OK) {
        rw_session_shut(session);
        error.status = (rw_status)task->status;
        rw_dispatch_reply_error(session->host, task, &error); // carries the status
    }
}

static void finish_child(rw_task* task) {
    fork_job* job = task->context;
    rw_session* session = task->session;
    if (task->status != RW_STATUS_OK) {
        if (job->error.status == RW_STATUS_OK) {
            rw_status_fail(&job->error, (rw_status)task->status, "",
                           "no room for session \"%s\"", session->name);
        }
        rw_host_session_closed(job->host, session, "Fork failed");
    }
    rw_host_give_task(job->host, task);
    if (--job->waiting == 0) {
        answer_job(job);
    }
}

// One child: in the table, attached, its first task sent.
static rw_status start_child(fork_job* job, uint32_t index, const char* name, double ttl_s) {
    rw_session* session;
    RW_TRY(rw_session_table_add(&job->host->sessions, name, &session, &job->error));
    session->ttl_detached_s = ttl_s;
    rw_session_hold(session);
    job->children[index] = session;
    rw_task* task = rw_host_take_task(job->host, NULL, session);
    if (task == NULL || (job->task->client->link != NULL &&
                         rw_client_attach(job->task->client, session, true) != RW_STATUS_OK)) {
        if (task != NULL) {
            rw_host_give_task(job->host, task);
        }
        rw_session_table_remove(&job->host->sessions, session);
        RW_FAIL(&job->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    if (job->task->client->link == NULL) {
        session->detached_at_ns = rw_clock_now_ns();
    }
    task->work = begin_child;
    task->context = job;
    task->finish = finish_child;
    job->waiting++;
    rw_mailbox_push(&session->mailbox, &task->note.item);
    rw_worker_pool_notify(job->host->pool, &session->actor);
    return RW_STATUS_OK;
}

static void start_children(fork_job* job, const rw_pb_Fork* fork) {
    rw_wire_cursor cursor = rw_wire_begin(&fork->names);
    double ttl_s = fork->has_ttl_detached_s ? fork->ttl_detached_s : 60;
    job->waiting = 1; // this function
    for (uint32_t i = 0; i < job->count; i++) {
        char name[64] = "";
        rw_wire_bytes text;
        if (rw_wire_next(&cursor, &text)) {
            rw_wire_copy_text(text, name, sizeof name);
        }
        if (start_child(job, i, name, ttl_s) != RW_STATUS_OK) {
            if (strcmp(job->error.path, "name") == 0) {
                snprintf(job->error.path, sizeof job->error.path, "names[%u]", i);
            }
            break;
        }
    }
    if (--job->waiting == 0) {
        answer_job(job);
    }
}

bool rw_commands_snapshot_finish_fork(rw_task* task) {
    fork_job* job = task->context;
    if (job == NULL) {
        return true; // refused
    }
    if (task->status != RW_STATUS_OK) {
        rw_buffer_finish(&job->bytes);
        rw_alloc_free(&job->host->alloc, job);
        task->context = NULL;
        return true;
    }
    rw_arena arena;
    rw_arena_init(&arena, &job->host->alloc);
    rw_pb_Request request;
    if (rw_message_decode_request(task->bytes, task->size_bytes, &arena, &request, &job->error) ==
        RW_STATUS_OK) {
        start_children(job, &request.command.fork);
    } else {
        answer_job(job);
    }
    rw_arena_finish(&arena);
    return false;
}
