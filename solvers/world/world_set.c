// Set*: changes of parameters and of the motion from outside. Frequent ones (motor targets,
// attachment targets, loads, poses and velocities of dynamic bodies) touch no revision, so that the
// control loop's next step has nothing to prepare. Gravity, wind and what moves a kinematic body do.
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/kinematics.h"
#include "solvers/model/validate.h"
#include "solvers/world/world_private.h"

static void state_changed(rw_world* world) {
    const rw_world_solvers* solvers = &world->solvers;
    solvers->rigid.vtable->state_changed(solvers->rigid.self);
    solvers->rods.vtable->state_changed(solvers->rods.self);
}

// Checks what the set gives beyond the description: the motion.
static rw_status check_body_motion(const rw_body_set* set, rw_error* error) {
    if (set->has_position) {
        RW_TRY(rw_validate_numbers(set->position, 3, "position", error));
    }
    if (set->has_rotation) {
        RW_TRY(rw_validate_rotation(set->rotation, "rotation", error));
    }
    if (set->has_linear_velocity) {
        RW_TRY(rw_validate_numbers(set->linear_velocity, 3, "linear_velocity", error));
    }
    if (set->has_angular_velocity) {
        RW_TRY(rw_validate_numbers(set->angular_velocity, 3, "angular_velocity", error));
    }
    return RW_STATUS_OK;
}

rw_status rw_world_set_body(rw_world* world, int32_t body, const rw_body_set* set,
                            rw_error* error) {
    rw_model* model = &world->model;
    RW_TRY(check_body_motion(set, error));
    bool has_motion = set->has_position || set->has_rotation || set->has_linear_velocity ||
                      set->has_angular_velocity;
    bool has_properties = set->has_mass || set->has_inertia || set->has_center_of_mass ||
                          set->has_friction || set->has_restitution;

    // The motion of the body's origin, before a new centre of mass could change what it means.
    static const double origin[3];
    rw_state* state = &world->state[world->good];
    rw_body_desc motion = {0};
    rw_kinematics_point(model, state, body, origin, motion.position);
    rw_kinematics_point_velocity(model, state, body, origin, motion.linear_velocity);
    memcpy(motion.rotation, &state->body_rotation[4 * body], sizeof motion.rotation);
    memcpy(motion.angular_velocity, &state->body_angular_velocity[3 * body],
           sizeof motion.angular_velocity);
    if (set->has_position) {
        memcpy(motion.position, set->position, sizeof motion.position);
    }
    if (set->has_rotation) {
        memcpy(motion.rotation, set->rotation, sizeof motion.rotation);
        rw_validate_normalize(motion.rotation);
    }
    if (set->has_linear_velocity) {
        memcpy(motion.linear_velocity, set->linear_velocity, sizeof motion.linear_velocity);
    }
    if (set->has_angular_velocity) {
        memcpy(motion.angular_velocity, set->angular_velocity, sizeof motion.angular_velocity);
    }

    // What does not move by itself is described by where it is put: an input adds to it.
    bool is_placed = model->bodies.kind[body] != RW_BODY_DYNAMIC && has_motion;
    bool is_only_driven = is_placed && !has_properties && !set->has_position &&
                          !set->has_rotation &&
                          model->bodies.kind[body] == RW_BODY_KINEMATIC;
    if (is_only_driven) {
        // The control loop's: it moves all the time, so nothing was prepared for where it is.
        rw_body_desc* desc = &model->bodies.items[body].desc;
        memcpy(desc->position, motion.position, sizeof desc->position);
        memcpy(desc->rotation, motion.rotation, sizeof desc->rotation);
        memcpy(desc->linear_velocity, motion.linear_velocity, sizeof desc->linear_velocity);
        memcpy(desc->angular_velocity, motion.angular_velocity, sizeof desc->angular_velocity);
    } else if (has_properties || is_placed) {
        rw_body_desc desc = model->bodies.items[body].desc;
        if (is_placed) {
            memcpy(desc.position, motion.position, sizeof desc.position);
            memcpy(desc.rotation, motion.rotation, sizeof desc.rotation);
            memcpy(desc.linear_velocity, motion.linear_velocity, sizeof desc.linear_velocity);
            memcpy(desc.angular_velocity, motion.angular_velocity, sizeof desc.angular_velocity);
        }
        if (set->has_mass) {
            desc.mass = set->mass;
            desc.has_mass = true;
        }
        if (set->has_inertia) {
            memcpy(desc.inertia, set->inertia, sizeof desc.inertia);
            desc.has_inertia = true;
        }
        if (set->has_center_of_mass) {
            memcpy(desc.center_of_mass, set->center_of_mass, sizeof desc.center_of_mass);
            desc.has_center_of_mass = true;
        }
        desc.friction = set->has_friction ? set->friction : desc.friction;
        desc.restitution = set->has_restitution ? set->restitution : desc.restitution;
        RW_TRY(rw_model_replace_body(model, body, &desc, error));
    }
    if (has_motion || has_properties) {
        rw_kinematics_place(model, body, motion.position, motion.rotation, motion.linear_velocity,
                            motion.angular_velocity, state);
        state_changed(world);
    }
    return RW_STATUS_OK;
}

// The motor that a set leaves the joint with.
static rw_status choose_motor(const rw_joint_desc* desc, const rw_joint_set* set,
                              rw_motor_desc* motor, rw_error* error) {
    *motor = set->motor != NULL ? *set->motor : desc->motor;
    if (set->motor_target.count == 0) {
        return RW_STATUS_OK;
    }
    if (set->motor_target.count > RW_COUNT_OF(motor->target)) {
        RW_FAIL(error, INVALID_ARGUMENT, "target", "must have at most %zu values, got %zu",
                RW_COUNT_OF(motor->target), set->motor_target.count);
    }
    memcpy(motor->target, set->motor_target.data, set->motor_target.count * sizeof(double));
    motor->target_count = set->motor_target.count;
    return rw_validate_motor(desc->type, motor, error);
}

static rw_status check_joint_motion(const rw_joint* joint, const rw_joint_set* set,
                                    rw_error* error) {
    size_t coordinate_count = (size_t)joint->coordinate_count;
    size_t rate_count = (size_t)joint->rate_count;
    if (set->coordinate.count != 0 && set->coordinate.count != coordinate_count) {
        RW_FAIL(error, INVALID_ARGUMENT, "coordinate", "must have %zu values, got %zu",
                coordinate_count, set->coordinate.count);
    }
    if (set->rate.count != 0 && set->rate.count != rate_count) {
        RW_FAIL(error, INVALID_ARGUMENT, "rate", "must have %zu values, got %zu", rate_count,
                set->rate.count);
    }
    RW_TRY(rw_validate_numbers(set->coordinate.data, set->coordinate.count, "coordinate", error));
    return rw_validate_numbers(set->rate.data, set->rate.count, "rate", error);
}

rw_status rw_world_set_joint(rw_world* world, int32_t joint, const rw_joint_set* set,
                             rw_error* error) {
    rw_joint* record = &world->model.joints.items[joint];
    rw_motor_desc motor;
    RW_TRY(choose_motor(&record->desc, set, &motor, error));
    RW_TRY(check_joint_motion(record, set, error));
    if (set->motor != NULL || set->has_damping || set->has_compliance || set->has_lower_limit ||
        set->has_upper_limit) {
        rw_joint_desc desc = record->desc;
        if (set->has_lower_limit) {
            desc.lower_limit = set->lower_limit;
            desc.has_lower_limit = true;
        }
        if (set->has_upper_limit) {
            desc.upper_limit = set->upper_limit;
            desc.has_upper_limit = true;
        }
        desc.motor = motor;
        desc.damping = set->has_damping ? set->damping : desc.damping;
        desc.compliance = set->has_compliance ? set->compliance : desc.compliance;
        RW_TRY(rw_model_replace_joint(&world->model, joint, &desc, error));
    } else if (set->motor_target.count > 0) {
        record->desc.motor = motor; // the control loop's: no revision
    }
    if (set->coordinate.count == 0 && set->rate.count == 0) {
        return RW_STATUS_OK;
    }
    RW_TRY(rw_world_prepare(world, error));
    const rw_solver* rigid = &world->solvers.rigid;
    rw_status status = rigid->vtable->set_joint(
        rigid->self, &world->state[world->good], joint,
        set->coordinate.count > 0 ? set->coordinate.data : NULL,
        set->rate.count > 0 ? set->rate.data : NULL, error);
    state_changed(world);
    return status;
}

// Writes what the set gives over a description. True when it gives a parameter.
static bool overlay_rod(const rw_rod_set* set, rw_rod_desc* desc) {
    bool any = false;
    const struct {
        bool given;
        double value;
        double* to;
        bool* has; // NULL: none
    } scalars[] = {
        {set->has_density, set->density, &desc->density, NULL},
        {set->has_young_modulus, set->young_modulus, &desc->young_modulus,
         &desc->has_young_modulus},
        {set->has_poisson_ratio, set->poisson_ratio, &desc->poisson_ratio,
         &desc->has_poisson_ratio},
        {set->has_damping, set->damping, &desc->damping, NULL},
        {set->has_mass_damping, set->mass_damping, &desc->mass_damping, NULL},
        {set->has_drag, set->drag, &desc->drag, NULL},
        {set->has_friction, set->friction, &desc->friction, NULL},
        {set->has_rest_length, set->rest_length, &desc->rest_length, &desc->has_rest_length},
    };
    for (size_t i = 0; i < RW_COUNT_OF(scalars); i++) {
        if (scalars[i].given) {
            *scalars[i].to = scalars[i].value;
            if (scalars[i].has != NULL) {
                *scalars[i].has = true;
            }
            any = true;
        }
    }
    if (set->has_stiffness) {
        memcpy(&desc->stiffness, set->stiffness, sizeof set->stiffness);
        desc->has_stiffness = true;
        any = true;
    }
    const struct {
        rw_doubles given;
        rw_doubles* to;
    } arrays[] = {
        {set->rest_curvature, &desc->rest_curvature},
        {set->segment_stiffness, &desc->graph.segment_stiffness},
        {set->segment_rest_lengths, &desc->graph.segment_rest_lengths},
        {set->bend_stiffness, &desc->graph.bend_stiffness},
        {set->bend_rest_rotations, &desc->graph.bend_rest_rotations},
    };
    for (size_t i = 0; i < RW_COUNT_OF(arrays); i++) {
        if (arrays[i].given.count > 0) {
            *arrays[i].to = arrays[i].given;
            any = true;
        }
    }
    return any;
}

rw_status rw_world_set_rod(rw_world* world, int32_t rod, const rw_rod_set* set, rw_error* error) {
    rw_model* model = &world->model;
    rw_rod* record = &model->rods.items[rod];
    size_t node_values = (size_t)record->node_count * 3;
    const rw_doubles motions[2] = {set->node_positions, set->node_velocities};
    static const char* const names[2] = {"node_positions", "node_velocities"};
    for (int i = 0; i < 2; i++) {
        if (motions[i].count != 0 && motions[i].count != node_values) {
            RW_FAIL(error, INVALID_ARGUMENT, names[i], "must have %zu values (%d x 3), got %zu",
                    node_values, record->node_count, motions[i].count);
        }
        RW_TRY(rw_validate_numbers(motions[i].data, motions[i].count, names[i], error));
    }

    rw_rod_desc desc = record->desc;
    if (overlay_rod(set, &desc)) {
        int32_t frame_count, element_count;
        const rw_solver* solver = &world->solvers.rods;
        RW_TRY(rw_validate_rod(&desc, error));
        RW_TRY(solver->vtable->admit_rod(solver->self, &desc, &frame_count, &element_count,
                                         error));
        RW_TRY(rw_model_replace_rod(model, rod, &desc, error));
    }

    rw_state* state = &world->state[world->good];
    size_t bytes = node_values * sizeof(double);
    if (set->node_positions.count > 0) {
        memcpy(&state->node_position[3 * (int64_t)record->node_first], set->node_positions.data,
               bytes);
    }
    if (set->node_velocities.count > 0) {
        memcpy(&state->node_velocity[3 * (int64_t)record->node_first], set->node_velocities.data,
               bytes);
    }
    if (set->node_positions.count + set->node_velocities.count > 0) {
        state_changed(world);
    }
    return RW_STATUS_OK;
}

rw_status rw_world_set_attachment(rw_world* world, int32_t attachment,
                                  const rw_attachment_set* set, rw_error* error) {
    if (set->has_position) {
        RW_TRY(rw_validate_numbers(set->position, 3, "position", error));
    }
    if (set->has_rotation) {
        RW_TRY(rw_validate_rotation(set->rotation, "rotation", error));
    }
    rw_attachment* record = &world->model.attachments.items[attachment];
    if (set->has_position) {
        memcpy(record->target.position, set->position, sizeof record->target.position);
        memcpy(record->desc.position, set->position, sizeof record->desc.position);
        record->desc.has_position = true;
    }
    if (set->has_rotation) {
        memcpy(record->target.rotation, set->rotation, sizeof record->target.rotation);
        rw_validate_normalize(record->target.rotation);
        memcpy(record->desc.rotation, record->target.rotation, sizeof record->desc.rotation);
        record->desc.has_rotation = true;
    }
    return RW_STATUS_OK;
}

rw_status rw_world_set_force(rw_world* world, int32_t force, const rw_force_set* set,
                             rw_error* error) {
    rw_force* record = &world->model.forces.items[force];
    bool is_load = record->desc.kind == RW_FORCE_LOAD;
    bool is_spring = record->desc.kind == RW_FORCE_SPRING_DAMPER;
    if ((set->has_force || set->has_torque) && !is_load) {
        RW_FAIL(error, FAILED_PRECONDITION, set->has_force ? "force" : "torque",
                "'%s' is not a load", record->desc.name);
    }
    if ((set->has_stiffness || set->has_damping || set->has_rest_length) && !is_spring) {
        RW_FAIL(error, FAILED_PRECONDITION,
                set->has_stiffness ? "stiffness" : set->has_damping ? "damping" : "rest_length",
                "'%s' is not a spring-damper", record->desc.name);
    }
    if (is_load) {
        if (set->has_force) {
            RW_TRY(rw_validate_numbers(set->force, 3, "force", error));
        }
        if (set->has_torque) {
            RW_TRY(rw_validate_numbers(set->torque, 3, "torque", error));
        }
        if (set->has_force) {
            memcpy(record->desc.load.force, set->force, sizeof set->force);
        }
        if (set->has_torque) {
            memcpy(record->desc.load.torque, set->torque, sizeof set->torque);
        }
        return RW_STATUS_OK;
    }
    bool is_drag = record->desc.kind == RW_FORCE_DRAG;
    if ((set->has_linear || set->has_quadratic || set->has_angular) && !is_drag) {
        RW_FAIL(error, FAILED_PRECONDITION,
                set->has_linear ? "linear" : set->has_quadratic ? "quadratic" : "angular",
                "'%s' is not a drag", record->desc.name);
    }
    rw_force_desc desc = record->desc;
    desc.drag.linear = set->has_linear ? set->linear : desc.drag.linear;
    desc.drag.quadratic = set->has_quadratic ? set->quadratic : desc.drag.quadratic;
    desc.drag.angular = set->has_angular ? set->angular : desc.drag.angular;
    if (set->has_stiffness) {
        desc.spring_damper.stiffness = set->stiffness;
    }
    if (set->has_damping) {
        desc.spring_damper.damping = set->damping;
    }
    if (set->has_rest_length) {
        desc.spring_damper.rest_length = set->rest_length;
        desc.spring_damper.has_rest_length = true;
    }
    return rw_model_replace_force(&world->model, force, &desc, error);
}

rw_status rw_world_set_options(rw_world* world, const rw_world_set* set, rw_error* error) {
    rw_model* model = &world->model;
    rw_scene before;
    rw_scene_init(&before);
    memcpy(before.name, model->name, sizeof before.name);
    memcpy(before.gravity, model->gravity, sizeof before.gravity);
    memcpy(before.wind, model->wind, sizeof before.wind);
    before.time_step = model->time_step;
    before.substeps = model->substeps;
    before.solver = model->solver;

    rw_scene scene = before;
    if (set->has_gravity) {
        memcpy(scene.gravity, set->gravity, sizeof scene.gravity);
    }
    if (set->has_wind) {
        memcpy(scene.wind, set->wind, sizeof scene.wind);
    }
    scene.time_step = set->has_time_step ? set->time_step : model->time_step;
    scene.substeps = set->has_substeps ? set->substeps : model->substeps;
    scene.solver = set->has_solver ? set->solver : model->solver;

    bool is_other_solver =
        scene.solver.rigid != model->solver.rigid || scene.solver.rods != model->solver.rods;
    if (is_other_solver && model->bodies.count + model->rods.count > 0) {
        RW_FAIL(error, FAILED_PRECONDITION,
                scene.solver.rigid != model->solver.rigid ? "solver.rigid" : "solver.rods",
                "the solver of a world with bodies or rods is fixed: load a scene instead");
    }
    double now = rw_world_time(world);
    bool is_other_step = scene.time_step != model->time_step;
    RW_TRY(rw_model_set_options(model, &scene, error));
    if (is_other_solver) {
        rw_status status = rw_world_private_make_solvers(world, error);
        if (status != RW_STATUS_OK) {
            rw_status again = rw_model_set_options(model, &before, NULL);
            RW_CHECK(again == RW_STATUS_OK); // they were valid
            return status;
        }
        world->prepared_topology = UINT64_MAX;
    }
    if (is_other_step) {
        world->time_base_s = now;
        world->step_base = world->step;
    }
    return RW_STATUS_OK;
}

rw_status rw_world_check_wrench(const rw_applied_wrench* wrench, rw_error* error) {
    RW_TRY(rw_validate_numbers(wrench->point, 3, "position", error));
    RW_TRY(rw_validate_numbers(wrench->force, 3, "force", error));
    return rw_validate_numbers(wrench->torque, 3, "torque", error);
}

rw_status rw_world_apply_wrench(rw_world* world, const rw_applied_wrench* wrench,
                                rw_error* error) {
    RW_TRY(rw_world_check_wrench(wrench, error));
    if (wrench->steps_left == 0) {
        return RW_STATUS_OK; // kept, it would act in the next step
    }
    if (rw_model_add_wrench(&world->model, wrench) != RW_STATUS_OK) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for another wrench");
    }
    return RW_STATUS_OK;
}

void rw_world_clear_wrenches(rw_world* world, int32_t body, int32_t rod) {
    rw_model_clear_wrenches(&world->model, body, rod);
}
