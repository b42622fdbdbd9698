"""a - b c rounded once: the product's rounding error would be all that is left when b c is close to a."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction

SPLITTER = 2.0**27 + 1  # cuts a 53-bit significand into halves whose products are exact (Veltkamp)


class FusedDifference(SpecialFunction):
    """a - b c for finite a, b, c, relative accuracy 2^-52 however much cancels."""

    latex_template = r"\left({0} - {1} {2}\right)"
    nargs = 3

    @staticmethod
    def kernel(a: Any, b: Any, c: Any) -> Any:
        """Return in float64, by Dekker's exact product of the two significands."""
        significand_b, exponent_b = np.frexp(np.asarray(b, float))
        significand_c, exponent_c = np.frexp(np.asarray(c, float))
        product = significand_b * significand_c
        (high_b, low_b), (high_c, low_c) = _halves(significand_b), _halves(significand_c)
        rounding = ((high_b * high_c - product) + high_b * low_c + low_b * high_c) + low_b * low_c
        exponent = exponent_b + exponent_c
        return (np.asarray(a, float) - np.ldexp(product, exponent)) - np.ldexp(rounding, exponent)

    @staticmethod
    def ball(a: Any, b: Any, c: Any) -> Any:
        return a - b * c


def _halves(significand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = SPLITTER * significand
    high = scaled - (scaled - significand)
    return high, significand - high
