"""The way of the messages: what is summed, what is gathered, and the claim of a mean that is rounded twice."""

import numpy as np
import pytest

import ratedist as rd
from bounds.claims import Unbiased
from operators import FloatCast, Key, Mean, ScaledSign, parse
from ratedist.cluster.travel import gathered_by_nodes, in_two_shots, in_two_shots_of_nodes, travel
from ratedist.plans.choosing import averaging


def way(text, d=10**6, **keywords):
    operator = parse(text)
    cluster = rd.Cluster(**{"workers": 8, "bandwidth_bit_per_s": 1e10, "latency_s": 0.0} | keywords)
    size = operator.bits(d)
    return travel(operator, operator.claim(d), size.exact or size.expected_upper, d, cluster), cluster


@pytest.mark.parametrize(
    ("text", "seconds", "encoded", "decoded"),
    [
        ("identity", 2 * 7 / 8 * 32e6 / 1e10, 0, 0),
        ("cast:bf16,rounding=stochastic", 2 * 7 / 8 * 16e6 / 1e10, 1 + 1 / 8, 2),
        ("cast:bf16", 7 / 8 * (16e6 + 32e6) / 1e10, 1, 1),
        ("randomk:0.25", 7 * 8e6 / 1e10, 1, 8),
    ],
)
def test_a_ring_sums_dense_numbers_and_gathers_the_rest(text, seconds, encoded, decoded):
    found, cluster = way(text)
    assert found.communicate_s(cluster) == pytest.approx(seconds, rel=1e-4)
    assert (found.encoded, found.decoded) == (encoded, decoded)
    assert found.exchange == ("gather" if text.startswith("randomk") else "sum")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("identity", 2 * 32e6),
        ("cast:bf16,rounding=stochastic", 2 * 16e6),
        ("cast:bf16", 16e6 + 32e6),
        ("randomk:0.25", 8e6 + 32e6),
    ],
)
def test_a_server_returns_what_the_claim_needs(text, bits):
    found, cluster = way(text, topology="parameter_server")
    assert found.communicate_s(cluster) == pytest.approx(8 * bits / 1e10, rel=1e-4)
    assert found.decoded >= (0 if text == "identity" else 8)


def test_a_tree_would_round_partial_sums_so_casts_are_gathered():
    found, cluster = way("cast:bf16", topology="tree")
    assert found.exchange == "gather"
    assert found.communicate_s(cluster) == pytest.approx(7 * 16e6 / 1e10, rel=1e-4)


def test_one_coordinate_sent_exactly_by_a_sign_is_still_no_sum():
    sign = ScaledSign()
    found = travel(sign, sign.claim(1), 33, 1, rd.Cluster(workers=4))
    assert found.exchange == "gather"


@pytest.mark.parametrize("m", [1, 2, 64, 1024])
def test_the_claim_of_a_mean_rounded_twice_is_the_aggregates(m):
    operator = FloatCast("bf16", "stochastic")
    found, _ = way("cast:bf16,rounding=stochastic", workers=m)
    assert isinstance(found.claim, Unbiased)
    assert found.claim.omega == pytest.approx(m * Mean(operator, operator).claim_mean(10**6, m).omega)


def test_a_mean_rounded_twice_keeps_its_claim_on_real_messages():
    """n = 400 draws of the hardest vector for the last rounding: four equal workers whose mean does not shrink."""
    m, d, draws = 4, 50, 400
    operator = FloatCast("e4m3", "stochastic")
    x = operator.witness(d)
    errors, total = [], np.zeros(d)
    for draw in range(draws):
        sent = np.mean([operator(x, key=Key(0, step=draw, rank=r)) for r in range(m)], 0)
        mean = operator(sent, key=Key(1, step=draw, rank=m))
        errors.append(np.sum((mean - x) ** 2) / np.sum(x**2))
        total += mean - x
    one = operator.claim(d).omega
    allowed = one * (m + 1 + one) / m
    spread = 4 * np.std(errors) / draws**0.5
    assert np.mean(errors) <= allowed + spread
    assert np.mean(errors) > one - spread  # without the second rounding's share the claim would be broken
    assert np.linalg.norm(total / draws) <= 4 * (allowed * np.sum(x**2) / draws) ** 0.5


@pytest.mark.parametrize(
    ("topology", "seconds", "encoded", "decoded"),
    [
        ("ring", 7 / 8 * (8e6 + 16e6) / 1e10 + 14e-6, 1 + 1 / 8, 2),
        ("tree", 7 / 8 * (8e6 + 16e6) / 1e10 + 2e-6, 1 + 1 / 8, 2),
        ("parameter_server", 8 * (8e6 + 16e6) / 1e10 + 2e-6, 2, 9),
    ],
)
def test_two_shots_send_what_does_not_grow_with_the_workers(topology, seconds, encoded, decoded):
    cluster = rd.Cluster(workers=8, bandwidth_bit_per_s=1e10, latency_s=1e-6, topology=topology)
    shots = in_two_shots(parse("randomk:0.25"), parse("randomk:0.5"), 10**6, cluster)

    assert shots.communicate_s(cluster) == pytest.approx(seconds, rel=1e-3)
    assert (shots.encoded, shots.decoded) == (encoded, decoded)
    assert (shots.claim.omega, shots.second.omega) == (pytest.approx(3, rel=1e-3), pytest.approx(1, rel=1e-3))


@pytest.mark.parametrize(("workers", "d"), [(1, 100), (8, 7)])
def test_two_shots_need_workers_and_a_coordinate_for_each(workers, d):
    with pytest.raises(ValueError, match="two shots need 2 workers"):
        in_two_shots(parse("randomk:0.25"), parse("randomk:0.25"), d, rd.Cluster(workers=workers))


@pytest.mark.parametrize(
    ("way", "nodes"), [("gather", None), ("two_shot", None), ("gather", 2), ("node_gather", 2), ("node_two_shot", 2)]
)
def test_coding_costs_what_its_messages_cost_one_by_one(way, nodes):
    """A codec of a second a message to encode and .1 s to decode, whatever its length, against a count of messages."""
    d, m = 8000, 8
    fixed = tuple((length, 1.0, 0.1) for length in (10, d))
    codec = rd.Codec(1.0 / d, 0.1 / d, "given", fixed)
    more = {} if nodes is None else {"nodes": nodes, "inside": rd.Link(1e12, 1e-6)}
    cluster = rd.Cluster(workers=m, compute="constant", **more)
    operator, n = parse("qsgd:16"), nodes or 1
    each = {
        "gather": lambda: travel(operator, operator.claim(d), 3.0 * d, d, cluster),
        "two_shot": lambda: in_two_shots(operator, operator, d, cluster),
        "node_gather": lambda: gathered_by_nodes(operator, d, cluster),
        "node_two_shot": lambda: in_two_shots_of_nodes(operator, operator, d, cluster),
    }[way]()
    spent = averaging(each, codec, codec, d, cluster)
    encoded, decoded = {  # messages of the busiest rank: its own shards, and its share of the means
        "gather": (1, m),
        "two_shot": (m + 1, 2 * m),
        "node_gather": (1, n),
        "node_two_shot": (n + 1, 2 * n),
    }[way]
    assert spent["encode_s"] == pytest.approx(encoded * 1.0)
    assert spent["decode_s"] == pytest.approx(decoded * 0.1)
