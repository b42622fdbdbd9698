"""Law: where the output is declared a projection of x, the error is orthogonal to it."""

from __future__ import annotations

import numpy as np

from ..betting.eprocess import SLACK
from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject

DRAWS = 2


class Projection(Law):
    """<C(x), C(x) - x> = 0 on every draw: no other multiple of the output is nearer to x.

    Kept entries, class means, low ranks and directions with the best length have it; any scaling breaks it.
    """

    name = "projection"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs the declaration."""
        if not getattr(subject.target, "projects", False):
            return "the output is not declared a projection (projects = True)"
        return super().applies(subject)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the two products."""
        x = example.x.astype(np.float64)
        for draw in range(DRAWS):
            y = subject.draw(example.x, context.key(f"{self.name} {draw} {example.name}"))
            allowed = 2 * SLACK * float(np.linalg.norm(y) * (np.linalg.norm(x) + np.linalg.norm(y)))
            if abs(float(y @ (y - x))) > allowed:
                raise Violation(f"<C(x), x> = {float(y @ x):.8g}, |C(x)|^2 = {float(y @ y):.8g}; declared a projection")
