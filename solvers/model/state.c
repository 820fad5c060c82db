#include "solvers/model/state.h"

#include "solvers/base/check.h"

rw_field_list rw_state_fields(void) {
    static const rw_field fields[] = {
#define RW_STATE_ROW(member, width, domain)                                                        \
    RW_FIELD_ENTRY(rw_state, member, width, RW_DOMAIN_##domain, RW_FIELD_HASHED),
        RW_STATE_FIELDS(RW_STATE_ROW)
#undef RW_STATE_ROW
    };
    return (rw_field_list){fields, RW_COUNT_OF(fields)};
}
