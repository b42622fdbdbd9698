"""Variance of the global model after very many rounds: the sum of what each adds, by doubling, and its closed form."""

from __future__ import annotations

import numpy as np

from .forms import AffineRound
from .merge import Merge, merge_of
from .optimizer import AVERAGING, OuterStep
from .workers import Workers

DOUBLINGS = 64  # sums of 2^64 rounds: more than rounding lets a stable round remember


def stationary_variance(
    workers: Workers, merge: str | Merge, *, eta: float, tau: int, delay: int = 0, outer: OuterStep = AVERAGING
) -> np.ndarray:
    """Return lim Var theta_j for workers that are alike, any merge rule.

    Blocking rounds have a closed form.  With h = 1 - (1 - eta lambda)^tau and q the variance of the mean of the models
    that a round ends with::

        Nesterov    nu q (1 + beta + beta h nu + 2 beta^2 h nu)
                    / (h (1 - beta + beta h nu)(2 (1 + beta) - (1 + 2 beta) h nu))
        heavy ball  nu q (1 + beta)/(h (1 - beta)(2 (1 + beta) - h nu))

    Parameters
    ----------
    workers : Workers
        Alike, with positive eigenvalues.
    merge : str
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``.
    eta : float
        Inner learning rate.
    tau : int
        Local steps of a round.
    delay : int, optional
        Local steps done while a message travels, at most tau.
    outer : OuterStep, optional
        The global step; plain averaging if left out.

    Returns
    -------
    ndarray, shape (d,)
        float64; inf where the rule is not stable.

    Raises
    ------
    ValueError
        If the workers are not alike, or for numbers outside their ranges.
    """
    if not workers.are_alike:
        raise ValueError("a stationary variance is computed for workers that are alike; use second_moments otherwise")
    return variance_of(merge_of(merge).of(workers, outer=outer, eta=eta, tau=tau, delay=delay))


def variance_of(step: AffineRound) -> np.ndarray:
    """Return the variance of the first number of a round's state after very many rounds.

    Parameters
    ----------
    step : AffineRound
        The round.

    Returns
    -------
    ndarray, shape (d,)
        float64; inf where the round is not stable.
    """
    is_stable = np.abs(np.linalg.eigvals(step.matrix)).max(axis=-1) < 1
    power = np.where(is_stable[:, None, None], step.matrix, 0.0)
    total = np.array(step.covariance, float)
    with np.errstate(over="ignore", invalid="ignore"):  # at an eigenvalue of 1 but for its rounding, powers may grow
        for _ in range(DOUBLINGS):  # positive terms alone; the equation for their sum is ill-conditioned at small rates
            total += power @ total @ np.swapaxes(power, -1, -2)
            power = power @ power
            if not power.any():
                break
    return np.where(is_stable & np.isfinite(total[:, 0, 0]), total[:, 0, 0], np.inf)
