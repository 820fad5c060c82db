"""The numpy decoder against frames that the C encoder wrote (tests/vectors/state_frames)."""

from __future__ import annotations

import pathlib
import random
import struct

import numpy as np
import pytest

from ropewalk.errors import DataLoss, FailedPrecondition, ResourceExhausted, RopewalkError
from ropewalk.frames import Frame, FrameDecoder

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "tests" / "vectors" / "state_frames"
SETS = ["rods_quantized", "bodies_quantized", "rods_lossless"]


def payloads(name: str) -> list[bytes]:
    data = (VECTORS / f"{name}.frames").read_bytes()
    found = []
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    assert len(found) == 7
    return found


def numbers(name: str) -> list[list[np.ndarray]]:
    """Per frame: positions, rotations, velocities."""
    rows = np.fromfile(VECTORS / f"{name}.numbers").reshape(7, 36 * 10)
    return [[row[:108].reshape(36, 3), row[108:252].reshape(36, 4), row[252:].reshape(36, 3)] for row in rows]


def assert_matches(frame: Frame, expected: list[np.ndarray], exactly: bool) -> None:
    assert [track.field for track in frame.tracks] == ["position", "rotation", "linear_velocity"]
    for track, values in zip(frame.tracks, expected):
        assert track.values.dtype == np.float64
        if exactly or track.field != "rotation":
            assert track.values.tobytes() == values.tobytes(), track.field
        else:
            np.testing.assert_allclose(track.values, values, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", SETS)
def test_stored_frames_decode_to_the_numbers_of_the_c_decoder(name: str) -> None:
    decoder = FrameDecoder()
    for i, (payload, expected) in enumerate(zip(payloads(name), numbers(name))):
        frame = decoder.decode(payload)
        assert (frame.epoch, frame.step, frame.sequence) == (3, 10 * i, i)
        assert frame.time == i * 0.05
        assert frame.is_key == (i % 4 == 0)
        assert_matches(frame, expected, exactly="lossless" in name)


def test_chains_are_known_to_the_reader() -> None:
    frame = FrameDecoder().decode(payloads("rods_quantized")[0])
    assert frame.tracks[0].chain_starts.tolist() == [0, 12, 30]
    frame = FrameDecoder().decode(payloads("bodies_quantized")[0])
    assert frame.tracks[0].chain_starts.tolist() == list(range(36))


@pytest.mark.parametrize("name", SETS)
def test_any_deltas_may_be_missing(name: str) -> None:
    frames = payloads(name)
    expected = numbers(name)
    for kept in ([0, 3], [0, 2, 4, 6], [4, 5], [0, 4, 6]):
        decoder = FrameDecoder()
        for i in kept:
            assert_matches(decoder.decode(frames[i]), expected[i], exactly="lossless" in name)


def test_a_delta_without_its_key_is_refused() -> None:
    frames = payloads("rods_quantized")
    decoder = FrameDecoder()
    with pytest.raises(FailedPrecondition):
        decoder.decode(frames[1])
    decoder.decode(frames[0])
    with pytest.raises(FailedPrecondition):
        decoder.decode(frames[5])
    decoder.decode(frames[2])


def test_a_reader_may_change_its_arrays() -> None:
    frames = payloads("rods_quantized")
    decoder = FrameDecoder()
    decoder.decode(frames[0]).rotation[:] = 7.0
    decoder.decode(frames[0]).position[:] = 7.0
    frame = decoder.decode(frames[1])
    assert_matches(frame, numbers("rods_quantized")[1], exactly=False)


def test_a_frame_beyond_the_limit_is_refused() -> None:
    payload = payloads("rods_quantized")[0]
    with pytest.raises(ResourceExhausted):
        FrameDecoder(max_elements=107).decode(payload)
    FrameDecoder(max_elements=108).decode(payload)


@pytest.mark.parametrize("name", SETS)
def test_damaged_frames_raise_nothing_but_our_errors(name: str) -> None:
    frames = payloads(name)
    decoder = FrameDecoder(max_elements=1000)
    for size in range(0, len(frames[0]), 7):
        with pytest.raises(DataLoss):
            decoder.decode(frames[0][:size])
    chance = random.Random(1)
    refused = 0
    for _ in range(2000):
        decoder.decode(frames[0])
        bad = bytearray(frames[chance.randrange(4)])
        for _ in range(chance.randrange(1, 4)):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        try:
            with np.errstate(all="ignore"):
                decoder.decode(bytes(bad))
        except RopewalkError:
            refused += 1
    assert refused > 200
