"""State frames on the client's side: queues per subscription, and frames as numpy arrays."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._schema import enum_numbers, messages
from .errors import FailedPrecondition, RopewalkError
from .frames import FrameDecoder

if TYPE_CHECKING:
    from .session import Session

_KIND_NAMES = {number: name.lower() for name, number in enum_numbers("ObjectRef.Kind").items()}
# Frames that may come before their subscription is known here.
_EARLY_LIMIT = 64


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an object lies among a frame's elements.

    name    "body/NAME" or "rod/NAME"
    first   its first element
    count   its elements: 1 for a body, streamed nodes for a rod
    stride  rod nodes from one element to the next; the last node is always there
    starts  graph rods of several chains: the first element of each, relative to `first`; empty = one chain
    """

    name: str
    first: int
    count: int
    stride: int = 1
    starts: tuple[int, ...] = dataclasses.field(default=(), repr=False)

    @property
    def elements(self) -> slice:
        """Rows of the frame's arrays."""
        return slice(self.first, self.first + self.count)


@dataclasses.dataclass
class Frame:
    """One instant.

    position          [n x 3] m: body origins, rod nodes
    rotation          [n x 4] (w, x, y, z), to world
    linear_velocity   [n x 3] m/s, world
    angular_velocity  [n x 3] rad/s, body or node axes
    Fields that were not asked for are None. frame["rod/cable"] is that object's positions.
    """

    step: int
    time: float
    epoch: int
    sequence: int
    is_key: bool
    places: dict[str, Place]
    position: np.ndarray | None = None
    rotation: np.ndarray | None = None
    linear_velocity: np.ndarray | None = None
    angular_velocity: np.ndarray | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        if self.position is None:
            raise KeyError(f"{name}: the subscription has no positions")
        return self.position[self.places[name].elements]

    def of(self, field: str, name: str) -> np.ndarray:
        """A field of one object: frame.of("rotation", "body/top")."""
        values = getattr(self, field)
        if values is None:
            raise KeyError(f"the subscription has no {field}")
        return np.asarray(values[self.places[name].elements])


def places_of(layout: Any) -> dict[str, Place]:
    """A Layout message's objects by name."""
    found = {}
    for entry in layout.entries:
        name = f"{_KIND_NAMES.get(entry.kind, str(entry.kind))}/{entry.name}"
        found[name] = Place(name, entry.first, entry.count, max(1, entry.stride), tuple(entry.starts))
    return found


class FrameReader:
    """Turns StateFrame messages of one group into frames; remembers the key frame and the layout."""

    def __init__(self, layout: Any | None = None) -> None:
        self._decoder = FrameDecoder()
        self.layout = layout
        self._places = places_of(layout) if layout is not None else {}
        #: Frames that could not be decoded because their key frame was lost.
        self.undecodable = 0

    def read(self, message: Any) -> Frame | None:
        """The frame of a StateFrame message; None when the key frame it needs was lost."""
        if message.HasField("layout"):
            self.layout = message.layout
            self._places = places_of(message.layout)
        try:
            decoded = self._decoder.decode(message.payload)
        except FailedPrecondition:
            self.undecodable += 1
            return None
        frame = Frame(
            step=message.step,
            time=message.time,
            epoch=message.epoch,
            sequence=message.sequence,
            is_key=message.sequence == message.key_sequence,
            places=self._places,
        )
        for track in decoded.tracks:
            setattr(frame, track.field, track.values)
        return frame


class Router:
    """Brings the state frames of a connection to the queues of their subscriptions.

    Alike subscriptions share a group: the daemon sends a copy for each of them. Of every frame the first copy that
    comes goes to all of them, and one that joins later begins with the key frame the next frames need.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[tuple[int, int], list[Subscription]] = {}
        self._early: collections.deque[Any] = collections.deque(maxlen=_EARLY_LIMIT)
        #: Of each group: the frame given out last, and the key frame given out last.
        self._newest: dict[tuple[int, int], tuple[int, int]] = {}
        self._keys: dict[tuple[int, int], Any] = {}

    def take(self, payload: bytes) -> None:
        """Called by whoever reads the socket, with a StateFrame's bytes."""
        message = messages.StateFrame.FromString(payload)
        with self._lock:
            targets = self._queues.get((message.session, message.group))
            if not targets:
                self._early.append(message)
                return
            self._give(message, targets)

    def _give(self, message: Any, targets: list[Subscription]) -> None:
        key = (message.session, message.group)
        place = (message.epoch, message.sequence)
        if place <= self._newest.get(key, (-1, -1)):
            return  # the copy of another subscription
        self._newest[key] = place
        if message.sequence == message.key_sequence:
            self._keys[key] = message
        for target in targets:
            target._put(message)

    def add(self, subscription: Subscription) -> None:
        """Frames of its group go to this subscription from now on, those that came early first."""
        key = subscription._key
        with self._lock:
            targets = self._queues.setdefault(key, [])
            newest_key = self._keys.get(key)
            if targets and newest_key is not None and newest_key.epoch == subscription._epoch:
                subscription._put(newest_key)
            targets.append(subscription)
            for message in [early for early in self._early if (early.session, early.group) == key]:
                self._early.remove(message)
                self._give(message, targets)

    def remove(self, subscription: Subscription) -> None:
        """No more frames for it."""
        with self._lock:
            targets = self._queues.get(subscription._key, [])
            if subscription in targets:
                targets.remove(subscription)
            if not targets:
                self._queues.pop(subscription._key, None)
                self._newest.pop(subscription._key, None)
                self._keys.pop(subscription._key, None)


class Subscription:
    """An iterator of frames, made by `Session.subscribe`. As a context manager it ends the subscription.

    with session.subscribe("rod/*", every_s=1 / 60) as frames:
        session.run()
        for frame in frames:
            draw(frame["rod/cable"])

    `for` waits for frames without end; `available()` gives only what is there; `next(timeout_s)` waits that long.
    """

    def __init__(self, session: Session, result: Any, queue_limit: int | None) -> None:
        self.session = session
        self.id: int = result.subscription
        self.group: int = result.group
        #: Simulated time between frames [s].
        self.period: float = result.period
        self.reader = FrameReader(result.layout if result.HasField("layout") else None)
        #: Frames lost here because nobody took them.
        self.dropped = 0
        #: Frames the daemon sent and dropped, known after `close`.
        self.server_sent = 0
        self.server_dropped = 0
        self._key = (session.id, result.group)
        self._epoch: int = result.epoch
        self._queue: collections.deque[Any] = collections.deque()
        self._queue_limit = queue_limit
        self._closed = False
        session.client.router.add(self)

    @property
    def places(self) -> dict[str, Place]:
        """The objects of the frames by name, such as "rod/cable"."""
        return places_of(self.reader.layout) if self.reader.layout is not None else {}

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.session.client.closed:
            with contextlib.suppress(RopewalkError):
                self.close()

    def __iter__(self) -> Iterator[Frame]:
        while not self._closed or self._queue:
            frame = self.next()
            if frame is None:
                return
            yield frame

    def next(self, timeout_s: float | None = None) -> Frame | None:
        """The next frame; None when none came in time, or none will come any more."""
        while True:
            message = self.next_message(timeout_s)
            if message is None:
                return None
            frame = self.reader.read(message)
            if frame is not None:
                return frame

    def next_message(self, timeout_s: float | None = None) -> Any:
        """The next frame's StateFrame message, undecoded; None as in `next`."""
        if not self._queue:
            if self._closed:
                return None
            try:
                self.session.client.connection.wait(lambda: bool(self._queue) or self._closed, timeout_s)
            except TimeoutError:
                return None
        return self._queue.popleft() if self._queue else None

    def available(self) -> list[Frame]:
        """Frames that have arrived, without waiting."""
        self.session.client.connection.poll()
        found = []
        while self._queue:
            frame = self.reader.read(self._queue.popleft())
            if frame is not None:
                found.append(frame)
        return found

    def close(self) -> None:
        """Ends the subscription; frames that came before may still be taken."""
        if self._closed:
            return
        answer = self.session.call("unsubscribe", {"subscription": self.id})
        self._closed = True
        self.session.client.router.remove(self)
        if answer is not None:
            self.server_sent = answer.unsubscribe.sent
            self.server_dropped = answer.unsubscribe.dropped

    def _put(self, message: Any) -> None:
        if self._queue_limit is not None and len(self._queue) >= self._queue_limit:
            # The oldest goes, but not a key frame that the next ones need.
            is_key = [one.sequence == one.key_sequence for one in itertools.islice(self._queue, 2)]
            del self._queue[1 if is_key == [True, False] else 0]
            self.dropped += 1
        self._queue.append(message)
