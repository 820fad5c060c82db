// All sessions, by id, by name, in creation order. Loop thread.
#pragma once

#include "server/session/quota.h"
#include "server/session/session.h"
#include "solvers/base/id_pool.h"

typedef struct rw_session_table {
    rw_host* host;
    rw_id_pool ids; // id -> index into `items`
    rw_session** items; // in creation order
    int32_t count, capacity;
    rw_session** names; // hashed by name, open addressing
    uint32_t name_capacity;
    uint64_t next_name; // for names chosen by the server
    rw_quota quota;
} rw_session_table;

void rw_session_table_init(rw_session_table* table, rw_host* host, int64_t limit);

// All sessions must be gone.
void rw_session_table_finish(rw_session_table* table);

// Adds a session without a world under `name` ("" = chosen). INVALID_ARGUMENT (`name`),
// ALREADY_EXISTS, RESOURCE_EXHAUSTED.
rw_status rw_session_table_add(rw_session_table* table, const char* name, rw_session** session,
                               rw_error* error);

// Takes a session out; its id answers nothing for ever after. Gives the table's reference back.
void rw_session_table_remove(rw_session_table* table, rw_session* session);

// NULL when there is none.
rw_session* rw_session_table_find(const rw_session_table* table, rw_id id);
rw_session* rw_session_table_find_name(const rw_session_table* table, const char* name);
