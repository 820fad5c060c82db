#include "solvers/world/world_dynamics.h"

#include <stdio.h>
#include <string.h>

#include "solvers/dae/dae_query.h"
#include "solvers/model/validate.h"
#include "solvers/world/world_private.h"

// Joint names per rate of the tree.
static rw_status name_rates(const rw_model* model, const rw_dae_query* query, rw_arena* arena,
                            rw_world_dynamics_answer* answer, rw_error* error) {
    answer->rate_count = (size_t)query->rate_count;
    answer->joints = rw_arena_array(arena, answer->rate_count + 1, sizeof *answer->joints);
    if (answer->joints == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
    }
    for (int32_t e = 0; e < query->edge_count; e++) {
        const rw_joint* joint = &model->joints.items[query->edges[e]];
        for (int32_t i = 0; i < joint->rate_count; i++) {
            char* name = rw_arena_get(arena, RW_NAME_CAPACITY + 16);
            if (name == NULL) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
            }
            if (joint->rate_count == 1) {
                snprintf(name, RW_NAME_CAPACITY + 16, "%s", joint->desc.name);
            } else {
                snprintf(name, RW_NAME_CAPACITY + 16, "%s.%d", joint->desc.name, (int)i);
            }
            answer->joints[query->edge_rate[e] + i] = name;
        }
    }
    return RW_STATUS_OK;
}

static rw_status answer_with(rw_dae_query* query, const rw_world_dynamics_question* question,
                             rw_arena* arena, rw_world_dynamics_answer* answer, rw_error* error) {
    size_t rates = (size_t)query->rate_count;
    bool is_matrix = question->kind == RW_WORLD_DYNAMICS_MASS_MATRIX;
    bool is_jacobian = question->kind == RW_WORLD_DYNAMICS_JACOBIAN;
    answer->value_count = is_matrix ? rates * rates : is_jacobian ? 6 * rates : rates;
    answer->values = rw_arena_array(arena, answer->value_count + 1, sizeof(double));
    double* zeros = rw_arena_array(arena, rates + 1, sizeof(double));
    if (answer->values == NULL || zeros == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the answer");
    }
    const char* field =
        question->kind == RW_WORLD_DYNAMICS_INVERSE ? "accelerations" : "efforts";
    if (question->input.count != 0 && question->input.count != rates) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "must have %zu values, got %zu", rates,
                question->input.count);
    }
    RW_TRY(rw_validate_numbers(question->input.data, question->input.count, field, error));
    const double* input = question->input.count != 0 ? question->input.data : zeros;
    switch (question->kind) {
    case RW_WORLD_DYNAMICS_MASS_MATRIX:
        rw_dae_query_mass_matrix(query, answer->values);
        break;
    case RW_WORLD_DYNAMICS_JACOBIAN:
        rw_dae_query_jacobian(query, question->body, rw_vec3_load(question->point),
                              answer->values);
        break;
    case RW_WORLD_DYNAMICS_INVERSE:
        rw_dae_query_inverse_dynamics(query, input, answer->values);
        break;
    case RW_WORLD_DYNAMICS_FORWARD:
        if (rw_dae_query_forward_dynamics(query, input, answer->values) != RW_STATUS_OK) {
            RW_FAIL(error, FAILED_PRECONDITION, "", "the joints are in a singular position");
        }
        break;
    }
    return RW_STATUS_OK;
}

static rw_status ask_system(rw_world* world, rw_dae_system* system,
                            const rw_world_dynamics_question* question, rw_arena* arena,
                            rw_world_dynamics_answer* answer, rw_error* error) {
    const rw_state* state = &world->state[world->good];
    double time_s = rw_world_time(world);
    double* y = rw_arena_array(arena, RW_DAE_WIDTH * (size_t)system->dynamic_count + 1, sizeof *y);
    if (y == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the question");
    }
    system->scratch.node_position = state->node_position;
    system->scratch.node_velocity = state->node_velocity;
    system->scratch.frame_rotation = state->frame_rotation;
    system->scratch.frame_angular_velocity = state->frame_angular_velocity;
    system->node_frames = (rw_forces_frames){world->solvers.rods.self,
                                             world->solvers.rods.vtable->node_rotation};
    rw_dae_system_gather(system, state, y);
    rw_dae_system_set_time(system, state, time_s, time_s);
    rw_dae_system_load(system, y);
    if (rw_dae_system_accelerate(system) != RW_STATUS_OK) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "the joints are in a singular position");
    }
    rw_dae_query query;
    RW_TRY(rw_dae_query_begin(&query, system, arena, error));
    RW_TRY(name_rates(&world->model, &query, arena, answer, error));
    return answer_with(&query, question, arena, answer, error);
}

rw_status rw_world_dynamics_ask(rw_world* world, const rw_world_dynamics_question* question,
                                rw_arena* arena, rw_world_dynamics_answer* answer,
                                rw_error* error) {
    *answer = (rw_world_dynamics_answer){0};
    RW_TRY(rw_world_prepare(world, error));
    // References of continuous angles: what the rigid solver says they are now.
    const rw_joints* joints = &world->model.joints;
    const rw_solver* rigid = &world->solvers.rigid;
    double* angle = rw_arena_array(arena, 3 * (size_t)joints->count + 1, sizeof *angle);
    if (angle == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for the question");
    }
    for (int32_t i = 0; i < joints->count; i++) {
        double values[4] = {0};
        rigid->vtable->joint_coordinate(rigid->self, &world->state[world->good], i, values);
        memcpy(angle + 3 * (size_t)i, values, 3 * sizeof *angle);
        if (joints->items[i].desc.type == RW_JOINT_DISTANCE) {
            // Where it is: accelerations don't ask what it ought to be.
            angle[3 * (size_t)i] = 1.0;
        }
    }
    rw_dae_system* system;
    RW_TRY(rw_dae_system_create(&world->model, world->alloc, angle, &system, error));
    rw_status status = ask_system(world, system, question, arena, answer, error);
    rw_dae_system_destroy(system, world->alloc);
    return status;
}
