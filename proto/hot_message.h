// Hand-written reading and writing of the few messages that are sent thousands of times a second:
// the envelope, Ping, Advance, Step. Same bytes as the general way (message.h), in a tenth of the
// time; whatever is unusual is left to it. Any thread; nothing is kept.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"
#include "solvers/base/buffer.h"
#include "solvers/base/status.h"

// A request's envelope with its command still encoded.
typedef struct rw_hot_message_envelope {
    uint64_t request_id;
    uint64_t session;
    uint32_t deadline_ms;
    bool has_expected_step;
    uint64_t expected_step;
    uint32_t command_tag;   // rw_pb_Request_..._tag
    const uint8_t* command; // its payload, within the message
    size_t command_size;
} rw_hot_message_envelope;

typedef struct rw_hot_message_advance {
    uint64_t actuate; // handle; 0 = none
    rw_wire_array inputs;
    uint32_t steps; // 1 when not given
    uint64_t observe;
    uint32_t every;
} rw_hot_message_advance;

typedef struct rw_hot_message_step {
    uint32_t count; // 1 when neither is given
    bool has_until;
    double until;
} rw_hot_message_step;

// Each returns false for what is not plain: unknown fields, arrays in pieces, bytes cut short. Then the
// general way decides, and says what is wrong. Of a number given twice the last counts, as there.
bool rw_hot_message_read_envelope(const void* bytes, size_t size, rw_hot_message_envelope* out);
bool rw_hot_message_read_ping(const uint8_t* command, size_t size, uint64_t* payload);
bool rw_hot_message_read_advance(const uint8_t* command, size_t size, rw_hot_message_advance* out);
bool rw_hot_message_read_step(const uint8_t* command, size_t size, rw_hot_message_step* out);

enum { RW_HOT_MESSAGE_PING_BYTES = 64 }; // no Ping answer is longer

// Writes the whole frame of a Ping's answer and returns its size.
size_t rw_hot_message_write_ping(uint8_t out[RW_HOT_MESSAGE_PING_BYTES], uint64_t request_id,
                                 uint64_t payload, uint64_t server_time_ns);

// What the answers to Advance and Step have in common.
typedef struct rw_hot_message_done {
    uint64_t request_id;
    uint32_t steps_done;
    uint64_t step;
    double time; // [s]
} rw_hot_message_done;

// Append the whole frame of an OK answer. RESOURCE_EXHAUSTED leaves `out` as it was.
rw_status rw_hot_message_append_advance(rw_buffer* out, const rw_hot_message_done* done,
                                        const double* values, size_t value_count, uint32_t rows);
rw_status rw_hot_message_append_step(rw_buffer* out, const rw_hot_message_done* done,
                                     double wall_s);
