#include "server/net/http.h"

#include "server/config.h"

#ifdef RW_HAVE_WEB

#include <string.h>

#include <libwebsockets.h>

#include "server/log.h"

struct rw_http {
    rw_reactor* reactor;
    struct lws_context* context;
};

// What one request is answered with.
typedef struct answer {
    rw_buffer body;
    size_t at;
} answer;

// Sends the head; the body follows when the socket can take it.
static int begin_answer(struct lws* wsi, answer* own, unsigned code, const char* type) {
    unsigned char head[LWS_PRE + 1024];
    unsigned char* at = head + LWS_PRE;
    unsigned char* end = head + sizeof head - 1;
    if (lws_add_http_common_headers(wsi, code, type, own->body.size_bytes, &at, end) != 0 ||
        lws_finalize_write_http_header(wsi, head + LWS_PRE, &at, end) != 0) {
        return 1;
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int answer_path(struct lws* wsi, rw_http* http, answer* own, const char* path) {
    rw_host* host = http->reactor->host;
    rw_buffer_init(&own->body, &host->alloc);
    own->at = 0;
    unsigned code = 200;
    const char* type = "text/plain; charset=utf-8";
    rw_status status;
    if (strcmp(path, "/healthz") == 0) {
        status = rw_buffer_append(&own->body, "ok\n", 3);
    } else if (strcmp(path, "/readyz") == 0) {
        code = host->is_draining ? 503 : 200;
        const char* text = host->is_draining ? "draining\n" : "ready\n";
        status = rw_buffer_append(&own->body, text, strlen(text));
    } else if (strcmp(path, "/metrics") == 0) {
        type = "text/plain; version=0.0.4; charset=utf-8";
        rw_host_measure(host);
        status = rw_metrics_print(&host->metrics, &own->body);
    } else {
        code = 404;
        status = rw_buffer_append(&own->body, "/healthz, /readyz, /metrics\n", 28);
    }
    return status != RW_STATUS_OK ? 1 : begin_answer(wsi, own, code, type);
}

static int write_body(struct lws* wsi, answer* own) {
    unsigned char piece[LWS_PRE + 4096];
    size_t left = own->body.size_bytes - own->at;
    size_t size = left < 4096 ? left : 4096;
    memcpy(piece + LWS_PRE, own->body.data + own->at, size);
    bool is_last = size == left;
    if (lws_write(wsi, piece + LWS_PRE, size, is_last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) !=
        (int)size) {
        return 1;
    }
    own->at += size;
    if (!is_last) {
        lws_callback_on_writable(wsi);
        return 0;
    }
    rw_buffer_finish(&own->body);
    return lws_http_transaction_completed(wsi) != 0 ? -1 : 0;
}

static int serve(struct lws* wsi, enum lws_callback_reasons reason, void* user, void* in,
                 size_t size) {
    answer* own = user;
    rw_http* http = lws_context_user(lws_get_context(wsi));
    // Only the reasons that matter here; libwebsockets has a hundred.
    if (reason == LWS_CALLBACK_HTTP) {
        return answer_path(wsi, http, own, in);
    }
    if (reason == LWS_CALLBACK_HTTP_WRITEABLE) {
        return own != NULL && own->body.data != NULL ? write_body(wsi, own) : 0;
    }
    if (reason == LWS_CALLBACK_CLOSED_HTTP && own != NULL && own->body.data != NULL) {
        rw_buffer_finish(&own->body);
        return 0;
    }
    return lws_callback_http_dummy(wsi, reason, user, in, size);
}

static const struct lws_protocols PROTOCOLS[] = {
    {.name = "http", .callback = serve, .per_session_data_size = sizeof(answer)},
    {.name = NULL},
};

static void log_line(int level, const char* text) {
    if ((level & (LLL_ERR | LLL_WARN)) != 0) {
        char line[256];
        strncpy(line, text, sizeof line - 1);
        line[sizeof line - 1] = '\0';
        line[strcspn(line, "\n")] = '\0';
        RW_LOG(WARN, "http", RW_LOG_FIELD_TEXT("text", line));
    }
}

rw_status rw_http_start(rw_reactor* reactor, const char* address, int* port, rw_error* error) {
    char host[RW_CONFIG_TEXT_CAPACITY];
    RW_TRY(rw_config_split_address(address, host, port, error));
    rw_http* http = rw_alloc_get(&reactor->host->alloc, sizeof *http);
    if (http == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, address, "out of memory");
    }
    http->reactor = reactor;
    lws_set_log_level(LLL_ERR | LLL_WARN, log_line);
    void* loops[1] = {&reactor->loop};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = *port;
    info.iface = host[0] != '\0' ? host : NULL;
    info.protocols = PROTOCOLS;
    info.options = LWS_SERVER_OPTION_LIBUV;
    info.foreign_loops = loops;
    info.user = http;
    info.gid = (gid_t)-1;
    info.uid = (uid_t)-1;
    http->context = lws_create_context(&info);
    if (http->context == NULL) {
        rw_alloc_free(&reactor->host->alloc, http);
        RW_FAIL(error, UNAVAILABLE, address,
                "can't serve HTTP there (is the package libwebsockets-evlib-uv installed?)");
    }
    struct lws_vhost* vhost = lws_get_vhost_by_name(http->context, "default");
    if (vhost != NULL) {
        *port = lws_get_vhost_listen_port(vhost);
    }
    reactor->http = http;
    return RW_STATUS_OK;
}

void rw_http_stop(rw_reactor* reactor) {
    if (reactor->http == NULL) {
        return;
    }
    lws_context_destroy(reactor->http->context);
    // Its handles close within the next turns; its callbacks must not find us gone.
    for (int i = 0; i < 8; i++) {
        uv_run(&reactor->loop, UV_RUN_NOWAIT);
    }
    // On a loop that is not the library's own, the second call frees what the handles needed.
    lws_context_destroy(reactor->http->context);
    rw_alloc_free(&reactor->host->alloc, reactor->http);
    reactor->http = NULL;
}

#else

rw_status rw_http_start(rw_reactor* reactor, const char* address, int* port, rw_error* error) {
    (void)reactor;
    (void)port;
    RW_FAIL(error, UNIMPLEMENTED, address, "this build has no HTTP (libwebsockets was not found)");
}

void rw_http_stop(rw_reactor* reactor) { (void)reactor; }

#endif
