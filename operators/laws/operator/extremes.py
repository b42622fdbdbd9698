"""Law: the ends of the number range give finite results of the right size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...inputs import LARGEST, SMALLEST
from ..kit.examples import Example, at_the_ends
from ..kit.law import Context, Law, Violation, second_moment
from ..kit.subject import Subject

DRAWS = 5


class Extremes(Law):
    """From subnormal numbers to 2^100: finite, and no error beyond what the claim makes possible at all.

    Within the range of claims the mean squared error is judged by the other laws; here a single draw may
    exceed it by the factor 100 (1 + d).  Below the range an absolute error of 2^-126 sqrt(d) is allowed.
    """

    name = "extremes"
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return both ends of the range, subnormals, and vectors that mix all scales."""
        for d in context.budget.sizes:
            yield from at_the_ends(d)
            i = np.arange(d)
            yield Example(f"smallest subnormal, d = {d}", np.full(d, 2.0**-149, np.float32))
            yield Example(f"subnormals, d = {d}", np.float32(SMALLEST) * np.float32(1) / (2 + i).astype(np.float32))
            mixed = np.where(i == 0, LARGEST, 10.0 ** (-45 + (i % 60)))
            yield Example(f"mixed scales, d = {d}", mixed.astype(np.float32))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """A few draws."""
        x = example.x.astype(np.float64)
        d, norm = example.d, float(np.linalg.norm(x))
        s2 = second_moment(subject.claim(d))
        for draw in range(DRAWS):
            y = subject.draw(example.x, context.key(f"{self.name} {draw} {example.name}"))
            if not np.isfinite(y).all():
                raise Violation("the output is not finite")
            if s2 is None:
                continue
            allowed = 10 * np.sqrt(s2 * (1 + d)) * norm + 1e-6 * norm + SMALLEST * np.sqrt(d)
            error = float(np.linalg.norm(y - x))
            if error > allowed:
                raise Violation(f"the error is {error:.3g}; |x| = {norm:.3g} and the claim allow {allowed:.3g}")
