import math
from fractions import Fraction

import pytest

from bounds.runtime import Uniform


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
