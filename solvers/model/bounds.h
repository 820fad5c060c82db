// Numbers and arrays against the range that a field allows: what validation is made of. Each answers
// OK, or INVALID_ARGUMENT with `field` as path ("field[i]" for a number of an array) and a text that
// says what was expected and what came. Pure; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "solvers/base/status.h"
#include "solvers/model/scene.h"

#define RW_BOUNDS_MAGNITUDE_MAX 1e30 // of any number: squares and products stay finite
#define RW_BOUNDS_FIELD_CAPACITY 96  // of a field's path within a description
#define RW_BOUNDS_ITEM_CAPACITY (RW_BOUNDS_FIELD_CAPACITY + 24) // with "[index]" behind it

rw_status rw_bounds_finite(double value, const char* field, rw_error* error);
// > 0, and so far from 0 that its reciprocal is within bounds too.
rw_status rw_bounds_positive(double value, const char* field, rw_error* error);
rw_status rw_bounds_not_negative(double value, const char* field, rw_error* error);
// In [0, 1].
rw_status rw_bounds_fraction(double value, const char* field, rw_error* error);
// A value of an enum of `count` values.
rw_status rw_bounds_choice(unsigned value, unsigned count, const char* field, rw_error* error);
rw_status rw_bounds_integer(uint32_t value, uint32_t low, uint32_t high, const char* field,
                            rw_error* error);

rw_status rw_bounds_positives(rw_doubles values, const char* field, rw_error* error);
rw_status rw_bounds_not_negatives(rw_doubles values, const char* field, rw_error* error);
// Exactly `expected` numbers.
rw_status rw_bounds_length(size_t count, size_t expected, const char* field, rw_error* error);
// Whole rows of `width` numbers.
rw_status rw_bounds_rows(size_t count, size_t width, const char* field, rw_error* error);
// No numbers at all, for the reason `why`.
rw_status rw_bounds_absent(size_t count, const char* field, const char* why, rw_error* error);
