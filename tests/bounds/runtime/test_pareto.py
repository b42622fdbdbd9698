import math

import mpmath
import numpy as np
import pytest

from bounds.runtime import Pareto
from bounds.runtime.quadrature import expected_max_of


@pytest.mark.parametrize("m", [4, 16, 64])
@pytest.mark.parametrize("exponent", [1.5, 3.0])
def test_pareto_agrees_with_the_gamma_quotient_and_with_quadrature(m, exponent):
    law = Pareto(1.0, exponent)
    with mpmath.workdps(40):
        b = 1 - 1 / mpmath.mpf(exponent)
        exact = float(mpmath.gamma(m + 1) * mpmath.gamma(b) / mpmath.gamma(m + b))
    assert law.expected_max(m=m) == pytest.approx(exact, rel=1e-10)
    assert expected_max_of(law, m) == pytest.approx(exact, rel=1e-10)


def two_step_tail(t, exponent):
    """P(X1 + X2 > t), minimum 1: both above t/2, or one below and the other above the rest."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    log_x = np.log(t / 2)[:, None] * (nodes + 1) / 2
    x = np.exp(log_x)
    one_below = (exponent * x**-exponent * (t[:, None] - x) ** -exponent) @ weights * np.log(t / 2) / 2
    return 2 * one_below + (t / 2) ** (-2 * exponent)


@pytest.mark.parametrize(("m", "exponent"), [(4, 3.0), (16, 3.0), (64, 2.5)])
def test_two_steps_agree_with_direct_convolution(m, exponent):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = 2 * np.concatenate([1 + 2.0 ** -np.arange(20, -1, -1), 2.0 ** np.arange(2, 50)])
    width = np.diff(np.concatenate([[2.0], edges]))
    t = np.concatenate([[2.0], edges[:-1]])[:, None] + width[:, None] * (nodes + 1) / 2
    tail = -np.expm1(m * np.log1p(-np.minimum(two_step_tail(t.ravel(), exponent), 1 - 1e-16))).reshape(t.shape)
    exact = 2 + float(np.sum(width * (tail @ weights))) / 2
    assert Pareto(1.0, exponent).expected_max(m=m, tau=2) == pytest.approx(exact / 2, rel=1e-9)


def test_known_value_of_sixteen_workers():
    assert Pareto(1 / 3, 1.5).expected_max(m=16) == pytest.approx(5.7097, abs=5e-5)


def test_heavy_tails_average_slowly():
    law = Pareto(1 / 3, 1.5)
    excess = [law.expected_max(m=16, tau=tau) - law.mean_s for tau in (40, 320)]
    assert excess[0] / excess[1] == pytest.approx(8 ** (1 - 1 / 1.5), rel=0.1)


def larger_of_two_sums(exponent, tau):
    """E max of two sums of tau steps, over tau: E S + E|S - S'|/2, the latter from |phi|^(2 tau) alone."""
    a = mpmath.mpf(exponent)

    def density(x):  # of the integral of (1 - |phi(u)|^(2 tau))/u^2 in x = log u
        u = mpmath.exp(x)
        return (1 - abs(a * mpmath.expint(a + 1, -1j * u)) ** (2 * tau)) / u

    with mpmath.workdps(30):
        body = mpmath.quad(density, [-22, -16, -12, -9, -7, -5, -3, -1, 0, 1, 2, 4, 6], maxdegree=4)
        small, large = density(mpmath.mpf(-22)) / (a - 1), mpmath.exp(-6)  # density ~ u^(a - 1); phi = 0
        return float(a / (a - 1) + (small + body + large) / (mpmath.pi * tau))


@pytest.mark.slow
def test_the_larger_of_two_sums_agrees_with_the_characteristic_function():
    assert larger_of_two_sums(1.5, 1000) == pytest.approx(3.2380636561, rel=1e-9)


@pytest.mark.parametrize(
    ("exponent", "tau", "exact"),  # by larger_of_two_sums
    [
        (1.2, 10, 9.2965779028),
        (1.2, 100, 8.3469041318),
        (1.2, 1000, 7.6205244879),
        (1.5, 10, 3.9183961671),
        (1.5, 100, 3.4843071766),
        (1.5, 1000, 3.2380636561),
        (1.9, 1000, 2.1767780940),
        (2.0, 100, 2.1398258182),
        (2.1, 100, 2.0278377718),
    ],
)
def test_many_steps_of_infinite_variance_are_good_to_a_millionth(exponent, tau, exact):
    assert Pareto(1.0, exponent).expected_max(m=2, tau=tau) == pytest.approx(exact, rel=1e-6)


def test_sixteen_workers_with_a_thousand_steps_agree_with_a_fourfold_finer_lattice():
    assert Pareto(1.0, 1.5).expected_max(m=16, tau=1000) == pytest.approx(4.6583758, rel=1e-6)


def test_infinite_mean_is_said():
    assert Pareto(1.0, 1.0).expected_max(m=4, tau=10) == math.inf
    assert Pareto(1.0, 0.8).expected_max_above(3.0, m=4) == math.inf
