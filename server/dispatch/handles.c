#include "server/dispatch/handles.h"

#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/bounds.h"
#include "solvers/model/validate.h"
#include "solvers/base/glob.h"

struct rw_handles {
    rw_alloc* alloc;
    pthread_mutex_t lock; // guards the table for rw_handles_width; the actor writes under it
    rw_id_pool ids;
    rw_handle** items;
    int32_t count, capacity;
    rw_world* world; // the one whose signals are held; to release them
};

rw_handles* rw_handles_create(rw_alloc* alloc) {
    rw_handles* handles = rw_alloc_get(alloc, sizeof *handles);
    if (handles != NULL) {
        handles->alloc = alloc;
        pthread_mutex_init(&handles->lock, NULL);
        rw_id_pool_init(&handles->ids, alloc);
    }
    return handles;
}

static void free_handle(rw_handles* handles, rw_handle* handle) {
    if (handle->signals.items != NULL) {
        rw_world_release_signals(handles->world, &handle->signals);
    }
    rw_alloc_free(handles->alloc, handle->entries);
    rw_alloc_free(handles->alloc, handle);
}

void rw_handles_clear(rw_handles* handles) {
    if (handles == NULL) {
        return;
    }
    pthread_mutex_lock(&handles->lock);
    for (int32_t i = 0; i < handles->count; i++) {
        rw_id_pool_remove(&handles->ids, handles->items[i]->id);
        free_handle(handles, handles->items[i]);
    }
    handles->count = 0;
    pthread_mutex_unlock(&handles->lock);
}

void rw_handles_destroy(rw_handles* handles) {
    if (handles == NULL) {
        return;
    }
    rw_handles_clear(handles);
    rw_alloc_free(handles->alloc, handles->items);
    rw_id_pool_finish(&handles->ids);
    pthread_mutex_destroy(&handles->lock);
    rw_alloc_free(handles->alloc, handles);
}

// ---- The table ----

// Takes the handle over; frees it on failure.
static rw_status add_handle(rw_handles* handles, rw_handle* handle, rw_error* error) {
    pthread_mutex_lock(&handles->lock);
    bool fits = true;
    if (handles->count == handles->capacity) {
        int32_t capacity = handles->capacity > 0 ? 2 * handles->capacity : 4;
        rw_handle** items = rw_alloc_resize(handles->alloc, handles->items,
                                            (size_t)capacity * sizeof(rw_handle*));
        fits = items != NULL;
        if (fits) {
            handles->items = items;
            handles->capacity = capacity;
        }
    }
    handle->id = fits ? rw_id_pool_add(&handles->ids, handles->count) : RW_ID_NONE;
    if (handle->id != RW_ID_NONE) {
        handles->items[handles->count++] = handle;
    }
    pthread_mutex_unlock(&handles->lock);
    if (handle->id == RW_ID_NONE) {
        free_handle(handles, handle);
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    return RW_STATUS_OK;
}

static void remove_at(rw_handles* handles, int32_t index) {
    pthread_mutex_lock(&handles->lock);
    rw_handle* handle = handles->items[index];
    rw_id_pool_remove(&handles->ids, handle->id);
    handles->count--;
    if (index < handles->count) {
        handles->items[index] = handles->items[handles->count];
        rw_id_pool_move(&handles->ids, handles->items[index]->id, index);
    }
    pthread_mutex_unlock(&handles->lock);
    free_handle(handles, handle);
}

rw_status rw_handles_find(rw_handles* handles, const rw_world* world, uint64_t id, bool is_actuate,
                          const char* path, rw_handle** handle, rw_error* error) {
    int32_t index = rw_id_pool_find(&handles->ids, id);
    if (index < 0 || handles->items[index]->is_actuate != is_actuate) {
        RW_FAIL(error, NOT_FOUND, path, "no handle %llu of %s", (unsigned long long)id,
                is_actuate ? "Actuate" : "Observe");
    }
    *handle = handles->items[index];
    if ((*handle)->topology_revision != rw_world_model(world)->topology_revision) {
        remove_at(handles, index);
        RW_FAIL(error, NOT_FOUND, path, "handle %llu ended: objects came or went since",
                (unsigned long long)id);
    }
    return RW_STATUS_OK;
}

void rw_handles_release_all(rw_handles* handles, uint64_t owner) {
    for (int32_t i = handles->count - 1; i >= 0; i--) {
        if (handles->items[i]->owner == owner) {
            remove_at(handles, i);
        }
    }
}

// Those of an earlier topology serve nobody any more; they go when new ones are asked for.
static void sweep(rw_handles* handles, const rw_world* world) {
    uint64_t topology = rw_world_model(world)->topology_revision;
    for (int32_t i = handles->count - 1; i >= 0; i--) {
        if (handles->items[i]->topology_revision != topology) {
            remove_at(handles, i);
        }
    }
}

rw_status rw_handles_release(rw_handles* handles, uint64_t id, uint64_t owner, rw_error* error) {
    int32_t index = rw_id_pool_find(&handles->ids, id);
    if (index < 0 || handles->items[index]->owner != owner) {
        RW_FAIL(error, NOT_FOUND, "handle", "no handle %llu", (unsigned long long)id);
    }
    remove_at(handles, index);
    return RW_STATUS_OK;
}

int32_t rw_handles_width(rw_handles* handles, uint64_t id) {
    pthread_mutex_lock(&handles->lock);
    int32_t index = rw_id_pool_find(&handles->ids, id);
    int32_t width = index >= 0 ? handles->items[index]->width : -1;
    pthread_mutex_unlock(&handles->lock);
    return width;
}

rw_status rw_handles_observe(rw_handles* handles, rw_world* world, uint64_t owner,
                             const char* const* globs, size_t count, rw_handle** out,
                             rw_error* error) {
    sweep(handles, world);
    rw_handle* handle = rw_alloc_get(handles->alloc, sizeof *handle);
    if (handle == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    handle->owner = owner;
    handles->world = world;
    rw_status status = rw_world_resolve_signals(world, globs, count, &handle->signals, error);
    if (status != RW_STATUS_OK) {
        rw_alloc_free(handles->alloc, handle);
        return status;
    }
    handle->topology_revision = handle->signals.topology_revision;
    handle->width = handle->signals.width;
    RW_TRY(add_handle(handles, handle, error));
    *out = handle;
    return RW_STATUS_OK;
}

// ---- Actuate ----

static bool add_entry(rw_handles* handles, rw_handle* handle, rw_handles_input input,
                      int32_t object, int32_t width) {
    if (handle->entry_count == handle->entry_capacity) {
        int32_t capacity = handle->entry_capacity > 0 ? 2 * handle->entry_capacity : 8;
        rw_handles_entry* entries = rw_alloc_resize(
            handles->alloc, handle->entries, (size_t)capacity * sizeof(rw_handles_entry));
        if (entries == NULL) {
            return false;
        }
        handle->entries = entries;
        handle->entry_capacity = capacity;
    }
    handle->entries[handle->entry_count++] = (rw_handles_entry){
        .input = input, .object = object, .offset = handle->width, .width = width};
    handle->width += width;
    return true;
}

static int32_t object_count(const rw_model* model, rw_handles_input input) {
    switch (input) {
    case RW_HANDLES_JOINT: return model->joints.count;
    case RW_HANDLES_ATTACHMENT: return model->attachments.count;
    case RW_HANDLES_BODY:
    case RW_HANDLES_WRENCH: return model->bodies.count;
    case RW_HANDLES_FORCE: return model->forces.count;
    case RW_HANDLES_GRAVITY:
    case RW_HANDLES_WIND: break;
    }
    return 0;
}

static const char* object_name(const rw_model* model, rw_handles_input input, int32_t object) {
    switch (input) {
    case RW_HANDLES_JOINT: return model->joints.items[object].desc.name;
    case RW_HANDLES_ATTACHMENT: return model->attachments.items[object].desc.name;
    case RW_HANDLES_BODY:
    case RW_HANDLES_WRENCH: return model->bodies.items[object].desc.name;
    case RW_HANDLES_FORCE: return model->forces.items[object].desc.name;
    case RW_HANDLES_GRAVITY:
    case RW_HANDLES_WIND: break;
    }
    return "";
}

// Doubles that an object takes; 0 when it can't be driven (a glob passes it over).
static int32_t object_width(const rw_model* model, rw_handles_input input, int32_t object) {
    const rw_joint* joint;
    switch (input) {
    case RW_HANDLES_JOINT:
        joint = &model->joints.items[object];
        return joint->desc.motor.mode == RW_MOTOR_POSITION ? joint->coordinate_count
                                                           : joint->rate_count;
    case RW_HANDLES_ATTACHMENT:
        return model->attachments.items[object].desc.kind == RW_ATTACH_PIN ? 3 : 7;
    case RW_HANDLES_BODY:
        return model->bodies.items[object].desc.kind == RW_BODY_KINEMATIC ? 6 : 0;
    case RW_HANDLES_WRENCH:
        return model->bodies.items[object].desc.kind == RW_BODY_DYNAMIC ? 6 : 0;
    case RW_HANDLES_FORCE:
        return model->forces.items[object].desc.kind == RW_FORCE_LOAD ? 6 : 0;
    case RW_HANDLES_GRAVITY:
    case RW_HANDLES_WIND: break;
    }
    return 3;
}

// Cuts a target into kind and name. False when it is none.
static bool parse_target(const char* text, rw_handles_input* input, const char** name,
                         size_t* size) {
    static const struct {
        const char* prefix;
        rw_handles_input input;
    } PREFIXES[] = {{"joint/", RW_HANDLES_JOINT},
                    {"attachment/", RW_HANDLES_ATTACHMENT},
                    {"body/", RW_HANDLES_BODY},
                    {"force/", RW_HANDLES_FORCE}};
    for (size_t i = 0; i < RW_COUNT_OF(PREFIXES); i++) {
        size_t prefix = strlen(PREFIXES[i].prefix);
        if (strncmp(text, PREFIXES[i].prefix, prefix) != 0) {
            continue;
        }
        *input = PREFIXES[i].input;
        *name = text + prefix;
        *size = strlen(*name);
        static const char WRENCH[] = "/wrench";
        size_t tail = sizeof WRENCH - 1;
        if (*input == RW_HANDLES_BODY && *size > tail &&
            strcmp(*name + *size - tail, WRENCH) == 0) {
            *input = RW_HANDLES_WRENCH;
            *size -= tail;
        }
        return *size > 0 && memchr(*name, '/', *size) == NULL;
    }
    return false;
}

static rw_status add_target(rw_handles* handles, rw_handle* handle, const rw_model* model,
                            const char* text, rw_error* error) {
    bool fits = true;
    if (strcmp(text, "gravity") == 0) {
        fits = add_entry(handles, handle, RW_HANDLES_GRAVITY, -1, 3);
    } else if (strcmp(text, "wind") == 0) {
        fits = add_entry(handles, handle, RW_HANDLES_WIND, -1, 3);
    } else {
        rw_handles_input input;
        const char* name;
        size_t size;
        if (!parse_target(text, &input, &name, &size)) {
            RW_FAIL(error, INVALID_ARGUMENT, "",
                    "\"%s\" is not gravity, wind, joint/NAME, attachment/NAME, body/NAME, "
                    "body/NAME/wrench or force/NAME",
                    text);
        }
        bool is_glob = memchr(name, '*', size) != NULL;
        bool found = false;
        for (int32_t i = 0; fits && i < object_count(model, input); i++) {
            if (!rw_glob_matches(name, size, object_name(model, input, i), '\0')) {
                continue;
            }
            int32_t width = object_width(model, input, i);
            if (width == 0 && !is_glob) {
                RW_FAIL(error, INVALID_ARGUMENT, "",
                        "\"%s\" can't be driven: bodies must be KINEMATIC (DYNAMIC for /wrench), "
                        "forces loads, joints have coordinates",
                        text);
            }
            found = found || width > 0;
            fits = width == 0 || add_entry(handles, handle, input, i, width);
        }
        if (!found && fits) {
            RW_FAIL(error, NOT_FOUND, "", "nothing matches \"%s\"", text);
        }
    }
    if (!fits) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    return RW_STATUS_OK;
}

rw_status rw_handles_actuate(rw_handles* handles, rw_world* world, uint64_t owner,
                             const char* const* globs, size_t count, rw_handle** out,
                             rw_error* error) {
    sweep(handles, world);
    rw_handle* handle = rw_alloc_get(handles->alloc, sizeof *handle);
    if (handle == NULL) {
        RW_FAIL(error, RESOURCE_EXHAUSTED, "", "the session's memory is exhausted");
    }
    handle->owner = owner;
    const rw_model* model = rw_world_model(world);
    handle->is_actuate = true;
    handle->topology_revision = model->topology_revision;
    for (size_t i = 0; i < count; i++) {
        rw_status status = add_target(handles, handle, model, globs[i], error);
        if (status != RW_STATUS_OK) {
            free_handle(handles, handle);
            return rw_status_prefix(error, "targets[%zu]", i);
        }
    }
    RW_TRY(add_handle(handles, handle, error));
    *out = handle;
    return RW_STATUS_OK;
}

// Checks as apply_entry will: a row is applied wholly or not at all.
static rw_status check_entry(const rw_handles_entry* entry, const rw_model* model,
                             const double* values, rw_error* error) {
    if (entry->input == RW_HANDLES_ATTACHMENT && entry->width == 7) {
        return rw_validate_rotation(values + 3, "", error);
    }
    if (entry->input == RW_HANDLES_JOINT) {
        const rw_joint_desc* desc = &model->joints.items[entry->object].desc;
        rw_motor_desc motor = desc->motor;
        memcpy(motor.target, values, (size_t)entry->width * sizeof(double));
        motor.target_count = (size_t)entry->width;
        return rw_validate_motor(desc->type, &motor, error);
    }
    return RW_STATUS_OK;
}

rw_status rw_handles_check(const rw_handle* handle, const rw_world* world, const double* row,
                           size_t first, rw_error* error) {
    for (int32_t i = 0; i < handle->width; i++) {
        if (rw_bounds_finite(row[i], "", error) != RW_STATUS_OK) {
            return rw_status_prefix(error, "inputs[%zu]", first + (size_t)i);
        }
    }
    for (int32_t i = 0; i < handle->entry_count; i++) {
        const rw_handles_entry* entry = &handle->entries[i];
        if (check_entry(entry, rw_world_model(world), row + entry->offset, error) !=
            RW_STATUS_OK) {
            error->path[0] = '\0';
            bool is_rotation = entry->input == RW_HANDLES_ATTACHMENT;
            return rw_status_prefix(error, "inputs[%zu]",
                                    first + (size_t)entry->offset + (is_rotation ? 3 : 0));
        }
    }
    return RW_STATUS_OK;
}

static rw_status apply_entry(const rw_handles_entry* entry, rw_world* world, const double* values,
                             int64_t steps, rw_error* error) {
    switch (entry->input) {
    case RW_HANDLES_GRAVITY: {
        rw_world_set set = {.has_gravity = true};
        memcpy(set.gravity, values, sizeof set.gravity);
        return rw_world_set_options(world, &set, error);
    }
    case RW_HANDLES_WIND: {
        rw_world_set set = {.has_wind = true};
        memcpy(set.wind, values, sizeof set.wind);
        return rw_world_set_options(world, &set, error);
    }
    case RW_HANDLES_JOINT: {
        rw_joint_set set = {.motor_target = {values, (size_t)entry->width}};
        return rw_world_set_joint(world, entry->object, &set, error);
    }
    case RW_HANDLES_ATTACHMENT: {
        rw_attachment_set set = {.has_position = true, .has_rotation = entry->width == 7};
        memcpy(set.position, values, sizeof set.position);
        if (set.has_rotation) {
            memcpy(set.rotation, values + 3, sizeof set.rotation);
        }
        return rw_world_set_attachment(world, entry->object, &set, error);
    }
    case RW_HANDLES_BODY: {
        rw_body_set set = {.has_linear_velocity = true, .has_angular_velocity = true};
        memcpy(set.linear_velocity, values, sizeof set.linear_velocity);
        memcpy(set.angular_velocity, values + 3, sizeof set.angular_velocity);
        return rw_world_set_body(world, entry->object, &set, error);
    }
    case RW_HANDLES_FORCE: {
        rw_force_set set = {.has_force = true, .has_torque = true};
        memcpy(set.force, values, sizeof set.force);
        memcpy(set.torque, values + 3, sizeof set.torque);
        return rw_world_set_force(world, entry->object, &set, error);
    }
    case RW_HANDLES_WRENCH: break;
    }
    const rw_model* model = rw_world_model(world);
    rw_applied_wrench wrench = {.body = entry->object,
                                .rod = -1,
                                .node = -1,
                                .frame = RW_LOAD_WORLD,
                                .steps_left = steps};
    memcpy(wrench.point, &model->bodies.center_of_mass[3 * entry->object], sizeof wrench.point);
    memcpy(wrench.force, values, sizeof wrench.force);
    memcpy(wrench.torque, values + 3, sizeof wrench.torque);
    return rw_world_apply_wrench(world, &wrench, error);
}

rw_status rw_handles_apply(const rw_handle* handle, rw_world* world, const double* row,
                           int64_t steps, rw_error* error) {
    for (int32_t i = 0; i < handle->entry_count; i++) {
        const rw_handles_entry* entry = &handle->entries[i];
        if (apply_entry(entry, world, row + entry->offset, steps, error) != RW_STATUS_OK) {
            error->path[0] = '\0';
            return rw_status_prefix(error, "inputs[%d]", entry->offset);
        }
    }
    return RW_STATUS_OK;
}

void rw_handles_read(const rw_handle* handle, rw_world* world, double* row) {
    const rw_model* model = rw_world_model(world);
    for (int32_t i = 0; i < handle->entry_count; i++) {
        const rw_handles_entry* entry = &handle->entries[i];
        double* at = row + entry->offset;
        memset(at, 0, (size_t)entry->width * sizeof(double));
        switch (entry->input) {
        case RW_HANDLES_GRAVITY: memcpy(at, model->gravity, sizeof model->gravity); break;
        case RW_HANDLES_WIND: memcpy(at, model->wind, sizeof model->wind); break;
        case RW_HANDLES_JOINT:
            memcpy(at, model->joints.items[entry->object].desc.motor.target,
                   (size_t)entry->width * sizeof(double));
            break;
        case RW_HANDLES_ATTACHMENT: {
            const rw_frame* target = &model->attachments.items[entry->object].target;
            memcpy(at, target->position, sizeof target->position);
            if (entry->width == 7) {
                memcpy(at + 3, target->rotation, sizeof target->rotation);
            }
            break;
        }
        case RW_HANDLES_BODY: {
            const rw_body_desc* desc = &model->bodies.items[entry->object].desc;
            memcpy(at, desc->linear_velocity, sizeof desc->linear_velocity);
            memcpy(at + 3, desc->angular_velocity, sizeof desc->angular_velocity);
            break;
        }
        case RW_HANDLES_FORCE: {
            const rw_force_desc* desc = &model->forces.items[entry->object].desc;
            memcpy(at, desc->load.force, sizeof desc->load.force);
            memcpy(at + 3, desc->load.torque, sizeof desc->load.torque);
            break;
        }
        case RW_HANDLES_WRENCH: break;
        }
    }
}

void rw_handles_describe(const rw_handle* handle, rw_world* world, int32_t index,
                         rw_pb_LayoutEntry* out) {
    static const char* const PREFIXES[] = {"gravity", "wind", "joint/", "attachment/",
                                           "body/",   "force/", "body/"};
    static const char* const UNITS[] = {"m/s^2", "m/s", "m or rad", "m, 1",
                                        "m/s, rad/s", "N, N m", "N, N m"};
    static const char* const FRAMES[] = {"world", "world", "joint", "body",
                                         "world", "world", "world"};
    const rw_handles_entry* entry = &handle->entries[index];
    memset(out, 0, sizeof *out);
    snprintf(out->signal, sizeof out->signal, "%s%s%s", PREFIXES[entry->input],
             entry->object >= 0 ? object_name(rw_world_model(world), entry->input, entry->object)
                                : "",
             entry->input == RW_HANDLES_WRENCH ? "/wrench" : "");
    out->offset = (uint32_t)entry->offset;
    out->width = (uint32_t)entry->width;
    snprintf(out->unit, sizeof out->unit, "%s", UNITS[entry->input]);
    snprintf(out->frame, sizeof out->frame, "%s", FRAMES[entry->input]);
}
