"""Mean, second moments and loss of the global model after every round, exactly."""

from __future__ import annotations

import numpy as np

from .merge import Merge, merge_of
from .optimizer import AVERAGING, OuterStep
from .workers import Workers


def mean_model(
    workers: Workers,
    merge: str | Merge,
    *,
    eta: float,
    tau: int,
    rounds: int,
    delay: int = 0,
    outer: OuterStep = AVERAGING,
) -> np.ndarray:
    """Return E theta at the start and after each round.

    Parameters
    ----------
    workers : Workers
        Whose quadratics are descended.
    merge : str
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``.
    eta : float
        Inner learning rate.
    tau : int
        Local steps of a round.
    rounds : int
        Rounds.
    delay : int, optional
        Local steps done while a message travels, at most tau.
    outer : OuterStep, optional
        The global step; plain averaging if left out.

    Returns
    -------
    ndarray, shape (rounds + 1, d)
        float64.

    Raises
    ------
    ValueError
        For an unknown rule or numbers outside their ranges.
    """
    return _trajectory(workers, merge_of(merge), eta, tau, rounds, delay, outer)[0]


def second_moments(
    workers: Workers,
    merge: str | Merge,
    *,
    eta: float,
    tau: int,
    rounds: int,
    delay: int = 0,
    outer: OuterStep = AVERAGING,
) -> np.ndarray:
    """Return E (theta - x*)^2 of every coordinate at the start and after each round, x* the common minimiser.

    Parameters
    ----------
    workers : Workers
        Whose quadratics are descended.
    merge : str
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``.
    eta : float
        Inner learning rate.
    tau : int
        Local steps of a round.
    rounds : int
        Rounds.
    delay : int, optional
        Local steps done while a message travels, at most tau.
    outer : OuterStep, optional
        The global step; plain averaging if left out.

    Returns
    -------
    ndarray, shape (rounds + 1, d)
        float64.

    Raises
    ------
    ValueError
        For an unknown rule or numbers outside their ranges.
    """
    mean, variance = _trajectory(workers, merge_of(merge), eta, tau, rounds, delay, outer)
    return np.asarray((mean - workers.minimiser) ** 2 + variance)


def expected_loss(workers: Workers, moments: np.ndarray) -> np.ndarray:
    """Return E F(theta) - min F of shape (...).

    Parameters
    ----------
    workers : Workers
        Whose mean function is F.
    moments : ndarray, shape (..., d)
        E (theta - x*)^2 of every coordinate.
    """
    return np.asarray(0.5 * moments @ workers.eigenvalues.mean(0))


def _trajectory(
    workers: Workers, merge: Merge, eta: float, tau: int, rounds: int, delay: int, outer: OuterStep
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of theta, each (rounds + 1, d)."""
    step = merge.of(workers, outer=outer, eta=eta, tau=tau, delay=delay)
    rows = workers.reduced().m
    d, n = step.offset.shape
    mean, covariance = np.zeros((d, n)), np.zeros((d, n, n))
    mean[:, : merge.models(rows)] = workers.start[:, None]
    weights = np.zeros(n)
    weights[: merge.global_models(rows)] = 1 / merge.global_models(rows)
    means, variances = [mean @ weights], [np.zeros(d)]
    for _ in range(rounds):
        mean = np.einsum("dij,dj->di", step.matrix, mean) + step.offset
        covariance = step.matrix @ covariance @ np.swapaxes(step.matrix, 1, 2) + step.covariance
        means.append(mean @ weights)
        variances.append(covariance @ weights @ weights)
    return np.array(means), np.array(variances)
