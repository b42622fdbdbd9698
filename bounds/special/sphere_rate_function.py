"""The sphere rate as a function of sympy: its float64 kernel and its enclosure in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from ..enclosure import enclose, exact
from ..interval import Interval
from ..symbols import alpha as alpha_symbol
from ..symbols import d as d_symbol
from .function import SpecialFunction
from .sphere_rate import unchecked_sphere_rate
from .sphere_rate_ball import sphere_rate_ball


def enclose_sphere_rate(alpha: Any, d: Any) -> Interval:
    """Return an interval that provably contains R_S at exact arguments (int, Fraction, decimal string, float).

    Raises
    ------
    ValueError
        For arguments outside 0 < alpha < 1, d >= 2.
    """
    point = {alpha_symbol: exact(alpha), d_symbol: exact(d)}
    if not (0 < point[alpha_symbol] < 1 and point[d_symbol] >= 2):
        raise ValueError(f"the sphere rate needs 0 < alpha < 1 and d >= 2; got alpha = {alpha}, d = {d}")
    return enclose(SphereRate(alpha_symbol, 1 - alpha_symbol, d_symbol), point)


class SphereRate(SpecialFunction):
    """R_S in bits as a function of (alpha, 1 - alpha, d).

    Both alpha and its complement are arguments, because near 1 neither determines the other in float64.
    """

    latex_template = r"R_S\left({0}, {2}\right)"

    @staticmethod
    def kernel(alpha: Any, complement: Any, d: Any) -> Any:
        """Return R_S in bits."""
        return unchecked_sphere_rate(*np.broadcast_arrays(*(np.asarray(v, float) for v in (alpha, complement, d))))

    @staticmethod
    def ball(alpha: Any, complement: Any, d: Any) -> Any:
        """Return R_S in bits as a ball."""
        return sphere_rate_ball(alpha, complement, d)


def sphere_rate_of(alpha: sp.Expr, d: sp.Expr) -> sp.Expr:
    """Return the sympy term R_S(alpha, d)."""
    return SphereRate(alpha, sp.together(1 - alpha), d)
