// Smallest-three coding of one unit quaternion, shared by encoder and decoder. Any thread.
//
// `index` names the component that is left out (0 = w, 1 = x, 2 = y, 3 = z), made positive. Slot k
// of the three keeps component k + 1; where that is the missing one, the slot keeps w. So two
// neighbours of unlike index still agree in two slots. Whichever has at least half the length may
// be left out: the bound on the angle error rests on that alone, so an index can be kept from
// neighbour to neighbour until it falls below, and a small rotation always leaves out w.
#pragma once

#include <math.h>
#include <stdint.h>

// Least magnitude of a component that may be left out. One of four is always that large.
#define RW_STATE_ROTATION_LEAST 0.5

// q = the unit quaternion whose slots are `v`.
static inline void rw_state_rotation_unpack(const double v[3], int index, double q[4]) {
    double rest = 1.0 - (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    double missing = rest > 0.0 ? sqrt(rest) : 0.0;
    q[0] = missing;
    q[1] = v[0];
    q[2] = v[1];
    q[3] = v[2];
    if (index > 0) {
        q[0] = q[index];
        q[index] = missing;
    }
}

// The inverse, for a unit quaternion.
static inline void rw_state_rotation_pack(const double q[4], int index, double v[3]) {
    double sign = q[index] < 0.0 ? -1.0 : 1.0;
    for (int k = 0; k < 3; k++) {
        v[k] = sign * q[k + 1 == index ? 0 : k + 1];
    }
}

// `index` when that component is large enough, else the largest one.
static inline int rw_state_rotation_index(const double q[4], int index) {
    if (fabs(q[index]) >= RW_STATE_ROTATION_LEAST) {
        return index;
    }
    for (int k = 0; k < 4; k++) {
        if (fabs(q[k]) > fabs(q[index])) {
            index = k;
        }
    }
    return index;
}

// r = a times the conjugate of b.
static inline void rw_state_rotation_relative(const double a[4], const double b[4], double r[4]) {
    r[0] = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
    r[1] = -a[0] * b[1] + a[1] * b[0] - a[2] * b[3] + a[3] * b[2];
    r[2] = -a[0] * b[2] + a[1] * b[3] + a[2] * b[0] - a[3] * b[1];
    r[3] = -a[0] * b[3] - a[1] * b[2] + a[2] * b[1] + a[3] * b[0];
}

// r = a times b.
static inline void rw_state_rotation_product(const double a[4], const double b[4], double r[4]) {
    r[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    r[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    r[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    r[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}
