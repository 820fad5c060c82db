"""Counts test cases in result files and prints `N passed, N failed` as its last line.

    count_results.py FILE ...

FILE is meson's testlog.json (one JSON object per line) or a JUnit XML file of pytest. A meson test is
an executable: the cases inside are counted where it prints them (cmocka, Python's unittest), else it
is one case. A test that ended badly counts as at least one failure whatever it printed (a crash, a
time-out), and so does a result file that is missing or empty. Exit code 1 when anything failed.
Standard library only: it also runs without Ropewalk's Python environment.
"""

import json
import re
import sys
import xml.etree.ElementTree

CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test\(s\)\.", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] +(\d+) test\(s\)", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] +(\d+) test\(s\)", re.M)
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_DETAIL = re.compile(r"(failures|errors|unexpected successes|skipped)=(\d+)")


def numbers(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def count_output(text):
    """(passed, failed, skipped) as printed by cmocka or unittest; zeros when neither printed."""
    passed, failed, skipped = (
        numbers(pattern, text) for pattern in (CMOCKA_PASSED, CMOCKA_FAILED, CMOCKA_SKIPPED)
    )
    ran = numbers(UNITTEST_RAN, text)
    if ran:
        last = text.rstrip().splitlines()[-1] if text.strip() else ""
        detail = {name: int(count) for name, count in UNITTEST_DETAIL.findall(last)}
        bad = detail.get("failures", 0) + detail.get("errors", 0) + detail.get("unexpected successes", 0)
        passed += ran - bad - detail.get("skipped", 0)
        failed += bad
        skipped += detail.get("skipped", 0)
    return passed, failed, skipped


def count_meson_test(entry):
    passed, failed, skipped = count_output(entry.get("stdout", "") + "\n" + entry.get("stderr", ""))
    result = entry["result"]
    if result == "SKIP":
        return 0, 0, max(skipped, 1)
    if result in ("OK", "EXPECTEDFAIL"):
        # A program that exits with 0 although it printed failures is not believed.
        return (passed or (0 if failed or skipped else 1)), failed, skipped
    return passed, max(failed, 1), skipped


def count_meson(path):
    total = [0, 0, 0]
    bad = []
    lines = [line for line in open(path, encoding="utf-8", errors="replace") if line.strip()]
    if not lines:
        raise ValueError("no test was run")
    for line in lines:
        entry = json.loads(line)
        counts = count_meson_test(entry)
        total = [a + b for a, b in zip(total, counts)]
        if counts[1]:
            bad.append(f"{entry['name']}: {entry['result']}")
    return total, bad


def count_junit(path):
    total = [0, 0, 0]
    bad = []
    cases = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    if not cases:
        raise ValueError("no test was run")
    for case in cases:
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            total[1] += 1
            bad.append(f"{case.get('classname')}.{case.get('name')}: FAIL")
        elif "skipped" in kinds:
            total[2] += 1
        else:
            total[0] += 1
    return total, bad


def main(paths):
    passed = failed = skipped = 0
    for path in paths:
        try:
            (good, bad, left_out), names = (count_junit if path.endswith(".xml") else count_meson)(path)
        except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
            good, bad, left_out, names = 0, 1, 0, [f"{path}: {error}"]
        passed, failed, skipped = passed + good, failed + bad, skipped + left_out
        for name in names:
            print(f"failed: {name}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
