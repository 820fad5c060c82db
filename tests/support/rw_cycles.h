// Cycles of a farm: create a session, load 100 bodies and 10 rods, step 10 times, close. Test code
// only; for the leak test and its long version.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/rw_daemon.h"

enum { RW_CYCLES_BODIES = 100, RW_CYCLES_RODS = 10, RW_CYCLES_STEPS = 10 };

__attribute__((unused)) static bool rw_cycles_fill_body(void* context, uint32_t index, void* item) {
    (void)context;
    rw_pb_Body* body = item;
    snprintf(body->name, sizeof body->name, "b%u", index);
    body->mass = 1;
    body->inertia_count = 6;
    body->inertia[0] = 0.1;
    body->inertia[1] = 0.17;
    body->inertia[2] = 0.22;
    body->position_count = body->angular_velocity_count = 3;
    body->position[0] = index;
    body->angular_velocity[1] = 1 + 0.01 * index;
    return true;
}

__attribute__((unused)) static bool rw_cycles_fill_rod(void* context, uint32_t index, void* item) {
    static const double RADIUS[1] = {0.005};
    (void)context;
    rw_pb_Rod* rod = item;
    snprintf(rod->name, sizeof rod->name, "r%u", index);
    rod->which_geometry = rw_pb_Rod_straight_tag;
    rod->geometry.straight.start_count = rod->geometry.straight.end_count = 3;
    rod->geometry.straight.start[1] = rod->geometry.straight.end[1] = index;
    rod->geometry.straight.end[0] = 1;
    rod->elements = 20;
    rod->has_section = true;
    rod->section.radius = rw_wire_from_f64(RADIUS, 1);
    rod->density = 1200;
    rod->young_modulus = 5e6;
    return true;
}

// One cycle; the hash of the world before it was closed.
__attribute__((unused)) static uint64_t rw_cycles_run(rw_daemon_client* client) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    rw_pb_Response response;
    uint64_t session = rw_daemon_create_session(client, "");
    request.session = session;
    request.which_command = rw_pb_Request_load_scene_tag;
    request.command.load_scene.has_scene = true;
    rw_pb_Scene* scene = &request.command.load_scene.scene;
    scene->has_solver = true;
    scene->solver.has_rods = true;
    scene->solver.rods = rw_pb_RodSolver_Method_SCR;
    scene->bodies =
        rw_wire_from_fill(rw_cycles_fill_body, NULL, sizeof(rw_pb_Body), RW_CYCLES_BODIES);
    scene->rods = rw_wire_from_fill(rw_cycles_fill_rod, NULL, sizeof(rw_pb_Rod), RW_CYCLES_RODS);
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        fprintf(stderr, "LoadScene: %s: %s\n", response.path, response.message);
        abort();
    }
    rw_daemon_step(client, session, RW_CYCLES_STEPS);
    uint64_t hash = rw_daemon_hash(client, session);
    memset(&request, 0, sizeof request);
    request.session = session;
    request.which_command = rw_pb_Request_close_session_tag;
    if (rw_daemon_call(client, &request, &response) != rw_pb_Status_Code_OK) {
        abort();
    }
    return hash;
}
