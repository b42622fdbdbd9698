import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from bounds.tau import TauStar, tau_star
from bounds.theorems.seconds import pasgd_runtime

AT = {"gap": 1, "delay_s": 10, "eta": "0.05", "L": 1, "sigma2": 1, "time_s": 10_000}


def test_value_by_hand():
    # 2 * 10 / (1.25e-4 * 10^4) = 16, by hand
    star = tau_star(**AT)
    assert star.real == 4.0
    assert (star.integer, star.cap, star.capped) == (4, 20, 4)


def test_derivation_reproduces_the_published_formula():
    proof = TauStar.derivation()
    gap, D, eta, L, sigma2, T = (
        sp.Symbol(name, positive=True) for name in ("gap", "delay_s", "eta", "L", "sigma2", "time_s")
    )
    published = sp.sqrt(2 * gap * D / (eta**3 * L**2 * sigma2 * T))
    ours = proof.minimiser.subs({s: sp.Symbol(s.name, positive=True) for s in proof.minimiser.free_symbols})
    assert sp.simplify(ours / published) == 1
    assert proof.minimiser == tau_star(**AT).derivation().minimiser


def test_integer_minimises_the_theorem_among_all_covered_taus():
    rng = np.random.default_rng(7)
    for _ in range(200):
        eta, L = float(10 ** rng.uniform(-3, -0.5)), 1.0
        at = {
            "gap": float(10 ** rng.uniform(-1, 2)),
            "delay_s": float(10 ** rng.uniform(-1, 2)),
            "eta": eta,
            "L": L,
            "sigma2": float(10 ** rng.uniform(-1, 1)),
            "time_s": float(10 ** rng.uniform(2, 5)),
        }
        star = tau_star(**at)
        values = pasgd_runtime(**at, m=4, step_s=1.0, tau=np.arange(1, star.cap + 1))
        assert values[star.capped - 1] <= values.min() * (1 + 1e-14)


def test_free_averaging_means_every_step():
    star = tau_star(**(AT | {"delay_s": 0}))
    assert (star.real, star.integer, star.capped) == (0.0, 1, 1)


def test_without_noise_only_the_cap_limits():
    star = tau_star(**(AT | {"sigma2": 0}))
    assert (star.real, star.integer, star.capped) == (math.inf, None, 20)


def test_too_large_a_learning_rate_covers_no_tau():
    star = tau_star(**(AT | {"eta": 2}))
    assert (star.cap, star.capped) == (None, None)


def test_extreme_inputs_do_not_overflow():
    star = tau_star(**(AT | {"time_s": Fraction(1, 10**300), "delay_s": 10**200}))
    assert star.real == pytest.approx(1.2649110640673518e252, rel=1e-14)  # sqrt(1.6e504) by hand


def test_wrong_sign_is_refused_with_the_rule():
    with pytest.raises(ValueError, match="tau_star needs 0 < eta"):
        tau_star(**(AT | {"eta": 0}))


@pytest.mark.parametrize("gap", [math.nan, math.inf, "much"])
def test_what_is_no_number_is_refused_with_its_name(gap):
    with pytest.raises(ValueError, match=f"tau_star needs 0 <= gap, finite; got gap = {gap}"):
        tau_star(**(AT | {"gap": gap}))


def test_latex_shows_the_square_root():
    assert tau_star(**AT).latex().startswith(r"\tau^* = \sqrt{\frac{2 D \Delta F}")
