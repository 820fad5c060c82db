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
    pthread_mutex_init(&store->piece_lock, NULL);
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
    pthread_mutex_destroy(&store->piece_lock);
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

// A blob that is in no table yet. NULL when memory is exhausted. Without the lock: large room may take
// the machine a while.
static rw_blob* make_blob(rw_blob_store* store, uint64_t size_bytes) {
    rw_blob* blob = rw_alloc_get(&store->alloc, sizeof *blob);
    if (blob == NULL) {
        return NULL;
    }
    blob->bytes = rw_alloc_get(&store->alloc, size_bytes);
    if (blob->bytes == NULL) {
        rw_alloc_free(&store->alloc, blob);
        return NULL;
    }
    blob->refs = 1;
    blob->size_bytes = size_bytes;
    return blob;
}

// Takes it over and gives it an id; frees it when memory is exhausted.
static bool add_blob(rw_blob_store* store, rw_blob* blob, uint64_t* id) {
    pthread_mutex_lock(&store->lock);
    bool fits = store->count < store->capacity;
    if (!fits) {
        int32_t capacity = store->capacity > 0 ? 2 * store->capacity : 4;
        rw_blob** items = rw_alloc_resize(&store->alloc, store->items,
                                          (size_t)capacity * sizeof(rw_blob*));
        fits = items != NULL;
        if (fits) {
            store->items = items;
            store->capacity = capacity;
        }
    }
    if (fits) {
        *id = blob->id = store->next_id++;
        store->items[store->count++] = blob;
    }
    pthread_mutex_unlock(&store->lock);
    if (!fits) {
        free_blob(store, blob);
    }
    return fits;
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
    rw_blob* blob = make_blob(store, size_bytes);
    if (blob != NULL) {
        blob->crc = crc;
    }
    if (blob == NULL || !add_blob(store, blob, id)) {
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

// Needs both locks. Claims the piece's range.
static rw_status claim_piece(rw_blob_store* store, rw_blob* blob, uint64_t offset, size_t size,
                             rw_error* error) {
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
    return add_range(store, blob, offset, offset + size, error);
}

// Needs the piece lock only, and a reference: the loop thread never waits for bytes.
static void fill_piece(rw_blob* blob, uint64_t offset, const void* data, size_t size) {
    memcpy(blob->bytes + offset, data, size);
    // The sum follows the front, so that pieces in order cost their own share only.
    if (blob->ranges[0].begin == 0 && blob->ranges[0].end > blob->summed_bytes) {
        blob->running_crc =
            rw_hash_crc32(blob->running_crc, blob->bytes + blob->summed_bytes,
                          (size_t)(blob->ranges[0].end - blob->summed_bytes));
        blob->summed_bytes = blob->ranges[0].end;
    }
}

// Needs both locks.
static rw_status finish_piece(rw_blob_store* store, rw_blob* blob, size_t size, rw_error* error) {
    blob->received_bytes += size;
    if (blob->received_bytes < blob->size_bytes) {
        return RW_STATUS_OK;
    }
    if (blob->running_crc != blob->crc) {
        int32_t index = find(store, blob->id);
        if (index >= 0) {
            take_out(store, index); // our reference keeps it for a moment
        }
        RW_FAIL(error, DATA_LOSS, "blob", "checksum %08x, promised %08x: the blob was dropped",
                blob->running_crc, blob->crc);
    }
    blob->is_complete = true;
    rw_alloc_free(&store->alloc, blob->ranges);
    blob->ranges = NULL;
    blob->range_count = blob->range_capacity = 0;
    return RW_STATUS_OK;
}

rw_status rw_blob_store_add(rw_blob_store* store, uint64_t id, uint64_t offset, const void* data,
                            size_t size, uint64_t* received, bool* is_complete, rw_error* error) {
    pthread_mutex_lock(&store->piece_lock);
    pthread_mutex_lock(&store->lock);
    int32_t index = find(store, id);
    rw_blob* blob = index >= 0 ? store->items[index] : NULL;
    rw_status status =
        blob == NULL ? rw_status_fail(error, RW_STATUS_NOT_FOUND, "blob", "no blob %llu",
                                      (unsigned long long)id)
                     : claim_piece(store, blob, offset, size, error);
    if (status == RW_STATUS_OK) {
        blob->refs++;
        pthread_mutex_unlock(&store->lock);
        fill_piece(blob, offset, data, size);
        pthread_mutex_lock(&store->lock);
        status = finish_piece(store, blob, size, error);
        *received = blob->received_bytes;
        *is_complete = blob->is_complete;
        unref(store, blob);
    }
    pthread_mutex_unlock(&store->lock);
    pthread_mutex_unlock(&store->piece_lock);
    return status;
}

rw_status rw_blob_store_keep(rw_blob_store* store, const void* data, size_t size, uint64_t* id,
                             uint32_t* crc, rw_error* error) {
    *crc = rw_hash_crc32(0, data, size);
    rw_blob* blob = make_blob(store, size);
    if (blob != NULL) {
        memcpy(blob->bytes, data, size);
        blob->crc = *crc;
        blob->received_bytes = size;
        blob->is_complete = blob->is_download = true;
    }
    if (blob == NULL || !add_blob(store, blob, id)) {
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
