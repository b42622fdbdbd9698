"""By how much the mean entropy of two Gaussian components is below that of the Gaussian with the mixture's variance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

SERIES_WITHIN = 0.1  # |r - 1| up to which the series is summed
SERIES_TERMS = 18


class GaussianMixtureLoss(SpecialFunction):
    """(log2(w r + 1 - w) - w log2 r)/2 for a weight 0 < w < 1 and a ratio r > 0 of the variances; 0 at r = 1."""

    latex_template = r"\frac{{1}}{{2}}\log_2\frac{{{0} {1} + 1 - {0}}}{{{1}^{{{0}}}}}"
    nargs = 2

    @staticmethod
    def kernel(w: Any, r: Any) -> Any:
        """Return in float64, relative accuracy 1e-13: the lighter component is the one called w."""
        w, r = np.broadcast_arrays(np.asarray(w, float), np.asarray(r, float))
        light, ratio = np.where(w <= 0.5, w, 1 - w), np.where(w <= 0.5, r, 1 / r)
        excess = np.where(w <= 0.5, r - 1, (1 - r) / r)
        near = np.abs(excess) <= SERIES_WITHIN
        direct = np.log1p(light * excess) - light * np.log(ratio)
        return np.where(near, _series(light, np.where(near, excess, 0.0)), direct) / (2 * math.log(2))

    @staticmethod
    def ball(w: Any, r: Any) -> Any:
        from flint import arb

        if (r - 1).is_zero():
            return arb(0)
        return ((w * (r - 1)).log1p() - w * r.log()) / (2 * arb(2).log())


def _series(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ln(1 + w x) - w ln(1 + x) = w (1 - w) sum_(k >= 2) (-1)^k (1 + w + ... + w^(k-2)) x^k/k."""
    total, ones, term = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    power = np.ones_like(x)
    for k in range(2, SERIES_TERMS + 2):
        ones = ones + term
        term = term * w
        total = total + power * ones / k
        power = -power * x
    return w * (1 - w) * x * x * total
