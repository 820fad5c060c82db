"""tests/support/count_results.py believes no program: crashes, time-outs and missing files are failures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import house


def meson_entry(name, result, stdout="", stderr=""):
    return json.dumps({"name": name, "result": result, "stdout": stdout, "stderr": stderr, "returncode": 0})


CMOCKA_GOOD = "[==========] 3 test(s) run.\n[  PASSED  ] 3 test(s).\n"
CMOCKA_BAD = "[==========] 3 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 2 test(s), listed below:\n"
UNITTEST_BAD = "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n"


class CountResults(unittest.TestCase):
    def count(self, *files):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in files:
                path = pathlib.Path(folder) / name
                if text is not None:
                    path.write_text(text)
                paths.append(str(path))
            run = subprocess.run(
                [sys.executable, str(house.ROOT / "tests/support/count_results.py"), *paths],
                capture_output=True,
                text=True,
            )
        return run.stdout.splitlines()[-1], run.returncode

    def check(self, lines, expected, code):
        self.assertEqual(self.count(("testlog.json", "\n".join(lines))), (expected, code))

    def test_cases_inside_a_program_are_counted(self):
        lines = [meson_entry("a", "OK", "", CMOCKA_GOOD), meson_entry("b", "OK", "no cases printed")]
        self.check(lines, "4 passed, 0 failed", 0)

    def test_failed_cases_are_counted(self):
        self.check([meson_entry("a", "FAIL", "", CMOCKA_BAD)], "1 passed, 2 failed", 1)
        self.check([meson_entry("a", "FAIL", "", UNITTEST_BAD)], "2 passed, 2 failed", 1)

    def test_a_crash_or_time_out_is_a_failure_whatever_was_printed(self):
        self.check([meson_entry("a", "TIMEOUT", "", CMOCKA_GOOD)], "3 passed, 1 failed", 1)
        self.check([meson_entry("a", "FAIL", "")], "0 passed, 1 failed", 1)
        self.check([meson_entry("a", "ERROR", "")], "0 passed, 1 failed", 1)

    def test_a_good_exit_code_does_not_hide_printed_failures(self):
        self.check([meson_entry("a", "OK", "", CMOCKA_BAD)], "1 passed, 2 failed", 1)

    def test_a_skip_is_neither(self):
        lines = [meson_entry("a", "SKIP"), meson_entry("b", "OK")]
        self.check(lines, "1 passed, 0 failed", 0)

    def test_nothing_run_is_a_failure(self):
        self.check([], "0 passed, 1 failed", 1)
        self.assertEqual(self.count(("gone.json", None)), ("0 passed, 1 failed", 1))
        self.assertEqual(self.count(("gone.xml", None)), ("0 passed, 1 failed", 1))
        self.assertEqual(self.count(("empty.xml", "<testsuites/>")), ("0 passed, 1 failed", 1))

    def test_pytest_results_are_added(self):
        junit = (
            '<testsuites><testsuite><testcase classname="t" name="a"/>'
            '<testcase classname="t" name="b"><failure message="x"/></testcase>'
            '<testcase classname="t" name="c"><skipped/></testcase></testsuite></testsuites>'
        )
        files = (("testlog.json", meson_entry("a", "OK", "", CMOCKA_GOOD)), ("pytest.xml", junit))
        self.assertEqual(self.count(*files), ("4 passed, 1 failed", 1))


if __name__ == "__main__":
    unittest.main()
