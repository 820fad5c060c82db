// Recorded motion of rods for tests and benchmarks of streams: tests/vectors/motion, whose README
// says where it comes from. Test code only.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/state_decoder.h"
#include "proto/state_encoder.h"

// All frames as doubles. Positions are of nodes, rotations of elements: their counts differ.
typedef struct rw_motion {
    int32_t frame_count;
    int32_t position_count, rotation_count;
    int32_t position_chain_count, rotation_chain_count;
    int32_t *position_chains, *rotation_chains; // starts
    double* positions;                          // frame_count x position_count x 3
    double* rotations;                          // frame_count x rotation_count x 4
    double period_s;
} rw_motion;

static inline void* rw_motion_get(size_t bytes) {
    void* memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static inline void rw_motion_take_chains(const rw_state_decoder_track* track, int32_t* count,
                                         int32_t** starts) {
    *count = track->chain_count;
    *starts = rw_motion_get(sizeof(int32_t) * (size_t)track->chain_count);
    memcpy(*starts, track->chain_starts, sizeof(int32_t) * (size_t)track->chain_count);
}

static inline void rw_motion_append(rw_motion* motion, const rw_state_decoder_frame* frame) {
    if (motion->frame_count == 0) {
        motion->position_count = frame->tracks[0].count;
        motion->rotation_count = frame->tracks[1].count;
        rw_motion_take_chains(&frame->tracks[0], &motion->position_chain_count,
                              &motion->position_chains);
        rw_motion_take_chains(&frame->tracks[1], &motion->rotation_chain_count,
                              &motion->rotation_chains);
    }
    size_t at = (size_t)motion->frame_count++;
    size_t positions = (size_t)motion->position_count * 3 * sizeof(double);
    size_t rotations = (size_t)motion->rotation_count * 4 * sizeof(double);
    motion->positions = realloc(motion->positions, (at + 1) * positions);
    motion->rotations = realloc(motion->rotations, (at + 1) * rotations);
    if (motion->positions == NULL || motion->rotations == NULL) {
        abort();
    }
    memcpy((char*)motion->positions + at * positions, frame->tracks[0].data, positions);
    memcpy((char*)motion->rotations + at * rotations, frame->tracks[1].data, rotations);
}

// Reads `FOLDER/NAME.frames`. Returns false and says why on stderr when it can't.
static inline bool rw_motion_read(const char* folder, const char* name, rw_motion* motion) {
    *motion = (rw_motion){0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s.frames", folder, name);
    FILE* file = fopen(path, "rb");
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_workspace workspace;
    rw_state_codec_init_workspace(&workspace, &alloc);
    rw_state_decoder* decoder = NULL;
    rw_error error = {.text = "cannot be read"};
    bool good =
        file != NULL && rw_state_decoder_create(0, &alloc, &decoder, &error) == RW_STATUS_OK;
    uint32_t size;
    double last = 0.0;
    while (good && fread(&size, sizeof size, 1, file) == 1) {
        unsigned char* bytes = rw_motion_get(size);
        rw_state_decoder_frame frame;
        good = fread(bytes, 1, size, file) == size &&
               rw_state_decoder_decode(decoder, &workspace, bytes, size, &frame, &error) ==
                   RW_STATUS_OK;
        if (good) {
            rw_motion_append(motion, &frame);
            motion->period_s = frame.header.time - last;
            last = frame.header.time;
        }
        free(bytes);
    }
    if (!good) {
        fprintf(stderr, "%s: %s\n", path, error.text);
    }
    if (file != NULL) {
        fclose(file);
    }
    rw_state_decoder_destroy(decoder);
    rw_state_codec_finish_workspace(&workspace);
    rw_alloc_finish(&alloc);
    return good && motion->frame_count > 1;
}

static inline void rw_motion_finish(rw_motion* motion) {
    free(motion->position_chains);
    free(motion->rotation_chains);
    free(motion->positions);
    free(motion->rotations);
}

// The tracks of a stream of this motion; they borrow its chains.
static inline void rw_motion_tracks(const rw_motion* motion, double position_bound,
                                    double rotation_bound, rw_state_encoder_track tracks[2]) {
    tracks[0] = (rw_state_encoder_track){RW_STATE_CODEC_POSITION, motion->position_count,
                                         motion->position_chain_count, motion->position_chains,
                                         position_bound};
    tracks[1] = (rw_state_encoder_track){RW_STATE_CODEC_ROTATION, motion->rotation_count,
                                         motion->rotation_chain_count, motion->rotation_chains,
                                         rotation_bound};
}

// Where frame `at` of the motion lies.
static inline void rw_motion_inputs(const rw_motion* motion, int32_t at,
                                    rw_state_encoder_input inputs[2]) {
    inputs[0] = (rw_state_encoder_input){.data = motion->positions +
                                                 (size_t)at * (size_t)motion->position_count * 3};
    inputs[1] = (rw_state_encoder_input){.data = motion->rotations +
                                                 (size_t)at * (size_t)motion->rotation_count * 4};
}
