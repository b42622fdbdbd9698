"""Law: the decoder learns the vector from the payload alone (and the key, where it is shared)."""

from __future__ import annotations

import copy

import numpy as np

from ...message import Message
from ..kit.examples import Example, drawn
from ..kit.law import Context, LawOfOneVector, Violation
from ..kit.subject import Subject, to_numpy

INPUTS = 24


class PayloadAlone(LawOfOneVector):
    """Equal payloads decode equally, later and by a copy of the decoder: nothing travels outside the payload."""

    name = "payload-alone"
    needs = "messages"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Encode several vectors; decode late, elsewhere, and from a bare copy of the bits."""
        key = context.key(f"{self.name} {example.name}")
        decoder = Subject(copy.deepcopy(subject.target), array=subject.array)
        rng = context.rng(f"{self.name} {example.name}")
        inputs = [example.x, *(e.x for e in drawn(example.d, INPUTS if example.d < 100 else 2, rng))]
        messages = [subject.encode(x, key) for x in inputs]
        decoded = [to_numpy(subject.decode(subject.encode(x, key), x.size, key)) for x in inputs]
        decoded_by_address: dict[tuple[bytes, int], np.ndarray] = {}
        for message, expected in zip(messages, decoded, strict=True):
            payload = message.payload.cpu()
            address = (payload.numpy().tobytes(), message.bits)
            if not np.array_equal(decoded_by_address.setdefault(address, expected), expected):
                raise Violation(f"two vectors with the same payload of {message.bits} bits decode differently")
            bare = Message(payload.clone(), message.bits)
            for who, where in ((subject, "after later encodes"), (decoder, "by a copy of the decoder")):
                if not np.array_equal(to_numpy(who.decode(bare, example.d, key)), expected):
                    raise Violation(f"the bare payload decodes differently {where}")
