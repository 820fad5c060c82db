#include "tests/support/rw_test.h"

#include "solvers/base/hash.h"

// The check values of the catalogue of parametrised CRCs (CRC-32/ISO-HDLC, CRC-32/ISCSI).
static void checksums_have_their_published_values(void** state) {
    (void)state;
    assert_int_equal(rw_hash_crc32(0, "123456789", 9), 0xcbf43926u);
    assert_int_equal(rw_hash_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(rw_hash_crc32(0, "", 0), 0);
    assert_int_equal(rw_hash_crc32c(0, "", 0), 0);
}

// Bit by bit, as the polynomial says.
static uint32_t slow_crc(uint32_t polynomial, const unsigned char* data, size_t bytes) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0u);
        }
    }
    return ~crc;
}

static void checksums_go_on_where_they_ended_at_any_length_and_alignment(void** state) {
    (void)state;
    unsigned char bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 37 + 11);
    }
    for (size_t from = 0; from < 8; from++) {
        for (size_t size = 0; from + size <= sizeof bytes; size++) {
            uint32_t whole = rw_hash_crc32(0, bytes + from, size);
            assert_int_equal(whole, slow_crc(0xedb88320u, bytes + from, size));
            assert_int_equal(rw_hash_crc32c(0, bytes + from, size),
                             slow_crc(0x82f63b78u, bytes + from, size));
            uint32_t part = rw_hash_crc32(0, bytes + from, size / 3);
            assert_int_equal(rw_hash_crc32(part, bytes + from + size / 3, size - size / 3), whole);
        }
    }
}

static uint64_t hash_of(const double* values, size_t count) {
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_doubles(&hash, values, count);
    return rw_hash_value(&hash);
}

static void equal_values_hash_alike_whatever_their_bits(void** state) {
    (void)state;
    const double zeros[2] = {0.0, -0.0};
    assert_true(hash_of(&zeros[0], 1) == hash_of(&zeros[1], 1));
    double nans[2] = {NAN, NAN};
    uint64_t other = 0xfff8000000000123u;
    memcpy(&nans[1], &other, sizeof other);
    assert_true(hash_of(&nans[0], 1) == hash_of(&nans[1], 1));
    const double ones[2] = {1.0, 1.0 + 0x1p-52};
    assert_true(hash_of(&ones[0], 1) != hash_of(&ones[1], 1));
    assert_true(hash_of(zeros, 1) != hash_of(zeros, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_have_their_published_values),
        cmocka_unit_test(checksums_go_on_where_they_ended_at_any_length_and_alignment),
        cmocka_unit_test(equal_values_hash_alike_whatever_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
