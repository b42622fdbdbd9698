"""Local SGD that compresses the changes of a round, in one shot or in two."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, m, omega, omega1, omega2, sigma2, sum_eta, sum_eta2, sum_eta3, tau, worst_load
from .local_sgd import pasgd_iterations, schedule_sums

pasgd_compressed = Bound(
    name="pasgd_compressed",
    quantity="average over K local steps of E|grad F(xbar)|^2, round changes compressed without bias",
    side=Side.UPPER,
    value=pasgd_iterations.value + 2 * omega * eta * L * sigma2 / m,
    assuming=(sp.Le(eta * L + eta**2 * L**2 * tau * (tau - 1) + 2 * omega * eta * L * tau / m, 1),),
    reference=Reference("ratedist", "joint bound of local steps and unbiased compression; extends wang2018"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA
        | {Property.UNBIASED, Property.INDEPENDENT_MESSAGES, Property.COMPRESSED_LOCAL_SGD, Property.WHOLE_ROUNDS},
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "K": 100, "omega": 3},
            "0.40500",
            "by hand: .2 + .025 * 7 + .03, at condition .1 + .12 + .6 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Local-update SGD that also compresses what it averages, in iterations: tau and omega in one bound.

Setting.  As in ``pasgd_iterations``; in addition, every worker sends C(Delta_i) of its round change Delta_i = x_tau^i -
x_0 with an unbiased C, ``E|C(v) - v|^2 <= omega |v|^2``, independently over workers and rounds, and the next round
starts at x_0 + mean C(Delta_i).  K is a whole number of rounds.  The average runs over the K means of local iterates
that gradients were taken at (round starts included, the uncompressed ends not).

Derivation.  Unbiasedness makes the compression error of a round, zeta = mean(C(Delta_i) - Delta_i), a centred
perturbation of the point xbar_tau reached without compression: E F(xbar_tau + zeta) <= ``E F(xbar_tau) + L/2
E|zeta|^2``, and ``E|zeta|^2 <= (omega/m^2) sum_i`` ``E|Delta_i|^2`` by independence.  Splitting Delta_i into noise and
gradients, ::

    E|Delta_i|^2 <= 2 eta^2 (tau sigma2 + tau sum_s E|grad F(x_s^i)|^2).

A round thus adds at most L omega eta^2 (tau/m) (sigma2 + sum_s EG_s) to the descent inequality; multiplied by
2/eta and averaged over K/tau rounds this is 2 omega eta L sigma2/m + (2 omega eta L tau/m) avg EG.  The first part
joins the noise term, the second is absorbed with the G of Theorem 1 under the stated condition.
"""

pasgd_compressed_convex = Bound(
    name="pasgd_compressed_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex, round changes compressed without bias",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 * (1 + 2 * omega) / m
    + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 4,
    assuming=(sp.Le(eta * L + 4 * omega * eta * L * tau / m, 1),),
    reference=Reference("ratedist", "convex form of the joint bound of local steps and unbiased compression"),
    status=Status.PROVED,
    setting=Setting(pasgd_compressed.setting.needs | {Property.CONVEX}, pasgd_compressed.setting.concludes),
    examples=(
        Example(
            {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 200, "omega": 3},
            "0.28937500",
            "by hand: .2 + .0125 * 7 + .75 * .0025 * 4 / 4, at condition .05 + .75 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Local-update SGD that also compresses what it averages, on a convex problem: a quarter of the price of local steps.

Setting.  As in ``pasgd_compressed``, with F convex.

Derivation.  In the notation of ``pasgd_convex_sharp``; compression adds 2 omega eta L sigma2/m + theta avg EG, theta =
2 omega eta L tau/m and ``G = |gbar|^2 + mean |u_i|^2`` (see ``pasgd_compressed``).  Half of what cocoercivity leaves
for the u_i is kept for it: ``|b - gbar|^2 + mean |u_i|^2/2 <= L mean <u_i, d_i> - mean |u_i|^2/2 <= (L^2/2) V``.  Under
the condition theta <= (1 - eta L)/2 <= 1/2, so that the u_i are absorbed here and gbar by (1 - eta L) ``|gbar|^2`` of
the descent lemma.  Insert avg EV of ``pasgd_convex``, which compression does not change: a round starts together.
"""

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


_two_shot_noise = omega1 + omega2 + omega1 * omega2

_two_shot_load = omega1 * (1 + omega2) + m * omega2

pasgd_two_shot = Bound(
    name="pasgd_two_shot",
    quantity="average over K local steps of E|grad F(xbar)|^2, round changes averaged in two shots",
    side=Side.UPPER,
    value=pasgd_iterations.value + 2 * _two_shot_noise * eta * L * sigma2 / m,
    assuming=(sp.Le(eta * L + eta**2 * L**2 * tau * (tau - 1) + 2 * _two_shot_load * eta * L * tau / m, 1),),
    reference=Reference("ratedist", "local steps and two unbiased stages; extends wang2018"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA
        | {
            Property.UNBIASED_STAGES,
            Property.INDEPENDENT_MESSAGES,
            Property.TWO_SHOT_LOCAL_SGD,
            Property.WHOLE_ROUNDS,
        },
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.1",
                "L": 1,
                "sigma2": 1,
                "tau": 4,
                "m": 4,
                "K": 100,
                "omega1": 1,
                "omega2": "0.25",
            },
            "0.330000",
            "by hand: .2 + .025 * (1 + 2 * 1.5) + .03, at condition .1 + .12 + .2 * (1.25 + 1) <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
"""Local-update SGD that averages the changes of a round in two shots, compressed without bias both ways.

Setting.  As in ``pasgd_compressed``, but the next round starts at x_0 + z, z being the mean of the changes Delta_i in
two shots (see ``two_shot_error``) with constants omega1 and omega2.  The average runs over the K means of local
iterates that gradients were taken at, as there.

Derivation.  Given the changes, z is unbiased and its error zeta = z - mean Delta_i has:

``E|zeta|^2 <= (1 + omega2)(omega1/m) mean |Delta_i|^2 + omega2 |mean Delta_i|^2``.

So ``E F(x_0 + z) <= E F(xbar_tau) + L/2 E|zeta|^2``.  Noise and gradients split as:

``E|Delta_i|^2 <= 2 eta^2 (tau sigma2 + tau sum_s E|grad F(x_s^i)|^2)``,
``E|mean Delta_i|^2 <= 2 eta^2 (tau sigma2/m + tau sum_s EG_s), G_s = mean_i |grad F(x_s^i)|^2``,

the second because the noises are independent and ``|mean|^2 <= mean of squares``.  With:

``Omega = (1 + omega1)(1 + omega2) - 1, Omega' = omega1 (1 + omega2) + m omega2``

a round adds at most L eta^2 tau (Omega sigma2 + Omega' sum_s EG_s)/m to the descent inequality; multiplied by 2/eta
and averaged over K/tau rounds this is 2 Omega eta L sigma2/m + (2 Omega' eta L tau/m) avg EG.  The first part joins
the noise term, the second is absorbed with the G of Theorem 1 under the stated condition.

At omega2 = 0 it is ``pasgd_compressed``.  The second stage compresses a mean, in which noise is averaged out but the
gradients are not: it costs the noise floor no more than the first, and the condition m times as much.
"""
