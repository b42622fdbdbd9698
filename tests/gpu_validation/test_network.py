import socket

from gpu_validation import network


def test_loopback_counter_sees_what_is_sent():
    before = network.transmitted_bytes("lo")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        for _ in range(10):
            sender.sendto(bytes(1000), receiver.getsockname())
    after = network.transmitted_bytes("lo")

    assert after - before >= 10_000


def test_unknown_interface_and_missing_counters_are_none(monkeypatch, tmp_path):
    assert network.transmitted_bytes("no-such-interface") is None
    monkeypatch.setattr(network, "COUNTERS", tmp_path / "absent")
    assert network.transmitted_bytes("lo") is None
