import math
import random
from fractions import Fraction

import pytest
import sympy as sp

from bounds.tau import best_integer, tau_cap
from bounds.theorems.local_sgd import pasgd_iterations


def test_best_integer_minimises_by_brute_force():
    draw = random.Random(20)
    for _ in range(10_000):
        square = Fraction(draw.randrange(1, 10**6), draw.randrange(1, 2000))
        n = best_integer(square)
        around = range(1, math.isqrt(math.ceil(square)) + 4)
        best = min(square / k + k for k in around)
        assert square / n + n == best
        assert n == 1 or n * (n - 1) <= square <= n * (n + 1)


def test_ties_go_to_the_smaller_integer_also_in_binary():
    assert best_integer(Fraction(6)) == 2
    assert best_integer(Fraction(6.000000000000001)) == 2
    assert best_integer(Fraction(6.0001)) == 3


@pytest.mark.parametrize(("square", "n"), [(Fraction(121, 100), 1), (Fraction(0), 1), (Fraction(10**20), 10**10)])
def test_best_integer_is_not_the_ceiling(square, n):
    assert best_integer(square) == n


def test_negative_square_is_refused():
    with pytest.raises(ValueError, match="must be >= 0; got -1"):
        best_integer(Fraction(-1))


def test_learning_rate_one_over_n_allows_exactly_n_steps():
    assert all(tau_cap(eta_L=Fraction(1 / n)) == n for n in range(1, 5000))
    assert all(tau_cap(eta_L=Fraction(1, n)) == n for n in range(1, 5000))


def test_cap_is_the_last_tau_inside_the_theorem():
    draw = random.Random(3)
    for _ in range(300):
        x = draw.uniform(1e-4, 1)
        cap = tau_cap(eta_L=Fraction(x))
        inside = {"gap": 1, "eta": x, "L": 1, "sigma2": 1, "m": 4, "K": 10}
        assert pasgd_iterations.holds_at(tau=cap, **inside)
        assert not pasgd_iterations.holds_at(tau=cap + 1, **inside)


def test_no_tau_is_covered_beyond_one_over_L():
    assert tau_cap(eta_L=Fraction(101, 100)) is None
    assert tau_cap(eta_L=Fraction(3, 10)) == 3
    with pytest.raises(ValueError, match="eta L must be > 0"):
        tau_cap(eta_L=Fraction(0))


def test_the_rule_is_the_sign_of_one_difference():
    a, b, n = sp.symbols("a b n", positive=True)
    quadratic = a / (n + 1) + b * (n + 1) - a / n - b * n
    assert sp.simplify(quadratic - (b - a / (n * (n + 1)))) == 0
    cubic = a / (n + 1) + b * (n + 1) ** 2 - a / n - b * n**2
    assert sp.simplify(cubic - (b * (2 * n + 1) - a / (n * (n + 1)))) == 0
