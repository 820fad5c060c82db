#include "proto/state_quantize.h"

#include <math.h>
#include <string.h>

#include "proto/state_rotation.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // these loops vectorise only then
#endif

#define BLOCK 64 // elements that are taken out of the caller's layout at a time

// Each loop is written once and compiled twice.
#define BODY static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))
#define HAS_AVX2() __builtin_cpu_supports("avx2")
#endif

// The sum's low bits are the integer: doubles near 1.5 * 2^52 are 1 apart.
BODY uint32_t nearest(double value) {
    double shifted = value + 6755399441055744.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (uint32_t)bits;
}

uint32_t rw_state_quantize_nearest(double value) {
    return nearest(value);
}

// block[k][i] = component k of element first + i.
BODY void take(const rw_state_quantize_source* source, int32_t first, int32_t count,
               int32_t components, double block[][BLOCK]) {
    for (int32_t i = 0; i < count; i++) {
        int64_t at = source->index == NULL ? first + i : source->index[first + i];
        const double* p = source->data + at * source->stride;
        for (int32_t k = 0; k < components; k++) {
            block[k][i] = p[k];
        }
    }
}

BODY uint64_t quantize_line(const double* restrict values, int32_t count, double inverse_step,
                            uint32_t* restrict out) {
    uint64_t bad = 0;
    for (int32_t i = 0; i < count; i++) {
        double value = values[i] * inverse_step;
        bad |= (uint64_t) !(fabs(value) < RW_STATE_QUANTIZE_LIMIT);
        out[i] = nearest(value);
    }
    return bad;
}

BODY bool quantize_vectors(const rw_state_quantize_source* source, double inverse_step,
                           uint32_t* out) {
    double block[3][BLOCK];
    uint64_t bad = 0;
    for (int32_t first = 0; first < source->count; first += BLOCK) {
        int32_t left = source->count - first, count = left < BLOCK ? left : BLOCK;
        take(source, first, count, 3, block);
        for (int32_t k = 0; k < 3; k++) {
            bad |= quantize_line(block[k], count, inverse_step,
                                 out + (int64_t)k * source->count + first);
        }
    }
    return bad == 0;
}

// `value` or 0, without the branch that keeps a loop from being vectorised.
BODY double only_if(bool condition, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= (uint64_t)0 - (uint64_t)condition;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct rotation_flags {
    uint64_t bad, far;
} rotation_flags;

BODY rotation_flags quantize_block(double q[4][BLOCK], const double* restrict k0,
                                   const double* restrict k1, const double* restrict k2,
                                   const double* restrict k3, int32_t count, double inverse_step,
                                   double still, uint32_t* restrict x, uint32_t* restrict y,
                                   uint32_t* restrict z) {
    rotation_flags flags = {0, 0};
    for (int32_t i = 0; i < count; i++) {
        double a[4] = {q[0][i], q[1][i], q[2][i], q[3][i]}, b[4] = {k0[i], k1[i], k2[i], k3[i]};
        double square = a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3];
        double r[4];
        rw_state_rotation_relative(a, b, r);
        // 1 / |q| to 4e-13, as |q|^2 is within 1e-6 of 1
        double scale = 1.5 - 0.5 * square;
        double sine_square = (r[1] * r[1] + r[2] * r[2] + r[3] * r[3]) * (scale * scale);
        flags.bad |= (uint64_t) !(fabs(square - 1.0) <= RW_STATE_QUANTIZE_UNIT_TOLERANCE);
        flags.far |= (uint64_t)(fabs(r[0]) * scale < RW_STATE_ROTATION_LEAST);
        double factor = only_if(sine_square > still, copysign(scale * inverse_step, r[0]));
        x[i] = nearest(r[1] * factor);
        y[i] = nearest(r[2] * factor);
        z[i] = nearest(r[3] * factor);
    }
    return flags;
}

BODY bool quantize_rotations(const rw_state_quantize_source* source, const double* key,
                             double inverse_step, double still, uint32_t* out, bool* is_far) {
    double block[4][BLOCK];
    int64_t n = source->count;
    uint64_t bad = 0, far = 0;
    for (int32_t first = 0; first < source->count; first += BLOCK) {
        int32_t left = source->count - first, count = left < BLOCK ? left : BLOCK;
        take(source, first, count, 4, block);
        const double* k = key + first;
        uint32_t* o = out + first;
        rotation_flags flags = quantize_block(block, k, k + n, k + 2 * n, k + 3 * n, count,
                                              inverse_step, still, o, o + n, o + 2 * n);
        bad |= flags.bad;
        far |= flags.far;
    }
    *is_far = far != 0;
    return bad == 0;
}

#ifdef WITH_AVX2
static WITH_AVX2 bool vectors_avx2(const rw_state_quantize_source* source, double inverse_step,
                                   uint32_t* out) {
    return quantize_vectors(source, inverse_step, out);
}

static WITH_AVX2 bool rotations_avx2(const rw_state_quantize_source* source, const double* key,
                                     double inverse_step, double still, uint32_t* out,
                                     bool* is_far) {
    return quantize_rotations(source, key, inverse_step, still, out, is_far);
}
#endif

bool rw_state_quantize_vectors_plainly(const rw_state_quantize_source* source, double inverse_step,
                                       uint32_t* out) {
    return quantize_vectors(source, inverse_step, out);
}

bool rw_state_quantize_rotations_plainly(const rw_state_quantize_source* source, const double* key,
                                         double inverse_step, double still, uint32_t* out,
                                         bool* is_far) {
    return quantize_rotations(source, key, inverse_step, still, out, is_far);
}

bool rw_state_quantize_vectors(const rw_state_quantize_source* source, double inverse_step,
                               uint32_t* out) {
#ifdef WITH_AVX2
    if (HAS_AVX2()) {
        return vectors_avx2(source, inverse_step, out);
    }
#endif
    return quantize_vectors(source, inverse_step, out);
}

bool rw_state_quantize_rotations(const rw_state_quantize_source* source, const double* key,
                                 double inverse_step, double still, uint32_t* out, bool* is_far) {
#ifdef WITH_AVX2
    if (HAS_AVX2()) {
        return rotations_avx2(source, key, inverse_step, still, out, is_far);
    }
#endif
    return quantize_rotations(source, key, inverse_step, still, out, is_far);
}
