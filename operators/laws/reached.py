"""Law: a constant that is claimed to be reached is reached (statistical); a loose one is only remarked on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .eprocess import ShortfallBets
from .examples import REACHED, WITNESS, Example, witnesses
from .law import Context, Law, Undecided, Violation, second_moment
from .subject import Subject
from .unbiasedness import count, statistical_examples

LOOSE = 0.5


class Reached(Law):
    """tight=True: E|C(x) - x|^2 is not below the claim, for every x; ``witness(d)``: not below 95 % of it there.

    Assumes that no draw's squared error exceeds 16 + 4 d times the claim: without some bound on single draws no
    finite number of them can show that a mean is too small.
    """

    name = "constant-reached"
    statistical = True

    def applies(self, subject: Subject) -> str | None:
        """Needs a claim with a positive constant."""
        if all(not second_moment(subject.claim(d)) for d in (1, 2, 65)):
            return "no positive constant is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """The witnesses that the subject declares, then the vectors of the statistical laws."""
        yield from witnesses(subject.target, context.budget.drawn_sizes)
        yield from statistical_examples(context)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet that the error is smaller than claimed, where it is claimed to be reached."""
        claim = subject.claim(example.d)
        s2 = second_moment(claim)
        if not s2:
            raise Undecided("no positive constant is claimed at this d")
        tight = claim.tight  # type: ignore[union-attr]
        if not tight and not example.name.startswith(WITNESS):
            raise Undecided("the claim is not said to be tight, and the subject declares no witness")
        examples = count(context) + len(context.budget.drawn_sizes)
        bets = ShortfallBets((1.0 if tight else REACHED) * s2, (16 + 4 * example.d) * s2)
        level = context.level(examples)
        total, n = 0.0, 0
        for errors, _ in context.draws(subject, example):
            squares = (errors**2).sum(axis=1)
            bets.update(squares * (1 + 1e-4))  # binary32 rounding of a small error
            total, n = total + float(squares.sum()), n + len(squares)
            if bets.wealth.rejects(level):
                raise Violation(
                    f"E|C(x) - x|^2 = {s2:.6g} |x|^2 is said to be reached; rejected at level {level:.1e} after "
                    f"{n} draws with mean {total / n:.6g} |x|^2"
                )

    def remark(self, subject: Subject, context: Context) -> str:
        """The largest share of the claim seen at any example, if it is small."""
        best = 0.0
        for example in self.examples(subject, context):
            s2 = second_moment(subject.claim(example.d))
            if s2:
                errors = np.vstack([e for e, _ in context.draws(subject, example)])
                best = max(best, float((errors**2).sum(axis=1).mean()) / s2)
        return f"the claim is loose here: the largest mean error seen is {best:.2f} of it" if best < LOOSE else ""
