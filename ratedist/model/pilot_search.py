"""The search of a plan from a pilot: every operator that it has tried, on every way, in every rhythm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bounds.claims import Contractive, Unbiased

from .choosing import Way, ways_of
from .cluster import Cluster
from .limits import FASTER, Change, Limits, scaled
from .pilot import Pilot
from .pilot_choice import PilotChoice
from .pilot_plan import PilotPlan
from .planned_run import backward_not_said
from .prediction import HIDDEN, UNTRIED, Predictor
from .prediction_records import Foretold, Sent, rhythm_fields
from .rhythm import Rhythm, rhythms
from .too_short import too_short

if TYPE_CHECKING:
    from operators import Operator

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
    names = [trial.operator for trial in pilot.operators] if operators is None else list(operators)
    tried = {sent.operator: sent for sent in map(pilot.sent, names) if sent.operator != "identity"}
    looked, ways = list(rhythms(longest=pilot.taus[-1], d=pilot.d, workers=cluster.workers)), ways_of(exchange, cluster)
    looked_at = list(_choices(predictor, None, ("gather",), looked))
    for messages in tried.values():
        looked_at += _choices(predictor, messages, ways, looked)
    ranking = _ranked(looked_at)
    best = ranking[0]
    sent = tried.get(best.operator)
    way: Way = "gather" if best.exchange == "sum" else best.exchange  # type: ignore[assignment]
    foretold = predictor.foretell(sent, way, best.rhythm)
    searched = (
        f"searched: {len(looked_at)} choices of binary32 and {len(tried)} operators of the pilot, {', '.join(ways)}, "
        f"{_rhythms_in_words(looked)}"
    )
    compared = (
        "times are to the same fall of the loss, over those of synchronous uncompressed training on the same cluster "
        f"with the same learning rate{predictor.clock.synchronous.rhythm.in_words()}"
    )
    apart = "all intervals are of one pilot: choices whose intervals overlap are not told apart, though some could be"
    return PilotPlan(
        ranking,
        (compared, cluster.in_words(), searched, apart, f"d = {pilot.d}"),
        prediction=predictor.predict(sent, way, best.rhythm),
        at_every_step=predictor.predict(sent, way, Rhythm()),
        limits=_limits(predictor, sent, way, best, foretold),
        surest=min(ranking, key=lambda choice: (choice.ratio_ends[1], choice.ratio)),
        too_short=tuple(too_short(pilot, cluster, best, way, ranking)),
        cluster=cluster,
        time_of=cost_of_prediction(pilot, cluster),
        passes=pilot.passes,
        steps=pilot.steps,
        assumed=(*cluster.assumed(), *backward_not_said(cluster)),
    )


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
    """Yield what is foretold of one operator on each way that it has, or why there is nothing."""
    name = DENSE if sent is None else sent.operator
    refusals: list[str] = []
    travelled: set[str] = set()
    for way in ways:
        try:
            exchange = predictor.foretell(sent, way, Rhythm()).run.way.exchange
        except ValueError as failure:
            refusals.append(str(failure))
            continue
        if exchange in travelled:
            continue
        travelled.add(exchange)
        for rhythm in looked:
            yield _choice(name, exchange, rhythm, predictor.foretell(sent, way, rhythm))
    if not travelled:
        yield PilotChoice(name, "", 1, False, False, refusals[0])


def _choice(name: str, exchange: str, rhythm: Rhythm, foretold: Foretold) -> PilotChoice:
    when = rhythm_fields(rhythm)
    if foretold.time_ratio is None:
        reason = UNTRIED if UNTRIED in foretold.unknown else HIDDEN
        return PilotChoice(name, exchange, feasible=False, reason=reason, **when)
    return PilotChoice(
        name,
        exchange,
        feasible=True,
        reason=f"limited by {foretold.limits}",
        seconds_per_step=foretold.seconds,
        progress_per_step=foretold.progress,
        time_ratio=foretold.time_ratio,
        limits=foretold.limits,
        fed_back=isinstance(foretold.run.way.claim, Contractive),
        **when,
    )


def _ranked(choices: Sequence[PilotChoice]) -> tuple[PilotChoice, ...]:
    """Return them by their times; of equal ones first the surer, then the simpler."""

    def order(choice: PilotChoice) -> tuple[bool, float, float, int, int, int, int]:
        number, top = (float(f"{each:.{DIGITS}g}") for each in (choice.ranked_by, choice.ratio_ends[1]))
        simpler = choice.tau, choice.in_flight, choice.parts, choice.buckets
        return not choice.feasible, number, top, *simpler

    best, *others = sorted(choices, key=order)
    least, most = best.ranked_by, best.ratio_ends[1]
    first = replace(best, relative_cost=1.0)
    return first, *(
        replace(each, relative_cost=each.ranked_by / least, distinct=each.ratio_ends[0] > most)
        if each.feasible
        else each
        for each in others
    )


def _limits(predictor: Predictor, sent: Sent | None, way: Way, best: PilotChoice, foretold: Foretold) -> Limits:
    """Return what limits a round, with what messages twice as accurate would save beside faster parts."""
    limits, progress = foretold.run.limits(), foretold.progress
    if sent is None or progress is None or not isinstance(foretold.run.way.claim, Unbiased):
        return limits
    halved = replace(sent, omega=sent.omega.scaled(1 / FASTER))
    better = predictor.foretell(halved, way, best.rhythm).progress
    share = 0.0 if better is None or better.value <= 0 else 1 - progress.value / better.value
    if share <= 0:
        return limits
    change = Change("accuracy of the messages", share * foretold.run.seconds, share)
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
        foretold = predictor.foretell(messages, way, choice.rhythm)
        if foretold.progress is None or foretold.progress.value <= 0:
            return math.inf
        return foretold.seconds.value / foretold.progress.value

    return cost
