// ropewalkd: reads the configuration, starts host, reactor and sockets, runs until SIGTERM or SIGINT
// has been obeyed. Exit code 0 after an orderly end, 1 when it can't start, 2 for bad usage.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/config.h"
#include "server/log.h"
#include "server/net/http.h"
#include "server/net/listener.h"
#include "server/net/reactor.h"
#include "server/session/host.h"

extern char** environ;

// The ports in a file that appears whole: a script that waits for it never reads half of it.
static rw_status write_ports(const rw_config* config, int tcp_port, int http_port,
                             rw_error* error) {
    if (config->port_file[0] == '\0') {
        return RW_STATUS_OK;
    }
    char unfinished[RW_CONFIG_TEXT_CAPACITY + 8];
    snprintf(unfinished, sizeof unfinished, "%s.new", config->port_file);
    FILE* file = fopen(unfinished, "w");
    if (file == NULL) {
        RW_FAIL(error, UNAVAILABLE, "--port-file", "%s can't be written", unfinished);
    }
    if (tcp_port != 0) {
        fprintf(file, "tcp %d\n", tcp_port);
    }
    if (http_port != 0) {
        fprintf(file, "http %d\n", http_port);
    }
    if (fclose(file) != 0 || rename(unfinished, config->port_file) != 0) {
        RW_FAIL(error, UNAVAILABLE, "--port-file", "%s can't be written", config->port_file);
    }
    return RW_STATUS_OK;
}

static rw_status open_sockets(rw_reactor* reactor, const rw_config* config, rw_error* error) {
    int tcp_port = 0, http_port = 0;
    if (config->listen[0] != '\0') {
        RW_TRY(rw_listener_open_tcp(reactor, config->listen, &tcp_port, error));
    }
    if (config->unix_path[0] != '\0') {
        RW_TRY(rw_listener_open_unix(reactor, config->unix_path, error));
    }
    if (config->http[0] != '\0') {
        RW_TRY(rw_http_start(reactor, config->http, &http_port, error));
    }
    RW_TRY(write_ports(config, tcp_port, http_port, error));
    RW_LOG(INFO, "listening", RW_LOG_FIELD_NUMBER("tcp_port", tcp_port),
           RW_LOG_FIELD_TEXT("unix", config->unix_path),
           RW_LOG_FIELD_NUMBER("http_port", http_port),
           RW_LOG_FIELD_NUMBER("workers", rw_worker_pool_count(reactor->host->pool)),
           RW_LOG_FIELD_TEXT("version", RW_VERSION));
    return RW_STATUS_OK;
}

static int serve(const rw_config* config) {
    static rw_host host;
    static rw_reactor reactor;
    rw_error error = {0};
    if (rw_host_start(&host, config, &error) != RW_STATUS_OK) {
        fprintf(stderr, "ropewalkd: %s\n", error.text);
        return 1;
    }
    rw_status status = rw_reactor_init(&reactor, &host, &error);
    if (status == RW_STATUS_OK) {
        status = open_sockets(&reactor, config, &error);
        if (status == RW_STATUS_OK) {
            rw_reactor_run(&reactor);
        }
        rw_reactor_disconnect(&reactor);
        rw_host_stop(&host);
        rw_reactor_finish(&reactor);
    } else {
        rw_host_stop(&host);
    }
    if (config->unix_path[0] != '\0' && status == RW_STATUS_OK) {
        unlink(config->unix_path);
    }
    if (status != RW_STATUS_OK) {
        fprintf(stderr, "ropewalkd: %s: %s\n", error.path, error.text);
        return 1;
    }
    RW_LOG(INFO, "stopped", RW_LOG_FIELD_NUMBER("pid", getpid()));
    return 0;
}

int main(int argc, char** argv) {
    rw_config config;
    rw_config_action action;
    rw_error error = {0};
    if (rw_config_read(&config, argc, argv, environ, &action, &error) != RW_STATUS_OK) {
        fprintf(stderr, "ropewalkd: %s: %s\n", error.path, error.text);
        return 2;
    }
    if (action == RW_CONFIG_HELP) {
        char text[8192];
        rw_config_help(text, sizeof text);
        fputs(text, stdout);
        return 0;
    }
    if (action == RW_CONFIG_VERSION) {
        puts("ropewalkd " RW_VERSION);
        return 0;
    }
    rw_log_set_up(config.log_level, config.log_format);
    return serve(&config);
}
