"""The outer rate and momentum that contract fastest between noiseless blocking rounds.

A round of tau local steps acts on theta like one gradient step on a quadratic with the eigenvalues h = 1 - (1 - eta
lambda)^tau.  The best Nesterov step is therefore that of Lessard, Recht and Packard (2016, section 4), with h in place
of the Hessian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .optimizer import OuterStep


@dataclass(frozen=True)
class Optimum:
    """The best blocking Nesterov step of a range of eigenvalues.

    Parameters
    ----------
    outer : OuterStep
        Rate and momentum.
    factor : float
        By what the error shrinks a round in the end, the spectral radius.
    condition : float
        h_max/h_min, the condition number that outer steps see.
    """

    outer: OuterStep
    factor: float
    condition: float


def best_nesterov(*, eta: float, tau: int, L: float, mu: float) -> Optimum:
    """Return the rate and momentum with the least worst contraction over eigenvalues in [mu, L].

    Parameters
    ----------
    eta : float
        Inner learning rate, 0 < eta L <= 1.
    tau : int
        Local steps of a round, >= 1.
    L : float
        Largest eigenvalue.
    mu : float
        Smallest eigenvalue, 0 < mu <= L.

    Raises
    ------
    ValueError
        For numbers outside these ranges.
    """
    if not (0 < mu <= L and 0 < eta * L <= 1 and tau >= 1):
        raise ValueError(
            f"the optimum needs 0 < mu <= L, 0 < eta L <= 1 and tau >= 1; "
            f"got mu = {mu}, L = {L}, eta = {eta}, tau = {tau}"
        )
    h_max, h_min = (-math.expm1(tau * math.log1p(-eta * v)) if eta * v < 1 else 1.0 for v in (L, mu))
    root = math.sqrt(3 * h_max / h_min + 1)
    outer = OuterStep(lr=4 / (3 * h_max + h_min), momentum=(root - 2) / (root + 2))
    return Optimum(outer, factor=1 - 2 / root, condition=h_max / h_min)
