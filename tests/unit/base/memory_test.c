// The counted allocator and what is built on it: arena and buffer.
#include "tests/support/rw_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "solvers/base/arena.h"
#include "solvers/base/buffer.h"

static void account_counts_and_keeps_its_limit(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 1000);
    unsigned char* a = rw_alloc_get(&account, 600);
    assert_non_null(a);
    assert_int_equal((uintptr_t)a % 64, 0);
    for (int i = 0; i < 600; i++) {
        assert_int_equal(a[i], 0);
    }
    assert_int_equal(rw_alloc_size(a), 600);
    assert_null(rw_alloc_get(&account, 401));
    assert_int_equal(account.used_bytes, 600); // a refusal is not charged
    unsigned char* b = rw_alloc_get(&account, 400);
    assert_non_null(b);
    assert_int_equal(account.peak_bytes, 1000);
    rw_alloc_free(&account, b);
    rw_alloc_free(&account, NULL);
    assert_int_equal(account.used_bytes, 600);
    assert_int_equal(account.peak_bytes, 1000);
    assert_int_equal(account.call_count, 2);
    assert_null(rw_alloc_array(&account, SIZE_MAX / 2, 3));
    assert_null(rw_alloc_get(&account, SIZE_MAX));
    void* nothing = rw_alloc_get(&account, 0);
    assert_non_null(nothing);
    rw_alloc_free(&account, nothing);
    rw_alloc_free(&account, a);
    rw_alloc_finish(&account);
}

static void resize_keeps_contents_and_the_old_block_when_it_fails(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 1000);
    unsigned char* a = rw_alloc_resize(&account, NULL, 100);
    memset(a, 7, 100);
    assert_null(rw_alloc_resize(&account, a, 950));
    assert_int_equal(a[99], 7);
    a = rw_alloc_resize(&account, a, 200);
    assert_int_equal(a[99], 7);
    assert_int_equal(a[100], 0);
    a = rw_alloc_resize(&account, a, 50);
    assert_int_equal(a[49], 7);
    assert_int_equal(account.used_bytes, 50);
    rw_alloc_free(&account, a);
    rw_alloc_finish(&account);
}

static size_t resident_bytes(void) {
    FILE* file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0, resident = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &pages, &resident), 2);
    fclose(file);
    return resident * 4096;
}

static void large_blocks_are_aligned_zero_and_not_touched(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 0);
    enum { LARGE = 256 << 20 };
    size_t before = resident_bytes();
    unsigned char* a = rw_alloc_get(&account, LARGE);
    assert_non_null(a);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal(rw_alloc_size(a), LARGE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    bool is_plain = getenv("MALLOC_PERTURB_") == NULL;
#else
    bool is_plain = false;
#endif
    assert_true(!is_plain || resident_bytes() < before + LARGE / 8);
    a[0] = a[LARGE - 1] = 7;
    rw_alloc_free(&account, a);
    // Used memory that comes again is zero too.
    for (size_t size = (1 << 20) - 64; size < (1 << 20) + 200; size += 33) {
        unsigned char* b = rw_alloc_get(&account, size);
        assert_int_equal((uintptr_t)b % 64, 0);
        for (size_t i = 0; i < size; i += 97) {
            assert_int_equal(b[i], 0);
        }
        memset(b, 0xff, size);
        rw_alloc_free(&account, b);
    }
    rw_alloc_finish(&account);
}

static void the_chosen_allocation_fails_and_no_other(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 0);
    rw_alloc_fail_after(2);
    void* first = rw_alloc_get(&account, 1);
    void* second = rw_alloc_get(&account, 1);
    void* third = rw_alloc_get(&account, 1);
    rw_alloc_fail_after(0);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    rw_alloc_free(&account, first);
    rw_alloc_free(&account, third);
    rw_alloc_finish(&account);
}

static void arena_gives_zeroed_pieces_and_warm_it_takes_nothing(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 0);
    rw_arena arena;
    rw_arena_init(&arena, &account);
    uint64_t calls = 0;
    for (int round = 0; round < 4; round++) {
        for (size_t size = 1; size < 3000; size += 97) {
            unsigned char* piece = rw_arena_get(&arena, size);
            assert_non_null(piece);
            assert_int_equal((uintptr_t)piece % 16, 0);
            for (size_t i = 0; i < size; i++) {
                assert_int_equal(piece[i], 0);
            }
            memset(piece, 0xff, size);
        }
        size_t used = arena.used_bytes;
        rw_arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
        assert_int_equal(arena.peak_bytes, used);
        if (round == 2) {
            calls = account.call_count;
        }
    }
    assert_int_equal(account.call_count, calls);
    assert_null(rw_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(rw_arena_get(&arena, SIZE_MAX));
    rw_arena_finish(&arena);
    rw_alloc_finish(&account);
}

static void arena_near_the_limit_takes_only_what_it_needs(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 6000);
    rw_arena arena;
    rw_arena_init(&arena, &account);
    assert_non_null(rw_arena_get(&arena, 4000));
    assert_non_null(rw_arena_get(&arena, 1000)); // twice the first block would be too much
    assert_null(rw_arena_get(&arena, 4000));
    // The large block stays, not the small one that came last.
    uint64_t calls = account.call_count;
    rw_arena_reset(&arena);
    assert_non_null(rw_arena_get(&arena, 4000));
    assert_int_equal(account.call_count, calls);
    rw_arena_finish(&arena);
    rw_alloc_finish(&account);
}

static void buffer_grows_and_is_unchanged_when_it_can_not(void** state) {
    (void)state;
    rw_alloc account;
    rw_alloc_init(&account, 100000);
    rw_buffer buffer;
    rw_buffer_init(&buffer, &account);
    assert_int_equal(rw_buffer_append(&buffer, NULL, 0), RW_STATUS_OK);
    for (int i = 0; i < 10000; i++) {
        unsigned char byte = (unsigned char)i;
        assert_int_equal(rw_buffer_append(&buffer, &byte, 1), RW_STATUS_OK);
    }
    assert_true(account.call_count < 20); // it doubles
    assert_int_equal(rw_buffer_append(&buffer, NULL, 10), RW_STATUS_OK);
    assert_int_equal(buffer.size_bytes, 10010);
    assert_int_equal(buffer.data[9999], (unsigned char)9999);
    assert_int_equal(buffer.data[10009], 0);
    const unsigned char* data = buffer.data;
    assert_int_equal(rw_buffer_append(&buffer, NULL, 95000), RW_STATUS_RESOURCE_EXHAUSTED);
    assert_int_equal(rw_buffer_reserve(&buffer, SIZE_MAX - 5), RW_STATUS_RESOURCE_EXHAUSTED);
    assert_ptr_equal(buffer.data, data);
    assert_int_equal(buffer.size_bytes, 10010);
    rw_buffer_finish(&buffer);
    assert_null(buffer.data);
    rw_alloc_finish(&account);
}

int main(int argc, char** argv) {
    (void)argc;
    // Meson sets it, and then malloc writes every block: once more without it.
    if (getenv("MALLOC_PERTURB_") != NULL) {
        unsetenv("MALLOC_PERTURB_");
        execv("/proc/self/exe", argv);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(account_counts_and_keeps_its_limit),
        cmocka_unit_test(resize_keeps_contents_and_the_old_block_when_it_fails),
        cmocka_unit_test(large_blocks_are_aligned_zero_and_not_touched),
        cmocka_unit_test(the_chosen_allocation_fails_and_no_other),
        cmocka_unit_test(arena_gives_zeroed_pieces_and_warm_it_takes_nothing),
        cmocka_unit_test(arena_near_the_limit_takes_only_what_it_needs),
        cmocka_unit_test(buffer_grows_and_is_unchanged_when_it_can_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
