"""Law: a damaged message does not get through a merge unnoticed, and never breaks it."""

from __future__ import annotations

import numpy as np

from ..aggregate.aggregate import server_key
from ..message import CorruptMessage
from .corruption import from_bits
from .examples import Example
from .groups import AggregateLaw, group, keys_of
from .law import Context, Violation
from .subject import Subject

WORKERS = 3


class AggregateCorruption(AggregateLaw):
    """A truncated message raises CorruptMessage; a flipped bit raises it or leaves a finite result."""

    name = "aggregate-corruption"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Damage the second of three messages."""
        target, d = subject.target, example.d
        rng = context.rng(f"{self.name} {example.name} damage")
        keys = keys_of(context.key(f"{self.name} {example.name}"), WORKERS)
        vectors = group(example, WORKERS, context, self.name)
        messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
        bits = np.unpackbits(messages[1].payload.numpy())[: messages[1].bits]
        if not bits.size:
            return
        flipped = bits.copy()
        flipped[rng.integers(bits.size)] ^= 1
        for damaged, must_raise in ((bits[:-1], True), (flipped, False)):
            try:
                merged = target.merge([messages[0], from_bits(damaged), messages[2]], d=d, keys=keys)
            except CorruptMessage:
                continue
            if must_raise:
                raise Violation("a truncated message was merged; expected CorruptMessage")
            if not np.isfinite(target.downlink.decode(merged, d=d, key=server_key(keys)).numpy()).all():
                raise Violation("a flipped bit made the result non-finite")
