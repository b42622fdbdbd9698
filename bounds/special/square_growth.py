"""Weighted partial sums of a geometric series: what n hops add up of a load that grows with the square of the hop."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction
from .mean_growth import MeanGrowth

SERIES_BELOW = 1.0  # |n y| below which the float kernel sums the series; the first term left out is < 1e-19 of the sum
SERIES_TERMS = 20


class SquareGrowth(SpecialFunction):
    """SquareGrowth(y, n) = sum_{k<n} k (k-1) (1+y)^(n-1-k) = 2 sum_{j>=3} C(n, j) y^(j-3), y >= 0, integer n >= 1."""

    latex_template = r"\mathrm{{SquareGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-11 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            far = 2 * n * (MeanGrowth.kernel(y, n) - (n - 1) / 2) / y
        return np.where(n * y < SERIES_BELOW, _series(np.minimum(y, SERIES_BELOW), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return n * (n - 1) * (n - 2) / 3
        return 2 * n * (MeanGrowth.ball(y, n) - (n - 1) / 2) / y


def _series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The binomial series of the definition."""
    term = total = n * (n - 1) * (n - 2) / 3
    with np.errstate(all="ignore"):
        for k in range(SERIES_TERMS):
            term = term * (n - 3 - k) / (k + 4) * y
            total = total + term
    return total
