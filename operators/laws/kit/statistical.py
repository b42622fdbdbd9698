"""The draws of a check: made once, shared by all statistical laws, and sent to where the evidence grows.

Which vector is drawn at next depends on what has been seen and on nothing later, so every bet stays fair.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Protocol, runtime_checkable

import numpy as np

from bounds.claims import Unbiased

from ...key import Key
from ...message import Message
from ..betting.budget import Budget, work_s
from ..betting.eprocess import Ledger, SizeBets
from ..betting.mean_bets import MeanBets
from ..betting.power import Power, bias_along_x, bias_in_any_direction, bias_of_a_coordinate, excess
from .examples import Example, drawn, structured, witnesses
from .law import Context, Law, NotApplicable, Violation, fail_if, keys, raised
from .subject import Subject, to_numpy
from .verdict import About, Outcome, Verdict

FIRST, BATCH = 8, 60
EXTRA = 5  # times the usual draws are made where the power is not reached
RESERVED = 1.2  # of the seconds, for the laws that come later
_AGAIN = 1.25  # the power is computed whenever the draws have grown by this factor


@dataclass(frozen=True)
class Draws:
    """Independent draws at one vector: errors ``(C(x) - x)/|x|``, shape (n, d), and message lengths, shape (n,)."""

    errors: np.ndarray
    bits: np.ndarray


class ClaimBets(ABC):
    """One law's bets on the draws at all vectors of a check."""

    level: float
    about: About = About.OTHER  # what a rejection refutes

    @abstractmethod
    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch that is drawn at one vector; ignored where the law says nothing."""

    @abstractmethod
    def rejected(self) -> bool:
        """Return whether the claim is refuted at the level."""

    @abstractmethod
    def finding(self) -> str:
        """Return what refutes it, in one sentence."""

    def power(self) -> Power:
        """Return what would have been found, where that is measured."""
        return Power()

    @abstractmethod
    def richest(self) -> int | None:
        """Return the vector with the most evidence against the claim."""

    def violation(self) -> Violation:
        """Return the refutation of the claim."""
        return Violation(self.finding(), self.about)

    def growth(self, vector: int) -> float:
        """Return the log-capital of the bets on one vector alone; -inf where there are none."""
        return -inf

    def enough(self) -> bool:
        """Return whether the power that was asked for is reached; only the law of the mean asks for one."""
        return True

    def promising(self) -> int | None:
        """Return the vector where a fault would be found with the fewest draws, if one is preferred."""
        return None

    def over(self) -> bool:
        """Return whether no further draw can matter."""
        return self.rejected()


class Source:
    """Fresh draws of a subject, each with a fresh key."""

    def __init__(self, subject: Subject, next_key: Callable[[], Key]) -> None:
        self.subject, self.next_key = subject, next_key

    def draw(self, example: Example, n: int) -> Draws:
        """Return n draws; a deterministic subject is run once.

        Raises
        ------
        Violation
            If an entry of an output is not finite: no bet could count it.
        """
        wide = example.x.astype(np.float64)
        norm = float(np.linalg.norm(wide))
        errors, bits = np.empty((n, wide.size)), np.zeros(n)
        independent = 1 if self.subject.randomness == "none" else n
        for i in range(independent):
            key = self.next_key()
            if self.subject.is_codec:
                message = self.subject.encode(example.x, key)
                output = to_numpy(self.subject.decode(message, wide.size, key)).reshape(wide.shape)
                bits[i] = message.bits if isinstance(message, Message) else 0
            else:
                output = self.subject.draw(example.x, key)
            fail_if(not np.isfinite(output).all(), f"an output is not finite, one of {i + 1} drawn at {example.name}")
            errors[i] = (output - wide) / norm
        errors[independent:], bits[independent:] = errors[0], bits[0]
        return Draws(errors, bits)


def collect(source: Source, examples: list[Example], bets: list[ClaimBets], budget: Budget) -> int:
    """Draw until every law is decided or the budget is spent; the number of draws made.

    When one law is decided, the others get as many draws again.  The first ``budget.least_draws`` are
    made however long they take.
    """
    usual = budget.draws * len(examples)
    least = min(budget.least_draws, usual)
    first = max(1, min(FIRST, least // len(examples)))
    started, drawn, again, most = work_s(), 0, 0.0, EXTRA * usual
    for vector in _order(len(examples), bets, usual):
        spent_s = work_s() - started
        if any(b.over() for b in bets):
            most = min(most, max(least, 2 * drawn))  # something is wrong: the other laws get as many draws again
        if all(b.over() for b in bets) or drawn >= most or (drawn >= least and spent_s > budget.most_seconds):
            break
        if drawn >= again and (drawn >= usual or (drawn >= least and spent_s > budget.seconds)):
            if all(b.over() or b.enough() for b in bets):
                break
            again = _AGAIN * drawn
        n = first if drawn < first * len(examples) else BATCH
        draws = source.draw(examples[vector], n)
        for b in bets:
            if not b.over():
                b.update(vector, draws)
        drawn += n
    return drawn


def _order(n: int, bets: list[ClaimBets], usual: int) -> Iterator[int]:
    """Return every vector once; then in turn where a fault would show soonest, the next one, and where most is won.

    Beyond the usual draws only the power is missing, and the next one is left out.
    """
    yield from range(n)
    turn, drawn = 0, 0
    while True:
        soonest = [b.promising() for b in bets]
        open_bets = [b for b in bets if not b.over()] or bets
        richest = open_bets[turn % len(open_bets)].richest()
        following = soonest if drawn >= usual else [turn % n]
        chosen = [v for v in (*soonest, *following, *soonest, richest, *soonest) if v is not None]
        yield from chosen
        turn, drawn = turn + 1, drawn + BATCH * len(chosen)


# -- The laws that judge a claim by fresh draws ----------------------------------------------------------------

_STRUCTURED = ("flat", "one-hot, last", "pair (1, 1/2", "pair (1, -1", "one large", "two scales", "alternating")
SHRINKING_DRAWS = 2000
LONG = 1000  # coordinates of two more vectors: where a tight claim's error hardly varies, a few draws show its mean


class OnVectors(ClaimBets):
    """Bets with one ledger, on those of the vectors of which something is claimed."""

    def __init__(self, ledger: Ledger, vectors: Iterable[int], level: float) -> None:
        self.ledger, self.vectors, self.level = ledger, list(vectors), level
        self.number = {j: i for i, j in enumerate(self.vectors)}

    def rejected(self) -> bool:
        """Return whether the capital has reached 1/level."""
        return self.ledger.rejects(self.level)

    def growth(self, vector: int) -> float:
        """Return the log-capital of the bets on one vector alone; -inf where there are none."""
        return self.ledger.growth(self.number[vector]) if vector in self.number else -inf

    def richest(self) -> int:
        """Return the vector on which the most was won."""
        return self.vectors[self.ledger.richest()]


class OnMeans(OnVectors):
    """Bets on a mean, until a bias of ``bias`` along the vectors would be found."""

    def __init__(self, mean: MeanBets, vectors: Iterable[int], level: float, bias: float) -> None:
        super().__init__(mean.ledger, vectors, level)
        self.mean, self.bias = mean, bias

    def enough(self) -> bool:
        """Return whether the bias asked for would be found."""
        return bias_along_x(self.mean, self.level) <= self.bias

    def promising(self) -> int | None:
        """Where that bias would show soonest."""
        return self.vectors[self.mean.promising(self.bias)]

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(
            along_x=bias_along_x(self.mean, self.level),
            coordinate=bias_of_a_coordinate(self.mean, self.level),
            any_direction=bias_in_any_direction(self.mean, self.level),
        )


class OnSizes(OnVectors):
    """Bets on the mean of a nonnegative quantity."""

    states_power = True

    def __init__(self, sizes: SizeBets, vectors: Iterable[int], level: float) -> None:
        super().__init__(sizes.ledger, vectors, level)
        self.sizes = sizes

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(excess=excess(self.sizes, self.level)) if self.states_power else Power()


class StatisticalLaw(Law):
    """A law whose evidence adds up over all vectors; ``bets`` makes what judges it, or None where it is silent."""

    statistical = True

    @abstractmethod
    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets on the draws at these vectors."""

    silence = "nothing is claimed at any vector tried"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet at one vector alone, with draws of its own."""
        bets = self.bets(subject, [example], context.level(1), context.budget)
        if bets is None:
            raise NotApplicable(self.silence)
        rng = context.rng(f"{self.name} {example.name} {zlib.crc32(example.x.tobytes())}")
        source = Source(subject, keys(subject, rng))
        most = min(SHRINKING_DRAWS, context.budget.draws * 10)
        for n in [8, *[50] * (most // 50)]:
            bets.update(0, source.draw(example, n))
            if bets.rejected():
                raise bets.violation()

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
            return Verdict(self.name, Outcome.NOT_APPLICABLE, self.silence)
        if bets.rejected():
            vector = bets.richest()
            example = study.examples[vector if vector is not None else 0]
            return self.simplest(subject, example, self.failed(bets.violation(), example), context)
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
            source = Source(subject, keys(subject, rng))
            subject.deadline = inf  # the least draws are made however long they take
            try:
                self.made = collect(source, self.examples, list(self.bets.values()), _budget(context))
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
    """Return the budget with what is left for more power: nothing where a law has failed already."""
    budget = context.budget
    if isinf(budget.seconds):
        return budget
    left = context.ends - work_s() - RESERVED * budget.seconds
    most = 0.0 if context.accused else min(budget.most_seconds, left)
    return replace(budget, most_seconds=max(budget.seconds, most))


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


# -- What a subject promises about the mean of its output ------------------------------------------------------


@dataclass(frozen=True)
class MeanClaim:
    """E C(x) = mean, shape (d,), float64, and ``E|C(x) - mean|^2`` <= second_moment ``|x|^2``."""

    mean: np.ndarray
    second_moment: float


@runtime_checkable
class HasMean(Protocol):
    """A biased operator that says what its mean is: ``mean_at(x)``, with a bound on the error around it."""

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return (E C(x), a bound on ``E|C(x) - E C(x)|^2 / |x|^2``) at a float32 vector: float64, shape (d,); None if
        unknown.
        """


def mean_claim(subject: Subject, x: np.ndarray) -> MeanClaim | None:
    """Return the claim about the mean at a vector, or None if there is none."""
    claim = subject.claim(x.size)
    if isinstance(claim, Unbiased):
        return MeanClaim(x.astype(np.float64), float(claim.omega))
    if isinstance(subject.target, HasMean):
        stated = subject.target.mean_at(x)
        if stated is not None:
            return MeanClaim(np.asarray(stated[0], np.float64), float(stated[1]))
    return None
