"""Law: negative zero is zero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class NegativeZero(Law):
    """-0.0 and 0.0 in the input give the same result under the same key."""

    name = "negative-zero"
    needs = "key"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return drawn vectors with half of their entries zero."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            for example in drawn(d, 2, rng):
                x = np.where(rng.random(d) < 0.5, np.float32(0), example.x)
                yield Example(f"half zeros, d = {d}", x if x.any() else np.append(x[1:], np.float32(1)))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the outcome for the two zeros."""
        key = context.key(f"{self.name} {example.name}")
        negative = np.where(example.x == 0, np.float32(-0.0), example.x)
        if not np.array_equal(subject.draw(example.x, key), subject.draw(negative, key)):
            raise Violation("-0.0 in the input is treated differently from 0.0")
