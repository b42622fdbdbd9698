r"""Local-update SGD whose round changes are averaged in two shots, on a quadratic, exactly: Bernoulli sparsifiers.

Every worker keeps each coordinate of its change Delta_i with probability 1/(1 + omega1), scaled up by 1 + omega1; the
owner of a coordinate keeps the mean of what it receives with probability 1/(1 + omega2), scaled up by 1 + omega2.
Both are unbiased with E(C(v) - v)^2 = omega v^2 coordinate by coordinate.  Noise is additive as in model A.

Derivation.  With a = (1 - eta lambda)^2 and g = (1 - eta lambda)^tau, a worker's change from a common start e is
Delta_i = -(1 - g) e plus noise of variance V = eta^2 s (1 + a + ... + a^(tau-1)), independent over workers.  The error
of two shots, (1 + omega2)(omega1/m) mean E Delta_i^2 + omega2 E(mean Delta_i)^2, is then (Omega'/m)(1 - g)^2 M + Omega
V/m with Omega' = omega1 (1 + omega2) + m omega2, Omega = (1 + omega1)(1 + omega2) - 1, and:

``M' = g^2 M + (Omega'/m)(1 - g)^2 M + (1 + Omega) V/m``.

Inside a round nothing is compressed and the mean follows model A from the round's start.  ``compressed`` is the case
omega2 = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import columns, total
from .geometric import excess, geometric_sum, mean_geometric_sum, one_minus_power, power, repeated
from .quadratic import Quadratic


def squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega1: Any, omega2: Any, rounds: Any) -> Any:
    """Return ``E|grad F(x)|^2`` after the given number of rounds.

    Parameters
    ----------
    problem : Quadratic
        What is minimised.
    eta, m, tau, omega1, omega2, rounds : float or array
        Learning rate, workers, local steps of a round, constants of both stages and rounds; they broadcast.

    Returns
    -------
    float or array
        Float64 of the broadcast shape.
    """
    (count,) = columns(rounds)
    growth, increment = _round(problem, eta, m, tau, omega1, omega2)
    moment = power(growth, count) * problem.start**2 + increment * geometric_sum(growth, count)
    return total(problem.eigenvalues**2 * moment)


def mean_squared_gradient(
    problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega1: Any, omega2: Any, rounds: Any
) -> Any:
    """Return the mean of ``E|grad F(xbar)|^2`` over the points at which local gradients were taken.

    Parameters
    ----------
    problem : Quadratic
        What is minimised.
    eta, m, tau, omega1, omega2, rounds : float or array
        Learning rate, workers, local steps of a round, constants of both stages and rounds; they broadcast.

    Returns
    -------
    float or array
        Float64 of the broadcast shape.
    """
    count, tau_, eta_, m_ = columns(rounds, tau, eta, m)
    starts = repeated(*_round(problem, eta, m, tau, omega1, omega2), problem.start**2, count) / count
    y = excess(eta_ * problem.eigenvalues)
    inner = starts * geometric_sum(y, tau_) / tau_ + eta_**2 * problem.noise / m_ * mean_geometric_sum(y, tau_)
    return total(problem.eigenvalues**2 * inner)


def _round(problem: Quadratic, eta: Any, m: Any, tau: Any, omega1: Any, omega2: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (factor - 1, increment) of the affine map of the second moments over one round."""
    eta, m, tau, omega1, omega2 = columns(eta, m, tau, omega1, omega2)
    x = eta * problem.eigenvalues
    y = excess(x)
    spread = geometric_sum(y, tau)
    load = omega1 * (1 + omega2) + m * omega2
    growth = y * spread + load / m * one_minus_power(x, tau) ** 2
    return growth, (1 + omega1) * (1 + omega2) * eta**2 * problem.noise / m * spread
