"""Compressed local-update SGD on a quadratic, exactly: a Bernoulli sparsifier on the change of every round.

Every worker keeps each coordinate of its change Delta with probability 1/(1 + omega), scaled up by 1 + omega: unbiased,
with E(C(v) - v)^2 = omega v^2 coordinate by coordinate.  Noise is additive as in model A.

This is ``two_shot`` with omega2 = 0: owners who send what they have, or messages that everybody gathers::

    M' = g^2 M + (omega/m)(1 - g)^2 M + (1 + omega)(eta^2 s/m)(1 + a + ... + a^(tau-1)),

with a = (1 - eta lambda)^2 and g = (1 - eta lambda)^tau.

All functions broadcast over eta, m, tau, omega and rounds and return float64 of the broadcast shape.
"""

from __future__ import annotations

from typing import Any

from . import two_shot
from .quadratic import Quadratic


def squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega: Any, rounds: Any) -> Any:
    """Return ``E|grad F(x)|^2`` after the given number of rounds."""
    return two_shot.squared_gradient(problem, eta=eta, m=m, tau=tau, omega1=omega, omega2=0, rounds=rounds)


def mean_squared_gradient(problem: Quadratic, *, eta: Any, m: Any, tau: Any, omega: Any, rounds: Any) -> Any:
    """Return mean of ``E|grad F(xbar)|^2`` over the points at which the local gradients of the first rounds
    were taken.
    """
    return two_shot.mean_squared_gradient(problem, eta=eta, m=m, tau=tau, omega1=omega, omega2=0, rounds=rounds)
