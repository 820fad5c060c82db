"""The launcher on machines that are not this one: no apt, no root, no sudo, a user who says no.

A copy of it runs with a PATH of a few basic tools and of fakes that write down how they were called.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import house

BASIC_TOOLS = "sh cat mkdir rm cksum dirname readlink tail head sed tr printf env grep flock id".split()


class Launcher(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name) / "tree with a space"
        self.tools = pathlib.Path(scratch.name) / "bin"
        self.calls = pathlib.Path(scratch.name) / "calls"
        self.tree.mkdir()
        self.tools.mkdir()
        shutil.copy(house.ROOT / "ropewalk", self.tree)
        for tool in BASIC_TOOLS:
            found = shutil.which(tool)
            if found:
                (self.tools / tool).symlink_to(found)

    def fake(self, name, script):
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.calls}"\n{script}\n')
        path.chmod(0o755)

    def run_launcher(self, *words, **environment):
        # The interpreter of the environment would be found at its absolute path too; here there is none.
        return subprocess.run(
            [str(self.tree / "ropewalk"), *words],
            env={"PATH": str(self.tools), "HOME": "/nonexistent", "CC": "no-compiler", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_help_needs_no_set_up_and_names_every_word(self):
        run = self.run_launcher("help")
        self.assertEqual(run.returncode, 0)
        for word in "demo run serve gallery bench top watch record replay test build setup --yes".split():
            self.assertIn(word, run.stdout)
        self.assertFalse((self.tree / "build").exists())

    def test_no_word_is_a_usage_error(self):
        self.assertEqual(self.run_launcher().returncode, 2)
        self.assertEqual(self.run_launcher("--yes").returncode, 2)

    def test_without_apt_it_lists_packages_for_each_distribution(self):
        run = self.run_launcher("demo")
        self.assertEqual(run.returncode, 1)
        for words in ("Debian, Ubuntu", "libuv1-dev", "Fedora", "libuv-devel", "Arch", "openSUSE", "Alpine", "nanopb"):
            self.assertIn(words, run.stderr)

    def test_a_user_without_sudo_is_told_what_root_must_install(self):
        self.fake("apt-get", "exit 0")
        self.fake("id", "echo 1000")
        run = self.run_launcher("demo")
        self.assertEqual(run.returncode, 1)
        self.assertIn("apt-get install gcc libc6-dev meson", run.stderr)
        self.assertNotIn("apt-get", " ".join(self.called()))

    def test_no_sudo_is_respected(self):
        self.fake("apt-get", "exit 0")
        self.fake("sudo", 'exec "$@"')
        self.fake("id", "echo 1000")
        self.assertEqual(self.run_launcher("demo", NO_SUDO="1").returncode, 1)
        self.assertNotIn("sudo", " ".join(self.called()))

    def test_a_user_with_sudo_installs_through_it(self):
        self.fake("apt-get", "exit 0")
        self.fake("sudo", '[ "$1" = -v ] || exec "$@"')
        self.fake("id", "echo 1000")
        run = self.run_launcher("demo")
        self.assertEqual(run.returncode, 1)  # the fake installs nothing
        self.assertIn("still missing after the installation", run.stderr)
        sudo = [line for line in self.called() if line.startswith("sudo")]
        self.assertIn("sudo apt-get update -q", sudo)
        self.assertTrue(any("apt-get install -y -q --no-install-recommends gcc" in line for line in sudo), sudo)

    def test_a_compiler_behind_a_wrapper_counts_as_a_compiler(self):
        self.fake("wrapper", 'exec "$@"')
        self.fake("real-compiler", "cat >/dev/null")
        run = self.run_launcher("demo", CC="wrapper real-compiler")
        missing = next(line for line in run.stderr.splitlines() if "missing on this machine" in line)
        self.assertNotIn("compiler", missing.split())

    def test_a_failed_installation_shows_the_end_of_its_log(self):
        self.fake("apt-get", 'echo "E: no network here"; exit 100')
        run = self.run_launcher("--yes", "demo")
        self.assertEqual(run.returncode, 1)
        self.assertIn("E: no network here", run.stderr)


if __name__ == "__main__":
    unittest.main()
