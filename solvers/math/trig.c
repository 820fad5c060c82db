#include "solvers/math/trig.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// pi/2 and pi as unevaluated sums; the first three parts of pi/2 hold 161 bits.
#define PIO2_1 0x1.921fb54442d18p+0
#define PIO2_2 0x1.1a62633145c07p-54
#define PIO2_3 (-0x1.f1976b7ed8fbcp-110)
#define PI_1 0x1.921fb54442d18p+1
#define PI_2 0x1.1a62633145c07p-53
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

// 1280 bits of 2/pi, 64 per word, most significant first.
static const uint64_t two_over_pi_bits[20] = {
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u,
    0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
    0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu,
    0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du,
};

__extension__ typedef unsigned __int128 uint128;

// A value as the unevaluated sum of two doubles.
typedef struct sum2 {
    double hi, lo;
} sum2;

// Exact sum of two doubles (Knuth).
static inline sum2 two_sum(double a, double b) {
    double s = a + b;
    double t = s - a;
    return (sum2){s, (a - (s - t)) + (b - t)};
}

// The 64 bits of 2/pi that start at binary place `place` (place 1 has weight 1/2); places before
// the point are zero.
static uint64_t two_over_pi_at(int place) {
    int bit = place - 1;
    if (bit <= -64)
        return 0;
    if (bit < 0)
        return two_over_pi_bits[0] >> -bit;
    int word = bit / 64, shift = bit % 64;
    uint64_t v = two_over_pi_bits[word] << shift;
    return shift ? v | (two_over_pi_bits[word + 1] >> (64 - shift)) : v;
}

// Payne and Hanek's reduction for |x| >= 2^45: with x = m 2^e, the bits of 2/pi of weight 2^(2-e)
// and more only add multiples of 4 to x 2/pi, so 192 bits from there on give the quadrant and
// a fraction with an error below 2^-137. Returns the quadrant, writes the rest in (-pi/4, pi/4).
static unsigned reduce_huge(double x, sum2* rest) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)((bits >> 52) & 0x7ff) - 1075;
    uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;

    // Low 192 bits of m times the window: 2 integer bits, 190 of fraction.
    uint64_t f2 = two_over_pi_at(e - 1), f1 = two_over_pi_at(e + 63), f0 = two_over_pi_at(e + 127);
    uint128 p0 = (uint128)m * f0;
    uint128 p1 = (uint128)m * f1 + (uint64_t)(p0 >> 64);
    uint64_t l = (uint64_t)p0, c = (uint64_t)p1, h = m * f2 + (uint64_t)(p1 >> 64);

    unsigned quadrant = (unsigned)(h >> 62);
    h = (h << 2) | (c >> 62);
    c = (c << 2) | (l >> 62);
    l <<= 2;
    double sign = 1.0;
    if (h >> 63) { // nearest quadrant: a fraction above one half becomes negative
        quadrant++;
        sign = -1.0;
        l = ~l + 1;
        c = ~c + (l == 0);
        h = ~h + (l == 0 && c == 0);
    }
    double scale = 1.0;
    while (h == 0) { // never met by a double, but then nothing may depend on luck
        h = c;
        c = l;
        l = 0;
        scale *= 0x1p-64;
        if (scale < 0x1p-200)
            break;
    }
    int zeros = h ? __builtin_clzll(h) : 0;
    if (zeros) {
        h = (h << zeros) | (c >> (64 - zeros));
        c = (c << zeros) | (l >> (64 - zeros));
    }
    scale *= 1.0 / (double)(UINT64_C(1) << zeros);
    double hi = (double)(h >> 11) * 0x1p-53;
    double lo = (double)(((h & 0x7ff) << 53) | (c >> 11)) * 0x1p-117;
    double r = hi * PIO2_1;
    double r_lo = fma(hi, PIO2_1, -r) + (hi * PIO2_2 + lo * PIO2_1);
    sum2 s = two_sum(r, r_lo);
    if (x < 0.0) {
        sign = -sign;
        quadrant = 0u - quadrant;
    }
    *rest = (sum2){s.hi * (sign * scale), s.lo * (sign * scale)};
    return quadrant & 3u;
}

// Writes x - n pi/2 with |result| <= pi/4 (a little more by rounding), returns n mod 4. Cody and
// Waite with fma: the first subtraction is exact, the next parts of pi/2 bring the error below
// 2^-69 of the result even where x is next to a multiple of pi/2.
static unsigned reduce(double x, sum2* rest) {
    if (fabs(x) >= 0x1p45)
        return reduce_huge(x, rest);
    double shifted = x * TWO_OVER_PI + 0x1.8p52; // rounds to an integer in the low bits
    double n = shifted - 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);

    double r = fma(-n, PIO2_1, x);
    double p = n * PIO2_2;
    double p_lo = fma(n, PIO2_2, -p);
    sum2 s = two_sum(r, -p);
    double lo = s.lo - (p_lo + n * PIO2_3);
    *rest = two_sum(s.hi, lo);
    return (unsigned)(bits & 3u);
}

// sin(x + y) for |x| <= 0.8, |y| < ulp(x): Taylor, whose first omitted term is below 2^-63.
static double kernel_sin(double x, double y) {
    double z = x * x, v = z * x;
    double r = 0x1.1111111111111p-7 +
               z * (-0x1.a01a01a01a01ap-13 +
                    z * (0x1.71de3a556c734p-19 +
                         z * (-0x1.ae64567f544e4p-26 +
                              z * (0x1.6124613a86d09p-33 +
                                   z * (-0x1.ae7f3e733b81fp-41 + z * 0x1.952c77030ad4ap-49)))));
    return x - ((z * (0.5 * y - v * r) - y) - v * -0x1.5555555555555p-3);
}

// cos(x + y) under the same conditions; 1 - x^2/2 is summed with its rounding error.
static double kernel_cos(double x, double y) {
    double z = x * x, half = 0.5 * z, w = 1.0 - half;
    double r = z * (0x1.5555555555555p-5 +
                    z * (-0x1.6c16c16c16c17p-10 +
                         z * (0x1.a01a01a01a01ap-16 +
                              z * (-0x1.27e4fb7789f5cp-22 +
                                   z * (0x1.1eed8eff8d898p-29 +
                                        z * (-0x1.93974a8c07c9dp-37 +
                                             z * (0x1.ae7f3e733b81fp-45 +
                                                  z * -0x1.6827863b97d97p-53)))))));
    return w + (((1.0 - w) - half) + (z * r - x * y));
}

void rw_trig_sincos(double x, double* sine, double* cosine) {
    double a = fabs(x);
    if (a <= 0.785398) {
        *sine = a < 0x1p-27 ? x : kernel_sin(x, 0.0); // keeps -0 and subnormals
        *cosine = a < 0x1p-27 ? 1.0 : kernel_cos(x, 0.0);
        return;
    }
    if (!isfinite(x)) {
        *sine = *cosine = x - x;
        return;
    }
    sum2 r;
    unsigned quadrant = reduce(x, &r);
    double s = kernel_sin(r.hi, r.lo), c = kernel_cos(r.hi, r.lo);
    double first = (quadrant & 1u) ? c : s, second = (quadrant & 1u) ? s : c;
    *sine = (quadrant & 2u) ? -first : first;
    *cosine = ((quadrant + 1u) & 2u) ? -second : second;
}

double rw_trig_sin(double x) {
    double s, c;
    rw_trig_sincos(x, &s, &c);
    return s;
}

double rw_trig_cos(double x) {
    double s, c;
    rw_trig_sincos(x, &s, &c);
    return c;
}

// atan(k/16) as sums of two doubles.
static const sum2 atan_table[17] = {
    {0x0.0p+0, 0x0.0p+0},
    {0x1.ff55bb72cfdeap-5, -0x1.c934d86d23f1dp-60},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
};

// atan(a/b) for 0 <= a <= b (a little more by rounding), both far from overflow and underflow.
// With c = k/16 next to a/b: atan(a/b) = atan(c) + atan(u), u = (a - c b)/(b + c a), |u| < 1/31;
// numerator, denominator and quotient carry their rounding errors, so the result is good to 2^-60.
static sum2 atan_ratio(sum2 a, sum2 b) {
    int k = (int)(a.hi / b.hi * 16.0 + 0.5);
    double c = (double)k * 0.0625;
    double p = c * b.hi, p_lo = fma(c, b.hi, -p);
    sum2 num = two_sum(a.hi, -p);
    num.lo += (a.lo - c * b.lo) - p_lo;
    p = c * a.hi;
    p_lo = fma(c, a.hi, -p);
    sum2 den = two_sum(b.hi, p);
    den.lo += (b.lo + c * a.lo) + p_lo;

    double u = num.hi / den.hi;
    double u_lo = ((fma(-u, den.hi, num.hi) + num.lo) - u * den.lo) / den.hi;
    double z = u * u;
    double tail = u * z *
                  (-0x1.5555555555555p-2 +
                   z * (0x1.999999999999ap-3 +
                        z * (-0x1.2492492492492p-3 +
                             z * (0x1.c71c71c71c71cp-4 + z * -0x1.745d1745d1746p-4))));
    sum2 s = two_sum(atan_table[k].hi, u);
    return two_sum(s.hi, s.lo + (atan_table[k].lo + (u_lo + tail)));
}

// The angle in [0, pi] of the point (x, y), y >= 0, from sums that are far from overflow.
static double upper_angle(sum2 y, sum2 x) {
    int left = x.hi < 0.0;
    sum2 ax = left ? (sum2){-x.hi, -x.lo} : x;
    sum2 r, s;
    if (y.hi <= ax.hi) {
        r = atan_ratio(y, ax);
        if (!left)
            return r.hi + r.lo;
        s = two_sum(PI_1, -r.hi);
        return s.hi + (s.lo + (PI_2 - r.lo));
    }
    r = atan_ratio(ax, y);
    if (!left)
        r = (sum2){-r.hi, -r.lo};
    s = two_sum(PIO2_1, r.hi);
    return s.hi + (s.lo + (PIO2_2 + r.lo));
}

double rw_trig_atan2(double y, double x) {
    double ax = fabs(x), ay = fabs(y);
    int left = signbit(x) != 0;
    if (isnan(x) || isnan(y))
        return x + y;
    if (isinf(ay))
        return copysign(isinf(ax) ? (left ? 0x1.2d97c7f3321d2p+1 : PIO2_1 * 0.5) : PIO2_1, y);
    if (ay == 0.0 || isinf(ax))
        return copysign(left ? PI_1 : 0.0, y);
    if (ax < ay * 0x1p-60)
        return copysign(PIO2_1, y);
    if (ay < ax * 0x1p-60)
        return left ? copysign(PI_1, y) : y / x;
    double largest = ax > ay ? ax : ay;
    double scale = largest > 0x1p500 ? 0x1p-600 : largest < 0x1p-400 ? 0x1p600 : 1.0;
    return copysign(upper_angle((sum2){ay * scale, 0.0}, (sum2){x * scale, 0.0}), y);
}

// sqrt(1 - x^2) with its rounding error, |x| < 1.
static sum2 cathetus(double x) {
    double p = x * x, p_lo = fma(x, x, -p);
    sum2 d = two_sum(1.0, -p);
    d = two_sum(d.hi, d.lo - p_lo);
    double s = sqrt(d.hi);
    return (sum2){s, (fma(-s, s, d.hi) + d.lo) / (2.0 * s)};
}

double rw_trig_acos(double x) {
    if (!(fabs(x) < 1.0))
        return x == 1.0 ? 0.0 : x == -1.0 ? PI_1 : (double)NAN;
    if (fabs(x) < 0x1p-60)
        return PIO2_1;
    return upper_angle(cathetus(x), (sum2){x, 0.0});
}

double rw_trig_asin(double x) {
    if (!(fabs(x) < 1.0))
        return fabs(x) == 1.0 ? copysign(PIO2_1, x) : (double)NAN;
    if (fabs(x) < 0x1p-28)
        return x;
    return copysign(upper_angle((sum2){fabs(x), 0.0}, cathetus(x)), x);
}
