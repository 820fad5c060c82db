"""The command line. Each command is thin: what it does lives in a module of its own, imported when it is called."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from .errors import RopewalkError

if TYPE_CHECKING:
    from .client import Client

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ropewalk simulates elastic rods and rigid bodies in a daemon. Commands start a private one when none is given.",
)

Connect = Annotated[
    Optional[str],
    typer.Option(
        "--connect",
        metavar="HOST:PORT|PATH",
        help="A running daemon (TCP, or its Unix socket). Default: a private one.",
    ),
]
Workers = Annotated[
    Optional[int], typer.Option("--workers", min=1, metavar="N", help="Worker threads of the private daemon.")
]


@contextlib.contextmanager
def daemon_client(address: str | None, workers: int | None = None) -> Iterator[Client]:
    """A connection to the daemon at an address, or to a private one for the time of the block."""
    from .client import connect, split_address

    if address is None:
        from .daemon import Daemon

        with Daemon(workers=workers) as daemon, daemon.connect() as client:
            yield client
        return
    if workers is not None:
        raise typer.BadParameter("the daemon at --connect has its own workers", param_hint="--workers")
    if "/" in address:
        with connect(unix=address) as client:
            yield client
        return
    try:
        host, port = split_address(address)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--connect") from None
    with connect(host, port) as client:
        yield client


def _time(name: str, value: float, positive: bool) -> float:
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise typer.BadParameter(
            f"must be a time in seconds {'> 0' if positive else '>= 0'}, got {value:g}", param_hint=name
        )
    return value


def _choice(name: str, value: str | None, choices: tuple[str, ...]) -> str | None:
    if value is not None and value.lower() not in choices:
        raise typer.BadParameter(f"must be one of {', '.join(choices)}, got {value}", param_hint=name)
    return value


@app.command()
def run(
    scene: Annotated[pathlib.Path, typer.Argument(metavar="SCENE.json", help="The scene file.")],
    until: Annotated[float, typer.Option(metavar="T", help="Simulated time of the last row [s].")],
    every: Annotated[float, typer.Option(metavar="DT", help="Time between rows [s]; rounded to time steps.")],
    observe: Annotated[
        list[str], typer.Option(metavar="SIGNAL", help="A signal or glob, such as 'body/*/position'. May be repeated.")
    ],
    out: Annotated[pathlib.Path, typer.Option(metavar="FILE", help="The output: .csv or .npz.")],
    connect: Connect = None,
    workers: Workers = None,
    rigid: Annotated[Optional[str], typer.Option(metavar="xpbd|dae", help="Solver of bodies and joints.")] = None,
    rods: Annotated[Optional[str], typer.Option(metavar="xpbd|scr", help="Solver of rods.")] = None,
) -> None:
    """Simulates a scene file and writes signals to a CSV or npz file."""
    from . import recorder
    from .scene import read_scene

    _time("--until", until, positive=False)
    _time("--every", every, positive=True)
    _choice("--rigid", rigid, ("xpbd", "dae"))
    _choice("--rods", rods, ("xpbd", "scr"))
    if out.suffix.lower() not in recorder.FORMATS:
        raise typer.BadParameter(f"must end in {' or '.join(recorder.FORMATS)}", param_hint="--out")
    try:
        message = read_scene(scene)
        for field, method in (("rigid", rigid), ("rods", rods)):
            if method is not None:
                setattr(message.solver, field, method.upper())
        with daemon_client(connect, workers) as client, client.create_session(ttl_detached_s=0) as session:
            session.load_scene(message)
            with _progress(str(scene)) as progress:
                recorder.record_signals(session, observe, until, every, out, progress)
    except (RopewalkError, KeyboardInterrupt, SystemExit):
        recorder.remove_stale(out)
        raise


@contextlib.contextmanager
def _progress(title: str):  # type: ignore[no-untyped-def]
    """A function (steps just done, all steps) that moves a bar on a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda steps, total: bar.update(task, advance=steps, total=total)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def serve(context: typer.Context) -> None:
    """Runs the daemon; takes its flags: --listen HOST:PORT, --workers N, ... (serve --help shows all)."""
    from .daemon import find_daemon

    program = find_daemon()
    sys.stdout.flush()
    os.execv(program, [program, *context.args])


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="A scene of the gallery.")] = "swing",
    out: Annotated[pathlib.Path, typer.Option(metavar="FILE.png", help="The picture.")] = pathlib.Path("demo.png"),
    seconds: Annotated[
        Optional[float], typer.Option(metavar="T", help="Simulated time [s]. Default: the scene's own.")
    ] = None,
    connect: Connect = None,
    workers: Workers = None,
) -> None:
    """Simulates a scene of the gallery, prints a small table and writes a picture of the motion."""
    from . import gallery
    from .demo import run_demo

    exhibit = gallery.exhibit(name)
    if seconds is not None:
        _time("--seconds", seconds, positive=True)
    if out.suffix.lower() != ".png":
        raise typer.BadParameter("must end in .png", param_hint="--out")
    with daemon_client(connect, workers) as client, _progress(name) as progress:
        run_demo(client, exhibit, out, seconds or exhibit.seconds, progress)


@app.command()
def gallery(
    name: Annotated[Optional[str], typer.Argument(help="A scene; none lists them.")] = None,
    out: Annotated[
        Optional[pathlib.Path], typer.Option(metavar="SCENE.json", help="Where to write it. Default: stdout.")
    ] = None,
) -> None:
    """Lists the built-in scenes, or writes one as a scene file."""
    from . import gallery as scenes
    from .scene import format_scene

    if name is None:
        if out is not None:
            raise typer.BadParameter("needs the NAME of a scene", param_hint="--out")
        for exhibit in scenes.SCENES.values():
            print(f"{exhibit.name:16} {exhibit.title}")
        return
    text = format_scene(scenes.scene(name))
    if out is None:
        sys.stdout.write(text)
    else:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            from .errors import InvalidArgument

            raise InvalidArgument(f"can't be written: {error.strerror}", str(out)) from None


@app.command()
def bench(
    groups: Annotated[
        Optional[list[str]], typer.Argument(metavar="[GROUP ...]", help="Such as roundtrip or scr. Default: all.")
    ] = None,
    json: Annotated[
        Optional[pathlib.Path], typer.Option(metavar="FILE", help="Also write the results as a JSON list.")
    ] = None,
) -> None:
    """Measures this machine, with a baseline beside each figure."""
    from .bench import run_benchmarks

    sys.exit(run_benchmarks(groups or [], json))


@app.command()
def top(
    connect: Annotated[str, typer.Option(metavar="HOST:PORT|PATH", help="The daemon.")] = "127.0.0.1:7171",
    interval: Annotated[float, typer.Option(metavar="S", help="Time between looks [s].")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
) -> None:
    """Shows a daemon's sessions and counters, again and again on a terminal."""
    from .monitor import show_daemon

    with daemon_client(connect) as client:
        show_daemon(client, _time("--interval", interval, positive=True), once)


@app.command()
def watch(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Its name.")],
    signals: Annotated[list[str], typer.Argument(metavar="SIGNAL ...", help="Signals or globs.")],
    connect: Annotated[str, typer.Option(metavar="HOST:PORT|PATH", help="The daemon.")] = "127.0.0.1:7171",
    interval: Annotated[float, typer.Option(metavar="S", help="Time between looks [s].")] = 0.25,
    count: Annotated[int, typer.Option(metavar="N", min=0, help="Looks; 0 = until interrupted.")] = 0,
) -> None:
    """Shows signals of a running session: a live table on a terminal, CSV lines elsewhere."""
    from .monitor import watch_signals

    with daemon_client(connect) as client:
        watch_signals(client, session, signals, _time("--interval", interval, positive=True), count)


@app.command()
def record(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|SCENE.json|NAME", help="A session of --connect, a scene file, or a scene of the gallery."
        ),
    ],
    out: Annotated[pathlib.Path, typer.Option(metavar="FILE.rwf", help="The recording.")],
    seconds: Annotated[float, typer.Option(metavar="T", help="Simulated time to record [s].")],
    every: Annotated[float, typer.Option(metavar="DT", help="Simulated time between frames [s].")] = 1 / 60,
    quantized: Annotated[
        bool, typer.Option("--quantized", help="Smaller: within 10 um and 1 mrad instead of every bit.")
    ] = False,
    connect: Connect = None,
) -> None:
    """Records state frames to a file: of a running session (--connect), or of a scene simulated for it."""
    from .recording import record_frames

    _time("--seconds", seconds, positive=True)
    _time("--every", every, positive=True)
    with daemon_client(connect) as client, _progress(source) as progress:
        frames, size = record_frames(client, source, connect is not None, out, seconds, every, quantized, progress)
    print(f"{out}: {frames} frames, {size} bytes")


@app.command()
def replay(
    file: Annotated[pathlib.Path, typer.Argument(metavar="FILE.rwf", help="A recording made by `record`.")],
    out: Annotated[
        Optional[pathlib.Path],
        typer.Option(metavar="FILE", help="A picture (.png) or arrays (.npz). Default: only a summary."),
    ] = None,
) -> None:
    """Turns a recording of state frames into a picture or numpy arrays.

    Journals of commands are not served by this daemon, so there is nothing to replay them into yet.
    """
    from .recording import replay_frames

    if out is not None and out.suffix.lower() not in (".png", ".npz"):
        raise typer.BadParameter("must end in .png or .npz", param_hint="--out")
    replay_frames(file, out)
