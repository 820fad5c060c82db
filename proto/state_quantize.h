// The hot loops of the state encoder: doubles of a track -> integers of a quantisation step. Pure
// functions; any thread. They run with AVX2 where the processor has it, with the same results:
// neither contracts products and sums.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Integers must stay below this, so that their differences fit 32 bits.
#define RW_STATE_QUANTIZE_LIMIT 1073741824.0 // 2^30
// Of |q|^2; what is farther from 1 is no rotation.
#define RW_STATE_QUANTIZE_UNIT_TOLERANCE 1e-6

// Where the numbers lie: element i at data + stride * (index == NULL ? i : index[i]).
typedef struct rw_state_quantize_source {
    const double* data;
    const int32_t* index;
    int64_t stride; // doubles
    int32_t count;
} rw_state_quantize_source;

// The nearest integer, ties to even, for |value| < 2^31.
uint32_t rw_state_quantize_nearest(double value);

// out[k * count + i] = nearest integer to component k of vector i times `inverse_step`. Returns false
// when some element is not finite or leaves the range; its integers are then undefined.
bool rw_state_quantize_vectors(const rw_state_quantize_source* source, double inverse_step,
                               uint32_t* out);

// The integers of rotations relative to `key` (4 x count, component after component, unit):
// out[k * count + i] for the components x, y, z of q conj(key), where its w is positive. Where the
// square of the half angle's sine is at most `still`, they are 0. Sets *is_far when some |w| is
// below RW_STATE_ROTATION_LEAST; returns false when some element is not of unit length. The integers of
// such elements are undefined.
bool rw_state_quantize_rotations(const rw_state_quantize_source* source, const double* key,
                                 double inverse_step, double still, uint32_t* out, bool* is_far);

// The same two without AVX2, so that a test can compare.
bool rw_state_quantize_vectors_plainly(const rw_state_quantize_source* source, double inverse_step,
                                       uint32_t* out);
bool rw_state_quantize_rotations_plainly(const rw_state_quantize_source* source, const double* key,
                                         double inverse_step, double still, uint32_t* out,
                                         bool* is_far);
