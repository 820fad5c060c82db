// Removing objects with their dependents, and renewing what refers to those that stay.
#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/model/model_private.h"

static void renew(int32_t* reference, const int32_t* new_index) {
    if (new_index != NULL && *reference >= 0) {
        *reference = new_index[*reference];
    }
}

// What depends on another object: calls `visit` for every reference of every object.
typedef void (*visit_reference)(void* context, rw_kind kind, int32_t index, rw_kind target,
                                int32_t* reference);

static rw_kind kind_of_target(rw_input_target target) {
    switch (target) {
    case RW_TARGET_JOINT:
        return RW_KIND_JOINT;
    case RW_TARGET_ATTACHMENT:
        return RW_KIND_ATTACHMENT;
    case RW_TARGET_BODY:
        return RW_KIND_BODY;
    case RW_TARGET_FORCE:
        return RW_KIND_FORCE;
    case RW_TARGET_WIND:
    case RW_TARGET_GRAVITY:
        break;
    }
    return RW_KIND_COUNT;
}

// In an order in which dependents come after what they depend on.
static void visit_references(rw_model* model, visit_reference visit, void* context) {
    for (int32_t i = 0; i < model->joints.count; i++) {
        visit(context, RW_KIND_JOINT, i, RW_KIND_BODY, &model->joints.items[i].parent);
        visit(context, RW_KIND_JOINT, i, RW_KIND_BODY, &model->joints.items[i].child);
    }
    for (int32_t i = 0; i < model->couplings.count; i++) {
        visit(context, RW_KIND_COUPLING, i, RW_KIND_JOINT, &model->couplings.items[i].joint_a);
        visit(context, RW_KIND_COUPLING, i, RW_KIND_JOINT, &model->couplings.items[i].joint_b);
    }
    for (int32_t i = 0; i < model->attachments.count; i++) {
        visit(context, RW_KIND_ATTACHMENT, i, RW_KIND_ROD, &model->attachments.items[i].rod);
        visit(context, RW_KIND_ATTACHMENT, i, RW_KIND_BODY, &model->attachments.items[i].body);
    }
    for (int32_t i = 0; i < model->forces.count; i++) {
        rw_force* force = &model->forces.items[i];
        visit(context, RW_KIND_FORCE, i, RW_KIND_BODY, &force->a.body);
        visit(context, RW_KIND_FORCE, i, RW_KIND_ROD, &force->a.rod);
        visit(context, RW_KIND_FORCE, i, RW_KIND_BODY, &force->b.body);
        visit(context, RW_KIND_FORCE, i, RW_KIND_ROD, &force->b.rod);
    }
    for (int32_t i = 0; i < model->inputs.count; i++) {
        rw_input* input = &model->inputs.items[i];
        rw_kind target = kind_of_target(input->target);
        if (target != RW_KIND_COUNT) {
            visit(context, RW_KIND_INPUT, i, target, &input->index);
        }
    }
}

// While planning, new_index holds 0 for what stays and -1 for what goes.
typedef struct mark_context {
    rw_removal* removal;
    const rw_model* model;
    char names[200]; // of the direct dependents, for the refusal
    size_t length;
    int32_t dependents;
} mark_context;

static void mark(void* context, rw_kind kind, int32_t index, rw_kind target, int32_t* reference) {
    mark_context* marks = context;
    const int32_t* target_marks = marks->removal->new_index[target];
    int32_t* own = &marks->removal->new_index[kind][index];
    if (*reference < 0 || target_marks[*reference] == 0 || *own != 0) {
        return;
    }
    *own = -1;
    marks->removal->removed_count[kind]++;
    marks->dependents++;
    int room = (int)(sizeof marks->names - marks->length);
    int written = snprintf(marks->names + marks->length, (size_t)room, "%s%s/%s",
                           marks->dependents > 1 ? ", " : "", rw_model_kind_name(kind),
                           rw_model_name(marks->model, kind, index));
    if (written < room - 4) {
        marks->length += (size_t)written;
    } else { // no room: what was begun goes, dots stand for the rest
        snprintf(marks->names + marks->length, (size_t)room, "%s",
                 marks->length + 1 < sizeof marks->names ? "..." : "");
        marks->length = sizeof marks->names - 1;
    }
}

rw_status rw_model_removal_plan(const rw_model* model, rw_kind kind, int32_t index, bool cascade,
                                rw_removal* removal, rw_error* error) {
    *removal = (rw_removal){.alloc = model->alloc};
    RW_ASSERT(index >= 0 && index < rw_model_count(model, kind));
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        int32_t count = rw_model_count(model, (rw_kind)k);
        removal->new_index[k] = rw_alloc_array(model->alloc, (size_t)count, sizeof(int32_t));
        if (removal->new_index[k] == NULL) {
            return rw_model_private_out_of_memory(error, (rw_kind)k);
        }
    }
    removal->new_index[kind][index] = -1;
    removal->removed_count[kind] = 1;
    mark_context marks = {.removal = removal, .model = model};
    union {
        const rw_model* constant;
        rw_model* plain;
    } view = {.constant = model}; // marking only reads the references
    visit_references(view.plain, mark, &marks);
    if (marks.dependents > 0 && !cascade) {
        RW_FAIL(error, FAILED_PRECONDITION, "", "%s \"%s\" is still used by %s",
                rw_model_kind_name(kind), rw_model_name(model, kind, index), marks.names);
    }
    // Marks become new indices.
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        if (removal->removed_count[k] == 0) {
            rw_alloc_free(removal->alloc, removal->new_index[k]);
            removal->new_index[k] = NULL;
            continue;
        }
        int32_t next = 0;
        for (int32_t i = 0; i < rw_model_count(model, (rw_kind)k); i++) {
            removal->new_index[k][i] = removal->new_index[k][i] < 0 ? -1 : next++;
        }
    }
    return RW_STATUS_OK;
}

void rw_model_removal_finish(rw_removal* removal) {
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        rw_alloc_free(removal->alloc, removal->new_index[k]);
        removal->new_index[k] = NULL;
    }
}

static void renew_reference(void* context, rw_kind kind, int32_t index, rw_kind target,
                            int32_t* reference) {
    (void)kind;
    (void)index;
    renew(reference, ((const rw_removal*)context)->new_index[target]);
}

// Moves the rows of the bodies' arrays with their records.
static void move_body_rows(rw_bodies* bodies, int32_t from, int32_t to) {
    bodies->kind[to] = bodies->kind[from];
    bodies->mass[to] = bodies->mass[from];
    bodies->inverse_mass[to] = bodies->inverse_mass[from];
    memmove(bodies->inertia + 6 * to, bodies->inertia + 6 * from, 6 * sizeof(double));
    memmove(bodies->inverse_inertia + 6 * to, bodies->inverse_inertia + 6 * from,
            6 * sizeof(double));
    memmove(bodies->center_of_mass + 3 * to, bodies->center_of_mass + 3 * from, 3 * sizeof(double));
}

static void remove_records(rw_model* model, rw_kind kind, const int32_t* new_index) {
    rw_model_private_records table = rw_model_private_table(model, kind);
    int32_t count = *table.count;
    // Names first: the table compares through ids that must still lead to their records.
    for (int32_t i = 0; i < count; i++) {
        if (new_index[i] < 0) {
            rw_names_remove(&model->names[kind], rw_model_name(model, kind, i));
        }
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        rw_id id = rw_model_id(model, kind, i);
        if (new_index[i] < 0) {
            rw_model_private_release(model, kind, i);
            rw_id_pool_remove(&model->ids[kind], id);
            continue;
        }
        if (kept != i) {
            memcpy(rw_model_private_record(table, kept), rw_model_private_record(table, i),
                   table.stride);
            rw_id_pool_move(&model->ids[kind], id, kept);
            if (kind == RW_KIND_BODY) {
                move_body_rows(&model->bodies, i, kept);
            }
        }
        kept++;
    }
    *table.count = kept;
}

static void lay_out_joints(rw_model* model) {
    rw_joints* joints = &model->joints;
    joints->coordinate_count = 0;
    joints->rate_count = 0;
    for (int32_t i = 0; i < joints->count; i++) {
        joints->items[i].coordinate_first = joints->coordinate_count;
        joints->items[i].rate_first = joints->rate_count;
        joints->coordinate_count += joints->items[i].coordinate_count;
        joints->rate_count += joints->items[i].rate_count;
    }
}

void rw_model_removal_apply(rw_model* model, const rw_removal* removal) {
    // Wrenches on what goes, go.
    rw_applied* applied = &model->applied;
    int32_t kept = 0;
    for (int32_t i = 0; i < applied->count; i++) {
        rw_applied_wrench wrench = applied->items[i];
        bool had_body = wrench.body >= 0, had_rod = wrench.rod >= 0;
        renew(&wrench.body, removal->new_index[RW_KIND_BODY]);
        renew(&wrench.rod, removal->new_index[RW_KIND_ROD]);
        if ((!had_body || wrench.body >= 0) && (!had_rod || wrench.rod >= 0)) {
            applied->items[kept++] = wrench;
        }
    }
    applied->count = kept;
    for (int k = 0; k < RW_KIND_COUNT; k++) {
        if (removal->new_index[k] != NULL) {
            remove_records(model, (rw_kind)k, removal->new_index[k]);
        }
    }
    union {
        const rw_removal* constant;
        void* plain;
    } view = {.constant = removal};
    visit_references(model, renew_reference, view.plain);
    lay_out_joints(model);
    rw_model_private_lay_out_rods(model);
    model->topology_revision++;
}
