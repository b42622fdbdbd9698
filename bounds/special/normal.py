"""Quantiles of the normal and chi-square laws, by their upper tail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction


class NormalUpperQuantile(SpecialFunction):
    """The x with P(N(0,1) > x) = p, 0 < p < 1."""

    latex_template = r"Q^{{-1}}\left({0}\right)"

    @staticmethod
    def kernel(p: Any) -> Any:
        """In float64."""
        from scipy.special import ndtri

        return -ndtri(np.asarray(p, float))

    @staticmethod
    def ball(p: Any) -> Any:
        """As a ball."""
        from flint import arb

        return arb(2).sqrt() * (2 * p).erfcinv() if hasattr(p, "erfcinv") else -arb(2).sqrt() * (2 * p - 1).erfinv()


class ChiSquareUpperQuantile(SpecialFunction):
    """The x with P(chi^2_n > x) = p, n >= 1, 0 < p < 1."""

    latex_template = r"\chi^2_{{{0},{1}}}"

    @staticmethod
    def kernel(n: Any, p: Any) -> Any:
        """In float64."""
        from scipy.special import gammainccinv

        return 2 * gammainccinv(np.asarray(n, float) / 2, np.asarray(p, float))

    @staticmethod
    def ball(n: Any, p: Any) -> Any:
        """As a ball: two points between which the tail certainly crosses p."""
        from flint import arb, ctx

        half = n / 2
        x = arb(float(ChiSquareUpperQuantile.kernel(float(n.mid()), float(p.mid())))) / 2

        def tail(at: Any) -> Any:
            return at.gamma_upper(half, regularized=1) if at > 0 else arb("nan")

        for _ in range(2 + int(math.log2(ctx.prec))):
            density = ((half - 1) * x.log() - x - half.lgamma()).exp()
            x = (x + (tail(x) - p) / density).mid()
        step = x * arb(2) ** (-(ctx.prec * 3) // 5)
        low, high = (x - step).mid(), (x + step).mid()
        if not (tail(low) > p and tail(high) < p):
            return arb("nan")
        return 2 * low.union(high)
