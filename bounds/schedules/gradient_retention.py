"""Gradient retention: choose tau by the measured cost of an averaging and the measured decline of gradients.

Model.  Let n = D/Y, and let e(k) be the progress of the k-th local step after an averaging over that of a step of the
averaged model: 1 right after it.  A round of tau steps takes tau + n units of Y and makes P(tau) = e(1) + ... + e(tau)
units of progress.  With e(k) = 1 - a (k - 1), as long as that is positive, P(tau) = tau - a tau (tau - 1)/2, and over
real tau P/(tau + n) is largest at -n + sqrt(n^2 + n + 2 n/a), proved in ``retention_proof`` (marginal-value theorem).
n >> 1/a: tau -> 1/a + 1/2, the steps after which nothing is left; n << 1/a: tau -> sqrt(2 n/a).  The rule takes the
best whole tau of the sum itself.

The measured decline is a poor estimate of the one that matters: far too large with Adam on one problem, too large with
different data, and near 0 where noise dominates.  So the rule believes sqrt(a a0), the estimate with the least squared
error in log a if measurement and prior are equally uncertain.  a0 = 1/256 was chosen on the design problems of
``docs/benchmarks/automatic_tau.py``.  The largest tau is the best one for the smallest believed decline, a0/sqrt(2),
and grows with sqrt(n).

Averages in flight cost a round max(tau, n) in place of tau + n.  Beyond n the progress of a step only falls, so ceil(n)
is the cap.  Below n every further step is free as long as it gains anything.

Measured: a worker's gradient h in its last local step against u, the one at the averaged model on the same batch.
1 - <h, u>/<u, u> is what tau - 1 local steps have lost; negative values, which noise causes, count as none in the mean.
Measured means replace expectations, and a straggler term s sqrt(tau) joins n.  No theorem: see the limits in
``GradientRetention``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from ..runtime.checks import nonnegative, positive
from .measured import Measured
from .schedule import Observation, Schedule, State
from .steady import BENT, steady_period

LARGEST = 512  # local steps of a round
OVERHEAD = 9  # c: beyond tau = c n at most 1/c of the time can be gained
FIRST = (32, 32)  # local steps of the rounds before n is known: within 1.35 of the best tau for n up to 5 in the design
FIRST_IN_FLIGHT = (4, 8)  # the same for averages in flight, where tau beyond n gains nothing
PRIOR_DECLINE = 1 / 256  # a0
LEAST_DECLINE = PRIOR_DECLINE / 2  # smallest measured decline that is used
MEMORY = 0.8  # weight of what was known in the means of the probe
STRAGGLER_MEMORY = 0.9
TURN_MEMORY = 0.5  # of bend, curve and turn
NOTICED = 1e-6  # n + s beyond which t/(t + n + s sqrt(t)) rises by more than roundings from every t <= 512 to the next
PROBE_SHARE = 0.02  # of the gradients computed, at most
WINDOW = 9  # rounds whose median time counts: a checkpoint or an evaluation in one of them does no harm

_TAUS = np.arange(1, LARGEST + 1)
_STEPS, _BEFORE, _ROOTS = _TAUS.astype(float), _TAUS - 1.0, np.sqrt(_TAUS)


@dataclass(frozen=True)
class GradientRetentionState(State):
    """What the rule knows; times in seconds, everything else in units of a local step.

    Parameters
    ----------
    tau : int, optional
        Of the coming round.
    step : int, optional
        Local steps done.
    ended : int, optional
        Of them, in the last round.
    opened : bool, optional
        Whether the first round has begun.
    started : bool, optional
        Whether tau follows n yet.
    steps_s : tuple of float, seconds, optional
        Measured Y of the last rounds.
    delays_s : tuple of float, seconds, optional
        Measured D of the last rounds.
    straggler : float or None, optional
        s.
    lost : float, optional
        The running mean N of <u - h, u>.
    fresh : float, optional
        The running mean W of (tau - 1) <u, u>.
    probe : bool, optional
        Whether the coming round ends with a probe.
    age : float or None, optional
        Time since the last one, None before the first.
    loss_jump : float or None, optional
        The loss at the averaged model minus the workers' own on the same batch, in the last probe; above 0 the workers
        had moved towards different models, as they do on different data.
    bend2 : float, optional
        The running mean of the squared bend of the loss (``steady``).
    curve : float, optional
        The running mean of what the bend of a convex loss is at most.
    turn : float or None, optional
        The running mean of the cosine between successive mean movements.
    turning : float, optional
        The running mean of the steps of their rounds.
    workers : int, optional
        That measure.
    """

    tau: int = 1
    step: int = 0
    ended: int = 0
    opened: bool = False
    started: bool = False
    steps_s: tuple[float, ...] = ()
    delays_s: tuple[float, ...] = ()
    straggler: float | None = None
    lost: float = 0.0
    fresh: float = 0.0
    probe: bool = False
    age: float | None = None
    loss_jump: float | None = None
    bend2: float = 0.0
    curve: float = 0.0
    turn: float | None = None
    turning: float = 0.0
    workers: int = 1

    @property
    def bent(self) -> bool:
        """Whether the loss is seen to be no quadratic between the workers; not where its bend is no convex one's."""
        return self.curve > 0 and (BENT * self.curve) ** 2 < self.bend2 <= self.curve**2

    @property
    def steady(self) -> int:
        """The largest tau of a round, which is less than 512 where the loss is bent and the mean makes no progress."""
        if not self.bent or self.turn is None:
            return LARGEST
        return max(1, int(min(LARGEST, steady_period(turn=self.turn, tau=self.turning, workers=self.workers))))

    @property
    def delay_ratio(self) -> float | None:
        """n = D/Y from the medians of the last rounds; None before both are known."""
        return median(self.delays_s) / median(self.steps_s) if self.steps_s and self.delays_s else None

    @property
    def decline(self) -> float:
        """a, the share of the gradient that is lost in one local step, at most all of it; 0 where no loss was seen."""
        return min(1.0, max(0.0, self.lost / self.fresh)) if self.fresh > 0 else 0.0

    @property
    def believed_decline(self) -> float:
        """Geometric mean of the measured decline and its prior, by which tau is chosen."""
        return math.sqrt(max(self.decline, LEAST_DECLINE) * PRIOR_DECLINE)

    def within(self, observation: Observation) -> int:
        """Return tau, or as many steps as are left.

        Parameters
        ----------
        observation : Observation
            Of the beginning of the round.
        """
        left = observation.steps_left
        return self.tau if left is None else max(1, min(self.tau, left))


Known = TypeVar("Known", bound=GradientRetentionState)


@final
@dataclass(frozen=True)
class GradientRetention(Schedule):
    """tau = min(t*, 2 tau, 512), at least tau/2, from measured n = D/Y, decline a and straggler coefficient s.

    t* maximises P(t)/(t + n + s sqrt(t)), P(t) = sum of max(0, 1 - a' (k - 1)) over k <= t, where a' is the geometric
    mean of a and 1/256, with a at least 1/512.  Until n has been measured the first two rounds have 32 steps, and the
    first ends with a probe.  The third has t*, at most 64.  A round of one step shows no decline: where tau would be 1
    and a probe is due, the round has two steps, unless more than one can gain a ninth at most.  Needs
    ``Observation.measured``; whoever measures makes a probe where the state says ``probe``.  The learning rate needs no
    exponent: when it decays less is lost, and tau rises.  With averages in flight the first rounds have 4, 8 and
    ceil(n) steps.  Then t* maximises P(t)/max(t + s sqrt(t), n) with the measured decline.  It is at most ceil(n), or
    the least t at which s/sqrt(t) <= 1/9 where that is longer.  Where the loss is bent and the mean makes no progress,
    tau is what ``steady`` says.  Limits: the decline is a proxy on noisy gradients.  It reacts late at kinks, and
    hardly to bias of third order in many directions or to multiplicative noise.  For the last digits end with tau = 1
    or a decayed rate.  It is slow where a target takes fewer than 5 D/Y steps.

    Parameters
    ----------
    overlapped : bool, optional
        Whether averages are in flight while the workers go on.
    """

    overlapped: bool = field(default=False, repr=False)

    measures: ClassVar[bool] = True

    def init(self) -> GradientRetentionState:
        """Nothing measured."""
        return GradientRetentionState()

    def __call__(self, state: GradientRetentionState, observation: Observation) -> tuple[GradientRetentionState, int]:
        """Take in what was measured, and choose the coming round."""
        state, ended = taken_in(state, observation), observation.step - state.step
        n = state.delay_ratio
        if n is None:
            state = opened(state, observation.step, FIRST_IN_FLIGHT if self.overlapped else FIRST)
        else:
            tau = _next_period(state, n, self.overlapped)
            state = begun(state, observation.step, tau, delay_ratio=n, ended=ended)
        return state, state.within(observation)

    def restore(self, data: Mapping[str, Any]) -> GradientRetentionState:
        """Return the state from what ``to_dict`` gave, also through JSON."""
        windows = {name: tuple(data[name]) for name in ("steps_s", "delays_s") if name in data}
        return GradientRetentionState(**{**data, **windows})


def taken_in(state: Known, observation: Observation) -> Known:
    """Return the state with the times of the round that has ended and of the averaging before it, and with its probe.

    Parameters
    ----------
    state : GradientRetentionState
        As the round began.
    observation : Observation
        At its end.
    """
    measured = observation.measured
    if measured is None:
        return state
    changes = _times(state, measured, observation.step - state.step) | _turn(state, measured)
    return _probed(replace(state, **changes), measured)


def opened(state: Known, step: int, lengths: tuple[int, int] = FIRST) -> Known:
    """Return the state of a round that begins before D/Y is known; the first one ends with a probe.

    Parameters
    ----------
    state : GradientRetentionState
        Until now.
    step : int
        Local steps done.
    lengths : tuple of int, optional
        Local steps of the first round and of those after it.
    """
    ended = step - state.step
    if not state.opened:
        return replace(state, step=step, opened=True, tau=lengths[0], probe=True)
    age = 0.0 if state.probe and ended > 1 else None if state.age is None else state.age + ended
    return replace(state, step=step, ended=ended, tau=lengths[1], probe=age is None, age=age)


def begun(state: Known, step: int, tau: int, *, delay_ratio: float, ended: int) -> Known:
    """Return the state of a round of about tau steps, and whether a probe ends it; where tau is 1 that takes two.

    Parameters
    ----------
    state : GradientRetentionState
        Until now.
    step : int
        Local steps done.
    tau : int
        Of the round.
    delay_ratio : float
        n.
    ended : int
        Steps of the round before.
    """
    n, straggler = delay_ratio, state.straggler or 0.0
    probed = state.probe and ended > 1
    age = 0.0 if probed else None if state.age is None else state.age + ended + n
    due = age is None or age + tau + n >= 1 / PROBE_SHARE
    if tau == 1 and due:
        tau = min(2, overhead_cap(n, straggler=straggler))
    return replace(state, step=step, ended=ended, started=True, tau=tau, age=age, probe=tau > 1 and due)


def _times(state: Known, seen: Measured, ended: int) -> dict[str, Any]:
    """Return the state's times with those of the local steps of the round of ``ended`` steps, and of the averaging
    before it."""
    steps_s, s, delays_s = state.steps_s, state.straggler, state.delays_s
    if seen.compute_s and ended > 0:
        steps_s = (*steps_s, seen.compute_s / ended)[-WINDOW:]
        excess = (seen.wait_s or 0.0) / median(steps_s) / math.sqrt(ended)
        s = excess if s is None else _mixed(STRAGGLER_MEMORY, s, excess)
    if seen.delay_s is not None:
        delays_s = (*delays_s, seen.delay_s)[-WINDOW:]
    return {"steps_s": steps_s, "straggler": s, "delays_s": delays_s}


def _probed(state: Known, seen: Measured) -> Known:
    """Take in the probe, which followed the round of ``state.ended`` steps."""
    if seen.lost is None or seen.fresh is None or state.ended < 2:
        return state
    lost = _mixed(MEMORY, state.lost, seen.lost)
    fresh = _mixed(MEMORY, state.fresh, (state.ended - 1) * seen.fresh)
    state = replace(state, lost=lost, fresh=fresh, loss_jump=seen.loss_jump)
    if seen.bend2 is None or seen.curve is None:
        return state
    bend2, curve = _mixed(TURN_MEMORY, state.bend2, seen.bend2), _mixed(TURN_MEMORY, state.curve, seen.curve)
    return replace(state, bend2=bend2, curve=curve)


def _turn(state: Known, seen: Measured) -> dict[str, Any]:
    """Return what the state knows of the mean's turns with the one after the round of ``state.ended`` steps."""
    if seen.turn is None:
        return {}
    turn, steps = seen.turn, float(state.ended)
    if state.turn is not None and state.bent:
        turn, steps = _mixed(TURN_MEMORY, state.turn, turn), _mixed(TURN_MEMORY, state.turning, steps)
    return {"turn": turn, "turning": steps, "workers": seen.workers}


def _mixed(memory: float, known: float, new: float) -> float:
    return memory * known + (1 - memory) * new


def _next_period(state: GradientRetentionState, n: float, overlapped: bool) -> int:
    """Return tau of the coming round."""
    s = state.straggler or 0.0
    if overlapped:
        if not state.started:  # a decline of the first steps says little about later ones
            return min(LARGEST, max(1, math.ceil(n)))
        cap = max(math.ceil(n), overhead_cap(0.0, straggler=s))
        best = best_integer(delay_ratio=n, decline=state.decline, straggler=s, overlapped=True)
        return toward(state, min(best, cap))
    return min(toward(state, best_integer(delay_ratio=n, decline=state.believed_decline, straggler=s)), state.steady)


def toward(state: GradientRetentionState, tau: int) -> int:
    """Return the period on the way to tau, by a factor of two at most; the first one may be shorter.

    Parameters
    ----------
    state : GradientRetentionState
        Until now.
    tau : int
        What would be best.
    """
    least = -(-state.tau // 2) if state.started else 1
    return max(1, least, min(tau, max(2, 2 * state.tau), LARGEST))


def overhead_cap(delay_ratio: float, *, straggler: float = 0.0) -> int:
    """Return the least t at which (n + s sqrt(t))/t <= 1/9, 512 if there is none below: more can gain a ninth at most.

    Parameters
    ----------
    delay_ratio : float
        n.
    straggler : float, optional
        s.

    Raises
    ------
    ValueError
        Unless n, s are finite and >= 0.
    """
    n, s = nonnegative("delay_ratio", delay_ratio), nonnegative("straggler", straggler)
    half = OVERHEAD * s / 2
    root = half + math.sqrt(half * half + OVERHEAD * n)
    t = max(1, math.floor(min(root, LARGEST) ** 2) - 1)  # the least real one is root^2; roundings may move a whole one
    while t < LARGEST and OVERHEAD * (n + s * math.sqrt(t)) > t:
        t += 1
    return min(t, LARGEST)


def best_integer(*, delay_ratio: float, decline: float, straggler: float = 0.0, overlapped: bool = False) -> int:
    """Return the t <= 512 that maximises P(t)/(t + n + s sqrt(t)), P(t) the sum of max(0, 1 - a (k - 1)) over k <= t.

    The first of equal ones; with averages in flight, of those that maximise P(t)/max(t + s sqrt(t), n).

    Raises
    ------
    ValueError
        Unless n, a, s are finite and >= 0.
    """
    n, s = nonnegative("delay_ratio", delay_ratio), nonnegative("straggler", straggler)
    a = nonnegative("decline", decline)
    if a == 0 and not overlapped and n + s > NOTICED:
        return LARGEST  # t/(t + n + s sqrt(t)) rises throughout
    progress = np.cumsum(np.maximum(1 - a * _BEFORE, 0.0)) if a else _STEPS
    waited = s * _ROOTS if s else 0.0
    rounds = np.maximum(_STEPS + waited, n) if overlapped else _STEPS + n + waited
    return 1 + int((progress / rounds).argmax())


def best_period(*, delay_ratio: float, decline: float) -> float:
    """Return -n + sqrt(n^2 + n + 2 n/a), the real number of local steps that is best without stragglers.

    Evaluated as 2 b/(a (1 + z)), b = 1 + a/2, z = sqrt(1 + 2 b/(n a)), which cancels nothing.

    Raises
    ------
    ValueError
        Unless n, a > 0.
    """
    n, a = positive("delay_ratio", delay_ratio), positive("decline", decline)
    b = 1 + a / 2
    return 2 * b / (a * (1 + math.sqrt(1 + 2 * b / n / a)))
