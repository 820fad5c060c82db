"""What the xpbd solver is for: mechanisms, finite-element rods, and both in one.

After the scenes of "Orientation in Extended Position-Based Dynamics" (sections 9.1, 9.2, 9.4, 9.5).
"""

from __future__ import annotations

import numpy as np

from ..scene import SceneBuilder


def _turn(axis: list[float] | np.ndarray, angle: float) -> np.ndarray:
    """A quaternion (w, x, y, z)."""
    unit = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * unit])


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two quaternions."""
    return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def triple_pendulum() -> SceneBuilder:
    """Three rods of 1 m and 1 kg, let go at 80 degrees: chaotic, and never apart at its pins."""
    scene = SceneBuilder("triple pendulum", time_step=1e-3)
    swing = _turn([0, -1, 0], np.radians(80))
    along = np.array([np.sin(np.radians(80)), 0, -np.cos(np.radians(80))])
    axis = _turn([1, 0, 0], -np.pi / 2)  # takes z to y
    for k in range(3):
        scene.body(
            f"link{k}",
            mass=1.0,
            inertia=[1 / 12, 1 / 12, 1e-3, 0, 0, 0],
            position=list((k + 0.5) * along),
            rotation=list(swing),
            shapes=[{"capsule": {"radius": 0.03, "half_length": 0.47}}],
        )
        parent = {"parent": f"link{k - 1}"} if k else {}
        place = {"position": [0, 0, -0.5], "rotation": list(axis)} if k else {"rotation": list(_times(swing, axis))}
        scene.joint(
            f"pin{k}",
            "REVOLUTE",
            child=f"link{k}",
            parent_frame=place,
            child_frame={"position": [0, 0, 0.5], "rotation": list(axis)},
            **parent,
        )
    return scene


def robot_3rps() -> SceneBuilder:
    """A parallel robot: three legs with a slide each carry a platform, which rises and tilts as the slides are driven.

    Feet on hinges at 0.3 m, balls under the platform at 0.2 m. Inverse dynamics: read `joint/leg*/effort`.
    """
    scene = SceneBuilder("3-RPS robot", time_step=1e-3)
    scene.solver(xpbd={"iterations": 2})
    scene.body(
        "platform",
        mass=3.0,
        inertia=[0.03, 0.03, 0.06, 0, 0, 0],
        position=[0, 0, 0.5],
        shapes=[{"cylinder": {"radius": 0.2, "half_length": 0.01}}],
    )
    for k in range(3):
        azimuth = 2 * np.pi * k / 3
        out, side = np.array([np.cos(azimuth), np.sin(azimuth), 0]), np.array([-np.sin(azimuth), np.cos(azimuth), 0])
        foot, ball = 0.3 * out, 0.2 * out + [0, 0, 0.5]
        length = float(np.linalg.norm(ball - foot))
        along = (ball - foot) / length
        # Leg frame: z along the leg, y tangential.
        lean = _times(_turn([0, 0, 1], azimuth), _turn([0, 1, 0], np.arctan2(along @ out, along[2])))
        hinge = _times(_turn([0, 0, 1], azimuth), _turn([1, 0, 0], -np.pi / 2))
        for part, mass, place in (("lower", 1.0, foot + 0.15 * along), ("upper", 0.5, ball - 0.15 * along)):
            scene.body(
                f"{part}{k}",
                mass=mass,
                inertia=[mass * 0.0075, mass * 0.0075, mass * 1e-4, 0, 0, 0],
                position=list(place),
                rotation=list(lean),
                shapes=[{"capsule": {"radius": 0.015 if part == "lower" else 0.01, "half_length": 0.14}}],
            )
        back = _times(lean * [1, -1, -1, -1], hinge)
        scene.joint(
            f"foot{k}",
            "REVOLUTE",
            child=f"lower{k}",
            parent_frame={"position": list(foot), "rotation": list(hinge)},
            child_frame={"position": [0, 0, -0.15], "rotation": list(back)},
        )
        # Coordinate 0 is the leg as it is built.
        scene.joint(
            f"leg{k}",
            "PRISMATIC",
            parent=f"lower{k}",
            child=f"upper{k}",
            parent_frame={"position": [0, 0, length - 0.3]},
            motor={"mode": "POSITION", "target": [0.0], "stiffness": 2e5, "damping": 2e3},
        )
        scene.joint(
            f"ball{k}",
            "SPHERICAL",
            parent=f"upper{k}",
            child="platform",
            parent_frame={"position": [0, 0, 0.15], "rotation": list(lean * [1, -1, -1, -1])},
            child_frame={"position": list(0.2 * out)},
        )
        scene.input(
            f"drive{k}",
            target=f"joint/leg{k}",
            sine={"amplitude": [0.06], "frequency": 0.5, "phase": -azimuth, "offset": [0.03]},
        )
    return scene


def cantilevers() -> SceneBuilder:
    """The same soft beam as four discretisations of 12 segments: rigid chain, linear, quadratic, cubic elements."""
    scene = SceneBuilder("cantilevers", time_step=2e-3)
    for k, (name, order, method) in enumerate(
        (("chain", 1, "RIGID_CHAIN"), ("linear", 1, "FINITE_ELEMENT"), ("quadratic", 2, "FINITE_ELEMENT"),
         ("cubic", 3, "FINITE_ELEMENT"))
    ):  # fmt: skip
        scene.rod(
            name,
            straight={"start": [0, 0.3 * k, 0], "end": [1, 0.3 * k, 0]},
            elements=12 // order,
            order=order,
            method=method,
            section={"radius": 0.05},
            density=1000,
            young_modulus=5e6,
            poisson_ratio=0.3,
        )
        scene.attachment(f"wall {name}".replace(" ", "-"), rod=name, s=0, kind="CLAMP")
    return scene


def helical_spring() -> SceneBuilder:
    """A compression spring of 15 coils, 40 cubic elements, pressed by 0.4 m in 4 s: it buckles near 0.38 m."""
    scene = SceneBuilder("helical spring", gravity=[0, 0, 0], time_step=2e-3)
    scene.solver(xpbd={"iterations": 2})
    scene.rod(
        "spring",
        helix={"radius": 0.1, "pitch": 1.4 / 15, "turns": 15},
        elements=40,
        order=3,
        section={"radius": 0.005},
        density=7650,
        young_modulus=60e9,
        poisson_ratio=0.3,
    )
    scene.attachment("foot", rod="spring", s=0, kind="CLAMP")
    scene.attachment("head", rod="spring", s=1, kind="CLAMP")
    scene.input("press", target="attachment/head", piecewise_linear={"time": [0, 4], "value": [0, 0, 0, 0, 0, -0.4]})
    return scene


def plectoneme() -> SceneBuilder:
    """A slack rod is twisted at one end until it coils into a loop; the scene ends before the loop touches itself."""
    scene = SceneBuilder("plectoneme", gravity=[0, 0, 0], time_step=2e-3)
    scene.solver(xpbd={"iterations": 3})
    scene.rod(
        "rod",
        straight={"start": [0, 0, 0], "end": [10, 0, 0]},
        elements=20,
        order=3,
        section={"radius": 0.05},
        density=1000,
        young_modulus=5e7,
        poisson_ratio=0.4,
        mass_damping=2.0,
    )
    scene.attachment("left", rod="rod", s=0, kind="CLAMP")
    scene.attachment("right", rod="rod", s=1, kind="CLAMP")
    # The ends come together by 1.5 m, then the right one turns 6.6 times; a nudge to one side breaks the tie.
    scene.input(
        "slack", target="attachment/right",
        piecewise_linear={"time": [0, 2, 8.6], "value": [*6 * [0], -1.5, *5 * [0], -1.5, 0, 0, 6.6 * 2 * np.pi, 0, 0]},
    )  # fmt: skip
    scene.force("nudge", load={"rod": "rod", "s": 0.5, "force": [0, 2.0, 5.0]})
    return scene


def arm() -> SceneBuilder:
    """A driven arm of three links with a cable along it, clamped to the base and to the hand: one solve for both."""
    scene = SceneBuilder("arm with a cable", time_step=1e-3)
    scene.solver(xpbd={"iterations": 3})
    axis = _turn([1, 0, 0], -np.pi / 2)  # joints about y
    for k in range(3):
        scene.body(
            f"link{k}",
            mass=2.0 - 0.5 * k,
            inertia=[0.016, 0.016, 0.002, 0, 0, 0],
            position=[0, 0, 0.3 * k + 0.15],
            shapes=[{"capsule": {"radius": 0.03, "half_length": 0.12}}],
        )
        parent = {"parent": f"link{k - 1}"} if k else {}
        place = {"position": [0, 0, 0.15], "rotation": list(axis)} if k else {"rotation": list(axis)}
        scene.joint(
            f"joint{k}",
            "REVOLUTE",
            child=f"link{k}",
            parent_frame=place,
            child_frame={"position": [0, 0, -0.15], "rotation": list(axis)},
            motor={"mode": "POSITION", "target": [0.0], "stiffness": 4000.0 / (k + 1), "damping": 80.0 / (k + 1)},
            **parent,
        )
        scene.input(
            f"move{k}",
            target=f"joint/joint{k}",
            sine={"amplitude": [0.7 - 0.1 * k], "frequency": 0.5 + 0.1 * k},
        )
    # The cable is longer than the arm: it hangs out in a bow.
    bow = np.linspace(0, 1, 31)
    places = np.stack([0.06 + 0.12 * np.sin(np.pi * bow) ** 2, 0.04 + 0 * bow, 0.02 + 0.85 * bow], axis=1)
    scene.rod(
        "cable",
        polyline={"positions": places.ravel().tolist()},
        elements=10,
        order=3,
        section={"radius": 0.004},
        density=1500,
        young_modulus=2e7,
        poisson_ratio=0.45,
        damping=2e-3,
    )
    scene.attachment("base", rod="cable", s=0, kind="CLAMP")
    scene.attachment("hand", rod="cable", s=1, kind="CLAMP", body="link2")
    return scene
