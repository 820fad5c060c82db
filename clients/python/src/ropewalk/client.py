"""A client: a connection that has said Hello, and what does not belong to one session."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ._fill import fill
from ._schema import enum_numbers, messages
from .connection import Connection, Pending, connect_socket, error_of
from .errors import DataLoss, NotFound, RopewalkError
from .observation import Actuation, Observation
from .session import Session, SessionInfo, numbers
from .stream import Router

PROTOCOL = (1, 0)
DEFAULT_PORT = 7171


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the daemon takes at most; more is answered with ResourceExhausted."""

    max_message: int = 16 << 20
    max_open_requests: int = 1024
    max_unsent_bytes: int = 1 << 20
    max_sessions: int = 0
    max_session_bytes: int = 0
    max_upload_bytes: int = 0
    max_batch: int = 0


def connect(
    host: str | None = None,
    port: int | None = None,
    *,
    unix: str | None = None,
    token: str | None = None,
    name: str = "python",
    timeout_s: float = 5.0,
    compress: bool = False,
) -> Client:
    """Connects to a daemon: connect("host", 7171), connect("host:7171") or connect(unix="/run/ropewalk.sock").

    token     the shared token; default the environment's ROPEWALK_TOKEN
    compress  whether larger requests are compressed: for slow networks
    Raises Unavailable when nobody listens, Unauthenticated for a wrong token.
    """
    if host is not None and port is None:
        host, port = split_address(host)
    if unix is None and host is None:
        host, port = "127.0.0.1", port or DEFAULT_PORT
    sock = connect_socket(host, port, unix, timeout_s)
    connection = Connection(sock, compress)
    try:
        return Client(connection, token if token is not None else os.environ.get("ROPEWALK_TOKEN", ""), name, timeout_s)
    except BaseException:
        connection.close()
        raise


def split_address(text: str) -> tuple[str, int]:
    """Host and port of "HOST:PORT", "[V6]:PORT", "HOST" or ":PORT". Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f'"{text}" is not HOST:PORT')
    return host.strip("[]") or "127.0.0.1", int(port)


class Client:
    """A connection to a daemon. Made by `connect`; closes itself as a context manager. Any thread may use it."""

    def __init__(self, connection: Connection, token: str, name: str, timeout_s: float | None) -> None:
        self.connection = connection
        self.router = Router()
        connection.on_state = self.router.take
        request = messages.Request()
        fill(request.hello, {"major": PROTOCOL[0], "minor": PROTOCOL[1], "client_name": name, "token": token})
        hello = connection.submit(request).result(timeout_s).hello
        self.protocol = (hello.major, hello.minor)
        self.server_version: str = hello.server_version
        self.server_build: str = hello.build
        self.connection_id: int = hello.connection_id
        known = enum_numbers("HelloResult.Feature")
        self.features = {feature for feature, bit in known.items() if hello.features & bit}
        given = {field.name: value for field, value in hello.limits.ListFields()}
        self.limits = Limits(
            **{field.name: given.get(field.name, field.default) for field in dataclasses.fields(Limits)}
        )
        connection.max_message = self.limits.max_message

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Sessions live on for their time to live."""
        self.connection.close()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self.connection.closed

    # --- requests ---

    @staticmethod
    def request(command: str, fields: Mapping[str, Any] | None = None) -> Any:
        """A Request message with this command, for `send` and `batch`."""
        request = messages.Request()
        part = getattr(request, command)
        part.SetInParent()
        fill(part, fields or {}, command)
        return request

    def send(self, request: Any) -> Pending:
        """Sends a Request message without waiting."""
        return self.connection.submit(request)

    def call(self, command: str, fields: Mapping[str, Any] | None = None) -> Any:
        """Sends a command that needs no session and returns its Response."""
        return self.send(self.request(command, fields)).result()

    def batch(self, requests: Iterable[Any], stop_on_error: bool = False) -> list[Any]:
        """Runs Request messages in order in one message; returns their Responses, failed ones included."""
        request = messages.Request()
        request.batch.requests.extend(requests)
        request.batch.stop_on_error = stop_on_error
        return list(self.send(request).result().batch.responses)

    def cancel(self, pending: Pending | int, connection_id: int = 0) -> None:
        """Asks an open request (also of another connection) to end between two steps."""
        request_id = pending if isinstance(pending, int) else pending.request_id
        self.call("cancel", {"request_id": request_id, "connection_id": connection_id})

    def ping(self) -> int:
        """A round trip; returns the server's monotonic clock [ns]."""
        return int(self.call("ping").ping.server_time_ns)

    def stats(self) -> dict[str, float]:
        """The daemon's counters by name."""
        return {counter.name: counter.value for counter in self.call("stats").stats.counters}

    def events(self) -> list[Any]:
        """Event messages that came since the last call."""
        self.connection.poll()
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self.connection.events.popleft())
        return found

    # --- uploads ---

    def upload(self, data: bytes) -> int:
        """Sends a large array's bytes and returns the blob's name."""
        begun = self.call("begin_upload", {"bytes": len(data), "crc": zlib.crc32(data)}).begin_upload
        chunk = begun.max_chunk or self.limits.max_message // 2
        view = memoryview(data)
        parts = []
        for offset in range(0, len(data), chunk):
            request = messages.Request()
            request.upload_chunk.blob = begun.blob
            request.upload_chunk.offset = offset
            request.upload_chunk.data = bytes(view[offset : offset + chunk])
            parts.append(self.send(request))
        for part in parts:
            part.result()
        return int(begun.blob)

    def release_blob(self, blob: int) -> None:
        """Frees an uploaded blob before the connection ends."""
        self.call("release_blob", {"blob": blob})

    # --- sessions ---

    def create_session(
        self, name: str = "", *, ttl_detached_s: float | None = None, on_control_lost: str = "HOLD"
    ) -> Session:
        """A new, empty session. As a context manager it is closed at the end.

        ttl_detached_s  its life without any client [s]: 0 = closed with the last client, -1 = kept. Default 60.
        """
        fields = {"name": name, "ttl_detached_s": ttl_detached_s, "on_control_lost": on_control_lost}
        return Session(self, self.call("create_session", fields).session, owned=True)

    def attach_session(self, session: str | int, *, control: bool = False, exclusive: bool = False) -> Session:
        """Joins a session by name or id, to look on or to control."""
        fields: dict[str, Any] = {"role": "CONTROL" if control else "OBSERVE", "exclusive": exclusive}
        fields["name" if isinstance(session, str) else "id"] = session
        return Session(self, self.call("attach_session", fields).session, owned=False)

    def sessions(self, name_glob: str = "") -> list[SessionInfo]:
        """The daemon's sessions, in creation order."""
        answer = self.call("list_sessions", {"name_glob": name_glob}).list_sessions
        return [SessionInfo.of(info) for info in answer.sessions]

    def batch_advance(
        self,
        sessions: Sequence[Session],
        *,
        steps: int = 1,
        observe: Sequence[Observation] | None = None,
        actuate: Sequence[Actuation] | None = None,
        inputs: Sequence[np.ndarray] | np.ndarray | None = None,
    ) -> tuple[list[np.ndarray], dict[int, RopewalkError]]:
        """Advances many sessions on all of the daemon's workers.

        inputs  a row per session; default the rows in `actuate`
        Returns a row per session (NaN where it failed) and the failures by index. The rows are also in
        `observe[i].values`.
        """
        request = messages.Request()
        call = request.batch_advance
        call.sessions.extend(session.id for session in sessions)
        call.steps = steps
        if actuate is not None:
            call.actuate.extend(row.handle for row in actuate)
            rows = inputs if inputs is not None else [row.values for row in actuate]
            call.inputs.extend(np.concatenate([np.ravel(row) for row in rows]).tolist())
        if observe is not None:
            call.observe.extend(row.handle for row in observe)
        result = self.send(request).result().batch_advance
        failures = {entry.index: error_of(entry) for entry in result.errors}
        for session, step in zip(sessions, result.steps):
            session.step_now = step
        rows_out: list[np.ndarray] = []
        if observe is not None:
            values = numbers(result.values)
            widths = [row.width for row in observe]
            if sum(widths) != len(values):
                # Where the session or the handle is gone the daemon knows no width, and sends no row.
                gone = [index for index, failure in failures.items() if isinstance(failure, NotFound)]
                at = np.cumsum([0, *(0 if index in gone else width for index, width in enumerate(widths))])
                if at[-1] != len(values):
                    raise DataLoss(f"{len(values)} values for rows of {sum(widths)}", "batch_advance.values")
                for index in gone:
                    values = np.insert(values, at[index], np.full(widths[index], np.nan))
                    at[index + 1 :] += widths[index]
            rows_out = np.split(values, np.cumsum(widths)[:-1])
            for row, values_of_row in zip(observe, rows_out):
                row.values = values_of_row
        return rows_out, failures
