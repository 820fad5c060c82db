#!/usr/bin/env python3
"""Writes trig_table.inc and so3_table.inc: reference values to 100 digits by mpmath.

Run it by hand (python3 make_tables.py, needs mpmath) when a table must change; the tests read the
stored tables only. Every value is a pair of doubles high + low, so errors are measured to far
below one unit in the last place.
"""

import os
import random

from mpmath import mp, mpf

mp.prec = 1400
HERE = os.path.dirname(os.path.abspath(__file__))
random.seed(20240607)


def pair(v):
    high = float(v)
    return high, float(v - mpf(high))


def show(*values):
    return "{" + ", ".join(float(v).hex() for v in values) + "},\n"


def angles():
    fixed = [5e-324, 2.2250738585072014e-308, 1e-300, 1e-160, 1e-30, 7.4e-9, 7.6e-9, 1e-8, 1e-3, 0.1,
             0.5, 0.785398, 0.7853981633974482, 0.7853981633974483, 0.7853981633974484, 1.0,
             1.5707963267948966, 1.5707963267948963, 2.0, 3.0, 3.141592653589793, 3.1415926535897936,
             4.71238898038469, 6.283185307179586, 10.0, 22.0, 355.0, 1e5, 1e9, 1e15, 2.0**45,
             2.0**45 - 1, 2.0**45 + 1, 1e16, 1e22, 6381956970095103.0 * 2.0**797,
             5.319372648326541e255, 1e300, 1.7976931348623157e308]
    fixed += [float(mpf(k) * mp.pi / 2) for k in range(3, 60, 7)]
    for _ in range(60):
        fixed.append(random.uniform(0, 0.8))
        fixed.append(random.uniform(0.7, 7))
        fixed.append(random.uniform(0, 1e9))
        fixed.append(random.random() * 2.0 ** random.randint(30, 1023))
        fixed.append(random.random() * 2.0 ** random.randint(-60, 0))
        fixed.append(float(mpf(random.randint(1, 2**30)) * mp.pi / 4))
    return [x if i % 2 else -x for i, x in enumerate(fixed)]


def write_trig():
    with open(os.path.join(HERE, "trig_table.inc"), "w") as f:
        f.write("// Written by make_tables.py with mpmath.\n")
        f.write("// x, sin high, sin low, cos high, cos low\n")
        f.write("static const double sine_table[][5] = {\n")
        for x in angles():
            f.write(show(x, *pair(mp.sin(mpf(x))), *pair(mp.cos(mpf(x)))))
        f.write("};\n// y, x, atan2(y, x) high, low\nstatic const double atan2_table[][4] = {\n")
        points = []
        for _ in range(100):
            points.append((random.uniform(-1, 1), random.uniform(-1, 1)))
            points.append((random.uniform(-1, 1) * 2.0 ** random.randint(-30, 30),
                           random.uniform(-1, 1)))
            points.append((random.uniform(-1, 1) * 2.0 ** random.randint(-1000, 1000),
                           random.uniform(-1, 1) * 2.0 ** random.randint(-1000, 1000)))
            k = random.randint(0, 16) / 16
            b = random.uniform(1, 2)
            points.append((k * b * (1 + random.uniform(-1, 1) * 1e-12), b))
        points += [(5e-324, 1e-310), (5e-324, 5e-324), (1e308, 1e308), (1.7e308, -1e300), (1e-300, 1.0),
                   (3e-310, 7e-309), (-3e-310, -7e-309), (5e-324, 1.0), (1.0, 5e-324)]
        for y, x in points:
            f.write(show(y, x, *pair(mp.atan2(mpf(y), mpf(x)))))
        f.write("};\n// x, acos high, low, asin high, low\nstatic const double acos_table[][5] = {\n")
        xs = [random.uniform(-1, 1) for _ in range(120)]
        xs += [s * (1 - 2.0**-k) for k in range(1, 54, 2) for s in (1, -1)]
        xs += [s * 2.0**-k * random.uniform(0.5, 1) for k in range(1, 70, 3) for s in (1, -1)]
        xs += [1.0, -1.0, 5e-324, -1e-300]
        for x in xs:
            f.write(show(x, *pair(mp.acos(mpf(x))), *pair(mp.asin(mpf(x)))))
        f.write("};\n")


def write_so3():
    mp.prec = 800
    ts = [1e-12, 1e-10, 1e-8, 3e-6, 1e-4, 9.9e-4, 1e-3, 0.0099, 0.01, 0.0101, 0.0316, 0.0317, 0.1,
          0.3, 0.4999, 0.5, 0.501, 1.0, 1.5, 2.0, 2.5, 3.0, 3.1, 3.14, 3.1415926, 3.141592653589793,
          3.29, 3.31, 4.0, 5.0, 6.0, 6.2, 6.28, 8.0, 20.0]
    with open(os.path.join(HERE, "so3_table.inc"), "w") as f:
        f.write("// Written by make_tables.py with mpmath.\n")
        f.write("// t, sinc, alpha, beta, alpha'/t, beta'/t, Gamma^-1 coefficient\n")
        f.write("static const double coefficient_table[][7] = {\n")
        for t0 in ts:
            t = mpf(t0)
            s, c = mp.sin(t), mp.cos(t)
            a, b = (1 - c) / t**2, (t - s) / t**3
            da, db = s / t**2 - 2 * a / t, (1 - c) / t**3 - 3 * b / t
            f.write(show(t0, s / t, a, b, da / t, db / t, 1 / t**2 - (1 + c) / (2 * t * s)))
        f.write("};\n// theta (3), exp(theta) as quaternion (4) and as matrix (9, row major)\n")
        f.write("static const double exp_table[][16] = {\n")
        for t0 in ts + [3.1415926535, 3.14159265358]:
            u = [random.uniform(-1, 1) for _ in range(3)]
            n = sum(a * a for a in u) ** 0.5
            th = [float(a / n * t0) for a in u]
            t = mp.sqrt(sum(mpf(a) ** 2 for a in th))
            q = [mp.cos(t / 2)] + [mpf(a) / t * mp.sin(t / 2) for a in th]
            w, x, y, z = q
            m = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
            f.write(show(*th, *q, *m))
        f.write("};\n")


write_trig()
write_so3()
