"""Local-update SGD whose period and learning rate change from round to round, and that compresses what it averages.

Setting.  As in ``pasgd_compressed``; round r makes tau_r local steps with learning rate eta_r.  Both may depend on
everything seen before the round, as AdaComm's do, and so may the decision to stop; then the sums below are replaced by
their means.  A schedule enters through three sums and the largest load of a round: ``compressed_schedule_sums``.

Derivation.  The inequality of one round in ``pasgd_compressed`` holds conditionally on its past.  Multiply it by
eta_r tau_r instead of dividing by K and sum: under the load ::

    eta L + eta^2 L^2 tau (tau - 1) + 2 omega eta L tau/m <= 1

of every round, ::

    sum_r eta_r sum_{k in r} E|grad F(xbar_k)|^2
        <= 2 gap + (1 + 2 omega)(L sigma2/m) sum eta_r^2 tau_r + L^2 sigma2 sum eta_r^3 tau_r (tau_r - 1).

The bounded quantity is the average with weights eta_r, so divide by sum eta_r tau_r.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import L, gap, m, omega, sigma2, sum_eta, sum_eta2, sum_eta3, worst_load
from .pasgd_variable import schedule_sums

pasgd_compressed_variable = Bound(
    name="pasgd_compressed_variable",
    quantity="average with weights eta over all local steps of E|grad F(xbar)|^2, schedule eta_r, tau_r, compressed",
    side=Side.UPPER,
    value=(2 * gap + (1 + 2 * omega) * L * sigma2 / m * sum_eta2 + L**2 * sigma2 * sum_eta3) / sum_eta,
    assuming=(sp.Le(worst_load, 1),),
    reference=Reference("ratedist", "joint bound of a varying period and unbiased compression; extends wang2018"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA
        | {
            Property.UNBIASED,
            Property.INDEPENDENT_MESSAGES,
            Property.SCHEDULED_COMPRESSED_LOCAL_SGD,
            Property.WHOLE_ROUNDS,
        },
        Conclusion.WEIGHTED_GRADIENT,
    ),
    examples=(
        Example(
            {
                "gap": 1,
                "L": 1,
                "sigma2": 1,
                "m": 4,
                "omega": 2,
                "sum_eta": "0.7",
                "sum_eta2": "0.08",
                "sum_eta3": "0.0165",
                "worst_load": "0.7",
            },
            "3.02357",
            "by hand: rounds (eta, tau) = (.1, 4), (.1, 1), (.05, 4): (2 + 5 * .02 + .0165)/.7",
        ),
    ),
    latex_name=r"\frac{\sum_k\eta_k E\|\nabla F(\bar x_k)\|^2}{\sum_k\eta_k}",
)


def compressed_schedule_sums(
    eta: Sequence[float], tau: Sequence[int], *, L: float, omega: float, m: int
) -> dict[str, float]:
    """Return what a schedule contributes, ready as ``pasgd_compressed_variable(gap=, sigma2=, m=, omega=, L=L,
    **sums)``.

    Parameters
    ----------
    eta : sequence of float
        Learning rate of each round, > 0.
    tau : sequence of int
        Local steps of each round, >= 1; as many as learning rates.

    Raises
    ------
    ValueError
        For other schedules.

    Notes
    -----
    ``worst_load`` counts what compression adds to the load of a round.
    """
    plain = schedule_sums(eta, tau, L=L)
    loads = [e * L + (e * L) ** 2 * t * (t - 1) + 2 * omega * e * L * t / m for e, t in zip(eta, tau, strict=True)]
    return {**plain, "worst_load": max(loads)}
