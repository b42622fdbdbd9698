"""Law: messages are exactly as long as declared (the expected length statistically)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from bounds.claims import Contractive, NoClaim, Unbiased

from .eprocess import ExcessBets
from .examples import Example, at_the_ends
from .law import Context, Law, Violation
from .subject import Subject
from .unbiasedness import count, statistical_examples


class DeclaredSize(Law):
    """``bits(d)``: every message has the exact length, none exceeds the worst case, the mean not the expected one."""

    name = "declared-size"
    statistical = True
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """All the usual vectors, and the ends of the claims' range."""
        yield from statistical_examples(context)
        yield from super().examples(subject, context)
        for d in context.budget.sizes:
            yield from at_the_ends(d)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """One message at every example; many where draws exist already."""
        d = example.d
        size = subject.target.bits(d)
        sent = subject.encode(example.x, context.key(f"{self.name} {example.name}")).bits
        if size.exact is not None and sent != size.exact:
            raise Violation(f"the message has {sent} bits; bits({d}) declares exactly {size.exact}")
        if size.worst_case is not None and sent > size.worst_case:
            raise Violation(f"the message has {sent} bits; bits({d}) declares at most {size.worst_case}")
        if not isinstance(subject.claim(d), Unbiased | Contractive | NoClaim):
            raise Violation(f"claim({d}) must be one of bounds.claims; got {subject.claim(d)!r}")
        if size.exact is None and size.expected_upper is not None and d in context.budget.drawn_sizes:
            self._expected(subject, example, context, size.expected_upper)

    def _expected(self, subject: Subject, example: Example, context: Context, upper: float) -> None:
        if not (isfinite(upper) and upper > 0):
            raise Violation(f"expected_upper must be finite and positive; got {upper}")
        examples = 3 * count(context)  # those of other laws and sizes included
        bets = ExcessBets(upper)
        total, n = 0.0, 0
        for _, bits in context.draws(subject, example):
            bets.update(bits)
            total, n = total + float(bits.sum()), n + len(bits)
            if bets.wealth.rejects(context.level(examples)):
                raise Violation(
                    f"the mean length is declared as at most {upper:.6g} bits; rejected after {n} messages "
                    f"with mean {total / n:.6g}"
                )
