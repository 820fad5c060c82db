"""The demo: a scene of the gallery in a table and a picture."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .client import Client
from .gallery import Exhibit
from .picture import Film

_FRAMES = 180
_TABLE_ROWS = 10


def run_demo(
    client: Client,
    exhibit: Exhibit,
    out: pathlib.Path,
    seconds: float,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Simulates, prints the table on stdout and writes the picture."""
    scene = exhibit.build().message
    with client.create_session(ttl_detached_s=0) as session:
        session.load_scene(scene)
        time_step = session.refresh().time_step
        total = max(1, round(seconds / time_step))
        stride = max(1, total // _FRAMES)
        signals = ["world/time", "world/energy/kinetic", "world/energy/gravity", "world/energy/elastic"]
        followed = _followed(scene)
        energies = session.observe(*signals, *([followed] if followed else []))
        rows = [energies.values.copy()]
        film = Film(scene, f"{exhibit.name}: {exhibit.title}")
        began = time.perf_counter()
        with session.subscribe(every_steps=stride, back_pressure=True, queue_limit=None) as frames:
            for part in range(_TABLE_ROWS):
                steps = total * (part + 1) // _TABLE_ROWS - total * part // _TABLE_ROWS
                if steps == 0:
                    continue
                row = session.advance(steps=steps, observe=energies)
                assert row is not None
                rows.append(row)
                for frame in frames.available():
                    film.add(frame)
                if progress is not None:
                    progress(steps, total)
        for frame in iter(lambda: frames.next(), None):
            film.add(frame)
        took = time.perf_counter() - began
    film.draw(out, exhibit.images)
    _print_table(exhibit, np.array(rows), followed)
    rate = f"{total} steps of {time_step * 1e3:.3g} ms in {took:.2f} s ({total / took:,.0f} steps per second)"
    print(f"{rate}\npicture: {out}")


def _followed(scene: object) -> str | None:
    """A signal that tells the motion: the first rod's end or the first body's place."""
    for rod in scene.rods:  # type: ignore[attr-defined]
        return f"rod/{rod.name}/at/1/position" if rod.WhichOneof("geometry") != "graph" else None
    for body in scene.bodies:  # type: ignore[attr-defined]
        return f"body/{body.name}/position"
    return None


def _print_table(exhibit: Exhibit, rows: np.ndarray, followed: str | None) -> None:
    table = Table(title=f"{exhibit.name}: {exhibit.title}", title_justify="left")
    for heading in ("time [s]", "kinetic [J]", "gravity [J]", "elastic [J]", "total [J]"):
        table.add_column(escape(heading), justify="right")
    if followed:
        for axis in "xyz":
            table.add_column(escape(f"{'end' if followed.startswith('rod') else 'body'} {axis} [m]"), justify="right")
    for row in rows:
        energy = row[1:4]
        cells = [f"{row[0]:.3f}", *(f"{value:.4f}" for value in (*energy, energy.sum()))]
        cells += [f"{value:+.4f}" for value in row[4:7]] if followed else []
        table.add_row(*cells)
    Console(width=None if Console().is_terminal else 110).print(table)
