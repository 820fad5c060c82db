// What adding and replacing share: references, nodes, mass.
#include "solvers/model/model_private.h"

#include <stdio.h>
#include <string.h>

#include "solvers/base/check.h"
#include "solvers/math/mat3.h"
#include "solvers/model/desc_fields.h"
#include "solvers/model/hull.h"
#include "solvers/model/validate.h"

// A reference by name; "" gives -1 (the world or none).
rw_status rw_model_private_refer(const rw_model* model, rw_kind kind, const char* name,
                                 const char* field, int32_t* index, rw_error* error) {
    *index = -1;
    if (name[0] == '\0') {
        return RW_STATUS_OK;
    }
    rw_status status = rw_model_find(model, kind, RW_ID_NONE, name, index, error);
    if (status != RW_STATUS_OK && error != NULL) {
        snprintf(error->path, sizeof error->path, "%s", field);
    }
    return status;
}

// Copies a description without arrays.
void rw_model_private_copy_plain(rw_kind kind, void* to, const void* from) {
    void* owned = NULL;
    rw_status status = rw_desc_fields_copy(kind, to, from, NULL, 0, &owned, NULL);
    RW_CHECK(status == RW_STATUS_OK && owned == NULL);
}

// A hull of points in one plane has no inside. Where mass comes from density, its sums find that out.
static rw_status check_hulls(rw_model* model, const rw_body_desc* desc, rw_error* error) {
    for (size_t i = 0; i < desc->shape_count; i++) {
        const rw_shape_desc* shape = &desc->shapes[i];
        if (shape->kind != RW_SHAPE_HULL) {
            continue;
        }
        rw_hull hull;
        rw_status status = rw_hull_build(&hull, model->alloc, shape->vertices.data,
                                         (int32_t)(shape->vertices.count / 3), error);
        if (status != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "shapes[%zu].hull", i) : status;
        }
        rw_hull_finish(&hull);
    }
    return RW_STATUS_OK;
}

// Mass properties of a valid description: as given, or of its shapes.
rw_status rw_model_private_derive_mass(rw_model* model, const rw_body_desc* desc,
                                       rw_mass_properties* mass, rw_error* error) {
    *mass = (rw_mass_properties){.mass = desc->mass};
    memcpy(mass->center_of_mass, desc->center_of_mass, sizeof mass->center_of_mass);
    memcpy(mass->inertia, desc->inertia, sizeof mass->inertia);
    if (rw_validate_has_density(desc)) {
        double density = desc->has_density ? desc->density : 0;
        RW_TRY(rw_mass_properties_of_shapes(desc->shapes, desc->shape_count, density, model->alloc,
                                            mass, error));
        if (desc->kind == RW_BODY_DYNAMIC) {
            RW_TRY(rw_validate_inertia(mass->inertia, "shapes", error));
        }
        return RW_STATUS_OK;
    }
    return check_hulls(model, desc, error);
}

void rw_model_private_store_mass(rw_bodies* bodies, int32_t i, rw_body_kind kind,
                                 const rw_mass_properties* mass) {
    bodies->kind[i] = (uint8_t)kind;
    memcpy(bodies->center_of_mass + 3 * i, mass->center_of_mass, sizeof mass->center_of_mass);
    double* inertia = bodies->inertia + 6 * i;
    double* inverse = bodies->inverse_inertia + 6 * i;
    memset(inertia, 0, 6 * sizeof *inertia);
    memset(inverse, 0, 6 * sizeof *inverse);
    bodies->mass[i] = 0;
    bodies->inverse_mass[i] = 0;
    if (kind != RW_BODY_DYNAMIC) {
        return;
    }
    bodies->mass[i] = mass->mass;
    bodies->inverse_mass[i] = 1 / mass->mass;
    memcpy(inertia, mass->inertia, sizeof mass->inertia);
    rw_mat3 m = rw_mat3_inverse(rw_mat3_symmetric(inertia));
    double entries[6] = {m.m[0][0], m.m[1][1], m.m[2][2], m.m[0][1], m.m[0][2], m.m[1][2]};
    memcpy(inverse, entries, sizeof entries);
}

// The node that `s` or `node` means; `rod` is a valid index.
rw_status rw_model_private_resolve_node(const rw_model* model, int32_t rod, bool has_node,
                                        uint32_t node, double s, const char* field,
                                        int32_t* resolved, rw_error* error) {
    const rw_rod* record = &model->rods.items[rod];
    if (has_node) {
        if (node >= (uint32_t)record->node_count) {
            RW_FAIL(error, OUT_OF_RANGE, field, "must be < %d, got %u", record->node_count, node);
        }
        *resolved = (int32_t)node;
        return RW_STATUS_OK;
    }
    *resolved = rw_model_node_at(model, rod, s);
    if (*resolved < 0) {
        RW_FAIL(error, INVALID_ARGUMENT, field, "a graph has no length: give the node");
    }
    return RW_STATUS_OK;
}

static rw_status resolve_point(const rw_model* model, const rw_point_desc* desc, rw_point* point,
                               rw_error* error) {
    *point = (rw_point){.node = -1};
    memcpy(point->position, desc->position, sizeof point->position);
    RW_TRY(rw_model_private_refer(model, RW_KIND_BODY, desc->body, "body", &point->body, error));
    RW_TRY(rw_model_private_refer(model, RW_KIND_ROD, desc->rod, "rod", &point->rod, error));
    if (point->rod >= 0) {
        RW_TRY(rw_model_private_resolve_node(model, point->rod, desc->has_node, desc->node, desc->s,
                                             "node", &point->node, error));
    }
    return RW_STATUS_OK;
}

const char* rw_model_private_force_member(rw_force_kind kind) {
    return kind == RW_FORCE_SPRING_DAMPER ? "spring_damper"
           : kind == RW_FORCE_LOAD        ? "load"
                                          : "drag";
}

rw_status rw_model_private_resolve_force(const rw_model* model, const rw_force_desc* desc,
                                         rw_force* force, rw_error* error) {
    *force = (rw_force){.desc = *desc, .rest_length = -1};
    force->b = (rw_point){.body = -1, .rod = -1, .node = -1};
    const char* member = rw_model_private_force_member(desc->kind);
    if (desc->kind == RW_FORCE_SPRING_DAMPER) {
        if (resolve_point(model, &desc->spring_damper.a, &force->a, error) != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "%s.a", member) : RW_STATUS_NOT_FOUND;
        }
        if (resolve_point(model, &desc->spring_damper.b, &force->b, error) != RW_STATUS_OK) {
            return error != NULL ? rw_status_prefix(error, "%s.b", member) : RW_STATUS_NOT_FOUND;
        }
        if (desc->spring_damper.has_rest_length) {
            force->rest_length = desc->spring_damper.rest_length;
        }
        return RW_STATUS_OK;
    }
    const rw_point_desc* at = desc->kind == RW_FORCE_LOAD ? &desc->load.at : &desc->drag.at;
    if (resolve_point(model, at, &force->a, error) != RW_STATUS_OK) {
        return error != NULL ? rw_status_prefix(error, "%s", member) : RW_STATUS_NOT_FOUND;
    }
    return RW_STATUS_OK;
}
