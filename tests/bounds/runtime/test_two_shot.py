"""Seconds of means in two shots, and the bits that a worker sends for a coordinate under every schedule."""

import numpy as np
import pytest

from bounds.runtime import Ring, RingGather, TwoShot, TwoShotNodes, TwoShotRing

LINK = {"latency_s": 0.001, "bytes_per_s": 1e6}
MEGABYTE = 8_000_000  # bits, one second on the link


@pytest.mark.parametrize("m", [2, 3, 16, 1024])
def test_two_shots_have_the_stated_cost(m):
    direct = TwoShot(**LINK, message_s=1e-5).seconds(m=m, bits=MEGABYTE)
    assert direct == pytest.approx(0.002 + 2 * (m - 1) * 1e-5 + 2 * (m - 1) / m)
    steps = TwoShotRing(**LINK, message_s=1e-5).seconds(m=m, bits=MEGABYTE)
    assert steps == pytest.approx(2 * (m - 1) * (0.001 + 1e-5) + 2 * (m - 1) / m)


def test_dense_two_shots_in_steps_are_a_ring():
    assert TwoShotRing(**LINK).seconds(m=8, bits=MEGABYTE) == pytest.approx(Ring(**LINK).seconds(m=8, bits=MEGABYTE))


@pytest.mark.parametrize("schedule", [TwoShot, TwoShotRing])
def test_the_second_shot_may_have_another_length(schedule):
    same = schedule(**LINK).seconds(m=4, bits=MEGABYTE)
    shorter = schedule(**LINK, result_bits=MEGABYTE / 4).seconds(m=4, bits=MEGABYTE)
    assert same - shorter == pytest.approx(0.75 * 0.75)
    assert schedule(**LINK, result_bits=0.0).seconds(m=4, bits=MEGABYTE) < shorter
    assert schedule(**LINK).seconds(m=1, bits=MEGABYTE) == 0
    assert schedule(**LINK).seconds(m=3, bits=[800, 80, 8]) == schedule(**LINK).seconds(m=3, bits=800)


def simulated_shots(m, latency_s, message_s, shard_s):
    """When the last worker has all shards twice: each handles its m - 1 messages one by one, links are full-duplex."""
    ready = np.zeros(m)
    for _ in range(2):
        arrived = np.zeros(m)
        for i in range(m):
            for s in range(1, m):
                arrived[(i + s) % m] = max(arrived[(i + s) % m], ready[i] + s * (message_s + shard_s) + latency_s)
        ready = arrived
    return ready.max()


@pytest.mark.parametrize("m", [2, 5, 9])
def test_direct_shots_take_what_an_event_simulation_takes(m):
    schedule = TwoShot(latency_s=0.01, bytes_per_s=1e6, message_s=0.002)
    assert schedule.seconds(m=m, bits=m * MEGABYTE) == pytest.approx(simulated_shots(m, 0.01, 0.002, 1.0))


def test_nodes_add_an_exact_sum_inside_to_two_shots_between():
    """2 (1 - 1/p) B/W0 + (1 - 1/g)(b1 + b2)/W1 and latencies."""
    nodes = TwoShotNodes(
        **LINK, message_s=1e-4, result_bits=MEGABYTE / 2, node_workers=8, inside=Ring(1e-5, 1e9), dense_bits=8e9
    )
    between = 0.002 + 2 * 3 * 1e-4 + 0.75 * 1.5
    assert nodes.seconds(m=32, bits=MEGABYTE) == pytest.approx(between + 14 * 1e-5 + 2 * 7 / 8)
    assert nodes.seconds(m=8, bits=MEGABYTE) == pytest.approx(14 * 1e-5 + 2 * 7 / 8)
    encoded = TwoShotNodes(**LINK, node_workers=8, inside=TwoShot(1e-5, 1e9, result_bits=8e8), dense_bits=8e9)
    assert encoded.seconds(m=8, bits=MEGABYTE) == pytest.approx(2e-5 + 7 / 8 * 1.1)
    assert TwoShotNodes(**LINK).seconds(m=16, bits=800) == TwoShot(**LINK).seconds(m=16, bits=800)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TwoShot(**LINK, message_s=-1.0), "message_s must be finite and >= 0; got message_s = -1.0"),
        (lambda: TwoShot(**LINK, result_bits=-8), "result_bits must be finite and >= 0"),
        (lambda: TwoShotNodes(**LINK, node_workers=0), "node_workers must be an integer >= 1"),
        (lambda: TwoShotNodes(**LINK, node_workers=2), "inside must be given with node_workers = 2 > 1"),
        (
            lambda: TwoShotNodes(**LINK, node_workers=3, inside=Ring(**LINK), dense_bits=8).seconds(m=8, bits=8),
            "node_workers must divide the number of workers; got m = 8, node_workers = 3",
        ),
    ],
)
def test_impossible_arguments_are_refused_with_the_rule(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("schedule", "bits", "published"),
    [
        (Ring, 32, (60, 63, 63.9)),
        (Ring, 16, (30, 31.5, 32)),
        (RingGather, 1, (15, 63, 1023)),
        (RingGather, 2, (30, 126, 2046)),
        (RingGather, 4, (60, 252, 4092)),
        (TwoShot, 4, (7.5, 7.9, 8.0)),
    ],
)
def test_published_bits_that_a_worker_sends_for_a_coordinate(schedule, bits, published):
    d = 8 * 1024
    sent = [schedule(latency_s=0.0, bytes_per_s=d / 8).seconds(m=m, bits=bits * d) for m in (16, 64, 1024)]
    assert sent == pytest.approx(published, abs=0.05)
