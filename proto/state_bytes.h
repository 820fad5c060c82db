// Little-endian numbers at any alignment, for the state codec. Any thread.
#pragma once

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the state codec copies numbers as they lie in memory: little-endian machines only"
#endif

static inline void rw_state_bytes_put_u32(unsigned char* out, uint32_t value) {
    memcpy(out, &value, sizeof value);
}

static inline void rw_state_bytes_put_u64(unsigned char* out, uint64_t value) {
    memcpy(out, &value, sizeof value);
}

static inline void rw_state_bytes_put_f64(unsigned char* out, double value) {
    memcpy(out, &value, sizeof value);
}

static inline uint32_t rw_state_bytes_get_u32(const unsigned char* in) {
    uint32_t value;
    memcpy(&value, in, sizeof value);
    return value;
}

static inline uint64_t rw_state_bytes_get_u64(const unsigned char* in) {
    uint64_t value;
    memcpy(&value, in, sizeof value);
    return value;
}

static inline double rw_state_bytes_get_f64(const unsigned char* in) {
    double value;
    memcpy(&value, in, sizeof value);
    return value;
}
