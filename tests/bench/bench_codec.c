// Size and speed of state frames on recorded motion, beside plain zstd (level 1) on the same numbers as
// float32 (lossless: as float64) and, for decoding, beside a copy of the float32 bytes. Speeds are MB/s of float32 input (28 bytes per node with
// position and rotation), best of some rounds, processor time of this thread.
#include <math.h>
#include <time.h>
#include <zstd.h>

#include "solvers/base/hash.h"
#include "tests/support/rw_motion.h"

#define ROUNDS 25

typedef struct measure {
    double bytes_per_node;          // mean over all frames, keys included
    double key_bytes, delta_bytes;  // per node, means
    double seconds, decode_seconds; // per frame
    uint64_t hash;                  // of the decoded numbers
} measure;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(bool good, const char* what) {
    if (!good) {
        fprintf(stderr, "bench_codec: %s\n", what);
        exit(1);
    }
}

static void print(const char* mode, const char* scene, const char* what, double value,
                  const char* unit, double baseline) {
    printf("{\"name\": \"stream/%s/%s/%s\", \"value\": %.6g, \"unit\": \"%s\", \"baseline\": %.6g, "
           "\"ratio\": %.6g}\n",
           mode, scene, what, value, unit, baseline, value / baseline);
}

// Streams the whole motion ROUNDS times, each in an epoch of its own.
static measure measure_codec(const rw_motion* motion, rw_state_codec_mode mode) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_workspace workspace;
    rw_state_codec_init_workspace(&workspace, &alloc);
    rw_state_encoder_track tracks[2];
    rw_motion_tracks(motion, 1e-5, 1e-3, tracks);
    rw_state_encoder_options options = {mode, 0, false};
    rw_state_encoder* encoder;
    rw_state_decoder* decoder;
    check(rw_state_encoder_create(tracks, 2, &options, &alloc, &encoder, NULL) == RW_STATUS_OK &&
              rw_state_decoder_create(0, &alloc, &decoder, NULL) == RW_STATUS_OK,
          "no memory");
    unsigned char* kept = rw_motion_get(rw_state_encoder_bound(encoder));
    measure best = {.seconds = INFINITY, .decode_seconds = INFINITY};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double seconds = 0.0, decode_seconds = 0.0, bytes[2] = {0.0, 0.0};
        int count[2] = {0, 0};
        rw_hash hash;
        rw_hash_init(&hash);
        for (int32_t at = 0; at < motion->frame_count; at++) {
            rw_state_encoder_stamp stamp = {round, (uint64_t)at, at * motion->period_s, false};
            rw_state_encoder_input inputs[2];
            rw_state_encoder_frame frame;
            rw_state_decoder_frame decoded;
            rw_motion_inputs(motion, at, inputs);
            double start = now();
            rw_status status =
                rw_state_encoder_encode(encoder, &workspace, &stamp, inputs, &frame, NULL);
            seconds += now() - start;
            check(status == RW_STATUS_OK, "not encoded");
            memcpy(kept, frame.data, frame.size_bytes);
            start = now();
            status = rw_state_decoder_decode(decoder, &workspace, kept, frame.size_bytes, &decoded,
                                             NULL);
            decode_seconds += now() - start;
            check(status == RW_STATUS_OK, "not decoded");
            for (int t = 0; t < 2; t++) {
                rw_hash_doubles(&hash, decoded.tracks[t].data,
                                (size_t)decoded.tracks[t].count *
                                    (size_t)decoded.tracks[t].components);
            }
            bytes[frame.is_key] += (double)frame.size_bytes;
            count[frame.is_key]++;
        }
        double nodes = motion->position_count, frames = motion->frame_count;
        best.seconds = fmin(best.seconds, seconds / frames);
        best.decode_seconds = fmin(best.decode_seconds, decode_seconds / frames);
        best.bytes_per_node = (bytes[0] + bytes[1]) / frames / nodes;
        best.delta_bytes = count[0] > 0 ? bytes[0] / count[0] / nodes : 0.0;
        best.key_bytes = bytes[1] / count[1] / nodes;
        check(round == 0 || best.hash == rw_hash_value(&hash), "rounds differ");
        best.hash = rw_hash_value(&hash);
    }
    free(kept);
    rw_state_encoder_destroy(encoder);
    rw_state_decoder_destroy(decoder);
    rw_state_codec_finish_workspace(&workspace);
    rw_alloc_finish(&alloc);
    return best;
}

typedef enum plain_kind { ZSTD_FLOAT32, ZSTD_FLOAT64, COPY_FLOAT32 } plain_kind;

// zstd level 1 on each frame's numbers as they are, or a copy of them.
static measure measure_plain(const rw_motion* motion, plain_kind kind) {
    size_t positions = (size_t)motion->position_count * 3;
    size_t rotations = (size_t)motion->rotation_count * 4;
    size_t numbers = positions + rotations;
    size_t bytes = numbers * (kind == ZSTD_FLOAT64 ? sizeof(double) : sizeof(float));
    size_t capacity = ZSTD_compressBound(bytes);
    double* doubles = rw_motion_get(numbers * sizeof(double));
    float* floats = rw_motion_get(numbers * sizeof(float));
    const void* values = kind == ZSTD_FLOAT64 ? (const void*)doubles : floats;
    unsigned char* out = rw_motion_get(capacity);
    ZSTD_CCtx* context = ZSTD_createCCtx();
    check(context != NULL, "no memory");
    measure best = {.seconds = INFINITY};
    for (int round = 0; round < ROUNDS; round++) {
        double seconds = 0.0, total = 0.0;
        for (int32_t at = 0; at < motion->frame_count; at++) {
            memcpy(doubles, motion->positions + (size_t)at * positions, positions * 8);
            memcpy(doubles + positions, motion->rotations + (size_t)at * rotations, rotations * 8);
            for (size_t i = 0; i < numbers; i++) {
                floats[i] = (float)doubles[i];
            }
            double start = now();
            if (kind == COPY_FLOAT32) {
                memcpy(out, values, bytes);
                __asm__ volatile("" : : "r"(out) : "memory"); // the copy is wanted
                total += (double)bytes;
            } else {
                total += (double)ZSTD_compressCCtx(context, out, capacity, values, bytes, 1);
            }
            seconds += now() - start;
        }
        double frames = motion->frame_count;
        best.seconds = fmin(best.seconds, seconds / frames);
        best.bytes_per_node = total / frames / motion->position_count;
    }
    ZSTD_freeCCtx(context);
    free(doubles);
    free(floats);
    free(out);
    return best;
}

static void bench_scene(const char* scene) {
    rw_motion motion;
    check(rw_motion_read(RW_TEST_VECTORS "/motion", scene, &motion), scene);
    double input = ((double)motion.position_count * 3 + (double)motion.rotation_count * 4) * 4e-6;
    measure plain = measure_plain(&motion, ZSTD_FLOAT32);
    measure exact = measure_plain(&motion, ZSTD_FLOAT64);
    measure copy = measure_plain(&motion, COPY_FLOAT32);
    static const char* const names[] = {"lossless", "quantized"};
    for (int mode = RW_STATE_CODEC_QUANTIZED; mode >= RW_STATE_CODEC_LOSSLESS; mode--) {
        measure got = measure_codec(&motion, (rw_state_codec_mode)mode);
        const char* name = names[mode];
        double zstd_bytes =
            mode == RW_STATE_CODEC_LOSSLESS ? exact.bytes_per_node : plain.bytes_per_node;
        double zstd_seconds = mode == RW_STATE_CODEC_LOSSLESS ? exact.seconds : plain.seconds;
        print(name, scene, "bytes_per_node", got.bytes_per_node, "B", zstd_bytes);
        print(name, scene, "key_bytes_per_node", got.key_bytes, "B", zstd_bytes);
        print(name, scene, "delta_bytes_per_node", got.delta_bytes, "B", zstd_bytes);
        print(name, scene, "encode", input / got.seconds, "MB/s", input / zstd_seconds);
        print(name, scene, "decode", input / got.decode_seconds, "MB/s", input / copy.seconds);
        fprintf(stderr, "stream/%s/%s: hash of the decoded numbers %016llx\n", name, scene,
                (unsigned long long)got.hash);
    }
    print("plain_zstd", scene, "encode", input / plain.seconds, "MB/s", input / copy.seconds);
    rw_motion_finish(&motion);
}

int main(void) {
    bench_scene("slinky");
    bench_scene("tree");
    return 0;
}
