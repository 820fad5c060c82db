#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "proto/frame.h"

typedef struct fixture {
    rw_alloc alloc;
    rw_buffer stream;
    rw_frame_reader reader;
    rw_error error;
} fixture;

enum { LIMIT = 100000 };

static int set_up(void** state) {
    fixture* f = calloc(1, sizeof *f);
    rw_alloc_init(&f->alloc, 0);
    rw_buffer_init(&f->stream, &f->alloc);
    rw_frame_reader_init(&f->reader, &f->alloc, LIMIT);
    *state = f;
    return 0;
}

static int tear_down(void** state) {
    fixture* f = *state;
    rw_buffer_finish(&f->stream);
    rw_frame_reader_finish(&f->reader);
    rw_alloc_finish(&f->alloc);
    free(f);
    return 0;
}

static void receive(fixture* f, const void* bytes, size_t size) {
    size_t space;
    uint8_t* room = rw_frame_reader_space(&f->reader, size, &space);
    assert_non_null(room);
    assert_true(space >= size);
    memcpy(room, bytes, size);
    rw_frame_reader_received(&f->reader, size);
}

static void a_header_is_eight_little_endian_bytes(void** state) {
    (void)state;
    uint8_t bytes[8];
    rw_frame_write_header(bytes, (rw_frame_header){0x01020304, RW_FRAME_STATE, RW_FRAME_ZSTD});
    static const uint8_t expected[8] = {4, 3, 2, 1, 3, 1, 0, 0};
    assert_memory_equal(bytes, expected, 8);
    rw_frame_header header;
    assert_int_equal(rw_frame_parse_header(bytes, 0x01020304, &header, NULL), RW_STATUS_OK);
    assert_int_equal(header.payload_bytes, 0x01020304);
    assert_int_equal(header.kind, RW_FRAME_STATE);
    assert_int_equal(header.flags, RW_FRAME_ZSTD);
}

static void bad_headers_break_the_stream_with_their_reason(void** state) {
    (void)state;
    static const struct {
        uint8_t bytes[8];
        const char* reason;
    } bad[] = {
        {{0, 0, 0, 0, 1, 0, 0, 0}, "zero"},
        {{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, "exceeds the limit"},
        {{0xa1, 0x86, 1, 0, 1, 0, 0, 0}, "100001 exceeds the limit of 100000"},
        {{1, 0, 0, 0, 0, 0, 0, 0}, "unknown frame kind 0"},
        {{1, 0, 0, 0, 5, 0, 0, 0}, "unknown frame kind 5"},
        {{1, 0, 0, 0, 255, 0, 0, 0}, "unknown frame kind 255"},
        {{1, 0, 0, 0, 1, 2, 0, 0}, "flags 0x02"},
        {{1, 0, 0, 0, 1, 0x81, 0, 0}, "flags"},
        {{1, 0, 0, 0, 1, 0, 1, 0}, "reserved"},
        {{1, 0, 0, 0, 1, 0, 0, 0x80}, "reserved"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fixture* f;
        set_up((void**)&f);
        receive(f, bad[i].bytes, 8);
        rw_frame_view frame;
        assert_int_equal(rw_frame_read(&f->reader, &frame), RW_FRAME_BROKEN);
        if (strstr(f->reader.error.text, bad[i].reason) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", f->reader.error.text, bad[i].reason);
        }
        receive(f, "\x01\0\0\0\x01\0\0\0x", 9); // nothing heals it
        assert_int_equal(rw_frame_read(&f->reader, &frame), RW_FRAME_BROKEN);
        tear_down((void**)&f);
    }
}

// Frames of many sizes, one after the other; sizes[i] bytes of value i.
static const size_t sizes[] = {1, 2, 7, 8, 9, 300, 1, 5000, 65536, 1, 99999, LIMIT, 3};
enum { FRAME_COUNT = sizeof sizes / sizeof sizes[0] };

static void append_frames(fixture* f) {
    uint8_t* payload = malloc(LIMIT);
    for (size_t i = 0; i < FRAME_COUNT; i++) {
        memset(payload, (int)i + 1, sizes[i]);
        assert_int_equal(rw_frame_append(&f->stream, (rw_frame_kind)(1 + i % 4), payload, sizes[i],
                                         NULL, 0), RW_STATUS_OK);
    }
    free(payload);
}

static size_t read_all(fixture* f, size_t index) {
    rw_frame_view frame;
    rw_frame_event event;
    while ((event = rw_frame_read(&f->reader, &frame)) == RW_FRAME_READY) {
        assert_true(index < FRAME_COUNT);
        assert_int_equal(frame.header.payload_bytes, sizes[index]);
        assert_int_equal(frame.header.kind, 1 + index % 4);
        for (size_t i = 0; i < sizes[index]; i++) {
            if (frame.payload[i] != index + 1) {
                fail_msg("frame %zu byte %zu is %u", index, i, frame.payload[i]);
            }
        }
        index++;
    }
    assert_int_equal(event, RW_FRAME_MORE);
    return index;
}

static void frames_arrive_whole_however_the_stream_is_cut(void** state) {
    fixture* f = *state;
    append_frames(f);
    static const size_t cuts[] = {1, 2, 3, 7, 8, 9, 1000, 4096, 65536, 1 << 20};
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        size_t index = 0;
        for (size_t at = 0; at < f->stream.size_bytes; at += cuts[c]) {
            size_t left = f->stream.size_bytes - at;
            receive(f, f->stream.data + at, left < cuts[c] ? left : cuts[c]);
            index = read_all(f, index);
        }
        assert_int_equal(index, FRAME_COUNT);
        assert_int_equal(rw_frame_reader_pending(&f->reader), 0);
    }
}

static void memory_grows_with_what_arrived_not_with_what_was_claimed(void** state) {
    fixture* f = *state;
    receive(f, "\x9f\x86\x01\0\x01\0\0\0abc", 11); // claims 99,999 bytes
    rw_frame_view frame;
    assert_int_equal(rw_frame_read(&f->reader, &frame), RW_FRAME_MORE);
    assert_true(f->alloc.used_bytes < 4096);
}

static void an_idle_reader_gives_large_memory_back(void** state) {
    fixture* f = *state;
    append_frames(f);
    receive(f, f->stream.data, f->stream.size_bytes);
    assert_int_equal(read_all(f, 0), FRAME_COUNT);
    rw_buffer_finish(&f->stream);
    size_t space;
    assert_non_null(rw_frame_reader_space(&f->reader, 1024, &space));
    assert_true(f->alloc.used_bytes < 8192);
}

// ---- Compression ----

static void compressed_frames_come_back_as_they_were(void** state) {
    fixture* f = *state;
    ZSTD_CCtx* packer = ZSTD_createCCtx();
    ZSTD_DCtx* unpacker = ZSTD_createDCtx();
    enum { SIZE = 50000 };
    uint8_t* payload = malloc(SIZE);
    uint64_t random = 1;
    for (int kind = 0; kind < 3; kind++) { // zeros, text, noise
        for (size_t i = 0; i < SIZE; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            payload[i] = kind == 0 ? 0 : kind == 1 ? (uint8_t)"ropewalk"[i % 8] : (uint8_t)(random >> 56);
        }
        assert_int_equal(rw_frame_append(&f->stream, RW_FRAME_REQUEST, payload, SIZE, packer, 256),
                         RW_STATUS_OK);
        size_t start = f->stream.size_bytes; // the same, closed in place
        assert_int_equal(rw_buffer_append(&f->stream, NULL, RW_FRAME_HEADER_BYTES), RW_STATUS_OK);
        assert_int_equal(rw_buffer_append(&f->stream, payload, SIZE), RW_STATUS_OK);
        assert_int_equal(rw_frame_close(&f->stream, start, RW_FRAME_RESPONSE, packer, 256),
                         RW_STATUS_OK);
        receive(f, f->stream.data, f->stream.size_bytes);
        f->stream.size_bytes = 0;
        rw_buffer scratch;
        rw_buffer_init(&scratch, &f->alloc);
        for (int i = 0; i < 2; i++) {
            rw_frame_view frame;
            const uint8_t* bytes;
            size_t size;
            assert_int_equal(rw_frame_read(&f->reader, &frame), RW_FRAME_READY);
            assert_int_equal(frame.header.kind, i == 0 ? RW_FRAME_REQUEST : RW_FRAME_RESPONSE);
            assert_int_equal(frame.header.flags, kind == 2 ? 0 : RW_FRAME_ZSTD); // noise does not shrink
            assert_true(kind == 2 || frame.header.payload_bytes < 1000);
            assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size,
                                              &f->error), RW_STATUS_OK);
            assert_int_equal(size, SIZE);
            assert_memory_equal(bytes, payload, SIZE);
        }
        rw_buffer_finish(&scratch);
    }
    free(payload);
    ZSTD_freeCCtx(packer);
    ZSTD_freeDCtx(unpacker);
}

static void small_payloads_are_left_as_they_are(void** state) {
    fixture* f = *state;
    ZSTD_CCtx* packer = ZSTD_createCCtx();
    uint8_t zeros[100] = {0};
    assert_int_equal(rw_frame_append(&f->stream, RW_FRAME_EVENT, zeros, 100, packer, 101),
                     RW_STATUS_OK);
    assert_int_equal(f->stream.size_bytes, 108);
    assert_int_equal(f->stream.data[5], 0);
    ZSTD_freeCCtx(packer);
}

static void a_payload_that_unpacks_beyond_the_limit_or_not_at_all_is_refused(void** state) {
    fixture* f = *state;
    ZSTD_DCtx* unpacker = ZSTD_createDCtx();
    rw_buffer scratch;
    rw_buffer_init(&scratch, &f->alloc);
    enum { BIG = 200000 };
    uint8_t* zeros = calloc(1, BIG);
    uint8_t packed[1024];
    const uint8_t* bytes;
    size_t size;
    size_t packed_size = ZSTD_compress(packed, sizeof packed, zeros, BIG, 1);
    rw_frame_view frame = {{(uint32_t)packed_size, RW_FRAME_REQUEST, RW_FRAME_ZSTD}, packed};
    assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size, &f->error),
                     RW_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(f->error.text, "200000 bytes, more than the limit"));

    // The same without a content size: streamed, so that the frame does not say it.
    ZSTD_CCtx* packer = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(packer, ZSTD_c_contentSizeFlag, 0);
    packed_size = ZSTD_compress2(packer, packed, sizeof packed, zeros, BIG);
    frame.header.payload_bytes = (uint32_t)packed_size;
    assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size, &f->error),
                     RW_STATUS_INVALID_ARGUMENT);
    packed_size = ZSTD_compress2(packer, packed, sizeof packed, zeros, LIMIT); // just fits
    frame.header.payload_bytes = (uint32_t)packed_size;
    assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size, &f->error),
                     RW_STATUS_OK);
    assert_int_equal(size, LIMIT);
    for (size_t cut = 0; cut < packed_size; cut++) { // every truncation
        frame.header.payload_bytes = (uint32_t)cut;
        assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size,
                                          &f->error), cut == 0 ? f->error.status : RW_STATUS_INVALID_ARGUMENT);
    }
    frame.header.payload_bytes = 20;
    frame.payload = (const uint8_t*)"this is no zstd frame";
    assert_int_equal(rw_frame_payload(&frame, unpacker, LIMIT, &scratch, &bytes, &size, &f->error),
                     RW_STATUS_INVALID_ARGUMENT);
    free(zeros);
    ZSTD_freeCCtx(packer);
    ZSTD_freeDCtx(unpacker);
    rw_buffer_finish(&scratch);
}

static void without_memory_nothing_is_lost(void** state) {
    fixture* f = *state;
    assert_int_equal(rw_frame_append(&f->stream, RW_FRAME_EVENT, "x", 1, NULL, 0), RW_STATUS_OK);
    size_t kept = f->stream.size_bytes;
    uint8_t* payload = calloc(1, LIMIT);
    rw_alloc_fail_after(1);
    assert_int_equal(rw_frame_append(&f->stream, RW_FRAME_EVENT, payload, LIMIT, NULL, 0),
                     RW_STATUS_RESOURCE_EXHAUSTED);
    rw_alloc_fail_after(1);
    size_t space;
    assert_null(rw_frame_reader_space(&f->reader, LIMIT, &space));
    rw_alloc_fail_after(0);
    assert_int_equal(f->stream.size_bytes, kept);
    free(payload);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_eight_little_endian_bytes),
        cmocka_unit_test(bad_headers_break_the_stream_with_their_reason),
        CASE(frames_arrive_whole_however_the_stream_is_cut),
        CASE(memory_grows_with_what_arrived_not_with_what_was_claimed),
        CASE(an_idle_reader_gives_large_memory_back),
        CASE(compressed_frames_come_back_as_they_were),
        CASE(small_payloads_are_left_as_they_are),
        CASE(a_payload_that_unpacks_beyond_the_limit_or_not_at_all_is_refused),
        CASE(without_memory_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
