"""State frames to numpy arrays: the decoder of docs/state-frames.md.

    decoder = FrameDecoder()
    for payload in payloads:                 # StateFrame.payload, or a recording
        frame = decoder.decode(payload)
        frame.position                       # (n, 3) float64
        frame.rotation                       # (n, 4) float64, w x y z

numpy does everything, without a loop over elements; zstandard undoes the outer compression. A frame
that is not a key frame needs the last key frame and nothing else: others may have been dropped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import zstandard

from .errors import DataLoss, FailedPrecondition, ResourceExhausted

FIELDS = ("position", "rotation", "linear_velocity", "angular_velocity")

_Array = npt.NDArray[Any]
_HEADER = struct.Struct("<IBBHIIQdQQ")
_TABLE = struct.Struct("<BxxxIIId")
_RECORD = struct.Struct("<BBBBI")
_MAGIC = 0x31535752  # "RWS1"
_MAX_TRACKS = 16
_KEY, _COMPRESSED = 1, 2
_QUANTIZED, _LOSSLESS = 0, 1
_FROM_KEY, _INDEX = 1, 2


@dataclass(frozen=True)
class Track:
    """One field of every element of a frame."""

    field: str  # one of FIELDS
    values: npt.NDArray[np.float64]  # (n, 3), or (n, 4) for rotations: w, x, y, z
    chain_starts: npt.NDArray[np.int64]  # first element of each run of neighbours


@dataclass(frozen=True)
class Frame:
    """The state at one instant."""

    epoch: int  # rises when the elements change and after a restore
    step: int
    time: float  # s
    sequence: int
    key_sequence: int  # the frame it was predicted from; its own for a key frame
    tracks: tuple[Track, ...]

    @property
    def is_key(self) -> bool:
        return self.sequence == self.key_sequence

    def __getitem__(self, field: str) -> npt.NDArray[np.float64]:
        """The values of the first track of this field; KeyError when the stream has none."""
        for track in self.tracks:
            if track.field == field:
                return track.values
        raise KeyError(field)

    @property
    def position(self) -> npt.NDArray[np.float64]:
        """(n, 3) [m], world."""
        return self["position"]

    @property
    def rotation(self) -> npt.NDArray[np.float64]:
        """(n, 4) unit quaternions w, x, y, z, element frame to world."""
        return self["rotation"]


@dataclass
class _Track:
    """What a key frame says of a track, and what deltas are predicted from."""

    field: str
    count: int
    step: float
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    coding: int = _QUANTIZED
    key: Optional[_Array] = None  # (components, n) integers
    key_rotation: Optional[_Array] = None  # (4, n)

    @property
    def components(self) -> int:
        return 4 if self.field == "rotation" else 3


@dataclass
class _Record:
    coding: int
    order: int
    width: int
    flags: int
    exceptions: int
    values: _Array
    index: Optional[_Array] = None


class _Reader:
    """Takes pieces off a body and refuses to read past its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, size: int) -> memoryview:
        if size > len(self._body) - self._at:
            raise DataLoss("state frame cut short")
        self._at += size
        return memoryview(self._body)[self._at - size : self._at]

    def array(self, dtype: str, count: int) -> _Array:
        return np.frombuffer(self.take(np.dtype(dtype).itemsize * count), dtype)

    def end(self) -> None:
        if self._at != len(self._body):
            raise DataLoss("bytes too many in a state frame")


def _running_sum(values: _Array, starts: _Array, lengths: _Array) -> _Array:
    """Wrapping sums along the last axis that start anew at every chain."""
    sums: _Array = np.cumsum(values, axis=-1, dtype=values.dtype)
    if len(starts) > 1:
        before = np.zeros(values.shape[:-1] + (len(starts),), values.dtype)
        before[..., 1:] = sums[..., starts[1:] - 1]
        sums -= np.repeat(before, lengths, axis=-1)
    return sums


def _integrate(zigzag: _Array, order: int, track: _Track) -> _Array:
    """Zigzag residuals of (components, n) elements to integers: two running sums at most."""
    one = zigzag.dtype.type(1)
    values: _Array = (zigzag >> one) ^ (zigzag.dtype.type(0) - (zigzag & one))
    if order == 0 or track.count == 0:
        return values
    if order == 2:
        # The second of a chain is a first difference already; the first is a value by itself.
        heads = values[..., track.starts].copy()
        values[..., track.starts] = 0
        values = _running_sum(values, track.starts, track.lengths)
        values[..., track.starts] = heads
    return _running_sum(values, track.starts, track.lengths)


def _unpack_rotation(slots: _Array, index: Optional[_Array]) -> _Array:
    """(3, n) slots to (4, n) unit quaternions."""
    missing: _Array = np.sqrt(np.maximum(1.0 - (slots * slots).sum(axis=0), 0.0))
    q: _Array = np.concatenate([missing[None], slots])
    if index is not None:
        for k in (1, 2, 3):
            swapped = np.flatnonzero(index == k)
            q[0, swapped] = slots[k - 1, swapped]
            q[k, swapped] = missing[swapped]
    return q


def _product(a: _Array, b: _Array) -> _Array:
    """Quaternion product of (4, n) arrays."""
    return np.stack(
        [
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ]
    )


class FrameDecoder:
    """Decodes the frames of one stream, whatever deltas are missing.

    max_elements  what a frame may hold in all tracks together; more raises ResourceExhausted
    """

    def __init__(self, max_elements: int = 1 << 24) -> None:
        self._max_elements = max_elements
        self._zstd = zstandard.ZstdDecompressor()
        self._tracks: list[_Track] = []
        self._key: Optional[tuple[int, int]] = None  # epoch and sequence of the last key frame

    def decode(self, data: bytes) -> Frame:
        """Decodes one frame.

        FailedPrecondition: its key frame was not seen; skip it and wait for a key frame.
        DataLoss: the bytes are no state frame. ResourceExhausted: more than max_elements.
        """
        if len(data) < _HEADER.size:
            raise DataLoss("state frame cut short")
        magic, flags, zero, count, epoch, size, step, time, sequence, key_sequence = (
            _HEADER.unpack_from(data)
        )
        if magic != _MAGIC or zero != 0 or flags & ~(_KEY | _COMPRESSED) or count > _MAX_TRACKS:
            raise DataLoss("not a state frame of this version")
        is_key = bool(flags & _KEY)
        if is_key != (sequence == key_sequence):
            raise DataLoss("key flag and key sequence of a state frame disagree")
        if not is_key and (self._key != (epoch, key_sequence) or count != len(self._tracks)):
            raise FailedPrecondition(f"the key frame {key_sequence} of epoch {epoch} is missing")
        reader = _Reader(self._body(data, bool(flags & _COMPRESSED), size))
        tracks = self._tracks
        if is_key:
            self._key = None  # until this one is done
            tracks = self._read_table(reader, count)
        records = self._read_records(reader, tracks, is_key)
        done = [self._finish(track, record, reader, is_key) for track, record in zip(tracks, records)]
        reader.end()
        if is_key:
            self._tracks = tracks
            self._key = (epoch, sequence)
        return Frame(epoch, step, time, sequence, key_sequence, tuple(done))

    def _body(self, data: bytes, is_compressed: bool, size: int) -> bytes:
        if size // 64 > self._max_elements + 1024:
            raise ResourceExhausted(f"a state frame of {size} bytes")
        body = bytes(data[_HEADER.size :])
        if is_compressed:
            try:
                parameters = zstandard.get_frame_parameters(body)
                if parameters.content_size != size:
                    raise DataLoss("a state frame's body has not the announced size")
                body = self._zstd.decompress(body) if size > 0 else b""
            except zstandard.ZstdError as error:
                raise DataLoss(f"a state frame's body: {error}") from error
        if len(body) != size:
            raise DataLoss("a state frame's body has not the announced size")
        return body

    def _read_table(self, reader: _Reader, count: int) -> list[_Track]:
        tracks = []
        total = 0
        for _ in range(count):
            field, elements, run_count, _zero, step = _TABLE.unpack(reader.take(_TABLE.size))
            total += elements
            if total > self._max_elements:
                raise ResourceExhausted(f"a state frame of {total} elements")
            if field >= len(FIELDS) or run_count > elements or not 0.0 <= step <= 1e12:
                raise DataLoss("bad track table in a state frame")
            runs = reader.array("<u4", 2 * run_count).reshape(-1, 2).astype(np.int64)
            covered = runs[:, 0] * runs[:, 1]
            # First roughly: a sum of hostile products may leave 64 bits and come back.
            if (
                (runs < 1).any()
                or (runs > elements).any()
                or covered.sum(dtype=np.float64) > elements + 0.5
                or covered.sum() != elements
            ):
                raise DataLoss("chains of a state frame do not fit its elements")
            lengths = np.repeat(runs[:, 0], runs[:, 1])
            starts = np.cumsum(lengths) - lengths
            tracks.append(_Track(FIELDS[field], elements, step, starts, lengths))
        return tracks

    def _read_records(self, reader: _Reader, tracks: list[_Track], is_key: bool) -> list[_Record]:
        records = []
        for track in tracks:
            coding, order, width, flags, exceptions = _RECORD.unpack(reader.take(_RECORD.size))
            is_quantized = coding == _QUANTIZED
            if coding > _LOSSLESS or order > 2 or width > (4 if is_quantized else 8) or flags > 3:
                raise DataLoss("bad record in a state frame")
            if flags & _FROM_KEY and (is_key or track.coding != coding):
                raise DataLoss("a track is predicted from a key that does not fit")
            if flags & _INDEX and not (is_quantized and track.field == "rotation"):
                raise DataLoss("an index plane without rotations in a state frame")
            if exceptions > (track.count if is_quantized else 0):
                raise DataLoss("more exceptions than elements in a state frame")
            components = 3 if is_quantized else track.components
            values = np.zeros((components, track.count), np.uint32 if is_quantized else np.uint64)
            records.append(_Record(coding, order, width, flags, exceptions, values))
        for plane in range(8):
            for record in records:
                if plane < record.width:
                    bytes_ = reader.array("u1", record.values.size).reshape(record.values.shape)
                    shift = record.values.dtype.type(8 * plane)
                    record.values |= bytes_.astype(record.values.dtype) << shift
        for track, record in zip(tracks, records):
            if record.flags & _INDEX:
                record.index = reader.array("u1", track.count)
                if (record.index > 3).any():
                    raise DataLoss("an index beyond 3 in a state frame")
        return records

    def _finish(self, track: _Track, record: _Record, reader: _Reader, is_key: bool) -> Track:
        integers = _integrate(record.values, record.order, track)
        is_rotation = track.field == "rotation"
        from_key = bool(record.flags & _FROM_KEY)
        if from_key and not (record.coding == _QUANTIZED and is_rotation):
            assert track.key is not None
            integers = integers + track.key
        if record.coding == _LOSSLESS:
            flipped = np.uint64(0) - (integers >> np.uint64(63)) >> np.uint64(1)
            values = (integers ^ flipped).view(np.float64)
        else:
            values = integers.view(np.int32) * track.step
            if is_rotation:
                values = _unpack_rotation(values, record.index)
                if from_key:
                    assert track.key_rotation is not None
                    values = _product(values, track.key_rotation)
        if is_key:
            track.coding = record.coding
            track.key = integers
            track.key_rotation = values
        rows = np.array(values.T, np.float64, order="C", copy=True)  # the key keeps its own
        if record.exceptions > 0:
            where = reader.array("<u4", record.exceptions).astype(np.int64)
            exact = reader.array("<f8", record.exceptions * track.components)
            if where[-1] >= track.count or (np.diff(where) <= 0).any():
                raise DataLoss("exceptions of a state frame are out of order")
            rows[where] = exact.reshape(-1, track.components)
        return Track(track.field, rows, track.starts)
