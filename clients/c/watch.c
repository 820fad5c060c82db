#include "clients/c/watch.h"

#include <string.h>

#include "solvers/base/clock.h"

// One group of frames of one session: its own key frames, its own layout. Groups are counted by their
// session.
typedef struct stream {
    struct stream* next;
    uint64_t session;
    uint64_t group;
    rw_state_decoder* decoder;
    rw_watch_entry* entries;
    uint32_t entry_count;
} stream;

struct rw_watch {
    rw_link* link;
    rw_alloc* alloc;
    rw_state_codec_workspace workspace;
    stream* streams;
};

rw_status rw_watch_create(rw_link* link, rw_watch** result, rw_error* error) {
    rw_alloc* alloc = rw_link_memory(link);
    rw_watch* watch = rw_alloc_get(alloc, sizeof *watch);
    *result = watch;
    if (watch == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a watch");
    }
    *watch = (rw_watch){.link = link, .alloc = alloc};
    rw_state_codec_init_workspace(&watch->workspace, alloc);
    return RW_STATUS_OK;
}

void rw_watch_destroy(rw_watch* watch) {
    if (watch == NULL) {
        return;
    }
    while (watch->streams != NULL) {
        stream* one = watch->streams;
        watch->streams = one->next;
        rw_state_decoder_destroy(one->decoder);
        rw_alloc_free(watch->alloc, one->entries);
        rw_alloc_free(watch->alloc, one);
    }
    rw_state_codec_finish_workspace(&watch->workspace);
    rw_alloc_free(watch->alloc, watch);
}

static rw_status find_stream(rw_watch* watch, uint64_t session, uint64_t group, stream** found,
                             rw_error* error) {
    for (stream* one = watch->streams; one != NULL; one = one->next) {
        if (one->session == session && one->group == group) {
            *found = one;
            return RW_STATUS_OK;
        }
    }
    stream* one = rw_alloc_get(watch->alloc, sizeof *one);
    if (one == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a stream");
    }
    *one = (stream){.next = watch->streams, .session = session, .group = group};
    rw_status status = rw_state_decoder_create(0, watch->alloc, &one->decoder, error);
    if (status != RW_STATUS_OK) {
        rw_alloc_free(watch->alloc, one);
        return status;
    }
    watch->streams = one;
    *found = one;
    return RW_STATUS_OK;
}

static rw_status take_layout(rw_watch* watch, stream* one, const rw_pb_Layout* layout,
                             rw_error* error) {
    rw_watch_entry* entries =
        rw_alloc_array(watch->alloc, layout->entries.count, sizeof *entries);
    if (entries == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a layout");
    }
    rw_wire_cursor cursor = rw_wire_begin(&layout->entries);
    rw_pb_Layout_Entry entry;
    for (uint32_t i = 0; rw_wire_next_message(&cursor, rw_pb_Layout_Entry_fields, &entry, sizeof entry);
         i++) {
        entries[i] = (rw_watch_entry){.kind = entry.kind, .id = entry.id, .first = entry.first,
                                      .count = entry.count, .stride = entry.stride};
        memcpy(entries[i].name, entry.name, sizeof entries[i].name);
    }
    rw_alloc_free(watch->alloc, one->entries);
    one->entries = entries;
    one->entry_count = layout->entries.count;
    return RW_STATUS_OK;
}

rw_status rw_watch_expect(rw_watch* watch, uint64_t session, const rw_pb_SubscribeResult* result,
                          rw_error* error) {
    stream* one;
    RW_TRY(find_stream(watch, session, result->group, &one, error));
    return take_layout(watch, one, &result->layout, error);
}

rw_status rw_watch_decode(rw_watch* watch, const rw_pb_StateFrame* state, rw_watch_frame* frame,
                          rw_error* error) {
    stream* one;
    RW_TRY(find_stream(watch, state->session, state->group, &one, error));
    if (state->has_layout) {
        RW_TRY(take_layout(watch, one, &state->layout, error));
    }
    rw_state_decoder_frame decoded;
    RW_TRY(rw_state_decoder_decode(one->decoder, &watch->workspace, state->payload.data,
                                   state->payload.size, &decoded, error));
    *frame = (rw_watch_frame){.group = state->group,
                              .session = state->session,
                              .epoch = state->epoch,
                              .step = state->step,
                              .time = state->time,
                              .sequence = state->sequence,
                              .is_key = decoded.header.is_key,
                              .entries = one->entries,
                              .entry_count = one->entry_count,
                              .payload_bytes = state->payload.size};
    for (int32_t i = 0; i < decoded.header.track_count; i++) {
        const rw_state_decoder_track* track = &decoded.tracks[i];
        frame->element_count = (uint32_t)track->count;
        switch (track->field) {
        case RW_STATE_CODEC_POSITION: frame->positions = track->data; break;
        case RW_STATE_CODEC_ROTATION: frame->rotations = track->data; break;
        case RW_STATE_CODEC_LINEAR_VELOCITY: frame->linear_velocities = track->data; break;
        case RW_STATE_CODEC_ANGULAR_VELOCITY: frame->angular_velocities = track->data; break;
        case RW_STATE_CODEC_FIELD_COUNT: break;
        }
    }
    return RW_STATUS_OK;
}

// What an event means for somebody who only wants frames.
static rw_status heed_event(const rw_pb_Event* event, rw_error* error) {
    if (event->which_kind == rw_pb_Event_session_changed_tag) {
        const rw_pb_Event_SessionChanged* changed = &event->kind.session_changed;
        if (changed->state == rw_pb_SessionState_Kind_CLOSED) {
            RW_FAIL(error, CANCELLED, "", "the session was closed: %s", changed->reason);
        }
        if (changed->state == rw_pb_SessionState_Kind_FAULTED) {
            RW_FAIL(error, FAULTED, "", "%s in %s: %s", changed->fault.object, changed->fault.stage,
                    changed->fault.reason);
        }
    } else if (event->which_kind == rw_pb_Event_subscription_ended_tag) {
        RW_FAIL(error, CANCELLED, "", "the subscription ended: %s",
                event->kind.subscription_ended.reason);
    }
    return RW_STATUS_OK;
}

rw_status rw_watch_next(rw_watch* watch, double timeout_s, rw_watch_frame* frame, rw_error* error) {
    int64_t end = rw_clock_now_ns() + (int64_t)(timeout_s * 1e9);
    for (;;) {
        double left_s = timeout_s < 0 ? timeout_s : (double)(end - rw_clock_now_ns()) * 1e-9;
        rw_link_message message;
        RW_TRY(rw_link_receive(watch->link, timeout_s >= 0 && left_s < 0 ? 0 : left_s, &message,
                                 error));
        if (message.kind == RW_LINK_EVENT) {
            RW_TRY(heed_event(&message.as.event, error));
        } else if (message.kind == RW_LINK_STATE) {
            rw_status status = rw_watch_decode(watch, &message.as.state, frame, error);
            if (status != RW_STATUS_FAILED_PRECONDITION) {
                return status;
            }
        }
    }
}
