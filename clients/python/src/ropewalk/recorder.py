"""Runs a scene to a time and brings its signals into a file: what `ropewalk run` does.

Rows come in chunks: one Advance answers as many rows as take about 50 ms, and the next one is on its way before the last
is written, so that neither the network nor Python's formatting holds the simulation up.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import IO

import numpy as np

from .errors import InvalidArgument, RopewalkError
from .observation import Entry, Observation
from .session import Session

# A chunk's aim, and its most: seconds, bytes.
_CHUNK_S = 0.05
_CHUNK_BYTES = 1 << 20
# Advances on their way at once.
_AHEAD = 2


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which steps give a row.

    stride  steps from row to row
    total   steps to the last row
    """

    stride: int
    total: int

    @classmethod
    def of(cls, until: float, every: float, time_step: float) -> Plan:
        """From times [s]: `every` rounds to the nearest multiple of the time step (at least one), `until` to the nearest."""
        return cls(max(1, math.floor(every / time_step + 0.5)), math.floor(until / time_step + 0.5))

    @property
    def rows(self) -> int:
        """Rows with the first (step 0) and the last (step `total`)."""
        return 1 + -(-self.total // self.stride)


class Columns:
    """What of an observed row goes into the file: each signal once, `world/time` first."""

    def __init__(self, observation: Observation) -> None:
        seen: dict[str, Entry] = {}
        for entry in observation.layout:
            seen.setdefault(entry.signal, entry)
        self.time = observation.place("world/time").start
        # The time was asked for last, behind what the user wants.
        last = observation.layout[-1]
        asked = {entry.signal for entry in observation.layout[:-1]}
        self.signals = [entry for entry in seen.values() if entry.signal != last.signal or entry.signal in asked]
        self.names = ["time"]
        self.indices = [self.time]
        for entry in self.signals:
            self.names += entry.columns()
            self.indices += range(entry.offset, entry.offset + entry.width)


def rows_of(
    session: Session, observation: Observation, plan: Plan, progress: Callable[[int], None] | None = None
) -> Iterator[np.ndarray]:
    """Advances the session and gives rows [n x width], the present one first, as they come.

    progress  is told the steps done since the last call
    """
    yield observation.values[None, :].copy()
    waiting: collections.deque[tuple[int, Callable[[], np.ndarray | None]]] = collections.deque()
    chunks = _Chunks(plan, observation.width)
    mark = time.perf_counter()
    while True:
        while len(waiting) < _AHEAD:
            chunk = chunks.next()
            if chunk is None:
                break
            steps, every, wanted = chunk
            finish = session.submit_advance(
                steps, observe=observation if wanted else None, every=every if wanted else 0
            )
            waiting.append((steps, finish))
        if not waiting:
            return
        steps, finish = waiting.popleft()
        rows = finish()
        now = time.perf_counter()
        chunks.learn(steps, now - mark)
        mark = now
        if progress is not None:
            progress(steps)
        if rows is not None:
            yield rows if rows.ndim == 2 else rows[None, :]


class _Chunks:
    """Cuts a plan into Advances: many rows in one where steps are fast, one row in many where they are slow."""

    def __init__(self, plan: Plan, width: int) -> None:
        self._plan = plan
        self._done = 0
        self._most_rows = max(1, _CHUNK_BYTES // (8 * width))
        self._steps = 1.0  # Steps that a chunk should have.

    def learn(self, steps: int, seconds: float) -> None:
        """A chunk of so many steps took so long."""
        wanted = steps * _CHUNK_S / max(seconds, 1e-6)
        # Grows at most fourfold: the first chunks are too short to measure well.
        self._steps = max(1.0, min(wanted, 4 * self._steps, 4e9))

    def next(self) -> tuple[int, int, bool] | None:
        """Steps, steps between rows, whether rows are wanted; None when all is done."""
        plan, done = self._plan, self._done
        left = plan.total - done
        if left == 0:
            return None
        to_row = plan.stride - done % plan.stride
        if to_row > left or to_row < plan.stride or plan.stride > 2 * self._steps:
            # Towards the next row (the last, irregular one included), in pieces where it is far.
            steps = min(to_row, left, max(1, int(self._steps)))
            self._done += steps
            return steps, 0, steps == min(to_row, left)
        rows = min(left // plan.stride, self._most_rows, max(1, int(self._steps / plan.stride)))
        self._done += rows * plan.stride
        return rows * plan.stride, plan.stride, True


class Output:
    """A file that appears only when it is complete. As a context manager: whole on success, gone on failure."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns) -> None:
        self.path = pathlib.Path(path)
        self.columns = columns
        if self.path.is_dir():
            raise InvalidArgument("is a folder", str(path))
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        except OSError as error:
            raise InvalidArgument(f"can't be written: {error.strerror}", str(path)) from None
        self._temporary = pathlib.Path(name)
        self._file: IO[bytes] = os.fdopen(handle, "wb")

    def write(self, rows: np.ndarray) -> None:
        """More rows [n x width] of the observation."""
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
                self._file.close()
                # mkstemp makes files private; this one is an ordinary file.
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(self._temporary, 0o666 & ~mask)
                os.replace(self._temporary, self.path)
        except OSError as problem:
            raise InvalidArgument(f"can't be written: {problem.strerror}", str(self.path)) from None
        finally:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                self._temporary.unlink()


class CsvOutput(Output):
    """Text: a header, `time` first, 17 significant digits."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns) -> None:
        super().__init__(path, columns)
        self._row = ",".join(["%.17g"] * len(columns.indices)) + "\n"
        self._file.write((",".join(map(_quoted, columns.names)) + "\n").encode())

    def write(self, rows: np.ndarray) -> None:
        # One formatting call for many rows: half the time of one per row.
        for start in range(0, len(rows), 256):
            block = rows[start : start + 256, self.columns.indices]
            self._file.write((self._row * len(block) % tuple(block.ravel().tolist())).encode())

    def _finish(self) -> None:
        self._file.flush()


class NpzOutput(Output):
    """A numpy archive: `time` [n] and every signal [n] or [n x width] under its name."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns) -> None:
        super().__init__(path, columns)
        self._rows: list[np.ndarray] = []

    def write(self, rows: np.ndarray) -> None:
        self._rows.append(rows)

    def _finish(self) -> None:
        table = np.concatenate(self._rows)
        arrays = {"time": table[:, self.columns.time]}
        for entry in self.columns.signals:
            part = table[:, entry.offset : entry.offset + entry.width]
            arrays[entry.signal] = part[:, 0] if entry.width == 1 else part
        np.savez(self._file, **arrays)  # type: ignore[arg-type]


FORMATS: dict[str, type[Output]] = {".csv": CsvOutput, ".npz": NpzOutput}


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def record_signals(
    session: Session,
    signals: Sequence[str],
    until: float,
    every: float,
    path: str | os.PathLike[str],
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Runs a loaded session from where it is to `until` [s] after, writes a row every `every` [s], and returns the rows.

    progress  is told the steps just done and all there are
    Raises RopewalkError; no file is left then, not even an older one of that name.
    """
    try:
        observation = session.observe(*signals, "world/time")
        plan = Plan.of(until, every, session.refresh().time_step)
        columns = Columns(observation)
        count = 0
        with FORMATS[pathlib.Path(path).suffix.lower()](path, columns) as output:
            told = None if progress is None else lambda steps: progress(steps, plan.total)
            for rows in rows_of(session, observation, plan, told):
                output.write(rows)
                count += len(rows)
        return count
    except (RopewalkError, KeyboardInterrupt):
        remove_stale(path)
        raise


def remove_stale(path: str | os.PathLike[str]) -> None:
    """Removes an output of an earlier run, so that nobody takes it for this one's."""
    with contextlib.suppress(OSError):
        if pathlib.Path(path).is_file():
            os.unlink(path)
