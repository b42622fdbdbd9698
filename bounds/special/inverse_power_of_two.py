"""1/(2^x - 1) with all digits for small x: the omega at which log2(1 + 1/omega) is x."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction


class InversePowerOfTwoLessOne(SpecialFunction):
    """1/(2^x - 1), x > 0."""

    latex_template = r"\frac{{1}}{{2^{{{0}}} - 1}}"
    nargs = 1

    @staticmethod
    def kernel(x: Any) -> Any:
        """Return in float64; 0 where 2^x exceeds it."""
        with np.errstate(over="ignore"):
            return 1 / np.expm1(math.log(2) * np.asarray(x, float))

    @staticmethod
    def ball(x: Any) -> Any:
        from flint import arb

        return 1 / (x * arb(2).log()).expm1()
