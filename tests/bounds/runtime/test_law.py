"""What every law of compute time obeys; the exact values of each are in its own file."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from bounds.runtime import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Pareto,
    ShiftedExponential,
    ShiftedGamma,
    Uniform,
    Weibull,
)

FINITE_VARIANCE = (
    Constant(0.7),
    Exponential(mean=1.0),
    ShiftedExponential(shift=0.8, scale=0.2),
    ShiftedGamma(shift=0.3, shape=2.0, scale=0.35),
    Pareto(minimum=2 / 3, exponent=3.0),
    Uniform(low=0.5, high=1.5),
    Weibull(scale=1.0, shape=0.7),
    Gamma(shape=2.5, scale=0.4),
    LogNormal(log_mean=-0.125, log_sd=0.5),
    Empirical([0.91, 0.95, 0.97, 1.0, 1.02, 1.05, 1.31, 1.74, 2.6]),
)
WORKERS, STEPS = (4, 16, 64), (1, 4, 10, 50)
CELLS = (len(FINITE_VARIANCE) - 1) * len(WORKERS) * len(STEPS)  # the constant is exact
Z_FAMILY = NormalDist().inv_cdf(1 - 0.0027 / (2 * CELLS))  # the level of three standard errors, shared: 4.2


def name(law):
    return type(law).__name__


def simulated_scores(law, draws, seed):
    """z scores of (simulated - computed) for all cells; ``draws`` runs of 64 workers and 50 steps."""
    rng = np.random.default_rng(seed)
    maxima = {cell: [] for cell in itertools.product(WORKERS, STEPS)}
    for _ in range(draws // 500):
        sums = np.cumsum(law.sample(rng, (500, 64, 50)), axis=2)
        for m, tau in maxima:
            maxima[m, tau].append((sums[:, :, tau - 1] / tau).reshape(-1, m).max(axis=1))
    for (m, tau), parts in maxima.items():
        values = np.concatenate(parts)
        yield (values.mean() - law.expected_max(m=m, tau=tau)) / (values.std(ddof=1) / math.sqrt(values.size))


@pytest.mark.every(3)
@pytest.mark.parametrize("law", FINITE_VARIANCE[1:], ids=name)
def test_expected_maximum_agrees_with_simulation(law):
    assert max(abs(z) for z in simulated_scores(law, draws=1000, seed=11)) < Z_FAMILY


@pytest.mark.slow
@pytest.mark.parametrize("law", FINITE_VARIANCE[1:], ids=name)
def test_expected_maximum_agrees_with_a_long_simulation(law):
    assert max(abs(z) for z in simulated_scores(law, draws=60_000, seed=12)) < Z_FAMILY


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_expected_maximum_falls_towards_the_mean(law):
    assert law.expected_max(m=1, tau=7) == law.mean_s
    assert law.lower_s + law.excess(law.lower_s) == pytest.approx(law.mean_s, rel=1e-13)
    values = [law.expected_max(m=8, tau=tau) for tau in (1, 2, 10, 50)]
    assert all(a >= b * (1 - 1e-9) for a, b in itertools.pairwise(values))
    assert values[-1] >= law.mean_s * (1 - 1e-12)


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_moments_agree_with_the_samples(law):
    sample = law.sample(np.random.default_rng(4), (200_000,))
    assert law.mean_s == pytest.approx(math.fsum(sample) / sample.size, abs=5 * law.sd_s / math.sqrt(sample.size))
    for tail in (0.5, 0.05):
        assert np.mean(sample > law.quantile(tail)) <= tail + 5 * math.sqrt(tail / sample.size)
        t = law.mean_s * (1 + tail)
        assert float(law.sf(t)) == pytest.approx(np.mean(sample > t), abs=5 * math.sqrt(0.25 / sample.size))
    excess = np.maximum(sample - 1.2 * law.mean_s, 0)
    assert law.excess(1.2 * law.mean_s) == pytest.approx(excess.mean(), abs=5 * excess.std() / math.sqrt(sample.size))


def test_spread_and_skewness_have_their_textbook_values():
    laws = [law for law in FINITE_VARIANCE if not isinstance(law, Pareto | Constant | Empirical)]
    rng = np.random.default_rng(5)
    for law in [*laws, Pareto(1.0, 9.0)]:
        sample = law.sample(rng, (400_000,))
        centred = (sample - law.mean_s) / law.sd_s
        assert np.mean(centred**2) == pytest.approx(1, abs=0.03), law
        assert np.mean(centred**3) == pytest.approx(law.skewness, abs=0.1 + 0.1 * law.skewness), law


KNOWN = {
    Exponential(1.0): (3.3807, 2.0626, 1.6337, 1.2654),
    ShiftedExponential(0.8, 0.2): (1.4761, 1.2125, 1.1267, 1.0531),
    LogNormal(-0.125, 0.5): (2.2179, 1.5545, 1.3332, 1.1405),
}


@pytest.mark.parametrize("law", KNOWN, ids=name)
def test_sixteen_workers_have_the_known_values(law):
    for tau, value in zip(STEPS, KNOWN[law], strict=True):
        assert law.expected_max(m=16, tau=tau) == pytest.approx(value, abs=6e-5)


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_maximum_with_a_floor_is_between_its_parts(law):
    floor = law.mean_s * 1.3
    above = law.expected_max_above(floor, m=4)
    sample = np.maximum(law.sample(np.random.default_rng(6), (100_000, 4)).max(axis=1), floor)
    error = 5 * sample.std() / math.sqrt(sample.size) + 1e-12
    assert above == pytest.approx(sample.mean(), abs=error)
    assert law.expected_max_above(0.0, m=4) == law.expected_max(m=4)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Exponential(0.0), "mean must be finite and > 0; got mean = 0.0"),
        (lambda: Constant(-1.0), "mean must be finite and >= 0; got mean = -1.0"),
        (lambda: Uniform(2.0, 1.0), "high - low must be finite and > 0"),
        (lambda: LogNormal(math.inf, 1.0), "log_mean must be finite"),
        (lambda: Empirical([]), "at least one sample"),
        (lambda: Empirical([1.0, math.nan]), "each sample must be finite and >= 0"),
        (lambda: Exponential(1.0).expected_max(m=0), "m must be an integer >= 1; got m = 0"),
        (lambda: Exponential(1.0).expected_max(m=2, tau=1.5), "tau must be an integer >= 1; got tau = 1.5"),
    ],
)
def test_impossible_arguments_are_refused_with_the_rule(build, message):
    with pytest.raises(ValueError, match=message):
        build()
