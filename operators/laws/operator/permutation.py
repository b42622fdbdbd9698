"""Law: reordering the coordinates reorders the result, where declared."""

from __future__ import annotations

import numpy as np

from ..kit.examples import Example
from ..kit.law import Context, Law, NotApplicable, Violation
from ..kit.subject import Subject
from ..kit.symmetries import undeclared


class Permutation(Law):
    """C(Px) = P C(x) for a deterministic operator; vectors with equal magnitudes are left out (ties go by index)."""

    name = "permutation"
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs ``"permutation"`` in ``equivariant``, and no randomness."""
        reason = super().applies(subject) or undeclared(subject, "permutation")
        if reason is None and subject.randomness != "none":
            return "its random words would have to be reordered too"
        return reason

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Reverse, and shuffle."""
        if len(np.unique(np.abs(example.x))) < example.d:
            raise NotApplicable("the vector has ties")
        key = context.key(f"{self.name} {example.name}")
        y = subject.draw(example.x, key)
        for order in (np.arange(example.d)[::-1], context.rng(f"{self.name} {example.name}").permutation(example.d)):
            z = subject.draw(np.ascontiguousarray(example.x[order]), key)
            if not np.allclose(z, y[order], rtol=1e-6, atol=0):  # sums may be taken in another order
                raise Violation("reordering the coordinates changes the result")
