"""The plan from a pilot: a search over its operators, exchanges and rhythms, and the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bounds.claims import Contractive, Unbiased
from bounds.estimate import Estimate

from ..cluster.cluster import Cluster
from ..plans.choosing import Way, ways_of
from ..plans.problem import RESCALING
from ..plans.ranking import Ranked, exchange_note, exchange_text, operator_text, turns, way_text
from ..plans.run import FASTER, Change, Limits, Rhythm, rhythms, scaled
from ..plans.script import script_line
from ..records import Answer, Table, plain
from .pilot import Pilot, cost_text
from .prediction import HIDDEN, UNTRIED, Forecast, Prediction, Predictor, Sent, rhythm_fields

if TYPE_CHECKING:
    from operators import Operator


# -- one choice ----------------------------------------------------------------------------------------

ESTIMATES = ("seconds_per_step", "progress_per_step", "time_ratio")


@dataclass(frozen=True)
class PilotChoice:
    """What a pilot predicts of one choice, or why it predicts nothing.

    Parameters
    ----------
    operator : str
        Its specification; "binary32" without compression.
    exchange : str
        "sum", "gather", "two_shot", "node_gather" or "node_two_shot".
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the workers go on.
    feasible : bool
        Whether there is a prediction.
    reason : str
        In words: what limits it, or why there is none.
    seconds_per_step : Estimate or None, optional
        Of one local step with its share of an averaging, seconds.
    progress_per_step : Estimate or None, optional
        Expected fall of the loss over that of a synchronous uncompressed step.
    time_ratio : Estimate or None, optional
        Seconds to the same fall of the loss over those of synchronous uncompressed training; below 1 is faster.
    limits : str, optional
        What takes most of a step.
    relative_cost : float, optional
        Its ``ranked_by`` over the best choice's.
    distinct : bool, optional
        Whether its interval lies above the best choice's, so that the two are distinguished.
    parts : int, optional
        Fragments of the model, sent one after the other.
    in_flight : int, optional
        Steps made while a message travels.
    buckets : int, optional
        Messages of a gradient, all but the last sent during the backward pass.
    fed_back : bool, optional
        Whether messages carry error feedback.
    tried : bool, optional
        Whether the pilot has tried rounds, so that choices are ranked by their upper ends.
    """

    operator: str
    exchange: str
    tau: int
    overlap: bool
    feasible: bool
    reason: str
    seconds_per_step: Estimate | None = None
    progress_per_step: Estimate | None = None
    time_ratio: Estimate | None = None
    limits: str = ""
    relative_cost: float = math.inf
    distinct: bool = False
    parts: int = 1
    in_flight: int = 0
    buckets: int = 1
    fed_back: bool = False
    tried: bool = False

    @property
    def name(self) -> str:
        """Operator, exchange, local steps, fragments and overlap in words."""
        return self.way + self.rhythm.in_words()

    @property
    def rhythm(self) -> Rhythm:
        """When the workers average."""
        return Rhythm(self.tau, self.in_flight, self.parts, self.buckets)

    @property
    def way(self) -> str:
        """Operator and exchange in words."""
        return way_text(self.operator, self.exchange, self.operator)

    @property
    def ranked_by(self) -> float:
        """The number by which choices are ranked, ``ranking_number`` of the time ratio."""
        return ranking_number(self.time_ratio, tried=self.tried)

    @property
    def ratio(self) -> float:
        """The predicted time over synchronous training's; infinite where there is no prediction."""
        return math.inf if self.time_ratio is None else self.time_ratio.value

    @property
    def ratio_ends(self) -> tuple[float, float]:
        """The ends of its interval."""
        if self.time_ratio is None:
            return 0.0, math.inf
        return float(self.time_ratio.interval.lo), float(self.time_ratio.interval.hi)

    def row(self) -> dict[str, Any]:
        """Return the fields by their names, of estimates value and ends."""
        row = dict(vars(self))
        for name in ESTIMATES:
            estimate = row.pop(name)
            ends = (None, None, None) if estimate is None else _value_and_ends(estimate)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(value) for name, value in vars(self).items()}


def _value_and_ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, float(estimate.interval.lo), float(estimate.interval.hi)


def ranking_number(time_ratio: Estimate | None, *, tried: bool) -> float:
    """Return the upper end of a prediction; without trial rounds its value.

    Parameters
    ----------
    time_ratio : Estimate or None
        Predicted time; None without a prediction, which is infinite.
    tried : bool
        Whether the pilot has tried rounds.  A choice that may never reach the loss has an infinite upper end and comes
        last.  Without rounds most upper ends are infinite or far above the value, and would leave only synchronous
        training.
    """
    if time_ratio is None:
        return math.inf
    return float(time_ratio.interval.hi) if tried else time_ratio.value


# -- the answer ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PilotPlan(Ranked[PilotChoice]):
    """What to run, by the least predicted time to a loss; what it gains, what limits it, and what is not known.

    Parameters
    ----------
    ranking : tuple of PilotChoice
        All choices, best first; those without a prediction come last.
    assumptions : tuple of str
        Under which the numbers hold, and what was searched, in words.
    prediction : Prediction
        Of the best choice, with the certified worst case beside it and what the pilot does not tell.
    at_every_step : Prediction
        Of the same messages averaged at every step, for which a theorem may certify a worst case.
    limits : Limits
        What limits a round of the best choice, and what a better part would save of its time to a loss; seconds are
        those of a round.
    surest : PilotChoice
        The choice with the least upper end: what it gains at least, the interval being right, none gains more surely.
    too_short : tuple of str
        For which answers the pilot is too short, and how much longer it would have to be.
    cluster : Cluster
        Workers and links.
    time_of : callable
        Predicted seconds to a loss of a choice, with the bandwidth times a factor.
    passes : int, optional
        What the pilot cost a worker, in forward and backward passes; 0 if it is not known.
    steps : int, optional
        Of the whole training; 0 if they are not known.
    recorded : str, optional
        Which recorded pilot stands for the user's training, in words; "" for a pilot of one's own.
    local_steps : tuple of int or None, optional
        Estimates of tau for SGD by Theorem 2 and by the third-order bound (``Pilot.local_steps``).
    equal_steps : callable or None, optional
        The best choice if all steps take equally long; None where the law of step times was stated or measured.
    """

    prediction: Prediction
    at_every_step: Prediction
    limits: Limits
    surest: PilotChoice
    too_short: tuple[str, ...]
    cluster: Cluster
    time_of: Callable[[PilotChoice, float], float] = field(compare=False)
    passes: int = 0
    steps: int = 0
    recorded: str = ""
    local_steps: tuple[int, int] | None = None
    equal_steps: Callable[[], PilotChoice] | None = field(default=None, compare=False)

    def _turned(self, most: int) -> tuple[dict[str, Any], ...] | None:
        rivals = {choice.operator: choice for choice in self.shown if choice.feasible}
        del rivals[self.best.operator]
        if self.cluster.workers == 1 or not rivals:
            return None
        return turns(self.best, dict(list(rivals.items())[:most]), self.time_of, self.cluster)

    @property
    def verdict(self) -> str:
        """The sentence that the answer begins with, which says what to use, or to try where that is not decided."""
        choice = f"{self.to_run.name}{_every_step(self.to_run)}"
        open_ = self.alike or self.to_run != self.best or self.to_run.ratio_ends[1] > 1
        return f"{'Try' if open_ else 'Use'} {choice}."

    @property
    def to_run(self) -> PilotChoice:
        """The best choice, or the surest one where the best may be slower than synchronous training."""
        return self.surest if self.best.ratio_ends[1] > 1 else self.best

    def answer(self) -> Answer:
        """Return what to run, what it gains, what limits it, and what is not decided."""
        used, limits = self.to_run, self.limits
        ends = " to ".join(f"{end:.3g}" for end in used.ratio_ends)
        of = "" if used == self.best else f" (of {self.best.name})"
        facts = {
            "time": f"{used.ratio:.3g} times that of synchronous training ({self._percent()} %: {ends})",
            "why": self._why(),
            "not decided": self._undecided(),
            "other links": self.turn_text(),
            "surest": self._surest(),
            "proved": self._worst_case_short(),
            "pilot": "; ".join(filter(None, (self._pilot(), *self.too_short))),
            "equal steps": self._equal_steps(),
            "local steps": self._local_steps(),
            "a round": f"{limits.shares_in_words()}{of}",
            "learning rate": f"that of the pilot; {RESCALING}",
        }
        lost = {choice.name: choice.reason for choice in self.shown if not choice.feasible}
        evidence = {
            "status": f"predicted from one pilot, not proved; {self._worst_case()}",
            "assuming": self.assumptions,
            "not known": self.prediction.unknown,
            "too short": self.too_short,
            "other links": [turn["words"] for turn in self.turns],
            "changes": [f"{c.part} twice as good saves {c.saved_share:.1%} of the time" for c in limits.changes],
            **lost,
        }
        return Answer(
            verdict=self.verdict,
            facts=facts,
            tables=(self._table(),),
            left_out=self.prediction.left_out,
            assumed=self.assumed,
            follow_up="in your script",
            code=self.script_line(used),
            evidence=evidence,
        )

    def script_line(self, choice: PilotChoice) -> str:
        """Return the Python call that averages as a choice says, such as ``PeriodicAveraging(model, optimizer, ...)``.

        Parameters
        ----------
        choice : PilotChoice
            One of ``ranking``.
        """
        node = self.cluster.gpus_per_node or 1
        way, is_fed_back = choice.exchange, choice.fed_back
        return script_line(choice.operator, way, choice.rhythm, fed_back=is_fed_back, workers_per_node=node)

    def _undecided(self) -> str:
        if not self.alike:
            return ""
        others = {choice.operator for choice in self.alike} - {self.best.operator}
        of = len({choice.operator for choice in self.ranking if choice.feasible} - {self.best.operator})
        choices = sum(choice.feasible for choice in self.ranking) - 1
        compressors = f", {len(others)} of {of} compressors among them" if of else ""
        return f"{len(self.alike)} of {choices} others may be as fast{compressors}"

    def _why(self) -> str:
        """Return why ``to_run`` is the choice to run."""
        if self.to_run != self.best:
            high = self.best.ratio_ends[1]
            never = "may never reach the loss: let a pilot try rounds of it"
            late = f"may take {high:.3g} times" if math.isfinite(high) else never
            return (
                f"no choice has a smaller upper end; {self.best.name} is predicted at {self.best.ratio:.3g}, but {late}"
            )
        return "no choice has a smaller upper end" if self.best.tried else "no choice has a smaller predicted time"

    def _surest(self) -> str:
        """Return the choice with the least upper end, where it is not the one to run."""
        if self.surest == self.to_run:
            return ""
        low, high = self.surest.ratio_ends
        name = f"{self.surest.name}{_every_step(self.surest)}"
        return f"{name}: {self.surest.ratio:.3g} ({low:.3g} to {high:.3g})"

    def _equal_steps(self) -> str:
        """Return what is best if all steps take equally long, where the law of step times was assumed."""
        if self.equal_steps is None:
            return ""
        best = self.equal_steps()
        if best.name == self.best.name:
            return f"with --compute constant: the same choice; time {best.ratio:.3g}"
        return f"with --compute constant: {best.name}{_every_step(best)}; time {best.ratio:.3g}"

    def _pilot(self) -> str:
        """Return whose pilot it is, or what the user's own has cost."""
        return f"recorded, not yours: {self.recorded}" if self.recorded else cost_text(self.passes, self.steps)

    def _local_steps(self) -> str:
        if self.local_steps is None:
            return ""
        second, third = self.local_steps
        return f"estimates by bounds for SGD: {second}, with third order {third}"

    def _worst_case_short(self) -> str:
        ratio = self.prediction.certified_time_ratio
        covered = "" if ratio is None else f"; plain SGD takes at most {ratio:.3g} times the time without compression"
        return f"no, predicted from one pilot{covered or '; no theorem covers this choice'}"

    def _table(self) -> Table:
        shown = sorted({*self.shown, self.surest}, key=lambda choice: (choice.ranked_by, choice.ratio, choice.name))
        rows = []
        for choice in shown:
            name = operator_text(choice.operator)
            if not choice.feasible:
                rows.append((name, "", "", "", "unknown", ""))
                continue
            low, high = choice.ratio_ends
            numbers = (f"{choice.ratio:.3g}", f"{low:.3g} to {high:.3g}")
            rows.append((name, exchange_text(choice.exchange), str(choice.tau), _overlap(choice), *numbers))
        columns = ("compressor", "exchange", "tau", "overlap", "time", f"{self._percent()} % interval")
        time = "time: to the same loss, over that of uncompressed training that averages every step"
        ends = "interval: from the greatest to the least progress that the pilot allows (inf: it may be 0)"
        reason = "ranked by the upper ends, for rounds were tried" if self.best.tried else ""
        note = "; ".join(filter(None, (time, ends, reason, exchange_note(choice.exchange for choice in shown))))
        return Table(columns, tuple(rows), left=frozenset({"exchange", "overlap"}), note=note)

    def _percent(self) -> int:
        return 95 if self.best.time_ratio is None else round(100 * self.best.time_ratio.level)

    @property
    def alike(self) -> tuple[PilotChoice, ...]:
        """The other choices whose interval overlaps that of the best, so that they are not distinguished from it."""
        return tuple(choice for choice in self.ranking[1:] if choice.feasible and not choice.distinct)

    def explain(self) -> str:
        """Return sentences: what to run, what it gains, what limits it, and what is not known."""
        best = self.best
        sentences = [
            f"{self.verdict.rstrip('.')}: {self.cost_text(best)} that of synchronous uncompressed training",
            self._worst_case(),
            self._limited(),
            *self._alike(),
            *self.too_short,
        ]
        return ".  ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + "."

    def cost_text(self, choice: PilotChoice) -> str:
        """Return the time to a loss over synchronous training's, with its interval.

        Parameters
        ----------
        choice : PilotChoice
            One of ``ranking``.
        """
        if choice.time_ratio is None:
            return "time unknown"
        low, high = choice.ratio_ends
        ends = "exactly" if low == high else f"{low:.3g} to {high:.3g} at {choice.time_ratio.level:.0%}"
        return f"time to a loss {choice.ratio:.3g} ({ends}) times"

    def costs(self) -> tuple[str, dict[str, tuple[float, float, float]]]:
        """Return time to a loss, and by the names of each operator's first choice value and ends of it."""
        rows = {choice.name: (choice.ratio, *choice.ratio_ends) for choice in self.shown if choice.feasible}
        return "time to a loss over synchronous training's", rows

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        parts = ("prediction", "at_every_step", "limits", "surest")
        nested = {name: getattr(self, name).to_dict() for name in parts}
        local_steps = self.local_steps and list(self.local_steps)
        return super().to_dict() | nested | {"too_short": list(self.too_short), "local_steps": local_steps}

    def _worst_case(self) -> str:
        best, messages = self.prediction, self.at_every_step
        if best.certified_time_ratio is None and messages.certified_time_ratio is not None and messages.operator:
            return f"{best.certified}; of the same messages averaged at every step, {_guarantee(messages)}"
        if best.certified_time_ratio is None:
            return best.certified
        return f"beside it, and no bound of it, {_guarantee(best)}"

    def _limited(self) -> str:
        noise = "limited by noise: it and the errors of messages take most of what a round would gain; its seconds are "
        return (noise if self.prediction.limits == "noise" else "") + self.limits.in_words()

    def _alike(self) -> Iterator[str]:
        if not self.alike:
            yield "no other choice has an interval that overlaps its own"
            return
        others = list(dict.fromkeys(choice.operator for choice in self.alike))
        of = f"{len(self.alike)} of {sum(choice.feasible for choice in self.ranking) - 1}"
        yield f"{of} other choices cannot be distinguished from it, with {', '.join(others)}"
        if self.surest != self.best:
            yield f"surest is {self.surest.name}: {self.cost_text(self.surest)}"


def _overlap(choice: PilotChoice) -> str:
    """Return what travels while the workers compute, and for how many steps."""
    if choice.buckets > 1:
        return f"{choice.buckets} buckets"
    if not choice.in_flight:
        return "no"
    steps = f"{choice.in_flight} step{'s' * (choice.in_flight > 1)}"
    return f"{choice.parts} parts, {steps}" if choice.parts > 1 else steps


def _every_step(choice: PilotChoice) -> str:
    return "" if choice.tau > 1 else ", averaging every step"


def _guarantee(prediction: Prediction) -> str:
    """Return the certified worst case in words."""
    ratio = f"{prediction.certified_time_ratio:.3g} times the seconds guaranteed without compression"
    return f"{prediction.certified}: {ratio}"


# -- pilots that are too short -------------------------------------------------------------------------

MOST_REPEATS = 1024


def too_short(
    pilot: Pilot, cluster: Cluster, best: PilotChoice, way: Way, ranking: Sequence[PilotChoice]
) -> Iterator[str]:
    """Yield the answers that the pilot's moments do not suffice for."""
    moments = len(pilot.survival)
    if best.progress_per_step is not None and best.progress_per_step.interval.lo <= 0:
        needed = moments_needed(pilot, cluster, best, way)
        more = (
            f"not even {MOST_REPEATS * moments} like these would do: take larger batches"
            if needed is None
            else f"at least about {needed - moments} more like these would bring its lower end to half its limit"
        )
        yield f"the pilot is too short for this answer: with its {moments} moments the progress could be 0; {more}"
    hidden = list(dict.fromkeys(choice.operator for choice in ranking if choice.reason == HIDDEN))
    if hidden:
        yield f"the pilot is too short for {', '.join(hidden)}: noise hides the progress; take more moments"
    if uncertain := pilot.uncertain_step():
        yield f"the time of a step is not known: {uncertain}"


def moments_needed(pilot: Pilot, cluster: Cluster, choice: PilotChoice, way: Way) -> int | None:
    """Return the number of moments like the pilot's after which the lower end of a progress is half its limit.

    Parameters
    ----------
    pilot : Pilot
        What was measured.
    cluster : Cluster
        Workers and links.
    choice : PilotChoice
        Whose progress it is.
    way : {"gather", "two_shot", "node_gather", "node_two_shot"}
        How its messages travel.

    Notes
    -----
    The moments are repeated: means and variances stay as the pilot has found them, intervals shrink.  Few moments find
    too small a variance more often than too large a one, so that more may be needed.  The limit is taken after 1024
    times as many; None where it is 0.
    """
    trials = tuple(trial for trial in pilot.operators if trial.operator == choice.operator)
    alone = replace(pilot, operators=trials)

    def lower_end(times: int) -> float:
        longer = alone.repeated(times)
        sent = longer.sent(choice.operator) if trials else None
        progress = longer.predictor(cluster).forecast(sent, way, choice.rhythm).progress
        return 0.0 if progress is None else float(progress.interval.lo)

    limit = lower_end(MOST_REPEATS)
    if limit <= 0:
        return None
    low, high = 0, MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lower_end(middle) >= limit / 2 else (middle, high)
    return high * len(pilot.survival)


# -- search --------------------------------------------------------------------------------------------

DENSE = "binary32"
DIGITS = 9  # equal seconds may differ by rounding beyond


def plan_of_pilot(
    pilot: Pilot, cluster: Cluster, operators: Sequence[str | Operator] | None, exchange: Way
) -> PilotPlan:
    """Return the plan with the least predicted time to a loss.

    Parameters
    ----------
    pilot : Pilot
        What was measured.
    cluster : Cluster
        Workers and links.
    operators : sequence of str or Operator or None
        Some that the pilot has tried; None: all of them.
    exchange : {"auto", "gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages may travel.

    Raises
    ------
    ValueError
        For a pilot without falls and bends, and an operator that was not tried.
    """
    predictor = pilot.predictor(cluster)
    equal_steps = cluster.with_parts(compute="constant") if cluster.assumes_compute else None
    names = [trial.operator for trial in pilot.operators] if operators is None else list(operators)
    tried = {sent.operator: sent for sent in map(pilot.sent, names) if sent.operator != "identity"}
    longest = pilot.taus[-1] if pilot.rounds is None else min(pilot.taus[-1], pilot.rounds.longest)
    looked, ways = list(rhythms(longest=longest, d=pilot.d, workers=cluster.workers)), ways_of(exchange, cluster)
    looked_at = list(_choices(predictor, None, ("gather",), looked))
    for messages in tried.values():
        looked_at += _choices(predictor, messages, ways, looked)
    ranking = _ranked(looked_at)
    best = ranking[0]
    sent = tried.get(best.operator)
    way: Way = "gather" if best.exchange == "sum" else best.exchange  # type: ignore[assignment]
    forecast = predictor.forecast(sent, way, best.rhythm)
    searched = (
        f"searched: {len(looked_at)} choices of binary32 and {len(tried)} operators of the pilot, {', '.join(ways)}, "
        f"{_rhythms_in_words(looked)}"
    )
    compared = (
        "times are to the same fall of the loss, over those of synchronous uncompressed training on the same cluster "
        f"with the same learning rate{predictor.clock.synchronous.rhythm.in_words()}"
    )
    apart = (
        "all intervals are of one pilot: choices whose intervals overlap are not distinguished, though some could be"
    )
    return PilotPlan(
        ranking,
        (compared, cluster.in_words(), searched, apart, f"d = {pilot.d}"),
        prediction=predictor.predict(sent, way, best.rhythm),
        at_every_step=predictor.predict(sent, way, Rhythm()),
        limits=_limits(predictor, sent, way, best, forecast),
        surest=min(ranking, key=lambda choice: (choice.ratio_ends[1], choice.ratio)),
        too_short=tuple(too_short(pilot, cluster, best, way, ranking)),
        cluster=cluster,
        time_of=cost_of_prediction(pilot, cluster),
        passes=pilot.passes,
        steps=pilot.steps,
        recorded=pilot.recorded,
        local_steps=pilot.local_steps(cluster),
        assumed=predictor.not_said,
        equal_steps=partial(_best_of_pilot, pilot, equal_steps, operators, exchange) if equal_steps else None,
    )


def _best_of_pilot(*asked: Any) -> PilotChoice:
    return plan_of_pilot(*asked).best


def _rhythms_in_words(looked: Sequence[Rhythm]) -> str:
    taus = sorted({rhythm.tau for rhythm in looked})
    parts, buckets = (max(getattr(rhythm, name) for rhythm in looked) for name in ("parts", "buckets"))
    during = f", gradients in {buckets} buckets during the backward pass" if buckets > 1 else ""
    fragments = f"whole or in up to {parts} fragments" if parts > 1 else "whole"
    return (
        f"tau = {', '.join(map(str, taus))}{during}; in flight {fragments}, for as long as the pilot has looked at "
        "gradients so old"
    )


def _choices(
    predictor: Predictor, sent: Sent | None, ways: Sequence[Way], looked: Sequence[Rhythm]
) -> Iterator[PilotChoice]:
    """Yield what is predicted of one operator on each way that it has, or why there is nothing."""
    name = DENSE if sent is None else sent.operator
    refusals: list[str] = []
    travelled: set[str] = set()
    for way in ways:
        try:
            exchange = predictor.forecast(sent, way, Rhythm()).run.way.exchange
        except ValueError as failure:
            refusals.append(str(failure))
            continue
        if exchange in travelled:
            continue
        travelled.add(exchange)
        for rhythm in looked:
            forecast = predictor.forecast(sent, way, rhythm)
            yield _choice(name, exchange, rhythm, forecast, tried=predictor.trials is not None)
    if not travelled:
        yield PilotChoice(name, "", 1, False, False, refusals[0])


def _choice(name: str, exchange: str, rhythm: Rhythm, forecast: Forecast, *, tried: bool) -> PilotChoice:
    when = rhythm_fields(rhythm)
    if forecast.time_ratio is None:
        reason = UNTRIED if UNTRIED in forecast.unknown else HIDDEN
        return PilotChoice(name, exchange, feasible=False, reason=reason, **when)
    return PilotChoice(
        name,
        exchange,
        feasible=True,
        reason=f"limited by {forecast.limits}",
        seconds_per_step=forecast.seconds,
        progress_per_step=forecast.progress,
        time_ratio=forecast.time_ratio,
        limits=forecast.limits,
        fed_back=isinstance(forecast.run.way.claim, Contractive),
        tried=tried,
        **when,
    )


def _ranked(choices: Sequence[PilotChoice]) -> tuple[PilotChoice, ...]:
    """Return them by their times; of equal ones first the surer, then the simpler."""

    def order(choice: PilotChoice) -> tuple[float, ...]:
        numbers = (float(f"{each:.{DIGITS}g}") for each in (choice.ranked_by, choice.ratio_ends[1], choice.ratio))
        return not choice.feasible, *numbers, choice.tau, choice.in_flight, choice.parts, choice.buckets

    best, *others = sorted(choices, key=order)
    least, most = best.ranked_by, best.ratio_ends[1]
    first = replace(best, relative_cost=1.0)
    return first, *(
        replace(
            each,
            relative_cost=1.0 if each.ranked_by == least else each.ranked_by / least,
            distinct=each.ratio_ends[0] > most,
        )
        if each.feasible
        else each
        for each in others
    )


def _limits(predictor: Predictor, sent: Sent | None, way: Way, best: PilotChoice, forecast: Forecast) -> Limits:
    """Return what limits a round, with what messages twice as accurate would save beside faster parts."""
    limits, progress = forecast.run.limits(), forecast.progress
    if sent is None or progress is None or not isinstance(forecast.run.way.claim, Unbiased):
        return limits
    halved = replace(sent, omega=sent.omega.scaled(1 / FASTER))
    better = predictor.forecast(halved, way, best.rhythm).progress
    share = 0.0 if better is None or better.value <= 0 else 1 - progress.value / better.value
    if share <= 0:
        return limits
    change = Change("accuracy of the messages", share * forecast.run.seconds, share)
    return replace(limits, changes=tuple(sorted((*limits.changes, change), key=lambda each: -each.saved_s)))


def cost_of_prediction(pilot: Pilot, cluster: Cluster) -> Callable[[PilotChoice, float], float]:
    """Return the predicted seconds to a loss, with the bandwidth times a factor.

    Parameters
    ----------
    pilot : Pilot
        What was measured.
    cluster : Cluster
        Workers and links.
    """

    def cost(choice: PilotChoice, scale: float) -> float:
        predictor = pilot.predictor(scaled(cluster, "between", bandwidth=scale))
        messages = None if choice.operator == DENSE else pilot.sent(choice.operator)
        way: Way = "gather" if choice.exchange == "sum" else choice.exchange  # type: ignore[assignment]
        forecast = predictor.forecast(messages, way, choice.rhythm)
        if forecast.progress is None or forecast.progress.value <= 0:
            return math.inf
        return forecast.seconds.value / forecast.progress.value

    return cost
