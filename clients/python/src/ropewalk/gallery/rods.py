"""Elastic rods of the gallery."""

from __future__ import annotations

import numpy as np

from ..scene import SceneBuilder


def swing() -> SceneBuilder:
    """A rubber cord of 1.2 m is let go level and swings; a brick is thrown spinning about its middle axis."""
    scene = SceneBuilder("swing", time_step=1e-3)
    # Enough sweeps for motion: an unconverged sweep damps (docs/numerics.md).
    scene.solver(rods="SCR", scr={"iterations": 60})
    scene.rod(
        "cord",
        straight={"start": [0, 0, 0], "end": [1.2, 0, 0]},
        elements=30,
        section={"radius": 0.012},
        density=1100,
        young_modulus=2e6,
        poisson_ratio=0.5,
        rest="STRAIGHT",
    )
    scene.attachment("hook", rod="cord", s=0, kind="PIN")
    # 0.24 x 0.12 x 0.06 m of 2 kg; turning about z, the middle axis, is unstable: it tumbles over.
    x, y, z, mass = 0.24, 0.06, 0.12, 2.0
    scene.body(
        "brick",
        mass=mass,
        inertia=[mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y), 0, 0, 0],
        position=[-1.75, 0.2, -1.0],
        linear_velocity=[1.05, 0, 4.1],
        angular_velocity=[0.3, 0.2, 11.0],
        rotation=[0.8, 0.6, 0, 0],
        shapes=[{"box": {"half_extents": [x / 2, y / 2, z / 2]}}],
    )
    return scene


def cantilever() -> SceneBuilder:
    """A beam of soft rubber, 1 m long, clamped level at one end and let go.

    E = 5 MPa, r = 2 cm, 20 segments: the beam of docs/numerics.md that swings only when its sweeps converge.
    """
    scene = SceneBuilder("cantilever", time_step=1e-3)
    scene.solver(rods="SCR", scr={"iterations": 64})
    scene.rod(
        "beam",
        straight={"start": [0, 0, 0], "end": [1, 0, 0]},
        elements=20,
        section={"radius": 0.02},
        density=1000,
        young_modulus=5e6,
        poisson_ratio=0.5,
    )
    scene.attachment("wall", rod="beam", s=0, kind="CLAMP")
    return scene


def net(rows: int = 13, columns: int = 19, spacing: float = 0.12) -> SceneBuilder:
    """A net of rubber cords hangs from its upper edge until a gust takes it.

    One rod graph: vertices at the knots, segments along rows and columns, bend elements along each cord and between the two
    cords that cross at a knot, so that knots keep their right angles.
    """
    vertices = np.arange(rows * columns).reshape(rows, columns)
    x = (np.arange(columns) - (columns - 1) / 2) * spacing
    z = -np.arange(rows) * spacing
    positions = np.stack([np.tile(x, rows), np.zeros(rows * columns), np.repeat(z, columns)], axis=1)
    segments: list[tuple[int, int]] = []
    lines = [list(vertices[row]) for row in range(rows)] + [list(vertices[:, column]) for column in range(columns)]
    bends: list[tuple[int, int]] = []
    first_at: dict[int, int] = {}  # Of the row that passes a vertex: one of its segments there.
    for index, line in enumerate(lines):
        start = len(segments)
        segments += zip(line[:-1], line[1:])
        count = len(line) - 1
        bends += [(start + at, start + at + 1) for at in range(count - 1)]
        for at, vertex in enumerate(line):
            segment = start + min(at, count - 1)
            if index < rows:
                first_at[vertex] = segment
            else:
                bends.append((first_at[vertex], segment))
    scene = SceneBuilder("rod net", time_step=1e-3)
    scene.solver(rods="SCR", scr={"iterations": 20})
    scene.rod(
        "net",
        graph={"positions": positions, "segments": np.array(segments), "bends": np.array(bends)},
        section={"radius": 0.004},
        density=1100,
        young_modulus=3e6,
        # A cylinder across the wind: air density x 1.1 x diameter / 2, per length.
        quadratic_drag=0.5 * 1.2 * 1.1 * 0.008,
    )
    for column in range(0, columns, 3):
        scene.attachment(f"hook.{column}", rod="net", node=int(vertices[0, column]), kind="PIN")
    scene.input(
        "gust",
        "wind",
        piecewise_linear={
            "time": [0, 0.2, 0.6, 1.4, 2.2],
            "value": [[0, 0, 0], [0, 0, 0], [3, 16, 2], [2, 12, 1], [0, 3, 0]],
        },
    )
    return scene
