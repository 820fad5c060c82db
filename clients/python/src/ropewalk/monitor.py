"""Looking at a running daemon: its sessions and counters, a session's signals."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from .client import Client
from .errors import RopewalkError
from .observation import Entry


def show_daemon(client: Client, interval: float, once: bool) -> None:
    """Prints sessions and counters; on a terminal again and again until interrupted."""
    if once or not sys.stdout.isatty():
        Console(width=None if sys.stdout.isatty() else 120).print(_daemon_tables(client, {}, 0.0))
        return
    before: dict[int, int] = {}
    mark = time.monotonic()
    with Live(_daemon_tables(client, before, 0.0), screen=False, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            now = time.monotonic()
            live.update(_daemon_tables(client, before, now - mark), refresh=True)
            mark = now


def _daemon_tables(client: Client, before: dict[int, int], elapsed: float) -> Group:
    sessions = Table(title=f"ropewalkd {client.server_version}", title_justify="left")
    for heading in ("session", "state", "step", "time [s]", "steps/s", "clients", "memory"):
        sessions.add_column(escape(heading), justify="left" if heading in ("session", "state") else "right")
    for info in client.sessions():
        rate = (info.step - before.get(info.id, info.step)) / elapsed if elapsed > 0 else 0.0
        before[info.id] = info.step
        state = info.state if info.fault is None else f"{info.state} at {info.fault.object}"
        memory = f"{info.memory_bytes / 1024:,.0f} KiB"
        sessions.add_row(
            escape(info.name),
            escape(state),
            str(info.step),
            f"{info.time:.3f}",
            f"{rate:,.0f}" if rate > 0 else "",
            str(info.clients),
            memory,
        )
    counters = Table(show_header=False)
    counters.add_column()
    counters.add_column(justify="right")
    for name, value in client.stats().items():
        counters.add_row(escape(name), f"{value:,.6g}")
    return Group(sessions, counters)


def watch_signals(client: Client, name: str, signals: Sequence[str], interval: float, count: int) -> None:
    """Reads signals of a session, without touching it: a live table on a terminal, CSV lines elsewhere.

    The columns are those of the first look; what has gone since is empty.
    """
    session = client.attach_session(name)
    entries = list({entry.signal: entry for entry in session.observe(*signals).layout}.values())
    live = Live(auto_refresh=False) if sys.stdout.isatty() else None
    if live is None:
        columns = [column for entry in entries for column in entry.columns()]
        print(",".join(["time", *columns]), flush=True)
    else:
        live.start()
    looks = 0
    try:
        while True:
            values = session.query_signals(*signals)
            if live is None:
                parts = [values.get(entry.signal, np.full(entry.width, np.nan)) for entry in entries]
                row = [session.time, *np.concatenate(parts).tolist()]
                print(",".join("" if math.isnan(value) else f"{value:.17g}" for value in row), flush=True)
            else:
                live.update(_signal_table(f"{name} at {session.time:.3f} s", entries, values), refresh=True)
            looks += 1
            if looks == count:
                return
            time.sleep(interval)
    finally:
        if live is not None:
            live.stop()
        with contextlib.suppress(RopewalkError):
            session.detach()


def _signal_table(title: str, entries: Sequence[Entry], values: Mapping[str, np.ndarray]) -> Table:
    table = Table(title=escape(title), title_justify="left")
    table.add_column("signal")
    table.add_column("value", justify="right")
    table.add_column("unit")
    for entry in entries:
        part = values.get(entry.signal, ())
        text = "  ".join(f"{value:+.6f}" for value in part)
        table.add_row(escape(entry.signal), text, "" if entry.unit == "1" else escape(entry.unit))
    return table
