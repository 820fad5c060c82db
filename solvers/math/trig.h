// Our own sine, cosine, arctangent and arccosine in double precision. Every state path uses these
// and never the C library's, whose last bit changes with the processor: they are made of + - * /,
// sqrt and explicit fma() alone, so the same argument gives the same bits on every machine. Errors
// are below 1 ulp over the whole range, tested against multiprecision tables. Pure functions; any
// thread may call them.
#pragma once

// Returns sin(x), x in radians, any finite x (arguments beyond 2^45 are reduced with 1200 bits of
// 2/pi). sin(+-0) = +-0; infinities and NaN give NaN.
double rw_trig_sin(double x);

// Returns cos(x), as rw_trig_sin.
double rw_trig_cos(double x);

// Writes sin(x) and cos(x), the same bits as the two functions, at the price of one reduction.
void rw_trig_sincos(double x, double* sine, double* cosine);

// Returns the angle of the point (x, y) in [-pi, pi]; signed zeros and infinities as in C's atan2.
double rw_trig_atan2(double y, double x);

// Returns arccos(x) in [0, pi]; NaN outside [-1, 1].
double rw_trig_acos(double x);

// Returns arcsin(x) in [-pi/2, pi/2]; NaN outside [-1, 1].
double rw_trig_asin(double x);
