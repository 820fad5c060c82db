// Health and metrics over HTTP, on a port of their own: /healthz (the process lives), /readyz (it
// takes new work), /metrics (Prometheus' text format). libwebsockets on the reactor's loop. Loop
// thread.
#pragma once

#include "server/net/reactor.h"

// Listens on HOST:PORT; `*port` is the bound one. UNIMPLEMENTED in a build without libwebsockets.
rw_status rw_http_start(rw_reactor* reactor, const char* address, int* port, rw_error* error);

// Ends it. Harmless when it was not started.
void rw_http_stop(rw_reactor* reactor);
