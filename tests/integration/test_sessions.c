// Lives of sessions on a real daemon: names, ids, roles, who may what, when they end.
#include "tests/support/rw_test.h"

#include <unistd.h>

#include "tests/support/rw_daemon.h"

static rw_daemon daemon_;

static int set_up(void** state) {
    (void)state;
    static const char* const FLAGS[] = {"--max-sessions", "40", "--session-memory", "2M", NULL};
    rw_daemon_start(&daemon_, FLAGS);
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

static rw_pb_Status_Code simple(rw_daemon_client* client, uint64_t session, pb_size_t command,
                                rw_pb_Response* response) {
    rw_pb_Request request = for_session(session, command);
    return rw_daemon_call(client, &request, response);
}

static rw_pb_Status_Code create(rw_daemon_client* client, const char* name, double ttl_s,
                                rw_pb_Response* response) {
    rw_pb_Request request = for_session(0, rw_pb_Request_create_session_tag);
    strcpy(request.command.create_session.name, name);
    request.command.create_session.has_ttl_detached_s = true;
    request.command.create_session.ttl_detached_s = ttl_s;
    return rw_daemon_call(client, &request, response);
}

static rw_pb_Status_Code attach(rw_daemon_client* client, const char* name, rw_pb_Role_Kind role,
                                bool exclusive, rw_pb_Response* response) {
    rw_pb_Request request = for_session(0, rw_pb_Request_attach_session_tag);
    strcpy(request.command.attach_session.name, name);
    request.command.attach_session.role = role;
    request.command.attach_session.exclusive = exclusive;
    return rw_daemon_call(client, &request, response);
}

static uint32_t count_sessions(rw_daemon_client* client, const char* glob) {
    rw_pb_Request request = for_session(0, rw_pb_Request_list_sessions_tag);
    rw_pb_Response response;
    strcpy(request.command.list_sessions.name_glob, glob);
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    return response.result.list_sessions.sessions.count;
}

static void close_session(rw_daemon_client* client, uint64_t session) {
    rw_pb_Response response;
    assert_int_equal(simple(client, session, rw_pb_Request_close_session_tag, &response),
                     rw_pb_Status_Code_OK);
}

// ---- Names and ids ----

static void names_are_checked_and_unique(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    static const char* const BAD[] = {"a b", "a/b", "\xc3\xa4", "*"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(create(&client, BAD[i], 60, &response),
                         rw_pb_Status_Code_INVALID_ARGUMENT);
        assert_string_equal(response.path, "name");
    }
    assert_int_equal(create(&client, "A-z_0.9:x", 60, &response), rw_pb_Status_Code_OK);
    uint64_t id = response.result.session.id;
    assert_int_equal(create(&client, "A-z_0.9:x", 60, &response),
                     rw_pb_Status_Code_ALREADY_EXISTS);
    close_session(&client, id);
    assert_int_equal(create(&client, "A-z_0.9:x", 60, &response), rw_pb_Status_Code_OK);
    close_session(&client, response.result.session.id);
    rw_daemon_disconnect(&client);
}

static void server_chooses_a_name_where_none_is_given(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    assert_int_equal(create(&client, "", 60, &response), rw_pb_Status_Code_OK);
    assert_true(strlen(response.result.session.name) > 0);
    close_session(&client, response.result.session.id);
    rw_daemon_disconnect(&client);
}

static void stale_id_answers_not_found_for_ever(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t old = rw_daemon_create_session(&client, "old");
    close_session(&client, old);
    for (int i = 0; i < 50; i++) {
        uint64_t next = rw_daemon_create_session(&client, "next");
        assert_int_not_equal(next, old);
        assert_int_equal(simple(&client, old, rw_pb_Request_step_tag, &response),
                         rw_pb_Status_Code_NOT_FOUND);
        close_session(&client, next);
    }
    rw_daemon_disconnect(&client);
}

static void sessions_are_listed_in_creation_order_by_glob(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    static const char* const NAMES[] = {"list-c", "list-a", "other", "list-b"};
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) {
        ids[i] = rw_daemon_create_session(&client, NAMES[i]);
    }
    rw_pb_Request request = for_session(0, rw_pb_Request_list_sessions_tag);
    strcpy(request.command.list_sessions.name_glob, "list-*");
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    rw_wire_cursor cursor = rw_wire_begin(&response.result.list_sessions.sessions);
    rw_pb_SessionInfo info;
    const char* const EXPECTED[] = {"list-c", "list-a", "list-b"};
    for (int i = 0; i < 3; i++) {
        assert_true(rw_wire_next_message(&cursor, rw_pb_SessionInfo_fields, &info, sizeof info));
        assert_string_equal(info.name, EXPECTED[i]);
        assert_int_equal(info.clients, 1);
        assert_int_equal(info.controllers, 1);
    }
    assert_int_equal(count_sessions(&client, ""), 4);
    assert_int_equal(count_sessions(&client, "*-?"), 0);
    for (int i = 0; i < 4; i++) {
        close_session(&client, ids[i]);
    }
    rw_daemon_disconnect(&client);
}

static void the_limit_of_sessions_is_told(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t ids[40];
    for (int i = 0; i < 40; i++) {
        ids[i] = rw_daemon_create_session(&client, "");
    }
    assert_int_equal(create(&client, "", 60, &response), rw_pb_Status_Code_RESOURCE_EXHAUSTED);
    for (int i = 0; i < 40; i++) {
        close_session(&client, ids[i]);
    }
    assert_int_equal(count_sessions(&client, ""), 0);
    rw_daemon_disconnect(&client);
}

// A scene of `count` bodies; the status of loading it.
static bool fill_body(void* context, uint32_t index, void* item) {
    (void)context;
    rw_pb_Body* body = item;
    snprintf(body->name, sizeof body->name, "b%u", index);
    body->mass = 1;
    body->inertia_count = 6;
    body->inertia[0] = body->inertia[1] = body->inertia[2] = 1;
    return true;
}

static void the_memory_of_a_session_is_limited_and_others_unharmed(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t small = rw_daemon_create_session(&client, "small");
    uint64_t large = rw_daemon_create_session(&client, "large");
    rw_daemon_load_bodies(&client, small, 3);
    rw_daemon_load_bodies(&client, large, 3);
    uint64_t hash = rw_daemon_hash(&client, large);
    rw_pb_Request request = for_session(large, rw_pb_Request_load_scene_tag);
    request.command.load_scene.has_scene = true;
    request.command.load_scene.scene.bodies =
        rw_wire_from_fill(fill_body, NULL, sizeof(rw_pb_Body), 20000);
    assert_int_equal(rw_daemon_call(&client, &request, &response),
                     rw_pb_Status_Code_RESOURCE_EXHAUSTED);
    assert_int_equal(rw_daemon_hash(&client, large), hash); // all or nothing
    rw_daemon_step(&client, large, 1);
    rw_daemon_step(&client, small, 1);
    close_session(&client, small);
    close_session(&client, large);
    rw_daemon_disconnect(&client);
}

// ---- Roles ----

static void observers_may_ask_but_not_change(void** state) {
    (void)state;
    rw_daemon_client owner, watcher;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &owner);
    rw_daemon_greet(&daemon_, &watcher);
    uint64_t session = rw_daemon_create_session(&owner, "roles");
    rw_daemon_load_bodies(&owner, session, 2);
    rw_daemon_step(&owner, session, 7);
    assert_int_equal(simple(&watcher, session, rw_pb_Request_query_tag, &response),
                     rw_pb_Status_Code_PERMISSION_DENIED); // not attached at all
    assert_int_equal(attach(&watcher, "roles", rw_pb_Role_Kind_OBSERVE, false, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(response.result.session.step, 7);
    assert_int_equal(response.result.session.clients, 2);
    assert_int_equal(response.result.session.controllers, 1);
    assert_int_equal(response.result.session.state, rw_pb_SessionState_Kind_READY);
    static const pb_size_t FORBIDDEN[] = {
        rw_pb_Request_step_tag,        rw_pb_Request_load_scene_tag,
        rw_pb_Request_create_body_tag, rw_pb_Request_remove_body_tag,
        rw_pb_Request_set_gravity_tag, rw_pb_Request_apply_wrench_tag,
        rw_pb_Request_run_tag,         rw_pb_Request_pause_tag,
        rw_pb_Request_advance_tag,     rw_pb_Request_restore_tag,
        rw_pb_Request_close_session_tag};
    for (size_t i = 0; i < sizeof FORBIDDEN / sizeof FORBIDDEN[0]; i++) {
        assert_int_equal(simple(&watcher, session, FORBIDDEN[i], &response),
                         rw_pb_Status_Code_PERMISSION_DENIED);
    }
    assert_int_equal(rw_daemon_hash(&watcher, session), rw_daemon_hash(&owner, session));
    close_session(&owner, session);
    rw_daemon_disconnect(&watcher);
    rw_daemon_disconnect(&owner);
}

static void observers_may_take_snapshots_but_not_keep_them(void** state) {
    (void)state;
    rw_daemon_client owner, watcher;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &owner);
    rw_daemon_greet(&daemon_, &watcher);
    uint64_t session = rw_daemon_create_session(&owner, "kept");
    rw_daemon_load_bodies(&owner, session, 2);
    assert_int_equal(attach(&watcher, "kept", rw_pb_Role_Kind_OBSERVE, false, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(simple(&watcher, session, rw_pb_Request_snapshot_tag, &response),
                     rw_pb_Status_Code_OK);
    assert_true(response.result.snapshot.data.size > 0);
    rw_pb_Request request = for_session(session, rw_pb_Request_snapshot_tag);
    request.command.snapshot.keep = true;
    assert_int_equal(rw_daemon_call(&watcher, &request, &response),
                     rw_pb_Status_Code_PERMISSION_DENIED);
    assert_string_equal(response.path, "keep");
    assert_int_equal(rw_daemon_call(&owner, &request, &response), rw_pb_Status_Code_OK);
    close_session(&owner, session);
    rw_daemon_disconnect(&watcher);
    rw_daemon_disconnect(&owner);
}

static void exclusive_control_keeps_others_out(void** state) {
    (void)state;
    rw_daemon_client a, b;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &a);
    rw_daemon_greet(&daemon_, &b);
    uint64_t session = rw_daemon_create_session(&a, "mine");
    assert_int_equal(attach(&b, "mine", rw_pb_Role_Kind_CONTROL, true, &response),
                     rw_pb_Status_Code_FAILED_PRECONDITION); // a controls
    assert_int_equal(attach(&a, "mine", rw_pb_Role_Kind_CONTROL, true, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(attach(&b, "mine", rw_pb_Role_Kind_CONTROL, false, &response),
                     rw_pb_Status_Code_FAILED_PRECONDITION);
    assert_int_equal(attach(&b, "mine", rw_pb_Role_Kind_OBSERVE, false, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(attach(&b, "mine", rw_pb_Role_Kind_OBSERVE, true, &response),
                     rw_pb_Status_Code_INVALID_ARGUMENT);
    // Giving it up lets the other in.
    assert_int_equal(attach(&a, "mine", rw_pb_Role_Kind_OBSERVE, false, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(attach(&b, "mine", rw_pb_Role_Kind_CONTROL, true, &response),
                     rw_pb_Status_Code_OK);
    close_session(&b, session);
    rw_daemon_disconnect(&a);
    rw_daemon_disconnect(&b);
}

static void several_controllers_share_one_order(void** state) {
    (void)state;
    rw_daemon_client a, b;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &a);
    rw_daemon_greet(&daemon_, &b);
    uint64_t session = rw_daemon_create_session(&a, "shared");
    rw_daemon_load_bodies(&a, session, 2);
    assert_int_equal(attach(&b, "shared", rw_pb_Role_Kind_CONTROL, false, &response),
                     rw_pb_Status_Code_OK);
    bool seen[201] = {false};
    for (int i = 0; i < 100; i++) {
        rw_pb_Request request = for_session(session, rw_pb_Request_step_tag);
        uint64_t first = rw_daemon_send(&a, &request);
        request.request_id = 0;
        uint64_t second = rw_daemon_send(&b, &request);
        rw_daemon_wait(&a, first, &response);
        assert_false(seen[response.step]);
        seen[response.step] = true;
        rw_daemon_wait(&b, second, &response);
        assert_false(seen[response.step]);
        seen[response.step] = true;
    }
    close_session(&a, session);
    rw_daemon_disconnect(&a);
    rw_daemon_disconnect(&b);
}

// ---- Ends ----

static void closing_tells_everyone_attached(void** state) {
    (void)state;
    rw_daemon_client owner, watcher;
    rw_pb_Response response;
    rw_pb_Event event;
    rw_daemon_greet(&daemon_, &owner);
    rw_daemon_greet(&daemon_, &watcher);
    uint64_t session = rw_daemon_create_session(&owner, "ends");
    attach(&watcher, "ends", rw_pb_Role_Kind_OBSERVE, false, &response);
    close_session(&owner, session);
    assert_true(rw_daemon_wait_event(&watcher, rw_pb_Event_session_changed_tag, &event, 5));
    assert_int_equal(event.kind.session_changed.session, session);
    assert_int_equal(event.kind.session_changed.state, rw_pb_SessionState_Kind_CLOSED);
    assert_int_equal(simple(&watcher, session, rw_pb_Request_query_tag, &response),
                     rw_pb_Status_Code_NOT_FOUND);
    rw_daemon_disconnect(&owner);
    rw_daemon_disconnect(&watcher);
}

static void close_waits_for_what_was_sent_before(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    uint64_t session = rw_daemon_create_session(&client, "order");
    rw_daemon_load_bodies(&client, session, 2);
    rw_buffer all;
    rw_buffer_init(&all, &client.alloc);
    rw_pb_Request step = for_session(session, rw_pb_Request_step_tag);
    rw_pb_Request close = for_session(session, rw_pb_Request_close_session_tag);
    rw_pb_Request late = for_session(session, rw_pb_Request_step_tag);
    uint64_t first = rw_daemon_append(&client, &all, &step);
    uint64_t second = rw_daemon_append(&client, &all, &close);
    uint64_t third = rw_daemon_append(&client, &all, &late);
    rw_daemon_send_bytes(&client, all.data, all.size_bytes);
    rw_daemon_wait(&client, first, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, second, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_OK);
    rw_daemon_wait(&client, third, &response);
    assert_int_equal(response.status, rw_pb_Status_Code_NOT_FOUND);
    rw_buffer_finish(&all);
    rw_daemon_disconnect(&client);
}

// Waits until no session matches; false after some seconds.
static bool is_gone(rw_daemon_client* client, const char* name, double limit_s) {
    double end = rw_daemon_now_s() + limit_s;
    while (rw_daemon_now_s() < end) {
        if (count_sessions(client, name) == 0) {
            return true;
        }
        usleep(10000);
    }
    return false;
}

static void sessions_outlive_their_clients_by_their_ttl(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    create(&client, "ttl-0", 0, &response);
    create(&client, "ttl-short", 0.3, &response);
    create(&client, "ttl-forever", -1, &response);
    uint64_t forever = response.result.session.id;
    create(&client, "ttl-long", 60, &response);
    uint64_t lasting = response.result.session.id;
    rw_daemon_disconnect(&client);
    assert_true(is_gone(&other, "ttl-0", 2));
    assert_int_equal(count_sessions(&other, "ttl-*"), 3);
    assert_true(is_gone(&other, "ttl-short", 2));
    assert_int_equal(count_sessions(&other, "ttl-*"), 2);
    assert_int_equal(attach(&other, "ttl-long", rw_pb_Role_Kind_CONTROL, false, &response),
                     rw_pb_Status_Code_OK);
    assert_int_equal(attach(&other, "ttl-forever", rw_pb_Role_Kind_CONTROL, false, &response),
                     rw_pb_Status_Code_OK);
    close_session(&other, forever);
    close_session(&other, lasting);
    rw_daemon_disconnect(&other);
}

static void coming_back_within_the_ttl_keeps_the_session(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    rw_daemon_greet(&daemon_, &other);
    create(&client, "back", 0.5, &response);
    uint64_t session = response.result.session.id;
    assert_int_equal(simple(&client, session, rw_pb_Request_detach_session_tag, &response),
                     rw_pb_Status_Code_OK);
    usleep(200000);
    assert_int_equal(attach(&other, "back", rw_pb_Role_Kind_CONTROL, false, &response),
                     rw_pb_Status_Code_OK);
    usleep(700000);
    assert_int_equal(count_sessions(&other, "back"), 1);
    close_session(&other, session);
    rw_daemon_disconnect(&client);
    rw_daemon_disconnect(&other);
}

static void ttl_is_checked(void** state) {
    (void)state;
    rw_daemon_client client;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &client);
    static const double BAD[] = {-2, -0.5, (double)INFINITY, (double)NAN};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(create(&client, "bad", BAD[i], &response),
                         rw_pb_Status_Code_INVALID_ARGUMENT);
        assert_string_equal(response.path, "ttl_detached_s");
    }
    rw_daemon_disconnect(&client);
}

static rw_pb_SessionState_Kind state_of(rw_daemon_client* client, const char* name,
                                        uint64_t* step) {
    rw_pb_Response response;
    attach(client, name, rw_pb_Role_Kind_OBSERVE, false, &response);
    *step = response.result.session.step;
    return response.result.session.state;
}

static void lost_control_holds_or_pauses_a_run(void** state) {
    (void)state;
    rw_daemon_client other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &other);
    static const rw_pb_CreateSession_OnControlLost ACTIONS[] = {
        rw_pb_CreateSession_OnControlLost_HOLD, rw_pb_CreateSession_OnControlLost_PAUSE};
    for (int i = 0; i < 2; i++) {
        rw_daemon_client client;
        rw_daemon_greet(&daemon_, &client);
        rw_pb_Request request = for_session(0, rw_pb_Request_create_session_tag);
        strcpy(request.command.create_session.name, "left-alone");
        request.command.create_session.on_control_lost = ACTIONS[i];
        assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
        uint64_t session = response.result.session.id;
        rw_daemon_load_bodies(&client, session, 2);
        assert_int_equal(simple(&client, session, rw_pb_Request_run_tag, &response),
                         rw_pb_Status_Code_OK);
        rw_daemon_disconnect(&client);
        usleep(100000);
        uint64_t before, after;
        rw_pb_SessionState_Kind now = state_of(&other, "left-alone", &before);
        assert_int_equal(now, i == 0 ? rw_pb_SessionState_Kind_RUNNING
                                     : rw_pb_SessionState_Kind_READY);
        usleep(100000);
        state_of(&other, "left-alone", &after);
        assert_true(i == 0 ? after > before : after == before);
        attach(&other, "left-alone", rw_pb_Role_Kind_CONTROL, false, &response);
        close_session(&other, session);
    }
    rw_daemon_disconnect(&other);
}

static bool fill_driven_body(void* context, uint32_t index, void* item) {
    (void)context;
    rw_pb_Body* body = item;
    snprintf(body->name, sizeof body->name, "b%u", index);
    body->mass = 1;
    body->inertia_count = 6;
    body->inertia[0] = body->inertia[1] = body->inertia[2] = 1;
    if (index == 1) {
        body->kind = rw_pb_Body_Kind_KINEMATIC;
        body->linear_velocity_count = body->angular_velocity_count = 3;
        body->linear_velocity[0] = body->angular_velocity[2] = 1;
    }
    return true;
}

static bool fill_driven_joint(void* context, uint32_t index, void* item) {
    (void)context;
    (void)index;
    rw_pb_Joint* joint = item;
    strcpy(joint->name, "j");
    strcpy(joint->child, "b0");
    joint->type = rw_pb_Joint_Type_REVOLUTE;
    joint->has_motor = true;
    joint->motor.mode = rw_pb_Motor_Mode_VELOCITY;
    joint->motor.target_count = 1;
    joint->motor.target[0] = 2;
    joint->motor.damping = 1;
    return true;
}

static bool fill_driven_load(void* context, uint32_t index, void* item) {
    (void)context;
    (void)index;
    rw_pb_Force* force = item;
    strcpy(force->name, "f");
    force->which_law = rw_pb_Force_load_tag;
    strcpy(force->law.load.body, "b0");
    force->law.load.force_count = force->law.load.torque_count = 3;
    force->law.load.force[0] = force->law.load.torque[1] = 3;
    return true;
}

// The values in force of what Actuate can drive: gravity, the motor, the kinematic body, the load.
static void read_inputs(rw_daemon_client* client, uint64_t session, double values[16]) {
    static const char* const TARGETS[] = {"gravity", "joint/j", "body/b1", "force/f"};
    rw_pb_Request request = for_session(session, rw_pb_Request_actuate_tag);
    rw_pb_Response response;
    request.command.actuate.targets = rw_wire_from_strings(TARGETS, 4);
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    assert_int_equal(response.result.actuate.values.count, 16);
    for (uint32_t i = 0; i < 16; i++) {
        values[i] = rw_wire_f64(response.result.actuate.values, i);
    }
}

static void lost_control_zeroes_all_inputs_but_gravity(void** state) {
    (void)state;
    rw_daemon_client client, other;
    rw_pb_Response response;
    rw_daemon_greet(&daemon_, &other);
    rw_daemon_greet(&daemon_, &client);
    rw_pb_Request request = for_session(0, rw_pb_Request_create_session_tag);
    strcpy(request.command.create_session.name, "zeroed");
    request.command.create_session.on_control_lost = rw_pb_CreateSession_OnControlLost_ZERO_INPUT;
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    uint64_t session = response.result.session.id;
    request = for_session(session, rw_pb_Request_load_scene_tag);
    request.command.load_scene.has_scene = true;
    rw_pb_Scene* scene = &request.command.load_scene.scene;
    scene->gravity_count = 3;
    scene->gravity[2] = -1;
    scene->bodies = rw_wire_from_fill(fill_driven_body, NULL, sizeof(rw_pb_Body), 2);
    scene->joints = rw_wire_from_fill(fill_driven_joint, NULL, sizeof(rw_pb_Joint), 1);
    scene->forces = rw_wire_from_fill(fill_driven_load, NULL, sizeof(rw_pb_Force), 1);
    assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
    double values[16];
    read_inputs(&client, session, values);
    static const double BEFORE[16] = {0, 0, -1, 2, 1, 0, 0, 0, 0, 1, 3, 0, 0, 0, 3, 0};
    assert_memory_equal(values, BEFORE, sizeof values);
    assert_int_equal(simple(&client, session, rw_pb_Request_run_tag, &response),
                     rw_pb_Status_Code_OK);
    rw_daemon_disconnect(&client);
    uint64_t step;
    for (int i = 0; i < 100; i++) { // the other sees when the daemon has seen the end
        usleep(20000);
        assert_int_equal(state_of(&other, "zeroed", &step), rw_pb_SessionState_Kind_RUNNING);
        attach(&other, "zeroed", rw_pb_Role_Kind_OBSERVE, false, &response);
        if (response.result.session.controllers == 0) {
            break;
        }
    }
    attach(&other, "zeroed", rw_pb_Role_Kind_CONTROL, false, &response);
    read_inputs(&other, session, values);
    static const double AFTER[16] = {0, 0, -1};
    for (int i = 0; i < 16; i++) {
        rw_assert_near(values[i], AFTER[i], 0);
    }
    close_session(&other, session);
    rw_daemon_disconnect(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked_and_unique),
        cmocka_unit_test(server_chooses_a_name_where_none_is_given),
        cmocka_unit_test(stale_id_answers_not_found_for_ever),
        cmocka_unit_test(sessions_are_listed_in_creation_order_by_glob),
        cmocka_unit_test(the_limit_of_sessions_is_told),
        cmocka_unit_test(the_memory_of_a_session_is_limited_and_others_unharmed),
        cmocka_unit_test(observers_may_ask_but_not_change),
        cmocka_unit_test(observers_may_take_snapshots_but_not_keep_them),
        cmocka_unit_test(exclusive_control_keeps_others_out),
        cmocka_unit_test(several_controllers_share_one_order),
        cmocka_unit_test(closing_tells_everyone_attached),
        cmocka_unit_test(close_waits_for_what_was_sent_before),
        cmocka_unit_test(sessions_outlive_their_clients_by_their_ttl),
        cmocka_unit_test(coming_back_within_the_ttl_keeps_the_session),
        cmocka_unit_test(ttl_is_checked),
        cmocka_unit_test(lost_control_holds_or_pauses_a_run),
        cmocka_unit_test(lost_control_zeroes_all_inputs_but_gravity),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
