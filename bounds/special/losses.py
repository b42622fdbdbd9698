"""What Shannon's lower bound loses against the Gaussian rate, for three families of sources."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

MIXTURE_WITHIN = 0.1  # |r - 1| up to which the series is summed
MIXTURE_TERMS = 18


class GaussianMixtureLoss(SpecialFunction):
    """(log2(w r + 1 - w) - w log2 r)/2 for a weight 0 < w < 1 and a ratio r > 0 of the variances; 0 at r = 1."""

    latex_template = r"\frac{{1}}{{2}}\log_2\frac{{{0} {1} + 1 - {0}}}{{{1}^{{{0}}}}}"
    nargs = 2

    @staticmethod
    def kernel(w: Any, r: Any) -> Any:
        """Compute in float64, relative accuracy 1e-13: the lighter component is the one called w."""
        w, r = np.broadcast_arrays(np.asarray(w, float), np.asarray(r, float))
        light, ratio = np.where(w <= 0.5, w, 1 - w), np.where(w <= 0.5, r, 1 / r)
        excess = np.where(w <= 0.5, r - 1, (1 - r) / r)
        near = np.abs(excess) <= MIXTURE_WITHIN
        direct = np.log1p(light * excess) - light * np.log(ratio)
        return np.where(near, _mixture_series(light, np.where(near, excess, 0.0)), direct) / (2 * math.log(2))

    @staticmethod
    def ball(w: Any, r: Any) -> Any:
        from flint import arb

        if (r - 1).is_zero():
            return arb(0)
        return ((w * (r - 1)).log1p() - w * r.log()) / (2 * arb(2).log())


def _mixture_series(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return ln(1 + w x) - w ln(1 + x) = w (1 - w) sum_(k >= 2) (-1)^k (1 + w + ... + w^(k-2)) x^k/k."""
    total, ones, term = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    power = np.ones_like(x)
    for k in range(2, MIXTURE_TERMS + 2):
        ones = ones + term
        term = term * w
        total = total + power * ones / k
        power = -power * x
    return w * (1 - w) * x * x * total


GENERALISED_WITHIN = 0.05  # |p - 1/2| up to which the series is summed; its radius is 1/2
GENERALISED_TERMS = 24


class GeneralisedGaussianLoss(SpecialFunction):
    """Entropy of N(0, Var) less that of the density ``exp(-|x/s|^shape)``, shape > 0, in bits.

    Notes
    -----
    With p = 1/shape the loss in nats is ln(2 pi e)/2 - ln(2 p) - (3 ln Gamma(p) - ln Gamma(3 p))/2 - p.  It vanishes to
    second order at p = 1/2, the Gaussian itself, and is a series in u = p - 1/2 there.  Its coefficients are ::

        (-1)^k/k [2^k - 3/2 (2^k - 1) zeta(k) + 3^k/2 ((2^k - 1) zeta(k) - 2^k)],  k >= 2,

    from the Hurwitz zeta values zeta(k, 1/2) and zeta(k, 3/2) of the derivatives of ln Gamma.
    """

    latex_template = r"\Delta h_{{\mathrm{{gg}}}}\left({0}\right)"
    nargs = 1

    @staticmethod
    def kernel(shape: Any) -> Any:
        """Compute in float64, relative accuracy 1e-12 (1e-15 of ln Gamma for shapes below .1)."""
        shape = np.asarray(shape, float)
        u = (2 - shape) / (2 * shape)  # p - 1/2 without cancellation
        near = np.abs(u) <= GENERALISED_WITHIN
        return np.where(near, _generalised_series(np.where(near, u, 0.0)), _generalised_direct(shape)) / math.log(2)

    @staticmethod
    def ball(shape: Any) -> Any:
        from flint import arb

        p = 1 / shape
        nats = ((2 * arb.pi()).log() + 1) / 2 - (2 * p).log() - (3 * p.lgamma() - (3 * p).lgamma()) / 2 - p
        return arb(0) if (shape - 2).is_zero() else nats / arb(2).log()


def _generalised_direct(shape: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    p = 1 / shape
    return (math.log(2 * math.pi) + 1) / 2 - np.log(2 * p) - (3 * gammaln(p) - gammaln(3 * p)) / 2 - p


def _generalised_series(u: np.ndarray) -> np.ndarray:
    from scipy.special import zeta

    total = np.zeros_like(u)
    for k in range(GENERALISED_TERMS, 1, -1):
        half = (2**k - 1) * float(zeta(k))
        total = total * u + (-1) ** k / k * (2**k - 1.5 * half + 3**k / 2 * (half - 2**k))
    return total * u * u


STUDENT_FROM = 28.0  # from this v the terms below leave a remainder under 1e-16 of the loss
# g(a) = -1/(8 a) + sum_k G_SERIES[k] a^-(2 k + 3), from Stirling's series
G_SERIES = (1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
LOG_TERMS = 16  # of -ln(1 - 2 x)/2 = sum_n 2^(n-1) x^n/n, x <= 1/28


class StudentLoss(SpecialFunction):
    """Entropy of N(0, Var) less that of a Student law of v > 2 degrees of freedom, in bits.

    Notes
    -----
    With v degrees of freedom, a = v/2 and g(a) = ln Gamma(a + 1/2)/Gamma(a) - ln(a)/2 the loss in nats is ::

        -ln(1 - 2/v)/2 - 1/(2 v) + g(a) - (a + 1/2) g'(a)  =  3/(4 v^2) + O(v^-3):

    all terms of order 1/v cancel, so for large v they are left out before anything is rounded.
    """

    latex_template = r"\Delta h_t\left({0}\right)"
    nargs = 1

    @staticmethod
    def kernel(v: Any) -> Any:
        """Compute in float64, relative accuracy 1e-11."""
        v = np.asarray(v, float)
        nats = np.where(
            v < STUDENT_FROM, _student_direct(np.minimum(v, STUDENT_FROM)), _student_series(np.maximum(v, STUDENT_FROM))
        )
        return nats / math.log(2)

    @staticmethod
    def ball(v: Any) -> Any:
        from flint import arb

        half, above = v / 2, (v + 1) / 2
        entropy = above * (above.digamma() - half.digamma()) + (arb.pi() * (v - 2)).log() / 2
        entropy += half.lgamma() - above.lgamma()
        return (((2 * arb.pi()).log() + 1) / 2 - entropy) / arb(2).log()


def _student_direct(v: np.ndarray) -> np.ndarray:
    from scipy.special import digamma, gammaln

    half, above = v / 2, (v + 1) / 2
    entropy = above * (digamma(above) - digamma(half)) + np.log(math.pi * (v - 2)) / 2 + gammaln(half) - gammaln(above)
    return (math.log(2 * math.pi) + 1) / 2 - entropy


def _student_series(v: np.ndarray) -> np.ndarray:
    x, a = 1 / v, v / 2
    logarithm = x * x * sum(2.0 ** (n - 1) / n * x ** (n - 2) for n in range(LOG_TERMS, 1, -1))
    powers = [(2 * k + 3, c) for k, c in enumerate(G_SERIES)]
    rest = sum(c * a**-n for n, c in reversed(powers))
    slope = sum(-n * c * a ** -(n + 1) for n, c in reversed(powers))
    return logarithm - x * x / 4 + rest - (a + 0.5) * slope
