#include "server/stream/pacing.h"

#include <math.h>

#define GRAIN_S 0.002

void rw_pacing_start(rw_pacing* pacing, double ratio, int64_t until_step, int64_t now_ns) {
    *pacing = (rw_pacing){
        .is_on = true, .ratio = ratio, .start_ns = now_ns, .until_step = until_step};
}

int64_t rw_pacing_due(rw_pacing* pacing, double time_step, int64_t at_step, int64_t now_ns) {
    int64_t due;
    if (isinf(pacing->ratio)) {
        due = 1;
    } else {
        double elapsed_s = (double)(now_ns - pacing->start_ns) * 1e-9;
        // A little early rather than a whole timer tick late.
        double owed = floor(elapsed_s * pacing->ratio / time_step + 1e-6);
        due = owed < 9e15 ? (int64_t)owed - pacing->steps_done : INT64_MAX / 2;
        double grain = ceil(GRAIN_S * pacing->ratio / time_step);
        int64_t allowed = grain > RW_PACING_CATCH_UP && grain < 9e15 ? (int64_t)grain
                                                                     : RW_PACING_CATCH_UP;
        if (due > allowed) {
            pacing->lost_steps += (uint64_t)(due - allowed);
            pacing->steps_done += due - allowed;
            due = allowed;
        }
        if (due < 0) {
            due = 0;
        }
    }
    if (pacing->until_step >= 0 && due > pacing->until_step - at_step) {
        due = pacing->until_step > at_step ? pacing->until_step - at_step : 0;
    }
    return due;
}

void rw_pacing_stepped(rw_pacing* pacing) {
    pacing->steps_done++;
}

void rw_pacing_rebase(rw_pacing* pacing, int64_t now_ns) {
    pacing->start_ns = now_ns;
    pacing->steps_done = 0;
}
