// Globs: `*` stands for any run of characters, also none. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// True when the first `size` bytes of `glob` match the whole of `text`. With a `separator` other than
// NUL, `*` does not go over it: "body/*" matches "body/a", not "body/a/b".
bool rw_glob_matches(const char* glob, size_t size, const char* text, char separator);
