#include "tests/support/rw_test.h"

#include "solvers/base/id_pool.h"

static rw_alloc account;
static rw_id_pool pool;

static int begin(void** state) {
    (void)state;
    rw_alloc_init(&account, 0);
    rw_id_pool_init(&pool, &account);
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_id_pool_finish(&pool);
    rw_alloc_finish(&account);
    return 0;
}

static void a_stale_id_is_never_taken_for_a_new_object(void** state) {
    (void)state;
    enum { COUNT = 100 };
    rw_id ids[COUNT];
    for (int32_t i = 0; i < COUNT; i++) {
        ids[i] = rw_id_pool_add(&pool, i);
        assert_true(ids[i] != RW_ID_NONE);
    }
    for (int32_t i = 0; i < COUNT; i += 3) {
        rw_id_pool_remove(&pool, ids[i]);
    }
    for (int32_t i = 0; i < COUNT; i += 3) {
        rw_id fresh = rw_id_pool_add(&pool, 1000 + i);
        for (int32_t k = 0; k < COUNT; k++) {
            assert_true(fresh != ids[k]);
        }
    }
    for (int32_t i = 0; i < COUNT; i++) {
        assert_int_equal(rw_id_pool_find(&pool, ids[i]), i % 3 == 0 ? -1 : i);
    }
    assert_int_equal(pool.slot_count, COUNT); // slots were used again
    assert_int_equal(rw_id_pool_find(&pool, RW_ID_NONE), -1);
    assert_int_equal(rw_id_pool_find(&pool, UINT64_MAX), -1);
    rw_id_pool_move(&pool, ids[1], 7);
    assert_int_equal(rw_id_pool_find(&pool, ids[1]), 7);
}

// An object that could not be finished leaves the ids that come after it as they would have been.
static void an_id_taken_back_comes_again(void** state) {
    (void)state;
    rw_id first = rw_id_pool_add(&pool, 0);
    rw_id second = rw_id_pool_add(&pool, 1);
    rw_id_pool_take_back(&pool, second);
    assert_int_equal(rw_id_pool_find(&pool, second), -1);
    assert_true(rw_id_pool_add(&pool, 1) == second);
    rw_id_pool_remove(&pool, first);
    rw_id used = rw_id_pool_add(&pool, 0); // first's slot
    assert_true(used != first);
    rw_id_pool_take_back(&pool, used);
    assert_true(rw_id_pool_add(&pool, 0) == used);
    assert_int_equal(pool.live_count, 2);
}

static void reserved_ids_need_no_memory(void** state) {
    (void)state;
    assert_int_equal(rw_id_pool_reserve(&pool, 1000), RW_STATUS_OK);
    uint64_t calls = account.call_count;
    for (int32_t i = 0; i < 1000; i++) {
        assert_true(rw_id_pool_add(&pool, i) != RW_ID_NONE);
    }
    assert_int_equal(account.call_count, calls);
    assert_int_equal(rw_id_pool_reserve(&pool, INT32_MAX), RW_STATUS_RESOURCE_EXHAUSTED);
    rw_alloc_fail_after(1);
    rw_id none = RW_ID_NONE;
    for (int32_t i = 0; i < 2000 && none == RW_ID_NONE; i++) {
        none = rw_id_pool_add(&pool, 1000 + i) == RW_ID_NONE ? 1 : RW_ID_NONE;
    }
    rw_alloc_fail_after(0);
    assert_true(none != RW_ID_NONE); // memory ended, nothing else did
    assert_true(rw_id_pool_add(&pool, 5000) != RW_ID_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stale_id_is_never_taken_for_a_new_object, begin, end),
        cmocka_unit_test_setup_teardown(an_id_taken_back_comes_again, begin, end),
        cmocka_unit_test_setup_teardown(reserved_ids_need_no_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
