#include "server/session/watchdog.h"

#include <pthread.h>
#include <time.h>

#include "solvers/base/clock.h"

struct rw_watchdog {
    rw_alloc* alloc;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rw_watchdog_entry* entries;
    bool stop;
};

// Raises what is due and returns the earliest deadline left; 0 when there is none. Needs the lock.
static int64_t raise_due(rw_watchdog* watchdog) {
    int64_t now_ns = rw_clock_now_ns();
    int64_t earliest_ns = 0;
    for (rw_watchdog_entry* one = watchdog->entries; one != NULL; one = one->next) {
        if (one->deadline_ns <= now_ns) {
            // Relaxed: the flag carries no data; its reader looks at the clock by itself.
            atomic_store_explicit(one->flag, true, memory_order_relaxed);
        } else if (earliest_ns == 0 || one->deadline_ns < earliest_ns) {
            earliest_ns = one->deadline_ns;
        }
    }
    return earliest_ns;
}

static void* watch(void* argument) {
    rw_watchdog* watchdog = argument;
    pthread_setname_np(pthread_self(), "rw-watchdog");
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->stop) {
        int64_t earliest_ns = raise_due(watchdog);
        if (earliest_ns == 0) {
            pthread_cond_wait(&watchdog->changed, &watchdog->lock);
            continue;
        }
        struct timespec until = {.tv_sec = earliest_ns / 1000000000,
                                 .tv_nsec = earliest_ns % 1000000000};
        pthread_cond_timedwait(&watchdog->changed, &watchdog->lock, &until);
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

rw_watchdog* rw_watchdog_create(rw_alloc* alloc) {
    rw_watchdog* watchdog = rw_alloc_get(alloc, sizeof *watchdog);
    if (watchdog == NULL) {
        return NULL;
    }
    watchdog->alloc = alloc;
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // the clock of rw_clock_now_ns
    pthread_cond_init(&watchdog->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&watchdog->thread, NULL, watch, watchdog) != 0) {
        pthread_cond_destroy(&watchdog->changed);
        pthread_mutex_destroy(&watchdog->lock);
        rw_alloc_free(alloc, watchdog);
        return NULL;
    }
    return watchdog;
}

void rw_watchdog_destroy(rw_watchdog* watchdog) {
    if (watchdog == NULL) {
        return;
    }
    pthread_mutex_lock(&watchdog->lock);
    watchdog->stop = true;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->changed);
    pthread_mutex_destroy(&watchdog->lock);
    rw_alloc_free(watchdog->alloc, watchdog);
}

void rw_watchdog_enter(rw_watchdog* watchdog, rw_watchdog_entry* entry, atomic_bool* flag,
                       int64_t deadline_ns) {
    pthread_mutex_lock(&watchdog->lock);
    entry->flag = flag;
    entry->deadline_ns = deadline_ns;
    entry->next = watchdog->entries;
    watchdog->entries = entry;
    pthread_cond_signal(&watchdog->changed);
    pthread_mutex_unlock(&watchdog->lock);
}

void rw_watchdog_leave(rw_watchdog* watchdog, rw_watchdog_entry* entry) {
    if (entry->deadline_ns == 0) {
        return;
    }
    pthread_mutex_lock(&watchdog->lock);
    rw_watchdog_entry** link = &watchdog->entries;
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    entry->deadline_ns = 0;
    pthread_mutex_unlock(&watchdog->lock);
}
