"""Law: C(c x) = c C(x), where declared."""

from __future__ import annotations

import numpy as np

from ..kit.examples import Example
from ..kit.law import Context, Law, NotApplicable, Violation
from ..kit.subject import Subject
from ..kit.symmetries import undeclared

SCALES = (2.0**40, 2.0**-40)
LOWEST, HIGHEST = 2.0**-80, 2.0**80


class Scale(Law):
    """Multiplying by a power of two commutes with the operator exactly, under the same key."""

    name = "scale"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"scale"`` in ``equivariant``."""
        return super().applies(subject) or undeclared(subject, "scale")

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare bit by bit."""
        size = np.abs(example.x[example.x != 0])
        if size.min() < LOWEST or size.max() > HIGHEST:
            raise NotApplicable("the scaled vector would leave the range of claims")
        key = context.key(f"{self.name} {example.name}")
        y = subject.draw(example.x, key)
        for c in SCALES:
            if not np.array_equal(subject.draw(example.x * np.float32(c), key), c * y):
                raise Violation(f"C({c:g} x) differs from {c:g} C(x)")
