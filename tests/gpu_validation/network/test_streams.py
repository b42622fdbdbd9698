"""What the kernel counts of TCP streams, against streams of known length."""

import socket

import pytest

from gpu_validation.network.streams import StreamCount, Streams


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far:
            yield near, far


@pytest.mark.parametrize("length", [1, 1448, 300_000])
def test_every_byte_of_this_process_s_streams_is_counted_once(pair, length):
    near, far = pair
    streams = Streams()
    before = streams.count()
    near.setblocking(False)
    sent = received = 0
    while received < length:
        if sent < length:
            sent += near.send(bytes(length - sent))
        received += len(far.recv(1 << 20))

    assert (streams.count() - before).sent_bytes == length


def test_connections_from_before_are_left_out(pair):
    near, far = pair
    streams = Streams.from_now()
    near.sendall(bytes(1000))
    far.recv(1000)

    assert streams.count() == StreamCount()


def test_a_system_that_does_not_tell_gives_none(pair, monkeypatch, tmp_path):
    monkeypatch.setattr("gpu_validation.network.streams.TCP_INFO_BYTES", 10_000)  # an older or other structure
    assert Streams().count() is None
    monkeypatch.setattr("gpu_validation.network.streams.DESCRIPTORS", tmp_path / "none")
    assert Streams().count() is None
    assert Streams.from_now().inherited == frozenset()


def test_counts_add_and_subtract():
    more, less = StreamCount(10, 5, 2), StreamCount(4, 3, 1)
    assert more - less == StreamCount(6, 2, 1)
    assert less + (more - less) == more
