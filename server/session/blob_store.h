// The blobs of one client: uploads on their way to a scene, and answers too large for one message.
// Shared by the loop thread and the workers that run the client's commands: every call takes the
// store's lock; blob bytes are read without it by those who hold a reference.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"

typedef struct rw_blob {
    uint64_t id;
    int32_t refs; // guarded by the store's lock
    bool is_complete;
    bool is_download; // an answer: freed with its last byte sent
    uint32_t crc;     // promised (upload) or computed (download)
    uint64_t size_bytes;
    uint64_t received_bytes;
    uint64_t summed_bytes; // the front part that `running_crc` covers
    uint32_t running_crc;
    unsigned char* bytes;
    // Ranges received so far, sorted and apart, so that pieces in any order never overlap.
    struct rw_blob_range {
        uint64_t begin, end;
    }* ranges;
    int32_t range_count, range_capacity;
} rw_blob;

typedef struct rw_blob_store {
    rw_alloc alloc; // the client's account; its limit is max_upload_bytes
    pthread_mutex_t lock;       // never held while bytes are copied or summed
    pthread_mutex_t piece_lock; // held by rw_blob_store_add, one piece at a time; taken before `lock`
    rw_blob** items;
    int32_t count, capacity;
    uint64_t next_id;
    int32_t refs; // guarded by the lock
    rw_alloc* owner_alloc;
} rw_blob_store;

// Makes an empty store with one reference. `limit_bytes` bounds all its blobs together. NULL when
// memory is exhausted.
rw_blob_store* rw_blob_store_create(rw_alloc* owner_alloc, uint64_t limit_bytes);

// Takes and gives back references; the last one frees all. NULL is accepted.
rw_blob_store* rw_blob_store_hold(rw_blob_store* store);
void rw_blob_store_drop(rw_blob_store* store);

// Announces an upload of `size_bytes` > 0 with the checksum `crc`. RESOURCE_EXHAUSTED over the limit.
rw_status rw_blob_store_begin(rw_blob_store* store, uint64_t size_bytes, uint32_t crc,
                              uint64_t* id, rw_error* error);

// Puts a piece in its place. When it is the last one the checksum is compared: DATA_LOSS drops the
// blob. NOT_FOUND, INVALID_ARGUMENT (outside, overlapping). The work is proportional to the piece,
// at the end to the blob.
rw_status rw_blob_store_add(rw_blob_store* store, uint64_t id, uint64_t offset, const void* data,
                            size_t size, uint64_t* received, bool* is_complete, rw_error* error);

// Keeps an answer for download; takes a copy. RESOURCE_EXHAUSTED over the limit.
rw_status rw_blob_store_keep(rw_blob_store* store, const void* data, size_t size, uint64_t* id,
                             uint32_t* crc, rw_error* error);

// A reference to a complete upload: its bytes stay until rw_blob_store_release. NOT_FOUND,
// FAILED_PRECONDITION while pieces are missing.
rw_status rw_blob_store_find(rw_blob_store* store, uint64_t id, rw_blob** blob, rw_error* error);

// As rw_blob_store_find for an answer.
rw_status rw_blob_store_find_download(rw_blob_store* store, uint64_t id, rw_blob** blob,
                                      rw_error* error);

// Gives a reference back.
void rw_blob_store_release(rw_blob_store* store, rw_blob* blob);

// Forgets a blob; references stay valid. NOT_FOUND.
rw_status rw_blob_store_remove(rw_blob_store* store, uint64_t id, rw_error* error);

// Bytes held now. For metrics.
uint64_t rw_blob_store_bytes(const rw_blob_store* store);
