"""Law: the same vector and key give the same message, and the same message the same vector."""

from __future__ import annotations

import numpy as np

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class Determinism(Law):
    """encode and decode are pure functions."""

    name = "determinism"
    needs = "key"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Do everything twice."""
        key = context.key(f"{self.name} {example.name}")
        first, second = (subject.encode(example.x, key) for _ in range(2))
        if subject.has_messages and not _equal(first, second):
            raise Violation("two encodings of the same vector with the same key differ")
        a, b = (to_numpy(subject.decode(m, example.d, key)) for m in (first, second))
        again = to_numpy(subject.decode(first, example.d, key))
        if not (np.array_equal(a, b) and np.array_equal(a, again)):
            raise Violation("the same vector and key decode to different vectors")


def _equal(a: object, b: object) -> bool:
    return a.bits == b.bits and bool((a.payload == b.payload).all())  # type: ignore[attr-defined]
