"""Theorem 1 when the noise grows with the gradient: variance at most ``sigma2 + beta |grad F(x)|^2``.

Setting.  As in ``pasgd_iterations`` but for the variance; beta is ``noise_growth``.  At beta = 0 this is Theorem 1
with the factor 1 - 1/m in its last term.

Derivation.  Carry beta G through the proof of ``pasgd_iterations``.  (a) ``E|gbar|^2 <= sigma2/m + (1 + beta/m) G``, so
the coefficient of G becomes -(1 - eta L (1 + beta/m)).  (b) The noise part of V_r gains beta sum_{s<r} G_s::

    EV_r <= 2 eta^2 [(1 - 1/m)(r sigma2 + beta sum_{s<r} EG_s) + r sum_{s<r} EG_s];

averaged over r < tau the coefficient of avg EG is at most eta^2 (tau - 1)[tau + 2 beta (1 - 1/m)].  (c) G cancels
under the stated condition.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, L, eta, gap, m, noise_growth, sigma2, tau

_load = eta * L * (1 + noise_growth / m) + eta**2 * L**2 * (tau - 1) * (tau + 2 * noise_growth * (1 - 1 / m))

pasgd_multiplicative = Bound(
    name="pasgd_multiplicative",
    quantity="average over K local steps of E|grad F(xbar)|^2, noise growing with the gradient",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1),
    assuming=(sp.Le(_load, 1),),
    reference=Reference("ratedist", "wang2018, Theorem 1, under multiplicative noise"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SMOOTH,
                Property.BOUNDED_BELOW,
                Property.SAME_F,
                Property.UNBIASED_GRADIENTS,
                Property.GROWING_VARIANCE,
                Property.INDEPENDENT_NOISE,
                Property.LOCAL_SGD,
            }
        ),
        Conclusion.GRADIENT,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "noise_growth": 4},
            "0.25500",
            "by hand: .2 + .025 + .75 * .01 * 4, at condition .2 + .04 * 11 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
