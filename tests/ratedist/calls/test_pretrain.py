"""A training by how its workers average: the special cases of public calculators, and where those stop."""

import json
import math

import pytest

import ratedist as rd
from ratedist.cli import main
from ratedist.records import to_json

N, TOKENS = 8e9, 4096
RATE = 6 * N * TOKENS / 0.5  # half a second a step


def asked(m, **more):
    return {"parameters": N, "tokens": 1000 * m * TOKENS, "batch_tokens": m * TOKENS, "flop_per_s": RATE} | more


def cluster(m, **more):
    return rd.Cluster(**{"workers": m, "compute": "constant", "latency_s": 0, "bandwidth_bit_per_s": 1e10} | more)


def row(found, words):
    return next(row for row in found.rows if words in row["name"])


@pytest.mark.parametrize("m", [2, 8, 1024])
def test_averages_in_flight_cost_nothing_from_the_bandwidth_on_that_calculators_state(m):
    found = rd.pretrain(cluster(m), **asked(m), tau=37)
    least = 2 * (m - 1) / m * 16 * N / (37 * 0.5)
    assert row(found, "in flight")["bit_per_s"][-1] == pytest.approx(least, rel=1e-6)
    if m == 1024:
        assert round(row(found, "in flight")["bit_per_s"][-1] / 8e9, 2) == 1.73  # GB/s
    assert (found.steps, found.step_s) == (1000, pytest.approx(0.5))
    slower = rd.pretrain(cluster(m, bandwidth_bit_per_s=0.8 * least), **asked(m), tau=37)
    assert row(slower, "in flight")["utilisation"] == pytest.approx(0.8)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize(("words", "tau"), [("every step", 1), ("waiting", 30)])
def test_bandwidths_of_those_who_wait_solve_their_equation(share, words, tau):
    m, latency_s = 8, 0.001
    found = rd.pretrain(cluster(m, latency_s=latency_s), **asked(m), tau=30, utilisations=share)
    wait_s = tau * 0.5 * (1 / share - 1)  # a round computes tau steps of half a second in this share of its time
    moving_s = wait_s - 2 * (m - 1) * latency_s
    exact = 2 * (m - 1) / m * 16 * N / moving_s if moving_s > 0 else math.inf
    assert row(found, words)["bit_per_s"] == [pytest.approx(exact, rel=1e-6)]


def test_fragments_in_flight_ask_for_no_less_bandwidth_but_for_less_at_once():
    whole, parts = (row(rd.pretrain(cluster(8), **asked(8), tau=32, parts=p), "in flight") for p in (1, 4))
    assert parts["bit_per_s"][-1] == pytest.approx(whole["bit_per_s"][-1])
    late = row(rd.pretrain(cluster(8), **asked(8), tau=32, parts=4, in_flight=2), "in flight")
    assert late["bit_per_s"][-1] == pytest.approx(4 * whole["bit_per_s"][-1])


def test_where_calculators_of_flat_links_mislead():
    """A node's eight workers share its link; stragglers are waited for whatever the bandwidth; latency stays."""
    inside = rd.Link(1e15, 0.0)
    nodes = {"nodes": 8, "gpus_per_node": 8, "inside": inside, "compute": "constant"}
    for exchange, factor in (("sum", 2 * 7 / 8), ("gather", 7 * 8)):
        found = rd.pretrain(rd.Cluster(between=rd.Link(1e10, 0.0), **nodes), **asked(64), tau=37, exchange=exchange)
        assert row(found, "in flight")["bit_per_s"][-1] == pytest.approx(factor * 16 * N / 18.5, rel=1e-3)
    stragglers = rd.pretrain(cluster(8, compute="half_exponential"), **asked(8), tau=37)
    assert row(stragglers, "in flight")["bit_per_s"][-1] == math.inf
    assert row(stragglers, "every step")["bit_per_s"][1] == math.inf
    far = rd.pretrain(cluster(8, latency_s=2.0), **asked(8), tau=37)
    assert row(far, "in flight")["bit_per_s"][-1] == math.inf


def test_extremes():
    alone = rd.pretrain(cluster(1), **asked(1))
    assert all(row["utilisation"] == pytest.approx(1) for row in alone.rows)
    huge = rd.pretrain(cluster(1024), **asked(1024, parameters=1e12, bits_per_value=0.1))
    assert all(0 < row["utilisation"] <= 1 for row in huge.rows)
    assert json.dumps(to_json(huge), allow_nan=False)


def test_the_command_shows_four_ways_and_what_it_leaves_out(capsys):
    line = (
        "pretrain --workers 8 --compute half_exponential --parameters 8B --tokens 1.6e11 --batch_tokens 4M "
        "--flop_per_s 3e15"
    )
    assert main(line.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("backward pass", "in flight", "none", "what a step is worth", "days"):
        assert words in text
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["bit_per_s"][-1] is None
    assert found["step_s"] == pytest.approx(6 * 8e9 * 4e6 / 8 / 3e15)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tau": 30, "parts": 4}, "tau must be a multiple of parts"),
        ({"in_flight": 40}, "in_flight must be an integer from 0 to tau/parts = 32; got 40"),
        ({"tokens": 1}, "batch_tokens must satisfy batch_tokens <= tokens; got batch_tokens = "),
        ({"parameters": 1.5}, "parameters must satisfy"),
        ({"flop_per_s": 0}, "flop_per_s must satisfy 0 < flop_per_s, finite; got flop_per_s = 0"),
        ({"utilisations": 1.5}, "utilisations must satisfy 0 < utilisations <= 1; got utilisations = 1.5"),
        ({"utilisations": [0.5] * 17}, "utilisations must be at most 16 numbers; got 17: leave some out"),
        ({"exchange": "node_gather"}, "node_gather needs nodes"),
        ({"exchange": "pigeon"}, "exchange must be one of sum, gather, two_shot, .*; got 'pigeon'"),
    ],
)
def test_refusals_say_what_was_given(change, match):
    with pytest.raises(ValueError, match=match) as refusal:
        rd.pretrain(cluster(4), **asked(4) | change)
    assert "\n" not in str(refusal.value)


def test_a_law_with_a_mean_of_its_own_is_refused():
    from bounds.runtime import Exponential

    with pytest.raises(ValueError, match="pretrain computes the mean of a step"):
        rd.pretrain(rd.Cluster(workers=4, compute=Exponential(0.1)), **asked(4))
