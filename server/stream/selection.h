// What a stream shows: the bodies and rods that a Subscribe names, resolved against a world, and
// their numbers gathered for the encoder. Belongs to the session's actor: the thread that runs it.
//
// Elements are the selected bodies in creation order, then the streamed nodes of the selected rods.
// Bounds of velocities in QUANTIZED mode follow those of positions and rotations (state_codec.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ropewalk/v1/stream.pb.h"
#include "proto/state_encoder.h"
#include "solvers/world/world.h"

enum { RW_SELECTION_MAX_FIELDS = 4 };

// A Subscribe as it defines a group.
typedef struct rw_selection_request {
    rw_buffer globs; // NUL-terminated, one after the other; empty = everything
    uint32_t glob_count;
    rw_pb_Stream_Field fields[RW_SELECTION_MAX_FIELDS];
    int32_t field_count;
    uint32_t node_stride;
    uint32_t every_steps; // 0: every_s
    double every_s;
    rw_pb_Stream_Mode mode;
    double position_bound, rotation_bound;
    int32_t key_interval;
} rw_selection_request;

typedef struct rw_selection rw_selection;

// Reads and checks a Subscribe, with its defaults. Errors carry the field's path.
rw_status rw_selection_read_request(const rw_pb_Subscribe* message, rw_alloc* alloc,
                                    rw_selection_request* request, rw_error* error);
void rw_selection_finish_request(rw_selection_request* request);
bool rw_selection_equals(const rw_selection_request* a, const rw_selection_request* b);

// Steps between frames.
int64_t rw_selection_period(const rw_selection_request* request, double time_step);

// Resolves the request against the world. NOT_FOUND names `objects[i]` when a glob matches nothing.
rw_status rw_selection_create(const rw_selection_request* request, const rw_world* world,
                              rw_alloc* alloc, rw_selection** selection, rw_error* error);
void rw_selection_destroy(rw_selection* selection);

rw_status rw_selection_make_encoder(const rw_selection* selection, rw_alloc* alloc,
                                    rw_state_encoder** encoder, rw_error* error);

// Copies the present numbers; rw_selection_inputs then tells where they lie.
void rw_selection_gather(rw_selection* selection, const rw_world* world);
const rw_state_encoder_input* rw_selection_inputs(const rw_selection* selection);

// Fills the layout table; its lists lie in the selection.
void rw_selection_fill_layout(rw_selection* selection, rw_pb_Layout* layout);
