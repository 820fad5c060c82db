"""Two scenes of the paper "Stable Cosserat Rods" (J. Hsu, T. Wang, K. Wu, C. Yuksel, SIGGRAPH 2025).

slinky.npz and tree.npz hold geometry, masses, stiffnesses and settings as exported from the implementation of the method's
authors (tools/pack_reference.py made them). There the tangent is the segment frame's x axis and quaternions are x, y, z, w;
here it is z and w comes first: q = q_there * r, with r the quarter turn that takes z onto x; rest rotations become
r* q_rest r. Gravity points along -y, as there.
"""

from __future__ import annotations

import importlib.resources

import numpy as np

from ..scene import SceneBuilder

# Takes z onto x: a quarter turn about y.
_Z_ONTO_X = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])


def slinky() -> SceneBuilder:
    """The slinky, 2,881 vertices: pulled out between two held ends and let go.

    1 frame of the source is 112 steps (1/30 s).
    """
    return _scene("slinky")


def tree() -> SceneBuilder:
    """A tree, 3,327 vertices of very different stiffness, held at its root. 1 frame of the source is 34 steps (1/30 s)."""
    return _scene("tree")


def _scene(name: str) -> SceneBuilder:
    with importlib.resources.files(__package__).joinpath(f"{name}.npz").open("rb") as file:
        data = {key: value for key, value in np.load(file).items()}
    inverse = data["inverse_masses"].astype(np.float64)
    segments = data["segments"].astype(np.int64)
    # Held vertices have infinite mass there. Here the attachment holds them; their mass moves nothing.
    masses = np.full(len(inverse), np.nan)
    masses[inverse > 0] = 1 / inverse[inverse > 0]
    held = np.flatnonzero(inverse == 0)
    for vertex in held:
        neighbours = np.concatenate([segments[segments[:, 0] == vertex, 1], segments[segments[:, 1] == vertex, 0]])
        masses[vertex] = np.nanmean(masses[neighbours])
    turn = _Z_ONTO_X
    rotations = _product(_wxyz(data["orientations_xyzw"]), turn)
    rest = _product(_product(_conjugate(turn), _wxyz(data["rest_rotations_xyzw"])), turn)

    scene = SceneBuilder(name, gravity=data["gravity"].astype(np.float64), time_step=float(data["time_step"]))
    # As the source sweeps: in index order, from the prediction.
    scene.solver(rods="SCR", scr={"iterations": int(data["iterations"]), "order": "INDEX", "adaptive_start": False})
    scene.rod(
        name,
        graph={
            "positions": data["positions"].astype(np.float64),
            "segments": segments,
            "bends": data["bends"].astype(np.int64),
            "vertex_masses": masses,
            # A negative number marks a held segment there.
            "segment_stiffness": np.abs(data["stretch_stiffness"].astype(np.float64)),
            "segment_rest_lengths": data["rest_lengths"].astype(np.float64),
            "segment_rotations": rotations,
            "bend_stiffness": data["bend_stiffness"].astype(np.float64),
            "bend_rest_rotations": rest,
        },
        # What is called drag there slows every velocity by that rate.
        mass_damping=_vertex_damping(data, masses) + float(data["drag"]),
    )
    for index, vertex in enumerate(held):
        scene.attachment(f"held.{index}", rod=name, node=int(vertex), kind="PIN_SEGMENT")
    return scene


def _vertex_damping(data: dict[str, np.ndarray], masses: np.ndarray) -> float:
    """The mass damping [1/s] that stands for the source's damping of vertices.

    There a vertex is slowed against the world by `damping` times the sum of k_s / l^2 of its segments (a coefficient in
    N s/m). Per mass that is one number for the whole tree (0.568 1/s, to six digits), since its segments are alike; for the
    slinky it lies between 0.18 and 0.97, of which the mean over the mass is taken (0.431).
    """
    segments = data["segments"].astype(np.int64)
    stiffness = np.abs(data["stretch_stiffness"].astype(np.float64)) / data["rest_lengths"].astype(np.float64) ** 2
    total = np.bincount(segments.ravel(), np.repeat(stiffness, 2), minlength=len(masses))
    free = data["inverse_masses"] > 0
    return float(data["damping"]) * float(total[free].sum() / masses[free].sum())


def _wxyz(xyzw: np.ndarray) -> np.ndarray:
    values = xyzw.astype(np.float64)[:, [3, 0, 1, 2]]
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def _conjugate(q: np.ndarray) -> np.ndarray:
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton products of quaternions (w, x, y, z), row by row."""
    a, b = np.broadcast_arrays(a, b)
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )
