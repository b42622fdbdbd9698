"""Law: a truncated, extended or altered message raises CorruptMessage or decodes to a finite vector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ...message import CorruptMessage, Message
from ..kit.examples import Example, drawn, structured
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy

FLIPS = 12


class Corruption(Law):
    """Bits missing or left over always raise CorruptMessage; other damage raises it or gives a finite vector."""

    name = "corruption"
    needs = "messages"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one drawn and one structured vector at every size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, 1, rng)
            yield from (e for e in structured(d) if e.name.startswith("one-hot, last"))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Damage one message in several ways."""
        rng = context.rng(f"{self.name} {example.name}")
        key = context.key(f"{self.name} {example.name}")
        message = subject.encode(example.x, key)
        bits = np.unpackbits(message.payload.cpu().numpy())[: message.bits]
        for cut in {1, 8, 32, message.bits // 2, message.bits} & set(range(1, message.bits + 1)):
            _must_raise(subject, bits[:-cut], example.d, key, f"the last {cut} of {message.bits} bits cut off")
        for extra in (1, 8, 64):
            tail = rng.integers(0, 2, extra).astype(np.uint8)
            _must_raise(subject, np.concatenate([bits, tail]), example.d, key, f"{extra} bits added at the end")
        for _ in range(FLIPS if message.bits else 0):
            flipped = bits.copy()
            position = int(rng.integers(message.bits))
            flipped[position] ^= 1
            _may_raise(subject, flipped, example.d, key, f"bit {position} flipped")
        _may_raise(subject, rng.integers(0, 2, bits.size).astype(np.uint8), example.d, key, "random bits")


def from_bits(bits: np.ndarray) -> Message:
    """Return a message with these bits (0 and 1, shape (n,))."""
    return Message(torch.from_numpy(np.packbits(bits)), bits.size)


def _must_raise(subject: Subject, bits: np.ndarray, d: int, key: object, what: str) -> None:
    if not _may_raise(subject, bits, d, key, what):
        raise Violation(f"decoded without an error: {what}; expected CorruptMessage")


def _may_raise(subject: Subject, bits: np.ndarray, d: int, key: object, what: str) -> bool:
    try:
        value = to_numpy(subject.decode(from_bits(bits), d, key))  # type: ignore[arg-type]
    except CorruptMessage:
        return True
    except Exception as error:
        raise Violation(f"{type(error).__name__} instead of CorruptMessage: {what} ({error})") from error
    if value.shape != (d,) or not np.isfinite(value).all():
        raise Violation(f"decoded to {value.shape} with a non-finite entry or a wrong shape: {what}")
    return False
