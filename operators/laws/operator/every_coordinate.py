"""What a compressor answers at each coordinate of one length: which of them differ from the others?

An answer is C(x)_i / x_i where both are non-zero.  Answers of different lengths are not compared: for many quantisers
they differ by sqrt(d).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from math import floor, isfinite, log

import numpy as np

from bounds.claims import StrictlyContractive

from ..betting.budget import Budget, work_s
from ..betting.eprocess import SLACK
from ..kit.examples import Example
from ..kit.law import SLOW_S, Context, Law, Violation, fresh_key, keys, raised, second_moment
from ..kit.statistical import BATCH, ClaimBets, Draws, Source, collect
from ..kit.subject import OutOfTime, Subject
from ..kit.verdict import Outcome, Verdict
from .draws import Distortion, Unbiasedness

WANTED = 4  # answers of every coordinate
NEARLY = 1 + 2.0**-16  # the entries that are asked for, among ones: a selection of the largest takes them first
COMPARED = 8  # answers of a sparse vector that are compared with each other
_TRUSTED = 4  # answers that the typical spread counts for
_ROUNDING = 1e-6  # of an answer


class Answers:
    """The answers so far, for vectors of d coordinates.

    Attributes
    ----------
    n
        Answers of each coordinate.
    half_seen
        Where a half would have broken a strict contraction already.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.asked, self.n = np.zeros(d, int), np.zeros(d, int)
        self.sum, self.square = np.zeros(d), np.zeros(d)
        self.half_seen = np.zeros(d, bool)
        self.share = 1.0  # of the missing coordinates that the next sparse vector asks for
        self._dense_answer = 0.0  # the typical one of the first vector without zeros

    def missing(self) -> np.ndarray:
        """Return the coordinates with the fewest answers, if they are fewer than WANTED."""
        least = int(self.n.min())
        return np.flatnonzero(self.n == least) if least < WANTED else np.zeros(0, int)

    def vector(self, rng: np.random.Generator, *, sparse: bool) -> np.ndarray:
        """Return entries +-1, shape (d,), float32: all of them, the missing ones a little larger; or only
        missing ones.
        """
        x, missing = np.ones(self.d), self.missing()
        x[missing] = NEARLY
        if sparse and missing.size:
            chosen = rng.permutation(missing)[: max(1, int(self.share * missing.size))]
            x = np.zeros(self.d)
            x[chosen] = 1.0
        return (x * rng.choice([-1.0, 1.0], self.d)).astype(np.float32)

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """Count the output y, float64, for x, float32; both of shape (d,)."""
        asked, answered = x != 0, (x != 0) & (y != 0)
        self.asked += asked
        chosen = np.flatnonzero(answered)
        if not asked.all():
            few = answered.sum() < 0.25 * asked.sum()
            self.share = max(self.share / 2, 1e-6) if few else min(2 * self.share, 1.0)
            if chosen.size < COMPARED:  # of vectors with other norms the answers themselves say nothing
                return
        if not chosen.size:
            return
        ratio = y[chosen] / x[chosen]
        typical = float(np.median(np.abs(ratio)))
        if asked.all():
            typical = self._dense_answer = self._dense_answer or typical
        self.n[chosen] += 1
        self.sum[chosen] += ratio / typical
        self.square[chosen] += (ratio / typical) ** 2

    def dissent(self, factor: float = 1.0) -> np.ndarray:
        """Return the standard errors by which each coordinate, times ``factor``, differs from the typical one: (d,)."""
        has_answered, n = self.n > 0, np.maximum(self.n, 1)
        if not has_answered.any():
            return np.zeros(self.d)
        mean = self.sum / n
        typical = float(np.median(mean[has_answered]))
        variance = np.maximum(self.square / n - mean**2, 0)
        several = self.n > 1
        usual = float(np.mean(variance[several] * (n / np.maximum(n - 1, 1))[several])) if several.any() else 0.0
        spread = (n * factor**2 * variance + _TRUSTED * usual) / (n + _TRUSTED) + (_ROUNDING * typical) ** 2
        return np.where(
            has_answered, np.abs(factor * mean - typical) / np.sqrt(np.maximum(spread / n, LEAST_SPREAD)), 0.0
        )

    def silence(self) -> np.ndarray:
        """Return the standard errors by which each coordinate answers less often than the others: (d,)."""
        asked = np.maximum(self.asked, 1)
        rate = min(max(float(self.n.sum() / asked.sum()), 1e-9), 1 - 1e-9)
        return np.maximum(rate - self.n / asked, 0.0) * np.sqrt(asked / (rate * (1 - rate)))


# -- Law: every coordinate is carried, also around the lengths of buckets and SIMD blocks (statistical, anytime-valid)
# First every coordinate of every length is made to answer.  Those that answer unlike the others of the same length
# become suspects, with the last coordinate of every length and the borders of blocks.  A suspect is not yet a
# finding: each is tried alone, as a one-hot vector, with fresh draws on which the laws of the error and of the mean
# bet.  (The exact marginals are of no use there: a selection of one in thousands hardly ever shows that it depends on
# its random words.) Of a strict contraction every single draw is judged.
#
# The report says at which share of the coordinates a half would have been seen.  That is computed from the same draws:
# the answers of a coordinate are halved, and the coordinate must become a suspect; the draws of a suspect are halved,
# and the bets must reject.

ROUNDS, CALLS = 160, 1000  # vectors of every length; of the longest one while a coordinate has not answered
LEAST_ROUNDS, CALLS_TIMED = 32, 3
LEAST_SPREAD = 1e-30  # of the mean of answers that were all alike
SUSPECTS = 3  # of each kind: other values, fewer answers
PURSUED = 4  # suspects that get draws of their own
STRICT_DRAWS = 4  # of a random strict contraction at a suspect
PURSUED_SHARE = 60  # of the usual draws: at a suspect, until a half would have been seen
LONGER = 4  # times the draws that a half needs
BORDERS = (0, 63, 64, 255, 256, 1023, 1024)
FAULT = 0.5  # the bias of a coordinate, over its size, that is looked for
DRAWS_SHARE, LEAST_DRAWS = 1.0, 3  # of the usual draws; of a vector, however long they take
SEEN_SHARE, SHARE = 0.15, 0.3  # of the seconds, after which no vector more is seen, or drawn at (a slow codec: SEEN)
MOST_SHARE = 0.25  # of the most seconds, after which nothing is drawn even if a fault might be missed


class EveryCoordinate(Law):
    """A coordinate that is biased, a bucket's tail that is scaled wrongly, a last element that is dropped."""

    name = "every-coordinate"
    statistical = True

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim with a constant."""
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
            ends = self._ends(context.budget.lengths)
            suspects = self._suspects(answers, ends)
            examples = list(subject.domain.of(_alone(d, i) for d, i in dict.fromkeys([*suspects, *ends])))
            for example in examples:
                self.holds(subject, example, context)
            broken = [loses for e in examples if (loses := self._half_breaks(subject, e, context)) is not None]
            draws, bets, pursued = self._drawn(subject, examples, context)
        except OutOfTime:
            return Verdict(self.name, Outcome.INCONCLUSIVE, "too slow: the time was over before all was seen")
        except Exception as error:  # whatever the subject raises is a finding
            return Verdict(self.name, Outcome.FAIL, raised(error))
        for bet in bets:
            if bet.rejected():
                worst = examples[bet.richest() or 0]
                return self.failed(bet.violation(), worst)
        share = self._seen(subject, answers, ends, pursued, float(np.mean(broken)) if broken else 0.0)
        total, answered = sum(a.d for a in answers), sum(int((a.n > 0).sum()) for a in answers)
        text = (
            f"{answered} of {total} coordinates of {len(answers)} lengths up to {answers[-1].d} answered, "
            f"{len(examples)} tried alone with {draws} draws; a half would have been seen at "
            f"{_percent(share)} of the coordinates"
        )
        hurried = draws < self._usual(context) * len(examples) and not all(bet.enough() for bet in bets)
        return Verdict(self.name, Outcome.INCONCLUSIVE if hurried else Outcome.PASS, text)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """At one vector: a strict contraction on a few draws."""
        claim = subject.claim(example.d)
        if isinstance(claim, StrictlyContractive):
            for error in self._errors(subject, example, context, 1.0):
                self._contracts(claim, error, example.name)

    def _half_breaks(self, subject: Subject, example: Example, context: Context) -> bool | None:
        """Return whether the draws at a one-hot vector, halved, would break a strict contraction; None if none is
        claimed.
        """
        claim = subject.claim(example.d)
        if not isinstance(claim, StrictlyContractive):
            return None
        return max(self._errors(subject, example, context, FAULT)) > float(np.sqrt(claim.alpha)) + SLACK

    def _errors(self, subject: Subject, example: Example, context: Context, factor: float) -> list[float]:
        """Return ``|C(x) - x|/|x|`` of STRICT_DRAWS draws whose largest coordinate is multiplied by ``factor``."""
        x, errors = example.x.astype(np.float64), []
        i = int(np.abs(x).argmax())
        for draw in range(1 if subject.randomness == "none" else STRICT_DRAWS):
            y = subject.draw(example.x, context.key(f"{self.name} {example.name} {draw}"))
            y[i] *= factor
            errors.append(float(np.linalg.norm(y - x) / np.linalg.norm(x)))
        return errors

    def _contracts(self, claim: StrictlyContractive, error: float, where: str) -> None:
        if not error <= float(np.sqrt(claim.alpha)) + SLACK:
            raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2 at {where}; claimed at most {claim.alpha:.8g} surely")

    def _answers(self, subject: Subject, context: Context) -> list[Answers]:
        """Return the answers at every length, until a half would be seen everywhere or the time is over."""
        rng, ends = context.rng(self.name), self._ends(context.budget.lengths)
        answers = [Answers(d) for d in sorted({subject.domain.length(d) for d in context.budget.lengths})]
        for turn in range(CALLS):
            doubled = turn >= LEAST_ROUNDS and turn & (turn - 1) == 0
            if doubled and all(table.all() for table in self._half_suspected(subject, answers, ends)):
                break
            asked = answers if turn < ROUNDS else [a for a in answers[-1:] if not a.n.all()]
            if not asked:
                break
            for table in asked:
                if turn > 0 and (context.accused or not context.spare(SEEN_SHARE)):
                    return answers
                self._ask(subject, table, turn, rng)
        return answers

    def _ask(self, subject: Subject, answers: Answers, turn: int, rng: np.random.Generator) -> None:
        claim = subject.claim(answers.d)
        strict = isinstance(claim, StrictlyContractive)
        x = subject.domain.fit(answers.vector(rng, sparse=turn % (4 if strict else 2) == 1))
        if x is None or not x.any():
            return
        y, wide = subject.draw(x, fresh_key(rng)), x.astype(np.float64)
        answers.add(x, y)
        if isinstance(claim, StrictlyContractive):
            squares, norm2 = (y - wide) ** 2, float(wide @ wide)
            self._contracts(claim, float(np.sqrt(squares.sum() / norm2)), f"entries of one size, d = {answers.d}")
            halved = squares.sum() - squares + (FAULT * y - wide) ** 2
            answers.half_seen |= np.sqrt(halved / norm2) > np.sqrt(claim.alpha) + SLACK

    def _suspects(self, answers: list[Answers], ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return (length, coordinate): in turn those whose values differ most and those that answer least often.

        The ends are tried anyway; in a last bucket of one coordinate an honest quantiser answers unlike elsewhere.
        """
        off = _largest(answers, [_without(a, a.dissent(), ends) for a in answers])
        silent = _largest(answers, [_without(a, a.silence(), ends) for a in answers])
        return [pair for pairs in zip_longest(off, silent) for pair in pairs if pair is not None]

    def _half_suspected(
        self, subject: Subject, answers: list[Answers], ends: list[tuple[int, int]]
    ) -> Iterator[np.ndarray]:
        """Yield each length's coordinates whose half would have been a suspect, or broken a strict contraction."""
        scores = [np.sort(_without(a, a.dissent(), ends))[-SUSPECTS:] for a in answers]
        least = float(np.sort(np.concatenate(scores))[-SUSPECTS:][0])
        for table in answers:
            claim = subject.claim(table.d)
            suspected = table.dissent(FAULT) > least
            if second_moment(claim) is None:
                yield np.zeros(table.d, bool)
            else:
                yield suspected | table.half_seen

    def _seen(
        self, subject: Subject, answers: list[Answers], ends: list[tuple[int, int]], pursued: float, strict: float
    ) -> float:
        """Return the share of all coordinates at which a half would have been seen; ``pursued``, ``strict``: the shares
        of the suspects, under either kind of claim, at which a half would have been refuted.
        """
        halves = 0.0
        for table, suspected in zip(answers, self._half_suspected(subject, answers, ends), strict=True):
            share = strict if isinstance(subject.claim(table.d), StrictlyContractive) else pursued
            halves += float(np.where(table.half_seen, 1.0, share * suspected).sum())
        return halves / sum(table.d for table in answers)

    def _ends(self, lengths: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return (length, coordinate): the last one of every length and the borders of blocks."""
        return [(d, d - 1) for d in lengths] + [(max(lengths), i) for i in BORDERS if i < max(lengths)]

    def _drawn(self, subject: Subject, examples: list[Example], context: Context) -> tuple[int, list[ClaimBets], float]:
        """Return the number of draws, the bets on them, and the share of pursued suspects where a half would lose."""
        timed = isfinite(context.budget.seconds) and not context.accused
        slow = timed and self._pace(subject, examples, context) > SLOW_S
        patient = not context.accused and not slow
        spent, usual = work_s() - context.began, (SEEN_SHARE if slow else SHARE) * context.budget.seconds
        most = MOST_SHARE * context.budget.most_seconds if patient else usual
        budget = replace(
            context.budget,
            bias=FAULT,
            draws=self._usual(context),
            least_draws=(1 if slow else LEAST_DRAWS) * len(examples),
            seconds=max(0.0, usual - spent),
            most_seconds=max(0.0, most - spent),
        )
        level, rng = context.level(2), context.rng(f"{self.name} draws")
        bets = _bets(subject, examples, level, budget)
        if not bets or all(isinstance(subject.claim(e.d), StrictlyContractive) for e in examples):
            return len(examples), [], 0.0
        source = Source(subject, keys(subject, rng))
        draws = collect(source, examples, list(bets), budget)
        more, losing = 0, []
        judged = [j for j, e in enumerate(examples) if second_moment(subject.claim(e.d)) is not None]
        for vector in judged[:PURSUED]:
            until = context.began + most
            n_draws, half_loses = self._pursue(source, examples, vector, bets, level, budget, until)
            more += n_draws
            losing.append(half_loses)
            if not half_loses:
                break
        return draws + more, bets, float(np.mean(losing)) if losing else 0.0

    def _pursue(
        self, source: Source, examples: list[Example], vector: int, bets: list[ClaimBets], level: float,
        budget: Budget, until: float,
    ) -> tuple[int, bool]:  # fmt: skip
        """Draw at one suspect until it is refuted or would have been if it were halved; draws, and whether it would."""
        example = examples[vector]
        halved = _bets(source.subject, [example], level / (2 * len(examples)), budget)
        most = full = PURSUED_SHARE * budget.draws
        half_loses, needed = False, -log(level / (2 * len(examples)))
        for n in range(0, full, BATCH):
            if any(b.rejected() for b in bets) or work_s() > until or n >= most:
                return n, half_loses
            draws = source.draw(example, BATCH)
            for bet in bets:
                bet.update(vector, draws)
            for bet in halved:
                bet.update(0, _halved(draws, example))
            if not half_loses and any(b.rejected() for b in halved):
                half_loses, most = True, LONGER * (n + BATCH)  # a quarter, the half of a half, loses that much earlier
            if n >= full // 2 and not half_loses and max(b.growth(0) for b in halved) < needed / 10:
                return n + BATCH, False
        return full, half_loses

    def _pace(self, subject: Subject, examples: list[Example], context: Context) -> float:
        """Return seconds of the quickest of a few calls at the shortest vector."""
        shortest, seconds = min(examples, key=lambda e: e.d), []
        for i in range(CALLS_TIMED):
            began = work_s()
            subject.draw(shortest.x, context.key(f"{self.name} pace {i}"))
            seconds.append(work_s() - began)
        return min(seconds)

    def _usual(self, context: Context) -> int:
        """Return draws a vector, where no clock cuts them."""
        return max(LEAST_DRAWS, int(DRAWS_SHARE * context.budget.draws))


def _alone(d: int, i: int) -> Example:
    return Example(f"only coordinate {i} of {d}", np.eye(1, d, i, np.float32)[0])


def _bets(subject: Subject, examples: list[Example], level: float, budget: Budget) -> list[ClaimBets]:
    """Return the bets of the laws of the error and of the mean on these vectors."""
    if all(second_moment(subject.claim(e.d)) is None for e in examples):
        return []
    laws = (law.bets(subject, examples, level, budget) for law in (Distortion(), Unbiasedness()))
    return [bet for bet in laws if bet is not None]


def _halved(draws: Draws, example: Example) -> Draws:
    """Return the draws as they would be if the largest coordinate of the vector were halved."""
    errors, i = draws.errors.copy(), int(np.abs(example.x).argmax())
    wide = example.x.astype(np.float64)
    errors[:, i] = FAULT * errors[:, i] - (1 - FAULT) * wide[i] / np.linalg.norm(wide)
    return replace(draws, errors=errors)


def _without(answers: Answers, scores: np.ndarray, ends: list[tuple[int, int]]) -> np.ndarray:
    """Return the scores with 0 at the ends."""
    scores[[i for d, i in ends if d == answers.d]] = 0.0
    return scores


def _largest(answers: list[Answers], scores: list[np.ndarray]) -> list[tuple[int, int]]:
    """Return (length, coordinate) of the SUSPECTS largest scores above 0."""
    scored = [
        (float(s[i]), a.d, int(i)) for a, s in zip(answers, scores, strict=True) for i in np.argsort(-s)[:SUSPECTS]
    ]
    return [(d, i) for score, d, i in sorted(scored, reverse=True)[:SUSPECTS] if score > 0]


def _percent(share: float) -> str:
    """Return a share in per cent, rounded down."""
    return f"{floor(1000 * share + 1e-9) / 10:g} %"
