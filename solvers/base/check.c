#include "solvers/base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void rw_check_failed(const char* file, int line, const char* expression) {
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
    abort();
}
