"""QUANTIZED streams of the gallery's scenes beside LOSSLESS ones of the same steps: bounds, bytes, missing frames."""

import numpy as np
import pytest

from ropewalk import gallery
from ropewalk.frames import FrameDecoder

FIELDS = ("POSITION", "ROTATION", "LINEAR_VELOCITY", "ANGULAR_VELOCITY")
FRAMES = 24  # at 240 frames per simulated second
RATE = 1 / 240


def angles(a, b):
    """Between the rotations of [n x 4] arrays; 3e-8 is what rounding leaves of equal ones."""
    nearest = np.minimum(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1))
    return 4 * np.arcsin(nearest / 2)


def messages_of(subscription):
    """Undecoded frames that have arrived."""
    found = []
    while (message := subscription.next_message(0)) is not None:
        found.append(message)
    return found


@pytest.mark.parametrize("name", gallery.names())
def test_no_bound_is_ever_exceeded(session, name):
    session.load_scene(gallery.scene(name))
    exact = session.subscribe(fields=FIELDS, every_s=RATE)
    close = session.subscribe(fields=FIELDS, every_s=RATE, quantized=True)
    for frame in range(FRAMES):
        session.step_until((frame + 1) * RATE)
    session.client.ping()
    truth = {frame.step: frame for frame in exact.available()}
    compared = 0
    for frame in close.available():
        expected = truth[frame.step]
        assert np.linalg.norm(frame.position - expected.position, axis=1).max() <= 1e-5
        assert angles(frame.rotation, expected.rotation).max() <= 1e-3 + 3e-8
        assert np.linalg.norm(frame.linear_velocity - expected.linear_velocity, axis=1).max() <= 1e-3
        assert np.linalg.norm(frame.angular_velocity - expected.angular_velocity, axis=1).max() <= 0.1
        compared += 1
    assert compared >= FRAMES


def test_a_slinky_takes_under_4_bytes_per_node_whichever_frames_are_missing(session):
    session.load_scene(gallery.scene("slinky"))
    stream = session.subscribe(every_s=RATE, quantized=True)
    nodes = stream.places["rod/slinky"].count
    messages = []
    for frame in range(2 * FRAMES):
        session.step_until((frame + 1) * RATE)
        messages += messages_of(stream)
    sizes = {True: [], False: []}
    whole = FrameDecoder()
    decoded = {}
    for message in messages:
        is_key = message.sequence == message.key_sequence
        sizes[is_key].append(len(message.payload) / nodes)
        decoded[message.sequence] = whole.decode(message.payload)
    assert len(sizes[False]) > FRAMES
    assert max(sizes[False]) < 4 and max(sizes[True]) < 7
    assert np.mean(sizes[True] + sizes[False]) < 4
    chance = np.random.default_rng(1)
    for _ in range(5):
        lossy = FrameDecoder()
        for message in messages:
            if message.sequence == message.key_sequence or chance.random() < 0.3:
                frame = lossy.decode(message.payload)
                assert np.array_equal(frame.position, decoded[message.sequence].position)
                assert np.array_equal(frame.rotation, decoded[message.sequence].rotation)
