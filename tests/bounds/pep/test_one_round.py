"""The program of one round gives the published check values; what it allows cannot be beaten by its proofs."""

import dataclasses
import sys
from fractions import Fraction

import numpy as np
import pytest

from bounds import theorems
from bounds.pep import certify, least_floor, one_round, solve
from bounds.pep.solve import attempts

SMOOTH, CONVEX = ("gradient", 1), ("gradient", 0)
TABLE = [  # (about, rho), eta, the optima at tau = 2, 4, 8; L = sigma = 1, m = 4
    (SMOOTH, "0.05", (0.0131634, 0.0148146, 0.0182853)),
    (SMOOTH, "0.2", (0.0606349, 0.0877329, 0.152426)),
    (CONVEX, "0.05", (0.0126572, 0.0129674, 0.0135795)),
    (CONVEX, "0.2", (0.0525625, 0.0572562, 0.0650765)),
    (("gap", 0), "0.05", (0.00645234, 0.00684018, 0.00755539)),
    (("gap", 0), "0.2", (0.0283088, 0.0339137, 0.0423601)),
]
LIMITS = [  # excess/(eta^2 (tau - 1)) at m -> infinity, eta = .1, tau = 2, 3, 4
    (CONVEX, (0.0625, 0.0780, 0.0838)),
    (SMOOTH, (0.251, 0.323, 0.357)),
    (("gradient", Fraction(1, 10)), (0.0756, 0.0946, 0.1020)),
    (("gap", 0), (0.1250, 0.1210, 0.1173)),
]


def optimum(kind, x, m, tau):
    return solve(one_round(about=kind[0], x=Fraction(x), m=m, tau=tau, rho=Fraction(kind[1]))).value


@pytest.mark.every(3)
@pytest.mark.parametrize(("kind", "x", "values"), TABLE)
def test_check_values_to_six_digits(kind, x, values):
    programs = [one_round(about=kind[0], x=Fraction(x), m=4, tau=tau, rho=Fraction(kind[1])) for tau in (2, 4, 8)]
    optima = [solve(program).value for program in programs]
    assert [float(f"{value:.6g}") for value in optima] == list(values)
    for program, value in zip(programs, optima, strict=True):
        assert value * (1 - 1e-6) <= certify(program)[1].hi <= value * (1 + 3e-6)


@pytest.mark.parametrize(("kind", "m", "tau"), [(CONVEX, 4, 4), (("gradient", Fraction(1, 10)), 2, 2), (CONVEX, 1, 3)])
def test_small_steps_are_solved_as_accurately(kind, m, tau):
    """Gradients of the order of the rate beside noise of order one: the solver's first answer may be 2 % off."""
    program = one_round(about=kind[0], x=Fraction(1, 100), m=m, tau=tau, rho=Fraction(kind[1]))
    assert certify(program)[1].hi == pytest.approx(solve(program).value, rel=1e-6)


def test_an_answer_with_a_residual_is_no_optimum(monkeypatch):
    program = one_round(about="gradient", x=Fraction(1, 5), m=2, tau=2, rho=Fraction(0))
    answers = [dataclasses.replace(answer, residual=2e-5) for answer in attempts(program)]
    monkeypatch.setattr(sys.modules[solve.__module__], "attempts", lambda *_, **__: answers)
    with pytest.raises(ArithmeticError, match=r"residual 2\.0e-05 is above 1e-05"):
        solve(program)


@pytest.mark.parametrize(("kind", "values"), LIMITS)
def test_the_price_of_many_workers(kind, values):
    m, x = 10**6, 0.1
    once = x / m * (0.5 if kind[0] == "gap" else 1)
    prices = [(optimum(kind, "0.1", m, tau) - once) / (x**2 * (tau - 1)) for tau in (2, 3, 4)]
    assert prices == pytest.approx(values, abs=7e-5 if kind[0] == "gap" else 6e-4)


@pytest.mark.parametrize("m", [1, 2, 4, 1000])
@pytest.mark.parametrize("kind", [SMOOTH, CONVEX, ("gap", 0)])
def test_one_step_gives_the_published_value(m, kind):
    assert optimum(kind, "0.3", m, 1) == pytest.approx(0.3 / m * (0.5 if kind[0] == "gap" else 1), rel=1e-6)


@pytest.mark.parametrize("x", ["0.05", "0.2", "0.7"])
def test_two_steps_of_the_gap_have_a_closed_form(x):
    """A rational function that the solver did not know: the digits are those of the optimum."""
    excess = optimum(("gap", 0), x, 4, 2) - float(x) / 8
    assert excess == pytest.approx(0.75 * float(x) ** 2 * 3 / (28 - 4 * float(x)), rel=2e-5)


@pytest.mark.parametrize("kind", [SMOOTH, CONVEX, ("gradient", Fraction(1, 10)), ("gap", 0)])
@pytest.mark.parametrize(("m", "tau"), [(1, 3), (2, 2), (4, 4), (64, 3)])
@pytest.mark.parametrize("x", ["0.01", "0.3", "0.9"])
def test_the_optimum_lies_between_a_quadratic_and_the_sharper_bound(kind, m, tau, x):
    """Both proofs use inequalities of the program; a quadratic is a case of it."""
    value = optimum(kind, x, m, tau)
    at = {"eta": float(x), "L": 1.0, "sigma2": 1.0, "m": m, "tau": tau, "K": 1}
    if kind[0] == "gap":
        sharp = theorems.pasgd_gap_sharp(**at, R0=0.0)
    else:
        sharp = theorems.pasgd_smooth_sharp(**at, gap=0.0, rho=float(kind[1]))
        assert value >= least_floor(float(x), m, tau) * (1 - 1e-6)
    assert value <= sharp * (1 + 1e-6) + 1e-8


def test_a_floor_grows_with_the_rate_and_the_class():
    values = [optimum(CONVEX, x, 4, 3) for x in ("0.1", "0.2", "0.4")]
    assert values == sorted(values)
    classes = [optimum(("gradient", rho), "0.2", 4, 3) for rho in (0, Fraction(1, 10), Fraction(1, 2), 1)]
    assert classes == sorted(classes)
    assert optimum(CONVEX, "0.2", 1, 3) < 0.2  # one worker's round loses less than its steps one by one
    gaps = np.array([optimum(("gap", 0), x, 4, 3) / float(x) for x in ("0.1", "0.2", "0.4")])
    assert (np.diff(gaps) > 0).all()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"about": "loss"}, 'about must be "gradient" or "gap"'),
        ({"x": Fraction(0)}, "needs x > 0"),
        ({"m": 0}, "m >= 1"),
        ({"rho": Fraction(2)}, "0 <= rho <= 1"),
        ({"about": "gap", "rho": Fraction(1, 2)}, "convex F only: rho must be 0"),
    ],
)
def test_what_is_no_round_is_refused(wrong, match):
    with pytest.raises(ValueError, match=match):
        one_round(**({"about": "gradient", "x": Fraction(1, 10), "m": 4, "tau": 2, "rho": Fraction(0)} | wrong))
