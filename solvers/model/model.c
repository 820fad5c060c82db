// Life, room, look-up and whole scenes. Adding, replacing and removing objects have files of their
// own: model_add.c, model_replace.c, model_removal.c. What lies here keeps arrays, ids and names
// together.
#include <math.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/vec3.h"
#include "solvers/model/model_private.h"
#include "solvers/model/validate.h"

static const char* const kind_names[RW_KIND_COUNT] = {
    [RW_KIND_BODY] = "body",   [RW_KIND_JOINT] = "joint",           [RW_KIND_COUPLING] = "coupling",
    [RW_KIND_ROD] = "rod",     [RW_KIND_ATTACHMENT] = "attachment", [RW_KIND_FORCE] = "force",
    [RW_KIND_INPUT] = "input",
};

const char* rw_model_kind_name(rw_kind kind) {
    return kind_names[kind];
}

// ---- One kind of object as another: every record begins with its id and its description with its
// name, so that ids and names need one code for all kinds.

#define TABLE(member, type)                                                                        \
    (rw_model_private_records) {                                                                   \
        &model->member.count, &model->member.capacity, (char**)(void*)&model->member.items,        \
            sizeof(type), offsetof(type, desc.name)                                                \
    }

rw_model_private_records rw_model_private_table(rw_model* model, rw_kind kind) {
    switch (kind) {
    case RW_KIND_BODY:
        return TABLE(bodies, rw_body);
    case RW_KIND_JOINT:
        return TABLE(joints, rw_joint);
    case RW_KIND_COUPLING:
        return TABLE(couplings, rw_joint_coupling);
    case RW_KIND_ROD:
        return TABLE(rods, rw_rod);
    case RW_KIND_ATTACHMENT:
        return TABLE(attachments, rw_attachment);
    case RW_KIND_FORCE:
        return TABLE(forces, rw_force);
    case RW_KIND_INPUT:
        return TABLE(inputs, rw_input);
    case RW_KIND_COUNT:
        break;
    }
    RW_CHECK(!"a kind of object");
    return TABLE(bodies, rw_body);
}

_Static_assert(offsetof(rw_body, id) == 0 && offsetof(rw_joint, id) == 0 &&
                   offsetof(rw_joint_coupling, id) == 0 && offsetof(rw_rod, id) == 0 &&
                   offsetof(rw_attachment, id) == 0 && offsetof(rw_force, id) == 0 &&
                   offsetof(rw_input, id) == 0,
               "records begin with their id");

// The tables are only read through this.
static rw_model_private_records table_for_reading(const rw_model* model, rw_kind kind) {
    union {
        const rw_model* constant;
        rw_model* plain;
    } view = {.constant = model};
    return rw_model_private_table(view.plain, kind);
}

char* rw_model_private_record(rw_model_private_records table, int32_t index) {
    return *table.items + (size_t)index * table.stride;
}

int32_t rw_model_count(const rw_model* model, rw_kind kind) {
    return *table_for_reading(model, kind).count;
}

const char* rw_model_name(const rw_model* model, rw_kind kind, int32_t index) {
    rw_model_private_records table = table_for_reading(model, kind);
    RW_ASSERT(index >= 0 && index < *table.count);
    return rw_model_private_record(table, index) + table.name_offset;
}

rw_id rw_model_id(const rw_model* model, rw_kind kind, int32_t index) {
    rw_model_private_records table = table_for_reading(model, kind);
    RW_ASSERT(index >= 0 && index < *table.count);
    rw_id id;
    memcpy(&id, rw_model_private_record(table, index), sizeof id);
    return id;
}

// ---- Life ----

#define NAME_OF(function, KIND)                                                                    \
    static const char* function(const void* context, rw_id id) {                                   \
        const rw_model* model = context;                                                           \
        return rw_model_name(model, KIND, rw_id_pool_find(&model->ids[KIND], id));                 \
    }
NAME_OF(name_of_body, RW_KIND_BODY)
NAME_OF(name_of_joint, RW_KIND_JOINT)
NAME_OF(name_of_coupling, RW_KIND_COUPLING)
NAME_OF(name_of_rod, RW_KIND_ROD)
NAME_OF(name_of_attachment, RW_KIND_ATTACHMENT)
NAME_OF(name_of_force, RW_KIND_FORCE)
NAME_OF(name_of_input, RW_KIND_INPUT)
#undef NAME_OF

static void take_options(rw_model* model, const rw_scene* scene) {
    memcpy(model->name, scene->name, sizeof model->name);
    memcpy(model->gravity, scene->gravity, sizeof model->gravity);
    memcpy(model->wind, scene->wind, sizeof model->wind);
    model->time_step = scene->time_step;
    model->substeps = scene->substeps;
    model->solver = scene->solver;
}

void rw_model_init(rw_model* model, rw_alloc* alloc) {
    static const char* (*const name_of[RW_KIND_COUNT])(const void*, rw_id) = {
        [RW_KIND_BODY] = name_of_body,
        [RW_KIND_JOINT] = name_of_joint,
        [RW_KIND_COUPLING] = name_of_coupling,
        [RW_KIND_ROD] = name_of_rod,
        [RW_KIND_ATTACHMENT] = name_of_attachment,
        [RW_KIND_FORCE] = name_of_force,
        [RW_KIND_INPUT] = name_of_input,
    };
    memset(model, 0, sizeof *model);
    model->alloc = alloc;
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        rw_id_pool_init(&model->ids[kind], alloc);
        rw_names_init(&model->names[kind], alloc, name_of[kind], model);
    }
    rw_scene defaults;
    rw_scene_init(&defaults);
    take_options(model, &defaults);
}

// Frees what hangs on one record.
void rw_model_private_release(rw_model* model, rw_kind kind, int32_t index) {
    if (kind == RW_KIND_BODY) {
        rw_alloc_free(model->alloc, model->bodies.items[index].owned);
    } else if (kind == RW_KIND_ROD) {
        rw_alloc_free(model->alloc, model->rods.items[index].owned);
    } else if (kind == RW_KIND_INPUT) {
        rw_alloc_free(model->alloc, model->inputs.items[index].owned);
    }
}

void rw_model_finish(rw_model* model) {
    for (int kind = 0; kind < RW_KIND_COUNT; kind++) {
        rw_model_private_records table = rw_model_private_table(model, (rw_kind)kind);
        for (int32_t i = 0; i < *table.count; i++) {
            rw_model_private_release(model, (rw_kind)kind, i);
        }
        rw_alloc_free(model->alloc, *table.items);
        rw_id_pool_finish(&model->ids[kind]);
        rw_names_finish(&model->names[kind]);
    }
    rw_alloc_free(model->alloc, model->bodies.kind);
    rw_alloc_free(model->alloc, model->bodies.mass);
    rw_alloc_free(model->alloc, model->bodies.inverse_mass);
    rw_alloc_free(model->alloc, model->bodies.inertia);
    rw_alloc_free(model->alloc, model->bodies.inverse_inertia);
    rw_alloc_free(model->alloc, model->bodies.center_of_mass);
    rw_alloc_free(model->alloc, model->applied.items);
    rw_model_init(model, model->alloc);
}

rw_status rw_model_set_options(rw_model* model, const rw_scene* scene, rw_error* error) {
    RW_TRY(rw_validate_options(scene, error));
    // Gravity and wind reach the solvers with each step's drive: nothing is to be prepared anew.
    bool is_prepared_for = model->time_step == scene->time_step &&
                           model->substeps == scene->substeps &&
                           memcmp(&model->solver, &scene->solver, sizeof model->solver) == 0;
    take_options(model, scene);
    model->parameter_revision += is_prepared_for ? 0 : 1;
    return RW_STATUS_OK;
}

// ---- Room ----

rw_status rw_model_private_grow(rw_alloc* alloc, void* slot, size_t row_bytes, int64_t capacity) {
    void* old;
    memcpy(&old, slot, sizeof old);
    if (old != NULL && rw_alloc_size(old) >= (size_t)capacity * row_bytes) {
        return RW_STATUS_OK;
    }
    void* grown = rw_alloc_resize(alloc, old, (size_t)capacity * row_bytes);
    if (grown == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    memcpy(slot, &grown, sizeof grown);
    return RW_STATUS_OK;
}

rw_status rw_model_reserve(rw_model* model, rw_kind kind, int32_t count) {
    rw_model_private_records table = rw_model_private_table(model, kind);
    int64_t needed = (int64_t)*table.count + count;
    if (count < 0 || needed > RW_MODEL_PRIVATE_COUNT_MAX) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    RW_TRY(rw_id_pool_reserve(&model->ids[kind], count));
    RW_TRY(rw_names_reserve(&model->names[kind], count));
    if (needed <= *table.capacity) {
        return RW_STATUS_OK;
    }
    int64_t capacity = (int64_t)*table.capacity * 2;
    capacity = capacity < RW_MODEL_PRIVATE_CAPACITY_MIN ? RW_MODEL_PRIVATE_CAPACITY_MIN : capacity;
    capacity = capacity < needed ? needed : capacity;
    rw_alloc* alloc = model->alloc;
    if (kind == RW_KIND_BODY) {
        rw_bodies* bodies = &model->bodies;
        RW_TRY(rw_model_private_grow(alloc, &bodies->kind, sizeof(uint8_t), capacity));
        RW_TRY(rw_model_private_grow(alloc, &bodies->mass, sizeof(double), capacity));
        RW_TRY(rw_model_private_grow(alloc, &bodies->inverse_mass, sizeof(double), capacity));
        RW_TRY(rw_model_private_grow(alloc, &bodies->inertia, 6 * sizeof(double), capacity));
        RW_TRY(
            rw_model_private_grow(alloc, &bodies->inverse_inertia, 6 * sizeof(double), capacity));
        RW_TRY(rw_model_private_grow(alloc, &bodies->center_of_mass, 3 * sizeof(double), capacity));
    }
    RW_TRY(rw_model_private_grow(alloc, table.items, table.stride, capacity));
    *table.capacity = (int32_t)capacity;
    return RW_STATUS_OK;
}

rw_status rw_model_private_out_of_memory(rw_error* error, rw_kind kind) {
    RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for another %s", kind_names[kind]);
}

// ---- Looking up ----

rw_status rw_model_find(const rw_model* model, rw_kind kind, rw_id id, const char* name,
                        int32_t* index, rw_error* error) {
    *index = -1;
    if (id != RW_ID_NONE) {
        *index = rw_id_pool_find(&model->ids[kind], id);
        if (*index < 0) {
            RW_FAIL(error, NOT_FOUND, "id", "no %s has the id %llu", kind_names[kind],
                    (unsigned long long)id);
        }
        return RW_STATUS_OK;
    }
    rw_id found = name != NULL ? rw_names_find(&model->names[kind], name) : RW_ID_NONE;
    if (found == RW_ID_NONE) {
        RW_FAIL(error, NOT_FOUND, "name", "no %s is named \"%s\"", kind_names[kind],
                name != NULL ? name : "");
    }
    *index = rw_id_pool_find(&model->ids[kind], found);
    return RW_STATUS_OK;
}

static double segment_length(const double* positions, int32_t i) {
    rw_vec3 tail = rw_vec3_load(positions + 3 * (int64_t)i);
    return rw_vec3_norm(rw_vec3_sub(rw_vec3_load(positions + 3 * (int64_t)i + 3), tail));
}

int32_t rw_model_node_at(const rw_model* model, int32_t rod, double s) {
    const rw_rod* record = &model->rods.items[rod];
    int32_t last = record->node_count - 1;
    if (record->desc.geometry == RW_ROD_GRAPH) {
        return -1;
    }
    if (record->desc.geometry != RW_ROD_POLYLINE) {
        return (int32_t)ceil(s * last - 0.5); // equal segments
    }
    const double* positions = record->desc.polyline.positions.data;
    double total = 0, at = 0;
    for (int32_t i = 0; i < last; i++) {
        total += segment_length(positions, i);
    }
    for (int32_t i = 0; i < last; i++) {
        double length = segment_length(positions, i);
        if (s * total <= at + 0.5 * length) {
            return i;
        }
        at += length;
    }
    return last;
}

// ---- Layout ----

// Lays the rods' rows out again, one behind the other.
void rw_model_private_lay_out_rods(rw_model* model) {
    rw_rods* rods = &model->rods;
    rods->node_count = 0;
    rods->frame_count = 0;
    for (int32_t i = 0; i < rods->count; i++) {
        rods->items[i].node_first = rods->node_count;
        rods->items[i].frame_first = rods->frame_count;
        rods->node_count += rods->items[i].node_count;
        rods->frame_count += rods->items[i].frame_count;
    }
}

void rw_model_set_rod_layout(rw_model* model, int32_t rod, int32_t frame_count,
                             int32_t element_count) {
    rw_rod* record = &model->rods.items[rod];
    record->element_count = element_count;
    int32_t before = record->frame_count;
    record->frame_count = frame_count;
    if (rod == model->rods.count - 1) {
        model->rods.frame_count += frame_count - before;
    } else if (frame_count != before) {
        rw_model_private_lay_out_rods(model);
    }
}

// ---- Taking back ----

void rw_model_remove_last(rw_model* model, rw_kind kind) {
    rw_model_private_records table = rw_model_private_table(model, kind);
    RW_CHECK(*table.count > 0);
    int32_t last = *table.count - 1;
    rw_names_remove(&model->names[kind], rw_model_name(model, kind, last));
    rw_id_pool_take_back(&model->ids[kind], rw_model_id(model, kind, last));
    rw_model_private_release(model, kind, last);
    if (kind == RW_KIND_JOINT) {
        model->joints.coordinate_count -= model->joints.items[last].coordinate_count;
        model->joints.rate_count -= model->joints.items[last].rate_count;
    } else if (kind == RW_KIND_ROD) {
        model->rods.node_count -= model->rods.items[last].node_count;
        model->rods.frame_count -= model->rods.items[last].frame_count;
    }
    (*table.count)--;
    model->topology_revision++;
}

// ---- Whole scenes ----

#define LOAD_ALL(plural, singular, member_count, KIND)                                             \
    do {                                                                                           \
        if (scene->member_count > RW_MODEL_PRIVATE_COUNT_MAX ||                                    \
            rw_model_reserve(model, KIND, (int32_t)scene->member_count) != RW_STATUS_OK) {         \
            return rw_model_private_out_of_memory(error, KIND);                                    \
        }                                                                                          \
        for (size_t i = 0; i < scene->member_count; i++) {                                         \
            rw_status status = rw_model_add_##singular(model, &scene->plural[i], NULL, error);     \
            if (status != RW_STATUS_OK) {                                                          \
                return error != NULL ? rw_status_prefix(error, #plural "[%zu]", i) : status;       \
            }                                                                                      \
        }                                                                                          \
    } while (0)

rw_status rw_model_load(rw_model* model, const rw_scene* scene, rw_error* error) {
    RW_TRY(rw_model_set_options(model, scene, error));
    LOAD_ALL(bodies, body, body_count, RW_KIND_BODY);
    LOAD_ALL(joints, joint, joint_count, RW_KIND_JOINT);
    LOAD_ALL(couplings, coupling, coupling_count, RW_KIND_COUPLING);
    LOAD_ALL(rods, rod, rod_count, RW_KIND_ROD);
    LOAD_ALL(attachments, attachment, attachment_count, RW_KIND_ATTACHMENT);
    LOAD_ALL(forces, force, force_count, RW_KIND_FORCE);
    LOAD_ALL(inputs, input, input_count, RW_KIND_INPUT);
    return RW_STATUS_OK;
}

#define DESCRIBE_ALL(plural, type, member_count)                                                   \
    do {                                                                                           \
        int32_t count = model->plural.count;                                                       \
        type* descs = rw_arena_array(arena, (size_t)count, sizeof *descs);                         \
        if (descs == NULL) {                                                                       \
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the description of the scene");  \
        }                                                                                          \
        for (int32_t i = 0; i < count; i++) {                                                      \
            descs[i] = model->plural.items[i].desc;                                                \
        }                                                                                          \
        scene->plural = descs;                                                                     \
        scene->member_count = (size_t)count;                                                       \
    } while (0)

rw_status rw_model_describe(const rw_model* model, rw_arena* arena, rw_scene* scene,
                            rw_error* error) {
    rw_scene_init(scene);
    memcpy(scene->name, model->name, sizeof scene->name);
    memcpy(scene->gravity, model->gravity, sizeof scene->gravity);
    memcpy(scene->wind, model->wind, sizeof scene->wind);
    scene->time_step = model->time_step;
    scene->substeps = model->substeps;
    scene->solver = model->solver;
    DESCRIBE_ALL(bodies, rw_body_desc, body_count);
    DESCRIBE_ALL(joints, rw_joint_desc, joint_count);
    DESCRIBE_ALL(couplings, rw_coupling_desc, coupling_count);
    DESCRIBE_ALL(rods, rw_rod_desc, rod_count);
    DESCRIBE_ALL(attachments, rw_attachment_desc, attachment_count);
    DESCRIBE_ALL(forces, rw_force_desc, force_count);
    DESCRIBE_ALL(inputs, rw_input_desc, input_count);
    return RW_STATUS_OK;
}

// ---- Wrenches ----

void rw_model_clear_wrenches(rw_model* model, int32_t body, int32_t rod) {
    rw_applied* applied = &model->applied;
    int32_t kept = 0;
    for (int32_t i = 0; i < applied->count; i++) {
        const rw_applied_wrench* wrench = &applied->items[i];
        bool is_lasting = wrench->steps_left < 0;
        bool goes = (body < 0 && rod < 0) || (is_lasting && body >= 0 && wrench->body == body) ||
                    (is_lasting && rod >= 0 && wrench->rod == rod);
        if (!goes) {
            applied->items[kept++] = *wrench;
        }
    }
    applied->count = kept;
}

void rw_model_expire_wrenches(rw_model* model) {
    rw_applied* applied = &model->applied;
    int32_t kept = 0;
    for (int32_t i = 0; i < applied->count; i++) {
        rw_applied_wrench* wrench = &applied->items[i];
        if (wrench->steps_left > 0) {
            wrench->steps_left--;
        }
        if (wrench->steps_left != 0) {
            applied->items[kept++] = *wrench;
        }
    }
    applied->count = kept;
}
