import socket

from gpu_validation.network import Count, interface_count, parse_counters, port

TABLE = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      300       4    0    0    0     0       0          0
  eth0: 9000000000 7 0 0 0 0 0 0 11 13 0 0 0 0 0 0
"""  # noqa: E501  as the kernel writes it


def test_columns_are_read_in_the_kernels_order():
    assert parse_counters(TABLE, "lo") == Count(300, 4, 100, 2)
    assert parse_counters(TABLE, "eth0") == Count(11, 13, 9_000_000_000, 7)
    assert parse_counters(TABLE, "eth") is None


def test_a_difference_is_taken_in_every_column():
    assert Count(5, 4, 3, 2) - Count(1, 1, 1, 1) == Count(4, 3, 2, 1)


def test_the_loopback_counter_sees_what_is_sent():
    before = interface_count("lo")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        for _ in range(10):
            sender.sendto(bytes(1000), receiver.getsockname())

    assert (interface_count("lo") - before).sent_bytes >= 10_000


def test_missing_counters_are_none(monkeypatch, tmp_path):
    assert interface_count("no-such-interface") is None
    monkeypatch.setattr(port, "COUNTERS", tmp_path / "absent")
    assert interface_count("lo") is None
