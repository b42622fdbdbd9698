"""``E |u|_1^-2`` for u uniform on the unit sphere of R^d: what the signs of a random direction tell about it.

Derivation.  For g of d independent standard normal coordinates, ``g = |g| u`` with ``|g|`` and u independent, so
``E|g|_1^-2 = E|g|^-2 E|u|_1^-2``, and ``E|g|^-2 = 1/(d - 2)`` for d >= 3.  With y^-2 = integral over t > 0 of t e^(-t
y), and ``E e^(-t|g_1|) = e^(t^2/2)`` erfc(t/sqrt 2) = erfcx(t/sqrt 2), ::

    E|u|_1^-2 = (d - 2) integral over t > 0 of t erfcx(t/sqrt 2)^d.

d = 2: ``|u|_1^2 = 1`` + ``|sin 2a|`` with a uniform, and the mean of 1/(1 + sin) over a quarter is 2/pi. float64: t =
e^s/d by the trapezoidal rule, whose integrand decays exponentially on both sides.  Ball twin: the same integral, from t
= T_0 = 2^-60/d, below which it is at most T_0^2/2, to T_1, above which erfcx(z) <= 1/(z sqrt(pi)) leaves (2/pi)^(d/2)
T_1^(2-d)/(d-2).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .function import SpecialFunction

_BITS = 60  # of the integral in balls
_STEP, _LOWEST, _HIGHEST = 1 / 64, -22.0, 46.0  # of s; below and above, and between the nodes, 1e-17 is left at d = 3


@lru_cache(maxsize=512)
def inverse_square_of_l1(d: int) -> float:
    """Compute in float64, 1 <= d <= 10^4: relative accuracy 1e-11 at the upper end, where powers of erfcx
    lose digits.
    """
    if d <= 2:
        return 1.0 if d == 1 else 2 / math.pi
    from scipy.special import erfcx

    s = np.arange(_LOWEST, _HIGHEST, _STEP)
    t = np.exp(s) / d
    return float((d - 2) * _STEP * np.sum(t * t * erfcx(t / math.sqrt(2)) ** d))


class InverseSquareOfL1(SpecialFunction):
    """``E |u|_1^-2``, u uniform on the unit sphere of R^d, 2 <= d <= 10^4."""

    latex_template = r"E\left[\left\|u_{{{0}}}\right\|_1^{{-2}}\right]"
    nargs = 1

    @staticmethod
    def kernel(d: Any) -> Any:
        return np.vectorize(lambda n: inverse_square_of_l1(int(n)), otypes=[float])(d)

    @staticmethod
    def ball(d: Any) -> Any:
        """As a ball of about 50 bits, whatever precision is asked for."""
        return _ball(int(float(d)))


@lru_cache(maxsize=64)
def _ball(d: int) -> Any:
    from flint import acb, arb, ctx

    with ctx.workprec(_BITS + 30 + d.bit_length()):
        if d == 2:
            return 2 / arb.pi()
        low, high = arb(2) ** -_BITS / d, arb(2) ** math.ceil(_BITS / (d - 2) + 3)
        half = arb(2).sqrt()

        def integrand(s: Any, analytic: bool) -> Any:
            t = s.exp()
            z = t / half
            square = z * z
            if z.abs_upper() < 4:
                return t * t * (d * (square + z.erfc().log(analytic))).exp()
            if not square.real > 0:
                return acb("nan")  # too large a region: it is divided
            u = square.hypgeom_u(arb(1) / 2, arb(1) / 2) / arb.pi().sqrt()  # erfcx(z)
            return t * t * (d * u.log(analytic)).exp()

        inside = acb.integral(integrand, acb(low.log()), acb(high.log()), rel_tol=arb(2) ** -_BITS).real
        below = low * low / 2
        above = (2 / arb.pi()) ** (arb(d) / 2) * high ** (2 - d) / (d - 2)
        tails = (below + above) / 2
        return (d - 2) * (inside + tails + arb(0, 1) * tails)
