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

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import L, eta, m, omega, sigma2, tau
from .pasgd_iterations import pasgd_iterations

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
