// Fuzzes the reading of frames from a stream: byte 0 says how the stream is cut, the rest is the
// stream. What is read must be what a plain walk over the same bytes finds, and a payload either
// unpacks within the limit or is refused.
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "solvers/base/check.h"

enum { LIMIT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

typedef struct consumer {
    const uint8_t* stream;
    size_t at; // where the next frame must lie in the stream
    rw_buffer scratch;
    ZSTD_DCtx* unpacker;
} consumer;

static void consume(consumer* c, const rw_frame_view* frame) {
    uint8_t header[RW_FRAME_HEADER_BYTES];
    rw_frame_write_header(header, frame->header);
    RW_CHECK(memcmp(header, c->stream + c->at, sizeof header) == 0);
    c->at += sizeof header;
    RW_CHECK(memcmp(frame->payload, c->stream + c->at, frame->header.payload_bytes) == 0);
    c->at += frame->header.payload_bytes;

    const uint8_t* bytes;
    size_t bytes_size;
    rw_error error = {0};
    if (rw_frame_payload(frame, c->unpacker, LIMIT, &c->scratch, &bytes, &bytes_size, &error) ==
        RW_STATUS_OK) {
        RW_CHECK(bytes_size <= LIMIT);
    } else {
        RW_CHECK(error.text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_frame_reader reader;
    rw_frame_reader_init(&reader, &alloc, LIMIT);
    consumer c = {.stream = data + 1, .unpacker = ZSTD_createDCtx()};
    rw_buffer_init(&c.scratch, &alloc);

    size_t cut = data[0] % 64 + 1, stream_size = size - 1;
    rw_frame_event event = RW_FRAME_MORE;
    for (size_t at = 0; at < stream_size && event != RW_FRAME_BROKEN; at += cut) {
        size_t count = stream_size - at < cut ? stream_size - at : cut, space;
        uint8_t* room = rw_frame_reader_space(&reader, count, &space);
        RW_CHECK(room != NULL && space >= count);
        memcpy(room, c.stream + at, count);
        rw_frame_reader_received(&reader, count);
        rw_frame_view frame;
        while ((event = rw_frame_read(&reader, &frame)) == RW_FRAME_READY) {
            consume(&c, &frame);
        }
    }
    if (event == RW_FRAME_BROKEN) {
        rw_frame_header header;
        RW_CHECK(rw_frame_parse_header(c.stream + c.at, LIMIT, &header, NULL) != RW_STATUS_OK);
    } else {
        RW_CHECK(rw_frame_reader_pending(&reader) == stream_size - c.at);
    }
    ZSTD_freeDCtx(c.unpacker);
    rw_buffer_finish(&c.scratch);
    rw_frame_reader_finish(&reader);
    rw_alloc_finish(&alloc);
    return 0;
}
