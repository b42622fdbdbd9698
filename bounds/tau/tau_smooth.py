"""The third-order number of local steps: what smooth problems really pay for not averaging.

On a problem with a continuous third derivative the averaged model is displaced, not blurred: to leading order the
excess of E|grad F(xbar)|^2 is |b|^2 with |b| = (Q/4) eta^2 sigma2 tau (many workers, eta lambda tau << 1), Q being
the size of the third derivative of F along the noise.  That is of fourth order in eta where Theorem 1 has second
order, so the best tau is 10 to 100 times larger.  It is a leading-order law, not a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..symbols import delay_s, eta, gap, sigma2, tau, third_derivative, time_s
from .arguments import exact_arguments
from .derivation import Derivation, unique_minimiser
from .integer import best_integer_cubic
from .rational import radical_latex, radicand, root

OBJECTIVE = 2 * gap * delay_s / (eta * time_s * tau) + (third_derivative * eta**2 * sigma2 * tau / 4) ** 2


@dataclass(frozen=True)
class TauSmooth:
    """The minimiser of the third-order law at a fixed learning rate: an estimate, not a safe value.

    real : the real minimiser; 0 if averaging is free, infinite without noise.
    integer : the best integer, 2 real^3 between (n-1)n(2n-1) and n(n+1)(2n+1); None if infinite.
    """

    real: float
    integer: int | None

    @staticmethod
    def derivation() -> Derivation:
        """The proof, by sympy, that it is the only positive minimiser of the law."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """The formula in LaTeX."""
        return latex()


def tau_smooth(*, gap: Any, delay_s: Any, eta: Any, sigma2: Any, time_s: Any, third_derivative: Any) -> TauSmooth:
    """tau_3 = (16 gap D/(eta^5 Q^2 sigma2^2 T))^(1/3), with third_derivative = Q > 0.

    The other arguments as in ``tau_star``.  Report the range from tau_star to tau_smooth, not one number: kinks
    attain the former, smooth problems the latter.  Raises ValueError outside the ranges.
    """
    given = exact_arguments(
        "tau_smooth",
        gap=gap,
        delay_s=delay_s,
        eta=eta,
        sigma2=sigma2,
        time_s=time_s,
        third_derivative=third_derivative,
    )
    if given["gap"] * given["delay_s"] == 0:
        return TauSmooth(0.0, 1)
    if given["sigma2"] == 0:
        return TauSmooth(math.inf, None)
    cube = _cube()(**given)
    return TauSmooth(root(cube, 3), best_integer_cubic(cube))


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """The proof that tau_3 is the unique positive minimiser of the third-order law."""
    return unique_minimiser(OBJECTIVE, tau)


def latex() -> str:
    """tau_3 in LaTeX."""
    return r"\tau_3^* = " + radical_latex(_minimiser(), 3)


@lru_cache(maxsize=1)
def _cube() -> Callable[..., Fraction]:
    return radicand(_minimiser(), 3)


def _minimiser() -> Any:
    return derivation().minimiser
