// Fuzzes the model part of a snapshot: whatever the bytes hold, reading answers, and what it accepts
// must be written and read again to the same bytes.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/scene_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, (size_t)64 << 20);
    rw_model model, again;
    rw_model_init(&model, &alloc);
    rw_model_init(&again, &alloc);
    rw_buffer first, second;
    rw_buffer_init(&first, &alloc);
    rw_buffer_init(&second, &alloc);

    const unsigned char* at = data;
    rw_error error = {0};
    rw_status status = rw_scene_codec_read(&model, &at, data + size, &error);
    RW_CHECK(at <= data + size);
    if (status == RW_STATUS_OK) {
        RW_CHECK(rw_scene_codec_write(&model, &first) == RW_STATUS_OK);
        const unsigned char* from = first.data;
        RW_CHECK(rw_scene_codec_read(&again, &from, first.data + first.size_bytes, NULL) ==
                 RW_STATUS_OK);
        RW_CHECK(rw_scene_codec_write(&again, &second) == RW_STATUS_OK);
        RW_CHECK(first.size_bytes == second.size_bytes);
        RW_CHECK(memcmp(first.data, second.data, first.size_bytes) == 0);
    } else {
        RW_CHECK(status == RW_STATUS_DATA_LOSS || status == RW_STATUS_RESOURCE_EXHAUSTED);
        RW_CHECK(error.text[0] != '\0');
    }
    rw_buffer_finish(&first);
    rw_buffer_finish(&second);
    rw_model_finish(&model);
    rw_model_finish(&again);
    rw_alloc_finish(&alloc);
    return 0;
}
