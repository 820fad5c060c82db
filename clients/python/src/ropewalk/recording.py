"""Recordings: state frames in a file, and what can be made of them.

A recording is `ropewalk recording 1`, a line feed, and then messages in the framing of the wire (8-byte header, payload):
kind 16 a SubscribeResult (the layout), 17 a Scene (for pictures), 3 a StateFrame each.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from . import gallery
from ._schema import messages
from .client import Client
from .connection import HEADER, KIND_STATE
from .errors import DataLoss, InvalidArgument, NotFound
from .picture import Film
from .recorder import remove_stale
from .scene import read_scene
from .session import Session
from .stream import Frame, FrameReader

MAGIC = b"ropewalk recording 1\n"
_KIND_LAYOUT, _KIND_SCENE = 16, 17
_FIELDS = ("position", "rotation", "linear_velocity", "angular_velocity")


def record_frames(
    client: Client,
    source: str,
    attach: bool,
    out: pathlib.Path,
    seconds: float,
    every: float,
    quantized: bool,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int]:
    """Records a session (attach) or a scene simulated for it; returns frames and bytes. On failure no file is left."""
    if attach and not (source.endswith(".json") or source in gallery.SCENES):
        session = client.attach_session(source)
    else:
        scene = gallery.scene(source).message if source in gallery.SCENES else read_scene(source)
        session = client.create_session(ttl_detached_s=0)
        session.load_scene(scene)
        attach = False
    try:
        with open(out, "wb") as file, session:
            return _record(session, attach, file, seconds, every, quantized, progress), file.tell()
    except OSError as error:
        remove_stale(out)
        raise InvalidArgument(f"can't be written: {error.strerror}", str(out)) from None
    except BaseException:
        remove_stale(out)
        raise


def _record(
    session: Session,
    attach: bool,
    file: IO[bytes],
    seconds: float,
    every: float,
    quantized: bool,
    progress: Callable[[int, int], None] | None,
) -> int:
    file.write(MAGIC)
    _write(file, _KIND_SCENE, session.get_scene())
    start, end = session.time, session.time + seconds
    info = session.refresh()
    count = 0
    # The session that runs for us waits for us; one that runs for others does not.
    with session.subscribe(every_s=every, quantized=quantized, back_pressure=not attach, queue_limit=None) as frames:
        layout = messages.SubscribeResult()
        if frames.reader.layout is not None:
            layout.layout.CopyFrom(frames.reader.layout)
        layout.period = frames.period
        _write(file, _KIND_LAYOUT, layout)
        total = max(1, round(seconds / info.time_step))
        done = 0
        pending = None
        while True:
            if not attach and pending is None and done < total:
                steps = min(max(1, total // 100), total - done)
                pending = session.submit("step", {"count": steps})
                done += steps
                if progress is not None:
                    progress(steps, total)
            if pending is not None:
                pending.result()
                pending = None
            message = frames.next_message(1.0 if attach else 0.0)
            while message is not None:
                if message.time > end + info.time_step / 2:
                    return count
                _write(file, KIND_STATE, message)
                count += 1
                message = frames.next_message(0.0)
            if not attach and done >= total:
                return count
            if attach and session.refresh().state not in ("RUNNING", "READY"):
                return count
            if attach and session.time >= end and start < end:
                time.sleep(0)
                return count


def _write(file: IO[bytes], kind: int, message: Any) -> None:
    payload = message.SerializeToString()
    file.write(HEADER.pack(len(payload), kind, 0, 0) + payload)


@dataclasses.dataclass
class Recording:
    """A recording read back: the scene (None where it was not kept) and its frames."""

    scene: Any
    frames: list[Frame]


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Reads a file that `record_frames` wrote. Raises NotFound, DataLoss."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise NotFound(error.strerror or "can't be read", str(path)) from None
    if not data.startswith(MAGIC):
        raise DataLoss("is not a recording of state frames (journals of commands are not served yet)", str(path))
    recording = Recording(None, [])
    reader = FrameReader()
    for kind, payload in _parts(data, str(path)):
        if kind == _KIND_SCENE:
            recording.scene = messages.Scene.FromString(payload)
        elif kind == _KIND_LAYOUT:
            reader = FrameReader(messages.SubscribeResult.FromString(payload).layout)
        elif kind == KIND_STATE:
            frame = reader.read(messages.StateFrame.FromString(payload))
            if frame is not None:
                recording.frames.append(frame)
    return recording


def _parts(data: bytes, path: str) -> Iterator[tuple[int, bytes]]:
    offset = len(MAGIC)
    while offset < len(data):
        if len(data) - offset < HEADER.size:
            raise DataLoss("ends in the middle of a frame", path)
        length, kind, _, _ = HEADER.unpack_from(data, offset)
        offset += HEADER.size
        if len(data) - offset < length:
            raise DataLoss("ends in the middle of a frame", path)
        yield kind, data[offset : offset + length]
        offset += length


def replay_frames(path: pathlib.Path, out: pathlib.Path | None) -> None:
    """Prints what a recording holds, and writes a picture or arrays of it."""
    recording = read_recording(path)
    frames = recording.frames
    if not frames:
        raise DataLoss("holds no frame", str(path))
    places = ", ".join(f"{place.name} ({place.count})" for place in list(frames[0].places.values())[:8])
    print(f"{path}: {len(frames)} frames, {frames[0].time:g} s to {frames[-1].time:g} s; {places}")
    if out is None:
        return
    if out.suffix.lower() == ".png":
        if recording.scene is None:
            raise DataLoss("holds no scene to draw", str(path))
        film = Film(recording.scene, recording.scene.name)
        for frame in frames:
            film.add(frame)
        film.draw(out)
    else:
        save_arrays(frames, out)
    print(f"wrote {out}")


def save_arrays(frames: list[Frame], out: pathlib.Path) -> None:
    """An npz with `time` and `step` [n], and per object and field [n x elements x 3 or 4], such as "rod/cable/position"."""
    arrays: dict[str, np.ndarray] = {
        "time": np.array([frame.time for frame in frames]),
        "step": np.array([frame.step for frame in frames], dtype=np.int64),
    }
    same = [frame for frame in frames if frame.places.keys() == frames[0].places.keys()]
    if len(same) != len(frames):
        raise InvalidArgument("the objects change on the way; arrays need the same ones in every frame", str(out))
    for name in frames[0].places:
        for field in _FIELDS:
            if getattr(frames[0], field) is not None:
                arrays[f"{name}/{field}"] = np.stack([frame.of(field, name) for frame in frames])
    with open(out, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
