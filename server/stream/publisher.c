#include "server/stream/publisher.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/message.h"
#include "proto/state_encoder.h"
#include "server/session/host.h"
#include "server/stream/selection.h"
#include "server/stream/subscribers.h"
#include "solvers/base/check.h"

enum { KEEP_BYTES = 4 << 20 }; // of each buffer of a thread, when a stream ends

typedef struct group {
    struct group* next;
    uint64_t id;
    int32_t readers;
    bool is_pending; // a newcomer waits for a key frame
    bool is_stale;   // a new epoch began: selection and encoder are those of the last one
    bool sends_layout; // with the next frame: a new epoch began
    rw_selection_request request; // what was asked for; owned
    rw_selection* selection;      // NULL: the epoch has nothing to show, or no memory
    rw_state_encoder* encoder;
} group;

struct rw_publisher {
    rw_session* session;
    group* groups;
    int32_t group_count;
    uint64_t next_group;
};

// ---- What a thread keeps ----

typedef struct scratch {
    rw_state_codec_workspace workspace;
    rw_buffer message;
    rw_alloc* alloc;
} scratch;

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void free_scratch(void* value) {
    scratch* own = value;
    rw_state_codec_finish_workspace(&own->workspace);
    rw_buffer_finish(&own->message);
    rw_alloc_free(own->alloc, own);
}

static void make_key(void) { pthread_key_create(&scratch_key, free_scratch); }

static scratch* thread_scratch(rw_alloc* alloc) {
    pthread_once(&scratch_once, make_key);
    scratch* own = pthread_getspecific(scratch_key);
    if (own == NULL && (own = rw_alloc_get(alloc, sizeof *own)) != NULL) {
        own->alloc = alloc;
        rw_state_codec_init_workspace(&own->workspace, alloc);
        rw_buffer_init(&own->message, alloc);
        pthread_setspecific(scratch_key, own);
    }
    return own;
}

// After a large stream the thread should not keep its memory for ever.
static void trim_scratch(void) {
    pthread_once(&scratch_once, make_key);
    scratch* own = pthread_getspecific(scratch_key);
    if (own != NULL) {
        rw_state_codec_trim_workspace(&own->workspace, KEEP_BYTES);
        if (own->message.capacity_bytes > KEEP_BYTES) {
            rw_buffer_finish(&own->message);
        }
    }
}

void rw_publisher_finish_thread(void) {
    pthread_once(&scratch_once, make_key);
    scratch* own = pthread_getspecific(scratch_key);
    if (own != NULL) {
        pthread_setspecific(scratch_key, NULL);
        free_scratch(own);
    }
}

// ---- Groups ----

rw_publisher* rw_publisher_create(rw_session* session) {
    rw_publisher* publisher = rw_alloc_get(&session->alloc, sizeof *publisher);
    if (publisher != NULL) {
        publisher->session = session;
        publisher->next_group = 1;
    }
    return publisher;
}

static void forget_selection(rw_publisher* publisher, group* one) {
    rw_state_encoder_destroy(one->encoder);
    one->encoder = NULL;
    rw_selection_destroy(one->selection);
    one->selection = NULL;
    (void)publisher;
}

static void free_group(rw_publisher* publisher, group* one) {
    forget_selection(publisher, one);
    rw_selection_finish_request(&one->request);
    rw_alloc_free(&publisher->session->alloc, one);
}

void rw_publisher_destroy(rw_publisher* publisher) {
    if (publisher == NULL) {
        return;
    }
    while (publisher->groups != NULL) {
        group* one = publisher->groups;
        publisher->groups = one->next;
        free_group(publisher, one);
    }
    rw_alloc_free(&publisher->session->alloc, publisher);
}

int32_t rw_publisher_group_count(const rw_publisher* publisher) { return publisher->group_count; }

// Looks at the world as it is now: selection and encoder. On failure the group has neither, and is not
// looked at again before the next epoch.
static rw_status look(rw_publisher* publisher, group* one, rw_error* error) {
    rw_session* session = publisher->session;
    forget_selection(publisher, one);
    one->is_stale = false;
    RW_TRY(rw_selection_create(&one->request, session->world, &session->alloc, &one->selection,
                               error));
    rw_status status = rw_selection_make_encoder(one->selection, &session->alloc, &one->encoder,
                                                 error);
    if (status != RW_STATUS_OK) {
        forget_selection(publisher, one);
    }
    return status;
}

static group* find_like(rw_publisher* publisher, const rw_selection_request* request) {
    for (group* one = publisher->groups; one != NULL; one = one->next) {
        if (rw_selection_equals(&one->request, request)) {
            return one;
        }
    }
    return NULL;
}

// Makes a group; takes the request over, also on failure.
static rw_status add_group(rw_publisher* publisher, rw_selection_request* request, group** out,
                           rw_error* error) {
    group* one = rw_alloc_get(&publisher->session->alloc, sizeof *one);
    if (one == NULL) {
        rw_selection_finish_request(request);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    one->request = *request;
    rw_status status = look(publisher, one, error);
    if (status != RW_STATUS_OK) {
        free_group(publisher, one);
        return status;
    }
    one->id = publisher->next_group++;
    one->next = publisher->groups;
    publisher->groups = one;
    publisher->group_count++;
    *out = one;
    return RW_STATUS_OK;
}

rw_status rw_publisher_subscribe(rw_publisher* publisher, const rw_pb_Subscribe* message,
                                 uint64_t subscription, rw_pb_SubscribeResult* result,
                                 rw_error* error) {
    rw_session* session = publisher->session;
    rw_selection_request request;
    RW_TRY(rw_selection_read_request(message, &session->alloc, &request, error));
    group* one = find_like(publisher, &request);
    rw_error stale;
    if (one != NULL && one->is_stale) {
        (void)look(publisher, one, &stale); // what this request gets is looked for below
    }
    if (one != NULL && one->selection != NULL) {
        rw_selection_finish_request(&request);
    } else {
        RW_TRY(add_group(publisher, &request, &one, error));
    }
    one->readers++;
    one->is_pending = true;
    result->subscription = subscription;
    result->group = one->id;
    result->has_layout = true;
    rw_selection_fill_layout(one->selection, &result->layout);
    result->epoch = rw_world_epoch(session->world);
    double time_step = rw_world_model(session->world)->time_step;
    result->period = time_step * (double)rw_selection_period(&one->request, time_step);
    return RW_STATUS_OK;
}

void rw_publisher_leave(rw_publisher* publisher, uint64_t id) {
    for (group** link = &publisher->groups; *link != NULL; link = &(*link)->next) {
        group* one = *link;
        if (one->id == id && --one->readers == 0) {
            *link = one->next;
            publisher->group_count--;
            free_group(publisher, one);
            trim_scratch();
            return;
        }
    }
}

// ---- Frames ----

static void deliver(rw_note* note) { rw_subscribers_deliver((rw_stream_frame*)note); }

void rw_publisher_drop_frame(rw_stream_frame* frame) {
    if (--frame->refs == 0) {
        rw_alloc_free(frame->alloc, frame);
    }
}

// Packs encoded bytes into a message, that into a frame, and sends it off.
static rw_status send(rw_publisher* publisher, group* one, scratch* own,
                      const rw_state_encoder_frame* encoded) {
    rw_session* session = publisher->session;
    rw_pb_StateFrame message;
    memset(&message, 0, sizeof message);
    message.group = one->id;
    message.session = session->id;
    message.epoch = rw_world_epoch(session->world);
    message.step = (uint64_t)rw_world_step_count(session->world);
    message.time = rw_world_time(session->world);
    message.sequence = encoded->sequence;
    message.key_sequence = encoded->key_sequence;
    message.payload = (rw_wire_bytes){encoded->data, encoded->size_bytes};
    if (one->sends_layout) {
        message.has_layout = true;
        rw_selection_fill_layout(one->selection, &message.layout);
    }
    own->message.size_bytes = 0;
    RW_TRY(rw_buffer_append(&own->message, NULL, RW_FRAME_HEADER_BYTES));
    RW_TRY(rw_message_append_state(&own->message, &message));
    RW_TRY(rw_frame_close(&own->message, 0, RW_FRAME_STATE, NULL, 0));

    rw_alloc* alloc = &session->host->alloc;
    rw_stream_frame* frame = rw_alloc_get(alloc, sizeof *frame + own->message.size_bytes);
    if (frame == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    frame->note.deliver = deliver;
    frame->session = session;
    frame->group = one->id;
    frame->is_key = encoded->is_key;
    frame->sequence = encoded->sequence;
    frame->alloc = alloc;
    frame->size_bytes = own->message.size_bytes;
    memcpy(frame->bytes, own->message.data, own->message.size_bytes);
    rw_metrics_add(&session->host->metrics, RW_METRICS_frames_encoded_total, 1);
    rw_host_post(session->host, &frame->note);
    one->sends_layout = false;
    return RW_STATUS_OK;
}

// Encodes one frame of the present state. Without memory the frame is lost and the next is a key.
static void publish(rw_publisher* publisher, group* one, bool key) {
    rw_session* session = publisher->session;
    rw_error error;
    if ((one->is_stale && look(publisher, one, &error) != RW_STATUS_OK) || one->selection == NULL) {
        one->is_pending = false; // nothing of what was asked for is left, or no memory
        return;
    }
    scratch* own = thread_scratch(&session->host->alloc);
    if (own == NULL) {
        one->is_pending = true;
        return;
    }
    rw_state_encoder_stamp stamp = {.epoch = (uint32_t)rw_world_epoch(session->world),
                                    .step = (uint64_t)rw_world_step_count(session->world),
                                    .time = rw_world_time(session->world),
                                    .key = key || one->is_pending};
    rw_state_encoder_frame encoded;
    rw_selection_gather(one->selection, session->world);
    one->is_pending =
        rw_state_encoder_encode(one->encoder, &own->workspace, &stamp,
                                rw_selection_inputs(one->selection), &encoded,
                                &error) != RW_STATUS_OK ||
        send(publisher, one, own, &encoded) != RW_STATUS_OK;
}

void rw_publisher_send_pending(rw_publisher* publisher, bool has_more) {
    for (group* one = publisher->groups; one != NULL; one = one->next) {
        // While a scene is being built command by command, one frame at the end is enough.
        if (one->is_pending || (one->is_stale && !has_more)) {
            publish(publisher, one, true);
        }
    }
}

void rw_publisher_after_step(rw_publisher* publisher) {
    const rw_world* world = publisher->session->world;
    int64_t step = rw_world_step_count(world);
    double time_step = rw_world_model(world)->time_step;
    for (group* one = publisher->groups; one != NULL; one = one->next) {
        if (step % rw_selection_period(&one->request, time_step) == 0) {
            publish(publisher, one, false);
        }
    }
}

void rw_publisher_new_epoch(rw_publisher* publisher) {
    for (group* one = publisher->groups; one != NULL; one = one->next) {
        one->is_stale = true; // looked at when its next frame is due
        one->sends_layout = true;
    }
}
