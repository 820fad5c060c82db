// Changes of values: Set*, ApplyWrench. Visible to the next query, before any step.
#include <string.h>

#include "server/dispatch/commands.h"
#include "server/session/host.h"
#include "solvers/base/clock.h"

// ---- Helpers ----

rw_status rw_commands_set_find(rw_command* command, rw_kind kind, const rw_pb_Ref* reference,
                               bool is_given, const char* path, int32_t* index) {
    bool has_name = is_given && reference->name[0] != '\0';
    bool has_id = is_given && reference->id != 0;
    if (has_name == has_id) {
        RW_FAIL(command->error, INVALID_ARGUMENT, path, "give exactly one of name and id");
    }
    rw_status status = rw_world_find(command->world, kind, has_id ? reference->id : RW_ID_NONE,
                                     reference->name, index, command->error);
    if (status != RW_STATUS_OK) {
        command->error->path[0] = '\0';
        return rw_status_prefix(command->error, "%s.%s", path, has_id ? "id" : "name");
    }
    return RW_STATUS_OK;
}

// Copies an array of fixed shape; absent leaves `*has` false.
static rw_status take(rw_command* command, const double* values, size_t count, size_t shape,
                      const char* path, bool* has, double* out) {
    *has = count > 0;
    if (count != 0 && count != shape) {
        RW_FAIL(command->error, INVALID_ARGUMENT, path, "must hold %zu numbers, got %zu", shape,
                count);
    }
    memcpy(out, values, count * sizeof(double));
    return RW_STATUS_OK;
}

#define TAKE(message, field, shape, has, out)                                                      \
    RW_TRY(take(command, (message)->field, (message)->field##_count, (shape), #field, (has), (out)))

// ---- Bodies ----

rw_status rw_commands_set_pose(rw_command* command) {
    const rw_pb_SetPose* pose = &command->request->command.set_pose;
    rw_body_set set = {0};
    int32_t body;
    RW_TRY(rw_commands_set_find(command, RW_KIND_BODY, &pose->body, pose->has_body, "body", &body));
    TAKE(pose, position, 3, &set.has_position, set.position);
    TAKE(pose, rotation, 4, &set.has_rotation, set.rotation);
    return rw_world_set_body(command->world, body, &set, command->error);
}

rw_status rw_commands_set_velocity(rw_command* command) {
    const rw_pb_SetVelocity* velocity = &command->request->command.set_velocity;
    rw_body_set set = {0};
    int32_t body;
    RW_TRY(rw_commands_set_find(command, RW_KIND_BODY, &velocity->body, velocity->has_body, "body",
                                &body));
    TAKE(velocity, linear, 3, &set.has_linear_velocity, set.linear_velocity);
    TAKE(velocity, angular, 3, &set.has_angular_velocity, set.angular_velocity);
    rw_status status = rw_world_set_body(command->world, body, &set, command->error);
    // The message has its own names for what the world calls velocities.
    if (status != RW_STATUS_OK && strncmp(command->error->path, "linear", 6) == 0) {
        strcpy(command->error->path, "linear");
    } else if (status != RW_STATUS_OK && strncmp(command->error->path, "angular", 7) == 0) {
        strcpy(command->error->path, "angular");
    }
    return status;
}

rw_status rw_commands_set_body_properties(rw_command* command) {
    const rw_pb_SetBodyProperties* given = &command->request->command.set_body_properties;
    rw_body_set set = {.has_mass = given->has_mass,
                       .mass = given->mass,
                       .has_friction = given->has_friction,
                       .friction = given->friction,
                       .has_restitution = given->has_restitution,
                       .restitution = given->restitution};
    int32_t body;
    RW_TRY(
        rw_commands_set_find(command, RW_KIND_BODY, &given->body, given->has_body, "body", &body));
    TAKE(given, inertia, 6, &set.has_inertia, set.inertia);
    TAKE(given, center_of_mass, 3, &set.has_center_of_mass, set.center_of_mass);
    return rw_world_set_body(command->world, body, &set, command->error);
}

// ---- Joints ----

rw_status rw_commands_set_joint_state(rw_command* command) {
    const rw_pb_SetJointState* given = &command->request->command.set_joint_state;
    int32_t joint;
    RW_TRY(rw_commands_set_find(command, RW_KIND_JOINT, &given->joint, given->has_joint, "joint",
                                &joint));
    rw_joint_set set = {.coordinate = {given->coordinate, given->coordinate_count},
                        .rate = {given->rate, given->rate_count}};
    return rw_world_set_joint(command->world, joint, &set, command->error);
}

rw_status rw_commands_set_motor(rw_command* command) {
    const rw_pb_SetMotor* given = &command->request->command.set_motor;
    int32_t joint;
    RW_TRY(rw_commands_set_find(command, RW_KIND_JOINT, &given->joint, given->has_joint, "joint",
                                &joint));
    rw_motor_desc motor = rw_world_model(command->world)->joints.items[joint].desc.motor;
    if (given->has_mode) {
        motor.mode = (rw_motor_mode)given->mode;
    }
    if (given->target_count > 0) {
        motor.target_count = given->target_count;
        memcpy(motor.target, given->target, given->target_count * sizeof(double));
    }
    motor.stiffness = given->has_stiffness ? given->stiffness : motor.stiffness;
    motor.damping = given->has_damping ? given->damping : motor.damping;
    if (given->has_max_effort) {
        motor.has_max_effort = given->max_effort >= 0; // a negative number removes the clip
        motor.max_effort = motor.has_max_effort ? given->max_effort : 0;
    }
    rw_joint_set set = {.motor = &motor};
    return rw_world_set_joint(command->world, joint, &set, command->error);
}

rw_status rw_commands_set_joint_properties(rw_command* command) {
    const rw_pb_SetJointProperties* given = &command->request->command.set_joint_properties;
    int32_t joint;
    RW_TRY(rw_commands_set_find(command, RW_KIND_JOINT, &given->joint, given->has_joint, "joint",
                                &joint));
    rw_joint_set set = {.has_compliance = given->has_compliance,
                        .compliance = given->compliance,
                        .has_damping = given->has_damping,
                        .damping = given->damping,
                        .has_lower_limit = given->has_lower_limit,
                        .lower_limit = given->lower_limit,
                        .has_upper_limit = given->has_upper_limit,
                        .upper_limit = given->upper_limit};
    return rw_world_set_joint(command->world, joint, &set, command->error);
}

// ---- Rods and attachments ----

static rw_status view(rw_command* command, rw_wire_array array, rw_doubles* out) {
    const double* data = rw_wire_view_f64(array, command->arena);
    if (data == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    *out = (rw_doubles){data, array.count};
    return RW_STATUS_OK;
}

rw_status rw_commands_set_rod_properties(rw_command* command) {
    const rw_pb_SetRodProperties* given = &command->request->command.set_rod_properties;
    int32_t rod;
    RW_TRY(rw_commands_set_find(command, RW_KIND_ROD, &given->rod, given->has_rod, "rod", &rod));
    rw_rod_set set = {.has_density = given->has_density,
                      .density = given->density,
                      .has_young_modulus = given->has_young_modulus,
                      .young_modulus = given->young_modulus,
                      .has_poisson_ratio = given->has_poisson_ratio,
                      .poisson_ratio = given->poisson_ratio,
                      .has_damping = given->has_damping,
                      .damping = given->damping,
                      .has_mass_damping = given->has_mass_damping,
                      .mass_damping = given->mass_damping,
                      .has_drag = given->has_drag,
                      .drag = given->drag,
                      .has_friction = given->has_friction,
                      .friction = given->friction,
                      .has_rest_length = given->has_rest_length,
                      .rest_length = given->rest_length,
                      .has_stiffness = given->has_stiffness,
                      .stiffness = {given->stiffness.ea, given->stiffness.ga1,
                                    given->stiffness.ga2, given->stiffness.ei1,
                                    given->stiffness.ei2, given->stiffness.gj}};
    RW_TRY(view(command, given->rest_curvature, &set.rest_curvature));
    RW_TRY(view(command, given->segment_stiffness, &set.segment_stiffness));
    RW_TRY(view(command, given->segment_rest_lengths, &set.segment_rest_lengths));
    RW_TRY(view(command, given->bend_stiffness, &set.bend_stiffness));
    RW_TRY(view(command, given->bend_rest_rotations, &set.bend_rest_rotations));
    RW_TRY(view(command, given->node_positions, &set.node_positions));
    RW_TRY(view(command, given->node_velocities, &set.node_velocities));
    return rw_world_set_rod(command->world, rod, &set, command->error);
}

rw_status rw_commands_set_attachment_target(rw_command* command) {
    const rw_pb_SetAttachmentTarget* given = &command->request->command.set_attachment_target;
    rw_attachment_set set = {0};
    int32_t attachment;
    RW_TRY(rw_commands_set_find(command, RW_KIND_ATTACHMENT, &given->attachment,
                                given->has_attachment, "attachment", &attachment));
    TAKE(given, position, 3, &set.has_position, set.position);
    TAKE(given, rotation, 4, &set.has_rotation, set.rotation);
    return rw_world_set_attachment(command->world, attachment, &set, command->error);
}

// ---- The whole world ----

rw_status rw_commands_set_gravity(rw_command* command) {
    const rw_pb_SetGravity* given = &command->request->command.set_gravity;
    rw_world_set set = {0};
    TAKE(given, gravity, 3, &set.has_gravity, set.gravity);
    if (!set.has_gravity) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "gravity", "must hold 3 numbers");
    }
    return rw_world_set_options(command->world, &set, command->error);
}

rw_status rw_commands_set_wind(rw_command* command) {
    const rw_pb_SetWind* given = &command->request->command.set_wind;
    rw_world_set set = {0};
    TAKE(given, wind, 3, &set.has_wind, set.wind);
    if (!set.has_wind) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "wind", "must hold 3 numbers");
    }
    return rw_world_set_options(command->world, &set, command->error);
}

rw_status rw_commands_set_time_step(rw_command* command) {
    const rw_pb_SetTimeStep* given = &command->request->command.set_time_step;
    rw_world_set set = {.has_time_step = given->has_time_step,
                        .time_step = given->time_step,
                        .has_substeps = given->has_substeps,
                        .substeps = given->substeps};
    RW_TRY(rw_world_set_options(command->world, &set, command->error));
    if (command->session->pacing.is_on) {
        rw_pacing_rebase(&command->session->pacing, rw_clock_now_ns());
    }
    return RW_STATUS_OK;
}

// ---- Forces ----

rw_status rw_commands_set_force(rw_command* command) {
    const rw_pb_SetForce* given = &command->request->command.set_force;
    rw_force_set set = {.has_stiffness = given->has_stiffness,
                        .stiffness = given->stiffness,
                        .has_damping = given->has_damping,
                        .damping = given->damping,
                        .has_rest_length = given->has_rest_length,
                        .rest_length = given->rest_length,
                        .has_linear = given->has_linear,
                        .linear = given->linear,
                        .has_quadratic = given->has_quadratic,
                        .quadratic = given->quadratic,
                        .has_angular = given->has_angular,
                        .angular = given->angular};
    int32_t force;
    RW_TRY(rw_commands_set_find(command, RW_KIND_FORCE, &given->force, given->has_force, "force",
                                &force));
    TAKE(given, load_force, 3, &set.has_force, set.force);
    TAKE(given, load_torque, 3, &set.has_torque, set.torque);
    return rw_world_set_force(command->world, force, &set, command->error);
}

// Node of a rod that the message names. Errors carry `s` or `node`.
static rw_status find_node(rw_command* command, const rw_pb_ApplyWrench* given, int32_t rod,
                           int32_t* node) {
    const rw_rod* one = &rw_world_model(command->world)->rods.items[rod];
    if (given->which_place == rw_pb_ApplyWrench_node_tag) {
        if (given->place.node >= (uint32_t)one->node_count) {
            RW_FAIL(command->error, OUT_OF_RANGE, "node", "rod \"%s\" has %d nodes",
                    one->desc.name, one->node_count);
        }
        *node = (int32_t)given->place.node;
        return RW_STATUS_OK;
    }
    if (given->which_place != rw_pb_ApplyWrench_s_tag) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "s", "a rod needs s or node");
    }
    if (!(given->place.s >= 0 && given->place.s <= 1)) {
        RW_FAIL(command->error, OUT_OF_RANGE, "s", "must be in [0, 1], got %g", given->place.s);
    }
    if (one->desc.geometry == RW_ROD_GRAPH) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "s", "a graph rod needs node");
    }
    *node = rw_model_node_at(rw_world_model(command->world), rod, given->place.s);
    return RW_STATUS_OK;
}

rw_status rw_commands_set_apply_wrench(rw_command* command) {
    const rw_pb_ApplyWrench* given = &command->request->command.apply_wrench;
    rw_applied_wrench wrench = {
        .body = -1, .rod = -1, .node = -1, .frame = (rw_load_frame)given->frame};
    bool has_position, unused;
    if (given->has_body == given->has_rod) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "body", "give exactly one of body and rod");
    }
    if (given->has_body) {
        RW_TRY(rw_commands_set_find(command, RW_KIND_BODY, &given->body, true, "body",
                                    &wrench.body));
    } else {
        RW_TRY(
            rw_commands_set_find(command, RW_KIND_ROD, &given->rod, true, "rod", &wrench.rod));
        RW_TRY(find_node(command, given, wrench.rod, &wrench.node));
    }
    TAKE(given, position, 3, &has_position, wrench.point);
    if (has_position && given->has_rod) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "position", "is for bodies; a rod takes s or node");
    }
    TAKE(given, force, 3, &unused, wrench.force);
    TAKE(given, torque, 3, &unused, wrench.torque);
    uint32_t steps = given->has_steps ? given->steps : 1;
    wrench.steps_left = steps == 0 ? -1 : (int64_t)steps;
    // A lasting wrench replaces the lasting ones there; what is wrong with it must show before.
    RW_TRY(rw_world_check_wrench(&wrench, command->error));
    if (steps == 0) {
        rw_world_clear_wrenches(command->world, wrench.body, wrench.rod);
    }
    return rw_world_apply_wrench(command->world, &wrench, command->error);
}
