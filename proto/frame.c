#include "proto/frame.h"

#include <string.h>

#include "solvers/base/check.h"

enum {
    RW_FRAME_ZSTD_LEVEL = 1, // 3 is slower by a third and no smaller; lower ones do not entropy-code
    RW_FRAME_KEEP_BYTES = 64 * 1024, // an empty reader gives back more memory than this
};

// ---- Headers ----

void rw_frame_write_header(uint8_t out[RW_FRAME_HEADER_BYTES], rw_frame_header header) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(header.payload_bytes >> (8 * i));
    }
    out[4] = (uint8_t)header.kind;
    out[5] = header.flags;
    out[6] = out[7] = 0;
}

rw_status rw_frame_parse_header(const uint8_t in[RW_FRAME_HEADER_BYTES], uint32_t max_message,
                                rw_frame_header* header, rw_error* error) {
    uint32_t length = in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
    if (length == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "frame length is zero");
    }
    if (length > max_message) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "frame length %u exceeds the limit of %u bytes",
                length, max_message);
    }
    if (in[4] < RW_FRAME_REQUEST || in[4] > RW_FRAME_EVENT) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "unknown frame kind %u", in[4]);
    }
    if ((in[5] & ~RW_FRAME_ZSTD) != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "unknown frame flags 0x%02x", in[5]);
    }
    if (in[6] != 0 || in[7] != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "reserved bits of the frame header are set");
    }
    *header = (rw_frame_header){length, (rw_frame_kind)in[4], in[5]};
    return RW_STATUS_OK;
}

// ---- Reading ----

void rw_frame_reader_init(rw_frame_reader* reader, rw_alloc* alloc, uint32_t max_message) {
    *reader = (rw_frame_reader){.max_message = max_message};
    rw_buffer_init(&reader->buffer, alloc);
}

void rw_frame_reader_finish(rw_frame_reader* reader) { rw_buffer_finish(&reader->buffer); }

size_t rw_frame_reader_pending(const rw_frame_reader* reader) {
    return reader->buffer.size_bytes - reader->at;
}

uint8_t* rw_frame_reader_space(rw_frame_reader* reader, size_t wanted, size_t* space) {
    rw_buffer* buffer = &reader->buffer;
    size_t pending = buffer->size_bytes - reader->at;
    if (pending == 0 && buffer->capacity_bytes > RW_FRAME_KEEP_BYTES && wanted <= RW_FRAME_KEEP_BYTES) {
        rw_buffer_finish(buffer);
        reader->at = 0;
    }
    // Frames given out are dropped when that costs less than what it frees.
    if (reader->at > 0 && (pending <= reader->at || buffer->size_bytes + wanted > buffer->capacity_bytes)) {
        memmove(buffer->data, buffer->data + reader->at, pending);
        buffer->size_bytes = pending;
        reader->at = 0;
    }
    if (rw_buffer_reserve(buffer, wanted) != RW_STATUS_OK) {
        *space = 0;
        return NULL;
    }
    *space = buffer->capacity_bytes - buffer->size_bytes;
    return buffer->data + buffer->size_bytes;
}

void rw_frame_reader_received(rw_frame_reader* reader, size_t count) {
    RW_ASSERT(count <= reader->buffer.capacity_bytes - reader->buffer.size_bytes);
    reader->buffer.size_bytes += count;
}

rw_frame_event rw_frame_read(rw_frame_reader* reader, rw_frame_view* frame) {
    if (reader->is_broken) {
        return RW_FRAME_BROKEN;
    }
    size_t pending = reader->buffer.size_bytes - reader->at;
    if (pending < RW_FRAME_HEADER_BYTES) {
        return RW_FRAME_MORE;
    }
    const uint8_t* start = reader->buffer.data + reader->at;
    if (rw_frame_parse_header(start, reader->max_message, &frame->header, &reader->error) !=
        RW_STATUS_OK) {
        reader->is_broken = true;
        return RW_FRAME_BROKEN;
    }
    if (pending - RW_FRAME_HEADER_BYTES < frame->header.payload_bytes) {
        return RW_FRAME_MORE;
    }
    frame->payload = start + RW_FRAME_HEADER_BYTES;
    reader->at += RW_FRAME_HEADER_BYTES + (size_t)frame->header.payload_bytes;
    return RW_FRAME_READY;
}

// ---- Writing and compression ----

static rw_status write_compressed(rw_buffer* out, size_t start, rw_frame_kind kind,
                                  const void* payload, size_t size, ZSTD_CCtx* context,
                                  bool* is_done) {
    // Room for less than the payload: what would not get smaller fails at once.
    RW_TRY(rw_buffer_reserve(out, RW_FRAME_HEADER_BYTES + size));
    uint8_t* target = out->data + out->size_bytes;
    size_t packed = ZSTD_compressCCtx(context, target + RW_FRAME_HEADER_BYTES, size - 1, payload, size,
                                      RW_FRAME_ZSTD_LEVEL);
    *is_done = !ZSTD_isError(packed);
    if (*is_done) {
        rw_frame_write_header(target, (rw_frame_header){(uint32_t)packed, kind, RW_FRAME_ZSTD});
        memmove(out->data + start, target, RW_FRAME_HEADER_BYTES + packed);
        out->size_bytes = start + RW_FRAME_HEADER_BYTES + packed;
    }
    return RW_STATUS_OK;
}

rw_status rw_frame_append(rw_buffer* out, rw_frame_kind kind, const void* payload, size_t size,
                          ZSTD_CCtx* context, size_t compress_above) {
    RW_ASSERT(size > 0 && size <= UINT32_MAX);
    if (context != NULL && size >= compress_above) {
        bool is_done;
        RW_TRY(write_compressed(out, out->size_bytes, kind, payload, size, context, &is_done));
        if (is_done) {
            return RW_STATUS_OK;
        }
    }
    RW_TRY(rw_buffer_reserve(out, RW_FRAME_HEADER_BYTES + size));
    rw_frame_write_header(out->data + out->size_bytes, (rw_frame_header){(uint32_t)size, kind, 0});
    memcpy(out->data + out->size_bytes + RW_FRAME_HEADER_BYTES, payload, size);
    out->size_bytes += RW_FRAME_HEADER_BYTES + size;
    return RW_STATUS_OK;
}

rw_status rw_frame_close(rw_buffer* out, size_t start, rw_frame_kind kind, ZSTD_CCtx* context,
                         size_t compress_above) {
    RW_ASSERT(out->size_bytes > start + RW_FRAME_HEADER_BYTES);
    size_t size = out->size_bytes - start - RW_FRAME_HEADER_BYTES;
    RW_ASSERT(size <= UINT32_MAX);
    if (context != NULL && size >= compress_above) {
        bool is_done;
        RW_TRY(rw_buffer_reserve(out, RW_FRAME_HEADER_BYTES + size)); // may move the payload
        const uint8_t* payload = out->data + start + RW_FRAME_HEADER_BYTES;
        RW_TRY(write_compressed(out, start, kind, payload, size, context, &is_done));
        if (is_done) {
            return RW_STATUS_OK;
        }
    }
    rw_frame_write_header(out->data + start, (rw_frame_header){(uint32_t)size, kind, 0});
    return RW_STATUS_OK;
}

rw_status rw_frame_payload(const rw_frame_view* frame, ZSTD_DCtx* context, uint32_t max_message,
                           rw_buffer* scratch, const uint8_t** bytes, size_t* size, rw_error* error) {
    *bytes = frame->payload;
    *size = frame->header.payload_bytes;
    if ((frame->header.flags & RW_FRAME_ZSTD) == 0) {
        return RW_STATUS_OK;
    }
    // The content size is in the frame (ours always say it); one that says nothing may take the
    // limit. zstd never writes beyond the room it is given.
    unsigned long long claimed = ZSTD_getFrameContentSize(frame->payload, *size);
    if (claimed == ZSTD_CONTENTSIZE_ERROR) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "the payload is not a zstd frame");
    }
    if (claimed == ZSTD_CONTENTSIZE_UNKNOWN) {
        claimed = max_message;
    }
    if (claimed > max_message) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "the message has %llu bytes, more than the limit of %u",
                claimed, max_message);
    }
    scratch->size_bytes = 0;
    if (rw_buffer_reserve(scratch, (size_t)claimed + 1) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to decompress %llu bytes", claimed);
    }
    size_t unpacked =
        ZSTD_decompressDCtx(context, scratch->data, (size_t)claimed, frame->payload, *size);
    if (ZSTD_isError(unpacked)) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "the payload does not decompress: %s",
                ZSTD_getErrorName(unpacked));
    }
    scratch->size_bytes = unpacked;
    *bytes = scratch->data;
    *size = unpacked;
    return RW_STATUS_OK;
}
