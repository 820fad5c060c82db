#include "solvers/base/glob.h"

bool rw_glob_matches(const char* glob, size_t size, const char* text, char separator) {
    const char* end = glob + size;
    // The last star, and the text behind what it stands for so far. Only the last one is ever tried
    // again: what an earlier one took can't help. So the time is at most size x length.
    const char* star = NULL;
    const char* mark = NULL;
    while (*text != '\0') {
        if (glob < end && *glob == '*') {
            star = glob++;
            mark = text;
        } else if (glob < end && *glob == *text) {
            glob++;
            text++;
        } else if (star != NULL && (separator == '\0' || *mark != separator)) {
            glob = star + 1;
            text = ++mark;
        } else {
            return false;
        }
    }
    while (glob < end && *glob == '*') {
        glob++;
    }
    return glob == end;
}
