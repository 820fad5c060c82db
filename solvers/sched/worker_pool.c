#include "solvers/sched/worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "solvers/base/check.h"
#include "solvers/base/clock.h"

// Bits of rw_actor.state. 0 = idle.
enum {
    OWNED = 1,  // queued or being run
    MAIL = 2,   // notified since the run began
    PARKED = 4, // waits for unpark
    WAKE = 8,   // unparked since the run began
};

// How long a helper looks for the next parallel_for before it sleeps: the colours of one sweep
// follow each other within microseconds, a wake-up costs 5 to 15.
#define HELPER_SPIN_NS 30000
// How long a caller looks for its helpers' last blocks before it sleeps.
#define CALLER_SPIN_COUNT 2000

// One parallel_for, on the caller's stack. Guarded by the pool's lock but for the atomics.
typedef struct job {
    struct job* next;
    void (*function)(void* context, int32_t block);
    void* context;
    int32_t block_count;
    atomic_int next_block; // relaxed: it only hands out numbers; the lock publishes the data
    atomic_int helpers;    // threads inside; changed under the lock, read by the spinning caller
} job;

typedef struct worker {
    rw_worker_pool* pool;
    pthread_t thread;
    _Atomic uint64_t busy_ns; // relaxed: a counter
} worker;

struct rw_worker_pool {
    rw_alloc* alloc;
    pthread_mutex_t lock;
    pthread_cond_t work;     // an actor was queued, a job opened, or stop
    pthread_cond_t job_done; // a job lost its last helper
    rw_actor* first;         // run queue, FIFO: that is what makes slices fair
    rw_actor* last;
    job* jobs;
    int32_t queue_length;
    int32_t sleeping;
    bool stop;
    // Jobs opened so far. Release on opening, acquire by spinning helpers; a stale value only costs
    // a helper's spin or one look under the lock.
    _Atomic uint64_t job_sequence;
    // Mirror of `first != NULL`, so that spinning helpers see queued actors. Relaxed: a hint.
    atomic_bool has_actors;
    int32_t worker_count;
    worker workers[];
};

static _Thread_local rw_worker_pool* pool_here; // the pool whose thread this is
static _Thread_local bool inside_job;           // no nesting

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// ---- Blocks ----

static void work_on(job* one) {
    bool was_inside = inside_job;
    inside_job = true;
    for (;;) {
        int32_t block = atomic_fetch_add_explicit(&one->next_block, 1, memory_order_relaxed);
        if (block >= one->block_count) {
            break;
        }
        one->function(one->context, block);
    }
    inside_job = was_inside;
}

// The first job that still has blocks to give. Needs the lock.
static job* find_job(rw_worker_pool* pool) {
    for (job* one = pool->jobs; one != NULL; one = one->next) {
        if (atomic_load_explicit(&one->next_block, memory_order_relaxed) < one->block_count) {
            return one;
        }
    }
    return NULL;
}

static void run_serially(int32_t block_count, void (*function)(void* context, int32_t block),
                         void* context) {
    for (int32_t block = 0; block < block_count; block++) {
        function(context, block);
    }
}

void rw_worker_pool_run_blocks(rw_worker_pool* pool, int32_t block_count,
                               void (*function)(void* context, int32_t block), void* context) {
    if (block_count <= 1 || pool->worker_count <= 1 || pool_here != pool || inside_job) {
        run_serially(block_count, function, context);
        return;
    }
    job one = {.function = function, .context = context, .block_count = block_count};
    atomic_init(&one.next_block, 0);
    atomic_init(&one.helpers, 0);

    pthread_mutex_lock(&pool->lock);
    one.next = pool->jobs;
    pool->jobs = &one;
    atomic_fetch_add_explicit(&pool->job_sequence, 1, memory_order_release);
    int32_t wanted = block_count - 1 < pool->sleeping ? block_count - 1 : pool->sleeping;
    for (int32_t i = 0; i < wanted; i++) {
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);

    work_on(&one);

    // Blocks that helpers have begun are nearly done: look before sleeping. Acquire pairs with the
    // release of a leaving helper, though the lock below would publish the blocks' results anyhow.
    for (int32_t spin = 0; spin < CALLER_SPIN_COUNT; spin++) {
        if (atomic_load_explicit(&one.helpers, memory_order_acquire) == 0) {
            break;
        }
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    job** link = &pool->jobs;
    while (*link != &one) {
        link = &(*link)->next;
    }
    *link = one.next; // nobody can join any more
    while (atomic_load_explicit(&one.helpers, memory_order_relaxed) > 0) {
        pthread_cond_wait(&pool->job_done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

// Helps with one job. Needs the lock and gives it up meanwhile.
static void help(rw_worker_pool* pool, job* one) {
    atomic_fetch_add_explicit(&one->helpers, 1, memory_order_relaxed); // the lock orders it
    pthread_mutex_unlock(&pool->lock);
    work_on(one);
    pthread_mutex_lock(&pool->lock);
    // Release: the spinning caller that reads 0 must see what the blocks wrote.
    if (atomic_fetch_sub_explicit(&one->helpers, 1, memory_order_release) == 1) {
        pthread_cond_broadcast(&pool->job_done);
    }
}

// ---- Actors ----

static void push(rw_worker_pool* pool, rw_actor* actor) {
    pthread_mutex_lock(&pool->lock);
    actor->next = NULL;
    if (pool->last != NULL) {
        pool->last->next = actor;
    } else {
        pool->first = actor;
        atomic_store_explicit(&pool->has_actors, true, memory_order_relaxed);
    }
    pool->last = actor;
    pool->queue_length++;
    bool wake = pool->sleeping > 0;
    pthread_mutex_unlock(&pool->lock);
    if (wake) {
        pthread_cond_signal(&pool->work);
    }
}

// Needs the lock; the queue is not empty.
static rw_actor* pop(rw_worker_pool* pool) {
    rw_actor* actor = pool->first;
    pool->first = actor->next;
    if (pool->first == NULL) {
        pool->last = NULL;
        atomic_store_explicit(&pool->has_actors, false, memory_order_relaxed);
    }
    pool->queue_length--;
    return actor;
}

void rw_worker_pool_init_actor(rw_actor* actor, rw_actor_verdict (*run)(rw_actor* actor)) {
    actor->next = NULL;
    atomic_init(&actor->state, 0);
    actor->run = run;
}

// All changes of `state` are acquire-release: whoever takes an actor over sees everything that its
// last runner and its notifiers wrote before.

void rw_worker_pool_notify(rw_worker_pool* pool, rw_actor* actor) {
    unsigned state = atomic_load_explicit(&actor->state, memory_order_relaxed);
    unsigned next;
    do {
        next = (state & (OWNED | PARKED)) != 0 ? state | MAIL : OWNED;
    } while (!atomic_compare_exchange_weak_explicit(&actor->state, &state, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if ((state & (OWNED | PARKED)) == 0) {
        push(pool, actor);
    }
}

void rw_worker_pool_unpark(rw_worker_pool* pool, rw_actor* actor) {
    unsigned state = atomic_load_explicit(&actor->state, memory_order_relaxed);
    unsigned next;
    do {
        next = (state & OWNED) != 0 ? state | WAKE : OWNED;
    } while (!atomic_compare_exchange_weak_explicit(&actor->state, &state, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if ((state & OWNED) == 0) {
        push(pool, actor);
    }
}

bool rw_worker_pool_claim(rw_actor* actor) {
    unsigned idle = 0;
    return atomic_compare_exchange_strong_explicit(&actor->state, &idle, OWNED,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

void rw_worker_pool_finish(rw_worker_pool* pool, rw_actor* actor, rw_actor_verdict verdict) {
    unsigned state = atomic_load_explicit(&actor->state, memory_order_relaxed);
    unsigned next;
    do {
        bool again = verdict == RW_ACTOR_MORE || (state & WAKE) != 0 ||
                     (verdict == RW_ACTOR_IDLE && (state & MAIL) != 0);
        next = again ? OWNED : verdict == RW_ACTOR_PARKED ? PARKED : 0u;
    } while (!atomic_compare_exchange_weak_explicit(&actor->state, &state, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (next == OWNED) {
        push(pool, actor);
    }
}

bool rw_worker_pool_is_idle(const rw_actor* actor) {
    return atomic_load_explicit(&actor->state, memory_order_acquire) == 0;
}

static void run_actor(rw_worker_pool* pool, rw_actor* actor) {
    // Mail that was left before this point is seen by the run itself.
    atomic_fetch_and_explicit(&actor->state, (unsigned)~(MAIL | WAKE), memory_order_acq_rel);
    rw_worker_pool_finish(pool, actor, actor->run(actor));
}

// ---- Threads ----

// Looks for work without the lock for a moment; what it found, the caller sees under the lock.
static void spin_for_job(rw_worker_pool* pool, uint64_t seen_sequence) {
    int64_t end_ns = rw_clock_now_ns() + HELPER_SPIN_NS;
    do {
        for (int32_t i = 0; i < 64; i++) {
            if (atomic_load_explicit(&pool->job_sequence, memory_order_acquire) != seen_sequence ||
                atomic_load_explicit(&pool->has_actors, memory_order_relaxed)) {
                return;
            }
            relax();
        }
    } while (rw_clock_now_ns() < end_ns);
}

static void* work_loop(void* argument) {
    worker* self = argument;
    rw_worker_pool* pool = self->pool;
    pool_here = pool;
    struct sched_param priority = {0};
    sched_setscheduler(0, SCHED_BATCH, &priority); // best effort: without it all still works
    pthread_setname_np(pthread_self(), "rw-worker");

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        // Sessions come first: helping must not starve them.
        if (pool->first != NULL) {
            rw_actor* actor = pop(pool);
            pthread_mutex_unlock(&pool->lock);
            int64_t begin_ns = rw_clock_now_ns();
            run_actor(pool, actor);
            atomic_fetch_add_explicit(&self->busy_ns, (uint64_t)(rw_clock_now_ns() - begin_ns),
                                      memory_order_relaxed);
            pthread_mutex_lock(&pool->lock);
            continue;
        }
        job* one = find_job(pool);
        if (one != NULL) {
            uint64_t sequence =
                atomic_load_explicit(&pool->job_sequence, memory_order_relaxed);
            int64_t begin_ns = rw_clock_now_ns();
            help(pool, one);
            atomic_fetch_add_explicit(&self->busy_ns, (uint64_t)(rw_clock_now_ns() - begin_ns),
                                      memory_order_relaxed);
            if (pool->first == NULL && find_job(pool) == NULL) {
                pthread_mutex_unlock(&pool->lock);
                spin_for_job(pool, sequence);
                pthread_mutex_lock(&pool->lock);
            }
            continue;
        }
        if (pool->stop) {
            break;
        }
        pool->sleeping++;
        pthread_cond_wait(&pool->work, &pool->lock);
        pool->sleeping--;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int32_t default_count(void) {
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                    ? CPU_COUNT(&allowed)
                    : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 2 ? cores - 1 : 1;
}

rw_worker_pool* rw_worker_pool_create(rw_alloc* alloc, int32_t worker_count) {
    if (worker_count <= 0) {
        worker_count = default_count();
    }
    rw_worker_pool* pool =
        rw_alloc_get(alloc, sizeof *pool + (size_t)worker_count * sizeof(worker));
    if (pool == NULL) {
        return NULL;
    }
    pool->alloc = alloc;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->job_done, NULL);
    atomic_init(&pool->job_sequence, 0);
    atomic_init(&pool->has_actors, false);
    for (int32_t i = 0; i < worker_count; i++) {
        worker* one = &pool->workers[i];
        one->pool = pool;
        atomic_init(&one->busy_ns, 0);
        if (pthread_create(&one->thread, NULL, work_loop, one) != 0) {
            rw_worker_pool_destroy(pool);
            return NULL;
        }
        pthread_mutex_lock(&pool->lock);
        pool->worker_count = i + 1;
        pthread_mutex_unlock(&pool->lock);
    }
    return pool;
}

void rw_worker_pool_destroy(rw_worker_pool* pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    RW_ASSERT(pool->first == NULL && pool->jobs == NULL);
    pthread_cond_destroy(&pool->job_done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    rw_alloc_free(pool->alloc, pool);
}

int32_t rw_worker_pool_count(const rw_worker_pool* pool) {
    return pool->worker_count;
}

bool rw_worker_pool_is_here(const rw_worker_pool* pool) {
    return pool_here == pool;
}

int32_t rw_worker_pool_queue_length(rw_worker_pool* pool) {
    pthread_mutex_lock(&pool->lock);
    int32_t length = pool->queue_length;
    pthread_mutex_unlock(&pool->lock);
    return length;
}

uint64_t rw_worker_pool_busy_ns(const rw_worker_pool* pool) {
    uint64_t sum = 0;
    for (int32_t i = 0; i < pool->worker_count; i++) {
        sum += atomic_load_explicit(&pool->workers[i].busy_ns, memory_order_relaxed);
    }
    return sum;
}
