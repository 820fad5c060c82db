// The small parts of the session room: mailbox, watchdog, blobs, quotas, pacing, metrics.
#include "tests/support/rw_test.h"

#include <pthread.h>
#include <unistd.h>

#include "server/metrics.h"
#include "server/session/blob_store.h"
#include "server/session/mailbox.h"
#include "server/session/quota.h"
#include "server/session/watchdog.h"
#include "server/stream/pacing.h"
#include "solvers/base/clock.h"
#include "solvers/base/hash.h"

// ---- Mailbox ----

enum { PRODUCERS = 3, LETTERS = 20000 };

typedef struct letter {
    rw_mailbox_item item;
    int producer, number;
} letter;

static rw_mailbox mailbox;
static letter letters[PRODUCERS][LETTERS];

static void* produce(void* argument) {
    letter* own = argument;
    for (int i = 0; i < LETTERS; i++) {
        own[i].number = i;
        rw_mailbox_push(&mailbox, &own[i].item);
    }
    return NULL;
}

static void mailbox_keeps_each_senders_order_and_loses_nothing(void** state) {
    (void)state;
    pthread_t threads[PRODUCERS];
    rw_mailbox_init(&mailbox);
    for (int i = 0; i < PRODUCERS; i++) {
        for (int k = 0; k < LETTERS; k++) {
            letters[i][k].producer = i;
        }
        pthread_create(&threads[i], NULL, produce, letters[i]);
    }
    int next[PRODUCERS] = {0};
    for (int got = 0; got < PRODUCERS * LETTERS;) {
        letter* one = (letter*)rw_mailbox_pop(&mailbox);
        if (one != NULL) {
            assert_int_equal(one->number, next[one->producer]++);
            got++;
        }
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(rw_mailbox_is_empty(&mailbox));
    assert_null(rw_mailbox_pop(&mailbox));
}

static void first_push_says_that_a_knock_is_due(void** state) {
    (void)state;
    rw_mailbox_item a, b;
    rw_mailbox_init(&mailbox);
    assert_true(rw_mailbox_push(&mailbox, &a));
    assert_false(rw_mailbox_push(&mailbox, &b));
    assert_ptr_equal(rw_mailbox_pop(&mailbox), &a);
    assert_ptr_equal(rw_mailbox_pop(&mailbox), &b);
    assert_true(rw_mailbox_push(&mailbox, &a));
}

// ---- Watchdog ----

static void watchdog_raises_flags_that_are_due_and_only_those(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_watchdog* watchdog = rw_watchdog_create(&alloc);
    atomic_bool due = false, later = false, left = false;
    rw_watchdog_entry a = {0}, b = {0}, c = {0}, never = {0};
    int64_t now = rw_clock_now_ns();
    rw_watchdog_enter(watchdog, &b, &later, now + 60000000000);
    rw_watchdog_enter(watchdog, &a, &due, now + 20000000);
    rw_watchdog_enter(watchdog, &c, &left, now + 20000000);
    rw_watchdog_leave(watchdog, &c);
    rw_watchdog_leave(watchdog, &never); // was not entered: harmless
    for (int i = 0; i < 2000 && !atomic_load(&due); i++) {
        usleep(1000);
    }
    assert_true(atomic_load(&due));
    assert_true(rw_clock_now_ns() >= now + 20000000);
    assert_false(atomic_load(&later));
    assert_false(atomic_load(&left));
    rw_watchdog_leave(watchdog, &a);
    rw_watchdog_leave(watchdog, &b);
    rw_watchdog_destroy(watchdog);
    rw_alloc_finish(&alloc);
}

// ---- Blobs ----

static void blob_survives_its_removal_while_it_is_used(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_error error;
    rw_alloc_init(&alloc, 0);
    rw_blob_store* store = rw_blob_store_create(&alloc, 100000);
    uint64_t id, received;
    bool complete;
    uint8_t bytes[100] = {1, 2, 3};
    assert_int_equal(rw_blob_store_begin(store, 100, rw_hash_crc32(0, bytes, 100), &id, &error),
                     RW_STATUS_OK);
    rw_blob* blob;
    assert_int_equal(rw_blob_store_find(store, id, &blob, &error), RW_STATUS_FAILED_PRECONDITION);
    assert_int_equal(rw_blob_store_add(store, id, 40, bytes + 40, 60, &received, &complete, &error),
                     RW_STATUS_OK);
    assert_false(complete);
    assert_int_equal(rw_blob_store_add(store, id, 0, bytes, 40, &received, &complete, &error),
                     RW_STATUS_OK);
    assert_true(complete);
    assert_int_equal(rw_blob_store_find(store, id, &blob, &error), RW_STATUS_OK);
    assert_int_equal(rw_blob_store_remove(store, id, &error), RW_STATUS_OK);
    assert_memory_equal(blob->bytes, bytes, 100);
    rw_blob_store_release(store, blob);
    assert_int_equal(rw_blob_store_find(store, id, &blob, &error), RW_STATUS_NOT_FOUND);
    rw_blob_store_drop(store);
    rw_alloc_finish(&alloc);
}

static void blob_memory_failing_anywhere_leaks_nothing(void** state) {
    (void)state;
    for (int n = 1; n < 20; n++) {
        rw_alloc alloc;
        rw_error error;
        uint64_t id, received;
        bool complete;
        uint8_t bytes[64] = {0};
        rw_alloc_init(&alloc, 0);
        rw_alloc_fail_after(n);
        rw_blob_store* store = rw_blob_store_create(&alloc, 100000);
        if (store != NULL && rw_blob_store_begin(store, 64, 0, &id, &error) == RW_STATUS_OK) {
            for (uint64_t at = 0; at < 64; at += 8) { // every other piece: many ranges
                rw_blob_store_add(store, id, at, bytes, 4, &received, &complete, &error);
            }
        }
        rw_alloc_fail_after(0);
        rw_blob_store_drop(store);
        rw_alloc_finish(&alloc);
    }
}

// ---- Quota ----

static void quota_counts_to_its_limit(void** state) {
    (void)state;
    rw_quota quota;
    rw_error error;
    rw_quota_init(&quota, "things", 2);
    assert_int_equal(rw_quota_take(&quota, &error), RW_STATUS_OK);
    assert_int_equal(rw_quota_take(&quota, &error), RW_STATUS_OK);
    assert_int_equal(rw_quota_take(&quota, &error), RW_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "things"));
    rw_quota_give(&quota);
    assert_int_equal(rw_quota_take(&quota, &error), RW_STATUS_OK);
}

// ---- Pacing ----

#define MS ((int64_t)1000000)

// Does what is due; returns it.
static int64_t run_due(rw_pacing* pacing, double time_step, int64_t* step, int64_t now_ns) {
    int64_t due = rw_pacing_due(pacing, time_step, *step, now_ns);
    for (int64_t i = 0; i < due; i++) {
        rw_pacing_stepped(pacing);
        (*step)++;
    }
    return due;
}

static void pacing_owes_a_step_per_time_step(void** state) {
    (void)state;
    rw_pacing pacing;
    int64_t step = 0;
    rw_pacing_start(&pacing, 1, -1, 100 * MS);
    assert_int_equal(run_due(&pacing, 0.001, &step, 100 * MS), 0);
    for (int i = 1; i <= 1000; i++) {
        assert_int_equal(run_due(&pacing, 0.001, &step, (100 + i) * MS), 1);
    }
    assert_int_equal(pacing.lost_steps, 0);
    rw_pacing_start(&pacing, 0.5, -1, 0);
    step = 0;
    for (int i = 1; i <= 1000; i++) {
        run_due(&pacing, 0.001, &step, i * MS);
    }
    assert_int_equal(step, 500);
}

static void late_run_catches_up_four_steps_and_counts_the_rest(void** state) {
    (void)state;
    rw_pacing pacing;
    int64_t step = 0;
    rw_pacing_start(&pacing, 1, -1, 0);
    assert_int_equal(run_due(&pacing, 0.001, &step, 4 * MS), 4);
    assert_int_equal(pacing.lost_steps, 0);
    assert_int_equal(run_due(&pacing, 0.001, &step, 104 * MS), 4);
    assert_int_equal(pacing.lost_steps, 96);
    assert_int_equal(run_due(&pacing, 0.001, &step, 105 * MS), 1); // on time again
    assert_int_equal(pacing.lost_steps, 96);
}

static void tiny_steps_within_the_timers_grain_are_not_lost(void** state) {
    (void)state;
    rw_pacing pacing;
    int64_t step = 0;
    rw_pacing_start(&pacing, 1, -1, 0);
    for (int i = 1; i <= 100; i++) {
        run_due(&pacing, 0.0001, &step, i * MS); // ten steps per millisecond
    }
    assert_int_equal(step, 1000);
    assert_int_equal(pacing.lost_steps, 0);
}

static void pacing_ends_where_it_was_told(void** state) {
    (void)state;
    rw_pacing pacing;
    int64_t step = 10;
    rw_pacing_start(&pacing, (double)INFINITY, 13, 0);
    int total = 0;
    for (int i = 0; i < 10; i++) {
        total += (int)run_due(&pacing, 0.001, &step, i);
    }
    assert_int_equal(total, 3);
    assert_int_equal(step, 13);
}

// ---- Globs, metrics ----

static void metrics_print_in_the_text_format_of_prometheus(void** state) {
    (void)state;
    static rw_metrics metrics;
    rw_alloc alloc;
    rw_buffer text;
    rw_alloc_init(&alloc, 0);
    rw_buffer_init(&text, &alloc);
    rw_metrics_init(&metrics);
    rw_metrics_add(&metrics, RW_METRICS_steps_total, 41);
    rw_metrics_add(&metrics, RW_METRICS_steps_total, 1);
    assert_int_equal(rw_metrics_print(&metrics, &text), RW_STATUS_OK);
    assert_int_equal(rw_buffer_append(&text, "", 1), RW_STATUS_OK);
    assert_non_null(strstr((char*)text.data, "# TYPE ropewalk_steps_total counter\n"
                                             "ropewalk_steps_total 42\n"));
    rw_buffer_finish(&text);
    rw_alloc_finish(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mailbox_keeps_each_senders_order_and_loses_nothing),
        cmocka_unit_test(first_push_says_that_a_knock_is_due),
        cmocka_unit_test(watchdog_raises_flags_that_are_due_and_only_those),
        cmocka_unit_test(blob_survives_its_removal_while_it_is_used),
        cmocka_unit_test(blob_memory_failing_anywhere_leaks_nothing),
        cmocka_unit_test(quota_counts_to_its_limit),
        cmocka_unit_test(pacing_owes_a_step_per_time_step),
        cmocka_unit_test(late_run_catches_up_four_steps_and_counts_the_rest),
        cmocka_unit_test(tiny_steps_within_the_timers_grain_are_not_lost),
        cmocka_unit_test(pacing_ends_where_it_was_told),
        cmocka_unit_test(metrics_print_in_the_text_format_of_prometheus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
