// Structured logs on standard error: one event per line, as logfmt or JSON. Any thread; a line is
// written by one write(2), so lines of different threads do not mix.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum rw_log_level {
    RW_LOG_DEBUG,
    RW_LOG_INFO,
    RW_LOG_WARN,
    RW_LOG_ERROR,
} rw_log_level;

typedef enum rw_log_format { RW_LOG_LOGFMT, RW_LOG_JSON } rw_log_format;

typedef enum rw_log_type {
    RW_LOG_END,
    RW_LOG_TEXT,
    RW_LOG_NUMBER,
    RW_LOG_REAL,
} rw_log_type;

// One named value of an event.
typedef struct rw_log_field {
    const char* name;
    rw_log_type type;
    const char* text; // cut at 512 bytes
    int64_t number;
    double real;
} rw_log_field;

#define RW_LOG_FIELD_TEXT(name_, value) {.name = (name_), .type = RW_LOG_TEXT, .text = (value)}
#define RW_LOG_FIELD_NUMBER(name_, value)                                                          \
    {.name = (name_), .type = RW_LOG_NUMBER, .number = (int64_t)(value)}
#define RW_LOG_FIELD_REAL(name_, value) {.name = (name_), .type = RW_LOG_REAL, .real = (value)}

// RW_LOG(INFO, "session_created", RW_LOG_FIELD_TEXT("name", name), ...): at least one field.
#define RW_LOG(level, event, ...)                                                                  \
    do {                                                                                           \
        if (rw_log_is_on(RW_LOG_##level)) {                                                        \
            const rw_log_field rw_log_fields_[] = {__VA_ARGS__, {.type = RW_LOG_END}};             \
            rw_log_write(RW_LOG_##level, (event), rw_log_fields_);                                 \
        }                                                                                          \
    } while (0)

// Sets what is written; before the first thread starts. The default is INFO as logfmt.
void rw_log_set_up(rw_log_level level, rw_log_format format);

bool rw_log_is_on(rw_log_level level);

// Writes one event; `fields` ends with RW_LOG_END. Control characters and quotes are escaped, so
// that nothing a client sends can forge a line.
void rw_log_write(rw_log_level level, const char* event, const rw_log_field* fields);

// Writes the same into `out` (capacity bytes, NUL included) instead; returns the length. For tests.
int rw_log_print(char* out, int capacity, rw_log_format format, rw_log_level level,
                 const char* event, const rw_log_field* fields);
