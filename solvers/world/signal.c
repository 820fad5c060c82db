// Signals: everything observable by one name. Resolving a glob walks the table of readers once;
// reading is then a loop over readers without names.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/base/glob.h"
#include "solvers/math/quat.h"
#include "solvers/math/vec3.h"
#include "solvers/model/kinematics.h"
#include "solvers/world/world_private.h"

// ---- The table ---------------------------------------------------------------------------------

// One family of signals: `path` after the object's name, with I for a node or element index and S
// for a place along the rod.
typedef struct signal_entry {
    const char* group; // "world", "body", "joint", "rod", "attachment"
    const char* path;  // "node/I/position"
    const char* unit;  // "": depends on the joint type
    const char* frame;
    int32_t width; // 0: depends on the joint type
} signal_entry;

// kind, group, path, unit, frame, width
#define SIGNAL_LIST(X)                                                                             \
    X(WORLD_TIME, "world", "time", "s", "", 1)                                                     \
    X(WORLD_STEP, "world", "step", "1", "", 1)                                                     \
    X(WORLD_CONTACTS, "world", "contacts", "1", "", 1)                                             \
    X(WORLD_HASH, "world", "hash", "1", "", 1)                                                     \
    X(WORLD_KINETIC, "world", "energy/kinetic", "J", "", 1)                                        \
    X(WORLD_GRAVITY, "world", "energy/gravity", "J", "", 1)                                        \
    X(WORLD_ELASTIC, "world", "energy/elastic", "J", "", 1)                                        \
    X(WORLD_TOTAL, "world", "energy/total", "J", "", 1)                                            \
    X(WORLD_LINEAR, "world", "momentum/linear", "kg m/s", "world", 3)                              \
    X(WORLD_ANGULAR, "world", "momentum/angular", "kg m^2/s", "world", 3)                          \
    X(BODY_POSITION, "body", "position", "m", "world", 3)                                          \
    X(BODY_ROTATION, "body", "rotation", "1", "world", 4)                                          \
    X(BODY_LINEAR_VELOCITY, "body", "linear_velocity", "m/s", "world", 3)                          \
    X(BODY_ANGULAR_VELOCITY, "body", "angular_velocity", "rad/s", "body", 3)                       \
    X(BODY_ANGULAR_VELOCITY_WORLD, "body", "angular_velocity_world", "rad/s", "world", 3)          \
    X(BODY_COM_POSITION, "body", "com_position", "m", "world", 3)                                  \
    X(BODY_COM_VELOCITY, "body", "com_velocity", "m/s", "world", 3)                                \
    X(JOINT_COORDINATE, "joint", "coordinate", "", "joint", 0)                                \
    X(JOINT_RATE, "joint", "rate", "", "joint", 0)                                        \
    X(JOINT_EFFORT, "joint", "effort", "", "joint", 0)                                        \
    X(JOINT_REACTION_FORCE, "joint", "reaction_force", "N", "world", 3)                            \
    X(JOINT_REACTION_TORQUE, "joint", "reaction_torque", "N m", "world", 3)                        \
    X(JOINT_VIOLATION, "joint", "violation", "m, rad", "", 2)                                      \
    X(ROD_NODE_POSITION, "rod", "node/I/position", "m", "world", 3)                                \
    X(ROD_NODE_ROTATION, "rod", "node/I/rotation", "1", "world", 4)                                \
    X(ROD_NODE_VELOCITY, "rod", "node/I/velocity", "m/s", "world", 3)                              \
    X(ROD_AT_POSITION, "rod", "at/S/position", "m", "world", 3)                                    \
    X(ROD_AT_ROTATION, "rod", "at/S/rotation", "1", "world", 4)                                    \
    X(ROD_ENERGY, "rod", "energy", "J", "", 1)                                                     \
    X(ROD_LENGTH, "rod", "length", "m", "", 1)                                                     \
    X(ROD_MAX_STRAIN, "rod", "max_strain", "1", "", 1)                                             \
    X(ROD_RESIDUAL, "rod", "residual", "1", "", 1)                                                 \
    X(ROD_ELEMENT_FORCE, "rod", "element/I/force", "N", "material", 3)                             \
    X(ROD_ELEMENT_MOMENT, "rod", "element/I/moment", "N m", "material", 3)                         \
    X(ATTACHMENT_FORCE, "attachment", "force", "N", "world", 3)                                    \
    X(ATTACHMENT_TORQUE, "attachment", "torque", "N m", "world", 3)

typedef enum signal_kind {
#define SIGNAL_KIND(kind, group, path, unit, frame, width) SIGNAL_##kind,
    SIGNAL_LIST(SIGNAL_KIND)
#undef SIGNAL_KIND
        SIGNAL_COUNT
} signal_kind;

static const signal_entry signal_table[SIGNAL_COUNT] = {
#define SIGNAL_ROW(kind, group, path, unit, frame, width) {group, path, unit, frame, width},
    SIGNAL_LIST(SIGNAL_ROW)
#undef SIGNAL_ROW
};

// ---- Globs -------------------------------------------------------------------------------------

#define PARTS_MAXIMUM 8
#define PART_CAPACITY 72

typedef struct glob_parts {
    char part[PARTS_MAXIMUM][PART_CAPACITY];
    int count;
} glob_parts;

// Splits at '/'. False when there are too many parts or one is too long or empty.
static bool split_parts(const char* text, glob_parts* parts) {
    parts->count = 0;
    for (;;) {
        size_t length = strcspn(text, "/");
        if (length == 0 || length >= PART_CAPACITY || parts->count == PARTS_MAXIMUM) {
            return false;
        }
        memcpy(parts->part[parts->count], text, length);
        parts->part[parts->count++][length] = '\0';
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

static bool part_matches(const char* pattern, const char* text) {
    return rw_glob_matches(pattern, strlen(pattern), text, '\0');
}

// A collector of matches; the first pass counts, the second fills.
typedef struct collector {
    const rw_world* world;
    rw_signal* items; // NULL while counting
    int64_t count;
    int64_t width;
} collector;

// Units of a joint's coordinates, rates and efforts, in their order where they differ.
static const char* joint_unit(rw_joint_type type, int32_t kind) {
    static const char* const units[][3] = {
        [RW_JOINT_FIXED] = {"1", "1", "1"},
        [RW_JOINT_REVOLUTE] = {"rad", "rad/s", "N m"},
        [RW_JOINT_PRISMATIC] = {"m", "m/s", "N"},
        [RW_JOINT_CYLINDRICAL] = {"m, rad", "m/s, rad/s", "N, N m"},
        [RW_JOINT_PLANAR] = {"m, m, rad", "m/s, m/s, rad/s", "N, N, N m"},
        [RW_JOINT_UNIVERSAL] = {"rad", "rad/s", "N m"},
        [RW_JOINT_SPHERICAL] = {"1", "rad/s", "N m"},
        [RW_JOINT_DISTANCE] = {"1", "1", "1"},
    };
    return units[type][kind - SIGNAL_JOINT_COORDINATE];
}

static const char* unit_of(const rw_world* world, int32_t kind, int32_t object) {
    const char* unit = signal_table[kind].unit;
    return unit[0] != '\0' ? unit : joint_unit(world->model.joints.items[object].desc.type, kind);
}

static void collect(collector* to, int32_t kind, int32_t object, int32_t part, double s,
                    int32_t width, const char* name) {
    if (to->items != NULL) {
        rw_signal* signal = &to->items[to->count];
        *signal = (rw_signal){.unit = unit_of(to->world, kind, object),
                              .frame = signal_table[kind].frame,
                              .kind = kind,
                              .object = object,
                              .part = part,
                              .s = s,
                              .offset = (int32_t)to->width,
                              .width = width};
        snprintf(signal->name, sizeof signal->name, "%s", name);
    }
    to->count++;
    to->width += width;
}

static int32_t object_count(const rw_world* world, const char* group) {
    const rw_model* model = &world->model;
    switch (group[0]) {
    case 'b':
        return model->bodies.count;
    case 'j':
        return model->joints.count;
    case 'r':
        return model->rods.count;
    case 'a':
        return model->attachments.count;
    default:
        return 1;
    }
}

static const char* object_name(const rw_world* world, const char* group, int32_t index) {
    const rw_model* model = &world->model;
    switch (group[0]) {
    case 'b':
        return model->bodies.items[index].desc.name;
    case 'j':
        return model->joints.items[index].desc.name;
    case 'r':
        return model->rods.items[index].desc.name;
    default:
        return model->attachments.items[index].desc.name;
    }
}

static int32_t signal_width(const rw_world* world, int32_t kind, int32_t object) {
    if (signal_table[kind].width > 0) {
        return signal_table[kind].width;
    }
    const rw_joint* joint = &world->model.joints.items[object];
    return kind == SIGNAL_JOINT_COORDINATE ? joint->coordinate_count : joint->rate_count;
}

// Matches what follows the object's name. `want` are the pattern's parts, `have` the table's; I and
// S parts are numbers. Emits one signal, or one per index for a wildcard.
static void match_path(collector* to, int32_t kind, int32_t object, const glob_parts* want,
                       int first, const char* prefix) {
    const signal_entry* entry = &signal_table[kind];
    glob_parts have;
    if (!split_parts(entry->path, &have) || want->count - first != have.count) {
        return;
    }
    int number_at = -1;
    for (int i = 0; i < have.count; i++) {
        if (strcmp(have.part[i], "I") == 0 || strcmp(have.part[i], "S") == 0) {
            number_at = i;
        } else if (!part_matches(want->part[first + i], have.part[i])) {
            return;
        }
    }
    int32_t width = signal_width(to->world, kind, object);
    if (width == 0) {
        return; // a fixed joint has no coordinate
    }
    char name[2 * RW_NAME_CAPACITY + 32];
    if (number_at < 0) {
        snprintf(name, sizeof name, "%s%s", prefix, entry->path);
        collect(to, kind, object, 0, 0, width, name);
        return;
    }

    const char* number = want->part[first + number_at];
    if (have.part[number_at][0] == 'S') {
        char* rest;
        double s = strtod(number, &rest);
        if (*rest != '\0' || rest == number || !(s >= 0 && s <= 1) ||
            to->world->model.rods.items[object].desc.geometry == RW_ROD_GRAPH) {
            return;
        }
        snprintf(name, sizeof name, "%sat/%s/%s", prefix, number, have.part[2]);
        collect(to, kind, object, 0, s, width, name);
        return;
    }
    const rw_rod* rod = &to->world->model.rods.items[object];
    int32_t limit = have.part[0][0] == 'n' ? rod->node_count : rod->element_count;
    bool is_wild = strchr(number, '*') != NULL;
    for (int32_t i = 0; i < limit; i++) {
        if (!is_wild) {
            char* rest;
            long wanted = strtol(number, &rest, 10);
            if (*rest != '\0' || rest == number || wanted < 0 || wanted >= limit) {
                return;
            }
            i = (int32_t)wanted;
        }
        char digits[16];
        snprintf(digits, sizeof digits, "%d", i);
        if (part_matches(number, digits) || !is_wild) {
            snprintf(name, sizeof name, "%s%s/%d/%s", prefix, have.part[0], i, have.part[2]);
            collect(to, kind, object, i, 0, width, name);
        }
        if (!is_wild) {
            return;
        }
    }
}

static void match_object(collector* to, const char* group, int32_t object, const glob_parts* want,
                         int first, const char* prefix) {
    for (int32_t kind = 0; kind < SIGNAL_COUNT; kind++) {
        if (strcmp(signal_table[kind].group, group) == 0) {
            match_path(to, kind, object, want, first, prefix);
        }
    }
}

static void match_glob(collector* to, const glob_parts* want) {
    static const char* const groups[] = {"world", "body", "joint", "rod", "attachment"};
    for (size_t g = 0; g < RW_COUNT_OF(groups); g++) {
        if (!part_matches(want->part[0], groups[g])) {
            continue;
        }
        char prefix[2 * RW_NAME_CAPACITY];
        if (g == 0) {
            match_object(to, groups[g], 0, want, 1, "world/");
            continue;
        }
        for (int32_t i = 0; i < object_count(to->world, groups[g]); i++) {
            const char* name = object_name(to->world, groups[g], i);
            if (want->count >= 3 && part_matches(want->part[1], name)) {
                snprintf(prefix, sizeof prefix, "%s/%s/", groups[g], name);
                match_object(to, groups[g], i, want, 2, prefix);
            }
        }
    }
}

rw_status rw_world_resolve_signals(rw_world* world, const char* const* globs, size_t glob_count,
                                   rw_signal_set* set, rw_error* error) {
    collector to = {.world = world};
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            to.items = rw_alloc_array(world->alloc, (size_t)to.count, sizeof *to.items);
            if (to.items == NULL) {
                RW_FAIL(error, RESOURCE_EXHAUSTED, "signals", "no memory for %lld signals",
                        (long long)to.count);
            }
            to.count = to.width = 0;
        }
        for (size_t i = 0; i < glob_count; i++) {
            glob_parts want;
            int64_t before = to.count;
            bool is_well_formed = split_parts(globs[i], &want) && want.count >= 2;
            if (is_well_formed) {
                match_glob(&to, &want);
            }
            if (to.count == before) {
                rw_alloc_free(world->alloc, to.items);
                char path[32];
                snprintf(path, sizeof path, "signals[%zu]", i);
                RW_FAIL(error, NOT_FOUND, path, "no signal matches '%.100s'", globs[i]);
            }
            if (to.width > INT32_MAX / 2) {
                rw_alloc_free(world->alloc, to.items);
                RW_FAIL(error, RESOURCE_EXHAUSTED, "signals", "more than 2^30 values");
            }
        }
    }
    *set = (rw_signal_set){.items = to.items,
                           .count = (int32_t)to.count,
                           .width = (int32_t)to.width,
                           .topology_revision = world->model.topology_revision};
    return RW_STATUS_OK;
}

void rw_world_release_signals(rw_world* world, rw_signal_set* set) {
    rw_alloc_free(world->alloc, set->items);
    *set = (rw_signal_set){0};
}

// ---- Readers -----------------------------------------------------------------------------------

// World signals that cost a pass over all objects are computed once per read.
typedef struct world_sums {
    bool has_energy, has_momentum;
    rw_world_energy energy;
    double linear[3], angular[3];
} world_sums;

static rw_status read_world(rw_world* world, int32_t kind, world_sums* sums, double* out,
                            rw_error* error) {
    uint64_t hash;
    if (kind >= SIGNAL_WORLD_KINETIC && kind <= SIGNAL_WORLD_TOTAL && !sums->has_energy) {
        RW_TRY(rw_world_get_energy(world, &sums->energy, error));
        sums->has_energy = true;
    }
    if ((kind == SIGNAL_WORLD_LINEAR || kind == SIGNAL_WORLD_ANGULAR) && !sums->has_momentum) {
        RW_TRY(rw_world_get_momentum(world, sums->linear, sums->angular, error));
        sums->has_momentum = true;
    }
    switch (kind) {
    case SIGNAL_WORLD_TIME:
        out[0] = rw_world_time(world);
        break;
    case SIGNAL_WORLD_STEP:
        out[0] = (double)world->step;
        break;
    case SIGNAL_WORLD_CONTACTS:
        out[0] = 0; // contact is not served yet, so there is none
        break;
    case SIGNAL_WORLD_HASH:
        RW_TRY(rw_world_hash(world, &hash, error));
        out[0] = (double)(hash & ((UINT64_C(1) << 53) - 1));
        break;
    case SIGNAL_WORLD_KINETIC:
        out[0] = sums->energy.kinetic;
        break;
    case SIGNAL_WORLD_GRAVITY:
        out[0] = sums->energy.gravity;
        break;
    case SIGNAL_WORLD_ELASTIC:
        out[0] = sums->energy.elastic;
        break;
    case SIGNAL_WORLD_TOTAL:
        out[0] = sums->energy.total;
        break;
    case SIGNAL_WORLD_LINEAR:
        memcpy(out, sums->linear, sizeof sums->linear);
        break;
    default:
        memcpy(out, sums->angular, sizeof sums->angular);
        break;
    }
    return RW_STATUS_OK;
}

static void read_body(const rw_world* world, const rw_signal* signal, double* out) {
    const rw_state* state = &world->state[world->good];
    int32_t i = signal->object;
    static const double origin[3];
    switch (signal->kind) {
    case SIGNAL_BODY_POSITION:
        rw_kinematics_point(&world->model, state, i, origin, out);
        break;
    case SIGNAL_BODY_ROTATION:
        memcpy(out, &state->body_rotation[4 * i], 4 * sizeof(double));
        break;
    case SIGNAL_BODY_LINEAR_VELOCITY:
        rw_kinematics_point_velocity(&world->model, state, i, origin, out);
        break;
    case SIGNAL_BODY_ANGULAR_VELOCITY:
        memcpy(out, &state->body_angular_velocity[3 * i], 3 * sizeof(double));
        break;
    case SIGNAL_BODY_ANGULAR_VELOCITY_WORLD:
        rw_vec3_store(out, rw_quat_rotate(rw_quat_load(&state->body_rotation[4 * i]),
                                          rw_vec3_load(&state->body_angular_velocity[3 * i])));
        break;
    case SIGNAL_BODY_COM_POSITION:
        memcpy(out, &state->body_position[3 * i], 3 * sizeof(double));
        break;
    default:
        memcpy(out, &state->body_linear_velocity[3 * i], 3 * sizeof(double));
        break;
    }
}

static rw_status read_joint(const rw_world* world, const rw_signal* signal, double* out) {
    const rw_state* state = &world->state[world->good];
    const rw_solver_vtable* rigid = world->solvers.rigid.vtable;
    void* self = world->solvers.rigid.self;
    double wrench[6];
    bool is_force = signal->kind != SIGNAL_JOINT_COORDINATE && signal->kind != SIGNAL_JOINT_RATE &&
                    signal->kind != SIGNAL_JOINT_VIOLATION;
    if (is_force && rigid->evaluate != NULL) {
        RW_TRY(rigid->evaluate(self, state, rw_world_time(world)));
    }
    switch (signal->kind) {
    case SIGNAL_JOINT_COORDINATE:
        rigid->joint_coordinate(self, state, signal->object, out);
        break;
    case SIGNAL_JOINT_RATE:
        rigid->joint_rate(self, state, signal->object, out);
        break;
    case SIGNAL_JOINT_EFFORT:
        rigid->joint_effort(self, signal->object, out);
        break;
    case SIGNAL_JOINT_VIOLATION:
        rigid->joint_violation(self, state, signal->object, out);
        break;
    default:
        rigid->joint_reaction(self, signal->object, wrench);
        memcpy(out, wrench + (signal->kind == SIGNAL_JOINT_REACTION_TORQUE ? 3 : 0),
               3 * sizeof(double));
        break;
    }
    return RW_STATUS_OK;
}

static void read_rod(const rw_world* world, const rw_signal* signal, double* out) {
    const rw_state* state = &world->state[world->good];
    const rw_solver_vtable* rods = world->solvers.rods.vtable;
    void* self = world->solvers.rods.self;
    int32_t rod = signal->object;
    int32_t node = world->model.rods.items[rod].node_first + signal->part;
    double position[3], rotation[4], wrench[6];
    switch (signal->kind) {
    case SIGNAL_ROD_NODE_POSITION:
        memcpy(out, &state->node_position[3 * node], 3 * sizeof(double));
        break;
    case SIGNAL_ROD_NODE_VELOCITY:
        memcpy(out, &state->node_velocity[3 * node], 3 * sizeof(double));
        break;
    case SIGNAL_ROD_NODE_ROTATION:
        rods->node_rotation(self, state, rod, signal->part, out);
        break;
    case SIGNAL_ROD_AT_POSITION:
    case SIGNAL_ROD_AT_ROTATION:
        rods->rod_at(self, state, rod, signal->s, position, rotation);
        memcpy(out, signal->kind == SIGNAL_ROD_AT_POSITION ? position : rotation,
               (size_t)signal->width * sizeof(double));
        break;
    case SIGNAL_ROD_ENERGY:
        out[0] = rods->rod_energy(self, state, rod);
        break;
    case SIGNAL_ROD_LENGTH:
        out[0] = rods->rod_length(self, state, rod);
        break;
    case SIGNAL_ROD_MAX_STRAIN:
        out[0] = rods->rod_max_strain(self, state, rod);
        break;
    case SIGNAL_ROD_RESIDUAL:
        out[0] = rods->rod_residual(self, rod);
        break;
    default:
        rods->element_wrench(self, state, rod, signal->part, wrench);
        memcpy(out, wrench + (signal->kind == SIGNAL_ROD_ELEMENT_MOMENT ? 3 : 0),
               3 * sizeof(double));
        break;
    }
}

rw_status rw_world_read_signals(rw_world* world, const rw_signal_set* set, double* values,
                                rw_error* error) {
    if (set->topology_revision != world->model.topology_revision) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "objects came or went since the signals were "
                                                "resolved: observe them anew");
    }
    if (rw_world_needs_prepare(world)) {
        RW_TRY(rw_world_prepare(world, error)); // a set is visible to the next query
    }
    world_sums sums = {0};
    for (int32_t i = 0; i < set->count; i++) {
        const rw_signal* signal = &set->items[i];
        double* out = values + signal->offset;
        if (signal->kind < SIGNAL_BODY_POSITION) {
            RW_TRY(read_world(world, signal->kind, &sums, out, error));
        } else if (signal->kind < SIGNAL_JOINT_COORDINATE) {
            read_body(world, signal, out);
        } else if (signal->kind < SIGNAL_ROD_NODE_POSITION) {
            RW_TRY(read_joint(world, signal, out));
        } else if (signal->kind < SIGNAL_ATTACHMENT_FORCE) {
            read_rod(world, signal, out);
        } else {
            double wrench[6];
            world->solvers.rods.vtable->attachment_wrench(world->solvers.rods.self,
                                                          signal->object, wrench);
            memcpy(out, wrench + (signal->kind == SIGNAL_ATTACHMENT_TORQUE ? 3 : 0),
                   3 * sizeof(double));
        }
    }
    return RW_STATUS_OK;
}
