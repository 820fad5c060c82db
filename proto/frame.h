// Frames: how messages travel on a byte stream. No I/O; a reader belongs to one connection and one
// thread at a time.
//
//   byte 0          4      5       6          8
//        | payload  | kind | flags | reserved | payload ...
//        | u32 LE   | u8   | u8    | u16 = 0  |
//
// kind: 1 request, 2 response, 3 state frame, 4 event. flags: bit 0 = the payload is one zstd frame.
//
//                      8 bytes there, header good            all bytes there
//   rw_frame_read: [HEADER] ----------------> [PAYLOAD] ------------------> gives the frame, [HEADER]
//                      |  header bad (rw_frame_parse_header)
//                      v
//                  [BROKEN]   for ever: the stream can't be trusted any more
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <zstd.h>

#include "solvers/base/buffer.h"
#include "solvers/base/status.h"

enum {
    RW_FRAME_HEADER_BYTES = 8,
    RW_FRAME_ZSTD = 1, // flag: compressed payload
    RW_FRAME_DEFAULT_MAX_MESSAGE = 16 * 1024 * 1024,
};

typedef enum rw_frame_kind {
    RW_FRAME_REQUEST = 1,
    RW_FRAME_RESPONSE = 2,
    RW_FRAME_STATE = 3,
    RW_FRAME_EVENT = 4,
} rw_frame_kind;

typedef struct rw_frame_header {
    uint32_t payload_bytes; // 1 .. max_message
    rw_frame_kind kind;
    uint8_t flags;
} rw_frame_header;

// A frame as it lies in a reader's memory.
typedef struct rw_frame_view {
    rw_frame_header header;
    const uint8_t* payload; // header.payload_bytes bytes, as sent
} rw_frame_view;

// ---- Headers ----

// Writes the 8 bytes of a header.
void rw_frame_write_header(uint8_t out[RW_FRAME_HEADER_BYTES], rw_frame_header header);

// Reads and checks 8 bytes. INVALID_ARGUMENT names what is wrong: length zero or over
// `max_message`, an unknown kind or flag, reserved bits.
rw_status rw_frame_parse_header(const uint8_t in[RW_FRAME_HEADER_BYTES], uint32_t max_message,
                                rw_frame_header* header, rw_error* error);

// ---- Reading a stream ----

typedef struct rw_frame_reader {
    rw_buffer buffer;     // bytes received and not yet given out lie at [at, size_bytes)
    size_t at;
    uint32_t max_message;
    bool is_broken;
    rw_error error; // why, when broken
} rw_frame_reader;

typedef enum rw_frame_event {
    RW_FRAME_MORE,  // nothing whole yet: receive more
    RW_FRAME_READY, // a frame was given
    RW_FRAME_BROKEN // framing error: reader->error; say so and close
} rw_frame_event;

// Starts empty. Memory is charged to `alloc` and grows with what was received, never with what a
// header claims: at most about twice the bytes received.
void rw_frame_reader_init(rw_frame_reader* reader, rw_alloc* alloc, uint32_t max_message);
void rw_frame_reader_finish(rw_frame_reader* reader);

// Room to receive into: at least `wanted` bytes at the returned pointer, their number in `*space`.
// NULL when memory is exhausted. Views given before become invalid.
uint8_t* rw_frame_reader_space(rw_frame_reader* reader, size_t wanted, size_t* space);

// Says that `count` bytes were received into that room.
void rw_frame_reader_received(rw_frame_reader* reader, size_t count);

// Gives the next whole frame; its payload is valid until the next rw_frame_reader_space.
rw_frame_event rw_frame_read(rw_frame_reader* reader, rw_frame_view* frame);

// Bytes received that are not part of a frame given out yet.
size_t rw_frame_reader_pending(const rw_frame_reader* reader);

// ---- Writing and compression ----

// Appends header and payload to `out`. With a context and at least `compress_above` bytes the
// payload is compressed (zstd level 1) when that makes it smaller. RESOURCE_EXHAUSTED leaves `out`
// as it was.
rw_status rw_frame_append(rw_buffer* out, rw_frame_kind kind, const void* payload, size_t size,
                          ZSTD_CCtx* context, size_t compress_above);

// Finishes a frame whose payload was written into `out` behind room for a header: `start` is where
// the header goes; the payload is everything behind it. Compresses as rw_frame_append does.
rw_status rw_frame_close(rw_buffer* out, size_t start, rw_frame_kind kind, ZSTD_CCtx* context,
                         size_t compress_above);

// Gives the payload as the message's bytes: as it is, or decompressed into `scratch` (whose old
// content is dropped; it must outlive the message). INVALID_ARGUMENT when it is damaged or exceeds
// `max_message`. One context and one scratch per thread.
rw_status rw_frame_payload(const rw_frame_view* frame, ZSTD_DCtx* context, uint32_t max_message,
                           rw_buffer* scratch, const uint8_t** bytes, size_t* size, rw_error* error);
