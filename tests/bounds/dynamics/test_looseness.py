"""The looseness of a bound is a number: the published ones on the reference quadratic."""

import numpy as np
import pytest

from bounds import theorems
from bounds.dynamics import Quadratic, additive, arguments, compressed, looseness, multiplicative, reference_quadratic


def test_looseness_broadcasts_and_reproduces_the_reference_point():
    problem = reference_quadratic()
    at = {"eta": 0.05, "m": 16, "K": 4000}
    exact = additive.mean_squared_gradient(problem, **at)
    values = looseness(theorems.pasgd_iterations, exact, problem, tau=[1, 16], **at)
    assert values[1] == pytest.approx(0.17491 / 0.00786, rel=1e-3)
    assert values.shape == (2,)
    assert values[0] < values[1]


def test_the_convex_bound_halves_the_looseness_of_many_local_steps():
    problem = reference_quadratic()
    at = {"eta": 0.2, "m": 16, "tau": 4, "K": 10**7}
    exact = additive.mean_squared_gradient(problem, eta=0.2, m=16, K=10**7)
    general = looseness(theorems.pasgd_iterations, exact, problem, **at)
    assert general == pytest.approx(79.9, abs=0.1)  # the transient is gone; shorter runs measured up to 76
    assert looseness(theorems.pasgd_convex, exact, problem, **at) / general == pytest.approx(0.5, abs=0.03)


def test_compression_noise_is_overstated_fourfold_at_small_steps():
    problem = Quadratic([1.0], [0.0], [1.0])  # all noise on the steepest direction, started at the minimiser
    at = {"eta": 1e-4, "m": 8, "tau": 1, "omega": 1e3, "K": 10**8}
    exact = compressed.mean_squared_gradient(problem, eta=1e-4, m=8, tau=1, omega=1e3, rounds=10**8)
    assert looseness(theorems.pasgd_compressed, exact, problem, **at) == pytest.approx(4, rel=0.02)


def test_after_one_noiseless_step_only_the_transient_is_loose():
    problem = Quadratic([1.0], [1.0], [0.0])
    exact = multiplicative.mean_squared_gradient(problem, eta=0.1, m=4, tau=1, rounds=1, noise_growth=4)
    value = looseness(theorems.pasgd_multiplicative, exact, problem, eta=0.1, m=4, tau=1, K=1, noise_growth=4)
    assert value == pytest.approx(10, rel=1e-12)  # 2 gap/(eta K) over L^2 R0^2 after one step


def test_arguments_take_constants_from_the_problem_and_prefer_the_callers():
    problem = reference_quadratic()
    known = arguments(theorems.diana, problem, epsilon=0.1, omega=3.0, m=4, unused=1)
    assert known == {"kappa": pytest.approx(100), "epsilon": 0.1, "omega": 3.0, "m": 4}
    assert arguments(theorems.diana, problem, kappa=7.0)["kappa"] == 7
    flat = Quadratic([0.0, 1.0], [1.0, 1.0], [1.0, 1.0])
    assert arguments(theorems.diana, flat)["kappa"] == np.inf


def test_a_quadratic_refuses_impossible_data():
    with pytest.raises(ValueError, match="share one shape"):
        Quadratic([1.0], [1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="eigenvalues must be >= 0"):
        Quadratic([-1.0, 1.0], [1.0, 2.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="a variance must be >= 0"):
        Quadratic([1.0], [1.0], [-1.0])
