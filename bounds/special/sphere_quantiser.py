"""The normal law's Lloyd-Max quantiser on a coordinate of the sphere: two moments, computed and certified.

v = sqrt(d) u_1 with u uniform on the unit sphere of R^d has E v^2 = 1 and tends to a standard normal number; v^2/d
follows the Beta law of parameters 1/2 and (d-1)/2, and ``E|v| 1(|v| >= t) = E|v| (1 - t^2/d)^((d-1)/2)``, since the
density of v is proportional to (1 - v^2/d)^((d-3)/2).  With the levels c_i and thresholds t_i of ``lloyd_max``,
symmetric about 0, both moments of Q(v) are finite sums over cells::

    E v Q(v) = E|v| sum_i c_i [(1 - t_(i-1)^2/d)^((d-1)/2) - (1 - t_i^2/d)^((d-1)/2)],
    E Q(v)^2 = sum_i c_i^2 P(t_(i-1) <= |v| < t_i).

0 bits are one level at 0: both moments vanish.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from .function import SpecialFunction
from .lloyd_max import lloyd_max_level_balls, lloyd_max_levels, lloyd_max_thresholds

_SERIES_FROM = 40  # dimensions from which the series below has all digits


def mean_magnitude(d: int) -> float:
    """Return ``E|v| = sqrt(d/pi)`` Gamma(d/2)/Gamma((d+1)/2)."""
    if d < _SERIES_FROM:
        return math.sqrt(d / math.pi) * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2))
    x = d / 2  # the logarithm of sqrt(x) Gamma(x)/Gamma(x + 1/2), without the difference of large logarithms
    series = 1 / (8 * x) - 1 / (192 * x**3) + 1 / (640 * x**5) - 17 / (14336 * x**7) + 31 / (18432 * x**9)
    return math.sqrt(2 / math.pi) * math.exp(series)


def cell_moments(d: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (mass, first, second): P, ``E|v|`` and E v^2 on edges_i <= ``|v|`` < edges_(i+1); edges >= 0 increasing,
    float64.
    """
    if d == 1:
        inside = ((edges[:-1] <= 1) & (edges[1:] > 1)).astype(np.float64)
        return inside, inside, inside
    from scipy.special import betainc

    share = np.minimum(edges * edges / d, 1.0)
    with np.errstate(divide="ignore"):
        tail = np.exp((d - 1) / 2 * np.log1p(-share))
    mass = np.diff(betainc(0.5, (d - 1) / 2, share))
    return mass, -np.diff(mean_magnitude(d) * tail), np.diff(betainc(1.5, (d - 1) / 2, share))


def level_moments(d: int, levels: np.ndarray, thresholds: np.ndarray) -> tuple[float, float]:
    """Return (E v Q(v), E Q(v)^2) for a symmetric quantiser given by its positive levels and positive thresholds."""
    mass, first, _ = cell_moments(d, np.concatenate(([0.0], thresholds, [np.inf])))
    return float(levels @ first), float((levels * levels) @ mass)


@lru_cache(maxsize=256)
def lloyd_max_moments(bits: int, d: int) -> tuple[float, float]:
    """Return (E v Q(v), E Q(v)^2) of the Lloyd-Max quantiser of 2^bits levels, 0 <= bits <= 8."""
    if bits == 0:
        return 0.0, 0.0
    half = 2 ** (bits - 1)
    return level_moments(d, lloyd_max_levels(bits)[half:], lloyd_max_thresholds(bits)[half:])


def lloyd_max_sphere_distortion(bits: int, d: int) -> float:
    """Return E(v - Q(v))^2 = 1 - 2 E v Q(v) + E Q(v)^2, 0 <= bits <= 8."""
    along, square = lloyd_max_moments(bits, d)
    return 1 - 2 * along + square


class SphereLevelProduct(SpecialFunction):
    """E v Q(v), v a coordinate on the sphere of radius sqrt(d) in R^d, Q the Lloyd-Max quantiser of b = 0..8 bits."""

    latex_template = r"E_{{{1}}}\left[v\,Q_{{{0}}}(v)\right]"

    @staticmethod
    def kernel(bits: Any, d: Any) -> Any:
        return np.vectorize(lambda b, n: lloyd_max_moments(int(b), int(n))[0], otypes=[float])(bits, d)

    @staticmethod
    def ball(bits: Any, d: Any) -> Any:
        return _moment_balls(bits, d)[0]


class SphereLevelSquare(SpecialFunction):
    """E Q(v)^2 for the same v and Q."""

    latex_template = r"E_{{{1}}}\left[Q_{{{0}}}(v)^2\right]"

    @staticmethod
    def kernel(bits: Any, d: Any) -> Any:
        return np.vectorize(lambda b, n: lloyd_max_moments(int(b), int(n))[1], otypes=[float])(bits, d)

    @staticmethod
    def ball(bits: Any, d: Any) -> Any:
        return _moment_balls(bits, d)[1]


def _moment_balls(bits: Any, d: Any) -> tuple[Any, Any]:
    """Return both moments for d >= 2; the arguments are balls of whole numbers."""
    from flint import arb

    if int(float(bits)) == 0:
        return arb(0), arb(0)
    levels = lloyd_max_level_balls(int(float(bits)))
    shares = [((a + b) / 2) ** 2 / d for a, b in pairwise(levels)]
    shares = [arb(1) if share >= 1 else share for share in shares]  # thresholds outside the sphere
    exponent = (d - 1) / 2
    tails = [arb(1), *((1 - share) ** exponent if share != 1 else arb(0) for share in shares), arb(0)]
    below = [arb(0), *(_regularised(share, exponent) for share in shares), arb(1)]
    mean = (d / arb.pi()).sqrt() * ((d / 2).lgamma() - ((d + 1) / 2).lgamma()).exp()
    along = mean * sum(c * (a - b) for c, (a, b) in zip(levels, pairwise(tails), strict=True))
    return along, sum(c * c * (b - a) for c, (a, b) in zip(levels, pairwise(below), strict=True))


def _regularised(share: Any, exponent: Any) -> Any:
    from flint import arb

    return arb(1) if share == 1 else share.beta_lower(arb(1) / 2, exponent, 1)
