// The bytes, in this order:
//
//   magic, version
//   options                                    fields of desc_fields.h
//   per kind: layout (crc of the field table), object count, id slots, free list
//             per object: id, fields, what was resolved (and shapes of a body)
//   applied wrenches
//
// Reading adds objects through the model's own door, so hostile bytes meet the same checks as a
// client; then the ids are put back.
#include "solvers/model/scene_codec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/base/hash.h"
#include "solvers/model/desc_fields.h"
#include "solvers/model/validate.h"

#define MAGIC 0x4d445752u // "RWDM"
#define VERSION 1u
#define ID_SLOT_BITS 24
#define ARRAY_ALIGNMENT ((size_t)8)

static const char* const plural[RW_KIND_COUNT] = {"bodies",      "joints", "couplings", "rods",
                                                  "attachments", "forces", "inputs"};

// Changes whenever a field is added, renamed, moved in the table or given another type.
static uint32_t layout_of(rw_desc_fields list) {
    uint32_t crc = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        uint32_t type[2] = {(uint32_t)list.fields[i].type, list.fields[i].count};
        crc = rw_hash_crc32c(crc, list.fields[i].name, strlen(list.fields[i].name) + 1);
        crc = rw_hash_crc32c(crc, type, sizeof type);
    }
    return crc;
}

static uint32_t layout_of_kind(rw_kind kind) {
    uint32_t crc = layout_of(rw_desc_fields_of(kind));
    return kind == RW_KIND_BODY ? crc ^ layout_of(rw_desc_fields_of_shape()) : crc;
}

// The scene-wide values as the table of fields has them.
static void options_of(const rw_model* model, rw_scene* options) {
    memset(options, 0, sizeof *options);
    memcpy(options->name, model->name, sizeof options->name);
    memcpy(options->gravity, model->gravity, sizeof options->gravity);
    memcpy(options->wind, model->wind, sizeof options->wind);
    options->time_step = model->time_step;
    options->substeps = model->substeps;
    options->solver = model->solver;
}

// ---- Writing ----

#define WRITE(buffer, value) RW_TRY(rw_buffer_append((buffer), &(value), sizeof(value)))

// Where the model begins in the buffer: arrays are aligned to it.
typedef struct writer {
    rw_buffer* buffer;
    size_t start;
} writer;

static size_t padding_at(size_t offset) { return (ARRAY_ALIGNMENT - offset % ARRAY_ALIGNMENT) % ARRAY_ALIGNMENT; }

static rw_status write_array(writer* w, const void* data, size_t count, size_t item_bytes) {
    uint64_t count64 = count;
    WRITE(w->buffer, count64);
    if (count == 0) {
        return RW_STATUS_OK;
    }
    // Aligned, so that reading can look at it where it lies.
    RW_TRY(rw_buffer_append(w->buffer, NULL, padding_at(w->buffer->size_bytes - w->start)));
    return rw_buffer_append(w->buffer, data, count * item_bytes);
}

static rw_status write_field(writer* w, const rw_desc_field* field, const void* desc) {
    const char* at = (const char*)desc + field->offset;
    switch (field->type) {
    case RW_DESC_TEXT: {
        uint16_t length = (uint16_t)strnlen(at, field->count);
        WRITE(w->buffer, length);
        return rw_buffer_append(w->buffer, at, length);
    }
    case RW_DESC_BOOL: {
        uint8_t value = *(const bool*)at ? 1 : 0;
        WRITE(w->buffer, value);
        return RW_STATUS_OK;
    }
    case RW_DESC_ENUM:
    case RW_DESC_U32:
        return rw_buffer_append(w->buffer, at, sizeof(uint32_t));
    case RW_DESC_F64:
    case RW_DESC_ROTATION:
        return rw_buffer_append(w->buffer, at, field->count * sizeof(double));
    case RW_DESC_DOUBLES:
    case RW_DESC_ROTATIONS: {
        const rw_doubles* view = (const rw_doubles*)(const void*)at;
        return write_array(w, view->data, view->count, sizeof(double));
    }
    case RW_DESC_UINTS: {
        const rw_uints* view = (const rw_uints*)(const void*)at;
        return write_array(w, view->data, view->count, sizeof(uint32_t));
    }
    case RW_DESC_SIZE: {
        uint32_t value = (uint32_t) * (const size_t*)(const void*)at;
        WRITE(w->buffer, value);
        return RW_STATUS_OK;
    }
    }
    return RW_STATUS_OK;
}

static rw_status write_fields(writer* w, rw_desc_fields list, const void* desc) {
    for (uint32_t i = 0; i < list.count; i++) {
        RW_TRY(write_field(w, &list.fields[i], desc));
    }
    return RW_STATUS_OK;
}

static rw_status write_ids(rw_buffer* buffer, const rw_id_pool* pool) {
    WRITE(buffer, pool->slot_count);
    WRITE(buffer, pool->first_free);
    for (int32_t i = 0; i < pool->slot_count; i++) {
        WRITE(buffer, pool->slots[i].generation);
        WRITE(buffer, pool->slots[i].index);
        WRITE(buffer, pool->slots[i].next_free);
    }
    return RW_STATUS_OK;
}

// The description of an object and what the world resolved for it.
static const void* desc_of(const rw_model* model, rw_kind kind, int32_t i) {
    switch (kind) {
    case RW_KIND_BODY: return &model->bodies.items[i].desc;
    case RW_KIND_JOINT: return &model->joints.items[i].desc;
    case RW_KIND_COUPLING: return &model->couplings.items[i].desc;
    case RW_KIND_ROD: return &model->rods.items[i].desc;
    case RW_KIND_ATTACHMENT: return &model->attachments.items[i].desc;
    case RW_KIND_FORCE: return &model->forces.items[i].desc;
    case RW_KIND_INPUT: return &model->inputs.items[i].desc;
    case RW_KIND_COUNT: break;
    }
    return NULL;
}

static rw_status write_resolved(writer* w, const rw_model* model, rw_kind kind,
                                int32_t i) {
    if (kind == RW_KIND_BODY) {
        const rw_body_desc* desc = &model->bodies.items[i].desc;
        for (size_t s = 0; s < desc->shape_count; s++) {
            RW_TRY(write_fields(w, rw_desc_fields_of_shape(), &desc->shapes[s]));
        }
    } else if (kind == RW_KIND_ROD) {
        WRITE(w->buffer, model->rods.items[i].frame_count);
        WRITE(w->buffer, model->rods.items[i].element_count);
    } else if (kind == RW_KIND_ATTACHMENT) {
        WRITE(w->buffer, model->attachments.items[i].target.position);
        WRITE(w->buffer, model->attachments.items[i].target.rotation);
    } else if (kind == RW_KIND_FORCE) {
        WRITE(w->buffer, model->forces.items[i].rest_length);
    }
    return RW_STATUS_OK;
}

static rw_status write_kind(writer* w, const rw_model* model, rw_kind kind) {
    uint32_t layout = layout_of_kind(kind);
    int32_t count = rw_model_count(model, kind);
    WRITE(w->buffer, layout);
    WRITE(w->buffer, count);
    RW_TRY(write_ids(w->buffer, &model->ids[kind]));
    for (int32_t i = 0; i < count; i++) {
        rw_id id = rw_model_id(model, kind, i);
        WRITE(w->buffer, id);
        RW_TRY(write_fields(w, rw_desc_fields_of(kind), desc_of(model, kind, i)));
        RW_TRY(write_resolved(w, model, kind, i));
    }
    return RW_STATUS_OK;
}

static rw_status write_applied(rw_buffer* buffer, const rw_applied* applied) {
    WRITE(buffer, applied->count);
    for (int32_t i = 0; i < applied->count; i++) {
        const rw_applied_wrench* wrench = &applied->items[i];
        uint32_t frame = (uint32_t)wrench->frame;
        WRITE(buffer, wrench->body);
        WRITE(buffer, wrench->rod);
        WRITE(buffer, wrench->node);
        WRITE(buffer, wrench->point);
        WRITE(buffer, wrench->force);
        WRITE(buffer, wrench->torque);
        WRITE(buffer, frame);
        WRITE(buffer, wrench->steps_left);
    }
    return RW_STATUS_OK;
}

// At most what the fields take, so that the buffer grows once: its growth copies all bytes.
static size_t most_bytes(rw_desc_fields list, const void* desc) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_desc_field* field = &list.fields[i];
        const char* at = (const char*)desc + field->offset;
        switch (field->type) {
        case RW_DESC_TEXT: bytes += sizeof(uint16_t) + field->count; break;
        case RW_DESC_BOOL:
        case RW_DESC_ENUM:
        case RW_DESC_U32:
        case RW_DESC_SIZE: bytes += sizeof(uint32_t); break;
        case RW_DESC_F64:
        case RW_DESC_ROTATION: bytes += field->count * sizeof(double); break;
        case RW_DESC_DOUBLES:
        case RW_DESC_ROTATIONS:
            bytes += sizeof(uint64_t) + ARRAY_ALIGNMENT +
                     ((const rw_doubles*)(const void*)at)->count * sizeof(double);
            break;
        case RW_DESC_UINTS:
            bytes += sizeof(uint64_t) + ARRAY_ALIGNMENT +
                     ((const rw_uints*)(const void*)at)->count * sizeof(uint32_t);
            break;
        }
    }
    return bytes;
}

static size_t most_bytes_of_model(const rw_model* model) {
    const size_t slack = 64; // id, what was resolved, counts
    size_t bytes = slack + sizeof(rw_scene);
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        bytes += slack + (size_t)model->ids[kind].slot_count * sizeof(rw_id_slot);
        for (int32_t i = 0; i < rw_model_count(model, (rw_kind)kind); i++) {
            bytes += slack + most_bytes(rw_desc_fields_of((rw_kind)kind),
                                        desc_of(model, (rw_kind)kind, i));
        }
    }
    for (int32_t i = 0; i < model->bodies.count; i++) {
        const rw_body_desc* desc = &model->bodies.items[i].desc;
        for (size_t k = 0; k < desc->shape_count; k++) {
            bytes += most_bytes(rw_desc_fields_of_shape(), &desc->shapes[k]);
        }
    }
    return bytes + (size_t)model->applied.count * (sizeof(rw_applied_wrench) + slack);
}

rw_status rw_scene_codec_write(const rw_model* model, rw_buffer* buffer) {
    RW_TRY(rw_buffer_reserve(buffer, most_bytes_of_model(model)));
    writer w = {buffer, buffer->size_bytes};
    uint32_t head[3] = {MAGIC, VERSION, layout_of(rw_desc_fields_of_options())};
    WRITE(buffer, head);
    rw_scene options;
    options_of(model, &options);
    RW_TRY(write_fields(&w, rw_desc_fields_of_options(), &options));
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        RW_TRY(write_kind(&w, model, (rw_kind)kind));
    }
    return write_applied(buffer, &model->applied);
}

// ---- Hashing ----

static void hash_field(rw_hash* hash, const rw_desc_field* field, const void* desc) {
    const char* at = (const char*)desc + field->offset;
    switch (field->type) {
    case RW_DESC_TEXT:
        rw_hash_bytes(hash, at, strnlen(at, field->count));
        break;
    case RW_DESC_BOOL:
        rw_hash_word(hash, *(const bool*)at ? 1 : 0);
        break;
    case RW_DESC_ENUM:
    case RW_DESC_U32:
        rw_hash_word(hash, *(const uint32_t*)(const void*)at);
        break;
    case RW_DESC_F64:
    case RW_DESC_ROTATION:
        rw_hash_doubles(hash, (const double*)(const void*)at, field->count);
        break;
    case RW_DESC_DOUBLES:
    case RW_DESC_ROTATIONS: {
        const rw_doubles* view = (const rw_doubles*)(const void*)at;
        rw_hash_word(hash, view->count);
        rw_hash_doubles(hash, view->data, view->count);
        break;
    }
    case RW_DESC_UINTS: {
        const rw_uints* view = (const rw_uints*)(const void*)at;
        rw_hash_word(hash, view->count);
        for (size_t i = 0; i < view->count; i++) {
            rw_hash_word(hash, view->data[i]);
        }
        break;
    }
    case RW_DESC_SIZE:
        rw_hash_word(hash, *(const size_t*)(const void*)at);
        break;
    }
}

static void hash_fields(rw_hash* hash, rw_desc_fields list, const void* desc) {
    for (uint32_t i = 0; i < list.count; i++) {
        hash_field(hash, &list.fields[i], desc);
    }
}

static void hash_resolved(rw_hash* hash, const rw_model* model, rw_kind kind, int32_t i) {
    if (kind == RW_KIND_BODY) {
        const rw_body_desc* desc = &model->bodies.items[i].desc;
        for (size_t s = 0; s < desc->shape_count; s++) {
            hash_fields(hash, rw_desc_fields_of_shape(), &desc->shapes[s]);
        }
    } else if (kind == RW_KIND_ROD) {
        rw_hash_word(hash, (uint64_t)model->rods.items[i].frame_count);
        rw_hash_word(hash, (uint64_t)model->rods.items[i].element_count);
    } else if (kind == RW_KIND_ATTACHMENT) {
        rw_hash_doubles(hash, model->attachments.items[i].target.position, 3);
        rw_hash_doubles(hash, model->attachments.items[i].target.rotation, 4);
    } else if (kind == RW_KIND_FORCE) {
        rw_hash_doubles(hash, &model->forces.items[i].rest_length, 1);
    }
}

static void hash_kind(rw_hash* hash, const rw_model* model, rw_kind kind) {
    const rw_id_pool* pool = &model->ids[kind];
    int32_t count = rw_model_count(model, kind);
    rw_hash_word(hash, (uint64_t)count);
    rw_hash_word(hash, (uint64_t)pool->slot_count);
    // Generations and the order of the free list decide which ids come next.
    for (int32_t i = 0; i < pool->slot_count; i++) {
        rw_hash_word(hash, pool->slots[i].generation);
    }
    for (int32_t i = pool->first_free; i >= 0; i = pool->slots[i].next_free) {
        rw_hash_word(hash, (uint64_t)i);
    }
    for (int32_t i = 0; i < count; i++) {
        rw_hash_word(hash, rw_model_id(model, kind, i));
        hash_fields(hash, rw_desc_fields_of(kind), desc_of(model, kind, i));
        hash_resolved(hash, model, kind, i);
    }
}

void rw_scene_codec_hash(const rw_model* model, rw_hash* hash) {
    rw_scene options;
    options_of(model, &options);
    hash_fields(hash, rw_desc_fields_of_options(), &options);
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        hash_kind(hash, model, (rw_kind)kind);
    }
    rw_hash_word(hash, (uint64_t)model->applied.count);
    for (int32_t i = 0; i < model->applied.count; i++) {
        const rw_applied_wrench* wrench = &model->applied.items[i];
        rw_hash_word(hash, (uint64_t)wrench->body);
        rw_hash_word(hash, (uint64_t)wrench->rod);
        rw_hash_word(hash, (uint64_t)wrench->node);
        rw_hash_doubles(hash, wrench->point, 3);
        rw_hash_doubles(hash, wrench->force, 3);
        rw_hash_doubles(hash, wrench->torque, 3);
        rw_hash_word(hash, (uint64_t)wrench->frame);
        rw_hash_word(hash, (uint64_t)wrench->steps_left);
    }
}

// ---- Reading ----

typedef struct reader {
    const unsigned char* start;
    const unsigned char* at;
    const unsigned char* end;
    rw_arena arena; // shapes and unaligned arrays of the object that is being read
    rw_error* error;
} reader;

static rw_status broken(reader* r, const char* what) {
    RW_FAIL(r->error, DATA_LOSS, "", "snapshot is damaged: %s", what);
}

static rw_status take(reader* r, void* to, size_t bytes) {
    if ((size_t)(r->end - r->at) < bytes) {
        return broken(r, "it ends too early");
    }
    if (bytes > 0) {
        memcpy(to, r->at, bytes);
    }
    r->at += bytes;
    return RW_STATUS_OK;
}

#define TAKE(reader, value) RW_TRY(take((reader), &(value), sizeof(value)))

// Gives a view into the bytes where the array lies aligned there, else a copy.
static rw_status take_array(reader* r, size_t item_bytes, const void** data, size_t* count) {
    uint64_t claimed = 0;
    TAKE(r, claimed);
    *data = NULL;
    *count = (size_t)claimed;
    if (claimed == 0) {
        return RW_STATUS_OK;
    }
    uint64_t padding = 0;
    RW_TRY(take(r, &padding, padding_at((size_t)(r->at - r->start))));
    if (padding != 0) {
        return broken(r, "what fills the gap before an array is not 0");
    }
    if (claimed > (uint64_t)(r->end - r->at) / item_bytes) {
        return broken(r, "an array is longer than the bytes");
    }
    size_t bytes = (size_t)claimed * item_bytes;
    if ((uintptr_t)r->at % item_bytes == 0) {
        *data = r->at;
        r->at += bytes;
        return RW_STATUS_OK;
    }
    void* copy = rw_arena_array(&r->arena, (size_t)claimed, item_bytes);
    if (copy == NULL) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's arrays");
    }
    *data = copy;
    return take(r, copy, bytes);
}

static rw_status take_number(reader* r, void* to, uint32_t limit) {
    uint32_t value = 0;
    TAKE(r, value);
    if (value > limit) {
        return broken(r, "a number is out of its range");
    }
    memcpy(to, &value, sizeof value);
    return RW_STATUS_OK;
}

static rw_status take_field(reader* r, const rw_desc_field* field, void* desc) {
    char* at = (char*)desc + field->offset;
    switch (field->type) {
    case RW_DESC_TEXT: {
        uint16_t length = 0;
        TAKE(r, length);
        if (length >= field->count) {
            return broken(r, "a text is too long");
        }
        RW_TRY(take(r, at, length));
        memset(at + length, 0, field->count - length);
        return strlen(at) == length ? RW_STATUS_OK : broken(r, "a text holds a NUL");
    }
    case RW_DESC_BOOL: {
        uint8_t value = 0;
        TAKE(r, value);
        *(bool*)at = value == 1;
        return value <= 1 ? RW_STATUS_OK : broken(r, "a flag is neither 0 nor 1");
    }
    case RW_DESC_ENUM:
        return take_number(r, at, field->count - 1);
    case RW_DESC_U32:
        return take_number(r, at, UINT32_MAX);
    case RW_DESC_F64:
    case RW_DESC_ROTATION:
        return take(r, at, field->count * sizeof(double));
    case RW_DESC_DOUBLES:
    case RW_DESC_ROTATIONS: {
        rw_doubles* view = (rw_doubles*)(void*)at;
        const void* data;
        RW_TRY(take_array(r, sizeof(double), &data, &view->count));
        view->data = data;
        return RW_STATUS_OK;
    }
    case RW_DESC_UINTS: {
        rw_uints* view = (rw_uints*)(void*)at;
        const void* data;
        RW_TRY(take_array(r, sizeof(uint32_t), &data, &view->count));
        view->data = data;
        return RW_STATUS_OK;
    }
    case RW_DESC_SIZE: {
        uint32_t value = 0;
        RW_TRY(take_number(r, &value, field->count));
        *(size_t*)(void*)at = value;
        return RW_STATUS_OK;
    }
    }
    return RW_STATUS_OK;
}

static rw_status take_fields(reader* r, rw_desc_fields list, void* desc) {
    for (uint32_t i = 0; i < list.count; i++) {
        RW_TRY(take_field(r, &list.fields[i], desc));
    }
    return RW_STATUS_OK;
}

// What the model refuses is a damaged snapshot, not a client's mistake.
static rw_status refused(reader* r, rw_status status, rw_kind kind, int32_t index,
                         const rw_error* why) {
    if (status == RW_STATUS_RESOURCE_EXHAUSTED) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "%.200s", why->text);
    }
    if (kind == RW_KIND_COUNT) {
        RW_FAIL(r->error, DATA_LOSS, "", "snapshot is damaged: %.80s: %.160s", why->path,
                why->text);
    }
    RW_FAIL(r->error, DATA_LOSS, "", "snapshot is damaged: %s[%d].%.80s: %.160s", plural[kind],
            index, why->path, why->text);
}

typedef union any_desc {
    rw_body_desc body;
    rw_joint_desc joint;
    rw_coupling_desc coupling;
    rw_rod_desc rod;
    rw_attachment_desc attachment;
    rw_force_desc force;
    rw_input_desc input;
} any_desc;

static rw_status take_shapes(reader* r, rw_body_desc* desc) {
    rw_shape_desc* shapes = rw_arena_array(&r->arena, desc->shape_count, sizeof *shapes);
    if (shapes == NULL) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's shapes");
    }
    for (size_t i = 0; i < desc->shape_count; i++) {
        RW_TRY(take_fields(r, rw_desc_fields_of_shape(), &shapes[i]));
    }
    desc->shapes = shapes;
    return RW_STATUS_OK;
}

static rw_status add(rw_model* model, rw_kind kind, const any_desc* desc, rw_error* error) {
    switch (kind) {
    case RW_KIND_BODY: return rw_model_add_body(model, &desc->body, NULL, error);
    case RW_KIND_JOINT: return rw_model_add_joint(model, &desc->joint, NULL, error);
    case RW_KIND_COUPLING: return rw_model_add_coupling(model, &desc->coupling, NULL, error);
    case RW_KIND_ROD: return rw_model_add_rod(model, &desc->rod, NULL, error);
    case RW_KIND_ATTACHMENT: return rw_model_add_attachment(model, &desc->attachment, NULL, error);
    case RW_KIND_FORCE: return rw_model_add_force(model, &desc->force, NULL, error);
    case RW_KIND_INPUT: return rw_model_add_input(model, &desc->input, NULL, error);
    case RW_KIND_COUNT: break;
    }
    return RW_STATUS_INTERNAL;
}

// What was resolved, behind the object that was just added.
static rw_status take_resolved(reader* r, rw_model* model, rw_kind kind, int32_t i) {
    if (kind == RW_KIND_ROD) {
        int32_t frames = 0, elements = 0;
        TAKE(r, frames);
        TAKE(r, elements);
        const rw_rod* rod = &model->rods.items[i];
        int64_t most = (int64_t)rod->node_count + (int64_t)rod->desc.graph.segments.count / 2;
        if (frames < 0 || elements < 0 || frames > most || elements > most ||
            most > INT32_MAX / 4 - model->rods.frame_count) {
            return broken(r, "a rod's layout is impossible");
        }
        rw_model_set_rod_layout(model, i, frames, elements);
    } else if (kind == RW_KIND_ATTACHMENT) {
        rw_frame* target = &model->attachments.items[i].target;
        TAKE(r, target->position);
        TAKE(r, target->rotation);
        if (rw_validate_numbers(target->position, 3, "", NULL) != RW_STATUS_OK ||
            rw_validate_rotation(target->rotation, "", NULL) != RW_STATUS_OK) {
            return broken(r, "an attachment's target is impossible");
        }
    } else if (kind == RW_KIND_FORCE) {
        double* rest_length = &model->forces.items[i].rest_length;
        TAKE(r, *rest_length);
        if (!isfinite(*rest_length) || (*rest_length < 0 && *rest_length != -1)) {
            return broken(r, "a spring's rest length is impossible");
        }
    }
    return RW_STATUS_OK;
}

static rw_status take_object(reader* r, rw_model* model, rw_kind kind, rw_id* id) {
    int32_t index = rw_model_count(model, kind);
    any_desc desc;
    memset(&desc, 0, sizeof desc);
    rw_arena_reset(&r->arena);
    TAKE(r, *id);
    RW_TRY(take_fields(r, rw_desc_fields_of(kind), &desc));
    if (kind == RW_KIND_BODY) {
        RW_TRY(take_shapes(r, &desc.body));
    }
    rw_error why = {0};
    rw_status status = add(model, kind, &desc, &why);
    if (status != RW_STATUS_OK) {
        return refused(r, status, kind, index, &why);
    }
    return take_resolved(r, model, kind, index);
}

// ---- Ids ----

static bool slot_is_free(const rw_id_slot* slot) { return slot->index < 0; }

// Live slots lead to objects one to one; the free list holds every other slot once.
static bool ids_are_possible(const rw_id_pool* pool, const rw_id* ids, int32_t count) {
    int32_t live = 0;
    for (int32_t i = 0; i < pool->slot_count; i++) {
        const rw_id_slot* slot = &pool->slots[i];
        if (slot->generation == 0 || slot->generation >> (64 - ID_SLOT_BITS) != 0) {
            return false;
        }
        if (!slot_is_free(slot)) {
            rw_id id = slot->generation << ID_SLOT_BITS | (rw_id)(i + 1);
            if (slot->index >= count || ids[slot->index] != id || slot->next_free != -1) {
                return false;
            }
            live++;
        } else if (slot->index != -1 || slot->next_free < -1) {
            return false;
        }
    }
    int32_t free_count = 0;
    if (pool->first_free < -1) {
        return false;
    }
    for (int32_t i = pool->first_free; i >= 0; i = pool->slots[i].next_free) {
        if (i >= pool->slot_count || !slot_is_free(&pool->slots[i]) ||
            ++free_count > pool->slot_count) {
            return false;
        }
    }
    // ids[] are distinct: each equals that of the slot that leads to it, and all are reached.
    return live == count && live + free_count == pool->slot_count;
}

static rw_status take_pool(reader* r, rw_id_pool* pool) {
    int32_t slot_count = 0, first_free = -1;
    TAKE(r, slot_count);
    TAKE(r, first_free);
    if (slot_count < 0 || (size_t)slot_count > (size_t)(r->end - r->at) / 16 ||
        slot_count >= 1 << ID_SLOT_BITS) {
        return broken(r, "it has too many ids");
    }
    if (rw_id_pool_reserve(pool, slot_count) != RW_STATUS_OK) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's ids");
    }
    pool->slot_count = slot_count;
    pool->first_free = first_free;
    for (int32_t i = 0; i < slot_count; i++) {
        TAKE(r, pool->slots[i].generation);
        TAKE(r, pool->slots[i].index);
        TAKE(r, pool->slots[i].next_free);
    }
    return RW_STATUS_OK;
}

// Gives the objects of a kind the ids that they had, and the pool its history.
static void install_ids(rw_model* model, rw_kind kind, rw_id_pool* pool, const rw_id* ids) {
    rw_name_table* names = &model->names[kind];
    for (int32_t s = 0; s < names->capacity; s++) {
        if (names->slots[s].id != RW_ID_NONE) {
            names->slots[s].id = ids[rw_id_pool_find(&model->ids[kind], names->slots[s].id)];
        }
    }
    int32_t count = rw_model_count(model, kind);
    for (int32_t i = 0; i < count; i++) {
        switch (kind) {
        case RW_KIND_BODY: model->bodies.items[i].id = ids[i]; break;
        case RW_KIND_JOINT: model->joints.items[i].id = ids[i]; break;
        case RW_KIND_COUPLING: model->couplings.items[i].id = ids[i]; break;
        case RW_KIND_ROD: model->rods.items[i].id = ids[i]; break;
        case RW_KIND_ATTACHMENT: model->attachments.items[i].id = ids[i]; break;
        case RW_KIND_FORCE: model->forces.items[i].id = ids[i]; break;
        case RW_KIND_INPUT: model->inputs.items[i].id = ids[i]; break;
        case RW_KIND_COUNT: break;
        }
    }
    pool->live_count = count;
    rw_id_pool_finish(&model->ids[kind]);
    model->ids[kind] = *pool;
    *pool = (rw_id_pool){.alloc = pool->alloc};
}

static rw_status take_objects(reader* r, rw_model* model, rw_kind kind, int32_t count,
                              rw_id_pool* pool, rw_id* ids) {
    RW_TRY(take_pool(r, pool));
    if (rw_model_reserve(model, kind, count) != RW_STATUS_OK) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's objects");
    }
    for (int32_t i = 0; i < count; i++) {
        RW_TRY(take_object(r, model, kind, &ids[i]));
    }
    if (!ids_are_possible(pool, ids, count)) {
        return broken(r, "its ids contradict each other");
    }
    install_ids(model, kind, pool, ids);
    return RW_STATUS_OK;
}

// The fewest bytes that an object of a kind takes: a count beyond the bytes is refused before any
// memory is taken for it.
static size_t least_bytes(rw_kind kind) {
    rw_desc_fields list = rw_desc_fields_of(kind);
    size_t bytes = sizeof(rw_id);
    for (uint32_t i = 0; i < list.count; i++) {
        switch (list.fields[i].type) {
        case RW_DESC_TEXT: bytes += sizeof(uint16_t); break;
        case RW_DESC_BOOL: bytes += 1; break;
        case RW_DESC_ENUM:
        case RW_DESC_U32:
        case RW_DESC_SIZE: bytes += sizeof(uint32_t); break;
        case RW_DESC_F64:
        case RW_DESC_ROTATION: bytes += list.fields[i].count * sizeof(double); break;
        case RW_DESC_DOUBLES:
        case RW_DESC_ROTATIONS:
        case RW_DESC_UINTS: bytes += sizeof(uint64_t); break;
        }
    }
    return bytes;
}

static rw_status take_kind(reader* r, rw_model* model, rw_kind kind) {
    uint32_t layout = 0;
    int32_t count = 0;
    TAKE(r, layout);
    TAKE(r, count);
    if (layout != layout_of_kind(kind)) {
        RW_FAIL(r->error, DATA_LOSS, "", "snapshot is of another version: %s look different",
                plural[kind]);
    }
    if (count < 0 || (size_t)count > (size_t)(r->end - r->at) / least_bytes(kind)) {
        return broken(r, "it has too many objects");
    }
    rw_id* ids = rw_alloc_array(model->alloc, (size_t)count, sizeof *ids);
    if (ids == NULL) {
        RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's ids");
    }
    rw_id_pool pool;
    rw_id_pool_init(&pool, model->alloc);
    rw_status status = take_objects(r, model, kind, count, &pool, ids);
    rw_id_pool_finish(&pool);
    rw_alloc_free(model->alloc, ids);
    return status;
}

static bool wrench_is_possible(const rw_model* model, const rw_applied_wrench* wrench) {
    bool on_body = wrench->body >= 0 && wrench->body < model->bodies.count && wrench->rod == -1;
    bool on_rod = wrench->rod >= 0 && wrench->rod < model->rods.count && wrench->body == -1 &&
                  wrench->node >= 0 && wrench->node < model->rods.items[wrench->rod].node_count;
    return (on_body || on_rod) && (wrench->steps_left == -1 || wrench->steps_left > 0) &&
           rw_validate_numbers(wrench->point, 3, "", NULL) == RW_STATUS_OK &&
           rw_validate_numbers(wrench->force, 3, "", NULL) == RW_STATUS_OK &&
           rw_validate_numbers(wrench->torque, 3, "", NULL) == RW_STATUS_OK;
}

static rw_status take_applied(reader* r, rw_model* model) {
    int32_t count = 0;
    TAKE(r, count);
    for (int32_t i = 0; i < count; i++) {
        rw_applied_wrench wrench;
        memset(&wrench, 0, sizeof wrench);
        TAKE(r, wrench.body);
        TAKE(r, wrench.rod);
        TAKE(r, wrench.node);
        TAKE(r, wrench.point);
        TAKE(r, wrench.force);
        TAKE(r, wrench.torque);
        RW_TRY(take_number(r, &wrench.frame, RW_LOAD_BODY));
        TAKE(r, wrench.steps_left);
        if (!wrench_is_possible(model, &wrench)) {
            return broken(r, "an applied wrench is impossible");
        }
        if (rw_model_add_wrench(model, &wrench) != RW_STATUS_OK) {
            RW_FAIL(r->error, RESOURCE_EXHAUSTED, "", "no memory for the snapshot's wrenches");
        }
    }
    return RW_STATUS_OK;
}

static rw_status take_model(reader* r, rw_model* model) {
    uint32_t head[3] = {0};
    TAKE(r, head);
    if (head[0] != MAGIC) {
        return broken(r, "it holds no scene");
    }
    if (head[1] != VERSION || head[2] != layout_of(rw_desc_fields_of_options())) {
        RW_FAIL(r->error, DATA_LOSS, "", "snapshot is of another version: %u, this is %u", head[1],
                VERSION);
    }
    rw_scene options;
    rw_scene_init(&options);
    RW_TRY(take_fields(r, rw_desc_fields_of_options(), &options));
    rw_error why = {0};
    rw_status status = rw_model_set_options(model, &options, &why);
    if (status != RW_STATUS_OK) {
        return refused(r, status, RW_KIND_COUNT, 0, &why);
    }
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        RW_TRY(take_kind(r, model, (rw_kind)kind));
    }
    return take_applied(r, model);
}

rw_status rw_scene_codec_read(rw_model* model, const unsigned char** at, const unsigned char* end,
                              rw_error* error) {
    reader r = {.start = *at, .at = *at, .end = end, .error = error};
    rw_arena_init(&r.arena, model->alloc);
    rw_status status = take_model(&r, model);
    rw_arena_finish(&r.arena);
    *at = r.at;
    return status;
}
