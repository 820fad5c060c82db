#include "solvers/model/bounds.h"

#include <math.h>
#include <stdio.h>

// ---- Scalars ----

rw_status rw_bounds_finite(double value, const char* field, rw_error* error) {
    if (!isfinite(value)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be finite, got %g", value);
    }
    if (fabs(value) > RW_BOUNDS_MAGNITUDE_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be at most %g in magnitude, got %g",
                RW_BOUNDS_MAGNITUDE_MAX, value);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_positive(double value, const char* field, rw_error* error) {
    RW_TRY(rw_bounds_finite(value, field, error));
    // Squares and reciprocals must stay normal numbers.
    if (!(value > 0)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be > 0, got %g", value);
    }
    if (value < 1 / RW_BOUNDS_MAGNITUDE_MAX) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be >= %g, got %g",
                1 / RW_BOUNDS_MAGNITUDE_MAX, value);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_not_negative(double value, const char* field, rw_error* error) {
    RW_TRY(rw_bounds_finite(value, field, error));
    if (!(value >= 0)) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be >= 0, got %g", value);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_fraction(double value, const char* field, rw_error* error) {
    RW_TRY(rw_bounds_finite(value, field, error));
    if (value < 0 || value > 1) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [0, 1], got %g", value);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_choice(unsigned value, unsigned count, const char* field, rw_error* error) {
    if (value >= count) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "has no value %u", value);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_integer(uint32_t value, uint32_t low, uint32_t high, const char* field,
                            rw_error* error) {
    if (value < low || value > high) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must lie in [%u, %u], got %u", low, high, value);
    }
    return RW_STATUS_OK;
}

// ---- Arrays ----

rw_status rw_bounds_positives(rw_doubles values, const char* field, rw_error* error) {
    for (size_t i = 0; i < values.count; i++) {
        if (!(values.data[i] >= 1 / RW_BOUNDS_MAGNITUDE_MAX &&
              values.data[i] <= RW_BOUNDS_MAGNITUDE_MAX)) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return rw_bounds_positive(values.data[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_not_negatives(rw_doubles values, const char* field, rw_error* error) {
    for (size_t i = 0; i < values.count; i++) {
        if (!(values.data[i] >= 0 && values.data[i] <= RW_BOUNDS_MAGNITUDE_MAX)) {
            char path[RW_BOUNDS_ITEM_CAPACITY];
            snprintf(path, sizeof path, "%s[%zu]", field, i);
            return rw_bounds_not_negative(values.data[i], path, error);
        }
    }
    return RW_STATUS_OK;
}

// Exactly `count` numbers.
rw_status rw_bounds_length(size_t count, size_t expected, const char* field, rw_error* error) {
    if (count != expected) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must hold %zu numbers, got %zu", expected, count);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_rows(size_t count, size_t width, const char* field, rw_error* error) {
    if (count % width != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must be n x %zu numbers, got %zu", width, count);
    }
    return RW_STATUS_OK;
}

rw_status rw_bounds_absent(size_t count, const char* field, const char* why, rw_error* error) {
    if (count != 0) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "%s", why);
    }
    return RW_STATUS_OK;
}
