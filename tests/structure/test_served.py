"""The tables "What is served" of docs/protocol.md are true: a running daemon is asked about every row.

A command that is listed as served must not answer UNIMPLEMENTED, one that is listed as UNIMPLEMENTED must.
Needs the Python client's environment (made by the launcher); started again with its interpreter.
"""

import os
import pathlib
import subprocess
import sys
import unittest

import house
from test_docs import snake
from test_examples import find_python

SCENE = {
    "solver": {"rods": "SCR"},
    "bodies": [
        {"name": "body", "mass": 1, "inertia": [1, 1, 1, 0, 0, 0]},
        {"name": "other", "mass": 1, "inertia": [1, 1, 1, 0, 0, 0]},
    ],
    "rods": [
        {"name": "rod", "straight": {"start": [0, 0, 0], "end": [1, 0, 0]}, "elements": 4,
         "section": {"radius": 0.01}, "density": 1000, "young_modulus": 1e6}
    ],
}  # fmt: skip
MECHANISM = {
    "solver": {"rigid": "DAE", "rods": "SCR"},
    "bodies": SCENE["bodies"],
    "joints": [
        {"name": "hinge", "type": "REVOLUTE", "child": "body"},
        {"name": "elbow", "type": "REVOLUTE", "parent": "body", "child": "other"},
    ],
}
# What a command needs beyond itself so that its own handler is reached.
FIELDS = {
    "create_joint": {"joint": {"name": "new", "type": "SPHERICAL", "parent": "body", "child": "other"}},
    "create_coupling": {"coupling": {"name": "gear", "joint_a": "hinge", "joint_b": "elbow"}},
    "remove_joint": {"object": {"name": "hinge"}},
    "set_joint_state": {"joint": {"name": "elbow"}, "coordinate": [0.5], "rate": [0.1]},
    "set_motor": {"joint": {"name": "elbow"}, "mode": "EFFORT", "target": [1.0]},
    "set_joint_properties": {"joint": {"name": "elbow"}, "damping": 0.1},
    "create_session": {"name": "another"},
    "step": {"count": 1},
    "rollout": {"count": 2, "steps": 2},
    "query": {"hash": {}},
}
QUESTION_FIELDS = {
    "ray_cast": {"origins": [0, 0, 5], "directions": [0, 0, -1]},
    "closest_points": {"a": {"kind": "BODY", "name": "body"}, "b": {"kind": "ROD", "name": "rod"}},
    "jacobian": {"body": {"name": "body"}},
}


def rows(number):
    """(names, is served) of the page's first or second table under the heading."""
    text = house.read("docs/protocol.md")
    section = text[text.index("## What is served") :]
    tables, current = [], []
    for line in section.splitlines():
        if line.startswith("|"):
            current.append(line)
        elif current:
            tables.append(current)
            current = []
    for line in tables[number][2:]:
        names, state = [cell.strip() for cell in line.strip("|").split("|")]
        yield [snake(name.strip("`")) for name in names.split()], not state.startswith("UNIMPLEMENTED")


class Served(unittest.TestCase):
    def setUp(self):
        import ropewalk

        self.daemon = ropewalk.Daemon(workers=1)
        self.addCleanup(self.daemon.stop)
        self.client = self.daemon.connect()
        self.addCleanup(self.client.close)

    def answer(self, command, fields):
        """The status that a command gets in a session of its own."""
        import ropewalk

        with self.client.create_session() as session:
            joints = "joint" in command or command in ("create_coupling", "remove_coupling", "set_motor")
            session.load_scene(MECHANISM if joints else SCENE)
            try:
                session.submit(command, fields).result()
                return "OK"
            except ropewalk.RopewalkError as error:
                return error.status

    def check(self, table, answer):
        faults, seen = [], 0
        for names, served in rows(table):
            for name in names:
                seen += 1
                status = answer(name)
                if served == (status == "UNIMPLEMENTED"):
                    faults.append(f"{name}: listed as {'served' if served else 'UNIMPLEMENTED'}, answers {status}")
        self.assertGreater(seen, 5)
        self.assertEqual(faults, [])

    def test_commands_answer_as_the_page_says(self):
        self.check(0, lambda command: self.answer(command, FIELDS.get(command, {})))

    def test_questions_answer_as_the_page_says(self):
        self.check(1, lambda question: self.answer("query", {question: QUESTION_FIELDS.get(question, {})}))


if __name__ == "__main__":
    python = find_python()
    if python is None:
        print("no Python environment with the client: run ./ropewalk once")
        sys.exit(77)
    daemon = pathlib.Path(os.environ["ROPEWALK_BUILD"]) / "server/ropewalkd"
    if not os.environ.get("RW_TEST_SERVED_INSIDE"):
        # Only that interpreter knows the client.
        environment = dict(os.environ, RW_TEST_SERVED_INSIDE="1", ROPEWALK_DAEMON=str(daemon))
        sys.exit(subprocess.run([python, __file__, *sys.argv[1:]], env=environment).returncode)
    unittest.main()
