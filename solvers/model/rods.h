// The geometry of rods: from a description to nodes, node frames, rest shape, lengths, masses and
// sections, for every rod solver and for the model that creates rods. Pure functions of a validated
// description (validate.h); results lie in the caller's arena. Any thread, one at a time per arena.
//
// A rod has `node_count` nodes joined by `segment_count` straight segments; bends are the pairs of
// segments that meet elastically. A straight, helix or polyline rod of E elements of order p has
// E p + 1 nodes and E p segments in a row (a rigid chain E + 1 and E). An xpbd element spans p
// segments; scr takes each segment as a linear element.
//
// A node frame's d3 is the rod's tangent at the node: exact for straight and helix, the bisector of
// the adjacent segments for a polyline (the segment itself at the two ends), as given otherwise. A
// graph's node has the frame of its first (lowest) segment.
#pragma once

#include <stdint.h>

#include "solvers/base/arena.h"
#include "solvers/base/status.h"
#include "solvers/math/quat.h"
#include "solvers/model/scene.h"

typedef struct rw_rods_counts {
    int32_t element_count; // elements of `order`; graph: segments
    int32_t node_count;
    int32_t segment_count;
    int32_t bend_count;
} rw_rods_counts;

typedef struct rw_rods_geometry {
    rw_rods_counts counts;
    double* position;      // as created, world [m] (nodes x 3)
    double* rotation;      // node frames as created, unit quaternions (nodes x 4)
    double* rest_position; // rest shape without rest_curvature, lengths scaled to rest_length [m]
                           // (nodes x 3); graph: as created
    double* rest_rotation; // node frames of the rest shape (nodes x 4)
    double* rest_length;   // of each segment [m] (segments)
    double* rest_arc;      // rest length before segment i [m] (segments + 1); the last is the whole
    double* node_mass;     // lumped: half of each adjacent segment, or as given [kg] (nodes)
    double* node_length;   // rest length that belongs to the node: half of each segment [m] (nodes)
    int32_t* segment;      // tail and head node (segments x 2)
    int32_t* bend;         // pair of segments (bends x 2)
} rw_rods_geometry;

// A cross-section with its stiffnesses at one place of a rod. Index 1 and 2 are the directions d1
// and d2: i1, ei1 belong to bending ABOUT d1, ga1 to shear ALONG d1.
typedef struct rw_rods_section {
    double area;         // [m^2]
    double i1, i2;       // second moments about d1, d2 [m^4]
    double j;            // torsion constant (Saint-Venant) [m^4]
    double mass;         // density times area [kg/m]
    double ea, ga1, ga2; // [N]
    double ei1, ei2, gj; // [N m^2]
} rw_rods_section;

// Counts elements, nodes, segments and bends of a validated description.
rw_rods_counts rw_rods_count(const rw_rod_desc* desc);

// Writes the nodes as created: `position` (nodes x 3) and node frames `rotation` (nodes x 4), world;
// both are the caller's. Allocates nothing. INVALID_ARGUMENT names what geometry cannot be: ends that
// coincide ("straight.end"), a normal along the rod ("straight.normal"), an empty helix
// ("helix.radius"), coincident neighbours or a fold back ("polyline.positions[3]": the first number of
// node 1), a graph's segment of no length ("graph.segments[6]").
rw_status rw_rods_create_geometry(const rw_rod_desc* desc, double* position, double* rotation,
                                  rw_error* error);

// Returns the material frame of a segment from the node frames that rw_rods_create_geometry wrote:
// halfway between those of its ends, then by the smallest rotation onto the segment; a graph's as
// given, else the smallest rotation of its tail's frame.
rw_quat rw_rods_segment_frame(const rw_rod_desc* desc, int32_t segment, const double* position,
                              const double* rotation);

// Builds everything of rw_rods_geometry in `arena`. Errors as rw_rods_create_geometry, a bend between
// segments that share no vertex ("graph.bends[2]"), a node without mass ("density",
// "graph.vertex_masses[4]"); RESOURCE_EXHAUSTED when the arena is.
rw_status rw_rods_build(const rw_rod_desc* desc, rw_arena* arena, rw_rods_geometry* geometry,
                        rw_error* error);

// Evaluates the section at `u` in [0, 1], the fraction of the elements (a tapered radius is linear
// within an element). A circle has j = 2 i; a rectangle's j is Saint-Venant's series; a general
// section's as given, or i1 + i2 where none is. `stiffness` replaces the moduli; else
// G = shear_modulus or E / (2 (1 + nu)), and GA has the factor shear_factor.
rw_rods_section rw_rods_section_at(const rw_rod_desc* desc, double u);

// Saint-Venant's torsion constant of a rectangle with the sides a and b [m^4], to 1e-12 relative
// (Timoshenko and Goodier, Theory of Elasticity, section 109).
double rw_rods_rectangle_torsion(double a, double b);

// Darboux vector about d1, d2, d3 of `rest_curvature` in element `element` [1/m]; zero without one.
void rw_rods_rest_curvature(const rw_rod_desc* desc, int32_t element, double curvature[3]);
