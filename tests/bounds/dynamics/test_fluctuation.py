"""Mean and variance of a run's numbers against every outcome of two-point noise, and against the closed forms."""

from itertools import product

import numpy as np
import pytest

from bounds.dynamics import Quadratic, additive, multiplicative
from bounds.dynamics.fluctuation import at_mean, at_workers, spread

ETA, M = 0.3, 2


def outcomes(problem, *, tau, K, growth, squared):
    """(average before the K steps, value after them) of every equally likely outcome of noises of +1 and -1."""
    z, xi = np.moveaxis(np.array(list(product((-1.0, 1.0), repeat=2 * M * K))).reshape(-1, 2, K, M), 1, 0)
    x = np.full((len(z), M), problem.start[0])
    (curvature,), (noise,), values = problem.eigenvalues, problem.noise, []
    for k in range(K):
        values.append(squared(curvature * x))
        x = x - ETA * (curvature * x * (1 + np.sqrt(growth) * z[:, k]) + np.sqrt(noise) * xi[:, k])
        if (k + 1) % tau == 0:
            x = np.repeat(x.mean(axis=1, keepdims=True), M, axis=1)
    return np.mean(values, axis=0), squared(curvature * x)


@pytest.mark.parametrize("tau", [1, 3])
@pytest.mark.parametrize("growth", [0.0, 2.0])
@pytest.mark.parametrize(
    ("weights", "squared"),
    [(at_mean(M), lambda e: e.mean(axis=1) ** 2), (at_workers(M), lambda e: (e**2).mean(axis=1))],
    ids=["mean", "workers"],
)
def test_moments_equal_those_of_all_outcomes(tau, growth, weights, squared):
    problem = Quadratic([0.7], [1.3], [0.5])
    averages, ends = outcomes(problem, tau=tau, K=3, growth=growth, squared=squared)
    found = spread(problem, eta=ETA, m=M, taus=(tau,), K=3, weights=weights, noise_growth=growth, kurtosis=1.0)

    expected = [averages.mean(), averages.var(), ends.mean(), ends.var()]
    assert [found.mean, found.variance, found.last_mean, found.last_variance] == pytest.approx(expected, rel=1e-12)


def test_coordinates_add_up_and_equal_ones_are_counted():
    one = {"eta": 0.2, "m": 3, "taus": (2,), "K": 8, "weights": at_mean(3), "noise_growth": 1.0}
    parts = [spread(Quadratic([lam], [1.0], [0.4]), **one) for lam in (0.5, 1.0)]
    whole = spread(Quadratic([1.0, 0.5, 1.0], np.ones(3), np.full(3, 0.4)), **one)

    assert whole.variance == pytest.approx(parts[0].variance + 2 * parts[1].variance, rel=1e-12)
    assert whole.mean == pytest.approx(parts[0].mean + 2 * parts[1].mean, rel=1e-12)


@pytest.mark.parametrize("tau", [1, 4])
def test_means_are_those_of_the_closed_forms(tau):
    problem, at = Quadratic([0.25, 1.0], [1.0, -2.0], [0.5, 0.25]), {"eta": 0.2, "m": 4}
    run = {**at, "taus": (tau,), "K": 16}
    plain = spread(problem, weights=at_mean(4), **run)
    local = spread(problem, weights=at_workers(4), **run)
    growing = spread(problem, weights=at_mean(4), noise_growth=3.0, **run)
    end = spread(problem, weights=0.5 * at_mean(4), power=1, **run)

    mean = additive.mean_squared_gradient(problem, K=16, **at)
    assert plain.mean == pytest.approx(mean, rel=1e-12)
    assert local.mean == pytest.approx(mean + additive.mean_gradient_discrepancy(problem, tau=tau, **at), rel=1e-12)
    assert end.last_mean == pytest.approx(additive.suboptimality(problem, k=16, **at), rel=1e-12)
    law = multiplicative.mean_squared_gradient(problem, tau=tau, rounds=16 // tau, noise_growth=3.0, **at)
    assert growing.mean == pytest.approx(law, rel=1e-12)


def test_runs_with_the_same_noise_differ_by_less_than_independent_ones():
    problem, none = Quadratic(np.ones(1), np.ones(1), np.full(1, 0.4)), np.zeros((4, 4))
    both = np.block([[at_mean(4), none], [none, -at_mean(4)]])
    at = {"eta": 0.25, "m": 4, "K": 16, "noise_growth": 4.0}
    paired = spread(problem, taus=(8, 1), weights=both, **at)
    alone = [spread(problem, taus=(tau,), weights=at_mean(4), **at) for tau in (8, 1)]

    assert paired.mean == pytest.approx(alone[0].mean - alone[1].mean, rel=1e-10)
    assert 0 < paired.variance < alone[0].variance + alone[1].variance


def test_periods_and_weights_must_fit():
    problem = Quadratic([1.0], [1.0], [1.0])
    with pytest.raises(ValueError, match="whole rounds"):
        spread(problem, eta=0.1, m=2, taus=(3,), K=8, weights=at_mean(2))
    with pytest.raises(ValueError, match=r"weights of shape \(4, 4\)"):
        spread(problem, eta=0.1, m=2, taus=(2, 1), K=8, weights=at_mean(2))
