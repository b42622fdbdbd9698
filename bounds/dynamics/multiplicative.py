"""Model B: noise that grows with the gradient, exactly; here the averaging period does matter, a little.

Worker i sees g_j = lambda_j (1 + z_j) e_j + xi_j with independent E z_j^2 = noise_growth, E xi_j^2 = s_j, so that the
variance of its gradient is sigma2 + noise_growth ``|grad F(x^i)|^2``.

Derivation.  Let a = (1 - eta lambda)^2, b = a + eta^2 lambda^2 noise_growth, M = E e^2 of one coordinate at an
averaging.  After r more local steps the workers have E e_i^2 = b^r M + eta^2 s (1 + b + ... + b^(r-1)) and, as their
noises are independent, E e_i e_j = a^r M; the mean of m such errors has second moment ::

    (b^r + (m - 1) a^r)/m M + (eta^2 s/m)(1 + b + ... + b^(r-1)).

At r = tau this is an affine map of M, whose factor is called rho.

All functions broadcast over eta, m, tau, rounds and noise_growth and return float64 of the broadcast shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .axes import columns, total
from .geometric import excess, geometric_sum, mean_geometric_sum, power, repeated
from .quadratic import Quadratic


def squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, rounds: Any, noise_growth: Any) -> Any:
    """Return ``E|grad F(xbar)|^2`` at the end of the given number of rounds."""
    (count,) = columns(rounds)
    step = _Round.of(problem, eta, m, tau, noise_growth)
    moment = power(step.rho_excess, count) * problem.start**2 + step.increment * geometric_sum(step.rho_excess, count)
    return total(problem.eigenvalues**2 * moment)


def mean_squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, rounds: Any, noise_growth: Any) -> Any:
    """Return mean over all local steps of the first rounds, the start included, of ``E|grad F(xbar)|^2``."""
    count, tau_ = columns(rounds, tau)
    step = _Round.of(problem, eta, m, tau, noise_growth)
    at_averagings = repeated(step.rho_excess, step.increment, problem.start**2, count)
    return total(problem.eigenvalues**2 * (step.inner_factor * at_averagings / count + step.inner_increment) / tau_)


def stationary_squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, noise_growth: Any) -> Any:
    """Return lim ``E|grad F(xbar)|^2`` at the averagings; inf if some coordinate is unstable (rho >= 1)."""
    step = _Round.of(problem, eta, m, tau, noise_growth)
    with np.errstate(divide="ignore", invalid="ignore"):
        moment = np.where(step.rho_excess < 0, step.increment / -step.rho_excess, np.inf)
        return total(np.where(problem.eigenvalues > 0, problem.eigenvalues**2 * moment, 0))


@dataclass(frozen=True, eq=False)
class _Round:
    """What one round does to the second moment of each coordinate."""

    rho_excess: np.ndarray  # rho - 1
    increment: np.ndarray
    inner_factor: np.ndarray  # sum over the steps of a round of the factor of M
    inner_increment: np.ndarray

    @classmethod
    def of(cls, problem: Quadratic, eta: Any, m: Any, tau: Any, noise_growth: Any) -> _Round:
        eta, m, tau, growth = columns(eta, m, tau, noise_growth)
        x = eta * problem.eigenvalues
        alone = excess(x)  # a - 1
        noisy = alone + x**2 * growth  # b - 1
        noise = eta**2 * problem.noise / m
        sum_noisy, sum_alone = geometric_sum(noisy, tau), geometric_sum(alone, tau)
        return cls(
            rho_excess=(noisy * sum_noisy + (m - 1) * alone * sum_alone) / m,
            increment=noise * sum_noisy,
            inner_factor=(sum_noisy + (m - 1) * sum_alone) / m,
            inner_increment=noise * tau * mean_geometric_sum(noisy, tau),
        )
