import itertools
import math
from fractions import Fraction

import pytest

from bounds.runtime import Exponential, ShiftedExponential
from bounds.runtime.convolution import expected_max_of_sum


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


@pytest.mark.parametrize(("m", "tau"), [(4, 1), (64, 1), (4, 4), (64, 4), (16, 10), (4, 50)])
def test_exponential_steps_agree_with_exact_fractions(m, tau):
    exact = float(erlang_max(m, tau) / tau)
    assert Exponential(2.0).expected_max(m=m, tau=tau) == pytest.approx(2 * exact, rel=1e-10)
    shifted = ShiftedExponential(shift=0.5, scale=2.0).expected_max(m=m, tau=tau)
    assert shifted == pytest.approx(0.5 + 2 * exact, rel=1e-10)
    assert expected_max_of_sum(Exponential(1.0), tau, m) / tau == pytest.approx(exact, rel=1e-10)


def test_the_maximum_of_single_steps_is_the_harmonic_number():
    harmonic = sum(Fraction(1, k) for k in range(1, 17))
    assert Exponential(1.0).expected_max(m=16) == pytest.approx(float(harmonic), rel=1e-14)
    assert math.log(16) / float(harmonic) == pytest.approx(0.82, abs=0.005)  # what log m would give
