"""The mean of products of neighbouring partial sums of a geometric series: how squared spreads grow, on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction
from .mean_growth import MeanGrowth

SERIES_BELOW = 0.5  # |n y (2 + y)| below which the float kernel sums the series; what is left out is < 1e-18 of the sum
SERIES_TERMS = 14


class PairGrowth(SpecialFunction):
    """PairGrowth(y, n) = (1/n) sum_{k<n} 2 (1+y) s_k s_{k-1}/(2+y), s_k = 1 + (1+y) + ... + (1+y)^(k-1).

    y > -1, n >= 1 (any real n; a sum for integers).  With s_k = ((1+y)^k - 1)/y and geometric sums it is ::

        (2/y) (MeanGrowth(y (2+y), n) - MeanGrowth(y, n)) = (2/n) sum_{j>=1} C(n, j+2) y^(j-1) ((2+y)^j - 1),

    equal to (n - 1)(n - 2)/3, the mean of k (k - 1), at y = 0.
    """

    latex_template = r"\mathrm{{PairGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-11 for n >= 2 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            far = 2 * (MeanGrowth.kernel(y * (2 + y), n) - MeanGrowth.kernel(y, n)) / y
        near = np.abs(n * y * (2 + y)) < SERIES_BELOW
        return np.where(near, _series(np.where(near, y, 0.0), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return (n - 1) * (n - 2) / 3
        return 2 * (MeanGrowth.ball(y * (2 + y), n) - MeanGrowth.ball(y, n)) / y


def _series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the binomial series of the definition; y^(j-1) ((2+y)^j - 1) is w_j with w_{j+1} = y ((2+y) w_j + y^(j-1)
    (1+y)).
    """
    binomial = (n - 1) * (n - 2) / 6  # C(n, j + 2)/n
    weight, power = 1 + y, np.ones_like(y)
    total = binomial * weight
    with np.errstate(all="ignore"):
        for j in range(1, SERIES_TERMS):
            binomial = binomial * (n - 2 - j) / (j + 3)
            weight = y * ((2 + y) * weight + power * (1 + y))
            power = power * y
            total = total + binomial * weight
    return 2 * total
