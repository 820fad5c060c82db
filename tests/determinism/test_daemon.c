// The same commands give the same bits on a real daemon: for any worker count, in one go or in small
// pieces, inline on the loop thread or on a worker, alone or beside busy neighbours, over one
// connection or several.
#include "tests/support/rw_test.h"

#include "tests/support/rw_cycles.h"

enum { STEPS = 120 };

static rw_pb_Request for_session(uint64_t session, pb_size_t command) {
    rw_pb_Request request = rw_pb_Request_init_zero;
    request.session = session;
    request.which_command = command;
    return request;
}

static uint64_t open_world(rw_daemon_client* client) {
    uint64_t session = rw_daemon_create_session(client, "");
    rw_pb_Request request = for_session(session, rw_pb_Request_load_scene_tag);
    rw_pb_Response response;
    request.command.load_scene.has_scene = true;
    rw_pb_Scene* scene = &request.command.load_scene.scene;
    scene->has_solver = scene->solver.has_rods = true;
    scene->solver.rods = rw_pb_RodSolver_Method_SCR;
    scene->bodies = rw_wire_from_fill(rw_cycles_fill_body, NULL, sizeof(rw_pb_Body), 12);
    scene->rods = rw_wire_from_fill(rw_cycles_fill_rod, NULL, sizeof(rw_pb_Rod), 3);
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    return session;
}

static void set_wind(rw_daemon_client* client, uint64_t session, double wind) {
    rw_pb_Request request = for_session(session, rw_pb_Request_set_wind_tag);
    rw_pb_Response response;
    request.command.set_wind.wind_count = 3;
    request.command.set_wind.wind[0] = wind;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
}

// The script in pieces of `piece` steps; a set in its middle.
static uint64_t run_script(rw_daemon_client* client, uint32_t piece) {
    uint64_t session = open_world(client);
    for (uint32_t step = 0; step < STEPS; step += piece) {
        if (step == STEPS / 2) {
            set_wind(client, session, 3);
        }
        rw_daemon_step(client, session, piece);
    }
    uint64_t hash = rw_daemon_hash(client, session);
    rw_pb_Request request = for_session(session, rw_pb_Request_close_session_tag);
    rw_pb_Response response;
    assert_int_equal(rw_daemon_call(client, &request, &response), rw_pb_Status_Code_OK);
    return hash;
}

static void same_bits_for_any_workers_pieces_and_neighbours(void** state) {
    (void)state;
    static const char* const WORKERS[] = {"1", "2", "3", "8"};
    uint64_t expected = 0;
    for (int i = 0; i < 4; i++) {
        const char* flags[] = {"--workers", WORKERS[i], NULL};
        rw_daemon daemon;
        rw_daemon_client client, neighbour;
        rw_pb_Response response;
        rw_daemon_start(&daemon, flags);
        rw_daemon_greet(&daemon, &client);
        uint64_t whole = run_script(&client, STEPS / 2);
        expected = i == 0 ? whole : expected;
        assert_int_equal(whole, expected);
        assert_int_equal(run_script(&client, 1), expected); // mostly inline
        assert_int_equal(run_script(&client, 5), expected);

        rw_daemon_greet(&daemon, &neighbour);
        uint64_t busy[4], ids[4];
        for (int k = 0; k < 4; k++) {
            busy[k] = open_world(&neighbour);
            rw_pb_Request request = for_session(busy[k], rw_pb_Request_step_tag);
            request.command.step.which_amount = rw_pb_Step_count_tag;
            request.command.step.amount.count = 4000000000u;
            ids[k] = rw_daemon_send(&neighbour, &request);
        }
        assert_int_equal(run_script(&client, 4), expected);
        for (int k = 0; k < 4; k++) {
            rw_pb_Request cancel = for_session(0, rw_pb_Request_cancel_tag);
            cancel.command.cancel.request_id = ids[k];
            assert_int_equal(rw_daemon_call(&neighbour, &cancel, &response), rw_pb_Status_Code_OK);
        }
        // Cancelled where it may be, a twin that is told to go as far is the same.
        for (int k = 0; k < 2; k++) {
            rw_daemon_wait(&neighbour, ids[k], &response);
            uint32_t done = response.steps_done;
            uint64_t twin = open_world(&client);
            rw_daemon_step(&client, twin, done);
            assert_int_equal(rw_daemon_hash(&client, twin), rw_daemon_hash(&neighbour, busy[k]));
        }
        rw_daemon_disconnect(&client);
        rw_daemon_disconnect(&neighbour);
        assert_int_equal(rw_daemon_stop(&daemon, 10), 0);
    }
    assert_int_not_equal(expected, 0);
}

// The bytes of a session's requests, sent again to another daemon, give the same answers: a replay.
static void a_replay_of_the_wire_gives_the_same_bytes(void** state) {
    (void)state;
    rw_alloc alloc;
    rw_buffer answers[2];
    rw_alloc_init(&alloc, 0);
    for (int i = 0; i < 2; i++) {
        static const char* const FLAGS[2][3] = {{"--workers", "1", NULL}, {"--workers", "3", NULL}};
        rw_daemon daemon;
        rw_daemon_client client;
        rw_daemon_start(&daemon, FLAGS[i]);
        rw_daemon_greet(&daemon, &client);
        rw_buffer_init(&answers[i], &alloc);
        uint64_t session = open_world(&client);
        uint32_t width;
        uint64_t observe = rw_daemon_observe(&client, session, "*/*/*", &width);
        for (int k = 0; k < 50; k++) {
            if (k % 10 == 5) {
                set_wind(&client, session, k);
            }
            rw_pb_Request request = for_session(session, rw_pb_Request_advance_tag);
            rw_pb_Response response;
            request.command.advance.observe = observe;
            assert_int_equal(rw_daemon_call(&client, &request, &response), rw_pb_Status_Code_OK);
            rw_wire_array values = response.result.advance.values;
            assert_int_equal(values.count, width);
            rw_buffer_append(&answers[i], values.data, (size_t)values.count * 8);
        }
        rw_daemon_disconnect(&client);
        assert_int_equal(rw_daemon_stop(&daemon, 10), 0);
    }
    assert_true(answers[0].size_bytes > 10000);
    assert_int_equal(answers[0].size_bytes, answers[1].size_bytes);
    assert_memory_equal(answers[0].data, answers[1].data, answers[0].size_bytes);
    rw_buffer_finish(&answers[0]);
    rw_buffer_finish(&answers[1]);
    rw_alloc_finish(&alloc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_workers_pieces_and_neighbours),
        cmocka_unit_test(a_replay_of_the_wire_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
