"""Seconds of a round against the timeline written out: every pair of workers' steps, bucket by bucket."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import ratedist as rd
from bounds.claims import Unbiased
from bounds.runtime import Empirical
from ratedist.cluster.travel import Travel
from ratedist.plans.run import BUCKET_BYTES, FIRST_BUCKET_BYTES, PlannedRun, Rhythm, buckets_of, rhythm_of, rhythms

SAMPLES, BITS = (0.3, 0.5, 0.6, 1.1), 4.8e7
LINKS = [(1e7, 0.0), (1e8, 0.05), (1e12, 0.3), (4e7, 0.01)]


def cluster(bandwidth_bit_per_s, latency_s, compute=None, workers=2):
    link = {"bandwidth_bit_per_s": bandwidth_bit_per_s, "latency_s": latency_s}
    return rd.Cluster(workers=workers, compute=compute or Empirical(SAMPLES), **link)


def run_of(on, rhythm, coding_s=0.0):
    way = Travel("sum", Unbiased(0.0), BITS, BITS, None, 0, 0, "summed on its way")
    return PlannedRun(way.cut(rhythm.messages), on, rounds=1, rhythm=rhythm, coding_s=coding_s)


def bucket_by_bucket(step_s, message_s, buckets):
    free_s = 0.0
    for k in range(1, buckets + 1):
        free_s = max(free_s, step_s / 3 + 2 / 3 * step_s * k / buckets) + message_s
    return free_s


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("buckets", [1, 2, 3, 10])
def test_buckets_are_the_mean_over_all_pairs_of_steps(links, buckets):
    bandwidth_bit_per_s, latency_s = links
    message_s = 2 * (latency_s + BITS / 2 / buckets / bandwidth_bit_per_s)
    pairs = itertools.product(SAMPLES, repeat=2)
    exact = np.mean([bucket_by_bucket(max(pair), message_s, buckets) for pair in pairs])
    assert run_of(cluster(*links), Rhythm(buckets=buckets)).seconds == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("buckets", [2, 3, 10])
def test_messages_that_queue_wait_for_a_latency_together_and_one_that_does_not_for_its_own(at_once, buckets):
    latency_s, bandwidth_s = 2 * 0.05, BITS / buckets / 1e8
    queued = replace(cluster(1e8, 0.05, compute="constant"), step_s=1e-3, sums_at_once=at_once)
    waiting, free_s = list(range(buckets)), 1e-3 * (1 / 3 + 2 / 3 / buckets)
    while waiting:
        free_s += latency_s + len(waiting[:at_once]) * bandwidth_s
        del waiting[:at_once]
    assert run_of(queued, Rhythm(buckets=buckets)).seconds == pytest.approx(free_s, rel=1e-12)
    alone = replace(queued, step_s=100.0)
    assert run_of(alone, Rhythm(buckets=buckets)).seconds == pytest.approx(100 + latency_s + bandwidth_s, rel=1e-12)


def test_only_sums_are_known_to_be_made_at_once():
    on = replace(cluster(1e8, 0.05, compute="constant"), step_s=1e-3)
    gathered = Travel("gather", Unbiased(1.0), BITS, BITS, None, 0, 0, "gathered").cut(10)
    plain, at_once = (
        PlannedRun(gathered, replace(on, sums_at_once=c), rounds=1, rhythm=Rhythm(buckets=10), coding_s=0.0).seconds
        for c in (1, 2)
    )
    assert at_once == plain


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_only_the_backward_pass_hides_buckets(share):
    on = replace(cluster(1e8, 0.0, compute="constant"), step_s=100.0, backward_share=share)
    sent_s = 2 * BITS / 2 / 1e8
    hidden = replace(on, step_s=0.3)
    assert run_of(on, Rhythm(buckets=10)).seconds == pytest.approx(100 + sent_s / 10)
    assert run_of(hidden, Rhythm(buckets=10)).seconds == pytest.approx(0.3 * (1 - 0.9 * share) + sent_s)


@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize(("tau", "in_flight", "parts"), [(4, 4, 1), (4, 1, 1), (4, 1, 2), (8, 2, 4), (6, 2, 3)])
def test_fragments_are_those_of_the_calculator_of_averages_in_flight(links, tau, in_flight, parts):
    on = cluster(*links, compute="exponential", workers=4)
    seconds = run_of(on, Rhythm(tau, in_flight, parts)).seconds / tau
    assert seconds == pytest.approx(rd.step_in_flight_s(on, tau=tau, bits=BITS, in_flight=in_flight, parts=parts))


def test_many_buckets_without_latency_hide_all_that_fits():
    on = cluster(1e8, 0.0, compute="exponential", workers=4)
    limit = rd.step_overlapped_s(on, bits=BITS, backward_fraction=2 / 3)
    far, near = (run_of(on, Rhythm(buckets=buckets)).seconds for buckets in (100, 10_000))
    assert near == pytest.approx(limit, rel=1e-3)
    assert limit < near < far < run_of(on, Rhythm()).seconds


@pytest.mark.parametrize(
    "rhythm", [Rhythm(), Rhythm(buckets=4), Rhythm(4), Rhythm(4, 1), Rhythm(4, 4), Rhythm(8, 1, 4)]
)
@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("links", LINKS)
def test_shares_are_of_all_seconds_and_what_limits_is_what_helps(rhythm, links, at_once):
    run = run_of(replace(cluster(*links), sums_at_once=at_once), rhythm, coding_s=0.01)
    shares = run.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= -1e-12
    fast = replace(run, coding_s=0.0)
    assert shares["coding"] == pytest.approx(1 - fast.seconds / run.seconds)


@pytest.mark.parametrize("rhythm", [Rhythm(buckets=4), Rhythm(4, 1), Rhythm(4, 4), Rhythm(8, 1, 4)])
def test_at_the_even_scale_both_take_equally_long(rhythm):
    run = run_of(cluster(4e7, 0.01, compute="constant"), rhythm)
    even = replace(run, step_scale=run.even)
    longer, shorter = (replace(even, step_scale=run.even * scale).seconds for scale in (1.01, 0.99))
    slopes = (longer - even.seconds) / (0.01 * run.even), (even.seconds - shorter) / (0.01 * run.even)
    assert slopes[0] > slopes[1] + 1e-6


@pytest.mark.parametrize(
    ("length", "buckets"),
    [(4, 1), (FIRST_BUCKET_BYTES, 1), (FIRST_BUCKET_BYTES + 4, 2), (2 * BUCKET_BYTES + 4, 3), (16 * BUCKET_BYTES, 16)],
)
def test_buckets_are_as_many_as_torch_makes(length, buckets):
    assert buckets_of(length // 4) == buckets


def test_rhythms_are_all_that_a_pilot_has_looked_at_and_no_others():
    looked = list(rhythms(longest=12, d=10**6, workers=4))
    assert len(set(looked)) == len(looked)
    assert {rhythm.tau for rhythm in looked} == {1, 2, 4, 8, 12}
    assert Rhythm(buckets=2) in looked
    assert Rhythm(8, 2, 4) in looked
    assert Rhythm(8, 4, 1) in looked
    assert all(rhythm.tau + rhythm.in_flight <= 12 and rhythm.in_flight <= rhythm.steps for rhythm in looked)
    assert {rhythm.messages for rhythm in rhythms(longest=12, d=7, workers=4)} == {1}


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"tau": 4, "overlap": False, "parts": 2}, "parts = 2 is of averages in flight; got no overlap"),
        ({"tau": 4, "overlap": False, "in_flight": 2}, "in_flight = 2 is of averages in flight; got no overlap"),
        ({"tau": 4, "overlap": True, "parts": 3}, "tau must be a multiple of parts; got tau = 4, parts = 3"),
        (
            {"tau": 4, "overlap": True, "parts": 2, "in_flight": 3},
            "in_flight must satisfy 1 <= in_flight <= tau/parts = 2",
        ),
        ({"tau": 4, "overlap": True, "in_flight": 0}, "in_flight must satisfy 1 <= in_flight"),
        ({"tau": 4, "overlap": False, "buckets": 2}, "got buckets = 2 beside tau = 4: leave one of them out"),
        ({"tau": 1, "overlap": True, "buckets": 2}, "got buckets = 2 beside tau = 1 in flight"),
        ({"tau": 1, "overlap": False, "buckets": 0}, "buckets must satisfy"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, match):
    with pytest.raises(ValueError, match=match) as refused:
        rhythm_of(**given)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rhythm", "words"),
    [
        (Rhythm(), ""),
        (Rhythm(buckets=16), ", in 16 buckets during the backward pass"),
        (Rhythm(8), ", averaging every 8 steps"),
        (Rhythm(8, 8), ", averaging every 8 steps, overlapped with computing"),
        (Rhythm(8, 2, 2), ", averaging every 8 steps in 2 fragments, overlapped with computing for 2 of 4 steps"),
    ],
)
def test_a_rhythm_in_words(rhythm, words):
    assert rhythm.in_words() == words
