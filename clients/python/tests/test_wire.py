"""A daemon against clients that break the rules, with bare sockets. Whatever they do, another session goes on."""

import socket
import struct
import threading
import time

import pytest
import zstandard

import ropewalk
from ropewalk import messages
from ropewalk._fill import varint
from ropewalk.connection import HEADER, KIND_EVENT, KIND_REQUEST, KIND_RESPONSE


def frame(message, kind=KIND_REQUEST, flags=0):
    payload = message if isinstance(message, bytes) else message.SerializeToString()
    return HEADER.pack(len(payload), kind, flags, 0) + payload


def hello(major=1, minor=0, request_id=1):
    return messages.Request(request_id=request_id, hello={"major": major, "minor": minor, "client_name": "bare"})


def ping(request_id, payload=0):
    return messages.Request(request_id=request_id, ping={"payload": payload})


class Bare:
    """A socket that reads frames."""

    def __init__(self, daemon, greet=True):
        self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
        self.buffer = b""
        if greet:
            self.socket.sendall(frame(hello()))
            assert self.read()[1].status == 0

    def exactly(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(1 << 20)
            if not more:
                raise EOFError
            self.buffer += more
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read(self):
        length, kind, flags, reserved = HEADER.unpack(self.exactly(8))
        assert reserved == 0
        payload = self.exactly(length)
        if flags & 1:
            payload = zstandard.ZstdDecompressor().decompress(payload, max_output_size=1 << 24)
        return kind, (messages.Event if kind == KIND_EVENT else messages.Response).FromString(payload)

    def ended(self):
        """The rest of the connection: events and then its end."""
        seen = []
        try:
            while True:
                seen.append(self.read())
        except (EOFError, ConnectionResetError):
            return seen


@pytest.fixture
def bare(daemon):
    opened = []

    def make(greet=True):
        opened.append(Bare(daemon, greet))
        return opened[-1]

    yield make
    for one in opened:
        one.socket.close()


@pytest.fixture(autouse=True)
def others_go_on(session, falling):
    """Beside every test another session steps, and must come out with the bits it has alone."""
    session.load_scene(falling)
    stop = threading.Event()
    steps = []
    failures = []

    def work():
        try:
            while not stop.is_set():
                session.step(1)
                steps.append(1)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join(20)
    assert not failures and steps
    reached = session.query_hash()
    session.load_scene(falling)
    session.step(len(steps))
    assert session.query_hash() == reached


@pytest.mark.parametrize(
    "header",
    [
        struct.pack("<IBBH", 0, 1, 0, 0),
        struct.pack("<IBBH", 0xFFFFFFFF, 1, 0, 0),
        struct.pack("<IBBH", 4, 0, 0, 0),
        struct.pack("<IBBH", 4, 9, 0, 0),
        struct.pack("<IBBH", 4, 2, 0, 0),
        struct.pack("<IBBH", 4, 1, 2, 0),
        struct.pack("<IBBH", 4, 1, 0, 1),
        b"GET / HTTP/1.1\r\n",
    ],
    ids=["length 0", "length 4 GiB", "kind 0", "kind 9", "a response", "unknown flag", "reserved bits", "http"],
)
def test_a_framing_error_gets_one_event_and_the_end(bare, header):
    peer = bare()
    peer.socket.sendall(header + b"abcd")
    seen = peer.ended()
    assert [kind for kind, _ in seen] == [KIND_EVENT]
    assert seen[0][1].protocol_error.reason


def test_a_bad_message_gets_its_answer_and_the_link_stays(bare):
    peer = bare()
    # A request whose ping claims more bytes than there are.
    for payload in (b"\x08\x07" + varint(11 << 3 | 2) + b"\x7f", b"\x08\x07\xff\xff\xff\xff"):
        peer.socket.sendall(frame(payload))
        kind, response = peer.read()
        assert kind == KIND_RESPONSE and response.status == 1, response
    peer.socket.sendall(frame(b"\x08\x07"))  # No command at all.
    assert peer.read()[1].status in (1, 14)
    peer.socket.sendall(frame(b"not zstd", flags=1))
    assert peer.read()[1].status == 1
    peer.socket.sendall(frame(ping(9, 5)))
    assert peer.read()[1].ping.payload == 5


def test_unknown_fields_are_ignored_and_unknown_commands_unimplemented(bare):
    peer = bare()
    unknown = varint(999 << 3 | 2) + b"\x03abc" + varint(998 << 3 | 0) + b"\x05"
    peer.socket.sendall(frame(ping(3, 7).SerializeToString() + unknown))
    assert peer.read()[1].ping.payload == 7
    # Only the request's id and a command of a later minor version.
    peer.socket.sendall(frame(b"\x08\x04" + varint(999 << 3 | 2) + b"\x00"))
    response = peer.read()[1]
    assert response.request_id == 4 and response.status in (1, 14)


def test_request_ids_must_be_new_and_not_zero(bare):
    peer = bare()
    peer.socket.sendall(frame(ping(0)))
    assert peer.read()[1].status == 1


@pytest.mark.parametrize("major", [0, 2])
def test_another_major_version_is_refused_with_both_named(bare, major):
    peer = bare(greet=False)
    peer.socket.sendall(frame(hello(major)))
    response = peer.read()[1]
    assert response.status == 4 and str(major) in response.message and "1" in response.message


def test_a_newer_minor_version_is_welcome(bare):
    peer = bare(greet=False)
    peer.socket.sendall(frame(hello(minor=99)))
    assert peer.read()[1].hello.major == 1


def test_nothing_goes_before_hello(bare):
    peer = bare(greet=False)
    peer.socket.sendall(frame(ping(1)))
    assert peer.read()[1].status == 7


def test_one_byte_at_a_time_is_a_message_too(bare):
    peer = bare()
    for byte in frame(ping(2, 3)):
        peer.socket.sendall(bytes([byte]))
    assert peer.read()[1].ping.payload == 3


def test_ten_thousand_messages_in_one_write(bare):
    peer = bare()
    data = b"".join(frame(ping(index + 2, index)) for index in range(10_000))
    writer = threading.Thread(target=peer.socket.sendall, args=(data,))
    writer.start()
    assert [peer.read()[1].ping.payload for _ in range(10_000)] == list(range(10_000))
    writer.join(20)


def test_compressed_requests_are_understood(bare):
    peer = bare()
    payload = ping(2, 8).SerializeToString() + varint(999 << 3 | 2) + varint(5000) + bytes(5000)
    peer.socket.sendall(frame(zstandard.ZstdCompressor().compress(payload), flags=1))
    assert peer.read()[1].ping.payload == 8


def test_a_bomb_is_refused(bare):
    """Sixteen bytes that claim to become gigabytes."""
    peer = bare()
    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 28))
    peer.socket.sendall(frame(bomb, flags=1))
    assert peer.read()[1].status in (1, 8)


@pytest.mark.parametrize("part", [1, 7, 8, 9, 20])
def test_a_client_that_goes_in_the_middle_of_a_message(bare, client, part):
    before = len(client.sessions())
    for _ in range(20):
        peer = bare()
        peer.socket.sendall(frame(messages.Request(request_id=5, create_session={"name": "x" * 50}))[:part])
        peer.socket.close()
    assert client.ping() > 0 and len(client.sessions()) == before


def test_a_client_that_never_reads_is_not_read_any_more(bare, client):
    """Its answers pile up to a limit, then the daemon stops reading it; memory does not grow."""
    peer = bare()
    peer.socket.settimeout(0.5)
    data = b"".join(frame(messages.Request(request_id=index + 2, stats={})) for index in range(2000))
    sent = 0
    with pytest.raises(TimeoutError):
        for _ in range(10_000):
            peer.socket.sendall(data)
            sent += len(data)
    assert client.ping() > 0 and sent < 200 << 20


def test_silent_peers_are_closed_and_cost_nobody(daemon):
    with ropewalk.Daemon(tcp=True, arguments=["--hello-timeout-s", "0.3"]) as impatient:
        silent = [Bare(impatient, greet=False) for _ in range(50)]
        talking = Bare(impatient)
        began = time.monotonic()
        assert all(kind == KIND_EVENT for one in silent for kind, _ in one.ended())
        assert time.monotonic() - began < 10
        talking.socket.sendall(frame(ping(4, 4)))
        assert talking.read()[1].ping.payload == 4
        for one in (*silent, talking):
            one.socket.close()
