#include "proto/wire.h"

#include <string.h>

#include <pb_decode.h>
#include <pb_encode.h>

#include "proto/varint.h"
#include "solvers/base/check.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "views are little-endian memory");

// A struct filled by rw_wire_fill lives here while it is encoded.
enum { RW_WIRE_ITEM_CAPACITY = 16384 };

static void copy_numbers(rw_wire_array array, void* out, size_t width) {
    if (array.count > 0) {
        memcpy(out, array.data, (size_t)array.count * width);
    }
}

void rw_wire_copy_f64(rw_wire_array array, double* out) { copy_numbers(array, out, sizeof *out); }

double rw_wire_f64(rw_wire_array array, uint32_t index) {
    double value;
    RW_ASSERT(index < array.count);
    memcpy(&value, array.data + (size_t)index * sizeof value, sizeof value);
    return value;
}

uint64_t rw_wire_u64(rw_wire_array array, uint32_t index) {
    uint64_t value;
    RW_ASSERT(index < array.count);
    memcpy(&value, array.data + (size_t)index * sizeof value, sizeof value);
    return value;
}

uint32_t rw_wire_u32(rw_wire_array array, uint32_t index) {
    uint32_t value;
    RW_ASSERT(index < array.count);
    memcpy(&value, array.data + (size_t)index * sizeof value, sizeof value);
    return value;
}

static const void* view_numbers(rw_wire_array array, rw_arena* arena, size_t width) {
    static const double nothing[1];
    if (array.count == 0) {
        return nothing;
    }
    if ((uintptr_t)array.data % width == 0) {
        return array.data;
    }
    void* copy = rw_arena_array(arena, array.count, width);
    if (copy != NULL) {
        copy_numbers(array, copy, width);
    }
    return copy;
}

const double* rw_wire_view_f64(rw_wire_array array, rw_arena* arena) {
    return view_numbers(array, arena, sizeof(double));
}

const uint32_t* rw_wire_view_u32(rw_wire_array array, rw_arena* arena) {
    return view_numbers(array, arena, sizeof(uint32_t));
}

// ---- Lists ----

rw_wire_cursor rw_wire_begin(const rw_wire_list* list) {
    return (rw_wire_cursor){.at = list->first,
                            .end = list->end,
                            .size = list->first_size,
                            .tag = list->tag,
                            .left = list->first != NULL ? list->count : 0};
}

// Moves to the next element with the cursor's tag. The bytes were checked before they were decoded,
// so a misfit is a bug; it ends the walk rather than running on.
static void cursor_advance(rw_wire_cursor* cursor) {
    const uint8_t* at = cursor->at + cursor->size;
    while (at < cursor->end) {
        uint64_t key, size;
        if (!rw_varint_read(&at, cursor->end, &key) || !rw_varint_skip(&at, cursor->end, key, &size)) {
            break;
        }
        if (key == ((uint64_t)cursor->tag << 3 | PB_WT_STRING)) {
            cursor->at = at - size;
            cursor->size = (uint32_t)size;
            return;
        }
    }
    cursor->left = 0;
}

bool rw_wire_next(rw_wire_cursor* cursor, rw_wire_bytes* element) {
    if (cursor->left == 0) {
        return false;
    }
    *element = (rw_wire_bytes){cursor->at, cursor->size};
    cursor->index++;
    cursor->left--;
    if (cursor->left > 0) {
        cursor_advance(cursor);
    }
    return true;
}

bool rw_wire_next_message(rw_wire_cursor* cursor, const pb_msgdesc_t* fields, void* message,
                          size_t size) {
    rw_wire_bytes element;
    if (!rw_wire_next(cursor, &element)) {
        return false;
    }
    memset(message, 0, size); // nanopb leaves callback fields as they are
    pb_istream_t stream = pb_istream_from_buffer(element.data, element.size);
    return pb_decode_ex(&stream, fields, message, PB_DECODE_NOINIT); // all defaults are zero
}

void rw_wire_copy_text(rw_wire_bytes element, char* text, size_t capacity) {
    size_t size = element.size < capacity ? element.size : capacity - 1;
    if (size > 0) {
        memcpy(text, element.data, size);
    }
    text[size] = '\0';
}

// ---- Views to encode ----

static rw_wire_array from_numbers(const void* values, size_t count) {
    RW_ASSERT(count <= UINT32_MAX);
    return (rw_wire_array){.data = values, .count = (uint32_t)count};
}

rw_wire_array rw_wire_from_f64(const double* values, size_t count) {
    return from_numbers(values, count);
}
rw_wire_array rw_wire_from_u64(const uint64_t* values, size_t count) {
    return from_numbers(values, count);
}
rw_wire_array rw_wire_from_u32(const uint32_t* values, size_t count) {
    return from_numbers(values, count);
}

rw_wire_list rw_wire_from_strings(const char* const* strings, size_t count) {
    return (rw_wire_list){.count = (uint32_t)count, .strings = strings};
}

rw_wire_list rw_wire_from_encoded(const rw_wire_bytes* elements, size_t count) {
    return (rw_wire_list){.count = (uint32_t)count, .encoded = elements};
}

rw_wire_list rw_wire_from_fill(rw_wire_fill fill, void* context, size_t item_bytes, size_t count) {
    RW_ASSERT(item_bytes <= RW_WIRE_ITEM_CAPACITY);
    return (rw_wire_list){
        .count = (uint32_t)count, .stride = (uint32_t)item_bytes, .fill = fill, .context = context};
}

// ---- nanopb's callback ----

static size_t number_width(const pb_field_t* field) {
    return PB_LTYPE(field->type) == PB_LTYPE_FIXED64 ? 8 : 4;
}

// The stream is one over a buffer: `state` is the read position (toolchain: nanopb 0.4). Arrays in
// several pieces and unpacked ones (whose stream would be a copy on nanopb's stack) do not get
// here: the border rewrites them.
static bool decode_field(pb_istream_t* in, const pb_field_t* field) {
    const uint8_t* at = in->state;
    size_t size = in->bytes_left;
    if (PB_HTYPE(field->type) == PB_HTYPE_ONEOF) {
        *(pb_size_t*)field->pSize = field->tag; // nanopb leaves that to the callback
    }
    if (PB_LTYPE(field->type) == PB_LTYPE_BYTES) {
        *(rw_wire_bytes*)field->pData = (rw_wire_bytes){at, size};
    } else if (PB_LTYPE(field->type) == PB_LTYPE_FIXED64 ||
               PB_LTYPE(field->type) == PB_LTYPE_FIXED32) {
        rw_wire_array* array = field->pData;
        if (size % number_width(field) != 0 || (size > 0 && array->count > 0)) {
            return false;
        }
        if (size > 0) {
            *array = (rw_wire_array){at, (uint32_t)(size / number_width(field))};
        }
    } else { // messages and strings, one call per element
        rw_wire_list* list = field->pData;
        if (list->count == 0) {
            *list = (rw_wire_list){.first = at, .first_size = (uint32_t)size, .tag = field->tag};
        }
        list->count++;
        list->end = at + size;
    }
    return pb_read(in, NULL, size);
}

static bool encode_block(pb_ostream_t* out, const pb_field_t* field, const uint8_t* data,
                         size_t size) {
    return pb_encode_tag(out, PB_WT_STRING, field->tag) && pb_encode_string(out, data, size);
}

static bool encode_filled(pb_ostream_t* out, const pb_field_t* field, const rw_wire_list* list) {
    _Alignas(16) unsigned char item[RW_WIRE_ITEM_CAPACITY];
    for (uint32_t i = 0; i < list->count; i++) {
        memset(item, 0, list->stride);
        if (!list->fill(list->context, i, item) ||
            !pb_encode_tag(out, PB_WT_STRING, field->tag) ||
            !pb_encode_submessage(out, field->submsg_desc, item)) {
            return false;
        }
    }
    return true;
}

static bool encode_list(pb_ostream_t* out, const pb_field_t* field, const rw_wire_list* list) {
    if (list->fill != NULL) {
        return encode_filled(out, field, list);
    }
    rw_wire_cursor cursor = rw_wire_begin(list);
    for (uint32_t i = 0; i < list->count; i++) {
        bool ok;
        if (list->items != NULL) {
            ok = pb_encode_tag(out, PB_WT_STRING, field->tag) &&
                 pb_encode_submessage(out, field->submsg_desc,
                                      (const char*)list->items + (size_t)i * list->stride);
        } else if (list->strings != NULL) {
            ok = encode_block(out, field, (const uint8_t*)list->strings[i], strlen(list->strings[i]));
        } else if (list->encoded != NULL) {
            ok = encode_block(out, field, list->encoded[i].data, list->encoded[i].size);
        } else {
            rw_wire_bytes element;
            ok = rw_wire_next(&cursor, &element) &&
                 encode_block(out, field, element.data, element.size);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool encode_field(pb_ostream_t* out, const pb_field_t* field) {
    if (PB_LTYPE(field->type) == PB_LTYPE_BYTES) {
        const rw_wire_bytes* bytes = field->pData;
        bool is_oneof = PB_HTYPE(field->type) == PB_HTYPE_ONEOF; // an empty choice is still a choice
        return (bytes->size == 0 && !is_oneof) || encode_block(out, field, bytes->data, bytes->size);
    }
    if (PB_LTYPE(field->type) == PB_LTYPE_FIXED64 || PB_LTYPE(field->type) == PB_LTYPE_FIXED32) {
        const rw_wire_array* array = field->pData;
        return array->count == 0 ||
               encode_block(out, field, array->data, (size_t)array->count * number_width(field));
    }
    return encode_list(out, field, field->pData);
}

bool rw_wire_field(pb_istream_t* in, pb_ostream_t* out, const pb_field_t* field) {
    if (in != NULL) {
        return decode_field(in, field);
    }
    return out == NULL || encode_field(out, field);
}
