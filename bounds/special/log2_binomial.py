"""log2 of a binomial coefficient, for arguments far beyond the range of the coefficient itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction


class Log2Binomial(SpecialFunction):
    """log2 of the number of k-subsets of a d-set, 0 <= k <= d; -log2((d + 1) B(k + 1, d - k + 1))."""

    latex_template = r"\log_2\binom{{{0}}}{{{1}}}"

    @staticmethod
    def kernel(d: Any, k: Any) -> Any:
        """In float64."""
        from scipy.special import betaln

        d, k = np.asarray(d, float), np.asarray(k, float)
        return np.maximum(-(np.log1p(d) + betaln(k + 1, d - k + 1)) / math.log(2), 0.0)

    @staticmethod
    def ball(d: Any, k: Any) -> Any:
        """As a ball."""
        from flint import arb

        if k.is_zero() or (d - k).is_zero():
            return arb(0)
        return ((d + 1).lgamma() - (k + 1).lgamma() - (d - k + 1).lgamma()) / arb(2).log()
