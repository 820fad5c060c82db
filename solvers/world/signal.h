// Signals: everything observable by one name. Resolving a glob walks the table of readers once;
// reading is then a loop over readers without names. The thread that runs the world.
#pragma once

#include "solvers/world/world.h"

// One family of signals: `path` after the object's name, with I for a node or element index and S
// for a place along the rod.
typedef struct rw_signal_entry {
    const char* group; // "world", "body", "joint", "rod", "attachment"
    const char* path;  // "node/I/position"
    const char* unit;
    const char* frame;
    int32_t width; // 0: depends on the joint type
} rw_signal_entry;

// The table, for documentation and tests.
const rw_signal_entry* rw_signal_table(size_t* count);
