#define ZSTD_STATIC_LINKING_ONLY // as state_codec.c

// One frame:  encode -> for each track take (quantise, or take bits) -> less key -> difference ->
// split into planes; then assemble: table and records, planes by significance -> zstd.
//
// Each track stages its output in its own part of the workspace's body, 8 bytes per number:
//   quantised: planes 12 n | index plane n | exceptions (at most n / 8 elements)
//   lossless:  planes 8 n components

#include "proto/state_encoder.h"

#include <math.h>
#include <string.h>
#include <zstd.h>

#include "proto/state_bytes.h"
#include "proto/state_lanes.h"
#include "proto/state_quantize.h"
#include "proto/state_rotation.h"
#include "solvers/base/check.h"

#define DEFAULT_KEY_INTERVAL 240 // one second of the usual rates, four of slow ones
#define FLUSH_BYTES 1024         // a section this long gets entropy tables of its own
#define HEAD_BYTES (32 * RW_STATE_CODEC_MAX_TRACKS)

typedef struct track_state {
    rw_state_codec_field field;
    int32_t count;
    int32_t components;
    rw_state_lanes_chains chains; // owned
    bool is_lonely;               // no element has a neighbour
    int32_t run_count;            // of equal chain lengths
    double step;                  // 0 = never quantised
    uint32_t* key_integers;       // 3 n, component after component (QUANTIZED)
    unsigned char* key_index;     // n (QUANTIZED rotation)
    double* key_rotation;         // 4 n, component after component, as decoded (QUANTIZED rotation)
    uint64_t* key_bits;           // components n (LOSSLESS)
    bool is_key_quantized;        // the key frame has integers of this track
    // of the frame under way
    unsigned char* stage;
    int coding, order, width, flags;
    int32_t exception_count;
} track_state;

struct rw_state_encoder {
    rw_alloc* alloc;
    rw_state_codec_mode mode;
    int32_t key_interval;
    bool fixed_keys;
    bool has_key, wants_key;
    uint32_t epoch;
    uint64_t next_sequence, key_sequence;
    uint64_t bytes_since_key, frames_since_key; // both with the key
    size_t body_capacity;                       // staged bytes at most
    int32_t max_count;
    int32_t track_count;
    track_state tracks[RW_STATE_CODEC_MAX_TRACKS];
};

static const double* element(const rw_state_encoder_input* input, int32_t i) {
    return input->data + (ptrdiff_t)input->stride * (input->index == NULL ? i : input->index[i]);
}

static rw_state_quantize_source source_of(const track_state* track,
                                          const rw_state_encoder_input* input) {
    return (rw_state_quantize_source){input->data, input->index, input->stride, track->count};
}

// ---- creation ----------------------------------------------------------------------------------

static rw_status check_track(const rw_state_encoder_track* track, rw_state_codec_mode mode,
                             rw_error* error) {
    if ((int)track->field < 0 || track->field >= RW_STATE_CODEC_FIELD_COUNT) {
        RW_FAIL(error, INVALID_ARGUMENT, "field", "no such field: %d", (int)track->field);
    }
    if (track->count < 0 || track->count > RW_STATE_CODEC_MAX_COUNT) {
        RW_FAIL(error, INVALID_ARGUMENT, "count", "must be in [0, %d], got %d",
                RW_STATE_CODEC_MAX_COUNT, track->count);
    }
    if (mode == RW_STATE_CODEC_QUANTIZED && !(track->bound > 0.0 && isfinite(track->bound))) {
        RW_FAIL(error, INVALID_ARGUMENT, "bound", "must be > 0, got %g", track->bound);
    }
    for (int32_t c = 0; c < track->chain_count; c++) {
        int32_t least = c == 0 ? 0 : track->chain_starts[c - 1] + 1;
        int32_t start = track->chain_starts[c];
        if (start < least || start >= track->count || (c == 0 && start != 0)) {
            RW_FAIL(error, INVALID_ARGUMENT, "chain_starts",
                    "must rise from 0 and stay below %d, got %d at %d", track->count, start, c);
        }
    }
    return RW_STATUS_OK;
}

static rw_status init_track(track_state* state, const rw_state_encoder_track* track,
                            rw_state_encoder* encoder) {
    rw_alloc* alloc = encoder->alloc;
    size_t n = (size_t)track->count;
    state->field = track->field;
    state->count = track->count;
    state->components = rw_state_codec_components(track->field);
    state->chains.count = track->chain_count > 0 ? track->chain_count : track->count;
    state->chains.starts = rw_alloc_array(alloc, (size_t)state->chains.count + 1, sizeof(int32_t));
    if (state->chains.starts == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    for (int32_t c = 0; c < state->chains.count; c++) {
        state->chains.starts[c] = track->chain_count > 0 ? track->chain_starts[c] : c;
    }
    state->chains.starts[state->chains.count] = track->count;
    state->is_lonely = state->chains.count == track->count;
    const int32_t* starts = state->chains.starts;
    for (int32_t c = 0; c < state->chains.count; c++) {
        state->run_count += c == 0 || starts[c + 1] - starts[c] != starts[c] - starts[c - 1];
    }
    if (encoder->mode == RW_STATE_CODEC_LOSSLESS) {
        state->key_bits = rw_alloc_array(alloc, n * (size_t)state->components, sizeof(uint64_t));
        return state->key_bits == NULL ? RW_STATUS_RESOURCE_EXHAUSTED : RW_STATUS_OK;
    }
    state->step = rw_state_codec_step(track->field, track->bound);
    state->key_integers = rw_alloc_array(alloc, n * 3, sizeof(uint32_t));
    if (state->key_integers == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    if (track->field == RW_STATE_CODEC_ROTATION) {
        state->key_index = rw_alloc_get(alloc, n);
        state->key_rotation = rw_alloc_array(alloc, n * 4, sizeof(double));
        if (state->key_index == NULL || state->key_rotation == NULL) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
    }
    // A component is up to 1: steps below 2^-30 would leave the integers.
    bool is_rotation = state->field == RW_STATE_CODEC_ROTATION;
    if (!isfinite(1.0 / state->step) ||
        (is_rotation && 1.0 / state->step >= RW_STATE_QUANTIZE_LIMIT)) {
        state->step = 0.0;
    }
    return RW_STATUS_OK;
}

rw_status rw_state_encoder_create(const rw_state_encoder_track* tracks, int32_t track_count,
                                  const rw_state_encoder_options* options, rw_alloc* alloc,
                                  rw_state_encoder** out, rw_error* error) {
    *out = NULL;
    if (track_count < 0 || track_count > RW_STATE_CODEC_MAX_TRACKS) {
        RW_FAIL(error, INVALID_ARGUMENT, "tracks", "at most %d, got %d", RW_STATE_CODEC_MAX_TRACKS,
                track_count);
    }
    if (options->key_interval < 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "key_interval", "must be >= 0, got %d",
                options->key_interval);
    }
    uint64_t body = HEAD_BYTES;
    for (int32_t t = 0; t < track_count; t++) {
        if (check_track(&tracks[t], options->mode, error) != RW_STATUS_OK) {
            return error == NULL ? RW_STATUS_INVALID_ARGUMENT
                                 : rw_status_prefix(error, "tracks[%d]", t);
        }
        // Planes or integers, then the runs of chain lengths.
        body +=
            (uint64_t)tracks[t].count * (uint64_t)rw_state_codec_components(tracks[t].field) * 8;
        body += (uint64_t)tracks[t].chain_count * 8 + 8;
    }
    if (body > UINT32_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, "tracks", "a state frame is limited to 4 GiB");
    }
    rw_state_encoder* encoder = rw_alloc_get(alloc, sizeof *encoder);
    if (encoder == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a stream");
    }
    encoder->alloc = alloc;
    encoder->mode = options->mode;
    encoder->key_interval =
        options->key_interval > 0 ? options->key_interval : DEFAULT_KEY_INTERVAL;
    encoder->fixed_keys = options->fixed_keys;
    encoder->track_count = track_count;
    encoder->body_capacity = (size_t)body;
    for (int32_t t = 0; t < track_count; t++) {
        if (tracks[t].count > encoder->max_count) {
            encoder->max_count = tracks[t].count;
        }
        if (init_track(&encoder->tracks[t], &tracks[t], encoder) != RW_STATUS_OK) {
            rw_state_encoder_destroy(encoder);
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the key frame of a stream");
        }
    }
    *out = encoder;
    return RW_STATUS_OK;
}

void rw_state_encoder_destroy(rw_state_encoder* encoder) {
    if (encoder == NULL) {
        return;
    }
    for (int32_t t = 0; t < encoder->track_count; t++) {
        track_state* track = &encoder->tracks[t];
        rw_alloc_free(encoder->alloc, track->chains.starts);
        rw_alloc_free(encoder->alloc, track->key_integers);
        rw_alloc_free(encoder->alloc, track->key_index);
        rw_alloc_free(encoder->alloc, track->key_rotation);
        rw_alloc_free(encoder->alloc, track->key_bits);
    }
    rw_alloc_free(encoder->alloc, encoder);
}

size_t rw_state_encoder_bound(const rw_state_encoder* encoder) {
    return RW_STATE_CODEC_HEADER_BYTES + encoder->body_capacity;
}

// ---- taking numbers ----------------------------------------------------------------------------

// Integers and indices of the rotations of a key frame. An index is kept along a chain as long as
// it may be, so that neighbours can be compared.
static bool take_key_rotations(track_state* track, const rw_state_encoder_input* input) {
    int32_t n = track->count;
    double inverse = 1.0 / track->step;
    bool good = true;
    for (int32_t c = 0; c < track->chains.count; c++) {
        int index = 0;
        for (int32_t i = track->chains.starts[c]; i < track->chains.starts[c + 1]; i++) {
            const double* p = element(input, i);
            double square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
            double v[3] = {0.0, 0.0, 0.0};
            if (fabs(square - 1.0) <= RW_STATE_QUANTIZE_UNIT_TOLERANCE) {
                double scale = 1.0 / sqrt(square);
                double q[4] = {p[0] * scale, p[1] * scale, p[2] * scale, p[3] * scale};
                index = rw_state_rotation_index(q, index);
                rw_state_rotation_pack(q, index, v);
            } else {
                good = false;
            }
            track->key_index[i] = (unsigned char)index;
            for (int k = 0; k < 3; k++) {
                track->key_integers[k * n + i] = rw_state_quantize_nearest(v[k] * inverse);
            }
        }
    }
    for (int32_t i = 0; i < n; i++) {
        double v[3], q[4];
        for (int k = 0; k < 3; k++) {
            v[k] = (int32_t)track->key_integers[k * n + i] * track->step;
        }
        rw_state_rotation_unpack(v, track->key_index[i], q);
        for (int k = 0; k < 4; k++) {
            track->key_rotation[k * n + i] = q[k];
        }
    }
    return good;
}

// The few rotations that are more than 120 degrees from the key: another index than w.
static void take_far_rotations(const track_state* track, const rw_state_encoder_input* input,
                               uint32_t* out, unsigned char* indices) {
    int32_t n = track->count;
    double inverse = 1.0 / track->step;
    for (int32_t i = 0; i < n; i++) {
        const double* p = element(input, i);
        double square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        indices[i] = 0;
        if (!(fabs(square - 1.0) <= RW_STATE_QUANTIZE_UNIT_TOLERANCE)) {
            continue;
        }
        double scale = 1.0 / sqrt(square), v[3], r[4];
        double q[4] = {p[0] * scale, p[1] * scale, p[2] * scale, p[3] * scale};
        double key[4] = {track->key_rotation[i], track->key_rotation[n + i],
                         track->key_rotation[2 * n + i], track->key_rotation[3 * n + i]};
        rw_state_rotation_relative(q, key, r);
        int index = rw_state_rotation_index(r, 0);
        if (index == 0) {
            continue;
        }
        indices[i] = (unsigned char)index;
        rw_state_rotation_pack(r, index, v);
        for (int k = 0; k < 3; k++) {
            out[k * n + i] = rw_state_quantize_nearest(v[k] * inverse);
        }
    }
}

// Integers of the rotations relative to the key frame's decoded ones. What is still within the
// bound of the key's rotation is coded as 0, or the key's own rounding would make noise for ever.
// Sets *is_far when take_far_rotations must follow; returns false when some element is no rotation.
static bool take_rotations(const track_state* track, const rw_state_encoder_input* input,
                           uint32_t* out, bool* is_far) {
    double half = 0.5 * (0.5 * track->step * 6.999999); // half the bound, and its sine squared
    double still = half * half * (1.0 - half * half / 3.0);
    rw_state_quantize_source source = source_of(track, input);
    return rw_state_quantize_rotations(&source, track->key_rotation, 1.0 / track->step, still, out,
                                       is_far);
}

static bool is_codable(const track_state* track, const double* p) {
    if (track->field == RW_STATE_CODEC_ROTATION) {
        double square = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        return fabs(square - 1.0) <= RW_STATE_QUANTIZE_UNIT_TOLERANCE;
    }
    double inverse = 1.0 / track->step;
    return fabs(p[0] * inverse) < RW_STATE_QUANTIZE_LIMIT &&
           fabs(p[1] * inverse) < RW_STATE_QUANTIZE_LIMIT &&
           fabs(p[2] * inverse) < RW_STATE_QUANTIZE_LIMIT;
}

// Counts the elements that no integer can hold; refuses what is not finite.
static rw_status count_exceptions(track_state* track, int32_t t,
                                  const rw_state_encoder_input* input, rw_error* error) {
    track->exception_count = 0;
    for (int32_t i = 0; i < track->count; i++) {
        const double* p = element(input, i);
        for (int32_t k = 0; k < track->components; k++) {
            if (!isfinite(p[k])) {
                rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, "", "%s: not a finite number",
                               track->field == RW_STATE_CODEC_ROTATION ? "rotation" : "vector");
                if (error != NULL) {
                    rw_status_prefix(error, "tracks[%d][%d]", t, i);
                }
                return RW_STATUS_INVALID_ARGUMENT;
            }
        }
        track->exception_count += !is_codable(track, p);
    }
    return RW_STATUS_OK;
}

// Writes the exceptions and gives each the key's integers, or zeros, so that it costs no residual.
static void write_exceptions(track_state* track, const rw_state_encoder_input* input,
                             uint32_t* integers) {
    int32_t n = track->count, written = 0;
    bool is_relative = track->field == RW_STATE_CODEC_ROTATION;
    unsigned char* indices = track->stage + (size_t)n * 13;
    unsigned char* values = indices + (size_t)track->exception_count * 4;
    for (int32_t i = 0; i < n; i++) {
        const double* p = element(input, i);
        if (is_codable(track, p)) {
            continue;
        }
        rw_state_bytes_put_u32(indices + (size_t)written * 4, (uint32_t)i);
        memcpy(values + (size_t)written * (size_t)track->components * 8, p,
               (size_t)track->components * 8);
        written++;
        for (int k = 0; k < 3; k++) {
            bool from_key = (track->flags & RW_STATE_CODEC_FROM_KEY) != 0 && !is_relative;
            integers[k * n + i] = from_key ? track->key_integers[k * n + i] : 0;
        }
    }
}

// ---- tracks ------------------------------------------------------------------------------------

static void finish_integers(track_state* track, const uint32_t* values, uint32_t* residuals) {
    int32_t n = track->count;
    uint32_t bits = 0;
    track->order = track->is_lonely ? 0 : rw_state_lanes_choose_order32(values, &track->chains, 3);
    for (int k = 0; k < 3; k++) {
        bits |= rw_state_lanes_difference32(values + (size_t)k * n, &track->chains, track->order,
                                            residuals + (size_t)k * n);
    }
    track->width = rw_state_lanes_width(bits);
    rw_state_lanes_split32(residuals, (size_t)n * 3, track->width, track->stage);
}

// Bits of the doubles as integers in the order of the numbers.
static void encode_lossless(track_state* track, const rw_state_encoder_input* input, bool is_key,
                            uint64_t* values, uint64_t* residuals) {
    size_t n = (size_t)track->count, components = (size_t)track->components;
    bool from_key = !is_key && track->key_bits != NULL;
    track->coding = RW_STATE_CODEC_CODING_LOSSLESS;
    track->exception_count = 0;
    track->flags = from_key ? RW_STATE_CODEC_FROM_KEY : 0;
    for (size_t i = 0; i < n; i++) {
        const double* p = element(input, (int32_t)i);
        for (size_t k = 0; k < components; k++) {
            uint64_t bits;
            memcpy(&bits, &p[k], sizeof bits);
            values[k * n + i] = bits ^ (((uint64_t)0 - (bits >> 63)) >> 1);
        }
    }
    if (from_key) {
        for (size_t i = 0; i < n * components; i++) {
            values[i] -= track->key_bits[i];
        }
    } else if (track->key_bits != NULL) {
        memcpy(track->key_bits, values, n * components * sizeof *values);
    }
    track->order = track->is_lonely
                       ? 0
                       : rw_state_lanes_choose_order64(values, &track->chains, track->components);
    uint64_t bits = 0;
    for (size_t k = 0; k < components; k++) {
        bits |= rw_state_lanes_difference64(values + k * n, &track->chains, track->order,
                                            residuals + k * n);
    }
    track->width = rw_state_lanes_width(bits);
    rw_state_lanes_split64(residuals, n * components, track->width, track->stage);
}

static bool has_nonzero(const unsigned char* bytes, int32_t count) {
    int any = 0;
    for (int32_t i = 0; i < count; i++) {
        any |= bytes[i];
    }
    return any != 0;
}

// Integers, less the key's; exceptions. Leaves coding LOSSLESS when too many elements have none.
static rw_status encode_quantized(track_state* track, int32_t t,
                                  const rw_state_encoder_input* input, bool is_key,
                                  uint32_t* values, uint32_t* residuals, rw_error* error) {
    int32_t n = track->count;
    bool is_rotation = track->field == RW_STATE_CODEC_ROTATION;
    bool from_key = !is_key && track->is_key_quantized;
    unsigned char* indices = track->stage + (size_t)n * 12;
    bool is_far = false, good;
    track->exception_count = 0;
    track->flags = from_key ? RW_STATE_CODEC_FROM_KEY : 0;
    if (!is_key && !from_key) {
        // The key had no integers to be compared with: the track stays exact until the next key.
        RW_TRY(count_exceptions(track, t, input, error));
        track->coding = RW_STATE_CODEC_CODING_LOSSLESS;
        return RW_STATUS_OK;
    }
    if (!is_rotation) {
        rw_state_quantize_source source = source_of(track, input);
        good = rw_state_quantize_vectors(&source, 1.0 / track->step,
                                         is_key ? track->key_integers : values);
    } else if (is_key) {
        good = take_key_rotations(track, input);
    } else {
        good = take_rotations(track, input, values, &is_far);
    }
    if (!good) {
        RW_TRY(count_exceptions(track, t, input, error));
        if (track->exception_count > n / 8) {
            track->exception_count = 0;
            track->coding = RW_STATE_CODEC_CODING_LOSSLESS;
            return RW_STATUS_OK;
        }
        write_exceptions(track, input, is_key ? track->key_integers : values);
    }
    track->coding = RW_STATE_CODEC_CODING_QUANTIZED;
    if (is_rotation) {
        if (is_key) {
            memcpy(indices, track->key_index, (size_t)n);
        } else if (is_far) {
            take_far_rotations(track, input, values, indices);
        }
        if ((is_key || is_far) && has_nonzero(indices, n)) {
            track->flags |= RW_STATE_CODEC_HAS_INDEX;
        }
    } else if (from_key) {
        for (int32_t i = 0; i < 3 * n; i++) {
            values[i] -= track->key_integers[i];
        }
    }
    finish_integers(track, is_key ? track->key_integers : values, residuals);
    return RW_STATUS_OK;
}

static rw_status encode_track(rw_state_encoder* encoder, int32_t t,
                              const rw_state_encoder_input* given, bool is_key,
                              rw_state_codec_workspace* workspace, rw_error* error) {
    track_state* track = &encoder->tracks[t];
    rw_state_encoder_input input = *given;
    input.stride = input.stride == 0 ? track->components : input.stride;
    uint64_t* values = (uint64_t*)(void*)workspace->integers.data;
    uint64_t* residuals = values + (size_t)encoder->max_count * 4;
    track->coding = RW_STATE_CODEC_CODING_LOSSLESS;
    if (encoder->mode == RW_STATE_CODEC_QUANTIZED) {
        if (track->step > 0.0) {
            RW_TRY(encode_quantized(track, t, &input, is_key, (uint32_t*)(void*)values,
                                    (uint32_t*)(void*)residuals, error));
        } else {
            RW_TRY(count_exceptions(track, t, &input, error));
        }
        if (is_key) {
            track->is_key_quantized = track->coding == RW_STATE_CODEC_CODING_QUANTIZED;
        }
    }
    if (track->coding == RW_STATE_CODEC_CODING_LOSSLESS) {
        encode_lossless(track, &input, is_key, values, residuals);
    }
    return RW_STATUS_OK;
}

// ---- the frame ---------------------------------------------------------------------------------

typedef struct piece {
    const unsigned char* data;
    size_t size_bytes;
    bool ends_section;
} piece;

// head, 8 planes, indices, exceptions
#define MAX_PIECES (1 + 10 * RW_STATE_CODEC_MAX_TRACKS)

// Writes track table (of a key frame) and records; returns their size.
static size_t write_head(const rw_state_encoder* encoder, bool is_key, unsigned char* out) {
    unsigned char* at = out;
    for (int32_t t = 0; is_key && t < encoder->track_count; t++) {
        const track_state* track = &encoder->tracks[t];
        const int32_t* starts = track->chains.starts;
        memset(at, 0, 24);
        at[0] = (unsigned char)track->field;
        rw_state_bytes_put_u32(at + 4, (uint32_t)track->count);
        rw_state_bytes_put_u32(at + 8, (uint32_t)track->run_count);
        rw_state_bytes_put_f64(at + 16, track->step);
        at += 24;
        for (int32_t c = 0; c < track->chains.count;) {
            int32_t length = starts[c + 1] - starts[c], repeat = 0;
            while (c < track->chains.count && starts[c + 1] - starts[c] == length) {
                repeat++;
                c++;
            }
            rw_state_bytes_put_u32(at, (uint32_t)length);
            rw_state_bytes_put_u32(at + 4, (uint32_t)repeat);
            at += 8;
        }
    }
    for (int32_t t = 0; t < encoder->track_count; t++) {
        const track_state* track = &encoder->tracks[t];
        at[0] = (unsigned char)track->coding;
        at[1] = (unsigned char)track->order;
        at[2] = (unsigned char)track->width;
        at[3] = (unsigned char)track->flags;
        rw_state_bytes_put_u32(at + 4, (uint32_t)track->exception_count);
        at += 8;
    }
    return (size_t)(at - out);
}

// Lists the parts of the body in the order of the format; returns how many.
static int list_pieces(const rw_state_encoder* encoder, const unsigned char* head,
                       size_t head_bytes, piece* pieces) {
    int count = 0;
    pieces[count++] = (piece){head, head_bytes, false};
    for (int p = 0; p < 8; p++) {
        size_t section = 0;
        for (int32_t t = 0; t < encoder->track_count; t++) {
            const track_state* track = &encoder->tracks[t];
            bool is_quantized = track->coding == RW_STATE_CODEC_CODING_QUANTIZED;
            size_t numbers =
                (size_t)track->count * (size_t)(is_quantized ? 3 : track->components);
            if (p < track->width) {
                pieces[count++] = (piece){track->stage + (size_t)p * numbers, numbers, false};
                section += numbers;
            }
        }
        pieces[count - 1].ends_section = section >= FLUSH_BYTES;
    }
    for (int32_t t = 0; t < encoder->track_count; t++) {
        const track_state* track = &encoder->tracks[t];
        if ((track->flags & RW_STATE_CODEC_HAS_INDEX) != 0) {
            pieces[count++] =
                (piece){track->stage + (size_t)track->count * 12, (size_t)track->count, false};
        }
    }
    for (int32_t t = 0; t < encoder->track_count; t++) {
        const track_state* track = &encoder->tracks[t];
        if (track->exception_count > 0) {
            size_t bytes = (size_t)track->exception_count * (4 + 8 * (size_t)track->components);
            pieces[count++] = (piece){track->stage + (size_t)track->count * 13, bytes, false};
        }
    }
    return count;
}

// Compresses the pieces to `out` and tells the size: 0 when plain bytes are no longer.
static rw_status compress(ZSTD_CCtx* context, const piece* pieces, int count, size_t body_bytes,
                          unsigned char* out, size_t* size, rw_error* error) {
    *size = 0;
    ZSTD_CCtx_reset(context, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(context, body_bytes);
    ZSTD_outBuffer output = {out, body_bytes, 0};
    for (int i = 0; i < count; i++) {
        ZSTD_inBuffer input = {pieces[i].data, pieces[i].size_bytes, 0};
        ZSTD_EndDirective directive = i == count - 1           ? ZSTD_e_end
                                      : pieces[i].ends_section ? ZSTD_e_flush
                                                               : ZSTD_e_continue;
        size_t left;
        do {
            left = ZSTD_compressStream2(context, &output, &input, directive);
            if (ZSTD_isError(left)) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "", "a state frame can't be compressed: %s",
                        ZSTD_getErrorName(left));
            }
            if (output.pos == output.size) {
                return RW_STATUS_OK;
            }
        } while (input.pos < input.size || (directive != ZSTD_e_continue && left > 0));
    }
    *size = output.pos;
    return RW_STATUS_OK;
}

// Whether the last delta cost more than the frames since the key on average: the mean of a group
// of frames that cost ever more is least when the next would raise it.
static void note_size(rw_state_encoder* encoder, bool is_key, size_t bytes) {
    if (is_key) {
        encoder->bytes_since_key = 0;
        encoder->frames_since_key = 0;
    }
    encoder->bytes_since_key += bytes;
    encoder->frames_since_key++;
    bool is_dear = bytes * encoder->frames_since_key > encoder->bytes_since_key;
    encoder->wants_key = encoder->frames_since_key >= (uint64_t)encoder->key_interval ||
                         (!encoder->fixed_keys && !is_key && is_dear);
}

static rw_status reserve(rw_state_encoder* encoder, rw_state_codec_workspace* workspace,
                         rw_error* error) {
    RW_TRY(rw_state_codec_open_compressor(workspace, error));
    // One element at least: no arithmetic on a null pointer.
    size_t elements = encoder->max_count > 0 ? (size_t)encoder->max_count : 1;
    RW_TRY(rw_state_codec_room(&workspace->integers, elements * 2 * 4 * sizeof(uint64_t), error));
    RW_TRY(rw_state_codec_room(&workspace->body, encoder->body_capacity, error));
    return rw_state_codec_room(&workspace->frame, rw_state_encoder_bound(encoder), error);
}

rw_status rw_state_encoder_encode(rw_state_encoder* encoder, rw_state_codec_workspace* workspace,
                                  const rw_state_encoder_stamp* stamp,
                                  const rw_state_encoder_input* inputs,
                                  rw_state_encoder_frame* frame, rw_error* error) {
    RW_TRY(reserve(encoder, workspace, error));
    bool is_new_epoch = !encoder->has_key || stamp->epoch != encoder->epoch;
    bool is_key = stamp->key || is_new_epoch || encoder->wants_key;
    if (stamp->epoch != encoder->epoch) {
        encoder->next_sequence = 0;
        encoder->epoch = stamp->epoch;
    }
    encoder->has_key = false; // until this frame is done
    unsigned char* stage = workspace->body.data;
    for (int32_t t = 0; t < encoder->track_count; t++) {
        track_state* track = &encoder->tracks[t];
        track->stage = stage;
        stage += (size_t)track->count * (size_t)track->components * 8;
        RW_TRY(encode_track(encoder, t, &inputs[t], is_key, workspace, error));
    }
    size_t head_bytes = write_head(encoder, is_key, stage);
    piece pieces[MAX_PIECES];
    int piece_count = list_pieces(encoder, stage, head_bytes, pieces);
    size_t body_bytes = 0;
    for (int i = 0; i < piece_count; i++) {
        body_bytes += pieces[i].size_bytes;
    }
    unsigned char* out = workspace->frame.data;
    unsigned char* body = out + RW_STATE_CODEC_HEADER_BYTES;
    size_t compressed;
    RW_TRY(
        compress(workspace->compress, pieces, piece_count, body_bytes, body, &compressed, error));
    rw_state_codec_header header = {
        .epoch = stamp->epoch,
        .step = stamp->step,
        .time = stamp->time,
        .sequence = encoder->next_sequence,
        .key_sequence = is_key ? encoder->next_sequence : encoder->key_sequence,
        .body_bytes = (uint32_t)body_bytes,
        .track_count = encoder->track_count,
        .is_key = is_key,
        .is_compressed = compressed > 0,
    };
    if (compressed == 0) {
        for (int i = 0; i < piece_count; i++) {
            memcpy(body + compressed, pieces[i].data, pieces[i].size_bytes);
            compressed += pieces[i].size_bytes;
        }
    }
    rw_state_codec_write_header(&header, out);
    encoder->has_key = true;
    encoder->key_sequence = header.key_sequence;
    encoder->next_sequence++;
    *frame = (rw_state_encoder_frame){out, RW_STATE_CODEC_HEADER_BYTES + compressed,
                                      header.sequence, header.key_sequence, is_key};
    note_size(encoder, is_key, frame->size_bytes);
    return RW_STATUS_OK;
}
