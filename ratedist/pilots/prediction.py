"""Predictions of a pilot: seconds and progress of a step on a cluster, against synchronous training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

from bounds import Interval, plan
from bounds.claims import Contractive, Unbiased
from bounds.estimate import Estimate
from bounds.frame import frame
from bounds.runtime import Empirical

from ..cluster.cluster import Cluster
from ..cluster.codec import Codec
from ..cluster.compressors import operator_of
from ..cluster.travel import DENSE_BITS, Travel, gathered_by_nodes, in_two_shots, in_two_shots_of_nodes, travel
from ..plans.choosing import WAYS, Asked, Way, averaging, choice_of
from ..plans.problem import LEFT_OUT, LEFT_OUT_OF_ROUNDS, problem_of
from ..plans.ranking import exchange_text, operator_text
from ..plans.run import BACKWARD_SHARE, SHARES, PlannedRun, Rhythm, backward_not_said, buckets_of
from ..records import Answer, Answered, plain
from .progress import (
    PRIOR,
    SYNCHRONOUS,
    Averaging,
    LocalPath,
    RoundRows,
    RoundTrials,
    kept_by_staleness,
    kept_with_errors,
    with_unseen,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from operators import Operator


# -- predictions ---------------------------------------------------------------------------------------

QUANTITIES = ("seconds_per_step", "progress_per_step", "time_ratio")


def rhythm_fields(rhythm: Rhythm) -> dict[str, Any]:
    """Return what records of a choice say of when it averages.

    Parameters
    ----------
    rhythm : Rhythm
        Of the choice.
    """
    return vars(rhythm) | {"overlap": rhythm.in_flight > 0}


@dataclass(frozen=True)
class Sent:
    """One operator, as a pilot has measured it.

    Parameters
    ----------
    operator : str
        Its specification.
    omega : Estimate
        Relative squared error of a message.
    bits : float, bits
        A coordinate.
    residual : float or None
        Largest norm of error feedback's residual over that of a gradient; None where it was not tried.
    codec : Codec
        Seconds a coordinate.
    """

    operator: str
    omega: Estimate
    bits: float
    residual: float | None
    codec: Codec


@dataclass(frozen=True)
class Prediction(Answered):
    """Seconds and progress of a step, and the time to a loss over that of synchronous uncompressed training.

    Parameters
    ----------
    seconds_per_step : Estimate
        Of one local step with its share of an averaging, seconds.
    progress_per_step : Estimate or None
        Expected fall of the loss over that of a synchronous uncompressed step; None where noise hides it.
    time_ratio : Estimate or None
        Seconds to the same fall of the loss over those of synchronous uncompressed training; below 1 is faster.
    limits : {"compute", "stragglers", "coding", "latency", "bandwidth", "noise"}
        What takes most of a step; "noise" where most of what a gradient would gain is lost to noise and errors.
    unknown : tuple of str
        What the pilot does not tell, in sentences; an interval holds what is in none of them.
    operator : str
        Its specification; "" without compression.
    exchange : str
        How messages travel.
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the workers go on.
    parts : int
        Fragments of the model, sent one after the other.
    in_flight : int
        Steps made while a message travels.
    buckets : int
        Messages of a gradient, all but the last sent during the backward pass.
    certified_time_ratio : float or None
        The worst case beside the prediction: the same ratio as a theorem guarantees it for strongly convex problems of
        condition number 100; None where there is none.
    certified : str
        The theorem and its setting in a sentence, or why there is none.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    left_out : str, optional
        What the numbers leave out, in words.
    """

    seconds_per_step: Estimate
    progress_per_step: Estimate | None
    time_ratio: Estimate | None
    limits: str
    unknown: tuple[str, ...]
    operator: str
    exchange: str
    tau: int
    overlap: bool
    parts: int
    in_flight: int
    buckets: int
    certified_time_ratio: float | None
    certified: str
    assumed: tuple[str, ...] = ()
    left_out: str = LEFT_OUT

    def answer(self) -> Answer:
        """Return the predicted time to a loss against synchronous uncompressed training."""
        rhythm = Rhythm(self.tau, self.in_flight, self.parts, self.buckets).in_words().removeprefix(", ")
        sent = f"{operator_text(self.operator or 'binary32')}, {exchange_text(self.exchange)}"
        ratio = self.time_ratio
        if ratio is None:
            verdict = "Time unknown: the noise of the pilot hides the progress; take more moments."
        else:
            verdict = f"Time to a loss: {ratio.value:.3g} times that of synchronous training ({_ends(ratio)})."
        worst = self.certified_time_ratio
        limit = SHARES.get(self.limits, self.limits)
        covered = "no theorem covers this choice"
        if worst is not None:
            covered = f"plain SGD takes at most {worst:.3g} times the time without compression"
        facts = {
            "training": f"{sent}, {rhythm or 'averaging every step'}",
            "proved": f"no, predicted from one pilot; {covered}",
            "a step": f"{self.seconds_per_step.value:.4g} s ({_ends(self.seconds_per_step)}), mostly {limit}",
            "progress": "unknown"
            if self.progress_per_step is None
            else (f"{self.progress_per_step.value:.4g} of a synchronous step's ({_ends(self.progress_per_step)})"),
            "synchronous": "averages uncompressed gradients after every step",
        }
        evidence = {
            "status": "predicted from one pilot, not proved",
            "worst case": self.certified,
            "not known": self.unknown,
        }
        return Answer(verdict, facts, left_out=self.left_out, assumed=self.assumed, evidence=evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def to_frame(self) -> DataFrame:
        """Return one row a quantity: value, ends of its interval, level."""
        return frame(
            [
                {
                    "quantity": name,
                    "value": None if estimate is None else estimate.value,
                    "low": None if estimate is None else float(estimate.interval.lo),
                    "high": None if estimate is None else float(estimate.interval.hi),
                    "level": None if estimate is None else estimate.level,
                }
                for name in QUANTITIES
                for estimate in (getattr(self, name),)
            ]
        )


def _ends(estimate: Estimate) -> str:
    low, high = float(estimate.interval.lo), float(estimate.interval.hi)
    return f"{100 * estimate.level:.3g} %: {low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class Forecast:
    """What is predicted of one choice; the theorems' worst case is not looked at.

    Parameters
    ----------
    seconds : Estimate
        Of one local step with its share of an averaging, seconds.
    progress : Estimate or None
        Over that of a synchronous uncompressed step; None where noise hides it.
    time_ratio : Estimate or None
        Over synchronous uncompressed training.
    limits : str
        What takes most of a step.
    unknown : tuple of str
        What the pilot does not tell.
    run : PlannedRun
        Seconds of one round, as a function of the cluster.
    """

    seconds: Estimate
    progress: Estimate | None
    time_ratio: Estimate | None
    limits: str
    unknown: tuple[str, ...]
    run: PlannedRun


# -- seconds of a step ---------------------------------------------------------------------------------

LEAST_SCALE = 1e-9
FIXED = "seconds of links and of coding are taken as given, without an interval"
STEPS = "how the cluster's law of a step was found: its seconds have no interval"
TAILS = "steps slower than the slowest of the {samples} in the pilot, of which {workers} workers would see some"
BACKWARD = f"how long the backward pass takes: taken to be {BACKWARD_SHARE:.2f} of a step"
BUCKETS = "when the buckets of a gradient are ready: taken to be equal ones, one after the other"


@dataclass(frozen=True, eq=False)
class StepSeconds:
    """What steps on a cluster take, against synchronous uncompressed training on it.

    Parameters
    ----------
    step : Estimate
        Mean seconds of a step in the pilot.
    cluster : Cluster
        Workers and links.
    d : int
        Trained parameters.
    level : float
        Confidence of the intervals.
    exchanges : mapping of (str, str) to Estimate, optional
        Seconds of whole averagings by operator and exchange, where they were timed on this cluster.
    baseline : Rhythm or None, optional
        When synchronous training averages; None: waiting, or in DistributedDataParallel's buckets if that is faster.
    """

    step: Estimate
    cluster: Cluster
    d: int
    level: float
    exchanges: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    baseline: Rhythm | None = None

    @cached_property
    def travel(self) -> Callable[[Sent | None, Way], Travel]:
        """The travel of an operator's messages, whole, on a way."""
        return cache(lambda sent, exchange: _travel_of(sent, exchange, self.d, self.cluster))

    def run(self, sent: Sent | None, way: Travel, rhythm: Rhythm) -> PlannedRun:
        """Return one round.

        Parameters
        ----------
        sent : Sent or None
            The operator; None without compression.
        way : Travel
            Of its whole messages.
        rhythm : Rhythm
            When they average.
        """
        codec = None if sent is None else sent.codec
        message = way if rhythm.messages == 1 else way.cut(rhythm.messages)
        spent = averaging(message, codec, codec, self.d, self.cluster)
        coding_s = spent["encode_s"] + spent["decode_s"]
        timed = self.exchanges.get(("" if sent is None else sent.operator, way.exchange))
        links_s = way.communicate_s(self.cluster)
        if timed is None or links_s <= 0:
            return PlannedRun(message, self.cluster, rounds=1, rhythm=rhythm, coding_s=coding_s)
        coding_s = min(coding_s, timed.value)
        scale = (timed.value - coding_s) / links_s
        return PlannedRun(message, self.cluster, rounds=1, rhythm=rhythm, coding_s=coding_s, link_scale=scale)

    def of(self, run: PlannedRun) -> tuple[Estimate, Estimate]:
        """Return seconds of a step, and their ratio to those of synchronous training.

        Parameters
        ----------
        run : PlannedRun
            One round.
        """
        scales, _ = self._scales
        ends = [max(scale, LEAST_SCALE) for scale in scales]
        # where passes and links of either take equally long the ratio may have its end
        evens = {each.even for each in (run, self.synchronous) if ends[0] < each.even < ends[1]}
        looked_at = [1.0, *ends, *sorted(evens)]
        seconds = [replace(run, step_scale=scale).seconds / run.tau for scale in looked_at]
        others = [self._synchronous_s(scale) for scale in looked_at]
        ratios = [each / other if other else 1.0 for each, other in zip(seconds, others, strict=True)]
        tops = (math.inf if math.isinf(scales[1]) else max(each) for each in (seconds, ratios))
        return (
            Estimate(seconds[0], Interval(min(seconds), next(tops)), self.level),
            Estimate(ratios[0], Interval(min(ratios), next(tops)), self.level),
        )

    def unknown(self, run: PlannedRun) -> tuple[str, ...]:
        """Return what is not known of these seconds.

        Parameters
        ----------
        run : PlannedRun
            One round.
        """
        buckets = max(run.rhythm.buckets, self.synchronous.rhythm.buckets)
        backward = (BUCKETS,) if self.cluster.backward_share is not None else (BACKWARD, BUCKETS)
        return (*(backward if buckets > 1 else ()), *self._scales[1], FIXED)

    @cached_property
    def synchronous(self) -> PlannedRun:
        """The step of synchronous uncompressed training, in its own rhythm."""
        way = self.travel(None, "gather")
        if self.baseline is not None:
            return self.run(None, way, self.baseline)
        waiting, buckets = self.run(None, way, Rhythm()), buckets_of(self.d)
        if not 1 < buckets <= self.d // self.cluster.workers:
            return waiting
        overlapped = self.run(None, way, Rhythm(buckets=buckets))
        return overlapped if overlapped.seconds < waiting.seconds else waiting

    @cached_property
    def _synchronous_s(self) -> Callable[[float], float]:
        return cache(lambda scale: replace(self.synchronous, step_scale=scale).seconds)

    @cached_property
    def _scales(self) -> tuple[tuple[float, float], tuple[str, ...]]:
        """The factors by which the cluster's step may differ from its law, and what is not known."""
        law, step = self.cluster.compute, self.step
        if not (isinstance(law, Empirical) and step.value > 0 and math.isclose(law.mean_s, step.value, rel_tol=1e-6)):
            return (1.0, 1.0), (STEPS,)
        samples, workers = len(law.samples), self.cluster.workers
        tails = (TAILS.format(samples=samples, workers=workers),) if workers > samples else ()
        return (max(float(step.interval.lo), 0.0) / step.value, float(step.interval.hi) / step.value), tails


def _travel_of(sent: Sent | None, exchange: Way, d: int, cluster: Cluster) -> Travel:
    """Return how messages of the measured length travel."""
    dense = DENSE_BITS * d
    if sent is None:
        return Travel("sum", Unbiased(0.0), dense, dense, None, 0, 0, "summed on its way")
    operator, bits = operator_of(sent.operator), sent.bits * d
    if exchange == "gather":
        return travel(operator, operator.claim(d), bits, d, cluster)
    if exchange == "node_gather":
        return replace(gathered_by_nodes(operator, d, cluster), bits=bits, link_bits=bits)
    shots: Any = in_two_shots if exchange == "two_shot" else in_two_shots_of_nodes
    return replace(shots(operator, operator, d, cluster), bits=bits, link_bits=bits, result_bits=bits)


# -- worst case ----------------------------------------------------------------------------------------

CERTIFIED_TARGET = 0.1


def worst_case(
    operator: Operator | None, codec: Codec | None, d: int, cluster: Cluster, exchange: Way, *, at_every_step: bool
) -> tuple[float | None, str]:
    """Return the ratio of seconds that theorems guarantee on any strongly convex problem, or why there is none.

    Parameters
    ----------
    operator : Operator or None
        The compressor; None without compression.
    codec : Codec or None
        Its seconds a coordinate.
    d : int
        Trained parameters.
    cluster : Cluster
        Workers and links.
    exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages travel.
    at_every_step : bool
        Whether workers average after every step and wait for it.
    """
    if not at_every_step:
        return None, "no worst case: theorems for local steps need L, sigma^2 and a gap, which a pilot does not certify"
    if operator is None:
        return 1.0, "certified worst case: this is the synchronous training that it is compared with"
    nothing: dict[str, Any] = {"L": None, "sigma2": None, "gap": None}
    rest: dict[str, Any] = {"G": None, "time_s": None, "eta": None, "condition": None, "curvature": None}
    problem, _ = problem_of(nothing, target=CERTIFIED_TARGET, **rest)
    assert isinstance(problem, plan.Conditioned)
    dense_bits = DENSE_BITS * d
    problem = replace(problem, dense_bits=dense_bits, dense_s=cluster.averaging_s(dense_bits).midpoint)
    goal = {"target": CERTIFIED_TARGET, "time_s": None, "eta": None}
    asked = Asked(d, cluster, problem, goal, codec, None, exchange)
    choice, plainly = choice_of(operator, asked), choice_of(operator_of("identity"), asked)
    if not (choice.feasible and plainly.feasible and choice.seconds and plainly.seconds):
        return None, f"no worst case: {choice.reasons[0]}"
    return choice.seconds / plainly.seconds, (
        f"certified worst case, by {choice.theorem} with the claimed error of a message: full gradients of a strongly "
        f"convex F with L/mu = {problem.kappa:g}, to {CERTIFIED_TARGET:g} of the squared distance"
    )


# -- predictor -----------------------------------------------------------------------------------------

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
    """What a path and a cluster predict of every choice; what several choices share is computed once.

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
    of_another : tuple of str, optional
        What was measured on another training than the user's.
    """

    path: LocalPath
    clock: StepSeconds
    trials: RoundTrials | None = None
    steps: int | None = None
    of_another: tuple[str, ...] = ()

    @property
    def not_said(self) -> tuple[str, ...]:
        """What the user did not state of the cluster."""
        return (*self.clock.cluster.assumed(), *backward_not_said(self.clock.cluster))

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the user did not state."""
        return (*self.of_another, *self.not_said)

    def predict(self, sent: Sent | None, exchange: Any, rhythm: Rhythm) -> Prediction:
        """Return what is predicted of one choice, with the worst case beside it.

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
        forecast = self.forecast(sent, way, rhythm)
        operator, codec = (None, None) if sent is None else (operator_of(sent.operator), sent.codec)
        every = rhythm.oldest == 1
        certified = worst_case(operator, codec, clock.d, clock.cluster, way, at_every_step=every)
        return Prediction(
            forecast.seconds,
            forecast.progress,
            forecast.time_ratio,
            forecast.limits,
            forecast.unknown,
            "" if sent is None else sent.operator,
            forecast.run.way.exchange,
            **rhythm_fields(rhythm),
            certified_time_ratio=certified[0],
            certified=certified[1],
            assumed=self.assumed,
            left_out=LEFT_OUT if self.trials is None else LEFT_OUT_OF_ROUNDS,
        )

    def forecast(self, sent: Sent | None, exchange: Way, rhythm: Rhythm) -> Forecast:
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
        clock, messages, sent = self.clock, rhythm.messages, self._of_round(sent, rhythm.tau)
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
        return Forecast(seconds, progress, time_ratio, limit, (*unknown, *clock.unknown(run)), run)

    def _of_round(self, sent: Sent | None, tau: int) -> Sent | None:
        """Return an operator with the bits of the messages of rounds, if these were tried."""
        bits = None if sent is None or self.trials is None else self.trials.bits(sent.operator, tau)
        return sent if bits is None else replace(cast(Sent, sent), bits=bits)

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
        """The progress of trial rounds, with the formulas for another exchange or number of workers."""

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
        """The share of a synchronous round's progress that the messages leave, and what is not known of it."""

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
