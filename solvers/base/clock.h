// Monotonic time for budgets, metrics and pacing; never for physics. Any thread.
#pragma once

#include <stdint.h>

// Nanoseconds since some fixed point.
int64_t rw_clock_now_ns(void);
