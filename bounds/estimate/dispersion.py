"""The gradient variance sigma^2 from how far the local models have spread at a synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..interval import Interval
from .estimate import Estimate, finite_vector, mean_estimate


def dispersion(models: np.ndarray) -> float:
    """Return ``sum_i |x^i - mean x|^2`` of the local models just before they are averaged, shape (m, d), m >= 2.

    In a real run one scalar all-reduce gives it; here for the models of all workers at once, in float64.

    Parameters
    ----------
    models : ndarray
        The workers' models before averaging, shape (m, d).

    Raises
    ------
    ValueError
        For any other shape.
    """
    x = np.asarray(models, np.float64)
    if x.ndim != 2 or x.shape[0] < 2:
        raise ValueError(f"models must have shape (m, d) with m >= 2; got shape {x.shape}")
    return float(((x - x.mean(axis=0)) ** 2).sum())


def variance_from_dispersion(
    dispersions: Sequence[float] | np.ndarray,
    *,
    m: int,
    eta: float,
    tau: int,
    momentum: float = 0.0,
    eta_L: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return sigma^2 of one worker's mini-batch gradient from the dispersions at several synchronisations.

    Parameters
    ----------
    dispersions : sequence of float or ndarray
        ``sum_i |x^i - xbar|^2`` after tau local steps from a common start, one for each synchronisation; with a single
        one the interval is infinite.
    m : int
        Number of workers; 1 <= m, an integer.
    eta : float
        Learning rate; 0 < eta.
    tau : int
        Local steps between two averagings.
    momentum : float, optional
        beta of heavy-ball local steps whose buffer starts at zero.
    eta_L : float or None, optional
        If given (<= 1, no momentum), the upper end of the interval is widened by the largest such deflation.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For m < 2, tau < 1, eta <= 0, momentum outside [0, 1), or negative dispersions.

    Notes
    -----
    The value is mean dispersion/((m - 1) eta^2 S), S = tau without momentum (``momentum_spread`` with it).  Bias:
    unbiased at tau = 1; later the curvature pulls the models together, on a quadratic by (1 - a^tau)/(tau (1 - a)), a =
    (1 - eta lambda)^2, for every eigenvalue: .6-.9 for eta lambda = .05, tau = 16..64, so keep eta tau small.
    """
    values = finite_vector("dispersions", dispersions)
    if values.min() < 0:
        raise ValueError(f"dispersions must be >= 0; got {values.min()}")
    if m < 2 or tau < 1 or not eta > 0:
        raise ValueError(f"needs m >= 2, tau >= 1 and eta > 0; got m = {m}, tau = {tau}, eta = {eta}")
    scale = (m - 1) * eta**2 * momentum_spread(momentum, tau)
    estimate = mean_estimate(values / scale, level, lower=0.0)
    if tau == 1:
        return estimate
    if eta_L is None:
        return replace(estimate, bias="low: local steps contract the spread; keep eta tau small or give eta_L")
    if momentum > 0:
        raise ValueError("the deflation is known without momentum only; leave eta_L out")
    widened = Interval(estimate.interval.lo, estimate.interval.hi / deflation(eta_L, tau))
    return Estimate(estimate.value, widened, level, "low by at most the deflation that the interval includes")


def momentum_spread(momentum: float, tau: int) -> float:
    """Return S_tau = sum_{j <= tau} ((1 - beta^j)/(1 - beta))^2: displacement variance of tau steps per eta^2 sigma^2.

    tau without momentum.  0 <= momentum < 1 and an integer tau >= 1, else ValueError.

    Parameters
    ----------
    momentum : float
        Momentum of the local optimizer, 0 <= momentum < 1.
    tau : int
        Local steps between two averagings.
    """
    from ..runtime.checks import positive_integer  # its package loads all laws of step times

    tau = positive_integer("tau", tau)
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must satisfy 0 <= beta < 1; got momentum = {momentum}")
    gain = np.cumsum(momentum ** np.arange(tau))  # (1 - beta^j)/(1 - beta), j = 1..tau
    return float((gain**2).sum())


def deflation(eta_lambda: float, tau: int) -> float:
    """Return (1 - a^tau)/(tau (1 - a)) with a = (1 - eta lambda)^2: measured over true variance in one eigendirection.

    Decreases on 0 <= eta_lambda <= 1, so that its value at eta L is the worst.

    Parameters
    ----------
    eta_lambda : float
        Learning rate times an eigenvalue of the Hessian.
    tau : int
        Local steps between two averagings.

    Raises
    ------
    ValueError
        For arguments outside, or unless tau is an integer >= 1.
    """
    from ..runtime.checks import positive_integer  # its package loads all laws of step times

    tau = positive_integer("tau", tau)
    if not 0 <= eta_lambda <= 1:
        raise ValueError(f"eta_lambda must lie in [0, 1]; got {eta_lambda}")
    return float(((1 - eta_lambda) ** (2 * np.arange(tau))).mean())
