#define ZSTD_STATIC_LINKING_ONLY // ZSTD_customMem: the contexts are charged to our account

#include "proto/state_codec.h"

#include <math.h>
#include <string.h>
#include <zstd.h>

#include "proto/state_bytes.h"
#include "solvers/base/check.h"

void rw_state_codec_init_workspace(rw_state_codec_workspace* workspace, rw_alloc* alloc) {
    *workspace = (rw_state_codec_workspace){.alloc = alloc};
    rw_buffer_init(&workspace->integers, alloc);
    rw_buffer_init(&workspace->body, alloc);
    rw_buffer_init(&workspace->frame, alloc);
}

void rw_state_codec_finish_workspace(rw_state_codec_workspace* workspace) {
    ZSTD_freeCCtx(workspace->compress);
    ZSTD_freeDCtx(workspace->decompress);
    rw_buffer_finish(&workspace->integers);
    rw_buffer_finish(&workspace->body);
    rw_buffer_finish(&workspace->frame);
    *workspace = (rw_state_codec_workspace){.alloc = workspace->alloc};
}

void rw_state_codec_trim_workspace(rw_state_codec_workspace* workspace, size_t keep_bytes) {
    rw_buffer* buffers[] = {&workspace->integers, &workspace->body, &workspace->frame};
    bool was_large = false;
    for (size_t i = 0; i < RW_COUNT_OF(buffers); i++) {
        if (buffers[i]->capacity_bytes > keep_bytes) {
            rw_buffer_finish(buffers[i]);
            was_large = true;
        }
    }
    if (was_large) {
        ZSTD_freeCCtx(workspace->compress);
        ZSTD_freeDCtx(workspace->decompress);
        workspace->compress = NULL;
        workspace->decompress = NULL;
    }
}

int32_t rw_state_codec_components(rw_state_codec_field field) {
    return field == RW_STATE_CODEC_ROTATION ? 4 : 3;
}

double rw_state_codec_field_bound(rw_state_codec_field field, double position_bound,
                                  double rotation_bound) {
    switch (field) {
    case RW_STATE_CODEC_POSITION:
        return position_bound;
    case RW_STATE_CODEC_ROTATION:
        return rotation_bound;
    case RW_STATE_CODEC_LINEAR_VELOCITY:
        return 100.0 * position_bound;
    case RW_STATE_CODEC_ANGULAR_VELOCITY:
    case RW_STATE_CODEC_FIELD_COUNT:
        break;
    }
    return 100.0 * rotation_bound;
}

double rw_state_codec_step(rw_state_codec_field field, double bound) {
    if (field == RW_STATE_CODEC_ROTATION) {
        // A half-step e in each of three components, where all four are 1/2, moves the fourth by
        // 3e (1 + 4e + ...): |dq| = sqrt(12) e (1 + 3e + ...), an angle of 6.93 e (1 + 3e + ...).
        // 7 covers the second order up to 0.02 rad, 8 up to 0.2 rad.
        if (bound <= 0.02) {
            return 2.0 * bound / 7.0;
        }
        return 2.0 * fmin(bound, 0.2) / 8.0;
    }
    // Half a step in each of three components; the last factor pays for rounding up to 2^30 steps.
    return 2.0 * bound / sqrt(3.0) * (1.0 - 1e-6);
}

void rw_state_codec_write_header(const rw_state_codec_header* header, unsigned char* out) {
    rw_state_bytes_put_u32(out, RW_STATE_CODEC_MAGIC);
    out[4] = (unsigned char)((header->is_key ? 1 : 0) | (header->is_compressed ? 2 : 0));
    out[5] = 0;
    out[6] = (unsigned char)(header->track_count & 0xff);
    out[7] = (unsigned char)(header->track_count >> 8);
    rw_state_bytes_put_u32(out + 8, header->epoch);
    rw_state_bytes_put_u32(out + 12, header->body_bytes);
    rw_state_bytes_put_u64(out + 16, header->step);
    rw_state_bytes_put_f64(out + 24, header->time);
    rw_state_bytes_put_u64(out + 32, header->sequence);
    rw_state_bytes_put_u64(out + 40, header->key_sequence);
}

rw_status rw_state_codec_read_header(const void* data, size_t size_bytes,
                                     rw_state_codec_header* header, rw_error* error) {
    const unsigned char* in = data;
    if (size_bytes < RW_STATE_CODEC_HEADER_BYTES) {
        RW_FAIL(error, DATA_LOSS, "", "a state frame of %zu bytes is too short", size_bytes);
    }
    if (rw_state_bytes_get_u32(in) != RW_STATE_CODEC_MAGIC) {
        RW_FAIL(error, DATA_LOSS, "", "not a state frame of this version");
    }
    *header = (rw_state_codec_header){
        .is_key = (in[4] & 1) != 0,
        .is_compressed = (in[4] & 2) != 0,
        .track_count = in[6] | in[7] << 8,
        .epoch = rw_state_bytes_get_u32(in + 8),
        .body_bytes = rw_state_bytes_get_u32(in + 12),
        .step = rw_state_bytes_get_u64(in + 16),
        .time = rw_state_bytes_get_f64(in + 24),
        .sequence = rw_state_bytes_get_u64(in + 32),
        .key_sequence = rw_state_bytes_get_u64(in + 40),
    };
    if ((in[4] & ~3) != 0 || in[5] != 0) {
        RW_FAIL(error, DATA_LOSS, "", "reserved bits of a state frame are set");
    }
    if (header->track_count > RW_STATE_CODEC_MAX_TRACKS) {
        RW_FAIL(error, DATA_LOSS, "", "%d tracks in a state frame, at most %d", header->track_count,
                RW_STATE_CODEC_MAX_TRACKS);
    }
    if (header->is_key != (header->sequence == header->key_sequence)) {
        RW_FAIL(error, DATA_LOSS, "", "key flag and key sequence of a state frame disagree");
    }
    return RW_STATUS_OK;
}

static void* allocate(void* opaque, size_t bytes) {
    return rw_alloc_get(opaque, bytes);
}

static void release(void* opaque, void* address) {
    rw_alloc_free(opaque, address);
}

rw_status rw_state_codec_open_compressor(rw_state_codec_workspace* workspace, rw_error* error) {
    if (workspace->compress == NULL) {
        ZSTD_customMem memory = {allocate, release, workspace->alloc};
        workspace->compress = ZSTD_createCCtx_advanced(memory);
        if (workspace->compress == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a compression context");
        }
        // Level 1: 3 is slower by a third and no smaller, negative ones code no entropy.
        ZSTD_CCtx_setParameter(workspace->compress, ZSTD_c_compressionLevel, 1);
    }
    return RW_STATUS_OK;
}

rw_status rw_state_codec_open_decompressor(rw_state_codec_workspace* workspace, rw_error* error) {
    if (workspace->decompress == NULL) {
        ZSTD_customMem memory = {allocate, release, workspace->alloc};
        workspace->decompress = ZSTD_createDCtx_advanced(memory);
        if (workspace->decompress == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a decompression context");
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_state_codec_room(rw_buffer* buffer, size_t bytes, rw_error* error) {
    buffer->size_bytes = 0;
    if (rw_buffer_reserve(buffer, bytes) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a state frame of %zu bytes", bytes);
    }
    return RW_STATUS_OK;
}
