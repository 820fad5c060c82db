// Replacing descriptions: the Set* of parameters. What fixes rows or references must stay.
#include <string.h>

#include "solvers/model/desc_fields.h"
#include "solvers/model/model_private.h"
#include "solvers/model/validate.h"

// What a Set* may not change.
static rw_status must_stay(bool same, const char* field, rw_error* error) {
    if (!same) {
        RW_FAIL(error, FAILED_PRECONDITION, field, "can't change after creation");
    }
    return RW_STATUS_OK;
}

#define STAYS_TEXT(field) must_stay(strcmp(old->field, desc->field) == 0, #field, error)
#define STAYS(field) must_stay(old->field == desc->field, #field, error)

rw_status rw_model_replace_body(rw_model* model, int32_t index, const rw_body_desc* desc,
                                rw_error* error) {
    rw_body* body = &model->bodies.items[index];
    const rw_body_desc* old = &body->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(kind));
    RW_TRY(rw_validate_body(desc, error));
    rw_mass_properties mass;
    RW_TRY(rw_model_private_derive_mass(model, desc, &mass, error));
    rw_body_desc copy;
    void* owned;
    if (rw_desc_fields_copy(RW_KIND_BODY, &copy, desc, model->alloc, 0, &owned, NULL) !=
        RW_STATUS_OK) {
        return rw_model_private_out_of_memory(error, RW_KIND_BODY);
    }
    rw_alloc_free(model->alloc, body->owned);
    body->owned = owned;
    body->desc = copy;
    rw_model_private_store_mass(&model->bodies, index, desc->kind, &mass);
    model->parameter_revision++;
    return RW_STATUS_OK;
}

rw_status rw_model_replace_joint(rw_model* model, int32_t index, const rw_joint_desc* desc,
                                 rw_error* error) {
    const rw_joint_desc* old = &model->joints.items[index].desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(type));
    RW_TRY(STAYS_TEXT(parent));
    RW_TRY(STAYS_TEXT(child));
    RW_TRY(rw_validate_joint(desc, error));
    rw_model_private_copy_plain(RW_KIND_JOINT, &model->joints.items[index].desc, desc);
    model->parameter_revision++;
    return RW_STATUS_OK;
}

rw_status rw_model_replace_rod(rw_model* model, int32_t index, const rw_rod_desc* desc,
                               rw_error* error) {
    rw_rod* rod = &model->rods.items[index];
    const rw_rod_desc* old = &rod->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(geometry));
    RW_TRY(STAYS(method));
    RW_TRY(STAYS(elements));
    RW_TRY(STAYS(order));
    RW_TRY(STAYS(rest));
    RW_TRY(STAYS(section));
    RW_TRY(STAYS(polyline.positions.count));
    RW_TRY(STAYS(graph.positions.count));
    RW_TRY(STAYS(graph.segments.count));
    RW_TRY(STAYS(graph.bends.count));
    RW_TRY(rw_validate_rod(desc, error));
    rw_rod_desc copy;
    if (rw_desc_fields_share_arrays(RW_KIND_ROD, old, desc)) {
        // Only numbers changed: the arrays stay where they are.
        copy = *desc;
    } else {
        void* owned;
        if (rw_desc_fields_copy(RW_KIND_ROD, &copy, desc, model->alloc, 0, &owned, NULL) !=
            RW_STATUS_OK) {
            return rw_model_private_out_of_memory(error, RW_KIND_ROD);
        }
        rw_alloc_free(model->alloc, rod->owned);
        rod->owned = owned;
    }
    rod->desc = copy;
    model->parameter_revision++;
    return RW_STATUS_OK;
}

rw_status rw_model_replace_force(rw_model* model, int32_t index, const rw_force_desc* desc,
                                 rw_error* error) {
    rw_force* force = &model->forces.items[index];
    const rw_force_desc* old = &force->desc;
    RW_TRY(STAYS_TEXT(name));
    RW_TRY(STAYS(kind));
    RW_TRY(rw_validate_force(desc, error));
    rw_force fresh;
    RW_TRY(rw_model_private_resolve_force(model, desc, &fresh, error));
    RW_TRY(must_stay(fresh.a.body == force->a.body && fresh.a.rod == force->a.rod &&
                         fresh.a.node == force->a.node && fresh.b.body == force->b.body &&
                         fresh.b.rod == force->b.rod && fresh.b.node == force->b.node,
                     rw_model_private_force_member(desc->kind), error));
    if (fresh.rest_length < 0) {
        fresh.rest_length = force->rest_length;
    }
    fresh.id = force->id;
    *force = fresh;
    model->parameter_revision++;
    return RW_STATUS_OK;
}
