// Life, objects, look-up and removal. Descriptions are checked by validate.c and copied by
// desc_copy.c; what lies here keeps arrays, ids, names and references together.
#include "solvers/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/mat3.h"
#include "solvers/model/desc_fields.h"
#include "solvers/model/drive.h"
#include "solvers/model/mass_properties.h"
#include "solvers/model/validate.h"

#define CAPACITY_MIN 8
#define COUNT_MAX ((1 << 24) - 1) // ids have 24 bits for the slot

static const char* const kind_names[RW_KIND_COUNT] = {
    [RW_KIND_BODY] = "body",     [RW_KIND_JOINT] = "joint",
    [RW_KIND_COUPLING] = "coupling", [RW_KIND_ROD] = "rod",
    [RW_KIND_ATTACHMENT] = "attachment", [RW_KIND_FORCE] = "force",
    [RW_KIND_INPUT] = "input",
};

const char* rw_model_kind_name(rw_kind kind) { return kind_names[kind]; }

// ---- One kind of object as another: every record begins with its id and its description with its
// name, so that ids and names need one code for all kinds.

typedef struct record_table {
    int32_t* count;
    int32_t* capacity;
    char** items;
    size_t stride;
    size_t name_offset;
} record_table;

#define TABLE(member, type)                                                                        \
    (record_table) {                                                                               \
        &model->member.count, &model->member.capacity, (char**)(void*)&model->member.items,        \
            sizeof(type), offsetof(type, desc.name)                                                \
    }

static record_table table_of(rw_model* model, rw_kind kind) {
    switch (kind) {
    case RW_KIND_BODY: return TABLE(bodies, rw_body);
    case RW_KIND_JOINT: return TABLE(joints, rw_joint);
    case RW_KIND_COUPLING: return TABLE(couplings, rw_joint_coupling);
    case RW_KIND_ROD: return TABLE(rods, rw_rod);
    case RW_KIND_ATTACHMENT: return TABLE(attachments, rw_attachment);
    case RW_KIND_FORCE: return TABLE(forces, rw_force);
    case RW_KIND_INPUT: return TABLE(inputs, rw_input);
    case RW_KIND_COUNT: break;
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
static record_table table_for_reading(const rw_model* model, rw_kind kind) {
    union {
        const rw_model* constant;
        rw_model* plain;
    } view = {.constant = model};
    return table_of(view.plain, kind);
}

static char* record_at(record_table table, int32_t index) {
    return *table.items + (size_t)index * table.stride;
}

int32_t rw_model_count(const rw_model* model, rw_kind kind) {
    return *table_for_reading(model, kind).count;
}

const char* rw_model_name(const rw_model* model, rw_kind kind, int32_t index) {
    record_table table = table_for_reading(model, kind);
    RW_ASSERT(index >= 0 && index < *table.count);
    return record_at(table, index) + table.name_offset;
}

rw_id rw_model_id(const rw_model* model, rw_kind kind, int32_t index) {
    record_table table = table_for_reading(model, kind);
    RW_ASSERT(index >= 0 && index < *table.count);
    rw_id id;
    memcpy(&id, record_at(table, index), sizeof id);
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
        [RW_KIND_BODY] = name_of_body,     [RW_KIND_JOINT] = name_of_joint,
        [RW_KIND_COUPLING] = name_of_coupling, [RW_KIND_ROD] = name_of_rod,
        [RW_KIND_ATTACHMENT] = name_of_attachment, [RW_KIND_FORCE] = name_of_force,
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
static void release_record(rw_model* model, rw_kind kind, int32_t index) {
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
        record_table table = table_of(model, (rw_kind)kind);
        for (int32_t i = 0; i < *table.count; i++) {
            release_record(model, (rw_kind)kind, i);
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
    take_options(model, scene);
    model->parameter_revision++;
    return RW_STATUS_OK;
}

// ---- Room ----

static rw_status grow(rw_alloc* alloc, void* slot, size_t row_bytes, int64_t capacity) {
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
    record_table table = table_of(model, kind);
    int64_t needed = (int64_t)*table.count + count;
    if (count < 0 || needed > COUNT_MAX) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    RW_TRY(rw_id_pool_reserve(&model->ids[kind], count));
    RW_TRY(rw_names_reserve(&model->names[kind], count));
    if (needed <= *table.capacity) {
        return RW_STATUS_OK;
    }
    int64_t capacity = (int64_t)*table.capacity * 2;
    capacity = capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity;
    capacity = capacity < needed ? needed : capacity;
    rw_alloc* alloc = model->alloc;
    if (kind == RW_KIND_BODY) {
        rw_bodies* bodies = &model->bodies;
        RW_TRY(grow(alloc, &bodies->kind, sizeof(uint8_t), capacity));
        RW_TRY(grow(alloc, &bodies->mass, sizeof(double), capacity));
        RW_TRY(grow(alloc, &bodies->inverse_mass, sizeof(double), capacity));
        RW_TRY(grow(alloc, &bodies->inertia, 6 * sizeof(double), capacity));
        RW_TRY(grow(alloc, &bodies->inverse_inertia, 6 * sizeof(double), capacity));
        RW_TRY(grow(alloc, &bodies->center_of_mass, 3 * sizeof(double), capacity));
    }
    RW_TRY(grow(alloc, table.items, table.stride, capacity));
    *table.capacity = (int32_t)capacity;
    return RW_STATUS_OK;
}

static rw_status out_of_memory(rw_error* error, rw_kind kind) {
    RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for another %s", kind_names[kind]);
}

// Room for one more of a kind, under a name that is free.
static rw_status begin_add(rw_model* model, rw_kind kind, const char* name, rw_error* error) {
    if (rw_names_find(&model->names[kind], name) != RW_ID_NONE) {
        RW_FAIL(error, ALREADY_EXISTS, "name", "another %s is named \"%s\"", kind_names[kind],
                name);
    }
    if (rw_model_reserve(model, kind, 1) != RW_STATUS_OK) {
        return out_of_memory(error, kind);
    }
    return RW_STATUS_OK;
}

// Counts the record that was written at [count] and gives it an id. Can't fail after begin_add.
static void end_add(rw_model* model, rw_kind kind, rw_id* id) {
    record_table table = table_of(model, kind);
    int32_t index = *table.count;
    rw_id given = rw_id_pool_add(&model->ids[kind], index);
    RW_CHECK(given != RW_ID_NONE);
    memcpy(record_at(table, index), &given, sizeof given);
    (*table.count)++;
    rw_names_add(&model->names[kind], record_at(table, index) + table.name_offset, given);
    model->topology_revision++;
    if (id != NULL) {
        *id = given;
    }
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

// A reference by name; "" gives -1 (the world or none).
static rw_status refer(const rw_model* model, rw_kind kind, const char* name, const char* field,
                       int32_t* index, rw_error* error) {
    *index = -1;
    if (name[0] == '\0') {
        return RW_STATUS_OK;
    }
    rw_status status = rw_model_find(model, kind, RW_ID_NONE, name, index, error);
    if (status != RW_STATUS_OK && error != NULL) {
        snprintf(error->path, sizeof error->path, "%s", field);
    }
    return status;
}

// Copies a description without arrays.
static void copy_plain(rw_kind kind, void* to, const void* from) {
    void* owned = NULL;
    rw_status status = rw_desc_fields_copy(kind, to, from, NULL, 0, &owned, NULL);
    RW_CHECK(status == RW_STATUS_OK && owned == NULL);
}

// ---- Bodies ----

// Mass properties of a valid description: as given, or of its shapes.
static rw_status derive_mass(rw_model* model, const rw_body_desc* desc, rw_mass_properties* mass,
                             rw_error* error) {
    *mass = (rw_mass_properties){.mass = desc->mass};
    memcpy(mass->center_of_mass, desc->center_of_mass, sizeof mass->center_of_mass);
    memcpy(mass->inertia, desc->inertia, sizeof mass->inertia);
    if (rw_validate_has_density(desc)) {
        double density = desc->has_density ? desc->density : 0;
        RW_TRY(rw_mass_properties_of_shapes(desc->shapes, desc->shape_count, density,
                                            model->alloc, mass, error));
        if (desc->kind == RW_BODY_DYNAMIC) {
            RW_TRY(rw_validate_inertia(mass->inertia, "shapes", error));
        }
    }
    return RW_STATUS_OK;
}

static void store_mass(rw_bodies* bodies, int32_t i, rw_body_kind kind,
                       const rw_mass_properties* mass) {
    bodies->kind[i] = (uint8_t)kind;
    memcpy(bodies->center_of_mass + 3 * i, mass->center_of_mass, sizeof mass->center_of_mass);
    double* inertia = bodies->inertia + 6 * i;
    double* inverse = bodies->inverse_inertia + 6 * i;
    memset(inertia, 0, 6 * sizeof *inertia);
    memset(inverse, 0, 6 * sizeof *inverse);
    bodies->mass[i] = 0;
    bodies->inverse_mass[i] = 0;
    if (kind != RW_BODY_DYNAMIC) {
        return;
    }
    bodies->mass[i] = mass->mass;
    bodies->inverse_mass[i] = 1 / mass->mass;
    memcpy(inertia, mass->inertia, sizeof mass->inertia);
    rw_mat3 m = rw_mat3_inverse(rw_mat3_symmetric(inertia));
    double entries[6] = {m.m[0][0], m.m[1][1], m.m[2][2], m.m[0][1], m.m[0][2], m.m[1][2]};
    memcpy(inverse, entries, sizeof entries);
}

rw_status rw_model_add_body(rw_model* model, const rw_body_desc* desc, rw_id* id,
                            rw_error* error) {
    RW_TRY(rw_validate_body(desc, error));
    RW_TRY(begin_add(model, RW_KIND_BODY, desc->name, error));
    rw_mass_properties mass;
    RW_TRY(derive_mass(model, desc, &mass, error));
    rw_body* body = &model->bodies.items[model->bodies.count];
    memset(body, 0, sizeof *body);
    if (rw_desc_fields_copy(RW_KIND_BODY, &body->desc, desc, model->alloc, 0, &body->owned, NULL) !=
        RW_STATUS_OK) {
        return out_of_memory(error, RW_KIND_BODY);
    }
    store_mass(&model->bodies, model->bodies.count, desc->kind, &mass);
    end_add(model, RW_KIND_BODY, id);
    return RW_STATUS_OK;
}

// What a Set* may not change.
static rw_status must_stay(bool same, const char* field, rw_error* error) {
    if (!same) {
        RW_FAIL(error, FAILED_PRECONDITION, field, "can't change after creation");
    }
    return RW_STATUS_OK;
}

#define STAYS_TEXT(field) must_stay(strcmp(old->field, desc->field) == 0, #field, error)
#define STAYS(field) must_stay(old->field == desc->field, #field, error)

rw_status rw_model_replace_body(rw_model* model, int32_t index, const rw_body_desc* desc,
                                rw_error* error) {
    rw_body* body = &model->bodies.items[index];
    const rw_body_desc* old = &body->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(kind));
    RW_TRY(rw_validate_body(desc, error));
    rw_mass_properties mass;
    RW_TRY(derive_mass(model, desc, &mass, error));
    rw_body_desc copy;
    void* owned;
    if (rw_desc_fields_copy(RW_KIND_BODY, &copy, desc, model->alloc, 0, &owned, NULL) !=
        RW_STATUS_OK) {
        return out_of_memory(error, RW_KIND_BODY);
    }
    rw_alloc_free(model->alloc, body->owned);
    body->owned = owned;
    body->desc = copy;
    store_mass(&model->bodies, index, desc->kind, &mass);
    model->parameter_revision++;
    return RW_STATUS_OK;
}

// ---- Joints and couplings ----

rw_status rw_model_add_joint(rw_model* model, const rw_joint_desc* desc, rw_id* id,
                             rw_error* error) {
    RW_TRY(rw_validate_joint(desc, error));
    rw_joint joint = {.desc = *desc};
    RW_TRY(refer(model, RW_KIND_BODY, desc->parent, "parent", &joint.parent, error));
    RW_TRY(refer(model, RW_KIND_BODY, desc->child, "child", &joint.child, error));
    RW_TRY(begin_add(model, RW_KIND_JOINT, desc->name, error));
    copy_plain(RW_KIND_JOINT, &joint.desc, desc);
    joint.coordinate_first = model->joints.coordinate_count;
    joint.coordinate_count = rw_validate_coordinate_count(desc->type);
    joint.rate_first = model->joints.rate_count;
    joint.rate_count = rw_validate_rate_count(desc->type);
    model->joints.items[model->joints.count] = joint;
    model->joints.coordinate_count += joint.coordinate_count;
    model->joints.rate_count += joint.rate_count;
    end_add(model, RW_KIND_JOINT, id);
    return RW_STATUS_OK;
}

rw_status rw_model_replace_joint(rw_model* model, int32_t index, const rw_joint_desc* desc,
                                 rw_error* error) {
    const rw_joint_desc* old = &model->joints.items[index].desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(type));
    RW_TRY(STAYS_TEXT(parent));
    RW_TRY(STAYS_TEXT(child));
    RW_TRY(rw_validate_joint(desc, error));
    copy_plain(RW_KIND_JOINT, &model->joints.items[index].desc, desc);
    model->parameter_revision++;
    return RW_STATUS_OK;
}

// A coupling ties scalar coordinates; a spherical joint has none.
static rw_status check_coordinate(const rw_model* model, int32_t joint, uint32_t coordinate,
                                  const char* joint_field, const char* field, rw_error* error) {
    const rw_joint* record = &model->joints.items[joint];
    if (record->desc.type == RW_JOINT_SPHERICAL || record->coordinate_count == 0) {
        RW_FAIL(error, INVALID_ARGUMENT, joint_field, "joint \"%s\" has no scalar coordinate",
                record->desc.name);
    }
    if (coordinate >= (uint32_t)record->coordinate_count) {
        RW_FAIL(error, OUT_OF_RANGE, field, "must be < %d, got %u", record->coordinate_count,
                coordinate);
    }
    return RW_STATUS_OK;
}

rw_status rw_model_add_coupling(rw_model* model, const rw_coupling_desc* desc, rw_id* id,
                                rw_error* error) {
    RW_TRY(rw_validate_coupling(desc, error));
    rw_joint_coupling coupling = {.desc = *desc};
    RW_TRY(refer(model, RW_KIND_JOINT, desc->joint_a, "joint_a", &coupling.joint_a, error));
    RW_TRY(refer(model, RW_KIND_JOINT, desc->joint_b, "joint_b", &coupling.joint_b, error));
    RW_TRY(check_coordinate(model, coupling.joint_a, desc->coordinate_a, "joint_a", "coordinate_a",
                            error));
    RW_TRY(check_coordinate(model, coupling.joint_b, desc->coordinate_b, "joint_b", "coordinate_b",
                            error));
    RW_TRY(begin_add(model, RW_KIND_COUPLING, desc->name, error));
    model->couplings.items[model->couplings.count] = coupling;
    end_add(model, RW_KIND_COUPLING, id);
    return RW_STATUS_OK;
}

// ---- Rods ----

// Every vertex of a graph needs mass: its own, or that of a segment.
static rw_status check_vertices(rw_model* model, const rw_rod_desc* desc, rw_error* error) {
    if (desc->geometry != RW_ROD_GRAPH || desc->graph.vertex_masses.count != 0) {
        return RW_STATUS_OK;
    }
    size_t vertices = desc->graph.positions.count / 3;
    unsigned char* joined = rw_alloc_get(model->alloc, vertices);
    if (joined == NULL) {
        return out_of_memory(error, RW_KIND_ROD);
    }
    for (size_t i = 0; i < desc->graph.segments.count; i++) {
        joined[desc->graph.segments.data[i]] = 1;
    }
    const unsigned char* lone = memchr(joined, 0, vertices);
    size_t index = lone != NULL ? (size_t)(lone - joined) : vertices;
    rw_alloc_free(model->alloc, joined);
    if (index < vertices) {
        RW_FAIL(error, INVALID_ARGUMENT, "graph.vertex_masses",
                "must be given: vertex %zu has no segment to take mass from", index);
    }
    return RW_STATUS_OK;
}

rw_status rw_model_add_rod(rw_model* model, const rw_rod_desc* desc, rw_id* id, rw_error* error) {
    RW_TRY(rw_validate_rod(desc, error));
    RW_TRY(check_vertices(model, desc, error));
    RW_TRY(begin_add(model, RW_KIND_ROD, desc->name, error));
    int64_t node_count = rw_validate_node_count(desc);
    if (node_count > INT32_MAX / 8 - model->rods.node_count) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "more than %d rod nodes in one world",
                INT32_MAX / 8);
    }
    rw_rod* rod = &model->rods.items[model->rods.count];
    memset(rod, 0, sizeof *rod);
    if (rw_desc_fields_copy(RW_KIND_ROD, &rod->desc, desc, model->alloc, 0, &rod->owned, NULL) !=
        RW_STATUS_OK) {
        return out_of_memory(error, RW_KIND_ROD);
    }
    if (desc->geometry == RW_ROD_POLYLINE) {
        rod->desc.elements = (uint32_t)((node_count - 1) / desc->order);
    }
    rod->node_first = model->rods.node_count;
    rod->node_count = (int32_t)node_count;
    rod->frame_first = model->rods.frame_count;
    model->rods.node_count += rod->node_count;
    end_add(model, RW_KIND_ROD, id);
    return RW_STATUS_OK;
}

// Lays the rods' rows out again, one behind the other.
static void lay_out_rods(rw_model* model) {
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
        lay_out_rods(model);
    }
}

rw_status rw_model_replace_rod(rw_model* model, int32_t index, const rw_rod_desc* desc,
                               rw_error* error) {
    rw_rod* rod = &model->rods.items[index];
    const rw_rod_desc* old = &rod->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(geometry));
    RW_TRY(STAYS(method));
    RW_TRY(STAYS(elements));
    RW_TRY(STAYS(order));
    RW_TRY(STAYS(rest));
    RW_TRY(STAYS(section));
    RW_TRY(STAYS(polyline.positions.count));
    RW_TRY(STAYS(graph.positions.count));
    RW_TRY(STAYS(graph.segments.count));
    RW_TRY(STAYS(graph.bends.count));
    RW_TRY(rw_validate_rod(desc, error));
    rw_rod_desc copy;
    if (rw_desc_fields_share_arrays(RW_KIND_ROD, old, desc)) {
        // Only numbers changed: the arrays stay where they are.
        copy = *desc;
    } else {
        void* owned;
        if (rw_desc_fields_copy(RW_KIND_ROD, &copy, desc, model->alloc, 0, &owned, NULL) !=
            RW_STATUS_OK) {
            return out_of_memory(error, RW_KIND_ROD);
        }
        rw_alloc_free(model->alloc, rod->owned);
        rod->owned = owned;
    }
    rod->desc = copy;
    model->parameter_revision++;
    return RW_STATUS_OK;
}

// ---- Attachments and forces ----

// The node nearest to the fraction `s` of the rest length, the lower of two equally near (as
// rw_rods_node_at says with a geometry at hand).
static int32_t node_at(const rw_rod* rod, double s) {
    int32_t last = rod->node_count - 1;
    if (rod->desc.geometry != RW_ROD_POLYLINE) {
        return (int32_t)ceil(s * last - 0.5);
    }
    const double* p = rod->desc.polyline.positions.data;
    double total = 0;
    for (int32_t i = 0; i < last; i++) {
        total += rw_vec3_norm(rw_vec3_sub(rw_vec3_load(p + 3 * i + 3), rw_vec3_load(p + 3 * i)));
    }
    double at = 0;
    for (int32_t i = 0; i < last; i++) {
        double length =
            rw_vec3_norm(rw_vec3_sub(rw_vec3_load(p + 3 * i + 3), rw_vec3_load(p + 3 * i)));
        if (s * total <= at + 0.5 * length) {
            return i;
        }
        at += length;
    }
    return last;
}

// The node that `s` or `node` means; `rod` is a valid index.
static rw_status resolve_node(const rw_model* model, int32_t rod, bool has_node, uint32_t node,
                              double s, const char* field, int32_t* resolved, rw_error* error) {
    const rw_rod* record = &model->rods.items[rod];
    if (has_node) {
        if (node >= (uint32_t)record->node_count) {
            RW_FAIL(error, OUT_OF_RANGE, field, "must be < %d, got %u", record->node_count, node);
        }
        *resolved = (int32_t)node;
        return RW_STATUS_OK;
    }
    if (record->desc.geometry == RW_ROD_GRAPH) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "a graph has no length: give the node");
    }
    *resolved = node_at(record, s);
    return RW_STATUS_OK;
}

rw_status rw_model_add_attachment(rw_model* model, const rw_attachment_desc* desc, rw_id* id,
                                  rw_error* error) {
    RW_TRY(rw_validate_attachment(desc, error));
    rw_attachment attachment = {.target = RW_FRAME_IDENTITY};
    RW_TRY(refer(model, RW_KIND_ROD, desc->rod, "rod", &attachment.rod, error));
    RW_TRY(refer(model, RW_KIND_BODY, desc->body, "body", &attachment.body, error));
    RW_TRY(resolve_node(model, attachment.rod, desc->has_node, desc->node, desc->s, "node",
                        &attachment.node, error));
    RW_TRY(begin_add(model, RW_KIND_ATTACHMENT, desc->name, error));
    copy_plain(RW_KIND_ATTACHMENT, &attachment.desc, desc);
    if (desc->has_position) {
        memcpy(attachment.target.position, attachment.desc.position, sizeof desc->position);
    }
    if (desc->has_rotation) {
        memcpy(attachment.target.rotation, attachment.desc.rotation, sizeof desc->rotation);
    }
    model->attachments.items[model->attachments.count] = attachment;
    end_add(model, RW_KIND_ATTACHMENT, id);
    return RW_STATUS_OK;
}

rw_status rw_model_replace_attachment(rw_model* model, int32_t index,
                                      const rw_attachment_desc* desc, rw_error* error) {
    rw_attachment* attachment = &model->attachments.items[index];
    const rw_attachment_desc* old = &attachment->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS_TEXT(rod));
    RW_TRY(STAYS_TEXT(body));
    RW_TRY(STAYS(kind));
    RW_TRY(STAYS(has_node));
    RW_TRY(STAYS(node));
    RW_TRY(STAYS(s));
    RW_TRY(rw_validate_attachment(desc, error));
    copy_plain(RW_KIND_ATTACHMENT, &attachment->desc, desc);
    if (desc->has_position) {
        memcpy(attachment->target.position, attachment->desc.position, sizeof desc->position);
    }
    if (desc->has_rotation) {
        memcpy(attachment->target.rotation, attachment->desc.rotation, sizeof desc->rotation);
    }
    model->parameter_revision++;
    return RW_STATUS_OK;
}

static rw_status resolve_point(const rw_model* model, const rw_point_desc* desc, rw_point* point,
                               rw_error* error) {
    *point = (rw_point){.node = -1};
    memcpy(point->position, desc->position, sizeof point->position);
    RW_TRY(refer(model, RW_KIND_BODY, desc->body, "body", &point->body, error));
    RW_TRY(refer(model, RW_KIND_ROD, desc->rod, "rod", &point->rod, error));
    if (point->rod >= 0) {
        RW_TRY(resolve_node(model, point->rod, desc->has_node, desc->node, desc->s, "node",
                            &point->node, error));
    }
    return RW_STATUS_OK;
}

static const char* force_member(rw_force_kind kind) {
    return kind == RW_FORCE_SPRING_DAMPER ? "spring_damper"
           : kind == RW_FORCE_LOAD        ? "load"
                                          : "drag";
}

static rw_status resolve_force(const rw_model* model, const rw_force_desc* desc, rw_force* force,
                               rw_error* error) {
    *force = (rw_force){.desc = *desc, .rest_length = -1};
    force->b = (rw_point){.body = -1, .rod = -1, .node = -1};
    const char* member = force_member(desc->kind);
    if (desc->kind == RW_FORCE_SPRING_DAMPER) {
        if (resolve_point(model, &desc->spring_damper.a, &force->a, error) != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "%s.a", member) : RW_STATUS_NOT_FOUND;
        }
        if (resolve_point(model, &desc->spring_damper.b, &force->b, error) != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "%s.b", member) : RW_STATUS_NOT_FOUND;
        }
        if (desc->spring_damper.has_rest_length) {
            force->rest_length = desc->spring_damper.rest_length;
        }
        return RW_STATUS_OK;
    }
    const rw_point_desc* at = desc->kind == RW_FORCE_LOAD ? &desc->load.at : &desc->drag.at;
    if (resolve_point(model, at, &force->a, error) != RW_STATUS_OK) {
        return error != NULL ? rw_status_prefix(error, "%s", member) : RW_STATUS_NOT_FOUND;
    }
    return RW_STATUS_OK;
}

rw_status rw_model_add_force(rw_model* model, const rw_force_desc* desc, rw_id* id,
                             rw_error* error) {
    RW_TRY(rw_validate_force(desc, error));
    rw_force force;
    RW_TRY(resolve_force(model, desc, &force, error));
    RW_TRY(begin_add(model, RW_KIND_FORCE, desc->name, error));
    model->forces.items[model->forces.count] = force;
    end_add(model, RW_KIND_FORCE, id);
    return RW_STATUS_OK;
}

rw_status rw_model_replace_force(rw_model* model, int32_t index, const rw_force_desc* desc,
                                 rw_error* error) {
    rw_force* force = &model->forces.items[index];
    const rw_force_desc* old = &force->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(kind));
    RW_TRY(rw_validate_force(desc, error));
    rw_force fresh;
    RW_TRY(resolve_force(model, desc, &fresh, error));
    RW_TRY(must_stay(fresh.a.body == force->a.body && fresh.a.rod == force->a.rod &&
                         fresh.a.node == force->a.node && fresh.b.body == force->b.body &&
                         fresh.b.rod == force->b.rod && fresh.b.node == force->b.node,
                     force_member(desc->kind), error));
    if (fresh.rest_length < 0) {
        fresh.rest_length = force->rest_length;
    }
    fresh.id = force->id;
    *force = fresh;
    model->parameter_revision++;
    return RW_STATUS_OK;
}

// ---- Inputs ----

typedef struct target_rule {
    const char* prefix; // "joint/"; without a slash it is the whole target
    rw_input_target target;
    rw_kind kind;
} target_rule;

static const target_rule target_rules[] = {
    {"wind", RW_TARGET_WIND, RW_KIND_COUNT},
    {"gravity", RW_TARGET_GRAVITY, RW_KIND_COUNT},
    {"joint/", RW_TARGET_JOINT, RW_KIND_JOINT},
    {"attachment/", RW_TARGET_ATTACHMENT, RW_KIND_ATTACHMENT},
    {"body/", RW_TARGET_BODY, RW_KIND_BODY},
    {"force/", RW_TARGET_FORCE, RW_KIND_FORCE},
};

static rw_status resolve_target(const rw_model* model, rw_input* input, rw_error* error) {
    const char* target = input->desc.target;
    input->index = -1;
    for (size_t i = 0; i < RW_COUNT_OF(target_rules); i++) {
        const target_rule* rule = &target_rules[i];
        size_t length = strlen(rule->prefix);
        if (rule->kind == RW_KIND_COUNT) {
            if (strcmp(target, rule->prefix) == 0) {
                input->target = rule->target;
                return RW_STATUS_OK;
            }
        } else if (strncmp(target, rule->prefix, length) == 0 && target[length] != '\0') {
            input->target = rule->target;
            return refer(model, rule->kind, target + length, "target", &input->index, error);
        }
    }
    RW_FAIL(error, INVALID_ARGUMENT, "target",
            "must be wind, gravity, joint/NAME, attachment/NAME, body/NAME or force/NAME, got "
            "\"%s\"",
            target);
}

// Numbers per time: one of the two that the target takes.
static rw_status check_width(const rw_model* model, rw_input* input, rw_error* error) {
    int32_t widths[2] = {3, 3};
    switch (input->target) {
    case RW_TARGET_WIND:
    case RW_TARGET_GRAVITY:
        break;
    case RW_TARGET_JOINT:
        widths[0] = widths[1] = model->joints.items[input->index].rate_count;
        if (widths[0] == 0) {
            RW_FAIL(error, INVALID_ARGUMENT, "target", "joint \"%s\" has no coordinate to drive",
                    model->joints.items[input->index].desc.name);
        }
        break;
    case RW_TARGET_BODY:
        if (model->bodies.items[input->index].desc.kind != RW_BODY_KINEMATIC) {
            RW_FAIL(error, INVALID_ARGUMENT, "target", "body \"%s\" is not KINEMATIC",
                    model->bodies.items[input->index].desc.name);
        }
        widths[1] = 6;
        break;
    case RW_TARGET_FORCE:
        if (model->forces.items[input->index].desc.kind != RW_FORCE_LOAD) {
            RW_FAIL(error, INVALID_ARGUMENT, "target", "force \"%s\" is not a load",
                    model->forces.items[input->index].desc.name);
        }
        widths[1] = 6;
        break;
    case RW_TARGET_ATTACHMENT:
        widths[1] = 6;
        break;
    }
    const rw_input_desc* desc = &input->desc;
    bool is_sine = desc->kind == RW_INPUT_SINE;
    size_t rows = is_sine ? 1 : desc->time.count;
    size_t count = is_sine ? desc->amplitude.count : desc->value.count;
    const char* field = is_sine                                   ? "sine.amplitude"
                        : desc->kind == RW_INPUT_PIECEWISE_LINEAR ? "piecewise_linear.value"
                                                                  : "cubic.value";
    for (int i = 0; i < 2; i++) {
        if (count == rows * (size_t)widths[i]) {
            input->width = widths[i];
            return RW_STATUS_OK;
        }
    }
    if (widths[0] == widths[1]) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "%s takes %d numbers per time, got %zu for %zu",
                desc->target, widths[0], count, rows);
    }
    RW_FAIL(error, INVALID_ARGUMENT, field, "%s takes %d or %d numbers per time, got %zu for %zu",
            desc->target, widths[0], widths[1], count, rows);
}

rw_status rw_model_add_input(rw_model* model, const rw_input_desc* desc, rw_id* id,
                             rw_error* error) {
    RW_TRY(rw_validate_input(desc, error));
    rw_input input = {.desc = *desc};
    RW_TRY(resolve_target(model, &input, error));
    RW_TRY(check_width(model, &input, error));
    RW_TRY(begin_add(model, RW_KIND_INPUT, desc->name, error));
    void* slope = NULL;
    size_t slope_bytes = rw_drive_slope_bytes(desc->kind, desc->time.count, input.width);
    if (rw_desc_fields_copy(RW_KIND_INPUT, &input.desc, desc, model->alloc, slope_bytes,
                            &input.owned, &slope) != RW_STATUS_OK) {
        return out_of_memory(error, RW_KIND_INPUT);
    }
    input.slope = slope;
    rw_drive_fit_input(&input);
    model->inputs.items[model->inputs.count] = input;
    end_add(model, RW_KIND_INPUT, id);
    return RW_STATUS_OK;
}

// ---- Taking back ----

void rw_model_remove_last(rw_model* model, rw_kind kind) {
    record_table table = table_of(model, kind);
    RW_CHECK(*table.count > 0);
    int32_t last = *table.count - 1;
    rw_names_remove(&model->names[kind], rw_model_name(model, kind, last));
    rw_id_pool_take_back(&model->ids[kind], rw_model_id(model, kind, last));
    release_record(model, kind, last);
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

static void renew(int32_t* reference, const int32_t* new_index) {
    if (new_index != NULL && *reference >= 0) {
        *reference = new_index[*reference];
    }
}

// What depends on another object: calls `visit` for every reference of every object.
typedef void (*visit_reference)(void* context, rw_kind kind, int32_t index, rw_kind target,
                                int32_t* reference);

static rw_kind kind_of_target(rw_input_target target) {
    switch (target) {
    case RW_TARGET_JOINT: return RW_KIND_JOINT;
    case RW_TARGET_ATTACHMENT: return RW_KIND_ATTACHMENT;
    case RW_TARGET_BODY: return RW_KIND_BODY;
    case RW_TARGET_FORCE: return RW_KIND_FORCE;
    case RW_TARGET_WIND:
    case RW_TARGET_GRAVITY: break;
    }
    return RW_KIND_COUNT;
}

// In an order in which dependents come after what they depend on.
static void visit_references(rw_model* model, visit_reference visit, void* context) {
    for (int32_t i = 0; i < model->joints.count; i++) {
        visit(context, RW_KIND_JOINT, i, RW_KIND_BODY, &model->joints.items[i].parent);
        visit(context, RW_KIND_JOINT, i, RW_KIND_BODY, &model->joints.items[i].child);
    }
    for (int32_t i = 0; i < model->couplings.count; i++) {
        visit(context, RW_KIND_COUPLING, i, RW_KIND_JOINT, &model->couplings.items[i].joint_a);
        visit(context, RW_KIND_COUPLING, i, RW_KIND_JOINT, &model->couplings.items[i].joint_b);
    }
    for (int32_t i = 0; i < model->attachments.count; i++) {
        visit(context, RW_KIND_ATTACHMENT, i, RW_KIND_ROD, &model->attachments.items[i].rod);
        visit(context, RW_KIND_ATTACHMENT, i, RW_KIND_BODY, &model->attachments.items[i].body);
    }
    for (int32_t i = 0; i < model->forces.count; i++) {
        rw_force* force = &model->forces.items[i];
        visit(context, RW_KIND_FORCE, i, RW_KIND_BODY, &force->a.body);
        visit(context, RW_KIND_FORCE, i, RW_KIND_ROD, &force->a.rod);
        visit(context, RW_KIND_FORCE, i, RW_KIND_BODY, &force->b.body);
        visit(context, RW_KIND_FORCE, i, RW_KIND_ROD, &force->b.rod);
    }
    for (int32_t i = 0; i < model->inputs.count; i++) {
        rw_input* input = &model->inputs.items[i];
        rw_kind target = kind_of_target(input->target);
        if (target != RW_KIND_COUNT) {
            visit(context, RW_KIND_INPUT, i, target, &input->index);
        }
    }
}

// While planning, new_index holds 0 for what stays and -1 for what goes.
typedef struct mark_context {
    rw_removal* removal;
    const rw_model* model;
    char names[200]; // of the direct dependents, for the refusal
    size_t length;
    int32_t dependents;
} mark_context;

static void mark(void* context, rw_kind kind, int32_t index, rw_kind target, int32_t* reference) {
    mark_context* marks = context;
    const int32_t* target_marks = marks->removal->new_index[target];
    int32_t* own = &marks->removal->new_index[kind][index];
    if (*reference < 0 || target_marks[*reference] == 0 || *own != 0) {
        return;
    }
    *own = -1;
    marks->removal->removed_count[kind]++;
    marks->dependents++;
    int room = (int)(sizeof marks->names - marks->length);
    int written = snprintf(marks->names + marks->length, (size_t)room, "%s%s/%s",
                           marks->dependents > 1 ? ", " : "", kind_names[kind],
                           rw_model_name(marks->model, kind, index));
    if (written < room - 4) {
        marks->length += (size_t)written;
    } else { // no room: what was begun goes, dots stand for the rest
        snprintf(marks->names + marks->length, (size_t)room, "%s",
                 marks->length + 1 < sizeof marks->names ? "..." : "");
        marks->length = sizeof marks->names - 1;
    }
}

rw_status rw_model_plan_removal(const rw_model* model, rw_kind kind, int32_t index, bool cascade,
                                rw_removal* removal, rw_error* error) {
    *removal = (rw_removal){.alloc = model->alloc};
    RW_ASSERT(index >= 0 && index < rw_model_count(model, kind));
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        int32_t count = rw_model_count(model, (rw_kind)k);
        removal->new_index[k] = rw_alloc_array(model->alloc, (size_t)count, sizeof(int32_t));
        if (removal->new_index[k] == NULL) {
            return out_of_memory(error, (rw_kind)k);
        }
    }
    removal->new_index[kind][index] = -1;
    removal->removed_count[kind] = 1;
    mark_context marks = {.removal = removal, .model = model};
    union {
        const rw_model* constant;
        rw_model* plain;
    } view = {.constant = model}; // marking only reads the references
    visit_references(view.plain, mark, &marks);
    if (marks.dependents > 0 && !cascade) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "%s \"%s\" is still used by %s",
                kind_names[kind], rw_model_name(model, kind, index), marks.names);
    }
    // Marks become new indices.
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        if (removal->removed_count[k] == 0) {
            rw_alloc_free(removal->alloc, removal->new_index[k]);
            removal->new_index[k] = NULL;
            continue;
        }
        int32_t next = 0;
        for (int32_t i = 0; i < rw_model_count(model, (rw_kind)k); i++) {
            removal->new_index[k][i] = removal->new_index[k][i] < 0 ? -1 : next++;
        }
    }
    return RW_STATUS_OK;
}

void rw_model_removal_finish(rw_removal* removal) {
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        rw_alloc_free(removal->alloc, removal->new_index[k]);
        removal->new_index[k] = NULL;
    }
}

static void renew_reference(void* context, rw_kind kind, int32_t index, rw_kind target,
                            int32_t* reference) {
    (void)kind;
    (void)index;
    renew(reference, ((const rw_removal*)context)->new_index[target]);
}

// Moves the rows of the bodies' arrays with their records.
static void move_body_rows(rw_bodies* bodies, int32_t from, int32_t to) {
    bodies->kind[to] = bodies->kind[from];
    bodies->mass[to] = bodies->mass[from];
    bodies->inverse_mass[to] = bodies->inverse_mass[from];
    memmove(bodies->inertia + 6 * to, bodies->inertia + 6 * from, 6 * sizeof(double));
    memmove(bodies->inverse_inertia + 6 * to, bodies->inverse_inertia + 6 * from,
            6 * sizeof(double));
    memmove(bodies->center_of_mass + 3 * to, bodies->center_of_mass + 3 * from,
            3 * sizeof(double));
}

static void remove_records(rw_model* model, rw_kind kind, const int32_t* new_index) {
    record_table table = table_of(model, kind);
    int32_t count = *table.count;
    // Names first: the table compares through ids that must still lead to their records.
    for (int32_t i = 0; i < count; i++) {
        if (new_index[i] < 0) {
            rw_names_remove(&model->names[kind], rw_model_name(model, kind, i));
        }
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        rw_id id = rw_model_id(model, kind, i);
        if (new_index[i] < 0) {
            release_record(model, kind, i);
            rw_id_pool_remove(&model->ids[kind], id);
            continue;
        }
        if (kept != i) {
            memcpy(record_at(table, kept), record_at(table, i), table.stride);
            rw_id_pool_move(&model->ids[kind], id, kept);
            if (kind == RW_KIND_BODY) {
                move_body_rows(&model->bodies, i, kept);
            }
        }
        kept++;
    }
    *table.count = kept;
}

static void lay_out_joints(rw_model* model) {
    rw_joints* joints = &model->joints;
    joints->coordinate_count = 0;
    joints->rate_count = 0;
    for (int32_t i = 0; i < joints->count; i++) {
        joints->items[i].coordinate_first = joints->coordinate_count;
        joints->items[i].rate_first = joints->rate_count;
        joints->coordinate_count += joints->items[i].coordinate_count;
        joints->rate_count += joints->items[i].rate_count;
    }
}

void rw_model_apply_removal(rw_model* model, const rw_removal* removal) {
    // Wrenches on what goes, go.
    rw_applied* applied = &model->applied;
    int32_t kept = 0;
    for (int32_t i = 0; i < applied->count; i++) {
        rw_applied_wrench wrench = applied->items[i];
        bool had_body = wrench.body >= 0, had_rod = wrench.rod >= 0;
        renew(&wrench.body, removal->new_index[RW_KIND_BODY]);
        renew(&wrench.rod, removal->new_index[RW_KIND_ROD]);
        if ((!had_body || wrench.body >= 0) && (!had_rod || wrench.rod >= 0)) {
            applied->items[kept++] = wrench;
        }
    }
    applied->count = kept;
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        if (removal->new_index[k] != NULL) {
            remove_records(model, (rw_kind)k, removal->new_index[k]);
        }
    }
    union {
        const rw_removal* constant;
        void* plain;
    } view = {.constant = removal};
    visit_references(model, renew_reference, view.plain);
    lay_out_joints(model);
    lay_out_rods(model);
    model->topology_revision++;
}

// ---- Whole scenes ----

#define LOAD_ALL(plural, singular, member_count, KIND)                                             \
    do {                                                                                           \
        if (scene->member_count > COUNT_MAX ||                                                     \
            rw_model_reserve(model, KIND, (int32_t)scene->member_count) != RW_STATUS_OK) {         \
            return out_of_memory(error, KIND);                                                     \
        }                                                                                          \
        for (size_t i = 0; i < scene->member_count; i++) {                                         \
            rw_status status =                                                                     \
                rw_model_add_##singular(model, &scene->plural[i], NULL, error);                    \
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

rw_status rw_model_add_wrench(rw_model* model, const rw_applied_wrench* wrench) {
    rw_applied* applied = &model->applied;
    if (applied->count == applied->capacity) {
        if (applied->capacity > INT32_MAX / 4) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
        int32_t capacity = applied->capacity < CAPACITY_MIN ? CAPACITY_MIN : applied->capacity * 2;
        RW_TRY(grow(model->alloc, &applied->items, sizeof *applied->items, capacity));
        applied->capacity = capacity;
    }
    applied->items[applied->count++] = *wrench;
    return RW_STATUS_OK;
}

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
