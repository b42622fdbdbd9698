"""Theorem 1 when nobody waits: the average arrives ``in_flight`` local steps after it was asked for.

Setting.  As in ``pasgd_iterations``, but every tau steps the workers send their models y_i and go on; after delta =
``in_flight`` <= tau more steps the mean of the y_i has arrived and worker i continues from mean y + (x_i - y_i), with
the steps that it made meanwhile.  The bounded quantity is the same.  Only plain averages are covered: no outer rate but
1, no momentum.

Derivation.  The mean of the workers' models is not moved by the merge, so that (a) of ``pasgd_iterations`` stands. (b)
r steps after the last send whose mean has arrived, x^i - xbar is -eta times the centred sum of the last r gradients,
with r from delta to tau + delta - 1 (before the first arrival, from 0 to tau - 1)::

    EV_r <= 2 eta^2 r ((1 - 1/m) sigma2 + sum of the last r EG_s).

The mean of r is delta + (tau - 1)/2, which gives the noise its factor tau - 1 + 2 delta.  A gradient made j steps after
a send counts in the windows of its own round that are longer than j, whose lengths add up to at most tau (delta + (tau
- 1)/2), and, if j < delta - 1, in the windows of the round before that are longer than tau + j, whose lengths add up to
at most (delta - 1)(tau + delta/2); both are largest at j = 0.  (c) So G cancels where

    eta L + 2 eta^2 L^2 [tau (delta + (tau - 1)/2) + max(0, delta - 1)(tau + delta/2)] <= 1.

At delta = 0 this is ``pasgd_iterations`` with the factor 1 - 1/m in its last term.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, in_flight, m, sigma2, tau

_windows = tau * (in_flight + (tau - 1) / 2) + sp.Max(0, in_flight - 1) * (tau + in_flight / 2)

pasgd_overlap = Bound(
    name="pasgd_overlap",
    quantity="average over K local steps of E|grad F(xbar)|^2, averages in flight",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1 + 2 * in_flight),
    assuming=(sp.Le(in_flight, tau), sp.Le(eta * L + 2 * eta**2 * L**2 * _windows, 1)),
    reference=Reference("ratedist", "wang2018, Theorem 1, with averages that arrive while the workers go on"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.OVERLAPPED_LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 4, "in_flight": 3, "m": 4, "K": 100},
            "0.429375",
            "by hand: .4 + .0125 + .75 * .0025 * 9, at condition .05 + .005 * (4 * 4.5 + 2 * 5.5) <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
