"""Runs the examples of README and docs: fenced blocks whose first line says ```python run or ```sh run.

The blocks of one document run in order, in one scratch folder where `./ropewalk` is the launcher; its
Python blocks share one interpreter, as a reader would type them. Needs the Python client's environment
(made by the launcher); without it this test is skipped.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import house

BLOCK = re.compile(r"^```(python|sh) run[^\n]*\n(.*?)^```[ \t]*$", re.M | re.S)
INTERPRETER = """
import json, sys, traceback
names = {"__name__": "__main__"}
answers = sys.stdout
sys.stdout = sys.stderr
for line in sys.stdin:
    code, title = json.loads(line)
    try:
        exec(compile(code, title, "exec"), names)
        answer = ""
    except BaseException:
        answer = traceback.format_exc()
    print(json.dumps(answer), file=answers, flush=True)
"""


def find_python():
    for python in (os.environ.get("ROPEWALK_PYTHON"), house.ROOT / ".venv/bin/python"):
        if python and pathlib.Path(python).exists():
            return str(python)
    return None


def documents():
    paths = [house.ROOT / "README.md", *sorted((house.ROOT / "docs").glob("*.md"))]
    return [path for path in paths if BLOCK.search(path.read_text(encoding="utf-8"))]


class Examples(unittest.TestCase):
    def run_document(self, path, python):
        build = pathlib.Path(os.environ["ROPEWALK_BUILD"])
        environment = dict(os.environ, ROPEWALK_DAEMON=str(build / "server/ropewalkd"))
        environment["PATH"] = f"{pathlib.Path(python).parent}:{environment['PATH']}"
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "ropewalk").symlink_to(house.ROOT / "ropewalk")
            interpreter = subprocess.Popen(
                [python, "-c", INTERPRETER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=folder,
                env=environment,
                text=True,
            )
            try:
                text = path.read_text(encoding="utf-8")
                for match in BLOCK.finditer(text):
                    language, code = match.groups()
                    title = f"{path.name}:{house.line_of(text, match.start())}"
                    with self.subTest(title):
                        if language == "sh":
                            self.run_shell(code, folder, environment)
                        else:
                            interpreter.stdin.write(json.dumps([code, title]) + "\n")
                            interpreter.stdin.flush()
                            answer = interpreter.stdout.readline()
                            self.assertEqual(json.loads(answer or '"the interpreter ended"'), "", title)
            finally:
                interpreter.stdin.close()
                interpreter.wait(timeout=60)
                interpreter.stdout.close()

    def run_shell(self, code, folder, environment):
        run = subprocess.run(
            ["sh", "-eu", "-c", code],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(run.returncode, 0, f"{code}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")

    def test_the_examples_of_readme_and_docs_run(self):
        found = documents()
        self.assertGreater(len(found), 0, "no example is marked")
        for path in found:
            self.run_document(path, find_python())


if __name__ == "__main__":
    if not find_python():
        print("no Python environment with the client: run ./ropewalk once")
        sys.exit(77)
    unittest.main()
