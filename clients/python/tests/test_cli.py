"""The command line as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ropewalk
from ropewalk import gallery
from ropewalk.recorder import Plan, _Chunks


@pytest.fixture
def scene_file(tmp_path, both):
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(both))
    return path


def run_arguments(scene, out, *more, until=0.1, every=0.01, observe=("body/ball/position",)):
    signals = [part for signal_ in observe for part in ("--observe", signal_)]
    return ["run", scene, "--until", until, "--every", every, *signals, "--out", out, *more]


def table(path):
    lines = path.read_text().splitlines()
    return lines[0].split(","), np.array([[float(cell) for cell in line.split(",")] for line in lines[1:]])


def test_run_writes_the_csv_that_was_specified(cli, scene_file, daemon, both):
    observe = ["body/ball/position", "world/energy/total", "rod/cable/at/0.5/position", "world/time"]
    done = cli(*run_arguments(scene_file, "out.csv", observe=observe))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    names, rows = table(cli.folder / "out.csv")
    assert names == [
        "time",
        *[f"body/ball/position.{axis}" for axis in range(3)],
        "world/energy/total",
        *[f"rod/cable/at/0.5/position.{axis}" for axis in range(3)],
        "world/time",
    ]
    assert np.allclose(rows[:, 0], np.arange(11) * 0.01, atol=1e-12) and np.array_equal(rows[:, 0], rows[:, -1])
    assert rows[0, 1:4].tolist() == [0, 0, 1]  # The first row is the state at the start.
    # 17 significant digits bring every bit back: the same commands through the library give the same doubles.
    with daemon.connect() as client, client.create_session() as session:
        session.load_scene(both)
        observation = session.observe(*observe[:3])
        first = observation.values.copy()
        later = session.advance(steps=100, observe=observation, every=10)
    assert np.array_equal(rows[:, 1:8], np.vstack([first, later]))
    cells = [cell for line in (cli.folder / "out.csv").read_text().splitlines()[1:] for cell in line.split(",")]
    assert all(cell == f"{float(cell):.17g}" for cell in cells)


def test_run_twice_gives_the_same_bytes_for_any_worker_count(cli, scene_file):
    texts = []
    for workers in (1, 3):
        signals = ["body/*/*", "rod/*/energy", "attachment/*/force", "world/hash"]
        done = cli(*run_arguments(scene_file, "out.csv", "--workers", workers, every=0.001, observe=signals))
        assert done.returncode == 0, done.stderr
        texts.append((cli.folder / "out.csv").read_bytes())
    assert texts[0] == texts[1]


def test_every_is_rounded_and_the_last_row_is_at_until(cli, scene_file):
    assert cli(*run_arguments(scene_file, "out.csv", until=0.0101, every=0.0034)).returncode == 0
    _, rows = table(cli.folder / "out.csv")
    assert rows[:, 0] == pytest.approx([0, 0.003, 0.006, 0.009, 0.010], abs=1e-12)
    assert cli(*run_arguments(scene_file, "out.csv", until=0, every=1)).returncode == 0
    _, rows = table(cli.folder / "out.csv")
    assert rows.shape == (1, 4) and rows[0, 0] == 0
    assert cli(*run_arguments(scene_file, "out.csv", until=0.003, every=1e-9)).returncode == 0
    assert len(table(cli.folder / "out.csv")[1]) == 4


def test_globs_give_a_column_set_per_match(cli, tmp_path, both):
    both["bodies"].append({**both["bodies"][0], "name": "other"})
    (tmp_path / "two.json").write_text(json.dumps(both))
    assert cli(*run_arguments("two.json", "out.csv", observe=["body/*/position", "body/ball/position"])).returncode == 0
    names, _ = table(cli.folder / "out.csv")
    assert names == ["time", *[f"body/{body}/position.{axis}" for body in ("ball", "other") for axis in range(3)]]


def test_npz_holds_an_array_per_signal(cli, scene_file):
    done = cli(*run_arguments(scene_file, "out.npz", observe=["body/ball/position", "world/energy/total"]))
    assert done.returncode == 0, done.stderr
    with np.load(cli.folder / "out.npz") as data:
        assert set(data) == {"time", "body/ball/position", "world/energy/total"}
        assert data["time"].shape == (11,) and data["body/ball/position"].shape == (11, 3)
        assert data["world/energy/total"].shape == (11,)


def test_a_running_daemon_is_used_and_keeps_no_session(cli, scene_file, daemon):
    for address in (f"127.0.0.1:{daemon.port}", daemon.unix):
        done = cli(*run_arguments(scene_file, "out.csv", "--connect", address))
        assert done.returncode == 0, done.stderr
    with daemon.connect() as client:
        assert not [info for info in client.sessions() if info.step == 100]


ERRORS = [
    ({"bodies": [{"name": "a", "mas": 1}]}, ("body/a/position",), "INVALID_ARGUMENT: bodies[0].mas: "),
    ({"bodies": [{"name": "a", "mass": -1}]}, ("body/a/position",), "INVALID_ARGUMENT: bodies[0].mass: "),
    ({"gravity": [0, 0]}, ("world/time",), "INVALID_ARGUMENT: gravity: "),
    ({}, ("body/a/position",), "NOT_FOUND: signals[0]: "),
    ({}, ("world/time", "nonsense"), ": signals[1]: "),
]


@pytest.mark.parametrize("scene, observe, text", ERRORS)
def test_errors_are_one_line_with_status_and_path(cli, tmp_path, scene, observe, text):
    (tmp_path / "scene.json").write_text(json.dumps(scene))
    (tmp_path / "out.csv").write_text("old")
    done = cli(*run_arguments("scene.json", "out.csv", observe=observe))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("ropewalk: ") and text in done.stderr and done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["scene.json"], "an output was left"


def test_a_missing_scene_and_a_missing_folder(cli, scene_file):
    done = cli(*run_arguments("none.json", "out.csv"))
    assert (done.returncode, done.stderr) == (1, "ropewalk: NOT_FOUND: none.json: no such file\n")
    done = cli(*run_arguments(scene_file, "none/out.csv"))
    assert done.returncode == 1 and "none/out.csv" in done.stderr and done.stderr.count("\n") == 1


def test_a_fault_leaves_no_file(cli, tmp_path, falling):
    falling["forces"] = [{"name": "blast", "load": {"body": "ball", "force": [1e30, 1e30, 0], "position": [1, 0, 0]}}]
    (tmp_path / "scene.json").write_text(json.dumps(falling))
    done = cli(*run_arguments("scene.json", "out.csv"))
    assert done.returncode == 1 and done.stderr.startswith("ropewalk: FAULTED") and "ball" in done.stderr
    assert os.listdir(tmp_path) == ["scene.json"]


USAGE = [
    ["run"],
    ["run", "scene.json"],
    ["nonsense"],
    run_arguments("scene.json", "out.txt"),
    run_arguments("scene.json", "out.csv", until=-1),
    run_arguments("scene.json", "out.csv", until="nan"),
    run_arguments("scene.json", "out.csv", until="soon"),
    run_arguments("scene.json", "out.csv", every=0),
    run_arguments("scene.json", "out.csv", "--rods", "fem"),
    run_arguments("scene.json", "out.csv", "--workers", 0),
    run_arguments("scene.json", "out.csv", "--workers", 1, "--connect", "127.0.0.1:1"),
    run_arguments("scene.json", "out.csv", "--connect", "host:port"),
    run_arguments("scene.json", "out.csv", observe=()),
    ["demo", "swing", "--out", "x.gif"],
    ["gallery", "--out", "x.json"],
]


@pytest.mark.parametrize("arguments", USAGE, ids=lambda arguments: " ".join(map(str, arguments)))
def test_usage_errors_have_exit_code_2(cli, scene_file, arguments):
    done = cli(*arguments)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("ropewalk: INVALID_ARGUMENT: ") and done.stderr.count("\n") == 1
    assert os.listdir(cli.folder) == ["scene.json"]


def test_a_usage_error_names_its_option(cli, scene_file):
    done = cli(*run_arguments("scene.json", "out.csv", until=-1))
    assert done.stderr == "ropewalk: INVALID_ARGUMENT: --until: must be a time in seconds >= 0, got -1\n"


def test_nobody_at_connect_is_unavailable(cli, scene_file):
    done = cli(*run_arguments(scene_file, "out.csv", "--connect", "127.0.0.1:1"))
    assert done.returncode == 1 and done.stderr.startswith("ropewalk: UNAVAILABLE: ")


def test_solvers_are_overridden(cli, tmp_path, cable):
    cable["solver"]["rods"] = "XPBD"
    (tmp_path / "scene.json").write_text(json.dumps(cable))
    observe = ["rod/cable/at/1/position"]
    assert cli(*run_arguments("scene.json", "out.csv", "--rods", "scr", observe=observe)).returncode == 0
    _, rows = table(tmp_path / "out.csv")
    cable["solver"]["rods"] = "SCR"
    (tmp_path / "scene.json").write_text(json.dumps(cable))
    assert cli(*run_arguments("scene.json", "out.csv", observe=observe)).returncode == 0
    assert np.array_equal(rows, table(tmp_path / "out.csv")[1])


def test_an_interrupt_leaves_neither_file_nor_daemon(tmp_path, scene_file):
    arguments = [str(part) for part in run_arguments(scene_file, tmp_path / "out.csv", until=1e5, every=1e-3)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        [sys.executable, "-m", "ropewalk", *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        # Whoever runs the tests in the background has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        end = time.monotonic() + 60
        while not [name for name in os.listdir(tmp_path) if name.startswith(".out.csv")] and time.monotonic() < end:
            time.sleep(0.02)
        assert [name for name in os.listdir(tmp_path) if name.startswith(".out.csv")]
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130 and running.stderr.read() == b""
    finally:
        running.kill()
        running.wait()
        running.stderr.close()
    assert os.listdir(tmp_path) == ["scene.json"]


def test_demo_prints_a_table_and_draws_the_motion(cli):
    from PIL import Image

    done = cli("demo", "--seconds", 0.2)
    assert done.returncode == 0, done.stderr
    assert "kinetic" in done.stdout and "steps per second" in done.stdout
    image = np.asarray(Image.open(cli.folder / "demo.png").convert("RGB"), dtype=float)
    assert image.shape[1] >= 1000
    # Something of the cord's red and of the brick's blue is on it.
    red, blue = image[..., 0] - image[..., 2], image[..., 2] - image[..., 0]
    assert (red > 60).sum() > 2000 and (blue > 60).sum() > 2000


def test_gallery_lists_and_writes_scenes(cli):
    listed = cli("gallery").stdout
    assert all(name in listed for name in gallery.names())
    assert cli("gallery", "swing", "--out", "swing.json").returncode == 0
    assert ropewalk.read_scene(cli.folder / "swing.json") == gallery.scene("swing").message
    assert json.loads(cli("gallery", "free-top").stdout)["name"] == "free top"
    done = cli("gallery", "nothing")
    assert done.returncode == 1 and done.stderr.startswith("ropewalk: NOT_FOUND: nothing: ")


def test_serve_becomes_the_daemon(cli):
    done = cli("serve", "--help")
    assert done.returncode == 0 and "--listen" in done.stdout and "--token-file" in done.stdout
    done = cli("serve", "--no-such-option")
    assert done.returncode != 0 and "no-such-option" in done.stderr


def test_recordings_become_arrays_and_pictures(cli, daemon, scene_file):
    done = cli("record", scene_file, "--seconds", 0.2, "--every", 0.01, "--out", "motion.rwf")
    assert done.returncode == 0, done.stderr
    done = cli("replay", "motion.rwf", "--out", "motion.npz")
    assert done.returncode == 0, done.stderr
    with np.load(cli.folder / "motion.npz") as data:
        assert data["rod/cable/position"].shape[1:] == (21, 3) and data["body/ball/rotation"].shape[2] == 4
        steps = data["step"].tolist()
        assert steps[-1] == 200 and set(np.diff(steps)) == {10}
        last = data["body/ball/position"][-1, 0]
    assert cli(*run_arguments(scene_file, "out.csv", until=0.2)).returncode == 0
    assert np.array_equal(table(cli.folder / "out.csv")[1][-1, 1:], last)
    assert cli("replay", "motion.rwf", "--out", "motion.png").returncode == 0
    assert (cli.folder / "motion.png").read_bytes().startswith(b"\x89PNG")
    data = (cli.folder / "motion.rwf").read_bytes()
    (cli.folder / "cut.rwf").write_bytes(data[:-5])
    done = cli("replay", "cut.rwf")
    assert done.returncode == 1 and done.stderr.startswith("ropewalk: DATA_LOSS: cut.rwf: ")
    done = cli("replay", "scene.json")
    assert done.returncode == 1 and "journals" in done.stderr


def test_a_running_session_is_watched_and_recorded(cli, daemon, session, falling):
    session.load_scene(falling)
    session.step(5)
    done = cli("watch", session.name, "body/*/position", "--connect", daemon.unix, "--count", 2, "--interval", 0.01)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "time,body/ball/position.0,body/ball/position.1,body/ball/position.2" and len(lines) == 3
    assert float(lines[1].split(",")[0]) == pytest.approx(0.005)
    top = cli("top", "--connect", daemon.unix)
    assert top.returncode == 0 and session.name in top.stdout and "READY" in top.stdout
    session.run(ratio=1.0)
    done = cli("record", session.name, "--connect", daemon.unix, "--seconds", 0.3, "--every", 0.02, "--out", "live.rwf")
    session.pause()
    assert done.returncode == 0, done.stderr
    assert "frames" in cli("replay", "live.rwf").stdout


def test_bench_collects_json_lines(cli):
    folder = cli.folder / "build/tests/bench"
    folder.mkdir(parents=True)
    for name, code in (("roundtrip", 0), ("codec", 0), ("broken", 3)):
        line = json.dumps({"name": f"{name}/ping/p50", "value": 14.5, "unit": "us", "baseline": 14.0, "ratio": 1.036})
        program = folder / f"bench_{name}"
        program.write_text(f"#!/bin/sh\necho 'some talk'\necho '{line}'\nexit {code}\n")
        program.chmod(0o755)
    environment = {"ROPEWALK_BUILD": str(cli.folder / "build")}
    done = cli("bench", "roundtrip", "codec", "--json", "out.json", **environment)
    assert done.returncode == 0 and "roundtrip/ping/p50" in done.stdout, done.stderr
    results = json.loads((cli.folder / "out.json").read_text())
    assert [one["name"] for one in results] == ["codec/ping/p50", "roundtrip/ping/p50"]
    assert results[1] == {"name": "roundtrip/ping/p50", "value": 14.5, "unit": "us", "baseline": 14.0, "ratio": 1.036}
    assert cli("bench", **environment).returncode == 1  # One of them failed.
    assert cli("bench", "nothing", **environment).returncode == 1


@pytest.mark.parametrize("total, stride", [(0, 5), (1, 1), (100, 10), (103, 10), (7, 10), (10_000, 1), (1000, 999)])
def test_a_plan_is_cut_into_exactly_its_rows(total, stride):
    """However fast the steps turn out to be."""
    rng = np.random.default_rng(total)
    plan = Plan(stride, total)
    for _ in range(20):
        chunks, done, rows = _Chunks(plan, width=4), 0, [0]
        while (chunk := chunks.next()) is not None:
            steps, every, wanted = chunk
            assert steps > 0
            if every:
                rows += range(done + every, done + steps + 1, every)
            elif wanted:
                rows.append(done + steps)
            done += steps
            chunks.learn(steps, float(rng.choice([1e-6, 1e-3, 1.0])))
        assert rows == [*range(0, total + 1, stride)] + ([total] if total % stride else [])
        assert len(rows) == plan.rows


def test_plans_round_to_time_steps():
    assert Plan.of(1.0, 0.01, 0.001) == Plan(10, 1000)
    assert Plan.of(0.3, 0.1, 0.1) == Plan(1, 3)
    assert Plan.of(1.0, 0.0254, 0.01) == Plan(3, 100)
    assert Plan.of(1.0, 1e-9, 0.01) == Plan(1, 100)
