"""Compressed local-update SGD on a quadratic, exactly: a Bernoulli sparsifier on the change of every round.

Every worker keeps each coordinate of its change Delta with probability 1/(1 + omega), scaled up by 1 + omega: unbiased,
with E(C(v) - v)^2 = omega v^2 coordinate by coordinate.  Noise is additive as in model A.

Derivation.  With a = (1 - eta lambda)^2 and g = (1 - eta lambda)^tau, a worker's change from a common start e is
Delta = -(1 - g) e plus noise of variance eta^2 s (1 + a + ... + a^(tau-1)), and compression adds omega E Delta^2/m::

    M' = g^2 M + (omega/m)(1 - g)^2 M + (1 + omega)(eta^2 s/m)(1 + a + ... + a^(tau-1)).

Inside a round nothing is compressed and the mean follows model A from the round's start.

All functions broadcast over eta, m, tau, omega and rounds and return float64 of the broadcast shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import columns, total
from .geometric import excess, geometric_sum, mean_geometric_sum, one_minus_power, power, repeated
from .quadratic import Quadratic


def squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega: Any, rounds: Any) -> Any:
    """Return ``E|grad F(x)|^2`` after the given number of rounds."""
    (count,) = columns(rounds)
    growth, increment = _round(problem, eta, m, tau, omega)
    moment = power(growth, count) * problem.start**2 + increment * geometric_sum(growth, count)
    return total(problem.eigenvalues**2 * moment)


def mean_squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega: Any, rounds: Any) -> Any:
    """Return mean of ``E|grad F(xbar)|^2`` over the points at which the local gradients of the first rounds
    were taken.
    """
    count, tau_, eta_, m_ = columns(rounds, tau, eta, m)
    starts = repeated(*_round(problem, eta, m, tau, omega), problem.start**2, count) / count
    y = excess(eta_ * problem.eigenvalues)
    inner = starts * geometric_sum(y, tau_) / tau_ + eta_**2 * problem.noise / m_ * mean_geometric_sum(y, tau_)
    return total(problem.eigenvalues**2 * inner)


def _round(problem: Quadratic, eta: Any, m: Any, tau: Any, omega: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (factor - 1, increment) of the affine map of the second moments over one round."""
    eta, m, tau, omega = columns(eta, m, tau, omega)
    x = eta * problem.eigenvalues
    y = excess(x)
    spread = geometric_sum(y, tau)
    growth = y * spread + omega / m * one_minus_power(x, tau) ** 2
    return growth, (1 + omega) * eta**2 * problem.noise / m * spread
