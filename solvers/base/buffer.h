// A growable array of bytes, charged to an account. One thread at a time.
#pragma once

#include <stddef.h>

#include "solvers/base/status.h"
#include "solvers/base/alloc.h"

typedef struct rw_buffer {
    rw_alloc* alloc; // borrowed
    unsigned char* data;
    size_t size_bytes;
    size_t capacity_bytes;
} rw_buffer;

// Starts an empty buffer; nothing is allocated yet.
void rw_buffer_init(rw_buffer* buffer, rw_alloc* alloc);

// Frees the bytes.
void rw_buffer_finish(rw_buffer* buffer);

// Makes room for `bytes` more without changing the size. RESOURCE_EXHAUSTED when it can't.
rw_status rw_buffer_reserve(rw_buffer* buffer, size_t bytes);

// Appends `bytes` bytes (zeros when `data` is NULL). RESOURCE_EXHAUSTED leaves it unchanged.
rw_status rw_buffer_append(rw_buffer* buffer, const void* data, size_t bytes);
