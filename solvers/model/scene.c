#include "solvers/model/scene.h"

#include <string.h>

void rw_scene_init(rw_scene* scene) {
    *scene = (rw_scene){
        .gravity = {0, 0, -9.81},
        .time_step = 0.001,
        .substeps = 1,
        .solver = {
            .rigid = RW_SOLVER_XPBD,
            .rods = RW_SOLVER_XPBD,
            .contact = {.stiffness = 1e6, .damping = 0.5, .slip_velocity = 1e-3, .margin = 0.01},
            .xpbd = {.iterations = 1},
            .dae = {.integrator = RW_INTEGRATOR_RK4,
                    .relative_tolerance = 1e-8,
                    .absolute_tolerance = 1e-10,
                    .stabilization = RW_STABILIZATION_PROJECTION},
            .scr = {.iterations = 8, .lambda = RW_LAMBDA_EXACT, .initial_guess_adaptive = true},
        },
    };
}

void rw_scene_init_body(rw_body_desc* desc) {
    *desc = (rw_body_desc){.rotation = {1, 0, 0, 0}, .collision_mask = UINT32_MAX};
}

void rw_scene_init_joint(rw_joint_desc* desc) {
    *desc = (rw_joint_desc){.parent_frame = RW_FRAME_IDENTITY, .child_frame = RW_FRAME_IDENTITY};
}

void rw_scene_init_coupling(rw_coupling_desc* desc) {
    *desc = (rw_coupling_desc){.ratio = 1};
}

void rw_scene_init_rod(rw_rod_desc* desc) {
    *desc = (rw_rod_desc){.order = 1, .shear_factor = 1, .helix = {.axis = {0, 0, 1}}};
}

void rw_scene_init_attachment(rw_attachment_desc* desc) {
    *desc = (rw_attachment_desc){.rotation = {1, 0, 0, 0}};
}

void rw_scene_init_force(rw_force_desc* desc) {
    memset(desc, 0, sizeof *desc);
}

void rw_scene_init_input(rw_input_desc* desc) {
    memset(desc, 0, sizeof *desc);
}
