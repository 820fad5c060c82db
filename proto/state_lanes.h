// Integer kernels of the state codec on one component of a track: differences along chains, zigzag,
// byte planes, and their inverses. All arithmetic wraps, so every input has an exact inverse. Pure
// functions; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Chains cut the elements 0 .. starts[count] into runs of neighbours.
typedef struct rw_state_lanes_chains {
    int32_t* starts; // first element of each chain, and the total at the end (count + 1)
    int32_t count;
} rw_state_lanes_chains;

// out = zigzag of the order-th difference of `values` along each chain: the first of a chain as it
// is, the second as a first difference. Returns the union of all bits written, from which the
// width follows. `out` may not overlap `values`.
uint32_t rw_state_lanes_difference32(const uint32_t* values, const rw_state_lanes_chains* chains,
                                     int order, uint32_t* out);
uint64_t rw_state_lanes_difference64(const uint64_t* values, const rw_state_lanes_chains* chains,
                                     int order, uint64_t* out);

// The inverse, in place: zigzag values become values (two running sums at most).
void rw_state_lanes_integrate32(uint32_t* values, const rw_state_lanes_chains* chains, int order);
void rw_state_lanes_integrate64(uint64_t* values, const rw_state_lanes_chains* chains, int order);

// The order (0, 1, 2) whose differences have the fewest significant bits, by a sample of about 256
// elements; `components` arrays of starts[count] values follow each other.
int rw_state_lanes_choose_order32(const uint32_t* values, const rw_state_lanes_chains* chains,
                                  int components);
int rw_state_lanes_choose_order64(const uint64_t* values, const rw_state_lanes_chains* chains,
                                  int components);

// Bytes that hold every value whose bits lie in `bits`: 0 for none, 8 at most.
int rw_state_lanes_width(uint64_t bits);

// planes[p * count + i] = byte p of values[i], for p < width.
void rw_state_lanes_split32(const uint32_t* values, size_t count, int width, unsigned char* planes);
void rw_state_lanes_split64(const uint64_t* values, size_t count, int width, unsigned char* planes);

// values[i] |= plane[i] << 8 p, for one plane.
void rw_state_lanes_merge32(uint32_t* values, size_t count, int p, const unsigned char* plane);
void rw_state_lanes_merge64(uint64_t* values, size_t count, int p, const unsigned char* plane);
