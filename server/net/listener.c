#include "server/net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/config.h"
#include "server/log.h"
#include "server/net/connection.h"

enum { BACKLOG = 512 };

typedef union any_socket {
    uv_tcp_t tcp;
    uv_pipe_t pipe;
    uv_stream_t stream;
    uv_handle_t handle;
} any_socket;

struct rw_listener {
    any_socket socket;
    any_socket spare; // takes and drops a connection when there is no memory for it
    bool is_spare_busy; // until libuv has let go of it: the listener stays that long
    bool is_closed;
    rw_listener* next;
    rw_reactor* reactor;
    bool is_tcp;
};

static void free_closed(rw_listener* listener) {
    if (listener->is_closed && !listener->is_spare_busy) {
        rw_alloc_free(&listener->reactor->host->alloc, listener);
    }
}

static void closed(uv_handle_t* handle) {
    rw_listener* listener = handle->data;
    listener->is_closed = true;
    free_closed(listener);
}

static void init_socket(rw_reactor* reactor, any_socket* socket, bool is_tcp) {
    if (is_tcp) {
        uv_tcp_init(&reactor->loop, &socket->tcp);
    } else {
        uv_pipe_init(&reactor->loop, &socket->pipe, 0);
    }
}

static void dropped(uv_handle_t* handle) {
    rw_listener* listener = handle->data;
    listener->is_spare_busy = false;
    free_closed(listener);
}

static void connected(uv_stream_t* stream, int status) {
    rw_listener* listener = stream->data;
    if (status != 0) {
        RW_LOG(WARN, "accept_failed", RW_LOG_FIELD_TEXT("reason", uv_strerror(status)));
        return;
    }
    if (!rw_connection_accept(listener->reactor, stream, listener->is_tcp) &&
        !listener->is_spare_busy) {
        listener->is_spare_busy = true;
        init_socket(listener->reactor, &listener->spare, listener->is_tcp);
        listener->spare.handle.data = listener;
        uv_accept(stream, &listener->spare.stream);
        uv_close(&listener->spare.handle, dropped);
    }
}

static rw_listener* create(rw_reactor* reactor, bool is_tcp) {
    rw_listener* listener = rw_alloc_get(&reactor->host->alloc, sizeof *listener);
    if (listener == NULL) {
        return NULL;
    }
    listener->reactor = reactor;
    listener->is_tcp = is_tcp;
    init_socket(reactor, &listener->socket, is_tcp);
    listener->socket.handle.data = listener;
    return listener;
}

static rw_status listen_on(rw_reactor* reactor, rw_listener* listener, int status,
                           const char* address, rw_error* error) {
    if (status == 0) {
        status = uv_listen(&listener->socket.stream, BACKLOG, connected);
    }
    if (status != 0) {
        uv_close(&listener->socket.handle, closed);
        RW_FAIL(error, UNAVAILABLE, address, "%s", uv_strerror(status));
    }
    listener->next = reactor->listeners;
    reactor->listeners = listener;
    return RW_STATUS_OK;
}

static rw_status resolve(rw_reactor* reactor, const char* host, int port,
                         struct sockaddr_storage* address, rw_error* error) {
    if (host[0] == '\0') {
        host = "0.0.0.0";
    }
    if (uv_ip4_addr(host, port, (struct sockaddr_in*)address) == 0 ||
        uv_ip6_addr(host, port, (struct sockaddr_in6*)address) == 0) {
        return RW_STATUS_OK;
    }
    // A name: looked up once, at start-up, before anybody is served.
    uv_getaddrinfo_t request;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int status = uv_getaddrinfo(&reactor->loop, &request, NULL, host, service, &hints);
    if (status != 0) {
        RW_FAIL(error, UNAVAILABLE, host, "%s", uv_strerror(status));
    }
    memcpy(address, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return RW_STATUS_OK;
}

rw_status rw_listener_open_tcp(rw_reactor* reactor, const char* address, int* port,
                               rw_error* error) {
    char host[RW_CONFIG_TEXT_CAPACITY];
    struct sockaddr_storage where;
    RW_TRY(rw_config_split_address(address, host, port, error));
    RW_TRY(resolve(reactor, host, *port, &where, error));
    rw_listener* listener = create(reactor, true);
    if (listener == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, address, "out of memory");
    }
    int status = uv_tcp_bind(&listener->socket.tcp, (struct sockaddr*)&where, 0);
    RW_TRY(listen_on(reactor, listener, status, address, error));
    int size = sizeof where;
    uv_tcp_getsockname(&listener->socket.tcp, (struct sockaddr*)&where, &size);
    *port = ntohs(where.ss_family == AF_INET6 ? ((struct sockaddr_in6*)&where)->sin6_port
                                              : ((struct sockaddr_in*)&where)->sin_port);
    return RW_STATUS_OK;
}

// Removes a socket that nobody listens on any more.
static rw_status remove_stale(const char* path, rw_error* error) {
    struct stat facts;
    if (lstat(path, &facts) != 0) {
        return RW_STATUS_OK;
    }
    if (!S_ISSOCK(facts.st_mode)) {
        RW_FAIL(error, UNAVAILABLE, path, "there is a file that is no socket");
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int probe = socket(AF_UNIX, SOCK_STREAM, 0);
    bool is_alive =
        probe >= 0 && connect(probe, (struct sockaddr*)&address, sizeof address) == 0;
    if (probe >= 0) {
        close(probe);
    }
    if (is_alive) {
        RW_FAIL(error, UNAVAILABLE, path, "another process listens there");
    }
    unlink(path);
    return RW_STATUS_OK;
}

rw_status rw_listener_open_unix(rw_reactor* reactor, const char* path, rw_error* error) {
    struct sockaddr_un unused;
    if (strlen(path) >= sizeof unused.sun_path) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "longer than %zu bytes", sizeof unused.sun_path - 1);
    }
    RW_TRY(remove_stale(path, error));
    rw_listener* listener = create(reactor, false);
    if (listener == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, path, "out of memory");
    }
    mode_t before = umask(0177); // only this user, from the first moment on
    int status = uv_pipe_bind(&listener->socket.pipe, path);
    umask(before);
    return listen_on(reactor, listener, status, path, error);
}

void rw_listener_close_all(rw_reactor* reactor) {
    while (reactor->listeners != NULL) {
        rw_listener* listener = reactor->listeners;
        reactor->listeners = listener->next;
        uv_close(&listener->socket.handle, closed);
    }
}
