"""No source is forgotten: every C file of the tree is compiled by the build, every test source is a test."""

import json
import os
import pathlib
import re
import subprocess
import unittest

import house

# Built only where their part was found (nvcc, libFuzzer).
OPTIONAL = re.compile(r"^gpu/|^tests/fuzz/replay_main\.c$")


class Build(unittest.TestCase):
    def test_every_c_file_is_compiled(self):
        built = {entry["file"] for entry in house.compile_commands()}
        faults = [
            str(path)
            for path in house.c_files(*house.CODE_FOLDERS, "tests")
            if path.suffix == ".c" and path not in built and not OPTIONAL.search(path.as_posix())
        ]
        self.assertEqual(faults, [])

    def test_every_test_source_is_run_as_a_test(self):
        # A file that holds cmocka tests and a main belongs to a program that `meson test` runs.
        facts = pathlib.Path(os.environ["ROPEWALK_BUILD"]) / "meson-info"
        run = {word for test in json.loads((facts / "intro-tests.json").read_text()) for word in test["cmd"]}
        tested = {
            pathlib.Path(source).relative_to(house.ROOT)
            for target in json.loads((facts / "intro-targets.json").read_text())
            if run & set(target["filename"])
            for part in target["target_sources"]
            for source in part.get("sources", [])
            if pathlib.Path(source).is_relative_to(house.ROOT)
        }
        faults = [
            str(path)
            for path in house.c_files("tests")
            if path.suffix == ".c" and "cmocka_run_group_tests" in house.read(path) and path not in tested
        ]
        self.assertEqual(faults, [])
        self.assertGreater(len(tested), 10)

    def test_build_folders_are_not_tracked(self):
        try:
            tracked = subprocess.run(
                ["git", "-C", str(house.ROOT), "ls-files"], capture_output=True, text=True, check=True
            ).stdout.split("\n")
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("not a git checkout, or no git")
        bad = [name for name in tracked if re.match(r"build|\.venv/|.*__pycache__|.*\.pyc$|demo\.png$", name)]
        self.assertEqual(bad, [])
        large = [name for name in tracked if name and (house.ROOT / name).is_file()
                 and (house.ROOT / name).stat().st_size > 4 << 20]  # fmt: skip
        self.assertEqual(large, [], "larger than 4 MiB")


if __name__ == "__main__":
    unittest.main()
