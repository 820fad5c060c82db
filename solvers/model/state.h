// The motion state that all solvers share: where everything is and how fast it moves. A world keeps
// two of them and steps from one into the other, so that a faulted or cancelled step is undone by
// not switching. What one solver alone remembers (multipliers, histories) is in its own struct with
// its own field list (solver.h). Only the thread that runs the world touches it.
//
// Bodies are kept by their CENTRE OF MASS; the protocol speaks of the body frame's origin.
// Rods: nodes are vertices; frames are the material frames: one per SEGMENT in scr, one per NODE in
// xpbd.
#pragma once

#include "solvers/model/field.h"

typedef enum rw_domain {
    RW_DOMAIN_BODY,
    RW_DOMAIN_NODE,
    RW_DOMAIN_FRAME,
    RW_DOMAIN_COUNT,
} rw_domain;

// member, width, domain
#define RW_STATE_FIELDS(F)                                                                         \
    F(body_position, 3, BODY)         /* centre of mass, world [m] */                              \
    F(body_rotation, 4, BODY)         /* body-to-world */                                          \
    F(body_linear_velocity, 3, BODY)  /* of the centre of mass, world [m/s] */                     \
    F(body_angular_velocity, 3, BODY) /* body frame [rad/s] */                                     \
    F(node_position, 3, NODE)         /* world [m] */                                              \
    F(node_velocity, 3, NODE)         /* world [m/s] */                                            \
    F(frame_rotation, 4, FRAME)       /* material frame-to-world, d3 = tangent */                  \
    F(frame_angular_velocity, 3, FRAME) /* in the frame's axes [rad/s]; scr: 0 (quasi-static) */

typedef struct rw_state {
#define RW_STATE_MEMBER(member, width, domain) double* member;
    RW_STATE_FIELDS(RW_STATE_MEMBER)
#undef RW_STATE_MEMBER
} rw_state;

// The list of RW_STATE_FIELDS.
rw_field_list rw_state_fields(void);
