// Pacing: how many steps a session that runs by the wall clock owes now. Pure arithmetic; any
// thread, one at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { RW_PACING_CATCH_UP = 4 }; // steps that a late run catches up; the rest is lost

typedef struct rw_pacing {
    bool is_on;
    double ratio;       // simulated seconds per second; INFINITY = as fast as possible
    int64_t start_ns;   // wall clock of `steps_due` 0
    int64_t steps_done; // since then, lost ones included
    uint64_t lost_steps; // of this run
    int64_t until_step; // pauses by itself there; -1 = never
} rw_pacing;

void rw_pacing_start(rw_pacing* pacing, double ratio, int64_t until_step, int64_t now_ns);

// Steps to do now, at a step of `time_step` seconds. When more are owed than may be caught up, the
// rest is counted as lost and forgotten. The allowance is RW_PACING_CATCH_UP, or what falls into
// two milliseconds (the timer's grain) when that is more. `at_step` is where the session is.
int64_t rw_pacing_due(rw_pacing* pacing, double time_step, int64_t at_step, int64_t now_ns);

// Says that one step was done.
void rw_pacing_stepped(rw_pacing* pacing);

// A new time step or ratio: what was owed until now stays owed in steps, the clock starts anew.
void rw_pacing_rebase(rw_pacing* pacing, int64_t now_ns);
