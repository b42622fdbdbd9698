"""How often a random spherical code misses a Gaussian vector: E e^(-M p(Z)), Z = chi^2_d/d, M = floor(2^bits).

Codewords are uniform on the sphere of radius r sqrt(d).  A source vector of squared norm z d lies within sqrt(D d) of a
codeword whose cosine to it is at least c = (z + r^2 - D)/(2 r sqrt(z)); that has probability P(1 - c^2, d) for
0 < c < 1, none for c >= 1 and at least 1/2 (used here) for c <= 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..enclosure import NotCertifiable
from .cap_probability import NegLog2Cap
from .function import SpecialFunction

PANELS, NODES = 240, 8  # Gauss-Legendre, over SPAN standard deviations of Z on either side of its mean
SPAN = 12.0
WHOLE_BITS = 53  # from here on a fraction of a codeword is below rounding


class RandomCodeMiss(SpecialFunction):
    """Upper bound on the probability of a miss, as a function of (bits, d, nmse, radius)."""

    latex_template = r"\varepsilon_{{\mathrm{{rc}}}}\left({0}, {1}, {2}, {3}\right)"

    @staticmethod
    def kernel(bits: Any, d: Any, nmse: Any, radius: Any) -> Any:
        """Return in float64; quadrature error below 1e-9 for d >= 2."""
        return np.vectorize(_miss, otypes=[float])(bits, d, nmse, radius)

    @staticmethod
    def ball(*args: Any) -> Any:
        """Not available: the inner probability would be an integral inside an integral."""
        raise NotCertifiable("the probability of a random code's miss is evaluated in float64 only")


def _miss(bits: float, d: float, nmse: float, radius: float) -> float:
    from scipy.special import gammainc, gammaincc

    spread = SPAN * math.sqrt(2 / d)
    low, high = max(0.0, 1 - spread), 1 + spread + SPAN**2 / d
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.linspace(low, high, PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (1 + nodes)).ravel()
    weight = (half * weights).ravel()
    log_density = d / 2 * math.log(d / 2) - math.lgamma(d / 2) + (d / 2 - 1) * np.log(z) - d * z / 2
    cosine = (z + radius * radius - nmse) / (2 * radius * np.sqrt(z))
    share = np.clip(1 - cosine * cosine, 1e-300, 1 - 1e-16)
    log2_p = np.where(cosine <= 0, -1.0, -NegLog2Cap.kernel(share, np.clip(cosine * cosine, 1e-16, 1.0), np.float64(d)))
    log2_codewords = math.log2(math.floor(2.0**bits)) if bits < WHOLE_BITS else bits
    exponent = np.where(cosine >= 1, 0.0, 2.0 ** np.minimum(log2_codewords + log2_p, 60.0))
    inside = float(np.sum(weight * np.exp(log_density - exponent)))
    return min(1.0, inside + float(gammainc(d / 2, low * d / 2) + gammaincc(d / 2, high * d / 2)))
