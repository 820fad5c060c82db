#include "server/net/reactor.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "server/log.h"
#include "server/net/connection.h"
#include "server/net/http.h"
#include "server/net/listener.h"
#include "solvers/base/check.h"
#include "solvers/base/clock.h"

enum {
    TICK_MS = 20,
    PACE_MS = 1,
    ROUNDS = 16, // of parsing on within one turn; others get their turn after
};

#define STALL_NS 20000000
#define END_NS 250000000

// ---- Lists ----

void rw_reactor_mark_dirty(rw_reactor* reactor, rw_connection* connection) {
    if (!connection->is_dirty && !connection->is_closing) {
        connection->is_dirty = true;
        connection->dirty_next = reactor->dirty;
        reactor->dirty = connection;
    }
}

void rw_reactor_mark_resumed(rw_reactor* reactor, rw_connection* connection) {
    if (!connection->is_resumed && !connection->is_closing) {
        connection->is_resumed = true;
        connection->resumed_next = reactor->resumed;
        reactor->resumed = connection;
    }
}

static void flush_all(rw_reactor* reactor) {
    while (reactor->dirty != NULL) {
        rw_connection* connection = reactor->dirty;
        reactor->dirty = connection->dirty_next;
        connection->is_dirty = false;
        rw_connection_flush(connection);
    }
}

static void resume_all(rw_reactor* reactor) {
    rw_connection* list = reactor->resumed;
    // Those that stall again at once wait for the next round.
    reactor->resumed = NULL;
    for (rw_connection* one = list; one != NULL; one = one->resumed_next) {
        one->is_resumed = false;
    }
    while (list != NULL) {
        rw_connection* connection = list;
        list = connection->resumed_next;
        rw_connection_resume(connection);
    }
}

// ---- A turn ----

static bool others_ready(void* context) {
    rw_reactor* reactor = context;
    struct pollfd waiting = {.fd = uv_backend_fd(&reactor->loop), .events = POLLIN};
    return poll(&waiting, 1, 0) > 0;
}

static void ring(void* context) {
    rw_reactor* reactor = context;
    uv_async_send(&reactor->bell);
}

static void on_bell(uv_async_t* bell) {
    rw_reactor* reactor = bell->data;
    rw_host_deliver(reactor->host);
}

static void check_drained(rw_reactor* reactor);

static void renew_pace(rw_reactor* reactor);

static void on_prepare(uv_prepare_t* prepare) {
    rw_reactor* reactor = prepare->data;
    rw_host_deliver(reactor->host);
    rw_host_end_turn(reactor->host);
    flush_all(reactor);
    renew_pace(reactor);
    if (reactor->resumed != NULL) {
        uv_async_send(&reactor->bell); // do not sleep over them
    }
    if (reactor->is_draining) {
        check_drained(reactor);
    }
    reactor->turn++;
}

static void on_check(uv_check_t* check) {
    rw_reactor* reactor = check->data;
    rw_host* host = reactor->host;
    rw_host_end_turn(host);
    for (int round = 0; reactor->resumed != NULL && round < ROUNDS; round++) {
        resume_all(reactor);
        rw_host_end_turn(host);
    }
    flush_all(reactor);
    if (reactor->resumed != NULL) {
        uv_async_send(&reactor->bell); // go on in the next turn
    }
}

static void on_tick(uv_timer_t* timer) {
    rw_reactor* reactor = timer->data;
    int64_t now_ns = rw_clock_now_ns();
    // The tick itself is late by as long as the loop was held up.
    if (reactor->turn_begin_ns != 0 &&
        now_ns - reactor->turn_begin_ns > TICK_MS * 1000000 + STALL_NS) {
        rw_metrics_add(&reactor->host->metrics, RW_METRICS_loop_stalls_total, 1);
    }
    reactor->turn_begin_ns = now_ns;
    rw_host_tick(reactor->host, now_ns);
    // A private daemon must not outlive who started it, however that one ended.
    int64_t parent_pid = reactor->host->config->parent_pid;
    if (parent_pid != 0 && getppid() != parent_pid) {
        rw_reactor_drain(reactor);
    }
    rw_connection* next;
    for (rw_connection* one = reactor->connections; one != NULL; one = next) {
        next = one->next;
        rw_connection_tick(one, now_ns);
    }
}

static void on_pace(uv_timer_t* timer) {
    rw_reactor* reactor = timer->data;
    rw_host_pace(reactor->host);
}

static void renew_pace(rw_reactor* reactor) {
    bool wanted = rw_host_has_paced(reactor->host);
    bool active = uv_is_active((uv_handle_t*)&reactor->pace) != 0;
    if (wanted && !active) {
        uv_timer_start(&reactor->pace, on_pace, PACE_MS, PACE_MS);
    } else if (!wanted && active) {
        uv_timer_stop(&reactor->pace);
    }
}

// ---- Draining ----

static void on_signal(uv_signal_t* handle, int number) {
    rw_reactor* reactor = handle->data;
    RW_LOG(INFO, "signal", RW_LOG_FIELD_NUMBER("number", number));
    rw_reactor_drain(reactor);
}

void rw_reactor_drain(rw_reactor* reactor) {
    if (reactor->is_draining) {
        return;
    }
    reactor->is_draining = true;
    reactor->drain_until_ns =
        rw_clock_now_ns() + (int64_t)(reactor->host->config->drain_s * 1e9);
    RW_LOG(INFO, "draining", RW_LOG_FIELD_REAL("limit_s", reactor->host->config->drain_s));
    rw_listener_close_all(reactor);
    rw_host_drain(reactor->host);
}

static bool all_flushed(const rw_reactor* reactor) {
    for (const rw_connection* one = reactor->connections; one != NULL; one = one->next) {
        if (!one->is_closing && !rw_connection_is_flushed(one)) {
            return false;
        }
    }
    return true;
}

// Past the limit what runs is cancelled (and answers so); a second later nobody is waited for.
static void check_drained(rw_reactor* reactor) {
    int64_t now_ns = rw_clock_now_ns();
    bool is_late = now_ns >= reactor->drain_until_ns;
    if (is_late) {
        rw_host_cancel_all(reactor->host);
    }
    bool is_done = rw_host_is_quiet(reactor->host) && reactor->resumed == NULL &&
                   all_flushed(reactor);
    if (is_done || now_ns >= reactor->drain_until_ns + 1000000000) {
        uv_stop(&reactor->loop);
    }
}

// ---- Life ----

rw_status rw_reactor_init(rw_reactor* reactor, rw_host* host, rw_error* error) {
    memset(reactor, 0, sizeof *reactor);
    reactor->host = host;
    if (uv_loop_init(&reactor->loop) != 0) {
        RW_FAIL(error, INTERNAL, "", "no event loop to be had");
    }
    uv_async_init(&reactor->loop, &reactor->bell, on_bell);
    uv_prepare_init(&reactor->loop, &reactor->prepare);
    uv_check_init(&reactor->loop, &reactor->check);
    uv_timer_init(&reactor->loop, &reactor->tick);
    uv_timer_init(&reactor->loop, &reactor->pace);
    uv_signal_init(&reactor->loop, &reactor->terminate);
    uv_signal_init(&reactor->loop, &reactor->interrupt);
    reactor->bell.data = reactor->prepare.data = reactor->check.data = reactor;
    reactor->tick.data = reactor->pace.data = reactor;
    reactor->terminate.data = reactor->interrupt.data = reactor;
    uv_prepare_start(&reactor->prepare, on_prepare);
    uv_check_start(&reactor->check, on_check);
    uv_timer_start(&reactor->tick, on_tick, TICK_MS, TICK_MS);
    uv_signal_start(&reactor->terminate, on_signal, SIGTERM);
    uv_signal_start(&reactor->interrupt, on_signal, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    host->context = reactor;
    host->ring = ring;
    host->others_ready = others_ready;
    return RW_STATUS_OK;
}

void rw_reactor_run(rw_reactor* reactor) {
    uv_run(&reactor->loop, UV_RUN_DEFAULT);
}

void rw_reactor_disconnect(rw_reactor* reactor) {
    // From here on nobody listens to signals: a second SIGTERM must not end an orderly end.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    rw_http_stop(reactor);
    rw_listener_close_all(reactor);
    // Closing a socket with unread bytes in it would take the last replies along: say the end, and
    // give the peers a moment to say theirs.
    rw_connection* next;
    for (rw_connection* one = reactor->connections; one != NULL; one = next) {
        next = one->next;
        rw_connection_end(one);
    }
    int64_t until_ns = rw_clock_now_ns() + END_NS;
    while (reactor->connections != NULL && rw_clock_now_ns() < until_ns) {
        uv_run(&reactor->loop, UV_RUN_ONCE);
    }
    while (reactor->connections != NULL) {
        for (rw_connection* one = reactor->connections; one != NULL; one = one->next) {
            rw_connection_close(one);
        }
        uv_run(&reactor->loop, UV_RUN_NOWAIT);
    }
    uv_run(&reactor->loop, UV_RUN_NOWAIT); // the listeners' memory is freed as they close
}

void rw_reactor_finish(rw_reactor* reactor) {
    uv_close((uv_handle_t*)&reactor->bell, NULL);
    uv_close((uv_handle_t*)&reactor->prepare, NULL);
    uv_close((uv_handle_t*)&reactor->check, NULL);
    uv_close((uv_handle_t*)&reactor->tick, NULL);
    uv_close((uv_handle_t*)&reactor->pace, NULL);
    uv_close((uv_handle_t*)&reactor->terminate, NULL);
    uv_close((uv_handle_t*)&reactor->interrupt, NULL);
    uv_run(&reactor->loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&reactor->loop);
    RW_ASSERT(status == 0);
    (void)status;
}
