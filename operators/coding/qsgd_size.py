"""Limits of the mean and the worst bits of levels in Elias omega code (see ``kernels.elias`` for the code)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..bits import elias
from ..kernels.elias import NORM_BITS
from .size_bounds import least, mean_cost, worst_cost


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
