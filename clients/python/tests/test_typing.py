"""The package keeps its types' promises."""

import pathlib
import subprocess
import sys


def test_mypy_finds_nothing(tmp_path):
    project = pathlib.Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
