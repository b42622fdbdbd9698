"""What a plan from a pilot answers: what to run, what it gains, what limits it, and what cannot be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..records import Answer, Table
from .cluster import Cluster
from .constants import LEFT_OUT, RESCALING
from .limits import Limits
from .pilot import cost_text
from .pilot_choice import PilotChoice
from .prediction_records import Prediction
from .ranked import Ranked, way_text
from .turning import turns


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

    @cached_property
    def turns(self) -> tuple[dict[str, Any], ...]:
        """Bandwidths ("bit_per_s") at which another choice ("rival") leads, "above" or "below" it; "words" say so."""
        if self.cluster.workers == 1:
            return ()
        rivals = {choice.operator: choice for choice in self.shown if choice.feasible}
        del rivals[self.best.operator]
        return turns(self.best, rivals, self.time_of, self.cluster)

    @property
    def verdict(self) -> str:
        """The sentence that the answer begins with, which says what to use."""
        return f"Use {self.best.name}."

    def answer(self) -> Answer:
        """Return what to run, what it gains, what limits it, and what is not decided."""
        best, limits = self.best, self.limits
        low, high = best.ratio_ends
        percent = 95 if best.time_ratio is None else round(100 * best.time_ratio.level)
        saved = limits.changes[:1]
        facts = {
            "time to a loss": f"{best.ratio:.3g} of synchronous uncompressed ({percent} %: {low:.3g} to {high:.3g})",
            "not decided": self._undecided(),
            "surest": "" if self.surest == best else f"{self.surest.name}: {_ends_text(self.surest)}",
            "a round": f"{limits.shares[limits.limit]:.0%} {limits.limit}"
            + "".join(f"; 2x better {each.part} would save {each.saved_share:.0%}" for each in saved),
            "turns": "; ".join(turn["words"] for turn in self.turns[:2]),
            "worst case": self._worst_case_short(),
            "pilot": "; ".join(filter(None, (cost_text(self.passes, self.steps), *self.too_short[:1]))),
            "learning rate": f"that of the pilot; {RESCALING}",
        }
        lost = {choice.name: choice.reason for choice in self.shown if not choice.feasible}
        evidence = {
            "status": f"predicted from one pilot, not proved; {self._worst_case()}",
            "assuming": self.assumptions,
            "not known": self.prediction.unknown,
            "too short": self.too_short,
            "changes": [f"{c.part} twice as good saves {c.saved_share:.1%} of the time" for c in limits.changes],
            **lost,
        }
        return Answer(
            verdict=self.verdict,
            facts=facts,
            tables=(self._table(),),
            left_out=LEFT_OUT,
            assumed=self.assumed,
            evidence=evidence,
        )

    def _undecided(self) -> str:
        if not self.alike:
            return ""
        others = {choice.operator for choice in self.alike} - {self.best.operator}
        of = len({choice.operator for choice in self.ranking if choice.feasible} - {self.best.operator})
        choices = sum(choice.feasible for choice in self.ranking) - 1
        return (
            f"{len(self.alike)} of {choices} other choices overlap, {len(others)} of {of} other compressors with them"
        )

    def _worst_case_short(self) -> str:
        ratio = self.prediction.certified_time_ratio
        return (
            "no theorem covers this choice"
            if ratio is None
            else f"{ratio:.3g} times the time without compression, proved"
        )

    def _table(self) -> Table:
        rows = []
        for choice in self.shown:
            if not choice.feasible:
                rows.append((choice.operator, "", "", "", "unknown", ""))
                continue
            low, high = choice.ratio_ends
            how = way_text("", choice.exchange, "").strip() or choice.exchange
            numbers = (f"{choice.ratio:.3g}", f"{low:.3g} .. {high:.3g}")
            rows.append((choice.operator, how, str(choice.tau), _in_flight(choice), *numbers))
        columns = ("compressor", "exchange", "tau", "in flight", "time", "interval")
        note = "time to a loss over that of synchronous uncompressed training; below 1 is faster"
        return Table(columns, tuple(rows), left=frozenset({"exchange", "in flight"}), note=note)

    @property
    def alike(self) -> tuple[PilotChoice, ...]:
        """The other choices whose interval overlaps that of the best, so that they are not told apart from it."""
        return tuple(choice for choice in self.ranking[1:] if choice.feasible and not choice.distinct)

    def explain(self) -> str:
        """Return in sentences: what to run, what it gains, what limits it, and what cannot be told."""
        best = self.best
        sentences = [
            f"Use {best.name}: {self.cost_text(best)} that of synchronous uncompressed training",
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
        return super().to_dict() | nested | {"too_short": list(self.too_short)}

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
        yield f"{of} other choices cannot be told apart from it, with {', '.join(others)}"
        if self.surest != self.best:
            yield f"surest is {self.surest.name}: {self.cost_text(self.surest)}"


def _ends_text(choice: PilotChoice) -> str:
    low, high = choice.ratio_ends
    return f"{choice.ratio:.3g}" if low == high else f"{choice.ratio:.3g} ({low:.3g} to {high:.3g})"


def _in_flight(choice: PilotChoice) -> str:
    """Return what travels while the workers compute, and for how many steps."""
    if choice.buckets > 1:
        return f"{choice.buckets} buckets"
    if not choice.in_flight:
        return "no"
    steps = f"{choice.in_flight} step{'s' * (choice.in_flight > 1)}"
    return f"{choice.parts} parts, {steps}" if choice.parts > 1 else steps


def _guarantee(prediction: Prediction) -> str:
    """Return the certified worst case in words."""
    ratio = f"{prediction.certified_time_ratio:.3g} times the seconds guaranteed without compression"
    return f"{prediction.certified}: {ratio}"
