"""Law: only shared randomness is read by the decoder, and no randomness by a deterministic encoder."""

from __future__ import annotations

import numpy as np

from ...key import Key
from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class PrivateRandomness(Law):
    """private: decode gives the same for any key and for none; none: so does encode; shared: decode demands it."""

    name = "private-randomness"
    needs = "operator"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Decode with the right key, another one and none."""
        key = context.key(f"{self.name} {example.name}")
        other = Key(key.seed + 1, step=key.step, rank=5)
        message = subject.encode(example.x, key)
        expected = to_numpy(subject.decode(message, example.d, key))
        if subject.randomness == "shared":
            try:
                subject.decode(message, example.d, None)
            except ValueError:
                return
            raise Violation("randomness is shared but decode without a key raises no ValueError")
        for given in (other, None):
            if not np.array_equal(to_numpy(subject.decode(message, example.d, given)), expected):
                raise Violation(f"randomness is {subject.randomness} but decode depends on the key")
        if subject.randomness == "none":
            again = subject.decode(subject.encode(example.x, other), example.d, other)
            if not np.array_equal(to_numpy(again), expected):
                raise Violation("randomness is none but the outcome depends on the key")
