// Limits of the whole server, counted: sessions, connections. Loop thread.
#pragma once

#include <stdint.h>

#include "solvers/base/status.h"

typedef struct rw_quota {
    const char* what; // "sessions", for messages
    int64_t used;
    int64_t limit;
} rw_quota;

void rw_quota_init(rw_quota* quota, const char* what, int64_t limit);

// Takes one. RESOURCE_EXHAUSTED names the limit.
rw_status rw_quota_take(rw_quota* quota, rw_error* error);

void rw_quota_give(rw_quota* quota);
