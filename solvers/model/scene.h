// The description of a scene: what a client wrote, as plain C structs. The server fills them from
// messages; the model validates, copies and keeps them (so that GetScene gives back what was
// written). All arrays and shapes are BORROWED views; the model copies what it keeps. Plain data:
// any thread, one at a time.
//
// Conventions: SI units, right-handed frames, quaternions (w, x, y, z) body-to-world, d3 (local z)
// of a rod frame is its tangent, z of a joint frame is its axis. A `has_x` beside a field says
// that the client gave it; without it the documented default holds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RW_NAME_CAPACITY 64 // 63 characters of [A-Za-z0-9_.:-] and the NUL

typedef struct rw_doubles {
    const double* data;
    size_t count; // doubles, not rows
} rw_doubles;

typedef struct rw_uints {
    const uint32_t* data;
    size_t count;
} rw_uints;

// A frame relative to a body's frame (or to the world).
typedef struct rw_frame {
    double position[3]; // [m]
    double rotation[4]; // unit quaternion
} rw_frame;

#define RW_FRAME_IDENTITY ((rw_frame){.rotation = {1, 0, 0, 0}})

// The kinds of object a world holds; each has its own names and ids.
typedef enum rw_kind {
    RW_KIND_BODY,
    RW_KIND_JOINT,
    RW_KIND_COUPLING,
    RW_KIND_ROD,
    RW_KIND_ATTACHMENT,
    RW_KIND_FORCE,
    RW_KIND_INPUT,
    RW_KIND_COUNT,
} rw_kind;

// ---- Bodies ------------------------------------------------------------------------------------

typedef enum rw_body_kind { RW_BODY_DYNAMIC, RW_BODY_KINEMATIC, RW_BODY_STATIC } rw_body_kind;

typedef enum rw_shape_kind {
    RW_SHAPE_SPHERE,
    RW_SHAPE_CAPSULE,
    RW_SHAPE_BOX,
    RW_SHAPE_CYLINDER,
    RW_SHAPE_PLANE,
    RW_SHAPE_HULL,
    RW_SHAPE_MESH,
} rw_shape_kind;

typedef struct rw_shape_desc {
    rw_shape_kind kind;
    rw_frame frame;         // in the body's frame
    double radius;          // sphere, capsule, cylinder [m]
    double half_length;     // capsule (without caps), cylinder: along local z [m]
    double half_extents[3]; // box [m]
    rw_doubles vertices;    // hull, mesh (n x 3) [m]
    rw_uints triangles;     // mesh (m x 3)
    double density;         // in place of the body's [kg/m^3]; 0: the body's
} rw_shape_desc;

typedef struct rw_body_desc {
    char name[RW_NAME_CAPACITY];
    rw_body_kind kind;
    double mass;       // [kg], > 0 when dynamic
    double inertia[6]; // xx yy zz xy xz yz about the centre of mass, body axes [kg m^2]
    double center_of_mass[3]; // in the body's frame [m]
    double density; // [kg/m^3]: mass, inertia and centre of mass come from the shapes instead;
                    // so they do when a shape has a density of its own
    bool has_mass, has_inertia, has_center_of_mass, has_density;
    double position[3];         // of the body frame's ORIGIN, world [m]
    double rotation[4];         // body-to-world
    double linear_velocity[3];  // of the origin, world [m/s]
    double angular_velocity[3]; // body frame [rad/s]
    const rw_shape_desc* shapes;
    size_t shape_count;
    double friction;          // Coulomb coefficient, default 0
    double restitution;       // 0 to 1, default 0
    uint32_t collision_group; // 0 to 31: its bit in others' masks
    uint32_t collision_mask;  // groups it collides with; default all
} rw_body_desc;

// ---- Joints ------------------------------------------------------------------------------------

typedef enum rw_joint_type {
    RW_JOINT_FIXED,
    RW_JOINT_REVOLUTE,
    RW_JOINT_PRISMATIC,
    RW_JOINT_CYLINDRICAL,
    RW_JOINT_PLANAR,
    RW_JOINT_UNIVERSAL,
    RW_JOINT_SPHERICAL,
    RW_JOINT_DISTANCE,
    RW_JOINT_TYPE_COUNT,
} rw_joint_type;

typedef enum rw_motor_mode {
    RW_MOTOR_NONE,
    RW_MOTOR_POSITION, // stiffness (target - coordinate) - damping rate
    RW_MOTOR_VELOCITY, // damping (target - rate)
    RW_MOTOR_EFFORT,   // target
} rw_motor_mode;

typedef struct rw_motor_desc {
    rw_motor_mode mode;
    double target[4]; // one per coordinate; spherical POSITION: a quaternion
    size_t target_count;
    double stiffness;  // [N/m or N m/rad]
    double damping;    // [N s/m or N m s/rad]
    double max_effort; // [N or N m], per coordinate
    bool has_max_effort;
} rw_motor_desc;

typedef struct rw_joint_desc {
    char name[RW_NAME_CAPACITY];
    rw_joint_type type;
    char parent[RW_NAME_CAPACITY]; // "" is the world
    char child[RW_NAME_CAPACITY];
    rw_frame parent_frame, child_frame; // in the parent's / child's body frame
    double lower_limit, upper_limit;    // scalar joints [m or rad]
    bool has_lower_limit, has_upper_limit;
    double swing_limit; // [rad]
    double twist_lower_limit, twist_upper_limit;
    bool has_swing_limit, has_twist_lower_limit, has_twist_upper_limit;
    double distance; // DISTANCE: [m]; without it the distance at creation
    bool has_distance;
    rw_motor_desc motor;
    double compliance; // of the joint's rows [m/N, rad/(N m)]; 0 = rigid
    double damping;    // viscous, on the free coordinates [N s/m, N m s/rad]
    bool collide_connected; // whether parent and child collide with each other
} rw_joint_desc;

// A gear or mimic row: q_a = ratio q_b + offset, of one coordinate each.
typedef struct rw_coupling_desc {
    char name[RW_NAME_CAPACITY];
    char joint_a[RW_NAME_CAPACITY];
    char joint_b[RW_NAME_CAPACITY];
    uint32_t coordinate_a, coordinate_b; // index into the joint's coordinates
    double ratio, offset;
    double compliance; // 0 = rigid
} rw_coupling_desc;

// ---- Rods --------------------------------------------------------------------------------------

typedef enum rw_rod_method { RW_ROD_ELEMENTS, RW_ROD_RIGID_CHAIN } rw_rod_method;

typedef enum rw_rod_geometry {
    RW_ROD_STRAIGHT,
    RW_ROD_HELIX,
    RW_ROD_POLYLINE,
    RW_ROD_GRAPH,
} rw_rod_geometry;

typedef enum rw_rod_rest {
    RW_REST_DEFAULT, // straight for straight, as created for the others
    RW_REST_STRAIGHT,
    RW_REST_AS_CREATED,
    RW_REST_GIVEN, // `rest_curvature` per element
} rw_rod_rest;

typedef enum rw_section_kind { RW_SECTION_CIRCLE, RW_SECTION_RECTANGLE, RW_SECTION_GENERAL } rw_section_kind;

typedef struct rw_rod_desc {
    char name[RW_NAME_CAPACITY];
    rw_rod_geometry geometry;
    rw_rod_method method;
    uint32_t elements; // straight, helix; polyline: from its node count and order
    uint32_t order;    // 1, 2, 3; nodes = elements * order + 1

    struct {
        double start[3], end[3]; // [m]
        double normal[3];        // d1; without it the smallest rotation of world z onto the tangent
        bool has_normal;
    } straight;
    struct {
        double center[3], axis[3]; // starts at center + radius * normal; axis default z
        double normal[3]; // from the axis to the start; default: world x turned with the smallest
                          // rotation of world z to the axis
        bool has_normal;
        double radius, pitch; // [m], [m per turn]; pitch 0 is a ring
        double turns;         // > 0 counter-clockwise about the axis, < 0 clockwise
    } helix;
    struct {
        rw_doubles positions; // (n x 3)
        rw_doubles rotations; // (n x 4) node frames, or empty: smallest rotations along the tangents
        double normal[3];     // d1 of the first frame where rotations are absent
        bool has_normal;
    } polyline;
    struct {
        rw_doubles positions;             // (n x 3) [m]
        rw_uints segments;                // (m x 2) vertices
        rw_uints bends;                   // (k x 2) segments; empty: consecutive ones of each chain
        rw_doubles vertex_masses;         // (n) [kg]
        rw_doubles segment_stiffness;     // (m) k_s [J] (= EA l)
        rw_doubles segment_rest_lengths;  // (m) [m]; empty: as created
        rw_doubles segment_rotations;     // (m x 4); empty: smallest rotations, transported
        rw_doubles bend_stiffness;        // (k) k_b [J] (= 4 EI / l)
        rw_doubles bend_rest_rotations;   // (k x 4); empty: as created
    } graph;

    rw_rod_rest rest;
    double rest_length; // total; other than the geometric length creates it stretched
    bool has_rest_length;
    // Darboux vector about d1, d2, d3 [1/m], (3) or (elements x 3), added to the rest shape's; empty: 0
    rw_doubles rest_curvature;

    rw_section_kind section;
    rw_doubles section_radius; // one value, or elements + 1 values: tapered [m]
    double section_width, section_height;                  // along d1, d2 [m]
    double section_area, section_i1, section_i2, section_j; // [m^2], [m^4]
    double density;                       // [kg/m^3]
    double young_modulus, poisson_ratio;  // [Pa], -
    double shear_modulus; // [Pa]; without it E / (2 (1 + nu))
    double shear_factor;  // on GA, (0, 1], default 1
    bool has_young_modulus, has_poisson_ratio, has_shear_modulus;
    struct {
        double ea, ga1, ga2;  // [N]
        double ei1, ei2, gj;  // [N m^2]
    } stiffness;
    bool has_stiffness; // replaces the moduli

    double damping;      // Kelvin-Voigt time [s]
    double mass_damping; // [1/s], on node velocities against rest
    double drag;           // per length against the wind [N s/m^2]
    double quadratic_drag; // per length, times |v| v [N s^2/m^3]
    rw_doubles linear_velocity;  // (3) of all nodes, or (n x 3), world [m/s]; empty: 0
    rw_doubles angular_velocity; // (3) of all nodes, or (n x 3), node axes [rad/s]; empty: 0
    double friction, restitution;
    uint32_t collision_group, collision_mask; // mask default 0: no collision
    bool self_collision;
    double contact_radius; // [m]; 0: the section's
} rw_rod_desc;

// ---- Attachments, forces, inputs ---------------------------------------------------------------

typedef enum rw_attachment_kind {
    RW_ATTACH_PIN,
    RW_ATTACH_CLAMP,
    RW_ATTACH_PIN_SEGMENT,
} rw_attachment_kind;

typedef struct rw_attachment_desc {
    char name[RW_NAME_CAPACITY];
    char rod[RW_NAME_CAPACITY];
    rw_attachment_kind kind;
    double s;      // nearest node at this fraction of the rest length, [0, 1]
    uint32_t node; // or the node itself (graph: the vertex)
    bool has_s, has_node;
    char body[RW_NAME_CAPACITY];       // "" is the world
    double position[3]; // anchor in the body's frame; without it: where the node is
    double rotation[4]; // clamp frame in the body's frame; without it: as the node's frame is
    bool has_position, has_rotation;
    double compliance; // [m/N, rad/(N m)]; 0 = rigid
} rw_attachment_desc;

typedef enum rw_force_kind { RW_FORCE_SPRING_DAMPER, RW_FORCE_LOAD, RW_FORCE_DRAG } rw_force_kind;

typedef enum rw_load_frame { RW_LOAD_WORLD, RW_LOAD_BODY } rw_load_frame;

// Where a force acts: a point of a body, of a rod (node nearest to s), or of the world.
typedef struct rw_point_desc {
    char body[RW_NAME_CAPACITY];
    char rod[RW_NAME_CAPACITY];
    double position[3]; // in the body's frame, or in the world when neither is named
    double s; // [0, 1] of the rod's rest length, the nearest node
    uint32_t node;
    bool has_s, has_node;
} rw_point_desc;

typedef struct rw_force_desc {
    char name[RW_NAME_CAPACITY];
    rw_force_kind kind;
    struct {
        rw_point_desc a, b;
        double stiffness, damping; // [N/m], [N s/m]
        double rest_length;        // [m]; without it the length at creation
        bool has_rest_length;
    } spring_damper;
    struct {
        rw_point_desc at;
        double force[3], torque[3]; // [N], [N m]
        rw_load_frame frame;        // WORLD: dead force, fixed moment; BODY: follower
    } load;
    struct {
        rw_point_desc at;         // a body; acts at its centre of mass
        double linear, quadratic; // force = -(linear + quadratic |v|) v, v against the wind
        double angular;           // torque = -angular omega [N m s]
    } drag;
} rw_force_desc;

typedef enum rw_input_kind { RW_INPUT_PIECEWISE_LINEAR, RW_INPUT_CUBIC, RW_INPUT_SINE } rw_input_kind;

typedef struct rw_input_desc {
    char name[RW_NAME_CAPACITY];
    char target[16 + RW_NAME_CAPACITY]; // "wind", "gravity", "joint/NAME", "attachment/NAME", ...
    rw_input_kind kind;
    rw_doubles time;  // (n) strictly increasing [s]; held constant before and after
    rw_doubles value; // (n x width)
    rw_doubles slope; // cubic: (n x width) per second: Hermite; empty: natural spline
    rw_doubles amplitude; // sine: (width); value = offset + amplitude sin(2 pi frequency t + phase)
    rw_doubles offset;    // sine: (width) or empty
    double frequency;     // [Hz]
    double phase;         // [rad]
} rw_input_desc;

// ---- Solvers and the whole scene ---------------------------------------------------------------

typedef enum rw_solver_kind { RW_SOLVER_XPBD, RW_SOLVER_DAE, RW_SOLVER_SCR } rw_solver_kind;

typedef enum rw_integrator {
    RW_INTEGRATOR_EULER,
    RW_INTEGRATOR_SYMPLECTIC_EULER,
    RW_INTEGRATOR_RK4,
    RW_INTEGRATOR_RK45,
    RW_INTEGRATOR_BDF,
} rw_integrator;

typedef enum rw_stabilization {
    RW_STABILIZATION_NONE,
    RW_STABILIZATION_BAUMGARTE,
    RW_STABILIZATION_PROJECTION,
} rw_stabilization;

typedef enum rw_scr_lambda { RW_LAMBDA_EXACT, RW_LAMBDA_APPROXIMATE } rw_scr_lambda;

typedef enum rw_scr_order {
    RW_SCR_ORDER_COLOURED, // sweep by colour, then by index
    RW_SCR_ORDER_INDEX,    // sweep in index order, as reference data do; serial
} rw_scr_order;

typedef enum rw_device { RW_DEVICE_AUTO, RW_DEVICE_CPU, RW_DEVICE_GPU } rw_device;

typedef struct rw_solver_options {
    rw_solver_kind rigid; // XPBD or DAE
    rw_solver_kind rods;  // XPBD or SCR
    rw_device device;     // where rod sets may be solved
    bool fast;            // permits results whose bits differ between devices
    struct {
        double compliance;    // XPBD [m/N], default 0
        double stiffness;     // DAE [N/m], default 1e6
        double damping;       // DAE, Hunt-Crossley [s/m], default 0.5
        double slip_velocity; // DAE: friction grows linearly below it [m/s], default 1e-3
        double margin;        // distance at which a pair becomes a candidate [m], default 0.01
    } contact;
    struct {
        uint32_t iterations;       // default 1
        double residual_tolerance; // relative, 0 = off
    } xpbd;
    struct {
        rw_integrator integrator;
        double relative_tolerance, absolute_tolerance;
        rw_stabilization stabilization;
        double baumgarte_alpha, baumgarte_beta; // [1/s]; default 1/(10 h)
        bool has_baumgarte_alpha, has_baumgarte_beta;
    } dae;
    struct {
        uint32_t iterations;       // default 8; the most, when a tolerance is given
        double residual_tolerance; // relative, 0 = off
        rw_scr_lambda lambda;
        rw_scr_order order;
        bool initial_guess_adaptive; // start from prediction or last position, whichever is lower
    } scr;
} rw_solver_options;

typedef struct rw_scene {
    char name[256]; // free text
    double gravity[3];
    double wind[3]; // [m/s]
    double time_step;
    uint32_t substeps;
    rw_solver_options solver;
    const rw_body_desc* bodies;
    size_t body_count;
    const rw_joint_desc* joints;
    size_t joint_count;
    const rw_coupling_desc* couplings;
    size_t coupling_count;
    const rw_rod_desc* rods;
    size_t rod_count;
    const rw_attachment_desc* attachments;
    size_t attachment_count;
    const rw_force_desc* forces;
    size_t force_count;
    const rw_input_desc* inputs;
    size_t input_count;
} rw_scene;

// Descriptions with every documented default filled in.
void rw_scene_init(rw_scene* scene);
void rw_scene_init_body(rw_body_desc* desc);
void rw_scene_init_joint(rw_joint_desc* desc);
void rw_scene_init_coupling(rw_coupling_desc* desc);
void rw_scene_init_rod(rw_rod_desc* desc);
void rw_scene_init_attachment(rw_attachment_desc* desc);
void rw_scene_init_force(rw_force_desc* desc);
void rw_scene_init_input(rw_input_desc* desc);
