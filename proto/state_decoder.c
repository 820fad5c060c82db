#include "proto/state_decoder.h"

#include <math.h>
#include <string.h>
#include <zstd.h>

#include "proto/state_bytes.h"
#include "proto/state_lanes.h"
#include "proto/state_rotation.h"
#include "solvers/base/check.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#define DEFAULT_MAX_ELEMENTS ((size_t)1 << 24)
#define MAX_BODY_PER_ELEMENT 64 // planes, index, chain run and exception of a rotation: 57

typedef struct track_state {
    rw_state_codec_field field;
    int32_t count;
    int32_t components;
    rw_state_lanes_chains chains; // owned
    double step;
    int key_coding;
    uint64_t* key_values; // integers (u32) or bits of the key frame, component after component
    double* key_rotation; // 4 n of a quantised rotation
    double* data;         // count x components, what the caller sees
    // of the frame under way
    int coding, order, width, flags;
    uint32_t exception_count;
    const unsigned char* planes[8];
    const unsigned char* indices;
    const unsigned char* exceptions;
} track_state;

struct rw_state_decoder {
    rw_alloc* alloc;
    size_t max_elements;
    bool has_key;
    uint32_t epoch;
    uint64_t key_sequence;
    int32_t track_count;
    unsigned char* table; // the track table that the tracks were made from
    size_t table_bytes;
    track_state tracks[RW_STATE_CODEC_MAX_TRACKS];
};

typedef struct cursor {
    const unsigned char* at;
    size_t left;
} cursor;

// The next `bytes` bytes, or NULL when there are not as many.
static const unsigned char* take(cursor* in, size_t bytes) {
    if (bytes > in->left) {
        return NULL;
    }
    const unsigned char* at = in->at;
    in->at += bytes;
    in->left -= bytes;
    return at;
}

rw_status rw_state_decoder_create(size_t max_elements, rw_alloc* alloc, rw_state_decoder** out,
                                  rw_error* error) {
    *out = rw_alloc_get(alloc, sizeof **out);
    if (*out == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a stream's decoder");
    }
    (*out)->alloc = alloc;
    (*out)->max_elements = max_elements > 0 ? max_elements : DEFAULT_MAX_ELEMENTS;
    return RW_STATUS_OK;
}

static void forget_layout(rw_state_decoder* decoder) {
    for (int32_t t = 0; t < RW_STATE_CODEC_MAX_TRACKS; t++) {
        track_state* track = &decoder->tracks[t];
        rw_alloc_free(decoder->alloc, track->chains.starts);
        rw_alloc_free(decoder->alloc, track->key_values);
        rw_alloc_free(decoder->alloc, track->key_rotation);
        rw_alloc_free(decoder->alloc, track->data);
        *track = (track_state){0};
    }
    rw_alloc_free(decoder->alloc, decoder->table);
    decoder->table = NULL;
    decoder->table_bytes = 0;
    decoder->track_count = 0;
    decoder->has_key = false;
}

void rw_state_decoder_destroy(rw_state_decoder* decoder) {
    if (decoder != NULL) {
        forget_layout(decoder);
        rw_alloc_free(decoder->alloc, decoder);
    }
}

// ---- layout ------------------------------------------------------------------------------------

#define BAD_FRAME(error, ...) RW_FAIL(error, DATA_LOSS, "", __VA_ARGS__)

// Checks the track table at `in` and moves past it; adds up elements.
static rw_status check_table(cursor* in, int32_t track_count, size_t max_elements,
                             rw_error* error) {
    size_t total = 0;
    for (int32_t t = 0; t < track_count; t++) {
        const unsigned char* entry = take(in, 24);
        if (entry == NULL) {
            BAD_FRAME(error, "track table cut short");
        }
        uint32_t count = rw_state_bytes_get_u32(entry + 4);
        uint32_t run_count = rw_state_bytes_get_u32(entry + 8);
        double step = rw_state_bytes_get_f64(entry + 16);
        if (entry[0] >= RW_STATE_CODEC_FIELD_COUNT || count > RW_STATE_CODEC_MAX_COUNT ||
            run_count > count || !(step >= 0.0 && step <= 1e12)) {
            BAD_FRAME(error, "track %d: bad field, count or step", t);
        }
        total += count;
        if (total > max_elements) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "a state frame of more than %zu elements",
                    max_elements);
        }
        const unsigned char* runs = take(in, (size_t)run_count * 8);
        if (runs == NULL) {
            BAD_FRAME(error, "track %d: chains cut short", t);
        }
        uint64_t elements = 0;
        for (uint32_t r = 0; r < run_count; r++) {
            uint64_t length = rw_state_bytes_get_u32(runs + r * 8);
            uint64_t repeat = rw_state_bytes_get_u32(runs + r * 8 + 4);
            if (length == 0 || repeat == 0 || length > count || repeat > count ||
                length * repeat > count - elements) {
                BAD_FRAME(error, "track %d: chains do not fit its elements", t);
            }
            elements += length * repeat;
        }
        if (elements != count) {
            BAD_FRAME(error, "track %d: chains do not fit its elements", t);
        }
    }
    return RW_STATUS_OK;
}

static rw_status make_track(rw_state_decoder* decoder, track_state* track,
                            const unsigned char* entry) {
    const unsigned char* runs = entry + 24;
    uint32_t run_count = rw_state_bytes_get_u32(entry + 8);
    size_t chain_count = 0, n = rw_state_bytes_get_u32(entry + 4);
    for (uint32_t r = 0; r < run_count; r++) {
        chain_count += rw_state_bytes_get_u32(runs + r * 8 + 4);
    }
    track->field = (rw_state_codec_field)entry[0];
    track->count = (int32_t)n;
    track->components = rw_state_codec_components(track->field);
    track->step = rw_state_bytes_get_f64(entry + 16);
    size_t numbers = n * (size_t)track->components;
    track->chains.count = (int32_t)chain_count;
    track->chains.starts = rw_alloc_array(decoder->alloc, chain_count + 1, sizeof(int32_t));
    track->key_values = rw_alloc_array(decoder->alloc, numbers, sizeof(uint64_t));
    track->data = rw_alloc_array(decoder->alloc, numbers, sizeof(double));
    if (track->field == RW_STATE_CODEC_ROTATION) {
        track->key_rotation = rw_alloc_array(decoder->alloc, numbers, sizeof(double));
    }
    if (track->chains.starts == NULL || track->key_values == NULL || track->data == NULL ||
        (track->field == RW_STATE_CODEC_ROTATION && track->key_rotation == NULL)) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    int32_t at = 0, c = 0;
    for (uint32_t r = 0; r < run_count; r++) {
        for (uint32_t k = rw_state_bytes_get_u32(runs + r * 8 + 4); k > 0; k--) {
            track->chains.starts[c++] = at;
            at += (int32_t)rw_state_bytes_get_u32(runs + r * 8);
        }
    }
    track->chains.starts[c] = at;
    return RW_STATUS_OK;
}

// Takes over the table of a key frame; allocates only when it differs from the last one.
static rw_status read_table(rw_state_decoder* decoder, cursor* in, int32_t track_count,
                            rw_error* error) {
    const unsigned char* table = in->at;
    RW_TRY(check_table(in, track_count, decoder->max_elements, error));
    size_t bytes = (size_t)(in->at - table);
    if (decoder->table != NULL && decoder->track_count == track_count &&
        decoder->table_bytes == bytes && memcmp(decoder->table, table, bytes) == 0) {
        return RW_STATUS_OK;
    }
    forget_layout(decoder);
    decoder->table = rw_alloc_get(decoder->alloc, bytes);
    rw_status status = decoder->table == NULL ? RW_STATUS_RESOURCE_EXHAUSTED : RW_STATUS_OK;
    const unsigned char* entry = table;
    for (int32_t t = 0; t < track_count && status == RW_STATUS_OK; t++) {
        status = make_track(decoder, &decoder->tracks[t], entry);
        entry += 24 + (size_t)rw_state_bytes_get_u32(entry + 8) * 8;
    }
    if (status != RW_STATUS_OK) {
        forget_layout(decoder);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the elements of a stream");
    }
    memcpy(decoder->table, table, bytes);
    decoder->table_bytes = bytes;
    decoder->track_count = track_count;
    return RW_STATUS_OK;
}

// Reads and checks the records.
static rw_status read_records(rw_state_decoder* decoder, cursor* in, bool is_key, rw_error* error) {
    for (int32_t t = 0; t < decoder->track_count; t++) {
        track_state* track = &decoder->tracks[t];
        const unsigned char* record = take(in, 8);
        if (record == NULL) {
            BAD_FRAME(error, "records cut short");
        }
        track->coding = record[0];
        track->order = record[1];
        track->width = record[2];
        track->flags = record[3];
        track->exception_count = rw_state_bytes_get_u32(record + 4);
        bool is_quantized = track->coding == RW_STATE_CODEC_CODING_QUANTIZED;
        if (track->coding > RW_STATE_CODEC_CODING_LOSSLESS || track->order > 2 ||
            track->width > (is_quantized ? 4 : 8) ||
            (track->flags & ~(RW_STATE_CODEC_FROM_KEY | RW_STATE_CODEC_HAS_INDEX)) != 0) {
            BAD_FRAME(error, "track %d: bad record", t);
        }
        if ((track->flags & RW_STATE_CODEC_FROM_KEY) != 0 &&
            (is_key || track->key_coding != track->coding)) {
            BAD_FRAME(error, "track %d: predicted from a key that does not fit", t);
        }
        bool is_rotation = track->field == RW_STATE_CODEC_ROTATION;
        if ((track->flags & RW_STATE_CODEC_HAS_INDEX) != 0 && !(is_quantized && is_rotation)) {
            BAD_FRAME(error, "track %d: an index plane without rotations", t);
        }
        if (track->exception_count > (is_quantized ? (uint32_t)track->count : 0)) {
            BAD_FRAME(error, "track %d: more exceptions than elements", t);
        }
    }
    return RW_STATUS_OK;
}

// Finds planes, indices and exceptions; the body must end where they do.
static rw_status find_parts(rw_state_decoder* decoder, cursor* in, rw_error* error) {
    for (int p = 0; p < 8; p++) {
        for (int32_t t = 0; t < decoder->track_count; t++) {
            track_state* track = &decoder->tracks[t];
            bool is_quantized = track->coding == RW_STATE_CODEC_CODING_QUANTIZED;
            size_t components = (size_t)(is_quantized ? 3 : track->components);
            if (p < track->width &&
                (track->planes[p] = take(in, components * (size_t)track->count)) == NULL) {
                BAD_FRAME(error, "track %d: byte planes cut short", t);
            }
        }
    }
    for (int32_t t = 0; t < decoder->track_count; t++) {
        track_state* track = &decoder->tracks[t];
        track->indices = NULL;
        if ((track->flags & RW_STATE_CODEC_HAS_INDEX) == 0) {
            continue;
        }
        if ((track->indices = take(in, (size_t)track->count)) == NULL) {
            BAD_FRAME(error, "track %d: index plane cut short", t);
        }
        int any = 0;
        for (int32_t i = 0; i < track->count; i++) {
            any |= track->indices[i];
        }
        if (any > 3) {
            BAD_FRAME(error, "track %d: an index beyond 3", t);
        }
    }
    for (int32_t t = 0; t < decoder->track_count; t++) {
        track_state* track = &decoder->tracks[t];
        size_t count = track->exception_count;
        track->exceptions = take(in, count * (4 + 8 * (size_t)track->components));
        if (track->exceptions == NULL) {
            BAD_FRAME(error, "track %d: exceptions cut short", t);
        }
        int64_t last = -1;
        for (size_t e = 0; e < count; e++) {
            int64_t i = rw_state_bytes_get_u32(track->exceptions + e * 4);
            if (i <= last || i >= track->count) {
                BAD_FRAME(error, "track %d: exceptions out of order", t);
            }
            last = i;
        }
    }
    if (in->left != 0) {
        BAD_FRAME(error, "%zu bytes too many", in->left);
    }
    return RW_STATUS_OK;
}

// ---- numbers -----------------------------------------------------------------------------------

static void write_rotations(track_state* track, const uint32_t* values, bool is_key) {
    int32_t n = track->count;
    bool from_key = (track->flags & RW_STATE_CODEC_FROM_KEY) != 0;
    for (int32_t i = 0; i < n; i++) {
        double v[3], r[4];
        double* q = track->data + (size_t)i * 4;
        for (int k = 0; k < 3; k++) {
            v[k] = (int32_t)values[k * n + i] * track->step;
        }
        rw_state_rotation_unpack(v, track->indices == NULL ? 0 : track->indices[i], r);
        if (from_key) {
            rw_state_rotation_product(r, track->key_rotation + (size_t)i * 4, q);
        } else {
            memcpy(q, r, sizeof r);
        }
    }
    if (is_key) {
        memcpy(track->key_rotation, track->data, (size_t)n * 4 * sizeof(double));
    }
}

static void decode_quantized(track_state* track, uint32_t* values, bool is_key) {
    size_t n = (size_t)track->count;
    uint32_t* key = (uint32_t*)(void*)track->key_values;
    memset(values, 0, n * 3 * sizeof *values);
    for (int p = 0; p < track->width; p++) {
        rw_state_lanes_merge32(values, n * 3, p, track->planes[p]);
    }
    for (size_t k = 0; k < 3; k++) {
        rw_state_lanes_integrate32(values + k * n, &track->chains, track->order);
    }
    if (track->field == RW_STATE_CODEC_ROTATION) {
        write_rotations(track, values, is_key);
    } else {
        if ((track->flags & RW_STATE_CODEC_FROM_KEY) != 0) {
            for (size_t i = 0; i < n * 3; i++) {
                values[i] += key[i];
            }
        }
        if (is_key) {
            memcpy(key, values, n * 3 * sizeof *values);
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < 3; k++) {
                track->data[i * 3 + k] = (int32_t)values[k * n + i] * track->step;
            }
        }
    }
    size_t components = (size_t)track->components;
    const unsigned char* exact = track->exceptions + (size_t)track->exception_count * 4;
    for (size_t e = 0; e < track->exception_count; e++) {
        size_t i = rw_state_bytes_get_u32(track->exceptions + e * 4);
        memcpy(track->data + i * components, exact + e * components * 8, components * 8);
    }
}

static void decode_lossless(track_state* track, uint64_t* values, bool is_key) {
    size_t n = (size_t)track->count, components = (size_t)track->components;
    memset(values, 0, n * components * sizeof *values);
    for (int p = 0; p < track->width; p++) {
        rw_state_lanes_merge64(values, n * components, p, track->planes[p]);
    }
    for (size_t k = 0; k < components; k++) {
        rw_state_lanes_integrate64(values + k * n, &track->chains, track->order);
    }
    if ((track->flags & RW_STATE_CODEC_FROM_KEY) != 0) {
        for (size_t i = 0; i < n * components; i++) {
            values[i] += track->key_values[i];
        }
    }
    if (is_key) {
        memcpy(track->key_values, values, n * components * sizeof *values);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < components; k++) {
            uint64_t bits = values[k * n + i];
            bits ^= ((uint64_t)0 - (bits >> 63)) >> 1;
            memcpy(&track->data[i * components + k], &bits, sizeof bits);
        }
    }
}

// Decompresses (or borrows) the body.
static rw_status open_body(rw_state_codec_workspace* workspace, const rw_state_codec_header* header,
                           const void* data, size_t size_bytes, size_t max_elements, cursor* in,
                           rw_error* error) {
    const unsigned char* body = (const unsigned char*)data + RW_STATE_CODEC_HEADER_BYTES;
    size_t body_size = size_bytes - RW_STATE_CODEC_HEADER_BYTES;
    if (!header->is_compressed) {
        if (body_size != header->body_bytes) {
            BAD_FRAME(error, "a plain body of %zu bytes, %u announced", body_size,
                      header->body_bytes);
        }
        *in = (cursor){body, body_size};
        return RW_STATUS_OK;
    }
    if (header->body_bytes / MAX_BODY_PER_ELEMENT > max_elements + 1024) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "",
                "a state frame of %u bytes, for at most %zu elements", header->body_bytes,
                max_elements);
    }
    if (ZSTD_getFrameContentSize(body, body_size) != header->body_bytes) {
        BAD_FRAME(error, "a state frame's body is not zstd of %u bytes", header->body_bytes);
    }
    RW_TRY(rw_state_codec_open_decompressor(workspace, error));
    RW_TRY(rw_state_codec_room(&workspace->body, header->body_bytes, error));
    size_t size = ZSTD_decompressDCtx(workspace->decompress, workspace->body.data,
                                      header->body_bytes, body, body_size);
    if (ZSTD_isError(size) || size != header->body_bytes) {
        BAD_FRAME(error, "a state frame's body does not decompress to %u bytes",
                  header->body_bytes);
    }
    *in = (cursor){workspace->body.data, size};
    return RW_STATUS_OK;
}

static void describe(const rw_state_decoder* decoder, const rw_state_codec_header* header,
                     rw_state_decoder_frame* frame) {
    frame->header = *header;
    for (int32_t t = 0; t < decoder->track_count; t++) {
        const track_state* track = &decoder->tracks[t];
        frame->tracks[t] = (rw_state_decoder_track){
            .field = track->field,
            .count = track->count,
            .components = track->components,
            .chain_count = track->chains.count,
            .chain_starts = track->chains.starts,
            .data = track->data,
        };
    }
}

rw_status rw_state_decoder_decode(rw_state_decoder* decoder, rw_state_codec_workspace* workspace,
                                  const void* data, size_t size_bytes,
                                  rw_state_decoder_frame* frame, rw_error* error) {
    rw_state_codec_header header;
    RW_TRY(rw_state_codec_read_header(data, size_bytes, &header, error));
    if (!header.is_key && !(decoder->has_key && header.epoch == decoder->epoch &&
                            header.key_sequence == decoder->key_sequence &&
                            header.track_count == decoder->track_count)) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "the key frame %llu of epoch %u is missing",
                (unsigned long long)header.key_sequence, header.epoch);
    }
    cursor in = {0};
    if (header.is_key) {
        decoder->has_key = false; // until this one is done
    }
    RW_TRY(open_body(workspace, &header, data, size_bytes, decoder->max_elements, &in, error));
    if (header.is_key) {
        RW_TRY(read_table(decoder, &in, header.track_count, error));
    }
    RW_TRY(read_records(decoder, &in, header.is_key, error));
    RW_TRY(find_parts(decoder, &in, error));
    int32_t max_count = 1; // no arithmetic on a null pointer
    for (int32_t t = 0; t < decoder->track_count; t++) {
        max_count = decoder->tracks[t].count > max_count ? decoder->tracks[t].count : max_count;
    }
    RW_TRY(
        rw_state_codec_room(&workspace->integers, (size_t)max_count * 4 * sizeof(uint64_t), error));
    void* values = workspace->integers.data;
    for (int32_t t = 0; t < decoder->track_count; t++) {
        track_state* track = &decoder->tracks[t];
        if (track->count == 0) {
            // Nothing to decode, and no arrays to decode into.
        } else if (track->coding == RW_STATE_CODEC_CODING_LOSSLESS) {
            decode_lossless(track, values, header.is_key);
        } else {
            decode_quantized(track, values, header.is_key);
        }
        if (header.is_key) {
            track->key_coding = track->coding;
        }
    }
    if (header.is_key) {
        decoder->has_key = true;
        decoder->epoch = header.epoch;
        decoder->key_sequence = header.key_sequence;
    }
    describe(decoder, &header, frame);
    return RW_STATUS_OK;
}
