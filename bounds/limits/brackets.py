"""What a lower and an upper limit leave open together."""

from __future__ import annotations

from ..interval import Interval
from .covering_bits import covering_bits
from .shared_unbiased_bits import shared_unbiased_bits
from .sphere_unbiased_bits import sphere_unbiased_bits
from .worst_case_bits import worst_case_bits


def fixed_length_bracket(alpha: float, d: int) -> Interval:
    """Return bits of the best fixed-length code for the direction with ``|C(x)-x|^2 <= alpha |x|^2`` surely; d >= 2.

    log2 of the least number of outputs lies inside; float64, not certified.

    Parameters
    ----------
    alpha : float
        Contraction constant: ``E|C(x)-x|^2 <= alpha |x|^2``; 0 < alpha < 1.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.

    Raises
    ------
    AssumptionViolated
        For arguments outside 0 < alpha < 1, d >= 2.
    """
    return Interval(worst_case_bits(alpha=alpha, d=d), covering_bits.best(alpha=alpha, d=d).value)


def unbiased_bracket(omega: float, d: int) -> Interval:
    """Return expected bits of the best unbiased operator with shared randomness, for the direction; d >= 2.

    Float64, not certified.

    Parameters
    ----------
    omega : float
        Variance constant of an unbiased operator; 0 < omega.
    d : int
        Dimension: number of coordinates; 1 <= d, an integer.

    Raises
    ------
    AssumptionViolated
        For arguments outside omega > 0, d >= 2.
    """
    return Interval(sphere_unbiased_bits(omega=omega, d=d), shared_unbiased_bits.best(omega=omega, d=d).value)
