"""From a real minimiser of a/tau + b tau to the best integer, and the largest tau a learning rate allows."""

from __future__ import annotations

import math
from fractions import Fraction

from ..bound import ROUNDING_SLACK

SLACK = 1 + Fraction(ROUNDING_SLACK)  # decimals such as 0.05 are not binary: equality is meant to within this


def best_integer(square: Fraction) -> int:
    """Return the best positive integer for a/tau + b tau with real minimiser sqrt(square): n(n-1) <= square <= n(n+1).

    square >= 0, exact.  At a tie, square = n(n+1), both n and n + 1 are best and n is returned.
    Derivation: the objective at n is at most the one at n + 1 iff a/b <= n(n+1), with a/b = square, and it is
    convex.  (Rounding up is biased: sqrt(square) = 1.1 wants 1.)  Raises ValueError for a negative square.

    Parameters
    ----------
    square : Fraction
        Square of the real minimiser, exact.
    """
    if square < 0:
        raise ValueError(f"the square of a minimiser must be >= 0; got {square}")
    product = math.ceil(square / SLACK)  # n(n+1) is an integer: it reaches square iff it reaches its ceiling
    n = max(1, (math.isqrt(4 * product + 1) - 1) // 2)
    return n if n * (n + 1) >= product else n + 1


def best_integer_cubic(cube: Fraction) -> int:
    """Return the best positive integer for a/tau + b tau^2 with real minimiser cube^(1/3).

    The objective at n is at most the one at n + 1 iff a/b <= n(n+1)(2n+1), with a/b = 2 cube, and it is convex: the
    smallest such n, the smaller one at a tie.

    Parameters
    ----------
    cube : Fraction
        Cube of the real minimiser, exact.

    Raises
    ------
    ValueError
        For a negative cube.
    """
    if cube < 0:
        raise ValueError(f"the cube of a minimiser must be >= 0; got {cube}")
    product = math.ceil(2 * cube / SLACK)
    low, high = 0, 1
    while high * (high + 1) * (2 * high + 1) < product:
        low, high = high, 2 * high
    while high - low > 1:  # the answer lies in (low, high]
        middle = (low + high) // 2
        low, high = (low, middle) if middle * (middle + 1) * (2 * middle + 1) >= product else (middle, high)
    return high


def tau_cap(*, eta_L: Fraction) -> int | None:
    """Return the largest tau with eta L + (eta L)^2 tau (tau - 1) <= 1, the learning-rate condition of Theorem 1.

    eta_L > 0, exact, the product of learning rate and smoothness.  None if eta_L > 1: then no tau is covered.  The
    condition is read with the relative slack 1e-12 that a ``Bound`` allows, so that eta_L = 1/n, rounded to binary,
    gives n.

    Parameters
    ----------
    eta_L : Fraction
        Learning rate times smoothness constant, exact.

    Raises
    ------
    ValueError
        For eta_L <= 0.
    """
    if eta_L <= 0:
        raise ValueError(f"eta L must be > 0; got {float(eta_L)}")
    room = (SLACK - eta_L) / eta_L**2
    if room < 0:
        return None
    return (1 + math.isqrt(1 + 4 * math.floor(room))) // 2
