"""The search of a method's numbers: equal effort, the range first, and then around the best."""

import math

import numpy as np
import pytest

from gpu_validation.studies.overlap_problems import (
    AUTO,
    AUTO_SHARE,
    FIXED,
    HEADLINE,
    METHODS,
    STAGES,
    TASKS,
    TAUS,
    Tried,
    search,
)

TASK = TASKS["softmax"]
LOW, HIGH = TASK.rates
POINTS = 35


def seconds_from(best_rate, best_tau):
    """Return what measures trials by their distance from the best one, in logarithms; both targets alike."""

    def measure(trials):
        apart = [abs(math.log(t.rate / best_rate)) + abs(math.log(t.tau / best_tau)) for t in trials]
        return [[s, 2 * s] for s in apart]

    return measure


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_tried_as_often_and_auto_less(method):
    tried = search(TASK, method, POINTS, seconds_from(0.2, 20))

    assert len(tried.trials) == len(tried.times) == STAGES * (POINTS // AUTO_SHARE if method == AUTO else POINTS)
    assert all(LOW <= trial.rate <= HIGH for trial in tried.trials)
    assert all(0 <= trial.momentum < 0.9 and 0.3 <= trial.lr <= 1.5 for trial in tried.trials)
    if not METHODS[method].outer:
        assert {(trial.lr, trial.momentum) for trial in tried.trials} == {(1.0, 0.0)}


@pytest.mark.parametrize(("best_rate", "best_tau"), [(0.2, 20), (LOW, 2), (HIGH, 128)])
def test_later_stages_close_in_on_the_best(best_rate, best_tau):
    tried = search(TASK, "corrected", POINTS, seconds_from(best_rate, best_tau))
    of_stage = [min(times[0] for times in tried.times[POINTS * s : POINTS * (s + 1)]) for s in range(STAGES)]
    rates = [np.log([t.rate for t in tried.trials[POINTS * s : POINTS * (s + 1)]]) for s in range(STAGES)]

    assert of_stage[-1] < of_stage[0] / 2
    assert np.ptp(rates[1]) <= np.log(HIGH / LOW) / 3 + 1e-3
    assert np.ptp(rates[2]) <= np.log(HIGH / LOW) / 9 + 1e-3


def test_the_fixed_tau_is_searched_at_every_tau_of_its_grid():
    tried = search(TASK, FIXED, POINTS, lambda trials: [[t.rate * t.tau, abs(t.rate - t.tau / 128)] for t in trials])

    for tau in TAUS:
        own = [trial for trial in tried.trials if trial.tau == tau]
        assert len(own) == STAGES * POINTS // len(TAUS)
        assert min(abs(t.rate - tau / 128) for t in own) == min(
            times[HEADLINE] for t, times in zip(tried.trials, tried.times, strict=True) if t.tau == tau
        )
        nearest = min(own, key=lambda t: abs(t.rate - max(LOW, tau / 128)))
        assert abs(math.log(nearest.rate / max(LOW, tau / 128))) < math.log(HIGH / LOW) / 25


def test_a_stage_without_a_better_trial_is_searched_around_the_old_best():
    calls = iter([1.0, 5.0, 5.0])  # the first stage has the best
    tried = search(TASK, "corrected", POINTS, lambda trials: [[s, s] for s in [next(calls)] * len(trials)])
    best, last = tried.trials[tried.best(HEADLINE)], tried.trials[-POINTS:]

    assert tried.best(HEADLINE) == 0
    assert min(t.rate for t in last) < best.rate < max(t.rate for t in last)


def test_where_none_arrives_the_target_before_decides():
    inf = math.inf
    tried = Tried([], [[3.0, inf], [2.0, inf], [1.0, 9.0]])

    assert tried.best(1) == 2
    assert tried.best(1, among=[0, 1]) == 1
    assert tried.best(0) == 2
