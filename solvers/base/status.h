// Status codes and errors: how every part of the house says that something went wrong.
// Any thread; an rw_error belongs to its caller.
#pragma once

#include <stddef.h>

// name, pinned number. The numbers are those of ropewalk.v1.Status and never change.
#define RW_STATUS_LIST(X)                                                                          \
    X(OK, 0)                                                                                       \
    X(INVALID_ARGUMENT, 1)                                                                         \
    X(NOT_FOUND, 2)                                                                                \
    X(ALREADY_EXISTS, 3)                                                                           \
    X(FAILED_PRECONDITION, 4)                                                                      \
    X(OUT_OF_RANGE, 5)                                                                             \
    X(PERMISSION_DENIED, 6)                                                                        \
    X(UNAUTHENTICATED, 7)                                                                          \
    X(RESOURCE_EXHAUSTED, 8)                                                                       \
    X(DEADLINE_EXCEEDED, 9)                                                                        \
    X(CANCELLED, 10)                                                                               \
    X(FAULTED, 11)                                                                                 \
    X(UNAVAILABLE, 12)                                                                             \
    X(DATA_LOSS, 13)                                                                               \
    X(UNIMPLEMENTED, 14)                                                                           \
    X(INTERNAL, 15)

typedef enum rw_status {
#define RW_STATUS_ENTRY(name, number) RW_STATUS_##name = number,
    RW_STATUS_LIST(RW_STATUS_ENTRY)
#undef RW_STATUS_ENTRY
} rw_status;

// What went wrong, where. `path` names the offending field as the client wrote it
// (`rods[3].young_modulus`), empty when no field is to blame.
typedef struct rw_error {
    rw_status status;
    char path[192];
    char text[320];
} rw_error;

// The name of a status, e.g. "NOT_FOUND"; "UNKNOWN" for a number out of the list.
const char* rw_status_name(rw_status status);

// Fills `error` (may be NULL) and returns `status`, so that a caller can `return` it. `path` is taken
// as it is (NULL: none), `format` with what follows as by printf.
rw_status rw_status_fail(rw_error* error, rw_status status, const char* path, const char* format,
                         ...) __attribute__((format(printf, 4, 5)));

// Puts a printf-formatted prefix before the path: "rods[3]" + "young_modulus" gives
// "rods[3].young_modulus". An index prefix such as "[2]" is joined without a dot. Returns the
// error's status.
rw_status rw_status_prefix(rw_error* error, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Fills `error` and returns from the function with the status.
#define RW_FAIL(error, status, path, ...)                                                          \
    return rw_status_fail((error), RW_STATUS_##status, (path), __VA_ARGS__)

// Forwards any status but OK to the caller.
#define RW_TRY(expression)                                                                         \
    do {                                                                                           \
        rw_status rw_try_status_ = (expression);                                                   \
        if (rw_try_status_ != RW_STATUS_OK) {                                                      \
            return rw_try_status_;                                                                 \
        }                                                                                          \
    } while (0)
