"""How many rounds a wall-clock budget holds, and the mean of the inverse of their number, which the bounds need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from ..interval import Interval
from . import renewal
from .checks import positive, positive_integer
from .law import Law, StepTime
from .model import Bits, RuntimeModel
from .tails import Tail, round_tail

FINEST, COARSEST = 512, 32  # cells of the lattice in a mean round; from CELLS/COARSEST rounds on, moments
COARSER = 4  # ratio of successive lattices, so that few are needed over a range of times
EDGE = Fraction(1, 10**12)  # relative: a time that is whole rounds but for this is meant to be


@dataclass(frozen=True)
class Rounds:
    """The rounds that have ended by a time: N of them, a random number unless all times are constant.

    Parameters
    ----------
    time_s : float, seconds
        T, of the question.
    tau : int
        Local steps of a round.
    mean_s : float, seconds
        mean seconds of a round.
    expected : Interval
        Encloses E N.
    inverse : Interval
        Encloses E 1/max(N, 1), which is larger than 1/E N.

    Notes
    -----
    The ends are those of rounds that are never shorter and never longer than the true ones; nothing is simulated.
    """

    time_s: float
    tau: int
    mean_s: float
    expected: Interval
    inverse: Interval

    @property
    def steps(self) -> float:
        """Local steps K to insert in a bound that is linear in 1/K, tau over the upper end of ``inverse``.

        The mean over N of the bound at K = tau max(N, 1) is at most the bound at this K, which need not be whole.
        """
        return self.tau / float(self.inverse.hi)


def rounds_by(runtime: RuntimeModel, *, time_s: float, tau: int, m: int | None = None, bits: Bits = None) -> Rounds:
    """Return the rounds of tau local steps and an averaging that end within time_s seconds.

    Rounds are independent: steps between workers and over time, and the delay if it is a law.  Arguments otherwise as
    in ``RuntimeModel.seconds_per_iteration``.  Constant times: whole rounds, exactly.

    Parameters
    ----------
    runtime : RuntimeModel
        Seconds of steps and averagings.
    time_s : float, seconds
        Wall-clock budget, seconds; 0 < time_s.
    tau : int
        Local steps between two averagings.
    m : int or None, optional
        Number of workers, unless the model has it.
    bits : Bits, bits, optional
        Length of one message; 0 <= bits.

    Raises
    ------
    ValueError
        For arguments outside the ranges, for an infinite mean, and for step laws whose rounds depend on each other.
    """
    time_s, law = positive("time_s", time_s), _round_law(runtime, tau, m, bits)
    if law.is_constant:
        return whole_rounds(time_s, tau, Fraction(law.mean_s))
    return Rounds(time_s, tau, law.mean_s, _enclosed(law, time_s, "expected"), _enclosed(law, time_s, "inverse"))


def inverse_rounds(runtime: RuntimeModel, *, time_s: float, tau: int, m: int | None = None) -> Interval:
    """Return ``rounds_by(...).inverse`` alone, at half the price; the model has no communication cost.

    Parameters
    ----------
    runtime : RuntimeModel
        Seconds of steps and averagings.
    time_s : float, seconds
        Wall-clock budget, seconds; 0 < time_s.
    tau : int
        Local steps between two averagings.
    m : int or None, optional
        Number of workers, unless the model has it.
    """
    time_s, law = positive("time_s", time_s), _round_law(runtime, tau, m, None)
    if law.is_constant:
        return whole_rounds(time_s, tau, Fraction(law.mean_s)).inverse
    return _enclosed(law, time_s, "inverse")


def count_rounds(time_s: float | Fraction, round_s: float | Fraction) -> int:
    """Count the whole rounds that end within a time budget.

    All code counts rounds here.  A budget that is whole rounds but for a relative 1e-12 of rounding, such as 0.3 s of
    rounds of 0.1 s, holds them all.

    Parameters
    ----------
    time_s : float or Fraction, seconds
        Wall-clock budget, seconds; 0 <= time_s, finite.
    round_s : float or Fraction, seconds
        Seconds of one round; 0 < round_s.  An infinite round never ends.

    Raises
    ------
    ValueError
        For arguments outside the ranges.

    Examples
    --------
    >>> count_rounds(0.3, 0.1), count_rounds(1.9, 1.01), count_rounds(1, 1.5)
    (3, 1, 0)
    """
    if not 0 <= time_s < math.inf:
        raise ValueError(f"time_s must satisfy 0 <= time_s, finite; got time_s = {time_s}: give a budget in seconds")
    if not round_s > 0:
        raise ValueError(f"a round must take more than 0 s; got {round_s} s: give steps or averagings that take time")
    return 0 if round_s == math.inf else math.floor(Fraction(time_s) / Fraction(round_s) * (1 + EDGE))


def most_rounds(time_s: float, round_s: np.ndarray) -> np.ndarray:
    """Return an upper limit of ``count_rounds`` for every element, in floats, for searches.

    Parameters
    ----------
    time_s : float, seconds
        Wall-clock budget, seconds; 0 <= time_s.
    round_s : ndarray, seconds
        Seconds of one round; 0 < round_s.
    """
    return np.asarray(np.floor(time_s / round_s * (1 + 2 * float(EDGE))))


def no_round(time_s: float | Fraction, tau: int, round_s: float | Fraction) -> str:
    """Return the sentence that refuses a budget without a whole round.

    Parameters
    ----------
    time_s : float or Fraction, seconds
        Wall-clock budget, seconds.
    tau : int
        Local steps of the round.
    round_s : float or Fraction, seconds
        Seconds of the round.
    """
    return (
        f"time_s must hold at least one round of {tau} steps and an averaging, {float(round_s):.6g} s > 0; "
        f"got time_s = {float(time_s):g}: give more time"
    )


def whole_rounds(time_s: float | Fraction, tau: int, round_s: Fraction) -> Rounds:
    """Return the same for rounds of constant length round_s > 0, exactly: N = floor(T/round_s).

    Parameters
    ----------
    time_s : float or Fraction, seconds
        Wall-clock budget, seconds; 0 < time_s.
    tau : int
        Local steps between two averagings.
    round_s : Fraction, seconds
        Seconds of the averaging of one round.
    """
    done = count_rounds(time_s, round_s)
    inverse = Fraction(1, max(done, 1))
    return Rounds(float(time_s), tau, float(round_s), Interval(done, done), Interval(inverse, inverse))


@dataclass(frozen=True)
class _RoundLaw:
    """What the time of a round depends on."""

    step: StepTime
    m: int
    tau: int
    delay_s: float | Law
    mean_s: float

    @property
    def is_constant(self) -> bool:
        fixed = not isinstance(self.delay_s, Law) or self.delay_s.sd_s == 0
        return fixed and isinstance(self.step, Law) and self.step.sd_s == 0

    def tail(self, reach_s: float) -> Tail:
        return round_tail(self.step, m=self.m, tau=self.tau, delay_s=self.delay_s, reach_s=reach_s)


def _round_law(runtime: RuntimeModel, tau: int, m: int | None, bits: Bits) -> _RoundLaw:
    tau, m = positive_integer("tau", tau), runtime.workers(m)
    mean_s = tau * runtime.seconds_per_iteration(tau=tau, m=m, bits=bits)
    if not 0 < mean_s < math.inf:
        raise ValueError(f"a round must take a finite mean time > 0; got {mean_s} s")
    delay_s: float | Law = runtime.seconds_per_averaging(m=m, bits=bits)
    if isinstance(runtime.delay_s, Law):
        if runtime.communication is not None:
            raise ValueError("a random delay and a communication cost together are not covered: put one into the other")
        delay_s = runtime.delay_s
    return _RoundLaw(runtime.step, m, tau, delay_s, mean_s)


def _enclosed(law: _RoundLaw, time_s: float, what: Literal["expected", "inverse"]) -> Interval:
    """Return E N or E 1/max(N, 1)."""
    level = max(0, math.ceil(math.log(time_s / law.mean_s * FINEST / renewal.CELLS, COARSER)))
    if COARSEST * COARSER**level > FINEST:
        return _by_moments(law, time_s)[("expected", "inverse").index(what)]
    width_s = law.mean_s * COARSER**level / FINEST
    low, high = _table(law, width_s, what)
    after, before = (math.floor(time_s / width_s * (1 + sign * 1e-12)) for sign in (-1, 1))
    if what == "expected":
        return Interval(float(low[after]), float(high[before]))
    return Interval(float(low[before]), float(high[after]))


@lru_cache(maxsize=32)
def _table(law: _RoundLaw, width_s: float, what: Literal["expected", "inverse"]) -> renewal.Ends:
    """Return the ends at every lattice point; all times of a run share it."""
    tabulate = renewal.expected_on_lattice if what == "expected" else renewal.inverse_on_lattice
    return tabulate(law.tail(2 * width_s * renewal.CELLS), width_s)


@lru_cache(maxsize=256)
def _by_moments(law: _RoundLaw, time_s: float) -> tuple[Interval, Interval]:
    reach_s = law.mean_s * 2.0 ** math.ceil(math.log2(time_s / law.mean_s))
    return renewal.by_moments(law.tail(reach_s), time_s, law.mean_s)
