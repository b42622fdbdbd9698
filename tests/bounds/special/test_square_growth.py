"""SquareGrowth and PowerQuotient against their defining sums in fractions, balls against floats."""

from fractions import Fraction

import flint
import numpy as np
import pytest

from bounds.special.elementary import PowerQuotient
from bounds.special.growth import SquareGrowth


def ball_of(value):
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 300])
@pytest.mark.parametrize("y", ["0", "1/100000000", "1/3000", "1/301", "1/299", "1/29", "1/3", "2"])
def test_both_twins_of_square_growth_equal_the_definition(y, n):
    y = Fraction(y)
    value = sum((k * (k - 1) * (1 + y) ** (n - 1 - k) for k in range(n)), Fraction(0))
    assert float(SquareGrowth.kernel(float(y), n)) == pytest.approx(float(value), rel=1e-11)
    with flint.ctx.workprec(4096):
        ball = SquareGrowth.ball(ball_of(y), flint.arb(n))
        assert ball.contains(flint.fmpq(value.numerator, value.denominator))
        assert float(ball.rad()) <= 1e-20 * max(1.0, float(value))


@pytest.mark.parametrize("n", [1, 2, 7, 64])
@pytest.mark.parametrize(("a", "b"), [("4", "2"), ("4", "4"), ("4", "4000001/1000000"), ("2", "1000"), ("4", "3")])
def test_both_twins_of_power_quotient_equal_the_definition(a, b, n):
    a, b = Fraction(a), Fraction(b)
    value = sum(a**i * b ** (n - 1 - i) for i in range(n))
    for first, second in ((a, b), (b, a)):
        assert float(PowerQuotient.kernel(float(first), float(second), n)) == pytest.approx(float(value), rel=1e-12)
        with flint.ctx.workprec(2048):
            ball = PowerQuotient.ball(ball_of(first), ball_of(second), flint.arb(n))
            assert ball.contains(flint.fmpq(value.numerator, value.denominator))


def test_kernels_broadcast():
    assert SquareGrowth.kernel(np.array([[0.1], [0.0]]), np.array([3.0, 4.0, 5.0])).shape == (2, 3)
    assert PowerQuotient.kernel(4.0, np.array([2.0, 4.0]), 3.0) == pytest.approx([28, 48], rel=1e-14)
