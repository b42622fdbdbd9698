"""Two public calculators of DiLoCo: their numbers where their assumptions hold, and where these mislead.

The one at arthurdouillard.com/diloco states bandwidths per utilisation; the one at mino98.github.io/diloco-calculator
adds up seconds of computing, of rings inside sites and of one flat ring over all chips between them.
"""

import math
from fractions import Fraction

import pytest

import ratedist as rd

N, STEP_S, H, BITS = 8e9, 0.5, 37, 16
GIGABYTE = 8e9  # bits


def asked(m, **more):
    rate = 6 * N * 4096 / STEP_S
    return {
        "parameters": N,
        "tokens": H * 100 * m * 4096,
        "batch_tokens": m * 4096,
        "flop_per_s": rate,
        "tau": H,
    } | more


def ring(chips, bit_per_s=1e10, latency_s=0.0):
    """Chips in one ring, whose messages are late by so much in all."""
    hop_s = latency_s / (2 * (chips - 1))
    return rd.Cluster(workers=chips, compute="constant", bandwidth_bit_per_s=bit_per_s, latency_s=hop_s)


def row(found, words):
    return next(row for row in found.rows if words in row["name"])


# -- what they compute -----------------------------------------------------------------------------------------
def outer_s(chips, bit_per_s, latency_s):
    """Seconds of one averaging between sites: twice the model through a chip's link, and one latency."""
    return 2 * BITS * N / bit_per_s * (1 - 1 / chips) + latency_s


def stated_utilisation(chips, bit_per_s, latency_s, *, streaming, staleness=1):
    """The second calculator's, for computing that hides all rings inside sites."""
    round_s, travel_s = H * STEP_S, outer_s(chips, bit_per_s, latency_s)
    return round_s / (max(round_s, travel_s / staleness) if streaming else round_s + travel_s)


def test_eight_billion_parameters_of_two_bytes_ask_for_one_and_three_quarter_gigabytes_a_second():
    stated = 2 * 2 * N / (H * STEP_S) / 1e9
    found = row(rd.pretrain(ring(10**5), **asked(10**5)), "in flight")["bit_per_s"][-1] / GIGABYTE
    assert round(stated, 2) == round(found, 2) == 1.73
    assert found == pytest.approx(stated, rel=2e-5)  # 1 - 1/m


@pytest.mark.every(4)
@pytest.mark.parametrize("chips", [2, 100, 4096])
@pytest.mark.parametrize("bit_per_s", [1e8, 1e9, 1.38e10, 1e11, 1e13])
@pytest.mark.parametrize("latency_s", [0.0, 0.1, 5.0])
def test_both_ways_to_average_have_the_second_calculators_utilisation(chips, bit_per_s, latency_s):
    found = rd.pretrain(ring(chips, bit_per_s, latency_s), **asked(chips), utilisations=1)
    for words, streaming in (("waiting", False), ("in flight", True)):
        stated = stated_utilisation(chips, bit_per_s, latency_s, streaming=streaming)
        assert row(found, words)["utilisation"] == pytest.approx(stated, rel=1e-9)
        assert row(found, words)["seconds"] == pytest.approx(H * 100 * STEP_S / stated, rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("latency_s", [0.0, 0.1])
def test_bandwidths_for_a_utilisation_are_where_theirs_reach_it(share, latency_s):
    chips = 100
    found = rd.pretrain(ring(chips, latency_s=latency_s), **asked(chips), utilisations=share)
    for words, streaming in (("waiting", False), ("in flight", True)):
        (needed,) = row(found, words)["bit_per_s"]
        assert stated_utilisation(chips, needed, latency_s, streaming=streaming) == pytest.approx(share, rel=1e-6)
        less = stated_utilisation(chips, 0.99 * needed, latency_s, streaming=streaming)
        assert less < share * (1 - 1e-5)


@pytest.mark.parametrize("bit_per_s", [4e11, 3e12])
def test_rings_inside_a_site_take_the_same_seconds(bit_per_s):
    chips, latency_s = 50, 1e-4
    found = rd.pretrain(ring(chips, bit_per_s, latency_s), **asked(chips))
    stated = STEP_S + 2 * BITS * N / bit_per_s * (1 - 1 / chips) + latency_s
    assert row(found, "every step")["step_s"] == pytest.approx(stated, rel=1e-9)


# -- where they mislead ----------------------------------------------------------------------------------------
def queued_utilisation(bit_per_s, late, rounds=400):
    """Messages one after the other over one link, each due so many rounds later: round by round, exactly."""
    travel_s, round_s = Fraction(2 * BITS * N) / Fraction(bit_per_s), Fraction(H) * Fraction(STEP_S)
    now = free = Fraction(0)
    arrivals = []
    for done in range(rounds):
        if done > late:
            now = max(now, arrivals[done - late - 1])
        now += round_s
        free = max(free, now) + travel_s
        arrivals.append(free)
    return float(rounds * round_s / now)


@pytest.mark.parametrize("late", [1, 2, 4])
def test_more_rounds_of_staleness_do_not_make_a_link_carry_more(late):
    """The second calculator divides the seconds of a message by the rounds that it may be late."""
    enough = 2 * BITS * N / (H * STEP_S)
    stated = stated_utilisation(10**9, enough / late, 0.0, streaming=True, staleness=late)
    assert stated == pytest.approx(1)
    assert queued_utilisation(enough, late) == pytest.approx(1, abs=0.01)
    assert queued_utilisation(enough / late, late) == pytest.approx(1 / late, rel=0.02)


def test_a_message_that_may_travel_for_few_steps_needs_the_peak_and_not_the_mean_over_a_round():
    chips = 10**4
    mean = row(rd.pretrain(ring(chips), **asked(chips, tau=40)), "in flight")["bit_per_s"][-1]
    peak = row(rd.pretrain(ring(chips), **asked(chips, tau=40, in_flight=5)), "in flight")["bit_per_s"][-1]
    fragments = asked(chips, tau=40, parts=8, in_flight=5)
    assert peak / mean == pytest.approx(40 / 5)
    assert row(rd.pretrain(ring(chips), **fragments), "in flight")["bit_per_s"][-1] == pytest.approx(mean)


def test_latency_is_paid_at_every_hop_and_by_every_fragment():
    """One latency a round, as stated, against 2 (m - 1) hops of it for every fragment."""
    chips, hop_s = 100, 0.1
    assert stated_utilisation(chips, 1e12, hop_s, streaming=True) == 1
    hops = rd.Cluster(workers=chips, compute="constant", bandwidth_bit_per_s=1e12, latency_s=hop_s)
    found = row(rd.pretrain(hops, **asked(chips)), "in flight")
    assert found["bit_per_s"][-1] == math.inf
    assert found["utilisation"] == pytest.approx(H * STEP_S / (2 * 99 * hop_s + outer_s(chips, 1e12, 0)))


def test_two_sites_need_half_a_ring_between_them_and_not_a_link_for_every_chip():
    """The second calculator multiplies the bandwidth of a chip in a flat ring by the chips of a site."""
    chips, sites = 100, 2
    stated = 2 * BITS * N * (1 - 1 / chips) / (H * STEP_S) * chips / sites
    site = rd.Link(1e15, 0.0)
    links = {"inside": site, "between": rd.Link(1e10, 0.0)}
    cluster = rd.Cluster(nodes=sites, gpus_per_node=chips // sites, compute="constant", **links)
    found = row(rd.pretrain(cluster, **asked(chips)), "in flight")["bit_per_s"][-1]
    assert found == pytest.approx(2 * (1 - 1 / sites) * BITS * N / (H * STEP_S), rel=1e-3)
    assert round(stated / GIGABYTE, 1) == 85.6
    assert round(found / GIGABYTE, 3) == 0.865


def test_slow_steps_of_some_workers_are_no_matter_of_bandwidth():
    stated = stated_utilisation(16, 1e12, 0.0, streaming=True)
    unequal = rd.Cluster(workers=16, compute="exponential", bandwidth_bit_per_s=1e12, latency_s=0)
    found = row(rd.pretrain(unequal, **asked(16)), "in flight")
    assert stated == 1
    assert found["utilisation"] < 0.8
    assert found["bit_per_s"][-1] == math.inf
