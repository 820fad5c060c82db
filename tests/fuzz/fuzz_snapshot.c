// Fuzzes world snapshots behind their checksum: the input is what follows the head, which is made
// here to fit. What is accepted must have one hash, also after another round, and must step or fault.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/base/hash.h"
#include "solvers/world/world.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void add_head(rw_buffer* bytes, const uint8_t* data, size_t size) {
    uint32_t words[2] = {1, rw_hash_crc32c(0, data, size)};
    uint64_t rest_bytes = size;
    RW_CHECK(rw_buffer_append(bytes, "RWSNAPSH", 8) == RW_STATUS_OK);
    RW_CHECK(rw_buffer_append(bytes, words, sizeof words) == RW_STATUS_OK);
    RW_CHECK(rw_buffer_append(bytes, &rest_bytes, sizeof rest_bytes) == RW_STATUS_OK);
    RW_CHECK(rw_buffer_append(bytes, data, size) == RW_STATUS_OK);
}

// Steps once where that is little work.
static void step(rw_world* world) {
    const rw_model* model = rw_world_model(world);
    bool cheap = (uint64_t)model->substeps * model->solver.scr.iterations < 100 &&
                 (uint64_t)model->substeps * model->solver.xpbd.iterations < 100 &&
                 model->solver.dae.integrator != RW_INTEGRATOR_RK45 &&
                 model->solver.dae.integrator != RW_INTEGRATOR_BDF;
    if (cheap) {
        rw_error error = {0};
        rw_status status = rw_world_step(world, &error);
        RW_CHECK(status == RW_STATUS_OK || error.text[0] != '\0');
    }
}

static void check_world(rw_world* world, const rw_world_config* config, rw_buffer* bytes) {
    uint64_t first, second;
    RW_CHECK(rw_world_hash(world, &first, NULL) == RW_STATUS_OK);
    bytes->size_bytes = 0;
    RW_CHECK(rw_world_snapshot(world, bytes, NULL) == RW_STATUS_OK);
    rw_world* again = NULL;
    rw_error error = {0};
    RW_CHECK(rw_world_create_from_snapshot(config, bytes->data, bytes->size_bytes, &again,
                                           &error) == RW_STATUS_OK);
    RW_CHECK(rw_world_hash(again, &second, NULL) == RW_STATUS_OK);
    RW_CHECK(first == second);
    step(world);
    step(again);
    RW_CHECK(rw_world_is_faulted(world) == rw_world_is_faulted(again));
    if (rw_world_hash(world, &first, NULL) == RW_STATUS_OK &&
        rw_world_hash(again, &second, NULL) == RW_STATUS_OK) {
        RW_CHECK(first == second);
    }
    rw_world_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    rw_alloc alloc;
    rw_alloc_init(&alloc, (size_t)128 << 20);
    rw_world_config config = {.alloc = &alloc};
    rw_buffer bytes;
    rw_buffer_init(&bytes, &alloc);
    add_head(&bytes, data, size);
    rw_world* world = NULL;
    rw_error error = {0};
    rw_status status = rw_world_create_from_snapshot(&config, bytes.data, bytes.size_bytes, &world,
                                                     &error);
    if (status == RW_STATUS_OK) {
        check_world(world, &config, &bytes);
        rw_world_destroy(world);
    } else {
        RW_CHECK(world == NULL && error.text[0] != '\0');
    }
    rw_buffer_finish(&bytes);
    rw_alloc_finish(&alloc);
    return 0;
}
