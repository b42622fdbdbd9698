"""Elementary functions whose float values would cancel or overflow: differences, ratios, logarithms, powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from .function import SpecialFunction

SPLITTER = 2.0**27 + 1  # cuts a 53-bit significand into halves whose products are exact (Veltkamp)


class FusedDifference(SpecialFunction):
    """a - b c for finite a, b, c, relative accuracy 2^-52 however much cancels."""

    latex_template = r"\left({0} - {1} {2}\right)"
    nargs = 3

    @staticmethod
    def kernel(a: Any, b: Any, c: Any) -> Any:
        """Compute in float64, by Dekker's exact product of the two significands."""
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


class GeometricDecay(SpecialFunction):
    """(1 - x y)^n for 0 <= x y <= 1, n >= 1."""

    latex_template = r"\left(1 - {0} {1}\right)^{{{2}}}"
    nargs = 3

    @staticmethod
    def kernel(x: Any, y: Any, n: Any) -> Any:
        """Compute in float64, relative accuracy 1e-15 times the logarithm of the result."""
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


class Log2Ratio(SpecialFunction):
    """log2(a/b), a, b > 0."""

    latex_template = r"\log_2\frac{{{0}}}{{{1}}}"
    nargs = 2

    @staticmethod
    def kernel(a: Any, b: Any) -> Any:
        """Compute in float64; between 1/2 and 2 the difference a - b is exact."""
        a, b = np.asarray(a, float), np.asarray(b, float)
        near = (a >= b / 2) & (a <= 2 * b)
        excess = np.where(near, (a - b) / b, 0.0)
        return np.where(near, np.log1p(excess) / math.log(2), np.log2(a) - np.log2(b))

    @staticmethod
    def ball(a: Any, b: Any) -> Any:
        from flint import arb

        return (a / b).log() / arb(2).log()


class InversePowerOfTwoLessOne(SpecialFunction):
    """1/(2^x - 1), x > 0."""

    latex_template = r"\frac{{1}}{{2^{{{0}}} - 1}}"
    nargs = 1

    @staticmethod
    def kernel(x: Any) -> Any:
        """Compute in float64; 0 where 2^x exceeds it."""
        with np.errstate(over="ignore"):
            return 1 / np.expm1(math.log(2) * np.asarray(x, float))

    @staticmethod
    def ball(x: Any) -> Any:
        from flint import arb

        return 1 / (x * arb(2).log()).expm1()


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


STIRLING_FROM = 16.0  # from here five terms of Stirling's series are accurate to 1e-16
# ln n! = (n + 1/2) ln n - n + ln(2 pi)/2 + sum_k STIRLING[k] n^-(2 k + 1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


class Log2Binomial(SpecialFunction):
    """log2 of the number of k-subsets of a d-set, 0 <= k <= d; by Stirling's formula with min(k, d - k)."""

    latex_template = r"\log_2\binom{{{0}}}{{{1}}}"

    @staticmethod
    def kernel(d: Any, k: Any) -> Any:
        d, k = np.broadcast_arrays(np.asarray(d, float), np.asarray(k, float))
        k = np.minimum(k, d - k)
        inside = k > 0
        k, d = np.where(inside, k, 1.0), np.where(inside, d, 2.0)
        share = k / d
        entropy = -k * np.log(share) - (d - k) * np.log1p(-share)
        rest = (
            -0.5 * np.log(2 * math.pi * k * (1 - share))
            + _stirling_remainder(d)
            - _stirling_remainder(k)
            - _stirling_remainder(d - k)
        )
        return np.where(inside, (entropy + rest) / math.log(2), 0.0)

    @staticmethod
    def ball(d: Any, k: Any) -> Any:
        from flint import arb

        if k.is_zero() or (d - k).is_zero():
            return arb(0)
        return ((d + 1).lgamma() - (k + 1).lgamma() - (d - k + 1).lgamma()) / arb(2).log()


def _stirling_remainder(n: np.ndarray) -> np.ndarray:
    """Return what Stirling's formula leaves of ln n!, n >= 1."""
    from scipy.special import gammaln

    low = np.minimum(n, STIRLING_FROM)
    direct = gammaln(low + 1) - (low + 0.5) * np.log(low) + low - math.log(2 * math.pi) / 2
    w = 1 / np.maximum(n, STIRLING_FROM)
    series = w * sum(c * w ** (2 * k) for k, c in reversed(list(enumerate(STIRLING))))
    return np.where(n < STIRLING_FROM, direct, series)


THETA_TERMS = 4  # either series is then exact to 1e-18 on its side of s = pi


class ThetaTwo(SpecialFunction):
    """2 sum_(n >= 1) e^(-s (n - 1/2)^2) for s > 0."""

    latex_template = r"\vartheta_2\left(e^{{-{0}}}\right)"

    @staticmethod
    def kernel(s: Any) -> Any:
        """Compute in float64: the sum itself above pi, its Poisson dual sqrt(pi/s) (1 + 2 sum (-1)^n e^(-pi^2 n^2/s))
        below.
        """
        s = np.asarray(s, float)
        large, small = np.maximum(s, math.pi), np.minimum(s, math.pi)
        direct = sum(2 * np.exp(-large * (n - 0.5) ** 2) for n in range(1, THETA_TERMS + 1))
        dual = 1 + sum(2 * (-1) ** n * np.exp(-((math.pi * n) ** 2) / small) for n in range(1, THETA_TERMS + 1))
        return np.where(s > math.pi, direct, np.sqrt(math.pi / small) * dual)

    @staticmethod
    def ball(s: Any) -> Any:
        """As a ball; the tail of either series is below twice its first dropped term."""
        from flint import arb, ctx

        terms = 4 + math.isqrt(ctx.prec)
        if s > 3:
            total = sum((2 * (-s * (arb(n) - 0.5) ** 2).exp() for n in range(1, terms)), arb(0))
            return total + (4 * (-s * (arb(terms) - 0.5) ** 2).exp()).union(arb(0))
        unit = -(arb.pi() ** 2) / s
        dual = 1 + sum((2 * (-1) ** n * (unit * n * n).exp() for n in range(1, terms)), arb(0))
        rest = 4 * (unit * terms * terms).exp()
        return (arb.pi() / s).sqrt() * (dual + rest.union(-rest))
