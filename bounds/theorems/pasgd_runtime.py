"""Theorem 1 of local-update SGD, in seconds: what a wall-clock budget buys with tau local steps a round.

Derivation.  A round of tau steps takes tau Y + D seconds, so T seconds hold K = T/(Y + D/tau) local steps; insert
this K in ``pasgd_iterations``, whose assumptions are inherited.  T is meant as a whole number of rounds (otherwise
replace T by the time of the finished rounds).  For random times, Y + D/tau stands for the expected seconds per
local step, E[max over workers of the mean of tau step times] + E[D]/tau.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, delay_s, step_s, tau, time_s
from .pasgd_iterations import pasgd_iterations

pasgd_runtime = Bound(
    name="pasgd_runtime",
    quantity="average over the local steps done in time_s of E|grad F(xbar)|^2",
    side=Side.UPPER,
    value=pasgd_iterations.value.subs(K, time_s / (step_s + delay_s / tau)),
    assuming=pasgd_iterations.assuming,
    reference=Reference("wang2018", "Theorem 1", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_iterations.setting.needs | {Property.CONSTANT_TIMES, Property.WHOLE_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "time_s": 150, "step_s": 1, "delay_s": 2},
            "0.25500",
            "150 s at 1.5 s per step are the 100 steps of .2 + .025 + .03, by hand",
        ),
    ),
    note="time_s is a whole number of rounds; otherwise insert the time of the finished rounds.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
