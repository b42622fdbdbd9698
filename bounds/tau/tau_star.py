"""Theorem 2: the number of local steps that minimises the error-runtime bound of Theorem 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..symbols import tau
from ..theorems.pasgd_runtime import pasgd_runtime
from .arguments import exact_arguments
from .derivation import Derivation, unique_minimiser
from .integer import best_integer, tau_cap
from .rational import radical_latex, radicand, root


@dataclass(frozen=True)
class TauStar:
    """The number of local steps that minimises the bound of Theorem 1 at a fixed learning rate.

    real : the real minimiser tau*; 0 if averaging is free, infinite without gradient noise.
    integer : the best integer, n(n-1) <= tau*^2 <= n(n+1); None if tau* is infinite.
    cap : the largest tau that the learning rate allows; None if eta L > 1 (no tau is covered).
    capped : the best integer within the cap, which is optimal there by convexity; None if there is no cap.
    Worst-case safe; on smooth problems more local steps usually pay (see ``tau_smooth``).
    """

    real: float
    integer: int | None
    cap: int | None
    capped: int | None

    @staticmethod
    def derivation() -> Derivation:
        """The proof, by sympy, that tau* is the only positive minimiser of Theorem 1's bound."""
        return derivation()

    @staticmethod
    def latex() -> str:
        """The formula in LaTeX."""
        return latex()


def tau_star(*, gap: Any, delay_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any) -> TauStar:
    """Theorem 2 of Wang & Joshi (2018): tau* = sqrt(2 gap D/(eta^3 L^2 sigma2 T)); neither Y nor m enters.

    gap : F(x_1) - inf F, >= 0.  delay_s : time of one averaging, >= 0.  eta, L, time_s > 0.
    sigma2 : variance of one worker's mini-batch gradient, >= 0.  Numbers, Fractions or decimal strings; floats
    count at their binary value.  Raises ValueError outside these ranges.
    """
    given = exact_arguments("tau_star", gap=gap, delay_s=delay_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s)
    cap = tau_cap(eta_L=given["eta"] * given["L"])
    if given["gap"] * given["delay_s"] == 0:
        return TauStar(0.0, 1, cap, None if cap is None else 1)
    if given["sigma2"] == 0:
        return TauStar(math.inf, None, cap, cap)
    square = _square()(**given)
    integer = best_integer(square)
    return TauStar(root(square, 2), integer, cap, None if cap is None else min(integer, cap))


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """The proof that tau* is the unique positive minimiser of the bound of Theorem 1 in seconds."""
    return unique_minimiser(pasgd_runtime.value, tau)


def latex() -> str:
    """tau* in LaTeX."""
    return r"\tau^* = " + radical_latex(_minimiser(), 2)


@lru_cache(maxsize=1)
def _square() -> Callable[..., Fraction]:
    return radicand(_minimiser(), 2)


def _minimiser() -> Any:
    return derivation().minimiser
