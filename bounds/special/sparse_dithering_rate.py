"""The per-coordinate constants of deterministic Sparse Dithering.

Of d coordinates a share q is sent with levels n >= 1.  A level costs one bit of sign and n bits of unary code, and the
lattice step 2 sqrt(nu/d) bounds sum (n - 1/2)^2 by d/(4 nu).  Per coordinate that allows ::

    c(nu)     = max_q [H(q) + 3q/2 + sqrt(q/(4 nu))]            (real levels, Cauchy-Schwarz),
    c_int(nu) = max_q [H(q) + q + q l(1/(4 nu q))]              (integer levels),

where l(m) is the largest mean of n under a mean budget m: the concave polygon through ((n - 1/2)^2, n).  On the piece
between n and n + 1 the second expression is H(q) + q s_n + 1/(8 nu n), s_n = 3/2 + n/2 - 1/(8n).  Both expressions are
concave in q, so any q gives a lower end and its tangent an upper end: that is how the ball twins certify.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .function import SpecialFunction

NEWTON_STEPS = 12


class SparseDitheringRate(SpecialFunction):
    """c(nu): bits per coordinate with real levels, 0 < nu < 1."""

    latex_template = r"c\left({0}\right)"

    @staticmethod
    def kernel(nu: Any) -> Any:
        nu = np.asarray(nu, float)
        u = _stationary_logit(nu)
        odds = 2.0**-u
        q = 1 / (1 + odds)
        entropy = np.log1p(odds) / math.log(2) + u * odds * q
        return entropy + 1.5 * q + 0.5 * np.sqrt(q / nu)

    @staticmethod
    def ball(nu: Any) -> Any:
        """As a ball: the value at a logit refined by Newton's method, plus what the slope there still allows."""
        from flint import arb

        u = arb(float(_stationary_logit(np.asarray(float(nu.mid())))))
        quarter = 1 / (4 * nu.sqrt())
        for _ in range(4):
            odds = arb(2) ** -u
            root = (1 + odds).sqrt()
            u = (u - (u - 1.5 - quarter * root) / (1 + quarter * odds * arb(2).log() / (2 * root))).mid()
        odds = arb(2) ** -u
        q = 1 / (1 + odds)
        entropy = odds.log1p() / arb(2).log() + u * odds * q
        slope = abs(arb(1.5) + quarter * (1 + odds).sqrt() - u)
        return entropy + arb(1.5) * q + (q / nu).sqrt() / 2 + slope.union(arb(0))


class SparseDitheringIntegerRate(SpecialFunction):
    """c_int(nu): bits per coordinate with integer levels, 0 < nu < 1."""

    latex_template = r"c_{{\mathrm{{int}}}}\left({0}\right)"

    @staticmethod
    def kernel(nu: Any) -> Any:
        nu = np.asarray(nu, float)
        n = np.floor(0.5 + 0.5 / np.sqrt(nu))
        while True:  # the piece that holds the maximiser, or has it at its right end
            slope = 1.5 + n / 2 - 1 / (8 * n)
            inside = 1 / (1 + 2.0**-slope)
            further = 1 / (4 * nu * (n + 0.5) ** 2) > inside
            if not np.any(further):
                break
            n = n + further
        q = np.minimum(np.minimum(inside, 1 / (4 * nu * (n - 0.5) ** 2)), 1.0)
        rest = 1 - q
        entropy = -(q * np.log1p(-rest) + rest * np.log(np.where(rest > 0, rest, 1.0))) / math.log(2)
        return entropy + q * slope + 1 / (8 * nu * n)

    @staticmethod
    def ball(nu: Any) -> Any:
        """As a ball: the maximum over the pieces near the best one, each over its own range of q."""
        from flint import arb

        start = max(1, math.floor(0.5 + 0.5 / math.sqrt(float(nu.mid()))) - 1)
        reached = [n for n in range(start, start + 5) if not 4 * nu * (arb(n) + 0.5) ** 2 <= 1]
        best = arb(0)
        for n in reached:
            best = best.max(_piece(nu, n))
        return best


def _stationary_logit(nu: np.ndarray) -> np.ndarray:
    """Return u = log2(q/(1-q)) at the maximum: u = 3/2 + 1/(4 sqrt(nu q)), increasing minus decreasing, by Newton."""
    quarter = 0.25 / np.sqrt(nu)
    u = 1.5 + quarter
    for _ in range(NEWTON_STEPS):
        odds = 2.0**-u
        root = np.sqrt(1 + odds)  # q^(-1/2)
        u = u - (u - 1.5 - quarter * root) / (1 + quarter * odds * math.log(2) / (2 * root))
    return u


def _entropy(q: Any) -> Any:
    from flint import arb

    rest = 1 - q
    if rest.contains(0):  # H(r) <= r log2(e/r)
        most = abs(rest).upper()
        return (most * (1 - most.log()) / arb(2).log()).union(arb(0)) if most > 0 else arb(0)
    return -(q * q.log() + rest * rest.log()) / arb(2).log()


def _piece(nu: Any, n: int) -> Any:
    """Return max of H(q) + q s_n + 1/(8 nu n) over the q in (0, 1] whose budget 1/(4 nu q) lies in piece n."""
    from flint import arb

    slope = arb(3) / 2 + arb(n) / 2 - arb(1) / (8 * n)
    low = (1 / (4 * nu * (arb(n) + 0.5) ** 2)).min(arb(1))
    high = (1 / (4 * nu * (arb(n) - 0.5) ** 2)).min(arb(1))
    q = (1 / (1 + arb(2) ** -slope)).max(low).min(high)
    return _entropy(q) + q * slope + 1 / (8 * nu * n)
