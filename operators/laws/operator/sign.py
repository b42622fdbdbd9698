"""Law: C(-x) = -C(x), where declared."""

from __future__ import annotations

import numpy as np

from ..kit.examples import Example
from ..kit.law import Context, Law, NotApplicable, Violation
from ..kit.subject import Subject
from ..kit.symmetries import undeclared


class Sign(Law):
    """Negation commutes with the operator under the same key; vectors with zeros are left out (their sign is 0)."""

    name = "sign"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"sign"`` in ``equivariant``."""
        return super().applies(subject) or undeclared(subject, "sign")

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare bit by bit."""
        if not example.x.all():
            raise NotApplicable("the vector has zeros")
        key = context.key(f"{self.name} {example.name}")
        if not np.array_equal(subject.draw(-example.x, key), -subject.draw(example.x, key)):
            raise Violation("C(-x) differs from -C(x)")
