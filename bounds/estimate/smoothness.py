"""The smoothness constant L, measured locally."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..interval import Interval
from .estimate import Estimate, check_level, finite_vector

LOCAL = "local: the Hessian at this point; a mini-batch Hessian is biased high"


def smoothness_by_power_iteration(
    product: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    iterations: int = 30,
    level: float = 0.95,
) -> Estimate:
    """Return ``max |lambda|`` of the Hessian by power iteration with Hessian-vector products.

    Parameters
    ----------
    product : callable
        v -> H v, shape (d,) to shape (d,), H symmetric.
    start : ndarray
        Drawn from N(0, I), shape (d,).
    iterations : int, optional
        The estimates of successive power iterations, in their order.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For a zero or non-finite start, or iterations < 1.

    Notes
    -----
    The value ``|H v|`` of the last unit vector is never above the truth.  The upper end holds with probability level
    over the start: its squared share in the top eigenvector is below t^2 with probability at most t sqrt(2 d/pi), and
    ``|H^k v_0| >= max|lambda|^k`` times that share.  Bias: low by iteration; local, and high if product uses a
    mini-batch.  At eta L near 2 (the edge of stability) no bound of this package applies.
    """
    v = finite_vector("start", start)
    norm = float(np.linalg.norm(v))
    if norm == 0 or iterations < 1:
        raise ValueError(f"needs a non-zero start and iterations >= 1; got |start| = {norm}, iterations = {iterations}")
    t = (1 - check_level(level)) / math.sqrt(2 * v.size / math.pi)
    log_growth, value = 0.0, 0.0
    for _ in range(iterations):
        v = np.asarray(product(v / norm), np.float64).reshape(-1)
        norm = float(np.linalg.norm(v))
        value = norm
        if norm == 0:
            return Estimate(0.0, Interval(0.0, 0.0), level, LOCAL)
        log_growth += math.log(norm)
    upper = math.exp((log_growth - math.log(t)) / iterations)
    return Estimate(value, Interval(value, max(upper, value)), level, LOCAL)


def smoothness_by_secants(
    gradient_distances: Sequence[float] | np.ndarray, point_distances: Sequence[float] | np.ndarray
) -> Estimate:
    """Return the largest ``|g(y) - g(x)|/|y - x|`` over pairs of points, both gradients on the same batch.

    Parameters
    ----------
    gradient_distances : sequence of float or ndarray
        ``|g(y) - g(x)|`` of each pair, shape (n,).
    point_distances : sequence of float or ndarray
        ``|y - x|`` of each pair, shape (n,), > 0.

    Raises
    ------
    ValueError
        For unequal lengths or a zero distance.

    Notes
    -----
    Bias: low; a secant averages the Hessian over its segment and sees only its direction, so the interval has no upper
    end.  With different batches the noise is divided by the distance and the result is useless (4 to 32 in place of
    .48).
    """
    rise, run = (
        finite_vector("gradient_distances", gradient_distances),
        finite_vector("point_distances", point_distances),
    )
    if rise.size != run.size or run.min() <= 0 or rise.min() < 0:
        raise ValueError(
            f"needs as many gradient distances >= 0 as point distances > 0; got {rise.size} and {run.size}, "
            f"smallest {rise.min()} and {run.min()}"
        )
    value = float((rise / run).max())
    return Estimate(value, Interval(value, math.inf), 1.0, "low: secants only see their own direction")
