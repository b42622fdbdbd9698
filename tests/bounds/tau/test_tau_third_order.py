"""The integer that minimises the proved price of local steps where the Hessian is Lipschitz."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from bounds.tau import TauThirdOrder, tau_convex, tau_third_order
from bounds.tau.arguments import exact_arguments
from bounds.tau.tau_third_order import third_order_price
from bounds.theorems import pasgd_smooth_sharp, pasgd_third_order, pasgd_third_order_convex

AT = {"gap": 1, "delay_s": 10, "eta": "0.05", "L": 1, "sigma2": 1, "time_s": 10_000}


@pytest.mark.parametrize("kurtosis", [1, 3, 9])
def test_the_readme_example_has_55_steps_for_every_kurtosis(kurtosis):
    best = tau_third_order(**AT, m=4, hessian_lipschitz="0.5", kurtosis=kurtosis)
    assert best.integer == 55
    assert best.real == pytest.approx(54.7192, abs=5e-5)


@pytest.mark.parametrize(("hessian_lipschitz", "steps"), [("0.1", 160), ("0.5", 55), (2, 22), (5, 12), (10, 13)])
def test_the_smaller_price_counts_at_every_step(hessian_lipschitz, steps):
    assert tau_third_order(**AT, m=4, hessian_lipschitz=hessian_lipschitz).integer == steps


def recursion(n, *, eta, L, sigma2, m, hessian_lipschitz, kurtosis, rho):
    """The price of n local steps by the recursions of E V and E V^2, step by step."""
    factor, ev, ev2, total = (1 + eta * rho) ** 2, 0.0, 0.0, 0.0
    a = (1 - 1 / m**2) + (1 - 1 / m) ** 2 * (kurtosis - 3) / m
    for _ in range(n):
        total += min(((L + rho) / 2) ** 2 * ev, hessian_lipschitz**2 / 4 * ev2)
        ev2 = factor**2 * ev2 + 2 * (1 + 1 / m) * eta**2 * sigma2 * factor * ev + a * eta**4 * sigma2**2
        ev = factor * ev + (1 - 1 / m) * eta**2 * sigma2
    return total / n


@pytest.mark.parametrize("rho", ["0", "1e-9", "0.1", "1"])
@pytest.mark.parametrize(("m", "kurtosis", "Q"), [(2, 1, "0.3"), (4, 3, 2), (100, 20, 6), (3, 2, 40)])
def test_no_other_integer_has_a_smaller_price(m, kurtosis, Q, rho):
    best = tau_third_order(**AT, m=m, kurtosis=kurtosis, hessian_lipschitz=Q, rho=rho).integer
    constants = {"m": m, "kurtosis": kurtosis, "hessian_lipschitz": float(Q), "rho": float(rho)}
    constants |= {"eta": 0.05, "L": 1.0, "sigma2": 1.0}
    values = [2 * 10 / (0.05 * 1e4 * n) + recursion(n, **constants) for n in range(1, 250)]
    assert values[best - 1] <= min(values) * (1 + 1e-12)


@pytest.mark.parametrize("rho", ["0", "0.3"])
@pytest.mark.parametrize("Q", ["0.01", "0.5", 30])
def test_the_turn_is_the_first_step_at_which_the_second_price_is_not_larger(rho, Q):
    given = exact_arguments("", eta="0.05", L=1, sigma2=1, m=4, hessian_lipschitz=Q, kurtosis=3, rho=rho)
    price = third_order_price(**given)
    before = replace(price, second=10**9 * price.second)  # its steps have the third-order price alone
    second = replace(price, pairs=10**9 * price.pairs, once=10**9 * price.once)
    turn = price.turn
    assert second.of_step(turn) <= before.of_step(turn)
    assert turn == 1 or second.of_step(turn - 1) > before.of_step(turn - 1)


def test_extreme_constants_are_answered_soon_or_refused():
    far = tau_third_order(**(AT | {"delay_s": "1e300"}), m=4, hessian_lipschitz="1e-200")
    assert far.integer > 10**200
    with pytest.raises(ValueError, match=r"needs prices of a step in .* got about 1e-3, about 1e594, "):
        tau_third_order(**AT, m=4, hessian_lipschitz="1e300", rho=1)


def test_at_a_large_constant_the_convex_rule_remains():
    assert tau_third_order(**AT, m=4, hessian_lipschitz=1e3).integer == tau_convex(**AT, m=4).integer == 13


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_the_integer_minimises_the_bounds_of_the_catalogue(rho):
    n = np.arange(1.0, 120)
    at = {"gap": 1, "eta": 0.05, "L": 1, "sigma2": 1, "m": 4, "tau": n, "K": 1e4 / (1 + 10 / n), "rho": rho}
    third = pasgd_third_order(**at, hessian_lipschitz=0.5, kurtosis=3)
    best = tau_third_order(**AT, m=4, hessian_lipschitz="0.5", rho=str(rho)).integer
    assert best == n[third.argmin()]
    assert third.min() < 0.8 * pasgd_smooth_sharp(**at).min()
    if rho == 0:
        del at["rho"]
        assert pasgd_third_order_convex(**at, hessian_lipschitz=0.5, kurtosis=3) == pytest.approx(third, rel=1e-12)


def test_the_minimiser_of_the_leading_order_is_derived():
    assert TauThirdOrder.derivation().minimiser is not None
    assert TauThirdOrder.latex().startswith(r"\tau^* = \sqrt[3]{")


def test_ends_and_refusals():
    rest = {"m": 4, "hessian_lipschitz": 1}
    assert tau_third_order(**AT | {"delay_s": 0}, **rest).integer == 1
    assert tau_third_order(**AT | {"sigma2": 0}, **rest).real == math.inf
    assert tau_third_order(**AT, **rest | {"m": 1}).integer is None
    for wrong, words in (
        ({"eta": 2}, r"eta L <= 1; got eta L = 2\.0: lower eta"),
        ({"rho": 2}, r"rho <= L; got rho = 2\.0"),
        ({"kurtosis": 0.5}, "1 <= kurtosis"),
        ({"hessian_lipschitz": 0}, "0 < hessian_lipschitz"),
    ):
        with pytest.raises(ValueError, match=words):
            tau_third_order(**AT | rest | wrong)


def test_the_best_period_grows_without_jumps_as_the_budget_shrinks():
    taus = [tau_third_order(**AT | {"time_s": t}, m=8, hessian_lipschitz=1).integer for t in np.geomspace(1, 1e9, 40)]
    assert all(a >= b for a, b in itertools.pairwise(taus))
