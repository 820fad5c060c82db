// Wraps cmocka, whose header needs these standard headers first, and adds the comparisons that
// our tests share. Test code only.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// Fails the running test unless |actual - expected| <= tolerance, and prints both.
#define rw_assert_near(actual, expected, tolerance)                                                \
    do {                                                                                           \
        double rw_actual_ = (double)(actual), rw_expected_ = (double)(expected);                   \
        if (!(fabs(rw_actual_ - rw_expected_) <= (double)(tolerance)))                             \
            fail_msg("%s = %.17g, expected %.17g +- %g", #actual, rw_actual_, rw_expected_,        \
                     (double)(tolerance));                                                         \
    } while (0)
