"""The outer rate and momentum that contract fastest under any merge rule: closed for blocking rounds, else searched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .merge import BLOCKING, OVERWRITE, Merge, merge_of
from .optimizer import OuterStep
from .optimum import Optimum, best_nesterov
from .workers import Workers

DIRECTIONS = 33  # eigenvalues from mu to L that are looked at, both ends among them
RATES, MOMENTA = 25, 16  # of the first grid
REFINEMENTS = 6  # each a finer grid around the best


def eigenvalues(L: float, mu: float) -> np.ndarray:
    """Return the curvatures that stand for [mu, L], geometrically spaced.

    Parameters
    ----------
    L : float
        Largest eigenvalue.
    mu : float
        Smallest eigenvalue, > 0.
    """
    return np.geomspace(mu, L, DIRECTIONS)


def worst_factor(merge: str | Merge, *, x: np.ndarray, tau: int, outer: OuterStep, delay: int = 0, m: int = 2) -> float:
    """Return the asymptotic factor of the error per round, in the slowest of some eigen-directions.

    Parameters
    ----------
    merge : str or Merge
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``, or a rule of ``blended``.
    x : ndarray, shape (d,)
        Inner rate times eigenvalues, > 0.
    tau : int
        Local steps of a round.
    outer : OuterStep
        The global step.
    delay : int, optional
        Local steps done while a message travels, at most tau.
    m : int, optional
        Workers.

    Raises
    ------
    ValueError
        For an unknown rule or numbers outside their ranges.
    """
    nothing = np.zeros((1, len(x)))
    mean = Workers(np.array([x]), nothing, nothing, nothing[0])
    matrices = merge_of(merge).of_rows(mean, m, outer=outer, eta=1.0, tau=tau, delay=delay).matrix
    return float(np.abs(np.linalg.eigvals(matrices)).max())


def best_outer(merge: str | Merge, *, eta: float, tau: int, L: float, mu: float, delay: int = 0, m: int = 2) -> Optimum:
    """Return the Nesterov step with the least worst contraction over eigenvalues in [mu, L].

    Closed for ``blocking`` and ``overwrite``; for the other rules the best of a grid that is refined, on
    ``eigenvalues(L, mu)``.

    Parameters
    ----------
    merge : str or Merge
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``, or a rule of ``blended``.
    eta : float
        Inner learning rate, 0 < eta L <= 1.
    tau : int
        Local steps of a round, >= 1.
    L : float
        Largest eigenvalue.
    mu : float
        Smallest eigenvalue, 0 < mu <= L.
    delay : int, optional
        Local steps done while a message travels, at most tau; with ``overwrite`` less than tau.
    m : int, optional
        Workers.

    Raises
    ------
    ValueError
        For numbers outside these ranges, and ``overwrite`` at delay = tau, where nothing moves.
    """
    rule = merge_of(merge)
    if rule is OVERWRITE and delay >= tau:
        raise ValueError(f"overwrite throws all steps away at delay = tau = {tau}; got delay = {delay}: shorten it")
    optimum = best_nesterov(eta=eta, tau=tau - delay if rule is OVERWRITE else tau, L=L, mu=mu)
    if rule in (BLOCKING, OVERWRITE):
        return optimum
    x = eta * eigenvalues(L, mu)

    def factor(lr: float, momentum: float) -> float:
        return worst_factor(rule, x=x, tau=tau, outer=OuterStep(lr, momentum), delay=delay, m=m)

    outer, least = _refined(factor)
    return Optimum(outer, factor=least, condition=optimum.condition)


def _refined(factor: Callable[[float, float], float]) -> tuple[OuterStep, float]:
    """Return the least of a function of rate and momentum, on shrinking grids of log rate and log(1 - momentum)."""
    (log_lr, wide_lr), (log_rest, wide_rest) = (np.log(0.1), np.log(40)), (np.log(0.15), np.log(6.6))
    least, best = np.inf, (log_lr, log_rest)
    shape = (RATES, MOMENTA)
    for _ in range(1 + REFINEMENTS):
        for a in log_lr + wide_lr * np.linspace(-1, 1, shape[0]):
            for b in np.minimum(log_rest + wide_rest * np.linspace(-1, 1, shape[1]), 0.0):
                value = factor(float(np.exp(a)), float(-np.expm1(b)))
                if value < least:
                    least, best = value, (float(a), float(b))
        (log_lr, log_rest), shape = best, (7, 7)
        wide_lr, wide_rest = wide_lr / 3, wide_rest / 3
    return OuterStep(float(np.exp(log_lr)), 0.0 - float(np.expm1(log_rest))), least
