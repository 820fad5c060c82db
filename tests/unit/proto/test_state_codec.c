#include "tests/support/rw_test.h"

#include <stdlib.h>

#include "proto/state_decoder.h"
#include "proto/state_encoder.h"
#include "tests/support/rw_motion.h"

#define MAX_NODES 1500
#define MAX_FRAMES 40

// ---- numbers for tests -------------------------------------------------------------------------

static uint64_t random_state;

static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double uniform(double low, double high) {
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

static void random_rotation(double* q) {
    double square;
    do {
        square = 0.0;
        for (int k = 0; k < 4; k++) {
            q[k] = uniform(-1.0, 1.0);
            square += q[k] * q[k];
        }
    } while (square > 1.0 || square < 0.01);
    for (int k = 0; k < 4; k++) {
        q[k] /= sqrt(square);
    }
}

// The rotation by `angle` about the axis of polar angles (a, b).
static void axis_rotation(double angle, double a, double b, double* q) {
    q[0] = cos(angle / 2);
    q[1] = sin(angle / 2) * sin(a) * cos(b);
    q[2] = sin(angle / 2) * sin(a) * sin(b);
    q[3] = sin(angle / 2) * cos(a);
}

static double angle_between(const double* a, const double* b) {
    double minus = 0.0, plus = 0.0, length_a = 0.0, length_b = 0.0;
    for (int k = 0; k < 4; k++) {
        length_a += a[k] * a[k];
        length_b += b[k] * b[k];
    }
    for (int k = 0; k < 4; k++) {
        double x = a[k] / sqrt(length_a), y = b[k] / sqrt(length_b);
        minus += (x - y) * (x - y);
        plus += (x + y) * (x + y);
    }
    return 4.0 * asin(sqrt(fmin(minus, plus)) / 2.0);
}

// ---- a scene: one track of positions, one of rotations, one of velocities ------------------------

typedef struct scene {
    int32_t count;
    int32_t chain_count;
    int32_t starts[MAX_NODES];
    double position[MAX_NODES * 3];
    double rotation[MAX_NODES * 4];
    double velocity[MAX_NODES * 3];
} scene;

static scene world;

typedef enum motion_kind { WAVE, STILL, CHAOS, SPIN, FLIGHT, ADVERSARY, MOTION_COUNT } motion_kind;

static void move(motion_kind kind, int frame) {
    double t = frame / 60.0;
    for (int32_t i = 0; i < world.count; i++) {
        double *x = world.position + i * 3, *q = world.rotation + i * 4,
               *v = world.velocity + i * 3, s = i * 0.1;
        switch (kind) {
        case WAVE: // a swinging helix
            x[0] = 0.3 * cos(s) + 0.02 * sin(9 * t + 0.01 * i);
            x[1] = 0.3 * sin(s) + 0.05 * sin(7 * t - 0.02 * i);
            x[2] = 0.002 * i * (1 + 0.3 * sin(3 * t));
            axis_rotation(s + 0.5 * sin(5 * t + 0.02 * i), 0.3 + 0.2 * sin(t), 0.7, q);
            break;
        case STILL:
            x[0] = cos(s), x[1] = sin(s), x[2] = s;
            axis_rotation(s, 0.4, 0.2, q);
            break;
        case CHAOS: // nothing to predict
            for (int k = 0; k < 3; k++) {
                x[k] = uniform(-3.0, 3.0);
            }
            random_rotation(q);
            break;
        case SPIN: // passes 120 degrees from any key, all about other axes
            x[0] = i, x[1] = -i * t, x[2] = 1e-7 * frame;
            axis_rotation(t * (i % 40), 0.1 * i, 0.2 * i, q);
            break;
        case FLIGHT: // leaves the integers' range; some are back in time
            x[0] = 1e4 * t * i, x[1] = -4.9 * t * t, x[2] = i % 7 == 0 ? 1e12 * sin(t) : 1.0;
            axis_rotation(0.01 * frame + 1e-5 * i, 1.0, 1.0, q);
            break;
        case MOTION_COUNT:
        case ADVERSARY: { // every slot next to the middle of a step, all components near 1/2
            double e = rw_state_codec_step(RW_STATE_CODEC_ROTATION, 1e-3) / 2;
            double slot[3], rest = 1.0;
            for (int k = 0; k < 3; k++) {
                double m = floor(0.5 / (2 * e)) - (double)(random_bits() % 4);
                slot[k] = (2 * m + (random_bits() % 2 ? 0.999 : 1.001)) * e;
                rest -= slot[k] * slot[k];
                x[k] = ((double)(random_bits() % 99999) + 0.4999) *
                       rw_state_codec_step(RW_STATE_CODEC_POSITION, 1e-5);
            }
            q[0] = sqrt(rest), q[1] = slot[0], q[2] = slot[1], q[3] = slot[2];
            break;
        }
        }
        v[0] = cos(t + s), v[1] = -x[0] * 1e-3, v[2] = 0.0;
    }
}

static void build(int32_t count, int32_t chain_length) {
    world.count = count;
    world.chain_count = 0;
    for (int32_t i = 0; chain_length > 0 && i < count; i += chain_length) {
        world.starts[world.chain_count++] = i;
    }
}

// ---- a stream: encoder, decoder and their memory -------------------------------------------------

typedef struct stream {
    rw_alloc alloc;
    rw_state_codec_workspace workspace;
    rw_state_encoder* encoder;
    rw_state_decoder* decoder;
    double bounds[3];
} stream;

static rw_status open_encoder(stream* s, rw_state_codec_mode mode, int32_t interval,
                              rw_error* error) {
    rw_state_encoder_track tracks[3] = {{.field = RW_STATE_CODEC_POSITION},
                                        {.field = RW_STATE_CODEC_ROTATION},
                                        {.field = RW_STATE_CODEC_LINEAR_VELOCITY}};
    for (int t = 0; t < 3; t++) {
        tracks[t].count = world.count;
        tracks[t].chain_count = world.chain_count;
        tracks[t].chain_starts = world.starts;
        tracks[t].bound = s->bounds[t];
    }
    rw_state_encoder_options options = {mode, interval, interval > 0};
    return rw_state_encoder_create(tracks, 3, &options, &s->alloc, &s->encoder, error);
}

static void open_stream(stream* s, rw_state_codec_mode mode, double position_bound,
                        double rotation_bound, int32_t interval) {
    *s = (stream){.bounds = {position_bound, rotation_bound, 1e-3}};
    rw_alloc_init(&s->alloc, 0);
    rw_state_codec_init_workspace(&s->workspace, &s->alloc);
    rw_error error = {0};
    if (open_encoder(s, mode, interval, &error) != RW_STATUS_OK) {
        fail_msg("%s: %s", error.path, error.text);
    }
    assert_int_equal(rw_state_decoder_create(0, &s->alloc, &s->decoder, NULL), RW_STATUS_OK);
}

static void close_stream(stream* s) {
    rw_state_encoder_destroy(s->encoder);
    rw_state_decoder_destroy(s->decoder);
    rw_state_codec_finish_workspace(&s->workspace);
    rw_alloc_finish(&s->alloc);
}

static rw_status encode(stream* s, uint32_t epoch, int frame, rw_state_encoder_frame* out,
                        rw_error* error) {
    rw_state_encoder_stamp stamp = {epoch, (uint64_t)frame * 4, frame / 60.0, false};
    rw_state_encoder_input inputs[3] = {
        {.data = world.position}, {.data = world.rotation}, {.data = world.velocity}};
    return rw_state_encoder_encode(s->encoder, &s->workspace, &stamp, inputs, out, error);
}

// Encodes the world and keeps the bytes in a block of their own size, so that a sanitizer sees
// every read beyond them. Free with free().
static unsigned char* encode_kept(stream* s, int frame, rw_state_encoder_frame* out) {
    rw_error error = {0};
    if (encode(s, 1, frame, out, &error) != RW_STATUS_OK) {
        fail_msg("frame %d: %s: %s", frame, error.path, error.text);
    }
    assert_true(out->size_bytes <= rw_state_encoder_bound(s->encoder));
    unsigned char* bytes = malloc(out->size_bytes);
    assert_non_null(bytes);
    memcpy(bytes, out->data, out->size_bytes);
    out->data = bytes;
    return bytes;
}

static void check_bounds(const stream* s, const rw_state_decoder_frame* frame) {
    for (int32_t i = 0; i < world.count; i++) {
        const double* given[3] = {world.position + i * 3, world.rotation + i * 4,
                                  world.velocity + i * 3};
        for (int t = 0; t < 3; t += 2) {
            const double* got = frame->tracks[t].data + i * 3;
            double square = 0.0;
            for (int k = 0; k < 3; k++) {
                square += (got[k] - given[t][k]) * (got[k] - given[t][k]);
            }
            if (!(sqrt(square) <= s->bounds[t])) {
                fail_msg("track %d element %d: off by %g of %g", t, i, sqrt(square), s->bounds[t]);
            }
        }
        double angle = angle_between(given[1], frame->tracks[1].data + i * 4);
        if (!(angle <= s->bounds[1] + 3e-8)) { // what asin can resolve
            fail_msg("element %d: turned by %g of %g", i, angle, s->bounds[1]);
        }
    }
}

static void decode_checked(stream* s, const rw_state_encoder_frame* encoded,
                           rw_state_decoder_frame* frame) {
    rw_error error = {0};
    if (rw_state_decoder_decode(s->decoder, &s->workspace, encoded->data, encoded->size_bytes,
                                frame, &error) != RW_STATUS_OK) {
        fail_msg("frame %d: %s", (int)encoded->sequence, error.text);
    }
}

// ---- tests ---------------------------------------------------------------------------------------

static void quantized_frames_keep_their_bounds_over_all_motions(void** state) {
    (void)state;
    static const struct {
        double position, rotation;
    } bounds[] = {{1e-5, 1e-3}, {1e-2, 0.02},   {0.3, 0.19},
                  {1e-7, 1e-7}, {1e-13, 1e-12}, {5.0, 3.0}};
    static const int32_t chain_lengths[] = {MAX_NODES, 0, 1, 2, 7, 100};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        for (int kind = 0; kind < MOTION_COUNT; kind++) {
            random_state = 0x1234567u + (unsigned)kind;
            stream s;
            build(kind == CHAOS ? 400 : 700, chain_lengths[(b + (size_t)kind) % 6]);
            open_stream(&s, RW_STATE_CODEC_QUANTIZED, bounds[b].position, bounds[b].rotation, 0);
            for (int frame = 0; frame < 24; frame++) {
                rw_state_encoder_frame encoded;
                rw_state_decoder_frame decoded;
                move((motion_kind)kind, frame);
                unsigned char* bytes = encode_kept(&s, frame, &encoded);
                decode_checked(&s, &encoded, &decoded);
                check_bounds(&s, &decoded);
                assert_int_equal(decoded.header.step, frame * 4);
                rw_assert_near(decoded.header.time, frame / 60.0, 0.0);
                free(bytes);
            }
            close_stream(&s);
        }
    }
}

static void lossless_frames_give_back_every_bit(void** state) {
    (void)state;
    random_state = 77;
    stream s;
    build(300, 50);
    open_stream(&s, RW_STATE_CODEC_LOSSLESS, 0.0, 0.0, 5);
    for (int frame = 0; frame < 12; frame++) {
        move(frame % 2 == 0 ? WAVE : CHAOS, frame);
        double odd[] = {(double)NAN, (double)-NAN, (double)INFINITY, (double)-INFINITY, 0.0, -0.0,
                        5e-324,      -5e-324,      1.7e308};
        for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
            world.position[(k * 7 + (size_t)frame) % 900] = odd[k];
            world.rotation[(k * 11 + (size_t)frame) % 1200] = odd[k];
        }
        uint64_t any = random_bits();
        memcpy(&world.position[100], &any, 8);
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        unsigned char* bytes = encode_kept(&s, frame, &encoded);
        assert_int_equal(encoded.is_key, frame % 5 == 0);
        decode_checked(&s, &encoded, &decoded);
        assert_memory_equal(decoded.tracks[0].data, world.position, 300 * 3 * sizeof(double));
        assert_memory_equal(decoded.tracks[1].data, world.rotation, 300 * 4 * sizeof(double));
        assert_memory_equal(decoded.tracks[2].data, world.velocity, 300 * 3 * sizeof(double));
        free(bytes);
    }
    close_stream(&s);
}

static void any_delta_frames_may_be_missing(void** state) {
    (void)state;
    random_state = 99;
    for (int mode = 0; mode < 2; mode++) {
        stream s;
        build(500, 120);
        open_stream(&s, (rw_state_codec_mode)mode, 1e-5, 1e-3, 10);
        rw_state_encoder_frame encoded[MAX_FRAMES];
        double* all[MAX_FRAMES];
        rw_state_decoder_frame decoded;
        for (int frame = 0; frame < MAX_FRAMES; frame++) {
            move(frame < 20 ? WAVE : SPIN, frame);
            encode_kept(&s, frame, &encoded[frame]);
            decode_checked(&s, &encoded[frame], &decoded);
            all[frame] = malloc(sizeof(double) * 500 * 4);
            memcpy(all[frame], decoded.tracks[1].data, sizeof(double) * 500 * 4);
        }
        for (int round = 0; round < 20; round++) {
            rw_state_decoder* fresh;
            assert_int_equal(rw_state_decoder_create(0, &s.alloc, &fresh, NULL), RW_STATUS_OK);
            for (int frame = 0; frame < MAX_FRAMES; frame++) {
                if (!encoded[frame].is_key && random_bits() % 3 != 0) {
                    continue;
                }
                assert_int_equal(rw_state_decoder_decode(fresh, &s.workspace, encoded[frame].data,
                                                         encoded[frame].size_bytes, &decoded, NULL),
                                 RW_STATUS_OK);
                assert_memory_equal(decoded.tracks[1].data, all[frame], sizeof(double) * 500 * 4);
            }
            rw_state_decoder_destroy(fresh);
        }
        for (int frame = 0; frame < MAX_FRAMES; frame++) {
            free(all[frame]);
            free((void*)(uintptr_t)encoded[frame].data);
        }
        close_stream(&s);
    }
}

static void a_delta_without_its_key_is_refused(void** state) {
    (void)state;
    random_state = 5;
    stream s;
    build(50, 50);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 4);
    rw_state_encoder_frame encoded[6];
    rw_state_decoder_frame decoded;
    for (int frame = 0; frame < 6; frame++) { // keys: 0 and 4
        move(WAVE, frame);
        encode_kept(&s, frame, &encoded[frame]);
    }
    rw_error error = {0};
    assert_int_equal(rw_state_decoder_decode(s.decoder, &s.workspace, encoded[1].data,
                                             encoded[1].size_bytes, &decoded, &error),
                     RW_STATUS_FAILED_PRECONDITION);
    decode_checked(&s, &encoded[0], &decoded);
    assert_int_equal(rw_state_decoder_decode(s.decoder, &s.workspace, encoded[5].data,
                                             encoded[5].size_bytes, &decoded, &error),
                     RW_STATUS_FAILED_PRECONDITION);
    decode_checked(&s, &encoded[4], &decoded);
    decode_checked(&s, &encoded[5], &decoded);
    for (int frame = 0; frame < 6; frame++) {
        free((void*)(uintptr_t)encoded[frame].data);
    }
    close_stream(&s);
}

static void a_new_epoch_starts_with_key_zero(void** state) {
    (void)state;
    random_state = 6;
    stream s;
    build(20, 0);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    rw_state_encoder_frame frame;
    rw_state_codec_header header;
    for (int i = 0; i < 3; i++) {
        move(STILL, i);
        assert_int_equal(encode(&s, 1, i, &frame, NULL), RW_STATUS_OK);
        assert_int_equal(frame.is_key, i == 0);
        assert_int_equal(frame.sequence, i);
    }
    assert_int_equal(encode(&s, 2, 1, &frame, NULL), RW_STATUS_OK);
    assert_true(frame.is_key);
    assert_int_equal(frame.sequence, 0);
    assert_int_equal(rw_state_codec_read_header(frame.data, frame.size_bytes, &header, NULL),
                     RW_STATUS_OK);
    assert_int_equal(header.epoch, 2);
    assert_int_equal(header.key_sequence, 0);
    assert_int_equal(header.track_count, 3);
    close_stream(&s);
}

static void quantized_refuses_what_is_not_finite_and_goes_on_with_a_key(void** state) {
    (void)state;
    random_state = 7;
    stream s;
    build(40, 40);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 100);
    rw_state_encoder_frame frame;
    double* places[] = {&world.position[17 * 3 + 1], &world.rotation[17 * 4 + 3]};
    double values[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
    for (int i = 0; i < 6; i++) {
        move(WAVE, i);
        assert_int_equal(encode(&s, 1, i, &frame, NULL), RW_STATUS_OK);
        assert_true(frame.is_key);
        assert_int_equal(frame.sequence, i);
        move(WAVE, i + 1);
        *places[i % 2] = values[i / 2];
        rw_error error = {0};
        assert_int_equal(encode(&s, 1, i, &frame, &error), RW_STATUS_INVALID_ARGUMENT);
        assert_string_equal(error.path, i % 2 == 0 ? "tracks[0][17]" : "tracks[1][17]");
    }
    close_stream(&s);
}

static void what_no_integer_holds_travels_exactly(void** state) {
    (void)state;
    random_state = 8;
    stream s;
    build(100, 25);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 4);
    for (int frame = 0; frame < 10; frame++) {
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        move(WAVE, frame);
        world.position[50 * 3] = 123456789.123456789 + frame; // far away
        world.position[99 * 3 + 2] = -1e300;
        double crooked[4] = {0.3, 0.4, 0.5, 0.6 + frame}; // no unit quaternion
        double tiny[4] = {0.0, 0.0, 0.0, 0.0};
        memcpy(&world.rotation[3 * 4], crooked, sizeof crooked);
        memcpy(&world.rotation[77 * 4], tiny, sizeof tiny);
        unsigned char* bytes = encode_kept(&s, frame, &encoded);
        decode_checked(&s, &encoded, &decoded);
        assert_memory_equal(&decoded.tracks[0].data[50 * 3], &world.position[50 * 3], 24);
        assert_memory_equal(&decoded.tracks[0].data[99 * 3], &world.position[99 * 3], 24);
        assert_memory_equal(&decoded.tracks[1].data[3 * 4], crooked, 32);
        assert_memory_equal(&decoded.tracks[1].data[77 * 4], tiny, 32);
        rw_assert_near(decoded.tracks[0].data[51 * 3], world.position[51 * 3], 1e-5);
        assert_true(encoded.size_bytes < 100 * 12 + 4 * 36 + 300); // the others stay small
        free(bytes);
    }
    close_stream(&s);
}

static void elements_at_rest_cost_nearly_nothing(void** state) {
    (void)state;
    random_state = 9;
    stream s;
    build(MAX_NODES, MAX_NODES);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    for (int frame = 0; frame < 50; frame++) {
        rw_state_encoder_frame encoded;
        move(STILL, frame);
        for (int i = 0; i < MAX_NODES; i++) { // velocity has its own place in move()
            world.velocity[i * 3] = 0.0;
        }
        free(encode_kept(&s, frame, &encoded));
        assert_int_equal(encoded.is_key, frame == 0);
        assert_true(frame == 0 || encoded.size_bytes <= 80);
    }
    close_stream(&s);
}

static void a_smooth_rod_takes_under_four_bytes_per_node(void** state) {
    (void)state;
    random_state = 10;
    stream s;
    build(MAX_NODES, MAX_NODES);
    rw_state_encoder_track tracks[2] = {
        {RW_STATE_CODEC_POSITION, MAX_NODES, 1, world.starts, 1e-5},
        {RW_STATE_CODEC_ROTATION, MAX_NODES, 1, world.starts, 1e-3}};
    rw_state_encoder_options options = {RW_STATE_CODEC_QUANTIZED, 0, false};
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    rw_state_encoder_destroy(s.encoder);
    assert_int_equal(rw_state_encoder_create(tracks, 2, &options, &s.alloc, &s.encoder, NULL),
                     RW_STATUS_OK);
    size_t total = 0;
    for (int frame = 0; frame < 200; frame++) {
        rw_state_encoder_frame encoded;
        move(WAVE, frame);
        free(encode_kept(&s, frame, &encoded));
        total += encoded.size_bytes;
        assert_true(encoded.size_bytes < (encoded.is_key ? 7 : 4) * MAX_NODES);
    }
    assert_true(total < 4u * MAX_NODES * 200);
    close_stream(&s);
}

// Streams recorded motion at 10 um and 1 mrad; checks every bound and adds up the bytes.
static void stream_motion(const rw_motion* motion, size_t* key_bytes, size_t* largest_key,
                          size_t* delta_bytes, size_t* largest_delta, int* keys) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_workspace workspace;
    rw_state_codec_init_workspace(&workspace, &alloc);
    rw_state_encoder_track tracks[2];
    rw_motion_tracks(motion, 1e-5, 1e-3, tracks);
    rw_state_encoder_options options = {RW_STATE_CODEC_QUANTIZED, 0, false};
    rw_state_encoder* encoder;
    rw_state_decoder* decoder;
    assert_int_equal(rw_state_encoder_create(tracks, 2, &options, &alloc, &encoder, NULL),
                     RW_STATUS_OK);
    assert_int_equal(rw_state_decoder_create(0, &alloc, &decoder, NULL), RW_STATUS_OK);
    *key_bytes = *largest_key = *delta_bytes = *largest_delta = 0;
    *keys = 0;
    for (int32_t at = 0; at < motion->frame_count; at++) {
        rw_state_encoder_stamp stamp = {1, (uint64_t)at, at * motion->period_s, false};
        rw_state_encoder_input inputs[2];
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        rw_motion_inputs(motion, at, inputs);
        assert_int_equal(
            rw_state_encoder_encode(encoder, &workspace, &stamp, inputs, &encoded, NULL),
            RW_STATUS_OK);
        size_t* sum = encoded.is_key ? key_bytes : delta_bytes;
        size_t* largest = encoded.is_key ? largest_key : largest_delta;
        *sum += encoded.size_bytes;
        *largest = encoded.size_bytes > *largest ? encoded.size_bytes : *largest;
        *keys += encoded.is_key;
        unsigned char* bytes = malloc(encoded.size_bytes);
        memcpy(bytes, encoded.data, encoded.size_bytes);
        assert_int_equal(
            rw_state_decoder_decode(decoder, &workspace, bytes, encoded.size_bytes, &decoded, NULL),
            RW_STATUS_OK);
        free(bytes);
        for (int32_t i = 0; i < motion->position_count * 3; i += 3) {
            double square = 0.0;
            for (int k = 0; k < 3; k++) {
                double error = decoded.tracks[0].data[i + k] - inputs[0].data[i + k];
                square += error * error;
            }
            assert_true(sqrt(square) <= 1e-5);
        }
        for (int32_t i = 0; i < motion->rotation_count; i++) {
            assert_true(angle_between(decoded.tracks[1].data + i * 4, inputs[1].data + i * 4) <=
                        1e-3 + 3e-8);
        }
    }
    rw_state_encoder_destroy(encoder);
    rw_state_decoder_destroy(decoder);
    rw_state_codec_finish_workspace(&workspace);
    rw_alloc_finish(&alloc);
}

static void a_recorded_slinky_takes_under_4_bytes_per_node_and_7_in_keys(void** state) {
    (void)state;
    rw_motion motion;
    size_t key_bytes, largest_key, delta_bytes, largest_delta;
    int keys;
    assert_true(rw_motion_read(RW_TEST_VECTORS "/motion", "slinky", &motion));
    assert_int_equal(motion.position_count, 2881);
    assert_int_equal(motion.frame_count, 24);
    stream_motion(&motion, &key_bytes, &largest_key, &delta_bytes, &largest_delta, &keys);
    size_t nodes = (size_t)motion.position_count;
    assert_true(largest_key < 7 * nodes);
    assert_true(largest_delta < 4 * nodes);
    assert_true(key_bytes + delta_bytes < 4 * nodes * (size_t)motion.frame_count);
    assert_true(keys >= 1 && keys < 12);
    rw_motion_finish(&motion);
}

static void a_recorded_tree_keeps_its_bounds(void** state) {
    (void)state;
    rw_motion motion;
    size_t key_bytes, largest_key, delta_bytes, largest_delta;
    int keys;
    assert_true(rw_motion_read(RW_TEST_VECTORS "/motion", "tree", &motion));
    assert_int_equal(motion.position_count, 3327);
    stream_motion(&motion, &key_bytes, &largest_key, &delta_bytes, &largest_delta, &keys);
    size_t nodes = (size_t)motion.position_count;
    assert_true(largest_key < 15 * nodes); // plain zstd on float32: 26
    assert_true(largest_delta < 12 * nodes);
    rw_motion_finish(&motion);
}

static void strided_and_indexed_inputs_encode_like_dense_ones(void** state) {
    (void)state;
    random_state = 11;
    stream s;
    build(60, 20);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 3);
    static double wide[MAX_NODES * 10];
    int32_t index[60];
    for (int mode = 0; mode < 2; mode++) {
        for (int frame = 0; frame < 6; frame++) {
            move(WAVE, frame);
            rw_state_encoder_frame dense, other;
            unsigned char* bytes = encode_kept(&s, frame, &dense);
            stream twin;
            open_stream(&twin, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 3);
            for (int i = 0; i < 60; i++) {
                index[i] = mode == 0 ? i : (i * 7 + 3) % 60;
                double* row = wide + index[i] * 10;
                memcpy(row, world.position + i * 3, 24);
                memcpy(row + 3, world.rotation + i * 4, 32);
                memcpy(row + 7, world.velocity + i * 3, 24);
            }
            rw_state_encoder_input inputs[3];
            for (int t = 0; t < 3; t++) {
                inputs[t] = (rw_state_encoder_input){wide + (t == 0   ? 0
                                                             : t == 1 ? 3
                                                                      : 7),
                                                     10, mode == 0 ? NULL : index};
            }
            rw_state_encoder_stamp stamp = {1, (uint64_t)frame * 4, frame / 60.0, false};
            assert_int_equal(rw_state_encoder_encode(twin.encoder, &twin.workspace, &stamp, inputs,
                                                     &other, NULL),
                             RW_STATUS_OK);
            if (dense.is_key && dense.sequence == 0) { // the twin is always at its first frame
                assert_int_equal(dense.size_bytes, other.size_bytes);
                assert_memory_equal(bytes, other.data, other.size_bytes);
            }
            rw_state_decoder_frame decoded;
            decode_checked(&twin, &other, &decoded);
            check_bounds(&twin, &decoded);
            free(bytes);
            close_stream(&twin);
        }
    }
    close_stream(&s);
}

static void keys_come_when_a_delta_costs_more_than_the_mean(void** state) {
    (void)state;
    random_state = 12;
    stream s;
    build(600, 600);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    size_t since = 0, frames = 0;
    int keys = 0;
    for (int frame = 0; frame < 150; frame++) {
        rw_state_encoder_frame encoded;
        move(WAVE, frame);
        bool expected = frame == 0;
        static size_t last;
        if (frames > 1) {
            expected = last * frames > since;
        }
        free(encode_kept(&s, frame, &encoded));
        assert_int_equal(encoded.is_key, expected);
        keys += encoded.is_key;
        since = encoded.is_key ? encoded.size_bytes : since + encoded.size_bytes;
        frames = encoded.is_key ? 1 : frames + 1;
        last = encoded.size_bytes;
    }
    assert_true(keys > 2 && keys < 75);
    close_stream(&s);
}

static void warmed_up_streams_allocate_nothing(void** state) {
    (void)state;
    random_state = 13;
    for (int mode = 0; mode < 2; mode++) {
        stream s;
        build(700, 100);
        open_stream(&s, (rw_state_codec_mode)mode, 1e-5, 1e-3, 5);
        uint64_t calls = 0;
        for (int frame = 0; frame < 40; frame++) {
            rw_state_encoder_frame encoded;
            rw_state_decoder_frame decoded;
            move(frame % 2 ? SPIN : CHAOS, frame);
            unsigned char* bytes = encode_kept(&s, frame, &encoded);
            decode_checked(&s, &encoded, &decoded);
            free(bytes);
            if (frame == 10) {
                calls = s.alloc.call_count;
            }
        }
        assert_int_equal(s.alloc.call_count, calls);
        close_stream(&s);
    }
}

static void a_trimmed_workspace_gives_memory_back_and_goes_on(void** state) {
    (void)state;
    random_state = 17;
    stream s;
    build(MAX_NODES, 100);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 50);
    size_t empty = s.alloc.used_bytes;
    for (int frame = 0; frame < 4; frame++) {
        rw_state_encoder_frame encoded;
        move(WAVE, frame);
        free(encode_kept(&s, frame, &encoded));
        assert_int_equal(encoded.is_key, frame == 0);
        size_t used = s.alloc.used_bytes;
        rw_state_codec_trim_workspace(&s.workspace, (size_t)1 << 30);
        assert_int_equal(s.alloc.used_bytes, used);
        rw_state_codec_trim_workspace(&s.workspace, 1024);
        assert_int_equal(s.alloc.used_bytes, empty);
    }
    close_stream(&s);
}

static void a_failed_allocation_is_answered_and_leaks_nothing(void** state) {
    (void)state;
    random_state = 14;
    build(80, 20);
    move(WAVE, 0);
    int64_t nth = 0;
    bool passed = false;
    while (!passed) {
        nth++;
        assert_true(nth < 100);
        stream s = {.bounds = {1e-5, 1e-3, 1e-3}};
        rw_alloc_init(&s.alloc, 0);
        rw_state_codec_init_workspace(&s.workspace, &s.alloc);
        rw_alloc_fail_after(nth);
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        rw_error error = {0};
        rw_status status = open_encoder(&s, RW_STATE_CODEC_QUANTIZED, 0, &error);
        if (status == RW_STATUS_OK) {
            status = rw_state_decoder_create(0, &s.alloc, &s.decoder, &error);
        }
        if (status == RW_STATUS_OK) {
            status = encode(&s, 1, 0, &encoded, &error);
        }
        if (status == RW_STATUS_OK) {
            static unsigned char bytes[1 << 16];
            memcpy(bytes, encoded.data, encoded.size_bytes);
            status = rw_state_decoder_decode(s.decoder, &s.workspace, bytes, encoded.size_bytes,
                                             &decoded, &error);
        }
        passed = status == RW_STATUS_OK;
        if (!passed) {
            assert_int_equal(status, RW_STATUS_RESOURCE_EXHAUSTED);
            assert_true(error.text[0] != '\0');
        }
        rw_alloc_fail_after(0);
        close_stream(&s);
    }
    assert_true(nth > 15); // the failures reached into encode and decode
}

static void damaged_frames_are_answered(void** state) {
    (void)state;
    random_state = 15;
    for (int mode = 0; mode < 2; mode++) {
        stream s;
        build(30, 10);
        open_stream(&s, (rw_state_codec_mode)mode, 1e-5, 1e-3, 100);
        rw_state_encoder_frame key, delta;
        rw_state_decoder_frame decoded;
        move(WAVE, 0);
        encode_kept(&s, 0, &key);
        move(WAVE, 1);
        encode_kept(&s, 1, &delta);
        decode_checked(&s, &key, &decoded);
        const rw_state_encoder_frame* frames[2] = {&key, &delta};
        for (int f = 0; f < 2; f++) {
            for (size_t size = 0; size < frames[f]->size_bytes; size++) { // cut short
                unsigned char* cut = malloc(size + 1);
                memcpy(cut, frames[f]->data, size);
                assert_int_not_equal(
                    rw_state_decoder_decode(s.decoder, &s.workspace, cut, size, &decoded, NULL),
                    RW_STATUS_OK);
                free(cut);
            }
        }
        int refused = 0;
        for (int round = 0; round < 20000; round++) {
            decode_checked(&s, &key, &decoded);
            const rw_state_encoder_frame* victim = frames[round % 2];
            unsigned char* bytes = malloc(victim->size_bytes);
            memcpy(bytes, victim->data, victim->size_bytes);
            for (uint64_t k = 1 + random_bits() % 3; k > 0; k--) {
                bytes[random_bits() % victim->size_bytes] ^=
                    (unsigned char)(1u << random_bits() % 8);
            }
            refused += rw_state_decoder_decode(s.decoder, &s.workspace, bytes, victim->size_bytes,
                                               &decoded, NULL) != RW_STATUS_OK;
            free(bytes);
        }
        assert_true(refused > 1000);
        free((void*)(uintptr_t)key.data);
        free((void*)(uintptr_t)delta.data);
        close_stream(&s);
    }
}

static void a_frame_beyond_the_limit_of_elements_is_refused(void** state) {
    (void)state;
    random_state = 16;
    stream s;
    build(200, 0);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    rw_state_encoder_frame encoded;
    rw_state_decoder_frame decoded;
    move(CHAOS, 0);
    unsigned char* bytes = encode_kept(&s, 0, &encoded);
    rw_state_decoder* small;
    assert_int_equal(rw_state_decoder_create(599, &s.alloc, &small, NULL), RW_STATUS_OK);
    assert_int_equal(
        rw_state_decoder_decode(small, &s.workspace, bytes, encoded.size_bytes, &decoded, NULL),
        RW_STATUS_RESOURCE_EXHAUSTED);
    rw_state_decoder_destroy(small);
    assert_int_equal(rw_state_decoder_create(600, &s.alloc, &small, NULL), RW_STATUS_OK);
    assert_int_equal(
        rw_state_decoder_decode(small, &s.workspace, bytes, encoded.size_bytes, &decoded, NULL),
        RW_STATUS_OK);
    rw_state_decoder_destroy(small);
    free(bytes);
    close_stream(&s);
}

static void bad_selections_are_refused_with_their_path(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    int32_t good[2] = {0, 5}, late[2] = {1, 5}, twice[2] = {0, 0}, beyond[2] = {0, 10};
    struct {
        rw_state_encoder_track track;
        const char* path;
    } cases[] = {
        {{(rw_state_codec_field)9, 10, 0, NULL, 1e-5}, "tracks[1].field"},
        {{RW_STATE_CODEC_POSITION, -1, 0, NULL, 1e-5}, "tracks[1].count"},
        {{RW_STATE_CODEC_POSITION, 10, 0, NULL, 0.0}, "tracks[1].bound"},
        {{RW_STATE_CODEC_POSITION, 10, 0, NULL, (double)NAN}, "tracks[1].bound"},
        {{RW_STATE_CODEC_POSITION, 10, 0, NULL, (double)INFINITY}, "tracks[1].bound"},
        {{RW_STATE_CODEC_POSITION, 10, 2, late, 1e-5}, "tracks[1].chain_starts"},
        {{RW_STATE_CODEC_POSITION, 10, 2, twice, 1e-5}, "tracks[1].chain_starts"},
        {{RW_STATE_CODEC_POSITION, 10, 2, beyond, 1e-5}, "tracks[1].chain_starts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rw_state_encoder_track tracks[2] = {{RW_STATE_CODEC_POSITION, 10, 2, good, 1e-5},
                                            cases[i].track};
        rw_state_encoder_options options = {RW_STATE_CODEC_QUANTIZED, 0, false};
        rw_state_encoder* encoder;
        rw_error error = {0};
        assert_int_equal(rw_state_encoder_create(tracks, 2, &options, &alloc, &encoder, &error),
                         RW_STATUS_INVALID_ARGUMENT);
        assert_null(encoder);
        assert_string_equal(error.path, cases[i].path);
    }
    rw_alloc_finish(&alloc);
}

static void bounds_of_velocities_follow_those_of_positions(void** state) {
    (void)state;
    rw_assert_near(rw_state_codec_field_bound(RW_STATE_CODEC_POSITION, 1e-5, 1e-3), 1e-5, 0.0);
    rw_assert_near(rw_state_codec_field_bound(RW_STATE_CODEC_ROTATION, 1e-5, 1e-3), 1e-3, 0.0);
    rw_assert_near(rw_state_codec_field_bound(RW_STATE_CODEC_LINEAR_VELOCITY, 1e-5, 1e-3), 1e-3,
                   1e-15);
    rw_assert_near(rw_state_codec_field_bound(RW_STATE_CODEC_ANGULAR_VELOCITY, 1e-5, 1e-3), 0.1,
                   1e-15);
}

static void empty_selections_make_frames_too(void** state) {
    (void)state;
    stream s;
    build(0, 0);
    open_stream(&s, RW_STATE_CODEC_QUANTIZED, 1e-5, 1e-3, 0);
    for (int frame = 0; frame < 3; frame++) {
        rw_state_encoder_frame encoded;
        rw_state_decoder_frame decoded;
        unsigned char* bytes = encode_kept(&s, frame, &encoded);
        decode_checked(&s, &encoded, &decoded);
        assert_int_equal(decoded.tracks[1].count, 0);
        free(bytes);
    }
    close_stream(&s);
}

static unsigned char* read_file(const char* name, const char* kind, size_t* size) {
    char path[512];
    snprintf(path, sizeof path, "%s/state_frames/%s.%s", RW_TEST_VECTORS, name, kind);
    FILE* file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s is missing", path);
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char* bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

// Frames of an earlier build: the format does not drift.
static void stored_frames_decode_to_the_stored_numbers(void** state) {
    (void)state;
    static const char* const names[] = {"rods_quantized", "bodies_quantized", "rods_lossless"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t frames_size, numbers_size, at = 0, numbers_at = 0;
        unsigned char* frames = read_file(names[i], "frames", &frames_size);
        unsigned char* numbers = read_file(names[i], "numbers", &numbers_size);
        stream s;
        build(1, 0);
        open_stream(&s, RW_STATE_CODEC_LOSSLESS, 0.0, 0.0, 0);
        while (at < frames_size) {
            rw_state_encoder_frame encoded = {0};
            rw_state_decoder_frame decoded;
            uint32_t size;
            memcpy(&size, frames + at, 4);
            encoded.data = frames + at + 4;
            encoded.size_bytes = size;
            decode_checked(&s, &encoded, &decoded);
            assert_int_equal(decoded.header.epoch, 3);
            for (int t = 0; t < decoded.header.track_count; t++) {
                size_t bytes = sizeof(double) * (size_t)decoded.tracks[t].count *
                               (size_t)decoded.tracks[t].components;
                assert_true(numbers_at + bytes <= numbers_size);
                assert_memory_equal(decoded.tracks[t].data, numbers + numbers_at, bytes);
                numbers_at += bytes;
            }
            at += 4 + size;
        }
        assert_int_equal(numbers_at, numbers_size);
        close_stream(&s);
        free(frames);
        free(numbers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantized_frames_keep_their_bounds_over_all_motions),
        cmocka_unit_test(lossless_frames_give_back_every_bit),
        cmocka_unit_test(any_delta_frames_may_be_missing),
        cmocka_unit_test(a_delta_without_its_key_is_refused),
        cmocka_unit_test(a_new_epoch_starts_with_key_zero),
        cmocka_unit_test(quantized_refuses_what_is_not_finite_and_goes_on_with_a_key),
        cmocka_unit_test(what_no_integer_holds_travels_exactly),
        cmocka_unit_test(elements_at_rest_cost_nearly_nothing),
        cmocka_unit_test(a_smooth_rod_takes_under_four_bytes_per_node),
        cmocka_unit_test(a_recorded_slinky_takes_under_4_bytes_per_node_and_7_in_keys),
        cmocka_unit_test(a_recorded_tree_keeps_its_bounds),
        cmocka_unit_test(strided_and_indexed_inputs_encode_like_dense_ones),
        cmocka_unit_test(keys_come_when_a_delta_costs_more_than_the_mean),
        cmocka_unit_test(warmed_up_streams_allocate_nothing),
        cmocka_unit_test(a_trimmed_workspace_gives_memory_back_and_goes_on),
        cmocka_unit_test(a_failed_allocation_is_answered_and_leaks_nothing),
        cmocka_unit_test(damaged_frames_are_answered),
        cmocka_unit_test(a_frame_beyond_the_limit_of_elements_is_refused),
        cmocka_unit_test(bad_selections_are_refused_with_their_path),
        cmocka_unit_test(bounds_of_velocities_follow_those_of_positions),
        cmocka_unit_test(empty_selections_make_frames_too),
        cmocka_unit_test(stored_frames_decode_to_the_stored_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
