#include "server/stream/selection.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire.h"
#include "solvers/base/check.h"
#include "solvers/base/glob.h"
#include "solvers/model/kinematics.h"

// One body or rod of the selection.
typedef struct entry {
    bool is_rod;
    int32_t object; // index of its kind
    rw_id id;
    char name[RW_NAME_CAPACITY];
    int32_t first, count;           // elements
    int32_t start_first, start_count; // its chains, in `starts`
} entry;

struct rw_selection {
    rw_alloc* alloc;
    rw_selection_request request; // borrowed globs
    entry* entries;
    int32_t entry_count;
    int32_t element_count;
    int32_t body_count; // elements that are bodies: the first ones
    int32_t* nodes;     // node of each rod element, within its rod (element_count)
    int32_t* starts;    // first element of each chain (chain_count), for the encoder
    int32_t chain_count;
    uint32_t* relative_starts; // the same relative to the entry, for the layout (chain_count)
    double* values[RW_SELECTION_MAX_FIELDS]; // (element_count x 3 or 4)
    rw_state_encoder_input inputs[RW_SELECTION_MAX_FIELDS];
};

// ---- Requests ----

static rw_status read_globs(const rw_wire_list* list, rw_buffer* globs, rw_error* error) {
    rw_wire_cursor cursor = rw_wire_begin(list);
    rw_wire_bytes text;
    while (rw_wire_next(&cursor, &text)) {
        if (rw_buffer_append(globs, text.data, text.size) != RW_STATUS_OK ||
            rw_buffer_append(globs, NULL, 1) != RW_STATUS_OK) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
        }
    }
    return RW_STATUS_OK;
}

static rw_status read_fields(const rw_pb_Subscribe* message, rw_selection_request* request,
                             rw_error* error) {
    if (message->fields_count == 0) {
        request->fields[0] = rw_pb_Stream_Field_POSITION;
        request->fields[1] = rw_pb_Stream_Field_ROTATION;
        request->field_count = 2;
        return RW_STATUS_OK;
    }
    for (int32_t i = 0; i < (int32_t)message->fields_count; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (message->fields[k] == message->fields[i]) {
                rw_status_fail(error, RW_STATUS_INVALID_ARGUMENT, "", "given twice");
                return rw_status_prefix(error, "fields[%d]", i);
            }
        }
        request->fields[i] = message->fields[i];
    }
    request->field_count = (int32_t)message->fields_count;
    return RW_STATUS_OK;
}

static rw_status read_rate(const rw_pb_Subscribe* message, rw_selection_request* request,
                           rw_error* error) {
    request->every_s = 1.0 / 60;
    if (message->which_rate == rw_pb_Subscribe_every_steps_tag) {
        request->every_steps = message->rate.every_steps;
        if (request->every_steps == 0) {
            RW_FAIL(error, INVALID_ARGUMENT, "every_steps", "must be >= 1");
        }
    } else if (message->which_rate == rw_pb_Subscribe_every_s_tag) {
        request->every_s = message->rate.every_s;
        if (!(request->every_s > 0 && isfinite(request->every_s))) {
            RW_FAIL(error, INVALID_ARGUMENT, "every_s", "must be > 0, got %g", request->every_s);
        }
    }
    return RW_STATUS_OK;
}

static rw_status read_bound(bool is_given, double given, double fallback, const char* path,
                            double* bound, rw_error* error) {
    *bound = is_given ? given : fallback;
    if (!(*bound > 0 && isfinite(*bound))) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must be > 0, got %g", *bound);
    }
    return RW_STATUS_OK;
}

static rw_status read_parts(const rw_pb_Subscribe* message, rw_selection_request* request,
                            rw_error* error) {
    RW_TRY(read_globs(&message->objects, &request->globs, error));
    RW_TRY(read_fields(message, request, error));
    RW_TRY(read_rate(message, request, error));
    if (message->mode == rw_pb_Stream_Mode_QUANTIZED) {
        RW_TRY(read_bound(message->has_position_bound, message->position_bound, 1e-5,
                          "position_bound", &request->position_bound, error));
        RW_TRY(read_bound(message->has_rotation_bound, message->rotation_bound, 1e-3,
                          "rotation_bound", &request->rotation_bound, error));
    }
    uint32_t interval = message->has_key_interval ? message->key_interval : 240;
    if (interval < 1 || interval > 10000) {
        RW_FAIL(error, OUT_OF_RANGE, "key_interval", "must be in [1, 10000], got %u", interval);
    }
    request->key_interval = (int32_t)interval;
    return RW_STATUS_OK;
}

rw_status rw_selection_read_request(const rw_pb_Subscribe* message, rw_alloc* alloc,
                                    rw_selection_request* request, rw_error* error) {
    memset(request, 0, sizeof *request);
    rw_buffer_init(&request->globs, alloc);
    request->glob_count = message->objects.count;
    request->node_stride = message->node_stride > 0 ? message->node_stride : 1;
    request->mode = message->mode;
    rw_status status = read_parts(message, request, error);
    if (status != RW_STATUS_OK) {
        rw_selection_finish_request(request);
    }
    return status;
}

void rw_selection_finish_request(rw_selection_request* request) {
    rw_buffer_finish(&request->globs);
}

bool rw_selection_equals(const rw_selection_request* a, const rw_selection_request* b) {
    return a->globs.size_bytes == b->globs.size_bytes &&
           (a->globs.size_bytes == 0 ||
            memcmp(a->globs.data, b->globs.data, a->globs.size_bytes) == 0) &&
           a->field_count == b->field_count &&
           memcmp(a->fields, b->fields, sizeof a->fields) == 0 &&
           a->node_stride == b->node_stride && a->every_steps == b->every_steps &&
           a->every_s == b->every_s && a->mode == b->mode &&
           a->position_bound == b->position_bound && a->rotation_bound == b->rotation_bound &&
           a->key_interval == b->key_interval;
}

int64_t rw_selection_period(const rw_selection_request* request, double time_step) {
    if (request->every_steps > 0) {
        return request->every_steps;
    }
    double steps = floor(request->every_s / time_step + 0.5);
    return steps < 1 ? 1 : steps > 9e15 ? (int64_t)9e15 : (int64_t)steps;
}

// ---- Which objects ----

// Whether one of the globs names the object; notes which did.
static bool is_asked(const rw_selection_request* request, const char* name, bool* used) {
    bool asked = request->glob_count == 0;
    const char* glob = (const char*)request->globs.data;
    for (uint32_t i = 0; i < request->glob_count; i++, glob += strlen(glob) + 1) {
        if (rw_glob_matches(glob, strlen(glob), name, '/')) {
            used[i] = asked = true;
        }
    }
    return asked;
}

static rw_status check_used(const rw_selection_request* request, const bool* used,
                            rw_error* error) {
    const char* glob = (const char*)request->globs.data;
    for (uint32_t i = 0; i < request->glob_count; i++, glob += strlen(glob) + 1) {
        if (!used[i]) {
            rw_status_fail(error, RW_STATUS_NOT_FOUND, "", "no body or rod matches \"%s\"", glob);
            return rw_status_prefix(error, "objects[%u]", i);
        }
    }
    return RW_STATUS_OK;
}

// ---- Chains: runs of nodes of which each is joined to the next ----

// Marks the nodes of a graph rod that a segment joins to the node before.
static void mark_joined(const rw_rod* rod, bool* joined) {
    rw_uints segments = rod->desc.graph.segments;
    for (size_t i = 0; i + 1 < segments.count; i += 2) {
        uint32_t tail = segments.data[i], head = segments.data[i + 1];
        if (tail + 1 == head) {
            joined[head] = true;
        } else if (head + 1 == tail) {
            joined[tail] = true;
        }
    }
}

// Elements of one chain of `count` nodes: every `stride`-th and the last.
static int32_t chain_elements(int32_t count, int32_t stride) {
    return count <= 1 ? count : (count - 2) / stride + 2;
}

// The end of the chain that begins at a node: a run of nodes of which each is joined to the next. A
// rod without `joined` is one chain.
static int32_t chain_end(const rw_rod* rod, const bool* joined, int32_t begin) {
    int32_t end = begin + 1;
    while (end < rod->node_count && (joined == NULL || joined[end])) {
        end++;
    }
    return end;
}

// Adds the elements of one chain of nodes; `counting` only counts them.
static void add_chain(rw_selection* selection, const entry* one, int32_t begin, int32_t end,
                      int32_t stride, bool counting) {
    int32_t elements = chain_elements(end - begin, stride);
    if (!counting) {
        int32_t at = selection->element_count;
        selection->starts[selection->chain_count] = at;
        selection->relative_starts[selection->chain_count] = (uint32_t)(at - one->first);
        for (int32_t i = 0; i < elements; i++) {
            bool is_last = i == elements - 1;
            selection->nodes[at + i] = is_last ? end - 1 : begin + i * stride;
        }
    }
    selection->chain_count++;
    selection->element_count += elements;
}

// Whether the chains of a graph are so short that their ends alone are more than the stride asks
// for: a tree whose nodes are numbered across its branches.
static bool is_scattered(const rw_rod* rod, const bool* joined, int32_t stride) {
    int64_t elements = 0;
    for (int32_t begin = 0; begin < rod->node_count;) {
        int32_t end = chain_end(rod, joined, begin);
        elements += chain_elements(end - begin, stride);
        begin = end;
    }
    return elements > 2 * (int64_t)chain_elements(rod->node_count, stride);
}

// Adds a rod's elements.
static void add_rod(rw_selection* selection, entry* one, const rw_rod* rod, const bool* joined,
                    bool counting) {
    int32_t stride = selection->request.node_stride > INT32_MAX
                         ? INT32_MAX
                         : (int32_t)selection->request.node_stride;
    one->first = selection->element_count;
    one->start_first = selection->chain_count;
    if (is_scattered(rod, joined, stride)) { // every so many of all nodes, none a neighbour
        for (int32_t i = 0; i < chain_elements(rod->node_count, stride); i++) {
            int32_t node = i <= (rod->node_count - 2) / stride ? i * stride : rod->node_count - 1;
            add_chain(selection, one, node, node + 1, 1, counting);
        }
    } else {
        for (int32_t begin = 0; begin < rod->node_count;) {
            int32_t end = chain_end(rod, joined, begin);
            add_chain(selection, one, begin, end, stride, counting);
            begin = end;
        }
    }
    one->count = selection->element_count - one->first;
    one->start_count = selection->chain_count - one->start_first;
}

// Walks all objects; the first time it counts, the second time it fills.
static rw_status walk(rw_selection* selection, const rw_world* world, bool* used, bool counting,
                      rw_error* error) {
    const rw_model* model = rw_world_model(world);
    char name[2 * RW_NAME_CAPACITY];
    selection->entry_count = selection->element_count = selection->chain_count = 0;
    for (int32_t i = 0; i < model->bodies.count; i++) {
        const rw_body* body = &model->bodies.items[i];
        snprintf(name, sizeof name, "body/%s", body->desc.name);
        if (!is_asked(&selection->request, name, used)) {
            continue;
        }
        if (!counting) {
            entry* one = &selection->entries[selection->entry_count];
            *one = (entry){.object = i,
                           .id = body->id,
                           .first = selection->element_count,
                           .count = 1,
                           .start_first = selection->chain_count,
                           .start_count = 1};
            memcpy(one->name, body->desc.name, sizeof one->name);
            selection->starts[selection->chain_count] = selection->element_count;
        }
        selection->entry_count++;
        selection->chain_count++;
        selection->element_count++;
    }
    selection->body_count = selection->element_count;
    for (int32_t i = 0; i < model->rods.count; i++) {
        const rw_rod* rod = &model->rods.items[i];
        snprintf(name, sizeof name, "rod/%s", rod->desc.name);
        if (!is_asked(&selection->request, name, used)) {
            continue;
        }
        bool* joined = NULL;
        if (rod->desc.geometry == RW_ROD_GRAPH) {
            joined = rw_alloc_get(selection->alloc, (size_t)rod->node_count + 1);
            if (joined == NULL) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
            }
            mark_joined(rod, joined);
        }
        entry unused = {0};
        entry* one = counting ? &unused : &selection->entries[selection->entry_count];
        *one = (entry){.is_rod = true, .object = i, .id = rod->id};
        memcpy(one->name, rod->desc.name, sizeof one->name);
        add_rod(selection, one, rod, joined, counting);
        rw_alloc_free(selection->alloc, joined);
        selection->entry_count++;
    }
    return RW_STATUS_OK;
}

static rw_status allocate(rw_selection* selection, rw_error* error) {
    rw_alloc* alloc = selection->alloc;
    size_t elements = (size_t)selection->element_count + 1;
    size_t chains = (size_t)selection->chain_count + 1;
    selection->entries =
        rw_alloc_array(alloc, (size_t)selection->entry_count + 1, sizeof(entry));
    selection->nodes = rw_alloc_array(alloc, elements, sizeof(int32_t));
    selection->starts = rw_alloc_array(alloc, chains, sizeof(int32_t));
    selection->relative_starts = rw_alloc_array(alloc, chains, sizeof(uint32_t));
    bool fits = selection->entries != NULL && selection->nodes != NULL &&
                selection->starts != NULL && selection->relative_starts != NULL;
    for (int32_t i = 0; i < selection->request.field_count; i++) {
        int32_t width = rw_state_codec_components((rw_state_codec_field)selection->request.fields[i]);
        selection->values[i] = rw_alloc_array(alloc, elements, (size_t)width * sizeof(double));
        fits = fits && selection->values[i] != NULL;
        selection->inputs[i].data = selection->values[i];
    }
    if (!fits) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    return RW_STATUS_OK;
}

static rw_status resolve(rw_selection* selection, const rw_world* world, bool* used,
                         rw_error* error) {
    RW_TRY(walk(selection, world, used, true, error));
    RW_TRY(check_used(&selection->request, used, error));
    if (selection->element_count == 0) {
        RW_FAIL(error, NOT_FOUND, "objects", "the session has no bodies and no rods");
    }
    RW_TRY(allocate(selection, error));
    return walk(selection, world, used, false, error);
}

rw_status rw_selection_create(const rw_selection_request* request, const rw_world* world,
                              rw_alloc* alloc, rw_selection** out, rw_error* error) {
    *out = NULL;
    rw_selection* selection = rw_alloc_get(alloc, sizeof *selection);
    bool* used = rw_alloc_get(alloc, (size_t)request->glob_count + 1);
    rw_status status;
    if (selection == NULL || used == NULL) {
        status = rw_status_fail(error, RW_STATUS_RESOURCE_EXHAUSTED, "",
                                "the session's memory is exhausted");
        rw_alloc_free(alloc, selection);
        selection = NULL;
    } else {
        selection->alloc = alloc;
        selection->request = *request;
        status = resolve(selection, world, used, error);
    }
    rw_alloc_free(alloc, used);
    if (status != RW_STATUS_OK) {
        rw_selection_destroy(selection);
        return status;
    }
    *out = selection;
    return RW_STATUS_OK;
}

void rw_selection_destroy(rw_selection* selection) {
    if (selection == NULL) {
        return;
    }
    rw_alloc* alloc = selection->alloc;
    rw_alloc_free(alloc, selection->entries);
    rw_alloc_free(alloc, selection->nodes);
    rw_alloc_free(alloc, selection->starts);
    rw_alloc_free(alloc, selection->relative_starts);
    for (int32_t i = 0; i < RW_SELECTION_MAX_FIELDS; i++) {
        rw_alloc_free(alloc, selection->values[i]);
    }
    rw_alloc_free(alloc, selection);
}

// ---- Encoding ----

rw_status rw_selection_make_encoder(const rw_selection* selection, rw_alloc* alloc,
                                    rw_state_encoder** encoder, rw_error* error) {
    const rw_selection_request* request = &selection->request;
    rw_state_encoder_track tracks[RW_SELECTION_MAX_FIELDS];
    bool has_rods = selection->element_count > selection->body_count;
    for (int32_t i = 0; i < request->field_count; i++) {
        rw_state_codec_field field = (rw_state_codec_field)request->fields[i];
        tracks[i] = (rw_state_encoder_track){
            .field = field,
            .count = selection->element_count,
            .chain_count = has_rods ? selection->chain_count : 0,
            .chain_starts = selection->starts,
            .bound = rw_state_codec_field_bound(field, request->position_bound,
                                                request->rotation_bound)};
    }
    rw_state_encoder_options options = {
        .mode = request->mode == rw_pb_Stream_Mode_QUANTIZED ? RW_STATE_CODEC_QUANTIZED
                                                             : RW_STATE_CODEC_LOSSLESS,
        .key_interval = request->key_interval};
    return rw_state_encoder_create(tracks, request->field_count, &options, alloc, encoder, error);
}

const rw_state_encoder_input* rw_selection_inputs(const rw_selection* selection) {
    return selection->inputs;
}

static void gather_body(const rw_world* world, int32_t body, rw_pb_Stream_Field field,
                        double* out) {
    static const double ORIGIN[3];
    const rw_model* model = rw_world_model(world);
    const rw_state* state = rw_world_state(world);
    switch (field) {
    case rw_pb_Stream_Field_POSITION:
        rw_kinematics_point(model, state, body, ORIGIN, out);
        break;
    case rw_pb_Stream_Field_ROTATION:
        memcpy(out, &state->body_rotation[4 * body], 4 * sizeof(double));
        break;
    case rw_pb_Stream_Field_LINEAR_VELOCITY:
        rw_kinematics_point_velocity(model, state, body, ORIGIN, out);
        break;
    case rw_pb_Stream_Field_ANGULAR_VELOCITY:
        memcpy(out, &state->body_angular_velocity[3 * body], 3 * sizeof(double));
        break;
    }
}

static void gather_rod(const rw_selection* selection, const rw_world* world, const entry* one,
                       rw_pb_Stream_Field field, double* out) {
    const rw_rod* rod = &rw_world_model(world)->rods.items[one->object];
    const rw_state* state = rw_world_state(world);
    const double* rows = field == rw_pb_Stream_Field_POSITION ? state->node_position
                                                              : state->node_velocity;
    for (int32_t i = 0; i < one->count; i++) {
        int32_t node = selection->nodes[one->first + i];
        if (field == rw_pb_Stream_Field_ROTATION) {
            rw_world_node_rotation(world, one->object, node, out + 4 * i);
        } else if (field != rw_pb_Stream_Field_ANGULAR_VELOCITY) {
            memcpy(out + 3 * i, rows + 3 * (int64_t)(rod->node_first + node), 3 * sizeof(double));
        } else if (rod->frame_count == rod->node_count) {
            memcpy(out + 3 * i,
                   &state->frame_angular_velocity[3 * (int64_t)(rod->frame_first + node)],
                   3 * sizeof(double));
        } else { // frames of segments have no spin of their own (scr)
            memset(out + 3 * i, 0, 3 * sizeof(double));
        }
    }
}

void rw_selection_gather(rw_selection* selection, const rw_world* world) {
    for (int32_t k = 0; k < selection->request.field_count; k++) {
        rw_pb_Stream_Field field = selection->request.fields[k];
        int32_t width = rw_state_codec_components((rw_state_codec_field)field);
        for (int32_t i = 0; i < selection->entry_count; i++) {
            const entry* one = &selection->entries[i];
            double* out = selection->values[k] + (int64_t)one->first * width;
            if (one->is_rod) {
                gather_rod(selection, world, one, field, out);
            } else {
                gather_body(world, one->object, field, out);
            }
        }
    }
}

// ---- The layout table ----

static bool fill_entry(void* context, uint32_t index, void* item) {
    const rw_selection* selection = context;
    const entry* one = &selection->entries[index];
    rw_pb_Layout_Entry* out = item;
    out->kind = one->is_rod ? rw_pb_ObjectRef_Kind_ROD : rw_pb_ObjectRef_Kind_BODY;
    memcpy(out->name, one->name, sizeof one->name);
    out->id = one->id;
    out->first = (uint32_t)one->first;
    out->count = (uint32_t)one->count;
    out->stride = one->is_rod ? selection->request.node_stride : 1;
    if (one->is_rod && one->start_count > 1) {
        out->starts = rw_wire_from_u32(selection->relative_starts + one->start_first,
                                       (size_t)one->start_count);
    }
    return true;
}

void rw_selection_fill_layout(rw_selection* selection, rw_pb_Layout* layout) {
    const rw_selection_request* request = &selection->request;
    memset(layout, 0, sizeof *layout);
    layout->entries = rw_wire_from_fill(fill_entry, selection, sizeof(rw_pb_Layout_Entry),
                                        (size_t)selection->entry_count);
    layout->fields_count = (pb_size_t)request->field_count;
    memcpy(layout->fields, request->fields, (size_t)request->field_count * sizeof *layout->fields);
    layout->mode = request->mode;
    layout->position_bound = request->position_bound;
    layout->rotation_bound = request->rotation_bound;
    layout->elements = (uint32_t)selection->element_count;
}
