"""Theorem 3 of local-update SGD: the learning rate and the communication period may change at every round.

Setting.  As in ``pasgd_iterations``; round r makes tau_r local steps with learning rate eta_r.  A schedule enters
through three sums and the largest load of a round, which ``schedule_sums`` computes.

Derivation.  Steps (a)-(c) of ``pasgd_iterations`` hold inside one round: with its load
eta L + eta^2 L^2 tau (tau - 1) <= 1, multiply its inequality by eta_r tau_r instead of dividing by K and sum::

    sum_r eta_r sum_{k in r} E|grad F(xbar_k)|^2
        <= 2 gap + (L sigma2/m) sum eta_r^2 tau_r + L^2 sigma2 sum eta_r^3 tau_r (tau_r - 1).

The bounded quantity is the average with weights eta_r, so divide by sum eta_r tau_r.  It tends to 0 when that sum
diverges while the other two converge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import L, gap, m, sigma2, sum_eta, sum_eta2, sum_eta3, worst_load

pasgd_variable = Bound(
    name="pasgd_variable",
    quantity="average with weights eta over all local steps of E|grad F(xbar)|^2, schedule eta_r, tau_r",
    side=Side.UPPER,
    value=(2 * gap + L * sigma2 / m * sum_eta2 + L**2 * sigma2 * sum_eta3) / sum_eta,
    assuming=(sp.Le(worst_load, 1),),
    reference=Reference("wang2018", "Theorem 3", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.SCHEDULED_LOCAL_SGD}, Conclusion.WEIGHTED_GRADIENT),
    examples=(
        Example(
            {
                "gap": 1,
                "L": 1,
                "sigma2": 1,
                "m": 4,
                "sum_eta": "0.7",
                "sum_eta2": "0.08",
                "sum_eta3": "0.0165",
                "worst_load": "0.3",
            },
            "2.90929",
            "by hand: rounds (eta, tau) = (.1, 4), (.1, 1), (.05, 4): (2 + .02 + .0165)/.7",
        ),
    ),
    latex_name=r"\frac{\sum_k\eta_k E\|\nabla F(\bar x_k)\|^2}{\sum_k\eta_k}",
)


def schedule_sums(eta: Sequence[float], tau: Sequence[int], *, L: float) -> dict[str, float]:
    """Return what a schedule contributes to Theorem 3, ready as ``pasgd_variable(gap=, sigma2=, m=, L=L, **sums)``.

    Parameters
    ----------
    eta : sequence of float
        Learning rate of each round, > 0.
    tau : sequence of int
        Local steps of each round, >= 1; as many as learning rates, at least one.

    Raises
    ------
    ValueError
        For other arguments.

    Notes
    -----
    The condition on each round is checked by the bound through ``worst_load``.
    """
    rates, steps = np.asarray(eta, float), np.asarray(tau, float)
    if rates.ndim != 1 or rates.shape != steps.shape or rates.size == 0:
        raise ValueError(f"a schedule needs one eta and one tau per round; got {rates.shape} and {steps.shape}")
    if rates.min() <= 0 or steps.min() < 1:
        raise ValueError(f"a schedule needs eta > 0 and tau >= 1; got min {rates.min()} and {steps.min()}")
    return {
        "sum_eta": float(rates @ steps),
        "sum_eta2": float(rates**2 @ steps),
        "sum_eta3": float(rates**3 @ (steps * (steps - 1))),
        "worst_load": float(np.max(rates * L + (rates * L) ** 2 * steps * (steps - 1))),
    }


def power_schedule_converges(a: float, b: float) -> bool:
    """Return whether Theorem 3 drives the gradient to 0 for eta_r = c r^-a, tau_r = r^b, given a small enough c.

    The integral test on the three sums: a - b <= 1 lets the first diverge, 2a - b > 1 and 3a - 2b > 1 let the
    others converge; b <= a keeps eta tau, and so the load of every round, bounded.
    """
    return a - b <= 1 and 2 * a - b > 1 and 3 * a - 2 * b > 1 and b <= a
