"""Theorem 1 of local-update SGD at a wall-clock time: the average over the rounds that have ended by then.

Setting.  As in ``pasgd_iterations``; the times of rounds are independent of the gradients.  N is the number of rounds
(tau steps and an averaging) that end by the time T.  The run counts R = max(N, 1) rounds: those that have ended by T,
and the first one if none has.  The round under way at T does not count.

Derivation.  Given the times, R is a fixed number, and ``pasgd_iterations`` bounds the average over the K = tau R local
steps.  Take the mean over the times: K enters by 1/K alone, so that E 1/R takes the place of 1/R.  It is larger than
1/E R, and than 1/E N as a rule: for rounds of exponential length 1 and T = 3 it is .461, where 1/E N = .333.  Since ``E
1/R = P(N = 0) + P(N > 0) E[1/N | N > 0]`` and the latter is at most 1, the value also bounds the average given that a
round has ended.  ``bounds.runtime.rounds_by`` encloses E 1/R; for constant times N = floor(T/(tau Y + D)).
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .pasgd_iterations import pasgd_iterations

pasgd_wall_clock = Bound(
    name="pasgd_wall_clock",
    quantity="E of the average of |grad F(xbar)|^2 over the local steps of the rounds ended by a time (of 1 at least)",
    side=Side.UPPER,
    value=pasgd_iterations.value.subs(K, tau / inverse_rounds),
    assuming=pasgd_iterations.assuming,
    reference=Reference("ratedist", "wang2018, Theorem 1, at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_iterations.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "inverse_rounds": "0.04"},
            "0.25500",
            "25 rounds of 4 steps, by hand: .2 + .025 + .03",
        ),
        Example(
            {"gap": "0.5", "eta": 1, "L": 1, "sigma2": 0, "tau": 1, "m": 1, "inverse_rounds": "0.4609289"},
            "0.46093",
            "F = x^2/2 from 1, Poisson(3) rounds: e^-3 (1 + Ei(3) - log(3) - gamma), the exact value",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1K\sum_k\|\nabla F(\bar x_k)\|^2",
)
