"""MeanGrowth against its defining sum in fractions, and its ball twin against its float twin."""

from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy as sp

from bounds.special.growth import MeanGrowth


def definition(y, n):
    total, partial, power = Fraction(0), Fraction(0), Fraction(1)
    for _ in range(n):
        total += partial
        partial, power = partial + power, power * (1 + y)
    return total / n


@pytest.mark.parametrize("n", [1, 2, 3, 17, 300])
@pytest.mark.parametrize("y", ["0", "-1", "-1/2", "1/3", "-1/1000000", "1/100000000", "-3/10000", "1/3000", "1/29"])
def test_both_twins_equal_the_definition(y, n):
    y = Fraction(y)
    value = definition(y, n)
    assert float(MeanGrowth.kernel(float(y), n)) == pytest.approx(float(value), rel=1e-13)
    with flint.ctx.workprec(256):
        ball = MeanGrowth.ball(flint.arb(flint.fmpq(y.numerator, y.denominator)), flint.arb(n))
        assert ball.contains(flint.fmpq(value.numerator, value.denominator))
        assert float(ball.rad()) < 1e-20 * max(1, float(abs(ball)))


def test_kernel_broadcasts_and_has_no_step_at_its_switch():
    y, n = np.array([[0.1 / 7, np.nextafter(0.1 / 7, 0)]]), np.array([[7.0], [7.0]])
    values = MeanGrowth.kernel(y, n)
    assert values.shape == (2, 2)
    assert values[0, 0] == pytest.approx(values[0, 1], rel=1e-13)


def test_latex_names_both_arguments():
    y, n = sp.symbols("y n")
    assert sp.latex(MeanGrowth(y, n)) == r"\mathrm{MeanGrowth}\left(y, n\right)"
