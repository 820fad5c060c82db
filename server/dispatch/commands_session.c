// Lives of sessions: CreateSession, AttachSession, DetachSession, CloseSession, ListSessions.
#include <math.h>
#include <string.h>

#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "server/log.h"
#include "server/session/host.h"
#include "solvers/base/glob.h"

// ---- CreateSession ----

static rw_status make_world(rw_session* session, rw_error* error) {
    rw_world_config config = rw_session_world_config(session);
    RW_TRY(rw_world_create(&config, &session->world, error));
    session->publisher = rw_publisher_create(session);
    if (session->publisher == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    session->seen_epoch = rw_world_epoch(session->world);
    return RW_STATUS_OK;
}

// In the session: its first task makes the world.
static void begin_session(rw_session* session, rw_task* task) {
    rw_error error = {0};
    if (make_world(session, &error) != RW_STATUS_OK) {
        rw_session_shut(session);
        rw_dispatch_reply_error(session->host, task, &error);
    }
}

static bool is_ttl(double ttl_s) {
    return ttl_s == -1 || (ttl_s >= 0 && isfinite(ttl_s));
}

rw_status rw_commands_session_create(rw_command* command) {
    const rw_pb_CreateSession* create = &command->request->command.create_session;
    rw_task* task = command->task;
    rw_session* session;
    if (create->has_ttl_detached_s && !is_ttl(create->ttl_detached_s)) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "ttl_detached_s", "must be >= 0 or -1, got %g",
                create->ttl_detached_s);
    }
    RW_TRY(rw_session_table_add(&command->host->sessions, create->name, &session,
                                command->error));
    session->ttl_detached_s = create->has_ttl_detached_s ? create->ttl_detached_s : 60;
    session->on_control_lost = create->on_control_lost;
    if (rw_client_attach(command->client, session, true) != RW_STATUS_OK) {
        session->world = NULL;
        rw_session_table_remove(&command->host->sessions, session);
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    task->session = session;
    rw_session_hold(session);
    task->work = begin_session;
    command->is_deferred = true;
    rw_mailbox_push(&session->mailbox, &task->note.item);
    rw_worker_pool_notify(command->host->pool, &session->actor);
    return RW_STATUS_OK;
}

static void reply_info(rw_task* task, rw_session* session) {
    rw_pb_Response response = rw_pb_Response_init_zero;
    response.request_id = task->request_id;
    response.which_result = rw_pb_Response_session_tag;
    rw_session_describe(session, &response.result.session);
    rw_dispatch_reply(session->host, task, &response);
}

void rw_commands_session_finish_create(rw_task* task) {
    rw_session* session = task->session;
    if (session == NULL) {
        return; // refused before there was one
    }
    if (task->status != RW_STATUS_OK) {
        rw_host_session_closed(session->host, session, "no memory for it");
        return;
    }
    RW_LOG(INFO, "session_created", RW_LOG_FIELD_TEXT("name", session->name),
           RW_LOG_FIELD_NUMBER("id", session->id));
    reply_info(task, session);
}

// ---- AttachSession, DetachSession ----

rw_status rw_commands_session_attach(rw_command* command) {
    const rw_pb_AttachSession* attach = &command->request->command.attach_session;
    rw_client* client = command->client;
    bool has_name = attach->name[0] != '\0';
    if (has_name == (attach->id != 0)) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "name", "give exactly one of name and id");
    }
    const rw_session_table* table = &command->host->sessions;
    rw_session* session = has_name ? rw_session_table_find_name(table, attach->name)
                                   : rw_session_table_find(table, attach->id);
    if (session == NULL || session->is_closing) {
        if (has_name) {
            RW_FAIL(command->error, NOT_FOUND, "name", "no session \"%s\"", attach->name);
        }
        RW_FAIL(command->error, NOT_FOUND, "id", "no session %llu",
                (unsigned long long)attach->id);
    }
    bool control = attach->role == rw_pb_Role_Kind_CONTROL;
    if (attach->exclusive && !control) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "exclusive", "needs role CONTROL");
    }
    const rw_client_attachment* own = rw_client_find_attachment(client, session);
    int32_t others = session->controller_count - (own != NULL && own->is_control ? 1 : 0);
    if (control && session->exclusive != NULL && session->exclusive != client) {
        RW_FAIL(command->error, FAILED_PRECONDITION, "role",
                "another connection controls \"%s\" exclusively", session->name);
    }
    if (attach->exclusive && others > 0) {
        RW_FAIL(command->error, FAILED_PRECONDITION, "exclusive", "%d others control \"%s\"",
                (int)others, session->name);
    }
    if (rw_client_attach(client, session, control) != RW_STATUS_OK) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    if (attach->exclusive) {
        session->exclusive = client;
    } else if (session->exclusive == client) {
        session->exclusive = NULL;
    }
    command->response->which_result = rw_pb_Response_session_tag;
    rw_session_describe(session, &command->response->result.session);
    return RW_STATUS_OK;
}

rw_status rw_commands_session_detach(rw_command* command) {
    uint64_t id = command->task->session_id;
    rw_session* session = rw_session_table_find(&command->host->sessions, id);
    if (session == NULL || rw_client_find_attachment(command->client, session) == NULL) {
        RW_FAIL(command->error, NOT_FOUND, "session", "not attached to session %llu",
                (unsigned long long)id);
    }
    rw_client_detach(command->client, session);
    return RW_STATUS_OK;
}

// ---- CloseSession ----

rw_status rw_commands_session_close(rw_command* command) {
    rw_session_shut(command->session);
    command->world = NULL;
    return RW_STATUS_OK;
}

void rw_commands_session_finish_close(rw_task* task) {
    if (task->session != NULL && task->status == RW_STATUS_OK) {
        rw_host_session_closed(task->client->host, task->session, "closed by a client");
    }
}

// ---- ListSessions ----

typedef struct session_list {
    rw_session** items;
    uint32_t count;
} session_list;

static bool fill_info(void* context, uint32_t index, void* item) {
    const session_list* list = context;
    rw_session_describe(list->items[index], item);
    return true;
}

rw_status rw_commands_session_list(rw_command* command) {
    const char* glob = command->request->command.list_sessions.name_glob;
    const rw_session_table* table = &command->host->sessions;
    session_list* list = rw_arena_get(command->arena, sizeof *list);
    rw_session** items =
        rw_arena_array(command->arena, (size_t)table->count + 1, sizeof(rw_session*));
    if (list == NULL || items == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    list->items = items;
    for (int32_t i = 0; i < table->count; i++) {
        if (glob[0] == '\0' || rw_glob_matches(glob, strlen(glob), table->items[i]->name, '\0')) {
            items[list->count++] = table->items[i];
        }
    }
    command->response->which_result = rw_pb_Response_list_sessions_tag;
    command->response->result.list_sessions.sessions =
        rw_wire_from_fill(fill_info, list, sizeof(rw_pb_SessionInfo), list->count);
    return RW_STATUS_OK;
}
