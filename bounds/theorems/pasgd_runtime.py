"""Theorem 1 of local-update SGD, in seconds: what a wall-clock budget buys with tau local steps a round.

Setting.  As in ``pasgd_iterations``; round r takes X_r seconds, independent of all rounds before it, with mean
tau Y + D, where Y stands for E max over workers of the mean of tau step times and D for the mean time of an averaging
(constants, if they are).  The run ends with round R, the first averaging at or after T.

Derivation.  Steps (a)-(c) of ``pasgd_iterations`` inside one round, given everything before it, read ::

    eta sum_{k in r} E|grad F(xbar_k)|^2 <= 2 F(start of r) - 2 E F(end of r) + eta tau floor,
    floor = eta^2 L sigma2/m + eta^3 L^2 sigma2 (tau - 1).

Whether round r is made, r <= R, is known before it begins.  Sum over the rounds made: the values of F telescope, ::

    eta E sum_{k <= tau R} |grad F(xbar_k)|^2 <= 2 gap + tau E R floor.

Divide by eta tau E R.  Wald's identity gives E R (tau Y + D) = E S_R >= T, hence tau E R >= T/(Y + D/tau), the K of
``pasgd_iterations``.  So the quotient of two means is bounded: that of the summed squared gradients, and that of the
number of steps.  For constant times it is the average over the steps of the run, whose last round ends at or after T.
For random times the mean of the average itself is another matter, because a run of few rounds counts as much as one
of many and E 1/R > 1/E R: see ``pasgd_wall_clock``, also for what is known at T, before the last round has ended.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, delay_s, step_s, tau, time_s
from .pasgd_iterations import pasgd_iterations

pasgd_runtime = Bound(
    name="pasgd_runtime",
    quantity="E sum |grad F(xbar)|^2 / E number of local steps, up to the first averaging at or after time_s",
    side=Side.UPPER,
    value=pasgd_iterations.value.subs(K, time_s / (step_s + delay_s / tau)),
    assuming=pasgd_iterations.assuming,
    reference=Reference("wang2018", "Theorem 1", arxiv="1810.08313"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_iterations.setting.needs | {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED},
        Conclusion.GRADIENT_PER_MEAN_STEP,
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "time_s": 150, "step_s": 1, "delay_s": 2},
            "0.25500",
            "150 s at 1.5 s per step are the 100 steps of .2 + .025 + .03, by hand",
        ),
    ),
    note="the round under way at time_s is finished and counts; for the rounds finished by then: pasgd_wall_clock.",
    latex_name=r"\frac{E\sum_k\|\nabla F(\bar x_k)\|^2}{E K}",
)
