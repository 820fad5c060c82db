// Mass, centre of mass and inertia of shapes of uniform density. Sphere, capsule, box and cylinder
// are exact; hull and mesh by sums over tetrahedra from the origin to each triangle, exact for the
// polyhedron. Pure; any thread. `alloc` pays for the hull's faces while it runs.
#pragma once

#include "solvers/base/alloc.h"
#include "solvers/base/status.h"
#include "solvers/model/scene.h"

typedef struct rw_mass_properties {
    double mass;              // [kg]
    double center_of_mass[3]; // in the body's frame [m]
    double inertia[6];        // about the centre of mass, body axes, xx yy zz xy xz yz [kg m^2]
} rw_mass_properties;

// Adds up the shapes, overlaps counted twice; `density` is that of shapes that have none [kg/m^3]. A plane has no mass (INVALID_ARGUMENT when nothing
// else gives any); a mesh must be closed and counter-clockwise from outside (INVALID_ARGUMENT names
// the shape). RESOURCE_EXHAUSTED.
rw_status rw_mass_properties_of_shapes(const rw_shape_desc* shapes, size_t count, double density,
                                       rw_alloc* alloc, rw_mass_properties* properties,
                                       rw_error* error);
