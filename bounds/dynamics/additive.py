"""Model A: local-update SGD with additive noise on a quadratic, exactly.

Derivation.  With e = xbar - x* in the eigenbasis, averaging or not, e_{k+1} = (1 - eta lambda) e_k - eta mean noise:
the law of the mean iterate does not depend on tau.  Hence, with a = (1 - eta lambda)^2, ::

    E e_k^2 = a^k e_0^2 + (eta^2 s/m) (1 + a + ... + a^(k-1)).

Between averagings the workers' deviations from their mean follow the same recursion from 0 with noise variance
(1 - 1/m) s each, which gives the dispersion.

All functions broadcast over eta, m and the step counts and return float64 of the broadcast shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import columns, total
from .geometric import excess, geometric_sum, mean_geometric_sum, power
from .quadratic import Quadratic


def squared_gradient(problem: Quadratic, *, eta: Any, m: Any, k: Any) -> Any:
    """Return ``E|grad F(xbar)|^2`` after k local steps (any averaging period)."""
    return total(problem.eigenvalues**2 * _error_at(problem, eta, m, k))


def mean_squared_gradient(problem: Quadratic, *, eta: Any, m: Any, K: Any) -> Any:
    """Return (1/K) sum over the first K iterates, the start included, of ``E|grad F(xbar)|^2``."""
    return total(problem.eigenvalues**2 * _mean_error(problem, eta, m, K))


def stationary_squared_gradient(problem: Quadratic, *, eta: Any, m: Any) -> Any:
    """Return lim ``E|grad F(xbar)|^2 = sum_j eta lambda_j s_j / (m (2 - eta lambda_j))``; inf if some eta lambda_j >=
    2.
    """
    eta, m = columns(eta, m)
    x = eta * problem.eigenvalues
    stable = x < 2
    with np.errstate(divide="ignore"):
        terms = np.where(stable, x * problem.noise / (m * np.where(stable, 2 - x, 1)), np.inf)
    return total(terms)


def suboptimality(problem: Quadratic, *, eta: Any, m: Any, k: Any) -> Any:
    """Return E F(xbar) - inf F after k local steps."""
    return total(0.5 * problem.eigenvalues * _error_at(problem, eta, m, k))


def mean_suboptimality(problem: Quadratic, *, eta: Any, m: Any, K: Any) -> Any:
    """Return (1/K) sum over the first K iterates, the start included, of E F(xbar) - inf F."""
    return total(0.5 * problem.eigenvalues * _mean_error(problem, eta, m, K))


def squared_distance(problem: Quadratic, *, eta: Any, m: Any, k: Any) -> Any:
    """Return ``E|xbar - x*|^2`` after k local steps."""
    return total(_error_at(problem, eta, m, k))


def dispersion(problem: Quadratic, *, eta: Any, m: Any, r: Any) -> Any:
    """Return ``E (1/m) sum_i |x^i - xbar|^2``, r local steps after an averaging."""
    eta, m, r = columns(eta, m, r)
    return total(_spread(problem, eta, m) * geometric_sum(excess(eta * problem.eigenvalues), r))


def mean_gradient_discrepancy(problem: Quadratic, *, eta: Any, m: Any, tau: Any) -> Any:
    """Return mean over a round of ``E (1/m) sum_i |grad F(x^i) - grad F(xbar)|^2``."""
    eta, m, tau = columns(eta, m, tau)
    mean_sum = mean_geometric_sum(excess(eta * problem.eigenvalues), tau)
    return total(problem.eigenvalues**2 * _spread(problem, eta, m) * mean_sum)


def _error_at(problem: Quadratic, eta: Any, m: Any, k: Any) -> np.ndarray:
    eta, m, k = columns(eta, m, k)
    y = excess(eta * problem.eigenvalues)
    return power(y, k) * problem.start**2 + eta**2 * problem.noise / m * geometric_sum(y, k)


def _mean_error(problem: Quadratic, eta: Any, m: Any, K: Any) -> np.ndarray:
    eta, m, K = columns(eta, m, K)
    y = excess(eta * problem.eigenvalues)
    return geometric_sum(y, K) / K * problem.start**2 + eta**2 * problem.noise / m * mean_geometric_sum(y, K)


def _spread(problem: Quadratic, eta: np.ndarray, m: np.ndarray) -> np.ndarray:
    return (1 - 1 / m) * eta**2 * problem.noise


def trajectory(problem: Quadratic, *, eta: Any, m: int) -> np.ndarray:
    """Return E (xbar - x*)_j^2 before each step and after the last one, for a learning rate per step.

    Parameters
    ----------
    eta : number
        (K,); m workers.

    Returns
    -------
    ndarray
        float64 of shape (K + 1, d).
    """
    moments = [problem.start**2]
    for rate in np.asarray(eta, float):
        shrink = (1 - rate * problem.eigenvalues) ** 2
        moments.append(shrink * moments[-1] + rate**2 * problem.noise / m)
    return np.array(moments)
