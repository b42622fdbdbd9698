"""Theorem 1 for convex problems with an eighth of its price of local steps.

Setting.  As in ``pasgd_convex``.

Derivation.  Write g_i = grad F(x^i), b = grad F(xbar), d_i = x^i - xbar, gbar = mean g_i and u_i = g_i - gbar, at one
step.  Gradients of a convex L-smooth F are cocoercive, ``|b - g_i|^2 <= L <b - g_i, xbar - x^i>``.  Average over the
workers: the d_i have mean zero, so b drops out on the right, and the left side splits, ::

    |b - gbar|^2 + mean |u_i|^2 <= L mean <u_i, d_i> <= mean |u_i|^2 + (L^2/4) V.

Hence ``|b - gbar|^2 <= (L^2/4) V``: the mean of the gradients misses the gradient at the mean by half of what
smoothness alone allows.  The descent lemma for xbar -> xbar - eta (gbar + noise), with ``-2 <b, gbar> = |b - gbar|^2 -
|b|^2 - |gbar|^2`` for the mean over workers (not worker by worker as in ``pasgd_iterations``) and eta L <= 1, gives ::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + (L^2/4) avg EV,

and avg EV <= (1 - 1/m) eta^2 sigma2 (tau - 1)/2 by ``pasgd_convex``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..symbols import K, L, eta, gap, m, sigma2, tau
from .pasgd_convex import pasgd_convex

pasgd_convex_sharp = Bound(
    name="pasgd_convex_sharp",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 8,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "convex form of wang2018, Theorem 1, by cocoercivity of the mean"),
    status=Status.PROVED,
    setting=pasgd_convex.setting,
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.22875",
            "by hand: .2 + .025 + .75 * .01 * 4 / 8",
        ),
        Example(
            {"gap": 0, "eta": "0.2", "L": 1, "sigma2": 1, "tau": 8, "m": 16, "K": 8},
            "0.0453125",
            "by hand, the kink's floor: .0125 + (15/16) * .04 * 7 / 8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
