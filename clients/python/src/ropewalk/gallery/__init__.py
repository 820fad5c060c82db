"""The gallery: scenes built in code, to look at, to learn from and to measure with.

    from ropewalk import gallery
    session.load_scene(gallery.scene("slinky"))

`SCENES` lists them in the order in which they are best read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..errors import NotFound
from ..scene import SceneBuilder
from . import mechanisms, reference, rods, xpbd


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """A scene of the gallery.

    build     makes the scene
    title     one line
    seconds   simulated time worth watching [s]
    images    strobe images in the demo's picture
    """

    name: str
    build: Callable[[], SceneBuilder]
    title: str
    seconds: float
    images: int = 12


SCENES: dict[str, Exhibit] = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit("swing", rods.swing, "a rubber cord falls and swings, a tumbling brick flies past", 0.9, 16),
        Exhibit("free-top", mechanisms.free_top, "a symmetric body precesses without torque", 3.0, 7),
        Exhibit(
            "spring-pendulum", mechanisms.spring_pendulum, "a mass on a spring: bouncing becomes swinging", 4.2, 22
        ),
        Exhibit("cantilever", rods.cantilever, "a clamped elastic beam falls under its own weight", 0.6, 12),
        Exhibit("slinky", reference.slinky, "a slinky of 80 turns, held at both ends, is let go", 1.0, 4),
        Exhibit("tree", reference.tree, "a tree of 3,327 vertices under its own weight", 1.0, 4),
        Exhibit("rod-net", rods.net, "a net of elastic rods in a gust", 2.0, 4),
        Exhibit("triple-pendulum", xpbd.triple_pendulum, "three rigid links, let go at 80 degrees", 2.0, 16),
        Exhibit("robot-3rps", xpbd.robot_3rps, "a parallel robot raises and tilts its platform", 2.0, 6),
        Exhibit(
            "cantilevers", xpbd.cantilevers, "one beam as rigid chain, linear, quadratic and cubic elements", 0.5, 6
        ),
        Exhibit("helical-spring", xpbd.helical_spring, "a compression spring is pressed until it buckles", 4.5, 5),
        Exhibit("plectoneme", xpbd.plectoneme, "a slack rod is twisted into a loop", 8.6, 6),
        Exhibit("arm", xpbd.arm, "a robot arm swings the cable that is clamped to it", 2.0, 8),
    )
}


def names() -> list[str]:
    """The scenes' names."""
    return list(SCENES)


def exhibit(name: str) -> Exhibit:
    """A scene with what is said about it. Raises NotFound."""
    try:
        return SCENES[name]
    except KeyError:
        raise NotFound(f"the gallery has {', '.join(SCENES)}", name) from None


def scene(name: str) -> SceneBuilder:
    """Builds a scene. Raises NotFound."""
    return exhibit(name).build()
