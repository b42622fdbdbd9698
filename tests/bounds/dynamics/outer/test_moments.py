"""The exact moments against training scripts: without noise to rounding, with it within four standard errors."""

import numpy as np
import pytest

from bounds.dynamics import Quadratic, additive, heterogeneous
from bounds.dynamics.outer import OuterStep, Workers, expected_loss, mean_model, second_moments
from bounds.dynamics.outer.merge import RULES
from tests.bounds.dynamics.outer.simulation import run

ALIKE = Workers.alike(Quadratic([0.1, 0.5, 1.0], [1.0, -2.0, 0.5], [0.5, 0.25, 1.0]), 3)
DIFFERENT = Workers(
    np.array([[0.1, 0.9], [0.6, 0.3], [1.0, 0.2]]),
    np.array([[1.0, 0.0], [-1.0, 0.5], [0.3, 2.0]]),
    np.array([[0.2, 0.1], [0.4, 0.3], [0.1, 0.5]]),
    np.array([3.0, -1.0]),
)
STEPS = [OuterStep(), OuterStep(0.6, 0.8), OuterStep(0.5, 0.5, nesterov=False)]


def noiseless(workers):
    return Workers(workers.eigenvalues, workers.centres, np.zeros_like(workers.noise), workers.start)


@pytest.mark.parametrize("workers", [ALIKE, DIFFERENT], ids=["same data", "different data"])
@pytest.mark.parametrize("outer", STEPS, ids=["averaging", "Nesterov", "heavy ball"])
@pytest.mark.parametrize("merge", RULES)
@pytest.mark.parametrize("delay", [0, 2, 5])
def test_the_mean_is_that_of_a_script_without_noise(merge, outer, workers, delay):
    at = {"eta": 0.3, "tau": 5, "delay": delay, "rounds": 12, "outer": outer}
    script = run(noiseless(workers), merge, **at)[:, 0]
    assert mean_model(workers, merge, **at) == pytest.approx(script, rel=1e-11, abs=1e-12)
    moments = second_moments(noiseless(workers), merge, **at)
    assert moments == pytest.approx((script - workers.minimiser) ** 2, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("workers", [ALIKE, DIFFERENT], ids=["same data", "different data"])
@pytest.mark.parametrize("merge", RULES)
def test_second_moments_are_those_of_noisy_scripts(merge, workers):
    at = {"eta": 0.3, "tau": 4, "delay": 3, "rounds": 6, "outer": OuterStep(0.6, 0.7)}
    squares = (run(workers, merge, **at, runs=4000, seed=5) - workers.minimiser) ** 2
    error = squares.std(1) / np.sqrt(squares.shape[1])
    exact = second_moments(workers, merge, **at)
    assert np.all(np.abs(squares.mean(1) - exact) <= 4.5 * error + 1e-12)
    # a tenth less noise would be seen
    quieter = Workers(workers.eigenvalues, workers.centres, 0.8 * workers.noise, workers.start)
    assert np.any(np.abs(squares.mean(1) - second_moments(quieter, merge, **at)) > 4.5 * error + 1e-12)


def test_blocking_averaging_is_model_a():
    problem = Quadratic([0.1, 0.5, 1.0], [1.0, -2.0, 0.5], [0.5, 0.25, 1.0])
    moments = second_moments(Workers.alike(problem, 8), "blocking", eta=0.2, tau=3, rounds=7)
    losses = expected_loss(Workers.alike(problem, 8), moments)
    assert losses == pytest.approx(additive.suboptimality(problem, eta=0.2, m=8, k=3 * np.arange(8)), rel=1e-12)


@pytest.mark.parametrize("delay", range(6))  # at delay = tau nothing would move
def test_overwriting_is_blocking_without_the_steps_in_flight(delay):
    at = {"eta": 0.3, "rounds": 9, "outer": OuterStep(0.8, 0.6)}
    thrown_away = second_moments(DIFFERENT, "overwrite", tau=6, delay=delay, **at)
    assert np.array_equal(thrown_away, second_moments(DIFFERENT, "blocking", tau=6 - delay, **at))


@pytest.mark.parametrize("delay", range(7))
def test_a_corrected_merge_of_plain_averages_loses_nothing_on_the_same_data(delay):
    """What is merged is the mean after tau - delay, 2 tau - delay, ... steps, whatever is in flight."""
    problem = Quadratic([0.1, 0.5, 1.0], [1.0, -2.0, 0.5], [0.5, 0.25, 1.0])
    moments = second_moments(Workers.alike(problem, 4), "corrected", eta=0.3, tau=6, delay=delay, rounds=8)
    steps = 6 * np.arange(1, 9) - delay
    expected = additive.suboptimality(problem, eta=0.3, m=4, k=steps)
    assert 0.5 * moments[1:] @ problem.eigenvalues == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("outer", STEPS, ids=["averaging", "Nesterov", "heavy ball"])
@pytest.mark.parametrize("merge", ["blocking", "delayed", "overwrite"])
def test_no_outer_step_moves_the_fixed_point_of_different_data(merge, outer):
    slow = OuterStep(0.2 * outer.lr, outer.momentum, outer.nesterov)
    end = mean_model(DIFFERENT, merge, eta=0.3, tau=5, delay=2, rounds=3000, outer=slow)[-1]
    hessians = np.array([np.diag(row) for row in DIFFERENT.eigenvalues])
    tau = 3 if merge == "overwrite" else 5
    assert end == pytest.approx(heterogeneous.fixed_point(hessians, DIFFERENT.centres, eta=0.3, tau=tau), rel=1e-9)


def test_the_corrected_merge_has_a_fixed_point_of_its_own():
    blocking = mean_model(DIFFERENT, "blocking", eta=0.3, tau=5, rounds=3000)[-1]
    corrected = mean_model(DIFFERENT, "corrected", eta=0.3, tau=5, delay=4, rounds=3000)[-1]
    bias, larger = (np.linalg.norm(end - DIFFERENT.minimiser) for end in (blocking, corrected))
    assert larger > 1.2 * bias


def test_many_workers_that_are_alike_cost_one():
    one = Workers.alike(Quadratic([0.3], [1.0], [1.0]), 1024)
    assert one.reduced().m == 1
    for merge in RULES:
        assert second_moments(one, merge, eta=0.5, tau=8, delay=3, rounds=5).shape == (6, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"merge": "hopeful"}, "a merge rule is one of"),
        ({"tau": 0}, "tau >= 1"),
        ({"delay": 6}, "0 <= delay <= tau"),
        ({"eta": 0}, "eta must be > 0"),
    ],
)
def test_a_wrong_argument_is_said(change, sentence):
    at = {"merge": "blocking", "eta": 0.1, "tau": 5, "delay": 1, "rounds": 2} | change
    with pytest.raises(ValueError, match=sentence):
        second_moments(ALIKE, **at)


@pytest.mark.parametrize("wrong", [{"lr": 0}, {"lr": float("inf")}, {"momentum": 1}, {"momentum": -0.1}])
def test_an_outer_step_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=r"an outer (learning rate|momentum) must"):
        OuterStep(**wrong)


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match="must share a shape"):
        Workers(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 2)), np.ones(3))
