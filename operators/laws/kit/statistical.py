"""The laws that judge a claim by fresh draws."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ..betting.budget import Budget
from ..betting.power import Power
from .evidence import Bets, Source, collect
from .examples import Example, drawn, structured, witnesses
from .law import Context, Law, NotApplicable, Violation, fresh_key, raised
from .subject import Subject
from .verdict import About, Outcome, Verdict

_STRUCTURED = ("flat", "one-hot, last", "pair (1, 1/2", "pair (1, -1", "one large", "two scales", "alternating")
SHRINKING_DRAWS = 2000
LONG = 1000  # coordinates of two more vectors: where a tight claim's error hardly varies, a few draws show its mean


class ClaimBets(Bets):
    """The bets of one statistical law in one check."""

    level: float
    about: About = About.OTHER  # what a rejection refutes

    @abstractmethod
    def rejected(self) -> bool:
        """Return whether the claim is refuted at the level."""

    @abstractmethod
    def finding(self) -> str:
        """Return what refutes it, in one sentence."""

    @abstractmethod
    def power(self) -> Power:
        """Return what would have been found."""

    def growth(self, vector: int) -> float:
        """Return the log-capital of the bets on one vector alone; -inf where there are none."""
        return -inf

    def enough(self) -> bool:
        """Return only the law of the mean asks for a power."""
        return True

    def promising(self) -> int | None:
        """Return no preference."""
        return None

    def over(self) -> bool:
        """Return decided."""
        return self.rejected()


class StatisticalLaw(Law):
    """A law whose evidence adds up over all vectors; ``bets`` makes what judges it, or None where it is silent."""

    statistical = True

    @abstractmethod
    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets on the draws at these vectors."""

    def silence(self) -> str:
        """Return why there may be no bets."""
        return "nothing is claimed at any vector tried"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet at one vector alone, with draws of its own."""
        bets = self.bets(subject, [example], context.level(1), context.budget)
        if bets is None:
            raise NotApplicable(self.silence())
        rng = context.rng(f"{self.name} {example.name} {zlib.crc32(example.x.tobytes())}")
        source = Source(subject, lambda: fresh_key(rng))
        most = min(SHRINKING_DRAWS, context.budget.draws * 10)
        for n in [8, *[50] * (most // 50)]:
            bets.update(0, source.draw(example, n))
            if bets.rejected():
                raise Violation(bets.finding(), bets.about)

    def run(self, subject: Subject, context: Context) -> Verdict:
        """Read what the common draws say."""
        reason = self.applies(subject)
        if reason is not None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, reason)
        study = evidence_of(subject, context)
        if self.name in study.errors or study.raised:
            return Verdict(self.name, Outcome.FAIL, study.errors.get(self.name, study.raised))
        bets = study.bets.get(self.name)
        if bets is None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, self.silence())
        if bets.rejected():
            vector = bets.richest()
            example = study.examples[vector if vector is not None else 0]
            return self.simplest(subject, example, self.failed(bets.finding(), example, bets.about), context)
        return self.passed(bets, study, context)

    def passed(self, bets: ClaimBets, study: Study, context: Context) -> Verdict:
        """Return the verdict where nothing was found: with what would have been."""
        power = bets.power()
        text = f"{study.made} draws; {power}" if str(power) else ""
        return Verdict(self.name, Outcome.PASS, text, power=power)


class Study:
    """The draws of one check and what each law made of them.

    Attributes
    ----------
    errors
        What a law's own declaration raised.
    raised
        What the subject raised at a draw, or that an output was not finite.
    """

    def __init__(self, subject: Subject, context: Context) -> None:
        vectors = *statistical_examples(context), *witnesses(subject.target, context.budget.drawn_sizes)
        self.examples = list(subject.domain.of(vectors))
        self.bets: dict[str, ClaimBets] = {}
        self.errors: dict[str, str] = {}
        self.raised = ""
        for law in context.laws:
            if isinstance(law, StatisticalLaw) and law.applies(subject) is None:
                self._start(law, subject, context)
        rng = context.rng("statistical draws")
        self.made = 0
        if self.bets:
            source = Source(subject, lambda: fresh_key(rng))
            subject.deadline = inf  # the least draws are made however long they take
            try:
                self.made = collect(source, self.examples, list(self.bets.values()), _budget(context))
            except Violation as found:
                self.raised = str(found)
            except Exception as error:  # whatever the subject raises is a finding
                self.raised = raised(error)
            finally:
                subject.deadline = context.ends

    def _start(self, law: StatisticalLaw, subject: Subject, context: Context) -> None:
        try:
            bets = law.bets(subject, self.examples, context.level(1), context.budget)
        except Exception as error:  # a claim that cannot be read, or makes no sense
            self.errors[law.name] = str(error) if isinstance(error, Violation) else f"raised {error!r}"
            return
        if bets is not None:
            self.bets[law.name] = bets


def _budget(context: Context) -> Budget:
    """Where a law has failed already, nobody waits for more power."""
    budget = context.budget
    return replace(budget, most_seconds=budget.seconds) if context.accused else budget


def evidence_of(subject: Subject, context: Context) -> Study:
    """Return the study of a check, made when the first statistical law asks for it."""
    if context.study is None:
        context.study = Study(subject, context)
    return context.study


def statistical_examples(context: Context) -> Iterator[Example]:
    """Return the vectors of the statistical laws: a few structured ones, one Gaussian and one Cauchy at each size."""
    rng = context.rng("statistical examples")
    for d in context.budget.drawn_sizes:
        yield from (e for e in structured(d) if e.name.startswith(_STRUCTURED))
        yield from drawn(d, 2, rng)
    if max(context.budget.drawn_sizes) >= 64:
        yield from drawn(LONG, 1, rng)
        yield from (e for e in structured(LONG) if e.name.startswith("flat"))
