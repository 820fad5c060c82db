#include "proto/hot_message.h"

#include <string.h>

#include "proto/frame.h"
#include "proto/ropewalk/v1/command.pb.h"
#include "proto/varint.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");

enum {
    FIRST_COMMAND = rw_pb_Request_hello_tag,
    LAST_COMMAND = 99,
};

static uint64_t key_of(uint32_t tag, unsigned wire_type) {
    return (uint64_t)tag << 3 | wire_type;
}

// ---- Reading ----

bool rw_hot_message_read_envelope(const void* bytes, size_t size, rw_hot_message_envelope* out) {
    memset(out, 0, sizeof *out);
    const uint8_t* at = bytes;
    const uint8_t* end = at + size;
    while (at < end) {
        uint64_t key, value;
        if (!rw_varint_read(&at, end, &key) || out->command_tag != 0) {
            return false; // the command is the last field: every serialiser writes in order
        }
        if (key == key_of(rw_pb_Request_request_id_tag, RW_VARINT_WIRE_VARINT)) {
            if (!rw_varint_read(&at, end, &out->request_id)) {
                return false;
            }
        } else if (key == key_of(rw_pb_Request_session_tag, RW_VARINT_WIRE_64)) {
            if (end - at < 8) {
                return false;
            }
            memcpy(&out->session, at, 8);
            at += 8;
        } else if (key == key_of(rw_pb_Request_deadline_ms_tag, RW_VARINT_WIRE_VARINT)) {
            if (!rw_varint_read(&at, end, &value) || value > UINT32_MAX) {
                return false;
            }
            out->deadline_ms = (uint32_t)value;
        } else if (key == key_of(rw_pb_Request_expected_step_tag, RW_VARINT_WIRE_VARINT)) {
            if (!rw_varint_read(&at, end, &out->expected_step)) {
                return false;
            }
            out->has_expected_step = true;
        } else if ((key & 7) == RW_VARINT_WIRE_BLOCK && key >> 3 >= FIRST_COMMAND &&
                   key >> 3 <= LAST_COMMAND) {
            if (!rw_varint_read(&at, end, &value) || value > (uint64_t)(end - at)) {
                return false;
            }
            out->command_tag = (uint32_t)(key >> 3);
            out->command = at;
            out->command_size = (size_t)value;
            at += value;
        } else {
            return false;
        }
    }
    return out->command_tag != 0;
}

bool rw_hot_message_read_ping(const uint8_t* command, size_t size, uint64_t* payload) {
    const uint8_t* at = command;
    const uint8_t* end = command + size;
    uint64_t key;
    *payload = 0;
    if (at == end) {
        return true;
    }
    return rw_varint_read(&at, end, &key) &&
           key == key_of(rw_pb_Ping_payload_tag, RW_VARINT_WIRE_VARINT) &&
           rw_varint_read(&at, end, payload) && at == end;
}

static bool read_u32(const uint8_t** at, const uint8_t* end, uint32_t* out) {
    uint64_t value;
    if (!rw_varint_read(at, end, &value) || value > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool rw_hot_message_read_advance(const uint8_t* command, size_t size,
                                 rw_hot_message_advance* out) {
    *out = (rw_hot_message_advance){.steps = 1};
    const uint8_t* at = command;
    const uint8_t* end = command + size;
    while (at < end) {
        uint64_t key, value;
        bool good = rw_varint_read(&at, end, &key);
        if (!good) {
            return false;
        }
        if (key == key_of(rw_pb_Advance_actuate_tag, RW_VARINT_WIRE_VARINT)) {
            good = rw_varint_read(&at, end, &out->actuate);
        } else if (key == key_of(rw_pb_Advance_inputs_tag, RW_VARINT_WIRE_BLOCK)) {
            good = rw_varint_read(&at, end, &value) && value <= (uint64_t)(end - at) &&
                   value % 8 == 0 && out->inputs.data == NULL;
            if (good) {
                out->inputs = (rw_wire_array){.data = at, .count = (uint32_t)(value / 8)};
                at += value;
            }
        } else if (key == key_of(rw_pb_Advance_steps_tag, RW_VARINT_WIRE_VARINT)) {
            good = read_u32(&at, end, &out->steps);
        } else if (key == key_of(rw_pb_Advance_observe_tag, RW_VARINT_WIRE_VARINT)) {
            good = rw_varint_read(&at, end, &out->observe);
        } else if (key == key_of(rw_pb_Advance_every_tag, RW_VARINT_WIRE_VARINT)) {
            good = read_u32(&at, end, &out->every);
        } else {
            good = false;
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

bool rw_hot_message_read_step(const uint8_t* command, size_t size, rw_hot_message_step* out) {
    *out = (rw_hot_message_step){.count = 1};
    const uint8_t* at = command;
    const uint8_t* end = command + size;
    if (at == end) {
        return true;
    }
    uint64_t key;
    if (!rw_varint_read(&at, end, &key)) {
        return false;
    }
    if (key == key_of(rw_pb_Step_count_tag, RW_VARINT_WIRE_VARINT)) {
        return read_u32(&at, end, &out->count) && at == end;
    }
    if (key == key_of(rw_pb_Step_until_tag, RW_VARINT_WIRE_64) && end - at == 8) {
        out->has_until = true;
        memcpy(&out->until, at, 8);
        return true;
    }
    return false;
}

// ---- Writing ----

static uint8_t* put_varint(uint8_t* at, uint32_t tag, uint64_t value) {
    at += rw_varint_write(at, key_of(tag, RW_VARINT_WIRE_VARINT));
    return at + rw_varint_write(at, value);
}

static uint8_t* put_fixed64(uint8_t* at, uint32_t tag, const void* value) {
    at += rw_varint_write(at, key_of(tag, RW_VARINT_WIRE_64));
    memcpy(at, value, 8);
    return at + 8;
}

static uint8_t* put_block(uint8_t* at, uint32_t tag, size_t size) {
    at += rw_varint_write(at, key_of(tag, RW_VARINT_WIRE_BLOCK));
    return at + rw_varint_write(at, size);
}

static size_t varint_size(uint64_t value) {
    uint8_t unused[10];
    return rw_varint_write(unused, value);
}

static void put_header(uint8_t* frame, size_t payload_size) {
    rw_frame_write_header(frame, (rw_frame_header){.payload_bytes = (uint32_t)payload_size,
                                                   .kind = RW_FRAME_RESPONSE});
}

size_t rw_hot_message_write_ping(uint8_t out[RW_HOT_MESSAGE_PING_BYTES], uint64_t request_id,
                                 uint64_t payload, uint64_t server_time_ns) {
    uint8_t* at = out + RW_FRAME_HEADER_BYTES;
    at = put_varint(at, rw_pb_Response_request_id_tag, request_id);
    // A zero scalar is left out, as every serialiser does.
    size_t size = (payload != 0 ? 1 + varint_size(payload) : 0) + (server_time_ns != 0 ? 9 : 0);
    at = put_block(at, rw_pb_Response_ping_tag, size);
    if (payload != 0) {
        at = put_varint(at, rw_pb_PingResult_payload_tag, payload);
    }
    if (server_time_ns != 0) {
        at = put_fixed64(at, rw_pb_PingResult_server_time_ns_tag, &server_time_ns);
    }
    put_header(out, (size_t)(at - out) - RW_FRAME_HEADER_BYTES);
    return (size_t)(at - out);
}

enum { DONE_BYTES = RW_FRAME_HEADER_BYTES + 11 + 6 + 10 + 10 }; // header and rw_hot_message_done

static uint8_t* put_done(uint8_t* at, const rw_hot_message_done* done) {
    at = put_varint(at, rw_pb_Response_request_id_tag, done->request_id);
    if (done->steps_done != 0) {
        at = put_varint(at, rw_pb_Response_steps_done_tag, done->steps_done);
    }
    at = put_fixed64(at, rw_pb_Response_step_tag, &done->step);
    return put_fixed64(at, rw_pb_Response_time_tag, &done->time);
}

rw_status rw_hot_message_append_advance(rw_buffer* out, const rw_hot_message_done* done,
                                        const double* values, size_t value_count, uint32_t rows) {
    size_t value_bytes = value_count * 8;
    RW_TRY(rw_buffer_reserve(out, DONE_BYTES + 40 + value_bytes));
    uint8_t* frame = out->data + out->size_bytes;
    uint8_t* at = put_done(frame + RW_FRAME_HEADER_BYTES, done);
    size_t size = (value_count > 0 ? 1 + varint_size(value_bytes) + value_bytes : 0) +
                  (rows != 0 ? 1 + varint_size(rows) : 0);
    at = put_block(at, rw_pb_Response_advance_tag, size);
    if (value_count > 0) {
        at = put_block(at, rw_pb_AdvanceResult_values_tag, value_bytes);
        memcpy(at, values, value_bytes);
        at += value_bytes;
    }
    if (rows != 0) {
        at = put_varint(at, rw_pb_AdvanceResult_rows_tag, rows);
    }
    put_header(frame, (size_t)(at - frame) - RW_FRAME_HEADER_BYTES);
    out->size_bytes += (size_t)(at - frame);
    return RW_STATUS_OK;
}

rw_status rw_hot_message_append_step(rw_buffer* out, const rw_hot_message_done* done,
                                     double wall_s) {
    RW_TRY(rw_buffer_reserve(out, DONE_BYTES + 24));
    uint8_t* frame = out->data + out->size_bytes;
    uint8_t* at = put_done(frame + RW_FRAME_HEADER_BYTES, done);
    at = put_block(at, rw_pb_Response_step_result_tag, wall_s != 0 ? 9 : 0);
    if (wall_s != 0) {
        at = put_fixed64(at, rw_pb_StepResult_wall_s_tag, &wall_s);
    }
    put_header(frame, (size_t)(at - frame) - RW_FRAME_HEADER_BYTES);
    out->size_bytes += (size_t)(at - frame);
    return RW_STATUS_OK;
}
