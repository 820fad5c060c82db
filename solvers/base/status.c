#include "solvers/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char* rw_status_name(rw_status status) {
    switch (status) {
#define RW_STATUS_ENTRY(name, number)                                                              \
    case RW_STATUS_##name:                                                                         \
        return #name;
        RW_STATUS_LIST(RW_STATUS_ENTRY)
#undef RW_STATUS_ENTRY
    }
    return "UNKNOWN";
}

rw_status rw_status_fail(rw_error* error, rw_status status, const char* path, const char* format,
                         ...) {
    if (error != NULL) {
        error->status = status;
        snprintf(error->path, sizeof error->path, "%s", path != NULL ? path : "");
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

rw_status rw_status_prefix(rw_error* error, const char* format, ...) {
    char prefix[sizeof error->path];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);

    char joined[2 * sizeof error->path];
    const char* dot = error->path[0] == '\0' || error->path[0] == '[' ? "" : ".";
    snprintf(joined, sizeof joined, "%s%s%s", prefix, dot, error->path);
    joined[sizeof error->path - 1] = '\0';
    memcpy(error->path, joined, strlen(joined) + 1);
    return error->status;
}
