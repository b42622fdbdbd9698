"""What a user may say of the curvature of F: that it is convex, or that every Hessian is >= -rho."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from bounds.symbols import NONNEGATIVE

from ..numbers import Number, read

Curvature = Literal["convex"] | Number
"""Convex, or rho where every Hessian is >= -rho."""


def rho_of(curvature: Any) -> Fraction | None:
    """Return rho, 0 for convex; None if nothing was said.

    Raises
    ------
    ValueError
        For another word than convex, or a number that is not >= 0.
    """
    if curvature is None:
        return None
    if curvature == "convex":
        return Fraction(0)
    try:
        rho: Any = read("rho", curvature, NONNEGATIVE)
    except ValueError:
        rho = None
    if not isinstance(rho, str):
        raise ValueError(
            f'curvature must be "convex" or a number rho >= 0 with every Hessian >= -rho; got {curvature!r}'
        )
    return Fraction(rho)


def is_convex(curvature: Any) -> bool:
    """Return whether F was said to be convex, where no other curvature can be used.

    Raises
    ------
    ValueError
        For anything but None, convex and rho = 0.
    """
    rho = rho_of(curvature)
    if rho:
        raise ValueError(
            f'curvature = {curvature!r} has no theorem in a plan or with a compressor: give "convex", or leave it out '
            "(rd.tau_star takes any rho >= 0, and so does rd.error_bound without omega)"
        )
    return rho is not None
