"""Who may include whom: the rules of docs/architecture.md, applied to every #include "..." of the tree."""

import pathlib
import re
import unittest

import house

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)

SOLVERS_LOW = ("solvers/base", "solvers/math", "solvers/sched", "solvers/model")
METHODS = ("solvers/collide", "solvers/dae", "solvers/xpbd", "solvers/scr")
SOLVERS = SOLVERS_LOW + METHODS + ("solvers/world",)

# Folder (the longest match counts) -> folders that it may include besides itself.
MAY_INCLUDE = {
    "solvers/base": (),
    # A factorisation may be shared out (kkt).
    "solvers/math": ("solvers/base", "solvers/sched"),
    # sched knows nothing of physics; the solver interface in model hands its parallel_for to solvers.
    "solvers/sched": ("solvers/base",),
    "solvers/model": ("solvers/base", "solvers/math", "solvers/sched"),
    "solvers/collide": SOLVERS_LOW,
    "solvers/dae": SOLVERS_LOW + METHODS,
    "solvers/xpbd": SOLVERS_LOW + METHODS,
    "solvers/scr": SOLVERS_LOW + METHODS + ("gpu",),
    "solvers/world": SOLVERS_LOW + METHODS,
    "gpu": ("solvers/base", "solvers/math"),
    "proto": ("solvers/base",),
    # config, log and metrics lie directly in server/ and serve the rooms below; main sees them all.
    "server": ("solvers/base",),
    "server/main.c": ("server", "server/net", "server/session", "server/dispatch", "server/stream", "server/store")
    + SOLVERS,
    "server/store": ("server", "proto") + SOLVERS,
    "server/session": ("server", "server/store", "server/stream", "server/dispatch", "proto") + SOLVERS,
    "server/dispatch": ("server", "server/session", "server/stream", "server/store", "proto") + SOLVERS,
    "server/stream": ("server", "server/session", "proto") + SOLVERS,
    "server/net": ("server", "server/session", "server/dispatch", "server/stream", "server/store", "proto")
    + SOLVERS,
    # A client sees the wire, never the server or the physics.
    "clients/c": ("proto", "solvers/base"),
    "clients/web": ("proto",),
}


def room_of(path):
    """The key of MAY_INCLUDE that covers a path, or its folder when none does."""
    text = path.as_posix()
    best = max(
        (room for room in MAY_INCLUDE if text == room or text.startswith(room + "/")), key=len, default=None
    )
    return best or path.parent.as_posix()


def folder_of(path):
    room = room_of(path)
    return path.parent.as_posix() if room == path.as_posix() else room


class IncludeRules(unittest.TestCase):
    def includes(self):
        for path in house.c_files(*house.CODE_FOLDERS):
            text = house.without_comments(house.read(path), keep_strings=True)
            for match in INCLUDE.finditer(text):
                yield path, house.line_of(text, match.start()), match.group(1)

    def test_each_room_includes_only_what_lies_below_it(self):
        faults = []
        for path, line, name in self.includes():
            room, target = room_of(path), room_of(pathlib.PurePosixPath(name))
            if target != room and target not in MAY_INCLUDE.get(room, ()) and target != folder_of(path):
                faults.append(f"{path}:{line}: {room} may not include {name}")
        self.assertEqual(faults, [])

    def test_includes_are_paths_from_the_root(self):
        faults = []
        for path, line, name in self.includes():
            if name.endswith((".pb.h", "config.h")) and not (house.ROOT / name).exists():
                continue  # made by the build
            if not (house.ROOT / name).is_file():
                faults.append(f"{path}:{line}: no such file from the root: {name}")
        self.assertEqual(faults, [])

    def test_no_code_includes_tests(self):
        faults = [f"{path}:{line}" for path, line, name in self.includes() if name.startswith("tests/")]
        self.assertEqual(faults, [])

    def test_a_method_includes_no_other_method_but_the_contact_room(self):
        faults = []
        for path, line, name in self.includes():
            room, target = room_of(path), room_of(pathlib.PurePosixPath(name))
            rigid_or_rod = [method for method in METHODS if method != "solvers/collide"]
            if room in rigid_or_rod and target in rigid_or_rod and room != target:
                faults.append(f"{path}:{line}: {room} reaches into {name}")
        self.assertEqual(faults, [])

    def test_the_rules_see_the_tree(self):
        # If the folders moved, every check above would pass on nothing.
        self.assertGreater(len(list(self.includes())), 5)


if __name__ == "__main__":
    unittest.main()
