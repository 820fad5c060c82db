"""A good scene and the ways to spoil it: each with the status and the path that a user must see.

An entry is (what, changes, status, path). Changes map paths to values in BASE; a text in place of them is a whole file.
Entries that begin with "file:" are found while the file is read, the others by the daemon.
"""

import copy
import re

GONE = object()  # Removes what the path names.

BASE = {
    "name": "good",
    "time_step": 0.001,
    "solver": {"rods": "SCR", "scr": {"iterations": 4}},
    "bodies": [
        {"name": "a", "mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "shapes": [{"sphere": {"radius": 0.1}}]},
        {"name": "b", "mass": 1.0, "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "position": [1, 0, 0]},
    ],
    "rods": [
        {
            "name": "r",
            "straight": {"start": [0, 0, 1], "end": [1, 0, 1]},
            "elements": 4,
            "section": {"radius": 0.01},
            "density": 1000,
            "young_modulus": 1e6,
        },
        {
            "name": "g",
            "graph": {"positions": [0, 1, 0, 1, 1, 0, 2, 1, 0], "segments": [0, 1, 1, 2], "bends": [0, 1]},
            "section": {"radius": 0.01},
            "density": 1000,
            "young_modulus": 1e6,
        },
    ],
    "attachments": [{"name": "hook", "rod": "r", "s": 0, "kind": "CLAMP"}],
    "forces": [
        {"name": "pull", "load": {"body": "a", "force": [1, 0, 0]}},
        {"name": "spring", "spring_damper": {"a": {"body": "a"}, "b": {"position": [0, 0, 1]}, "stiffness": 10}},
    ],
    "inputs": [{"name": "gust", "target": "wind", "sine": {"amplitude": [1, 0, 0], "frequency": 1}}],
}

_JOINT = {"name": "j", "type": "REVOLUTE", "parent": "a", "child": "b"}
_HULL = {"hull": {"vertices": [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]}}
_MESH = {"mesh": {"vertices": [0, 0, 0, 1, 0, 0, 0, 1, 0], "triangles": [0, 1, 2]}}
INVALID, MISSING, TAKEN, RANGE = "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "OUT_OF_RANGE"


def _joint(**fields):
    return {"joints": [{**_JOINT, **fields}]}


BAD = [
    # --- the file ---
    ("file: not JSON", '{"name": "x"', INVALID, "scene.json:1:13"),
    ("file: empty", "", INVALID, "scene.json:1:1"),
    ("file: a list", "[]", INVALID, "scene.json"),
    ("file: a number", "3", INVALID, "scene.json"),
    ("file: trailing text", "{} {}", INVALID, "scene.json:1:4"),
    ("file: nested without end", "[" * 100000, INVALID, "scene.json"),
    ("file: unknown name", {"gravty": [0, 0, 0]}, INVALID, "gravty"),
    ("file: unknown name in a body", {"bodies[1].mas": 1}, INVALID, "bodies[1].mas"),
    (
        "file: unknown name in a shape",
        {"bodies[0].shapes[0].sphere.radios": 1},
        INVALID,
        "bodies[0].shapes[0].sphere.radios",
    ),
    ("file: unknown name in the solver", {"solver.scr.iteration": 1}, INVALID, "solver.scr.iteration"),
    ("file: unknown name in a load", {"forces[0].load.forces": [1]}, INVALID, "forces[0].load.forces"),
    ("file: unknown solver", {"solver.rods": "FEM"}, INVALID, "solver.rods"),
    ("file: unknown solver number", {"solver.rods": 7}, INVALID, "solver.rods"),
    ("file: unknown body kind", {"bodies[0].kind": "dynamic"}, INVALID, "bodies[0].kind"),
    ("file: unknown joint type", _joint(type="HINGE"), INVALID, "joints[0].type"),
    ("file: text for a number", {"bodies[0].mass": "1"}, INVALID, "bodies[0].mass"),
    ("file: truth for a number", {"time_step": True}, INVALID, "time_step"),
    ("file: object for a number", {"time_step": {}}, INVALID, "time_step"),
    ("file: list for a number", {"rods[0].density": [1000]}, INVALID, "rods[0].density"),
    ("file: number for text", {"name": 3}, INVALID, "name"),
    ("file: number for an object", {"solver": 3}, INVALID, "solver"),
    ("file: list for an object", {"solver": []}, INVALID, "solver"),
    ("file: object for a list", {"bodies": {"name": "a"}}, INVALID, "bodies"),
    ("file: text for a list of objects", {"bodies": "ab"}, INVALID, "bodies"),
    ("file: text for a vector", {"gravity": "down"}, INVALID, "gravity"),
    ("file: text in a vector", {"gravity": [0, 0, "g"]}, INVALID, "gravity[2]"),
    ("file: null in a vector", {"gravity": [0, None, 0]}, INVALID, "gravity[1]"),
    ("file: rows in a vector", {"rods[1].graph.positions": [[0, 0, 0]]}, INVALID, "rods[1].graph.positions[0]"),
    ("file: a fraction for a count", {"substeps": 1.5}, INVALID, "substeps"),
    ("file: a negative count", {"rods[0].elements": -1}, INVALID, "rods[0].elements"),
    ("file: a count beyond 32 bits", {"substeps": 2**32}, INVALID, "substeps"),
    ("file: a negative index", {"rods[1].graph.segments": [0, -1]}, INVALID, "rods[1].graph.segments[1]"),
    ("file: number for truth", {"rods[0].self_collision": 1}, INVALID, "rods[0].self_collision"),
    ("file: NaN", '{"time_step": NaN}', INVALID, "time_step"),
    ("file: Infinity in a vector", '{"gravity": [0, Infinity, 0]}', INVALID, "gravity[1]"),
    ("file: minus Infinity", '{"bodies": [{"mass": -Infinity}]}', INVALID, "bodies[0].mass"),
    ("file: a number beyond all doubles", '{"time_step": 1e999}', INVALID, "time_step"),
    ("file: NaN as text", {"time_step": "NaN"}, INVALID, "time_step"),
    ("file: a name given twice", '{"bodies": [{"mass": 1, "mass": 2}]}', INVALID, "bodies[0].mass"),
    ("file: two geometries", {"rods[0].helix": {"radius": 1}}, INVALID, "rods[0].helix"),
    ("file: two shapes in one", {"bodies[0].shapes[0].box": {}}, INVALID, "bodies[0].shapes[0].box"),
    ("file: s and node", {"attachments[0].node": 0}, INVALID, "attachments[0].node"),
    ("file: two laws", {"forces[0].drag": {"body": "a"}}, INVALID, "forces[0].drag"),
    ("file: half a surrogate", '{"name": "\\ud800"}', INVALID, "name"),
    # --- the world ---
    ("gravity of two numbers", {"gravity": [0, 0]}, INVALID, "gravity"),
    ("wind of four numbers", {"wind": [0, 0, 0, 0]}, INVALID, "wind[3]"),
    ("time step 0", {"time_step": 0}, INVALID, "time_step"),
    ("negative time step", {"time_step": -1e-3}, INVALID, "time_step"),
    ("time step over a second", {"time_step": 1.5}, INVALID, "time_step"),
    ("no substep", {"substeps": 0}, INVALID, "substeps"),
    ("too many substeps", {"substeps": 1001}, INVALID, "substeps"),
    ("scr: no iteration", {"solver.scr.iterations": 0}, INVALID, "solver.scr.iterations"),
    ("scr: tolerance 1", {"solver.scr.residual_tolerance": 1}, INVALID, "solver.scr.residual_tolerance"),
    ("scr: negative tolerance", {"solver.scr.residual_tolerance": -1e-3}, INVALID, "solver.scr.residual_tolerance"),
    ("xpbd: no iteration", {"solver.xpbd": {"iterations": 0}}, INVALID, "solver.xpbd.iterations"),
    ("dae: relative tolerance 1", {"solver.dae": {"relative_tolerance": 1}}, INVALID, "solver.dae.relative_tolerance"),
    ("dae: absolute tolerance 0", {"solver.dae": {"absolute_tolerance": 0}}, INVALID, "solver.dae.absolute_tolerance"),
    (
        "dae: alpha h over 1",
        {"solver.dae": {"stabilization": "BAUMGARTE", "baumgarte_alpha": 1001}},
        INVALID,
        "solver.dae.baumgarte_alpha",
    ),
    # --- names ---
    ("body without a name", {"bodies[0].name": ""}, INVALID, "bodies[0].name"),
    ("name with a slash", {"bodies[1].name": "a/b"}, INVALID, "bodies[1].name"),
    ("name with a star", {"rods[0].name": "r*"}, INVALID, "rods[0].name"),
    ("name of 64 characters", {"bodies[1].name": "x" * 64}, INVALID, "bodies[1].name"),
    ("name with an accent", {"bodies[1].name": "b\u00e9"}, INVALID, "bodies[1].name"),
    ("two bodies of one name", {"bodies[1].name": "a"}, TAKEN, "bodies[1].name"),
    ("two rods of one name", {"rods[1].name": "r"}, TAKEN, "rods[1].name"),
    ("two forces of one name", {"forces[1].name": "pull"}, TAKEN, "forces[1].name"),
    # --- bodies ---
    ("no mass", {"bodies[0].mass": GONE}, INVALID, "bodies[0].mass"),
    ("mass 0", {"bodies[0].mass": 0}, INVALID, "bodies[0].mass"),
    ("negative mass", {"bodies[1].mass": -2}, INVALID, "bodies[1].mass"),
    ("no inertia", {"bodies[0].inertia": GONE}, INVALID, "bodies[0].inertia"),
    ("inertia of three numbers", {"bodies[0].inertia": [1, 1, 1]}, INVALID, "bodies[0].inertia"),
    ("inertia not positive", {"bodies[0].inertia": [1, 1, -1, 0, 0, 0]}, INVALID, "bodies[0].inertia"),
    (
        "inertia against the triangle inequality",
        {"bodies[0].inertia": [1, 1, 3, 0, 0, 0]},
        INVALID,
        "bodies[0].inertia",
    ),
    ("inertia not definite", {"bodies[0].inertia": [1, 1, 1, 2, 0, 0]}, INVALID, "bodies[0].inertia"),
    ("position of two numbers", {"bodies[1].position": [1, 0]}, INVALID, "bodies[1].position"),
    ("rotation of three numbers", {"bodies[0].rotation": [1, 0, 0]}, INVALID, "bodies[0].rotation"),
    ("rotation far from unit", {"bodies[0].rotation": [2, 0, 0, 0]}, INVALID, "bodies[0].rotation"),
    ("rotation 0", {"bodies[0].rotation": [0, 0, 0, 0]}, INVALID, "bodies[0].rotation"),
    ("velocity of one number", {"bodies[0].linear_velocity": [1]}, INVALID, "bodies[0].linear_velocity"),
    ("spin of four numbers", {"bodies[0].angular_velocity": [0, 0, 0, 1]}, INVALID, "bodies[0].angular_velocity[3]"),
    ("negative friction", {"bodies[0].friction": -0.1}, INVALID, "bodies[0].friction"),
    ("restitution over 1", {"bodies[0].restitution": 1.1}, INVALID, "bodies[0].restitution"),
    ("collision group 32", {"bodies[0].collision_group": 32}, INVALID, "bodies[0].collision_group"),
    ("mass and density", {"bodies[0].density": 1000}, INVALID, "bodies[0].density"),
    (
        "density without shapes",
        {"bodies[1].density": 1000, "bodies[1].mass": GONE, "bodies[1].inertia": GONE},
        INVALID,
        "bodies[1].density",
    ),
    (
        "a moving static body",
        {"bodies[0].kind": "STATIC", "bodies[0].linear_velocity": [1, 0, 0]},
        INVALID,
        "bodies[0].linear_velocity",
    ),
    # --- shapes ---
    ("shape without geometry", {"bodies[0].shapes": [{}]}, INVALID, "bodies[0].shapes[0].geometry"),
    ("sphere of radius 0", {"bodies[0].shapes[0].sphere.radius": 0}, INVALID, "bodies[0].shapes[0].sphere.radius"),
    (
        "capsule of negative length",
        {"bodies[0].shapes": [{"capsule": {"radius": 1, "half_length": -1}}]},
        INVALID,
        "bodies[0].shapes[0].capsule.half_length",
    ),
    (
        "flat box",
        {"bodies[0].shapes": [{"box": {"half_extents": [1, 0, 1]}}]},
        INVALID,
        "bodies[0].shapes[0].box.half_extents[1]",
    ),
    (
        "box of two sides",
        {"bodies[0].shapes": [{"box": {"half_extents": [1, 1]}}]},
        INVALID,
        "bodies[0].shapes[0].box.half_extents",
    ),
    (
        "cylinder without length",
        {"bodies[0].shapes": [{"cylinder": {"radius": 1}}]},
        INVALID,
        "bodies[0].shapes[0].cylinder.half_length",
    ),
    ("plane that moves", {"bodies[0].shapes": [{"plane": {}}]}, INVALID, "bodies[0].shapes[0].plane"),
    (
        "hull of three points",
        {"bodies[0].shapes": [{"hull": {"vertices": [0] * 9}}]},
        INVALID,
        "bodies[0].shapes[0].hull.vertices",
    ),
    (
        "hull of ten numbers",
        {"bodies[0].shapes": [{"hull": {"vertices": [0] * 10}}]},
        INVALID,
        "bodies[0].shapes[0].hull.vertices",
    ),
    (
        "mesh index beyond the vertices",
        {"bodies[0].shapes": [{"mesh": {**_MESH["mesh"], "triangles": [0, 1, 3]}}]},
        RANGE,
        "bodies[0].shapes[0].mesh.triangles[2]",
    ),
    (
        "shape turned by no rotation",
        {"bodies[0].shapes[0].rotation": [1, 1, 1, 1.5]},
        INVALID,
        "bodies[0].shapes[0].rotation",
    ),
    # --- joints ---
    ("joint to a missing parent", _joint(parent="nobody"), MISSING, "joints[0].parent"),
    ("joint to a missing child", _joint(child="nobody"), MISSING, "joints[0].child"),
    ("joint of a body with itself", _joint(child="a"), INVALID, "joints[0].child"),
    (
        "joint frame of two numbers",
        _joint(parent_frame={"position": [0, 0]}),
        INVALID,
        "joints[0].parent_frame.position",
    ),
    (
        "joint frame turned by no rotation",
        _joint(child_frame={"rotation": [1, 1, 0, 0]}),
        INVALID,
        "joints[0].child_frame.rotation",
    ),
    ("limits the wrong way round", _joint(lower_limit=1, upper_limit=-1), INVALID, "joints[0].upper_limit"),
    ("limit of a spherical joint", _joint(type="SPHERICAL", lower_limit=0), INVALID, "joints[0].lower_limit"),
    ("swing limit of a hinge", _joint(swing_limit=1), INVALID, "joints[0].swing_limit"),
    ("swing limit over pi", _joint(type="SPHERICAL", swing_limit=4), INVALID, "joints[0].swing_limit"),
    (
        "motor target of two numbers",
        _joint(motor={"mode": "POSITION", "target": [1, 2]}),
        INVALID,
        "joints[0].motor.target",
    ),
    (
        "motor of negative stiffness",
        _joint(motor={"mode": "POSITION", "stiffness": -1}),
        INVALID,
        "joints[0].motor.stiffness",
    ),
    ("motor of a fixed joint", _joint(type="FIXED", motor={"mode": "VELOCITY"}), INVALID, "joints[0].motor.mode"),
    ("negative compliance", _joint(compliance=-1), INVALID, "joints[0].compliance"),
    # --- rods ---
    ("rod without geometry", {"rods[0].straight": GONE}, INVALID, "rods[0].geometry"),
    ("rod of no length", {"rods[0].straight.end": [0, 0, 1]}, INVALID, "rods[0].straight.end"),
    ("rod start of two numbers", {"rods[0].straight.start": [0, 0]}, INVALID, "rods[0].straight.start"),
    ("normal along the rod", {"rods[0].straight.normal": [1, 0, 0]}, INVALID, "rods[0].straight.normal"),
    ("rod without elements", {"rods[0].elements": GONE}, INVALID, "rods[0].elements"),
    ("rod of order 4", {"rods[0].order": 4}, INVALID, "rods[0].order"),
    ("rod without section", {"rods[0].section": GONE}, INVALID, "rods[0].section"),
    ("radius 0", {"rods[0].section.radius": 0}, INVALID, "rods[0].section.radius"),
    ("three radii for four elements", {"rods[0].section.radius": [0.1, 0.1, 0.1]}, INVALID, "rods[0].section.radius"),
    ("round and rectangular", {"rods[0].section.width": 0.1}, INVALID, "rods[0].section"),
    ("density 0", {"rods[0].density": 0}, INVALID, "rods[0].density"),
    ("no modulus", {"rods[0].young_modulus": GONE}, INVALID, "rods[0].young_modulus"),
    ("negative modulus", {"rods[0].young_modulus": -1}, INVALID, "rods[0].young_modulus"),
    ("poisson ratio 0.6", {"rods[0].poisson_ratio": 0.6}, INVALID, "rods[0].poisson_ratio"),
    (
        "poisson ratio and shear modulus",
        {"rods[0].poisson_ratio": 0.3, "rods[0].shear_modulus": 1e6},
        INVALID,
        "rods[0].shear_modulus",
    ),
    ("part of the stiffnesses", {"rods[0].stiffness": {"ea": 1}}, INVALID, "rods[0].stiffness.ga1"),
    ("negative damping", {"rods[0].damping": -1}, INVALID, "rods[0].damping"),
    ("negative mass damping", {"rods[0].mass_damping": -1}, INVALID, "rods[0].mass_damping"),
    ("rest length 0", {"rods[0].rest_length": 0}, INVALID, "rods[0].rest_length"),
    ("rest curvature of two numbers", {"rods[0].rest_curvature": [0, 0]}, INVALID, "rods[0].rest_curvature"),
    ("velocities of two nodes", {"rods[0].linear_velocity": [0] * 6}, INVALID, "rods[0].linear_velocity"),
    (
        "helix of no turns",
        {"rods[0].straight": GONE, "rods[0].helix": {"radius": 1, "pitch": 1}},
        INVALID,
        "rods[0].helix.turns",
    ),
    (
        "helix of radius 0",
        {"rods[0].straight": GONE, "rods[0].helix": {"pitch": 1, "turns": 1}},
        INVALID,
        "rods[0].helix.radius",
    ),
    (
        "polyline of one node",
        {"rods[0].straight": GONE, "rods[0].polyline": {"positions": [0, 0, 0]}},
        INVALID,
        "rods[0].polyline.positions",
    ),
    (
        "polyline of four numbers",
        {"rods[0].straight": GONE, "rods[0].polyline": {"positions": [0] * 4}},
        INVALID,
        "rods[0].polyline.positions",
    ),
    ("graph segment beyond the vertices", {"rods[1].graph.segments": [0, 1, 1, 3]}, RANGE, "rods[1].graph.segments[3]"),
    ("graph segment to itself", {"rods[1].graph.segments": [0, 1, 1, 1]}, INVALID, "rods[1].graph.segments[2]"),
    ("graph segments of three numbers", {"rods[1].graph.segments": [0, 1, 2]}, INVALID, "rods[1].graph.segments"),
    ("graph bend beyond the segments", {"rods[1].graph.bends": [0, 2]}, RANGE, "rods[1].graph.bends[1]"),
    ("graph bend of one segment", {"rods[1].graph.bends": [1, 1]}, INVALID, "rods[1].graph.bends[0]"),
    ("graph masses of two vertices", {"rods[1].graph.vertex_masses": [1, 1]}, INVALID, "rods[1].graph.vertex_masses"),
    ("graph mass 0", {"rods[1].graph.vertex_masses": [1, 0, 1]}, INVALID, "rods[1].graph.vertex_masses[1]"),
    ("graph with elements", {"rods[1].elements": 2}, INVALID, "rods[1].elements"),
    # --- attachments ---
    ("attachment of a missing rod", {"attachments[0].rod": "nobody"}, MISSING, "attachments[0].rod"),
    ("attachment of no rod", {"attachments[0].rod": ""}, INVALID, "attachments[0].rod"),
    ("attachment to a missing body", {"attachments[0].body": "nobody"}, MISSING, "attachments[0].body"),
    ("attachment beyond the end", {"attachments[0].s": 1.5}, INVALID, "attachments[0].s"),
    (
        "attachment to a missing node",
        {"attachments[0].s": GONE, "attachments[0].node": 99},
        RANGE,
        "attachments[0].node",
    ),
    ("attachment turned by no rotation", {"attachments[0].rotation": [0, 0, 0, 2]}, INVALID, "attachments[0].rotation"),
    (
        "a pin with a rotation",
        {"attachments[0].kind": "PIN", "attachments[0].rotation": [1, 0, 0, 0]},
        INVALID,
        "attachments[0].rotation",
    ),
    # --- forces and inputs ---
    ("force without a law", {"forces[0].load": GONE}, INVALID, "forces[0].law"),
    ("load on a missing body", {"forces[0].load.body": "nobody"}, MISSING, "forces[0].load.body"),
    ("load of two numbers", {"forces[0].load.force": [1, 0]}, INVALID, "forces[0].load.force"),
    ("load on a body and a rod", {"forces[0].load.rod": "r"}, INVALID, "forces[0].load.rod"),
    (
        "spring of negative stiffness",
        {"forces[1].spring_damper.stiffness": -1},
        INVALID,
        "forces[1].spring_damper.stiffness",
    ),
    (
        "spring to a missing body",
        {"forces[1].spring_damper.a.body": "nobody"},
        MISSING,
        "forces[1].spring_damper.a.body",
    ),
    ("input of no target", {"inputs[0].target": ""}, INVALID, "inputs[0].target"),
    ("input of an unknown target", {"inputs[0].target": "tide"}, INVALID, "inputs[0].target"),
    ("input of a missing force", {"inputs[0].target": "force/nobody"}, MISSING, "inputs[0].target"),
    ("input of two numbers", {"inputs[0].sine.amplitude": [1, 0]}, INVALID, "inputs[0].sine.amplitude"),
    ("input of negative frequency", {"inputs[0].sine.frequency": -1}, INVALID, "inputs[0].sine.frequency"),
    (
        "input times that fall",
        {"inputs[0].sine": GONE, "inputs[0].piecewise_linear": {"time": [0, 1, 1], "value": [0] * 9}},
        INVALID,
        "inputs[0].piecewise_linear.time[2]",
    ),
    (
        "input values too few",
        {"inputs[0].sine": GONE, "inputs[0].piecewise_linear": {"time": [0, 1], "value": [0] * 5}},
        INVALID,
        "inputs[0].piecewise_linear.value",
    ),
]


def spoiled(changes):
    """The base scene with changes."""
    scene = copy.deepcopy(BASE)
    for path, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", path)]
        place = scene
        for part in parents:
            place = place[part]
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return scene
