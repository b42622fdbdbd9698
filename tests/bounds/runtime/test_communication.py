import itertools
import math

import numpy as np
import pytest

from bounds.runtime import ParameterServer, Ring, RingGather, Tree, TreeGather

LINK = {"latency_s": 0.001, "bytes_per_s": 1e6}
MEGABYTE = 8_000_000  # bits, one second on the link


@pytest.mark.parametrize("m", [2, 3, 4, 16])
def test_equal_messages_have_the_textbook_cost(m):
    hops = math.ceil(math.log2(m))
    assert Ring(**LINK).seconds(m=m, bits=MEGABYTE) == pytest.approx(2 * (m - 1) * 0.001 + 2 * (m - 1) / m)
    assert RingGather(**LINK).seconds(m=m, bits=MEGABYTE) == pytest.approx((m - 1) * 1.001)
    assert Tree(**LINK).seconds(m=m, bits=MEGABYTE) == pytest.approx(2 * hops * 1.001)
    assert ParameterServer(**LINK).seconds(m=m, bits=MEGABYTE) == pytest.approx(0.002 + 2 * m)


@pytest.mark.parametrize("topology", [Ring, RingGather, Tree, TreeGather, ParameterServer])
def test_one_worker_sends_nothing_and_bytes_are_whole(topology):
    link = topology(**LINK)
    assert link.seconds(m=1, bits=MEGABYTE) == 0
    assert link.seconds(m=4, bits=9) == link.seconds(m=4, bits=16) > link.seconds(m=4, bits=8)
    assert link.seconds(m=3, bits=[800, 800, 800]) == link.seconds(m=3, bits=800)


def simulated_ring_gather(hop_s):
    """Event by event: link i passes the messages i, i-1, i-2, ... in turn, each once it has arrived."""
    m = len(hop_s)
    arrived = {(j, j): 0.0 for j in range(m)}  # (message, worker) -> time
    free = [0.0] * m
    for step, link in itertools.product(range(m - 1), range(m)):
        message = (link - step) % m
        free[link] = max(free[link], arrived[message, link]) + hop_s[message]
        arrived[message, (link + 1) % m] = free[link]
    return max(arrived.values())


@pytest.mark.parametrize("sizes", [(5, 1, 1, 1), (5, 4, 3, 2, 1), (1, 2, 3, 4, 5), (3, 1, 4, 1, 5, 9, 2, 6), (7, 7)])
def test_unequal_messages_pass_the_ring_as_in_the_event_simulation(sizes):
    bits = [8_000_000 * size for size in sizes]
    expected = simulated_ring_gather([0.001 + size for size in sizes])
    assert RingGather(**LINK).seconds(m=len(sizes), bits=bits) == pytest.approx(expected)


def test_one_long_message_travels_all_hops():
    assert RingGather(0.0, 1e6).seconds(m=5, bits=[40_000_000, 0, 0, 0, 0]) == pytest.approx(4 * 5)


def test_server_adds_up_unequal_messages():
    assert ParameterServer(0.0, 1e6).seconds(m=3, bits=[8e6, 16e6, 24e6]) == pytest.approx(1 + 2 + 3 + 3 * 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Ring(-1.0, 1e6), "latency_s must be finite and >= 0; got latency_s = -1.0"),
        (lambda: Ring(0.0, 0.0), "bytes_per_s must be finite and > 0; got bytes_per_s = 0.0"),
        (lambda: Ring(**LINK).seconds(m=3, bits=[8, 8]), "one length for each of the m = 3 workers; got 2"),
        (lambda: Ring(**LINK).seconds(m=2, bits=-8), "bits must be finite and >= 0"),
    ],
)
def test_impossible_arguments_are_refused_with_the_rule(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("bits", [np.array(800.0), np.float32(800), np.int64(800), 800])
def test_one_length_may_be_any_scalar(bits):
    assert Ring(1e-3, 1e6).seconds(m=4, bits=bits) == Ring(1e-3, 1e6).seconds(m=4, bits=[800] * 4)


def gathered_by_doubling(m):
    """Hops, and messages that a rank has received, when every hop hands on all there is (at most what is missing)."""
    hops, held = 0, 1
    while held < m:
        held += min(held, m - held)
        hops += 1
    return hops, held - 1


@pytest.mark.parametrize("m", [2, 3, 4, 5, 8, 9, 1024])
def test_gathering_on_a_tree_receives_every_message_once(m):
    hops, received = gathered_by_doubling(m)
    assert TreeGather(**LINK).seconds(m=m, bits=MEGABYTE) == pytest.approx(hops * LINK["latency_s"] + received * 1.0)


def test_a_server_may_return_more_than_it_was_sent():
    longer = ParameterServer(**LINK, result_bits=3 * MEGABYTE)
    usual = ParameterServer(**LINK)
    assert longer.seconds(m=4, bits=MEGABYTE) - usual.seconds(m=4, bits=MEGABYTE) == pytest.approx(4 * 2.0)
    with pytest.raises(ValueError, match="result_bits"):
        ParameterServer(**LINK, result_bits=-1)


def test_equal_messages_on_a_ring_of_a_million_workers_need_no_loop_over_hops():
    assert RingGather(**LINK).seconds(m=10**6, bits=MEGABYTE) == pytest.approx((10**6 - 1) * 1.001)
