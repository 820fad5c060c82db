// One session of a daemon, with plain C arguments for the common commands. What is not here goes
// through rw_link_call with the session's id. Blocking; the link's thread.
#pragma once

#include "clients/c/link.h"
#include "solvers/base/buffer.h"

// A session as this client sees it. Copy it freely; it owns nothing.
typedef struct rw_remote {
    rw_link* link;
    uint64_t session; // id, for rw_pb_Request.session
    uint64_t step;    // after the last command that told it
    double time;      // simulated [s], likewise
} rw_remote;

// ---- Life ----

// Opens a session (NULL or "": the server names it) and controls it. It ends with its last client.
rw_status rw_remote_create(rw_link* link, const char* name, rw_remote* remote, rw_error* error);

// Joins a session by name, to watch or (`is_control`) to steer it as well.
rw_status rw_remote_attach(rw_link* link, const char* name, bool is_control, rw_remote* remote,
                           rw_error* error);

// Ends the session for everyone, or leaves it.
rw_status rw_remote_close(rw_remote* remote, rw_error* error);
rw_status rw_remote_detach(rw_remote* remote, rw_error* error);

// Sends a request in this session and waits; as rw_link_call, and keeps step and time.
rw_status rw_remote_call(rw_remote* remote, rw_pb_Request* request, const rw_pb_Response** response,
                         rw_error* error);

// ---- World and time ----

// Loads a scene: as a message, or as the bytes of one (a file that a tool wrote).
rw_status rw_remote_load_scene(rw_remote* remote, const rw_pb_Scene* scene, rw_error* error);
rw_status rw_remote_load(rw_remote* remote, const void* scene, size_t size, rw_error* error);

// Steps `count` times.
rw_status rw_remote_step(rw_remote* remote, uint32_t count, rw_error* error);

// Runs paced at `ratio` simulated seconds per second until paused.
rw_status rw_remote_run(rw_remote* remote, double ratio, rw_error* error);
rw_status rw_remote_pause(rw_remote* remote, rw_error* error);

// ---- Signals and inputs ----

// Prepares reading of the signals (names or globs). `*handle` serves rw_remote_advance, `*width` is
// the number of doubles of one row, in the order of the signals.
rw_status rw_remote_observe(rw_remote* remote, const char* const* signals, size_t signal_count,
                            uint64_t* handle, uint32_t* width, rw_error* error);

// Prepares writing of the targets; likewise.
rw_status rw_remote_actuate(rw_remote* remote, const char* const* targets, size_t target_count,
                            uint64_t* handle, uint32_t* width, rw_error* error);

// Sets inputs, steps, reads signals: one round trip. `inputs` is one row of the actuate handle (or
// `steps` rows); `outputs` takes one row of the observe handle, of the state after the last step.
// Handles of 0 and counts of 0 leave either side out. OUT_OF_RANGE when the answer has not
// `output_count` doubles.
rw_status rw_remote_advance(rw_remote* remote, uint64_t actuate, const double* inputs,
                            size_t input_count, uint32_t steps, uint64_t observe, double* outputs,
                            size_t output_count, rw_error* error);

// Reads signals once, without a handle, into `values` (capacity doubles); `*count` are there.
rw_status rw_remote_read(rw_remote* remote, const char* const* signals, size_t signal_count,
                         double* values, size_t capacity, size_t* count, rw_error* error);

// ---- Streams ----

typedef struct rw_remote_stream {
    const char* const* objects; // globs such as "rod/*"; none: all bodies and rods
    size_t object_count;
    double every_s;        // simulated seconds between frames; 0 = 1/60
    uint32_t node_stride;  // every so many rod nodes; 0 = 1
    bool is_quantized;     // within the bounds below; else every bit
    double position_bound; // [m]; 0 = 1e-5
    double rotation_bound; // [rad]; 0 = 1e-3
} rw_remote_stream;

typedef struct rw_watch rw_watch; // watch.h

// Asks for state frames, which `watch` (may be NULL) will decode; it is told their layout.
// `*subscription` ends them.
rw_status rw_remote_subscribe(rw_remote* remote, const rw_remote_stream* stream, rw_watch* watch,
                              uint64_t* subscription, rw_error* error);
rw_status rw_remote_unsubscribe(rw_remote* remote, uint64_t subscription, rw_error* error);

// ---- Snapshots ----

// Appends the session's whole state to `bytes`; puts such a state back.
rw_status rw_remote_snapshot(rw_remote* remote, rw_buffer* bytes, rw_error* error);
rw_status rw_remote_restore(rw_remote* remote, const void* bytes, size_t size, rw_error* error);
