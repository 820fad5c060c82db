// Adding objects: what came is validated, its references are resolved, its arrays are copied
// (desc_fields.h), and the record goes to the end of its kind.
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/desc_fields.h"
#include "solvers/model/drive.h"
#include "solvers/model/model_private.h"
#include "solvers/model/validate.h"

// Room for one more of a kind, under a name that is free.
static rw_status begin_add(rw_model* model, rw_kind kind, const char* name, rw_error* error) {
    if (rw_names_find(&model->names[kind], name) != RW_ID_NONE) {
        RW_FAIL(error, ALREADY_EXISTS, "name", "another %s is named \"%s\"",
                rw_model_kind_name(kind), name);
    }
    if (rw_model_reserve(model, kind, 1) != RW_STATUS_OK) {
        return rw_model_private_out_of_memory(error, kind);
    }
    return RW_STATUS_OK;
}

// Counts the record that was written at [count] and gives it an id. Can't fail after begin_add.
static void end_add(rw_model* model, rw_kind kind, rw_id* id) {
    rw_model_private_records table = rw_model_private_table(model, kind);
    int32_t index = *table.count;
    rw_id given = rw_id_pool_add(&model->ids[kind], index);
    RW_CHECK(given != RW_ID_NONE);
    memcpy(rw_model_private_record(table, index), &given, sizeof given);
    (*table.count)++;
    rw_names_add(&model->names[kind], rw_model_private_record(table, index) + table.name_offset,
                 given);
    model->topology_revision++;
    if (id != NULL) {
        *id = given;
    }
}

// ---- Bodies ----

rw_status rw_model_add_body(rw_model* model, const rw_body_desc* desc, rw_id* id, rw_error* error) {
    RW_TRY(rw_validate_body(desc, error));
    RW_TRY(begin_add(model, RW_KIND_BODY, desc->name, error));
    rw_mass_properties mass;
    RW_TRY(rw_model_private_derive_mass(model, desc, &mass, error));
    rw_body* body = &model->bodies.items[model->bodies.count];
    memset(body, 0, sizeof *body);
    if (rw_desc_fields_copy(RW_KIND_BODY, &body->desc, desc, model->alloc, 0, &body->owned, NULL) !=
        RW_STATUS_OK) {
        return rw_model_private_out_of_memory(error, RW_KIND_BODY);
    }
    rw_model_private_store_mass(&model->bodies, model->bodies.count, desc->kind, &mass);
    end_add(model, RW_KIND_BODY, id);
    return RW_STATUS_OK;
}

// ---- Joints and couplings ----

rw_status rw_model_add_joint(rw_model* model, const rw_joint_desc* desc, rw_id* id,
                             rw_error* error) {
    RW_TRY(rw_validate_joint(desc, error));
    rw_joint joint = {.desc = *desc};
    RW_TRY(
        rw_model_private_refer(model, RW_KIND_BODY, desc->parent, "parent", &joint.parent, error));
    RW_TRY(rw_model_private_refer(model, RW_KIND_BODY, desc->child, "child", &joint.child, error));
    RW_TRY(begin_add(model, RW_KIND_JOINT, desc->name, error));
    rw_model_private_copy_plain(RW_KIND_JOINT, &joint.desc, desc);
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
    RW_TRY(rw_model_private_refer(model, RW_KIND_JOINT, desc->joint_a, "joint_a", &coupling.joint_a,
                                  error));
    RW_TRY(rw_model_private_refer(model, RW_KIND_JOINT, desc->joint_b, "joint_b", &coupling.joint_b,
                                  error));
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
        return rw_model_private_out_of_memory(error, RW_KIND_ROD);
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
        return rw_model_private_out_of_memory(error, RW_KIND_ROD);
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

// ---- Attachments and forces ----

rw_status rw_model_add_attachment(rw_model* model, const rw_attachment_desc* desc, rw_id* id,
                                  rw_error* error) {
    RW_TRY(rw_validate_attachment(desc, error));
    rw_attachment attachment = {.target = RW_FRAME_IDENTITY};
    RW_TRY(rw_model_private_refer(model, RW_KIND_ROD, desc->rod, "rod", &attachment.rod, error));
    RW_TRY(
        rw_model_private_refer(model, RW_KIND_BODY, desc->body, "body", &attachment.body, error));
    RW_TRY(rw_model_private_resolve_node(model, attachment.rod, desc->has_node, desc->node, desc->s,
                                         "node", &attachment.node, error));
    RW_TRY(begin_add(model, RW_KIND_ATTACHMENT, desc->name, error));
    rw_model_private_copy_plain(RW_KIND_ATTACHMENT, &attachment.desc, desc);
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

rw_status rw_model_add_force(rw_model* model, const rw_force_desc* desc, rw_id* id,
                             rw_error* error) {
    RW_TRY(rw_validate_force(desc, error));
    rw_force force;
    RW_TRY(rw_model_private_resolve_force(model, desc, &force, error));
    RW_TRY(begin_add(model, RW_KIND_FORCE, desc->name, error));
    model->forces.items[model->forces.count] = force;
    end_add(model, RW_KIND_FORCE, id);
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
            return rw_model_private_refer(model, rule->kind, target + length, "target",
                                          &input->index, error);
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
        return rw_model_private_out_of_memory(error, RW_KIND_INPUT);
    }
    input.slope = slope;
    rw_drive_fit_input(&input);
    model->inputs.items[model->inputs.count] = input;
    end_add(model, RW_KIND_INPUT, id);
    return RW_STATUS_OK;
}

// ---- Wrenches ----

rw_status rw_model_add_wrench(rw_model* model, const rw_applied_wrench* wrench) {
    rw_applied* applied = &model->applied;
    if (applied->count == applied->capacity) {
        if (applied->capacity > INT32_MAX / 4) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
        int32_t capacity = applied->capacity < RW_MODEL_PRIVATE_CAPACITY_MIN
                               ? RW_MODEL_PRIVATE_CAPACITY_MIN
                               : applied->capacity * 2;
        RW_TRY(
            rw_model_private_grow(model->alloc, &applied->items, sizeof *applied->items, capacity));
        applied->capacity = capacity;
    }
    applied->items[applied->count++] = *wrench;
    return RW_STATUS_OK;
}
