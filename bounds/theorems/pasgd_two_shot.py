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

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import L, eta, m, omega1, omega2, sigma2, tau
from .pasgd_iterations import pasgd_iterations

_noise = omega1 + omega2 + omega1 * omega2
_load = omega1 * (1 + omega2) + m * omega2

pasgd_two_shot = Bound(
    name="pasgd_two_shot",
    quantity="average over K local steps of E|grad F(xbar)|^2, round changes averaged in two shots",
    side=Side.UPPER,
    value=pasgd_iterations.value + 2 * _noise * eta * L * sigma2 / m,
    assuming=(sp.Le(eta * L + eta**2 * L**2 * tau * (tau - 1) + 2 * _load * eta * L * tau / m, 1),),
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
