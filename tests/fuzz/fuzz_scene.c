// Fuzzes the way of a scene: bytes -> message -> descriptions -> model -> message -> bytes. Whatever
// comes is answered; what a model accepts must come back as the same scene.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/message.h"
#include "server/dispatch/scene_from_message.h"
#include "server/dispatch/scene_to_message.h"
#include "solvers/base/check.h"
#include "solvers/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Loads `bytes` into `model`; on success writes the scene that the model describes to `out`.
static rw_status load(const void* bytes, size_t size, rw_model* model, rw_arena* arena,
                      rw_buffer* out, rw_error* error) {
    static rw_pb_Scene message; // large
    rw_scene scene;
    RW_TRY(rw_message_decode_scene(bytes, size, arena, &message, error));
    RW_TRY(rw_scene_from_message(&message, NULL, arena, &scene, error));
    RW_TRY(rw_model_load(model, &scene, error));
    RW_TRY(rw_model_describe(model, arena, &scene, error));
    RW_TRY(rw_scene_to_message(&scene, NULL, arena, &message, error));
    return rw_message_append_scene(out, &message);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, (size_t)256 << 20);
    rw_arena arena;
    rw_arena_init(&arena, &alloc);
    rw_model model, again;
    rw_model_init(&model, &alloc);
    rw_model_init(&again, &alloc);
    rw_buffer first, second;
    rw_buffer_init(&first, &alloc);
    rw_buffer_init(&second, &alloc);
    rw_error error = {0};
    if (load(data, size, &model, &arena, &first, &error) == RW_STATUS_OK) {
        RW_CHECK(load(first.data, first.size_bytes, &again, &arena, &second, &error) ==
                 RW_STATUS_OK);
        RW_CHECK(first.size_bytes == second.size_bytes);
        RW_CHECK(memcmp(first.data, second.data, first.size_bytes) == 0);
    } else {
        RW_CHECK(error.text[0] != '\0');
    }
    rw_buffer_finish(&first);
    rw_buffer_finish(&second);
    rw_model_finish(&model);
    rw_model_finish(&again);
    rw_arena_finish(&arena);
    rw_alloc_finish(&alloc);
    return 0;
}
