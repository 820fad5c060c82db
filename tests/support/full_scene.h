// A scene that uses every field of every description, for the tests of validation, model, codec and
// messages. Everything is in one struct, so that a test may spoil any of it.
#pragma once

#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/scene.h"

typedef struct full_scene {
    rw_scene scene;
    rw_body_desc bodies[4]; // link DYNAMIC, ball DYNAMIC by density, mover KINEMATIC, floor STATIC
    rw_shape_desc shapes[7]; // one of each kind: capsule, sphere, box, cylinder, hull; plane, mesh
    rw_joint_desc joints[4];  // shoulder REVOLUTE, wrist SPHERICAL, slide PRISMATIC, rope DISTANCE
    rw_coupling_desc couplings[1];
    rw_rod_desc rods[4];              // cable straight, coil helix, line polyline, net graph
    rw_attachment_desc attachments[3]; // grip CLAMP, pin PIN, knot PIN_SEGMENT
    rw_force_desc forces[4];           // spring, tip_load, push, air
    rw_input_desc inputs[6];           // gust, sway, move, turn, drive, pull
    double hull_vertices[12], mesh_vertices[12];
    uint32_t mesh_triangles[12];
    double cable_radius[5], cable_curvature[12], cable_velocity[15], cable_spin[3];
    double coil_radius[1];
    double line_positions[15], line_rotations[20];
    double net_positions[12], net_masses[4], net_stiffness[3], net_lengths[3], net_rotations[12];
    double net_bend_stiffness[2], net_bend_rotations[8];
    uint32_t net_segments[6], net_bends[4];
    double gust_time[2], gust_value[6];
    double sway_time[3], sway_value[9], sway_slope[9];
    double move_amplitude[3], move_offset[3];
    double turn_time[2], turn_value[12];
    double drive_time[3], drive_value[3];
    double pull_amplitude[6];
} full_scene;

#define FULL_SET(array, ...) memcpy((array), (const double[]){__VA_ARGS__}, sizeof(array))
#define FULL_INDICES(array, ...) memcpy((array), (const uint32_t[]){__VA_ARGS__}, sizeof(array))
#define FULL_VIEW(array) {(array), RW_COUNT_OF(array)}
#define FULL_NAME(member, text) snprintf((member), sizeof(member), "%s", (text))

static inline void full_scene_bodies(full_scene* s) {
    for (size_t i = 0; i < RW_COUNT_OF(s->bodies); i++) {
        rw_scene_init_body(&s->bodies[i]);
    }
    for (size_t i = 0; i < RW_COUNT_OF(s->shapes); i++) {
        s->shapes[i] = (rw_shape_desc){.frame = RW_FRAME_IDENTITY};
    }
    FULL_SET(s->hull_vertices, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    FULL_SET(s->mesh_vertices, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    FULL_INDICES(s->mesh_triangles, 0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3);
    s->shapes[0].kind = RW_SHAPE_CAPSULE;
    s->shapes[0].radius = 0.05;
    s->shapes[0].half_length = 0.45;
    FULL_SET(s->shapes[0].frame.rotation, 0.6, 0, 0.8, 0);
    FULL_SET(s->shapes[0].frame.position, 0.1, 0.2, 0.3);
    s->shapes[1].kind = RW_SHAPE_SPHERE;
    s->shapes[1].radius = 0.1;
    s->shapes[2].kind = RW_SHAPE_BOX;
    FULL_SET(s->shapes[2].half_extents, 0.1, 0.2, 0.3);
    s->shapes[3].kind = RW_SHAPE_CYLINDER;
    s->shapes[3].density = 800;
    s->shapes[3].radius = 0.2;
    s->shapes[3].half_length = 0.5;
    s->shapes[4].kind = RW_SHAPE_HULL;
    s->shapes[4].vertices = (rw_doubles)FULL_VIEW(s->hull_vertices);
    s->shapes[5].kind = RW_SHAPE_PLANE;
    s->shapes[6].kind = RW_SHAPE_MESH;
    s->shapes[6].vertices = (rw_doubles)FULL_VIEW(s->mesh_vertices);
    s->shapes[6].triangles = (rw_uints)FULL_VIEW(s->mesh_triangles);

    rw_body_desc* link = &s->bodies[0];
    FULL_NAME(link->name, "link");
    link->mass = 1;
    link->has_mass = link->has_inertia = link->has_center_of_mass = true;
    FULL_SET(link->inertia, 0.1, 0.1, 0.02, 0.001, 0.002, -0.003);
    FULL_SET(link->center_of_mass, 0.01, 0.02, 0.03);
    FULL_SET(link->position, 0.5, 0, 1);
    FULL_SET(link->rotation, 0.5, 0.5, 0.5, 0.5);
    FULL_SET(link->linear_velocity, 0.1, 0.2, 0.3);
    FULL_SET(link->angular_velocity, 1, 2, 3);
    link->shapes = s->shapes;
    link->shape_count = 1;
    link->friction = 0.5;
    link->restitution = 0.25;
    link->collision_group = 3;
    link->collision_mask = 0xf0f0u;
    rw_body_desc* ball = &s->bodies[1];
    FULL_NAME(ball->name, "ball");
    ball->density = 700;
    ball->has_density = true;
    ball->shapes = s->shapes + 1;
    ball->shape_count = 4;
    rw_body_desc* mover = &s->bodies[2];
    FULL_NAME(mover->name, "mover");
    mover->kind = RW_BODY_KINEMATIC;
    FULL_SET(mover->linear_velocity, 0, 0, 1);
    rw_body_desc* ground = &s->bodies[3];
    FULL_NAME(ground->name, "floor");
    ground->kind = RW_BODY_STATIC;
    ground->shapes = s->shapes + 5;
    ground->shape_count = 2;
}

static inline void full_scene_joints(full_scene* s) {
    for (size_t i = 0; i < RW_COUNT_OF(s->joints); i++) {
        rw_scene_init_joint(&s->joints[i]);
    }
    rw_joint_desc* shoulder = &s->joints[0];
    FULL_NAME(shoulder->name, "shoulder");
    FULL_NAME(shoulder->child, "link");
    shoulder->type = RW_JOINT_REVOLUTE;
    FULL_SET(shoulder->parent_frame.position, 0, 0, 1);
    FULL_SET(shoulder->parent_frame.rotation, 0.6, -0.8, 0, 0);
    FULL_SET(shoulder->child_frame.position, -0.5, 0, 0);
    FULL_SET(shoulder->child_frame.rotation, 0.6, -0.8, 0, 0);
    shoulder->lower_limit = -2.5;
    shoulder->upper_limit = 2.5;
    shoulder->has_lower_limit = shoulder->has_upper_limit = true;
    shoulder->motor = (rw_motor_desc){.mode = RW_MOTOR_POSITION,
                                      .target = {0.3},
                                      .target_count = 1,
                                      .stiffness = 200,
                                      .damping = 5,
                                      .max_effort = 50,
                                      .has_max_effort = true};
    shoulder->compliance = 1e-9;
    shoulder->damping = 0.5;
    shoulder->collide_connected = true;
    rw_joint_desc* wrist = &s->joints[1];
    FULL_NAME(wrist->name, "wrist");
    FULL_NAME(wrist->parent, "link");
    FULL_NAME(wrist->child, "ball");
    wrist->type = RW_JOINT_SPHERICAL;
    wrist->swing_limit = 1;
    wrist->twist_lower_limit = -1;
    wrist->twist_upper_limit = 2;
    wrist->has_swing_limit = wrist->has_twist_lower_limit = wrist->has_twist_upper_limit = true;
    wrist->motor = (rw_motor_desc){
        .mode = RW_MOTOR_POSITION, .target = {0.6, 0, 0.8, 0}, .target_count = 4, .stiffness = 1};
    rw_joint_desc* slide = &s->joints[2];
    FULL_NAME(slide->name, "slide");
    FULL_NAME(slide->parent, "floor");
    FULL_NAME(slide->child, "ball");
    slide->type = RW_JOINT_PRISMATIC;
    slide->motor = (rw_motor_desc){
        .mode = RW_MOTOR_EFFORT, .target = {-7}, .target_count = 1};
    rw_joint_desc* rope = &s->joints[3];
    FULL_NAME(rope->name, "rope");
    FULL_NAME(rope->parent, "mover");
    FULL_NAME(rope->child, "ball");
    rope->type = RW_JOINT_DISTANCE;
    rope->distance = 0.75;
    rope->has_distance = true;
    rw_scene_init_coupling(&s->couplings[0]);
    FULL_NAME(s->couplings[0].name, "gear");
    FULL_NAME(s->couplings[0].joint_a, "shoulder");
    FULL_NAME(s->couplings[0].joint_b, "slide");
    s->couplings[0].ratio = -2;
    s->couplings[0].offset = 0.1;
    s->couplings[0].compliance = 1e-6;
}

static inline void full_scene_rods(full_scene* s) {
    for (size_t i = 0; i < RW_COUNT_OF(s->rods); i++) {
        rw_scene_init_rod(&s->rods[i]);
        s->rods[i].density = 1200;
        s->rods[i].young_modulus = 5e6;
        s->rods[i].has_young_modulus = true;
    }
    rw_rod_desc* cable = &s->rods[0];
    FULL_NAME(cable->name, "cable");
    FULL_SET(cable->straight.start, 1, 0, 1);
    FULL_SET(cable->straight.end, 1, 0, 0);
    FULL_SET(cable->straight.normal, 1, 1, 0);
    cable->straight.has_normal = true;
    cable->elements = 4;
    FULL_SET(s->cable_radius, 0.005, 0.004, 0.003, 0.002, 0.001);
    cable->section_radius = (rw_doubles)FULL_VIEW(s->cable_radius);
    cable->poisson_ratio = 0.3;
    cable->has_poisson_ratio = true;
    cable->shear_factor = 0.9;
    FULL_SET(s->cable_curvature, 0.1, 0, 0, 0, 0.2, 0, 0, 0, 0.3, 0.4, 0, 0);
    cable->rest_curvature = (rw_doubles)FULL_VIEW(s->cable_curvature);
    cable->rest = RW_REST_GIVEN;
    cable->rest_length = 0.9;
    cable->has_rest_length = true;
    cable->damping = 0.01;
    cable->mass_damping = 0.02;
    cable->drag = 0.03;
    cable->quadratic_drag = 0.04;
    for (size_t i = 0; i < RW_COUNT_OF(s->cable_velocity); i++) {
        s->cable_velocity[i] = 0.01 * (double)i;
    }
    cable->linear_velocity = (rw_doubles)FULL_VIEW(s->cable_velocity);
    FULL_SET(s->cable_spin, 0, 0, 2);
    cable->angular_velocity = (rw_doubles)FULL_VIEW(s->cable_spin);
    cable->friction = 0.2;
    cable->restitution = 0.1;
    cable->collision_group = 1;
    cable->collision_mask = 2;
    cable->self_collision = true;
    cable->contact_radius = 0.006;
    rw_rod_desc* coil = &s->rods[1];
    FULL_NAME(coil->name, "coil");
    coil->geometry = RW_ROD_HELIX;
    FULL_SET(coil->helix.center, 2, 0, 0);
    FULL_SET(coil->helix.axis, 0, 1, 0);
    FULL_SET(coil->helix.normal, 0, 0, 1);
    coil->helix.has_normal = true;
    coil->helix.radius = 0.05;
    coil->helix.pitch = 0.01;
    coil->helix.turns = -3;
    coil->elements = 12;
    coil->order = 3;
    coil->section = RW_SECTION_GENERAL;
    coil->section_area = 1e-5;
    coil->section_i1 = 1e-11;
    coil->section_i2 = 2e-11;
    coil->section_j = 3e-11;
    coil->shear_modulus = 2e6;
    coil->has_shear_modulus = true;
    coil->rest = RW_REST_STRAIGHT;
    rw_rod_desc* line = &s->rods[2];
    FULL_NAME(line->name, "line");
    line->geometry = RW_ROD_POLYLINE;
    line->order = 2;
    line->elements = 2;
    FULL_SET(s->line_positions, 0, 0, 0, 0.1, 0, 0, 0.2, 0.1, 0, 0.3, 0.1, 0.1, 0.4, 0, 0.1);
    for (int i = 0; i < 5; i++) {
        memcpy(s->line_rotations + 4 * i, (const double[]){0.5, 0.5, 0.5, 0.5}, 4 * sizeof(double));
    }
    line->polyline.positions = (rw_doubles)FULL_VIEW(s->line_positions);
    line->polyline.rotations = (rw_doubles)FULL_VIEW(s->line_rotations);
    line->section = RW_SECTION_RECTANGLE;
    line->section_width = 0.01;
    line->section_height = 0.02;
    line->stiffness.ea = 1;
    line->stiffness.ga1 = 2;
    line->stiffness.ga2 = 3;
    line->stiffness.ei1 = 4;
    line->stiffness.ei2 = 5;
    line->stiffness.gj = 6;
    line->has_stiffness = true;
    line->has_young_modulus = false;
    line->young_modulus = 0;
    rw_rod_desc* net = &s->rods[3];
    rw_scene_init_rod(net);
    FULL_NAME(net->name, "net");
    net->geometry = RW_ROD_GRAPH;
    FULL_SET(s->net_positions, 0, 0, 5, 1, 0, 5, 2, 0, 5, 1, 1, 5);
    FULL_INDICES(s->net_segments, 0, 1, 1, 2, 1, 3);
    FULL_INDICES(s->net_bends, 0, 1, 0, 2);
    FULL_SET(s->net_masses, 0.1, 0.2, 0.3, 0.4);
    FULL_SET(s->net_stiffness, 100, 200, 300);
    FULL_SET(s->net_lengths, 0.9, 1, 1.1);
    FULL_SET(s->net_rotations, 0.5, 0.5, 0.5, 0.5, 0.6, 0, 0.8, 0, 0.5, 0.5, 0.5, 0.5);
    FULL_SET(s->net_bend_stiffness, 7, 8);
    FULL_SET(s->net_bend_rotations, 1, 0, 0, 0, 0.6, 0.8, 0, 0);
    net->graph.positions = (rw_doubles)FULL_VIEW(s->net_positions);
    net->graph.segments = (rw_uints)FULL_VIEW(s->net_segments);
    net->graph.bends = (rw_uints)FULL_VIEW(s->net_bends);
    net->graph.vertex_masses = (rw_doubles)FULL_VIEW(s->net_masses);
    net->graph.segment_stiffness = (rw_doubles)FULL_VIEW(s->net_stiffness);
    net->graph.segment_rest_lengths = (rw_doubles)FULL_VIEW(s->net_lengths);
    net->graph.segment_rotations = (rw_doubles)FULL_VIEW(s->net_rotations);
    net->graph.bend_stiffness = (rw_doubles)FULL_VIEW(s->net_bend_stiffness);
    net->graph.bend_rest_rotations = (rw_doubles)FULL_VIEW(s->net_bend_rotations);
    (void)s->coil_radius;
}

static inline void full_scene_forces(full_scene* s) {
    for (size_t i = 0; i < RW_COUNT_OF(s->attachments); i++) {
        rw_scene_init_attachment(&s->attachments[i]);
    }
    rw_attachment_desc* grip = &s->attachments[0];
    FULL_NAME(grip->name, "grip");
    FULL_NAME(grip->rod, "cable");
    FULL_NAME(grip->body, "link");
    grip->kind = RW_ATTACH_CLAMP;
    grip->has_s = true;
    FULL_SET(grip->position, 0.1, 0, 0);
    FULL_SET(grip->rotation, 0.6, 0, 0.8, 0);
    grip->has_position = grip->has_rotation = true;
    grip->compliance = 1e-5;
    rw_attachment_desc* pin = &s->attachments[1];
    FULL_NAME(pin->name, "pin");
    FULL_NAME(pin->rod, "line");
    pin->s = 0.75;
    pin->has_s = true;
    rw_attachment_desc* knot = &s->attachments[2];
    FULL_NAME(knot->name, "knot");
    FULL_NAME(knot->rod, "net");
    knot->kind = RW_ATTACH_PIN_SEGMENT;
    knot->node = 3;
    knot->has_node = true;

    for (size_t i = 0; i < RW_COUNT_OF(s->forces); i++) {
        rw_scene_init_force(&s->forces[i]);
    }
    rw_force_desc* spring = &s->forces[0];
    FULL_NAME(spring->name, "spring");
    FULL_NAME(spring->spring_damper.a.body, "link");
    FULL_SET(spring->spring_damper.a.position, 0.1, 0.2, 0.3);
    FULL_SET(spring->spring_damper.b.position, 0.5, 0, 2);
    spring->spring_damper.stiffness = 100;
    spring->spring_damper.damping = 1;
    spring->spring_damper.rest_length = 0.5;
    spring->spring_damper.has_rest_length = true;
    rw_force_desc* tip = &s->forces[1];
    FULL_NAME(tip->name, "tip_load");
    tip->kind = RW_FORCE_LOAD;
    FULL_NAME(tip->load.at.rod, "cable");
    tip->load.at.s = 1;
    tip->load.at.has_s = true;
    FULL_SET(tip->load.force, 0, 0, -0.1);
    FULL_SET(tip->load.torque, 0.01, 0, 0);
    rw_force_desc* push = &s->forces[2];
    FULL_NAME(push->name, "push");
    push->kind = RW_FORCE_LOAD;
    FULL_NAME(push->load.at.body, "ball");
    FULL_SET(push->load.at.position, 0, 0, 0.1);
    FULL_SET(push->load.force, 1, 2, 3);
    push->load.frame = RW_LOAD_BODY;
    rw_force_desc* air = &s->forces[3];
    FULL_NAME(air->name, "air");
    air->kind = RW_FORCE_DRAG;
    FULL_NAME(air->drag.at.body, "ball");
    air->drag.linear = 0.1;
    air->drag.quadratic = 0.2;
    air->drag.angular = 0.3;
}

static inline void full_scene_inputs(full_scene* s) {
    for (size_t i = 0; i < RW_COUNT_OF(s->inputs); i++) {
        rw_scene_init_input(&s->inputs[i]);
    }
    FULL_SET(s->gust_time, 0, 1);
    FULL_SET(s->gust_value, 0, 0, 0, 10, 0, 0);
    FULL_SET(s->sway_time, 0, 1, 3);
    FULL_SET(s->sway_value, 0, 0, 0, 1, 2, 3, 2, 1, 0);
    FULL_SET(s->sway_slope, 0, 0, 0, 1, 1, 1, 0, 0, 0);
    FULL_SET(s->move_amplitude, 0, 0, 0.1);
    FULL_SET(s->move_offset, 0.1, 0, 0);
    FULL_SET(s->turn_time, 0, 2);
    FULL_SET(s->turn_value, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1.5);
    FULL_SET(s->drive_time, 0, 1, 2);
    FULL_SET(s->drive_value, 0, 0.5, 0);
    FULL_SET(s->pull_amplitude, 1, 0, 0, 0, 1, 0);
    rw_input_desc* gust = &s->inputs[0];
    FULL_NAME(gust->name, "gust");
    FULL_NAME(gust->target, "wind");
    gust->time = (rw_doubles)FULL_VIEW(s->gust_time);
    gust->value = (rw_doubles)FULL_VIEW(s->gust_value);
    rw_input_desc* sway = &s->inputs[1];
    FULL_NAME(sway->name, "sway");
    FULL_NAME(sway->target, "gravity");
    sway->kind = RW_INPUT_CUBIC;
    sway->time = (rw_doubles)FULL_VIEW(s->sway_time);
    sway->value = (rw_doubles)FULL_VIEW(s->sway_value);
    sway->slope = (rw_doubles)FULL_VIEW(s->sway_slope);
    rw_input_desc* move = &s->inputs[2];
    FULL_NAME(move->name, "move");
    FULL_NAME(move->target, "attachment/grip");
    move->kind = RW_INPUT_SINE;
    move->amplitude = (rw_doubles)FULL_VIEW(s->move_amplitude);
    move->offset = (rw_doubles)FULL_VIEW(s->move_offset);
    move->frequency = 1;
    move->phase = 0.25;
    rw_input_desc* turn = &s->inputs[3];
    FULL_NAME(turn->name, "turn");
    FULL_NAME(turn->target, "body/mover");
    turn->time = (rw_doubles)FULL_VIEW(s->turn_time);
    turn->value = (rw_doubles)FULL_VIEW(s->turn_value);
    rw_input_desc* drive = &s->inputs[4];
    FULL_NAME(drive->name, "drive");
    FULL_NAME(drive->target, "joint/shoulder");
    drive->kind = RW_INPUT_CUBIC;
    drive->time = (rw_doubles)FULL_VIEW(s->drive_time);
    drive->value = (rw_doubles)FULL_VIEW(s->drive_value);
    rw_input_desc* pull = &s->inputs[5];
    FULL_NAME(pull->name, "pull");
    FULL_NAME(pull->target, "force/tip_load");
    pull->kind = RW_INPUT_SINE;
    pull->amplitude = (rw_doubles)FULL_VIEW(s->pull_amplitude);
    pull->frequency = 2;
}

// Fills the scene; it must stay where it is, since views point into it.
static inline void full_scene_init(full_scene* s) {
    memset(s, 0, sizeof *s);
    rw_scene_init(&s->scene);
    FULL_NAME(s->scene.name, "everything, once");
    FULL_SET(s->scene.gravity, 0, 0.5, -9.5);
    FULL_SET(s->scene.wind, 1, 2, 3);
    s->scene.time_step = 0.002;
    s->scene.substeps = 3;
    s->scene.solver = (rw_solver_options){
        .rigid = RW_SOLVER_DAE,
        .rods = RW_SOLVER_SCR,
        .device = RW_DEVICE_CPU,
        .fast = true,
        .contact = {1e-7, 2e6, 0.25, 2e-3, 0.02},
        .xpbd = {.iterations = 5, .residual_tolerance = 1e-6},
        .dae = {RW_INTEGRATOR_BDF, 1e-7, 1e-9, RW_STABILIZATION_BAUMGARTE, 20, 30, true, true},
        .scr = {.iterations = 11,
                .residual_tolerance = 1e-5,
                .lambda = RW_LAMBDA_APPROXIMATE,
                .order = RW_SCR_ORDER_INDEX},
    };
    full_scene_bodies(s);
    full_scene_joints(s);
    full_scene_rods(s);
    full_scene_forces(s);
    full_scene_inputs(s);
    s->scene.bodies = s->bodies;
    s->scene.body_count = RW_COUNT_OF(s->bodies);
    s->scene.joints = s->joints;
    s->scene.joint_count = RW_COUNT_OF(s->joints);
    s->scene.couplings = s->couplings;
    s->scene.coupling_count = RW_COUNT_OF(s->couplings);
    s->scene.rods = s->rods;
    s->scene.rod_count = RW_COUNT_OF(s->rods);
    s->scene.attachments = s->attachments;
    s->scene.attachment_count = RW_COUNT_OF(s->attachments);
    s->scene.forces = s->forces;
    s->scene.force_count = RW_COUNT_OF(s->forces);
    s->scene.inputs = s->inputs;
    s->scene.input_count = RW_COUNT_OF(s->inputs);
}
