"""The connection against a peer made here, which does what a daemon would do only in bad moments."""

import socket
import struct
import threading
import zlib

import pytest
import zstandard

import ropewalk
from ropewalk import messages
from ropewalk.client import Client, split_address
from ropewalk.connection import FLAG_ZSTD, HEADER, KIND_EVENT, KIND_REQUEST, KIND_RESPONSE, Connection


class Peer:
    """The other end of a socket pair, run by a function in a thread."""

    def __init__(self, behave):
        ours, self.socket = socket.socketpair()
        self.connection = Connection(ours)
        self.failure = None
        self.thread = threading.Thread(target=self._run, args=(behave,), daemon=True)
        self.thread.start()

    def _run(self, behave):
        try:
            behave(self)
        except BaseException as error:
            self.failure = error

    def exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def request(self):
        length, kind, flags, reserved = HEADER.unpack(self.exactly(8))
        assert (kind, reserved) == (KIND_REQUEST, 0)
        payload = self.exactly(length)
        if flags & FLAG_ZSTD:
            payload = zstandard.ZstdDecompressor().decompress(payload)
        return messages.Request.FromString(payload)

    def send(self, message, kind=KIND_RESPONSE, flags=0):
        payload = message if isinstance(message, bytes) else message.SerializeToString()
        self.socket.sendall(HEADER.pack(len(payload), kind, flags, 0) + payload)

    def answer(self, request, **fields):
        self.send(messages.Response(request_id=request.request_id, **fields))

    def finish(self):
        self.connection.close()
        self.socket.close()
        self.thread.join(5)
        assert self.failure is None or isinstance(self.failure, (EOFError, OSError)), self.failure


def ping():
    return Client.request("ping", {"payload": 7})


def test_answers_in_any_order_reach_their_requests():
    def behave(peer):
        requests = [peer.request() for _ in range(3)]
        for request in reversed(requests):
            peer.answer(request, ping={"payload": request.request_id})

    peer = Peer(behave)
    pending = [peer.connection.submit(ping()) for _ in range(3)]
    assert [one.result(5).ping.payload for one in pending] == [one.request_id for one in pending]
    peer.finish()


def test_a_frame_that_arrives_byte_by_byte_is_whole_in_the_end():
    def behave(peer):
        request = peer.request()
        payload = messages.Response(request_id=request.request_id, ping={"payload": 5}).SerializeToString()
        for byte in HEADER.pack(len(payload), KIND_RESPONSE, 0, 0) + payload:
            peer.socket.sendall(bytes([byte]))

    peer = Peer(behave)
    assert peer.connection.submit(ping()).result(5).ping.payload == 5
    peer.finish()


@pytest.mark.parametrize("with_size", [True, False])
def test_compressed_answers_are_read(with_size):
    def behave(peer):
        request = peer.request()
        response = messages.Response(request_id=request.request_id, message="x" * 100000, status=3)
        compressor = zstandard.ZstdCompressor(write_content_size=with_size)
        peer.send(compressor.compress(response.SerializeToString()), flags=FLAG_ZSTD)

    peer = Peer(behave)
    with pytest.raises(ropewalk.AlreadyExists, match="x{1000}"):
        peer.connection.submit(ping()).result(5)
    peer.finish()


def test_a_damaged_compressed_frame_ends_the_connection_with_data_loss():
    peer = Peer(lambda peer: (peer.request(), peer.send(b"no zstd at all", flags=FLAG_ZSTD)))
    with pytest.raises(ropewalk.DataLoss):
        peer.connection.submit(ping()).result(5)
    assert peer.connection.closed
    peer.finish()


def test_writing_does_not_deadlock_with_a_peer_that_must_be_read_first():
    """The peer answers every request with 100 kB and reads on only when that was taken."""
    count = 200

    def behave(peer):
        for _ in range(count):
            request = peer.request()
            peer.answer(request, snapshot={"data": bytes(100_000)})

    peer = Peer(behave)
    # Requests are large, too, so that both directions fill up.
    request = Client.request("restore", {"data": bytes(100_000)})
    pending = [peer.connection.submit(request) for _ in range(count)]
    assert all(len(one.result(20).snapshot.data) == 100_000 for one in pending)
    peer.finish()


def test_threads_share_a_connection():
    count = 50

    def behave(peer):
        for _ in range(4 * count):
            request = peer.request()
            peer.answer(request, ping={"payload": request.ping.payload})

    peer = Peer(behave)
    wrong = []

    def work(number):
        for index in range(count):
            payload = number * 1000 + index
            answer = peer.connection.submit(Client.request("ping", {"payload": payload})).result(10)
            if answer.ping.payload != payload:
                wrong.append((number, index))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    peer.finish()


def test_a_lost_peer_fails_open_requests_and_later_ones():
    peer = Peer(lambda peer: (peer.request(), peer.socket.close()))
    pending = peer.connection.submit(ping())
    with pytest.raises(ropewalk.Unavailable):
        pending.result(5)
    with pytest.raises(ropewalk.Unavailable):
        peer.connection.submit(ping())
    peer.finish()


def test_a_protocol_error_tells_its_reason():
    def behave(peer):
        peer.request()
        peer.send(messages.Event(protocol_error={"reason": "length over the limit"}), KIND_EVENT)
        peer.socket.close()

    peer = Peer(behave)
    with pytest.raises(ropewalk.Unavailable, match="length over the limit"):
        peer.connection.submit(ping()).result(5)
    peer.finish()


def test_waiting_ends_when_time_is_up():
    peer = Peer(lambda peer: peer.exactly(1000))
    pending = peer.connection.submit(ping())
    with pytest.raises(TimeoutError):
        pending.result(0.05)
    assert not peer.connection.closed
    peer.finish()


def test_an_absurd_length_is_refused():
    peer = Peer(lambda peer: (peer.request(), peer.socket.sendall(struct.pack("<IBBH", 0xFFFFFFFF, 2, 0, 0))))
    with pytest.raises(ropewalk.DataLoss):
        peer.connection.submit(ping()).result(5)
    peer.finish()


def test_a_large_answer_is_fetched_in_chunks_and_checked():
    whole = messages.Response(request_id=1, snapshot={"data": bytes(range(256)) * 400}).SerializeToString()

    def behave(peer, crc):
        request = peer.request()
        peer.answer(request, large={"blob": 9, "bytes": len(whole), "crc": crc, "max_chunk": 30_000})
        for _ in range(-(-len(whole) // 30_000)):
            request = peer.request()
            chunk = request.download_chunk
            assert chunk.blob == 9
            peer.answer(request, download_chunk={"data": whole[chunk.offset : chunk.offset + chunk.bytes]})

    good = Peer(lambda peer: behave(peer, zlib.crc32(whole)))
    assert good.connection.submit(ping()).result(5).snapshot.data == bytes(range(256)) * 400
    good.finish()
    bad = Peer(lambda peer: behave(peer, zlib.crc32(whole) ^ 1))
    with pytest.raises(ropewalk.DataLoss):
        bad.connection.submit(ping()).result(5)
    bad.finish()


def test_errors_carry_status_path_and_steps():
    error = ropewalk.errors.of_status("INVALID_ARGUMENT", "must be > 0, got -1", "rods[3].young_modulus", 4)
    assert isinstance(error, ropewalk.InvalidArgument) and isinstance(error, ropewalk.RopewalkError)
    assert str(error) == "INVALID_ARGUMENT: rods[3].young_modulus: must be > 0, got -1"
    assert (error.status, error.path, error.steps_done) == ("INVALID_ARGUMENT", "rods[3].young_modulus", 4)
    assert ropewalk.errors.of_status("STATUS_77", "new").status == "STATUS_77"


def test_every_status_of_the_schema_has_an_exception():
    names = set(ropewalk._schema.enum_numbers("Status.Code")) - {"OK"}
    assert names == set(ropewalk.errors.BY_STATUS)


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("a.b:80", "a.b", 80),
        ("a.b", "a.b", 7171),
        (":81", "127.0.0.1", 81),
        ("[::1]:82", "::1", 82),
        ("[::1]", "::1", 7171),
    ],
)
def test_addresses_split(text, host, port):
    assert split_address(text) == (host, port)


@pytest.mark.parametrize("text", ["a:b", "a:0", "a:65536", "a:-1", "a:"])
def test_bad_addresses_are_refused(text):
    with pytest.raises(ValueError):
        split_address(text)


def test_nobody_there_is_unavailable(tmp_path):
    with pytest.raises(ropewalk.Unavailable):
        ropewalk.connect(unix=str(tmp_path / "none"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(ropewalk.Unavailable):
            ropewalk.connect("127.0.0.1", probe.getsockname()[1])
