#include "solvers/base/buffer.h"

#include <stdint.h>
#include <string.h>

void rw_buffer_init(rw_buffer* buffer, rw_alloc* alloc) {
    *buffer = (rw_buffer){.alloc = alloc};
}

void rw_buffer_finish(rw_buffer* buffer) {
    rw_alloc_free(buffer->alloc, buffer->data);
    *buffer = (rw_buffer){.alloc = buffer->alloc};
}

rw_status rw_buffer_reserve(rw_buffer* buffer, size_t bytes) {
    if (bytes > SIZE_MAX / 4 - buffer->size_bytes) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    size_t needed = buffer->size_bytes + bytes;
    if (needed <= buffer->capacity_bytes) {
        return RW_STATUS_OK;
    }
    size_t capacity = buffer->capacity_bytes * 2 > 256 ? buffer->capacity_bytes * 2 : 256;
    if (capacity < needed) {
        capacity = needed;
    }
    void* data = rw_alloc_resize(buffer->alloc, buffer->data, capacity);
    if (data == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    buffer->data = data;
    buffer->capacity_bytes = capacity;
    return RW_STATUS_OK;
}

rw_status rw_buffer_append(rw_buffer* buffer, const void* data, size_t bytes) {
    RW_TRY(rw_buffer_reserve(buffer, bytes));
    if (bytes == 0) {
        return RW_STATUS_OK;
    }
    if (data != NULL) {
        memcpy(buffer->data + buffer->size_bytes, data, bytes);
    } else {
        memset(buffer->data + buffer->size_bytes, 0, bytes);
    }
    buffer->size_bytes += bytes;
    return RW_STATUS_OK;
}
