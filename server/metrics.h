// Counters and gauges of the daemon, for Prometheus (/metrics) and the Stats command. Any thread.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "solvers/base/buffer.h"

// name, type, unit, help. Prometheus names get the prefix "ropewalk_".
#define RW_METRICS_LIST(X)                                                                         \
    X(connections, gauge, "1", "Open client connections")                                          \
    X(connections_total, counter, "1", "Connections accepted")                                     \
    X(connections_refused_total, counter, "1", "Connections refused by a limit")                   \
    X(hello_refused_total, counter, "1", "Hellos refused: version or token")                       \
    X(framing_errors_total, counter, "1", "Connections closed for a framing error")                \
    X(received_bytes_total, counter, "bytes", "Bytes received from clients")                       \
    X(sent_bytes_total, counter, "bytes", "Bytes sent to clients")                                 \
    X(requests_total, counter, "1", "Requests received")                                           \
    X(requests_failed_total, counter, "1", "Requests answered with another status than OK")        \
    X(requests_open, gauge, "1", "Requests not answered yet")                                      \
    X(requests_inline_total, counter, "1", "Requests run on the loop thread")                      \
    X(requests_worker_total, counter, "1", "Requests run on a worker")                             \
    X(requests_cancelled_total, counter, "1", "Requests ended by Cancel, deadline or closing")     \
    X(sessions, gauge, "1", "Open sessions")                                                       \
    X(sessions_total, counter, "1", "Sessions opened")                                             \
    X(sessions_faulted_total, counter, "1", "Sessions whose simulation failed")                    \
    X(steps_total, counter, "1", "Steps done by all sessions")                                     \
    X(step_ns_total, counter, "ns", "Time spent in steps")                                         \
    X(lost_steps_total, counter, "1", "Steps that late paced runs lost")                           \
    X(frames_encoded_total, counter, "1", "State frames encoded")                                  \
    X(frames_sent_total, counter, "1", "State frames sent, each reader counted")                   \
    X(frames_dropped_total, counter, "1", "State frames dropped for slow readers or budgets")      \
    X(frame_bytes_total, counter, "bytes", "Bytes of state frames sent")                           \
    X(upload_bytes, gauge, "bytes", "Bytes of blobs held for clients")                             \
    X(loop_stalls_total, counter, "1", "Times the loop thread was busy for over 20 ms")            \
    X(worker_busy_ns_total, counter, "ns", "Time that workers spent working")                      \
    X(worker_queue, gauge, "1", "Sessions that wait for a worker")                                 \
    X(server_memory_bytes, gauge, "bytes", "Counted memory outside sessions")                      \
    X(session_memory_bytes, gauge, "bytes", "Counted memory of all sessions")

typedef enum rw_metrics_name {
#define RW_METRICS_ENTRY(name, type, unit, help) RW_METRICS_##name,
    RW_METRICS_LIST(RW_METRICS_ENTRY)
#undef RW_METRICS_ENTRY
    RW_METRICS_COUNT,
} rw_metrics_name;

typedef struct rw_metrics {
    _Atomic int64_t values[RW_METRICS_COUNT]; // relaxed: they order nothing
} rw_metrics;

void rw_metrics_init(rw_metrics* metrics);

// Adds to a counter or gauge.
void rw_metrics_add(rw_metrics* metrics, rw_metrics_name name, int64_t amount);

// Sets a gauge (or a counter that is kept elsewhere).
void rw_metrics_set(rw_metrics* metrics, rw_metrics_name name, int64_t value);

int64_t rw_metrics_get(rw_metrics* metrics, rw_metrics_name name);

const char* rw_metrics_title(rw_metrics_name name); // "connections_total"
const char* rw_metrics_unit(rw_metrics_name name);  // "bytes"

// Appends all in Prometheus' text format. RESOURCE_EXHAUSTED.
rw_status rw_metrics_print(rw_metrics* metrics, rw_buffer* out);
