"""A private daemon: started on a Unix socket of its own, stopped with its owner."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from .client import Client, connect
from .errors import Unauthenticated, Unavailable


def find_daemon() -> str:
    """The daemon's program: $ROPEWALK_DAEMON, else the source tree's build, else ropewalkd on the PATH. Raises Unavailable."""
    given = os.environ.get("ROPEWALK_DAEMON")
    if given:
        if not os.access(given, os.X_OK):
            raise Unavailable(f"$ROPEWALK_DAEMON names {given}, which is no program")
        return given
    for parent in pathlib.Path(__file__).resolve().parents[:6]:
        built = parent / "build" / "server" / "ropewalkd"
        if os.access(built, os.X_OK):
            return str(built)
    found = shutil.which("ropewalkd")
    if found is None:
        raise Unavailable("ropewalkd was not found: build it, put it on the PATH, or name it in $ROPEWALK_DAEMON")
    return found


class Daemon:
    """A daemon for this process alone.

    with ropewalk.Daemon(workers=2) as daemon, daemon.connect() as client:
        ...

    workers    worker threads; default the daemon's own choice
    arguments  more flags for ropewalkd
    tcp        listen on a free TCP port of the loopback interface as well (`port` tells which)
    log        a file's path for the daemon's log; default a temporary file, shown in the error when the start fails
    Raises Unavailable when it does not start.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        arguments: Sequence[str] = (),
        tcp: bool = False,
        program: str | None = None,
        log: str | os.PathLike[str] | None = None,
        timeout_s: float = 20.0,
    ) -> None:
        program = program or find_daemon()
        # A Unix socket's name has at most 107 bytes.
        base = tempfile.gettempdir()
        self._folder = tempfile.mkdtemp(prefix="ropewalk-", dir=base if len(base) < 80 else "/tmp")
        self.unix = os.path.join(self._folder, "socket")
        self.log_path = os.fspath(log) if log is not None else os.path.join(self._folder, "log")
        self.port: int | None = None
        port_file = os.path.join(self._folder, "ports")
        command = [program, "--unix", self.unix, "--port-file", port_file]
        command += ["--listen", "127.0.0.1:0" if tcp else "", "--drain-s", "2"]
        # So that it ends with us, however we end.
        command += ["--parent", str(os.getpid())]
        if workers is not None:
            command += ["--workers", str(workers)]
        command += arguments
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ROPEWALK_")}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with open(self.log_path, "ab") as log_file:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log_file,
                    stderr=log_file,
                    env=environment,
                )
            self._wait_until_it_listens(timeout_s)
            if tcp:
                ports = dict(line.split() for line in pathlib.Path(port_file).read_text().splitlines())
                self.port = int(ports["tcp"])
        except OSError as error:
            self.stop()
            raise Unavailable(f"{command[0]} does not start: {error.strerror}") from None
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        if self._process is None:
            raise Unavailable("the daemon was stopped")
        return self._process.pid

    def connect(self, **options: Any) -> Client:
        """A new connection; options as of `ropewalk.connect`."""
        return connect(unix=self.unix, **options)

    def stop(self, timeout_s: float = 10.0) -> int | None:
        """Ends the daemon (orderly, then by force) and returns its exit code. Does nothing the second time."""
        process, self._process = self._process, None
        code = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        return code

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.stop(timeout_s=1.0)

    def _wait_until_it_listens(self, timeout_s: float) -> None:
        assert self._process is not None
        end = time.monotonic() + timeout_s
        pause = 0.002
        while True:
            try:
                connect(unix=self.unix, name="start", timeout_s=timeout_s).close()
                return
            except Unauthenticated:
                return  # It listens, and wants a token that is not ours to know.
            except Unavailable:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise Unavailable(f"the daemon did not start: {self._last_line()}") from None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _last_line(self) -> str:
        with contextlib.suppress(OSError):
            lines = pathlib.Path(self.log_path).read_text(errors="replace").split("\n")
            said = [line for line in lines if line.strip()]
            if said:
                return said[-1]
        return "it said nothing"
