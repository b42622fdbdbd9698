"""Law: the mean squared error is not above the claim (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator

from .eprocess import ExcessBets, inflated
from .examples import Example
from .law import Context, Law, Undecided, Violation, second_moment
from .subject import Subject
from .unbiasedness import count, statistical_examples


class Distortion(Law):
    """E|C(x) - x|^2 <= omega |x|^2, or alpha |x|^2."""

    name = "distortion"
    statistical = True

    def applies(self, subject: Subject) -> str | None:
        """Needs any claim with a constant."""
        if all(second_moment(subject.claim(d)) is None for d in (1, 2, 65)):
            return "nothing is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """The vectors of the statistical laws."""
        yield from statistical_examples(context)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet that the error is larger than claimed."""
        s2 = second_moment(subject.claim(example.d))
        if s2 is None:
            raise Undecided("nothing is claimed at this d")
        bets = ExcessBets(inflated(s2))
        level = context.level(count(context))
        total, n = 0.0, 0
        for errors, _ in context.draws(subject, example):
            squares = (errors**2).sum(axis=1)
            bets.update(squares)
            total, n = total + float(squares.sum()), n + len(squares)
            if bets.wealth.rejects(level):
                raise Violation(
                    f"E|C(x) - x|^2 <= {s2:.6g} |x|^2 rejected at level {level:.1e} after {n} draws; "
                    f"the mean so far is {total / n:.6g} |x|^2"
                )
