#include "proto/border.h"

#include <stdio.h>
#include <string.h>

#include "proto/ropewalk/v1/command.pb.h"
#include "proto/varint.h"
#include "solvers/base/check.h"

enum { RW_BORDER_DEPTH = 16 }; // BatchResult > Response > GetScene > Scene > Body > Shape > Mesh > blob

// Where the walk stands: one level per message entered, on the stack.
typedef struct border_level {
    const struct border_level* up;
    const rw_schema_message* schema;
    const rw_schema_field* field; // being read; NULL between fields
    uint32_t index;               // of the element, for repeated fields
    unsigned depth;
} border_level;

typedef struct border_walk {
    bool in_pieces;
    rw_error* error;
} border_walk;

// ---- Errors ----

// A path has no use for names that all requests of a kind share: the command's, and of LoadScene and
// Create* the object's.
static bool is_left_out(const border_level* level) {
    if (level->schema == RW_SCHEMA(rw_pb_Request)) {
        return level->field->shape == RW_SCHEMA_ONEOF;
    }
    if (level->up == NULL || level->up->schema != RW_SCHEMA(rw_pb_Request)) {
        return false;
    }
    uint32_t command = level->up->field->tag;
    return command == rw_pb_Request_load_scene_tag ||
           (command >= rw_pb_Request_create_body_tag && command <= rw_pb_Request_create_input_tag);
}

static size_t write_path(const border_level* level, char* path, size_t capacity, bool is_last) {
    size_t used = level->up != NULL ? write_path(level->up, path, capacity, false) : 0;
    if (level->field == NULL || (!is_last && is_left_out(level))) {
        return used;
    }
    int added = level->field->shape == RW_SCHEMA_REPEATED
                    ? snprintf(path + used, capacity - used, "%s%s[%u]", used > 0 ? "." : "",
                               level->field->name, level->index)
                    : snprintf(path + used, capacity - used, "%s%s", used > 0 ? "." : "",
                               level->field->name);
    used += added > 0 ? (size_t)added : 0;
    return used < capacity ? used : capacity - 1;
}

#define BORDER_FAIL(walk, level, ...)                                                              \
    do {                                                                                           \
        char border_path_[sizeof((rw_error*)NULL)->path] = "";                                     \
        write_path((level), border_path_, sizeof border_path_, true);                              \
        return rw_status_fail((walk)->error, RW_STATUS_INVALID_ARGUMENT, border_path_,             \
                              __VA_ARGS__);                                                        \
    } while (0)

// ---- Text ----

// Length of the UTF-8 sequence at `at`, 0 when it is none (Unicode 15, table 3-7).
static size_t sequence_length(const uint8_t* at, size_t left) {
    uint8_t lead = at[0];
    if (lead < 0x80) {
        return 1;
    }
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || left < length) {
        return 0;
    }
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

bool rw_border_is_utf8(const uint8_t* text, size_t size) {
    for (size_t i = 0; i < size;) {
        size_t length = sequence_length(text + i, size - i);
        if (length == 0) {
            return false;
        }
        i += length;
    }
    return true;
}

static rw_status check_text(border_walk* walk, const border_level* level, const uint8_t* text,
                            uint64_t size, uint32_t max) {
    if (size > max) {
        BORDER_FAIL(walk, level, "must have at most %u bytes, got %llu", max,
                    (unsigned long long)size);
    }
    if (size > 0 && memchr(text, 0, (size_t)size) != NULL) {
        BORDER_FAIL(walk, level, "contains a NUL");
    }
    if (!rw_border_is_utf8(text, (size_t)size)) {
        BORDER_FAIL(walk, level, "is not UTF-8");
    }
    return RW_STATUS_OK;
}

// ---- Numbers ----

static int wire_type_of(rw_schema_kind kind) {
    switch (kind) {
    case RW_SCHEMA_DOUBLE:
    case RW_SCHEMA_FIXED64: return RW_VARINT_WIRE_64;
    case RW_SCHEMA_FIXED32: return RW_VARINT_WIRE_32;
    case RW_SCHEMA_UINT32:
    case RW_SCHEMA_UINT64:
    case RW_SCHEMA_BOOL:
    case RW_SCHEMA_UENUM: return RW_VARINT_WIRE_VARINT;
    case RW_SCHEMA_STRING:
    case RW_SCHEMA_BYTES:
    case RW_SCHEMA_MESSAGE: return RW_VARINT_WIRE_BLOCK;
    }
    return -1;
}

static rw_status check_varint(border_walk* walk, const border_level* level, uint64_t value) {
    const rw_schema_field* field = level->field;
    if (field->kind == RW_SCHEMA_UENUM && value > field->enum_max) {
        BORDER_FAIL(walk, level, "unknown value %llu", (unsigned long long)value);
    }
    if (field->kind != RW_SCHEMA_UINT64 && value > UINT32_MAX) {
        BORDER_FAIL(walk, level, "must fit 32 bits, got %llu", (unsigned long long)value);
    }
    return RW_STATUS_OK;
}

// A packed block of numbers; `*count` grows by how many there are.
static rw_status check_packed(border_walk* walk, border_level* level, const uint8_t* at,
                              const uint8_t* end, uint32_t* count) {
    size_t size = (size_t)(end - at);
    int wire_type = wire_type_of(level->field->kind);
    if (wire_type != RW_VARINT_WIRE_VARINT) {
        size_t width = wire_type == RW_VARINT_WIRE_64 ? 8 : 4;
        if (size % width != 0) {
            BORDER_FAIL(walk, level, "%zu bytes are not a multiple of %zu", size, width);
        }
        size_t total = *count + size / width;
        *count = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
        return RW_STATUS_OK;
    }
    while (at < end) {
        uint64_t value;
        level->index = *count;
        if (!rw_varint_read(&at, end, &value)) {
            BORDER_FAIL(walk, level, "is cut short");
        }
        RW_TRY(check_varint(walk, level, value));
        if (++*count > level->field->max) {
            return RW_STATUS_OK; // refused by the caller, which knows the count
        }
    }
    return RW_STATUS_OK;
}

// ---- Messages ----

typedef struct border_seen {
    uint64_t bits[RW_SCHEMA_FIELD_LIMIT / 64];
    uint32_t counts[RW_SCHEMA_FIELD_LIMIT]; // of repeated fields that were seen
} border_seen;

static bool was_seen(const border_seen* seen, uint32_t index) {
    return seen->bits[index / 64] >> (index % 64) & 1;
}

static void mark_seen(border_seen* seen, uint32_t index) {
    seen->bits[index / 64] |= UINT64_C(1) << (index % 64);
}

// The other member of the choice of fields[index] that was already given, or NULL.
static const rw_schema_field* chosen_before(const rw_schema_message* schema,
                                            const border_seen* seen, uint32_t index) {
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (i != index && was_seen(seen, i) &&
            schema->fields[i].choice == schema->fields[index].choice) {
            return &schema->fields[i];
        }
    }
    return NULL;
}

// A repeated field must keep to its maximum; a choice is made once; a message is given once.
static rw_status check_repetition(border_walk* walk, border_level* level, border_seen* seen,
                                  uint32_t index) {
    const rw_schema_field* field = level->field;
    bool is_again = was_seen(seen, index);
    if (field->shape == RW_SCHEMA_ONEOF) {
        const rw_schema_field* other = chosen_before(level->schema, seen, index);
        if (other != NULL) {
            BORDER_FAIL(walk, level, "is given beside %s: give one of them", other->name);
        }
    }
    if (is_again && field->kind == RW_SCHEMA_MESSAGE && field->shape != RW_SCHEMA_REPEATED) {
        BORDER_FAIL(walk, level, "is given twice");
    }
    if (!is_again) {
        mark_seen(seen, index);
        seen->counts[index] = 0;
    }
    level->index = seen->counts[index];
    return RW_STATUS_OK;
}

static rw_status check_message(border_walk* walk, const border_level* up,
                               const rw_schema_message* schema, const uint8_t* at,
                               const uint8_t* end);

// The value of a known field: `payload` and `size` as rw_varint_skip gives them.
static rw_status check_value(border_walk* walk, border_level* level, border_seen* seen,
                             uint32_t index, unsigned wire_type, const uint8_t* payload,
                             uint64_t size) {
    const rw_schema_field* field = level->field;
    bool is_repeated = field->shape == RW_SCHEMA_REPEATED;
    int own_type = wire_type_of(field->kind);
    bool is_packed = is_repeated && own_type != RW_VARINT_WIRE_BLOCK &&
                     wire_type == RW_VARINT_WIRE_BLOCK;
    if ((int)wire_type != own_type && !is_packed) {
        BORDER_FAIL(walk, level, "has wire type %u instead of %d", wire_type, own_type);
    }
    uint32_t* count = &seen->counts[index];
    if (is_packed) {
        walk->in_pieces |= field->is_view && *count > 0 && size > 0;
        RW_TRY(check_packed(walk, level, payload, payload + size, count));
    } else if (is_repeated) {
        walk->in_pieces |= field->is_view && own_type != RW_VARINT_WIRE_BLOCK;
        *count += *count < UINT32_MAX;
    }
    if (is_repeated && *count > field->max) {
        level->index = field->max;
        BORDER_FAIL(walk, level, "must have at most %u elements", field->max);
    }
    if (field->kind == RW_SCHEMA_MESSAGE) {
        return check_message(walk, level, field->sub, payload, payload + size);
    }
    if (field->kind == RW_SCHEMA_STRING) {
        return check_text(walk, level, payload, size,
                          is_repeated ? RW_SCHEMA_ELEMENT_TEXT : field->max);
    }
    if (field->kind == RW_SCHEMA_BYTES && size > field->max) {
        BORDER_FAIL(walk, level, "must have at most %u bytes", field->max);
    }
    if (own_type == RW_VARINT_WIRE_VARINT && !is_packed) {
        uint64_t value = 0;
        rw_varint_read(&payload, payload + size, &value);
        return check_varint(walk, level, value);
    }
    return RW_STATUS_OK;
}

static rw_status check_message(border_walk* walk, const border_level* up,
                               const rw_schema_message* schema, const uint8_t* at,
                               const uint8_t* end) {
    border_level level = {.up = up, .schema = schema, .depth = up != NULL ? up->depth + 1 : 0};
    border_seen seen;
    memset(seen.bits, 0, sizeof seen.bits);
    if (level.depth > RW_BORDER_DEPTH) {
        BORDER_FAIL(walk, up, "is nested too deeply");
    }
    uint32_t index = 0;
    while (at < end) {
        uint64_t key, size;
        level.field = NULL;
        if (!rw_varint_read(&at, end, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3) {
            BORDER_FAIL(walk, &level, "the bytes are no message: bad key");
        }
        // Fields mostly come in order: try the next one first.
        if (index + 1 < schema->field_count && schema->fields[index + 1].tag == key >> 3) {
            level.field = &schema->fields[index + 1];
        } else {
            level.field = rw_schema_find(schema, key >> 3);
        }
        if (level.field != NULL) {
            index = (uint32_t)(level.field - schema->fields);
            RW_TRY(check_repetition(walk, &level, &seen, index));
        }
        if (!rw_varint_skip(&at, end, key, &size)) {
            BORDER_FAIL(walk, &level, "the bytes are no message: cut short or a bad length");
        }
        if (level.field != NULL) {
            RW_TRY(check_value(walk, &level, &seen, index, (unsigned)(key & 7), at - size, size));
        }
    }
    return RW_STATUS_OK;
}

rw_status rw_border_check(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                          bool* in_pieces, rw_error* error) {
    border_walk walk = {.error = error};
    rw_status status = check_message(&walk, NULL, schema, bytes, bytes + size);
    *in_pieces = walk.in_pieces;
    return status;
}

// ---- Joining ----

// A message's length is not known before its fields are written; it gets a fixed place of this
// width. (A number padded with continuation bytes is legal.)
enum { RW_BORDER_LENGTH_BYTES = 5 };

static void write_length(uint8_t* out, size_t length) {
    for (int i = 0; i < RW_BORDER_LENGTH_BYTES; i++) {
        out[i] = (uint8_t)(length | 0x80);
        length >>= 7;
    }
    out[RW_BORDER_LENGTH_BYTES - 1] &= 0x7f;
}

// Writes all pieces of one array as a packed block.
static uint8_t* join_array(const rw_schema_field* field, const uint8_t* at, const uint8_t* end,
                           uint8_t* out) {
    out += rw_varint_write(out, (uint64_t)field->tag << 3 | RW_VARINT_WIRE_BLOCK);
    uint8_t* length = out;
    out += RW_BORDER_LENGTH_BYTES;
    while (at < end) {
        uint64_t key, size;
        if (!rw_varint_read(&at, end, &key) || !rw_varint_skip(&at, end, key, &size)) {
            break; // not in checked bytes
        }
        if (key >> 3 == field->tag) {
            memcpy(out, at - size, (size_t)size);
            out += size;
        }
    }
    write_length(length, (size_t)(out - length) - RW_BORDER_LENGTH_BYTES);
    return out;
}

static uint8_t* join_message(const rw_schema_message* schema, const uint8_t* start,
                             const uint8_t* end, uint8_t* out) {
    border_seen seen;
    memset(seen.bits, 0, sizeof seen.bits);
    const uint8_t* at = start;
    while (at < end) {
        const uint8_t* whole = at;
        uint64_t key, size;
        if (!rw_varint_read(&at, end, &key) || !rw_varint_skip(&at, end, key, &size)) {
            break; // not in checked bytes
        }
        const rw_schema_field* field = rw_schema_find(schema, key >> 3);
        if (field == NULL) {
            continue;
        }
        uint32_t index = (uint32_t)(field - schema->fields);
        if (field->kind == RW_SCHEMA_MESSAGE) {
            out += rw_varint_write(out, key);
            uint8_t* length = out;
            out = join_message(field->sub, at - size, at, out + RW_BORDER_LENGTH_BYTES);
            write_length(length, (size_t)(out - length) - RW_BORDER_LENGTH_BYTES);
        } else if (field->is_view && wire_type_of(field->kind) != RW_VARINT_WIRE_BLOCK) {
            if (!was_seen(&seen, index)) {
                mark_seen(&seen, index);
                out = join_array(field, start, end, out);
            }
        } else {
            memcpy(out, whole, (size_t)(at - whole));
            out += at - whole;
        }
    }
    return out;
}

rw_status rw_border_join(const rw_schema_message* schema, const uint8_t* bytes, size_t size,
                         rw_arena* arena, const uint8_t** joined, size_t* joined_size,
                         rw_error* error) {
    // A message of key and length (2 bytes) grows by 4 at most, an array (5 bytes at least with its
    // key) by no more than its new key and length: 3 times the size is room enough.
    uint8_t* out = size < SIZE_MAX / 4 ? rw_arena_get(arena, 3 * size + 16) : NULL;
    if (out == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to put %zu bytes together", size);
    }
    *joined = out;
    *joined_size = (size_t)(join_message(schema, bytes, bytes + size, out) - out);
    RW_ASSERT(*joined_size <= 3 * size + 16);
    return RW_STATUS_OK;
}
