r"""The largest outer rate at which a merge rule is stable, by Jury's criterion.

In one eigen-direction with x = eta lambda, theta follows a recursion whose characteristic polynomial is affine in the
outer rate nu, because the outer step enters once: c(z) + nu s(z), of degree 3 at most.  With h = 1 - (1 - x)^tau and
Nesterov's momentum beta::

    blocking   (z - 1)(z - beta) + nu h ((1 + beta) z - beta)
    delayed    (z - 1)(z - beta) z + nu h ((1 + beta) z - beta)
    eager      (z - 1)(z - beta) z + nu h ((1 + beta) z - beta)(z/m + 1 - 1/m)
    corrected  (z - 1)(z - beta)(z + p g) + nu ((1 + beta) z - beta)((1 - p) z + p g)

where p = (1 - x)^(tau - delay), g = 1 - (1 - x)^delay; heavy ball has z in place of (1 + beta) z - beta.  A root meets
the unit circle at -1, where the polynomial vanishes (linear in nu), or with its conjugate, where 1 - a_0^2 = a_1 - a_0
a_2 (quadratic in nu).  The least positive such nu is the limit.  So blocking is stable for nu h < 2 (1 + beta)/(1 + 2
beta), heavy ball for nu h < 2 (1 + beta); delayed for nu h below the positive root X of beta^2 X^2 + (1 - beta^2) X =
1 - beta, heavy ball for nu h < 1 - beta.  Where m > 1 workers differ, the differences must shrink too: eager needs
nu h/m < (1 + beta)/(1 + 2 beta) (heavy ball 1 + beta), which its mean already asks for, and corrected \|p g\| < 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from .merge import Merge, merge_of
from .optimizer import OuterStep
from .workers import Workers


def largest_lr(
    merge: str | Merge, *, x: Any, tau: int, delay: int = 0, m: int = 2, momentum: float = 0.0, nesterov: bool = True
) -> Any:
    """Return the supremum of the outer rates at which a merge rule is stable on a quadratic.

    Parameters
    ----------
    merge : str or Merge
        ``blocking``, ``overwrite``, ``delayed``, ``eager`` or ``corrected``, or a rule of ``blended``.
    x : float or array
        Inner rate times eigenvalue, > 0; one for each eigen-direction.  A problem is stable below the least result.
    tau : int
        Local steps of a round.
    delay : int, optional
        Local steps done while a message travels, at most tau.
    m : int, optional
        Workers.
    momentum : float, optional
        Outer momentum beta in [0, 1).
    nesterov : bool, optional
        Whether the momentum is Nesterov's.

    Returns
    -------
    float or ndarray
        Of the shape of x; 0 where no rate is stable, infinite where all are (nothing moves: overwrite at delay = tau).

    Raises
    ------
    ValueError
        For x <= 0, an unknown rule or numbers outside their ranges.
    """
    points = np.asarray(x, float)
    if not np.all(points > 0):
        raise ValueError(f"x = eta lambda must be > 0; got {x}")
    outer = OuterStep(momentum=momentum, nesterov=nesterov)
    limits = [_limit(merge_of(merge), float(point), outer, tau, delay, m) for point in points.reshape(-1)]
    return limits[0] if points.ndim == 0 else np.reshape(limits, points.shape)


def _limit(merge: Merge, x: float, outer: OuterStep, tau: int, delay: int, m: int) -> float:
    constant, slope = (_characteristic(merge, x, replace(outer, lr=lr), tau, delay, m) for lr in (1.0, 2.0))
    slope = slope - constant
    constant = constant - slope
    if not slope.any():
        return np.inf
    crossings = _crossings(constant, slope)
    limit = min(crossings, default=np.inf)
    inside = constant + min(limit / 2, 1.0) * slope
    return limit if np.abs(np.roots(inside)).max() < 1 else 0.0


def _characteristic(merge: Merge, x: float, outer: OuterStep, tau: int, delay: int, m: int) -> np.ndarray:
    """Return the characteristic polynomial of the mean's recursion as a cubic, highest power first."""
    mean = Workers(np.array([[x]]), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1))
    A = merge.of_rows(mean, m, outer=outer, eta=1.0, tau=tau, delay=delay).matrix[0]
    trace, n = np.trace(A), len(A)
    minors = (trace**2 - np.trace(A @ A)) / 2
    coefficients = [1.0, -trace, minors] if n == 2 else [1.0, -trace, minors, -np.linalg.det(A)]
    return np.array([*coefficients, 0.0] if n == 2 else coefficients)


def _crossings(constant: np.ndarray, slope: np.ndarray) -> list[float]:
    """Return the nu > 0 at which z^3 + a_2 z^2 + a_1 z + a_0 may have roots on the unit circle other than 1."""
    a2, a1, a0 = (np.array([constant[k], slope[k]]) for k in (1, 2, 3))
    at_minus_one = polynomial.polyadd(polynomial.polysub([-1.0], a1), polynomial.polyadd(a2, a0))
    products = polynomial.polysub(polynomial.polymul(a0, a2), polynomial.polymul(a0, a0))
    pair = polynomial.polysub(polynomial.polyadd([1.0], products), a1)
    return [float(root) for curve in (at_minus_one, pair) for root in _real_roots(curve) if root > 1e-12]


def _real_roots(coefficients: np.ndarray) -> np.ndarray:
    """Return the real roots of a polynomial, lowest power first, whose leading coefficients may vanish."""
    scale = np.abs(coefficients).max()
    kept = polynomial.polytrim(coefficients, tol=1e-13 * scale) if scale > 0 else np.zeros(1)
    roots = polynomial.polyroots(kept)
    return np.real(roots[np.abs(np.imag(roots)) <= 1e-9 * np.abs(roots)])
