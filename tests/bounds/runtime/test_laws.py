"""Expected maxima of every law against exact arithmetic, closed forms and simulation."""

import itertools
import math
from fractions import Fraction

import mpmath
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
from bounds.runtime.convolution import expected_max_of_sum, lattice_sum
from bounds.runtime.quadrature import expected_max_of

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
Z_FAMILY = 4.25  # two-sided level .0027 (three standard errors) shared by 9 random laws x 12 cells


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


@pytest.mark.parametrize("law", FINITE_VARIANCE[1:], ids=name)
def test_expected_maximum_agrees_with_simulation(law):
    assert max(abs(z) for z in simulated_scores(law, draws=1000, seed=11)) < Z_FAMILY


@pytest.mark.slow
@pytest.mark.parametrize("law", FINITE_VARIANCE[1:], ids=name)
def test_expected_maximum_agrees_with_a_long_simulation(law):
    assert max(abs(z) for z in simulated_scores(law, draws=60_000, seed=12)) < Z_FAMILY


def erlang_max(m, tau):
    """E max of m sums of tau unit exponentials: integrate 1 - (1 - e^-t p(t))^m term by term, in fractions."""
    p = [Fraction(1, math.factorial(i)) for i in range(tau)]
    power, total = [Fraction(1)], Fraction(0)
    for j in range(1, m + 1):
        new = [Fraction(0)] * (len(power) + tau - 1)
        for a, b in itertools.product(range(len(power)), range(tau)):
            new[a + b] += power[a] * p[b]
        power = new
        total -= (
            (-1) ** j
            * math.comb(m, j)
            * sum(c * math.factorial(i) / Fraction(j) ** (i + 1) for i, c in enumerate(power))
        )
    return total


@pytest.mark.parametrize(("m", "tau"), [(4, 1), (64, 1), (4, 4), (16, 4), (16, 10)])
def test_exponential_steps_agree_with_exact_fractions(m, tau):
    exact = float(erlang_max(m, tau) / tau)
    assert Exponential(2.0).expected_max(m=m, tau=tau) == pytest.approx(2 * exact, rel=1e-10)
    shifted = ShiftedExponential(shift=0.5, scale=2.0).expected_max(m=m, tau=tau)
    assert shifted == pytest.approx(0.5 + 2 * exact, rel=1e-10)
    assert expected_max_of_sum(Exponential(1.0), tau, m) / tau == pytest.approx(exact, rel=1e-10)


def irwin_hall_max(m, n):
    """E max of m sums of n uniform variables: F is a polynomial on every [j, j+1]; exact fractions in x - j."""
    total = Fraction(n)
    for j in range(n):
        cdf = [Fraction(0)] * (n + 1)
        for k in range(j + 1):
            for i in range(n + 1):
                cdf[i] += Fraction((-1) ** k * math.comb(n, k) * math.comb(n, i) * (j - k) ** (n - i))
        power = [Fraction(1)]
        for _ in range(m):
            power = [
                sum(power[a] * cdf[i - a] for a in range(len(power)) if 0 <= i - a <= n) for i in range(len(power) + n)
            ]
        total -= sum(c / (i + 1) for i, c in enumerate(power)) / Fraction(math.factorial(n)) ** m
    return total


@pytest.mark.parametrize(("m", "tau"), [(4, 1), (64, 1), (4, 2), (16, 2), (4, 4), (8, 10)])
def test_uniform_steps_agree_with_exact_fractions(m, tau):
    exact = 1 + 2 * float(irwin_hall_max(m, tau) / tau)
    assert Uniform(1.0, 3.0).expected_max(m=m, tau=tau) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("m", WORKERS)
def test_weibull_agrees_with_the_alternating_sum_at_many_digits(m):
    with mpmath.workdps(80):
        k = mpmath.mpf(7) / 10
        terms = ((-1) ** (j + 1) * mpmath.binomial(m, j) * mpmath.mpf(j) ** (-1 / k) for j in range(1, m + 1))
        exact = float(mpmath.gamma(1 + 1 / k) * mpmath.fsum(terms))
    assert Weibull(1.0, 0.7).expected_max(m=m) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("m", WORKERS)
@pytest.mark.parametrize("exponent", [1.5, 3.0])
def test_pareto_agrees_with_the_gamma_quotient_and_with_quadrature(m, exponent):
    law = Pareto(1.0, exponent)
    with mpmath.workdps(40):
        b = 1 - 1 / mpmath.mpf(exponent)
        exact = float(mpmath.gamma(m + 1) * mpmath.gamma(b) / mpmath.gamma(m + b))
    assert law.expected_max(m=m) == pytest.approx(exact, rel=1e-10)
    assert expected_max_of(law, m) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("m", [4, 64])
def test_quadrature_agrees_with_many_digit_integration(m):
    with mpmath.workdps(30):
        gamma_cdf = lambda t: mpmath.gammainc(2.5, 0, t, regularized=True)  # noqa: E731
        gamma = mpmath.quad(lambda t: 1 - gamma_cdf(t) ** m, [0, 1, 3, 6, 12, 25, 50, 100])
        log_normal = mpmath.quad(lambda t: 1 - mpmath.ncdf(2 * mpmath.log(t)) ** m, [0, 0.5, 1, 2, 4, 8, 20, 80])
    assert Gamma(2.5, 1.0).expected_max(m=m) == pytest.approx(float(gamma), rel=1e-10)
    assert LogNormal(0.0, 0.5).expected_max(m=m) == pytest.approx(float(log_normal), rel=1e-10)


@pytest.mark.parametrize(("m", "tau"), [(4, 1), (16, 2), (4, 4)])
def test_empirical_law_agrees_with_enumeration(m, tau):
    samples = [0.3, 1.1, 1.7, 2.0, 4.5]
    sums = sorted(sum(pick) / tau for pick in itertools.product(samples, repeat=tau))
    n = len(sums)
    exact = sum(x * ((j / n) ** m - ((j - 1) / n) ** m) for j, x in enumerate(sums, 1))
    assert Empirical(samples).expected_max(m=m, tau=tau) == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_one_worker_has_the_mean_also_on_the_lattice(law):
    assert law.expected_max(m=1, tau=7) == law.mean_s
    assert law.lower_s + law.excess(law.lower_s) == pytest.approx(law.mean_s, rel=1e-13)
    if law.lower_s < law.upper_s:
        assert lattice_sum(law, 7, 2**12).expected_max(1) / 7 == pytest.approx(law.mean_s, rel=1e-6)


@pytest.mark.parametrize("law", [law for law in FINITE_VARIANCE if law.lower_s < law.upper_s], ids=name)
def test_fft_agrees_with_the_direct_value_of_a_single_step(law):
    for m in WORKERS:
        assert expected_max_of_sum(law, 1, m) == pytest.approx(law.expected_max(m=m), rel=1e-6)


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_expected_maximum_falls_towards_the_mean(law):
    values = [law.expected_max(m=8, tau=tau) for tau in (1, 2, 10, 50)]
    assert all(a >= b * (1 - 1e-9) for a, b in itertools.pairwise(values))
    assert values[-1] >= law.mean_s * (1 - 1e-12)


@pytest.mark.parametrize("law", FINITE_VARIANCE, ids=name)
def test_moments_agree_with_the_samples(law):
    sample = law.sample(np.random.default_rng(4), (200_000,))
    assert law.mean_s == pytest.approx(sample.mean(), abs=5 * law.sd_s / math.sqrt(sample.size))
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


NOTE = {
    Exponential(1.0): (3.3807, 2.0626, 1.6337, 1.2654),
    ShiftedExponential(0.8, 0.2): (1.4761, 1.2125, 1.1267, 1.0531),
    LogNormal(-0.125, 0.5): (2.2179, 1.5545, 1.3332, 1.1405),
}


@pytest.mark.parametrize("law", NOTE, ids=name)
def test_sixteen_workers_have_the_known_values(law):
    for tau, value in zip(STEPS, NOTE[law], strict=True):
        assert law.expected_max(m=16, tau=tau) == pytest.approx(value, abs=6e-5)


def test_further_known_values():
    assert Weibull(1.0, 0.7).expected_max(m=16) == pytest.approx(5.9286, abs=5e-5)
    assert Gamma(2.5, 0.4).expected_max(m=16, tau=4) == pytest.approx(1.6337, abs=5e-5)
    assert Pareto(1 / 3, 1.5).expected_max(m=16) == pytest.approx(5.7097, abs=5e-5)


def test_heavy_tails_average_slowly():
    law = Pareto(1 / 3, 1.5)
    excess = [law.expected_max(m=16, tau=tau) - law.mean_s for tau in (40, 320)]
    assert excess[0] / excess[1] == pytest.approx(8 ** (1 - 1 / 1.5), rel=0.1)


def test_infinite_mean_is_said():
    assert Pareto(1.0, 1.0).expected_max(m=4, tau=10) == math.inf
    assert Pareto(1.0, 0.8).expected_max_above(3.0, m=4) == math.inf


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
