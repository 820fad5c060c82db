"""Draws a motion as one strobe picture: what was earlier is paler. Pillow only; no window, no GPU.

film = Film(scene)                    # what to draw, from the Scene message
for frame in frames: film.add(frame)  # frames of a subscription
film.draw("motion.png")
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .stream import Frame

_SIZE = (1500, 950)
_OVERSAMPLING = 2
_TOP, _BOTTOM = (250, 250, 247), (226, 231, 237)
_INK = (40, 48, 60)
_ROD_COLOURS = [(196, 72, 40), (24, 110, 128), (150, 96, 20), (96, 70, 140)]
_BODY_COLOURS = [(38, 92, 158), (70, 130, 70), (170, 60, 90), (120, 100, 40)]
_LIGHT = np.array([-0.35, -0.55, 0.76])

_BOX_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
_BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


@dataclasses.dataclass
class _Solid:
    """A convex piece of a body: corners in the body's frame and faces, seen from outside."""

    corners: np.ndarray
    faces: list[tuple[int, ...]]


def rotation_matrix(q: np.ndarray) -> np.ndarray:
    """The matrix of a quaternion (w, x, y, z), local to world."""
    w, x, y, z = np.asarray(q, dtype=float) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _box(half: np.ndarray) -> _Solid:
    return _Solid(_BOX_CORNERS * half, list(_BOX_FACES))


def _round(radius: float, half_length: float, rings: list[tuple[float, float]], sides: int = 20) -> _Solid:
    """A body of revolution about z: rings of (radius, z), closed at both ends."""
    angles = 2 * np.pi * np.arange(sides) / sides
    corners = [[r * math.cos(a), r * math.sin(a), z] for r, z in rings for a in angles]
    faces: list[tuple[int, ...]] = []
    for ring in range(len(rings) - 1):
        for side in range(sides):
            a, b = ring * sides + side, ring * sides + (side + 1) % sides
            faces.append((a, b, b + sides, a + sides))
    faces.append(tuple(range(sides))[::-1])
    faces.append(tuple(range((len(rings) - 1) * sides, len(rings) * sides)))
    return _Solid(np.array(corners), faces)


def _capsule(radius: float, half_length: float) -> _Solid:
    steps = [math.pi / 2 * i / 6 for i in range(7)]
    lower = [(radius * max(math.cos(a), 0.05), -half_length - radius * math.sin(a)) for a in steps[::-1]]
    upper = [(radius * max(math.cos(a), 0.05), half_length + radius * math.sin(a)) for a in steps]
    return _round(radius, half_length, lower + upper)


def _solids(body: Any) -> list[_Solid]:
    """A body's shapes; a body without any is the box of its own inertia."""
    found = []
    for shape in body.shapes:
        kind = shape.WhichOneof("geometry")
        if kind == "box":
            solid = _box(np.array(shape.box.half_extents))
        elif kind == "sphere":
            solid = _capsule(shape.sphere.radius, 0.0)
        elif kind == "capsule":
            solid = _capsule(shape.capsule.radius, shape.capsule.half_length)
        elif kind == "cylinder":
            r, h = shape.cylinder.radius, shape.cylinder.half_length
            solid = _round(r, h, [(r, -h), (r, h)], 32)
        else:
            continue
        turn = rotation_matrix(np.array(shape.rotation)) if len(shape.rotation) == 4 else np.eye(3)
        place = np.array(shape.position) if len(shape.position) == 3 else np.zeros(3)
        found.append(_Solid(solid.corners @ turn.T + place, solid.faces))
    if not found and len(body.inertia) == 6 and body.mass > 0:
        xx, yy, zz = body.inertia[:3]
        squares = 1.5 / body.mass * np.array([yy + zz - xx, xx + zz - yy, xx + yy - zz])
        found.append(_box(np.sqrt(np.maximum(squares, 1e-8))))
    return found


class Film:
    """Collects frames of a scene and draws them.

    scene  the Scene message: shapes of bodies, segments of rod graphs, gravity (which is down)
    title  written in the corner
    """

    def __init__(self, scene: Any, title: str = "") -> None:
        self.title = title
        self._bodies = {body.name: _solids(body) for body in scene.bodies}
        self._springs = [force.spring_damper for force in scene.forces if force.WhichOneof("law") == "spring_damper"]
        self._segments: dict[str, np.ndarray] = {}
        self._widths: dict[str, np.ndarray] = {}
        for rod in scene.rods:
            if rod.WhichOneof("geometry") == "graph":
                self._segments[rod.name] = np.array(rod.graph.segments, dtype=np.int64).reshape(-1, 2)
                if len(rod.graph.segment_stiffness):
                    # EA = k_s / l, so the radius goes with its root.
                    stretch = np.array(rod.graph.segment_stiffness)
                    lengths = np.array(rod.graph.segment_rest_lengths) if len(rod.graph.segment_rest_lengths) else 1.0
                    self._widths[rod.name] = np.sqrt(stretch / lengths)
        gravity = np.array(scene.gravity) if len(scene.gravity) == 3 else np.array([0, 0, -9.81])
        self._up = -gravity / np.linalg.norm(gravity) if np.linalg.norm(gravity) > 0 else np.array([0.0, 0, 1])
        self._frames: list[Frame] = []

    def add(self, frame: Frame) -> None:
        """One more instant; frames must have positions and rotations."""
        self._frames.append(frame)

    def draw(self, path: str | os.PathLike[str], images: int = 12) -> None:
        """Writes the picture: so many strobe images, trails through all frames."""
        if not self._frames:
            raise ValueError("no frames to draw")
        chosen = np.unique(np.linspace(0, len(self._frames) - 1, images).round().astype(int))
        canvas = _Canvas(self._view(chosen))
        self._draw_trails(canvas)
        for order, index in enumerate(chosen):
            age = 1 - order / max(1, len(chosen) - 1)
            self._draw_frame(canvas, self._frames[index], age)
        self._draw_caption(canvas)
        canvas.image.resize(_SIZE, Image.Resampling.LANCZOS).save(path, optimize=True)

    # --- what is where ---

    def _view(self, chosen: np.ndarray) -> _View:
        parts = []
        for index in chosen:
            frame = self._frames[index]
            for name, place in frame.places.items():
                kind, _, short = name.partition("/")
                if kind == "rod":
                    parts.append(frame[name])
                else:
                    turn = rotation_matrix(frame.of("rotation", name)[0])
                    parts += [solid.corners @ turn.T + frame[name][0] for solid in self._bodies.get(short, [])]
                    parts.append(frame[name])
        for spring in self._springs:
            for anchor in (spring.a, spring.b):
                if not anchor.body and not anchor.rod:
                    parts.append(np.array([anchor.position or [0.0, 0.0, 0.0]]))
        return _View(np.concatenate(parts), self._up)

    def _draw_trails(self, canvas: _Canvas) -> None:
        bodies = rods = 0
        for name, place in self._frames[0].places.items():
            is_body = name.startswith("body/")
            index = bodies if is_body else rods
            colours = _BODY_COLOURS if is_body else _ROD_COLOURS
            bodies, rods = bodies + is_body, rods + (not is_body)
            if not is_body and name.partition("/")[2] in self._segments:
                continue  # A graph has no end to follow.
            path = np.array([frame[name][-1] for frame in self._frames if name in frame.places])
            canvas.line(path, 1.4, canvas.paler(colours[index % len(colours)], 0.62))

    def _draw_frame(self, canvas: _Canvas, frame: Frame, age: float) -> None:
        bodies = rods = 0
        pieces: list[tuple[float, Any]] = []  # Painted from far to near.
        for name, place in frame.places.items():
            short = name.partition("/")[2]
            if name.startswith("body/"):
                colour = _BODY_COLOURS[bodies % len(_BODY_COLOURS)]
                bodies += 1
                turn, at = rotation_matrix(frame.of("rotation", name)[0]), frame[name][0]
                depth = canvas.view.depth(at)
                pieces.append((depth, (self._draw_body, canvas, short, turn, at, colour, age)))
            else:
                colour = _ROD_COLOURS[rods % len(_ROD_COLOURS)]
                rods += 1
                nodes = frame[name]
                depth = canvas.view.depth(nodes.mean(axis=0))
                pieces.append((depth, (self._draw_rod, canvas, short, nodes, place, colour, age)))
        for spring in self._springs:
            ends = [self._anchor(frame, anchor) for anchor in (spring.a, spring.b)]
            depth = canvas.view.depth((ends[0] + ends[1]) / 2) + 1e-6
            pieces.append((depth, (_draw_spring, canvas, ends[0], ends[1], age)))
        for _, (draw, *arguments) in sorted(pieces, key=lambda piece: -piece[0]):
            draw(*arguments)

    def _anchor(self, frame: Frame, anchor: Any) -> np.ndarray:
        local = np.array(anchor.position) if len(anchor.position) == 3 else np.zeros(3)
        if anchor.body:
            name = f"body/{anchor.body}"
            return np.asarray(rotation_matrix(frame.of("rotation", name)[0]) @ local + frame[name][0])
        if anchor.rod:
            nodes = frame[f"rod/{anchor.rod}"]
            index = anchor.node if anchor.WhichOneof("place") == "node" else round(anchor.s * (len(nodes) - 1))
            return np.asarray(nodes[min(index, len(nodes) - 1)])
        return local

    def _draw_rod(
        self, canvas: _Canvas, name: str, nodes: np.ndarray, place: Any, colour: tuple[int, int, int], age: float
    ) -> None:
        base = canvas.paler(colour, 0.86 * age)
        segments = self._segments.get(name)
        if segments is not None and place.stride == 1 and len(segments):
            widths = self._widths.get(name)
            if widths is None or widths.max() < 3 * widths.min():
                drawn = np.full(len(segments), 2.2 if len(segments) < 4000 else 1.2)
            else:
                drawn = 1.0 + 9.0 * widths / widths.max()
            canvas.segments(nodes, segments, drawn, base)
            return
        starts = [*place.starts, len(nodes)] if place.starts else [0, len(nodes)]
        for first, last in zip(starts[:-1], starts[1:]):
            canvas.line(nodes[first:last], 8.5, canvas.darker(base, 0.72))
            canvas.line(nodes[first:last], 6.0, base)
            canvas.line(nodes[first:last], 1.8, canvas.lighter(base, 0.45))

    def _draw_body(
        self, canvas: _Canvas, name: str, turn: np.ndarray, at: np.ndarray, colour: tuple[int, int, int], age: float
    ) -> None:
        faces = []
        for solid in self._bodies.get(name, []):
            corners = solid.corners @ turn.T + at
            for face in solid.faces:
                points = corners[list(face)]
                normal = np.cross(points[1] - points[0], points[2] - points[0])
                length = np.linalg.norm(normal)
                if length == 0:
                    continue
                middle = points.mean(axis=0)
                normal = normal / length
                if normal @ (middle - (corners.mean(axis=0))) < 0:
                    normal = -normal
                if normal @ (canvas.view.eye - middle) <= 0:
                    continue
                shade = 0.55 + 0.45 * max(0.0, float(normal @ canvas.view.light))
                faces.append((canvas.view.depth(middle), points, shade, len(solid.faces) > 12))
        for _, points, shade, smooth in sorted(faces, key=lambda face: -face[0]):
            fill = canvas.paler(canvas.darker(colour, shade), 0.86 * age)
            edge = fill if smooth else canvas.paler(canvas.darker(colour, 0.4), 0.86 * age)
            canvas.polygon(points, fill, edge)

    def _draw_caption(self, canvas: _Canvas) -> None:
        first, last = self._frames[0].time, self._frames[-1].time
        canvas.text(28, 22, self.title, 30, _INK)
        canvas.text(28, 62, f"{first:g} s to {last:.3g} s, earlier is paler", 19, (110, 118, 130))
        canvas.scale_bar()


def _draw_spring(canvas: _Canvas, a: np.ndarray, b: np.ndarray, age: float) -> None:
    """A zigzag between two points, in the picture's plane."""
    pa, pb = canvas.view.project(np.array([a, b]))
    along = pb - pa
    length = float(np.hypot(*along)) or 1.0
    across = np.array([-along[1], along[0]]) / length * 9 * _OVERSAMPLING
    at = np.linspace(0.12, 0.88, 25)
    points = pa + np.outer(at, along)
    points[1:-1:2] += across
    points[2:-1:2] -= across
    canvas.pixels(np.vstack([pa, points, pb]), 1.6, canvas.paler((90, 96, 108), 0.9 * age))


class _View:
    """A camera that sees all points: raised a little, on the side from which the motion is widest."""

    def __init__(self, points: np.ndarray, up: np.ndarray) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        self.centre = (low + high) / 2
        flat = (points - self.centre) - np.outer((points - self.centre) @ up, up)
        helper = np.array([1.0, 0, 0]) if abs(up[0]) < 0.9 else np.array([0, 1.0, 0])
        e1 = helper - (helper @ up) * up
        e1 /= np.linalg.norm(e1)
        e2 = np.cross(up, e1)
        plane = np.stack([flat @ e1, flat @ e2], axis=1)
        values, vectors = np.linalg.eigh(plane.T @ plane + 1e-12 * np.eye(2))
        wide = vectors[0, 1] * e1 + vectors[1, 1] * e2
        if wide @ e1 < 0:
            wide = -wide
        towards = np.cross(wide, up)  # From the scene to the eye.
        turn, raise_ = math.radians(16), math.radians(12)
        towards = math.cos(turn) * towards + math.sin(turn) * wide
        towards = math.cos(raise_) * towards + math.sin(raise_) * up
        self.backward = towards / np.linalg.norm(towards)
        self.right = np.cross(up, self.backward)
        self.right /= np.linalg.norm(self.right)
        self.upward = np.cross(self.backward, self.right)
        self.light = _LIGHT[0] * self.right + _LIGHT[2] * self.upward - _LIGHT[1] * self.backward
        self.light /= np.linalg.norm(self.light)
        radius = max(float(np.linalg.norm(points - self.centre, axis=1).max()), 1e-9)
        self.eye = self.centre + 5 * radius * self.backward
        # Fit: first without offset, then so that all points fill the picture with a margin.
        self._scale, self._offset = 1.0, np.zeros(2)
        seen = self.project(points)
        low2, high2 = seen.min(axis=0), seen.max(axis=0)
        size = np.array(_SIZE) * _OVERSAMPLING
        room = size - np.array([150, 230]) * _OVERSAMPLING
        self._scale = float((room / np.maximum(high2 - low2, 1e-9)).min())
        self._offset = size / 2 + np.array([0, 35]) * _OVERSAMPLING - self._scale * (low2 + high2) / 2
        self.metres_per_pixel = 1 / self._scale

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels [n x 2], perspective; y grows downward."""
        relative = points - self.eye
        distance = -(relative @ self.backward)
        reach = float(np.linalg.norm(self.eye - self.centre))
        flat = np.stack([relative @ self.right, -(relative @ self.upward)], axis=1) * (reach / distance)[:, None]
        return np.asarray(self._scale * flat + self._offset)

    def depth(self, point: np.ndarray) -> float:
        """Distance from the eye along the line of sight."""
        return -float((point - self.eye) @ self.backward)


class _Canvas:
    """Drawing in the view, at a multiple of the final size."""

    def __init__(self, view: _View) -> None:
        self.view = view
        width, height = (side * _OVERSAMPLING for side in _SIZE)
        blend = np.linspace(0, 1, height)[:, None, None]
        column = (1 - blend) * np.array(_TOP) + blend * np.array(_BOTTOM)
        self.image = Image.fromarray(np.broadcast_to(column, (height, width, 3)).round().astype(np.uint8))
        self._draw = ImageDraw.Draw(self.image)

    @staticmethod
    def paler(colour: tuple[int, int, int], amount: float) -> tuple[int, int, int]:
        """Towards the background."""
        ground = np.array(_TOP) * 0.5 + np.array(_BOTTOM) * 0.5
        mixed = (1 - amount) * np.array(colour) + amount * ground
        return int(mixed[0]), int(mixed[1]), int(mixed[2])

    @staticmethod
    def darker(colour: tuple[int, int, int], factor: float) -> tuple[int, int, int]:
        """Less light."""
        return int(colour[0] * factor), int(colour[1] * factor), int(colour[2] * factor)

    @staticmethod
    def lighter(colour: tuple[int, int, int], amount: float) -> tuple[int, int, int]:
        """Towards white."""
        return tuple(int(c + amount * (255 - c)) for c in colour)  # type: ignore[return-value]

    def line(self, points: np.ndarray, width: float, colour: tuple[int, int, int]) -> None:
        """A line through points of the world."""
        self.pixels(self.view.project(points), width, colour)

    def pixels(self, points: np.ndarray, width: float, colour: tuple[int, int, int]) -> None:
        """A line through pixels, with round joints and ends."""
        thick = max(1, round(width * _OVERSAMPLING))
        corners = [(float(x), float(y)) for x, y in points]
        self._draw.line(corners, fill=colour, width=thick, joint="curve")
        if thick > 3:
            radius = thick / 2 - 0.5
            for x, y in (corners[0], corners[-1]):
                self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)

    def segments(
        self, nodes: np.ndarray, segments: np.ndarray, widths: np.ndarray, colour: tuple[int, int, int]
    ) -> None:
        """Separate pieces, far ones first."""
        seen = self.view.project(nodes)
        middle = (nodes[segments[:, 0]] + nodes[segments[:, 1]]) / 2
        depth = -((middle - self.view.eye) @ self.view.backward)
        span = max(float(np.ptp(depth)), 1e-9)
        haze = 0.35 * (depth - depth.min()) / span if span > 1e-6 else np.zeros(len(depth))
        for index in np.argsort(-depth):
            a, b = seen[segments[index, 0]], seen[segments[index, 1]]
            thick = max(1, round(float(widths[index]) * _OVERSAMPLING))
            shade = self.paler(colour, float(haze[index]))
            self._draw.line((float(a[0]), float(a[1]), float(b[0]), float(b[1])), fill=shade, width=thick)
            if thick > 4:
                r = thick / 2 - 0.5
                self._draw.ellipse((b[0] - r, b[1] - r, b[0] + r, b[1] + r), fill=shade)

    def polygon(self, points: np.ndarray, fill: tuple[int, int, int], edge: tuple[int, int, int]) -> None:
        """A filled polygon of the world."""
        corners = [(float(x), float(y)) for x, y in self.view.project(points)]
        self._draw.polygon(corners, fill=fill)
        self._draw.line([*corners, corners[0]], fill=edge, width=max(1, round(0.9 * _OVERSAMPLING)), joint="curve")

    def text(self, x: int, y: int, text: str, size: int, colour: tuple[int, int, int], anchor: str = "la") -> None:
        """Words, at a place in final pixels."""
        font = ImageFont.load_default(size * _OVERSAMPLING)
        self._draw.text((x * _OVERSAMPLING, y * _OVERSAMPLING), text, fill=colour, font=font, anchor=anchor)

    def scale_bar(self) -> None:
        """A length at the scene's middle depth, in the lower right corner."""
        metres = self.view.metres_per_pixel * 220 * _OVERSAMPLING
        step = 10 ** math.floor(math.log10(metres))
        length = max(factor * step for factor in (1, 2, 5) if factor * step <= metres)
        pixels = length / self.view.metres_per_pixel
        width, height = self.image.size
        x1, y = width - 36 * _OVERSAMPLING, height - 36 * _OVERSAMPLING
        self._draw.line((x1 - pixels, y, x1, y), fill=_INK, width=2 * _OVERSAMPLING)
        for x in (x1 - pixels, x1):
            self._draw.line((x, y - 5 * _OVERSAMPLING, x, y + 5 * _OVERSAMPLING), fill=_INK, width=2 * _OVERSAMPLING)
        label = f"{length:g} m" if length >= 0.1 else f"{length * 100:g} cm"
        middle = round((x1 - pixels / 2) / _OVERSAMPLING)
        self.text(middle, round(y / _OVERSAMPLING) - 26, label, 19, _INK, "ma")
