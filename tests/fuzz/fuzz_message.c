// Fuzzes the decoding of messages: byte 0 chooses the envelope, the rest is the message. What the
// border accepts, nanopb must accept, every list in it to the last element; and what was decoded
// and encoded again must decode to the same bytes.
#include <stdlib.h>
#include <string.h>

#include <pb_common.h>

#include "proto/message.h"
#include "proto/schema.h"
#include "solvers/base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static const volatile uint8_t* touched; // reads must not be optimised away

static void touch(const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        touched = data + i;
        (void)*touched;
    }
}

static void visit(const rw_schema_message* schema, void* message);

static void visit_list(const rw_schema_field* field, const rw_wire_list* list) {
    rw_wire_cursor cursor = rw_wire_begin(list);
    if (field->kind == RW_SCHEMA_MESSAGE) {
        void* element = malloc(field->sub->struct_bytes);
        while (rw_wire_next_message(&cursor, field->sub->descriptor, element,
                                    field->sub->struct_bytes)) {
            visit(field->sub, element);
        }
        free(element);
    } else {
        rw_wire_bytes text;
        while (rw_wire_next(&cursor, &text)) {
            touch(text.data, text.size);
        }
    }
    RW_CHECK(cursor.index == list->count); // every element was there and decoded
}

// Reads all that a decoded message refers to.
static void visit(const rw_schema_message* schema, void* message) {
    pb_field_iter_t iter;
    if (!pb_field_iter_begin(&iter, schema->descriptor, message)) {
        return;
    }
    do {
        const rw_schema_field* field = rw_schema_find(schema, iter.tag);
        bool is_chosen = field->shape != RW_SCHEMA_ONEOF || *(pb_size_t*)iter.pSize == iter.tag;
        if (!is_chosen) {
            continue;
        }
        if (field->is_view && field->kind == RW_SCHEMA_BYTES) {
            const rw_wire_bytes* bytes = iter.pData;
            touch(bytes->data, bytes->size);
        } else if (field->is_view &&
                   (field->kind == RW_SCHEMA_MESSAGE || field->kind == RW_SCHEMA_STRING)) {
            visit_list(field, iter.pData);
        } else if (field->is_view) {
            const rw_wire_array* array = iter.pData;
            touch(array->data, (size_t)array->count * (field->kind == RW_SCHEMA_FIXED32 ? 4 : 8));
        } else if (field->kind == RW_SCHEMA_MESSAGE) {
            visit(field->sub, iter.pData);
        }
    } while (pb_field_iter_next(&iter));
}

typedef rw_status (*decoder)(const void*, size_t, rw_arena*, void*, rw_error*);
typedef rw_status (*encoder)(rw_buffer*, const void*);

static const struct envelope {
    const rw_schema_message* schema;
    decoder decode;
    encoder append;
} envelopes[] = {
    {RW_SCHEMA(rw_pb_Request), (decoder)rw_message_decode_request, (encoder)rw_message_append_request},
    {RW_SCHEMA(rw_pb_Response), (decoder)rw_message_decode_response,
     (encoder)rw_message_append_response},
    {RW_SCHEMA(rw_pb_Event), (decoder)rw_message_decode_event, (encoder)rw_message_append_event},
    {RW_SCHEMA(rw_pb_StateFrame), (decoder)rw_message_decode_state, (encoder)rw_message_append_state},
    {RW_SCHEMA(rw_pb_Scene), (decoder)rw_message_decode_scene, (encoder)rw_message_append_scene},
};

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    const struct envelope* envelope = &envelopes[data[0] % RW_COUNT_OF(envelopes)];
    rw_alloc alloc;
    rw_arena arena;
    rw_buffer first, second;
    rw_alloc_init(&alloc, 0);
    rw_arena_init(&arena, &alloc);
    rw_buffer_init(&first, &alloc);
    rw_buffer_init(&second, &alloc);
    void* message = malloc(envelope->schema->struct_bytes);
    rw_error error = {0};
    rw_message_peek peek;
    rw_message_peek_request(data + 1, size - 1, &peek);
    if (envelope->decode(data + 1, size - 1, &arena, message, &error) == RW_STATUS_OK) {
        visit(envelope->schema, message);
        RW_CHECK(envelope->append(&first, message) == RW_STATUS_OK);
        RW_CHECK(envelope->decode(first.data, first.size_bytes, &arena, message, &error) ==
                 RW_STATUS_OK);
        RW_CHECK(envelope->append(&second, message) == RW_STATUS_OK);
        RW_CHECK(first.size_bytes == second.size_bytes);
        RW_CHECK(first.size_bytes == 0 ||
                 memcmp(first.data, second.data, first.size_bytes) == 0);
    } else {
        RW_CHECK(error.status == RW_STATUS_INVALID_ARGUMENT && error.text[0] != '\0');
        RW_CHECK(strstr(error.text, "nanopb") == NULL); // the border is never the laxer one
    }
    free(message);
    rw_buffer_finish(&first);
    rw_buffer_finish(&second);
    rw_arena_finish(&arena);
    rw_alloc_finish(&alloc);
    return 0;
}
