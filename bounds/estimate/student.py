"""Student's quantiles without a statistics package."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

EXACT_UP_TO = 200  # degrees of freedom; beyond, the expansion is good to 1e-8


@lru_cache(maxsize=256)
def student_quantile(level: float, freedom: int) -> float:
    """Return the t with ``P(|T| <= t)`` = level for ``freedom`` >= 1 degrees of freedom; 0 < level < 1.

    Bisection on the finite trigonometric sum of the distribution function, or the expansion in 1/freedom.

    Parameters
    ----------
    level : float
        Confidence of the interval, 0 < level < 1.
    freedom : int
        Degrees of freedom, >= 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    if not 0 < level < 1 or freedom < 1:
        raise ValueError(f"needs 0 < level < 1 and freedom >= 1; got level = {level}, freedom = {freedom}")
    if freedom > EXACT_UP_TO:
        z = NormalDist().inv_cdf((1 + level) / 2)
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / freedom + second / freedom**2 + third / freedom**3
    low, high = 0.0, math.pi / 2  # in theta = atan(t / sqrt(freedom))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _two_sided(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _two_sided(theta: float, freedom: int) -> float:
    """Return ``P(|T| <= sqrt(freedom) tan(theta))`` (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    c, odd = math.cos(theta), freedom % 2
    term, total = (c if odd else 1.0), 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= c * c * k / (k + 1)
    return 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
