"""Local-update SGD on a convex problem, measured by the function value, with half the price of ``pasgd_gap``.

Setting.  As in ``pasgd_gap``.

Derivation.  In the notation of ``pasgd_convex_sharp``.  A convex L-smooth F obeys, at the minimiser and at the mean, ::

    F* >= F(x^i) + <g_i, x* - x^i> + |g_i|^2/(2L),
    F(xbar) <= F(x^i) + <b, xbar - x^i> - |b - g_i|^2/(2L).

Subtract and average: ``mean <b, d_i>`` is zero, ``mean <g_i, x^i - x*> = <gbar, xbar - x*> + mean <u_i, d_i>``, and the
squares split into those of the means and ``mean |u_i|^2``, so that ::

    <gbar, xbar - x*> >= F(xbar) - F* + (|gbar|^2 + |b - gbar|^2)/(2L) + mean (|u_i|^2/L - <u_i, d_i>)
                      >= F(xbar) - F* + |gbar|^2/(2L) - (L/4) V.

In ``E|xbar+ - x*|^2 = |xbar - x*|^2 - 2 eta <gbar, xbar - x*> + eta^2 |gbar|^2 + eta^2 sigma2/m`` the square of gbar is
absorbed when eta L <= 1; sum over the steps, divide by 2 eta K and insert avg EV of ``pasgd_convex``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..symbols import R0, K, L, eta, m, sigma2, tau
from .pasgd_gap import pasgd_gap

pasgd_gap_sharp = Bound(
    name="pasgd_gap_sharp",
    quantity="average over K local steps of E F(xbar) - inf F, F convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * sigma2 / (2 * m) + (1 - 1 / m) * eta**2 * L * sigma2 * (tau - 1) / 8,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "function-value form of wang2018, Theorem 1, by interpolation at the mean"),
    status=Status.PROVED,
    setting=pasgd_gap.setting,
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.21625",
            "by hand: .2 + .0125 + .75 * .01 * 4 / 8",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
