#include "solvers/model/desc_fields.h"

#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/validate.h"

#define FIELD(struct_type, kind, member, n)                                                        \
    {.name = #member, .type = RW_DESC_##kind, .count = (n), .offset = offsetof(struct_type, member)}
#define LIST(rows, struct_type)                                                                    \
    (rw_desc_fields) { rows, RW_COUNT_OF(rows), sizeof(struct_type) }

#define BODY(kind, member, n) FIELD(rw_body_desc, kind, member, n)
static const rw_desc_field body_fields[] = {
    BODY(TEXT, name, RW_NAME_CAPACITY),
    BODY(ENUM, kind, 3),
    BODY(F64, mass, 1),
    BODY(F64, inertia, 6),
    BODY(F64, center_of_mass, 3),
    BODY(F64, density, 1),
    BODY(BOOL, has_mass, 1),
    BODY(BOOL, has_inertia, 1),
    BODY(BOOL, has_center_of_mass, 1),
    BODY(BOOL, has_density, 1),
    BODY(F64, position, 3),
    BODY(ROTATION, rotation, 4),
    BODY(F64, linear_velocity, 3),
    BODY(F64, angular_velocity, 3),
    BODY(SIZE, shape_count, RW_SHAPES_MAX),
    BODY(F64, friction, 1),
    BODY(F64, restitution, 1),
    BODY(U32, collision_group, 1),
    BODY(U32, collision_mask, 1),
};

#define SHAPE(kind, member, n) FIELD(rw_shape_desc, kind, member, n)
static const rw_desc_field shape_fields[] = {
    SHAPE(ENUM, kind, 7),
    SHAPE(F64, frame.position, 3),
    SHAPE(ROTATION, frame.rotation, 4),
    SHAPE(F64, radius, 1),
    SHAPE(F64, half_length, 1),
    SHAPE(F64, half_extents, 3),
    SHAPE(DOUBLES, vertices, 3),
    SHAPE(UINTS, triangles, 3),
    SHAPE(F64, density, 1),
};

#define JOINT(kind, member, n) FIELD(rw_joint_desc, kind, member, n)
static const rw_desc_field joint_fields[] = {
    JOINT(TEXT, name, RW_NAME_CAPACITY),
    JOINT(ENUM, type, RW_JOINT_TYPE_COUNT),
    JOINT(TEXT, parent, RW_NAME_CAPACITY),
    JOINT(TEXT, child, RW_NAME_CAPACITY),
    JOINT(F64, parent_frame.position, 3),
    JOINT(ROTATION, parent_frame.rotation, 4),
    JOINT(F64, child_frame.position, 3),
    JOINT(ROTATION, child_frame.rotation, 4),
    JOINT(F64, lower_limit, 1),
    JOINT(F64, upper_limit, 1),
    JOINT(BOOL, has_lower_limit, 1),
    JOINT(BOOL, has_upper_limit, 1),
    JOINT(F64, swing_limit, 1),
    JOINT(F64, twist_lower_limit, 1),
    JOINT(F64, twist_upper_limit, 1),
    JOINT(BOOL, has_swing_limit, 1),
    JOINT(BOOL, has_twist_lower_limit, 1),
    JOINT(BOOL, has_twist_upper_limit, 1),
    JOINT(F64, distance, 1),
    JOINT(BOOL, has_distance, 1),
    JOINT(ENUM, motor.mode, 4),
    JOINT(F64, motor.target, 4),
    JOINT(SIZE, motor.target_count, 4),
    JOINT(F64, motor.stiffness, 1),
    JOINT(F64, motor.damping, 1),
    JOINT(F64, motor.max_effort, 1),
    JOINT(BOOL, motor.has_max_effort, 1),
    JOINT(F64, compliance, 1),
    JOINT(F64, damping, 1),
    JOINT(BOOL, collide_connected, 1),
};

#define COUPLING(kind, member, n) FIELD(rw_coupling_desc, kind, member, n)
static const rw_desc_field coupling_fields[] = {
    COUPLING(TEXT, name, RW_NAME_CAPACITY),
    COUPLING(TEXT, joint_a, RW_NAME_CAPACITY),
    COUPLING(TEXT, joint_b, RW_NAME_CAPACITY),
    COUPLING(U32, coordinate_a, 1),
    COUPLING(U32, coordinate_b, 1),
    COUPLING(F64, ratio, 1),
    COUPLING(F64, offset, 1),
    COUPLING(F64, compliance, 1),
};

#define ROD(kind, member, n) FIELD(rw_rod_desc, kind, member, n)
static const rw_desc_field rod_fields[] = {
    ROD(TEXT, name, RW_NAME_CAPACITY),
    ROD(ENUM, geometry, 4),
    ROD(ENUM, method, 2),
    ROD(U32, elements, 1),
    ROD(U32, order, 1),
    ROD(F64, straight.start, 3),
    ROD(F64, straight.end, 3),
    ROD(F64, straight.normal, 3),
    ROD(BOOL, straight.has_normal, 1),
    ROD(F64, helix.center, 3),
    ROD(F64, helix.axis, 3),
    ROD(F64, helix.normal, 3),
    ROD(BOOL, helix.has_normal, 1),
    ROD(F64, helix.radius, 1),
    ROD(F64, helix.pitch, 1),
    ROD(F64, helix.turns, 1),
    ROD(DOUBLES, polyline.positions, 3),
    ROD(ROTATIONS, polyline.rotations, 4),
    ROD(F64, polyline.normal, 3),
    ROD(BOOL, polyline.has_normal, 1),
    ROD(DOUBLES, graph.positions, 3),
    ROD(UINTS, graph.segments, 2),
    ROD(UINTS, graph.bends, 2),
    ROD(DOUBLES, graph.vertex_masses, 1),
    ROD(DOUBLES, graph.segment_stiffness, 1),
    ROD(DOUBLES, graph.segment_rest_lengths, 1),
    ROD(ROTATIONS, graph.segment_rotations, 4),
    ROD(DOUBLES, graph.bend_stiffness, 1),
    ROD(ROTATIONS, graph.bend_rest_rotations, 4),
    ROD(ENUM, rest, 4),
    ROD(F64, rest_length, 1),
    ROD(BOOL, has_rest_length, 1),
    ROD(DOUBLES, rest_curvature, 3),
    ROD(ENUM, section, 3),
    ROD(DOUBLES, section_radius, 1),
    ROD(F64, section_width, 1),
    ROD(F64, section_height, 1),
    ROD(F64, section_area, 1),
    ROD(F64, section_i1, 1),
    ROD(F64, section_i2, 1),
    ROD(F64, section_j, 1),
    ROD(F64, density, 1),
    ROD(F64, young_modulus, 1),
    ROD(F64, poisson_ratio, 1),
    ROD(F64, shear_modulus, 1),
    ROD(F64, shear_factor, 1),
    ROD(BOOL, has_young_modulus, 1),
    ROD(BOOL, has_poisson_ratio, 1),
    ROD(BOOL, has_shear_modulus, 1),
    ROD(F64, stiffness.ea, 1),
    ROD(F64, stiffness.ga1, 1),
    ROD(F64, stiffness.ga2, 1),
    ROD(F64, stiffness.ei1, 1),
    ROD(F64, stiffness.ei2, 1),
    ROD(F64, stiffness.gj, 1),
    ROD(BOOL, has_stiffness, 1),
    ROD(F64, damping, 1),
    ROD(F64, mass_damping, 1),
    ROD(F64, drag, 1),
    ROD(F64, quadratic_drag, 1),
    ROD(DOUBLES, linear_velocity, 3),
    ROD(DOUBLES, angular_velocity, 3),
    ROD(F64, friction, 1),
    ROD(F64, restitution, 1),
    ROD(U32, collision_group, 1),
    ROD(U32, collision_mask, 1),
    ROD(BOOL, self_collision, 1),
    ROD(F64, contact_radius, 1),
};

#define ATTACHMENT(kind, member, n) FIELD(rw_attachment_desc, kind, member, n)
static const rw_desc_field attachment_fields[] = {
    ATTACHMENT(TEXT, name, RW_NAME_CAPACITY),
    ATTACHMENT(TEXT, rod, RW_NAME_CAPACITY),
    ATTACHMENT(ENUM, kind, 3),
    ATTACHMENT(F64, s, 1),
    ATTACHMENT(U32, node, 1),
    ATTACHMENT(BOOL, has_s, 1),
    ATTACHMENT(BOOL, has_node, 1),
    ATTACHMENT(TEXT, body, RW_NAME_CAPACITY),
    ATTACHMENT(F64, position, 3),
    ATTACHMENT(ROTATION, rotation, 4),
    ATTACHMENT(BOOL, has_position, 1),
    ATTACHMENT(BOOL, has_rotation, 1),
    ATTACHMENT(F64, compliance, 1),
};

#define FORCE(kind, member, n) FIELD(rw_force_desc, kind, member, n)
#define POINT(member)                                                                              \
    FORCE(TEXT, member.body, RW_NAME_CAPACITY), FORCE(TEXT, member.rod, RW_NAME_CAPACITY),         \
        FORCE(F64, member.position, 3), FORCE(F64, member.s, 1), FORCE(U32, member.node, 1),       \
        FORCE(BOOL, member.has_s, 1), FORCE(BOOL, member.has_node, 1)
static const rw_desc_field force_fields[] = {
    FORCE(TEXT, name, RW_NAME_CAPACITY),
    FORCE(ENUM, kind, 3),
    POINT(spring_damper.a),
    POINT(spring_damper.b),
    FORCE(F64, spring_damper.stiffness, 1),
    FORCE(F64, spring_damper.damping, 1),
    FORCE(F64, spring_damper.rest_length, 1),
    FORCE(BOOL, spring_damper.has_rest_length, 1),
    POINT(load.at),
    FORCE(F64, load.force, 3),
    FORCE(F64, load.torque, 3),
    FORCE(ENUM, load.frame, 2),
    POINT(drag.at),
    FORCE(F64, drag.linear, 1),
    FORCE(F64, drag.quadratic, 1),
    FORCE(F64, drag.angular, 1),
};

#define INPUT(kind, member, n) FIELD(rw_input_desc, kind, member, n)
static const rw_desc_field input_fields[] = {
    INPUT(TEXT, name, RW_NAME_CAPACITY),
    INPUT(TEXT, target, sizeof((rw_input_desc*)0)->target),
    INPUT(ENUM, kind, 3),
    INPUT(DOUBLES, time, 1),
    INPUT(DOUBLES, value, 1),
    INPUT(DOUBLES, slope, 1),
    INPUT(DOUBLES, amplitude, 1),
    INPUT(DOUBLES, offset, 1),
    INPUT(F64, frequency, 1),
    INPUT(F64, phase, 1),
};

#define OPTION(kind, member, n) FIELD(rw_scene, kind, member, n)
static const rw_desc_field option_fields[] = {
    OPTION(TEXT, name, sizeof((rw_scene*)0)->name),
    OPTION(F64, gravity, 3),
    OPTION(F64, wind, 3),
    OPTION(F64, time_step, 1),
    OPTION(U32, substeps, 1),
    OPTION(ENUM, solver.rigid, 3),
    OPTION(ENUM, solver.rods, 3),
    OPTION(ENUM, solver.device, 3),
    OPTION(BOOL, solver.fast, 1),
    OPTION(F64, solver.contact.compliance, 1),
    OPTION(F64, solver.contact.stiffness, 1),
    OPTION(F64, solver.contact.damping, 1),
    OPTION(F64, solver.contact.slip_velocity, 1),
    OPTION(F64, solver.contact.margin, 1),
    OPTION(U32, solver.xpbd.iterations, 1),
    OPTION(F64, solver.xpbd.residual_tolerance, 1),
    OPTION(ENUM, solver.dae.integrator, 5),
    OPTION(F64, solver.dae.relative_tolerance, 1),
    OPTION(F64, solver.dae.absolute_tolerance, 1),
    OPTION(ENUM, solver.dae.stabilization, 3),
    OPTION(F64, solver.dae.baumgarte_alpha, 1),
    OPTION(F64, solver.dae.baumgarte_beta, 1),
    OPTION(BOOL, solver.dae.has_baumgarte_alpha, 1),
    OPTION(BOOL, solver.dae.has_baumgarte_beta, 1),
    OPTION(U32, solver.scr.iterations, 1),
    OPTION(F64, solver.scr.residual_tolerance, 1),
    OPTION(ENUM, solver.scr.lambda, 2),
    OPTION(ENUM, solver.scr.order, 2),
    OPTION(BOOL, solver.scr.initial_guess_adaptive, 1),
};

rw_desc_fields rw_desc_fields_of(rw_kind kind) {
    switch (kind) {
    case RW_KIND_BODY: return LIST(body_fields, rw_body_desc);
    case RW_KIND_JOINT: return LIST(joint_fields, rw_joint_desc);
    case RW_KIND_COUPLING: return LIST(coupling_fields, rw_coupling_desc);
    case RW_KIND_ROD: return LIST(rod_fields, rw_rod_desc);
    case RW_KIND_ATTACHMENT: return LIST(attachment_fields, rw_attachment_desc);
    case RW_KIND_FORCE: return LIST(force_fields, rw_force_desc);
    case RW_KIND_INPUT: return LIST(input_fields, rw_input_desc);
    case RW_KIND_COUNT: break;
    }
    RW_CHECK(!"a kind of object");
    return (rw_desc_fields){0};
}

rw_desc_fields rw_desc_fields_of_shape(void) { return LIST(shape_fields, rw_shape_desc); }

rw_desc_fields rw_desc_fields_of_options(void) { return LIST(option_fields, rw_scene); }

// ---- The deep copy: arrays of one description lie behind each other in one block ----

#define ARRAY_ALIGNMENT ((size_t)16)

static size_t padded(size_t bytes) {
    return (bytes + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
}

static bool is_doubles(rw_desc_type type) {
    return type == RW_DESC_DOUBLES || type == RW_DESC_ROTATIONS;
}

static size_t array_bytes(rw_desc_fields list, const void* desc) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        const char* at = (const char*)desc + list.fields[i].offset;
        if (is_doubles(list.fields[i].type)) {
            bytes += padded(((const rw_doubles*)(const void*)at)->count * sizeof(double));
        } else if (list.fields[i].type == RW_DESC_UINTS) {
            bytes += padded(((const rw_uints*)(const void*)at)->count * sizeof(uint32_t));
        }
    }
    return bytes;
}

// Moves the views of `desc` (already a plain copy) onto copies at `*block`; unit rotations.
static void copy_arrays(rw_desc_fields list, void* desc, char** block) {
    for (uint32_t i = 0; i < list.count; i++) {
        const rw_desc_field* field = &list.fields[i];
        char* at = (char*)desc + field->offset;
        if (field->type == RW_DESC_ROTATION) {
            rw_validate_normalize((double*)(void*)at);
        } else if (is_doubles(field->type)) {
            rw_doubles* view = (rw_doubles*)(void*)at;
            size_t bytes = view->count * sizeof(double);
            double* copy = (double*)(void*)*block;
            if (bytes > 0) {
                memcpy(copy, view->data, bytes);
            }
            if (field->type == RW_DESC_ROTATIONS) {
                for (size_t row = 0; row < view->count / 4; row++) {
                    rw_validate_normalize(copy + 4 * row);
                }
            }
            view->data = bytes > 0 ? copy : NULL;
            *block += padded(bytes);
        } else if (field->type == RW_DESC_UINTS) {
            rw_uints* view = (rw_uints*)(void*)at;
            size_t bytes = view->count * sizeof(uint32_t);
            if (bytes > 0) {
                memcpy(*block, view->data, bytes);
            }
            view->data = bytes > 0 ? (uint32_t*)(void*)*block : NULL;
            *block += padded(bytes);
        }
    }
}

rw_status rw_desc_fields_copy(rw_kind kind, void* to, const void* from, rw_alloc* alloc,
                              size_t extra_bytes, void** owned, void** extra) {
    rw_desc_fields list = rw_desc_fields_of(kind);
    rw_desc_fields shape_list = rw_desc_fields_of_shape();
    size_t bytes = array_bytes(list, from) + padded(extra_bytes);
    const rw_shape_desc* shapes = NULL;
    size_t shape_count = 0;
    if (kind == RW_KIND_BODY) {
        shapes = ((const rw_body_desc*)from)->shapes;
        shape_count = ((const rw_body_desc*)from)->shape_count;
        bytes += padded(shape_count * sizeof *shapes);
        for (size_t i = 0; i < shape_count; i++) {
            bytes += array_bytes(shape_list, &shapes[i]);
        }
    }
    char* block = NULL;
    if (bytes > 0) {
        block = rw_alloc_get(alloc, bytes);
        if (block == NULL) {
            return RW_STATUS_RESOURCE_EXHAUSTED;
        }
    }
    *owned = block;
    memmove(to, from, list.struct_bytes);
    copy_arrays(list, to, &block);
    if (kind == RW_KIND_BODY) {
        rw_shape_desc* copies = (rw_shape_desc*)(void*)block;
        block += padded(shape_count * sizeof *copies);
        for (size_t i = 0; i < shape_count; i++) {
            copies[i] = shapes[i];
            copy_arrays(shape_list, &copies[i], &block);
        }
        ((rw_body_desc*)to)->shapes = shape_count > 0 ? copies : NULL;
    }
    if (extra != NULL) {
        *extra = extra_bytes > 0 ? block : NULL;
    }
    return RW_STATUS_OK;
}

bool rw_desc_fields_share_arrays(rw_kind kind, const void* a, const void* b) {
    rw_desc_fields list = rw_desc_fields_of(kind);
    for (uint32_t i = 0; i < list.count; i++) {
        const char* at_a = (const char*)a + list.fields[i].offset;
        const char* at_b = (const char*)b + list.fields[i].offset;
        // Both kinds of view are a pointer and a count.
        bool is_array = is_doubles(list.fields[i].type) || list.fields[i].type == RW_DESC_UINTS;
        if (is_array && memcmp(at_a, at_b, sizeof(rw_doubles)) != 0) {
            return false;
        }
    }
    return kind != RW_KIND_BODY ||
           (((const rw_body_desc*)a)->shapes == ((const rw_body_desc*)b)->shapes &&
            ((const rw_body_desc*)a)->shape_count == ((const rw_body_desc*)b)->shape_count);
}

_Static_assert(sizeof(rw_doubles) == sizeof(rw_uints), "views look alike");
