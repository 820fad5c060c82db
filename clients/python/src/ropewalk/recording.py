"""Recordings: state frames in a file, and what can be made of them.

A recording is `ropewalk recording 1`, a line feed, and then messages in the framing of the wire (8-byte header, payload):
kind 16 a SubscribeResult (the layout), 17 a Scene (for pictures), 3 a StateFrame each.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
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
from .stream import Frame, FrameReader, Subscription

MAGIC = b"ropewalk recording 1\n"
_KIND_LAYOUT, _KIND_SCENE = 16, 17
# A driven session is stepped in so many parts, for the progress bar.
_PARTS = 100
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
    info = session.refresh()
    # The session that runs for us waits for us; one that runs for others does not.
    with session.subscribe(every_s=every, quantized=quantized, back_pressure=not attach, queue_limit=None) as frames:
        layout = messages.SubscribeResult(period=frames.period)
        if frames.reader.layout is not None:
            layout.layout.CopyFrom(frames.reader.layout)
        _write(file, _KIND_LAYOUT, layout)
        if attach:
            return _follow(session, frames, file, info.time + seconds - info.time_step / 2)
        return _drive(session, frames, file, max(1, round(seconds / info.time_step)), progress)


def _drive(
    session: Session, frames: Subscription, file: IO[bytes], total: int, progress: Callable[[int, int], None] | None
) -> int:
    """Steps the session and writes all frames that come of it."""
    count = 0
    for part in range(_PARTS):
        steps = total * (part + 1) // _PARTS - total * part // _PARTS
        if steps == 0:
            continue
        session.step(steps)
        if progress is not None:
            progress(steps, total)
        count += _write_waiting(frames, file)
    frames.close()  # What was on its way is there now.
    return count + _write_waiting(frames, file)


def _write_waiting(frames: Subscription, file: IO[bytes]) -> int:
    count = 0
    while (message := frames.next_message(0.0)) is not None:
        _write(file, KIND_STATE, message)
        count += 1
    return count


def _follow(session: Session, frames: Subscription, file: IO[bytes], end: float) -> int:
    """Writes what comes until the session's time reaches `end`, it ends, or the user has seen enough (interrupts)."""
    count = 0
    try:
        while True:
            message = frames.next_message(0.5)
            if message is not None:
                _write(file, KIND_STATE, message)
                count += 1
                if message.time >= end:
                    return count
            elif not any(info.id == session.id and info.state != "FAULTED" for info in session.client.sessions()):
                return count
    except KeyboardInterrupt:
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
