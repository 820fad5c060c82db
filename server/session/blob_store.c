#include "server/session/blob_store.h"

#include <string.h>

#include "solvers/base/check.h"
#include "solvers/base/hash.h"

rw_blob_store* rw_blob_store_create(rw_alloc* owner_alloc, uint64_t limit_bytes) {
    rw_blob_store* store = rw_alloc_get(owner_alloc, sizeof *store);
    if (store == NULL) {
        return NULL;
    }
    rw_alloc_init(&store->alloc, (size_t)limit_bytes);
    pthread_mutex_init(&store->lock, NULL);
    store->owner_alloc = owner_alloc;
    store->next_id = 1;
    store->refs = 1;
    return store;
}

rw_blob_store* rw_blob_store_hold(rw_blob_store* store) {
    pthread_mutex_lock(&store->lock);
    store->refs++;
    pthread_mutex_unlock(&store->lock);
    return store;
}

static void free_blob(rw_blob_store* store, rw_blob* blob) {
    rw_alloc_free(&store->alloc, blob->bytes);
    rw_alloc_free(&store->alloc, blob->ranges);
    rw_alloc_free(&store->alloc, blob);
}

// Needs the lock.
static void unref(rw_blob_store* store, rw_blob* blob) {
    if (--blob->refs == 0) {
        free_blob(store, blob);
    }
}

void rw_blob_store_drop(rw_blob_store* store) {
    if (store == NULL) {
        return;
    }
    pthread_mutex_lock(&store->lock);
    bool last = --store->refs == 0;
    pthread_mutex_unlock(&store->lock);
    if (!last) {
        return;
    }
    for (int32_t i = 0; i < store->count; i++) {
        unref(store, store->items[i]);
    }
    rw_alloc_free(&store->alloc, store->items);
    rw_alloc_finish(&store->alloc);
    pthread_mutex_destroy(&store->lock);
    rw_alloc_free(store->owner_alloc, store);
}

// Needs the lock. Index of a blob, or -1.
static int32_t find(const rw_blob_store* store, uint64_t id) {
    for (int32_t i = 0; i < store->count; i++) {
        if (store->items[i]->id == id) {
            return i;
        }
    }
    return -1;
}

// Needs the lock.
static void take_out(rw_blob_store* store, int32_t index) {
    rw_blob* blob = store->items[index];
    memmove(&store->items[index], &store->items[index + 1],
            (size_t)(store->count - index - 1) * sizeof(rw_blob*));
    store->count--;
    unref(store, blob);
}

// Needs the lock. NULL when memory is exhausted.
static rw_blob* add_blob(rw_blob_store* store, uint64_t size_bytes) {
    if (store->count == store->capacity) {
        int32_t capacity = store->capacity > 0 ? 2 * store->capacity : 4;
        rw_blob** items = rw_alloc_resize(&store->alloc, store->items,
                                          (size_t)capacity * sizeof(rw_blob*));
        if (items == NULL) {
            return NULL;
        }
        store->items = items;
        store->capacity = capacity;
    }
    rw_blob* blob = rw_alloc_get(&store->alloc, sizeof *blob);
    if (blob == NULL) {
        return NULL;
    }
    blob->bytes = rw_alloc_get(&store->alloc, size_bytes);
    if (blob->bytes == NULL) {
        rw_alloc_free(&store->alloc, blob);
        return NULL;
    }
    blob->id = store->next_id++;
    blob->refs = 1;
    blob->size_bytes = size_bytes;
    store->items[store->count++] = blob;
    return blob;
}

rw_status rw_blob_store_begin(rw_blob_store* store, uint64_t size_bytes, uint32_t crc,
                              uint64_t* id, rw_error* error) {
    if (size_bytes == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "bytes", "must be > 0");
    }
    if (size_bytes > store->alloc.limit_bytes) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "bytes", "%llu exceed limits.max_upload_bytes, %zu",
                (unsigned long long)size_bytes, store->alloc.limit_bytes);
    }
    pthread_mutex_lock(&store->lock);
    rw_blob* blob = add_blob(store, size_bytes);
    if (blob != NULL) {
        blob->crc = crc;
        *id = blob->id;
    }
    pthread_mutex_unlock(&store->lock);
    if (blob == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "bytes",
                "no room for %llu bytes beside this connection's other blobs",
                (unsigned long long)size_bytes);
    }
    return RW_STATUS_OK;
}

// Notes [begin, end) as received. INVALID_ARGUMENT when some of it was there already.
static rw_status add_range(rw_blob_store* store, rw_blob* blob, uint64_t begin, uint64_t end,
                           rw_error* error) {
    int32_t at = 0;
    while (at < blob->range_count && blob->ranges[at].end <= begin) {
        at++;
    }
    if (at < blob->range_count && blob->ranges[at].begin < end) {
        RW_FAIL(error, INVALID_ARGUMENT, "offset", "overlaps a piece that is there already");
    }
    bool joins_before = at > 0 && blob->ranges[at - 1].end == begin;
    bool joins_after = at < blob->range_count && blob->ranges[at].begin == end;
    if (joins_before && joins_after) {
        blob->ranges[at - 1].end = blob->ranges[at].end;
        memmove(&blob->ranges[at], &blob->ranges[at + 1],
                (size_t)(blob->range_count - at - 1) * sizeof *blob->ranges);
        blob->range_count--;
    } else if (joins_before) {
        blob->ranges[at - 1].end = end;
    } else if (joins_after) {
        blob->ranges[at].begin = begin;
    } else {
        if (blob->range_count == blob->range_capacity) {
            int32_t capacity = blob->range_capacity > 0 ? 2 * blob->range_capacity : 4;
            struct rw_blob_range* ranges = rw_alloc_resize(&store->alloc, blob->ranges,
                                                           (size_t)capacity * sizeof *ranges);
            if (ranges == NULL) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "offset", "too many separate pieces");
            }
            blob->ranges = ranges;
            blob->range_capacity = capacity;
        }
        memmove(&blob->ranges[at + 1], &blob->ranges[at],
                (size_t)(blob->range_count - at) * sizeof *blob->ranges);
        blob->ranges[at] = (struct rw_blob_range){begin, end};
        blob->range_count++;
    }
    return RW_STATUS_OK;
}

// Needs the lock.
static rw_status add_piece(rw_blob_store* store, int32_t index, uint64_t offset, const void* data,
                           size_t size, rw_error* error) {
    rw_blob* blob = store->items[index];
    if (blob->is_complete || blob->is_download) {
        RW_FAIL(error, FAILED_PRECONDITION, "blob", "has all its bytes already");
    }
    if (size == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, "data", "must not be empty");
    }
    if (offset > blob->size_bytes || size > blob->size_bytes - offset) {
        RW_FAIL(error, INVALID_ARGUMENT, "offset", "[%llu, %llu) lies outside the blob's %llu bytes",
                (unsigned long long)offset, (unsigned long long)(offset + size),
                (unsigned long long)blob->size_bytes);
    }
    RW_TRY(add_range(store, blob, offset, offset + size, error));
    memcpy(blob->bytes + offset, data, size);
    blob->received_bytes += size;

    // The sum follows the front, so that pieces in order cost their own share only.
    if (blob->ranges[0].begin == 0 && blob->ranges[0].end > blob->summed_bytes) {
        blob->running_crc =
            rw_hash_crc32(blob->running_crc, blob->bytes + blob->summed_bytes,
                              (size_t)(blob->ranges[0].end - blob->summed_bytes));
        blob->summed_bytes = blob->ranges[0].end;
    }
    if (blob->received_bytes < blob->size_bytes) {
        return RW_STATUS_OK;
    }
    if (blob->running_crc != blob->crc) {
        uint32_t crc = blob->running_crc;
        uint32_t promised = blob->crc;
        take_out(store, index);
        RW_FAIL(error, DATA_LOSS, "blob", "checksum %08x, promised %08x: the blob was dropped", crc,
                promised);
    }
    blob->is_complete = true;
    rw_alloc_free(&store->alloc, blob->ranges);
    blob->ranges = NULL;
    blob->range_count = blob->range_capacity = 0;
    return RW_STATUS_OK;
}

rw_status rw_blob_store_add(rw_blob_store* store, uint64_t id, uint64_t offset, const void* data,
                            size_t size, uint64_t* received, bool* is_complete, rw_error* error) {
    pthread_mutex_lock(&store->lock);
    int32_t index = find(store, id);
    rw_status status =
        index < 0 ? rw_status_fail(error, RW_STATUS_NOT_FOUND, "blob", "no blob %llu",
                                   (unsigned long long)id)
                  : add_piece(store, index, offset, data, size, error);
    if (status == RW_STATUS_OK) {
        *received = store->items[index]->received_bytes;
        *is_complete = store->items[index]->is_complete;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

rw_status rw_blob_store_keep(rw_blob_store* store, const void* data, size_t size, uint64_t* id,
                             uint32_t* crc, rw_error* error) {
    *crc = rw_hash_crc32(0, data, size);
    pthread_mutex_lock(&store->lock);
    rw_blob* blob = add_blob(store, size);
    if (blob != NULL) {
        memcpy(blob->bytes, data, size);
        blob->crc = *crc;
        blob->received_bytes = size;
        blob->is_complete = blob->is_download = true;
        *id = blob->id;
    }
    pthread_mutex_unlock(&store->lock);
    if (blob == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the answer's %zu bytes exceed max_message and this "
                "connection's room for blobs", size);
    }
    return RW_STATUS_OK;
}

static rw_status find_held(rw_blob_store* store, uint64_t id, bool download, rw_blob** blob,
                           rw_error* error) {
    rw_status status = RW_STATUS_OK;
    pthread_mutex_lock(&store->lock);
    int32_t index = find(store, id);
    if (index < 0 || store->items[index]->is_download != download) {
        status = rw_status_fail(error, RW_STATUS_NOT_FOUND, "blob", "no blob %llu",
                                (unsigned long long)id);
    } else if (!store->items[index]->is_complete) {
        rw_blob* one = store->items[index];
        status = rw_status_fail(error, RW_STATUS_FAILED_PRECONDITION, "blob",
                                "only %llu of blob %llu's %llu bytes are there",
                                (unsigned long long)one->received_bytes, (unsigned long long)id,
                                (unsigned long long)one->size_bytes);
    } else {
        *blob = store->items[index];
        (*blob)->refs++;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

rw_status rw_blob_store_find(rw_blob_store* store, uint64_t id, rw_blob** blob, rw_error* error) {
    return find_held(store, id, false, blob, error);
}

rw_status rw_blob_store_find_download(rw_blob_store* store, uint64_t id, rw_blob** blob,
                                      rw_error* error) {
    return find_held(store, id, true, blob, error);
}

void rw_blob_store_release(rw_blob_store* store, rw_blob* blob) {
    pthread_mutex_lock(&store->lock);
    unref(store, blob);
    pthread_mutex_unlock(&store->lock);
}

rw_status rw_blob_store_remove(rw_blob_store* store, uint64_t id, rw_error* error) {
    pthread_mutex_lock(&store->lock);
    int32_t index = find(store, id);
    if (index >= 0) {
        take_out(store, index);
    }
    pthread_mutex_unlock(&store->lock);
    if (index < 0) {
        RW_FAIL(error, NOT_FOUND, "blob", "no blob %llu", (unsigned long long)id);
    }
    return RW_STATUS_OK;
}

uint64_t rw_blob_store_bytes(const rw_blob_store* store) {
    return atomic_load_explicit(&store->alloc.used_bytes, memory_order_relaxed);
}
