"""Quantiles of the normal and chi-square laws, by their upper tail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

EXPANSION_FROM = 1e5  # degrees of freedom from which five terms of the expansion leave 1e-12 of the first


class NormalUpperQuantile(SpecialFunction):
    """The x with P(N(0,1) > x) = p, 0 < p < 1."""

    latex_template = r"Q^{{-1}}\left({0}\right)"

    @staticmethod
    def kernel(p: Any) -> Any:
        from scipy.special import ndtri

        return -ndtri(np.asarray(p, float))

    @staticmethod
    def ball(p: Any) -> Any:
        from flint import arb

        return arb(2).sqrt() * (2 * p).erfcinv() if hasattr(p, "erfcinv") else -arb(2).sqrt() * (2 * p - 1).erfinv()


class ChiSquareUpperQuantile(SpecialFunction):
    """The x with P(chi^2_n > x) = p, n >= 1, 0 < p < 1."""

    latex_template = r"\chi^2_{{{0},{1}}}"

    @staticmethod
    def kernel(n: Any, p: Any) -> Any:
        return np.asarray(n, float) * np.exp2(ChiSquareLog2Ratio.kernel(n, p))

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


class ChiSquareLog2Ratio(SpecialFunction):
    """log2(x/n) for the x with P(chi^2_n > x) = p: close to 0 for large n, where x itself has lost the digits."""

    latex_template = r"\log_2\frac{{\chi^2_{{{0},{1}}}}}{{{0}}}"
    nargs = 2

    @staticmethod
    def kernel(n: Any, p: Any) -> Any:
        """Compute in float64, from the incomplete gamma function, or Cornish and Fisher's expansion for large n."""
        from scipy.special import gammainccinv, gammaincinv

        n, p = np.broadcast_arrays(np.asarray(n, float), np.asarray(p, float))
        large = n >= EXPANSION_FROM
        half = np.where(large, 1.0, n / 2)
        above, below = gammainccinv(half, np.minimum(p, 0.5)), gammaincinv(half, np.minimum(1 - p, 0.5))
        direct = np.log(np.where(p <= 0.5, above, below) / half)
        expanded = np.log1p(_cornish_fisher(NormalUpperQuantile.kernel(p), np.where(large, n, EXPANSION_FROM)))
        return np.where(large, expanded, direct) / math.log(2)

    @staticmethod
    def ball(n: Any, p: Any) -> Any:
        from flint import arb

        return (ChiSquareUpperQuantile.ball(n, p) / n).log() / arb(2).log()


def _cornish_fisher(z: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return x/n - 1 of the chi-square quantile x at the normal quantile z, with an error of order n^-3."""
    s = np.sqrt(2 / n)
    terms = (
        z,
        (z**2 - 1) / 3,
        (z**3 - 7 * z) / 36,
        -(3 * z**4 + 7 * z**2 - 16) / 810,
        (9 * z**5 + 256 * z**3 - 433 * z) / 38880,
    )
    return s * sum(term * s**k for k, term in reversed(list(enumerate(terms))))
