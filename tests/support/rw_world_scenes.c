#include "tests/support/rw_world_scenes.h"

#include <stdio.h>
#include <string.h>

static rw_body_desc make_body(int i) {
    rw_body_desc body;
    rw_scene_init_body(&body);
    snprintf(body.name, sizeof body.name, "body%d", i);
    body.mass = 0.5 + 0.25 * i;
    body.inertia[0] = 0.02 + 0.01 * i;
    body.inertia[1] = 0.03 + 0.01 * i;
    body.inertia[2] = 0.04 + 0.01 * i;
    body.inertia[3] = 0.002;
    body.inertia[5] = -0.001;
    body.has_mass = body.has_inertia = true;
    body.position[0] = i;
    body.position[2] = 1 + 0.1 * i;
    body.angular_velocity[i % 3] = 1 + i;
    body.linear_velocity[(i + 1) % 3] = 0.5 * i;
    if (i % 2 == 1) {
        body.center_of_mass[0] = 0.05;
        body.has_center_of_mass = true;
    }
    return body;
}

static rw_force_desc make_spring(int i, const char* a, const char* b) {
    rw_force_desc force;
    rw_scene_init_force(&force);
    snprintf(force.name, sizeof force.name, "spring%d", i);
    force.kind = RW_FORCE_SPRING_DAMPER;
    snprintf(force.spring_damper.a.body, RW_NAME_CAPACITY, "%s", a);
    snprintf(force.spring_damper.b.body, RW_NAME_CAPACITY, "%s", b);
    force.spring_damper.a.position[1] = 0.1;
    force.spring_damper.stiffness = 200 + 100 * i;
    force.spring_damper.damping = 0.3;
    return force;
}

void rw_world_scenes_bodies(rw_world_scenes* out) {
    memset(out, 0, sizeof *out);
    rw_scene* scene = &out->scene;
    rw_scene_init(scene);
    snprintf(scene->name, sizeof scene->name, "tumbling bodies");
    scene->wind[0] = 1;
    for (int i = 0; i < 8; i++) {
        out->bodies[i] = make_body(i);
    }
    out->bodies[6].kind = RW_BODY_KINEMATIC;
    out->bodies[7].kind = RW_BODY_STATIC;
    memset(out->bodies[7].linear_velocity, 0, sizeof out->bodies[7].linear_velocity);
    memset(out->bodies[7].angular_velocity, 0, sizeof out->bodies[7].angular_velocity);
    out->forces[0] = make_spring(0, "body0", "body1");
    out->forces[1] = make_spring(1, "body1", "body2");
    out->forces[2] = make_spring(2, "body3", "body6");
    rw_scene_init_force(&out->forces[3]);
    snprintf(out->forces[3].name, RW_NAME_CAPACITY, "thrust");
    out->forces[3].kind = RW_FORCE_LOAD;
    snprintf(out->forces[3].load.at.body, RW_NAME_CAPACITY, "body4");
    out->forces[3].load.force[2] = 9;
    out->forces[3].load.frame = RW_LOAD_BODY;
    rw_scene_init_force(&out->forces[4]);
    snprintf(out->forces[4].name, RW_NAME_CAPACITY, "drag");
    out->forces[4].kind = RW_FORCE_DRAG;
    snprintf(out->forces[4].drag.at.body, RW_NAME_CAPACITY, "body5");
    out->forces[4].drag.linear = 0.3;
    out->forces[4].drag.quadratic = 0.1;
    scene->bodies = out->bodies;
    scene->body_count = 8;
    scene->forces = out->forces;
    scene->force_count = 5;
}

static rw_rod_desc make_rod(const char* name) {
    rw_rod_desc rod;
    rw_scene_init_rod(&rod);
    snprintf(rod.name, sizeof rod.name, "%s", name);
    static const double radius = 0.01;
    rod.section_radius = (rw_doubles){&radius, 1};
    rod.density = 1000;
    rod.young_modulus = 1e6;
    rod.has_young_modulus = true;
    rod.elements = 10;
    return rod;
}

static rw_attachment_desc make_attachment(const char* name, const char* rod, double s,
                                          rw_attachment_kind kind, const char* body) {
    rw_attachment_desc attachment;
    rw_scene_init_attachment(&attachment);
    snprintf(attachment.name, sizeof attachment.name, "%s", name);
    snprintf(attachment.rod, sizeof attachment.rod, "%s", rod);
    snprintf(attachment.body, sizeof attachment.body, "%s", body);
    attachment.kind = kind;
    attachment.s = s;
    attachment.has_s = true;
    return attachment;
}

void rw_world_scenes_mixed(rw_world_scenes* out) {
    rw_world_scenes_bodies(out);
    rw_scene* scene = &out->scene;
    snprintf(scene->name, sizeof scene->name, "bodies and rods");
    scene->solver.rods = RW_SOLVER_SCR;
    out->rods[0] = make_rod("cantilever");
    out->rods[0].straight.start[1] = 2;
    out->rods[0].straight.end[0] = 0.5;
    out->rods[0].straight.end[1] = 2;
    out->rods[1] = make_rod("rope");
    out->rods[1].straight.start[0] = 4;
    out->rods[1].straight.start[2] = 1.4;
    out->rods[1].straight.end[0] = 5;
    out->rods[1].straight.end[2] = 1.5;
    out->rods[2] = make_rod("helix");
    out->rods[2].geometry = RW_ROD_HELIX;
    out->rods[2].elements = 24;
    out->rods[2].helix.axis[2] = 1;
    out->rods[2].helix.center[1] = -2;
    out->rods[2].helix.radius = 0.1;
    out->rods[2].helix.pitch = 0.1;
    out->rods[2].helix.turns = 2;
    out->attachments[0] = make_attachment("root", "cantilever", 0, RW_ATTACH_CLAMP, "");
    out->attachments[1] = make_attachment("left", "rope", 0, RW_ATTACH_PIN, "body4");
    out->attachments[2] = make_attachment("right", "rope", 1, RW_ATTACH_CLAMP, "body5");
    rw_scene_init_force(&out->forces[5]);
    snprintf(out->forces[5].name, RW_NAME_CAPACITY, "tip");
    out->forces[5].kind = RW_FORCE_LOAD;
    snprintf(out->forces[5].load.at.rod, RW_NAME_CAPACITY, "cantilever");
    out->forces[5].load.at.s = 1;
    out->forces[5].load.at.has_s = true;
    out->forces[5].load.force[1] = 0.01;
    static const double time[2] = {0, 0.1}, wind[6] = {0, 0, 0, 3, 0, 0};
    static const double swing[3] = {0, 0, 0.05};
    rw_scene_init_input(&out->inputs[0]);
    snprintf(out->inputs[0].name, RW_NAME_CAPACITY, "gust");
    snprintf(out->inputs[0].target, sizeof out->inputs[0].target, "wind");
    out->inputs[0].kind = RW_INPUT_PIECEWISE_LINEAR;
    out->inputs[0].time = (rw_doubles){time, 2};
    out->inputs[0].value = (rw_doubles){wind, 6};
    rw_scene_init_input(&out->inputs[1]);
    snprintf(out->inputs[1].name, RW_NAME_CAPACITY, "shake");
    snprintf(out->inputs[1].target, sizeof out->inputs[1].target, "attachment/root");
    out->inputs[1].kind = RW_INPUT_SINE;
    out->inputs[1].amplitude = (rw_doubles){swing, 3};
    out->inputs[1].frequency = 2;
    scene->rods = out->rods;
    scene->rod_count = 3;
    scene->attachments = out->attachments;
    scene->attachment_count = 3;
    scene->force_count = 6;
    scene->inputs = out->inputs;
    scene->input_count = 2;
}
