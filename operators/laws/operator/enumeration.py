"""Law: where the randomness is finite, the mean and the error over all outcomes match the claim.

The random words are split into classes on which the output should not depend: equal cells of each word (an index drawn
by scaling, a sign in the top bit; as many for each word as it has), the order of the words (a sort), or the words'
influential bits (signs packed into words).  That it indeed does not depend on anything else is tried on random words;
if it never changed in V trials, then except with probability ``level`` it changes with probability at most q =
ln(1/level)/V.  Let r be the error of a class's representative, e that of a draw, A the event r != e.  Then E r = E e +
E[r; A] - E[e; A].  Of a true claim E e = 0, ``E|e|^2 <= s^2`` the part ``E[|e|^2``; ``A] <= s^2 - E|r|^2 + q max|r|^2``
is left for A, so (Cauchy-Schwarz: an outcome that was never seen may be large) ``|E r| <= q max|r| + sqrt(q (s^2 -
E|r|^2 + q max|r|^2))``, and ``E|r|^2 <= s^2 + q max|r|^2``.  V may depend on the clock: whatever it is at the end, the
first ln(1/level)/q trials must have changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from bounds.claims import Unbiased

from ..kit.clock import work_s
from ..kit.examples import Example, drawn, structured
from ..kit.function_examples import in_time
from ..kit.law import Context, Inconclusive, Law, NotApplicable, Violation, second_moment
from ..kit.subject import Subject
from ..kit.verdict import About
from ..replay.partitions import Classes, partitions
from ..replay.recorded_words import Controlled

SIZES = (2, 3, 4, 5, 8)
PARTITIONS = 7  # at most, tried at one example
FIRST_TRIALS = 12  # before the outcomes are listed
LEAST_TRIALS = 512  # made at every example, however long they take
TRIALS_OF_A_FUNCTION = 64, 512  # least and most: it may be slow; fewer leave more doubt
CHECK = 64  # trials of a function after which it is asked whether more would convict
SUSPICION, SUSPICION_SHARE = 40, 2.0
FUNCTION_SIZES = (3, 5, 2, 4)
ROUNDING = 1e-6


class Enumeration(Law):
    """Mean and mean squared error over every outcome of a finite randomness."""

    name = "enumeration"
    statistical = True  # only that no other randomness is read
    needs = "words"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim, and randomness."""
        reason = super().applies(subject)
        if reason is None and subject.randomness == "none":
            return "there is no randomness"
        if reason is None and all(second_moment(subject.claim(d)) is None for d in SIZES):
            return "nothing is claimed"
        return reason

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a few vectors of 2 to 8 coordinates."""
        rng = context.rng(self.name)
        if not subject.is_operator:
            vectors = (e for d in FUNCTION_SIZES for e in drawn(d, 1, rng))
            yield from in_time(vectors, 0.0 if context.accused else context.budget.seconds)
            return
        for d in SIZES:
            yield from (e for e in structured(d) if e.name.startswith(("pair (1, 1/2", "alternating", "one-hot, last")))
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Find the classes, verify them, and compare the averages over them with the claim."""
        claim, x = subject.claim(example.d), example.x.astype(np.float64)
        s2 = second_moment(claim)
        if s2 is None:
            raise NotApplicable("nothing is claimed")
        rng = context.rng(f"{self.name} {example.name} {x.sum()}")
        run = Controlled(subject, example.x, rng)
        if run.n_words == 0:
            raise NotApplicable("it reads no random word at this vector")
        logarithm = log(1 / context.level(4 * len(SIZES) * PARTITIONS))
        claimed = Claimed(x, s2, isinstance(claim, Unbiased), logarithm, run.resolution)
        claimed.compare(*_outcomes(run, context, claimed, rng))


@dataclass(frozen=True)
class Claimed:
    """What is claimed at x, and how a list of outcomes is compared with it after a number of trials."""

    x: np.ndarray
    s2: float
    unbiased: bool
    logarithm: float  # ln(1/level)
    resolution: float

    def compare(self, outputs: np.ndarray, trials: int) -> None:
        """Raise Violation if the claim cannot hold."""
        doubt = min(1.0, self.logarithm / trials) if trials else 0.0
        errors = (outputs - self.x) / np.linalg.norm(self.x)
        squares = (errors**2).sum(axis=1)
        bias, largest = float(np.linalg.norm(errors.mean(axis=0))), float(squares.max())
        rest = max(self.s2 - float(squares.mean()), 0.0) + doubt * largest
        allowed = doubt * np.sqrt(largest) + np.sqrt(doubt * rest) + ROUNDING + self.resolution * np.sqrt(largest)
        if self.unbiased and bias > allowed:
            raise Violation(f"|E C(x) - x| = {bias:.6g} |x| over all {len(outputs)} outcomes; claimed unbiased")
        if squares.mean() > self.s2 * (1 + ROUNDING) + doubt * largest + ROUNDING:
            text = f"E|C(x) - x|^2 = {squares.mean():.6g} |x|^2 over all outcomes; claimed {self.s2:.6g}"
            raise Violation(text, About.CONSTANT)

    def suspects(self, outputs: np.ndarray, trials: int) -> bool:
        """Return whether the claim would be violated without the doubt that so few trials leave."""
        try:
            self.compare(outputs, trials)
        except Violation:
            return False  # no doubt is left
        try:
            self.compare(outputs, 0)
        except Violation:
            return True
        return False


def _outcomes(run: Controlled, context: Context, claimed: Claimed, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the output of every class of the first partition that survives its trials, shape (outcomes, d); their
    number.
    """
    for classes in partitions(run, context.budget.evaluations):
        if not all(_same(run, classes, rng) for _ in range(FIRST_TRIALS)):
            continue
        outputs = np.stack([run(words) for words in classes.words])
        trials = _trials(run, classes, outputs, context, claimed, rng)
        if trials:
            return outputs, trials
    raise NotApplicable("no finite set of outcomes was found")


def _trials(
    run: Controlled,
    classes: Classes,
    outputs: np.ndarray,
    context: Context,
    claimed: Claimed,
    rng: np.random.Generator,
) -> int:
    """Return how often the output depended on the class alone: 0 if not always.

    ``budget.evaluations`` times or until the time is over; for a function SUSPICION times as often, and until the law
    has run for SUSPICION_SHARE of ``budget.seconds``, where the outcomes contradict the claim but for the doubt that is
    left.

    Raises
    ------
    Inconclusive
        Where that time is over.
    """
    ends, trials, longer = work_s() + context.budget.seconds / (4 * len(SIZES)), 0, 1
    least, most = (LEAST_TRIALS, context.budget.evaluations) if run.subject.is_operator else TRIALS_OF_A_FUNCTION
    while trials < longer * most:
        if trials >= least and longer > 1 and not context.spare(SUSPICION_SHARE):
            raise Inconclusive(
                f"its outcomes contradict the claim, but it is too slow to confirm them: {trials} trials"
            )
        if trials >= least and longer == 1 and work_s() > ends:
            break
        if not _as_listed(run, classes, outputs, rng):
            return 0
        trials += 1
        if trials % CHECK == 0 and run.intercepted:
            longer = SUSPICION if not context.accused and claimed.suspects(outputs, trials) else 1
    return trials


def _same(run: Controlled, classes: Classes, rng: np.random.Generator) -> bool:
    words = classes.words[rng.integers(len(classes.words))]
    return np.array_equal(run(words), run(classes.member(words, rng)))


def _as_listed(run: Controlled, classes: Classes, outputs: np.ndarray, rng: np.random.Generator) -> bool:
    number = int(rng.integers(len(classes.words)))
    return np.array_equal(run(classes.member(classes.words[number], rng)), outputs[number])
