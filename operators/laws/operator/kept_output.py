"""Law: a decoded vector stays what it is when the next one is decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class KeptOutput(Law):
    """Outputs share no memory: a reused buffer makes the second decode overwrite the first result."""

    name = "kept-output"
    shrinks = False

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one Gaussian vector at every third size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes[::3]:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Keep one output while another vector, and then the same one, goes through."""
        key = context.key(f"{self.name} {example.name}")
        kept = subject.raw(example.x, key)
        before = to_numpy(kept)
        for other in (-2 * example.x, example.x):
            following = subject.raw(other, context.key(f"{self.name} another"))
            if not np.array_equal(to_numpy(kept), before, equal_nan=True):
                raise Violation("the next output overwrites this one: both lie in the same memory")
            del following
