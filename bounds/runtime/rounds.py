"""How many rounds a wall-clock budget holds, and the mean of the inverse of their number, which the bounds need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..interval import Interval
from . import renewal
from .checks import positive, positive_integer
from .law import Law, StepTime
from .model import Bits, RuntimeModel
from .tails import Tail, round_tail

FINEST, COARSEST = 1024, 16  # cells of the lattice in a mean round; from CELLS/COARSEST rounds on, moments
EDGE = Fraction(1, 10**12)  # relative: a time that is whole rounds but for this is meant to be


@dataclass(frozen=True)
class Rounds:
    """The rounds that have ended by a time: N of them, a random number unless all times are constant.

    time_s : T, of the question.  tau : local steps of a round.  mean_s : mean seconds of a round.
    expected : encloses E N.  inverse : encloses E 1/max(N, 1), which is larger than 1/E N.
    The ends are those of rounds that are never shorter and never longer than the true ones; nothing is simulated.
    """

    time_s: float
    tau: int
    mean_s: float
    expected: Interval
    inverse: Interval

    @property
    def steps(self) -> float:
        """tau over the upper end of ``inverse``: the local steps K to insert in a bound that is linear in 1/K.

        The mean over N of the bound at K = tau max(N, 1) is at most the bound at this K, which need not be whole.
        """
        return self.tau / float(self.inverse.hi)


def rounds_by(runtime: RuntimeModel, *, time_s: float, tau: int, m: int | None = None, bits: Bits = None) -> Rounds:
    """The rounds of tau local steps and an averaging that end within time_s seconds.

    Rounds are independent: steps between workers and over time, and the delay if it is a law.  Arguments otherwise as
    in ``RuntimeModel.seconds_per_iteration``.  Constant times: whole rounds, exactly.  Raises ValueError outside the
    ranges, for an infinite mean, and for step laws whose rounds depend on each other.
    """
    time_s, tau, m = positive("time_s", time_s), positive_integer("tau", tau), runtime.workers(m)
    mean_s = tau * runtime.seconds_per_iteration(tau=tau, m=m, bits=bits)
    if not 0 < mean_s < math.inf:
        raise ValueError(f"a round must take a finite mean time > 0; got {mean_s} s")
    if _is_constant(runtime):
        return whole_rounds(time_s, tau, Fraction(mean_s))
    delay_s: float | Law = runtime.seconds_per_averaging(m=m, bits=bits)
    if isinstance(runtime.delay_s, Law):
        if runtime.communication is not None:
            raise ValueError("a random delay and a communication cost together are not covered: put one into the other")
        delay_s = runtime.delay_s
    expected, inverse = _enclosed(runtime.step, m, tau, delay_s, mean_s, time_s)
    return Rounds(time_s, tau, mean_s, expected, inverse)


def whole_rounds(time_s: float | Fraction, tau: int, round_s: Fraction) -> Rounds:
    """The same for rounds of constant length round_s > 0, exactly: N = floor(T/round_s)."""
    done = math.floor(Fraction(time_s) / round_s * (1 + EDGE))
    inverse = Fraction(1, max(done, 1))
    return Rounds(float(time_s), tau, float(round_s), Interval(done, done), Interval(inverse, inverse))


def _is_constant(runtime: RuntimeModel) -> bool:
    laws = [runtime.step, runtime.delay_s]
    return all(not isinstance(law, StepTime) or (isinstance(law, Law) and law.sd_s == 0) for law in laws)


def _enclosed(
    step: StepTime, m: int, tau: int, delay_s: float | Law, mean_s: float, time_s: float
) -> tuple[Interval, Interval]:
    """E N and E 1/max(N, 1)."""
    level = max(0, math.ceil(math.log2(time_s / mean_s * FINEST / renewal.CELLS)))
    if FINEST >> level < COARSEST:
        reach_s = mean_s * 2.0 ** math.ceil(math.log2(time_s / mean_s))
        tail = round_tail(step, m=m, tau=tau, delay_s=delay_s, reach_s=reach_s)
        return renewal.by_moments(tail, time_s, mean_s)
    width_s = mean_s * 2**level / FINEST
    expected, inverse = _table(step, m, tau, delay_s, width_s)
    after, before = (math.floor(time_s / width_s * (1 + sign * 1e-12)) for sign in (-1, 1))
    return (
        Interval(float(expected[0][after]), float(expected[1][before])),
        Interval(float(inverse[0][before]), float(inverse[1][after])),
    )


@lru_cache(maxsize=32)
def _table(
    step: StepTime, m: int, tau: int, delay_s: float | Law, width_s: float
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The ends at every lattice point; all times of a run share it."""
    tail: Tail = round_tail(step, m=m, tau=tau, delay_s=delay_s, reach_s=2 * width_s * renewal.CELLS)
    return renewal.on_lattice(tail, width_s)
