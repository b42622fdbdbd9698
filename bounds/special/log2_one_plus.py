"""log2(1 + x) with all digits for small x, where 1 + x would round them away."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from .function import SpecialFunction


class Log2OnePlus(SpecialFunction):
    """log2(1 + x), x > -1."""

    latex_template = r"\log_2\left(1 + {0}\right)"

    @staticmethod
    def kernel(x: Any) -> Any:
        return np.log1p(np.asarray(x, float)) / math.log(2)

    @staticmethod
    def ball(x: Any) -> Any:
        from flint import arb

        return x.log1p() / arb(2).log()

    def _eval_rewrite_as_log(self, x: sp.Expr, **hints: Any) -> sp.Expr:
        return sp.log(1 + x, 2)
