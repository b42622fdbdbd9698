"""1 - 2^-x with all digits for small x, where 2^-x would round to 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction


class OneMinusPowerOfTwo(SpecialFunction):
    """1 - 2^-x, x >= 0."""

    latex_template = r"\left(1 - 2^{{-{0}}}\right)"
    nargs = 1

    @staticmethod
    def kernel(x: Any) -> Any:
        return -np.expm1(-math.log(2) * np.asarray(x, float))

    @staticmethod
    def ball(x: Any) -> Any:
        from flint import arb

        return -(-x * arb(2).log()).expm1()
