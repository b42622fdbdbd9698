"""Exact compressed local-update SGD against enumeration of the sparsifier and published check values."""

from fractions import Fraction
from itertools import product

import pytest

from bounds.dynamics import Quadratic, additive, compressed, reference_quadratic

PROBLEM = Quadratic([0.25, 1.0], [1.0, -2.0], [0.5, 0.25])


def exact_gradients(eta, m, tau, omega, rounds):
    """E|grad F(xbar)|^2 at every gradient and at the end, enumerating which workers keep a coordinate."""
    keep = Fraction(1, 1 + omega)
    inner = [Fraction(0)] * (tau * rounds)
    final = Fraction(0)
    for lam, e, s in zip(PROBLEM.eigenvalues, PROBLEM.start, PROBLEM.noise, strict=True):
        lam, moment, s = Fraction(lam), Fraction(e) ** 2, Fraction(s)
        for r in range(rounds):
            shrink, variance = Fraction(1), Fraction(0)  # a worker's e_i = shrink * e + noise of this variance
            for k in range(tau):
                inner[r * tau + k] += lam**2 * (shrink**2 * moment + variance / m)
                shrink, variance = shrink * (1 - eta * lam), variance * (1 - eta * lam) ** 2 + eta**2 * s
            after = Fraction(0)
            for kept in product([0, 1], repeat=m):  # new e = e + mean kept (1 + omega)((shrink - 1) e + noise)
                weight = keep ** sum(kept) * (1 - keep) ** (m - sum(kept))
                share = Fraction(sum(kept) * (1 + omega), m)
                after += weight * ((1 + share * (shrink - 1)) ** 2 * moment + share**2 * variance / max(sum(kept), 1))
            moment = after
        final += lam**2 * moment
    return inner, final


@pytest.mark.parametrize("omega", [0, 1, 3])
@pytest.mark.parametrize(("tau", "rounds"), [(1, 3), (4, 2)])
def test_closed_forms_equal_the_enumeration(omega, tau, rounds):
    eta, m = Fraction(1, 4), 3
    inner, final = exact_gradients(eta, m, tau, omega, rounds)
    at = {"eta": float(eta), "m": m, "tau": tau, "omega": omega, "rounds": rounds}
    assert compressed.squared_gradient(PROBLEM, **at) == pytest.approx(float(final), rel=1e-13)
    assert compressed.mean_squared_gradient(PROBLEM, **at) == pytest.approx(float(sum(inner) / len(inner)), rel=1e-13)


def test_published_check_values():
    problem = Quadratic([0.05, 0.3, 1.0], [1.0] * 3, [1 / 3] * 3)
    values = compressed.squared_gradient(problem, eta=0.1, m=[4, 4, 8], tau=[5, 5, 10], omega=[0, 3, 9], rounds=30)
    assert values == pytest.approx([0.00638, 0.02836, 0.05681], abs=5e-6)


def test_without_compression_it_is_model_a():
    problem = reference_quadratic()
    mean = compressed.mean_squared_gradient(problem, eta=0.05, m=4, tau=[1, 8], omega=0, rounds=[200, 25])
    assert mean == pytest.approx(additive.mean_squared_gradient(problem, eta=0.05, m=4, K=200), rel=1e-13)
