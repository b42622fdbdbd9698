"""Predictions from trial rounds: exact on quadratics, and intervals, stretches, other exchanges, what arrives late."""

import math
from dataclasses import replace

import numpy as np
import pytest

import ratedist as rd
from bounds import Interval
from bounds.estimate import Estimate
from ratedist.pilots.progress import (
    FURTHER,
    SHARES,
    UNSEEN,
    RoundTrial,
    RoundTrials,
    mean_quantiles,
    quantiles_of,
    with_unseen,
)

from .quadratic_pilot import EVERY, SPECTRA, exact_share, path, pilot_of, problem

QSGD, SIGN, OMEGA = "qsgd:levels=4", "scaled_sign", 0.5
MESSAGES = (
    rd.OperatorTrial(QSGD, (3.0, 3.0), (OMEGA, OMEGA), (), rd.Codec(1e-9, 2e-9)),
    rd.OperatorTrial(SIGN, (1.0, 1.0), (0.4, 0.4), (0.5, 0.7), rd.Codec(1e-9, 2e-9)),
)


def cluster(workers=4):
    return rd.Cluster(workers=workers, compute="constant", step_s=0.5, bandwidth_bit_per_s=1e8, latency_s=1e-3)


def exact_trials(name, m, taus=(1, 2, 4)):
    """What four steps gain exactly."""
    quadratic, rows = problem(name), []
    for operator, omega in (("", 0.0), (QSGD, OMEGA)):
        for tau in taus:
            share = 1.0 if not omega else exact_share(quadratic, tau=tau, m=m, omega=omega)
            rows.append(RoundTrial(operator, tau, ((3 * share, 3 * share),)))
    return RoundTrials(m, taus[-1], tuple(rows))


def piloted(name, m, **how):
    return replace(pilot_of(path(problem(name), taus=EVERY), MESSAGES), rounds=exact_trials(name, m, **how))


def progress(pilot, workers=4, **choice):
    return pilot.predict(cluster(workers), **choice).progress_per_step


def trials(falls, synchronous, owed=((),), workers=4, steps=4):
    rows = (RoundTrial("", 1, synchronous), RoundTrial("", 4, falls), RoundTrial(SIGN, 1, falls, owed))
    return RoundTrials(workers, steps, rows)


# -- exact ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("tau", [1, 2, 4])
def test_progress_that_was_tried_is_that_of_the_trial(name, tau):
    found = progress(piloted(name, 4), operator="qsgd:4", tau=tau)
    assert found.value == pytest.approx(exact_share(problem(name), tau=tau, m=4, omega=OMEGA), rel=1e-9)
    ends = found.interval.lo / found.value, found.interval.hi / found.value
    more = 1.96 * math.hypot(UNSEEN, FURTHER * math.log(found.value))
    assert ends == pytest.approx((math.exp(-more), math.exp(more)), rel=1e-4)


@pytest.mark.parametrize(("tau", "expected"), [(1, 5.0), (2, 4.0), (3, 3.0), (4, 2.0)])
def test_seconds_are_those_of_the_bits_that_rounds_have_sent(tau, expected):
    sent = {1: 5.0, 2: 4.0, 4: 2.0}
    pilot = piloted("even", 4)
    rows = [replace(row, bits=((sent[row.tau],) * 2,)) if row.operator else row for row in pilot.rounds.rows]
    tried = replace(pilot, rounds=replace(pilot.rounds, rows=tuple(rows)))
    messages = replace(MESSAGES[0], bits=(expected, expected)), MESSAGES[1]
    untried = replace(pilot, operators=messages, rounds=None)
    choice = {"operator": QSGD, "tau": tau}
    found, wanted = (each.predict(cluster(), **choice).seconds_per_step.value for each in (tried, untried))
    assert found == pytest.approx(wanted, rel=1e-12)
    assert tried.repeated(3).rounds.bits(QSGD, tau) == tried.rounds.then(tried.rounds).bits(QSGD, tau) == expected


def test_synchronous_training_is_compared_with_itself():
    assert progress(piloted("even", 4)).interval.width == 0


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize(("workers", "exchange", "again"), [(16, "gather", 0.0), (4, "two_shot", OMEGA)])
def test_other_workers_and_exchanges_cost_by_the_formulas_in_proportion(name, workers, exchange, again):
    """To first order in what messages cost; the cost is small against what a round gains."""
    pilot, quadratic = piloted(name, 4), problem(name)
    choice = {"operator": "qsgd:4", "tau": 1, "exchange": exchange}
    exact = exact_share(quadratic, tau=1, m=workers, omega=OMEGA, omega2=again)
    gathered = exact_share(quadratic, tau=1, m=4, omega=OMEGA)
    found = progress(pilot, workers, **choice).value
    assert 1 - found == pytest.approx(1 - exact, rel=0.02 if exchange == "two_shot" else 0.08)
    assert abs(found - gathered) > 0.3 * (1 - gathered)
    unknown = pilot.predict(cluster(workers), **choice).unknown
    assert any("that was not tried: that of rounds of 4 workers who gather" in sentence for sentence in unknown)


def test_curvature_that_lies_otherwise_does_not_matter_where_it_was_tried():
    """A trial that finds half of the cost which the formulas expect halves it for all exchanges."""
    pilot = piloted("even", 4)
    rows = [
        row
        if not row.operator
        else replace(row, falls=tuple(tuple((3 + fall) / 2 for fall in each) for each in row.falls))
        for row in pilot.rounds.rows
    ]
    half = replace(pilot, rounds=replace(pilot.rounds, rows=tuple(rows)))
    for choice in ({"exchange": "gather"}, {"exchange": "two_shot"}):
        before, after = (progress(each, operator="qsgd:4", **choice).value for each in (pilot, half))
        assert 1 - after == pytest.approx((1 - before) / 2)


def test_between_the_numbers_tried_progress_is_linear_and_beyond_the_formulas_speak():
    pilot = piloted("even", 4)
    two, four = (progress(pilot, operator="qsgd:4", tau=tau).value for tau in (2, 4))
    assert progress(pilot, operator="qsgd:4", tau=3).value == pytest.approx((two + four) / 2)
    assert any("was not tried" in each for each in pilot.predict(cluster(), operator="qsgd:4", tau=3).unknown)
    alone = replace(pilot, rounds=None)
    assert progress(pilot, operator="qsgd:4", tau=8) == progress(alone, operator="qsgd:4", tau=8)


def test_momentum_and_local_steps_are_not_among_the_unknown_where_they_were_tried():
    pilot = piloted("even", 4)
    sentences = " ".join(pilot.predict(cluster(), tau=4).unknown)
    assert "momentum" not in sentences
    assert "local steps cost" not in sentences
    assert "momentum" in " ".join(replace(pilot, rounds=None).predict(cluster(), tau=4).unknown)
    in_flight = pilot.predict(cluster(), tau=4, overlap=True)
    assert in_flight.progress_per_step.interval.lo < 1


# -- stretches -----------------------------------------------------------------------------------------------
def test_every_stretch_counts_by_the_time_it_takes():
    start = trials(((1.0, 1.0),), ((2.0, 2.0),))
    later = trials(((1.0, 1.0),), ((4.0, 4.0),))
    assert start.then(later).kept("", 4, 0.9).value == pytest.approx(1 / 3)  # 2 and 4 times as long: 3 on average


def test_a_stretch_that_clearly_loses_is_no_progress():
    start = trials(((1.0, 1.0),), ((1.0, 1.0),))
    assert start.then(trials(((-1.0, -0.98),), ((1.0, 1.0),))).kept("", 4, 0.9).value == 0


def test_a_later_pilot_must_be_alike():
    pilot = piloted("even", 4)
    assert pilot.then(pilot).rounds.kept(QSGD, 2, 0.9).value == pytest.approx(pilot.rounds.kept(QSGD, 2, 0.9).value)
    with pytest.raises(ValueError, match="must be of the same choices, workers and steps; got 6 choices, 8 workers"):
        pilot.then(piloted("even", 8))
    with pytest.raises(ValueError, match="a later pilot adds its trial rounds; got a pilot without"):
        pilot.then(replace(pilot, rounds=None))


# -- hidden by noise -----------------------------------------------------------------------------------------
def posterior(falls, synchronous, ends=(-8.0, 4.0), count=4001):
    """Time of a stretch by a sum over log(progress), in plain Python: mean of its logarithm, and share above 1."""
    n, weights, logs = len(falls), [], [ends[0] + (ends[1] - ends[0]) * i / (count - 1) for i in range(count)]
    for log in logs:
        off = [fall - math.exp(log) * other for fall, other in zip(falls, synchronous, strict=True)]
        mean = sum(off) / n
        error2 = sum((each - mean) ** 2 for each in off) / (n - 1) / n
        student = (1 + mean**2 / error2 / (n - 1)) ** (-n / 2)
        weights.append(student * (1 + (log / 0.2) ** 2 / 3) ** -2)
    total = sum(weights)
    return (
        -sum(log * weight for log, weight in zip(logs, weights, strict=True)) / total,
        sum(weight for log, weight in zip(logs, weights, strict=True) if log < 0) / total,
    )


HIDDEN = {
    "nothing fell": ((-1.0, 0.5, 0.4), (-0.9, 0.6, 0.2)),
    "slower": ((0.5, 0.1, 0.7), (1.0, 0.8, 1.2)),
    "quicker": ((1.6, 1.4, 0.9), (1.0, 0.7, 0.8)),
}


@pytest.mark.parametrize(("falls", "synchronous"), HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_stretch_is_the_posterior_of_the_stated_prior(falls, synchronous):
    quantiles = quantiles_of(falls, synchronous)
    log, above = posterior(falls, synchronous)
    assert np.log(quantiles).mean() == pytest.approx(log, abs=0.02)
    assert (quantiles > 1).mean() == pytest.approx(above, abs=0.02)


def test_noise_leaves_a_finite_prediction_and_is_named():
    hidden = trials(((1.0, 1.0),), ((1.0, 1.0),)).then(trials(((-1.0, 0.5),), ((-0.9, 0.6),)))
    kept = hidden.kept("", 4, 0.9)
    assert 0 < kept.interval.lo < 0.9 < 1.1 < kept.interval.hi < math.inf
    assert (hidden.hidden("", 4), hidden.stretches) == (1, 2)
    pilot = replace(pilot_of(path(problem("even")), MESSAGES), rounds=hidden)
    predicted = pilot.predict(cluster(), tau=4)
    assert math.isfinite(predicted.time_ratio.interval.hi)
    assert any("progress in 1 of 2 stretches of training" in each for each in predicted.unknown)
    assert not any("stretches of training" in each for each in pilot.predict(cluster(), tau=1).unknown)


def test_a_stretch_that_clearly_loses_is_no_progress_though_noise_hides_another():
    hidden, loses = trials(((-1.0, 0.5),), ((-0.9, 0.6),)), trials(((-1.0, -0.98),), ((1.0, 1.0),))
    kept = hidden.then(loses).kept("", 4, 0.9)
    assert (kept.value, kept.interval.lo, kept.interval.hi) == (0.0, 0.0, math.inf)


def test_where_synchronous_training_does_not_get_on_progress_is_hidden():
    still = trials(((1.0, 1.0),), ((-1.0, -1.0),))
    assert still.hidden("", 4) == 1
    assert math.isfinite(still.kept("", 4, 0.9).value)


def test_clear_trials_are_not_drawn_to_the_prior():
    clear = trials(((0.2, 0.21, 0.2),), ((1.0, 1.01, 1.0),))
    assert clear.hidden("", 4) == 0
    assert clear.kept("", 4, 0.9).value == pytest.approx(0.61 / 3.01)


def test_intervals_hold_their_level_where_noise_hides_progress():
    """Progress drawn from the prior, a synchronous fall as large as its noise."""
    rng, covered, runs = np.random.default_rng(2), 0, 400
    for _ in range(runs):
        parts, times = [], []
        for _ in range(2):
            share = math.exp(0.2 * rng.standard_t(3))
            synchronous = 1 + rng.standard_normal(3)
            falls = share * synchronous + 0.4 * rng.standard_normal(3)
            parts.append(trials((tuple(falls),), (tuple(synchronous),)))
            times.append(1 / share)
        covered += 1 / np.mean(times) in parts[0].then(parts[1]).kept("", 4, 0.9).interval
    assert covered / runs == pytest.approx(0.9, abs=0.04)


def test_the_mean_of_stretches_has_the_quantiles_of_sums():
    """Of two uniform numbers between 0 and 1: the mean is below 1/4 in an eighth of the cases."""
    even = mean_quantiles([SHARES, SHARES])
    assert (even < 0.25).mean() == pytest.approx(1 / 8, abs=0.01)


# -- what arrives late ---------------------------------------------------------------------------------------
def test_what_residuals_owe_counts_once():
    """A synchronous step gains 1/4 of a unit; residuals owe half a unit, which is two rounds of a step."""
    pilot = pilot_of(path(problem("even")), MESSAGES)
    pilot = replace(pilot, rounds=trials(((1.0, 1.0),), ((1.0, 1.0),), owed=((0.5, 0.5),)))
    assert pilot.rounds.lag(SIGN) == pytest.approx(2)
    long = pilot.predict(cluster(), operator=SIGN)
    assert long.progress_per_step.value == pytest.approx(1)
    assert any("arrives 2 steps late, once" in sentence for sentence in long.unknown)
    short = pilot.predict(cluster(), operator=SIGN, steps=20)
    assert rd.predict(pilot, cluster(), operator=SIGN, steps="20") == short
    assert rd.predict(pilot, cluster(), operator=SIGN) == long
    assert short.progress_per_step.value == pytest.approx(1 / (1 + 2 / 20))
    assert not any("late, once" in sentence for sentence in short.unknown)


def test_the_interval_of_error_feedback_holds_a_residual_that_never_arrives():
    """One round to the trial: without what it owes, the operator looks like the uncompressed mean."""
    found = trials(((1.0, 1.0),), ((1.0, 1.0),), owed=((0.9, 0.9),)).kept(SIGN, 1, 0.9)
    assert (found.value, found.interval.lo, found.interval.hi) == pytest.approx((1.0, 0.1, 1.0))
    assert trials(((1.0, 1.0),), ((1.0, 1.0),)).kept("", 4, 0.9).interval.width == 0


def test_plans_rank_tried_rounds_by_their_upper_ends():
    slow = rd.Cluster(workers=4, compute="constant", step_s=1e-6, bandwidth_bit_per_s=1e3, latency_s=1e-9)
    fell = ((1.0, 1.0),)
    places = []
    for owed in (0.0, 0.9):
        rows = (
            *(RoundTrial(*row, fell) for row in (("", 1), ("", 4), (QSGD, 1))),
            RoundTrial(SIGN, 1, fell, ((owed, owed),)),
        )
        pilot = replace(pilot_of(path(problem("even")), MESSAGES), rounds=RoundTrials(4, 4, rows))
        ranking = rd.plan(pilot=pilot, cluster=slow).ranking
        place = min(k for k, choice in enumerate(ranking) if choice.operator == SIGN and choice.tau == 1)
        upper = ranking[place].time_ratio.interval.hi
        assert ranking[place].time_ratio.value == pytest.approx(1 / 16, rel=1e-4)
        assert ranking[place].relative_cost == pytest.approx(upper / ranking[0].time_ratio.interval.hi)
        uppers = [choice.ratio_ends[1] for choice in ranking if choice.feasible]
        assert uppers == pytest.approx(sorted(uppers), rel=1e-8)
        places.append(place)
    assert places[0] < places[1]


def test_a_tried_choice_that_may_never_arrive_is_not_recommended():
    slow = rd.Cluster(workers=8, compute="constant", step_s=1e-6, bandwidth_bit_per_s=1e3, latency_s=1e-9)
    rows = tuple(
        RoundTrial(operator, tau, ((0.8, 0.72),) if operator else ((1.0, 1.0),))
        for operator in ("", QSGD)
        for tau in (1, 4)
    )
    pilot = replace(pilot_of(path(problem("even")), MESSAGES), rounds=RoundTrials(2, 4, rows))
    ranking = rd.plan(pilot=pilot, cluster=slow).ranking
    fastest = min(ranking, key=lambda choice: choice.ratio)
    assert math.isinf(fastest.ratio_ends[1])
    assert math.isfinite(ranking[0].ratio_ends[1])


def test_rounds_longer_than_those_tried_are_not_recommended():
    assert {choice.tau for choice in rd.plan(pilot=piloted("even", 4), cluster=cluster()).ranking} == {1, 2, 4}
    untried = replace(piloted("even", 4), rounds=None)
    assert max(choice.tau for choice in rd.plan(pilot=untried, cluster=cluster()).ranking) == 16


# -- intervals -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_intervals_hold_their_level(level):
    """Falls share the noise of their batches; three moments in each of two stretches."""
    rng, runs, covered = np.random.default_rng(0), 1000, 0
    for _ in range(runs):
        parts = []
        for share in (0.8, 0.5):
            synchronous = 1 + 0.2 * rng.standard_normal(3)
            falls = share * synchronous + 0.05 * rng.standard_normal(3)
            parts.append(trials((tuple(falls),), (tuple(synchronous),)))
        kept = parts[0].then(parts[1]).kept("", 4, level)
        assert kept.level == level
        covered += 2 / (1 / 0.8 + 1 / 0.5) in kept.interval
    assert covered / runs == pytest.approx(level, abs=0.03)


def test_what_trials_have_not_shown_adds_to_what_their_moments_tell():
    alone, wide = Estimate(0.8, Interval(0.8, 0.8), 0.9), Estimate(0.8, Interval(0.4, 1.6), 0.9)
    for inner, outer in ((each.interval, with_unseen(each).interval) for each in (alone, wide)):
        for end, further in ((inner.lo, outer.lo), (inner.hi, outer.hi)):
            squares = math.log(end / 0.8) ** 2 + 1.645**2 * (UNSEEN**2 + (FURTHER * math.log(0.8)) ** 2)
            assert math.log(further / 0.8) ** 2 == pytest.approx(squares, rel=1e-3)
    open_ended = with_unseen(Estimate(0.8, Interval(0.0, math.inf), 0.9)).interval
    assert (open_ended.lo, open_ended.hi) == (0, math.inf)


def test_a_level_is_that_of_all_that_is_predicted():
    pilot = pilot_of(path(problem("even")), MESSAGES)
    rng = np.random.default_rng(1)
    noisy = replace(
        pilot,
        falls=tuple(tuple(fall * (1 + 0.1 * rng.standard_normal()) for fall in row) for row in pilot.falls * 4),
        **{name: getattr(pilot, name) * 4 for name in ("bends", "survival", "secants", "small_norms2", "large_norms2")},
    )
    wide, narrow = (noisy.predict(cluster(), operator="qsgd:4", level=level).time_ratio for level in (0.99, 0.5))
    assert (wide.level, narrow.level) == (0.99, 0.5)
    assert narrow.interval.width < wide.interval.width
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="level must satisfy 0 < level < 1"):
            pilot.predict(cluster(), level=level)


def test_more_moments_make_intervals_narrower():
    noisy = trials(((1.0, 1.2, 0.9),), ((1.1, 1.0, 1.0),))
    assert noisy.repeated(8).kept("", 4, 0.9).interval.width < noisy.kept("", 4, 0.9).interval.width / 2
