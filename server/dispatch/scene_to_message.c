#include "server/dispatch/scene_to_message.h"

#include <string.h>

#include "proto/wire.h"
#include "solvers/base/check.h"

// ---- Parts ----

static void put(double* to, pb_size_t* to_count, const double* values, size_t count) {
    memcpy(to, values, count * sizeof *to);
    *to_count = (pb_size_t)count;
}

static bool any(const double* values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] == 0)) {
            return true;
        }
    }
    return false;
}

static bool is_turned(const double rotation[4]) {
    return !(rotation[0] == 1) || any(rotation + 1, 3);
}

#define PUT(member, values, count) put((member), &member##_count, (values), (count))
#define PUT_IF(condition, member, values, count)                                                   \
    do {                                                                                           \
        if (condition) {                                                                           \
            PUT(member, values, count);                                                            \
        }                                                                                          \
    } while (0)
// An optional field of the message, given where the description differs from the default.
#define GIVE(message, field, value, condition)                                                     \
    do {                                                                                           \
        if (condition) {                                                                           \
            (message)->has_##field = true;                                                         \
            (message)->field = (value);                                                            \
        }                                                                                          \
    } while (0)

static void put_text(char* to, const char* from) { memcpy(to, from, RW_NAME_CAPACITY); }

static rw_wire_array from_doubles(rw_doubles view) {
    return rw_wire_from_f64(view.data, view.count);
}

static rw_wire_array from_uints(rw_uints view) { return rw_wire_from_u32(view.data, view.count); }

static void put_frame(const rw_frame* frame, bool* has, rw_pb_Pose* pose) {
    PUT_IF(any(frame->position, 3), pose->position, frame->position, 3);
    PUT_IF(is_turned(frame->rotation), pose->rotation, frame->rotation, 4);
    *has = pose->position_count > 0 || pose->rotation_count > 0;
}

// ---- Bodies ----

static void put_shape(const rw_shape_desc* desc, rw_pb_Shape* message) {
    PUT_IF(any(desc->frame.position, 3), message->position, desc->frame.position, 3);
    PUT_IF(is_turned(desc->frame.rotation), message->rotation, desc->frame.rotation, 4);
    message->density = desc->density;
    switch (desc->kind) {
    case RW_SHAPE_SPHERE:
        message->which_geometry = rw_pb_Shape_sphere_tag;
        message->geometry.sphere.radius = desc->radius;
        break;
    case RW_SHAPE_CAPSULE:
        message->which_geometry = rw_pb_Shape_capsule_tag;
        message->geometry.capsule.radius = desc->radius;
        message->geometry.capsule.half_length = desc->half_length;
        break;
    case RW_SHAPE_BOX:
        message->which_geometry = rw_pb_Shape_box_tag;
        PUT(message->geometry.box.half_extents, desc->half_extents, 3);
        break;
    case RW_SHAPE_CYLINDER:
        message->which_geometry = rw_pb_Shape_cylinder_tag;
        message->geometry.cylinder.radius = desc->radius;
        message->geometry.cylinder.half_length = desc->half_length;
        break;
    case RW_SHAPE_PLANE:
        message->which_geometry = rw_pb_Shape_plane_tag;
        break;
    case RW_SHAPE_HULL:
        message->which_geometry = rw_pb_Shape_hull_tag;
        message->geometry.hull.vertices = from_doubles(desc->vertices);
        break;
    case RW_SHAPE_MESH:
        message->which_geometry = rw_pb_Shape_mesh_tag;
        message->geometry.mesh.vertices = from_doubles(desc->vertices);
        message->geometry.mesh.triangles = from_uints(desc->triangles);
        break;
    }
}

static bool fill_shape(void* context, uint32_t index, void* item) {
    const rw_shape_desc* shapes = context;
    put_shape(&shapes[index], item);
    return true;
}

// Fill functions take a plain context and only read it.
static void* readable(const void* context) {
    union {
        const void* constant;
        void* plain;
    } view = {.constant = context};
    return view.plain;
}

void rw_scene_to_message_body(const rw_body_desc* desc, rw_pb_Body* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    message->kind = (rw_pb_Body_Kind)desc->kind;
    message->mass = desc->has_mass ? desc->mass : 0;
    message->density = desc->has_density ? desc->density : 0;
    PUT_IF(desc->has_inertia, message->inertia, desc->inertia, 6);
    PUT_IF(desc->has_center_of_mass, message->center_of_mass, desc->center_of_mass, 3);
    PUT_IF(any(desc->position, 3), message->position, desc->position, 3);
    PUT_IF(is_turned(desc->rotation), message->rotation, desc->rotation, 4);
    PUT_IF(any(desc->linear_velocity, 3), message->linear_velocity, desc->linear_velocity, 3);
    PUT_IF(any(desc->angular_velocity, 3), message->angular_velocity, desc->angular_velocity, 3);
    message->friction = desc->friction;
    message->restitution = desc->restitution;
    message->collision_group = desc->collision_group;
    GIVE(message, collision_mask, desc->collision_mask, desc->collision_mask != UINT32_MAX);
    if (desc->shape_count > 0) {
        message->shapes = rw_wire_from_fill(fill_shape, readable(desc->shapes),
                                            sizeof(rw_pb_Shape), desc->shape_count);
    }
}

// ---- Joints ----

static void put_motor(const rw_motor_desc* desc, bool* has, rw_pb_Motor* message) {
    *has = desc->mode != RW_MOTOR_NONE || desc->target_count > 0 || desc->stiffness != 0 ||
           desc->damping != 0 || desc->has_max_effort;
    message->mode = (rw_pb_Motor_Mode)desc->mode;
    PUT(message->target, desc->target, desc->target_count);
    message->stiffness = desc->stiffness;
    message->damping = desc->damping;
    GIVE(message, max_effort, desc->max_effort, desc->has_max_effort);
}

void rw_scene_to_message_joint(const rw_joint_desc* desc, rw_pb_Joint* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    put_text(message->parent, desc->parent);
    put_text(message->child, desc->child);
    message->type = (rw_pb_Joint_Type)desc->type;
    put_frame(&desc->parent_frame, &message->has_parent_frame, &message->parent_frame);
    put_frame(&desc->child_frame, &message->has_child_frame, &message->child_frame);
    GIVE(message, lower_limit, desc->lower_limit, desc->has_lower_limit);
    GIVE(message, upper_limit, desc->upper_limit, desc->has_upper_limit);
    GIVE(message, swing_limit, desc->swing_limit, desc->has_swing_limit);
    GIVE(message, twist_lower_limit, desc->twist_lower_limit, desc->has_twist_lower_limit);
    GIVE(message, twist_upper_limit, desc->twist_upper_limit, desc->has_twist_upper_limit);
    GIVE(message, distance, desc->distance, desc->has_distance);
    put_motor(&desc->motor, &message->has_motor, &message->motor);
    message->compliance = desc->compliance;
    message->damping = desc->damping;
    message->collide_connected = desc->collide_connected;
}

void rw_scene_to_message_coupling(const rw_coupling_desc* desc, rw_pb_Coupling* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    put_text(message->joint_a, desc->joint_a);
    put_text(message->joint_b, desc->joint_b);
    message->coordinate_a = desc->coordinate_a;
    message->coordinate_b = desc->coordinate_b;
    GIVE(message, ratio, desc->ratio, desc->ratio != 1);
    message->offset = desc->offset;
    message->compliance = desc->compliance;
}

// ---- Rods ----

static void put_graph(const rw_rod_desc* desc, rw_pb_Rod_Graph* graph) {
    graph->positions = from_doubles(desc->graph.positions);
    graph->segments = from_uints(desc->graph.segments);
    graph->bends = from_uints(desc->graph.bends);
    graph->vertex_masses = from_doubles(desc->graph.vertex_masses);
    graph->segment_stiffness = from_doubles(desc->graph.segment_stiffness);
    graph->segment_rest_lengths = from_doubles(desc->graph.segment_rest_lengths);
    graph->segment_rotations = from_doubles(desc->graph.segment_rotations);
    graph->bend_stiffness = from_doubles(desc->graph.bend_stiffness);
    graph->bend_rest_rotations = from_doubles(desc->graph.bend_rest_rotations);
}

static void put_geometry(const rw_rod_desc* desc, rw_pb_Rod* message) {
    switch (desc->geometry) {
    case RW_ROD_STRAIGHT: {
        rw_pb_Rod_Straight* straight = &message->geometry.straight;
        message->which_geometry = rw_pb_Rod_straight_tag;
        PUT(straight->start, desc->straight.start, 3);
        PUT(straight->end, desc->straight.end, 3);
        PUT_IF(desc->straight.has_normal, straight->normal, desc->straight.normal, 3);
        break;
    }
    case RW_ROD_HELIX: {
        rw_pb_Rod_Helix* helix = &message->geometry.helix;
        message->which_geometry = rw_pb_Rod_helix_tag;
        PUT(helix->center, desc->helix.center, 3);
        PUT(helix->axis, desc->helix.axis, 3);
        PUT_IF(desc->helix.has_normal, helix->normal, desc->helix.normal, 3);
        helix->radius = desc->helix.radius;
        helix->pitch = desc->helix.pitch;
        helix->turns = desc->helix.turns;
        break;
    }
    case RW_ROD_POLYLINE: {
        rw_pb_Rod_Polyline* polyline = &message->geometry.polyline;
        message->which_geometry = rw_pb_Rod_polyline_tag;
        polyline->positions = from_doubles(desc->polyline.positions);
        polyline->rotations = from_doubles(desc->polyline.rotations);
        PUT_IF(desc->polyline.has_normal, polyline->normal, desc->polyline.normal, 3);
        break;
    }
    case RW_ROD_GRAPH:
        message->which_geometry = rw_pb_Rod_graph_tag;
        put_graph(desc, &message->geometry.graph);
        break;
    }
}

static void put_section(const rw_rod_desc* desc, rw_pb_Rod* message) {
    rw_pb_Section* section = &message->section;
    switch (desc->section) {
    case RW_SECTION_CIRCLE:
        message->has_section = desc->section_radius.count > 0;
        section->radius = from_doubles(desc->section_radius);
        break;
    case RW_SECTION_RECTANGLE:
        message->has_section = true;
        section->width = desc->section_width;
        section->height = desc->section_height;
        break;
    case RW_SECTION_GENERAL:
        message->has_section = true;
        section->area = desc->section_area;
        section->i1 = desc->section_i1;
        section->i2 = desc->section_i2;
        section->j = desc->section_j;
        break;
    }
}

void rw_scene_to_message_rod(const rw_rod_desc* desc, rw_pb_Rod* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    put_geometry(desc, message);
    put_section(desc, message);
    message->elements = desc->elements;
    GIVE(message, order, desc->order, desc->order != 1);
    message->method = (rw_pb_Rod_Method)desc->method;
    message->density = desc->density;
    message->young_modulus = desc->young_modulus;
    GIVE(message, poisson_ratio, desc->poisson_ratio, desc->has_poisson_ratio);
    GIVE(message, shear_modulus, desc->shear_modulus, desc->has_shear_modulus);
    GIVE(message, shear_factor, desc->shear_factor, desc->shear_factor != 1);
    message->has_stiffness = desc->has_stiffness;
    if (desc->has_stiffness) {
        message->stiffness = (rw_pb_Stiffness){
            .ea = desc->stiffness.ea,
            .ga1 = desc->stiffness.ga1,
            .ga2 = desc->stiffness.ga2,
            .ei1 = desc->stiffness.ei1,
            .ei2 = desc->stiffness.ei2,
            .gj = desc->stiffness.gj,
        };
    }
    message->rest = (rw_pb_Rod_Rest)desc->rest;
    message->rest_curvature = from_doubles(desc->rest_curvature);
    GIVE(message, rest_length, desc->rest_length, desc->has_rest_length);
    message->damping = desc->damping;
    message->mass_damping = desc->mass_damping;
    message->drag = desc->drag;
    message->quadratic_drag = desc->quadratic_drag;
    message->linear_velocity = from_doubles(desc->linear_velocity);
    message->angular_velocity = from_doubles(desc->angular_velocity);
    message->friction = desc->friction;
    message->restitution = desc->restitution;
    message->collision_group = desc->collision_group;
    GIVE(message, collision_mask, desc->collision_mask, desc->collision_mask != 0);
    message->self_collision = desc->self_collision;
    message->contact_radius = desc->contact_radius;
}

// ---- Attachments, forces, inputs ----

void rw_scene_to_message_attachment(const rw_attachment_desc* desc, rw_pb_Attachment* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    put_text(message->rod, desc->rod);
    put_text(message->body, desc->body);
    if (desc->has_node) {
        message->which_place = rw_pb_Attachment_node_tag;
        message->place.node = desc->node;
    } else if (desc->has_s) {
        message->which_place = rw_pb_Attachment_s_tag;
        message->place.s = desc->s;
    }
    message->kind = (rw_pb_Attachment_Kind)desc->kind;
    PUT_IF(desc->has_position, message->position, desc->position, 3);
    PUT_IF(desc->has_rotation, message->rotation, desc->rotation, 4);
    message->compliance = desc->compliance;
}

static void put_anchor(const rw_point_desc* desc, bool* has, rw_pb_Anchor* message) {
    *has = true;
    put_text(message->body, desc->body);
    put_text(message->rod, desc->rod);
    PUT_IF(any(desc->position, 3), message->position, desc->position, 3);
    if (desc->has_node) {
        message->which_place = rw_pb_Anchor_node_tag;
        message->place.node = desc->node;
    } else if (desc->has_s) {
        message->which_place = rw_pb_Anchor_s_tag;
        message->place.s = desc->s;
    }
}

static void put_load(const rw_force_desc* desc, rw_pb_Force_Load* load) {
    const rw_point_desc* at = &desc->load.at;
    put_text(load->body, at->body);
    put_text(load->rod, at->rod);
    PUT_IF(any(at->position, 3), load->position, at->position, 3);
    if (at->has_node) {
        load->which_place = rw_pb_Force_Load_node_tag;
        load->place.node = at->node;
    } else if (at->has_s) {
        load->which_place = rw_pb_Force_Load_s_tag;
        load->place.s = at->s;
    }
    PUT_IF(any(desc->load.force, 3), load->force, desc->load.force, 3);
    PUT_IF(any(desc->load.torque, 3), load->torque, desc->load.torque, 3);
    load->frame = (rw_pb_Force_Frame)desc->load.frame;
}

void rw_scene_to_message_force(const rw_force_desc* desc, rw_pb_Force* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    switch (desc->kind) {
    case RW_FORCE_SPRING_DAMPER: {
        rw_pb_Force_SpringDamper* spring = &message->law.spring_damper;
        message->which_law = rw_pb_Force_spring_damper_tag;
        put_anchor(&desc->spring_damper.a, &spring->has_a, &spring->a);
        put_anchor(&desc->spring_damper.b, &spring->has_b, &spring->b);
        spring->stiffness = desc->spring_damper.stiffness;
        spring->damping = desc->spring_damper.damping;
        GIVE(spring, rest_length, desc->spring_damper.rest_length,
             desc->spring_damper.has_rest_length);
        break;
    }
    case RW_FORCE_LOAD:
        message->which_law = rw_pb_Force_load_tag;
        put_load(desc, &message->law.load);
        break;
    case RW_FORCE_DRAG:
        message->which_law = rw_pb_Force_drag_tag;
        put_text(message->law.drag.body, desc->drag.at.body);
        message->law.drag.linear = desc->drag.linear;
        message->law.drag.quadratic = desc->drag.quadratic;
        message->law.drag.angular = desc->drag.angular;
        break;
    }
}

void rw_scene_to_message_input(const rw_input_desc* desc, rw_pb_Input* message) {
    memset(message, 0, sizeof *message);
    put_text(message->name, desc->name);
    memcpy(message->target, desc->target, sizeof message->target);
    switch (desc->kind) {
    case RW_INPUT_PIECEWISE_LINEAR:
        message->which_function = rw_pb_Input_piecewise_linear_tag;
        message->function.piecewise_linear.time = from_doubles(desc->time);
        message->function.piecewise_linear.value = from_doubles(desc->value);
        break;
    case RW_INPUT_CUBIC:
        message->which_function = rw_pb_Input_cubic_tag;
        message->function.cubic.time = from_doubles(desc->time);
        message->function.cubic.value = from_doubles(desc->value);
        message->function.cubic.slope = from_doubles(desc->slope);
        break;
    case RW_INPUT_SINE: {
        rw_pb_Input_Sine* sine = &message->function.sine;
        message->which_function = rw_pb_Input_sine_tag;
        PUT_IF(desc->amplitude.count > 0, sine->amplitude, desc->amplitude.data,
               desc->amplitude.count);
        PUT_IF(desc->offset.count > 0, sine->offset, desc->offset.data, desc->offset.count);
        sine->frequency = desc->frequency;
        sine->phase = desc->phase;
        break;
    }
    }
}

// ---- Solvers and the whole scene ----

static void put_dae(const rw_solver_options* options, rw_pb_Solver_Dae* dae) {
    static const rw_pb_Solver_Dae_Integrator integrators[] = {
        [RW_INTEGRATOR_EULER] = rw_pb_Solver_Dae_Integrator_EULER,
        [RW_INTEGRATOR_SYMPLECTIC_EULER] = rw_pb_Solver_Dae_Integrator_SYMPLECTIC_EULER,
        [RW_INTEGRATOR_RK4] = rw_pb_Solver_Dae_Integrator_RK4,
        [RW_INTEGRATOR_RK45] = rw_pb_Solver_Dae_Integrator_RK45,
        [RW_INTEGRATOR_BDF] = rw_pb_Solver_Dae_Integrator_BDF,
    };
    static const rw_pb_Solver_Dae_Stabilization stabilizations[] = {
        [RW_STABILIZATION_NONE] = rw_pb_Solver_Dae_Stabilization_NONE,
        [RW_STABILIZATION_BAUMGARTE] = rw_pb_Solver_Dae_Stabilization_BAUMGARTE,
        [RW_STABILIZATION_PROJECTION] = rw_pb_Solver_Dae_Stabilization_PROJECTION,
    };
    GIVE(dae, integrator, integrators[options->dae.integrator], true);
    GIVE(dae, stabilization, stabilizations[options->dae.stabilization], true);
    GIVE(dae, relative_tolerance, options->dae.relative_tolerance, true);
    GIVE(dae, absolute_tolerance, options->dae.absolute_tolerance, true);
    GIVE(dae, baumgarte_alpha, options->dae.baumgarte_alpha, options->dae.has_baumgarte_alpha);
    GIVE(dae, baumgarte_beta, options->dae.baumgarte_beta, options->dae.has_baumgarte_beta);
}

void rw_scene_to_message_solver(const rw_solver_options* options, rw_pb_Solver* message) {
    memset(message, 0, sizeof *message);
    GIVE(message, rigid,
         options->rigid == RW_SOLVER_DAE ? rw_pb_RigidSolver_Method_DAE
                                         : rw_pb_RigidSolver_Method_XPBD,
         true);
    GIVE(message, rods,
         options->rods == RW_SOLVER_SCR ? rw_pb_RodSolver_Method_SCR
                                        : rw_pb_RodSolver_Method_XPBD,
         true);
    GIVE(message, device, (rw_pb_Solver_Device)options->device, true);
    GIVE(message, fast, options->fast, true);
    message->has_xpbd = message->has_dae = message->has_scr = message->has_contact = true;
    GIVE(&message->xpbd, iterations, options->xpbd.iterations, true);
    GIVE(&message->xpbd, residual_tolerance, options->xpbd.residual_tolerance, true);
    put_dae(options, &message->dae);
    GIVE(&message->scr, iterations, options->scr.iterations, true);
    GIVE(&message->scr, residual_tolerance, options->scr.residual_tolerance, true);
    GIVE(&message->scr, lambda, (rw_pb_Solver_Scr_Lambda)options->scr.lambda, true);
    GIVE(&message->scr, order, (rw_pb_Solver_Scr_Order)options->scr.order, true);
    GIVE(&message->scr, adaptive_start, options->scr.initial_guess_adaptive, true);
    GIVE(&message->contact, compliance, options->contact.compliance, true);
    GIVE(&message->contact, stiffness, options->contact.stiffness, true);
    GIVE(&message->contact, damping, options->contact.damping, true);
    GIVE(&message->contact, slip_velocity, options->contact.slip_velocity, true);
    GIVE(&message->contact, margin, options->contact.margin, true);
}

// What the fill functions read; lies in the arena.
typedef struct lists {
    const rw_scene* scene;
    const rw_model* model; // NULL: no ids
} lists;

#define FILL(function, singular, plural, Type, KIND)                                               \
    static bool function(void* context, uint32_t index, void* item) {                              \
        const lists* from = context;                                                               \
        rw_pb_##Type* message = item;                                                              \
        rw_scene_to_message_##singular(&from->scene->plural[index], message);                      \
        if (from->model != NULL) {                                                                 \
            message->id = rw_model_id(from->model, KIND, (int32_t)index);                          \
        }                                                                                          \
        return true;                                                                               \
    }
FILL(fill_body, body, bodies, Body, RW_KIND_BODY)
FILL(fill_joint, joint, joints, Joint, RW_KIND_JOINT)
FILL(fill_coupling, coupling, couplings, Coupling, RW_KIND_COUPLING)
FILL(fill_rod, rod, rods, Rod, RW_KIND_ROD)
FILL(fill_attachment, attachment, attachments, Attachment, RW_KIND_ATTACHMENT)
FILL(fill_force, force, forces, Force, RW_KIND_FORCE)
FILL(fill_input, input, inputs, Input, RW_KIND_INPUT)

rw_status rw_scene_to_message(const rw_scene* scene, const rw_model* model, rw_arena* arena,
                              rw_pb_Scene* message, rw_error* error) {
    memset(message, 0, sizeof *message);
    lists* from = rw_arena_get(arena, sizeof *from);
    if (from == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the scene's message");
    }
    *from = (lists){scene, model};
    memcpy(message->name, scene->name, sizeof message->name);
    PUT(message->gravity, scene->gravity, 3);
    PUT(message->wind, scene->wind, 3);
    GIVE(message, time_step, scene->time_step, true);
    GIVE(message, substeps, scene->substeps, true);
    message->has_solver = true;
    rw_scene_to_message_solver(&scene->solver, &message->solver);
    message->bodies = rw_wire_from_fill(fill_body, from, sizeof(rw_pb_Body), scene->body_count);
    message->joints = rw_wire_from_fill(fill_joint, from, sizeof(rw_pb_Joint), scene->joint_count);
    message->couplings =
        rw_wire_from_fill(fill_coupling, from, sizeof(rw_pb_Coupling), scene->coupling_count);
    message->rods = rw_wire_from_fill(fill_rod, from, sizeof(rw_pb_Rod), scene->rod_count);
    message->attachments = rw_wire_from_fill(fill_attachment, from, sizeof(rw_pb_Attachment),
                                             scene->attachment_count);
    message->forces = rw_wire_from_fill(fill_force, from, sizeof(rw_pb_Force), scene->force_count);
    message->inputs = rw_wire_from_fill(fill_input, from, sizeof(rw_pb_Input), scene->input_count);
    return RW_STATUS_OK;
}
