// The same commands give the same bits for any worker count, and the bits of today are those of the
// golden hashes below. A change of numerics changes the hashes: renew them with the change, and
// say so in CHANGELOG under "Numbers changed".
#include <semaphore.h>

#include "tests/support/rw_test.h"

#include "solvers/base/check.h"
#include "solvers/sched/worker_pool.h"
#include "solvers/world/world.h"
#include "tests/support/rw_world_scenes.h"

#define STEPS 60
#define ROD_COUNT 200

typedef struct run_case {
    const char* name;
    void (*make)(rw_world_scenes* out);
    uint64_t golden;
} run_case;

static void many_rods(rw_world_scenes* out) {
    rw_world_scenes_mixed(out);
    static rw_rod_desc rods[ROD_COUNT];
    static rw_attachment_desc roots[ROD_COUNT];
    for (int i = 0; i < ROD_COUNT; i++) {
        rods[i] = out->rods[i % 3];
        rods[i].elements = (uint32_t)(5 + i % 17);
        snprintf(rods[i].name, sizeof rods[i].name, "rod%d", i);
        rods[i].straight.end[0] += 0.001 * i;
        rods[i].helix.turns += 0.01 * i;
        roots[i] = out->attachments[0];
        snprintf(roots[i].name, sizeof roots[i].name, "root%d", i);
        snprintf(roots[i].rod, sizeof roots[i].rod, "rod%d", i);
    }
    out->scene.rods = rods;
    out->scene.rod_count = ROD_COUNT;
    out->scene.attachments = roots;
    out->scene.attachment_count = ROD_COUNT;
    out->scene.force_count = 5; // the sixth load is on a rod of the smaller scene
    out->scene.input_count = 1;
}

static const run_case cases[] = {
    {"bodies", rw_world_scenes_bodies, 0xd75bd20afb0c4d0a},
    {"mixed", rw_world_scenes_mixed, 0xac13495642a6fee2},
    {"many rods", many_rods, 0xc310d15cdadaa758},
};

// A world run to the end by one actor, in slices of ten steps.
typedef struct run_actor {
    rw_actor actor;
    rw_world* world;
    sem_t finished;
    rw_error error;
    rw_status status;
} run_actor;

static rw_actor_verdict run_slice(rw_actor* actor) {
    run_actor* self = (run_actor*)(void*)actor;
    for (int i = 0; i < 10 && self->status == RW_STATUS_OK; i++) {
        self->status = rw_world_step(self->world, &self->error);
    }
    if (self->status != RW_STATUS_OK || rw_world_step_count(self->world) >= STEPS) {
        sem_post(&self->finished);
        return RW_ACTOR_IDLE;
    }
    return RW_ACTOR_MORE;
}

// The hash after STEPS steps with `workers` worker threads; 0: serial, on this thread.
static uint64_t hash_with(const run_case* one, int workers) {
    rw_alloc account;
    rw_alloc_init(&account, 0);
    rw_worker_pool* pool = workers > 0 ? rw_worker_pool_create(&account, workers) : NULL;
    rw_parallel parallel = {.pool = pool};
    static rw_world_scenes scenes;
    one->make(&scenes);
    rw_world_config config = {.alloc = &account, .parallel = pool != NULL ? &parallel : NULL};
    run_actor self = {.status = RW_STATUS_OK};
    if (rw_world_create_from_scene(&config, &scenes.scene, &self.world, &self.error) !=
        RW_STATUS_OK) {
        fail_msg("%s: %s: %s", one->name, self.error.path, self.error.text);
    }
    if (pool != NULL) {
        sem_init(&self.finished, 0, 0);
        rw_worker_pool_init_actor(&self.actor, run_slice);
        rw_worker_pool_notify(pool, &self.actor);
        sem_wait(&self.finished);
        rw_worker_pool_destroy(pool); // joins, so the actor has come to rest
        sem_destroy(&self.finished);
    } else {
        while (rw_world_step_count(self.world) < STEPS && self.status == RW_STATUS_OK) {
            self.status = rw_world_step(self.world, &self.error);
        }
    }
    if (self.status != RW_STATUS_OK) {
        fail_msg("%s: %s", one->name, self.error.text);
    }
    uint64_t hash = 0;
    assert_int_equal(rw_world_hash(self.world, &hash, NULL), RW_STATUS_OK);
    rw_world_destroy(self.world);
    rw_alloc_finish(&account);
    return hash;
}

static void hashes_are_golden_for_any_worker_count(void** state) {
    (void)state;
    static const int workers[] = {0, 1, 2, 3, 8};
    bool all_golden = true;
    for (size_t c = 0; c < RW_COUNT_OF(cases); c++) {
        uint64_t serial = hash_with(&cases[c], 0);
        print_message("%s: 0x%016llx\n", cases[c].name, (unsigned long long)serial);
        for (size_t w = 1; w < RW_COUNT_OF(workers); w++) {
            assert_true(hash_with(&cases[c], workers[w]) == serial);
        }
        all_golden &= serial == cases[c].golden;
    }
    assert_true(all_golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_golden_for_any_worker_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
