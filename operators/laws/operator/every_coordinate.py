"""Law: every coordinate is carried, also around the lengths of buckets and SIMD blocks (statistical, anytime-valid).

First every coordinate is made to answer, and those that answer unlike the others become suspects, with the last
coordinate of every length and the borders of blocks.  Nobody is accused by that.  Then each suspect is tried alone,
as a one-hot vector, with fresh draws on which the laws of the error and of the mean bet.  (The exact marginals are of
no use there: a selection of one in thousands hardly ever shows that it depends on its random words.)
Of a strict contraction every single draw is judged.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

import numpy as np

from bounds.claims import StrictlyContractive

from ..betting.eprocess import SLACK
from ..kit.answers import Answers
from ..kit.evidence import Source, collect
from ..kit.examples import Example
from ..kit.law import SLOW_S, Context, Law, Violation, fresh_key, raised, second_moment
from ..kit.statistical import ClaimBets
from ..kit.subject import OutOfTime, Subject
from ..kit.verdict import Outcome, Verdict
from .distortion import Distortion
from .unbiasedness import Unbiasedness

ROUNDS, CALLS = 8, 1000  # vectors of every length; vectors in all
CALLS_TIMED = 3
SUSPECTS = 3  # of each kind
BORDERS = (0, 63, 64, 255, 256, 1023, 1024)
FAULT = 0.5  # the bias of a coordinate, over its size, that is looked for
DRAWS_SHARE, LEAST_DRAWS = 1.0, 3  # of the usual draws; of a vector, however long they take
SEEN_SHARE, SHARE = 0.05, 0.15  # of the seconds, after which no vector more is seen, or drawn at
MOST_SHARE = 0.5  # of the most seconds, after which nothing is drawn even if a fault might be missed


class EveryCoordinate(Law):
    """A coordinate that is biased, a bucket's tail that is scaled wrongly, a last element that is dropped."""

    name = "every-coordinate"
    statistical = True

    def applies(self, subject: Subject) -> str | None:
        """Return needs a claim with a constant."""
        if all(second_moment(subject.claim(d)) is None for d in (1, 64, 65)):
            return "nothing is claimed"
        return super().applies(subject)

    def run(self, subject: Subject, context: Context) -> Verdict:
        """Find suspects; try each alone."""
        reason = self.applies(subject)
        if all(second_moment(subject.claim(d)) is None for d in context.budget.lengths):
            reason = "nothing is claimed at these lengths"
        if reason is not None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, reason)
        try:
            answers = self._answers(subject, context)
            suspects = self._suspects(answers, context.budget.lengths)
            examples = list(subject.domain.of([*suspects, *self._ends(context.budget.lengths)]))
            for example in examples:
                self.holds(subject, example, context)
            draws, bets = self._drawn(subject, examples, context)
        except Violation as found:
            return Verdict(self.name, Outcome.FAIL, str(found))
        except OutOfTime:
            return Verdict(self.name, Outcome.INCONCLUSIVE, "too slow: the time was over before all was seen")
        except Exception as error:  # whatever the subject raises is a finding
            return Verdict(self.name, Outcome.FAIL, raised(error))
        for bet in bets:
            if bet.rejected():
                worst = examples[bet.richest() or 0]
                return Verdict(self.name, Outcome.FAIL, bet.finding(), worst.name, worst.x)
        count = int((answers.n > 0).sum())
        text = f"{count} of {answers.n.size} coordinates answered, {len(examples)} tried alone with {draws} draws"
        if all(bet.enough() for bet in bets):
            return Verdict(self.name, Outcome.PASS, text)
        text += f"; one that is off by {FAULT:g} of its size might have been missed"
        hurried = draws < self._usual(context) * len(examples)
        return Verdict(self.name, Outcome.INCONCLUSIVE if hurried else Outcome.PASS, text)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """At one vector: a strict contraction on one draw."""
        claim, x = subject.claim(example.d), example.x.astype(np.float64)
        if not isinstance(claim, StrictlyContractive):
            return
        error = subject.draw(example.x, context.key(f"{self.name} {example.name}")) - x
        self._contracts(claim, float(np.linalg.norm(error) / np.linalg.norm(x)), example.name)

    def _contracts(self, claim: StrictlyContractive, error: float, where: str) -> None:
        if not error <= float(np.sqrt(claim.alpha)) + SLACK:
            raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2 at {where}; claimed at most {claim.alpha:.8g} surely")

    def _answers(self, subject: Subject, context: Context) -> Answers:
        """Return every coordinate of every length, until all have answered or the time is over."""
        rng, lengths = context.rng(self.name), context.budget.lengths
        answers = Answers(max(subject.domain.length(d) for d in lengths))
        for call in range(CALLS):
            in_turn = call < ROUNDS * len(lengths)
            if not in_turn and not answers.missing(answers.n.size).size:
                break
            if call >= len(lengths) and (context.accused or not context.spare(SEEN_SHARE)):
                break
            d = subject.domain.length(lengths[call % len(lengths)] if in_turn else max(lengths))
            sparse = call % (4 if isinstance(subject.claim(d), StrictlyContractive) else 2) == 1
            x = subject.domain.fit(answers.vector(d, rng, sparse=sparse))
            if x is None or not x.any():
                continue
            y, claim, wide = subject.draw(x, fresh_key(rng)), subject.claim(d), x.astype(np.float64)
            answers.add(x, y)
            if isinstance(claim, StrictlyContractive):
                error = float(np.linalg.norm(y - wide) / np.linalg.norm(wide))
                self._contracts(claim, error, f"entries of one size, d = {d}")
        return answers

    def _suspects(self, answers: Answers, lengths: tuple[int, ...]) -> list[Example]:
        """Return one-hot vectors at the suspects, in the shortest vector that has them."""
        suspects = [i for i in answers.suspects(SUSPECTS) if i < max(lengths)]
        return [_alone(min(d for d in lengths if d > i), i) for i in suspects]

    def _ends(self, lengths: tuple[int, ...]) -> list[Example]:
        """Return one-hot vectors at the last coordinate of every length and at the borders of blocks."""
        return [_alone(d, d - 1) for d in lengths] + [_alone(max(lengths), i) for i in BORDERS if i < max(lengths)]

    def _drawn(self, subject: Subject, examples: list[Example], context: Context) -> tuple[int, list[ClaimBets]]:
        """Return the number of draws, and the bets on them."""
        spent, usual = monotonic() - context.began, SHARE * context.budget.seconds
        patient = not context.accused and self._pace(subject, examples, context) <= SLOW_S
        most = MOST_SHARE * context.budget.most_seconds if patient else usual
        budget = replace(
            context.budget,
            bias=FAULT,
            draws=self._usual(context),
            least_draws=LEAST_DRAWS * len(examples),
            seconds=max(0.0, usual - spent),
            most_seconds=max(0.0, most - spent),
        )
        level, rng = context.level(2), context.rng(f"{self.name} draws")
        claimed = any(second_moment(subject.claim(e.d)) is not None for e in examples)
        laws = (Distortion(), Unbiasedness()) if claimed else ()
        bets = [bet for bet in (law.bets(subject, examples, level, budget) for law in laws) if bet is not None]
        if not bets or all(isinstance(subject.claim(e.d), StrictlyContractive) for e in examples):
            return len(examples), []
        return collect(Source(subject, lambda: fresh_key(rng)), examples, list(bets), budget), bets

    def _pace(self, subject: Subject, examples: list[Example], context: Context) -> float:
        """Return seconds of the quickest of a few calls at the shortest vector."""
        shortest, seconds = min(examples, key=lambda e: e.d), []
        for i in range(CALLS_TIMED):
            began = monotonic()
            subject.draw(shortest.x, context.key(f"{self.name} pace {i}"))
            seconds.append(monotonic() - began)
        return min(seconds)

    def _usual(self, context: Context) -> int:
        """Return draws a vector, where no clock cuts them."""
        return max(LEAST_DRAWS, int(DRAWS_SHARE * context.budget.draws))


def _alone(d: int, i: int) -> Example:
    return Example(f"only coordinate {i} of {d}", np.eye(1, d, i, np.float32)[0])
