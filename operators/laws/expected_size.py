"""Law: the mean message length is not above the declared one (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from .eprocess import ExcessBets
from .examples import Example
from .law import Context, Law, Undecided, Violation
from .subject import Subject
from .unbiasedness import count, statistical_examples


class ExpectedSize(Law):
    """``bits(d).expected_upper``: no vector's mean length exceeds it."""

    name = "expected-size"
    statistical = True
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """The vectors of the statistical laws, whose messages are there already."""
        yield from statistical_examples(context)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet that messages are longer than declared."""
        size = subject.target.bits(example.d)
        upper = size.expected_upper
        if size.exact is not None or upper is None:
            raise Undecided("the length is exact, or no mean length is declared")
        if not (isfinite(upper) and upper > 0):
            raise Violation(f"expected_upper must be finite and positive; got {upper}")
        bets = ExcessBets(upper)
        total, n = 0.0, 0
        for _, bits in context.draws(subject, example):
            bets.update(bits)
            total, n = total + float(bits.sum()), n + len(bits)
            if bets.wealth.rejects(context.level(count(context))):
                raise Violation(
                    f"the mean length is declared as at most {upper:.6g} bits; rejected after {n} messages "
                    f"with mean {total / n:.6g}"
                )
