"""Law: coordinates far out are treated like the first ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bounds.claims import StrictlyContractive

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation, second_moment
from ..kit.subject import Subject

DRAWS = 4


class LargeIndex(Law):
    """A vector whose mass lies at the end of a large d is not lost, moved or mixed up by narrow index types."""

    name = "large-index"
    needs = "operator"
    shrinks = False

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return mass at the last entries, at the budget's large size."""
        d = context.budget.large
        x = np.zeros(d, np.float32)
        x[-1], x[-2], x[d // 2] = 4.0, -2.0, 1.0
        yield Example(f"mass at the end, d = {d}", x)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Finite, and within the claim."""
        x = example.x.astype(np.float64)
        norm2 = float(x @ x)
        claim = subject.claim(example.d)
        s2 = second_moment(claim)
        for draw in range(DRAWS):
            y = subject.draw(example.x, context.key(f"{self.name} {draw}"))
            if not np.isfinite(y).all():
                raise Violation("the output is not finite")
            if s2 is None:
                continue
            most = s2 * 1.001 + 1e-6 if isinstance(claim, StrictlyContractive) else 100 * s2 * (1 + example.d) + 1e-6
            error = float((y - x) @ (y - x)) / norm2
            if error > most:
                raise Violation(f"|C(x) - x|^2 = {error:.6g} |x|^2; the claim {claim} allows {most:.6g}")
