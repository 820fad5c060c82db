// The state-frame decoder on any bytes, and encoder and decoder on any numbers.
//
// Input: u8 what. 0: the rest is a list of {u16 size, frame} for one decoder. Otherwise the rest
// is numbers: they are streamed in the mode and with the bounds that `what` chooses, and what comes
// out must keep the bounds (LOSSLESS: the bits).
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/state_decoder.h"
#include "proto/state_encoder.h"
#include "solvers/base/check.h"

#define MAX_ELEMENTS 4096

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void decode_list(rw_alloc* alloc, rw_state_codec_workspace* workspace, const uint8_t* data,
                        size_t size) {
    rw_state_decoder* decoder;
    RW_CHECK(rw_state_decoder_create(MAX_ELEMENTS, alloc, &decoder, NULL) == RW_STATUS_OK);
    size_t at = 0;
    while (size - at >= 2) {
        size_t length = data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        length = length < size - at ? length : size - at;
        unsigned char* frame = malloc(length + 1); // a sanitizer sees reads beyond it
        memcpy(frame, data + at, length);
        at += length;
        rw_state_decoder_frame decoded;
        rw_error error = {0};
        if (rw_state_decoder_decode(decoder, workspace, frame, length, &decoded, &error) ==
            RW_STATUS_OK) {
            double sum = 0.0; // reads every number handed out
            for (int32_t t = 0; t < decoded.header.track_count; t++) {
                const rw_state_decoder_track* track = &decoded.tracks[t];
                for (int32_t i = 0; i < track->count * track->components; i++) {
                    sum += track->data[i];
                }
                RW_CHECK(track->chain_starts[track->chain_count] == track->count);
            }
            volatile double keep = sum;
            (void)keep;
        } else {
            RW_CHECK(error.text[0] != '\0');
        }
        free(frame);
    }
    rw_state_decoder_destroy(decoder);
}

static void check_vectors(const double* given, const double* got, int32_t count, double bound) {
    for (int32_t i = 0; i < count; i++) {
        double square = 0.0;
        for (int k = 0; k < 3; k++) {
            square += (given[i * 3 + k] - got[i * 3 + k]) * (given[i * 3 + k] - got[i * 3 + k]);
        }
        RW_CHECK(sqrt(square) <= bound);
    }
}

// Frames of `per` vectors and as many rotations, of which most are made unit.
static void stream_numbers(rw_alloc* alloc, rw_state_codec_workspace* workspace, int what,
                           const uint8_t* data, size_t size) {
    static double vectors[3 * 64], rotations[4 * 64];
    static const double bounds[4] = {1e-5, 1e-3, 0.1, 1e-9};
    double bound = bounds[what >> 1 & 3];
    int32_t per = 1 + (what >> 3) % 29;
    rw_state_codec_mode mode = (what & 1) != 0 ? RW_STATE_CODEC_QUANTIZED : RW_STATE_CODEC_LOSSLESS;
    int32_t starts[2] = {0, per / 2};
    rw_state_encoder_track tracks[2] = {
        {RW_STATE_CODEC_POSITION, per, per > 3 ? 2 : 0, starts, bound},
        {RW_STATE_CODEC_ROTATION, per, per > 3 ? 2 : 0, starts, bound}};
    rw_state_encoder_options options = {mode, 3, (what & 64) != 0};
    rw_state_encoder* encoder;
    rw_state_decoder* decoder;
    RW_CHECK(rw_state_encoder_create(tracks, 2, &options, alloc, &encoder, NULL) == RW_STATUS_OK);
    RW_CHECK(rw_state_decoder_create(MAX_ELEMENTS, alloc, &decoder, NULL) == RW_STATUS_OK);
    size_t frame_bytes = (size_t)per * 7 * sizeof(double);
    for (uint64_t step = 0; size >= frame_bytes; step++) {
        memcpy(vectors, data, (size_t)per * 24);
        memcpy(rotations, data + (size_t)per * 24, (size_t)per * 32);
        data += frame_bytes;
        size -= frame_bytes;
        for (int32_t i = 0; i < per; i++) {
            double *q = rotations + i * 4, length = 0.0;
            for (int k = 0; k < 4; k++) {
                length += q[k] * q[k];
            }
            for (int k = 0; k < 4 && isnormal(length) && (what & 128) == 0; k++) {
                q[k] /= sqrt(length);
            }
        }
        rw_state_encoder_stamp stamp = {1, step, (double)step, false};
        rw_state_encoder_input inputs[2] = {{.data = vectors}, {.data = rotations}};
        rw_state_encoder_frame frame;
        rw_status status =
            rw_state_encoder_encode(encoder, workspace, &stamp, inputs, &frame, NULL);
        if (status != RW_STATUS_OK) {
            RW_CHECK(status == RW_STATUS_INVALID_ARGUMENT && mode == RW_STATE_CODEC_QUANTIZED);
            continue;
        }
        RW_CHECK(frame.size_bytes <= rw_state_encoder_bound(encoder));
        unsigned char* bytes = malloc(frame.size_bytes);
        memcpy(bytes, frame.data, frame.size_bytes);
        rw_state_decoder_frame decoded;
        RW_CHECK(rw_state_decoder_decode(decoder, workspace, bytes, frame.size_bytes, &decoded,
                                         NULL) == RW_STATUS_OK);
        free(bytes);
        if (mode == RW_STATE_CODEC_QUANTIZED) {
            check_vectors(vectors, decoded.tracks[0].data, per, bound);
            for (int32_t i = 0; i < per; i++) {
                const double *q = rotations + i * 4, *r = decoded.tracks[1].data + i * 4;
                double minus = 0.0, plus = 0.0;
                for (int k = 0; k < 4; k++) {
                    minus += (q[k] - r[k]) * (q[k] - r[k]);
                    plus += (q[k] + r[k]) * (q[k] + r[k]);
                }
                // 2e-6: a given quaternion may be off unit by 1e-6 of its square
                RW_CHECK(4.0 * asin(fmin(1.0, sqrt(fmin(minus, plus)) / 2)) <= bound + 2e-6);
            }
        } else {
            RW_CHECK(memcmp(vectors, decoded.tracks[0].data, (size_t)per * 24) == 0);
            RW_CHECK(memcmp(rotations, decoded.tracks[1].data, (size_t)per * 32) == 0);
        }
    }
    rw_state_encoder_destroy(encoder);
    rw_state_decoder_destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) {
        return 0;
    }
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_workspace workspace;
    rw_state_codec_init_workspace(&workspace, &alloc);
    if (data[0] == 0) {
        decode_list(&alloc, &workspace, data + 1, size - 1);
    } else {
        stream_numbers(&alloc, &workspace, data[0], data + 1, size - 1);
    }
    rw_state_codec_finish_workspace(&workspace);
    rw_alloc_finish(&alloc);
    return 0;
}
