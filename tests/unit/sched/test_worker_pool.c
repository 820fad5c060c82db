#include "tests/support/rw_test.h"

#include <pthread.h>
#include <unistd.h>

#include "solvers/sched/worker_pool.h"

static rw_alloc account;

static int set_up(void** state) {
    (void)state;
    rw_alloc_init(&account, 0);
    return 0;
}

static int tear_down(void** state) {
    (void)state;
    rw_alloc_finish(&account);
    return 0;
}

// ---- Actors ----

typedef struct counter_actor {
    rw_actor actor;
    rw_worker_pool* pool;
    atomic_int inside;   // threads inside run now
    atomic_int overlaps; // times that two were inside
    atomic_int mail;     // work left
    atomic_int done;     // work done
    int plain;           // guarded by nothing but the actor promise (TSan looks at it)
    int slices_wanted;
} counter_actor;

static rw_actor_verdict count_mail(rw_actor* actor) {
    counter_actor* self = (counter_actor*)actor;
    if (atomic_fetch_add(&self->inside, 1) != 0) {
        atomic_fetch_add(&self->overlaps, 1);
    }
    int mail = atomic_exchange(&self->mail, 0);
    self->plain += mail;
    atomic_fetch_add(&self->done, mail);
    atomic_fetch_sub(&self->inside, 1);
    return RW_ACTOR_IDLE;
}

static void* notify_often(void* argument) {
    counter_actor* self = argument;
    for (int i = 0; i < 20000; i++) {
        atomic_fetch_add(&self->mail, 1);
        rw_worker_pool_notify(self->pool, &self->actor);
    }
    return NULL;
}

static void actor_is_run_by_one_thread_and_loses_no_notice(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 4);
    assert_non_null(pool);
    counter_actor self = {.pool = pool};
    rw_worker_pool_init_actor(&self.actor, count_mail);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, notify_often, &self);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    rw_worker_pool_destroy(pool);
    assert_int_equal(atomic_load(&self.overlaps), 0);
    assert_int_equal(atomic_load(&self.done), 60000);
    assert_int_equal(self.plain, 60000);
}

static void claimed_actor_is_not_run_by_workers_until_finished(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 2);
    counter_actor self = {.pool = pool};
    rw_worker_pool_init_actor(&self.actor, count_mail);
    assert_true(rw_worker_pool_claim(&self.actor));
    assert_false(rw_worker_pool_claim(&self.actor));
    atomic_store(&self.mail, 5);
    rw_worker_pool_notify(pool, &self.actor);
    usleep(20000);
    assert_int_equal(atomic_load(&self.done), 0);
    rw_worker_pool_finish(pool, &self.actor, RW_ACTOR_IDLE); // mail came meanwhile: queued now
    rw_worker_pool_destroy(pool);
    assert_int_equal(atomic_load(&self.done), 5);
}

static rw_actor_verdict park_first(rw_actor* actor) {
    counter_actor* self = (counter_actor*)actor;
    return atomic_fetch_add(&self->done, 1) == 0 ? RW_ACTOR_PARKED : RW_ACTOR_IDLE;
}

static void parked_actor_wakes_by_unpark_only(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 2);
    counter_actor self = {.pool = pool};
    rw_worker_pool_init_actor(&self.actor, park_first);
    rw_worker_pool_notify(pool, &self.actor);
    for (int i = 0; i < 1000 && atomic_load(&self.done) == 0; i++) {
        usleep(1000);
    }
    usleep(5000);
    rw_worker_pool_notify(pool, &self.actor);
    usleep(20000);
    assert_int_equal(atomic_load(&self.done), 1);
    rw_worker_pool_unpark(pool, &self.actor);
    rw_worker_pool_destroy(pool);
    assert_int_equal(atomic_load(&self.done), 2);
}

static rw_actor_verdict unpark_self(rw_actor* actor) {
    counter_actor* self = (counter_actor*)actor;
    if (atomic_fetch_add(&self->done, 1) == 0) {
        rw_worker_pool_unpark(self->pool, actor); // the answer came before we slept
        return RW_ACTOR_PARKED;
    }
    return RW_ACTOR_IDLE;
}

static void unpark_before_parking_is_not_lost(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 1);
    counter_actor self = {.pool = pool};
    rw_worker_pool_init_actor(&self.actor, unpark_self);
    rw_worker_pool_notify(pool, &self.actor);
    rw_worker_pool_destroy(pool);
    assert_int_equal(atomic_load(&self.done), 2);
}

#define TRACE_CAPACITY 300
static int trace[TRACE_CAPACITY];
static atomic_int trace_count;

static rw_actor_verdict run_slices(rw_actor* actor) {
    counter_actor* self = (counter_actor*)actor;
    int at = atomic_fetch_add(&trace_count, 1);
    trace[at] = self->plain;
    return --self->slices_wanted > 0 ? RW_ACTOR_MORE : RW_ACTOR_IDLE;
}

static atomic_bool gate_open;

static rw_actor_verdict wait_at_gate(rw_actor* actor) {
    (void)actor;
    while (!atomic_load(&gate_open)) {
        usleep(100);
    }
    return RW_ACTOR_IDLE;
}

static void busy_actors_take_turns(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 1);
    atomic_store(&trace_count, 0);
    atomic_store(&gate_open, false);
    rw_actor gate; // holds the only worker until all three wait
    rw_worker_pool_init_actor(&gate, wait_at_gate);
    rw_worker_pool_notify(pool, &gate);
    counter_actor actors[3] = {0};
    for (int i = 0; i < 3; i++) {
        rw_worker_pool_init_actor(&actors[i].actor, run_slices);
        actors[i].plain = i;
        actors[i].slices_wanted = 100;
        rw_worker_pool_notify(pool, &actors[i].actor);
    }
    atomic_store(&gate_open, true);
    rw_worker_pool_destroy(pool);
    assert_int_equal(atomic_load(&trace_count), TRACE_CAPACITY);
    for (int i = 0; i < TRACE_CAPACITY; i++) {
        assert_int_equal(trace[i], i % 3);
    }
}

// ---- parallel_for ----

typedef struct loop_actor {
    rw_actor actor;
    rw_parallel parallel;
    int rounds;
    bool nested;
    int bad;
} loop_actor;

#define BLOCKS 64
typedef struct loop_data {
    atomic_int hits[BLOCKS];
    double values[BLOCKS]; // each written by its block, read by the caller
    rw_parallel* parallel;
    bool nested;
} loop_data;

static void inner_block(void* context, int32_t block) {
    (void)block;
    atomic_fetch_add((atomic_int*)context, 1);
}

static void one_block(void* context, int32_t block) {
    loop_data* data = context;
    atomic_fetch_add(&data->hits[block], 1);
    data->values[block] = 3.0 * block;
    if (data->nested) {
        atomic_int inner = 0;
        rw_parallel_for(data->parallel, 5, inner_block, &inner);
        if (atomic_load(&inner) != 5) {
            data->values[block] = -1;
        }
    }
}

static rw_actor_verdict run_loops(rw_actor* actor) {
    loop_actor* self = (loop_actor*)actor;
    for (int round = 0; round < self->rounds; round++) {
        loop_data data = {.parallel = &self->parallel, .nested = self->nested};
        rw_parallel_for(&self->parallel, BLOCKS, one_block, &data);
        for (int i = 0; i < BLOCKS; i++) {
            if (atomic_load(&data.hits[i]) != 1 || data.values[i] != 3.0 * i) {
                self->bad++;
            }
        }
    }
    return RW_ACTOR_IDLE;
}

static void run_loop_actors(int workers, int actors, bool nested) {
    rw_worker_pool* pool = rw_worker_pool_create(&account, workers);
    assert_non_null(pool);
    assert_int_equal(rw_worker_pool_count(pool), workers);
    loop_actor all[6] = {0};
    for (int i = 0; i < actors; i++) {
        all[i].parallel.pool = pool;
        all[i].rounds = 400;
        all[i].nested = nested;
        rw_worker_pool_init_actor(&all[i].actor, run_loops);
        rw_worker_pool_notify(pool, &all[i].actor);
    }
    rw_worker_pool_destroy(pool);
    for (int i = 0; i < actors; i++) {
        assert_int_equal(all[i].bad, 0);
    }
}

static void parallel_for_runs_each_block_once_for_any_worker_count(void** state) {
    (void)state;
    int counts[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        run_loop_actors(counts[i], 1, false);
    }
}

static void parallel_for_of_many_actors_at_once_is_whole(void** state) {
    (void)state;
    run_loop_actors(3, 6, false);
}

static void nested_parallel_for_runs_serially(void** state) {
    (void)state;
    run_loop_actors(3, 2, true);
}

static void where_am_i(void* context, int32_t block) {
    (void)block;
    pthread_t* threads = context;
    threads[block] = pthread_self();
}

static void parallel_for_outside_the_pool_is_serial_and_in_order(void** state) {
    (void)state;
    rw_worker_pool* pool = rw_worker_pool_create(&account, 3);
    rw_parallel parallel = {.pool = pool};
    pthread_t threads[16];
    assert_false(rw_worker_pool_is_here(pool));
    rw_parallel_for(&parallel, 16, where_am_i, threads);
    for (int i = 0; i < 16; i++) {
        assert_true(pthread_equal(threads[i], pthread_self()));
    }
    rw_parallel_for(NULL, 16, where_am_i, threads);
    rw_worker_pool_destroy(pool);
}

static void pool_reports_exhausted_memory(void** state) {
    (void)state;
    rw_alloc small;
    rw_alloc_init(&small, 16);
    assert_null(rw_worker_pool_create(&small, 2));
    rw_alloc_finish(&small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actor_is_run_by_one_thread_and_loses_no_notice),
        cmocka_unit_test(claimed_actor_is_not_run_by_workers_until_finished),
        cmocka_unit_test(parked_actor_wakes_by_unpark_only),
        cmocka_unit_test(unpark_before_parking_is_not_lost),
        cmocka_unit_test(busy_actors_take_turns),
        cmocka_unit_test(parallel_for_runs_each_block_once_for_any_worker_count),
        cmocka_unit_test(parallel_for_of_many_actors_at_once_is_whole),
        cmocka_unit_test(nested_parallel_for_runs_serially),
        cmocka_unit_test(parallel_for_outside_the_pool_is_serial_and_in_order),
        cmocka_unit_test(pool_reports_exhausted_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
