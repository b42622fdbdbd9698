"""log2(a/b) with all digits for a close to b, where the quotient would round their difference away."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction


class Log2Ratio(SpecialFunction):
    """log2(a/b), a, b > 0."""

    latex_template = r"\log_2\frac{{{0}}}{{{1}}}"
    nargs = 2

    @staticmethod
    def kernel(a: Any, b: Any) -> Any:
        """Return in float64; between 1/2 and 2 the difference a - b is exact."""
        a, b = np.asarray(a, float), np.asarray(b, float)
        near = (a >= b / 2) & (a <= 2 * b)
        excess = np.where(near, (a - b) / b, 0.0)
        return np.where(near, np.log1p(excess) / math.log(2), np.log2(a) - np.log2(b))

    @staticmethod
    def ball(a: Any, b: Any) -> Any:
        from flint import arb

        return (a / b).log() / arb(2).log()
