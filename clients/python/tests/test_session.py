"""Sessions against a real daemon: building, setting, stepping, reading, state, and what goes wrong."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ropewalk
from ropewalk import SceneBuilder, gallery, messages


def test_hello_tells_version_limits_and_features(client):
    assert client.protocol[0] == 1 and client.server_version
    assert client.limits.max_message >= 1 << 20 and client.limits.max_open_requests > 0
    assert "SCR" in client.features


def test_ping_and_stats_answer(client):
    first = client.ping()
    assert client.ping() > first
    assert client.stats()


def test_tcp_and_unix_reach_the_same_daemon(daemon, client):
    with client.create_session("shared.one", ttl_detached_s=-1) as session:
        with ropewalk.connect("127.0.0.1", daemon.port) as other, ropewalk.connect(f"127.0.0.1:{daemon.port}") as third:
            assert [info.name for info in other.sessions("shared.*")] == [session.name]
            assert third.ping() > 0


def test_a_session_is_closed_at_the_end_of_its_block(client):
    with client.create_session("short") as session:
        assert session.name == "short"
        with pytest.raises(ropewalk.AlreadyExists):
            client.create_session("short")
    assert not client.sessions("short")


def test_compressed_requests_are_understood(daemon, both):
    with daemon.connect(compress=True) as client, client.create_session() as session:
        graph = {"positions": np.arange(9000.0), "segments": np.stack([np.arange(2999), np.arange(1, 3000)], axis=1)}
        both["rods"].append(
            {"name": "long", "graph": graph, "section": {"radius": 0.1}, "density": 1.0, "young_modulus": 1.0}
        )
        session.load_scene(both)
        assert list(session.get_scene().rods[1].graph.positions) == list(range(9000))


@pytest.mark.parametrize("name", gallery.names())
def test_gallery_scenes_load_step_and_come_back(session, name):
    scene = gallery.scene(name).message
    ids = session.load_scene(scene)
    assert list(ids.rods) == [rod.name for rod in scene.rods]
    session.step(2)
    energy = session.query_energy()
    assert math.isfinite(energy.total) and energy.total == pytest.approx(
        energy.kinetic + energy.gravity + energy.elastic
    )
    # What comes back has its defaults written out; loaded again it is the same world.
    session.load_scene(scene)
    back, hash_ = session.get_scene(), session.query_hash()
    for kind in ("bodies", "joints", "rods", "attachments", "forces", "inputs"):
        assert [one.name for one in getattr(back, kind)] == [one.name for one in getattr(scene, kind)]
    session.load_scene(messages.Scene.FromString(back.SerializeToString()))
    assert session.get_scene() == back and session.query_hash() == hash_


def test_free_fall_follows_its_closed_form(session, falling):
    session.load_scene(falling)
    observation = session.observe("body/ball/com_position", "world/time")
    session.advance(steps=1000, observe=observation)
    assert observation["world/time"][0] == pytest.approx(1.0, abs=1e-12)
    x, y, z = observation["body/ball/com_position"]
    assert (x, y) == (pytest.approx(1.0, abs=1e-9), pytest.approx(0.0, abs=1e-12))
    assert z == pytest.approx(1 - 9.81 / 2, abs=5e-3)


def test_observations_have_names_places_and_units(session, both):
    session.load_scene(both)
    observation = session.observe("body/*/position", "rod/cable/at/1/position", "world/energy/*", "world/step")
    assert observation.names[:2] == ["body/ball/position", "rod/cable/at/1/position"]
    assert {"world/energy/kinetic", "world/energy/total"} <= set(observation)
    assert observation.layout[0].unit == "m" and observation.layout[0].width == 3
    assert np.allclose(observation["body/ball/position"], [0, 0, 1])
    assert np.allclose(observation["rod/cable/at/1/position"], [1, 0, 1])
    assert observation.columns()[:4] == [f"body/ball/position.{axis}" for axis in range(3)] + [
        "rod/cable/at/1/position.0"
    ]
    assert observation.as_dict()["world/step"] == 0
    with pytest.raises(ropewalk.NotFound):
        observation["body/ball/velocity"]


def test_an_unknown_signal_is_not_found_with_its_path(session, falling):
    session.load_scene(falling)
    with pytest.raises(ropewalk.NotFound) as caught:
        session.observe("world/time", "body/bal/position")
    assert caught.value.path.endswith("signals[1]")


def test_advance_gives_a_row_per_step_and_the_same_ones_in_any_cut(session, both):
    session.load_scene(both)
    observation = session.observe(
        "world/step", "world/time", "body/ball/position", "rod/cable/node/10/position", "world/hash"
    )
    rows = session.advance(steps=30, observe=observation, every=3)
    assert rows.shape == (10, observation.width) and list(rows[:, 0]) == list(range(3, 31, 3))
    session.load_scene(both)
    observation = session.observe(*observation.names)
    ones = [session.advance(observe=observation).copy() for _ in range(30)]
    assert np.array_equal(rows, np.array(ones)[2::3])
    assert session.step_now == 30 and session.time == pytest.approx(0.03)


def test_advance_without_steps_reads(session, falling):
    session.load_scene(falling)
    observation = session.observe("body/ball/linear_velocity")
    session.set_velocity("ball", linear=[4, 5, 6])
    assert np.allclose(observation.update(), [4, 5, 6])
    assert session.step_now == 0


def test_inputs_act_row_by_row(session, falling):
    falling["gravity"] = [0, 0, 0]
    session.load_scene(falling)
    actuation = session.actuate("body/ball/wrench")
    observation = session.observe("body/ball/com_velocity")
    actuation["body/ball/wrench"] = [2, 0, 0, 0, 0, 0]  # 1 m/s^2
    session.advance(inputs=actuation, steps=100, observe=observation)
    assert observation["body/ball/com_velocity"][0] == pytest.approx(1.1, abs=1e-9)
    inputs = np.zeros((10, 6))
    inputs[::2, 1] = 2
    session.advance(inputs=inputs, actuate=actuation, steps=10, observe=observation)
    assert observation["body/ball/com_velocity"][1] == pytest.approx(5 * 1e-3, abs=1e-12)


def test_wind_input_is_set_by_advance(session, cable):
    cable["rods"][0]["drag"] = 5.0
    session.load_scene(cable)
    actuation = session.actuate("wind")
    actuation["wind"] = [0, 10, 0]
    observation = session.observe("rod/cable/at/1/position")
    session.advance(inputs=actuation, steps=50, observe=observation)
    assert observation.values[1] > 1e-3


def test_sets_are_seen_before_any_step(session, both):
    session.load_scene(both)
    session.set_pose("ball", position=[1, 2, 3], rotation=[0, 1, 0, 0])
    session.set_velocity("ball", linear=[1, 0, 0], angular=[0, 0, 1])
    session.set_gravity([0, 0, 0])
    session.set_wind([1, 0, 0])
    session.set_time_step(0.002)
    seen = session.query_signals("body/ball/position", "body/ball/rotation", "body/ball/linear_velocity")
    assert np.allclose(seen["body/ball/position"], [1, 2, 3])
    assert np.allclose(np.abs(seen["body/ball/rotation"]), [0, 1, 0, 0])
    assert np.allclose(seen["body/ball/linear_velocity"], [1, 0, 0])
    scene = session.get_scene()
    assert list(scene.gravity) == [0, 0, 0] and list(scene.wind) == [1, 0, 0] and scene.time_step == 0.002
    assert session.step_now == 0
    session.step(5)
    assert session.time == pytest.approx(0.01)


def test_properties_can_be_changed(session, both):
    session.load_scene(both)
    session.set_body_properties("ball", mass=4.0, friction=0.5)
    session.set_rod_properties("cable", young_modulus=1e6, damping=0.01)
    session.set_solver(scr={"iterations": 5})
    scene = session.get_scene()
    assert scene.bodies[0].mass == 4 and scene.bodies[0].friction == 0.5
    assert scene.rods[0].young_modulus == 1e6 and scene.rods[0].damping == 0.01
    assert scene.solver.scr.iterations == 5
    with pytest.raises(ropewalk.InvalidArgument) as caught:
        session.set_body_properties("ball", mass=-1.0)
    assert caught.value.path.endswith("mass")
    assert session.get_scene().bodies[0].mass == 4


def test_objects_are_created_and_removed_by_name_and_id(session):
    session.load_scene({"solver": {"rods": "SCR"}})
    body = session.create_body("a", mass=1, inertia=[1, 1, 1, 0, 0, 0])
    rod = session.create_rod(
        "r",
        straight={"start": [0, 0, 0], "end": [1, 0, 0]},
        elements=4,
        section={"radius": 0.01},
        density=1,
        young_modulus=1,
    )
    session.create_attachment("tie", rod="r", s=1, body="a", kind="PIN")
    session.create_force("drag", drag={"body": "a", "linear": 1})
    session.create_input("gust", target="wind", sine={"amplitude": [1, 0, 0], "frequency": 1})
    with pytest.raises(ropewalk.AlreadyExists):
        session.create_body("a", mass=1, inertia=[1, 1, 1, 0, 0, 0])
    with pytest.raises(ropewalk.FailedPrecondition) as caught:
        session.remove_body("a")
    assert "tie" in caught.value.text and "drag" in caught.value.text
    session.remove_body(body, cascade=True)
    scene = session.get_scene()
    assert (len(scene.bodies), len(scene.attachments), len(scene.forces), len(scene.rods)) == (0, 0, 0, 1)
    session.remove_rod(rod)
    session.remove_input("gust")
    again = session.create_body("a", mass=1, inertia=[1, 1, 1, 0, 0, 0])
    assert again != body
    with pytest.raises(ropewalk.NotFound):
        session.set_pose(body, position=[0, 0, 0])


def test_forces_wrenches_and_targets(session, both):
    both["gravity"] = [0, 0, 0]
    both["forces"] = [{"name": "pull", "load": {"body": "ball", "force": [2, 0, 0]}}]
    session.load_scene(both)
    session.step(100)
    assert session.query_signals("body/ball/com_velocity")["body/ball/com_velocity"][0] == pytest.approx(1.1, abs=1e-9)
    session.set_force("pull", load_force=[0, 0, 0])
    session.apply_wrench("ball", force=[0, 20, 0], steps=10)
    session.step(20)
    velocity = session.query_signals("body/ball/com_velocity")["body/ball/com_velocity"]
    assert velocity[:2] == pytest.approx([1.1, 0.1], abs=1e-9)
    session.apply_wrench(rod="cable", s=1.0, force=[0, 0, 5], steps=0)
    session.step(20)
    assert session.query_signals("rod/cable/at/1/position")["rod/cable/at/1/position"][2] > 1
    session.set_attachment_target("hook", position=[0, 0, 1.1])
    session.step(50)
    assert session.query_signals("rod/cable/at/0/position")["rod/cable/at/0/position"][2] == pytest.approx(
        1.1, abs=1e-9
    )


def test_queries_do_not_change_the_world(session, both):
    session.load_scene(both)
    session.step(10)
    before = session.query_hash()
    energy = session.query_energy()
    assert energy.linear_momentum.shape == (3,)
    session.query_signals("body/*/*", "rod/*/energy")
    session.get_scene()
    session.snapshot()
    assert session.query_hash() == before
    assert session.query_signals("world/hash")["world/hash"][0] == before & (1 << 53) - 1


@pytest.mark.parametrize("question", ["contacts", "ray_cast", "closest_points"])
def test_what_is_not_served_says_so(session, falling, question):
    session.load_scene(falling)
    with pytest.raises(ropewalk.Unimplemented):
        session.query(question)


def test_a_snapshot_continues_bit_for_bit(client, session, both):
    session.load_scene(both)
    session.step(20)
    saved, kept = session.snapshot(), session.keep_snapshot()
    at = session.query_hash()
    session.step(30)
    end = session.query_hash()
    assert end != at
    session.restore(saved)
    assert session.query_hash() == at and session.step_now == 20
    session.step(30)
    assert session.query_hash() == end
    session.restore(kept)
    session.step(30)
    assert session.query_hash() == end
    session.drop_snapshot(kept)
    with pytest.raises(ropewalk.NotFound):
        session.restore(kept)
    with client.create_session() as other:
        other.restore(saved)
        other.step(30)
        assert other.query_hash() == end
    damaged = bytearray(saved)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(ropewalk.DataLoss):
        session.restore(bytes(damaged))
    assert session.query_hash() == end


def test_forks_go_on_bit_for_bit(session, both):
    session.load_scene(both)
    session.step(20)
    forks = session.fork(names=["left", "right"])
    assert [fork.name for fork in forks] == ["left", "right"]
    for each in (session, *forks):
        each.step(30)
    assert len({each.query_hash() for each in (session, *forks)}) == 1
    forks[0].set_gravity([1, 0, 0])
    for each in (session, *forks):
        each.step(1)
    assert forks[0].query_hash() != session.query_hash() == forks[1].query_hash()
    for fork in forks:
        fork.close()


def test_the_same_commands_give_the_same_bits_for_any_worker_count(both):
    hashes = set()
    for workers in (1, 2, 3, 8):
        with ropewalk.Daemon(workers=workers) as daemon, daemon.connect() as client, client.create_session() as session:
            session.load_scene(both)
            session.step(50)
            session.set_wind([3, 2, 1])
            session.apply_wrench("ball", torque=[0, 1, 0], steps=5)
            session.step(50)
            hashes.add(session.query_hash())
    assert len(hashes) == 1


def test_pipelined_commands_keep_their_order(session, falling):
    session.load_scene(falling)
    with session.pipelined():
        for index in range(200):
            session.set_velocity("ball", linear=[index, 0, 0])
            session.step(1)
    assert session.step_now == 200
    assert session.query_signals("body/ball/linear_velocity")["body/ball/linear_velocity"][0] == pytest.approx(199)


def test_a_failure_in_a_pipeline_is_raised_at_its_end(session, falling):
    session.load_scene(falling)
    with pytest.raises(ropewalk.NotFound):
        with session.pipelined():
            session.set_velocity("nobody", linear=[1, 0, 0])
            session.step(3)
    assert session.step_now == 3


def test_reading_while_writing_survives_a_thousand_large_answers(session, both):
    """The daemon stops reading a client whose answers pile up: writing on without reading would hang."""
    session.load_scene(both)
    pending = [session.submit("snapshot") for _ in range(5000)]
    assert len({one.result(60).snapshot.data for one in pending}) == 1


def test_a_batch_answers_one_by_one(client, session, falling):
    session.load_scene(falling)
    requests = [
        client.request("step", {"count": 1}),
        client.request("set_pose", {"body": {"name": "x"}}),
        client.request("ping"),
    ]
    for request in requests[:2]:
        request.session = session.id
    answers = client.batch(requests)
    assert [answer.status for answer in answers][::2] == [0, 0] and answers[1].status == 2
    answers = client.batch(requests[1:], stop_on_error=True)
    assert answers[0].status == 2 and answers[1].status == 10  # CANCELLED


def test_batch_advance_steps_many_sessions(client, falling):
    sessions = [client.create_session() for _ in range(5)]
    for index, session in enumerate(sessions):
        falling["bodies"][0]["linear_velocity"] = [index, 0, 0]
        session.load_scene(falling)
    observations = [session.observe("world/step", "body/ball/position") for session in sessions]
    rows, failures = client.batch_advance(sessions, steps=100, observe=observations)
    assert not failures
    assert [row[0] for row in rows] == [100] * 5
    assert np.allclose([row[1] for row in rows], 0.1 * np.arange(5))
    sessions[2].close()
    rows, failures = client.batch_advance(sessions, steps=1, observe=observations)
    assert list(failures) == [2] and isinstance(failures[2], ropewalk.NotFound)
    assert np.isnan(rows[2]).all() and rows[3][0] == 101
    for session in sessions[:2] + sessions[3:]:
        session.close()


def test_expected_step_makes_a_retry_safe(session, falling):
    session.load_scene(falling)
    session.step(5, expected_step=0)
    with pytest.raises(ropewalk.FailedPrecondition, match="5"):
        session.step(5, expected_step=0)
    assert session.refresh().step == 5


def test_a_deadline_ends_a_long_step(session, cable):
    session.load_scene(cable)
    with pytest.raises(ropewalk.DeadlineExceeded) as caught:
        session.step(10_000_000, deadline_s=0.05)
    # All or nothing, or told how far it got.
    assert session.refresh().step == caught.value.steps_done or session.info.step == 0


def test_a_long_step_is_cancelled_from_another_thread(client, session, cable):
    session.load_scene(cable)
    pending = session.submit("step", {"count": 50_000_000})
    threading.Timer(0.1, client.cancel, [pending]).start()
    began = time.monotonic()
    with pytest.raises(ropewalk.Cancelled):
        pending.result(30)
    assert time.monotonic() - began < 10


def test_observers_look_but_do_not_touch(daemon, session, falling):
    session.load_scene(falling)
    with daemon.connect() as other:
        observer = other.attach_session(session.name)
        assert observer.query_signals("world/step")["world/step"][0] == 0
        with pytest.raises(ropewalk.PermissionDenied):
            observer.step()
        observer.detach()
        controller = other.attach_session(session.id, control=True)
        controller.step(2)
        assert session.refresh().step == 2


def test_a_paced_run_runs_and_pauses(session, falling):
    session.load_scene(falling)
    session.run(ratio=1.0)
    with pytest.raises(ropewalk.FailedPrecondition):
        session.step()
    assert session.refresh().state == "RUNNING"
    time.sleep(0.2)
    lost = session.pause()
    info = session.refresh()
    assert info.state == "READY" and 20 <= info.step + lost <= 2000
    session.run(ratio=math.inf, until=5.0)
    end = time.monotonic() + 20
    while session.refresh().state == "RUNNING" and time.monotonic() < end:
        time.sleep(0.01)
    assert session.refresh().time == pytest.approx(5.0, abs=1e-9)


def test_a_large_scene_is_uploaded(daemon):
    """With small messages the same scene goes through blobs, and gives the same world."""
    count = 20_000
    rng = np.random.default_rng(5)
    positions = np.cumsum(rng.uniform(0.5, 1.0, (count, 3)) * [1, 0.1, 0.1], axis=0)
    scene = SceneBuilder("long", rods="SCR").rod(
        "r",
        graph={"positions": positions, "segments": np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)},
        section={"radius": 0.1},
        density=1000,
        young_modulus=1e6,
    )
    hashes = []
    with ropewalk.Daemon(arguments=["--max-message", "64K"]) as small:
        for each in (daemon, small):
            with each.connect() as client, client.create_session() as session:
                session.load_scene(scene)
                session.step(1)
                hashes.append(session.query_hash())
                nodes = session.get_scene().rods[0].graph.positions  # Larger than a message: comes in chunks.
                assert np.array_equal(np.array(nodes), positions.ravel())
    assert hashes[0] == hashes[1]


def test_a_fault_is_told_and_the_session_lives_on(session, falling):
    falling["forces"] = [{"name": "blast", "load": {"body": "ball", "force": [1e30, 1e30, 0], "position": [1, 0, 0]}}]
    session.load_scene(falling)
    with pytest.raises(ropewalk.Faulted) as caught:
        session.step(100)
    assert "ball" in str(caught.value)
    info = session.refresh()
    assert info.state == "FAULTED" and info.fault is not None and info.fault.stage
    with pytest.raises(ropewalk.Faulted):
        session.step()
    session.snapshot()
    session.query_energy()
    del falling["forces"]
    session.load_scene(falling)
    session.step(10)
    assert session.refresh().state == "READY"


def test_a_killed_client_leaves_the_others_alone(daemon, session, falling):
    """A client is killed in the middle of a long step; its session goes with its time to live, ours goes on."""
    session.load_scene(falling)
    code = f"""
import ropewalk, sys
client = ropewalk.connect(unix={daemon.unix!r})
session = client.create_session("doomed", ttl_detached_s=0)
session.load_scene({falling!r})
print("ready", flush=True)
session.step(2_000_000_000)
"""
    doomed = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert doomed.stdout.readline() == "ready\n"
    time.sleep(0.1)
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    doomed.stdout.close()
    for _ in range(50):
        session.step(1)
    assert session.step_now == 50
    end = time.monotonic() + 20
    while session.client.sessions("doomed") and time.monotonic() < end:
        time.sleep(0.02)
    assert not session.client.sessions("doomed")


def test_a_daemon_ends_with_its_owner_however_that_ends():
    code = """
import ropewalk, time
daemon = ropewalk.Daemon()
print(daemon.pid, flush=True)
time.sleep(60)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(owner.stdout.readline())
    os.kill(pid, 0)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    end = time.monotonic() + 20
    while time.monotonic() < end and _runs(pid):
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_wrong_token_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("ROPEWALK_TOKEN", raising=False)
    (tmp_path / "token").write_text("correct-horse\n")
    with ropewalk.Daemon(arguments=["--token-file", str(tmp_path / "token")]) as daemon:
        with daemon.connect(token="correct-horse") as client:
            client.ping()
        for wrong in ("", "correct-hors", "correct-horsee"):
            with pytest.raises(ropewalk.Unauthenticated):
                daemon.connect(token=wrong)
        monkeypatch.setenv("ROPEWALK_TOKEN", "correct-horse")
        daemon.connect().close()


def test_a_daemon_that_can_not_start_says_why(tmp_path):
    with pytest.raises(ropewalk.Unavailable, match="no-such-option"):
        ropewalk.Daemon(arguments=["--no-such-option"])
    with pytest.raises(ropewalk.Unavailable):
        ropewalk.Daemon(program=str(tmp_path / "nothing"))


def test_the_daemon_ends_orderly_and_its_folder_goes():
    daemon = ropewalk.Daemon()
    folder = os.path.dirname(daemon.unix)
    client = daemon.connect()
    assert daemon.stop() == 0
    assert not os.path.exists(folder)
    with pytest.raises(ropewalk.Unavailable):
        client.ping()
    assert daemon.stop() is None


def test_units_of_a_joint_are_those_of_its_type(session):
    body = {"mass": 1, "inertia": [1, 1, 1, 0, 0, 0]}
    types = {"REVOLUTE": "rad", "PRISMATIC": "m", "CYLINDRICAL": "m, rad", "PLANAR": "m, m, rad", "SPHERICAL": "1"}
    session.load_scene(
        {
            "bodies": [{"name": name, **body} for name in types],
            "joints": [{"name": name, "type": name, "child": name} for name in types],
        }
    )
    layout = session.call("observe", {"signals": ["joint/*/coordinate", "joint/*/effort"]}).observe.layout
    units = {entry.signal: entry.unit for entry in layout}
    assert {name: units[f"joint/{name}/coordinate"] for name in types} == types
    assert units["joint/REVOLUTE/effort"] == "N m" and units["joint/CYLINDRICAL/effort"] == "N, N m"


@pytest.mark.parametrize("rigid", ["XPBD", "DAE"])
@pytest.mark.parametrize("kind", ["FIXED", "REVOLUTE", "PRISMATIC", "SPHERICAL", "DISTANCE"])
def test_the_world_may_be_the_child_of_a_joint(session, rigid, kind):
    turned = [math.sqrt(0.5), -math.sqrt(0.5), 0, 0]
    on_body, on_world = ({"position": [x, 0, 0], "rotation": turned} for x in (-0.5, 0.5))
    body = {"name": "bar", "mass": 1, "inertia": [0.1] * 3 + [0] * 3, "position": [1, 0, 0]}
    ways = (
        {"parent": "bar", "parent_frame": on_body, "child_frame": on_world},
        {"child": "bar", "parent_frame": on_world, "child_frame": on_body},
    )
    seen = []
    for way in ways:
        joint = {"name": "joint", "type": kind, **way}
        if kind == "DISTANCE":
            joint["parent_frame"] = {"position": [0, 0, 0] if way.get("child") else [0.5, 0, 0]}
            joint["child_frame"] = {"position": [0.5, 0, 0] if way.get("child") else [0, 0, 0]}
        session.load_scene({"bodies": [body], "joints": [joint], "solver": {"rigid": rigid}})
        session.step(200)
        now = session.query_signals("body/bar/position", "joint/joint/reaction_force", "joint/joint/violation")
        assert np.abs(now["joint/joint/violation"]).max() < 1e-9
        seen.append(now)
    assert np.allclose(seen[0]["body/bar/position"], seen[1]["body/bar/position"], atol=1e-9)
    # What the parent does to the child is against what the child does to the parent.
    assert np.allclose(seen[0]["joint/joint/reaction_force"], -seen[1]["joint/joint/reaction_force"], atol=1e-6)
