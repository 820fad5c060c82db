#include "server/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_CAPACITY = 4096, TEXT_LIMIT = 512 };

// Written once before threads start, read by all after.
static rw_log_level level_on = RW_LOG_INFO;
static rw_log_format format_on = RW_LOG_LOGFMT;

static const char* const LEVEL_NAMES[] = {"debug", "info", "warn", "error"};

typedef struct line {
    char* out;
    int size;
    int capacity;
} line;

static void put(line* to, const char* format, ...) __attribute__((format(printf, 2, 3)));

static void put(line* to, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int room = to->capacity - to->size;
    int count = vsnprintf(to->out + to->size, (size_t)room, format, arguments);
    va_end(arguments);
    to->size += count < room ? count : room - 1;
}

// Text in quotes with escapes that both formats share.
static void put_text(line* to, const char* text) {
    put(to, "\"");
    for (int i = 0; text[i] != '\0' && i < TEXT_LIMIT; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            put(to, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            put(to, "\\u%04x", c);
        } else {
            put(to, "%c", c);
        }
    }
    put(to, "\"");
}

static void put_field(line* to, rw_log_format format, const rw_log_field* field) {
    if (format == RW_LOG_JSON) {
        put(to, ",\"%s\":", field->name);
    } else {
        put(to, " %s=", field->name);
    }
    switch (field->type) {
    case RW_LOG_TEXT: put_text(to, field->text != NULL ? field->text : ""); break;
    case RW_LOG_NUMBER: put(to, "%lld", (long long)field->number); break;
    case RW_LOG_REAL: put(to, "%.6g", field->real); break;
    case RW_LOG_END: break;
    }
}

int rw_log_print(char* out, int capacity, rw_log_format format, rw_log_level level,
                 const char* event, const rw_log_field* fields) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm parts;
    gmtime_r(&now.tv_sec, &parts);
    char time_text[32];
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%S", &parts);

    line to = {.out = out, .capacity = capacity - 2}; // room for "}\n"
    int ms = (int)(now.tv_nsec / 1000000);
    if (format == RW_LOG_JSON) {
        put(&to, "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"event\":\"%s\"", time_text, ms,
            LEVEL_NAMES[level], event);
    } else {
        put(&to, "time=%s.%03dZ level=%s event=%s", time_text, ms, LEVEL_NAMES[level], event);
    }
    for (const rw_log_field* field = fields; field->type != RW_LOG_END; field++) {
        put_field(&to, format, field);
    }
    to.capacity += 2;
    put(&to, format == RW_LOG_JSON ? "}\n" : "\n");
    return to.size;
}

void rw_log_set_up(rw_log_level level, rw_log_format format) {
    level_on = level;
    format_on = format;
}

bool rw_log_is_on(rw_log_level level) { return level >= level_on; }

void rw_log_write(rw_log_level level, const char* event, const rw_log_field* fields) {
    if (!rw_log_is_on(level)) {
        return;
    }
    char text[LINE_CAPACITY];
    int size = rw_log_print(text, sizeof text, format_on, level, event, fields);
    // A full pipe or a closed terminal must not stop the daemon: what can't be written is lost.
    ssize_t written = write(STDERR_FILENO, text, (size_t)size);
    (void)written;
}
