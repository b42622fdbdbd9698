import math

import numpy as np
import pytest
import sympy as sp

from bounds.tau import TauConvex, tau_convex, tau_star
from bounds.theorems.local_sgd import pasgd_convex_sharp

AT = {"gap": 1, "delay_s": 10, "eta": "0.05", "L": 1, "sigma2": 1, "time_s": 10_000}


@pytest.mark.parametrize("m", [2, 8, 1000])
def test_convexity_lengthens_the_period_by_the_stated_factor(m):
    factor = math.sqrt(8 / (1 - 1 / m))
    assert tau_convex(**AT, m=m).real == pytest.approx(tau_star(**AT).real * factor, rel=1e-14)


def test_derivation_reproduces_the_closed_form():
    proof = TauConvex.derivation()
    at = dict.fromkeys(proof.minimiser.free_symbols, 3)  # every symbol 3: tau*^2 = 2 * 9/3^7, times 8/(1 - 1/3) = 12
    assert sp.simplify(proof.minimiser.subs(at) - sp.sqrt(sp.Rational(2 * 9, 3**7) * 12)) == 0
    assert "sqrt" in tau_convex(**AT, m=4).latex()
    assert tau_convex(**AT, m=4).derivation() is proof


def test_integer_minimises_the_convex_bound():
    taus = np.arange(1, 200)
    values = pasgd_convex_sharp(gap=1, eta=0.05, L=1, sigma2=1, m=8, tau=taus, K=10_000 / (1 + 10 / taus))
    assert tau_convex(**AT, m=8).integer == taus[np.argmin(values)] == 12


def test_thirteen_local_steps_where_theorem_2_allows_four():
    assert tau_star(**AT).real == pytest.approx(4, rel=1e-12)
    assert tau_convex(**AT, m=4).real == pytest.approx(13.0639, abs=1e-4)
    assert tau_convex(**AT, m=4).integer == 13


def test_one_worker_never_needs_to_average():
    assert tau_convex(**AT, m=1).real == math.inf
    assert tau_convex(**(AT | {"delay_s": 0}), m=1).integer == 1
    assert tau_convex(**(AT | {"sigma2": 0}), m=4).integer is None


def test_too_large_a_learning_rate_is_refused():
    with pytest.raises(ValueError, match=r"eta L <= 1; got eta L = 1\.5: lower eta"):
        tau_convex(**(AT | {"eta": "1.5"}), m=4)
