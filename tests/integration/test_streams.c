// State frames of a real daemon: groups, rates, keys, slow readers, budgets, recorders.
#include "tests/support/rw_test.h"

#include <unistd.h>

#include "proto/state_decoder.h"
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

static void close_session(rw_daemon_client* client, uint64_t session) {
    rw_pb_Request request = for_session(session, rw_pb_Request_close_session_tag);
    rw_pb_Response response;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
}

static rw_pb_Request subscribe_request(uint64_t session, uint32_t every_steps) {
    rw_pb_Request request = for_session(session, rw_pb_Request_subscribe_tag);
    request.command.subscribe.which_rate = rw_pb_Subscribe_every_steps_tag;
    request.command.subscribe.rate.every_steps = every_steps;
    return request;
}

static void attach(rw_daemon_client* client, const char* name, rw_pb_Role_Kind role) {
    rw_pb_Request request = for_session(0, rw_pb_Request_attach_session_tag);
    rw_pb_Response response;
    strcpy(request.command.attach_session.name, name);
    request.command.attach_session.role = role;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
}

// Sends Step without waiting for its answer: frames come before it.
static uint64_t send_step(rw_daemon_client* client, uint64_t session, uint32_t count) {
    rw_pb_Request request = for_session(session, rw_pb_Request_step_tag);
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = count;
    return rw_daemon_send(client, &request);
}

static void unsubscribe(rw_daemon_client* client, uint64_t subscription, uint64_t* sent,
                        uint64_t* dropped) {
    rw_pb_Request request = for_session(0, rw_pb_Request_unsubscribe_tag);
    rw_pb_Response response;
    request.command.unsubscribe.subscription = subscription;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    *sent = response.result.unsubscribe.sent;
    *dropped = response.result.unsubscribe.dropped;
}

static void frames_come_at_each_promised_step_and_decode_to_the_state(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_pb_StateFrame frame;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "every");
    rw_daemon_load_bodies(&client, session, 3);
    rw_pb_Request request = subscribe_request(session, 10);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    const rw_pb_SubscribeResult* result = &response.result.subscribe;
    uint64_t subscription = result->subscription, group = result->group;
    assert_int_equal(result->layout.elements, 3);
    assert_int_equal(result->layout.entries.count, 3);
    rw_assert_near(result->period, 0.01, 1e-15);

    rw_alloc alloc;
    rw_error error;
    rw_state_decoder* decoder;
    rw_state_decoder_frame decoded;
    rw_state_codec_workspace workspace;
    rw_alloc_init(&alloc, 0);
    rw_state_codec_init_workspace(&workspace, &alloc);
    assert_int_equal(rw_state_decoder_create(0, &alloc, &decoder, &error), RW_STATUS_OK);
    send_step(&client, session, 200);
    for (uint64_t i = 0; i <= 20; i++) {
        assert_true(rw_daemon_wait_state(&client, &frame, 5));
        assert_int_equal(frame.group, group);
        assert_int_equal(frame.session, session);
        assert_int_equal(frame.step, 10 * i);
        assert_int_equal(frame.sequence, i);
        rw_assert_near(frame.time, 0.01 * (double)i, 1e-12);
        if (i == 0) {
            assert_int_equal(frame.key_sequence, 0);
        }
        assert_int_equal(rw_state_decoder_decode(decoder, &workspace, frame.payload.data,
                                                 frame.payload.size, &decoded, &error),
                         RW_STATUS_OK);
    }
    // The last frame is the state that a query tells.
    assert_int_equal(decoded.tracks[0].field, RW_STATE_CODEC_POSITION);
    assert_int_equal(decoded.tracks[0].count, 3);
    double last[9];
    memcpy(last, decoded.tracks[0].data, sizeof last);
    const char* glob = "body/*/position";
    request = for_session(session, rw_pb_Request_query_tag);
    request.command.query.which_question = rw_pb_Query_signals_tag;
    request.command.query.question.signals.signals = rw_wire_from_strings(&glob, 1);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    for (uint32_t i = 0; i < 9; i++) {
        double value = rw_wire_f64(response.result.query.answer.signals.values, i);
        assert_memory_equal(&last[i], &value, sizeof value);
    }
    uint64_t sent, dropped;
    unsubscribe(&client, subscription, &sent, &dropped);
    assert_int_equal(sent, 21);
    assert_int_equal(dropped, 0);
    send_step(&client, session, 20);
    assert_false(rw_daemon_wait_state(&client, &frame, 0.2));
    rw_state_decoder_destroy(decoder);
    rw_state_codec_finish_workspace(&workspace);
    rw_alloc_finish(&alloc);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void like_subscriptions_share_a_group_and_newcomers_get_a_key(void** state) {
    (void)state;
    rw_daemon_client a, b;
    rw_pb_Response response;
    rw_pb_StateFrame frame;
    rw_daemon_greet(&daemon_, &a);
    rw_daemon_greet(&daemon_, &b);
    uint64_t session = rw_daemon_create_session(&a, "groups");
    rw_daemon_load_bodies(&a, session, 2);
    attach(&b, "groups", rw_pb_Role_Kind_OBSERVE);
    rw_pb_Request request = subscribe_request(session, 1);
    assert_int_equal(rw_daemon_call(&a, &request, &response), rw_pb_Status_Code_OK);
    uint64_t group = response.result.subscribe.group;
    rw_daemon_step(&a, session, 5);
    assert_int_equal(rw_daemon_call(&b, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.subscribe.group, group);
    assert_true(rw_daemon_wait_state(&b, &frame, 5));
    assert_int_equal(frame.step, 5);
    assert_int_equal(frame.key_sequence, frame.sequence); // the newcomer's key
    uint64_t key = frame.sequence;
    send_step(&a, session, 1);
    assert_true(rw_daemon_wait_state(&b, &frame, 5));
    assert_int_equal(frame.step, 6);
    assert_true(frame.key_sequence >= key);
    request.command.subscribe.mode = rw_pb_Stream_Mode_QUANTIZED;
    assert_int_equal(rw_daemon_call(&b, &request, &response), rw_pb_Status_Code_OK);
    assert_int_not_equal(response.result.subscribe.group, group);
    close_session(&a, session);
    rw_daemon_disconnect(&a);
    rw_daemon_disconnect(&b);
}

static void a_new_epoch_brings_layout_and_key(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_pb_StateFrame frame;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "epochs");
    rw_daemon_load_bodies(&client, session, 2);
    rw_pb_Request request = subscribe_request(session, 1);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    assert_true(rw_daemon_wait_state(&client, &frame, 5));
    uint64_t epoch = frame.epoch;
    request = for_session(session, rw_pb_Request_create_body_tag);
    request.command.create_body.has_body = true;
    rw_pb_Body* body = &request.command.create_body.body;
    strcpy(body->name, "late");
    body->mass = 1;
    body->inertia_count = 6;
    body->inertia[0] = body->inertia[1] = body->inertia[2] = 1;
    uint64_t id = rw_daemon_send(&client, &request);
    assert_true(rw_daemon_wait_state(&client, &frame, 5));
    assert_true(frame.epoch > epoch);
    assert_int_equal(frame.sequence, frame.key_sequence);
    assert_true(frame.has_layout);
    assert_int_equal(frame.layout.elements, 3);
    (void)id;
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void a_slow_reader_loses_frames_but_no_reply_and_the_session_goes_on(void** state) {
    (void)state;
    rw_daemon_client slow, owner;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &slow);
    rw_daemon_greet(&daemon_, &owner);
    uint64_t session = rw_daemon_create_session(&owner, "slow");
    rw_daemon_load_bodies(&owner, session, 200);
    attach(&slow, "slow", rw_pb_Role_Kind_OBSERVE);
    rw_pb_Request request = subscribe_request(session, 1);
    assert_int_equal(rw_daemon_call(&slow, &request, &response), rw_pb_Status_Code_OK);
    uint64_t subscription = response.result.subscribe.subscription;
    size_t before = rw_daemon_resident_bytes(&daemon_);
    rw_daemon_step(&owner, session, 4000); // over 20 MB of frames that nobody reads
    size_t grown = rw_daemon_resident_bytes(&daemon_) - before;
    assert_true(grown < (size_t)24 << 20 || grown > (size_t)1 << 40);
    uint64_t sent, dropped;
    unsubscribe(&slow, subscription, &sent, &dropped); // the reply is in its place
    assert_true(dropped > 0);
    assert_true(sent > 0);
    assert_true(sent + dropped <= 4001);
    close_session(&owner, session);
    rw_daemon_disconnect(&slow);
    rw_daemon_disconnect(&owner);
}

static void what_a_slow_reader_gets_can_be_decoded(void** state) {
    (void)state;
    rw_daemon_client slow, owner;
    rw_pb_Response response;
    rw_pb_StateFrame frame;
    rw_daemon_greet(&daemon_, &slow);
    rw_daemon_greet(&daemon_, &owner);
    uint64_t session = rw_daemon_create_session(&owner, "gaps");
    rw_daemon_load_bodies(&owner, session, 300);
    attach(&slow, "gaps", rw_pb_Role_Kind_OBSERVE);
    rw_pb_Request request = subscribe_request(session, 1);
    request.command.subscribe.has_key_interval = true;
    request.command.subscribe.key_interval = 20;
    assert_int_equal(rw_daemon_call(&slow, &request, &response), rw_pb_Status_Code_OK);
    rw_daemon_step(&owner, session, 2000);
    uint64_t key = UINT64_MAX, seen = 0, last = 0;
    while (rw_daemon_wait_state(&slow, &frame, 1)) {
        if (frame.sequence == frame.key_sequence) {
            key = frame.sequence;
        }
        assert_int_equal(frame.key_sequence, key); // never one whose key was lost
        assert_true(seen == 0 || frame.sequence > last);
        last = frame.sequence;
        seen++;
    }
    assert_true(seen > 0);
    assert_true(seen < 2001); // some were lost, or this test shows nothing
    close_session(&owner, session);
    rw_daemon_disconnect(&slow);
    rw_daemon_disconnect(&owner);
}

static void a_byte_budget_is_kept(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "budget");
    rw_daemon_load_bodies(&client, session, 50);
    rw_pb_Request request = subscribe_request(session, 1);
    request.command.subscribe.byte_budget = 20000;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint64_t subscription = response.result.subscribe.subscription;
    rw_daemon_step(&client, session, 200);
    uint64_t sent, dropped;
    unsubscribe(&client, subscription, &sent, &dropped);
    assert_int_equal(sent + dropped, 201);
    assert_true(dropped > 100);
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

static void a_session_waits_for_a_recorder(void** state) {
    (void)state;
    enum { STEPS = 3000 };
    rw_daemon_client recorder, owner;
    rw_pb_Response response;
    rw_pb_StateFrame frame;
    rw_daemon_greet(&daemon_, &recorder);
    rw_daemon_greet(&daemon_, &owner);
    uint64_t session = rw_daemon_create_session(&owner, "recorded");
    rw_daemon_load_bodies(&owner, session, 200);
    attach(&recorder, "recorded", rw_pb_Role_Kind_OBSERVE);
    rw_pb_Request request = subscribe_request(session, 1);
    request.command.subscribe.back_pressure = true;
    assert_int_equal(rw_daemon_call(&recorder, &request, &response),
                     rw_pb_Status_Code_PERMISSION_DENIED);
    attach(&recorder, "recorded", rw_pb_Role_Kind_CONTROL);
    assert_int_equal(rw_daemon_call(&recorder, &request, &response), rw_pb_Status_Code_OK);
    uint64_t id = send_step(&owner, session, STEPS);
    usleep(500000);
    rw_daemon_frame early;
    assert_false(rw_daemon_receive(&owner, &early, 0.1, NULL)); // held by the recorder
    uint64_t next = 0;
    while (next <= STEPS && rw_daemon_wait_state(&recorder, &frame, 10)) {
        assert_int_equal(frame.step, next); // nothing is missing
        next++;
    }
    assert_int_equal(next, STEPS + 1);
    rw_daemon_wait(&owner, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    // Who waits for a recorder can be cancelled, and has its deadline.
    id = send_step(&owner, session, STEPS);
    usleep(300000);
    request = for_session(0, rw_pb_Request_cancel_tag);
    request.command.cancel.request_id = id;
    assert_int_equal(rw_daemon_call(&owner, &request, &response), rw_pb_Status_Code_OK);
    rw_daemon_wait(&owner, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_CANCELLED);
    request = for_session(session, rw_pb_Request_step_tag);
    request.command.step.which_amount = rw_pb_Step_count_tag;
    request.command.step.amount.count = STEPS;
    request.deadline_ms = 100;
    assert_int_equal(rw_daemon_call(&owner, &request, &response),
                     rw_pb_Status_Code_DEADLINE_EXCEEDED);
    while (rw_daemon_wait_state(&recorder, &frame, 0.3)) { // it reads on
    }
    // A recorder that dies lets the session go.
    id = send_step(&owner, session, STEPS);
    usleep(200000);
    rw_daemon_disconnect(&recorder);
    rw_daemon_wait(&owner, id, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    close_session(&owner, session);
    rw_daemon_disconnect(&owner);
}

static void wrong_subscriptions_name_their_field(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "wrong");
    rw_daemon_load_bodies(&client, session, 2);
    rw_pb_Request request = subscribe_request(session, 0);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "every_steps");
    request = subscribe_request(session, 1);
    const char* globs[] = {"body/b0", "rod/*"};
    request.command.subscribe.objects = rw_wire_from_strings(globs, 2);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_NOT_FOUND);
    assert_string_equal(response.path, "objects[1]");
    request = subscribe_request(session, 1);
    request.command.subscribe.mode = rw_pb_Stream_Mode_QUANTIZED;
    request.command.subscribe.has_position_bound = true;
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    assert_string_equal(response.path, "position_bound");
    close_session(&client, session);
    rw_daemon_disconnect(&client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_at_each_promised_step_and_decode_to_the_state),
        cmocka_unit_test(like_subscriptions_share_a_group_and_newcomers_get_a_key),
        cmocka_unit_test(a_new_epoch_brings_layout_and_key),
        cmocka_unit_test(a_slow_reader_loses_frames_but_no_reply_and_the_session_goes_on),
        cmocka_unit_test(what_a_slow_reader_gets_can_be_decoded),
        cmocka_unit_test(a_byte_budget_is_kept),
        cmocka_unit_test(a_session_waits_for_a_recorder),
        cmocka_unit_test(wrong_subscriptions_name_their_field),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
