// Vectors of four doubles and the choice of the widest code that the processor runs. Kernels are
// written once, as always-inline functions, and compiled plainly and for AVX2; vectors run over
// independent entries and nothing is fused or reordered, so that all give the same bits. Pure; any
// thread.
//
//   RW_SIMD_KERNEL void run(...) { ... rw_simd_four ... }
//   static void run_plain(...) { run(...); }
//   RW_SIMD_AVX2 static void run_avx2(...) { run(...); }
//   ... rw_simd_has_avx2() ? run_avx2(...) : run_plain(...)
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Four neighbours in memory, at any address. Never pass or return one by value: the plain code has
// no register for it.
typedef double rw_simd_four __attribute__((vector_size(32), aligned(8), may_alias));

#define RW_SIMD_KERNEL static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define RW_SIMD_AVX2 __attribute__((target("avx2")))
#else
#define RW_SIMD_AVX2
#endif

// True when the processor runs AVX2 and the plain code is not forced.
bool rw_simd_has_avx2(void);

// Forces the plain code, for tests of equal bits. Not while other threads solve.
void rw_simd_force_plain(bool plain);
