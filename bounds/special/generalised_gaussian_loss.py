"""By how much the entropy of a generalised Gaussian law is below that of the Gaussian with the same variance.

With p = 1/shape the loss in nats is ln(2 pi e)/2 - ln(2 p) - (3 ln Gamma(p) - ln Gamma(3 p))/2 - p.  It vanishes to
second order at p = 1/2, the Gaussian itself, and is summed there as a series in u = p - 1/2 with the coefficients ::

    (-1)^k/k [2^k - 3/2 (2^k - 1) zeta(k) + 3^k/2 ((2^k - 1) zeta(k) - 2^k)],  k >= 2,

from the Hurwitz zeta values zeta(k, 1/2) and zeta(k, 3/2) of the derivatives of ln Gamma.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

SERIES_WITHIN = 0.05  # |p - 1/2| up to which the series is summed; its radius is 1/2
SERIES_TERMS = 24


class GeneralisedGaussianLoss(SpecialFunction):
    """Entropy of N(0, Var) less that of the density ``exp(-|x/s|^shape)``, shape > 0, in bits."""

    latex_template = r"\Delta h_{{\mathrm{{gg}}}}\left({0}\right)"
    nargs = 1

    @staticmethod
    def kernel(shape: Any) -> Any:
        """Return in float64, relative accuracy 1e-12 (1e-15 of ln Gamma for shapes below .1)."""
        shape = np.asarray(shape, float)
        u = (2 - shape) / (2 * shape)  # p - 1/2 without cancellation
        near = np.abs(u) <= SERIES_WITHIN
        return np.where(near, _series(np.where(near, u, 0.0)), _direct(shape)) / math.log(2)

    @staticmethod
    def ball(shape: Any) -> Any:
        from flint import arb

        p = 1 / shape
        nats = ((2 * arb.pi()).log() + 1) / 2 - (2 * p).log() - (3 * p.lgamma() - (3 * p).lgamma()) / 2 - p
        return arb(0) if (shape - 2).is_zero() else nats / arb(2).log()


def _direct(shape: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    p = 1 / shape
    return (math.log(2 * math.pi) + 1) / 2 - np.log(2 * p) - (3 * gammaln(p) - gammaln(3 * p)) / 2 - p


def _series(u: np.ndarray) -> np.ndarray:
    from scipy.special import zeta

    total = np.zeros_like(u)
    for k in range(SERIES_TERMS, 1, -1):
        half = (2**k - 1) * float(zeta(k))
        total = total * u + (-1) ** k / k * (2**k - 1.5 * half + 3**k / 2 * (half - 2**k))
    return total * u * u
