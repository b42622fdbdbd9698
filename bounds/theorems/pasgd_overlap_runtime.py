"""Theorem 1 with averages in flight, in seconds: a round costs its steps, and what the average has not hidden in them.

Setting.  As in ``pasgd_overlap``; every local step takes Y seconds and every average D, and a worker waits for an
average that has not arrived after ``in_flight`` = delta steps.  T is a whole number of rounds.

Derivation.  A round takes tau Y + max(0, D - delta Y) seconds, so that T seconds hold K = T/(Y + max(0, D - delta
Y)/tau) local steps of ``pasgd_overlap``; with delta = tau a step takes max(Y, D/tau), without overlap Y + D/tau.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, delay_s, in_flight, step_s, tau, time_s
from .pasgd_overlap import pasgd_overlap

pasgd_overlap_runtime = Bound(
    name="pasgd_overlap_runtime",
    quantity="average over the local steps of time_s seconds of E|grad F(xbar)|^2, averages in flight",
    side=Side.UPPER,
    value=pasgd_overlap.value.subs(K, time_s / (step_s + sp.Max(0, delay_s - in_flight * step_s) / tau)),
    assuming=pasgd_overlap.assuming,
    reference=Reference("ratedist", "wang2018, Theorem 1, with averages that arrive while the workers go on"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_overlap.setting.needs | {Property.CONSTANT_TIMES, Property.WHOLE_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.05",
                "L": 1,
                "sigma2": 1,
                "tau": 4,
                "in_flight": 3,
                "m": 4,
                "time_s": 150,
                "step_s": 1,
                "delay_s": 5,
            },
            "0.429375",
            "4 steps in 6 s: the 100 steps of .4 + .0125 + .016875, by hand",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
