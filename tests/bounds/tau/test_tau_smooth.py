import random
from fractions import Fraction

import pytest
import sympy as sp

from bounds.tau import TauSmooth, best_integer_cubic, tau_smooth

AT = {"gap": 1, "delay_s": 10, "eta": "0.05", "sigma2": 1, "time_s": 10_000, "third_derivative": "0.5"}


def test_published_check_value():
    best = tau_smooth(**AT)
    assert best.real == pytest.approx(58.944504, rel=1e-7)  # (16 * 10/(3.125e-7 * .25 * 1e4))^(1/3) = 204800^(1/3)
    assert best.real**3 == pytest.approx(204_800, rel=1e-13)
    assert best.integer == 59


def test_derivation_reproduces_the_closed_form():
    gap, D, eta, s, T, Q = (
        sp.Symbol(n, positive=True) for n in ("gap", "delay_s", "eta", "sigma2", "time_s", "third_derivative")
    )
    minimiser = TauSmooth.derivation().minimiser
    ours = minimiser.subs({s: sp.Symbol(s.name, positive=True) for s in minimiser.free_symbols})
    assert sp.simplify(ours / (16 * gap * D / (eta**5 * Q**2 * s**2 * T)) ** sp.Rational(1, 3)) == 1
    assert tau_smooth(**AT).derivation() is TauSmooth.derivation()
    assert tau_smooth(**AT).latex().startswith(r"\tau_3^* = \sqrt[3]{")


def test_cubic_integer_minimises_by_brute_force():
    draw = random.Random(21)
    for _ in range(10_000):
        cube = Fraction(draw.randrange(1, 10**7), draw.randrange(1, 3000))
        n = best_integer_cubic(cube)
        values = {k: 2 * cube / k + k * k for k in range(max(1, n - 2), n + 3)}
        assert values[n] == min(values.values())


def test_cubic_ties_and_ends():
    assert best_integer_cubic(Fraction(15)) == 2  # 2 * 15 = 2 * 3 * 5
    assert best_integer_cubic(Fraction(15) + Fraction(1, 100)) == 3
    assert best_integer_cubic(Fraction(0)) == 1
    with pytest.raises(ValueError, match="must be >= 0; got -1"):
        best_integer_cubic(Fraction(-1))


def test_limits():
    assert tau_smooth(**(AT | {"delay_s": 0})).integer == 1
    assert tau_smooth(**(AT | {"sigma2": 0})).integer is None
    with pytest.raises(ValueError, match="tau_smooth needs 0 < third_derivative"):
        tau_smooth(**(AT | {"third_derivative": 0}))
