#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/base/check.h"

typedef enum option_type {
    OPTION_TEXT,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_SECONDS,
    OPTION_FLAG,
    OPTION_LEVEL,
    OPTION_FORMAT,
    OPTION_GPU,
    OPTION_CONFIG, // the file itself
} option_type;

typedef struct option {
    const char* name; // --name, ROPEWALK_NAME, `name = value`
    option_type type;
    size_t offset;
    double lowest, highest; // numbers
    const char* value;      // how help calls it
    const char* fallback;   // default, as text
    const char* help;
} option;

#define AT(member) offsetof(rw_config, member)
static const option OPTIONS[] = {
    {"config", OPTION_CONFIG, 0, 0, 0, "FILE", "", "lines of `name = value`, # starts a comment"},
    {"listen", OPTION_TEXT, AT(listen), 0, 0, "HOST:PORT", "127.0.0.1:7171",
     "TCP address; port 0 takes a free one; \"\" listens on no TCP port"},
    {"unix", OPTION_TEXT, AT(unix_path), 0, 0, "PATH", "", "also listen on a Unix socket"},
    {"http", OPTION_TEXT, AT(http), 0, 0, "HOST:PORT", "",
     "serve /healthz, /readyz and /metrics there"},
    {"port-file", OPTION_TEXT, AT(port_file), 0, 0, "PATH", "",
     "write the bound ports there: a line `tcp PORT`, a line `http PORT`"},
    {"token-file", OPTION_TEXT, AT(token_file), 0, 0, "PATH", "",
     "clients must send the token in this file's first line (or ROPEWALK_TOKEN)"},
    {"insecure", OPTION_FLAG, AT(insecure), 0, 0, "", "off",
     "allow addresses beyond loopback without a token"},
    {"workers", OPTION_COUNT, AT(workers), 0, 1024, "N", "0",
     "threads that simulate; 0 = one less than the cores"},
    {"gpu", OPTION_GPU, AT(gpu), 0, 0, "auto|off|N", "auto", "device for large rod sets"},
    {"max-connections", OPTION_COUNT, AT(max_connections), 1, 1e6, "N", "4096",
     "more are refused"},
    {"max-sessions", OPTION_COUNT, AT(max_sessions), 1, 1e6, "N", "4096", "more are refused"},
    {"session-memory", OPTION_BYTES, AT(session_memory_bytes), 65536, 1e15, "BYTES", "4G",
     "most memory of one session (suffixes K, M, G)"},
    {"max-message", OPTION_BYTES, AT(max_message_bytes), 4096, 1073741824.0, "BYTES", "16M",
     "largest frame"},
    {"max-upload", OPTION_BYTES, AT(max_upload_bytes), 4096, 1e15, "BYTES", "2G",
     "open blobs of one connection"},
    {"hello-timeout-s", OPTION_SECONDS, AT(hello_timeout_s), 0.001, 1e6, "S", "10",
     "close a connection that has not said Hello by then"},
    {"drain-s", OPTION_SECONDS, AT(drain_s), 0, 1e6, "S", "30",
     "after SIGTERM, wait this long for what runs before cancelling it"},
    {"parent", OPTION_COUNT, AT(parent_pid), 0, 1e9, "PID", "0",
     "stop, as by SIGTERM, when this process, which started it, has ended"},
    {"log-level", OPTION_LEVEL, AT(log_level), 0, 0, "LEVEL", "info", "debug, info, warn or error"},
    {"log-format", OPTION_FORMAT, AT(log_format), 0, 0, "FORMAT", "logfmt", "logfmt or json"},
};
#undef AT

// ---- Values ----

static bool read_number(const char* text, bool with_suffix, double* value) {
    char* end;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || errno != 0 || !isfinite(*value)) {
        return false;
    }
    if (with_suffix && *end != '\0') {
        const char* suffixes = "KMG";
        const char* found = strchr(suffixes, toupper((unsigned char)*end));
        if (found == NULL) {
            return false;
        }
        for (long i = 0; i <= found - suffixes; i++) {
            *value *= 1024.0;
        }
        end++;
        if (strcmp(end, "iB") == 0 || strcmp(end, "B") == 0) {
            return true;
        }
    }
    return *end == '\0';
}

static int find_word(const char* text, const char* const* words, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static rw_status set_text(char* to, size_t capacity, const char* value, const char* where,
                          rw_error* error) {
    if (strlen(value) >= capacity) {
        RW_FAIL(error, INVALID_ARGUMENT, where, "longer than %zu bytes", capacity - 1);
    }
    memcpy(to, value, strlen(value) + 1);
    return RW_STATUS_OK;
}

static rw_status set_number(const option* one, void* field, const char* value, const char* where,
                            rw_error* error) {
    double number;
    bool whole = one->type != OPTION_SECONDS;
    if (!read_number(value, one->type == OPTION_BYTES, &number) ||
        (whole && number != floor(number))) {
        RW_FAIL(error, INVALID_ARGUMENT, where, "must be %s, got \"%s\"",
                whole ? "a whole number" : "a number", value);
    }
    if (number < one->lowest || number > one->highest) {
        RW_FAIL(error, INVALID_ARGUMENT, where, "must be in [%g, %g], got %s", one->lowest,
                one->highest, value);
    }
    if (whole) {
        *(int64_t*)field = (int64_t)number;
    } else {
        *(double*)field = number;
    }
    return RW_STATUS_OK;
}

static rw_status set_flag(bool* flag, const char* value, const char* where, rw_error* error) {
    static const char* const WORDS[] = {"off", "on", "false", "true", "0", "1", "no", "yes"};
    int word = find_word(value, WORDS, RW_COUNT_OF(WORDS));
    if (word < 0) {
        RW_FAIL(error, INVALID_ARGUMENT, where, "must be on or off, got \"%s\"", value);
    }
    *flag = word % 2 == 1;
    return RW_STATUS_OK;
}

static rw_status set_option(rw_config* config, const option* one, const char* value,
                            const char* where, rw_error* error) {
    static const char* const LEVELS[] = {"debug", "info", "warn", "error"};
    static const char* const FORMATS[] = {"logfmt", "json"};
    void* field = (char*)config + one->offset;
    int word;
    switch (one->type) {
    case OPTION_TEXT: return set_text(field, RW_CONFIG_TEXT_CAPACITY, value, where, error);
    case OPTION_COUNT:
    case OPTION_BYTES:
    case OPTION_SECONDS: return set_number(one, field, value, where, error);
    case OPTION_FLAG: return set_flag(field, value, where, error);
    case OPTION_LEVEL:
        word = find_word(value, LEVELS, RW_COUNT_OF(LEVELS));
        if (word < 0) {
            RW_FAIL(error, INVALID_ARGUMENT, where, "must be debug, info, warn or error");
        }
        config->log_level = (rw_log_level)word;
        return RW_STATUS_OK;
    case OPTION_FORMAT:
        word = find_word(value, FORMATS, RW_COUNT_OF(FORMATS));
        if (word < 0) {
            RW_FAIL(error, INVALID_ARGUMENT, where, "must be logfmt or json");
        }
        config->log_format = (rw_log_format)word;
        return RW_STATUS_OK;
    case OPTION_GPU:
        if (strcmp(value, "auto") != 0 && strcmp(value, "off") != 0 &&
            (value[0] == '\0' || strspn(value, "0123456789") != strlen(value))) {
            RW_FAIL(error, INVALID_ARGUMENT, where, "must be auto, off or a device number");
        }
        return set_text(config->gpu, sizeof config->gpu, value, where, error);
    case OPTION_CONFIG: break; // read before the others
    }
    return RW_STATUS_OK;
}

static const option* find_option(const char* name, size_t size) {
    for (size_t i = 0; i < RW_COUNT_OF(OPTIONS); i++) {
        if (strlen(OPTIONS[i].name) == size && strncmp(OPTIONS[i].name, name, size) == 0) {
            return &OPTIONS[i];
        }
    }
    return NULL;
}

// ---- Sources ----

static char* trim(char* text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t size = strlen(text);
    while (size > 0 && isspace((unsigned char)text[size - 1])) {
        text[--size] = '\0';
    }
    return text;
}

static rw_status read_file(rw_config* config, const char* path, rw_error* error) {
    FILE* file = fopen(path, "r");
    if (file == NULL) {
        RW_FAIL(error, INVALID_ARGUMENT, "--config", "%s: %s", path, strerror(errno));
    }
    char text[1024], where[512];
    rw_status status = RW_STATUS_OK;
    for (int number = 1; status == RW_STATUS_OK && fgets(text, sizeof text, file); number++) {
        char* comment = strchr(text, '#');
        if (comment != NULL) {
            *comment = '\0';
        }
        char* line = trim(text);
        if (*line == '\0') {
            continue;
        }
        char* equals = strchr(line, '=');
        snprintf(where, sizeof where, "%.380s:%d", path, number);
        if (equals == NULL) {
            status = rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, where, "no `=` in \"%s\"",
                                    line);
            break;
        }
        *equals = '\0';
        char* name = trim(line);
        const option* one = find_option(name, strlen(name));
        if (one == NULL || one->type == OPTION_CONFIG) {
            status = rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, where,
                                    "unknown option \"%s\"", name);
        } else {
            status = set_option(config, one, trim(equals + 1), where, error);
        }
    }
    fclose(file);
    return status;
}

static void variable_name(const option* one, char* out, size_t capacity) {
    snprintf(out, capacity, "ROPEWALK_%s", one->name);
    for (char* c = out; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
}

static const char* find_variable(char** environment, const char* name) {
    size_t size = strlen(name);
    for (char** one = environment; one != NULL && *one != NULL; one++) {
        if (strncmp(*one, name, size) == 0 && (*one)[size] == '=') {
            return *one + size + 1;
        }
    }
    return NULL;
}

static rw_status read_environment(rw_config* config, char** environment, rw_error* error) {
    for (size_t i = 0; i < RW_COUNT_OF(OPTIONS); i++) {
        char name[64];
        variable_name(&OPTIONS[i], name, sizeof name);
        const char* value = find_variable(environment, name);
        if (value != NULL && OPTIONS[i].type != OPTION_CONFIG) {
            RW_TRY(set_option(config, &OPTIONS[i], value, name, error));
        }
    }
    const char* token = find_variable(environment, "ROPEWALK_TOKEN");
    if (token != NULL) {
        RW_TRY(set_text(config->token, sizeof config->token, token, "ROPEWALK_TOKEN", error));
    }
    return RW_STATUS_OK;
}

// Walks the flags; with `config` NULL only looks for --config, --help and --version.
static rw_status read_flags(rw_config* config, int argc, char** argv, const char** file,
                            rw_config_action* action, rw_error* error) {
    for (int i = 1; i < argc; i++) {
        const char* flag = argv[i];
        if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
            *action = RW_CONFIG_HELP;
            return RW_STATUS_OK;
        }
        if (strcmp(flag, "--version") == 0) {
            *action = RW_CONFIG_VERSION;
            return RW_STATUS_OK;
        }
        const char* equals = strchr(flag, '=');
        size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
        const option* one =
            strncmp(flag, "--", 2) == 0 ? find_option(flag + 2, size - 2) : NULL;
        if (one == NULL) {
            RW_FAIL(error, INVALID_ARGUMENT, flag, "unknown option; --help lists all");
        }
        const char* value = equals != NULL ? equals + 1 : NULL;
        if (value == NULL && one->type == OPTION_FLAG) {
            value = "on";
        }
        if (value == NULL && ++i < argc) {
            value = argv[i];
        }
        if (value == NULL) {
            RW_FAIL(error, INVALID_ARGUMENT, flag, "needs a value: %s", one->value);
        }
        char where[64];
        snprintf(where, sizeof where, "--%s", one->name);
        if (one->type == OPTION_CONFIG) {
            *file = value;
        } else if (config != NULL) {
            RW_TRY(set_option(config, one, value, where, error));
        }
    }
    return RW_STATUS_OK;
}

static rw_status read_token(rw_config* config, rw_error* error) {
    if (config->token_file[0] == '\0') {
        return RW_STATUS_OK;
    }
    FILE* file = fopen(config->token_file, "r");
    if (file == NULL) {
        RW_FAIL(error, INVALID_ARGUMENT, "--token-file", "%s: %s", config->token_file,
                strerror(errno));
    }
    // Room for more than a token may have: one that is too long must not be cut to one that fits.
    char text[4 * RW_CONFIG_TEXT_CAPACITY] = "";
    bool got = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (strlen(text) == sizeof text - 1) {
        RW_FAIL(error, INVALID_ARGUMENT, "--token-file", "%s: its first line is too long",
                config->token_file);
    }
    char* token = trim(text);
    if (!got || *token == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "--token-file", "%s holds no token", config->token_file);
    }
    return set_text(config->token, sizeof config->token, token, "--token-file", error);
}

static rw_status check_address(const rw_config* config, const char* address, const char* where,
                               rw_error* error) {
    char host[RW_CONFIG_TEXT_CAPACITY];
    int port;
    if (address[0] == '\0') {
        return RW_STATUS_OK;
    }
    if (rw_config_split_address(address, host, &port, error) != RW_STATUS_OK) {
        return rw_status_prefix(error, "%s", where);
    }
    if (!rw_config_is_loopback(host) && config->token[0] == '\0' && !config->insecure) {
        RW_FAIL(error, INVALID_ARGUMENT, where,
                "\"%s\" is reachable from other machines: give --token-file (or ROPEWALK_TOKEN), "
                "or --insecure",
                address);
    }
    return RW_STATUS_OK;
}

rw_status rw_config_read(rw_config* config, int argc, char** argv, char** environment,
                         rw_config_action* action, rw_error* error) {
    memset(config, 0, sizeof *config);
    *action = RW_CONFIG_RUN;
    for (size_t i = 0; i < RW_COUNT_OF(OPTIONS); i++) {
        RW_TRY(set_option(config, &OPTIONS[i], OPTIONS[i].fallback, OPTIONS[i].name, error));
    }
    const char* file = find_variable(environment, "ROPEWALK_CONFIG");
    RW_TRY(read_flags(NULL, argc, argv, &file, action, error));
    if (*action != RW_CONFIG_RUN) {
        return RW_STATUS_OK;
    }
    if (file != NULL && file[0] != '\0') {
        RW_TRY(read_file(config, file, error));
    }
    RW_TRY(read_environment(config, environment, error));
    RW_TRY(read_flags(config, argc, argv, &file, action, error));
    RW_TRY(read_token(config, error));
    RW_TRY(check_address(config, config->listen, "--listen", error));
    RW_TRY(check_address(config, config->http, "--http", error));
    if (config->listen[0] == '\0' && config->unix_path[0] == '\0') {
        RW_FAIL(error, INVALID_ARGUMENT, "--listen", "nothing to listen on");
    }
    return RW_STATUS_OK;
}

void rw_config_help(char* out, int capacity) {
    int size = snprintf(
        out, (size_t)capacity,
        "ropewalkd - a headless physics server\n\n"
        "usage: ropewalkd [--OPTION VALUE ...]\n\n"
        "Each option may also stand in the file of --config (`listen = 127.0.0.1:0`) or in the\n"
        "environment (ROPEWALK_LISTEN); flags win over the environment, it wins over the file.\n"
        "ROPEWALK_TOKEN sets the token that clients must send. SIGTERM and SIGINT drain: what runs\n"
        "is finished, new work is answered UNAVAILABLE, exit code 0.\n\n");
    for (size_t i = 0; i < RW_COUNT_OF(OPTIONS) && size < capacity; i++) {
        const option* one = &OPTIONS[i];
        char head[64];
        snprintf(head, sizeof head, "--%s %s", one->name, one->value);
        size += snprintf(out + size, (size_t)(capacity - size), "  %-30s %s%s%s%s\n", head,
                         one->help, one->fallback[0] != '\0' ? " [" : "", one->fallback,
                         one->fallback[0] != '\0' ? "]" : "");
    }
    if (size < capacity) {
        snprintf(out + size, (size_t)(capacity - size), "  %-30s %s\n  %-30s %s\n", "--help",
                 "this text", "--version", "the version");
    }
}

// ---- Addresses and the token ----

rw_status rw_config_split_address(const char* text, char host[RW_CONFIG_TEXT_CAPACITY], int* port,
                                  rw_error* error) {
    const char* colon = strrchr(text, ':');
    if (colon == NULL || strlen(text) >= RW_CONFIG_TEXT_CAPACITY) {
        RW_FAIL(error, INVALID_ARGUMENT, "", "must be HOST:PORT, got \"%s\"", text);
    }
    char* end;
    long number = strtol(colon + 1, &end, 10);
    if (colon[1] == '\0' || *end != '\0' || number < 0 || number > 65535 || colon[1] == '-') {
        RW_FAIL(error, INVALID_ARGUMENT, "", "no port in \"%s\"", text);
    }
    size_t size = (size_t)(colon - text);
    if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    memcpy(host, text, size);
    host[size] = '\0';
    *port = (int)number;
    return RW_STATUS_OK;
}

bool rw_config_is_loopback(const char* host) {
    if (strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) {
        return true;
    }
    int a, b, c, d;
    char rest;
    return sscanf(host, "%d.%d.%d.%d%c", &a, &b, &c, &d, &rest) == 4 && a == 127 && b >= 0 &&
           b < 256 && c >= 0 && c < 256 && d >= 0 && d < 256;
}

bool rw_config_token_matches(const rw_config* config, const char* given) {
    // Compares the whole buffers: neither the place of the first difference nor the length of the
    // token shows in the time taken.
    char padded[RW_CONFIG_TEXT_CAPACITY] = "";
    size_t size = strlen(given);
    memcpy(padded, given, size < sizeof padded ? size : sizeof padded - 1);
    unsigned difference = size < sizeof padded ? 0 : 1;
    for (size_t i = 0; i < sizeof padded; i++) {
        const volatile char* token = config->token;
        difference |= (unsigned char)(token[i] ^ padded[i]);
    }
    return difference == 0;
}
