// Small scenes as C descriptions, for tests of the world, determinism and allocation failures.
// Test code only; one thread.
#pragma once

#include "solvers/model/scene.h"

typedef struct rw_world_scenes {
    rw_scene scene;
    rw_body_desc bodies[8];
    rw_rod_desc rods[4];
    rw_attachment_desc attachments[8];
    rw_force_desc forces[6];
    rw_input_desc inputs[4];
} rw_world_scenes;

// Eight tumbling bodies (one kinematic, one static) with springs, a follower load and drag; no rods.
void rw_world_scenes_bodies(rw_world_scenes* out);

// The same and, by the scr solver, a clamped cantilever, a rope between two bodies and a free
// helix, with loads, wind input and a moving clamp.
void rw_world_scenes_mixed(rw_world_scenes* out);
