"""Law: no global random state is read or changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...functions.global_streams import restore, same, seed_all, snapshot
from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class RandomState(Law):
    """Python's, numpy's and torch's generators are untouched, and the outcome does not depend on them."""

    name = "random-state"
    needs = "key"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one drawn vector at every size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Run between two snapshots, under two different global states; the caller's state is restored."""
        key = context.key(f"{self.name} {example.name}")
        saved = snapshot()
        try:
            outputs = []
            for seed in (1, 2):
                seed_all(seed)
                before = snapshot()
                outputs.append(to_numpy(subject.decode(subject.encode(example.x, key), example.d, key)))
                if not same(before, snapshot()):
                    raise Violation("a global random state was changed")
            if not np.array_equal(outputs[0], outputs[1]):
                raise Violation("the outcome depends on a global random state")
        finally:
            restore(saved)
