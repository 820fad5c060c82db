"""Rigid bodies of the gallery."""

from __future__ import annotations

from ..scene import SceneBuilder


def free_top() -> SceneBuilder:
    """A disc spinning about an axis 11 degrees off its own, without gravity.

    Closed form: the axis circles the angular momentum at |L| / I1, and the body turns in itself at
    (I1 - I3) / I1 w3 (Euler).
    """
    scene = SceneBuilder("free top", gravity=[0, 0, 0], time_step=1e-3, rods="SCR")
    # Radius 0.5 m, thickness 0.1 m, 2 kg.
    transverse, axial = 2 * (3 * 0.5**2 + 0.1**2) / 12, 2 * 0.5**2 / 2
    scene.body(
        "top",
        mass=2.0,
        inertia=[transverse, transverse, axial, 0, 0, 0],
        linear_velocity=[0.6, 0, 0],
        angular_velocity=[1.2, 0, 3.0],
        shapes=[{"cylinder": {"radius": 0.5, "half_length": 0.05}}],
    )
    return scene


def spring_pendulum() -> SceneBuilder:
    """A 1 kg mass on a spring whose bounce is twice as fast as its swing, so that one feeds the other and takes it back.

    k = 4 m g / L with the hanging length L = 1 m; the spring is 0.75 m long without load.
    """
    scene = SceneBuilder("spring pendulum", time_step=1e-3, rods="SCR")
    scene.body(
        "bob",
        mass=1.0,
        inertia=[0.004, 0.004, 0.004, 0, 0, 0],
        position=[0.12, 0, -1.25],
        shapes=[{"sphere": {"radius": 0.03}}],
    )
    scene.force(
        "spring",
        spring_damper={"a": {"body": "bob"}, "b": {}, "stiffness": 39.24, "rest_length": 0.75},
    )
    return scene
