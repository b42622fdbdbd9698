"""Model B against an exact enumeration of all moments in fractions and against published check values."""

from fractions import Fraction

import numpy as np
import pytest

from bounds.dynamics import Quadratic, additive, multiplicative, reference_quadratic

PROBLEM = Quadratic([0.25, 1.0], [1.0, -2.0], [0.5, 0.25])


def squared_gradients(eta, m, tau, rounds, growth):
    """E|grad F(xbar)|^2 at every local step: the m x m matrix of second moments of the workers, step by step."""
    out = [Fraction(0)] * (tau * rounds + 1)
    for lam, e, s in zip(PROBLEM.eigenvalues, PROBLEM.start, PROBLEM.noise, strict=True):
        lam, e, s = Fraction(lam), Fraction(e), Fraction(s)
        moments = [[e * e] * m for _ in range(m)]
        for k in range(tau * rounds + 1):
            mean = sum(sum(row) for row in moments) / m**2
            out[k] += lam**2 * mean
            if k and k % tau == 0:
                moments = [[mean] * m for _ in range(m)]
            shrink = (1 - eta * lam) ** 2
            moments = [
                [shrink * moments[i][j] + (i == j) * eta**2 * (lam**2 * growth * moments[i][i] + s) for j in range(m)]
                for i in range(m)
            ]
    return out


@pytest.mark.parametrize(("tau", "rounds"), [(1, 4), (3, 2), (4, 5)])
@pytest.mark.parametrize("growth", [0, 3])
def test_closed_forms_equal_the_moment_recursion(tau, rounds, growth):
    eta, m = Fraction(1, 4), 3
    exact = squared_gradients(eta, m, tau, rounds, growth)
    at = {"eta": float(eta), "m": m, "tau": tau, "rounds": rounds, "noise_growth": growth}
    assert multiplicative.squared_gradient(PROBLEM, **at) == pytest.approx(float(exact[-1]), rel=1e-13)
    mean = sum(exact[:-1]) / (tau * rounds)
    assert multiplicative.mean_squared_gradient(PROBLEM, **at) == pytest.approx(float(mean), rel=1e-13)


def test_without_growth_it_is_model_a_for_every_period():
    problem = reference_quadratic()
    at = {"eta": 0.05, "m": 4}
    values = multiplicative.mean_squared_gradient(
        problem, **at, tau=[1, 4, 8, 200], rounds=[200, 50, 25, 1], noise_growth=0
    )
    assert values == pytest.approx(additive.mean_squared_gradient(problem, **at, K=200), rel=1e-13)


def test_stationary_values_reproduce_the_check_values_and_instability():
    problem = reference_quadratic()
    at = {"m": 4, "tau": [1, 5, 100], "noise_growth": 4}
    stationary = multiplicative.stationary_squared_gradient(problem, eta=0.1, **at)
    assert stationary == pytest.approx([0.013260, 0.013703, 0.014867], abs=5e-7)
    late = multiplicative.squared_gradient(problem, eta=0.1, rounds=20_000, **at)
    assert stationary == pytest.approx(late, rel=1e-12)
    unstable = multiplicative.stationary_squared_gradient(problem, eta=0.45, **at)
    assert np.isfinite(unstable).tolist() == [True, True, False]


def test_a_flat_direction_does_not_count():
    flat = Quadratic([0.0, 1.0], [1.0, 1.0], [1.0, 1.0])
    steep = Quadratic([1.0], [1.0], [1.0])
    at = {"eta": 0.1, "m": 4, "tau": 5, "noise_growth": 1}
    assert multiplicative.stationary_squared_gradient(flat, **at) == pytest.approx(
        multiplicative.stationary_squared_gradient(steep, **at), rel=1e-14
    )
