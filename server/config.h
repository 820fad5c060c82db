// What the operator decides: read once at start-up from a file, the environment and flags (the
// later ones win). Main thread, before others start; read-only afterwards.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/log.h"
#include "solvers/base/status.h"

enum {
    RW_CONFIG_TEXT_CAPACITY = 256,
    RW_CONFIG_DEFAULT_PORT = 7171,
};

typedef struct rw_config {
    char listen[RW_CONFIG_TEXT_CAPACITY];     // HOST:PORT; "" = no TCP
    char unix_path[RW_CONFIG_TEXT_CAPACITY];  // "" = none
    char http[RW_CONFIG_TEXT_CAPACITY];       // HOST:PORT; "" = none
    char port_file[RW_CONFIG_TEXT_CAPACITY];  // gets the ports that were bound; "" = none
    char token_file[RW_CONFIG_TEXT_CAPACITY]; // "" = none
    char token[RW_CONFIG_TEXT_CAPACITY];      // from the file or ROPEWALK_TOKEN; "" = none asked for
    char gpu[32];                             // "auto", "off" or a device number
    int64_t workers;                          // 0 = cores - 1
    int64_t max_connections;
    int64_t max_sessions;
    int64_t session_memory_bytes; // of one session
    int64_t max_message_bytes;    // of one frame's payload
    int64_t max_upload_bytes;     // open blobs of one connection
    double hello_timeout_s;       // a connection that says nothing is closed
    double drain_s;               // how long SIGTERM waits for what runs
    int64_t parent_pid;           // drain when that process is no longer the parent; 0 = never
    bool insecure;                // listen beyond loopback without a token
    rw_log_level log_level;
    rw_log_format log_format;
} rw_config;

// What main should do next.
typedef enum rw_config_action {
    RW_CONFIG_RUN,
    RW_CONFIG_HELP,    // print rw_config_help and exit 0
    RW_CONFIG_VERSION, // print the version and exit 0
} rw_config_action;

// Fills `config`. INVALID_ARGUMENT names the option and its source in `error->path` and
// `error->text`. `environment` is a NULL-terminated list of NAME=VALUE.
rw_status rw_config_read(rw_config* config, int argc, char** argv, char** environment,
                         rw_config_action* action, rw_error* error);

// The help text: every option with its default, its environment variable and its meaning.
void rw_config_help(char* out, int capacity);

// Splits "HOST:PORT", "[V6]:PORT" or ":PORT" (all interfaces). INVALID_ARGUMENT.
rw_status rw_config_split_address(const char* text, char host[RW_CONFIG_TEXT_CAPACITY], int* port,
                                  rw_error* error);

// True for "localhost", 127.0.0.0/8 and ::1.
bool rw_config_is_loopback(const char* host);

// True when `given` (of `size` bytes) is the token; takes the same time wherever they differ.
bool rw_config_token_matches(const rw_config* config, const char* given);
