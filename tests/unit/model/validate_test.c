// Scenes with one fault each: every fault must be found, with its status and the path of the field.
#include "tests/support/rw_test.h"

#include "solvers/model/model.h"
#include "solvers/model/validate.h"
#include "tests/support/full_scene.h"

// label, status, path, what spoils the scene `s`
#define BAD_SCENES(X)                                                                              \
    X(name_too_long, INVALID_ARGUMENT, "name", memset(s->scene.name, 'a', sizeof s->scene.name))   \
    X(gravity_nan, INVALID_ARGUMENT, "gravity[1]", s->scene.gravity[1] = NAN)                      \
    X(gravity_huge, INVALID_ARGUMENT, "gravity[2]", s->scene.gravity[2] = 1e31)                    \
    X(wind_infinite, INVALID_ARGUMENT, "wind[0]", s->scene.wind[0] = INFINITY)                     \
    X(step_zero, INVALID_ARGUMENT, "time_step", s->scene.time_step = 0)                            \
    X(step_negative, INVALID_ARGUMENT, "time_step", s->scene.time_step = -1)                       \
    X(step_nan, INVALID_ARGUMENT, "time_step", s->scene.time_step = NAN)                           \
    X(step_tiny, INVALID_ARGUMENT, "time_step", s->scene.time_step = 1e-16)                        \
    X(step_long, INVALID_ARGUMENT, "time_step", s->scene.time_step = 10)                           \
    X(substeps_none, INVALID_ARGUMENT, "substeps", s->scene.substeps = 0)                          \
    X(substeps_many, INVALID_ARGUMENT, "substeps", s->scene.substeps = 1001)                       \
    X(rigid_scr, INVALID_ARGUMENT, "solver.rigid", s->scene.solver.rigid = RW_SOLVER_SCR)          \
    X(rods_dae, INVALID_ARGUMENT, "solver.rods", s->scene.solver.rods = RW_SOLVER_DAE)             \
    X(device, INVALID_ARGUMENT, "solver.device", s->scene.solver.device = (rw_device)3)            \
    X(xpbd_none, INVALID_ARGUMENT, "solver.xpbd.iterations", s->scene.solver.xpbd.iterations = 0)  \
    X(xpbd_residual, INVALID_ARGUMENT, "solver.xpbd.residual_tolerance",                           \
      s->scene.solver.xpbd.residual_tolerance = 1)                                                 \
    X(integrator, INVALID_ARGUMENT, "solver.dae.integrator",                                       \
      s->scene.solver.dae.integrator = (rw_integrator)5)                                           \
    X(relative, INVALID_ARGUMENT, "solver.dae.relative_tolerance",                                 \
      s->scene.solver.dae.relative_tolerance = 0)                                                  \
    X(absolute, INVALID_ARGUMENT, "solver.dae.absolute_tolerance",                                 \
      s->scene.solver.dae.absolute_tolerance = 1)                                                  \
    X(stabilization, INVALID_ARGUMENT, "solver.dae.stabilization",                                 \
      s->scene.solver.dae.stabilization = (rw_stabilization)7)                                     \
    X(alpha_times_step, INVALID_ARGUMENT, "solver.dae.baumgarte_alpha",                            \
      s->scene.solver.dae.baumgarte_alpha = 1501)                                                  \
    X(alpha_negative, INVALID_ARGUMENT, "solver.dae.baumgarte_alpha",                              \
      s->scene.solver.dae.baumgarte_alpha = -1)                                                    \
    X(beta_nan, INVALID_ARGUMENT, "solver.dae.baumgarte_beta",                                     \
      s->scene.solver.dae.baumgarte_beta = NAN)                                                    \
    X(scr_none, INVALID_ARGUMENT, "solver.scr.iterations", s->scene.solver.scr.iterations = 0)     \
    X(scr_residual, INVALID_ARGUMENT, "solver.scr.residual_tolerance",                             \
      s->scene.solver.scr.residual_tolerance = -1e-3)                                              \
    X(contact_stiffness, INVALID_ARGUMENT, "solver.contact.stiffness",                             \
      s->scene.solver.contact.stiffness = 0)                                                       \
    X(contact_margin, INVALID_ARGUMENT, "solver.contact.margin",                                   \
      s->scene.solver.contact.margin = -1)                                                         \
    /* bodies */                                                                                   \
    X(body_unnamed, INVALID_ARGUMENT, "bodies[0].name", s->bodies[0].name[0] = 0)                  \
    X(body_slash, INVALID_ARGUMENT, "bodies[1].name", FULL_NAME(s->bodies[1].name, "a/b"))         \
    X(body_long_name, INVALID_ARGUMENT, "bodies[1].name", memset(s->bodies[1].name, 'n', 64))      \
    X(body_twice, ALREADY_EXISTS, "bodies[1].name", FULL_NAME(s->bodies[1].name, "link"))          \
    X(body_kind, INVALID_ARGUMENT, "bodies[0].kind", s->bodies[0].kind = (rw_body_kind)9)          \
    X(mass_none, INVALID_ARGUMENT, "bodies[0].mass", s->bodies[0].mass = 0)                        \
    X(mass_negative, INVALID_ARGUMENT, "bodies[0].mass", s->bodies[0].mass = -2)                   \
    X(mass_nan, INVALID_ARGUMENT, "bodies[0].mass", s->bodies[0].mass = NAN)                       \
    X(mass_tiny, INVALID_ARGUMENT, "bodies[0].mass", s->bodies[0].mass = 1e-300)                   \
    X(inertia_zero, INVALID_ARGUMENT, "bodies[0].inertia",                                         \
      memset(s->bodies[0].inertia, 0, sizeof s->bodies[0].inertia))                                \
    X(inertia_indefinite, INVALID_ARGUMENT, "bodies[0].inertia", s->bodies[0].inertia[3] = 0.2)    \
    X(inertia_triangle, INVALID_ARGUMENT, "bodies[0].inertia", s->bodies[0].inertia[2] = 0.3)      \
    X(inertia_nan, INVALID_ARGUMENT, "bodies[0].inertia[5]", s->bodies[0].inertia[5] = NAN)        \
    X(com_infinite, INVALID_ARGUMENT, "bodies[0].center_of_mass[2]",                               \
      s->bodies[0].center_of_mass[2] = INFINITY)                                                   \
    X(body_position, INVALID_ARGUMENT, "bodies[0].position[0]", s->bodies[0].position[0] = NAN)    \
    X(rotation_zero, INVALID_ARGUMENT, "bodies[0].rotation",                                       \
      memset(s->bodies[0].rotation, 0, sizeof s->bodies[0].rotation))                              \
    X(rotation_long, INVALID_ARGUMENT, "bodies[0].rotation", s->bodies[0].rotation[0] = 0.51)      \
    X(rotation_nan, INVALID_ARGUMENT, "bodies[0].rotation[3]", s->bodies[0].rotation[3] = NAN)     \
    X(body_velocity, INVALID_ARGUMENT, "bodies[0].linear_velocity[1]",                             \
      s->bodies[0].linear_velocity[1] = NAN)                                                       \
    X(body_spin, INVALID_ARGUMENT, "bodies[0].angular_velocity[0]",                                \
      s->bodies[0].angular_velocity[0] = 1e40)                                                     \
    X(static_moves, INVALID_ARGUMENT, "bodies[3].linear_velocity",                                 \
      s->bodies[3].linear_velocity[0] = 1)                                                         \
    X(static_turns, INVALID_ARGUMENT, "bodies[3].angular_velocity",                                \
      s->bodies[3].angular_velocity[0] = 1)                                                        \
    X(density_zero, INVALID_ARGUMENT, "bodies[1].density", s->bodies[1].density = 0)               \
    X(density_and_mass, INVALID_ARGUMENT, "bodies[1].density", s->bodies[1].has_mass = true)       \
    X(density_alone, INVALID_ARGUMENT, "bodies[1].density", s->bodies[1].shape_count = 0)          \
    X(density_of_shape, INVALID_ARGUMENT, "bodies[1].shapes[2].density", s->shapes[3].density = -1) \
    X(density_of_shape_and_mass, INVALID_ARGUMENT, "bodies[0].density", s->shapes[0].density = 5)  \
    X(friction_negative, INVALID_ARGUMENT, "bodies[0].friction", s->bodies[0].friction = -0.1)     \
    X(restitution_high, INVALID_ARGUMENT, "bodies[0].restitution",                                 \
      s->bodies[0].restitution = 1.01)                                                             \
    X(group_high, INVALID_ARGUMENT, "bodies[0].collision_group",                                   \
      s->bodies[0].collision_group = 32)                                                           \
    X(shapes_many, INVALID_ARGUMENT, "bodies[0].shapes", s->bodies[0].shape_count = 257)           \
    X(shape_kind, INVALID_ARGUMENT, "bodies[0].shapes[0].geometry",                                \
      s->shapes[0].kind = (rw_shape_kind)7)                                                        \
    X(capsule_radius, INVALID_ARGUMENT, "bodies[0].shapes[0].capsule.radius",                      \
      s->shapes[0].radius = 0)                                                                     \
    X(capsule_length, INVALID_ARGUMENT, "bodies[0].shapes[0].capsule.half_length",                 \
      s->shapes[0].half_length = -1)                                                               \
    X(shape_rotation, INVALID_ARGUMENT, "bodies[0].shapes[0].rotation",                            \
      s->shapes[0].frame.rotation[0] = 2)                                                          \
    X(shape_position, INVALID_ARGUMENT, "bodies[0].shapes[0].position[1]",                         \
      s->shapes[0].frame.position[1] = NAN)                                                        \
    X(sphere_radius, INVALID_ARGUMENT, "bodies[1].shapes[0].sphere.radius",                        \
      s->shapes[1].radius = -1)                                                                    \
    X(box_extent, INVALID_ARGUMENT, "bodies[1].shapes[1].box.half_extents[2]",                     \
      s->shapes[2].half_extents[2] = 0)                                                            \
    X(cylinder_length, INVALID_ARGUMENT, "bodies[1].shapes[2].cylinder.half_length",               \
      s->shapes[3].half_length = 0)                                                                \
    X(hull_small, INVALID_ARGUMENT, "bodies[1].shapes[3].hull.vertices",                           \
      s->shapes[4].vertices.count = 9)                                                             \
    X(hull_odd, INVALID_ARGUMENT, "bodies[1].shapes[3].hull.vertices",                             \
      s->shapes[4].vertices.count = 11)                                                            \
    X(hull_flat, INVALID_ARGUMENT, "bodies[1].shapes[3].hull.vertices", s->hull_vertices[11] = 0)  \
    X(hull_flat_with_mass, INVALID_ARGUMENT, "bodies[0].shapes[0].hull.vertices",                  \
      (s->shapes[0] = s->shapes[4], s->hull_vertices[11] = 0))                                     \
    X(plane_dynamic, INVALID_ARGUMENT, "bodies[1].shapes[0].plane",                                \
      s->shapes[1].kind = RW_SHAPE_PLANE)                                                          \
    X(mesh_index, OUT_OF_RANGE, "bodies[3].shapes[1].mesh.triangles[4]",                           \
      s->mesh_triangles[4] = 4)                                                                    \
    X(mesh_vertex, INVALID_ARGUMENT, "bodies[3].shapes[1].mesh.vertices[7]",                       \
      s->mesh_vertices[7] = NAN)                                                                   \
    X(mesh_empty, INVALID_ARGUMENT, "bodies[3].shapes[1].mesh.triangles",                          \
      s->shapes[6].triangles.count = 0)                                                            \
    X(mesh_open, INVALID_ARGUMENT, "bodies[3].shapes[1].mesh.triangles",                           \
      s->shapes[6].triangles.count = 9, s->bodies[3].density = 1, s->bodies[3].has_density = true) \
    X(mesh_inside_out, INVALID_ARGUMENT, "bodies[3].shapes[1].mesh.triangles",                     \
      FULL_INDICES(s->mesh_triangles, 0, 1, 2, 0, 3, 1, 1, 3, 2, 2, 3, 0),                         \
      s->bodies[3].density = 1, s->bodies[3].has_density = true)                                   \
    X(plane_alone, INVALID_ARGUMENT, "bodies[3].shapes", s->bodies[3].shape_count = 1,             \
      s->bodies[3].density = 1, s->bodies[3].has_density = true)                                   \
    /* joints and couplings */                                                                     \
    X(joint_unnamed, INVALID_ARGUMENT, "joints[0].name", s->joints[0].name[0] = 0)                 \
    X(joint_twice, ALREADY_EXISTS, "joints[1].name", FULL_NAME(s->joints[1].name, "shoulder"))     \
    X(joint_type, INVALID_ARGUMENT, "joints[0].type", s->joints[0].type = RW_JOINT_TYPE_COUNT)     \
    X(child_unknown, NOT_FOUND, "joints[0].child", FULL_NAME(s->joints[0].child, "nobody"))        \
    X(parent_unknown, NOT_FOUND, "joints[1].parent", FULL_NAME(s->joints[1].parent, "nobody"))     \
    X(joint_to_itself, INVALID_ARGUMENT, "joints[1].child", FULL_NAME(s->joints[1].child, "link")) \
    X(joint_in_air, INVALID_ARGUMENT, "joints[0].child", s->joints[0].child[0] = 0)                \
    X(frame_rotation, INVALID_ARGUMENT, "joints[0].parent_frame.rotation",                         \
      s->joints[0].parent_frame.rotation[1] = 0)                                                   \
    X(frame_position, INVALID_ARGUMENT, "joints[0].child_frame.position[2]",                       \
      s->joints[0].child_frame.position[2] = NAN)                                                  \
    X(limits_crossed, INVALID_ARGUMENT, "joints[0].upper_limit", s->joints[0].upper_limit = -3)    \
    X(limit_nan, INVALID_ARGUMENT, "joints[0].lower_limit", s->joints[0].lower_limit = NAN)        \
    X(limit_spherical, INVALID_ARGUMENT, "joints[1].lower_limit",                                  \
      s->joints[1].has_lower_limit = true)                                                         \
    X(swing_revolute, INVALID_ARGUMENT, "joints[0].swing_limit", s->joints[0].swing_limit = 1,     \
      s->joints[0].has_swing_limit = true)                                                         \
    X(swing_wide, INVALID_ARGUMENT, "joints[1].swing_limit", s->joints[1].swing_limit = 3.15)      \
    X(twist_crossed, INVALID_ARGUMENT, "joints[1].twist_upper_limit",                              \
      s->joints[1].twist_upper_limit = -1.5)                                                       \
    X(distance_negative, INVALID_ARGUMENT, "joints[3].distance", s->joints[3].distance = -1)       \
    X(distance_elsewhere, INVALID_ARGUMENT, "joints[0].distance",                                  \
      s->joints[0].has_distance = true)                                                            \
    X(motor_mode, INVALID_ARGUMENT, "joints[0].motor.mode",                                        \
      s->joints[0].motor.mode = (rw_motor_mode)4)                                                  \
    X(motor_nothing, INVALID_ARGUMENT, "joints[3].motor.mode",                                     \
      s->joints[3].motor.mode = RW_MOTOR_EFFORT)                                                   \
    X(motor_targets, INVALID_ARGUMENT, "joints[0].motor.target",                                   \
      s->joints[0].motor.target_count = 2)                                                         \
    X(motor_target_nan, INVALID_ARGUMENT, "joints[0].motor.target[0]",                             \
      s->joints[0].motor.target[0] = NAN)                                                          \
    X(motor_quaternion, INVALID_ARGUMENT, "joints[1].motor.target",                                \
      s->joints[1].motor.target[0] = 0)                                                            \
    X(motor_stiffness, INVALID_ARGUMENT, "joints[0].motor.stiffness",                              \
      s->joints[0].motor.stiffness = -1)                                                           \
    X(motor_damping, INVALID_ARGUMENT, "joints[0].motor.damping", s->joints[0].motor.damping = -1) \
    X(motor_effort, INVALID_ARGUMENT, "joints[0].motor.max_effort",                                \
      s->joints[0].motor.max_effort = -1)                                                          \
    X(joint_compliance, INVALID_ARGUMENT, "joints[0].compliance", s->joints[0].compliance = -1)    \
    X(joint_damping, INVALID_ARGUMENT, "joints[0].damping", s->joints[0].damping = NAN)            \
    X(coupling_unknown, NOT_FOUND, "couplings[0].joint_b",                                         \
      FULL_NAME(s->couplings[0].joint_b, "elbow"))                                                 \
    X(coupling_unnamed_joint, INVALID_ARGUMENT, "couplings[0].joint_a",                            \
      s->couplings[0].joint_a[0] = 0)                                                              \
    X(coupling_spherical, INVALID_ARGUMENT, "couplings[0].joint_b",                                \
      FULL_NAME(s->couplings[0].joint_b, "wrist"))                                                 \
    X(coupling_coordinate, OUT_OF_RANGE, "couplings[0].coordinate_b",                              \
      s->couplings[0].coordinate_b = 1)                                                            \
    X(coupling_ratio, INVALID_ARGUMENT, "couplings[0].ratio", s->couplings[0].ratio = 0)           \
    X(coupling_offset, INVALID_ARGUMENT, "couplings[0].offset", s->couplings[0].offset = NAN)      \
    X(coupling_itself, INVALID_ARGUMENT, "couplings[0].joint_b",                                   \
      FULL_NAME(s->couplings[0].joint_b, "shoulder"))                                              \
    /* rods */                                                                                     \
    X(rod_unnamed, INVALID_ARGUMENT, "rods[0].name", s->rods[0].name[0] = 0)                       \
    X(rod_twice, ALREADY_EXISTS, "rods[3].name", FULL_NAME(s->rods[3].name, "cable"))              \
    X(rod_elements, INVALID_ARGUMENT, "rods[0].elements", s->rods[0].elements = 0)                 \
    X(rod_elements_many, INVALID_ARGUMENT, "rods[0].elements", s->rods[0].elements = 1000001)      \
    X(rod_order, INVALID_ARGUMENT, "rods[0].order", s->rods[0].order = 4)                          \
    X(chain_order, INVALID_ARGUMENT, "rods[1].order", s->rods[1].method = RW_ROD_RIGID_CHAIN)      \
    X(rod_point, INVALID_ARGUMENT, "rods[0].straight.end", s->rods[0].straight.end[2] = 1)         \
    X(rod_start, INVALID_ARGUMENT, "rods[0].straight.start[0]", s->rods[0].straight.start[0] = NAN)\
    X(rod_normal, INVALID_ARGUMENT, "rods[0].straight.normal",                                     \
      FULL_SET(s->rods[0].straight.normal, 0, 0, 2))                                               \
    X(helix_axis, INVALID_ARGUMENT, "rods[1].helix.axis", s->rods[1].helix.axis[1] = 0)            \
    X(helix_radius, INVALID_ARGUMENT, "rods[1].helix.radius", s->rods[1].helix.radius = 0)         \
    X(helix_turns, INVALID_ARGUMENT, "rods[1].helix.turns", s->rods[1].helix.turns = 0)            \
    X(helix_pitch, INVALID_ARGUMENT, "rods[1].helix.pitch", s->rods[1].helix.pitch = NAN)          \
    X(polyline_odd, INVALID_ARGUMENT, "rods[2].polyline.positions",                                \
      s->rods[2].polyline.positions.count = 14)                                                    \
    X(polyline_order, INVALID_ARGUMENT, "rods[2].polyline.positions", s->rods[2].order = 3)        \
    X(polyline_elements, INVALID_ARGUMENT, "rods[2].elements", s->rods[2].elements = 3)            \
    X(polyline_double, INVALID_ARGUMENT, "rods[2].polyline.positions[6]",                          \
      memcpy(s->line_positions + 6, s->line_positions + 3, 3 * sizeof(double)))                    \
    X(polyline_nan, INVALID_ARGUMENT, "rods[2].polyline.positions[8]", s->line_positions[8] = NAN) \
    X(polyline_rotations, INVALID_ARGUMENT, "rods[2].polyline.rotations",                          \
      s->rods[2].polyline.rotations.count = 16)                                                    \
    X(polyline_rotation, INVALID_ARGUMENT, "rods[2].polyline.rotations[8]",                        \
      s->line_rotations[9] = 0)                                                                    \
    X(polyline_normal, INVALID_ARGUMENT, "rods[2].polyline.normal",                                \
      s->rods[2].polyline.has_normal = true)                                                       \
    X(graph_segment, OUT_OF_RANGE, "rods[3].graph.segments[3]", s->net_segments[3] = 4)            \
    X(graph_loop, INVALID_ARGUMENT, "rods[3].graph.segments[2]", s->net_segments[3] = 1)           \
    X(graph_segments_odd, INVALID_ARGUMENT, "rods[3].graph.segments",                              \
      s->rods[3].graph.segments.count = 5)                                                         \
    X(graph_bend, OUT_OF_RANGE, "rods[3].graph.bends[2]", s->net_bends[2] = 3)                     \
    X(graph_bend_apart, INVALID_ARGUMENT, "rods[3].graph.bends[2]", s->net_bends[3] = 0)           \
    X(graph_masses, INVALID_ARGUMENT, "rods[3].graph.vertex_masses",                               \
      s->rods[3].graph.vertex_masses.count = 3)                                                    \
    X(graph_mass, INVALID_ARGUMENT, "rods[3].graph.vertex_masses[2]", s->net_masses[2] = 0)        \
    X(graph_stiffness, INVALID_ARGUMENT, "rods[3].graph.segment_stiffness[1]",                     \
      s->net_stiffness[1] = -1)                                                                    \
    X(graph_length, INVALID_ARGUMENT, "rods[3].graph.segment_rest_lengths[0]",                     \
      s->net_lengths[0] = 0)                                                                       \
    X(graph_rotation, INVALID_ARGUMENT, "rods[3].graph.segment_rotations[4]",                      \
      s->net_rotations[4] = 0)                                                                     \
    X(graph_bend_stiffness, INVALID_ARGUMENT, "rods[3].graph.bend_stiffness[1]",                   \
      s->net_bend_stiffness[1] = -8)                                                               \
    X(graph_bend_rotation, INVALID_ARGUMENT, "rods[3].graph.bend_rest_rotations[0]",               \
      s->net_bend_rotations[0] = 0)                                                                \
    X(graph_elements, INVALID_ARGUMENT, "rods[3].elements", s->rods[3].elements = 3)               \
    X(graph_needs_section, INVALID_ARGUMENT, "rods[3].section",                                    \
      s->rods[3].graph.segment_stiffness.count = 0)                                                \
    X(rest_curvature_length, INVALID_ARGUMENT, "rods[0].rest_curvature",                           \
      s->rods[0].rest_curvature.count = 6)                                                         \
    X(rest_curvature_none, INVALID_ARGUMENT, "rods[0].rest_curvature",                             \
      s->rods[0].rest_curvature.count = 0)                                                         \
    X(rest_curvature_nan, INVALID_ARGUMENT, "rods[0].rest_curvature[4]", s->cable_curvature[4] = NAN) \
    X(rest_length, INVALID_ARGUMENT, "rods[0].rest_length", s->rods[0].rest_length = 0)            \
    X(rest_kind, INVALID_ARGUMENT, "rods[0].rest", s->rods[0].rest = (rw_rod_rest)4)               \
    X(section_none, INVALID_ARGUMENT, "rods[0].section", s->rods[0].section_radius.count = 0)      \
    X(section_taper, INVALID_ARGUMENT, "rods[0].section.radius",                                   \
      s->rods[0].section_radius.count = 3)                                                         \
    X(section_taper_value, INVALID_ARGUMENT, "rods[0].section.radius[3]", s->cable_radius[3] = 0)  \
    X(section_one_radius, INVALID_ARGUMENT, "rods[0].section.radius",                              \
      s->rods[0].section_radius.count = 1, s->cable_radius[0] = -1)                                \
    X(section_height, INVALID_ARGUMENT, "rods[2].section.height", s->rods[2].section_height = 0)   \
    X(section_j, INVALID_ARGUMENT, "rods[1].section.j", s->rods[1].section_j = 0)                  \
    X(rod_density, INVALID_ARGUMENT, "rods[0].density", s->rods[0].density = 0)                    \
    X(rod_young, INVALID_ARGUMENT, "rods[0].young_modulus", s->rods[0].young_modulus = -1)         \
    X(rod_poisson, INVALID_ARGUMENT, "rods[0].poisson_ratio", s->rods[0].poisson_ratio = 0.51)     \
    X(rod_poisson_low, INVALID_ARGUMENT, "rods[0].poisson_ratio", s->rods[0].poisson_ratio = -1)   \
    X(rod_shear_both, INVALID_ARGUMENT, "rods[0].shear_modulus", s->rods[0].shear_modulus = 1,     \
      s->rods[0].has_shear_modulus = true)                                                         \
    X(rod_shear_factor, INVALID_ARGUMENT, "rods[0].shear_factor", s->rods[0].shear_factor = 0)     \
    X(rod_stiffness, INVALID_ARGUMENT, "rods[2].stiffness.gj", s->rods[2].stiffness.gj = 0)        \
    X(rod_damping, INVALID_ARGUMENT, "rods[0].damping", s->rods[0].damping = -1)                   \
    X(rod_mass_damping, INVALID_ARGUMENT, "rods[0].mass_damping", s->rods[0].mass_damping = NAN)   \
    X(rod_drag, INVALID_ARGUMENT, "rods[0].drag", s->rods[0].drag = -1)                            \
    X(rod_velocity, INVALID_ARGUMENT, "rods[0].linear_velocity",                                   \
      s->rods[0].linear_velocity.count = 6)                                                        \
    X(rod_spin, INVALID_ARGUMENT, "rods[0].angular_velocity[2]", s->cable_spin[2] = NAN)           \
    X(rod_contact_radius, INVALID_ARGUMENT, "rods[0].contact_radius",                              \
      s->rods[0].contact_radius = -1)                                                              \
    /* attachments */                                                                              \
    X(attachment_rod, NOT_FOUND, "attachments[0].rod", FULL_NAME(s->attachments[0].rod, "wire"))   \
    X(attachment_no_rod, INVALID_ARGUMENT, "attachments[0].rod", s->attachments[0].rod[0] = 0)     \
    X(attachment_body, NOT_FOUND, "attachments[0].body",                                           \
      FULL_NAME(s->attachments[0].body, "nobody"))                                                 \
    X(attachment_s, INVALID_ARGUMENT, "attachments[1].s", s->attachments[1].s = 1.5)               \
    X(attachment_both, INVALID_ARGUMENT, "attachments[1].s", s->attachments[1].has_node = true)    \
    X(attachment_node, OUT_OF_RANGE, "attachments[2].node", s->attachments[2].node = 4)            \
    X(attachment_graph_s, INVALID_ARGUMENT, "attachments[2].node",                                 \
      s->attachments[2].has_node = false)                                                          \
    X(attachment_kind, INVALID_ARGUMENT, "attachments[0].kind",                                    \
      s->attachments[0].kind = (rw_attachment_kind)3)                                              \
    X(attachment_rotation, INVALID_ARGUMENT, "attachments[0].rotation",                            \
      s->attachments[0].rotation[2] = 0)                                                           \
    X(attachment_compliance, INVALID_ARGUMENT, "attachments[0].compliance",                        \
      s->attachments[0].compliance = -1)                                                           \
    /* forces */                                                                                   \
    X(force_twice, ALREADY_EXISTS, "forces[1].name", FULL_NAME(s->forces[1].name, "spring"))       \
    X(force_kind, INVALID_ARGUMENT, "forces[0].law", s->forces[0].kind = (rw_force_kind)3)         \
    X(spring_body, NOT_FOUND, "forces[0].spring_damper.a.body",                                    \
      FULL_NAME(s->forces[0].spring_damper.a.body, "nobody"))                                      \
    X(spring_rod, NOT_FOUND, "forces[0].spring_damper.b.rod",                                      \
      FULL_NAME(s->forces[0].spring_damper.b.rod, "wire"),                                         \
      memset(s->forces[0].spring_damper.b.position, 0, 24))                                        \
    X(spring_both, INVALID_ARGUMENT, "forces[0].spring_damper.a.rod",                              \
      FULL_NAME(s->forces[0].spring_damper.a.rod, "cable"))                                        \
    X(spring_nowhere, INVALID_ARGUMENT, "forces[0].spring_damper.a",                               \
      s->forces[0].spring_damper.a.body[0] = 0)                                                    \
    X(spring_stiffness, INVALID_ARGUMENT, "forces[0].spring_damper.stiffness",                     \
      s->forces[0].spring_damper.stiffness = -1)                                                   \
    X(spring_rest, INVALID_ARGUMENT, "forces[0].spring_damper.rest_length",                        \
      s->forces[0].spring_damper.rest_length = -1)                                                 \
    X(load_nowhere, INVALID_ARGUMENT, "forces[2].load.body", s->forces[2].load.at.body[0] = 0)     \
    X(load_force, INVALID_ARGUMENT, "forces[1].load.force[2]", s->forces[1].load.force[2] = NAN)   \
    X(load_s, INVALID_ARGUMENT, "forces[1].load.s", s->forces[1].load.at.s = -0.1)                 \
    X(load_rod_position, INVALID_ARGUMENT, "forces[1].load.position",                              \
      s->forces[1].load.at.position[0] = 1)                                                        \
    X(drag_body, NOT_FOUND, "forces[3].drag.body", FULL_NAME(s->forces[3].drag.at.body, "kite"))   \
    X(drag_linear, INVALID_ARGUMENT, "forces[3].drag.linear", s->forces[3].drag.linear = -1)       \
    X(drag_angular, INVALID_ARGUMENT, "forces[3].drag.angular",                             \
      s->forces[3].drag.angular = -1)                                                              \
    /* inputs */                                                                                   \
    X(input_target, INVALID_ARGUMENT, "inputs[0].target", FULL_NAME(s->inputs[0].target, "rain"))  \
    X(input_unknown, NOT_FOUND, "inputs[2].target",                                                \
      FULL_NAME(s->inputs[2].target, "attachment/nothing"))                                        \
    X(input_width, INVALID_ARGUMENT, "inputs[0].piecewise_linear.value",                           \
      s->inputs[0].value.count = 4)                                                                \
    X(input_rows, INVALID_ARGUMENT, "inputs[0].piecewise_linear.value",                            \
      s->inputs[0].value.count = 5)                                                                \
    X(input_time_back, INVALID_ARGUMENT, "inputs[1].cubic.time[2]", s->sway_time[2] = 1)           \
    X(input_time_nan, INVALID_ARGUMENT, "inputs[1].cubic.time[1]", s->sway_time[1] = NAN)          \
    X(input_time_none, INVALID_ARGUMENT, "inputs[0].piecewise_linear.time",                        \
      s->inputs[0].time.count = 0)                                                                 \
    X(input_cubic_short, INVALID_ARGUMENT, "inputs[1].cubic.time", s->inputs[1].time.count = 1)    \
    X(input_slope, INVALID_ARGUMENT, "inputs[1].cubic.slope", s->inputs[1].slope.count = 6)        \
    X(input_frequency, INVALID_ARGUMENT, "inputs[2].sine.frequency", s->inputs[2].frequency = -1)  \
    X(input_offset, INVALID_ARGUMENT, "inputs[2].sine.offset", s->inputs[2].offset.count = 2)      \
    X(input_amplitude, INVALID_ARGUMENT, "inputs[2].sine.amplitude",                               \
      s->inputs[2].amplitude.count = 2, s->inputs[2].offset.count = 0)                             \
    X(input_dynamic_body, INVALID_ARGUMENT, "inputs[3].target",                                    \
      FULL_NAME(s->inputs[3].target, "body/link"))                                                 \
    X(input_spring, INVALID_ARGUMENT, "inputs[5].target",                                          \
      FULL_NAME(s->inputs[5].target, "force/spring"))                                              \
    X(input_rigid_joint, INVALID_ARGUMENT, "inputs[4].target",                                     \
      FULL_NAME(s->inputs[4].target, "joint/rope"))                                                \
    X(input_twice, ALREADY_EXISTS, "inputs[5].name", FULL_NAME(s->inputs[5].name, "gust"))

#define SPOIL(label, status, path, ...)                                                            \
    static void spoil_##label(full_scene* s) { __VA_ARGS__; }
BAD_SCENES(SPOIL)

typedef struct bad_scene {
    const char* label;
    rw_status status;
    const char* path;
    void (*spoil)(full_scene* s);
} bad_scene;

#define ROW(label, status, path, ...) {#label, RW_STATUS_##status, path, spoil_##label},
static const bad_scene bad_scenes[] = {BAD_SCENES(ROW)};

static void the_full_scene_is_valid(void** state) {
    (void)state;
    static full_scene s;
    full_scene_init(&s);
    rw_alloc alloc;
    rw_alloc_init(&alloc, 0);
    rw_model model;
    rw_model_init(&model, &alloc);
    rw_error error = {0};
    rw_status status = rw_model_load(&model, &s.scene, &error);
    if (status != RW_STATUS_OK) {
        fail_msg("%s %s: %s", rw_status_name(status), error.path, error.text);
    }
    rw_model_finish(&model);
    rw_alloc_finish(&alloc);
}

static void every_bad_scene_answers_its_status_and_path(void** state) {
    (void)state;
    static full_scene s;
    assert_true(RW_COUNT_OF(bad_scenes) >= 100);
    int wrong = 0;
    for (size_t i = 0; i < RW_COUNT_OF(bad_scenes); i++) {
        const bad_scene* bad = &bad_scenes[i];
        full_scene_init(&s);
        bad->spoil(&s);
        rw_alloc alloc;
        rw_alloc_init(&alloc, 0);
        rw_model model;
        rw_model_init(&model, &alloc);
        rw_error error = {0};
        rw_status status = rw_model_load(&model, &s.scene, &error);
        if (status != bad->status || strcmp(error.path, bad->path) != 0 || error.text[0] == 0 ||
            error.status != status) {
            print_error("%s: %s at \"%s\" (%s), expected %s at \"%s\"\n", bad->label,
                        rw_status_name(status), error.path, error.text,
                        rw_status_name(bad->status), bad->path);
            wrong++;
        }
        // The status must be the same when nobody wants the text.
        rw_model again;
        rw_model_init(&again, &alloc);
        assert_int_equal(rw_model_load(&again, &s.scene, NULL), status);
        rw_model_finish(&again);
        rw_model_finish(&model);
        rw_alloc_finish(&alloc);
    }
    assert_int_equal(wrong, 0);
}

static void the_text_says_what_was_expected_and_what_came(void** state) {
    (void)state;
    static full_scene s;
    full_scene_init(&s);
    s.rods[3].graph.segment_stiffness.count = 0;
    s.rods[3].graph.vertex_masses.count = 0;
    s.rods[0].young_modulus = -1;
    rw_error error = {0};
    assert_int_equal(rw_validate_rod(&s.rods[0], &error), RW_STATUS_INVALID_ARGUMENT);
    assert_string_equal(error.path, "young_modulus");
    assert_string_equal(error.text, "must be > 0, got -1");
}

static void steps_between_a_nanosecond_and_a_second_are_taken(void** state) {
    (void)state;
    static full_scene s;
    const double good[] = {1e-9, 1e-6, 0.001, 0.1, 1};
    for (size_t i = 0; i < RW_COUNT_OF(good); i++) {
        full_scene_init(&s);
        s.scene.time_step = good[i];
        s.scene.solver.dae.has_baumgarte_alpha = false;
        assert_int_equal(rw_validate_options(&s.scene, NULL), RW_STATUS_OK);
    }
}

static void a_rotation_within_tolerance_becomes_unit_and_then_stays(void** state) {
    (void)state;
    double q[4] = {0.70710678, 0, 0.70710678, 0};
    assert_int_equal(rw_validate_rotation(q, "q", NULL), RW_STATUS_OK);
    rw_validate_normalize(q);
    rw_assert_near(q[0] * q[0] + q[2] * q[2], 1, 4e-16);
    double once[4];
    for (int i = 0; i < 1000; i++) {
        double v[4] = {0.1 + 0.37 * i, 0.7 - 0.001 * i * i, 0.3, -0.2 * i};
        double n = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]);
        for (int k = 0; k < 4; k++) {
            v[k] = v[k] / n * (1 + 1e-5);
        }
        rw_validate_normalize(v);
        memcpy(once, v, sizeof once);
        rw_validate_normalize(v);
        assert_memory_equal(once, v, sizeof once);
    }
}

static void inertia_of_a_thin_plate_and_of_a_slender_rod_is_accepted(void** state) {
    (void)state;
    const double plate[6] = {1, 1, 2, 0, 0, 0}; // equality in the triangle inequality
    assert_int_equal(rw_validate_inertia(plate, "i", NULL), RW_STATUS_OK);
    const double rod[6] = {1, 1, 1e-6, 0, 0, 0};
    assert_int_equal(rw_validate_inertia(rod, "i", NULL), RW_STATUS_OK);
    const double line[6] = {1, 1, 0, 0, 0, 0};
    assert_int_equal(rw_validate_inertia(line, "i", NULL), RW_STATUS_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_full_scene_is_valid),
        cmocka_unit_test(every_bad_scene_answers_its_status_and_path),
        cmocka_unit_test(the_text_says_what_was_expected_and_what_came),
        cmocka_unit_test(steps_between_a_nanosecond_and_a_second_are_taken),
        cmocka_unit_test(a_rotation_within_tolerance_becomes_unit_and_then_stays),
        cmocka_unit_test(inertia_of_a_thin_plate_and_of_a_slender_rod_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
