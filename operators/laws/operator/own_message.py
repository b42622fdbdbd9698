"""Law: a message holds its own data: the caller may write to the gradient as soon as it is encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...key import Key
from ...message import Message
from ..kit.examples import Example
from ..kit.law import Context, LawOfOneVector, Violation
from ..kit.subject import Subject, to_numpy

DEPTH = 6  # of nested tuples, lists, dictionaries and objects in a message


class OwnMessage(LawOfOneVector):
    """No part of a message is a view of the vector that was encoded."""

    name = "own-message"
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: the call of a function has no message."""
        if not subject.is_codec and not hasattr(subject.target, "send"):
            return "a plain function has no message"
        return super().applies(subject)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Encode, overwrite the vector, and look at the message and at what it decodes to."""
        key = context.key(f"{self.name} {example.name}")
        libraries = ("torch", "numpy") if subject.is_operator else (subject.array,)
        for library in libraries:
            given = torch.from_numpy(example.x.copy()) if library == "torch" else example.x.copy()
            message = _encode(subject, given, key)
            before = contents(message)
            first, second = (_decode(subject, message, example.d, key) for _ in range(2))
            given[:] = 7.0
            if contents(message) != before:
                raise Violation(f"the message changes when the encoded vector ({library}) is overwritten")
            repeatable = np.array_equal(first, second, equal_nan=True)
            after = _decode(subject, message, example.d, key)
            if repeatable and not np.array_equal(after, first, equal_nan=True):
                raise Violation(f"the message decodes otherwise once the encoded vector ({library}) is overwritten")


def _encode(subject: Subject, x: Any, key: Key) -> Any:
    return subject.encode_as_it_is(x, key) if subject.is_codec else subject.target.send(x)


def _decode(subject: Subject, message: Any, d: int, key: Key) -> np.ndarray:
    value = subject.decode(message, d, key) if subject.is_codec else subject.target.receive(message)
    return to_numpy(value).reshape(d)


def contents(value: Any, depth: int = DEPTH) -> list[bytes]:
    """Return the bytes of all tensors, arrays and byte strings in a message."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return [value.to(torch.float32).numpy().tobytes() if value.is_floating_point() else value.numpy().tobytes()]
    if isinstance(value, np.ndarray | np.generic | bytes | bytearray | memoryview):
        return [bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value.tobytes()]
    if depth == 0:
        return []
    if isinstance(value, Message):
        return contents(value.payload)
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dict__"):
        value = list(vars(value).values())
    if isinstance(value, tuple | list):
        return [part for item in value for part in contents(item, depth - 1)]
    return []
