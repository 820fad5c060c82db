"""One connection to a daemon: frames on a socket, requests that may be open at once, and what comes unasked.

A frame is an 8-byte little-endian header (payload length u32, kind u8, flags u8, reserved u16) and the payload, a protobuf
message, zstd-compressed when the flag says so.

Any thread may use a connection. No thread runs in the background: whoever waits for an answer reads the socket, and hands
what belongs to others to them. Who writes reads meanwhile, because the daemon stops reading a client that does not
collect its answers.

    submit() --> write --> Pending
    Pending.result() --> nobody reads? --yes--> read_once() --> responses, state frames, events to their owners
                                        --no---> sleep until the reader has brought something
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import zstandard

from ._schema import enum_numbers, messages
from .errors import DataLoss, DeadlineExceeded, RopewalkError, Unavailable, of_status

KIND_REQUEST, KIND_RESPONSE, KIND_STATE, KIND_EVENT = 1, 2, 3, 4
FLAG_ZSTD = 1
HEADER = struct.Struct("<IBBH")
# Frames beyond this size are damage, whatever the daemon's limits are.
_LARGEST_FRAME = 1 << 30
_READ_BYTES = 1 << 18
# Smaller requests are not worth compressing.
_COMPRESS_FROM = 4096

_STATUS_NAMES = {number: name for name, number in enum_numbers("Status.Code").items()}


class Pending:
    """An open request. `result()` waits for its answer."""

    __slots__ = ("_connection", "request_id", "response", "failure", "on_response")

    def __init__(self, connection: Connection, request_id: int) -> None:
        self._connection = connection
        self.request_id = request_id
        self.response: Any = None
        self.failure: RopewalkError | None = None
        self.on_response: Callable[[Any], Any] | None = None

    @property
    def done(self) -> bool:
        """Whether the answer has been read already."""
        return self.response is not None or self.failure is not None

    def result(self, timeout_s: float | None = None) -> Any:
        """The Response message; waits for it. Raises RopewalkError when the command failed, TimeoutError when time is up."""
        if not self.done:
            self._connection.wait(lambda: self.done, timeout_s)
        if self.failure is not None:
            raise self.failure
        response = self.response
        if response.status:
            raise error_of(response)
        if response.WhichOneof("result") == "large":
            response = self.response = self._connection.download(response.large)
            if response.status:
                raise error_of(response)
        return response if self.on_response is None else self.on_response(response)


def error_of(response: Any) -> RopewalkError:
    """The exception for a Response or an entry of a batch that is not OK."""
    status = _STATUS_NAMES.get(response.status, f"STATUS_{response.status}")
    return of_status(status, response.message, response.path, response.steps_done)


class Connection:
    """A connected socket that speaks frames. Made by `connect_socket`; closed by `close`."""

    def __init__(self, sock: socket.socket, compress: bool = False) -> None:
        self._socket = sock
        self._compressor = zstandard.ZstdCompressor(level=1) if compress else None
        self._decompressor = zstandard.ZstdDecompressor()
        self._ids = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._buffer = bytearray()
        self._send_lock = threading.Lock()
        self._turn = threading.Condition()  # Guards _reading; notified when a reader has brought something.
        self._reading = False
        self._failure: RopewalkError | None = None
        self.max_message = 16 << 20
        self.events: collections.deque[Any] = collections.deque(maxlen=1024)
        self.on_state: Callable[[bytes], None] = lambda payload: None
        self.on_event: Callable[[Any], None] | None = None
        self.bytes_received = 0

    def close(self) -> None:
        """Closes the socket; open requests fail."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._fail(Unavailable("the connection is closed"))

    @property
    def closed(self) -> bool:
        """Whether no more requests can be made."""
        return self._failure is not None

    # --- requests ---

    def submit(self, request: Any) -> Pending:
        """Sends a Request (its request_id is chosen here) and returns at once."""
        pending = self.open_request()
        request.request_id = pending.request_id
        try:
            self.send(KIND_REQUEST, request.SerializeToString())
        except BaseException:
            self._pending.pop(pending.request_id, None)
            raise
        return pending

    def open_request(self) -> Pending:
        """A request id and its place, for those who encode requests themselves."""
        if self._failure is not None:
            raise self._failure
        pending = Pending(self, next(self._ids))
        self._pending[pending.request_id] = pending
        return pending

    def send(self, kind: int, payload: bytes) -> None:
        """Writes one frame, reading whatever arrives while the socket takes no more."""
        flags = 0
        if self._compressor is not None and len(payload) >= _COMPRESS_FROM:
            smaller = self._compressor.compress(payload)
            if len(smaller) < len(payload):
                payload, flags = smaller, FLAG_ZSTD
        frame = HEADER.pack(len(payload), kind, flags, 0) + payload
        with self._send_lock:
            if self._failure is not None:
                raise self._failure
            try:
                sent = self._socket.send(frame, socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                raise self._broken(error) from None
            if sent < len(frame):
                try:
                    self._send_rest(memoryview(frame)[sent:])
                except BaseException:
                    # Half a frame is out (an interrupt, say): nothing can follow it.
                    self._fail(Unavailable("the connection was left in the middle of a frame"))
                    raise

    def _send_rest(self, rest: memoryview) -> None:
        while rest:
            reader = self._become_reader()
            try:
                readable, writable, _ = select.select([self._socket] if reader else [], [self._socket], [], 0.1)
                if readable:
                    self._read_once()
            except (OSError, ValueError) as error:
                raise self._broken(error) from None
            finally:
                if reader:
                    self._stop_reading()
            if writable:
                try:
                    rest = rest[self._socket.send(rest, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._broken(error) from None

    # --- reading ---

    def wait(self, done: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Reads until `done` says so. Raises TimeoutError, or the reason why the connection ended."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not done():
            if self._failure is not None:
                raise self._failure
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("the daemon did not answer in time")
            if self._become_reader():
                try:
                    if not done() and self._readable(left):
                        self._read_once()
                finally:
                    self._stop_reading()
            else:
                with self._turn:
                    if self._reading and not done():
                        self._turn.wait(left)

    def poll(self) -> None:
        """Reads what has arrived, without waiting."""
        while self._failure is None and self._become_reader():
            try:
                if not self._readable(0):
                    return
                self._read_once()
            finally:
                self._stop_reading()

    def _become_reader(self) -> bool:
        with self._turn:
            if self._reading:
                return False
            self._reading = True
            return True

    def _stop_reading(self) -> None:
        with self._turn:
            self._reading = False
            self._turn.notify_all()

    def _readable(self, timeout_s: float | None) -> bool:
        if timeout_s is None:
            return True  # recv waits by itself.
        try:
            poller = select.poll()
            poller.register(self._socket, select.POLLIN)
            return bool(poller.poll(timeout_s * 1000))
        except (OSError, ValueError) as error:
            raise self._broken(error) from None

    def _read_once(self) -> None:
        """One recv, and all whole frames that are there then. Only the reader may call it."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError as error:
            raise self._broken(error) from None
        if not data:
            raise self._broken(None)
        self.bytes_received += len(data)
        if self._buffer:
            self._buffer += data
            used = self._take_frames(self._buffer)
            if used:
                del self._buffer[:used]
        else:
            used = self._take_frames(data)
            if used < len(data):
                self._buffer += data[used:]

    def _take_frames(self, data: bytes | bytearray) -> int:
        offset, size = 0, len(data)
        while size - offset >= HEADER.size:
            length, kind, flags, _reserved = HEADER.unpack_from(data, offset)
            if length > _LARGEST_FRAME:
                raise self._broken(DataLoss(f"a frame claims {length} bytes"))
            end = offset + HEADER.size + length
            if end > size:
                break
            payload = bytes(memoryview(data)[offset + HEADER.size : end])
            if flags & FLAG_ZSTD:
                payload = self._decompressed(payload)
            self._take(kind, payload)
            offset = end
        return offset

    def _decompressed(self, payload: bytes) -> bytes:
        try:
            # Frames of unknown size go through the streaming interface, which allocates only what comes out.
            size = zstandard.frame_content_size(payload)
            if size > _LARGEST_FRAME:
                raise zstandard.ZstdError(f"it claims {size} bytes")
            if size >= 0:
                return self._decompressor.decompress(payload)
            return self._decompressor.decompressobj().decompress(payload)
        except zstandard.ZstdError as error:
            raise self._broken(DataLoss(f"a compressed frame is damaged: {error}")) from None

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == KIND_RESPONSE:
            response = messages.Response.FromString(payload)
            pending = self._pending.pop(response.request_id, None)
            if pending is not None:
                pending.response = response
        elif kind == KIND_STATE:
            self.on_state(payload)
        elif kind == KIND_EVENT:
            event = messages.Event.FromString(payload)
            self.events.append(event)
            if event.WhichOneof("kind") == "protocol_error":
                self._fail(Unavailable(f"the daemon closed the connection: {event.protocol_error.reason}"))
            if self.on_event is not None:
                self.on_event(event)

    def _broken(self, error: object) -> RopewalkError:
        if isinstance(error, RopewalkError):
            self._fail(error)
        elif error is None:
            self._fail(Unavailable("the daemon closed the connection"))
        else:
            self._fail(Unavailable(f"the connection broke: {error}"))
        assert self._failure is not None
        return self._failure

    def _fail(self, error: RopewalkError) -> None:
        if self._failure is None:
            self._failure = error
        for pending in list(self._pending.values()):
            pending.failure = self._failure
        self._pending.clear()

    # --- answers beyond max_message ---

    def download(self, large: Any) -> Any:
        """Fetches the Response that a LargeResult stands for."""
        total, chunk = large.bytes, large.max_chunk or self.max_message // 2
        parts = []
        for offset in range(0, total, chunk):
            request = messages.Request()
            request.download_chunk.blob = large.blob
            request.download_chunk.offset = offset
            request.download_chunk.bytes = min(chunk, total - offset)
            parts.append(self.submit(request))
        data = b"".join(part.result().download_chunk.data for part in parts)
        if len(data) != total or zlib.crc32(data) != large.crc:
            raise DataLoss("a large answer arrived damaged")
        return messages.Response.FromString(data)


def connect_socket(host: str | None, port: int | None, unix: str | None, timeout_s: float) -> socket.socket:
    """A connected socket: TCP (without Nagle's delay) or Unix. Raises Unavailable."""
    try:
        if unix is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout_s)
                sock.connect(unix)
            except BaseException:
                sock.close()
                raise
        else:
            sock = socket.create_connection((host or "127.0.0.1", port or 0), timeout=timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except TimeoutError:
        raise DeadlineExceeded(f"no connection to {unix or f'{host}:{port}'} within {timeout_s:g} s") from None
    except OSError as error:
        where = unix or f"{host}:{port}"
        raise Unavailable(f"no daemon at {where} ({error.strerror or error})") from None
    sock.settimeout(None)
    return sock
