#include "solvers/math/simd.h"

static bool forced_plain;

void rw_simd_force_plain(bool plain) {
    forced_plain = plain;
}

bool rw_simd_has_avx2(void) {
#if defined(__x86_64__)
    return !forced_plain && __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}
