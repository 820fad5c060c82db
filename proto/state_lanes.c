#include "proto/state_lanes.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // these loops vectorise only then; they are integer arithmetic alone
#endif

#define SAMPLE_COUNT 256
#define SAMPLE_WINDOW 32

// One text for both integer sizes. `T` is unsigned, so every sum wraps.
#define DEFINE_LANES(BITS, T)                                                                      \
    static inline T zigzag##BITS(T value) {                                                        \
        return (T)(value << 1) ^ (T)((T)0 - (value >> (BITS - 1)));                                \
    }                                                                                              \
    static inline T unzigzag##BITS(T value) {                                                      \
        return (T)(value >> 1) ^ (T)((T)0 - (value & 1));                                          \
    }                                                                                              \
                                                                                                   \
    T rw_state_lanes_difference##BITS(const T* restrict values,                                    \
                                      const rw_state_lanes_chains* chains, int order,              \
                                      T* restrict out) {                                           \
        T bits = 0;                                                                                \
        if (order == 0) {                                                                          \
            int32_t count = chains->starts[chains->count];                                         \
            for (int32_t i = 0; i < count; i++) {                                                  \
                out[i] = zigzag##BITS(values[i]);                                                  \
                bits |= out[i];                                                                    \
            }                                                                                      \
            return bits;                                                                           \
        }                                                                                          \
        for (int32_t c = 0; c < chains->count; c++) {                                              \
            int32_t begin = chains->starts[c], end = chains->starts[c + 1];                        \
            int32_t head = end - begin < order ? end : begin + order;                              \
            for (int32_t i = begin; i < head; i++) {                                               \
                out[i] = zigzag##BITS(i == begin ? values[i] : (T)(values[i] - values[i - 1]));    \
                bits |= out[i];                                                                    \
            }                                                                                      \
            if (order == 1) {                                                                      \
                for (int32_t i = head; i < end; i++) {                                             \
                    out[i] = zigzag##BITS((T)(values[i] - values[i - 1]));                         \
                    bits |= out[i];                                                                \
                }                                                                                  \
            } else {                                                                               \
                for (int32_t i = head; i < end; i++) {                                             \
                    out[i] = zigzag##BITS((T)(values[i] - 2 * values[i - 1] + values[i - 2]));     \
                    bits |= out[i];                                                                \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return bits;                                                                               \
    }                                                                                              \
                                                                                                   \
    void rw_state_lanes_integrate##BITS(T* values, const rw_state_lanes_chains* chains,            \
                                        int order) {                                               \
        int32_t count = chains->starts[chains->count];                                             \
        for (int32_t i = 0; i < count; i++) {                                                      \
            values[i] = unzigzag##BITS(values[i]);                                                 \
        }                                                                                          \
        for (int32_t c = 0; order > 0 && c < chains->count; c++) {                                 \
            int32_t begin = chains->starts[c], end = chains->starts[c + 1];                        \
            T slope = 0, value = begin < end ? values[begin] : 0;                                  \
            for (int32_t i = begin + 1; i < end; i++) {                                            \
                slope = order == 2 ? (T)(slope + values[i]) : values[i];                           \
                value = (T)(value + slope);                                                        \
                values[i] = value;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    int rw_state_lanes_choose_order##BITS(const T* values, const rw_state_lanes_chains* chains,    \
                                          int components) {                                        \
        int64_t count = chains->starts[chains->count], seen = 0, taken = 0;                        \
        int64_t skip = 1 + count / SAMPLE_COUNT, cost[3] = {0, 0, 0};                              \
        for (int32_t c = 0; c < chains->count; c++) {                                              \
            int64_t begin = chains->starts[c], end = chains->starts[c + 1];                        \
            for (int64_t at = begin + 2; at < end; at += SAMPLE_WINDOW * skip) {                   \
                /* Short chains: leave some out, or the sample would be the whole. */              \
                if (taken * skip > seen + at - begin) {                                            \
                    continue;                                                                      \
                }                                                                                  \
                int64_t stop = at + SAMPLE_WINDOW < end ? at + SAMPLE_WINDOW : end;                \
                for (int k = 0; k < components; k++) {                                             \
                    const T* v = values + k * count;                                               \
                    for (int64_t i = at; i < stop; i++) {                                          \
                        T first = (T)(v[i] - v[i - 1]);                                            \
                        T second = (T)(first - (T)(v[i - 1] - v[i - 2]));                          \
                        cost[0] += significant_bits(zigzag##BITS(v[i]));                           \
                        cost[1] += significant_bits(zigzag##BITS(first));                          \
                        cost[2] += significant_bits(zigzag##BITS(second));                         \
                    }                                                                              \
                }                                                                                  \
                taken += stop - at;                                                                \
            }                                                                                      \
            seen += end - begin;                                                                   \
        }                                                                                          \
        int best = cost[1] < cost[0] ? 1 : 0;                                                      \
        return cost[2] < cost[best] ? 2 : best;                                                    \
    }                                                                                              \
                                                                                                   \
    void rw_state_lanes_split##BITS(const T* restrict values, size_t count, int width,             \
                                    unsigned char* restrict planes) {                              \
        for (int p = 0; p < width; p++) {                                                          \
            unsigned char* plane = planes + (size_t)p * count;                                     \
            for (size_t i = 0; i < count; i++) {                                                   \
                plane[i] = (unsigned char)(values[i] >> (8 * p));                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void rw_state_lanes_merge##BITS(T* restrict values, size_t count, int p,                       \
                                    const unsigned char* restrict plane) {                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            values[i] |= (T)((T)plane[i] << (8 * p));                                              \
        }                                                                                          \
    }

static inline int significant_bits(uint64_t value) {
    return 64 - __builtin_clzll(value | 1);
}

DEFINE_LANES(32, uint32_t)
DEFINE_LANES(64, uint64_t)

int rw_state_lanes_width(uint64_t bits) {
    return bits == 0 ? 0 : (significant_bits(bits) + 7) / 8;
}
