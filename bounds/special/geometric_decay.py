"""(1 - x y)^n with all digits for a small rate x y, where 1 - x y would round it away before a large power."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction
from .fused_difference import FusedDifference


class GeometricDecay(SpecialFunction):
    """(1 - x y)^n for 0 <= x y <= 1, n >= 1."""

    latex_template = r"\left(1 - {0} {1}\right)^{{{2}}}"
    nargs = 3

    @staticmethod
    def kernel(x: Any, y: Any, n: Any) -> Any:
        """Return in float64, relative accuracy 1e-15 times the logarithm of the result."""
        rate = np.asarray(x, float) * np.asarray(y, float)
        left = np.maximum(FusedDifference.kernel(1.0, x, y), 0.0)
        with np.errstate(divide="ignore"):
            log = np.where(rate < 0.5, np.log1p(-np.minimum(rate, 0.5)), np.log(left))
        return np.exp(np.asarray(n, float) * log)

    @staticmethod
    def ball(x: Any, y: Any, n: Any) -> Any:
        """As a ball; a factor that may be 0 gives everything from 0 to the power of its upper end."""
        from flint import arb

        left = 1 - x * y
        if left.is_zero():
            return arb(0)
        if left > 0:
            return (n * (-x * y).log1p()).exp()
        return (n * left.abs_upper().log()).exp().union(arb(0))
