"""The third-order number of local steps: what smooth problems really pay for not averaging.

On a problem with a continuous third derivative the averaged model is displaced, not blurred.  Let Q be the size of the
third derivative of F along the noise.  To leading order the excess of ``E|grad F(xbar)|^2`` is ``|b|^2`` with
``|b| = (Q/4) eta^2 sigma2 tau`` (many workers, eta lambda tau << 1).  That is of fourth order in eta. Theorem 1 is of
second order, so the best tau is 10 to 100 times larger.  It is a leading-order law, not a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..symbols import delay_s, eta, gap, sigma2, tau, third_derivative, time_s
from .arguments import exact_arguments
from .integer import best_integer_cubic
from .radical import Radical, RadicalMinimiser

MINIMISER = RadicalMinimiser(
    2 * gap * delay_s / (eta * time_s * tau) + (third_derivative * eta**2 * sigma2 * tau / 4) ** 2, 3, r"\tau_3^*"
)


@dataclass(frozen=True)
class TauSmooth(Radical):
    """The minimiser of the third-order law at a fixed learning rate: an estimate, not a safe value.

    Parameters
    ----------
    real : float
        The real minimiser; 0 if averaging is free, infinite without noise.
    integer : int or None
        The best integer, 2 real^3 between (n-1)n(2n-1) and n(n+1)(2n+1); None if infinite.
    """

    MINIMISER: ClassVar[RadicalMinimiser] = MINIMISER

    real: float
    integer: int | None


def tau_smooth(*, gap: Any, delay_s: Any, eta: Any, sigma2: Any, time_s: Any, third_derivative: Any) -> TauSmooth:
    """Return tau_3 = (16 gap D/(eta^5 Q^2 sigma2^2 T))^(1/3), with third_derivative = Q > 0.

    The other arguments as in ``tau_star``.  Report the range from tau_star to tau_smooth, not one number: kinks attain
    the former, smooth problems the latter.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F; 0 <= gap.
    delay_s : number, seconds
        Time of one averaging, seconds; 0 <= delay_s.
    eta : number
        Learning rate; 0 < eta.
    sigma2 : number
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    time_s : number, seconds
        Wall-clock budget, seconds; 0 < time_s.
    third_derivative : number
        Size of the third derivative of F along the noise; 0 < third_derivative.

    Raises
    ------
    ValueError
        For arguments outside the ranges.
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
    cube = MINIMISER.radicand(**given)
    return TauSmooth(MINIMISER.root(cube), best_integer_cubic(cube))
