"""Digests of what every operator, feedback method and aggregation sends, so that no payload byte changes unnoticed.

Written by ``python -m tests.operators.golden_payloads``: after a new operator, whose lines are then the whole diff, or
where a payload is meant to change, which the changelog says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from operators import Key, Message, all_aggregates, all_feedbacks, all_operators, specification
from operators.random import bits32

FILE = Path(__file__).with_suffix(".json")
DIMENSIONS = (1, 7, 64, 1000, 5000)
LONG = (1 << 17, (1 << 18) + 5)  # from 2^17 on TCDQ has another format
ROUNDS = 3
WORKERS = 4


def inputs(d: int) -> tuple[torch.Tensor, ...]:
    """A bell-shaped, a heavy-tailed, a sparse and a zero vector, exact in binary64 on every machine."""
    words = bits32(Key(seed=d, layer=7), 4 * d).astype(np.float64).reshape(4, d)
    bell = (words.sum(axis=0) - 2.0**33) * 2.0**-32
    vectors = bell, bell**3 * 64, np.where(words[0] < 2.0**28, bell, 0.0), np.zeros(d)
    return tuple(torch.from_numpy(vector.astype(np.float32)) for vector in vectors)


def digest(messages: list[Message]) -> str:
    """Twelve hexadecimal digits over lengths and payloads."""
    total = hashlib.sha256()
    for message in messages:
        total.update(message.bits.to_bytes(8, "big") + message.payload.numpy().tobytes())
    return total.hexdigest()[:12]


def operator_messages(operator, d: int) -> list[Message]:
    return [operator.encode(x, key=Key(seed=1, step=t)) for t, x in enumerate(inputs(d))]


def feedback_messages(feedback, d: int) -> list[Message]:
    state, messages = feedback.init(d), []
    for t in range(ROUNDS):
        state, message = feedback.encode(state, inputs(d)[t], key=Key(seed=1, step=t))
        messages.append(message)
    return messages


def aggregate_messages(aggregate, d: int) -> list[Message]:
    workers = getattr(aggregate, "workers", WORKERS)
    keys = [Key(seed=1, rank=r) for r in range(workers)]
    messages = [aggregate.uplink.encode(inputs(d)[r % 4], key=key) for r, key in enumerate(keys)]
    return [*messages, aggregate.merge(messages, d=d, keys=keys)]


def cases() -> Iterator[tuple[str, object, object]]:
    """Every example: its text, itself, and what makes its messages."""
    for cls in all_operators().values():
        yield from ((specification(operator), operator, operator_messages) for operator in cls.examples())
    for cls in all_feedbacks().values():
        yield from ((repr(feedback), feedback, feedback_messages) for feedback in cls.examples())
    for cls in all_aggregates().values():
        yield from ((repr(aggregate), aggregate, aggregate_messages) for aggregate in cls.examples())


def dimensions(subject: object) -> tuple[int, ...]:
    return DIMENSIONS + LONG if getattr(subject, "name", "") == "tcdq" else DIMENSIONS


if __name__ == "__main__":
    table = {text: {str(d): digest(make(subject, d)) for d in dimensions(subject)} for text, subject, make in cases()}
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(text)}: {json.dumps(row)}" for text, row in table.items()) + "\n}\n"
    )
