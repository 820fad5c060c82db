#include "server/session/session_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/session/host.h"
#include "solvers/base/check.h"

void rw_session_table_init(rw_session_table* table, rw_host* host, int64_t limit) {
    *table = (rw_session_table){.host = host, .next_name = 1};
    rw_id_pool_init(&table->ids, &host->alloc);
    rw_quota_init(&table->quota, "sessions", limit);
}

void rw_session_table_finish(rw_session_table* table) {
    RW_ASSERT(table->count == 0);
    rw_id_pool_finish(&table->ids);
    rw_alloc_free(&table->host->alloc, table->items);
    rw_alloc_free(&table->host->alloc, table->names);
}

// ---- Names ----

static uint32_t hash_name(const char* name) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return hash;
}

static bool is_name(const char* name) {
    size_t size = strlen(name);
    return size >= 1 && size <= 63 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-") ==
               size;
}

static void put_name(rw_session** names, uint32_t capacity, rw_session* session) {
    uint32_t at = hash_name(session->name) & (capacity - 1);
    while (names[at] != NULL) {
        at = (at + 1) & (capacity - 1);
    }
    names[at] = session;
}

// Keeps the table at most half full, with room for one more.
static rw_status grow_names(rw_session_table* table) {
    if ((uint32_t)(table->count + 1) * 2 <= table->name_capacity) {
        return RW_STATUS_OK;
    }
    uint32_t capacity = table->name_capacity > 0 ? 2 * table->name_capacity : 64;
    rw_session** names = rw_alloc_array(&table->host->alloc, capacity, sizeof(rw_session*));
    if (names == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    for (int32_t i = 0; i < table->count; i++) {
        put_name(names, capacity, table->items[i]);
    }
    rw_alloc_free(&table->host->alloc, table->names);
    table->names = names;
    table->name_capacity = capacity;
    return RW_STATUS_OK;
}

static uint32_t find_name(const rw_session_table* table, const char* name) {
    uint32_t at = hash_name(name) & (table->name_capacity - 1);
    while (table->names[at] != NULL && strcmp(table->names[at]->name, name) != 0) {
        at = (at + 1) & (table->name_capacity - 1);
    }
    return at;
}

rw_session* rw_session_table_find_name(const rw_session_table* table, const char* name) {
    return table->name_capacity > 0 ? table->names[find_name(table, name)] : NULL;
}

static void take_name(rw_session_table* table, const rw_session* session) {
    uint32_t mask = table->name_capacity - 1;
    uint32_t hole = find_name(table, session->name);
    RW_ASSERT(table->names[hole] == session);
    // Moves the followers of the run back, so that no probe ends at the hole too early.
    for (uint32_t at = (hole + 1) & mask; table->names[at] != NULL; at = (at + 1) & mask) {
        uint32_t home = hash_name(table->names[at]->name) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->names[hole] = table->names[at];
            hole = at;
        }
    }
    table->names[hole] = NULL;
}

// ---- Sessions ----

static rw_status reserve(rw_session_table* table, rw_error* error) {
    rw_alloc* alloc = &table->host->alloc;
    if (grow_names(table) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    if (table->count == table->capacity) {
        int32_t capacity = table->capacity > 0 ? 2 * table->capacity : 16;
        rw_session** items =
            rw_alloc_resize(alloc, table->items, (size_t)capacity * sizeof(rw_session*));
        if (items == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "out of memory");
        }
        table->items = items;
        table->capacity = capacity;
    }
    return RW_STATUS_OK;
}

static void choose_name(rw_session_table* table, char name[64]) {
    do {
        snprintf(name, 64, "session-%" PRIu64, table->next_name++);
    } while (rw_session_table_find_name(table, name) != NULL);
}

rw_status rw_session_table_add(rw_session_table* table, const char* name, rw_session** session,
                               rw_error* error) {
    char chosen[64];
    if (name[0] == '\0') {
        choose_name(table, chosen);
        name = chosen;
    }
    if (!is_name(name)) {
        RW_FAIL(error, INVALID_ARGUMENT, "name", "must match [A-Za-z0-9_.:-]{1,63}");
    }
    if (rw_session_table_find_name(table, name) != NULL) {
        RW_FAIL(error, ALREADY_EXISTS, "name", "there is a session \"%s\"", name);
    }
    RW_TRY(reserve(table, error));
    RW_TRY(rw_quota_take(&table->quota, error));
    rw_id id = rw_id_pool_add(&table->ids, table->count);
    *session = id != RW_ID_NONE ? rw_session_create(table->host, name, id) : NULL;
    if (*session == NULL) {
        if (id != RW_ID_NONE) {
            rw_id_pool_remove(&table->ids, id);
        }
        rw_quota_give(&table->quota);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "out of memory");
    }
    (*session)->session_index = table->count;
    (*session)->is_listed = true;
    put_name(table->names, table->name_capacity, *session);
    table->items[table->count++] = *session;
    rw_metrics_add(&table->host->metrics, RW_METRICS_sessions, 1);
    rw_metrics_add(&table->host->metrics, RW_METRICS_sessions_total, 1);
    return RW_STATUS_OK;
}

void rw_session_table_remove(rw_session_table* table, rw_session* session) {
    if (!session->is_listed) {
        return;
    }
    session->is_listed = false;
    take_name(table, session);
    rw_id_pool_remove(&table->ids, session->id);
    for (int32_t i = session->session_index + 1; i < table->count; i++) {
        table->items[i - 1] = table->items[i];
        table->items[i - 1]->session_index = i - 1;
        rw_id_pool_move(&table->ids, table->items[i - 1]->id, i - 1);
    }
    table->count--;
    rw_quota_give(&table->quota);
    rw_metrics_add(&table->host->metrics, RW_METRICS_sessions, -1);
    rw_session_drop(session);
}

rw_session* rw_session_table_find(const rw_session_table* table, rw_id id) {
    int32_t index = rw_id_pool_find(&table->ids, id);
    return index >= 0 ? table->items[index] : NULL;
}
