#include "server/session/quota.h"

#include "solvers/base/check.h"

void rw_quota_init(rw_quota* quota, const char* what, int64_t limit) {
    *quota = (rw_quota){.what = what, .limit = limit};
}

rw_status rw_quota_take(rw_quota* quota, rw_error* error) {
    if (quota->used >= quota->limit) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the server has its %lld %s",
                (long long)quota->limit, quota->what);
    }
    quota->used++;
    return RW_STATUS_OK;
}

void rw_quota_give(rw_quota* quota) {
    RW_ASSERT(quota->used > 0);
    quota->used--;
}
