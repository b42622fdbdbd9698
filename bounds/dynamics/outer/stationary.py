"""Variance of the global model after very many rounds: the solution of a Lyapunov equation, and its closed form."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from .forms import AffineRound
from .merge import merge_of
from .optimizer import AVERAGING, OuterStep
from .workers import Workers


def stationary_variance(
    workers: Workers, merge: str, *, eta: float, tau: int, delay: int = 0, outer: OuterStep = AVERAGING
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
    variances = []
    for matrix, covariance in zip(step.matrix, step.covariance, strict=True):
        stable = np.abs(np.linalg.eigvals(matrix)).max() < 1
        variances.append(solve_discrete_lyapunov(matrix, covariance)[0, 0] if stable else np.inf)
    return np.array(variances)
