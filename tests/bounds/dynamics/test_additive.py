"""Model A against its recursion in exact fractions and against published check values."""

from fractions import Fraction

import numpy as np
import pytest

from bounds.dynamics import Quadratic, additive, reference_quadratic

PROBLEM = Quadratic([0.0, 0.25, 1.0, 2.0], [1.0, -2.0, 0.5, 1.0], [1.0, 0.5, 0.25, 2.0])


def recursion(eta, m, steps):
    """Second moments of xbar - x* after 0, 1, ... steps, as fractions, one list per coordinate."""
    out = []
    for lam, e, s in zip(PROBLEM.eigenvalues, PROBLEM.start, PROBLEM.noise, strict=True):
        moments = [Fraction(e) ** 2]
        for _ in range(steps):
            moments.append((1 - eta * Fraction(lam)) ** 2 * moments[-1] + eta**2 * Fraction(s) / m)
        out.append(moments)
    return out


@pytest.mark.parametrize("eta", [Fraction(1, 2), Fraction(1, 8), Fraction(1), Fraction(1, 2**20)])
@pytest.mark.parametrize("steps", [1, 2, 17])
def test_closed_forms_equal_the_recursion(eta, steps):
    m = 4
    moments = recursion(eta, m, steps)
    squared = [Fraction(lam) ** 2 for lam in PROBLEM.eigenvalues]
    last = sum(lam2 * c[steps] for lam2, c in zip(squared, moments, strict=True))
    mean = sum(lam2 * sum(c[:steps]) / steps for lam2, c in zip(squared, moments, strict=True))
    halves = [Fraction(lam) / 2 for lam in PROBLEM.eigenvalues]
    mean_gap = sum(half * sum(c[:steps]) / steps for half, c in zip(halves, moments, strict=True))
    at = {"eta": float(eta), "m": m}
    assert additive.squared_gradient(PROBLEM, **at, k=steps) == pytest.approx(float(last), rel=1e-13)
    assert additive.mean_squared_gradient(PROBLEM, **at, K=steps) == pytest.approx(float(mean), rel=1e-13)
    assert additive.mean_suboptimality(PROBLEM, **at, K=steps) == pytest.approx(float(mean_gap), rel=1e-13)
    assert additive.squared_distance(PROBLEM, **at, k=steps) == pytest.approx(
        float(sum(c[steps] for c in moments)), rel=1e-13
    )


def test_dispersion_is_the_spread_of_two_independent_chains():
    eta, m, tau = 0.125, 3, 6
    spread = [0.0]
    v = np.zeros(4)
    for _ in range(tau):  # one worker's deviation, exactly: variance (1 - 1/m) of its own chain
        v = (1 - eta * PROBLEM.eigenvalues) ** 2 * v + eta**2 * PROBLEM.noise
        spread.append(v * (1 - 1 / m))
    assert additive.dispersion(PROBLEM, eta=eta, m=m, r=tau) == pytest.approx(spread[-1].sum(), rel=1e-13)
    discrepancy = sum((PROBLEM.eigenvalues**2 * np.asarray(s)).sum() for s in spread[:tau]) / tau
    assert additive.mean_gradient_discrepancy(PROBLEM, eta=eta, m=m, tau=tau) == pytest.approx(discrepancy, rel=1e-13)


def test_reference_problem_reproduces_its_check_values():
    problem = reference_quadratic()
    assert problem.gap == pytest.approx(1.24091, abs=5e-6)
    average = additive.mean_squared_gradient(problem, eta=[0.05, 0.05, 0.2], m=[4, 16, 4], K=200)
    assert average == pytest.approx([0.127287, 0.123245, 0.058291], abs=5e-7)
    assert additive.stationary_squared_gradient(problem, eta=0.05, m=4) == pytest.approx(0.0063041, abs=5e-8)
    assert additive.mean_gradient_discrepancy(problem, eta=0.05, m=4, tau=8) == pytest.approx(0.0035102, abs=5e-8)
    assert additive.mean_suboptimality(problem, eta=0.05, m=16, K=4000) == pytest.approx(0.01551, abs=5e-6)


def test_stationary_value_is_the_limit_and_infinite_when_unstable():
    problem = reference_quadratic()
    late = additive.squared_gradient(problem, eta=0.3, m=2, k=20_000)
    assert additive.stationary_squared_gradient(problem, eta=0.3, m=2) == pytest.approx(late, rel=1e-12)
    assert additive.stationary_squared_gradient(problem, eta=2.0, m=2) == np.inf


@pytest.mark.parametrize(
    ("arrays", "message"), [(([], [], []), "d >= 1"), (([1.0], [float("nan")], [1.0]), "must be finite")]
)
def test_a_problem_without_coordinates_or_numbers_is_refused(arrays, message):
    with pytest.raises(ValueError, match=message):
        Quadratic(*arrays)
