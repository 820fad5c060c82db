#include "solvers/model/field.h"

#include <math.h>
#include <string.h>

static double** slot_of(const rw_field* field, void* state) {
    return (double**)(void*)((char*)state + field->offset);
}

static const double* values_of(const rw_field* field, const void* state) {
    return *(double* const*)(const void*)((const char*)state + field->offset);
}

rw_status rw_field_reserve(rw_field_list list, rw_alloc* alloc, void* state, uint32_t domain,
                           int64_t rows, int64_t capacity) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        if (field->domain != domain) {
            continue;
        }
        double** slot = slot_of(field, state);
        size_t row_bytes = field->width * sizeof(double);
        if (*slot != NULL && rw_alloc_size(*slot) >= (size_t)capacity * row_bytes) {
            continue;
        }
        double* grown = rw_alloc_array(alloc, (size_t)capacity, row_bytes);
        if (grown == NULL) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
        if (*slot != NULL) {
            memcpy(grown, *slot, (size_t)rows * row_bytes);
        }
        rw_alloc_free(alloc, *slot);
        *slot = grown;
    }
    return RW_STATUS_OK;
}

void rw_field_release(rw_field_list list, rw_alloc* alloc, void* state) {
    for (uint32_t i = 0; i < list.count; i++) {
        double** slot = slot_of(&list.fields[i], state);
        rw_alloc_free(alloc, *slot);
        *slot = NULL;
    }
}

void rw_field_erase(rw_field_list list, void* state, uint32_t domain, int64_t rows, int64_t first,
                    int64_t count) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        if (field->domain != domain) {
            continue;
        }
        double* values = *slot_of(field, state);
        int64_t behind = rows - first - count;
        memmove(values + first * field->width, values + (first + count) * field->width,
                (size_t)behind * field->width * sizeof(double));
        memset(values + (rows - count) * field->width, 0,
               (size_t)count * field->width * sizeof(double));
    }
}

void rw_field_copy(rw_field_list list, void* to, const void* from, const int64_t* counts) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        size_t bytes = (size_t)counts[field->domain] * field->width * sizeof(double);
        if (bytes > 0) {
            memcpy(*slot_of(field, to), values_of(field, from), bytes);
        }
    }
}

void rw_field_hash(rw_field_list list, const void* state, const int64_t* counts, rw_hash* hash) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        if ((field->flags & RW_FIELD_HASHED) != 0) {
            rw_hash_word(hash, (uint64_t)counts[field->domain]);
            rw_hash_doubles(hash, values_of(field, state),
                            (size_t)counts[field->domain] * field->width);
        }
    }
}

// Per field: name length (u32), width (u32), rows (u64), name, values; little-endian, as every
// x86-64 machine is.
rw_status rw_field_write(rw_field_list list, const void* state, const int64_t* counts,
                         rw_buffer* buffer) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        uint32_t head[2] = {(uint32_t)strlen(field->name), field->width};
        uint64_t rows = (uint64_t)counts[field->domain];
        RW_TRY(rw_buffer_append(buffer, head, sizeof head));
        RW_TRY(rw_buffer_append(buffer, &rows, sizeof rows));
        RW_TRY(rw_buffer_append(buffer, field->name, head[0]));
        RW_TRY(rw_buffer_append(buffer, values_of(field, state),
                                (size_t)rows * field->width * sizeof(double)));
    }
    return RW_STATUS_OK;
}

rw_status rw_field_read(rw_field_list list, void* state, const int64_t* counts,
                        const unsigned char** at, const unsigned char* end, rw_error* error) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        uint32_t head[2];
        uint64_t rows = 0;
        size_t head_bytes = sizeof head + sizeof rows;
        if ((size_t)(end - *at) < head_bytes) {
            RW_FAIL(error, DATA_LOSS, "", "snapshot ends before field %s", field->name);
        }
        memcpy(head, *at, sizeof head);
        memcpy(&rows, *at + sizeof head, sizeof rows);
        *at += head_bytes;
        if (head[0] != strlen(field->name) || head[1] != field->width ||
            rows != (uint64_t)counts[field->domain] || (size_t)(end - *at) < head[0] ||
            memcmp(*at, field->name, head[0]) != 0) {
            RW_FAIL(error, DATA_LOSS, "", "snapshot holds another field than %s", field->name);
        }
        *at += head[0];
        size_t bytes = (size_t)rows * field->width * sizeof(double);
        if ((size_t)(end - *at) < bytes) {
            RW_FAIL(error, DATA_LOSS, "", "snapshot ends inside field %s", field->name);
        }
        if (bytes > 0) {
            memcpy(*slot_of(field, state), *at, bytes);
        }
        *at += bytes;
    }
    return RW_STATUS_OK;
}

int rw_field_is_finite(rw_field_list list, const void* state, const int64_t* counts,
                       const char** field_name, int64_t* row) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_field* field = &list.fields[i];
        const double* values = values_of(field, state);
        int64_t count = counts[field->domain] * field->width;
        for (int64_t k = 0; k < count; k++) {
            if (!isfinite(values[k])) {
                *field_name = field->name;
                *row = k / field->width;
                return 0;
            }
        }
    }
    return 1;
}
