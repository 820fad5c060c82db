"""What the tests share: one private daemon for all that only need some daemon, scenes, a runner for the command line."""

import copy
import os
import pathlib
import subprocess
import sys

import pytest

import ropewalk


@pytest.fixture(scope="session")
def daemon():
    with ropewalk.Daemon(workers=2, tcp=True) as running:
        yield running


@pytest.fixture
def client(daemon):
    with daemon.connect() as connected:
        yield connected


@pytest.fixture
def session(client):
    with client.create_session() as made:
        yield made


FALLING = {
    "name": "falling",
    "time_step": 0.001,
    "solver": {"rods": "SCR"},
    "bodies": [
        {
            "name": "ball",
            "mass": 2.0,
            "inertia": [0.1, 0.2, 0.25, 0, 0, 0],
            "position": [0, 0, 1],
            "linear_velocity": [1, 0, 0],
            "angular_velocity": [1, 2, 3],
        }
    ],
}
CABLE = {
    "name": "cable",
    "time_step": 0.001,
    "solver": {"rods": "SCR", "scr": {"iterations": 20}},
    "rods": [
        {
            "name": "cable",
            "straight": {"start": [0, 0, 1], "end": [1, 0, 1]},
            "elements": 20,
            "section": {"radius": 0.02},
            "density": 1000,
            "young_modulus": 5e6,
        }
    ],
    "attachments": [{"name": "hook", "rod": "cable", "s": 0, "kind": "CLAMP"}],
}


@pytest.fixture
def falling():
    return copy.deepcopy(FALLING)


@pytest.fixture
def cable():
    return copy.deepcopy(CABLE)


@pytest.fixture
def both(falling, cable):
    return {**cable, "name": "both", "bodies": falling["bodies"]}


@pytest.fixture
def cli(tmp_path):
    """Runs the command line in a scratch folder."""

    def run(*arguments, timeout=120, **environment):
        return subprocess.run(
            [sys.executable, "-m", "ropewalk", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )

    run.folder = pathlib.Path(tmp_path)
    return run
