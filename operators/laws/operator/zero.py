"""Law: zero in, zero out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bounds.claims import NoClaim

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class Zero(Law):
    """The zero vector (either sign) decodes to zero; an operator without a claim must still be finite there."""

    name = "zero"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return zeros and negative zeros at every size."""
        for d in context.budget.sizes:
            yield Example(f"zero, d = {d}", np.zeros(d, np.float32))
            yield Example(f"negative zero, d = {d}", -np.zeros(d, np.float32))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Three draws; of negative zero one."""
        for draw in range(1 if np.signbit(example.x[0]) else 3):
            y = subject.draw(example.x, context.key(f"{self.name} {draw}"))
            if not np.isfinite(y).all():
                raise Violation("the zero vector gives NaN or infinity")
            if y.any() and not isinstance(subject.claim(example.d), NoClaim):
                raise Violation(f"the zero vector gives {float(np.abs(y).max()):.6g}")
