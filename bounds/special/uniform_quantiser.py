"""The midtread uniform quantiser of a standard normal variable: entropy of its index, log2 of its centroids' error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

REACH = 39.0  # beyond, float64 has no normal tail left
SMALLEST_STEP = 0.01


class UniformQuantiserEntropy(SpecialFunction):
    """Bits of the index of round(X/h), X standard normal, h >= 0.01."""

    latex_template = r"H_{{\mathrm{{u}}}}\left({0}\right)"

    @staticmethod
    def kernel(step: Any) -> Any:
        return np.vectorize(lambda h: _sums(float(h))[0], otypes=[float])(step)

    @staticmethod
    def ball(step: Any) -> Any:
        return _ball_sums(step)[0]


class UniformQuantiserLog2Error(SpecialFunction):
    """log2 of the mean square error of decoding round(X/h) to its cell's mean, X standard normal, h >= 0.01."""

    latex_template = r"\log_2 D_{{\mathrm{{u}}}}\left({0}\right)"

    @staticmethod
    def kernel(step: Any) -> Any:
        """Compute in float64, with all digits where the error is close to 1."""
        return np.vectorize(lambda h: _sums(float(h))[1], otypes=[float])(step)

    @staticmethod
    def ball(step: Any) -> Any:
        return _ball_sums(step)[1]


def _sums(step: float) -> tuple[float, float]:
    from scipy.special import ndtr

    if not step >= SMALLEST_STEP * (1 - 1e-12):
        raise ValueError(f"the quantiser is evaluated for step >= {SMALLEST_STEP} standard deviations; got {step}")
    edges = step * (np.arange(max(2, math.ceil(REACH / step))) + 0.5)
    tail = np.append(ndtr(-edges), 0.0)
    density = np.append(np.exp(-edges * edges / 2) / math.sqrt(2 * math.pi), 0.0)
    centre = math.erf(step / math.sqrt(8))
    mass, first = -np.diff(tail), -np.diff(density)
    ends = np.append(edges, REACH + 2 * step)
    used = mass > 0
    mass, first = mass[used], first[used]
    log2_centre = math.log2(centre) if centre < 0.5 else math.log1p(-2 * tail[0]) / math.log(2)
    entropy = -centre * log2_centre - 2 * float(np.sum(mass * np.log2(mass)))
    captured = 2 * float(np.sum(first * (first / mass)))  # energy of the decoded values: 1 less the error
    if captured < 0.5:
        return entropy, math.log1p(-captured) / math.log(2)
    # cell by cell, E X^2 - (E X)^2/P, so that small errors keep their digits
    moment = -np.diff(tail + np.where(ends < REACH, ends, 0.0) * density)[used]
    middle = centre - step * math.exp(-step * step / 8) / math.sqrt(2 * math.pi)
    return entropy, math.log2(middle + 2 * float(np.sum(moment - first * first / mass)))


def _ball_sums(step: Any) -> tuple[Any, Any]:
    """Return entropy and log2 of the error in balls; the tails by E[X^2; X > a] and by a geometric majorant of -p log2
    p.
    """
    from flint import arb, ctx

    if step < arb(1) / 100:
        return arb("nan"), arb("nan")
    count = max(2, math.ceil(math.sqrt(1.4 * ctx.prec + 20) / float(step)))
    log2, root = arb(2).log(), arb(2).sqrt()
    edges = [step * (arb(k) + 0.5) for k in range(count + 1)]
    tail = [(a / root).erfc() / 2 for a in edges]
    density = [(-a * a / 2).exp() / (2 * arb.pi()).sqrt() for a in edges]
    centre = 1 - 2 * tail[0]
    entropy, kept = -centre * centre.log() / log2, arb(0)
    for k in range(count):
        mass, first = tail[k] - tail[k + 1], density[k] - density[k + 1]
        entropy -= 2 * mass * mass.log() / log2
        kept += 2 * first * first / mass
    last = edges[-1]  # p <= e^(-a^2/2)/2 < 1/e, and the majorant e^(-a^2/2) (a^2/2 + 1) is log-concave in a
    term, after = ((-a * a / 2).exp() * (a * a / 2 + 1) for a in (last, last + step))
    rest = 2 * term / (1 - after / term) / log2
    captured = kept + (2 * (last * density[-1] + tail[-1])).union(arb(0))
    return entropy + rest.union(arb(0)), (-captured).log1p() / log2
