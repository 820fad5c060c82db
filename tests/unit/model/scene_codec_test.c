#include "tests/support/rw_test.h"

#include "solvers/model/scene_codec.h"
#include "tests/support/full_scene.h"

static full_scene scene;
static rw_alloc alloc;
static rw_model model;

// The full scene with a history: objects came and went, values were set, wrenches are at work.
static int begin(void** state) {
    (void)state;
    full_scene_init(&scene);
    rw_alloc_init(&alloc, 0);
    rw_model_init(&model, &alloc);
    if (rw_model_load(&model, &scene.scene, NULL) != RW_STATUS_OK) {
        return -1;
    }
    for (int round = 0; round < 3; round++) {
        rw_removal removal;
        rw_model_removal_plan(&model, RW_KIND_JOINT, 0, true, &removal, NULL);
        rw_model_removal_apply(&model, &removal);
        rw_model_removal_finish(&removal);
    }
    rw_model_add_joint(&model, &scene.joints[0], NULL, NULL);
    rw_model_add_joint(&model, &scene.joints[1], NULL, NULL);
    rw_model_add_joint(&model, &scene.joints[2], NULL, NULL);
    rw_model_add_coupling(&model, &scene.couplings[0], NULL, NULL);
    rw_model_add_input(&model, &scene.inputs[4], NULL, NULL);
    rw_removal last; // leaves a hole in the ids
    rw_model_removal_plan(&model, RW_KIND_JOINT, 0, false, &last, NULL);
    rw_model_removal_apply(&model, &last);
    rw_model_removal_finish(&last);
    for (int32_t i = 0; i < model.rods.count; i++) {
        rw_model_set_rod_layout(&model, i, model.rods.items[i].node_count - 1,
                                model.rods.items[i].node_count - 1);
    }
    model.attachments.items[1].target.position[2] = 0.123;
    model.forces.items[0].rest_length = 0.77;
    const rw_applied_wrench wrench = {.body = 1,
                                      .rod = -1,
                                      .node = -1,
                                      .point = {1, 2, 3},
                                      .force = {4, 5, 6},
                                      .torque = {7, 8, 9},
                                      .frame = RW_LOAD_BODY,
                                      .steps_left = 12345678901};
    const rw_applied_wrench on_rod = {.body = -1, .rod = 2, .node = 4, .steps_left = -1};
    rw_model_add_wrench(&model, &wrench);
    rw_model_add_wrench(&model, &on_rod);
    return 0;
}

static int end(void** state) {
    (void)state;
    rw_model_finish(&model);
    rw_alloc_finish(&alloc);
    return 0;
}

static rw_status read_back(const unsigned char* bytes, size_t count, rw_model* copy,
                           rw_error* error) {
    rw_model_init(copy, &alloc);
    const unsigned char* at = bytes;
    rw_status status = rw_scene_codec_read(copy, &at, bytes + count, error);
    assert_true(at <= bytes + count);
    return status;
}

static void a_read_model_writes_the_same_bytes(void** state) {
    (void)state;
    rw_buffer first, second;
    rw_buffer_init(&first, &alloc);
    rw_buffer_init(&second, &alloc);
    uint64_t calls = alloc.call_count;
    assert_int_equal(rw_scene_codec_write(&model, &first), RW_STATUS_OK);
    assert_int_equal(alloc.call_count, calls + 1); // the room was foreseen
    rw_model copy;
    rw_error error = {0};
    if (read_back(first.data, first.size_bytes, &copy, &error) != RW_STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(rw_scene_codec_write(&copy, &second), RW_STATUS_OK);
    assert_int_equal(first.size_bytes, second.size_bytes);
    assert_memory_equal(first.data, second.data, first.size_bytes);

    // Derived values are the same bits, and so are the ids that come next.
    assert_memory_equal(copy.bodies.inverse_inertia, model.bodies.inverse_inertia,
                        (size_t)model.bodies.count * 6 * sizeof(double));
    assert_int_equal(copy.rods.frame_count, model.rods.frame_count);
    assert_int_equal(copy.joints.coordinate_count, model.joints.coordinate_count);
    rw_id here, there;
    assert_int_equal(rw_model_add_joint(&model, &scene.joints[3], &here, NULL), RW_STATUS_OK);
    assert_int_equal(rw_model_add_joint(&copy, &scene.joints[3], &there, NULL), RW_STATUS_OK);
    assert_true(here == there);
    int32_t index;
    assert_int_equal(rw_model_find(&copy, RW_KIND_JOINT, RW_ID_NONE, "wrist", &index, NULL),
                     RW_STATUS_OK);
    assert_string_equal(rw_model_name(&copy, RW_KIND_JOINT, index), "wrist");
    rw_model_finish(&copy);
    rw_buffer_finish(&first);
    rw_buffer_finish(&second);
}

static uint64_t hash_of(const rw_model* of) {
    rw_hash hash;
    rw_hash_init(&hash);
    rw_scene_codec_hash(of, &hash);
    return rw_hash_value(&hash);
}

static void the_hash_follows_every_value_and_nothing_else(void** state) {
    (void)state;
    uint64_t before = hash_of(&model), calls = alloc.call_count;
    assert_true(hash_of(&model) == before);
    assert_int_equal(alloc.call_count, calls);
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &bytes), RW_STATUS_OK);
    rw_model copy;
    assert_int_equal(read_back(bytes.data, bytes.size_bytes, &copy, NULL), RW_STATUS_OK);
    assert_true(hash_of(&copy) == before);
    // Every change of a byte that is accepted as another model has another hash.
    int unseen = 0;
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        bytes.data[i] ^= 1;
        rw_model other;
        if (read_back(bytes.data, bytes.size_bytes, &other, NULL) == RW_STATUS_OK) {
            rw_buffer written;
            rw_buffer_init(&written, &alloc);
            assert_int_equal(rw_scene_codec_write(&other, &written), RW_STATUS_OK);
            bytes.data[i] ^= 1;
            bool same = written.size_bytes == bytes.size_bytes &&
                        memcmp(written.data, bytes.data, bytes.size_bytes) == 0;
            bytes.data[i] ^= 1;
            if (hash_of(&other) == before && !same) {
                unseen++;
            }
            rw_buffer_finish(&written);
        }
        rw_model_finish(&other);
        bytes.data[i] ^= 1;
    }
    assert_int_equal(unseen, 0);
    // The sign of a zero does not count.
    copy.bodies.items[0].desc.position[1] = -0.0;
    assert_true(hash_of(&copy) == before);
    copy.bodies.items[0].desc.position[1] = 1e-300;
    assert_true(hash_of(&copy) != before);
    rw_model_finish(&copy);
    rw_buffer_finish(&bytes);
}

static void bytes_may_lie_anywhere(void** state) {
    (void)state;
    rw_buffer plain, moved, again;
    rw_buffer_init(&plain, &alloc);
    rw_buffer_init(&moved, &alloc);
    rw_buffer_init(&again, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &plain), RW_STATUS_OK);
    for (size_t shift = 1; shift < 9; shift++) {
        moved.size_bytes = again.size_bytes = 0;
        assert_int_equal(rw_buffer_append(&moved, NULL, shift), RW_STATUS_OK);
        assert_int_equal(rw_scene_codec_write(&model, &moved), RW_STATUS_OK);
        assert_int_equal(moved.size_bytes, plain.size_bytes + shift);
        assert_memory_equal(moved.data + shift, plain.data, plain.size_bytes);
        rw_model copy;
        assert_int_equal(read_back(moved.data + shift, plain.size_bytes, &copy, NULL),
                         RW_STATUS_OK);
        assert_int_equal(rw_scene_codec_write(&copy, &again), RW_STATUS_OK);
        assert_int_equal(again.size_bytes, plain.size_bytes);
        assert_memory_equal(again.data, plain.data, plain.size_bytes);
        rw_model_finish(&copy);
    }
    rw_buffer_finish(&plain);
    rw_buffer_finish(&moved);
    rw_buffer_finish(&again);
}

static void every_shortened_snapshot_is_data_loss(void** state) {
    (void)state;
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &bytes), RW_STATUS_OK);
    for (size_t n = 0; n < bytes.size_bytes; n++) {
        rw_model copy;
        rw_error error = {0};
        assert_int_equal(read_back(bytes.data, n, &copy, &error), RW_STATUS_DATA_LOSS);
        assert_true(error.text[0] != '\0');
        rw_model_finish(&copy);
    }
    rw_buffer_finish(&bytes);
}

static void a_changed_byte_is_refused_or_gives_a_valid_model(void** state) {
    (void)state;
    rw_buffer bytes, again;
    rw_buffer_init(&bytes, &alloc);
    rw_buffer_init(&again, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &bytes), RW_STATUS_OK);
    int refused = 0;
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        unsigned char before = bytes.data[i];
        bytes.data[i] ^= (unsigned char)(1u << (i % 8));
        rw_model copy;
        rw_error error = {0};
        rw_status status = read_back(bytes.data, bytes.size_bytes, &copy, &error);
        if (status == RW_STATUS_OK) {
            // What was accepted can be written and read again.
            again.size_bytes = 0;
            assert_int_equal(rw_scene_codec_write(&copy, &again), RW_STATUS_OK);
        } else {
            assert_true(status == RW_STATUS_DATA_LOSS || status == RW_STATUS_RESOURCE_EXHAUSTED);
            refused++;
        }
        rw_model_finish(&copy);
        bytes.data[i] = before;
    }
    assert_true(refused > 500);
    rw_buffer_finish(&bytes);
    rw_buffer_finish(&again);
}

static void another_version_says_so(void** state) {
    (void)state;
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &bytes), RW_STATUS_OK);
    bytes.data[4] = 9;
    rw_model copy;
    rw_error error = {0};
    assert_int_equal(read_back(bytes.data, bytes.size_bytes, &copy, &error),
                     RW_STATUS_DATA_LOSS);
    assert_non_null(strstr(error.text, "another version"));
    rw_model_finish(&copy);
    rw_buffer_finish(&bytes);
}

static void reading_survives_every_failing_allocation(void** state) {
    (void)state;
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    assert_int_equal(rw_scene_codec_write(&model, &bytes), RW_STATUS_OK);
    int refused = 0;
    for (int64_t n = 1; n <= 150; n++) {
        rw_model copy;
        rw_error error = {0};
        rw_alloc_fail_after(n);
        rw_status status = read_back(bytes.data, bytes.size_bytes, &copy, &error);
        rw_alloc_fail_after(0);
        rw_model_finish(&copy);
        // The arena tries again with less, so not every failure is felt.
        if (status != RW_STATUS_OK && status != RW_STATUS_RESOURCE_EXHAUSTED) {
            fail_msg("allocation %d: %s", (int)n, error.text);
        }
        refused += status != RW_STATUS_OK;
    }
    assert_true(refused > 40 && refused < 150);
    rw_buffer_finish(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_read_model_writes_the_same_bytes, begin, end),
        cmocka_unit_test_setup_teardown(the_hash_follows_every_value_and_nothing_else, begin,
                                        end),
        cmocka_unit_test_setup_teardown(bytes_may_lie_anywhere, begin, end),
        cmocka_unit_test_setup_teardown(every_shortened_snapshot_is_data_loss, begin, end),
        cmocka_unit_test_setup_teardown(a_changed_byte_is_refused_or_gives_a_valid_model, begin,
                                        end),
        cmocka_unit_test_setup_teardown(another_version_says_so, begin, end),
        cmocka_unit_test_setup_teardown(reading_survives_every_failing_allocation, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
