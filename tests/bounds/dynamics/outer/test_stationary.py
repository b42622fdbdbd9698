"""Stationary variances against closed forms, derived by sympy, and against long trajectories."""

import math

import numpy as np
import pytest
import sympy as sp

from bounds.dynamics import Quadratic
from bounds.dynamics.outer import OuterStep, Workers, second_moments, stationary_variance
from bounds.dynamics.outer.forms import AffineRound
from bounds.dynamics.outer.merge import RULES
from bounds.dynamics.outer.stationary import variance_of

WORKERS = Workers.alike(Quadratic([0.1, 0.5, 1.0], [1.0, 1.0, 1.0], [0.5, 1.0, 2.0]), 4)
RUN = {"eta": 0.3, "tau": 5}


def round_noise():
    x = 0.3 * WORKERS.eigenvalues[0]
    a = (1 - x) ** 2
    return 1 - (1 - x) ** 5, 0.3**2 * WORKERS.noise[0] / 4 * (1 - a**5) / (1 - a)


def lyapunov(theta_row, buffer_row, theta_noise, buffer_noise):
    """Solve S = A S A^T + q n n^T for a 2 x 2 state by sympy and return Var theta/q."""
    s, t, u = sp.symbols("s t u")
    S, A = sp.Matrix([[s, t], [t, u]]), sp.Matrix([theta_row, buffer_row])
    n = sp.Matrix([theta_noise, buffer_noise])
    equations = list(S - A * S * A.T - n * n.T)
    return sp.simplify(sp.solve(equations, [s, t, u], dict=True)[0][s])


def test_the_closed_forms_solve_the_lyapunov_equation():
    nu, beta, h = sp.symbols("nu beta h", positive=True)
    nesterov = lyapunov([1 - nu * h * (1 + beta), -nu * beta**2], [h, beta], nu * (1 + beta), -1)
    closed = nu * (1 + beta + beta * h * nu + 2 * beta**2 * h * nu)
    closed /= h * (1 - beta + beta * h * nu) * (2 * (1 + beta) - (1 + 2 * beta) * h * nu)
    assert sp.simplify(nesterov - closed) == 0
    heavy = lyapunov([1 - nu * h, -nu * beta], [h, beta], nu, -1)
    assert sp.simplify(heavy - nu * (1 + beta) / (h * (1 - beta) * (2 * (1 + beta) - h * nu))) == 0


@pytest.mark.parametrize(("nu", "beta"), [(1.0, 0.0), (0.7, 0.9), (0.4, 0.5)])
def test_blocking_rounds_have_the_closed_form(nu, beta):
    h, q = round_noise()
    nesterov = nu * q * (1 + beta + beta * h * nu + 2 * beta**2 * h * nu)
    nesterov /= h * (1 - beta + beta * h * nu) * (2 * (1 + beta) - (1 + 2 * beta) * h * nu)
    heavy = nu * q * (1 + beta) / (h * (1 - beta) * (2 * (1 + beta) - h * nu))
    for expected, flag in ((nesterov, True), (heavy, False)):
        exact = stationary_variance(WORKERS, "blocking", outer=OuterStep(nu, beta, flag), **RUN)
        assert exact == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("merge", RULES)
@pytest.mark.parametrize("outer", [OuterStep(), OuterStep(0.2, 0.5)])
def test_it_is_the_limit_of_the_trajectory(merge, outer):
    at = {**RUN, "delay": 2, "outer": outer}
    end = second_moments(WORKERS, merge, rounds=3000, **at)[-1]
    assert stationary_variance(WORKERS, merge, **at) == pytest.approx(end, rel=1e-9)


def test_beyond_the_limit_it_is_infinite():
    assert np.isinf(stationary_variance(WORKERS, "delayed", outer=OuterStep(0.9, 0.9), **RUN)).any()


def test_workers_that_differ_are_sent_to_the_trajectory():
    different = Workers(np.array([[1.0], [0.5]]), np.zeros((2, 1)), np.ones((2, 1)), np.ones(1))
    with pytest.raises(ValueError, match="use second_moments"):
        stationary_variance(different, "blocking", **RUN)


@pytest.mark.parametrize("eta", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize(("nu_h", "beta"), [(None, 0.0), (None, 0.9), (0.5, 0.79)])
def test_the_variance_is_that_of_the_closed_form_at_the_smallest_rates(eta, nu_h, beta):
    tau, m = 30, 4
    h = -math.expm1(tau * math.log1p(-eta))
    nu = 1.0 if nu_h is None else nu_h / h
    q = eta**2 / m * -math.expm1(2 * tau * math.log1p(-eta)) / (eta * (2 - eta))
    closed = nu * q * (1 + beta + beta * h * nu + 2 * beta**2 * h * nu)
    closed /= h * (1 - beta + beta * h * nu) * (2 * (1 + beta) - (1 + 2 * beta) * h * nu)
    workers = Workers(np.ones((m, 1)), np.zeros((m, 1)), np.ones((m, 1)), np.zeros(1))
    found = stationary_variance(workers, "blocking", eta=eta, tau=tau, outer=OuterStep(nu, beta))
    assert found[0] == pytest.approx(closed, rel=1e-6)


def test_an_eigenvalue_at_one_but_for_its_rounding_ends_without_a_warning():
    matrix = np.array([[[1 - 2.0**-53, 1e6], [0.0, 1 - 2.0**-53]]])
    steps = AffineRound(matrix, np.zeros((1, 2)), np.eye(2)[None])
    assert np.all(variance_of(steps) > 1e20)
