#include "server/dispatch/scene_from_message.h"

#include <stdint.h>
#include <string.h>

#include "solvers/base/check.h"

// ---- Parts of fixed shape ----

// Copies an array of `shape` numbers; absent leaves `out` as it is.
static rw_status take(const double* values, size_t count, size_t shape, const char* path,
                      double* out, rw_error* error) {
    if (count == 0) {
        return RW_STATUS_OK;
    }
    if (count != shape) {
        RW_FAIL(error, INVALID_ARGUMENT, path, "must hold %zu numbers, got %zu", shape, count);
    }
    memcpy(out, values, shape * sizeof *out);
    return RW_STATUS_OK;
}

#define TAKE(member, path, shape, out)                                                             \
    RW_TRY(take((member), member##_count, (shape), (path), (out), error))

// Puts `prefix` before the path of an error on its way out.
#define WITHIN(expression, ...)                                                                    \
    do {                                                                                           \
        rw_status within_status_ = (expression);                                                   \
        if (within_status_ != RW_STATUS_OK) {                                                      \
            return error != NULL ? rw_status_prefix(error, __VA_ARGS__) : within_status_;          \
        }                                                                                          \
    } while (0)

static void take_text(char* to, const char* from) { memcpy(to, from, RW_NAME_CAPACITY); }

static rw_status out_of_memory(rw_error* error) {
    RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory to take the message in");
}

static rw_status missing(const char* path, const char* choices, rw_error* error) {
    RW_FAIL(error, INVALID_ARGUMENT, path, "must be given: %s", choices);
}

static rw_status take_frame(bool has, const rw_pb_Pose* pose, rw_frame* frame, rw_error* error) {
    if (!has) {
        return RW_STATUS_OK;
    }
    TAKE(pose->position, "position", 3, frame->position);
    TAKE(pose->rotation, "rotation", 4, frame->rotation);
    return RW_STATUS_OK;
}

// Where the message and the model number their choices alike, a cast translates them.
#define SAME(model, message) _Static_assert((int)(model) == (int)(message), "choices are numbered alike")
SAME(RW_BODY_DYNAMIC, rw_pb_Body_Kind_DYNAMIC);
SAME(RW_BODY_KINEMATIC, rw_pb_Body_Kind_KINEMATIC);
SAME(RW_BODY_STATIC, rw_pb_Body_Kind_STATIC);
SAME(RW_JOINT_FIXED, rw_pb_Joint_Type_FIXED);
SAME(RW_JOINT_REVOLUTE, rw_pb_Joint_Type_REVOLUTE);
SAME(RW_JOINT_PRISMATIC, rw_pb_Joint_Type_PRISMATIC);
SAME(RW_JOINT_CYLINDRICAL, rw_pb_Joint_Type_CYLINDRICAL);
SAME(RW_JOINT_PLANAR, rw_pb_Joint_Type_PLANAR);
SAME(RW_JOINT_UNIVERSAL, rw_pb_Joint_Type_UNIVERSAL);
SAME(RW_JOINT_SPHERICAL, rw_pb_Joint_Type_SPHERICAL);
SAME(RW_JOINT_DISTANCE, rw_pb_Joint_Type_DISTANCE);
SAME(RW_MOTOR_NONE, rw_pb_Motor_Mode_NONE);
SAME(RW_MOTOR_POSITION, rw_pb_Motor_Mode_POSITION);
SAME(RW_MOTOR_VELOCITY, rw_pb_Motor_Mode_VELOCITY);
SAME(RW_MOTOR_EFFORT, rw_pb_Motor_Mode_EFFORT);
SAME(RW_ROD_ELEMENTS, rw_pb_Rod_Method_FINITE_ELEMENT);
SAME(RW_ROD_RIGID_CHAIN, rw_pb_Rod_Method_RIGID_CHAIN);
SAME(RW_REST_DEFAULT, rw_pb_Rod_Rest_DEFAULT);
SAME(RW_REST_STRAIGHT, rw_pb_Rod_Rest_STRAIGHT);
SAME(RW_REST_AS_CREATED, rw_pb_Rod_Rest_AS_CREATED);
SAME(RW_REST_GIVEN, rw_pb_Rod_Rest_GIVEN);
SAME(RW_ATTACH_PIN, rw_pb_Attachment_Kind_PIN);
SAME(RW_ATTACH_CLAMP, rw_pb_Attachment_Kind_CLAMP);
SAME(RW_ATTACH_PIN_SEGMENT, rw_pb_Attachment_Kind_PIN_SEGMENT);
SAME(RW_LOAD_WORLD, rw_pb_Force_Frame_WORLD);
SAME(RW_LOAD_BODY, rw_pb_Force_Frame_BODY);
SAME(RW_DEVICE_AUTO, rw_pb_Solver_Device_AUTO);
SAME(RW_DEVICE_CPU, rw_pb_Solver_Device_CPU);
SAME(RW_DEVICE_GPU, rw_pb_Solver_Device_GPU);
SAME(RW_LAMBDA_EXACT, rw_pb_Solver_Scr_Lambda_EXACT);
SAME(RW_LAMBDA_APPROXIMATE, rw_pb_Solver_Scr_Lambda_APPROXIMATE);
SAME(RW_SCR_ORDER_COLOURED, rw_pb_Solver_Scr_Order_COLOURED);
SAME(RW_SCR_ORDER_INDEX, rw_pb_Solver_Scr_Order_INDEX);

// ---- Arrays of any length: in the message, or a blob in their place ----

// One array field of a message that may name blobs.
typedef struct array_slot {
    const char* field;
    rw_wire_array wire;
    rw_doubles* doubles; // one of the two
    rw_uints* uints;
} array_slot;

static size_t width_of(const array_slot* slot) {
    return slot->doubles != NULL ? sizeof(double) : sizeof(uint32_t);
}

static rw_status take_doubles(rw_wire_array wire, rw_arena* arena, rw_doubles* view,
                              rw_error* error) {
    view->count = wire.count;
    view->data = wire.count > 0 ? rw_wire_view_f64(wire, arena) : NULL;
    return wire.count > 0 && view->data == NULL ? out_of_memory(error) : RW_STATUS_OK;
}

static rw_status take_wire(const array_slot* slot, rw_arena* arena, rw_error* error) {
    if (slot->doubles != NULL) {
        return take_doubles(slot->wire, arena, slot->doubles, error);
    }
    slot->uints->count = slot->wire.count;
    slot->uints->data = slot->wire.count > 0 ? rw_wire_view_u32(slot->wire, arena) : NULL;
    return slot->wire.count > 0 && slot->uints->data == NULL ? out_of_memory(error)
                                                             : RW_STATUS_OK;
}

// Makes the slot's view lead into the blob; copies only what is not aligned there.
static rw_status take_blob(const array_slot* slot, const rw_pb_BlobField* blob,
                           const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                           rw_error* error) {
    if (blobs == NULL || blobs->find == NULL) {
        RW_FAIL(error, NOT_FOUND, "blob", "nothing was uploaded");
    }
    const void* bytes;
    uint64_t size;
    rw_status status = blobs->find(blobs->context, blob->blob, &bytes, &size, error);
    if (status != RW_STATUS_OK) {
        if (error != NULL) {
            memcpy(error->path, "blob", sizeof "blob");
        }
        return status;
    }
    size_t width = width_of(slot);
    if (blob->offset % 4 != 0 || blob->offset > size) {
        RW_FAIL(error, OUT_OF_RANGE, "offset", "must be a multiple of 4 and at most %llu, got %llu",
                (unsigned long long)size, (unsigned long long)blob->offset);
    }
    uint64_t left = size - blob->offset, count = blob->count;
    if (count == 0) {
        count = left / width;
        if (left % width != 0) {
            RW_FAIL(error, INVALID_ARGUMENT, "count",
                    "must be given: %llu bytes are not a multiple of %zu", (unsigned long long)left,
                    width);
        }
    }
    if (count > left / width) {
        RW_FAIL(error, OUT_OF_RANGE, "count", "must be at most %llu, got %llu",
                (unsigned long long)(left / width), (unsigned long long)count);
    }
    const unsigned char* start = (const unsigned char*)bytes + blob->offset;
    const void* data = start;
    if ((uintptr_t)start % width != 0) {
        void* copy = rw_arena_array(arena, (size_t)count, width);
        if (copy == NULL) {
            return out_of_memory(error);
        }
        memcpy(copy, start, (size_t)count * width);
        data = copy;
    }
    if (slot->doubles != NULL) {
        *slot->doubles = (rw_doubles){count > 0 ? data : NULL, (size_t)count};
    } else {
        *slot->uints = (rw_uints){count > 0 ? data : NULL, (size_t)count};
    }
    return RW_STATUS_OK;
}

static rw_status take_named_blob(const array_slot* slots, size_t slot_count,
                                 const rw_pb_BlobField* blob,
                                 const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                 rw_error* error) {
    for (size_t i = 0; i < slot_count; i++) {
        if (strcmp(blob->field, slots[i].field) == 0) {
            size_t present = slots[i].doubles != NULL ? slots[i].doubles->count
                                                      : slots[i].uints->count;
            if (present != 0) {
                RW_FAIL(error, INVALID_ARGUMENT, "field", "%s is given twice", blob->field);
            }
            return take_blob(&slots[i], blob, blobs, arena, error);
        }
    }
    RW_FAIL(error, INVALID_ARGUMENT, "field", "no array here is called \"%s\"", blob->field);
}

static rw_status take_arrays(const array_slot* slots, size_t slot_count, const rw_wire_list* list,
                             const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                             rw_error* error) {
    for (size_t i = 0; i < slot_count; i++) {
        RW_TRY(take_wire(&slots[i], arena, error));
    }
    rw_wire_cursor cursor = rw_wire_begin(list);
    rw_pb_BlobField blob;
    while (rw_wire_next_message(&cursor, rw_pb_BlobField_fields, &blob, sizeof blob)) {
        WITHIN(take_named_blob(slots, slot_count, &blob, blobs, arena, error), "blobs[%u]",
               cursor.index - 1);
    }
    return RW_STATUS_OK;
}

// ---- Bodies ----

static rw_status take_shape(const rw_pb_Shape* message, const rw_scene_from_message_blobs* blobs,
                            rw_arena* arena, rw_shape_desc* desc, rw_error* error) {
    *desc = (rw_shape_desc){.frame = RW_FRAME_IDENTITY, .density = message->density};
    TAKE(message->position, "position", 3, desc->frame.position);
    TAKE(message->rotation, "rotation", 4, desc->frame.rotation);
    switch (message->which_geometry) {
    case rw_pb_Shape_sphere_tag:
        desc->kind = RW_SHAPE_SPHERE;
        desc->radius = message->geometry.sphere.radius;
        return RW_STATUS_OK;
    case rw_pb_Shape_capsule_tag:
        desc->kind = RW_SHAPE_CAPSULE;
        desc->radius = message->geometry.capsule.radius;
        desc->half_length = message->geometry.capsule.half_length;
        return RW_STATUS_OK;
    case rw_pb_Shape_box_tag:
        desc->kind = RW_SHAPE_BOX;
        TAKE(message->geometry.box.half_extents, "box.half_extents", 3, desc->half_extents);
        return RW_STATUS_OK;
    case rw_pb_Shape_cylinder_tag:
        desc->kind = RW_SHAPE_CYLINDER;
        desc->radius = message->geometry.cylinder.radius;
        desc->half_length = message->geometry.cylinder.half_length;
        return RW_STATUS_OK;
    case rw_pb_Shape_plane_tag:
        desc->kind = RW_SHAPE_PLANE;
        return RW_STATUS_OK;
    case rw_pb_Shape_hull_tag: {
        desc->kind = RW_SHAPE_HULL;
        const array_slot slots[] = {
            {"vertices", message->geometry.hull.vertices, &desc->vertices, NULL}};
        WITHIN(take_arrays(slots, RW_COUNT_OF(slots), &message->geometry.hull.blobs, blobs, arena,
                           error),
               "hull");
        return RW_STATUS_OK;
    }
    case rw_pb_Shape_mesh_tag: {
        desc->kind = RW_SHAPE_MESH;
        const array_slot slots[] = {
            {"vertices", message->geometry.mesh.vertices, &desc->vertices, NULL},
            {"triangles", message->geometry.mesh.triangles, NULL, &desc->triangles}};
        WITHIN(take_arrays(slots, RW_COUNT_OF(slots), &message->geometry.mesh.blobs, blobs, arena,
                           error),
               "mesh");
        return RW_STATUS_OK;
    }
    default:
        return missing("geometry", "sphere, capsule, box, cylinder, plane, hull or mesh", error);
    }
}

rw_status rw_scene_from_message_body(const rw_pb_Body* message,
                                     const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                     rw_body_desc* desc, rw_error* error) {
    rw_scene_init_body(desc);
    take_text(desc->name, message->name);
    desc->kind = (rw_body_kind)message->kind;
    desc->mass = message->mass;
    desc->density = message->density;
    // Compared so that NaN counts as given, and is refused by the model.
    desc->has_mass = !(message->mass == 0);
    desc->has_density = !(message->density == 0);
    desc->has_inertia = message->inertia_count > 0;
    desc->has_center_of_mass = message->center_of_mass_count > 0;
    TAKE(message->inertia, "inertia", 6, desc->inertia);
    TAKE(message->center_of_mass, "center_of_mass", 3, desc->center_of_mass);
    TAKE(message->position, "position", 3, desc->position);
    TAKE(message->rotation, "rotation", 4, desc->rotation);
    TAKE(message->linear_velocity, "linear_velocity", 3, desc->linear_velocity);
    TAKE(message->angular_velocity, "angular_velocity", 3, desc->angular_velocity);
    desc->friction = message->friction;
    desc->restitution = message->restitution;
    desc->collision_group = message->collision_group;
    desc->collision_mask = message->has_collision_mask ? message->collision_mask : UINT32_MAX;
    if (message->shapes.count == 0) {
        return RW_STATUS_OK;
    }
    rw_shape_desc* shapes = rw_arena_array(arena, message->shapes.count, sizeof *shapes);
    if (shapes == NULL) {
        return out_of_memory(error);
    }
    desc->shapes = shapes;
    rw_wire_cursor cursor = rw_wire_begin(&message->shapes);
    rw_pb_Shape shape;
    while (rw_wire_next_message(&cursor, rw_pb_Shape_fields, &shape, sizeof shape)) {
        WITHIN(take_shape(&shape, blobs, arena, &shapes[desc->shape_count], error), "shapes[%zu]",
               desc->shape_count);
        desc->shape_count++;
    }
    return RW_STATUS_OK;
}

// ---- Joints ----

rw_status rw_scene_from_message_motor(const rw_pb_Motor* message, rw_motor_desc* desc,
                                      rw_error* error) {
    (void)error;
    *desc = (rw_motor_desc){
        .mode = (rw_motor_mode)message->mode,
        .target_count = message->target_count,
        .stiffness = message->stiffness,
        .damping = message->damping,
        .max_effort = message->max_effort,
        .has_max_effort = message->has_max_effort,
    };
    memcpy(desc->target, message->target, message->target_count * sizeof *desc->target);
    return RW_STATUS_OK;
}

rw_status rw_scene_from_message_joint(const rw_pb_Joint* message, rw_joint_desc* desc,
                                      rw_error* error) {
    rw_scene_init_joint(desc);
    take_text(desc->name, message->name);
    take_text(desc->parent, message->parent);
    take_text(desc->child, message->child);
    desc->type = (rw_joint_type)message->type;
    WITHIN(take_frame(message->has_parent_frame, &message->parent_frame, &desc->parent_frame,
                      error),
           "parent_frame");
    WITHIN(take_frame(message->has_child_frame, &message->child_frame, &desc->child_frame, error),
           "child_frame");
    desc->has_lower_limit = message->has_lower_limit;
    desc->lower_limit = message->lower_limit;
    desc->has_upper_limit = message->has_upper_limit;
    desc->upper_limit = message->upper_limit;
    desc->has_swing_limit = message->has_swing_limit;
    desc->swing_limit = message->swing_limit;
    desc->has_twist_lower_limit = message->has_twist_lower_limit;
    desc->twist_lower_limit = message->twist_lower_limit;
    desc->has_twist_upper_limit = message->has_twist_upper_limit;
    desc->twist_upper_limit = message->twist_upper_limit;
    desc->has_distance = message->has_distance;
    desc->distance = message->distance;
    desc->compliance = message->compliance;
    desc->damping = message->damping;
    desc->collide_connected = message->collide_connected;
    return message->has_motor ? rw_scene_from_message_motor(&message->motor, &desc->motor, error)
                              : RW_STATUS_OK;
}

rw_status rw_scene_from_message_coupling(const rw_pb_Coupling* message, rw_coupling_desc* desc,
                                         rw_error* error) {
    (void)error;
    rw_scene_init_coupling(desc);
    take_text(desc->name, message->name);
    take_text(desc->joint_a, message->joint_a);
    take_text(desc->joint_b, message->joint_b);
    desc->coordinate_a = message->coordinate_a;
    desc->coordinate_b = message->coordinate_b;
    desc->ratio = message->has_ratio ? message->ratio : desc->ratio;
    desc->offset = message->offset;
    desc->compliance = message->compliance;
    return RW_STATUS_OK;
}

// ---- Rods ----

static rw_status take_geometry(const rw_pb_Rod* message, const rw_scene_from_message_blobs* blobs,
                               rw_arena* arena, rw_rod_desc* desc, rw_error* error) {
    switch (message->which_geometry) {
    case rw_pb_Rod_straight_tag: {
        const rw_pb_Rod_Straight* straight = &message->geometry.straight;
        desc->geometry = RW_ROD_STRAIGHT;
        TAKE(straight->start, "straight.start", 3, desc->straight.start);
        TAKE(straight->end, "straight.end", 3, desc->straight.end);
        TAKE(straight->normal, "straight.normal", 3, desc->straight.normal);
        desc->straight.has_normal = straight->normal_count > 0;
        return RW_STATUS_OK;
    }
    case rw_pb_Rod_helix_tag: {
        const rw_pb_Rod_Helix* helix = &message->geometry.helix;
        desc->geometry = RW_ROD_HELIX;
        TAKE(helix->center, "helix.center", 3, desc->helix.center);
        TAKE(helix->axis, "helix.axis", 3, desc->helix.axis);
        TAKE(helix->normal, "helix.normal", 3, desc->helix.normal);
        desc->helix.has_normal = helix->normal_count > 0;
        desc->helix.radius = helix->radius;
        desc->helix.pitch = helix->pitch;
        desc->helix.turns = helix->turns;
        return RW_STATUS_OK;
    }
    case rw_pb_Rod_polyline_tag: {
        const rw_pb_Rod_Polyline* polyline = &message->geometry.polyline;
        desc->geometry = RW_ROD_POLYLINE;
        TAKE(polyline->normal, "polyline.normal", 3, desc->polyline.normal);
        desc->polyline.has_normal = polyline->normal_count > 0;
        const array_slot slots[] = {
            {"positions", polyline->positions, &desc->polyline.positions, NULL},
            {"rotations", polyline->rotations, &desc->polyline.rotations, NULL}};
        WITHIN(take_arrays(slots, RW_COUNT_OF(slots), &polyline->blobs, blobs, arena, error),
               "polyline");
        return RW_STATUS_OK;
    }
    case rw_pb_Rod_graph_tag: {
        const rw_pb_Rod_Graph* graph = &message->geometry.graph;
        desc->geometry = RW_ROD_GRAPH;
        const array_slot slots[] = {
            {"positions", graph->positions, &desc->graph.positions, NULL},
            {"segments", graph->segments, NULL, &desc->graph.segments},
            {"bends", graph->bends, NULL, &desc->graph.bends},
            {"vertex_masses", graph->vertex_masses, &desc->graph.vertex_masses, NULL},
            {"segment_stiffness", graph->segment_stiffness, &desc->graph.segment_stiffness, NULL},
            {"segment_rest_lengths", graph->segment_rest_lengths,
             &desc->graph.segment_rest_lengths, NULL},
            {"segment_rotations", graph->segment_rotations, &desc->graph.segment_rotations, NULL},
            {"bend_stiffness", graph->bend_stiffness, &desc->graph.bend_stiffness, NULL},
            {"bend_rest_rotations", graph->bend_rest_rotations, &desc->graph.bend_rest_rotations,
             NULL}};
        WITHIN(take_arrays(slots, RW_COUNT_OF(slots), &graph->blobs, blobs, arena, error), "graph");
        return RW_STATUS_OK;
    }
    default:
        return missing("geometry", "straight, helix, polyline or graph", error);
    }
}

static rw_status take_section(const rw_pb_Section* message, rw_arena* arena, rw_rod_desc* desc,
                              rw_error* error) {
    bool circle = message->radius.count > 0;
    bool rectangle = !(message->width == 0 && message->height == 0);
    bool general = !(message->area == 0 && message->i1 == 0 && message->i2 == 0 && message->j == 0);
    if ((int)circle + (int)rectangle + (int)general > 1) {
        RW_FAIL(error, INVALID_ARGUMENT, "section",
                "must be one of: radius; width and height; area, i1, i2 and j");
    }
    desc->section = rectangle ? RW_SECTION_RECTANGLE
                    : general ? RW_SECTION_GENERAL
                              : RW_SECTION_CIRCLE;
    desc->section_width = message->width;
    desc->section_height = message->height;
    desc->section_area = message->area;
    desc->section_i1 = message->i1;
    desc->section_i2 = message->i2;
    desc->section_j = message->j;
    return take_doubles(message->radius, arena, &desc->section_radius, error);
}

rw_status rw_scene_from_message_rod(const rw_pb_Rod* message,
                                    const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                    rw_rod_desc* desc, rw_error* error) {
    rw_scene_init_rod(desc);
    take_text(desc->name, message->name);
    RW_TRY(take_geometry(message, blobs, arena, desc, error));
    desc->elements = message->elements;
    desc->order = message->has_order ? message->order : desc->order;
    desc->method = (rw_rod_method)message->method;
    if (message->has_section) {
        RW_TRY(take_section(&message->section, arena, desc, error));
    }
    desc->density = message->density;
    desc->young_modulus = message->young_modulus;
    desc->has_young_modulus = !(message->young_modulus == 0);
    desc->has_poisson_ratio = message->has_poisson_ratio;
    desc->poisson_ratio = message->poisson_ratio;
    desc->has_shear_modulus = message->has_shear_modulus;
    desc->shear_modulus = message->shear_modulus;
    desc->shear_factor = message->has_shear_factor ? message->shear_factor : desc->shear_factor;
    desc->has_stiffness = message->has_stiffness;
    desc->stiffness.ea = message->stiffness.ea;
    desc->stiffness.ga1 = message->stiffness.ga1;
    desc->stiffness.ga2 = message->stiffness.ga2;
    desc->stiffness.ei1 = message->stiffness.ei1;
    desc->stiffness.ei2 = message->stiffness.ei2;
    desc->stiffness.gj = message->stiffness.gj;
    desc->rest = (rw_rod_rest)message->rest;
    RW_TRY(take_doubles(message->rest_curvature, arena, &desc->rest_curvature, error));
    desc->has_rest_length = message->has_rest_length;
    desc->rest_length = message->rest_length;
    desc->damping = message->damping;
    desc->mass_damping = message->mass_damping;
    desc->drag = message->drag;
    desc->quadratic_drag = message->quadratic_drag;
    RW_TRY(take_doubles(message->linear_velocity, arena, &desc->linear_velocity, error));
    RW_TRY(take_doubles(message->angular_velocity, arena, &desc->angular_velocity, error));
    desc->friction = message->friction;
    desc->restitution = message->restitution;
    desc->collision_group = message->collision_group;
    desc->collision_mask = message->has_collision_mask ? message->collision_mask : 0;
    desc->self_collision = message->self_collision;
    desc->contact_radius = message->contact_radius;
    return RW_STATUS_OK;
}

// ---- Attachments, forces, inputs ----

rw_status rw_scene_from_message_attachment(const rw_pb_Attachment* message,
                                           rw_attachment_desc* desc, rw_error* error) {
    rw_scene_init_attachment(desc);
    take_text(desc->name, message->name);
    take_text(desc->rod, message->rod);
    take_text(desc->body, message->body);
    desc->has_s = message->which_place == rw_pb_Attachment_s_tag;
    desc->has_node = message->which_place == rw_pb_Attachment_node_tag;
    desc->s = desc->has_s ? message->place.s : 0;
    desc->node = desc->has_node ? message->place.node : 0;
    desc->kind = (rw_attachment_kind)message->kind;
    desc->has_position = message->position_count > 0;
    desc->has_rotation = message->rotation_count > 0;
    TAKE(message->position, "position", 3, desc->position);
    TAKE(message->rotation, "rotation", 4, desc->rotation);
    desc->compliance = message->compliance;
    return RW_STATUS_OK;
}

static rw_status take_anchor(bool has, const rw_pb_Anchor* message, rw_point_desc* desc,
                             rw_error* error) {
    if (!has) {
        return RW_STATUS_OK; // the world's origin
    }
    take_text(desc->body, message->body);
    take_text(desc->rod, message->rod);
    TAKE(message->position, "position", 3, desc->position);
    desc->has_s = message->which_place == rw_pb_Anchor_s_tag;
    desc->has_node = message->which_place == rw_pb_Anchor_node_tag;
    desc->s = desc->has_s ? message->place.s : 0;
    desc->node = desc->has_node ? message->place.node : 0;
    return RW_STATUS_OK;
}

static rw_status take_load(const rw_pb_Force_Load* message, rw_force_desc* desc, rw_error* error) {
    rw_point_desc* at = &desc->load.at;
    take_text(at->body, message->body);
    take_text(at->rod, message->rod);
    TAKE(message->position, "load.position", 3, at->position);
    at->has_s = message->which_place == rw_pb_Force_Load_s_tag;
    at->has_node = message->which_place == rw_pb_Force_Load_node_tag;
    at->s = at->has_s ? message->place.s : 0;
    at->node = at->has_node ? message->place.node : 0;
    TAKE(message->force, "load.force", 3, desc->load.force);
    TAKE(message->torque, "load.torque", 3, desc->load.torque);
    desc->load.frame = (rw_load_frame)message->frame;
    return RW_STATUS_OK;
}

rw_status rw_scene_from_message_force(const rw_pb_Force* message, rw_force_desc* desc,
                                      rw_error* error) {
    rw_scene_init_force(desc);
    take_text(desc->name, message->name);
    switch (message->which_law) {
    case rw_pb_Force_spring_damper_tag: {
        const rw_pb_Force_SpringDamper* spring = &message->law.spring_damper;
        desc->kind = RW_FORCE_SPRING_DAMPER;
        WITHIN(take_anchor(spring->has_a, &spring->a, &desc->spring_damper.a, error),
               "spring_damper.a");
        WITHIN(take_anchor(spring->has_b, &spring->b, &desc->spring_damper.b, error),
               "spring_damper.b");
        desc->spring_damper.stiffness = spring->stiffness;
        desc->spring_damper.damping = spring->damping;
        desc->spring_damper.rest_length = spring->rest_length;
        desc->spring_damper.has_rest_length = spring->has_rest_length;
        return RW_STATUS_OK;
    }
    case rw_pb_Force_load_tag:
        desc->kind = RW_FORCE_LOAD;
        return take_load(&message->law.load, desc, error);
    case rw_pb_Force_drag_tag:
        desc->kind = RW_FORCE_DRAG;
        take_text(desc->drag.at.body, message->law.drag.body);
        desc->drag.linear = message->law.drag.linear;
        desc->drag.quadratic = message->law.drag.quadratic;
        desc->drag.angular = message->law.drag.angular;
        return RW_STATUS_OK;
    default:
        return missing("law", "spring_damper, load or drag", error);
    }
}

// A small array that lies in the message struct itself, which the caller may drop: copied.
static rw_status take_small(const double* values, size_t count, rw_arena* arena, rw_doubles* view,
                            rw_error* error) {
    double* copy = rw_arena_array(arena, count, sizeof *copy);
    if (copy == NULL) {
        return out_of_memory(error);
    }
    memcpy(copy, values, count * sizeof *copy);
    *view = (rw_doubles){count > 0 ? copy : NULL, count};
    return RW_STATUS_OK;
}

rw_status rw_scene_from_message_input(const rw_pb_Input* message, rw_arena* arena,
                                      rw_input_desc* desc, rw_error* error) {
    rw_scene_init_input(desc);
    take_text(desc->name, message->name);
    _Static_assert(sizeof desc->target == sizeof message->target, "targets are as long");
    memcpy(desc->target, message->target, sizeof desc->target);
    switch (message->which_function) {
    case rw_pb_Input_piecewise_linear_tag: {
        const rw_pb_Input_PiecewiseLinear* linear = &message->function.piecewise_linear;
        desc->kind = RW_INPUT_PIECEWISE_LINEAR;
        RW_TRY(take_doubles(linear->time, arena, &desc->time, error));
        return take_doubles(linear->value, arena, &desc->value, error);
    }
    case rw_pb_Input_cubic_tag: {
        const rw_pb_Input_Cubic* cubic = &message->function.cubic;
        desc->kind = RW_INPUT_CUBIC;
        RW_TRY(take_doubles(cubic->time, arena, &desc->time, error));
        RW_TRY(take_doubles(cubic->value, arena, &desc->value, error));
        return take_doubles(cubic->slope, arena, &desc->slope, error);
    }
    case rw_pb_Input_sine_tag: {
        const rw_pb_Input_Sine* sine = &message->function.sine;
        desc->kind = RW_INPUT_SINE;
        desc->frequency = sine->frequency;
        desc->phase = sine->phase;
        RW_TRY(take_small(sine->amplitude, sine->amplitude_count, arena, &desc->amplitude, error));
        return take_small(sine->offset, sine->offset_count, arena, &desc->offset, error);
    }
    default:
        return missing("function", "piecewise_linear, cubic or sine", error);
    }
}

// ---- Solvers and the whole scene ----

#define SET(to, message, field)                                                                    \
    do {                                                                                           \
        if ((message)->has_##field) {                                                              \
            (to) = (message)->field;                                                               \
        }                                                                                          \
    } while (0)

static void take_dae(const rw_pb_Solver_Dae* message, rw_solver_options* options) {
    static const rw_integrator integrators[] = {
        [rw_pb_Solver_Dae_Integrator_RK4] = RW_INTEGRATOR_RK4,
        [rw_pb_Solver_Dae_Integrator_EULER] = RW_INTEGRATOR_EULER,
        [rw_pb_Solver_Dae_Integrator_SYMPLECTIC_EULER] = RW_INTEGRATOR_SYMPLECTIC_EULER,
        [rw_pb_Solver_Dae_Integrator_RK45] = RW_INTEGRATOR_RK45,
        [rw_pb_Solver_Dae_Integrator_BDF] = RW_INTEGRATOR_BDF,
    };
    static const rw_stabilization stabilizations[] = {
        [rw_pb_Solver_Dae_Stabilization_PROJECTION] = RW_STABILIZATION_PROJECTION,
        [rw_pb_Solver_Dae_Stabilization_NONE] = RW_STABILIZATION_NONE,
        [rw_pb_Solver_Dae_Stabilization_BAUMGARTE] = RW_STABILIZATION_BAUMGARTE,
    };
    if (message->has_integrator && message->integrator < RW_COUNT_OF(integrators)) {
        options->dae.integrator = integrators[message->integrator];
    }
    if (message->has_stabilization && message->stabilization < RW_COUNT_OF(stabilizations)) {
        options->dae.stabilization = stabilizations[message->stabilization];
    }
    SET(options->dae.relative_tolerance, message, relative_tolerance);
    SET(options->dae.absolute_tolerance, message, absolute_tolerance);
    SET(options->dae.baumgarte_alpha, message, baumgarte_alpha);
    SET(options->dae.baumgarte_beta, message, baumgarte_beta);
    options->dae.has_baumgarte_alpha |= message->has_baumgarte_alpha;
    options->dae.has_baumgarte_beta |= message->has_baumgarte_beta;
}

rw_status rw_scene_from_message_solver(const rw_pb_Solver* message, rw_solver_options* options,
                                       rw_error* error) {
    (void)error;
    if (message->has_rigid) {
        options->rigid = message->rigid == rw_pb_RigidSolver_Method_DAE ? RW_SOLVER_DAE
                                                                        : RW_SOLVER_XPBD;
    }
    if (message->has_rods) {
        options->rods =
            message->rods == rw_pb_RodSolver_Method_SCR ? RW_SOLVER_SCR : RW_SOLVER_XPBD;
    }
    if (message->has_device) {
        options->device = (rw_device)message->device;
    }
    SET(options->fast, message, fast);
    if (message->has_xpbd) {
        SET(options->xpbd.iterations, &message->xpbd, iterations);
        SET(options->xpbd.residual_tolerance, &message->xpbd, residual_tolerance);
    }
    if (message->has_dae) {
        take_dae(&message->dae, options);
    }
    if (message->has_scr) {
        SET(options->scr.iterations, &message->scr, iterations);
        SET(options->scr.residual_tolerance, &message->scr, residual_tolerance);
        if (message->scr.has_lambda) {
            options->scr.lambda = (rw_scr_lambda)message->scr.lambda;
        }
        if (message->scr.has_order) {
            options->scr.order = (rw_scr_order)message->scr.order;
        }
        SET(options->scr.initial_guess_adaptive, &message->scr, adaptive_start);
    }
    if (message->has_contact) {
        SET(options->contact.compliance, &message->contact, compliance);
        SET(options->contact.stiffness, &message->contact, stiffness);
        SET(options->contact.damping, &message->contact, damping);
        SET(options->contact.slip_velocity, &message->contact, slip_velocity);
        SET(options->contact.margin, &message->contact, margin);
    }
    return RW_STATUS_OK;
}

// Walks one list of the scene: `convert` is given `one` (message), `at` (description).
#define TAKE_ALL(plural, Type, desc_type, member_count, convert)                                   \
    do {                                                                                           \
        desc_type* descs = rw_arena_array(arena, message->plural.count, sizeof *descs);            \
        if (descs == NULL) {                                                                       \
            return out_of_memory(error);                                                           \
        }                                                                                          \
        scene->plural = descs;                                                                     \
        rw_wire_cursor cursor = rw_wire_begin(&message->plural);                                   \
        rw_pb_##Type one;                                                                          \
        while (rw_wire_next_message(&cursor, rw_pb_##Type##_fields, &one, sizeof one)) {           \
            desc_type* at = &descs[scene->member_count];                                           \
            WITHIN(convert, #plural "[%zu]", scene->member_count);                                 \
            scene->member_count++;                                                                 \
        }                                                                                          \
    } while (0)

rw_status rw_scene_from_message(const rw_pb_Scene* message,
                                const rw_scene_from_message_blobs* blobs, rw_arena* arena,
                                rw_scene* scene, rw_error* error) {
    rw_scene_init(scene);
    _Static_assert(sizeof scene->name == sizeof message->name, "scene names are as long");
    memcpy(scene->name, message->name, sizeof scene->name);
    TAKE(message->gravity, "gravity", 3, scene->gravity);
    TAKE(message->wind, "wind", 3, scene->wind);
    SET(scene->time_step, message, time_step);
    SET(scene->substeps, message, substeps);
    if (message->has_solver) {
        WITHIN(rw_scene_from_message_solver(&message->solver, &scene->solver, error), "solver");
    }
    TAKE_ALL(bodies, Body, rw_body_desc, body_count,
             rw_scene_from_message_body(&one, blobs, arena, at, error));
    TAKE_ALL(joints, Joint, rw_joint_desc, joint_count,
             rw_scene_from_message_joint(&one, at, error));
    TAKE_ALL(couplings, Coupling, rw_coupling_desc, coupling_count,
             rw_scene_from_message_coupling(&one, at, error));
    TAKE_ALL(rods, Rod, rw_rod_desc, rod_count,
             rw_scene_from_message_rod(&one, blobs, arena, at, error));
    TAKE_ALL(attachments, Attachment, rw_attachment_desc, attachment_count,
             rw_scene_from_message_attachment(&one, at, error));
    TAKE_ALL(forces, Force, rw_force_desc, force_count,
             rw_scene_from_message_force(&one, at, error));
    TAKE_ALL(inputs, Input, rw_input_desc, input_count,
             rw_scene_from_message_input(&one, arena, at, error));
    return RW_STATUS_OK;
}
