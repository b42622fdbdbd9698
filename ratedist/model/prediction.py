"""What a pilot foretells of training on a cluster: seconds and progress of a step, against synchronous training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

from bounds import Interval
from bounds.claims import Contractive, Unbiased
from bounds.estimate import Estimate

from .choosing import WAYS, Way
from .compressors import operator_of
from .hidden_progress import PRIOR
from .pilot_rounds import SYNCHRONOUS, RoundTrials, with_unseen
from .planned_run import backward_not_said
from .prediction_records import Foretold, Prediction, Sent, rhythm_fields
from .progress import (
    Averaging,
    LocalPath,
    RoundRows,
    kept_by_staleness,
    kept_with_errors,
)
from .rhythm import Rhythm
from .step_seconds import StepSeconds
from .travel import Travel
from .worst_case import worst_case

OPTIMIZER = (
    "momentum, adaptive rates, and learning rates that change are not in the model, which is that of plain steps on "
    "workers with the same data"
)
HORIZON = "how progress changes later in training: the pilot has seen its own stretch of the path only"
LOCAL = (
    "what local steps cost where gradients are not linear: nothing on quadratics; the lower end of progress is that of "
    "a synchronous run whose gradient would stay what it is at the start of a round"
)
STALE = "the lower end of progress in flight: the pilot has not looked at gradients that are {old} steps old"
HIDDEN = "progress: the noise of the pilot hides the gradient; take more moments, or larger batches"
UNTRIED = (
    "progress with error feedback: no trial rounds show it; make a pilot with rounds, or with more local steps in them"
)
CURVED = "how errors of messages lie to the curvature: taken to be curved as the messages are"
BEYOND = "what is left of a gradient beyond {last} steps, which was not looked at: taken as falling on as before"
LATE = "error feedback: what its residuals owe arrives {lag:.3g} steps late, once; give steps, and it is counted"
CHANGED = (
    "progress of an exchange, or a number of workers, that was not tried: that of rounds of {workers} workers who "
    "gather, with the cost of messages times what the formulas say the change makes"
)
SHRUNK = (
    "progress in {hidden} of {stretches} stretches of training: noise of the trial rounds hides it, and it is taken to "
    "be a synchronous step's within {prior:.0%}, as far as the rounds do not say otherwise: take more rounds, or "
    "larger batches"
)
BETWEEN = "progress of a number of local steps that was not tried: taken between those beside it that were"
CUT = "errors of messages of a part of the model: taken to be those of messages of the whole"
CONVEX = (
    "progress where the loss curves downwards along the path, as here: errors of messages are taken to cost nothing"
)


@dataclass(frozen=True, eq=False)
class Predictor:
    """What a path and a cluster foretell of every choice; what several choices share is computed once.

    Parameters
    ----------
    path : LocalPath
        What a worker has measured.
    clock : StepSeconds
        Seconds on the cluster.
    trials : RoundTrials or None, optional
        What rounds have gained that were tried; they go before the formulas.
    steps : int or None, optional
        Synchronous steps of the training, for what arrives late once.
    """

    path: LocalPath
    clock: StepSeconds
    trials: RoundTrials | None = None
    steps: int | None = None

    def predict(self, sent: Sent | None, exchange: Any, rhythm: Rhythm) -> Prediction:
        """Return what is foretold of one choice, with the worst case beside it.

        Parameters
        ----------
        sent : Sent or None
            The operator; None without compression.
        exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}
            How compressed messages travel.
        rhythm : Rhythm
            When the workers average.

        Raises
        ------
        ValueError
            For bad arguments, more local steps than were looked at, and operators without a model.
        """
        if exchange not in WAYS[1:]:
            raise ValueError(f"exchange must be one of {', '.join(WAYS[1:])}; got {exchange!r}: choose one of them")
        way, clock = cast(Way, exchange), self.clock
        foretold = self.foretell(sent, way, rhythm)
        operator, codec = (None, None) if sent is None else (operator_of(sent.operator), sent.codec)
        every = rhythm.oldest == 1
        certified = worst_case(operator, codec, clock.d, clock.cluster, way, at_every_step=every)
        return Prediction(
            foretold.seconds,
            foretold.progress,
            foretold.time_ratio,
            foretold.limits,
            foretold.unknown,
            "" if sent is None else sent.operator,
            foretold.run.way.exchange,
            **rhythm_fields(rhythm),
            certified_time_ratio=certified[0],
            certified=certified[1],
            assumed=(*clock.cluster.assumed(), *backward_not_said(clock.cluster)),
        )

    def foretell(self, sent: Sent | None, exchange: Way, rhythm: Rhythm) -> Foretold:
        """Return the same without the worst case, which takes longer than all the rest.

        Parameters
        ----------
        sent : Sent or None
            The operator; None without compression.
        exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}
            How compressed messages travel.
        rhythm : Rhythm
            When the workers average, after at most as many local steps as were looked at.

        Raises
        ------
        ValueError
            For more local steps, operators without a model, and parts without a coordinate for every worker.
        """
        clock, messages = self.clock, rhythm.messages
        if messages > 1 and messages > clock.d // clock.cluster.workers:
            raise ValueError(
                f"fragments and buckets need a coordinate for every worker; got {messages} of d = {clock.d} for "
                f"{clock.cluster.workers} workers: take fewer"
            )
        way = clock.travel(sent, exchange)
        progress, unknown = self._progress(sent, way, rhythm)
        if sent is not None and messages > 1:
            unknown = (*unknown, CUT)
        run = clock.run(sent, way, rhythm)
        seconds, ratio = clock.of(run)
        shares = run.shares()
        limit = "noise" if self._noisy(sent, way, rhythm.tau) else max(shares, key=shares.__getitem__)
        time_ratio = None if progress is None else _over(ratio, progress)
        return Foretold(seconds, progress, time_ratio, limit, (*unknown, *clock.unknown(run)), run)

    # -- progress ----------------------------------------------------------------------------------------
    def _progress(self, sent: Sent | None, way: Travel, rhythm: Rhythm) -> tuple[Estimate | None, tuple[str, ...]]:
        """Return progress of a step over a synchronous one's, by trial rounds where there are any, and what is not
        known of it.
        """
        tau = rhythm.tau
        tried = self._tried(sent, way, tau)
        kept, hidden = self._kept(sent, way, tau) if tried is None else tried
        by_formula = (OPTIMIZER, HORIZON) if tried is None else (HORIZON,)
        if tried is not None and not rhythm.in_flight:
            return kept, (*by_formula, *hidden)
        progress, stale = self._stale(kept, rhythm, self._averaging(way))
        return progress, (*by_formula, *hidden, *stale)

    @cached_property
    def _tried(self) -> Callable[[Sent | None, Travel, int], tuple[Estimate, tuple[str, ...]] | None]:
        """Return what trial rounds tell, with what the formulas say of another exchange or number of workers."""

        def tried(sent: Sent | None, way: Travel, tau: int) -> tuple[Estimate, tuple[str, ...]] | None:
            trials, name = self.trials, "" if sent is None else sent.operator
            kept = None if trials is None else trials.kept(name, tau, self.path.level)
            if trials is None or kept is None:
                return None
            unknown: tuple[str, ...] = () if tau in trials.taus(name) else (BETWEEN,)
            unknown += self._shrunk(name, tau)
            averaging, gathered = self._averaging(way), Averaging(trials.workers, trials.workers)
            if averaging != gathered:
                unknown = (CHANGED.format(workers=trials.workers), *unknown)
                plain = trials.kept("", tau, self.path.level)
                kept = _with_errors_of(kept, plain, self._errors(sent, tau, averaging, gathered))
            if isinstance(way.claim, Contractive):
                kept, late = _delayed(kept, trials.lag(name) * tau, self.steps)
                unknown += late
            return (kept if (name, tau) == SYNCHRONOUS else with_unseen(kept)), unknown

        return cache(tried)

    def _shrunk(self, name: str, tau: int) -> tuple[str, ...]:
        """Return what is not known of progress that noise hides."""
        trials = cast(RoundTrials, self.trials)
        tried = trials.taus(name)
        beside = {max(each for each in tried if each <= tau), min(each for each in tried if each >= tau)}
        hidden = max(trials.hidden(name, each) for each in beside)
        return (SHRUNK.format(hidden=hidden, stretches=trials.stretches, prior=PRIOR),) if hidden else ()

    def _errors(self, sent: Sent | None, tau: int, averaging: Averaging, gathered: Averaging) -> float:
        """Return what messages cost in one averaging over what they cost in another, by the formulas."""
        rows = self._rows(tau)
        omega, signal = 0.0 if sent is None else sent.omega.value, rows.signal.value
        if not omega or not math.isfinite(signal):
            return 1.0
        (_, to), (_, of) = (each.sides(rows, signal, omega) for each in (averaging, gathered))
        return float(to.mean() / of.mean()) if of.mean() > 0 else 1.0

    @cached_property
    def _rows(self) -> Callable[[int], RoundRows]:
        return cache(self.path.of_round)

    @cached_property
    def _kept(self) -> Callable[[Sent | None, Travel, int], tuple[Estimate | None, tuple[str, ...]]]:
        """Return what the messages leave of a synchronous round's progress, and what is not known of that."""

        def kept(sent: Sent | None, way: Travel, tau: int) -> tuple[Estimate | None, tuple[str, ...]]:
            rows, whose = self._rows(tau), self._averaging(way)
            convex = (CONVEX,) if rows.bends.mean() < 0 else ()
            if sent is None:
                return Estimate(1.0, Interval(1.0, 1.0), self.path.level), convex
            if isinstance(way.claim, Unbiased):
                share, about = kept_with_errors(rows, sent.omega, whose), CURVED
            elif isinstance(way.claim, Contractive) and sent.residual is not None:
                return None, (*convex, UNTRIED)
            else:
                raise ValueError(
                    "a prediction needs an unbiased operator, or error feedback that the pilot has tried; got "
                    f"{sent.operator} without either: make a pilot with another operator"
                )
            return share, (*convex, about, *(() if share else (HIDDEN,)))

        return cache(kept)

    def _stale(
        self, kept: Estimate | None, rhythm: Rhythm, whose: Averaging
    ) -> tuple[Estimate | None, tuple[str, ...]]:
        """Return the same with a lower end for old gradients, and what is not known of that."""
        last, oldest = self.path.taus[-1], rhythm.oldest
        beyond = (BEYOND.format(last=last),) if 2 * rhythm.tau - 1 > last else ()
        if kept is None or oldest == 1:
            return kept, beyond
        old = () if oldest <= last else (STALE.format(old=oldest),)
        least = 0.0 if old else float(self._aged(oldest, whose).interval.lo)
        return Estimate(kept.value, Interval(float(kept.interval.lo) * least, kept.interval.hi), kept.level), (
            *beyond,
            LOCAL,
            *old,
        )

    @cached_property
    def _aged(self) -> Callable[[int, Averaging], Estimate]:
        return cache(lambda old, whose: kept_by_staleness(self._rows(old), self._rows(1), old, whose))

    def _noisy(self, sent: Sent | None, way: Travel, tau: int) -> bool:
        """Tell whether noise and errors take more than half of what a round without them would gain."""
        rows, omega = self._rows(tau), 0.0 if sent is None else sent.omega.value
        signal = rows.signal.value
        if not math.isfinite(signal):
            return True
        gained, lost = self._averaging(way).sides(rows, signal, omega)
        return bool(2 * (gained - lost).mean() < (2 - signal) * rows.falls.mean())

    def _averaging(self, way: Travel) -> Averaging:
        """Return whose messages are averaged, and how often."""
        workers, nodes = self.clock.cluster.workers, self.clock.cluster.nodes or 1
        senders = nodes if way.exchange in ("node_gather", "node_two_shot") else workers
        cast_again = way.exchange == "sum" and isinstance(way.claim, Unbiased) and way.claim.omega > 0
        return Averaging(workers, senders, way.second is not None or cast_again)


def _with_errors_of(kept: Estimate, plain: Estimate | None, factor: float) -> Estimate:
    """Return progress where what messages cost of that without compression is so many times larger."""
    if plain is None or factor == 1:
        return kept
    cost = factor * (plain.value - kept.value)
    value = max(plain.value - max(cost, 0.0), 0.0)
    ends = (plain.value - factor * (plain.value - float(end)) for end in (kept.interval.lo, kept.interval.hi))
    low, high = (max(end, 0.0) for end in ends)
    return Estimate(value, Interval(min(low, value), max(high, value)), kept.level)


def _delayed(kept: Estimate, late: float, steps: int | None) -> tuple[Estimate, tuple[str, ...]]:
    """Return progress with so many steps that come once on top of the training's."""
    if steps is None or not late:
        return kept, (LATE.format(lag=late),)

    def slowed(progress: float) -> float:
        return 1 / (1 / progress + late / steps) if progress > 0 else 0.0

    low, high = slowed(float(kept.interval.lo)), slowed(float(kept.interval.hi))
    return Estimate(slowed(kept.value), Interval(low, high), kept.level), ()


def _over(seconds: Estimate, progress: Estimate) -> Estimate:
    """Return the quotient of two positive estimates."""
    low, high = float(progress.interval.lo), float(progress.interval.hi)
    value = seconds.value / progress.value if progress.value > 0 else math.inf
    top = float(seconds.interval.hi) / low if low > 0 else math.inf
    return Estimate(
        value, Interval(min(float(seconds.interval.lo) / high, value) if high else value, top), progress.level
    )
