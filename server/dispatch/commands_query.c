// Questions about the present state. They change nothing.
#include <string.h>

#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "solvers/model/validate.h"
#include "solvers/world/world_dynamics.h"

typedef struct signal_list {
    const rw_signal_set* set;
    const char** names;
    uint32_t* widths;
    double* values;
} signal_list;

static rw_status read_all(rw_command* command, const rw_signal_set* set, signal_list* list) {
    list->names = rw_arena_array(command->arena, (size_t)set->count + 1, sizeof(char*));
    list->widths = rw_arena_array(command->arena, (size_t)set->count + 1, sizeof(uint32_t));
    list->values = rw_arena_array(command->arena, (size_t)set->width + 1, sizeof(double));
    if (list->names == NULL || list->widths == NULL || list->values == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    for (int32_t i = 0; i < set->count; i++) {
        list->names[i] = set->items[i].name;
        list->widths[i] = (uint32_t)set->items[i].width;
    }
    return rw_world_read_signals(command->world, set, list->values, command->error);
}

static rw_status query_signals(rw_command* command, const rw_pb_Query_Signals* question) {
    const char** globs;
    RW_TRY(rw_commands_step_globs(command, &question->signals, "signals", &globs));
    rw_signal_set set;
    RW_TRY(rw_world_resolve_signals(command->world, globs, question->signals.count, &set,
                                    command->error));
    signal_list list;
    rw_status status = read_all(command, &set, &list);
    if (status == RW_STATUS_OK) {
        rw_pb_QueryResult_Signals* answer = &command->response->result.query.answer.signals;
        command->response->result.query.which_answer = rw_pb_QueryResult_signals_tag;
        answer->names = rw_wire_from_strings(list.names, (size_t)set.count);
        answer->widths = rw_wire_from_u32(list.widths, (size_t)set.count);
        answer->values = rw_wire_from_f64(list.values, (size_t)set.width);
        // Encoded here: the names lie in the set.
        command->response->has_step = command->response->has_time = true;
        command->response->step = (uint64_t)rw_world_step_count(command->world);
        command->response->time = rw_world_time(command->world);
        rw_dispatch_reply(command->host, command->task, command->response);
        command->is_answered = true;
    }
    rw_world_release_signals(command->world, &set);
    return status;
}

static rw_status query_energy(rw_command* command) {
    rw_world_energy energy;
    rw_pb_QueryResult_Energy* answer = &command->response->result.query.answer.energy;
    command->response->result.query.which_answer = rw_pb_QueryResult_energy_tag;
    RW_TRY(rw_world_get_energy(command->world, &energy, command->error));
    answer->kinetic = energy.kinetic;
    answer->gravity = energy.gravity;
    answer->elastic = energy.elastic;
    answer->total = energy.total;
    answer->linear_momentum_count = answer->angular_momentum_count = 3;
    RW_TRY(rw_world_get_momentum(command->world, answer->linear_momentum,
                                 answer->angular_momentum, command->error));
    return RW_STATUS_OK;
}

// Mass matrix, Jacobian, inverse and forward dynamics; the answer lies in the command's arena.
static rw_status query_dynamics(rw_command* command, const rw_pb_Query* query) {
    rw_pb_QueryResult* result = &command->response->result.query;
    rw_world_dynamics_question question = {0};
    rw_world_dynamics_answer answer;
    const rw_wire_array* input = NULL;
    switch (query->which_question) {
    case rw_pb_Query_jacobian_tag:
        question.kind = RW_WORLD_DYNAMICS_JACOBIAN;
        RW_TRY(rw_commands_set_find(command, RW_KIND_BODY, &query->question.jacobian.body,
                                    query->question.jacobian.has_body, "body", &question.body));
        if (query->question.jacobian.position_count != 0) {
            if (query->question.jacobian.position_count != 3) {
                RW_FAIL(command->error, INVALID_ARGUMENT, "position", "must have 3 values");
            }
            memcpy(question.point, query->question.jacobian.position, sizeof question.point);
            RW_TRY(rw_validate_numbers(question.point, 3, "position", command->error));
        }
        break;
    case rw_pb_Query_inverse_dynamics_tag:
        question.kind = RW_WORLD_DYNAMICS_INVERSE;
        input = &query->question.inverse_dynamics.accelerations;
        break;
    case rw_pb_Query_forward_dynamics_tag:
        question.kind = RW_WORLD_DYNAMICS_FORWARD;
        input = &query->question.forward_dynamics.efforts;
        break;
    default: question.kind = RW_WORLD_DYNAMICS_MASS_MATRIX; break;
    }
    if (input != NULL && input->count != 0) {
        question.input.data = rw_wire_view_f64(*input, command->arena);
        question.input.count = input->count;
        if (question.input.data == NULL) {
            RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
        }
    }
    RW_TRY(rw_world_dynamics_ask(command->world, &question, command->arena, &answer,
                                 command->error));
    rw_wire_list joints = rw_wire_from_strings(answer.joints, answer.rate_count);
    rw_wire_array values = rw_wire_from_f64(answer.values, answer.value_count);
    switch (query->which_question) {
    case rw_pb_Query_jacobian_tag:
        result->which_answer = rw_pb_QueryResult_jacobian_tag;
        result->answer.jacobian.joints = joints;
        result->answer.jacobian.rows = values;
        break;
    case rw_pb_Query_inverse_dynamics_tag:
        result->which_answer = rw_pb_QueryResult_inverse_dynamics_tag;
        result->answer.inverse_dynamics.joints = joints;
        result->answer.inverse_dynamics.values = values;
        break;
    case rw_pb_Query_forward_dynamics_tag:
        result->which_answer = rw_pb_QueryResult_forward_dynamics_tag;
        result->answer.forward_dynamics.joints = joints;
        result->answer.forward_dynamics.values = values;
        break;
    default:
        result->which_answer = rw_pb_QueryResult_mass_matrix_tag;
        result->answer.mass_matrix.joints = joints;
        result->answer.mass_matrix.rows = values;
        break;
    }
    return RW_STATUS_OK;
}

rw_status rw_commands_query_query(rw_command* command) {
    const rw_pb_Query* query = &command->request->command.query;
    command->response->which_result = rw_pb_Response_query_tag;
    switch (query->which_question) {
    case rw_pb_Query_signals_tag: return query_signals(command, &query->question.signals);
    case rw_pb_Query_energy_tag: return query_energy(command);
    case rw_pb_Query_hash_tag:
        command->response->result.query.which_answer = rw_pb_QueryResult_hash_tag;
        return rw_world_hash(command->world, &command->response->result.query.answer.hash.hash,
                             command->error);
    case rw_pb_Query_contacts_tag:
        RW_FAIL(command->error, UNIMPLEMENTED, "contacts", "contact is not served yet");
    case rw_pb_Query_ray_cast_tag:
        RW_FAIL(command->error, UNIMPLEMENTED, "ray_cast", "collision shapes are not served yet");
    case rw_pb_Query_closest_points_tag:
        RW_FAIL(command->error, UNIMPLEMENTED, "closest_points",
                "collision shapes are not served yet");
    case rw_pb_Query_jacobian_tag:
    case rw_pb_Query_mass_matrix_tag:
    case rw_pb_Query_inverse_dynamics_tag:
    case rw_pb_Query_forward_dynamics_tag: return query_dynamics(command, query);
    default: break;
    }
    RW_FAIL(command->error, INVALID_ARGUMENT, "question", "none given");
}
