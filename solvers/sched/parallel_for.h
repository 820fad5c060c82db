// Data-parallel loops inside a step. Blocks are cut by the DATA, never by the number of workers,
// so results do not depend on it; reductions are made by the caller in block order.
// The caller works on its own blocks until none is left, then waits only for blocks already begun.
// No nesting. On a thread without helpers (the loop thread, tests) it runs serially.
#pragma once

#include <stdint.h>

typedef struct rw_worker_pool rw_worker_pool; // worker_pool.h

typedef struct rw_parallel {
    rw_worker_pool* pool; // NULL: serial
} rw_parallel;

// Calls `function(context, block)` once for every block in [0, block_count), in any order, on any
// thread, and returns when all are done. `parallel` may be NULL: serial.
void rw_parallel_for(rw_parallel* parallel, int32_t block_count,
                     void (*function)(void* context, int32_t block), void* context);
