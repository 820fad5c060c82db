"""Any symbol tells its file, or the header of its folder that it implements: unique file stems, and `rw_<stem>_...`
for everything that links."""

import collections
import functools
import pathlib
import re
import unittest

import house

# Names that the outside world prescribes.
GIVEN_NAMES = {"main", "LLVMFuzzerTestOneInput"}


def tells(name, stem):
    return name == f"rw_{stem}" or name.startswith(f"rw_{stem}_")


@functools.cache
def doors(folder):
    """What the folder's headers declare under their own stem: one door (world.h) may have several files behind it."""
    names = set()
    for path in house.c_files(*house.CODE_FOLDERS):
        if path.suffix == ".h" and path.parent == folder:
            declared = declared_functions(house.without_comments(house.read(path)))
            names |= {name for name in declared if tells(name, path.stem)}
    return names


class Names(unittest.TestCase):
    def test_file_stems_are_unique_in_the_tree(self):
        places = collections.defaultdict(set)
        for path in house.c_files(*house.CODE_FOLDERS):
            if path.name in ("main.c",) or "examples" in path.parts:
                continue
            places[path.stem].add(path.parent.as_posix())
        doubles = {stem: sorted(folders) for stem, folders in places.items() if len(folders) > 1}
        self.assertEqual(doubles, {})

    def test_symbols_begin_with_the_stem_of_their_file(self):
        faults, seen = [], 0
        for entry in house.compile_commands():
            path = entry["file"]
            if not path.as_posix().startswith(house.CODE_FOLDERS) or not entry["object"].exists():
                continue
            for letter, name in house.symbols(entry["object"]):
                # U, w: used, not defined here. Sanitizers add names with an underscore in front.
                if letter in "Uwv" or name.startswith(("_", ".")) or name in GIVEN_NAMES:
                    continue
                seen += 1
                if not tells(name, path.stem) and name not in doors(path.parent):
                    faults.append(f"{path}: {name} does not begin with rw_{path.stem}_")
        self.assertEqual(sorted(set(faults)), [])
        self.assertGreater(seen, 20, "no objects were looked at")

    def test_functions_in_headers_begin_with_the_stem_of_their_file(self):
        faults = []
        for path in house.c_files(*house.CODE_FOLDERS):
            if path.suffix != ".h":
                continue
            for name in declared_functions(house.without_comments(house.read(path))):
                given = name in GIVEN_NAMES or name.startswith("_") or name.isupper()
                if not given and not tells(name, path.stem):
                    faults.append(f"{path}: {name} does not begin with rw_{path.stem}_")
        self.assertEqual(faults, [])

    def test_types_do_not_end_in_t(self):
        faults = []
        for path in house.c_files(*house.CODE_FOLDERS):
            text = house.without_comments(house.read(path))
            for match in re.finditer(r"^\}\s*(rw_\w+_t)\s*;|typedef[^;{]*\b(rw_\w+_t)\s*;", text, re.M):
                faults.append(f"{path}:{house.line_of(text, match.start())}: {match.group(1) or match.group(2)}")
        self.assertEqual(faults, [])


def declared_functions(text):
    """Names of functions declared or defined at file level, in C text without comments."""
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.M)
    text = text.replace('extern ""', "")
    depth, flat = 0, []
    for char in text:
        if char == "{":
            depth += 1
            flat.append(";")
        elif char == "}":
            depth -= 1
        elif depth == 0:
            flat.append(char)
    names = []
    for statement in "".join(flat).split(";"):
        if "typedef" in statement or "=" in statement:
            continue
        statement = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", statement, flags=re.S)
        match = re.search(r"\b(\w+)\s*\(", statement)
        if match and match.start() > 0:
            names.append(match.group(1))
    return names


if __name__ == "__main__":
    unittest.main()
