"""Runs the benchmark programs of the build and collects their figures.

A program prints one JSON object per line: {"name", "value", "unit", "baseline", "ratio"}.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .errors import NotFound, Unavailable

_FIELDS = ("name", "value", "unit", "baseline", "ratio")


def bench_folder() -> pathlib.Path:
    """Where the programs are: $ROPEWALK_BUILD, else the source tree's build. Raises Unavailable."""
    candidates = [pathlib.Path(os.environ["ROPEWALK_BUILD"])] if os.environ.get("ROPEWALK_BUILD") else []
    candidates += [parent / "build" for parent in pathlib.Path(__file__).resolve().parents[:6]]
    for build in candidates:
        if (build / "tests" / "bench").is_dir():
            return build / "tests" / "bench"
    raise Unavailable("the benchmarks were not found: run this through ./ropewalk, or set ROPEWALK_BUILD")


def run_benchmarks(groups: Sequence[str], json_path: pathlib.Path | None) -> int:
    """Runs the groups (all when none are named), prints a table, writes the list; the exit code."""
    folder = bench_folder()
    programs = [path for path in sorted(folder.glob("bench_*")) if path.is_file() and os.access(path, os.X_OK)]
    if not programs:
        raise Unavailable("no benchmark is built: ninja -C build benches", str(folder))
    names = [path.name.removeprefix("bench_") for path in programs]
    results: list[dict[str, Any]] = []
    failed = []
    console = Console(stderr=True)
    # A group is a program, or the beginning of figures' names.
    chosen = [path for path, name in zip(programs, names) if not groups or name in groups] or programs
    by_name = bool(groups) and not set(groups) & set(names)
    for path in chosen:
        with console.status(f"measuring: {path.name.removeprefix('bench_')}"):
            found, code = _run_program(path)
        results += [one for one in found if not by_name or _belongs(one["name"], groups)]
        if code != 0:
            failed.append(f"{path.name} ended with {code}")
    if groups and not results and not failed:
        raise NotFound(f"no such group; there are {', '.join(names)}", ", ".join(groups))
    _print_table(results)
    if json_path is not None:
        json_path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for line in failed:
        print(f"ropewalk: INTERNAL: {line}", file=sys.stderr)
    return 1 if failed else 0


def _belongs(name: str, groups: Sequence[str]) -> bool:
    return any(name == group or name.startswith(group.rstrip("/") + "/") for group in groups)


def _run_program(path: pathlib.Path) -> tuple[list[dict[str, Any]], int]:
    done = subprocess.run([str(path)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    found = []
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        try:
            one = json.loads(line)
            found.append({field: one.get(field) for field in _FIELDS} | {"name": str(one["name"])})
        except (ValueError, KeyError):
            print(f"ropewalk: {path.name} printed no result: {line[:120]}", file=sys.stderr)
    return found, done.returncode


def _print_table(results: Sequence[dict[str, Any]]) -> None:
    table = Table()
    table.add_column("name")
    for heading in ("value", "unit", "baseline", "ratio"):
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    for one in results:
        numbers = {
            key: f"{one[key]:,.4g}" if isinstance(one[key], (int, float)) else ""
            for key in ("value", "baseline", "ratio")
        }
        table.add_row(one["name"], numbers["value"], one["unit"] or "", numbers["baseline"], numbers["ratio"])
    Console(width=None if sys.stdout.isatty() else 110).print(table)
