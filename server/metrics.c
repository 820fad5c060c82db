#include "server/metrics.h"

#include <stdio.h>

typedef struct description {
    const char* name;
    const char* type;
    const char* unit;
    const char* help;
} description;

static const description DESCRIPTIONS[RW_METRICS_COUNT] = {
#define RW_METRICS_ENTRY(name, type, unit, help) {#name, #type, unit, help},
    RW_METRICS_LIST(RW_METRICS_ENTRY)
#undef RW_METRICS_ENTRY
};

void rw_metrics_init(rw_metrics* metrics) {
    for (int i = 0; i < RW_METRICS_COUNT; i++) {
        atomic_init(&metrics->values[i], 0);
    }
}

void rw_metrics_add(rw_metrics* metrics, rw_metrics_name name, int64_t amount) {
    atomic_fetch_add_explicit(&metrics->values[name], amount, memory_order_relaxed);
}

void rw_metrics_set(rw_metrics* metrics, rw_metrics_name name, int64_t value) {
    atomic_store_explicit(&metrics->values[name], value, memory_order_relaxed);
}

int64_t rw_metrics_get(rw_metrics* metrics, rw_metrics_name name) {
    return atomic_load_explicit(&metrics->values[name], memory_order_relaxed);
}

const char* rw_metrics_title(rw_metrics_name name) { return DESCRIPTIONS[name].name; }
const char* rw_metrics_unit(rw_metrics_name name) { return DESCRIPTIONS[name].unit; }

rw_status rw_metrics_print(rw_metrics* metrics, rw_buffer* out) {
    for (int i = 0; i < RW_METRICS_COUNT; i++) {
        const description* one = &DESCRIPTIONS[i];
        char text[512];
        int size = snprintf(text, sizeof text,
                            "# HELP ropewalk_%s %s.\n# TYPE ropewalk_%s %s\nropewalk_%s %lld\n",
                            one->name, one->help, one->name, one->type, one->name,
                            (long long)rw_metrics_get(metrics, (rw_metrics_name)i));
        RW_TRY(rw_buffer_append(out, text, (size_t)size));
    }
    return RW_STATUS_OK;
}
