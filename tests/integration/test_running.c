// Time on a real daemon: steps, cancellation, deadlines, runs by the clock, batches, snapshots, forks.
#include "tests/support/rw_test.h"

#include <signal.h>
#include <unistd.h>

#include "tests/support/rw_daemon.h"

static rw_daemon daemon_;

static int set_up(void** state) {
    (void)state;
    rw_daemon_start(&daemon_, NULL);
    return 0;
}

static int tear_down(void** state) {
    (void)state;
    return rw_daemon_stop(&daemon_, 10) == 0 ? 0 : 1;
}

static rw_pb_Request for_session(uint64_t session, pb_size_t command) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.session = session;
    request.which_command = command;
    return request;
}

static rw_pb_Request step_request(uint64_t session, uint32_t count) {
    rw_pb_Request request = for_session(session, rw_pb_Request_step_tag);
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = count;
    return request;
}

static rw_pb_Status_Code simple(rw_daemon_client* client, uint64_t session, pb_size_t command,
                                rw_pb_Response* response) {
    rw_pb_Request request = for_session(session, command);
    return rw_daemon_call(client, &request, response);
}

static void close_session(rw_daemon_client* client, uint64_t session) {
    rw_pb_Response response;
    assert_int_equal(simple(client, session, rw_pb_Request_close_session_tag, &response),
                     rw_pb_Status_Code_OK);
}

static uint64_t open_session(rw_daemon_client* client, const char* name, int bodies) {
    uint64_t session = rw_daemon_create_session(client, name);
    rw_daemon_load_bodies(client, session, bodies);
    return session;
}

// ---- Step ----

static void step_counts_and_tells_time(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "steps", 2);
    rw_pb_Request request = step_request(session, 250);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 250);
    assert_int_equal(response.steps_done, 250);
    rw_assert_near(response.time, 0.25, 1e-12);
    request = for_session(session, rw_pb_Request_step_tag); // neither given: one step
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 251);
    request.command.step.which_amount = rw_pb_Step_until_tag;
    request.command.step.amount.until = 0.3004; // the nearest step
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 300);
    request.command.step.amount.until = 0.1;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OUT_OF_RANGE);
    assert_string_equal(response.path, "until");
    request = step_request(session, 0);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void expected_step_makes_a_retry_safe(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "retry", 2);
    rw_pb_Request request = step_request(session, 5);
    request.has_expected_step = true;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_FAILED_PRECONDITION);
    assert_true(response.has_step);
    assert_int_equal(response.step, 5);
    request = for_session(session, rw_pb_Request_set_gravity_tag);
    request.has_expected_step = true;
    request.expected_step = 4;
    request.command.set_gravity.gravity_count = 3;
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_FAILED_PRECONDITION);
    request.expected_step = 5;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void a_set_is_visible_before_any_step_and_queries_do_not_step(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "visible", 2);
    rw_pb_Request request = for_session(session, rw_pb_Request_set_pose_tag);
    request.command.set_pose.has_body = true;
    strcpy(request.command.set_pose.body.name, "b1");
    request.command.set_pose.position_count = 3;
    request.command.set_pose.position[2] = 12.5;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint32_t width;
    rw_daemon_observe(&client, session, "body/b1/position", &width);
    const char* glob = "body/b1/position";
    request = for_session(session, rw_pb_Request_query_tag);
    request.command.query.which_question = rw_pb_Query_signals_tag;
    request.command.query.question.signals.signals = rw_wire_from_strings(&glob, 1);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 0);
    rw_assert_near(rw_wire_f64(response.result.query.answer.signals.values, 2), 12.5, 0);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

// ---- Cancel and deadlines ----

static void cancel_from_another_connection_stops_between_steps(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    uint64_t session = open_session(&client, "cancelled", 5);
    rw_pb_Request request = step_request(session, 4000000000u);
    uint64_t id = rw_daemon_send(&client, &request);
    usleep(50000);
    rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
    cancel.command.cancel.request_id = id;
    cancel.command.cancel.connection_id = client.connection_id;
    assert_int_equal(rw_daemon_call(&other, &cancel, &response), rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    assert_true(response.steps_done > 0);
    assert_int_equal(response.step, response.steps_done);
    // It is gone, and the session goes on.
    assert_int_equal(rw_daemon_call(&other, &cancel, &response), rw_pb_Status_Code_NOT_FOUND);
    rw_daemon_step(&client, session, 3);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
    rw_daemon_disconnect(&other);
}

static void cancelled_state_is_that_of_as_many_steps(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "partly", 5);
    rw_pb_Request request = step_request(session, 4000000000u);
    uint64_t id = rw_daemon_send(&client, &request);
    usleep(20000);
    rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
    cancel.command.cancel.request_id = id;
    uint64_t cancel_id = rw_daemon_send(&client, &cancel);
    rw_daemon_wait(&client, cancel_id, &response); // answered at once, before the step
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, id, &response);
    uint32_t done = response.steps_done;
    uint64_t twin = open_session(&client, "whole", 5);
    rw_daemon_step(&client, twin, done);
    assert_int_equal(rw_daemon_hash(&client, session), rw_daemon_hash(&client, twin));
    close_session(&client, session);
    close_session(&client, twin);
    rw_daemon_disconnect(&client);
}

static void waiting_requests_can_be_cancelled(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "queue", 5);
    rw_pb_Request request = step_request(session, 4000000000u);
    uint64_t first = rw_daemon_send(&client, &request);
    request = step_request(session, 10);
    uint64_t second = rw_daemon_send(&client, &request);
    uint64_t ids[2] = {second, first};
    for (int i = 0; i < 2; i++) {
        rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
        cancel.command.cancel.request_id = ids[i];
        assert_int_equal(rw_daemon_call(&client, &cancel, &response), rw_pb_Status_Code_OK);
    }
    rw_daemon_wait(&client, first, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    uint32_t done = response.steps_done;
    rw_daemon_wait(&client, second, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    assert_int_equal(response.steps_done, 0);
    assert_int_equal(response.step, done);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void deadline_stops_between_steps(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "deadline", 5);
    rw_pb_Request request = step_request(session, 4000000000u);
    request.deadline_ms = 60;
    double begin = rw_daemon_now_s();
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_DEADLINE_EXCEEDED);
    double took = rw_daemon_now_s() - begin;
    assert_true(took >= 0.05);
    assert_true(took < 2);
    assert_true(response.steps_done > 0);
    assert_int_equal(response.step, response.steps_done);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

// ---- Fairness ----

static void busy_sessions_do_not_starve_others(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    enum { BUSY = 8 };
    uint64_t busy[BUSY], ids[BUSY];
    for (int i = 0; i < BUSY; i++) {
        busy[i] = open_session(&client, "", 20);
    }
    uint64_t quick = open_session(&other, "quick", 2);
    for (int i = 0; i < BUSY; i++) {
        rw_pb_Request request = step_request(busy[i], 4000000000u);
        ids[i] = rw_daemon_send(&client, &request);
    }
    usleep(50000);
    for (int i = 0; i < 20; i++) {
        double begin = rw_daemon_now_s();
        rw_daemon_step(&other, quick, 1);
        assert_true(rw_daemon_now_s() - begin < 1);
    }
    for (int i = 0; i < BUSY; i++) {
        rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
        cancel.command.cancel.request_id = ids[i];
        rw_daemon_call(&other, &cancel, &response); // NOT_FOUND: of the other connection
        cancel.command.cancel.connection_id = client.connection_id;
        assert_int_equal(rw_daemon_call(&other, &cancel, &response), rw_pb_Status_Code_OK);
    }
    uint32_t least = UINT32_MAX, most = 0;
    for (int i = 0; i < BUSY; i++) {
        rw_daemon_wait(&client, ids[i], &response);
        least = response.steps_done < least ? response.steps_done : least;
        most = response.steps_done > most ? response.steps_done : most;
        close_session(&client, busy[i]);
    }
    assert_true(least > 0);
    assert_true(most < 20 * (least + 100)); // slices are shared out in turn
    close_session(&other, quick);
    rw_daemon_disconnect(&client);
    rw_daemon_disconnect(&other);
}

// ---- Run and Pause ----

static void a_run_follows_the_clock_and_refuses_steps(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "paced", 2);
    rw_pb_Request request = for_session(session, rw_pb_Request_run_tag);
    double begin = rw_daemon_now_s();
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    static const pb_size_t REFUSED[] = {rw_pb_Request_step_tag, rw_pb_Request_advance_tag,
                                        rw_pb_Request_restore_tag, rw_pb_Request_load_scene_tag};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(simple(&client, session, REFUSED[i], &response),
                         rw_pb_Status_Code_FAILED_PRECONDITION);
    }
    usleep(400000);
    request = for_session(session, rw_pb_Request_set_wind_tag);
    request.command.set_wind.wind_count = 3;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint64_t effect = response.step;
    assert_true(effect > 0);
    assert_int_equal(simple(&client, session, rw_pb_Request_pause_tag, &response),
                     rw_pb_Status_Code_OK);
    double took = rw_daemon_now_s() - begin;
    assert_true(response.step >= effect - 1);
    uint64_t lost = response.result.pause.lost_steps;
    // Steps done and lost together follow the clock (1 ms each).
    double owed = took * 1000, there = (double)(response.step + lost);
    if (there > owed + 10 || there < 0.5 * owed) {
        fail_msg("%g steps in %g ms", there, owed);
    }
    rw_daemon_step(&client, session, 1);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void a_run_as_fast_as_possible_pauses_by_itself(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_pb_Event event;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "fast", 2);
    rw_pb_Request request = for_session(session, rw_pb_Request_run_tag);
    request.command.run.has_ratio = request.command.run.has_until = true;
    request.command.run.ratio = (double)INFINITY;
    request.command.run.until = 5;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    do {
        assert_true(rw_daemon_wait_event(&client, rw_pb_Event_session_changed_tag, &event, 10));
    } while (event.kind.session_changed.state != rw_pb_SessionState_Kind_READY);
    assert_int_equal(event.kind.session_changed.step, 5000);
    uint64_t twin = open_session(&client, "stepped", 2);
    rw_daemon_step(&client, twin, 5000);
    assert_int_equal(rw_daemon_hash(&client, session), rw_daemon_hash(&client, twin));
    close_session(&client, session);
    close_session(&client, twin);
    rw_daemon_disconnect(&client);
}

// ---- Advance ----

static uint64_t actuate(rw_daemon_client* client, uint64_t session, const char* target) {
    rw_pb_Request request = for_session(session, rw_pb_Request_actuate_tag);
    rw_pb_Response response;
    request.command.actuate.targets = rw_wire_from_strings(&target, 1);
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    return response.result.actuate.handle;
}

static void advance_sets_steps_and_answers_in_one_round_trip(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    uint32_t width;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "advance", 2);
    uint64_t read = rw_daemon_observe(&client, session, "body/*/linear_velocity", &width);
    assert_int_equal(width, 6);
    uint64_t write = actuate(&client, session, "gravity");
    double inputs[] = {0, 0, -1, 0, 0, -2, 0, 0, -3}; // a row per step
    rw_pb_Request request = for_session(session, rw_pb_Request_advance_tag);
    request.command.advance.actuate = write;
    request.command.advance.inputs = rw_wire_from_f64(inputs, 9);
    request.command.advance.has_steps = true;
    request.command.advance.steps = 3;
    request.command.advance.observe = read;
    request.command.advance.every = 1;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.advance.rows, 3);
    assert_int_equal(response.result.advance.values.count, 18);
    static const double VZ[] = {-0.001, -0.003, -0.006};
    for (uint32_t i = 0; i < 3; i++) {
        rw_assert_near(rw_wire_f64(response.result.advance.values, 6 * i + 2), VZ[i], 1e-12);
    }
    // Nothing happens when a number is bad: no step, no set.
    uint64_t hash = rw_daemon_hash(&client, session);
    inputs[7] = (double)NAN;
    request.command.advance.inputs = rw_wire_from_f64(inputs, 9);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "inputs[7]");
    assert_int_equal(rw_daemon_hash(&client, session), hash);
    request.command.advance.inputs = rw_wire_from_f64(inputs, 4);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    // Nor when the second of two targets gets what is finite but out of bounds.
    static const char* const TWO[] = {"gravity", "wind"};
    rw_pb_Request both = for_session(session, rw_pb_Request_actuate_tag);
    both.command.actuate.targets = rw_wire_from_strings(TWO, 2);
    assert_int_equal(rw_daemon_call(&client, &both, &response), rw_pb_Status_Code_OK);
    rw_assert_near(rw_wire_f64(response.result.actuate.values, 2), -3, 0);
    double large[] = {7, 8, 9, 0, 2e30, 0};
    both = for_session(session, rw_pb_Request_advance_tag);
    both.command.advance.actuate = response.result.actuate.handle;
    both.command.advance.inputs = rw_wire_from_f64(large, 6);
    assert_int_equal(rw_daemon_call(&client, &both, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "inputs[4]");
    both = for_session(session, rw_pb_Request_actuate_tag);
    both.command.actuate.targets = rw_wire_from_strings(TWO, 1);
    assert_int_equal(rw_daemon_call(&client, &both, &response), rw_pb_Status_Code_OK);
    rw_assert_near(rw_wire_f64(response.result.actuate.values, 0), 0, 0);
    rw_assert_near(rw_wire_f64(response.result.actuate.values, 2), -3, 0);
    // Steps 0: sets and reads only.
    request.command.advance.inputs = rw_wire_from_f64(inputs, 3);
    request.command.advance.steps = 0;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 3);
    assert_int_equal(response.result.advance.rows, 1);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void handles_end_with_their_topology(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    uint32_t width;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "handles", 3);
    uint64_t handle = rw_daemon_observe(&client, session, "body/*/position", &width);
    rw_pb_Request request = for_session(session, rw_pb_Request_remove_body_tag);
    request.command.remove_body.has_object = true;
    strcpy(request.command.remove_body.object.name, "b1");
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.remove.removed.count, 1);
    request = for_session(session, rw_pb_Request_advance_tag);
    request.command.advance.observe = handle;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    assert_string_equal(response.path, "observe");
    assert_int_equal(response.step, 0);
    handle = rw_daemon_observe(&client, session, "body/*/position", &width);
    assert_int_equal(width, 6);
    request = for_session(session, rw_pb_Request_release_tag);
    request.command.release.handle = handle;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

// ---- Batches ----

static void batch_runs_in_order_and_stops_on_error(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response, one;
    rw_daemon_greet(&daemon_, &client);
    uint64_t a = open_session(&client, "batch-a", 2), b = open_session(&client, "batch-b", 2);
    rw_pb_Request parts[] = {step_request(a, 3), step_request(b, 4), for_session(0, rw_pb_Request_ping_tag),
                             step_request(a, 0), step_request(a, 5)};
    rw_pb_Request batch = for_session(0, rw_pb_Request_batch_tag);
    for (int stop = 0; stop < 2; stop++) {
        batch.command.batch.requests = RW_WIRE_FROM_ITEMS(parts, 5);
        batch.command.batch.stop_on_error = stop == 1;
        assert_int_equal(rw_daemon_call(&client, &batch, &response), rw_pb_Status_Code_OK);
        assert_int_equal(response.result.batch.responses.count, 5);
        rw_pb_Status_Code last = stop == 1 ? rw_pb_Status_Code_CANCELLED : rw_pb_Status_Code_OK;
        rw_pb_Status_Code expected[] = {rw_pb_Status_Code_OK, rw_pb_Status_Code_OK,
                                        rw_pb_Status_Code_OK,
                                        rw_pb_Status_Code_INVALID_ARGUMENT, last};
        rw_wire_cursor cursor = rw_wire_begin(&response.result.batch.responses);
        for (int i = 0; i < 5; i++) {
            assert_true(rw_wire_next_message(&cursor, rw_pb_Response_fields, &one, sizeof one));
            assert_int_equal(one.status, expected[i]);
        }
    }
    assert_int_equal(simple(&client, a, rw_pb_Request_step_tag, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.step, 3 + 5 + 3 + 1);
    // A Batch in a Batch is refused, the rest is not.
    rw_pb_Request nested[] = {batch, step_request(a, 1)};
    nested[0].request_id = 0;
    batch.command.batch.requests = RW_WIRE_FROM_ITEMS(nested, 2);
    batch.command.batch.stop_on_error = false;
    assert_int_equal(rw_daemon_call(&client, &batch, &response), rw_pb_Status_Code_OK);
    rw_wire_cursor cursor = rw_wire_begin(&response.result.batch.responses);
    rw_wire_next_message(&cursor, rw_pb_Response_fields, &one, sizeof one);
    assert_int_equal(one.status, rw_pb_Status_Code_INVALID_ARGUMENT);
    rw_wire_next_message(&cursor, rw_pb_Response_fields, &one, sizeof one);
    assert_int_equal(one.status, rw_pb_Status_Code_OK);
    close_session(&client, a);
    close_session(&client, b);
    rw_daemon_disconnect(&client);
}

static void a_batch_can_be_cancelled(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response, one;
    rw_daemon_greet(&daemon_, &client);
    uint64_t a = open_session(&client, "batch-long", 2);
    rw_pb_Request parts[] = {step_request(a, 4000000000u), step_request(a, 1)};
    rw_pb_Request batch = for_session(0, rw_pb_Request_batch_tag);
    batch.command.batch.requests = RW_WIRE_FROM_ITEMS(parts, 2);
    uint64_t id = rw_daemon_send(&client, &batch);
    usleep(20000);
    rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
    cancel.command.cancel.request_id = id;
    assert_int_equal(rw_daemon_call(&client, &cancel, &response), rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, id, &response);
    rw_wire_cursor cursor = rw_wire_begin(&response.result.batch.responses);
    for (int i = 0; i < 2; i++) {
        assert_true(rw_wire_next_message(&cursor, rw_pb_Response_fields, &one, sizeof one));
        assert_int_equal(one.status, rw_pb_Status_Code_CANCELLED);
    }
    close_session(&client, a);
    rw_daemon_disconnect(&client);
}

static void batch_advance_takes_each_session_once(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t sessions[3];
    sessions[0] = open_session(&client, "", 1);
    sessions[1] = open_session(&client, "", 1);
    sessions[2] = sessions[0];
    rw_pb_Request request = for_session(0, rw_pb_Request_batch_advance_tag);
    request.command.batch_advance.sessions = rw_wire_from_u64(sessions, 3);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "sessions");
    // Nobody went a step.
    request.command.batch_advance.sessions = rw_wire_from_u64(sessions, 2);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rw_wire_u64(response.result.batch_advance.steps, i), 1);
    }
    close_session(&client, sessions[0]);
    close_session(&client, sessions[1]);
    rw_daemon_disconnect(&client);
}

static void batch_advance_steps_many_sessions_with_errors_per_entry(void** state) {
    (void)state;
    enum { COUNT = 20 };
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t sessions[COUNT], reads[COUNT], writes[COUNT];
    double inputs[3 * COUNT];
    uint32_t width;
    for (int i = 0; i < COUNT; i++) {
        sessions[i] = open_session(&client, "", 1);
        reads[i] = rw_daemon_observe(&client, sessions[i], "body/*/linear_velocity", &width);
        writes[i] = actuate(&client, sessions[i], "gravity");
        inputs[3 * i] = inputs[3 * i + 1] = 0;
        inputs[3 * i + 2] = -i;
    }
    inputs[3 * 4] = (double)NAN;    // entry 4 fails
    uint64_t gone = sessions[7];
    close_session(&client, gone); // entry 7 as well
    writes[7] = 0;
    double packed[3 * COUNT];
    int count = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; i != 7 && k < 3; k++) {
            packed[count++] = inputs[3 * i + k];
        }
    }
    rw_pb_Request request = for_session(0, rw_pb_Request_batch_advance_tag);
    rw_pb_BatchAdvance* advance = &request.command.batch_advance;
    advance->sessions = rw_wire_from_u64(sessions, COUNT);
    advance->actuate = rw_wire_from_u64(writes, COUNT);
    advance->observe = rw_wire_from_u64(reads, COUNT);
    advance->inputs = rw_wire_from_f64(packed, (size_t)count);
    advance->has_steps = true;
    advance->steps = 10;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    const rw_pb_BatchAdvanceResult* result = &response.result.batch_advance;
    assert_int_equal(result->steps.count, COUNT);
    assert_int_equal(result->errors.count, 2);
    rw_wire_cursor cursor = rw_wire_begin(&result->errors);
    rw_pb_BatchAdvanceResult_EntryError error;
    rw_wire_next_message(&cursor, rw_pb_BatchAdvanceResult_EntryError_fields, &error, sizeof error);
    assert_int_equal(error.index, 4);
    assert_int_equal(error.status, rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(error.path, "inputs[0]");
    rw_wire_next_message(&cursor, rw_pb_BatchAdvanceResult_EntryError_fields, &error, sizeof error);
    assert_int_equal(error.index, 7);
    assert_int_equal(error.status, rw_pb_Status_Code_NOT_FOUND);
    uint32_t at = 0;
    for (int i = 0; i < COUNT; i++) {
        if (i == 7) { // its width is unknown: no row
            continue;
        }
        double vz = rw_wire_f64(result->values, at + 2);
        if (i == 4) {
            assert_true(isnan(vz));
        } else {
            rw_assert_near(vz, -0.01 * i, 1e-12);
            assert_int_equal(rw_wire_u64(result->steps, (uint32_t)i), 10);
        }
        at += 3;
    }
    assert_int_equal(result->values.count, at);
    for (int i = 0; i < COUNT; i++) {
        if (i != 7) {
            close_session(&client, sessions[i]);
        }
    }
    rw_daemon_disconnect(&client);
}

// ---- Snapshot, Restore, Fork ----

static void a_restored_session_continues_bit_for_bit(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "saved", 4);
    rw_daemon_step(&client, session, 100);
    rw_pb_Request request = for_session(session, rw_pb_Request_snapshot_tag);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    rw_wire_bytes data = response.result.snapshot.data;
    uint8_t* bytes = test_malloc(data.size);
    memcpy(bytes, data.data, data.size);
    request.command.snapshot.keep = true;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint64_t kept = response.result.snapshot.snapshot;
    assert_int_not_equal(kept, 0);
    assert_int_equal(response.result.snapshot.data.size, 0);
    assert_int_equal(response.result.snapshot.bytes, data.size);
    uint64_t at_100 = rw_daemon_hash(&client, session);
    rw_daemon_step(&client, session, 50);
    uint64_t at_150 = rw_daemon_hash(&client, session);
    for (int i = 0; i < 2; i++) {
        request = for_session(session, rw_pb_Request_restore_tag);
        if (i == 0) {
            request.command.restore.which_source = rw_pb_Restore_data_tag;
            request.command.restore.source.data = (rw_wire_bytes){bytes, data.size};
        } else {
            request.command.restore.which_source = rw_pb_Restore_snapshot_tag;
            request.command.restore.source.snapshot = kept;
        }
        assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
        assert_int_equal(response.step, 100);
        assert_int_equal(rw_daemon_hash(&client, session), at_100);
        rw_daemon_step(&client, session, 50);
        assert_int_equal(rw_daemon_hash(&client, session), at_150);
    }
    // Damaged bytes change nothing.
    bytes[data.size / 2] ^= 1;
    request.command.restore.which_source = rw_pb_Restore_data_tag;
    request.command.restore.source.data = (rw_wire_bytes){bytes, data.size};
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_DATA_LOSS);
    assert_int_equal(rw_daemon_hash(&client, session), at_150);
    request = for_session(session, rw_pb_Request_drop_snapshot_tag);
    request.command.drop_snapshot.snapshot = kept;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    test_free(bytes);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void forks_go_on_bit_for_bit_and_apart(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "parent", 4);
    rw_daemon_step(&client, session, 30);
    rw_pb_Request request = for_session(session, rw_pb_Request_fork_tag);
    request.command.fork.has_count = true;
    request.command.fork.count = 5;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.fork.sessions.count, 5);
    uint64_t children[5];
    rw_wire_cursor cursor = rw_wire_begin(&response.result.fork.sessions);
    for (int i = 0; i < 5; i++) {
        rw_pb_SessionInfo info;
        rw_wire_next_message(&cursor, rw_pb_SessionInfo_fields, &info, sizeof info);
        assert_int_equal(info.step, 30);
        assert_int_equal(info.controllers, 1);
        children[i] = info.id;
    }
    rw_daemon_step(&client, session, 20);
    uint64_t hash = rw_daemon_hash(&client, session);
    for (int i = 0; i < 5; i++) {
        rw_daemon_step(&client, children[i], 20);
        assert_int_equal(rw_daemon_hash(&client, children[i]), hash);
    }
    rw_daemon_step(&client, children[0], 1);
    assert_int_not_equal(rw_daemon_hash(&client, children[0]), hash);
    assert_int_equal(rw_daemon_hash(&client, session), hash);
    // A name that is taken: nothing is made.
    const char* names[] = {"child-x", "parent"};
    request.command.fork.has_count = false;
    request.command.fork.names = rw_wire_from_strings(names, 2);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_ALREADY_EXISTS);
    assert_string_equal(response.path, "names[1]");
    rw_pb_Request list = for_session(0, rw_pb_Request_list_sessions_tag);
    strcpy(list.command.list_sessions.name_glob, "child-x");
    double end = rw_daemon_now_s() + 2;
    do {
        assert_int_equal(rw_daemon_call(&client, &list, &response), rw_pb_Status_Code_OK);
    } while (response.result.list_sessions.sessions.count > 0 && rw_daemon_now_s() < end);
    assert_int_equal(response.result.list_sessions.sessions.count, 0);
    for (int i = 0; i < 5; i++) {
        close_session(&client, children[i]);
    }
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

// ---- Faults ----

static void a_fault_stops_its_session_alone_and_keeps_the_last_good_state(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_pb_Event event;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = open_session(&client, "faulty", 3), other = open_session(&client, "fine", 3);
    rw_daemon_step(&client, session, 10);
    rw_pb_Request request = for_session(session, rw_pb_Request_snapshot_tag);
    request.command.snapshot.keep = true;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint64_t kept = response.result.snapshot.snapshot;
    // Velocities that leave the range of numbers within some steps.
    request = for_session(session, rw_pb_Request_set_gravity_tag);
    request.command.set_gravity.gravity_count = 3;
    request.command.set_gravity.gravity[2] = -9e29;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    request = for_session(session, rw_pb_Request_set_time_step_tag);
    request.command.set_time_step.has_time_step = true;
    request.command.set_time_step.time_step = 1;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    request = step_request(session, 1000);
    uint64_t id = rw_daemon_send(&client, &request);
    assert_true(rw_daemon_wait_event(&client, rw_pb_Event_session_changed_tag, &event, 5));
    assert_int_equal(event.kind.session_changed.state, rw_pb_SessionState_Kind_FAULTED);
    assert_true(event.kind.session_changed.has_fault);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_FAULTED);
    assert_int_equal(event.kind.session_changed.fault.step, response.step + 1);
    assert_true(strlen(event.kind.session_changed.fault.stage) > 0);
    uint64_t last_good = response.step;
    uint64_t hash = rw_daemon_hash(&client, session); // queries still work
    request = step_request(session, 1);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_FAULTED);
    assert_int_equal(response.step, last_good);
    assert_int_equal(rw_daemon_hash(&client, session), hash);
    rw_daemon_step(&client, other, 5);
    request = for_session(session, rw_pb_Request_restore_tag);
    request.command.restore.which_source = rw_pb_Restore_snapshot_tag;
    request.command.restore.source.snapshot = kept;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    rw_daemon_step(&client, session, 5);
    close_session(&client, session);
    close_session(&client, other);
    rw_daemon_disconnect(&client);
}

// ---- Draining ----

static void sigterm_finishes_what_runs_and_refuses_new_work(void** state) {
    (void)state;
    rw_daemon own;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_pb_Event event;
    rw_daemon_start(&own, NULL);
    rw_daemon_greet(&own, &client);
    uint64_t session = open_session(&client, "drained", 20);
    rw_pb_Request request = step_request(session, 20000);
    uint64_t id = rw_daemon_send(&client, &request);
    usleep(20000);
    assert_int_equal(kill(own.pid, SIGTERM), 0);
    assert_true(rw_daemon_wait_event(&client, rw_pb_Event_draining_tag, &event, 5));
    request = step_request(session, 1);
    uint64_t late = rw_daemon_send(&client, &request);
    rw_daemon_wait(&client, late, &response); // at once, before the long step
    assert_int_equal(response.status, rw_pb_Status_Code_UNAVAILABLE);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    assert_int_equal(response.steps_done, 20000);
    assert_true(rw_daemon_is_closed(&client, 5));
    rw_daemon_disconnect(&client);
    assert_int_equal(rw_daemon_stop(&own, 5), 0);
}

static void sigterm_cancels_what_takes_longer_than_the_limit(void** state) {
    (void)state;
    static const char* const FLAGS[] = {"--drain-s", "0.2", NULL};
    rw_daemon own;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_start(&own, FLAGS);
    rw_daemon_greet(&own, &client);
    uint64_t session = open_session(&client, "endless", 2);
    rw_pb_Request request = step_request(session, 4000000000u);
    uint64_t id = rw_daemon_send(&client, &request);
    uint64_t paced = open_session(&client, "paced", 2);
    assert_int_equal(simple(&client, paced, rw_pb_Request_run_tag, &response),
                     rw_pb_Status_Code_OK);
    kill(own.pid, SIGTERM);
    rw_daemon_wait(&client, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    assert_true(response.steps_done > 0);
    rw_daemon_disconnect(&client);
    assert_int_equal(rw_daemon_stop(&own, 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_counts_and_tells_time),
        cmocka_unit_test(expected_step_makes_a_retry_safe),
        cmocka_unit_test(a_set_is_visible_before_any_step_and_queries_do_not_step),
        cmocka_unit_test(cancel_from_another_connection_stops_between_steps),
        cmocka_unit_test(cancelled_state_is_that_of_as_many_steps),
        cmocka_unit_test(waiting_requests_can_be_cancelled),
        cmocka_unit_test(deadline_stops_between_steps),
        cmocka_unit_test(busy_sessions_do_not_starve_others),
        cmocka_unit_test(a_run_follows_the_clock_and_refuses_steps),
        cmocka_unit_test(a_run_as_fast_as_possible_pauses_by_itself),
        cmocka_unit_test(advance_sets_steps_and_answers_in_one_round_trip),
        cmocka_unit_test(handles_end_with_their_topology),
        cmocka_unit_test(batch_runs_in_order_and_stops_on_error),
        cmocka_unit_test(a_batch_can_be_cancelled),
        cmocka_unit_test(batch_advance_takes_each_session_once),
        cmocka_unit_test(batch_advance_steps_many_sessions_with_errors_per_entry),
        cmocka_unit_test(a_restored_session_continues_bit_for_bit),
        cmocka_unit_test(forks_go_on_bit_for_bit_and_apart),
        cmocka_unit_test(a_fault_stops_its_session_alone_and_keeps_the_last_good_state),
        cmocka_unit_test(sigterm_finishes_what_runs_and_refuses_new_work),
        cmocka_unit_test(sigterm_cancels_what_takes_longer_than_the_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
