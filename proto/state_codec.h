// State frames: what a stream carries, as bytes. This header holds the format and what encoder
// (state_encoder.h) and decoder (state_decoder.h) share. Pure functions on memory: no I/O, no
// clock. Any thread; an object belongs to one thread at a time, a workspace to one thread for good.
//
// A frame holds TRACKS: one array of 3 (position, velocities) or 4 (rotation) numbers per element.
// Elements are bodies or rod nodes; neighbours along a rod form CHAINS (a body is a chain of one).
// A KEY frame stands alone; every other frame is predicted from the last key frame only, so any
// subset of the others may be missing. All numbers are little-endian.
//
//   header, 48 bytes, never compressed
//   +0   u32 magic "RWS1"            +16  u64 step
//   +4   u8  flags: 1 key, 2 zstd    +24  f64 time [s]
//   +5   u8  0                       +32  u64 sequence
//   +6   u16 track count             +40  u64 key sequence (= sequence in a key frame)
//   +8   u32 epoch
//   +12  u32 body bytes (after decompression)
//
//   body: one zstd frame, or plain when flag 2 is missing
//   +--------------------------------------------------------------------------------------------+
//   | track table (key frames only), per track: u8 field, u8 0 x3, u32 count, u32 run count,     |
//   |     u32 0, f64 step, then run count x {u32 chain length, u32 how many such chains}         |
//   +--------------------------------------------------------------------------------------------+
//   | records, per track: u8 coding, u8 order, u8 width, u8 flags (1 from key, 2 index plane),   |
//   |     u32 exception count                                                                    |
//   +--------------------------------------------------------------------------------------------+
//   | byte planes: plane 0 (lowest bytes) of every track, then plane 1 of every track of width   |
//   |     >= 2, ...; within a plane component after component, `count` bytes each                |
//   +--------------------------------------------------------------------------------------------+
//   | index planes, per track with flag 2: `count` bytes 0..3                                    |
//   +--------------------------------------------------------------------------------------------+
//   | exceptions, per track: u32 element x exceptions, then f64 components x exceptions          |
//   +--------------------------------------------------------------------------------------------+
//
// An integer of `width` bytes is a zigzag value of a residual: the difference of the given order
// (0, 1, 2) along each chain of the integers, less the key frame's integers when flagged. The
// first of a chain is kept as it is, the second as a first difference. All sums wrap.
//   coding 0, quantised vector: value = integer * step (32 bits)
//   coding 0, quantised rotation: the three components but the one that `index` names (its place is
//       taken by w; 0 = w is left out), times step; the missing one is the positive root. "From
//       key" the rotation is RELATIVE: q = r * q_key, r decoded from the integers themselves.
//   coding 1, lossless: the bits of the double, as integers whose order is that of the numbers
//       (all but the sign bit flipped when it is set; 64 bits), 3 or 4 components.
// Exceptions overwrite whole elements with exact doubles: what no integer could hold.
// docs/state-frames.md tells the same to authors of clients, with the reasons and figures.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/buffer.h"
#include "solvers/base/status.h"

#define RW_STATE_CODEC_MAGIC 0x31535752u // "RWS1"
#define RW_STATE_CODEC_HEADER_BYTES 48
#define RW_STATE_CODEC_MAX_TRACKS 16
#define RW_STATE_CODEC_MAX_COUNT (1 << 26) // elements of a track

typedef enum rw_state_codec_mode {
    RW_STATE_CODEC_LOSSLESS = 0,  // the bits of the doubles, NaN and -0 included
    RW_STATE_CODEC_QUANTIZED = 1, // within a bound per track
} rw_state_codec_mode;

// The numbers are those of ropewalk.v1.Stream.Field.
typedef enum rw_state_codec_field {
    RW_STATE_CODEC_POSITION = 0,         // 3 doubles [m]
    RW_STATE_CODEC_ROTATION = 1,         // 4: unit quaternion w, x, y, z
    RW_STATE_CODEC_LINEAR_VELOCITY = 2,  // 3 [m/s]
    RW_STATE_CODEC_ANGULAR_VELOCITY = 3, // 3 [rad/s]
    RW_STATE_CODEC_FIELD_COUNT = 4,
} rw_state_codec_field;

// How a track's numbers are coded, and the flags of its record (the format above).
enum { RW_STATE_CODEC_CODING_QUANTIZED = 0, RW_STATE_CODEC_CODING_LOSSLESS = 1 };
enum { RW_STATE_CODEC_FROM_KEY = 1, RW_STATE_CODEC_HAS_INDEX = 2 };

// What stands before the body of every frame. Readable without decompression or key frame.
typedef struct rw_state_codec_header {
    uint32_t epoch;        // rises when the elements change and after Restore
    uint64_t step;         // of the world
    double time;           // of the world [s]
    uint64_t sequence;     // counts the frames of this encoder
    uint64_t key_sequence; // the frame it is predicted from; itself for a key frame
    uint32_t body_bytes;   // size of the body after decompression
    int32_t track_count;
    bool is_key;
    bool is_compressed;
} rw_state_codec_header;

// Scratch memory and compression contexts of one thread, shared by all encoders and decoders it
// runs. Grows to the largest frame seen and then allocates no more. `decompress` stays NULL until a
// decoder needs it.
typedef struct rw_state_codec_workspace {
    rw_alloc* alloc;                // borrowed; the contexts are charged to it as well
    struct ZSTD_CCtx_s* compress;   // owned
    struct ZSTD_DCtx_s* decompress; // owned
    rw_buffer integers;             // values of one track, then residuals
    rw_buffer body;                 // body before compression
    rw_buffer frame;                // header and compressed body
} rw_state_codec_workspace;

// Starts an empty workspace charged to `alloc` (a thread's or the process's account, not a
// session's). Nothing is allocated yet.
void rw_state_codec_init_workspace(rw_state_codec_workspace* workspace, rw_alloc* alloc);

// Frees contexts and buffers.
void rw_state_codec_finish_workspace(rw_state_codec_workspace* workspace);

// Gives memory back that a large stream left behind: every buffer over `keep_bytes`, and the contexts
// if any was. The next use takes it anew. For a thread that has just closed a large session.
void rw_state_codec_trim_workspace(rw_state_codec_workspace* workspace, size_t keep_bytes);

// Doubles per element of a field: 4 for rotations, 3 otherwise.
int32_t rw_state_codec_components(rw_state_codec_field field);

// The bound of a field, given those of Subscribe [m, rad]. A velocity may be off by what adds up to
// the bound of position (rotation) in 10 ms: 1 mm/s and 0.1 rad/s by default.
double rw_state_codec_field_bound(rw_state_codec_field field, double position_bound,
                                  double rotation_bound);

// The quantisation step that keeps the error of a vector (Euclidean) or of a rotation (angle)
// within `bound`. Vectors: 2 bound / sqrt(3). Rotations: two half-steps of bound / 7, since a
// half-step e turns by at most 6.93 e; above 0.02 rad bound / 8, and no more than 0.2 rad is used.
double rw_state_codec_step(rw_state_codec_field field, double bound);

// Reads and checks the first 48 bytes. DATA_LOSS when they are no header of this version; nothing
// is said about the body.
rw_status rw_state_codec_read_header(const void* data, size_t size_bytes,
                                     rw_state_codec_header* header, rw_error* error);

// Writes 48 bytes.
void rw_state_codec_write_header(const rw_state_codec_header* header, unsigned char* out);

// Makes sure that the compression (decompression) context exists. RESOURCE_EXHAUSTED.
rw_status rw_state_codec_open_compressor(rw_state_codec_workspace* workspace, rw_error* error);
rw_status rw_state_codec_open_decompressor(rw_state_codec_workspace* workspace, rw_error* error);

// Makes `buffer` at least `bytes` long; its contents are undefined afterwards. RESOURCE_EXHAUSTED.
rw_status rw_state_codec_room(rw_buffer* buffer, size_t bytes, rw_error* error);
