"""The lattice ``sum sum_(n != 0) e^(-s (|n| - 1/2)^2) = theta_2(e^-s)``, the normaliser of a static level law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

TERMS = 4  # either series is then exact to 1e-18 on its side of s = pi


class ThetaTwo(SpecialFunction):
    """2 sum_(n >= 1) e^(-s (n - 1/2)^2) for s > 0."""

    latex_template = r"\vartheta_2\left(e^{{-{0}}}\right)"

    @staticmethod
    def kernel(s: Any) -> Any:
        """Return in float64: the sum itself above pi, its Poisson dual sqrt(pi/s) (1 + 2 sum (-1)^n e^(-pi^2 n^2/s))
        below.
        """
        s = np.asarray(s, float)
        large, small = np.maximum(s, math.pi), np.minimum(s, math.pi)
        direct = sum(2 * np.exp(-large * (n - 0.5) ** 2) for n in range(1, TERMS + 1))
        dual = 1 + sum(2 * (-1) ** n * np.exp(-((math.pi * n) ** 2) / small) for n in range(1, TERMS + 1))
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
