"""E|u|_1^-2 against its average, another quadrature and its ball."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import quad
from scipy.special import erfcx

from bounds.special.inverse_square_of_l1 import InverseSquareOfL1, inverse_square_of_l1


@pytest.mark.parametrize(("d", "value"), [(1, 1.0), (2, 2 / math.pi), (3, None), (16, None)])
def test_inverse_square_of_the_l1_norm_equals_its_average(d, value):
    if value is not None:
        assert inverse_square_of_l1(d) == value
    g = np.random.default_rng(d).standard_normal((40_000, d))
    found = (g * g).sum(axis=1) / np.abs(g).sum(axis=1) ** 2
    assert abs(found.mean() - inverse_square_of_l1(d)) < 4 * found.std() / math.sqrt(len(g)) + 1e-12


@pytest.mark.parametrize("d", [3, 5, 64, 1000])
def test_trapezoidal_rule_equals_adaptive_quadrature(d):
    found = quad(lambda t: t * erfcx(t / math.sqrt(2)) ** d, 0, np.inf, epsabs=0, epsrel=1e-12, limit=200)[0]
    assert inverse_square_of_l1(d) == pytest.approx((d - 2) * found, rel=1e-10)


@pytest.mark.parametrize("d", [2, 3, 100, 10**4])
def test_float_value_lies_next_to_the_ball(d):
    with ctx.workprec(80):
        ball = InverseSquareOfL1.ball(arb(d))
    assert inverse_square_of_l1(d) == pytest.approx(float(ball.mid()), rel=1e-11)
    assert float(ball.rad()) < 1e-12 * float(ball.mid())
