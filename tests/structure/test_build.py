"""No source is forgotten: every C file of the tree is compiled by the build, every test source is a test."""

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

    def test_every_test_source_belongs_to_a_meson_build(self):
        # A file that holds cmocka tests and a main, but that no meson.build beside it names.
        faults = []
        for path in house.c_files("tests"):
            if path.suffix == ".c" and "cmocka_run_group_tests" in house.read(path):
                listed = (house.ROOT / path.parent / "meson.build").read_text(encoding="utf-8")
                if path.name not in listed:
                    faults.append(str(path))
        self.assertEqual(faults, [])

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
