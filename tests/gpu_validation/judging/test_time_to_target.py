"""Crossing times of curves drawn by hand, and intervals for medians against their binomial law."""

import math

import numpy as np
import pytest

from gpu_validation.judging.intervals import median_of
from gpu_validation.judging.iteration_time import arrival, smoothed, time_to_loss

STEPS = ([0.0, 1.0, 2.0, 4.0], [8.0, 4.0, 2.0, 1.0])  # 8 until 1 s, 4 until 2 s, 2 until 4 s, 1 from then on


def by_hand(at, window):
    """A fine sum over the step function."""
    seconds, losses = map(np.asarray, STEPS)
    t = np.linspace(max(at - window, 0), at, 20001)[:-1] + 1e-12
    return losses[np.searchsorted(seconds, t, side="right") - 1].mean()


@pytest.mark.parametrize("at", [0.3, 1.0, 1.25, 2.5, 3.9, 5.0])
def test_smoothed_curve_is_the_mean_of_the_step_function(at):
    assert smoothed(*STEPS, at, window_s=0.5) == pytest.approx(by_hand(at, 0.5), abs=1e-3)


def test_the_smoothed_curve_begins_at_the_first_loss():
    np.testing.assert_array_equal(smoothed(*STEPS, np.array([0.0, 0.4]), window_s=0.5), [8.0, 8.0])


def test_crossing_time_is_where_the_smoothed_curve_meets_the_target():
    for target in (7.9, 6.0, 4.0, 3.0, 2.5):
        t = time_to_loss(*STEPS, target, window_s=0.5)
        assert smoothed(*STEPS, t, window_s=0.5) == pytest.approx(target)
        assert (smoothed(*STEPS, np.linspace(0, t - 1e-9, 200), window_s=0.5) > target).all()


def test_a_loss_that_is_never_reached_takes_for_ever():
    assert time_to_loss(*STEPS, 0.5, window_s=0.5) == math.inf
    assert time_to_loss(*STEPS, 8.0, window_s=0.5) == 0.0


@pytest.mark.parametrize(("points", "window"), [(([0.5, 1], [1, 1]), 1), (([0, 0], [1, 1]), 1), (([0, 1], [1, 1]), 0)])
def test_a_curve_out_of_order_is_refused(points, window):
    with pytest.raises(ValueError, match=r"increasing times|window_s"):
        smoothed(*points, 1.0, window_s=window)


def test_interval_of_the_median_has_its_level():
    five, twenty = median_of([5, 1, 4, 2, 3]), median_of(range(20))

    assert (five.value, five.interval, five.level) == (3, (1, 5), 1 - 2 / 32)
    assert twenty.interval == (5, 14)  # the textbook's 6th smallest and largest, 95.86 %
    assert twenty.level == pytest.approx(0.9586, abs=1e-4)


def test_runs_that_never_arrive_count_as_slowest():
    assert median_of([1.0, math.inf, math.inf]).value == math.inf
    assert median_of([1.0, 2.0, math.inf, math.inf]).value == math.inf
    assert median_of([0.0, 0.0, 3.0]).value == 0.0


def test_the_stated_coverage_is_that_of_many_samples():
    rng = np.random.default_rng(0)
    hits = 0
    for row in rng.exponential(1.0, (2000, 9)):
        low, high = median_of(row).interval
        hits += low <= math.log(2) <= high
    level = median_of(range(9)).level
    assert level > 0.95
    assert abs(hits / 2000 - level) < 5 * math.sqrt(level * (1 - level) / 2000)


def test_arrival_scales_with_time_exactly():
    seconds, losses = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [4.0, 3.0, 2.5, 2.0, 1.5, 1.25, 1.0]
    whole = arrival(seconds, losses, 1.8)

    assert arrival([t / 8 for t in seconds], losses, 1.8) == whole / 8
    assert 3.0 < whole < 6.0
    assert arrival(seconds, losses, 4.0) == 0.0
    assert arrival(seconds, losses, 0.5) == math.inf


def test_one_lucky_look_is_no_arrival():
    assert arrival([0.0, 8.0, 9.0, 9.1, 10.0], [4.0, 3.0, 0.5, 3.0, 3.0], 1.0) == math.inf
