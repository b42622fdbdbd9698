import itertools
import math

import numpy as np
import pytest

from bounds.estimate import batch_means, expected_max_of_samples, worker_effect
from bounds.runtime import LogNormal, Pareto, ShiftedExponential


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_estimate_is_the_mean_maximum_over_all_subsets(m):
    samples = [0.3, 2.0, 1.1, 5.0, 0.7, 4.2]
    mean = np.mean([max(subset) for subset in itertools.combinations(samples, m)])
    assert expected_max_of_samples(samples, m=m).value == pytest.approx(mean, rel=1e-14)


def test_interval_is_the_jackknife_by_brute_force():
    x = np.random.default_rng(1).exponential(size=30)
    leave = [expected_max_of_samples(np.delete(x, i), m=5).value for i in range(30)]
    spread = math.sqrt(29 / 30 * np.sum((leave - np.mean(leave)) ** 2))
    found = expected_max_of_samples(x, m=5, level=0.95)
    stretch = math.exp(2.570581836 * spread / found.value)  # Student's t at 30/5 - 1 degrees of freedom
    assert found.interval.hi == pytest.approx(found.value * stretch, rel=1e-9)
    assert found.interval.lo == pytest.approx(found.value / stretch, rel=1e-9)


@pytest.mark.parametrize(
    ("law", "mean", "deviation"),
    [
        (ShiftedExponential(0.8, 0.2), 1.476, 0.065),
        (LogNormal(-0.125, 0.5), 2.218, 0.177),
        (Pareto(2 / 3, 3.0), 2.29, 0.43),
    ],
)
def test_two_hundred_samples_give_the_measured_accuracy(law, mean, deviation):
    rng = np.random.default_rng(2)
    values = np.array([expected_max_of_samples(law.sample(rng, (200,)), m=16).value for _ in range(600)])
    assert law.expected_max(m=16) == pytest.approx(mean, abs=2e-3)
    assert values.mean() == pytest.approx(mean, abs=4 * deviation / math.sqrt(values.size))
    assert values.std() == pytest.approx(deviation, rel=0.15 if law.sd_s < 0.55 else 0.4)


@pytest.mark.parametrize("law", [ShiftedExponential(0.8, 0.2), LogNormal(-0.125, 0.5)])
def test_interval_covers_at_about_its_level(law):
    rng, truth = np.random.default_rng(3), law.expected_max(m=16)
    hits = [truth in expected_max_of_samples(law.sample(rng, (200,)), m=16, level=0.95).interval for _ in range(500)]
    assert np.mean(hits) == pytest.approx(0.94, abs=0.035)  # n = 500, standard error .011


def test_many_samples_do_not_overflow():
    x = np.random.default_rng(4).uniform(size=20_000)
    assert expected_max_of_samples(x, m=500).value == pytest.approx(500 / 501, abs=1e-3)


def test_too_few_samples_give_a_value_without_upper_end():
    found = expected_max_of_samples([1.0, 3.0], m=2)
    assert (found.value, found.interval.hi) == (3.0, math.inf)
    with pytest.raises(ValueError, match="step times must be > 0; got 0"):
        expected_max_of_samples([1.0, 0.0], m=2)
    with pytest.raises(ValueError, match="got m = 3, N = 2: measure more steps"):
        expected_max_of_samples([1.0, 3.0], m=3)


def test_batch_means_keep_consecutive_steps_together():
    assert batch_means(np.arange(7.0), 3).tolist() == [1.0, 4.0]
    assert batch_means(np.arange(8.0).reshape(2, 4), 2).tolist() == [[0.5, 2.5], [4.5, 6.5]]
    with pytest.raises(ValueError, match="1 <= tau <= 4 measured steps; got tau = 5"):
        batch_means(np.zeros((2, 4)), 5)


def test_worker_effect_finds_a_slow_worker_and_only_then():
    rng = np.random.default_rng(5)
    equal = rng.exponential(size=(8, 100))
    slow = equal * np.array([1.0] * 7 + [1.5])[:, None]
    assert worker_effect(equal, rng=rng, permutations=199) > 0.05
    assert worker_effect(slow, rng=rng, permutations=199) <= 0.01
    with pytest.raises(ValueError, match="m >= 2"):
        worker_effect(np.zeros((1, 5)), rng=rng)


def test_worker_effect_is_uniform_without_an_effect():
    rng = np.random.default_rng(6)
    p = [worker_effect(rng.exponential(size=(4, 20)), rng=rng, permutations=39) for _ in range(200)]
    assert np.mean(np.array(p) <= 0.25) == pytest.approx(0.25, abs=0.13)  # n = 200, four standard errors
