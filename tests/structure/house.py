"""What the structure tests share: the tree's files, C text without comments, build facts.

Standard library only, since these tests run with the distribution's python3.
"""

import functools
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("solvers", "proto", "server", "gpu", "clients/c", "clients/web")
C_SUFFIXES = {".c", ".h", ".cu", ".cuh"}


@functools.cache
def c_files(*folders):
    """Paths from the root of all C and CUDA sources in the folders, sorted."""
    found = []
    for folder in folders:
        found += [
            path.relative_to(ROOT)
            for path in (ROOT / folder).rglob("*")
            if path.suffix in C_SUFFIXES and path.is_file()
        ]
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def without_comments(text, keep_strings=False):
    """C text with comments (and, unless kept, the insides of strings) blanked; lines keep their numbers."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token if keep_strings else token[0] * 2
        return "\n" * token.count("\n") or " "

    return _TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@functools.cache
def compile_commands():
    """Entries of the build's compile_commands.json for C files of this tree, paths from the root."""
    build = pathlib.Path(os.environ["ROPEWALK_BUILD"])
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        directory = pathlib.Path(entry["directory"])
        source = (directory / entry["file"]).resolve()
        if source.suffix != ".c" or not source.is_relative_to(ROOT) or source.is_relative_to(build):
            continue
        entries.append(
            {
                "file": source.relative_to(ROOT),
                "object": (directory / entry["output"]).resolve(),
                "directory": directory,
                "arguments": entry.get("command", "").split(),
            }
        )
    return entries


@functools.cache
def _all_symbols():
    """nm once over all objects: a process for each would take most of the tests' time."""
    objects = [str(entry["object"]) for entry in compile_commands() if entry["object"].exists()]
    found = {}
    if objects:
        text = subprocess.run(["nm", "-g", "-A", *objects], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            path, _, rest = line.partition(":")
            words = rest.split()
            if len(words) >= 2:
                found.setdefault(path, []).append((words[-2], words[-1]))
    return found


def symbols(path):
    """(letter, name) of an object file's global symbols, as nm prints them."""
    return _all_symbols().get(str(path), [])
