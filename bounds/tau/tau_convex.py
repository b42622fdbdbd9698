"""The best number of local steps on a convex problem: half the price, so sqrt(2/(1 - 1/m)) times as many."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..symbols import K, delay_s, m, step_s, tau, time_s
from ..theorems.pasgd_convex import pasgd_convex
from .arguments import exact_arguments
from .derivation import Derivation, unique_minimiser
from .integer import SLACK, best_integer
from .rational import radical_latex, radicand, root


@dataclass(frozen=True)
class TauConvex:
    """The minimiser of the convex form of Theorem 1 in seconds; no cap couples it with the learning rate.

    real : the real minimiser; 0 if averaging is free, infinite without noise or with one worker.
    integer : the best integer; None if the real one is infinite.
    """

    real: float
    integer: int | None

    @staticmethod
    def derivation() -> Derivation:
        """The proof, by sympy, that it is the only positive minimiser."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """The formula in LaTeX."""
        return latex()


def tau_convex(*, gap: Any, delay_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any, m: Any) -> TauConvex:
    """tau* of Theorem 2 times sqrt(2/(1 - 1/m)), for convex F and eta L <= 1.

    Arguments as in ``tau_star``; m is the number of workers.  Raises ValueError outside the ranges or if eta L > 1.
    """
    given = exact_arguments("tau_convex", gap=gap, delay_s=delay_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s, m=m)
    if given["eta"] * given["L"] > SLACK:
        raise ValueError(f"tau_convex needs eta L <= 1; got eta L = {float(given['eta'] * given['L'])}: lower eta")
    if given["gap"] * given["delay_s"] == 0:
        return TauConvex(0.0, 1)
    if given["sigma2"] == 0 or given["m"] == 1:
        return TauConvex(math.inf, None)
    square = _square()(**given)
    return TauConvex(root(square, 2), best_integer(square))


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """The proof that it is the unique positive minimiser of the convex bound in seconds, for m > 1."""
    return unique_minimiser(pasgd_convex.value.subs(K, time_s / (step_s + delay_s / tau)), tau, above_one=(m,))


def latex() -> str:
    """The minimiser in LaTeX."""
    return r"\tau^* = " + radical_latex(_minimiser(), 2)


@lru_cache(maxsize=1)
def _square() -> Callable[..., Fraction]:
    return radicand(_minimiser(), 2)


def _minimiser() -> Any:
    return derivation().minimiser
