"""Prepared reading and writing: named places in rows of packed doubles."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import NotFound

if TYPE_CHECKING:
    from .session import Session


@dataclasses.dataclass(frozen=True)
class Entry:
    """Where a signal (or input) lies in a row.

    signal  its name, such as "body/link/position"
    offset  first double in the row
    width   doubles
    unit    such as "m/s"; "1" for pure numbers
    frame   "world", "body", "joint", "material" or ""
    """

    signal: str
    offset: int
    width: int
    unit: str
    frame: str

    def columns(self) -> list[str]:
        """A column name per double: SIG for a single one, SIG.0 SIG.1 ... for a vector."""
        return [self.signal] if self.width == 1 else [f"{self.signal}.{index}" for index in range(self.width)]


class _Row:
    """A handle of the daemon with the layout of its rows."""

    def __init__(self, session: Session, result: Any) -> None:
        self.session = session
        self.handle: int = result.handle
        self.width: int = result.width
        self.layout = [Entry(item.signal, item.offset, item.width, item.unit, item.frame) for item in result.layout]
        self._places = {entry.signal: slice(entry.offset, entry.offset + entry.width) for entry in self.layout}
        #: The latest row [width].
        self.values: np.ndarray = np.array(result.values, dtype=np.float64)

    @property
    def names(self) -> list[str]:
        """The signals, in row order."""
        return [entry.signal for entry in self.layout]

    def place(self, signal: str) -> slice:
        """Where a signal lies in a row. Raises NotFound."""
        try:
            return self._places[signal]
        except KeyError:
            raise NotFound(
                f"is not among {', '.join(self.names[:8])}{' ...' if len(self.names) > 8 else ''}", signal
            ) from None

    def __getitem__(self, signal: str) -> np.ndarray:
        """A signal's doubles in the latest row (a view)."""
        return self.values[self.place(signal)]

    def __contains__(self, signal: object) -> bool:
        return signal in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self.layout)

    def matching(self, glob: str) -> list[str]:
        """Signals that match a pattern with `*`, in row order."""
        return fnmatch.filter(self.names, glob)

    def as_dict(self, rows: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Signals by name, of the latest row or of rows [n x width]; a signal of width 1 has no axis of its own."""
        table = self.values if rows is None else rows
        return {
            entry.signal: table[..., entry.offset] if entry.width == 1 else table[..., self._places[entry.signal]]
            for entry in self.layout
        }

    def release(self) -> None:
        """Frees the handle in the daemon. Handles also end with their session and with a change of topology."""
        self.session.call("release", {"handle": self.handle})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.layout)} signals, {self.width} doubles>"


class Observation(_Row):
    """Signals prepared for reading. Made by `Session.observe`.

    obs = session.observe("world/time", "body/*/position")
    session.advance(observe=obs, steps=10)
    obs["body/top/position"]             # array([...]), of the latest row
    """

    def columns(self) -> list[str]:
        """A column name per double: SIG for a single one, SIG.0 SIG.1 ... for vectors."""
        return [column for entry in self.layout for column in entry.columns()]

    def update(self) -> np.ndarray:
        """Reads the present state without stepping and returns the row."""
        self.session.advance(observe=self, steps=0)
        return self.values


class Actuation(_Row):
    """Inputs prepared for writing, for `Session.advance`. Made by `Session.actuate`.

    act = session.actuate("joint/*")
    act["joint/shoulder"][:] = 0.3
    session.advance(inputs=act, steps=1)
    """

    def __setitem__(self, target: str, value: Any) -> None:
        self.values[self.place(target)] = value

    def set(self, values: Mapping[str, Any]) -> None:
        """Sets several targets of the row."""
        for target, value in values.items():
            self[target] = value
