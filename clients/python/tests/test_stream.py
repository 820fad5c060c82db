"""Streams against a real daemon: every bit, or within the bounds; slow readers lose frames, not memory."""

import time

import numpy as np
import pytest

import ropewalk
from ropewalk import gallery


def states(session, steps, every, names):
    """What the frames of a stream should hold, read as signals."""
    observation = session.observe(*names)
    return session.advance(steps=steps, observe=observation, every=every)


def test_lossless_frames_hold_every_bit(session, both):
    session.load_scene(both)
    signals = ["body/ball/position", "body/ball/rotation", *[f"rod/cable/node/{node}/position" for node in (0, 7, 20)]]
    with session.subscribe(every_steps=5) as frames:
        rows = states(session, 100, 5, signals)
        got = {frame.step: frame for frame in frames.available()}
    assert set(got) >= set(range(5, 101, 5))
    for index, row in enumerate(rows):
        frame = got[5 * (index + 1)]
        assert frame.time == pytest.approx(frame.step * 1e-3)
        seen = [frame["body/ball"][0], frame.of("rotation", "body/ball")[0], *frame["rod/cable"][[0, 7, 20]]]
        assert np.array_equal(np.concatenate(seen), row)


def test_quantised_frames_keep_their_bounds(session):
    session.load_scene(gallery.scene("swing"))
    names = [f"rod/cord/node/{node}/position" for node in range(31)]
    with session.subscribe("rod/*", every_steps=10, quantized=True, position_bound=1e-5, key_interval=7) as frames:
        assert list(frames.places) == ["rod/cord"] and frames.places["rod/cord"].count == 31
        rows = states(session, 300, 10, names)
        got = {frame.step: frame for frame in frames.available()}
    worst = max(np.abs(got[10 * (i + 1)]["rod/cord"].ravel() - row).max() for i, row in enumerate(rows))
    assert 0 < worst <= 1e-5
    assert {frame.is_key for frame in got.values()} == {True, False}


def test_alike_subscriptions_of_one_client_get_each_frame_once_from_the_first_on(session, both):
    session.load_scene(both)
    with session.subscribe(every_steps=1, quantized=True) as first:
        session.step(5)
        with session.subscribe(every_steps=1, quantized=True) as second:
            assert first.group == second.group
            session.step(5)
            late = [frame.step for frame in second.available()]
            assert late[-5:] == [6, 7, 8, 9, 10] and len(late) == len(set(late))
            assert second.reader.undecodable == 0
        session.step(1)
        steps = [frame.step for frame in first.available()]
    # Who joins gets a key frame of now, and so do the others.
    assert [step for step in steps if step != 5] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]


def test_a_stride_takes_every_so_many_nodes_and_the_last(session, cable):
    session.load_scene(cable)
    with session.subscribe("rod/cable", node_stride=8, every_steps=1) as frames:
        session.step(1)
        frame = frames.next(5)
        assert frame["rod/cable"].shape == (4, 3)  # nodes 0, 8, 16, 20
        assert np.allclose(frame["rod/cable"][:, 0], [0, 0.4, 0.8, 1.0], atol=1e-3)


def test_a_stride_thins_a_tree_whose_nodes_are_not_in_rows(session):
    session.load_scene(gallery.scene("tree"))
    with session.subscribe("rod/tree", node_stride=10, every_steps=1) as thin, session.subscribe(every_steps=1) as all_:
        session.step(1)
        few, many = thin.next(5), all_.next(5)
    assert thin.places["rod/tree"].count == 334 and all_.places["rod/tree"].count == 3327
    assert np.array_equal(few.position[:-1], many.position[:3326:10])
    assert np.array_equal(few.position[-1], many.position[-1])


def test_velocities_can_be_asked_for(session, falling):
    session.load_scene(falling)
    with session.subscribe(every_steps=1, fields=["LINEAR_VELOCITY", "ANGULAR_VELOCITY"]) as frames:
        session.step(10)
        last = frames.available()[-1]
    assert last.position is None and np.allclose(last.linear_velocity, [[1, 0, -0.0981]])
    assert last.angular_velocity.shape == (1, 3)
    with pytest.raises(KeyError):
        last["body/ball"]


def test_iteration_ends_with_the_subscription(session, falling):
    session.load_scene(falling)
    frames = session.subscribe(every_steps=10)
    session.step(100)
    session.call("ping")
    frames.close()
    steps = [frame.step for frame in frames]
    assert steps[-10:] == list(range(10, 101, 10))
    assert frames.server_sent >= 10 and frames.next() is None


def test_a_topology_change_begins_a_new_epoch(session, falling):
    session.load_scene(falling)
    with session.subscribe(every_steps=1) as frames:
        session.step(2)
        first = frames.available()
        session.create_body("second", mass=1, inertia=[1, 1, 1, 0, 0, 0])
        session.step(2)
        later = frames.available()
    assert {frame.epoch for frame in first}.isdisjoint(
        {frame.epoch for frame in later if "body/second" in frame.places}
    )
    assert later[-1]["body/second"].shape == (1, 3) and first[-1].places.keys() == {"body/ball"}


def test_two_subscriptions_share_a_connection(session, both):
    session.load_scene(both)
    with session.subscribe("body/*", every_steps=2) as bodies, session.subscribe("rod/*", every_steps=5) as rods:
        session.step(20)
        assert [frame.step for frame in bodies.available()][-10:] == list(range(2, 21, 2))
        assert [frame.step for frame in rods.available()][-4:] == list(range(5, 21, 5))


def test_a_reader_that_sleeps_loses_the_oldest_frames_here(session, falling):
    session.load_scene(falling)
    with session.subscribe(every_steps=1, queue_limit=10, back_pressure=True) as frames:
        session.step(500)
        frames.session.client.ping()
        left = frames.available()
        assert frames.dropped > 300
        # The newest, and the key frame they need if that is older.
    steps = [frame.step for frame in left]
    assert len(steps) == 10 and frames.reader.undecodable == 0
    assert steps[1:] == list(range(492, 501)) and steps[0] < 492 and left[0].is_key


def test_what_a_slow_reader_gets_can_all_be_decoded(daemon, session):
    session.load_scene(gallery.scene("slinky"))
    with daemon.connect() as other:
        onlooker = other.attach_session(session.name)
        frames = onlooker.subscribe(every_steps=1)  # 0.1 MB each
        session.step(200)  # meanwhile nobody reads
        got = []
        while (frame := frames.next(0.5)) is not None:
            got.append(frame.step)
        frames.close()
    assert frames.server_dropped > 50 and len(got) == frames.server_sent
    assert frames.reader.undecodable == 0
    assert got == sorted(got) and got[-1] == 200


def test_a_byte_budget_holds_in_the_long_run(session, both):
    session.load_scene(both)
    budget = 20_000
    began = time.monotonic()
    frames = session.subscribe(every_steps=1, byte_budget=budget)
    largest = total = 0
    while time.monotonic() - began < 1.5:
        session.step(20)
        while (message := frames.next_message(0)) is not None:
            total += message.ByteSize()
            largest = max(largest, message.ByteSize())
            frames.reader.read(message)
    seconds = time.monotonic() - began
    frames.close()
    assert frames.reader.undecodable == 0 and frames.server_dropped > 0
    assert budget < total <= budget * (seconds + 1) + largest


def test_a_paced_run_streams_to_an_onlooker(daemon, session, falling):
    session.load_scene(falling)
    with daemon.connect() as other:
        onlooker = other.attach_session(session.name)
        with onlooker.subscribe(every_s=0.01) as frames:
            session.run(ratio=2.0)
            seen = [frames.next(5) for _ in range(10)]
            session.pause()
    assert all(frame is not None for frame in seen)
    assert (np.diff([frame.step for frame in seen]) > 0).all()


def test_bad_subscriptions_are_refused(session, falling):
    session.load_scene(falling)
    with pytest.raises(ropewalk.RopewalkError) as caught:
        session.subscribe(every_steps=1, quantized=True, position_bound=-1.0)
    assert caught.value.status == "INVALID_ARGUMENT" and caught.value.path.endswith("position_bound")
    with pytest.raises(ropewalk.InvalidArgument):
        session.subscribe(fields=["POSITION", "COLOUR"])
