"""Every header compiles alone, can be included twice, and says at its top what it is for."""

import os
import re
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

import house


def compiler_and_flags():
    """The compiler and the -I, -isystem, -D, -std flags that any source of the house is built with."""
    flags, seen = [], set()
    for entry in house.compile_commands():
        words = entry["arguments"]
        for index, word in enumerate(words):
            pair = None
            if word in ("-isystem", "-I", "-idirafter"):
                pair = [word, str((entry["directory"] / words[index + 1]).resolve())]
            elif word.startswith("-I"):
                pair = ["-I" + str((entry["directory"] / word[2:]).resolve())]
            elif word.startswith(("-isystem", "-D", "-std")):
                pair = [word]
            if pair and tuple(pair) not in seen:
                seen.add(tuple(pair))
                flags += pair
    return os.environ.get("ROPEWALK_CC", "cc").split(), flags


class Headers(unittest.TestCase):
    def headers(self):
        return [
            path
            for path in house.c_files(*house.CODE_FOLDERS, "tests")
            if path.suffix == ".h" and "web" not in path.parts
        ]

    def test_each_header_compiles_alone(self):
        compiler, flags = compiler_and_flags()

        def compile_alone(path):
            run = subprocess.run(
                compiler + flags + ["-Wall", "-Werror", "-x", "c", "-fsyntax-only", "-"],
                input=f'#include "{path}"\n#include "{path}"\nextern int rw_not_empty;\n',
                capture_output=True,
                text=True,
                cwd=house.ROOT,
            )
            return None if run.returncode == 0 else f"{path}: {run.stderr.strip()}"

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = [fault for fault in pool.map(compile_alone, self.headers()) if fault]
        self.assertEqual(faults, [], "\n".join(faults))

    def test_each_header_has_pragma_once_and_an_opening_paragraph(self):
        faults = []
        for path in self.headers():
            text = house.read(path)
            if "#pragma once" not in text:
                faults.append(f"{path}: no #pragma once")
            if not re.match(r"//|/\*", text):
                faults.append(f"{path}: does not begin with a comment that says what it is for")
        self.assertEqual(faults, [])

    def test_headers_of_the_house_say_which_thread_may_call_them(self):
        faults = []
        for path in self.headers():
            if path.parts[0] == "tests" or path.parts[:2] == ("clients", "c"):
                continue
            opening = re.match(r"(?:\s*//[^\n]*\n)+|\s*/\*.*?\*/", house.read(path), re.S)
            if not opening or not re.search(r"thread|loop|worker", opening.group(0), re.I):
                faults.append(f"{path}: its opening paragraph does not say which thread may call it")
        self.assertEqual(faults, [])

    def test_the_check_sees_headers(self):
        self.assertGreater(len(self.headers()), 3)


if __name__ == "__main__":
    unittest.main()
