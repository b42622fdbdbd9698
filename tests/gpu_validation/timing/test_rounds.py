import numpy as np
import pytest

from bounds.runtime import Constant, Exponential
from gpu_validation.timing import (
    delay_from_rounds,
    fit_rounds,
    predicted_seconds_per_iteration,
    slowest_seconds,
    step_seconds,
)
from operators import Key

STEPS = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 1.0, 1.0]])


def slowest_in_plain_python(step_s, tau):
    """The definition, round by round."""
    rounds = len(step_s[0]) // tau
    return [max(sum(times[r * tau : (r + 1) * tau]) for times in step_s) for r in range(rounds)]


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_the_slowest_worker_of_every_round(tau):
    assert slowest_seconds(STEPS, tau).tolist() == slowest_in_plain_python(STEPS.tolist(), tau)


def test_waiting_for_stragglers_is_not_counted_as_delay():
    m, tau, rounds, delay_s = 4, 3, 500, 0.7
    rng = np.random.default_rng(0)
    step_s = np.stack([step_seconds(Exponential(1.0), key=Key(0), worker=i, steps=tau * rounds) for i in range(m)])
    round_s = slowest_seconds(step_s, tau) + delay_s * rng.uniform(0.5, 1.5, rounds)

    estimate = delay_from_rounds(round_s, step_s, tau=tau, batch=5, level=1 - 1e-6)
    assert estimate.interval.lo <= delay_s <= estimate.interval.hi
    assert estimate.interval.hi - estimate.interval.lo < 0.2
    naive = float(np.mean(round_s)) - tau * 1.0  # against the mean step instead of the slowest worker's
    assert naive > delay_s + 1


def test_slope_and_intercept_of_exact_rounds_are_recovered_exactly():
    taus = [1, 4, 16, 1, 4, 16]
    fit = fit_rounds(taus, [0.02 + 0.005 * tau for tau in taus])

    assert fit.step_s.value == pytest.approx(0.005, rel=1e-9)
    assert fit.delay_s.value == pytest.approx(0.02, rel=1e-9)
    assert fit.seconds_per_iteration(4) == pytest.approx(0.01, rel=1e-9)


def test_intervals_of_noisy_rounds_cover_the_truth():
    rng = np.random.default_rng(1)
    covered, runs = 0, 200
    for _ in range(runs):
        taus = np.tile([1, 4, 16], 20)
        rounds = (0.02 + 0.005 * taus) * (1 + 0.05 * rng.standard_normal(taus.size))
        fit = fit_rounds(taus.tolist(), rounds)
        covered += fit.delay_s.interval.lo <= 0.02 <= fit.delay_s.interval.hi
    assert covered >= 174  # n = 200 at level .95, expected 190: P(fewer) < 1e-5


def test_the_model_by_hand():
    assert predicted_seconds_per_iteration(Constant(0.005), 0.02, tau=4, m=8) == pytest.approx(0.01)
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    assert predicted_seconds_per_iteration(Exponential(0.1), 0.0, tau=1, m=4) == pytest.approx(0.1 * harmonic)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="a multiple of tau = 3"):
        slowest_seconds(STEPS, 3)
    with pytest.raises(ValueError, match="one duration for each of the 2 rounds; got 4"):
        delay_from_rounds([1.0] * 4, STEPS, tau=2)
