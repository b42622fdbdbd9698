"""Law: messages are exactly as long as declared, or no longer than the declared worst case."""

from __future__ import annotations

from collections.abc import Iterator

from bounds.claims import Contractive, NoClaim, Unbiased

from ..kit.examples import Example, at_the_ends
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class DeclaredSize(Law):
    """``bits(d)``: every message has the exact length, none exceeds the worst case; the claim is a known one."""

    name = "declared-size"
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return all the usual vectors, and the ends of the claims' range."""
        yield from super().examples(subject, context)
        for d in context.budget.sizes:
            yield from at_the_ends(d)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """One message at every example."""
        d = example.d
        size = subject.target.bits(d)
        sent = subject.encode(example.x, context.key(f"{self.name} {example.name}")).bits
        if size.exact is not None and sent != size.exact:
            raise Violation(f"the message has {sent} bits; bits({d}) declares exactly {size.exact}")
        if size.worst_case is not None and sent > size.worst_case:
            raise Violation(f"the message has {sent} bits; bits({d}) declares at most {size.worst_case}")
        if not isinstance(subject.claim(d), Unbiased | Contractive | NoClaim):
            raise Violation(f"claim({d}) must be one of bounds.claims; got {subject.claim(d)!r}")
