#include "solvers/math/trig.h"
#include "tests/support/rw_test.h"
#include "tests/unit/math/trig_table.inc"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// |value - (high + low)| in units of the last place of `high`, subnormals included.
static double ulps(double value, double high, double low) {
    if (high == 0.0)
        return value == 0.0 ? 0.0 : HUGE_VAL;
    double unit = nextafter(fabs(high), HUGE_VAL) - fabs(high);
    return fabs(((value - high) - low) / unit);
}

static void check(const char* what, double value, double high, double low, double* worst) {
    double e = ulps(value, high, low);
    if (!(e <= 1.0))
        fail_msg("%s = %.17g, expected %.17g: %.3f ulp", what, value, high, e);
    *worst = e > *worst ? e : *worst;
}

static void sine_and_cosine_are_within_one_ulp_of_the_table(void** state) {
    (void)state;
    double worst = 0.0;
    for (size_t i = 0; i < COUNT(sine_table); i++) {
        const double* r = sine_table[i];
        char what[64];
        snprintf(what, sizeof what, "sin(%a)", r[0]);
        check(what, rw_trig_sin(r[0]), r[1], r[2], &worst);
        snprintf(what, sizeof what, "cos(%a)", r[0]);
        check(what, rw_trig_cos(r[0]), r[3], r[4], &worst);
    }
    print_message("sin, cos: worst %.3f ulp\n", worst);
}

static void sincos_gives_the_bits_of_sin_and_cos(void** state) {
    (void)state;
    for (size_t i = 0; i < COUNT(sine_table); i++) {
        double s, c, a = rw_trig_sin(sine_table[i][0]), b = rw_trig_cos(sine_table[i][0]);
        rw_trig_sincos(sine_table[i][0], &s, &c);
        assert_memory_equal(&s, &a, sizeof s);
        assert_memory_equal(&c, &b, sizeof c);
    }
}

static void sine_is_odd_and_cosine_is_even_to_the_bit(void** state) {
    (void)state;
    for (size_t i = 0; i < COUNT(sine_table); i++) {
        double x = sine_table[i][0];
        assert_true(rw_trig_sin(-x) == -rw_trig_sin(x));
        assert_true(rw_trig_cos(-x) == rw_trig_cos(x));
    }
}

static void special_arguments_of_sine_and_cosine(void** state) {
    (void)state;
    assert_true(rw_trig_sin(0.0) == 0.0 && !signbit(rw_trig_sin(0.0)));
    assert_true(signbit(rw_trig_sin(-0.0)));
    assert_true(rw_trig_sin(5e-324) == 5e-324);
    assert_true(rw_trig_cos(-0.0) == 1.0 && rw_trig_cos(5e-324) == 1.0);
    assert_true(isnan(rw_trig_sin(NAN)) && isnan(rw_trig_cos(NAN)));
    assert_true(isnan(rw_trig_sin(INFINITY)) && isnan(rw_trig_cos(-INFINITY)));
}

static void arctangent_is_within_one_ulp_of_the_table(void** state) {
    (void)state;
    double worst = 0.0;
    for (size_t i = 0; i < COUNT(atan2_table); i++) {
        const double* r = atan2_table[i];
        char what[80];
        snprintf(what, sizeof what, "atan2(%a, %a)", r[0], r[1]);
        check(what, rw_trig_atan2(r[0], r[1]), r[2], r[3], &worst);
        assert_true(rw_trig_atan2(-r[0], r[1]) == -rw_trig_atan2(r[0], r[1]));
    }
    print_message("atan2: worst %.3f ulp\n", worst);
}

static void special_arguments_of_arctangent_are_those_of_c(void** state) {
    (void)state;
    const double v[] = {0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e308, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < COUNT(v); i++)
        for (size_t j = 0; j < COUNT(v); j++) {
            double mine = rw_trig_atan2(v[i], v[j]), theirs = atan2(v[i], v[j]);
            if (isnan(theirs)) {
                assert_true(isnan(mine));
                continue;
            }
            assert_true(signbit(mine) == signbit(theirs));
            if (!(fabs(mine - theirs) <= 0x1p-52 * fabs(theirs)))
                fail_msg("atan2(%g, %g) = %.17g, C says %.17g", v[i], v[j], mine, theirs);
        }
}

static void arccosine_and_arcsine_are_within_one_ulp_of_the_table(void** state) {
    (void)state;
    double worst = 0.0;
    for (size_t i = 0; i < COUNT(acos_table); i++) {
        const double* r = acos_table[i];
        char what[64];
        snprintf(what, sizeof what, "acos(%a)", r[0]);
        check(what, rw_trig_acos(r[0]), r[1], r[2], &worst);
        snprintf(what, sizeof what, "asin(%a)", r[0]);
        check(what, rw_trig_asin(r[0]), r[3], r[4], &worst);
    }
    print_message("acos, asin: worst %.3f ulp\n", worst);
}

static void arccosine_outside_its_domain_is_not_a_number(void** state) {
    (void)state;
    assert_true(isnan(rw_trig_acos(1.0000000000000002)) && isnan(rw_trig_acos(-2.0)));
    assert_true(isnan(rw_trig_acos(NAN)) && isnan(rw_trig_asin(INFINITY)));
    assert_true(rw_trig_acos(1.0) == 0.0 && signbit(rw_trig_asin(-0.0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sine_and_cosine_are_within_one_ulp_of_the_table),
        cmocka_unit_test(sincos_gives_the_bits_of_sin_and_cos),
        cmocka_unit_test(sine_is_odd_and_cosine_is_even_to_the_bit),
        cmocka_unit_test(special_arguments_of_sine_and_cosine),
        cmocka_unit_test(arctangent_is_within_one_ulp_of_the_table),
        cmocka_unit_test(special_arguments_of_arctangent_are_those_of_c),
        cmocka_unit_test(arccosine_and_arcsine_are_within_one_ulp_of_the_table),
        cmocka_unit_test(arccosine_outside_its_domain_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
