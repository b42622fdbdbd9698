"""The best number of local steps on a convex problem: an eighth of the price, so sqrt(8/(1 - 1/m)) times as many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ..symbols import K, delay_s, m, step_s, tau, time_s
from ..theorems.local_sgd import pasgd_convex_sharp
from .arguments import exact_arguments
from .integer import SLACK, best_integer
from .radical import Radical, RadicalMinimiser

MINIMISER = RadicalMinimiser(
    pasgd_convex_sharp.value.subs(K, time_s / (step_s + delay_s / tau)), 2, r"\tau^*", above_one=(m,)
)


@dataclass(frozen=True)
class TauConvex(Radical):
    """The minimiser of the sharp convex form of Theorem 1 in seconds; no cap couples it with the learning rate.

    Parameters
    ----------
    real : float
        The real minimiser; 0 if averaging is free, infinite without noise or with one worker.
    integer : int or None
        The best integer; None if the real one is infinite.
    """

    MINIMISER: ClassVar[RadicalMinimiser] = MINIMISER

    real: float
    integer: int | None


def tau_convex(*, gap: Any, delay_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any, m: Any) -> TauConvex:
    """Return tau* of Theorem 2 times sqrt(8/(1 - 1/m)), for convex F and eta L <= 1.

    Arguments as in ``tau_star``; m is the number of workers.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F; 0 <= gap.
    delay_s : number, seconds
        Time of one averaging, seconds; 0 <= delay_s.
    eta : number
        Learning rate; 0 < eta.
    L : number
        Smoothness constant of F; 0 < L.
    sigma2 : number
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    time_s : number, seconds
        Wall-clock budget, seconds; 0 < time_s.
    m : number
        Number of workers; 1 <= m, an integer.

    Raises
    ------
    ValueError
        For arguments outside the ranges or if eta L > 1.
    """
    given = exact_arguments("tau_convex", gap=gap, delay_s=delay_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s, m=m)
    if given["eta"] * given["L"] > SLACK:
        raise ValueError(f"tau_convex needs eta L <= 1; got eta L = {float(given['eta'] * given['L'])}: lower eta")
    if given["gap"] * given["delay_s"] == 0:
        return TauConvex(0.0, 1)
    if given["sigma2"] == 0 or given["m"] == 1:
        return TauConvex(math.inf, None)
    square = MINIMISER.radicand(**given)
    return TauConvex(MINIMISER.root(square), best_integer(square))
