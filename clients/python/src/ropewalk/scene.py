"""Scenes: read from files and dictionaries, built in code.

A scene is a `messages.Scene`. Whatever gives one (a dictionary, the path of a JSON file, a SceneBuilder, a message) can be
handed to `Session.load_scene`; `to_message` is what turns it into the message.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, Union

import numpy as np

from ._fill import fill
from ._schema import messages
from .errors import InvalidArgument, NotFound

SceneLike = Union["SceneBuilder", Mapping[str, Any], str, "os.PathLike[str]", Any]


def to_message(scene: SceneLike) -> Any:
    """A Scene message from a dictionary, a file's path, a SceneBuilder or a message (which is given back as it is)."""
    if isinstance(scene, SceneBuilder):
        return scene.message
    if isinstance(scene, Mapping):
        return fill(messages.Scene(), scene)
    if isinstance(scene, (str, os.PathLike)):
        return read_scene(scene)
    if hasattr(scene, "DESCRIPTOR") and scene.DESCRIPTOR.full_name == "ropewalk.v1.Scene":
        return scene if isinstance(scene, messages.Scene) else messages.Scene.FromString(scene.SerializeToString())
    raise TypeError(f"a scene is a dict, a path, a SceneBuilder or a Scene message, not {type(scene).__name__}")


def read_scene(path: str | os.PathLike[str]) -> Any:
    """Reads a scene file. Raises NotFound, or InvalidArgument with the path of the offending field."""
    path = pathlib.Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound("no such file", str(path)) from None
    except OSError as error:
        raise InvalidArgument(f"can't be read: {error.strerror}", str(path)) from None
    return parse_scene(data, str(path))


def parse_scene(text: str | bytes, name: str = "scene") -> Any:
    """A Scene message from a scene file's text; `name` is what syntax errors call it."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"is not UTF-8 text (byte {error.start})", name) from None
    try:
        value = json.loads(text, parse_constant=_Constant, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"is not JSON: {error.msg}", f"{name}:{error.lineno}:{error.colno}") from None
    except RecursionError:
        raise InvalidArgument("is nested too deeply", name) from None
    except ValueError as error:  # Numbers of more digits than Python reads.
        raise InvalidArgument(f"is not a scene: {error}", name) from None
    if not isinstance(value, _Pairs):
        raise InvalidArgument("is not a scene: the whole file must be one JSON object", name)
    return fill(messages.Scene(), _plain(value, ""), nested_arrays=False)


def write_scene(scene: SceneLike, path: str | os.PathLike[str]) -> None:
    """Writes a scene file: one object per line, so that it reads well and differences are small."""
    pathlib.Path(path).write_text(format_scene(scene), encoding="utf-8")


def format_scene(scene: SceneLike) -> str:
    """A scene file's text. Numbers keep every bit."""
    value = _to_plain(to_message(scene))
    lines = []
    for key, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in item)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(item, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


class _Constant:
    """NaN and Infinity, which JSON does not have but Python's parser reads."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Pairs(list):  # type: ignore[type-arg]
    """A JSON object before repeated names are refused, which needs the path."""


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, _Pairs):
        out: dict[str, Any] = {}
        for name, item in value:
            here = f"{path}.{name}" if path else name
            if name in out:
                raise InvalidArgument("is given twice", here)
            out[name] = _plain(item, here)
        return out
    if isinstance(value, list):
        if value and all(type(item) in (int, float) for item in value):
            return value
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, _Constant):
        raise InvalidArgument(f"must be a finite number, got {value.name}", path)
    return value


def _to_plain(message: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name == "id":
            continue
        if field.is_repeated:
            out[field.name] = [_plain_item(field, item) for item in value]
        else:
            out[field.name] = _plain_item(field, value)
    return out


def _plain_item(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _to_plain(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


class SceneBuilder:
    """Builds a scene in code; field names are those of the schema, arrays may be lists or numpy arrays of any shape.

        scene = SceneBuilder("swing", time_step=1e-3, rods="SCR")
        scene.rod("cable", straight={"start": [0, 0, 1], "end": [1, 0, 1]}, elements=20, section={"radius": 0.01},
                  density=1200, young_modulus=5e6)
        scene.attachment("hook", rod="cable", s=0, kind="CLAMP")

    Every method returns the builder. `message` is the Scene message, which may be changed further.
    """

    def __init__(self, name: str = "", *, rigid: str | None = None, rods: str | None = None, **fields: Any) -> None:
        self.message = messages.Scene()
        fill(self.message, {"name": name, **fields})
        methods = {key: value for key, value in (("rigid", rigid), ("rods", rods)) if value is not None}
        if methods:
            self.solver(**methods)

    def solver(self, **fields: Any) -> SceneBuilder:
        """Methods and their settings: solver(rods="SCR", scr={"iterations": 20})."""
        fill(self.message.solver, fields, "solver")
        return self

    def body(self, name: str, **fields: Any) -> SceneBuilder:
        """A rigid body."""
        return self._add("bodies", name, fields)

    def joint(self, name: str, type: str, **fields: Any) -> SceneBuilder:
        """A joint between two bodies, or a body and the world."""
        return self._add("joints", name, {"type": type, **fields})

    def coupling(self, name: str, **fields: Any) -> SceneBuilder:
        """A gear between two joint coordinates."""
        return self._add("couplings", name, fields)

    def rod(self, name: str, **fields: Any) -> SceneBuilder:
        """An elastic rod, or a graph of rods."""
        return self._add("rods", name, fields)

    def attachment(self, name: str, rod: str, **fields: Any) -> SceneBuilder:
        """Holds a rod's node to a body or to the world."""
        return self._add("attachments", name, {"rod": rod, **fields})

    def force(self, name: str, **fields: Any) -> SceneBuilder:
        """A spring_damper, load or drag."""
        return self._add("forces", name, fields)

    def input(self, name: str, target: str, **fields: Any) -> SceneBuilder:
        """A function of time added to its target."""
        return self._add("inputs", name, {"target": target, **fields})

    def _add(self, kind: str, name: str, fields: Mapping[str, Any]) -> SceneBuilder:
        items = getattr(self.message, kind)
        path = f"{kind}[{len(items)}]"
        item = items.add()
        try:
            fill(item, {"name": name, **fields}, path)
        except InvalidArgument:
            del items[-1]
            raise
        return self

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the scene as a file that `ropewalk run` reads."""
        write_scene(self, path)


def big_arrays(message: Any, least: int) -> list[tuple[Any, Any, np.ndarray]]:
    """Arrays of at least so many numbers that may be uploaded: (their message, field, numbers)."""
    found: list[tuple[Any, Any, np.ndarray]] = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                found += big_arrays(part, least)
        elif field.is_repeated and "blobs" in message.DESCRIPTOR.fields_by_name and len(value) >= least:
            kind = "<f8" if field.type == field.TYPE_DOUBLE else "<u4"
            found.append((message, field, np.asarray(value).astype(kind, copy=False)))
    return found
