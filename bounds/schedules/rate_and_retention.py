"""Gradient retention with a choice of how to average: tau, operator and exchange from the same measurements.

Model.  A round of tau steps by candidate c takes tau + n_c + s sqrt(tau) units of Y, n_c = D_c/Y, and makes
kept_c P(tau), P(tau) the progress that the decline leaves (``gradient_retention``).  Whatever unbiased mean u of the
workers' movements is taken, a quadratic gains ``<g, D> - E u' H u/2``: what ends as an error of relative size phi makes
the second term 1 + phi times as large.  At the learning rate that is best for the moment both terms are in balance,
and a rate adapted to the noise would keep 1/(1 + phi) of the gain.  Rates in use are smaller, and less is lost:
kept_c = 1/(1 + beta phi_c), beta = 1/5, fixed on the design half of ``docs/benchmarks/choosing.py``.
phi = omega R/m gathered, where R = mean ``|Delta_i|^2`` over ``|mean|^2``, from 1, where all move alike, to m, where
all that moves is noise; in two shots the mean is compressed once more.

The decline is the one that ``gradient_retention`` believes.

Measured: omega and R from the messages themselves, D_c where c was tried, else by the line through those that were
(``candidate``); omega not tried yet, and coding seconds, as the candidate says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from .candidate import Candidate, predicted_delays
from .gradient_retention import (
    LARGEST,
    MEMORY,
    WINDOW,
    GradientRetentionState,
    begun,
    best_integer,
    opened,
    taken_in,
    toward,
)
from .measured import Measured
from .schedule import Observation, Schedule

BALANCE = 0.2  # beta; 1 at the learning rate that is best for the moment
STEADY_NOISE = 1 / 16  # phi at most, where progress has ended on a bent loss: errors add phi to the floor
SWITCH = 1.02  # by what another candidate must be better
T = TypeVar("T")
APART = 1.5  # lengths of the two messages of the opening, whose times tell latency from bandwidth


@dataclass(frozen=True)
class RateAndRetentionState(GradientRetentionState):
    """What is known of every candidate beside what ``GradientRetention`` knows, whose n is the chosen one's.

    Parameters
    ----------
    candidates : tuple of Candidate, optional
        All.
    choice : int, optional
        Index of the candidate that ends the coming round.
    ended_by : int or None, optional
        Index of the candidate that ended the last round; None before the first.
    windows_s : tuple of tuple of float, seconds, optional
        Measured D of the last rounds, by candidate.
    errors : tuple of float, optional
        omega as known, by candidate.
    tried : tuple of bool, optional
        Whether that was measured in this run.
    spread : float or None, optional
        R; None before it was measured.
    """

    candidates: tuple[Candidate, ...] = ()
    choice: int = 0
    ended_by: int | None = None
    windows_s: tuple[tuple[float, ...], ...] = ()
    errors: tuple[float, ...] = ()
    tried: tuple[bool, ...] = ()
    spread: float | None = None

    def beginning_with(self, candidates: Sequence[Candidate]) -> RateAndRetentionState:
        """Return the state where the model has changed: of the candidates nothing is known any more.

        Parameters
        ----------
        candidates : sequence of Candidate
            As many as before.
        """
        names = ("candidates", "choice", "ended_by", "windows_s", "errors", "tried", "spread")
        new = among(candidates)
        return replace(self, **{name: getattr(new, name) for name in names})

    def kept(self, senders: int) -> list[float]:
        """Return the share of a round's progress that every candidate's errors leave.

        Parameters
        ----------
        senders : int
            That compress.
        """
        spread = float(senders) if self.spread is None else self.spread
        pairs = zip(self.candidates, self.errors, strict=True)
        noises = [c.noise(error, spread=spread, senders=senders) for c, error in pairs]
        if self.steady < LARGEST:
            most = max(STEADY_NOISE, min(noises))
            return [1 / (1 + noise) if noise <= most else 0.0 for noise in noises]
        return [1 / (1 + BALANCE * noise) for noise in noises]


@final
@dataclass(frozen=True)
class RateAndRetention(Schedule):
    """The candidate and the tau of the largest progress per second, in ``GradientRetention``'s steps.

    The rounds of the opening end with the two shortest messages, of lengths 1.5 times apart; then what is measured
    decides.  Another candidate must be better by 2 %.  Needs ``Observation.measured``; whoever averages goes by the
    state's ``choice``.  Its limits are those of ``GradientRetention``.  Error feedback is no candidate, because no
    number measured here shows the effect of a residual on progress.  Biased operators without it are no candidates
    either, because their error does not average out.

    Parameters
    ----------
    candidates : tuple of Candidate, optional
        At least one.
    senders : int, optional
        That compress.

    Raises
    ------
    ValueError
        For fewer than one sender.
    """

    candidates: tuple[Candidate, ...] = field(default=(Candidate("", 1.0),), repr=False)
    senders: int = field(default=1, repr=False)

    measures: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.candidates or self.senders < 1:
            raise ValueError(f"give at least one candidate and one sender; got {self.candidates} and {self.senders}")

    def init(self) -> RateAndRetentionState:
        """Nothing measured: the shortest message first."""
        return among(self.candidates)

    def __call__(self, state: RateAndRetentionState, observation: Observation) -> tuple[RateAndRetentionState, int]:
        """Take in what was measured, and choose how the coming round ends, and after how many steps."""
        ended, measured = observation.step - state.step, observation.measured
        if measured is not None:
            state = _compressed(_timed(state, measured), measured, self.senders)
            state = taken_in(state, replace(observation, measured=replace(measured, delay_s=None)))
        ended_by = state.choice if ended > 0 else None
        delays_s = predicted_delays(state.candidates, state.windows_s)
        if not state.steps_s or all(seconds is None for seconds in delays_s):
            choice = _second(state.candidates) if ended_by is not None else state.choice
            state = replace(opened(state, observation.step), choice=choice, ended_by=ended_by)
        else:
            state = self._chosen(replace(state, ended_by=ended_by), observation.step, ended, delays_s)
        return state, state.within(observation)

    def _chosen(
        self, state: RateAndRetentionState, step: int, ended: int, delays_s: Sequence[float | None]
    ) -> RateAndRetentionState:
        step_s, straggler = float(np.median(state.steps_s)), state.straggler or 0.0
        plans = {
            i: _plan(seconds / step_s, state.believed_decline, straggler, state.steady)
            for i, seconds in enumerate(delays_s)
            if seconds is not None
        }
        kept = state.kept(self.senders)
        rates = {i: kept[i] * rate for i, (_, rate) in plans.items()}
        best = max(rates, key=lambda i: rates[i])
        if state.choice in rates and rates[best] < SWITCH * rates[state.choice]:
            best = state.choice
        seconds = delays_s[best]
        assert seconds is not None  # else it has no plan
        n, (tau, _) = seconds / step_s, plans[best]
        tau = min(toward(state, tau), state.steady)
        window = state.windows_s[best] or (seconds,)
        state = replace(state, choice=best, delays_s=window)
        return begun(state, step, tau, delay_ratio=n, ended=ended)

    def restore(self, data: Mapping[str, Any]) -> RateAndRetentionState:
        """Return the state from what ``to_dict`` gave, also through JSON."""
        tuples = {name: tuple(data[name]) for name in ("steps_s", "delays_s", "errors", "tried") if name in data}
        nested = {
            "candidates": tuple(map(Candidate.restored, data.get("candidates", ()))),
            "windows_s": tuple(map(tuple, data.get("windows_s", ()))),
        }
        return RateAndRetentionState(**{**data, **tuples, **nested})


def among(candidates: Sequence[Candidate]) -> RateAndRetentionState:
    """Return the state before the first round with these candidates.

    Parameters
    ----------
    candidates : sequence of Candidate
        At least one.
    """
    return RateAndRetentionState(
        candidates=tuple(candidates),
        choice=min(range(len(candidates)), key=lambda i: candidates[i].link_bytes),
        windows_s=((),) * len(candidates),
        errors=tuple(c.error for c in candidates),
        tried=(False,) * len(candidates),
    )


def _second(candidates: Sequence[Candidate]) -> int:
    """Return the candidate of the second round: the shortest message that is 1.5 times as long as the shortest."""
    order = sorted(range(len(candidates)), key=lambda i: candidates[i].link_bytes)
    shortest = candidates[order[0]].link_bytes
    return next((i for i in order if candidates[i].link_bytes >= APART * shortest), order[-1])


def _plan(n: float, decline: float, straggler: float, steady: int) -> tuple[int, float]:
    """Return (tau, its progress per Y) of a candidate without errors."""
    tau = min(best_integer(delay_ratio=n, decline=decline, straggler=straggler), steady)
    progress = sum(max(1 - decline * k, 0.0) for k in range(tau))
    return tau, progress / (tau + n + straggler * math.sqrt(tau))


def _timed(state: RateAndRetentionState, seen: Measured) -> RateAndRetentionState:
    """Take in the seconds of the averaging before, which was the one of ``ended_by``."""
    if seen.delay_s is None or state.ended_by is None:
        return state
    window = (*state.windows_s[state.ended_by], seen.delay_s)[-WINDOW:]
    return replace(state, windows_s=_with(state.windows_s, state.ended_by, window))


def _compressed(state: RateAndRetentionState, seen: Measured, senders: int) -> RateAndRetentionState:
    """Take in what that averaging did to the movements."""
    i = state.ended_by
    if i is None or not seen.norm2 or seen.error2 is None or seen.mean2 is None:
        return state
    omega = seen.error2 / seen.norm2
    error = MEMORY * state.errors[i] + (1 - MEMORY) * omega if state.tried[i] else omega
    errors, tried = _with(state.errors, i, error), _with(state.tried, i, True)
    once2 = seen.mean2 / (1 + omega) if state.candidates[i].twice else seen.mean2
    spread = max(1.0, seen.norm2 / max(once2 - seen.error2 / senders, seen.norm2 / senders))
    if state.spread is not None:
        spread = MEMORY * state.spread + (1 - MEMORY) * spread
    return replace(state, errors=errors, tried=tried, spread=spread)


def _with(values: tuple[T, ...], i: int, value: T) -> tuple[T, ...]:
    return (*values[:i], value, *values[i + 1 :])
