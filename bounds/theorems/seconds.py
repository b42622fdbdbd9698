"""Theorems at a time instead of a number of steps: two derivations, and what follows from them.

A theorem that holds for every whole number of rounds, and depends on the number K of local steps by its inverse alone,
holds at a time as well.  ``in_seconds`` and ``wall_clock`` derive the two forms: a run that finishes the round under
way, and the rounds that have ended.  The derivations stand below ``pasgd_runtime`` and ``pasgd_wall_clock``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, delay_s, eta, gap, in_flight, inverse_rounds, m, sigma2, step_s, tau, time_s
from .compressed_local_sgd import pasgd_compressed, pasgd_compressed_convex, pasgd_two_shot
from .local_sgd import pasgd_convex_sharp, pasgd_iterations, pasgd_overlap, pasgd_smooth_sharp
from .memory import qsparse
from .third_order import pasgd_third_order, pasgd_third_order_convex, pasgd_third_order_strongly_convex

_MEAN_MODEL = "average over K local steps of E|grad F(xbar)|^2"
_WORKERS = "average over workers and K local steps of E|grad F(x^i)|^2"
_FINISHED = "E sum |grad F(xbar)|^2 / E number of local steps, up to the first averaging at or after time_s"
_ENDED = "the rounds ended by a time (of 1 at least)"


def in_seconds(bound: Bound, *examples: Example) -> Bound:
    """Return the bound on a run that ends with the first averaging at or after ``time_s``.

    Parameters
    ----------
    bound : Bound
        Bounds the average of ``E|grad F|^2`` at the mean model for every whole number of rounds of tau steps.  Its
        proof telescopes over rounds, and K enters by 1/K.
    *examples : Example
        Values computed independently.  Those of ``bound`` at the same number of steps by default.
    """
    return replace(
        bound,
        name=f"{_stem(bound)}_runtime",
        quantity=bound.quantity.replace(
            _MEAN_MODEL,
            "E sum |grad F(xbar)|^2 / E number of local steps, up to the first averaging at or after time_s",
        ),
        value=bound.value.subs(K, time_s / (step_s + delay_s / tau)),
        setting=Setting(
            bound.setting.needs | {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED},
            Conclusion.GRADIENT_PER_MEAN_STEP,
        ),
        examples=examples or tuple(map(_in_time, bound.examples)),
        note=f"the round under way at time_s is finished and counts; otherwise {_stem(bound)}_wall_clock.",
        latex_name=r"\frac{E\sum_k\|\nabla F(\bar x_k)\|^2}{E K}",
        _cache={},
    )


def wall_clock(bound: Bound, *examples: Example, where: str = "") -> Bound:
    """Return the bound on the rounds that have ended by a time, ``inverse_rounds`` in place of 1/rounds.

    Parameters
    ----------
    bound : Bound
        Holds for every whole number of rounds of tau steps; K enters by 1/K.
    *examples : Example
        Values computed independently.  Those of ``bound`` at the same number of steps by default.
    where : str, optional
        What its reference says; that of ``bound`` by default.
    """
    mean_model = f"E of the average of |grad F(xbar)|^2 over the local steps of {_ENDED}"
    workers = f"E of the average over workers and the local steps of {_ENDED} of |grad F(x^i)|^2"
    return replace(
        bound,
        name=f"{_stem(bound)}_wall_clock",
        quantity=bound.quantity.replace(_MEAN_MODEL, mean_model).replace(_WORKERS, workers),
        value=bound.value.subs(K, tau / inverse_rounds),
        reference=Reference("ratedist", where) if where else bound.reference,
        setting=Setting(bound.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, bound.setting.concludes),
        examples=examples or tuple(map(_in_rounds, bound.examples)),
        note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
        latex_name="E" + bound.latex_name.replace(" E", ""),
        _cache={},
    )


def _stem(bound: Bound) -> str:
    return bound.name.removesuffix("_iterations")


def _in_rounds(example: Example) -> Example:
    """The same number of steps as a number of rounds."""
    point = {name: value for name, value in example.at.items() if name != "K"}
    tau_value = Fraction(point.setdefault("tau", 1))
    return replace(example, at=point | {"inverse_rounds": tau_value / Fraction(example.at["K"])})


def _in_time(example: Example) -> Example:
    """The same number of steps, each of 1 s, an averaging as long as a step of each round."""
    point = {name: value for name, value in example.at.items() if name != "K"}
    tau_value = Fraction(point.setdefault("tau", 1))
    return replace(example, at=point | {"step_s": 1, "delay_s": tau_value, "time_s": 2 * Fraction(example.at["K"])})


pasgd_runtime = in_seconds(
    pasgd_iterations,
    Example(
        {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "time_s": 150, "step_s": 1, "delay_s": 2},
        "0.25500",
        "150 s at 1.5 s per step are the 100 steps of .2 + .025 + .03, by hand",
    ),
)
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
"""Theorem 2 of local-update SGD: the value of Theorem 1 at its best communication period.

Derivation.  As a function of tau the bound of ``pasgd_runtime`` is A D/tau + B tau plus terms without tau, with
A = 2 gap/(eta T), B = eta^2 L^2 sigma2.  By the inequality of the means it is at least 2 sqrt(A B D) plus those
terms, with equality exactly at tau* = sqrt(A D/B).  The value therefore is the smallest that Theorem 1 can give over
real tau; it bounds the gradient itself when tau* is a whole number, and lies below Theorem 1 at every integer.
It needs tau* >= 1 and the condition of Theorem 1 at tau*.
"""

pasgd_wall_clock = wall_clock(
    pasgd_iterations,
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
    where="wang2018, Theorem 1, at a random number of rounds",
)
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

pasgd_compressed_runtime = in_seconds(
    pasgd_compressed,
    Example(
        {
            "gap": 1,
            "eta": "0.1",
            "L": 1,
            "sigma2": 1,
            "tau": 4,
            "m": 4,
            "omega": 3,
            "time_s": 150,
            "step_s": 1,
            "delay_s": 2,
        },
        "0.40500",
        "150 s at 1.5 s per step are the 100 steps of .2 + .175 + .03, by hand",
    ),
)
pasgd_two_shot_runtime = in_seconds(
    pasgd_two_shot,
    Example(
        {
            "gap": 1,
            "eta": "0.1",
            "L": 1,
            "sigma2": 1,
            "tau": 4,
            "m": 4,
            "omega1": 1,
            "omega2": "0.25",
            "time_s": 150,
            "step_s": 1,
            "delay_s": 2,
        },
        "0.330000",
        "150 s at 1.5 s per step are the 100 steps of .2 + .1 + .03, by hand",
    ),
)
pasgd_third_order_runtime = in_seconds(pasgd_third_order)
pasgd_third_order_convex_runtime = in_seconds(pasgd_third_order_convex)
"""The step form in seconds: a run that ends with the first averaging at or after T.

D is the time of one averaging: latencies, messages over bandwidth, and the time to encode and decode them, so that a
larger omega buys a smaller D (see ``bounds.runtime``).

Derivation.  The inequality of the step form holds round by round, given what came before, and rounds are summed up to
the first averaging at or after T as in ``pasgd_runtime``.
"""

pasgd_convex_sharp_wall_clock = wall_clock(
    pasgd_convex_sharp,
    Example(
        {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "inverse_rounds": "0.05"},
        "0.22875",
        "20 rounds of 5 steps, by hand: .2 + .025 + .75 * .01 * 4 / 8",
    ),
    where="convex form of wang2018, Theorem 1, at a random number of rounds",
)
pasgd_smooth_sharp_wall_clock = wall_clock(
    pasgd_smooth_sharp,
    Example(
        {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "inverse_rounds": "0.03", "rho": "0.5"},
        "0.229362890625",
        "100 steps: .2 + .025 + .75 * .01 * (9/16) * (0 + 1 + 2.1025) / 3, by hand",
    ),
    where="smooth form of wang2018, Theorem 1, at a random number of rounds",
)
pasgd_compressed_wall_clock = wall_clock(
    pasgd_compressed,
    Example(
        {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "omega": 3, "inverse_rounds": "0.04"},
        "0.40500",
        "25 rounds of 4 steps, by hand: .2 + .025 * 7 + .03",
    ),
    where="joint bound of local steps and compression at a random number of rounds",
)
pasgd_compressed_convex_wall_clock = wall_clock(
    pasgd_compressed_convex,
    Example(
        {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "omega": 3, "inverse_rounds": "0.025"},
        "0.28937500",
        "40 rounds of 5 steps, by hand: .2 + .0125 * 7 + .75 * .0025 * 4 / 4",
    ),
    where="convex form of the joint bound at a random number of rounds",
)
pasgd_two_shot_wall_clock = wall_clock(
    pasgd_two_shot,
    Example(
        {
            "gap": 1,
            "eta": "0.1",
            "L": 1,
            "sigma2": 1,
            "tau": 4,
            "m": 4,
            "omega1": 1,
            "omega2": "0.25",
            "inverse_rounds": "0.04",
        },
        "0.330000",
        "25 rounds of 4 steps, by hand: .2 + .1 + .03",
    ),
    where="local steps and two unbiased stages at a random number of rounds",
)
qsparse_wall_clock = wall_clock(
    qsparse,
    Example(
        {
            "gap": 1,
            "eta": "0.1",
            "L": 1,
            "sigma2": 1,
            "G": 1,
            "tau": 2,
            "m": 4,
            "alpha": "0.5",
            "inverse_rounds": "0.02",
        },
        "4.6600",
        "50 rounds of 2 steps, by hand: .4 + .1 + 8 * 13 * .04",
    ),
    where="basu2019, Theorem 1, at a random number of rounds",
)
pasgd_third_order_wall_clock = wall_clock(pasgd_third_order)
pasgd_third_order_convex_wall_clock = wall_clock(pasgd_third_order_convex)
pasgd_third_order_strongly_convex_wall_clock = wall_clock(pasgd_third_order_strongly_convex)
"""The step form at a wall-clock time: the rounds that have ended by then.

Derivation.  As in ``pasgd_wall_clock``: the step form holds for every whole number of rounds and depends on it by its
inverse alone.
"""

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
"""Theorem 1 with averages in flight, in seconds: a round costs its steps, and what the average has not hidden in them.

Setting.  As in ``pasgd_overlap``; every local step takes Y seconds and every average D, and a worker waits for an
average that has not arrived after ``in_flight`` = delta steps.  T is a whole number of rounds.

Derivation.  A round takes tau Y + max(0, D - delta Y) seconds, so that T seconds hold K = T/(Y + max(0, D - delta
Y)/tau) local steps of ``pasgd_overlap``; with delta = tau a step takes max(Y, D/tau), without overlap Y + D/tau.
"""
