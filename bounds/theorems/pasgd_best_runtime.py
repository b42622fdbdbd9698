"""Theorem 2 of local-update SGD: the value of Theorem 1 at its best communication period.

Derivation.  As a function of tau the bound of ``pasgd_runtime`` is A D/tau + B tau plus terms without tau, with
A = 2 gap/(eta T), B = eta^2 L^2 sigma2.  By the inequality of the means it is at least 2 sqrt(A B D) plus those
terms, with equality exactly at tau* = sqrt(A D/B).  The value therefore is the smallest that Theorem 1 can give over
real tau; it bounds the gradient itself when tau* is a whole number, and lies below Theorem 1 at every integer.
It needs tau* >= 1 and the condition of Theorem 1 at tau*.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import L, delay_s, eta, gap, m, sigma2, step_s, time_s

_decrease, _increase = 2 * gap / (eta * time_s), eta**2 * L**2 * sigma2

pasgd_best_runtime = Bound(
    name="pasgd_best_runtime",
    quantity="smallest value of the bound pasgd_runtime over real tau >= 1",
    side=Side.TIGHT,
    value=_decrease * step_s + eta * L * sigma2 / m - _increase + 2 * sp.sqrt(_decrease * _increase * delay_s),
    assuming=(
        sp.Ge(_decrease * delay_s, _increase),
        sp.Le(eta * L + _decrease * delay_s / sigma2 - sp.sqrt(_decrease * delay_s / sigma2) * eta * L, 1),
    ),
    reference=Reference("wang2018", "Theorem 2", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.LOCAL_SGD, Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED},
        Conclusion.OTHER_BOUND,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "m": 4, "time_s": 500, "step_s": 1, "delay_s": 4},
            "0.135000",
            "by hand: tau* = 4, .04 + .025 - .01 + 2 sqrt(.04 * .01 * 4)",
        ),
    ),
    latex_name=r"\min_\tau",
)
