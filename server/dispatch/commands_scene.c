// Whole scenes and single objects: LoadScene, GetScene, Create*, Remove*, SetSolver.
#include <string.h>

#include "proto/wire.h"
#include "server/dispatch/commands.h"
#include "server/dispatch/handles.h"
#include "server/dispatch/scene_from_message.h"
#include "server/dispatch/scene_to_message.h"
#include "server/session/host.h"
#include "solvers/model/kinematics.h"

// ---- Blobs that a message names: held until the description was used ----

typedef struct held_blobs {
    rw_blob_store* store;
    rw_arena* arena;
    rw_blob** items;
    int32_t count, capacity;
} held_blobs;

static rw_status find_blob(void* context, uint64_t id, const void** bytes, uint64_t* size,
                           rw_error* error) {
    held_blobs* held = context;
    if (held->count == held->capacity) {
        int32_t capacity = held->capacity > 0 ? 2 * held->capacity : 8;
        rw_blob** items = rw_arena_array(held->arena, (size_t)capacity, sizeof(rw_blob*));
        if (items == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
        }
        if (held->count > 0) {
            memcpy(items, held->items, (size_t)held->count * sizeof(rw_blob*));
        }
        held->items = items;
        held->capacity = capacity;
    }
    rw_blob* blob;
    RW_TRY(rw_blob_store_find(held->store, id, &blob, error));
    held->items[held->count++] = blob;
    *bytes = blob->bytes;
    *size = blob->size_bytes;
    return RW_STATUS_OK;
}

static void release_blobs(held_blobs* held) {
    for (int32_t i = 0; i < held->count; i++) {
        rw_blob_store_release(held->store, held->items[i]);
    }
}

// ---- LoadScene ----

static rw_status make_world(rw_command* command, rw_world** world) {
    held_blobs held = {.store = command->client->blobs, .arena = command->arena};
    rw_scene_from_message_blobs blobs = {.find = find_blob, .context = &held};
    rw_world_config config = rw_session_world_config(command->session);
    rw_scene scene;
    *world = NULL;
    rw_status status =
        rw_scene_from_message(&command->request->command.load_scene.scene, &blobs, command->arena,
                              &scene, command->error);
    if (status == RW_STATUS_OK) {
        status = rw_world_create_from_scene(&config, &scene, world, command->error);
    }
    release_blobs(&held);
    if (status == RW_STATUS_OK) {
        status = rw_world_prepare(*world, command->error);
    }
    if (status != RW_STATUS_OK) {
        rw_world_destroy(*world);
    }
    return status;
}

// The ids of one kind, copied into the arena. NULL when it is exhausted.
#define IDS(command, list)                                                                         \
    copy_ids((command), (list).count, (list).count > 0 ? &(list).items[0].id : NULL,               \
             sizeof *(list).items)

static uint64_t* copy_ids(rw_command* command, int32_t count, const rw_id* first, size_t stride) {
    uint64_t* ids = rw_arena_array(command->arena, (size_t)count + 1, sizeof(uint64_t));
    for (int32_t i = 0; ids != NULL && i < count; i++) {
        memcpy(&ids[i], (const char*)first + (size_t)i * stride, sizeof ids[i]);
    }
    return ids;
}

static rw_status fill_ids(rw_command* command, const rw_model* model,
                          rw_pb_LoadSceneResult* result) {
    const uint64_t* bodies = IDS(command, model->bodies);
    const uint64_t* joints = IDS(command, model->joints);
    const uint64_t* couplings = IDS(command, model->couplings);
    const uint64_t* rods = IDS(command, model->rods);
    const uint64_t* attachments = IDS(command, model->attachments);
    const uint64_t* forces = IDS(command, model->forces);
    const uint64_t* inputs = IDS(command, model->inputs);
    if (bodies == NULL || joints == NULL || couplings == NULL || rods == NULL ||
        attachments == NULL || forces == NULL || inputs == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    result->bodies = rw_wire_from_u64(bodies, (size_t)model->bodies.count);
    result->joints = rw_wire_from_u64(joints, (size_t)model->joints.count);
    result->couplings = rw_wire_from_u64(couplings, (size_t)model->couplings.count);
    result->rods = rw_wire_from_u64(rods, (size_t)model->rods.count);
    result->attachments = rw_wire_from_u64(attachments, (size_t)model->attachments.count);
    result->forces = rw_wire_from_u64(forces, (size_t)model->forces.count);
    result->inputs = rw_wire_from_u64(inputs, (size_t)model->inputs.count);
    return RW_STATUS_OK;
}

rw_status rw_commands_scene_load(rw_command* command) {
    rw_world* world;
    uint64_t epoch = rw_world_epoch(command->world);
    RW_TRY(make_world(command, &world));
    command->response->which_result = rw_pb_Response_load_scene_tag;
    rw_status status =
        fill_ids(command, rw_world_model(world), &command->response->result.load_scene);
    if (status != RW_STATUS_OK) {
        rw_world_destroy(world);
        return status;
    }
    rw_world_begin_epoch(world, epoch + 1);
    rw_session_replace_world(command->session, world);
    command->world = world;
    return RW_STATUS_OK;
}

// ---- GetScene ----

// Writes the present motion of the bodies into copies of their descriptions.
static rw_status put_state(rw_command* command, rw_scene* scene) {
    static const double ORIGIN[3];
    const rw_model* model = rw_world_model(command->world);
    const rw_state* state = rw_world_state(command->world);
    if (model->rods.count > 0) {
        RW_FAIL(command->error, UNIMPLEMENTED, "current_state",
                "this build does not write the shape of rods; Snapshot keeps all of it");
    }
    rw_body_desc* bodies =
        rw_arena_array(command->arena, scene->body_count + 1, sizeof(rw_body_desc));
    if (bodies == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    for (size_t i = 0; i < scene->body_count; i++) {
        int32_t index = (int32_t)i;
        bodies[i] = scene->bodies[i];
        rw_kinematics_point(model, state, index, ORIGIN, bodies[i].position);
        rw_kinematics_point_velocity(model, state, index, ORIGIN, bodies[i].linear_velocity);
        memcpy(bodies[i].rotation, &state->body_rotation[4 * i], sizeof bodies[i].rotation);
        memcpy(bodies[i].angular_velocity, &state->body_angular_velocity[3 * i],
               sizeof bodies[i].angular_velocity);
    }
    scene->bodies = bodies;
    return RW_STATUS_OK;
}

rw_status rw_commands_scene_get(rw_command* command) {
    rw_scene* scene = rw_arena_get(command->arena, sizeof *scene);
    if (scene == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    RW_TRY(rw_world_describe(command->world, command->arena, scene, command->error));
    if (command->request->command.get_scene.current_state) {
        RW_TRY(put_state(command, scene));
    }
    command->response->which_result = rw_pb_Response_get_scene_tag;
    command->response->result.get_scene.has_scene = true;
    return rw_scene_to_message(scene, rw_world_model(command->world), command->arena,
                               &command->response->result.get_scene.scene, command->error);
}

// ---- Create* ----

static rw_status create_object(rw_command* command, const rw_scene_from_message_blobs* blobs,
                               rw_id* id) {
    const rw_pb_Request* request = command->request;
    rw_world* world = command->world;
    rw_arena* arena = command->arena;
    rw_error* error = command->error;
    switch (request->which_command) {
    case rw_pb_Request_create_body_tag: {
        rw_body_desc desc;
        RW_TRY(rw_scene_from_message_body(&request->command.create_body.body, blobs, arena, &desc,
                                          error));
        return rw_world_create_body(world, &desc, id, error);
    }
    case rw_pb_Request_create_joint_tag: {
        rw_joint_desc desc;
        RW_TRY(rw_scene_from_message_joint(&request->command.create_joint.joint, &desc, error));
        return rw_world_create_joint(world, &desc, id, error);
    }
    case rw_pb_Request_create_coupling_tag: {
        rw_coupling_desc desc;
        RW_TRY(rw_scene_from_message_coupling(&request->command.create_coupling.coupling, &desc,
                                              error));
        return rw_world_create_coupling(world, &desc, id, error);
    }
    case rw_pb_Request_create_rod_tag: {
        rw_rod_desc* desc = rw_arena_get(arena, sizeof *desc);
        if (desc == NULL) {
            RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
        }
        RW_TRY(rw_scene_from_message_rod(&request->command.create_rod.rod, blobs, arena, desc,
                                         error));
        return rw_world_create_rod(world, desc, id, error);
    }
    case rw_pb_Request_create_attachment_tag: {
        rw_attachment_desc desc;
        RW_TRY(rw_scene_from_message_attachment(&request->command.create_attachment.attachment,
                                                &desc, error));
        return rw_world_create_attachment(world, &desc, id, error);
    }
    case rw_pb_Request_create_force_tag: {
        rw_force_desc desc;
        RW_TRY(rw_scene_from_message_force(&request->command.create_force.force, &desc, error));
        return rw_world_create_force(world, &desc, id, error);
    }
    case rw_pb_Request_create_input_tag: {
        rw_input_desc desc;
        RW_TRY(rw_scene_from_message_input(&request->command.create_input.input, arena, &desc,
                                           error));
        return rw_world_create_input(world, &desc, id, error);
    }
    default: RW_FAIL(error, INTERNAL, "", "no such kind");
    }
}

rw_status rw_commands_scene_create(rw_command* command) {
    held_blobs held = {.store = command->client->blobs, .arena = command->arena};
    rw_scene_from_message_blobs blobs = {.find = find_blob, .context = &held};
    command->response->which_result = rw_pb_Response_create_tag;
    rw_status status = create_object(command, &blobs, &command->response->result.create.id);
    release_blobs(&held);
    return status;
}

// ---- Remove* ----

// An object as the answer lists it.
typedef struct object {
    rw_kind kind;
    rw_id id;
    char name[RW_NAME_CAPACITY];
} object;

static const rw_pb_ObjectRef_Kind WIRE_KINDS[RW_KIND_COUNT] = {
    [RW_KIND_BODY] = rw_pb_ObjectRef_Kind_BODY,
    [RW_KIND_JOINT] = rw_pb_ObjectRef_Kind_JOINT,
    [RW_KIND_COUPLING] = rw_pb_ObjectRef_Kind_COUPLING,
    [RW_KIND_ROD] = rw_pb_ObjectRef_Kind_ROD,
    [RW_KIND_ATTACHMENT] = rw_pb_ObjectRef_Kind_ATTACHMENT,
    [RW_KIND_FORCE] = rw_pb_ObjectRef_Kind_FORCE,
    [RW_KIND_INPUT] = rw_pb_ObjectRef_Kind_INPUT,
};

static int32_t kind_count(const rw_model* model, rw_kind kind) {
    switch (kind) {
    case RW_KIND_BODY: return model->bodies.count;
    case RW_KIND_JOINT: return model->joints.count;
    case RW_KIND_COUPLING: return model->couplings.count;
    case RW_KIND_ROD: return model->rods.count;
    case RW_KIND_ATTACHMENT: return model->attachments.count;
    case RW_KIND_FORCE: return model->forces.count;
    case RW_KIND_INPUT: return model->inputs.count;
    case RW_KIND_COUNT: break;
    }
    return 0;
}

static void read_object(const rw_model* model, rw_kind kind, int32_t index, object* out) {
    const char* name = "";
    out->kind = kind;
    switch (kind) {
#define RW_CASE(KIND, list)                                                                        \
    case KIND:                                                                                     \
        out->id = model->list.items[index].id;                                                     \
        name = model->list.items[index].desc.name;                                                 \
        break
        RW_CASE(RW_KIND_BODY, bodies);
        RW_CASE(RW_KIND_JOINT, joints);
        RW_CASE(RW_KIND_COUPLING, couplings);
        RW_CASE(RW_KIND_ROD, rods);
        RW_CASE(RW_KIND_ATTACHMENT, attachments);
        RW_CASE(RW_KIND_FORCE, forces);
        RW_CASE(RW_KIND_INPUT, inputs);
#undef RW_CASE
    case RW_KIND_COUNT: break;
    }
    memcpy(out->name, name, strlen(name) + 1);
}

// Lists what could go with the object: all of the world when it cascades. The object comes last.
static rw_status list_objects(rw_command* command, const object* named, bool cascade,
                              object** list, size_t* count) {
    const rw_model* model = rw_world_model(command->world);
    size_t most = 1;
    for (int kind = 0; cascade && kind < RW_KIND_COUNT; kind++) {
        most += (size_t)kind_count(model, (rw_kind)kind);
    }
    *list = rw_arena_array(command->arena, most, sizeof(object));
    if (*list == NULL) {
        RW_FAIL(command->error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    *count = 0;
    for (int kind = 0; cascade && kind < RW_KIND_COUNT; kind++) {
        for (int32_t i = 0; i < kind_count(model, (rw_kind)kind); i++) {
            object one;
            read_object(model, (rw_kind)kind, i, &one);
            if (one.kind != named->kind || one.id != named->id) {
                (*list)[(*count)++] = one;
            }
        }
    }
    (*list)[(*count)++] = *named;
    return RW_STATUS_OK;
}

static bool fill_removed(void* context, uint32_t index, void* item) {
    const object* one = (const object*)context + index;
    rw_pb_ObjectRef* reference = item;
    reference->kind = WIRE_KINDS[one->kind];
    reference->id = one->id;
    memcpy(reference->name, one->name, sizeof one->name);
    return true;
}

static rw_kind kind_of(pb_size_t tag) {
    switch (tag) {
    case rw_pb_Request_remove_joint_tag: return RW_KIND_JOINT;
    case rw_pb_Request_remove_coupling_tag: return RW_KIND_COUPLING;
    case rw_pb_Request_remove_rod_tag: return RW_KIND_ROD;
    case rw_pb_Request_remove_attachment_tag: return RW_KIND_ATTACHMENT;
    case rw_pb_Request_remove_force_tag: return RW_KIND_FORCE;
    case rw_pb_Request_remove_input_tag: return RW_KIND_INPUT;
    default: return RW_KIND_BODY;
    }
}

rw_status rw_commands_scene_remove(rw_command* command) {
    // All Remove* share one message type, so one member of the union stands for all.
    const rw_pb_Remove* remove = &command->request->command.remove_body;
    rw_kind kind = kind_of(command->request->which_command);
    int32_t index;
    RW_TRY(rw_commands_set_find(command, kind, &remove->object, remove->has_object, "object",
                                &index));
    object named;
    object* list;
    size_t count = 0;
    read_object(rw_world_model(command->world), kind, index, &named);
    RW_TRY(list_objects(command, &named, remove->cascade, &list, &count));
    RW_TRY(rw_world_remove(command->world, kind, index, remove->cascade, command->error));

    size_t gone = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t unused;
        rw_error ignored;
        if (rw_world_find(command->world, list[i].kind, list[i].id, "", &unused, &ignored) !=
            RW_STATUS_OK) {
            list[gone++] = list[i];
        }
    }
    command->response->which_result = rw_pb_Response_remove_tag;
    command->response->result.remove.removed =
        rw_wire_from_fill(fill_removed, list, sizeof(rw_pb_ObjectRef), gone);
    return RW_STATUS_OK;
}

// ---- SetSolver ----

rw_status rw_commands_scene_set_solver(rw_command* command) {
    const rw_pb_SetSolver* given = &command->request->command.set_solver;
    rw_world_set set = {.has_solver = true, .solver = rw_world_model(command->world)->solver};
    if (!given->has_solver) {
        RW_FAIL(command->error, INVALID_ARGUMENT, "solver", "must be given");
    }
    RW_TRY(rw_scene_from_message_solver(&given->solver, &set.solver, command->error));
    return rw_world_set_options(command->world, &set, command->error);
}
