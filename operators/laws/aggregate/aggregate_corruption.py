"""Law: a damaged message does not get through a merge unnoticed, and never breaks it."""

from __future__ import annotations

import numpy as np

from ...aggregate.aggregate import server_key
from ...message import CorruptMessage
from ..kit.examples import Example
from ..kit.groups import AggregateLaw, group, keys_of, workers_of
from ..kit.law import Context, Violation
from ..kit.subject import Subject
from ..operator.corruption import from_bits

TRIED = 3  # workers, unless the merger is built for another number


class AggregateCorruption(AggregateLaw):
    """A truncated message raises CorruptMessage; a flipped bit raises it or leaves a finite result."""

    name = "aggregate-corruption"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Damage the message of the worker in the middle."""
        target, d = subject.target, example.d
        rng = context.rng(f"{self.name} {example.name} damage")
        n = TRIED if TRIED in workers_of(target) else workers_of(target)[0]
        keys = keys_of(context.key(f"{self.name} {example.name}"), n)
        vectors = group(example, n, context, self.name)
        messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
        middle = n // 2
        bits = np.unpackbits(messages[middle].payload.numpy())[: messages[middle].bits]
        if not bits.size:
            return
        flipped = bits.copy()
        flipped[rng.integers(bits.size)] ^= 1
        for damaged, must_raise in ((bits[:-1], True), (flipped, False)):
            try:
                messages[middle] = from_bits(damaged)
                merged = target.merge(messages, d=d, keys=keys)
            except CorruptMessage:
                continue
            if must_raise:
                raise Violation("a truncated message was merged; expected CorruptMessage")
            if not np.isfinite(target.downlink.decode(merged, d=d, key=server_key(keys)).numpy()).all():
                raise Violation("a flipped bit made the result non-finite")
