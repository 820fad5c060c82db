// Writes the stored state frames of tests/vectors/state_frames into the folder named on the command
// line: NAME.frames holds {u32 size, frame} one after another, NAME.numbers what the decoder of the day
// made of them (float64, track after track, frame after frame). Run by hand when the format
// changes; the stored files then prove that old frames still decode, in C and in Python.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/state_decoder.h"
#include "proto/state_encoder.h"

#define COUNT 36
#define FRAMES 7

static double position[COUNT * 3], rotation[COUNT * 4], velocity[COUNT * 3];

static void check(bool good, const char* what) {
    if (!good) {
        fprintf(stderr, "make_state_vectors: %s\n", what);
        exit(1);
    }
}

// Three swinging rods whose last one turns past 120 degrees; some elements leave the integers.
static void move(int frame) {
    double t = frame * 0.05;
    for (int i = 0; i < COUNT; i++) {
        double s = 0.2 * i, angle = s + (i < 24 ? 0.3 : 9.0) * t;
        position[i * 3] = 0.1 * cos(s) + 0.01 * sin(3 * t + s);
        position[i * 3 + 1] = 0.1 * sin(s) - (i / 12) * 2.0;
        position[i * 3 + 2] = 0.01 * i + 0.5 * t * t;
        rotation[i * 4] = cos(angle / 2);
        rotation[i * 4 + 1] = sin(angle / 2) * 0.6;
        rotation[i * 4 + 2] = sin(angle / 2) * 0.8 * cos(t);
        rotation[i * 4 + 3] = sin(angle / 2) * 0.8 * sin(t);
        velocity[i * 3] = cos(s + t);
        velocity[i * 3 + 1] = -0.0;
        velocity[i * 3 + 2] = t;
    }
    position[20 * 3 + 1] = 1e9 + frame;
    rotation[5 * 4] = frame == 4 ? 2.0 : rotation[5 * 4];
}

static void put(FILE* file, const void* data, size_t bytes) {
    check(fwrite(data, 1, bytes, file) == bytes, "cannot write");
}

static FILE* create(const char* folder, const char* name, const char* kind) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, kind);
    FILE* file = fopen(path, "wb");
    check(file != NULL, path);
    return file;
}

static void write_set(const char* folder, const char* name, rw_state_codec_mode mode,
                      int32_t chain_count) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_workspace workspace;
    rw_state_codec_init_workspace(&workspace, &alloc);
    static const int32_t starts[] = {0, 12, 30};
    rw_state_encoder_track tracks[] = {
        {RW_STATE_CODEC_POSITION, COUNT, chain_count, starts, 1e-5},
        {RW_STATE_CODEC_ROTATION, COUNT, chain_count, starts, 1e-3},
        {RW_STATE_CODEC_LINEAR_VELOCITY, COUNT, chain_count, starts, 1e-3},
    };
    rw_state_encoder_options options = {mode, 4, true};
    rw_state_encoder* encoder;
    rw_state_decoder* decoder;
    check(rw_state_encoder_create(tracks, 3, &options, &alloc, &encoder, NULL) == RW_STATUS_OK,
          "no encoder");
    check(rw_state_decoder_create(0, &alloc, &decoder, NULL) == RW_STATUS_OK, "no decoder");
    FILE* frames = create(folder, name, "frames");
    FILE* numbers = create(folder, name, "numbers");
    for (int frame = 0; frame < FRAMES; frame++) {
        move(frame);
        rw_state_encoder_stamp stamp = {3, (uint64_t)frame * 10, frame * 0.05, false};
        rw_state_encoder_input inputs[3] = {
            {.data = position}, {.data = rotation}, {.data = velocity}};
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        check(rw_state_encoder_encode(encoder, &workspace, &stamp, inputs, &encoded, NULL) ==
                  RW_STATUS_OK,
              "not encoded");
        unsigned char bytes[COUNT * 200];
        uint32_t size = (uint32_t)encoded.size_bytes;
        check(size <= sizeof bytes, "frame too large");
        memcpy(bytes, encoded.data, size);
        put(frames, &size, sizeof size);
        put(frames, bytes, size);
        check(rw_state_decoder_decode(decoder, &workspace, bytes, size, &decoded, NULL) ==
                  RW_STATUS_OK,
              "not decoded");
        for (int t = 0; t < 3; t++) {
            put(numbers, decoded.tracks[t].data,
                sizeof(double) * (size_t)(decoded.tracks[t].components * COUNT));
        }
    }
    check(fclose(frames) == 0 && fclose(numbers) == 0, "cannot write");
    rw_state_encoder_destroy(encoder);
    rw_state_decoder_destroy(decoder);
    rw_state_codec_finish_workspace(&workspace);
}

int main(int argc, char** argv) {
    check(argc == 2, "usage: make_state_vectors FOLDER");
    write_set(argv[1], "rods_quantized", RW_STATE_CODEC_QUANTIZED, 3);
    write_set(argv[1], "bodies_quantized", RW_STATE_CODEC_QUANTIZED, 0);
    write_set(argv[1], "rods_lossless", RW_STATE_CODEC_LOSSLESS, 3);
    return 0;
}
