#include "solvers/sched/parallel_for.h"

#include <stddef.h>

#include "solvers/sched/worker_pool.h"

void rw_parallel_for(rw_parallel* parallel, int32_t block_count,
                     void (*function)(void* context, int32_t block), void* context) {
    if (parallel != NULL && parallel->pool != NULL) {
        rw_worker_pool_run_blocks(parallel->pool, block_count, function, context);
        return;
    }
    for (int32_t block = 0; block < block_count; block++) {
        function(context, block);
    }
}
