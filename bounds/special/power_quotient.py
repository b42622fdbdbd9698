"""The divided difference of a power: (a^n - b^n)/(a - b) with all digits for a close to b."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction


class PowerQuotient(SpecialFunction):
    """PowerQuotient(a, b, n) = sum_{i<n} a^i b^(n-1-i), a, b > 0, integer n >= 1.

    Equal to (a^n - b^n)/(a - b) for a other than b, to n a^(n-1) at a = b.
    """

    latex_template = r"\mathrm{{PowerQuotient}}\left({}, {}, {}\right)"
    nargs = 3

    @staticmethod
    def kernel(a: Any, b: Any, n: Any) -> Any:
        """Evaluate in float64."""
        a, b, n = np.broadcast_arrays(*(np.asarray(argument, float) for argument in (a, b, n)))
        large, small = np.maximum(a, b), np.minimum(a, b)
        y = (small - large) / large
        with np.errstate(all="ignore"):
            sums = np.where(y == 0, n, np.expm1(n * np.log1p(y)) / y)
            return large ** (n - 1) * sums

    @staticmethod
    def ball(a: Any, b: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic, term by term."""
        value, power = 0 * a, 0 * a + 1
        for _ in range(int(n.unique_fmpz())):
            value, power = value * a + power, power * b
        return value
