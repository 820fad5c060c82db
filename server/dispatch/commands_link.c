// The connection itself: Hello, Ping, Cancel, Stats, blobs.
#include <string.h>

#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/log.h"
#include "server/session/host.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

enum { MAJOR = 1, MINOR = 0, MAX_OPEN_REQUESTS = 1024, MAX_BATCH = 4096, MAX_UNSENT = 1 << 20 };

static const char BUILD[] = "C17, "
#ifdef __VERSION__
                            __VERSION__ ", "
#endif
#ifdef NDEBUG
                            "no asserts"
#else
                            "asserts"
#endif
    ;

static void fill_limits(const rw_config* config, rw_pb_HelloResult_Limits* limits) {
    limits->max_message = (uint64_t)config->max_message_bytes;
    limits->max_open_requests = MAX_OPEN_REQUESTS;
    limits->max_unsent_bytes = MAX_UNSENT;
    limits->max_sessions = (uint32_t)config->max_sessions;
    limits->max_session_bytes = (uint64_t)config->session_memory_bytes;
    limits->max_upload_bytes = (uint64_t)config->max_upload_bytes;
    limits->max_batch = MAX_BATCH;
}

rw_status rw_commands_link_hello(rw_command* command) {
    const rw_pb_Hello* hello = &command->request->command.hello;
    rw_client* client = command->client;
    rw_host* host = command->host;
    if (hello->major != MAJOR) {
        rw_metrics_add(&host->metrics, RW_METRICS_hello_refused_total, 1);
        RW_FAIL(command->error, FAILED_PRECONDITION, "major",
                "this server speaks ropewalk %d.%d, the client %u.%u", MAJOR, MINOR, hello->major,
                hello->minor);
    }
    if (host->config->token[0] != '\0' && !rw_config_token_matches(host->config, hello->token)) {
        rw_metrics_add(&host->metrics, RW_METRICS_hello_refused_total, 1);
        RW_LOG(WARN, "hello_refused", RW_LOG_FIELD_TEXT("client", hello->client_name),
               RW_LOG_FIELD_TEXT("reason", "token"));
        RW_FAIL(command->error, UNAUTHENTICATED, "token", "%s",
                hello->token[0] == '\0' ? "this server asks for a token" : "wrong token");
    }
    client->said_hello = true;
    memcpy(client->name, hello->client_name, sizeof client->name);
    RW_LOG(DEBUG, "hello", RW_LOG_FIELD_NUMBER("connection", client->id),
           RW_LOG_FIELD_TEXT("client", client->name));

    rw_pb_HelloResult* result = &command->response->result.hello;
    command->response->which_result = rw_pb_Response_hello_tag;
    result->major = MAJOR;
    result->minor = MINOR;
    strncpy(result->server_version, RW_VERSION, sizeof result->server_version - 1);
    result->features = rw_pb_HelloResult_Feature_DAE | rw_pb_HelloResult_Feature_XPBD |
                       rw_pb_HelloResult_Feature_SCR;
    result->has_limits = true;
    fill_limits(host->config, &result->limits);
    result->connection_id = client->id;
    strncpy(result->build, BUILD, sizeof result->build - 1);
    return RW_STATUS_OK;
}

rw_status rw_commands_link_ping(rw_command* command) {
    command->response->which_result = rw_pb_Response_ping_tag;
    command->response->result.ping.payload = command->request->command.ping.payload;
    command->response->result.ping.server_time_ns = (uint64_t)rw_clock_now_ns();
    return RW_STATUS_OK;
}

rw_status rw_commands_link_cancel(rw_command* command) {
    const rw_pb_Cancel* cancel = &command->request->command.cancel;
    rw_client* client = command->client;
    if (cancel->connection_id != 0) {
        // One token, one owner: any connection of this server may cancel for another.
        client = rw_host_find_client(command->host, cancel->connection_id);
        if (client == NULL) {
            RW_FAIL(command->error, NOT_FOUND, "connection_id", "no connection %llu",
                    (unsigned long long)cancel->connection_id);
        }
    }
    rw_task* task = rw_client_find_open(client, cancel->request_id);
    if (task == NULL || task == command->task) {
        RW_FAIL(command->error, NOT_FOUND, "request_id", "request %llu is not open",
                (unsigned long long)cancel->request_id);
    }
    rw_dispatch_cancel(task);
    return RW_STATUS_OK;
}

// ---- Stats ----

typedef struct stats_list {
    rw_host* host;
    rw_session* session;
} stats_list;

static const struct {
    const char* name;
    const char* unit;
} SESSION_STATS[] = {{"step", "1"},          {"time", "s"},       {"memory_bytes", "bytes"},
                     {"memory_peak_bytes", "bytes"}, {"clients", "1"}, {"step_cost", "s"},
                     {"lost_steps", "1"}};

static double session_value(rw_session* session, uint32_t index) {
    switch (index) {
    case 0: return (double)atomic_load_explicit(&session->at_step, memory_order_relaxed);
    case 1: return rw_session_time(session);
    case 2:
        return (double)atomic_load_explicit(&session->alloc.used_bytes, memory_order_relaxed);
    case 3:
        return (double)atomic_load_explicit(&session->alloc.peak_bytes, memory_order_relaxed);
    case 4: return session->client_count;
    case 5:
        return 1e-9 *
               (double)atomic_load_explicit(&session->step_cost_ns, memory_order_relaxed);
    default: return (double)atomic_load_explicit(&session->lost_steps, memory_order_relaxed);
    }
}

static bool fill_counter(void* context, uint32_t index, void* item) {
    stats_list* list = context;
    rw_pb_StatsResult_Counter* counter = item;
    if (list->session != NULL) {
        strncpy(counter->name, SESSION_STATS[index].name, sizeof counter->name - 1);
        strncpy(counter->unit, SESSION_STATS[index].unit, sizeof counter->unit - 1);
        counter->value = session_value(list->session, index);
    } else {
        rw_metrics_name name = (rw_metrics_name)index;
        strncpy(counter->name, "ropewalk_", sizeof counter->name - 1);
        strncat(counter->name, rw_metrics_title(name),
                sizeof counter->name - strlen(counter->name) - 1);
        strncpy(counter->unit, rw_metrics_unit(name), sizeof counter->unit - 1);
        counter->value = (double)rw_metrics_get(&list->host->metrics, name);
    }
    return true;
}

rw_status rw_commands_link_stats(rw_command* command) {
    stats_list* list = rw_arena_get(command->arena, sizeof *list);
    if (list == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    list->host = command->host;
    if (command->task->session_id != 0) {
        list->session =
            rw_session_table_find(&command->host->sessions, command->task->session_id);
        if (list->session == NULL) {
            RW_FAIL(command->error, NOT_FOUND, "session", "no session %llu",
                    (unsigned long long)command->task->session_id);
        }
    } else {
        rw_host_measure(command->host);
    }
    command->response->which_result = rw_pb_Response_stats_tag;
    command->response->result.stats.counters = rw_wire_from_fill(
        fill_counter, list, sizeof(rw_pb_StatsResult_Counter),
        list->session != NULL ? RW_COUNT_OF(SESSION_STATS) : (size_t)RW_METRICS_COUNT);
    return RW_STATUS_OK;
}

// ---- Blobs: on the client's actor ----

static uint64_t chunk_bytes(const rw_command* command) {
    uint64_t most = (uint64_t)command->host->config->max_message_bytes / 2;
    return most < (1u << 20) ? most : 1u << 20;
}

rw_status rw_commands_link_begin_upload(rw_command* command) {
    const rw_pb_BeginUpload* begin = &command->request->command.begin_upload;
    rw_pb_BeginUploadResult* result = &command->response->result.begin_upload;
    RW_TRY(rw_blob_store_begin(command->client->blobs, begin->bytes, begin->crc, &result->blob,
                               command->error));
    command->response->which_result = rw_pb_Response_begin_upload_tag;
    result->max_chunk = chunk_bytes(command);
    return RW_STATUS_OK;
}

rw_status rw_commands_link_upload_chunk(rw_command* command) {
    const rw_pb_UploadChunk* chunk = &command->request->command.upload_chunk;
    rw_pb_UploadChunkResult* result = &command->response->result.upload_chunk;
    RW_TRY(rw_blob_store_add(command->client->blobs, chunk->blob, chunk->offset, chunk->data.data,
                             chunk->data.size, &result->received, &result->complete,
                             command->error));
    command->response->which_result = rw_pb_Response_upload_chunk_tag;
    return RW_STATUS_OK;
}

rw_status rw_commands_link_download_chunk(rw_command* command) {
    const rw_pb_DownloadChunk* chunk = &command->request->command.download_chunk;
    rw_blob_store* blobs = command->client->blobs;
    rw_blob* blob;
    RW_TRY(rw_blob_store_find_download(blobs, chunk->blob, &blob, command->error));
    if (chunk->offset >= blob->size_bytes) {
        uint64_t size = blob->size_bytes;
        rw_blob_store_release(blobs, blob);
        RW_FAIL(command->error, OUT_OF_RANGE, "offset", "the blob has %llu bytes",
                (unsigned long long)size);
    }
    uint64_t most = (uint64_t)command->host->config->max_message_bytes / 2;
    uint64_t left = blob->size_bytes - chunk->offset;
    uint64_t size = chunk->bytes != 0 && chunk->bytes < most ? chunk->bytes : most;
    size = size < left ? size : left;
    command->response->which_result = rw_pb_Response_download_chunk_tag;
    command->response->result.download_chunk.data =
        (rw_wire_bytes){blob->bytes + chunk->offset, size};
    rw_dispatch_reply(command->host, command->task, command->response);
    command->is_answered = true;
    bool was_last = size == left;
    rw_blob_store_release(blobs, blob);
    if (was_last) {
        rw_blob_store_remove(blobs, chunk->blob, command->error);
    }
    return RW_STATUS_OK;
}

rw_status rw_commands_link_release_blob(rw_command* command) {
    return rw_blob_store_remove(command->client->blobs,
                                command->request->command.release_blob.blob, command->error);
}
