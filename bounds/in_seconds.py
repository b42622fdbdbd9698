"""A bound for a number of local steps as a bound for a time: written once, derived for every theorem.

A theorem that holds for every whole number of rounds, and depends on the number K of local steps by its inverse alone,
holds at a time as well.

``wall_clock``: the rounds that have ended by the time count, the first in any case, and their lengths are independent
of the gradients.  Given the lengths the number R of rounds is fixed; in the mean over them E 1/R replaces 1/R, as in
``pasgd_wall_clock``.

``runtime``: the run ends with the first averaging at or after the time.  Sum over the rounds made: the values of F
telescope, and Wald's identity gives at least T/(Y + D/tau) steps on average, as in ``pasgd_runtime``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from .bound import Bound, Example
from .properties import Conclusion, Property
from .setting import Setting
from .symbols import K, delay_s, inverse_rounds, step_s, tau, time_s


def wall_clock(bound: Bound) -> Bound:
    """Return the bound on the rounds that have ended by a time, ``inverse_rounds`` in place of K.

    Parameters
    ----------
    bound : Bound
        Holds for every whole number of rounds of tau steps; K enters by 1/K.
    """
    needs = bound.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}
    return replace(
        bound,
        name=f"{bound.name}_wall_clock",
        quantity=f"{bound.quantity}; E over the rounds ended by a time (of 1 at least)",
        value=bound.value.subs(K, tau / inverse_rounds),
        setting=Setting(needs, bound.setting.concludes),
        examples=tuple(map(_in_rounds, bound.examples)),
        note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
        _cache={},
    )


def runtime(bound: Bound) -> Bound:
    """Return the bound on a run that ends with the first averaging at or after ``time_s``.

    Parameters
    ----------
    bound : Bound
        As for ``wall_clock``, its proof telescoping over rounds; it bounds an average of ``|grad F|^2``.
    """
    needs = bound.setting.needs | {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED}
    return replace(
        bound,
        name=f"{bound.name}_runtime",
        quantity=f"{bound.quantity}; E of the sum over E of the steps, up to the first averaging at or after time_s",
        value=bound.value.subs(K, time_s / (step_s + delay_s / tau)),
        setting=Setting(needs, Conclusion.GRADIENT_PER_MEAN_STEP),
        examples=tuple(map(_in_time, bound.examples)),
        note="the round under way at time_s is finished and counts.",
        _cache={},
    )


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
