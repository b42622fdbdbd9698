"""Predictions from a pilot against exact quadratics: progress of compressed local steps, seconds, intervals."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import ratedist as rd
from bounds import Interval
from bounds.dynamics import Quadratic
from bounds.estimate import Estimate
from ratedist.pilots.prediction import UNTRIED
from ratedist.pilots.progress import (
    Averaging,
    kept_by_staleness,
    kept_with_errors,
)
from ratedist.plans.run import Rhythm
from ratedist.records import to_json

from .quadratic_pilot import ETA, EVERY, SPECTRA, exact_share, loss, measured, path, pilot_of, problem

CASES = [(1, 1, 0.5), (1, 4, 2.0), (4, 4, 0.5), (8, 16, 3.0)]  # tau, m, omega


def point(value):
    return Estimate(value, Interval(value, value), 0.95)


def share(quadratic, *, tau, m, omega, twice=False, senders=None, eta=ETA, taus=EVERY):
    return kept_with_errors(
        path(quadratic, eta, taus).of_round(tau), point(omega), Averaging(m, senders or m, twice)
    ).value


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize(("tau", "m", "omega"), CASES)
def test_progress_is_exact_on_quadratics(name, tau, m, omega):
    quadratic = problem(name)
    exact = exact_share(quadratic, tau=tau, m=m, omega=omega)
    assert 0 < exact < 1
    assert share(quadratic, tau=tau, m=m, omega=omega) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize(("tau", "m", "omega"), CASES)
def test_a_wrong_error_or_no_survival_would_be_seen(name, tau, m, omega):
    quadratic = problem(name)
    exact = exact_share(quadratic, tau=tau, m=m, omega=omega)
    assert abs(share(quadratic, tau=tau, m=m, omega=0.8 * omega) - exact) > 1e-3
    without = path(quadratic)
    without = replace(without, drops=np.zeros_like(without.drops)).of_round(tau)
    blind = kept_with_errors(without, point(omega), Averaging(m, m)).value
    assert m == 1 or abs(blind - exact) > 1e-3


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("tau", [1, 4])
def test_two_shots_and_nodes_are_exact_too(name, tau):
    quadratic = problem(name)
    exact = exact_share(quadratic, tau=tau, m=4, omega=0.3, omega2=0.3)
    assert share(quadratic, tau=tau, m=4, omega=0.3, twice=True) == pytest.approx(exact, rel=1e-9)
    together = Quadratic(quadratic.eigenvalues, quadratic.start, quadratic.noise / 8)  # a node of 8 is one with less
    exact = exact_share(together, tau=tau, m=4, omega=0.3)
    assert share(quadratic, tau=tau, m=32, senders=4, omega=0.3) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", SPECTRA)
def test_between_the_measured_steps_it_is_right_to_first_order(name):
    quadratic = problem(name)
    wrong = []
    for eta in (0.04, 0.02, 0.01):
        exact = 1 - exact_share(quadratic, tau=6, m=4, omega=1.0, eta=eta)
        wrong.append(abs(1 - share(quadratic, tau=6, m=4, omega=1.0, eta=eta, taus=(1, 4, 8)) - exact) / exact)
    assert wrong[0] < 0.2
    assert wrong[2] < 0.3 * wrong[0] + 1e-9


@pytest.mark.parametrize("name", SPECTRA)
def test_local_steps_cost_nothing_where_gradients_are_linear(name):
    """What survives of the gradient is no share of progress: synchronous steps meet the smaller gradient as well."""
    quadratic, tau = problem(name, noise=0.01), 8
    local = path(quadratic)
    assert exact_share(quadratic, tau=tau, m=4, omega=0.0) == pytest.approx(1, abs=1e-12)
    stale = kept_by_staleness(local.of_round(tau), local.of_round(1), tau, Averaging(4, 4)).value
    fall = quadratic.gap - loss(quadratic, eta=ETA, m=4, tau=1, omega1=0.0, omega2=0.0, rounds=tau)
    first = quadratic.gap - loss(quadratic, eta=ETA, m=4, tau=1, omega1=0.0, omega2=0.0, rounds=1)
    assert stale == pytest.approx(fall / (tau * first), rel=1e-9)
    assert stale < 0.9


# -- intervals -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tau", [1, 4])
def test_intervals_cover_the_truth(tau):
    values = np.logspace(-1, 0, 40)
    quadratic = Quadratic(values, np.ones(40), np.full(40, 0.1))
    exact, rng, runs = exact_share(quadratic, tau=tau, m=8, omega=2.0), np.random.default_rng(0), 200
    covered, widths = 0, []
    for _ in range(runs):
        kept = kept_with_errors(measured(quadratic, 8, rng).of_round(tau), point(2.0), Averaging(8, 8))
        covered += exact in kept.interval
        widths.append(kept.interval.width)
    assert covered >= 0.95 * runs
    assert np.median(widths) < 0.5


# -- a whole prediction --------------------------------------------------------------------------------------
QSGD, SIGN = "qsgd:levels=4", "scaled_sign"
TRIALS = (
    rd.OperatorTrial(QSGD, (3.0, 3.0), (0.5, 0.5), (), rd.Codec(1e-9, 2e-9)),
    rd.OperatorTrial(SIGN, (1.0, 1.0), (0.4, 0.4), (0.5, 0.7), rd.Codec(1e-9, 2e-9)),
    rd.OperatorTrial("randomk:fraction=0.03125", (1.0, 1.0), (30.0, 30.0), (), rd.Codec(1e-9, 2e-9)),
)
D = 10**6


@pytest.fixture(scope="module")
def pilot():
    return pilot_of(path(problem("even"), taus=(1, 2, 4, 8, 16)), TRIALS, d=D)


CLUSTER = rd.Cluster(workers=4, compute="constant", step_s=0.5, bandwidth_bit_per_s=1e8, latency_s=1e-3)
DENSE_S = 6 * 1e-3 + 2 * 3 / 4 * 32 * D / 1e8
SYNCHRONOUS_S = 1 / 3 + 2 * (
    6 * 1e-3 + 3 / 4 * 32 * D / 1e8
)  # in two buckets, the first of them ready after a third of a second


def test_without_compression_a_step_is_compared_with_itself(pilot):
    plain = pilot.predict(CLUSTER, buckets=2)
    assert plain.seconds_per_step.value == pytest.approx(SYNCHRONOUS_S)
    assert plain.progress_per_step.interval == plain.time_ratio.interval == Interval(1.0, 1.0)
    waiting = pilot.predict(CLUSTER)
    assert waiting.seconds_per_step.value == pytest.approx(0.5 + DENSE_S)
    assert waiting.time_ratio.value == pytest.approx((0.5 + DENSE_S) / SYNCHRONOUS_S)
    alone = pilot.predictor(CLUSTER, baseline=Rhythm()).predict(None, "gather", Rhythm())
    assert alone.time_ratio.interval == Interval(1.0, 1.0)
    assert (plain.certified_time_ratio, plain.limits, waiting.limits) == (1.0, "bandwidth", "compute")


def test_the_call_takes_a_pilot_or_its_file(pilot, tmp_path):
    file = tmp_path / "pilot.json"
    file.write_text(json.dumps(pilot.to_dict()))
    assert rd.Pilot.read(file) == pilot
    given = {"operator": "qsgd:4", "tau": 2}
    assert (
        rd.predict(str(file), CLUSTER, **given)
        == rd.predict(pilot, CLUSTER, **given)
        == pilot.predict(CLUSTER, **given)
    )


@pytest.mark.parametrize("tau", [1, 4])
def test_seconds_over_progress(pilot, tau):
    prediction = pilot.predict(CLUSTER, operator="qsgd:4", tau=tau)
    averaging_s = 3 * (1e-3 + 3 * D / 1e8) + D * (1e-9 + 4 * 2e-9)
    assert prediction.seconds_per_step.value == pytest.approx(0.5 + averaging_s / tau)
    progress = exact_share(problem("even"), tau=tau, m=4, omega=0.5)
    assert prediction.progress_per_step.value == pytest.approx(progress, rel=1e-9 if tau == 1 else 1e-2)
    ratio = (0.5 + averaging_s / tau) / SYNCHRONOUS_S / prediction.progress_per_step.value
    assert prediction.time_ratio.value == pytest.approx(ratio)
    assert (prediction.certified_time_ratio is None) == (tau > 1)
    assert "certified worst case, by" in prediction.certified or tau > 1


def test_in_flight_the_longer_of_both_counts(pilot):
    slow = replace(CLUSTER, bandwidth_bit_per_s=1e6)
    for cluster, limit in ((CLUSTER, "compute"), (slow, "bandwidth")):
        averaging_s = cluster.averaging_s(32 * D).midpoint
        prediction = pilot.predict(cluster, tau=4, overlap=True)
        assert prediction.seconds_per_step.value == pytest.approx(max(4 * 0.5, averaging_s) / 4)
        assert prediction.limits == limit
        assert prediction.progress_per_step.value == 1
        assert prediction.progress_per_step.interval.lo < pilot.predict(cluster, tau=4).progress_per_step.interval.lo
    late = pilot.predict(slow, tau=16, overlap=True)
    assert late.progress_per_step.interval.lo == 0
    assert late.time_ratio.interval.hi == math.inf
    assert any("has not looked at gradients that are 32 steps old" in sentence for sentence in late.unknown)
    distant = pilot.predict(replace(CLUSTER, latency_s=1.0), tau=4)
    assert distant.limits == "latency"


def test_nodes_send_less_and_err_more(pilot):
    inside = rd.Link(1e12, 1e-6)
    cluster = rd.Cluster(nodes=4, gpus_per_node=8, inside=inside, compute="constant", step_s=0.5)
    by_nodes, all_of_them = (
        pilot.predict(cluster, operator="qsgd:4", exchange=exchange).progress_per_step.value
        for exchange in ("node_gather", "gather")
    )
    assert by_nodes < all_of_them
    assert by_nodes == pytest.approx(share(problem("even"), tau=1, m=32, senders=4, omega=0.5), rel=1e-9)
    twice = pilot.predict(cluster, operator="qsgd:4", exchange="node_two_shot")
    assert twice.progress_per_step.value < by_nodes


def test_noise_limits_where_it_takes_most(pilot):
    prediction = pilot.predict(CLUSTER, operator="randomk:0.03125")
    assert prediction.limits == "noise"
    assert prediction.progress_per_step.value < 0.6


def test_error_feedback_without_trial_rounds_has_no_prediction(pilot):
    """Taken to be worth a synchronous step, it was the first of a plan that its small messages win."""
    prediction = pilot.predict(CLUSTER, operator=SIGN)
    assert prediction.progress_per_step is None
    assert prediction.time_ratio is None
    assert UNTRIED in prediction.unknown
    assert prediction.certified_time_ratio is None


def test_measured_steps_give_seconds_an_interval(pilot):
    cluster = pilot.cluster(workers=4, bandwidth_bit_per_s=1e8, latency_s=1e-3)
    seconds = pilot.predict(cluster, operator="qsgd:4").seconds_per_step
    assert seconds.interval.lo < seconds.value < seconds.interval.hi
    assert any("steps slower than the slowest of the 3" in each for each in pilot.predict(cluster).unknown)
    fixed = pilot.predict(CLUSTER)
    assert fixed.seconds_per_step.interval.width == 0
    assert any("its seconds have no interval" in sentence for sentence in fixed.unknown)


def test_it_is_a_record(pilot):
    pytest.importorskip("pandas")
    prediction = pilot.predict(CLUSTER, operator="qsgd:4", tau=2)
    stated = json.loads(json.dumps(to_json(prediction)))
    assert stated["time_ratio"]["value"] == prediction.time_ratio.value
    assert stated["tau"] == 2
    table = prediction.to_frame().set_index("quantity")
    assert table.loc["progress_per_step", "value"] == prediction.progress_per_step.value
    assert table.loc["time_ratio", "high"] == prediction.time_ratio.interval.hi


def test_noise_that_hides_the_gradient_is_said(pilot):
    hidden = replace(pilot, falls=tuple(tuple(-fall for fall in row) for row in pilot.falls))
    prediction = hidden.predict(CLUSTER, operator="qsgd:4")
    assert prediction.progress_per_step is None
    assert prediction.time_ratio is None
    assert any("hides the gradient" in sentence for sentence in prediction.unknown)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"operator": "natural"},
            "operator must be one that the pilot has tried; got natural:rounding=stochastic, tried: qsgd:levels=4",
        ),
        ({"tau": 17}, "tau must be 1 to 16, the local steps that the pilot has looked at; got tau = 17"),
        ({"tau": 0}, "tau"),
        ({"exchange": "pigeon"}, "exchange must be one of gather, two_shot, node_gather, node_two_shot; got 'pigeon'"),
        ({"operator": QSGD, "exchange": "node_gather"}, "messages of nodes need 2 nodes"),
        ({"operator": SIGN, "exchange": "two_shot"}, "unbiased operators"),
    ],
)
def test_refusals(pilot, given, match):
    with pytest.raises(ValueError, match=match) as refusal:
        pilot.predict(CLUSTER, **given)
    assert "\n" not in str(refusal.value)


def test_a_pilot_without_falls_is_refused(pilot):
    with pytest.raises(ValueError, match="which this pilot lacks: make a new pilot"):
        replace(pilot, falls=()).predict(CLUSTER)
