// Snapshots and the state hash.
//
//   "RWSNAPSH" | version u32 | crc32c u32 of the rest | bytes u64 of the rest
//   rest: clock (step, step_base, epoch: i64; time_base: f64; needs_assembly: u64)
//         model (scene_codec: what exists, ids, resolved targets, wrenches)
//         motion (field list of state.h)
//         private state of the rigid solver, then of the rod solver (their field lists)
//
// Little-endian, doubles bit for bit.
#include <string.h>

#include "solvers/model/scene_codec.h"
#include "solvers/world/world_private.h"

#define SNAPSHOT_VERSION 1u
#define SOLVER_COUNT 2 // rigid, rods

static const char snapshot_magic[8] = {'R', 'W', 'S', 'N', 'A', 'P', 'S', 'H'};

typedef struct snapshot_head {
    char magic[8];
    uint32_t version;
    uint32_t crc;
    uint64_t rest_bytes;
} snapshot_head;

typedef struct snapshot_clock {
    int64_t step, step_base;
    uint64_t epoch;
    double time_base_s;
    uint64_t needs_assembly; // 0 or 1
} snapshot_clock;

static rw_solver_fields fields_of(const rw_world* world, int which) {
    const rw_solver* solver = which == 0 ? &world->solvers.rigid : &world->solvers.rods;
    return solver->vtable->fields(solver->self);
}

static rw_status write_rest(rw_world* world, rw_buffer* bytes) {
    const snapshot_clock clock = {world->step, world->step_base, world->epoch,
                                  world->time_base_s, world->needs_assembly ? 1u : 0u};
    RW_TRY(rw_buffer_append(bytes, &clock, sizeof clock));
    RW_TRY(rw_scene_codec_write(&world->model, bytes));
    RW_TRY(rw_field_write(rw_state_fields(), &world->state[world->good], world->counts, bytes));
    for (int i = 0; i < SOLVER_COUNT; i++) {
        rw_solver_fields fields = fields_of(world, i);
        RW_TRY(rw_field_write(fields.list, fields.state, fields.counts, bytes));
    }
    return RW_STATUS_OK;
}

rw_status rw_world_snapshot(rw_world* world, rw_buffer* bytes, rw_error* error) {
    RW_TRY(rw_world_prepare(world, error));
    size_t start = bytes->size_bytes;
    snapshot_head head = {.version = SNAPSHOT_VERSION};
    memcpy(head.magic, snapshot_magic, sizeof head.magic);
    rw_status status = rw_buffer_append(bytes, &head, sizeof head);
    if (status == RW_STATUS_OK) {
        status = write_rest(world, bytes);
    }
    if (status != RW_STATUS_OK) {
        bytes->size_bytes = start;
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "no memory for a snapshot");
    }
    head.rest_bytes = bytes->size_bytes - start - sizeof head;
    head.crc = rw_hash_crc32c(0, bytes->data + start + sizeof head, head.rest_bytes);
    memcpy(bytes->data + start, &head, sizeof head);
    return RW_STATUS_OK;
}

// The solvers are asked as when the objects were created: bytes from strangers get no further.
static rw_status admit_objects(const rw_world* world, rw_error* error) {
    const rw_model* model = &world->model;
    const rw_solver* rigid = &world->solvers.rigid;
    const rw_solver* rods = &world->solvers.rods;
    for (int32_t i = 0; i < model->joints.count; i++) {
        RW_TRY(rigid->vtable->admit_joint(rigid->self, &model->joints.items[i].desc, error));
    }
    for (int32_t i = 0; i < model->rods.count; i++) {
        const rw_rod* rod = &model->rods.items[i];
        int32_t frame_count, element_count;
        RW_TRY(rods->vtable->admit_rod(rods->self, &rod->desc, &frame_count, &element_count,
                                       error));
        if (frame_count != rod->frame_count || element_count != rod->element_count) {
            RW_FAIL(error, DATA_LOSS, "", "rod '%s' has another layout in the snapshot",
                    rod->desc.name);
        }
    }
    for (int32_t i = 0; rods->vtable->admit_attachment != NULL && i < model->attachments.count;
         i++) {
        RW_TRY(rods->vtable->admit_attachment(rods->self, &model->attachments.items[i].desc,
                                              error));
    }
    return RW_STATUS_OK;
}

static rw_status read_rest(rw_world* world, const unsigned char* at, const unsigned char* end,
                           rw_error* error) {
    snapshot_clock clock;
    if ((size_t)(end - at) < sizeof clock) {
        RW_FAIL(error, DATA_LOSS, "", "the snapshot ends before its clock");
    }
    memcpy(&clock, at, sizeof clock);
    at += sizeof clock;
    if (clock.step < 0 || clock.step > INT64_MAX / 2 || clock.step_base < 0 ||
        clock.step_base > clock.step ||
        !(clock.time_base_s >= 0 && clock.time_base_s < 1e300)) {
        RW_FAIL(error, DATA_LOSS, "", "the snapshot's clock makes no sense");
    }
    world->step = clock.step;
    world->step_base = clock.step_base;
    world->time_base_s = clock.time_base_s;
    world->epoch = clock.epoch;
    world->needs_assembly = clock.needs_assembly != 0;

    rw_model* model = &world->model;
    RW_TRY(rw_scene_codec_read(model, &at, end, error));
    RW_TRY(rw_world_private_make_solvers(world, error));
    RW_TRY(admit_objects(world, error));
    const int64_t counts[RW_DOMAIN_COUNT] = {
        [RW_DOMAIN_BODY] = model->bodies.count,
        [RW_DOMAIN_NODE] = model->rods.node_count,
        [RW_DOMAIN_FRAME] = model->rods.frame_count,
    };
    for (int domain = 0; domain < RW_DOMAIN_COUNT; domain++) {
        RW_TRY(rw_world_private_reserve_rows(world, (rw_domain)domain, counts[domain], error));
        world->counts[domain] = counts[domain];
    }
    const rw_state* state = &world->state[world->good];
    RW_TRY(rw_field_read(rw_state_fields(), &world->state[world->good], counts, &at, end, error));
    const char* field;
    int64_t row;
    if (!rw_field_is_finite(rw_state_fields(), state, counts, &field, &row)) {
        RW_FAIL(error, DATA_LOSS, "", "%s of row %lld is not finite", field, (long long)row);
    }
    RW_TRY(rw_world_prepare(world, error));
    for (int i = 0; i < SOLVER_COUNT; i++) {
        rw_solver_fields fields = fields_of(world, i);
        RW_TRY(rw_field_read(fields.list, fields.state, fields.counts, &at, end, error));
        if (!rw_field_is_finite(fields.list, fields.state, fields.counts, &field, &row)) {
            RW_FAIL(error, DATA_LOSS, "", "%s of row %lld is not finite", field, (long long)row);
        }
    }
    if (at != end) {
        RW_FAIL(error, DATA_LOSS, "", "%zu bytes too many in the snapshot", (size_t)(end - at));
    }
    return RW_STATUS_OK;
}

rw_status rw_world_create_from_snapshot(const rw_world_config* config, const void* bytes,
                                        size_t count, rw_world** world, rw_error* error) {
    snapshot_head head;
    if (count < sizeof head) {
        RW_FAIL(error, DATA_LOSS, "", "%zu bytes are no snapshot", count);
    }
    memcpy(&head, bytes, sizeof head);
    const unsigned char* rest = (const unsigned char*)bytes + sizeof head;
    if (memcmp(head.magic, snapshot_magic, sizeof head.magic) != 0) {
        RW_FAIL(error, DATA_LOSS, "", "the bytes are no snapshot");
    }
    if (head.version != SNAPSHOT_VERSION) {
        RW_FAIL(error, DATA_LOSS, "", "snapshot version %u, this server reads %u", head.version,
                SNAPSHOT_VERSION);
    }
    if (head.rest_bytes != count - sizeof head ||
        rw_hash_crc32c(0, rest, count - sizeof head) != head.crc) {
        RW_FAIL(error, DATA_LOSS, "", "the snapshot is damaged: length or checksum differ");
    }
    rw_world* made = rw_world_private_new(config, error);
    if (made == NULL) {
        return RW_STATUS_RESOURCE_EXHAUSTED;
    }
    rw_status status = read_rest(made, rest, rest + head.rest_bytes, error);
    if (status != RW_STATUS_OK) {
        rw_world_destroy(made);
        return status;
    }
    *world = made;
    return RW_STATUS_OK;
}

rw_status rw_world_hash(rw_world* world, uint64_t* value, rw_error* error) {
    RW_TRY(rw_world_prepare(world, error)); // private state is laid out by it
    rw_hash hash;
    rw_hash_init(&hash);
    rw_hash_word(&hash, (uint64_t)world->step);
    const double now = rw_world_time(world);
    rw_hash_doubles(&hash, &now, 1);
    rw_scene_codec_hash(&world->model, &hash);
    rw_field_hash(rw_state_fields(), &world->state[world->good], world->counts, &hash);
    for (int i = 0; i < SOLVER_COUNT; i++) {
        rw_solver_fields fields = fields_of(world, i);
        rw_field_hash(fields.list, fields.state, fields.counts, &hash);
    }
    *value = rw_hash_value(&hash);
    return RW_STATUS_OK;
}
