"""Law: merging is a pure function of the messages, and every worker can decode its result."""

from __future__ import annotations

import numpy as np
import torch

from ...aggregate.aggregate import Aggregate, server_key
from ...key import Key
from ...message import Message
from ..kit.examples import Example
from ..kit.groups import AggregateLaw, group, keys_of, workers_of
from ..kit.law import Context, Violation
from ..kit.subject import Subject


class AggregatePurity(AggregateLaw):
    """Same messages, same merge; messages untouched; the result is finite, of shape (d,); a wrong count is refused."""

    name = "aggregate-purity"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Merge twice for several numbers of workers."""
        target, d = subject.target, example.d
        for n in workers_of(target):
            keys = keys_of(context.key(f"{self.name} {example.name}"), n)
            vectors = group(example, n, context, self.name)
            messages = [target.uplink.encode(x, key=key) for x, key in zip(vectors, keys, strict=True)]
            before = [message.payload.clone() for message in messages]
            first, second = (target.merge(messages, d=d, keys=keys) for _ in range(2))
            if first.bits != second.bits or not torch.equal(first.payload, second.payload):
                raise Violation(f"two merges of the same {n} messages differ")
            if not all(torch.equal(a, b.payload) for a, b in zip(before, messages, strict=True)):
                raise Violation("merge changed a message")
            y = target.downlink.decode(first, d=d, key=server_key(keys)).numpy()
            if y.shape != (d,) or not np.isfinite(y).all():
                raise Violation(f"the merge of {n} messages decodes to shape {y.shape} or a non-finite entry")
            for wrong in ([], keys[:-1] if n > 1 else [*keys, keys[0]]):
                _refused(target, messages if wrong else [], d, wrong)


def _refused(target: Aggregate, messages: list[Message], d: int, keys: list[Key]) -> None:
    try:
        target.merge(messages, d=d, keys=keys)
    except ValueError:
        return
    raise Violation(f"{len(messages)} messages with {len(keys)} keys were accepted; expected ValueError")
