"""log2 of a binomial coefficient, for arguments far beyond the range of the coefficient itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

STIRLING_FROM = 16.0  # from here five terms of Stirling's series are accurate to 1e-16
# ln n! = (n + 1/2) ln n - n + ln(2 pi)/2 + sum_k STIRLING[k] n^-(2 k + 1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


class Log2Binomial(SpecialFunction):
    """log2 of the number of k-subsets of a d-set, 0 <= k <= d; by Stirling's formula with min(k, d - k)."""

    latex_template = r"\log_2\binom{{{0}}}{{{1}}}"

    @staticmethod
    def kernel(d: Any, k: Any) -> Any:
        d, k = np.broadcast_arrays(np.asarray(d, float), np.asarray(k, float))
        k = np.minimum(k, d - k)
        inside = k > 0
        k, d = np.where(inside, k, 1.0), np.where(inside, d, 2.0)
        share = k / d
        entropy = -k * np.log(share) - (d - k) * np.log1p(-share)
        rest = -0.5 * np.log(2 * math.pi * k * (1 - share)) + _remainder(d) - _remainder(k) - _remainder(d - k)
        return np.where(inside, (entropy + rest) / math.log(2), 0.0)

    @staticmethod
    def ball(d: Any, k: Any) -> Any:
        from flint import arb

        if k.is_zero() or (d - k).is_zero():
            return arb(0)
        return ((d + 1).lgamma() - (k + 1).lgamma() - (d - k + 1).lgamma()) / arb(2).log()


def _remainder(n: np.ndarray) -> np.ndarray:
    """Return what Stirling's formula leaves of ln n!, n >= 1."""
    from scipy.special import gammaln

    low = np.minimum(n, STIRLING_FROM)
    direct = gammaln(low + 1) - (low + 0.5) * np.log(low) + low - math.log(2 * math.pi) / 2
    w = 1 / np.maximum(n, STIRLING_FROM)
    series = w * sum(c * w ** (2 * k) for k, c in reversed(list(enumerate(STIRLING))))
    return np.where(n < STIRLING_FROM, direct, series)
