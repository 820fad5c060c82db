// Listening sockets: TCP and Unix. Loop thread.
#pragma once

#include "server/net/reactor.h"

// Listens on HOST:PORT. `*port` is the bound one (for port 0). UNAVAILABLE names the address.
rw_status rw_listener_open_tcp(rw_reactor* reactor, const char* address, int* port,
                               rw_error* error);

// Listens on a Unix socket that only this user may open. A stale socket is replaced; another kind of
// file is not.
rw_status rw_listener_open_unix(rw_reactor* reactor, const char* path, rw_error* error);

// Takes no more connections.
void rw_listener_close_all(rw_reactor* reactor);
