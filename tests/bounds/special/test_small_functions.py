"""Binomials, quantiles, lattice sums and the Sparse Dithering constants against direct computation."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaincc, ndtr

from bounds.enclosure import enclose
from bounds.special.elementary import Log2Binomial, ThetaTwo
from bounds.special.normal import ChiSquareUpperQuantile, NormalUpperQuantile
from bounds.special.sparse_dithering_rate import SparseDitheringIntegerRate, SparseDitheringRate

x, y = sp.symbols("x y", positive=True)


def entropy(q):
    return -q * np.log2(q) - (1 - q) * np.log2(1 - q)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_binomial_agrees_with_the_exact_integer(first, second):
    k, d = sorted((first, second))
    exact = math.log2(math.comb(d, k))
    assert float(Log2Binomial.kernel(d, k)) == pytest.approx(exact, rel=1e-11, abs=1e-11)
    interval = enclose(Log2Binomial(x, y), {x: Fraction(d), y: Fraction(k)})
    assert interval.lo <= exact * (1 + 1e-15)
    assert interval.hi >= exact * (1 - 1e-15)


@given(st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**7))
def test_normal_quantile_inverts_the_tail(p):
    assert ndtr(-float(NormalUpperQuantile.kernel(float(p)))) == pytest.approx(float(p), rel=1e-12)
    interval = enclose(NormalUpperQuantile(x) + 10, {x: p})
    assert interval.relative_width <= 1e-15
    assert interval.midpoint == pytest.approx(10 + float(NormalUpperQuantile.kernel(float(p))), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("p", ["0.001", "0.5", "0.99"])
def test_chi_square_quantile_inverts_the_tail(n, p):
    value = float(ChiSquareUpperQuantile.kernel(n, float(p)))
    assert gammaincc(n / 2, value / 2) == pytest.approx(float(p), rel=1e-11)
    interval = enclose(ChiSquareUpperQuantile(x, y), {x: Fraction(n), y: Fraction(p)})
    assert interval.relative_width <= 1e-15
    assert interval.midpoint == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("s", ["0.001", "0.16", "1", "3", "3.1416", "10", "300"])
def test_theta_is_its_defining_sum(s):
    direct = 2 * math.fsum(math.exp(-float(s) * (n - 0.5) ** 2) for n in range(1, 2000))
    assert float(ThetaTwo.kernel(float(s))) == pytest.approx(direct, rel=1e-13)
    interval = enclose(ThetaTwo(x), {x: Fraction(s)})
    assert interval.relative_width <= 1e-15
    assert interval.midpoint == pytest.approx(direct, rel=1e-13)


def mean_level(budget):
    """Largest mean level under a mean budget, by brute force over mixtures of two levels."""
    best = 0.0
    for low in range(1, 60):
        for high in range(low, 60):
            a, b = (low - 0.5) ** 2, (high - 0.5) ** 2
            if a <= budget:
                share = 1.0 if b == a else min(1.0, (budget - a) / (b - a))
                best = max(best, low + share * (high - low))
    return best


@pytest.mark.parametrize(
    ("nu", "real", "integer"),
    [
        ("0.5", 2.5550, 2.4728),
        ("0.2", 2.9227, 2.8478),
        ("0.1", 3.3435, 3.3069),
        ("0.05", 3.9482, 3.9319),
        ("0.01", 6.5853, 6.5639),
    ],
)
def test_sparse_dithering_constants_are_the_maxima(nu, real, integer):
    q = np.linspace(1e-4, 1 - 1e-6, 4001)
    value = float(nu)
    by_grid = (entropy(q) + 1.5 * q + np.sqrt(q / (4 * value))).max()
    integer_by_grid = max(entropy(s) + s + s * mean_level(1 / (4 * value * s)) for s in q[::40])
    assert float(SparseDitheringRate.kernel(value)) == pytest.approx(by_grid, abs=1e-6)
    assert 0 <= float(SparseDitheringIntegerRate.kernel(value)) - integer_by_grid < 1e-3
    for function, published in ((SparseDitheringRate, real), (SparseDitheringIntegerRate, integer)):
        interval = enclose(function(x), {x: Fraction(nu)})
        assert interval.relative_width <= 1e-15
        assert abs(interval.midpoint - published) <= 0.6e-4
        assert float(function.kernel(value)) == pytest.approx(interval.midpoint, rel=1e-13)


def test_integer_constant_is_continuous_where_its_piece_changes():
    nu = np.linspace(0.009, 0.9, 20_001)
    values = SparseDitheringIntegerRate.kernel(nu)
    assert np.all(np.diff(values) < 0)
    assert np.all(values <= SparseDitheringRate.kernel(nu))
    assert np.max(np.abs(np.diff(values))) < 0.06


def test_extreme_parameters_stay_finite():
    nu = np.array([1e-12, 1e-6, 1 - 1e-9])
    with np.errstate(all="raise", under="ignore"):
        assert np.all(np.isfinite(SparseDitheringRate.kernel(nu)))
        assert np.all(np.isfinite(SparseDitheringIntegerRate.kernel(nu)))
