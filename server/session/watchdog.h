// The watchdog: a thread of its own that raises a flag when a deadline passes, so that a step that
// takes long is stopped in its middle (and undone). Any thread may enter and leave; nothing here is
// on the path of commands without a deadline.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "solvers/base/alloc.h"

typedef struct rw_watchdog rw_watchdog;

// A watch, in the memory of whoever is watched.
typedef struct rw_watchdog_entry {
    struct rw_watchdog_entry* next;
    atomic_bool* flag;   // raised when the deadline passes
    int64_t deadline_ns; // rw_clock_now_ns; 0 = not entered
} rw_watchdog_entry;

// Starts the thread. NULL when memory or threads are exhausted.
rw_watchdog* rw_watchdog_create(rw_alloc* alloc);

// Joins the thread; no entry may be left. NULL is accepted.
void rw_watchdog_destroy(rw_watchdog* watchdog);

// Watches until rw_watchdog_leave: `flag` is raised at `deadline_ns` (or soon after).
void rw_watchdog_enter(rw_watchdog* watchdog, rw_watchdog_entry* entry, atomic_bool* flag,
                       int64_t deadline_ns);

// Ends the watch: the flag is not raised any more. Harmless when not entered.
void rw_watchdog_leave(rw_watchdog* watchdog, rw_watchdog_entry* entry);
