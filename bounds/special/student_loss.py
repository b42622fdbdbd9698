"""By how much the entropy of a Student law is below that of the Gaussian with the same variance.

With v degrees of freedom, a = v/2 and g(a) = ln Gamma(a + 1/2)/Gamma(a) - ln(a)/2 the loss in nats is ::

    -ln(1 - 2/v)/2 - 1/(2 v) + g(a) - (a + 1/2) g'(a)  =  3/(4 v^2) + O(v^-3):

all terms of order 1/v cancel, so for large v they are left out before anything is rounded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

SERIES_FROM = 28.0  # from this v the terms below leave a remainder under 1e-16 of the loss
# g(a) = -1/(8 a) + sum_k G_SERIES[k] a^-(2 k + 3), from Stirling's series
G_SERIES = (1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
LOG_TERMS = 16  # of -ln(1 - 2 x)/2 = sum_n 2^(n-1) x^n/n, x <= 1/28


class StudentLoss(SpecialFunction):
    """Entropy of N(0, Var) less that of a Student law of v > 2 degrees of freedom, in bits."""

    latex_template = r"\Delta h_t\left({0}\right)"
    nargs = 1

    @staticmethod
    def kernel(v: Any) -> Any:
        """Return in float64, relative accuracy 1e-11."""
        v = np.asarray(v, float)
        nats = np.where(v < SERIES_FROM, _direct(np.minimum(v, SERIES_FROM)), _series(np.maximum(v, SERIES_FROM)))
        return nats / math.log(2)

    @staticmethod
    def ball(v: Any) -> Any:
        from flint import arb

        half, above = v / 2, (v + 1) / 2
        entropy = above * (above.digamma() - half.digamma()) + (arb.pi() * (v - 2)).log() / 2
        entropy += half.lgamma() - above.lgamma()
        return (((2 * arb.pi()).log() + 1) / 2 - entropy) / arb(2).log()


def _direct(v: np.ndarray) -> np.ndarray:
    from scipy.special import digamma, gammaln

    half, above = v / 2, (v + 1) / 2
    entropy = above * (digamma(above) - digamma(half)) + np.log(math.pi * (v - 2)) / 2 + gammaln(half) - gammaln(above)
    return (math.log(2 * math.pi) + 1) / 2 - entropy


def _series(v: np.ndarray) -> np.ndarray:
    x, a = 1 / v, v / 2
    logarithm = x * x * sum(2.0 ** (n - 1) / n * x ** (n - 2) for n in range(LOG_TERMS, 1, -1))
    powers = [(2 * k + 3, c) for k, c in enumerate(G_SERIES)]
    rest = sum(c * a**-n for n, c in reversed(powers))
    slope = sum(-n * c * a ** -(n + 1) for n, c in reversed(powers))
    return logarithm - x * x / 4 + rest - (a + 0.5) * slope
