"""The mean of the partial sums of a geometric series: how far n steps of one factor spread, on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction

SERIES_BELOW = 0.1  # |n y| below which the float kernel sums the series; the first term left out is < 1e-19 of the sum
SERIES_TERMS = 12


class MeanGrowth(SpecialFunction):
    """MeanGrowth(y, n) = (1/n) sum_{r<n} (1 + (1+y) + ... + (1+y)^(r-1)) = (((1+y)^n - 1)/y - n)/(n y).

    y >= -1, n >= 1 (any real n; a sum for integers); equal to (n - 1)/2 at y = 0 and increasing in y.
    In hypergeometric form (n-1)/2 2F1(1, 2-n; 3; -y), whose series is used near 0.
    """

    latex_template = r"\mathrm{{MeanGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-13 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            grown = np.expm1((n - 1) * np.log1p(y))  # the powers up to n - 1: n itself would cancel at n near 1
            far = np.where(n == 1, 0.0, (grown * ((1 + y) / y) - (n - 1)) / (n * y))
        return np.where(np.abs(n * y) < SERIES_BELOW, _series(np.clip(y, -SERIES_BELOW, SERIES_BELOW), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return (n - 1) / 2
        return (((1 + y) ** n - 1) / y - n) / (n * y)


def _series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the binomial series of the definition, sum_k C(n, k+2) y^k / n."""
    term = total = (n - 1) / 2
    with np.errstate(all="ignore"):
        for k in range(SERIES_TERMS):
            term = term * (n - 2 - k) / (k + 3) * y
            total = total + term
    return total
