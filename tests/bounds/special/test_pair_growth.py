"""PairGrowth against its defining sum in fractions, balls against floats."""

from fractions import Fraction

import flint
import numpy as np
import pytest

from bounds.special.growth import PairGrowth


@pytest.mark.parametrize("n", [1, 2, 3, 17, 300])
@pytest.mark.parametrize("y", ["0", "1e-12", "1/3000", "1/1000", "1/29", "1/3", "2", "-1/1000", "-1/7", "-1e-9"])
def test_both_twins_equal_the_definition(y, n):
    y = Fraction(y)
    partial = [sum(((1 + y) ** i for i in range(k)), Fraction(0)) for k in range(n)]
    value = sum((2 * (1 + y) * a * b / (2 + y) for a, b in zip(partial[1:], partial, strict=False)), Fraction(0)) / n
    assert float(PairGrowth.kernel(float(y), n)) == pytest.approx(float(value), rel=1e-11)
    with flint.ctx.workprec(4096):
        ball = PairGrowth.ball(flint.arb(flint.fmpq(y.numerator, y.denominator)), flint.arb(n))
        assert ball.contains(flint.fmpq(value.numerator, value.denominator))
        assert float(ball.rad()) <= 1e-20 * max(1.0, float(value))


def test_the_kernel_broadcasts():
    assert PairGrowth.kernel(np.array([[0.1], [0.0]]), np.array([3.0, 4.0, 5.0])).shape == (2, 3)
