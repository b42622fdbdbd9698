"""Theorem 2: the number of local steps that minimises the error-runtime bound of Theorem 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..theorems.seconds import pasgd_runtime
from .arguments import exact_arguments
from .integer import best_integer, tau_cap
from .radical import Radical, RadicalMinimiser

MINIMISER = RadicalMinimiser(pasgd_runtime.value, 2, r"\tau^*")


@dataclass(frozen=True)
class TauStar(Radical):
    """The number of local steps that minimises the bound of Theorem 1 at a fixed learning rate.

    Parameters
    ----------
    real : float
        The real minimiser tau*; 0 if averaging is free, infinite without gradient noise.
    integer : int or None
        The best integer, n(n-1) <= tau*^2 <= n(n+1); None if tau* is infinite.
    cap : int or None
        The largest tau that the learning rate allows; None if eta L > 1 (no tau is covered).
    capped : int or None
        The best integer within the cap, which is optimal there by convexity; None if there is no cap.

    Notes
    -----
    Worst-case safe; on smooth problems more local steps usually pay (see ``tau_smooth``).
    """

    MINIMISER: ClassVar[RadicalMinimiser] = MINIMISER

    real: float
    integer: int | None
    cap: int | None
    capped: int | None


def tau_star(*, gap: Any, delay_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any) -> TauStar:
    """Return Theorem 2 of Wang & Joshi (2018): tau* = sqrt(2 gap D/(eta^3 L^2 sigma2 T)); neither Y nor m enters.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F, >= 0.
    delay_s : number, seconds
        Time of one averaging, >= 0.
    eta : number
        Learning rate, > 0.
    L : number
        Smoothness constant of F, > 0.
    sigma2 : number
        Variance of one worker's mini-batch gradient, >= 0.  All are numbers, Fractions or decimal strings; floats count
        at their binary value.
    time_s : number, seconds
        Wall-clock budget, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """
    given = exact_arguments("tau_star", gap=gap, delay_s=delay_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s)
    cap = tau_cap(eta_L=given["eta"] * given["L"])
    if given["gap"] * given["delay_s"] == 0:
        return TauStar(0.0, 1, cap, None if cap is None else 1)
    if given["sigma2"] == 0:
        return TauStar(math.inf, None, cap, cap)
    square = MINIMISER.radicand(**given)
    integer = best_integer(square)
    return TauStar(MINIMISER.root(square), integer, cap, None if cap is None else min(integer, cap))
