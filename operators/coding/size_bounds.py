"""Upper limits of mean and worst message lengths under an energy budget, by Lagrange multipliers.

A level a = ``|x_i|`` / step is rounded to one of its two neighbours, so the mean cost of a coordinate is the linear
interpolation f of the code lengths, and sum a_i^2 <= B.  For every multiplier t >= 0 ::

    sum f(a_i) <= t B + d max_a (f(a) - t a^2),

hence any t found by a search gives a valid limit; the search only makes it sharp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ..bits import elias
from ..kernels.elias import NORM_BITS

_GOLDEN = (5**0.5 - 1) / 2
SLACK = 1 + 2.0**-40  # covers the rounding of the few float64 operations below


def least(f: Callable[[float], float], lower: float, upper: float, iterations: int = 48) -> float:
    """Return the smallest value of f found by golden-section search on [lower, upper] (the minimum if f is
    unimodal).
    """
    a, b = lower, upper
    c, e = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_e = f(c), f(e)
    best = min(f(a), f(b), at_c, at_e)
    for _ in range(iterations):
        if at_c < at_e:
            b, e, at_e = e, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = f(c)
        else:
            a, c, at_c = c, e, at_e
            e = a + _GOLDEN * (b - a)
            at_e = f(e)
        best = min(best, at_c, at_e)
    return best


def _search(f: Callable[[float], float]) -> float:
    """Return least value over multipliers 10^-18 .. 10^6, searched on a logarithmic scale."""
    return SLACK * least(lambda log: f(float(np.exp(log))), np.log(1e-18), np.log(1e6))


def mean_cost(costs: np.ndarray, budget: float, d: int) -> float:
    """Return the most that sum f(a_i) can be, f the lines between the costs of whole levels.

    Parameters
    ----------
    costs : ndarray
        Bits of levels 0, 1, .., L, and a_i <= L.
    budget : float
        Of sum a_i^2.
    """
    slopes, start = np.diff(costs), np.arange(costs.size - 1.0)

    def limit(t: float) -> float:
        a = np.clip(slopes / (2 * t), start, start + 1)
        return t * budget + d * float((costs[:-1] + slopes * (a - start) - t * a * a).max())

    return min(_search(limit), d * float(costs.max()))


def worst_cost(costs: np.ndarray, budget: float, d: int) -> float:
    """Return the most that sum costs[ceil(a_i)] can be: rounding up every time, under the same budget."""
    reached = np.maximum(np.arange(costs.size) - 1.0, 0) ** 2

    def limit(t: float) -> float:
        return t * budget + d * float((costs - t * reached).max())

    return min(_search(limit), d * float(costs.max()))


# Limits of the mean and the worst bits of levels in Elias omega code (see ``kernels.elias`` for the code).


@lru_cache(maxsize=1024)
def bucket_bits(levels: int, norm: str, code: str, d: int) -> tuple[float, float]:
    """Return (mean, worst) limits of the bits of one bucket of d coordinates."""
    budget = float(levels) ** 2 if norm == "l2" else float(levels) ** 2 * d
    omega = elias.lengths_up_to(levels + 1)
    sign = np.arange(levels + 1).clip(0, 1)
    costs = sign + (omega if code == "dense" else np.r_[0.0, omega[:-1]]) + (code == "flag")
    if code != "sparse":
        return NORM_BITS + mean_cost(costs, budget, d), NORM_BITS + worst_cost(costs, budget, d)

    def priced(cost: object, price: float) -> float:
        paid = costs + price * sign
        return elias.gap_intercept(price, d) + cost(paid, budget, d)  # type: ignore[operator]

    top = float(elias.length(d + 1))
    mean = least(lambda price: priced(mean_cost, price), 0.0, top, 24)
    worst = least(lambda price: priced(worst_cost, price), 0.0, top, 24)
    return NORM_BITS + mean, NORM_BITS + worst
