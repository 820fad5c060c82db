#include "tests/support/rw_test.h"

#include "solvers/model/names.h"

enum { COUNT = 5000 };
static char names[COUNT][16];

static const char* name_of(const void* context, rw_id id) {
    (void)context;
    return names[id - 1];
}

static void a_table_behaves_as_a_list_of_pairs(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_name_table table;
    rw_names_init(&table, &alloc, name_of, NULL);
    static bool present[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
    }
    uint64_t random = 1;
    for (int round = 0; round < 60000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        // A small range first, so that slots are filled, emptied and filled again.
        int i = (int)((random >> 33) % (round < 20000 ? 40 : COUNT));
        assert_int_equal(rw_names_find(&table, names[i]), present[i] ? (rw_id)i + 1 : RW_ID_NONE);
        if (present[i]) {
            rw_names_remove(&table, names[i]);
        } else {
            assert_int_equal(rw_names_reserve(&table, 1), RW_STATUS_OK);
            rw_names_add(&table, names[i], (rw_id)i + 1);
        }
        present[i] = !present[i];
    }
    int count = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(rw_names_find(&table, names[i]), present[i] ? (rw_id)i + 1 : RW_ID_NONE);
        count += present[i] ? 1 : 0;
    }
    assert_int_equal(table.count, count);
    rw_names_finish(&table);
    rw_alloc_finish(&alloc);
}

static void a_failed_reserve_leaves_the_table_usable(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_name_table table;
    rw_names_init(&table, &alloc, name_of, NULL);
    snprintf(names[0], sizeof names[0], "a");
    assert_int_equal(rw_names_find(&table, "a"), RW_ID_NONE);
    assert_int_equal(rw_names_reserve(&table, 1), RW_STATUS_OK);
    rw_names_add(&table, names[0], 1);
    rw_alloc_fail_after(1);
    assert_int_equal(rw_names_reserve(&table, 1000), RW_STATUS_RESOURCE_EXHAUSTED);
    rw_alloc_fail_after(0);
    assert_int_equal(rw_names_find(&table, "a"), 1);
    rw_names_finish(&table);
    rw_alloc_finish(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_behaves_as_a_list_of_pairs),
        cmocka_unit_test(a_failed_reserve_leaves_the_table_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
